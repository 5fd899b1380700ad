#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The cost of 1,000 programs with three functions and four keys each, in bytes of the file. The block
# is the metadata in the header of perf.data.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test counts bytes"

PROGRAMS=1000

# size_of NAME FILE: print the size of a section. FILE has the output of "perfdata sections".
size_of()
{
	awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$2"
}

# Print the sections in file $1 that must not differ. Skip the block, the version (5), the command
# line (11), the descriptions of events (12), in which patched perf has one more id per CPU, the
# bpf_prog_infos (25), in which only unpatched perf of v6.17 and later stores the ids of maps, and the
# data, because other processes cause events.
constant_sections()
{
	grep -v -E $'^(block|5|11|12|25|data)\t' "$1"
}

# The workload ends before the first sample. Then the constant sections of two perfs are equal, and
# the events are nearly equal. If the unpatched perf writes records, it writes one for each function,
# ours one for each program.
test_metadata_adds_two_percent_in_mode_header_and_less_than_upstream_in_mode_all()
{
	local mode block size difference unpatched all

	unpatched_perf
	hold -n "$PROGRAMS" many
	"$PBM_UNPATCHED_PERF" record -N -q -e cpu-clock -c 100000000000 -o "$TMP/unpatched" -- true
	for mode in header all; do
		"$PBM_PERF" record -N -q -e cpu-clock -c 100000000000 --bpf-metadata=$mode -o "$TMP/$mode" -- true
	done
	# Remove the records, which unpatched perf of v6.17 and later writes, too.
	perfdata strip "$TMP/unpatched" "$TMP/plain"
	perfdata sections "$TMP/plain" >"$TMP/unpatched-sections"
	perfdata sections "$TMP/header" >"$TMP/patched-sections"
	constant_sections "$TMP/unpatched-sections" >"$TMP/want"
	constant_sections "$TMP/patched-sections" >"$TMP/got"
	same "sections" "$TMP/want" "$TMP/got"
	(($(size_of 25 "$TMP/patched-sections") <= $(size_of 25 "$TMP/unpatched-sections"))) ||
		fail "the section of bpf_prog_info is larger"
	difference=$(($(size_of data "$TMP/patched-sections") - $(size_of data "$TMP/unpatched-sections")))
	echo "events: $difference bytes more"
	perfdata block "$TMP/header" >"$TMP/block"
	(($(awk '$2 == "many"' "$TMP/block" | wc -l) == 4 * PROGRAMS)) ||
		fail "the block does not have four keys of each program: $(cut -f 2 "$TMP/block" | sort | uniq -c)"
	block=$(size_of block "$TMP/patched-sections")
	size=$(stat -c %s "$TMP/plain")
	echo "block: $block bytes, file without the block: $size bytes"
	((1000 * ${difference#-} <= size)) || fail "the events differ by more than 0.1 %"
	((block > 0 && 100 * block <= 2 * size)) || fail "the block is more than 2 % of the file"

	perfdata records "$TMP/all" >"$TMP/records"
	(($(grep -c -E $'_many\t5\t' "$TMP/records") == PROGRAMS)) ||
		fail "not one record with an id and four keys for each program"
	unpatched=$(stat -c %s "$TMP/unpatched")
	all=$(stat -c %s "$TMP/all")
	echo "mode all: $all bytes, file of unpatched perf: $unpatched bytes"
	((unpatched == size || all < unpatched)) || fail "the file of mode all is larger"
}

run_tests
