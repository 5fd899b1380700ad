#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf inject --bpf-metadata keeps, converts or removes metadata: the records, and the metadata in
# the header of a file, which is called the block. This works for files and pipes, and keeps the
# samples.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

NATIVE_ONLY="the test rewrites files"

# Most tests here share the recordings. Two of the programs have the same name.
record_once()
{
	[[ ! -e $TMP/entries ]] || return 0
	hold -o busy_v1 busy_v2 simple functions
	record "$TMP/both" -F 999
	record - -F 999 >"$TMP/pipe"
	perfdata strip "$TMP/both" "$TMP/block-only"
	perfdata strip-block "$TMP/both" "$TMP/records-only"
	perfdata block "$TMP/records-only" >"$TMP/none"
	[[ ! -s $TMP/none ]] || fail "the block is still there"
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
	held_lines "$TMP/both" >"$TMP/block"
	(($(wc -l <"$TMP/block") == 7)) || fail "the block lacks programs: $(cat "$TMP/block")"
	perfdata programs "$TMP/both" >"$TMP/programs"
	awk 'NR == FNR { held[$1]; next } $1 in held { print $6 }' "$TMP/ids" "$TMP/programs" |
		tr , '\n' | sort -u >"$TMP/functions"
	held_entries "$TMP/pipe" | sort >"$TMP/pipe-entries"
	held_entries "$TMP/both" >"$TMP/entries.part"
	(($(wc -l <"$TMP/entries.part") == 7)) || fail "not 7 entries in records: $(cat "$TMP/entries.part")"
	mv "$TMP/entries.part" "$TMP/entries"
}

inject()
{
	"$PBM_PERF" inject "$@"
}

# samples_of FILE [PERF]: print the samples without symbols.
samples_of()
{
	"${2:-$PBM_PERF}" script -F comm,tid,cpu,time,event,ip,period -i "$1"
}

# same_samples RECORDING FILE [PERF]: FILE was made from RECORDING, and has the same samples.
same_samples()
{
	if [[ ! -e $1.samples ]]; then
		samples_of "$1" >"$1.samples"
		(($(wc -l <"$1.samples") == $(perfdata types "$1" | grep -c -x 9))) || fail "lost samples of $1"
	fi
	samples_of "$2" "${3:-}" >"$TMP/got"
	same "samples of $2" "$1.samples" "$TMP/got"
}

# Print the entries in the records of the held programs in file $1. Other programs come and go, so
# recordings differ in the records of those.
held_entries()
{
	perfdata all-entries "$1" >"$TMP/all-entries"
	awk -F '\t' 'NR == FNR { held[$1]; next } $1 in held' "$TMP/functions" "$TMP/all-entries"
}

want_records()
{
	held_entries "$1" >"$TMP/got"
	same "records of $1" "$TMP/entries" "$TMP/got"
}

# Print ID NAME KEY VALUE of the held programs from the block of file $1. Records may truncate the
# values of other programs. The column SET is left out: its numbers depend on other programs.
held_lines()
{
	perfdata block "$1" >"$TMP/all-lines"
	awk -F '\t' 'NR == FNR { held[$1]; next } $1 in held { print $1, $2, $4, $5 }' "$TMP/ids" "$TMP/all-lines"
}

want_block()
{
	held_lines "$1" >"$TMP/got"
	same "block of $1" "$TMP/block" "$TMP/got"
}

want_no_block()
{
	perfdata block "$1" >"$TMP/got"
	[[ ! -s $TMP/got ]] || fail "$1 has a block"
}

# The features 25 (bpf_prog_info, without the block) and 26 (BTF) of file $1 have unchanged sizes.
want_prog_infos()
{
	perfdata sections "$TMP/both" | grep -E $'^2[56]\t' >"$TMP/want"
	perfdata sections "$1" | grep -E $'^2[56]\t' >"$TMP/got"
	same "features of $1" "$TMP/want" "$TMP/got"
}

# Mode all puts the records at the places where perf record writes them.
test_default_and_mode_all_keep_all_metadata()
{
	local mode

	record_once
	for mode in "" --bpf-metadata=all; do
		inject ${mode:+"$mode"} -i "$TMP/both" -o "$TMP/out"
		want_records "$TMP/out"
		want_block "$TMP/out"
		same_samples "$TMP/both" "$TMP/out"
		[[ -z $mode ]] || perfdata check "$TMP/out"

		inject ${mode:+"$mode"} -i "$TMP/records-only" -o "$TMP/out"
		want_records "$TMP/out"
		want_no_block "$TMP/out"
		same_samples "$TMP/both" "$TMP/out"
	done
	inject -i "$TMP/block-only" -o "$TMP/out"
	want_no_records "$TMP/out"
	want_block "$TMP/out"
	same_samples "$TMP/both" "$TMP/out"
}

# The block has program ids, so perf inject can keep it without reading the compressed events.
test_mode_header_keeps_the_block_of_a_compressed_file()
{
	"$PBM_PERF" check feature -q zstd || skip "perf is built without zstd"
	hold simple
	start_recording "$TMP/compressed" -a -z
	churn -n 3
	stop_recording
	perfdata types "$TMP/compressed" >"$TMP/types"
	grep -q -x 84 "$TMP/types" || fail "no records"
	inject --bpf-metadata=header -i "$TMP/compressed" -o "$TMP/out" 2>"$TMP/messages"
	! grep -e 'lost the metadata' "$TMP/messages" || fail "perf inject warns of lost metadata"
	perfdata types "$TMP/out" >"$TMP/types"
	! grep -x 84 "$TMP/types" || fail "the output has records"
	perfdata block "$TMP/compressed" >"$TMP/want"
	perfdata block "$TMP/out" >"$TMP/got"
	[[ -s $TMP/want ]] || fail "no block"
	same "block" "$TMP/want" "$TMP/got"
}

test_mode_header_removes_records_and_keeps_the_block()
{
	local file

	record_once
	for file in both block-only; do
		inject --bpf-metadata=header -i "$TMP/$file" -o "$TMP/out"
		want_no_records "$TMP/out"
		want_block "$TMP/out"
		want_prog_infos "$TMP/out"
		same_samples "$TMP/both" "$TMP/out"
	done
}

test_mode_header_makes_the_block_from_records()
{
	record_once
	inject --bpf-metadata=header -i "$TMP/records-only" -o "$TMP/out" 2>"$TMP/messages"
	want_no_records "$TMP/out"
	want_block "$TMP/out"
	want_prog_infos "$TMP/out"
	same_samples "$TMP/both" "$TMP/out"
}

# A file from a pipe gets the block. The pipe has no bpf_prog_info, and so no names for it.
test_a_file_from_a_pipe_gets_the_block()
{
	local mode

	record_once
	awk '{ $2 = ""; print }' FS='\t' OFS='\t' "$TMP/block" >"$TMP/want"
	for mode in all header; do
		inject --bpf-metadata="$mode" -i - -o "$TMP/out" <"$TMP/pipe"
		held_lines "$TMP/out" | awk '{ $2 = ""; print }' FS='\t' OFS='\t' >"$TMP/got"
		same "block in mode $mode" "$TMP/want" "$TMP/got"
		same_samples "$TMP/pipe" "$TMP/out"
		[[ $mode = all ]] || want_no_records "$TMP/out"
	done
}

# A pipe has no block, so perf inject writes records in its place. Without bpf_prog_info, as if the
# file had the other byte order, records have no name of a program.
test_a_pipe_from_a_file_gets_records()
{
	record_once
	inject -i "$TMP/both" -o - >"$TMP/out"
	want_records "$TMP/out"
	same_samples "$TMP/both" "$TMP/out"
	inject -i "$TMP/block-only" -o - >"$TMP/out"
	perfdata check-records "$TMP/out"
	held_entries "$TMP/both" | sort >"$TMP/want"
	held_entries "$TMP/out" | sort >"$TMP/got"
	same "records made from the block" "$TMP/want" "$TMP/got"
	same_samples "$TMP/both" "$TMP/out"
	inject -i "$TMP/records-only" -o - >"$TMP/out"
	want_records "$TMP/out"
	inject -i - -o - <"$TMP/pipe" >"$TMP/out"
	held_entries "$TMP/out" | sort >"$TMP/got"
	same "records of a pipe" "$TMP/pipe-entries" "$TMP/got"
	same_samples "$TMP/pipe" "$TMP/out"
}

test_a_pipe_can_not_have_only_a_header()
{
	local input

	record_once
	for input in both pipe; do
		must_refuse --bpf-metadata=header -i "$TMP/$input" -o -
		grep -q -e '--bpf-metadata=header.* output file (-o)' "$TMP/messages" || fail "no next step"
	done
}

# With -b (build ids), perf inject sorts the samples.
test_mode_header_with_build_ids()
{
	record_once
	inject -b --bpf-metadata=header -i "$TMP/both" -o "$TMP/out"
	want_no_records "$TMP/out"
	want_block "$TMP/out"
	same_samples "$TMP/both" "$TMP/out"
}

# If no BPF program is loaded, the output has no features except the build ids.
test_a_pipe_becomes_a_file_with_build_ids()
{
	"$PBM_PERF" record -q -e cpu-clock -o - true >"$TMP/stream"
	"$PBM_PERF" inject -b -i "$TMP/stream" -o "$TMP/from-stream"
	"$PBM_PERF" buildid-list -i "$TMP/from-stream" >"$TMP/out"
	grep -q -E '^[0-9a-f]{16,40} .' "$TMP/out" || fail "no build IDs: $(cat "$TMP/out")"
}

test_mode_none_removes_records_and_block()
{
	local file

	record_once
	for file in both block-only records-only; do
		inject --bpf-metadata=none -i "$TMP/$file" -o "$TMP/out"
		want_no_records "$TMP/out"
		want_no_block "$TMP/out"
		want_prog_infos "$TMP/out"
		same_samples "$TMP/both" "$TMP/out"
		inject --bpf-metadata=none -i "$TMP/$file" -o - >"$TMP/out"
		want_no_records "$TMP/out"
	done
	inject --bpf-metadata=none -i - -o - <"$TMP/pipe" >"$TMP/out"
	want_no_records "$TMP/out"
	want_no_block "$TMP/out"
	same_samples "$TMP/pipe" "$TMP/out"

	# Mode none keeps bpf_prog_info. With many programs, bpf_prog_info does not fit into an
	# event of a pipe. Then neither pipe has it.
	inject -i "$TMP/both" -o - >"$TMP/piped"
	inject --bpf-metadata=none -i - -o - <"$TMP/piped" >"$TMP/out"
	"$PBM_PERF" report --header -i - <"$TMP/piped" | grep '^# bpf_prog_info' >"$TMP/want" || :
	"$PBM_PERF" report --header -i - <"$TMP/out" | grep '^# bpf_prog_info' >"$TMP/got" || :
	same "bpf_prog_info of a pipe" "$TMP/want" "$TMP/got"
}

# must_refuse OPTION...: perf inject must fail, and write only messages. $TMP/messages has them.
must_refuse()
{
	local status=0

	rm -f "$TMP/out"
	inject "$@" >"$TMP/stdout" 2>"$TMP/messages" || status=$?
	cat "$TMP/messages"
	# 134 to 136 and 139 are crashes. Other errors of perf have a status above 128, too.
	case $status in
	0|134|135|136|139) fail "status $status with '$*'" ;;
	esac
	[[ ! -s $TMP/stdout && ! -e $TMP/out ]] || fail "perf inject fails, but writes output"
}

test_an_unknown_mode_is_refused_as_by_perf_record()
{
	record_once
	must_refuse --bpf-metadata=some -i "$TMP/both" -o "$TMP/out"
	sed -n 1p "$TMP/messages" >"$TMP/got"
	"$PBM_PERF" record --bpf-metadata=some -o "$TMP/refused" true 2>&1 | sed -n 1p >"$TMP/want" || true
	[[ -s $TMP/want ]] || fail "perf record prints no error"
	same "message" "$TMP/want" "$TMP/got"
}

test_unpatched_perf_reads_output_of_mode_header()
{
	unpatched_perf
	record_once
	inject --bpf-metadata=header -i "$TMP/records-only" -o "$TMP/out"
	same_samples "$TMP/both" "$TMP/out" "$PBM_UNPATCHED_PERF"
}

test_unpatched_perf_inject_keeps_the_block()
{
	unpatched_perf
	record_once
	"$PBM_UNPATCHED_PERF" inject -i "$TMP/block-only" -o "$TMP/out"
	want_block "$TMP/out"
	same_samples "$TMP/both" "$TMP/out"
}

# The recording looks like one of perf record --kcore, which some kernels do not allow.
test_aslr_removes_addresses_of_the_kernel()
{
	mkdir -p "$TMP/dir/kcore_dir"
	record "$TMP/dir/data"
	echo "ffffffff81234567 T _text" >"$TMP/dir/kcore_dir/kallsyms"
	inject -i "$TMP/dir" -o "$TMP/copy"
	grep -q -r ffffffff81234567 "$TMP/copy" || fail "without --aslr, kallsyms is not copied"
	inject --aslr -i "$TMP/dir" -o "$TMP/hidden"
	if grep -r ffffffff81234567 "$TMP/hidden"; then
		fail "the output has a kernel address"
	fi
	samples_of "$TMP/hidden" >"$TMP/got"
	[[ -s $TMP/got ]] || fail "the samples are lost"
}

# Records of unpatched perf name only functions. perf inject says what it removes.
test_records_without_an_id_are_removed_with_a_warning()
{
	local perf

	hold simple
	for perf in ${PBM_PEER_PERF:+"$PBM_PEER_PERF"} ${PBM_UNPATCHED_PERF:+"$PBM_UNPATCHED_PERF"}; do
		"$perf" record -N -q -a -e cpu-clock -o "$TMP/peer" -- "${WORKLOAD[@]}"
		perfdata types "$TMP/peer" >"$TMP/types"
		! grep -q -x 84 "$TMP/types" || break
		perf=
	done
	[[ -n ${perf:-} ]] || { peer_perf; skip "no perf here writes records"; }
	inject --bpf-metadata=header -i "$TMP/peer" -o "$TMP/out" 2>"$TMP/messages"
	want_no_records "$TMP/out"
	want_no_block "$TMP/out"
	(($(grep -c "^WARNING: removed the metadata .* don't have the id" "$TMP/messages") == 1)) ||
		fail "not one warning: $(cat "$TMP/messages")"
}

run_tests
