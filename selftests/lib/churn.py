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
  --starting  the programs load while the recording starts. If perf finds a program and the
              kernel also announces it, the kernel may have written a KSYMBOL before perf
              listened. Then a set under one of the KSYMBOL names of a function is enough.
  --soon      each program that lived 100 ms must have its set. 1 % of them may be missing, if
              they lived less than 300 ms, and churn was late (churn -d) by 20 ms when perf had
              to read them

A recording must have the right values, and meet these rules:
  - A metadata record has the name of a KSYMBOL record in the same file. In a single file, a
    function that loads while events are off needs none.
  - A function with a set has it under each of its KSYMBOL names in the same file.
  - No name has two sets in a file, unless the second one has more than the first.
  - Of several files, each has the sets of the functions with KSYMBOL records in it, and no
    other sets. At the last sample of a file (its time is known with perf record -k mono), programs
    that had not lived long enough may be missing. If perf learns of a program
    late, but within LATEST ms, the next file may have it, too. If a program loads after perf
    has read the last events of a file, that file may have it, although the next file has
    its KSYMBOL.
"""
import os
import re
import sys

import perfdata
import values

OPTIONS = ("--more", "--starting", "--soon")
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

    def functions(self):
        """The functions of the program, by the rule of churn.c"""
        return [(self.number, sub) for sub in ((None, "_sub") if self.number % 3 == 2 else (None,))]

    def want(self, more):
        entries = [("number", str(self.number)), ("name", f'"{self.name}"')]
        return sorted(entries + [("more", str(-self.number))] if more else entries)

    def __str__(self):
        return f"{self.name} (id {self.id}, " + \
               (f"lived {self.life} ms)" if self.life.isdigit() else f"{self.life})")


class Recording:
    """The KSYMBOL names and the sets of churn's functions in one file."""
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            is_data = file.read(8) == b"PERFILE2"
        if is_data:
            data = perfdata.PerfData(path)
            ksymbols = data.ksymbols()
            end = data.last_sample_time()
            records = [(perfdata.c_string(record.name), record.entries())
                       for record in data.metadata()]
        else:
            end = None
            records = values.read_records(path)
            with open(path, encoding="utf-8", errors="surrogateescape") as script:
                ksymbols = [found.group(1) for found in map(KSYMBOL.search, script) if found]
        self.end = end / 1000000 if end is not None else None
        self.ksymbols = {name for name in ksymbols if FUNCTION.match(name)}
        self.functions = {function_of(name) for name in self.ksymbols}
        self.records = [record for record in records if FUNCTION.match(record[0])]
        self.sets = {}
        for name, entries in self.records:
            self.sets.setdefault(function_of(name), {})[name] = sorted(entries)


def function_of(name):
    number, sub = FUNCTION.match(name).groups()
    return int(number), sub


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
    return program.is_due() and not recording.functions.isdisjoint(program.functions())


def missing_programs(programs, recordings, busy):
    for recording in recordings:
        missing = []
        for _, program in sorted(programs.items()):
            if is_wanted(program, recording, recordings) and \
                    not all(function in recording.sets for function in program.functions()):
                missing.append(program)
        if tolerated(programs, missing, busy):
            continue
        for program in missing:
            yield f"{recording.path}: {program}"


def is_partial(entries, want):
    return set(entries) < set(want)


def wrong_sets(programs, recording, more):
    for function, sets in sorted(recording.sets.items(), key=str):
        program = programs.get(function[0])
        for name, entries in sets.items():
            if not program:
                yield f"{name}: no such program was loaded"
                continue
            want = program.want(more)
            # If a program lived too briefly, perf may have read it when only some of its maps were
            # bound.
            if entries != want and (program.is_due() or not is_partial(entries, want)):
                yield f"{name} of {program}: {entries}"


def missing_ksymbols(programs, recordings):
    """Programs without a KSYMBOL in any file. Without KSYMBOLs, the check would check nothing."""
    functions = set().union(*(recording.functions for recording in recordings))
    for _, program in sorted(programs.items()):
        if len(recordings) > 1 and program.is_due() and functions.isdisjoint(program.functions()):
            yield program


def strangers(programs, recordings):
    for before, recording, after in zip([None] + recordings, recordings, recordings[1:] + [None]):
        for name, _ in recording.records:
            function = function_of(name)
            program = programs.get(function[0])
            if name in recording.ksymbols or not program:
                continue
            # The program loaded shortly before the previous file ended, so perf may have learned of
            # it late.
            if before and name in before.ksymbols and not program.is_known_at(before.end, LATEST):
                continue
            # The program loaded after perf had read the last events of this file.
            if after and name in after.ksymbols and not program.is_known_at(recording.end):
                continue
            # If there is only one file, the program may have loaded while events were off.
            if function in recording.functions or len(recordings) > 1:
                where = [str(nr) for nr, other in enumerate(recordings, 1) if name in other.ksymbols]
                yield f"{recording.path}, {recordings.index(recording) + 1}: {name} of {program}, " \
                      f"whose KSYMBOL is in {' '.join(where) or 'none'}"


def unnamed_ksymbols(programs, recording, starting):
    ksymbols = {}
    for name in recording.ksymbols:
        ksymbols.setdefault(function_of(name), set()).add(name)
    for function, wanted in sorted(ksymbols.items(), key=str):
        program = programs.get(function[0])
        names = set(recording.sets.get(function, ()))
        enough = wanted & names if starting else wanted <= names
        if program and program.is_due() and names and not enough:
            yield f"{recording.path}: {', '.join(wanted)}, but {', '.join(names)}"


def doubles(recording):
    """Names with a second set that is not larger than the first"""
    last = {}
    for name, entries in recording.records:
        if not set(entries) > last.get(name, set()):
            yield f"{recording.path}: {name}"
        last[name] = set(entries)


def summary(programs, recordings):
    due = [p for p in programs.values() if p.is_due()]
    short = [p for p in programs.values() if not p.is_due()]
    known = set().union(*(recording.sets for recording in recordings))
    caught = [p for p in short if (p.number, None) in known]
    found = [p for p in due if (p.number, None) in known]
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
           show("not the name of a KSYMBOL record in this file",
                list(strangers(programs, recordings)))]
    for recording in recordings:
        bad += [show("wrong set", list(wrong_sets(programs, recording, "--more" in options))),
                show("KSYMBOL name without a set", list(unnamed_ksymbols(programs, recording, "--starting" in options))),
                show("twice", list(doubles(recording)))]
    return int(any(bad))


def numbers(path):
    for number in sorted({number for number, _ in Recording(path).sets}):
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
