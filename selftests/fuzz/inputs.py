#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Take inputs for fuzz.c out of perf.data files of this machine's byte order.

  inputs.py DIR FILE...

These are inputs: all metadata records of a FILE, and the metadata block in its header. Each input
becomes a file in DIR that is named after the hash of its content.
"""
import hashlib
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import perfdata  # noqa: E402

SWAPPED, PIPE, CUT, BLOCK = 1, 2, 4, 8
MAX_SIZE = 16384


def inputs(path):
    data = perfdata.PerfData(path)
    records = b"".join(data.bytes[at:at + size] for at, kind, size in data.records
                       if kind == perfdata.METADATA)
    for flags in (0, PIPE, PIPE | CUT):
        yield flags, records
    place, size = data.block_place()
    yield BLOCK, data.bytes[place:place + size]


def write(directory, path):
    for flags, content in inputs(path):
        content = bytes([flags]) + content
        if 1 < len(content) <= MAX_SIZE:
            (directory / hashlib.sha1(content).hexdigest()).write_bytes(content)


def main(args):
    if len(args) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    for path in args[1:]:
        try:
            write(pathlib.Path(args[0]), path)
        except (perfdata.Bad, struct.error) as error:
            print(f"{path}: left out: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
