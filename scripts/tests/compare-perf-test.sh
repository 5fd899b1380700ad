#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of compare-perf-test.sh, with perfs that print the results in a file. What a
# test has alone is in another.

. "$(dirname "$0")/lib.sh"

# A checkout with two perfs that call the file "all" or "alone" beside them
make_checkout()
{
	local dir

	mkdir "$TMP/t/checkout"
	cp -r "$SCRIPTS_DIR" "$TMP/t/checkout"
	for dir in "$TMP/t/checkout/out/"{v6.16,v6.16-unpatched}; do
		mkdir -p "$dir/linux/tools/perf"
		cat > "$dir/perf" <<-'END'
		#!/bin/bash
		[[ $PWD = */linux/tools/perf && $1 = test && $HOME = "${0%/bin/perf}" && $(< "$PERF_CONFIG") = *"$HOME"* ]] || exit
		. "../../../$([[ -n ${2:-} ]] && echo alone || echo all)"
		exit 1
		END
		chmod +x "$dir/perf"
		cat > "$dir/all" <<-'END'
		cat <<END
		  1: first: Ok, too       : Running (2 active)
		  1: first: Ok, too       : Ok
		  2: a suite              :
		  2.1: part               : Skip (no PMU)
		  2.2: part               : FAILED!
		--- start ---
		12: last                  : Skip
		END
		echo END >> "$dir/all"
	done
	PATCHED=$TMP/t/checkout/out/v6.16 UNPATCHED=$TMP/t/checkout/out/v6.16-unpatched
}

compare()
{
	expect_status "$1" "$TMP/t/checkout/scripts/compare-perf-test.sh" --quiet "${@:2}" v6.16
}

test_equal_results_are_no_difference()
{
	make_checkout
	compare 0
	[[ $PRINTED = "4 the same, 0 different" ]] || fail "$PRINTED"
	# Another number, other words in parentheses, and a test of the series
	sed -i 's/^12: last .*/13: last (with it). : Skip (no disk)/; /^13:/i 12: new : Ok' "$PATCHED/all"
	sed -i 's/^12: last /12: last (without it) /' "$UNPATCHED/all"
	compare 0
	[[ $PRINTED = "4 the same, 0 different" ]] || fail "$PRINTED"
}

test_differences_are_told()
{
	make_checkout
	sed -i '/^ *1:/d' "$PATCHED/all"
	sed -i 's/^12: .*/12: last : Ok\n13: new : FAILED!/' "$PATCHED/all"
	cp "$PATCHED/all" "$PATCHED/alone"
	cp "$UNPATCHED/all" "$UNPATCHED/alone"
	compare 1
	cat > "$TMP/t/want" <<-'END'
	FAILED  first: Ok, too (-, unpatched Ok)
	FAILED  last (Ok, unpatched Skip)
	FAILED  new (FAILED!, unpatched -)
	2 the same, 3 different
	END
	printf '%s\n' "$PRINTED" > "$TMP/t/got"
	same "report" "$TMP/t/want" "$TMP/t/got"
}

# In the second of three times, and never
test_tests_that_differ_run_again()
{
	make_checkout
	sed -i 's/^12: .*/12: last : Ok/' "$PATCHED/all"
	cp "$UNPATCHED/all" "$UNPATCHED/alone"
	cat > "$PATCHED/alone" <<-'END'
	echo "$2" >> ../../../times
	[[ $(wc -l < ../../../times) = 2 ]] && echo '12: last : Skip' || echo '12: last : Ok'
	END
	compare 0
	[[ $PRINTED = "4 the same, 0 different" ]] || fail "$PRINTED"
	[[ $(paste -s -d ' ' "$PATCHED/times") = "12 12" ]] || fail "run: $(< "$PATCHED/times")"
	: > "$PATCHED/alone"
	: > "$UNPATCHED/alone"
	compare 1
	printed "FAILED  last (Ok, unpatched Skip)"
}

test_what_has_no_results_is_no_comparison()
{
	make_checkout
	echo 'sleep 60' > "$UNPATCHED/all"
	compare 2 --timeout 1
	printed "perf test, unpatched: not done after 1 s"
	: > "$UNPATCHED/all"
	compare 2
	printed "perf test, unpatched: no result"
	rm "$UNPATCHED/perf"
	compare 2
	printed "v6.16-unpatched/perf is not built"
	refuses compare-perf-test --timeout x v6.16
}

run_tests
