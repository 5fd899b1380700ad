#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs that load, unload or get their maps while perf records: each has its
# set, with the right number, under the name of its KSYMBOL record.

. "$(dirname "$0")/lib.sh"

# As text: for files that perfdata.py does not read.
check_shown()
{
	show "$1"
	check_churn "$TMP/list" "$1.script"
}

test_program_that_loads_and_stays()
{
	start_recording "$TMP/data" -a
	start_churn -s 3
	await_churn ready
	churn -f 4 -n 1 -l 150
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
	perfdata check "$TMP/data"
}

test_program_that_loads_just_before_the_end()
{
	start_recording "$TMP/data" -a
	start_churn -s 3
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

test_program_that_is_unloaded_after_100_ms()
{
	start_recording "$TMP/data" -a
	churn -n 6 -t 60
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
	perfdata check "$TMP/data"
}

test_program_that_is_unloaded_long_before_the_end()
{
	start_recording "$TMP/data" -a
	churn -n 3
	churn -n 100 -f 4 -t 500 -l 1 -p 2
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

test_program_of_a_recorded_process()
{
	start_churn -w -n 3
	await_churn waiting
	start_recording "$TMP/data" -p "$HOLDER_PID"
	tell_churn
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

test_program_of_the_workload()
{
	"$PBM_PERF" record -N -e cpu-clock -F 97 -o "$TMP/data" -- \
		"$OUTPUT/churn" -n 6 -p 2 -l 100,150 </dev/null >"$TMP/list" 2>"$TMP/perf.err"
	check_messages "$TMP/perf.err"
	check_churn "$TMP/list" "$TMP/data"
}

test_program_that_loads_while_a_pipe_is_written()
{
	start_recording - -a
	churn -n 3
	start_churn -s 3 -f 4
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/stdout"
	perfdata check "$TMP/stdout"
}

test_program_that_refers_to_its_map_at_load()
{
	start_recording "$TMP/data" -a
	churn -n 3 -b load
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

test_map_that_is_bound_30_ms_after_the_load()
{
	start_recording "$TMP/data" -a
	churn -n 3 -b 30
	start_churn -s 3 -f 4 -b 30
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

test_second_map_that_is_bound_after_the_first_was_read()
{
	start_recording "$TMP/data" -a
	churn -n 3 -m 40
	start_churn -s 3 -f 4 -m 300
	await_churn ready
	stop_recording
	check_churn --more "$TMP/list" "$TMP/data"
}

# On a busy machine the loader can be interrupted for so long.
test_map_that_is_bound_300_ms_after_the_load()
{
	start_recording "$TMP/data" -a
	churn -n 3 -b 300 -l $((1500 / SCALE))
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# So long after the load that perf has read the program when it starts
test_map_that_is_bound_while_recording_starts()
{
	start_churn -s 3 -f 4 -b 800
	start_recording "$TMP/data" -a
	await_churn ready
	stop_recording
	check_churn --starting "$TMP/list" "$TMP/data"
}

# Both threads of perf see them: they are there, and they load. Such a program has
# two KSYMBOL records. If it loads before the sideband thread starts, perf can't
# tell that the kernel has written one.
test_programs_that_load_while_recording_starts()
{
	local churn begin

	for _ in 1 2; do
		"$OUTPUT/churn" -n $((400 / SCALE)) -t 1000 -l $((500 + 1000 / SCALE)) </dev/null >"$TMP/all" &
		churn=$!
		begin=$(cut -d ' ' -f 1 /proc/uptime)
		start_recording "$TMP/data" -a
		wait "$churn"
		stop_recording
		# Those that were there before may be gone when perf is; the others live long enough.
		awk -v begin="$begin" '$4 < begin * 1e6 { $5 = 0 } { print }' "$TMP/all" >"$TMP/list"
		check_churn --starting "$TMP/list" "$TMP/data"
	done
}

test_compressed_file()
{
	"$PBM_PERF" check -q feature zstd || skip "this perf is built without zstd"
	start_recording "$TMP/data" -a -z
	churn -n 3
	stop_recording
	check_shown "$TMP/data"
}

test_threads()
{
	start_recording "$TMP/data" -a --threads
	churn -n 3
	start_churn -s 3 -f 4
	await_churn ready
	stop_recording
	check_shown "$TMP/data"
}

test_overwrite()
{
	start_recording "$TMP/data" -a --overwrite
	churn -n 3
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
	perfdata check "$TMP/data"
}

test_tail_synthesize()
{
	start_churn -s 3
	await_churn ready
	start_recording "$TMP/data" -a --tail-synthesize
	churn -n 3 -f 4
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
	perfdata check "$TMP/data"
}

test_events_that_are_enabled_later()
{
	launch_recording "$TMP/data" -a -D 500
	await "events are disabled" grep -q -s -x 'Events disabled' "$TMP/perf.err"
	churn -n 3
	control ping
	churn -n 3 -f 4
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

test_events_that_are_enabled_and_disabled_by_control()
{
	start_recording "$TMP/data" -a -D -1
	churn -n 3
	control enable
	churn -n 3 -f 4
	control disable
	churn -n 3 -f 7
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

has_ended()
{
	! kill -0 "$1" 2>/dev/null
}

interrupt_recording()
{
	local status=0

	kill -INT "$PERF_PID"
	await "the end of perf record" has_ended "$PERF_PID"
	wait "$PERF_PID" || status=$?
	PERF_PID=
	check_messages "$TMP/perf.err"
	((status == 0 || status == 130)) || fail "status $status"
}

test_end_by_signal()
{
	start_recording "$TMP/data" -a
	churn -n 3
	interrupt_recording
	check_churn "$TMP/list" "$TMP/data"
}

slow_reads()
{
	(($(grep -c DELAYED "$TMP/strace" || true) >= $1))
}

# A program each 50 ms, for longer than await() waits, and 100 ms for each call that
# perf asks about it with.
test_end_while_programs_load_faster_than_they_are_read()
{
	local thread

	native_only "strace stops perf at each system call"
	command -v strace >/dev/null || skip "strace is not there"
	start_recording "$TMP/data" -a
	thread=$(find "/proc/$PERF_PID/task" -mindepth 1 -maxdepth 1 ! -name "$PERF_PID" -printf '%f')
	: >"$TMP/strace"
	strace -qq -o "$TMP/strace" -p "$thread" -e trace=bpf -e inject=bpf:delay_enter=100000 &
	start_churn -n $((800 * SCALE)) -t $((40000 * SCALE)) -l 0
	await "slow reads" slow_reads 3
	interrupt_recording
	kill "$HOLDER_PID" || fail "churn has ended"
}

# The kernel takes its time to verify the filter.
test_sample_filter()
{
	native_only "it takes a minute to verify the filter, and perf test does so"
	"$PBM_PERF" check -q feature bpf_skeletons || skip "this perf is built without BPF skeletons"
	start_recording "$TMP/data" -a --filter 'ip > 0'
	churn -n 3
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
	perfdata check "$TMP/data"
}

test_off_cpu()
{
	"$PBM_PERF" check -q feature bpf_skeletons || skip "this perf is built without BPF skeletons"
	launch_recording "$TMP/data" -a --off-cpu
	if ! control ping; then
		skip "perf record --off-cpu does not work here"
	fi
	churn -n 3
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

run_tests \
	test_program_that_loads_and_stays \
	test_program_that_loads_just_before_the_end \
	test_program_that_is_unloaded_after_100_ms \
	test_program_that_is_unloaded_long_before_the_end \
	test_program_of_a_recorded_process \
	test_program_of_the_workload \
	test_program_that_loads_while_a_pipe_is_written \
	test_program_that_refers_to_its_map_at_load \
	test_map_that_is_bound_30_ms_after_the_load \
	test_map_that_is_bound_300_ms_after_the_load \
	test_map_that_is_bound_while_recording_starts \
	test_second_map_that_is_bound_after_the_first_was_read \
	test_programs_that_load_while_recording_starts \
	test_compressed_file \
	test_threads \
	test_overwrite \
	test_tail_synthesize \
	test_events_that_are_enabled_later \
	test_events_that_are_enabled_and_disabled_by_control \
	test_end_by_signal \
	test_end_while_programs_load_faster_than_they_are_read \
	test_sample_filter \
	test_off_cpu
