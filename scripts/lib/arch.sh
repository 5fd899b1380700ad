# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The architectures: everything that differs between them is here.
#
# Usage (after lib/common.sh):
#	arch__list		print their names
#	arch__load ARCH		set the ARCH_*, or die; empty: this machine's
#	arch__is_foreign	programs of ARCH don't run on this machine
#
# Sets:
#	ARCH		its name in the kernel's make, and in --arch
#	ARCH_DEBIAN	its name in Debian
#	ARCH_TRIPLET	of its libraries and its compiler
#	ARCH_SUFFIX	of output directories; empty for this machine's architecture
#	ARCH_CROSS	prefix of the cross compiler; empty as above
#	ARCH_CROSS_PACKAGES	packages that compile for it and run its programs
#	ARCH_USER_QEMU	runs a single program of it
#	ARCH_IMAGE	the kernel's make target; its file is arch/*/boot/ARCH_IMAGE
#	ARCH_QEMU	the emulator
#	ARCH_QEMU_PACKAGES
#	ARCH_MACHINE	arguments of the emulator, for any accelerator
#	ARCH_TCG ARCH_KVM	arguments for this accelerator, the PMU's included
#	ARCH_HAS_PMU	1: any guest has one
#	ARCH_CONSOLE	of the kernel, on the first serial port

arch__list()
{
	printf '%s\n' x86_64 arm64
}

arch__machine()
{
	uname -m | sed 's/^aarch64$/arm64/'
}

# TCG's PMU for arm64 counts instructions only while QEMU does, with icount; a
# guest instruction then takes 2^shift ns of the guest's time.
# shellcheck disable=SC2034 # read by the other libraries
arch__load()
{
	ARCH=${1:-$(arch__machine)}
	ARCH_SUFFIX='' ARCH_CROSS='' ARCH_CROSS_PACKAGES=()
	case $ARCH in
	x86_64)
		ARCH_DEBIAN=amd64
		ARCH_TRIPLET=x86_64-linux-gnu
		ARCH_IMAGE=bzImage
		ARCH_USER_QEMU=qemu-x86_64
		ARCH_QEMU=qemu-system-x86_64
		ARCH_QEMU_PACKAGES=(qemu-system-x86 seabios)
		ARCH_MACHINE=(-machine q35)
		ARCH_TCG=(-accel tcg -cpu max)
		ARCH_KVM=(-accel kvm -cpu "host,pmu=on")
		ARCH_HAS_PMU=0
		ARCH_CONSOLE=ttyS0 ;;
	arm64)
		ARCH_DEBIAN=arm64
		ARCH_TRIPLET=aarch64-linux-gnu
		ARCH_IMAGE=Image
		ARCH_USER_QEMU=qemu-aarch64
		ARCH_QEMU=qemu-system-aarch64
		ARCH_QEMU_PACKAGES=(qemu-system-arm)
		ARCH_MACHINE=(-machine "virt,gic-version=max")
		ARCH_TCG=(-accel tcg -icount "shift=1" -cpu "max,pmu=on,pauth-impdef=on")
		ARCH_KVM=(-accel kvm -cpu "host,pmu=on")
		ARCH_HAS_PMU=1
		ARCH_CONSOLE=ttyAMA0 ;;
	*)
		die_usage "--arch $ARCH: not one of $(arch__list | paste -s -d ' ')" ;;
	esac
	arch__is_foreign || return 0
	[[ $ARCH = arm64 ]] || die_usage "--arch $ARCH: only on such a machine"
	ARCH_SUFFIX=-$ARCH
	ARCH_CROSS=$ARCH_TRIPLET-
	ARCH_CROSS_PACKAGES=("gcc-$ARCH_TRIPLET" mmdebstrap qemu-user)
}

arch__is_foreign()
{
	[[ $ARCH != "$(arch__machine)" ]]
}
