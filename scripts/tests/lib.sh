# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by the tests of the scripts. What a test is, and what ends it, is in
# selftests/lib/core.sh; each test begins with an empty directory $TMP/t. It may call
#
#	expect_status STATUS COMMAND...	run it, keep what it prints in $PRINTED
#	refuses SCRIPT ARGUMENT...	it ends with status 2, and says what is wrong
#	printed TEXT			fail unless $PRINTED has it
#	holds FILE REGEX		fail unless the file has such a line
#	absent FILE			fail if it is there
#	ends_with STATUS		wait for $HANGING, which runs in the background
#
# Sets:
#	SCRIPTS_DIR			scripts/

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=selftests/lib/core.sh
. "$SCRIPTS_DIR/../selftests/lib/core.sh"
# shellcheck disable=SC2034 # core.sh reads it
PRINT_LOGS=failed

start_test()
{
	rm -rf -- "$TMP/t"
	mkdir -- "$TMP/t"
}

expect_status()
{
	local wanted=$1 status=0

	shift
	PRINTED=$("$@" 2>&1) || status=$?
	printf '%s\n' "--- $* ($status)" "$PRINTED"
	((status == wanted)) || fail "status $status, not $wanted"
}

refuses()
{
	expect_status 2 "$SCRIPTS_DIR/$1.sh" "${@:2}"
	[[ -n $PRINTED ]] || fail "$1.sh ${*:2}: says nothing"
}

printed()
{
	[[ $PRINTED = *"$1"* ]] || fail "not printed: $1"
}

holds()
{
	grep -q -- "$2" "$1" || fail "$1 does not hold: $2"
}

absent()
{
	[[ ! -e $1 ]] || fail "$1 is there"
}

# 128 and the signal, if one ended it
ends_with()
{
	local status=0

	wait "$HANGING" || status=$?
	((status == $1)) && return
	cat "$TMP"/t/*.log
	fail "it ended with status $status, not $1"
}
