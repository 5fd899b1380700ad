#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every perf reads the files of every perf. PBM_PERFS lists the perfs as NAME=PATH, separated by
# blanks. A NAME that ends with -unpatched is a perf without the patches. For each writer and
# reader, the test prints a line "cell:", for the table in Documentation/guide.rst. A perf with
# patches must read everything. For the other perfs, the test only prints the numbers.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test compares how perfs read files"
# The functions of the held programs
FUNCTIONS='bpf_prog_[0-9a-f]*_(busy|multiply|divide|simple)'

count()
{
	grep -c "$@" || :
}

samples_in()
{
	perfdata types "$1" | count -x 9
}

# reads ARGUMENT...: run the reader with its output in $TMP/out; sets STATUS if the reader fails
reads()
{
	local status=0

	timeout $((60 * SCALE)) "$READER" "$@" >"$TMP/out" 2>"$TMP/err" || status=$?
	case $status in
	0)	;;
	124|134|135|136|139) STATUS=died ;;
	*)	[[ $STATUS = died ]] || STATUS=error ;;
	esac
}

# read_all FILE PIPE: sets CELLS to the numbers that the reader finds, and its status
read_all()
{
	STATUS=ok

	reads script -F event -i "$1"
	CELLS=("$(count cpu-clock <"$TMP/out")")
	reads report --stdio -n -s comm --percent-limit 0 -i "$1"
	CELLS+=("$(awk '/^ *[0-9.]+% +[0-9]+ / { n += $2 } END { print n + 0 }' "$TMP/out")")
	reads report -D -i "$1"
	CELLS+=("$(count ' PERF_RECORD_SAMPLE(' <"$TMP/out")")
	reads evlist -i "$1"
	CELLS+=("$(count -x -E 'cpu-clock(:.*)?' <"$TMP/out")")
	rm -f "$TMP/injected" "$TMP/json"
	reads inject -i "$1" -o "$TMP/injected"
	CELLS+=("$(samples_in "$TMP/injected" 2>"$TMP/err" || :)")
	reads data convert --to-json "$TMP/json" -i "$1"
	CELLS+=("$(count '"timestamp"' <"$TMP/json" 2>"$TMP/err")")
	reads script --show-bpf-events -i "$1"
	CELLS+=("$(count -E "PERF_RECORD_BPF_METADATA prog $FUNCTIONS\$" <"$TMP/out")")
	reads script -F event -i - <"$2"
	CELLS+=("$(count cpu-clock <"$TMP/out")")
	reads script --show-bpf-events -i - <"$2"
	CELLS+=("$(count -E "PERF_RECORD_BPF_METADATA prog $FUNCTIONS\$" <"$TMP/out")")
	CELLS+=("$STATUS")
}

# count_all FILE PIPE: sets WANTED to the numbers that perfdata.py finds. perfdata.py shares no code
# with perf.
count_all()
{
	local samples piped sets piped_sets

	samples=$(samples_in "$1") piped=$(samples_in "$2")
	sets=$(perfdata records "$1" | cut -f 1 | count -x -E "$FUNCTIONS")
	piped_sets=$(perfdata records "$2" | cut -f 1 | count -x -E "$FUNCTIONS")
	((samples && piped)) || fail "the writer has recorded nothing"
	WANTED=("$samples" "$samples" "$samples" 1 "$samples" "$samples" "$sets" "$piped" "$piped_sets" ok)
}

# write_and_read NAME PERF: this perf writes, all perfs read
write_and_read()
{
	local item name

	"$2" record -N -q -a -e cpu-clock -o "$TMP/data" -- "${WORKLOAD[@]}"
	"$2" record -N -q -a -e cpu-clock -o - -- "${WORKLOAD[@]}" >"$TMP/piped"
	count_all "$TMP/data" "$TMP/piped"
	for item in $PBM_PERFS; do
		name=${item%%=*} READER=${item#*=}
		read_all "$TMP/data" "$TMP/piped"
		echo "cell:$name|$1|${CELLS[*]}|${WANTED[*]}"
		[[ $name = *-unpatched || "${CELLS[*]}" = "${WANTED[*]}" ]] || BAD+=("of $1 by $name")
	done
}

test_each_perf_reads_files_of_each_perf()
{
	local item

	[[ -n ${PBM_PERFS:-} ]] || skip "PBM_PERFS is not set"
	BAD=()
	hold busy_v1 busy_v2 simple
	spend 0 20000 1 20000
	for item in $PBM_PERFS; do
		write_and_read "${item%%=*}" "${item#*=}"
	done
	((${#BAD[@]} == 0)) || fail "wrong numbers in files ${BAD[*]}"
}

run_tests
