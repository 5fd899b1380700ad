#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf record --switch-output: each file has the metadata of all programs that were loaded at some
# time while perf wrote the file, even of those unloaded since. Records are of no other programs. The
# header can have programs of earlier files, as it has their bpf_prog_info.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

start_switching()
{
	rm -f "$TMP"/data.2*
	start_recording "$TMP/data" -a "$@"
}

# switch_by_signal N: make perf switch files. Afterwards there must be N files.
switch_by_signal()
{
	kill -USR2 "$PERF_PID"
	await "file $1" has_files "$1"
	await_new_name
	control ping
}

# Check the records of file $1. A file that is closed at once may have no sample. A file has no
# metadata record if no program was loaded while perf wrote it.
check_file()
{
	perfdata types "$1" >"$TMP/types"
	grep -q -x 84 "$TMP/types" || return 0
	if grep -q -x 9 "$TMP/types"; then
		perfdata check "$1"
	else
		perfdata check-records "$1"
	fi
}

check_files()
{
	local files file

	mapfile -t files < <(list_files)
	(("${#files[@]}" >= $1)) || fail "${#files[@]} files, not $1"
	check_churn "$TMP/list" "${files[@]}"
	for file in "${files[@]}"; do
		check_file "$file"
	done
}

nth_file()
{
	list_files | sed -n "$1p"
}

# check_header N PROGRAM...: fail unless file N has these programs, and maybe others, in its header
check_header()
{
	"$PBM_PERF" report --header-only -i "$(nth_file "$1")" >"$TMP/header"
	sed -n 's/^# bpf_metadata [0-9]* churn_[0-9]*: \(.*, \)\?number=\([0-9]*\)\(,.*\)\?$/\2/p' "$TMP/header" |
		grep -x -E -e "$(IFS='|'; echo "${*:2}")" | sort -n >"$TMP/got" || :
	printf '%s\n' "${@:2}" | sed '/^$/d' >"$TMP/want"
	same "programs in the header of file $1" "$TMP/want" "$TMP/got"
}

# check_numbers N PROGRAM...: fail unless file N has these programs in its records and in its header
check_numbers()
{
	printf '%s\n' "${@:2}" | sed '/^$/d' >"$TMP/want"
	perfdata records "$(nth_file "$1")" >"$TMP/records"
	sed -n 's/^bpf_prog_[0-9a-f]*_churn_\([0-9]*\)\t.*/\1/p' "$TMP/records" | sort -n >"$TMP/got"
	same "programs with records in file $1" "$TMP/want" "$TMP/got"
	check_header "$@"
}

# files_have_their_programs OPTION...: with these options, each file has the programs that were loaded while
# perf wrote it.
files_have_their_programs()
{
	start_switching --switch-output "$@"
	churn -n 2
	switch_by_signal 1
	churn -n 2 -f 3
	switch_by_signal 2
	switch_by_signal 3
	churn -n 2 -f 5
	stop_recording
	check_files 4
	check_numbers 1 1 2
	check_numbers 2 3 4
	check_numbers 3
	check_numbers 4 5 6
}

test_each_file_has_the_programs_that_were_loaded_while_perf_wrote_it()	{ files_have_their_programs; }
test_files_of_overwrite_have_their_programs()	{ files_have_their_programs --overwrite; }

test_programs_that_stay_loaded_are_in_each_file()
{
	local n

	start_switching --switch-output
	start_churn -s 3 -n 1 -w
	await_churn waiting
	await_read
	tell_churn
	await_churn ready
	switch_by_signal 1
	churn -n 3 -f 5
	switch_by_signal 2
	stop_recording
	check_files 3
	check_numbers 1 1 2 3 4
	check_numbers 2 2 3 4 5 6 7
	check_numbers 3 2 3 4
	for n in 2 3; do
		perfdata places "$(nth_file $n)" | grep '_churn_[234]$' >"$TMP/places"
		[[ $(cut -f 1 "$TMP/places" | tr '\n' ' ') = 'begin begin begin ' ]] ||
			fail "file $n has not one record of each program before the samples: $(cat "$TMP/places")"
	done
}

# Hide the other programs of the machine from perf.
test_a_file_without_programs_does_not_change_the_next_one()
{
	# BPF_PROG_GET_NEXT_ID, ENOENT
	deny_bpf 11 2
	PBM_PERF=$TMP/denied-perf start_switching --switch-output
	switch_by_signal 1
	churn -n 2
	stop_recording
	perfdata programs "$(nth_file 1)" >"$TMP/programs"
	[[ ! -s $TMP/programs ]] || skip "somebody else loads programs: $(cat "$TMP/programs")"
	check_files 2
	check_numbers 1
	check_numbers 2 1 2
}

# perf looks again for maps of a new program, even if a file has ended meanwhile.
test_map_that_is_bound_after_a_switch()
{
	start_switching --switch-output
	start_churn -s 1 -f 760002 -b wait
	await_churn waiting
	switch_by_signal 1
	await_read
	tell_churn
	await_churn ready
	stop_recording
	perfdata all-entries "$(nth_file 1)" >"$TMP/first"
	! grep -e churn_760002 "$TMP/first" || fail "file 1 already has the metadata"
	perfdata all-entries "$(nth_file 2)" >"$TMP/second"
	grep -P "_churn_760002\tnumber\t760002\$" "$TMP/second" || fail "no metadata in file 2"
	check_header 2 760002
}

# Print the memory of perf in KiB, without mapped files.
anonymous_memory()
{
	awk '/^RssAnon:/ { print $2 }' "/proc/$PERF_PID/status"
}

dumped()
{
	(($(grep -c 'perf record: Dump ' "$TMP/perf.err" || true) >= $1))
}

# For each file, perf synthesizes the records of three programs with 1 MB of metadata. It removes all
# files but the last two.
test_files_that_perf_removes_leave_nothing_in_memory_or_in_other_files()
{
	local early late n

	hold -n 3 large
	start_switching --switch-output --switch-max-files 2
	for n in {1..20}; do
		((n < 17)) || churn -n 1 -f "$n"
		kill -USR2 "$PERF_PID"
		await "dump $n" dumped "$n"
		control ping
		((n != 5)) || early=$(anonymous_memory)
	done
	late=$(anonymous_memory)
	echo "$early KiB after 5 files, $late KiB after 20"
	stop_recording
	(($(list_files | wc -l) == 2)) || fail "not 2 files: $(list_files)"
	[[ $(perfdata records "$(nth_file 1)" | cut -f 4 | grep -x -F -c "${HELD_IDS[0]}") != 0 ]] ||
		fail "the large program has no record"
	# The other programs are in files that perf has removed.
	sed -i '/^20 /!d' "$TMP/list"
	check_files 2
	check_numbers 1 20
	check_numbers 2
	# AddressSanitizer keeps what was freed.
	[[ -n ${PBM_SANITIZED:-} ]] || ((late < early + 15 * 1024)) ||
		fail "perf record grows by a megabyte with each file"
}

test_programs_that_load_while_perf_switches()
{
	local churn

	start_switching --switch-output
	# Some programs stay until the last file.
	start_churn -s 20 -f 1001 -t 1000
	"$OUTPUT/churn" -n $((200 / SCALE)) -t 1000 </dev/null >>"$TMP/list" &
	churn=$!
	while [[ -e /proc/$churn ]]; do
		kill -USR2 "$PERF_PID"
		# perf may answer once before it switches.
		control ping
		control ping
		await_new_name
	done
	wait "$churn"
	await_churn ready
	stop_recording
	check_files 4
}

# strace stops perf at each system call, also when perf writes to another file.
main_thread_waits()
{
	local nr fd

	grep -q '^State:.*tracing stop' "/proc/$PERF_PID/task/$PERF_PID/status" &&
		read -r nr fd _ <"/proc/$PERF_PID/task/$PERF_PID/syscall" &&
		[[ $nr = 1 && "/proc/$PERF_PID/fd/$((fd))" -ef "$TMP/data" ]]
}

# The program loads after perf has read the buffer of the program's CPU, so its events are in the
# next file, and its record is in the first one. When that file ends, the program is gone.
test_a_program_that_loads_after_perf_has_read_the_buffer_is_in_the_next_file()
{
	native_only "the test does not depend on the kernel"
	command -v strace >/dev/null || skip "strace is not installed"
	start_switching --switch-output
	kill -STOP "$PERF_PID"
	kill -USR2 "$PERF_PID"
	strace -qq -o /dev/null -P "$TMP/data" -e signal=none \
		-e inject=write:delay_enter=60000000:when=1 -p "$PERF_PID" &
	TRACER=$!
	await "strace" is_traced "$PERF_PID"
	kill -CONT "$PERF_PID"
	# Another thread may have received the signal, so also wake the main thread by a command.
	send_control ping
	await "perf in a slow write" main_thread_waits
	taskset -p -c "$(sed 's/[,-].*//' /sys/devices/system/cpu/online)" "$BASHPID"
	churn -n 1
	# Without strace, the write goes on.
	kill "$TRACER"
	wait "$TRACER" || :
	await_ack
	stop_recording
	perfdata ksymbols "$(nth_file 2)" >"$TMP/ksymbols"
	grep -q '_churn_1$' "$TMP/ksymbols" || fail "the program is not in the second file"
	check_file "$(nth_file 2)"
	check_header 2 1
}

# churn_and_switch N: load N programs, and a quarter as many that stay, until perf has switched twice. On a
# slow machine, perf also switches slowly.
churn_and_switch()
{
	start_churn -n "$1" -s $(($1 / 4)) -t 2500
	await_churn ready
	await "two switches" has_files 2
	stop_recording
	check_files 3
}

# The first alarm(2) takes two seconds, so the signal comes before this call returns. perf must be
# ready to switch files by then.
test_switch_by_time_after_a_slow_start()
{
	native_only "strace stops perf at each system call"
	command -v strace >/dev/null || skip "strace is not installed"
	cat >"$TMP/slow-perf" <<-END
		#!/bin/sh
		export ASAN_OPTIONS="\$ASAN_OPTIONS:detect_leaks=0"
		exec strace -D -f --seccomp-bpf -qq -o "$TMP/strace" -e trace=alarm \\
			-e inject=alarm:delay_exit=2000000:when=1 "$PBM_PERF" "\$@"
	END
	chmod +x "$TMP/slow-perf"
	PBM_PERF=$TMP/slow-perf start_switching --switch-output=1s
	churn_and_switch $((400 / SCALE))
	grep -q 'alarm(1).*(INJECTED\|DELAYED)' "$TMP/strace" || fail "no slow start: $(cat "$TMP/strace")"
}

test_switch_by_size()
{
	local file

	start_switching -m 64 -F 4000 --switch-output=200K
	churn_and_switch 40
	# What perf writes at the end of a file must not make it switch again.
	list_files | sed '$d' | while read -r file; do
		(($(stat -c %s "$file") >= 200 * 1024)) || fail "$file has only $(stat -c %s "$file") bytes"
	done
}

run_tests
