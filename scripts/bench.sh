#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Measure what BPF metadata costs: perf with the patches against perf without
# them and against others, in one run, in turns. Run it from anywhere, as root,
# on a machine that has nothing else to do:
#
#	scripts/bench.sh v6.16
#	scripts/bench.sh --peer out/v6.18.15-unpatched/perf v6.16
#	scripts/bench.sh --quick v6.16
#
# Builds what is missing, loads BPF programs and removes them. What is measured,
# and how, is in lib/bench.py; what came out once, in Documentation/performance.rst.
# The steps are the last lines of this file, in order.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/packages.sh"

SELFTESTS_DIR=$REPO_DIR/selftests
ALL_CASES=own,shared,distinct,reading,delay,keys,functions
PEER_TAG=$(pin__of_state LTS | tail -n 1)
BENCH_PACKAGES=(
	# build
	make gcc libc6-dev clang libelf-dev zlib1g-dev
	# measure
	bpftool python3 strace valgrind util-linux
	# draw
	gnuplot-nox fonts-dejavu-core
)

print_usage()
{
	cat <<END
usage: scripts/bench.sh [options] TAG

Measures what BPF metadata costs: perf of the pinned kernel TAG with this
repository's patches, in its modes all, header and none, against the same perf
without them.
TAG is one of: $(pin__list | paste -s -d ' ')

What:
  --peer PERF       compare with this perf, too; may be given several times
                    (default: out/$PEER_TAG-unpatched/perf, if it was built)
  --cases LIST      some of $ALL_CASES
                    (default: all)
  --programs LIST   numbers of loaded programs (default: 0,100,1000,3000)
  --runs N          how often times are measured, at least 3 (default: 7)
  --quick           --cases own,shared,delay --programs 0,20 --runs 3: to see that
                    it works, in four minutes; a full run takes half an hour

Cases:
  own               as many objects as programs, of 3 functions and 4 keys each
  shared            20 programs of an object share its map
  distinct          as own, but no two values are equal
  reading           perf report, script and inject
  delay             from a program's load until its metadata is known
  keys, functions   0, 4, 50 and 1000 keys of a function, 1 and 20 functions (3: see own)

Output:
  --out DIR         where the results go (default: out/TAG/bench)
  --no-install      install nothing; refuse and print the apt line
  --quiet           only errors and the last lines
  -h, --help        this text

Results in DIR:
  table.txt         what is printed, too
  results.json      the same, with each single value
  *.png, *.svg      plots
  *.tsv             what they are drawn from
  bench.log

What an interrupted run has finished stays in DIR/.part, and the next run with the
same perfs and options goes on from there. Nothing else stays, neither programs
nor recordings.

Environment:
  PBM_BPFTOOL       the bpftool to look and run with (default: bpftool)

Exit status: 0 done, 2 could not run.
END
}

parse_options()
{
	options__parse "$@" <<-'END'
		--peer:		PEERS[]
		--cases:	OPT_CASES
		--programs:	OPT_PROGRAMS
		--runs:		OPT_RUNS
		--quick		OPT_QUICK	yes
		--out:		OPT_OUT
		--no-install	OPT_INSTALL	no
		--quiet		PBM_QUIET	1
	END
}

check_peers()
{
	local i

	if ((${#PEERS[@]} == 0)) && [[ -x $REPO_DIR/out/$PEER_TAG-unpatched/perf ]]; then
		PEERS=("$REPO_DIR/out/$PEER_TAG-unpatched/perf")
	fi
	for i in "${!PEERS[@]}"; do
		[[ -f ${PEERS[i]} && -x ${PEERS[i]} ]] ||
			die "--peer ${PEERS[i]}: not a program" \
				"name a perf, or build one: scripts/apply-and-build.sh --no-patches $PEER_TAG"
		PEERS[i]=$(realpath -- "${PEERS[i]}")
	done
}

check_options()
{
	local name

	pin__check_tag "$TAG"
	[[ -d $REPO_DIR/patches/$TAG ]] || die "$TAG has no patches to measure" "use another TAG"
	if [[ $OPT_QUICK = yes ]]; then
		: "${OPT_CASES:=own,shared,delay}" "${OPT_PROGRAMS:=0,20}" "${OPT_RUNS:=3}"
	fi
	: "${OPT_CASES:=$ALL_CASES}" "${OPT_PROGRAMS:=0,100,1000,3000}" "${OPT_RUNS:=7}"
	for name in ${OPT_CASES//,/ }; do
		[[ ,$ALL_CASES, = *,$name,* ]] || die_usage "--cases $OPT_CASES: '$name' is none of $ALL_CASES"
	done
	[[ $OPT_CASES =~ ^[a-z]+(,[a-z]+)*$ ]] || die_usage "--cases '$OPT_CASES': not a list of cases"
	[[ $OPT_PROGRAMS =~ ^(0|[1-9][0-9]{0,4})(,[1-9][0-9]{0,4})*$ ]] ||
		die_usage "--programs '$OPT_PROGRAMS': not a list of numbers below 100000, of which only the first may be 0"
	[[ $OPT_RUNS =~ ^([3-9]|[1-9][0-9]{1,3})$ ]] ||
		die_usage "--runs $OPT_RUNS: not a number from 3 up"
}

resolve_paths()
{
	PATCHED_DIR=$REPO_DIR/out/$TAG
	UNPATCHED_DIR=$REPO_DIR/out/$TAG-unpatched
	TESTS_DIR=$PATCHED_DIR/selftests
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$PATCHED_DIR/bench}")
	PART_DIR=$OUT_DIR/.part
}

apply_and_build()
{
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" "$@" "$TAG" ||
		die "there is no perf to measure" "see above; then run this again"
}

# The lock is that of run-selftests.sh, which builds the tests there.
build_programs()
{
	local shapes

	shapes=$(bench shapes)
	mkdir -p -- "$TESTS_DIR"
	take_lock "$TESTS_DIR/lock" "$TESTS_DIR"
	run_logged "build the programs" env -u MAKEFLAGS -u MAKELEVEL \
		make -C "$SELFTESTS_DIR" -j "$(nproc)" LINUX="$PATCHED_DIR/linux" \
		BUILD="$PATCHED_DIR/build" OUTPUT="$TESTS_DIR/build" BENCH_SHAPES="$shapes" bench ||
		die_logged "the programs do not build" "see the log"
	release_lock
}

open_output()
{
	mkdir -p -- "$OUT_DIR" || die "cannot create $OUT_DIR" "use another --out"
	take_lock "$OUT_DIR/.lock" "$OUT_DIR"
	log_to "$OUT_DIR/bench.log"
	on_exit rm -rf -- "$PART_DIR/tmp"
}

bench()
{
	local args=(--cases "$OPT_CASES" --programs "$OPT_PROGRAMS" --runs "$OPT_RUNS"
		--state "$PART_DIR" --build "$TESTS_DIR/build" --bpftool "${PBM_BPFTOOL:-bpftool}"
		--unpatched "$UNPATCHED_DIR/perf" --patched "$PATCHED_DIR/perf") peer

	for peer in "${PEERS[@]}"; do
		args+=(--peer "$peer")
	done
	python3 "$SCRIPTS_DIR/lib/bench.py" "$1" "${args[@]}"
}

print_inputs()
{
	local peer load

	read -r load _ </proc/loadavg
	msg "patched   $PATCHED_DIR/perf ($("$PATCHED_DIR/perf" version))"
	msg "unpatched $UNPATCHED_DIR/perf ($("$UNPATCHED_DIR/perf" version))"
	for peer in "${PEERS[@]}"; do
		msg "peer      $peer ($("$peer" version))"
	done
	msg "cases     $OPT_CASES"
	msg "programs  $OPT_PROGRAMS"
	msg "runs      $OPT_RUNS"
	msg "kernel    $(uname -r)"
	msg "results   $OUT_DIR"
	[[ ${load%.*} -eq 0 ]] ||
		warn "the load average is $load: other processes are running, and times will vary"
}

measure()
{
	run_logged "measure" bench measure ||
		die_logged "something could not be measured" "see the log; run it again to go on from here"
	bench write
}

draw()
{
	local name type

	for name in own shared reading; do
		[[ -f $PART_DIR/$name.tsv ]] || continue
		for type in png svg; do
			run_logged "draw $name.$type" gnuplot -e "type='$type'; name='$name'; dir='$PART_DIR'" \
				"$SCRIPTS_DIR/lib/bench-$([[ $name = reading ]] && echo reading || echo growth).gp" ||
				die_logged "gnuplot cannot draw $name.$type" "see the log"
		done
	done
}

# Results are moved all at once, so that no table stands beside the plots of another run.
publish()
{
	rm -f -- "$OUT_DIR"/*.{png,svg,tsv} "$OUT_DIR"/{table.txt,results.json}
	find "$PART_DIR" -maxdepth 1 '(' -name '*.png' -o -name '*.svg' -o -name '*.tsv' \
		-o -name table.txt -o -name results.json ')' -exec mv -t "$OUT_DIR" -- {} +
	rm -rf -- "$PART_DIR"
}

print_results()
{
	msg ""
	cat -- "$OUT_DIR/table.txt"
	printf '%s\n' "$OUT_DIR"
}

OPT_CASES='' OPT_PROGRAMS='' OPT_RUNS='' OPT_QUICK=no OPT_OUT='' OPT_INSTALL=yes
PEERS=()
# Debian's bpftool is in /usr/sbin, which the PATH that su keeps may lack.
PATH=$PATH:/usr/sbin:/sbin

parse_options "$@"
check_options
check_peers
check_root
resolve_paths
open_output
packages__require "$OPT_INSTALL" "${BENCH_PACKAGES[@]}"
check_bpftool
apply_and_build
apply_and_build --no-patches
build_programs
print_inputs
measure
draw
publish
print_results
