#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the tests of the scripts, which are in scripts/tests/, a file for each script. As many
# files as there are CPUs run side by side. Most build no perf: a "kernel" of a few files
# with a Makefile that copies, and stubs of package tools, network and QEMU, replace the
# real ones. The kernel's ktap_helpers.sh comes from the source that
# scripts/apply-and-build.sh v6.16 has unpacked. install.sh installs the perf of that
# script into a Debian of mmdebstrap.
#
#	scripts/test-scripts.sh			all of them
#	scripts/test-scripts.sh edit kill	tests whose name has one of the words
#	scripts/test-scripts.sh carry:		tests of carry.py
#
# Prints KTAP. Exit status: 0 passed, 1 a test failed, 2 could not run.

set -euo pipefail

TESTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/tests" && pwd -P)
KTAP_HELPERS=$TESTS_DIR/../../out/v6.16/linux/tools/testing/selftests/kselftest/ktap_helpers.sh
export KTAP_HELPERS

# Print the files that have such a test.
list_files()
{
	local file

	find "$TESTS_DIR" -name '*.sh' -perm -u+x | sort | while read -r file; do
		[[ -z $(PBM_LIST=1 "$file") ]] || printf '%s\n' "$file"
	done
}

# Each file writes NAME.log and then NAME.status in $LOGS. A shell in the background
# ignores interrupts, and the tests must not.
start_files()
{
	set -m
	# shellcheck disable=SC2016 # for the inner shell
	printf '%s\0' "$@" | env --default-signal=INT xargs -0 -n 1 -P "$(nproc)" bash -c '
		name=$0/${1##*/} status=0
		"$1" >"$name.log" 2>&1 || status=$?
		echo "$status" >"$name.part" && mv "$name.part" "$name.status"' "$LOGS" &
	FILES_PID=$!
	set +m
}

await_file()
{
	until [[ -e $LOGS/$1.status ]]; do
		kill -0 "$FILES_PID" 2>/dev/null || [[ -e $LOGS/$1.status ]] || exit 2
		sleep 0.2
	done
}

# count KIND LOG: in the totals of the log
count()
{
	sed -n "s/^# Totals:.* $1:\([0-9]*\).*/\1/p" "$2" | grep . || echo 0
}

# A file that ends with an error but has no failed test could not run.
print_file()
{
	local name=$1 number=$2 log=$LOGS/$1.log failed

	sed 's/^/  /' "$log"
	failed=$(count fail "$log")
	PASSED=$((PASSED + $(count pass "$log"))) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + $(count skip "$log")))
	if [[ $(<"$LOGS/$name.status") = 0 ]]; then
		echo "ok $number ${name%.sh}"
	else
		echo "not ok $number ${name%.sh}"
		((failed)) || COULD_RUN=no
	fi
}

run_files()
{
	local file number=0

	echo "KTAP version 1"
	echo "1..$#"
	start_files "$@"
	for file; do
		await_file "${file##*/}"
		print_file "${file##*/}" "$((++number))"
	done
	echo "# Totals: pass:$PASSED fail:$FAILED skip:$SKIPPED"
}

end_files()
{
	kill -- "-$FILES_PID" 2>/dev/null || :
	wait "$FILES_PID" || :
	rm -rf -- "$LOGS"
}

case ${1:-} in
-h|--help)
	sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
	exit 0 ;;
esac

# A name has blanks where the function has underscores.
PBM_FILTER=$(IFS='|'; echo "${*//_/ }")
export PBM_FILTER
PASSED=0 FAILED=0 SKIPPED=0 COULD_RUN=yes
mapfile -t FILES < <(list_files)
if ((${#FILES[@]} == 0)); then
	echo "test-scripts.sh: error: no test matches '$*'" >&2
	exit 2
fi
if [[ ! -r $KTAP_HELPERS ]]; then
	echo "test-scripts.sh: error: no source of v6.16: run scripts/apply-and-build.sh v6.16 first" >&2
	exit 2
fi
LOGS=$(mktemp -d "${TMPDIR:-/tmp}/pbm-tests.XXXXXX")
trap end_files EXIT
trap 'exit 2' INT TERM
run_files "${FILES[@]}"
[[ $COULD_RUN = yes ]] || exit 2
((FAILED == 0))
