#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of test-pages.sh, on pages that are made up.

. "$(dirname "$0")/lib.sh"

# expect_page STATUS: of test-pages.sh with the page that comes from stdin
expect_page()
{
	((EUID == 0)) || skip "needs root"
	/usr/bin/python3 -c 'import cram, docutils' || skip "needs python3-cram and python3-docutils"
	cat > "$TMP/t/page.rst"
	expect_status "$1" "$SCRIPTS_DIR/test-pages.sh" "$TMP/t/page.rst"
}

test_pages_that_are_right_pass()
{
	expect_page 0 <<-'END'
		A page::

		  # cat > data <<'TEXT'
		  captured 2,012 samples, 0.25 MB
		  key = "1.0", rounds=20
		  tag 3ed1bb8ea9bf8dde 3ed1bb8ea9bf8dde
		  first

		  last of many
		  TEXT
		  # cat data
		  captured 9 samples, 31.5  MB
		  key = "1.0", rounds=20
		  tag c0b1a85fb75dc74b c0b1a85fb75dc74b
		  ...
		  last ... many

		The same shell::

		  # for i in data; do
		  >  test -s \
		  >    $i
		  > done

		.. not run: nobody has it

		A command::

		  # no-such-command
	END
	printed "ok 3 "
	printed "# SKIP nobody has it"
	printed "pass:2 fail:0 skip:1"
}

# expect_wrong OUTPUT SHOWN: of a command whose output the page shows otherwise
expect_wrong()
{
	expect_page 1 <<-END
		A page::

		  # echo '$1'
		  $2

		And::

		  # true
	END
	printed "# -$2"
	printed "# +$1"
	printed "pass:1 fail:1 skip:0"
}

test_a_wrong_line_of_output_fails()
{
	expect_wrong "captured 5 samples" "captured 5 events"
	expect_wrong 'version="1.0"' 'version="2.0"'
	expect_wrong "rounds = 20" "rounds = 40"
	expect_wrong "tags 3ed1bb8ea9bf8dde c0b1a85fb75dc74b" "tags 3ed1bb8ea9bf8dde 3ed1bb8ea9bf8dde"
}

test_a_missing_line_of_output_fails()
{
	expect_page 1 <<-'END'
		A page::

		  # echo one
		  one
		  two
	END
	printed "# -two"
}

test_a_command_that_fails_fails()
{
	expect_page 1 <<-'END'
		A page::

		  # (exit 3)

		And::

		  # true
	END
	printed "# failed: (exit 3)"
	printed "pass:1 fail:1 skip:0"
}

test_a_command_that_ends_the_shell_fails()
{
	expect_page 1 <<-'END'
		A page::

		  # exit 0
	END
	printed "# did not run to its end: exit 0"
}

test_a_block_without_a_prompt_fails()
{
	expect_page 1 <<-'END'
		A page::

		  echo one

		And::

		  # true
	END
	printed "# begins with no prompt, and is not marked as not run"
	printed "pass:1 fail:1 skip:0"
}

test_a_page_leaves_nothing()
{
	local file

	expect_page 0 <<-'END'
		A page::

		  # echo > page-leaves; echo > /tmp/page-leaves; echo > /usr/local/page-leaves
		  # echo > ~/page-leaves
		  # mkdir /sys/fs/bpf/page-leaves
		  # sleep 98765 &
	END
	for file in "$SCRIPTS_DIR/.." /tmp /usr/local ~ /sys/fs/bpf; do
		absent "$file/page-leaves"
	done
	if pgrep -x -f "sleep 98765"; then
		fail "what a page has started still runs"
	fi
}

test_what_a_page_runs_ends_with_the_script()
{
	printf 'A page::\n\n\t# sleep 98766\n' > "$TMP/t/page.rst"
	((EUID == 0)) || skip "needs root"
	"$SCRIPTS_DIR/test-pages.sh" "$TMP/t/page.rst" > "$TMP/t/out.log" 2>&1 &
	HANGING=$!
	until pgrep -x -f "sleep 98766"; do
		kill -0 "$HANGING"
		sleep 0.1
	done
	kill -TERM "$HANGING"
	ends_with 143
	if pgrep -x -f "sleep 98766"; then
		fail "the page still runs"
	fi
}

test_wrong_calls_are_refused()
{
	refuses test-pages --no-such-option
	refuses test-pages "$TMP/t/no-such-page.rst"
}

test_a_mark_ends_with_its_section()
{
	expect_page 1 <<-'END'
		First
		=====

		.. not run: the block is gone

		Text

		Second
		======

		A command::

		  # false
	END
	printed "failed: false"
}

run_tests
