#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: scripts/demo.sh [SECONDS]
#
# Records this host for SECONDS (default: 10) and prints the share of each BPF program in the
# samples of all CPUs, with the systemd unit, container or executable that holds it. It needs root,
# and the perf that scripts/apply-and-build.sh builds (or PBM_PERF, the path of a perf with this series).
#
# This works even if no program declares metadata. perf records, and tools/bpf-owners finds the
# owners of the programs. perf inject --bpf-metadata-add adds them to the recording.
#
# Exit status: 0 done, 2 could not run.

set -euo pipefail

. "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

PERF=$REPO_DIR/out/v6.16/perf
[[ -x $PERF ]] || PERF=$REPO_DIR/out/v7.3.4/perf
PERF=${PBM_PERF:-$PERF}
SECONDS_TO_RECORD=${1:-10}
case $SECONDS_TO_RECORD in
-h | --help)
	sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
	exit 0 ;;
esac
[[ $SECONDS_TO_RECORD =~ ^[1-9][0-9]*$ && $# -le 1 ]] || die_usage "$*: not a number of seconds"
check_root
check_bpftool
[[ -x $PERF ]] || die "$PERF does not exist" "scripts/apply-and-build.sh v6.16 builds it"
"$PERF" check feature -q bpf-metadata 2>/dev/null || die "$PERF lacks this series" "unset PBM_PERF"

DIR=$(mktemp -d)
on_exit rm -rf -- "$DIR"
msg "record this host for $SECONDS_TO_RECORD seconds"
# bpf-owners runs at the end, so it finds no owners of programs that were unloaded before. Status 1 means that
# something is left out.
# shellcheck disable=SC2016 # perf runs the shell.
"$PERF" record -q -a -o "$DIR/data" -- sh -c 'sleep "$1"; "$2" --perf >"$3" || [ $? = 1 ]' sh \
	"$SECONDS_TO_RECORD" "$REPO_DIR/tools/bpf-owners" "$DIR/owners" >&2 ||
	die "perf record or bpf-owners failed" "correct the error above and run it again"
"$PERF" inject --bpf-metadata-add "$DIR/owners" -i "$DIR/data" -o "$DIR/owned" ||
	die "perf inject failed" "correct the error above and run it again"
"$PERF" report --stdio -q -s bpf_prog,bpf_metadata --bpf-metadata-keys unit,container,exe,hook,cgroup,pinned \
	-i "$DIR/owned" >"$DIR/report"
grep -v -e ' N/A  *N/A *$' -e '^$' "$DIR/report" ||
	msg "no BPF program had a sample: record for a longer time, or while a program is busy"
