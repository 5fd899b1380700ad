#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf report, perf diff and perf top -s bpf_prog and bpf_metadata: what each program
# and each version costs, compared with sums over the raw samples.

. "$(dirname "$0")/../../lib/test-lib.sh"


NOT_BPF=N/A
# A symbol that is a function of a BPF program; mawk knows no {16}.
HEX='[0-9a-f]'
FUNCTION="bpf_prog_$HEX$HEX$HEX$HEX$HEX$HEX$HEX$HEX$HEX*_"

# The recordings are the same for all tests of this file: of two versions of a program, one
# without metadata, and one more of the first version, all of the same name.
record_once()
{
	[[ ! -e $TMP/ids ]] || return 0
	hold busy_v1 busy_v2 busy busy_v1
	spend 0 20000 1 60000 2 30000 3 10000
	record "$TMP/all" -g
	record - -g >"$TMP/pipe"
	perfdata strip "$TMP/all" "$TMP/block-only"
	perfdata strip-block "$TMP/all" "$TMP/records-only"
	costs_by_program "$TMP/all" >"$TMP/costs"
	printf '%s\n' "${HELD_IDS[@]}" >"$TMP/ids"
}

# Without the callchains, which hide the rows that a test is to read
report()
{
	"$PBM_PERF" report --stdio --no-children -g none "$@"
}

# The rows of a report whose fields are separated by |: KEY[|KEY...]<TAB>PERIOD
rows()
{
	report -t '|' "$@" >"$TMP/report"
	awk -F ' *[|] *' '/^#/ || /^$/ { next }
		{ gsub(/^ +| +$/, ""); row = $2; for (i = 3; i <= NF; i++) row = row "|" $i; print row "\t" $1 }' \
		"$TMP/report" | sort
}

# KEY<TAB>PERIOD of lines KEY<TAB>PERIOD, each key once; %d of mawk ends at 2^31.
sum_up()
{
	awk -F '\t' '{ sum[$1] += $2 } END { for (key in sum) printf "%s\t%.0f\n", key, sum[key] }' | sort
}

# ID NAME<TAB>PERIOD, as -s bpf_prog has it
costs_by_program()
{
	perfdata costs "$1" | awk -F '\t' '{ print ($1 == "N/A" ? $1 : $1 " " $2) "\t" $4 }' | sum_up
}

# ID<TAB>KEY=VALUE, ... in the order of keys, of those in $2 (ERE)
sets_by_program()
{
	perfdata block "$1" | sort -t $'\t' -k 1,1n -k 4,4 | awk -F '\t' -v keys="^(${2:-.*})$" '
		$4 ~ keys { set[$1] = set[$1] (set[$1] == "" ? "" : ", ") $4 "=" $5 }
		END { for (id in set) print id "\t" set[id] }'
}

# SET<TAB>PERIOD, as -s bpf_metadata has it; the sets are from the block of file
# $1, and may be those of another file $3. What is in the block without any of the keys
# has none, what is not there is unknown.
costs_by_set()
{
	sets_by_program "$1" "${2:-}" >"$TMP/sets"
	perfdata block "$1" >"$TMP/block"
	perfdata without "$1" | cut -f 1 | cat - <(cut -f 1 "$TMP/block") >"$TMP/looked-at"
	perfdata costs "${3:-$1}" | awk -F '\t' '
		FILENAME == ARGV[1] { set[$1] = $2; next }
		FILENAME == ARGV[2] { none[$1]; next }
		$1 == "N/A" { print $1 "\t" $4; next }
		{ print ($1 in set ? set[$1] : $1 in none ? "(none)" : "(unknown)") "\t" $4 }' \
		"$TMP/sets" "$TMP/looked-at" - | sum_up
}

# A row of its own for each of the held programs with these indices
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
	# And each function alone, the main one and the others
	perfdata costs "$TMP/all" | awk -F '\t' '$1 != "N/A" { print $1 " " $2 "|[k] " $3 "\t" $4 }' |
		sort >"$TMP/want"
	(($(wc -l <"$TMP/want") >= 10)) || fail "samples in too few functions: $(cat "$TMP/want")"
	grep -v "^$NOT_BPF" "$TMP/functions" >"$TMP/got"
	same "cost by function" "$TMP/want" "$TMP/got"
	# -s sym knows no programs, but has the same functions in all.
	rows -s sym -F period,sym -i "$TMP/all" | awk -F '\t' -v bpf="$FUNCTION" \
		'$1 ~ bpf { print "all\t" $2 }' | sum_up >"$TMP/got"
	awk -F '\t' '!/^N/ { print "all\t" $2 }' "$TMP/costs" | sum_up >"$TMP/want"
	same "cost of all functions" "$TMP/want" "$TMP/got"
}

# What perf script prints of each sample, by another path of perf
test_all_programs_cost_what_perf_script_shows()
{
	record_once
	"$PBM_PERF" script -F period,ip,sym -G -i "$TMP/all" |
		awk -v bpf="^$FUNCTION" '{ print ($3 ~ bpf ? "BPF" : "N/A") "\t" $1 }' | sum_up >"$TMP/got"
	awk -F '\t' '{ print ($1 == "N/A" ? $1 : "BPF") "\t" $2 }' "$TMP/costs" | sum_up >"$TMP/want"
	same "cost in perf script" "$TMP/want" "$TMP/got"
}

# VALUE<TAB>PERIOD of field $1 of perf script, for the samples of file $2
script_costs()
{
	"$PBM_PERF" script -G -F "period,$1" -i "$2" | sed 's/^ *\([0-9]*\)  *\(.*\)/\2\t\1/' | sum_up
}

# $TMP/want-prog and $TMP/want-set have the costs. There a blank follows the id and each comma.
want_script_costs()
{
	sed 's/^\([0-9]*\) /\1:/' "$TMP/want-prog" | sort >"$TMP/want"
	script_costs bpf_prog "$1" >"$TMP/got"
	same "programs in perf script" "$TMP/want" "$TMP/got"
	sed 's/, /,/g' "$TMP/want-set" | sort >"$TMP/want"
	script_costs bpf_metadata "$1" >"$TMP/got"
	same "sets in perf script" "$TMP/want" "$TMP/got"
}

test_perf_script_tells_the_program_of_each_sample()
{
	record_once
	cp "$TMP/costs" "$TMP/want-prog"
	costs_by_set "$TMP/all" >"$TMP/want-set"
	want_script_costs "$TMP/all"
	want_script_costs "$TMP/block-only"
	# The events tell it, too: in a pipe, and where they are shown.
	costs_by_program "$TMP/pipe" | sed 's/^\([0-9]*\) /\1:/' | sort >"$TMP/want"
	script_costs bpf_prog - <"$TMP/pipe" >"$TMP/got"
	same "programs in a pipe" "$TMP/want" "$TMP/got"
	"$PBM_PERF" script -G -F period,bpf_prog -i "$TMP/all" >"$TMP/want"
	"$PBM_PERF" script -G -F period,bpf_prog --show-bpf-events -i "$TMP/all" |
		grep -v -e PERF_RECORD_ -e '^  entry ' >"$TMP/got"
	same "programs beside events" "$TMP/want" "$TMP/got"
}

# The sample's own program, on the line that the sample begins with
test_perf_script_prints_fields_before_call_chains()
{
	record_once
	"$PBM_PERF" script -F ip,sym,bpf_prog -i "$TMP/all" |
		awk -v bpf="^$FUNCTION" '
			/^ / { prog = $1; next }
			prog != "" { print (($2 ~ bpf) == (prog != "N/A") ? "right" : "wrong"), prog, $0; prog = "" }' >"$TMP/got"
	grep -q "^right ${HELD_IDS[0]:-[0-9]*}:busy " "$TMP/got" || fail "no program: $(head "$TMP/got")"
	if grep '^wrong' "$TMP/got"; then
		fail "not the program of the first address"
	fi
}

# It prints what it knows when it reads the sample.
test_perf_script_says_nothing_wrong_of_sets_that_come_last()
{
	record_once
	script_costs bpf_prog,bpf_metadata "$TMP/all" | cut -f 1 >"$TMP/true"
	script_costs bpf_prog,bpf_metadata "$TMP/records-only" | cut -f 1 >"$TMP/said"
	cut -d ' ' -f 1 "$TMP/true" >"$TMP/want"
	cut -d ' ' -f 1 "$TMP/said" | sort -u >"$TMP/got"
	same "programs" <(sort -u "$TMP/want") "$TMP/got"
	if grep -v -e ' (unknown)$' -e ' (ambiguous)$' "$TMP/said" | grep -v -x -F -f "$TMP/true"; then
		fail "that is not so: $(cat "$TMP/true")"
	fi
}

# With all samples processed before its last record is read
test_perf_script_prints_what_a_pipe_has_told()
{
	made_up <<-'END'
		file = perfgen.File(pipe=True)
		file.block = b""
		file.with_records = False
		file.first = file.metadata(perfgen.ALPHA)
		file.block_events = lambda: 2 * file.record(68, b"") + file.metadata(perfgen.BETA)
	END
	printf ' %s\n' '7:alpha answer=42,version="1.2.3"' '7:alpha answer=42,version="1.2.3"' \
		'9:beta (unknown)' '9:beta (unknown)' >"$TMP/want"
	"$PBM_PERF" script -F bpf_prog,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "fields of a stream in a file" "$TMP/want" "$TMP/got"
	"$PBM_PERF" script -F bpf_prog,bpf_metadata -i - <"$TMP/made-up" >"$TMP/got"
	same "fields of standard input" "$TMP/want" "$TMP/got"
	# shellcheck disable=SC2002 # a pipe is something else than a file
	cat "$TMP/made-up" | "$PBM_PERF" script -F bpf_prog,bpf_metadata >"$TMP/got"
	same "fields of a pipe" "$TMP/want" "$TMP/got"
}

# For awk, and each value is JSON still.
test_fields_of_perf_script_are_words()
{
	made_up <<-'END'
		spaced = [(b"owner", br'"net  \" team, eu\\"'), (b"size", b"[1,{\"a b\":2}]")]
		perfgen.ALPHA = perfgen.ALPHA[:4] + (spaced,)
		file.block = file.make_block([(spaced, [7]), (perfgen.BETA[4], [9])])
	END
	"$PBM_PERF" script -F ip,bpf_metadata,bpf_prog,period -i "$TMP/made-up" >"$TMP/out"
	awk 'NF != 4 { print "not four words: " $0 } $2 == "7:alpha" { print $3 }' "$TMP/out" | sort -u >"$TMP/got"
	cat >"$TMP/want" <<-'END'
		owner="net\u0020\u0020\"\u0020team,\u0020eu\\",size=[1,{"a\u0020b":2}]
	END
	same "metadata" "$TMP/want" "$TMP/got"
}

# Neither a program nor a block is in the file.
test_perf_script_needs_no_programs()
{
	record "$TMP/no-programs" --no-bpf-event
	"$PBM_PERF" script -F bpf_prog,bpf_metadata -i "$TMP/no-programs" | sort -u >"$TMP/got"
	echo " $NOT_BPF $NOT_BPF" >"$TMP/want"
	same "fields" "$TMP/want" "$TMP/got"
}

test_perf_script_prints_the_fields_when_asked()
{
	record_once
	"$PBM_PERF" script -i "$TMP/all" >"$TMP/want"
	if grep -e "$NOT_BPF" -e '[0-9]:busy' -e 'owner=' "$TMP/want"; then
		fail "the fields are in the default output"
	fi
	"$PBM_PERF" script -F +bpf_prog,+bpf_metadata,-bpf_prog,-bpf_metadata -i "$TMP/all" >"$TMP/got"
	same "output without the fields" "$TMP/want" "$TMP/got"
	"$PBM_PERF" script -F +bpf_prog,+bpf_metadata -i "$TMP/all" |
		sed "s@^\(.*: \) \($NOT_BPF $NOT_BPF\|[0-9]*:[^ ]* \(([a-z]*)\|[a-z_]*=.*\)\)\$@\1@" >"$TMP/got"
	same "output with the fields taken out" "$TMP/want" "$TMP/got"
}

test_programs_with_equal_sets_fold_together()
{
	record_once
	costs_by_set "$TMP/all" >"$TMP/want"
	# Programs of others may have sets, too.
	cut -f 1 "$TMP/want" | grep -x -e '(none)' -e "$NOT_BPF" -e 'owner="tests", version=.*' | sort >"$TMP/names"
	printf '%s\n' '(none)' "$NOT_BPF" 'owner="tests", version="1.0"' 'owner="tests", version="2.0"' |
		sort >"$TMP/want-names"
	same "sets" "$TMP/want-names" "$TMP/names"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/all" >"$TMP/got"
	same "cost by set" "$TMP/want" "$TMP/got"
}

test_keys_choose_what_counts_and_shows()
{
	native_only "it reads the file of another test"
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

# In which of two orders the keys are asked for, and which one they have in the set
test_keys_stand_as_they_were_asked_for()
{
	native_only "it reads the file of another test"
	record_once
	costs_by_set "$TMP/all" 'owner|version' >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys owner,version -i "$TMP/all" >"$TMP/got"
	same "cost by owner and version" "$TMP/want" "$TMP/got"

	sed -i -E 's/^(owner=.*), (version=[^\t]*)/\2, \1/' "$TMP/want"
	sort -o "$TMP/want" "$TMP/want"
	grep -q '^version="1.0", owner="tests"'$'\t' "$TMP/want" || fail "no row has both"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys version,owner -i "$TMP/all" >"$TMP/got"
	same "cost by version and owner" "$TMP/want" "$TMP/got"
}

test_keys_count_once_and_without_blanks()
{
	local keys

	native_only "it reads the file of another test"
	record_once
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys version,owner -i "$TMP/all" >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys ' version , ,owner,version,' \
		-i "$TMP/all" >"$TMP/got"
	same "keys with blanks" "$TMP/want" "$TMP/got"
	for keys in '' ',' ' , '; do
		if report -s bpf_metadata --bpf-metadata-keys "$keys" -i "$TMP/all" >"$TMP/out" 2>"$TMP/error"; then
			fail "'$keys' is accepted: $(head -n 20 "$TMP/out")"
		fi
		grep -F -x -e "No key of BPF metadata in '$keys'" -e "Not keys of BPF metadata: '$keys'" "$TMP/error" ||
			fail "$(cat "$TMP/error")"
	done
}

# perf report with report.bpf-metadata-keys = $1 in perfconfig
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
	native_only "it reads the file of another test"
	record_once
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys version -i "$TMP/all" >"$TMP/want"
	rows_by_config version >"$TMP/got"
	same "keys of perfconfig" "$TMP/want" "$TMP/got"
	rows_by_config owner --bpf-metadata-keys version >"$TMP/got"
	same "keys of the command line" "$TMP/want" "$TMP/got"

	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/all" >"$TMP/want"
	rows_by_config owner --no-bpf-metadata-keys >"$TMP/got"
	same "all keys" "$TMP/want" "$TMP/got"

	# It is for all files, so nobody is warned of one without the key.
	rows_by_config no_such_key 2>"$TMP/warning" >"$TMP/got"
	[[ ! -s $TMP/warning ]] || fail "a warning of keys in perfconfig: $(cat "$TMP/warning")"
}

want_warnings()
{
	printf "WARNING: No BPF program has metadata with the key '%s'\n" "$@" >"$TMP/want"
}

test_unknown_keys_are_warned_of()
{
	native_only "it reads the file of another test"
	record_once
	costs_by_set "$TMP/all" owner >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys owner,no_such_key,nor_this \
		-i "$TMP/all" 2>"$TMP/warning" >"$TMP/got"
	same "cost by owner" "$TMP/want" "$TMP/got"
	want_warnings no_such_key nor_this
	same "warning" "$TMP/want" "$TMP/warning"
	rows -s bpf_metadata -F period,bpf_metadata --bpf-metadata-keys owner,version -i "$TMP/all" \
		2>"$TMP/warning" >"$TMP/got"
	[[ ! -s $TMP/warning ]] || fail "a warning of known keys: $(cat "$TMP/warning")"
}

test_combine_with_other_keys()
{
	local keys

	native_only "it reads the file of another test"
	record_once
	for keys in bpf_metadata,sym comm,bpf_metadata dso,bpf_metadata,bpf_prog; do
		costs_by_set "$TMP/all" >"$TMP/want"
		rows -s "$keys" -F "period,bpf_metadata,${keys/bpf_metadata/comm}" -i "$TMP/all" |
			sed 's/|.*\t/\t/' | sum_up >"$TMP/got"
		same "cost by set with -s $keys" "$TMP/want" "$TMP/got"
	done
}

# The first column is the overhead: in percent, of two digits.
percentages()
{
	awk -F '\t' '{ key[NR] = $1; cost[NR] = $2; sum += $2 }
		END { for (i = 1; i <= NR; i++) printf "%s\t%.2f%%\n", key[i], 100 * cost[i] / sum }' | sort
}

test_overhead_is_the_share_of_all_samples()
{
	native_only "it reads the file of another test"
	record_once
	percentages <"$TMP/costs" >"$TMP/want"
	rows -s bpf_prog -i "$TMP/all" >"$TMP/got"
	same "overhead by program" "$TMP/want" "$TMP/got"
}

# A key that is among the fields only sorts as well.
test_fields_fold_without_sort()
{
	native_only "it reads the file of another test"
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

test_hierarchy_has_the_sums_on_top()
{
	native_only "it reads the file of another test"
	record_once
	costs_by_set "$TMP/all" | percentages >"$TMP/want"
	report --hierarchy -s bpf_metadata,bpf_prog,sym -i "$TMP/all" >"$TMP/report"
	# A level is indented by three more blanks.
	sed -n 's/^ \{1,5\}\([0-9.]*%\)  *\([^ ].*[^ ]\) *$/\2\t\1/p' "$TMP/report" | sort >"$TMP/got"
	same "first level" "$TMP/want" "$TMP/got"
	grep -E -q '^ {6,8}[0-9.]+% +[0-9]+ busy *$' "$TMP/report" || fail "no second level: $(cat "$TMP/report")"
	grep -E -q '^ {9,11}[0-9.]+% +\[k\] bpf_prog_[0-9a-f]*_divide *$' "$TMP/report" ||
		fail "no third level: $(cat "$TMP/report")"
}

# The samples with a function of a BPF program anywhere in the chain count for it.
test_children_are_counted_by_callchains()
{
	native_only "it reads the file of another test"
	record_once
	"$PBM_PERF" script -F period,ip,sym -i "$TMP/all" >"$TMP/chains"
	awk -v bpf="^$FUNCTION" 'function end() { if (has) sum += period; has = 0 }
		NF == 1 { end(); period = $1; next }
		$2 ~ bpf { has = 1 }
		END { end(); printf "%.0f\n", sum }' "$TMP/chains" >"$TMP/part"
	# With a key that nobody has, all programs are one.
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

	native_only "it reads the file of another test"
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

	native_only "it reads the file of another test"
	record_once
	report -s bpf_prog -i "$TMP/all" | sed -n 's/ *$//; s/^ *\([0-9]*[.][0-9]*%\)  *\(.*\)/\1 +\2/p' >"$TMP/rows"
	[[ -s $TMP/rows ]] || fail "no row"
	open_terminal "$PBM_PERF" report --tui --no-children -g none -s bpf_prog -i "$TMP/all"
	while read -r row; do
		await "row '$row' in the TUI" terminal_shows "^ *$row( |\$)"
	done <"$TMP/rows"
}

# Two programs, and in their sets umlauts, or $1 times characters of two columns, one and none
made_up_wide()
{
	made_up <<-END
		file.block = file.make_block([([(b"team", '"Gr\u00f6\u00dfe"'.encode())], [7]),
		                              ([(b"team", ('"' + "\u6771\u4eac e\u0301" * $1 + '"').encode())], [9])])
	END
}

# The rows on standard input in which each column begins under that of the first row: print
# their number. Of a column only its text is given, as an ERE.
count_aligned()
{
	python3 - "$@" <(cat) <<-'END'
		import re, sys, unicodedata

		def width(text):
		    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
		               for c in text)

		rows = set()
		for line in open(sys.argv[-1], encoding="utf-8"):
		    found = [re.search(column, line) for column in sys.argv[1:-1]]
		    if all(found):
		        rows.add((tuple(width(line[:at.start()]) for at in found), line))
		if len({begins for begins, _ in rows}) > 1:
		    sys.exit("\n".join(line.rstrip() for _, line in rows))
		print(len(rows))
	END
}

test_columns_align_whatever_characters_are_in_them()
{
	local aligned

	made_up_wide 200
	"$PBM_PERF" report --stdio -F overhead,bpf_metadata,bpf_prog,sym -i "$TMP/made-up" >"$TMP/report"
	grep -q 'team="東京 e.*" *9 beta *\[k\] .*_beta *$' "$TMP/report" || fail "not all of it"
	aligned=$(count_aligned 'team=' '[79] [ab]' '\[k\] ' <"$TMP/report") || fail "columns are not aligned"
	[[ $aligned = 2 ]] || fail "$aligned rows"
	# The underline is as long as what is longest.
	grep -q '^# [.]*  [.]\{1207\}  ' "$TMP/report" || fail "the column is not as wide as its text"

	# As many columns as there are, and no half of a character
	"$PBM_PERF" report --stdio -F bpf_metadata,bpf_prog -w 8,8 -i "$TMP/made-up" >"$TMP/report"
	grep -v '^#' "$TMP/report" | sed -n 's/^  *\(team="[^ ]*\)  *\([79]\) .*/\2 \1/p' | sort >"$TMP/got"
	printf '%s\n' '7 team="Gr' '9 team="東' >"$TMP/want"
	same "cut columns" "$TMP/want" "$TMP/got"
}

# The terminal shows that line, if need be after one more of these keys
press_for()
{
	terminal_shows "$2" || {
		press "$1"
		return 1
	}
}

test_tui_aligns_columns()
{
	local aligned

	made_up_wide 3
	export LC_ALL=C.UTF-8
	open_terminal "$PBM_PERF" report --tui -F overhead,bpf_metadata,bpf_prog,sym -i "$TMP/made-up"
	await "the rows" press_for Up 'team="東京 e.*" *9 beta *\[k\] .*_beta '
	aligned=$(count_aligned 'team=' '[79] [ab]' '\[k\] ' <"$TMP/screen") || fail "columns are not aligned"
	[[ $aligned = 2 ]] || fail "$aligned rows"
}

# The first key does that, and no more. Then there is a scroll bar, beside empty rows, too.
show_cursor()
{
	await "the cursor" press_for Up '^ +[^ ]$'
}

# Below the first line there are titles and two rows that begin so.
screen_begins()
{
	terminal_shows '' && [[ $(sed -n '2,4{s/^ *//; s/ .*//; p}' "$TMP/screen" | tr '\n' ' ') =~ ^$1\ $2\ $2\ $ ]]
}

# A symbol of 360 bytes, wider than the terminal, that tells each place in it, and another;
# no records, which the unpatched perf may refuse. $1 is what else the file has.
made_up_symbol()
{
	made_up <<-END
		perfgen.ALPHA = (*perfgen.ALPHA[:2], "".join(f"_{i:04}" for i in range(67)), *perfgen.ALPHA[3:])
		file.with_records = False
		${1:-}
	END
}

# The screens of this perf, to $2
move_by_columns()
{
	local key title row

	open_terminal "$1" report --tui -s sym,dso,comm -i "$TMP/made-up"
	show_cursor
	: >"$2"
	# The last arrow to the right finds no more columns.
	while read -r key title row; do
		press "$key"
		await "$title after $key" screen_begins "$title" "$row"
		# The last line can have a tip, which is another one each time.
		sed '$d' "$TMP/screen" >>"$2"
	done <<-'END'
		Right Symbol \[k]
		Right Shared bpf_prog_.*
		Right Command [^ ]*
		Right Command [^ ]*
		Left Shared bpf_prog_.*
		Left Symbol \[k]
		Left Overhead 50.00%
	END
	close_terminal
}

test_tui_moves_by_columns_however_wide_they_are()
{
	made_up_symbol
	move_by_columns "$PBM_PERF" "$TMP/got"
	[[ ${PBM_UNPATCHED_PERF:-} ]] || skip "PBM_UNPATCHED_PERF is not set"
	move_by_columns "$PBM_UNPATCHED_PERF" "$TMP/want"
	same "screens" "$TMP/want" "$TMP/got"
}

test_tui_scrolls_to_the_end_of_long_values()
{
	local options

	made_up_wide 400
	export LC_ALL=C.UTF-8
	for options in "-F overhead,bpf_metadata" "-F overhead,bpf_metadata,bpf_prog" \
		"--hierarchy -s bpf_metadata" "--hierarchy -s bpf_metadata,bpf_prog"; do
		# shellcheck disable=SC2086 # they are several
		open_terminal "$PBM_PERF" report --tui $options -i "$TMP/made-up"
		show_cursor
		press Right
		await "the column, $options" terminal_shows '^[ +]*team="東京 e'
		terminal_shows '^ *BPF Metadata' || fail "no title, $options"
		await "the end, $options" press_for '>' '^[^=]*京 e[^=]*" '
		! terminal_shows 'BPF Metadata' || fail "the title does not scroll, $options"
		# There is nothing to the right of the end, and from here a step back is seen.
		press '>'
		press '<'
		await "a step back, $options" terminal_shows '^[^="]*京 e[^="]*$'
		await "the beginning again, $options" press_for '<' '^[ +]*team="東京 e'
		# Another column is shown from its beginning.
		press '>'
		await "scrolled again, $options" terminal_shows '^[^="]*京 e[^="]*$'
		press Left
		await "the first column, $options" terminal_shows '[50.]+% +team="東京 e'
		press Right
		await "the second column, $options" terminal_shows '^[ +]*team="東京 e'
		close_terminal
	done
}

shows_lines()
{
	terminal_shows "$2" && [[ $(grep -E -c "$2" "$TMP/screen") = "$1" ]]
}

test_tui_scrolls_callchains()
{
	made_up_symbol 'file.chain = [perfgen.ALPHA[3] + 32]'
	open_terminal "$PBM_PERF" report --tui --no-children -g caller -s sym -i "$TMP/made-up"
	show_cursor
	press E
	await "the callchain" terminal_shows '^ +bpf_prog_[0-9a-f]*__0000_'
	press Right
	await "the column" terminal_shows '^[-] \[k\] bpf_prog_[0-9a-f]*__0000'
	press '>'
	# Of the row and of the callchain below it
	await "the middle" shows_lines 4 '^[0-9]*_00[0-9_]*[^0-9_ ]$'
}

# perf misses a SIGWINCH that comes while it draws: ui__getch() waits for the next one.
resized_terminal_shows()
{
	terminal_shows "$1" && return
	kill -WINCH "$(tmux -S "$TMP/tmux" display-message -p '#{pane_pid}')"
	return 1
}

test_tui_shows_the_same_place_when_it_is_resized()
{
	local begin columns

	made_up_symbol
	open_terminal "$PBM_PERF" report --tui -s sym,dso,comm -i "$TMP/made-up"
	show_cursor
	press Right
	await "the symbol" screen_begins Symbol '\[k]'
	press '>'
	await "a step to the right" terminal_shows '^[0-9]*_00[0-9_]*'
	begin=$(grep -m 1 -o '^[0-9]*_00[0-9_]*' "$TMP/screen" | cut -c 1-30)
	# The last character is of the scroll bar. On a wide screen there is room for all.
	for columns in 80 300 380 200; do
		resize_terminal "$columns"
		await "$columns columns" resized_terminal_shows "^$begin.{$((columns - 31))}[^0-9_ ]\$"
	done

	press Right
	await "the next column" screen_begins Shared 'bpf_prog_.*'
	for columns in 80 300 380 200; do
		resize_terminal "$columns"
		await "the next column, $columns columns" resized_terminal_shows "^bpf_prog_.{$((columns - 10))}[^0-9_ ]\$"
	done
}

hides()
{
	! terminal_shows "$1"
}

# The terminal has this row and not that one.
only_row()
{
	terminal_shows "% +$1" && ! terminal_shows "% +$2"
}

both_rows()
{
	terminal_shows "% +$1" && terminal_shows "% +$2"
}

# Into row $2 by the entry $4 of the menu, after as many others as $5, and out of it by ESC;
# the other row is $3. $1 are options.
zoom_in_and_out()
{
	# shellcheck disable=SC2086 # they are several
	open_terminal "$PBM_PERF" report --tui $1 -i "$TMP/made-up"
	await "the rows, $1" press_for Up "% +$2"
	await "both rows, $1" both_rows "$2" "$3"
	# The first key shows the cursor, at the top. The rows have the same cost.
	press Up
	[[ $(grep -E -m 1 '% +[^ ]' "$TMP/screen") =~ $2 ]] || press Down
	press m
	await "the menu, $1" terminal_shows "^Zoom into $4 "
	[[ $5 = 0 ]] || press Down
	press Enter
	await "one row, $1" only_row "$2" "$3"
	press m
	await "the menu again, $1" terminal_shows "^Zoom out of $4 "
	press Escape
	await "one row again, $1" only_row "$2" "$3"
	press Escape
	await "both rows again, $1" both_rows "$2" "$3"
	# There is no zoom left.
	press Escape
	await "the question, $1" terminal_shows 'really want to exit'
	close_terminal
}

test_tui_zooms_into_a_row()
{
	local set='answer=42, version="1.2.3"' other='version="2.0"' both='-F overhead,bpf_prog,bpf_metadata'

	made_up </dev/null
	zoom_in_and_out "$both" "7 alpha +$set" "9 beta +$other" 'BPF program 7 alpha' 0
	zoom_in_and_out "$both" "7 alpha +$set" "9 beta +$other" "BPF metadata $set" 1
	# What the option shows is there again when the zoom ends.
	zoom_in_and_out "$both --bpf-metadata-filter =" "7 alpha +$set" "9 beta +$other" 'BPF program 7 alpha' 0
	zoom_in_and_out "--hierarchy -s bpf_prog" '7 alpha' '9 beta' 'BPF program 7 alpha' 0
	zoom_in_and_out "--hierarchy -s bpf_metadata" "$set" "$other" "BPF metadata $set" 0
}

test_tui_zooms_into_equal_sets_only()
{
	made_up <<-'END'
		file.block = file.make_block([([(b"a", b"1")], [7]), ([(b"a", b"1"), (b"b", b"2")], [9])])
	END
	zoom_in_and_out '-F overhead,bpf_metadata,bpf_prog' 'a=1 +7 alpha' 'a=1, b=2 +9 beta' 'BPF metadata a=1' 1
}

# The menu of the current row offers this zoom and no other into BPF; none if there is no $1
offers_zoom()
{
	terminal_shows '^Exit ' || return
	grep -o '^Zoom into BPF [a-z]*' "$TMP/screen" >"$TMP/offered" || :
	[[ $(cat "$TMP/offered") = "${1:+Zoom into BPF $1}" ]]
}

# A row of another level may be of several programs and sets.
test_tui_zooms_from_rows_of_that_level_only()
{
	local offer

	made_up </dev/null
	open_terminal "$PBM_PERF" report --tui --hierarchy -s cpu,bpf_metadata,bpf_prog -i "$TMP/made-up"
	show_cursor
	press E
	await "what is below them" both_rows '[79] (alpha|beta)' 'version="2.0"'
	for offer in '' metadata program; do
		press m
		await "the menu with ${offer:-no zoom}" offers_zoom "$offer"
		press Escape
		await "the rows without the menu" hides '^Exit '
		press Down
	done
	press Up
	press m
	await "the menu with the program" terminal_shows '^Zoom into BPF program'
	press Enter
	await "the cpu of the program" terminal_shows '^[+] +100[.]00%'
	press m
	await "the way out" terminal_shows '^Zoom out of BPF program'
}

# Each of these files in $TMP has the rows of want-prog and want-set.
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

# By program and set, of the held programs: records can't tell others of one name apart.
held_rows()
{
	rows -s bpf_prog,bpf_metadata -F period,bpf_prog,bpf_metadata -i "$1" |
		awk -v held=" ${HELD_IDS[*]} " 'index(held, " " $1 " ")'
}

# Those of the sets that only the tests have
rows_of_tests()
{
	grep '^owner="tests", '
}

# Of any writer: with records, with the block, with both, or a pipe.
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
	# Nobody says of a program without records that it was looked at.
	held_rows "$TMP/both" | sed 's/|(none)/|(unknown)/' >"$TMP/want"
	(($(wc -l <"$TMP/want") == 3)) || fail "a program has no row"
	held_rows "$TMP/writer-records" >"$TMP/got"
	same "rows of records" "$TMP/want" "$TMP/got"

	# A pipe is a recording of its own, of programs with the same ids and sets. Nothing
	# tells the sets of other programs that run only then.
	costs_by_program "$TMP/writer-pipe" >"$TMP/want"
	rows -s bpf_prog -F period,bpf_prog -i - <"$TMP/writer-pipe" >"$TMP/got"
	same "programs in a pipe" "$TMP/want" "$TMP/got"
	costs_by_set "$TMP/both" "" "$TMP/writer-pipe" | rows_of_tests >"$TMP/want"
	(($(wc -l <"$TMP/want") == 2)) || fail "not two versions in the pipe: $(cat "$TMP/want")"
	rows -s bpf_metadata -F period,bpf_metadata -i - <"$TMP/writer-pipe" | rows_of_tests >"$TMP/got"
	same "sets in a pipe" "$TMP/want" "$TMP/got"
}

# Four programs of one name, of which three have sets: the names in the records don't
# tell whose they are, the ids in the block do.
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

# The pairs of lines, a program and its set, of which the second has text $1
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

# Before grep, the texts are those of the sums over samples, and of perf without a filter.
test_rows_are_filtered_by_a_part_of_their_text()
{
	local file part

	native_only "it reads the file of another test"
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
		fail "not relative to what is shown"
}

test_a_filter_needs_its_column()
{
	local key

	native_only "it reads the file of another test"
	record_once
	for key in prog metadata; do
		if report -s sym --bpf-$key-filter x -i "$TMP/all" >"$TMP/out" 2>"$TMP/error"; then
			fail "rows without bpf_$key were filtered: $(head -n 3 "$TMP/out")"
		fi
		grep "bpf-$key-filter needs the sort key bpf_$key: add it to -s" "$TMP/error" ||
			fail "not told what to do: $(cat "$TMP/error")"
	done
}

# A file that is made up; what changes "file" is read from standard input.
made_up()
{
	{
		echo 'import sys, perfgen'
		echo 'file = perfgen.File()'
		cat
		echo 'file.write(sys.argv[1])'
	} >"$TMP/made-up.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/made-up.py" "$TMP/made-up"
}

# Without the other builds there is one program of the name, and it need not be the
# one that had the set: but as many sets as programs, and all equal, is enough.
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

	# There may be more programs where perf inject does not look.
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

# perf record writes the set that a program has at first, and again if it has grown.
test_the_last_set_of_a_program_counts()
{
	made_up <<-'END'
		file.block = b""
		file.first = file.metadata(perfgen.ALPHA, perfgen.ALPHA[4][:1])
	END
	printf '%s\t2\n' 'answer=42, version="1.2.3"' 'version="2.0"' >"$TMP/want"
	rows -s bpf_metadata -F period,bpf_metadata -i "$TMP/made-up" >"$TMP/got"
	same "sets of records" "$TMP/want" "$TMP/got"

	# The last one fills more than a record.
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

# The events of the program that the other set belongs to can be lost. A record with other keys
# is not the rest of a set that had room in the one before.
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

# By perf record when it starts, and by the kernel.
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

# The set may be that of a program whose BPF_EVENT was lost: before those of another
# program that loads, or after all of them.
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

# A program that is interpreted has the address of a function of the kernel.
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

# With $1, the rows of the file that is made up have these children.
want_children()
{
	"$PBM_PERF" report --stdio --children -g none -t '|' -s "$1" \
		-F "overhead_children,overhead,$1" -i "$TMP/made-up" >"$TMP/report"
	awk -F '[|]' '!/^#|^$/ { gsub(/ /, "", $1); print $1 }' "$TMP/report" >"$TMP/got"
	printf '%s\n' "${@:2}" >"$TMP/want"
	same "children by $1" "$TMP/want" "$TMP/got"
}

# Programs with the same set are one row: in a call chain of two they count once.
test_children_of_a_row_count_each_sample_once()
{
	local sets

	for sets in 'perfgen.ALPHA[4]' '[]'; do
		made_up <<-END
			file.chain = [perfgen.BETA[3] + 16, perfgen.ALPHA[3] + 32]
			file.block = file.make_block([($sets, [7, 9])])
		END
		want_children bpf_metadata 100.00%
	done
	# One row for each of the programs, which all samples have in their chains
	want_children bpf_prog 100.00% 100.00%
}

# Where sets are known in the end only, --children is left out, and perf says so.
test_children_without_the_block_are_left_out()
{
	made_up <<-'END'
		file.chain = [perfgen.BETA[3] + 16]
		file.block = b""
	END
	"$PBM_PERF" report --stdio --children -g none -s bpf_metadata -i "$TMP/made-up" >"$TMP/report" \
		2>"$TMP/messages"
	grep -q 'so --children is off' "$TMP/messages" || fail "no warning: $(cat "$TMP/messages")"
	grep -q '50.00%  version="2.0"' "$TMP/report" || fail "no row: $(cat "$TMP/report")"
	if grep -q -e '100.00%' "$TMP/report"; then
		fail "more than their own samples: $(cat "$TMP/report")"
	fi
}

# Nobody looked: that is not the same as no metadata.
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

# In instructions, of which there are as many each time. For bpf_prog it was 2.3 times.
# Rows of one set are collected in the end, as are those of one comm.
test_the_keys_take_as_long_as_those_of_base()
{
	local pair cost base

	native_only "it counts instructions of perf in user space"
	command -v valgrind >/dev/null || skip "valgrind is no program"
	[[ -z ${PBM_SANITIZED:-} ]] || skip "valgrind runs no perf with AddressSanitizer"
	made_up <<-'END'
		file.nr_samples = 10000
	END
	for pair in bpf_prog:dso bpf_metadata:comm; do
		base=$(instructions_of report --stdio -s "${pair#*:},time" --time-quantum 1ns -i "$TMP/made-up")
		cost=$(instructions_of report --stdio -s "${pair%:*},time" --time-quantum 1ns -i "$TMP/made-up")
		(($(grep -c '%' "$TMP/out") >= 20000)) || fail "next to no rows"
		echo "-s ${pair%:*} takes $((100 * cost / base)) % of the instructions of -s ${pair#*:}"
		((10 * cost <= 11 * base)) || fail "that is too much"
	done
}

# Of a perf command, in user space
instructions_of()
{
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$TMP/callgrind" \
		"$PBM_PERF" "$@" >"$TMP/out" 2>"$TMP/err" || fail "$*: $(tail -n 5 "$TMP/err")"
	sed -n 's/^==[0-9]*== Collected : \([0-9]*\)$/\1/p' "$TMP/callgrind"
}

test_files_of_a_peer()
{
	[[ -n ${PBM_PEER_PERF:-} ]] || skip "PBM_PEER_PERF is not set"
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

# The same name and tag, another id: maybe at the same address.
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
	# There are two programs of the name in the records.
	sed 's/^owner="tests", version="[12].0"/(ambiguous)/; s/^(none)/(unknown)/' "$TMP/want-set" |
		sum_up >"$TMP/want-records"
	mv "$TMP/want-records" "$TMP/want-set"
	want_rows reloaded-records
}

# Into "rows"; a dispatcher is a few instructions, which a recording can miss.
dispatcher_was_sampled()
{
	record "$TMP/data"
	rows -s bpf_prog,sym -F period,bpf_prog,sym -i "$TMP/data" >"$TMP/rows"
	grep -q -e bpf_dispatcher_ "$TMP/rows"
}

test_dispatchers_belong_to_no_program()
{
	local FREQUENCY=(-F $((15000 / SCALE)))

	hold dispatched
	spend 0 20000000
	await "a sample in a dispatcher" dispatcher_was_sampled
	if grep -e bpf_dispatcher_ "$TMP/rows" | grep -v "^$NOT_BPF|"; then
		fail "a dispatcher has a program"
	fi
	grep -e "^${HELD_IDS[0]} dispatched|.* bpf_prog_.*_dispatched" "$TMP/rows" ||
		fail "no sample in the program"
}

# Two recordings, of one build of a program after the other, are the same for all tests of
# this file.
record_versions_once()
{
	[[ ! -e $TMP/new ]] || return 0
	hold busy_v1
	spend 0 30000
	record "$TMP/old"
	release
	hold busy_v2
	spend 0 60000
	record "$TMP/new.part"
	mv "$TMP/new.part" "$TMP/new"
}

# KEY<TAB>PERIOD lines of two files as one: KEY<TAB>OLD<TAB>NEW, 0 if there is none
join_costs()
{
	join -t $'\t' -a 1 -a 2 -e 0 -o 0,1.2,2.2 "$1" "$2" | sort
}

# The same from perf diff, of the event that has samples
diff_rows()
{
	"$PBM_PERF" diff --period -t '|' "$@" "$TMP/old" "$TMP/new" >"$TMP/diff-report"
	awk -F ' *[|] *' '/^#/ || NF < 5 { next } { sub(/ +$/, ""); printf "%s\t%.0f\t%.0f\n", $5, $2, $4 }' "$TMP/diff-report" | sort
}

test_diff_compares_versions()
{
	record_versions_once
	costs_by_set "$TMP/old" >"$TMP/old-costs"
	costs_by_set "$TMP/new" >"$TMP/new-costs"
	join_costs "$TMP/old-costs" "$TMP/new-costs" >"$TMP/want"
	grep -E $'^owner="tests", version="1.0"\t[1-9][0-9]*\t0$' "$TMP/want"
	grep -E $'^owner="tests", version="2.0"\t0\t[1-9][0-9]*$' "$TMP/want"
	diff_rows -s bpf_metadata >"$TMP/got"
	same "cost by version" "$TMP/want" "$TMP/got"

	costs_by_set "$TMP/old" owner >"$TMP/old-costs"
	costs_by_set "$TMP/new" owner >"$TMP/new-costs"
	join_costs "$TMP/old-costs" "$TMP/new-costs" >"$TMP/want"
	diff_rows -s bpf_metadata --bpf-metadata-keys owner >"$TMP/got"
	same "cost by owner" "$TMP/want" "$TMP/got"
}

# By name, as the ids of two recordings have nothing in common
test_diff_compares_programs()
{
	native_only "it reads the file of another test"
	record_versions_once
	costs_by_program "$TMP/old" | sed 's/^[0-9]* //' | sum_up >"$TMP/old-costs"
	costs_by_program "$TMP/new" | sed 's/^[0-9]* //' | sum_up >"$TMP/new-costs"
	join_costs "$TMP/old-costs" "$TMP/new-costs" >"$TMP/want"
	grep -E $'^busy\t[1-9][0-9]*\t[1-9]' "$TMP/want"
	diff_rows -s bpf_prog >"$TMP/got"
	same "cost by program" "$TMP/want" "$TMP/got"
}

# Two programs of one name in the same file; and the block where a perf that does not
# know it has left it.
test_diff_tells_programs_of_one_name_apart()
{
	made_up <<-'END'
		perfgen.BETA = (*perfgen.BETA[:2], "alpha", *perfgen.BETA[3:])
		file.infos[1] = file.prog_info(perfgen.BETA)
		file.block = b""
	END
	diff_sets 'the names of records'
	made_up <<-'END'
		file.with_records = False
		file.odd = file.block_events()
		file.block = b""
	END
	diff_sets 'a block among the events'
}

diff_sets()
{
	"$PBM_PERF" diff -s bpf_metadata "$TMP/made-up" "$TMP/made-up" >"$TMP/diff-report"
	grep -v '^#' "$TMP/diff-report" | grep -o '[a-z(].*' | sed 's/ *$//' | sort >"$TMP/got"
	printf '%s\n' 'answer=42, version="1.2.3"' 'version="2.0"' >"$TMP/want"
	same "sets by $1" "$TMP/want" "$TMP/got"
}

# A key is known if any of the files has it.
test_diff_warns_of_keys_that_no_file_has()
{
	local file key

	for file in first second; do
		made_up <<-END
			file.block = file.make_block([([(b"$file", b"1")], [7]), ([], [9])])
		END
		mv "$TMP/made-up" "$TMP/$file"
	done
	for key in first second neither; do
		"$PBM_PERF" diff -s bpf_metadata --bpf-metadata-keys $key "$TMP/first" "$TMP/second" \
			2>"$TMP/warning" >"$TMP/diff-report"
		grep 'No BPF program' "$TMP/warning" >"$TMP/got" || :
		[[ $key = neither ]] || same "warnings of $key" /dev/null "$TMP/got"
	done
	want_warnings neither
	same "warnings" "$TMP/want" "$TMP/got"
}

# Why versions are to be compared: to all else they look the same.
test_symbols_do_not_tell_versions()
{
	local file

	native_only "it reads the file of another test"
	record_versions_once
	for file in old new; do
		perfdata costs "$TMP/$file" | awk -F '\t' '$2 == "busy" { print $3 }' | sort -u >"$TMP/$file-symbols"
	done
	(($(wc -l <"$TMP/old-symbols") == 3)) || fail "not three functions: $(cat "$TMP/old-symbols")"
	same "symbols of two versions" "$TMP/old-symbols" "$TMP/new-symbols"
}

test_top_shows_programs_and_sets()
{
	hold busy_v1
	spend 0 100000
	start_top -s bpf_prog,bpf_metadata -e cpu-clock
	trap 'release; stop_top' EXIT
	await "the program in perf top" load_and_look "%  ${HELD_IDS[0]} busy  *owner=\"tests\", version=\"1.0\""
	stop_top
}

# Metadata of one program is no reason to know nothing of the programs after it.
test_top_knows_the_program_after_one_with_metadata()
{
	hold simple busy_v1
	spend 1 100000
	start_top -s dso -e cpu-clock
	trap 'release; stop_top' EXIT
	await "the program in perf top" load_and_look "%  bpf_prog_[0-9a-f]{16}_busy"
	stop_top
}

# It is gone when perf top comes to print it.
test_top_shows_a_program_that_was_loaded_for_a_moment()
{
	local id

	# No more samples than perf top can take where the machine is emulated
	start_top -s bpf_prog,bpf_metadata -e cpu-clock -F 250
	trap 'stop_top; release' EXIT
	await "perf top" grep -q PerfTop "$TMP/top"
	hold busy_v1
	spend 0 1000000
	"${WORKLOAD[@]}"
	id=${HELD_IDS[0]}
	release
	await "the program in perf top" grep -E -q "%  $id busy  *owner=\"tests\", version=\"1.0\"" "$TMP/top"
}

# perf top has shown more than $1 screens.
has_shown_screens()
{
	(($(grep -a -c PerfTop "$TMP/top" || true) > $1))
}

# KiB of perf top after it has heard of $1 more programs
memory_after()
{
	"$OUTPUT/churn" -n "$1" -t $((2 * $1)) -l 100 </dev/null >"$TMP/list"
	await "perf top" has_shown_screens $(($(grep -a -c PerfTop "$TMP/top" || true) + 1))
	awk '/^RssAnon:/ { print $2 }' "/proc/$TOP_PID/status"
}

# perf keeps what it knows of programs that are gone, bpf_prog_info and BTF, for what is
# still shown of them: without the patches, that is 0.8 KiB for each of these.
test_top_grows_little_with_each_program()
{
	local early late nr=1000

	native_only "it loads thousands of programs"
	[[ -z ${PBM_SANITIZED:-} ]] || skip "AddressSanitizer keeps what was freed"
	# Without samples, perf loads no symbols meanwhile.
	start_top -s bpf_prog,bpf_metadata -e cpu-clock -c 1000000000000
	trap stop_top EXIT
	await "perf top" has_shown_screens 0
	early=$(memory_after $nr)
	late=$(memory_after $nr)
	echo "$early KiB after $nr programs, $late KiB after twice as many"
	((late < early + 3 * nr)) || fail "more than 3 KiB for each"
	stop_top
}

run_tests
