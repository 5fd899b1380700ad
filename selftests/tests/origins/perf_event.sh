#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs of BPF_PROG_TYPE_PERF_EVENT, attached by ioctl or link, run while perf records. The
# recordings have the set (all metadata) of each program, and show what it costs.
#
# PBM_NEED_PMU=1: the machine has a PMU, so its absence is a failure.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/attach.sh"
. "$(dirname "$0")/../../lib/recording.sh"

# A prime that nothing uses as a default
PERIOD=1000003

# note_program FILE: add the metadata that bpftool shows to FILE, as KEY<TAB>VALUE. Set SYMBOL to perf's name
# of the program.
note_program()
{
	"$BPFTOOL" -j prog show id "$PROGRAM_ID" | python3 -c '
import json, sys
for key, value in json.load(sys.stdin)["metadata"].items():
    print(key, json.dumps(value), sep="\t")' >"$TMP/set"
	grep -q '^build_date' "$TMP/set" || fail "the build has not stamped $PROGRAM_NAME"
	cat "$TMP/set" >>"$1"
	HELD_IDS=("$PROGRAM_ID") HELD_NAMES=("$PROGRAM_NAME")
	SYMBOL=$(symbol_of 0)
	# The program may be unloaded next.
	await_read
}

# check_sets FILE: end the recording. Fail unless it has the sets that note_program has noted in FILE. All
# versions have the same code and tag, so they have the same symbol.
check_sets()
{
	stop_recording
	perfdata check "$TMP/data"
	perfdata entries "$TMP/data" "$SYMBOL" | sort >"$TMP/got"
	sort "$1" >"$TMP/want"
	same "the metadata of $SYMBOL" "$TMP/want" "$TMP/got"
}

counts_a_sample()
{
	ask touch 50
	"$BPFTOOL" -j map dump id "${MAP_IDS[counts]}" | grep -q '"samples"'
}

# Attach both versions of the profiler to these events by "ioctl" and by "link", and let them run. They have
# the same code and tag. Only their sets differ.
check_events()
{
	local event way version

	rm -f "$TMP/events"
	start_recording "$TMP/data" -a
	for event; do
		for way in ioctl link; do
			for version in profiler profiler_2; do
				ask load "$OUTPUT/$version.bpf.o"
				# shellcheck disable=SC2086 # several words
				ask event $event
				ask "$way"
				await "a sample of $version with $event" counts_a_sample
				ask close
				note_program "$TMP/events"
			done
		done
	done
	check_sets "$TMP/events"
	show "$TMP/data"
	values entries "$TMP/data.script" "$SYMBOL" | grep '^version' | sort -u >"$TMP/got"
	printf 'version\t"%s"\n' 1.0 2.0 >"$TMP/want"
	same "versions in perf script" "$TMP/want" "$TMP/got"
}

test_versions_that_are_attached_while_perf_records()
{
	start_attach
	check_events "page-faults 1 self" "cpu-clock $PERIOD all"
}

test_hardware_events()
{
	start_attach
	if ! try_ask event cycles "$PERIOD" all; then
		[[ ${PBM_NEED_PMU:-} != 1 ]] || fail "$ERROR, and this machine should have a PMU"
		skip "no PMU here: $ERROR"
	fi
	ask close
	check_events "cycles $PERIOD all" "instructions $PERIOD all"
}

# Some kernels (such as v6.18) run programs of software events with interrupts off, and no clock can
# interrupt them. perfdata.py tells whether there are samples, because perf report is under test.
test_samples_show_what_the_profiler_costs()
{
	local period cycles=no options=(-F $((4000 / SCALE)))

	start_attach
	if try_ask event cycles "$PERIOD" self; then
		cycles=yes
		options+=(-e cycles)
		ask close
	fi
	start_recording "$TMP/data" -a "${options[@]}"
	ask load "$OUTPUT/profiler.bpf.o"
	ask event page-faults 1 self
	ask link
	for _ in {1..20}; do
		ask touch $((20000 / SCALE))
	done
	note_program "$TMP/cost"
	check_sets "$TMP/cost"
	perfdata costs "$TMP/data" >"$TMP/costs"
	period=$(awk -F '\t' -v id="$PROGRAM_ID" '$1 == id { sum += $4 } END { printf "%.0f", sum }' "$TMP/costs")
	[[ $period != 0 || $cycles = yes ]] ||
		skip "no PMU here, and this kernel's clock does not interrupt the program"
	((period > 0)) || fail "no sample in the profiler"
	"$PBM_PERF" report -i "$TMP/data" --stdio -q --comms attach -s bpf_prog -F sample,bpf_prog >"$TMP/report"
	grep -E -e "^ *[1-9][0-9]* +$PROGRAM_ID $PROGRAM_NAME *\$" "$TMP/report" ||
		fail "perf report shows no sample of $PROGRAM_ID $PROGRAM_NAME, but the file has some: $(cat "$TMP/report")"
}

run_tests
