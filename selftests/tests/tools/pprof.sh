#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/bpf-pprof: "go tool pprof" opens its profiles, and their sums by label
# are those of perf report.

. "$(dirname "$0")/../../lib/report-lib.sh"

PPROF=$SELFTESTS/../tools/bpf-pprof
export PERF=${PBM_PERF-} PPROF_TMPDIR=${TMPDIR:-/tmp}

start_test()
{
	/usr/bin/python3 -c 'import google.protobuf' 2>/dev/null || skip "python3-protobuf is not installed"
}

# converts STATUS TEXT OPTION...: fail unless bpf-pprof ends with this status, and a message has this text.
# Only with status 0 there is a profile.
converts()
{
	local status=0

	"$PPROF" "${@:3}" >"$TMP/profile" 2>"$TMP/messages" || status=$?
	cat "$TMP/messages"
	[[ $status = "$1" ]] || fail "${*:3}: status $status"
	[[ -z $2 ]] || grep -q -F -e "$2" "$TMP/messages" || fail "${*:3}: does not say '$2'"
	[[ $status = 0 || ! -s $TMP/profile ]] || fail "${*:3}: prints a profile"
	if grep -q -v -e '^bpf-pprof: ' -e '^  ' -e '^usage: ' "$TMP/messages"; then
		fail "${*:3}: unexpected messages"
	fi
}

# to_profile OPTION... [FILE]: write $TMP/profile
to_profile()
{
	converts 0 "" "$@"
}

# pprof OPTION...: print a report of the profile
pprof()
{
	command -v go >/dev/null || skip "go is not installed, and pprof is a part of it"
	go tool pprof "$@" "$TMP/profile" 2>"$TMP/pprof.err" || fail "pprof $*: $(cat "$TMP/pprof.err")"
}

# Print COUNT PERIOD of each sample of the profile, a tab, and KEY:[VALUE ...]... of its labels. A
# second event has its COUNT and PERIOD in columns 3 and 4.
raw()
{
	pprof -raw >"$TMP/raw"
	awk '/^Locations/ { exit }
		/^ +[0-9 ]+: [0-9 ]*$/ { if (row) print row; row = $0; sub(/:.*/, "", row); next }
		row && /:\[/ { print row "\t" $0; row = "" }
		END { if (row) print row }' "$TMP/raw" | sed -e 's/\t */\t/' -e 's/^ *//' -e 's/  */ /'
}

# sums_by KEY [COLUMN]: print VALUE<TAB>SUM of the samples with this label
sums_by()
{
	raw | awk -F '\t' -v key="$1" -v column="${2:-2}" '{
		split($1, values, " ")
		text = "N/A"
		if (match($2, "(^| )" key ":\\[[^]]*\\]")) {
			text = substr($2, RSTART, RLENGTH)
			gsub(/^.*\[|\]$/, "", text)
		}
		print text "\t" values[column] }' | sum_up
}

# want KEY LINE...: fail unless these lines VALUE<TAB>PERIOD are the sums by this label
want()
{
	printf '%b\n' "${@:2}" >"$TMP/want"
	sums_by "$1" >"$TMP/got"
	same "periods by $1" "$TMP/want" "$TMP/got"
}

# want_sums FILE: fail unless the sums of the profile are those of perf report, to the nanosecond
want_sums()
{
	local column=1 field

	for field in sample period; do
		rows -s bpf_prog -F "$field,bpf_prog" -i "$1" | sed 's/^\([0-9]*\) [^\t]*/\1/' | sum_up >"$TMP/want"
		sums_by bpf_prog_id $((column++)) >"$TMP/got"
		same "$field by program" "$TMP/want" "$TMP/got"
	done
	rows -s bpf_metadata --bpf-metadata-keys version -F period,bpf_metadata -i "$1" |
		sed 's/^version="\(.*\)"/\1/; s/^([a-z]*)/N\/A/' | sum_up >"$TMP/want"
	sums_by version >"$TMP/got"
	same "periods by version" "$TMP/want" "$TMP/got"
}

test_sums_are_those_of_perf_report()
{
	record_once
	to_profile - <"$TMP/pipe"
	want_sums "$TMP/pipe"
	to_profile <(cat "$TMP/all")
	want_sums "$TMP/all"
	to_profile "$TMP/all"
	want_sums "$TMP/all"
	(($(wc -l <"$TMP/want") > 1)) || fail "no sample has a version"
	# perf may say that the machine was too busy to write all samples.
	if grep 'no metadata' "$TMP/messages"; then
		fail "bpf-pprof finds no metadata"
	fi
	pprof -tags -sample_index=cpu-clock_sample >"$TMP/tags"
	for label in bpf_prog bpf_prog_id owner version; do
		grep -q -E "^ *$label: Total [1-9]" "$TMP/tags" || fail "no $label: $(cat "$TMP/tags")"
	done
	# pprof takes a plain number for a range of numbers, but ids are text. So this is a regular
	# expression.
	pprof -traces -tagfocus "bpf_prog_id=^$(head -n 1 "$TMP/ids")\$" >"$TMP/traces"
	grep -q 'bpf_test_run' "$TMP/traces" || fail "no call chain: $(cat "$TMP/traces")"
}

# The program lines has its cost in three lines of three functions. pprof prints the path of the source.
test_lines_are_those_of_perf_report()
{
	hold lines
	spend 0 40000
	record "$TMP/lines" -g
	to_profile "$TMP/lines"
	rows -s bpf_prog,srcline -F period,bpf_prog,srcline -i "$TMP/lines" |
		sed -n "s/^${HELD_IDS[0]} lines|//p" | grep '^lines\.bpf\.c:' >"$TMP/want"
	pprof -lines -top -nodefraction=0 -edgefraction=0 -unit ns -tagfocus "bpf_prog_id=^${HELD_IDS[0]}\$" >"$TMP/top"
	sed -n 's,^ *\([1-9][0-9]*\)ns .* bpf_prog_[0-9a-f]*_[a-z]* \(.*/\)\?\(lines\.bpf\.c:[0-9]*\)$,\3\t\1,p' "$TMP/top" |
		sum_up >"$TMP/got"
	same "periods by line" "$TMP/want" "$TMP/got"
	grep -q "/progs/lines\.bpf\.c:24" "$TMP/top" || fail "no path: $(cat "$TMP/top")"
}

# All samples have both programs in their call chains.
test_callers()
{
	local option

	made_up <<-'END'
		file.chain = [perfgen.BETA[3] + 16, perfgen.ALPHA[3] + 32, perfgen.BETA[3] + 18]
	END
	for option in "" --callers; do
		# shellcheck disable=SC2086 # no word if it is empty
		to_profile $option "$TMP/made-up"
		want bpf_prog_id '7\t2' '9\t2'
		want_sums "$TMP/made-up"
	done
	# Two programs call a function of the kernel. The innermost one wins. The OpenTelemetry Collector refuses
	# a profile where a sample has two values of one label.
	made_up <<-'END'
		sample = file.sample
		file.chain = [perfgen.BETA[3] + 16, perfgen.ALPHA[3] + 32]
		file.sample = lambda ip: sample(0xffffffff81000000)
	END
	to_profile "$TMP/made-up"
	want bpf_prog_id 'N/A\t4'
	to_profile --callers "$TMP/made-up"
	want bpf_prog_id '9\t4'
	want version '2.0\t4'
	# A program and a function that it calls. Each of them has half of the samples.
	made_up <<-'END'
		beta = perfgen.BETA[3] + 16
		sample = file.sample
		def in_callee(ip):
		    file.chain = [perfgen.ALPHA[3] + 16] if ip == beta else []
		    return sample(0xffffffff81000000 if ip == beta else ip)
		file.chain = []
		file.sample = in_callee
	END
	to_profile "$TMP/made-up"
	want_sums "$TMP/made-up"
	to_profile --callers "$TMP/made-up"
	want bpf_prog_id '7\t4'
}

test_a_program_has_its_name_in_all_its_functions()
{
	made_up <<-'END'
		sub = (7, f"{1:016x}", "sub", 0xffffffffc0010000, [])
		file.infos, file.nr_infos = [], 0
		file.records = lambda: b"".join((file.ksymbol(perfgen.ALPHA), file.ksymbol(sub), file.bpf_event(perfgen.ALPHA),
		                                 samples(perfgen.ALPHA[3] + 16), samples(sub[3] + 16)))
	END
	to_profile --callers "$TMP/made-up"
	want bpf_prog 'alpha\t2'
}

# With -c the samples have no period. cpu-clock has its columns before those of task-clock.
test_two_events()
{
	local FREQUENCY=()

	hold busy_v1
	spend 0 40000
	record "$TMP/two" -e task-clock:k -c 500000
	to_profile "$TMP/two"
	pprof -raw | sed -n '/^Samples:/ { n; p; }' >"$TMP/got"
	grep -q -x 'cpu-clock_sample/count cpu-clock_event/nanoseconds.* task-clock:k_sample/count task-clock:k_event/nanoseconds' \
		"$TMP/got" || fail "sample types: $(cat "$TMP/got")"
	"$PBM_PERF" script -G -F event,period,bpf_prog -i "$TMP/two" |
		awk -v id="${HELD_IDS[0]}" '{ sub(/:.*/, "", $3); n[$2]++; if ($3 == id) sum[$2] += $1 }
			END { print n["task-clock:k:"]; printf "%.0f\n%.0f\n", sum["cpu-clock:"], sum["task-clock:k:"] }' >"$TMP/want"
	{
		raw | awk '{ n += $3 } END { print n }'
		sums_by bpf_prog_id 2 | sed -n "s/^${HELD_IDS[0]}\t//p"
		sums_by bpf_prog_id 4 | sed -n "s/^${HELD_IDS[0]}\t//p"
	} >"$TMP/got"
	same "sums of two events" "$TMP/want" "$TMP/got"
}

# Newlines, quotes, ESC, bytes that are not UTF-8, in names and values. A function imitates lines
# of perf script. A key may have the name of a label.
test_hostile_text()
{
	local text

	made_up <<-'END'
		name = "x ff\n 5 cpu-clock: 9:beta ff\n 5 cpu-clock: 9:y \"\x1b[2J\\"
		perfgen.ALPHA = (*perfgen.ALPHA[:2], name, perfgen.ALPHA[3], [(b"version", b'"1\\u000a2\\"\\u001b x"'),
		    (b"odd", b'"\\n\\ud800"'), (b"bpf_prog_id", b"0"), (b"bpf_prog", b'"own"'), (b"number", b"9" * 5000), (b"list", b'[1,{"a":"\xff"}]')])
		file.infos = [file.prog_info(perfgen.ALPHA, name=name[:15].encode()), file.prog_info(perfgen.BETA)]
		file.block = file.make_block([(perfgen.ALPHA[4], [7]), (perfgen.BETA[4], [9])])
		file.with_records = False
		file.chain = []
	END
	to_profile --callers "$TMP/made-up"
	want bpf_prog_id '7\t2' '9\t2'
	raw >"$TMP/got"
	cat "$TMP/got"
	if grep -a -P '[\x00-\x08\x0b-\x1f\x7f]' "$TMP/raw"; then
		fail "the profile has control characters"
	fi
	for text in 'version:[1\x0a2"\x1b x]' 'odd:["\n\ud800"]' 'bpf_metadata_bpf_prog_id:[0]' 'bpf_metadata_bpf_prog:[own]' \
		"number:[$(printf '9%.0s' {1..5000})]" 'bpf_prog:[x ff\x0a 5 cpu-clock: 9:beta'; do
		grep -q -F -e "$text" "$TMP/got" || fail "no $text"
	done
}

test_recordings_without_metadata()
{
	made_up <<-'END'
		file.block = b""
		file.with_records = False
	END
	to_profile "$TMP/made-up"
	grep -q 'no metadata of BPF programs' "$TMP/messages" || fail "no message"
	want bpf_prog_id '7\t2' '9\t2'
	want bpf_prog 'alpha\t2' 'beta\t2'
	# A program that is not known, and no program at all
	made_up <<-'END'
		file.block = b""
		file.infos, file.nr_infos = [], 0
		file.with_records = False
		file.bpf_event = lambda prog: b""
	END
	to_profile "$TMP/made-up"
	want bpf_prog_id '(unknown)\t4'
	want bpf_prog 'alpha\t2' 'beta\t2'
	"$PBM_PERF" record -q -e cpu-clock -o "$TMP/plain" "${WORKLOAD[@]}"
	to_profile --callers "$TMP/plain"
	if grep 'no metadata' "$TMP/messages"; then
		fail "a message about metadata, although no program has a sample"
	fi
}

test_errors_name_the_next_step()
{
	record_once
	: >"$TMP/empty"
	printf 'no recording' >"$TMP/text"
	converts 2 "see if perf report can read the file" "$TMP/empty"
	converts 2 "see if perf report can read the file" "$TMP/text"
	converts 2 "No such file or directory; correct the path" "$TMP/no-such-file"
	converts 2 "No such file or directory; install perf" --perf "$TMP/no-such-perf" "$TMP/all"
	converts 2 "unrecognized arguments" --no-such-option
	made_up <<<'file.nr_samples = 0'
	converts 1 "no samples" "$TMP/made-up"
	if "$PPROF" "$TMP/all" >/dev/full 2>"$TMP/messages"; then
		fail "bpf-pprof succeeds on a full disk"
	fi
	grep -q 'No space left on device; .*free some space' "$TMP/messages" || fail "$(cat "$TMP/messages")"
	[[ -z ${PBM_UNPATCHED_PERF:-} ]] ||
		converts 2 "name a perf with the patches" --perf "$PBM_UNPATCHED_PERF" "$TMP/all"
}

# Let a script print what perf prints for a file. JSON and SCRIPT change the output of perf data convert and
# perf script with sed.
test_outputs_of_perf_that_differ_are_an_error()
{
	differ()
	{
		converts 2 "$1" --perf "$TMP/cat-perf" "$TMP/made-up"
	}
	made_up </dev/null
	"$PBM_PERF" data convert --force --to-json "$TMP/json" -i "$TMP/made-up" 2>"$TMP/messages"
	"$PBM_PERF" script -G -F period,event,bpf_prog,ip -i "$TMP/made-up" >"$TMP/script" 2>"$TMP/messages"
	cat >"$TMP/cat-perf" <<-END
		#!/bin/sh
		case \$1 in
		data) sed "\$JSON" "$TMP/json"; exit \$JSON_STATUS ;;
		*) sed "\$SCRIPT" "$TMP/script"; exit \$STATUS ;;
		esac
	END
	chmod +x "$TMP/cat-perf"
	export JSON='' SCRIPT='' JSON_STATUS='' STATUS=''
	to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
	SCRIPT='1p' differ "more samples"
	SCRIPT='1d' differ "fewer samples"
	SCRIPT='s/cpu-clock/&\n/; s/[0-9a-f]*$/x/' differ "fewer samples"
	SCRIPT='s/^ *[0-9]* /9223372036854775807 /' differ "does not fit into a profile"
	STATUS=3 differ "cat-perf script: status 3"
	JSON_STATUS=3 differ "cat-perf data: status 3"
	JSON='s/"callchain": \[/"chain": [/; s/"comm"/"callchain": "none"\n&/' \
		differ "a sample has no time or no call chain"
	JSON='s/"ip"/ip/' differ "its JSON is wrong"
	JSON='/^}/d' differ "its JSON is cut off"
	SCRIPT='s/cpu-clock/a\nb/' to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
	pprof -raw >"$TMP/raw"
	grep -q 'a\\x0ab[:A-Z]*_sample/count' "$TMP/raw" || fail "no event with a newline in its name"
	# A function can have lines of several files.
	JSON='0,/"dso"/ { s/"dso"/"srcfile": "a.h", "line": 7, &/; b; }; s/"dso"/"srcfile": "a.c", "line": 8, &/' \
		to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
	pprof -lines -top >"$TMP/top"
	[[ $(grep -c '_alpha a\.\(h:7\|c:8\)$' "$TMP/top") = 2 ]] || fail "$(cat "$TMP/top")"
	# Samples that were recorded without a time. A tracepoint can have a field with the name timestamp.
	JSON='s/"timestamp": [0-9]*/"timestamp": -1/' to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
	pprof -raw >"$TMP/raw"
	! grep -i duration "$TMP/raw" || fail "samples without a time have a duration"
	JSON='s/"comm"/"timestamp": "now",\n&/' to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
}

run_tests
