#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run perf's own tests, "perf test", all of them, with the patches and without, and
# compare the results. Both perfs have to be built:
#
#	scripts/apply-and-build.sh v6.16
#	scripts/apply-and-build.sh --no-patches v6.16
#	scripts/compare-perf-test.sh v6.16

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"

print_usage()
{
	cat <<END
usage: scripts/compare-perf-test.sh [options] TAG

Runs "perf test" of out/TAG/perf and of out/TAG-unpatched/perf, and compares their
results, test by test. A test with two results runs again, alone, with both perfs:
it is a difference only if the results never agree. Run it as root, so that tests are
not skipped because of missing privileges. What the perfs print is in out/TAG/perf-test/.
TAG is one of: $(pin__list | paste -s -d ' ')

  --repeat N        how often such a test runs again (default: 3)
  --timeout SECONDS for all tests of one perf (default: 3600)
  --quiet           only differences and the last line
  -h, --help        this text

Exit status: 0 no difference, 1 a difference, 2 could not run.
END
}

# Each perf has a home of its own. Shell tests find perf under that name.
prepare()
{
	local side dir

	for side in patched unpatched; do
		dir=$REPO_DIR/out/$TAG
		[[ $side = patched ]] || dir+=-unpatched
		[[ -x $dir/perf && -d $dir/linux/tools/perf ]] ||
			die "$dir/perf is not built" "run scripts/apply-and-build.sh, for the unpatched one with --no-patches"
		mkdir -p -- "$RUN_DIR/$side/bin" "$RUN_DIR/$side/tmp"
		ln -s -- "$dir/perf" "$RUN_DIR/$side/bin/perf"
		ln -s -- "$dir/linux/tools/perf" "$RUN_DIR/$side/tree"
		printf '[buildid]\n\tdir = %s\n' "$RUN_DIR/$side/debug" >"$RUN_DIR/$side/perfconfig"
	done
}

# perf_test SIDE OUTPUT [SUITE]: perf finds its shell tests from its source directory.
perf_test()
{
	local dir=$RUN_DIR/$1 status=0

	HOME=$dir TMPDIR=$dir/tmp PERF_CONFIG=$dir/perfconfig env -C "$dir/tree" \
		timeout --kill-after=10 "$OPT_TIMEOUT" "$dir/bin/perf" test "${@:3}" >"$2" 2>&1 || status=$?
	((status != 124 && status != 137))
}

run_all()
{
	local side

	for side in patched unpatched; do
		run_logged "perf test, $side" perf_test "$side" "$LOGS_DIR/$side.log" ||
			die "perf test, $side: not done after $OPT_TIMEOUT s" "see $LOGS_DIR/$side.log, or give it more --timeout"
		awk -f "$SCRIPTS_DIR/lib/perf-test.awk" "$LOGS_DIR/$side.log" >"$RUN_DIR/$side.results"
		[[ -s $RUN_DIR/$side.results ]] || die "perf test, $side: no result" "see $LOGS_DIR/$side.log"
	done
}

# NAME, both results and both suites; "-" where a perf has no such test
join_results()
{
	awk -F '\t' -v OFS='\t' '
		NR == FNR { result[$1] = $2; suite[$1] = $3; next }
		{ print $1, $2, ($1 in result ? result[$1] : "-"), $3, suite[$1]; delete result[$1] }
		END { for (name in result) print name, "-", result[name], "-", "-" }' \
		"$RUN_DIR/unpatched.results" "$RUN_DIR/patched.results" | sort
}

# result_alone SIDE SUITE NAME
result_alone()
{
	perf_test "$1" "$RUN_DIR/alone" "$2" || :
	cat "$RUN_DIR/alone" >>"$LOGS_DIR/$1.log"
	awk -f "$SCRIPTS_DIR/lib/perf-test.awk" "$RUN_DIR/alone" |
		awk -F '\t' -v name="$3" '$1 == name { print $2; found = 1 } END { if (!found) print "none" }'
}

# agrees_alone NAME SUITE UNPATCHED-SUITE
agrees_alone()
{
	local i result

	for ((i = 0; i < OPT_REPEAT; i++)); do
		result=$(result_alone patched "$2" "$1")
		[[ $result = none || $result != $(result_alone unpatched "$3" "$1") ]] || return 0
	done
	return 1
}

compare()
{
	local name patched unpatched suite unpatched_suite same=0 differ=0

	while IFS=$'\t' read -r name patched unpatched suite unpatched_suite; do
		if [[ $patched = "$unpatched" ]]; then
			same=$((same + 1))
		elif [[ $unpatched = - && $patched != FAILED! ]]; then
			msg "note    only patched: $name ($patched)"
		elif [[ $patched != - && $unpatched != - ]] && agrees_alone "$name" "$suite" "$unpatched_suite"; then
			msg "note    the same when alone: $name ($patched, unpatched $unpatched)"
			same=$((same + 1))
		else
			printf 'FAILED  %s (%s, unpatched %s)\n' "$name" "$patched" "$unpatched"
			differ=$((differ + 1))
		fi
	done < <(join_results)
	printf '%d the same, %d different\n' "$same" "$differ"
	((!differ)) || end_failed
}

OPT_REPEAT=3 OPT_TIMEOUT=3600
options__parse "$@" <<-'END'
	--repeat:	OPT_REPEAT
	--timeout:	OPT_TIMEOUT
	--quiet		PBM_QUIET	1
END
pin__check_tag "$TAG"
[[ $OPT_REPEAT =~ ^[0-9]+$ ]] || die_usage "--repeat $OPT_REPEAT: not a number"
[[ $OPT_TIMEOUT =~ ^[1-9][0-9]*$ ]] || die_usage "--timeout $OPT_TIMEOUT: not a number from 1 up"
LOGS_DIR=$REPO_DIR/out/$TAG/perf-test
RUN_DIR=$(mktemp -d "${TMPDIR:-/tmp}/pbm-perf-test.XXXXXX")
on_exit rm -rf -- "$RUN_DIR"
prepare
mkdir -p -- "$LOGS_DIR"
take_lock "$LOGS_DIR/lock" "$LOGS_DIR"
run_all
compare
