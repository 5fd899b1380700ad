#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of scripts/queue.

. "$(dirname "$0")/fixtures.sh"

# queue STATUS COMMAND [TAG]
queue()
{
	expect "$1" queue "$2" "${3:-v0.1}"
}

# Run git as a user whose settings change the form of patches.
run_git()
{
	printf '[user]\n\tname = A Name\n\temail = a@name\n[diff]\n\tnoprefix = true\n' > "$TMP/t/gitconfig"
	GIT_CONFIG_GLOBAL=$TMP/t/gitconfig git -C "$OUT/linux" "$@" || fail "git $*"
}

# series_is LINE...: fail unless v0.1 has this series
series_is()
{
	printf '%s\n' "$@" > "$TMP/t/wanted"
	same "the series" "$TMP/t/wanted" "$SERIES"
}

test_series_becomes_commits_and_the_same_series()
{
	sed -i '2i # a comment\n# not needed: fixes/x.patch: since v0.1: it has it' "$SERIES"
	touch "$PATCHES/core/mine.patch"
	cp -a "$PATCHES" "$TMP/t/before"
	queue 0 import
	[[ $(run_git log --format=%s base/v0.1..v0.1) = $'perf test: Change core/b\nperf test: Change fixes/a' ]] ||
		fail "other commits"
	[[ $(run_git log -1 --format='%an %b' v0.1~1) = "A Man It is two,"*"Patch: fixes/a.patch" ]] || fail "another message"
	run_git rev-parse v0.1 > "$TMP/t/commit"
	queue 0 export
	diff -r "$TMP/t/before" "$PATCHES" || fail "export changes the series"
	run_git commit -q --allow-empty -m mine
	for _ in 2 3; do
		queue 0 import
		[[ $(run_git rev-parse v0.1 old/v0.1~1 | uniq) = "$(cat "$TMP/t/commit")" ]] || fail "other commits"
	done
	queue 2 merge
	printed "not import or export"
}

test_commits_become_patches()
{
	sed -i 's/^# part core.*/&\n# of core/' "$SERIES"
	queue 0 import
	queue 2 export v0.2
	printed "v0.2/series is not there"
	sed -i 's/a two/a zwei/' "$OUT/linux/tools/perf/a.c"
	queue 2 export
	printed "a file that is not committed"
	run_git commit -q -a -m 'perf test: Change A: again'
	run_git mv tools/perf/c.c tools/perf/d.c
	echo '#!/bin/sh' > "$OUT/linux/tools/perf/s.sh"
	chmod +x "$OUT/linux/tools/perf/s.sh"
	run_git add tools/perf/s.sh
	run_git commit -q -m $'perf test: Move\n\nIt is\nmoved.\n\nPatch: add/move.patch'
	queue 0 export
	series_is '# part fixes: what it is for' fixes/a.patch '# part core: what it is for' '# of core' core/b.patch \
		core/perf-test-change-a-again.patch '# part add:' add/move.patch
	holds "$PATCHES/core/perf-test-change-a-again.patch" "^From: A Name <a@name>"
	holds "$PATCHES/core/perf-test-change-a-again.patch" "^+a zwei"
	holds "$PATCHES/add/move.patch" "^--- a/tools/perf/c.c"
	holds "$PATCHES/add/move.patch" "^new file mode 100755"
	[[ $(sed '/^---$/,$d' "$PATCHES/add/move.patch" | tail -n 1) = moved. ]] || fail "the changelog does not end with its text"
	run_git commit -q --allow-empty -m $'perf test: Again\n\nPatch: add/move.patch'
	queue 2 export
	printed "add/move.patch is not PART/NAME.patch, or is there twice, or away from its part"
	run_git commit -q --amend --allow-empty -m $'perf test: Again\n\nIt is\n---\ncut.\n\nPatch: add/x.patch'
	queue 2 export
	printed "git am cuts the text"
	run_git merge -q -s ours -m merge base/v0.1~0 "$(run_git commit-tree -m x -p base/v0.1 'base/v0.1^{tree}')"
	queue 2 export
	printed "the branch has a merge"
}

test_comments_stay_when_their_patch_goes()
{
	sed -i 's,^core/b.patch,&\n# not needed: core/x.patch: since v0.1: it has it,' "$SERIES"
	queue 0 import
	run_git reset -q --hard HEAD~
	queue 0 export
	series_is '# part fixes: what it is for' fixes/a.patch '# not needed: core/x.patch: since v0.1: it has it'
}

test_patches_that_changed_after_the_import_are_kept()
{
	queue 2 export
	printed "is not what was imported"
	queue 0 import
	echo 'more' >> "$PATCHES/core/b.patch"
	queue 2 export
	printed "is not what was imported"
	holds "$PATCHES/core/b.patch" "^more"
}

test_patch_that_does_not_apply_is_corrected_by_hand()
{
	sed -i 's/^ b 1/ b one/' "$PATCHES/core/b.patch"
	queue 1 import
	printed "correct the patch in $OUT/linux"
	queue 2 import
	printed "a rebase that has not ended"
	sed -i 's/^b 2/b two/' "$OUT/linux/tools/perf/b.c"
	run_git add -A
	run_git am --continue
	queue 0 export
	holds "$PATCHES/core/b.patch" "^ b 1"
	holds "$PATCHES/core/b.patch" "^+b two"
}

run_tests
