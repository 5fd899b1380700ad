#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of test-pages.sh, with pages that the tests write.

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

test_each_difference_from_a_page_fails()
{
	expect_page 1 <<-'END'
		First
		=====

		A right block::

		  # true

		Wrong blocks::

		  # echo captured 5 samples
		  captured 5 events

		And::

		  # echo 'version="1.0"'
		  version="2.0"

		And::

		  # echo rounds = 20
		  rounds = 40

		And::

		  # echo tags 3ed1bb8ea9bf8dde c0b1a85fb75dc74b
		  tags 3ed1bb8ea9bf8dde 3ed1bb8ea9bf8dde

		And::

		  # echo one
		  one
		  two

		And::

		  # (exit 3)

		And::

		  echo one

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

run_tests
