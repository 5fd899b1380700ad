#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The cost of each program and each version in recordings: perf report -s bpf_prog,bpf_metadata, perf script and
# JSON, compared with sums over the raw samples. sets.sh has more keys, filters and callchains. A set is all
# metadata of a program. The block is the metadata in the header of perf.data.

. "$(dirname "$0")/../../lib/report-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

V1='owner="tests", version="1.0"' V2='owner="tests", version="2.0"'

# json_costs FILE: print ID|SET<TAB>PERIOD of the programs of the first frames. All BPF functions of a
# callchain must belong to one program, and the other frames to none. All samples must have the same period,
# which JSON lacks.
json_costs()
{
	local period

	period=$("$PBM_PERF" script -G -F period -i "$1" | sort -u)
	(($(wc -w <<<"$period") == 1)) || fail "the samples have several periods: $period"
	rm -f "$TMP/json"
	"$PBM_PERF" data convert --force --to-json "$TMP/json" -i "$1" >&2
	python3 - "$TMP/json" "$period" <<-'END' | sum_up
		import json, sys
		top = json.load(open(sys.argv[1], encoding="utf-8"))
		sets = {}
		for prog in top.get("bpf-metadata", []):
		    keys = (f"{key}={json.dumps(value)}" for key, value in prog["metadata"].items())
		    sets[prog["id"]] = ", ".join(keys) or "(none)"
		for sample in top["samples"]:
		    frames = sample["callchain"]
		    functions = [frame for frame in frames if frame.get("symbol", "").startswith("bpf_prog_")]
		    assert len({frame.get("bpf-prog-id") for frame in functions}) < 2, sample
		    assert all(frame in functions for frame in frames if "bpf-prog-id" in frame), sample
		    if frames and "bpf-prog-id" in frames[0]:
		        prog = frames[0]["bpf-prog-id"]
		        print(f"{prog}|{sets.get(prog, '(unknown)')}", sys.argv[2], sep="\t")
	END
}

# want_costs FILE SET...: TOOLS (default: all) show the costs and these sets of the programs HELD_IDS in
# FILE. perf script prints no blanks in a field.
want_costs()
{
	local tool

	perfdata costs "$1" >"$TMP/costs"
	paste <(printf '%s\n' "${HELD_IDS[@]}") <(printf '%s\n' "${@:2}") | awk -F '\t' '
		NR == FNR { set[$1] = $2; next }
		$1 in set { print $1 " " $2 "|" set[$1] "\t" $4 }' - "$TMP/costs" | sum_up >"$TMP/want"
	(($(wc -l <"$TMP/want") == $# - 1)) || fail "not all programs have samples: $(cat "$TMP/costs")"
	by bpf_prog,bpf_metadata "$1" >"$TMP/costs.report"
	"$PBM_PERF" script -G -F period,bpf_prog,bpf_metadata -i "$1" |
		sed -E 's/^ *([0-9]+) +([0-9]+):([^ ]*) (.*)/\2 \3|\4\t\1/; s/,/, /g' | sum_up >"$TMP/costs.script"
	json_costs "$1" >"$TMP/costs.json"
	for tool in ${TOOLS:-report script json}; do
		[[ $tool != json ]] || sed -i 's/ [^|]*//' "$TMP/want"
		grep -E "^($(IFS='|'; echo "${HELD_IDS[*]}"))[ |]" "$TMP/costs.$tool" >"$TMP/got"
		same "$tool of $1" "$TMP/want" "$TMP/got"
	done
}

test_programs_and_functions_cost_what_their_samples_sum_up_to()
{
	local name

	record_once
	# Each function alone, including functions that are not the main one
	perfdata costs "$TMP/all" | awk -F '\t' '$1 != "N/A" { print $1 " " $2 "|[k] " $3 "\t" $4 }' |
		sort >"$TMP/want"
	(($(wc -l <"$TMP/want") >= 10)) || fail "samples in too few functions: $(cat "$TMP/want")"
	by bpf_prog,sym "$TMP/all" | grep -v '^N/A' >"$TMP/got"
	same "cost by function" "$TMP/want" "$TMP/got"
	for name in all pipe; do
		perfdata costs "$TMP/$name" | awk -F '\t' '{ print ($1 == "N/A" ? $1 : $1 " " $2) "\t" $4 }' |
			sum_up >"$TMP/want"
		by bpf_prog "$TMP/$name" >"$TMP/got"
		same "cost by program" "$TMP/want" "$TMP/got"
	done
	# --show-bpf-events has its own handler of program events.
	"$PBM_PERF" script -G -F period,bpf_prog -i "$TMP/all" >"$TMP/want"
	"$PBM_PERF" script -G -F period,bpf_prog --show-bpf-events -i "$TMP/all" |
		grep -v -e PERF_RECORD_ -e '^  entry ' >"$TMP/got"
	same "programs with --show-bpf-events" "$TMP/want" "$TMP/got"
}

# Four programs have the same name, and three of them have sets. The one without a set has no record.
# Programs without records may have no metadata, or perf record did not look for it.
test_programs_with_equal_metadata_share_a_row_in_files_and_pipes()
{
	local file

	record_once
	mapfile -t HELD_IDS <"$TMP/ids"
	perfdata strip "$TMP/all" "$TMP/block-only"
	perfdata strip-block "$TMP/all" "$TMP/records-only"
	for file in all block-only; do
		want_costs "$TMP/$file" "$V1" "$V2" '(none)' "$V1"
	done
	for file in records-only pipe; do
		want_costs "$TMP/$file" "$V1" "$V2" '(unknown)' "$V1"
		by bpf_metadata "$TMP/$file" | grep '^owner="tests", version=' >"$TMP/got"
		awk -F '[|\t]' '/owner/ { print $2 "\t" $3 }' "$TMP/costs.json" | sum_up >"$TMP/want"
		same "shared rows" "$TMP/want" "$TMP/got"
	done
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
		want_costs "$TMP/$file" '(unknown)' '(unknown)'
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
	want_costs "$TMP/peer" '(unknown)' '(unknown)'
}

# The programs have the same name and tag, different ids, and maybe the same address.
test_reloaded_programs_are_told_apart()
{
	local file first

	start_recording "$TMP/reloaded" -a -F 4000
	hold busy_v1
	spend 0 20000
	"${WORKLOAD[@]}"
	first=${HELD_IDS[0]}
	release
	hold busy_v2
	spend 0 40000
	"${WORKLOAD[@]}"
	HELD_IDS=("$first" "${HELD_IDS[@]}")
	stop_recording
	perfdata strip "$TMP/reloaded" "$TMP/block-only"
	perfdata strip-block "$TMP/reloaded" "$TMP/records-only"
	for file in reloaded block-only; do
		want_costs "$TMP/$file" "$V1" "$V2"
	done
	# perf script prints samples before it reads the records of programs that load later.
	TOOLS='report json' want_costs "$TMP/records-only" "$V1" "$V2"
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
	if grep -e bpf_dispatcher_ "$TMP/rows" | grep -v "^N/A|"; then
		fail "a dispatcher has a program"
	fi
	grep -e "^${HELD_IDS[0]} dispatched|.* bpf_prog_.*_dispatched" "$TMP/rows" ||
		fail "no sample in the program"
}

run_tests
