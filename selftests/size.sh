#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What 1,000 programs of three functions and four keys cost in a file, and those
# who read it without asking for metadata.

. "$(dirname "$0")/lib.sh"

PROGRAMS=1000

# Size of a section, from "perfdata.py sections"
size_of()
{
	awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$2"
}

# All that can differ, besides the block: how perf was called (11), and its version (4)
without_call()
{
	grep -v -E $'^(block|4|11)\t' "$1"
}

# A workload that ends before the first sample: files of two perfs then have the
# same size but for the block, to the byte.
test_mode_header_adds_at_most_two_percent()
{
	local block size

	unpatched_perf
	hold -n "$PROGRAMS" many
	"$PBM_UNPATCHED_PERF" record -N -q -e cpu-clock -c 100000000000 -o "$TMP/unpatched" -- true
	"$PBM_PERF" record -N -q -e cpu-clock -c 100000000000 --bpf-metadata=header \
		-o "$TMP/patched" -- true
	perfdata sections "$TMP/unpatched" >"$TMP/unpatched-sections"
	perfdata sections "$TMP/patched" >"$TMP/patched-sections"
	without_call "$TMP/unpatched-sections" >"$TMP/want"
	without_call "$TMP/patched-sections" >"$TMP/got"
	same "sections" "$TMP/want" "$TMP/got"
	perfdata block "$TMP/patched" >"$TMP/block"
	(($(awk '$2 == "many"' "$TMP/block" | wc -l) == 4 * PROGRAMS)) ||
		fail "the block has not four keys of each program: $(cut -f 2 "$TMP/block" | sort | uniq -c)"
	block=$(size_of block "$TMP/patched-sections")
	size=$(stat -c %s "$TMP/unpatched")
	echo "block: $block bytes, file without: $size"
	((block > 0 && 100 * block <= 2 * size)) || fail "the block is more than 2 % of the file"
}

# Of perf report in user space
instructions()
{
	valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		"$1" report --stdio -i "$2" 2>"$TMP/callgrind" >"$TMP/out" ||
		fail "$1 under callgrind: $(tail -n 5 "$TMP/callgrind")"
	sed -n 's/^==[0-9]*== Collected : \([0-9]*\)$/\1/p' "$TMP/callgrind"
}

test_report_takes_at_most_one_percent_more_instructions()
{
	local patched unpatched

	unpatched_perf
	command -v valgrind >/dev/null || skip "valgrind is no program"
	hold -n "$PROGRAMS" many
	spend 0 1000000 "$((PROGRAMS - 1))" 1000000
	# Not of all CPUs: other programs' symbols would hide what metadata costs.
	"$PBM_PERF" record -N -q -e cpu-clock --bpf-metadata=header -o "$TMP/data" -- "${WORKLOAD[@]}"
	unpatched=$(instructions "$PBM_UNPATCHED_PERF" "$TMP/data")
	patched=$(instructions "$PBM_PERF" "$TMP/data")
	echo "instructions: $unpatched without the patches, $patched with them"
	((unpatched > 0 && 100 * patched <= 101 * unpatched)) || fail "more than 1 % more instructions"
}

run_tests \
	test_mode_header_adds_at_most_two_percent \
	test_report_takes_at_most_one_percent_more_instructions
