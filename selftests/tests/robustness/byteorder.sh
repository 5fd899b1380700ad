#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf reads files of the other byte order like its own. The block is the metadata in the header.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test reads generated files"
BESIDE=yes

OWN=--little OTHER=--big
[[ $(printf '\001\000' | od -An -tu2) -eq 1 ]] || OWN=--big OTHER=--little

# write_both [CODE [OPTION...]]: write the same file of an s390 machine twice: $TMP/own in this machine's byte
# order, $TMP/other in the other one. CODE is Python code that changes "file".
write_both()
{
	local code="file.features[perfgen.ARCH] = file.string(b's390x')"$'\n'${1:-}

	write_file "$TMP/own" "$OWN" "${@:2}" <<<"$code"
	write_file "$TMP/other" "$OTHER" "${@:2}" <<<"$code"
}

# Program 7 in a file of the other byte order. perf cannot read bpf_prog_info, which has the name.
LINE='# bpf_metadata 7: answer=42, version="1.2.3"'

NOT_YET='interpreting bpf_prog_info from systems with endianness is not yet supported'

# compare ERE ARGUMENT...: perf prints the same about both files, except for lines that match. About
# the other byte order, perf may only warn that it does not read bpf_prog_info.
compare()
{
	local differs=$1 file

	shift
	for file in own other; do
		"$PBM_PERF" "$@" -i "$TMP/$file" >"$TMP/$file.all" 2>"$TMP/$file.err" </dev/null ||
			fail "perf $* -i $file: $(cat "$TMP/$file.err")"
		grep -v -E -e "$differs" "$TMP/$file.all" >"$TMP/$file.out" || :
		drop_tips "$TMP/$file.out"
		# Remove the names of programs. They come from bpf_prog_info, or in a pipe from
		# earlier events.
		sed -i 's/^\(# bpf_metadata [0-9]*\) [a-z]*:/\1:/' "$TMP/$file.out"
	done
	[[ -s $TMP/own.out ]] || fail "perf $* prints nothing"
	same "perf $*" "$TMP/own.out" "$TMP/other.out"
	grep -v -x -e "$NOT_YET" "$TMP/other.err" >"$TMP/messages" || :
	same "messages of perf $*" "$TMP/own.err" "$TMP/messages"
}

compare_report()
{
	compare '^# (captured on|cmdline)' report --stdio -n -s bpf_prog,bpf_metadata
}

# compare_all IGNORED: perf script, report and the header, where also the lines IGNORED may differ
compare_all()
{
	compare ^nothing script --show-bpf-events
	[[ $(grep -c ' cpu-clock\(:HG\)\?: ' "$TMP/other.out") = 4 ]] || fail "samples are missing"
	compare_report
	compare "^# (captured$1)" report --header-only
}

# compare_with_host IGNORED: the same, and the header has the host and its architecture
compare_with_host()
{
	compare_all "$1"
	[[ $(grep -c -x -e '# hostname : host' -e '# arch : s390x' "$TMP/other.out") = 2 ]] || fail "another host"
}

# inject_both [-o -] OPTION...: replace both files with what perf inject writes of them
inject_both()
{
	local file

	for file in own other; do
		"$PBM_PERF" inject -i "$TMP/$file" -o "$TMP/$file.injected" "$@" >"$TMP/stdout"
		[[ "$*" != '-o -' ]] || mv "$TMP/stdout" "$TMP/$file.injected"
		mv "$TMP/$file.injected" "$TMP/$file"
	done
}

test_files_are_swapped()
{
	write_both
	compare_all '|bpf_prog_info'
	grep -x -F -e "$LINE" "$TMP/other.out"
	grep -x -F -e '# bpf_metadata 9: version="2.0"' "$TMP/other.out"
	grep -x -F -e "${LINE/7/7 alpha}" "$TMP/own.all"
	# The raw bytes, the offsets and the byte order differ.
	compare '^\.|^$|: event: ' report -D
	grep -q -e '  entry 2:               answer = 42' "$TMP/other.out"
	compare_report
	grep -q -e ' 7 alpha *answer=42, version="1.2.3" *$' "$TMP/other.out"
}

# All fields are swapped, including the flags.
test_the_ksymbol_of_an_unload_is_swapped()
{
	write_both 'file.odd = file.ksymbol(perfgen.ALPHA, flags=1)'
	compare ^nothing script --show-bpf-events
	grep -q -e 'PERF_RECORD_KSYMBOL addr ffffffffc0001000 len 256 .* flags 0x1 name .*_alpha$' "$TMP/other.out"
}

# The scale and the CPUs of an event
test_updates_of_events_are_swapped()
{
	write_both '
def update(kind, body):
    return file.record(78, file.u64(kind, 1) + body)
masks = (file.pack("3H", 1, 1, 4) + file.u32(10) + bytes(6),
         file.pack("3HI", 1, 1, 8, 0) + file.u64(10) + bytes(6))
maps = file.pack("4H", 0, 2, 1, 3), *masks, file.pack("HBB2H", 2, 0, 0, 1, 3)
file.odd = update(1, file.pack("d", 0.5)) + b"".join(update(3, cpus) for cpus in maps)'
	compare '^\.|^$|: event: ' report -D
	[[ $(cat "$TMP"/{own,other}.all | grep -c -x -e '\.\.\. scale: 0.500000' -e '\.\.\. 1[,-]3') = 10 ]]
}

test_pipes_are_swapped()
{
	write_both '' --pipe
	compare_with_host ''
	inject_both -o -
	compare_with_host '|data|feat|missing'
}

# Mode all keeps records and the block, mode header only the block, and mode none neither.
test_inject_swaps_files()
{
	local mode

	for mode in all header none; do
		write_both
		inject_both --bpf-metadata="$mode"
		perfdata types "$TMP/other" >"$TMP/types"
		compare_with_host '|data|feat|bpf_prog_info|missing'
		grep -x 84 "$TMP/types" >"$TMP/got" || :
		same "$mode: records" <([[ $mode != all ]] || printf '84\n84\n') "$TMP/got"
		grep -x -F -e "$LINE" "$TMP/other.all" >"$TMP/got" || :
		same "$mode: block" <([[ $mode = none ]] || echo "$LINE") "$TMP/got"
	done
}

# perf writes the feature of the programs anew only for their metadata.
test_inject_leaves_out_programs_without_metadata()
{
	write_both 'file.block = b""'
	inject_both
	"$PBM_PERF" report --header-only -i "$TMP/own" | grep '^# bpf_prog_info 7:' >"$TMP/out"
	"$PBM_PERF" report --header-only -i "$TMP/other" | grep '^# missing features:' >"$TMP/out"
	grep -q -w BPF_PROG_INFO "$TMP/out" || fail "the feature is there: $(cat "$TMP/out")"
}

# perf leaves out features that it cannot swap, and finds the features after them.
test_inject_swaps_a_pipe_to_a_file()
{
	write_both '' --pipe
	inject_both
	compare_all '|data|feat|missing'
}

test_json_of_both_byte_orders_is_the_same()
{
	local file

	write_both
	for file in own other; do
		"$PBM_PERF" data convert --force --to-json "$TMP/$file.json" -i "$TMP/$file"
		grep -v -e '"captured-on"' -e '"cpuid"' "$TMP/$file.json" >"$TMP/$file.out"
	done
	same "perf data convert" "$TMP/own.out" "$TMP/other.out"
	grep -q '"answer"' "$TMP/other.out"
}

run_tests
