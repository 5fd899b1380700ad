# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by the tests of the scripts. selftests/lib/core.sh explains what a test is. Each test
# begins with an empty directory $TMP/t.

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

# expect_status STATUS COMMAND...: run the command, set $PRINTED to its output, and fail unless it ends
# with this status
expect_status()
{
	local status=0

	PRINTED=$("${@:2}" 2>&1) || status=$?
	printf '%s\n' "--- ${*:2} ($status)" "$PRINTED"
	((status == $1)) || fail "status $status, not $1"
}

# refuses SCRIPT ARGUMENT...: fail unless the script prints an error and ends with 2
refuses()
{
	expect_status 2 "$SCRIPTS_DIR/$1.sh" "${@:2}"
	[[ -n $PRINTED ]] || fail "$1.sh ${*:2}: prints nothing"
}

printed()
{
	[[ $PRINTED = *"$1"* ]] || fail "not printed: $1"
}

# holds FILE REGEX
holds()
{
	grep -q -- "$2" "$1" || fail "$1 does not hold: $2"
}

absent()
{
	[[ ! -e $1 ]] || fail "$1 is there"
}

# in_background COMMAND...: start it in a process group of its own, whose number is $HANGING
in_background()
{
	rm -f "$TMP/t/background.log"
	set -m
	"$@" > "$TMP/t/background.log" 2>&1 &
	HANGING=$!
	set +m
}

# await COMMAND...: try it until it succeeds, or fail after 20 seconds
await()
{
	local end=$((SECONDS + 20))

	until "$@"; do
		((SECONDS < end)) || fail "not within 20 s: $*"
		sleep 0.1
	done
}

# ends_with STATUS: fail unless the process $HANGING in the background ends with this status. After a
# signal, the status is 128 plus the number of the signal.
ends_with()
{
	local status=0

	wait "$HANGING" || status=$?
	((status == $1)) && return
	cat "$TMP"/t/*.log
	fail "the script ended with status $status, not $1"
}
