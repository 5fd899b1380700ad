#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Without -a, perf sees programs that load and unload in tasks, or on CPUs, that it does not record.
# Of a recorded task that runs one program after the other, each sample has the program that ran at
# its time. The kernel often gives a program the address of the one before.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/nobody.sh"
. "$(dirname "$0")/../../lib/recording.sh"
. "$(dirname "$0")/../../lib/top.sh"

# The recorded task does what this shell writes to RUN.
RUNNER=(python3 -S "$SELFTESTS/lib/runner.py")

open_runner()
{
	rm -f "$TMP/run" "$TMP/ran"
	mkfifo "$TMP/run" "$TMP/ran"
	exec {RUN}<>"$TMP/run" {RAN}<>"$TMP/ran"
	: >"$TMP/rounds"
}

await_runner()
{
	local answer

	read -r -t "$DEADLINE" -u "$RAN" answer || fail "the recorded task does not answer"
	[[ $answer = ready ]] || fail "the recorded task says '$answer'"
}

# start_runner COMMAND...: start it with this command in front. Sets RUNNER_PID.
start_runner()
{
	open_runner
	"$@" "${RUNNER[@]}" <"$TMP/run" >"$TMP/ran" {RUN}>&- {RAN}>&- &
	RUNNER_PID=$!
	await_runner
}

# Print the time of perf record -k mono.
now()
{
	python3 -S -c 'import time; print(time.monotonic())'
}

# run_program VERSION TIMES: let the runner run the program HELD_IDS[0], and note when it ran.
run_program()
{
	local begin

	begin=$(now)
	echo "${HELD_IDS[0]} $2" >&"$RUN"
	await_runner
	echo "$begin $(now) ${HELD_IDS[0]} $1" >>"$TMP/rounds"
}

# replace_programs: version 2.0 runs as long as 1.0 in each round, and one of 1.0 is replaced before it
# first runs.
replace_programs()
{
	local version

	for version in 1 2 1 2 1 2; do
		hold "busy_v$version"
		run_program "$version.0" $((40000 / SCALE))
		release
		hold busy_v1
		release
	done
}

end_runner()
{
	echo quit >&"$RUN"
	wait "$RUNNER_PID"
	exec {RUN}>&- {RAN}>&-
}

# check_samples FILE...: each sample of the kernel while a program ran, and in no function of the kernel,
# is in that program, and each program has samples.
check_samples()
{
	local file

	for file; do
		"$PBM_PERF" script --ns -F time,ip,sym,bpf_prog,bpf_metadata -i "$file" || fail "perf script: $file"
	done >"$TMP/samples"
	python3 -S - "$TMP/rounds" "$TMP/samples" <<-'END'
		import re, sys
		rounds = [line.split() for line in open(sys.argv[1])]
		seen, wrong = [0] * len(rounds), {}
		for line in open(sys.argv[2]):
		    match = re.fullmatch(r" *(\d+\.\d+): +(\S+) (.*?) +([0-9a-f]{1,16}) (.*)\n", line)
		    if not match:
		        sys.exit(f"unexpected line: {line}")
		    time, prog, text, ip, symbol = match.groups()
		    if len(ip) < 16 or not re.match(r"\[unknown\]|bpf_prog_[0-9a-f]{16}_", symbol):
		        continue
		    for i, (begin, end, id, version) in enumerate(rounds):
		        if float(begin) <= float(time) <= float(end):
		            if prog == id + ":busy" and f'version="{version}"' in text:
		                seen[i] += 1
		            else:
		                answer = f"{prog} {text} at {ip} {symbol} instead of {id}:busy {version}"
		                wrong[answer] = wrong.get(answer, 0) + 1
		print("right samples in each round:", *seen)
		print(*(f"{wrong[answer]} are {answer}" for answer in wrong), sep="\n")
		sys.exit(bool(wrong) or not all(seen))
	END
}

# replace_while_recording OPTION...: the same while perf records to $TMP/data
replace_while_recording()
{
	start_recording "${FILE:-$TMP/data}" -F 2000 "$@"
	replace_programs
	await_read
	stop_recording
	end_runner
}

# check_target OPTION...: record what the runner runs. Its id is the last argument of perf record.
check_target()
{
	start_runner
	replace_while_recording "$@" "$RUNNER_PID"
	check_samples "$TMP/data"
}

test_programs_that_a_recorded_process_runs()	{ check_target -p; }
test_programs_that_a_recorded_thread_runs()	{ check_target -t; }
# Samples have registers then, but the event that sees the loads has no samples.
test_programs_that_a_process_runs_while_registers_are_recorded()	{ check_target --user-regs -p; }

test_programs_in_a_pipe()
{
	start_runner
	FILE=- replace_while_recording -p "$RUNNER_PID"
	"$PBM_PERF" inject -i - -o "$TMP/data" <"$TMP/stdout"
	check_samples "$TMP/data"
}

# perf record leaves the first event out. The second one has another sample id.
test_loads_are_seen_once_if_the_first_event_cannot_be_opened()
{
	local EVENTS=(-e software/config=0x63/ -e sched:sched_switch)

	"$PBM_PERF" check -q feature libtraceevent || skip "this perf is built without libtraceevent"
	start_runner
	start_recording "$TMP/data" -p "$RUNNER_PID"
	hold busy_v1
	await_read
	control stop
	wait "$PERF_PID" || fail "perf record: $(cat "$TMP/perf.err")"
	PERF_PID=
	end_runner
	grep -q 'software/config=0x63/' "$TMP/perf.err" || fail "all events were opened: $(cat "$TMP/perf.err")"
	"$PBM_PERF" script --show-bpf-events -i "$TMP/data" >"$TMP/out"
	sed -n "s/^ *\([^ ]*\) .*PERF_RECORD_KSYMBOL .* name \($(symbol_of 0)\)\$/\1 \2/p" "$TMP/out" >"$TMP/got"
	echo ":$HOLDER_PID $(symbol_of 0)" >"$TMP/want"
	same "tasks that load" "$TMP/want" "$TMP/got"
}

test_programs_that_a_recorded_command_runs()
{
	open_runner
	# shellcheck disable=SC2016 # for the inner shell
	start_recording "$TMP/data" -F 2000 -- \
		sh -c 'exec <"$0" >"$1"; shift; exec "$@"' "$TMP/run" "$TMP/ran" "${RUNNER[@]}"
	await_runner
	replace_programs
	await_read
	RUNNER_PID=$PERF_PID PERF_PID=
	end_runner
	check_messages "$TMP/perf.err"
	check_samples "$TMP/data"
}

# Start the runner on the first CPU, and run everything else on the last one. Sets RUNNER_CPU.
start_runner_on_another_cpu()
{
	local cpus=/sys/devices/system/cpu/online

	[[ $(<$cpus) = *[,-]* ]] || skip "this machine has only one CPU"
	RUNNER_CPU=$(sed 's/[,-].*//' $cpus)
	start_runner taskset -c "$RUNNER_CPU"
	taskset -p -c "$(sed 's/.*[,-]//' $cpus)" "$BASHPID"
}

test_programs_that_load_on_another_cpu()
{
	start_runner_on_another_cpu
	replace_while_recording -C "$RUNNER_CPU"
	check_samples "$TMP/data"
}

# The side band thread has this event and the one of all tasks. What runs beside the runner closes many files,
# and the runner closes one each time that it has run a program.
test_programs_while_an_event_of_the_recorded_process_switches_files()
{
	local files

	"$PBM_PERF" check -q feature libtraceevent || skip "this perf is built without libtraceevent"
	rm -f "$TMP"/data.2*
	start_runner
	start_recording "$TMP/data" -F 2000 -p "$RUNNER_PID" --switch-output-event=syscalls:sys_enter_close
	hold simple
	await_read
	[[ -z $(list_files) ]] || fail "an event of other tasks has switched files"
	release
	replace_programs
	await_read
	stop_recording
	end_runner
	mapfile -t files < <(list_files)
	(("${#files[@]}" > 1)) || fail "perf record wrote one file"
	check_samples "${files[@]}"
}

# The file has no new event, so other perfs read it as before.
test_files_and_reports_do_not_show_the_event()
{
	local name

	unpatched_perf
	for name in PBM_PERF PBM_UNPATCHED_PERF; do
		"${!name}" record -q -N -e cpu-clock -o "$TMP/data" -- "${WORKLOAD[@]}"
		# Only the tracking event's bits differ.
		"$PBM_PERF" evlist -v -i "$TMP/data" | sed 's/, ksymbol: 1, bpf_event: 1//' >"$TMP/$name"
	done
	same "perf evlist" "$TMP/PBM_UNPATCHED_PERF" "$TMP/PBM_PERF"
	for name in data pipe; do
		"$PBM_PERF" record -q -N -e cpu-clock -e page-faults -c 10000 --bpf-metadata=header \
			-o "$([[ $name = pipe ]] && echo - || echo "$TMP/data")" -- "${WORKLOAD[@]}" >"$TMP/pipe"
		"$PBM_PERF" script --show-task-events --show-mmap-events -i "$TMP/$name" >"$TMP/want"
		"$PBM_UNPATCHED_PERF" script --show-task-events --show-mmap-events -i "$TMP/$name" >"$TMP/got"
		[[ -s $TMP/want ]] || fail "$name has no event"
		same "perf script of the $name" "$TMP/want" "$TMP/got"
	done
}

# want_bits NUMBER FILE: the tracking event has the bits of the event (1), or not (0)
want_bits()
{
	"$PBM_PERF" evlist -v -i "$2" >"$TMP/got"
	(($(grep -c 'ksymbol: 1' "$TMP/got" || true) == $1)) || fail "not $1 events with ksymbol: $(cat "$TMP/got")"
}

# The buffers of the event must not use up the memory that the user may lock for those of samples.
test_who_may_not_lock_memory_gets_no_event()
{
	setpriv --inh-caps -ipc_lock --bounding-set -ipc_lock \
		"$PBM_PERF" record -q -N -e cpu-clock -o "$TMP/data" -- "${WORKLOAD[@]}"
	want_bits 1 "$TMP/data"
}

test_perf_record_ends_with_an_error_if_nothing_can_be_mapped()
{
	local status=0

	native_only "strace stops perf at each system call"
	command -v strace >/dev/null || skip "strace is not installed"
	strace -qq -f -o "$TMP/strace" -P 'anon_inode:[perf_event]' -e trace=mmap -e inject=mmap:error=ENOMEM \
		"$PBM_PERF" record -N -e cpu-clock -e page-faults -o "$TMP/data" -- "${WORKLOAD[@]}" \
		2>"$TMP/perf.err" || status=$?
	grep -q INJECTED "$TMP/strace" || fail "no mmap() failed"
	((status == 255)) || fail "the exit status is $status: $(cat "$TMP/perf.err")"
	grep -q 'failed to mmap' "$TMP/perf.err" || fail "perf says: $(cat "$TMP/perf.err")"
}

WARNING="BPF programs that other tasks load are not recorded"

# want_warnings NUMBER FILE: perf report and perf script print NUMBER warnings, but none if they do not show
# BPF programs.
want_warnings()
{
	local command number

	for command in "report --stdio -s bpf_prog" "report --stdio -s comm,bpf_metadata" "script -F comm,bpf_prog" \
		"script -F comm,bpf_metadata" "report --stdio -s comm" "script -F comm"; do
		number=$1
		[[ $command = *bpf_* ]] || number=0
		# shellcheck disable=SC2086 # words
		"$PBM_PERF" $command -i "$2" >"$TMP/out" 2>"$TMP/err"
		[[ -s $TMP/out ]] || fail "$command: no output"
		[[ $(grep -c "$WARNING" "$TMP/err") = "$number" ]] ||
			fail "$command: not $number warnings: $(cat "$TMP/err")"
	done
}

# The options that leave the event out; the tracking event then has its bits. perf warns if it does not see
# the programs of other tasks, either.
test_options_that_leave_the_event_out_and_warnings_of_reports()
{
	local bits warnings options

	while read -r bits warnings options; do
		echo "perf record $options"
		# shellcheck disable=SC2086 # words
		"$PBM_PERF" record -q -N -e cpu-clock $options -o "$TMP/data" -- "${WORKLOAD[@]}"
		want_bits "$bits" "$TMP/data"
		want_warnings "$warnings" "$TMP/data"
	done <<-END
		0 0
		1 0 -a
		1 0 -a --no-timestamp
		1 0 --all-user
		1 1 --per-thread
		1 1 --no-timestamp
		1 1 --bpf-metadata=none
		1 0 --no-bpf-event
	END
	"$PBM_PERF" record -q -N -e cpu-clock --per-thread -o - -- "${WORKLOAD[@]}" >"$TMP/pipe"
	want_warnings 1 "$TMP/pipe"
	unpatched_perf
	"$PBM_UNPATCHED_PERF" record -q -N -e cpu-clock -o "$TMP/data" -- "${WORKLOAD[@]}"
	want_warnings 1 "$TMP/data"
	"$PBM_UNPATCHED_PERF" record -q -N -a -e cpu-clock -o "$TMP/data" -- "${WORKLOAD[@]}"
	want_warnings 0 "$TMP/data"
}

belongs_to_nobody()
{
	[[ $(stat -c %U "/proc/$1") = nobody ]]
}

test_perf_top_warns_if_programs_of_other_tasks_are_not_seen()
{
	local key number paranoid

	native_only "the test changes kernel.perf_event_paranoid"
	prepare_nobody
	paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
	# shellcheck disable=SC2064 # expand the variable now
	trap "echo $paranoid >/proc/sys/kernel/perf_event_paranoid; end_test" EXIT
	# Users may see the kernel in their own tasks.
	echo 1 >/proc/sys/kernel/perf_event_paranoid
	"${AS_NOBODY[@]}" sh -c 'while :; do :; done' &
	NOBODY_PID=$!
	await "the process of nobody" belongs_to_nobody "$NOBODY_PID"
	TOP=("${AS_NOBODY[@]}" "${TOP[@]}")
	while read -r number key; do
		start_top -e cpu-clock -p "$NOBODY_PID" -s "$key"
		await "samples in perf top" grep -q -E '^ +[0-9.]+%' "$TMP/top"
		stop_top
		[[ $(grep -c "$WARNING" "$TMP/top") = "$number" ]] || fail "$key: not $number warnings"
	done <<-END
		1 bpf_prog
		0 comm
	END
}

# top_shows_both OPTION...: fail unless perf top shows both versions of the program, one after the other
top_shows_both()
{
	local version

	start_top -F 2000 -d 1 --stdio -s bpf_metadata -e cpu-clock "$@"
	for version in 1 2; do
		hold "busy_v$version"
		await "version $version.0 in perf top" runs_and_shows "$version"
		release
	done
	stop_top
	end_runner
}

runs_and_shows()
{
	run_program "$1.0" 20000
	grep -q "version=\"$1.0\"" "$TMP/top"
}

test_perf_top_of_a_process()
{
	start_runner
	top_shows_both -p "$RUNNER_PID"
	grep -q -E '[0-9]+Hz' "$TMP/top" || fail "perf top does not show the frequency"
}

test_perf_top_of_a_cpu()
{
	start_runner_on_another_cpu
	top_shows_both -C "$RUNNER_CPU"
}

# The events of other tasks don't end with the workload. Programs load faster than perf can write.
test_perf_ends_while_programs_load_and_the_reader_is_slow()
{
	local status=0

	while :; do
		"$SELFTESTS/lib/inherit.py" -n 2000 true >/dev/null
	done </dev/null &
	timeout -s KILL "$DEADLINE" "$PBM_PERF" record -N -q -e cpu-clock -o - -- true |
		while dd bs=64k count=1 status=none of="$TMP/piece" && [[ -s $TMP/piece ]]; do
			sleep 0.2
		done || status=$?
	((status == 0)) || fail "perf record doesn't end: status $status"
}

run_tests
