#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Change perf.data files at random, and let perf read the results.

  mutate_file.py run PERF COUNT DIR FILE...
                                      make COUNT files in DIR, from each FILE in turn, and
                                      let PERF read them
        --seed=N                      the seed of the random numbers (1)
        --first=N                     the first number (0)
  mutate_file.py write FILE SEED N NEW
                                      write the file with this number to NEW, and print
                                      the changes
  mutate_file.py list FILE            list the places that can be changed

The same FILE, seed and number give the same bytes. It is a finding if "perf report
--header", "script", "inject" or "data convert --to-json" dies from a signal, takes more than
60 s, or writes more than 64 MiB. perf without sanitizers gets 4 GiB of memory. The file of a
finding stays in DIR, beside a text with the command, the changes and the output. A clean error
exit is not a finding.

FILE may have been written to a pipe. Only this machine's byte order is supported.

Environment:
  PBM_TIMEOUT_SCALE   how many times slower than usual this machine is (1)
  PBM_TIME_LIMIT      seconds that perf may take, times PBM_TIMEOUT_SCALE (60)
  PBM_SANITIZED       1: perf has sanitizers, and their reports are findings
"""
import collections
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys

import perfdata

SANITIZED = os.environ.get("PBM_SANITIZED") == "1"
TIME_LIMIT = int(os.environ.get("PBM_TIME_LIMIT", "60")) * int(os.environ.get("PBM_TIMEOUT_SCALE", "1"))
MEMORY_LIMIT = 4 << 30
OUTPUT_LIMIT = 64 << 20
KEPT_OUTPUT = 1 << 20

SAMPLE = perfdata.SAMPLE
KSYMBOL, BPF_EVENT, METADATA = perfdata.KSYMBOL, perfdata.BPF_EVENT, perfdata.METADATA
HEADER_ATTR, EVENT_UPDATE, HEADER_FEATURE = 64, 78, 80
LAST_TYPE = 86
HEADER_SIZE, PIPE_HEADER_SIZE, ATTR_SIZE, NR_FEATURES = 104, 16, 144, 256

NUMBERS = (0, 1, 2, 3, 4, 7, 8, 9, 16, 63, 64, 255, 256, 4095, 4096, 0x7fff, 0xfff8, 0xffff, 1 << 16,
           1 << 20, 1 << 28, 0x7fffffff, 1 << 31, 0xfffffff8, 0xffffffff, 1 << 32, 1 << 40,
           (1 << 63) - 1, 1 << 63, (1 << 64) - 8, (1 << 64) - 1)
TEXTS = (b"\x1b[31m", b"\x1b]0;x\x07", b"\x07", b"\x08\x08", b"\r", b"\x7f", b"\x9b1m", b"\xc2\x9b1m",
         b"\xc2\x85", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82\xac", b"%s%n",
         b"'", b'"\\', b"\t\n", b"/../", b"4294967295", b"0-65535")

# The name, the beginning and the end of a place
Place = collections.namedtuple("Place", "name begin end")


def find_strings(data, place):
    return [Place(place.name, place.begin + found.start(), place.begin + found.end())
            for found in re.finditer(rb"[ -~]{3,}", data[place.begin:place.end])]


class Source:
    """The contents of a good file, and their places."""

    def __init__(self, path):
        data = perfdata.PerfData(path)
        self.path, self.bytes, self.is_pipe = path, data.bytes, data.is_pipe
        self.begin, self.end, self.records = data.begin, data.end, data.records
        self.header = [Place("header", 0, PIPE_HEADER_SIZE if self.is_pipe else HEADER_SIZE)]
        self.attrs = [Place("attr", at, at + ATTR_SIZE) for at in data.attrs]
        self.table, self.features = [], []
        for number, (entry, at, size) in data.features().items():
            self.table.append(Place(f"entry of feature {number}", entry, entry + 16))
            self.features.append(Place(f"feature {number}", at, at + size))
        self.bodies = {}
        for at, kind, size in self.records:
            self.add_record(at, kind, size)
        self.features = [place for place in self.features if place.begin < place.end]
        at, size = data.block_place()
        self.block = [Place("block", at, at + size)] if size else []
        bpf = self.bodies.get(KSYMBOL, []) + self.bodies.get(METADATA, []) + self.bodies.get(EVENT_UPDATE, [])
        self.strings = [[string for place in places for string in find_strings(self.bytes, place)]
                        for places in (self.features, self.block, bpf)]
        self.strings = [strings for strings in self.strings if strings]

    def add_record(self, at, kind, size):
        if kind == HEADER_FEATURE:
            (number,) = struct.unpack_from("=Q", self.bytes, at + 8)
            self.features.append(Place(f"feature {number}", at + 16, at + size))
        if size > 8:
            self.bodies.setdefault(kind, []).append(Place(f"record of type {kind}", at + 8, at + size))


class Mutation:
    """A copy of a source with some changes."""

    def __init__(self, source, seed, number):
        self.source = source
        self.random = random.Random(f"{seed}/{number}")
        self.bytes = bytearray(source.bytes)
        self.changes = []
        steps = {self.change_header: 2, self.change_attr: 4, self.change_table: 4,
                 self.change_feature: 20, self.change_string: 20, self.change_block: 10,
                 self.change_record_header: 12, self.change_record: 16, self.move_records: 6,
                 self.truncate: 2}
        for step in self.random.choices(list(steps), list(steps.values()),
                                        k=self.random.choice((1, 1, 1, 2, 3, 8))):
            # move_records() and truncate() can move bytes, and then all places are wrong. So end
            # after such a step.
            step()
            if len(self.bytes) != len(source.bytes):
                break

    def note(self, text):
        self.changes.append(text)

    def new_number(self, size, old):
        kind = self.random.randrange(6)
        if kind == 0:
            number = self.random.getrandbits(8 * size)
        elif kind == 1:
            number = old ^ 1 << self.random.randrange(8 * size)
        elif kind == 2:
            number = old + self.random.choice((-64, -8, -1, 1, 8, 64))
        elif kind == 3:
            number = len(self.bytes) + self.random.choice((-8, -1, 0, 1, 8))
        else:
            number = self.random.choice(NUMBERS)
        return number & (1 << 8 * size) - 1

    def change_number(self, name, at, size):
        if at + size > len(self.bytes):
            return
        old = int.from_bytes(self.bytes[at:at + size], sys.byteorder)
        new = self.new_number(size, old)
        self.bytes[at:at + size] = new.to_bytes(size, sys.byteorder)
        self.note(f"{name}: {8 * size} bits at {at:#x} are {new:#x}, were {old:#x}")

    def change_word(self, place):
        """Change a number, often early in a place: most places begin with a count or a size."""
        size = self.random.choice((1, 2, 4, 4, 4, 8, 8))
        words = (place.end - place.begin) // size
        if not words:
            return
        nearby = self.random.choice((words, words, min(words, 16)))
        self.change_number(place.name, place.begin + size * self.random.randrange(nearby), size)

    def change_bytes(self, place):
        at = self.random.randrange(place.begin, place.end)
        end = min(place.end, at + self.random.choice((1, 4, 16, 64)))
        self.bytes[at:end] = self.random.choice((bytes(end - at), (end - at) * b"\xff", (end - at) * b"A",
                                                 self.random.randbytes(end - at)))
        self.note(f"{place.name}: new bytes from {at:#x} to {end:#x}")

    def change_place(self, places):
        if not places:
            return
        place = self.random.choice(places)
        self.random.choice((self.change_word, self.change_word, self.change_word, self.change_bytes))(place)

    def change_header(self):
        if self.random.random() < 0.3 and not self.source.is_pipe:
            bit = self.random.choice((self.random.randrange(36), self.random.randrange(NR_FEATURES)))
            self.bytes[72 + bit // 8] ^= 1 << bit % 8
            self.note(f"header: bit of feature {bit}")
        else:
            # Not the magic: without it, perf reads nothing.
            self.change_word(Place("header", 8, self.source.header[0].end))

    def change_attr(self):
        self.change_place(self.source.attrs)

    def change_table(self):
        table = self.source.table
        if not table:
            return
        one, other = self.random.choice(table), self.random.choice(table)
        if self.random.random() < 0.3:
            self.bytes[one.begin:one.end] = self.source.bytes[other.begin:other.end]
            self.note(f"{one.name}: copied from {other.name}")
        else:
            self.change_number(one.name, one.begin + self.random.choice((0, 8)), 8)

    def change_feature(self):
        self.change_place(self.source.features)

    def change_block(self):
        self.change_place(self.source.block)

    def change_string(self):
        if not self.source.strings:
            return
        place = self.random.choice(self.random.choice(self.source.strings))
        text = self.random.choice(TEXTS)
        at = self.random.randrange(place.begin, place.end)
        if self.random.random() < 0.2:
            text = text * 64
        end = min(at + len(text), len(self.bytes))
        self.bytes[at:end] = text[:end - at]
        self.note(f"{place.name}: {text[:16]!r} at {at:#x}")

    def change_record_header(self):
        at, kind, size = self.random.choice(self.source.records)
        field = self.random.randrange(4)
        if field == 0:
            new = self.random.choice((self.random.randrange(1, 22), self.random.randrange(64, LAST_TYPE + 1)))
            struct.pack_into("=I", self.bytes, at, new)
            self.note(f"record at {at:#x}: type {new}, was {kind}")
        elif field == 1:
            self.change_number(f"misc of a record of type {kind}", at + 4, 2)
        elif field == 2:
            new = self.random.randrange(8, size + 1) & ~7
            struct.pack_into("=H", self.bytes, at + 6, new)
            self.note(f"record at {at:#x}, of type {kind}: size {new}, was {size}")
        else:
            self.change_number(f"size of a record of type {kind}", at + 6, 2)

    def change_record(self):
        """Change a record. In half of the cases, its type is about BPF programs."""
        bodies = self.source.bodies
        kinds = list(bodies)
        if self.random.random() < 0.5:
            kinds = [kind for kind in (KSYMBOL, BPF_EVENT, METADATA) if kind in bodies] or kinds
        self.change_place(bodies[self.random.choice(kinds)])

    def move_records(self):
        """Remove, repeat or swap records; the rest of the file stays valid."""
        source = self.source
        parts = [bytes(self.bytes[at:at + size]) for at, _, size in source.records]
        one, other = self.random.randrange(len(parts)), self.random.randrange(len(parts))
        kind = self.random.randrange(4)
        if kind == 0:
            del parts[one]
        elif kind == 1:
            parts.insert(other, parts[one])
        elif kind == 2:
            parts[one], parts[other] = parts[other], parts[one]
        else:
            parts[one:one] = [parts[other]] * self.random.choice((2, 50))
        self.note(f"records {one}, {other}: {('removed first', 'again', 'swapped', 'often')[kind]}")
        data = b"".join(parts)
        grown = len(data) - (source.end - source.begin)
        if grown and not source.is_pipe:
            struct.pack_into("=Q", self.bytes, 48, len(data))
            for entry in source.table:
                (at,) = struct.unpack_from("=Q", self.bytes, entry.begin)
                struct.pack_into("=Q", self.bytes, entry.begin, at + grown & (1 << 64) - 1)
        self.bytes[source.begin:source.end] = data

    def truncate(self):
        place = self.random.choice(self.source.header + self.source.attrs + self.source.table +
                                   self.source.features + self.source.block +
                                   [Place("record", at, at + size) for at, _, size in self.source.records])
        at = self.random.randrange(place.begin, place.end + 1)
        self.note(f"truncated at {at:#x}, {place.name}")
        del self.bytes[at:]


def limit_children():
    """perf inherits the limits: setting them in a child needs a fork(), which takes longer than perf."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_LIMIT, OUTPUT_LIMIT))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


class Reader:
    """perf, which reads files in a directory."""

    def __init__(self, perf, path):
        limit_children()
        self.perf, self.path = perf, path
        self.output = path + "/output"
        self.environment = dict(os.environ)
        if SANITIZED:
            # With this option, the reports are in the output.
            for name in "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS":
                self.environment[name] = os.environ.get(name, "") + ":log_path=stderr"

    def commands(self, file):
        return (["report", "--header", "--stdio", "-i", file],
                ["script", "--show-bpf-events", "-i", file],
                ["inject", "-i", file, "-o", self.path + "/injected"],
                ["data", "convert", "--force", "--to-json", self.path + "/json", "-i", file])

    def run(self, args):
        """Returns the output, and the problem with the exit or None."""
        with open(self.output, "wb") as out:
            child = subprocess.Popen([self.perf] + args, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                     env=self.environment, start_new_session=True)
            try:
                status, wrong = child.wait(TIME_LIMIT), None
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                status, wrong = child.wait(), f"takes more than {TIME_LIMIT} s"
        with open(self.output, "rb") as out:
            output = out.read()
        if not wrong and status == -signal.SIGXFSZ:
            wrong = f"writes more than {OUTPUT_LIMIT >> 20} MiB"
        elif not wrong and status < 0:
            wrong = f"dies from signal {-status}"
        if SANITIZED and re.search(rb"runtime error: |(ERROR|WARNING): [A-Za-z]*Sanitizer: ", output):
            wrong = "is reported by a sanitizer"
        return output, wrong

    def read(self, file):
        for command in self.commands(file):
            output, wrong = self.run(command)
            if wrong:
                return f"perf {' '.join(command)}: {wrong}", output
        return None, b""


def run(options, perf, count, path, *files):
    seed, first = int(options.get("seed", 1)), int(options.get("first", 0))
    sources = [Source(file) for file in files]
    reader = Reader(perf, path)
    findings = 0
    for number in range(first, first + int(count)):
        mutation = Mutation(sources[number % len(sources)], seed, number)
        file = f"{path}/{seed}-{number}.data"
        with open(file, "wb") as out:
            out.write(mutation.bytes)
        wrong, output = reader.read(file)
        if wrong:
            findings += 1
            text = "\n".join([wrong, *mutation.changes])
            print(text, file=sys.stderr)
            with open(file.replace(".data", ".txt"), "wb") as out:
                out.write(text.encode() + b"\n\n" + output[:KEPT_OUTPUT])
        else:
            os.remove(file)
        if (number + 1 - first) % 500 == 0:
            print(f"{number + 1 - first} files, {findings} findings", flush=True)
    print(f"seed {seed}: {count} files, {findings} findings")
    return 1 if findings else 0


def write(_, file, seed, number, new):
    mutation = Mutation(Source(file), int(seed), int(number))
    print(*mutation.changes, sep="\n")
    with open(new, "wb") as out:
        out.write(mutation.bytes)
    return 0


def list_places(_, file):
    source = Source(file)
    for place in source.header + source.attrs + source.table + source.features + source.block:
        print(f"{place.begin:#8x} {place.end:#8x} {place.name}")
    for kind, places in sorted(source.bodies.items()):
        print(f"{len(places)} records of type {kind}")
    print(f"{sum(len(strings) for strings in source.strings)} strings")
    return 0


def main(args):
    options = dict(arg[2:].split("=", 1) for arg in args if re.match("--(seed|first)=[0-9]+$", arg))
    rest = [arg for arg in args if not arg.startswith("--")]
    command, least, most = {"run": (run, 5, 99), "write": (write, 5, 5),
                            "list": (list_places, 2, 2)}.get(rest[0] if rest else "", (None, 0, 0))
    if not command or not least <= len(rest) <= most:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        return command(options, *rest[1:])
    except (perfdata.Bad, OSError) as error:
        print(f"mutate_file.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
