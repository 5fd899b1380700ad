# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by tests that use perf report. They source this file instead of test-lib.sh. The block is
# the metadata in the header of perf.data. A set is all metadata of a program.

# shellcheck source=selftests/lib/test-lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/test-lib.sh"

# shellcheck disable=SC2034 # the tests use it
NOT_BPF=N/A
# FUNCTION matches a symbol that is a function of a BPF program. HEX is repeated, because mawk does
# not support {16}.
HEX='[0-9a-f]'
# shellcheck disable=SC2034 # the tests use it
FUNCTION="bpf_prog_$HEX$HEX$HEX$HEX$HEX$HEX$HEX$HEX$HEX*_"

# All tests of a file share these recordings. They have samples of four programs with the same
# name: two versions, one program without metadata, and the first version again.
record_once()
{
	[[ ! -e $TMP/ids ]] || return 0
	hold busy_v1 busy_v2 busy busy_v1
	spend 0 20000 1 60000 2 30000 3 10000
	record "$TMP/all" -g
	record - -g >"$TMP/pipe"
	perfdata strip "$TMP/all" "$TMP/block-only"
	perfdata strip-block "$TMP/all" "$TMP/records-only"
	costs_by_program "$TMP/all" >"$TMP/costs"
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
}

# Print no callchains, because they hide the rows that the tests read.
report()
{
	"$PBM_PERF" report --stdio --no-children -g none "$@"
}

# Print the rows of perf report, as KEY[|KEY...]<TAB>PERIOD.
rows()
{
	report -t '|' "$@" >"$TMP/report"
	awk -F ' *[|] *' '/^#/ || /^$/ { next }
		{ gsub(/^ +| +$/, ""); row = $2; for (i = 3; i <= NF; i++) row = row "|" $i; print row "\t" $1 }' \
		"$TMP/report" | sort
}

# by KEYS FILE [OPTION...]: the rows with these sort keys
by()
{
	rows -s "$1" -F "period,$1" -i "${@:2}"
}

# want_by KEYS FILE WANT: these rows are those of the file WANT
want_by()
{
	by "$1" "$2" >"$TMP/got"
	same "cost by $1 in $2" "$3" "$TMP/got"
}

# shows: perf report of $TMP/made-up has the rows of standard input, where each line "KEYS [OPTION...]"
# is followed by its rows, "  PERIOD ROW".
shows()
{
	local keys options

	cat >"$TMP/want-shown"
	while read -r keys options; do
		echo "$keys${options:+ $options}"
		eval "by $keys '$TMP/made-up' $options" | sed -E 's/(.*)\t(.*)/  \2 \1/'
	done < <(grep -v '^ ' "$TMP/want-shown") >"$TMP/got"
	same "rows" "$TMP/want-shown" "$TMP/got"
}

# Read lines KEY<TAB>PERIOD and print the sum for each key. %d of mawk is limited to 2^31.
sum_up()
{
	awk -F '\t' '{ sum[$1] += $2 } END { for (key in sum) printf "%s\t%.0f\n", key, sum[key] }' | sort
}

# Print ID NAME<TAB>PERIOD for each program, as -s bpf_prog does.
costs_by_program()
{
	perfdata costs "$1" | awk -F '\t' '{ print ($1 == "N/A" ? $1 : $1 " " $2) "\t" $4 }' | sum_up
}

# Print ID<TAB>KEY=VALUE, ... for each program, sorted by key. $2 (ERE) selects keys.
sets_by_program()
{
	perfdata block "$1" | sort -t $'\t' -k 1,1n -k 4,4 | awk -F '\t' -v keys="^(${2:-.*})$" '
		$4 ~ keys { set[$1] = set[$1] (set[$1] == "" ? "" : ", ") $4 "=" $5 }
		END { for (id in set) print id "\t" set[id] }'
}

# costs_by_set FILE [KEYS [SAMPLES]]: print SET<TAB>PERIOD, as -s bpf_metadata does. The sets
# come from the block of FILE, the samples from SAMPLES (default: FILE). For a program in the
# block with none of the keys, SET is (none). For a program that is not in the block, SET is
# (unknown).
costs_by_set()
{
	sets_by_program "$1" "${2:-}" >"$TMP/sets"
	perfdata block "$1" >"$TMP/block"
	perfdata without "$1" | cut -f 1 | cat - <(cut -f 1 "$TMP/block") >"$TMP/looked-at"
	perfdata costs "${3:-$1}" | awk -F '\t' '
		FILENAME == ARGV[1] { set[$1] = $2; next }
		FILENAME == ARGV[2] { none[$1]; next }
		$1 == "N/A" { print $1 "\t" $4; next }
		{ print ($1 in set ? set[$1] : $1 in none ? "(none)" : "(unknown)") "\t" $4 }' \
		"$TMP/sets" "$TMP/looked-at" - | sum_up
}

# Print VALUE<TAB>PERIOD for the values of field $1 of perf script, for the samples in file $2.
script_costs()
{
	"$PBM_PERF" script -G -F "period,$1" -i "$2" | sed 's/^ *\([0-9]*\)  *\(.*\)/\2\t\1/' | sum_up
}

# want_script_costs FILE: perf script must show the costs that the caller has written to
# $TMP/want-prog and $TMP/want-set. They are written as perf report prints them, with a blank after
# the id and after each comma.
want_script_costs()
{
	sed 's/^\([0-9]*\) /\1:/' "$TMP/want-prog" | sort >"$TMP/want"
	script_costs bpf_prog "$1" >"$TMP/got"
	same "programs in perf script" "$TMP/want" "$TMP/got"
	sed 's/, /,/g' "$TMP/want-set" | sort >"$TMP/want"
	script_costs bpf_metadata "$1" >"$TMP/got"
	same "sets in perf script" "$TMP/want" "$TMP/got"
}

# Generate the recording $TMP/made-up. Standard input is Python code that changes "file", with these functions
# for records.
made_up()
{
	{
		cat <<-'END'
			def load(prog):
			    return file.ksymbol(prog) + file.bpf_event(prog)

			def samples(address, count=1):
			    return file.sample(address) * count

			def synthesized(record):            # perf's own records have no time.
			    no_time = bytes(len(file.sample_id()))
			    return record[:-len(no_time)] + no_time

			def trampoline(address, name):      # It has a page.
			    body = file.u64(address) + file.pack("IHH", 0x1000, 1, 0) + name.encode().ljust(24, b"\0")
			    return file.record(perfgen.KSYMBOL, body + file.sample_id(), perfgen.KERNEL)

			def kernel(address, size):
			    body = file.u32(0xffffffff, 0) + file.u64(address, size, address)
			    body += b"[kernel.kallsyms]_stext".ljust(24, b"\0") + file.sample_id()
			    return file.record(1, body, perfgen.KERNEL)
		END
		cat
	} | write_file "$TMP/made-up"
}
