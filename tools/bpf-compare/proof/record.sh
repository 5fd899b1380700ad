#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Make the recordings of prove.py, as root: record.sh idle|busy NUMBER >>recordings
#
# In each recording of one minute, three builds of one program run ten times a second: 1.0, 1.1 with
# 10 % more rounds, and 1.3 with 30 % more rounds. With "busy", two loops of compilers run on the
# same CPUs. For each recording and build, the script prints a line with the number of samples in
# each tenth of a second: STATE RECORDING VERSION COUNT... These counts are all that prove.py needs.
#
# Reads: PERF (default: perf), SECONDS_EACH (default: 60), FREQUENCY (default: 999)

set -euo pipefail
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
PERF=${PERF:-perf}
DIR=$(mktemp -d)
PINS=/sys/fs/bpf/bpf-compare-$$
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$DIR" "$PINS"' EXIT

load()
{
	local version=$1 rounds=$2

	clang -g -O2 --target=bpf -DVERSION="\"$version\"" -DROUNDS="$rounds" -c "$HERE/work.bpf.c" -o "$DIR/work.o"
	# Names in a BPF file system must not have dots.
	bpftool prog load "$DIR/work.o" "$PINS/${version/./_}"
}

# The builds take turns in being the first. A round that begins late does not delay the next one.
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
		path, state, number = sys.argv[1:]
		with open(path, encoding="utf-8") as file:
		    recording = json.load(file)
		times = [sample["timestamp"] for sample in recording["samples"]]
		nr_slots = (max(times) - min(times)) // 100_000_000 + 1
		versions = {item["id"]: item["metadata"].get("version") for item in recording["bpf-metadata"]
		            if item["name"] == "work"}
		counts = {version: [0] * nr_slots for version in sorted(versions.values())}
		for sample in recording["samples"]:
		    version = versions.get(sample["callchain"][0].get("bpf-prog-id")) if sample["callchain"] else None
		    if version:
		        counts[version][(sample["timestamp"] - min(times)) // 100_000_000] += 1
		for version, slots in counts.items():
		    print(state, number, version, *slots)
	END
}

mkdir "$PINS"
load 1.0 1000
load 1.1 1100
load 1.3 1300
[[ $1 != busy ]] || { keep_busy a & keep_busy b & }
for ((number = 0; number < $2; number++)); do
	run_builds $((${SECONDS_EACH:-60} + 2)) &
	builds=$!
	"$PERF" record -q -a -e cpu-clock -F "${FREQUENCY:-999}" -o "$DIR/perf.data" sleep "${SECONDS_EACH:-60}"
	wait "$builds"
	"$PERF" data convert --force --to-json "$DIR/perf.json" -i "$DIR/perf.data" 2>/dev/null
	print_counts "$DIR/perf.json" "$1" "$number"
	rm "$DIR/perf.json"
done
