#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs load, unload or get their maps while perf records. The recording has the set (metadata)
# of each program under the name in its KSYMBOL record. churn numbers the sets, see churn.c.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

# Check the output of perf script, because perfdata.py cannot read files of -z and --threads.
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
	await_read
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

# Each bpf() call of perf's side band thread takes 50 ms, and it makes several for each program. So
# when the recording ends, it has not read all programs. It goes on as slowly until perf ends.
test_many_programs_that_load_just_before_the_end()
{
	start_slow_recording delay_enter=50000
	hold_command "$OUTPUT/hold" -d -n 4 bench_1_1_4_0.bpf.o
	await "the first read" slow_reads 1
	stop_recording
	printf '%s\n' "${HELD_IDS[@]}" | sort >"$TMP/want"
	perfdata block "$TMP/data" | cut -f 1 | sort -u | grep -x -F -f "$TMP/want" >"$TMP/got" || :
	same "programs in the header" "$TMP/want" "$TMP/got"
}

test_program_that_is_unloaded_before_the_end()
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
	"$OUTPUT/churn" -n 100 -f 4 -t 500 -l 1 -p 2 </dev/null >>"$TMP/list"
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# Succeed if none of the programs in $TMP/list is loaded.
programs_have_ended()
{
	"$BPFTOOL" prog show | sed -n 's/^\([0-9]*\): .*/\1/p' >"$TMP/programs"
	cut -d ' ' -f 2 "$TMP/list" >"$TMP/ids"
	! grep -q -x -F -f "$TMP/ids" "$TMP/programs"
}

# perf has read each program more than once, and must not keep it open.
test_perf_record_does_not_keep_unloaded_programs_in_the_kernel()
{
	start_recording "$TMP/data" -a
	churn -n 20 -t 100
	await "the end of all programs" programs_have_ended
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# The file says that the program has no metadata: perf report shows (none), not (unknown).
test_program_without_metadata_that_loads()
{
	start_recording "$TMP/data" -a -F 999
	hold busy
	spend 0 $((300000 / SCALE))
	"${WORKLOAD[@]}"
	await_read
	stop_recording
	perfdata without "$TMP/data" | grep -x -e "${HELD_IDS[0]}"$'\tbusy' || fail "the header lacks the program"
	"$PBM_PERF" data convert --to-json "$TMP/json" -i "$TMP/data"
	python3 -c 'import json, sys
progs = json.load(open(sys.argv[1], encoding="utf-8"))["bpf-metadata"]
assert [p["metadata"] for p in progs if p["id"] == int(sys.argv[2])] == [{}], progs' "$TMP/json" "${HELD_IDS[0]}"
	"$PBM_PERF" report --stdio -s bpf_prog,bpf_metadata -i "$TMP/data" >"$TMP/out"
	grep -E -e "% +${HELD_IDS[0]} busy +\(none\)" "$TMP/out" || fail "perf report shows: $(head -n 30 "$TMP/out")"
}

test_program_of_a_recorded_process()
{
	start_churn -w -n 3 -l wait
	await_churn waiting
	start_recording "$TMP/data" -p "$HOLDER_PID"
	tell_churn
	await_churn waiting
	await_read
	tell_churn
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# start_loaders FILE OPTION...: start perf record, whose workload loads 6 programs in each of two
# processes, and await perf. Sets LOADERS_PID.
start_loaders()
{
	rm -f "$TMP/loaders"
	mkfifo "$TMP/loaders"
	exec {LOADERS}<>"$TMP/loaders"
	"$PBM_PERF" record -N -e cpu-clock -F 97 -k mono "${@:2}" -o "$1" -- \
		"$OUTPUT/churn" -n 12 -p 2 -l wait <"$TMP/loaders" >"$TMP/list" 2>"$TMP/loaders.err" {LOADERS}>&- &
	LOADERS_PID=$!
	await "both processes of the workload" wait_in_list 2
	PERF_PID=$LOADERS_PID await_read
}

wait_in_list()
{
	(($(grep -c -x waiting "$TMP/list" || true) == $1))
}

# Let the workload unload its programs, and await the end of perf record.
end_loaders()
{
	printf '\n\n' >&"$LOADERS"
	exec {LOADERS}>&-
	wait "$LOADERS_PID"
	check_messages "$TMP/loaders.err"
}

test_program_of_the_workload()
{
	start_loaders "$TMP/data"
	end_loaders
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

shows_record_of()
{
	control ping
	grep -q -e "^PERF_RECORD_BPF_METADATA prog $1\$" "$TMP/script"
}

test_live_reader_gets_metadata_while_perf_records()
{
	local reader

	hold simple
	rm -f "$TMP/stdout"
	mkfifo "$TMP/stdout"
	"$PBM_PERF" script --show-bpf-events -i - <"$TMP/stdout" >"$TMP/script" 2>"$TMP/script.err" &
	reader=$!
	start_recording - -a
	await "the record in perf script" shows_record_of "$(symbol_of 0)"
	stop_recording
	wait "$reader" || fail "perf script: $(cat "$TMP/script.err")"
	rm "$TMP/stdout"
}

test_program_that_refers_to_its_map_at_load()
{
	start_recording "$TMP/data" -a
	churn -n 3 -b load
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# map_is_bound_late OPTION...: with this option, churn binds a map when it is told to. Meanwhile, perf
# is stopped: it has looked at the program, and will look again. If this test, which has priority, stops
# perf in another state, it tries again.
map_is_bound_late()
{
	local wait

	renice -n -15 -p "$BASHPID"
	for _ in {1..20}; do
		: >"$TMP/list"
		start_recording "$TMP/data" -a
		start_churn -n 1 -f 2 -l wait "$@"
		await_churn waiting
		kill -STOP "$PERF_PID"
		wait=$(side_band_wait)
		[[ -z $wait ]] || ((wait > 200)) || break
		kill -CONT "$PERF_PID"
		stop_recording
		release
	done
	[[ -n $PERF_PID ]] || fail "perf was not between two looks, twenty times"
	tell_churn
	await_churn waiting
	kill -CONT "$PERF_PID"
	await_read
	tell_churn
	await_churn ready
	stop_recording
}

test_map_that_is_bound_after_the_first_look()
{
	map_is_bound_late -b wait
	check_churn "$TMP/list" "$TMP/data"
}

test_second_map_that_is_bound_after_the_first_look()
{
	map_is_bound_late -m wait
	check_churn --more "$TMP/list" "$TMP/data"
}

# A loader with a CPU quota can stop between the load and the binding until its next period.
test_map_that_is_bound_100_ms_after_the_load()
{
	start_recording "$TMP/data" -a
	churn -n 3 -b 100
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# The map is bound after perf's last look during the recording. perf looks again at the end.
test_map_that_is_bound_after_the_last_look()
{
	start_recording "$TMP/data" -a
	start_churn -s 1 -f 2 -b wait
	await_churn waiting
	await_read
	tell_churn
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# perf starts, and reads the program, before the map is bound.
test_map_that_is_bound_while_recording_starts()
{
	start_churn -s 3 -f 4 -b 800
	start_recording "$TMP/data" -a
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# Print the offset of the end of a file's data, from its header
data_end()
{
	od -A n -t u8 -j 40 -N 16 --endian=little "$1" | awk '{ print $1 + $2 }'
}

# Record nine programs with 3 MB of metadata records. Messages go to $TMP/perf.err.
record_many_keys()
{
	local n

	for n in {1..9}; do
		LC_ALL=C sed "s/keys_1025/keys_000$n/g" "$OUTPUT/keys_1025.bpf.o" >"$TMP/keys_$n.bpf.o"
	done
	start_recording "$TMP/data" -a
	hold_command "$OUTPUT/hold" "$TMP"/keys_?.bpf.o
	control stop
	wait "$PERF_PID" || echo "status $?"
	PERF_PID=
	release
}

# The metadata records are the last part of the data. ulimit -f leaves room for half of them,
# so it does not matter how many events of other processes are before them.
test_disk_that_is_full_before_all_records_are_written()
{
	record_many_keys
	cat >"$TMP/full-perf" <<-END
		#!/bin/bash
		trap '' XFSZ
		ulimit -f $((($(data_end "$TMP/data") - 1500000) / 1024))
		exec "$PBM_PERF" "\$@"
	END
	chmod +x "$TMP/full-perf"
	PBM_PERF=$TMP/full-perf record_many_keys
	grep -x "Couldn't synthesize the BPF metadata of program [0-9]*." "$TMP/perf.err" || fail "perf says: $(cat "$TMP/perf.err")"
	echo "the data ends at $(data_end "$TMP/data"), the file at $(stat -c %s "$TMP/data")"
	(($(data_end "$TMP/data") <= $(stat -c %s "$TMP/data"))) || fail "more data than there is in the file"
	perfdata types "$TMP/data" >"$TMP/types"
	grep -q -x 9 "$TMP/types" || fail "no sample"
}

# A program that loads while perf starts can have two KSYMBOL records: one from perf's main thread,
# which finds the program, and one from the kernel. If the program loads before the side band thread
# starts, perf does not learn of the kernel's record.
test_programs_that_load_while_recording_starts()
{
	for _ in 1 2; do
		: >"$TMP/list"
		start_churn -n $((400 / SCALE)) -t 1000 -l wait
		start_recording "$TMP/data" -a
		await_churn waiting
		await_read
		tell_churn
		await_churn ready
		stop_recording
		check_churn "$TMP/list" "$TMP/data"
		release
	done
}

# record_beside PERF FILE COMMAND...: record with PERF to FILE while the command runs
record_beside()
{
	"$1" record -N -a -e cpu-clock -F 97 -k mono -o "$2" -- "${@:3}" </dev/null >>"$TMP/list" 2>"$TMP/beside.err" ||
		fail "$1 record: $(cat "$TMP/beside.err")"
}

# If two perfs record, kernels up to at least v6.18 write oversized events about programs.
test_programs_that_load_while_two_perfs_record()
{
	local file

	start_recording "$TMP/data" -a
	start_loaders "$TMP/beside" -a
	await_read
	end_loaders
	stop_recording
	for file in data beside; do
		check_churn "$TMP/list" "$TMP/$file"
		perfdata check "$TMP/$file"
		check_shown "$TMP/$file"
		# churn has loaded the programs. perf finds the name "churn" by the sample id of
		# the event.
		sed -n 's/^ *\([^ ]*\) .*PERF_RECORD_KSYMBOL .* flags 0x0 name bpf_prog_[0-9a-f]*_\(churn_.*\)/\1 \2/p' \
			"$TMP/$file.script" | sort -u >"$TMP/got"
		perfdata ksymbols "$TMP/$file" |
			sed -n 's/^bpf_prog_[0-9a-f]*_\(churn_.*\)/churn \1/p' | sort -u >"$TMP/want"
		(($(wc -l <"$TMP/want") >= 12)) || fail "not all programs in $file: $(cat "$TMP/want")"
		same "who loaded what in $file" "$TMP/want" "$TMP/got"
	done
}

# The newer perf asks for build IDs. Kernels up to at least v6.18 then set the flag for build IDs
# in the events of the other recording, too, whose build IDs are garbage.
test_newer_perf_that_records_at_the_same_time()
{
	peer_perf
	start_recording "$TMP/data" -a --no-buildid-mmap
	record_beside "$PBM_PEER_PERF" "$TMP/beside" sh -c 'for i in 1 2 3 4 5; do /bin/true; done'
	stop_recording
	"$PBM_PERF" report --stdio -i "$TMP/data" >"$TMP/out"
	grep -q -e '^# Samples: [1-9]' "$TMP/out"
	# perf reads the build IDs of the newer perf.
	"$PBM_PERF" script --show-mmap-events -i "$TMP/beside" >"$TMP/out"
	grep -q -e 'PERF_RECORD_MMAP2 .* <[0-9a-f]\{40\}>\]: ' "$TMP/out" || fail "no build ID of $PBM_PEER_PERF"
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
	await "the message: Events disabled" grep -q -s -x 'Events disabled' "$TMP/perf.err"
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
	((status == 0 || status == 130)) || fail "perf record ends with status $status"
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

# start_slow_recording INJECTION: strace slows down each bpf() call of the side band thread, and
# writes the calls to $TMP/strace. Sets TRACER.
start_slow_recording()
{
	local thread

	native_only "strace stops perf at each system call"
	command -v strace >/dev/null || skip "strace is not installed"
	start_recording "$TMP/data" -a
	thread=$(find "/proc/$PERF_PID/task" -mindepth 1 -maxdepth 1 ! -name "$PERF_PID" -printf '%f')
	: >"$TMP/strace"
	strace -qq -o "$TMP/strace" -p "$thread" -e trace=bpf -e inject="bpf:$1" &
	TRACER=$!
	await "strace" is_traced "$thread"
}

# A program loads every 50 ms, for longer than await() waits. Each bpf() call of perf takes 60 ms.
test_end_while_programs_load_faster_than_perf_reads_them()
{
	start_slow_recording delay_enter=60000
	start_churn -n $((27 * DEADLINE)) -t $((1350 * DEADLINE)) -l 0
	await "slow reads" slow_reads 3
	interrupt_recording
	kill "$HOLDER_PID" || fail "churn has ended"
}

knows_program()
{
	grep -q "BPF_PROG_GET_FD_BY_ID, {prog_id=$1,.* = [0-9]" "$TMP/strace"
}

program_has_ended()
{
	! "$BPFTOOL" prog show id "$1" >/dev/null 2>&1
}

# perf keeps the program open until its maps are bound. Then it knows that there are none.
test_program_that_unloads_while_perf_reads_it_is_known()
{
	start_slow_recording delay_exit=600000
	hold busy
	await "the first look" knows_program "${HELD_IDS[0]}"
	release
	await "the end of the program" program_has_ended "${HELD_IDS[0]}"
	kill "$TRACER"
	wait "$TRACER" || :
	stop_recording
	perfdata without "$TMP/data" | cut -f 1 | grep -x -e "${HELD_IDS[0]}" ||
		fail "the file does not say that the program has no metadata"
}

# The BTF of the program describes the map.
test_program_whose_map_is_not_bound_when_perf_ends_is_unknown()
{
	start_recording "$TMP/data" -a
	start_churn -s 1 -f 2 -b wait
	await_churn waiting
	await_read
	stop_recording
	perfdata ksymbols "$TMP/data" | grep -x 'bpf_prog_[0-9a-f]*_churn_2' || fail "the file lacks the program"
	perfdata without "$TMP/data" | cut -f 2 >"$TMP/without"
	! grep -x churn_2 "$TMP/without" || fail "the file says that the program has no metadata, which perf can't know"
}

# perf keeps each program open for its own time, however many load after it.
test_program_is_let_go_while_others_load()
{
	local id others

	start_recording "$TMP/data" -a
	"$OUTPUT/churn" -n 1000 -f 760005 -t 60000 -b 500 >"$TMP/others" &
	others=$!
	# shellcheck disable=SC2064 # now
	trap "kill $others; end_test" EXIT
	await "the first of the others" test -s "$TMP/others"
	start_churn -s 1 -f 760004 -b wait
	await_churn waiting
	id=$(sed -n 's/^prog_id:\t//p' "/proc/$HOLDER_PID/fdinfo"/*)
	kill "$HOLDER_PID"
	await "the end of the program" program_has_ended "$id"
	kill -0 "$others" || fail "the other programs have loaded before that"
	stop_recording
}

# New programs that perf keeps open may not take the file descriptors that it needs to read them.
test_programs_that_load_while_few_file_descriptors_are_left()
{
	local fds

	start_recording "$TMP/data" -a
	fds=("/proc/$PERF_PID/fd/"*)
	prlimit --pid "$PERF_PID" --nofile="$((${#fds[@]} + 80))"
	churn -n 400 -t 20
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

test_sample_filter()
{
	native_only "the kernel takes a minute to verify the filter, and perf test also tests it"
	all_only
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
	[[ -e /sys/kernel/btf/vmlinux ]] || skip "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
	start_recording "$TMP/data" -a --off-cpu
	churn -n 3
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# With kptr_restrict 2, bpf_prog_info has no addresses of functions.
hide_addresses()
{
	local restrict

	native_only "the test changes kernel.kptr_restrict"
	restrict=$(cat /proc/sys/kernel/kptr_restrict)
	# shellcheck disable=SC2064 # expand the variable now
	trap "echo $restrict >/proc/sys/kernel/kptr_restrict; abandon_recording; release" EXIT
	echo 2 >/proc/sys/kernel/kptr_restrict
}

# has_metadata_without_addresses FILE: fail unless FILE has the metadata of program HELD_IDS[0]
has_metadata_without_addresses()
{
	perfdata block "$1" | grep -P "^${HELD_IDS[0]}\t.*\tversion\t\"functions\"$"
	perfdata check "$1"
	"$PBM_PERF" report -D -i "$1" >"$TMP/dump"
	grep -q -e "PERF_RECORD_BPF_EVENT type 1, flags 0, id ${HELD_IDS[0]}$" "$TMP/dump" ||
		fail "no PERF_RECORD_BPF_EVENT"
	# Unpatched perf must not crash. It doesn't check that it got the addresses.
	[[ -z ${PBM_UNPATCHED_PERF:-} ]] ||
		"$PBM_UNPATCHED_PERF" report --header-only -i "$1" >"$TMP/out"
}

test_program_that_loads_while_addresses_are_hidden()
{
	start_recording "$TMP/data" -a
	hide_addresses
	hold functions
	"${WORKLOAD[@]}"
	stop_recording
	has_metadata_without_addresses "$TMP/data"
}

# perf has to read each of the programs, not just the first.
test_programs_that_loaded_before_the_recording_while_addresses_are_hidden()
{
	hold -n 3 functions
	hide_addresses
	record "$TMP/data"
	has_metadata_without_addresses "$TMP/data"
	[[ $(perfdata block "$TMP/data" | grep -c -P "\tversion\t\"functions\"$") -ge 3 ]] ||
		fail "the header does not have all 3 programs"
}

run_tests
