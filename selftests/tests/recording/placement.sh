#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Records stand after the last sample, in files and in pipes, and every command
# that reads or rewrites a recording keeps them and all samples.

. "$(dirname "$0")/../../lib/test-lib.sh"

# A file and what went through a pipe are the same for all tests of this file.
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

# $1 has the entries of the program, and perf script reads them and all samples.
# $2: what perfdata.py is to check, if it is not all.
check_recording()
{
	local shown

	perfdata "${2:-check}" "$1"
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

test_records_are_last_in_a_file()
{
	record_once
	check_recording "$TMP/file"
}

test_records_are_last_in_a_pipe()
{
	record_once
	check_recording "$TMP/pipe"
}

test_perf_script_reads_them_from_a_pipe_of_perf_record()
{
	hold simple
	record - | "$PBM_PERF" script --show-bpf-events -i - >"$TMP/script"
	values entries "$TMP/script" "$(symbol_of 0)" | sort >"$TMP/got"
	printf 'version\t"1.2.3"\nanswer\t42\n' | sort >"$TMP/want"
	same "entries in perf script" "$TMP/want" "$TMP/got"
}

test_perf_inject_keeps_them_in_a_file()
{
	native_only "it rewrites files"
	record_once
	"$PBM_PERF" inject -i "$TMP/file" -o "$TMP/injected"
	check_recording "$TMP/injected"
}

test_perf_inject_with_build_ids_keeps_them()
{
	native_only "it rewrites files"
	record_once
	"$PBM_PERF" inject -b -i "$TMP/file" -o "$TMP/injected"
	# It sorts samples, which therefore come later than all that has no time.
	check_recording "$TMP/injected" check-records
	(($(count_samples "$TMP/injected") == $(count_samples "$TMP/file"))) ||
		fail "not as many samples as before"
}

test_perf_inject_keeps_them_in_a_pipe()
{
	native_only "it rewrites files"
	record_once
	"$PBM_PERF" inject -i - -o - <"$TMP/pipe" >"$TMP/injected"
	check_recording "$TMP/injected"
}

test_perf_inject_keeps_them_from_a_pipe_to_a_file()
{
	native_only "it rewrites files"
	record_once
	"$PBM_PERF" inject -i - -o "$TMP/injected" <"$TMP/pipe"
	check_recording "$TMP/injected"
}

test_perf_report_D_decodes_them()
{
	record_once
	"$PBM_PERF" report -D -i "$TMP/file" >"$TMP/dump"
	grep -A 3 -e "PERF_RECORD_BPF_METADATA prog $(cat "$TMP/symbol")" "$TMP/dump" >"$TMP/decoded"
	cat "$TMP/decoded"
	grep -e 'version = "1.2.3"$' "$TMP/decoded"
	grep -e 'answer = 42$' "$TMP/decoded"
}

run_tests
