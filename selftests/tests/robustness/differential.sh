#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Whatever a file has, perf shows no less of it than the unpatched perf: no crash, no error and no
# line less. lib/differences names the patch of each difference.

. "$(dirname "$0")/../../lib/test-lib.sh"
few_symbols

NATIVE_ONLY="the test reads generated files"

compare_perfs()
{
	"$SELFTESTS/lib/compare_perfs.py" "$PBM_UNPATCHED_PERF" "$PBM_PERF" "$SELFTESTS/lib/differences" "$@" >"$TMP/out" 2>&1 ||
		fail "$(head -c 20000 "$TMP/out")"
	cat "$TMP/out"
}

test_generated_files_show_no_less()
{
	all_only
	unpatched_perf
	malformed write-all "$TMP/files" good others later
	compare_perfs "$TMP/files"/*
}

# record_all DIR: files of both perfs
record_all()
{
	local perf name options

	mkdir "$1"
	hold simple functions busy_v1
	spend "$((${#HELD_IDS[@]} - 1))" 200000
	for name in PBM_UNPATCHED_PERF PBM_PERF; do
		perf=${!name}
		"$perf" record -N -q -g -F 499 -e '{cpu-clock,task-clock}' -o "$1/$name.group" -- "${WORKLOAD[@]}"
		"$perf" record -N -q -a -F 499 -e cpu-clock,task-clock -o - -- "${WORKLOAD[@]}" >"$1/$name.pipe"
		"$perf" stat record -o "$1/$name.stat" -e task-clock,page-faults true 2>/dev/null
	done
	for options in all header none; do
		"$PBM_PERF" record -N -q -a -F 499 -e cpu-clock --bpf-metadata="$options" -o "$1/$options" -- "${WORKLOAD[@]}"
	done
	release
}

test_recordings_show_no_less()
{
	local file size part

	all_only
	unpatched_perf
	record_all "$TMP/recordings"
	for file in "$TMP/recordings"/*; do
		size=$(stat -c %s "$file")
		for part in 1 2 3; do
			head -c $((size * part / 4)) "$file" >"$file.$part"
		done
	done
	compare_perfs "$TMP/recordings"/*
}

# must_differ SCRIPT DIFFERENCE: SCRIPT, which runs perf as "$@", makes this difference
must_differ()
{
	local PBM_PERF=$TMP/fake

	printf '#!/bin/bash\nset -- %q "$@"\n%s\n' "$PBM_UNPATCHED_PERF" "$1" >"$TMP/fake"
	chmod +x "$TMP/fake"
	if (compare_perfs "$TMP/file") >/dev/null; then
		fail "no difference: $1: $(cat "$TMP/out")"
	fi
	grep -q -e "$2" "$TMP/out" || fail "not '$2': $(cat "$TMP/out")"
}

test_what_shows_less_is_found()
{
	unpatched_perf
	malformed write good "$TMP/file"
	# shellcheck disable=SC2016 # for the script
	{
		must_differ '[[ $2 != script ]] || kill -SEGV $$; "$@"' "perf dump: '+status -11'"
		must_differ '"$@"; [[ $2 != evlist ]]' "perf evlist: '+status 1'"
		must_differ '"$@" | sed "s/bpf_prog_[0-9a-f]*_alpha/[unknown]/"' "perf dump: .*\[unknown\]"
		must_differ '[[ $2 = inject ]] || exec "$@"; "$@"; truncate -s 200 "$4"' 'perf inject:'
	}
}

test_each_rule_names_a_patch()
{
	local patches=$SELFTESTS/../patches name

	[[ -d $patches ]] || skip "the patches are not here"
	while read -r name; do
		compgen -G "$patches/*/*/$name.patch" || fail "no patch $name" >&2
	done < <(grep -v '^#' "$SELFTESTS/lib/differences" | cut -s -f 2) >"$TMP/found"
	[[ -s $TMP/found ]] || fail "no rule"
}

run_tests
