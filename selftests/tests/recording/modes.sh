#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf record --bpf-metadata and record.bpf-metadata: the effect of each mode; other values are
# refused.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

# mode_of FILE: print the mode: "all" has one record of the held program, and its metadata in the header,
# "header" only this, "none" neither. No other program of the machine has more.
mode_of()
{
	local records block

	[[ $(perfdata types "$1" | grep -c -x 9) != 0 ]] || fail "no sample in $1"
	perfdata records "$1" >"$TMP/records"
	perfdata block "$1" >"$TMP/block"
	records=$(cut -f 1 "$TMP/records" | grep -c -x -e "$(symbol_of 0)") || :
	block=$(cut -f 1 "$TMP/block" | sort -u | grep -c -x -e "${HELD_IDS[0]}") || :
	case $records$block in
	11)	echo all ;;
	01)	[[ -s $TMP/records ]] || echo header ;;
	00)	[[ -s $TMP/records || -s $TMP/block ]] || echo none ;;
	esac
}

# Without --bpf-event, there is no metadata. Of several options, the last counts.
test_options_and_configuration_set_the_mode()
{
	local want config options got

	hold simple
	export PERF_CONFIG=$TMP/perfconfig-mode
	while IFS=: read -r want config options; do
		: >"$PERF_CONFIG"
		[[ -z $config ]] || printf '[record]\n\tbpf-metadata = %s\n' "$config" >"$PERF_CONFIG"
		# shellcheck disable=SC2086 # words
		record "$TMP/data" $options
		got=$(mode_of "$TMP/data")
		echo "bpf-metadata = $config, perf record $options: $got"
		[[ $got = "$want" ]] || fail "the mode is not $want: $(cat "$TMP/records" "$TMP/block")"
	done <<-END
		all::
		all::--bpf-metadata=all
		all::--bpf-metadata all
		header::--bpf-metadata=header
		none::--bpf-metadata=none
		none::--no-bpf-metadata
		none::--no-bpf-event
		none::--no-bpf-event --bpf-metadata=all
		none::--bpf-metadata=all --no-bpf-event
		none::--bpf-metadata=all --bpf-metadata=none
		none::--bpf-metadata=all --no-bpf-metadata
		all::--bpf-metadata=none --bpf-metadata=all
		all::--no-bpf-metadata --bpf-metadata=all
		all:all:
		header:header:
		none:none:
		all:none:--bpf-metadata=all
		none:all:--bpf-metadata=none
	END
}

test_programs_that_load_have_no_record_in_the_modes_header_and_none()
{
	local mode

	for mode in header none; do
		: >"$TMP/list"
		start_recording "$TMP/data" -a --bpf-metadata="$mode"
		churn -n 3
		start_churn -s 3 -f 4
		await_churn ready
		stop_recording
		want_no_records "$TMP/data"
		[[ $(perfdata ksymbols "$TMP/data" | grep -c '_churn_[1-6]$') = 6 ]] || fail "not all were recorded"
		perfdata block "$TMP/data" | cut -f 2 | grep -x 'churn_[1-6]' | sort -u >"$TMP/got" || :
		{ [[ $mode = none ]] || printf 'churn_%s\n' {1..6}; } >"$TMP/want"
		same "programs in the header" "$TMP/want" "$TMP/got"
		release
	done
}

# A pipe has metadata only in records, so perf record says that there is none.
test_mode_header_warns_of_a_pipe()
{
	local warnings options

	hold simple
	while read -r warnings options; do
		# shellcheck disable=SC2086 # words
		"$PBM_PERF" record -N -a -e cpu-clock -o - $options -- "${WORKLOAD[@]}" >"$TMP/pipe" 2>"$TMP/messages"
		[[ $options = *event ]] || has_ksymbol "$TMP/pipe" "$(symbol_of 0)"
		[[ $options = *=all ]] || want_no_records "$TMP/pipe"
		[[ $(grep -c '^WARNING: a pipe has metadata .* only in records, .*--bpf-metadata=all' \
			"$TMP/messages") = "$warnings" ]] ||
			fail "$options: not $warnings warnings: $(cat "$TMP/messages")"
	done <<-END
		1 --bpf-metadata=header
		0 --bpf-metadata=all
		0 --bpf-metadata=none
		0 --bpf-metadata=header --no-bpf-event
	END
}

# must_refuse OPTION...: perf record refuses the options, and prints the values that it knows.
must_refuse()
{
	local status=0 value

	rm -f "$TMP/refused"
	"$PBM_PERF" record "$@" -N -o "$TMP/refused" -- true >"$TMP/messages" 2>&1 || status=$?
	cat "$TMP/messages"
	# 134 to 136 and 139 are crashes. Other errors of perf have a status above 128, too.
	case $status in
	0|134|135|136|139) fail "status $status with '$*'" ;;
	esac
	[[ ! -e $TMP/refused ]] || fail "perf record has written a file"
	for value in all header none; do
		grep -q -w "$value" "$TMP/messages" || fail "perf record does not list the value '$value'"
	done
}

test_unknown_modes_are_refused()
{
	local mode

	for mode in some al allx "" ALL; do
		must_refuse --bpf-metadata="$mode"
	done
	export PERF_CONFIG=$TMP/perfconfig-mode
	printf '[record]\n\tbpf-metadata = some\n' >"$PERF_CONFIG"
	must_refuse
}

test_help_and_perf_check_show_the_feature()
{
	"$PBM_PERF" record -h >"$TMP/help" 2>&1 || true
	grep -e '--bpf-metadata' "$TMP/help"
	"$PBM_PERF" check feature bpf-metadata >"$TMP/got"
	cat "$TMP/got"
	grep -q -E '^ *bpf-metadata: \[ on +\]' "$TMP/got" || fail "perf check does not print that it is on"
}

run_tests
