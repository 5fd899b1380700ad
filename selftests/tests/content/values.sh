#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The text of values of each C type. The tests compare it with the "want" comment of the variable,
# with bpftool, and for some types with the text in records of upstream's perf. libbpf prints the
# types that no user declares: the tests have its texts.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

# Tests of the same object "$1" share one recording.
record_once()
{
	[[ ! -e $TMP/$1.symbol ]] || return 0
	case $1 in
	handmade) hold_handmade types ;;
	*)	hold "$1" ;;
	esac
	record "$TMP/$1.data"
	show "$TMP/$1.data"
	"$BPFTOOL" -j prog show id "${HELD_IDS[0]}" >"$TMP/$1.oracle" || true
	echo "${HELD_IDS[0]}" >"$TMP/$1.id"
	symbol_of 0 >"$TMP/$1.symbol.part"
	mv "$TMP/$1.symbol.part" "$TMP/$1.symbol"
}

compare_with_bpftool()
{
	record_once "$1"
	values compare "$(want_of "$1")" "$2" "$TMP/$1.data.script" "$(cat "$TMP/$1.symbol")" \
		"$TMP/$1.oracle" "$(cat "$TMP/$1.id")"
}

want_of()
{
	if [[ $1 = handmade ]]; then
		"$OUTPUT/handmade_btf" want types >"$TMP/handmade.want"
		echo "$TMP/handmade.want"
	else
		echo "$SELFTESTS/progs/$1.bpf.c"
	fi
}

test_integers()				{ compare_with_bpftool types int_; }
test_bool()				{ compare_with_bpftool types bool_; }
test_enum()				{ compare_with_bpftool types enum_; }
test_strings()				{ compare_with_bpftool types text_; }
test_strings_with_escapes()		{ compare_with_bpftool types str_; }
test_single_chars()			{ compare_with_bpftool types char_; }
test_all_keys_are_recorded_once()	{ compare_with_bpftool types ""; }

test_enum64()				{ compare_with_bpftool handmade enum64_; }
test_enum_signs_and_sizes()		{ compare_with_bpftool handmade enum_; }
test_chars_as_gcc_encodes_them()	{ compare_with_bpftool handmade char_; }
test_chains_of_modifiers()		{ compare_with_bpftool handmade modifiers; }
test_all_keys_of_handmade_btf_are_recorded_once()	{ compare_with_bpftool handmade ""; }

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
	local perf symbol nr=0

	hold types
	record "$TMP/ours"
	symbol=$(symbol_of 0)
	# perf with the patches sorts entries by key. Upstream's perf does not.
	perfdata entries "$TMP/ours" "$symbol" | grep -E '^(int|text)_' | sort >"$TMP/got"
	for perf in "${PBM_PEER_PERF:-}" "${PBM_UNPATCHED_PERF:-}"; do
		[[ -x $perf ]] || continue
		"$perf" record -N -q -e cpu-clock -o "$TMP/theirs" -- true
		perfdata types "$TMP/theirs" >"$TMP/types"
		grep -q -x 84 "$TMP/types" || continue
		perfdata entries "$TMP/theirs" "$symbol" | grep -E '^(int|text)_' | sort >"$TMP/want"
		same "texts of $perf" "$TMP/want" "$TMP/got"
		nr=$((nr + 1))
	done
	((nr)) || { peer_perf; skip "$PBM_PEER_PERF writes no records"; }
}

run_tests
