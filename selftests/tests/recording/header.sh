#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The metadata in the header of perf.data is called the block. The block of every file has the set
# (all metadata) of each program under the program's id. perf report and perf script print it.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

DIGITS=$(printf '0123456789%.0s' {1..30})

# The tests of this file share three recordings: one of mode all, one of mode header, and a directory of
# files. Each object is loaded twice.
record_once()
{
	[[ ! -e $TMP/ids ]] || return 0
	hold -n 2 simple functions types lengths keys_203
	record "$TMP/all"
	record "$TMP/header" --bpf-metadata=header
	record "$TMP/dir" --threads
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
}

# held_id N: the id of the second program of object N
held_id()
{
	sed -n "$((2 * $1 + 2))p" "$TMP/ids"
}

# KEY<TAB>VALUE of program $2 in the block of file $1
block_of()
{
	perfdata block "$1" >"$TMP/block"
	awk -F '\t' -v id="$2" '$1 == id { print $4 "\t" $5 }' "$TMP/block"
}

# The lines that perf prints for the block of file $1, one per program. sets.sh tests how perf cuts long keys
# and values, so the programs "lengths" are left out.
header_lines()
{
	perfdata block "$1" >"$TMP/block"
	LC_ALL=C sort -t $'\t' -k 1,1n -k 4,4 "$TMP/block" | awk -F '\t' '
		$2 == "lengths" { next }
		{ begin = $1 == id ? ", " : (id ? "\n" : "") "# bpf_metadata " $1 " " $2 ": "; id = $1 }
		{ printf "%s%s=%s", begin, $4, $5 }
		END { print "" }'
}

test_block_has_the_entries_of_the_records()
{
	local i

	record_once
	# Programs whose values are not truncated in records
	for i in 0 1 2 4; do
		perfdata entries "$TMP/all" "$(held_id "$i")" >"$TMP/want"
		[[ -s $TMP/want ]] || fail "no records of program $(held_id "$i")"
		block_of "$TMP/all" "$(held_id "$i")" >"$TMP/got"
		same "block and records of program $(held_id "$i")" "$TMP/want" "$TMP/got"
	done
}

test_long_keys_and_values_are_whole()
{
	local euros x80

	record_once
	euros=$(printf '\xe2\x82\xac%.0s' {1..20})
	x80=key80_$(printf 'x%.0s' {1..73})
	{
		printf '%s\t%s\n' "${x80}A" 1 "${x80}B" 2
		printf 'utf8_%d\t"%s"\n' 0 "${DIGITS:0:200}$euros" 1 "${DIGITS:0:200}x$euros" \
			2 "${DIGITS:0:200}xx$euros"
		printf 'value%d\t"%s"\n' 255 "${DIGITS:0:250}255" 256 "${DIGITS:0:250}x256" 302 "$DIGITS"
		printf 'value_array\t[1,%s]\n' "$(printf '0,%.0s' {1..199})"
	} | sort >"$TMP/want"
	block_of "$TMP/all" "$(held_id 3)" | grep -v '^key6[34]_' | sort >"$TMP/got"
	same "whole keys and values" "$TMP/want" "$TMP/got"
}

test_equal_sets_are_stored_once()
{
	record_once
	# perfdata.py refuses a block that has a set twice.
	perfdata block "$TMP/all" >"$TMP/block"
	awk -F '\t' 'NR == FNR { held[$1]; next } $1 in held' "$TMP/ids" "$TMP/block" >"$TMP/held"
	(($(cut -f 1 "$TMP/held" | sort -u | wc -l) == 10)) || fail "not all programs: $(cat "$TMP/held")"
	(($(cut -f 2,3 "$TMP/held" | sort -u | wc -l) == 5)) || fail "not one set of each object: $(cat "$TMP/held")"
}

test_mode_header_writes_the_same_block_and_no_record()
{
	local id ids

	record_once
	want_no_records "$TMP/header"
	mapfile -t ids <"$TMP/ids"
	for id in "${ids[@]}"; do
		block_of "$TMP/all" "$id" >"$TMP/want"
		[[ -s $TMP/want ]] || fail "no metadata of program $id"
		block_of "$TMP/header" "$id" >"$TMP/got"
		same "block of program $id" "$TMP/want" "$TMP/got"
	done
}

test_report_and_script_print_the_block_with_the_header()
{
	local file command

	native_only "the test only reads files"
	record_once
	for file in all header dir; do
		[[ $file != dir ]] || file=dir/data
		header_lines "$TMP/$file" | sort >"$TMP/want"
		for command in "report --header-only" "report --header --stdio" "script --header" "script --header-only"; do
			# shellcheck disable=SC2086 # words
			"$PBM_PERF" $command -i "$TMP/${file%/data}" | grep '^# bpf_metadata' |
				grep -v ' lengths: ' | sort >"$TMP/got"
			same "perf $command of $file" "$TMP/want" "$TMP/got"
		done
	done
}

test_unpatched_perf_reads_files_of_mode_header()
{
	unpatched_perf
	record_once
	# Do not demangle, because a perf with sanitizers is built without the library that
	# demangles C++.
	"$PBM_UNPATCHED_PERF" script --no-demangle -F comm,ip,sym -i "$TMP/header" >"$TMP/want"
	"$PBM_PERF" script --no-demangle -F comm,ip,sym -i "$TMP/header" >"$TMP/got"
	(($(wc -l <"$TMP/want") == $(perfdata types "$TMP/header" | grep -c -x 9))) || fail "not all samples"
	same "perf script" "$TMP/want" "$TMP/got"
	"$PBM_UNPATCHED_PERF" report --header-only -i "$TMP/header" >"$TMP/want"
	"$PBM_PERF" report --header-only -i "$TMP/header" | grep -v '^# bpf_metadata ' >"$TMP/got"
	same "perf report --header-only" "$TMP/want" "$TMP/got"
}

run_tests
