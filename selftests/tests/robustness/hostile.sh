#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A user who may load BPF programs cannot make perf record fail, hang or grow. Other users cannot
# read the metadata. bpf-event.c has the limits.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/nobody.sh"

entries_of()
{
	show "$1"
	values entries "$1.script" "$(symbol_of 0)"
}

test_odd_types_are_recorded_but_no_large_values()
{
	local nested='{0,}' i key

	hold hostile
	"$PBM_PERF" record -v -N -a -e cpu-clock "${FREQUENCY[@]}" -o "$TMP/data" -- "${WORKLOAD[@]}" 2>"$TMP/messages"
	for ((i = 0; i < 20; i++)); do
		nested="{$nested,}"
	done
	printf '%s\t%s\n' a_first '"kept"' b_no_elements '{6,[],}' c_forward 0x7 \
		d_cycle '{(nil),8,}' e_nested "$nested" f_long ... g_work ... h_enum ... i_last '"kept"' \
		i_number 1 j_union ... >"$TMP/want"
	entries_of "$TMP/data" >"$TMP/got"
	same "entries" "$TMP/want" "$TMP/got"
	for key in f_long g_work h_enum j_union; do
		grep -q -x -F -e "BPF metadata: no value of $key: Argument list too long" "$TMP/messages" ||
			fail "perf record -v doesn't tell about $key: $(grep metadata "$TMP/messages")"
	done
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

# The kernel accepts the byte 0xff in a key, because it takes it for a letter of Latin-1.
test_keys_that_are_not_utf8_are_escaped()
{
	LC_ALL=C sed "s/bpf_metadata_version/bpf_metadata_ver\xffion/g" "$OUTPUT/simple.bpf.o" >"$TMP/odd.bpf.o"
	hold_command "$OUTPUT/hold" "$TMP/odd.bpf.o"
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

# The kernel does not show programs to them.
test_unprivileged_users_cannot_read_metadata()
{
	prepare_nobody
	hold simple
	as_nobody "$PBM_PERF" record -N -q -o "$TMP/nobody/data" -- "${WORKLOAD[@]}"
	want_no_records "$TMP/nobody/data"
	perfdata block "$TMP/nobody/data" >"$TMP/block"
	[[ ! -s $TMP/block ]] || fail "the header has metadata: $(cat "$TMP/block")"
}

run_tests
