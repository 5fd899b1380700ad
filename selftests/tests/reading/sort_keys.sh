#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf report -s bpf_prog and -s bpf_metadata: the cost of each program and each version, compared
# with sums over the raw samples; keys, filters and callchains. A set is all metadata of a program.
# The block is the metadata in the header of perf.data.

. "$(dirname "$0")/../../lib/report-lib.sh"
. "$(dirname "$0")/../../lib/recording.sh"
. "$(dirname "$0")/../../lib/terminal.sh"
few_symbols

# want_programs INDEX...: $TMP/want must have a row for each of these held programs.
want_programs()
{
	local index id

	for index; do
		id=$(sed -n "$((index + 1))p" "$TMP/ids")
		grep "^$id busy"$'\t' "$TMP/want" || fail "no sample in program $id"
	done
}

test_programs_cost_what_their_samples_sum_up_to()
{
	record_once
	cp "$TMP/costs" "$TMP/want"
	want_programs 0 1 2 3
	rows -s bpf_prog -F period,bpf_prog -i "$TMP/all" >"$TMP/got"
	same "cost by program" "$TMP/want" "$TMP/got"
}

test_programs_cost_what_their_functions_cost()
{
	record_once
	cp "$TMP/costs" "$TMP/want"
	rows -s bpf_prog,sym -F period,bpf_prog,sym -i "$TMP/all" >"$TMP/functions"
	awk -F '\t' '{ sub(/[|].*/, "", $1); print $1 "\t" $2 }' "$TMP/functions" | sum_up >"$TMP/got"
	same "cost by program and function" "$TMP/want" "$TMP/got"
	# Each function alone, including functions that are not the main one
	perfdata costs "$TMP/all" | awk -F '\t' '$1 != "N/A" { print $1 " " $2 "|[k] " $3 "\t" $4 }' |
		sort >"$TMP/want"
	(($(wc -l <"$TMP/want") >= 10)) || fail "samples in too few functions: $(cat "$TMP/want")"
	grep -v "^$NOT_BPF" "$TMP/functions" >"$TMP/got"
	same "cost by function" "$TMP/want" "$TMP/got"
	# -s sym does not show programs, but the sum over all BPF functions is the same.
	rows -s sym -F period,sym -i "$TMP/all" | awk -F '\t' -v bpf="$FUNCTION" \
		'$1 ~ bpf { print "all\t" $2 }' | sum_up >"$TMP/got"
	awk -F '\t' '!/^N/ { print "all\t" $2 }' "$TMP/costs" | sum_up >"$TMP/want"
	same "cost of all functions" "$TMP/want" "$TMP/got"
}

# perf script and perf report find a sample's function with different code.
test_all_programs_cost_what_perf_script_shows()
{
	record_once
	"$PBM_PERF" script -F period,ip,sym -G -i "$TMP/all" |
		awk -v bpf="^$FUNCTION" '{ print ($3 ~ bpf ? "BPF" : "N/A") "\t" $1 }' | sum_up >"$TMP/got"
	awk -F '\t' '{ print ($1 == "N/A" ? $1 : "BPF") "\t" $2 }' "$TMP/costs" | sum_up >"$TMP/want"
	same "cost in perf script" "$TMP/want" "$TMP/got"
}

test_programs_with_equal_metadata_share_a_row()
{
	record_once
	costs_by_set "$TMP/all" >"$TMP/want"
	# Other programs of the machine may have sets, too.
	cut -f 1 "$TMP/want" | grep -x -e '(none)' -e "$NOT_BPF" -e 'owner="tests", version=.*' | sort >"$TMP/names"
	printf '%s\n' '(none)' "$NOT_BPF" 'owner="tests", version="1.0"' 'owner="tests", version="2.0"' |
		sort >"$TMP/want-names"
	same "sets" "$TMP/want-names" "$TMP/names"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/all" >"$TMP/got"
	same "cost by set" "$TMP/want" "$TMP/got"
}

test_bpf_metadata_keys_selects_keys()
{
	native_only "the test only reads a shared recording"
	record_once
	costs_by_set "$TMP/all" owner >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys owner -i "$TMP/all" >"$TMP/got"
	same "cost by owner" "$TMP/want" "$TMP/got"
	grep -q '^owner="tests"'$'\t' "$TMP/got" || fail "no row for the owner"

	costs_by_set "$TMP/all" version >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys=version -i "$TMP/all" >"$TMP/got"
	same "cost by version" "$TMP/want" "$TMP/got"

	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys owner --no-bpf-metadata-keys \
		-i "$TMP/all" >"$TMP/got"
	costs_by_set "$TMP/all" >"$TMP/want"
	same "cost by all keys" "$TMP/want" "$TMP/got"
}

# The keys are in the order of the option, not in the order of the set.
test_keys_are_in_the_order_of_the_option()
{
	native_only "the test only reads a shared recording"
	record_once
	costs_by_set "$TMP/all" 'owner|version' >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys owner,version -i "$TMP/all" >"$TMP/got"
	same "cost by owner and version" "$TMP/want" "$TMP/got"

	sed -i -E 's/^(owner=.*), (version=[^\t]*)/\2, \1/' "$TMP/want"
	sort -o "$TMP/want" "$TMP/want"
	grep -q '^version="1.0", owner="tests"'$'\t' "$TMP/want" || fail "no row has both keys"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys version,owner -i "$TMP/all" >"$TMP/got"
	same "cost by version and owner" "$TMP/want" "$TMP/got"
}

test_repeated_and_unknown_keys_and_blanks_are_ignored()
{
	local keys

	native_only "the test only reads a shared recording"
	record_once
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys version,owner -i "$TMP/all" >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys ' version , ,no_such_key,owner,version,' \
		-i "$TMP/all" >"$TMP/got"
	same "keys with blanks" "$TMP/want" "$TMP/got"
	for keys in '' ',' ' , '; do
		if report -s bpf_metadata --bpf-metadata-keys "$keys" -i "$TMP/all" >"$TMP/out" 2>"$TMP/error"; then
			fail "'$keys' is accepted: $(head -n 20 "$TMP/out")"
		fi
		grep -F -x "Bad BPF metadata keys: '$keys'" "$TMP/error" ||
			fail "$(cat "$TMP/error")"
	done
}

# rows_by_config KEYS OPTION...: print the rows with report.bpf-metadata-keys = KEYS in perfconfig.
rows_by_config()
{
	{
		cat "$TMP/perfconfig"
		printf '[report]\n\tbpf-metadata-keys = %s\n' "$1"
	} >"$TMP/perfconfig.keys"
	PERF_CONFIG=$TMP/perfconfig.keys rows -s bpf_metadata -F period,bpf_metadata "${@:2}" -i "$TMP/all"
}

test_keys_of_perfconfig_are_the_default()
{
	native_only "the test only reads a shared recording"
	record_once
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys version -i "$TMP/all" >"$TMP/want"
	rows_by_config version >"$TMP/got"
	same "keys of perfconfig" "$TMP/want" "$TMP/got"
	rows_by_config owner --bpf-metadata-keys version >"$TMP/got"
	same "keys of the command line" "$TMP/want" "$TMP/got"

	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/all" >"$TMP/want"
	rows_by_config owner --no-bpf-metadata-keys >"$TMP/got"
	same "all keys" "$TMP/want" "$TMP/got"
}

test_bpf_metadata_can_be_combined_with_other_sort_keys()
{
	local keys

	native_only "the test only reads a shared recording"
	record_once
	for keys in bpf_metadata,sym comm,bpf_metadata dso,bpf_metadata,bpf_prog; do
		costs_by_set "$TMP/all" >"$TMP/want"
		rows -s "$keys" -F "period,bpf_metadata,${keys/bpf_metadata/comm}" -i "$TMP/all" |
			sed 's/|.*\t/\t/' | sum_up >"$TMP/got"
		same "cost by set with -s $keys" "$TMP/want" "$TMP/got"
	done
}

# Read KEY<TAB>PERIOD, and print KEY<TAB>PERCENT with two digits, as in the column Overhead.
percentages()
{
	awk -F '\t' '{ key[NR] = $1; cost[NR] = $2; sum += $2 }
		END { for (i = 1; i <= NR; i++) printf "%s\t%.2f%%\n", key[i], 100 * cost[i] / sum }' | sort
}

test_overhead_is_the_share_of_all_samples()
{
	native_only "the test only reads a shared recording"
	record_once
	percentages <"$TMP/costs" >"$TMP/want"
	rows -s bpf_prog -i "$TMP/all" >"$TMP/got"
	same "overhead by program" "$TMP/want" "$TMP/got"
}

# A key that is only in --fields is also a sort key.
test_a_key_only_in_fields_is_a_sort_key()
{
	native_only "the test only reads a shared recording"
	record_once
	cp "$TMP/costs" "$TMP/want"
	rows -F period,bpf_prog -i "$TMP/all" >"$TMP/got"
	same "cost by program" "$TMP/want" "$TMP/got"
	costs_by_set "$TMP/all" >"$TMP/want"
	rows -F period,bpf_metadata -i "$TMP/all" >"$TMP/got"
	same "cost by set" "$TMP/want" "$TMP/got"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/records-only" >"$TMP/want"
	rows -F period,bpf_metadata -i "$TMP/records-only" >"$TMP/got"
	same "cost by set of records" "$TMP/want" "$TMP/got"
}

test_top_level_of_a_hierarchy_has_the_sums()
{
	native_only "the test only reads a shared recording"
	record_once
	costs_by_set "$TMP/all" | percentages >"$TMP/want"
	report --hierarchy -s bpf_metadata,bpf_prog,sym -i "$TMP/all" >"$TMP/report"
	# Each level is indented by three more blanks.
	sed -n 's/^ \{1,5\}\([0-9.]*%\)  *\([^ ].*[^ ]\) *$/\2\t\1/p' "$TMP/report" | sort >"$TMP/got"
	same "first level" "$TMP/want" "$TMP/got"
	grep -E -q '^ {6,8}[0-9.]+% +[0-9]+ busy *$' "$TMP/report" || fail "no second level: $(cat "$TMP/report")"
	grep -E -q '^ {9,11}[0-9.]+% +\[k\] bpf_prog_[0-9a-f]*_divide *$' "$TMP/report" ||
		fail "no third level: $(cat "$TMP/report")"
}

# A sample counts if a function of a BPF program is anywhere in its callchain.
test_children_are_counted_by_callchains()
{
	native_only "the test only reads a shared recording"
	record_once
	"$PBM_PERF" script -F period,ip,sym -i "$TMP/all" >"$TMP/chains"
	awk -v bpf="^$FUNCTION" 'function end() { if (has) sum += period; has = 0 }
		NF == 1 { end(); period = $1; next }
		$2 ~ bpf { has = 1 }
		END { end(); printf "%.0f\n", sum }' "$TMP/chains" >"$TMP/part"
	# No program has this key, so all programs are one row.
	"$PBM_PERF" report --stdio --children -g none -t '|' --bpf-metadata-keys no_such_key \
		-s bpf_metadata -F overhead_children,period,bpf_metadata -i "$TMP/all" >"$TMP/report" 2>"$TMP/warning"
	awk 'NF == 1 { sum += $1 } END { printf "%.0f\n", sum }' "$TMP/chains" >"$TMP/total"
	awk -v part="$(cat "$TMP/part")" -v total="$(cat "$TMP/total")" \
		'BEGIN { printf "%.2f%%\n", 100 * part / total }' >"$TMP/want"
	awk -F ' *[|] *' '$3 ~ /^\(none\)/ { sub(/^ */, "", $1); print $1 }' "$TMP/report" >"$TMP/got"
	same "children" "$TMP/want" "$TMP/got"
}

test_callchains_are_shown_below_the_programs()
{
	local key

	native_only "the test only reads a shared recording"
	record_once
	for key in bpf_prog bpf_metadata sym,bpf_metadata; do
		report -s "$key" -i "$TMP/all" | sed -n '/^ *[0-9.]*%/p' | sort >"$TMP/want"
		"$PBM_PERF" report --stdio --no-children -g caller -s "$key" -i "$TMP/all" >"$TMP/report"
		sed -n '/^  \{0,4\}[0-9.]*%/p' "$TMP/report" | sort >"$TMP/got"
		same "rows with callchains by $key" "$TMP/want" "$TMP/got"
		grep -q 'bpf_test_run' "$TMP/report" || fail "no callchain by $key: $(head -n 40 "$TMP/report")"
	done
}

test_tui_shows_the_rows()
{
	local row

	native_only "the test only reads a shared recording"
	record_once
	report -s bpf_prog -i "$TMP/all" | sed -n 's/ *$//; s/^ *\([0-9]*[.][0-9]*%\)  *\(.*\)/\1 +\2/p' >"$TMP/rows"
	[[ -s $TMP/rows ]] || fail "no row"
	open_terminal "$PBM_PERF" report --tui --no-children -g none -s bpf_prog -i "$TMP/all"
	while read -r row; do
		await "row '$row' in the TUI" terminal_shows "^ *$row( |\$)"
	done <"$TMP/rows"
}

# pairs_with TEXT: read pairs of lines, a program and its set; print the pairs whose set has TEXT.
pairs_with()
{
	awk -v part="$1" 'NF { if (first == "") { first = $0; next }
		if (index($0, part)) print first "\n" $0
		first = "" }'
}

hierarchy()
{
	report -q -H -s bpf_prog,bpf_metadata "$@" | sed 's/ *$//; /^$/d'
}

# grep selects the expected rows from the sums over samples, and from perf report without a filter.
test_rows_are_filtered_by_a_part_of_their_text()
{
	local file part

	native_only "the test only reads a shared recording"
	record_once
	for part in 'version="1' 'version="' '=' N/A '(none)' 'no such text'; do
		for file in "$TMP/block-only" "$TMP/records-only" -; do
			rows -s bpf_metadata -F period,bpf_metadata -i "$file" <"$TMP/pipe" |
				grep -F -e "$part" >"$TMP/want" || :
			rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-filter "$part" \
				-i "$file" <"$TMP/pipe" >"$TMP/got"
			same "$part in sets of $file" "$TMP/want" "$TMP/got"
		done
		hierarchy -i "$TMP/all" | pairs_with "$part" >"$TMP/want"
		hierarchy --bpf-metadata-filter "$part" -i "$TMP/all" >"$TMP/got"
		same "$part in a hierarchy" "$TMP/want" "$TMP/got"
	done
	part=$(sed -n '2s/..$//p' "$TMP/ids")
	for part in "$part" 'busy' N/A; do
		grep -F -e "$part" "$TMP/costs" >"$TMP/want"
		rows -s bpf_prog -F period,bpf_prog --bpf-prog-filter "$part" -i "$TMP/all" >"$TMP/got"
		same "$part in programs" "$TMP/want" "$TMP/got"
	done
	rows -s bpf_metadata,comm -F overhead,bpf_metadata --percentage relative \
		--bpf-metadata-filter = -i "$TMP/all" |
		awk -F '\t' '{ sum += $2 } END { exit !(sum > 99.9 && sum < 100.1) }' ||
		fail "the shown rows are not 100 %"
}

test_a_filter_needs_its_column()
{
	local key

	native_only "the test only reads a shared recording"
	record_once
	for key in prog metadata; do
		if report -s sym --bpf-$key-filter x -i "$TMP/all" >"$TMP/out" 2>"$TMP/error"; then
			fail "rows without bpf_$key were filtered: $(head -n 3 "$TMP/out")"
		fi
		grep "bpf-$key-filter needs the sort key bpf_$key: add it to -s" "$TMP/error" ||
			fail "no hint to add the key to -s: $(cat "$TMP/error")"
	done
}

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

# Print the rows of the held programs in file $1, by program and set. Other programs may have equal
# names, and records do not tell these apart.
held_rows()
{
	rows -s bpf_prog,bpf_metadata -F period,bpf_prog,bpf_metadata -i "$1" |
		awk -v held=" ${HELD_IDS[*]} " 'index(held, " " $1 " ")'
}

# Print the input rows whose sets no other program of the machine has.
rows_of_tests()
{
	grep '^owner="tests", '
}

# Files with records, with the block, and with both, and a pipe
test_files_and_pipes_have_the_same_rows()
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
	# A file with only records does not say that a program has no metadata.
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

# Four programs have the same name, and three of them have sets. The one without a set has no record.
test_sets_without_the_block_are_those_of_records()
{
	native_only "the test only reads a shared recording"
	record_once
	rows -s bpf_prog -F period,bpf_prog -i "$TMP/records-only" >"$TMP/got"
	same "programs without the block" "$TMP/costs" "$TMP/got"
	costs_by_set "$TMP/all" >"$TMP/want"
	sed 's/^(none)/(unknown)/' "$TMP/want" | sum_up >"$TMP/want-records"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/records-only" >"$TMP/got"
	same "sets without the block" "$TMP/want-records" "$TMP/got"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/block-only" >"$TMP/got"
	same "sets of the block" "$TMP/want" "$TMP/got"
	rows -s bpf_metadata -F period,bpf_metadata -i - <"$TMP/pipe" >"$TMP/got"
	costs_by_set "$TMP/all" '' "$TMP/pipe" | sed 's/^(none)/(unknown)/' | sum_up >"$TMP/want"
	same "sets of the pipe" "$TMP/want" "$TMP/got"
}

# If perf record did not look for metadata, perf report must not say that there is none.
test_metadata_that_was_not_recorded_is_unknown()
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

# Its records name only functions.
test_files_of_peer_perf()
{
	peer_perf
	hold busy_v2 lazy
	spend 0 20000 1 40000
	"$PBM_PEER_PERF" record -N -q -a -e cpu-clock -o "$TMP/peer" -- "${WORKLOAD[@]}"
	perfdata types "$TMP/peer" >"$TMP/types"
	grep -q -x 84 "$TMP/types" || skip "$PBM_PEER_PERF writes no records"
	costs_by_program "$TMP/peer" >"$TMP/want"
	rows -s bpf_prog -F period,bpf_prog -i "$TMP/peer" >"$TMP/got"
	same "programs" "$TMP/want" "$TMP/got"
	awk -F '\t' '{ print ($1 == "N/A" ? $1 : "(unknown)") "\t" $2 }' "$TMP/want" | sum_up >"$TMP/want-sets"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/peer" >"$TMP/got"
	same "sets" "$TMP/want-sets" "$TMP/got"
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
	sed 's/^(none)/(unknown)/' "$TMP/want-set" | sum_up >"$TMP/want-records"
	mv "$TMP/want-records" "$TMP/want-set"
	want_rows reloaded-records
}

# Record, and fill $TMP/rows. Succeed if a dispatcher, which has few instructions, has a sample.
dispatcher_was_sampled()
{
	record "$TMP/data"
	rows -s bpf_prog,sym -F period,bpf_prog,sym -i "$TMP/data" >"$TMP/rows"
	grep -q -e bpf_dispatcher_ "$TMP/rows"
}

# perf finds dispatchers in kallsyms. This is the last test, because all_symbols lasts until the end
# of the file.
test_dispatchers_belong_to_no_program()
{
	local FREQUENCY=(-F $((15000 / SCALE)))

	all_symbols
	hold dispatched
	spend 0 20000000
	await "a sample in a dispatcher" dispatcher_was_sampled
	if grep -e bpf_dispatcher_ "$TMP/rows" | grep -v "^$NOT_BPF|"; then
		fail "a dispatcher has a program"
	fi
	grep -e "^${HELD_IDS[0]} dispatched|.* bpf_prog_.*_dispatched" "$TMP/rows" ||
		fail "no sample in the program"
}

run_tests
