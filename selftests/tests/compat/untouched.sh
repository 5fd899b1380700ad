#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Without the new options, each command prints and writes the same bytes as perf of the same version
# without the patches, except for metadata and program ids.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

NATIVE_ONLY="the test compares the output of two perfs for the same files"

# Record the same programs in the two modes that older perfs can read. The programs stay loaded
# while both perfs read the files.
record_both_modes()
{
	unpatched_perf
	hold busy_v1 busy_v2 simple
	spend 0 30000 1 30000
	record "$TMP/header.data" -F 999 --bpf-metadata=header "$@"
	record "$TMP/none.data" -F 999 --bpf-metadata=none "$@"
	FUNCTION=$(perfdata costs "$TMP/header.data" |
		awk -F '\t' -v id="${HELD_IDS[0]}" '$1 == id && $3 ~ /_busy$/ && !found++ { print $3 }')
	[[ -n $FUNCTION ]] || fail "no sample in program ${HELD_IDS[0]}"
}

# both NAME ARGUMENT...: run the command of both perfs, under the same path and in an equal
# directory, because the path, the arguments and the files are part of many outputs.
both()
{
	local name=$1 perf status

	shift
	mkdir -p "$TMP/same" "$TMP/outputs"
	for perf in unpatched patched; do
		if [[ $perf = patched ]]; then
			cp "$PBM_PERF" "$TMP/same/perf"
		else
			cp "$PBM_UNPATCHED_PERF" "$TMP/same/perf"
		fi
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
	echo "$name: status $status, $(wc -c <"$TMP/outputs/patched/stdout") bytes"
}

same_outputs()
{
	diff -r "$TMP/outputs/unpatched" "$TMP/outputs/patched" >"$TMP/diff" && return
	head -n 20 "$TMP/diff" | cut -c 1-200
	fail "output differs"
}

# Both perfs must succeed, with the same output, which must not be empty.
want_same()
{
	both "$*" "$@"
	same_outputs
	[[ $(cat "$TMP/outputs/patched/status") = 0 ]] || fail "'$*' fails: $(cat "$TMP/outputs/patched/stderr")"
	(($(find "$TMP/outputs/patched" -type f ! -name header.data ! -name none.data ! -name status -printf '%s\n' |
		awk '{ sum += $1 } END { print sum + 0 }') > 50)) || fail "'$*' has next to no output"
}

# Both perfs must have the same output, even if they refuse the command.
want_same_in_any_case()
{
	both "$*" "$@"
	same_outputs
}

test_reports()
{
	local file

	record_both_modes
	for file in header.data none.data; do
		want_same report --stdio -i "$file"
		want_same report --stdio -s comm,dso,sym -F overhead,period,sample,comm,dso,sym -i "$file"
		want_same report --stdio --hierarchy -i "$file"
		want_same script -i "$file"
		want_same script --show-bpf-events -i "$file"
		want_same script -F comm,tid,cpu,time,event,ip,sym,dso,period -i "$file"
		want_same evlist -v -i "$file"
		want_same buildid-list -i "$file"
	done
	want_same diff header.data none.data
	want_same diff -s comm,sym header.data none.data
}

test_memory_reports()
{
	local file

	record_both_modes -d
	for file in header.data none.data; do
		want_same mem report --stdio -i "$file"
		want_same_in_any_case c2c report --stdio -i "$file"
	done
}

disassembler()
{
	"$1" version --build-options | grep -i llvm
}

test_annotation()
{
	local file

	unpatched_perf
	[[ $(disassembler "$PBM_PERF") = "$(disassembler "$PBM_UNPATCHED_PERF")" ]] ||
		skip "only one of the two perfs disassembles with LLVM"
	record_both_modes
	for file in header.data none.data; do
		want_same_in_any_case annotate --stdio --no-source -i "$file" -s "$FUNCTION"
	done
}

test_headers_without_metadata()
{
	record_both_modes
	want_same report --header-only -i none.data
	want_same report -D -i none.data
	want_same script --header -i none.data
}

# The header differs only in the lines of the metadata.
test_headers_with_metadata()
{
	local options

	record_both_modes
	for options in "report --header-only" "report --header --stdio" "script --header"; do
		# shellcheck disable=SC2086 # words
		both "$options" $options -i header.data
		grep -c '^# bpf_metadata ' "$TMP/outputs/patched/stdout"
		sed -i '/^# bpf_metadata /d' "$TMP/outputs/patched/stdout"
		same_outputs
	done
}

# Remove the members "bpf-prog-id", "srcfile", "line" and "srccode" of frames, and the size of the file.
drop_program_members()
{
	perl -0777 -p -i -e 's/,\n\t+"(?:bpf-prog-id|srcfile|line|srccode)": [^\n]*?(?=,?\n)//g' "$TMP/outputs/patched/out.json"
	sed -i 's/wrote [0-9.]* MB/wrote MB/' "$TMP"/outputs/*patched/stderr
}

# Even without metadata, the frames have the ids of their programs and their source lines.
test_converted_data_without_metadata()
{
	record_both_modes
	both json data convert --to-json out.json -i none.data
	(($(wc -c <"$TMP/outputs/unpatched/out.json") > 100)) || fail "next to no output"
	drop_program_members
	same_outputs
}

test_converted_data_with_metadata()
{
	record_both_modes
	both json data convert --to-json out.json -i header.data
	drop_program_members
	python3 - "$TMP/outputs/patched/out.json" "$TMP/outputs/unpatched/out.json" <<-'END'
	import json
	import sys

	patched, unpatched = [json.load(open(path, encoding="utf-8")) for path in sys.argv[1:]]
	assert list(patched) == list(unpatched) + ["bpf-metadata"], "the metadata is not last"
	assert patched.pop("bpf-metadata"), "no metadata"
	assert patched == unpatched, "more than the metadata differs"
	assert list(patched["headers"]) == list(unpatched["headers"]), "the order differs"
	END
}

# Each conversion makes a random UUID. Clear it in all files of the trace, as text and as bytes.
clear_uuids()
{
	python3 - "$1" <<-'END'
	import pathlib
	import re
	import sys
	import uuid

	trace = pathlib.Path(sys.argv[1])
	metadata = (trace / "metadata").read_bytes()
	for text in set(re.findall(rb'uuid = "([-0-9a-f]{36})"', metadata)):
	    for path in trace.iterdir():
	        data = path.read_bytes().replace(text, bytes(36))
	        path.write_bytes(data.replace(uuid.UUID(text.decode()).bytes, bytes(16)))
	END
}

test_ctf()
{
	local file

	record_both_modes
	"$PBM_PERF" data convert --to-ctf "$TMP/ctf" -i "$TMP/none.data" >"$TMP/out" 2>&1 ||
		skip "perf cannot write CTF: $(tail -n 1 "$TMP/out")"
	for file in header.data none.data; do
		both "data convert --to-ctf" data convert --to-ctf ctf -i "$file"
		[[ -s $TMP/outputs/patched/ctf/metadata ]] || fail "perf writes no trace"
		clear_uuids "$TMP/outputs/patched/ctf"
		clear_uuids "$TMP/outputs/unpatched/ctf"
		same_outputs
	done
}

test_rewritten_files()
{
	local file options

	record_both_modes
	for file in header.data none.data; do
		for options in "" -b; do
			# shellcheck disable=SC2086 # one option or none
			want_same inject $options -i "$file" -o out.data
			[[ -s $TMP/outputs/patched/out.data ]] || fail "perf inject writes nothing"
		done
	done
}

# Leave out the features in a pipe: they describe the machine at that moment, for example its free
# memory.
without_features()
{
	perfdata types "$1/stdout" >"$1/types"
	"$PBM_PERF" script -i "$1/stdout" >"$1/script"
	rm "$1/stdout"
}

test_pipes()
{
	record_both_modes
	# Use the file without metadata, because metadata would add events.
	both "inject into a pipe" inject -i none.data -o -
	without_features "$TMP/outputs/patched"
	without_features "$TMP/outputs/unpatched"
	same_outputs
	[[ -s $TMP/outputs/patched/script ]] || fail "no sample in the pipe"
}

# want_bpf_events yes|no OPTION...: both perfs succeed, and their files have BPF events or not
want_bpf_events()
{
	local want=$1 perf

	shift
	for perf in "$PBM_UNPATCHED_PERF" "$PBM_PERF"; do
		"$perf" record -N -q -e cpu-clock -o "$TMP/options.data" "$@" -- true ||
			fail "$perf record $*: status $?"
		perfdata types "$TMP/options.data" >"$TMP/types"
		[[ $want = "$(grep -q -x 18 "$TMP/types" && echo yes || echo no)" ]] ||
			fail "$perf record $*: want BPF events: $want"
	done
}

test_abbreviated_options_mean_the_same()
{
	unpatched_perf
	hold simple
	want_bpf_events yes --bpf
	want_bpf_events yes --no-bpf-event --bpf
	want_bpf_events yes --no-bpf-event --bpf-event
	want_bpf_events no --no-bpf
	want_bpf_events no --no-bpf-e
	want_bpf_events no --bpf --no-bpf
}

run_tests
