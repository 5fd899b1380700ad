#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Files whose metadata of BPF programs is malformed, or large. lib/malformed.py has them, with what perf
# prints about each. perf must still read each file to its end.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/terminal.sh"

NATIVE_ONLY="the test reads generated files"
BESIDE=yes

# check GROUP...: perf reads the files of these groups as the table says
check()	{ malformed check "$TMP/files" "$@"; }

test_a_good_file_is_read()					{ check good; }
test_malformed_records_are_skipped()				{ check refused; }
test_odd_records_are_shown()					{ check odd; }
test_odd_keys_are_read()					{ check keys; }
test_malformed_blocks_are_ignored()				{ check ignored; }
test_odd_blocks_are_shown()					{ check odd-block; }
test_malformed_program_infos_do_no_harm()			{ check info; }
test_unknown_features_are_left_out()				{ check feature; }
test_unknown_types_are_skipped()				{ check type directory; }
test_programs_in_each_others_place_are_shown()			{ check program; }
test_malformed_files_of_others_are_read()			{ check others; }
test_what_a_later_perf_refuses_is_read()			{ check later; }
test_a_file_cut_at_each_byte_of_the_block_is_read()		{ check cut; }
test_blocks_in_pipes_and_ends_of_pipes_do_no_harm()		{ check pipes; }
test_what_a_file_claims_or_repeats_takes_little_memory()	{ check costs sections; }
test_a_block_may_cost_64_mib()					{ check limits; }

# To show the menu of a row, perf checks whether its map is that of the kernel.
test_programs_in_each_others_place_are_browsed()
{
	local symbol=bpf_prog_0123456789abcdef_gamma

	malformed write ksymbol-over-another "$TMP/file"
	open_terminal "$PBM_PERF" report --tui -s dso,sym -S "$symbol" -i "$TMP/file"
	await "the warning that the file has no kernel" terminal_shows '^ *.?Press any key'
	press Enter
	await "the row of $symbol" terminal_shows "^ *[0-9.]+%.*$symbol"
	press Enter
	await "the menu of $symbol" terminal_shows "^Zoom into $symbol DSO"
}

run_tests
