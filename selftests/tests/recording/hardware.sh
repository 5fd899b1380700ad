#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Hardware events: their overflow interrupts take samples, and the recording has the metadata, as
# with software events.
#
# PBM_NEED_PMU=1: the machine has a PMU, so its absence is a failure.

. "$(dirname "$0")/../../lib/test-lib.sh"

# Skip if there is no PMU, or the PMU does not count event $1.
need_event()
{
	local count

	count=$("$PBM_PERF" stat -x , -e "$1" -- "${WORKLOAD[@]}" 2>&1 | grep ",$1" | cut -d , -f 1) || :
	[[ ! $count =~ ^[1-9][0-9]*$ ]] || return 0
	[[ ${PBM_NEED_PMU:-} != 1 ]] || fail "$1: count '$count', but there should be a PMU"
	skip "no PMU that counts $1"
}

# Record event $1: at least 10 samples, each after 100000 events, and the metadata are in the file.
check_samples()
{
	local samples

	need_event "$1"
	hold simple
	"$PBM_PERF" record -N -q -a -e "$1" -c 100000 -o "$TMP/data" -- "${WORKLOAD[@]}"
	perfdata check "$TMP/data"
	show "$TMP/data"
	values entries "$TMP/data.script" "$(symbol_of 0)" | sort >"$TMP/got"
	printf 'answer\t42\nversion\t"1.2.3"\n' >"$TMP/want"
	same "metadata" "$TMP/want" "$TMP/got"
	samples=$(perfdata types "$TMP/data" | grep -c -x 9)
	echo "$samples samples"
	((samples >= 10)) || fail "too few samples"
}

test_samples_of_cycles()
{
	check_samples cycles
	# Keep the recording for another machine, with the text that this machine reads from it.
	[[ -n ${PBM_KEEP:-} ]] || return 0
	cp "$TMP/data" "$PBM_KEEP/hardware.data"
	"$PBM_PERF" script --show-bpf-events -F comm,tid,cpu,time,event,period -i "$TMP/data" \
		>"$PBM_KEEP/hardware.text"
}

test_samples_of_instructions()	{ check_samples instructions; }

run_tests
