#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Files that nobody should write. Documentation/malformed.rst names them and what
# perf prints; each must be read to its end all the same.

. "$(dirname "$0")/lib.sh"

NATIVE_ONLY="it reads files that are made up"

TABLE=$SELFTESTS/../Documentation/malformed.rst
SAMPLES=4

perfgen()
{
	python3 "$SELFTESTS/perfgen.py" "$@"
}

# write_case CASE FILE OPTION...
write_case()
{
	CASE=$1
	rm -rf "$TMP/text" "$2"
	perfgen write "$@" >"$TMP/offset"
}

# Of the table, CASE|MESSAGE
list_documented()
{
	sed -n 's/^   \([a-z0-9-]*\) | [^|]* | \(.*\)$/\1|\2/p' "$TABLE"
}

# perf that ends, without an error; its output is $TMP/out
run()
{
	local status=0

	timeout $((30 * SCALE)) "$PBM_PERF" "$@" >"$TMP/stdout" 2>"$TMP/out" </dev/null || status=$?
	[[ " $* " = *' -o - '* ]] || cat "$TMP/stdout" >>"$TMP/out"
	((status == 0)) || fail "$CASE: perf $* ends with status $status: $(head -c 2000 "$TMP/out")"
	cat "$TMP/out" >>"$TMP/text"
}

# All that was printed about a case
check_text()
{
	if ! iconv -f UTF-8 -t UTF-8 "$TMP/text" >/dev/null; then
		fail "$CASE: something isn't UTF-8"
	fi
	if grep -a -P -e '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$TMP/text"; then
		fail "$CASE: a control character is printed"
	fi
	rm "$TMP/text"
}

check_number()
{
	local what=$1 want=$2 got

	got=$(grep -a -c -e "$3" "$TMP/out") || :
	[[ $got = "$want" ]] || fail "$CASE: $got $what, want $want: $(head -c 2000 "$TMP/out")"
}

check_script()
{
	run script --show-bpf-events -i "$1"
	check_number "samples of perf script $1" "$SAMPLES" ' cpu-clock: '
	check_number "good sets of perf script $1" "${2:-2}" \
		'^  entry 0: *version = "\(1\.2\.3\|2\.0\)"$'
}

read_everywhere()
{
	local file=$1

	check_script "$file"
	cp "$TMP/out" "$TMP/script"
	run report -D -i "$file"
	check_number "samples of perf report -D" "$SAMPLES" ': PERF_RECORD_SAMPLE('
	run report --stdio -s bpf_prog,bpf_metadata -i "$file"
	check_number "samples of perf report" 1 "^# Samples: $SAMPLES "
	run evlist -i "$file"
	check_number "events of perf evlist" 1 '^cpu-clock$'
	run report --header-only -i "$file"
	cp "$TMP/out" "$TMP/header"
}

convert_everywhere()
{
	local file=$1

	run inject -i "$file" -o "$TMP/injected"
	check_script "$TMP/injected"
	run inject --bpf-metadata=header -i "$file" -o "$TMP/injected"
	check_script "$TMP/injected" 0
	run inject -i "$file" -o -
	mv "$TMP/stdout" "$TMP/piped"
	check_script "$TMP/piped"
	run data convert --force --to-json "$TMP/json" -i "$file"
	cat "$TMP/json" >>"$TMP/text"
	python3 - "$TMP/json" "$SAMPLES" <<-'END' || fail "$CASE: perf data convert: $(cat "$TMP/json")"
		import json, sys
		assert len(json.load(open(sys.argv[1]))["samples"]) == int(sys.argv[2])
	END
}

# $1 is what file $2 has; after -v, what only "perf $3... -v" prints
check_message()
{
	local message=${1#-v }

	if [[ $1 = "$message" ]]; then
		cp "$2" "$TMP/out"
	elif grep -a -q -F -e "$message" "$2"; then
		fail "$CASE: prints '$message' without -v"
	else
		run "${@:3}" -v -i "$TMP/file"
	fi
	grep -a -q -F -e "$message" "$TMP/out" ||
		fail "$CASE: doesn't print '$message': $(cat "$TMP/out")"
}

# The cases that match $1; $2, if any, checks the message of each.
check_cases()
{
	local message

	list_documented | grep -E -e "^($1)" >"$TMP/cases"
	while IFS='|' read -r CASE message; do
		write_case "$CASE" "$TMP/file"
		read_everywhere "$TMP/file"
		convert_everywhere "$TMP/file"
		"$2" "$message"
		check_text
	done <"$TMP/cases"
}

check_printed()
{
	check_message "$1" "$TMP/script" script
}

check_header()
{
	check_message "$1" "$TMP/header" report --header-only
}

check_left_out()
{
	check_message "$1" "$TMP/header" inject -o "$TMP/injected"
	run report --header-only -i "$TMP/injected"
	grep -q '^# hostname : host$' "$TMP/out"
}

check_refusal()
{
	local warning

	warning="^$(cat "$TMP/offset") \[0x[0-9a-f]*\]: skipped a malformed PERF_RECORD_BPF_METADATA: $1\$"
	[[ $(grep -c -e "$warning" "$TMP/script") = 1 ]] || fail "$CASE: no $warning: $(cat "$TMP/script")"
	if grep -a -e 'gamma' -e 'worse' "$TMP/script"; then
		fail "$CASE: prints a refused record"
	fi
}

check_ignored()
{
	check_header "$1"
	[[ $1 = -v* ]] || grep -q -x -e "WARNING: ignored BPF metadata in the header at 0x[0-9a-f]*: $1" "$TMP/header" ||
		fail "$CASE: no warning: $(cat "$TMP/header")"
	if grep -e '^# bpf_metadata' "$TMP/header"; then
		fail "$CASE: prints metadata of the refused block"
	fi
	# The records are as good as before: convert_everywhere() has made a block of them.
	run report --header-only -i "$TMP/injected"
	grep -q -x -F -e '# bpf_metadata 7 alpha: version="1.2.3", answer=42' "$TMP/out" ||
		fail "$CASE: no block is made of the records: $(cat "$TMP/out")"
	run report --stdio -s bpf_metadata -i "$TMP/file"
	grep -q -e '50.00%  version="2.0"' "$TMP/out" || fail "$CASE: not in the report: $(cat "$TMP/out")"
	grep -q -e '"version": *"2.0"' "$TMP/json" || fail "$CASE: not in JSON: $(cat "$TMP/json")"
}

REFUSED='record-(of-8|short|unaligned|entries-|name-no-nul|key-no-nul|value-no-nul|key-empty)'
ODD='record-(no-entries|no-sample|long|name-empty|value-empty|value-no-json|key-twice|key-no-utf8|value-no-utf8|.*-controls|first)'
ODD_BLOCK='block-(of-no|inside|controls|.*-cut|overlaps)'
BLOCK='block-(magic|version|length|section|counts|sets-|set-[eu]|ids|name-[lo]|key-outside|value|key-(empty|twice)|no-|too)'

test_each_case_is_documented()
{
	perfgen list | grep -v -x good | sort >"$TMP/want"
	list_documented | cut -d '|' -f 1 | sort >"$TMP/got"
	same "cases of $TABLE" "$TMP/want" "$TMP/got"
	list_documented | cut -d '|' -f 1 | grep -v -E -e "^($REFUSED|$ODD|$BLOCK|$ODD_BLOCK|info-|feature-|type-|ksymbol-)" >"$TMP/left" || :
	[[ ! -s $TMP/left ]] || fail "no test reads $(cat "$TMP/left")"
}

test_a_good_file_is_read()
{
	write_case good "$TMP/file"
	read_everywhere "$TMP/file"
	grep -q -x -F -e '# bpf_metadata 7 alpha: version="1.2.3", answer=42' "$TMP/header"
	grep -q -x -F -e '# bpf_metadata 9 beta: version="2.0"' "$TMP/header"
	convert_everywhere "$TMP/file"
	check_text
}

test_malformed_records_are_skipped()
{
	check_cases "$REFUSED" check_refusal
}

test_odd_records_are_shown()
{
	check_cases "$ODD" check_printed
}

test_malformed_blocks_are_ignored()
{
	check_cases "$BLOCK" check_ignored
}

test_odd_blocks_are_shown()
{
	check_cases "$ODD_BLOCK" check_header
}

test_malformed_program_infos_do_no_harm()
{
	check_cases info- check_header
}

test_unknown_features_are_left_out()
{
	check_cases feature- check_left_out
}

test_unknown_types_are_skipped()
{
	check_cases type- check_printed
}

test_programs_in_each_others_place_are_shown()
{
	check_cases ksymbol- check_printed
}

# The menu of a row asks whether its map is that of the kernel.
test_programs_in_each_others_place_are_browsed()
{
	local symbol=bpf_prog_0123456789abcdef_gamma

	write_case ksymbol-over-another "$TMP/file"
	open_terminal "$PBM_PERF" report --tui -s dso,sym -S "$symbol" -i "$TMP/file"
	await "the warning that the file has no kernel" terminal_shows '^ *.?Press any key'
	press Enter
	await "the row of $symbol" terminal_shows "^ *[0-9.]+%.*$symbol"
	press Enter
	await "the menu of $symbol" terminal_shows "^Zoom into $symbol DSO"
}

# generate CASE [OPTION...]: $TMP/file, with the change that standard input makes to "file"
generate()
{
	CASE=$1
	{
		echo 'import sys, perfgen'
		echo 'file = perfgen.File("--big" in sys.argv, "--pipe" in sys.argv)'
		cat
		echo 'file.write(sys.argv[1])'
	} >"$TMP/change.py"
	PYTHONPATH=$SELFTESTS python3 "$TMP/change.py" "$TMP/file" "${@:2}"
}

# "Aa" and "BB" have one hash if each character is multiplied by 31, and so has all
# that is made of them.
test_many_keys_with_the_same_hash_are_read()
{
	generate "keys with the same hash" <<-'END'
		import itertools
		keys = [b"".join(key) + b"\0" for key in itertools.product((b"Aa", b"BB"), repeat=17)]
		strings = b"alpha\0" + b"1\0" + b"".join(keys)
		entries = [(8 + i * len(keys[0]), 6) for i in range(len(keys))]
		file.block = file.make_block(progs=[(7, 0, 0)], sets=[len(entries)], entries=entries,
		                             strings=strings)
	END
	run inject --bpf-metadata=header -i "$TMP/file" -o "$TMP/injected"
	run report --header-only -i "$TMP/injected"
	grep -q -e '^# bpf_metadata 7 alpha: \(Aa\)*=1, .*, \(BB\)*=1$' "$TMP/out"
}

test_a_value_of_many_strings_is_converted()
{
	generate "a value of many strings" <<-'END'
		value = b"[" + b",".join((1 << 21) * [b'""']) + b"]"
		file.block = file.make_block(progs=[(7, 0, 0)], sets=[1], entries=[(6, 8)],
		                             strings=b"alpha\0" + b"k\0" + value + b"\0")
	END
	run data convert --force --to-json "$TMP/json" -i "$TMP/file"
	python3 - "$TMP/json" <<-'END'
		import json, sys
		progs = json.load(open(sys.argv[1]))["headers"]["bpf-metadata"]
		assert [len(prog["metadata"]["k"]) for prog in progs] == [1 << 21]
	END
}

other_order()
{
	[[ $(printf '\001\000' | od -An -tu2) -eq 1 ]] || return 0
	echo --big
}

# What is behind them must not be swapped with them. Where a sample id has no room
# perf takes what is in front of the event, with and without the series, which
# sanitizers would report.
test_short_events_of_the_other_byte_order_are_read()
{
	local order size type

	order=$(other_order)
	for type in KSYMBOL BPF_EVENT; do
		for size in 8 20 30; do
			((size > 24)) || [[ ${PBM_SANITIZED:-0} != 1 ]] || continue
			generate "$type of $size bytes" ${order:+"$order"} <<-END
				file.odd = file.record(perfgen.$type, bytes($size - 8))
			END
			check_script "$TMP/file"
		done
	done
}

# As from a pipe, and by machines of the other byte order
test_malformed_files_of_others_are_read()
{
	local order

	order=$(other_order)
	while IFS='|' read -r CASE _; do
		write_case "$CASE" "$TMP/file" --pipe
		check_script "$TMP/file"
		run report --stdio -i "$TMP/file"
		check_text
		write_case "$CASE" "$TMP/file" ${order:+"$order"}
		check_script "$TMP/file"
		run report --header-only -i "$TMP/file"
		check_text
	done < <(list_documented)
}

test_unknown_types_are_skipped_in_a_directory()
{
	SAMPLES=8
	for CASE in type-next type-far type-last; do
		write_case "$CASE" "$TMP/dir" --dir
		check_script "$TMP/dir" 4
		check_text
	done
}

# FILE, cut at byte $2: as check_script, for a thousand calls
check_cut()
{
	local out

	truncate -s "$2" "$1"
	out=$("$PBM_PERF" script --show-bpf-events -i "$1" 2>&1 </dev/null) ||
		fail "cut at $2: perf script ends with status $?: $out"
	[[ $out = *cpu-clock:*cpu-clock:*cpu-clock:*cpu-clock:* ]] || fail "cut at $2: samples are missing: $out"
	[[ $out = *'version = "1.2.3"'* ]] || fail "cut at $2: a good set is missing: $out"
	[[ $out = *$3* ]] || fail "cut at $2: doesn't print '$3': $out"
}

# Without the last record, what is there is read, to the byte.
test_a_file_cut_at_each_byte_of_a_record_is_read()
{
	local begin end at

	write_case good "$TMP/file"
	read -r begin end _ <<<"$(perfgen marks "$TMP/file")"
	for ((at = end - 1; at >= begin; at--)); do
		check_cut "$TMP/file" "$at" " file is truncated, $((end - at)) of "
	done
	check_script "$TMP/file" 1
}

test_a_file_cut_at_each_byte_of_the_block_is_read()
{
	local begin end at message=': the file is truncated'

	write_case good "$TMP/file"
	read -r _ _ begin end <<<"$(perfgen marks "$TMP/file")"
	for ((at = end - 1; at >= begin; at--)); do
		((at >= begin + 16)) || message=
		check_cut "$TMP/file" "$at" "$message"
	done
	check_script "$TMP/file"
}

test_a_file_cut_within_the_table_of_features_is_read()
{
	local _ end

	write_case good "$TMP/file"
	read -r _ end _ <<<"$(perfgen marks "$TMP/file")"
	truncate -s "$((end + 7))" "$TMP/file"
	check_script "$TMP/file"
	grep -q -e ' file is truncated, its header features are missing' "$TMP/out"
	convert_everywhere "$TMP/file"
}

# The events before the last are on other pages than it.
test_a_large_file_cut_within_its_last_record_is_read()
{
	local _ end

	write_case record-long-tail "$TMP/file"
	read -r _ end _ <<<"$(perfgen marks "$TMP/file")"
	check_cut "$TMP/file" "$((end - 8))" ": the data ends within an event, the last "
	check_script "$TMP/file" 1
}

# By more than a page: nothing is mapped there.
test_a_file_without_most_of_its_data_is_read()
{
	SAMPLES=2
	write_case record-long-tail "$TMP/file"
	truncate -s 2000 "$TMP/file"
	check_script "$TMP/file" 0
	grep -q -e ' file is truncated' "$TMP/out"
	run report --stdio -i "$TMP/file"
	run data convert --force --to-json "$TMP/json" -i "$TMP/file"
	run inject -i "$TMP/file" -o "$TMP/injected"
	check_script "$TMP/injected" 0
}

# The event is whole, the data that should follow it is not.
test_aux_area_data_that_is_cut_off_ends_the_data()
{
	SAMPLES=2
	generate auxtrace <<-'END'
		file.odd = file.record(71, file.u64(1 << 40, 0, 0) + file.u32(0, 0, 0, 0))
	END
	check_script "$TMP/file" 0
	grep -q -e 'the data ends within an event, the last' "$TMP/out"
}

# Ends in an event, and is as long as it says
test_data_that_end_within_an_event_are_read()
{
	local at

	SAMPLES=8
	write_case good "$TMP/dir" --dir
	for at in 1 8 100; do
		truncate -s "-$at" "$TMP/dir/data.0"
		check_script "$TMP/dir" 3
		grep -q -e 'the data ends within an event, the last' "$TMP/out"
	done
}

run_tests \
	test_each_case_is_documented \
	test_a_good_file_is_read \
	test_malformed_records_are_skipped \
	test_odd_records_are_shown \
	test_malformed_blocks_are_ignored \
	test_odd_blocks_are_shown \
	test_malformed_program_infos_do_no_harm \
	test_unknown_features_are_left_out \
	test_unknown_types_are_skipped \
	test_unknown_types_are_skipped_in_a_directory \
	test_programs_in_each_others_place_are_shown \
	test_programs_in_each_others_place_are_browsed \
	test_many_keys_with_the_same_hash_are_read \
	test_a_value_of_many_strings_is_converted \
	test_short_events_of_the_other_byte_order_are_read \
	test_malformed_files_of_others_are_read \
	test_a_file_cut_at_each_byte_of_a_record_is_read \
	test_a_file_cut_at_each_byte_of_the_block_is_read \
	test_a_file_cut_within_the_table_of_features_is_read \
	test_a_large_file_cut_within_its_last_record_is_read \
	test_a_file_without_most_of_its_data_is_read \
	test_aux_area_data_that_is_cut_off_ends_the_data \
	test_data_that_end_within_an_event_are_read
