#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf data convert --to-json: the metadata after the samples, as JSON values.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="it reads files"

# The recording is the same for all tests of this file.
record_once()
{
	[[ ! -e $TMP/data ]] || return 0
	hold types busy_v1 keys_203
	record "$TMP/data.part"
	perfdata strip-block "$TMP/data.part" "$TMP/records-only"
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
	mv "$TMP/data.part" "$TMP/data"
}

# Into $1.json, which must be JSON to a parser that is not ours.
convert()
{
	rm -f "$1.json"
	"$PBM_PERF" data convert --to-json "$1.json" -i "$1" >"$TMP/messages" 2>&1
	python3 -m json.tool "$1.json" >"$TMP/parsed" || fail "$1.json: not JSON"
	grep -q '"samples"' "$TMP/parsed" || fail "$1.json has no samples"
}

# ID NAME KEY VALUE of each entry, tab separated, as the block has them: the values
# in one form
entries_of()
{
	python3 - "$1.json" <<-'END'
	import json
	import sys

	with open(sys.argv[1], encoding="utf-8") as file:
	    top = json.load(file, parse_int=str, parse_float=str)
	for prog in top.get("bpf-metadata", []):
	    for key, value in prog["metadata"].items():
	        print(prog["id"], prog["name"], key, json.dumps(value), sep="\t")
	END
}

# The same from the block
entries_in_block()
{
	perfdata block "$1" | python3 -c '
import json
import sys

for line in sys.stdin.read().splitlines():
    prog, name, _, key, value = line.split("\t")
    value = json.dumps(json.loads(value, parse_int=str, parse_float=str))
    print(prog, name, key, value, sep="\t")
'
}

test_values_are_json_of_their_own()
{
	record_once
	convert "$TMP/data"
	entries_in_block "$TMP/data" >"$TMP/want"
	(($(wc -l <"$TMP/want") > 280)) || fail "next to no entries in the block"
	entries_of "$TMP/data" >"$TMP/got"
	same "entries" "$TMP/want" "$TMP/got"
}

test_a_pipe_has_the_same()
{
	hold types busy_v1 keys_203
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/pipe-ids"
	record - >"$TMP/piped"
	entries_in_block "$TMP/piped" | held_lines "$TMP/pipe-ids" >"$TMP/want"
	[[ -s $TMP/want ]] || fail "no block in the pipe"
	rm -f "$TMP/pipe.json"
	"$PBM_PERF" data convert --to-json "$TMP/pipe.json" -i - <"$TMP/piped" >"$TMP/messages" 2>&1
	entries_of "$TMP/pipe" | held_lines "$TMP/pipe-ids" >"$TMP/got"
	same "entries" "$TMP/want" "$TMP/got"
	[[ $(perfdata types "$TMP/piped" | grep -c -x 9) = $(grep -c '"timestamp"' "$TMP/pipe.json") ]] ||
		fail "not all samples are there"
}

# As for the names of processes: UTF-8 stays, and what is none has one character each.
test_text_is_utf8()
{
	local program=$TMP/$'caf\xc3\xa9\xff'

	cp "$(command -v dd)" "$program"
	"$PBM_PERF" record -q -e cpu-clock -o "$TMP/utf8" -- \
		"$program" if=/dev/zero of=/dev/null bs=1M count=500 status=none
	convert "$TMP/utf8"
	python3 - "$TMP/utf8.json" <<-'END' || fail "not the name: $(grep -m 2 '"comm"' "$TMP/utf8.json")"
	import json, sys
	with open(sys.argv[1], encoding="utf-8") as file:
	    comms = {sample["comm"] for sample in json.load(file)["samples"]}
	assert "caf\u00e9\ufffd" in comms, comms
	END
}

# Of the programs in a file: their records cut nothing.
held_lines()
{
	awk -F '\t' 'NR == FNR { held[$1]; next } $1 in held' "${1:-$TMP/ids}" -
}

test_values_from_records_are_the_same()
{
	record_once
	convert "$TMP/records-only"
	entries_in_block "$TMP/data" | held_lines >"$TMP/want"
	entries_of "$TMP/records-only" | held_lines >"$TMP/got"
	same "entries" "$TMP/want" "$TMP/got"
}

test_values_that_are_cut_are_strings()
{
	hold lengths
	record "$TMP/lengths"
	perfdata strip-block "$TMP/lengths" "$TMP/cut"
	convert "$TMP/cut"
	entries_of "$TMP/cut" | grep -e $'\tvalue_array\t' >"$TMP/got"
	perfdata entries "$TMP/lengths" "$(symbol_of 0)" | sed -n 's/^value_array\t//p' | sort -u >"$TMP/cut-text"
	awk -F '\t' '{ print $4 }' "$TMP/got" | sort -u >"$TMP/value"
	sed 's/.*/"&"/' "$TMP/cut-text" >"$TMP/want"
	same "value_array" "$TMP/want" "$TMP/value"
	grep -q '[.][.][.]"$' "$TMP/want"
}

# Each key of $1.json, once. The words may also be in a path or a command line.
keys_of()
{
	python3 - "$1.json" <<-'END'
	import json
	import sys

	keys = set()
	with open(sys.argv[1], encoding="utf-8") as file:
	    json.load(file, object_pairs_hook=lambda pairs: keys.update(key for key, _ in pairs))
	print(*sorted(keys), sep="\n")
	END
}

test_without_metadata_there_is_no_key()
{
	hold simple
	record "$TMP/none" --bpf-metadata=none
	convert "$TMP/none"
	keys_of "$TMP/none" >"$TMP/keys"
	grep -q -x cmdline "$TMP/keys" || fail "these are no keys: $(cat "$TMP/keys")"
	if grep -e metadata "$TMP/keys"; then
		fail "there is one"
	fi
}

# A file need not come from perf record: no text in it makes the output no JSON.
test_hostile_text_stays_inside_its_string()
{
	local text

	hold simple
	record "$TMP/simple"
	# As long as the text that it replaces: quotes, ESC, no UTF-8, parts of JSON
	for text in 'a","b":' '"ab\\"}"' '{"a":1,' '[1,2"]}' '"\\uD80"' '1,"b":2' '\x1b]0;xy\x07' '\xff\xc3\x28\xf0"ab'; do
		LC_ALL=C sed "s/\"1\.2\.3\"/$text/g" "$TMP/simple" >"$TMP/hostile"
		[[ $(stat -c %s "$TMP/hostile") = $(stat -c %s "$TMP/simple") ]] || fail "'$text' is not as long"
		convert "$TMP/hostile"
		entries_of "$TMP/hostile" | grep "^${HELD_IDS[0]}"$'\tsimple\t' >"$TMP/got"
		cat "$TMP/got"
		cut -f 3 "$TMP/got" >"$TMP/keys"
		printf '%s\n' version answer >"$TMP/want"
		same "keys beside '$text'" "$TMP/want" "$TMP/keys"
	done
}

run_tests
