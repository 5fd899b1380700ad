#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf data convert --to-json writes the program of each frame, and after the samples the metadata
# as JSON values. The metadata in the header of perf.data is called the block.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

NATIVE_ONLY="the test only reads files"

# from_json FILE CODE: convert FILE, and run Python code with the JSON, which is "top"
from_json()
{
	rm -f "$TMP/json"
	"$PBM_PERF" data convert --to-json "$TMP/json" -i "$1" >"$TMP/messages" 2>&1 ||
		fail "perf data convert: $(cat "$TMP/messages")"
	python3 -c "import collections, json, re, sys
top = json.load(open(sys.argv[1], encoding='utf-8'))
assert top['samples'], 'no samples'
$2" "$TMP/json"
}

# entries_of FILE: print ID NAME KEY VALUE of each key in the JSON of FILE, separated by tabs
entries_of()
{
	from_json "$1" 'for prog in top.get("bpf-metadata", []):
    for key, value in prog["metadata"].items():
        print(prog["id"], prog["name"], key, json.dumps(value), sep="\t")'
}

# Like entries_of, but from the block. What perf does not write as JSON becomes a string.
entries_in_block()
{
	perfdata block "$1" | python3 -c '
import json, re, sys
for line in sys.stdin.read().splitlines():
    prog, name, _, key, value = line.split("\t")
    if re.fullmatch("-?[0-9]+|true|false|\".*\"", value):
        value = json.loads(value)
    print(prog, name, key, json.dumps(value), sep="\t")'
}

# Print the input lines of the held programs, whose records truncate nothing.
held_lines()
{
	awk -F '\t' 'NR == FNR { held[$1]; next } $1 in held' <(printf '%s\n' "${HELD_IDS[@]}") -
}

test_values_become_json_values()
{
	local file

	hold types other_types busy_v1 keys_203
	record "$TMP/data"
	record - >"$TMP/pipe"
	perfdata strip-block "$TMP/data" "$TMP/records-only"
	entries_in_block "$TMP/data" | held_lines >"$TMP/want"
	(($(wc -l <"$TMP/want") > 250)) || fail "too few entries in the block"
	for file in data records-only pipe; do
		entries_of "$TMP/$file" >"$TMP/entries"
		held_lines <"$TMP/entries" >"$TMP/got"
		same "entries of $file" "$TMP/want" "$TMP/got"
		[[ $(perfdata types "$TMP/$file" | grep -c -x 9) = $(grep -c '"timestamp"' "$TMP/json") ]] ||
			fail "the JSON file does not have all samples"
	done
}

# UTF-8 is kept, for example in names of processes. Each byte that is not UTF-8 becomes U+FFFD, the
# replacement character.
test_text_is_utf8()
{
	local program=$TMP/$'caf\xc3\xa9\xff'

	cp "$(command -v dd)" "$program"
	"$PBM_PERF" record -q -e cpu-clock -o "$TMP/utf8" -- \
		"$program" if=/dev/zero of=/dev/null bs=1M count=500 status=none
	from_json "$TMP/utf8" 'comms = {sample["comm"] for sample in top["samples"]}
assert "caf\u00e9\ufffd" in comms, comms'
}

# The file may come from anybody. No text in it may break the JSON output. Records truncate values.
test_what_is_no_simple_value_becomes_a_string()
{
	local text json place

	while IFS='|' read -r text json; do
		for place in 'file.block = b""' 'file.with_records = False'; do
			write_file "$TMP/file" <<-END
				perfgen.ALPHA = (*perfgen.ALPHA[:4], [(b"a", $text), (b"z", b"1")])
				$place
				file.block = file.block and file.make_block([(perfgen.ALPHA[4], [7]), (perfgen.BETA[4], [9])])
			END
			entries_of "$TMP/file" >"$TMP/got"
			printf '%s\t%s\n' $'7\talpha\ta' "$json" $'7\talpha\tz' 1 $'9\tbeta\tversion' '"2.0"' >"$TMP/want"
			same "JSON of $text" "$TMP/want" "$TMP/got"
		done
	done <<-'END'
		b'-42'|-42
		b'true'|true
		b'"a b"'|"a b"
		b'[1,2,3]'|"[1,2,3]"
		b'[1,2...'|"[1,2..."
		b'"cut...'|"\"cut..."
		b'"a","b":'|"\"a\",\"b\":"
		b'"ab\\\\"}"'|"\"ab\\\\\"}\""
		b'{"a":1,'|"{\"a\":1,"
		b'"\\uD80"'|"\"\\uD80\""
		b'1,"b":2'|"1,\"b\":2"
		b'\x1b]0;xy\x07'|"\u001b]0;xy\u0007"
		b'\xff\xc3\x28\xf0"ab'|"\ufffd\ufffd(\ufffd\"ab"
	END
}

# A file with only records does not tell whether a program without records has no metadata, or perf
# did not look for it. Such a program is not listed.
test_programs_without_metadata_are_listed()
{
	write_file "$TMP/file" <<-'END'
		perfgen.BETA = (*perfgen.BETA[:4], [])
		file.with_records = False
		file.block = file.make_block([(perfgen.ALPHA[4], [7]), ([], [9])])
	END
	from_json "$TMP/file" 'print(top["bpf-metadata"][1])' >"$TMP/got"
	echo "{'id': 9, 'name': 'beta', 'metadata': {}}" >"$TMP/want"
	same "program without metadata" "$TMP/want" "$TMP/got"
	write_file "$TMP/file" <<<'file.block, file.with_records, file.odd = b"", False, file.metadata(perfgen.ALPHA)'
	from_json "$TMP/file" 'assert [prog["id"] for prog in top["bpf-metadata"]] == [7]'
	write_file "$TMP/file" <<<'file.block, file.with_records = b"", False'
	from_json "$TMP/file" 'assert "bpf-metadata" not in top'
}

# Compare the program of the first frame of each sample with the raw bytes. All BPF functions of a callchain
# must belong to one program, and the other frames to none.
test_frames_name_their_programs()
{
	local file period

	hold busy_v1 busy_v2 busy busy_v1
	spend 0 20000 1 60000 2 30000 3 10000
	record "$TMP/flat"
	record "$TMP/graph" -g
	record - -g >"$TMP/graph-pipe"
	perfdata strip-block "$TMP/graph" "$TMP/graph-records"
	for file in flat graph graph-records graph-pipe; do
		period=$("$PBM_PERF" script -G -F period -i "$TMP/$file" | sort -u)
		(($(wc -w <<<"$period") == 1)) || fail "the samples have several periods: $period"
		perfdata costs "$TMP/$file" | awk -F '\t' -v period="$period" '{ sum[$1] += $4 / period }
			END { for (id in sum) print id "\t" sum[id] }' | sort >"$TMP/want"
		(($(grep -c -x -F -f <(printf '%s\n' "${HELD_IDS[@]}") <(cut -f 1 "$TMP/want")) == 4)) ||
			fail "not all programs have samples: $(cat "$TMP/want")"
		from_json "$TMP/$file" 'costs = collections.Counter()
for sample in top["samples"]:
    frames = sample["callchain"]
    programs = {frame.get("bpf-prog-id", "N/A") for frame in frames
                if frame.get("symbol", "").startswith("bpf_prog_")}
    assert len(programs) < 2, sample
    assert all(frame["symbol"].startswith("bpf_prog_") for frame in frames if "bpf-prog-id" in frame), sample
    costs[frames[0].get("bpf-prog-id", "N/A") if frames else "N/A"] += 1
for item in costs.items():
    print(*item, sep="\t")' | sort >"$TMP/got"
		same "samples by program in $file" "$TMP/want" "$TMP/got"
	done
}

run_tests
