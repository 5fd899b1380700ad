# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# perf record in the background, programs that load and unload meanwhile (churn.c), files of
# --switch-output. Source it after test-lib.sh.

ON_END+=(abandon_recording)
# The events of start_recording
EVENTS=(-e cpu-clock)

check_churn()	{ python3 -S "$SELFTESTS/lib/churn.py" "$@"; }

# deny_bpf COMMAND ERRNO: write $TMP/denied-perf, a script that runs perf so that this bpf() command
# fails
deny_bpf()
{
	"$OUTPUT/deny_bpf" "$@" "$(type -P true)" || skip "this kernel has no seccomp filters"
	printf '#!/bin/sh\nexec "%s" %s "%s" "$@"\n' "$OUTPUT/deny_bpf" "$*" "$PBM_PERF" >"$TMP/denied-perf"
	chmod +x "$TMP/denied-perf"
}

send_control()	{ printf '%s\n' "$1" >&"$CONTROL"; }

has_ended()		{ ! kill -0 "$PERF_PID" 2>/dev/null; }
perf_is_running()	{ ! has_ended || fail "perf record has ended: $(cat "$TMP/perf.err")"; }

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

# control COMMAND: send a command to --control, and wait for the acknowledgement
control()
{
	send_control "$1"
	await_ack
}

# start_recording FILE OPTION... [-- COMMAND...]: start perf record in the background, and return when it
# records. Sets PERF_PID. Messages of perf go to $TMP/perf.err. With the file "-", the recording goes to
# $TMP/stdout. nice gives perf priority, so that perf loses no events on a busy machine.
start_recording()
{
	local file=$1

	shift
	rm -f "$TMP/control" "$TMP/ack"
	mkfifo "$TMP/control" "$TMP/ack"
	# Open both ends of each FIFO, so that open() does not wait for the other side.
	exec {CONTROL}<>"$TMP/control" {ACK}<>"$TMP/ack"
	nice -n -15 "$PBM_PERF" record -N "${EVENTS[@]}" -F 97 -k mono --control "fifo:$TMP/control,$TMP/ack" \
		-o "$file" "$@" >"$TMP/stdout" 2>"$TMP/perf.err" </dev/null &
	PERF_PID=$!
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

# start_slow_recording INJECTION: strace delays each bpf() call of the side band thread in this way, and
# writes the calls to $TMP/strace. Sets TRACER.
start_slow_recording()
{
	local thread

	native_only "strace stops perf at each system call"
	command -v strace >/dev/null || skip "strace is not installed"
	start_recording "$TMP/data" -a
	thread=$(find "/proc/$PERF_PID/task" -mindepth 1 -maxdepth 1 ! -name "$PERF_PID" -printf '%f')
	: >"$TMP/strace"
	strace -qq -o "$TMP/strace" -p "$thread" -e trace=bpf -e inject="bpf:$1" &
	TRACER=$!
	await "strace" is_traced "$thread"
}

# stop_recording: end perf record; fail if it fails or prints anything unusual
stop_recording()
{
	local status=0

	await_new_name
	control stop
	await "the end of perf record" has_ended
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
	# A strace that delays calls can get stuck if the machine is busy, and perf with it.
	[[ -z ${TRACER:-} ]] || kill -KILL "$TRACER" || :
	kill "$PERF_PID" 2>/dev/null || :
	kill -CONT "$PERF_PID" 2>/dev/null || :
	wait "$PERF_PID" || :
	PERF_PID=
	cat "$TMP/perf.err"
}

# side_band_wait: print 200 or less if perf record waits to look at some program again. Print how many
# ms at most perf's side band thread waits for an event, or nothing if the thread runs. The thread waits
# up to 200 ms if it will look at some program again, else longer, up to 1000 ms. The other threads wait
# forever.
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

# await_read: wait until perf record has looked at all programs for the last time before it ends
await_read()
{
	await "perf to look at all programs" has_read
}

# churn OPTION...: load programs, unload them when perf record has read them, and add them to $TMP/list.
# After the programs are gone, perf must read that, too.
churn()
{
	local churn input

	rm -f "$TMP/input"
	mkfifo "$TMP/input"
	exec {input}<>"$TMP/input"
	: >"$TMP/churned"	# or await sees an earlier churn
	"$OUTPUT/churn" -w "$@" <"$TMP/input" >"$TMP/churned" {input}>&- &
	churn=$!
	await "churn's programs" grep -q -x waiting "$TMP/churned"
	await_read
	echo >&"$input"
	exec {input}>&-
	wait "$churn"
	await_read
	grep '^[0-9]' "$TMP/churned" >>"$TMP/list"
}

# start_churn OPTION...: load programs in the background; await_churn adds to the list. tell_churn: let
# churn go on
start_churn()	{ coproc HOLDER { exec "$OUTPUT/churn" "$@"; }; }
tell_churn()	{ echo >&"${HOLDER[1]}"; }

# await_churn WORD: wait until churn prints the word
await_churn()
{
	local line

	while read -r -t $((60 * SCALE)) -u "${HOLDER[0]}" line; do
		[[ $line != "$1" ]] || return 0
		printf '%s\n' "$line" >>"$TMP/list"
	done
	fail "churn did not print $1"
}

# list_files: the files of perf record --switch-output -o $TMP/data, in order. Until perf switches or
# ends, its current file has another name, so it is not in the list.
list_files()
{
	find "$TMP" -maxdepth 1 -name 'data.2*' | sort
}

# has_files N: succeed if there are at least N such files
has_files()
{
	(($(list_files | wc -l) >= $1))
}
