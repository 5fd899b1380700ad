# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Run a command in a QEMU guest that sees this machine's files, read-only.
#
# Usage (after lib/common.sh, lib/arch.sh, lib/debian.sh, lib/kernel.sh,
# lib/splats.sh, arch__load, log_to, kernel__prepare):
#	vm__prepare		packages; the userland of another architecture
#	vm__share DIR		the guest sees DIR under its name, read-only
#	vm__run COMMAND		boot, run it and print its output; sets VM_STATUS.  Dies
#				if the guest does not get there, or not to its end
#	vm__check_log		print what the guest's kernel complained about; 1 if so
#
# Reads:
#	VM_DIR		receives console.log, report (what the command printed) and
#			status; the only directory that the guest can write to.  Its
#			other writes go to memory
#	OPT_ACCEL	kvm, tcg, or empty: KVM if it works
#	OPT_INSTALL ARCH_* KERNEL_*
#	PBM_VM_BOOT	seconds in which a boot reaches user space (default: 5 with
#			KVM, 120 with TCG)
#	PBM_VM_TIMEOUT	seconds after which the guest is ended (default 3600)
#	PBM_VM_MEMORY	of the guest (default 2G)
#	PBM_VM_CPUS	(default 2)
# Sets:
#	VM_STATUS	exit status of the command
#
# How it works.  The kernel gets a small initramfs (guest-initramfs.sh) that
# mounts this machine's root, or the userland, by 9p below an overlay in memory,
# the shared directories over it, and starts guest-init.sh, which runs the
# command.  Status and results come back in VM_DIR, never from the console; what
# is not there is a failure.

VM_PACKAGES=(cpio mmdebstrap qemu-system-common util-linux)

vm__prepare()
{
	VM_SHARES=("rw $VM_DIR")
	packages__require "$OPT_INSTALL" "${VM_PACKAGES[@]}" "${ARCH_QEMU_PACKAGES[@]}"
	VM_ROOT=/
	if arch__is_foreign; then
		debian__unpack_userland
		VM_ROOT=$DEBIAN_DIR
	else
		debian__unpack busybox busybox-static
	fi
	VM_BUSYBOX=$DEBIAN_DIR/bin/busybox
}

# What is below a directory that is shared comes with it.
vm__share()
{
	local dir=$1 share

	for share in "${VM_SHARES[@]}"; do
		[[ $share != "rw "* && $dir/ = "${share#ro }/"* ]] && return
	done
	VM_SHARES=("ro $dir" "${VM_SHARES[@]}")
}

# --- what the guest starts with -----------------------------------------------

vm__print_shares()
{
	local i

	for i in "${!VM_SHARES[@]}"; do
		printf 'share%d %s\n' "$i" "${VM_SHARES[i]}"
	done
}

vm__number_modules()
{
	local i

	for i in "${!KERNEL_MODULES[@]}"; do
		cp -- "${KERNEL_MODULES[i]}" "$1/$(printf '%03d' "$i")-${KERNEL_MODULES[i]##*/}" || return
	done
}

vm__write_command()
{
	printf '# status %s\n' "$VM_DIR/status" &&
		printf 'exec %s\n' "${*@Q}"
}

vm__make_initramfs()
{
	local dir=$VM_SCRATCH/initramfs applet

	mkdir -p -- "$dir/bin" "$dir/modules" &&
		cp -- "$VM_BUSYBOX" "$dir/bin/busybox" &&
		cp -- "$SCRIPTS_DIR/lib/guest-initramfs.sh" "$dir/init" &&
		printf '%s\n' "$SCRIPTS_DIR/lib/guest-init.sh" > "$dir/next" &&
		vm__print_shares > "$dir/shares" &&
		vm__write_command "$@" > "$dir/command" &&
		vm__number_modules "$dir/modules" || return
	for applet in sh cat cp insmod mkdir mount switch_root; do
		ln -s busybox "$dir/bin/$applet" || return
	done
	(cd "$dir" && find . | cpio --quiet -o -H newc) > "$VM_SCRATCH/initramfs.cpio"
}

# --- qemu ---------------------------------------------------------------------

vm__load_arguments()
{
	local i

	VM_ARGS=(-nodefaults -no-user-config -display none -monitor none -no-reboot
		-m "${PBM_VM_MEMORY:-2G}" -smp "${PBM_VM_CPUS:-2}" "${ARCH_MACHINE[@]}"
		-kernel "$KERNEL_IMAGE" -initrd "$VM_SCRATCH/initramfs.cpio"
		-serial "file:$VM_DIR/console.log" -device virtio-rng-pci
		-device virtio-serial-pci -chardev "file,id=report,path=$VM_DIR/report"
		-device "virtserialport,chardev=report,name=report"
		-virtfs "local,path=${VM_ROOT//,/,,},mount_tag=root,security_model=none,readonly=on,multidevs=remap")
	VM_APPEND="console=$ARCH_CONSOLE panic=-1 oops=panic mitigations=off sysctl.vm.panic_on_oom=1"
	for i in "${!VM_SHARES[@]}"; do
		vm__add_share "$i" "${VM_SHARES[i]%% *}" "${VM_SHARES[i]#* }"
	done
}

vm__add_share()
{
	local number=$1 readonly=off path=$3

	[[ $2 = rw ]] || readonly=on
	VM_ARGS+=(-virtfs "local,path=${path//,/,,},mount_tag=share$number,security_model=none,multidevs=remap,readonly=$readonly")
}

# What the kernel doesn't know is in the environment of its init.
vm__accel_arguments()
{
	local scale emulated

	case $1 in
	kvm)	VM_ACCEL_ARGS=("${ARCH_KVM[@]}")
		scale=1 emulated=0 ;;
	tcg)	VM_ACCEL_ARGS=("${ARCH_TCG[@]}")
		scale=10 emulated=1 ;;
	esac
	scale=${PBM_TIMEOUT_SCALE:-$scale}
	VM_ACCEL_ARGS+=(-append "$VM_APPEND rcupdate.rcu_cpu_stall_timeout=$((21 * scale)) PBM_TIMEOUT_SCALE=$scale PBM_EMULATED=$emulated")
}

# It ends with this script, also when that is killed.
vm__start()
{
	vm__accel_arguments "$1"
	tee "$VM_DIR/report" "$VM_DIR/console.log" < /dev/null > "$VM_DIR/status" ||
		die "cannot write to $VM_DIR" "use another --out"
	set -m
	setpriv --pdeathsig KILL "$ARCH_QEMU" "${VM_ARGS[@]}" "${VM_ACCEL_ARGS[@]}" \
		< /dev/null > "$VM_DIR/qemu.log" 2>&1 &
	STEP_PID=$!
	set +m
}

vm__is_running()
{
	kill -0 "$STEP_PID" 2>/dev/null
}

vm__stop()
{
	kill -TERM -- "-$STEP_PID" 2>/dev/null || :
	wait_for_group "$STEP_PID"
	wait "$STEP_PID" 2>/dev/null || :
	STEP_PID=
}

vm__has_started()
{
	[[ -s $VM_DIR/status ]]
}

vm__last_line()
{
	tr -d '\r' < "$VM_DIR/console.log" | tail -n 1 | cut -c 1-100
}

# Status 1 and VM_REASON: it did not reach user space.
vm__boot()
{
	local accel=$1 seconds=$2 end

	vm__start "$accel"
	end=$((SECONDS + seconds))
	until vm__has_started; do
		if ! vm__is_running; then
			VM_REASON="QEMU ended: $(tail -n 1 "$VM_DIR/qemu.log"; vm__last_line)"
			vm__stop
			return 1
		elif ((SECONDS >= end)); then
			VM_REASON="no user space within $seconds s, its console ends with '$(vm__last_line)'"
			vm__stop
			return 1
		fi
		sleep 0.1
	done
}

# The first complaint is the cause; after it come pages of registers.
vm__die()
{
	splats__print "$VM_DIR/console.log" 2>&1 | tr -d '\r' | head -n 3 | sed 's/^/  kernel: /' >&2 || :
	printf '%s: the console ends:\n' "$PROGRAM" >&2
	tr -d '\r' < "$VM_DIR/console.log" | tail -n 15 | sed 's/^/  | /' >&2 || :
	sed 's/^/  | qemu: /' "$VM_DIR/qemu.log" >&2 || :
	printf '%s: full log: %s\n' "$PROGRAM" "$VM_DIR/console.log" >&2
	die "$@"
}

vm__kvm_refusal()
{
	if arch__is_foreign; then
		echo "KVM runs no $ARCH on this machine"
	elif [[ ! -e /dev/kvm ]]; then
		echo "there is no /dev/kvm"
	elif [[ ! -r /dev/kvm || ! -w /dev/kvm ]]; then
		echo "/dev/kvm cannot be opened"
	fi
}

# A KVM that is there may still hang every guest, so it has to boot one first.
vm__boot_kvm()
{
	VM_REASON=$(vm__kvm_refusal)
	[[ -z $VM_REASON ]] || return 1
	vm__boot kvm "${PBM_VM_BOOT:-5}" && return
	VM_REASON="KVM: $VM_REASON"
	return 1
}

vm__boot_any()
{
	if [[ $OPT_ACCEL != tcg ]]; then
		if vm__boot_kvm; then
			msg "accel     KVM, with the PMU of this machine"
			return
		fi
		[[ -z $OPT_ACCEL ]] || vm__die "$VM_REASON" "see the console; or leave out --accel kvm, for TCG"
	fi
	msg "accel     TCG (${VM_REASON:---accel tcg})"
	vm__boot tcg "${PBM_VM_BOOT:-120}" || vm__die "the guest does not boot: $VM_REASON" "see the console"
}

# --- the run ------------------------------------------------------------------

vm__follow_report()
{
	tail -n +1 -s 0.2 -f --pid="$STEP_PID" -- "$VM_DIR/report" &
	TAIL_PID=$!
}

vm__end_report()
{
	[[ -n ${TAIL_PID:-} ]] || return 0
	wait "$TAIL_PID" 2>/dev/null || :
	TAIL_PID=
}

vm__wait()
{
	local end=$((SECONDS + ${PBM_VM_TIMEOUT:-3600}))

	while vm__is_running; do
		if ((SECONDS >= end)); then
			vm__stop
			vm__end_report
			vm__die "the guest has not ended after ${PBM_VM_TIMEOUT:-3600} s" "see the report; PBM_VM_TIMEOUT sets the limit"
		fi
		sleep 0.2
	done
	vm__stop
	vm__end_report
}

vm__read_status()
{
	VM_STATUS=$(< "$VM_DIR/status")
	[[ $VM_STATUS =~ ^[0-9]+$ ]] ||
		vm__die "the guest ended before its tests did" "see the console: a panic, or no memory left (PBM_VM_MEMORY)"
}

vm__run()
{
	VM_REASON=''
	VM_SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/pbm-vm.XXXXXX")
	on_exit rm -rf -- "$VM_SCRATCH"
	on_exit vm__end_report
	run_logged "make the guest's initramfs" vm__make_initramfs "$@" ||
		die_logged "cannot make the guest's initramfs" "see to the space in $VM_SCRATCH"
	vm__load_arguments
	vm__boot_any
	vm__follow_report
	vm__wait
	vm__read_status
}

vm__check_log()
{
	local status=0

	splats__print "$VM_DIR/console.log" > "$VM_DIR/splats" || status=$?
	case $status in
	0)	sed 's/^/  | /' "$VM_DIR/splats"
		printf 'FAILED  the kernel of the guest complains, see %s\n' "$VM_DIR/console.log"
		return 1 ;;
	1)	return 0 ;;
	*)	printf 'FAILED  %s is no log of a kernel\n' "$VM_DIR/console.log"
		return 1 ;;
	esac
}
