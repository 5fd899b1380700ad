#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of test-pages.sh, with pages that the tests write.

. "$(dirname "$0")/lib.sh"

prepare_tests()
{
	((EUID == 0)) || { ktap_skip_all "needs root"; exit 0; }
	{ command -v quilt && /usr/bin/python3 -c 'import docutils'; } > /dev/null ||
		{ ktap_skip_all "needs quilt and python3-docutils"; exit 0; }
}

# expect_page STATUS [NAME]: test-pages.sh must end with this status for the page on stdin
expect_page()
{
	cat > "$TMP/t/${2:-page.rst}"
	expect_status "$1" "$SCRIPTS_DIR/test-pages.sh" "$TMP/t/${2:-page.rst}"
}

test_pages_that_are_right_pass_and_leave_nothing()
{
	local dir

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

		  # for dir in . /tmp /usr/local ~ /sys/fs/bpf; do
		  >  test -s data && \
		  >    mkdir $dir/page-leaves
		  > done
		  # sleep 98765 &

		.. not run: nobody has it

		A command::

		  # no-such-command
	END
	printed "page.rst:30: no-such-command # SKIP nobody has it"
	for dir in "$SCRIPTS_DIR/.." /tmp /usr/local ~ /sys/fs/bpf; do
		absent "$dir/page-leaves"
	done
	! pgrep -x -f "sleep 98765" || fail "a process of the page still runs"
}

# Each line becomes a literal block of its own, in which each '|' begins a new line.
test_each_difference_from_a_page_fails()
{
	local blocks line

	blocks=$(sed 's/.*/And::\n\n  &\n/; s/|/\n  /g' <<-'END'
		# true
		# echo captured 5 samples|captured 5 events
		# echo 'version="1.0"'|version="2.0"
		# echo rounds = 20|rounds = 40
		# echo tags 3ed1bb8ea9bf8dde c0b1a85fb75dc74b|tags 3ed1bb8ea9bf8dde 3ed1bb8ea9bf8dde
		# echo one|one|two
		# (exit 3)
		echo one|# true
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
	while read -r line; do
		printed "# $line"
	done <<-'END'
		-captured 5 events
		+captured 5 samples
		-version="2.0"
		-rounds = 40
		-tags 3ed1bb8ea9bf8dde 3ed1bb8ea9bf8dde
		-two
		failed: (exit 3)
		begins with no prompt, and is not marked as not run
		failed: false
		did not run to its end: exit 0
		9 of 10 blocks failed
	END
}

# In the page, each '>' is a tab.
test_each_command_of_a_block_of_the_README_counts()
{
	tr '>' '\t' > "$TMP/t/text" <<-'END'
		>for i in 1 2; do
		>	echo $i
		>done

		It prints:

		>1
		>2

		A table:

		>1>first
		>2>second

		And:

		>false
		>echo one
	END
	expect_page 1 readme < "$TMP/t/text"
	printed "# SKIP a table"
	printed "# failed: false"
	printed "1 of 3 blocks failed"
}

run_tests
