#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each function of a program has one record under the name of its KSYMBOL.

. "$(dirname "$0")/../../lib/test-lib.sh"

FUNCTIONS='_(static_function|global_function|a_function_with_a_name_that.*|functions_with_a_long_program_name)$'

# All tests of this file share the recording.
record_once()
{
	[[ ! -e $TMP/programs ]] || return 0
	hold functions
	record "$TMP/data"
	show "$TMP/data"
	sed -n 's/^[0-9a-f]* [[:alpha:]] \(bpf_prog_[^[:space:]]*\).*/\1/p' /proc/kallsyms >"$TMP/kallsyms"
	values programs "$TMP/data.script" >"$TMP/programs"
}

# same_functions WHAT FILE [NAMES]: FILE has the functions of the records (or of the file NAMES).
same_functions()
{
	grep -E -e "$FUNCTIONS" "$2" | sort >"$TMP/want"
	grep -E -e "$FUNCTIONS" "${3:-$TMP/programs}" | sort >"$TMP/got"
	(($(wc -l <"$TMP/want") == 4)) || fail "$1 does not have four functions: $(cat "$TMP/want")"
	same "functions in $1 and records" "$TMP/want" "$TMP/got"
}

test_one_record_for_each_ksymbol_of_the_file()
{
	record_once
	perfdata ksymbols "$TMP/data" >"$TMP/ksymbols"
	same_functions "the file" "$TMP/ksymbols"
}

test_one_record_for_each_ksymbol_that_perf_script_shows()
{
	record_once
	sed -n 's/.*PERF_RECORD_KSYMBOL .* name \([^ ]*\)$/\1/p' "$TMP/data.script" >"$TMP/ksymbols"
	same_functions "perf script" "$TMP/ksymbols"
}

without_main_tag()
{
	sed 's/_[0-9a-f]*_functions_with/_TAG_functions_with/'
}

# If a program has several functions, its main function has two names. In kernels since v6.5, the
# symbol has the tag of the whole program. perf's KSYMBOL has the tag of the function.
test_names_are_those_of_the_running_kernel()
{
	record_once
	without_main_tag <"$TMP/kallsyms" >"$TMP/kallsyms-names"
	without_main_tag <"$TMP/programs" >"$TMP/record-names"
	same_functions /proc/kallsyms "$TMP/kallsyms-names" "$TMP/record-names"
}

test_all_functions_have_the_metadata_of_their_program()
{
	local name

	record_once
	printf 'version\t"functions"\n' >"$TMP/want"
	grep -E -e "$FUNCTIONS" "$TMP/programs" >"$TMP/names"
	while read -r name; do
		values entries "$TMP/data.script" "$name" >"$TMP/got"
		same "$name" "$TMP/want" "$TMP/got"
	done <"$TMP/names"
}

run_tests
