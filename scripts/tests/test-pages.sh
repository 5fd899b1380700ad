#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of test-pages.sh, with pages that the tests write.

. "$(dirname "$0")/lib.sh"

# expect_page STATUS [NAME]: test-pages.sh must end with this status for the page on stdin
expect_page()
{
	((EUID == 0)) || skip "needs root"
	/usr/bin/python3 -c 'import docutils' || skip "needs python3-docutils"
	cat > "$TMP/t/${2:-page.rst}"
	expect_status "$1" "$SCRIPTS_DIR/test-pages.sh" "$TMP/t/${2:-page.rst}"
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

# Each line becomes a literal block of its own, in which each '|' begins a new line.
test_each_difference_from_a_page_fails()
{
	local blocks

	blocks=$(sed 's/.*/And::\n\n  &\n/; s/|/\n  /g' <<-'END'
		# true
		# echo captured 5 samples|captured 5 events
		# echo 'version="1.0"'|version="2.0"
		# echo rounds = 20|rounds = 40
		# echo tags 3ed1bb8ea9bf8dde c0b1a85fb75dc74b|tags 3ed1bb8ea9bf8dde 3ed1bb8ea9bf8dde
		# echo one|one|two
		# (exit 3)
		echo one
		END
	)
	expect_page 1 <<-END
		First
		=====

		$blocks

		.. not run: the mark ends with its section

		Second
		======

		And::

		  # false

		The shell ends::

		  # exit 0
	END
	printed "# -captured 5 events
# +captured 5 samples"
	printed '# -version="2.0"'
	printed "# -rounds = 40"
	printed "# -tags 3ed1bb8ea9bf8dde 3ed1bb8ea9bf8dde"
	printed "# -two"
	printed "# failed: (exit 3)"
	printed "# begins with no prompt, and is not marked as not run"
	printed "# failed: false"
	printed "# did not run to its end: exit 0"
	printed "pass:1 fail:9 skip:0"
}

# In the page, each '>' is a tab.
test_each_command_of_a_block_without_prompts_counts()
{
	tr '>' '\t' > "$TMP/t/text" <<-'END'
		A loop:

		>for i in 1 2; do
		>	echo $i
		>done

		It prints:

		>1
		>2

		A table, which is not run:

		>1>first
		>2>second

		And:

		>false
		>true
		>echo one

		It prints:

		>one
	END
	expect_page 1 readme < "$TMP/t/text"
	printed "# failed: false"
	printed "pass:1 fail:1 skip:1"
}

test_a_page_leaves_no_file_and_no_process()
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
	! pgrep -x -f "sleep 98765" || fail "a process of the page still runs"
}

test_wrong_calls_are_refused()
{
	refuses test-pages --no-such-option
	refuses test-pages "$TMP/t/no-such-page.rst"
}

run_tests
