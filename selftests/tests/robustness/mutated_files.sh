#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf reads real recordings with random changes. mutate_file.py makes the changes, and checks
# how perf ends and what it prints.
#
# Environment:
#	PBM_MUTATIONS		the number of files (default: 200)
#	PBM_MUTATIONS_SEED	the seed of the random numbers (default: 1)
#	PBM_FINDINGS		a directory for findings and a log (optional)

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test reads changed recordings"

FINDINGS=${PBM_FINDINGS:-}
SEED=${PBM_MUTATIONS_SEED:-1}

# Let perf see only 100 symbols of the kernel, because reading all symbols takes longer than
# everything else.
mutate()
{
	head -n 100 /proc/kallsyms >"$TMP/kallsyms"
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount sh -c 'mount --bind "$1" /proc/kallsyms && shift && exec "$@"' \
		sh "$TMP/kallsyms" python3 -S "$SELFTESTS/lib/mutate_file.py" "$@"
}

# A file and a recording from a pipe, about 50 KB each. They have everything that mutate_file.py
# changes.
record_programs()
{
	hold simple functions busy_v1
	spend "$((${#HELD_IDS[@]} - 1))" 200000
	"$PBM_PERF" record -N -q -g -F 499 -e '{cpu-clock,task-clock}' -o "$TMP/file.data" -- "${WORKLOAD[@]}"
	"$PBM_PERF" record -N -q -g -F 499 -e cpu-clock,task-clock -o - -- "${WORKLOAD[@]}" >"$TMP/pipe.data"
	release
}

# pretend SCRIPT: mutate_file.py runs SCRIPT in place of perf. Findings go to $TMP/{found,out}.
pretend()
{
	printf '#!/bin/sh\n%s\n' "$1" >"$TMP/pretended"
	chmod +x "$TMP/pretended"
	mkdir -p "$TMP/found"
	PBM_SANITIZED=0 mutate run "$TMP/pretended" 1 "$TMP/found" "$TMP/file.data" 2>"$TMP/out"
}

must_find()
{
	local status=0

	pretend "$1" || status=$?
	[[ $status = 1 ]] || fail "status $status of: $1: $(cat "$TMP/out")"
	grep -F -e "$2" "$TMP/out" || fail "no finding '$2': $(cat "$TMP/out")"
	[[ -s $TMP/found/1-0.data && -s $TMP/found/1-0.txt ]] || fail "the finding isn't kept"
	rm -r "$TMP/found"
}

test_mutations_are_the_same_each_time()
{
	local number

	record_programs
	for number in {0..19}; do
		mutate write "$TMP/file.data" "$SEED" "$number" "$TMP/one" >"$TMP/changes"
		mutate write "$TMP/file.data" "$SEED" "$number" "$TMP/two" | diff -u "$TMP/changes" -
		cmp "$TMP/one" "$TMP/two"
		[[ -s $TMP/changes ]] || fail "number $number changes nothing"
	done
}

test_errors_of_a_fake_perf_are_found()
{
	record_programs
	# shellcheck disable=SC2016 # for the fake perf
	must_find 'kill -SEGV $$' "dies from signal 11"
	must_find 'exec head -c 100M /dev/zero' "writes more than 64 MiB"
	PBM_TIME_LIMIT=2 must_find 'exec sleep 1000' "takes more than"
	pretend 'echo error; exit 1' || fail "finds an error: $(cat "$TMP/out")"
}

test_perf_reads_mutated_recordings()
{
	local path=${FINDINGS:-$TMP/findings}

	all_only
	record_programs
	mkdir -p "$path"
	mutate run "$PBM_PERF" "${PBM_MUTATIONS:-200}" "$path" "$TMP/file.data" "$TMP/pipe.data" \
		--seed="$SEED" 2>&1 | tee "$path/log" ||
		fail "see above${FINDINGS:+ and $FINDINGS}"
}

run_tests
