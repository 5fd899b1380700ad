#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of run-selftests.sh --vm: guests that go wrong.

. "$(dirname "$0")/fixtures.sh"

# Call vm__run with a stub of QEMU. Nothing is built or downloaded.
call_vm()
{
	mkdir -p "$TMP/t/vm" "$TMP/t/tmp"
	# shellcheck disable=SC2016 # for the inner shell
	exec env --default-signal=INT PATH="$TMP/stubs:$REAL_PATH" TMPDIR="$TMP/t/tmp" VM_DIR="$TMP/t/vm" SCRIPTS_DIR="$SCRIPTS_DIR" \
		STUB_VM="$STUB_VM" STUB_VM2="${STUB_VM2-$STUB_VM}" STUB_KVM="${STUB_KVM:-hang}" HAS_KVM="${HAS_KVM:-yes}" OPT_ACCEL="${ACCEL-tcg}" \
		PBM_VM_BOOT="${VM_BOOT:-20}" PBM_VM_TIMEOUT="${VM_TIMEOUT:-30}" bash -c '
		set -euo pipefail
		for lib in common arch guests; do
			. "$SCRIPTS_DIR/lib/$lib.sh"
		done
		vm__has_kvm() { [[ $HAS_KVM = yes ]]; }
		arch__load x86_64
		KERNEL_IMAGE=/dev/null
		VM_ROOT=/ VM_BUSYBOX=/bin/true VM_SHARES=("rw $VM_DIR")
		vm__run true
		echo "guest: $VM_STATUS"
		vm__check_log || end_failed' run-selftests.sh
}

vm_left_nothing()
{
	local guest files

	for guest in 1 2; do
		! kill -0 "$(cat "$TMP/t/vm/$guest/pid" 2>&1)" 2>/dev/null || fail "QEMU $guest still runs"
	done
	files=$(ls -A "$TMP/t/tmp")
	[[ -z $files ]] || fail "left: $files"
}

# vm_ends STATUS GUEST1 GUEST2 TEXT...: the script has this status and prints each text if the stubs
# of QEMU do GUEST1 and GUEST2. The guests leave nothing behind.
vm_ends()
{
	local text

	STUB_VM=$2 STUB_VM2=$3 expect_status "$1" call_vm
	vm_left_nothing
	for text in "${@:4}"; do
		printed "$text"
	done
}

start_vm()
{
	local tries=0

	set -m
	call_vm > "$TMP/t/vm.log" 2>&1 &
	HANGING=$!
	set +m
	until grep -q 'a test of 1' "$TMP/t/vm.log" 2>/dev/null && grep -q 'a test of 2' "$TMP/t/vm.log"; do
		sleep 0.1
		((++tries < 200)) || fail "the guests were never started"
	done
}

test_vm_options_that_make_no_sense()
{
	refuses run-selftests --accel tcg v6.16
	printed "error: --arch, --kernel and --accel are for --vm"
	refuses run-selftests --vm --accel hvf v6.16
	refuses run-selftests --vm --arch vax v6.16
	refuses run-selftests --vm --kernel /none v6.16
}

test_vm_status_and_report_come_back()
{
	vm_ends 0 0 0 "ok      a test of 1" "ok      a test of 2" "guest: 0"
	vm_ends 0 2 0 "guest: 2"
	vm_ends 0 0 2 "guest: 2"
}

# If one guest goes wrong, the other is ended, too.
test_vm_that_goes_wrong()
{
	VM_BOOT=2 vm_ends 2 hang hang "  | [ 0.1] clocksource: stub" \
		"no user space within 2 s, its console ends with '[ 0.1] clocksource: stub'"
	VM_BOOT=2 vm_ends 2 ever hang "no user space within 2 s"
	vm_ends 2 ever panic "ok      a test of 1" "  kernel: [ 0.2] Kernel panic - not syncing: stub" \
		"  | [ 0.2] Kernel panic - not syncing: stub" "the guest ended before its tests did" \
		"full log: $TMP/t/vm/2/console.log"
	VM_TIMEOUT=1 vm_ends 2 0 ever "ok      a test of 1" "has not ended after 1 s" "clocksource: stub"
}

test_vm_without_a_working_kvm()
{
	ACCEL='' VM_BOOT=2 vm_ends 0 0 0 "TCG (no user space within 2 s, its console ends with '[ 0.1] clocksource: stub')"
	ACCEL=kvm VM_BOOT=2 vm_ends 2 0 0 "leave out --accel kvm"
	ACCEL=kvm HAS_KVM=no vm_ends 2 0 0 "error: KVM: no /dev/kvm" "leave out --accel kvm"
	ACCEL='' HAS_KVM=no vm_ends 0 0 0 "TCG (no /dev/kvm"
	ACCEL='' STUB_KVM=0 vm_ends 0 hang hang "accel     KVM"
}

test_vm_with_a_splat()
{
	local line

	for line in 'WARNING: CPU: 0 PID: 1 at x.c:1' 'BUG: KASAN: stub' 'INFO: task x:1 blocked for more than 120 seconds.'; do
		STUB_CONSOLE=$line vm_ends 1 0 0 "  | [ 0.1] $line" "FAILED  the kernel of the guest complains"
	done
	sed -i 's/Linux version//' "$TMP/stubs/qemu-system-x86_64"
	(vm_ends 1 0 0 "is not a kernel log") || fail "a log of something else passes"
	make_qemu_stub
}

test_vm_ends_with_its_script()
{
	local tries=0 signal status

	while read -r signal status; do
		STUB_VM=ever start_vm
		kill "-$signal" -- "$([[ $signal != INT ]] || echo -)$HANGING"
		ends_with "$status"
		vm_left_nothing
	done <<< $'INT 130\nTERM 143'
	STUB_VM=ever start_vm
	kill -KILL "$HANGING"
	ends_with 137
	while kill -0 "$(< "$TMP/t/vm/1/pid")" 2>/dev/null || kill -0 "$(< "$TMP/t/vm/2/pid")" 2>/dev/null; do
		sleep 0.1
		((++tries < 100)) || fail "QEMU still runs"
	done
}

# check_names WANT NAMES RESULTS: guests__check_names must print WANT
check_names()
{
	# shellcheck source=../lib/guests.sh
	. "$SCRIPTS_DIR/lib/guests.sh"
	printf '%b' "$3" > "$TMP/t/results"
	PRINTED=$(PERF_TEST="perf test" guests__check_names "$TMP/t/results" "$2")
	[[ $PRINTED = "$1" ]] || fail "guests__check_names prints '$PRINTED'"
}

test_each_result_comes_back()
{
	check_names '' $'a: one\na: two' 'ok\ta: one\t\nskip\ta: two\tno disk\n'
	check_names '' 'perf test' 'ok\tperf test one\t\n'
	check_names "FAILED  a: (no result came back from the guests)" $'a: one\na:' 'ok\ta: one\t\n'
	[[ $(tail -n 1 "$TMP/t/results") = $'not ok\ta:\tno result' ]] || fail "no failed result was added"
}

run_tests
