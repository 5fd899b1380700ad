#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Run files of tests that print KTAP. For each test, print a line when it ends; for a failed test, also the
end of its output. Then print the ten slowest tests and, as the last line, the totals.

These count as failed, too: a file without a plan, or with more or fewer results than planned; a file
that ends with an error although no test has failed, or too late; and a skipped test that --expected-skips
does not list. A test that only --all runs, and a test that does not apply to the tag, count as neither
passed nor skipped.

Exit status: 0 a test passed and none failed, 1 a test failed or none passed, 2 could not run
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

PLAN = re.compile(r"1\.\.(\d+)(?: *# SKIP *(.*))?")
RESULT = re.compile(r"(ok|not ok) \d+ (?:- )?(.*?)(?: *# SKIP *(.*))?")
# The reasons of all_only in test-lib.sh, and of core.sh for the tests in selftests/lacks
ALL_ONLY = "only with --all"
LACKS = "does not apply to "
Result = collections.namedtuple("Result", "kind name reason seconds")
RESULTS = []
LOCK = threading.Lock()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, required=True, help="for the file results, and for logs/")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds that a file may take (%(default)s)")
    parser.add_argument("--no-totals", action="store_true", help="leave them to the run that loads the results")
    parser.add_argument("--load", type=pathlib.Path, metavar="RESULTS", help="count these results, too")
    parser.add_argument("--last", metavar="FILE", help="run this file when the others have ended")
    parser.add_argument("--expected-skips", type=pathlib.Path, metavar="LIST",
                        help="lines of two regular expressions with a tab between, for name and reason")
    parser.add_argument("--lacking", action="store_true", help="a test must fail, see selftests/lacks")
    parser.add_argument("files", nargs="*", metavar="FILE")
    return parser.parse_args()


def read_expected_skips(path):
    expected = []
    for line in path.read_text().splitlines() if path else ():
        if line and not line.startswith("#"):
            try:
                name, reason = map(re.compile, line.split("\t"))
            except (ValueError, re.error):
                print(f"{path}: not two regular expressions with a tab between: {line}", file=sys.stderr)
                sys.exit(2)
            expected.append((name, reason))
    return expected


def add(kind, name, reason, seconds, output, log):
    """Add a result, and print it at once, because the lines of two lanes must not mix."""
    result = Result(kind, name, reason, seconds)
    lines = []
    if kind == "not ok":
        lines = [f"FAILED  {name} ({reason})" if reason else f"FAILED  {name}"]
        lines += [re.sub("^(# ?)?", "  | ", line) for line in output[-20:]] + [f"  log: {log}"]
    elif kind in ("ok", "skip"):
        lines = [f"skip    {name} ({reason})" if kind == "skip" else f"ok      {name}"]
    with LOCK, open(ARGS.dir / "results", "a") as file:
        RESULTS.append(result)
        print(json.dumps(result), file=file)
        if lines:
            print("\n".join(lines), flush=True)


def judge(kind, name, reason):
    """Return the kind and the reason with which the result of a test counts."""
    if reason is None:
        if ARGS.lacking and kind == "ok":
            return "not ok", "passes although it is in selftests/lacks"
        return "ok" if ARGS.lacking else kind, ""
    if reason == ALL_ONLY:
        return "all", reason
    if reason.startswith(LACKS):
        return "lacks", reason
    if ARGS.expected_skips and not any(n.fullmatch(name) and r.fullmatch(reason) for n, r in EXPECTED):
        return "not ok", f"skipped, and not in {ARGS.expected_skips.name}: {reason}"
    return "skip", reason


def find_problem(planned, kinds, status):
    if planned is None:
        return "no plan"
    if planned != len(kinds):
        return f"{len(kinds)} results of a plan of {planned}"
    if planned == 0:
        return "nothing ran"
    return "ended with an error" if status and "not ok" not in kinds else ""


def run_file(path):
    name = pathlib.Path(path).stem
    log = ARGS.dir / "logs" / f"{name}.log"
    limit = str(ARGS.timeout * int(os.environ.get("PBM_TIMEOUT_SCALE", "1")))
    planned, skip_all, kinds, output, start = None, None, [], [], time.monotonic()
    # The inner timeout has a process group, with all that the file starts. The outer one has no limit. It
    # passes on the signals that end this program.
    command = ["timeout", "--foreground", "0", "timeout", "--kill-after=60", limit, path]
    with open(log, "w") as file, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace") as process:
        for line in process.stdout:
            print(line, end="", file=file, flush=True)
            line = line.rstrip("\n")
            if match := PLAN.fullmatch(line):
                planned, skip_all, output = int(match[1]), match[2], []
            elif match := RESULT.fullmatch(line):
                kinds.append(match[1])
                kind, reason = judge(*match.groups())
                add(kind, match[2], reason, time.monotonic() - start, output, log)
                output, start = [], time.monotonic()
            else:
                output.append(line)
    if planned == 0 and skip_all is not None:
        kind, reason = judge("ok", name, skip_all)
        add(kind, name, reason, 0, output, log)
    elif problem := find_problem(planned, kinds, process.returncode):
        ended = {0: "", 124: f" (not ended after {limit} s)"}
        problem += ended.get(process.returncode, f" (status {process.returncode})")
        add("not ok", name, problem, 0, output, log)


def run_lane(files):
    for path in files:
        run_file(path)


def run_files():
    """Run the files that set BESIDE=yes beside the others, if there are two CPUs."""
    beside = [path for path in ARGS.files if "\nBESIDE=yes\n" in pathlib.Path(path).read_text()]
    others = [path for path in ARGS.files if path not in beside]
    with concurrent.futures.ThreadPoolExecutor(min(2, len(os.sched_getaffinity(0)))) as pool:
        list(pool.map(run_lane, (others, beside)))


def print_notes():
    for seconds, name in sorted(((result.seconds, result.name) for result in RESULTS), reverse=True)[:10]:
        print(f"slowest {seconds:6.1f} s  {name}")
    for kind, text in ("all", "not run without --all"), ("lacks", "not for this tag"):
        names = [result.name for result in RESULTS if result.kind == kind]
        if names:
            print(f"{text}: {len(names)}: {'; '.join(names)}")


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if ARGS.load:
        RESULTS.extend(Result(*json.loads(line)) for line in ARGS.load.read_text().splitlines())
    shutil.rmtree(ARGS.dir / "logs", ignore_errors=True)
    (ARGS.dir / "logs").mkdir(parents=True)
    (ARGS.dir / "results").write_text("")
    run_files()
    if ARGS.no_totals:
        return 0
    some_passed = "ok" in (result.kind for result in RESULTS)
    if ARGS.last:
        run_file(ARGS.last)
    print_notes()
    passed, failed, skipped = (sum(result.kind == kind for result in RESULTS) for kind in ("ok", "not ok", "skip"))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if some_passed and not failed else 1


ARGS = parse_arguments()
EXPECTED = read_expected_skips(ARGS.expected_skips)
sys.exit(main())
