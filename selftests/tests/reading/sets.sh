#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf report of generated files: which set belongs to which program, where perf prints (ambiguous),
# how it aligns columns, how it counts children, and how long the sort keys take.

. "$(dirname "$0")/../../lib/report-lib.sh"

BESIDE=yes

# Two programs of one name and one set: the set may belong to either. As many equal sets as programs
# are enough to decide.
test_names_decide_only_what_they_can()
{
	made_up <<-'END'
		# Two programs of one name, and a set.
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
	[[ $(grep -c '"metadata": null' "$TMP/made-up.json") = 2 ]] || fail "JSON does not say so"

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
		fail "nothing is lost"
	fi
}

# perf record writes the first set of a program, and writes it again if it has grown.
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
	[[ $(perfdata block "$TMP/made-up.header" | wc -l) = 300 ]] || fail "not all of the last set"
}

# A set that does not contain the set before it belongs to another program, whose events may be
# lost. A record with other keys does not continue the record before it if that record had room for
# them.
test_a_set_that_does_not_grow_is_another_programs()
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

# perf record writes the events of the program when it starts, and the kernel writes them again.
test_a_program_that_is_told_twice_counts_once()
{
	made_up <<-'END'
		file.block = b""
		file.odd = file.ksymbol(perfgen.ALPHA) + file.bpf_event(perfgen.ALPHA)
	END
	printf '%s\t2\n' 'answer=42, version="1.2.3"' 'version="2.0"' >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "sets of records" "$TMP/want" "$TMP/got"
}

# The set may belong to a program whose BPF_EVENT was lost. Its KSYMBOL is before those of another
# program that loads, or after all others.
test_names_of_lost_programs_decide_nothing()
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
test_a_program_without_an_image_is_not_the_kernel()
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

test_columns_align_whatever_characters_are_in_them()
{
	local aligned

	made_up_wide 200
	"$PBM_PERF" report --stdio -F overhead,bpf_metadata,bpf_prog,sym -i "$TMP/made-up" >"$TMP/report"
	grep -q 'team="東京 e.*" *9 beta *\[k\] .*_beta *$' "$TMP/report" || fail "not all of it"
	aligned=$(count_aligned 'team=' '[79] [ab]' '\[k\] ' <"$TMP/report") || fail "columns are not aligned"
	[[ $aligned = 2 ]] || fail "$aligned rows"
	# The underline is as long as the longest text.
	grep -q '^# [.]*  [.]\{1207\}  ' "$TMP/report" || fail "the column is not as wide as its text"

	# A row ends at the width, and not within a character.
	"$PBM_PERF" report --stdio -F bpf_metadata,bpf_prog -w 8,8 -i "$TMP/made-up" >"$TMP/report"
	grep -v '^#' "$TMP/report" | sed -n 's/^  *\(team="[^ ]*\)  *\([79]\) .*/\2 \1/p' | sort >"$TMP/got"
	printf '%s\n' '7 team="Gr' '9 team="東' >"$TMP/want"
	same "cut columns" "$TMP/want" "$TMP/got"
}

# want_children KEY CHILDREN...: with this key, the rows of the generated file have these children.
want_children()
{
	"$PBM_PERF" report --stdio --children -g none -t '|' -s "$1" \
		-F "overhead_children,overhead,$1" -i "$TMP/made-up" >"$TMP/report"
	awk -F '[|]' '!/^#|^$/ { gsub(/ /, "", $1); print $1 }' "$TMP/report" >"$TMP/got"
	printf '%s\n' "${@:2}" >"$TMP/want"
	same "children by $1" "$TMP/want" "$TMP/got"
}

# Programs with the same set are one row, which counts a callchain with two of them once.
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
		fail "more than their own samples: $(cat "$TMP/report")"
	fi
}

# The test counts instructions, because their number is stable. bpf_prog once took 2.3 times as many
# as dso. perf collects rows of one set in the end, as it does for rows of one comm.
test_the_keys_take_as_long_as_those_of_base()
{
	local pair cost base

	native_only "the test counts instructions of perf in user space"
	command -v valgrind >/dev/null || skip "valgrind is not installed"
	[[ -z ${PBM_SANITIZED:-} ]] || skip "valgrind cannot run perf with AddressSanitizer"
	made_up <<-'END'
		file.nr_samples = 10000
	END
	for pair in bpf_prog:dso bpf_metadata:comm; do
		base=$(instructions_of report --stdio -s "${pair#*:},time" --time-quantum 1ns -i "$TMP/made-up")
		cost=$(instructions_of report --stdio -s "${pair%:*},time" --time-quantum 1ns -i "$TMP/made-up")
		(($(grep -c '%' "$TMP/out") >= 20000)) || fail "next to no rows"
		echo "-s ${pair%:*} takes $((100 * cost / base)) % of the instructions of -s ${pair#*:}"
		((10 * cost <= 11 * base)) || fail "that is too much"
	done
}

# The instructions of a perf command in user space
instructions_of()
{
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$TMP/callgrind" \
		"$PBM_PERF" "$@" >"$TMP/out" 2>"$TMP/err" || fail "$*: $(tail -n 5 "$TMP/err")"
	sed -n 's/^==[0-9]*== Collected : \([0-9]*\)$/\1/p' "$TMP/callgrind"
}

run_tests
