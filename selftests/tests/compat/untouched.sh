#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Without the new options, each command prints and writes the same bytes as perf of the same version
# without the patches, except for metadata and program ids.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

NATIVE_ONLY="the test compares the output of two perfs for the same files"

# All tests but the last share these recordings of the same programs, in the two modes that older perfs can
# read.
record_once()
{
	unpatched_perf
	[[ ! -e $TMP/function ]] || return 0
	hold busy_v1 busy_v2 simple
	spend 0 30000 1 30000
	# perf mem needs -d.
	record "$TMP/header.data" -F 999 --bpf-metadata=header -d
	record "$TMP/none.data" -F 999 --bpf-metadata=none -d
	perfdata costs "$TMP/header.data" |
		awk -F '\t' -v id="${HELD_IDS[0]}" '$1 == id && $3 ~ /_busy$/ && !found++ { print $3 }' >"$TMP/busy"
	[[ -s $TMP/busy ]] || fail "no sample in program ${HELD_IDS[0]}"
	mv "$TMP/busy" "$TMP/function"
}

# both ARGUMENT...: run the command of both perfs, under the same path and in an equal
# directory, because the path, the arguments and the files are part of many outputs.
both()
{
	local perf status

	mkdir -p "$TMP/same" "$TMP/outputs"
	for perf in unpatched patched; do
		cp "$PBM_UNPATCHED_PERF" "$TMP/same/perf"
		[[ $perf = unpatched ]] || cp "$PBM_PERF" "$TMP/same/perf"
		rm -rf "$TMP/work" && mkdir "$TMP/work"
		cp -p "$TMP/header.data" "$TMP/none.data" "$TMP/work"
		status=0
		(cd "$TMP/work" && exec "$TMP/same/perf" "$@") \
			>"$TMP/work/stdout" 2>"$TMP/work/stderr" </dev/null || status=$?
		echo "$status" >"$TMP/work/status"
		((status < 128 || status > 191)) || fail "status $status of '$*': $(cat "$TMP/work/stderr")"
		drop_tips "$TMP/work/stdout"
		without_vdso_names <"$TMP/work/stdout" >"$TMP/stdout"
		mv "$TMP/stdout" "$TMP/work/stdout"
		rm -rf "$TMP/outputs/$perf"
		mv "$TMP/work" "$TMP/outputs/$perf"
	done
	echo "$*: status $status, $(wc -c <"$TMP/outputs/patched/stdout") bytes"
}

same_outputs()
{
	diff -r "$TMP/outputs/unpatched" "$TMP/outputs/patched" >"$TMP/diff" && return
	head -n 20 "$TMP/diff" | cut -c 1-200
	fail "output differs"
}

# want_same [any] COMMAND...: both perfs must succeed, and write the same output, which must not be empty.
# After "any", both may refuse the command.
want_same()
{
	local any=

	[[ $1 != any ]] || { any=yes; shift; }
	both "$@"
	same_outputs
	[[ -z $any ]] || return 0
	(($(cat "$TMP/outputs/patched/status") == 0)) || fail "'$*' fails: $(cat "$TMP/outputs/patched/stderr")"
	(($(cat "$TMP/outputs/patched/"{stdout,out.data} 2>/dev/null | wc -c) > 50)) ||
		fail "'$*' has next to no output"
}

# FILE is each of the two files.
test_reports_and_rewritten_files()
{
	local line file

	record_once
	while read -r line; do
		for file in header.data none.data; do
			# shellcheck disable=SC2086 # words
			want_same ${line/FILE/$file}
			[[ $line = *FILE* ]] || break
		done
	done <<-'END'
		report --stdio -i FILE
		report --stdio -s comm,dso,sym -F overhead,period,sample,comm,dso,sym -i FILE
		report --stdio --hierarchy -i FILE
		script -i FILE
		script --show-bpf-events -i FILE
		script -F comm,tid,cpu,time,event,ip,sym,dso,period -i FILE
		evlist -v -i FILE
		buildid-list -i FILE
		diff header.data none.data
		diff -s comm,sym header.data none.data
		mem report --stdio -i FILE
		any c2c report --stdio -i FILE
		inject -i FILE -o out.data
		inject -b -i FILE -o out.data
		report --header-only -i none.data
		report -D -i none.data
		script --header -i none.data
	END
}

test_annotation()
{
	local file

	record_once
	for file in header.data none.data; do
		want_same any annotate --stdio --no-source -i "$file" -s "$(cat "$TMP/function")"
	done
}

# Even without metadata, the frames have the ids of their programs and their source lines. The metadata is
# last. The sizes of the files differ, too.
test_converted_data()
{
	local file

	record_once
	for file in none.data header.data; do
		both data convert --to-json out.json -i $file
		(($(wc -c <"$TMP/outputs/unpatched/out.json") > 100)) || fail "next to no output"
		grep -c '"bpf-metadata"' "$TMP/outputs/patched/out.json" || [[ $file = none.data ]] || fail "no metadata"
		perl -0777 -p -i -e 's/,\n\t+"(?:bpf-prog-id|srcfile|line|srccode)": [^\n]*?(?=,?\n)//g;
			s/,\n\t"bpf-metadata": \[.*\n\t\]\n\}$/\n}/s' "$TMP/outputs/patched/out.json"
		sed -i 's/wrote [0-9.]* MB/wrote MB/' "$TMP"/outputs/*patched/stderr
		same_outputs
	done
}

# The features in a pipe describe the machine at that moment, for example its free memory. Metadata would add
# events.
test_pipes()
{
	local dir

	record_once
	both inject -i none.data -o -
	for dir in "$TMP"/outputs/*; do
		perfdata types "$dir/stdout" >"$dir/types"
		"$PBM_PERF" script -i "$dir/stdout" >"$dir/script"
		[[ -s $dir/script ]] || fail "no sample in the pipe"
		rm "$dir/stdout"
	done
	same_outputs
}

# An abbreviation of --bpf-event or --no-bpf-event has its effect. Type 18 is PERF_RECORD_BPF_EVENT.
test_abbreviated_options_mean_the_same()
{
	local want options perf

	unpatched_perf
	hold simple
	while read -r want options; do
		for perf in "$PBM_UNPATCHED_PERF" "$PBM_PERF"; do
			# shellcheck disable=SC2086 # several options
			"$perf" record -N -q -e cpu-clock -o "$TMP/options.data" $options -- true
			perfdata types "$TMP/options.data" >"$TMP/types"
			[[ $want = "$(grep -x -m 1 18 "$TMP/types" || echo none)" ]] ||
				fail "$perf record $options: want BPF events: $want"
		done
	done <<-'END'
		18   --bpf
		18   --no-bpf-event --bpf
		18   --no-bpf-event --bpf-event
		none --no-bpf
		none --no-bpf-e
		none --bpf --no-bpf
	END
}

run_tests
