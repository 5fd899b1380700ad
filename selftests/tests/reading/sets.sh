#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Which set belongs to which program, in files of any writer: with records, with the block in the
# header, from a pipe. perf report prints (unknown) and (ambiguous) where it must.

. "$(dirname "$0")/../../lib/report-lib.sh"

# want_rows FILE...: each file in $TMP has the rows of want-prog and want-set.
want_rows()
{
	local file

	for file; do
		rows -s bpf_prog -F period,bpf_prog -i "$TMP/$file" >"$TMP/got"
		same "programs in $file" "$TMP/want-prog" "$TMP/got"
		rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/$file" >"$TMP/got"
		same "sets in $file" "$TMP/want-set" "$TMP/got"
	done
}

# The rows of the held programs, by program and set. Other programs may have equal names, and
# records do not tell these apart.
held_rows()
{
	rows -s bpf_prog,bpf_metadata -F period,bpf_prog,bpf_metadata -i "$1" |
		awk -v held=" ${HELD_IDS[*]} " 'index(held, " " $1 " ")'
}

# Only rows with sets that no other program of the machine has
rows_of_tests()
{
	grep '^owner="tests", '
}

# With records, with the block, with both, and a pipe
test_files_of_any_writer_read_the_same()
{
	hold -o busy_v2 lazy plain
	spend 0 20000 1 40000 2 20000
	record "$TMP/both"
	record - >"$TMP/writer-pipe"
	perfdata strip "$TMP/both" "$TMP/writer-block"
	perfdata strip-block "$TMP/both" "$TMP/writer-records"
	costs_by_program "$TMP/both" >"$TMP/want-prog"
	costs_by_set "$TMP/both" >"$TMP/want-set"
	(($(grep -c -e '^(none)' -e '^owner="tests", ' "$TMP/want-set") == 3)) || fail "a program has no sample"
	want_rows both writer-block
	# Nothing in the file says that the writer looked at a program without records.
	held_rows "$TMP/both" | sed 's/|(none)/|(unknown)/' >"$TMP/want"
	(($(wc -l <"$TMP/want") == 3)) || fail "a program has no row"
	held_rows "$TMP/writer-records" >"$TMP/got"
	same "rows of records" "$TMP/want" "$TMP/got"

	# The pipe is a second recording of the same programs. The test does not know the sets of
	# other programs that run only then.
	costs_by_program "$TMP/writer-pipe" >"$TMP/want"
	rows -s bpf_prog -F period,bpf_prog -i - <"$TMP/writer-pipe" >"$TMP/got"
	same "programs in a pipe" "$TMP/want" "$TMP/got"
	costs_by_set "$TMP/both" "" "$TMP/writer-pipe" | rows_of_tests >"$TMP/want"
	(($(wc -l <"$TMP/want") == 2)) || fail "not two versions in the pipe: $(cat "$TMP/want")"
	rows -s bpf_metadata -F period,bpf_metadata -i - <"$TMP/writer-pipe" | rows_of_tests >"$TMP/got"
	same "sets in a pipe" "$TMP/want" "$TMP/got"
}

# Four programs have the same name, and three of them have sets. Names in records do not tell which
# set is whose. Ids in the block do.
test_what_records_do_not_tell_is_ambiguous()
{
	native_only "it reads the file of another test"
	record_once
	rows -s bpf_prog -F period,bpf_prog -i "$TMP/records-only" >"$TMP/got"
	same "programs without the block" "$TMP/costs" "$TMP/got"
	sed 's/^[0-9]* busy\t/(ambiguous)\t/; s/^[0-9].*\t/(unknown)\t/' "$TMP/costs" | sum_up >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/records-only" >"$TMP/got"
	same "sets without the block" "$TMP/want" "$TMP/got"
	costs_by_set "$TMP/all" >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/block-only" >"$TMP/got"
	same "sets of the block" "$TMP/want" "$TMP/got"
	rows -s bpf_metadata -F period,bpf_metadata -i - <"$TMP/pipe" >"$TMP/got"
	costs_by_set "$TMP/all" '' "$TMP/pipe" >"$TMP/want"
	same "sets of the pipe" "$TMP/want" "$TMP/got"
}

# Two programs of one name and one set: the set may belong to either. As many equal sets as programs
# are enough to decide.
test_names_decide_only_what_they_can()
{
	made_up <<-'END'
		# Two programs of one name, and a set.
		twin = (9, *perfgen.ALPHA[1:3], perfgen.BETA[3], [])
		perfgen.BETA = twin
		file.infos = [file.prog_info(perfgen.ALPHA), file.prog_info(twin)]
		file.block = b""
		file.with_records = False
		file.odd = file.metadata(perfgen.ALPHA)
	END
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	printf '(ambiguous)\t4\n' >"$TMP/want"
	same "one set for two programs" "$TMP/want" "$TMP/got"
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/made-up" -o "$TMP/made-up.header" 2>"$TMP/messages"
	grep -q 'WARNING: lost the metadata of 1 BPF' "$TMP/messages" || fail "no warning"
	[[ -z $(perfdata pieces "$TMP/made-up.header") ]] || fail "perf inject stores what it guessed"
	"$PBM_PERF" data convert --force --to-json "$TMP/made-up.json" -i "$TMP/made-up"
	[[ $(grep -c '"metadata": null' "$TMP/made-up.json") = 2 ]] || fail "JSON does not say so"

	# There may be more programs in compressed events, which perf inject does not read.
	sed 's/^file.write/file.odd += file.record(81, bytes(8))\n&/; s/^perfgen.BETA =.*//' "$TMP/made-up.py" \
		>"$TMP/compressed.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/compressed.py" "$TMP/compressed"
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/compressed" -o "$TMP/compressed.header" 2>"$TMP/messages"
	grep -q 'WARNING: lost the metadata of [12] BPF .* without the compressed events' "$TMP/messages" || fail "no warning"
	[[ -z $(perfdata pieces "$TMP/compressed.header") ]] || fail "perf inject stores what it guessed"

	sed -i 's/file.odd = .*/& * 2/' "$TMP/made-up.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/made-up.py" "$TMP/made-up"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	printf 'answer=42, version="1.2.3"\t4\n' >"$TMP/want"
	same "two equal sets for two programs" "$TMP/want" "$TMP/got"
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/made-up" -o "$TMP/made-up.header" 2>"$TMP/messages"
	if grep 'WARNING: lost' "$TMP/messages"; then
		fail "nothing is lost"
	fi
}

# perf record writes the first set of a program, and writes it again if it has grown.
test_the_last_set_of_a_program_counts()
{
	made_up <<-'END'
		file.block = b""
		file.first = file.metadata(perfgen.ALPHA, perfgen.ALPHA[4][:1])
	END
	printf '%s\t2\n' 'answer=42, version="1.2.3"' 'version="2.0"' >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "sets of records" "$TMP/want" "$TMP/got"

	# The last set needs more than one record.
	made_up <<-'END'
		file.block = b""
		file.first = file.metadata(perfgen.ALPHA)
		more = perfgen.ALPHA[4] + [(b"k%d" % i, b"%d" % i) for i in range(298)]
		file.odd = file.metadata(perfgen.ALPHA, more[:203]) + file.metadata(perfgen.ALPHA, more[203:])
		file.with_records = False
	END
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/made-up" -o "$TMP/made-up.header"
	[[ $(perfdata block "$TMP/made-up.header" | wc -l) = 300 ]] || fail "not all of the last set"
}

# The other set belongs to a program whose events may be lost. A record with other keys does not
# continue the record before it if that had room.
test_a_set_that_does_not_grow_is_another_programs()
{
	local entry

	printf '%s\t2\n' '(ambiguous)' 'version="2.0"' >"$TMP/want"
	for entry in "b'version', b'\"0.9\"'" "b'owner', b'\"net\"'"; do
		made_up <<-END
			file.block = b""
			file.first = file.metadata(perfgen.ALPHA, [($entry)])
		END
		rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
		same "sets of records, $entry" "$TMP/want" "$TMP/got"
	done
}

# perf record writes the events of the program when it starts, and the kernel writes them again.
test_a_program_that_is_told_twice_counts_once()
{
	made_up <<-'END'
		file.block = b""
		file.odd = file.ksymbol(perfgen.ALPHA) + file.bpf_event(perfgen.ALPHA)
	END
	printf '%s\t2\n' 'answer=42, version="1.2.3"' 'version="2.0"' >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "sets of records" "$TMP/want" "$TMP/got"
}

# The set may belong to a program whose BPF_EVENT was lost. Its KSYMBOL is before those of another
# program that loads, or after all others.
test_names_of_lost_programs_decide_nothing()
{
	local where

	printf '%s\t2\n' '(ambiguous)' 'answer=42, version="1.2.3"' >"$TMP/want"
	for where in first odd; do
		made_up <<-END
			file.block = b""
			file.$where = file.ksymbol((11, *perfgen.BETA[1:3], perfgen.BETA[3] + 4096, []))
		END
		rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
		same "sets with a lost program, $where" "$TMP/want" "$TMP/got"
	done
}

# An interpreted program has the address of a kernel function.
test_a_program_without_an_image_is_not_the_kernel()
{
	made_up <<-'END'
		text = b"[kernel.kallsyms]_text\0\0"
		addr = 0xffffffff81000000
		file.first = file.record(1, file.u32(0xffffffff, 0) + file.u64(addr, 1 << 24, addr) +
		                         text + file.sample_id(), perfgen.KERNEL)
		file.first += file.sample(addr + 16)
		inter = (11, "0123456789abcdef", "gamma", addr + 4096, [])
		file.infos.append(file.prog_info(inter))
		file.nr_infos = 3
		file.odd = file.bpf_event(inter) + file.sample(addr + 32)
	END
	rows -s bpf_prog -F period,bpf_prog -i "$TMP/made-up" >"$TMP/got"
	printf '%s\t2\n' '7 alpha' '9 beta' N/A >"$TMP/want"
	same "cost by program" "$TMP/want" "$TMP/got"
}

# "Nobody looked" is not the same as "no metadata".
test_what_nobody_looked_for_is_unknown()
{
	local file

	hold busy_v1 plain
	spend 0 20000 1 20000
	record "$TMP/unread" --bpf-metadata=none
	record - --bpf-metadata=none >"$TMP/unread-pipe"
	for file in unread unread-pipe; do
		rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/$file" >"$TMP/got"
		awk -F '\t' '$1 != "N/A" { print $1 }' "$TMP/got" >"$TMP/names"
		echo '(unknown)' >"$TMP/want"
		same "sets of $file" "$TMP/want" "$TMP/names"
	done
}

test_files_of_a_peer()
{
	peer_perf
	hold busy_v2 lazy
	spend 0 20000 1 40000
	"$PBM_PEER_PERF" record -N -q -a -e cpu-clock -o "$TMP/peer" -- "${WORKLOAD[@]}"
	perfdata types "$TMP/peer" >"$TMP/types"
	grep -q -x 84 "$TMP/types" || skip "$PBM_PEER_PERF writes no records"
	record "$TMP/ours" --bpf-metadata=header
	costs_by_program "$TMP/peer" >"$TMP/want"
	rows -s bpf_prog -F period,bpf_prog -i "$TMP/peer" >"$TMP/got"
	same "programs" "$TMP/want" "$TMP/got"
	costs_by_set "$TMP/ours" "" "$TMP/peer" | sed 's/^(none)/(unknown)/' | sum_up |
		rows_of_tests >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/peer" | rows_of_tests >"$TMP/got"
	same "sets" "$TMP/want" "$TMP/got"
}

# The programs have the same name and tag, different ids, and maybe the same address.
test_reloaded_programs_are_told_apart()
{
	start_recording "$TMP/reloaded" -a -F 4000
	hold busy_v1
	spend 0 20000
	"${WORKLOAD[@]}"
	release
	hold busy_v2
	spend 0 40000
	"${WORKLOAD[@]}"
	stop_recording
	costs_by_program "$TMP/reloaded" >"$TMP/want-prog"
	costs_by_set "$TMP/reloaded" >"$TMP/want-set"
	grep -q 'version="1.0"' "$TMP/want-set"
	grep -q 'version="2.0"' "$TMP/want-set"
	perfdata strip "$TMP/reloaded" "$TMP/reloaded-block"
	perfdata strip-block "$TMP/reloaded" "$TMP/reloaded-records"
	want_rows reloaded reloaded-block
	want_script_costs "$TMP/reloaded"
	# The records have two programs of the same name.
	sed 's/^owner="tests", version="[12].0"/(ambiguous)/; s/^(none)/(unknown)/' "$TMP/want-set" |
		sum_up >"$TMP/want-records"
	mv "$TMP/want-records" "$TMP/want-set"
	want_rows reloaded-records
}

run_tests
