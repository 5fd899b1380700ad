#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of try-mistakes.sh, with a tree of one file and tests that look at it.

. "$(dirname "$0")/lib.sh"

# A checkout whose run-selftests.sh fails if the perf doesn't say "right"
make_checkout()
{
	local perf=$TMP/t/repo/out/v6.16/linux/tools/perf

	mkdir -p "$perf" "$TMP/t/from"
	cp -r "$SCRIPTS_DIR" "$TMP/t/repo/scripts"
	printf 'one\nright\nthree\n' > "$perf/a.c"
	cat > "$perf/Makefile" <<-'END'
	.RECIPEPREFIX := >
	$(O)/perf: a.c
	> mkdir -p $(O)
	> ! grep ERROR $<
	> cp $< $@
	END
	cat > "$TMP/t/repo/scripts/run-selftests.sh" <<-'END'
	#!/bin/bash
	while [[ $1 != --perf ]]; do shift; done
	echo "FAILED  a: fails always (for a reason)"
	grep -q right "$2" || { echo "FAILED  b: is right"; exec sleep 60; }
	echo "1 passed, 1 failed, 0 skipped"
	exit 1
	END
}

# write_mistake NAME OLD NEW
write_mistake()
{
	local file=$TMP/t/repo/out/v6.16/linux/tools/perf/a.c

	sed "s/$2/$3/" "$file" | diff -u --label a/tools/perf/a.c --label b/tools/perf/a.c "$file" - > "$TMP/t/from/$1.diff" || :
}

# tries STATUS [OPTION...]
tries()
{
	expect_status "$1" "$TMP/t/repo/scripts/try-mistakes.sh" --from "$TMP/t/from" "${@:2}" v6.16
}

test_mistakes_are_counted()
{
	((EUID == 0)) || skip "only root runs the tests"
	make_checkout
	write_mistake 1-wrong right wrong
	write_mistake 2-comment one 1
	write_mistake 3-broken three ERROR
	sed 's/right/another/' "$TMP/t/from/1-wrong.diff" > "$TMP/t/from/4-other-tree.diff"
	tries 1
	printed "fails without a mistake: a: fails always"
	printed "1/4 1-wrong: caught b: is right"
	printed "2/4 2-comment: survived"
	printed "3/4 3-broken: skipped does not compile"
	printed "4/4 4-other-tree: skipped does not apply"
	printed "SURVIVED 2-comment: no reason is given"
	printed "1 caught, 1 survived, 0 equivalent, 2 skipped"
	# The second run only counts again.
	echo "equivalent: a comment" > "$TMP/t/from/2-comment.reason"
	tries 0
	printed "EQUIVALENT 2-comment: equivalent: a comment"
	printed "1 caught, 0 survived, 1 equivalent, 2 skipped"
	[[ $PRINTED != *4/4* ]] || fail "a mistake was tried again"
	echo "not tested" > "$TMP/t/from/2-comment.reason"
	tries 1
	printed "1 caught, 1 survived, 0 equivalent, 2 skipped"
}

test_mistakes_that_make_no_sense()
{
	refuses try-mistakes v6.16
	printed "--from is missing"
	refuses try-mistakes --from "$TMP/t" v6.16
	printed "$TMP/t has no mistakes"
	refuses try-mistakes --from "$TMP/t" v9.9
	printed "unknown tag 'v9.9'"
	refuses try-mistakes --from "$TMP/t" --jobs 0 v6.16
	make_checkout
	write_mistake 1-wrong right wrong
	rm -r "$TMP/t/repo/out"
	expect_status 2 "$TMP/t/repo/scripts/try-mistakes.sh" --from "$TMP/t/from" v6.16
	printed "there is no patched tree"
}

run_tests
