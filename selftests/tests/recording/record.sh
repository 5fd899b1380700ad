#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf record with and without metadata. perf's default output does not change.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/nobody.sh"

# default_output PERF FILE: print the default output of commands, which other tools parse. A perf
# with sanitizers can't demangle C++, and a sample can be in a C++ function of a sanitizer.
default_output()
{
	local perf=$1 file=$2 options=()

	[[ -z ${PBM_SANITIZED:-} ]] || options=(--no-demangle)
	{
		echo "== report" && "$perf" report "${options[@]}" --stdio -i "$file"
		echo "== report --sort" && "$perf" report "${options[@]}" --stdio -s comm,dso,sym -i "$file"
		echo "== script" && "$perf" script "${options[@]}" -i "$file"
		echo "== script -F" && "$perf" script "${options[@]}" -F comm,ip,sym -i "$file"
		echo "== evlist" && "$perf" evlist -v -i "$file"
	} >"$TMP/output" 2>&1
	drop_tips "$TMP/output"
	cat "$TMP/output"
}

# Print file $1 with TMP instead of $TMP, and N instead of each number, such as perf's version.
without_figures()
{
	sed -e "s|$TMP|TMP|g" -e 's/[0-9][0-9.]*/N/g' "$1"
}

test_no_bpf_event_writes_no_record()
{
	hold simple
	record "$TMP/data" --no-bpf-event
	want_no_records "$TMP/data"
	show "$TMP/data"
	grep -q ' cpu-clock' "$TMP/data.script" || fail "perf script shows no sample"
	values programs "$TMP/data.script" >"$TMP/programs"
	[[ ! -s $TMP/programs ]] || fail "perf script shows records of $(cat "$TMP/programs")"
}

# expect_records_of N INDEX: fail unless N records have the name of program HELD_IDS[INDEX]
expect_records_of()
{
	perfdata records "$TMP/data" | cut -f 1 >"$TMP/names"
	(($(grep -c -x -e "$(symbol_of "$2")" "$TMP/names" || true) == $1)) ||
		fail "not $1 records of ${HELD_NAMES[$2]}: $(sort "$TMP/names" | uniq -c)"
}

test_each_program_has_its_records()
{
	hold -n 10 simple keys_1000
	record "$TMP/data"
	expect_records_of 10 0
	# The metadata of keys_1000 is in 5 records, of up to 202 entries.
	expect_records_of 50 10
	perfdata check "$TMP/data"
}

test_all_different_metadata_of_programs_with_one_name_is_written()
{
	hold_command "$OUTPUT/hold" -d -n 10 bench_1_1_4_0.bpf.o
	record "$TMP/data"
	expect_records_of 10 0
}

test_sample_filter_of_perf_carries_perf_version()
{
	local program version

	native_only "the kernel takes a minute to verify the filter, and perf test also tests it"
	all_only
	"$PBM_PERF" check -q feature bpf_skeletons ||
		skip "this perf is built without BPF skeletons"
	"$PBM_PERF" record -N -q -e task-clock --filter 'ip > 0' -o "$TMP/data" -- "${WORKLOAD[@]}"
	show "$TMP/data"
	version=$("$PBM_PERF" version)
	printf 'perf_version\t"%s"\n' "${version#perf version }" >"$TMP/want"
	program=$(values programs "$TMP/data.script" | grep -e '_perf_sample_filter$' | sort -u)
	echo "program: $program"
	values entries "$TMP/data.script" "$program" >"$TMP/got"
	same "the filter's metadata" "$TMP/want" "$TMP/got"
}

# The records are the only difference between a file and its stripped copy.
test_records_do_not_change_default_output()
{
	hold simple keys_203 functions
	record "$TMP/data"
	perfdata check "$TMP/data"
	perfdata strip "$TMP/data" "$TMP/stripped"
	want_no_records "$TMP/stripped"
	mkdir "$TMP/with" "$TMP/without"
	mv "$TMP/data" "$TMP/with/perf.data"
	mv "$TMP/stripped" "$TMP/without/perf.data"
	cd "$TMP/with"
	default_output "$PBM_PERF" perf.data >"$TMP/with.out"
	cd "$TMP/without"
	default_output "$PBM_PERF" perf.data >"$TMP/without.out"
	(($(wc -l <"$TMP/with.out") > 100)) || fail "there is almost no output"
	same "default output" "$TMP/without.out" "$TMP/with.out"
}

test_unpatched_perf_prints_a_file_without_records_in_the_same_way()
{
	unpatched_perf
	hold simple functions
	record "$TMP/data"
	perfdata strip "$TMP/data" "$TMP/stripped"
	default_output "$PBM_UNPATCHED_PERF" "$TMP/stripped" >"$TMP/unpatched.out"
	default_output "$PBM_PERF" "$TMP/stripped" >"$TMP/patched.out"
	same "default output" "$TMP/unpatched.out" "$TMP/patched.out"
}

test_files_of_unpatched_perf_are_printed_as_before()
{
	unpatched_perf
	hold simple functions
	"$PBM_UNPATCHED_PERF" record -N -q -a -e cpu-clock -o "$TMP/data" -- "${WORKLOAD[@]}"
	default_output "$PBM_UNPATCHED_PERF" "$TMP/data" >"$TMP/unpatched.out"
	default_output "$PBM_PERF" "$TMP/data" >"$TMP/patched.out"
	same "default output" "$TMP/unpatched.out" "$TMP/patched.out"
}

# record_as_nobody NAME PERF [OPTION...]: record as user nobody; write the messages to $TMP/NAME
record_as_nobody()
{
	local name=$1 perf=$2

	shift 2
	as_nobody "$perf" record -N "$@" -o "$TMP/nobody/data" -- \
		"${WORKLOAD[@]}" 2>"$TMP/$name.err"
	cat "$TMP/$name.err"
	without_figures "$TMP/$name.err" >"$TMP/$name"
}

test_unprivileged_recording_prints_no_new_warning()
{
	prepare_nobody
	hold simple
	record_as_nobody quiet "$PBM_PERF" --no-bpf-event
	record_as_nobody plain "$PBM_PERF"
	same "messages of perf record" "$TMP/quiet" "$TMP/plain"
	"$PBM_PERF" script -f -i "$TMP/nobody/data" >"$TMP/script"
	[[ -s $TMP/script ]] || fail "no sample was recorded"
}

test_unprivileged_recording_prints_what_unpatched_perf_prints()
{
	unpatched_perf
	prepare_nobody
	as_nobody test -x "$PBM_UNPATCHED_PERF" ||
		skip "an unprivileged user cannot reach $PBM_UNPATCHED_PERF"
	hold simple
	record_as_nobody unpatched "$PBM_UNPATCHED_PERF"
	record_as_nobody patched "$PBM_PERF"
	same "messages of perf record" "$TMP/unpatched" "$TMP/patched"
}

# Several of them are in one page of the kernel.
test_trampolines_of_struct_ops_have_names()
{
	"$BPFTOOL" struct_ops register "$OUTPUT/struct_ops.bpf.o" >"$TMP/registered" 2>&1 ||
		skip "this kernel registers no struct_ops: $(tail -n 1 "$TMP/registered")"
	trap '"$BPFTOOL" struct_ops unregister name pbm_tcp >/dev/null; end_test' EXIT
	grep -q '\sbpf__tcp_congestion_ops_ssthresh\s' /proc/kallsyms || skip "this kernel (before v6.13) gives these trampolines no names"
	record "$TMP/data"
	perfdata ksymbols "$TMP/data" | grep '^bpf__tcp_congestion_ops_' | sort -u >"$TMP/got"
	printf 'bpf__tcp_congestion_ops_%s\n' cong_avoid ssthresh undo_cwnd >"$TMP/want"
	same "names" "$TMP/want" "$TMP/got"
}

run_tests
