#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Maps of perf's BPF programs and of the tests': "bpftool map dump" prints fields.

. "$(dirname "$0")/../../lib/test-lib.sh"

# perf lock sets the size of their elements when it runs (--max-stack), and the kernel
# takes no types of another size.
SIZED_AT_RUN_TIME='owner_stacks|stack_buf'

# Fails with a list of the maps of these objects that are printed as bytes, although the
# kernel would take types for them.
check_maps()
{
	local i name type key_size value_size how

	hold_command "$OUTPUT/hold" -m "$@"
	for i in "${!HELD_IDS[@]}"; do
		printf '%s %s\n' "${HELD_IDS[$i]}" "${HELD_NAMES[$i]}"
	done >"$TMP/maps"
	python3 "$SELFTESTS/lib/typed_maps.py" "$BPFTOOL" <"$TMP/maps" >"$TMP/shown"
	: >"$TMP/bytes"
	while read -r name type key_size value_size how; do
		[[ $how = bytes ]] || continue
		if [[ $("$OUTPUT/handmade_btf" takes-types "$type" "$key_size" "$value_size") = no ]]; then
			echo "$name: the kernel takes no types for $type"
		elif [[ ! $name =~ ^($SIZED_AT_RUN_TIME)$ ]]; then
			echo "$name ($type)" >>"$TMP/bytes"
		fi
	done <"$TMP/shown"
	echo "$(grep -c fields "$TMP/shown") of $(wc -l <"$TMP/shown") maps are printed as fields"
	[[ ! -s $TMP/bytes ]] || fail "printed as bytes: $(paste -s -d ' ' "$TMP/bytes")"
}

test_maps_of_perf()
{
	local objects=("$OUTPUT"/skeletons/*.bpf.o)

	[[ -e ${objects[0]} ]] || skip "this perf was built without BPF skeletons"
	check_maps "${objects[@]}"
	((${#HELD_IDS[@]} > 50)) || fail "only ${#HELD_IDS[@]} maps"
}

test_maps_of_the_tests()
{
	check_maps "$OUTPUT"/*.bpf.o
	grep -q -x 'counts hash 16 24 fields' "$TMP/shown" || fail "the profiler's counts are missing"
}

test_kernel_takes_types_for_some_maps_only()
{
	[[ $("$OUTPUT/handmade_btf" takes-types hash 8 8) = yes ]] || fail "no types for a hash"
	[[ $("$OUTPUT/handmade_btf" takes-types percpu_array 4 16) = yes ]] || fail "no types for a percpu_array"
	[[ $("$OUTPUT/handmade_btf" takes-types stack_trace 4 8) = no ]] || fail "types for a stack_trace"
}

run_tests
