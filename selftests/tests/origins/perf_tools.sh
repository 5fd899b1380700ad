#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf's own BPF programs run while another perf records. The metadata of these programs is one key,
# the version of perf.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"

# One test needs a cgroup file system.
# shellcheck disable=SC2016 # for another shell
own_mounts 'grep -q -E "^\S+ \S+ (cgroup2|cgroup \S*perf_event)" /proc/mounts ||
	mount -t cgroup2 cgroup /sys/fs/cgroup || :'

# libbpf loads these programs to probe the kernel. Some of them have no name.
PROBES='(_(a|b|det_arg_ctx|libbpf_nametest))?'

start()
{
	"$PBM_PERF" check -q feature bpf_skeletons || skip "this perf is built without BPF skeletons"
	USER_PIDS=()
	start_recording "$TMP/data" -a
}

# start_perf ARGUMENT...: start perf; its output goes to $TMP/user
start_perf()
{
	stdbuf -oL "$PBM_PERF" "$@" >"$TMP/user" 2>&1 </dev/null &
	USER_PIDS+=("$!")
}

# end_perf OUTPUT: wait for perf. Fail unless it succeeds, and its output matches OUTPUT (ERE)
end_perf()
{
	local status=0

	wait "${USER_PIDS[-1]}" || status=$?
	((status == 0)) || fail "perf: status $status: $(head -n 20 "$TMP/user")"
	grep -q -E -e "$1" "$TMP/user" || fail "perf prints no '$1': $(head -n 20 "$TMP/user")"
}

# run_perf OUTPUT ARGUMENT...: run perf to its end
run_perf()
{
	start_perf "${@:2}"
	end_perf "$1"
}

# check_users NAME...: end the recording. Fail unless all programs that the processes USER_PIDS have loaded have
# the version of perf, and programs with these names are among them.
check_users()
{
	local name prog

	stop_recording
	perfdata check "$TMP/data"
	perfdata programs "$TMP/data" >"$TMP/programs"
	awk -v pids=" ${USER_PIDS[*]} " -v probes="^(bpf_prog_[0-9a-f]*$PROBES,?)+\$" \
		'index(pids, " " $3 " ") && $6 !~ probes { print $1, $6 }' "$TMP/programs" >"$TMP/loaded"
	cat "$TMP/loaded"
	for name; do
		grep -q -E -e "[ ,]bpf_prog_[0-9a-f]*_$name(,|\$)" "$TMP/loaded" || fail "no program $name was loaded"
	done
	name=$("$PBM_PERF" version)
	printf 'perf_version\t"%s"\n' "${name#perf version }" >"$TMP/want"
	while read -r prog name; do
		perfdata entries "$TMP/data" "$prog" | sort -u >"$TMP/got"
		same "the metadata of $prog $name" "$TMP/want" "$TMP/got"
	done <"$TMP/loaded"
}

has_sample()
{
	"$PBM_PERF" script -f -i "$1" -F comm,ip,event >"$TMP/script"
	grep -q -e "$2" "$TMP/script" || fail "no sample of $2 was recorded"
}

# perf attaches its program fexit_XXX to its program on_switch.
test_stat_bpf_counters()
{
	unpatched_perf
	"$PBM_UNPATCHED_PERF" stat --bpf-counters -a -e cpu-clock -- true >"$TMP/unpatched" 2>&1 ||
		skip "this kernel allows no fexit program on a BPF program: $(tail -n 1 "$TMP/unpatched")"
	start
	run_perf '[1-9].*cpu-clock' stat --bpf-counters -a -e cpu-clock -- sleep 0.3
	check_users on_switch fexit_XXX
}

test_stat_bpf_counters_of_a_cgroup()
{
	grep -q -E -e '^\S+ \S+ (cgroup2|cgroup \S*perf_event)' /proc/mounts ||
		skip "no cgroup file system with perf_event is mounted"
	start
	run_perf '[1-9].*cpu-clock *./' stat --bpf-counters -a -e cpu-clock --for-each-cgroup / -- sleep 0.3
	check_users on_cgrp_switch trigger_read
}

# With --bpf-summary, perf trace starts to count after the workload has begun, and then polls.
# shellcheck disable=SC2016 # for the workload's shell
test_trace()
{
	start
	run_perf 'sleep.*clock_nanosleep' trace -a -e openat,clock_nanosleep -- sleep 0.3
	run_perf ' clock_nanosleep .*[1-9]' trace -a -s --bpf-summary -- sh -c '
		while [ -e /proc/$PPID ] && ! grep -q poll /proc/$PPID/wchan; do sleep 0.01; done
		sleep 0.01'
	check_users sys_enter sys_exit sys_enter_openat sys_enter_clock_nanosleep
}

test_record_off_cpu()
{
	start
	run_perf '' record -N -a --off-cpu -o "$TMP/off" -- sleep 0.3
	check_users on_switch on_newtask
	has_sample "$TMP/off" offcpu-time
}

# perf lock does not check all that it needs of the kernel, see bpf_skel/lock_contention.bpf.c.
test_lock_contention()
{
	local option

	grep -q -w runqueues /proc/kallsyms || skip "no runqueues in kallsyms (CONFIG_KALLSYMS_ALL)"
	[[ $("$PBM_PERF" list lock:contention_begin) = *contention_begin* ]] ||
		skip "this kernel has no tracepoints of locks"
	start
	for option in --stack-skip=1 -l; do
		run_perf '' lock contention -a -b "$option" -- "${WORKLOAD[@]}"
	done
	check_users contention_begin contention_end collect_lock_syms
}

# The programs load even if the kernel cannot attach them.
test_ftrace_latency()
{
	start
	run_perf '' ftrace latency -a -b -T schedule -- sleep 0.3
	check_users func_begin func_end
	[[ -d /sys/bus/event_source/devices/kprobe ]] ||
		skip "this kernel has no kprobes for the programs; their metadata was recorded"
	grep -q '[1-9]' "$TMP/user" || fail "perf ftrace counts nothing: $(cat "$TMP/user")"
}

is_interrupted()
{
	! kill -INT "${USER_PIDS[-1]}" 2>/dev/null
}

# perf kwork runs until it is interrupted. It may print that it listens before it does.
run_kwork()
{
	start_perf kwork "${@:2}"
	await "perf kwork traces" grep -q -e '^Starting trace' "$TMP/user"
	"${WORKLOAD[@]}"
	await "perf kwork ends" is_interrupted
	end_perf "$1"
}

test_kwork()
{
	start
	run_kwork '\(s\)[A-Z]+' -k softirq report -b
	run_kwork '' -k irq report -b
	run_kwork '' -k workqueue report -b
	run_kwork '^%Cpu[0-9]+' top -b
	check_users report_softirq_entry report_softirq_exit report_irq_handler_entry report_irq_handler_exit \
		report_workqueue_execute_start report_workqueue_execute_end \
		on_switch on_softirq_entry on_softirq_exit on_irq_handler_entry on_irq_handler_exit
}

test_sample_filter()
{
	native_only "the kernel takes a minute to verify the filter, and perf test also tests it"
	all_only
	start
	run_perf '' record -N -e task-clock --filter 'ip > 0' -o "$TMP/filtered" -- "${WORKLOAD[@]}"
	check_users perf_sample_filter
	has_sample "$TMP/filtered" task-clock
}

# Also if a test has failed, no perf of its may live on.
end_users()
{
	((!${#USER_PIDS[@]})) || kill "${USER_PIDS[@]}" 2>/dev/null || :
}

USER_PIDS=()
ON_END+=(end_users)
run_tests
