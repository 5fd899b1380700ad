#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf record --bpf-metadata and record.bpf-metadata: the effect of each mode; other values are
# refused.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

# expect_records N OPTION...: a short recording has N records of the held program. With N = 0 it
# has no record of any program. Other programs may come and go.
expect_records()
{
	local want=$1 got symbol

	shift
	record "$TMP/data" "$@"
	if [[ $want = 0 ]]; then
		want_no_records "$TMP/data"
		return
	fi
	symbol=$(symbol_of 0)
	has_ksymbol "$TMP/data" "$symbol"
	perfdata records "$TMP/data" >"$TMP/records"
	got=$(cut -f 1 "$TMP/records" | grep -c -x -e "$symbol") || :
	[[ $got = "$want" ]] ||
		fail "$got records of $symbol with '$*' and '$(cat "$PERF_CONFIG")', not $want"
}

set_config()
{
	export PERF_CONFIG=$TMP/perfconfig-mode
	printf '[record]\n\tbpf-metadata = %s\n' "$1" >"$PERF_CONFIG"
}

# perf record refuses the arguments, and prints the values that it knows.
must_refuse()
{
	local status=0

	rm -f "$TMP/refused"
	"$PBM_PERF" record "$@" -N -o "$TMP/refused" -- true >"$TMP/messages" 2>&1 || status=$?
	cat "$TMP/messages"
	# 134 to 136 and 139 are crashes. Other errors of perf have a status above 128, too.
	case $status in
	0|134|135|136|139) fail "status $status with '$*'" ;;
	esac
	[[ ! -e $TMP/refused ]] || fail "perf record has written a file"
	grep -q -w all "$TMP/messages" || fail "perf record does not list the value 'all'"
	grep -q -w header "$TMP/messages" || fail "perf record does not list the value 'header'"
	grep -q -w none "$TMP/messages" || fail "perf record does not list the value 'none'"
}

test_mode_all_is_the_default()
{
	hold simple
	expect_records 1
	expect_records 1 --bpf-metadata=all
	expect_records 1 --bpf-metadata all
}

test_mode_none_writes_no_record()
{
	hold simple
	expect_records 0 --bpf-metadata=none
	start_recording "$TMP/live" -a --bpf-metadata=none
	churn -n 3
	stop_recording
	perfdata ksymbols "$TMP/live" >"$TMP/ksymbols"
	grep -q churn_1 "$TMP/ksymbols" || fail "churn_1 was not recorded at all"
	want_no_records "$TMP/live"
}

test_mode_none_writes_no_record_into_a_pipe()
{
	hold simple
	record - --bpf-metadata=none >"$TMP/pipe"
	want_no_records "$TMP/pipe"
	has_ksymbol "$TMP/pipe" "$(symbol_of 0)"
}

# A pipe has metadata only in records, so perf record says that there is none.
test_mode_header_warns_of_a_pipe()
{
	local modes want

	hold simple
	for modes in --bpf-metadata=header --bpf-metadata=all "--bpf-metadata=header --no-bpf-event"; do
		# shellcheck disable=SC2086 # it can be two options
		"$PBM_PERF" record -N -a -e cpu-clock -o - $modes -- true >"$TMP/pipe" 2>"$TMP/messages"
		[[ $modes = *=all ]] || want_no_records "$TMP/pipe"
		want=$([[ $modes != *=header ]] || echo 1)
		[[ $(grep -c '^WARNING: a pipe has metadata .* only in records, .*--bpf-metadata=all' "$TMP/messages") = "${want:-0}" ]] ||
			fail "$modes: not ${want:-0} warnings: $(cat "$TMP/messages")"
	done
}

test_no_bpf_event_implies_mode_none()
{
	hold simple
	expect_records 0 --no-bpf-event
	expect_records 0 --no-bpf-event --bpf-metadata=all
	expect_records 0 --bpf-metadata=all --no-bpf-event
}

test_last_option_wins()
{
	hold simple
	expect_records 0 --bpf-metadata=all --bpf-metadata=none
	expect_records 1 --bpf-metadata=none --bpf-metadata=all
}

# Return 0 if the held program has a record and metadata in the header, 1 if neither. Else fail.
has_metadata()
{
	record "$TMP/data" "$@"
	perfdata ksymbols "$TMP/data" >"$TMP/ksymbols"
	grep -q -x -e "$(symbol_of 0)" "$TMP/ksymbols" || fail "the program was not recorded at all"
	perfdata records "$TMP/data" | cut -f 1 >"$TMP/names"
	"$PBM_PERF" report --header-only -i "$TMP/data" >"$TMP/header"
	if grep -q -x -e "$(symbol_of 0)" "$TMP/names"; then
		grep -q "^# bpf_metadata ${HELD_IDS[0]} " "$TMP/header" || fail "there is a record, but no metadata in the header"
		return 0
	fi
	! grep "^# bpf_metadata ${HELD_IDS[0]} " "$TMP/header" || fail "there is no record, but metadata in the header"
	return 1
}

test_no_bpf_metadata_means_mode_none()
{
	hold simple
	! has_metadata --no-bpf-metadata || fail "the recording has metadata"
	! has_metadata --bpf-metadata=all --no-bpf-metadata || fail "the last option doesn't win"
	has_metadata --no-bpf-metadata --bpf-metadata=all || fail "the last option doesn't win"
}

test_unknown_modes_are_refused()
{
	must_refuse --bpf-metadata=some
	must_refuse --bpf-metadata=al
	must_refuse --bpf-metadata=allx
	must_refuse --bpf-metadata=
	must_refuse --bpf-metadata=ALL
}

# header.sh tests the metadata in the header, which this mode writes.
test_mode_header_writes_no_record()
{
	hold simple
	expect_records 0 --bpf-metadata=header
}

test_configuration_sets_the_mode()
{
	hold simple
	set_config none
	expect_records 0
	set_config all
	expect_records 1
	set_config header
	expect_records 0
}

test_command_line_beats_configuration()
{
	hold simple
	set_config none
	expect_records 1 --bpf-metadata=all
	set_config all
	expect_records 0 --bpf-metadata=none
}

test_unknown_mode_in_the_configuration_is_refused()
{
	set_config some
	must_refuse
}

test_help_shows_the_option()
{
	"$PBM_PERF" record -h >"$TMP/help" 2>&1 || true
	grep -e '--bpf-metadata' "$TMP/help"
}

run_tests
