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

# Most tests here share the recordings.
record_once()
{
	[[ ! -e $TMP/functions ]] || return 0
	start_recording "$TMP/both" -a -g -F 2000
	hold -o busy_v1 busy_v2 simple functions
	spend 0 20000 1 40000
	"${WORKLOAD[@]}"
	stop_recording
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
	perfdata strip-block "$TMP/both" "$TMP/records-only"
	perfdata block "$TMP/both" >"$TMP/block"
	names "$TMP/both" "$TMP/named" version
	"$PBM_PERF" inject --bpf-metadata=header -i "$TMP/both" -o "$TMP/block-only"
	functions_of "$TMP/both" >"$TMP/functions.part"
	(($(wc -l <"$TMP/functions.part") >= 8)) || fail "too few functions"
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

# new_names KEY[,KEY]: print ID<TAB>NAME, the names that functions must get. The values, strings, come
# from the block of $TMP/both.
new_names()
{
	awk -F '\t' -v keys="$1" 'NR == FNR { gsub(/"/, "", $5); value[$1, $4] = $5; next }
		{ n = split(keys, key, ",")
		  for (i = 1; i <= n; i++) if (($1, key[i]) in value) $2 = $2 "[" key[i] "=" value[$1, key[i]] "]"
		  print $1 "\t" $2 }' "$TMP/block" "$TMP/functions"
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

# A second run, whose input is "named", replaces the values of the first one.
test_names_of_functions_have_the_values_of_the_block()
{
	local input output keys want options

	record_once
	cd "$TMP"
	while read -r input output keys want options; do
		echo "$input $output $keys"
		names "$input" "$output" "$keys" ${options:+"$options"} >stdout 2>err
		[[ $output = out ]] || mv stdout out
		want_names out "$want"
		[[ $input != records-only ]] || grep 'no names are changed, .*--bpf-metadata=header' err ||
			fail "no warning: $(cat err)"
	done <<-'END'
		both		out	nope		-
		both		out	owner,version	owner,version
		both		-	version		version
		named		out	owner		owner
		records-only	out	version		-
		block-only	out	version		version
		both		out	version		version		--bpf-metadata=header
	END
	grep -q "_$BUSY\[version=1.0\]\$" got || fail "no name ends in [version=1.0]"
	want_no_records out
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

test_samples_programs_metadata_and_records_stay()
{
	local file

	record_once
	for file in both named; do
		{
			summary_of "$TMP/$file"
			perfdata block "$TMP/$file"
			perfdata types "$TMP/$file" | grep -c -x 84
		} >"$TMP/$file-summary"
	done
	grep -q "'$BUSY'" "$TMP/both-summary" || fail "no $BUSY in JSON"
	same "summary" "$TMP/both-summary" "$TMP/named-summary"
	"$PBM_PERF" diff -s bpf_prog "$TMP/both" "$TMP/named" >"$TMP/got"
	grep -q -E "^ +[0-9.]+% +\+0.00% +$BUSY" "$TMP/got" || fail "other names in perf diff: $(cat "$TMP/got")"
	same_samples "$PBM_PERF" "$TMP/both" "$TMP/named"
	names "$TMP/both" - version >"$TMP/to-pipe"
	same_samples "$PBM_PERF" "$TMP/both" - <"$TMP/to-pipe"
}

# Whoever removes the metadata must not find its values in the file.
test_removed_metadata_is_not_in_names()
{
	local output

	record_once
	names "$TMP/both" "$TMP/two-keys" version,owner
	want_names "$TMP/two-keys" version,owner
	for output in "$TMP/out" -; do
		"$PBM_PERF" inject --bpf-metadata=none -i "$TMP/two-keys" -o "$output" >"$TMP/stdout"
		[[ $output != - ]] || mv "$TMP/stdout" "$TMP/out"
		if grep -a -o -E '.{9}(version|owner)=.{9}' "$TMP/out"; then
			fail "the output still has values"
		fi
		! grep -a -q -P 'divide\0version' "$TMP/out" || fail "a piece of a value follows a name"
		want_names "$TMP/out" ''
	done
	"$PBM_PERF" inject --bpf-metadata=none -i "$TMP/two-keys" -o - | "$PBM_PERF" inject -b -o "$TMP/out"
	! grep -a -q version= "$TMP/out" || fail "the file of a pipe has values"
}

# want_ksymbols FLAGS NAME...: $TMP/file has KSYMBOLs that get these names with version
want_ksymbols()
{
	names "$TMP/file" "$TMP/out" "${KEY:-version}"
	"$PBM_PERF" script --show-bpf-events -i "$TMP/out" 2>"$TMP/err" |
		sed -n 's/.*PERF_RECORD_KSYMBOL .* flags \(0x[01]\) name \(.*\)/\1 \2/p' >"$TMP/got"
	printf '%s %s\n' "$@" >"$TMP/want"
	same "names with ${KEY:-version}" "$TMP/want" "$TMP/got"
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
	want_ksymbols 0x0 "${alpha}[version=1.2.3]" 0x0 'bpf_prog_8899aabbccddeeff_beta[version=2.0]' \
		0x1 $alpha 0x0 "${alpha}[version=3.0]" 0x1 $alpha 0x0 $alpha 0x1 $alpha 0x0 $alpha \
		0x0 bpf_prog_0123456789abcdef_gamma \
		0x1 $alpha 0x0 "${alpha}[version=4.0]" 0x0 $alpha
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
	want_ksymbols 0x0 'bpf_prog_0011223344556677_alpha[version=1.2.3]' \
		0x0 'bpf_prog_8899aabbccddeeff_beta[version=2.0]' 0x0 bpf_prog_0123456789abcdef_gamma
}

# want_suffix TEXT [VALUE]: the program alpha, whose metadata is TEXT, gets a name with this end
want_suffix()
{
	write_file "$TMP/file" <<-END
		file.block = file.make_texts([($1, [7])])
		file.with_records = False
	END
	want_ksymbols 0x0 "bpf_prog_0011223344556677_alpha$2" 0x0 bpf_prog_8899aabbccddeeff_beta
}

# A name has 511 characters. An encoded character is not cut.
test_a_long_value_is_cut_between_characters()
{
	local before x encoded

	x=$(printf 'x%.0s' {1..467}) encoded=$(printf '%%25%.0s' {1..155})
	want_suffix "b'version=\"${x}xxx\"\\n'" "[version=${x}xxx]"
	want_suffix "b'version=\"${x}xxxx\"\\n'" "[version=$x...]"
	for before in '' x xx; do
		want_suffix "b'version=\"$before' + 200 * b'%' + b'\"\\n'" "[version=$before$encoded...]"
	done
}

test_values_are_encoded_in_names()
{
	local KEY text suffix odd='a%20b%3Bc%5Cu000a%5Ct%25s%5D%7B%5B%5C%22%27%28%5C%5C%29-%3E%2C%3D%2F%E2%82%AC'

	while IFS=$'\t' read -r KEY text suffix; do
		want_suffix "$text" "${suffix/ODD/$odd}"
	done <<-'END'
		array	b'array=[1,2,3]\n'	[array=%5B1%2C2%2C3%5D]
		empty	b'empty=""\n'	[empty=]
		number	b'number=-7\n'	[number=-7]
		version	b'version="1.2-rc4+g~5:6_7@8"\n'	[version=1.2-rc4+g~5:6_7@8]
		odd	rb"""odd="a b;c\u000a\t%s]{[\"'(\\)->,=/"""+b'\xe2\x82\xac"\n'	[odd=ODD]
		b,a	b'a=1\nb="2"\nc=3\n'	[b=2][a=1]
	END
}

test_perf_warns_of_compressed_events()
{
	"$PBM_PERF" check -q feature zstd || skip "this perf is built without zstd"
	start_recording "$TMP/compressed" -a -z
	hold busy_v1
	stop_recording
	names "$TMP/compressed" "$TMP/out" version 2>"$TMP/err"
	grep -q '^WARNING: .* are compressed' "$TMP/err" || fail "no warning: $(cat "$TMP/err")"
}

test_unpatched_perf_shows_the_values()
{
	unpatched_perf
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
	"$PBM_PERF" check -q feature libpython || skip "this perf is built without libpython"
	record_once
	PERF_EXEC_PATH=$OUTPUT "$PBM_PERF" script -s "$OUTPUT/scripts/python/stackcollapse.py" \
		-i "$TMP/named" >"$TMP/stacks"
	grep -q "_$BUSY\[version=1.0\][^;]* [0-9]*\$" "$TMP/stacks" || fail "no version 1.0"
}

test_annotate_finds_the_program()
{
	record_once
	sed -n "s/^[0-9]*\t\(.*_$BUSY\)\$/\1/p;T;q" "$TMP/functions" >"$TMP/symbol"
	"$PBM_PERF" annotate --stdio -i "$TMP/both" "$(cat "$TMP/symbol")" >"$TMP/plain" 2>&1 || :
	! grep -q 'Please link with' "$TMP/plain" || skip "this perf can't disassemble BPF programs"
	new_names version | sed -n "s/^[0-9]*\t\(.*_$BUSY\[version=1.0\]\)\$/\1/p" >"$TMP/symbol"
	"$PBM_PERF" annotate --stdio -i "$TMP/named" "$(cat "$TMP/symbol")" >"$TMP/out" 2>"$TMP/err"
	grep -q -E '^ +[0-9]+[.][0-9]+ .*: +[0-9a-f]+: ' "$TMP/out" || fail "no code: $(head "$TMP/out" "$TMP/err")"
}

run_tests
