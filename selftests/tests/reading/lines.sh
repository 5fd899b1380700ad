#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Source lines of BPF programs. perf.data has them in bpf_prog_info and BTF.

. "$(dirname "$0")/../../lib/report-lib.sh"
. "$(dirname "$0")/../../lib/terminal.sh"
few_symbols
# What perf shows if the line is not known
OFFSET=bpf_prog_0011223344556677_alpha+16

# All tests of real lines share this recording. $TMP/table has the lines of the program, and $TMP/six the
# name of its function six(), which has line 24.
record_lines()
{
	[[ ! -e $TMP/id ]] || return 0
	hold lines
	spend 0 $((40000 / SCALE))
	record "$TMP/lines" -g
	"$BPFTOOL" prog dump xlated id "${HELD_IDS[0]}" linum >"$TMP/xlated"
	perfdata lines "$TMP/lines" "${HELD_IDS[0]}" >"$TMP/table"
	awk '$1 ~ /_six$/ { print $1; exit }' "$TMP/table" >"$TMP/six"
	[[ -s $TMP/six ]] || fail "the program has no lines in the file"
	echo "${HELD_IDS[0]}" >"$TMP/id"
}

# Each function has most of its samples in its loop. Line 35 calls both subprograms. The program is not
# loaded any more. bpftool has the lines of the instructions that the kernel compiles.
test_functions_and_callchains_have_lines_also_after_inject()
{
	local file

	record_lines
	cut -f 3-5 "$TMP/table" | sort -u >"$TMP/got"
	sed -n 's/^; \(.*\) \[file:\(.*\) line_num:\([0-9]*\) line_col:[0-9]*\]$/\2\t\3\t\1/p' "$TMP/xlated" |
		sort -u >"$TMP/want"
	same "lines in the file" "$TMP/want" "$TMP/got"
	"$PBM_PERF" inject -i "$TMP/lines" -o "$TMP/injected"
	printf '%s\n' 'lines lines.bpf.c:34' 'six lines.bpf.c:24' 'three lines.bpf.c:15' >"$TMP/want"
	for file in lines injected; do
		by bpf_prog,sym,srcline "$TMP/$file" | sort -t $'\t' -k 2,2nr |
			sed -n "s/^$(cat "$TMP/id") lines|\[k\] bpf_prog_[0-9a-f]*_\(.*\)|\(.*\)\t.*/\1 \2/p" |
			awk '!found[$1]++' | sort >"$TMP/got"
		same "lines with most samples in $file" "$TMP/want" "$TMP/got"
	done
	"$PBM_PERF" report --stdio --no-children -s sym -g caller,srcline,0,count -i "$TMP/lines" >"$TMP/report"
	grep -o 'lines\.bpf\.c:35\>' "$TMP/report" || fail "no chain has line 35"
}

# with_disassembler NAME ARGUMENT...: run perf with this disassembler
with_disassembler()
{
	printf '[annotate]\n\tdisassemblers = %s\n' "$1" >"$TMP/config"
	PERF_CONFIG=$TMP/config "$PBM_PERF" "${@:2}"
}

# The same as record_lines. Also set "disassemblers" to those that this perf has, of those that disassemble
# BPF programs.
record_for_annotate()
{
	local name

	record_lines
	declare -g SYMBOL disassemblers=()
	SYMBOL=$(cat "$TMP/six")
	{
		"$PBM_PERF" version --build-options | grep ' on '
		ldd "$PBM_PERF"		# v6.16 doesn't list LLVM
	} >"$TMP/features"
	for name in capstone LLVM; do
		! grep -q "lib$name" "$TMP/features" || disassemblers+=("${name,,}")
	done
	((${#disassemblers[@]})) || skip "this perf is built without capstone and LLVM"
}

# changed_lines CODE: copy the recording to $TMP/changed. CODE can put values into the bpf_prog_info of the
# program. There, and in "records", which are those of lines, are offsets into the file.
changed_lines()
{
	echo "$1"
	PYTHONPATH=$SELFTESTS/lib python3 -S - "$TMP" "$(cat "$TMP/id")" "$1" <<-'END'
		import struct, sys, perfdata
		tmp, prog, code = sys.argv[1:]
		data = perfdata.PerfData(f"{tmp}/lines")
		copy = bytearray(data.bytes)
		def get(kind, offset):
		    return struct.unpack_from("=" + kind, copy, offset)[0]
		def put(kind, offset, value):
		    struct.pack_into("=" + kind, copy, offset, value)
		for at, _ in data.infos()[:-1]:
		    info = at + perfdata.BPIL_SIZE
		    begin = info + get("I", at)
		    if get("I", info + 4) == int(prog):
		        lens = begin + get("Q", info + 120)
		        records = [begin + get("Q", info + 152) + 16 * i for i in range(get("I", info + 148))]
		        exec(code)
		with open(f"{tmp}/changed", "wb") as file:
		    file.write(copy)
	END
}

# The kernel has the address of the first instruction of each line. So it must be that of an instruction
# here, which shows that the code is that of the function.
annotate_is_right()
{
	local name symbol

	perfdata lines "$1" "$(cat "$TMP/id")" >"$TMP/annotated-lines"
	for name in "${disassemblers[@]}"; do
		while read -r symbol; do
			with_disassembler "$name" annotate --stdio -i "$1" "$symbol" >"$TMP/out" 2>&1
			python3 -S - "$symbol" "$TMP/annotated-lines" "$TMP/out" <<-'END' || fail "$name: $(cat "$TMP/out")"
				import bisect, re, sys
				symbol, table, out = sys.argv[1:]
				rows = [line.rstrip("\n").split("\t", 4) for line in open(table)]
				lines = [(int(row[1]), row[3], row[4].expandtabs().rstrip()) for row in rows if row[0] == symbol]
				source, last, offsets = None, None, []
				for row in open(out):
				    instruction = re.match(r" +[0-9.]+ : +([0-9a-f]+): +\S", row)
				    line = re.match(r" +: +([1-9][0-9]*) +(.*)", row)
				    if line:
				        source = line[1], line[2]
				    if re.fullmatch(r" +:\s*", row):
				        source = "no line"
				    if instruction:
				        offset = int(instruction[1], 16)
				        _, number, text = lines[bisect.bisect_right(lines, (offset, "~")) - 1]
				        want = (number, text) if text else "no line" if last else None
				        if source != (want if want != last else None):
				            sys.exit(f"the source line before {offset:x} is {source}, want {want} after {last}")
				        source, last = None, want
				        offsets.append(offset)
				if not {offset for offset, _, _ in lines} <= set(offsets):
				    sys.exit(f"instructions at {offsets}, lines at {lines}")
			END
		done < <(cut -f 1 "$TMP/table" | sort -u)
	done
}

test_annotate_shows_lines_and_instructions()
{
	local change

	record_for_annotate
	# Another line with the number of the line before it, one line without text, no text
	for change in '' \
		'[(put("I", at + 4, get("I", at + 4) + 1), put("I", at + 12, 21 << 10))
			for at in records if get("I", at + 12) >> 10 == 24]' \
		'[put("I", at + 8, 0) for at in records if get("I", at + 12) >> 10 == 24]' \
		'[put("I", at + 8, 0) for at in records]'; do
		changed_lines "$change"
		annotate_is_right "$TMP/changed"
	done
	! grep -E '^ +: *$' "$TMP/out" || fail "empty lines"
}

# perf finds the program of a function whose name has values of metadata, too.
test_annotate_expands_tabs_leaves_lines_out_or_sums_by_line()
{
	local name

	record_for_annotate
	"$PBM_PERF" inject --bpf-metadata-names=version -i "$TMP/lines" -o "$TMP/named"
	for name in "${disassemblers[@]}"; do
		with_disassembler "$name" annotate --stdio -i "$TMP/named" "${SYMBOL}[version=lines]" >"$TMP/out"
		grep -E '^ +: 24 {17}x = x \* 5 \+ 3;$' "$TMP/out" || fail "$name: $(cat "$TMP/out")"
		with_disassembler "$name" annotate --stdio --no-source -i "$TMP/lines" "$SYMBOL" >"$TMP/out"
		grep '^ .* : .*[0-9a-f]: ' "$TMP/out"
		! grep -e 'x = x' "$TMP/out" || fail "$name: source lines"
	done
	"$PBM_PERF" annotate --stdio -l -i "$TMP/lines" "$SYMBOL" >"$TMP/out"
	sed '/Percent/,$d' "$TMP/out" | grep -E '^ +[0-9]+\.[0-9]+ lines\.bpf\.c:2[34]$' || fail "$(cat "$TMP/out")"
}

# Neither a file with the name of the function, nor one that BTF names.
test_annotate_opens_no_file()
{
	record_for_annotate
	cd "$TMP"
	: >"$SYMBOL"
	trace -f -o opened -e trace=open,openat "$PBM_PERF" annotate --stdio -i lines "$SYMBOL" >out
	grep -E ': 24 +x = x' out
	! grep -F -e "$SYMBOL" -e 'lines.bpf.c' opened || fail "perf has opened a file"
}

# perf.data has the code of all functions, one after the other. Fill each function with another byte that is
# an instruction.
test_script_prints_instructions_of_subprograms()
{
	record_lines
	changed_lines '
insns = begin + get("Q", info + 24)
for byte, at in enumerate((lens, lens + 4, lens + 8), 0x90):
    copy[insns:insns + get("I", at)] = bytes([byte]) * get("I", at)
    insns += get("I", at)'
	"$PBM_PERF" script -G -F ip,sym,insn -i "$TMP/changed" |
		sed -n 's/.* bpf_prog_[0-9a-f]*_\(lines\|three\|six\) *insn: \(..\).*/\1 \2/p' | sort -u >"$TMP/got"
	printf '%s\n' 'lines 90' 'six 92' 'three 91' >"$TMP/want"
	same "instructions" "$TMP/want" "$TMP/got"
}

# The code of a subprogram is behind that of other functions, whose lengths can be wrong.
test_annotate_refuses_code_that_is_not_there()
{
	local bad

	record_for_annotate
	for bad in 'put("I", info + 108, 0)' 'put("I", info + 108, 1)' 'put("Q", at + 8, get("Q", at + 8) & ~(1 << 4))' \
		'put("I", lens, 0xffffffff)' 'put("I", info + 16, 8)' 'put("Q", at + 8, get("Q", at + 8) & ~1)'; do
		changed_lines "$bad"
		"$PBM_PERF" annotate --stdio -i "$TMP/changed" "$SYMBOL" >"$TMP/out" 2>&1
		grep "Couldn't annotate $SYMBOL" "$TMP/out" || fail "perf annotate '$SYMBOL': $(cat "$TMP/out")"
	done
}

test_key_s_shows_lines_in_the_browser()
{
	record_for_annotate
	open_terminal "$PBM_PERF" annotate --tui -i "$TMP/lines" "$SYMBOL"
	await "the instructions" terminal_shows '(imul|mul|madd|add)'
	# v6.16 shows them from the start.
	if terminal_shows 'x = x \* 5'; then
		press s
		await "instructions without lines" terminal_hides 'x = x \* 5'
	fi
	press s
	await "the source line" terminal_shows 'x = x \* 5 \+ 3;'
	press q
	close_terminal
}

# made_up_lines ARGUMENTS [OFFSET...]: write $TMP/made-up with source lines of the program alpha, and samples
# at these offsets
made_up_lines()
{
	made_up <<-END
		lines = [(0, b"/src/a.bpf.c", b"\tfirst();", 3), (16, b"/src/b.bpf.c", b"second();", 1000),
		         (24, b"/src/a.bpf.c", b"third();", 4)]
		file.infos[0] = file.lines(perfgen.ALPHA, $1)
		file.records = lambda: load(perfgen.ALPHA) + b"".join(
		    samples(perfgen.ALPHA[3] + int(place)) for place in "${*:2}".split())
	END
}

# shows_line LINE ARGUMENTS: a sample at offset 16 has this line
shows_line()
{
	made_up_lines "$2" 16
	shows <<<$'srcline\n  1 '"$1"
}

test_lines_are_sort_keys()
{
	made_up_lines lines 0 16 20 24
	shows <<-'END'
		srcline
		  1 a.bpf.c:3
		  1 a.bpf.c:4
		  2 b.bpf.c:1000
		bpf_prog,srcline
		  1 7 alpha|a.bpf.c:3
		  1 7 alpha|a.bpf.c:4
		  2 7 alpha|b.bpf.c:1000
		bpf_metadata,srcfile
		  2 answer=42, version="1.2.3"|a.bpf.c
		  2 answer=42, version="1.2.3"|b.bpf.c
	END
	"$PBM_PERF" diff -s bpf_prog,srcline "$TMP/made-up" "$TMP/made-up" >"$TMP/diff"
	grep -E '50\.00% +\+0\.00% +alpha +b\.bpf\.c:1000' "$TMP/diff" || fail "$(cat "$TMP/diff")"
	shows_line b.bpf.c:1000 'lines'
	shows_line a.bpf.c:3 'lines[:1] + lines[2:]'
	# The records of another kernel can be longer.
	shows_line b.bpf.c:1000 'lines, line_size=24, address_size=16'
	shows_line 'no [2Jhost :1' '[(0, b"no\x1b[2Jhost\n", b"", 1)]'
	shows_line 'a  2Jü.c:1' '[(0, "a\x9b2J\xfc.c".encode(), b"", 1)]'
	# The address is behind the code of the function.
	shows_line "$OFFSET" 'lines, length=16'
	# A pipe has no bpf_prog_info when perf record writes it.
	made_up <<<'file = perfgen.File(pipe=True)'
	shows <<<$'srcline\n  2 '"$OFFSET"$'\n  2 bpf_prog_8899aabbccddeeff_beta+16'
}

# JSON has the path and the text, too.
test_frames_in_json_have_lines()
{
	made_up <<-END
		file.infos[0] = file.lines(perfgen.ALPHA, [(0, b"/a/b.c", b"\tfirst();", 3), (16, b"/a/c.h", b'say("a");', 4)])
		file.chain = [perfgen.ALPHA[3] + 8, perfgen.BETA[3]]
		file.nr_samples = 1
	END
	"$PBM_PERF" data convert --force --to-json "$TMP/json" -i "$TMP/made-up"
	python3 -c 'import json, sys
for sample in json.load(open(sys.argv[1]))["samples"]:
    print(*(frame.get(key, "-") for frame in sample["callchain"] for key in ("srcfile", "line", "srccode")))' \
		"$TMP/json" >"$TMP/got"
	printf '%s\n' '/a/c.h 4 say("a"); /a/b.c 3 	first(); - - -' '- - - /a/b.c 3 	first(); - - -' >"$TMP/want"
	same "files, lines and texts of frames" "$TMP/want" "$TMP/got"
}

# The file with this name here can be another one.
test_srccode_is_that_of_the_recorded_btf()
{
	echo 'int local;' >"$TMP/local.c"
	made_up_lines "[(0, b'$TMP/local.c', b'recorded();', 1)]" 16
	"$PBM_PERF" script -F ip,srccode -i "$TMP/made-up" >"$TMP/out"
	grep -E '^\|1 +recorded\(\);$' "$TMP/out" || fail "perf shows: $(cat "$TMP/out")"
	if "$PBM_PERF" check -q feature libpython; then
		printf '%s\n' 'from perf_trace_context import *' 'def process_event(event):' \
			'    print("srccode", perf_sample_srccode(perf_script_context))' >"$TMP/script.py"
		"$PBM_PERF" script -s "$TMP/script.py" -i "$TMP/made-up" >"$TMP/out"
		grep srccode "$TMP/out"
		! grep 'int local' "$TMP/out" || fail "perf has opened the file"
	fi
	# Lines of two files can have the same number and text.
	made_up_lines '[(0, b"a.h", b"both();", 20), (16, b"b.h", b"both();", 20)]' 0 16 16
	"$PBM_PERF" script -F ip,srccode -i "$TMP/made-up" >"$TMP/out"
	[[ $(grep -c '^|20 *both();$' "$TMP/out") = 2 ]] || fail "perf shows: $(cat "$TMP/out")"
}

# perf shows the symbol and the offset then, as without lines.
test_bad_lines_are_not_used()
{
	local bad

	for bad in '[]' 'lines[2:]' 'lines, line_size=12' 'lines, address_size=4' 'lines, address_size=0, line_size=0' \
		'lines, nr=1 << 28' 'lines, nr_addresses=0' 'lines, nr=0' 'lines, btf_id=6' \
		'lines, nr=2' 'lines, nr_addresses=2' 'lines, nr_funcs=0' 'lines, func_size=2' 'lines, func=3' \
		'[(0, b"", b"", 1)]' '[(-16, b"before", b"", 1)]' \
		'lines, btf=lambda btf: b""' 'lines, btf=lambda btf: btf[:23]' 'lines, btf=lambda btf: btf[:-1]' \
		'lines, btf=lambda btf: bytes(2) + btf[2:]' 'lines, btf=lambda btf: btf[:20] + bytes(4) + btf[24:]' \
		'lines, btf=lambda btf: btf[:16] + b"\xff" * 8 + btf[24:]' \
		'lines, btf=lambda btf: btf[:4] + b"\xff" * 4 + btf[8:]'; do
		echo "file.lines(perfgen.ALPHA, $bad)"
		shows_line "$OFFSET" "$bad"
	done
}

run_tests
