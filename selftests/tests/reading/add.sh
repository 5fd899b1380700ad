#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf inject --bpf-metadata-add adds the keys in the lines of a file to the metadata of the programs
# with these ids and names. The output is a file. Events other than metadata stay the same.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

NATIVE_ONLY="the test rewrites files"

# Most tests here share the recordings. The second program has no metadata of its own.
record_once()
{
	[[ ! -e $TMP/lines ]] || return 0
	hold simple none
	record "$TMP/both" -F 999
	record - -F 999 >"$TMP/pipe"
	perfdata strip-block "$TMP/both" "$TMP/records-only"
	lines_of "${HELD_IDS[0]}" simple >"$TMP/lines.part"
	lines_of "${HELD_IDS[1]}" - >>"$TMP/lines.part"
	mv "$TMP/lines.part" "$TMP/lines"
}

# lines_of ID NAME: print lines of this program. The value of one key needs escapes.
lines_of()
{
	printf "$1 $2 %s\n" "nr=$1" unit=a.service version=other 'exe= /x "\é=,:[]{}' empty= Az_9.-=k
}

# Print ID KEY VALUE of the programs in $TMP/lines, from the bytes of file or pipe $1
metadata_of()
{
	perfdata block "$1" >"$TMP/all-lines"
	awk -F '\t' 'NR == FNR { split($0, word, " "); held[word[1]]; next }
		$1 in held { print $1, $4, $5 }' "$TMP/lines" "$TMP/all-lines" | LC_ALL=C sort
}

# want_added FILE INPUT: FILE has INPUT's metadata, and the keys of $TMP/lines that INPUT lacks.
want_added()
{
	metadata_of "$2" >"$TMP/declared"
	python3 - "$TMP/lines" "$TMP/declared" <<-'END' | LC_ALL=C sort >"$TMP/want"
	import json, sys
	values = {}
	for line in open(sys.argv[1], encoding="utf-8"):
	    prog, _, rest = line.rstrip("\n").split(" ", 2)
	    key, _, value = rest.partition("=")
	    values[int(prog), key] = json.dumps(value, ensure_ascii=False)
	for line in open(sys.argv[2], encoding="utf-8"):
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
	add "$TMP/lines" -i "$TMP/both" -o "$TMP/added"
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
	want_added "$TMP/added" "$TMP/both"
	want_no_records "$TMP/added"
	add "$TMP/lines" -i "$TMP/pipe" -o "$TMP/out"
	want_added "$TMP/out" "$TMP/both"
	add <(cat "$TMP/lines") -i - -o "$TMP/out" <"$TMP/pipe"
	want_added "$TMP/out" "$TMP/both"
	if "$PBM_PERF" inject --bpf-metadata-add "$TMP/lines" -i "$TMP/both" -o - >"$TMP/out" 2>"$TMP/messages"; then
		fail "keys are added to a pipe, which has metadata only in records"
	fi
	want_message '--bpf-metadata-add need an output file (-o)'
	[[ ! -s $TMP/out ]] || fail "perf inject fails, but writes output"
}

# A key in a record keeps its value, too.
test_keys_in_records_keep_their_values()
{
	record_once
	add "$TMP/lines" -i "$TMP/records-only" -o "$TMP/out"
	want_added "$TMP/out" "$TMP/both"
}

# The events that name the program are compressed. perf inject finds the program in bpf_prog_info
# of a file, and in the records of a pipe.
test_programs_whose_events_are_compressed()
{
	local mode

	"$PBM_PERF" check feature -q zstd || skip "perf is built without zstd"
	for mode in none header; do
		start_recording "$TMP/compressed" -a -z --bpf-metadata="$mode"
		hold simple
		stop_recording
		lines_of "${HELD_IDS[0]}" - >"$TMP/late"
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

# perf inject -s puts the events in order, too: all PERF_RECORD_FINISHED_ROUND come first.
test_events_other_than_metadata_stay()
{
	record_once
	"$PBM_PERF" inject -s --bpf-metadata=header -i "$TMP/both" -o "$TMP/header"
	"$PBM_PERF" script -D -i "$TMP/header" | sed -E 's/0x[0-9a-f]*@[^ ]* //; s/^(-?[0-9]+ [0-9]+ )0x[0-9a-f]+ /\1/; /FEATURE/d' |
		without_vdso_names >"$TMP/want"
	add "$TMP/lines" -i "$TMP/both" -o "$TMP/out"
	"$PBM_PERF" script -D -i "$TMP/out" | sed -E 's/0x[0-9a-f]*@[^ ]* //; s/^(-?[0-9]+ [0-9]+ )0x[0-9a-f]+ /\1/; /FEATURE/d' |
		without_vdso_names >"$TMP/got"
	same "events" "$TMP/want" "$TMP/got"
}

test_added_keys_are_in_the_header_and_in_names()
{
	record_once
	add "$TMP/lines" -i "$TMP/both" -o "$TMP/added"
	"$PBM_PERF" report --header-only -i "$TMP/added" >"$TMP/header"
	grep -q "^# bpf_metadata ${HELD_IDS[1]:-.*} none: .*, unit=\"a.service\", version=\"other\"$" \
		"$TMP/header" || fail "$(grep bpf_metadata "$TMP/header")"
	"$PBM_PERF" inject --bpf-metadata-names=unit,version -i "$TMP/added" -o "$TMP/out"
	perfdata programs "$TMP/out" >"$TMP/programs"
	grep -q '_none\[unit=a.service\]\[version=other\]' "$TMP/programs" || fail "no name has the unit"
	grep -q '_simple\[unit=a.service\]\[version=1' "$TMP/programs" || fail "no name has the declared version"
}

# want_left_out NUMBER: perf inject warns once that this number of lines of $TMP/others is left out
want_left_out()
{
	want_message "left out $1 lines of $TMP/others: the input has no BPF program with this id and name"
	(($(grep -c 'left out' "$TMP/messages") == 1)) || fail "$(cat "$TMP/messages")"
	! "$PBM_PERF" report --header-only -i "$TMP/out" | grep a.service || fail "the header has a.service"
}

test_programs_that_the_input_lacks_are_left_out()
{
	record_once
	lines_of 4294967295 - >"$TMP/others"
	add "$TMP/others" -i "$TMP/both" -o "$TMP/out"
	want_left_out 6
	record "$TMP/no-programs" --no-bpf-event
	cp "$TMP/lines" "$TMP/others"
	add "$TMP/others" -i "$TMP/no-programs" -o "$TMP/out"
	want_left_out 12
	: >"$TMP/empty"
	add "$TMP/empty" -i "$TMP/both" -o "$TMP/out"
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
}

# Ids begin again at each boot. The kernel stores 15 characters of a name, and old bpftools print these.
test_names_must_match()
{
	local id name

	hold simple functions
	record "$TMP/two"
	for name in Simple simpl simple2 "simple[a=b]" busy; do
		lines_of "${HELD_IDS[0]}" "$name" >"$TMP/others"
		add "$TMP/others" -i "$TMP/two" -o "$TMP/out"
		want_left_out 6
	done
	id=${HELD_IDS[1]}
	for name in functions_with_a_long_program_name functions_with_; do
		echo "$id $name unit=b" >"$TMP/others"
		add "$TMP/others" -i "$TMP/two" -o "$TMP/out"
		[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
		"$PBM_PERF" report --header-only -i "$TMP/out" >"$TMP/header"
		grep -q "^# bpf_metadata $id .*unit=\"b\"" "$TMP/header" || fail "$name: no unit"
	done
	for name in functions_with functions_with_another_name; do
		echo "$id $name unit=a.service" >"$TMP/others"
		add "$TMP/others" -i "$TMP/two" -o "$TMP/out"
		want_left_out 1
	done
	# The name may have values of an earlier run.
	"$PBM_PERF" inject --bpf-metadata-names=version -i "$TMP/two" -o "$TMP/named"
	echo "$id functions_with_a_long_program_name unit=b" >"$TMP/others"
	add "$TMP/others" -i "$TMP/named" -o "$TMP/out"
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
}

test_what_adding_excludes_is_refused()
{
	local option

	record_once
	for option in --bpf-metadata=none "--guest-data=$TMP/both,1"; do
		! "$PBM_PERF" inject "$option" --bpf-metadata-add "$TMP/lines" -i "$TMP/both" -o "$TMP/out" \
			2>"$TMP/messages" || fail "perf inject accepts $option"
		want_message "--bpf-metadata-add can't be combined with --bpf-metadata=none or --guest-data"
	done
}

# A function has no file, also if a file has its name.
test_functions_get_no_build_id()
{
	local name

	hold busy
	spend 0 50000
	record "$TMP/busy"
	perfdata costs "$TMP/busy" >"$TMP/costs"
	grep -q "^${HELD_IDS[0]}[[:space:]]" "$TMP/costs" || fail "no samples of the program"
	for name in $(perfdata ksymbols "$TMP/busy"); do
		cp "$OUTPUT/hold" "$TMP/$name"
	done
	echo "${HELD_IDS[0]} - a=b" >"$TMP/one"
	(cd "$TMP" && "$PBM_PERF" inject -b -i busy -o with-ids 2>messages && add one -b -i busy -o out)
	perfdata types "$TMP/with-ids" | grep -x 67 >"$TMP/want"
	perfdata types "$TMP/out" | grep -x 67 >"$TMP/got"
	same "build ID events" "$TMP/want" "$TMP/got"
}

# refused LINE: perf inject refuses $TMP/broken because of this line, and writes nothing.
refused()
{
	rm -f "$TMP/out"
	! "$PBM_PERF" inject --bpf-metadata-add "$TMP/broken" -i "$TMP/both" -o "$TMP/out" 2>"$TMP/messages" ||
		fail "perf inject accepts: $(cat "$TMP/broken")"
	want_message "^$TMP/broken:$1: not a line 'ID NAME KEY=VALUE', see 'man perf-inject'$"
	[[ ! -e $TMP/out ]] || fail "perf inject has begun to write: $(cat "$TMP/broken")"
}

test_broken_lines_are_errors()
{
	local text

	record_once
	while read -r text; do
		printf '1 - a=b\n%b\n' "${text//_/ }" >"$TMP/broken"
		refused 2
	done <<-'END'

		1
		1_-
		1_a=b
		1_-_a
		1_-_=b
		1_-_a!=b
		1_-_a_=b
		1_-_é=b
		1__-_a=b
		1_-__a=b
		_1_-_a=b
		1-_-_a=b
		1x_-_a=b
		-1_-_a=b
		+1_-_a=b
		0x1_-_a=b
		4294967296_-_a=b
		18446744073709551617_-_a=b
		1_-_a=b\r
		1_-_a=\t
		1_-_a=\x1b
		1_-_a=\x7f
		1_-_a=\xff
		# a comment
	END
	printf '1 - a=\0b\n' >"$TMP/broken"
	refused 2
	printf '1 %0512d a=b\n' 0 >"$TMP/broken"
	refused 1
	printf '1 - %0256d=b\n' 0 >"$TMP/broken"
	refused 1
	! "$PBM_PERF" inject --bpf-metadata-add "$TMP" -i "$TMP/both" -o "$TMP/out" 2>"$TMP/messages" ||
		fail "perf inject accepts a directory"
	want_message "Can't read $TMP: Is a directory"
	! "$PBM_PERF" inject --bpf-metadata-add "$TMP/not-there" -i "$TMP/both" -o "$TMP/out" 2>"$TMP/messages" ||
		fail "perf inject accepts a file that does not exist"
	want_message "Can't read $TMP/not-there: No such file"
}

test_a_last_line_without_newline_counts()
{
	record_once
	printf '%s - unit=last' "${HELD_IDS[0]:-$(awk '{ print $1; exit }' "$TMP/lines")}" >"$TMP/last"
	add "$TMP/last" -i "$TMP/both" -o "$TMP/out"
	"$PBM_PERF" report --header-only -i "$TMP/out" >"$TMP/header"
	grep -q '^# bpf_metadata .*unit="last"' "$TMP/header" || fail "no unit: $(cat "$TMP/header")"
}

test_an_update_in_place_is_refused()
{
	record_once
	cp "$TMP/both" "$TMP/copy"
	! "$PBM_PERF" inject --vm-time-correlation=1 --force --bpf-metadata-add "$TMP/lines" -i "$TMP/copy" \
		2>"$TMP/messages" || fail "perf inject accepts an update in place"
	want_message "can't rewrite a file that is updated in place"
}

run_tests
