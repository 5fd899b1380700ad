#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of run-selftests.sh --vm: a guest that goes wrong.

. "$(dirname "$0")/lib.sh"

# The stub of QEMU. STUB_VM is "hang" at boot, "panic" in the tests, run for "ever", or a status with which
# the command in the guest ends.
prepare_tests()
{
	mkdir "$TMP/stubs"
	cat >"$TMP/stubs/qemu-system-x86_64" <<-'END'
	#!/bin/bash
	dir=$(printf '%s\n' "$@" | sed -n 's,^file:\(.*\)/console.log$,\1,p')
	echo $$ >"$dir/pid"
	printf '[ 0.0] Linux version 0.1\r\n[ 0.1] clocksource: stub\r\n' >"$dir/console.log"
	[[ $STUB_VM != hang ]] || exec sleep 60
	echo started >"$dir/status"
	echo "ok      a test" >"$dir/report"
	case $STUB_VM in
	ever)	exec sleep 60 ;;
	panic)	echo '[ 0.2] Kernel panic - not syncing: stub' >>"$dir/console.log" ;;
	*)	echo "$STUB_VM" >"$dir/status" ;;
	esac
	END
	chmod +x "$TMP/stubs/qemu-system-x86_64"
}

# Call guest__run with the stub of QEMU. Nothing is built or downloaded.
call_vm()
{
	mkdir -p "$TMP/t/vm"
	# shellcheck disable=SC2016 # for the inner shell
	exec env --default-signal=INT PATH="$TMP/stubs:$PATH" PBM_PERF=perf OUTPUT=/ bash -c '
		set -euo pipefail
		. "$0/lib/common.sh"
		. "$0/lib/guests.sh"
		arch__load x86_64
		OPT_ACCEL=tcg OUT_DIR=/ KERNEL_IMAGE=/dev/null VM_ROOT=/
		guest__run "$1" true "two words"
		echo "it ended"' "$SCRIPTS_DIR" "$TMP/t/vm"
}

qemu_ended()
{
	! kill -0 "$(<"$TMP/t/vm/pid")" 2>/dev/null
}

# vm_ends STATUS STUB_VM TEXT...: the script has this status, prints each text, and ends QEMU
vm_ends()
{
	local text

	STUB_VM=$2 expect_status "$1" call_vm
	await qemu_ended
	for text in "${@:3}"; do
		printed "$text"
	done
}

test_vm_options_that_make_no_sense()
{
	refuses run-selftests --accel kvm v6.16
	printed "error: --arch, --kernel and --accel are for --vm"
	refuses run-selftests --vm --arch vax v6.16
}

test_vm_status_and_report_come_back()
{
	mkdir "$TMP/t/vm"
	touch "$TMP/t/vm/hardware.data"
	vm_ends 0 0 "ok      a test" "it ended"
	absent "$TMP/t/vm/hardware.data"
	vm_ends 2 2 "the tests could not run in the guest, status 2"
	# QEMU may end while the guest writes its status.
	vm_ends 2 '' "the tests could not run in the guest, status "
	holds "$TMP/t/vm/command" "^exec 'true' 'two words'\$"
	holds "$TMP/t/vm/command" '^declare -x PBM_PERF="perf"$'
}

# A guest that runs for "ever" ends after 60 s.
test_vm_that_goes_wrong()
{
	local start=$SECONDS

	PBM_VM_BOOT=5 vm_ends 2 hang "  | [ 0.1] clocksource: stub" "the guest has not reached user space within 5 s"
	vm_ends 2 panic "ok      a test" "  | [ 0.2] Kernel panic - not syncing: stub" \
		"the guest ended before its tests did" "full log: $TMP/t/vm/console.log"
	PBM_VM_TIMEOUT=5 vm_ends 2 ever "ok      a test" "the guest ended before its tests did" "clocksource: stub"
	((SECONDS < start + 50)) || fail "a guest was not ended in time"
}

test_vm_ends_with_its_script()
{
	local signal status

	export STUB_VM=ever
	while read -r signal status; do
		rm -rf "$TMP/t/vm"
		in_background call_vm
		await grep -q 'a test' "$TMP/t/background.log"
		kill "-$signal" -- "$([[ $signal != INT ]] || echo -)$HANGING"
		ends_with "$status"
		await qemu_ended
	done <<<$'INT 130\nTERM 143\nKILL 137'
}

# kernel_says STATUS LINE: afterwards.sh ends like this if the kernel of the guest has printed the line
kernel_says()
{
	printf '%s\n' "$2" >"$TMP/t/console.log"
	expect_status "$1" env PBM_AFTERWARDS=kernel PBM_GUEST="$TMP/t" OUTPUT="${KTAP_HELPERS%/*}" \
		"$SCRIPTS_DIR/lib/afterwards.sh"
}

test_complaint_of_a_kernel_is_a_failure()
{
	local line

	kernel_says 0 '[ 0.0] Linux version 0.1'
	kernel_says 1 '[ 0.0] another log'
	printed "is not the log of a kernel"
	for line in 'WARNING: CPU: 0 PID: 1' 'BUG: KASAN: stub' 'INFO: task x:1 blocked for more than 120 s'; do
		kernel_says 1 $'[ 0.0] Linux version 0.1\n[ 0.1] '"$line"
		printed "# [ 0.1] $line"
	done
}

run_tests
