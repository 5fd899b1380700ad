#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf report of generated files: which set belongs to which program, where perf prints (ambiguous),
# what it cuts, and how it counts children. A set is all metadata of a program. The block is the
# metadata in the header of perf.data.

. "$(dirname "$0")/../../lib/report-lib.sh"

BESIDE=yes

# If two programs of one name have one set, it may belong to either. If there are as many equal sets
# as programs, each program has this set.
test_programs_of_one_name_need_as_many_equal_sets()
{
	made_up <<-'END'
		twin = (9, *perfgen.ALPHA[1:3], perfgen.BETA[3], [])
		perfgen.BETA = twin
		file.infos = [file.prog_info(perfgen.ALPHA), file.prog_info(twin)]
		file.block = b""
		file.with_records = False
		file.odd = file.metadata(perfgen.ALPHA)
	END
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	printf '(ambiguous)\t4\n' >"$TMP/want"
	same "one set for two programs" "$TMP/want" "$TMP/got"
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/made-up" -o "$TMP/made-up.header" 2>"$TMP/messages"
	grep -q 'WARNING: lost the metadata of 1 BPF' "$TMP/messages" || fail "no warning"
	[[ -z $(perfdata pieces "$TMP/made-up.header") ]] || fail "perf inject stores what it guessed"
	"$PBM_PERF" data convert --force --to-json "$TMP/made-up.json" -i "$TMP/made-up"
	[[ $(grep -c '"metadata": null' "$TMP/made-up.json") = 2 ]] || fail "JSON shows metadata"

	# There may be more programs in compressed events, which perf inject does not read.
	sed 's/^file.write/file.odd += file.record(81, bytes(8))\n&/; s/^perfgen.BETA =.*//' "$TMP/made-up.py" \
		>"$TMP/compressed.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/compressed.py" "$TMP/compressed"
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/compressed" -o "$TMP/compressed.header" 2>"$TMP/messages"
	grep -q 'WARNING: lost the metadata of [12] BPF .* without the compressed events' "$TMP/messages" || fail "no warning"
	[[ -z $(perfdata pieces "$TMP/compressed.header") ]] || fail "perf inject stores what it guessed"

	sed -i 's/file.odd = .*/& * 2/' "$TMP/made-up.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/made-up.py" "$TMP/made-up"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	printf 'answer=42, version="1.2.3"\t4\n' >"$TMP/want"
	same "two equal sets for two programs" "$TMP/want" "$TMP/got"
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/made-up" -o "$TMP/made-up.header" 2>"$TMP/messages"
	if grep 'WARNING: lost' "$TMP/messages"; then
		fail "perf inject warns, but loses nothing"
	fi
}

# perf record writes the set of a program, and writes it again if the program gets more keys.
test_the_last_set_of_a_program_counts()
{
	made_up <<-'END'
		file.block = b""
		file.first = file.metadata(perfgen.ALPHA, perfgen.ALPHA[4][:1])
	END
	printf '%s\t2\n' 'answer=42, version="1.2.3"' 'version="2.0"' >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "sets of records" "$TMP/want" "$TMP/got"

	# The last set needs more than one record.
	made_up <<-'END'
		file.block = b""
		file.first = file.metadata(perfgen.ALPHA)
		more = perfgen.ALPHA[4] + [(b"k%d" % i, b"%d" % i) for i in range(298)]
		file.odd = file.metadata(perfgen.ALPHA, more[:203]) + file.metadata(perfgen.ALPHA, more[203:])
		file.with_records = False
	END
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/made-up" -o "$TMP/made-up.header"
	[[ $(perfdata block "$TMP/made-up.header" | wc -l) = 300 ]] || fail "the last set lacks keys"
}

# If a set does not contain the earlier set with the same name, one of them belongs to another
# program, whose events may be lost. If a record has room for more keys, the next record does not
# continue this record.
test_a_set_that_does_not_contain_the_earlier_one_is_ambiguous()
{
	local entry

	printf '%s\t2\n' '(ambiguous)' 'version="2.0"' >"$TMP/want"
	for entry in "b'version', b'\"0.9\"'" "b'owner', b'\"net\"'"; do
		made_up <<-END
			file.block = b""
			file.first = file.metadata(perfgen.ALPHA, [($entry)])
		END
		rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
		same "sets of records, $entry" "$TMP/want" "$TMP/got"
	done
}

# If a program loads while perf record starts, perf record and the kernel both write its events.
test_a_program_whose_events_occur_twice_counts_once()
{
	made_up <<-'END'
		file.block = b""
		file.odd = file.ksymbol(perfgen.ALPHA) + file.bpf_event(perfgen.ALPHA)
	END
	printf '%s\t2\n' 'answer=42, version="1.2.3"' 'version="2.0"' >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "sets of records" "$TMP/want" "$TMP/got"
}

# The BPF_EVENT of a second program with the name beta was lost, so the set may belong to it. The
# KSYMBOL of this program comes before all others, or after them.
test_a_set_is_ambiguous_if_a_lost_program_has_the_same_name()
{
	local where

	printf '%s\t2\n' '(ambiguous)' 'answer=42, version="1.2.3"' >"$TMP/want"
	for where in first odd; do
		made_up <<-END
			file.block = b""
			file.$where = file.ksymbol((11, *perfgen.BETA[1:3], perfgen.BETA[3] + 4096, []))
		END
		rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
		same "sets with a lost program, $where" "$TMP/want" "$TMP/got"
	done
}

# An interpreted program has the address of a kernel function.
test_an_interpreted_program_gets_no_samples_of_the_kernel()
{
	made_up <<-'END'
		text = b"[kernel.kallsyms]_text\0\0"
		addr = 0xffffffff81000000
		file.first = file.record(1, file.u32(0xffffffff, 0) + file.u64(addr, 1 << 24, addr) +
		                         text + file.sample_id(), perfgen.KERNEL)
		file.first += file.sample(addr + 16)
		inter = (11, "0123456789abcdef", "gamma", addr + 4096, [])
		file.infos.append(file.prog_info(inter))
		file.nr_infos = 3
		file.odd = file.bpf_event(inter) + file.sample(addr + 32)
	END
	rows -s bpf_prog -F period,bpf_prog -i "$TMP/made-up" >"$TMP/got"
	printf '%s\t2\n' '7 alpha' '9 beta' N/A >"$TMP/want"
	same "cost by program" "$TMP/want" "$TMP/got"
}

# Two sets that differ only in what is cut are two rows. Characters without a column are escaped.
test_long_and_invisible_values_are_cut_and_escaped()
{
	local long row shown

	made_up <<-'END'
		long = b'"' + b"x" * 60000
		same = [(b"team", '"o\u0308 \u202eabc \u200b\u6771 \u00e9"'.encode()), (b"k" * 300, b"1")]
		file.block = file.make_block([([(b"a", long + b'1"'), *same], [7]),
					      ([(b"a", long + b'2"'), *same], [9])])
	END
	long=$(printf 'x%.0s' {1..251})
	row="a=\"$long...\", $(printf 'k%.0s' {1..253})...=1, team=\"o\\u0308 \\u202eabc \\u200b東 é\""
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	printf '%s\t2\n' "$row" "$row" >"$TMP/want"
	same "rows" "$TMP/want" "$TMP/got"

	"$PBM_PERF" report --header-only -i "$TMP/made-up" | sed -n 's/^# bpf_metadata [79] [a-z]*: //p' >"$TMP/got"
	printf '%s\n' "$row" "$row" >"$TMP/want"
	same "lines of the header" "$TMP/want" "$TMP/got"

	shown=${row//, /,}
	"$PBM_PERF" script -F bpf_metadata -i "$TMP/made-up" | sort -u | sed 's/^ *//' >"$TMP/got"
	printf '%s\n' "${shown// /\\u0020}" >"$TMP/want"
	same "fields of perf script" "$TMP/want" "$TMP/got"

	# The filter sees what is shown.
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-filter='\u202eabc' -i "$TMP/made-up" >"$TMP/got"
	[[ $(wc -l <"$TMP/got") = 2 ]] || fail "the filter finds $(wc -l <"$TMP/got") rows"
}

# want_children KEY PERCENT...: with sort key KEY, the rows have these percentages of children.
want_children()
{
	"$PBM_PERF" report --stdio --children -g none -t '|' -s "$1" \
		-F "overhead_children,overhead,$1" -i "$TMP/made-up" >"$TMP/report"
	awk -F '[|]' '!/^#|^$/ { gsub(/ /, "", $1); print $1 }' "$TMP/report" >"$TMP/got"
	printf '%s\n' "${@:2}" >"$TMP/want"
	same "children by $1" "$TMP/want" "$TMP/got"
}

# Programs with the same set share a row. A callchain with two of these programs counts once.
test_children_of_a_row_count_each_sample_once()
{
	local sets

	for sets in 'perfgen.ALPHA[4]' '[]'; do
		made_up <<-END
			file.chain = [perfgen.BETA[3] + 16, perfgen.ALPHA[3] + 32]
			file.block = file.make_block([($sets, [7, 9])])
		END
		want_children bpf_metadata 100.00%
	done
	# Each program has a row. All samples have both programs in their callchains.
	want_children bpf_prog 100.00% 100.00%
}

# If perf knows the sets only at the end of the file, it turns --children off and says so.
test_children_without_the_block_are_left_out()
{
	made_up <<-'END'
		file.chain = [perfgen.BETA[3] + 16]
		file.block = b""
	END
	"$PBM_PERF" report --stdio --children -g none -s bpf_metadata -i "$TMP/made-up" >"$TMP/report" \
		2>"$TMP/messages"
	grep -q 'so --children is off' "$TMP/messages" || fail "no warning: $(cat "$TMP/messages")"
	grep -q '50.00%  version="2.0"' "$TMP/report" || fail "no row: $(cat "$TMP/report")"
	if grep -q -e '100.00%' "$TMP/report"; then
		fail "a row has samples of another: $(cat "$TMP/report")"
	fi
}

run_tests
