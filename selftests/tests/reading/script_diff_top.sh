#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf script -F bpf_prog,bpf_metadata, perf diff and perf top. A set is all metadata of a program.

. "$(dirname "$0")/../../lib/report-lib.sh"
. "$(dirname "$0")/../../lib/top.sh"
few_symbols

test_perf_script_shows_the_program_of_each_sample()
{
	record_once
	cp "$TMP/costs" "$TMP/want-prog"
	costs_by_set "$TMP/all" >"$TMP/want-set"
	want_script_costs "$TMP/all"
	want_script_costs "$TMP/block-only"
	# Test a pipe, too, and --show-bpf-events, which has its own handler of program events.
	costs_by_program "$TMP/pipe" | sed 's/^\([0-9]*\) /\1:/' | sort >"$TMP/want"
	script_costs bpf_prog - <"$TMP/pipe" >"$TMP/got"
	same "programs in a pipe" "$TMP/want" "$TMP/got"
	"$PBM_PERF" script -G -F period,bpf_prog -i "$TMP/all" >"$TMP/want"
	"$PBM_PERF" script -G -F period,bpf_prog --show-bpf-events -i "$TMP/all" |
		grep -v -e PERF_RECORD_ -e '^  entry ' >"$TMP/got"
	same "programs with --show-bpf-events" "$TMP/want" "$TMP/got"
}

# The fields are in the first line of a sample, and describe the program that was interrupted.
test_perf_script_prints_fields_before_call_chains()
{
	record_once
	"$PBM_PERF" script -F ip,sym,bpf_prog -i "$TMP/all" |
		awk -v bpf="^$FUNCTION" '
			/^ / { prog = $1; next }
			prog != "" { print (($2 ~ bpf) == (prog != "N/A") ? "right" : "wrong"), prog, $0; prog = "" }' >"$TMP/got"
	grep -q "^right ${HELD_IDS[0]:-[0-9]*}:busy " "$TMP/got" || fail "no sample: $(head "$TMP/got")"
	if grep '^wrong' "$TMP/got"; then
		fail "the field is not about the first address"
	fi
}

# perf script prints what it knows when it reads the sample.
test_perf_script_prints_no_wrong_metadata_if_records_come_last()
{
	record_once
	script_costs bpf_prog,bpf_metadata "$TMP/all" | cut -f 1 >"$TMP/true"
	script_costs bpf_prog,bpf_metadata "$TMP/records-only" | cut -f 1 >"$TMP/said"
	cut -d ' ' -f 1 "$TMP/true" >"$TMP/want"
	cut -d ' ' -f 1 "$TMP/said" | sort -u >"$TMP/got"
	same "programs" <(sort -u "$TMP/want") "$TMP/got"
	if grep -v -e ' (unknown)$' "$TMP/said" | grep -v -x -F -f "$TMP/true"; then
		fail "wrong metadata; right is: $(cat "$TMP/true")"
	fi
}

# perf has processed all samples when it reads the record of beta.
test_perf_script_prints_metadata_that_a_pipe_has_before_the_samples()
{
	made_up <<-'END'
		file = perfgen.File(pipe=True)
		file.block = b""
		file.with_records = False
		file.first = file.metadata(perfgen.ALPHA)
		file.last = 2 * file.record(68, b"") + file.metadata(perfgen.BETA)
	END
	printf ' %s\n' '7:alpha answer=42,version="1.2.3"' '7:alpha answer=42,version="1.2.3"' \
		'9:beta (unknown)' '9:beta (unknown)' >"$TMP/want"
	"$PBM_PERF" script -F bpf_prog,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "fields of a stream in a file" "$TMP/want" "$TMP/got"
	"$PBM_PERF" script -F bpf_prog,bpf_metadata -i - <"$TMP/made-up" >"$TMP/got"
	same "fields of standard input" "$TMP/want" "$TMP/got"
	# shellcheck disable=SC2002 # perf reads a pipe and a file differently
	cat "$TMP/made-up" | "$PBM_PERF" script -F bpf_prog,bpf_metadata >"$TMP/got"
	same "fields of a pipe" "$TMP/want" "$TMP/got"
}

# awk can split the fields, and each value is still JSON.
test_fields_of_perf_script_have_no_blanks()
{
	made_up <<-'END'
		spaced = [(b"owner", br'"net  \" team, eu\\"'), (b"size", b"[1,{\"a b\":2}]")]
		perfgen.ALPHA = perfgen.ALPHA[:4] + (spaced,)
		file.block = file.make_block([(spaced, [7]), (perfgen.BETA[4], [9])])
	END
	"$PBM_PERF" script -F ip,bpf_metadata,bpf_prog,period -i "$TMP/made-up" >"$TMP/out"
	awk 'NF != 4 { print "not four words: " $0 } $2 == "7:alpha" { print $3 }' "$TMP/out" | sort -u >"$TMP/got"
	cat >"$TMP/want" <<-'END'
		owner="net\u0020\u0020\"\u0020team,\u0020eu\\",size=[1,{"a\u0020b":2}]
	END
	same "metadata" "$TMP/want" "$TMP/got"
}

# The file has neither a program nor metadata.
test_fields_of_perf_script_without_programs()
{
	record "$TMP/no-programs" --no-bpf-event
	"$PBM_PERF" script -F bpf_prog,bpf_metadata -i "$TMP/no-programs" | sort -u >"$TMP/got"
	echo " $NOT_BPF $NOT_BPF" >"$TMP/want"
	same "fields" "$TMP/want" "$TMP/got"
}

test_perf_script_prints_the_fields_only_when_asked()
{
	record_once
	"$PBM_PERF" script -i "$TMP/all" >"$TMP/want"
	if grep -e "$NOT_BPF" -e '[0-9]:busy' -e 'owner=' "$TMP/want"; then
		fail "the fields are in the default output"
	fi
	"$PBM_PERF" script -F +bpf_prog,+bpf_metadata,-bpf_prog,-bpf_metadata -i "$TMP/all" >"$TMP/got"
	same "output without the fields" "$TMP/want" "$TMP/got"
	"$PBM_PERF" script -F +bpf_prog,+bpf_metadata -i "$TMP/all" |
		sed "s@^\(.*: \) \($NOT_BPF $NOT_BPF\|[0-9]*:[^ ]* \(([a-z]*)\|[a-z_]*=.*\)\)\$@\1@" >"$TMP/got"
	same "output with the fields taken out" "$TMP/want" "$TMP/got"
}

# Three tests share two recordings: one for each build of a program.
record_versions_once()
{
	[[ ! -e $TMP/new ]] || return 0
	hold busy_v1
	spend 0 30000
	record "$TMP/old"
	release
	hold busy_v2
	spend 0 60000
	record "$TMP/new.part"
	mv "$TMP/new.part" "$TMP/new"
}

# Join two files of KEY<TAB>PERIOD to KEY<TAB>OLD<TAB>NEW; a missing period is 0.
join_costs()
{
	join -t $'\t' -a 1 -a 2 -e 0 -o 0,1.2,2.2 "$1" "$2" | sort
}

# Like join_costs, but from perf diff, for the event that has samples.
diff_rows()
{
	"$PBM_PERF" diff --period -t '|' "$@" "$TMP/old" "$TMP/new" >"$TMP/diff-report"
	awk -F ' *[|] *' '/^#/ || NF < 5 { next } { sub(/ +$/, ""); printf "%s\t%.0f\t%.0f\n", $5, $2, $4 }' "$TMP/diff-report" | sort
}

test_diff_compares_versions()
{
	record_versions_once
	costs_by_set "$TMP/old" >"$TMP/old-costs"
	costs_by_set "$TMP/new" >"$TMP/new-costs"
	join_costs "$TMP/old-costs" "$TMP/new-costs" >"$TMP/want"
	grep -E $'^owner="tests", version="1.0"\t[1-9][0-9]*\t0$' "$TMP/want"
	grep -E $'^owner="tests", version="2.0"\t0\t[1-9][0-9]*$' "$TMP/want"
	diff_rows -s bpf_metadata >"$TMP/got"
	same "cost by version" "$TMP/want" "$TMP/got"

	costs_by_set "$TMP/old" owner >"$TMP/old-costs"
	costs_by_set "$TMP/new" owner >"$TMP/new-costs"
	join_costs "$TMP/old-costs" "$TMP/new-costs" >"$TMP/want"
	diff_rows -s bpf_metadata --bpf-metadata-keys owner >"$TMP/got"
	same "cost by owner" "$TMP/want" "$TMP/got"
}

# perf diff compares by name, because the ids of two recordings differ.
test_diff_compares_programs()
{
	native_only "the test only reads a shared recording"
	record_versions_once
	costs_by_program "$TMP/old" | sed 's/^[0-9]* //' | sum_up >"$TMP/old-costs"
	costs_by_program "$TMP/new" | sed 's/^[0-9]* //' | sum_up >"$TMP/new-costs"
	join_costs "$TMP/old-costs" "$TMP/new-costs" >"$TMP/want"
	grep -E $'^busy\t[1-9][0-9]*\t[1-9]' "$TMP/want"
	diff_rows -s bpf_prog >"$TMP/got"
	same "cost by program" "$TMP/want" "$TMP/got"
}

# The file has two programs of one name, and no block.
test_diff_tells_programs_of_one_name_apart()
{
	made_up <<-'END'
		perfgen.BETA = (*perfgen.BETA[:2], "alpha", *perfgen.BETA[3:])
		file.infos[1] = file.prog_info(perfgen.BETA)
		file.block = b""
	END
	"$PBM_PERF" diff -s bpf_metadata "$TMP/made-up" "$TMP/made-up" >"$TMP/diff-report"
	grep -v '^#' "$TMP/diff-report" | grep -o '[a-z(].*' | sed 's/ *$//' | sort >"$TMP/got"
	printf '%s\n' 'answer=42, version="1.2.3"' 'version="2.0"' >"$TMP/want"
	same "sets by the ids of records" "$TMP/want" "$TMP/got"
}

# perf diff has to compare metadata, because the symbols of both builds are the same.
test_symbols_of_two_versions_are_the_same()
{
	local file

	native_only "the test only reads a shared recording"
	record_versions_once
	for file in old new; do
		perfdata costs "$TMP/$file" | awk -F '\t' '$2 == "busy" { print $3 }' | sort -u >"$TMP/$file-symbols"
	done
	(($(wc -l <"$TMP/old-symbols") == 3)) || fail "not three functions: $(cat "$TMP/old-symbols")"
	same "symbols of two versions" "$TMP/old-symbols" "$TMP/new-symbols"
}

test_top_shows_programs_and_metadata()
{
	hold busy_v1
	spend 0 100000
	start_top -s bpf_prog,bpf_metadata -e cpu-clock
	trap 'release; stop_top' EXIT
	await "the program in perf top" load_and_look "%  ${HELD_IDS[0]} busy  *owner=\"tests\", version=\"1.0\""
	stop_top
}

# The metadata of one program must not hide the programs after it.
test_top_knows_the_program_after_one_with_metadata()
{
	hold simple busy_v1
	spend 1 100000
	start_top -s dso -e cpu-clock
	trap 'release; stop_top' EXIT
	await "the program in perf top" load_and_look "%  bpf_prog_[0-9a-f]{16}_busy"
	stop_top
}

# The program is gone when perf top prints it.
test_top_shows_a_program_that_was_loaded_for_a_moment()
{
	local id

	# An emulated machine cannot process more than 250 samples per second.
	start_top -s bpf_prog,bpf_metadata -e cpu-clock -F 250
	trap 'stop_top; release' EXIT
	await "perf top" grep -q PerfTop "$TMP/top"
	hold busy_v1
	spend 0 1000000
	"${WORKLOAD[@]}"
	id=${HELD_IDS[0]}
	release
	await "the program in perf top" grep -E -q "%  $id busy  *owner=\"tests\", version=\"1.0\"" "$TMP/top"
}

# has_shown_screens N: perf top has shown more than N screens
has_shown_screens()
{
	(($(grep -a -c PerfTop "$TMP/top" || true) > $1))
}

# memory_after N: print the memory of perf top in KiB after N more programs.
memory_after()
{
	"$OUTPUT/churn" -n "$1" -t $((2 * $1)) -l 100 </dev/null >"$TMP/list"
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
	trap stop_top EXIT
	await "perf top" has_shown_screens 0
	early=$(memory_after $nr)
	late=$(memory_after $nr)
	echo "$early KiB after $nr programs, $late KiB after twice as many"
	((late < early + 3 * nr)) || fail "more than 3 KiB for each program"
	stop_top
}

run_tests
