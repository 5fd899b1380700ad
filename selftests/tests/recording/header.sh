#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The metadata in the header of perf.data is called the block. The block of every file has the set
# (all metadata) of each program under the program's id. perf report and perf script print it.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
. "$(dirname "$0")/../../lib/terminal.sh"
few_symbols

DIGITS=$(printf '0123456789%.0s' {1..30})

# Several tests of this file share two recordings, one of mode all and one of mode header.
record_once()
{
	[[ ! -e $TMP/ids ]] || return 0
	hold simple functions types lengths keys_203
	record "$TMP/all"
	record "$TMP/header" --bpf-metadata=header
	symbols_by_id "$TMP/all" >"$TMP/symbols"
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
}

# ID<TAB>NAME of the main function of each program, from the bpf_prog_infos
symbols_by_id()
{
	"$PBM_PERF" report --header-only -i "$1" | awk '
		$2 == "bpf_prog_info" && NF > 3 { sub(":", "", $3); print $3 "\t" $4 }
		$2 == "bpf_prog_info" && NF == 3 { id = $3; sub(":", "", id) }
		$2 == "sub_prog" && $3 == "0:" { print id "\t" $4 }'
}

held_id()
{
	sed -n "$(($1 + 1))p" "$TMP/ids"
}

# KEY<TAB>VALUE of program $2 in the block of file $1
block_of()
{
	perfdata block "$1" >"$TMP/block"
	awk -F '\t' -v id="$2" '$1 == id { print $4 "\t" $5 }' "$TMP/block"
}

# want_block FILE ID...: the block has programs with these ids. Writes the block to $TMP/block.
want_block()
{
	local file=$1 id

	shift
	perfdata block "$file" >"$TMP/block"
	for id; do
		grep -q "^$id"$'\t' "$TMP/block" || fail "$file has no metadata of program $id in its header"
	done
}

# The lines that perf prints for the block of file $1: one per program, sorted by set and id. Keys
# and values of more than 256 bytes are cut between characters.
header_lines()
{
	perfdata block "$1" >"$TMP/block"
	LC_ALL=C sort -t $'\t' -k 3,3n -k 1,1n -k 4,4 -o "$TMP/block" "$TMP/block"
	LC_ALL=C awk -F '\t' '
		function cut(text, at, end)
		{
			if (length(text) <= 256)
				return text
			end = text ~ /^"/ ? "...\"" : "..."
			for (at = 256 - length(end); substr(text, at + 1, 1) ~ /[\200-\277]/; at--)
				;
			return substr(text, 1, at) end
		}
		{ begin = $1 == id ? ", " : (id ? "\n" : "") "# bpf_metadata " $1 " " $2 ": "; id = $1 }
		{ printf "%s%s=%s", begin, cut($4), cut($5) }
		END { print "" }' "$TMP/block"
}

test_block_has_the_entries_of_the_records()
{
	local i id symbol

	record_once
	# Programs whose values are not truncated in records
	for i in 0 1 2 4; do
		id=$(held_id "$i")
		symbol=$(awk -v id="$id" '$1 == id { print $2 }' "$TMP/symbols")
		# Another program of this machine may have the same name and tag.
		perfdata entries "$TMP/all" "$symbol" | awk '!seen[$0]++' >"$TMP/want"
		[[ -s $TMP/want ]] || fail "no records of $symbol"
		block_of "$TMP/all" "$id" >"$TMP/got"
		same "block and records of $symbol" "$TMP/want" "$TMP/got"
	done
}

test_long_keys_and_values_are_whole()
{
	local euros x80

	record_once
	euros=$(printf '\xe2\x82\xac%.0s' {1..20})
	x80=key80_$(printf 'x%.0s' {1..73})
	{
		printf '%s\t%s\n' "${x80}A" 1 "${x80}B" 2
		printf 'utf8_%d\t"%s"\n' 0 "${DIGITS:0:200}$euros" 1 "${DIGITS:0:200}x$euros" \
			2 "${DIGITS:0:200}xx$euros"
		printf 'value%d\t"%s"\n' 255 "${DIGITS:0:250}255" 256 "${DIGITS:0:250}x256" 302 "$DIGITS"
		printf 'value_array\t[1,%s]\n' "$(printf '0,%.0s' {1..199})"
	} | sort >"$TMP/want"
	block_of "$TMP/all" "$(held_id 3)" | grep -v '^key6[34]_' | sort >"$TMP/got"
	same "whole keys and values" "$TMP/want" "$TMP/got"
}

test_values_are_those_of_bpftool()
{
	local id

	hold types
	id=${HELD_IDS[0]}
	record "$TMP/data"
	"$BPFTOOL" -j prog show id "$id" >"$TMP/oracle"
	{
		echo "PERF_RECORD_BPF_METADATA prog types"
		block_of "$TMP/data" "$id" | awk -F '\t' '{ printf "  entry %d: %20s = %s\n", NR - 1, $1, $2 }'
	} >"$TMP/shown"
	values compare "$SELFTESTS/progs/types.bpf.c" "" "$TMP/shown" types "$TMP/oracle" "$id"
}

test_equal_sets_are_stored_once()
{
	hold -n 20 simple functions
	record "$TMP/data"
	want_block "$TMP/data" "${HELD_IDS[@]}"
	# perfdata.py refuses a block that has a set twice.
	printf '%s\n' "${HELD_IDS[@]}" | awk -F '\t' 'NR == FNR { held[$1]; next }
		$1 in held { print $2, $3 }' - "$TMP/block" | sort | uniq -c | awk '{ print $1, $2 }' >"$TMP/got"
	printf '%s\n' "20 functions_with_a_long_program_name" "40 simple" >"$TMP/want"
	same "programs and entries of each set" "$TMP/want" "$TMP/got"
}

test_mode_header_writes_the_same_block_and_no_record()
{
	local id ids

	record_once
	perfdata types "$TMP/header" >"$TMP/types"
	grep -q -x 9 "$TMP/types" || fail "no sample in the file"
	if grep -x 84 "$TMP/types"; then
		fail "there are records"
	fi
	mapfile -t ids <"$TMP/ids"
	for id in "${ids[@]}"; do
		block_of "$TMP/all" "$id" >"$TMP/want"
		[[ -s $TMP/want ]] || fail "no metadata of program $id"
		block_of "$TMP/header" "$id" >"$TMP/got"
		same "block of program $id" "$TMP/want" "$TMP/got"
	done
}

test_mode_none_writes_no_block()
{
	hold simple
	record "$TMP/none" --bpf-metadata=none
	perfdata block "$TMP/none" >"$TMP/block"
	[[ ! -s $TMP/block ]] || fail "there is a block"
	"$PBM_PERF" report --header-only -i "$TMP/none" >"$TMP/out"
	grep -q '^# cmdline : ' "$TMP/out" || fail "perf report prints no header: $(cat "$TMP/out")"
	if grep -e '^# bpf_metadata ' "$TMP/out"; then
		fail "perf report shows metadata"
	fi
}

test_the_block_has_programs_that_load_while_perf_records()
{
	local ids

	start_recording "$TMP/data" -a --bpf-metadata=header
	churn -n 3
	start_churn -s 3 -f 4
	await_churn ready
	stop_recording
	mapfile -t ids < <(awk '{ print $2 }' "$TMP/list")
	((${#ids[@]} == 6)) || fail "churn lists ${#ids[@]} programs"
	want_block "$TMP/data" "${ids[@]}"
}

has_switched()
{
	compgen -G "$TMP/switched.*" >"$TMP/switched-files"
}

test_each_file_of_switch_output_has_a_block()
{
	local file n=0

	hold simple
	start_recording "$TMP/switched" -a --switch-output=signal
	kill -USR2 "$PERF_PID"
	await "the first file of --switch-output" has_switched
	control ping
	stop_recording
	for file in "$TMP/switched".*; do
		want_block "$file" "${HELD_IDS[0]}"
		n=$((n + 1))
	done
	((n >= 2)) || fail "--switch-output wrote only $n files"
}

test_a_directory_of_files_has_a_block()
{
	hold simple
	record "$TMP/dir" --threads
	want_block "$TMP/dir/data" "${HELD_IDS[0]}"
	header_lines "$TMP/dir/data" | sort >"$TMP/want"
	"$PBM_PERF" report --header-only -i "$TMP/dir" | grep '^# bpf_metadata' | sort >"$TMP/got"
	same "header of a directory" "$TMP/want" "$TMP/got"
}

test_report_and_script_print_the_block_with_the_header()
{
	local file

	native_only "the test only reads files"
	record_once
	for file in all header; do
		header_lines "$TMP/$file" | sort >"$TMP/want"
		"$PBM_PERF" report --header-only -i "$TMP/$file" | grep '^# bpf_metadata' | sort >"$TMP/got"
		same "perf report --header-only" "$TMP/want" "$TMP/got"
		"$PBM_PERF" report --header --stdio -i "$TMP/$file" | grep '^# bpf_metadata' | sort >"$TMP/got"
		same "perf report --header" "$TMP/want" "$TMP/got"
		"$PBM_PERF" script --header -i "$TMP/$file" | grep '^# bpf_metadata' | sort >"$TMP/got"
		same "perf script --header" "$TMP/want" "$TMP/got"
		"$PBM_PERF" script --header-only -i "$TMP/$file" | grep '^# bpf_metadata' | sort >"$TMP/got"
		same "perf script --header-only" "$TMP/want" "$TMP/got"
	done
}

# The new page is complete when the screen no longer changes.
page_turned()
{
	cp "$TMP/screen" "$TMP/before"
	terminal_shows ''
	cmp -s "$TMP/screen" "$TMP/before" && ! cmp -s "$TMP/screen" "$TMP/page"
}

# Turn the pages of a window until it has a line that matches $1.
page_to()
{
	until terminal_shows "$1"; do
		cp "$TMP/screen" "$TMP/page"
		press NPage
		await "another page, with '$1'" page_turned
	done
}

# Turn pages, because other programs of the machine may fill some.
test_tui_shows_the_block_in_the_header_window()
{
	native_only "the test only reads files"
	hold simple
	record "$TMP/data" --bpf-metadata=header
	open_terminal "$PBM_PERF" report --tui -i "$TMP/data"
	await "the TUI of perf report" terminal_shows '^Overhead|^ *[0-9.]+%'
	press i
	await "the header window" terminal_shows '^# cmdline : '
	page_to "^# bpf_metadata ${HELD_IDS[0]} simple: answer=42, version=\"1\.2\.3\" "
}

test_control_characters_are_escaped_when_printed()
{
	native_only "the test only reads files"
	record_once
	# ESC, and a byte that is not UTF-8. The length stays, so the file's sections do not move.
	LC_ALL=C sed 's/"1\.2\.3"/"\x1b[1m\xff"/g' "$TMP/header" >"$TMP/hostile"
	"$PBM_PERF" report --header-only -i "$TMP/hostile" | grep "^# bpf_metadata $(held_id 0) " >"$TMP/got"
	cat -v "$TMP/got"
	if grep -a -P '[\x00-\x09\x0b-\x1f\x7f-\xff]' "$TMP/got"; then
		fail "bytes are printed unescaped"
	fi
	grep -q 'answer=42' "$TMP/got"
}

test_unpatched_perf_reads_files_of_mode_header()
{
	unpatched_perf
	record_once
	# Do not demangle, because a perf with sanitizers is built without the library that
	# demangles C++.
	"$PBM_UNPATCHED_PERF" script --no-demangle -F comm,ip,sym -i "$TMP/header" >"$TMP/want"
	"$PBM_PERF" script --no-demangle -F comm,ip,sym -i "$TMP/header" >"$TMP/got"
	(($(wc -l <"$TMP/want") == $(perfdata types "$TMP/header" | grep -c -x 9))) || fail "not all samples"
	same "perf script" "$TMP/want" "$TMP/got"
	"$PBM_UNPATCHED_PERF" report --header-only -i "$TMP/header" >"$TMP/want"
	"$PBM_PERF" report --header-only -i "$TMP/header" | grep -v '^# bpf_metadata ' >"$TMP/got"
	same "perf report --header-only" "$TMP/want" "$TMP/got"
}

test_perf_check_knows_the_feature()
{
	"$PBM_PERF" check feature bpf-metadata >"$TMP/got"
	cat "$TMP/got"
	grep -q -E '^ *bpf-metadata: \[ on +\]' "$TMP/got" || fail "perf check does not print that it is on"
}

run_tests
