#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs of BPF_PROG_TYPE_PERF_EVENT, attached by ioctl or link, run while perf records. They get
# the right context, and the recordings have the set (all metadata) of each program.
#
# PBM_NEED_PMU=1: the machine has a PMU, so its absence is a failure.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/attach.sh"
. "$(dirname "$0")/../../lib/recording.sh"

COOKIE=81985529216486895
# A prime that nothing uses as a default
PERIOD=1000003
WANT_SETS=

load()
{
	ask load "$OUTPUT/$1.bpf.o"
}

# Print all events of the ip recorder: IP ADDR COUNT SAMPLE_PERIOD COOKIE TGID
dump_events()
{
	"$BPFTOOL" -j map dump id "${MAP_IDS[events]}" >"$TMP/events.json"
	python3 - "$TMP/events.json" <<-'END'
		import json, sys
		for entry in json.load(open(sys.argv[1])):
		    key, value = (entry["formatted"][name] for name in ("key", "value"))
		    print(key["ip"], key["addr"], value["count"], value["sample_period"],
		          value["cookie"], value["tgid"])
	END
}

# Print COMM SAMPLES: the profiler's samples whose user stack begins in touch()
dump_touches()
{
	"$BPFTOOL" -j map dump id "${MAP_IDS[counts]}" >"$TMP/counts.json"
	# This map has no BTF, because the kernel refuses BTF for it.
	"$BPFTOOL" -j map dump id "${MAP_IDS[stacks]}" >"$TMP/stacks.json"
	python3 - "$TMP/counts.json" "$TMP/stacks.json" "$CODE_BEGIN" "$CODE_END" <<-'END'
		import json, struct, sys
		def number(code, data):
		    return struct.unpack_from(code, bytes(int(byte, 16) for byte in data))[0]
		counts, stacks = (json.load(open(path)) for path in sys.argv[1:3])
		innermost = {number("=I", stack["key"]): number("=Q", stack["value"]) for stack in stacks}
		begin, end = map(int, sys.argv[3:])
		samples = {}
		for entry in counts:
		    key, value = (entry["formatted"][name] for name in ("key", "value"))
		    if begin <= innermost.get(key["user_stack"], 0) < end:
		        comm = value["comm"]
		        samples[comm] = samples.get(comm, 0) + value["samples"]
		for comm in samples:
		    print(comm, samples[comm])
	END
}

# Print perf's name of the program that attach has loaded. Sets HELD_IDS and HELD_NAMES.
symbol()
{
	HELD_IDS=("$PROGRAM_ID") HELD_NAMES=("$PROGRAM_NAME")
	symbol_of 0
}

# Add the metadata that bpftool shows to WANT_SETS, as KEY<TAB>VALUE. check_sets compares WANT_SETS
# with the recording.
note_program()
{
	"$BPFTOOL" -j prog show id "$PROGRAM_ID" >"$TMP/shown.json"
	python3 - "$TMP/shown.json" >"$TMP/set" <<-'END'
		import json, sys
		for key, value in json.load(open(sys.argv[1]))["metadata"].items():
		    print(key, json.dumps(value), sep="\t")
	END
	grep -q '^build_date' "$TMP/set" || fail "the build has not stamped $PROGRAM_NAME"
	WANT_SETS+=$(cat "$TMP/set")$'\n'
	symbol >"$TMP/symbol"
	# The program may be unloaded next.
	[[ -z ${PERF_PID:-} ]] || await_read
}

check_sets()
{
	local file=$1

	perfdata check "$file"
	perfdata entries "$file" "$(cat "$TMP/symbol")" | sort >"$TMP/got"
	printf '%s' "$WANT_SETS" | sort >"$TMP/want"
	same "the metadata of $(cat "$TMP/symbol")" "$TMP/want" "$TMP/got"
}

# Look only at faults in touch(): the map also has page faults of other code.
check_touched_pages()
{
	local cookie=$1 ip addr count period found_cookie

	ask touch 50
	dump_events >"$TMP/events"
	while read -r ip addr count period found_cookie _; do
		((ip >= CODE_BEGIN && ip < CODE_END)) || continue
		printf '%s\n' "$addr" >&3
		[[ "$count $period $found_cookie" = "1 1 $cookie" ]] ||
			fail "$addr: $count times, period $period, cookie $found_cookie, not 1, 1, $cookie"
	done <"$TMP/events" 3>"$TMP/addresses"
	printf '%s\n' "${PAGES[@]}" | sort >"$TMP/want"
	sort "$TMP/addresses" >"$TMP/got"
	same "ctx->addr" "$TMP/want" "$TMP/got"
}

test_program_attached_by_ioctl_sees_the_addresses_of_page_faults()
{
	start_recording "$TMP/data" -a
	start_attach
	load ip_recorder
	ask event page-faults 1 self
	ask ioctl
	check_touched_pages 0
	note_program
	stop_recording
	check_sets "$TMP/data"
}

test_program_attached_by_link_sees_the_addresses_of_page_faults_and_the_cookie()
{
	local shown

	start_recording "$TMP/data" -a
	start_attach
	load ip_recorder
	ask event page-faults 1 self
	ask link "$COOKIE"
	# bpftool v7.5 of Debian 13 shows the link, and ends with status 255.
	shown=$("$BPFTOOL" -j link show id "${LINK_IDS[0]}" || :)
	[[ $shown = *"\"prog_id\":$PROGRAM_ID"* ]] || fail "the link is $shown"
	check_touched_pages "$COOKIE"
	note_program
	stop_recording
	check_sets "$TMP/data"
}

has_events()
{
	dump_events >"$TMP/events"
	[[ -s $TMP/events ]]
}

# The program sees the requested period of each event. The address is not checked: only events with
# an address set it, and for the others it is a leftover of the kernel's stack.
check_period()
{
	local want_period=$1 want_cookie=$2 period cookie

	await "an event" has_events
	while read -r _ _ _ period cookie _; do
		[[ "$period $cookie" = "$want_period $want_cookie" ]] ||
			fail "period $period, cookie $cookie, not $want_period, $want_cookie"
	done <"$TMP/events"
}

# Attach on all CPUs, by ioctl and by link, each time with a new map.
check_event_in_each_way()
{
	local event=$1 period=$2 want_period=${3:-$2}

	load ip_recorder
	ask event "$event" "$period" all
	ask ioctl
	check_period "$want_period" 0
	ask close
	note_program

	load ip_recorder
	ask event "$event" "$period" all
	ask link "$COOKIE"
	check_period "$want_period" "$COOKIE"
	ask close
	note_program
}

test_cpu_clock()
{
	start_recording "$TMP/data" -a
	start_attach
	check_event_in_each_way cpu-clock "$PERIOD"
	stop_recording
	check_sets "$TMP/data"
}

# The period of a clock is the time between two events, in ns.
test_cpu_clock_with_a_frequency()
{
	start_attach
	check_event_in_each_way cpu-clock "freq 1000" 1000000
}

check_hardware_event()
{
	start_attach
	if ! try_ask event "$1" "$PERIOD" all; then
		[[ ${PBM_NEED_PMU:-} != 1 ]] || fail "$ERROR, and this machine should have a PMU"
		skip "no PMU here: $ERROR"
	fi
	ask close
	check_event_in_each_way "$1" "$PERIOD"
}

test_hardware_events()
{
	check_hardware_event cycles
	release
	check_hardware_event instructions
}

# Print the number of page faults in touch() that the recorder has seen.
count_faults()
{
	dump_events | awk -v begin="$CODE_BEGIN" -v end="$CODE_END" \
		'$1 >= begin && $1 < end { n += $3 } END { print n + 0 }'
}

touch_and_expect()
{
	local faults

	ask touch 10
	faults=$(count_faults)
	((faults == $1)) || fail "$faults faults in all, not $1"
}

test_detached_program_sees_nothing_until_it_is_attached_again()
{
	start_attach
	load ip_recorder
	ask event page-faults 1 self
	ask touch 10
	[[ $(count_faults) = 0 ]] || fail "the program sees events before it is attached"

	ask link 1
	touch_and_expect 10
	ask unlink
	touch_and_expect 10
	ask link 2
	touch_and_expect 20
	ask close
	touch_and_expect 20

	ask event page-faults 1 self
	ask ioctl
	touch_and_expect 30
	ask close
	touch_and_expect 30
	ask event page-faults 1 self
	ask ioctl
	touch_and_expect 40
}

# The profiler counts the page faults of the task. The innermost frame of the user stack is the
# place of the page fault.
test_profiler_counts_samples_and_stacks_of_a_task()
{
	start_recording "$TMP/data" -a
	start_attach
	load profiler
	ask event page-faults 1 self
	ask ioctl
	ask touch 200
	ask close
	dump_touches >"$TMP/got"
	echo "attach 200" >"$TMP/want"
	same "samples" "$TMP/want" "$TMP/got"
	note_program
	stop_recording
	check_sets "$TMP/data"
}

attach_version()
{
	load "$1"
	ask "${@:2}"
	ask touch 50
	dump_touches >"$TMP/got"
	echo "attach 50" >"$TMP/want"
	same "samples of $1" "$TMP/want" "$TMP/got"
	note_program
}

# Both versions have the same code and tag. Only their sets differ.
check_both_versions()
{
	check_sets "$TMP/data"
	show "$TMP/data"
	values entries "$TMP/data.script" "$(cat "$TMP/symbol")" | grep '^version' | sort >"$TMP/got"
	printf 'version\t"%s"\n' 1.0 2.0 >"$TMP/want"
	same "versions in perf script" "$TMP/want" "$TMP/got"
}

test_new_version_is_attached_by_link_while_perf_records()
{
	start_recording "$TMP/data" -a
	start_attach
	ask event page-faults 1 self
	attach_version profiler link 1
	ask unlink
	attach_version profiler_2 link 2
	stop_recording
	check_both_versions
}

test_new_version_is_attached_by_ioctl_while_perf_records()
{
	start_recording "$TMP/data" -a
	start_attach
	ask event page-faults 1 self
	attach_version profiler ioctl
	ask close
	ask event page-faults 1 self
	attach_version profiler_2 ioctl
	stop_recording
	check_both_versions
}

# samples_in KEY ERE: print the sum of task "attach" in the rows of perf report -s KEY that match
samples_in()
{
	"$PBM_PERF" report -i "$TMP/data" --stdio -q --comms attach -s "$1" -F "sample,$1" |
		awk -v row="^($2)\$" '
			{ samples = $1; sub(/^ *[0-9]+ +(\[.\] )?/, ""); sub(/ +$/, "") }
			$0 ~ row { sum += samples }
			END { print sum + 0 }'
}

# Some kernels (such as v6.18) run programs of software events with interrupts off, and no clock can
# interrupt them. perfdata.py tells whether there are samples, because perf report is under test.
test_samples_show_what_the_profiler_costs()
{
	local cost period cycles=no options=(-F $((4000 / SCALE)))

	start_attach
	if try_ask event cycles "$PERIOD" self; then
		cycles=yes
		options+=(-e cycles)
		ask close
	fi
	start_recording "$TMP/data" -a "${options[@]}"
	load profiler
	ask event page-faults 1 self
	ask link 1
	for _ in {1..20}; do
		ask burn $((20000 / SCALE))
	done
	note_program
	stop_recording
	check_sets "$TMP/data"
	perfdata costs "$TMP/data" >"$TMP/costs"
	period=$(awk -F '\t' -v id="$PROGRAM_ID" '$1 == id { sum += $4 } END { printf "%.0f", sum }' "$TMP/costs")
	[[ $period != 0 || $cycles = yes ]] ||
		skip "no PMU here, and this kernel's clock does not interrupt the program"
	((period > 0)) || fail "no sample in the profiler"
	cost=$(samples_in bpf_prog "$PROGRAM_ID $PROGRAM_NAME")
	echo "$cost samples in $PROGRAM_ID $PROGRAM_NAME"
	((cost > 0)) || fail "perf report -s bpf_prog shows no sample of $PROGRAM_ID $PROGRAM_NAME, but the file has some"
}

run_tests
