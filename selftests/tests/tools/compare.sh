#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/bpf-compare: its costs are those of perf report, its intervals are right, and
# its exit status can stop a CI job.

. "$(dirname "$0")/../../lib/report-lib.sh"

COMPARE=$SELFTESTS/../tools/bpf-compare
export PERF=${PBM_PERF-}

# compares STATUS OPTION...: fail unless bpf-compare ends with STATUS; write $TMP/{out,messages}
compares()
{
	local status=0

	"$COMPARE" "${@:2}" >"$TMP/out" 2>"$TMP/messages" || status=$?
	cat "$TMP/out" "$TMP/messages"
	[[ $status = "$1" ]] || fail "${*:2}: status $status"
	if grep -q -v -e '^bpf-compare: ' -e '^  ' -e '^usage: ' "$TMP/messages"; then
		fail "${*:2}: unexpected messages"
	fi
}

# says TEXT: fail unless the output or the messages contain TEXT
says()
{
	grep -q -F -e "$1" "$TMP/out" "$TMP/messages" || fail "bpf-compare does not print '$1'"
}

# fails TEXT OPTION...: fail unless bpf-compare ends with status 2, no output, and TEXT in a message
fails()
{
	compares 2 "${@:2}"
	[[ ! -s $TMP/out ]] || fail "${*:2}: prints output"
	says "$1"
}

# samples FILE SECONDS [SEED [START [HOST]]] <<END: write JSON, as perf data convert does, of samples at random
# times. Each line of the input has the rate per second, then id, name and metadata of a program, then perhaps
# a tab and JSON for the frame.
samples()
{
	native_only "the test does not depend on the kernel"
	python3 - "$@" 3<&0 <<-'END'
		import json, random, sys, textwrap
		path, seconds, seed, start, host = sys.argv[1], float(sys.argv[2]), *(sys.argv[3:] + ["0", "0", "vm"][len(sys.argv) - 3:])
		chance = random.Random(seed)
		times, programs = [(0, {"ip": "0x10"}), (int(seconds * 1e9), {"ip": "0x10"})], []
		for line in open(3, encoding="utf-8"):
		    line, _, frame = line.rstrip("\n").partition("\t")
		    rate, program, name, metadata = line.split(" ", 3)
		    frame = {"ip": "0x10", "bpf-prog-id": int(program), **json.loads(frame or "{}")}
		    programs.append({"id": int(program), "name": json.loads(f'"{name}"'), "metadata": json.loads(metadata)})
		    when = chance.expovariate(float(rate))
		    while when < seconds:
		        times.append((int(when * 1e9), frame))
		        when += chance.expovariate(float(rate))
		with open(path, "w", encoding="utf-8") as file:
		    def array(name, objects):
		        file.write(f'\t"{name}": [\n' + ",\n".join(textwrap.indent(json.dumps(item, indent="\t"), "\t\t") for item in objects) + "\n\t]")
		    file.write('{\n\t"headers": {\n\t\t"hostname": %s,\n\t\t"arch": "x86_64"\n\t},\n' % json.dumps(host))
		    array("samples", ({"timestamp": 10**14 + int(float(start) * 1e9) + when, "callchain": [frame]}
		                      for when, frame in sorted(times, key=lambda pair: pair[0])))
		    file.write(",\n")
		    array("bpf-metadata", programs)
		    file.write("\n}\n")
	END
}

# value EXPRESSION: print a value of the JSON output, where r is the first row
value()
{
	python3 -c 'import json, sys
out = json.load(open(sys.argv[1])); r = out["rows"][0]; print(eval(sys.argv[2]))' "$TMP/out" "$1"
}

# want EXPRESSION: fail unless it is true for the JSON output
want()
{
	[[ $(value "$1") = True ]] || fail "this is not true: $1"
}

# two_builds BEFORE-RATE AFTER-RATE [SECONDS]: write four recordings of each build. Sets ALL.
two_builds()
{
	local i

	for i in 1 2 3 4; do
		samples "$TMP/before$i" "${3:-20}" "$i" <<<"$1 7 count {\"version\": \"1.0\"}"
		samples "$TMP/after$i" "${3:-20}" "x$i" <<<"$2 8 count {\"version\": \"2.0\"}"
	done
	ALL=(--before "$TMP"/before[1-4] --after "$TMP"/after[1-4])
}

test_costs_are_those_of_perf_report()
{
	hold busy_v1 busy_v2
	spend 0 1000 1 3000
	# shellcheck disable=SC2016 # for the inner shell
	WORKLOAD=(sh -c 'for _ in $(seq 100); do "$@"; sleep 0.1; done' sh "${WORKLOAD[@]}")
	record "$TMP/real" -g
	rows -s bpf_prog -F sample,bpf_prog -i "$TMP/real" | sed -n 's/^[0-9]* \(busy.*\)\t/\1\t/p' | sum_up >"$TMP/want"
	compares 0 --json "$TMP/real" "$TMP/real"
	value '"\n".join("%s\t%d" % (r["program"], r["before_samples"]) for r in out["rows"] if not r["with_calls"])' |
		grep '^busy' >"$TMP/got"
	same "samples of perf report" "$TMP/want" "$TMP/got"
	want 'all(r["change"] == 0 and r["low"] < 0 < r["high"] for r in out["rows"] if not r["problem"])'
	want 'out["unit"] == "ms of CPU time per second of recording"'
	want 'sum(r["with_calls"] for r in out["rows"]) * 2 == len(out["rows"])'
	compares 0 --json --program busy --keys version "$TMP/real" "$TMP/real"
	want '[r["keys"]["version"] for r in out["rows"] if not r["with_calls"]] == ["1.0", "2.0"]'
	# The JSON of perf gives the same rows, in samples.
	"$PBM_PERF" data convert --force --to-json "$TMP/json" -i "$TMP/real" 2>"$TMP/messages"
	gzip -k "$TMP/json"
	value '[(r["program"], r["keys"], r["before_samples"]) for r in out["rows"]]' >"$TMP/want"
	compares 0 --json --program busy --keys version "$TMP/json" "$TMP/json.gz"
	value '[(r["program"], r["keys"], r["before_samples"]) for r in out["rows"]]' >"$TMP/got"
	same "rows of the JSON" "$TMP/want" "$TMP/got"
	want 'out["unit"] == "samples per second of recording"'
}

# Quantiles of Student's t from a table, and an interval that was calculated by hand
test_intervals()
{
	python3 - "$COMPARE" <<-'END' || fail "wrong numbers"
		import importlib.machinery, math, os, sys
		sys.path.insert(0, os.path.dirname(sys.argv[1]))
		compare = importlib.machinery.SourceFileLoader("compare", sys.argv[1]).load_module()
		for level, dof, want in ((0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 19, 2.093), (0.99, 5, 4.032),
		                         (0.95, 38, 2.024), (0.999, 3, 12.924), (0.5, 10, 0.700), (0.95, 1000, 1.962)):
		    assert abs(compare.t_quantile(level, dof) - want) < 0.0006, (level, dof, compare.t_quantile(level, dof))
		# Both means have a relative error of 1/10, and 4 degrees of freedom, so 8 in all.
		before, after = [1 + x * math.sqrt(0.1) for x in (-math.sqrt(.5), -math.sqrt(.5), 0, math.sqrt(.5), math.sqrt(.5))], None
		before = [1 + (value - 1) * 0.1 * math.sqrt(5) / math.sqrt(0.05) for value in before]
		after = [2 * value for value in before]
		ratio, low, high = compare.interval(before, after, 0.95)
		assert abs(ratio - 2) < 1e-9 and abs(math.log(high / 2) - 2.306 * math.sqrt(0.02)) < 0.0002, (ratio, low, high)
		assert abs(low * high - 4) < 1e-9
		# With two rows, each interval has the level 1 - 0.05 / 2.
		class Options: level = 0.95
		def side(values):
		    made = compare.Side()
		    made.values, made.nr_samples = values, 1000
		    return made
		for names in ("a", "ab"):
		    rows = {(name, (), compare.OWN): (side(before), side(after)) for name in names}
		    ends = compare.interval(before, after, 1 - 0.05 / len(names))
		    for row in compare.judge(rows, Options):
		        assert [row["change"] + 1, row["low"] + 1, row["high"] + 1] == [1 + (end - 1) for end in ends], (row, ends)
	END
}

test_fail_on_decides_the_exit_status()
{
	two_builds 50 100
	compares 0 "${ALL[@]}"
	says "count 1.0 -> 2.0"
	says "1 of 1 rows compared: 1 cost more, 0 cost less"
	compares 1 --fail-on 10% "${ALL[@]}"
	says "count costs at least"
	says "the limit is 10 %"
	compares 0 --fail-on 150% "${ALL[@]}"
	compares 0 --fail-on 0% --before "$TMP"/after[1-4] --after "$TMP"/before[1-4]
	says "0 cost more, 1 cost less"
	compares 1 --fail-on 10% --before "$TMP"/before[1-3] --after "$TMP"/after[1-2] --after "$TMP/after3"
	compares 1 --fail-on 10% --json "${ALL[@]}"
	value '"%+.1f%%  %+.1f..%+.1f%%" % (100 * r["change"], 100 * r["low"], 100 * r["high"])' >"$TMP/want"
	compares 0 "${ALL[@]}"
	says "$(<"$TMP/want")"
	compares 0 --fail-on 0% --before "$TMP"/before[1-4] --after "$TMP"/before[1-4]
	# What cannot be compared must not pass.
	fails "1 before and 1 after are too few recordings" --fail-on 10% "$TMP/before1" "$TMP/after1"
	compares 2 --fail-on 10% --program other "${ALL[@]}"
	says "no row could be compared; record for a longer time"
	compares 2 --fail-on 150% --program count --program other "${ALL[@]}"
	says "other was not compared"
	two_builds 0.2 100
	compares 2 --fail-on 10% "${ALL[@]}"
	says " samples, not 20"
	compares 2 --fail-on 10% --before "$TMP"/after[1-4] --after "$TMP"/before[1-4]
	says " samples, not 20"
}

# If there is only one recording of each build, bpf-compare cuts each recording into slices.
test_one_recording_of_each_side()
{
	two_builds 50 100
	compares 0 "$TMP/before1" "$TMP/after1"
	says "The machine may have changed between the two recordings"
	compares 0 --json "$TMP/before1" "$TMP/after1"
	want 'out["slices"] == 20 and r["low"] > 0.5'
	two_builds 50 50 9
	fails "slices need at least 10 s" "$TMP/before1" "$TMP/after1"
	samples "$TMP/long" 10 <<<'50 7 count {}'
	fails "slices need at least 10 s" "$TMP/long" "$TMP/after1"
	fails "at least 3 of each build, recorded by turns" --before "$TMP"/before[12] --after "$TMP"/after[1-4]
}

# at_line NUMBER FUNCTION TEXT: print the end of a line for samples()
at_line()
{
	printf '\t{"symbol": "bpf_prog_0123456789abcdef_%s", "srcfile": "/src/count.c", "line": %s, "srccode": "%s"}' "$2" "$1" "$3"
}

# Equal lines of two functions are two rows. What cost a line has more, another has less.
test_lines()
{
	local i build shift

	for i in 1 2 3 4; do
		for build in before after; do
			[[ $build = before ]] && shift=0 || shift=3
			samples "$TMP/$build$i" 20 "$build$i" <<-END
				$((50 + 50 * shift)) 7 count {}$(at_line $((12 + shift)) parse '\tx = f(x);')
				$((250 - 50 * shift)) 7 count {}$(at_line $((20 + shift)) count 'x = f(x);')
				50 7 count {}$(at_line $((30 + shift)) count '')
				0.1 7 count {}$(at_line 40 count 'rare();')
				$((20 * shift)).0001 7 count {}$(at_line 50 count 'new();')
				30 7 count {}
			END
		done
	done
	ALL=(--before "$TMP"/before[1-4] --after "$TMP"/after[1-4])
	compares 0 "${ALL[@]}" --lines
	for i in '  parse:12 -> 15: x = f(x);' '  count:20 -> 23: x = f(x);' '  count:30: line 30 of count.c' '  count:33: line 33 of count.c' \
		'  count:50: new();' '  (unknown)'; do
		grep -q -F -x -e "$i" <(cut -c 1-34 "$TMP/out" | sed 's/ *$//') || fail "no row '$i'"
	done
	! grep 'rare' "$TMP/out" || fail "a row of a line with few samples"
	compares 0 --json "${ALL[@]}" --lines
	want 'out["rows"][0]["line"] == False and [r.get("code") for r in out["rows"]][1:3] == ["x = f(x);"] * 2'
	want '{r["function"]: r["low"] > 1.5 for r in out["rows"] if r.get("code") == "x = f(x);"} == {"parse": True, "count": False}'
	want '[r["before_lines"] + r["after_lines"] for r in out["rows"] if r.get("function") == "parse"] == [[12, 15]]'
	want '[r["problem"] for r in out["rows"] if r.get("code") == "new();"] == ["0 samples, not 20"]'
	# A line that costs more is no reason to fail.
	compares 0 "${ALL[@]}" --lines --fail-on 50%
	compares 0 "${ALL[@]}" --json
	want 'len(out["rows"]) == 1 and r["before_samples"] > 0'
	two_builds 50 100
	compares 0 "${ALL[@]}" --lines
	says "no sample has a source line; build the programs with clang -g"
}

# The samples of lines are those of perf report, and the text is that of the source.
test_lines_of_a_recording()
{
	hold lines
	spend 0 1000
	# shellcheck disable=SC2016 # for the inner shell
	WORKLOAD=(sh -c 'for _ in $(seq 100); do "$@"; sleep 0.1; done' sh "${WORKLOAD[@]}")
	record "$TMP/lines" -g
	rows -s bpf_prog,srcline -F sample,bpf_prog,srcline -i "$TMP/lines" |
		sed -n "s/^${HELD_IDS[0]} lines|lines\.bpf\.c:\([0-9]*\)\t/\1\t/p" | awk '$2 >= 100' >"$TMP/want"
	compares 0 --json --lines --program lines "$TMP/lines" "$TMP/lines"
	value '"\n".join("%d\t%d" % (r["after_lines"][0], r["after_samples"]) for r in out["rows"] if r["line"])' | sort >"$TMP/got"
	same "samples by line" "$TMP/want" "$TMP/got"
	want '{r["code"] for r in out["rows"] if r.get("after_lines") in ([15], [24])} == {"x = x * 5 + 3;"}'
}

# recorded_at START-BEFORE START-AFTER [HOST]: write three recordings of each side, 100 s from one to the next
recorded_at()
{
	local i

	for i in 1 2 3; do
		samples "$TMP/before$i" 20 "$i" $((100 * i + $1)) <<<'50 7 count {}'
		samples "$TMP/after$i" 20 "x$i" $((100 * i + $2)) "${@:3}" <<<'50 8 count {}'
	done
	compares 0 --before "$TMP"/before[1-3] --after "$TMP"/after[1-3]
}

# The times of two hosts have no common start.
test_order_of_recordings()
{
	recorded_at 0 50
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
	recorded_at 0 150
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
	recorded_at 0 350
	says "record by turns"
	recorded_at 350 0
	says "record by turns"
	recorded_at 0 350 other
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
}

# Programs that are in only one recording, or have few samples. Intervals get wider with more rows.
test_rows()
{
	samples "$TMP/a" 60 1 <<-'END'
		50 1 both {"version": "1.0", "owner": "x"}
		40 2 old {"version": "1.0"}
		0.01 3 rare {}
	END
	samples "$TMP/b" 60 2 <<-'END'
		30 4 both {"version": "1.1", "owner": "x"}
		20 5 both {"version": "1.2", "owner": "y"}
		40 6 new {}
		0.01 7 rare {}
	END
	compares 0 --json "$TMP/a" "$TMP/b"
	value 'sorted((r["program"], str(r["problem"])) for r in out["rows"] if r["program"] != "rare")' >"$TMP/got"
	echo "[('both', 'None'), ('new', 'new'), ('old', 'gone')]" >"$TMP/want"
	same "rows" "$TMP/want" "$TMP/got"
	want 'r["after_versions"] == ["1.1", "1.2"]'
	compares 0 "$TMP/a" "$TMP/b"
	says "both 1.0 -> 1.1,1.2"
	compares 0 --json --keys owner "$TMP/a" "$TMP/b"
	want '[(r["keys"]["owner"], r["problem"]) for r in out["rows"] if r["program"] == "both"] == [("x", None), ("y", "new")]'
	samples "$TMP/a" 60 1 <<<"$(printf '50 1 both {"owner": "x"}\n40 2 more {}\n40 3 again {}')"
	samples "$TMP/b" 60 2 <<<"$(printf '30 1 both {"owner": "x"}\n40 2 more {}\n40 3 again {}')"
	compares 0 --json --program both "$TMP/a" "$TMP/b"
	value 'r["high"] - r["low"]' >"$TMP/one"
	compares 0 --json "$TMP/a" "$TMP/b"
	value 'next(r["high"] - r["low"] for r in out["rows"] if r["program"] == "both")' >"$TMP/three"
	paste "$TMP/one" "$TMP/three" | awk '{ exit !($2 > 1.1 * $1) }' || fail "the interval is not wider"
	# Rows without an interval don't widen the others.
	samples "$TMP/a" 60 1 <<<"$(printf '50 1 both {"owner": "x"}\n40 2 old {}')"
	samples "$TMP/b" 60 2 <<<"$(printf '30 4 both {"owner": "x"}\n40 6 new {}')"
	compares 0 --json "$TMP/a" "$TMP/b"
	value 'next(r["high"] - r["low"] for r in out["rows"] if r["program"] == "both")' >"$TMP/got"
	same "interval beside rows without one" "$TMP/one" "$TMP/got"
}

# chain FILE FRAME: add a caller to the frames of programs
chain()
{
	sed -i "/\"bpf-prog-id\": [0-9]*\$/{ n; s/\$/,\n\t\t\t\t{ $2\n\t\t\t\t}/; }" "$1"
}

test_callers()
{
	samples "$TMP/a" 20 1 <<<'50 7 count {"version": "1.0"}'
	cp "$TMP/a" "$TMP/b"
	cp "$TMP/a" "$TMP/c"
	# Only one side has call graphs.
	chain "$TMP/a" '"ip": "0x20", "bpf-prog-id": 7'
	compares 0 --json "$TMP/a" "$TMP/b"
	want '[r["with_calls"] for r in out["rows"]] == [False]'
	# A program that calls itself counts once.
	compares 0 --json "$TMP/a" "$TMP/a"
	want '[r["with_calls"] for r in out["rows"]] == [False, True] and len({r["before_samples"] for r in out["rows"]}) == 1'
	# The caller has no samples of its own, but a row with its name.
	chain "$TMP/b" '"ip": "0x20", "bpf-prog-id": 9, "symbol": "caller"'
	compares 0 --json "$TMP/b" "$TMP/b"
	want 'sorted((r["program"], r["with_calls"]) for r in out["rows"]) == [("caller", True), ("count", False), ("count", True)]'
	compares 0 "$TMP/b" "$TMP/b"
	grep -A 1 '^caller (unknown)$' "$TMP/out" | grep -q '^  with the functions' || fail "no name above the row of the caller"
	# A file in user space has the name of a program.
	chain "$TMP/c" '"ip": "0x20", "symbol": "main", "dso": "bpf_prog_0011223344556677_x"'
	compares 0 --json "$TMP/c" "$TMP/c"
	want '{r["program"] for r in out["rows"]} == {"count"}'
}

# 100 samples of 3 ms for each program, 0.1 s apart
test_periods()
{
	made_up <<-'END'
		sample = file.sample
		def slow(ip):
		    file.time += 10 ** 8 - 1
		    return sample(ip)[:-8] + file.u64(3000000)
		file.sample, file.nr_samples = slow, 100
	END
	compares 0 --json "$TMP/made-up" "$TMP/made-up"
	want 'abs(r["before"] - 300 / 19.9) < 1e-6 and out["unit"] == "ms of CPU time per second of recording"'
	compares 0 "$TMP/made-up" "$TMP/made-up"
	says "alpha 1.2.3                            15.08"
	sed -i 's/3000000/0/' "$TMP/change.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/change.py" "$TMP/made-up"
	compares 2 "$TMP/made-up" "$TMP/made-up"
	says "periods of 0"
}

test_options_of_rows()
{
	samples "$TMP/a" 20 <<<"$(printf '50 1 count {"owner": ["a",true]}\n50 2 cou {}\n50 3 more {}')"
	compares 0 --json --program count "$TMP/a" "$TMP/a"
	want '[r["program"] for r in out["rows"]] == ["count"]'
	compares 0 --json --program count --program more "$TMP/a" "$TMP/a"
	want 'sorted(r["program"] for r in out["rows"]) == ["count", "more"]'
	compares 0 --json --program count --version-key owner --keys owner,owner "$TMP/a" "$TMP/a"
	want 'r["after_versions"] == ["[\"a\",true]"] == [r["keys"]["owner"]]'
	# A program of which nothing is known
	sed -i 's/"bpf-prog-id": 1$/"bpf-prog-id": 8, "symbol": "lost"/' "$TMP/a"
	compares 0 --json --program lost "$TMP/a" "$TMP/a"
	want 'r["before_versions"] == ["(unknown)"]'
}

# The variance is between the recordings: one recording that differs makes the interval wide.
test_the_variance_between_recordings()
{
	two_builds 100 130
	compares 1 --fail-on 5% "${ALL[@]}"
	samples "$TMP/after4" 20 1 <<<'300 7 count {"version": "2.0"}'
	compares 0 --fail-on 5% "${ALL[@]}"
	compares 0 --json "${ALL[@]}"
	want 'out["slices"] is None'
	# A recording where the program is not loaded does not count.
	samples "$TMP/none" 20 1 <<<'100 9 other {}'
	compares 0 --json --program count --before "$TMP"/before[1-4] "$TMP/none" --after "$TMP"/after[1-4]
	want 'abs(r["before"] - 100) < 10'
	compares 2 --before "$TMP"/before[12] "$TMP/none" --after "$TMP"/after[1-4]
	says "in 2 recordings, not 3"
}

# A file of runs has the output of "bpftool -j prog show" once or twice. The second build costs
# twice as much per second, but runs twice as often, so a run costs the same.
test_runs()
{
	samples "$TMP/before" 60 1 <<<'50 7 count {}'
	samples "$TMP/after" 60 2 <<<'100 8 count {}'
	echo '[{"id": 1, "run_cnt": 5}, {"id": 7, "run_cnt": 1000, "run_time_ns": 1}]' >"$TMP/runs-before"
	echo '[{"id": 8, "run_cnt": 500}][{"id": 8, "run_cnt": 2500}]' >"$TMP/runs-after"
	compares 0 --json --runs-before "$TMP/runs-before" --runs-after "$TMP/runs-after" "$TMP/before" "$TMP/after"
	want 'abs(r["change"]) < 0.1 and r["low"] < 0 < r["high"]'
	want 'abs(r["before"] * 1000 - r["before_samples"]) < 1 and abs(r["after"] * 2000 - r["after_samples"]) < 1'
	want 'out["unit"] == "samples per run"'
	echo '[{"id": 1, "run_cnt": 5}]' >"$TMP/runs-before"
	compares 2 --runs-before "$TMP/runs-before" --runs-after "$TMP/runs-after" "$TMP/before" "$TMP/after"
	says "no runs counted"
	echo '[{"id": 7}]' >"$TMP/runs-before"
	fails "kernel.bpf_stats_enabled" --runs-before "$TMP/runs-before" --runs-after "$TMP/runs-after" "$TMP/before" "$TMP/after"
	for text in '' '{}' '[1]' 'x' '[{"id": 7, "run_cnt": "x"}]'; do
		echo "$text" >"$TMP/runs-before"
		fails "bpftool -j prog show" --runs-before "$TMP/runs-before" --runs-after "$TMP/runs-after" "$TMP/before" "$TMP/after"
	done
	fails "a file of runs for each recording" --runs-before "$TMP/runs-after" "$TMP/before" "$TMP/after"
	echo '[{"id": 8, "run_cnt": 2500}][{"id": 8, "run_cnt": 500}]' >"$TMP/runs-before"
	fails "put the output from before the recording first" --runs-before "$TMP/runs-before" --runs-after "$TMP/runs-after" \
		"$TMP/before" "$TMP/after"
	# A program that cpu-clock can't sample
	samples "$TMP/before" 60 1 <<<"$(printf '50 7 count {}\n0.0001 9 unseen {}')"
	echo '[{"id": 7, "run_cnt": 1000}, {"id": 9, "run_cnt": 4000}]' >"$TMP/runs-before"
	compares 0 --runs-before "$TMP/runs-before" --runs-after "$TMP/runs-after" "$TMP/before" "$TMP/after"
	says "before: unseen ran 4000 times, but has no sample; see bpf-compare(1)"
	! grep 'after:\|count ran' "$TMP/messages" || fail "a message about a program that has samples"
	# One of two programs was unloaded before bpftool ran.
	samples "$TMP/before" 60 1 <<<"$(printf '50 7 count {}\n50 9 count {}')"
	echo '[{"id": 7, "run_cnt": 1000}]' >"$TMP/runs-before"
	compares 2 --runs-before "$TMP/runs-before" --runs-after "$TMP/runs-after" "$TMP/before" "$TMP/after"
	says "no runs counted"
}

test_runs_belong_to_recordings()
{
	local i runs=()

	for i in 1 2 3 4; do
		samples "$TMP/before$i" 20 "$i" <<<"$((50 * i)) 7 count {}"
		samples "$TMP/after$i" 20 "x$i" <<<"$((100 * i)) 7 count {}"
		echo "[{\"id\": 7, \"run_cnt\": $((1000 * i))}]" >"$TMP/runs$i"
		runs+=(--runs-before "$TMP/runs$i" --runs-after "$TMP/runs$i")
	done
	ALL=(--before "$TMP"/before[1-4] --after "$TMP"/after[1-4])
	compares 1 --json --fail-on 50% "${runs[@]}" "${ALL[@]}"
	want 'abs(r["before"] - 1) < 0.1 and abs(r["after"] - 2) < 0.1'
	echo '[{"id": 1, "run_cnt": 5}]' >"$TMP/runs1"
	compares 2 "${runs[@]}" "${ALL[@]}"
	says "no runs counted"
}

test_the_table_fits_a_terminal()
{
	samples "$TMP/a" 60 1 <<-'END'
		100 1 al\u001b[2Jpha\n {"version": "0123456789abcdef\u001b[2J"}
		0.0001 2 with_a_name_that_takes_more_than_the_column {"version": "1.0"}
		900 3 xdp {}
	END
	compares 0 "$TMP/a" "$TMP/a"
	if grep -a -P '[\x00-\x08\x0b-\x1f\x7f]' "$TMP/out"; then
		fail "control characters"
	fi
	awk 'length($0) > 80 { print; exit 1 }' "$TMP/out" || fail "more than 80 columns"
}

test_errors_name_the_next_step()
{
	samples "$TMP/before" 20 1 <<<'50 7 count {}'
	cp "$TMP/before" "$TMP/after"
	echo 'no recording' >"$TMP/text"
	fails "see if perf report can read the file" "$TMP/text" "$TMP/after"
	fails "No such file or directory; correct the path" --runs-before "$TMP/no" --runs-after "$TMP/no" "$TMP/before" "$TMP/after"
	fails "give BEFORE and AFTER" "$TMP/before"
	fails "give BEFORE and AFTER" --before "$TMP/before"
	fails "invalid percentage value" --fail-on x "$TMP/before" "$TMP/after"
	fails "from 50% to below 100%" --level 100% "$TMP/before" "$TMP/after"
	head -c 3000 "$TMP/before" >"$TMP/cut"
	fails "its JSON is cut off; convert the recording again" "$TMP/cut" "$TMP/after"
	gzip -c "$TMP/before" | head -c 2000 >"$TMP/cut.gz"
	fails "cannot be compared (EOFError" "$TMP/cut.gz" "$TMP/after"
	sed 's/"timestamp"/"time"/' "$TMP/before" >"$TMP/no-times"
	fails "a sample has no time or no call chain; convert" "$TMP/no-times" "$TMP/after"
	sed 's/"timestamp": [0-9]*/"timestamp": -1/' "$TMP/before" >"$TMP/no-times"
	fails "samples without a time; record with perf record --timestamp" "$TMP/no-times" "$TMP/after"
	if "$COMPARE" "$TMP/before" "$TMP/after" >/dev/full 2>"$TMP/messages"; then
		fail "bpf-compare succeeds on a full disk"
	fi
	grep -q -x 'bpf-compare: .*No space left on device; .*' "$TMP/messages" || fail "$(cat "$TMP/messages")"
	(($(wc -l <"$TMP/messages") == 1)) || fail "$(cat "$TMP/messages")"
	made_up </dev/null
	# shellcheck disable=SC2016 # for the inner shell
	printf '#!/bin/sh\n"%s" "$@"\n[ $1 != %s ] || exit 3\n' "$PBM_PERF" data >"$TMP/fails"
	chmod +x "$TMP/fails"
	fails "fails data: status 3" --perf "$TMP/fails" "$TMP/made-up" "$TMP/made-up"
	sed -i 's/!= data/!= script/' "$TMP/fails"
	fails "fails script: status 3" --perf "$TMP/fails" "$TMP/made-up" "$TMP/made-up"
	"$PBM_PERF" record -q -e cpu-clock,task-clock -o "$TMP/two" true
	fails "no samples of cycles" --event cycles "$TMP/two" "$TMP/two"
	fails "several events; name one with --event: cpu-clock" "$TMP/two" "$TMP/two"
	"$PBM_PERF" record -q -e task-clock -o "$TMP/one" seq 100000 >/dev/null
	fails "different events" "$TMP/one" "$TMP/before"
	fails "JSON does not name events; leave out --event" --event task-clock "$TMP/one" "$TMP/before"
	[[ -z ${PBM_UNPATCHED_PERF:-} ]] ||
		fails "name a perf with the patches" --perf "$PBM_UNPATCHED_PERF" "$TMP/one" "$TMP/one"
}

# The recordings of the page fleet.rst: of 100 comparisons of a build with itself, at most 10 say
# that it costs more. Of 100 comparisons with 30 % more rounds, at least 95 do.
test_kept_recordings()
{
	all_only
	native_only "the test does not depend on the kernel"
	"$SELFTESTS/proof/prove.py" 12 >"$TMP/out" || fail "prove.py failed"
	cat "$TMP/out"
	awk '$2 == 12 { n++; if ($4 > 10 || $6 < 95) exit 1 } END { if (n != 2) exit 1 }' "$TMP/out" ||
		fail "too many false alarms, or too few true ones"
}

run_tests
