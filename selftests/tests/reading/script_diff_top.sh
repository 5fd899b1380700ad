#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf script -F bpf_prog,bpf_metadata, perf diff and perf top. A set is all metadata of a program.

. "$(dirname "$0")/../../lib/report-lib.sh"
. "$(dirname "$0")/../../lib/top.sh"
few_symbols

# prints OPTION...: perf script of $TMP/made-up prints the lines of standard input, not counting indentation
prints()
{
	"$PBM_PERF" script "$@" -i "$TMP/made-up" | sed 's/^\t//' >"$TMP/got"
	cat >"$TMP/want"
	same "perf script $*" "$TMP/want" "$TMP/got"
}

# The fields are in the first line of a sample, and describe the program that was interrupted.
test_perf_script_prints_fields_before_call_chains()
{
	made_up <<-'END'
		file.chain = [perfgen.BETA[3] + 16]
		file.nr_samples = 1
		file.odd = file.sample(16)      # in no function, and first by time
	END
	prints -F ip,sym,bpf_prog,bpf_metadata <<-'END'
		 N/A N/A
		              10 [unknown]
		ffffffffc0002010 [unknown]

		 7:alpha answer=42,version="1.2.3"
		ffffffffc0001010 bpf_prog_0011223344556677_alpha
		ffffffffc0002010 bpf_prog_8899aabbccddeeff_beta

		 9:beta version="2.0"
		ffffffffc0002010 bpf_prog_8899aabbccddeeff_beta
		ffffffffc0002010 bpf_prog_8899aabbccddeeff_beta

	END
}

# perf has processed all samples when it reads the record of beta. perf reads a pipe, a file as standard input
# and another file differently.
test_perf_script_prints_metadata_that_a_pipe_has_before_the_samples()
{
	local fields='-F bpf_prog,bpf_metadata'

	made_up <<-'END'
		file = perfgen.File(pipe=True)
		file.block = b""
		file.with_records = False
		file.nr_samples = 1
		file.first = file.metadata(perfgen.ALPHA)
		file.last = 2 * file.record(68, b"") + file.metadata(perfgen.BETA)
	END
	printf ' %s\n' '7:alpha answer=42,version="1.2.3"' '9:beta (unknown)' >"$TMP/want"
	# shellcheck disable=SC2002,SC2086 # see above; two words
	{
		"$PBM_PERF" script $fields -i "$TMP/made-up"
		"$PBM_PERF" script $fields -i - <"$TMP/made-up"
		cat "$TMP/made-up" | "$PBM_PERF" script $fields
	} >"$TMP/got"
	same "fields" <(cat "$TMP/want" "$TMP/want" "$TMP/want") "$TMP/got"
}

# awk can split the fields, and each value is still JSON.
test_fields_of_perf_script_have_no_blanks()
{
	made_up <<-'END'
		spaced = [(b"owner", br'"net  \" team, eu\\"'), (b"size", b"[1,{\"a b\":2}]")]
		perfgen.ALPHA = perfgen.ALPHA[:4] + (spaced,)
		file.block = file.make_block([(spaced, [7]), (perfgen.BETA[4], [9])])
		file.nr_samples = 1
	END
	prints -F ip,bpf_metadata,bpf_prog,period <<-'END'
		         1  7:alpha owner="net\u0020\u0020\"\u0020team,\u0020eu\\",size=[1,{"a\u0020b":2}] ffffffffc0001010
		         1  9:beta version="2.0" ffffffffc0002010
	END
}

test_perf_script_adds_and_removes_the_fields()
{
	made_up </dev/null
	"$PBM_PERF" script -i "$TMP/made-up" >"$TMP/want"
	"$PBM_PERF" script -F +bpf_prog,+bpf_metadata,-bpf_prog,-bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "output without the fields" "$TMP/want" "$TMP/got"
	"$PBM_PERF" script -F +bpf_prog,+bpf_metadata -i "$TMP/made-up" |
		sed -E 's/ [79]:[a-z]+ [^ ]+="[^ ]+//' >"$TMP/got"
	same "output with the fields taken out" "$TMP/want" "$TMP/got"
}

# perf diff compares programs by name, because the ids and tags of two recordings differ. Each line "KEYS
# [OPTION...]" is followed by its rows, "  OLD NEW ROW".
test_diff_compares_versions_and_programs()
{
	local keys options

	made_up </dev/null
	mv "$TMP/made-up" "$TMP/old"
	made_up <<-'END'
		version = (b"version", b'"1.3"')
		perfgen.ALPHA = (17, "1122334455667788", "alpha", 0xffffffffc0003000, [version, (b"answer", b"42")])
		file.infos[0] = file.prog_info(perfgen.ALPHA)
		file.block = file.make_block([(perfgen.ALPHA[4], [17]), (perfgen.BETA[4], [9])])
		file.nr_samples = 3
	END
	cat >"$TMP/want" <<-'END'
		bpf_prog
		  2 3 alpha
		  2 3 beta
		bpf_metadata
		  0 3 answer=42, version="1.3"
		  2 0 answer=42, version="1.2.3"
		  2 3 version="2.0"
		bpf_metadata --bpf-metadata-keys answer
		  2 3 (none)
		  2 3 answer=42
	END
	while read -r keys options; do
		echo "$keys${options:+ $options}"
		# shellcheck disable=SC2086 # several options
		"$PBM_PERF" diff --period -t '|' -s "$keys" $options "$TMP/old" "$TMP/made-up" |
			awk -F ' *[|] *' '/^#/ || NF < 5 { next } { sub(/ +$/, ""); print "  " $2 + 0, $4 + 0, $5 }' | sort
	done < <(grep -v '^ ' "$TMP/want") >"$TMP/got"
	same "perf diff" "$TMP/want" "$TMP/got"
}

# The metadata of one program must not hide the programs after it. perf top prints a program that was loaded
# for a moment when it is gone.
test_top_shows_programs_and_metadata()
{
	local id

	hold simple busy_v1
	spend 1 100000
	# An emulated machine cannot process more than 250 samples per second.
	start_top -s bpf_prog,bpf_metadata -e cpu-clock -F 250
	await "the program in perf top" load_and_look "%  ${HELD_IDS[1]} busy  *owner=\"tests\", version=\"1.0\""
	release
	hold busy_v2
	spend 0 1000000
	"${WORKLOAD[@]}"
	id=${HELD_IDS[0]}
	release
	await "the new program" grep -E -q "%  $id busy  *owner=\"tests\", version=\"2.0\"" "$TMP/top"
	stop_top
}

# has_shown_screens N: perf top has shown more than N screens
has_shown_screens()
{
	(($(grep -a -c PerfTop "$TMP/top" || true) > $1))
}

# memory_after N: print the memory of perf top in KiB after N more programs.
memory_after()
{
	"$OUTPUT/churn" -n "$1" -t $((2 * $1)) </dev/null >"$TMP/list"
	await "perf top" has_shown_screens $(($(grep -a -c PerfTop "$TMP/top" || true) + 1))
	awk '/^RssAnon:/ { print $2 }' "/proc/$TOP_PID/status"
}

# perf keeps bpf_prog_info and BTF of programs that are gone, because it still shows them. Without
# the patches this takes 0.8 KiB for each of these programs.
test_top_grows_little_with_each_program()
{
	local early late nr=1000

	native_only "the test loads thousands of programs"
	[[ -z ${PBM_SANITIZED:-} ]] || skip "AddressSanitizer keeps what was freed"
	# There are no samples, so perf loads no symbols.
	start_top -s bpf_prog,bpf_metadata -e cpu-clock -c 1000000000000
	await "perf top" has_shown_screens 0
	early=$(memory_after $nr)
	late=$(memory_after $nr)
	echo "$early KiB after $nr programs, $late KiB after twice as many"
	((late < early + 3 * nr)) || fail "more than 3 KiB for each program"
	stop_top
}

run_tests
