# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Run run-selftests.sh in guests, and check the results.
#
# Usage (after lib/vm.sh, vm__prepare):
#	guests__fill_queue PROGRAM...	queue the programs, which the guests divide among themselves
#	guests__take PROGRAM		status 0 if this guest has to run the program; always 0
#					outside of guests
#	guests__run RESULTS		run the script in each guest, and collect the results in
#					the file RESULTS; die if the script could not run there
#	guests__check RESULTS NAMES READER
#					add a failure for each of NAMES (one per line) without
#					exactly one result, and for complaints of the kernels.
#					READER is empty, or a perf of this host that reads the
#					recording of a guest of another architecture
#
# Reads:
#	VM_DIR		the directory of the guests, see vm.sh
#	OPT_GUEST	in a guest: its directory in VM_DIR; on the host: empty
#	REPO_DIR OUT_DIR PERF TAG ARCH_HAS_PMU PERF_TEST OPT_FILTER OPT_PERF OPT_VERBOSE PBM_*
#
# How it works. All paths in a guest are those of the host. The queue has a directory for
# each program. The guest that removes this directory runs the program.

# If the guest has another architecture, this host also reads the recording of this test.
FOREIGN_TEST="hardware: samples of cycles"
FOREIGN_CHECK="hardware: perf of $(uname -m) reads the samples of the guest"

guests__fill_queue()
{
	local program

	rm -rf -- "$VM_DIR"
	mkdir -p -- "$VM_DIR/queue"
	for program; do
		mkdir -p -- "$VM_DIR/queue/$program"
	done
}

guests__take()
{
	[[ -z $OPT_GUEST ]] || rmdir -- "${OPT_GUEST%/*}/queue/$1" 2>/dev/null
}

# Share all paths that the tests need: a guest may have another root and /tmp.
guests__share_paths()
{
	local path

	vm__share "$REPO_DIR"
	vm__share "$OUT_DIR"
	for path in "$PERF" "${PBM_UNPATCHED_PERF:-}" "${PBM_PEER_PERF:-}" "${PBM_OLD_PERF:-}" \
		"${PBM_BPFTOOL:-}"; do
		[[ $path != */* ]] || vm__share "$(dirname -- "$(realpath -- "$path")")"
	done
}

# vm__run appends the guest's directory, which is the argument of --guest.
guests__run()
{
	local results=$1 name command

	guests__share_paths
	command=(env PBM_QUIET="${PBM_QUIET:-0}" PBM_UNPATCHED_PERF="${PBM_UNPATCHED_PERF:-}"
		PBM_PEER_PERF="${PBM_PEER_PERF:-}" PBM_OLD_PERF="${PBM_OLD_PERF:-}"
		PBM_NEED_PMU="$ARCH_HAS_PMU")
	for name in PBM_STRESS_PROGRAMS PBM_STRESS_MS PBM_BPFTOOL; do
		[[ -z ${!name:-} ]] || command+=("$name=${!name}")
	done
	command+=("$SCRIPTS_DIR/${0##*/}" --out "$OUT_DIR" --filter "$OPT_FILTER")
	[[ -z $OPT_PERF ]] || command+=(--perf "$PERF")
	[[ $OPT_VERBOSE = no ]] || command+=(--verbose)
	vm__run "${command[@]}" "$TAG" --guest
	((VM_STATUS == 0)) ||
		die "the tests could not run in a guest, status $VM_STATUS" "see above, and $VM_DIR/*/console.log"
	cat "$VM_DIR"/*/results >"$results"
}

# Add a failure for each test without a result, and for each test with two results. In NAMES, perf
# test is one name, with which the names of all its results begin.
guests__check_names()
{
	local results=$1 names=$2 name

	while read -r name; do
		cut -f 2 "$results" | awk -v name="$name" -v prefix="$PERF_TEST" '
			$0 == name || name == prefix && index($0, name " ") == 1 { found = 1 }
			END { exit !found }' && continue
		printf 'FAILED  %s (no result came back from the guests)\n' "$name"
		printf 'not ok\t%s\tno result\n' "$name" >>"$results"
	done <<<"$names"
	while read -r name; do
		printf 'FAILED  %s (came back from two guests)\n' "$name"
		printf 'not ok\t%s\ttwo results\n' "$name" >>"$results"
	done < <(cut -f 2 "$results" | sort | uniq -d)
}

# Compare what perf of this host and perf of the guest print. Only one guest has made the recording.
guests__read_recording()
{
	local reader=$1 data

	data=$(find "$VM_DIR" -name hardware.data)
	"$reader" script --show-bpf-events -F comm,tid,cpu,time,event,period \
		-i "$data" >"$VM_DIR/hardware.text" 2>>"$LOG_FILE" &&
		grep -q PERF_RECORD_BPF_METADATA "$VM_DIR/hardware.text" &&
		diff -u "${data%.data}.text" "$VM_DIR/hardware.text" >>"$LOG_FILE"
}

guests__check_recording()
{
	local results=$1 names=$2 reader=$3

	[[ -n $reader ]] && grep -q -x -F "$FOREIGN_TEST" <<<"$names" || return 0
	if guests__read_recording "$reader"; then
		printf 'ok\t%s\t\n' "$FOREIGN_CHECK" >>"$results"
		msg "ok      $FOREIGN_CHECK"
	else
		printf 'not ok\t%s\t\n' "$FOREIGN_CHECK" >>"$results"
		printf 'FAILED  %s\n  log: %s\n' "$FOREIGN_CHECK" "$LOG_FILE"
	fi
}

guests__check()
{
	guests__check_names "$1" "$2"
	guests__check_recording "$@"
	vm__check_log || printf 'not ok\tkernel logs of the guests\n' >>"$1"
}
