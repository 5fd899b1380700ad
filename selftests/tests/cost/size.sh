#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What 1,000 programs of three functions and four keys cost in a file, and in
# instructions of those who write it, or read it without asking for metadata.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="it counts bytes and instructions of perf in user space"

PROGRAMS=1000

# Size of a section, from "perfdata.py sections"
size_of()
{
	awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$2"
}

# What can differ besides the block: how perf was called (11), its version (4), by what
# others do meanwhile, the events, and the information about programs (25), in which perf of
# v6.17 and later has the ids of maps
constant_sections()
{
	grep -v -E $'^(block|4|11|25|data)\t' "$1"
}

# A workload that ends before the first sample: files of two perfs then differ in no
# section but the block, to the byte, and hardly in their events.
test_mode_header_adds_at_most_two_percent()
{
	local block size difference

	unpatched_perf
	hold -n "$PROGRAMS" many
	"$PBM_UNPATCHED_PERF" record -N -q -e cpu-clock -c 100000000000 -o "$TMP/unpatched" -- true
	"$PBM_PERF" record -N -q -e cpu-clock -c 100000000000 --bpf-metadata=header \
		-o "$TMP/patched" -- true
	# perf of v6.17 and later writes records of its own.
	perfdata strip "$TMP/unpatched" "$TMP/plain"
	perfdata sections "$TMP/plain" >"$TMP/unpatched-sections"
	perfdata sections "$TMP/patched" >"$TMP/patched-sections"
	constant_sections "$TMP/unpatched-sections" >"$TMP/want"
	constant_sections "$TMP/patched-sections" >"$TMP/got"
	same "sections" "$TMP/want" "$TMP/got"
	(($(size_of 25 "$TMP/patched-sections") <= $(size_of 25 "$TMP/unpatched-sections"))) ||
		fail "the information about programs is larger"
	difference=$(($(size_of data "$TMP/patched-sections") - $(size_of data "$TMP/unpatched-sections")))
	echo "events: $difference bytes more"
	perfdata block "$TMP/patched" >"$TMP/block"
	(($(awk '$2 == "many"' "$TMP/block" | wc -l) == 4 * PROGRAMS)) ||
		fail "the block has not four keys of each program: $(cut -f 2 "$TMP/block" | sort | uniq -c)"
	block=$(size_of block "$TMP/patched-sections")
	size=$(stat -c %s "$TMP/plain")
	echo "block: $block bytes, file without: $size"
	((1000 * ${difference#-} <= size)) || fail "the events differ by more than 0.1 %"
	((block > 0 && 100 * block <= 2 * size)) || fail "the block is more than 2 % of the file"
}

# Their record has the same bytes for the same functions and keys.
test_mode_all_is_at_most_two_percent_larger_than_a_peers_file()
{
	local peer all

	peer_perf
	hold -n "$PROGRAMS" many
	"$PBM_PEER_PERF" record -N -q -e cpu-clock -c 100000000000 -o "$TMP/peer" -- true
	"$PBM_PERF" record -N -q -e cpu-clock -c 100000000000 --bpf-metadata=all -o "$TMP/all" -- true
	perfdata types "$TMP/peer" >"$TMP/types"
	grep -q -x 84 "$TMP/types" || skip "$PBM_PEER_PERF writes no records"
	perfdata records "$TMP/all" >"$TMP/records"
	# Equal sets under one name are written once.
	(($(grep -c -E $'_(many|first|second)\t4\t' "$TMP/records") == 3)) ||
		fail "not a record of four keys for each function"
	peer=$(stat -c %s "$TMP/peer")
	all=$(stat -c %s "$TMP/all")
	echo "$all bytes, the peer's file $peer"
	((100 * all <= 102 * peer)) || fail "the file is more than 2 % larger"
}

callgrind_usable()
{
	unpatched_perf
	command -v valgrind >/dev/null || skip "valgrind is no program"
	[[ -z ${PBM_SANITIZED:-} ]] || skip "valgrind runs no perf with AddressSanitizer"
}

# Of a perf command, in user space. It forks, and each process has files of its own. What
# strcmp() takes is left out: by where the heap has two strings, it is half a percent of all.
instructions()
{
	local pid

	rm -f "$TMP"/callgrind.*
	valgrind --tool=callgrind --callgrind-out-file="$TMP/callgrind.out.%p" \
		--log-file="$TMP/callgrind.log.%p" "$@" >"$TMP/out" 2>"$TMP/err" &
	pid=$!
	wait "$pid" || fail "$* under callgrind: $(tail -n 5 "$TMP/err" "$TMP/callgrind.log.$pid")"
	callgrind_annotate --threshold=100 --auto=no "$TMP/callgrind.out.$pid" |
		awk '{ gsub(/,/, "", $1) } /PROGRAM TOTALS/ { sum += $1 } /:__strcmp_/ { sum -= $1 }
			END { printf "%.0f\n", sum }'
}

# Of the same report, some runs take two percent more than others.
fewest_instructions()
{
	for _ in 1 2 3; do
		instructions "$@" || return
	done | sort -n | head -n 1
}

test_record_takes_at_most_three_percent_more_instructions()
{
	local options=(-N -q -e cpu-clock -c 100000000000 -o "$TMP/data" -- true)
	local patched unpatched

	callgrind_usable
	hold -n "$PROGRAMS" many
	unpatched=$(instructions "$PBM_UNPATCHED_PERF" record "${options[@]}")
	patched=$(instructions "$PBM_PERF" record --bpf-metadata=all "${options[@]}")
	echo "instructions: $unpatched without the patches, $patched with them"
	((unpatched > 0 && 100 * patched <= 103 * unpatched)) || fail "more than 3 % more instructions"
}

# Most of it is what broken files are checked for.
test_report_takes_at_most_one_and_a_half_percent_more_instructions()
{
	local patched unpatched

	callgrind_usable
	hold -n "$PROGRAMS" many
	spend 0 1000000 "$((PROGRAMS - 1))" 1000000
	# Not of all CPUs: other programs' symbols would hide what metadata costs.
	"$PBM_PERF" record -N -q -e cpu-clock --bpf-metadata=header -o "$TMP/data" -- "${WORKLOAD[@]}"
	unpatched=$(fewest_instructions "$PBM_UNPATCHED_PERF" report --stdio -i "$TMP/data")
	patched=$(fewest_instructions "$PBM_PERF" report --stdio -i "$TMP/data")
	echo "instructions: $unpatched without the patches, $patched with them"
	((unpatched > 0 && 1000 * patched <= 1015 * unpatched)) || fail "more than 1.5 % more instructions"
}

run_tests
