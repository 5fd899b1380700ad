#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build perf from a kernel tag in scripts/pins with this repository's patches. The script installs
# missing packages, finds or fetches the source, verifies and unpacks it, applies the patches, and builds
# out of tree. Run it from anywhere: scripts/apply-and-build.sh v6.16

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/packages.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/debian.sh"
. "$SCRIPTS_DIR/lib/tree.sh"
. "$SCRIPTS_DIR/lib/build.sh"

# As "perf version --build-options" prints them
MANDATORY_FEATURES=(HAVE_LIBELF_SUPPORT HAVE_ZLIB_SUPPORT HAVE_LIBBPF_SUPPORT HAVE_BPF_SKEL HAVE_LIBTRACEEVENT)

print_usage()
{
	cat <<END
usage: scripts/apply-and-build.sh [options] TAG

Builds perf from the kernel TAG with the patches of patches/TAG/series.
TAG is one of: $(pin__list | paste -s -d ' ')

  --source PATH     a tarball of the kernel, or a git tree that has TAG (default: the first
                    found of: unpacked earlier, cache, mirror, kernel.org, Debian)
  --mirror DIR      look in DIR for the pinned files, and download them only if they are
                    not there (default: \$PBM_MIRROR)
  --no-patches      build the unpatched tag, to compare with it
  --no-build        only make the patched tree
  --arch ARCH       $(arch__list | paste -s -d ' ') (default: this machine's; cross-built: arm64)
  --out DIR         directory for the results. Default: out/TAG, followed by -ARCH for a
                    foreign architecture, by -unpatched for --no-patches, and by -sanitize
                    or -sanitize-thread for --sanitize
  --sanitize[=KIND] build with clang and sanitizers. KIND is 'address' (default, takes twice
                    as long: AddressSanitizer, UndefinedBehaviorSanitizer and the
                    instrumentation for libFuzzer) or 'thread' (ThreadSanitizer)
  --jobs N          parallel jobs (default: number of CPUs)
  --clean           first remove linux/ with its edits, and what was built from it
  --no-install      install nothing; if packages are missing, print the apt line and end
  --quiet           print only errors, warnings and the last two lines
  -h, --help        this text

Results in DIR: linux/ (the patched tree), linux.git/ (what git knows of it), build/ (the
objects), perf, apply-and-build.log; and bpf-stamp of tools/, but not with --no-patches or
a foreign ARCH

Environment:
  PBM_CACHE         cache of downloads (default: \$XDG_CACHE_HOME/perf-bpf-metadata, else
                    ~/.cache/perf-bpf-metadata)
  PBM_PATCHES       directory with the series, TAG/series, and their patches (default: patches)
  PBM_PINS          the table of tags, sources and checksums (default: scripts/pins)

The last two lines printed are the path of the perf and its version.
Exit status: 0 done, 2 could not run.
END
}

check_options()
{
	arch__load "$OPT_ARCH"
	[[ $OPT_SANITIZE =~ ^(|address|thread)$ ]] ||
		die_usage "--sanitize=$OPT_SANITIZE: not 'address' or 'thread'"
	[[ -z $OPT_SANITIZE ]] || ! arch__is_foreign || die_usage "--sanitize excludes --arch $ARCH"
	[[ -z $OPT_MIRROR || -d $OPT_MIRROR ]] || die "--mirror $OPT_MIRROR: no such directory" "correct it or leave it out"
}

# A linux/ that this script did not make may be somebody's work, so do not touch it.
open_output()
{
	local out=$REPO_DIR/out/$TAG$ARCH_SUFFIX entry

	[[ $OPT_PATCHES = yes ]] || out+=-unpatched
	[[ -z $OPT_SANITIZE ]] || out+=-sanitize
	[[ $OPT_SANITIZE != thread ]] || out+=-thread
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$out}")
	[[ $OUT_DIR != *[[:space:]:\'\"\$#]* ]] ||
		die "$OUT_DIR: make cannot work in a path with blanks, quotes, ':', '#' or '\$'" "use another --out"
	TREE_DIR=$OUT_DIR/linux
	BUILD_DIR=$OUT_DIR/build
	PERF=$OUT_DIR/perf
	for entry in linux linux.git build perf; do
		[[ ! -e $OUT_DIR/$entry || -f $OUT_DIR/lock ]] || die "$OUT_DIR/$entry was not made by this script, or by an old one" \
			"move it away, or remove it if nothing in it is yours"
	done
	mkdir -p -- "$OUT_DIR"
	take_lock "$OUT_DIR/lock" "$OUT_DIR"
	[[ $OPT_CLEAN = no ]] || rm -rf -- "$TREE_DIR" "$TREE_DIR.git" "$BUILD_DIR" "$PERF" "$OUT_DIR/bpf-stamp"
	log_to "$OUT_DIR/apply-and-build.log"
}

print_inputs()
{
	local version=$SOURCE_VERSION

	[[ $version = "$PIN_VERSION" ]] || version="$version, a substitute for $TAG ($PIN_VERSION)"
	msg "source    $SOURCE_FROM"
	msg "version   $version, $SOURCE_ID"
	msg "patches   ${SERIES_FILE:-none}${SERIES_FILE:+ (${#SERIES_PATCHES[@]})}"
	msg "output    $OUT_DIR"
}

check_features()
{
	local built missing

	built=$("${CROSS_RUN[@]}" "$BUILD_DIR/perf" version --build-options 2>>"$LOG_FILE") ||
		die_logged "$BUILD_DIR/perf does not run" "run it again with --clean"
	missing=$(comm -23 <(printf '%s\n' "${MANDATORY_FEATURES[@]}" | sort) \
		<(sed -n 's/.*\[ *on *\] *# *\([A-Z_]*\).*/\1/p' <<<"$built" | sort) | paste -s -d ' ')
	[[ -n $missing ]] || return 0
	grep -h -E 'Warning: Disabled|disables|is disabled' "$LOG_FILE" | sort -u | sed 's/^/  /' >&2 || :
	die "this perf was built without: $missing" \
		"install what the lines above name, as root: apt-get install --reinstall PACKAGE; then run it again with --clean"
}

# Remove perf in BUILD_DIR first: fuzz.sh may have linked a fuzzer with the same name there. The file
# "built" says from what PERF was built. PERF is a copy, because make install links perf again.
build_perf()
{
	local state

	build__load_args "$OPT_SANITIZE"
	state=$(tree__git rev-parse HEAD; printf 'arg %s\n' "${BUILD_ARGS[@]}"; gcc --version | sed -n 1p; clang --version | sed -n 1p)
	[[ ! -x $PERF || $state != "$(cat "$BUILD_DIR/built" 2>/dev/null)" ]] || return 0
	rm -f -- "$PERF" "$BUILD_DIR/perf" "$BUILD_DIR/built" "$OUT_DIR/bpf-stamp"
	run_logged "build perf${ARCH_SUFFIX:+ for $ARCH} with $JOBS jobs" build__make ||
		die_logged "perf does not build" "correct what the log shows and run it again, if nothing helps with --clean"
	check_features
	cp -- "$BUILD_DIR/perf" "$PERF"
	printf '%s\n' "$state" > "$BUILD_DIR/built"
}

make_bpf_stamp()
{
	make -C "$REPO_DIR/tools" LINUX="$TREE_DIR" BUILD="$BUILD_DIR" OUTPUT="$OUT_DIR" "${BUILD_ARGS[@]}" "$@"
}

build_bpf_stamp()
{
	! make_bpf_stamp -q >/dev/null 2>&1 || return 0
	run_logged "build bpf-stamp" make_bpf_stamp ||
		die_logged "bpf-stamp does not build" "correct what the log shows and run it again"
}

OPT_SOURCE='' OPT_MIRROR=${PBM_MIRROR:-} OPT_OUT='' OPT_ARCH=''
OPT_PATCHES=yes OPT_BUILD=yes OPT_SANITIZE='' OPT_CLEAN=no OPT_INSTALL=yes
JOBS=$(nproc)

options__parse "$@" <<-'END'
	--source:	OPT_SOURCE
	--mirror:	OPT_MIRROR
	--jobs:		JOBS
	--arch:		OPT_ARCH
	--out:		OPT_OUT
	--no-patches	OPT_PATCHES	no
	--sanitize::	OPT_SANITIZE	address
	--clean		OPT_CLEAN	yes
	--no-install	OPT_INSTALL	no
	--no-build	OPT_BUILD	no
	--quiet		PBM_QUIET	1
END
check_options
pin__load "$TAG"
if [[ $OPT_PATCHES = yes ]]; then series__load "$TAG"; else series__load; fi
open_output
packages__require_build "$OPT_INSTALL" -P nocheck
[[ -z $OPT_SANITIZE ]] || packages__require "$OPT_INSTALL" libclang-rt-dev
arch__prepare_cross
if [[ -n $OPT_SOURCE ]]; then
	source__use "$OPT_SOURCE" "$TAG"
else
	tree__use_base || source__find_or_fetch
fi
print_inputs
tree__unpack
tree__update
[[ $OPT_BUILD = yes ]] || exit 0
build_perf
[[ $OPT_PATCHES = no ]] || arch__is_foreign || build_bpf_stamp
printf '%s\n' "$PERF"
"${CROSS_RUN[@]}" "$PERF" version
