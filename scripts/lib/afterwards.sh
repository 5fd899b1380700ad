#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests that run-selftests.sh runs when all others have ended. They look at what these have left.
#
# Environment:
#	PBM_AFTERWARDS		runs the tests whose names match
#	PBM_SANITIZER_REPORTS	the directory with the reports of sanitizers
#	PBM_GUEST		the directory of guests.sh
#	PBM_HOST_PERF		a perf that reads the recording of a guest of another architecture

. "$(dirname "$0")/../../selftests/lib/core.sh"
PBM_FILTER=$PBM_AFTERWARDS
# shellcheck disable=SC2034 # core.sh reads it
KTAP_HELPERS=$OUTPUT/ktap_helpers.sh

# These texts come from arch/, lib/, kernel/ and mm/ of the kernel.
COMPLAINTS='BUG: |kernel BUG at |WARNING: |Kernel panic|Oops(:| - )|general protection fault|Unable to handle kernel'
COMPLAINTS+='|unable to handle (page fault|kernel)|INFO: task .* blocked for more than|rcu: INFO: '
COMPLAINTS+='|INFO: rcu_.* (detected|self-detected)|soft lockup|hard LOCKUP|INFO: lockdep|KASAN|KCSAN|UBSAN'
COMPLAINTS+='|Out of memory|invoked oom-killer|unreferenced object|refcount_t: |list_(add|del) corruption'

# The status of perf may not tell of a report.
test_sanitizers_report_nothing()
{
	find "$PBM_SANITIZER_REPORTS" -type f -exec cat {} + >"$TMP/reports"
	cat "$TMP/reports"
	! grep -E -o 'runtime error: .*|(ERROR|WARNING): [A-Za-z]*Sanitizer: .*' "$TMP/reports" >"$TMP/found" ||
		fail "$(<"$TMP/found")"
}

test_kernel_of_the_guest_does_not_complain()
{
	grep -q 'Linux version ' "$PBM_GUEST/console.log" || fail "$PBM_GUEST/console.log is not the log of a kernel"
	! grep -a -E -e "$COMPLAINTS" "$PBM_GUEST/console.log" || fail "see above"
}

test_perf_of_the_host_reads_the_recording_of_a_guest()
{
	"$PBM_HOST_PERF" script --show-bpf-events -F comm,tid,cpu,time,event,period -i "$PBM_GUEST/hardware.data" >"$TMP/text"
	grep -q PERF_RECORD_BPF_METADATA "$TMP/text"
	same "recording of the guest" "$PBM_GUEST/hardware.text" "$TMP/text"
}

run_tests
