#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Compare recordings with the programs that churn loaded and unloaded. A program that stayed, or that
churn unloaded when it was told to (churn -l wait), must have its set. The others need one only if they
lived for a second, because perf reads them in a thread, which may have to wait for a CPU.

  churn.py check [OPTION...] LIST FILE... check that every program that must have its set
                                          has it, and that no set is wrong
  churn.py numbers FILE                   print the number of each program with a set

LIST is the output of churn. The FILEs are those of one recording, in order. Each is a
perf.data file or the output of "perf script --show-bpf-events".

  --more      the programs have a second map
  --soon      each program that lived 100 ms must have its set. 1 % of them may be missing, if
              they lived less than 300 ms, and churn was late (churn -d) by 20 ms when perf had
              to read them

A recording must have the right values, and meet these rules:
  - A metadata record has the id and the name of a program, and all its values.
  - In a single file, a program that loads while events are off needs no record.
  - Of several files, each has the sets of the programs with KSYMBOL records in it, and no
    other sets. At the last sample of a file (its time is known with perf record -k mono), programs
    that had not lived long enough may be missing. If perf learns of a program
    late, but within LATEST ms, the next file may have it, too. If a program loads after perf
    has read the last events of a file, that file may have it, and the next file has its KSYMBOL,
    but the set only in its header.
"""
import os
import re
import sys

import perfdata
import values

OPTIONS = ("--more", "--soon")
# In ms. perf must not miss a program that lived this long with its map.
LONG_ENOUGH = (100 if "--soon" in sys.argv else 1000) * int(os.environ.get("PBM_TIMEOUT_SCALE", 1))
LATEST = 5 * LONG_ENOUGH
# If churn is late by this time or more, the machine is busy.
LATE = LONG_ENOUGH / 5
SHOWN = 20
FUNCTION = re.compile(r"^bpf_prog_[0-9a-f]{16}_churn_(\d+)(_sub)?$")
KSYMBOL = re.compile(r"PERF_RECORD_KSYMBOL addr \S+ len \d+ type 1 flags 0x0 name (\S+)$")


class Program:
    """One line of LIST."""
    def __init__(self, line):
        number, self.id, self.name, bound, self.life = line.split()
        self.number = int(number)
        self.bound = int(bound) / 1000

    def is_due(self, long_enough=LONG_ENOUGH):
        return self.life in ("stays", "told") or int(self.life) >= long_enough

    def is_known_at(self, end, long_enough=LONG_ENOUGH):
        """True if it had lived long enough at the end of a file that is not the last one"""
        return end is not None and self.bound + long_enough <= end

    def want(self, more):
        entries = [("number", str(self.number)), ("name", f'"{self.name}"')]
        return sorted(entries + [("more", str(-self.number))] if more else entries)

    def __str__(self):
        return f"{self.name} (id {self.id}, " + \
               (f"lived {self.life} ms)" if self.life.isdigit() else f"{self.life})")


class Recording:
    """
    The numbers of churn's programs with KSYMBOLs, the sets in their records, and the numbers of
    programs with a set in a record or in the header, in one file.
    """
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            is_data = file.read(8) == b"PERFILE2"
        self.end = None
        self.known = set()
        if is_data:
            data = perfdata.PerfData(path)
            ksymbols = data.ksymbols()
            end = data.last_sample_time()
            self.end = end / 1000000 if end is not None else None
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


def read_list(path):
    with open(path, encoding="ascii") as lines:
        programs = [Program(line) for line in lines if line[0].isdigit()]
    return {program.number: program for program in programs}


def show(what, found):
    """Print up to SHOWN of the lines that were found. True if there are any."""
    for line in found[:SHOWN]:
        print(f"{what}: {line}")
    if len(found) > SHOWN:
        print(f"{what}: {len(found)} in all")
    return bool(found)


def read_late(path):
    """The intervals in ms in which churn was late"""
    with open(path, encoding="ascii") as lines:
        late = [[int(field) / 1000 for field in line.split()[1:]]
                for line in lines if line.startswith("late ")]
    return [(due, due + time) for due, time in late if time >= LATE]


def tolerated(programs, missing, busy):
    """True if at most 1 % are missing, and they lived just long enough, and at a busy time"""
    due = sum(program.is_due() for program in programs.values())
    return len(missing) <= due // 100 and \
        not any(program.is_due(3 * LONG_ENOUGH) for program in missing) and \
        all(any(begin < program.bound + LONG_ENOUGH and program.bound < end for begin, end in busy)
            for program in missing)


def is_wanted(program, recording, recordings):
    if len(recordings) == 1:
        return program.is_due()
    if recording is not recordings[-1] and not program.is_known_at(recording.end):
        return False
    return program.is_due() and program.number in recording.numbers


def missing_programs(programs, recordings, busy):
    for recording in recordings:
        missing = []
        for _, program in sorted(programs.items()):
            if is_wanted(program, recording, recordings) and program.number not in recording.known:
                missing.append(program)
        if tolerated(programs, missing, busy):
            continue
        for program in missing:
            yield f"{recording.path}: {program}"


def is_partial(entries, want):
    return set(entries) < set(want)


def wrong_sets(programs, recording, more):
    for number, (ids, entries) in sorted(recording.sets.items()):
        program = programs.get(number)
        if not program:
            yield f"{number}: no such program was loaded"
            continue
        want = program.want(more)
        if ids != {program.id}:
            yield f"{program}: the ids {ids}"
        # If a program lived too briefly, perf may have read it when only some of its maps were
        # bound.
        if sorted(entries) != want and (program.is_due() or not is_partial(entries, want)):
            yield f"{program}: {entries}"


def missing_ksymbols(programs, recordings):
    """Programs without a KSYMBOL in any file. Without KSYMBOLs, the check would check nothing."""
    numbers = set().union(*(recording.numbers for recording in recordings))
    for number, program in sorted(programs.items()):
        if len(recordings) > 1 and program.is_due() and number not in numbers:
            yield program


def strangers(programs, recordings):
    """Programs with a set, but without a KSYMBOL in the file"""
    for before, recording, after in zip([None] + recordings, recordings, recordings[1:] + [None]):
        for number in sorted(recording.sets):
            program = programs.get(number)
            if number in recording.numbers or not program:
                continue
            # The program loaded shortly before the previous file ended, so perf may have learned of
            # it late.
            if before and number in before.numbers and not program.is_known_at(before.end, LATEST):
                continue
            # The program loaded after perf had read the last events of this file.
            if after and number in after.numbers and not program.is_known_at(recording.end):
                continue
            # If there is only one file, the program may have loaded while events were off.
            if len(recordings) > 1:
                where = [str(nr) for nr, other in enumerate(recordings, 1) if number in other.numbers]
                yield f"{recording.path}, {recordings.index(recording) + 1}: {program}, " \
                      f"whose KSYMBOL is in {' '.join(where) or 'none'}"


def summary(programs, recordings):
    due = [p for p in programs.values() if p.is_due()]
    short = [p for p in programs.values() if not p.is_due()]
    known = set().union(*(recording.sets for recording in recordings))
    caught = [p for p in short if p.number in known]
    found = [p for p in due if p.number in known]
    stay = [p for p in due if p.life == "stays"]
    print(f"{len(programs)} programs: {len(due)} must have sets ({len(stay)} stayed), "
          f"{len(found)} of them have sets; {len(short)} lived too briefly, {len(caught)} of them have sets")


def check(list_path, paths, options):
    programs = read_list(list_path)
    if not programs:
        print(f"{list_path}: no program")
        return 1
    recordings = [Recording(path) for path in paths]
    summary(programs, recordings)
    busy = read_late(list_path) if "--soon" in options else []
    if busy:
        print(f"the machine was busy {len(busy)} times, "
              f"once for {max(end - begin for begin, end in busy):.0f} ms")
    if len(recordings) > 1:
        print("sets in each file:", *(len(r.sets) for r in recordings))
    bad = [show("no set", list(missing_programs(programs, recordings, busy))),
           show("no KSYMBOL record", list(missing_ksymbols(programs, recordings))),
           show("no KSYMBOL record in this file", list(strangers(programs, recordings)))]
    for recording in recordings:
        bad.append(show("wrong set", list(wrong_sets(programs, recording, "--more" in options))))
    return int(any(bad))


def numbers(path):
    for number in sorted(Recording(path).sets):
        print(number)
    return 0


def main(args):
    options = [arg for arg in args if arg in OPTIONS]
    args = [arg for arg in args if arg not in OPTIONS]
    try:
        if len(args) >= 3 and args[0] == "check":
            return check(args[1], args[2:], options)
        if len(args) == 2 and args[0] == "numbers":
            return numbers(args[1])
    except (perfdata.Bad, values.Bad) as error:
        print(error, file=sys.stderr)
        return 1
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
