#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf record --bpf-metadata and record.bpf-metadata: what the modes do, and that
# others are refused.

. "$(dirname "$0")/lib.sh"

# The number of metadata records of a short recording with these options
count_records()
{
	record "$TMP/data" "$@"
	perfdata types "$TMP/data" >"$TMP/types"
	grep -q -x 9 "$TMP/types" || fail "no sample in the file"
	grep -c -x 84 "$TMP/types" || true
}

expect_records()
{
	local want=$1 got

	shift
	got=$(count_records "$@")
	[[ $got = "$want" ]] || fail "$got records with '$*' and '$(cat "$PERF_CONFIG")', not $want"
}

set_config()
{
	export PERF_CONFIG=$TMP/perfconfig-mode
	printf '[record]\n\tbpf-metadata = %s\n' "$1" >"$PERF_CONFIG"
}

# perf record refuses, and says what it does know.
must_refuse()
{
	local status=0

	rm -f "$TMP/refused"
	"$PBM_PERF" record "$@" -N -o "$TMP/refused" -- true >"$TMP/messages" 2>&1 || status=$?
	cat "$TMP/messages"
	# perf's own are above 128 as well; these are its crashes.
	case $status in
	0|134|135|136|139) fail "status $status with '$*'" ;;
	esac
	[[ ! -e $TMP/refused ]] || fail "there is a file"
	grep -q -w all "$TMP/messages" || fail "it does not say that it knows 'all'"
	grep -q -w header "$TMP/messages" || fail "it does not say that it knows 'header'"
	grep -q -w none "$TMP/messages" || fail "it does not say that it knows 'none'"
}

test_all_is_the_default()
{
	hold simple
	expect_records 1
	expect_records 1 --bpf-metadata=all
	expect_records 1 --bpf-metadata all
}

test_none_writes_no_record()
{
	hold simple
	expect_records 0 --bpf-metadata=none
	start_recording "$TMP/live" -a --bpf-metadata=none
	churn -n 3
	stop_recording
	perfdata ksymbols "$TMP/live" >"$TMP/ksymbols"
	grep -q churn_1 "$TMP/ksymbols" || fail "churn_1 was not recorded at all"
	if perfdata types "$TMP/live" | grep -x 84; then
		fail "there are records"
	fi
}

test_none_writes_no_record_into_a_pipe()
{
	hold simple
	record - --bpf-metadata=none >"$TMP/pipe"
	if perfdata types "$TMP/pipe" | grep -x 84; then
		fail "there are records"
	fi
}

test_no_bpf_event_implies_none()
{
	hold simple
	expect_records 0 --no-bpf-event
	expect_records 0 --no-bpf-event --bpf-metadata=all
}

test_last_option_wins()
{
	hold simple
	expect_records 0 --bpf-metadata=all --bpf-metadata=none
	expect_records 1 --bpf-metadata=none --bpf-metadata=all
}

test_unknown_modes_are_refused()
{
	must_refuse --bpf-metadata=some
	must_refuse --bpf-metadata=al
	must_refuse --bpf-metadata=allx
	must_refuse --bpf-metadata=
	must_refuse --bpf-metadata=ALL
}

# What it does write is header.sh's.
test_header_writes_no_record()
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

run_tests \
	test_all_is_the_default \
	test_none_writes_no_record \
	test_none_writes_no_record_into_a_pipe \
	test_no_bpf_event_implies_none \
	test_last_option_wins \
	test_unknown_modes_are_refused \
	test_header_writes_no_record \
	test_configuration_sets_the_mode \
	test_command_line_beats_configuration \
	test_unknown_mode_in_the_configuration_is_refused \
	test_help_shows_the_option
