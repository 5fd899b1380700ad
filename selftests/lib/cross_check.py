#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Check that the different records of a recording agree about BPF programs, and that they agree
with bpftool, which was asked while the programs were loaded.

  cross_check.py FILE WANT    WANT has the output of "bpftool -j prog show id ID", one line
                              for each program, and a line "unloaded ID" for each program
                              that is gone

Each program of WANT must have one BPF_EVENT with its tag for the load, and one for the unload
if it is gone. One of the KSYMBOL records before the load has the name of the program. The records with
the id of the program have this name and the whole set. So does the header, where the name can be that of
another function. Records of other programs must belong to a load.
"""
import collections
import json
import sys

import perfdata


def plain(names):
    """The names without bpf_prog_TAG_"""
    return {"".join(name.split("_", 3)[3:]) for name in names}


def normal(entries):
    """Entries in the form of bpftool; a truncated value stays as it is."""
    for key, value in entries:
        try:
            yield key, json.dumps(json.loads(value))
        except ValueError:
            yield key, value


def differences(data, wants, unloaded):
    programs = data.programs()
    # Names and sets by the id of the program
    records, header = collections.defaultdict(lambda: (set(), set())), {}
    for record in data.metadata():
        names, entries = records[int(record.id)]
        names.update(plain([perfdata.c_string(record.name)]))
        entries.update(normal(record.entries()))
    for prog, name, _, entries in perfdata.block_progs(data):
        header[prog] = {name}, set(normal(entries))
    kinds = perfdata.PROG_LOAD, perfdata.PROG_UNLOAD
    for want in wants:
        prog, name = want["id"], want["name"]
        wanted = {(key, json.dumps(value)) for key, value in want.get("metadata", {}).items()}
        events = programs.get(prog, [])
        functions = plain(perfdata.functions_of(events))
        for what, must, found in (
                ("loads and unloads", [(kind, want["tag"]) for kind in kinds[:1 + (prog in unloaded)]],
                 [(event.kind, event.tag) for event in events]),
                ("functions", functions | {name}, functions),
                ("records", ({name}, wanted) if wanted else None, records.get(prog)),
                ("set in the header", wanted, header.get(prog, ("", set()))[1]),
                ("names in the header", functions, functions | header.get(prog, (set(), ""))[0])):
            if found != must:
                yield f"{name} (id {prog}): {what}: {found}, not {must}"
    for prog in sorted(set(records) - set(programs)):
        yield f"program {prog} has a set, but was not loaded"


def main(path, want_path):
    with open(want_path, encoding="utf-8") as lines:
        lines = [line for line in lines if line.strip()]
    wants = [json.loads(line) for line in lines if line[0] == "{"]
    unloaded = {int(line.split()[1]) for line in lines if line[0] != "{"}
    try:
        found = list(differences(perfdata.PerfData(path), wants, unloaded))
    except perfdata.Bad as error:
        found = [f"{path}: {error}"]
    print(*found[:20], f"{len(wants)} programs, {sum('metadata' in want for want in wants)} with metadata, "
          f"{len(unloaded)} unloaded: {len(found)} differences", sep="\n")
    return int(bool(found) or not wants)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
