#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: scripts/run-selftests.sh [options] TAG
#
# Runs the tests in selftests/ with perf of the kernel TAG and this repository's patches, as
# root. It builds perf if needed, and for tests on this machine also the unpatched perf,
# because some tests compare the two. TAG is a tag in scripts/pins that has patches.
#
#   --all             also run the tests that only a release needs: long stress tests,
#                     files with random changes, files of older and newer perfs (--all
#                     builds these perfs if they are missing). Without --all, the output
#                     lists these tests at the end. --filter and --vm include them, too
#   --list            print the names of the tests and end
#   -t, --filter ERE  run only tests whose name matches, as --list prints them
#   --lacking         run only the tests that do not apply to TAG, see selftests/lacks. A
#                     test that passes counts as a failure
#   --perf PATH       test this perf instead of the one that is built here
#   --sanitize[=KIND] test a perf with AddressSanitizer and UndefinedBehaviorSanitizer, or,
#                     if KIND is 'thread', with ThreadSanitizer; reports of a sanitizer
#                     count as a failed test
#   --expected-skips FILE
#                     a skipped test fails unless FILE lists it, see selftests/README and
#                     .ci/skips-here. With this option, --filter includes no tests of --all
#   --vm              run the tests in a QEMU guest with the kernel of TAG, which is built
#                     once (10 minutes on two idle CPUs) and kept in the cache
#   --arch ARCH       guest's architecture: x86_64 or arm64 (default: this machine's). For
#                     another one, perf and the tests are cross-built
#   --kernel IMAGE    boot this kernel; it must not need modules
#   --accel ACCEL     tcg, which works everywhere (default), or kvm, which is ten times
#                     faster, and gives the guest the PMU of this machine
#   --mirror DIR      passed on to apply-and-build.sh
#   --jobs N          parallel jobs of the build (default: number of CPUs)
#   --no-install      install nothing; if packages are missing, print the apt line and end
#   -h, --help        this text
#
# Environment (selftests/README says more):
#   PBM_UNPATCHED_PERF, PBM_PEER_PERF, PBM_OLD_PERF  perfs without the patches: of the
#                     same version, one that writes metadata records, one that refuses
#                     files with them (default: out/TAG-unpatched/perf of TAG and of the
#                     tags with the states peer and old); empty: none
#   PBM_PERFS         NAME=PATH of perfs, separated by blanks; each of them reads the files
#                     of all others (default: the built perfs of all tags in out/)
#   PBM_BPFTOOL       its path (default: bpftool)
#   PBM_TIMEOUT_SCALE multiplies time limits, divides workloads (default: 1; 10 under TCG)
#   PBM_VM_CPUS, PBM_VM_MEMORY  CPUs and memory of the guest (1, 2G)
#   PBM_VM_BOOT, PBM_VM_TIMEOUT  seconds in which it must start and end (120, 7200)
#
# Prints a line for each test, the ten slowest tests, and the tests that only --all runs. The
# last line is "N passed, N failed, N skipped".
#
# Exit status: 0 some passed and none failed, 1 a test failed or none passed, 2 could not run

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/guests.sh"

SELFTESTS_DIR=$REPO_DIR/selftests
LACKS_FILE=${PBM_LACKS_FILE:-$SELFTESTS_DIR/lacks}
TEST_TIMEOUT=$(sed -n 's/^timeout=//p' "$SELFTESTS_DIR/settings")
# The unpatched perf of PEER_TAG writes PERF_RECORD_BPF_METADATA. The unpatched perf of OLD_TAG
# refuses files with such records.
PEER_TAG=$(pin__of_state peer)
OLD_TAG=$(pin__of_state old)

# Newer versions of loaders, from Debian's backports
BACKPORTS=(bpftool iproute2 libbpf1 libbpf-dev)

print_usage()
{
	sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
}

check_options()
{
	pin__check_tag "$TAG"
	[[ -z $OPT_PERF || -x $OPT_PERF ]] || die "--perf $OPT_PERF: not a program" "name a perf on this machine"
	[[ '' =~ ^|$OPT_FILTER ]] ||
		die "--filter $OPT_FILTER: not an extended regular expression" "see --list for the names"
	[[ -z $OPT_EXPECTED || -r $OPT_EXPECTED ]] ||
		die "--expected-skips $OPT_EXPECTED: cannot be read" "correct it or leave it out"
	[[ $OPT_VM = yes || -z $OPT_ARCH$OPT_KERNEL && $OPT_ACCEL = tcg ]] ||
		die_usage "--arch, --kernel and --accel are for --vm"
	[[ $OPT_SANITIZE =~ ^(no|address|thread)$ ]] ||
		die_usage "--sanitize=$OPT_SANITIZE: not 'address' or 'thread'"
	[[ $OPT_SANITIZE = no || $OPT_VM$OPT_PERF = no ]] || die_usage "--sanitize excludes --vm and --perf"
	[[ $OPT_LACKING = no || $OPT_FILTER$OPT_VM$OPT_SANITIZE = nono ]] ||
		die_usage "--lacking excludes --filter, --vm and --sanitize"
	[[ $OPT_ACCEL =~ ^(kvm|tcg)$ ]] || die_usage "--accel $OPT_ACCEL: not kvm or tcg"
	[[ -z $OPT_KERNEL || -f $OPT_KERNEL ]] || die "--kernel $OPT_KERNEL: no such file" "name an image"
	arch__load "$OPT_ARCH"
}

# Set PROGRAMS to the files with selected tests, SELECTED to the names of these tests, one per line, and
# LACKS to the tests that TAG lacks, with a reason. Die if selftests/lacks names a test that does not exist.
select_tests()
{
	local lacks program names test

	LACKS=$(awk -F '\t' -v tag="$TAG" '!/^#/ && index("," $1 ",", "," tag ",") { print $2 "\t" $3 }' "$LACKS_FILE")
	lacks=$(cut -f 1 <<<"$LACKS")
	if [[ $OPT_LACKING = yes ]]; then
		[[ -n $lacks ]] || { msg "$LACKS_FILE: no test for $TAG"; exit 0; }
		OPT_FILTER="^(${lacks//$'\n'/|})\$"
	fi
	PROGRAMS=() SELECTED=''
	for program in "$SELFTESTS_DIR"/tests/*/*.sh; do
		names=$(PBM_FILTER=$OPT_FILTER PBM_LIST=1 "$program")
		[[ -n $names ]] || continue
		PROGRAMS+=("$program")
		SELECTED+=${SELECTED:+$'\n'}$names
	done
	[[ -n $SELECTED ]] || die "--filter $OPT_FILTER: no test matches" "see --list for the names"
	[[ -n $OPT_FILTER || -z $lacks ]] || while read -r test; do
		grep -q -x -E -e "$test" <<<"$SELECTED" ||
			die "$LACKS_FILE lists '$test' for $TAG, but no test has this name" "see --list for the names"
	done <<<"$lacks"
	[[ $OPT_LIST = no ]] || { printf '%s\n' "$SELECTED"; exit 0; }
}

# A perf with sanitizers is outside of OUT_DIR, because the tests link with the libbpf in OUT_DIR.
resolve_paths()
{
	OUT_DIR=$REPO_DIR/out/$TAG$ARCH_SUFFIX
	TESTS_DIR=$OUT_DIR/selftests
	RESULTS_DIR=$TESTS_DIR
	[[ $OPT_VM = no ]] || RESULTS_DIR=$TESTS_DIR/vm
	PERF=$OUT_DIR/perf
	[[ $OPT_SANITIZE != address ]] || PERF=$OUT_DIR-sanitize/perf
	[[ $OPT_SANITIZE != thread ]] || PERF=$OUT_DIR-sanitize-thread/perf
	export PBM_BPF_STAMP=${PERF%/*}/bpf-stamp
	[[ -z $OPT_PERF ]] || PERF=$(realpath -- "$OPT_PERF")
}

# --- build --------------------------------------------------------------------

# apply_and_build OPTION... TAG
apply_and_build()
{
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" "$@" ||
		die "perf was not built" "see above; then run this again"
}

# prepare_unpatched_perf VARIABLE TAG BUILD: check the perf that VARIABLE names. By default, this is the
# unpatched perf of TAG. If that perf is missing and BUILD is yes, build it.
prepare_unpatched_perf()
{
	local -n perf=$1
	local out=$REPO_DIR/out/$2$ARCH_SUFFIX-unpatched

	if [[ -z ${perf+set} ]]; then
		[[ -x $out/perf || $3 = no ]] || apply_and_build --no-patches "$2"
		[[ ! -x $out/perf ]] || perf=$out/perf
	fi
	[[ -z ${perf:-} || -x $perf ]] || die "$1=$perf: not a program" "correct or unset it"
}

build_selftests()
{
	run_logged "build the tests" make -C "$SELFTESTS_DIR" -j "$JOBS" "${CROSS_ARGS[@]}" \
		LINUX="$OUT_DIR/linux" BUILD="$OUT_DIR/build" OUTPUT="$TESTS_DIR/build" BACKPORTS="$BACKPORTS_DIR" all ||
		die_logged "the tests do not build" "see the log"
}

prepare()
{
	local build=yes

	packages__require_build "$OPT_INSTALL"
	# hotspot reads perf.data and shares no code with perf.
	[[ $OPT_ALL = no ]] || packages__require "$OPT_INSTALL" hotspot
	# The perf of this host also reads a recording from a guest of another architecture. Build it before the
	# settings of a cross build are there.
	! arch__is_foreign || apply_and_build "$TAG"
	arch__prepare_cross
	check_bpftool
	apply_and_build --arch "$ARCH" "$TAG"
	[[ $OPT_VM$OPT_PERF = no ]] || build=no
	prepare_unpatched_perf PBM_UNPATCHED_PERF "$TAG" "$build"
	[[ $OPT_ALL = yes ]] || build=no
	prepare_unpatched_perf PBM_PEER_PERF "$PEER_TAG" "$build"
	prepare_unpatched_perf PBM_OLD_PERF "$OLD_TAG" "$build"
	[[ $OPT_SANITIZE = no ]] || apply_and_build "--sanitize=$OPT_SANITIZE" "$TAG"
	arch__is_foreign || debian__unpack_backports "${BACKPORTS[@]}"
	build_selftests
	[[ $OPT_VM = no ]] || guest__prepare
}

print_inputs()
{
	local version="for $ARCH"

	arch__is_foreign || version=$("$PERF" version)
	msg "$(printf '%-9s %s\n' perf "$PERF ($version)" unpatched "${PBM_UNPATCHED_PERF:-none}" \
		peer "${PBM_PEER_PERF:-none}" old "${PBM_OLD_PERF:-none}" \
		bpftool "$("${PBM_BPFTOOL:-bpftool}" version | head -n 1)" kernel "$KERNEL_FROM" results "$RESULTS_DIR")"
}

# --- run ----------------------------------------------------------------------

# Print NAME=PATH for each perf that was built, for all tags.
built_perfs()
{
	local name

	for name in $(pin__list | sed 'p; s/$/-unpatched/'); do
		[[ ! -x $REPO_DIR/out/$name/perf ]] || printf '%s=%s ' "$name" "$REPO_DIR/out/$name/perf"
	done
}

# Export what the tests read, and set RUN_TESTS to the command that runs them.
prepare_run()
{
	export OUTPUT=$TESTS_DIR/build PBM_UNPATCHED_PERF PBM_PEER_PERF PBM_OLD_PERF
	export PBM_PERF=$PERF PBM_TAG=$TAG PBM_FILTER=$OPT_FILTER PBM_ALL=0 PBM_LACKS=$RESULTS_DIR/lacks
	export PBM_PERFS=${PBM_PERFS-$(built_perfs)}
	# PBM_TIMEOUT_SCALE would also make recordings smaller.
	[[ $OPT_SANITIZE = no ]] || TEST_TIMEOUT=$((TEST_TIMEOUT * 4))
	RUN_TESTS=("$SCRIPTS_DIR/lib/run_tests.py" --timeout "$TEST_TIMEOUT")
	# A guest may not see the file itself.
	[[ -z $OPT_EXPECTED ]] || cp -- "$OPT_EXPECTED" "$RESULTS_DIR"
	[[ -z $OPT_EXPECTED ]] || RUN_TESTS+=(--expected-skips "$RESULTS_DIR/${OPT_EXPECTED##*/}")
	# A filter names tests, so do not leave out tests that only --all runs. But CI has a list of skips.
	[[ $OPT_ALL$OPT_VM = nono && (-z $OPT_FILTER || -n $OPT_EXPECTED) ]] || PBM_ALL=1
	printf '%s\n' "$LACKS" >"$PBM_LACKS"
	[[ $OPT_LACKING = no ]] || RUN_TESTS+=(--lacking) PBM_LACKS=
}

# run_tests OPTION... [FILE...]: print the results and the totals, of afterwards.sh, too
run_tests()
{
	local status=0 last=()

	[[ -z ${PBM_AFTERWARDS:-} ]] || last=(--last "$SCRIPTS_DIR/lib/afterwards.sh")
	run_step "${RUN_TESTS[@]}" "${last[@]}" "$@" || status=$?
	((status != 1)) || end_failed
	((status == 0)) || die "the tests could not run" "see above"
}

# By default, AddressSanitizer ends perf when malloc() fails. In the tests, malloc() must return NULL
# instead. Reports of ThreadSanitizer must not change the exit status of perf.
export_sanitizer_options()
{
	local log=log_path=$TMPDIR/sanitizers/report

	mkdir -m 1777 -- "$TMPDIR/sanitizers"
	export PBM_SANITIZED=1 PBM_SANITIZER_REPORTS=$TMPDIR/sanitizers PBM_AFTERWARDS=sanitizers
	export ASAN_OPTIONS=allocator_may_return_null=1:$log
	export LSAN_OPTIONS=print_suppressions=0:suppressions=$SELFTESTS_DIR/sanitizers/lsan.supp
	export UBSAN_OPTIONS=print_stacktrace=1:$log:suppressions=$SELFTESTS_DIR/sanitizers/ubsan.supp
	export TSAN_OPTIONS=exitcode=0:$log:suppressions=$SELFTESTS_DIR/sanitizers/tsan.supp
}

run_here()
{
	TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/pbm-selftests.XXXXXX")
	export TMPDIR
	on_exit rm -rf -- "$TMPDIR"
	# Some tests record as user nobody, into a directory below this one.
	chmod 711 "$TMPDIR"
	[[ $OPT_SANITIZE = no ]] || export_sanitizer_options
	[[ $(grep -l '^BESIDE=yes$' "${PROGRAMS[@]}" | wc -l) = "${#PROGRAMS[@]}" ]] || take_machine_lock
	run_tests --dir "$RESULTS_DIR" "${PROGRAMS[@]}"
}

run_in_guest()
{
	guest__run "$RESULTS_DIR" "${RUN_TESTS[@]}" --dir . --no-totals "${PROGRAMS[@]}"
	export PBM_GUEST=$RESULTS_DIR PBM_AFTERWARDS=kernel
	if arch__is_foreign && grep -q -x 'hardware: samples of cycles' <<<"$SELECTED"; then
		export PBM_HOST_PERF=$REPO_DIR/out/$TAG/perf PBM_AFTERWARDS='kernel|recording'
	fi
	run_tests --dir "$RESULTS_DIR/afterwards" --load "$RESULTS_DIR/results"
}

OPT_ALL=no OPT_LIST=no OPT_LACKING=no OPT_FILTER='' OPT_PERF='' OPT_MIRROR=${PBM_MIRROR:-}
OPT_SANITIZE=no OPT_INSTALL=yes OPT_EXPECTED=''
OPT_VM=no OPT_ARCH='' OPT_KERNEL='' OPT_ACCEL=tcg
BACKPORTS_DIR='' KERNEL_FROM=$(uname -r) JOBS=$(nproc)
# Debian's bpftool is in /usr/sbin. After su, PATH may lack this directory.
PATH=$PATH:/usr/sbin:/sbin

options__parse "$@" <<-'END'
	--all		OPT_ALL		yes
	--list		OPT_LIST	yes
	-t:		OPT_FILTER
	--filter:	OPT_FILTER
	--lacking	OPT_LACKING	yes
	--perf:		OPT_PERF
	--sanitize::	OPT_SANITIZE	address
	--vm		OPT_VM		yes
	--arch:		OPT_ARCH
	--kernel:	OPT_KERNEL
	--accel:	OPT_ACCEL
	--mirror:	OPT_MIRROR
	--jobs:		JOBS
	--no-install	OPT_INSTALL	no
	--expected-skips: OPT_EXPECTED
END
check_options
select_tests
resolve_paths
check_root
mkdir -p -- "$RESULTS_DIR"
take_lock "$TESTS_DIR.lock" "$TESTS_DIR"
log_to "$RESULTS_DIR.log"
prepare
prepare_run
print_inputs
if [[ $OPT_VM = yes ]]; then
	run_in_guest
else
	run_here
fi
