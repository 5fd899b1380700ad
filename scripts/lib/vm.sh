# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Run a command in QEMU guests that see this machine's files, read-only.
#
# Usage (after lib/common.sh, lib/arch.sh, lib/debian.sh, lib/kernel.sh,
# lib/splats.sh, arch__load, log_to, kernel__prepare):
#	vm__prepare		install packages; unpack the userland of another architecture
#	vm__share DIR		let guests read DIR, under the same path
#	vm__run COMMAND		boot the guests, run COMMAND in each of them, with the guest's
#				directory as last argument, and print the output; set
#				VM_STATUS. Die if a guest does not boot or does not end
#	vm__check_log		print complaints of the guests' kernels; status 1 if there
#				are any
#
# Reads:
#	VM_DIR		guest N's directory VM_DIR/N receives console.log, report (what
#			the command printed) and status.  The guests can write to all
#			of VM_DIR and to nothing else; other writes go to their memory
#	OPT_ACCEL	kvm, tcg, or empty: KVM if it works, otherwise TCG
#	OPT_INSTALL ARCH_* KERNEL_*
#	PBM_VM_BOOT	seconds in which a boot reaches user space (default: 5 with
#			KVM, 120 with TCG)
#	PBM_VM_TIMEOUT	seconds after which the guests are ended (default 3600)
#	PBM_VM_GUESTS	number of guests (default 2)
#	PBM_VM_MEMORY	memory of each guest (default 2G)
#	PBM_VM_CPUS	CPUs of each guest (default 1)
# Sets:
#	VM_STATUS	the highest exit status of the command in a guest
#
# How it works. The kernel gets a small initramfs (guest-initramfs.sh). This mounts the root of this
# machine, or the unpacked userland of another architecture, through 9p, read-only, with an overlay
# in memory on top. Then it mounts the shared directories, and starts guest-init.sh, which runs the
# command. Status and results come back in VM_DIR, never from the console. A guest without a status
# is a failure. Two guests with one CPU finish the tests sooner than one guest with two CPUs.

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

# Do nothing for a directory below a shared directory, because guests can read it already.
vm__share()
{
	local dir=$1 share

	for share in "${VM_SHARES[@]}"; do
		[[ $share != "rw "* && $dir/ = "${share#ro }/"* ]] && return
	done
	VM_SHARES=("ro $dir" "${VM_SHARES[@]}")
}

# --- what the guest starts with -----------------------------------------------

vm__make_initramfs()
{
	local dir=$VM_SCRATCH/initramfs applet guest

	mkdir -p -- "$dir/bin" &&
		cp -- "$VM_BUSYBOX" "$dir/bin/busybox" &&
		cp -- "$SCRIPTS_DIR/lib/guest-initramfs.sh" "$dir/init" &&
		printf '%s\n' "$SCRIPTS_DIR/lib/guest-init.sh" > "$dir/next" &&
		printf '%s\n' "${VM_SHARES[@]}" | awk '{ print "share" NR - 1, $0 }' > "$dir/shares" || return
	for applet in sh cat cp mkdir mount switch_root; do
		ln -s busybox "$dir/bin/$applet" || return
	done
	for ((guest = 1; guest <= VM_GUESTS; guest++)); do
		printf '# status %s\nexec %s %q\n' "$VM_DIR/$guest/status" "${*@Q}" "$VM_DIR/$guest" > "$dir/command" &&
			(cd "$dir" && find . | cpio --quiet -o -H newc) > "$VM_SCRATCH/$guest.cpio" || return
	done
}

# --- qemu ---------------------------------------------------------------------

vm__load_arguments()
{
	local i path mode

	VM_ARGS=(-nodefaults -no-user-config -display none -monitor none -no-reboot
		-m "${PBM_VM_MEMORY:-2G}" -smp "${PBM_VM_CPUS:-1}" "${ARCH_MACHINE[@]}"
		-kernel "$KERNEL_IMAGE" -device virtio-rng-pci
		-device virtio-serial-pci -device "virtserialport,chardev=report,name=report"
		-virtfs "local,path=${VM_ROOT//,/,,},mount_tag=root,security_model=none,readonly=on,multidevs=remap")
	# norandmaps: under TCG, randomized addresses double the time of the tests, because programs
	# start slowly: 200 runs of /bin/true took 5.9 s of user time with them, 0.4 s without them.
	VM_APPEND="console=$ARCH_CONSOLE panic=-1 oops=panic mitigations=off norandmaps sysctl.vm.panic_on_oom=1"
	for i in "${!VM_SHARES[@]}"; do
		path=${VM_SHARES[i]#* } mode=on
		[[ ${VM_SHARES[i]} != "rw "* ]] || mode=off
		VM_ARGS+=(-virtfs "local,path=${path//,/,,},mount_tag=share$i,security_model=none,multidevs=remap,readonly=$mode")
	done
}

# The kernel does not know PBM_*, and passes such parameters to init as environment variables.
vm__accel_arguments()
{
	local scale=1 emulated=0

	VM_ACCEL_ARGS=("${ARCH_KVM[@]}")
	[[ $1 = kvm ]] || VM_ACCEL_ARGS=("${ARCH_TCG[@]}") scale=10 emulated=1
	scale=${PBM_TIMEOUT_SCALE:-$scale}
	VM_ACCEL_ARGS+=(-append "$VM_APPEND rcupdate.rcu_cpu_stall_timeout=$((21 * scale)) PBM_TIMEOUT_SCALE=$scale PBM_EMULATED=$emulated")
}

# QEMU ends when this script ends, even if the script is killed. The job is disowned, so that bash
# does not report its end. The functions below report it instead.
vm__start()
{
	local accel=$1 guest=$2 dir=$VM_DIR/$2

	vm__accel_arguments "$accel"
	mkdir -p -- "$dir"
	tee "$dir/report" "$dir/console.log" < /dev/null > "$dir/status"
	set -m
	setpriv --pdeathsig KILL "$ARCH_QEMU" "${VM_ARGS[@]}" "${VM_ACCEL_ARGS[@]}" \
		-initrd "$VM_SCRATCH/$guest.cpio" -serial "file:$dir/console.log" -chardev "file,id=report,path=$dir/report" \
		< /dev/null > "$dir/qemu.log" 2>&1 &
	STEP_PIDS[guest]=$!
	disown "${STEP_PIDS[guest]}"
	set +m
}

vm__is_running()
{
	kill -0 "${STEP_PIDS[$1]}" 2>/dev/null
}

# If the guest does not reach user space, set VM_REASON and return 1.
vm__await_start()
{
	local guest=$1 seconds=$2 end=$3

	until [[ -s $VM_DIR/$guest/status ]]; do
		if ! vm__is_running "$guest" && [[ ! -s $VM_DIR/$guest/status ]]; then
			VM_REASON="QEMU ended: $(tail -n 1 "$VM_DIR/$guest/qemu.log")"
		elif ((SECONDS >= end)); then
			VM_REASON="no user space within $seconds s"
		else
			sleep 0.1
			continue
		fi
		VM_REASON+=", its console ends with '$(tr -d '\r' < "$VM_DIR/$guest/console.log" | tail -n 1 | cut -c 1-100)'"
		return 1
	done
}

# Start guests $3 to $4. If one does not reach user space, set VM_GUEST to it, set VM_REASON, and
# return 1.
vm__boot()
{
	local accel=$1 seconds=$2 first=$3 last=$4 end

	for ((VM_GUEST = first; VM_GUEST <= last; VM_GUEST++)); do
		vm__start "$accel" "$VM_GUEST"
	done
	end=$((SECONDS + seconds))
	for ((VM_GUEST = first; VM_GUEST <= last; VM_GUEST++)); do
		if ! vm__await_start "$VM_GUEST" "$seconds" "$end"; then
			end_steps TERM
			return 1
		fi
	done
}

# vm__die GUEST TEXT NEXT...: print the first complaints of the guest's kernel (the first is often
# the cause) and the end of the console. Then die.
vm__die()
{
	local dir=$VM_DIR/$1

	shift
	splats__print "$dir/console.log" 2>&1 | tr -d '\r' | head -n 3 | sed 's/^/  kernel: /' >&2 || :
	printf '%s: the console ends:\n' "$PROGRAM" >&2
	tr -d '\r' < "$dir/console.log" | tail -n 15 | sed 's/^/  | /' >&2 || :
	sed 's/^/  | qemu: /' "$dir/qemu.log" >&2 || :
	printf '%s: full log: %s\n' "$PROGRAM" "$dir/console.log" >&2
	die "$@"
}

vm__kvm_refusal()
{
	if arch__is_foreign; then
		echo "KVM on this machine cannot run $ARCH"
	elif [[ ! -e /dev/kvm ]]; then
		echo "there is no /dev/kvm"
	elif [[ ! -r /dev/kvm || ! -w /dev/kvm ]]; then
		echo "/dev/kvm cannot be opened"
	fi
}

# Boot one guest first, because guests can hang although /dev/kvm exists.
vm__boot_kvm()
{
	local seconds=${PBM_VM_BOOT:-5}

	VM_REASON=$(vm__kvm_refusal)
	[[ -z $VM_REASON ]] || return 1
	vm__boot kvm "$seconds" 1 1 && vm__boot kvm "$seconds" 2 "$VM_GUESTS" && return
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
		[[ -z $OPT_ACCEL || -n $VM_GUEST ]] || die "$VM_REASON" "leave out --accel kvm, for TCG"
		[[ -z $OPT_ACCEL ]] || vm__die "$VM_GUEST" "$VM_REASON" "see the console; or leave out --accel kvm, for TCG"
	fi
	msg "accel     TCG (${VM_REASON:---accel tcg})"
	vm__boot tcg "${PBM_VM_BOOT:-120}" 1 "$VM_GUESTS" ||
		vm__die "$VM_GUEST" "the guest does not boot: $VM_REASON" "see the console"
}

# --- the run ------------------------------------------------------------------

vm__end_reports()
{
	((${#VM_TAIL_PIDS[@]} == 0)) || wait "${VM_TAIL_PIDS[@]}" 2>/dev/null || :
	VM_TAIL_PIDS=()
}

# If a guest ends without a status, the whole run fails.
vm__check_guest()
{
	local guest=$1 end=$2

	if vm__is_running "$guest"; then
		((SECONDS >= end)) || return 0
		end_steps TERM
		vm__end_reports
		vm__die "$guest" "the guest has not ended after ${PBM_VM_TIMEOUT:-3600} s" "see the report; PBM_VM_TIMEOUT sets the limit"
	fi
	unset "STEP_PIDS[guest]"
	[[ ! $(< "$VM_DIR/$guest/status") =~ ^[0-9]+$ ]] || return 0
	end_steps TERM
	vm__end_reports
	vm__die "$guest" "the guest ended before its tests did" "see the console: a panic, or no memory left (PBM_VM_MEMORY)"
}

vm__wait()
{
	local end=$((SECONDS + ${PBM_VM_TIMEOUT:-3600})) guest

	while ((${#STEP_PIDS[@]})); do
		for guest in "${!STEP_PIDS[@]}"; do
			vm__check_guest "$guest" "$end"
		done
		sleep 0.2
	done
	vm__end_reports
}

vm__run()
{
	local guest

	VM_REASON='' VM_GUEST='' VM_TAIL_PIDS=() VM_GUESTS=${PBM_VM_GUESTS:-2}
	VM_SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/pbm-vm.XXXXXX")
	on_exit rm -rf -- "$VM_SCRATCH"
	on_exit vm__end_reports
	run_logged "make the guests' initramfs" vm__make_initramfs "$@" ||
		die_logged "cannot make the guests' initramfs" "check the free space in $VM_SCRATCH"
	vm__load_arguments
	vm__boot_any
	for guest in "${!STEP_PIDS[@]}"; do
		# grep writes whole lines, so that the lines of two guests do not mix.
		tail -n +1 -s 0.2 -f --pid="${STEP_PIDS[guest]}" -- "$VM_DIR/$guest/report" |
			grep --line-buffered '' &
		VM_TAIL_PIDS+=("$!")
	done
	vm__wait
	# shellcheck disable=SC2034 # read by lib/guests.sh
	VM_STATUS=$(sort -n "$VM_DIR"/*/status | tail -n 1)
}

vm__check_log()
{
	local guest log status=0

	for ((guest = 1; guest <= VM_GUESTS; guest++)); do
		log=$VM_DIR/$guest/console.log
		if splats__print "$log" > "$VM_DIR/$guest/splats"; then
			sed 's/^/  | /' "$VM_DIR/$guest/splats"
			printf 'FAILED  the kernel of the guest complains, see %s\n' "$log"
			status=1
		elif (($? != 1)); then
			printf 'FAILED  %s is not a kernel log\n' "$log"
			status=1
		fi
	done
	return "$status"
}
