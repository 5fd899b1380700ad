# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Run files of tests in a QEMU guest that sees this machine's files, read-only.
#
# Usage (after lib/common.sh and log_to):
#	guest__prepare			install packages; build the kernel of TAG, or use OPT_KERNEL;
#					unpack the userland of another architecture
#	guest__run DIR COMMAND...	run COMMAND in the guest, in DIR, and print its output; die if the
#					guest goes wrong. COMMAND gets OUTPUT and all PBM_*
#
# Reads:
#	OPT_ACCEL	kvm or tcg
#	OPT_KERNEL	an image; empty: the source of TAG with selftests/config*
#	OPT_INSTALL OPT_MIRROR CACHE_DIR REPO_DIR OUT_DIR TAG JOBS ARCH_*, and PBM_VM_*, which
#	run-selftests.sh --help explains
# Sets:
#	KERNEL_FROM	the path of the kernel and its version, for messages
#
# How it works. The kernel is kept in the cache, in a directory that is named after its source, its
# configuration and the compiler. The root is that of this machine, or the unpacked userland of another
# architecture, through 9p, read-only. guest-init.sh mounts an overlay in memory on top, and the shared
# directories under the same paths, and runs COMMAND. The guest can write only to DIR, which receives
# console.log, report (what COMMAND prints) and status.

. "$REPO_DIR/scripts/lib/pin.sh"
. "$REPO_DIR/scripts/lib/source.sh"
. "$REPO_DIR/scripts/lib/packages.sh"
. "$REPO_DIR/scripts/lib/debian.sh"
. "$REPO_DIR/scripts/lib/arch.sh"

KERNEL_PACKAGES=(bc bison dwarves flex gcc libc6-dev libelf-dev libssl-dev make xz-utils)

# --- the kernel ---------------------------------------------------------------

kernel__config()
{
	cat -- "$REPO_DIR"/selftests/{config,config.vm,"config.vm.$ARCH"}
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

# kernel__make_all DIR: Kconfig silently drops options with unmet dependencies, so check the result.
kernel__make_all()
{
	local make=(make -C "$1/linux" O="$1/build" ARCH="$ARCH" CROSS_COMPILE="$ARCH_CROSS" -j "$JOBS")

	mkdir -p -- "$1/linux" "$1/build" &&
		source__stream | tar -x -C "$1/linux" --strip-components=1 --no-same-owner &&
		kernel__config >"$1/wanted" &&
		KCONFIG_ALLCONFIG=$1/wanted "${make[@]}" allnoconfig &&
		! grep '^CONFIG_' "$1/wanted" | grep -vxFf "$1/build/.config" | sed 's/^/not set: /' | grep . &&
		"${make[@]}" "$ARCH_IMAGE"
}

# shellcheck disable=SC2034 # run-selftests.sh prints KERNEL_FROM
kernel__prepare()
{
	local dir

	KERNEL_IMAGE=$OPT_KERNEL KERNEL_FROM=$OPT_KERNEL
	[[ -z $OPT_KERNEL ]] || return 0
	packages__require "$OPT_INSTALL" "${KERNEL_PACKAGES[@]}" "${ARCH_CROSS_PACKAGES[@]}"
	pin__load "$TAG"
	# The archives *-perf.tar.* have only perf.
	mapfile -t PIN_SOURCES < <(printf '%s\n' "${PIN_SOURCES[@]}" | grep -v -e '-perf\.tar\.')
	source__find_or_fetch
	dir=$CACHE_DIR/kernels/$TAG-$ARCH-$(kernel__key)
	mkdir -p -- "$dir"
	take_lock "$dir/lock" "$dir"
	if [[ ! -f $dir/image ]]; then
		rm -rf -- "$dir/part"
		on_exit rm -rf -- "$dir/part"
		run_logged "build the kernel for $ARCH with $JOBS jobs, once" kernel__make_all "$dir/part" ||
			die_logged "the kernel does not build" "see the log; or use another kernel with --kernel"
		mv -- "$dir/part/build/arch/${ARCH/x86_64/x86}/boot/$ARCH_IMAGE" "$dir/image"
	fi
	release_lock
	KERNEL_IMAGE=$dir/image
	KERNEL_FROM="$KERNEL_IMAGE ($SOURCE_VERSION)"
}

guest__prepare()
{
	kernel__prepare
	packages__require "$OPT_INSTALL" qemu-system-common "${ARCH_QEMU_PACKAGES[@]}"
	VM_ROOT=/
	arch__is_foreign || return 0
	debian__unpack_userland
	VM_ROOT=$DEBIAN_DIR
}

# --- qemu ---------------------------------------------------------------------

# vm__share TAG PATH READONLY: share a directory of this machine
vm__share()
{
	VM_ARGS+=(-virtfs "local,mount_tag=$1,path=${2//,/,,},readonly=$3,security_model=none,multidevs=remap")
}

# A guest may have another root, and another /tmp. So share all directories that the tests need.
vm__load_arguments()
{
	local path shares=("$REPO_DIR" "$OUT_DIR") i

	for path in "$PBM_PERF" "${PBM_UNPATCHED_PERF:-}" "${PBM_PEER_PERF:-}" "${PBM_OLD_PERF:-}" \
		"${PBM_BPFTOOL:-}"; do
		[[ $path != */* ]] || shares+=("$(dirname -- "$(realpath -- "$path")")")
	done
	printf '%s\n' "${shares[@]}" >"$VM_DIR/shares"
	VM_ARGS=(-nodefaults -no-user-config -display none -monitor none -no-reboot
		-m "${PBM_VM_MEMORY:-2G}" -smp "${PBM_VM_CPUS:-1}" "${ARCH_MACHINE[@]}"
		-kernel "$KERNEL_IMAGE" -device virtio-rng-pci)
	vm__share root "$VM_ROOT" on
	vm__share guest "$VM_DIR" off
	for i in "${!shares[@]}"; do
		vm__share "share$i" "${shares[i]}" on
	done
}

# The kernel passes PBM_* to init as environment variables, because it does not know these parameters. QEMU
# ends when this script ends, even if the script is killed. The job is disowned, so that bash does not report
# its end.
vm__start()
{
	local scale=1 emulated=0 accel=("${ARCH_KVM[@]}") append p9=trans=virtio,version=9p2000.L,msize=512000

	[[ $OPT_ACCEL = kvm ]] || accel=("${ARCH_TCG[@]}") scale=10 emulated=1
	scale=${PBM_TIMEOUT_SCALE:-$scale}
	# norandmaps: under TCG, randomized addresses double the time of the tests, because programs
	# start slowly: 200 runs of /bin/true took 5.9 s of user time with them, 0.4 s without them.
	append="console=$ARCH_CONSOLE panic=-1 oops=panic mitigations=off norandmaps sysctl.vm.panic_on_oom=1"
	append+=" rcupdate.rcu_cpu_stall_timeout=$((21 * scale)) PBM_TIMEOUT_SCALE=$scale PBM_EMULATED=$emulated"
	append+=" PBM_GUEST=\"$VM_DIR\" root=root rootfstype=9p rootflags=$p9,cache=loose ro init=/bin/sh -- -c"
	# With cache=none, what the guest writes is on the host at once.
	append+=" \"mount -t tmpfs tmpfs /tmp && mkdir /tmp/guest && mount -t 9p -o $p9,cache=none guest /tmp/guest"
	append+=" && exec sh /tmp/guest/init\""
	tee "$VM_DIR"/{report,console.log} </dev/null >"$VM_DIR/status"
	set -m
	setpriv --pdeathsig KILL timeout "${PBM_VM_TIMEOUT:-7200}" setpriv --pdeathsig KILL \
		"$ARCH_QEMU" "${VM_ARGS[@]}" "${accel[@]}" -append "$append" -serial "file:$VM_DIR/console.log" \
		</dev/null >"$VM_DIR/qemu.log" 2>&1 &
	STEP_PIDS=("$!")
	disown "$!"
	set +m
}

# vm__die TEXT NEXT...: print the end of the console, and die
vm__die()
{
	printf '%s: the console ends:\n' "$PROGRAM" >&2
	tr -d '\r' <"$VM_DIR/console.log" | tail -n 15 | sed 's/^/  | /' >&2 || :
	sed 's/^/  | qemu: /' "$VM_DIR/qemu.log" >&2 || :
	printf '%s: full log: %s\n' "$PROGRAM" "$VM_DIR/console.log" >&2
	die "$@"
}

# Guests can hang at boot, for example with a /dev/kvm that does not work. tail prints the report, and ends
# with QEMU.
vm__await()
{
	local seconds=${PBM_VM_BOOT:-120} started=$SECONDS status

	until [[ -s $VM_DIR/status ]]; do
		if ((SECONDS >= started + seconds)) || ! kill -0 "${STEP_PIDS[0]}" 2>/dev/null; then
			[[ ! -s $VM_DIR/status ]] || break
			vm__die "the guest has not reached user space within $seconds s" \
				"see the console; PBM_VM_BOOT sets the limit"
		fi
		sleep 0.1
	done
	tail -n +1 -s 0.2 -f --pid="${STEP_PIDS[0]}" -- "$VM_DIR/report" &
	wait "$!"
	STEP_PIDS=()
	status=$(<"$VM_DIR/status")
	[[ $status != started ]] || vm__die "the guest ended before its tests did" \
		"see the console: a panic, no memory (PBM_VM_MEMORY), or no time (PBM_VM_TIMEOUT)"
	[[ $status = 0 ]] || vm__die "the tests could not run in the guest, status $status" "see above"
}

guest__run()
{
	VM_DIR=$1
	shift
	# An earlier guest may have left these.
	rm -rf -- "$VM_DIR"/{results,logs,hardware.data,hardware.text}
	export PBM_NEED_PMU=$ARCH_HAS_PMU
	{ declare -p OUTPUT "${!PBM_@}" && printf '%s\n' "exec ${*@Q}"; } >"$VM_DIR/command"
	cp -- "$REPO_DIR/scripts/lib/guest-init.sh" "$VM_DIR/init"
	vm__load_arguments
	vm__start
	vm__await
}
