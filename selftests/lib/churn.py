#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Compare recordings with the programs that churn loaded and unloaded. A program that stayed, or that
churn unloaded when it was told to (churn -w), must have its set. The others need none, because
perf reads programs in a thread, which may have to wait for a CPU; but a set must be right.

  churn.py LIST FILE...    check that every program that must have its set has it, and that no set is wrong

LIST is the output of churn. The FILEs are those of one recording, in order. Each is a
perf.data file or the output of "perf script --show-bpf-events".

A recording must have the right values, and meet these rules:
  - A metadata record has the id and the name of a program, and all its values.
  - In a single file, a program that loads while events are off needs no record.
  - Of several files, each has the sets of the programs with KSYMBOL records in it, and no
    other sets. If perf switches files just when a program loads, the first file with its KSYMBOL
    may lack the set, or a file next to one with the KSYMBOL may have the set, too.
"""
import re
import sys

import perfdata
import values

SHOWN = 20
FUNCTION = re.compile(r"^bpf_prog_[0-9a-f]{16}_churn_(\d+)(_sub)?$")
KSYMBOL = re.compile(r"PERF_RECORD_KSYMBOL addr \S+ len \d+ type 1 flags 0x0 name (\S+)$")


class Program:
    """One line of LIST."""
    def __init__(self, line):
        number, self.id, self.name, self.life = line.split()
        self.number = int(number)
        self.is_due = self.life in ("stays", "told")
        self.entries = [("name", f'"{self.name}"'), ("number", str(self.number))]
        if self.number % 3 == 2:
            self.entries.insert(0, ("more", str(-self.number)))

    def __str__(self):
        return f"{self.name} (id {self.id}, {self.life})"


class Recording:
    """
    The numbers of churn's programs with KSYMBOLs, the sets in their records, and the numbers of
    programs with a set in a record or in the header, in one file.
    """
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            is_data = file.read(8) == b"PERFILE2"
        self.known = set()
        if is_data:
            data = perfdata.PerfData(path)
            ksymbols = data.ksymbols()
            records = [(perfdata.c_string(record.name), record.id, record.entries())
                       for record in data.metadata()]
            self.known = {int(name[6:]) for _, name, _, entries in perfdata.block_progs(data)
                          if name.startswith("churn_") and entries}
        else:
            records = values.read_records(path)
            with open(path, encoding="utf-8", errors="surrogateescape") as script:
                ksymbols = [found.group(1) for found in map(KSYMBOL.search, script) if found]
        self.numbers = {number_of(name) for name in ksymbols if FUNCTION.match(name)}
        self.sets = {}
        for name, prog_id, entries in records:
            if FUNCTION.match(name):
                ids, old = self.sets.setdefault(number_of(name), (set(), []))
                ids.add(prog_id)
                old.extend(entry for entry in entries if entry not in old)
        self.known.update(self.sets)


def number_of(name):
    return int(FUNCTION.match(name).group(1))


def problems(program, recordings):
    """What is wrong with the recordings of a program"""
    shown = [program.number in recording.numbers for recording in recordings]
    known = [program.number in recording.known for recording in recordings]
    is_split = len(recordings) > 1
    if program.is_due and not any(shown if is_split else known):
        yield "no KSYMBOL record" if is_split else "no set"
    for i, recording in enumerate(recordings):
        is_first = i < len(recordings) - 1 and not any(shown[:i])
        if program.is_due and shown[i] and not known[i] and is_split and not is_first:
            yield f"no set in {recording.path}"
        if program.number not in recording.sets:
            continue
        if is_split and not any(shown[max(i - 1, 0):i + 2]):
            yield f"no KSYMBOL record in or beside {recording.path}, which has a set"
        ids, entries = recording.sets[program.number]
        if ids != {program.id}:
            yield f"wrong set: the ids {ids}"
        if sorted(entries) != program.entries:
            yield f"wrong set: {entries}"


def check(list_path, paths):
    with open(list_path, encoding="ascii") as lines:
        programs = [Program(line) for line in lines if line[0].isdigit()]
    recordings = [Recording(path) for path in paths]
    due = [program for program in programs if program.is_due]
    found = set().union(*(recording.sets for recording in recordings))
    print(f"{len(programs)} programs: {len(due)} must have sets; of the others, "
          f"{sum(p.number in found for p in programs if not p.is_due)} have sets; "
          "sets in each file:", *(len(recording.sets) for recording in recordings))
    strangers = found - {program.number for program in programs}
    found = [f"{problem}: {program}" for program in programs
             for problem in problems(program, recordings)]
    found += [f"wrong set: no program {number} was loaded" for number in sorted(strangers)]
    print(*found[:SHOWN], f"{len(found)} problems", sep="\n")
    return int(bool(found) or not programs)


def main(args):
    try:
        if len(args) >= 2:
            return check(args[0], args[1:])
    except (perfdata.Bad, values.Bad) as error:
        print(error, file=sys.stderr)
        return 1
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
