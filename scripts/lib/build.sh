# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Call perf's makefiles (after arch__load).
#
# Reads:
#	CACHE_DIR TREE_DIR BUILD_DIR JOBS CROSS_*

. "${BASH_SOURCE[0]%/*}/common.sh"

# build__load_args KIND: set BUILD_ARGS, the arguments of make, for no sanitizers (''), or for those of
# 'address' or 'thread'. perf links with the library of Debian's python3, so PYTHON names this python3,
# which may not be the first in PATH. Only perf of v7.3 has code in Rust, and it builds without Rust, too.
# A cross build includes a header that new kernels generate and an old linux-libc-dev lacks. A cross
# build and a build with sanitizers cannot use the Python, Perl and Java of this machine, which are for
# another architecture and without sanitizers.
build__load_args()
{
	local sanitizers=$1

	BUILD_ARGS=(BUILD_BPF_SKEL=1 NO_RUST=1)
	[[ ! -x /usr/bin/python3 || ! -x /usr/bin/python3-config ]] ||
		BUILD_ARGS=(PYTHON=/usr/bin/python3 PYTHON_CONFIG=/usr/bin/python3-config "${BUILD_ARGS[@]}")
	if arch__is_foreign; then
		BUILD_ARGS+=("${CROSS_ARGS[@]}" CC="$CROSS_CC -isystem $BUILD_DIR/uapi"
			NO_LIBPYTHON=1 NO_LIBPERL=1 NO_JVMTI=1)
	elif [[ -n $sanitizers ]]; then
		[[ $sanitizers != address ]] || sanitizers=fuzzer-no-link,address,undefined
		BUILD_ARGS+=(CC=clang HOSTCC=clang NO_LIBPYTHON=1 NO_LIBPERL=1 NO_JVMTI=1
			EXTRA_CFLAGS="-g -fno-omit-frame-pointer -fsanitize=$sanitizers")
	fi
}

build__generate_headers()
{
	mkdir -p -- "$BUILD_DIR/uapi/asm" &&
		sh "$TREE_DIR/scripts/syscallhdr.sh" --emit-nr --abis common,64,renameat,rlimit,memfd_secret \
			"$TREE_DIR/scripts/syscall.tbl" "$BUILD_DIR/uapi/asm/unistd_64.h"
}

# Make perf in BUILD_DIR from TREE_DIR, with BUILD_ARGS. Do not write Python bytecode into the tree. perf's
# build runs shellcheck on its tests, and the user's .shellcheckrc could make it fail.
#
# If ccache is installed, objects that any output directory of this user had before are not compiled
# again. perf's makefiles pass absolute paths. With CCACHE_BASEDIR, those of options do not count. The
# path after -Wp,-MT does not count because fixdep does not read it. Debug information can name the
# other output directory.
build__make()
{
	local ccache=()

	mkdir -p -- "$BUILD_DIR" || return
	! arch__is_foreign || build__generate_headers || return
	[[ ! -x /usr/lib/ccache/gcc ]] ||
		ccache=(PATH="/usr/lib/ccache:$PATH" CCACHE_DIR="${CCACHE_DIR:-$CACHE_DIR/ccache}"
			CCACHE_BASEDIR="${BUILD_DIR%/*}" CCACHE_NOHASHDIR=1 "CCACHE_IGNOREOPTIONS=-Wp,-MT*")
	env "${ccache[@]}" PYTHONDONTWRITEBYTECODE=1 SHELLCHECK_OPTS=--norc \
		make -C "$TREE_DIR/tools/perf" O="$BUILD_DIR" JOBS="$JOBS" "${BUILD_ARGS[@]}"
}
