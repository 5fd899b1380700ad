# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A terminal, for browsers. Source it after test-lib.sh.

ON_END+=(close_terminal)

# open_terminal COMMAND...: run the command in a terminal until the test ends. Make the terminal large
# enough for all rows.
open_terminal()
{
	command -v tmux >/dev/null || skip "tmux is not installed"
	tmux -S "$TMP/tmux" -f /dev/null new-session -d -x 200 -y 400 "$@"
}

# terminal_shows ERE: succeed if a line in the terminal matches
terminal_shows()
{
	tmux -S "$TMP/tmux" capture-pane -p >"$TMP/screen" || fail "the terminal ended"
	grep -E -q -e "$1" "$TMP/screen"
}

# terminal_hides ERE: succeed if no line in the terminal matches
terminal_hides()
{
	! terminal_shows "$1"
}

# press KEY: press a key in the terminal
press()
{
	tmux -S "$TMP/tmux" send-keys "$1"
}

close_terminal()
{
	[[ -S $TMP/tmux ]] || return 0
	[[ ! -s $TMP/screen ]] || sed -n 's/ *[a`]\{0,1\}$//; /^#\{0,1\}$/d; 1,60p' "$TMP/screen"
	tmux -S "$TMP/tmux" kill-server || :
	rm -f "$TMP/tmux"
}
