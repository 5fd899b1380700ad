#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A user who may load BPF programs cannot make perf record fail, hang or grow. Other users cannot
# read the metadata. bpf-event.c has the limits.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/nobody.sh"

# perf record -v prints what it leaves out. $TMP/messages has the output.
record_verbose()
{
	"$PBM_PERF" record -v -N -a -e cpu-clock "${FREQUENCY[@]}" "$@" -- "${WORKLOAD[@]}" 2>"$TMP/messages" ||
		fail "perf record: status $?: $(tail -n 5 "$TMP/messages")"
}

entries_of()
{
	show "$1"
	values entries "$1.script" "$(symbol_of 0)"
}

left_out()
{
	grep -q -x -F -e "BPF metadata: $1" "$TMP/messages" ||
		fail "perf record -v doesn't say '$1': $(grep metadata "$TMP/messages")"
}

test_odd_types_are_recorded_but_no_large_values()
{
	local nested='{0,}' i

	hold hostile
	record_verbose -o "$TMP/data"
	for ((i = 0; i < 20; i++)); do
		nested="{$nested,}"
	done
	printf '%s\t%s\n' a_first '"kept"' b_no_elements '{6,[],}' c_forward 0x7 \
		d_cycle '{(nil),8,}' e_nested "$nested" f_long ... g_work ... h_enum ... i_last '"kept"' \
		i_number 1 j_union ... >"$TMP/want"
	entries_of "$TMP/data" >"$TMP/got"
	same "entries" "$TMP/want" "$TMP/got"
	left_out "no value of f_long: Argument list too long"
	left_out "no value of g_work: Argument list too long"
	left_out "no value of h_enum: Argument list too long"
	left_out "no value of j_union: Argument list too long"
}

test_a_section_of_17_mib()
{
	hold huge
	record "$TMP/data"
	entries_of "$TMP/data" >"$TMP/got"
	printf '%s\t%s\n' version '"1.2.3"' >"$TMP/want"
	same "entries" "$TMP/want" "$TMP/got"
}

# Names in events have at most 511 characters, with bpf_prog_<tag>_ before the name of the function.
# glibc aborts perf record if it writes behind the memory of an event.
test_a_function_name_of_511_characters_is_cut()
{
	local name

	hold long_name
	LD_PRELOAD=libc_malloc_debug.so.0 GLIBC_TUNABLES=glibc.malloc.check=3 record "$TMP/data"
	perfdata check "$TMP/data"
	name=$(symbol_of 0)
	echo "${name:0:511}" >"$TMP/want"
	"$PBM_PERF" script --show-bpf-events -i "$TMP/data" >"$TMP/data.script"
	sed -n "s/.*PERF_RECORD_KSYMBOL .* name \(${name:0:99}\)/\1/p" "$TMP/data.script" >"$TMP/got"
	same "name" "$TMP/want" "$TMP/got"
}

# hold_as NAME: hold the program simple with key NAME in place of version
hold_as()
{
	LC_ALL=C sed "s/bpf_metadata_version/bpf_metadata_$1/g" "$OUTPUT/simple.bpf.o" >"$TMP/odd.bpf.o"
	! cmp -s "$OUTPUT/simple.bpf.o" "$TMP/odd.bpf.o" || fail "the object has no version"
	hold_command "$OUTPUT/hold" "$TMP/odd.bpf.o"
}

# The kernel refuses BTF with such a name. libbpf goes on without BTF.
test_keys_that_the_kernel_refuses_are_not_recorded()
{
	local name

	for name in 'ver\x1bion' 'ver\x0aion' 'ver"ion' 'ver=ion'; do
		hold_as "$name"
		record "$TMP/data"
		show "$TMP/data"
		shows_no_record "$(symbol_of 0)"
		release
	done
}

# The kernel accepts the byte 0xff, because it takes it for a letter of Latin-1.
test_keys_that_are_not_utf8_are_escaped()
{
	hold_as 'ver\xffion'
	record "$TMP/data"
	entries_of "$TMP/data" >"$TMP/got"
	sort -o "$TMP/got" "$TMP/got"
	printf '%s\t%s\n' answer 42 'ver\xffion' '"1.2.3"' >"$TMP/want"
	same "entries" "$TMP/want" "$TMP/got"
	"$PBM_PERF" report --header-only -i "$TMP/data" >"$TMP/header"
	grep -q -E -e 'simple: answer=42, ver.xffion="1\.2\.3"$' "$TMP/header" || fail "the header has $(grep bpf_metadata "$TMP/header")"
	"$PBM_PERF" data convert --force --to-json "$TMP/json" -i "$TMP/data"
	python3 -c 'import json, sys; json.load(open(sys.argv[1], encoding="utf-8"))' "$TMP/json"
}

test_unprivileged_users_cannot_read_metadata()
{
	prepare_nobody
	hold simple
	if as_nobody "$BPFTOOL" prog show id "${HELD_IDS[0]}" >"$TMP/shown" 2>&1; then
		fail "bpftool shows a program to the user nobody: $(cat "$TMP/shown")"
	fi
	as_nobody "$PBM_PERF" record -N -q -o "$TMP/nobody/data" -- "${WORKLOAD[@]}"
	want_no_records "$TMP/nobody/data"
	perfdata block "$TMP/nobody/data" >"$TMP/block"
	[[ ! -s $TMP/block ]] || fail "the header has metadata: $(cat "$TMP/block")"
	# Only its owner may read perf.data, as with unpatched perf.
	record "$TMP/data"
	[[ $(stat -c %a "$TMP/data") = 600 ]] || fail "other users may read perf.data"
}

run_tests
