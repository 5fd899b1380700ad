#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The text of values of each C type. The tests compare it with the "want" comment of the variable,
# with bpftool, and for some types with the text in records of upstream's perf. libbpf prints the
# types that no user declares: the tests have its texts.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

# want_values WANT: all values of the program HELD_IDS[0] are those of the file WANT and of bpftool.
want_values()
{
	record "$TMP/data"
	show "$TMP/data"
	"$BPFTOOL" -j prog show id "${HELD_IDS[0]}" >"$TMP/oracle" || true
	values compare "$1" "$TMP/data.script" "$(symbol_of 0)" "$TMP/oracle"
}

test_types_have_the_wanted_text_and_that_of_bpftool()
{
	hold types
	want_values "$SELFTESTS/progs/types.bpf.c"
}

# enum64, enums of other signs and sizes, chars as gcc encodes them, chains of modifiers
test_types_that_clang_does_not_write_have_it_too()
{
	hold_handmade types
	"$OUTPUT/handmade_btf" want types >"$TMP/want"
	want_values "$TMP/want"
}

# Members that are zero are part of it. An array of one-byte integers ends at the first NUL.
test_other_types_have_the_text_of_libbpf()
{
	hold other_types
	record "$TMP/data"
	perfdata entries "$TMP/data" "$(symbol_of 0)" >"$TMP/got"
	printf '%s\t%s\n' array '[1,0,3,]' array_enum '[RED,4,GREEN,]' \
		array_of_arrays '[[1,2,],[0,0,],]' array_of_bool '[1,0,1,]' \
		array_of_strings "[['o','n','e','\0',],['t','w','o','\0',],]" bits '{0x5,0x1,}' \
		bytes "{['a','b','\0',],0,7,}" \
		chars_cut_utf8 "['a',-61,'\0',]" chars_no_nul "['a','b',]" \
		chars_no_utf8 "[-1,'\0',]" chars_overlong "[192,175,'\0',]" \
		chars_past_last "[244,144,128,128,'\0',]" chars_surrogate "[237,160,128,'\0',]" \
		double -2.500000 int128 0x1f struct_first '{1,0,}' struct_second '{0,1,}' \
		union '{131073,[1,2,],}' >"$TMP/want"
	same "entries" "$TMP/want" "$TMP/got"
}

# Since v6.17, upstream prints plain strings and integers of up to 64 bits in the same way.
test_integers_and_strings_have_the_text_of_upstream()
{
	local name

	unpatched_perf
	hold types
	for name in PBM_PERF PBM_UNPATCHED_PERF; do
		"${!name}" record -N -q -e cpu-clock -o "$TMP/data" -- true
		# perf with the patches sorts entries by key. Upstream's perf does not.
		perfdata entries "$TMP/data" "$(symbol_of 0)" | grep -E '^(int|text)_' | sort >"$TMP/$name"
	done
	same "texts" "$TMP/PBM_UNPATCHED_PERF" "$TMP/PBM_PERF"
}

run_tests
