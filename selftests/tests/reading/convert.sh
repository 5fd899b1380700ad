#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf data convert --to-json writes the program of each frame, and after the samples the metadata
# as JSON values. sort_keys.sh compares the costs and the metadata of recordings.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

NATIVE_ONLY="the test only reads files"
BESIDE=yes

# from_json FILE CODE: convert FILE, and run Python code with the JSON, which is "top"
from_json()
{
	rm -f "$TMP/json"
	"$PBM_PERF" data convert --to-json "$TMP/json" -i "$1" >"$TMP/messages" 2>&1 ||
		fail "perf data convert: $(cat "$TMP/messages")"
	python3 -c "import json, sys
top = json.load(open(sys.argv[1], encoding='utf-8'))
assert top['samples'], 'no samples'
$2" "$TMP/json"
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
			from_json "$TMP/file" 'for prog in top["bpf-metadata"]:
    keys = (f"{key}={json.dumps(value)}" for key, value in prog["metadata"].items())
    print(prog["id"], prog["name"], *keys)' >"$TMP/got"
			printf '%s\n' "7 alpha a=$json z=1" '9 beta version="2.0"' >"$TMP/want"
			same "JSON of $text" "$TMP/want" "$TMP/got"
		done
	done <<-'END'
		b'-42'|-42
		b'18446744073709551615'|18446744073709551615
		b'true'|true
		b'NAME'|"NAME"
		b'"a b"'|"a b"
		b'"\\"\\\\\\u001b"'|"\"\\\u001b"
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
	from_json "$TMP/file" 'assert top["bpf-metadata"][1] == {"id": 9, "name": "beta", "metadata": {}}, top'
	write_file "$TMP/file" <<<'file.block, file.with_records, file.odd = b"", False, file.metadata(perfgen.ALPHA)'
	from_json "$TMP/file" 'assert [prog["id"] for prog in top["bpf-metadata"]] == [7], top'
	write_file "$TMP/file" <<<'file.block, file.with_records = b"", False'
	from_json "$TMP/file" 'assert "bpf-metadata" not in top
frames = [frame for sample in top["samples"] for frame in sample["callchain"]]
assert [frame["bpf-prog-id"] for frame in frames] == [7, 7, 9, 9], top'
}

run_tests
