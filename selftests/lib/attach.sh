# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Programs that are attached to perf events and other hooks (attach.c). Source it after test-lib.sh.

# start_attach: start attach (see attach.c), which runs until the test ends
start_attach()
{
	declare -gA MAP_IDS=()
	declare -g PROGRAM_ID PROGRAM_NAME
	coproc HOLDER { exec "$OUTPUT/attach"; }
}

# try_ask COMMAND...: the same; if the answer is an error, return 1 and set ERROR. Send attach a
# command, and read its answer.
# shellcheck disable=SC2034 # the tests use the variables
try_ask()
{
	local word first second

	echo "$*" >&"${HOLDER[1]}"
	LINK_IDS=() ERROR=
	while read -r -t $((60 * SCALE)) -u "${HOLDER[0]}" word first second; do
		case $word in
		ok)	return 0 ;;
		error)	ERROR="$first $second"; return 1 ;;
		program) PROGRAM_ID=$first PROGRAM_NAME=$second ;;
		map)	MAP_IDS[$second]=$first ;;
		link)	LINK_IDS+=("$first") ;;
		*)	fail "attach says: $word $first $second" ;;
		esac
	done
	fail "attach does not answer"
}

# ask COMMAND...: send attach a command. The answer sets PROGRAM_ID, PROGRAM_NAME, MAP_IDS[NAME] and LINK_IDS
ask()
{
	try_ask "$@" || fail "$ERROR"
}
