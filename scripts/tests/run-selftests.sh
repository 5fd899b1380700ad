#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of run-selftests.sh and of lib/run_tests.py; see guests.sh for --vm.

. "$(dirname "$0")/lib.sh"

# write_file NAME COMMANDS: a file of tests
write_file()
{
	printf '%s\n' '#!/bin/sh' "$2" >"$TMP/t/$1"
	chmod +x "$TMP/t/$1"
}

# write_results RESULT...: the file a.sh, with these lines of KTAP
write_results()
{
	write_file a.sh "printf '%s\n' '1..$#'$(printf " '%s'" "$@")"
}

# run_files STATUS ARGUMENT...: call run_tests.py in $TMP/t
run_files()
{
	cd "$TMP/t"
	expect_status "$1" "$SCRIPTS_DIR/lib/run_tests.py" --dir "$TMP/t" --timeout "${LIMIT:-60}" "${@:2}"
	PRINTED=$(grep -v '^slowest ' <<<"$PRINTED")
}

# prints WANT: fail unless run_tests.py has printed this, apart from the slowest tests
prints()
{
	same "output" <(printf '%s\n' "$1") <(printf '%s\n' "$PRINTED")
}

test_report_says_what_a_failed_test_printed()
{
	write_file a.sh "printf '%s\n' 'TAP version 13' 1..4 '# noise' 'ok 1 a: one' '# why' '# # ok 7 noise' \
		'not ok 2 a: two' '# after it' 'ok 3 a: three # SKIP no three' '# not ok' 'not ok 4 - a: four #4'; exit 1"
	run_files 1 ./a.sh
	prints "ok      a: one
FAILED  a: two
  | why
  | # ok 7 noise
  log: $TMP/t/logs/a.log
skip    a: three (no three)
FAILED  a: four #4
  | not ok
  log: $TMP/t/logs/a.log
1 passed, 2 failed, 1 skipped"
	holds logs/a.log '^# noise$'
}

# fails TEXT COMMANDS: a file of these commands counts as failed, for this reason
fails()
{
	write_file b.sh "$2"
	run_files 1 ./b.sh
	printed "FAILED  b ($1)"
}

test_slowest_tests_are_listed()
{
	write_file b.sh 'echo 1..2; sleep 0.3; echo ok 1 b: slow; echo ok 2 b: quick'
	expect_status 0 "$SCRIPTS_DIR/lib/run_tests.py" --dir "$TMP/t" "$TMP/t/b.sh"
	[[ $PRINTED = *slowest*slow$'\n'slowest*quick* ]] || fail "another order"
}

test_results_are_counted_against_the_plan()
{
	fails '1 results of a plan of 2 (status 3)' 'echo 1..2; echo ok 1 b: one; exit 3'
	fails '2 results of a plan of 1' 'echo 1..1; echo ok 1 b: one; echo ok 2 b: two'
	LIMIT=2 fails '0 results of a plan of 1 (not ended after 2 s)' 'echo 1..1; sleep 60'
	fails 'ended with an error (status 3)' 'echo 1..1; echo ok 1 b: one; exit 3'
	fails 'ended with an error (status -11)' 'echo 1..1; echo ok 1 b: one; kill -SEGV $$'
	fails 'no plan' 'echo ok 1 b: one'
	fails 'nothing ran' 'echo 1..0'
	fails 'no plan (status 1)' 'echo "Bail out!  why"; exit 1'
	printed '  | Bail out!  why'
}

# A run that shows nothing must not succeed, even if the file that runs last has nothing to say.
test_a_run_in_which_all_tests_are_skipped_fails()
{
	write_file b.sh 'echo "1..0 # SKIP no root"; exit 4'
	run_files 1 ./b.sh
	prints $'skip    b (no root)\n0 passed, 0 failed, 1 skipped'
	write_results 'ok 1 a'
	run_files 1 --last ./a.sh ./b.sh
}

# A test that only --all runs counts as neither passed nor skipped.
test_skips_are_compared_with_a_list()
{
	local list

	write_results 'ok 1 a: one' 'ok 2 a: two # SKIP no PMU: none' 'ok 3 b: two # SKIP no disk' \
		'ok 4 d # SKIP only with --all'
	printf '# a comment\n\na: .*\tno PMU: .*\nb: two\tno disk\n' >"$TMP/t/list"
	run_files 0 --expected-skips list ./a.sh
	prints 'ok      a: one
skip    a: two (no PMU: none)
skip    b: two (no disk)
not run without --all: 1: d
1 passed, 0 failed, 2 skipped'
	# Another reason, a part of a name, a part of a reason, another test
	write_results 'ok 1 a: two # SKIP no disk' 'ok 2 b: twofold # SKIP no disk' 'ok 3 b: two # SKIP no disk left' \
		'ok 4 d # SKIP no disk' 'ok 5 e'
	run_files 1 --expected-skips list ./a.sh
	printed 'FAILED  a: two (skipped, and not in list: no disk)'
	printed '1 passed, 4 failed, 0 skipped'
	for list in 'a: no tab' $'a\t(' $'a\tb\tc'; do
		run_files 2 --expected-skips <(echo "$list")
		printed "not two regular expressions with a tab between: $list"
	done
	for list in "$SCRIPTS_DIR"/../.ci/skips-*; do
		run_files 1 --expected-skips "$list"
	done
}

test_lacking_tests_have_to_fail()
{
	write_results 'ok 1 a: b' 'not ok 2 a: c' 'ok 3 a: d # SKIP no d' \
		'ok 4 a: e # SKIP does not apply to v0.1: no e'
	run_files 1 ./a.sh
	printed 'not for this tag: 1: a: e'
	printed '1 passed, 1 failed, 1 skipped'
	run_files 1 --lacking ./a.sh
	printed 'FAILED  a: b (passes although it is in selftests/lacks)'
	printed 'ok      a: c'
	printed '1 passed, 1 failed, 1 skipped'
	write_file a.sh 'echo 1..1; echo not ok 1 a; exit 1'
	run_files 0 --lacking ./a.sh
	printed '1 passed, 0 failed, 0 skipped'
}

# The file with BESIDE=yes ends only if it runs beside one of the others. These two must not run at once.
test_files_run_in_two_lanes()
{
	(($(nproc) > 1)) || skip "one CPU"
	write_file a.sh 'mkdir running && echo 1..1
		until [ -e met ]; do sleep 0.1; done
		rmdir running && echo ok 1 a'
	cp "$TMP/t/a.sh" "$TMP/t/b.sh"
	write_file c.sh $'BESIDE=yes\nuntil [ -e running ]; do sleep 0.1; done; touch met; echo 1..1; echo ok 1 c'
	run_files 0 ./a.sh ./b.sh ./c.sh
	printed '3 passed, 0 failed, 0 skipped'
}

# The host counts the results of a guest.
test_results_of_another_run_are_counted()
{
	write_results 'ok 1 a'
	run_files 0 --no-totals ./a.sh
	prints 'ok      a'
	mv results first
	write_results 'not ok 1 b'
	run_files 1 --load first --last ./a.sh
	prints $'FAILED  b\n  log: '"$TMP/t/logs/a.log"$'\n1 passed, 1 failed, 0 skipped'
}

# A signal to the group of run_tests.py also ends what the files have started, in their own groups.
test_a_signal_ends_the_files()
{
	local signal status group

	cd "$TMP/t"
	write_file a.sh "echo \$\$ >pid; sleep 60 | sleep 60"
	while read -r signal status; do
		rm -f pid
		in_background env --default-signal=INT "$SCRIPTS_DIR/lib/run_tests.py" --dir . ./a.sh
		await test -s pid
		group=$(ps -o pgid= "$(<pid)")
		kill "-$signal" -- "-$HANGING"
		ends_with "$status"
		await bash -c "! kill -0 -- -${group// /} 2>/dev/null"
	done <<<$'INT 130\nTERM 143'
}

test_tests_that_a_tag_lacks()
{
	local -x PBM_LACKS_FILE=$TMP/t/lacks
	local list=("$SCRIPTS_DIR/run-selftests.sh" --list v6.16)

	printf 'v7.3.4,v6.16\tharness: (literals|values) and bpftool agree\tit is so\n' >"$PBM_LACKS_FILE"
	expect_status 0 "${list[@]}" --lacking
	[[ $PRINTED = "harness: literals and bpftool agree" ]] || fail "--lacking lists: $PRINTED"
	printf 'v7.3.4,v6.16\tharness: literals or bpftool agree\tit is so\n' >"$PBM_LACKS_FILE"
	expect_status 2 "${list[@]}"
	printed "lists 'harness: literals or bpftool agree' for v6.16, but no test has this name"
	echo '# none' >"$PBM_LACKS_FILE"
	expect_status 0 "${list[@]}" --lacking
	printed "no test for v6.16"
}

run_tests
