#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: scripts/test-pages.sh [PAGE...]
#
# Runs the commands in the blocks of each PAGE (default: README and Documentation/*.rst)
# and compares their output with the page. Needs root, and the perf and the programs that
# scripts/run-selftests.sh v6.16 has built.
#
# A page runs from top to bottom in one shell, which starts in the checkout. Files that a
# page writes to the checkout, /tmp, /usr/local, $HOME and /sys/fs/bpf are removed.
#
# In .rst, a block is a literal block. A command begins with "# " or "$ ". It continues in
# lines that begin with ">", after a line that ends with "\", and up to the END of <<'END'.
# The lines after a command are its output. In the README, a block is lines that begin with
# a tab, and is one command. If the text below it ends with "prints:", the next block is its
# output. In an output,
#
#   ...               matches any lines, or any text within a line
#   12.34             matches any number, except in values like key=12 or key = "12"
#   c0b1a85fb75dc74b  matches any tag; equal tags of the page must be equal in the output
#   2026-11-21T02:45:58Z  matches any time
#
# Not compared are the number of blanks, empty lines, and lines of the output that begin
# with "#". If the page shows no output of a command, any output is right. A command that
# fails is always wrong.
#
# Not run are blocks of .rst after the comment ".. not run: REASON" before the sentence that
# introduces the block; and in the README, tables, which have tabs between their columns,
# and the blocks that scripts/lib/pages.py lists.
#
# Prints KTAP. Exit status: 0 passed, 1 a block failed, 2 could not run.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"

[[ ${1:-} != -h && ${1:-} != --help ]] || { sed -n '4,/^$/s/^# \{0,1\}//p' "$0"; exit 0; }
# If hold exists, everything is built, because the programs of the tests are built last.
if (($# == 0)); then
	[[ -x $REPO_DIR/out/v6.16/selftests/build/hold ]] ||
		die "no perf and no tests of v6.16 were built" "run scripts/run-selftests.sh v6.16 first"
	set -- "$REPO_DIR/README" "$REPO_DIR"/Documentation/*.rst
fi
for page; do
	[[ -f $page ]] || die "$page: no such page" "name README or files in Documentation/"
done
check_root
{ command -v quilt && /usr/bin/python3 -c 'import docutils'; } &> /dev/null ||
	die "no quilt, or no docutils for /usr/bin/python3" "apt-get install quilt python3-docutils"
mapfile -t PAGES < <(realpath --relative-to="$REPO_DIR" -- "$@")
cd -- "$REPO_DIR"
export PBM_CACHE=$CACHE_DIR
# The lock is held until the last command of a page has ended.
take_machine_lock
STATUS=0
run_step /usr/bin/python3 scripts/lib/pages.py "${PAGES[@]}" < /dev/null || STATUS=$?
((STATUS != 1)) || end_failed
((STATUS == 0)) || die "the pages could not be tested" "see above"
