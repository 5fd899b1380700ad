#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Keys and values (progs/lengths.bpf.c) that fit exactly are whole. Longer ones are truncated and
# end with "...".

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

DIGITS=$(printf '0123456789%.0s' {1..30})
X63=$(printf 'x%.0s' {1..63})

# All tests of this file share the recording, and the list of its raw entries.
record_once()
{
	[[ ! -e $TMP/entries ]] || return 0
	hold lengths
	record "$TMP/data"
	show "$TMP/data"
	perfdata check "$TMP/data"
	perfdata entries "$TMP/data" "$(symbol_of 0)" >"$TMP/entries.part"
	values entries "$TMP/data.script" "$(symbol_of 0)" >"$TMP/shown"
	same "perf script and the bytes" "$TMP/entries.part" "$TMP/shown"
	mv "$TMP/entries.part" "$TMP/entries"
}

want_entry()
{
	record_once
	printf '%s\t%s\n' "$1" "$2" >"$TMP/want"
	awk -F '\t' -v key="$1" -v value="$2" '$1 == key && ($2 == value || value == "")' \
		"$TMP/entries" >"$TMP/got"
	[[ -s $TMP/got ]] || awk -F '\t' -v key="${1:0:5}" 'index($1, key) == 1' "$TMP/entries" >"$TMP/got"
	same "$1" "$TMP/want" "$TMP/got"
}

# want_cut KEY TEXT: KEY's value is the longest beginning of TEXT that fits and does not end within
# a character, plus "...".
want_cut()
{
	local value room=252

	record_once
	value=$(awk -F '\t' -v key="$1" '$1 == key { print $2 }' "$TMP/entries")
	printf 'whole %3d %s\ncut   %3d %s\n' "${#2}" "$2" "${#value}" "$value"
	# A byte 10xxxxxx continues a character, so the text does not end before it.
	while [[ ${2:room:1} = [$'\x80'-$'\xbf'] ]]; do
		room=$((room - 1))
	done
	[[ $value = "${2:0:room}..." ]] || fail "want ${2:0:room}..."
}

test_key_of_63_bytes_is_whole()
{
	want_entry "key63_${X63:0:57}" 63
}

test_key_of_64_bytes_is_cut()
{
	want_entry "key64_${X63:0:54}..." 64
}

test_keys_that_are_equal_when_cut_both_stay()
{
	want_entry "key80_${X63:0:54}..." 1
	want_entry "key80_${X63:0:54}..." 2
}

test_value_of_255_bytes_is_whole()
{
	want_entry value255 "\"${DIGITS:0:250}255\""
}

test_longer_values_are_cut()
{
	want_cut value256 "\"${DIGITS:0:250}x256\""
	want_cut value302 "\"$DIGITS\""
	want_cut value_array "[1,$(printf '0,%.0s' {1..199})]"
}

test_values_are_cut_between_characters()
{
	local euros

	euros=$(printf '\xe2\x82\xac%.0s' {1..20})
	want_cut utf8_0 "\"${DIGITS:0:200}$euros\""
	want_cut utf8_1 "\"${DIGITS:0:200}x$euros\""
	want_cut utf8_2 "\"${DIGITS:0:200}xx$euros\""
}

run_tests
