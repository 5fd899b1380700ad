#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Other perfs read files of this perf, and vice versa. matrix.sh counts what each perf reads, also from pipes.
# The block is the metadata in the header of perf.data.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

NATIVE_ONLY="the test compares how perfs read files"
PERFPARSER=$(find /usr/lib -path '*libexec/hotspot-perfparser' 2>/dev/null | head -n 1)
# All versions of perf print these fields in the same way.
FIELDS=comm,tid,cpu,time,event,period,ip

# record_with PERF FILE OPTION...: record all CPUs and the workload.
record_with()
{
	PBM_PERF=$1 record "${@:2}"
}

held()
{
	hold busy_v1 busy_v2 simple
	spend 0 20000 1 20000
}

# Tests of files of this perf share these: with all metadata, with the block only, and the latter without the
# block
record_once()
{
	[[ ! -e $TMP/without ]] || return 0
	held
	record "$TMP/all"
	record "$TMP/header" --bpf-metadata=header
	perfdata block "$TMP/header" >"$TMP/want-block"
	[[ -s $TMP/want-block ]] || fail "no block"
	perfdata strip-block "$TMP/header" "$TMP/without"
	touch -r "$TMP/header" "$TMP/without"
}

# clean PERF ARGUMENT...: run this command, with the output in $TMP/out. The command must succeed
# and print no warning.
clean()
{
	# The caller may redirect the output.
	"$@" >"$TMP/out" 2>"$TMP/err" </dev/null || fail "$*: status $?: $(cat "$TMP/err")" >&2
	grep -v -e '^$' -e '^\[ perf data convert: ' "$TMP/err" >"$TMP/complaints" || :
	[[ ! -s $TMP/complaints ]] || fail "$* warns: $(cat "$TMP/complaints")" >&2
	drop_tips "$TMP/out"
}

# samples PERF FILE: print the samples that PERF finds in FILE.
samples()
{
	clean "$1" script -F "$FIELDS" -i "$2"
	grep -q ' cpu-clock' "$TMP/out" || fail "$1 sees no sample in $2"
	cat "$TMP/out"
}

# read_everywhere PERF FILE [WRITER]: each command of PERF must find the samples that WRITER (default: this
# perf) finds in FILE.
read_everywhere()
{
	local perf=$1 file=$2

	samples "${3:-$PBM_PERF}" "$file" >"$TMP/samples"
	samples "$perf" "$file" >"$TMP/got"
	same "samples of $perf" "$TMP/samples" "$TMP/got"
	clean "$perf" report --stdio -s sym -i "$file"
	grep -q -E '^# Samples: [1-9]' "$TMP/out" || fail "$perf report shows no samples of $file"
	clean "$perf" evlist -i "$file"
	grep -q -x cpu-clock "$TMP/out" || fail "$perf evlist shows $(cat "$TMP/out")"
	rm -rf "$TMP/json"
	clean "$perf" data convert --to-json "$TMP/json" --force -i "$file"
	[[ $(grep -c '"timestamp"' "$TMP/json") = $(grep -c ' cpu-clock' "$TMP/samples") ]] ||
		fail "$perf data convert does not write all samples"
	clean "$perf" inject -i "$file" -o "$TMP/injected"
	samples "$PBM_PERF" "$TMP/injected" >"$TMP/got"
	same "samples after $perf inject" "$TMP/samples" "$TMP/got"
}

# --- other perfs read files of this perf --------------------------------------

# ignores_the_block PERF: PERF must print the same about a file and its copy without the block.
ignores_the_block()
{
	local perf=$1 command file

	record_once
	while read -r command; do
		for file in without header; do
			cp -p "$TMP/$file" "$TMP/perf.data"
			# shellcheck disable=SC2086 # words of the command
			clean "$perf" $command -i "$TMP/perf.data"
			without_vdso_names <"$TMP/out" >"$TMP/$file-out"
		done
		same "$command" "$TMP/without-out" "$TMP/header-out"
	done <<-END
		script
		script --show-bpf-events
		report --stdio
		report --stdio --header
		report -D
		evlist -v
	END
	read_everywhere "$perf" "$TMP/header"
	perfdata block "$TMP/injected" >"$TMP/got-block"
	same "block after $perf inject" "$TMP/want-block" "$TMP/got-block"
}

test_old_perf_ignores_the_block()	{ old_perf; ignores_the_block "$PBM_OLD_PERF"; }
test_unpatched_perf_ignores_the_block()	{ unpatched_perf; ignores_the_block "$PBM_UNPATCHED_PERF"; }
test_peer_perf_ignores_the_block()	{ peer_perf; ignores_the_block "$PBM_PEER_PERF"; }

# complains ERE PERF ARGUMENT...: run this command, with the output in $TMP/out and $TMP/err. The
# command must print an error or warning that matches, and must not crash.
complains()
{
	local complaint=$1 status=0

	shift
	"$@" >"$TMP/out" 2>"$TMP/err" </dev/null || status=$?
	# Crashes, and commands that did not start. Errors of perf can be above 128, too.
	case $status in
	126|127|134|135|136|139) fail "$*: status $status: $(cat "$TMP/err")" ;;
	esac
	grep -q -E -e "$complaint" "$TMP/err" || fail "$* does not say '$complaint': $(cat "$TMP/err")"
}

# The guide describes what older perfs do. If this test fails, change the guide.
test_old_perf_refuses_records_and_reads_the_file_after_inject()
{
	old_perf
	record_once
	complains ': failed to process type: 84 ' "$PBM_OLD_PERF" report --stdio -i "$TMP/all"
	if grep -q -E '^# Samples: [1-9]' "$TMP/out"; then
		fail "old perf reads the file: $(head -n 20 "$TMP/out")"
	fi
	the_remedy_helps "$PBM_OLD_PERF" "$TMP/all"
}

test_unpatched_perf_loses_samples_and_reads_the_file_after_inject()
{
	local nr

	unpatched_perf
	# Unpatched perf skips each record twice, so it goes on inside the second record, which is
	# longer.
	hold keys_1 simple
	record "$TMP/lost"
	complains '^Unsupported header type 84,' "$PBM_UNPATCHED_PERF" script -F "$FIELDS" -i "$TMP/lost"
	nr=$(grep -c ' cpu-clock' "$TMP/out") || :
	((nr < $(samples "$PBM_PERF" "$TMP/lost" | wc -l))) || fail "no sample is lost"
	the_remedy_helps "$PBM_UNPATCHED_PERF" "$TMP/lost"
}

# the_remedy_helps PERF FILE: PERF reads what perf inject makes of FILE
the_remedy_helps()
{
	clean "$PBM_PERF" inject --bpf-metadata=header -i "$2" -o "$TMP/remedy"
	read_everywhere "$1" "$TMP/remedy"
	samples "$PBM_PERF" "$2" >"$TMP/want"
	same "samples after perf inject" "$TMP/want" "$TMP/samples"
}

# show_metadata PERF FILE: print the metadata that PERF finds in FILE.
show_metadata()
{
	clean "$1" script --show-bpf-events -i "$2"
	grep -A 300 PERF_RECORD_BPF_METADATA "$TMP/out" |
		sed -n 's/.*\(PERF_RECORD_BPF_METADATA.*\)/\1/p; /^  entry /p'
}

# same_metadata FILE WRITER READER: READER finds the metadata that WRITER finds in FILE, and this perf finds
# it in the copy that READER has injected.
same_metadata()
{
	show_metadata "$2" "$1" >"$TMP/want"
	grep -q 'version = "1.0"' "$TMP/want" || fail "no metadata in $1"
	show_metadata "$3" "$1" >"$TMP/got"
	same "metadata" "$TMP/want" "$TMP/got"
	show_metadata "$PBM_PERF" "$TMP/injected" >"$TMP/got"
	same "metadata after $3 inject" "$TMP/want" "$TMP/got"
}

test_peer_perf_reads_records()
{
	peer_perf
	record_once
	read_everywhere "$PBM_PEER_PERF" "$TMP/all"
	same_metadata "$TMP/all" "$PBM_PERF" "$PBM_PEER_PERF"
}

# Hotspot has a reader of its own for perf.data.
test_hotspot_ignores_the_block()
{
	local file

	[[ -n $PERFPARSER ]] || { all_only; skip "hotspot is not installed"; }
	record_once
	for file in without header; do
		cp -p "$TMP/$file" "$TMP/perf.data"
		"$PERFPARSER" --input "$TMP/perf.data" --output "$TMP/$file-out"
		[[ -s $TMP/$file-out ]] || fail "hotspot prints nothing"
	done
	same "output of hotspot" "$TMP/without-out" "$TMP/header-out"
}

# --- this perf reads files of other perfs -------------------------------------

reads_files_of()
{
	local perf=$1

	held
	record_with "$perf" "$TMP/theirs"
	read_everywhere "$PBM_PERF" "$TMP/theirs" "$perf"
	clean "$PBM_PERF" report --stdio -s bpf_prog,bpf_metadata -i "$TMP/theirs"
	grep -q -w busy "$TMP/out" || fail "no program in $(cat "$TMP/out")"
	record_with "$perf" - >"$TMP/piped"
	"$PBM_PERF" script -F "$FIELDS" -i - <"$TMP/piped" >"$TMP/got"
	grep -q ' cpu-clock' "$TMP/got" || fail "no sample in a pipe of $perf"
}

test_files_of_old_perf()	{ old_perf; reads_files_of "$PBM_OLD_PERF"; }
test_files_of_unpatched_perf()	{ unpatched_perf; reads_files_of "$PBM_UNPATCHED_PERF"; }

test_files_of_peer_perf()
{
	peer_perf
	reads_files_of "$PBM_PEER_PERF"
	same_metadata "$TMP/theirs" "$PBM_PEER_PERF" "$PBM_PERF"
}

# With one CPU, the file has a range of CPUs whose first and last numbers are the same.
test_both_perfs_read_files_of_perf_stat_record()
{
	local writer reader options

	unpatched_perf
	while read -r writer reader options; do
		# shellcheck disable=SC2086 # several options
		"${!writer}" stat record $options -o "$TMP/stat" -e task-clock true
		"${!reader}" stat report -i "$TMP/stat" >"$TMP/out" 2>&1 || fail "$reader: $(cat "$TMP/out")"
		grep -w task-clock "$TMP/out" || fail "$reader shows no count of $writer: $(cat "$TMP/out")"
	done <<-'END'
		PBM_PERF		PBM_PERF
		PBM_PERF		PBM_PERF		-C 0
		PBM_PERF		PBM_UNPATCHED_PERF
		PBM_UNPATCHED_PERF	PBM_PERF
	END
}

# In a pipe of another version of perf, the end mark of the features may have another number.
test_events_in_a_pipe_of_peer_perf_are_grouped()
{
	peer_perf
	"$PBM_PEER_PERF" record -N -q -e cpu-clock,task-clock "${FREQUENCY[@]}" -o - -- "${WORKLOAD[@]}" >"$TMP/piped"
	"$PBM_PERF" report --stdio --group -i - <"$TMP/piped" >"$TMP/out"
	grep -q -E "^# Samples: .* of events 'cpu-clock, task-clock'" "$TMP/out" || fail "no group: $(cat "$TMP/out")"
}

run_tests
