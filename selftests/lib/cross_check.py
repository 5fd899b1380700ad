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


def wrong_events(want, program, is_unloaded):
    if program is None:
        yield "no BPF_EVENT"
        return
    if program.tags != {want["tag"]}:
        yield f"BPF_EVENT has the tags {program.tags}, not {want['tag']}"
    if len(program.loads) != 1:
        yield f"{len(program.loads)} loads"
        return
    if len(program.unloads) != is_unloaded:
        yield f"{len(program.unloads)} unloads, not {int(is_unloaded)}"
    elif is_unloaded and plain(program.unloads[0]) != plain(program.loads[0]):
        yield f"loaded {program.loads[0]}, unloaded {program.unloads[0]}"
    names = [FUNCTION.match(name) for name in program.functions()]
    if not all(names):
        yield f"functions {program.functions()}"
    elif not any(name["name"] == want["name"] and (len(names) > 1 or name["tag"] == want["tag"])
                 for name in names):
        yield f"no function bpf_prog_{want['tag']}_{want['name']} among {program.functions()}"


def plain(names):
    """The names; without tags if there are several"""
    return sorted(FUNCTION.sub(r"\g<name>", name) for name in names) if len(names) > 1 else names


def wanted_entries(wants):
    return {(want["id"], key, json.dumps(value))
            for want in wants for key, value in want.get("metadata", {}).items()}


def normal(value):
    """A value in the form of bpftool; a truncated value stays as it is."""
    try:
        return json.dumps(json.loads(value))
    except ValueError:
        return value


def found_entries(data):
    return {(int(record.id), key, normal(value))
            for record in data.metadata() for key, value in record.entries()}


def wrong_names(want, data):
    for record in data.metadata():
        name = FUNCTION.match(perfdata.c_string(record.name))
        if int(record.id) == want["id"] and (not name or name["name"] != want["name"]):
            yield f"record of {perfdata.c_string(record.name)}"


def wrong_block(want, program, block):
    name, found = block.get(want["id"], (None, {}))
    wanted = {key: json.dumps(value) for key, value in want.get("metadata", {}).items()}
    if found != wanted:
        yield f"the header has {found}, not {wanted}"
    elif found and name not in plain(program.functions() + [""]):
        yield f"is called {name} in the header, its functions are {program.functions()}"


def block_sets(data):
    return {prog_id: (name, {key: normal(value) for key, value in entries})
            for prog_id, name, _, entries in perfdata.block_progs(data)}


def differences(data, wants, unloaded):
    programs = data.programs()
    block = block_sets(data)
    for want in wants:
        for what in wrong_events(want, programs.get(want["id"]), want["id"] in unloaded):
            yield f"{want['name']} (id {want['id']}): {what}"
    if any(want["id"] not in programs for want in wants):
        return
    for want in wants:
        for what in [*wrong_block(want, programs[want["id"]], block), *wrong_names(want, data)]:
            yield f"{want['name']} (id {want['id']}): {what}"
    wanted, found = wanted_entries(wants), found_entries(data)
    ours = {want["id"] for want in wants}
    for entry in sorted(wanted ^ {entry for entry in found if entry[0] in ours}):
        yield f"{entry} is {'not ' if entry in wanted else ''}there"
    for prog_id in sorted({entry[0] for entry in found} - set(programs)):
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
