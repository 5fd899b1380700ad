#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs load, unload or get their maps while perf records. The recording has the set (metadata)
# of each program under the name in its KSYMBOL record. churn numbers the sets, see churn.c.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

check_data()
{
	check_churn "$TMP/list" "$TMP/data"
	perfdata check "$TMP/data"
}

# Succeed if only the $1 programs that stay are loaded of those in $TMP/list.
others_have_ended()
{
	"$BPFTOOL" prog show | sed -n 's/^\([0-9]*\): .*/\1/p' >"$TMP/programs"
	cut -d ' ' -f 2 "$TMP/list" >"$TMP/ids"
	(($(grep -c -x -F -f "$TMP/ids" "$TMP/programs") == $1))
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

# perf has read each program more than once, and must not keep it open when it is unloaded. Many that
# end sooner do not push out its set.
test_programs_that_load_and_unload()
{
	start_recording "$TMP/data" -a
	start_churn -s 3
	await_churn ready
	churn -n 20 -f 4 -t 100
	"$OUTPUT/churn" -n 100 -f 24 -t 500 -l 1 </dev/null >>"$TMP/list"
	await "the end of all programs except those that stay" others_have_ended 3
	interrupt_recording
	check_data
}

# loads_are_recorded OPTION...: with these options, perf records programs that load and unload, and
# programs that load just before the end. perfdata.py cannot read files of -z and --threads.
loads_are_recorded()
{
	start_recording "$TMP/data" "$@"
	churn -n 3 "${CHURN[@]}"
	start_churn -s 3 -f 4 "${CHURN[@]}"
	await_churn ready
	stop_recording
	show "$TMP/data"
	check_churn "$TMP/list" "$TMP/data.script"
	case $* in
	*-z|*--threads)	;;
	*)		check_data ;;
	esac
}

# many_programs FILE N: load N programs in N * 10 ms while perf records, and a quarter as many that
# stay. Most can end before perf has read them.
many_programs()
{
	all_only
	start_recording "$1" -a
	start_churn -s $(($2 / 4)) -t $(($2 * 10))
	"$OUTPUT/churn" -n "$2" -f 10001 -t $(($2 * 10)) -l 0,5,20,100,300,1,50,150,10 </dev/null >>"$TMP/list"
	await_churn ready
	stop_recording
	[[ $1 = "$TMP/data" ]] || mv "$TMP/stdout" "$TMP/data"
	check_data
}

CHURN=()

test_2000_programs_that_load_in_20_seconds()	{ many_programs "$TMP/data" 2000; }
test_400_programs_that_load_in_4_seconds_in_a_pipe()	{ many_programs - 400; }
test_programs_that_load_with_threads()		{ loads_are_recorded -a --threads; }
test_programs_that_load_with_overwrite()	{ loads_are_recorded -a --overwrite; }
test_programs_that_load_with_tail_synthesize()	{ loads_are_recorded -a --tail-synthesize; }

test_programs_that_refer_to_their_maps_at_load()
{
	CHURN=(-b load)
	loads_are_recorded -a
}

test_programs_that_load_with_compression()
{
	"$PBM_PERF" check -q feature zstd || skip "this perf is built without zstd"
	loads_are_recorded -a -z
}

test_programs_that_load_with_off_cpu()
{
	"$PBM_PERF" check -q feature bpf_skeletons || skip "this perf is built without BPF skeletons"
	[[ -e /sys/kernel/btf/vmlinux ]] || skip "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
	loads_are_recorded -a --off-cpu
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
	"$PBM_PERF" report --stdio -s bpf_prog,bpf_metadata -i "$TMP/data" >"$TMP/out"
	grep -E -e "% +${HELD_IDS[0]} busy +\(none\)" "$TMP/out" ||
		fail "perf report shows: $(head -n 30 "$TMP/out")"
}

shows_record_of()
{
	control ping
	grep -q -e "^PERF_RECORD_BPF_METADATA prog $1\$" "$TMP/script"
}

# A reader of the pipe gets the metadata while perf records.
test_programs_that_load_while_a_pipe_is_read()
{
	local reader

	hold simple
	rm -f "$TMP/stdout"
	mkfifo "$TMP/stdout"
	tee "$TMP/data" <"$TMP/stdout" |
		"$PBM_PERF" script --show-bpf-events -i - >"$TMP/script" 2>"$TMP/script.err" &
	reader=$!
	start_recording - -a
	await "the record in perf script" shows_record_of "$(symbol_of 0)"
	release
	churn -n 3
	start_churn -s 3 -f 4
	await_churn ready
	stop_recording
	wait "$reader" || fail "perf script: $(cat "$TMP/script.err")"
	rm "$TMP/stdout"
	check_churn "$TMP/list" "$TMP/script"
	check_data
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

# The program has its first map when perf looks first.
test_second_map_that_is_bound_after_the_first_look()
{
	map_is_bound_late -b load -m
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

# The map of a program is bound after perf's last look during the recording. perf looks again at the end.
# That of another is not bound, but the BTF of the program describes it.
test_map_that_is_bound_after_the_last_look_or_not()
{
	start_recording "$TMP/data" -a
	start_churn -s 2 -f 2 -b wait
	await_churn waiting
	await_read
	tell_churn
	await_churn waiting
	await_read
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
	perfdata ksymbols "$TMP/data" | grep -x 'bpf_prog_[0-9a-f]*_churn_3' || fail "the file lacks the program"
	perfdata without "$TMP/data" | cut -f 2 >"$TMP/without"
	! grep -x churn_3 "$TMP/without" || fail "the file says that it has no metadata, which perf can't know"
}

# perf starts, and reads the program, before the map is bound.
test_map_that_is_bound_while_recording_starts()
{
	start_churn -s 1 -b wait
	await_churn waiting
	start_recording "$TMP/data" -a
	tell_churn
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
}

# Print the offset of the end of a file's data, from its header
data_end()
{
	od -A n -t u8 -j 40 -N 16 --endian=little "$1" | awk '{ print $1 + $2 }'
}

# Nine programs have 3 MB of metadata records. They are the last part of the data. perf may write half of
# them.
test_disk_that_is_full_before_all_records_are_written()
{
	local n

	for n in {1..9}; do
		LC_ALL=C sed "s/keys_1025/keys_000$n/g" "$OUTPUT/keys_1025.bpf.o" >"$TMP/keys_$n.bpf.o"
	done
	trap '' XFSZ
	start_recording "$TMP/data" -a
	hold_command "$OUTPUT/hold" "$TMP"/keys_?.bpf.o
	await_read
	prlimit --pid "$PERF_PID" --fsize=$(($(stat -c %s "$TMP/data") + 1500000))
	control stop
	wait "$PERF_PID" || echo "status $?"
	PERF_PID=
	grep -x "Couldn't synthesize the BPF metadata of program [0-9]*." "$TMP/perf.err" ||
		fail "perf says: $(cat "$TMP/perf.err")"
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

# If two perfs record, kernels up to at least v6.18 write oversized events about programs. The programs of
# one are in its workload.
test_programs_that_load_while_two_perfs_record()
{
	local file beside

	start_recording "$TMP/data" -a
	rm -f "$TMP/loader"
	mkfifo "$TMP/loader"
	"$PBM_PERF" record -N -e cpu-clock -F 97 -k mono -o "$TMP/beside" -- \
		"$OUTPUT/churn" -n 12 -l wait <"$TMP/loader" >"$TMP/list" 2>"$TMP/beside.err" &
	beside=$!
	exec {LOADER}>"$TMP/loader"
	await "the workload" grep -q -x waiting "$TMP/list"
	await_read
	PERF_PID=$beside await_read
	echo >&"$LOADER"
	exec {LOADER}>&-
	wait "$beside"
	check_messages "$TMP/beside.err"
	stop_recording
	for file in data beside; do
		check_churn "$TMP/list" "$TMP/$file"
		perfdata check-records "$TMP/$file"
		show "$TMP/$file"
		check_churn "$TMP/list" "$TMP/$file.script"
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
	"$PBM_PEER_PERF" record -N -a -e cpu-clock -F 97 -o "$TMP/beside" -- \
		sh -c 'for i in 1 2 3 4 5; do /bin/true; done'
	stop_recording
	"$PBM_PERF" report --stdio -i "$TMP/data" >"$TMP/out"
	grep -q -e '^# Samples: [1-9]' "$TMP/out"
	# perf reads the build IDs of the newer perf.
	"$PBM_PERF" script --show-mmap-events -i "$TMP/beside" >"$TMP/out"
	grep -q -e 'PERF_RECORD_MMAP2 .* <[0-9a-f]\{40\}>\]: ' "$TMP/out" || fail "no build ID of $PBM_PEER_PERF"
}

slow_reads()
{
	(($(grep -c DELAYED "$TMP/strace" || true) >= $1))
}

# Each bpf() call of perf's side band thread takes 50 ms, and it makes several for each program. So
# when the recording ends, it has not read all programs. It goes on as slowly until perf ends.
test_many_programs_that_load_just_before_the_end()
{
	start_slow_recording delay_enter=50000
	hold_command "$OUTPUT/hold" -d -n 4 numbered.bpf.o
	await "the first read" slow_reads 1
	stop_recording
	printf '%s\n' "${HELD_IDS[@]}" | sort >"$TMP/want"
	perfdata block "$TMP/data" | cut -f 1 | sort -u | grep -x -F -f "$TMP/want" >"$TMP/got" || :
	same "programs in the header" "$TMP/want" "$TMP/got"
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

# perf keeps each program open for its own time, however many load after it and wait for maps.
test_program_is_let_go_while_others_load()
{
	local id others

	start_recording "$TMP/data" -a
	"$OUTPUT/churn" -n 1000 -f 760005 -t 60000 -l 500 -b never </dev/null >"$TMP/others" &
	others=$!
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

# perf reads the programs when they load. Then it has to read each as a program that loaded before, not just
# the first.
test_programs_while_addresses_are_hidden()
{
	start_recording "$TMP/data" -a
	hide_addresses
	hold -n 3 functions
	"${WORKLOAD[@]}"
	stop_recording
	has_metadata_without_addresses "$TMP/data"
	record "$TMP/later"
	has_metadata_without_addresses "$TMP/later"
	[[ $(perfdata block "$TMP/later" | grep -c -P "\tversion\t\"functions\"$") -ge 3 ]] ||
		fail "the header does not have all 3 programs"
}

run_tests
