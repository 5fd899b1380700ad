#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The system calls of perf record. Without metadata, perf record makes six bpf() calls per program. For
# metadata, it makes at most one more per program, and three per distinct map, one of which reads the map.
# It makes only two for a map without metadata.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"

NATIVE_ONLY="the test counts system calls of perf, and strace stops at each"

PLAIN_CALLS=6

programs_of_others()
{
	local ours

	ours=$(printf '%s|' none "${HELD_IDS[@]}")
	"$BPFTOOL" prog show >"$TMP/shown"
	sed -n 's/^\([0-9]*\):.*/\1/p' "$TMP/shown" | grep -v -x -E "${ours%|}" || true
}

# Print the number of bpf() calls of "$1 record $2...". Try again if perf has seen other programs than
# bpftool, before and after: perf's calls for them would count, too. For example, the kernel frees
# bpftool's own programs some time after bpftool has ended.
count_calls()
{
	local perf=$1 before nr

	shift
	for _ in {1..20}; do
		before=$(programs_of_others)
		trace -f -qq -e trace=bpf -e signal=none -o "$TMP/calls" \
			"$perf" record -N -q -a -e cpu-clock "$@" -o "$TMP/data" -- true
		nr=$(grep -c 'bpf(BPF_PROG_GET_NEXT_ID,' "$TMP/calls" || true)
		if [[ $(programs_of_others) = "$before" ]] &&
			((nr == 1 + ${#HELD_IDS[@]} + $(grep -c . <<<"$before" || true))); then
			# A call that another thread interrupts has a second line, "resumed".
			grep -c 'bpf(' "$TMP/calls" || true
			return
		fi
	done
	skip "other programs on this machine come and go"
}

lookups()
{
	grep -c '(BPF_MAP_LOOKUP_ELEM,' "$TMP/calls" || true
}

# 20 programs have a map each, 20 share one, and 20 have two maps without metadata.
test_bpf_calls()
{
	local none none_lookups plain_none plain some unpatched allowed=$((60 + 3 * 21 + 2 * 40)) objects=(shared)

	command -v strace >/dev/null || skip "strace is not installed"
	HELD_IDS=()
	none=$(count_calls "$PBM_PERF")
	none_lookups=$(lookups)
	plain_none=$(count_calls "$PBM_PERF" --bpf-metadata=none)

	for _ in {1..20}; do
		objects+=(simple none)
	done
	hold "${objects[@]}"
	((${#HELD_IDS[@]} == 60)) || fail "${#HELD_IDS[@]} programs are loaded, not 60"
	some=$(count_calls "$PBM_PERF")
	sed 's/.*bpf(\([A-Z_]*\).*/\1/' "$TMP/calls" | sort | uniq -c
	(($(lookups) == none_lookups + 21)) || fail "not one read of each map with metadata"
	plain=$(count_calls "$PBM_PERF" --bpf-metadata=none)
	echo "$((some - none)) calls more than without programs, $((plain - plain_none)) with --bpf-metadata=none"
	((plain - plain_none <= 60 * PLAIN_CALLS)) || fail "too many calls with --bpf-metadata=none"
	((some - none <= plain - plain_none + allowed)) || fail "more than $allowed calls for metadata"
	unpatched_perf
	unpatched=$(count_calls "$PBM_UNPATCHED_PERF")
	echo "$plain calls with --bpf-metadata=none, $unpatched of unpatched perf"
	((unpatched > 60 * 5 && plain <= unpatched)) || fail "more calls than unpatched perf"
}

has_looked_up()
{
	grep -q "(BPF_PROG_GET_FD_BY_ID, {prog_id=${HELD_IDS[0]}," "$TMP/strace"
}

# A map may be bound to a program late. perf looks the program up when it loads, and keeps it open. The
# thread looks it up only once.
test_a_program_that_loads_is_looked_up_once()
{
	start_slow_recording delay_enter=1
	hold none
	await "the lookup" has_looked_up
	await_read
	stop_recording
	[[ $(grep -c "(BPF_PROG_GET_FD_BY_ID, {prog_id=${HELD_IDS[0]}," "$TMP/strace") = 1 ]] ||
		fail "not one lookup: $(cat "$TMP/strace")"
}

# perf reads all of kallsyms once, for BPF trampolines. The search for the kernel's own symbols
# ends early, because they come first. Only a read() at the end of the file returns 0.
test_kallsyms_is_read_to_its_end_once()
{
	command -v strace >/dev/null || skip "strace is not installed"
	hold simple
	grep -q $'\t\\[bpf\\]$' /proc/kallsyms || skip "/proc/kallsyms has no BPF programs"
	trace -f -qq -e trace=read -e signal=none -P /proc/kallsyms -o "$TMP/reads" \
		"$PBM_PERF" record -N -q -a -e cpu-clock -o "$TMP/data" -- true
	grep -q ' = [1-9]' "$TMP/reads" || fail "kallsyms is not read at all"
	[[ $(grep -c ' = 0$' "$TMP/reads") = 1 ]] || fail "$(grep -c ' = 0$' "$TMP/reads") full reads, not 1"
}

# Succeed unless the last poll() of the thread that reads side band events times out. Only this thread
# unshares its file system.
last_poll_is_ended()
{
	trace -f -qq -e trace=poll,unshare -e signal=none -o "$TMP/calls" \
		"$PBM_PERF" record -N -q -a -e cpu-clock -o "$TMP/data" -- true
	awk '/unshare\(CLONE_FS\)/ { thread = $1 } $1 == thread && /poll/ { print }' "$TMP/calls" >"$TMP/polls"
	cut -c 1-200 "$TMP/polls"
	grep -q 'unshare(CLONE_FS)' "$TMP/calls" || fail "no thread reads side band events"
	[[ -s $TMP/polls ]] || fail "the thread calls no poll()"
	! tail -n 1 "$TMP/polls" | grep -q ' = 0 '
}

# The last poll() must be ended by an event or by perf, not by the time limit. It may also time out just
# before perf ends, so the test tries several times.
test_perf_ends_without_waiting_for_a_timeout()
{
	command -v strace >/dev/null || skip "strace is not installed"
	for _ in {1..10}; do
		! last_poll_is_ended || return 0
	done
	fail "the last poll() of the thread times out each time"
}

run_tests
