#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the tests of the scripts, one file per CPU at a time. Most tests do not build perf. They use a
# "kernel" of a few files whose Makefile copies files, and stubs in place of package tools, network and
# QEMU. tests/package.sh installs the package into a Debian that mmdebstrap makes.
#
#	scripts/test-scripts.sh			all of them, but not package:
#	scripts/test-scripts.sh edit kill	tests whose name has one of the words
#	scripts/test-scripts.sh queue:		tests of scripts/queue
#
# prove prints the result of each file, and the output of each failed test. Exit status: 0 passed, 1 a
# test failed, 2 could not run.

set -euo pipefail

TESTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/tests" && pwd -P)
# The file that prints the results is in the source that scripts/apply-and-build.sh v6.16 has unpacked.
KTAP_HELPERS=$TESTS_DIR/../../out/v6.16/linux/tools/testing/selftests/kselftest/ktap_helpers.sh

die()
{
	echo "test-scripts.sh: error: $1" >&2
	exit 2
}

[[ ${1:-} != -h && ${1:-} != --help ]] || { sed -n '4,/^$/s/^# \{0,1\}//p' "$0"; exit 0; }
# In a test's name, blanks replace the underscores of its function.
PBM_FILTER=$(IFS='|'; echo "${*//_/ }")
export PBM_FILTER KTAP_HELPERS
FILES=()
for FILE in "$TESTS_DIR"/*.sh; do
	[[ -x $FILE && $#:$FILE != 0:*/package.sh ]] || continue
	NAMES=$(PBM_LIST=1 "$FILE") || die "$FILE: its tests cannot be listed"
	[[ $# != 0 && -z $NAMES ]] || FILES+=("$FILE")
done
((${#FILES[@]})) || die "no test matches '$*'"
[[ -r $KTAP_HELPERS ]] || die "no source of v6.16: run scripts/apply-and-build.sh v6.16 first"
exec prove --jobs "$(nproc)" --timer --failures --comments "${FILES[@]}"
