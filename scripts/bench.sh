#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Measure the cost of BPF metadata when perf record starts and ends. Run it as root on
# an idle machine:
#
#	scripts/bench.sh v6.16
#	scripts/bench.sh --shared --also out/v6.18.15-unpatched/perf v6.16
#
# selftests/tests/cost/ tests calls, bytes and instructions. This script adds the times,
# which hyperfine measures.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/packages.sh"

BENCH_PACKAGES=(make gcc libc6-dev clang libelf-dev zlib1g-dev hyperfine strace)
# This starts and ends perf record, and takes no sample.
RECORD=(record -N -q -e cpu-clock -c 100000000000)

print_usage()
{
	cat <<END
usage: scripts/bench.sh [options] TAG

Loads BPF programs with 3 functions and 4 keys each, and runs perf record: the unpatched
perf of TAG, and the patched one in the modes none, header and all. Both perfs are built
if they are missing.
TAG is one of: $(pin__list | paste -s -d ' ')

  --programs N      how many programs are loaded (default: 1000)
  --shared          20 programs share an object and its map (default: one object for
                    each program)
  --also PERF       measure this perf, too; can be repeated
  --runs N          how often each perf is timed, at least 3 (default: 7)
  --no-install      install nothing; refuse and print the apt line
  --quiet           print only errors and the table
  -h, --help        this text

Prints one line for each perf: bpf() calls per program, bytes of perf.data, user and
system time (mean), and wall time (median, least and most), in ms.
Exit status: 0 done, 2 could not run.
END
}

check_options()
{
	local perf

	pin__check_tag "$TAG"
	[[ $OPT_PROGRAMS =~ ^[1-9][0-9]{0,4}$ ]] || die_usage "--programs $OPT_PROGRAMS: not a number from 1 to 99999"
	[[ $OPT_RUNS =~ ^([3-9]|[1-9][0-9]{1,3})$ ]] || die_usage "--runs $OPT_RUNS: not a number from 3 to 9999"
	for perf in "${ALSO[@]}"; do
		[[ -f $perf && -x $perf ]] || die "--also $perf: not a program" "name a perf"
	done
}

# The lock is the one of run-selftests.sh, which builds the tests in the same directory.
build_programs()
{
	local dir=$REPO_DIR/out/$TAG

	mkdir -p -- "$dir/selftests"
	take_lock "$dir/selftests/lock" "$dir/selftests"
	log_to "$dir/bench.log"
	run_logged "build the programs" env -u MAKEFLAGS -u MAKELEVEL \
		make -C "$REPO_DIR/selftests" LINUX="$dir/linux" BUILD="$dir/build" \
		OUTPUT="$BUILD_DIR" BENCH_SHAPES="$SHAPE" bench ||
		die_logged "the programs do not build" "see the log"
	release_lock
}

apply_and_build()
{
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" "$@" "$TAG" ||
		die "there is no perf to measure" "see above; then run this again"
}

# hold unloads the programs when its input ends, so they never outlive this script.
load_programs()
{
	local line

	coproc HOLD { exec "$BUILD_DIR/hold" -n "$OBJECTS" "$BUILD_DIR/bench_$SHAPE.bpf.o"; }
	while read -r line <&"${HOLD[0]}"; do
		[[ $line != ready ]] || return 0
	done
	die "hold cannot load $OBJECTS objects" "see above"
}

count_calls()
{
	strace -f -qq -e trace=bpf -e signal=none -o "$TMP/calls" "$@" -o "$TMP/data" -- true &&
		grep -c 'bpf(BPF_' "$TMP/calls"
}

# measure NAME PERF OPTION...: other programs of the machine are in IDLE_CALLS.
measure()
{
	local name=$1 command=("$2" "${RECORD[@]}" "${@:3}") calls

	msg "measure $name"
	calls=$(count_calls "${command[@]}")
	hyperfine -N --warmup 1 --runs "$OPT_RUNS" --export-csv "$TMP/csv" \
		"${command[*]} -o $TMP/data -- true" >"$TMP/hyperfine" 2>&1 ||
		{ cat "$TMP/hyperfine" >&2; die "hyperfine failed" "see above"; }
	# command,mean,stddev,median,user,system,min,max
	awk -F , -v OFS='\t' -v name="$name" -v calls="$((calls - IDLE_CALLS[$name]))" \
		-v programs="$OPT_PROGRAMS" -v bytes="$(stat -c %s "$TMP/data")" '
		NR == 2 { print name, sprintf("%.2f", calls / programs), bytes,
			sprintf("%.1f\t%.1f\t%.1f\t%.1f", ($5 + $6) * 1000, $4 * 1000, $7 * 1000, $8 * 1000) }' \
		"$TMP/csv" >>"$TMP/table"
}

# for_each_perf FUNCTION: NAME PERF OPTION...
for_each_perf()
{
	local mode perf

	"$1" unpatched "$REPO_DIR/out/$TAG-unpatched/perf"
	for mode in none header all; do
		"$1" "$mode" "$REPO_DIR/out/$TAG/perf" "--bpf-metadata=$mode"
	done
	for perf in "${ALSO[@]}"; do
		"$1" "$("$perf" version | sed 's/.* //')" "$perf"
	done
}

count_idle_calls()
{
	IDLE_CALLS[$1]=$(count_calls "$2" "${RECORD[@]}" "${@:3}")
}

OPT_PROGRAMS=1000 OPT_RUNS=7 OPT_SHARED=no OPT_INSTALL=yes ALSO=()
declare -A IDLE_CALLS
export PERF_CONFIG=/dev/null

options__parse "$@" <<-'END'
	--programs:	OPT_PROGRAMS
	--shared	OPT_SHARED	yes
	--also:		ALSO[]
	--runs:		OPT_RUNS
	--no-install	OPT_INSTALL	no
	--quiet		PBM_QUIET	1
END
check_options
check_root
SHAPE=1_3_4_0 OBJECTS=$OPT_PROGRAMS
if [[ $OPT_SHARED = yes ]]; then
	SHAPE=20_3_4_0 OBJECTS=$(((OPT_PROGRAMS + 19) / 20))
	OPT_PROGRAMS=$((20 * OBJECTS))
fi
BUILD_DIR=$REPO_DIR/out/$TAG/selftests/build
packages__require "$OPT_INSTALL" "${BENCH_PACKAGES[@]}"
apply_and_build
apply_and_build --no-patches
build_programs
TMP=$(mktemp -d "${TMPDIR:-/tmp}/pbm-bench.XXXXXX")
on_exit rm -rf -- "$TMP"
take_machine_lock
printf 'perf\tcalls\tbytes\tuser+system\twall\tmin\tmax\n' >"$TMP/table"
for_each_perf count_idle_calls
load_programs
for_each_perf measure
column -t -s $'\t' "$TMP/table"
