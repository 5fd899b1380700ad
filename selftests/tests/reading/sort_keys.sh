#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf report -s bpf_prog and -s bpf_metadata of recordings: the cost of each program and each version,
# compared with sums over the raw samples. sets.sh has more keys, filters and callchains. A set is all
# metadata of a program. The block is the metadata in the header of perf.data.

. "$(dirname "$0")/../../lib/report-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

# Programs without records may have no metadata, or perf record did not look for it.
as_in_records()
{
	sed 's/^(none)/(unknown)/' "$@" | sum_up
}

test_programs_and_functions_cost_what_their_samples_sum_up_to()
{
	local id

	record_once
	while read -r id; do
		grep "^$id busy"$'\t' "$TMP/costs" || fail "no sample in program $id"
	done <"$TMP/ids"
	want_by bpf_prog "$TMP/all" "$TMP/costs"
	# Each function alone, including functions that are not the main one
	perfdata costs "$TMP/all" | awk -F '\t' '$1 != "N/A" { print $1 " " $2 "|[k] " $3 "\t" $4 }' |
		sort >"$TMP/want"
	(($(wc -l <"$TMP/want") >= 10)) || fail "samples in too few functions: $(cat "$TMP/want")"
	by bpf_prog,sym "$TMP/all" | grep -v "^$NOT_BPF" >"$TMP/got"
	same "cost by function" "$TMP/want" "$TMP/got"
}

# Four programs have the same name, and three of them have sets. The one without a set has no record.
test_programs_with_equal_metadata_share_a_row_in_files_and_pipes()
{
	local file

	record_once
	costs_by_set "$TMP/all" >"$TMP/sets-want"
	# Other programs of the machine may have sets, too.
	cut -f 1 "$TMP/sets-want" | grep -x -e '(none)' -e "$NOT_BPF" -e 'owner="tests", version=.*' | sort >"$TMP/got"
	printf '%s\n' '(none)' "$NOT_BPF" 'owner="tests", version="1.0"' 'owner="tests", version="2.0"' |
		sort >"$TMP/want"
	same "sets" "$TMP/want" "$TMP/got"
	for file in all block-only; do
		want_by bpf_metadata "$TMP/$file" "$TMP/sets-want"
	done
	as_in_records "$TMP/sets-want" >"$TMP/want"
	want_by bpf_metadata "$TMP/records-only" "$TMP/want"
	want_by bpf_prog "$TMP/records-only" "$TMP/costs"
	costs_by_set "$TMP/all" '' "$TMP/pipe" | as_in_records >"$TMP/want"
	want_by bpf_metadata - "$TMP/want" <"$TMP/pipe"
	costs_by_program "$TMP/pipe" >"$TMP/want"
	want_by bpf_prog - "$TMP/want" <"$TMP/pipe"
}

# If perf record did not look for metadata, perf report must not say that there is none.
test_metadata_that_was_not_recorded_is_unknown()
{
	local file

	hold busy_v1 plain
	spend 0 20000 1 20000
	record "$TMP/unread" --bpf-metadata=none
	record - --bpf-metadata=none >"$TMP/unread-pipe"
	for file in unread unread-pipe; do
		by bpf_metadata "$TMP/$file" >"$TMP/got"
		[[ $(cut -f 1 "$TMP/got" | xargs) = '(unknown) N/A' ]] || fail "sets of $file: $(cat "$TMP/got")"
	done
}

# Its records name only functions.
test_files_of_peer_perf()
{
	peer_perf
	hold busy_v2 lazy
	spend 0 20000 1 40000
	"$PBM_PEER_PERF" record -N -q -a -e cpu-clock -o "$TMP/peer" -- "${WORKLOAD[@]}"
	perfdata types "$TMP/peer" >"$TMP/types"
	grep -q -x 84 "$TMP/types" || skip "$PBM_PEER_PERF writes no records"
	costs_by_program "$TMP/peer" >"$TMP/programs-want"
	want_by bpf_prog "$TMP/peer" "$TMP/programs-want"
	awk -F '\t' '{ print ($1 == "N/A" ? $1 : "(unknown)") "\t" $2 }' "$TMP/programs-want" | sum_up >"$TMP/want"
	want_by bpf_metadata "$TMP/peer" "$TMP/want"
}

# The programs have the same name and tag, different ids, and maybe the same address.
test_reloaded_programs_are_told_apart()
{
	local file

	start_recording "$TMP/reloaded" -a -F 4000
	hold busy_v1
	spend 0 20000
	"${WORKLOAD[@]}"
	release
	hold busy_v2
	spend 0 40000
	"${WORKLOAD[@]}"
	stop_recording
	costs_by_program "$TMP/reloaded" >"$TMP/want-prog"
	costs_by_set "$TMP/reloaded" >"$TMP/want-set"
	grep -q 'version="1.0"' "$TMP/want-set"
	grep -q 'version="2.0"' "$TMP/want-set"
	perfdata strip "$TMP/reloaded" "$TMP/reloaded-block"
	perfdata strip-block "$TMP/reloaded" "$TMP/reloaded-records"
	for file in reloaded reloaded-block reloaded-records; do
		want_by bpf_prog "$TMP/$file" "$TMP/want-prog"
	done
	for file in reloaded reloaded-block; do
		want_by bpf_metadata "$TMP/$file" "$TMP/want-set"
	done
	as_in_records "$TMP/want-set" >"$TMP/want"
	want_by bpf_metadata "$TMP/reloaded-records" "$TMP/want"
	want_script_costs "$TMP/reloaded"
}

# Record, and fill $TMP/rows. Succeed if a dispatcher, which has few instructions, has a sample.
dispatcher_was_sampled()
{
	record "$TMP/data"
	by bpf_prog,sym "$TMP/data" >"$TMP/rows"
	grep -q -e bpf_dispatcher_ "$TMP/rows"
}

# perf finds dispatchers in kallsyms. This is the last test, because all_symbols lasts until the end
# of the file.
test_dispatchers_belong_to_no_program()
{
	local FREQUENCY=(-F $((15000 / SCALE)))

	all_symbols
	hold dispatched
	spend 0 20000000
	await "a sample in a dispatcher" dispatcher_was_sampled
	if grep -e bpf_dispatcher_ "$TMP/rows" | grep -v "^$NOT_BPF|"; then
		fail "a dispatcher has a program"
	fi
	grep -e "^${HELD_IDS[0]} dispatched|.* bpf_prog_.*_dispatched" "$TMP/rows" ||
		fail "no sample in the program"
}

run_tests
