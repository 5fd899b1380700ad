#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf inject --bpf-metadata-add adds the keys of a JSON file to the metadata of the programs whose
# ids are in this file. This works for files and pipes. Events other than metadata stay the same.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

NATIVE_ONLY="the test rewrites files"

# Most tests here share the recordings. The second program has no metadata of its own.
record_once()
{
	[[ ! -e $TMP/json ]] || return 0
	hold simple none
	record "$TMP/both" -F 999
	record - -F 999 >"$TMP/pipe"
	perfdata strip-block "$TMP/both" "$TMP/records-only"
	make_json "${HELD_IDS[@]}" >"$TMP/json.part"
	mv "$TMP/json.part" "$TMP/json"
}

# make_json ID...: print keys of these programs as JSON. The value of one key needs escapes.
make_json()
{
	python3 - "$@" <<-'END'
	import json, sys
	metadata = {"unit": "a.service", "version": "other", "exe": "/x \"\\\x07\u00e9=\n,:[]{}"}
	print(json.dumps([{"name": "any", "metadata": {"nr": int(i), **metadata}, "id": int(i), "i": 7, "ids": 8}
	                  for i in sys.argv[1:]], indent="\t", ensure_ascii=False).replace("\n", "\r\n"))
	END
}

# Print ID KEY VALUE of the programs in $TMP/json, from the bytes of file or pipe $1
metadata_of()
{
	local ids

	ids=$(grep -o '"id": [0-9]*' "$TMP/json" | grep -o '[0-9]*')
	perfdata block "$1" >"$TMP/all-lines"
	awk -F '\t' -v ids="$ids" 'BEGIN { split(ids, a, "\n"); for (i in a) held[a[i]] }
		$1 in held { print $1, $4, $5 }' "$TMP/all-lines" | LC_ALL=C sort
}

# want_added FILE INPUT: FILE has INPUT's metadata, and the keys of $TMP/json that INPUT lacks.
want_added()
{
	metadata_of "$2" >"$TMP/declared"
	python3 - "$TMP/json" "$TMP/declared" <<-'END' | LC_ALL=C sort >"$TMP/want"
	import json, sys
	values = {(prog["id"], key): json.dumps(value, ensure_ascii=False) for prog in json.load(open(sys.argv[1]))
	          for key, value in prog["metadata"].items()}
	for line in open(sys.argv[2]):
	    prog, key, value = line.rstrip("\n").split(" ", 2)
	    values[int(prog), key] = value
	for (prog, key), value in values.items():
	    print(prog, key, value)
	END
	metadata_of "$1" >"$TMP/got"
	same "metadata of $1" "$TMP/want" "$TMP/got"
}

add()
{
	"$PBM_PERF" inject --bpf-metadata-add "$@" 2>"$TMP/messages" || fail "$(cat "$TMP/messages")"
}

want_message()
{
	grep -q -e "$1" "$TMP/messages" || fail "no '$1' in: $(cat "$TMP/messages")"
}

test_keys_are_added_by_program_id()
{
	record_once
	[[ $(metadata_of "$TMP/both" | cut -d ' ' -f 1 | sort -u) = "${HELD_IDS[0]}" ]] ||
		fail "want only metadata of program ${HELD_IDS[0]}"
	add "$TMP/json" -i "$TMP/both" -o "$TMP/added"
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
	want_added "$TMP/added" "$TMP/both"
	want_no_records "$TMP/added"
	add "$TMP/json" -i "$TMP/pipe" -o "$TMP/out"
	want_added "$TMP/out" "$TMP/pipe"
	add "$TMP/json" -i "$TMP/both" -o - >"$TMP/out"
	want_added "$TMP/out" "$TMP/both"
	add <(cat "$TMP/json") -i - -o - <"$TMP/pipe" >"$TMP/out"
	want_added "$TMP/out" "$TMP/pipe"
}

# A key in a record keeps its value, too, although records have no ids of programs.
test_keys_in_records_keep_their_values()
{
	record_once
	add "$TMP/json" -i "$TMP/records-only" -o "$TMP/out"
	want_added "$TMP/out" "$TMP/both"
	add "$TMP/json" --bpf-metadata-names=version -i "$TMP/records-only" -o "$TMP/out"
	perfdata programs "$TMP/out" >"$TMP/programs"
	grep -q '_simple\[version=1' "$TMP/programs" || fail "no name has a record's version"
}

# The events that name the program are compressed. perf inject finds the program in bpf_prog_info
# of a file, and in the metadata of a pipe.
test_programs_whose_events_are_compressed()
{
	local mode

	"$PBM_PERF" check feature -q zstd || skip "perf is built without zstd"
	for mode in none header; do
		start_recording "$TMP/compressed" -a -z --bpf-metadata="$mode"
		hold simple
		stop_recording
		make_json "${HELD_IDS[0]}" >"$TMP/late"
		[[ $mode = none ]] || "$PBM_PERF" inject -i "$TMP/compressed" -o - >"$TMP/late-pipe"
		[[ $mode = none ]] || mv "$TMP/late-pipe" "$TMP/compressed"
		add "$TMP/late" -i "$TMP/compressed" -o "$TMP/out"
		perfdata block "$TMP/out" >"$TMP/all-lines"
		cut -f 1,4 "$TMP/all-lines" >"$TMP/keys"
		grep -q -x "${HELD_IDS[0]}	unit" "$TMP/keys" ||
			fail "$mode: program ${HELD_IDS[0]} has no unit: $(cat "$TMP/messages" "$TMP/all-lines")"
		release
	done
}

test_events_other_than_metadata_stay()
{
	record_once
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/both" -o "$TMP/header"
	"$PBM_PERF" script -D -i "$TMP/header" | sed 's/0x[0-9a-f]*@[^ ]* //; /FEATURE/d' |
		without_vdso_names >"$TMP/want"
	add "$TMP/json" -i "$TMP/both" -o "$TMP/out"
	"$PBM_PERF" script -D -i "$TMP/out" | sed 's/0x[0-9a-f]*@[^ ]* //; /FEATURE/d' |
		without_vdso_names >"$TMP/got"
	same "events" "$TMP/want" "$TMP/got"
}

test_added_keys_are_in_the_header_and_in_names()
{
	record_once
	add "$TMP/json" -i "$TMP/both" -o "$TMP/added"
	"$PBM_PERF" report --header-only -i "$TMP/added" >"$TMP/header"
	grep -q "^# bpf_metadata ${HELD_IDS[1]:-.*} none: .*, unit=\"a.service\", version=\"other\"$" \
		"$TMP/header" || fail "$(grep bpf_metadata "$TMP/header")"
	"$PBM_PERF" inject --bpf-metadata-add "$TMP/json" --bpf-metadata-names=unit,version \
		-i "$TMP/both" -o "$TMP/out"
	perfdata programs "$TMP/out" >"$TMP/programs"
	grep -q '_none\[unit=a.service\]\[version=other\]' "$TMP/programs" || fail "no name has the unit"
	grep -q '_simple\[unit=a.service\]\[version=1' "$TMP/programs" || fail "no name has the declared version"
}

test_perf_warns_of_programs_that_the_input_lacks()
{
	local option

	record_once
	make_json $(($(grep -m 1 -o '"id": [0-9]*' "$TMP/json" | grep -o '[0-9]*') + 4294967296)) 4294967295 >"$TMP/others"
	for option in "" --bpf-metadata-names=unit; do
		add "$TMP/others" ${option:+"$option"} -i "$TMP/both" -o "$TMP/out"
		want_message "lacks 2 BPF programs of $TMP/others"
		(($(grep -c lacks "$TMP/messages") == 1)) || fail "$(cat "$TMP/messages")"
		! "$PBM_PERF" report --header-only -i "$TMP/out" | grep a.service || fail "header has a.service"
	done
	record "$TMP/no-programs" --no-bpf-event
	add "$TMP/json" -i "$TMP/no-programs" -o "$TMP/out"
	want_message "lacks 2 BPF programs"
	printf '[]' >"$TMP/empty"
	add "$TMP/empty" -i "$TMP/both" -o "$TMP/out"
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
}

# refused FILE MESSAGE: perf inject must refuse the JSON file FILE with this message.
refused()
{
	! "$PBM_PERF" inject --bpf-metadata-add "$1" -i "$TMP/both" -o "$TMP/out" 2>"$TMP/messages" ||
		fail "perf inject accepts: $(cat "$1")"
	want_message "$2"
}

# The number in a message is the byte at which reading ends.
test_broken_json_files_are_errors()
{
	local byte text

	record_once
	while read -r byte text; do
		printf '%s' "$text" >"$TMP/broken"
		refused "$TMP/broken" "Can't use $TMP/broken from byte $byte on: see --bpf-metadata-add in 'man perf-inject'"
	done <<-'END'
		1 [
		0 {"id":1}
		0 "a"
		4 ["a"]
		0 
		9 [{"meta":{}}]
		9 [{"id":1}
		8 [{"id":1]
		1 [1]
		7 [{"id":-1}]
		2 [{1:1}]
		2 [{"":1}]
		8 [{"a":1,x
		9 [{"pids":[1]}]
		6 [{"x":{}}]
		14 [{"metadata":{"a=b":1}}]
		14 [{"metadata":{"":1}}]
		18 [{"metadata":{"a":{}}}]
		18 [{"metadata":{"a":null}}]
		18 [{"metadata":{"a":"b
		18 [{"metadata":{"a":"b\
	END
	printf '[{"metadata":{"a":"b\n"}}]' >"$TMP/broken"
	refused "$TMP/broken" "from byte"
	printf '[{"metadata":{"a":"b\\\n"}}]' >"$TMP/broken"
	refused "$TMP/broken" "from byte"
	refused "$TMP" "Can't use $TMP from byte 0 on"
	refused "$TMP/not-there" "Can't read $TMP/not-there: No such file"
}

test_an_update_in_place_is_refused()
{
	record_once
	cp "$TMP/both" "$TMP/copy"
	! "$PBM_PERF" inject --vm-time-correlation=1 --force --bpf-metadata-add "$TMP/json" -i "$TMP/copy" \
		2>"$TMP/messages" || fail "perf inject accepts an update in place"
	want_message "can't rewrite a file that is updated in place"
}

run_tests
