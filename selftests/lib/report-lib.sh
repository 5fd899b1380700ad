# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by tests that use perf report. They source this file instead of test-lib.sh.

# shellcheck source=selftests/lib/test-lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/test-lib.sh"

# All tests of a file share these recordings. They have samples of four programs with the same
# name: two versions, one program without metadata, and the first version again.
record_once()
{
	[[ ! -e $TMP/ids ]] || return 0
	hold busy_v1 busy_v2 busy busy_v1
	spend 0 20000 1 60000 2 30000 3 10000
	record "$TMP/all" -g
	record - -g >"$TMP/pipe"
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
