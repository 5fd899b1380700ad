#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/bpf-pprof: "go tool pprof" opens its profiles, and their sums by label
# are those of perf report.

. "$(dirname "$0")/../../lib/report-lib.sh"

PPROF=$SELFTESTS/../tools/bpf-pprof
export PERF=${PBM_PERF-} PPROF_TMPDIR=${TMPDIR:-/tmp}

# to_profile OPTION... [FILE]: write $TMP/profile
to_profile()
{
	python3_has_protobuf
	"$PPROF" "$@" >"$TMP/profile" 2>"$TMP/messages" || fail "status $?: $(cat "$TMP/messages")"
	if grep -i traceback "$TMP/messages"; then
		fail "bpf-pprof prints a traceback"
	fi
}

python3_has_protobuf()
{
	/usr/bin/python3 -c 'import google.protobuf' 2>/dev/null || skip "python3-protobuf is not installed"
}

# fails STATUS TEXT OPTION...: bpf-pprof ends with this status and a message with this text, and
# prints no profile
fails()
{
	local status=0

	python3_has_protobuf
	"$PPROF" "${@:3}" >"$TMP/profile" 2>"$TMP/messages" || status=$?
	cat "$TMP/messages"
	[[ $status = "$1" ]] || fail "${*:3}: status $status"
	grep -q -F -e "$2" "$TMP/messages" || fail "${*:3}: does not say '$2'"
	[[ ! -s $TMP/profile ]] || fail "${*:3}: prints a profile"
	if grep -q -v -e '^bpf-pprof: ' -e '^  ' -e '^usage: ' "$TMP/messages"; then
		fail "${*:3}: unexpected messages"
	fi
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

# sums_by KEY [COLUMN]: print VALUE<TAB>SUM of the samples with this label. Values have no blanks.
sums_by()
{
	raw | awk -F '\t' -v key="$1" -v column="${2:-2}" '{
		split($1, values, " ")
		if (match($2, "(^| )" key ":\\[[^]]*\\]")) {
			text = substr($2, RSTART, RLENGTH)
			sub(/^.*\[/, "", text); sub(/\]$/, "", text)
		} else
			text = "N/A"
		n = split(text, parts, " ")
		for (i = 1; i <= n; i++)
			print parts[i] "\t" values[column] }' | sum_up
}

# want_sums FILE: fail unless the sums of the profile are those of perf report, to the nanosecond
want_sums()
{
	rows -s bpf_prog -F period,bpf_prog -i "$1" | sed 's/^\([0-9]*\) [^\t]*/\1/' | sum_up >"$TMP/want"
	sums_by bpf_prog_id >"$TMP/got"
	same "periods by program" "$TMP/want" "$TMP/got"
	rows -s bpf_prog -F sample,bpf_prog -i "$1" | sed 's/^\([0-9]*\) [^\t]*/\1/' | sum_up >"$TMP/want"
	sums_by bpf_prog_id 1 >"$TMP/got"
	same "samples by program" "$TMP/want" "$TMP/got"
	rows -s bpf_metadata --bpf-metadata-keys version -F period,bpf_metadata -i "$1" |
		sed 's/^version="\(.*\)"/\1/; s/^([a-z]*)/N\/A/' | sum_up >"$TMP/want"
	sums_by version >"$TMP/got"
	same "periods by version" "$TMP/want" "$TMP/got"
}

test_sums_are_those_of_perf_report()
{
	record_once
	to_profile "$TMP/all"
	want_sums "$TMP/all"
	(($(wc -l <"$TMP/want") > 1)) || fail "no sample has a version"
	# perf may say that the machine was too busy to write all samples.
	if grep 'no metadata' "$TMP/messages"; then
		fail "bpf-pprof finds no metadata"
	fi
}

test_a_pipe_and_standard_input()
{
	record_once
	to_profile - <"$TMP/pipe"
	want_sums "$TMP/pipe"
	to_profile <(cat "$TMP/all")
	want_sums "$TMP/all"
}

test_pprof_groups_by_label()
{
	local label version count period

	record_once
	to_profile "$TMP/all"
	sums_by version 1 >"$TMP/counts"
	sums_by version >"$TMP/periods"
	pprof -tags -sample_index=cpu-clock_sample >"$TMP/tags"
	for label in bpf_prog bpf_prog_id owner version; do
		grep -q -E "^ *$label: Total [1-9]" "$TMP/tags" || fail "no $label: $(cat "$TMP/tags")"
	done
	while read -r version count; do
		# Other programs of this machine may run, too.
		[[ $version = [12].0 ]] || continue
		grep -q -E "^ *$count(\\.0)? .*%\): $version\$" "$TMP/tags" || fail "not $count of $version: $(cat "$TMP/tags")"
		pprof -top -unit ns -tagfocus "version=^$version\$" >"$TMP/top"
		period=$(sed -n "s/^$version\t//p" "$TMP/periods")
		grep -q "Showing nodes accounting for ${period}ns," "$TMP/top" || fail "not $period ns: $(cat "$TMP/top")"
		grep -q -E '^ *[1-9][0-9]*ns .* bpf_prog_[0-9a-f]*_(busy|multiply|divide)$' "$TMP/top" || fail "no function: $(cat "$TMP/top")"
	done <"$TMP/counts"
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

# have_one_value: fail if a sample has two values of one label. The OpenTelemetry Collector refuses such a profile.
have_one_value()
{
	raw | cut -f 2 | tr ' ' '\n' | grep -v ':\[.*\]$' >"$TMP/several" || return 0
	fail "several values of a label: $(cat "$TMP/several")"
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
		printf '7\t2\n9\t2\n' >"$TMP/want"
		sums_by bpf_prog_id >"$TMP/got"
		same "with '$option'" "$TMP/want" "$TMP/got"
		want_sums "$TMP/made-up"
		have_one_value
	done
	# Two programs call a function of the kernel. The innermost one wins.
	made_up <<-'END'
		sample = file.sample
		file.chain = [perfgen.BETA[3] + 16, perfgen.ALPHA[3] + 32]
		file.sample = lambda ip: sample(0xffffffff81000000)
	END
	to_profile "$TMP/made-up"
	printf 'N/A\t4\n' >"$TMP/want"
	sums_by bpf_prog_id >"$TMP/got"
	same "without --callers" "$TMP/want" "$TMP/got"
	to_profile --callers "$TMP/made-up"
	printf '9\t4\n' >"$TMP/want"
	sums_by bpf_prog_id >"$TMP/got"
	same "with --callers" "$TMP/want" "$TMP/got"
	printf '2.0\t4\n' >"$TMP/want"
	sums_by version >"$TMP/got"
	same "versions with --callers" "$TMP/want" "$TMP/got"
	have_one_value
}

# A program and a function that it calls. Each of them has half of the samples.
test_callers_of_a_function_outside_of_programs()
{
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
	printf '7\t4\n' >"$TMP/want"
	sums_by bpf_prog_id >"$TMP/got"
	same "with --callers" "$TMP/want" "$TMP/got"
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
	report -s bpf_prog -F period,bpf_prog -t '|' -i "$TMP/two" |
		sed -n "s/^ *\([0-9]*\) *| *${HELD_IDS[0]} .*/\1/p" >"$TMP/got"
	sed 1d "$TMP/want" >"$TMP/want-periods"
	same "sums of perf report" "$TMP/want-periods" "$TMP/got"
}

# Newlines, quotes, ESC, bytes that are not UTF-8, in names and values. A function may imitate a line
# of perf script. A key may have the name of a label.
test_hostile_text()
{
	made_up <<-'END'
		name = "al\npha: 7:x \"\x1b[2J\\"
		perfgen.ALPHA = (*perfgen.ALPHA[:2], name, perfgen.ALPHA[3], [(b"version", b'"1\\u000a2\\"\\u001b x"'),
		    (b"odd", b'"\\n\\ud800"'), (b"bpf_prog_id", b"0"), (b"bpf_prog", b'"own"'), (b"number", b"9" * 5000), (b"list", b'[1,{"a":"\xff"}]')])
		file.infos = [file.prog_info(perfgen.ALPHA, name=name[:15].encode()), file.prog_info(perfgen.BETA)]
		file.block = file.make_block([(perfgen.ALPHA[4], [7]), (perfgen.BETA[4], [9])])
		file.with_records = False
		file.chain = []
	END
	to_profile --callers "$TMP/made-up"
	raw >"$TMP/got"
	cat "$TMP/got"
	if grep -a -P '[\x00-\x08\x0b-\x1f\x7f]' "$TMP/raw"; then
		fail "the profile has control characters"
	fi
	[[ $(grep -c 'bpf_prog_id:\[[79]\]' "$TMP/got") = 2 ]] || fail "not two programs"
	grep -q -F 'version:[1\x0a2"\x1b x]' "$TMP/got" || fail "no version"
	grep -q -F 'odd:["\n\ud800"]' "$TMP/got" || fail "no value with other escapes than perf's"
	grep -q -F 'bpf_metadata_bpf_prog_id:[0]' "$TMP/got" || fail "no key with the name of a label"
	grep -q -F 'bpf_metadata_bpf_prog:[own]' "$TMP/got" || fail "no key with the name of the other label"
	grep -q 'number:\[9\{5000\}\]' "$TMP/got" || fail "no long number"
	grep -q -F 'bpf_prog:[al\x0apha:' "$TMP/got" || fail "no name of the program"
}

# perf script prints no blanks in the name, so bpf-pprof takes no line of the name for a sample.
test_a_name_that_imitates_samples()
{
	made_up <<-'END'
		name = "x ff\n 5 cpu-clock: 9:beta ff\n 5 cpu-clock: 9:y"
		perfgen.ALPHA = (*perfgen.ALPHA[:2], name, *perfgen.ALPHA[3:])
	END
	to_profile "$TMP/made-up"
	printf '7\t2\n9\t2\n' >"$TMP/want"
	sums_by bpf_prog_id >"$TMP/got"
	same "samples by program" "$TMP/want" "$TMP/got"
}

test_recordings_without_metadata()
{
	made_up <<-'END'
		file.block = b""
		file.with_records = False
	END
	to_profile "$TMP/made-up"
	grep -q 'no metadata of BPF programs' "$TMP/messages" || fail "no message"
	printf '7\t2\n9\t2\n' >"$TMP/want"
	sums_by bpf_prog_id >"$TMP/got"
	same "samples by program" "$TMP/want" "$TMP/got"
	sums_by bpf_prog >"$TMP/got"
	printf 'alpha\t2\nbeta\t2\n' >"$TMP/want"
	same "samples by name" "$TMP/want" "$TMP/got"
	# A program that is not known, and no program at all
	made_up <<-'END'
		file.block = b""
		file.infos, file.nr_infos = [], 0
		file.with_records = False
		file.bpf_event = lambda prog: b""
	END
	to_profile "$TMP/made-up"
	printf '(unknown)\t4\n' >"$TMP/want"
	sums_by bpf_prog_id >"$TMP/got"
	same "unknown programs" "$TMP/want" "$TMP/got"
	printf 'alpha\t2\nbeta\t2\n' >"$TMP/want"
	sums_by bpf_prog >"$TMP/got"
	same "names of unknown programs" "$TMP/want" "$TMP/got"
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
	fails 2 "see if perf report can read the file" "$TMP/empty"
	fails 2 "see if perf report can read the file" "$TMP/text"
	fails 2 "No such file or directory; correct the path" "$TMP/no-such-file"
	fails 2 "No such file or directory; install perf" --perf "$TMP/no-such-perf" "$TMP/all"
	fails 2 "unrecognized arguments" --no-such-option
	made_up <<-'END'
		file.nr_samples = 0
	END
	fails 1 "no samples" "$TMP/made-up"
	# The output of perf is cut off.
	printf '#!/bin/sh\n"%s" "$@" | head -c 60000\n' "$PBM_PERF" >"$TMP/cut-perf"
	chmod +x "$TMP/cut-perf"
	fails 2 "; see if perf report" --perf "$TMP/cut-perf" "$TMP/all"
	if "$PPROF" "$TMP/all" >/dev/full 2>"$TMP/messages"; then
		fail "bpf-pprof succeeds on a full disk"
	fi
	grep -q 'No space left on device; .*free some space' "$TMP/messages" || fail "$(cat "$TMP/messages")"
	[[ -z ${PBM_UNPATCHED_PERF:-} ]] ||
		fails 2 "name a perf with the patches" --perf "$PBM_UNPATCHED_PERF" "$TMP/all"
}

# keep_output FILE: write $TMP/cat-perf, which prints what perf prints for this file
keep_output()
{
	"$PBM_PERF" data convert --force --to-json "$TMP/json" -i "$1" 2>"$TMP/messages"
	"$PBM_PERF" script -G -F period,event,bpf_prog,ip -i "$1" >"$TMP/script" 2>"$TMP/messages"
	cat >"$TMP/cat-perf" <<-END
		#!/bin/sh
		case \$1 in data) cat "$TMP/json" ;; *) cat "$TMP/script" ;; esac
	END
	chmod +x "$TMP/cat-perf"
}

test_outputs_of_perf_that_differ_are_an_error()
{
	made_up </dev/null
	keep_output "$TMP/made-up"
	to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
	cp "$TMP/script" "$TMP/whole"
	head -n 1 "$TMP/whole" >>"$TMP/script"
	fails 2 "more samples" --perf "$TMP/cat-perf" "$TMP/made-up"
	sed 1d "$TMP/whole" >"$TMP/script"
	fails 2 "fewer samples" --perf "$TMP/cat-perf" "$TMP/made-up"
	sed 's/cpu-clock/a\nb/' "$TMP/whole" >"$TMP/script"
	to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
	pprof -raw >"$TMP/raw"
	grep -q 'a\\x0ab[:A-Z]*_sample/count' "$TMP/raw" || fail "no event with a newline in its name"
	sed 's/cpu-clock/&\n/; s/[0-9a-f]*$/x/' "$TMP/whole" >"$TMP/script"
	fails 2 "fewer samples" --perf "$TMP/cat-perf" "$TMP/made-up"
	sed 's/^ *[0-9]* /9223372036854775807 /' "$TMP/whole" >"$TMP/script"
	fails 2 "does not fit into a profile" --perf "$TMP/cat-perf" "$TMP/made-up"
	# Samples that were recorded without a time
	sed -i.times 's/"timestamp": [0-9]*/"timestamp": -1/' "$TMP/json"
	cp "$TMP/whole" "$TMP/script"
	to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
	mv "$TMP/json.times" "$TMP/json"
	# A tracepoint can have fields with the names timestamp and callchain.
	cp "$TMP/whole" "$TMP/script"
	sed -i 's/"comm"/"timestamp": "now",\n&/' "$TMP/json"
	to_profile --perf "$TMP/cat-perf" "$TMP/made-up"
	sed -i 's/"timestamp": "now"/"callchain": "none"/; s/"callchain": \[/"chain": [/' "$TMP/json"
	fails 2 "a sample has no time or no call chain" --perf "$TMP/cat-perf" "$TMP/made-up"
	sed -i 's/"chain": \[/"callchain": [/; s/"ip"/ip/' "$TMP/json"
	fails 2 "its JSON is wrong" --perf "$TMP/cat-perf" "$TMP/made-up"
}

# Run a command three times. Print the least seconds of user time and the least KB of memory.
costs()
{
	/usr/bin/python3 - "$@" <<-'END'
		import os, sys
		best = [1e9, 1e9]
		for _ in range(3):
		    pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
		                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
		    _, status, usage = os.wait4(pid, 0)
		    if status:
		        sys.exit("the command failed")
		    best = [min(best[0], usage.ru_utime), min(best[1], usage.ru_maxrss)]
		print("%.2f %d" % tuple(best))
	END
}

# A benchmark: it measures CPU time. With four times the samples, bpf-pprof takes at most 6 times the time, and, as the call chains are
# the same, at most 1.2 times the memory.
test_time_is_linear_and_memory_is_constant()
{
	local n

	native_only "the test measures time"
	all_only
	python3_has_protobuf
	for n in 10000 40000; do
		made_up <<-END
			file.chain = [perfgen.BETA[3] + 16] + [0xffffffff81000000 + 16 * i for i in range(10)]
			file.nr_samples = $((n / 2))
		END
		keep_output "$TMP/made-up"
		costs "$PPROF" --perf "$TMP/cat-perf" "$TMP/made-up" >"$TMP/costs-$n"
	done
	cat "$TMP"/costs-*
	paste "$TMP/costs-10000" "$TMP/costs-40000" | awk '$3 > 6 * $1 { exit 1 }' || fail "the time is not linear"
	paste "$TMP/costs-10000" "$TMP/costs-40000" | awk '$4 > 1.2 * $2 { exit 1 }' || fail "the memory grows"
}

run_tests
