#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf script -s flamegraph.py and gecko.py show BPF programs as code of the kernel. A user's
# executable whose name looks like a BPF program is shown as code of the user.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test only reads files"
PROGRAM='bpf_prog_[0-9a-f]+_(busy|multiply|divide)'
USERS=bpf_prog_0123456789abcdef_user

# Both tests share the recordings.
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

# run_script NAME FILE CODE OPTION...: the options make the script write $TMP/json. Run Python code with this
# JSON, which is "top".
run_script()
{
	rm -f "$TMP/json"
	PERF_EXEC_PATH=$OUTPUT "$PBM_PERF" script -s "$OUTPUT/scripts/python/$1.py" -i "$2" -- "${@:4}"
	python3 -c "import json, sys
top = json.load(open(sys.argv[1], encoding='utf-8'))
$3" "$TMP/json" | sort -u >"$TMP/frames"
}

# Only the functions that have samples can be in the flame graph.
test_flamegraph_shows_programs_as_kernel_and_code_of_users_as_user()
{
	record_once
	run_script flamegraph "$TMP/graph" 'def show(node):
    for child in node["c"]:
        print(child["l"] or "user", child["n"], sep="\t")
        show(child)
show(top)' --format json --output "$TMP/json"
	grep -E "$PROGRAM\$" "$TMP/frames" >"$TMP/got" || fail "no program in the flame graph"
	sed 's/^/kernel\t/' "$TMP/functions" >"$TMP/want"
	same "kinds of programs" "$TMP/want" "$TMP/got"
	"$PBM_PERF" script -F ip,sym,dso -i "$TMP/graph" |
		sed -n "s|^[[:space:]]*[0-9a-f]* \([^ []*\) (.*/$USERS)\$|user\t\1|p" | sort -u >"$TMP/want"
	[[ -s $TMP/want ]] || fail "no function of $USERS"
	grep -x -F -f "$TMP/want" "$TMP/frames" >"$TMP/got"
	same "functions of $USERS" "$TMP/want" "$TMP/got"
}

# In a profile, the DSO of a BPF function is its name, and the DSO of the user's function is a path.
test_gecko_shows_programs_as_kernel_and_code_of_users_as_user()
{
	local file

	record_once
	for file in graph flat; do
		run_script gecko "$TMP/$file" 'for thread in top["threads"]:
    table = thread["frameTable"]
    for frame in table["data"]:
        category = top["meta"]["categories"][frame[table["schema"]["category"]]]
        print(category["name"], thread["stringTable"][frame[table["schema"]["location"]]], sep="\t")' \
			--save-only "$TMP/json"
		grep -E "$PROGRAM \(in bpf_prog_" "$TMP/frames" >"$TMP/got" || fail "no program in the profile"
		sed 's/.*/Kernel\t& (in &)/' "$TMP/functions" >"$TMP/want"
		same "categories of programs in $file" "$TMP/want" "$TMP/got"
		grep -F "/$USERS)" "$TMP/frames" >"$TMP/users" || fail "no function of $USERS in $file"
		! grep -v $'^User\t' "$TMP/users" || fail "functions of $USERS are not the user's"
	done
}

run_tests
