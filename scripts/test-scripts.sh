#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the tests of the scripts, which are in scripts/tests/, a file for each script.
# Most build no perf: a "kernel" of a few files with a Makefile that copies stands in,
# packages, network and QEMU are stubs in PATH. What prints the results comes with the
# source that scripts/apply-and-build.sh v6.16 has unpacked; what bench.sh measures, and
# what install.sh installs into a Debian of mmdebstrap, is what that script has built.
# All of them take about four minutes.
#
#	scripts/test-scripts.sh			all of them
#	scripts/test-scripts.sh edit kill	those whose name has one of the words
#	scripts/test-scripts.sh bench:		those of bench.sh
#
# Prints KTAP.  Exit status: 0 passed, 1 a test failed, 2 could not run.

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

# Whoever runs this in the background has a shell that ignores interrupts.
run_file()
{
	local line status=0

	while IFS= read -r line; do
		printf '  %s\n' "$line"
		if [[ $line =~ ^'# Totals: pass:'([0-9]+)' fail:'([0-9]+)' '.*' skip:'([0-9]+)' '.*$ ]]; then
			PASSED=$((PASSED + BASH_REMATCH[1]))
			FAILED=$((FAILED + BASH_REMATCH[2]))
			SKIPPED=$((SKIPPED + BASH_REMATCH[3]))
		fi
	done < <(exec env --default-signal=INT "$1" 2>&1)
	wait "$!" || status=$?
	return "$status"
}

# A file that ends with an error but has no failed test could not run.
run_files()
{
	local file name number=0 failed

	echo "KTAP version 1"
	echo "1..$#"
	for file; do
		name=${file##*/} failed=$FAILED
		if run_file "$file"; then
			echo "ok $((++number)) ${name%.sh}"
		else
			echo "not ok $((++number)) ${name%.sh}"
			((FAILED > failed)) || COULD_RUN=no
		fi
	done
	echo "# Totals: pass:$PASSED fail:$FAILED skip:$SKIPPED"
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
trap 'kill "$!" || :; wait "$!" || :; exit 2' INT TERM
run_files "${FILES[@]}"
[[ $COULD_RUN = yes ]] || exit 2
((FAILED == 0))
