#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of carry.py and show-series.sh, with a tag v0.2 beside v0.1. There line 8 of a.c
# is another one.

. "$(dirname "$0")/fixtures.sh"

make_second_tag()
{
	local dir=$TMP/t/linux-0.2 sum

	cp -a "$TMP/fixture/linux-0.1" "$dir"
	sed -i 's/^PATCHLEVEL.*/PATCHLEVEL = 2/' "$dir/Makefile"
	sed -i '8s/.*/a eight/' "$dir/tools/perf/a.c"
	tar -C "$TMP/t" -cJf "$CACHE/linux-0.2.tar.xz" linux-0.2
	sum=$(print_sum "$CACHE/linux-0.2.tar.xz")
	sed "s/^\(source.mirror.linux-0.2.tar.xz.\)0/\1$sum/" "$TMP/pins" > "$TMP/t/pins"
	PINS=$TMP/t/pins
}

# series_is LINE...: that of v0.2, without the lines of the parts
series_is()
{
	diff <(printf '%s\n' "$@") <(grep -v '^# part' "$SERIES2") || fail "the series of v0.2"
}

# Both tags have the same series, and that is committed.
write_two_series()
{
	SERIES2=$PATCHES/v0.2/series
	write_good_series
	make_second_tag
	mkdir -p "$PATCHES/v0.2"
	cp "$SERIES" "$SERIES2"
	commit_series
}

commit_series()
{
	local git=(git -C "$TMP/t" -c user.name=x -c user.email=x@y)

	"${git[@]}" init -q
	"${git[@]}" add patches
	"${git[@]}" commit -q -m x
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

# compare STATES...: what show-series.sh says of v0.2
compare()
{
	PBM_PINS=$PINS PBM_PATCHES=$PATCHES "$SCRIPTS_DIR/show-series.sh" > "$TMP/t/shown"
	awk '/^  / { print $3 }' "$TMP/t/shown" > "$TMP/t/states"
	printf '%s\n' "$@" > "$TMP/t/wanted"
	same "states of v0.2" "$TMP/t/wanted" "$TMP/t/states"
}

test_nothing_to_carry()
{
	write_two_series
	cp -a "$PATCHES" "$TMP/t/before"
	carry 0 v0.1
	diff -r "$TMP/t/before" "$PATCHES" || fail "the patches have changed"
	compare same same
}

test_shared_patch_stays_shared()
{
	write_two_series
	change fixes/a.patch a.c 2 'a zwei'
	carry 0 v0.1
	compare same same
	[[ ! -e $PATCHES/fixes/v0.2/a.patch ]] || fail "it is stored twice"
}

test_patch_that_the_other_tag_needs_another_of()
{
	write_two_series
	change fixes/a.patch a.c 6 'a six'
	carry 0 v0.1
	printed "v0.2: fixes/v0.2/a.patch (written)"
	compare adapted same
	holds "$PATCHES/fixes/v0.2/a.patch" "^+a six"
	holds "$PATCHES/fixes/v0.2/a.patch" "^ a eight"
	holds "$PATCHES/fixes/v0.2/a.patch" "^Subject: perf test: Change it"
	[[ $(grep -c -x -e --- "$PATCHES/fixes/v0.2/a.patch") = 1 ]] || fail "the header does not end with a '---'"
	commit_series
	# The line that both have: no other patch is needed any more.
	change fixes/a.patch a.c 2 'a two'
	carry 0 v0.1
	compare same same
	absent "$PATCHES/fixes/v0.2/a.patch"
}

test_new_patch_and_one_that_is_gone()
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
	compare same same
	series_is core/b.patch core/c.patch '# not needed: core/x.patch: since v0.2: it has it'
	! grep fixes "$SERIES2" || fail "the part has no patch any more"
}

# Its own order of parts, and patches that v0.1 doesn't have, stay.
test_new_patches_have_their_place_in_the_series()
{
	write_two_series
	change fixes/own.patch evsel.c 8 'evsel eight'
	sed -i '/own/d' "$SERIES"
	printf '%s\n' '# mine' '# part core: what it is for' core/b.patch '# b is the first' \
		'# part fixes: what it is for' fixes/a.patch fixes/own.patch > "$SERIES2"
	commit_series
	change fixes/d.patch c.c 2 'c two'
	change middle/m.patch evsel.c 2 'evsel two'
	change core/first.patch c.c 8 'c eight'
	printf '%s\n' '# part fixes: what it is for' fixes/a.patch fixes/d.patch '# part middle: of the tests' \
		middle/m.patch '# part core: what it is for' core/first.patch core/b.patch > "$SERIES"
	carry 0 v0.1
	printf '%s\n' '# mine' '# part core: what it is for' core/first.patch core/b.patch '# b is the first' \
		'# part fixes: what it is for' fixes/a.patch fixes/d.patch fixes/own.patch \
		'# part middle: of the tests' middle/m.patch | diff - "$SERIES2" || fail "the series of v0.2"
	expect 0 check-series --fast v0.2
}

test_patches_that_change_places()
{
	write_two_series
	change core/c.patch c.c 2 'c two'
	cp "$SERIES" "$SERIES2"
	commit_series
	printf '%s\n' '# part fixes: what it is for' fixes/a.patch '# part core: what it is for' core/c.patch core/b.patch > "$SERIES"
	carry 0 v0.1
	series_is fixes/a.patch core/c.patch core/b.patch
	compare same same same
	git -C "$PATCHES" add -A && commit_series
	mkdir "$PATCHES/other"
	mv "$PATCHES/core/c.patch" "$PATCHES/other"
	printf '%s\n' '# part other: new' other/c.patch '# part fixes: what it is for' fixes/a.patch '# part core: what it is for' core/b.patch > "$SERIES"
	carry 0 v0.1
	diff "$SERIES" "$SERIES2" || fail "c.patch is in another part"
	absent "$PATCHES/core/c.patch"
}

# The file without a tag in its path becomes that of v0.1.
test_pinned_tag_gets_a_patch_that_the_other_has()
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
	compare same same adapted
	diff "$TMP/t/own" "$PATCHES/core/v0.2/m.patch" || fail "the patch of v0.2"
	diff "$TMP/t/shared" "$PATCHES/core/m.patch" || fail "the patch of v0.1"
	git -C "$PATCHES" add -A && commit_series
	# And back
	sed -i 's/^core.m.patch/# not needed: &: since v0.1: it is there/' "$SERIES"
	rm "$PATCHES/core/m.patch"
	carry 0 v0.1
	printed "v0.2: core/m.patch (written)"
	diff "$TMP/t/own" "$PATCHES/core/m.patch" || fail "the patch of v0.2"
	absent "$PATCHES/core/v0.2"
	compare same same added
}

test_changelog_of_an_adapted_patch()
{
	write_two_series
	change fixes/a.patch a.c 6 'a six'
	carry 0 v0.1
	git -C "$PATCHES" add -A && commit_series
	sed -i 's/^and was not/and never was/' "$PATCHES/fixes/a.patch"
	carry 0 v0.1
	compare adapted same
	holds "$PATCHES/fixes/v0.2/a.patch" "^and never was"
}

test_change_of_the_other_tag_comes_back()
{
	write_two_series
	change core/b.patch b.c 2 'b zwei'
	carry 0 v0.2
	compare same same
	holds "$PATCHES/core/b.patch" "^+b zwei"
}

test_conflict_is_said_and_continued()
{
	write_two_series
	change fixes/a.patch a.c 8 'a acht'
	cp -a "$PATCHES" "$TMP/t/before"
	carry 1 v0.1
	printed "v0.2: fixes/a.patch does not fit:
  tools/perf/a.c"
	diff -r "$TMP/t/before" "$PATCHES" || fail "patches have changed before the end"
	carry 1 --continue
	sed -i -e '/^[<|=>]\{7\}/d' -e '/^a [28e]/d' "$OUT/repo/tools/perf/a.c"
	(cd "$OUT/repo" && git add -A && GIT_EDITOR=true git -c user.name=x -c user.email=x@y rebase --continue) || fail rebase
	carry 0 --continue
	compare adapted same
	carry 2 --continue
	printed "nothing to continue"
}

test_change_of_both_tags_is_refused()
{
	write_two_series
	change fixes/a.patch a.c 2 'a zwei'
	echo '# mine' >> "$SERIES2"
	carry 2 v0.1
	printed "/patches/v0.2/series was changed, too"
	holds "$SERIES2" '# mine'
}

test_tag_without_a_series_gets_all()
{
	write_good_series
	make_second_tag
	commit_series
	carry 0 --to v0.2 v0.1
	compare same same
}

# Each part is a group, with the line of it as the head.
test_series_is_shown_part_by_part()
{
	write_two_series
	change new/c.patch c.c 2 'c two'
	sed -i '/^# part core/,$d' "$SERIES2"
	printf '%s\n' '# part new: what it is for' new/c.patch '# part core: what it is for' core/b.patch >> "$SERIES2"
	sed -i '/new/d' "$SERIES"
	PBM_PINS=$PINS PBM_PATCHES=$PATCHES expect_status 0 "$SCRIPTS_DIR/show-series.sh"
	diff - <(sed 's/  *$//; s/   */  /g' <<< "$PRINTED" | sed '/^= /d') <<-'END' || fail "it is shown otherwise"
	patch  v0.1  v0.2

	fixes: what it is for
	  a  same  same

	new: what it is for
	  c  .  added

	core: what it is for
	  b  same  same

	END
}

test_carry_refuses()
{
	write_two_series
	carry 2 v0.3
	printed "use one of: v0.1 v0.2"
	carry 2
	carry 2 --frobnicate v0.1
	carry 2 --since nothing v0.1
	sed -i 's/^ a 1/ a one/' "$PATCHES/fixes/a.patch"
	carry 2 v0.1
	printed "fixes/a.patch does not apply to v0.1"
}

test_patch_that_is_not_needed()
{
	write_two_series
	sed -i 's,^fixes/.*,# not needed: &: since v0.2: it is there,' "$SERIES2"
	compare - same
	PBM_PINS=$PINS PBM_PATCHES=$PATCHES expect_status 0 "$SCRIPTS_DIR/show-series.sh" v0.2
	printed "fixes/a.patch
    not needed: since v0.2: it is there"
	sed -i '/not needed/d' "$SERIES2"
	compare '?' same
	expect 1 check-series --fast v0.2
	printed "FAILED  fixes/a.patch: neither in the series nor said to be not needed"
}

run_tests
