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
	cut -d ' ' -f 1,3- "$TMP/block" >"$TMP/nameless"
	: >"$TMP/no"
	held_entries "$TMP/pipe" | sort >"$TMP/sorted-pipe"
	held_entries "$TMP/both" >"$TMP/entries.part"
	(($(wc -l <"$TMP/entries.part") == 7)) || fail "not 7 entries in records: $(cat "$TMP/entries.part")"
	sort "$TMP/entries.part" >"$TMP/sorted"
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

# Print ID NAME KEY VALUE of the held programs from the block of file $1. Records may truncate the
# values of other programs. The column SET is left out: its numbers depend on other programs.
held_lines()
{
	perfdata block "$1" >"$TMP/all-lines"
	awk -F '\t' 'NR == FNR { held[$1]; next } $1 in held { print $1, $2, $4, $5 }' "$TMP/ids" "$TMP/all-lines"
}

# The features 25 (bpf_prog_info, without the block) and 26 (BTF) of file $1 have unchanged sizes.
want_prog_infos()
{
	perfdata sections "$TMP/both" | grep -E $'^2[56]\t' >"$TMP/want"
	perfdata sections "$1" | grep -E $'^2[56]\t' >"$TMP/got"
	same "features of $1" "$TMP/want" "$TMP/got"
}

# want_metadata FILE RECORDS BLOCK: the entries in records of FILE, and its block, are those of these files
want_metadata()
{
	local order=cat fields=1-

	[[ $2 != sorted* ]] || order="sort"
	[[ $3 != nameless ]] || fields=1,3-
	[[ $2 = no ]] || perfdata check-records "$1"
	[[ $2 != no ]] || want_no_records "$1"
	held_entries "$1" | $order >"$TMP/got"
	same "records of $1" "$TMP/$2" "$TMP/got"
	held_lines "$1" | cut -d ' ' -f "$fields" >"$TMP/got"
	same "block of $1" "$TMP/$3" "$TMP/got"
}

# A pipe has no block, so perf inject writes records in its place, maybe in another order. A file from a pipe
# gets the block. The pipe has no bpf_prog_info, and so no names for it. -b is for build ids.
test_each_mode_keeps_moves_or_removes_metadata()
{
	local input output records block options samples

	record_once
	cd "$TMP"
	while read -r input output records block options; do
		echo "$input $output $options"
		rm -f out
		# shellcheck disable=SC2086 # several options
		inject $options -i "$input" -o "$output" <pipe >stdout 2>messages
		[[ $output = out ]] || mv stdout out
		want_metadata out "$records" "$block"
		[[ $output = - || $input = - ]] || want_prog_infos out
		samples=both
		[[ $input != - ]] || samples=pipe
		same_samples $samples out
		# The records are at the places where perf record writes them.
		[[ $input$output$options != bothout ]] || perfdata check out
	done <<-'END'
		both		out	entries		block
		both		out	entries		block		--bpf-metadata=all
		both		out	no		block		--bpf-metadata=header
		both		out	no		block		--bpf-metadata=header -b
		both		out	no		no		--bpf-metadata=none
		both		-	entries		no
		both		-	no		no		--bpf-metadata=none
		block-only	out	no		block
		block-only	out	no		block		--bpf-metadata=header
		block-only	out	no		no		--bpf-metadata=none
		block-only	-	sorted		no
		block-only	-	no		no		--bpf-metadata=none
		records-only	out	entries		no
		records-only	out	no		block		--bpf-metadata=header
		records-only	out	no		no		--bpf-metadata=none
		records-only	-	entries		no
		-		-	sorted-pipe	no
		-		-	no		no		--bpf-metadata=none
		-		out	sorted-pipe	nameless
		-		out	no		nameless	--bpf-metadata=header
	END
}

# With many programs, bpf_prog_info does not fit into an event of a pipe. Then neither pipe has it.
test_mode_none_keeps_bpf_prog_info_of_a_pipe()
{
	record_once
	inject -i "$TMP/both" -o - >"$TMP/piped"
	inject --bpf-metadata=none -i - -o - <"$TMP/piped" >"$TMP/out"
	"$PBM_PERF" report --header -i - <"$TMP/piped" | grep '^# bpf_prog_info' >"$TMP/want" || :
	"$PBM_PERF" report --header -i - <"$TMP/out" | grep '^# bpf_prog_info' >"$TMP/got" || :
	same "bpf_prog_info of a pipe" "$TMP/want" "$TMP/got"
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

# If no BPF program is loaded, the output has no features except the build ids.
test_a_pipe_becomes_a_file_with_build_ids()
{
	"$PBM_PERF" record -q -e cpu-clock -o - true >"$TMP/stream"
	"$PBM_PERF" inject -b -i "$TMP/stream" -o "$TMP/from-stream"
	"$PBM_PERF" buildid-list -i "$TMP/from-stream" >"$TMP/out"
	grep -q -E '^[0-9a-f]{16,40} .' "$TMP/out" || fail "no build IDs: $(cat "$TMP/out")"
}

test_unpatched_perf_reads_output_of_mode_header_and_keeps_the_block()
{
	unpatched_perf
	record_once
	inject --bpf-metadata=header -i "$TMP/records-only" -o "$TMP/out"
	same_samples "$TMP/both" "$TMP/out" "$PBM_UNPATCHED_PERF"
	"$PBM_UNPATCHED_PERF" inject -i "$TMP/block-only" -o "$TMP/out"
	want_metadata "$TMP/out" no block
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
	# The events of a guest would keep their addresses.
	! inject --aslr --guest-data="$TMP/copy,1" -i "$TMP/dir" -o "$TMP/both" 2>"$TMP/messages" ||
		fail "perf inject accepts --aslr with --guest-data"
	grep -q -e '--aslr and --guest-data are mutually exclusive' "$TMP/messages" || fail "$(cat "$TMP/messages")"
}

run_tests
