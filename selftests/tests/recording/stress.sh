#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Many programs come and go while perf records. The recording must have the metadata of each program
# that lived 100 ms with its map. Of the other programs, the tests only print how many the recording
# has. While all CPUs are busy, perf may run too late. If churn was late, too, programs that
# lived less than 300 ms may be missing, but at most 1 % of those that lived 100 ms.
#
# The first test always loads 2000 programs in 20 s, and 500 that stay. PBM_STRESS_PROGRAMS (400)
# and PBM_STRESS_MS (4000) set the number of programs and the time of the other two tests.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"

PROGRAMS=${PBM_STRESS_PROGRAMS:-400}
DURATION=${PBM_STRESS_MS:-4000}
# Most programs can end before perf has read them.
LIVES=0,5,20,100,110,300,1,50,150,10

# Load $1 programs in $2 ms from 4 processes, and a quarter as many that stay.
stress()
{
	start_churn -p 4 -n "$1" -s $(($1 / 4)) -t "$2" -l "$LIVES" -d 20
	await_churn ready
	(($(grep -c '^[0-9]' "$TMP/list") == $1 + $1 / 4)) || fail "churn prints $(wc -l <"$TMP/list") lines"
}

test_2000_programs_in_a_file()
{
	all_only
	start_recording "$TMP/data" -a
	stress 2000 20000
	stop_recording
	check_churn --soon "$TMP/list" "$TMP/data"
	perfdata check "$TMP/data"
}

test_many_programs_in_a_pipe()
{
	all_only
	start_recording - -a
	stress "$PROGRAMS" "$DURATION"
	stop_recording
	check_churn --soon "$TMP/list" "$TMP/stdout"
	perfdata check "$TMP/stdout"
}

test_many_programs_in_files_of_switch_output()
{
	local files file

	all_only
	start_recording "$TMP/data" -a --switch-output=1s
	stress "$PROGRAMS" "$DURATION"
	await "a second file" has_files 1
	stop_recording
	mapfile -t files < <(list_files)
	echo "${#files[@]} files"
	(("${#files[@]}" >= 2)) || fail "too few files"
	check_churn --soon "$TMP/list" "${files[@]}"
	# The last file may be too short to have a sample.
	for file in "${files[@]::${#files[@]} - 1}"; do
		perfdata check "$file"
	done
	perfdata check-records "${files[-1]}"
}

run_tests
