#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Many programs that come and go while perf records. Whoever lived 100 ms with
# its map has its set; how many of the others have one is only printed. While all
# CPUs are busy, perf may not get to run in time: churn measures how late it is
# woken itself, and at such times 1 % may be missing, if they lived less than 300 ms.
#
# PBM_STRESS_PROGRAMS (400) and PBM_STRESS_MS (4000) are the size of the pipe's
# and --switch-output's test; the file's is always the full one, 2000 programs
# in 20 s and 500 that stay.

. "$(dirname "$0")/../../lib/test-lib.sh"

PROGRAMS=${PBM_STRESS_PROGRAMS:-400}
DURATION=${PBM_STRESS_MS:-4000}
# Most are shorter than it takes to read them.
LIVES=0,5,20,100,110,300,1,50,150,10

# $1 programs in $2 ms from 4 processes, a quarter as many that stay
stress()
{
	start_churn -p 4 -n "$1" -s $(($1 / 4)) -t "$2" -l "$LIVES" -d 20
	await_churn ready
	(($(grep -c '^[0-9]' "$TMP/list") == $1 + $1 / 4)) || fail "churn: $(wc -l <"$TMP/list") lines"
}

test_2000_programs_in_a_file()
{
	start_recording "$TMP/data" -a
	stress 2000 20000
	stop_recording
	check_churn --busy "$TMP/list" "$TMP/data"
	perfdata check "$TMP/data"
}

test_many_programs_in_a_pipe()
{
	start_recording - -a
	stress "$PROGRAMS" "$DURATION"
	stop_recording
	check_churn --busy "$TMP/list" "$TMP/stdout"
	perfdata check "$TMP/stdout"
}

test_many_programs_in_switched_files()
{
	local files file

	start_recording "$TMP/data" -a --switch-output=1s
	stress "$PROGRAMS" "$DURATION"
	await "a switch" has_files 1
	stop_recording
	mapfile -t files < <(list_files)
	echo "${#files[@]} files"
	(("${#files[@]}" >= 2)) || fail "too few files"
	check_churn --busy "$TMP/list" "${files[@]}"
	# The last one may be so short that it has no sample.
	for file in "${files[@]::${#files[@]} - 1}"; do
		perfdata check "$file"
	done
	perfdata check-records "${files[-1]}"
}

run_tests
