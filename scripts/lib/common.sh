# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Messages, exit codes, locks and long steps, shared by the scripts.
#
# Usage:
#	set -euo pipefail
#	. "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
#
#	msg TEXT...			progress, on stdout; silent with PBM_QUIET=1
#	warn TEXT			on stderr
#	die TEXT [NEXT-STEP...]		on stderr, exit 2 (could not run)
#	die_usage TEXT			die, with a hint at --help
#	end_failed			exit 1 after the script has reported a failed test or check
#	on_exit COMMAND...		run COMMAND at exit, in reverse order of the calls
#	take_lock FILE WHAT		take an exclusive lock; if it is held, say so and wait
#	release_lock			release the lock that was taken last
#	take_machine_lock		take the lock for BPF programs on this machine
#	log_to FILE			from now on, run_logged writes to FILE
#	run_logged LABEL COMMAND...	run a long step with its output in the log and its
#					progress on the terminal; return its status. If
#					COMMAND is a function, it must chain its commands
#					with &&, because errexit may be off
#	end_steps SIGNAL		end the steps in STEP_PIDS
#	die_logged TEXT [NEXT-STEP...]	die, and print the end and the path of the log
#	disk_is_full DIR		status 0 if the file system of DIR is full
#	check_root			die unless this is root
#	check_bpftool			die if there is no bpftool
#
# Reads:
#	STEP_OUTPUT	set before run_logged: a file or directory whose size is shown
#			as progress, in place of the last line of the log
#	PBM_QUIET	1: print no progress, see msg
#	PBM_BPFTOOL	path or name of bpftool (default: bpftool)
#	PBM_TICK	seconds between progress lines (default 30)
# Sets:
#	STEP_PIDS	leaders of the running process groups; code that starts a group
#			adds its leader here, so that the group ends with the script
#	END_SIGNAL	for on_exit commands: the signal that ends the script, if any;
#			KILL if the step had to be killed
#	REPO_DIR	top of the checkout
#	CACHE_DIR	$PBM_CACHE, or a directory below $XDG_CACHE_HOME or ~/.cache;
#			common.sh does not create the directory
#
# Exit status of every script: 0 done, 1 a test or a check failed, 2 could not
# run.  A signal ends the script as that signal.

export LC_ALL=C
unset CDPATH
# Environment variables of the user must not change how make and quilt work in the scripts.
# shellcheck disable=SC2086 # all variables whose names begin with QUILT_
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES O ARCH CROSS_COMPILE ${!QUILT_@}

# shellcheck disable=SC2034 # read by the scripts that source this
REPO_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck disable=SC2034 # as above
CACHE_DIR=${PBM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perf-bpf-metadata}
PROGRAM=${0##*/}
LOG_FILE=/dev/null
LOG_IS_OLD=no
STEP_PIDS=()
STEP_OUTPUT=
TICKER_PID=
END_SIGNAL=
EXIT_COMMANDS=()
LOCK_FDS=()
HAS_FAILED=no
# All checkouts on a machine share this lock, because they share the BPF programs of the machine.
MACHINE_LOCK=/sys/kernel

msg()
{
	[[ ${PBM_QUIET:-0} = 1 ]] || printf '%s\n' "$*"
}

warn()
{
	printf '%s: warning: %s\n' "$PROGRAM" "$1" >&2
}

die()
{
	local next

	printf '%s: error: %s\n' "$PROGRAM" "$1" >&2
	shift
	for next; do
		printf '  next: %s\n' "$next" >&2
	done
	exit 2
}

die_usage()
{
	die "$1" "$PROGRAM --help lists the options"
}

end_failed()
{
	HAS_FAILED=yes
	exit 1
}

# Quote the command, so that eval does not split its arguments.
on_exit()
{
	EXIT_COMMANDS+=("${*@Q}")
}

run_exit_commands()
{
	local i

	for ((i = ${#EXIT_COMMANDS[@]} - 1; i >= 0; i--)); do
		eval "${EXIT_COMMANDS[i]}" || :
	done
}

# Wait for the whole group: when its leader has ended, make may still remove half-written files.
wait_for_group()
{
	local group=$1 tries

	for ((tries = 0; tries < 100; tries++)); do
		kill -0 -- "-$group" 2>/dev/null || return 0
		sleep 0.1
	done
	END_SIGNAL=KILL
	kill -KILL -- "-$group" 2>/dev/null || :
}

# end_step INDEX SIGNAL: end the step STEP_PIDS[INDEX]
end_step()
{
	local pid=${STEP_PIDS[$1]}

	kill "-$2" -- "-$pid" 2>/dev/null || :
	wait "$pid" 2>/dev/null || :
	wait_for_group "$pid"
	unset "STEP_PIDS[$1]"
}

end_steps()
{
	local step

	for step in "${!STEP_PIDS[@]}"; do
		end_step "$step" "$1"
	done
}

# The step runs in a process group of its own, to which this script passes the signal on. So a
# signal that is sent only to this script also ends the step, and ends it at once.
end_by_signal()
{
	local signal=$1

	# shellcheck disable=SC2034 # read by on_exit commands
	END_SIGNAL=$signal
	trap '' INT TERM HUP
	end_steps "$signal"
	stop_ticker
	printf '\n%s: interrupted; you can run it again\n' "$PROGRAM" >&2
	run_exit_commands
	trap - EXIT "$signal"
	kill "-$signal" $$
}

# After an unexpected error, exit with 2 (could not run), never with 1.
die_unexpected()
{
	local status=$1 where=$2 command=$3

	((BASH_SUBSHELL == 0)) || exit "$status"
	disk_is_full "$(dirname -- "$LOG_FILE")" &&
		die "no space left beside $LOG_FILE" "free some space and run it again"
	die "unexpected: '$command' in $where ended with status $status" "run it again; the log is $LOG_FILE"
}

# If a script uses an unset variable, bash exits with 1, without the ERR trap. Exit with 2 instead.
end_script()
{
	local status=$1

	run_exit_commands
	if ((status == 1)) && [[ $HAS_FAILED = no ]]; then
		printf '%s: error: unexpected: the script ended with status 1, see above; the log is %s\n' "$PROGRAM" "$LOG_FILE" >&2
		exit 2
	fi
}

trap 'end_script $?' EXIT
set -o errtrace
trap 'die_unexpected $? "${FUNCNAME[0]:-main}:$LINENO" "$BASH_COMMAND"' ERR
trap 'end_by_signal INT' INT
trap 'end_by_signal TERM' TERM
trap 'end_by_signal HUP' HUP

# All commands that the script starts inherit the lock. So the lock is held until the last of them
# has ended, for example a make that still runs after SIGKILL has ended this script.
take_lock()
{
	local file=$1 what=$2 fd holder

	exec {fd}<>"$file" || die "cannot open the lock $file" "check that its directory can be written"
	if ! flock --nonblock "$fd"; then
		holder=$(head -n 1 "$file")
		msg "waiting: another run (pid ${holder:-unknown}) uses $what"
		run_waiting flock "$fd"
	fi
	printf '%s\n' "$$" > "$file" 2>/dev/null || :
	LOCK_FDS+=("$fd")
}

release_lock()
{
	local fd=${LOCK_FDS[-1]}

	exec {fd}>&-
	unset 'LOCK_FDS[-1]'
}

# All commands that the script starts inherit this lock, too.
take_machine_lock()
{
	exec {MACHINE_FD}<"$MACHINE_LOCK"
	flock --nonblock "$MACHINE_FD" && return
	msg "# waiting for other tests on this machine"
	run_waiting flock "$MACHINE_FD"
}

# Run a command that may block. It runs in the background, so that bash can run traps at once.
run_waiting()
{
	set -m
	"$@" < /dev/null &
	STEP_PIDS=("$!")
	set +m
	wait "${STEP_PIDS[0]}"
	STEP_PIDS=()
}

# Keep the log of the last run until there is something to log.
log_to()
{
	LOG_FILE=$1 LOG_IS_OLD=yes
}

# Start a child that prints the progress of a step from time to time. The child holds no lock,
# and ends with its parent.
start_ticker()
{
	local label=$1 seconds fd last=

	[[ ${PBM_QUIET:-0} = 1 ]] && return
	(
		trap - INT TERM HUP EXIT
		for fd in "${LOCK_FDS[@]}"; do
			exec {fd}>&-
		done
		for ((seconds = 1; 1; seconds++)); do
			sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null || exit
			((seconds % ${PBM_TICK:-30} == 0)) || continue
			if [[ -n $STEP_OUTPUT ]]; then
				last=$(du -sh -- "$STEP_OUTPUT" 2>/dev/null | cut -f 1) || :
			else
				last=$(tail -n 1 "$LOG_FILE" 2>/dev/null | tr -d '\000-\037' | cut -c 1-60) || :
			fi
			printf '%s: %d s  %s\n' "$label" "$seconds" "$last"
		done
	) &
	TICKER_PID=$!
}

stop_ticker()
{
	[[ -n $TICKER_PID ]] || return 0
	kill "$TICKER_PID" 2>/dev/null || :
	wait "$TICKER_PID" 2>/dev/null || :
	TICKER_PID=
}

run_logged()
{
	local label=$1 start=$SECONDS status=0

	shift
	if [[ $LOG_IS_OLD = yes ]]; then
		: > "$LOG_FILE" || die "cannot write $LOG_FILE" "free some space or use another --out"
		LOG_IS_OLD=no
	fi
	printf '\n=== %s: %s\n' "$label" "${*@Q}" >> "$LOG_FILE" 2>/dev/null || :
	start_ticker "$label"
	set -m
	"$@" >> "$LOG_FILE" 2>&1 < /dev/null &
	STEP_PIDS=("$!")
	set +m
	wait "${STEP_PIDS[0]}" || status=$?
	STEP_PIDS=()
	STEP_OUTPUT=
	stop_ticker
	if ((status == 0)); then
		msg "$label: done ($((SECONDS - start)) s)"
	fi
	return "$status"
}

die_logged()
{
	printf '%s: the log ends:\n' "$PROGRAM" >&2
	tail -n 12 "$LOG_FILE" | sed 's/^/  | /' >&2 || :
	printf '%s: full log: %s\n' "$PROGRAM" "$LOG_FILE" >&2
	die "$@"
}

disk_is_full()
{
	local avail

	avail=$(df --output=avail -B 1K -- "$1" 2>/dev/null | tail -n 1)
	((${avail:-1024} < 1024))
}

check_root()
{
	((EUID == 0)) || die "only root can load BPF programs and record them" "run it as root"
}

check_bpftool()
{
	command -v -- "${PBM_BPFTOOL:-bpftool}" >/dev/null ||
		die "${PBM_BPFTOOL:-bpftool}: not a program" "install bpftool, or correct PBM_BPFTOOL"
}
