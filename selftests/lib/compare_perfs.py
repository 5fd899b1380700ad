#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Let two perfs read the same files: the second must not show less than the first.

  compare_perfs.py UNPATCHED PATCHED RULES FILE...

perf report, script -D ("dump"), evlist, stat report and inject read each FILE; PATCHED reads what
inject wrote. Of a dump, only the lines of records and samples are compared, without offsets. It is
a difference if only PATCHED dies from a signal, takes more than 60 s or ends with an error, and
each line that only one of the two prints. If UNPATCHED fails, only the lines of samples count that
PATCHED does not print. A line of RULES explains differences. Its fields are separated by tabs:

  VERSION of PATCHED: what its number begins with, or "*"
  PATCH   the patch of the series that makes the difference
  COMMAND the commands above, separated by commas, or "*"
  LINE    a regular expression for the line, which begins with "+" if only PATCHED prints it, and
          with "-" if only UNPATCHED does. An error of PATCHED is the line "+status N".

Prints the differences without a rule, and the number of those that each rule explains. Exit status:
0 none, 1 differences.
"""
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

TIME_LIMIT = 60 * int(os.environ.get("PBM_TIMEOUT_SCALE", "1"))
COMMANDS = {
    "report": ["report", "--header", "--stdio", "-g", "none"],
    "dump": ["script", "-D"],
    "evlist": ["evlist", "-v"],
    "stat": ["stat", "report"],
    "inject": ["inject", "-o"],
}
# The name of a temporary file, and an offset in a pipe, where perf may not count unknown records
VARYING = re.compile(r"(?<=perf-vdso\.so-)\w{6}|0x[0-9a-f]+(?= \[0x)")
# A sample that perf script prints, and lines of a dump
SAMPLE = re.compile(r".* \d+ .*\d\.\d{6}: ")
DUMPED = re.compile(SAMPLE.pattern + "|.* PERF_RECORD_")


def run(perf, args):
    """Returns the exit status (a negative one is a signal, None is the time limit) and the lines."""
    try:
        done = subprocess.run([perf, *args], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return None, []
    text = (done.stdout + b"\n" + done.stderr).decode("latin-1")
    return done.returncode, VARYING.sub("", text).split("\n")


def read(perf, reader, command, file):
    """What perf prints about a file, for inject: also what the reader prints about its output"""
    if command != "inject":
        status, lines = run(perf, [*COMMANDS[command], "-i", file])
        return status, [line for line in lines if command != "dump" or DUMPED.match(line)]
    with tempfile.TemporaryDirectory() as path:
        status, lines = run(perf, [*COMMANDS[command], path + "/out", "-i", file])
        if os.path.exists(path + "/out"):
            lines += run(reader, ["script", "-i", path + "/out"])[1]
    return status, [line.replace(path, "") for line in lines]


def differences(unpatched, patched, command, file):
    """The differences of a file, each with its sign"""
    before, old = read(unpatched, patched, command, file)
    after, new = read(patched, patched, command, file)
    # perf report may end with 0 then.
    if "failed to process sample" in old:
        before = before or 1
    crash = after is None or after < 0
    if crash and before is not None and before >= 0 or after and not before:
        yield f"+status {after}"
    old, new = collections.Counter(old), collections.Counter(new)
    yield from ("-" + line for line in old - new if before == 0 or SAMPLE.match(line))
    yield from ("+" + line for line in new - old if before == 0)


def read_rules(path, version):
    """[(patch, commands, pattern), ...] of the rules for this version"""
    with open(path, encoding="utf-8") as lines:
        fields = [line.rstrip("\n").split("\t") for line in lines if line.strip() and line[0] != "#"]
    return [(patch, commands.split(","), re.compile(line))
            for of, patch, commands, line in fields if of == "*" or version.startswith(of)]


def main(unpatched, patched, path, *files):
    version = subprocess.run([patched, "version"], capture_output=True, text=True, check=True).stdout
    rules, used, number = read_rules(path, version.split()[2]), collections.Counter(), 0
    work = [(command, file) for file in files for command in COMMANDS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda item: list(differences(unpatched, patched, *item)), work)
        for (command, file), lines in zip(work, found):
            for line in lines:
                patch = next((patch for patch, commands, pattern in rules
                              if (command in commands or commands == ["*"]) and pattern.match(line)), None)
                if patch:
                    used[patch] += 1
                    continue
                number += 1
                print(f"{file}: perf {command}: {line[:300]!r}")
    for patch, times in sorted(used.items()):
        print(f"# {patch}: {times}")
    print(f"# {len(files)} files, {number} differences without a rule")
    return 1 if number or not files else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
