#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf inject --bpf-metadata-names: values become part of the names of functions. This works for
# files and pipes, with records or with the block, which is the metadata in the header. All readers
# of perf.data show the new names. Records are removed. Nothing else changes.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="the test rewrites files"
BUSY=$(own busy)
PERFPARSER=$(find /usr/lib -path '*libexec/hotspot-perfparser' 2>/dev/null | head -n 1)

# Most tests here share the recordings.
record_once()
{
	[[ ! -e $TMP/functions ]] || return 0
	start_recording "$TMP/both" -a -g -F 2000
	hold -o busy_v1 busy_v2 simple functions named
	spend 0 20000 1 40000
	"${WORKLOAD[@]}"
	stop_recording
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
	perfdata strip-block "$TMP/both" "$TMP/records-only"
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/both" -o "$TMP/block-only"
	record - -g -F 2000 >"$TMP/pipe"
	functions_of "$TMP/both" >"$TMP/functions.part"
	(($(wc -l <"$TMP/functions.part") >= 9)) || fail "too few functions"
	mv "$TMP/functions.part" "$TMP/functions"
}

# names FILE NEW KEYS [OPTION...]: copy FILE to NEW, with the values of KEYS in names of functions.
names()
{
	"$PBM_PERF" inject --bpf-metadata-names="$3" -i "$1" -o "$2" "${@:4}"
}

# Print ID<TAB>FUNCTION of the held programs in file $1.
functions_of()
{
	perfdata programs "$1" >"$TMP/programs"
	awk 'NR == FNR { held[$1]; next } $1 in held {
		n = split($6, names, ","); for (i = 1; i <= n; i++) print $1 "\t" names[i] }' \
		"$TMP/ids" "$TMP/programs"
}

# new_names KEYS IDS: print ID<TAB>NAME, the names that functions must get. Programs that are not in
# file IDS keep their names. The values come from the block of $TMP/both.
new_names()
{
	perfdata block "$TMP/both" >"$TMP/block"
	python3 - "$1" "$TMP/block" "$TMP/functions" "$2" <<-'END'
	import sys
	from urllib.parse import quote

	values = {}
	with open(sys.argv[2], encoding="utf-8") as block:
	    for line in block:
	        prog, _, _, key, value = line.rstrip("\n").split("\t")
	        if value[0] == '"':
	            value = value[1:-1]
	        values.setdefault(prog, {})[key] = quote(value, safe="+-._:~@")
	with open(sys.argv[4], encoding="utf-8") as decided:
	    decided = {line.split()[0] for line in decided}
	with open(sys.argv[3], encoding="utf-8") as functions:
	    for line in functions:
	        prog, name = line.rstrip("\n").split("\t")
	        for key in sys.argv[1].split(",") if prog in decided else []:
	            if key in values.get(prog, {}):
	                name += f"[{key}={values[prog][key]}]"
	        if len(name) > 511:
	            end = 511 - len("...]")
	            cut = name.find("%", end - 2, end)
	            name = name[:end if cut < 0 else cut] + "...]"
	        print(prog, name, sep="\t")
	END
}

# want_names NEW KEYS [IDS]: the KSYMBOLs of file NEW have the names that new_names prints. NEW has
# no records, because records would have the old names.
want_names()
{
	new_names "$2" "${3:-$TMP/ids}" >"$TMP/want"
	functions_of "$1" >"$TMP/got"
	same "names in $1" "$TMP/want" "$TMP/got"
	want_no_records "$1"
}

# samples_of PERF FILE: print the samples without added values, and without names of user space: a
# pipe has no names of the vdso, and in a container, another file may have the same path.
samples_of()
{
	"$1" script -i "$2" 2>"$TMP/err" |
		sed -E 's/(bpf_prog_[^][ ]*)(\[[^][ ]*\])+/\1/g; s/^(\t +[0-9a-f]+) .* \((\[vdso\]|\/.*)\)$/\1 user/'
}

same_samples()
{
	samples_of "$1" "$2" >"$TMP/want-samples"
	samples_of "$1" "$3" >"$TMP/got-samples"
	grep -q "bpf_prog_.*_$BUSY" "$TMP/want-samples" || fail "no sample in a program: $(cat "$TMP/err")"
	same "samples of $3" "$TMP/want-samples" "$TMP/got-samples"
}

test_names_of_functions_have_the_values()
{
	record_once
	names "$TMP/both" "$TMP/named" version
	want_names "$TMP/named" version
	grep -q "_$BUSY\[version=1.0\]\$" "$TMP/got" || fail "no name ends in [version=1.0]"
	same_samples "$PBM_PERF" "$TMP/both" "$TMP/named"
}

test_the_block_stays()
{
	record_once
	names "$TMP/both" "$TMP/named" version
	perfdata block "$TMP/both" >"$TMP/want"
	perfdata block "$TMP/named" >"$TMP/got"
	same "block" "$TMP/want" "$TMP/got"
}

# Since v6.5, the kernel's KSYMBOL of the main function has a different tag from perf's KSYMBOL.
test_names_of_unloaded_functions_have_the_values()
{
	local id

	hold busy_v1
	id=${HELD_IDS[0]}
	start_recording "$TMP/unloaded" -a
	release
	stop_recording
	names "$TMP/unloaded" "$TMP/named" version
	perfdata programs "$TMP/named" | awk -v id="$id" '$1 == id { print $6 }' | tr , '\n' |
		sed 's/^bpf_prog_[^_]*//' | sort >"$TMP/want"
	grep -q '_busy\[version=1.0\]$' "$TMP/want" || fail "the program is not in the recording"
	"$PBM_PERF" script --show-bpf-events -i "$TMP/named" |
		sed -n 's/.*PERF_RECORD_KSYMBOL .* flags 0x1 name bpf_prog_[^_]*//p' |
		grep -x -F -f "$TMP/want" | sort >"$TMP/got"
	same "unloaded functions" "$TMP/want" "$TMP/got"
}

test_names_in_a_pipe_have_the_values()
{
	record_once
	names "$TMP/both" - version >"$TMP/to-pipe"
	want_names "$TMP/to-pipe" version
	same_samples "$PBM_PERF" "$TMP/both" - <"$TMP/to-pipe"
}

# shellcheck disable=SC2002 # cat makes standard input a pipe
test_a_pipe_is_copied_to_a_file_in_tmpdir()
{
	record_once
	mkdir "$TMP/tmpdir"
	cat "$TMP/pipe" | TMPDIR=$TMP/tmpdir names - "$TMP/named" version
	functions_of "$TMP/named" | grep "_$(own simple)\[version=" >/dev/null || fail "no name has a value"
	[[ -z $(ls "$TMP/tmpdir") ]] || fail "files are left: $(ls "$TMP/tmpdir")"
	if cat "$TMP/pipe" | TMPDIR=$TMP/nowhere names - "$TMP/not-named" version 2>"$TMP/err"; then
		fail "perf inject does not use TMPDIR"
	fi
	grep 'standard input to a temporary file .*No such file' "$TMP/err" || fail "$(cat "$TMP/err")"
}

test_values_can_come_from_records()
{
	record_once
	# The first two programs have the same name, so records do not tell their versions.
	sed 1,2d "$TMP/ids" >"$TMP/decided"
	names "$TMP/records-only" "$TMP/named" version 2>"$TMP/err"
	want_names "$TMP/named" version "$TMP/decided"
	grep 'lost the metadata of .* BPF functions' "$TMP/err" || fail "no warning: $(cat "$TMP/err")"
}

test_values_can_come_from_the_block()
{
	record_once
	names "$TMP/block-only" "$TMP/block-only-named" version
	want_names "$TMP/block-only-named" version
	want_no_records "$TMP/block-only-named"
}

test_names_and_modes_can_be_combined()
{
	record_once
	names "$TMP/both" "$TMP/block-only-named" version --bpf-metadata=header
	want_names "$TMP/block-only-named" version
	want_no_records "$TMP/block-only-named"
	perfdata block "$TMP/both" >"$TMP/want"
	perfdata block "$TMP/block-only-named" >"$TMP/got"
	same "block" "$TMP/want" "$TMP/got"

	names "$TMP/records-only" "$TMP/block-only-named" version --bpf-metadata=none
	functions_of "$TMP/block-only-named" | grep "_$(own simple)\[version=" || fail "mode none drops the values"
	[[ -z $(perfdata block "$TMP/block-only-named") ]] || fail "mode none keeps the block"
	want_no_records "$TMP/block-only-named"
}

# Standard input is not at its start, for example, if a script has used "read" on it.
test_standard_input_that_is_not_at_its_start()
{
	record_once
	names - - version <"$TMP/pipe" >"$TMP/want"
	{
		head -c 5000 /dev/zero
		cat "$TMP/pipe"
	} >"$TMP/later"
	{
		dd bs=5000 count=1 of=/dev/null status=none
		names - - version
	} <"$TMP/later" >"$TMP/got"
	cmp "$TMP/want" "$TMP/got" || fail "the output depends on the start"
}

# generate: write $TMP/file. Standard input is Python code that changes "file".
generate()
{
	{
		echo 'import sys, perfgen'
		echo 'file = perfgen.File()'
		cat
		echo 'file.write(sys.argv[1])'
	} >"$TMP/change.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/change.py" "$TMP/file"
}

# Print FLAGS<TAB>NAME of each KSYMBOL in file $1.
ksymbols_of()
{
	"$PBM_PERF" script --show-bpf-events -i "$1" 2>"$TMP/err" |
		sed -n 's/.*PERF_RECORD_KSYMBOL .* flags \(0x[01]\) name \(.*\)/\1\t\2/p'
}

# gamma gets the address of alpha after alpha is unloaded. The BPF_EVENT of gamma was lost.
test_a_program_at_a_reused_address_has_its_own_name()
{
	generate <<-'END'
		gamma = perfgen.GAMMA[:3] + (perfgen.ALPHA[3],)
		file.time = 2000                # after all other events
		file.odd = file.ksymbol(perfgen.ALPHA, flags=1) + file.ksymbol(gamma) + file.ksymbol(gamma, flags=1)
		file.time = 1000
	END
	names "$TMP/file" "$TMP/named" version
	printf '%s\t%s\n' 0x0 'bpf_prog_0011223344556677_alpha[version=1.2.3]' \
		0x0 'bpf_prog_8899aabbccddeeff_beta[version=2.0]' \
		0x1 'bpf_prog_0011223344556677_alpha[version=1.2.3]' \
		0x0 bpf_prog_0123456789abcdef_gamma 0x1 bpf_prog_0123456789abcdef_gamma >"$TMP/want"
	ksymbols_of "$TMP/named" >"$TMP/got"
	same "names" "$TMP/want" "$TMP/got"
}

# In each of the three rounds, the limit is at another byte of an encoded character.
test_a_long_value_is_cut_between_characters()
{
	local before name

	for before in '' x xx; do
		generate <<-END
			file.block = file.make_block([([(b"version", b'"$before' + 200 * b'%' + b'"')], [7])])
			file.with_records = False
		END
		names "$TMP/file" "$TMP/named" version
		ksymbols_of "$TMP/named" | sed -n 's/.*\(bpf_prog_.*_alpha\)/\1/p' >"$TMP/got"
		name="bpf_prog_0011223344556677_alpha[version=$before"
		while ((${#name} + 3 <= 511 - 4)); do
			name+=%25
		done
		echo "$name...]" >"$TMP/want"
		same "name with '$before'" "$TMP/want" "$TMP/got"
	done
}

test_a_second_run_replaces_the_values_of_the_first()
{
	record_once
	names "$TMP/both" "$TMP/first" owner,number,odd
	names "$TMP/first" "$TMP/second" version
	want_names "$TMP/second" version
	names "$TMP/both" "$TMP/once" version
	functions_of "$TMP/once" >"$TMP/want"
	functions_of "$TMP/second" >"$TMP/got"
	same "names of functions" "$TMP/want" "$TMP/got"
	names "$TMP/second" "$TMP/third" owner
	want_names "$TMP/third" owner
}

test_values_are_encoded_in_names()
{
	local key

	record_once
	for key in array empty long number odd percents odd,version; do
		names "$TMP/both" "$TMP/named" "$key"
		want_names "$TMP/named" "$key"
		grep "_$(own named)\[${key%%,*}=" "$TMP/got" >"$TMP/named-got" || fail "no name has $key"
		! grep -P '\t.{512}' "$TMP/named-got" || fail "a name with $key is too long"
		! grep -P '\t.*[^][\w%=+.:~@-]' "$TMP/named-got" || fail "bad byte in a name of $key"
	done
}

test_unknown_keys_leave_names()
{
	record_once
	names "$TMP/both" "$TMP/named" nope
	want_names "$TMP/named" nope
}

test_impossible_combinations_are_refused()
{
	record_once
	if "$PBM_PERF" inject --bpf-metadata-names=version --vm-time-correlation=dry-run \
		-i "$TMP/both" 2>"$TMP/err"; then
		fail "perf inject accepts an update in place"
	fi
	grep -q "^--bpf-metadata-names can't be combined with" "$TMP/err" || fail "$(cat "$TMP/err")"
}

test_perf_warns_of_compressed_events()
{
	"$PBM_PERF" check -q feature zstd || skip "this perf is built without zstd"
	start_recording "$TMP/compressed" -a -z
	hold busy_v1
	stop_recording
	names "$TMP/compressed" "$TMP/named" version 2>"$TMP/err"
	grep -q '^WARNING: .* are compressed' "$TMP/err" || fail "no warning: $(cat "$TMP/err")"
}

test_unpatched_perf_shows_the_values()
{
	[[ -n ${PBM_UNPATCHED_PERF:-} ]] || skip "PBM_UNPATCHED_PERF is not set"
	record_once
	names "$TMP/both" "$TMP/block-only-named" version --bpf-metadata=header
	same_samples "$PBM_UNPATCHED_PERF" "$TMP/block-only" "$TMP/block-only-named"
	"$PBM_UNPATCHED_PERF" script -F ip,sym -i "$TMP/block-only-named" |
		grep -o "_$BUSY\[.*\]" | sort -u >"$TMP/got" || fail "no name has a value"
	printf '%s\n' "_${BUSY}[version=1.0]" "_${BUSY}[version=2.0]" >"$TMP/want"
	same "names" "$TMP/want" "$TMP/got"
}

# The input of flame graphs: one line for each stack, with ";" between functions
test_stackcollapse_shows_the_values()
{
	local file

	"$PBM_PERF" check -q feature libpython || skip "this perf is built without libpython"
	record_once
	names "$TMP/both" "$TMP/named" version,odd
	for file in both named; do
		PERF_EXEC_PATH=$OUTPUT "$PBM_PERF" script -s "$OUTPUT/scripts/python/stackcollapse.py" \
			-i "$TMP/$file" >"$TMP/$file.stacks"
	done
	grep -q "_$BUSY\[version=1.0\][^;]* [0-9]*\$" "$TMP/named.stacks" || fail "no version 1.0"
	# Compare only stacks with the program: others may have functions of files in containers.
	grep "_$BUSY" "$TMP/named.stacks" | sed -E 's/(bpf_prog_[^][ ;]*)(\[[^][ ;]*\])+/\1/g' | sum_stacks >"$TMP/got"
	grep "_$BUSY" "$TMP/both.stacks" | sum_stacks >"$TMP/want"
	same "stacks" "$TMP/want" "$TMP/got"
}

sum_stacks()
{
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n } END { for (s in sum) print s, sum[s] }' | sort
}

test_annotate_finds_the_program()
{
	record_once
	names "$TMP/both" "$TMP/named" version
	sed -n "s/^[0-9]*\t\(.*_$BUSY\)\$/\1/p;T;q" "$TMP/functions" >"$TMP/symbol"
	"$PBM_PERF" annotate --stdio -i "$TMP/both" "$(cat "$TMP/symbol")" >"$TMP/plain" 2>&1 || :
	! grep -q 'Please link with' "$TMP/plain" || skip "this perf can't disassemble BPF programs"
	new_names version "$TMP/ids" | sed -n "s/^[0-9]*\t\(.*_$BUSY\[version=1.0\]\)\$/\1/p" >"$TMP/symbol"
	"$PBM_PERF" annotate --stdio -i "$TMP/named" "$(cat "$TMP/symbol")" >"$TMP/out" 2>"$TMP/err"
	grep -q -E '^ +[0-9]+[.][0-9]+ .*: +[0-9a-f]+: ' "$TMP/out" || fail "no code: $(head "$TMP/out" "$TMP/err")"
}

# Print a kallsyms with the names of the BPF functions in file $1, for readers of a kallsyms file.
kallsyms_of()
{
	grep -v '\[bpf\]$' /proc/kallsyms
	"$PBM_PERF" script --show-bpf-events -i "$1" |
		sed -n 's/.*PERF_RECORD_KSYMBOL addr \([0-9a-f]*\) len [0-9]* type 1 flags 0x0 name \(.*\)/\1 t \2\t[bpf]/p' |
		sort -u
}

# Print the messages that hotspot-perfparser wrote to file $1, without added values. Messages of the
# command and of progress are left out. The first byte of a message is its kind; 5 is a string.
without_values()
{
	python3 - "$1" <<-'END'
	import re
	import struct
	import sys

	with open(sys.argv[1], "rb") as file:
	    data = file.read()
	pos = data.index(b"\0") + 5
	while pos < len(data):
	    (size,) = struct.unpack_from("<I", data, pos)
	    message = data[pos + 4:pos + 4 + size]
	    pos += 4 + size
	    if message[0] == 5:
	        text = re.sub(rb"^(bpf_prog_\w*)\[.*\]$", rb"\1", message[9:])
	        print("string", message[1:5].hex(), text)
	    elif message[0] not in (7, 9):
	        print(message.hex())
	END
}

# hotspot takes kernel symbols from a kallsyms, and numbers all strings. The numbers stay the same
# only if all functions of one name get the same value. So the test adds owner, and not version.
test_hotspot_shows_the_values()
{
	local file

	[[ -n $PERFPARSER ]] || { all_only; skip "hotspot is not installed"; }
	record_once
	names "$TMP/both" "$TMP/block-only-named" owner --bpf-metadata=header
	for file in block-only block-only-named; do
		kallsyms_of "$TMP/$file" >"$TMP/kallsyms"
		cp "$TMP/$file" "$TMP/perf.data"
		QT_HASH_SEED=0 "$PERFPARSER" --input "$TMP/perf.data" --kallsyms "$TMP/kallsyms" \
			--output "$TMP/$file.b2qt" 2>"$TMP/err"
		without_values "$TMP/$file.b2qt" >"$TMP/$file.out"
	done
	grep -a -q "_$BUSY\[owner=tests\]" "$TMP/block-only-named.b2qt" || fail "no name has owner"
	same "messages of hotspot-perfparser" "$TMP/block-only.out" "$TMP/block-only-named.out"
}

run_tests
