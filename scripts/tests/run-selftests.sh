#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of run-selftests.sh; see guests.sh for --vm.

. "$(dirname "$0")/lib.sh"

# compare_skips WANT [OPTION...]: skips.awk must print WANT for $TMP/t/list and $TMP/t/results
compare_skips()
{
	printf '%b' "$1" > "$TMP/t/want"
	awk "${@:2}" -f "$SCRIPTS_DIR/lib/skips.awk" "$TMP/t/list" "$TMP/t/results" > "$TMP/t/got" ||
		fail "skips.awk: status $?"
	diff -u "$TMP/t/want" "$TMP/t/got" || fail "skips.awk prints something else"
}

test_skips_are_compared_with_a_list()
{
	local bad list

	printf '# a comment\n\na: .*\tno PMU: .*\nb: two\tno disk\nc: x\tnever\n' > "$TMP/t/list"
	printf 'ok\ta: one\t\nskip\ta: two\tno PMU: none\nskip\tb: two\tno disk\n' > "$TMP/t/results"
	compare_skips "$(< "$TMP/t/results")\nmissed\tc: x\tnever\n"
	compare_skips "$(< "$TMP/t/results")\n" -v filter=b:
	# Another reason, a part of a name, a part of a reason, another test
	printf 'skip\ta: two\tno disk\nskip\tb: twofold\tno disk\nskip\tb: two\tno disk left\nskip\td\tno disk\n' \
		> "$TMP/t/results"
	compare_skips "$(sed s/^skip/unexpected/ "$TMP/t/results")\nmissed\ta: .*\tno PMU: .*\nmissed\tb: two\tno disk\n" \
		-v filter=.
	: > "$TMP/t/list"
	compare_skips "$(sed s/^skip/unexpected/ "$TMP/t/results")\n"
	for bad in 'a: no tab' 'a\t(' 'a\tb\tc' '\tb'; do
		printf '%b\n' "$bad" > "$TMP/t/list"
		refuses run-selftests --expected-skips "$TMP/t/list" v6.16
		printed "--expected-skips $TMP/t/list: not a list of tests and reasons"
	done
	for list in "$SCRIPTS_DIR"/../.ci/skips-*; do
		awk -f "$SCRIPTS_DIR/lib/skips.awk" "$list" || fail "$list: not such a list"
	done
}

# list STATUS LACKS OPTION...: run --list with this content of selftests/lacks
list()
{
	printf '%s\n' "$2" > "$TMP/t/lacks"
	PBM_LACKS_FILE=$TMP/t/lacks expect_status "$1" "$SCRIPTS_DIR/run-selftests.sh" --list "${@:3}" v6.16
}

test_tests_that_a_tag_lacks()
{
	list 0 $'v7.3.4,v6.16\tharness: literals and bpftool agree\tit is so'
	list 2 $'v7.3.4,v6.16\tharness: literals or bpftool agree\tit is so'
	printed "lists 'harness: literals or bpftool agree' for v6.16, but no test has this name"
	list 0 $'v6.16\tharness: (literals|values) and bpftool agree\tit is so' --lacking
	[[ $PRINTED = "harness: literals and bpftool agree" ]] || fail "--lacking lists: $PRINTED"
	list 2 '# none' --lacking --filter=x
	printed "--lacking excludes --filter and --vm"
	list 0 '# none' --lacking
	printed "no test for v6.16"
}

test_lacking_tests_have_to_fail()
{
	printf 'ok\ta: b\t\nnot ok\ta: c\twhy\nskip\ta: d\tno d\nnot ok\ta\tended early\nok\te: f\t\n' > "$TMP/t/results"
	# shellcheck disable=SC2016 # for the inner shell
	bash -c '. "$0/lib/report.sh"; report__expect_failures "^(a: [bcd])$" "it passes"' "$SCRIPTS_DIR" \
		< "$TMP/t/results" > "$TMP/t/got"
	printf 'not ok\ta: b\tit passes\nok\ta: c\t\nskip\ta: d\tno d\nnot ok\ta\tended early\nok\te: f\t\n' > "$TMP/t/want"
	same "results" "$TMP/t/want" "$TMP/t/got"
}

# Run a program of tests that ends with status 3, and report its results.
call_report()
{
	# shellcheck disable=SC2016 # for the inner shell
	bash -c '
		set -euo pipefail
		for lib in common report; do
			. "$0/lib/$lib.sh"
		done
		# On standard error, bash may say that the job has ended.
		exec 2> "$1/stderr"
		RUN_DIR=$1
		program()
		{
			printf "# %s\n" "noise" "ok 1 a" "# why" "not ok 2 b"
			printf "# %s\n" "# after it" >> /dev/stdout
			printf "# %s\n" "ok 3 c # SKIP no d"
			return 3
		}
		report__run "$RUN_DIR/log" program || echo "status $?"
		printf "ok\ta\t\nnot ok\tb\t\nskip\tc\tno d\n" | report__add "$RUN_DIR/results" "$RUN_DIR/log"
		grep -c . "$RUN_DIR/log"
		report__print_totals "$RUN_DIR/results"' "$SCRIPTS_DIR" "$TMP/t"
}

test_report_says_what_a_failed_test_printed()
{
	expect_status 1 call_report
	printf '%s\n' "$PRINTED" > "$TMP/t/got"
	cat > "$TMP/t/want" <<-END
		status 3
		ok      a
		FAILED  b
		  | why
		  log: $TMP/t/log
		skip    c (no d)
		6
		1 passed, 1 failed, 1 skipped
	END
	same "report" "$TMP/t/want" "$TMP/t/got"
}

# A run that shows nothing must not succeed.
test_a_run_in_which_all_tests_are_skipped_fails()
{
	printf 'skip\ta: b\tno b\nskip\ta: c\tno c\n' > "$TMP/t/results"
	# shellcheck disable=SC2016 # for the inner shell
	expect_status 1 bash -c '. "$0/lib/common.sh"; . "$0/lib/report.sh"; report__print_totals "$1"' "$SCRIPTS_DIR" "$TMP/t/results"
	printed '0 passed, 0 failed, 2 skipped'
}

# Tests that are left out count neither as passed nor as skipped.
test_tests_that_need_all_are_left_out()
{
	printf '%s\t%s\t%s\n' ok 'a: b' '' skip 'c: d' 'only with --all' skip 'e: f' 'no g' \
		skip 'j: k' 'does not apply to v0.1: no l' > "$TMP/t/all"
	# shellcheck disable=SC2016 # for the inner shell
	bash -c 'ALL_ONLY="only with --all"
		eval "$(sed -n "/^leave_out()/,/^}/p" "$0/run-selftests.sh")"
		leave_out' "$SCRIPTS_DIR" < "$TMP/t/all" | cut -f 1,2 > "$TMP/t/got"
	printf '%s\t%s\n' ok 'a: b' all 'c: d' skip 'e: f' lacks 'j: k' > "$TMP/t/want"
	same "results" "$TMP/t/want" "$TMP/t/got"
}

# Make a checkout whose apply-and-build.sh builds perfs that do nothing, and whose tests do not
# build.
make_checkout()
{
	local checkout=$TMP/t/checkout

	mkdir "$checkout" "$TMP/t/bin"
	cp -r "$SCRIPTS_DIR" "$SCRIPTS_DIR/../selftests" "$checkout"
	# Listing all tests is slow, so keep one file.
	find "$checkout/selftests/tests" -name '*.sh' ! -name harness.sh -delete
	: > "$checkout/selftests/lacks"
	cat > "$checkout/scripts/apply-and-build.sh" <<-END
	#!/bin/bash
	echo "\$*" >> "$TMP/t/builds"
	dir=$checkout/out/\${!#}
	[[ "\$*" != *--no-patches* ]] || dir+=-unpatched
	mkdir -p "\$dir"
	cp /bin/true "\$dir/perf"
	END
	printf '%s\n' '#!/bin/sh' 'exit 1' > "$TMP/t/bin/make"
	printf '%s\n' '#!/bin/sh' 'printf "installed %s\n" "$@"' > "$TMP/t/bin/dpkg-query"
	chmod +x "$TMP"/t/bin/*
}

# builds WANT [OPTION...]: fail unless run-selftests.sh builds these perfs
builds()
{
	: > "$TMP/t/builds"
	expect_status 2 env PATH="$TMP/t/bin:$PATH" PBM_BPFTOOL=true \
		"$TMP/t/checkout/scripts/run-selftests.sh" "${@:2}" v6.16
	printed "the tests do not build"
	printf '%b' "$1" > "$TMP/t/want"
	sed 's/--arch .* v/v/' "$TMP/t/builds" > "$TMP/t/got"
	same "builds" "$TMP/t/want" "$TMP/t/got"
}

test_perfs_that_are_built()
{
	((EUID == 0)) || skip "only root can run run-selftests.sh"
	make_checkout
	unset PBM_UNPATCHED_PERF PBM_PEER_PERF PBM_OLD_PERF
	builds 'v6.16\n' --vm
	builds 'v6.16\n' --perf /bin/true
	PBM_UNPATCHED_PERF='' builds 'v6.16\n'
	rm -r "$TMP/t/checkout/out"
	builds 'v6.16\n--no-patches v6.16\n'
	builds 'v6.16\n--no-patches v6.18.15\n--no-patches v6.12.107\n' --all
	builds 'v6.16\n' --all
}

run_tests
