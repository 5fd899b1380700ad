#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf's own BPF programs run while another perf records. The metadata of these programs is one key,
# the version of perf.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/nobody.sh"
. "$(dirname "$0")/../../lib/recording.sh"

# perf stat of a cgroup needs a cgroup file system. perf stat and the sample filter leave pins, which go away
# with this BPF file system.
own_mounts 'mount -t bpf bpf /sys/fs/bpf || :
	grep -q -E "^\S+ \S+ (cgroup2|cgroup \S*perf_event)" /proc/mounts ||
	mount -t cgroup2 cgroup /sys/fs/cgroup || :'

# libbpf loads these programs to probe the kernel. Some of them have no name.
PROBES='(_(a|b|det_arg_ctx|libbpf_nametest))?'

start()
{
	"$PBM_PERF" check -q feature bpf_skeletons || skip "this perf is built without BPF skeletons"
	start_recording "$TMP/data" -a
}

# start_perf ARGUMENT...: start perf; its output goes to $TMP/user
start_perf()
{
	: >"$TMP/user"
	"${LINE_BUFFERED[@]}" "$PBM_PERF" "$@" >"$TMP/user" 2>&1 </dev/null &
	USER_PIDS+=("$!")
}

# check_users NAME...: end the recording. Fail unless all programs that the processes USER_PIDS have
# loaded have the version of perf, and programs with these names are among them.
check_users()
{
	local name prog

	stop_recording
	perfdata check "$TMP/data"
	perfdata programs "$TMP/data" >"$TMP/programs"
	awk -v pids=" ${USER_PIDS[*]} " -v probes="^(bpf_prog_[0-9a-f]*$PROBES,?)+\$" \
		'index(pids, " " $3 " ") && $6 !~ probes { print $1, $6 }' "$TMP/programs" >"$TMP/loaded"
	cat "$TMP/loaded"
	[[ -s $TMP/loaded ]] || fail "perf loaded no program"
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

# A line has the arguments of perf, and names of programs that it loads. What the kernel lacks fails with
# the unpatched perf, too. perf attaches its program fexit_XXX to its program on_switch.
test_programs_of_perf_have_its_version()
{
	local args names all=()

	start
	while IFS='|' read -r args names; do
		# shellcheck disable=SC2086 # several arguments
		start_perf $args
		if wait "${USER_PIDS[-1]}"; then
			read -r -a names <<<"$names"
			all+=("${names[@]}")
			continue
		fi
		[[ -n ${PBM_UNPATCHED_PERF:-} ]] || fail "perf $args: $(head -n 20 "$TMP/user")"
		# shellcheck disable=SC2086 # several arguments
		! "$PBM_UNPATCHED_PERF" $args >"$TMP/unpatched" 2>&1 </dev/null || fail "perf $args: $(head -n 20 "$TMP/user")"
		echo "left out: perf $args: $(tail -n 1 "$TMP/unpatched")"
	done <<-END
		stat --bpf-counters -a -e cpu-clock -- sleep 0.3|on_switch fexit_XXX
		stat --bpf-counters -a -e cpu-clock --for-each-cgroup / -- sleep 0.3|on_cgrp_switch trigger_read
		trace -a -e openat,clock_nanosleep -- sleep 0.3|sys_enter sys_exit sys_enter_openat sys_enter_clock_nanosleep
		trace -a -s --bpf-summary -- sleep 0.3|sys_enter sys_exit
		record -N -a --off-cpu -o $TMP/off -- sleep 0.3|on_switch on_newtask
		lock contention -a -b --stack-skip 1 -- sleep 0.3|contention_begin contention_end
		lock contention -a -b -l -- sleep 0.3|contention_begin contention_end collect_lock_syms
		ftrace latency -a -b -T schedule -- sleep 0.3|func_begin func_end
	END
	((${#all[@]})) || skip "the kernel can't run any of these commands"
	check_users "${all[@]}"
}

is_interrupted()
{
	! kill -INT "${USER_PIDS[-1]}" 2>/dev/null
}

# perf kwork runs until it is interrupted. It may print that it listens before it does.
test_kwork()
{
	local args

	start
	for args in "-k softirq report" "-k irq report" "-k workqueue report" top; do
		# shellcheck disable=SC2086 # several arguments
		start_perf kwork $args -b
		await "perf kwork traces" grep -q -e '^Starting trace' "$TMP/user"
		"${WORKLOAD[@]}"
		await "perf kwork ends" is_interrupted
		wait "${USER_PIDS[-1]}" || fail "perf kwork $args: $(head -n 20 "$TMP/user")"
	done
	check_users report_softirq_entry report_softirq_exit report_irq_handler_entry report_irq_handler_exit \
		report_workqueue_execute_start report_workqueue_execute_end \
		on_switch on_softirq_entry on_softirq_exit on_irq_handler_entry on_irq_handler_exit
}

# For a user without privilege, root pins the filter, and perf record looks for it by task.
test_sample_filter_of_root_and_of_a_user()
{
	native_only "the kernel takes a minute to verify the filter, and perf test also tests it"
	all_only
	start
	start_perf record -N -e task-clock --filter 'ip > 0' -o "$TMP/filtered" -- "${WORKLOAD[@]}"
	wait "${USER_PIDS[-1]}" || fail "perf record --filter: $(head -n 20 "$TMP/user")"
	check_users perf_sample_filter
	prepare_nobody
	"$PBM_PERF" record --setup-filter pin
	as_nobody env MALLOC_PERTURB_=90 "$PBM_PERF" record -q -N -e task-clock --filter 'ip > 0' -o "$TMP/nobody/data" -- \
		"${WORKLOAD[@]}"
	perfdata types "$TMP/nobody/data" | grep -x 9 >"$TMP/samples" || fail "no sample of the user was recorded"
}

USER_PIDS=()
run_tests
