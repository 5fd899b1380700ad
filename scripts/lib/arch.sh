# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Everything that differs between the architectures, and the tools of a cross build
#
# Usage (after lib/common.sh; for arch__prepare_cross also lib/packages.sh, lib/debian.sh and log_to):
#	arch__list		print the names of the architectures, as make in the kernel knows them
#	arch__load ARCH		set ARCH and ARCH_*, see there, for ARCH (empty: this machine's), or die
#	arch__is_foreign	status 0 if this machine can't run programs of ARCH
#	arch__prepare_cross	if ARCH is foreign, install the cross compiler, unpack the libraries and
#				headers of the guest's userland, and set CROSS_*
#
# Sets:
#	CROSS_CC		the compiler; it does not use the libraries and headers of this machine
#	CROSS_ARGS		arguments of make for a directory of the kernel's tools/
#	CROSS_RUN		the command that runs a foreign program on this machine

CROSS_CC='' CROSS_ARGS=() CROSS_RUN=()

arch__list()
{
	printf '%s\n' x86_64 arm64
}

arch__machine()
{
	uname -m | sed 's/^aarch64$/arm64/'
}

# TCG's PMU for arm64 counts instructions only if QEMU counts them, with -icount. Then an
# instruction takes 2^shift ns of the guest's time.
# shellcheck disable=SC2034 # read by the other libraries
arch__load()
{
	local cpu

	ARCH=${1:-$(arch__machine)}
	# ARCH_IMAGE is the kernel's make target, in arch/*/boot/.
	case $ARCH in
	x86_64)
		cpu=x86_64 ARCH_DEBIAN=amd64 ARCH_IMAGE=bzImage ARCH_CONSOLE=ttyS0 ARCH_HAS_PMU=0
		ARCH_QEMU_PACKAGES=(qemu-system-x86 seabios)
		ARCH_MACHINE=(-machine q35)
		ARCH_TCG=(-accel tcg -cpu max) ;;
	arm64)
		cpu=aarch64 ARCH_DEBIAN=arm64 ARCH_IMAGE=Image ARCH_CONSOLE=ttyAMA0 ARCH_HAS_PMU=1
		ARCH_QEMU_PACKAGES=(qemu-system-arm)
		ARCH_MACHINE=(-machine "virt,gic-version=max")
		ARCH_TCG=(-accel tcg -icount "shift=1" -cpu "max,pmu=on,pauth-impdef=on") ;;
	*)
		die_usage "--arch $ARCH: not one of $(arch__list | paste -s -d ' ')" ;;
	esac
	ARCH_KVM=(-accel kvm -cpu "host,pmu=on")
	ARCH_QEMU=qemu-system-$cpu ARCH_USER_QEMU=qemu-$cpu ARCH_TRIPLET=$cpu-linux-gnu
	# The suffix of output directories, the prefix of the compiler, and the packages of a cross build
	ARCH_SUFFIX='' ARCH_CROSS='' ARCH_CROSS_PACKAGES=()
	arch__is_foreign || return 0
	[[ $ARCH = arm64 ]] || die_usage "--arch $ARCH: there is no cross build for it; use a machine of this architecture"
	ARCH_SUFFIX=-$ARCH
	ARCH_CROSS=$ARCH_TRIPLET-
	ARCH_CROSS_PACKAGES=("gcc-$ARCH_TRIPLET" mmdebstrap qemu-user)
}

arch__is_foreign()
{
	[[ $ARCH != "$(arch__machine)" ]]
}

# shellcheck disable=SC2034 # read by the other libraries
arch__prepare_cross()
{
	arch__is_foreign || return 0
	packages__require "$OPT_INSTALL" "${ARCH_CROSS_PACKAGES[@]}"
	debian__unpack_userland
	CROSS_CC="${ARCH_CROSS}gcc --sysroot=$DEBIAN_DIR"
	CROSS_ARGS=(ARCH="$ARCH" CROSS_COMPILE="$ARCH_CROSS" CC="$CROSS_CC")
	CROSS_RUN=("$ARCH_USER_QEMU" -L "$DEBIAN_DIR")
	# This cannot be a part of CLANG, because perf's makefile wants CLANG to be a single word.
	export CCC_OVERRIDE_OPTIONS="# +--sysroot=$DEBIAN_DIR"
	export PKG_CONFIG_SYSROOT_DIR=$DEBIAN_DIR
	export PKG_CONFIG_LIBDIR=$DEBIAN_DIR/usr/lib/$ARCH_TRIPLET/pkgconfig:$DEBIAN_DIR/usr/share/pkgconfig
}
