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

# Each line has a command, which must fail and write nothing, and the error.
test_wrong_options_are_errors()
{
	local command error status

	cd "$TMP"
	write_file file </dev/null
	write_file pipe --pipe </dev/null
	echo '7 - a=b' >lines
	while IFS='|' read -r command error; do
		rm -f out
		status=0
		eval "'$PBM_PERF' $command" >stdout 2>stderr <pipe || status=$?
		# 134 to 136 and 139 are crashes. Other errors of perf have a status above 128, too.
		case $status in
		0|134|135|136|139) fail "status $status: perf $command" ;;
		esac
		[[ ! -s stdout && ! -e out ]] || fail "perf $command fails, but writes output"
		grep -q -F -e "$error" stderr || fail "perf $command does not say '$error': $(cat stderr)"
	done <<-'END'
		report --bpf-metadata version -i file|Ambiguous option: bpf-metadata 
		report -s bpf_metadata --bpf-metadata-keys '' -i file|Bad BPF metadata keys: ''
		report -s bpf_metadata --bpf-metadata-keys ' , ' -i file|Bad BPF metadata keys: ' , '
		report -s bpf_metadata --bpf-metadata-keys a=b -i file|Bad BPF metadata keys: 'a=b'
		report -s sym --bpf-prog-filter x -i file|-prog-filter needs the sort key bpf_prog: add it to -s
		report -s sym --bpf-metadata-filter x -i file|needs the sort key bpf_metadata: add it to -s
		record --bpf-metadata=some -o out true|Unknown BPF metadata mode 'some'. Use all,
		inject --bpf-metadata=some -i file -o out|Unknown BPF metadata mode 'some'. Use all,
		inject --bpf-metadata=header -i file -o -|-add need an output file (-o)
		inject --bpf-metadata=header -i - -o -|-add need an output file (-o)
		inject --bpf-metadata-add lines -i file -o -|-add need an output file (-o)
		inject --bpf-metadata-add lines --bpf-metadata=none -i file -o out|-add can't be combined with
		inject --bpf-metadata-add lines --guest-data=file,1 -i file -o out|-add can't be combined with
		inject --bpf-metadata-add lines --vm-time-correlation=1 --force -i file|can't rewrite a file that is updated
		inject --bpf-metadata-add . -i file -o out|Can't read .: Is a directory
		inject --bpf-metadata-add not-there -i file -o out|Can't read not-there: No such file
		inject --bpf-metadata-names=a --vm-time-correlation=dry-run -i file -o out|-names can't be combined with
		inject --bpf-metadata-names=version --bpf-metadata=none -i file -o out|-names can't be combined with
		inject --bpf-metadata-names=version --bpf-metadata-add=lines -i file -o out|-names can't be combined with
		inject --bpf-metadata-names=version -i - -o opened|-names can't read a pipe. Record to a file.
		inject --bpf-metadata-names=, -i file -o out|Bad BPF metadata keys: ','
	END
}

# In perf mem, b is blocked.
test_abbreviated_sort_keys()
{
	local key mode

	unpatched_perf
	for mode in "" --mem-mode; do
		for key in b B bl; do
			same_report ${mode:+"$mode"} -s "$key"
			same_report ${mode:+"$mode"} -F "overhead,$key"
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
