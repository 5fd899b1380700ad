#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Make the recordings of prove.py, as root: record.sh idle|busy SECONDS NUMBER SLICES >>recordings
#
# In each recording, three builds of one program run ten times a second: 1.0, 1.1 with 10 % more
# rounds, and 1.3 with 30 % more rounds. They are loaded anew for each recording. With "busy", two
# loops of compilers run on the same CPUs. For each build, print a line with the number of samples
# in each slice of the first recording, of the second one, and so on: STATE SECONDS SLICES VERSION
# COUNT... prove.py needs only these numbers.
#
# Reads: PERF (default: perf)

set -euo pipefail
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
PERF=${PERF:-perf}
DIR=$(mktemp -d)
PINS=/sys/fs/bpf/bpf-compare-$$
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$DIR" "$PINS"' EXIT

# run_builds SECONDS: the builds take turns in being the first. A turn that begins late does not delay the next.
run_builds()
{
	local turn version order=(1_0 1_1 1_3) begin=${EPOCHREALTIME/./}

	for ((turn = 0; turn < 10 * $1; turn++)); do
		for version in "${order[@]}"; do
			bpftool prog run pinned "$PINS/$version" data_in /etc/os-release repeat 1500 >/dev/null
		done
		order=("${order[@]:1}" "${order[0]}")
		sleep "$(awk -v us=$((begin + 100000 * (turn + 1) - ${EPOCHREALTIME/./})) 'BEGIN { print (us > 0 ? us / 1e6 : 0) }')"
	done
}

keep_busy()
{
	echo 'int main(void) { return 0; }' >"$DIR/$1.c"
	while gcc -O2 -include stdio.h -include stdlib.h "$DIR/$1.c" -o "$DIR/$1"; do
		:
	done
}

# count SECONDS SLICES: append the counts of $DIR/perf.data to $DIR/counts.VERSION
count()
{
	"$PERF" script -G -F time,bpf_metadata --ns -i "$DIR/perf.data" 2>/dev/null |
		awk -v seconds="$1" -v slices="$2" -v dir="$DIR" '
			NR == 1 { begin = $1 }
			match($0, /version="[0-9.]*"/) {
				n[substr($0, RSTART + 9, RLENGTH - 10) " " int(($1 - begin) * slices / seconds)]++
			}
			END {
				split("1.0 1.1 1.3", versions)
				for (v = 1; v <= 3; v++)
					for (i = 0; i < slices; i++)
						printf " %d", n[versions[v] " " i] >>(dir "/counts." versions[v])
			}'
}

mkdir "$PINS"
for version in 1.0 1.1 1.3; do
	clang -g -O2 --target=bpf -DVERSION="\"$version\"" -DROUNDS="1${version#1.}00" -c "$HERE/work.bpf.c" -o "$DIR/$version.o"
done
[[ $1 != busy ]] || { keep_busy a & keep_busy b & }
for ((number = 0; number < $3; number++)); do
	for version in 1.0 1.1 1.3; do
		# Names in this file system have no dots.
		bpftool prog load "$DIR/$version.o" "$PINS/${version/./_}"
	done
	run_builds "$(($2 + 1))" &
	builds=$!
	"$PERF" record -q -a -e cpu-clock -F 999 -o "$DIR/perf.data" sleep "$2.1"
	wait "$builds"
	rm "$PINS"/*
	count "$2" "$4"
done
for version in 1.0 1.1 1.3; do
	echo "$1 $2 $4 $version$(<"$DIR/counts.$version")"
done
