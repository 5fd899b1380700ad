#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# No key is lost and no key is written twice, for any number of keys. The raw bytes agree with
# perf script.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

# $1 keys make at least $2 and at most $3 records. $4... are options of perf record.
check_count()
{
	local symbol records

	hold "keys_$1" simple
	record "$TMP/data" "${@:4}"
	show "$TMP/data"
	perfdata check "$TMP/data"
	symbol=$(symbol_of 0)

	awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) print "key_" i "\t" i * 7 }' |
		sort >"$TMP/want"
	perfdata entries "$TMP/data" "$symbol" | sort >"$TMP/raw"
	same "entries in the file" "$TMP/want" "$TMP/raw"
	values entries "$TMP/data.script" "$symbol" | sort >"$TMP/shown"
	same "entries in perf script" "$TMP/want" "$TMP/shown"

	perfdata records "$TMP/data" >"$TMP/records"
	records=$(awk -v name="$symbol" '$1 == name' "$TMP/records" | wc -l)
	echo "$1 keys in $records records"
	((records >= $2 && records <= $3)) || fail "want $2 to $3 records"
}

test_no_key()		{ check_count 0 0 0; }
test_one_key()		{ check_count 1 1 1; }
test_201_keys()		{ check_count 201 1 1; }
test_202_keys()		{ check_count 202 1 2; }
test_1000_keys()	{ check_count 1000 5 5; }

# For -a, perf adds an event. Without it, sample ids are shorter, as no id of an event is needed.
test_1000_keys_and_one_event()
{
	check_count 1000 5 5 --no-all-cpus
	(($("$PBM_PERF" evlist -i "$TMP/data" | wc -l) == 1)) || fail "the file has more than one event"
}

run_tests
