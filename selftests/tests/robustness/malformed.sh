#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Malformed files. lib/malformed.py has them, with the message that perf prints for each. perf must
# still read each file to its end.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/terminal.sh"

NATIVE_ONLY="the test reads generated files"
BESIDE=yes

# "later" to read the cases that a later perf may treat in another way
LATER=
SAMPLES=4
# perf before v6.13 appends ":HG": the event counts host and guest.
EVENT='cpu-clock\(:HG\)\?'

# write_case CASE FILE OPTION...: write this case, and its offset to $TMP/offset
write_case()
{
	CASE=$1
	rm -rf "$TMP/text" "$2"
	malformed write "$@" >"$TMP/offset"
}

# list_cases [GROUP]: write CASE|LATER|MESSAGE of each case to $TMP/cases
list_cases()
{
	malformed list "$@" | grep -e "^[^|]*|$LATER|" >"$TMP/cases"
}

# ignored_message REASON: perf's warning about a block that it ignores
ignored_message()
{
	echo "WARNING: ignored the metadata of BPF programs in the header: $1"
}

# run ARGUMENT...: perf must end without an error. Its output is in $TMP/out.
run()
{
	run_to 0 "$@"
}

# run_to STATUS ARGUMENT...: perf must end with a status that matches the pattern
run_to()
{
	local want=$1 status=0

	shift
	timeout $((30 * SCALE)) "$PBM_PERF" "$@" >"$TMP/stdout" 2>"$TMP/out" </dev/null || status=$?
	[[ " $* " = *' -o - '* ]] || cat "$TMP/stdout" >>"$TMP/out"
	# shellcheck disable=SC2053 # it is a pattern
	[[ $status = $want ]] ||
		fail "$CASE: perf $* ends with status $status, not $want: $(head -c 2000 "$TMP/out")"
	cat "$TMP/out" >>"$TMP/text"
}

# Check all output about a case: it is UTF-8 without control characters.
check_text()
{
	if ! iconv -f UTF-8 -t UTF-8 "$TMP/text" >/dev/null; then
		fail "$CASE: something isn't UTF-8"
	fi
	if grep -a -P -e '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$TMP/text"; then
		fail "$CASE: a control character is printed"
	fi
	rm "$TMP/text"
}

check_number()
{
	local what=$1 want=$2 got

	got=$(grep -a -c -e "$3" "$TMP/out") || :
	[[ $got = "$want" ]] || fail "$CASE: $got $what, want $want: $(head -c 2000 "$TMP/out")"
}

check_script()
{
	run script --show-bpf-events -i "$1"
	check_number "samples of perf script $1" "$SAMPLES" " $EVENT: "
	check_number "good sets of perf script $1" "${2:-2}" \
		'^  entry 1: *version = "\(1\.2\.3\|2\.0\)"$'
}

read_everywhere()
{
	local file=$1

	check_script "$file"
	cp "$TMP/out" "$TMP/script"
	run report -D -i "$file"
	check_number "samples of perf report -D" "$SAMPLES" ': PERF_RECORD_SAMPLE('
	run report --stdio -s bpf_prog,bpf_metadata -i "$file"
	check_number "samples of perf report" 1 "^# Samples: $SAMPLES "
	run evlist -i "$file"
	check_number "events of perf evlist" 1 "^$EVENT\$"
	run report --header-only -i "$file"
	cp "$TMP/out" "$TMP/header"
}

convert_everywhere()
{
	local file=$1

	run inject -i "$file" -o "$TMP/injected"
	check_script "$TMP/injected"
	run inject --bpf-metadata=header -i "$file" -o "$TMP/injected"
	run report -D -i "$TMP/injected"
	check_number "samples without records" "$SAMPLES" ': PERF_RECORD_SAMPLE('
	check_number "records in mode header" 0 'PERF_RECORD_BPF_METADATA'
	run inject --bpf-metadata=all -i "$TMP/injected" -o "$TMP/again"
	run script --show-bpf-events -i "$TMP/again"
	check_number "samples of a header" "$SAMPLES" " $EVENT: "
	run inject -i "$file" -o -
	mv "$TMP/stdout" "$TMP/piped"
	# In these blocks, program 11 has the text of a program, and the pipe gets its record.
	case $CASE in
	text-twice|text-ids-order) check_script "$TMP/piped" 3 ;;
	*) check_script "$TMP/piped" ;;
	esac
	run data convert --force --to-json "$TMP/json" -i "$file"
	cat "$TMP/json" >>"$TMP/text"
	python3 - "$TMP/json" "$SAMPLES" <<-'END' || fail "$CASE: perf data convert: $(cat "$TMP/json")"
		import json, sys
		assert len(json.load(open(sys.argv[1]))["samples"]) == int(sys.argv[2])
	END
}

# check_message MESSAGE FILE ARGUMENT...: FILE has the message. If MESSAGE begins with -v, only
# "perf ARGUMENT... -v" prints it.
check_message()
{
	local message=${1#-v }

	if [[ $1 = "$message" ]]; then
		cp "$2" "$TMP/out"
	elif grep -a -q -F -e "$message" "$2"; then
		fail "$CASE: prints '$message' without -v"
	else
		run "${@:3}" -v -i "$TMP/file"
	fi
	grep -a -q -F -e "$message" "$TMP/out" ||
		fail "$CASE: doesn't print '$message': $(head -c 2000 "$TMP/out")"
}

# check_cases GROUP COMMAND: read the cases of this group. COMMAND checks the message of each.
check_cases()
{
	local message

	list_cases "$1"
	while IFS='|' read -r CASE _ message; do
		write_case "$CASE" "$TMP/file"
		read_everywhere "$TMP/file"
		convert_everywhere "$TMP/file"
		"$2" "$message"
		check_text
	done <"$TMP/cases"
}

check_printed()
{
	check_message "$1" "$TMP/script" script
}

check_header()
{
	check_message "$1" "$TMP/header" report --header-only
}

check_left_out()
{
	check_message "$1" "$TMP/header" inject -o "$TMP/injected"
	run report --header-only -i "$TMP/injected"
	grep -q '^# hostname : host$' "$TMP/out"
}

check_refusal()
{
	local warning

	warning="^$(cat "$TMP/offset") \[0x[0-9a-f]*\]: skipped a malformed PERF_RECORD_BPF_METADATA: $1\$"
	# A perf that has this record from upstream may print another message about it.
	warning+="\|^WARNING: at offset $(cat "$TMP/offset"): .*BPF_METADATA.*, skipping\$"
	[[ $(grep -c -e "$warning" "$TMP/script") = 1 ]] || fail "$CASE: no $warning: $(cat "$TMP/script")"
	if grep -a -e 'gamma' -e 'worse' "$TMP/script"; then
		fail "$CASE: prints a refused record"
	fi
}

check_ignored()
{
	check_header "$1"
	[[ $1 = -v* ]] || grep -q -x -e "$(ignored_message "$1")" "$TMP/header" ||
		fail "$CASE: no warning: $(head -c 2000 "$TMP/header")"
	if grep -q -e '^# bpf_metadata' "$TMP/header"; then
		fail "$CASE: prints metadata of the refused block"
	fi
	# The records are still valid: convert_everywhere() has made a block of them.
	run report --header-only -i "$TMP/injected"
	grep -q -x -F -e '# bpf_metadata 7 alpha: answer=42, version="1.2.3"' "$TMP/out" ||
		fail "$CASE: no block is made of the records: $(cat "$TMP/out")"
	run report --stdio -s bpf_metadata -i "$TMP/file"
	grep -q -e '50.00%  version="2.0"' "$TMP/out" || fail "$CASE: not in the report: $(cat "$TMP/out")"
	grep -q -e '"version": *"2.0"' "$TMP/json" || fail "$CASE: not in JSON: $(cat "$TMP/json")"
}

test_a_good_file_is_read()
{
	write_case good "$TMP/file"
	read_everywhere "$TMP/file"
	grep -q -x -F -e '# bpf_metadata 7 alpha: answer=42, version="1.2.3"' "$TMP/header"
	grep -q -x -F -e '# bpf_metadata 9 beta: version="2.0"' "$TMP/header"
	convert_everywhere "$TMP/file"
	check_text
}

test_malformed_records_are_skipped()
{
	check_cases refused check_refusal
}

test_odd_records_are_shown()
{
	check_cases odd check_printed
}

# A variable named just bpf_metadata_ must not hide the others.
test_only_the_entry_with_an_empty_key_is_skipped()
{
	generate "a record with an empty key" <<-'END'
		perfgen.ALPHA[4].insert(0, (b"", b"1"))
		file.block = b""
	END
	run report --stdio -s bpf_prog,bpf_metadata -i "$TMP/file"
	grep -q -e ' 7 alpha *answer=42, version="1.2.3" *$' "$TMP/out" || fail "$CASE: $(cat "$TMP/out")"
	run inject --bpf-metadata=header -i "$TMP/file" -o "$TMP/injected"
	perfdata block "$TMP/injected" | cut -f 1,4,5 | sort >"$TMP/got"
	printf '%s\t%s\t%s\n' 7 answer 42 7 version '"1.2.3"' 9 version '"2.0"' >"$TMP/want"
	same "$CASE: block that perf inject writes" "$TMP/want" "$TMP/got"
}

test_malformed_blocks_are_ignored()
{
	check_cases ignored check_ignored
}

test_odd_blocks_are_shown()
{
	check_cases odd-block check_header
}

test_malformed_program_infos_do_no_harm()
{
	check_cases info check_header
}

test_unknown_features_are_left_out()
{
	check_cases feature check_left_out
}

# Unpatched perf before v6.15 refuses these files. The patch that changes this has a warning of its
# own.
check_skipped()
{
	grep -q -x "Skipped events of type ${1//[!0-9]/}, which need a newer perf." "$TMP/script" || check_printed "$1"
}

test_unknown_types_are_skipped()
{
	check_cases type check_skipped
}

test_programs_in_each_others_place_are_shown()
{
	check_cases program check_printed
}

# To show the menu of a row, perf checks whether its map is that of the kernel.
test_programs_in_each_others_place_are_browsed()
{
	local symbol=bpf_prog_0123456789abcdef_gamma

	write_case ksymbol-over-another "$TMP/file"
	open_terminal "$PBM_PERF" report --tui -s dso,sym -S "$symbol" -i "$TMP/file"
	await "the warning that the file has no kernel" terminal_shows '^ *.?Press any key'
	press Enter
	await "the row of $symbol" terminal_shows "^ *[0-9.]+%.*$symbol"
	press Enter
	await "the menu of $symbol" terminal_shows "^Zoom into $symbol DSO"
}

# generate CASE [OPTION...]: write $TMP/file. Standard input is Python code that changes "file".
generate()
{
	CASE=$1
	write_file "$TMP/file" "${@:2}"
}

# "Aa" and "BB" have the same hash in a hash function that multiplies by 31. So do all texts of the
# same length that consist of them.
test_many_keys_with_the_same_hash_are_read()
{
	generate "keys with the same hash" <<-'END'
		import itertools
		keys = [b"".join(key) for key in itertools.product((b"Aa", b"BB"), repeat=17)]
		file.block = file.make_block([([(key, b"1") for key in keys], [7])])
	END
	run inject --bpf-metadata=header -i "$TMP/file" -o "$TMP/injected"
	run report --header-only -i "$TMP/injected"
	grep -q -e '^# bpf_metadata 7 alpha: \(Aa\)*=1, .*, \(BB\)*=1$' "$TMP/out"
}

other_order()
{
	[[ $(printf '\001\000' | od -An -tu2) -eq 1 ]] || return 0
	echo --big
}

# Only a later perf knows these features.
test_later_features_stay_in_a_pipe()
{
	generate "features 39 and 41" --pipe <<-'END'
		for number, data in ((39, b"thirty-nine"), (41, b"forty-one")):
		    data += bytes(-len(data) % 8)
		    file.more_features += file.record(perfgen.HEADER_FEATURE, file.u64(number) + data)
	END
	run inject -i "$TMP/file" -o -
	grep -a -q 'thirty-nine' "$TMP/stdout" || fail "$CASE: perf inject leaves out feature 39"
	grep -a -q 'forty-one' "$TMP/stdout" || fail "$CASE: perf inject leaves out feature 41"
}

# An event that is shorter than its fields is an error, because its meaning is lost. An event whose
# size is not a multiple of 8 is an error, too: perf must not swap the bytes after it.
test_short_events_of_the_other_byte_order_are_errors()
{
	local order size type status

	order=$(other_order)
	for type in KSYMBOL BPF_EVENT; do
		for size in 8 20 30; do
			generate "$type of $size bytes" ${order:+"$order"} <<-END
				file.odd = file.record(perfgen.$type, bytes($size - 8))
			END
			status=0
			"$PBM_PERF" script --show-bpf-events -i "$TMP/file" >"$TMP/out" 2>&1 || status=$?
			case $status in
			0|134|135|136|139) fail "$CASE: status $status" ;;
			esac
			grep -q -e ': failed to process type: 1[78] ' "$TMP/out" || fail "$CASE: $(cat "$TMP/out")"
		done
	done
}

# Read the cases of $TMP/cases from a pipe, and in the other byte order.
read_as_others()
{
	local order

	order=$(other_order)
	while IFS='|' read -r CASE _; do
		write_case "$CASE" "$TMP/file" --pipe
		check_script "$TMP/file"
		run report --header --stdio -i "$TMP/file"
		check_text
		write_case "$CASE" "$TMP/file" ${order:+"$order"}
		check_script "$TMP/file"
		run report --header-only -i "$TMP/file"
		check_text
	done <"$TMP/cases"
}

test_malformed_files_of_others_are_read()
{
	list_cases
	read_as_others
}

test_what_a_later_perf_refuses_is_read()
{
	LATER=later
	check_cases refused check_refusal
	check_cases ignored check_ignored
	check_cases odd-block check_header
	check_cases info check_header
	check_cases feature check_left_out
	check_cases type check_skipped
	list_cases
	read_as_others
}

test_unknown_types_are_skipped_in_a_directory()
{
	SAMPLES=8
	for CASE in type-next type-far type-last; do
		write_case "$CASE" "$TMP/dir" --dir
		check_script "$TMP/dir" 4
		check_text
	done
}

# check_cut FILE SIZE MESSAGE: truncate FILE to SIZE, and check it like check_script, but faster
check_cut()
{
	local out

	truncate -s "$2" "$1"
	out=$("$PBM_PERF" script --show-bpf-events -i "$1" 2>&1 </dev/null) ||
		fail "cut at $2: perf script ends with status $?: $out"
	[[ $out = *cpu-clock:*cpu-clock:*cpu-clock:*cpu-clock:* ]] || fail "cut at $2: samples are missing: $out"
	[[ $out = *'version = "1.2.3"'* ]] || fail "cut at $2: a good set is missing: $out"
	[[ $out = *$3* ]] || fail "cut at $2: doesn't print '$3': $out"
}

test_a_file_cut_at_each_byte_of_the_block_is_read()
{
	local begin end at message

	write_case good "$TMP/file"
	read -r _ _ begin end <<<"$(malformed marks "$TMP/file")"
	for ((at = end - 1; at >= begin; at--)); do
		message=
		# After the magic, a text and its program take 76 bytes.
		((at <= begin + 8 || (at - begin - 8) % 76 == 0)) || message=': it is broken or too large'
		check_cut "$TMP/file" "$at" "$message"
	done
	check_script "$TMP/file"
}

# A pipe has no block, but unpatched perf inject may have copied one from a file.
test_a_block_in_a_pipe_is_ignored()
{
	generate "a block in a pipe" --pipe <<-'END'
		infos = file.u64(perfgen.PROG_INFO) + file.u32(2) + b"".join(file.infos) + file.block
		file.more_features = file.record(perfgen.HEADER_FEATURE, infos)
		file.with_records = False
	END
	run report --header --stdio -s bpf_metadata -i "$TMP/file"
	check_number "programs in the header" 2 '^# bpf_prog_info [79]: '
	check_number "lines with metadata" 0 '^# bpf_metadata'
	check_number warnings 0 'metadata.* in the header'
	check_number "programs without known metadata" 1 '100.00%  (unknown)'
}

# The pipe ends within the last record.
test_a_pipe_that_is_cut_off_is_read()
{
	write_case good "$TMP/file" --pipe
	truncate -s -8 "$TMP/file"
	check_script "$TMP/file" 1
	grep -q -e 'unexpected end of event stream' "$TMP/out"
	run inject -i "$TMP/file" -o "$TMP/injected"
	check_script "$TMP/injected" 1

	# The pipe ends within the header of an event.
	generate "a pipe cut within a header" --pipe <<-'END'
		end = file.bytes()[:6 - len(file.metadata(perfgen.BETA))]
		file.bytes = lambda: end
	END
	check_script "$TMP/file" 1
	run inject -i "$TMP/file" -o "$TMP/injected"
	check_script "$TMP/injected" 1
}

# The maximum resident size of perf report in KiB
cost_of_header()
{
	run report --header --stdio -s bpf_metadata -i "$1"
	# By default, AddressSanitizer keeps 256 MiB of freed memory.
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:quarantine_size_mb=1 python3 - "$PBM_PERF" report --header --stdio -s bpf_metadata -i "$1" <<-'END'
		import resource, subprocess, sys
		subprocess.run(sys.argv[1:], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
		               stderr=subprocess.DEVNULL)
		print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
	END
}

# check_cost FILE [KIB]: compare the cost with $MEMORY of a good file; KIB more are allowed
check_cost()
{
	local memory

	memory=$(cost_of_header "$1")
	echo "$CASE: $memory KiB; a good file: $MEMORY KiB"
	((memory < MEMORY + ${2:-65536})) || fail "$CASE: $memory KiB of memory"
}

cost_of_a_good_file()
{
	write_case good "$TMP/file"
	MEMORY=$(cost_of_header "$TMP/file")
}

test_what_a_block_claims_costs_nothing()
{
	local claim claims='length=1 length=0x04000000 length=0x04000001 length=0xffffffff nr_progs=0xffffffff'

	cost_of_a_good_file
	for claim in $claims; do
		generate "a block with $claim" <<-END
			file.block = file.make_block($claim)
		END
		check_cost "$TMP/file"
	done
}

# A file with many elements must not take much memory. Each line has the MiB that are allowed, the
# number of elements, and the change to the file.
test_many_small_things_take_little_memory()
{
	local most nr change

	cost_of_a_good_file
	while read -r most nr change; do
		generate "$change, $nr of them" <<-END
			many = range($nr)
			file.block = b""
			$change
		END
		check_cost "$TMP/file" $((most << (${PBM_SANITIZED:-0} ? 11 : 10)))
	done <<-'END'
		96 1000000 file.block = file.make_block([([], many)])
		128 120000 file.block = file.make_texts([(b"%x=\n" % n, [n]) for n in many])
		160 2000000 file.block = file.make_block([([(b"%x" % n, b"") for n in many], [7])])
		64 30000 file.odd = b"".join(file.metadata(perfgen.GAMMA, name=b"%x" % n, tail=b"") for n in many)
	END
}

# generate_shared PROGRAMS SET: generate a file in which this number of programs share the set
generate_shared()
{
	generate "$1 programs with the set $2" <<-END
		file.block = file.make_block([($2, range(1, $1 + 1))])
		file.with_records = False
	END
}

# printed_sizes: sets HEADER_SIZE and JSON_SIZE, the bytes that perf prints of $TMP/file
printed_sizes()
{
	run report --header-only -i "$TMP/file"
	HEADER_SIZE=$(stat -c %s "$TMP/out")
	run data convert --force --to-json "$TMP/json" -i "$TMP/file"
	JSON_SIZE=$(stat -c %s "$TMP/json")
	echo "$CASE: $HEADER_SIZE bytes in the header, $JSON_SIZE in JSON"
}

# 1,024 programs cost 64 KiB each: 128 bytes for the program, 65,408 for its text.
test_a_block_may_cost_64_mib()
{
	local length=65408 set

	set="[(b\"%d\" % n, b\"%c%s%c\" % (34, (248 if n < 356 else 121) * b\"v\", 34)) for n in range(100, 357)]"
	generate_shared 1024 "$set"
	printed_sizes
	((HEADER_SIZE > 1024 * length && HEADER_SIZE < 1024 * 66000)) || fail "not all in the header"
	((JSON_SIZE > 1024 * length && JSON_SIZE < 1024 * 70000)) || fail "not all in JSON"
	generate_shared 1025 "$set"
	printed_sizes
	((HEADER_SIZE < 65536 && JSON_SIZE < 65536)) || fail "more than that is printed"
}

# 1,075 programs in records cost more than 64,640 bytes each, which is too much for a block. perf stops
# to read records then.
test_a_block_that_is_written_costs_no_more()
{
	local number=1075

	generate "$number programs in records" <<-END
		entries = [(b"%063d" % n, 255 * b"v") for n in range(202)]
		progs = [(n + 100, "%016x" % n, "p", 0xffffffffc1000000 + 0x1000 * n) for n in range($number)]
		file.odd = b"".join(file.ksymbol(prog) + file.bpf_event(prog) + file.metadata(prog, entries, tail=b"")
		                    for prog in progs)
		small = (2000, "%016x" % 2000, "small", 0xffffffffc1000000 + 0x1000 * $number)
		file.odd += file.ksymbol(small) + file.bpf_event(small) + file.metadata(small, [(b"last", b"1")])
		file.block = b""
	END
	run inject --bpf-metadata=header -i "$TMP/file" -o "$TMP/injected"
	run report --header-only -i "$TMP/injected"
	! grep -q 'WARNING: .*metadata' "$TMP/out" || fail "perf does not read what it has written: $(head -n 3 "$TMP/out")"
	# 64 MiB are 1,036 times 64,640 bytes and 128 for the program.
	check_number "programs" 1036 '^# bpf_metadata [0-9]*\( p\)\?: 0*='
	check_number "the small program" 0 '^# bpf_metadata 2000'
}

# A large host may have as many programs as this.
test_ten_thousand_programs_with_a_set_are_read()
{
	generate_shared 10000 '[(b"key_%02d" % n, b"1" * 94) for n in range(20)]'
	printed_sizes
	run report --header-only -i "$TMP/file"
	check_number "programs in the header" 10000 '^# bpf_metadata [0-9]*\( [a-z]*\)\?: key_00=1*, .*, key_19=1*$'
	run inject --bpf-metadata=header -i "$TMP/file" -o "$TMP/injected"
	perfdata block "$TMP/injected" >"$TMP/lines"
	(($(wc -l <"$TMP/lines") == 200000)) || fail "perf inject doesn't keep all"
}

# The file has holes, so it needs little space on disk.
test_a_section_is_read_only_as_far_as_its_block_goes()
{
	local magic

	cost_of_a_good_file
	for magic in BPFMETA2 FOREIGN2; do
		generate "a section of 1 GiB with magic $magic" <<-END
			file.section_size = 1 << 30
			file.block = file.make_block(magic=b"$magic")
		END
		truncate -s 1025M "$TMP/file"
		check_cost "$TMP/file"
	done
}

# failed_at TYPE: matches perf's error about an event of this type
failed_at()
{
	echo "failed to process type: $1 \|failed for event of type: [A-Z0-9_]* ($1)"
}

# broken FILE MESSAGE: the file has all its bytes, but too few for an event. That is an error.
broken()
{
	run_to '[1-9]*' report --stdio -i "$1"
	[[ -z $2 ]] || grep -q -e "$2" "$TMP/out" || fail "$CASE: perf report doesn't print $2: $(cat "$TMP/out")"
	grep -q -x 'failed to process sample' "$TMP/out" || fail "$CASE: perf report takes it for whole"
	run_to '[1-9]*' script -i "$1"
	[[ -z $2 ]] || grep -q -e "$2" "$TMP/out" || fail "$CASE: perf script doesn't print $2: $(cat "$TMP/out")"
	rm -rf "$TMP/injected"
	run_to '[1-9]*' inject -i "$1" -o "$TMP/injected"
	run_to '[1-9]*' inject -i "$1" -o -
}

# perf of v5.1 to v5.18 wrote the arrays of bpf_prog_info one after the other.
test_arrays_that_are_not_aligned_are_read()
{
	generate "arrays that aren't aligned" <<-'END'
		info = file.prog_info(perfgen.ALPHA, offsets=(4, 12, 20), data_len=28)
		file.infos[0] = info[:-24] + bytes(4) + info[-24:]
	END
	run report --header-only -i "$TMP/file"
	grep -q '^# bpf_prog_info 7: bpf_prog_0011223344556677_alpha addr 0xffffffffc0001000' "$TMP/out"
}

# PERF_RECORD_SWITCH has only a sample id, which may have fewer fields than that of another evsel.
test_sample_ids_are_those_of_the_event()
{
	generate "fewer sample ids" <<-'END'
		file.events = [(1, perfgen.IDENTIFIER | perfgen.CPU), (2, perfgen.IDENTIFIER)]
		file.odd = file.record(14, file.sample_id())
	END
	check_script "$TMP/file"
	generate "no room for sample ids" <<-'END'
		file.events = [(1, perfgen.IDENTIFIER | perfgen.CPU), (2, perfgen.IDENTIFIER)]
		file.odd = file.record(14, file.u64(2))
	END
	broken "$TMP/file" "$(failed_at 14)"
}

# An event makes the DSO of a user's library a kernel DSO. Then the library gets a sample.
test_a_library_that_becomes_the_kernel_has_no_symbols()
{
	local misc

	# PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_GUEST_KERNEL
	for misc in 1 4; do
		generate "a build ID with misc $misc" --pipe <<-END
			name = b"/bin/true".ljust(12, b"\\0")
			round = file.record(68, b"")
			build_id = file.record(67, file.u32(0xffffffff) + bytes(range(20)) + bytes(4) + name, $misc)
			file.time += 2
			sample = file.u64(0x400010) + file.u32(1, 1) + file.u64(file.time, 1)
			file.odd = file.mmap2(b"/bin/true", file.inode(8, 1, 5, 7), 2) + round + round + build_id + \\
			           file.record(perfgen.SAMPLE, sample, 2)
		END
		run script -i "$TMP/file"
		check_number "samples" 5 " $EVENT: "
		run report --stdio -i "$TMP/file"
		check_number "samples of perf report" 1 '^# Samples: 5 '
	done
}

test_a_kernel_that_ends_beyond_the_address_space_is_read()
{
	generate "a kernel at the end of the address space" <<-'END'
		text, name = 0xffffffffff000000, b"[kernel.kallsyms]_text".ljust(24, b"\0")
		file.first = file.record(1, file.pack("iI", -1, 0) + file.u64(text, 0x1276508, text) + name +
		                         file.sample_id(), perfgen.KERNEL)
	END
	check_script "$TMP/file"
	run report --stdio -i "$TMP/file"
}

# The attribute of the event says that branches are the call stack, but the samples have no
# branches.
test_samples_without_the_branches_of_their_event_are_read()
{
	generate "no branches" <<-'END'
		attr, file.chain = file.attr, [(1 << 64) - 512, 0x400000]
		file.attr = lambda n: attr(n)[:72] + file.u64(1 << 11 | 1) + attr(n)[80:]
	END
	run script -i "$TMP/file"
	check_number "samples" "$SAMPLES" ' 400000 '
	run report --stdio -i "$TMP/file"
	check_number "samples of perf report" 1 "^# Samples: $SAMPLES "
}

test_an_event_with_more_threads_than_it_has_room_for_is_an_error()
{
	generate "too many threads" <<-'END'
		file.odd = file.record(73, file.u64(1 << 24, 1) + bytes(16))
	END
	# Not the status of a signal
	run_to '2??' script -i "$TMP/file"
}

test_a_pipe_that_ends_within_aux_area_data_ends()
{
	generate "a pipe that ends within AUX area data" --pipe <<-'END'
		whole, aux = file.bytes(), file.record(perfgen.AUXTRACE, file.u64(4096, 0, 0) + file.u32(0, 0, 0, 0))
		file.bytes = lambda: whole + aux + bytes(64)
	END
	# Not the status of timeout
	run_to '2??' inject -i "$TMP/file" -o "$TMP/injected"
}

test_errors_of_unknown_types_are_shown()
{
	generate "an error of type 0x80000000" <<-'END'
		error = file.u32(0x80000000, 1, 0, 1, 1, 1) + file.u64(0, 0) + b"message".ljust(64, b"\0")
		file.odd = file.record(72, error)
	END
	check_script "$TMP/file"
}

# perf data convert has no options for a decoder.
test_json_has_no_aux_area_data()
{
	generate "Intel PT" <<-'END'
		file.events = [(1, perfgen.IDENTIFIER)]
		file.first = file.record(70, file.u32(1, 0) + file.u64(1, 0, 0, 0, 0, 0, 0, 0, 0, 1) + bytes(64))
	END
	run data convert --force --to-json "$TMP/json" -i "$TMP/file"
	grep -c '"timestamp"' "$TMP/json" >"$TMP/got"
	perfdata types "$TMP/file" | grep -c -x 9 >"$TMP/want"
	same "number of samples" "$TMP/want" "$TMP/got"
}

test_names_of_build_ids_have_any_length()
{
	generate "a build ID with a long name" <<-'END'
		file.features[2] = file.record(0, file.u32(0xffffffff) + bytes(24) + 20000 * b"x", perfgen.KERNEL)
	END
	run buildid-list -i "$TMP/file"
	check_script "$TMP/file"
}

# Kernels up to at least v6.18 write such events if another perf records build IDs.
test_a_build_id_of_more_than_20_bytes_is_cut()
{
	generate "a build ID of 255 bytes" <<-'END'
		file.odd = file.mmap2(b"/bin/true", b"\xff" + bytes(3) + bytes(range(20)), perfgen.MMAP_BUILD_ID | 2)
	END
	run script --show-mmap-events -i "$TMP/file"
	grep -q ' <000102030405060708090a0b0c0d0e0f10111213>\]: .* /bin/true$' "$TMP/out" || fail "$CASE: $(cat "$TMP/out")"
}

# With MALLOC_PERTURB_, malloc() fills new memory, so that perf finds no NUL there by chance.
test_a_string_without_nul_ends_where_it_says()
{
	generate "a string without NUL" <<-'END'
		file.features[perfgen.HOSTNAME] = file.u32(2000) + 2000 * b"A"
	END
	MALLOC_PERTURB_=90 run report --header-only -i "$TMP/file"
	# Later perfs replace the last character with a NUL.
	grep -a -q -x -E '# hostname : A{1999,2000}' "$TMP/out" ||
		fail "$CASE: $(grep -a '^# hostname' "$TMP/out" | cut -b 2000-)"
}

# The file has BTF, but not the array with the types of the functions.
test_functions_without_types_have_no_names()
{
	generate "no func_info" <<-'END'
		info = bytearray(file.prog_info(perfgen.BETA))
		info[16 + 128:16 + 136] = file.u32(5, 8)
		info[16 + 136:16 + 148] = file.u64(0x1000) + file.u32(1)
		file.infos[1] = bytes(info)
		btf = file.pack("HBB5I", 0xeb9f, 1, 0, 24, 0, 16, 16, 3) + file.u32(1, 1 << 24, 4, 32) + b"\0a\0"
		file.features[perfgen.BTF] = file.u32(1, 5, len(btf)) + btf
	END
	run report --header-only -i "$TMP/file"
	grep -q '^# bpf_prog_info 9: bpf_prog_8899aabbccddeeff' "$TMP/out" || fail "$CASE: $(cat "$TMP/out")"
}

# The topology has an element for each of the CPUs that were known before.
test_the_number_of_cpus_changes_after_their_topology()
{
	generate "more CPUs after the topology" --pipe <<-'END'
		file.events = [(1, perfgen.CPU)]
		file.features[7] = file.u32(1, 1)
		file.features[13] = file.u32(0, 0, 5, 0)
		# Domains of the scheduler, a feature of later perfs
		file.features[32], file.last_feature = file.u32(17, 1, 0, 0), 35
		file.more_features = file.record(perfgen.HEADER_FEATURE, file.u64(7) + file.u32(1000000, 1000000))
		sample = file.u64(perfgen.ALPHA[3]) + file.u32(0, 0) + file.u64(1100) + file.u32(999999, 0) + file.u64(1)
		file.odd = file.record(perfgen.SAMPLE, sample, perfgen.KERNEL)
	END
	run script -i "$TMP/file"
	check_number "samples" 5 " $EVENT: "
	run report --stdio -s socket -i "$TMP/file"
}

test_a_file_without_the_name_of_its_host_is_converted()
{
	generate "no name of the host" <<-'END'
		features = file.feature_bytes
		file.feature_bytes = lambda: {n: data for n, data in features().items()
		                              if n not in (perfgen.HOSTNAME, perfgen.ARCH)}
	END
	run data convert --force --to-json "$TMP/json" -i "$TMP/file"
	python3 -m json.tool "$TMP/json" >/dev/null
}

test_perf_inject_aslr_leaves_no_address_of_a_program()
{
	local option

	for option in --file --pipe; do
		generate "bpf_prog_info, $option" "$option" <<-'END'
			infos = file.u64(perfgen.PROG_INFO) + file.u32(2) + b"".join(file.infos)
			file.more_features = file.record(perfgen.HEADER_FEATURE, infos) if file.pipe else b""
			file.nr_samples = 0
		END
		run inject --aslr -i "$TMP/file" -o "$TMP/injected"
		python3 - "$TMP/file" "$TMP/injected" <<-'END' || fail "$CASE: an address is left"
			import struct, sys
			addr = struct.pack("=Q", 0xffffffffc0001000)
			before, after = (open(name, "rb").read() for name in sys.argv[1:])
			assert addr in before and addr not in after
		END
	done
}

# The copy of kallsyms is sorted by address, and modules are below the kernel.
test_a_copy_of_kallsyms_can_begin_with_modules()
{
	generate "a kernel with its symbols" <<-'END'
		text, name = 0xffff800081000000, b"[kernel.kallsyms]_text".ljust(24, b"\0")
		file.first = file.record(1, file.pack("iI", -1, 0) + file.u64(text, 0x1000000, text) + name +
		                         file.sample_id(), perfgen.KERNEL)
		file.odd = file.sample(text + 0x110)
	END
	cat >"$TMP/kallsyms" <<-END
		ffff80007a000000 t of_module	[module]
		ffff800081000000 T _text
		ffff800081000000 T _stext
		ffff800081000100 T of_kernel
		ffff800081000200 T next_of_kernel
		ffff800081f00000 T _etext
	END
	run script --kallsyms "$TMP/kallsyms" -i "$TMP/file"
	check_number "samples with a symbol of the kernel" 1 ' of_kernel+0x10 '
}

# The end mark of an older perf has a number that a later perf uses for a feature.
test_a_stream_of_an_older_perf_is_read()
{
	local mark

	for mark in 27 30; do
		generate "a stream with mark $mark" --pipe <<-END
			file.last_feature = $mark
		END
		check_script "$TMP/file"
		run report --stdio -i "$TMP/file"
		grep -q '50.00%.*beta' "$TMP/out" || fail "$CASE: no report: $(cat "$TMP/out")"
	done
}

# The length of a PERF_RECORD_READ depends on the read_format of its evsel.
test_a_short_read_of_the_other_byte_order_is_read()
{
	generate "a read of one value" --big <<-'END'
		file.odd = file.record(8, file.u32(1, 2) + file.u64(3) + file.sample_id())
	END
	check_script "$TMP/file"
	run report -D -i "$TMP/file"
	grep -q " PERF_RECORD_READ: 1 2 $EVENT 3\$" "$TMP/out" || fail "$CASE: not swapped: $(grep READ "$TMP/out")"
}

# check_stat STATUS LINE EVENTS COMMAND...: both events of a file, which has these events of
# statistics, have counters. "count" is of the first one. Check the output of COMMAND.
check_stat()
{
	generate "$3" <<-END
		file.events = [(1, perfgen.IDENTIFIER), (2, perfgen.IDENTIFIER)]
		threads = file.record(73, file.u64(2, 1) + bytes(16) + file.u64(2) + bytes(16))
		cpus = file.record(74, file.pack("HHHH", 0, 1, 0, 0))
		whole, per_thread = (file.record(75, file.u64(1, 0, mode)) for mode in (1, 7))
		count = file.record(76, file.u64(1) + file.u32(0, 0) + file.u64(5000000, 1, 1))
		end = file.record(77, file.u64(1, 1000000000))
		file.odd = $3
	END
	run_to "$1" "${@:4}" -i "$TMP/file"
	grep -q -x -e "$2" "$TMP/out" || fail "$CASE: perf $4: $(cat "$TMP/out")"
}

# The first files lack events that perf stat record writes before its rounds.
test_statistics_without_counters_are_an_error()
{
	local events error='Stat round without counters\.'

	for events in end cpus+end threads+end threads+cpus+end threads+cpus+count+end; do
		check_stat '[1-9]*' "$error" "$events" script
		check_stat '[1-9]*' "$error" "$events" stat report
	done
	check_stat '[1-9]*' "$error" per_thread+threads+cpus+count+end stat report
	error='\(Failed to find perf count\|Invalid CPU\) .*'
	for events in count whole+count+end; do
		check_stat '[1-9]*' "$error" "$events" script
		check_stat '[1-9]*' "$error" "$events" stat report
	done
	for events in threads+cpus+whole+count+end whole+threads+cpus+count+end; do
		check_stat 0 ' *0 *1 *5000000 .* cpu-clock *' "$events" script
		check_stat 0 ' *5\.00 msec cpu-clock .*' "$events" stat report
	done
	check_stat 0 ' *-1 *5\.00 msec cpu-clock .*' threads+cpus+per_thread+count+end stat report
	CASE="perf stat record"
	run_to 0 stat record -o "$TMP/stat" -e task-clock,page-faults true
	run script -i "$TMP/stat"
	[[ $(grep -c -E ' (task-clock|page-faults)$' "$TMP/out") = 2 ]] || fail "$CASE: $(cat "$TMP/out")"
}

# arm_spe HEADER_SIZE CPUS PARAMS WORDS: generate a file with the metadata of Arm SPE. The data of
# its CPU has WORDS numbers after the number PARAMS.
arm_spe()
{
	generate "Arm SPE, $*" <<-END
		cpu = [0x1010101010101010, 0, $3, *range($4)]
		file.events = [(1, perfgen.IDENTIFIER)]
		file.first = file.record(70, file.u32(4, 0) + file.u64(2, $1, 1, $2, *cpu))
	END
	run report -D -i "$TMP/file"
	sed -n '/AUXTRACE_INFO type: 4/,/^$/s/^  *\(.*[^ ]\) *:\([0-9a-fx]*\)$/\1 \2/p' "$TMP/out" >"$TMP/got"
}

# Times are converted with PERF_RECORD_TIME_CONV, which the file lacks.
test_samples_beside_arm_spe_without_a_time_conversion_are_read()
{
	arm_spe 4 1 3 3
	check_script "$TMP/file"
	run report --stdio -i "$TMP/file"
	check_number "samples of perf report" 1 "^# Samples: $SAMPLES "
}

test_arm_spe_metadata_is_printed_up_to_its_end()
{
	local params

	for params in 3 1048576; do
		arm_spe 4 1 "$params" 3
		printf '%s\n' 'Header version 2' 'Header size 4' 'PMU type v2 1' 'CPU number 1' \
			'Magic 0x1010101010101010' 'CPU # 0' "Num of params $params" 'MIDR 0x0' 'PMU Type 1' \
			'Min Interval 2' >"$TMP/want"
		same "$CASE" "$TMP/want" "$TMP/got"
	done
	arm_spe 4 2 2 7
	[[ $(grep -c '^Magic ' "$TMP/got") = 2 ]] || fail "$CASE: not two CPUs: $(cat "$TMP/got")"
	# No format has a header of 6 numbers.
	arm_spe 6 1 3 10
	[[ $(sed -n '5s/ .*//p' "$TMP/got") = Magic ]] || fail "$CASE: $(cat "$TMP/got")"
}

# group_of LEADER MEMBERS: a file with two events has this group
group_of()
{
	generate "a group of $2, led by $1" <<-END
		file.events = [(1, perfgen.IDENTIFIER), (2, perfgen.IDENTIFIER)]
		file.features[17] = file.u32(1) + file.string(b"both") + file.u32($1, $2)
	END
	run report --header-only -v -i "$TMP/file"
}

test_groups_have_the_events_that_they_say()
{
	local group

	group_of 0 2
	grep -q -x "# group: both{$EVENT,${EVENT/cpu/task}}" "$TMP/out" || fail "$CASE: $(grep group "$TMP/out")"
	for group in '0 1000' '0 0' '1 2' '2 1'; do
		# shellcheck disable=SC2086 # two numbers
		group_of $group
		grep -q -x 'invalid group desc' "$TMP/out" || fail "$CASE is accepted"
		if grep '^# group: ' "$TMP/out"; then
			fail "$CASE is shown"
		fi
		run report --stdio --group -i "$TMP/file"
		grep -q ' 50.00%.*beta' "$TMP/out" || fail "$CASE: no report: $(cat "$TMP/out")"
	done
}

# The first description makes the second evsel a member, the last one a leader.
test_groups_of_a_stream_are_those_of_its_last_description()
{
	generate "two descriptions of groups" --pipe <<-'END'
		file.events = [(1, perfgen.IDENTIFIER), (2, perfgen.IDENTIFIER)]
		both = file.u32(1) + file.string(b"both") + file.u32(0, 2)
		one = file.u32(1) + file.string(b"one") + file.u32(1, 1)
		file.features[17] = both
		file.more_features = file.record(perfgen.HEADER_FEATURE, file.u64(17) + one)
	END
	run report --stdio --group -i "$TMP/file"
	grep -q ' 50.00%.*beta' "$TMP/out" || fail "$CASE: no report: $(cat "$TMP/out")"
}

# The ids are enough for every slot of the table of ids.
test_a_stream_with_many_ids_is_grouped()
{
	generate "an event with 4,001 ids" --pipe <<-'END'
		file.events = [(1, perfgen.IDENTIFIER), (2, perfgen.IDENTIFIER)]
		attr, ids = file.attr, file.u64(*range(10, 4010))
		file.attr = lambda n: attr(n) + (b"" if n else ids)
	END
	run report --stdio --group -i "$TMP/file"
	grep -q ' 50.00%.*beta' "$TMP/out" || fail "$CASE: no report: $(cat "$TMP/out")"
}

test_descriptions_of_events_have_any_size()
{
	local size

	for size in 64 136 65536; do
		generate "a description of $size bytes" <<-END
			attr = file.attr()[:$size].ljust($size, b"\0")
			file.features[12] = file.u32(1, $size) + attr + file.u32(0) + file.string(b"clock")
		END
		run report --header-only -i "$TMP/file"
		grep -q -e '^# event : name = clock, , type = 1 .*, sample_type = IP|TID|TIME|PERIOD' "$TMP/out" ||
			fail "$CASE: $(cat "$TMP/out")"
	done
}

# topology BYTES: the topology of one CPU has these bytes after the number of strings
topology()
{
	generate "a topology of CPUs" <<-END
		file.features[7] = file.u32(1, 1)
		file.features[13] = file.u32(1) + $1 + file.u32(0) + file.u32(5, 0, 0, 0)
	END
	run report --header-only -I -i "$TMP/file"
}

test_a_topology_without_a_string_is_left_out()
{
	local core='^# CPU 0: Core ID 5, '

	topology 'file.string(b"0-3")'
	grep -q "$core" "$TMP/out" || fail "$CASE: no CPU: $(cat "$TMP/out")"
	grep -q '^# sibling sockets : 0-3$' "$TMP/out" || fail "$CASE: no siblings: $(cat "$TMP/out")"
	topology 'file.u32(0xfffff0)'
	if grep -e "$core" "$TMP/out"; then
		fail "$CASE is shown"
	fi
}

test_ranges_of_cpus_end_where_they_say()
{
	generate "a range of CPUs" <<-'END'
		file.odd = file.record(74, file.pack("HBBHH", 2, 0, 0, 1, 3))
	END
	run report -D -i "$TMP/file"
	grep -q ' PERF_RECORD_CPU_MAP.*: 1-3$' "$TMP/out" || fail "$CASE: $(grep CPU_MAP "$TMP/out")"
	generate "a range of CPUs that ends first" <<-'END'
		file.odd = file.record(74, file.pack("HBBHH", 2, 0, 0, 3, 1))
	END
	run report -D -i "$TMP/file"
	grep -q ' PERF_RECORD_CPU_MAP.*: failed to get cpumap from event$' "$TMP/out" ||
		fail "$CASE: $(grep CPU_MAP "$TMP/out")"
}

# The column is as wide as the longest set, up to a limit for the length of a line.
test_a_column_of_sets_ends_somewhere()
{
	local nr want

	while read -r nr want; do
		generate "a set of $nr keys" <<-END
			entries = [(b"k%d" % n, b'"' + 200 * b"v" + b'"') for n in range(10, 10 + $nr)]
			file.block = file.make_block([(entries, [7])])
		END
		run report --stdio -s bpf_metadata,bpf_prog -i "$TMP/file"
		[[ $(awk '/^# [.]/ { print length($3) }' "$TMP/out") = "$want" ]] ||
			fail "$CASE: not $want wide: $(grep '^# [.]' "$TMP/out")"
	done <<-END
		2 414
		40 4096
	END
}

# The size of one sample is 64 KiB, more than the file has.
size_is_wrong()
{
	generate "a sample with a wrong size" "$@" <<-'END'
		sample = file.sample(perfgen.ALPHA[3])
		file.odd = sample[:6] + file.pack("H", 0xfff8) + sample[8:]
	END
}

test_an_event_with_a_wrong_size_is_an_error()
{
	local order

	order=$(other_order)
	size_is_wrong
	broken "$TMP/file" ""
	size_is_wrong ${order:+"$order"}
	broken "$TMP/file" ""
}

test_an_event_with_a_wrong_size_is_the_error_of_unpatched_perf()
{
	local perf args status

	unpatched_perf
	size_is_wrong
	for args in 'report --stdio' script "inject -o $TMP/injected"; do
		for perf in "$PBM_UNPATCHED_PERF" "$PBM_PERF"; do
			status=0
			# shellcheck disable=SC2086 # several words
			"$perf" $args -i "$TMP/file" >"$TMP/text" 2>&1 </dev/null || status=$?
			drop_tips "$TMP/text"
			# perf report of unpatched perf ends with 0.
			[[ $args = report* ]] || echo "status $status" >>"$TMP/text"
			[[ $perf = "$PBM_PERF" ]] || mv "$TMP/text" "$TMP/want"
		done
		same "perf $args" "$TMP/want" "$TMP/text"
	done
}

# Kernels write some events too long: they add the size of a sample id for each session that
# listens. The additional space keeps the old bytes of the ring buffer. generate_too_long STALE
# EVENTS [OPTION...]: STALE u64 of old bytes; EVENTS are those of perfgen.File.
generate_too_long()
{
	generate "$1 u64 too long, events $2" "${@:3}" <<-END
		from perfgen import IDENTIFIER, CPU
		file.events = [$2]
		# With the NUL, the symbol has one byte more than a multiple of 8.
		perfgen.BETA = (*perfgen.BETA[:2], "gammas", *perfgen.BETA[3:])
		file.stale = file.u64(*range(0x123456789, 0x123456789 + $1))
		file.odd = file.text_poke(perfgen.ALPHA[3], b"\\x90" * 5, b"\\xe9\\1\\2\\3\\4")
	END
}

# read_programs NAME: read $TMP/file. $TMP/NAME.out and $TMP/NAME.injected have the output.
read_programs()
{
	run script --show-bpf-events --show-text-poke-events -i "$TMP/file"
	check_number "samples" "$SAMPLES" " $EVENT: "
	check_number "programs" 5 'PERF_RECORD_\(KSYMBOL\|BPF_EVENT\|TEXT_POKE\)'
	mv "$TMP/out" "$TMP/$1.out"
	run inject -i "$TMP/file" -o "$TMP/$1.injected"
}

# perf reads such events like events of the right size. perf inject writes the right size.
test_events_that_the_kernel_wrote_too_long_are_read()
{
	local events stale option

	for events in '(1, 0)' '(101, IDENTIFIER), (102, IDENTIFIER)' \
		'(101, IDENTIFIER), (102, IDENTIFIER | CPU)' '(101, IDENTIFIER | CPU), (102, IDENTIFIER)'; do
		for option in --little --big --pipe; do
			generate_too_long 0 "$events" "$option"
			read_programs plain
			for stale in 1 3 8; do
				generate_too_long "$stale" "$events" "$option"
				read_programs long
				same "$CASE: perf script" "$TMP/plain.out" "$TMP/long.out"
				cmp "$TMP/plain.injected" "$TMP/long.injected" ||
					fail "$CASE: perf inject writes other bytes"
			done
		done
	done
}

# The size of an event has 16 bits, so a longer name may not fit.
test_an_event_without_room_for_a_longer_name_keeps_its_name()
{
	local size

	for size in 65528 1024; do
		generate "events of $size bytes" <<-END
			file.stale = bytes($size - len(file.ksymbol(perfgen.ALPHA)))
		END
		run inject --bpf-metadata-names=version -i "$TMP/file" -o "$TMP/named"
		run script --show-bpf-events -i "$TMP/named"
		check_number "samples" "$SAMPLES" " $EVENT: "
		check_number "longer names" $((size == 1024 ? 2 : 0)) 'PERF_RECORD_KSYMBOL .*\[version='
	done
}

# Without sample ids, perf cannot tell whether the bytes at the end of an event belong to it.
test_events_without_sample_ids_keep_their_length()
{
	generate "no sample ids, but 16 bytes" <<-'END'
		file.attr_bits = ()
		file.stale = file.u64(1, 2)
	END
	run script --show-bpf-events -i "$TMP/file"
	check_number "samples" "$SAMPLES" " $EVENT: "
	run inject -i "$TMP/file" -o "$TMP/injected"
	perfdata sizes "$TMP/file" >"$TMP/want"
	perfdata sizes "$TMP/injected" >"$TMP/got"
	same "sizes of records" "$TMP/want" "$TMP/got"
}

# PERF_RECORD_TIME_CONV (79) got more fields in v5.10.
test_a_short_time_conversion_of_an_older_perf_is_read()
{
	generate "no TIME_CONV" <<<''
	run report -q --stdio -s sym -F period,sym -i "$TMP/file"
	grep _beta "$TMP/stdout" >"$TMP/want"
	generate "TIME_CONV of 32 bytes" <<-'END'
		file.odd = file.record(79, file.u64(10, 1 << 10, 0))
	END
	run report -q --stdio -s sym -F period,sym -i "$TMP/file"
	grep _beta "$TMP/stdout" >"$TMP/got" || :
	same "samples behind it" "$TMP/want" "$TMP/got"
}

test_an_event_without_room_for_its_build_id_is_an_error()
{
	local size

	for size in 8 32 40; do
		generate "MMAP2 of $size bytes" <<-END
			file.attr_bits += (perfgen.BUILD_ID,)
			file.odd = file.mmap2(b"", bytes([255] * 24), perfgen.MMAP_BUILD_ID, $size)[:$size]
		END
		broken "$TMP/file" "$(failed_at 10)"
	done
}

# A name without NUL is an error; a later perf skips the event. Without sample ids, the name is the
# last field.
test_a_map_whose_name_has_no_nul_is_not_read()
{
	local name want=1

	for name in 'abcdefg\0' abcdefgh; do
		generate "MMAP2 with the name $name" <<-END
			file.attr_bits = ()
			file.odd = file.u32(1, 1) + file.u64(0x400000, 0x1000, 0) + file.inode(8, 1, 5, 7)
			file.odd = file.record(perfgen.MMAP2, file.odd + file.u32(5, 2) + b"$name")
		END
		run_to '@(0|2??)' script --show-mmap-events -i "$TMP/file"
		check_number "maps of perf script" $want 'PERF_RECORD_MMAP2 .* abcdefg'
		want=0
	done
}

# perf makes groups when it reads the end mark of the features. The mark has another number in a later
# perf, and no data. Each line of standard input has the number of the end mark, and other features.
check_grouped()
{
	local last features

	while read -r last features; do
		generate "end mark $last, features $features" --pipe <<-END
			file.events = [(101, perfgen.IDENTIFIER), (102, perfgen.IDENTIFIER)]
			file.features = $features
			file.last_feature = $last
		END
		run report --stdio --group -i "$TMP/file"
		grep -q -E -e "^# Samples: 4 +of events " "$TMP/out" ||
			fail "$CASE: not grouped: $(cat "$TMP/out")"
		run report --stdio --header-only -i "$TMP/file"
		grep -q -x '# hostname : host' "$TMP/out" || fail "$CASE: no header: $(cat "$TMP/out")"
		if grep -e 'Samples' "$TMP/out"; then
			fail "$CASE: more than the header"
		fi
	done
}

test_a_stream_of_a_later_perf_is_grouped()
{
	check_grouped <<-'END'
		32 {}
		33 {}
		40 {39: bytes(8)}
	END
}

test_a_stream_with_the_next_feature_is_grouped()
{
	check_grouped <<<'33 {32: bytes(16)}'
}

# larger_attributes SIZE LAST [OPTION...]: a file with a perf_event_attr of SIZE bytes, of which the
# last one is LAST
larger_attributes()
{
	generate "attributes of $1 bytes, the last is $2" "${@:3}" <<-END
		file.attr_size = $1
		attr = file.attr
		file.attr = lambda n: attr(n)[:-1] + bytes([$2])
	END
}

test_a_file_of_a_later_perf_is_read()
{
	local order size form

	order=$(other_order)
	# The size in v7.2, and sizes that may come
	for size in 144 152 1024; do
		for form in '' --pipe "$order" "$order --pipe"; do
			# shellcheck disable=SC2086 # several words
			larger_attributes "$size" 0 $form
			check_script "$TMP/file"
			run report --stdio -i "$TMP/file"
			check_number "samples of perf report" 1 "^# Samples: $SAMPLES "
			run evlist -i "$TMP/file"
			check_number "events" 1 "^$EVENT\$"
			run inject -i "$TMP/file" -o "$TMP/injected"
			check_script "$TMP/injected"
			run inject -i "$TMP/file" -o -
			cp "$TMP/stdout" "$TMP/injected"
			check_script "$TMP/injected"
		done
	done
}

test_attributes_that_only_a_later_perf_knows_are_refused()
{
	local order form command

	order=$(other_order)
	for form in '' "$order"; do
		for command in 'script' 'report --stdio' "inject -o $TMP/injected" 'inject -o -' 'evlist'; do
			larger_attributes 152 1 ${form:+"$form"}
			# shellcheck disable=SC2086 # several words
			run_to '[1-9]*' $command -i "$TMP/file"
			grep -q -F -e 'ERROR: Events have attributes that only a newer perf knows' "$TMP/out" ||
				fail "$CASE: perf $command: $(cat "$TMP/out")"
		done
	done
}

# Every perf reads such a pipe. "perf inject -o -" copies the attributes unchanged.
test_attributes_in_a_pipe_that_only_a_later_perf_knows_are_ignored()
{
	local order command
	local warning='^WARNING: Events have attributes that only a newer perf knows, they are ignored.$'

	for order in --little --big; do
		generate "later attributes of two events in a pipe" --pipe "$order" <<-'END'
			file.events = [(1, perfgen.IDENTIFIER), (2, perfgen.IDENTIFIER)]
			file.attr_size = 152
			attr = file.attr
			file.attr = lambda n: attr(n)[:-1] + b"\1"
		END
		for command in "inject -o $TMP/injected" 'inject -o -' 'report --stdio' evlist script; do
			# shellcheck disable=SC2086 # several words
			run $command -i "$TMP/file"
			check_number "warnings of perf $command" 1 "$warning"
			[[ $command != 'inject -o -' ]] || mv "$TMP/stdout" "$TMP/piped"
		done
		check_script "$TMP/file"
		check_script "$TMP/piped"
		check_script "$TMP/injected"
		check_number "warnings about what perf inject wrote" 0 "$warning"
	done
}

test_a_wrong_size_of_attributes_is_refused()
{
	generate "wrong size of attributes" <<-'END'
		attr = file.attr
		file.attr = lambda n: attr(n)[:4] + file.u32(1 << 20) + attr(n)[8:]
	END
	run_to '[1-9]*' script -i "$TMP/file"
	grep -x -F 'incompatible file format (rerun with -v to learn more)' "$TMP/out"
	if grep -e 'newer perf' "$TMP/out"; then
		fail "takes a broken file for the file of a newer perf"
	fi
}

run_tests
