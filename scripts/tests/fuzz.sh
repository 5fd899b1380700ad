#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of fuzz.sh: how it shares a directory with apply-and-build.sh --sanitize.

. "$(dirname "$0")/fixtures.sh"

# A make that hangs when it builds the fuzzer, after it has linked one as "perf"
make_fuzz_stub()
{
	mkdir "$TMP/t/bin"
	cat > "$TMP/t/bin/make" <<-END
	#!/bin/bash
	[[ \$* != *selftests/fuzz/Makefile* ]] ||
		{ echo fuzzer > "$OUT/build/perf"; echo \$\$ > "$TMP/hanging"; exec sleep 60; }
	exec "$TMP/stubs/make" "\$@"
	END
	chmod +x "$TMP/t/bin/make"
}

start_fuzz()
{
	local tries=0

	make_fuzz_stub
	set -m
	call_script fuzz v0.1 > "$TMP/t/hanging.log" 2>&1 &
	HANGING=$!
	set +m
	until [[ -s $TMP/hanging ]]; do
		sleep 0.1
		((++tries < 200)) || fail "the fuzzer was never built: $(< "$TMP/t/hanging.log")"
	done
}

test_fuzz_build_excludes_another_build()
{
	start_fuzz
	write_patch core/b.patch b.c 3 'b three'
	waits_for_hanging apply-and-build --sanitize v0.1
}

test_fuzzer_cut_off_is_not_taken_for_perf()
{
	start_fuzz
	kill -9 -- "-$HANGING"
	kill -9 "$(< "$TMP/hanging")" || echo "make ended with the script"
	wait
	rm "$OUT/.state/built"
	expect 0 apply-and-build --sanitize v0.1
	[[ $(tail -n 1 <<< "$PRINTED") = "perf version 0.1" ]] || fail "the fuzzer is the perf"
}

run_tests
