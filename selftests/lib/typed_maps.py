#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Find out whether "bpftool map dump" prints fields of maps, or bytes.

  typed_maps.py BPFTOOL    reads "ID NAME" lines, prints NAME TYPE KEY_SIZE VALUE_SIZE HOW

HOW is "fields" or "bytes". A map that is empty gets an element of zeros first. Of maps
that cannot be dumped it is what "bpftool map show" says: a map with BTF has types.
"""
import json
import subprocess
import sys

FILLED = ("hash", "percpu_hash", "lru_hash", "lru_percpu_hash")


def run(bpftool, *args):
    return subprocess.run([bpftool, "-j", "map", *args], capture_output=True, text=True, check=False)


def fill(bpftool, map_id, shown):
    zeros = [["0"] * shown[size] for size in ("bytes_key", "bytes_value")]
    result = run(bpftool, "update", "id", map_id, "key", *zeros[0], "value", *zeros[1])
    if result.returncode:
        sys.exit(f"map {map_id}: bpftool cannot add an element: {result.stdout}{result.stderr}")


def how_printed(bpftool, map_id, shown):
    if shown["type"] in FILLED:
        fill(bpftool, map_id, shown)
    dump = run(bpftool, "dump", "id", map_id).stdout
    # The fields themselves may be such that bpftool's JSON is none.
    if '"formatted":' in dump:
        return "fields"
    if '"key":' in dump:
        return "bytes"
    return "fields" if shown.get("btf_id") else "bytes"


def main(args):
    if len(args) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    for line in sys.stdin:
        map_id, name = line.split()
        shown = json.loads(run(args[0], "show", "id", map_id).stdout)
        print(name, shown["type"], shown["bytes_key"], shown["bytes_value"],
              how_printed(args[0], map_id, shown))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
