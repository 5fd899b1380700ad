#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Files in which something else than the metadata of BPF programs is odd: old and new events and features,
# and other errors that the patches of the series fix. lib/odd_files.py has them, with what perf prints.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test reads generated files"
BESIDE=yes

# check GROUP...: perf reads the files of these groups as the table says
check()	{ python3 -S "$SELFTESTS/lib/odd_files.py" check "$TMP/files" "$@"; }

test_odd_events_are_read()						{ check events; }
test_events_without_room_for_their_fields_are_errors()			{ check errors; }
test_metadata_of_arm_spe_is_printed_up_to_its_end()			{ check 'arm spe'; }
test_odd_features_are_read()						{ check features; }
test_streams_of_other_perfs_are_read()					{ check streams; }
test_what_a_later_perf_treats_in_another_way_is_read_or_an_error()	{ check 'refused later'; }
test_attributes_of_a_later_perf_are_read()				{ check attributes; }
test_attributes_that_only_a_later_perf_knows_are_refused()		{ check 'refused attributes'; }
test_statistics_without_counters_are_an_error()				{ check statistics; }

test_a_copy_of_kallsyms_can_begin_with_modules()
{
	cd "$TMP"
	cat >kallsyms <<-END
		ffff80007a000000 t of_module	[module]
		ffff800081000000 T _text
		ffff800081000000 T _stext
		ffff800081000100 T of_kernel
		ffff800081000200 T next_of_kernel
		ffff800081f00000 T _etext
	END
	check kallsyms
}

test_perf_stat_script_reads_what_perf_stat_records()
{
	"$PBM_PERF" stat record -o "$TMP/stat" -e task-clock,page-faults true
	"$PBM_PERF" script -i "$TMP/stat" >"$TMP/out"
	[[ $(grep -c -E ' (task-clock|page-faults)$' "$TMP/out") = 2 ]] || fail "$(cat "$TMP/out")"
}

test_perf_inject_aslr_leaves_no_address_of_a_program()
{
	local option addr='\x00\x10\x00\xc0\xff\xff\xff\xff'

	for option in --file --pipe; do
		write_file "$TMP/file" "$option" <<-'END'
			infos = file.u64(perfgen.PROG_INFO) + file.u32(2) + b"".join(file.infos)
			file.more_features = file.record(perfgen.HEADER_FEATURE, infos) if file.pipe else b""
			file.nr_samples = 0
		END
		"$PBM_PERF" inject --aslr -i "$TMP/file" -o "$TMP/injected"
		grep -q -a -P -e "$addr" "$TMP/file" || fail "$option: no address in the input"
		! grep -q -a -P -e "$addr" "$TMP/injected" || fail "$option: an address is left"
	done
}

# read_too_long STALE EVENTS OPTION: Kernels write some events too long: they add the size of a sample id for
# each session that listens. The additional space keeps STALE u64 of old bytes of the ring buffer. EVENTS are
# those of perfgen.File. $TMP/STALE.out and $TMP/STALE.injected have what perf prints and writes.
read_too_long()
{
	write_file "$TMP/file" "$3" <<-END
		from perfgen import IDENTIFIER, CPU
		file.events = [$2]
		# With the NUL, the symbol has one byte more than a multiple of 8.
		perfgen.BETA = (*perfgen.BETA[:2], "gammas", *perfgen.BETA[3:])
		file.stale = file.u64(*range(0x123456789, 0x123456789 + $1))
		file.odd = file.text_poke(perfgen.ALPHA[3], b"\\x90" * 5, b"\\xe9\\1\\2\\3\\4")
	END
	"$PBM_PERF" script --show-bpf-events --show-text-poke-events -i "$TMP/file" >"$TMP/$1.out"
	"$PBM_PERF" inject -i "$TMP/file" -o "$TMP/$1.injected"
	[[ $(grep -c -e ' cpu-clock\(:HG\)\?: ' "$TMP/$1.out") = 4 &&
		$(grep -c -e 'PERF_RECORD_\(KSYMBOL\|BPF_EVENT\|TEXT_POKE\)' "$TMP/$1.out") = 5 ]] ||
		fail "$*: samples or events are missing: $(cat "$TMP/$1.out")"
}

# perf reads such events like events of the right size. perf inject writes the right size.
test_events_that_the_kernel_wrote_too_long_are_read()
{
	local events stale option

	for events in '(1, 0)' '(101, IDENTIFIER), (102, IDENTIFIER)' \
		'(101, IDENTIFIER), (102, IDENTIFIER | CPU)' '(101, IDENTIFIER | CPU), (102, IDENTIFIER)'; do
		for option in --little --big --pipe; do
			read_too_long 0 "$events" "$option"
			for stale in 1 3 8; do
				read_too_long "$stale" "$events" "$option"
				same "$events $option: perf script" "$TMP/0.out" "$TMP/$stale.out"
				cmp "$TMP/0.injected" "$TMP/$stale.injected" ||
					fail "$events $option: perf inject writes other bytes"
			done
		done
	done
}

run_tests
