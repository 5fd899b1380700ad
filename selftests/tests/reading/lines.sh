#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Source lines of BPF programs. perf.data has them in bpf_prog_info and BTF.

. "$(dirname "$0")/../../lib/report-lib.sh"
. "$(dirname "$0")/../../lib/terminal.sh"
few_symbols

# All tests of real lines share this recording. $TMP/table has the lines of the program.
record_lines()
{
	[[ ! -e $TMP/id ]] || return 0
	hold lines
	spend 0 $((40000 / SCALE))
	record "$TMP/lines" -g
	"$BPFTOOL" prog dump xlated id "${HELD_IDS[0]}" linum >"$TMP/xlated"
	perfdata lines "$TMP/lines" "${HELD_IDS[0]}" >"$TMP/table"
	echo "${HELD_IDS[0]}" >"$TMP/id"
}

# bpftool has the lines of the instructions that the kernel compiles.
test_lines_are_those_of_bpftool()
{
	record_lines
	cut -f 3-5 "$TMP/table" | sort -u >"$TMP/got"
	sed -n 's/^; \(.*\) \[file:\(.*\) line_num:\([0-9]*\) line_col:[0-9]*\]$/\2\t\3\t\1/p' "$TMP/xlated" |
		sort -u >"$TMP/want"
	same "lines" "$TMP/want" "$TMP/got"
}

# The line of an address is the last one that begins there or before.
test_each_sample_has_its_line()
{
	record_lines
	"$PBM_PERF" script -G -F ip,sym,symoff,srcline -i "$TMP/lines" >"$TMP/samples"
	python3 -S - "$TMP/table" "$TMP/samples" <<-'END'
		import bisect, collections, re, sys
		table, seen = collections.defaultdict(list), collections.Counter()
		for line in open(sys.argv[1]):
		    symbol, offset, name, number, _ = line.split("\t")
		    table[symbol].append((int(offset), f"{name.rsplit('/', 1)[-1]}:{number}"))
		samples = re.findall(r"^ *[0-9a-f]+ (\S+)\+0x([0-9a-f]+) *\n +(\S+)$", open(sys.argv[2]).read(), re.M)
		for symbol, offset, line in samples:
		    if symbol in table:
		        offsets = [place for place, _ in table[symbol]]
		        want = table[symbol][bisect.bisect_right(offsets, int(offset, 16)) - 1][1]
		        if line != want:
		            sys.exit(f"{symbol}+0x{offset} is {line}, want {want}")
		        seen[symbol] += 1
		print(*seen.items())
		if seen.keys() != table.keys():
		    sys.exit(f"no sample in some function of {list(table)}")
	END
}

# perf script prints the same frames. JSON has the path and the text, too.
test_json_has_lines()
{
	record_lines
	"$PBM_PERF" data convert --force --to-json "$TMP/json" -i "$TMP/lines"
	"$PBM_PERF" script -F ip,sym,srcline -i "$TMP/lines" |
		awk '/^\t/ { ip = $1; bpf = $2 ~ /^bpf_prog_/; next } bpf { print ip " " $1 }' | grep -F 'lines.bpf.c:' >"$TMP/want"
	python3 -S - "$TMP/json" "$TMP/texts" >"$TMP/got" <<-'END'
		import json, os, sys
		texts = set()
		for sample in json.load(open(sys.argv[1]))["samples"]:
		    for frame in sample["callchain"]:
		        if "line" in frame:
		            print(frame["ip"][2:], "%s:%d" % (os.path.basename(frame["srcfile"]), frame["line"]))
		            texts.add("%s\t%d\t%s" % (frame["srcfile"], frame["line"], frame["srccode"].strip()))
		open(sys.argv[2], "w").writelines(sorted(text + "\n" for text in texts))
	END
	same "lines of frames" "$TMP/want" "$TMP/got"
	(($(wc -l <"$TMP/want") > 10)) || fail "few lines"
	cut -f 3-5 "$TMP/table" | sort -u | join -t $'\n' - "$TMP/texts" >"$TMP/known"
	same "files, lines and texts" "$TMP/texts" "$TMP/known"
}

lines_of_samples()
{
	"$PBM_PERF" script -G -F period,ip,sym,srcline -i "$TMP/lines" |
		awk '$3 ~ /^bpf_prog_.*_(lines|three|six)$/ { period = $1; next }
			period { sum[$1] += period; period = 0 }
			END { for (line in sum) print line "\t" sum[line] }' | sort
}

test_reports_have_rows_of_lines()
{
	record_lines
	lines_of_samples >"$TMP/want"
	rows -s bpf_prog,srcline -F period,bpf_prog,srcline -i "$TMP/lines" |
		sed -n "s/^$(cat "$TMP/id") lines|//p" >"$TMP/got"
	same "rows by line" "$TMP/want" "$TMP/got"
	rows -s bpf_metadata,srcline -F period,bpf_metadata,srcline -i "$TMP/lines" |
		sed -n 's/^version="lines"|//p' >"$TMP/got"
	same "rows by metadata and line" "$TMP/want" "$TMP/got"
	rows -s bpf_prog,srcfile -F period,bpf_prog,srcfile -i "$TMP/lines" |
		sed -n "s/^$(cat "$TMP/id") lines|//p" >"$TMP/got"
	awk '{ sum += $2 } END { print "lines.bpf.c\t" sum }' "$TMP/want" >"$TMP/want-file"
	same "the row of the file" "$TMP/want-file" "$TMP/got"
}

# Line 35 calls both subprograms.
test_callchains_have_lines()
{
	record_lines
	"$PBM_PERF" report --stdio --no-children -s sym -g caller,srcline,0,count -i "$TMP/lines" >"$TMP/report"
	grep -e '[^0-9]35$' <(grep -o 'lines\.bpf\.c:[0-9]*' "$TMP/report") || fail "no chain has line 35"
}

test_diff_has_rows_of_lines()
{
	record_lines
	"$PBM_PERF" diff -s bpf_prog,srcline "$TMP/lines" "$TMP/lines" >"$TMP/diff"
	lines_of_samples | cut -f 1 >"$TMP/want"
	sed -n 's/^.* +0\.00%  *lines  *\(lines\.bpf\.c:[0-9]*\) *$/\1/p' "$TMP/diff" | sort >"$TMP/got"
	same "rows by line" "$TMP/want" "$TMP/got"
}

# The program is not loaded any more.
test_lines_stay_after_inject()
{
	record_lines
	rows -s bpf_prog,srcline -F period,bpf_prog,srcline -i "$TMP/lines" | sort >"$TMP/want"
	"$PBM_PERF" inject -i "$TMP/lines" -o "$TMP/injected"
	rows -s bpf_prog,srcline -F period,bpf_prog,srcline -i "$TMP/injected" | sort >"$TMP/got"
	grep -F 'lines.bpf.c:24' "$TMP/want"
	same "rows by line" "$TMP/want" "$TMP/got"
}

# A pipe has no bpf_prog_info when perf record writes it.
test_a_pipe_has_functions_and_offsets()
{
	hold lines
	spend 0 $((40000 / SCALE))
	record - >"$TMP/pipe-data"
	rows -s bpf_prog,srcline -F period,bpf_prog,srcline -i "$TMP/pipe-data" >"$TMP/got"
	grep -e "^${HELD_IDS[0]} lines|bpf_prog_[0-9a-f]*_six+[0-9]*" "$TMP/got" || fail "perf shows: $(cat "$TMP/got")"
}

# with_disassembler NAME ARGUMENT...: run perf with this disassembler
with_disassembler()
{
	printf '[annotate]\n\tdisassemblers = %s\n' "$1" >"$TMP/config"
	PERF_CONFIG=$TMP/config "$PBM_PERF" "${@:2}"
}

# Set "disassemblers" to those that this perf has, of those that disassemble BPF programs.
find_disassemblers()
{
	local name

	disassemblers=()
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
	local name symbol disassemblers

	find_disassemblers
	perfdata lines "$1" "$(cat "$TMP/id")" >"$TMP/annotated-lines"
	"$PBM_PERF" script -G -F ip,sym,symoff -i "$1" >"$TMP/samples"
	for name in "${disassemblers[@]}"; do
		while read -r symbol; do
			with_disassembler "$name" annotate --stdio -i "$1" "$symbol" >"$TMP/out" 2>&1
			python3 -S - "$symbol" "$TMP/annotated-lines" "$TMP/samples" "$TMP/out" <<-'END' ||
				import bisect, collections, re, sys
				symbol, table, samples, out = sys.argv[1:]
				rows = [line.rstrip("\n").split("\t", 4) for line in open(table)]
				lines = [(int(row[1]), row[3], row[4].expandtabs().rstrip()) for row in rows if row[0] == symbol]
				found = re.findall(rf"^ *[0-9a-f]+ {symbol}\+0x([0-9a-f]+)$", open(samples).read(), re.M)
				seen = collections.Counter(int(offset, 16) for offset in found)
				source, last, offsets = None, None, []
				for row in open(out):
				    instruction = re.match(r" +([0-9.]+) : +([0-9a-f]+): +\S", row)
				    line = re.match(r" +: +([1-9][0-9]*) +(.*)", row)
				    if line:
				        source = line[1], line[2]
				    if re.fullmatch(r" +:\s*", row):
				        source = "no line"
				    if instruction:
				        offset = int(instruction[2], 16)
				        _, number, text = lines[bisect.bisect_right(lines, (offset, "~")) - 1]
				        want = (number, text) if text else "no line" if last else None
				        if source != (want if want != last else None):
				            sys.exit(f"the source line before {offset:x} is {source}, want {want} after {last}")
				        percent = "%.2f" % (100 * seen[offset] / seen.total())
				        if instruction[1] != percent:
				            sys.exit(f"{instruction[1]} % at {offset:x}, want {percent}")
				        source, last = None, want
				        offsets.append(offset)
				if not {offset for offset, _, _ in lines} <= set(offsets):
				    sys.exit(f"instructions at {offsets}, lines at {lines}")
			END
				fail "$name: $(cat "$TMP/out")"
		done < <(cut -f 1 "$TMP/table" | sort -u)
	done
}

test_annotate_shows_lines_and_instructions()
{
	record_lines
	annotate_is_right "$TMP/lines"
}

test_annotate_expands_tabs()
{
	local name disassemblers

	record_lines
	find_disassemblers
	for name in "${disassemblers[@]}"; do
		with_disassembler "$name" annotate --stdio -i "$TMP/lines" "$(symbol_called six)" >"$TMP/out"
		grep -E '^ +: 24 {17}x = x \* 5 \+ 3;$' "$TMP/out" || fail "$name: $(cat "$TMP/out")"
	done
}

# Neither a file with the name of the function, nor one that BTF names.
test_annotate_opens_no_file()
{
	local symbol disassemblers

	record_lines
	find_disassemblers
	symbol=$(symbol_called six)
	cd "$TMP"
	: >"$symbol"
	trace -f -o "$TMP/opened" -e trace=open,openat "$PBM_PERF" annotate --stdio -i "$TMP/lines" "$symbol" >"$TMP/out"
	grep -E ': 24 +x = x' "$TMP/out"
	! grep -F -e "$symbol" -e 'lines.bpf.c' "$TMP/opened" || fail "perf has opened a file"
}

# Line 24 is in six().
test_annotate_tells_lines_apart()
{
	record_lines
	# another line with the number of the line before it
	changed_lines '[(put("I", at + 4, get("I", at + 4) + 1), put("I", at + 12, 21 << 10))
		for at in records if get("I", at + 12) >> 10 == 24]'
	annotate_is_right "$TMP/changed"
	changed_lines '[put("I", at + 8, 0) for at in records if get("I", at + 12) >> 10 == 24]'
	annotate_is_right "$TMP/changed"
	changed_lines '[put("I", at + 8, 0) for at in records]'
	annotate_is_right "$TMP/changed"
	! grep -E '^ +: *$' "$TMP/out" || fail "empty lines"
}

# perf.data has the code of all functions, one after the other.
test_script_prints_instructions_of_subprograms()
{
	record_lines
	"$PBM_PERF" script -G -F ip,sym,insn -i "$TMP/lines" >"$TMP/out"
	PYTHONPATH=$SELFTESTS/lib python3 -S - "$TMP/lines" "$(cat "$TMP/id")" "$TMP/out" <<-'END'
		import collections, re, struct, sys, perfdata
		path, prog, out = sys.argv[1:]
		data = perfdata.PerfData(path)
		def get(kind, offset):
		    return struct.unpack_from("=" + kind, data.bytes, offset)
		functions = []
		for at, _ in data.infos()[:-1]:
		    info = at + perfdata.BPIL_SIZE
		    begin = info + get("I", at)[0]
		    if get("I", info + 4)[0] == int(prog):
		        insns = begin + get("Q", info + 24)[0]
		        number, _, starts, lens = get("2I2Q", info + 104)
		        for start, size in zip(get(f"{number}Q", begin + starts), get(f"{number}I", begin + lens)):
		            functions.append((start, data.bytes[insns:insns + size]))
		            insns += size
		seen = collections.Counter()
		for ip, symbol, insn in re.findall(r"([0-9a-f]+) (bpf_prog_\w+_(?:lines|three|six)) +insn: ([0-9a-f ]+)", open(out).read()):
		    ip, insn = int(ip, 16), bytes.fromhex(insn)
		    (want,) = [code[ip - start:] for start, code in functions if start <= ip < start + len(code)]
		    if not insn or not want.startswith(insn):
		        sys.exit(f"{symbol} at {ip:x}: {insn.hex()}, want {want[:15].hex()}")
		    seen[symbol.rsplit("_", 1)[1]] += 1
		print(seen)
		if not {"three", "six"} <= seen.keys():
		    sys.exit("no instructions")
	END
}

# symbol_called NAME: print the symbol of this function of the recorded program
symbol_called()
{
	awk -v end="_$1\$" '$1 ~ end { print $1; exit }' "$TMP/table"
}

test_annotate_can_leave_lines_out()
{
	local name disassemblers

	record_lines
	find_disassemblers
	for name in "${disassemblers[@]}"; do
		with_disassembler "$name" annotate --stdio --no-source -i "$TMP/lines" "$(symbol_called six)" >"$TMP/out"
		grep '^ .* : .*[0-9a-f]: ' "$TMP/out"
		! grep -e 'x = x' "$TMP/out" || fail "source lines"
	done
}

# Line 24 is the loop of six().
test_annotate_sums_by_line()
{
	local disassemblers

	record_lines
	find_disassemblers
	"$PBM_PERF" annotate --stdio -l -i "$TMP/lines" "$(symbol_called six)" >"$TMP/out"
	sed '/Percent/,$d' "$TMP/out" | grep -E '^ +[0-9]+\.[0-9]+ lines\.bpf\.c:2[34]$' || fail "perf shows: $(cat "$TMP/out")"
}

# The code of a subprogram is behind that of other functions, whose lengths can be wrong.
test_annotate_refuses_code_that_is_not_there()
{
	local bad symbol disassemblers

	record_lines
	find_disassemblers
	symbol=$(symbol_called six)
	for bad in 'put("I", info + 108, 0)' 'put("I", info + 108, 1)' 'put("Q", at + 8, get("Q", at + 8) & ~(1 << 4))' \
		'put("I", lens, 0xffffffff)' 'put("I", info + 16, 8)' 'put("Q", at + 8, get("Q", at + 8) & ~1)'; do
		changed_lines "$bad"
		"$PBM_PERF" annotate --stdio -i "$TMP/changed" "$symbol" >"$TMP/out" 2>&1
		grep "Couldn't annotate $symbol" "$TMP/out" ||
			fail "perf annotate '$symbol': $(cat "$TMP/out"; report -s sym -i "$TMP/changed")"
	done
}

hides_lines()
{
	! terminal_shows 'x = x \* 5'
}

test_key_s_shows_lines_in_the_browser()
{
	local disassemblers

	record_lines
	find_disassemblers
	open_terminal "$PBM_PERF" annotate --tui -i "$TMP/lines" "$(symbol_called six)"
	await "the instructions" terminal_shows '(imul|mul|madd|add)'
	# v6.16 shows them from the start.
	if terminal_shows 'x = x \* 5'; then
		press s
		await "instructions without lines" hides_lines
	fi
	press s
	await "the source line" terminal_shows 'x = x \* 5 \+ 3;'
	press q
	close_terminal
}

# made_up_lines ARGUMENTS: write $TMP/made-up with source lines of the program alpha. Its two samples are at
# offset 16.
made_up_lines()
{
	made_up <<-END
		lines = [(0, b"/src/a.bpf.c", b"\tfirst();", 3), (16, b"/src/b.bpf.c", b"second();", 1000),
		         (24, b"/src/a.bpf.c", b"third();", 4)]
		file.infos[0] = file.lines(perfgen.ALPHA, $1)
	END
}

want_line()
{
	rows -s srcline -F period,srcline -i "$TMP/made-up" >"$TMP/got"
	grep -q -x -F "$1"$'\t2' "$TMP/got" || fail "want $1: $(cat "$TMP/got")"
}

test_made_up_lines()
{
	made_up_lines 'lines'
	want_line b.bpf.c:1000
	made_up_lines 'lines[:1] + lines[2:]'
	want_line a.bpf.c:3
	# The records of another kernel can be longer.
	made_up_lines 'lines, line_size=24, address_size=16'
	want_line b.bpf.c:1000
	made_up_lines '[(0, b"no\x1b[2Jhost\n", b"", 1)]'
	want_line 'no [2Jhost :1'
	made_up_lines '[(0, "a\x9b2J\xfc.c".encode(), b"", 1)]'
	want_line 'a  2Jü.c:1'
}

# The file with this name here can be another one.
test_srccode_is_that_of_the_recorded_btf()
{
	record_lines
	"$PBM_PERF" script -G -F ip,sym,srcline,srccode -i "$TMP/lines" >"$TMP/out"
	grep -P '^\|24 +\t\tx = x \* 5 \+ 3;$' "$TMP/out" || fail "perf shows: $(grep '^|' "$TMP/out" | sort | uniq -c)"
	echo 'int local;' >"$TMP/local.c"
	made_up_lines "[(0, b'$TMP/local.c', b'recorded();', 1)]"
	"$PBM_PERF" script -F ip,srccode -i "$TMP/made-up" >"$TMP/out"
	grep -E '^\|1 +recorded\(\);$' "$TMP/out" || fail "perf shows: $(cat "$TMP/out")"
	# Lines of two files can have the same number and text.
	made_up <<-'END'
		file.infos[0] = file.lines(perfgen.ALPHA, [(0, b"a.h", b"both();", 20), (16, b"b.h", b"both();", 20)])
		sample, places = file.sample, [0, 16, 16]
		file.sample = lambda ip: sample(perfgen.ALPHA[3] + places.pop(0) if ip == perfgen.ALPHA[3] + 16 else ip)
		file.nr_samples = 3
	END
	"$PBM_PERF" script -F ip,srccode -i "$TMP/made-up" >"$TMP/out"
	[[ $(grep -c '^|20 *both();$' "$TMP/out") = 2 ]] || fail "perf shows: $(cat "$TMP/out")"
}

test_python_scripts_open_no_file_that_the_recording_names()
{
	"$PBM_PERF" check -q feature libpython || skip "this perf is built without Python"
	echo 'int local;' >"$TMP/local.c"
	made_up_lines "[(0, b'$TMP/local.c', b'recorded();', 1)]"
	cat >"$TMP/script.py" <<-'END'
		from perf_trace_context import *
		def process_event(event):
		    print("srccode", perf_sample_srccode(perf_script_context))
	END
	"$PBM_PERF" script -s "$TMP/script.py" -i "$TMP/made-up" >"$TMP/out"
	grep srccode "$TMP/out"
	! grep 'int local' "$TMP/out" || fail "perf has opened the file"
}

# The address is behind the code of the function.
test_address_outside_of_the_function_has_no_line()
{
	made_up <<-END
		file.infos[0] = file.lines(perfgen.ALPHA, [(0, b"a.bpf.c", b"first();", 1)], length=16)
	END
	want_line bpf_prog_0011223344556677_alpha+16
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
		made_up_lines "$bad"
		want_line bpf_prog_0011223344556677_alpha+16
	done
}

run_tests
