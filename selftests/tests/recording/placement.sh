#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Metadata records of programs that were loaded before the recording are before the first sample.
# Metadata records of later programs are after the last sample. By default, commands that read or
# rewrite a recording keep all metadata records and all samples.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

# Several tests share these two recordings of the same programs, one in a file, one from a pipe.
record_once()
{
	[[ ! -e $TMP/symbol ]] || return 0
	hold simple keys_203
	record "$TMP/file"
	record - >"$TMP/pipe"
	symbol_of 0 >"$TMP/symbol"
}

count_samples()
{
	perfdata types "$1" | grep -c -x 9
}

# want_places PLACES FILE SYMBOL...: fail unless the records of each function have these places
want_places()
{
	local symbol

	for symbol in "${@:3}"; do
		perfdata places "$2" | awk -F '\t' -v symbol="$symbol" '$2 == symbol { print $1 }' >"$TMP/places"
		[[ $(tr '\n' ' ' <"$TMP/places") = "$1 " ]] ||
			fail "records of $symbol in $2 are not at '$1', but at $(cat "$TMP/places")"
	done
}

# check_recording FILE [CHECK]: FILE has the entries of the program simple, and perf script reads
# them and all samples. CHECK is a command of perfdata.py (default: check).
check_recording()
{
	local shown

	perfdata "${2:-check}" "$1"
	want_places begin "$1" "$(cat "$TMP/symbol")"
	printf 'version\t"1.2.3"\nanswer\t42\n' | sort >"$TMP/want"
	perfdata entries "$1" "$(cat "$TMP/symbol")" | sort >"$TMP/got"
	same "entries in the file" "$TMP/want" "$TMP/got"

	"$PBM_PERF" script --show-bpf-events -i "$1" >"$TMP/script"
	values entries "$TMP/script" "$(cat "$TMP/symbol")" | sort >"$TMP/got"
	same "entries in perf script" "$TMP/want" "$TMP/got"

	"$PBM_PERF" script -F comm -i "$1" >"$TMP/samples"
	shown=$(wc -l <"$TMP/samples")
	(($(count_samples "$1") == shown)) ||
		fail "$shown samples shown, $(count_samples "$1") in the file"
}

# Like those of upstream's perf, records follow the events of their program.
test_records_are_first_in_files_and_pipes()
{
	record_once
	check_recording "$TMP/file"
	check_recording "$TMP/pipe"
	perfdata types "$TMP/file" >"$TMP/types"
	awk '$1 == 9 { exit } $1 == 84 && last != 18 && last != 84 { bad = 1 } { last = $1 }
		END { exit bad }' "$TMP/types" || fail "a record follows neither PERF_RECORD_BPF_EVENT nor another record"
	"$PBM_PERF" report -D -i "$TMP/file" >"$TMP/dump"
	grep -A 3 -e "PERF_RECORD_BPF_METADATA prog $(cat "$TMP/symbol")" "$TMP/dump" >"$TMP/decoded"
	grep -e 'version = "1.2.3"$' "$TMP/decoded"
	grep -e 'answer = 42$' "$TMP/decoded"
}

test_perf_inject_keeps_records()
{
	native_only "the test only rewrites files"
	record_once
	"$PBM_PERF" inject -i "$TMP/file" -o "$TMP/injected"
	check_recording "$TMP/injected"
	"$PBM_PERF" inject -i - -o - <"$TMP/pipe" >"$TMP/injected"
	check_recording "$TMP/injected"
	"$PBM_PERF" inject -i - -o "$TMP/injected" <"$TMP/pipe"
	check_recording "$TMP/injected"
	"$PBM_PERF" inject -b -i "$TMP/file" -o "$TMP/injected"
	# perf inject -b sorts samples, but not records. So samples can follow the records at the end.
	check_recording "$TMP/injected" check-records
	(($(count_samples "$TMP/injected") == $(count_samples "$TMP/file"))) ||
		fail "not as many samples as before"
}

# If the metadata of a program that was there at the start has not changed, there is no second
# record at the end.
test_record_of_a_program_that_loads_later_is_at_the_end()
{
	local early

	hold simple
	early=$(symbol_of 0)
	start_recording "$TMP/later" -a
	churn -n 1
	"${WORKLOAD[@]}"
	stop_recording
	perfdata check "$TMP/later"
	want_places begin "$TMP/later" "$early"
	perfdata ksymbols "$TMP/later" >"$TMP/ksymbols"
	want_places end "$TMP/later" "$(grep -m 1 -e '_churn_1$' "$TMP/ksymbols")"
}

test_records_come_last_with_tail_synthesize()
{
	hold simple
	record "$TMP/tail" --tail-synthesize
	perfdata check "$TMP/tail"
	want_places end "$TMP/tail" "$(symbol_of 0)"
}

run_tests
