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

# perf has read each program more than once, and must not keep it open when it is unloaded. Many that
# end sooner do not push out its set. perf ends by SIGINT, as with Ctrl-C.
test_programs_that_load_and_unload()
{
	local status=0

	start_recording "$TMP/data" -a
	start_churn -s 3
	await_churn ready
	churn -n 20 -f 4 -t 100
	"$OUTPUT/churn" -n 100 -f 24 -t 500 </dev/null >>"$TMP/list"
	await "the end of all programs except those that stay" others_have_ended 3
	kill -INT "$PERF_PID"
	await "the end of perf record" has_ended
	wait "$PERF_PID" || status=$?
	PERF_PID=
	check_messages "$TMP/perf.err"
	((status == 0 || status == 130)) || fail "perf record ends with status $status"
	check_data
}

# loads_are_recorded OPTION...: with these options, perf records programs that load and unload, and programs
# that load just before the end. perfdata.py cannot read files of -z and --threads, and wants a sample.
loads_are_recorded()
{
	start_recording "$TMP/data" -a "$@"
	churn -n 3
	if [[ $* = "-D -1" ]]; then
		control enable
		churn -n 3 -f 7
		control disable
	fi
	start_churn -s 3 -f 4
	await_churn ready
	stop_recording
	show "$TMP/data"
	check_churn "$TMP/list" "$TMP/data.script"
	case $* in
	-z|--threads|"-D -1")	;;
	*)			check_data ;;
	esac
}

test_programs_that_load_with_threads()		{ loads_are_recorded --threads; }
test_programs_that_load_with_overwrite()	{ loads_are_recorded --overwrite; }
test_programs_that_load_with_tail_synthesize()	{ loads_are_recorded --tail-synthesize; }
test_programs_that_load_while_events_are_disabled()	{ loads_are_recorded -D -1; }

test_programs_that_load_with_compression()
{
	"$PBM_PERF" check -q feature zstd || skip "this perf is built without zstd"
	loads_are_recorded -z
}

test_programs_that_load_with_off_cpu()
{
	"$PBM_PERF" check -q feature bpf_skeletons || skip "this perf is built without BPF skeletons"
	[[ -e /sys/kernel/btf/vmlinux ]] || skip "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
	loads_are_recorded --off-cpu
}

# The file says that the program has no metadata: perf report shows (none), not (unknown).
test_program_without_metadata_that_loads()
{
	start_recording "$TMP/data" -a
	hold busy
	await_read
	stop_recording
	perfdata without "$TMP/data" | grep -x -e "${HELD_IDS[0]}"$'\tbusy' || fail "the header lacks the program"
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

# A loader with a CPU quota can stop between the load and the binding until its next period. perf has looked
# at the program, and looks again. One of the programs refers to another map, which perf has found.
test_map_that_is_bound_100_ms_after_the_load()
{
	start_recording "$TMP/data" -a
	churn -n 3 -b 100
	stop_recording
	check_data
}

# perf keeps the program open. When it looks again, 200 ms after the load, the program is unloaded. perf may be
# late for some of them.
test_program_that_unloads_before_perf_looks_again()
{
	start_recording "$TMP/data" -a
	"$OUTPUT/churn" -n 3 -t 750 -b 100 </dev/null >>"$TMP/list"
	await_read
	stop_recording
	check_data
	grep -q 'short$' "$TMP/list" || fail "churn was too slow"
	perfdata block "$TMP/data" >"$TMP/block"
	grep -P '\tchurn_[0-9]*\t.*\tnumber\t' "$TMP/block" || fail "no program has a set"
}

# The map of a program is bound after perf's last look during the recording. perf looks again at the end.
# That of another is not bound, but the BTF of the program describes it.
test_map_that_is_bound_after_the_last_look_or_not()
{
	start_recording "$TMP/data" -a
	start_churn -s 2 -f 3 -b wait
	await_churn waiting
	await_read
	tell_churn
	await_churn waiting
	await_read
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
	perfdata ksymbols "$TMP/data" | grep -x 'bpf_prog_[0-9a-f]*_churn_4' || fail "the file lacks the program"
	perfdata without "$TMP/data" | cut -f 2 >"$TMP/without"
	! grep -x churn_4 "$TMP/without" || fail "the file says that it has no metadata, which perf can't know"
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
	trap '' XFSZ
	start_recording "$TMP/data" -a
	hold -n 9 keys_1025
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
	start_churn -n $((400 / SCALE)) -t 1000 -w
	start_recording "$TMP/data" -a
	await_churn waiting
	await_read
	tell_churn
	await_churn ready
	stop_recording
	check_churn "$TMP/list" "$TMP/data"
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
		"$OUTPUT/churn" -n 12 -w <"$TMP/loader" >"$TMP/list" 2>"$TMP/beside.err" &
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
	hold -n 4 simple
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
	start_churn -n $((27 * DEADLINE)) -t $((1350 * DEADLINE))
	await "slow reads" slow_reads 3
	stop_recording
	kill "$HOLDER_PID" || fail "churn has ended"
}

program_has_ended()
{
	! "$BPFTOOL" prog show id "$1" >/dev/null 2>&1
}

# perf keeps each program open for its own time, however many load after it and wait for maps.
test_program_is_let_go_while_others_load()
{
	local id others

	start_recording "$TMP/data" -a
	"$OUTPUT/churn" -n 1000 -f 760005 -t 30000 -b never </dev/null >"$TMP/others" &
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

# With kptr_restrict 2, bpf_prog_info has no addresses of functions. perf reads the programs when they load.
# Then it has to read each as a program that loaded before, not just the first.
test_programs_while_addresses_are_hidden()
{
	local restrict

	native_only "the test changes kernel.kptr_restrict"
	restrict=$(cat /proc/sys/kernel/kptr_restrict)
	# shellcheck disable=SC2064 # expand the variable now
	trap "echo $restrict >/proc/sys/kernel/kptr_restrict; end_test" EXIT
	start_recording "$TMP/data" -a
	echo 2 >/proc/sys/kernel/kptr_restrict
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
