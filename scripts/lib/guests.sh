# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Run run-selftests.sh in QEMU guests that see this machine's files, read-only, and check the results.
#
# Usage (after lib/common.sh, lib/pin.sh, lib/source.sh, lib/arch.sh, lib/debian.sh, log_to):
#	guests__prepare			install packages; build the kernel of TAG, or use OPT_KERNEL;
#					unpack the userland of another architecture
#	guests__fill_queue PROGRAM...	queue the programs, which the guests divide among themselves
#	guests__take PROGRAM		status 0 if this guest has to run the program; always 0
#					outside of guests
#	guests__run RESULTS		run the script in each guest, print its output, and collect
#					the results in the file RESULTS; die if the script could
#					not run there
#	guests__check RESULTS NAMES READER
#					add a failure for each of NAMES (one per line) without a
#					result, and for complaints of the kernels. READER is empty,
#					or a perf of this host that reads the recording of a guest
#					of another architecture
#
# Reads:
#	VM_DIR		guest N's directory VM_DIR/N receives console.log, report (what
#			the script printed) and status.  The guests can write to all
#			of VM_DIR and to nothing else; other writes go to their memory
#	OPT_GUEST	in a guest: its directory in VM_DIR; on the host: empty
#	OPT_ACCEL	kvm, tcg, or empty: KVM if it works, otherwise TCG
#	OPT_KERNEL	an image; empty: the source of TAG with selftests/config*
#	OPT_INSTALL OPT_MIRROR OPT_FILTER OPT_PERF CACHE_DIR REPO_DIR OUT_DIR PERF TAG
#	PERF_TEST JOBS ARCH_*, and PBM_*, which run-selftests.sh --help explains
# Sets:
#	KERNEL_FROM	the origin of the kernel, for messages
#
# How it works. The kernel is kept in the cache, in a directory that is named after its source, its
# configuration and the compiler. It gets a small initramfs (guest-initramfs.sh). This mounts the
# root of this machine, or the unpacked userland of another architecture, through 9p, read-only,
# with an overlay in memory on top. Then it mounts the shared directories under the same paths, and
# starts guest-init.sh, which runs the script. Status and results come back in VM_DIR, never from
# the console. A guest without a status is a failure. Two guests with one CPU finish the tests
# sooner than one guest with two CPUs. The queue has a directory for each program. The guest that
# removes this directory runs the program.

VM_PACKAGES=(cpio mmdebstrap qemu-system-common util-linux)
KERNEL_PACKAGES=(bc bison dwarves flex gcc libc6-dev libelf-dev libssl-dev make xz-utils)

# These texts come from arch/, lib/, kernel/ and mm/ of the kernel.
SPLATS='BUG: |kernel BUG at |WARNING: |Kernel panic|Oops(:| - )|general protection fault|Unable to handle kernel|unable to handle (page fault|kernel)|INFO: task .* blocked for more than|INFO: rcu_.* (detected|self-detected)|rcu: INFO: |soft lockup|hard LOCKUP|INFO: lockdep|KASAN|KCSAN|UBSAN|Out of memory|invoked oom-killer|unreferenced object|refcount_t: |list_(add|del) corruption'

# Print the complaints in the log of a kernel. Status 1: there are none, 2: LOG is not such a log.
splats__print()
{
	local status=0

	grep -q 'Linux version ' -- "$1" || return 2
	grep -a -E -e "$SPLATS" -- "$1" || status=$?
	return "$status"
}

# --- the kernel ---------------------------------------------------------------

kernel__config()
{
	cat -- "$REPO_DIR"/selftests/{config,config.vm,"config.vm.$ARCH"}
}

kernel__make()
{
	KCONFIG_ALLCONFIG="$1/wanted" make -C "$1/linux" O="$1/build" ARCH="$ARCH" CROSS_COMPILE="$ARCH_CROSS" -j "$JOBS" "${@:2}"
}

# Choose a source with the whole kernel: the archives *-perf.tar.* have only perf.
kernel__choose_source()
{
	local entry full=()

	pin__load "$TAG"
	for entry in "${PIN_SOURCES[@]}"; do
		[[ $entry = *-perf.tar.* ]] || full+=("$entry")
	done
	PIN_SOURCES=("${full[@]}")
	# shellcheck disable=SC2034 # read by source.sh
	OPT_SOURCE='' OPT_GIT=''
	source__find_or_fetch /nonexistent
}

kernel__key()
{
	{
		printf '%s\n' "$SOURCE_ID" "$ARCH"
		kernel__config
		"${ARCH_CROSS}gcc" --version | sed -n 1p
		pahole --version
	} | sha256sum | cut -c 1-12
}

kernel__unpack()
{
	# shellcheck disable=SC2034 # read by source.sh
	local part=$1 SOURCE_EXCLUDES=()

	mkdir -p -- "$part/linux" "$part/build" &&
		source__stream | tar -x -C "$part/linux" --strip-components=1 --no-same-owner
}

# Check the configuration, because Kconfig silently drops options with unmet dependencies.
kernel__configure()
{
	local part=$1

	kernel__config > "$part/wanted" &&
		kernel__make "$part" allnoconfig &&
		! grep '^CONFIG_' "$part/wanted" | grep -vxFf "$part/build/.config" | sed 's/^/not set: /' | grep .
}

kernel__publish()
{
	local part=$1 dir=$2

	rm -rf -- "$dir.new" &&
		mkdir -- "$dir.new" &&
		cp -- "$part/build/arch/${ARCH/x86_64/x86}/boot/$ARCH_IMAGE" "$dir.new/image" &&
		mv -- "$dir.new" "$dir"
}

kernel__die()
{
	die_logged "$1" "see the log; or use another kernel with --kernel"
}

kernel__build()
{
	local dir=$1 part=$1.part

	rm -rf -- "$part"
	on_exit rm -rf -- "$part" "$dir.new"
	run_logged "unpack ${SOURCE_PATH##*/}" kernel__unpack "$part" || kernel__die "cannot unpack $SOURCE_PATH"
	run_logged "configure the kernel" kernel__configure "$part" || kernel__die "the kernel cannot be configured as selftests/config* want it"
	run_logged "build the kernel for $ARCH with $JOBS jobs, once" kernel__make "$part" "$ARCH_IMAGE" || kernel__die "the kernel does not build"
	kernel__publish "$part" "$dir" || kernel__die "cannot write $dir"
	rm -rf -- "$part"
}

# shellcheck disable=SC2034 # run-selftests.sh prints KERNEL_FROM
kernel__prepare()
{
	local dir

	if [[ -n $OPT_KERNEL ]]; then
		KERNEL_IMAGE=$(realpath -- "$OPT_KERNEL")
		KERNEL_FROM=$KERNEL_IMAGE
		return
	fi
	packages__require "$OPT_INSTALL" "${KERNEL_PACKAGES[@]}" "${ARCH_CROSS_PACKAGES[@]}"
	kernel__choose_source
	dir=$CACHE_DIR/kernels/$TAG-$ARCH-$(kernel__key)
	if [[ ! -f $dir/image ]]; then
		mkdir -p -- "${dir%/*}"
		take_lock "$dir.lock" "$dir"
		[[ -f $dir/image ]] || kernel__build "$dir"
		release_lock
	fi
	KERNEL_IMAGE=$dir/image
	KERNEL_FROM="$SOURCE_VERSION, $SOURCE_FROM"
}

# --- the machine --------------------------------------------------------------

guests__prepare()
{
	kernel__prepare
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

# If a guest does not reach user space, end all, set VM_GUEST to it, set VM_REASON, and return 1.
vm__boot()
{
	local accel=$1 seconds=$2 end

	for ((VM_GUEST = 1; VM_GUEST <= VM_GUESTS; VM_GUEST++)); do
		vm__start "$accel" "$VM_GUEST"
	done
	end=$((SECONDS + seconds))
	for ((VM_GUEST = 1; VM_GUEST <= VM_GUESTS; VM_GUEST++)); do
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

vm__has_kvm()
{
	! arch__is_foreign && [[ -r /dev/kvm && -w /dev/kvm ]]
}

# Guests can hang although there is a /dev/kvm. Then use TCG.
vm__boot_any()
{
	VM_REASON="no /dev/kvm for $ARCH can be opened"
	if [[ $OPT_ACCEL != tcg ]] && vm__has_kvm && vm__boot kvm "${PBM_VM_BOOT:-5}"; then
		msg "accel     KVM, with the PMU of this machine"
		return
	fi
	[[ $OPT_ACCEL != kvm ]] || die "KVM: $VM_REASON" "see $VM_DIR/*/console.log; or leave out --accel kvm, for TCG"
	[[ -z $OPT_ACCEL ]] || VM_REASON="--accel tcg"
	msg "accel     TCG ($VM_REASON)"
	vm__boot tcg "${PBM_VM_BOOT:-120}" ||
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

	VM_TAIL_PIDS=() VM_GUESTS=${PBM_VM_GUESTS:-2}
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

# --- run-selftests.sh in guests ------------------------------------------------

# If the guest has another architecture, this host also reads the recording of this test.
FOREIGN_TEST="hardware: samples of cycles"
FOREIGN_CHECK="hardware: perf of $(uname -m) reads the samples of the guest"

guests__fill_queue()
{
	local file

	rm -rf -- "$VM_DIR"
	for file; do
		mkdir -p -- "$VM_DIR/queue/$file"
	done
}

guests__take()
{
	[[ -z $OPT_GUEST ]] || rmdir -- "${OPT_GUEST%/*}/queue/$1" 2>/dev/null
}

# Share all paths that the tests need: a guest may have another root and /tmp.
guests__share_paths()
{
	local path

	vm__share "$REPO_DIR"
	vm__share "$OUT_DIR"
	for path in "$PERF" "${PBM_UNPATCHED_PERF:-}" "${PBM_PEER_PERF:-}" "${PBM_OLD_PERF:-}" \
		"${PBM_BPFTOOL:-}"; do
		[[ $path != */* ]] || vm__share "$(dirname -- "$(realpath -- "$path")")"
	done
}

# vm__run appends the guest's directory, which is the argument of --guest.
guests__run()
{
	local results=$1 name command

	guests__share_paths
	command=(env PBM_QUIET="${PBM_QUIET:-0}" PBM_UNPATCHED_PERF="${PBM_UNPATCHED_PERF:-}"
		PBM_PEER_PERF="${PBM_PEER_PERF:-}" PBM_OLD_PERF="${PBM_OLD_PERF:-}"
		PBM_NEED_PMU="$ARCH_HAS_PMU")
	for name in PBM_STRESS_PROGRAMS PBM_STRESS_MS PBM_BPFTOOL; do
		[[ -z ${!name:-} ]] || command+=("$name=${!name}")
	done
	command+=("$SCRIPTS_DIR/${0##*/}" --out "$OUT_DIR" --filter "$OPT_FILTER")
	[[ -z $OPT_PERF ]] || command+=(--perf "$PERF")
	vm__run "${command[@]}" "$TAG" --guest
	((VM_STATUS == 0)) ||
		die "the tests could not run in a guest, status $VM_STATUS" "see above, and $VM_DIR/*/console.log"
	cat "$VM_DIR"/*/results >"$results"
}

# Add a failure for each test without a result. In NAMES, perf test is one name, with which the names
# of all its results begin.
guests__check_names()
{
	local results=$1 names=$2 name

	while read -r name; do
		cut -f 2 "$results" | awk -v name="$name" -v prefix="$PERF_TEST" '
			$0 == name || name == prefix && index($0, name " ") == 1 { found = 1 }
			END { exit !found }' && continue
		printf 'FAILED  %s (no result came back from the guests)\n' "$name"
		printf 'not ok\t%s\tno result\n' "$name" >>"$results"
	done <<<"$names"
}

# Compare what perf of this host and perf of the guest print. Only one guest has made the recording.
guests__read_recording()
{
	local reader=$1 data

	data=$(find "$VM_DIR" -name hardware.data)
	"$reader" script --show-bpf-events -F comm,tid,cpu,time,event,period \
		-i "$data" >"$VM_DIR/hardware.text" 2>>"$LOG_FILE" &&
		grep -q PERF_RECORD_BPF_METADATA "$VM_DIR/hardware.text" &&
		diff -u "${data%.data}.text" "$VM_DIR/hardware.text" >>"$LOG_FILE"
}

guests__check_recording()
{
	local results=$1 names=$2 reader=$3

	[[ -n $reader ]] && grep -q -x -F "$FOREIGN_TEST" <<<"$names" || return 0
	if guests__read_recording "$reader"; then
		printf 'ok\t%s\t\n' "$FOREIGN_CHECK" >>"$results"
		msg "ok      $FOREIGN_CHECK"
	else
		printf 'not ok\t%s\t\n' "$FOREIGN_CHECK" >>"$results"
		printf 'FAILED  %s\n  log: %s\n' "$FOREIGN_CHECK" "$LOG_FILE"
	fi
}

guests__check()
{
	guests__check_names "$1" "$2"
	guests__check_recording "$@"
	vm__check_log || printf 'not ok\tkernel logs of the guests\n' >>"$1"
}
