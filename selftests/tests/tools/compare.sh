#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/bpf-compare: its costs are those of perf report, its intervals are right, and
# its exit status can stop a CI job.

. "$(dirname "$0")/../../lib/report-lib.sh"

COMPARE=$SELFTESTS/../tools/bpf-compare
export PERF=${PBM_PERF-}

# compares STATUS TEXT OPTION...: fail unless bpf-compare ends with STATUS, and its output or a message
# contains TEXT. Write $TMP/{out,messages}.
compares()
{
	local status=0

	"$COMPARE" "${@:3}" >"$TMP/out" 2>"$TMP/messages" || status=$?
	cat "$TMP/out" "$TMP/messages"
	[[ $status = "$1" ]] || fail "${*:3}: status $status"
	if grep -q -v -e '^bpf-compare: ' -e '^  ' -e '^usage: ' "$TMP/messages"; then
		fail "${*:3}: unexpected messages"
	fi
	grep -q -F -e "$2" "$TMP/out" "$TMP/messages" || fail "bpf-compare does not print '$2'"
}

# fails TEXT OPTION...: fail unless bpf-compare ends with status 2, no output, and TEXT in a message
fails()
{
	compares 2 "$@"
	[[ ! -s $TMP/out ]] || fail "${*:2}: prints output"
}

# samples FILE SECONDS [SEED [START [HOST]]] <<END: write JSON, as perf data convert does, of samples at
# random times. Each line of the input has the rate per second, then id, name and metadata of a program,
# then perhaps a tab and JSON for the frame.
samples()
{
	native_only "the test does not depend on the kernel"
	python3 - "$1" "$2" "${3:-0}" "${4:-0}" "${5:-vm}" 3<&0 <<-'END'
		import json, random, sys
		path, seconds, seed, start, host = sys.argv[1:]
		seconds, chance = float(seconds), random.Random(seed)
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
		    json.dump({"headers": {"hostname": host, "arch": "x86_64"},
		               "samples": [{"timestamp": 10**14 + int(float(start) * 1e9) + when, "callchain": [frame]}
		                           for when, frame in sorted(times, key=lambda pair: pair[0])],
		               "bpf-metadata": programs}, file, indent="\t")
		    file.write("\n")
	END
}

# value EXPRESSION: print a value of the JSON output, where r is the first of the rows
value()
{
	python3 -c 'import json, sys
out = json.load(open(sys.argv[1])); rows = out["rows"]; r = rows[0]
print(eval(f"({sys.argv[2]})"))' "$TMP/out" "$1"
}

# wants EXPRESSION OPTION...: fail unless the expression is true for the JSON output
wants()
{
	compares 0 "" --json "${@:2}"
	[[ $(value "$1") = True ]] || fail "this is not true: $1"
}

# write_all BEFORE AFTER: write four recordings of each side, with these lines for samples. Sets ALL.
write_all()
{
	local i

	for i in 1 2 3 4; do
		samples "$TMP/before$i" 20 "$i" <<<"$1"
		samples "$TMP/after$i" 20 "x$i" <<<"$2"
	done
	ALL=(--before "$TMP"/before[1-4] --after "$TMP"/after[1-4])
}

# two_builds BEFORE-RATE AFTER-RATE: the same for two versions of a program
two_builds()
{
	write_all "$1 7 count {\"version\": \"1.0\"}" "$2 8 count {\"version\": \"2.0\"}"
}

# The JSON of perf gives the same rows, in samples. The samples of lines are those of perf report, too, and
# the text is that of the source.
test_costs_are_those_of_perf_report()
{
	local shown='[(r["program"], r["keys"], r["before_samples"]) for r in rows]'

	hold busy_v1 busy_v2 lines
	spend 0 1000 1 3000 2 1000
	# shellcheck disable=SC2016 # for the inner shell
	WORKLOAD=(sh -c 'for _ in $(seq 100); do "$@"; sleep 0.1; done' sh "${WORKLOAD[@]}")
	record "$TMP/real" -g
	rows -s bpf_prog -F sample,bpf_prog -i "$TMP/real" | sed -n 's/^[0-9]* \(busy.*\)\t/\1\t/p' | sum_up >"$TMP/want"
	wants 'all(r["change"] == 0 and r["low"] < 0 < r["high"] for r in rows if not r["problem"]) and
		out["unit"] == "ms of CPU time per second of recording" and
		sum(r["with_calls"] for r in rows) * 2 == len(rows)' "$TMP/real" "$TMP/real"
	value '"\n".join("%s\t%d" % (r["program"], r["before_samples"]) for r in rows if not r["with_calls"])' |
		grep '^busy' >"$TMP/got"
	same "samples of perf report" "$TMP/want" "$TMP/got"
	wants '[r["keys"]["version"] for r in rows if not r["with_calls"]] == ["1.0", "2.0"]' \
		--program busy --keys version "$TMP/real" "$TMP/real"
	value "$shown" >"$TMP/want"
	"$PBM_PERF" data convert --force --to-json "$TMP/json" -i "$TMP/real" 2>"$TMP/messages"
	gzip -k "$TMP/json"
	wants 'out["unit"] == "samples per second of recording"' \
		--program busy --keys version "$TMP/json" "$TMP/json.gz"
	value "$shown" >"$TMP/got"
	same "rows of the JSON" "$TMP/want" "$TMP/got"

	rows -s bpf_prog,srcline -F sample,bpf_prog,srcline -i "$TMP/real" |
		sed -n "s/^${HELD_IDS[2]} lines|lines\.bpf\.c:\([0-9]*\)\t/\1\t/p" | awk '$2 >= 100' >"$TMP/want"
	wants '{r["code"] for r in rows if r.get("after_lines") in ([15], [24])} == {"x = x * 5 + 3;"}' \
		--lines --program lines "$TMP/real" "$TMP/real"
	value '"\n".join("%d\t%d" % (r["after_lines"][0], r["after_samples"]) for r in rows if r["line"])' | sort >"$TMP/got"
	same "samples by line" "$TMP/want" "$TMP/got"
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
		before = [1 + x * math.sqrt(0.05) for x in (-1, -1, 0, 1, 1)]
		ratio, low, high = compare.interval(before, [2 * value for value in before], 0.95)
		assert abs(ratio - 2) < 1e-9 and abs(math.log(high / 2) - 2.306 * math.sqrt(0.02)) < 0.0002, (ratio, low, high)
		assert abs(low * high - 4) < 1e-9
	END
}

# If there is only one recording of each side, bpf-compare cuts each recording into slices.
test_fail_on_decides_the_exit_status()
{
	two_builds 50 100
	compares 0 "count 1.0 -> 2.0" "${ALL[@]}"
	compares 0 "1 of 1 rows compared: 1 cost more, 0 cost less" "${ALL[@]}"
	compares 1 " % more; the limit is 10 %" --fail-on 10% "${ALL[@]}"
	compares 0 "" --fail-on 150% "${ALL[@]}"
	compares 0 "0 cost more, 1 cost less" --fail-on 0% --before "$TMP"/after[1-4] --after "$TMP"/before[1-4]
	compares 1 "costs at least" --fail-on 10% --before "$TMP"/before[1-3] --after "$TMP"/after[1-2] --after "$TMP/after3"
	compares 1 "costs at least" --fail-on 10% --json "${ALL[@]}"
	value '"%+.1f%%  %+.1f..%+.1f%%" % (100 * r["change"], 100 * r["low"], 100 * r["high"])' >"$TMP/want"
	compares 0 "$(<"$TMP/want")" "${ALL[@]}"
	compares 0 "" --fail-on 0% --before "$TMP"/before[1-4] --after "$TMP"/before[1-4]
	# What cannot be compared must not pass.
	fails "1 before and 1 after are too few recordings" --fail-on 10% "$TMP/before1" "$TMP/after1"
	fails "at least 3 of each build, recorded by turns" --before "$TMP"/before[12] --after "$TMP"/after[1-4]
	compares 2 "no row could be compared; record for a longer time" --fail-on 10% --program other "${ALL[@]}"
	compares 2 "other was not compared" --fail-on 150% --program count --program other "${ALL[@]}"
	compares 0 "The machine may have changed between the two recordings" "$TMP/before1" "$TMP/after1"
	wants 'out["slices"] == 20 and r["low"] > 0.5' "$TMP/before1" "$TMP/after1"
	samples "$TMP/short" 9 <<<'50 7 count {}'
	fails "slices need at least 10 s" "$TMP/short" "$TMP/after1"
	fails "slices need at least 10 s" "$TMP/before1" "$TMP/short"
	two_builds 0.2 100
	compares 2 " samples, not 20" --fail-on 10% "${ALL[@]}"
	compares 2 " samples, not 20" --fail-on 10% --before "$TMP"/after[1-4] --after "$TMP"/before[1-4]
}

# The variance is between the recordings: one recording that differs makes the interval wide.
test_the_variance_between_recordings()
{
	two_builds 100 130
	compares 1 "costs at least" --fail-on 5% "${ALL[@]}"
	samples "$TMP/after4" 20 1 <<<'300 7 count {"version": "2.0"}'
	wants 'out["slices"] is None' --fail-on 5% "${ALL[@]}"
	# A recording where the program is not loaded does not count.
	samples "$TMP/none" 20 1 <<<'100 9 other {}'
	wants 'abs(r["before"] - 100) < 10' --program count \
		--before "$TMP"/before[1-4] "$TMP/none" --after "$TMP"/after[1-4]
	compares 2 "in 2 recordings, not 3" --before "$TMP"/before[12] "$TMP/none" --after "$TMP"/after[1-4]
}

# build_of_lines SHIFT: print lines for samples(), with source lines
build_of_lines()
{
	local rate line function text

	while IFS='|' read -r rate line function text; do
		printf '%s 7 count {}\t{"symbol": "bpf_prog_0123456789abcdef_%s", "srcfile": "/src/count.c", "line": %s, "srccode": "%s"}\n' \
			"$rate" "$function" "$line" "$text"
	done <<-END
		$((50 + 50 * $1))|$((12 + $1))|parse|\tx = f(x);
		$((250 - 50 * $1))|$((20 + $1))|count|x = f(x);
		50|$((30 + $1))|count|
		0.1|40|count|rare();
		$((20 * $1)).0001|50|count|new();
	END
	echo '30 7 count {}'
}

# Equal lines of two functions are two rows. What cost a line has more, another has less.
test_lines()
{
	local row level ends

	write_all "$(build_of_lines 0)" "$(build_of_lines 3)"
	compares 0 "" "${ALL[@]}" --lines
	for row in '  parse:12 -> 15: x = f(x);' '  count:20 -> 23: x = f(x);' '  count:30: line 30 of count.c' \
		'  count:33: line 33 of count.c' '  count:50: new();' '  (unknown)'; do
		grep -q -F -x -e "$row" <(cut -c 1-34 "$TMP/out" | sed 's/ *$//') || fail "no row '$row'"
	done
	! grep 'rare' "$TMP/out" || fail "a row of a line with few samples"
	wants 'not r["line"] and [r.get("code") for r in rows][1:3] == ["x = f(x);"] * 2 and
		{r["function"]: r["low"] > 1.5 for r in rows if r.get("code") == "x = f(x);"} ==
			{"parse": True, "count": False} and
		[r["before_lines"] + r["after_lines"] for r in rows if r.get("function") == "parse"] == [[12, 15]] and
		[r["problem"] for r in rows if r.get("code") == "new();"] == ["0 samples, not 20"]' "${ALL[@]}" --lines
	# With N rows that have an interval, its level is that of one row with 1/N of the error.
	level=$(value '100 - 5 / sum(not r["problem"] for r in rows)')
	ends=$(value '[r["low"], r["high"]]')
	wants "len(rows) == 1 and all(abs(a - b) < 1e-6 for a, b in zip([r['low'], r['high']], $ends))" \
		"${ALL[@]}" --level "$level"
	# A line that costs more is no reason to fail.
	compares 0 "" "${ALL[@]}" --lines --fail-on 50%
	two_builds 50 100
	compares 0 "no sample has a source line; build the programs with clang -g" "${ALL[@]}" --lines
}

# Three recordings of each side, 100 s from one to the next, start with these distances. The times of two
# hosts have no common start.
test_order_of_recordings()
{
	local before after host message i

	while IFS='|' read -r before after host message; do
		for i in 1 2 3; do
			samples "$TMP/before$i" 20 "$i" $((100 * i + before)) <<<'50 7 count {}'
			samples "$TMP/after$i" 20 "x$i" $((100 * i + after)) "$host" <<<'50 8 count {}'
		done
		compares 0 "$message" --before "$TMP"/before[1-3] --after "$TMP"/after[1-3]
		[[ -n $message || ! -s $TMP/messages ]] || fail "a message without a reason"
	done <<-END
		0|50|vm|
		0|150|vm|
		0|350|vm|record by turns
		350|0|vm|record by turns
		0|350|other|
	END
}

# Programs that are in only one recording, or have few samples.
test_rows()
{
	samples "$TMP/a" 60 1 <<-'END'
		50 1 both {"version": "1.0", "owner": "x"}
		40 2 old {"version": "1.0", "owner": ["a",true]}
		0.01 3 rare {}
	END
	samples "$TMP/b" 60 2 <<-'END'
		30 4 both {"version": "1.1", "owner": "x"}
		20 5 both {"version": "1.2", "owner": "y"}
		40 6 new {}
		0.01 7 rare {}
	END
	wants '{r["program"]: r["problem"] for r in rows if r["program"] != "rare"} ==
			{"both": None, "new": "new", "old": "gone"} and r["after_versions"] == ["1.1", "1.2"]' "$TMP/a" "$TMP/b"
	compares 0 "both 1.0 -> 1.1,1.2" "$TMP/a" "$TMP/b"
	wants '[(r["keys"]["owner"], r["problem"]) for r in rows if r["program"] == "both"] == [("x", None), ("y", "new")]' \
		--keys owner "$TMP/a" "$TMP/b"
	wants 'sorted(r["program"] for r in rows) == ["both", "old"]' \
		--program both --program ol --program old "$TMP/a" "$TMP/a"
	wants 'r["after_versions"] == ["[\"a\",true]"] == [r["keys"]["owner"]]' \
		--program old --version-key owner --keys owner,owner "$TMP/a" "$TMP/a"
	# A program of which nothing is known
	sed -i 's/"bpf-prog-id": 2$/"bpf-prog-id": 8, "symbol": "lost"/' "$TMP/a"
	wants 'r["before_versions"] == ["(unknown)"]' --program lost "$TMP/a" "$TMP/a"
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
	wants '[r["with_calls"] for r in rows] == [False]' "$TMP/a" "$TMP/b"
	# A program that calls itself counts once.
	wants '[r["with_calls"] for r in rows] == [False, True] and len({r["before_samples"] for r in rows}) == 1' \
		"$TMP/a" "$TMP/a"
	# The caller has no samples of its own, but a row with its name.
	chain "$TMP/b" '"ip": "0x20", "bpf-prog-id": 9, "symbol": "caller"'
	wants 'sorted((r["program"], r["with_calls"]) for r in rows) == [("caller", True), ("count", False), ("count", True)]' \
		"$TMP/b" "$TMP/b"
	compares 0 "" "$TMP/b" "$TMP/b"
	grep -A 1 '^caller (unknown)$' "$TMP/out" | grep -q '^  with the functions' || fail "no name above the row of the caller"
	# A file in user space has the name of a program.
	chain "$TMP/c" '"ip": "0x20", "symbol": "main", "dso": "bpf_prog_0011223344556677_x"'
	wants '{r["program"] for r in rows} == {"count"}' "$TMP/c" "$TMP/c"
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
	wants 'abs(r["before"] - 300 / 19.9) < 1e-6 and out["unit"] == "ms of CPU time per second of recording"' \
		"$TMP/made-up" "$TMP/made-up"
	compares 0 "alpha 1.2.3                            15.08" "$TMP/made-up" "$TMP/made-up"
	sed -i 's/3000000/0/' "$TMP/change.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/change.py" "$TMP/made-up"
	compares 2 "periods of 0" "$TMP/made-up" "$TMP/made-up"
}

# A file of runs has the output of "bpftool -j prog show" once or twice. The second build costs
# twice as much per second, but runs twice as often, so a run costs the same.
test_runs()
{
	local both=(--runs-before "$TMP/runs-before" --runs-after "$TMP/runs-after" "$TMP/before" "$TMP/after")
	local wrong='bpftool -j prog show' text message

	samples "$TMP/before" 60 1 <<<'50 7 count {}'
	samples "$TMP/after" 60 2 <<<'100 8 count {}'
	echo '[{"id": 1, "run_cnt": 5}, {"id": 7, "run_cnt": 1000, "run_time_ns": 1}]' >"$TMP/runs-before"
	echo '[{"id": 8, "run_cnt": 500}][{"id": 8, "run_cnt": 2500}]' >"$TMP/runs-after"
	wants 'abs(r["change"]) < 0.1 and r["low"] < 0 < r["high"] and out["unit"] == "samples per run" and
		abs(r["before"] * 1000 - r["before_samples"]) < 1 and abs(r["after"] * 2000 - r["after_samples"]) < 1' "${both[@]}"
	echo '[{"id": 1, "run_cnt": 5}]' >"$TMP/runs-before"
	compares 2 "no runs counted" "${both[@]}"
	while IFS='|' read -r text message; do
		echo "$text" >"$TMP/runs-before"
		fails "$message" "${both[@]}"
	done <<-END
		|$wrong
		{}|$wrong
		[1]|$wrong
		x|$wrong
		[{"id": 7, "run_cnt": "x"}]|$wrong
		[{"id": 7}]|kernel.bpf_stats_enabled
		[{"id": 8, "run_cnt": 2500}][{"id": 8, "run_cnt": 500}]|put the output from before the recording first
	END
	fails "a file of runs for each recording" --runs-before "$TMP/runs-after" "$TMP/before" "$TMP/after"
	# A program that cpu-clock can't sample
	samples "$TMP/before" 60 1 <<<$'50 7 count {}\n0.0001 9 unseen {}'
	echo '[{"id": 7, "run_cnt": 1000}, {"id": 9, "run_cnt": 4000}]' >"$TMP/runs-before"
	compares 0 "before: unseen ran 4000 times, but has no sample; see bpf-compare(1)" "${both[@]}"
	! grep 'after:\|count ran' "$TMP/messages" || fail "a message about a program that has samples"
	# One of two programs was unloaded before bpftool ran.
	samples "$TMP/before" 60 1 <<<$'50 7 count {}\n50 9 count {}'
	echo '[{"id": 7, "run_cnt": 1000}]' >"$TMP/runs-before"
	compares 2 "no runs counted" "${both[@]}"
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
	compares 1 "costs at least" --json --fail-on 50% "${runs[@]}" "${ALL[@]}"
	wants 'abs(r["before"] - 1) < 0.1 and abs(r["after"] - 2) < 0.1' "${runs[@]}" "${ALL[@]}"
}

test_the_table_fits_a_terminal()
{
	samples "$TMP/a" 60 1 <<-'END'
		100 1 al\u001b[2Jpha\n {"version": "0123456789abcdef\u001b[2J"}
		0.0001 2 with_a_name_that_takes_more_than_the_column {"version": "1.0"}
		900 3 xdp {}
	END
	compares 0 "" "$TMP/a" "$TMP/a"
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
	"$PBM_PERF" record -q -e cpu-clock,task-clock -o "$TMP/two" true
	fails "no samples of cycles" --event cycles "$TMP/two" "$TMP/two"
	fails "several events; name one with --event: cpu-clock" "$TMP/two" "$TMP/two"
	"$PBM_PERF" record -q -e task-clock -o "$TMP/one" seq 100000 >/dev/null
	fails "different events" "$TMP/one" "$TMP/before"
	fails "JSON does not name events; leave out --event" --event task-clock "$TMP/one" "$TMP/before"
}

# The numbers of the kept recordings are those in fleet.rst.
test_false_and_missed_alarms_are_as_documented()
{
	native_only "the test does not depend on the kernel"
	sed -n 's/, without turns//; /^\(idle\|busy\) /p' "$SELFTESTS/../Documentation/fleet.rst" |
		tr -s ' ' >"$TMP/want"
	"$SELFTESTS/proof/prove.py" | sed 1d | tr -s ' ' >"$TMP/got"
	same "alarms of 100 comparisons" "$TMP/want" "$TMP/got"
}

run_tests
