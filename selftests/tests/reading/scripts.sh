#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf script -s flamegraph.py and gecko.py show BPF programs as code of the kernel. A user's
# executable whose name looks like a BPF program is shown as code of the user.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test only reads files"
PROGRAM='bpf_prog_[0-9a-f]+_(busy|multiply|divide)'
USERS=bpf_prog_0123456789abcdef_user

# All tests of this file share the recordings.
record_once()
{
	"$PBM_PERF" check -q feature libpython || skip "this perf is built without libpython"
	[[ ! -e $TMP/functions ]] || return 0
	hold busy_v1
	spend 0 100000
	cp "$(command -v bash)" "$TMP/$USERS"
	# shellcheck disable=SC2016 # for the inner shell
	WORKLOAD=(sh -c '"$1" -c "for ((i = 0; i < 100000; i++)); do :; done"; shift; "$@"' sh \
		"$TMP/$USERS" "${WORKLOAD[@]}")
	record "$TMP/graph" -g
	record "$TMP/flat"
	perfdata ksymbols "$TMP/graph" | grep -x -E "$PROGRAM" | sort -u >"$TMP/functions.part"
	mv "$TMP/functions.part" "$TMP/functions"
}

# run_script NAME FILE OPTION...: the options make the script write $TMP/json.
run_script()
{
	rm -f "$TMP/json"
	PERF_EXEC_PATH=$OUTPUT "$PBM_PERF" script -s "$OUTPUT/scripts/python/$1.py" -i "$2" -- "${@:3}"
}

# Print KIND<TAB>FUNCTION of each frame in the commands that match $1 (ERE).
flamegraph()
{
	run_script flamegraph "$TMP/graph" --format json --output "$TMP/json"
	python3 - "$TMP/json" "$1" <<-'END' | sort -u
	import json
	import re
	import sys

	def show(node):
	    for child in node["c"]:
	        print(child["l"] or "user", child["n"], sep="\t")
	        show(child)

	with open(sys.argv[1], encoding="utf-8") as file:
	    for command in json.load(file)["c"]:
	        if re.search(sys.argv[2], command["n"]):
	            show(command)
	END
}

# gecko FILE: print CATEGORY<TAB>FUNCTION (in DSO) of each frame.
gecko()
{
	run_script gecko "$1" --save-only "$TMP/json"
	python3 - "$TMP/json" <<-'END' | sort -u
	import json
	import sys

	with open(sys.argv[1], encoding="utf-8") as file:
	    top = json.load(file)
	for thread in top["threads"]:
	    table = thread["frameTable"]
	    for frame in table["data"]:
	        category = top["meta"]["categories"][frame[table["schema"]["category"]]]
	        print(category["name"], thread["stringTable"][frame[table["schema"]["location"]]], sep="\t")
	END
}

test_flamegraph_shows_programs_as_kernel()
{
	record_once
	flamegraph '' | grep -E "$PROGRAM\$" >"$TMP/got" || fail "no program in the flame graph"
	sed 's/^/kernel\t/' "$TMP/functions" >"$TMP/want"
	same "kinds of programs" "$TMP/want" "$TMP/got"
}

# Only the functions that have samples can be in the flame graph.
test_flamegraph_shows_code_of_users_as_user()
{
	record_once
	"$PBM_PERF" script -F ip,sym,dso -i "$TMP/graph" >"$TMP/out"
	sed -n "s|^[[:space:]]*[0-9a-f]* \([^ []*\) (.*/$USERS)\$|user\t\1|p" "$TMP/out" | sort -u >"$TMP/want"
	[[ -s $TMP/want ]] || fail "no function of $USERS"
	flamegraph '^bpf_prog_' >"$TMP/frames"
	awk -F '\t' 'NR == FNR { wanted[$2]; next } $2 in wanted' "$TMP/want" "$TMP/frames" >"$TMP/got"
	same "kinds of functions of $USERS" "$TMP/want" "$TMP/got"
}

# In a profile, the DSO of a BPF function is its name, and the DSO of the user's function is a path.
shows_categories()
{
	gecko "$1" >"$TMP/frames"
	grep -E "$PROGRAM \(in bpf_prog_" "$TMP/frames" >"$TMP/got" || fail "no program in the profile"
	sed 's/.*/Kernel\t& (in &)/' "$TMP/functions" >"$TMP/want"
	same "categories of programs" "$TMP/want" "$TMP/got"
	grep -F "/$USERS)" "$TMP/frames" >"$TMP/users" || fail "no function of $USERS"
	if grep -v $'^User\t' "$TMP/users"; then
		fail "functions of $USERS are not the user's"
	fi
}

test_gecko_shows_programs_as_kernel()
{
	record_once
	shows_categories "$TMP/graph"
}

test_gecko_without_call_graphs()
{
	record_once
	shows_categories "$TMP/flat"
}

run_tests
