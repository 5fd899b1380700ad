#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf's own BPF programs run while another perf records. The metadata of these programs is one key,
# the version of perf.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/attach.sh"
. "$(dirname "$0")/../../lib/nobody.sh"
. "$(dirname "$0")/../../lib/recording.sh"

# perf pins the map of its sample filter, so mount bpffs. One test needs a cgroup file system.
# shellcheck disable=SC2016 # for another shell
own_mounts 'grep -q -E "^\S+ \S+ (cgroup2|cgroup \S*perf_event)" /proc/mounts ||
	mount -t cgroup2 cgroup /sys/fs/cgroup || :'

FILTER_DIR=/sys/fs/bpf/perf_filter
# libbpf loads these programs to probe the kernel. Some of them have no name.
PROBES='(_(a|b|det_arg_ctx|libbpf_nametest))?'

start()
{
	"$PBM_PERF" check -q feature bpf_skeletons || skip "this perf is built without BPF skeletons"
	USER_PIDS=()
	PINS=no
	trap 'abandon_users; abandon_recording; release' EXIT
	start_recording "$TMP/data" -a
}

abandon_users()
{
	((!${#USER_PIDS[@]})) || kill "${USER_PIDS[@]}" 2>/dev/null || :
	[[ $PINS = no ]] || rm -rf "$FILTER_DIR"
}

has_sample()
{
	"$PBM_PERF" script -f -i "$1" -F comm,ip,event >"$TMP/script"
	grep -q -e "$2" "$TMP/script"
}

# start_perf NAME ARGUMENT...: start perf; its output goes to $TMP/user.NAME. Sets USER_PID.
start_perf()
{
	local name=$1

	shift
	stdbuf -oL "$PBM_PERF" "$@" >"$TMP/user.$name" 2>&1 </dev/null &
	USER_PIDS+=("$!")
	USER_PID=$!
}

wait_for_perf()
{
	local pid=$1 name=$2 status=0

	wait "$pid" || status=$?
	((status == 0)) || fail "perf $name: status $status: $(head -n 20 "$TMP/user.$name")"
}

run_perf()
{
	start_perf "$1" "$@"
	wait_for_perf "$USER_PID" "$1"
}

want_output()
{
	grep -q -E -e "$2" "$TMP/user.$1" || fail "perf $1 prints no '$2': $(head -n 20 "$TMP/user.$1")"
}

# Print all functions of the programs that these processes have loaded, each once.
functions_of()
{
	perfdata programs "$TMP/data" >"$TMP/programs"
	awk -v pids=" $* " 'index(pids, " " $3 " ") { print $6 }' "$TMP/programs" | tr , '\n' |
		grep -v -x -E "bpf_prog_[0-9a-f]{16}$PROBES" | sort -u
}

# check_version PROG: fail unless the program, an id or a name, has the version of perf in its records
check_version()
{
	local version

	version=$("$PBM_PERF" version)
	printf 'perf_version\t"%s"\n' "${version#perf version }" >"$TMP/want"
	perfdata entries "$TMP/data" "$1" | sort -u >"$TMP/got"
	same "the metadata of $1 in $(grep -e "^$1 " "$TMP/programs" || :)" "$TMP/want" "$TMP/got"
}

# check_users NAME...: end the recording. Fail unless it has the metadata of all programs that the
# processes USER_PIDS loaded, and programs with these names are among them.
check_users()
{
	local name prog

	stop_recording
	functions_of "${USER_PIDS[@]}" >"$TMP/functions"
	cat "$TMP/functions"
	for name; do
		grep -q -x -e "bpf_prog_[0-9a-f]*_$name" "$TMP/functions" || fail "no program $name was loaded"
	done
	while read -r prog; do
		check_version "$prog"
	done < <(awk -v pids=" ${USER_PIDS[*]} " -v probes="^(bpf_prog_[0-9a-f]*$PROBES,?)+\$" \
		'index(pids, " " $3 " ") && $6 !~ probes { print $1 }' "$TMP/programs")
	perfdata check "$TMP/data"
}

# perf attaches its program fexit_XXX to its program on_switch.
test_stat_bpf_counters()
{
	start_attach
	ask load "$OUTPUT/simple.bpf.o"
	try_ask fexit "$OUTPUT/fexit.bpf.o" ||
		skip "this kernel allows no fexit program on a BPF program: $ERROR"
	release
	start
	run_perf stat --bpf-counters -a -e cpu-clock -- sleep 0.3
	check_users on_switch fexit_XXX
	want_output stat '[1-9].*cpu-clock'
}

test_stat_bpf_counters_of_a_cgroup()
{
	grep -q -E -e '^\S+ \S+ (cgroup2|cgroup \S*perf_event)' /proc/mounts ||
		skip "no cgroup file system with perf_event is mounted"
	start
	run_perf stat --bpf-counters -a -e cpu-clock --for-each-cgroup / -- sleep 0.3
	check_users on_cgrp_switch trigger_read
	want_output stat '[1-9].*cpu-clock *./'
}

test_trace()
{
	start
	run_perf trace -a -e openat,clock_nanosleep -- sleep 0.3
	check_users sys_enter sys_exit sys_enter_openat sys_enter_clock_nanosleep
	want_output trace 'sleep.*clock_nanosleep'
}

# perf trace starts to count after the workload has begun, and then polls.
# shellcheck disable=SC2016 # for the workload's shell
test_trace_bpf_summary()
{
	start
	run_perf trace -a -s --bpf-summary -- sh -c '
		while [ -e /proc/$PPID ] && ! grep -q poll /proc/$PPID/wchan; do sleep 0.01; done
		sleep 0.01'
	check_users sys_enter sys_exit
	want_output trace ' clock_nanosleep .*[1-9]'
}

test_record_off_cpu()
{
	start
	run_perf record -N -a --off-cpu -o "$TMP/off" -- sleep 0.3
	check_users on_switch on_newtask
	has_sample "$TMP/off" offcpu-time || fail "no time off the CPUs was recorded"
}

# perf lock does not check all that it needs of the kernel, see bpf_skel/lock_contention.bpf.c.
test_lock_contention()
{
	grep -q -w runqueues /proc/kallsyms || skip "no runqueues in kallsyms (CONFIG_KALLSYMS_ALL)"
	[[ $("$PBM_PERF" list lock:contention_begin) = *contention_begin* ]] ||
		skip "this kernel has no tracepoints of locks"
	start
	run_perf lock contention -a -b -- "${WORKLOAD[@]}"
	run_perf lock contention -a -b --stack-skip 1 -- "${WORKLOAD[@]}"
	run_perf lock contention -a -b -l -- "${WORKLOAD[@]}"
	check_users contention_begin contention_end collect_lock_syms
}

# The programs load even if the kernel cannot attach them.
test_ftrace_latency()
{
	start
	run_perf ftrace latency -a -b -T schedule -- sleep 0.3
	check_users func_begin func_end
	[[ -d /sys/bus/event_source/devices/kprobe ]] ||
		skip "this kernel has no kprobes for the programs; their metadata was recorded"
	want_output ftrace '[1-9]'
}

is_interrupted()
{
	! kill -INT "$USER_PID" 2>/dev/null
}

# perf kwork runs until it is interrupted. It may print that it listens before it does.
run_kwork()
{
	start_perf kwork kwork "$@"
	await "perf kwork traces" grep -q -e '^Starting trace' "$TMP/user.kwork"
	"${WORKLOAD[@]}"
	await "perf kwork ends" is_interrupted
	wait_for_perf "$USER_PID" kwork
}

test_kwork_report()
{
	start
	run_kwork -k softirq report -b
	want_output kwork '\(s\)[A-Z]+'
	run_kwork -k irq report -b
	run_kwork -k workqueue report -b
	check_users report_softirq_entry report_softirq_exit \
		report_irq_handler_entry report_irq_handler_exit \
		report_workqueue_execute_start report_workqueue_execute_end
}

test_kwork_top()
{
	start
	run_kwork top -b
	want_output kwork '^%Cpu[0-9]+'
	check_users on_switch on_softirq_entry on_softirq_exit \
		on_irq_handler_entry on_irq_handler_exit
}

# The kernel takes a long time to verify the filter, so setup and record run at the same time.
start_filters()
{
	start
	PINS=yes
	start_perf setup record --setup-filter pin
	SETUP_PID=$USER_PID
	start_perf record record -N -e task-clock --filter 'ip > 0' -o "$TMP/filtered" -- "${WORKLOAD[@]}"
	wait_for_perf "$USER_PID" record
	wait_for_perf "$SETUP_PID" setup
	check_users perf_sample_filter
	has_sample "$TMP/filtered" task-clock || fail "no sample was recorded"
}

# record_as_nobody NAME OPTION...: record as an ordinary user. The messages go to $TMP/NAME, without
# numbers.
record_as_nobody()
{
	local name=$1

	shift
	as_nobody "$PBM_PERF" record -N -e task-clock "$@" -o "$TMP/nobody/data" -- \
		"${WORKLOAD[@]}" 2>"$TMP/$name"
	cat "$TMP/$name"
	sed -i 's/[0-9][0-9.]*/N/g' "$TMP/$name"
}

# An ordinary user's perf record prints the same messages with and without the filter. A recording
# of root has the metadata of the filter's program.
test_sample_filter_of_root_and_of_a_user()
{
	native_only "the kernel takes a minute to verify the filter, and perf test also tests it"
	all_only
	mountpoint -q /sys/fs/bpf || skip "no BPF file system is mounted at /sys/fs/bpf"
	[[ ! -e $FILTER_DIR/perf_sample_filter ]] || skip "somebody has pinned a filter: perf record --setup-filter unpin"
	start_filters
	prepare_nobody

	record_as_nobody plain
	start_recording "$TMP/data" -a
	record_as_nobody filtered --filter 'ip > 0'
	stop_recording
	same "messages of an ordinary user's perf record" "$TMP/plain" "$TMP/filtered"
	has_sample "$TMP/nobody/data" task-clock || fail "no sample of the user was recorded"
	perfdata programs "$TMP/data" | grep -o -e 'bpf_prog_[0-9a-f]*_perf_sample_filter' | sort -u >"$TMP/functions"
	check_version "$(cat "$TMP/functions")"

	record_as_nobody dropped --filter 'ip < 1'
	"$PBM_PERF" evlist -f -i "$TMP/nobody/data" >"$TMP/events"
	grep -q task-clock "$TMP/events" || fail "there is no event in the file"
	! has_sample "$TMP/nobody/data" . || fail "the filter does not filter"
}

run_tests
