#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf record with and without metadata. perf's default output does not change.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/nobody.sh"

# Print the default output of commands, which other tools parse. A perf with sanitizers can't demangle C++,
# and a sample can be in a C++ function of a sanitizer.
default_output()
{
	local command options=()

	[[ -z ${PBM_SANITIZED:-} ]] || options=(--no-demangle)
	for command in "report --stdio" "report --stdio -s comm,dso,sym" "script" \
		"script -F comm,ip,sym" "evlist -v"; do
		[[ $command != evlist* ]] || options=()
		echo "== $command"
		# shellcheck disable=SC2086 # words
		"$PBM_PERF" $command "${options[@]}" -i "$TMP/data"
	done >"$TMP/output" 2>&1
	drop_tips "$TMP/output"
	cat "$TMP/output"
}

# Print file $1 with TMP instead of $TMP, and N instead of each number, such as perf's version.
without_figures()
{
	sed -e "s|$TMP|TMP|g" -e 's/[0-9][0-9.]*/N/g' "$1"
}

# expect_records_of N INDEX: fail unless N records have the ids of the ten programs from HELD_IDS[INDEX]
expect_records_of()
{
	printf '%s\n' "${HELD_IDS[@]:$2:10}" >"$TMP/ids"
	perfdata records "$TMP/data" | cut -f 4 | grep -x -F -f "$TMP/ids" | sort | uniq -c >"$TMP/found"
	[[ $(awk -v each=$(($1 / 10)) '$1 == each' "$TMP/found" | wc -l) = 10 ]] ||
		fail "not $1 records of ten times ${HELD_NAMES[$2]}: $(cat "$TMP/found")"
}

test_each_program_has_its_records()
{
	# The last twenty programs have one name, and differ in their metadata.
	hold -n 10 simple keys_1000 busy_v1 busy_v2
	record "$TMP/data"
	expect_records_of 10 0
	# The metadata of keys_1000 is in 5 records, of up to 202 entries.
	expect_records_of 50 10
	expect_records_of 10 20
	expect_records_of 10 30
	perfdata check "$TMP/data"
}

# The records are the only difference between a file and its stripped copy.
test_records_do_not_change_default_output()
{
	hold simple keys_203 functions
	record "$TMP/data"
	perfdata check "$TMP/data"
	default_output >"$TMP/with.out"
	perfdata strip "$TMP/data" "$TMP/stripped"
	mv "$TMP/stripped" "$TMP/data"
	want_no_records "$TMP/data"
	default_output >"$TMP/without.out"
	(($(wc -l <"$TMP/with.out") > 100)) || fail "there is almost no output"
	same "default output" "$TMP/without.out" "$TMP/with.out"
}

# record_as_nobody NAME PERF [OPTION...]: record as user nobody; write the messages to $TMP/NAME, and the
# events to $TMP/NAME.events
record_as_nobody()
{
	local name=$1 perf=$2

	shift 2
	as_nobody "$perf" record -N "$@" -o "$TMP/nobody/data" -- \
		"${WORKLOAD[@]}" 2>"$TMP/$name.err"
	cat "$TMP/$name.err"
	without_figures "$TMP/$name.err" >"$TMP/$name"
	"$PBM_PERF" evlist -f -v -i "$TMP/nobody/data" >"$TMP/$name.events"
}

test_unprivileged_recording_has_the_events_of_unpatched_perf_and_no_new_warning()
{
	prepare_nobody
	hold simple
	record_as_nobody quiet "$PBM_PERF" --no-bpf-event
	record_as_nobody plain "$PBM_PERF"
	same "messages of perf record" "$TMP/quiet" "$TMP/plain"
	"$PBM_PERF" script -f -i "$TMP/nobody/data" >"$TMP/script"
	[[ -s $TMP/script ]] || fail "no sample was recorded"
	unpatched_perf
	as_nobody test -x "$PBM_UNPATCHED_PERF" ||
		skip "an unprivileged user cannot reach $PBM_UNPATCHED_PERF"
	record_as_nobody unpatched "$PBM_UNPATCHED_PERF"
	same "messages of unpatched perf" "$TMP/unpatched" "$TMP/plain"
	# Who may not open events on all CPUs records the same events as before.
	(($(cat /proc/sys/kernel/perf_event_paranoid) < 1)) ||
		same "events of unpatched perf" "$TMP/unpatched.events" "$TMP/plain.events"
}

unregister()
{
	"$BPFTOOL" struct_ops unregister name pbm_tcp >/dev/null
}

# Several of them are in one page of the kernel.
test_trampolines_of_struct_ops_have_names()
{
	"$BPFTOOL" struct_ops register "$OUTPUT/struct_ops.bpf.o" >"$TMP/registered" 2>&1 ||
		skip "this kernel registers no struct_ops: $(tail -n 1 "$TMP/registered")"
	ON_END+=(unregister)
	grep -q '\sbpf__tcp_congestion_ops_ssthresh\s' /proc/kallsyms ||
		skip "this kernel (before v6.13) gives these trampolines no names"
	record "$TMP/data"
	perfdata ksymbols "$TMP/data" | grep '^bpf__tcp_congestion_ops_' | sort -u >"$TMP/got"
	printf 'bpf__tcp_congestion_ops_%s\n' cong_avoid ssthresh undo_cwnd >"$TMP/want"
	same "names" "$TMP/want" "$TMP/got"
}

run_tests
