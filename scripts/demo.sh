#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Show the cost and the owners of the BPF programs of this host: scripts/demo.sh
#
# This works even if no program declares metadata. perf records, and tools/bpf-owners finds the
# owners of the programs. perf inject --bpf-metadata-add adds them to the recording.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"

PERF=$REPO_DIR/out/v6.16/perf
[[ -x $PERF ]] || PERF=$REPO_DIR/out/v7.3.4/perf
SECONDS_TO_RECORD=10

print_usage()
{
	cat <<END
usage: scripts/demo.sh [--perf PATH] [SECONDS]

Records this host for SECONDS (default: 10) and prints the share of each BPF program
in the samples of all CPUs, with the systemd unit, container or executable that holds
it. Needs root.

  --perf PATH   a perf with this series (default: out/v6.16/perf,
                else out/v7.3.4/perf)
  -h, --help    this text

Exit status: 0 done, 2 could not run.
END
}

parse_options()
{
	while (($#)); do
		case $1 in
		--perf)
			(($# > 1)) || die_usage "--perf needs a path"
			PERF=$2
			shift ;;
		-h | --help)
			print_usage
			exit 0 ;;
		*)
			[[ $1 =~ ^[1-9][0-9]*$ ]] ||
				die_usage "$1: not a number of seconds"
			SECONDS_TO_RECORD=$1 ;;
		esac
		shift
	done
}

check_perf()
{
	check_root
	check_bpftool
	[[ -x $PERF ]] || die "$PERF does not exist" "scripts/apply-and-build.sh v6.16 builds it"
	"$PERF" check feature -q bpf-metadata 2>/dev/null ||
		die "$PERF lacks this series" "leave out --perf"
}

# bpf-owners runs at the end, so it finds no owners of programs that were unloaded before. Status 1 means that
# something is left out.
record()
{
	msg "record this host for $SECONDS_TO_RECORD seconds"
	# shellcheck disable=SC2016 # perf runs the shell.
	"$PERF" record -q -a -o "$DIR/data" -- sh -c 'sleep "$1"; "$2" --perf >"$3" || [ $? = 1 ]' sh \
		"$SECONDS_TO_RECORD" "$REPO_DIR/tools/bpf-owners" "$DIR/owners" >&2 ||
		die "perf record or bpf-owners failed" "correct the error above and run it again"
	"$PERF" inject --bpf-metadata-add "$DIR/owners" -i "$DIR/data" -o "$DIR/owned" ||
		die "perf inject failed" "correct the error above and run it again"
}

report()
{
	"$PERF" report --stdio -q -s bpf_prog,bpf_metadata --bpf-metadata-keys unit,container,exe,hook,cgroup,pinned \
		-i "$DIR/owned" >"$DIR/report"
	grep -v -e ' N/A  *N/A *$' -e '^$' "$DIR/report" && return
	msg "no BPF program had a sample: record for a longer time, or while a program is busy"
}

parse_options "$@"
check_perf
DIR=$(mktemp -d)
on_exit rm -rf -- "$DIR"
record
report
