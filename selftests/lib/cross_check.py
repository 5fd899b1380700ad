#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Check that the different records of a recording agree about BPF programs, and that they agree
with bpftool, which was asked while the programs were loaded.

  cross_check.py FILE WANT    WANT has the output of "bpftool -j prog show id ID", one line
                              for each program, and a line "unloaded ID" for each program
                              that is gone

Each program of WANT must have one BPF_EVENT with its tag for the load, and one for the unload
if it is gone. These are after the KSYMBOL records of its functions. One function has the name
of the program and, if it is the only one, the tag. The records with the id of the program have the
name of its main function and the whole set. Records of other programs must belong to a load.

If a program has several functions, the main function has a tag that differs from the
program's. Its name has its own tag in the KSYMBOLs of perf and of kernels before v6.5, and the
program's tag in those of later kernels.
"""
import json
import re
import sys

import perfdata

FUNCTION = re.compile(r"^bpf_prog_(?P<tag>[0-9a-f]{16})_(?P<name>.+)$")


def read_want(path):
    programs, unloaded = [], set()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("unloaded "):
                unloaded.add(int(line.split()[1]))
            elif line.strip():
                programs.append(json.loads(line))
    return programs, unloaded


def plain(names):
    """The names without tags"""
    return sorted(FUNCTION.sub(r"\g<name>", name) for name in names)


def normal(value):
    """A value in the form of bpftool; a truncated value stays as it is."""
    try:
        return json.dumps(json.loads(value))
    except ValueError:
        return value


def wrong_events(want, program, is_unloaded):
    names = program.functions()
    functions = [FUNCTION.match(name) for name in names]
    if program.tags != {want["tag"]}:
        yield f"BPF_EVENT has the tags {program.tags}, not {want['tag']}"
    if len(program.loads) != 1 or len(program.unloads) != is_unloaded:
        yield f"{len(program.loads)} loads, {len(program.unloads)} unloads, not 1 and {int(is_unloaded)}"
    elif is_unloaded and program.loads != program.unloads and \
            (len(names) == 1 or plain(program.loads[0]) != plain(program.unloads[0])):
        yield f"loaded {program.loads[0]}, unloaded {program.unloads[0]}"
    if not all(functions):
        yield f"functions {names}"
    elif not any(name["name"] == want["name"] and (len(names) > 1 or name["tag"] == want["tag"])
                 for name in functions):
        yield f"no function bpf_prog_{want['tag']}_{want['name']} among {names}"


def wrong_sets(want, program, records, block):
    """records and block have (name, {(key, value), ...}) of each id."""
    wanted = {(key, json.dumps(value)) for key, value in want.get("metadata", {}).items()}
    for what, where, names in (("records", records, [want["name"]]), ("header", block, plain(program.functions()))):
        name, found = where.get(want["id"], ("", set()))
        if found != wanted:
            yield f"the {what} has {sorted(found)}, not {sorted(wanted)}"
        elif found and name not in names:
            yield f"is called {name} in the {what}, not one of {names}"


def differences(data, wants, unloaded):
    programs = data.programs()
    records = {}
    for record in data.metadata():
        name = FUNCTION.sub(r"\g<name>", perfdata.c_string(record.name))
        old, entries = records.setdefault(int(record.id), (name, set()))
        entries.update((key, normal(value)) for key, value in record.entries())
        if old != name:
            yield f"program {record.id} has records of {old} and of {name}"
    block = {prog_id: (name, {(key, normal(value)) for key, value in entries})
             for prog_id, name, _, entries in perfdata.block_progs(data)}
    for want in wants:
        program = programs.get(want["id"])
        found = ["no BPF_EVENT"] if program is None else \
            [*wrong_events(want, program, want["id"] in unloaded), *wrong_sets(want, program, records, block)]
        for what in found:
            yield f"{want['name']} (id {want['id']}): {what}"
    for prog_id in sorted(set(records) - set(programs)):
        yield f"program {prog_id} has a set, but was not loaded"


def main(args):
    if len(args) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    wants, unloaded = read_want(args[1])
    try:
        found = list(differences(perfdata.PerfData(args[0]), wants, unloaded))
    except perfdata.Bad as error:
        found = [f"{args[0]}: {error}"]
    for what in found[:20]:
        print(what)
    print(f"{len(wants)} programs, {sum('metadata' in want for want in wants)} with metadata, "
          f"{len(unloaded)} unloaded: {len(found)} differences")
    return int(bool(found) or not wants)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
