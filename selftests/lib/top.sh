# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# perf top in the background. Source it after test-lib.sh.

ON_END+=(abandon_top)
TOP=("${LINE_BUFFERED[@]}" "${PBM_PERF-}" top --stdio -d 1)

# start_top OPTION...: start perf top --stdio in the background; its output is $TMP/top
start_top()
{
	: >"$TMP/top"		# or await sees an earlier perf top
	[[ -p $TMP/top-keys ]] || mkfifo "$TMP/top-keys"
	# perf top reads keys from this FIFO. Open both ends, so that perf top does not get an
	# end of file.
	exec {TOP_KEYS}<>"$TMP/top-keys"
	"${TOP[@]}" "$@" <&"$TOP_KEYS" >"$TMP/top" 2>&1 &
	TOP_PID=$!
}

# stop_top: end perf top; fail if it fails
stop_top()
{
	local status=0

	[[ -n ${TOP_PID:-} ]] || return 0
	kill -INT "$TOP_PID" || :
	wait "$TOP_PID" || status=$?
	TOP_PID=
	head -n 40 "$TMP/top"
	((status == 0)) || fail "perf top ends with status $status"
}

# load_and_look ERE: run the workload; succeed if a line in $TMP/top then matches
load_and_look()
{
	"${WORKLOAD[@]}"
	grep -E -q -e "$1" "$TMP/top"
}

abandon_top()
{
	[[ -n ${TOP_PID:-} ]] || return 0
	kill -KILL "$TOP_PID" || :
	head -n 40 "$TMP/top"
}
