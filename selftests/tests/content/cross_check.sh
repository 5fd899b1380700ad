#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# PERF_RECORD_BPF_EVENT, PERF_RECORD_KSYMBOL and the metadata agree about each program: ids, tags,
# names, keys and values. Some programs are unloaded before the recording ends.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

# Programs with and without metadata, with several functions, with a shared map, with several
# records, and two programs with the same tag and different metadata
PROGRAMS=(simple none functions shared keys_203 profiler profiler_2)

# Add bpftool's description of each held program to $TMP/want.
note_held()
{
	local id

	for id in "${HELD_IDS[@]}"; do
		"$BPFTOOL" -j prog show id "$id" >>"$TMP/want"
		echo >>"$TMP/want"
	done
}

note_unloaded()
{
	printf 'unloaded %s\n' "${HELD_IDS[@]}" >>"$TMP/want"
}

load_and_unload()
(
	trap release EXIT
	hold "$@"
	note_held
	await_read
	note_unloaded
)

# Some load before the recording, and are unloaded in it.
test_programs_that_load_and_unload()
{
	: >"$TMP/want"
	hold -n 2 "${PROGRAMS[@]}"
	start_recording "$TMP/data" -a
	note_held
	release
	note_unloaded
	load_and_unload "${PROGRAMS[@]}"
	load_and_unload -n 3 simple none functions
	hold -n 2 "${PROGRAMS[@]}"
	note_held
	stop_recording
	python3 "$SELFTESTS/lib/cross_check.py" "$TMP/data" "$TMP/want"
	perfdata check "$TMP/data"
}

run_tests
