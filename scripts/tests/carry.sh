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

# Both tags have the same series, and that is committed.
write_two_series()
{
	write_good_series
	make_second_tag
	mkdir -p "$TMP/t/patches/v0.2"
	cp "$PATCHES/series" "$TMP/t/patches/v0.2/series"
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
			PBM_PATCHES="$TMP/t/patches" "$SCRIPTS_DIR/carry.py" --out "$OUT" "$@"
}

carry()
{
	expect_status "$1" call_carry "${@:2}"
}

# compare STATES...: what show-series.sh says of v0.2
compare()
{
	PBM_PINS=$PINS PBM_PATCHES=$TMP/t/patches "$SCRIPTS_DIR/show-series.sh" > "$TMP/t/shown"
	awk '/^0/ { print $3 }' "$TMP/t/shown" > "$TMP/t/states"
	printf '%s\n' "$@" > "$TMP/t/wanted"
	same "states of v0.2" "$TMP/t/wanted" "$TMP/t/states"
}

# change PATCH FILE LINE TEXT: a good patch that makes that text of the line
change()
{
	write_patch "$1" "$2" "$3" "$4"
	sed -i "1s/.*/Subject: perf test: Change it\n\nIt is this,\nand was not.\n---/" "$PATCHES/$1"
	sed -i "/^---$/r /dev/stdin" "$PATCHES/$1" <<< "$(diffstat -p1 "$PATCHES/$1")"
}

test_nothing_to_carry()
{
	write_two_series
	cp -a "$TMP/t/patches" "$TMP/t/before"
	carry 0 v0.1
	diff -r "$TMP/t/before" "$TMP/t/patches" || fail "the patches have changed"
	compare same same
}

test_shared_patch_stays_shared()
{
	write_two_series
	change 0001-a.patch a.c 2 'a zwei'
	carry 0 v0.1
	compare same same
	[[ ! -e $TMP/t/patches/v0.2/0001-a.patch ]] || fail "it is stored twice"
}

test_patch_that_the_other_tag_needs_another_of()
{
	write_two_series
	change 0001-a.patch a.c 6 'a six'
	carry 0 v0.1
	printed "v0.2: v0.2/0001-a.patch (written)"
	compare adapted same
	holds "$TMP/t/patches/v0.2/0001-a.patch" "^+a six"
	holds "$TMP/t/patches/v0.2/0001-a.patch" "^ a eight"
	holds "$TMP/t/patches/v0.2/0001-a.patch" "^Subject: perf test: Change it"
	[[ $(grep -c -x -e --- "$TMP/t/patches/v0.2/0001-a.patch") = 1 ]] || fail "the header does not end with a '---'"
	commit_series
	# The line that both have: no other patch is needed any more.
	change 0001-a.patch a.c 2 'a two'
	carry 0 v0.1
	compare same same
	absent "$TMP/t/patches/v0.2/0001-a.patch"
}

test_new_patch_and_one_that_is_gone()
{
	write_two_series
	echo '# not needed: v0.1/0009-x.patch: since v0.2: it has it' >> "$TMP/t/patches/v0.2/series"
	commit_series
	change 0003-c.patch c.c 2 'c two'
	sed -i /0001/d "$PATCHES/series"
	rm "$PATCHES/0001-a.patch"
	carry 0 v0.1
	compare same same
	holds "$TMP/t/patches/v0.2/series" '# not needed'
	[[ $(grep -v '^#' "$TMP/t/patches/v0.2/series" | paste -s -d ' ') = "v0.1/0002-b.patch v0.1/0003-c.patch" ]] ||
		fail "the series is $(cat "$TMP/t/patches/v0.2/series")"
}

# It stays the last one.
test_patch_that_is_mailed_only()
{
	write_two_series
	change 0003-m.patch c.c 2 'c two'
	sed -i /0003/d "$PATCHES/series"
	mv "$PATCHES/0003-m.patch" "$TMP/t/patches/v0.2"
	echo '# mailed only: v0.2/0003-m.patch' >> "$TMP/t/patches/v0.2/series"
	commit_series
	change 0004-c.patch c.c 4 'c four'
	carry 0 v0.1
	[[ $(tail -n 2 "$TMP/t/patches/v0.2/series" | paste -s -d ' ') = "v0.1/0004-c.patch # mailed only: v0.2/0003-m.patch" ]] ||
		fail "the series is $(cat "$TMP/t/patches/v0.2/series")"
	holds "$TMP/t/patches/v0.2/0003-m.patch" '^ c four'
	holds "$TMP/t/patches/v0.2/0003-m.patch" '^+c two'
}

test_change_of_the_other_tag_comes_back()
{
	write_two_series
	change 0002-b.patch b.c 2 'b zwei'
	carry 0 v0.2
	compare same same
	holds "$PATCHES/0002-b.patch" "^+b zwei"
}

test_conflict_is_said_and_continued()
{
	write_two_series
	change 0001-a.patch a.c 8 'a acht'
	cp -a "$TMP/t/patches" "$TMP/t/before"
	carry 1 v0.1
	printed "v0.2: v0.1/0001-a.patch does not fit:
  tools/perf/a.c"
	diff -r "$TMP/t/before" "$TMP/t/patches" || fail "patches have changed before the end"
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
	change 0001-a.patch a.c 2 'a zwei'
	echo '# mine' >> "$TMP/t/patches/v0.2/series"
	carry 2 v0.1
	printed "/patches/v0.2/series was changed, too"
	holds "$TMP/t/patches/v0.2/series" '# mine'
}

test_tag_without_a_series_gets_all()
{
	write_good_series
	make_second_tag
	commit_series
	carry 0 --to v0.2 v0.1
	compare same same
}

test_carry_refuses()
{
	write_two_series
	carry 2 v0.3
	printed "use one of: v0.1 v0.2"
	carry 2
	carry 2 --frobnicate v0.1
	carry 2 --since nothing v0.1
	sed -i 's/^ a 1/ a one/' "$PATCHES/0001-a.patch"
	carry 2 v0.1
	printed "v0.1/0001-a.patch does not apply to v0.1"
}

test_patch_that_is_not_needed()
{
	write_two_series
	sed -i 's,^v0.1/0001.*,# not needed: &: since v0.2: it is there,' "$TMP/t/patches/v0.2/series"
	compare - same
	PBM_PINS=$PINS PBM_PATCHES=$TMP/t/patches expect_status 0 "$SCRIPTS_DIR/show-series.sh" v0.2
	printed "not needed: since v0.2: it is there"
	sed -i 's/not needed: \(.*\): since.*/mailed only: \1/' "$TMP/t/patches/v0.2/series"
	compare mailed same
	sed -i /0001/d "$TMP/t/patches/v0.2/series"
	compare '?' same
	expect 1 check-series --fast v0.2
	printed "FAILED  v0.1/0001-a.patch: neither in the series nor said to be not needed"
}

run_tests
