#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf inject --bpf-metadata-add adds the keys in the lines of a file to the metadata of the programs
# with these ids and names. The output is a file. Events other than metadata stay the same.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

NATIVE_ONLY="the test rewrites files"

add()
{
	"$PBM_PERF" inject --bpf-metadata-add "$@" 2>"$TMP/messages" || fail "$(cat "$TMP/messages")"
}

# adds INPUT [OPTION...]: the keys of $TMP/lines are added to INPUT without a message
adds()
{
	add "$TMP/lines" -i "$@" -o "$TMP/out"
	# Generated files do not have the number of CPUs.
	! grep -v HEADER_NRCPUS "$TMP/messages" || fail "messages"
}

# left_out NUMBER INPUT: none of the lines of $TMP/lines is added, with one warning of their number
left_out()
{
	add "$TMP/lines" -i "$2" -o "$TMP/out"
	[[ $(grep 'left out' "$TMP/messages") = *" left out $1 lines of $TMP/lines: the input has no BPF program "* ]] ||
		fail "not one warning: $(cat "$TMP/messages")"
	"$PBM_PERF" report --header-only -i "$TMP/out" >"$TMP/header"
	! grep a.service "$TMP/header" || fail "the header has a.service"
}

# A declared key keeps its value. The last line has no newline.
test_keys_are_added_to_files_and_pipes_by_program_id()
{
	local kind

	printf '%s\n' '7 alpha nr=7' '7 - unit=a.service' '9 - unit=a.service' '7 alpha version=other' \
		'9 beta exe= /x "\é=,:[]{}' '9 - empty=' >"$TMP/lines"
	printf '9 beta Az_9.-=k' >>"$TMP/lines"
	printf '%s\t%s\t%s\n' 7 answer 42 7 nr '"7"' 7 unit '"a.service"' 7 version '"1.2.3"' \
		9 Az_9.- '"k"' 9 empty '""' 9 exe '" /x \"\\é=,:[]{}"' 9 unit '"a.service"' >"$TMP/want"
	for kind in 'file = perfgen.File(pipe=True)' 'file.block = b""' ''; do
		write_file "$TMP/file" <<-END
			perfgen.BETA = (*perfgen.BETA[:4], [])
			$kind
			file.block = file.block and file.make_block([(perfgen.ALPHA[4], [7]), ([], [9])])
		END
		adds "$TMP/file"
		[[ -e $TMP/pipe ]] || mv "$TMP/file" "$TMP/pipe"
		perfdata block "$TMP/out" | cut -f 1,4,5 | sort >"$TMP/got"
		same "metadata" "$TMP/want" "$TMP/got"
		want_no_records "$TMP/out"
	done
	mv "$TMP/out" "$TMP/added"
	add <(cat "$TMP/lines") -i - -o "$TMP/out" <"$TMP/pipe"
	perfdata block "$TMP/out" | cut -f 1,4,5 | sort >"$TMP/got"
	same "metadata of a pipe" "$TMP/want" "$TMP/got"
	# The keys can become parts of names.
	"$PBM_PERF" inject --bpf-metadata-names=unit,version -i "$TMP/added" -o "$TMP/out"
	perfdata ksymbols "$TMP/out" >"$TMP/got"
	printf '%s\n' 'bpf_prog_0011223344556677_alpha[unit=a.service][version=1.2.3]' \
		'bpf_prog_8899aabbccddeeff_beta[unit=a.service]' >"$TMP/want"
	same "names" "$TMP/want" "$TMP/got"
	: >"$TMP/lines"
	adds "$TMP/file"
}

# The events that name the program are compressed. perf inject finds the program in bpf_prog_info
# of a file, and in the records of a pipe.
test_programs_whose_events_are_compressed()
{
	local mode

	"$PBM_PERF" check feature -q zstd || skip "perf is built without zstd"
	for mode in none header; do
		start_recording "$TMP/compressed" -a -z --bpf-metadata="$mode"
		hold simple
		stop_recording
		echo "${HELD_IDS[0]} - unit=late" >"$TMP/lines"
		[[ $mode = none ]] || "$PBM_PERF" inject -i "$TMP/compressed" -o - >"$TMP/late-pipe"
		[[ $mode = none ]] || mv "$TMP/late-pipe" "$TMP/compressed"
		add "$TMP/lines" -i "$TMP/compressed" -o "$TMP/out"
		perfdata block "$TMP/out" >"$TMP/all-lines"
		cut -f 1,4 "$TMP/all-lines" >"$TMP/keys"
		grep -q -x "${HELD_IDS[0]}	unit" "$TMP/keys" ||
			fail "$mode: program ${HELD_IDS[0]} has no unit: $(cat "$TMP/messages" "$TMP/all-lines")"
		release
	done
}

# print_events FILE: print the events without their places in the file
print_events()
{
	"$PBM_PERF" script -D -F tid,time,ip,period -i "$1" |
		sed -E 's/0x[0-9a-f]*@[^ ]* //; s/^(-?[0-9]+ [0-9]+ )0x[0-9a-f]+ /\1/; /FEATURE/d' | without_vdso_names
}

# perf inject -s puts the events in order, too: all PERF_RECORD_FINISHED_ROUND come first.
test_events_other_than_metadata_stay()
{
	hold simple
	record "$TMP/both" -F 999
	echo "${HELD_IDS[0]} simple unit=a.service" >"$TMP/lines"
	"$PBM_PERF" inject -s --bpf-metadata=header -i "$TMP/both" -o "$TMP/header"
	adds "$TMP/both"
	print_events "$TMP/header" >"$TMP/want"
	print_events "$TMP/out" >"$TMP/got"
	same "events" "$TMP/want" "$TMP/got"
	"$PBM_PERF" report --header-only -i "$TMP/out" >"$TMP/header"
	grep -q "^# bpf_metadata ${HELD_IDS[0]} simple: .*, unit=\"a.service\"" "$TMP/header" ||
		fail "$(grep bpf_metadata "$TMP/header")"
}

# Ids begin again at each boot. The kernel stores 15 characters of a name, and old bpftools print these.
test_lines_of_other_programs_are_left_out()
{
	local name

	write_file "$TMP/file" <<-'END'
		perfgen.BETA = (9, perfgen.BETA[1], "functions_with_a_long_program_name", *perfgen.BETA[3:])
		file.infos[1] = file.prog_info(perfgen.BETA, name=b"functions_with_")
	END
	"$PBM_PERF" inject --bpf-metadata-names=version -i "$TMP/file" -o "$TMP/named"
	for name in '4294967295 -' '7 Alpha' '7 alph' '7 alpha2' '7 alpha[a=b]' '7 functions_with_' \
		'9 functions_with' '9 functions_with_another_name'; do
		printf '%s\n' "$name unit=a.service" "$name nr=1" >"$TMP/lines"
		left_out 2 "$TMP/file"
	done
	write_file "$TMP/empty" <<<'file.infos, file.nr_infos, file.records = [], 0, lambda: file.sample(16)'
	left_out 2 "$TMP/empty"
	for name in functions_with_a_long_program_name functions_with_; do
		echo "9 $name unit=b" >"$TMP/lines"
		adds "$TMP/file"
		"$PBM_PERF" report --header-only -i "$TMP/out" | grep -e '^# bpf_metadata 9 .*unit="b"' ||
			fail "$name: no unit"
		# The name may have values of an earlier run.
		adds "$TMP/named"
	done
}

# A function has no file, also if a file has its name.
test_functions_get_no_build_id()
{
	local name

	hold busy
	spend 0 50000
	record "$TMP/busy"
	perfdata costs "$TMP/busy" >"$TMP/costs"
	grep -q "^${HELD_IDS[0]}[[:space:]]" "$TMP/costs" || fail "no samples of the program"
	perfdata ksymbols "$TMP/busy" >"$TMP/ksymbols"
	grep -q _busy "$TMP/ksymbols" || fail "no function of the program"
	while read -r name; do
		cp "$OUTPUT/hold" "$TMP/$name"
	done <"$TMP/ksymbols"
	echo "${HELD_IDS[0]} - a=b" >"$TMP/one"
	(cd "$TMP" && "$PBM_PERF" inject -b -i busy -o with-ids 2>messages && add one -b -i busy -o out)
	perfdata types "$TMP/with-ids" | grep -x 67 >"$TMP/want"
	perfdata types "$TMP/out" | grep -x 67 >"$TMP/got"
	same "build ID events" "$TMP/want" "$TMP/got"
}

# refused LINE: perf inject refuses $TMP/lines because of this line, and writes nothing.
refused()
{
	rm -f "$TMP/out"
	! "$PBM_PERF" inject --bpf-metadata-add "$TMP/lines" -i "$TMP/file" -o "$TMP/out" 2>"$TMP/messages" ||
		fail "perf inject accepts: $(cat "$TMP/lines")"
	grep -q "^$TMP/lines:$1: not a line 'ID NAME KEY=VALUE', see 'man perf-inject'$" "$TMP/messages" ||
		fail "$(cat "$TMP/messages" "$TMP/lines")"
	[[ ! -e $TMP/out ]] || fail "perf inject has begun to write: $(cat "$TMP/lines")"
}

test_broken_lines_are_errors()
{
	local text

	write_file "$TMP/file" </dev/null
	while read -r text; do
		printf '1 - a=b\n%b\n' "${text//_/ }" >"$TMP/lines"
		refused 2
	done <<-'END'

		1
		1_-
		1_a=b
		1_-_a
		1_-_=b
		1_-_a!=b
		1_-_a_=b
		1_-_é=b
		1__-_a=b
		1_-__a=b
		_1_-_a=b
		1-_-_a=b
		1x_-_a=b
		-1_-_a=b
		+1_-_a=b
		0x1_-_a=b
		4294967296_-_a=b
		18446744073709551617_-_a=b
		1_-_a=b\r
		1_-_a=\t
		1_-_a=\x1b
		1_-_a=\x7f
		1_-_a=\xff
		# a comment
	END
	printf '1 - a=\0b\n' >"$TMP/lines"
	refused 2
	printf '1 %0512d a=b\n' 0 >"$TMP/lines"
	refused 1
	printf '1 - %0256d=b\n' 0 >"$TMP/lines"
	refused 1
}

run_tests
