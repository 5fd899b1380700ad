#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Source lines of BPF programs. perf.data has them in bpf_prog_info and BTF.

. "$(dirname "$0")/../../lib/report-lib.sh"
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
}

# perf shows the symbol and the offset then, as without lines.
test_bad_lines_are_not_used()
{
	local bad

	for bad in '[]' 'lines[2:]' 'lines, line_size=12' 'lines, address_size=4' 'lines, address_size=0, line_size=0' \
		'lines, nr=1 << 28' 'lines, nr_addresses=0' 'lines, nr=0' 'lines, btf_id=6' \
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
