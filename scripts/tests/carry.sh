#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of carry.py, with a tag v0.2 beside v0.1. In v0.2 line 8 of a.c differs.

. "$(dirname "$0")/fixtures.sh"

make_second_tag()
{
	local dir=$TMP/t/linux-0.2

	SERIES2=$PATCHES/v0.2/series
	cp -a "$TMP/fixture/linux-0.1" "$dir"
	sed -i 's/^PATCHLEVEL.*/PATCHLEVEL = 2/' "$dir/Makefile"
	sed -i '8s/.*/a eight/' "$dir/tools/perf/a.c"
	repack_kernel "$dir" linux-0.2.tar.xz
}

# Both tags have the same series, and it is committed.
write_two_series()
{
	write_good_series
	make_second_tag
	mkdir -p "$PATCHES/v0.2"
	cp "$SERIES" "$SERIES2"
	commit_series
}

commit_series()
{
	git -C "$TMP/t" init -q
	git -C "$TMP/t" add -A patches
	git -C "$TMP/t" -c user.name=x -c user.email=x@y commit -q -m x
}

call_carry()
{
	cd "$TMP/t" && unset GIT_DIR &&
		exec env PATH="$TMP/stubs:$REAL_PATH" PBM_CACHE="$CACHE" PBM_PINS="$PINS" PBM_MIRROR='' \
			PBM_PATCHES="$PATCHES" "$SCRIPTS_DIR/carry.py" --out "$OUT" "$@"
}

carry()
{
	expect_status "$1" call_carry "${@:2}"
}

# write_parts SERIES ENTRY...: write the series, with a line "# part" for each part
write_parts()
{
	printf '%s\n' "${@:2}" | awk -F / '
		!/^#/ && $1 != part { part = $1; print "# part " part ": what it is for" }
		{ print }' > "$1"
}

# series_is ENTRY...: fail unless v0.2 has this series
series_is()
{
	write_parts "$TMP/t/wanted" "$@"
	same "the series of v0.2" "$TMP/t/wanted" "$SERIES2"
}

test_shared_patches_stay_shared()
{
	write_good_series
	make_second_tag
	commit_series
	# v0.2 has no series yet, so it gets all patches.
	carry 0 --to v0.2 v0.1
	series_is fixes/a.patch core/b.patch
	commit_series
	cp -a "$PATCHES" "$TMP/t/before"
	carry 0 v0.1
	printed "no patch has changed since HEAD"
	diff -r "$TMP/t/before" "$PATCHES" || fail "nothing to carry, and patches have changed"
	change fixes/a.patch a.c 2 'a zwei'
	carry 0 v0.1
	series_is fixes/a.patch core/b.patch
	absent "$PATCHES/fixes/v0.2/a.patch"
	commit_series
	change core/b.patch b.c 2 'b zwei'
	carry 0 v0.2
	series_is fixes/a.patch core/b.patch
	holds "$PATCHES/core/b.patch" "^+b zwei"
}

test_patch_is_adapted_while_the_other_tag_needs_it()
{
	write_two_series
	change fixes/a.patch a.c 6 'a six'
	carry 0 v0.1
	printed "v0.2: fixes/v0.2/a.patch (written)"
	series_is fixes/v0.2/a.patch core/b.patch
	holds "$PATCHES/fixes/v0.2/a.patch" "^+a six"
	holds "$PATCHES/fixes/v0.2/a.patch" "^ a eight"
	holds "$PATCHES/fixes/v0.2/a.patch" "^Subject: perf test: Change it"
	[[ $(grep -c -x -e --- "$PATCHES/fixes/v0.2/a.patch") = 1 ]] || fail "the header does not end with a '---'"
	commit_series
	sed -i 's/^and was not/and never was/' "$PATCHES/fixes/a.patch"
	carry 0 v0.1
	series_is fixes/v0.2/a.patch core/b.patch
	holds "$PATCHES/fixes/v0.2/a.patch" "^and never was"
	commit_series
	# Line 2 is the same in both tags, so v0.2 needs no adapted patch.
	change fixes/a.patch a.c 2 'a two'
	carry 0 v0.1
	series_is fixes/a.patch core/b.patch
	absent "$PATCHES/fixes/v0.2/a.patch"
}

test_new_patch_and_removed_patch()
{
	write_two_series
	echo '# not needed: core/x.patch: since v0.2: it has it' >> "$SERIES2"
	commit_series
	change core/c.patch c.c 2 'c two'
	sed -i '/fixes/d' "$SERIES"
	rm "$PATCHES/fixes/a.patch"
	carry 0 v0.1
	printed "v0.2: fixes/a.patch (removed)"
	printed "v0.2: core/c.patch (new)"
	series_is core/b.patch core/c.patch '# not needed: core/x.patch: since v0.2: it has it'
}

# v0.2 keeps its own order of parts and the patches that v0.1 doesn't have.
test_new_patches_have_their_place_in_the_series()
{
	write_two_series
	change fixes/own.patch evsel.c 8 'evsel eight'
	sed -i '/own/d' "$SERIES"
	write_parts "$SERIES2" core/b.patch '# b is the first' fixes/a.patch fixes/own.patch
	commit_series
	change fixes/d.patch c.c 2 'c two'
	change middle/m.patch evsel.c 2 'evsel two'
	change core/first.patch c.c 8 'c eight'
	write_parts "$SERIES" fixes/a.patch fixes/d.patch middle/m.patch core/first.patch core/b.patch
	carry 0 v0.1
	series_is core/first.patch core/b.patch '# b is the first' fixes/a.patch fixes/d.patch fixes/own.patch middle/m.patch
	expect 0 check-series --fast v0.2
}

test_patches_that_change_places()
{
	write_two_series
	change core/c.patch c.c 2 'c two'
	cp "$SERIES" "$SERIES2"
	commit_series
	write_parts "$SERIES" fixes/a.patch core/c.patch core/b.patch
	carry 0 v0.1
	series_is fixes/a.patch core/c.patch core/b.patch
}

# The path core/m.patch, which v0.2 has used, becomes the path of v0.1's patch.
test_pinned_tag_gets_a_patch_that_only_the_other_tag_had()
{
	write_two_series
	change core/m.patch c.c 2 'c two'
	sed -i '/m.patch/d' "$SERIES"
	echo core/m.patch >> "$SERIES2"
	cp "$PATCHES/core/m.patch" "$TMP/t/own"
	commit_series
	change core/m.patch c.c 4 'c four'
	cp "$PATCHES/core/m.patch" "$TMP/t/shared"
	carry 0 v0.1
	printed "v0.2: core/v0.2/m.patch (written)"
	series_is fixes/a.patch core/b.patch core/v0.2/m.patch
	same "the patch of v0.2" "$TMP/t/own" "$PATCHES/core/v0.2/m.patch"
	same "the patch of v0.1" "$TMP/t/shared" "$PATCHES/core/m.patch"
	commit_series
	# v0.1 loses the patch again.
	sed -i 's/^core.m.patch/# not needed: &: since v0.1: it is there/' "$SERIES"
	rm "$PATCHES/core/m.patch"
	carry 0 v0.1
	printed "v0.2: core/m.patch (written)"
	same "the patch of v0.2" "$TMP/t/own" "$PATCHES/core/m.patch"
	absent "$PATCHES/core/v0.2"
	series_is fixes/a.patch core/b.patch core/m.patch
}

test_carry_continues_after_a_conflict()
{
	write_two_series
	change fixes/a.patch a.c 8 'a acht'
	cp -a "$PATCHES" "$TMP/t/before"
	carry 1 v0.1
	printed "v0.2: fixes/a.patch does not fit:
  tools/perf/a.c"
	diff -r "$TMP/t/before" "$PATCHES" || fail "carry.py has changed patches"
	carry 1 --continue
	sed -i -e '/^[<|=>]\{7\}/d' -e '/^a [28e]/d' "$OUT/repo/tools/perf/a.c"
	(cd "$OUT/repo" && git add -A && GIT_EDITOR=true git -c user.name=x -c user.email=x@y rebase --continue) || fail "git rebase"
	carry 0 --continue
	series_is fixes/v0.2/a.patch core/b.patch
	carry 2 --continue
	printed "nothing to continue"
}

test_carry_refuses()
{
	write_two_series
	carry 2 v0.3
	printed "use one of: v0.1 v0.2"
	carry 2
	carry 2 --frobnicate v0.1
	carry 2 --since nothing v0.1
	change fixes/a.patch a.c 2 'a zwei'
	echo '# mine' >> "$SERIES2"
	carry 2 v0.1
	printed "/patches/v0.2/series was changed, too"
	holds "$SERIES2" '# mine'
	sed -i '$d' "$SERIES2"
	sed -i 's/^ a 1/ a one/' "$PATCHES/fixes/a.patch"
	carry 2 v0.1
	printed "fixes/a.patch does not apply to v0.1"
}

run_tests
