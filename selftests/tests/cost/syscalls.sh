#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The bpf() calls of perf record. Without metadata, perf record makes six calls per program. For
# metadata, it makes at most one more per program, and three per distinct map; one reads the map.

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

is_later_than()
{
	(($(cut -d . -f 1 /proc/uptime) > $1))
}

# Wait, because perf reads new programs later.
await_settled()
{
	await "programs are a second old" is_later_than $(($(cut -d . -f 1 /proc/uptime) + 1))
}

# check_calls N MAPS ARGUMENT...: check calls if "hold ARGUMENT..." loads N programs and MAPS maps.
check_calls()
{
	local none some plain_none plain allowed

	command -v strace >/dev/null || skip "strace is not installed"
	HELD_IDS=()
	none=$(count_calls "$PBM_PERF")
	plain_none=$(count_calls "$PBM_PERF" --bpf-metadata=none)

	hold "${@:3}"
	((${#HELD_IDS[@]} == $1)) || fail "${#HELD_IDS[@]} programs are loaded, not $1"
	await_settled
	some=$(count_calls "$PBM_PERF")
	sed 's/.*bpf(\([A-Z_]*\).*/\1/' "$TMP/calls" | sort | uniq -c
	plain=$(($(count_calls "$PBM_PERF" --bpf-metadata=none) - plain_none))
	((plain <= $1 * PLAIN_CALLS)) || fail "$plain calls with --bpf-metadata=none"

	allowed=$((plain + $1 + 3 * $2))
	echo "$1 programs, $2 maps: $((some - none)) calls more than without programs," \
		"$plain with --bpf-metadata=none, at most $allowed allowed"
	((some - none <= allowed)) || fail "too many calls"
}

test_programs_with_a_map_each()		{ check_calls 20 20 -n 20 simple; }
test_programs_that_share_a_map()	{ check_calls 20 1 shared; }
test_programs_without_metadata()	{ check_calls 20 20 -n 20 none; }

test_mode_none_makes_no_more_calls_than_unpatched_perf()
{
	local none base

	command -v strace >/dev/null || skip "strace is not installed"
	unpatched_perf
	hold -n 20 simple
	base=$(count_calls "$PBM_UNPATCHED_PERF")
	none=$(count_calls "$PBM_PERF" --bpf-metadata=none)
	echo "$none calls with --bpf-metadata=none, $base of unpatched perf"
	((base > 20 * 5 && none <= base)) || fail "wrong numbers of calls"
}

lookups()
{
	grep -c '(BPF_MAP_LOOKUP_ELEM,' "$TMP/calls" || true
}

test_map_of_4_MiB_that_20_programs_share_is_read_once()
{
	local none

	command -v strace >/dev/null || skip "strace is not installed"
	HELD_IDS=()
	count_calls "$PBM_PERF"
	none=$(lookups)
	hold bench_20_3_1_4096
	((${#HELD_IDS[@]} == 20)) || fail "${#HELD_IDS[@]} programs are loaded, not 20"
	count_calls "$PBM_PERF"
	echo "$(lookups) lookups, $none without the programs"
	(($(lookups) == none + 1)) || fail "the map is not read once"
	perfdata block "$TMP/data" >"$TMP/block"
	(($(grep -c 'bench_.*version' "$TMP/block") == 20)) || fail "not all 20 programs have the key"
}

# start_recording under strace, with the calls in $TMP/calls
start_traced()
{
	cat >"$TMP/traced" <<-END
		#!/bin/sh
		exec strace -f -qq -e trace=bpf -e signal=none -o "$TMP/calls" "$PBM_PERF" "\$@"
	END
	chmod +x "$TMP/traced"
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 PBM_PERF=$TMP/traced start_recording "$TMP/data" -a
}

# lookups_by_id ID: print how many times perf has looked up program ID.
lookups_by_id()
{
	grep -c "(BPF_PROG_GET_FD_BY_ID, {prog_id=$1," "$TMP/calls" || true
}

is_looked_up()
{
	(($(lookups_by_id "$1") >= $2))
}

# A map may be bound to a program late. perf looks the program up when it loads, keeps it open, and
# looks it up again only if it finds nothing and the recording ends.
test_a_program_that_loads_is_looked_up_at_most_twice()
{
	local nr

	command -v strace >/dev/null || skip "strace is not installed"
	start_traced
	hold none
	await "the first lookup" is_looked_up "${HELD_IDS[0]}" 1
	# perf is a child of strace.
	PERF_PID=$(pgrep -P "$PERF_PID") await_read
	stop_recording
	nr=$(lookups_by_id "${HELD_IDS[0]}")
	echo "$nr lookups"
	((nr && nr <= 2)) || fail "the program is looked up $nr times"
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
