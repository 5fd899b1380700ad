#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of bench.sh. Only what it measures needs the perfs of v6.16 that were built
# before.

. "$(dirname "$0")/lib.sh"

# bench.sh with the perfs of this checkout, which it must not build first
call_bench()
{
	exec env --default-signal=INT "$SCRIPTS_DIR/bench.sh" --no-install --out "$TMP/t/bench" "$@"
}

expect_bench()
{
	expect_status "$1" call_bench "${@:2}"
}

needs_perfs()
{
	local perf

	((EUID == 0)) || skip "needs root"
	for perf in v6.16 v6.16-unpatched; do
		[[ -x $SCRIPTS_DIR/../out/$perf/perf ]] || skip "needs out/$perf/perf"
	done
	command -v gnuplot > /dev/null || skip "needs gnuplot"
}

# The ids of the programs that the bench.sh of this test has loaded
bench_programs()
{
	local bench hold

	bench=$(pgrep -f -- "--state $TMP/t/bench") && hold=$(pgrep -x -P "$bench" hold) || return
	sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$hold/fdinfo"/* 2> /dev/null | grep .
}

# The kernel frees them some time after they were closed.
await_no_program()
{
	local id tries=0

	for id; do
		while PATH=$PATH:/usr/sbin bpftool prog show id "$id" 2> /dev/null; do
			sleep 0.1
			((++tries < 100)) || fail "program $id is left"
		done
	done
}

test_bench_help()
{
	expect_bench 0 --help
	printed "usage: "
	printed "--peer PERF"
	absent "$TMP/t/bench"
}

test_bench_options_that_make_no_sense()
{
	local options

	for options in '--cases own,none' '--cases ,' '--programs 5,0' '--programs x' '--runs 2' '--runs 0x3' '--frobnicate'; do
		# shellcheck disable=SC2086 # several words
		expect_bench 2 $options v6.16
		printed "${options#* }"
		printed "next: bench.sh --help"
	done
	expect_bench 2 --peer "$TMP/none" v6.16
	printed "--peer $TMP/none: not a program"
	printed "next: "
	expect_bench 2
	expect_bench 2 v6.16 v6.16
	expect_bench 2 v9.9
	printed "unknown tag 'v9.9'"
	{ cat "$SCRIPTS_DIR/pins" && printf 'tag\tv0.2\tLTS\t0.2.0\n'; } > "$TMP/t/pins"
	PBM_PINS=$TMP/t/pins expect_bench 2 v0.2
	printed "v0.2 has no patches"
	absent "$TMP/t/bench"
}

# Two cases: the second is taken from where an interrupted run has left it.
test_bench_interrupted_and_resumed()
{
	local options=(--programs 5 --runs 3 --cases 'distinct,delay' v6.16)
	local part=$TMP/t/bench/.part programs tries=0

	needs_perfs
	set -m
	call_bench "${options[@]}" > "$TMP/t/bench.log" 2>&1 &
	HANGING=$!
	set +m
	until programs=$(bench_programs); do
		sleep 0.1
		kill -0 "$HANGING" 2> /dev/null || fail "it ended: $(< "$TMP/t/bench.log")"
		((++tries < 6000)) || fail "no program was ever loaded"
	done
	kill -INT -- "-$HANGING"
	ends_with 130
	# shellcheck disable=SC2086 # several ids
	await_no_program $programs
	absent "$part/tmp"
	absent "$TMP/t/bench/table.txt"

	[[ -f $part/inputs ]] || fail "nothing is left to go on from"
	echo '{"case": "delay", "shape": "", "programs": 0, "load": 0,
		"results": {"stub": {"delay": [0.0625, 0.125, null]}}}' > "$part/delay.json"
	expect_bench 0 "${options[@]}"
	absent "$part"
	grep -E '^stub +93.8 \[62.5 125.0\] +2 +3$' "$TMP/t/bench/table.txt" || fail "measured again"
	grep -E '^distinct-5 +unpatched .* 30 +6.00 ' "$TMP/t/bench/table.txt" || fail "not 6 calls a program"
	grep -E '^distinct-5 +header .* 50 +10.00 ' "$TMP/t/bench/table.txt" || fail "not 10 calls a program"
	python3 -m json.tool "$TMP/t/bench/results.json" > /dev/null || fail "results.json is no JSON"
}

test_bench_draws()
{
	local state=$TMP/t/state name n i type text

	command -v gnuplot > /dev/null || skip "needs gnuplot"
	mkdir "$state"
	printf 'perf: x\nmachine: y\nmedians\n' > "$state/title"
	for name in unpatched all; do
		printf '"%s"\n' "$name"
		for n in 0 100; do
			printf '%d' "$n"
			for ((i = 0; i < 20; i++)); do
				printf '\t%d' "$n"
			done
			echo
		done
		printf '\n\n'
	done > "$state/own.tsv"
	printf '"%s"\t1\t1\t2\t1\t1\t2\t1\t1\t2\n' 'all file, x' 'none file, y' > "$state/reading.tsv"
	for name in own:growth reading:reading; do
		for type in png svg; do
			gnuplot -e "type='$type'; name='${name%:*}'; dir='$state'" \
				"$SCRIPTS_DIR/lib/bench-${name#*:}.gp" > "$TMP/t/gnuplot" 2>&1 ||
				fail "gnuplot: $(< "$TMP/t/gnuplot")"
			[[ ! -s $TMP/t/gnuplot ]] || fail "gnuplot: $(< "$TMP/t/gnuplot")"
		done
		python3 -c "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])" "$state/${name%:*}.svg" ||
			fail "${name%:*}.svg is no XML"
	done
	cmp -n 8 "$state/own.png" <(printf '\211PNG\r\n\032\n') || fail "own.png is no PNG"
	for text in 'perf: x' 'machine: y' unpatched all; do
		holds "$state/own.svg" "$text"
	done
}

run_tests
