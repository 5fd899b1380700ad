#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of bench.sh. It measures with the perfs of v6.16, if they are built.

. "$(dirname "$0")/lib.sh"

test_bench_options_that_make_no_sense()
{
	local options

	for options in '--programs x' '--programs 0' '--runs 2' '--also /none'; do
		# shellcheck disable=SC2086 # several words
		refuses bench $options v6.16
		printed "$options: not a "
	done
}

test_bench_counts_calls_of_each_perf()
{
	local perf

	((EUID == 0)) || skip "needs root"
	for perf in v6.16 v6.16-unpatched; do
		[[ -x $SCRIPTS_DIR/../out/$perf/perf ]] || skip "needs out/$perf/perf"
	done
	command -v hyperfine > /dev/null || skip "needs hyperfine"
	expect_status 0 "$SCRIPTS_DIR/bench.sh" --no-install --quiet --programs 5 --runs 3 v6.16
	awk 'NR > 1 { print $1, $2 }' <<< "$PRINTED" > "$TMP/t/calls"
	printf '%s\n' 'unpatched 6.00' 'none 6.00' 'header 10.00' 'all 10.00' > "$TMP/t/wanted"
	same "calls" "$TMP/t/wanted" "$TMP/t/calls"
}

run_tests
