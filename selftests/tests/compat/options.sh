#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The options of perf's commands keep their abbreviations and their errors.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test compares the options of two perfs"
BESIDE=yes

# first_error PERF ARGUMENT...: print the first error, or "status N" if there is none. The last
# argument may be an unknown option, which is the first error if all others are right.
first_error()
{
	local perf=$1 status=0

	shift
	"$perf" "$@" >"$TMP/out" 2>&1 </dev/null || status=$?
	grep -m 1 Error "$TMP/out" || echo "status $status"
}

# Print all abbreviations of the options for BPF events and for metadata keys.
abbreviations()
{
	local option length

	for option in bpf-event no-bpf-event bpf-metadata-keys no-bpf-metadata-keys; do
		for ((length = ${#option}; length > 0; length--)); do
			echo "--${option:0:length}"
		done
	done | sort -u
}

# An abbreviation that unpatched perf accepts still means the same.
test_abbreviated_options()
{
	local command option old new nr=0

	unpatched_perf
	for command in record top diff report inject script "data convert"; do
		for option in $(abbreviations); do
			# shellcheck disable=SC2086 # words of the command
			old=$(first_error "$PBM_UNPATCHED_PERF" $command "$option" --no-such-option)
			[[ $old = *no-such-option* ]] || continue
			# shellcheck disable=SC2086 # words of the command
			new=$(first_error "$PBM_PERF" $command "$option" --no-such-option)
			[[ $new = "$old" ]] || fail "perf $command $option: '$new', not '$old'"
			nr=$((nr + 1))
		done
	done
	echo "$nr abbreviations"
	((nr > 20)) || fail "unpatched perf accepts too few abbreviations"
}

test_a_part_of_several_options_is_refused()
{
	local error

	error=$(first_error "$PBM_PERF" report --bpf-metadata version)
	[[ $error = *"Ambiguous option: bpf-metadata "* ]] || fail "$error"
}

# In perf mem, b is blocked.
test_abbreviated_sort_keys()
{
	local key mode

	unpatched_perf
	for mode in "" --mem-mode; do
		for key in b B bl; do
			# shellcheck disable=SC2086 # no option is no argument
			same_report $mode -s "$key"
			# shellcheck disable=SC2086
			same_report $mode -F "overhead,$key"
		done
	done
}

# same_report OPTION...: perf report of a file without samples says the same as unpatched perf. Both
# list their options and keys after an error.
same_report()
{
	[[ -e $TMP/empty ]] || "$PBM_UNPATCHED_PERF" record -q -e dummy -o "$TMP/empty" -- true
	"$PBM_UNPATCHED_PERF" report --stdio "$@" -i "$TMP/empty" 2>&1 | sed '/Usage:/,$d' >"$TMP/want" || true
	"$PBM_PERF" report --stdio "$@" -i "$TMP/empty" 2>&1 | sed '/Usage:/,$d' >"$TMP/got" || true
	[[ -s $TMP/want ]] || fail "unpatched perf prints nothing"
	same "perf report $*" "$TMP/want" "$TMP/got"
}

# Unpatched perf gets the same options, with -q in place of --bpf-metadata=none.
test_pairs_of_options()
{
	local options=(--no-bpf-event --bpf-metadata=none --all-kernel --all-user) a b old new
	local recording=(record -N -q -e cpu-clock -o "$TMP/options.data")

	unpatched_perf
	for a in "${options[@]}"; do
		for b in "${options[@]}"; do
			set -- "$a" "$b"
			new=$(first_error "$PBM_PERF" "${recording[@]}" "$@" -- true)
			old=$(first_error "$PBM_UNPATCHED_PERF" "${recording[@]}" "${@/--bpf-metadata=none/-q}" -- true)
			echo "$*: $new"
			[[ $new = "$old" ]] || fail "unpatched perf: $old"
		done
	done
}

run_tests
