#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The zooms of the TUI of perf report.

. "$(dirname "$0")/../../lib/report-lib.sh"
. "$(dirname "$0")/../../lib/terminal.sh"

BESIDE=yes

# press_for KEY ERE: succeed if a line in the terminal matches; else press KEY and fail.
press_for()
{
	terminal_shows "$2" || {
		press "$1"
		return 1
	}
}

# only_row ROW OTHER: the terminal has ROW and not OTHER.
only_row()
{
	terminal_shows "% +$1" && ! terminal_shows "% +$2"
}

both_rows()
{
	terminal_shows "% +$1" && terminal_shows "% +$2"
}

# zoom_in_and_out OPTIONS ROW OTHER ENTRY N: "Zoom into ENTRY", which is below N others in the menu,
# hides the row OTHER. ESC zooms out, and shows OTHER again.
zoom_in_and_out()
{
	# shellcheck disable=SC2086 # several options
	open_terminal "$PBM_PERF" report --tui $1 -i "$TMP/made-up"
	await "the rows, $1" press_for Up "% +$2"
	await "both rows, $1" both_rows "$2" "$3"
	# The first key shows the cursor at the top. The rows have the same cost, so either can be
	# the first.
	press Up
	[[ $(grep -E -m 1 '% +[^ ]' "$TMP/screen") =~ $2 ]] || press Down
	press m
	await "the menu, $1" terminal_shows "^Zoom into $4 "
	[[ $5 = 0 ]] || press Down
	press Enter
	await "one row, $1" only_row "$2" "$3"
	press m
	await "the menu again, $1" terminal_shows "^Zoom out of $4 "
	press Escape
	await "no menu, $1" terminal_hides "^Zoom out of $4 "
	await "one row again, $1" only_row "$2" "$3"
	press Escape
	await "both rows again, $1" both_rows "$2" "$3"
	# All zooms have ended.
	press Escape
	await "the question, $1" terminal_shows 'really want to exit'
	close_terminal
}

test_tui_zooms_into_a_row()
{
	local set='answer=42, version="1.2.3"' other='version="2.0"' both='-F overhead,bpf_prog,bpf_metadata'

	made_up </dev/null
	zoom_in_and_out "$both" "7 alpha +$set" "9 beta +$other" 'BPF program 7 alpha' 0
	zoom_in_and_out "$both" "7 alpha +$set" "9 beta +$other" "BPF metadata $set" 1
	zoom_in_and_out "$both --bpf-prog-filter a" "7 alpha +$set" "9 beta +$other" 'BPF program 7 alpha' 0
	# After the zoom, the filter of --bpf-metadata-filter applies again.
	zoom_in_and_out "$both --bpf-metadata-filter =" "7 alpha +$set" "9 beta +$other" 'BPF program 7 alpha' 0
	zoom_in_and_out "--hierarchy -s bpf_prog" '7 alpha' '9 beta' 'BPF program 7 alpha' 0
	zoom_in_and_out "--hierarchy -s bpf_metadata" "$set" "$other" "BPF metadata $set" 0
	# One set begins with the other.
	made_up <<<'file.block = file.make_block([([(b"a", b"1")], [7]), ([(b"a", b"1"), (b"b", b"2")], [9])])'
	zoom_in_and_out '-F overhead,bpf_metadata,bpf_prog' 'a=1 +7 alpha' 'a=1, b=2 +9 beta' 'BPF metadata a=1' 1
}

# offers_zoom [program|metadata]: the menu of the row has only this zoom into BPF, or none
offers_zoom()
{
	terminal_shows '^Exit ' || return
	grep -o '^Zoom into BPF [a-z]*' "$TMP/screen" >"$TMP/offered" || :
	[[ $(cat "$TMP/offered") = "${1:+Zoom into BPF $1}" ]]
}

# A row of another level may have several programs and metadata of several programs.
test_tui_offers_a_zoom_only_in_rows_of_its_level()
{
	local offer

	made_up </dev/null
	open_terminal "$PBM_PERF" report --tui --hierarchy -s cpu,bpf_metadata,bpf_prog -i "$TMP/made-up"
	# The first key only shows the cursor. Then there is a scroll bar, also beside empty rows.
	await "the cursor" press_for Up '^ +[^ ]$'
	press E
	await "the rows below" both_rows '[79] (alpha|beta)' 'version="2.0"'
	for offer in '' metadata program; do
		press m
		await "the menu with ${offer:-no zoom}" offers_zoom "$offer"
		press Escape
		await "the rows without the menu" terminal_hides '^Exit '
		press Down
	done
	press Up
	press m
	await "the menu with the program" terminal_shows '^Zoom into BPF program'
	press Enter
	await "the cpu of the program" terminal_shows '^[+] +100[.]00%'
	press m
	await "the menu to zoom out" terminal_shows '^Zoom out of BPF program'
}

run_tests
