# SPDX-License-Identifier: GPL-2.0
"""
Let perf read generated files, and check what it prints. malformed.py and odd_files.py have tables of such
files, and these commands:

  write NAME FILE [OPTION...]       write a file
        --big                       in big-endian byte order
        --pipe                      in the format of a pipe
        --dir                       a directory, as from perf record --threads
  write-all DIR GROUP...            write the files of these groups, without an option and with each of them
  check DIR GROUP...                let $PBM_PERF read each file of these groups, with DIR for temporary files

Status of check: 1 if perf printed or did something else than the table says.

All output must be UTF-8 without control characters. perf may neither die from a signal nor take more than
30 s (times PBM_TIMEOUT_SCALE).
"""
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import typing

import perfgen

BIG, PIPE, DIR = "--big", "--pipe", "--dir"
# The byte order that this machine does not have
OTHER = BIG if sys.byteorder == "little" else "--little"
TIME_LIMIT = 30 * int(os.environ.get("PBM_TIMEOUT_SCALE", "1"))
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
OK, ERROR, EITHER = (0, 0), (1, 255), (0, 255)


class Read(typing.NamedTuple):
    """
    A command, and what it must print. The command reads the file; with ">" before it, it reads what the last
    command wrote to OUT. With "|" before it, it reads what the last "-o -" wrote. The output of a command
    is also what it writes to TEXT. Reads with the same command share one run if they follow each other.
    """
    command: str
    line: typing.Any = None                 # a regular expression, or a function of the output
    number: typing.Optional[int] = None     # of lines that match (None: at least one)
    status: tuple = OK                      # the lowest and the highest exit status


class Case(typing.NamedTuple):
    name: str
    change: typing.Callable                 # to a good file
    reads: tuple = ()
    form: tuple = ()                        # options of write
    memory: int = 0                         # KiB that each read may take more than that of a good file
    size: int = 0                           # of the file; a hole is added at its end
    environment: typing.Mapping = {}


# perf before v6.13 appends ":HG": the event counts host and guest.
EVENT = "cpu-clock(:HG)?"
SCRIPT, HEADER, REPORT = "script --show-bpf-events", "report --header-only", "report --stdio"
INJECT, INJECT_HEADER = "inject -o OUT", "inject --bpf-metadata=header -o OUT"
JSON = "data convert --force --to-json TEXT"


def script(samples=4, sets=2, at=""):
    """perf script shows the samples and the good sets of metadata."""
    return ((at + SCRIPT, f" {EVENT}: ", samples),
            (at + SCRIPT, r'^  entry 1: *version = "(1\.2\.3|2\.0)"$', sets))


def report(samples=4):
    return ((REPORT, f"^# Samples: {samples} ", 1),)


class Table(dict):
    """The cases of each group"""

    def case(self, group, *reads, of=((),), **options):
        """
        Add the decorated function as a change, for each tuple of more arguments in "of". "reads" has reads
        and tuples of reads, or functions that make them from these arguments.
        """
        def add(change):
            for args in of:
                self.setdefault(group, []).append(Case(
                    " ".join([change.__name__.replace("_", " "), *map(str, args)]),
                    lambda file, args=args: change(file, *args), tuple(flat(reads, args)), **options))
            return change
        return add

    def odd(self, group, name, make, *reads, **options):
        """Add a case with an odd record between the samples, which "make" makes."""
        def change(file):
            file.odd = make(file)
        self.setdefault(group, []).append(Case(name, change, tuple(flat(reads, ())), **options))


def flat(reads, args):
    for read in reads:
        if callable(read):
            read = read(*args)
        if read and isinstance(read[0], str):
            yield read
        else:
            yield from flat(read, args)


class Wrong(Exception):
    """What perf did"""


class Reader:
    """perf, which reads a file in a directory"""

    def __init__(self, path, case):
        self.path, self.case, self.at = path, case, path + "/file"
        self.written, self.last, self.memory = 0, None, 0
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        self.offset = aside(write_file, case.change, self.at, case.form, case.size)

    def run(self, command):
        """Returns the exit status and the output"""
        source = {">": f"{self.path}/out{self.written}", "|": self.path + "/stdout"}.get(command[0], self.at)
        words = command.lstrip(">|").split()
        self.written += "OUT" in words
        if command[0] == "|":
            os.rename(source, self.path + "/pipe")
            source = self.path + "/pipe"
        names = {"OUT": f"{self.path}/out{self.written}", "TEXT": self.path + "/text"}
        with open(self.path + "/stdout", "wb") as out, open(self.path + "/stderr", "wb") as messages:
            child = subprocess.Popen(
                [os.environ["PBM_PERF"], *(names.get(word, word) for word in words), "-i", source],
                stdin=subprocess.DEVNULL, stdout=out, stderr=messages,
                env={**os.environ, **self.case.environment})
            timer = threading.Timer(TIME_LIMIT, child.kill)
            timer.start()
            _, status, usage = os.wait4(child.pid, 0)
            timer.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
        self.memory = usage.ru_maxrss
        printed = [self.path + "/stderr"] + [self.path + "/stdout"] * (words[-1] != "-")
        printed += [names["TEXT"]] * ("TEXT" in words and os.path.exists(names["TEXT"]))
        return child.returncode, b"".join(pathlib.Path(path).read_bytes() for path in printed)

    def check(self, read):
        if self.last is None or self.last[0] != read.command:
            self.last = read.command, *self.run(read.command)
        _, status, output = self.last
        if not read.status[0] <= status <= read.status[1]:
            raise Wrong(f"ends with status {status}", output)
        try:
            text = output.decode()
        except UnicodeDecodeError as error:
            raise Wrong(f"{error}", output) from error
        if CONTROL.search(text):
            raise Wrong("prints a control character", output)
        if callable(read.line):
            if not read.line(text):
                raise Wrong("prints something else", output)
        elif read.line:
            line = re.compile(read.line.replace("OFFSET", f"{self.offset:#x}"))
            number, want = sum(bool(line.search(one)) for one in text.split("\n")), read.number
            if number != want if want is not None else not number:
                want = "some" if want is None else want
                raise Wrong(f"{number} lines with {line.pattern!r}, want {want}", output)


def write_file(change, path, form=(), size=0):
    """Returns the offset of the odd record"""
    file = perfgen.File(BIG in form, PIPE in form)
    change(file)
    file.write_dir(path) if DIR in form else file.write(path)
    if size:
        os.truncate(path, size)
    return file.odd_offset


def aside(function, *args):
    """
    Call a function in another process: it may change perfgen, and the memory that it takes would count as
    perf's, which is forked from this process.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(False)
    process = context.Process(target=lambda: sender.send(function(*args)))
    process.start()
    sender.close()
    return receiver.recv()


def check_case(path, case):
    """Check all reads of a case; print what is wrong"""
    name = " ".join([case.name, *case.form])
    for read in case.reads if case.memory else ():
        good = Reader(path, Case("good", lambda file: None, environment=case.environment))
        good.run(read[0])
    reader = Reader(path, case)
    for read in case.reads:
        read = Read(*read)
        try:
            reader.check(read)
            if case.memory:
                print(f"{name}: {reader.memory} KiB; a good file: {good.memory} KiB")
                if reader.memory > good.memory + case.memory:
                    raise Wrong("takes too much memory", b"")
        except Wrong as wrong:
            what, output = wrong.args
            print(f"{name}: perf {read.command}: {what}: {output[:2000].decode(errors='backslashreplace')}")
            return False
    return True


def main(args, table):
    command, args = args[0], args[1:]
    if command == "write":
        change = next(case.change for cases in table.values() for case in cases if case.name == args[0])
        print(f"{write_file(change, args[1], args[2:]):#x}")
        return 0
    cases = [case for group in args[1:] for case in table[group]]
    if command == "write-all":
        os.mkdir(args[0])
        for name, change in {case.name: case.change for case in cases}.items():
            for form in (), (BIG,), (PIPE,), (DIR,):
                aside(write_file, change, "".join([f"{args[0]}/{name}", *form]), form)
        return 0
    wrong = [case for case in cases if not aside(check_case, args[0], case)]
    print(f"{len(wrong)} of {len(cases)} files are not read as they should be")
    return int(bool(wrong))
