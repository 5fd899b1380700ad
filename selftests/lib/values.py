#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Compare the metadata that perf script prints with the expected values.

  values.py entries SCRIPT PROG            print KEY<TAB>VALUE of each entry of PROG
  values.py programs SCRIPT                print the name of each record's program
  values.py pretend WANT PROG              print the right output of perf script for PROG
  values.py compare WANT SCRIPT PROG [ORACLE ID]
                                           compare all keys

SCRIPT is the output of "perf script --show-bpf-events", PROG a KSYMBOL name,
WANT a C source (or the output of "handmade_btf want") with a comment before each
variable, and ORACLE the output of "bpftool -j prog show":

  /* want: TEXT [bpftool: TEXT] */
  ... bpf_metadata_KEY ...

Each value is compared with the literal text and, if ORACLE is given, with bpftool's. bpftool
must print the wanted value. If the comment has another text of bpftool, bpftool must print
this text or, if it is newer, the wanted value.
"""
import json
import re
import sys

RECORD = re.compile(r"PERF_RECORD_BPF_METADATA prog (\S+)$")
ENTRY = re.compile(r"^  entry +(\d+): +(\S+) = (.*)$")
WANT = re.compile(
    r"/\* want: (?P<want>[^\n]*?)(?:\s+(?:\* )?bpftool: (?P<bpftool>[^\n]*?))? \*/"
    r"(?:(?!/\* want: ).)*?\bbpf_metadata_(?P<key>\w+)",
    re.DOTALL,
)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Bad(Exception):
    """The problem with one value or file."""


def read_records(path):
    """[program, id, [(key, value), ...]] of each record, in file order. The key "(id)" has the id."""
    records = []
    entries = None
    nr = 0
    # Only \n ends a line: a value may contain other characters that splitlines() splits at.
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as script:
        for line in script.read().split("\n"):
            record = RECORD.search(line)
            entry = ENTRY.match(line)
            if record:
                entries = []
                nr = 0
                records.append([record.group(1), "", entries])
            elif entry and entries is not None:
                if int(entry.group(1)) != nr:
                    raise Bad(f"entry {entry.group(1)} follows {nr} entries: {line}")
                nr += 1
                if entry.group(2) == "(id)":
                    records[-1][1] = entry.group(3)
                else:
                    entries.append((entry.group(2), entry.group(3)))
            else:
                entries = None
    return records


def entries_of(path, prog):
    return [entry for name, _, entries in read_records(path) if name == prog for entry in entries]


def read_expected(path):
    """The {key: (want, bpftool or None)} of the variables"""
    with open(path, encoding="utf-8") as source:
        text = source.read()
    expected = {}
    found = list(WANT.finditer(text))
    if len(found) != text.count("/* want: "):
        raise Bad(f"{path}: a 'want' comment without a variable")
    for match in found:
        key = match["key"]
        if key in expected:
            raise Bad(f"{path}: two expectations for {key}")
        expected[key] = (match["want"], match["bpftool"])
    if not expected:
        raise Bad(f"{path}: no expectation")
    return expected


def parse(text):
    """Convert JSON to a form that is equal only for equal JSON, with equal order and types."""
    try:
        return json.loads(
            text,
            parse_int=lambda digits: ("int", digits),
            parse_float=lambda digits: ("float", digits),
            object_pairs_hook=lambda pairs: ("object", tuple(pairs)),
        )
    except ValueError as error:
        raise Bad(f"is not JSON ({error}): {text}") from error


def check_form(text):
    """Fail unless this JSON is compact and without control characters."""
    if CONTROL.search(text):
        raise Bad(f"contains a control character: {text!r}")
    if re.search(r"\s", re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)):
        raise Bad(f"is not compact: {text}")


def oracle_values(path, prog_id):
    with open(path, encoding="utf-8") as file:
        shown = parse(file.read())
    programs = [shown] if isinstance(shown, tuple) else shown
    for _, members in programs:
        members = dict(members)
        if members.get("id") == ("int", prog_id):
            return dict(members.get("metadata", ("object", ()))[1])
    raise Bad(f"bpftool does not show program {prog_id}")


def compare_value(want, bpftool, text, oracle):
    check_form(text)
    got = parse(text)
    if parse(want) != got:
        raise Bad(f"is {text}, want {want}")
    if oracle is None:
        return
    if bpftool is None and oracle != got:
        raise Bad(f"is {text}, bpftool has {oracle}")
    if bpftool is not None and oracle not in (parse(bpftool), got):
        raise Bad(f"is as wanted, but bpftool has {oracle}, not {bpftool}")


def compare(want_path, script, prog, oracle_path=None, prog_id=None):
    expected = read_expected(want_path)
    entries = entries_of(script, prog)
    oracle = oracle_values(oracle_path, prog_id) if oracle_path else {}
    errors = []

    keys = [key for key, _ in entries]
    for key in sorted(set(keys) | set(expected)):
        if keys.count(key) != 1 or key not in expected:
            errors.append(f"{key}: there {keys.count(key)} times, want {int(key in expected)}")
            continue
        if oracle_path and key not in oracle:
            errors.append(f"{key}: bpftool does not show it")
            continue
        want, bpftool = expected[key]
        try:
            compare_value(want, bpftool, dict(entries)[key], oracle.get(key))
        except Bad as error:
            errors.append(f"{key}: {error}")
    if errors:
        raise Bad("\n".join(errors))
    print(f"{len(expected)} values compared")


def pretend(want_path, prog):
    print(f"PERF_RECORD_BPF_METADATA prog {prog}")
    for i, (key, (want, _)) in enumerate(read_expected(want_path).items()):
        print(f"  entry {i}: {key:>20} = {want}")


def main(args):
    sys.stdout.reconfigure(errors="surrogateescape")
    sys.stderr.reconfigure(errors="backslashreplace")
    try:
        if args[:1] == ["entries"] and len(args) == 3:
            for key, value in entries_of(*args[1:]):
                print(f"{key}\t{value}")
        elif args[:1] == ["programs"] and len(args) == 2:
            for name, _, _ in read_records(args[1]):
                print(name)
        elif args[:1] == ["pretend"] and len(args) == 3:
            pretend(*args[1:])
        elif args[:1] == ["compare"] and len(args) in (4, 6):
            compare(*args[1:])
        else:
            print(__doc__.strip(), file=sys.stderr)
            return 2
    except Bad as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
