#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build perf from a kernel tag in scripts/pins with this repository's patches. The script installs
# missing packages, finds or fetches the source, verifies and unpacks it, applies the patches with quilt,
# and builds out of tree. Run it from anywhere: scripts/apply-and-build.sh v6.16

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/packages.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/debian.sh"
. "$SCRIPTS_DIR/lib/source.sh"
. "$SCRIPTS_DIR/lib/series.sh"
. "$SCRIPTS_DIR/lib/tree.sh"
. "$SCRIPTS_DIR/lib/build.sh"

print_usage()
{
	cat <<END
usage: scripts/apply-and-build.sh [options] TAG

Builds perf from the kernel TAG with the patches of patches/TAG/series.
TAG is one of: $(pin__list | paste -s -d ' ')

Source (default: the first found of: unpacked earlier, cache, mirror, kernel.org, Debian):
  --source PATH     an unpacked kernel tree, or its tarball
  --git REPO        a git tree that has TAG
  --mirror DIR      look in DIR for the pinned files, and download them only if they are
                    not there (default: \$PBM_MIRROR)
  --no-patches      build the unpatched tag, to compare with it

Build and output:
  --arch ARCH       $(arch__list | paste -s -d ' ') (default: this machine's; cross-built: arm64)
  --out DIR         directory for linux/, build/ and perf. Default: out/TAG, followed by
                    -ARCH for a foreign architecture, by -unpatched for --no-patches,
                    and by -sanitize or -sanitize-thread for --sanitize
  --sanitize[=KIND] build with clang and sanitizers. KIND is 'address' (default, takes twice
                    as long: AddressSanitizer, UndefinedBehaviorSanitizer and the
                    instrumentation for libFuzzer) or 'thread' (ThreadSanitizer)
  --jobs N          parallel jobs (default: number of CPUs)
  --clean           first remove the files of an earlier run in DIR, and edits in linux/
  --no-install      install nothing; if packages are missing, print the apt line and end
  --stop-after STEP stop after the step 'source' or 'apply', and build nothing
  --quiet           print only errors, warnings and the last two lines
  --help            this text

Results in DIR:
  linux/            the patched tree; quilt push, pop and refresh work in it
  build/            the objects
  perf              built from linux/ as the last complete run left it
  bpf-stamp         tools/bpf-stamp, but not with --no-patches or a foreign ARCH
  apply-and-build.log

Environment:
  PBM_CACHE         cache of downloads (default: \$XDG_CACHE_HOME/perf-bpf-metadata, else
                    ~/.cache/perf-bpf-metadata)
  PBM_MIRROR        default of --mirror
  PBM_PATCHES       directory with the series (TAG/series) and the patches that a
                    series names (default: patches)
  PBM_PINS          the table of tags, sources and checksums (default: scripts/pins)

The last two lines printed are the path of the perf and its version.
Exit status: 0 done, 2 could not run.
END
}

parse_options()
{
	options__parse "$@" <<-'END'
		--source:	OPT_SOURCE
		--git:		OPT_GIT
		--mirror:	OPT_MIRROR
		--jobs:		JOBS
		--arch:		OPT_ARCH
		--out:		OPT_OUT
		--no-patches	OPT_PATCHES	no
		--sanitize::	OPT_SANITIZE	address
		--clean		OPT_CLEAN	yes
		--no-install	OPT_INSTALL	no
		--stop-after:	OPT_STOP
		--quiet		PBM_QUIET	1
	END
}

check_options()
{
	[[ -z $OPT_SOURCE || -z $OPT_GIT ]] || die_usage "--source and --git exclude each other"
	[[ $JOBS =~ ^[1-9][0-9]*$ ]] || die_usage "--jobs $JOBS: not a number from 1 up"
	arch__load "$OPT_ARCH"
	[[ $OPT_SANITIZE =~ ^(no|address|thread)$ ]] ||
		die_usage "--sanitize=$OPT_SANITIZE: not 'address' or 'thread'"
	[[ $OPT_SANITIZE = no ]] || ! arch__is_foreign ||
		die_usage "--sanitize excludes --arch $ARCH"
	[[ $OPT_STOP =~ ^(|source|apply)$ ]] || die_usage "--stop-after $OPT_STOP: not 'source' or 'apply'"
	[[ -z $OPT_MIRROR || -d $OPT_MIRROR ]] || die "--mirror $OPT_MIRROR: no such directory" "correct it or leave it out"
	[[ -z $OPT_GIT || -d $OPT_GIT ]] || die "--git $OPT_GIT: no such directory" "name a git tree on this machine"
}

resolve_paths()
{
	local out=$REPO_DIR/out/$TAG$ARCH_SUFFIX

	[[ $OPT_PATCHES = yes ]] || out+=-unpatched
	[[ $OPT_SANITIZE = no ]] || out+=-sanitize
	[[ $OPT_SANITIZE != thread ]] || out+=-thread
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$out}")
	[[ $OUT_DIR != *[[:space:]:\'\"\$#]* ]] ||
		die "$OUT_DIR: make cannot work in a path with blanks, quotes, ':', '#' or '\$'" "use another --out"
	TREE_DIR=$OUT_DIR/linux
	BUILD_DIR=$OUT_DIR/build
	PERF=$OUT_DIR/perf
	BASE_DIR=$OUT_DIR/.base
	STATE_DIR=$OUT_DIR/.state
	SCRATCH_DIR=$OUT_DIR/.scratch
}

# A linux/ that this script did not make may be somebody's work, so do not touch it.
open_output()
{
	local entry

	if [[ ! -d $STATE_DIR ]]; then
		for entry in "$TREE_DIR" "$BUILD_DIR" "$PERF"; do
			[[ ! -e $entry ]] || die "$entry exists and was not made by this script" "move it away or use another --out"
		done
	fi
	mkdir -p -- "$STATE_DIR" || die "cannot create $OUT_DIR" "use another --out"
	take_lock "$STATE_DIR/lock" "$OUT_DIR"
}

clean_output()
{
	[[ $OPT_CLEAN = yes ]] || return 0
	rm -rf -- "$TREE_DIR" "$BUILD_DIR" "$PERF" "$OUT_DIR/bpf-stamp" "$BASE_DIR" "$SCRATCH_DIR" "$OUT_DIR"/*.part
	find "$STATE_DIR" -mindepth 1 -not -name lock -delete
}

print_inputs()
{
	local version=$SOURCE_VERSION

	[[ $version = "$PIN_VERSION" ]] || version="$version, a substitute for $TAG ($PIN_VERSION)"
	msg "tag       $TAG"
	msg "source    $SOURCE_FROM"
	msg "version   $version"
	msg "checksum  $SOURCE_ID"
	msg "patches   ${SERIES_FILE:-none}${SERIES_FILE:+ (${#SERIES_PATCHES[@]})}"
	msg "output    $OUT_DIR"
	msg "cache     $CACHE_DIR"
	msg "jobs      $JOBS"
}

prepare_base()
{
	[[ -n $SOURCE_PATH ]] || return 0
	if [[ -f $BASE_DIR/source ]] && grep -qxF "id $SOURCE_ID" "$BASE_DIR/source"; then
		return 0
	fi
	tree__check_edits
	tree__reset
	source__unpack "$BASE_DIR"
}

prepare_tree()
{
	tree__is_current && return
	tree__patch
	tree__check_edits
	tree__update
}

stop_after()
{
	[[ $OPT_STOP = "$1" ]] || return 0
	exit 0
}

OPT_SOURCE='' OPT_GIT='' OPT_MIRROR=${PBM_MIRROR:-} OPT_OUT='' OPT_STOP='' OPT_ARCH=''
OPT_PATCHES=yes OPT_SANITIZE=no OPT_CLEAN=no OPT_INSTALL=yes
JOBS=$(nproc)

parse_options "$@"
check_options
pin__load "$TAG"
resolve_paths
series__load_empty
[[ $OPT_PATCHES = no ]] || series__load "$TAG"
open_output
clean_output
log_to "$OUT_DIR/apply-and-build.log"
packages__require_build "$OPT_INSTALL" -P nocheck
[[ $OPT_SANITIZE = no ]] || packages__require "$OPT_INSTALL" libclang-rt-dev
arch__prepare_cross
source__find_or_fetch "$BASE_DIR"
series__check_standin "$SOURCE_VERSION"
print_inputs
prepare_base
stop_after source
prepare_tree
stop_after apply
build__is_current || build__perf
[[ $OPT_PATCHES = no ]] || arch__is_foreign || build__bpf_stamp
printf '%s\n' "$PERF"
"${CROSS_RUN[@]}" "$PERF" version
