#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build and run selftests/ and "perf test bpf-metadata", on this machine or in a guest. The script
# calls scripts/apply-and-build.sh, which builds perf if needed. For tests on this machine, it
# also builds the unpatched perf, because some tests compare the two. Run it from anywhere, as
# root: scripts/run-selftests.sh v6.16
#
# How it works. On a machine with several CPUs, the test files run in two lanes at the same time.
# One lane runs the files that set BESIDE=yes, which load no BPF programs, and do not count the
# programs of the machine. The main lane runs the others. In a lane, one file runs after another.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/packages.sh"
. "$SCRIPTS_DIR/lib/source.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/debian.sh"
. "$SCRIPTS_DIR/lib/guests.sh"
. "$SCRIPTS_DIR/lib/report.sh"

SELFTESTS_DIR=$REPO_DIR/selftests
PERF_TEST="perf test: bpf-metadata"
PERF_TEST_TIMEOUT=300
TEST_TIMEOUT=${PBM_TEST_TIMEOUT:-$(sed -n 's/^timeout=//p' "$SELFTESTS_DIR/settings")}
SCALE=${PBM_TIMEOUT_SCALE:-1}
# The unpatched perf of PEER_TAG writes PERF_RECORD_BPF_METADATA. The unpatched perf of OLD_TAG
# refuses files with such records.
PEER_TAG=$(pin__of_state peer)
OLD_TAG=$(pin__of_state old)

# Without --all, some tests are skipped with this reason, see all_only in test-lib.sh.
ALL_ONLY="only with --all"

TEST_PACKAGES=(
	# build
	make gcc libc6-dev clang libelf-dev zlib1g-dev
	# run: bpftool (to compare with), python3 (reads perf.data without perf's code), strace (counts
	# system calls), tmux (a terminal)
	bpftool python3 strace tmux util-linux
	# tools/bpf-pprof
	python3-protobuf
	# Kbuild.snippet; prepare() adds the oldest and the newest clang
	git cmake llvm "linux-headers-$(dpkg --print-architecture 2>/dev/null || echo amd64)"
	# other loaders, another compiler
	iproute2 bpftrace libbpf-dev golang-go golang-github-cilium-ebpf-dev gcc-bpf
)
# With --all: a reader of perf.data that shares no code with perf
ALL_PACKAGES=(hotspot)
# Newer versions of loaders, from Debian's backports
BACKPORTS=(bpftool iproute2 libbpf1 libbpf-dev)

print_usage()
{
	cat <<END
usage: scripts/run-selftests.sh [options] TAG

Runs the tests in selftests/ and "perf test bpf-metadata" with perf of the
kernel TAG and this repository's patches.
TAG is one of: $(pin__list_patched | paste -s -d ' ')

Tests:
  --all             also run the tests that only a release needs: long stress tests,
                    files with random changes, files of older and newer perfs (--all
                    builds these perfs if they are missing). Without --all, the output
                    lists these tests at the end. --filter and --vm include them, too
  --list            print the names of the tests and end
  -t, --filter ERE  run only tests whose name matches, as --list prints them
  --lacking         run only the tests that do not apply to TAG, see selftests/lacks. A
                    test that passes counts as a failure
  --perf PATH       test this perf instead of the one that is built here
  --sanitize[=KIND] test a perf with AddressSanitizer and UndefinedBehavior-
                    Sanitizer, or, if KIND is 'thread', with ThreadSanitizer;
                    reports of a sanitizer count as a failed test

In guests:
  --vm              run the tests in QEMU guests with the kernel of TAG, which is built
                    once (10 minutes on two idle CPUs) and kept in the cache; the
                    guests divide the tests among themselves
  --arch ARCH       guest's architecture: $(arch__list | paste -s -d ' ') (default: this
                    machine's). For another one, perf and the tests are cross-built.
                    Under TCG, an arm64 guest has a PMU
  --kernel IMAGE    boot this kernel; it must not need modules
  --accel ACCEL     kvm or tcg (default: KVM with the PMU of this machine if a
                    guest boots with it, else TCG)

Build and output:
  --out DIR         build perf in DIR, and the tests in DIR/selftests
                    (default: out/TAG, or out/TAG-ARCH for another architecture)
  --mirror DIR      passed on to apply-and-build.sh
  --jobs N          parallel jobs of the build (default: number of CPUs); with 1, no
                    two test files run at the same time
  --no-install      install nothing; if packages are missing, print the apt line and end
  --quiet           print only failed tests and the last line
  --expected-skips FILE
                    a skipped test fails unless FILE lists it. A line of FILE has two
                    extended regular expressions, separated by a tab, that match the
                    whole name and the whole reason. A line that begins with '#' is a
                    comment. With this option, --filter includes no tests of --all
  -h, --help        this text

Environment (selftests/README says more):
  PBM_UNPATCHED_PERF  perf of the same version without the patches; empty: none
                    (default: out/TAG-unpatched/perf, which is built if it is missing
                    and neither --vm nor --perf is given)
  PBM_PEER_PERF, PBM_OLD_PERF  an unpatched perf that writes metadata records, and one
                    that refuses files with them (default: out/$PEER_TAG-unpatched/perf,
                    out/$OLD_TAG-unpatched/perf; --all builds both)
  PBM_PERFS         NAME=PATH of perfs, separated by blanks; each of them reads the files
                    of all others (default: the built perfs of all tags in out/)
  PBM_BPFTOOL, PBM_BPF_STAMP  their paths (default: bpftool, out/TAG/bpf-stamp)
  PBM_TIMEOUT_SCALE multiplies time limits, divides workloads (default: 1; 10 under TCG)
  PBM_TEST_TIMEOUT  seconds that a file of tests may take (default: $TEST_TIMEOUT)
  PBM_VM_GUESTS, PBM_VM_CPUS, PBM_VM_MEMORY  number of guests, and the CPUs and the
                    memory of each guest (default: 2, 1, 2G)
  PBM_VM_BOOT, PBM_VM_TIMEOUT  seconds in which a guest must start (default: 5 with KVM,
                    120 with TCG), and in which it must end (default: 3600)
  PBM_CACHE         directory for downloads, and for kernels and packages of guests

Prints a line for each test, the ten slowest tests, and the tests that only --all
runs. The last line is "N passed, N failed, N skipped".
Exit status: 0 some passed and none failed, 1 a test failed or none passed, 2
could not run.
END
}

# Guests run this script with --guest.
parse_options()
{
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
		--guest:	OPT_GUEST
		--out:		OPT_OUT
		--mirror:	OPT_MIRROR
		--jobs:		JOBS
		--no-install	OPT_INSTALL	no
		--quiet		PBM_QUIET	1
		--expected-skips: OPT_EXPECTED
	END
}

check_vm_options()
{
	[[ $OPT_VM = yes || -z $OPT_ARCH$OPT_KERNEL$OPT_ACCEL ]] ||
		die_usage "--arch, --kernel and --accel are for --vm"
	[[ $OPT_SANITIZE =~ ^(no|address|thread)$ ]] ||
		die_usage "--sanitize=$OPT_SANITIZE: not 'address' or 'thread'"
	[[ $OPT_SANITIZE = no || $OPT_VM$OPT_PERF = no ]] ||
		die_usage "--sanitize excludes --vm and --perf"
	[[ $OPT_ACCEL =~ ^(|kvm|tcg)$ ]] || die_usage "--accel $OPT_ACCEL: not kvm or tcg"
	[[ -z $OPT_KERNEL || -f $OPT_KERNEL ]] || die "--kernel $OPT_KERNEL: no such file" "name an image"
	arch__load "$OPT_ARCH"
}

# The status of grep is 2 if the filter is not a regular expression.
check_options()
{
	local status=0 number

	pin__check_tag "$TAG"
	for number in "--jobs $JOBS" "PBM_TEST_TIMEOUT=$TEST_TIMEOUT" "PBM_TIMEOUT_SCALE=$SCALE" "PBM_VM_GUESTS=${PBM_VM_GUESTS:-2}"; do
		[[ $number =~ ^[^\ =]+[\ =][1-9][0-9]*$ ]] || die_usage "$number: not a positive number"
	done
	[[ -z $OPT_PERF || -x $OPT_PERF ]] || die "--perf $OPT_PERF: not a program" "name a perf on this machine"
	printf '' | grep -E -e "$OPT_FILTER" >/dev/null 2>&1 || status=$?
	((status < 2)) || die "--filter $OPT_FILTER: not an extended regular expression" "see --list for the names"
}

check_expected_skips()
{
	[[ -n $OPT_EXPECTED ]] || return 0
	[[ -r $OPT_EXPECTED ]] || die "--expected-skips $OPT_EXPECTED: cannot be read" "correct it or leave it out"
	awk -f "$SCRIPTS_DIR/lib/skips.awk" "$OPT_EXPECTED" >/dev/null ||
		die "--expected-skips $OPT_EXPECTED: not a list of tests and reasons" "see above, and --help"
	OPT_EXPECTED=$(realpath -- "$OPT_EXPECTED")
}

# Print NAME=PATH for each perf that was built, for all tags.
built_perfs()
{
	local tag name

	for tag in $(pin__list); do
		for name in "$tag" "$tag-unpatched"; do
			[[ ! -x $REPO_DIR/out/$name/perf ]] || printf '%s=%s ' "$name" "$REPO_DIR/out/$name/perf"
		done
	done
}

# Print the files of tests, as paths in selftests/. harness.sh is first, because it tests the tools
# of the other tests. perf test is next, because it takes longest in guests.
all_programs()
{
	printf '%s\n' tests/meta/harness.sh perf-test
	(cd -- "$SELFTESTS_DIR" && find tests -name '*.sh' -perm -u+x ! -path tests/meta/harness.sh | sort)
}

# With --lacking, set OPT_FILTER to the tests that do not apply to the tag.
select_lacking()
{
	[[ $OPT_LACKING = yes ]] || return 0
	[[ -z $OPT_FILTER && $OPT_VM = no ]] || die_usage "--lacking excludes --filter and --vm"
	OPT_FILTER=$(pin__print_lacks "$TAG" | cut -f 1 | paste -s -d '|')
	[[ -n $OPT_FILTER ]] || { msg "$LACKS_FILE: no test for $TAG"; exit 0; }
	OPT_FILTER="^($OPT_FILTER)\$"
}

# Set PROGRAMS to the selected files, and SELECTED to the names of their tests, one per line. Die if
# selftests/lacks names a test that does not exist.
check_selection()
{
	local program names test

	PROGRAMS=() SELECTED=''
	for program in $(all_programs); do
		if [[ $program != perf-test ]]; then
			names=$(PBM_FILTER=$OPT_FILTER PBM_LIST=1 "$SELFTESTS_DIR/$program")
		else
			names=$(grep -E -e "$OPT_FILTER" <<<"$PERF_TEST" || :)
		fi
		[[ -n $names ]] || continue
		PROGRAMS+=("$program")
		SELECTED+=${SELECTED:+$'\n'}$names
	done
	[[ -n $OPT_FILTER ]] || while IFS=$'\t' read -r test _; do
		grep -q -x -E -e "$test" <<<"$SELECTED" ||
			die "$LACKS_FILE lists '$test' for $TAG, but no test has this name" "see --list for the names"
	done < <(pin__print_lacks "$TAG")
	[[ -n $SELECTED ]] || die "--filter $OPT_FILTER: no test matches" "see --list for the names"
	[[ $OPT_LIST = no ]] || { printf '%s\n' "$SELECTED"; exit 0; }
}

resolve_paths()
{
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$REPO_DIR/out/$TAG$ARCH_SUFFIX}")
	TREE_DIR=$OUT_DIR/linux
	BUILD_DIR=$OUT_DIR/build
	TESTS_DIR=$OUT_DIR/selftests
	VM_DIR=$TESTS_DIR/vm
	RESULTS_DIR=$TESTS_DIR
	[[ $OPT_VM = no ]] || RESULTS_DIR=$VM_DIR
	[[ -z $OPT_GUEST ]] || RESULTS_DIR=$OPT_GUEST
	LOGS_DIR=$RESULTS_DIR/logs
	RESULTS=$RESULTS_DIR/results
	TIMES=$RESULTS_DIR/times
	PERF=$OUT_DIR/perf
	STAMP=$OUT_DIR/bpf-stamp
	[[ -z $OPT_PERF ]] || PERF=$(realpath -- "$OPT_PERF")
}

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

# Build the sanitized perf outside of OUT_DIR, because tests link with the libbpf in OUT_DIR.
prepare_sanitized_perf()
{
	[[ $OPT_SANITIZE != no ]] || return 0
	PERF=$REPO_DIR/out/$TAG-sanitize/perf
	[[ $OPT_SANITIZE != thread ]] || PERF=$REPO_DIR/out/$TAG-sanitize-thread/perf
	STAMP=${PERF%/*}/bpf-stamp
	apply_and_build "--sanitize=$OPT_SANITIZE" --out "${PERF%/*}" "$TAG"
	# This changes only the time limits. PBM_TIMEOUT_SCALE would also make recordings smaller.
	SCALE=$((SCALE * 4))
}

# Children that got a signal may still run, and they hold the lock. So wait for the lock.
remove_run_dir()
{
	if [[ -n $MACHINE_FD ]]; then
		exec {MACHINE_FD}<&-
		flock --timeout 20 "$MACHINE_LOCK" true || :
	fi
	rm -rf -- "$RUN_DIR"
}

make_run_dir()
{
	RUN_DIR=$(mktemp -d "${TMPDIR:-/tmp}/pbm-selftests.XXXXXX")
	# Some tests record as user nobody, into a directory below this one.
	chmod 711 "$RUN_DIR"
	on_exit remove_run_dir
	mkdir -m 1777 -- "$RUN_DIR/sanitizers"
	mkdir -m 711 -- "$RUN_DIR/beside"
	: >"$RUN_DIR/lacks"
	LACKS=$RUN_DIR/lacks
	[[ $OPT_LACKING = yes ]] || pin__print_lacks "$TAG" >"$LACKS"
	# With this file, perf test ignores the user's configuration and copies nothing to ~/.debug.
	printf '[buildid]\n\tdir = %s\n' "$RUN_DIR/debug" >"$RUN_DIR/perfconfig"
}

# By default, AddressSanitizer ends perf when malloc() fails. In the tests, malloc() must return
# NULL instead. Reports of ThreadSanitizer must not change the exit status of perf.
load_sanitizer_options()
{
	local log=log_path=$RUN_DIR/sanitizers/report

	[[ $OPT_SANITIZE != no ]] || return 0
	export PBM_SANITIZED=1
	export ASAN_OPTIONS=allocator_may_return_null=1:$log
	export LSAN_OPTIONS=print_suppressions=0:suppressions=$SELFTESTS_DIR/sanitizers/lsan.supp
	export UBSAN_OPTIONS=print_stacktrace=1:$log:suppressions=$SELFTESTS_DIR/sanitizers/ubsan.supp
	export TSAN_OPTIONS=exitcode=0:$log:suppressions=$SELFTESTS_DIR/sanitizers/tsan.supp
}

# A report is a failure even if no test checks the status of perf.
report_sanitizers()
{
	local log=$LOGS_DIR/sanitizers.log kind='not ok' name="sanitizers: nothing to report"

	[[ $OPT_SANITIZE != no ]] || return 0
	find "$RUN_DIR/sanitizers" -type f -exec cat {} + >"$log"
	grep -E -o 'runtime error: .*|(ERROR|WARNING): [A-Za-z]*Sanitizer: .*' "$log" >"$RUN_DIR/reports" || kind=ok
	cat "$RUN_DIR/reports" >>"$log"
	printf '%s\t%s\t\n' "$kind" "$name" | report__add "$RESULTS" "$log"
}

build_selftests()
{
	take_lock "$TESTS_DIR/lock" "$TESTS_DIR"
	run_logged "build the tests" env -u MAKEFLAGS -u MAKELEVEL \
		make -C "$SELFTESTS_DIR" -j "$JOBS" "${CROSS_ARGS[@]}" \
		LINUX="$TREE_DIR" BUILD="$BUILD_DIR" OUTPUT="$TESTS_DIR/build" \
		BACKPORTS="$BACKPORTS_DIR" all ||
		die_logged "the tests do not build" "see the log"
	# kselftest's runner reads $BASE_DIR/bpf-metadata/settings.
	ln -sfn -- "$TREE_DIR/tools/testing/selftests/kselftest" "$TESTS_DIR/kselftest"
	ln -sfn -- "$SELFTESTS_DIR" "$TESTS_DIR/bpf-metadata"
	release_lock
}

print_inputs()
{
	local version="for $ARCH"

	arch__is_foreign || version=$("$PERF" version)
	msg "perf      $PERF ($version)"
	msg "unpatched ${PBM_UNPATCHED_PERF:-none}"
	msg "peer      ${PBM_PEER_PERF:-none}"
	msg "old       ${PBM_OLD_PERF:-none}"
	msg "bpftool   $("${PBM_BPFTOOL:-bpftool}" version | head -n 1)"
}

run_kselftest()
{
	# shellcheck disable=SC2016 # for the inner shell
	PBM_PERF=$PERF PBM_FILTER=$OPT_FILTER OUTPUT=$TESTS_DIR/build TMPDIR=$RUN_DIR \
		PBM_KEEP=${OPT_GUEST:+$RESULTS_DIR} kselftest_override_timeout=$((TEST_TIMEOUT * SCALE)) \
		PBM_UNPATCHED_PERF=${PBM_UNPATCHED_PERF:-} PBM_PEER_PERF=${PBM_PEER_PERF:-} \
		PBM_OLD_PERF=${PBM_OLD_PERF:-} BASE_DIR=$TESTS_DIR PBM_BPF_STAMP=${PBM_BPF_STAMP:-$STAMP} \
		PBM_LACKS=$LACKS PBM_TAG=$TAG PBM_TIMES=$TIMES PBM_ALL=$RUN_ALL PBM_PERFS=${PBM_PERFS-$(built_perfs)} \
		bash -c 'cd "$BASE_DIR/bpf-metadata" && . "$BASE_DIR/kselftest/runner.sh" && run_many "./$0"' "$1"
}

# A test that needs --all does not count as skipped, nor does a test in selftests/lacks.
leave_out()
{
	awk -F '\t' -v OFS='\t' -v reason="$ALL_ONLY" '
		$1 == "skip" && $3 == reason { $1 = "all" }
		$1 == "skip" && $3 ~ /^does not apply to / { $1 = "lacks" }
		{ print }'
}

# With --lacking, a failed test counts as passed, but a program that ends too early has failed.
run_program()
{
	local name=${1##*/} log expect=(cat)

	name=${name%.sh}
	log=$LOGS_DIR/$name.log
	[[ $OPT_LACKING = no ]] ||
		expect=(report__expect_failures "$OPT_FILTER" "passes although it is in selftests/lacks for $TAG")
	report__run "$log" run_kselftest "$1" || :
	awk -v program="$name" -f "$SELFTESTS_DIR/lib/ktap.awk" "$log" |
		leave_out | "${expect[@]}" | report__add "$RESULTS" "$log"
}

# Always use -vv, with which perf test prints the reasons for skips and failures: a failure might
# not happen again. perf finds its shell tests only if it runs in its source directory. The tests
# need a program named perf in the directory of the perf that was called.
run_perf_test()
{
	local log=$LOGS_DIR/perf-test.log status=0 start=${EPOCHREALTIME/./}

	mkdir -- "$RUN_DIR/bin"
	ln -s -- "$PERF" "$RUN_DIR/bin/perf"
	TMPDIR=$RUN_DIR PERF_CONFIG=$RUN_DIR/perfconfig report__run "$log" \
		env -C "$TREE_DIR/tools/perf" timeout "$((PERF_TEST_TIMEOUT * SCALE))" "$RUN_DIR/bin/perf" test -vv bpf-metadata || status=$?
	printf '%d\t%s\n' $(((${EPOCHREALTIME/./} - start) / 1000)) "$PERF_TEST" >>"$TIMES"
	awk -f "$SELFTESTS_DIR/lib/perf-test.awk" "$log" >"$RUN_DIR/results"
	if ((status)) && ! grep -q '^not ok' "$RUN_DIR/results"; then
		printf 'not ok\t%s\tended with status %d\n' "$PERF_TEST" "$status" >>"$RUN_DIR/results"
	fi
	report__add "$RESULTS" "$log" <"$RUN_DIR/results"
}

# --- here or in a guest -------------------------------------------------------

run_programs()
{
	local program

	for program; do
		if ! guests__take "$program"; then
			continue
		elif [[ $program = perf-test ]]; then
			run_perf_test
		else
			run_program "$program"
		fi
	done
}

# Start the lane of files with BESIDE=yes. It has its own RUN_DIR, so that the lanes do not mix
# output. The file LANE_ENDED says that all its files ran: bash forgets the status of a process when a
# later child gets its pid.
start_lane()
{
	LANE_ENDED=$RUN_DIR/beside/ended
	(
		trap - EXIT
		trap 'trap "" TERM; end_steps TERM; exit 143' INT TERM HUP
		RUN_DIR=$RUN_DIR/beside
		run_programs "$@"
		: >"$LANE_ENDED"
	) &
	LANE_PID=$!
	on_exit end_lane
}

end_lane()
{
	[[ ! -e $LANE_ENDED ]] || return 0
	kill "$LANE_PID" 2>/dev/null || :
	wait "$LANE_PID" 2>/dev/null || :
}

run_here()
{
	local program beside=() others=()

	make_run_dir
	load_sanitizer_options
	rm -f -- "$LOGS_DIR"/*.log
	tee "$TIMES" </dev/null >"$RESULTS"
	for program in "${PROGRAMS[@]}"; do
		if [[ $program != perf-test && -z $OPT_GUEST && $JOBS != 1 ]] &&
			grep -q '^BESIDE=yes$' "$SELFTESTS_DIR/$program"; then
			beside+=("$program")
		else
			others+=("$program")
		fi
	done
	((${#others[@]} == 0)) || take_machine_lock
	start_lane "${beside[@]}"
	run_programs "${others[@]}"
	wait "$LANE_PID" 2>/dev/null || :
	[[ -e $LANE_ENDED ]] || die "the tests that run beside others did not end" "see above"
	report_sanitizers
}

run_in_vm()
{
	guests__prepare
	guests__fill_queue "${PROGRAMS[@]}"
	print_inputs
	msg "kernel    $KERNEL_FROM"
	msg "guests    $VM_DIR/*/console.log, logs/"
	guests__run "$RESULTS"
	cat "$VM_DIR"/*/times >"$TIMES"
	guests__check "$RESULTS" "$SELECTED" "$HOST_PERF"
}

# print_names KIND TEXT: print TEXT, the number and the names of the results of this kind
print_names()
{
	awk -F '\t' -v kind="$1" -v text="$2" '
		$1 == kind { names = names (n++ ? "; " : "") $2 }
		END { if (n) print text ": " n ": " names }' "$RESULTS"
}

print_totals()
{
	if [[ ${PBM_QUIET:-0} != 1 ]]; then
		sort -r -n "$TIMES" | awk -F '\t' 'NR <= 10 { printf "slowest %6.1f s  %s\n", $1 / 1000, $2 }'
		print_names all "not run without --all"
		print_names lacks "not for $TAG"
	fi
	report__compare_skips "$RESULTS" "$OPT_EXPECTED" "$OPT_FILTER"
	report__print_totals "$RESULTS"
}

prepare()
{
	local clangs=() build=yes

	packages__update_lists "$OPT_INSTALL"
	mapfile -t clangs < <(packages__numbered clang | sed -n '1p; $p')
	TEST_PACKAGES+=("${clangs[@]}")
	[[ $OPT_ALL = no ]] || TEST_PACKAGES+=("${ALL_PACKAGES[@]}")
	packages__require "$OPT_INSTALL" "${TEST_PACKAGES[@]}"
	arch__prepare_cross
	check_bpftool
	# With --perf, the tests need only the tree and its libbpf, so an older build is enough.
	[[ -n $OPT_PERF && -f $BUILD_DIR/libbpf/libbpf.a ]] || apply_and_build --arch "$ARCH" --out "$OUT_DIR" "$TAG"
	[[ $OPT_VM$OPT_PERF = no ]] || build=no
	prepare_unpatched_perf PBM_UNPATCHED_PERF "$TAG" "$build"
	[[ $OPT_ALL = yes ]] || build=no
	prepare_unpatched_perf PBM_PEER_PERF "$PEER_TAG" "$build"
	prepare_unpatched_perf PBM_OLD_PERF "$OLD_TAG" "$build"
	prepare_sanitized_perf
	if arch__is_foreign; then
		# The perf of this host also reads a recording from such a guest.
		apply_and_build "$TAG"
		HOST_PERF=$REPO_DIR/out/$TAG/perf
	else
		debian__unpack_backports "${BACKPORTS[@]}"
	fi
	build_selftests
}

OPT_ALL=no OPT_LIST=no OPT_LACKING=no OPT_FILTER='' OPT_PERF='' OPT_OUT='' OPT_MIRROR=${PBM_MIRROR:-}
OPT_SANITIZE=no OPT_INSTALL=yes OPT_EXPECTED=''
BACKPORTS_DIR='' HOST_PERF=''
OPT_VM=no OPT_ARCH='' OPT_KERNEL='' OPT_ACCEL='' OPT_GUEST=''
JOBS=$(nproc)
# Debian's bpftool is in /usr/sbin. After su, PATH may lack this directory.
PATH=$PATH:/usr/sbin:/sbin

parse_options "$@"
check_options
check_vm_options
select_lacking
check_expected_skips
# A filter names tests, so do not leave out tests that only --all runs. But CI has a list of skips.
RUN_ALL=0
[[ $OPT_ALL$OPT_VM$OPT_GUEST = nono && (-z $OPT_FILTER || -n $OPT_EXPECTED) ]] || RUN_ALL=1
resolve_paths
[[ -n $OPT_GUEST ]] || check_selection
check_root
mkdir -p -- "$LOGS_DIR"
[[ -n $OPT_GUEST ]] || take_lock "$RESULTS_DIR.lock" "$RESULTS_DIR"
log_to "$RESULTS_DIR.log"
case $OPT_VM:$OPT_GUEST in
no:)	prepare
	print_inputs
	msg "kernel    $(uname -r)"
	msg "logs      $LOGS_DIR"
	run_here
	print_totals ;;
yes:)	prepare
	run_in_vm
	print_totals ;;
*)	mapfile -t PROGRAMS < <(all_programs)
	run_here ;;
esac
