#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf inject --bpf-metadata-names: values become part of the names of functions. They come from the
# block of a file, which is the metadata in the header. All readers of perf.data show the new names.
# Nothing else changes.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"

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

# new_names KEYS: print ID<TAB>NAME, the names that functions must get. The values come from the
# block of $TMP/both.
new_names()
{
	perfdata block "$TMP/both" >"$TMP/block"
	python3 - "$1" "$TMP/block" "$TMP/functions" <<-'END'
	import sys
	from urllib.parse import quote

	values = {}
	with open(sys.argv[2], encoding="utf-8") as block:
	    for line in block:
	        prog, _, _, key, value = line.rstrip("\n").split("\t")
	        if value[0] == '"':
	            value = value[1:-1]
	        values.setdefault(prog, {})[key] = quote(value, safe="+-._:~@")
	with open(sys.argv[3], encoding="utf-8") as functions:
	    for line in functions:
	        prog, name = line.rstrip("\n").split("\t")
	        for key in sys.argv[1].split(","):
	            if key in values.get(prog, {}):
	                name += f"[{key}={values[prog][key]}]"
	        if len(name) > 511:
	            end = 511 - len("...]")
	            cut = name.find("%", end - 2, end)
	            name = name[:end if cut < 0 else cut] + "...]"
	        print(prog, name, sep="\t")
	END
}

# want_names NEW KEYS: the KSYMBOLs of file NEW have the names that new_names prints.
want_names()
{
	new_names "$2" >"$TMP/want"
	functions_of "$1" >"$TMP/got"
	same "names in $1" "$TMP/want" "$TMP/got"
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

# summary_of FILE: print what perf shows of programs and their metadata.
summary_of()
{
	"$PBM_PERF" report --header-only -i "$1" | grep '^# bpf_metadata '
	"$PBM_PERF" report --stdio -g none -s bpf_prog,bpf_metadata -i "$1" | grep -v '^#'
	"$PBM_PERF" script -F bpf_prog,bpf_metadata -i "$1"
	rm -f "$TMP/json"
	"$PBM_PERF" data convert --to-json "$TMP/json" -i "$1" >&2
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["bpf-metadata"])' "$TMP/json"
}

test_programs_keep_their_own_names()
{
	record_once
	names "$TMP/both" "$TMP/named" version
	summary_of "$TMP/both" >"$TMP/want"
	summary_of "$TMP/named" >"$TMP/got"
	grep -q "'$BUSY'" "$TMP/want" || fail "no $BUSY in JSON"
	same "programs" "$TMP/want" "$TMP/got"
	"$PBM_PERF" diff -s bpf_prog "$TMP/both" "$TMP/named" >"$TMP/got"
	grep -q -E "^ +[0-9.]+% +\+0.00% +$BUSY" "$TMP/got" || fail "perf diff compares other names: $(cat "$TMP/got")"
}

test_the_block_and_records_stay()
{
	record_once
	names "$TMP/both" "$TMP/named" version
	perfdata block "$TMP/both" >"$TMP/want"
	perfdata block "$TMP/named" >"$TMP/got"
	same "block" "$TMP/want" "$TMP/got"
	perfdata types "$TMP/both" | grep -c -x 84 >"$TMP/want"
	perfdata types "$TMP/named" | grep -c -x 84 >"$TMP/got"
	same "number of records" "$TMP/want" "$TMP/got"
}

test_names_in_a_pipe_have_the_values()
{
	record_once
	names "$TMP/both" - version >"$TMP/to-pipe"
	want_names "$TMP/to-pipe" version
	same_samples "$PBM_PERF" "$TMP/both" - <"$TMP/to-pipe"
}

test_a_pipe_is_refused_as_input()
{
	record_once
	"$PBM_PERF" inject -i "$TMP/both" -o - >"$TMP/pipe"
	if names - "$TMP/named" version <"$TMP/pipe" 2>"$TMP/err"; then
		fail "perf inject reads a pipe"
	fi
	grep "can't read a pipe. Record to a file." "$TMP/err" || fail "$(cat "$TMP/err")"
}

test_without_metadata_in_the_header_names_stay()
{
	record_once
	names "$TMP/records-only" "$TMP/named" version 2>"$TMP/err"
	functions_of "$TMP/named" >"$TMP/got"
	same "names" "$TMP/functions" "$TMP/got"
	grep 'no names are changed, .*--bpf-metadata=header' "$TMP/err" || fail "no warning: $(cat "$TMP/err")"
}

test_values_come_from_the_block()
{
	record_once
	names "$TMP/block-only" "$TMP/block-only-named" version
	want_names "$TMP/block-only-named" version
	want_no_records "$TMP/block-only-named"
	names "$TMP/both" "$TMP/block-only-named" version --bpf-metadata=header
	want_names "$TMP/block-only-named" version
	want_no_records "$TMP/block-only-named"
}

# Whoever removes the metadata must not find its values in the file.
test_removed_metadata_is_not_in_names()
{
	local output

	record_once
	names "$TMP/both" "$TMP/named" version,owner
	grep -q -a 'version=' "$TMP/named" || fail "no name has a version"
	for output in "$TMP/out" -; do
		"$PBM_PERF" inject --bpf-metadata=none -i "$TMP/named" -o "$output" >"$TMP/stdout"
		[[ $output != - ]] || mv "$TMP/stdout" "$TMP/out"
		if grep -a -o -E '.{9}(version|owner)=.{9}' "$TMP/out"; then
			fail "the output still has values"
		fi
		! grep -a -q -P 'divide\0version' "$TMP/out" || fail "a piece of a value follows a name"
		functions_of "$TMP/out" >"$TMP/got"
		same "names in $output" "$TMP/functions" "$TMP/got"
	done
	"$PBM_PERF" inject --bpf-metadata=none -i "$TMP/named" -o - | "$PBM_PERF" inject -b -o "$TMP/out"
	! grep -a -q version= "$TMP/out" || fail "the file of a pipe has values"
}

# Print FLAGS<TAB>NAME of each KSYMBOL in file $1.
ksymbols_of()
{
	"$PBM_PERF" script --show-bpf-events -i "$1" 2>"$TMP/err" |
		sed -n 's/.*PERF_RECORD_KSYMBOL .* flags \(0x[01]\) name \(.*\)/\1\t\2/p'
}

# Builds of one program have the same tag, and a later one can have the address of an earlier one.
test_programs_at_one_address_have_their_own_names()
{
	local alpha=bpf_prog_0011223344556677_alpha

	write_file "$TMP/file" <<-'END'
		def build(prog_id, version=None):
		    prog = (prog_id, *perfgen.ALPHA[1:4])
		    if version:
		        file.infos.append(file.prog_info(prog))
		        file.nr_infos += 1
		        sets.append(([(b"version", version)], [prog_id]))
		    return file.ksymbol(prog) + file.bpf_event(prog)
		sets = [([(b"version", b'"1.2.3"')], [7]), ([(b"version", b'"2.0"')], [9])]
		file.time = 2000                # after all other events
		unload = file.ksymbol(perfgen.ALPHA, flags=1)
		file.odd = unload + build(11, b'"3.0"')
		# The bpf_prog_info of the next one is missing.
		file.odd += file.ksymbol(perfgen.ALPHA, flags=1) + build(12)
		# The PERF_RECORD_BPF_EVENT of the next two was lost.
		file.odd += file.ksymbol(perfgen.ALPHA, flags=1) + file.ksymbol(perfgen.ALPHA)
		file.odd += file.ksymbol((*perfgen.GAMMA[:3], 0xffffffffc0003000))
		file.odd += file.ksymbol(perfgen.ALPHA, flags=1) + build(14, b'"4.0"')
		file.odd += file.ksymbol(perfgen.ALPHA)
		file.block = file.make_block(sets)
		file.time = 1000
	END
	names "$TMP/file" "$TMP/named" version
	printf '%s\t%s\n' 0x0 "${alpha}[version=1.2.3]" 0x0 'bpf_prog_8899aabbccddeeff_beta[version=2.0]' \
		0x1 $alpha 0x0 "${alpha}[version=3.0]" 0x1 $alpha 0x0 $alpha 0x1 $alpha 0x0 $alpha \
		0x0 bpf_prog_0123456789abcdef_gamma \
		0x1 $alpha 0x0 "${alpha}[version=4.0]" 0x0 $alpha >"$TMP/want"
	ksymbols_of "$TMP/named" >"$TMP/got"
	same "names" "$TMP/want" "$TMP/got"
}

# Two threads load programs, and their events alternate. A third thread's function has no program.
test_programs_that_load_at_the_same_time()
{
	write_file "$TMP/file" <<-'END'
		def by(tid, event, prog):
		    file.tid = tid
		    return event(prog)
		file.first = by(1, file.ksymbol, perfgen.ALPHA) + by(2, file.ksymbol, perfgen.BETA) + \
		    by(3, file.ksymbol, perfgen.GAMMA) + by(2, file.bpf_event, perfgen.BETA) + \
		    by(1, file.bpf_event, perfgen.ALPHA)
		for event in "ksymbol", "bpf_event":
		    setattr(file, event, lambda prog: b"")
	END
	names "$TMP/file" "$TMP/named" version
	printf '0x0\t%s\n' 'bpf_prog_0011223344556677_alpha[version=1.2.3]' \
		'bpf_prog_8899aabbccddeeff_beta[version=2.0]' bpf_prog_0123456789abcdef_gamma >"$TMP/want"
	ksymbols_of "$TMP/named" >"$TMP/got"
	same "names" "$TMP/want" "$TMP/got"
}

# In each of the three rounds, the limit is at another byte of an encoded character.
test_a_long_value_is_cut_between_characters()
{
	local before name

	for before in '' x xx; do
		write_file "$TMP/file" <<-END
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
	local option

	record_once
	: >"$TMP/lines"
	for option in --vm-time-correlation=dry-run --bpf-metadata=none --bpf-metadata-add="$TMP/lines"; do
		if "$PBM_PERF" inject --bpf-metadata-names=version "$option" -i "$TMP/both" -o "$TMP/named" 2>"$TMP/err"; then
			fail "perf inject accepts $option"
		fi
		grep -q "^--bpf-metadata-names can't be combined with" "$TMP/err" || fail "$(cat "$TMP/err")"
	done
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
	new_names version | sed -n "s/^[0-9]*\t\(.*_$BUSY\[version=1.0\]\)\$/\1/p" >"$TMP/symbol"
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
# only if all functions of one name get the same value, and the events have the same order. So the
# test adds owner, and not version, and compares with a file that got a key that no program has.
test_hotspot_shows_the_values()
{
	local file

	[[ -n $PERFPARSER ]] || { all_only; skip "hotspot is not installed"; }
	record_once
	names "$TMP/both" "$TMP/in-order" no_such_key --bpf-metadata=header
	names "$TMP/both" "$TMP/in-order-named" owner --bpf-metadata=header
	for file in in-order in-order-named; do
		kallsyms_of "$TMP/$file" >"$TMP/kallsyms"
		cp "$TMP/$file" "$TMP/perf.data"
		QT_HASH_SEED=0 "$PERFPARSER" --input "$TMP/perf.data" --kallsyms "$TMP/kallsyms" \
			--output "$TMP/$file.b2qt" 2>"$TMP/err"
		without_values "$TMP/$file.b2qt" >"$TMP/$file.out"
	done
	grep -a -q "_$BUSY\[owner=tests\]" "$TMP/in-order-named.b2qt" || fail "no name has owner"
	same "messages of hotspot-perfparser" "$TMP/in-order.out" "$TMP/in-order-named.out"
}

run_tests
