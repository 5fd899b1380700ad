# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Build perf from the patched tree, and refuse a perf without BPF.
#
# Usage (after lib/common.sh, lib/tree.sh):
#	build__is_current	status 0 if perf was built from this tree with these tools
#	build__perf		run make, check the features, and copy perf to PERF
#	build__bpf_stamp	build tools/bpf-stamp.c with perf's libbpf, if necessary
#
# Reads:
#	REPO_DIR CACHE_DIR TREE_DIR BUILD_DIR STATE_DIR OUT_DIR PERF JOBS CROSS_* OPT_SANITIZE
#
# In STATE_DIR, the file "building" exists while make runs. SIGKILL or a full disk, which can leave
# half-written objects, leaves this file behind. Then the next run starts with an empty build
# directory. The file "built" is written last, and names everything on which this perf depends.

# perf links with the library of Debian's python3, so PYTHON names this python3, which may not be
# the first in PATH. Only perf of v7.3 has code in Rust, and it builds without Rust, too. A cross
# build includes a header that new kernels generate and an old linux-libc-dev lacks. A cross build
# and a build with sanitizers cannot use the Python, Perl and Java of this machine, which are for
# another architecture and without sanitizers.
build__load_args()
{
	local sanitizers=fuzzer-no-link,address,undefined

	BUILD_ARGS=(BUILD_BPF_SKEL=1 NO_RUST=1)
	[[ ! -x /usr/bin/python3 || ! -x /usr/bin/python3-config ]] ||
		BUILD_ARGS=(PYTHON=/usr/bin/python3 PYTHON_CONFIG=/usr/bin/python3-config "${BUILD_ARGS[@]}")
	if arch__is_foreign; then
		BUILD_ARGS+=("${CROSS_ARGS[@]}" CC="$CROSS_CC -isystem $BUILD_DIR/uapi"
			NO_LIBPYTHON=1 NO_LIBPERL=1 NO_JVMTI=1)
	elif [[ $OPT_SANITIZE != no ]]; then
		[[ $OPT_SANITIZE != thread ]] || sanitizers=thread
		BUILD_ARGS+=(CC=clang HOSTCC=clang NO_LIBPYTHON=1 NO_LIBPERL=1 NO_JVMTI=1
			EXTRA_CFLAGS="-g -fno-omit-frame-pointer -fsanitize=$sanitizers")
	fi
}

build__generate_headers()
{
	arch__is_foreign || return 0
	mkdir -p -- "$BUILD_DIR/uapi/asm" &&
		sh "$TREE_DIR/scripts/syscallhdr.sh" --emit-nr --abis common,64,renameat,rlimit,memfd_secret \
			"$TREE_DIR/scripts/syscall.tbl" "$BUILD_DIR/uapi/asm/unistd_64.h"
}

build__compilers()
{
	gcc --version | sed -n 1p
	clang --version | sed -n 1p
}

# The Makefile at the top reads the lines with arg, too.
build__stamp()
{
	tree__stamp
	printf 'arg %s\n' "${BUILD_ARGS[@]}"
	build__compilers
}

# shellcheck disable=SC2153 # the script sets PERF, which is not perf
build__is_current()
{
	build__load_args
	[[ -f $STATE_DIR/built && -x $PERF ]] || return 1
	[[ $(build__stamp) = "$(< "$STATE_DIR/built")" ]]
}

# Do not write Python bytecode into the tree. perf's build runs shellcheck on its tests, and the
# user's .shellcheckrc could make it fail.
#
# If ccache is installed, objects that any output directory of this user had before are not compiled
# again. perf's makefiles pass absolute paths. With CCACHE_BASEDIR, those of options do not count. The
# path after -Wp,-MT does not count because fixdep does not read it. Debug information can name the
# other output directory.
build__make()
{
	local ccache=()

	[[ ! -x /usr/lib/ccache/gcc ]] ||
		ccache=(PATH="/usr/lib/ccache:$PATH" CCACHE_DIR="${CCACHE_DIR:-$CACHE_DIR/ccache}"
			CCACHE_BASEDIR="$OUT_DIR" CCACHE_NOHASHDIR=1 "CCACHE_IGNOREOPTIONS=-Wp,-MT*")
	env "${ccache[@]}" PYTHONDONTWRITEBYTECODE=1 SHELLCHECK_OPTS=--norc \
		make -C "$TREE_DIR/tools/perf" O="$BUILD_DIR" JOBS="$JOBS" "${BUILD_ARGS[@]}"
}

build__all()
{
	build__generate_headers &&
		build__make
}

build__start()
{
	if [[ -f $STATE_DIR/building ]] || ! cmp -s "$STATE_DIR/compilers" <(build__compilers); then
		rm -rf -- "$BUILD_DIR"
	fi
	build__compilers > "$STATE_DIR/compilers"
	mkdir -p -- "$BUILD_DIR"
	: > "$STATE_DIR/building"
	on_exit build__end
}

# After an error or a signal, gcc and make remove half-written files. On a full disk, they cannot.
build__end()
{
	grep -q 'No space left on device' "$LOG_FILE" || rm -f -- "$STATE_DIR/building"
}

build__die()
{
	grep -h -o -i -E 'error: [^.]*(install|missing)[^"]*' "$LOG_FILE" | tail -n 3 | sed 's/^/  /' >&2 || :
	die_logged "perf does not build" "correct what the log shows and run it again"
}

# As "perf version --build-options" prints them
MANDATORY_FEATURES=(HAVE_LIBELF_SUPPORT HAVE_ZLIB_SUPPORT HAVE_LIBBPF_SUPPORT HAVE_BPF_SKEL HAVE_LIBTRACEEVENT)

build__check_features()
{
	local options feature missing=()

	options=$("${CROSS_RUN[@]}" "$BUILD_DIR/perf" version --build-options 2>> "$LOG_FILE") ||
		die_logged "$BUILD_DIR/perf does not run" "remove $BUILD_DIR and run it again"
	for feature in "${MANDATORY_FEATURES[@]}"; do
		grep -q "\[ *on *\] *# *$feature\b" <<< "$options" || missing+=("$feature")
	done
	((${#missing[@]})) || return 0
	grep -h -E 'Warning: Disabled|disables|is disabled' "$LOG_FILE" | sort -u | sed 's/^/  /' >&2 || :
	die "this perf was built without: ${missing[*]}" \
		"install what the lines above name, as root: apt-get install --reinstall PACKAGE; then run it again with --clean"
}

# Copy perf and rename the copy, so that PERF is always complete.
build__publish()
{
	cp -- "$BUILD_DIR/perf" "$PERF.part"
	mv -f -- "$PERF.part" "$PERF"
	build__stamp > "$STATE_DIR/built.part"
	mv -f -- "$STATE_DIR/built.part" "$STATE_DIR/built"
}

# Remove perf in BUILD_DIR first: fuzz.sh may have linked a fuzzer with the same name there.
build__perf()
{
	rm -f -- "$STATE_DIR/built" "$PERF" "$BUILD_DIR/perf" "$OUT_DIR/bpf-stamp"
	on_exit rm -f -- "$PERF.part"
	build__start
	run_logged "build perf${ARCH_SUFFIX:+ for $ARCH} with $JOBS jobs" build__all || build__die
	build__check_features
	build__publish
}

build__make_bpf_stamp()
{
	make "$@" -C "$REPO_DIR/tools" LINUX="$TREE_DIR" BUILD="$BUILD_DIR" OUTPUT="$OUT_DIR" "${BUILD_ARGS[@]}"
}

build__bpf_stamp()
{
	! build__make_bpf_stamp -q >/dev/null 2>&1 || return 0
	on_exit rm -f -- "$OUT_DIR/bpf-stamp.part"
	run_logged "build bpf-stamp" build__make_bpf_stamp ||
		die_logged "bpf-stamp does not build" "correct what the log shows and run it again"
}
