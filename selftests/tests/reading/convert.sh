#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf data convert --to-json writes the program of each frame, and after the samples the metadata
# as JSON values. The metadata in the header of perf.data is called the block.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

NATIVE_ONLY="the test only reads files"

# Two tests of this file share the recording.
record_once()
{
	[[ ! -e $TMP/data ]] || return 0
	hold -o types other_types busy_v1 keys_203
	record "$TMP/data.part"
	perfdata strip-block "$TMP/data.part" "$TMP/records-only"
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
	mv "$TMP/data.part" "$TMP/data"
}

# Convert file $1 to $1.json, which must be valid JSON and have samples.
convert()
{
	rm -f "$1.json"
	"$PBM_PERF" data convert --to-json "$1.json" -i "$1" >"$TMP/messages" 2>&1
	python3 -m json.tool "$1.json" >"$TMP/parsed" || fail "$1.json: not JSON"
	grep -q '"samples"' "$TMP/parsed" || fail "$1.json has no samples"
}

# Print ID NAME KEY VALUE of each key in $1.json, separated by tabs; values are JSON.
entries_of()
{
	python3 - "$1.json" <<-'END'
	import json
	import sys

	with open(sys.argv[1], encoding="utf-8") as file:
	    top = json.load(file)
	for prog in top.get("bpf-metadata", []):
	    for key, value in (prog["metadata"] or {}).items():
	        print(prog["id"], prog["name"], key, json.dumps(value), sep="\t")
	END
}

# Like entries_of, but from the block of file $1. What perf does not write as JSON becomes a string.
entries_in_block()
{
	perfdata block "$1" | python3 -c '
import json
import re
import sys

for line in sys.stdin.read().splitlines():
    prog, name, _, key, value = line.split("\t")
    if re.fullmatch("-?[0-9]+|true|false|\".*\"", value):
        value = json.loads(value)
    print(prog, name, key, json.dumps(value), sep="\t")
'
}

test_values_become_json_values()
{
	record_once
	convert "$TMP/data"
	entries_in_block "$TMP/data" >"$TMP/want"
	(($(wc -l <"$TMP/want") > 250)) || fail "too few entries in the block"
	entries_of "$TMP/data" >"$TMP/got"
	same "entries" "$TMP/want" "$TMP/got"
}

test_values_from_a_pipe_are_the_same()
{
	hold types other_types busy_v1 keys_203
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/pipe-ids"
	record "$TMP/whole"
	record - >"$TMP/piped"
	entries_in_block "$TMP/whole" | held_lines "$TMP/pipe-ids" >"$TMP/want"
	[[ -s $TMP/want ]] || fail "no block in the file"
	rm -f "$TMP/pipe.json"
	"$PBM_PERF" data convert --to-json "$TMP/pipe.json" -i - <"$TMP/piped" >"$TMP/messages" 2>&1
	entries_of "$TMP/pipe" | held_lines "$TMP/pipe-ids" >"$TMP/got"
	same "entries" "$TMP/want" "$TMP/got"
	[[ $(perfdata types "$TMP/piped" | grep -c -x 9) = $(grep -c '"timestamp"' "$TMP/pipe.json") ]] ||
		fail "the JSON file does not have all samples"
}

# UTF-8 is kept, for example in names of processes. Each byte that is not UTF-8 becomes U+FFFD, the
# replacement character.
test_text_is_utf8()
{
	local program=$TMP/$'caf\xc3\xa9\xff'

	cp "$(command -v dd)" "$program"
	"$PBM_PERF" record -q -e cpu-clock -o "$TMP/utf8" -- \
		"$program" if=/dev/zero of=/dev/null bs=1M count=500 status=none
	convert "$TMP/utf8"
	python3 - "$TMP/utf8.json" <<-'END' || fail "another name: $(grep -m 2 '"comm"' "$TMP/utf8.json")"
	import json, sys
	with open(sys.argv[1], encoding="utf-8") as file:
	    comms = {sample["comm"] for sample in json.load(file)["samples"]}
	assert "caf\u00e9\ufffd" in comms, comms
	END
}

# Print the input lines of the programs in file $1. The records of these programs truncate nothing.
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

test_truncated_values_are_strings()
{
	hold -o lengths
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

# Print each JSON key of $1.json once. grep would also find its name in paths and command lines.
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

test_json_without_metadata_has_no_key_for_metadata()
{
	hold simple
	record "$TMP/none" --bpf-metadata=none
	convert "$TMP/none"
	keys_of "$TMP/none" >"$TMP/keys"
	grep -q -x cmdline "$TMP/keys" || fail "no key cmdline in: $(cat "$TMP/keys")"
	if grep -e metadata "$TMP/keys"; then
		fail "the JSON file has a key for metadata"
	fi
}

# Print ID<TAB>SAMPLES of each program in file $1: the number of samples in its functions.
samples_in_file()
{
	local period

	period=$("$PBM_PERF" script -G -F period -i "$1" | sort -u)
	(($(wc -w <<<"$period") == 1)) || fail "the samples have several periods: $period"
	perfdata costs "$1" | awk -F '\t' -v period="$period" '{ sum[$1] += $4 / period }
		END { for (id in sum) print id "\t" sum[id] }' | sort
}

# Like samples_in_file, but from the first frame of each sample in $1.json. Each frame in a BPF
# function must have the id of a program with this function (see "perfdata programs"). All BPF
# functions of a callchain must belong to one program.
samples_in_json()
{
	python3 - "$1.json" 3< <(perfdata programs "$1") <<-'END' | sort
	import collections
	import json
	import sys

	with open(3, encoding="utf-8") as file:
	    functions = {int(line.split()[0]): line.split()[5].split(",") for line in file}
	with open(sys.argv[1], encoding="utf-8") as file:
	    samples = json.load(file)["samples"]
	costs = collections.Counter()
	for sample in samples:
	    ids = [frame.get("bpf-prog-id", "N/A") for frame in sample["callchain"]]
	    costs[ids[0] if ids else "N/A"] += 1
	    for number, frame in zip(ids, sample["callchain"]):
	        known = functions.get(number, [])
	        if (number != "N/A" or frame.get("dso", "").startswith("bpf_prog_")) and frame["symbol"] not in known:
	            sys.exit(f"{frame} is not one of {known}")
	    if len({number for number in ids if number != "N/A"}) > 1:
	        sys.exit(f"several programs: {sample}")
	for number, nr in costs.items():
	    print(number, nr, sep="\t")
	END
}

test_frames_name_their_programs()
{
	local file

	hold busy_v1 busy_v2 busy busy_v1
	spend 0 20000 1 60000 2 30000 3 10000
	record "$TMP/flat"
	record "$TMP/graph" -g
	record - -g >"$TMP/graph-pipe"
	perfdata strip-block "$TMP/graph" "$TMP/graph-records"
	for file in "$TMP/flat" "$TMP/graph" "$TMP/graph-records" "$TMP/graph-pipe"; do
		convert "$file"
		samples_in_file "$file" >"$TMP/want"
		(($(grep -c -x -F -f <(printf '%s\n' "${HELD_IDS[@]}") <(cut -f 1 "$TMP/want")) == 4)) ||
			fail "not all programs have samples: $(cat "$TMP/want")"
		samples_in_json "$file" >"$TMP/got"
		same "samples by program in $file" "$TMP/want" "$TMP/got"
	done
}

# Print ID<TAB>NAME of the programs in $1.json whose metadata is {}.
without_in_json()
{
	python3 - "$1.json" <<-'END' | sort
	import json
	import sys

	with open(sys.argv[1], encoding="utf-8") as file:
	    for prog in json.load(file)["bpf-metadata"]:
	        if prog["metadata"] == {}:
	            print(prog["id"], prog["name"], sep="\t")
	END
}

# A file with only records does not tell whether a program without records has no metadata, or perf
# did not look for it. Such a program is not listed.
test_programs_without_metadata_are_listed()
{
	hold busy busy_v1
	record "$TMP/without"
	perfdata without "$TMP/without" | sort >"$TMP/want"
	grep -q -x "${HELD_IDS[0]}"$'\t'busy "$TMP/want" || fail "block lacks busy: $(cat "$TMP/want")"
	convert "$TMP/without"
	without_in_json "$TMP/without" >"$TMP/got"
	same "programs without metadata" "$TMP/want" "$TMP/got"
	perfdata strip-block "$TMP/without" "$TMP/without-block"
	convert "$TMP/without-block"
	without_in_json "$TMP/without-block" >"$TMP/got"
	same "programs that have no records" /dev/null "$TMP/got"
}

# The file may come from anybody. No text in it may break the JSON output.
test_hostile_text_stays_inside_its_string()
{
	local text

	hold simple
	record "$TMP/simple"
	# Quotes, ESC, invalid UTF-8, parts of JSON; each as long as the text that it replaces
	for text in 'a","b":' '"ab\\"}"' '{"a":1,' '[1,2"]}' '"\\uD80"' '1,"b":2' '\x1b]0;xy\x07' '\xff\xc3\x28\xf0"ab'; do
		LC_ALL=C sed "s/\"1\.2\.3\"/$text/g" "$TMP/simple" >"$TMP/hostile"
		[[ $(stat -c %s "$TMP/hostile") = $(stat -c %s "$TMP/simple") ]] || fail "bad length of '$text'"
		convert "$TMP/hostile"
		entries_of "$TMP/hostile" | grep "^${HELD_IDS[0]}"$'\tsimple\t' >"$TMP/got"
		cat "$TMP/got"
		cut -f 3 "$TMP/got" | sort >"$TMP/keys"
		printf '%s\n' answer version >"$TMP/want"
		same "keys beside '$text'" "$TMP/want" "$TMP/keys"
	done
}

run_tests
