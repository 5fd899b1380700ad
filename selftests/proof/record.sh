#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Make the recordings of prove.py, as root: record.sh idle|busy SECONDS NUMBER >>recordings
#
# In each recording, three builds of one program run ten times a second: 1.0, 1.1 with 10 % more
# rounds, and 1.3 with 30 % more rounds. They are loaded anew for each recording. With "busy", two
# loops of compilers run on the same CPUs. For each recording and build, print a line with the
# number of samples in each half second: STATE SECONDS RECORDING VERSION COUNT... prove.py needs
# only these numbers.
#
# Reads: PERF (default: perf)

set -euo pipefail
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
PERF=${PERF:-perf}
DIR=$(mktemp -d)
PINS=/sys/fs/bpf/bpf-compare-$$
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$DIR" "$PINS"' EXIT

compile()
{
	clang -g -O2 --target=bpf -DVERSION="\"$1\"" -DROUNDS="$2" -c "$HERE/work.bpf.c" -o "$DIR/$1.o"
}

load_all()
{
	local version

	for version in 1.0 1.1 1.3; do
		# Names in this file system have no dots.
		bpftool prog load "$DIR/$version.o" "$PINS/${version/./_}"
	done
}

# The builds take turns in being the first. A turn that begins late does not delay the next one.
run_builds()
{
	python3 - "$PINS" "$1" <<-'END'
		import itertools, os, subprocess, sys, time
		pins, end = sys.argv[1], time.monotonic() + float(sys.argv[2])
		versions = sorted(os.listdir(pins))
		begin = time.monotonic()
		for turn in itertools.count():
		    if time.monotonic() > end:
		        break
		    for version in versions[turn % 3:] + versions[:turn % 3]:
		        subprocess.run(["bpftool", "prog", "run", "pinned", f"{pins}/{version}", "data_in", "/etc/os-release",
		                        "repeat", "1500"], stdout=subprocess.DEVNULL, check=True)
		    time.sleep(max(0, begin + (turn + 1) / 10 - time.monotonic()))
	END
}

keep_busy()
{
	echo 'int main(void) { return 0; }' >"$DIR/$1.c"
	while gcc -O2 -include stdio.h -include stdlib.h "$DIR/$1.c" -o "$DIR/$1"; do
		:
	done
}

print_counts()
{
	python3 - "$@" <<-'END'
		import json, sys
		path, *label, seconds, number = sys.argv[1:]
		with open(path, encoding="utf-8") as file:
		    recording = json.load(file)
		begin = min(sample["timestamp"] for sample in recording["samples"])
		versions = {item["id"]: item["metadata"]["version"] for item in recording["bpf-metadata"] if item["name"] == "work"}
		counts = {version: [0] * (2 * int(seconds)) for version in sorted(versions.values())}
		for sample in recording["samples"]:
		    version = versions.get(sample["callchain"][0].get("bpf-prog-id")) if sample["callchain"] else None
		    slot = (sample["timestamp"] - begin) // 500_000_000
		    if version and slot < len(counts[version]):
		        counts[version][slot] += 1
		for version, slots in counts.items():
		    print(*label, seconds, number, version, *slots)
	END
}

mkdir "$PINS"
compile 1.0 1000
compile 1.1 1100
compile 1.3 1300
[[ $1 != busy ]] || { keep_busy a & keep_busy b & }
for ((number = 0; number < $3; number++)); do
	load_all
	run_builds "$(($2 + 1))" &
	builds=$!
	"$PERF" record -q -a -e cpu-clock -F 999 -o "$DIR/perf.data" sleep "$2.1"
	wait "$builds"
	rm "$PINS"/*
	"$PERF" data convert --force --to-json "$DIR/perf.json" -i "$DIR/perf.data" 2>/dev/null
	print_counts "$DIR/perf.json" "$1" "$2" "$number"
	rm "$DIR/perf.json"
done
