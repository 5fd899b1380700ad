# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Messages, exit codes and long steps, shared by the scripts. The other libraries source this one, so it
# may be read twice.
#
# Exit status of every script: 0 done, 1 a test or a check failed, 2 could not run. A signal ends the
# script as that signal.
#
# Reads:
#	PBM_QUIET	1: print no progress
#	PBM_BPFTOOL	path or name of bpftool (default: bpftool)
# Sets:
#	REPO_DIR	top of the checkout
#	CACHE_DIR	$PBM_CACHE, or a directory below $XDG_CACHE_HOME or ~/.cache; not created here
#	STEP_PIDS	leaders of the running process groups; code that starts a group adds its
#			leader here, so that the group ends with the script

! declare -F die_logged >/dev/null || return 0

export LC_ALL=C
unset CDPATH
# Environment variables of the user must not change how make and git work in the scripts.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES O ARCH CROSS_COMPILE
for NAME in ${!GIT_@}; do
	[[ $NAME = GIT_CONFIG_GLOBAL ]] || unset "$NAME"
done

# shellcheck disable=SC2034 # read by the scripts that source this
REPO_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck disable=SC2034 # as above
CACHE_DIR=${PBM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perf-bpf-metadata}
PROGRAM=${0##*/}
LOG_FILE=/dev/null
STEP_PIDS=()
EXIT_COMMANDS=()
LOCK_FDS=()
IS_EXPECTED=no
# All checkouts on a machine share this lock, because they share the BPF programs of the machine.
MACHINE_LOCK=/sys/kernel

# Print progress.
msg()
{
	[[ ${PBM_QUIET:-0} = 1 ]] || printf '%s\n' "$*"
}

warn()
{
	printf '%s: warning: %s\n' "$PROGRAM" "$1" >&2
}

# die TEXT [NEXT-STEP...]: the script could not run.
die()
{
	printf '%s: error: %s\n' "$PROGRAM" "$1" >&2
	(($# == 1)) || printf '  next: %s\n' "${@:2}" >&2
	IS_EXPECTED=yes
	exit 2
}

die_usage()
{
	die "$1" "$PROGRAM --help lists the options"
}

# End the script after it has reported a failed test or check.
end_failed()
{
	IS_EXPECTED=yes
	exit 1
}

# on_exit COMMAND...: run COMMAND at exit, in reverse order of the calls. It is quoted, so that eval does
# not split its arguments.
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

# run_step COMMAND...: run a long step, and return its status. Because it has a process group of its own, a
# signal that is sent only to this script also ends it.
run_step()
{
	local status=0

	set -m
	"$@" &
	STEP_PIDS=("$!")
	set +m
	wait "${STEP_PIDS[0]}" || status=$?
	STEP_PIDS=()
	return "$status"
}

# The lock of an output directory is held until the last process of a group has ended.
end_by_signal()
{
	local pid

	trap '' INT TERM HUP
	for pid in "${STEP_PIDS[@]}"; do
		kill "-$1" -- "-$pid" 2>/dev/null || :
	done
	for pid in "${STEP_PIDS[@]}"; do
		wait "$pid" 2>/dev/null || :
	done
	printf '\n%s: interrupted; you can run it again\n' "$PROGRAM" >&2
	run_exit_commands
	trap - EXIT "$1"
	kill "-$1" $$
}

# An error that no code expects ends the script with 2 (could not run), never with 1.
end_script()
{
	local status=$1 command=$2

	run_exit_commands
	[[ $status = 0 || $IS_EXPECTED = yes ]] && return
	printf "%s: error: unexpected: '%s' ended with status %d; the log is %s\n" \
		"$PROGRAM" "$command" "$status" "$LOG_FILE" >&2
	exit 2
}

trap 'end_script $? "$BASH_COMMAND"' EXIT
trap 'end_by_signal INT' INT
trap 'end_by_signal TERM' TERM
trap 'end_by_signal HUP' HUP

# take_lock FILE WHAT, and at its end release_lock. All commands that the script starts inherit a lock. So it
# is held until the last of them has ended.
take_lock()
{
	local fd

	[[ -e $1 ]] || : >"$1"
	exec {fd}<"$1"
	LOCK_FDS+=("$fd")
	flock --nonblock "$fd" && return
	msg "# waiting for another run that uses $2"
	run_step flock "$fd" </dev/null
}

release_lock()
{
	local fd=${LOCK_FDS[-1]}

	exec {fd}<&-
	unset 'LOCK_FDS[-1]'
}

# The lock for BPF programs on this machine
take_machine_lock()
{
	take_lock "$MACHINE_LOCK" "the BPF programs of this machine"
}

log_to()
{
	LOG_FILE=$1
	: > "$LOG_FILE"
}

# run_logged LABEL COMMAND...: run a step with its output in the log, and return its status. If COMMAND
# is a function, it must chain its commands with &&, because errexit may be off.
run_logged()
{
	msg "$1 ..."
	printf '\n=== %s: %s\n' "$1" "${*:2}" >> "$LOG_FILE"
	run_step "${@:2}" >> "$LOG_FILE" 2>&1 < /dev/null
}

# die, and print the end and the path of the log.
die_logged()
{
	printf '%s: the log ends:\n' "$PROGRAM" >&2
	tail -n 12 "$LOG_FILE" | sed 's/^/  | /' >&2 || :
	printf '%s: full log: %s\n' "$PROGRAM" "$LOG_FILE" >&2
	die "$@"
}

# Run git without the user's settings, which could change the form of patches, or call a hook or gpg.
clean_git()
{
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null \
		git -c gc.auto=0 -c user.name=scripts -c user.email=scripts@localhost "$@"
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
