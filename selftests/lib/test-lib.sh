# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Every test file sources this file, and ends with: run_tests
#
# core.sh explains what a test is, and how it ends. If the tests of a file neither load BPF
# programs nor count the programs of the machine, the file sets BESIDE=yes. run-selftests.sh runs
# such files at the same time as other files. A test may call
#
#	native_only TEXT	skip on an emulated machine, where the test is slow and
#				shows nothing new; TEXT is the reason. NATIVE_ONLY=TEXT before
#				run_tests does the same for all tests of the file
#	all_only		skip if PBM_ALL is 0, see below
#	few_symbols		before the tests of a file: let perf see only 1/64 of the
#				kernel's symbols, because reading all symbols is slow
#	all_symbols		undo few_symbols, for the rest of the file
#	own_mounts [COMMAND]	before the tests of a file: run the file in a mount namespace with
#				a BPF file system, after the shell command COMMAND
#	unpatched_perf, peer_perf, old_perf	skip if PBM_*_PERF is not set, fail if it can't run
#	hold [-n N] NAME...	load the objects NAME.bpf.o (N times each), and hold
#				them until the test ends; sets HELD_IDS and HELD_NAMES
#	hold -o NAME...		the same, with program names that no other file uses
#	own NAME		print the name that "hold -o" gives to program NAME
#	hold_handmade MODE	the same as hold, for programs of handmade_btf.c
#	spend [INDEX TIMES]...	let record() run program HELD_IDS[INDEX], TIMES times
#	record FILE OPTION...	perf record of all CPUs and a short workload
#	show FILE		write the output of perf script --show-bpf-events to FILE.script
#	start_recording FILE OPTION...	start perf record in the background, and return when it
#				records; COMMAND is its workload (default: none)
#	control COMMAND		send a command to --control, and wait for the acknowledgement
#	stop_recording		end perf record; fail if it fails or prints anything unusual
#	deny_bpf COMMAND ERRNO	write $TMP/denied-perf, a script that runs perf so that this
#				bpf() command fails
#	await_read		wait until perf record has looked at all programs for the last time
#				before it ends
#	side_band_wait		print 200 or less if perf record waits to look at some program again
#	churn OPTION...		load programs, unload them when perf record has read them, and add
#				them to $TMP/list
#	start_churn OPTION...	load programs in the background; await_churn adds to the list
#	await_churn WORD	wait until churn prints the word
#	tell_churn		let churn go on
#	start_attach		start attach (see attach.c), which runs until the test ends
#	ask COMMAND...		send attach a command. The answer sets PROGRAM_ID, PROGRAM_NAME,
#				MAP_IDS[NAME], LINK_IDS, PAGES, CODE_BEGIN and CODE_END
#	try_ask COMMAND...	the same; if the answer is an error, return 1 and set ERROR
#	await WHAT COMMAND...	wait until the command succeeds
#	list_files		the files of perf record --switch-output -o $TMP/data, in order
#	has_files N		succeed if there are at least N such files
#	start_top OPTION...	start perf top --stdio in the background; its output is $TMP/top
#	stop_top		end perf top; fail if it fails
#	load_and_look ERE	run the workload; succeed if a line in $TMP/top then matches
#	open_terminal COMMAND...	run the command in a terminal until the test ends
#	terminal_shows ERE	succeed if a line in the terminal matches
#	press KEY		press a key in the terminal
#	prepare_nobody		let an ordinary user record to $TMP/nobody/, or skip
#	as_nobody COMMAND...	run the command as this user
#	AS_NOBODY		the start of such a command, for one in the background
#	is_traced ID		succeed if strace is attached to this process or thread
#	want_no_records FILE	fail unless FILE has samples and no metadata record
#	has_ksymbol FILE SYMBOL	fail unless FILE has a KSYMBOL of this function
#	shows_no_record SYMBOL	fail unless $TMP/data.script, written by show, has a KSYMBOL of
#				this function and no metadata record with its name
#
# Environment:
#	OUTPUT			the directory in which the Makefile has built everything
#	PBM_PERF		the perf under test
#	PBM_UNPATCHED_PERF	perf of the same version without the series (optional)
#	PBM_PEER_PERF		perf of v6.17 or later, which writes metadata records (optional)
#	PBM_OLD_PERF		perf of v6.14 or earlier, which refuses metadata records (optional)
#	PBM_BPFTOOL		bpftool, to compare with (default: bpftool)
#	PBM_BPF_STAMP		the built tools/bpf-stamp (optional)
#	PBM_ALL			0: leave out tests that only --all runs (default: 1)
#	PBM_FILTER, PBM_LIST, PBM_TIMES	see core.sh
#	PBM_TIMEOUT_SCALE	how many times slower than usual this machine is (default: 1).
#				It multiplies time limits, and divides the workload
#	PBM_SANITIZED		1: the perf under test has sanitizers
#	PBM_EMULATED		1: the processor is emulated
#	PBM_KEEP		a directory for recordings that another machine reads
#				(optional)
#
# Sets:
#	SELFTESTS		the directory selftests/

SELFTESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=selftests/lib/core.sh
. "$SELFTESTS/lib/core.sh"
# shellcheck disable=SC2034 # core.sh reads it
KTAP_HELPERS=${OUTPUT-OUTPUT is not set}/ktap_helpers.sh
export PAGER=cat
BPFTOOL=${PBM_BPFTOOL:-bpftool}
SCALE=${PBM_TIMEOUT_SCALE:-1}
# Seconds that await() waits
DEADLINE=$((30 * SCALE * (1 + 3 * ${PBM_SANITIZED:-0})))
NATIVE_ONLY=
BESIDE=no
# If SCALE is 1, the workload takes less than 0.1 s and gives hundreds of samples.
WORKLOAD=(sh -c "i=0; while [ \$i -lt $((30000 / SCALE)) ]; do i=\$((i + 1)); done")
FREQUENCY=()
# The events of start_recording
EVENTS=(-e cpu-clock)
COMMAND=()
((SCALE == 1)) || FREQUENCY=(-F $((4000 / SCALE)))

# With -S, python3 starts faster, because it does not look for packages.
values()
{
	python3 -S "$SELFTESTS/lib/values.py" "$@"
}

check_churn()
{
	python3 -S "$SELFTESTS/lib/churn.py" check "$@"
}

perfdata()
{
	python3 -S "$SELFTESTS/lib/perfdata.py" "$@"
}

perfgen()
{
	python3 -S "$SELFTESTS/lib/perfgen.py" "$@"
}

# Remove the random tip at the end of file $1, which has the output of perf report.
drop_tips()
{
	sed -i '/^# (\(Tip:\|Cannot load tips\)/d' "$1"
}

native_only()
{
	[[ ${PBM_EMULATED:-0} != 1 ]] || skip "not in an emulated machine: $1"
}

own_mounts()
{
	[[ -z ${PBM_LIST:-}${PBM_OWN_MOUNTS:-} ]] && unshare --mount true 2>/dev/null || return 0
	# shellcheck disable=SC2016 # for the inner shell
	PBM_OWN_MOUNTS=1 exec unshare --mount sh -e -c "${1:-:}"'
		mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf || :
		exec bash "$0"' "$0"
}

# Keep _text and similar symbols, which perf needs, and bpf_test_run, which some tests look for
# in callchains.
few_symbols()
{
	# shellcheck disable=SC2016 # for the inner shell
	own_mounts 'symbols=$(mktemp)
		awk "NR % 64 == 1 || /[ _](text|stext|etext|edata|end|bpf_test_run)\$/" /proc/kallsyms >"$symbols"
		chmod 444 "$symbols"
		mount --bind "$symbols" /proc/kallsyms
		rm "$symbols"'
}

all_symbols()
{
	! mountpoint -q /proc/kallsyms || umount /proc/kallsyms
}

all_only()
{
	[[ ${PBM_ALL:-1} != 0 ]] || skip "only with --all"
}

own()
{
	printf '%s%03x\n' "${1%???}" $(($$ % 4096))
}

# Write $TMP/$1.bpf.o, a copy where the program has the name that own prints. The program in busy_v1
# is named busy. The new name has the same length, so the object stays valid.
make_own_object()
{
	local prog=${1%_v[0-9]}

	LC_ALL=C sed "s/$prog/$(own "$prog")/g" "$OUTPUT/$1.bpf.o" >"$TMP/$1.bpf.o"
}

hold()
{
	local args=() dir='' name

	if [[ $1 = -n ]]; then
		args=(-n "$2")
		shift 2
	elif [[ $1 = -o ]]; then
		shift
		dir=$TMP/
		for name; do
			make_own_object "$name"
		done
	fi
	set -- "${@/#/$dir}"
	hold_command "$OUTPUT/hold" "${args[@]}" "${@/%/.bpf.o}"
}

hold_handmade()
{
	hold_command "$OUTPUT/handmade_btf" "$1"
}

# A test can have only one holder (hold, start_churn or start_attach) at a time. The holder ends
# when its input ends, so it does not outlive this shell. Sets HELD_IDS and HELD_NAMES.
hold_command()
{
	local id name

	HELD_IDS=()
	HELD_NAMES=()
	[[ $BESIDE = no ]] || fail "a file with BESIDE=yes must not load programs"
	coproc HOLDER { cd "$OUTPUT" && exec "$@"; }
	while read -r -t $((60 * SCALE)) -u "${HOLDER[0]}" id name; do
		[[ $id != ready ]] || return 0
		HELD_IDS+=("$id")
		HELD_NAMES+=("$name")
	done
	fail "$* did not get ready"
}

spend()
{
	local args=()

	while (($#)); do
		args+=("${HELD_IDS[$1]}" "$2")
		shift 2
	done
	head -c 64 /dev/zero >"$TMP/packet"
	# shellcheck disable=SC2016 # for the inner shell
	WORKLOAD=(sh -c 'run="$1 prog run" packet=$2; shift 2
		while [ $# -gt 0 ]; do
			$run id $1 data_in "$packet" repeat $2 || exit
			shift 2
		done >/dev/null' sh "$BPFTOOL" "$TMP/packet" "${args[@]}")
}

# End the holder and wait for its end, because the next test must not see its programs.
release()
{
	local pid=${HOLDER_PID:-} input=${HOLDER[1]:-}

	[[ -n $pid ]] || return 0
	[[ -z $input ]] || exec {input}>&-
	wait "$pid" || :
}

# nice gives perf, but not the workload, priority, so that perf loses no events on a busy machine.
record()
{
	local file=$1

	shift
	nice -n -15 "$PBM_PERF" record -N -q -a -e cpu-clock "${FREQUENCY[@]}" "$@" -o "$file" -- \
		nice -n 15 "${WORKLOAD[@]}"
}

show()
{
	"$PBM_PERF" script --show-bpf-events -i "$1" >"$1.script"
}

deny_bpf()
{
	"$OUTPUT/deny_bpf" "$@" "$(type -P true)" || skip "this kernel has no seccomp filters"
	printf '#!/bin/sh\nexec "%s" %s "%s" "$@"\n' "$OUTPUT/deny_bpf" "$*" "$PBM_PERF" >"$TMP/denied-perf"
	chmod +x "$TMP/denied-perf"
}

await()
{
	local what=$1 end=$((SECONDS + DEADLINE))

	shift
	until "$@"; do
		((SECONDS < end)) || fail "waited in vain: $what"
		sleep 0.02
	done
}

# Open both ends of each FIFO, so that open() does not wait for the other side.
open_control()
{
	rm -f "$TMP/control" "$TMP/ack"
	mkfifo "$TMP/control" "$TMP/ack"
	exec {CONTROL}<>"$TMP/control" {ACK}<>"$TMP/ack"
}

send_control()
{
	printf '%s\n' "$1" >&"$CONTROL"
}

perf_is_running()
{
	kill -0 "$PERF_PID" 2>/dev/null || fail "perf record has ended: $(cat "$TMP/perf.err")"
}

# Wait with read -t 0, which reads nothing: a read that times out may lose what it has read. perf
# writes "ack", a newline and a NUL at once.
await_ack()
{
	local answer='' end=$((SECONDS + 60 * SCALE))

	until read -t 0 -u "$ACK"; do
		perf_is_running
		((SECONDS < end)) || fail "perf record does not answer: $(cat "$TMP/perf.err")"
		sleep 0.02
	done
	IFS= read -r -d '' -u "$ACK" answer
	[[ $answer = ack$'\n' ]] || fail "perf record answers '$answer'"
}

control()
{
	send_control "$1"
	await_ack
}

# Sets PERF_PID. Messages of perf go to $TMP/perf.err. With the file "-", the recording goes to
# $TMP/stdout. COMMAND is the workload. nice gives perf priority, so that perf loses no events on a busy
# machine.
launch_recording()
{
	local file=$1

	shift
	open_control
	nice -n -15 "$PBM_PERF" record -N "${EVENTS[@]}" -F 97 -k mono --control "fifo:$TMP/control,$TMP/ack" \
		"$@" -o "$file" "${COMMAND[@]}" >"$TMP/stdout" 2>"$TMP/perf.err" </dev/null &
	PERF_PID=$!
}

start_recording()
{
	launch_recording "$@"
	control ping
}

# Wait until a file of --switch-output would get a new name. Names have hundredths of a second: if
# perf switches twice in one hundredth, it overwrites the first file.
await_new_name()
{
	while compgen -G "$TMP/*.$(date +%Y%m%d%H%M%S%2N)" >/dev/null; do
		:
	done
}

# Shorten the names of temporary copies of the vdso in the output of perf report -D.
without_vdso_names()
{
	sed 's/perf-vdso\.so-[A-Za-z0-9]*/perf-vdso.so/'
}

stop_recording()
{
	local status=0

	await_new_name
	control stop
	wait "$PERF_PID" || status=$?
	PERF_PID=
	check_messages "$TMP/perf.err"
	((status == 0)) || fail "perf record ends with status $status"
}

# Fail unless file $1 has only the usual messages of perf record, and messages about this machine:
# processes that end while perf reads /proc, samples that are lost because the machine is busy,
# and a missing /proc/schedstat.
check_messages()
{
	if grep -v -x -E -e '\[ perf record: .* \]' -e 'Events (en|dis)abled' -e '' \
		-e "Couldn't get COMM, tigd and ppid for pid [0-9]+" \
		-e 'Warning:' -e 'Processed [0-9]+ events and lost [0-9]+ chunks!' \
		-e 'Processed [0-9]+ samples and lost [0-9.]+%!' \
		-e 'Check IO/CPU overload!' -e 'Failed to open /proc/schedstat' "$1"; then
		fail "perf record prints these unusual messages"
	fi
}

abandon_recording()
{
	[[ -n ${PERF_PID:-} ]] || return 0
	# If PERF_PID is strace, it ignores SIGTERM, and ends when perf, its child, ends.
	pkill -P "$PERF_PID" || :
	kill "$PERF_PID" 2>/dev/null || :
	wait "$PERF_PID" || :
	PERF_PID=
	cat "$TMP/perf.err"
}

# Print how many ms at most perf's side band thread waits for an event, or nothing if the thread runs.
# The thread waits up to 200 ms if it will look at some program again, else longer, up to 1000 ms. The other
# threads wait forever.
side_band_wait()
{
	python3 -S - "$PERF_PID" <<-'END'
		import glob, struct, sys
		for path in glob.glob(f"/proc/{sys.argv[1]}/task/*/syscall"):
		    call = open(path).read().split()
		    wait = 0
		    if call[0] == "7":                                  # poll() on x86
		        wait = int(call[3], 16)
		    elif call[0] == "73" and int(call[3], 16):          # ppoll() on arm64
		        with open(f"/proc/{sys.argv[1]}/mem", "rb", 0) as memory:
		            memory.seek(int(call[3], 16))
		            seconds, ns = struct.unpack("qq", memory.read(16))
		            wait = 1000 * seconds + ns // 1000000
		    if 0 < wait <= 1000:
		        print(wait)
	END
}

has_read()
{
	local wait

	perf_is_running
	wait=$(side_band_wait)
	[[ -n $wait ]] && ((wait > 200))
}

await_read()
{
	await "perf to look at all programs" has_read
}

# After the programs are gone, perf must read that, too.
churn()
{
	local churn input

	rm -f "$TMP/input"
	mkfifo "$TMP/input"
	exec {input}<>"$TMP/input"
	"$OUTPUT/churn" -l wait "$@" <"$TMP/input" >"$TMP/churned" {input}>&- &
	churn=$!
	await "churn's programs" grep -q -x waiting "$TMP/churned"
	await_read
	echo >&"$input"
	exec {input}>&-
	wait "$churn"
	await_read
	grep '^[0-9]' "$TMP/churned" >>"$TMP/list"
}

start_churn()
{
	coproc HOLDER { exec "$OUTPUT/churn" "$@"; }
}

await_churn()
{
	local line

	while read -r -t $((60 * SCALE)) -u "${HOLDER[0]}" line; do
		[[ $line != "$1" ]] || return 0
		printf '%s\n' "$line" >>"$TMP/list"
	done
	fail "churn did not print $1"
}

tell_churn()
{
	echo >&"${HOLDER[1]}"
}

start_attach()
{
	declare -gA MAP_IDS=()
	declare -g PROGRAM_ID PROGRAM_NAME CODE_BEGIN CODE_END
	coproc HOLDER { exec "$OUTPUT/attach"; }
}

# Send attach a command, and read its answer.
# shellcheck disable=SC2034 # the tests use the variables
try_ask()
{
	local word first second

	echo "$*" >&"${HOLDER[1]}"
	LINK_IDS=() PAGES=() ERROR=
	while read -r -t $((60 * SCALE)) -u "${HOLDER[0]}" word first second; do
		case $word in
		ok)	return 0 ;;
		error)	ERROR="$first $second"; return 1 ;;
		program) PROGRAM_ID=$first PROGRAM_NAME=$second ;;
		map)	MAP_IDS[$second]=$first ;;
		link)	LINK_IDS+=("$first") ;;
		code)	CODE_BEGIN=$first CODE_END=$second ;;
		page)	PAGES+=("$first") ;;
		*)	fail "attach says: $word $first $second" ;;
		esac
	done
	fail "attach does not answer"
}

ask()
{
	try_ask "$@" || fail "$ERROR"
}

# Until perf switches or ends, its current file has another name, so it is not in the list.
list_files()
{
	find "$TMP" -maxdepth 1 -name 'data.2*' | sort
}

has_files()
{
	(($(list_files | wc -l) >= $1))
}

start_top()
{
	: >"$TMP/top"		# or await sees an earlier perf top
	[[ -p $TMP/top-keys ]] || mkfifo "$TMP/top-keys"
	# perf top reads keys from this FIFO. Open both ends, so that perf top does not get an
	# end of file.
	exec {TOP_KEYS}<>"$TMP/top-keys"
	"$PBM_PERF" top --stdio -d 1 "$@" <&"$TOP_KEYS" >"$TMP/top" 2>&1 &
	TOP_PID=$!
}

stop_top()
{
	local status=0

	[[ -n ${TOP_PID:-} ]] || return 0
	kill -INT "$TOP_PID" || :
	wait "$TOP_PID" || status=$?
	TOP_PID=
	head -n 40 "$TMP/top"
	((status == 0)) || fail "perf top ends with status $status"
}

load_and_look()
{
	"${WORKLOAD[@]}"
	grep -E -q -e "$1" "$TMP/top"
}

# Make the terminal large enough for all rows.
open_terminal()
{
	command -v tmux >/dev/null || skip "tmux is not installed"
	tmux -S "$TMP/tmux" -f /dev/null new-session -d -x 200 -y 400 "$@"
}

terminal_shows()
{
	tmux -S "$TMP/tmux" capture-pane -p >"$TMP/screen" || fail "the terminal ended"
	grep -E -q -e "$1" "$TMP/screen"
}

press()
{
	tmux -S "$TMP/tmux" send-keys "$1"
}

close_terminal()
{
	[[ -S $TMP/tmux ]] || return 0
	[[ ! -s $TMP/screen ]] || sed -n 's/ *[a`]\{0,1\}$//; /^#\{0,1\}$/d; 1,60p' "$TMP/screen"
	tmux -S "$TMP/tmux" kill-server || :
	rm -f "$TMP/tmux"
}

# Print the name that perf gives to the function of program HELD_IDS[$1] if it has only one.
symbol_of()
{
	local tag

	"$BPFTOOL" prog show id "${HELD_IDS[$1]}" >"$TMP/shown"
	tag=$(sed -n 's/.*[[:space:]]tag \([0-9a-f]*\).*/\1/p' "$TMP/shown")
	[[ -n $tag ]] || fail "bpftool shows no tag: $(cat "$TMP/shown")"
	printf 'bpf_prog_%s_%s\n' "$tag" "${HELD_NAMES[$1]}"
}

# Also look for a sample, because an empty or unreadable file has no metadata records, either.
want_no_records()
{
	perfdata types "$1" >"$TMP/types"
	grep -q -x 9 "$TMP/types" || fail "no sample in $1"
	if grep -x 84 "$TMP/types"; then
		fail "$1 has metadata records"
	fi
}

has_ksymbol()
{
	perfdata ksymbols "$1" >"$TMP/ksymbols"
	grep -q -x -F -e "$2" "$TMP/ksymbols" || fail "no KSYMBOL $2 in $1"
}

shows_no_record()
{
	grep -a -q -E -e "PERF_RECORD_KSYMBOL .* name $1\$" "$TMP/data.script" ||
		fail "perf script shows no KSYMBOL $1"
	if grep -a -E -e "PERF_RECORD_BPF_METADATA prog $1\$" "$TMP/data.script"; then
		fail "$1 has a metadata record but no metadata"
	fi
}

is_traced()
{
	! grep -q '^TracerPid:.*\<0$' "/proc/$1/status"
}

# LeakSanitizer does not work under strace, because both need ptrace.
trace()
{
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace "$@"
}

as_nobody()
{
	"${AS_NOBODY[@]}" "$@"
}

prepare_nobody()
{
	AS_NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$TMP/nobody")
	chmod 711 "$TMP"
	mkdir -p "$TMP/nobody"
	chown 65534:65534 "$TMP/nobody"
	as_nobody test -x "$PBM_PERF" || skip "an unprivileged user cannot reach $PBM_PERF"
	(($(cat /proc/sys/kernel/perf_event_paranoid) <= 2)) ||
		skip "perf_event_paranoid is above 2: no recording without privilege"
}

# other_perf VARIABLE: skip if the variable is not set, fail if the perf that it names can't run
other_perf()
{
	[[ -n ${!1:-} ]] || skip "$1 is not set"
	[[ -x ${!1} ]] || fail "$1=${!1} cannot be run"
}

unpatched_perf()
{
	other_perf PBM_UNPATCHED_PERF
}

# run-selftests.sh builds peer and old perf only with --all.
peer_perf()
{
	[[ -n ${PBM_PEER_PERF:-} ]] || all_only
	other_perf PBM_PEER_PERF
}

old_perf()
{
	[[ -n ${PBM_OLD_PERF:-} ]] || all_only
	other_perf PBM_OLD_PERF
}

# Print the requirements that the caller of the tests has to meet, and has not met.
what_is_missing()
{
	local tool

	[[ -x ${OUTPUT:-}/hold ]] || echo "OUTPUT=${OUTPUT:-} is not a directory of built selftests;"
	[[ -x ${PBM_PERF:-} ]] || echo "PBM_PERF=${PBM_PERF:-} is not a program;"
	for tool in "$BPFTOOL" python3; do
		command -v "$tool" >/dev/null || echo "$tool is not a program;"
	done
}

prepare_tests()
{
	local missing

	if ((EUID)); then
		ktap_skip_all "only root can load programs and record them"
		exit "$KSFT_SKIP"
	fi
	missing=$(what_is_missing)
	[[ -z $missing ]] || ktap_exit_fail_msg "$missing"
	# perf must not read the user's configuration, nor copy anything into ~/.debug.
	export PERF_CONFIG=$TMP/perfconfig
	printf '[buildid]\n\tdir = %s\n' "$TMP/debug" >"$PERF_CONFIG"
}

start_test()
{
	rm -f "$TMP/list"
	[[ -z $NATIVE_ONLY ]] || native_only "$NATIVE_ONLY"
}

end_test()
{
	close_terminal
	abandon_recording
	[[ -z ${TOP_PID:-} ]] || kill -KILL "$TOP_PID" || :
	release
}
