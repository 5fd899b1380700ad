#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of lib/common.sh and lib/options.sh, and of --help and wrong options of five scripts.

. "$(dirname "$0")/lib.sh"

# in_script SCRIPT [ARGUMENT...]: run a script that has read the libraries
in_script()
{
	bash -c "set -euo pipefail; . '$SCRIPTS_DIR/lib/options.sh'; print_usage() { echo 'usage: x.sh'; }; $1" x.sh "${@:2}"
}

test_unexpected_errors_end_a_script_with_status_2()
{
	local command

	# shellcheck disable=SC2016 # for the inner shell
	for command in 'echo "$nowhere"' 'exit 1' 'false' 'echo $((1 / 0))'; do
		expect_status 2 in_script "$command"
		printed "x.sh: error: unexpected"
	done
	expect_status 1 in_script end_failed
}

# Print the variables that options set.
call_options()
{
	# shellcheck disable=SC2016 # for the inner shell
	in_script 'OUT=out
		options__parse "$@" <<-END
			--clean		CLEAN	yes
			--out:		OUT
			-o:		OUT
			--kind::	KIND	default
			--jobs:		JOBS
			--no-install	INSTALL	no
		END
		printf "[%s]" "${CLEAN:-no}" "$OUT" "${KIND:-none}" / "${OPTIONS_PASSED[@]}" "$TAG"' "$@"
}

# options_set WANT OPTION...: fail unless call_options prints WANT
options_set()
{
	expect_status 0 call_options "${@:2}" v0.1
	[[ $PRINTED = "$1[v0.1]" ]] || fail "the variables are not $1"
}

test_options_set_their_variables()
{
	options_set '[no][out][none][/]'
	options_set '[yes][a b][none][/]' --clean --out 'a b'
	options_set '[no][b][none][/]' --out=a -o b
	options_set '[no][][none][/]' --out ''
	options_set '[no][out][default][/]' --kind
	options_set '[no][out][other][/]' --ki=other
	options_set '[no][out][none][/][--no-install][--jobs][2]' --no-install --jobs 2
	expect_status 0 call_options --clean -h
	printed "usage: x.sh"
	expect_status 2 call_options --out
	printed "wrong options"
	expect_status 2 call_options
	printed "one TAG is needed, 0 given"
}

test_five_scripts_have_help_and_refuse_nonsense()
{
	local script

	for script in apply-and-build check-series fuzz make-submission run-selftests; do
		expect_status 0 "$SCRIPTS_DIR/$script.sh" --help
		printed "usage: scripts/$script.sh"
		refuses "$script" --frobnicate v6.16
		refuses "$script" v6.16 v6.16
		refuses "$script" v9.9
		printed "use one of: v6"
	done
	refuses apply-and-build --jobs 0 v6.16
	refuses apply-and-build --sanitize=memory v6.16
	refuses fuzz --time 0 v6.16
	refuses run-selftests --sanitize --vm v6.16
	refuses run-selftests --expected-skips /none v6.16
	refuses run-selftests --sanitize=memory v6.16
}

test_a_file_of_tests_with_an_error_is_not_left_out()
{
	cp "$SCRIPTS_DIR/test-scripts.sh" "$TMP/t"
	install -D -m 755 /dev/stdin "$TMP/t/tests/a.sh" <<< $'#!/bin/bash\nif'
	expect_status 2 "$TMP/t/test-scripts.sh" a:
	printed "tests/a.sh: its tests cannot be listed"
}

test_the_lock_of_the_machine_is_awaited()
{
	local fd end=$((SECONDS + 20))

	exec {fd}< "$TMP/t"
	flock "$fd"
	in_script "MACHINE_LOCK=$TMP/t; take_machine_lock; echo taken" < /dev/null > "$TMP/out" {fd}<&- &
	HANGING=$!
	until grep -q '^# waiting for another run that uses the BPF programs' "$TMP/out"; do
		kill -0 "$HANGING" || fail "it has not waited"
		((SECONDS < end)) || fail "it does not say that it waits"
	done
	exec {fd}<&-
	ends_with 0
	holds "$TMP/out" '^taken'
}

run_tests
