#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What samples tell and kernel.bpf_stats_enabled does not, and the other way round. The statistics count
# the time of a chain of tail calls for the first program. Samples tell which program runs.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/attach.sh"

NATIVE_ONLY="the test needs many samples"

STATS=/proc/sys/kernel/bpf_stats_enabled

# Enable the statistics. A child restores the old value when this shell ends, for whatever reason.
count_runs()
{
	[[ -e $STATS ]] || skip "this kernel has no $STATS"
	# shellcheck disable=SC2034 # it is only kept open
	exec {COUNTING}> >(old=$(<"$STATS"); echo 1 >"$STATS"; trap '' INT TERM; cat; echo "$old" >"$STATS")
	await "$STATS" grep -q -x 1 "$STATS"
}

# A tail call reuses the caller's frame, so stacks of the callee do not have the caller. At its last
# instruction, the callee has already left its frame. Then the stack also lacks bpf_test_run, so only
# some of the stacks have it.
test_samples_count_for_the_callee_and_bpf_stats_for_the_first_caller()
{
	local entry id

	# Call this before hold: if a child of count_runs inherited the input of the holder, the
	# holder would never end.
	count_runs
	hold tails
	for entry in 0 1 2; do
		[[ ${HELD_NAMES[entry]} != entry ]] || break
	done
	spend "$entry" $((60000 / SCALE))
	record "$TMP/file" -g
	"$BPFTOOL" -j prog show | python3 -c '
import json, sys
for prog in json.load(sys.stdin):
    if str(prog["id"]) in sys.argv[1:]:
        print(prog["name"], "N" if prog.get("run_time_ns") else 0)' "${HELD_IDS[@]}" | sort >"$TMP/run-times"
	[[ $(cat "$TMP/run-times") = $'entry N\nleaf 0\nmiddle 0' ]] || fail "bpf_stats: $(cat "$TMP/run-times")"
	"$PBM_PERF" script -G -F bpf_prog -i "$TMP/file" >"$TMP/programs"
	for id in "${HELD_IDS[@]}"; do
		grep -m 1 -w "$id:[a-z]*" "$TMP/programs" || fail "no samples of program $id"
	done
	"$PBM_PERF" script -F ip,sym -i "$TMP/file" 2>/dev/null |
		awk 'BEGIN { RS = "" }
			/_leaf\n/ { n++; whole += /bpf_test_run\n/; both += /_(middle|entry)\n/ }
			END { print n + 0, whole + 0, both + 0 }' >"$TMP/stacks"
	awk '{ exit !($2 && !$3) }' "$TMP/stacks" ||
		fail "stacks of leaf, with bpf_test_run, with a caller: $(cat "$TMP/stacks")"
}

# The timer of cpu-clock is an interrupt, which comes after the program.
test_a_program_that_runs_with_interrupts_off_has_no_sample_of_cpu_clock()
{
	local WORKLOAD=("$PBM_PERF" bench -f simple sched pipe -l 20000)

	count_runs
	start_attach
	ask load "$OUTPUT/interrupts_off.bpf.o"
	ask attach
	record "$TMP/off" >"$TMP/bench"
	"$BPFTOOL" -j prog show id "$PROGRAM_ID" | python3 -c 'import json, sys
program = json.load(sys.stdin)
print(program["run_cnt"], "runs", program["run_time_ns"] // 1000000, "ms")
sys.exit(program["run_cnt"] < 20000)' || fail "the program did not run"
	"$PBM_PERF" script -F event,bpf_prog -i "$TMP/off" >"$TMP/samples"
	[[ -s $TMP/samples ]] || fail "no samples"
	! grep -w "$PROGRAM_ID" "$TMP/samples" || fail "samples of the program"
}

run_tests
