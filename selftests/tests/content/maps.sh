#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The maps that a program's metadata comes from

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

# want_entries INDEX KEY VALUE...: perf script shows these entries of program HELD_IDS[INDEX]
want_entries()
{
	values entries "$TMP/data.script" "$(symbol_of "$1")" | sort >"$TMP/got"
	printf '%s\t%s\n' "${@:2}" | sort >"$TMP/want"
	same "entries of ${HELD_NAMES[$1]}" "$TMP/want" "$TMP/got"
}

# If one of the maps is not read, the keys of the other can be those of another version.
test_keys_of_two_sections_are_recorded_or_the_program_is_unknown()
{
	local map nr perf

	native_only "strace stops perf at each system call"
	command -v strace >/dev/null || skip "strace is not installed"
	hold two_sections
	perf=("$PBM_PERF" record -N -q -a -e cpu-clock -o "$TMP/data" -- true)
	strace -qq -o "$TMP/calls" -e trace=bpf "${perf[@]}"
	show "$TMP/data"
	want_entries 0 first '"in .rodata"' second '"in .rodata.more"'
	map=$("$BPFTOOL" prog show id "${HELD_IDS[0]}" | sed -n 's/.* map_ids \([0-9]*\),.*/\1/p')
	nr=$(awk -v call="MAP_GET_FD_BY_ID, {map_id=$map," \
		'/^bpf\(/ { n++; if (index($0, call)) { print n; exit } }' "$TMP/calls")
	strace -qq -o "$TMP/calls" -e trace=bpf -e inject="bpf:error=EMFILE:when=$nr+" "${perf[@]}"
	grep "MAP_GET_FD_BY_ID, {map_id=$map,.*INJECTED" "$TMP/calls" || fail "perf reads other programs now"
	{
		perfdata block "$TMP/data"
		perfdata without "$TMP/data"
	} | cut -f 1 >"$TMP/known"
	! grep -x -e "${HELD_IDS[0]}" "$TMP/known" || fail "perf knows the program's metadata"
}

# The maps .data and .rodatax come first, but they do not count, because they are not named like
# read-only sections. The next map is .rodata.b. perf reads the map that two programs have only once. BTF
# with two variables of the same name is valid, although compilers do not write it.
test_first_map_and_first_variable_win_on_equal_keys_and_only_rodata_counts()
{
	hold_handmade maps
	record "$TMP/data"
	show "$TMP/data"
	want_entries 0 equal 3 in_b 3 in_rodata 4 in_a 5
	want_entries 1 equal 5 in_a 5
	want_entries 2 first 1 equal 1 last 1
}

# Each held program has a record with the name of its function.
want_named_records()
{
	local i

	show "$TMP/data"
	((${#HELD_IDS[@]} == 4)) || fail "${#HELD_IDS[@]} programs are loaded, not 4"
	for i in "${!HELD_IDS[@]}"; do
		has_ksymbol "$TMP/data" "$(symbol_of "$i")"
		want_entries "$i" key 7 owner 7 version 7
	done
}

# Two of the programs have no BTF. The functions of the others are not in the BTF of the map.
test_records_have_the_names_of_functions()
{
	start_recording "$TMP/data" -a
	hold_handmade names
	stop_recording
	want_named_records
	record "$TMP/data"
	want_named_records
}

test_program_and_map_without_btf_have_no_record()
{
	hold_handmade bare
	record "$TMP/data"
	show "$TMP/data"
	shows_no_record "$(symbol_of 0)"
}

# perf report must print (unknown), because (none) would mean that the program has no metadata.
test_metadata_is_unknown_if_the_map_cannot_be_opened()
{
	# BPF_MAP_GET_FD_BY_ID fails with EMFILE.
	deny_bpf 14 24
	PBM_PERF=$TMP/denied-perf start_recording "$TMP/data" -a -F 999
	hold -o busy_v1
	spend 0 $((100000 / SCALE))
	"${WORKLOAD[@]}"
	stop_recording
	want_unknown "$(own busy)"
	PBM_PERF=$TMP/denied-perf record "$TMP/data" -F 999
	want_unknown "$(own busy)"
}

# perf does not read the second map, because it has no key.
test_metadata_is_unknown_if_the_first_map_cannot_be_read()
{
	# BPF_MAP_LOOKUP_ELEM fails with EPERM.
	deny_bpf 1 1
	hold_handmade maps
	PBM_PERF=$TMP/denied-perf record "$TMP/data"
	show "$TMP/data"
	shows_no_record "$(symbol_of 3)"
	perfdata without "$TMP/data" >"$TMP/got"
	grep -e "^${HELD_IDS[4]}"$'\t' "$TMP/got" || fail "the header lacks the program without metadata"
	! grep -e "^${HELD_IDS[3]}"$'\t' "$TMP/got" || fail "the header says that the program has no metadata"
}

# want_unknown NAME
want_unknown()
{
	show "$TMP/data"
	shows_no_record "bpf_prog_[0-9a-f]+_$1"
	"$PBM_PERF" report --stdio -s bpf_prog,bpf_metadata -i "$TMP/data" >"$TMP/out"
	grep -E -e "% +${HELD_IDS[0]} $1 +\(unknown\)" "$TMP/out" ||
		fail "perf report shows: $(head -n 30 "$TMP/out")"
}

run_tests
