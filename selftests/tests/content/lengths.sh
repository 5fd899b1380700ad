#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For any number of keys, no key is lost and no key is written twice. Keys and values
# (progs/lengths.bpf.c) that fit exactly are whole. Longer ones are truncated and end with "...".

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

KEY_COUNTS=(0 1 201 202 1000)

# The tests of this file share two recordings. Without -a, perf adds no event. Then sample ids are shorter,
# as no id of an event is needed.
record_once()
{
	local file i

	[[ ! -e $TMP/one ]] || return 0
	hold lengths "${KEY_COUNTS[@]/#/keys_}"
	record "$TMP/data"
	record "$TMP/one.part" --no-all-cpus
	for file in data one.part; do
		show "$TMP/$file"
		perfdata check "$TMP/$file"
	done
	for i in "${!HELD_IDS[@]}"; do
		symbol_of "$i"
	done >"$TMP/symbols"
	mv "$TMP/one.part.script" "$TMP/one.script"
	mv "$TMP/one.part" "$TMP/one"
}

# want_entries FILE SYMBOL: the program has the entries in $TMP/want, in the bytes and in perf script.
want_entries()
{
	sort -o "$TMP/want" "$TMP/want"
	perfdata entries "$TMP/$1" "$2" | sort >"$TMP/raw"
	same "entries of $2 in the file $1" "$TMP/want" "$TMP/raw"
	values entries "$TMP/$1.script" "$2" | sort >"$TMP/shown"
	same "entries of $2 in perf script" "$TMP/want" "$TMP/shown"
}

# want_keys FILE KEYS MIN MAX: the program with so many keys has them, in MIN to MAX records.
want_keys()
{
	local symbol records

	symbol=$(grep "_keys_$2$" "$TMP/symbols")
	awk -v n="$2" 'BEGIN { for (i = 0; i < n; i++) print "key_" i "\t" i * 7 }' >"$TMP/want"
	want_entries "$1" "$symbol"
	perfdata records "$TMP/$1" >"$TMP/records"
	records=$(awk -v name="$symbol" '$1 == name' "$TMP/records" | wc -l)
	echo "$2 keys in $records records"
	((records >= $3 && records <= $4)) || fail "want $3 to $4 records"
}

test_any_number_of_keys()
{
	record_once
	want_keys data 0 0 0
	want_keys data 1 1 1
	want_keys data 201 1 1
	want_keys data 202 1 2
	want_keys data 1000 5 5
	want_keys one 1000 5 5
	(($("$PBM_PERF" evlist -i "$TMP/one" | wc -l) == 1)) || fail "the file has more than one event"
}

# cut_value TEXT: print the longest beginning of TEXT that fits and does not end within a character, plus
# "..."
cut_value()
{
	local room=252

	# A byte 10xxxxxx continues a character, so the text does not end before it.
	while [[ ${1:room:1} = [$'\x80'-$'\xbf'] ]]; do
		room=$((room - 1))
	done
	echo "${1:0:room}..."
}

# Keys that are equal when they are cut both stay.
test_long_keys_and_values_are_cut_between_characters()
{
	local digits euros x63

	record_once
	digits=$(printf '0123456789%.0s' {1..30})
	euros=$(printf '\xe2\x82\xac%.0s' {1..20})
	x63=$(printf 'x%.0s' {1..63})
	printf '%s\t%s\n' "key63_${x63:0:57}" 63 "key64_${x63:0:54}..." 64 \
		"key80_${x63:0:54}..." 1 "key80_${x63:0:54}..." 2 \
		value255 "\"${digits:0:250}255\"" \
		value256 "$(cut_value "\"${digits:0:250}x256\"")" \
		value302 "$(cut_value "\"$digits\"")" \
		value_array "$(cut_value "[1,$(printf '0,%.0s' {1..199})]")" \
		utf8_0 "$(cut_value "\"${digits:0:200}$euros\"")" \
		utf8_1 "$(cut_value "\"${digits:0:200}x$euros\"")" \
		utf8_2 "$(cut_value "\"${digits:0:200}xx$euros\"")" >"$TMP/want"
	want_entries data "$(grep '_lengths$' "$TMP/symbols")"
}

run_tests
