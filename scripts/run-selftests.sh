#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build and run selftests/ and "perf test bpf-metadata" on this machine, with
# the perf that scripts/apply-and-build.sh builds (and builds it, if need be).
# Run it from anywhere, as root:
#
#	scripts/run-selftests.sh v6.16
#	scripts/run-selftests.sh --filter 'values:' v6.16
#
# The steps are the last lines of this file, in order.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=lib/common.sh
. "$SCRIPTS_DIR/lib/common.sh"
# shellcheck source=lib/pin.sh
. "$SCRIPTS_DIR/lib/pin.sh"
# shellcheck source=lib/packages.sh
. "$SCRIPTS_DIR/lib/packages.sh"

SELFTESTS_DIR=$REPO_DIR/selftests
PERF_TEST="perf test: bpf-metadata"
PERF_TEST_TIMEOUT=300

# BPF programs belong to the machine, not to a checkout: so does this lock.
MACHINE_LOCK=/sys/kernel

TEST_PACKAGES=(
	# build
	make gcc libc6-dev clang libelf-dev zlib1g-dev
	# run: the oracle, the second reader, the counter of system calls
	bpftool python3 strace util-linux
	# Kbuild.snippet: its users' tools, another clang, Kbuild
	git clang-19 "linux-headers-$(dpkg --print-architecture 2>/dev/null || echo amd64)"
	# other loaders
	iproute2 bpftrace
)

print_usage()
{
	cat <<END
usage: scripts/run-selftests.sh [options] TAG

Runs the tests in selftests/ and "perf test bpf-metadata" with perf of the
pinned kernel TAG and this repository's patches.
TAG is one of: $(pin__list | paste -s -d ' ')

Tests:
  --list            print the names of the tests and end
  -t, --filter ERE  run only tests whose name matches, as --list prints them
  --perf PATH       test this perf instead of the one that is built here

Build and output:
  --out DIR         where perf is built, and the tests in its selftests/
                    (default: out/TAG)
  --mirror DIR      passed on to apply-and-build.sh
  --jobs N          parallel jobs of the build (default: number of CPUs)
  --no-install      install nothing; refuse and print the apt line
  --quiet           only failed tests and the last line
  --verbose         the whole output of every test
  -h, --help        this text

Environment:
  PBM_UNPATCHED_PERF  perf of the same version without the patches, for tests that
                    compare with it (default: out/TAG-unpatched/perf, which
                    apply-and-build.sh --no-patches TAG builds)
  PBM_BPFTOOL       the bpftool to compare with (default: bpftool)

Prints a line for each test; the last line is "N passed, N failed, N skipped".
Exit status: 0 all passed or skipped, 1 a test failed or nothing ran, 2 could
not run.
END
}

parse_options()
{
	local parsed

	parsed=$(getopt --name "$PROGRAM" --options t:h --longoptions \
		list,filter:,perf:,out:,mirror:,jobs:,no-install,quiet,verbose,help -- "$@") ||
		die_usage "wrong options"
	eval set -- "$parsed"
	while [[ $1 != -- ]]; do
		case $1 in
		--list)		OPT_LIST=yes ;;
		-t|--filter)	OPT_FILTER=$2; shift ;;
		--perf)		OPT_PERF=$2; shift ;;
		--out)		OPT_OUT=$2; shift ;;
		--mirror)	OPT_MIRROR=$2; shift ;;
		--jobs)		JOBS=$2; shift ;;
		--no-install)	OPT_INSTALL=no ;;
		--quiet)	PBM_QUIET=1 ;;
		--verbose)	OPT_VERBOSE=yes ;;
		-h|--help)	print_usage; exit 0 ;;
		esac
		shift
	done
	shift
	[[ $# -eq 1 ]] || die_usage "one TAG is needed, $# given"
	TAG=$1
}

# grep has status 2 for what is no regular expression.
check_options()
{
	local status=0

	pin__check_tag "$TAG"
	[[ $JOBS =~ ^[1-9][0-9]*$ ]] || die_usage "--jobs $JOBS: not a number from 1 up"
	[[ $OPT_VERBOSE = no || ${PBM_QUIET:-0} != 1 ]] || die_usage "--quiet and --verbose exclude each other"
	[[ -z $OPT_PERF || -x $OPT_PERF ]] || die "--perf $OPT_PERF: not a program" "name a perf on this machine"
	[[ -z $OPT_MIRROR || -d $OPT_MIRROR ]] || die "--mirror $OPT_MIRROR: no such directory" "correct it or leave it out"
	printf '' | grep -E -e "$OPT_FILTER" >/dev/null 2>&1 || status=$?
	((status < 2)) || die "--filter $OPT_FILTER: not an extended regular expression" "see --list for the names"
}

check_unpatched()
{
	local built=$REPO_DIR/out/$TAG-unpatched/perf

	if [[ -z ${PBM_UNPATCHED_PERF:-} && -x $built ]]; then
		PBM_UNPATCHED_PERF=$built
	fi
	[[ -z ${PBM_UNPATCHED_PERF:-} || -x $PBM_UNPATCHED_PERF ]] ||
		die "PBM_UNPATCHED_PERF=$PBM_UNPATCHED_PERF: not a program" "correct or unset it"
}

test_programs()
{
	find "$SELFTESTS_DIR" -maxdepth 1 -name '*.sh' -perm -u+x -printf '%f\n' | sort
}

list_program()
{
	PBM_FILTER=$OPT_FILTER PBM_LIST=1 "$SELFTESTS_DIR/$1"
}

list_perf_test()
{
	[[ ! $PERF_TEST =~ $OPT_FILTER ]] || printf '%s\n' "$PERF_TEST"
}

list_all()
{
	local program

	for program in $(test_programs); do
		list_program "$program"
	done
	list_perf_test
}

check_selection()
{
	SELECTED=$(list_all)
	[[ -n $SELECTED ]] || die "--filter $OPT_FILTER: no test has such a name" "see --list for the names"
	[[ $OPT_LIST = no ]] || { printf '%s\n' "$SELECTED"; exit 0; }
}

resolve_paths()
{
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$REPO_DIR/out/$TAG}")
	TREE_DIR=$OUT_DIR/linux
	BUILD_DIR=$OUT_DIR/build
	TESTS_DIR=$OUT_DIR/selftests
	LOGS_DIR=$TESTS_DIR/logs
	RESULTS=$TESTS_DIR/results
	PERF=$OUT_DIR/perf
	[[ -z $OPT_PERF ]] || PERF=$(realpath -- "$OPT_PERF")
}

check_root()
{
	((EUID == 0)) || die "only root can load BPF programs and record them" "run it as root"
}

# After the installation: it may just have come.
check_bpftool()
{
	command -v -- "${PBM_BPFTOOL:-bpftool}" >/dev/null ||
		die "${PBM_BPFTOOL:-bpftool}: not a program" "install bpftool, or correct PBM_BPFTOOL"
}

# With a perf from elsewhere the tree and its libbpf do, however old.
prepare_perf()
{
	local args=(--jobs "$JOBS" --out "$OUT_DIR")

	[[ -z $OPT_PERF || ! -f $BUILD_DIR/libbpf/libbpf.a ]] || return 0
	[[ -z $OPT_MIRROR ]] || args+=(--mirror "$OPT_MIRROR")
	[[ $OPT_INSTALL = yes ]] || args+=(--no-install)
	[[ ${PBM_QUIET:-0} != 1 ]] || args+=(--quiet)
	"$SCRIPTS_DIR/apply-and-build.sh" "${args[@]}" "$TAG" ||
		die "there is no perf to test" "see above; then run this again"
}

open_output()
{
	mkdir -p -- "$LOGS_DIR" || die "cannot create $LOGS_DIR" "use another --out"
	take_lock "$TESTS_DIR/lock" "$TESTS_DIR"
}

# Inherited by every test, and so held until the last of them has ended.
take_machine_lock()
{
	exec {MACHINE_FD}<"$MACHINE_LOCK"
	flock --nonblock "$MACHINE_FD" && return
	msg "waiting: another run of these tests on this machine"
	run_waiting flock "$MACHINE_FD"
}

# Children that were told to end may still be at it: they hold the lock.
remove_run_dir()
{
	exec {MACHINE_FD}<&-
	flock --timeout 20 "$MACHINE_LOCK" true || :
	rm -rf -- "$RUN_DIR"
}

make_run_dir()
{
	RUN_DIR=$(mktemp -d "${TMPDIR:-/tmp}/pbm-selftests.XXXXXX")
	# One test records as nobody, into a directory below.
	chmod 711 "$RUN_DIR"
	on_exit remove_run_dir
	# For perf test: nothing of the user's, and no copies in ~/.debug.
	printf '[buildid]\n\tdir = %s\n' "$RUN_DIR/debug" >"$RUN_DIR/perfconfig"
	rm -f -- "$LOGS_DIR"/*.log
	: >"$RESULTS"
}

build_selftests()
{
	run_logged "build the tests" env -u MAKEFLAGS -u MAKELEVEL \
		make -C "$SELFTESTS_DIR" -j "$JOBS" \
		LINUX="$TREE_DIR" BUILD="$BUILD_DIR" OUTPUT="$TESTS_DIR/build" all ||
		die_logged "the tests do not build" "see the log"
	# The runner looks for settings below its own directory.
	ln -sfn -- "$TREE_DIR/tools/testing/selftests/kselftest" "$TESTS_DIR/kselftest"
	ln -sfn -- "$SELFTESTS_DIR" "$TESTS_DIR/bpf-metadata"
}

print_inputs()
{
	msg "perf      $PERF ($("$PERF" version))"
	msg "unpatched ${PBM_UNPATCHED_PERF:-none}"
	msg "bpftool   $("${PBM_BPFTOOL:-bpftool}" version | head -n 1)"
	msg "kernel    $(uname -r)"
	msg "logs      $LOGS_DIR"
}

# As a group of its own, which common.sh ends on a signal.
run_step()
{
	local log=$1 status=0

	shift
	set -m
	# The runner opens its standard output again, so everybody has to append.
	"$@" >>"$log" 2>&1 </dev/null &
	STEP_PID=$!
	set +m
	wait "$STEP_PID" || status=$?
	STEP_PID=
	return "$status"
}

run_kselftest()
{
	# shellcheck disable=SC2016 # for the inner shell
	PBM_PERF=$PERF PBM_FILTER=$OPT_FILTER OUTPUT=$TESTS_DIR/build TMPDIR=$RUN_DIR \
		PBM_UNPATCHED_PERF=${PBM_UNPATCHED_PERF:-} BASE_DIR=$TESTS_DIR \
		bash -c 'cd "$BASE_DIR/bpf-metadata" && . "$BASE_DIR/kselftest/runner.sh" && run_many "./$0"' "$1"
}

run_program()
{
	local program=$1
	local log=$LOGS_DIR/${program%.sh}.log

	[[ -n $(list_program "$program") ]] || return 0
	run_step "$log" run_kselftest "$program" || :
	awk -v program="${program%.sh}" -f "$SELFTESTS_DIR/ktap.awk" "$log" >"$RUN_DIR/results"
	report "$log"
}

# Verbose, because a second run for the log's sake may not fail again, and for
# the reasons of skips. perf finds its shell tests from its source directory, and
# they find perf under that name beside the program that was called.
run_perf_test()
{
	local log=$LOGS_DIR/perf-test.log status=0

	[[ -n $(list_perf_test) ]] || return 0
	mkdir -- "$RUN_DIR/bin"
	ln -s -- "$PERF" "$RUN_DIR/bin/perf"
	cd -- "$TREE_DIR/tools/perf"
	TMPDIR=$RUN_DIR PERF_CONFIG=$RUN_DIR/perfconfig run_step "$log" \
		timeout "$PERF_TEST_TIMEOUT" "$RUN_DIR/bin/perf" test -vv bpf-metadata || status=$?
	cd -- "$REPO_DIR"
	awk -f "$SELFTESTS_DIR/perf-test.awk" "$log" >"$RUN_DIR/results"
	if ((status)) && ! grep -q '^not ok' "$RUN_DIR/results"; then
		printf 'not ok\t%s\tended with status %d\n' "$PERF_TEST" "$status" >>"$RUN_DIR/results"
	fi
	report "$log"
}

# The part of log $1 that belongs to the failed test $2: what it printed before
# its result. A program that broke down has no result: then it is the end.
print_failure()
{
	awk -v name="$2" '
		/^# (ok|1\.\.)[ 0-9]/ { n = 0; next }
		/^# not ok [0-9]/ {
			if (index($0, name)) { found = 1; exit }
			n = 0
			next
		}
		{ line[n++] = $0 }
		END { for (i = n > 20 ? n - 20 : 0; i < n; i++) print line[i] }
	' "$1" | sed 's/^# #\{0,1\} \{0,1\}//; s/^/  | /'
	printf '  log: %s\n' "$1"
}

report()
{
	local log=$1 kind name reason

	cat "$RUN_DIR/results" >>"$RESULTS"
	[[ $OPT_VERBOSE = no ]] || sed 's/^/  | /' "$log"
	while IFS=$'\t' read -r kind name reason; do
		case $kind in
		ok)	msg "ok      $name" ;;
		skip)	msg "skip    $name ($reason)" ;;
		*)	printf 'FAILED  %s%s\n' "$name" "${reason:+ ($reason)}"
			[[ $OPT_VERBOSE = yes ]] || print_failure "$log" "$name" ;;
		esac
	done <"$RUN_DIR/results"
}

count()
{
	grep -c "^$1"$'\t' "$RESULTS" || :
}

print_totals()
{
	local passed failed skipped

	passed=$(count ok) failed=$(count 'not ok') skipped=$(count skip)
	((passed + failed)) || warn "no test ran"
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	((passed && !failed)) || exit 1
}

OPT_LIST=no OPT_FILTER='' OPT_PERF='' OPT_OUT='' OPT_MIRROR=${PBM_MIRROR:-}
OPT_INSTALL=yes OPT_VERBOSE=no
JOBS=$(nproc)
# bpftool is there, and su keeps the user's PATH.
PATH=$PATH:/usr/sbin:/sbin

parse_options "$@"
check_options
check_unpatched
resolve_paths
check_selection
check_root
open_output
log_to "$TESTS_DIR/build.log"
packages__require "$OPT_INSTALL" "${TEST_PACKAGES[@]}"
check_bpftool
prepare_perf
build_selftests
print_inputs
take_machine_lock
make_run_dir
for program in $(test_programs); do
	run_program "$program"
done
run_perf_test
print_totals
