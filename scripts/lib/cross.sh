# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Build programs for a foreign architecture, and run such programs.
#
# Usage (after lib/common.sh, lib/packages.sh, lib/arch.sh, lib/debian.sh, arch__load, log_to):
#	cross__prepare	install the cross compiler and unpack the libraries. Do nothing
#			for this machine's own architecture
#
# Reads:
#	ARCH_* OPT_INSTALL
# Sets:
#	CROSS_CC	the compiler, with the libraries and headers of the guest's
#			userland, not of this machine
#	CROSS_ARGS	arguments of make for a directory of the kernel's tools/
#	CROSS_RUN	the command that runs a foreign program on this machine

CROSS_CC='' CROSS_ARGS=() CROSS_RUN=()

# shellcheck disable=SC2034 # read by the other libraries
cross__prepare()
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
