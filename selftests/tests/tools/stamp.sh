#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# bpf-stamp adds metadata, the stamp, to programs that are already loaded. bpftool and perf then
# show the stamp, and no version of perf crashes.
#
# shellcheck disable=SC2016 # Inner shells expand what is between single quotes.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/attach.sh"
. "$(dirname "$0")/../../lib/recording.sh"
. "$(dirname "$0")/../../lib/top.sh"

LOCK_FILE=/run/bpf-stamp.lock
STAMP=(unit=nginx.service version=1.2.3)
SHOWN=(unit '"nginx.service"' version '"1.2.3"')
SET='unit="nginx.service", version="1.2.3"'

BPF_STAMP=("${PBM_BPF_STAMP:-}")

start_test()
{
	native_only "the tests record many times"
	[[ -x ${BPF_STAMP[0]} ]] || skip "there is no bpf-stamp: PBM_BPF_STAMP=${BPF_STAMP[0]}"
}

# in_private_bpffs COMMANDS ARGUMENT...: run commands of sh, with an own BPF file system and an own /run
in_private_bpffs()
{
	unshare --mount sh -c 'mount -t bpf bpf /sys/fs/bpf && mount -t tmpfs tmpfs /run || exit
		'"$1" sh "${@:2}"
}

# stamps "INDEX..." ARGUMENT...: fail unless bpf-stamp stamps just these held programs, in any order
stamps()
{
	local i

	for i in $1; do
		printf '%s %s\n' "${HELD_IDS[i]}" "${HELD_NAMES[i]}"
	done | sort >"$TMP/want"
	shift
	"${BPF_STAMP[@]}" "$@" >"$TMP/out"
	sort "$TMP/out" >"$TMP/got"
	same "what bpf-stamp $* prints" "$TMP/want" "$TMP/got"
}

# refuses STATUS TEXT ARGUMENT...: bpf-stamp prints TEXT, and with STATUS 2 it stamps no program
refuses()
{
	local wanted=$1 text=$2 status=0

	shift 2
	"${BPF_STAMP[@]}" "$@" >"$TMP/out" 2>"$TMP/err" || status=$?
	cat "$TMP/err"
	((status == wanted)) || fail "bpf-stamp $*: status $status, not $wanted"
	grep -q -F -e "$text" "$TMP/err" || fail "bpf-stamp $*: does not say: $text"
	[[ ! -s $TMP/out || $wanted = 1 ]] || fail "bpf-stamp $* has stamped: $(cat "$TMP/out")"
}

# refuses_program INDEX REASON ARGUMENT...: the same for this program, whose maps do not change
refuses_program()
{
	local before

	before=$(maps_of "$1")
	refuses 1 "program ${HELD_IDS[$1]} (${HELD_NAMES[$1]}) is not stamped: $2" "${@:3}" "${STAMP[@]}"
	[[ $(maps_of "$1") = "$before" ]] || fail "the program's maps are $(maps_of "$1"), not $before"
}

show_program()
{
	"$BPFTOOL" -j prog show id "${HELD_IDS[$1]}"
}

# maps_of INDEX: print the ids of the program's maps, separated by ",", or none
maps_of()
{
	show_program "$1" | python3 -c 'import json, sys
print(*json.load(sys.stdin).get("map_ids") or ["none"], sep=",")'
}

# shows bpftool|perf INDEX [KEY JSON]...: fail unless bpftool, or the recording $TMP/data, shows just these
# keys of this program
shows()
{
	if [[ $1 = perf ]]; then
		perfdata block "$TMP/data" | awk -F '\t' -v OFS='\t' -v id="${HELD_IDS[$2]}" '$1 == id { print $4, $5 }'
	else
		show_program "$2" | python3 -c 'import json, sys
for key, value in json.load(sys.stdin).get("metadata", {}).items():
    print(key, json.dumps(value), sep="\t")'
	fi | sort >"$TMP/got"
	: >"$TMP/want"
	(($# < 3)) || printf '%s\t%s\n' "${@:3}" >"$TMP/want"
	same "metadata by $1" "$TMP/want" "$TMP/got"
}

# is_stamped INDEX [CHECKED]: the same, for bpftool (default) or perf, and the stamp
is_stamped()
{
	shows "${2:-bpftool}" "$1" "${SHOWN[@]}"
}

# reports_stamp FILE: fail unless perf report shows the first program in a row with the stamp
reports_stamp()
{
	"$PBM_PERF" report --stdio -s bpf_prog,bpf_metadata -i "$1" >"$TMP/report"
	grep -E -e "% +${HELD_IDS[0]} ${HELD_NAMES[0]} +$SET *\$" "$TMP/report" ||
		fail "perf report shows: $(cat "$TMP/report")"
}

# A program of three functions that has no metadata, and a workload that runs it
hold_busy()
{
	hold -o busy
	HELD_NAMES=("$(own busy)")
	spend 0 $((100000 / SCALE))
}

# bpftool and perf show it, and nobody can change it.
test_stamp_is_shown()
{
	local map

	hold_busy
	stamps 0 id "${HELD_IDS[0]}" "${STAMP[@]}"
	is_stamped 0
	record "$TMP/data"
	perfdata check "$TMP/data"
	is_stamped 0 perf
	reports_stamp "$TMP/data"
	refuses_program 0 "it has metadata" id "${HELD_IDS[0]}"
	map=$(maps_of 0)
	"$BPFTOOL" -j map show id "$map" | grep -q '"frozen":1' || fail "the map is not frozen"
	"$BPFTOOL" -j map show id "$map" | grep -q '"flags":128' || fail "programs may write to the map"
}

# stamp_while_perf_records_to FILE: perf has seen that the program has no metadata. At the end it looks again.
stamp_while_perf_records_to()
{
	start_recording "$1" -a -F 999
	hold_busy
	"${WORKLOAD[@]}"
	await_read
	stamps 0 id "${HELD_IDS[0]}" "${STAMP[@]}"
	"${WORKLOAD[@]}"
	stop_recording
}

test_stamp_in_the_middle_of_a_recording()
{
	stamp_while_perf_records_to "$TMP/data"
	is_stamped 0 perf
	reports_stamp "$TMP/data"
}

test_stamp_in_the_middle_of_a_stream()
{
	stamp_while_perf_records_to -
	perfdata entries "$TMP/stdout" "${HELD_IDS[0]}" >"$TMP/got"
	printf '%s\t%s\n' "${SHOWN[@]}" >"$TMP/want"
	same "record" "$TMP/want" "$TMP/got"
	reports_stamp "$TMP/stdout"
}

# perf can record everything that bpf-stamp accepts, with its exact value. bpftool shows only ASCII strings.
test_values_of_any_text_and_length()
{
	local key

	hold -n 3 busy
	key=$(printf 'k%.0s' {1..63})
	stamps 0 id "${HELD_IDS[0]}" empty= "equal=a=b" $'control=\e[1m\n' "quote=\"\\" utf8=ä
	stamps 1 id "${HELD_IDS[1]}" "$key=$(head -c 8191 /dev/zero | tr '\0' '\1')"
	stamps 2 id "${HELD_IDS[2]}" k{1..200}=1
	record "$TMP/data"
	perfdata check "$TMP/data"
	shows perf 0 control '"\u001b[1m\u000a"' empty '""' equal '"a=b"' quote '"\"\\"' utf8 '"ä"'
	shows perf 1 "$key" "\"$(printf '\\u0001%.0s' {1..8191})\""
	perfdata block "$TMP/data" >"$TMP/block"
	(($(grep -c "^${HELD_IDS[2]}"$'\t' "$TMP/block") == 200)) || fail "not 200 keys"
}

# Stamps of programs without BTF would crash unpatched perf 6.18. bpftool does not show the second map of the
# program with metadata.
test_programs_that_are_refused()
{
	hold_handmade maps
	refuses_program 0 "it has metadata" id "${HELD_IDS[0]}"
	release
	hold_handmade bare
	refuses_program 0 "it has no BTF" id "${HELD_IDS[0]}"
	grep -q 'next: bpf-owners --perf .*--even-without-btf' "$TMP/err" || fail "the message names no next step"
	stamps 0 --even-without-btf id "${HELD_IDS[0]}" "${STAMP[@]}"
	is_stamped 0
	record "$TMP/data"
	is_stamped 0 perf
}

# Two of the three programs have the same name, tag and BTF. The third has no function that could tell more
# than the 15 characters of a name which the kernel keeps.
test_select_by_name_and_tag()
{
	hold_handmade plain
	HELD_NAMES[2]=${HELD_NAMES[2]:0:15}
	stamps "0 1" name "${HELD_NAMES[0]}" "${STAMP[@]}"
	[[ $(maps_of 0) =~ ^[0-9]+$ && $(maps_of 0) = "$(maps_of 1)" ]] ||
		fail "programs with the same BTF have the maps $(maps_of 0) and $(maps_of 1)"
	is_stamped 0
	is_stamped 1
	shows bpftool 2
	refuses 1 "it has metadata" tag "$(show_program 0 | sed 's/.*"tag":"\([0-9a-f]*\)".*/\1/')" "${STAMP[@]}"
	[[ $(sed -n 's/.*: program \([0-9]*\) .*/\1/p' "$TMP/err" | sort -n | paste -s -d ' ') = "${HELD_IDS[*]:0:2}" ]] ||
		fail "not just two programs have this tag"
	refuses_program 2 "its BTF lacks functions" id "${HELD_IDS[2]}"
	stamps 2 --even-without-btf id "${HELD_IDS[2]}" "${STAMP[@]}"
	is_stamped 2
}

# The last program has a .rodata map of its own. bpftool stops at the first one.
test_select_by_pid_and_other_constants()
{
	hold busy plain simple none
	refuses_program 2 "it has metadata" pid "$HOLDER_PID"
	grep -q -F "program ${HELD_IDS[3]} (none) is stamped, but bpftool won't show the stamp" "$TMP/err"
	[[ $(maps_of 0) != "$(maps_of 1)" ]] || fail "programs with different BTF have map $(maps_of 0)"
	is_stamped 0
	is_stamped 1
	shows bpftool 3
	record "$TMP/data"
	is_stamped 3 perf
	# This shell holds no program.
	refuses 2 "pid $BASHPID: no BPF program" pid "$BASHPID" "${STAMP[@]}"
}

# The pins go away with the mount. One of them is not a program. Anybody who could open the lock could hold it
# forever. After attach has loaded another object, it holds the link of the first program, but no longer that
# program.
test_select_by_pin_and_link()
{
	start_attach
	ask load "$OUTPUT/profiler.bpf.o"
	ask event page-faults 1 self
	ask link
	HELD_IDS=("$PROGRAM_ID") HELD_NAMES=("$PROGRAM_NAME")
	in_private_bpffs 'cd /sys/fs/bpf && "$1" prog pin id "$2" program && "$1" link pin id "$3" link &&
		"$1" map create map type array key 4 value 4 entries 1 name map || exit
		for pin in program link map; do "$4" pinned $pin a=b; echo "status $?"; done
		stat -c "%U %a" "$5"' "$BPFTOOL" "$PROGRAM_ID" "${LINK_IDS[0]}" "${BPF_STAMP[0]}" "$LOCK_FILE" \
		>"$TMP/got" 2>"$TMP/err"
	printf '%s\n' 'status 1' 'status 1' 'status 2' 'root 600' >"$TMP/want"
	same "status of bpf-stamp, owner and mode of the lock" "$TMP/want" "$TMP/got"
	grep -q 'pinned map: no BPF program' "$TMP/err" || fail "bpf-stamp says: $(cat "$TMP/err")"
	(($(grep -c "program $PROGRAM_ID ($PROGRAM_NAME) is not stamped: it has metadata" "$TMP/err") == 2))
	refuses_program 0 "it has metadata" pid "$HOLDER_PID"
	(($(grep -c "program $PROGRAM_ID " "$TMP/err") == 1)) || fail "bpf-stamp selects the program twice"
	ask load "$OUTPUT/profiler_2.bpf.o"
	refuses_program 0 "it has metadata" pid "$HOLDER_PID"
}

# The name of what a link hangs on follows its program, and can contain a newline.
test_only_the_first_prog_id_of_a_file_counts()
{
	local fd

	hold -n 2 busy
	fd=$(find "/proc/$HOLDER_PID/fd" -lname anon_inode:bpf-prog -printf '%f\n' -quit)
	mkdir "$TMP/fdinfo"
	printf 'prog_id:\t%s\nname:\ta\nprog_id:\t%s\n' "${HELD_IDS[@]}" >"$TMP/fdinfo/$fd"
	in_private_bpffs 'mount --bind "$1" "/proc/$2/fdinfo" && "$3" pid "$2" a=b' \
		"$TMP/fdinfo" "$HOLDER_PID" "${BPF_STAMP[0]}" >"$TMP/got"
	echo "${HELD_IDS[0]} ${HELD_NAMES[0]}" >"$TMP/want"
	same "what bpf-stamp prints" "$TMP/want" "$TMP/got"
}

waits_for_lock()
{
	grep -q -E -e "^[0-9]+: +-> FLOCK .* $1 " /proc/locks
}

# Two bpf-stamps wait for the lock, which this shell holds like a third one. The slower one finds
# that the program is stamped.
test_two_bpf_stamps_at_once()
{
	local lock pids=() pid failed=0

	hold_busy
	exec {lock}>>"$LOCK_FILE"
	flock "$lock"
	for _ in 1 2; do
		"${BPF_STAMP[@]}" id "${HELD_IDS[0]}" "${STAMP[@]}" {lock}>&- &
		pids+=("$!")
		await "bpf-stamp at the lock" waits_for_lock "$!"
	done
	[[ $(maps_of 0) = none ]] || fail "the program is stamped"
	exec {lock}>&-
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=$((failed + $?))
	done
	((failed == 1)) || fail "not just one of them failed with status 1"
	[[ $(maps_of 0) =~ ^[0-9]+$ ]] || fail "the program's maps are $(maps_of 0)"
	is_stamped 0
}

# survives PERF ERE OPTION...: fail unless record, report, script and top of PERF work with a stamped program,
# and a line of perf top matches ERE
survives()
{
	local TOP=("${TOP[@]/#"$PBM_PERF"/"$1"}") PBM_PERF=$1 command

	hold_busy
	stamps 0 id "${HELD_IDS[0]}" "${STAMP[@]}"
	record "$TMP/data"
	for command in "report --stdio" script "report --header-only" "script --show-bpf-events"; do
		# shellcheck disable=SC2086 # the options of a command
		"$PBM_PERF" $command -i "$TMP/data" >"$TMP/out" || fail "perf $command ends with status $?"
	done
	start_top -e cpu-clock "${@:3}"
	await "the program in perf top" load_and_look "$2"
	stop_top
}

test_perf_top_shows_a_stamp()
{
	survives "$PBM_PERF" "% +[0-9]+ $(own busy) +$SET" -s bpf_prog,bpf_metadata
}

test_unpatched_perf_survives_a_stamp()
{
	unpatched_perf
	survives "$PBM_UNPATCHED_PERF" "% .*bpf_prog_[0-9a-f]+_"
}

# Upstream's perf takes the names of records from the BTF of the map. Each function of busy must have a
# record, and each record the name of a KSYMBOL.
test_newer_unpatched_perf_survives_a_stamp()
{
	local function

	peer_perf
	survives "$PBM_PEER_PERF" "% .*bpf_prog_[0-9a-f]+_"
	perfdata ksymbols "$TMP/data" >"$TMP/ksymbols"
	perfdata all-entries "$TMP/data" | sort >"$TMP/entries"
	cut -f 1 "$TMP/entries" | sort -u >"$TMP/symbols"
	for function in "$(own busy)" multiply divide; do
		grep -q -E -e "^bpf_prog_[0-9a-f]{16}_$function"$'\tunit\t"nginx.service"$' "$TMP/entries" ||
			fail "no record of $function: $(cat "$TMP/entries")"
	done
	if grep -v -x -F -f "$TMP/ksymbols" "$TMP/symbols"; then
		fail "records with names that no function has"
	fi
}

# Another user may not be able to reach the directory of bpf-stamp, so root lacks the capability.
test_wrong_arguments_and_a_lack_of_privilege_are_refused()
{
	local arg key id

	hold_busy
	id=${HELD_IDS[0]}
	key=$(printf 'k%.0s' {1..64})
	refuses 2 "id 4294967295: no BPF program" id 4294967295 a=b
	refuses 2 "name no_such_program_$$: no BPF program" name "no_such_program_$$" a=b
	refuses 2 "name : no BPF program" name '' a=b
	refuses 2 "tag 0123: no BPF program" tag 0123 a=b
	refuses 2 "pinned $TMP/none: No such file or directory" pinned "$TMP/none" a=b
	refuses 2 "/proc/4294967295: No such file or directory" pid 4294967295 a=b
	# The low 32 bits of this number are 1.
	for arg in 4294967297 1x +1; do
		refuses 2 "id $arg: not a number" id "$arg" a=b
	done
	refuses 2 "'ids' is not id, name, tag, pinned or pid" ids 1 a=b
	for arg in a 'a b=c' a.b=c =c 'ä=c' 'a-b=c' a$'\n'=c; do
		refuses 2 "'$arg' is not KEY=VALUE" id "$id" "$arg"
	done
	refuses 2 "key a is given twice" id "$id" a=1 b=2 a=1
	refuses 2 "key $key is longer than 63 characters" id "$id" "$key=1"
	refuses 2 "the values are longer than 8192 bytes" id "$id" a= "b=$(head -c 8191 /dev/zero | tr '\0' x)"
	refuses 2 "more than 200 keys" id "$id" k{1..201}=
	refuses 2 usage: id "$id"
	refuses 2 usage: --no-such-option id "$id" a=b
	"${BPF_STAMP[@]}" --help >"$TMP/out"
	grep -q '^usage: bpf-stamp ' "$TMP/out"
	grep -q 'Exit status: 0 done, 1 a program was not stamped, 2 could not run' "$TMP/out"
	BPF_STAMP=(setpriv --bounding-set -sys_admin -- "${BPF_STAMP[@]}")
	refuses 2 "id $id: finding programs needs CAP_SYS_ADMIN" id "$id" "${STAMP[@]}"
	grep -q 'next: run it as root' "$TMP/err" || fail "the message names no next step"
	[[ $(maps_of 0) = none ]] || fail "the program is stamped"
}

run_tests
