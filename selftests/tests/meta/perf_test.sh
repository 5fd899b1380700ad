#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests of perf test that the series adds

. "$(dirname "$0")/../../lib/test-lib.sh"

# perf_test NAME: perf finds its shell tests only if it runs in its source directory. They need a program
# named perf in the directory of the perf that was called. With -vv, perf prints why a test fails.
perf_test()
{
	[[ -d $OUTPUT/scripts/../tests/shell ]] || skip "perf's source is not beside the tests"
	mkdir -p "$TMP/bin"
	ln -sf "$PBM_PERF" "$TMP/bin/perf"
	(cd -P "$OUTPUT/scripts/.." && TMPDIR=$TMP timeout $((10 * DEADLINE)) "$TMP/bin/perf" test -vv "$1") \
		>"$TMP/printed" 2>&1 || echo "status $?"
	sed -i 's/\x1b\[[0-9;]*[A-Za-z]//g; s/\r//g' "$TMP/printed"
	cat "$TMP/printed"
	grep -q "^ *[0-9]*: $1 *: Ok\$" "$TMP/printed" && return
	# A shell test prints the reason in brackets.
	sed -n "s/^ *[0-9]*: $1 *: Skip//p; s/.*\(\[Skipped .*\]\).*/\1/p" "$TMP/printed" >"$TMP/skipped"
	[[ ! -s $TMP/skipped ]] || skip "perf test says: $(paste -s "$TMP/skipped")"
	fail "perf test says no Ok"
}

test_text_and_programs()
{
	perf_test "bpf-metadata text and programs"
}

test_record_and_report()
{
	perf_test "bpf-metadata record and report"
}

run_tests
