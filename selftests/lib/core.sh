# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs tests. test-lib.sh and scripts/tests/lib.sh use it. The kernel's ktap_helpers.sh
# prints the results.
#
# A test is a function. It runs in a subshell under "set -e": the first command that
# fails ends the test. The output of the test is the diagnosis. The test may call
#
#	fail TEXT		end as failed
#	skip TEXT		end as skipped, because something is missing
#	same NAME WANT GOT	compare the files WANT and GOT, fail with their difference
#
# The last command of a file of tests is
#
#	run_tests		runs all functions test_NAME of the file
#
# A library that sources this file may define
#
#	prepare_tests		once, before the first test
#	start_test, end_test	before and after each test, in its subshell
#
# prepare_tests may call ktap_exit_fail_msg, or ktap_skip_all and exit.
#
# Environment:
#	PBM_FILTER		run only tests whose "FILE: NAME" matches (ERE)
#	PBM_LIST		if set, only list the tests
#	PBM_LACKS, PBM_TAG	a file that lists the tests that do not apply to the tag: a
#				regular expression, a tab and a reason in each line
#
# Reads:
#	KTAP_HELPERS		the path of ktap_helpers.sh
#	PRINT_LOGS		failed: print only the output of failed tests (default: print
#				the output of all tests)
# Sets:
#	TMP			a directory for the test file, removed at the end
#	TEST_FILE		the name of the test file
#
# Exit status: the status of ktap_helpers.sh, 0 if no test failed

set -u
export LC_ALL=C PYTHONUTF8=1 PYTHONDONTWRITEBYTECODE=1

TEST_FILE=$(basename "$0" .sh)
PRINT_LOGS=all

prepare_tests()	{ :; }
start_test()	{ :; }
end_test()	{ :; }

fail()
{
	printf 'failed: %s\n' "$*"
	exit "$KSFT_FAIL"
}

skip()
{
	printf '%s\n' "$*" >"$TMP/skip-reason"
	exit "$KSFT_SKIP"
}

same()
{
	diff -u --label "$1: want" --label "$1: got" "$2" "$3" >"$TMP/diff" && return
	head -n 40 "$TMP/diff"
	fail "$1 differs"
}

title()
{
	local name=${1#test_}

	printf '%s: %s\n' "$TEST_FILE" "${name//_/ }"
}

# With exec, the log also gets what end_test prints after a command has failed.
run_one_test()
(
	exec >"$TMP/log" 2>&1
	trap end_test EXIT
	trap 'exit 143' TERM
	set -eEo pipefail
	shopt -s inherit_errexit
	trap 'echo "failed: $BASH_COMMAND (status $?, in ${FUNCNAME[*]})" >&2' ERR
	rm -f "$TMP/skip-reason"
	start_test
	"$1"
)

# If PBM_LACKS lists the test, write the reason to $TMP/skip-reason and return 0, else return 1.
is_lacking()
{
	local test reason

	rm -f "$TMP/skip-reason"
	while IFS=$'\t' read -r test reason; do
		[[ $1 =~ ^($test)$ ]] || continue
		printf 'does not apply to %s: %s\n' "$PBM_TAG" "$reason" >"$TMP/skip-reason"
		: >"$TMP/log"
		return
	done <"${PBM_LACKS:-/dev/null}"
	return 1
}

# Print the result of a test, and its output.
report_one_test()
{
	local name=$1 status=$2

	# Any command may fail with status 4, but only skip() leaves a reason.
	if [[ $status = "$KSFT_SKIP" && ! -s $TMP/skip-reason ]]; then
		status=$KSFT_FAIL
	fi
	[[ $PRINT_LOGS = failed && $status =~ ^("$KSFT_PASS"|"$KSFT_SKIP")$ ]] || sed 's/^/# /' "$TMP/log"
	case $status in
	"$KSFT_PASS")
		ktap_test_pass "$name" ;;
	"$KSFT_SKIP")
		# ktap_test_skip takes no reason.
		__ktap_test ok "$name" "SKIP $(<"$TMP/skip-reason")"
		KTAP_CNT_SKIP=$((KTAP_CNT_SKIP + 1)) ;;
	*)
		ktap_test_fail "$name" ;;
	esac
}

# Set SELECTED to the selected tests, in the order of the file.
select_tests()
{
	local test

	SELECTED=()
	while read -r test; do
		[[ ! "$(title "$test")" =~ ${PBM_FILTER:-} ]] || SELECTED+=("$test")
	done < <(sed -n 's/^\(test_[A-Za-z0-9_]*\)().*/\1/p' "$0")
}

run_tests()
{
	local test title status

	select_tests
	if [[ -n ${PBM_LIST:-} ]]; then
		for test in "${SELECTED[@]}"; do
			title "$test"
		done
		return
	fi

	# shellcheck source=/dev/null
	. "$KTAP_HELPERS" || exit
	ktap_print_header
	TMP=$(mktemp -d "${TMPDIR:-/tmp}/pbm-$TEST_FILE.XXXXXX")
	trap 'rm -rf "$TMP"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	prepare_tests
	ktap_set_plan "${#SELECTED[@]}"
	for test in "${SELECTED[@]}"; do
		title=$(title "$test")
		if is_lacking "$title"; then
			status=$KSFT_SKIP
		else
			run_one_test "$test"
			status=$?
		fi
		report_one_test "$title" "$status"
	done
	ktap_finished
}
