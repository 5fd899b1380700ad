#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Compare the metadata that perf script prints with the expected values.

  values.py entries SCRIPT PROG            print KEY<TAB>VALUE of each entry of PROG
  values.py pretend WANT PROG              print the right output of perf script for PROG
  values.py compare WANT SCRIPT PROG [ORACLE]
                                           compare all keys

SCRIPT is the output of "perf script --show-bpf-events", PROG a KSYMBOL name,
WANT a C source (or the output of "handmade_btf want") with a comment before each
variable, and ORACLE the output of "bpftool -j prog show id ID":

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
    nr = None                               # the number of the next entry, if any may follow
    # Only \n ends a line: a value may contain other characters that splitlines() splits at.
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as script:
        for line in script.read().split("\n"):
            record, entry = RECORD.search(line), ENTRY.match(line)
            if record:
                nr = 0
                records.append([record.group(1), "", []])
            elif entry and nr is not None:
                number, key, value = entry.groups()
                if int(number) != nr:
                    raise Bad(f"entry {number} follows {nr} entries: {line}")
                nr += 1
                if key == "(id)":
                    records[-1][1] = value
                else:
                    records[-1][2].append((key, value))
            else:
                nr = None
    return records


def entries_of(path, prog):
    return [entry for name, _, entries in read_records(path) if name == prog for entry in entries]


def read_expected(path):
    """The {key: (want, bpftool or None)} of the variables"""
    with open(path, encoding="utf-8") as source:
        text = source.read()
    found = list(WANT.finditer(text))
    expected = {match["key"]: (match["want"], match["bpftool"]) for match in found}
    if not expected or not len(expected) == len(found) == text.count("/* want: "):
        raise Bad(f"{path}: no 'want' comment, one without a variable, or two for a variable")
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


def oracle_values(path):
    with open(path, encoding="utf-8") as file:
        _, members = parse(file.read())
    return dict(dict(members).get("metadata", ("object", ()))[1])


def compare_value(want, bpftool, text, oracle):
    check_form(text)
    got = parse(text)
    if parse(want) != got:
        raise Bad(f"is {text}, want {want}")
    if oracle is not None and oracle not in ([got] if bpftool is None else [got, parse(bpftool)]):
        raise Bad(f"is {text} as wanted, but bpftool has {oracle}, not {bpftool or want}")


def compare(want_path, script, prog, oracle_path=None):
    expected = read_expected(want_path)
    entries = entries_of(script, prog)
    oracle = oracle_values(oracle_path) if oracle_path else {}
    errors = []

    keys = [key for key, _ in entries]
    for key in sorted(set(keys) | set(expected)):
        if keys.count(key) != 1 or key not in expected:
            errors.append(f"{key}: there {keys.count(key)} times, want {int(key in expected)}")
        elif oracle_path and key not in oracle:
            errors.append(f"{key}: bpftool does not show it")
        else:
            try:
                compare_value(*expected[key], dict(entries)[key], oracle.get(key))
            except Bad as error:
                errors.append(f"{key}: {error}")
    if errors:
        raise Bad("\n".join(errors))
    yield (f"{len(expected)} values compared",)


def pretend(want_path, prog):
    yield (f"PERF_RECORD_BPF_METADATA prog {prog}",)
    for i, (key, (want, _)) in enumerate(read_expected(want_path).items()):
        yield (f"  entry {i}: {key:>20} = {want}",)


def main(command, *args):
    sys.stdout.reconfigure(errors="surrogateescape")
    sys.stderr.reconfigure(errors="backslashreplace")
    try:
        for row in {"entries": entries_of, "pretend": pretend, "compare": compare}[command](*args):
            print(*row, sep="\t")
    except Bad as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
