#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf report of generated files: which set belongs to which program, what it cuts, and how it counts
# children. A set is all metadata of a program. The block is the metadata in the header of perf.data.

. "$(dirname "$0")/../../lib/report-lib.sh"

BESIDE=yes

# prints OPTION...: perf report of $TMP/made-up prints the lines of standard input
prints()
{
	report -q "$@" -i "$TMP/made-up" >"$TMP/report"
	sed 's/ *$//; /^$/d' "$TMP/report" >"$TMP/got"
	cat >"$TMP/want"
	same "perf report $*" "$TMP/want" "$TMP/got"
}

# The three places of metadata: the block of a file, the records of a file, and those of a pipe
KINDS=('file.with_records = False' 'file.block = b""' 'file = perfgen.File(pipe=True); file.block = b""')

# The rows of an unchanged made_up
TWO_SETS='bpf_metadata
  2 answer=42, version="1.2.3"
  2 version="2.0"'

# One key begins with another one. Keys are shown in the order of the option.
test_keys_are_selected()
{
	local kind

	for kind in "${KINDS[@]}"; do
		made_up <<-END
			sets = [(b"nr", b"7"), (b"owner", b'"x"'), (b"owner_2", b"1")], [(b"owner", b'"x"'), (b"owner_2", b"2")]
			perfgen.ALPHA, perfgen.BETA = (*perfgen.ALPHA[:4], sets[0]), (*perfgen.BETA[:4], sets[1])
			$kind
			file.block = file.block and file.make_block([(sets[0], [7]), (sets[1], [9])])
		END
		shows <<-'END'
			bpf_metadata
			  2 nr=7, owner="x", owner_2=1
			  2 owner="x", owner_2=2
			bpf_metadata --bpf-metadata-keys owner
			  4 owner="x"
			bpf_metadata --bpf-metadata-keys ' owner_2 , ,no_such_key,owner,owner_2,'
			  2 owner_2=1, owner="x"
			  2 owner_2=2, owner="x"
			bpf_metadata --bpf-metadata-keys nr
			  2 (none)
			  2 nr=7
			bpf_metadata --bpf-metadata-keys=nr --no-bpf-metadata-keys
			  2 nr=7, owner="x", owner_2=1
			  2 owner="x", owner_2=2
		END
	done
	# The keys of perfconfig are the default.
	cat "$PERF_CONFIG" - >"$TMP/perfconfig.keys" <<<$'[report]\n\tbpf-metadata-keys = nr'
	PERF_CONFIG=$TMP/perfconfig.keys shows <<-'END'
		bpf_metadata
		  2 (none)
		  2 nr=7
		bpf_metadata --bpf-metadata-keys owner
		  4 owner="x"
		bpf_metadata --no-bpf-metadata-keys
		  2 nr=7, owner="x", owner_2=1
		  2 owner="x", owner_2=2
	END
}

# The filters look for a part of what is shown.
test_rows_are_filtered_and_have_other_keys()
{
	local kind

	for kind in "${KINDS[@]}"; do
		made_up <<-END
			$kind
			file.odd = file.sample(16)      # in no function
		END
		shows <<-'END'
			bpf_metadata --bpf-metadata-filter 'version="1'
			  2 answer=42, version="1.2.3"
			bpf_metadata --bpf-metadata-filter '42, version='
			  2 answer=42, version="1.2.3"
			bpf_metadata --bpf-metadata-filter 'version="'
			  2 answer=42, version="1.2.3"
			  2 version="2.0"
			bpf_metadata --bpf-metadata-filter N/A
			  1 N/A
			bpf_metadata --bpf-metadata-filter 'no such text'
			bpf_prog --bpf-prog-filter '7 al'
			  2 7 alpha
			bpf_prog --bpf-prog-filter a
			  2 7 alpha
			  2 9 beta
			bpf_prog --bpf-prog-filter N/A
			  1 N/A
			bpf_prog,bpf_metadata --bpf-prog-filter 9 --bpf-metadata-filter 2.0
			  2 9 beta|version="2.0"
			bpf_metadata,sym
			  1 N/A|[k] 0x0000000000000010
			  2 answer=42, version="1.2.3"|[k] bpf_prog_0011223344556677_alpha
			  2 version="2.0"|[k] bpf_prog_8899aabbccddeeff_beta
			comm,bpf_metadata,bpf_prog
			  1 swapper|N/A|N/A
			  2 swapper|answer=42, version="1.2.3"|7 alpha
			  2 swapper|version="2.0"|9 beta
		END
	done
	prints -s bpf_metadata --percentage relative --bpf-metadata-filter version=\"2 <<-'END'
		   100.00%  version="2.0"
	END
	prints -H -s bpf_metadata,bpf_prog,sym --bpf-metadata-filter 42 <<-'END'
		    40.00%        answer=42, version="1.2.3"
		       40.00%        7 alpha
		          40.00%        [k] bpf_prog_0011223344556677_alpha
	END
	prints -H -s bpf_prog,bpf_metadata --bpf-metadata-filter N/A <<-'END'
		    20.00%     N/A
		       20.00%     N/A
	END
}

# Two builds of a program have the same name and tag. The id in each record tells them apart. Without
# PERF_RECORD_BPF_EVENT, the programs are not known, but their tags differ.
test_programs_of_one_name_have_their_own_rows()
{
	made_up <<-'END'
		perfgen.BETA = (9, *perfgen.ALPHA[1:3], *perfgen.BETA[3:])
		file.infos = [file.prog_info(perfgen.ALPHA), file.prog_info(perfgen.BETA)]
		file.block = b""
	END
	shows <<<"$TWO_SETS"
	"$PBM_PERF" diff -s bpf_metadata "$TMP/made-up" "$TMP/made-up" |
		sed -n 's/^.*+0.00%  *\(.*[^ ]\) *$/  2 \1/p' | sort >"$TMP/got"
	same "sets in perf diff" <(grep '^ ' <<<"$TWO_SETS") "$TMP/got"
	made_up <<-END
		old, new = perfgen.ALPHA, (9, "8899aabbccddeeff", "alpha", perfgen.BETA[3], [])
		file.records = lambda: file.ksymbol(old) + samples(old[3], 3) + file.ksymbol(new) + samples(new[3], 4)
	END
	shows <<<$'bpf_prog\n  3 alpha\n  4 alpha'
}

# with_late_events NR [FUNCTIONS]: generate a file with a program of two functions, and another
# program of the same name. The events that name the programs come after NR of 6 samples, or of
# samples in FUNCTIONS. The first program calls all functions.
with_late_events()
{
	made_up <<-END
		main, other = perfgen.ALPHA, (9, perfgen.BETA[1], "alpha", *perfgen.BETA[3:])
		sub = (7, "1111111111111111", "sub", main[3] + 0x4000, [])
		file.infos, file.nr_infos, file.chain = [], 0, []

		def records():
		    out = b""
		    for file.tid, functions in (1, (main, sub)), (2, (other,)):
		        out += b"".join(map(file.ksymbol, functions))
		    for n, function in enumerate((${2:-sub, main, other, sub, other, sub}, None)):
		        if n == $1:
		            for file.tid, prog in (1, main), (2, other):
		                out += file.bpf_event(prog)
		        file.chain = [main[3] + 32]
		        out += file.sample(function[3] + 16) if function else b""
		    return out

		file.records = records
	END
}

# outputs: print what perf shows of $TMP/made-up, with different keys and filters
outputs()
{
	local key

	for key in bpf_prog bpf_metadata; do
		by "$key" "$TMP/made-up"
		# A key that is only in --fields is also a sort key.
		rows -F "period,$key" -i "$TMP/made-up"
	done
	report -q -H -s bpf_metadata,bpf_prog,sym -i "$TMP/made-up"
	by bpf_prog,sym "$TMP/made-up" --bpf-prog-filter '7 alpha'
	"$PBM_PERF" diff -s bpf_prog "$TMP/known" "$TMP/made-up" | grep -v '^#'
}

# An event can tell the program of a function before, between and after its samples.
test_rows_do_not_depend_on_when_a_program_becomes_known()
{
	local nr

	with_late_events 0
	cp "$TMP/made-up" "$TMP/known"
	shows <<-'END'
		bpf_prog
		  4 7 alpha
		  2 9 alpha
	END
	outputs >"$TMP/want"
	for nr in 1 3 5 6; do
		with_late_events "$nr"
		outputs >"$TMP/got"
		same "rows after $nr samples" "$TMP/want" "$TMP/got"
	done
	grep -q -e '+0.00%.*alpha' "$TMP/got" || fail "perf diff finds another cost: $(cat "$TMP/got")"
}

# The functions of a program are not beside each other, neither by time nor name nor address. perf itself
# writes the events of programs that were loaded before, all by one thread and without times. There, the main
# function of a program with several functions has another tag than the program.
test_functions_belong_to_the_program_whose_event_follows()
{
	made_up <<-'END'
		programs = [[(id, f"{16 * n + id:016x}", f"f{id}", 0xffffffffc0100000 + 0x10000 * n + 0x1000 * id, [])
		             for n in range(5)] for id in range(1, 10)]
		file.infos, file.nr_infos = [], 0

		def records():
		    out = b""
		    for n in range(5):
		        for file.tid, functions in enumerate(programs):
		            out += file.ksymbol(functions[n])
		    for file.tid, functions in enumerate(programs):
		        out += file.bpf_event(functions[0])
		    return out + b"".join(file.sample(f[3] + 16) for functions in programs for f in functions)

		file.records = records
	END
	shows < <(echo bpf_prog; printf '  5 %d f%d\n' 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9)
	made_up <<-'END'
		sub = (0, f"{1:016x}", "sub", 0xffffffffc0010000, [])
		file.infos, file.nr_infos = [], 0
		file.records = lambda: b"".join(map(synthesized, (
		    file.ksymbol(perfgen.ALPHA), file.bpf_event(perfgen.ALPHA), file.ksymbol(perfgen.BETA),
		    file.ksymbol(sub), file.bpf_event((9, 8 * "ff"))))) + \
		    samples(perfgen.ALPHA[3]) + samples(perfgen.BETA[3], 2) + samples(sub[3], 3)
	END
	shows <<<$'bpf_prog\n  1 7 alpha\n  5 9 beta'
}

# want_shares KEY TEXT: these are the first two words, the shares, of the lines of perf report --children
want_shares()
{
	"$PBM_PERF" report --stdio --children -g none -s "$1" -i "$TMP/made-up" >"$TMP/got" 2>"$TMP/messages"
	[[ $(awk 'NF && !/^#/ { print $1, $2 }' "$TMP/got" | sort -r | xargs) = "$2" ]] ||
		fail "shares by $1: $(cat "$TMP/got")"
}

# If a function calls another one of its program, the sample counts once. If the programs are not
# known yet, they may have the same name, but not the same row of bpf_prog.
test_functions_in_a_call_chain_count_once()
{
	local key

	with_late_events 0
	for key in bpf_prog bpf_metadata; do
		want_shares "$key" '33.33% 33.33% 100.00% 66.67%'
	done
	with_late_events 2 other,other
	want_shares bpf_prog '100.00% 100.00% 100.00% 0.00%'
	# No event tells which programs these are.
	with_late_events 9
	want_shares bpf_metadata '100.00% 100.00%'
}

# Records of other perfs name only a function, which may belong to several programs.
test_records_without_an_id_say_nothing()
{
	made_up <<-'END'
		file.block = b""
		file.with_records = False
		file.odd = file.metadata(perfgen.ALPHA, with_id=False)
		file.odd += file.metadata(perfgen.BETA, [(b"version", b"1"), (b"(id)", b"9")], with_id=False)
	END
	shows <<<$'bpf_metadata\n  4 (unknown)'
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/made-up" -o "$TMP/made-up.header" 2>"$TMP/messages"
	(($(grep -c "^WARNING: removed the metadata .* don't have the id" "$TMP/messages") == 1)) ||
		fail "not one warning: $(cat "$TMP/messages")"
	perfdata block "$TMP/made-up.header" >"$TMP/got"
	[[ ! -s $TMP/got ]] || fail "perf inject stores what it guessed"
	"$PBM_PERF" data convert --force --to-json "$TMP/made-up.json" -i "$TMP/made-up"
	! grep bpf-metadata "$TMP/made-up.json" || fail "JSON shows metadata"
	"$PBM_PERF" script --show-bpf-events -i "$TMP/made-up" >"$TMP/script"
	grep -q -E 'entry 0: +version = "1.2.3"' "$TMP/script" || fail "perf script does not print the record"
}

# The header has whole values, records may have cut ones, and each may lack programs.
test_the_header_wins_over_records()
{
	made_up <<<'file.block = file.make_block([([(b"version", b"\"header\"")], [7, 9])])'
	shows <<<$'bpf_metadata\n  4 version="header"'
	made_up <<<'file.block = file.make_block([([(b"version", b"\"header\"")], [7])])'
	shows <<<$'bpf_metadata\n  2 version="2.0"\n  2 version="header"'
	made_up <<<'file.with_records, file.odd = False, file.metadata(perfgen.ALPHA)'
	"$PBM_PERF" inject -i "$TMP/made-up" -o - >"$TMP/piped"
	mv "$TMP/piped" "$TMP/made-up"
	shows <<<"$TWO_SETS"
	[[ $(perfdata records "$TMP/made-up" | cut -f 4 | xargs) = '7 9' ]] || fail "the pipe has other records"
}

# A program has one more record if its maps are bound late, or if it has many keys. If a program loads while
# perf record starts, perf record and the kernel both write its events.
test_all_records_of_a_program_count_once()
{
	made_up <<-'END'
		file.block = b""
		file.first = file.metadata(perfgen.ALPHA, perfgen.ALPHA[4][:1])
		file.odd = 2 * file.metadata(perfgen.ALPHA, perfgen.ALPHA[4][1:]) + load(perfgen.ALPHA)
		file.odd += file.metadata(perfgen.BETA, [(b"k%d" % i, b"%d" % i) for i in range(201)])
	END
	shows <<-'END'
		bpf_metadata --bpf-metadata-keys=answer,version,k200
		  2 answer=42, version="1.2.3"
		  2 version="2.0", k200=200
	END
}

# The event of an unload is lost, and the next program has the address. An interpreted program has the
# address of a kernel function.
test_a_program_has_no_samples_of_what_was_or_is_at_its_address()
{
	local infos

	for infos in '' 'file.prog_info(old), file.prog_info(new)'; do
		made_up <<-END
			old, new = perfgen.ALPHA, (11, "aabbccddeeff0011", "gamma", perfgen.ALPHA[3], [])
			file.infos = [$infos]
			file.nr_infos = len(file.infos)
			file.records = lambda: load(old) + samples(old[3], 3) + load(new) + samples(new[3])
		END
		shows <<<$'bpf_prog\n  1 11 gamma\n  3 7 alpha'
	done
	made_up <<-'END'
		addr = 0xffffffff81000000
		inter = (11, "0123456789abcdef", "gamma", addr + 4096, [])
		file.infos.append(file.prog_info(inter))
		file.nr_infos = 3
		file.first = kernel(addr, 1 << 24) + samples(addr + 16)
		file.odd = file.bpf_event(inter) + samples(addr + 32)
	END
	shows <<<$'bpf_prog\n  2 7 alpha\n  2 9 beta\n  2 N/A'
}

# perf takes a page for each trampoline that exists when it starts, and a program can have its address later.
# perf's own events have no time, and programs come first. The page of the first trampoline has another one,
# too. The kernel also says that a trampoline has a page.
test_a_trampoline_ends_where_the_next_function_begins()
{
	local offset

	for offset in 0 0x400; do
		made_up <<-END
			at = perfgen.ALPHA[3]
			file.records = lambda: (trampoline(at - $offset, "bpf_trampoline_1") + samples(at) + load(perfgen.ALPHA) +
			                        samples(at, 2))
		END
		shows <<-'END'
			bpf_prog,sym
			  2 7 alpha|[k] bpf_prog_0011223344556677_alpha
			  1 N/A|[k] bpf_trampoline_1
		END
	done
	made_up <<-'END'
		prog, other = perfgen.ALPHA, perfgen.BETA
		file.records = lambda: (b"".join(map(synthesized, (
		    file.ksymbol(prog), file.bpf_event(prog), file.ksymbol(other), file.bpf_event(other),
		    trampoline(prog[3] - 0x400, "bpf_trampoline_2"), trampoline(prog[3] - 0x800, "bpf_trampoline_1")))) +
		    samples(prog[3] - 0x401) + samples(prog[3] - 1, 2) + samples(prog[3], 3) +
		    trampoline(other[3] - 0x100, "bpf__ops_member") + samples(other[3] - 1, 4) + samples(other[3], 5))
	END
	shows <<-'END'
		bpf_prog,sym
		  3 7 alpha|[k] bpf_prog_0011223344556677_alpha
		  5 9 beta|[k] bpf_prog_8899aabbccddeeff_beta
		  4 N/A|[k] bpf__ops_member
		  1 N/A|[k] bpf_trampoline_1
		  2 N/A|[k] bpf_trampoline_2
	END
}

# kcore has a segment for all modules, and perf reads it with the first sample in the kernel.
test_kcore_does_not_hide_programs_that_load_later()
{
	mkdir -p "$TMP/kcore"
	: >"$TMP/kcore/modules"
	printf '%s\n' 'ffffffff81000000 T _stext' 'ffffffff81000f00 T idle' 'ffffffff82000000 T _etext' \
		>"$TMP/kcore/kallsyms"
	made_up <<-END
		import struct
		first = 0xffffffff81000000

		segments = b"".join(struct.pack("<IIQQQQQQ", 1, 7, address & 0x7fffffff, address, 0, size, size, 0x1000)
		                    for address, size in ((first, 0x1400000), (0xffffffffc0000000, 0x3f000000)))
		head = b"\\x7fELF\\2\\1\\1".ljust(16, b"\\0") + \
		       struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
		open(sys.argv[1].replace("made-up", "kcore/kcore"), "wb").write(head + segments)

		file.records = lambda: kernel(first, 0x1000000) + samples(first + 0xf10) + load(perfgen.ALPHA) + \\
		    samples(perfgen.ALPHA[3], 2)
	END
	shows <<-END
		bpf_prog,sym --kallsyms $TMP/kcore/kallsyms
		  2 7 alpha|[k] bpf_prog_0011223344556677_alpha
		  1 N/A|[k] idle
	END
}

# The name is from the file, too: it can't begin a line of its own.
test_a_name_in_a_line_of_the_header_is_escaped()
{
	made_up <<-'END'
		perfgen.ALPHA = (*perfgen.ALPHA[:2], "a\x1b\n# b", *perfgen.ALPHA[3:])
		file.infos[0] = file.prog_info(perfgen.ALPHA)
	END
	"$PBM_PERF" report --header-only -i "$TMP/made-up" |
		grep -a '^# bpf_metadata 7 a.*# b: answer=42' >"$TMP/got" || fail "no line with the name"
	! grep -P '\x1b' "$TMP/got" || fail "an escape character is printed"
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
	# The filter sees what is shown.
	printf '%s\n  2 %s\n  2 %s\n' bpf_metadata "$row" "$row" "bpf_metadata --bpf-metadata-filter='\\u202eabc'" \
		"$row" "$row" >"$TMP/table"
	shows <"$TMP/table"

	"$PBM_PERF" report --header-only -i "$TMP/made-up" | sed -n 's/^# bpf_metadata [79] [a-z]*: //p' >"$TMP/got"
	printf '%s\n' "$row" "$row" >"$TMP/want"
	same "lines of the header" "$TMP/want" "$TMP/got"

	shown=${row//, /,}
	"$PBM_PERF" script -F bpf_metadata -i "$TMP/made-up" | sort -u | sed 's/^ *//' >"$TMP/got"
	printf '%s\n' "${shown// /\\u0020}" >"$TMP/want"
	same "fields of perf script" "$TMP/want" "$TMP/got"
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
		want_shares bpf_metadata '100.00% 100.00%'
	done
	# Each program has a row. All samples have both programs in their callchains.
	want_shares bpf_prog '100.00% 50.00% 100.00% 50.00%'
	"$PBM_PERF" report --stdio -q --no-children -g caller -s bpf_prog -i "$TMP/made-up" >"$TMP/got"
	grep -A 4 '50.00%  9 beta' "$TMP/got" | grep -e '-bpf_prog_.*_alpha' || fail "no callchain: $(cat "$TMP/got")"
	# If perf knows the sets only at the end of the file, it turns --children off and says so.
	made_up <<<'file.block, file.chain = b"", [perfgen.BETA[3] + 16]'
	want_shares bpf_metadata '50.00% version=2.0 50.00% answer=42,'
	grep -q 'so --children is off' "$TMP/messages" || fail "no warning: $(cat "$TMP/messages")"
}

run_tests
