#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Read perf.data files of this perf with others, and theirs with this one:
#
#	scripts/interop.sh v6.16
#
# builds the others, runs selftests/tests/compat/interop.sh with them and prints a
# table of what each combination did; Documentation/interop.rst has it.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=lib/common.sh
. "$SCRIPTS_DIR/lib/common.sh"
# shellcheck source=lib/options.sh
. "$SCRIPTS_DIR/lib/options.sh"
# shellcheck source=lib/pin.sh
. "$SCRIPTS_DIR/lib/pin.sh"
# shellcheck source=lib/packages.sh
. "$SCRIPTS_DIR/lib/packages.sh"

PEERS=(v6.18.15 v6.12.107)
# Has a reader of perf.data that is not perf's.
OTHER_PACKAGES=(hotspot)

print_usage()
{
	cat <<END
usage: scripts/interop.sh [options] TAG

Reads files of perf of the pinned kernel TAG with this repository's patches in
perf of TAG without them, of ${PEERS[*]} and in Debian's ${OTHER_PACKAGES[*]}, and
theirs in this one. The others are built if need be, in out/.
TAG is one of: $(pin__list | paste -s -d ' ')

  --mirror DIR      passed on to apply-and-build.sh
  --jobs N          parallel jobs of the builds (default: number of CPUs)
  --no-install      install nothing; refuse and print the apt line
  -h, --help        this text

Prints a line for each test, then the table: who reads what, with which commands,
and what happens.
Exit status: 0 all as documented, 1 a test failed, 2 could not run.
END
}

parse_options()
{
	options__parse "$@" <<-'END'
		--mirror:	OPT_MIRROR
		--jobs:		JOBS
		--no-install	OPT_INSTALL	no
	END
}

check_options()
{
	pin__check_tag "$TAG"
}

build_peers()
{
	local tag

	for tag in "$TAG" "${PEERS[@]}"; do
		"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" --no-patches "$tag" ||
			die "there is no perf of $tag to compare with" "see above; then run this again"
	done
}

# What is skipped was not compared: the table would lack it.
run_tests()
{
	local status=0

	"$SCRIPTS_DIR/run-selftests.sh" "${OPTIONS_PASSED[@]}" --filter '^interop: ' "$TAG" | tee "$RESULTS" || status=$?
	if ((status == 0)) && ! grep -q ' 0 skipped$' "$RESULTS"; then
		die "some tests were skipped" "see above; then run this again"
	fi
	return "$status"
}

print_table()
{
	{
		printf 'READER|FILE|COMMANDS|RESULT\n'
		sed -n 's/^# # cell://p' "$REPO_DIR/out/$TAG/selftests/logs/interop.log"
	} | column -t -s '|'
}

OPT_INSTALL=yes

parse_options "$@"
check_options
((EUID == 0)) || die "only root can load BPF programs and record them" "run it as root"
RESULTS=$(mktemp)
on_exit rm -f -- "$RESULTS"
mkdir -p -- "$REPO_DIR/out"
log_to "$REPO_DIR/out/interop.log"
[[ -f $REPO_DIR/patches/$TAG/series ]] ||
	die "there are no patches for $TAG, so there is nothing to compare" "name a tag of patches/"
packages__require "$OPT_INSTALL" "${OTHER_PACKAGES[@]}"
build_peers
run_tests || { (($? != 1)) || end_failed; exit 2; }
print_table
