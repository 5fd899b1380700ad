#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf inject --bpf-metadata keeps, converts or removes metadata: the records, and the metadata in
# the header of a file, which is called the block. --bpf-metadata-names makes values of the block parts
# of the names of functions. --bpf-metadata-add adds the keys in the lines of a file to the metadata of
# the programs with these ids and names. All readers see this, and nothing else changes.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
few_symbols

NATIVE_ONLY="the test rewrites files"
BUSY=$(own busy)
# Functions of generated files
ALPHA=bpf_prog_0011223344556677_alpha BETA=bpf_prog_8899aabbccddeeff_beta GAMMA=bpf_prog_0123456789abcdef_gamma

inject()
{
	"$PBM_PERF" inject "$@"
}

# Most tests of recordings share these. Two of the programs have the same name.
record_once()
{
	[[ ! -e $TMP/entries ]] || return 0
	start_recording "$TMP/both" -a -g -F 2000
	hold -o busy_v1 busy_v2 simple functions
	spend 0 20000 1 40000
	"${WORKLOAD[@]}"
	stop_recording
	record - -F 999 >"$TMP/pipe"
	perfdata strip "$TMP/both" "$TMP/block-only"
	perfdata strip-block "$TMP/both" "$TMP/records-only"
	printf '%s\t\n' "${HELD_IDS[@]}" >"$TMP/ids"
	held_lines "$TMP/both" >"$TMP/block"
	(($(wc -l <"$TMP/block") == 7)) || fail "the block lacks programs: $(cat "$TMP/block")"
	cut -f 1,3- "$TMP/block" >"$TMP/nameless"
	: >"$TMP/no"
	held_entries "$TMP/pipe" | sort >"$TMP/sorted-pipe"
	held_entries "$TMP/both" >"$TMP/entries.part"
	(($(wc -l <"$TMP/entries.part") == 7)) || fail "not 7 entries in records: $(cat "$TMP/entries.part")"
	sort "$TMP/entries.part" >"$TMP/sorted"
	mv "$TMP/entries.part" "$TMP/entries"
}

# Print the entries in the records of the held programs in file $1. Other programs come and go, so
# recordings differ in the records of those.
held_entries()
{
	perfdata all-entries "$1" >"$TMP/all-entries"
	grep -E "^bpf_prog_[0-9a-f]*_[a-z]*$(own '')[^	]*	" "$TMP/all-entries" || :
}

# Print ID NAME KEY VALUE of the held programs from the block of file $1. Records may truncate the
# values of other programs. The column SET is left out: its numbers depend on other programs.
held_lines()
{
	perfdata block "$1" | cut -f 1,2,4,5 >"$TMP/all-lines"
	awk -F '\t' 'NR == FNR { held[$1]; next } $1 in held' "$TMP/ids" "$TMP/all-lines"
}

# samples_of FILE [PERF]: print the samples without symbols.
samples_of()
{
	"${2:-$PBM_PERF}" script -G -F comm,tid,cpu,time,event,ip,period -i "$1"
}

# same_samples RECORDING FILE [PERF]: FILE was made from RECORDING, and has the same samples.
same_samples()
{
	if [[ ! -e $1.samples ]]; then
		samples_of "$1" >"$1.samples"
		(($(wc -l <"$1.samples") == $(perfdata types "$1" | grep -c -x 9))) || fail "lost samples of $1"
	fi
	samples_of "$2" "${3:-}" >"$TMP/got"
	same "samples of $2" "$1.samples" "$TMP/got"
}

# want_metadata FILE RECORDS BLOCK: the entries in records of FILE, and its block, are those of these files
want_metadata()
{
	local order=cat fields=1-

	[[ $2 != sorted* ]] || order="sort"
	[[ $3 != nameless ]] || fields=1,3-
	[[ $2 = no ]] || perfdata check-records "$1"
	[[ $2 != no ]] || want_no_records "$1"
	held_entries "$1" | $order >"$TMP/got"
	same "records of $1" "$TMP/$2" "$TMP/got"
	held_lines "$1" | cut -f "$fields" >"$TMP/got"
	same "block of $1" "$TMP/$3" "$TMP/got"
}

# A pipe has no block, so perf inject writes records in its place, maybe in another order. A file from a pipe
# gets the block. The pipe has no bpf_prog_info, and so no names for it. -b is for build ids. The features
# 25 (bpf_prog_info, without the block) and 26 (BTF) keep their sizes.
test_each_mode_keeps_moves_or_removes_metadata()
{
	local input output records block options samples

	record_once
	cd "$TMP"
	perfdata sections both | grep -E $'^2[56]\t' >infos
	while read -r input output records block options; do
		echo "$input $output $options"
		rm -f out
		# shellcheck disable=SC2086 # several options
		inject $options -i "$input" -o "$output" <pipe >stdout 2>messages
		[[ $output = out ]] || mv stdout out
		want_metadata out "$records" "$block"
		[[ $output = - || $input = - ]] ||
			same "features" infos <(perfdata sections out | grep -E $'^2[56]\t')
		samples=both
		[[ $input != - ]] || samples=pipe
		same_samples $samples out
		# The records are at the places where perf record writes them.
		[[ $input$output$options != bothout ]] || perfdata check out
	done <<-'END'
		both		out	entries		block
		both		out	entries		block		--bpf-metadata=all
		both		out	no		block		--bpf-metadata=header
		both		out	no		block		--bpf-metadata=header -b
		both		out	no		no		--bpf-metadata=none
		both		-	entries		no
		both		-	no		no		--bpf-metadata=none
		block-only	out	no		block
		block-only	out	no		block		--bpf-metadata=header
		block-only	out	no		no		--bpf-metadata=none
		block-only	-	sorted		no
		block-only	-	no		no		--bpf-metadata=none
		records-only	out	entries		no
		records-only	out	no		block		--bpf-metadata=header
		records-only	out	no		no		--bpf-metadata=none
		records-only	-	entries		no
		-		-	sorted-pipe	no
		-		-	no		no		--bpf-metadata=none
		-		out	sorted-pipe	nameless
		-		out	no		nameless	--bpf-metadata=header
	END
}

# With many programs, bpf_prog_info does not fit into an event of a pipe. Then neither pipe has it.
test_mode_none_keeps_bpf_prog_info_of_a_pipe()
{
	local file

	write_file "$TMP/file" </dev/null
	inject -i "$TMP/file" -o - >"$TMP/piped"
	inject --bpf-metadata=none -i - -o - <"$TMP/piped" >"$TMP/out"
	for file in piped out; do
		"$PBM_PERF" report --header -i - <"$TMP/$file" >"$TMP/report"
		grep '^# bpf_prog_info' "$TMP/report" >"$TMP/$file.infos"
	done
	same "bpf_prog_info of a pipe" "$TMP/piped.infos" "$TMP/out.infos"
}

# perf inject does not read compressed events: the block has the ids of the programs, and bpf_prog_info the
# names. A pipe has only records. The names of functions are in the events.
test_compressed_files_keep_the_block_and_get_keys_but_no_names()
{
	local file

	"$PBM_PERF" check feature -q zstd || skip "perf is built without zstd"
	cd "$TMP"
	start_recording compressed -a -z
	hold simple
	stop_recording
	inject --bpf-metadata=header -i compressed -o header 2>messages
	! grep -e 'lost the metadata' messages || fail "perf inject warns of lost metadata"
	perfdata types compressed >"$TMP/types"
	grep -q -x 84 types || fail "no records"
	perfdata types header >"$TMP/types"
	! grep -x 84 types || fail "the output has records"
	perfdata block compressed >want
	grep "^${HELD_IDS[0]}	" want || fail "the block lacks the program"
	same "block" want <(perfdata block header)

	perfdata strip compressed stripped
	perfdata strip-block stripped neither
	inject -i header -o - >piped
	echo "${HELD_IDS[0]} - unit=late" >lines
	for file in neither piped; do
		add lines -i $file -o out
		perfdata block out | cut -f 1,4 >keys
		grep -q -x "${HELD_IDS[0]}	unit" keys || fail "$file: no unit: $(cat messages keys)"
	done

	names compressed out version 2>messages
	grep -q '^WARNING: .* are compressed' messages || fail "no warning: $(cat messages)"
}

# If no BPF program is loaded, the output has no features except the build ids.
test_a_pipe_becomes_a_file_with_build_ids()
{
	"$PBM_PERF" record -q -e cpu-clock -o - true >"$TMP/stream"
	inject -b -i "$TMP/stream" -o "$TMP/from-stream"
	"$PBM_PERF" buildid-list -i "$TMP/from-stream" >"$TMP/out"
	grep -q -E '^[0-9a-f]{16,40} .' "$TMP/out" || fail "no build IDs: $(cat "$TMP/out")"
}

test_unpatched_perf_reads_output_of_mode_header_and_keeps_the_block()
{
	unpatched_perf
	record_once
	inject --bpf-metadata=header -i "$TMP/records-only" -o "$TMP/out"
	same_samples "$TMP/both" "$TMP/out" "$PBM_UNPATCHED_PERF"
	"$PBM_UNPATCHED_PERF" inject -i "$TMP/block-only" -o "$TMP/out"
	want_metadata "$TMP/out" no block
	same_samples "$TMP/both" "$TMP/out"
}

# The recording looks like one of perf record --kcore, which some kernels do not allow.
test_aslr_removes_addresses_of_the_kernel()
{
	cd "$TMP"
	mkdir -p dir/kcore_dir
	record dir/data
	echo "ffffffff81234567 T _text" >dir/kcore_dir/kallsyms
	inject -i dir -o copy
	grep -q -r ffffffff81234567 copy || fail "without --aslr, kallsyms is not copied"
	inject --aslr -i dir -o hidden
	! grep -r ffffffff81234567 hidden || fail "the output has a kernel address"
	[[ -n $(samples_of hidden) ]] || fail "the samples are lost"
	# The events of a guest would keep their addresses.
	! inject --aslr --guest-data=copy,1 -i dir -o out 2>messages || fail "perf inject accepts --guest-data"
	grep -q -e '--aslr and --guest-data are mutually exclusive' messages || fail "$(cat messages)"
}

# --- names --------------------------------------------------------------------

# names FILE NEW KEYS [OPTION...]: copy FILE to NEW, with the values of KEYS in names of functions.
names()
{
	inject --bpf-metadata-names="$3" -i "$1" -o "$2" "${@:4}"
}

# has_names FILE [-]NAME...: the functions that load or, with "-", unload in FILE have these names
has_names()
{
	"$PBM_PERF" script --show-bpf-events -i "$1" 2>"$TMP/messages" |
		sed -n 's/.*PERF_RECORD_KSYMBOL .* flags 0x\([01]\) name /\1/; s/^0//p; s/^1/-/p' >"$TMP/got"
	printf '%s\n' "${@:2}" >"$TMP/want"
	same "names in $1" "$TMP/want" "$TMP/got"
}

# write_kinds: generated files with metadata in the records and the block, in the block only, and in records
# only
write_kinds()
{
	local kind

	for kind in both: records-only:'file.block = b""' block-only:'file.with_records = False'; do
		write_file "$TMP/${kind%%:*}.made" <<-END
			keys, file.chain = [(b"owner", b'"x y"'), (b"version", b'"1.0"')], []
			perfgen.ALPHA = (*perfgen.ALPHA[:4], keys)
			file.block = file.make_block([(keys, [7]), (perfgen.BETA[4], [9])])
			${kind#*:}
		END
	done
}

# A second run, whose input is "named", replaces the values of the first one.
test_names_of_functions_have_the_values_of_the_block()
{
	local input output keys alpha beta options

	write_kinds
	cd "$TMP"
	while read -r input output keys alpha beta options; do
		echo "$input $output $keys"
		names "$input.made" "$output" "$keys" ${options:+"$options"} >stdout 2>err
		[[ $output != - ]] || mv stdout out
		[[ $output != named.made ]] || cp named.made out
		has_names out "$ALPHA${alpha#-}" "$BETA${beta#-}"
		[[ $input != records-only ]] || grep 'no names are changed, .*--bpf-metadata=header' err ||
			fail "no warning: $(cat err)"
	done <<-'END'
		both		out		nope		-				-
		both		out		owner,version	[owner=x%20y][version=1.0]	[version=2.0]
		both		-		version		[version=1.0]			[version=2.0]
		both		named.made	version		[version=1.0]			[version=2.0]
		named		out		owner		[owner=x%20y]			-
		records-only	out		version		-				-
		block-only	out		version		[version=1.0]			[version=2.0]
		both		out		version		[version=1.0]			[version=2.0]	--bpf-metadata=header
	END
	want_no_records out
}

# summary_of FILE: print what perf shows of programs, samples and metadata, without values in names. In a
# container, another file may have the path of a file of user space.
summary_of()
{
	{
		"$PBM_PERF" report --header-only -i "$1" | grep '^# bpf_metadata '
		"$PBM_PERF" report --stdio -g none -s bpf_prog,bpf_metadata -i "$1" | grep -v '^#'
		"$PBM_PERF" script -F bpf_prog,bpf_metadata -i "$1"
		rm -f "$TMP/json"
		"$PBM_PERF" data convert --to-json "$TMP/json" -i "$1" >&2
		python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["bpf-metadata"])' "$TMP/json"
		perfdata block "$1"
		perfdata types "$1" | grep -c -x 84
		"$PBM_PERF" script -i "$1"
	} >"$TMP/out"
	sed -E 's/(bpf_prog_[^][ ]*)(\[[^][ ]*\])+/\1/g; s/^(\t +[0-9a-f]+) .* \((\[vdso\]|\/.*)\)$/\1 user/' \
		"$TMP/out" >"$1.summary"
}

# All functions of a program get the values.
test_samples_programs_and_metadata_stay_when_functions_get_names()
{
	local long=a_function_with_a_name_that_is_longer_than_any_field_of_sixteen_or_sixty_four_bytes

	record_once
	names "$TMP/both" "$TMP/named" version
	perfdata programs "$TMP/named" | sed 's/ /\t&/' | awk -F '\t' 'NR == FNR { held[$1]; next } $1 in held' \
		"$TMP/ids" - | grep -o '[^ ]*$' | tr , '\n' | sed 's/bpf_prog_[^_]*_//' | sort >"$TMP/got"
	printf '%s\n' {"$BUSY",divide,multiply}'[version='{1.0,2.0}']' "$(own simple)[version=1.2.3]" \
		{"$(own functions)_with_a_long_program_name",{static,global}_function,$long}"[version=$(own functions)]" |
		sort >"$TMP/want"
	same "names" "$TMP/want" "$TMP/got"
	summary_of "$TMP/both"
	summary_of "$TMP/named"
	grep -q "'$BUSY'" "$TMP/both.summary" || fail "no $BUSY in JSON"
	grep -q "bpf_prog_.*_$BUSY" "$TMP/both.summary" || fail "no sample in a program"
	same "summary" "$TMP/both.summary" "$TMP/named.summary"
	"$PBM_PERF" diff -s bpf_prog "$TMP/both" "$TMP/named" >"$TMP/got"
	grep -q -E "^ +[0-9.]+% +\+0.00% +$BUSY" "$TMP/got" || fail "other names in perf diff: $(cat "$TMP/got")"
	names "$TMP/both" - version >"$TMP/out"
	same_samples "$TMP/both" "$TMP/out"
}

# Whoever removes the metadata must not find its values in the file.
test_removed_metadata_is_not_in_names()
{
	write_kinds
	cd "$TMP"
	names both.made two-keys version,owner
	inject --bpf-metadata=none -i two-keys -o none.file
	inject --bpf-metadata=none -i two-keys -o - >none.pipe
	inject -b -i none.pipe -o none.file-of-pipe
	for file in none.*; do
		has_names "$file" $ALPHA $BETA
		! grep -a -e version -e owner -e 'x y' -e x%20y "$file" || fail "$file has a key or a value"
	done
}

# Builds of one program have the same tag, and a later one can have the address of an earlier one.
test_programs_at_one_address_have_their_own_names()
{
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
	names "$TMP/file" "$TMP/out" version
	has_names "$TMP/out" "${ALPHA}[version=1.2.3]" "${BETA}[version=2.0]" -$ALPHA "${ALPHA}[version=3.0]" \
		-$ALPHA $ALPHA -$ALPHA $ALPHA $GAMMA -$ALPHA "${ALPHA}[version=4.0]" $ALPHA
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
	names "$TMP/file" "$TMP/out" version
	has_names "$TMP/out" "${ALPHA}[version=1.2.3]" "${BETA}[version=2.0]" $GAMMA
}

# A name has 511 characters. An encoded character is not cut.
test_values_are_encoded_and_cut_in_names()
{
	local keys text suffix before x encoded
	local odd='a%20b%3Bc%5Cu000a%5Ct%25s%5D%7B%5B%5C%22%27%28%5C%5C%29-%3E%2C%3D%2F%E2%82%AC'

	x=$(printf 'x%.0s' {1..467}) encoded=$(printf '%%25%.0s' {1..155})
	{
		printf '%s\t%s\t%s\n' \
			version "b'version=\"${x}xxx\"\\n'" "[version=${x}xxx]" \
			version "b'version=\"${x}xxxx\"\\n'" "[version=$x...]"
		for before in '' x xx; do
			printf '%s\t%s\t%s\n' version "b'version=\"$before' + 200 * b'%' + b'\"\\n'" \
				"[version=$before$encoded...]"
		done
		cat <<-'END'
			array	b'array=[1,2,3]\n'	[array=%5B1%2C2%2C3%5D]
			empty	b'empty=""\n'	[empty=]
			number	b'number=-7\n'	[number=-7]
			version	b'version="1.2-rc4+g~5:6_7@8"\n'	[version=1.2-rc4+g~5:6_7@8]
			odd	rb"""odd="a b;c\u000a\t%s]{[\"'(\\)->,=/"""+b'\xe2\x82\xac"\n'	[odd=ODD]
			b,a	b'a=1\nb="2"\nc=3\n'	[b=2][a=1]
		END
	} >"$TMP/table"
	while IFS=$'\t' read -r keys text suffix; do
		write_file "$TMP/file" <<-END
			file.block = file.make_texts([($text, [7])])
			file.with_records = False
		END
		names "$TMP/file" "$TMP/out" "$keys"
		has_names "$TMP/out" "$ALPHA${suffix/ODD/$odd}" $BETA
	done <"$TMP/table"
}

test_unpatched_perf_shows_the_values()
{
	unpatched_perf
	write_kinds
	names "$TMP/both.made" "$TMP/out" version --bpf-metadata=header
	"$PBM_UNPATCHED_PERF" script -G -F ip,sym -i "$TMP/out" | sed 's/^ *//' >"$TMP/got"
	printf 'ffffffffc000%s[version=%s.0]\n' 1010\ $ALPHA 1 1010\ $ALPHA 1 2010\ $BETA 2 2010\ $BETA 2 >"$TMP/want"
	same "samples" "$TMP/want" "$TMP/got"
}

# --- lines to add -------------------------------------------------------------

add()
{
	"$PBM_PERF" inject --bpf-metadata-add "$@" 2>"$TMP/messages" || fail "$(cat "$TMP/messages")"
}

# adds INPUT [OPTION...]: the keys of $TMP/lines are added to INPUT without a message
adds()
{
	add "$TMP/lines" -i "$@" -o "$TMP/out"
	# Generated files do not have the number of CPUs.
	! grep -v HEADER_NRCPUS "$TMP/messages" || fail "messages"
}

# left_out NUMBER INPUT: none of the lines of $TMP/lines is added, with one warning of their number
left_out()
{
	add "$TMP/lines" -i "$2" -o "$TMP/out"
	[[ $(grep 'left out' "$TMP/messages") = *" left out $1 lines of $TMP/lines: the input has no BPF program "* ]] ||
		fail "not one warning: $(cat "$TMP/messages")"
	"$PBM_PERF" report --header-only -i "$TMP/out" >"$TMP/header"
	! grep a.service "$TMP/header" || fail "the header has a.service"
}

# A declared key keeps its value. The last line has no newline.
test_keys_are_added_to_files_and_pipes_by_program_id()
{
	local kind

	printf '%s\n' '7 alpha nr=7' '7 - unit=a.service' '9 - unit=a.service' '7 alpha version=other' \
		'9 beta exe= /x "\é=,:[]{}' '9 - empty=' >"$TMP/lines"
	printf '9 beta Az_9.-=k' >>"$TMP/lines"
	printf '%s\t%s\t%s\n' 7 answer 42 7 nr '"7"' 7 unit '"a.service"' 7 version '"1.2.3"' \
		9 Az_9.- '"k"' 9 empty '""' 9 exe '" /x \"\\é=,:[]{}"' 9 unit '"a.service"' >"$TMP/want"
	for kind in 'file = perfgen.File(pipe=True)' 'file.block = b""' ''; do
		write_file "$TMP/file" <<-END
			perfgen.BETA = (*perfgen.BETA[:4], [])
			$kind
			file.block = file.block and file.make_block([(perfgen.ALPHA[4], [7]), ([], [9])])
		END
		adds "$TMP/file"
		perfdata block "$TMP/out" | cut -f 1,4,5 | sort >"$TMP/got"
		same "metadata" "$TMP/want" "$TMP/got"
		want_no_records "$TMP/out"
		[[ $kind != *pipe* ]] || add <(cat "$TMP/lines") -i - -o "$TMP/of-pipe" <"$TMP/file"
	done
	perfdata block "$TMP/of-pipe" | cut -f 1,4,5 | sort >"$TMP/got"
	same "metadata of a pipe" "$TMP/want" "$TMP/got"
	# The keys can become parts of names.
	names "$TMP/out" "$TMP/named" unit,version
	has_names "$TMP/named" "${ALPHA}[unit=a.service][version=1.2.3]" "${BETA}[unit=a.service]"
	: >"$TMP/lines"
	adds "$TMP/file"
}

# print_events FILE: print the events without their places in the file
print_events()
{
	"$PBM_PERF" script -D -F tid,time,ip,period -i "$1" |
		sed -E 's/0x[0-9a-f]*@[^ ]* //; s/^(-?[0-9]+ [0-9]+ )0x[0-9a-f]+ /\1/; /FEATURE/d' | without_vdso_names
}

# perf inject -s puts the events in order, too: all PERF_RECORD_FINISHED_ROUND come first.
test_events_other_than_metadata_stay_when_keys_are_added()
{
	local id

	record_once
	id=$(head -n 1 "$TMP/ids")
	echo "${id%	} $BUSY unit=a.service" >"$TMP/lines"
	inject -s --bpf-metadata=header -i "$TMP/both" -o "$TMP/header"
	adds "$TMP/both"
	print_events "$TMP/header" >"$TMP/want"
	print_events "$TMP/out" >"$TMP/got"
	same "events" "$TMP/want" "$TMP/got"
	"$PBM_PERF" report --header-only -i "$TMP/out" >"$TMP/header"
	grep -q "^# bpf_metadata ${id%	} $BUSY: .*, unit=\"a.service\"" "$TMP/header" ||
		fail "$(grep bpf_metadata "$TMP/header")"
}

# Ids begin again at each boot. The kernel stores 15 characters of a name, and old bpftools print these.
test_lines_of_other_programs_are_left_out()
{
	local name

	write_file "$TMP/file" <<-'END'
		perfgen.BETA = (9, perfgen.BETA[1], "functions_with_a_long_program_name", *perfgen.BETA[3:])
		file.infos[1] = file.prog_info(perfgen.BETA, name=b"functions_with_")
	END
	"$PBM_PERF" inject --bpf-metadata-names=version -i "$TMP/file" -o "$TMP/named"
	for name in '4294967295 -' '7 Alpha' '7 alph' '7 alpha2' '7 alpha[a=b]' '7 functions_with_' \
		'9 functions_with' '9 functions_with_another_name'; do
		printf '%s\n' "$name unit=a.service" "$name nr=1" >"$TMP/lines"
		left_out 2 "$TMP/file"
	done
	write_file "$TMP/empty" <<<'file.infos, file.nr_infos, file.records = [], 0, lambda: file.sample(16)'
	left_out 2 "$TMP/empty"
	for name in functions_with_a_long_program_name functions_with_; do
		echo "9 $name unit=b" >"$TMP/lines"
		adds "$TMP/file"
		"$PBM_PERF" report --header-only -i "$TMP/out" | grep -e '^# bpf_metadata 9 .*unit="b"' ||
			fail "$name: no unit"
		# The name may have values of an earlier run.
		adds "$TMP/named"
	done
}

# A function has no file, also if a file has its name.
test_functions_get_no_build_id()
{
	local id name

	record_once
	id=$(head -n 1 "$TMP/ids")
	perfdata costs "$TMP/both" >"$TMP/costs"
	grep -q "^$id" "$TMP/costs" || fail "no samples of the program"
	cd "$TMP"
	perfdata ksymbols both | grep -E "_$BUSY|_divide|_multiply" | sort -u >"$TMP/ksymbols"
	while read -r name; do
		cp "$OUTPUT/hold" "$name"
	done <ksymbols
	echo "${id%	} - a=b" >lines
	inject -b -i both -o with-ids
	add lines -b -i both -o out
	perfdata types with-ids | grep -x 67 >want
	same "build ID events" want <(perfdata types out | grep -x 67)
}

# perf inject writes nothing then. It takes a NUL for the end of a line.
test_broken_lines_are_errors()
{
	local text nr

	write_file "$TMP/file" </dev/null
	while read -r text; do
		printf '1 - a=b\n%b\n' "${text//_/ }" >"$TMP/lines"
		nr=2
		[[ $text != *'\0'* ]] || nr=3
		rm -f "$TMP/out"
		! inject --bpf-metadata-add "$TMP/lines" -i "$TMP/file" -o "$TMP/out" 2>"$TMP/messages" ||
			fail "perf inject accepts: $(cat "$TMP/lines")"
		grep -q "^$TMP/lines:$nr: not a line 'ID NAME KEY=VALUE', see 'man perf-inject'$" "$TMP/messages" ||
			fail "$(cat "$TMP/messages" "$TMP/lines")"
		[[ ! -e $TMP/out ]] || fail "perf inject has begun to write: $(cat "$TMP/lines")"
	done < <(printf '1_%0512d_a=b\n1_-_%0256d=b\n' 0 0; cat <<-'END'

		1
		1_-
		1_a=b
		1_-_a
		1_-_=b
		1_-_a!=b
		1_-_a_=b
		1_-_é=b
		1__-_a=b
		1_-__a=b
		_1_-_a=b
		1-_-_a=b
		1x_-_a=b
		-1_-_a=b
		+1_-_a=b
		0x1_-_a=b
		4294967296_-_a=b
		18446744073709551617_-_a=b
		1_-_a=\0b
		1_-_a=b\r
		1_-_a=\t
		1_-_a=\x1b
		1_-_a=\x7f
		1_-_a=\xff
		# a comment
	END
	)
}

run_tests
