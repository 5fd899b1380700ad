#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the tests of the scripts. They are in scripts/tests/, with files for most scripts. The files
# run in parallel, one per CPU. Most tests do not build perf. They use a "kernel" of a few files
# whose Makefile copies files, and stubs in place of package tools, network and QEMU.
# ktap_helpers.sh, which prints the results, comes from the kernel source that
# scripts/apply-and-build.sh v6.16 has unpacked. The tests of install.sh install the perf of v6.16
# into a Debian that mmdebstrap makes.
#
#	scripts/test-scripts.sh			all of them
#	scripts/test-scripts.sh edit kill	tests whose name has one of the words
#	scripts/test-scripts.sh queue:		tests of scripts/queue
#
# Prints KTAP. Exit status: 0 passed, 1 a test failed, 2 could not run.

set -euo pipefail

TESTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/tests" && pwd -P)
KTAP_HELPERS=$TESTS_DIR/../../out/v6.16/linux/tools/testing/selftests/kselftest/ktap_helpers.sh
export KTAP_HELPERS

# Print the files that have a test whose name matches PBM_FILTER.
list_files()
{
	local file

	find "$TESTS_DIR" -name '*.sh' -perm -u+x | sort | while read -r file; do
		[[ -z $(PBM_LIST=1 "$file") ]] || printf '%s\n' "$file"
	done
}

# Print the results of a file when it has ended. If a file ends with an error but has no failed
# test, it could not run. A shell in the background ignores SIGINT. env resets this for the tests.
run_file()
{
	local name=${1##*/} log=$LOGS/${1##*/} result=ok

	env --default-signal=INT "$1" >"$log" 2>&1 || result="not ok"
	[[ $result = ok ]] || grep -q '^# Totals:.* fail:[1-9]' "$log" || touch "$LOGS/could-not-run"
	{
		flock 9
		echo "$name" >>"$LOGS/ended"
		sed 's/^/  /' "$log"
		echo "$result $(wc -l <"$LOGS/ended") ${name%.sh}"
	} 9>"$LOGS/lock"
}

# count KIND: print the number of these results in all files
count()
{
	cat "$LOGS"/*.sh | sed -n "s/^# Totals:.* $1:\([0-9]*\).*/\1/p" | awk '{ n += $1 } END { print n + 0 }'
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

# In a test's name, blanks replace the underscores of its function.
PBM_FILTER=$(IFS='|'; echo "${*//_/ }")
export PBM_FILTER
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
export LOGS
export -f run_file
echo "KTAP version 1"
echo "1..${#FILES[@]}"
set -m
# shellcheck disable=SC2016 # for the inner shell
xargs -0 -n 1 -P "$(nproc)" bash -c 'run_file "$1"' run_file < <(printf '%s\0' "${FILES[@]}") &
FILES_PID=$!
set +m
trap end_files EXIT
trap 'exit 2' INT TERM
wait "$FILES_PID" || exit 2
echo "# Totals: pass:$(count pass) fail:$(count fail) skip:$(count skip)"
[[ ! -e $LOGS/could-not-run ]] || exit 2
[[ $(count fail) = 0 ]]
