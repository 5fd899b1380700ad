#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of the tests' own tools, with broken input: with a comparator that accepts everything, all
# other tests would pass. The block is the metadata in the header of perf.data.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"

NATIVE_ONLY="only the tools of the tests are tested"

# In a subshell, because fail() ends the shell
must_fail()
{
	if ("$@") >"$TMP/out" 2>&1; then
		cat "$TMP/out"
		fail "passes, and should not: $*"
	fi
	# A usage error or a crash is not a finding.
	if grep -e 'Traceback' -e '^usage' "$TMP/out"; then
		fail "does not work: $*"
	fi
}

# $TMP/script is the right output of perf for types.bpf.c, $TMP/oracle is bpftool's.
prepare_types()
{
	WANT=$SELFTESTS/progs/types.bpf.c
	hold types
	"$BPFTOOL" -j prog show id "${HELD_IDS[0]}" >"$TMP/oracle"
	values pretend "$WANT" types >"$TMP/script"
}

# compare_types SCRIPT_CHANGE ORACLE_CHANGE: compare them after these commands of sed
compare_types()
{
	sed "$1" "$TMP/script" >"$TMP/changed-script"
	sed "$2" "$TMP/oracle" >"$TMP/changed-oracle"
	values compare "$WANT" "$TMP/changed-script" types "$TMP/changed-oracle"
}

test_literals_and_bpftool_agree()
{
	prepare_types
	compare_types '' ''
}

test_comparator_finds_each_wrong_value_and_key()
{
	local n found

	prepare_types
	n=$(grep -c '^  entry' "$TMP/script")
	must_fail compare_types 's/^\(  entry [0-9]*: *[^ ]* = \)\(.*\)/\1[\2]/' ''
	found=$(grep -c -e ': is ' "$TMP/out")
	((n > 40 && found == n)) || fail "$found of $n changed values are found"
	must_fail compare_types '' 's/"int_u8_max":255/"int_u8_max":254/'
	must_fail compare_types '' 's/"str_del":\[97,/"str_del":[98,/'
	must_fail compare_types '' 's/"bool_true":true,//'
	must_fail compare_types "/^  entry $((n - 1)):/d" ''
	must_fail compare_types "\$a\\  entry $n: k = \"one letter\"" ''
	must_fail compare_types "\$a\\  entry $n: unknown = 1" ''
}

# check_text WANT TEXT: fail unless perf's TEXT of a value matches the wanted value
check_text()
{
	printf '/* want: %s */ int bpf_metadata_key;\n' "$1" >"$TMP/want"
	printf 'PERF_RECORD_BPF_METADATA prog p\n  entry 0: %20s = %b\n' key "$2" >"$TMP/one"
	values compare "$TMP/want" "$TMP/one" p
}

test_comparator_knows_types_notation_and_form()
{
	check_text '"é"' '"\\u00e9"'
	must_fail check_text 7 7.0
	must_fail check_text 0 -0
	must_fail check_text 7 '"7"'
	must_fail check_text 1 true
	must_fail check_text 1 ' 1'
	must_fail check_text 1 '[1]'
	must_fail check_text '"\u009b"' '"\xc2\x9b"'
	must_fail check_text '"\u007f"' '"\x7f"'
	must_fail check_text '"\t"' '"\t"'
}

# check_bytes OFFSET BYTES [PLACE]: check $TMP/file, with a record of two entries after, before (first) or
# between samples. BYTES replace those at OFFSET of the record.
check_bytes()
{
	write_file "$TMP/file" <<-END
		record, changed = bytearray(file.metadata(perfgen.ALPHA, [(b"b", b"2")])), bytes.fromhex("$2")
		record[$1:$1 + len(changed)] = changed
		sample = file.sample(0)
		file.records = lambda: {"first": record + sample, "between": sample + record + sample}.get(
		    "${3:-}", sample + record)
	END
	perfdata check "$TMP/file"
}

test_reader_finds_each_broken_field()
{
	local sixty_four

	sixty_four=$(printf '61%.0s' {1..64})
	check_bytes 0 54000000
	check_bytes 0 54000000 first		# record before the first sample
	must_fail check_bytes 0 54000000 between
	must_fail check_bytes 6 a8ff		# size, past the end
	must_fail check_bytes 520 01		# nr_entries
	must_fail check_bytes 520 03
	must_fail check_bytes 500 61		# after the NUL of the name
	must_fail check_bytes 592 78		# the id is not a number
	must_fail check_bytes 848 "$sixty_four"	# no NUL in the key
	must_fail check_bytes 912 00		# empty value
	must_fail check_bytes 912 ff		# not UTF-8
	must_fail check_bytes 1183 01		# sample id not zero
	must_fail check_bytes 0 55000000	# another type
}

# block_bytes OFFSET BYTES: read $TMP/file, whose block has two programs that share a text of keys and
# values, and a program without metadata. BYTES replace those at OFFSET of the block.
block_bytes()
{
	write_file "$TMP/file" <<-END
		file.block = bytearray(file.make_texts([(b"k=1\nl=2\n", [5, 7]), (b"", [8])]))
		changed = bytes.fromhex("$2")
		file.block[$1:$1 + len(changed)] = changed
		file.infos, file.nr_infos, file.records = [], 0, lambda: b""
	END
	perfdata block "$TMP/file"
}

test_reader_finds_each_broken_field_of_the_block()
{
	local whole

	printf '%d\t\t0\t%s\t%d\n' 5 k 1 5 l 2 7 k 1 7 l 2 >"$TMP/want"
	block_bytes 0 "" >"$TMP/got"
	same "block" "$TMP/want" "$TMP/got"
	whole=$(tail -c 164 "$TMP/file" | od -An -v -tx1 | tr -d ' \n')
	perfdata without "$TMP/file" >"$TMP/got"
	printf '8\t\n' >"$TMP/want"
	same "programs without metadata" "$TMP/want" "$TMP/got"
	must_fail block_bytes 7 33			# magic
	must_fail block_bytes 8 3f			# length
	must_fail block_bytes 8 00000001
	must_fail block_bytes 12 3d			# an empty key
	must_fail block_bytes 13 6b			# no value
	must_fail block_bytes 14 ff			# not UTF-8
	must_fail block_bytes 19 6b			# a line that does not end
	must_fail block_bytes 20 0a			# a line that is empty
	must_fail block_bytes 16 6b			# a key that is there twice
	must_fail block_bytes 21 01			# padding
	must_fail block_bytes 76 00			# programs
	must_fail block_bytes 76 03
	must_fail block_bytes 160 05			# an id that is there twice
	must_fail block_bytes 92 6b3d310a6c3d320a	# a text that is there twice
	must_fail block_bytes 164 00			# a byte after the block
	must_fail block_bytes 164 "$whole"		# a second block
}

# must_tell GROUP SCRIPT WHAT: SCRIPT, which runs perf as "$@", reads the files of this group wrong
must_tell()
{
	printf '#!/bin/bash\nset -- %q "$@"\n%s\n' "$PBM_PERF" "$2" >"$TMP/fake"
	chmod +x "$TMP/fake"
	PBM_PERF=$TMP/fake must_fail malformed check "$TMP/files" "$1"
	grep -q -e "$3" "$TMP/out" || fail "not '$3': $(cat "$TMP/out")"
}

# shellcheck disable=SC2016 # for the script
test_files_that_perf_reads_wrong_are_found()
{
	malformed check "$TMP/files" good
	must_tell good 'kill -SEGV $$' 'ends with status -11'
	must_tell good '"$@"; [[ $2 != evlist ]]' 'perf evlist: ends with status 1'
	must_tell good '"$@"; printf "\033[1m"' 'prints a control character'
	must_tell good '"$@"; printf "\xff"' "can't decode byte 0xff"
	must_tell good '[[ $3 = *=header ]] || exec "$@"; "$@"; cp "${@: -1}" "$5"' 'perf >report -D: 2 lines'
	must_tell good '"$@" | sed "s/1\.2\.3/1.2.4/"' "perf report --header-only: 0 lines with"
	must_tell sections '(($(stat -c %s "${@: -1}") < 1000000)) || python3 -c "b\"x\" * (200 << 20)"; "$@"' \
		'takes too much memory'
}

test_only_files_without_records_pass_as_such()
{
	block_bytes 0 ""
	must_fail want_no_records "$TMP/file"	# no sample
	check_bytes 0 54
	must_fail want_no_records "$TMP/file"
	perfdata strip "$TMP/file" "$TMP/stripped"
	want_no_records "$TMP/stripped"
	[[ $(<"$TMP/types") = 9 ]] || fail "types: $(<"$TMP/types")"
	must_fail has_ksymbol "$TMP/stripped" bpf_prog_1_name
	: >"$TMP/empty"
	must_fail want_no_records "$TMP/empty"
	must_fail has_ksymbol "$TMP/empty" bpf_prog_1_name

	: >"$TMP/data.script"
	must_fail shows_no_record bpf_prog_1_name
	echo " 0 PERF_RECORD_KSYMBOL addr 1 len 8 type 1 flags 0x0 name bpf_prog_1_name" >"$TMP/data.script"
	shows_no_record bpf_prog_1_name
	must_fail shows_no_record bpf_prog_1_nam
	must_fail shows_no_record bpf_prog_2_name
	echo " 0 PERF_RECORD_BPF_METADATA prog bpf_prog_1_name" >>"$TMP/data.script"
	must_fail shows_no_record bpf_prog_1_name
}

# The last lines of the output are for a tag to which tests do not apply, and for emulated machines.
test_lib_reports_what_happened()
{
	cat >"$TMP/inner.sh" <<-END
		. "$SELFTESTS/lib/test-lib.sh"
		helper() { false; echo not reached; }
		test_pass() { true; }
		test_fail_in_the_middle() { false; true; }
		test_fail_in_a_pipe() { false | cat; }
		test_fail_in_a_helper() { helper; true; }
		test_fail_by_name() { fail "reason"; }
		test_fail_with_4() { (exit 4); }
		test_skip() { skip "no such thing"; }
		test_native() { native_only "nor here"; }
		NATIVE_ONLY=\${INNER_NATIVE_ONLY:-}
		run_tests
	END
	printf '%s\t%s\n' 'inner: (fail .*|none)' 'it is right there' 'inner: pas' 'another name' >"$TMP/lacks"
	cat >"$TMP/want" <<-'END'
		ok 1 inner: pass
		not ok 2 inner: fail in the middle
		not ok 3 inner: fail in a pipe
		not ok 4 inner: fail in a helper
		not ok 5 inner: fail by name
		not ok 6 inner: fail with 4
		ok 7 inner: skip # SKIP no such thing
		ok 8 inner: native
		status 1
		ok 1 inner: pass
		ok 2 inner: fail by name # SKIP does not apply to v0.1: it is right there
		ok 1 inner: native
		ok 1 inner: native # SKIP not in an emulated machine: nor here
		ok 1 inner: pass # SKIP not in an emulated machine: all
	END
	{
		PBM_EMULATED=0 PBM_FILTER='' bash "$TMP/inner.sh" || echo "status $?"
		PBM_EMULATED=0 PBM_FILTER='by name|pass' PBM_LACKS=$TMP/lacks PBM_TAG=v0.1 bash "$TMP/inner.sh"
		PBM_EMULATED=0 PBM_FILTER=native INNER_NATIVE_ONLY=all bash "$TMP/inner.sh"
		PBM_EMULATED=1 PBM_FILTER=native bash "$TMP/inner.sh" || :
		PBM_EMULATED=1 PBM_FILTER=pass INNER_NATIVE_ONLY=all bash "$TMP/inner.sh" || :
	} >"$TMP/out" 2>&1
	cat "$TMP/out"
	grep -E '^(ok|not ok|status) ' "$TMP/out" | sed 's/ *$//' >"$TMP/got"
	same "results" "$TMP/want" "$TMP/got"
}

# README has lists of DIRECTORY/FILE.
test_readme_names_each_file()
{
	[[ -d $SELFTESTS/holders ]] || skip "README describes the source directory"
	awk -F '\t+' '
		/^tests\/[a-z]+\/:/ { dir = $1; sub(/:.*/, "", dir); next }
		/^---/ { dir = "" }
		dir != "" && /^\t/ { print dir $2 }' "$SELFTESTS/README" | sort >"$TMP/want"
	(cd "$SELFTESTS" && find tests -type f) | sort >"$TMP/got"
	same "README and the files" "$TMP/want" "$TMP/got"
}

# run-selftests.sh does not call kselftest's runner, but others do.
test_kselftest_runs_a_file_of_tests()
{
	local runner

	runner=$(dirname "$(realpath "$OUTPUT/ktap_helpers.sh")")
	[[ -f $runner/runner.sh && -f $SELFTESTS/settings ]] || skip "kselftest's runner is not beside the tests"
	ln -s "$runner" "$TMP/kselftest"
	ln -s "$SELFTESTS" "$TMP/bpf-metadata"
	# The runner opens its output once more, so append.
	# shellcheck disable=SC2016 # for the inner shell
	PBM_FILTER='sets: keys are' BASE_DIR=$TMP bash -c \
		'cd "$BASE_DIR/bpf-metadata" && . "$BASE_DIR/kselftest/runner.sh" && run_many tests/reading/sets.sh' >>"$TMP/out"
	grep -x '# timeout set to 1800' "$TMP/out"
	grep '^# ok 1 sets: keys are ' "$TMP/out"
	grep -x 'ok 1 selftests: bpf-metadata: sets.sh' "$TMP/out"
}

# pretend_churn NUMBER NAME: add the right output of perf script about a program to $TMP/script
pretend_churn()
{
	local name=bpf_prog_0123456789abcdef_$2

	cat >>"$TMP/script" <<-END
		0 PERF_RECORD_KSYMBOL addr ffff len 8 type 1 flags 0x0 name $name
		0 PERF_RECORD_BPF_METADATA prog $name
		  entry 0:                 (id) = 1$1
		  entry 1:               number = $1
		  entry 2:                 name = "churn_$1"
	END
	(($1 % 3 != 2)) || echo "  entry 3:                 more = -$1" >>"$TMP/script"
}

# wrong_churn PROBLEM CHANGE: after this command of sed, the output of perf script must be found
# to have the problem
wrong_churn()
{
	sed "$2" "$TMP/script" >"$TMP/changed"
	must_fail check_churn "$TMP/list" "$TMP/changed"
	grep -q -e "^$1" "$TMP/out" || fail "the check does not print '$1', but: $(cat "$TMP/out")"
}

# shellcheck disable=SC2016 # for sed
# One of the three programs was short-lived. So it may have a set of metadata, but the set must be right.
test_missing_or_wrong_metadata_of_churn_is_found()
{
	printf '%s\n' '1 11 churn_1 told' '2 12 churn_2 stays' '3 13 churn_3 short' >"$TMP/list"
	pretend_churn 1 churn_1
	pretend_churn 2 churn_2
	echo "0 PERF_RECORD_KSYMBOL addr fffe len 8 type 1 flags 0x0 name bpf_prog_0123456789abcdef_churn_2_sub" >>"$TMP/script"
	check_churn "$TMP/list" "$TMP/script"
	cat "$TMP/script" "$TMP/script" >"$TMP/twice"
	check_churn "$TMP/list" "$TMP/twice"
	wrong_churn 'wrong set' '/more = -2/d'
	wrong_churn 'wrong set' 's/number = 1/number = 2/'
	wrong_churn 'wrong set: .*the ids' 's/(id) = 11/(id) = 12/'
	wrong_churn 'no set' '/METADATA.*churn_2/,$d'
	pretend_churn 3 churn_3
	check_churn "$TMP/list" "$TMP/script"
	wrong_churn 'wrong set' 's/number = 3/number = 4/'
}

agree_after()
{
	sed -E "$1" "$TMP/want" >"$TMP/changed"
	python3 "$SELFTESTS/lib/cross_check.py" "${2:-$TMP/data}" "$TMP/changed"
}

test_disagreement_of_a_recording_and_bpftool_is_found()
{
	hold simple none
	"$BPFTOOL" -j prog show id "${HELD_IDS[0]}" >"$TMP/want"
	"$BPFTOOL" -j prog show id "${HELD_IDS[1]}" >>"$TMP/want"
	record "$TMP/data"
	agree_after ''
	must_fail agree_after 's/"tag":"/&0/'
	must_fail agree_after 's/"id":[0-9]*/&0/'
	must_fail agree_after 's/"name":"none"/"name":"one"/'
	must_fail agree_after 's/1\.2\.3/1.2.4/'
	must_fail agree_after 's/,"answer":42//'
	must_fail agree_after 's/"name":"none"/&,"metadata":{"a":1}/'
	must_fail agree_after "\$a unloaded ${HELD_IDS[0]}"
	perfdata strip "$TMP/data" "$TMP/stripped"
	must_fail agree_after '' "$TMP/stripped"
}

run_tests
