#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
usage: scripts/mutate.py [options] TAG
       scripts/mutate.py --draw [--seed N] [--count N] [options] TAG

Makes single mistakes in a copy of the patched tree of TAG, one after the other, and
counts how many of them the tests notice. Each mistake is a line of a table:

  ID  FILE  FUNCTION  N  RULE  BEFORE  AFTER      (with tabs between)

BEFORE is the Nth such line of that function, without its indentation. A mistake that
does not compile, or that makes the same object code, is skipped. Of the others
"perf test bpf-metadata" runs first, then the files of selftests/ that concern the
source file, the fastest first, until a test fails. A test that noticed a mistake before
stands in a file, as ID, tab, name, and is tried first. Tests that fail without a
mistake are left out, and said. Mistakes that no test notices have survived; the reason why
that is right stands in a file, as ID, tab, text. If the text begins with "equivalent: ",
the mistake changes nothing that anybody could notice, and is counted apart.

It goes on where it was interrupted. As root, with the tree that
scripts/apply-and-build.sh TAG has left.

Table:
  --draw            draw a new table, from all lines that the series adds to functions
                    of perf but those of its tests: each rule in turn, as chance has
                    it, a line once. Calls that free, close or unlock are kept, as only
                    sanitizers see them missing, and so is -ENOMEM, as no test makes
                    memory scarce
  --seed N          of the chance (default: 1)
  --count N         how many mistakes (default: 80)
  --list            print the table and end
  --table FILE      (default: scripts/mutations/TAG.tsv)
  --reasons FILE    (default: scripts/mutations/TAG.survivors)
  --caught FILE     (default: scripts/mutations/TAG.caught)

Run:
  --only ERE        only mistakes whose ID, FILE, FUNCTION or RULE matches
  --tree DIR        the patched tree (default: out/TAG/linux)
  --base DIR        the unpatched tree, for --draw (default: out/TAG/.base/tree)
  --out DIR         receives the copy, its build, results.tsv and the logs
                    (default: out/TAG/mutants)
  --make ARG        one more argument of make, can be repeated: --make CC='ccache gcc'
  --jobs N          parallel jobs of make (default: number of CPUs)
  --clean           forget the copy and the results of an earlier run first
  -h, --help        this text

The last line is "N caught, N survived, N equivalent, N skipped".
Exit status: 0 at least 95 % of the caught and survived were caught and each survivor
has a reason, 1 not so, 2 could not run.
"""
import difflib
import fcntl
import filecmp
import getopt
import glob
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

SCRIPTS = os.path.dirname(os.path.realpath(__file__))
REPO = os.path.dirname(SCRIPTS)
SELFTESTS = os.path.join(REPO, "selftests")
# BPF programs belong to the machine, not to a checkout: so does this lock.
MACHINE_LOCK = "/sys/kernel"
# These load none.
UNLOCKED = ("malformed.sh", "byteorder.sh")
PERF_TEST = "perf-test"
GOAL = 95
LIMIT = 300                     # seconds for a file of tests that is new

# Which files of tests concern a source file; the last entry is for all others.
TESTS_OF = (
    (r"util/btf-value\.c", "values.sh hostile.sh maps.sh"),
    (r"util/utf8\.c", "values.sh lengths.sh header.sh malformed.sh convert.sh report.sh"),
    (r"util/bpf-metadata-collect\.c",
     "maps.sh key_counts.sh lengths.sh functions.sh hostile.sh values.sh syscalls.sh cross_check.sh live.sh"),
    (r"util/bpf-metadata-(write|read)\.c", "header.sh malformed.sh byteorder.sh inject.sh lengths.sh"),
    (r"util/bpf-metadata.*\.c",
     "functions.sh key_counts.sh lengths.sh header.sh placement.sh malformed.sh byteorder.sh convert.sh "
     "inject.sh switch_output.sh live.sh report.sh"),
    (r"util/bpf-event\.c",
     "cross_check.sh functions.sh header.sh malformed.sh report.sh live.sh switch_output.sh"),
    (r"util/(sort|hist|map|maps|machine|dso|symbol-elf)\.c|builtin-(report|top|diff)\.c|ui/.*",
     "report.sh untouched.sh malformed.sh"),
    (r"util/(header|env)\.c",
     "header.sh malformed.sh byteorder.sh inject.sh placement.sh report.sh untouched.sh"),
    (r"util/(session|event|tool|ordered-events)\.c",
     "placement.sh malformed.sh byteorder.sh live.sh report.sh"),
    (r"builtin-record\.c|util/(synthetic-events|sideband_evlist)\.c",
     "modes.sh placement.sh record.sh live.sh switch_output.sh"),
    (r"builtin-inject\.c", "inject.sh placement.sh malformed.sh report.sh"),
    (r"builtin-script\.c", "placement.sh values.sh header.sh malformed.sh"),
    (r"util/data-convert-.*\.c", "convert.sh malformed.sh untouched.sh"),
    (r".*",
     "functions.sh maps.sh key_counts.sh lengths.sh header.sh placement.sh modes.sh malformed.sh "
     "byteorder.sh convert.sh inject.sh record.sh live.sh switch_output.sh report.sh perf_tools.sh"),
)

CLEANUP = re.compile(r"free|delete|exit|close|put|unlock|lock|up_|down_|debug|warning|pr_|destroy|release")


def test_path(name):
    return next(glob.iglob(os.path.join(SELFTESTS, "tests", "*", name)), None)


class Failed(Exception):
    """What could not be done, and what to do next."""


# --- source ------------------------------------------------------------------------


def read_lines(path):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().split("\n")
    except FileNotFoundError:
        return []


def functions(lines):
    """(name, first, last) of each function body, in the style of the kernel."""
    begin = None
    for n, line in enumerate(lines):
        if line == "{":
            begin = n
        elif line == "}" and begin is not None:
            head = []
            for above in reversed(lines[:begin]):
                if not above.strip() or above[0] in "}#/" or above.rstrip().endswith((";", "*/")):
                    break
                head.insert(0, above)
            found = re.search(r"(\w+)\s*\(", " ".join(head))
            if found:
                yield found.group(1), begin + 1, n
            begin = None


def added_lines(old, new):
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, _, _, begin, end in matcher.get_opcodes():
        if kind in ("insert", "replace"):
            yield from range(begin, end)


def source_files(tree):
    top = os.path.join(tree, "tools/perf")
    for path, dirs, names in os.walk(top):
        dirs[:] = sorted(name for name in dirs if name not in ("tests", "bpf_skel", "bench", "pmu-events"))
        for name in sorted(names):
            if name.endswith(".c"):
                yield os.path.relpath(os.path.join(path, name), tree)


# --- rules: each yields what can stand in the place of a line -----------------------


def condition(line):
    """(before, condition, after) of a line with a whole "if (...)"."""
    found = re.match(r"((?:\} )?(?:else )?if \()(.*)$", line)
    if not found:
        return None
    depth = 1
    rest = found.group(2)
    for n, char in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if not depth:
            return found.group(1), rest[:n], rest[n:]
    return None


def negate(line):
    parts = condition(line)
    if parts:
        yield f"{parts[0]}!({parts[1]}){parts[2]}"


def replaced(line, pattern, change):
    """Each match of the pattern alone"""
    for found in re.finditer(pattern, line):
        yield line[:found.start()] + change(found) + line[found.end():]


def drop_not(line):
    yield from replaced(line, r"!(?=[A-Za-z_(])", lambda found: "")


def off_by_one(line):
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    yield from replaced(line, r"(?<= )(<=?|>=?)(?= )", lambda found: other[found.group()])


def equality(line):
    other = {"==": "!=", "!=": "=="}
    yield from replaced(line, r"(?<= )(==|!=)(?= )", lambda found: other[found.group()])


def logic(line):
    other = {"&&": "||", "||": "&&"}
    yield from replaced(line, r"(?<= )(&&|\|\|)(?= |$)", lambda found: other[found.group()])


def add_nothing(line):
    yield from replaced(line, r" [-+] 1\b(?!\.)", lambda found: "")


def no_error(line):
    yield from replaced(line, r"^return (-E(?!NOMEM)\w+|-\d+|err|ret|false|NULL);$",
                        lambda found: {"false": "return true;", "NULL": ""}.get(found.group(1), "return 0;"))


def drop_call(line):
    found = re.match(r"(\w+)\(.*\);$", line)
    if found and not CLEANUP.search(found.group(1)) and found.group(1) not in ("return", "sizeof"):
        yield ";"


def min_max(line):
    other = {"min": "max", "max": "min"}
    yield from replaced(line, r"\b(min|max)(?=(_t)?\()", lambda found: other[found.group()])


def drop_assignment(line):
    if re.match(r"(\*?[\w.>\[\]-]+ ([-+|&]|<<|>>)?= [^=].*|\*?[\w.>\[\]-]+(\+\+|--)|(\+\+|--)[\w.>\[\]-]+);$", line):
        yield ";"


RULES = {
    "negate": negate, "drop-not": drop_not, "off-by-one": off_by_one, "equality": equality,
    "logic": logic, "plus-one": add_nothing, "no-error": no_error, "drop-call": drop_call,
    "min-max": min_max, "drop-assignment": drop_assignment,
}


# --- table -------------------------------------------------------------------------


class Mutation:
    def __init__(self, file, function, number, rule, before, after, name=None):
        self.file, self.function, self.number = file, function, int(number)
        self.rule, self.before, self.after = rule, before, after
        text = "\t".join((file, function, str(number), before, after))
        self.id = name or hashlib.sha256(text.encode()).hexdigest()[:8]

    def line(self):
        return "\t".join((self.id, self.file, self.function, str(self.number), self.rule,
                          self.before, self.after))

    def place(self, lines):
        """The number of its line, or None if there is none any more"""
        for name, first, last in functions(lines):
            if name == self.function:
                places = [n for n in range(first, last) if lines[n].strip() == self.before]
                if self.number <= len(places):
                    return places[self.number - 1]
        return None

    def apply(self, lines):
        """The lines with the mistake, or None"""
        n = self.place(lines)
        if n is None:
            return None
        indent = lines[n][:len(lines[n]) - len(lines[n].lstrip())]
        return lines[:n] + [indent + self.after] + lines[n + 1:]

    def matches(self, pattern):
        return any(re.search(pattern, text) for text in (self.id, self.file, self.function, self.rule))


def candidates(tree, base):
    """All mutations, by rule"""
    found = {rule: [] for rule in RULES}
    for file in source_files(tree):
        new = read_lines(os.path.join(tree, file))
        old = read_lines(os.path.join(base, file))
        if new == old:
            continue
        added = set(added_lines(old, new))
        for function, first, last in functions(new):
            seen = {}
            for n in range(first, last):
                line = new[n].strip()
                seen[line] = seen.get(line, 0) + 1
                if n not in added or "\t" in line or '"' in line or line.startswith(("/*", "* ", "//", "#")):
                    continue
                # The end of a longer statement is none by itself.
                whole = new[n - 1].rstrip().endswith((";", "{", "}", ":", ")", "else", "*/")) or not new[n - 1].strip()
                for rule, variants in RULES.items():
                    if not whole and rule.startswith("drop-") and rule != "drop-not":
                        continue
                    for after in variants(line):
                        found[rule].append(Mutation(file, function, seen[line], rule, line, after))
    return found


def draw(found, seed, count):
    """Each rule in turn, and a line once"""
    chance = random.Random(seed)
    for mutations in found.values():
        chance.shuffle(mutations)
    drawn, lines = [], set()
    while len(drawn) < count and any(found.values()):
        for mutations in found.values():
            while mutations:
                mutation = mutations.pop()
                line = (mutation.file, mutation.function, mutation.before, mutation.number)
                if line not in lines:
                    lines.add(line)
                    drawn.append(mutation)
                    break
    return drawn[:count]


def write_table(path, mutations, seed):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(f"# Drawn by scripts/mutate.py --draw --seed {seed} --count {len(mutations)}\n")
        file.write("# ID\tFILE\tFUNCTION\tN\tRULE\tBEFORE\tAFTER\n")
        file.writelines(mutation.line() + "\n" for mutation in
                        sorted(mutations, key=lambda mutation: (mutation.file, mutation.function, mutation.before)))
    os.replace(path + ".part", path)


def read_table(path):
    mutations = []
    for n, line in enumerate(read_lines(path), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 7 or not fields[3].isdigit():
            raise Failed(f"{path}:{n}: no mutation: {line}", "see --help, or draw a table with --draw")
        mutations.append(Mutation(*fields[1:], name=fields[0]))
    if not mutations:
        raise Failed(f"{path}: no table", "draw one with --draw")
    return mutations


def read_pairs(path):
    pairs = (line.split("\t", 1) for line in read_lines(path) if line and not line.startswith("#"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[1].strip()}


# --- run ---------------------------------------------------------------------------


def end_group(process):
    """Their EXIT traps clean up, if they get the time."""
    for sign, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            pass
        try:
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            continue


class Run:
    def __init__(self, opt):
        self.opt = opt
        self.out = opt["out"]
        self.tree = os.path.join(self.out, "linux")
        self.build = os.path.join(self.out, "build")
        self.tests = os.path.join(self.out, "selftests")
        self.perf = os.path.join(self.build, "perf")
        self.results = os.path.join(self.out, "results.tsv")
        self.env = {name: value for name, value in os.environ.items()
                    if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "O", "ARCH")}
        self.env.update(PYTHONDONTWRITEBYTECODE="1", SHELLCHECK_OPTS="--norc", LC_ALL="C")
        self.lock = None

    def path(self, file):
        return os.path.join(self.tree, file)

    def log(self, name):
        return os.path.join(self.out, "logs", name + ".log")

    # The results belong to these sources and tests.
    def stamp(self):
        digest = hashlib.sha256()
        for file in list(source_files(self.opt["tree"])):
            with open(os.path.join(self.opt["tree"], file), "rb") as source:
                digest.update(source.read())
        for directory in ("", "lib", "holders", "progs", "tests/*"):
            for path in sorted(glob.glob(os.path.join(SELFTESTS, directory, "*"))):
                if os.path.isfile(path):
                    with open(path, "rb") as source:
                        digest.update(os.path.relpath(path, SELFTESTS).encode() + source.read())
        return digest.hexdigest()

    def prepare(self, mutations):
        if self.opt["clean"]:
            shutil.rmtree(self.out, ignore_errors=True)
        os.makedirs(os.path.join(self.out, "logs"), exist_ok=True)
        self.lock = os.open(os.path.join(self.out, "lock"), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failed(f"another run works on {self.out}", "wait for it, or use another --out") from None
        stamp, path = self.stamp(), os.path.join(self.out, "stamp")
        if os.path.exists(path) and read_lines(path)[0] != stamp:
            raise Failed(f"the sources or the tests are not those of the results in {self.out}",
                         "begin again with --clean")
        if not os.path.exists(path):
            self.copy_tree()
        for file in {mutation.file for mutation in mutations}:
            self.restore(file)
        self.make()
        self.make_tests()
        with open(path, "w", encoding="ascii") as file:
            file.write(stamp + "\n")

    def copy_tree(self):
        print("copy the tree", flush=True)
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(self.opt["tree"], self.tree, symlinks=True,
                        ignore=shutil.ignore_patterns(".git", ".pc"))

    def restore(self, file):
        source = os.path.join(self.opt["tree"], file)
        if os.path.exists(source) and not filecmp.cmp(source, self.path(file), shallow=False):
            shutil.copyfile(source, self.path(file))

    def command(self, log, args):
        """Its status. In a group of its own, all of which ends with this script."""
        with open(self.log(log), "ab") as file:
            process = subprocess.Popen(args, env=self.env, stdin=subprocess.DEVNULL, stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                end_group(process)

    def make_args(self):
        args = ["make", "-C", self.path("tools/perf"), f"O={self.build}", f"JOBS={self.opt['jobs']}",
                "BUILD_BPF_SKEL=1"]
        if os.path.exists("/usr/bin/python3-config"):
            args += ["PYTHON=/usr/bin/python3", "PYTHON_CONFIG=/usr/bin/python3-config"]
        return args + self.opt["make"]

    def make(self):
        print("build perf", flush=True)
        os.makedirs(self.build, exist_ok=True)
        if self.command("build", self.make_args()):
            raise Failed("perf does not build without a mistake", f"see {self.log('build')}")

    def make_tests(self):
        os.makedirs(self.tests, exist_ok=True)
        if self.command("build", ["make", "-C", SELFTESTS, "-j", str(self.opt["jobs"]),
                                  f"LINUX={self.tree}", f"BUILD={self.build}", f"OUTPUT={self.tests}", "all"]):
            raise Failed("the tests do not build", f"see {self.log('build')}")

    # --- the tests

    def test_command(self, name):
        env = dict(self.env, TMPDIR=os.path.join(self.out, "tmp"), PBM_PERF=self.perf, OUTPUT=self.tests)
        os.makedirs(env["TMPDIR"], mode=0o711, exist_ok=True)
        for variable, tag in (("PBM_UNPATCHED_PERF", self.opt["tag"] + "-unpatched"),
                              ("PBM_PEER_PERF", "v6.18.15"), ("PBM_OLD_PERF", "v6.12.107")):
            built = os.path.join(REPO, "out", tag, "perf")
            if variable not in env and os.access(built, os.X_OK):
                env[variable] = built
        if name == PERF_TEST:
            env["PERF_CONFIG"] = "/dev/null"
            return [self.perf, "test", "-v", "bpf-metadata"], env, self.path("tools/perf")
        return [test_path(name)], env, SELFTESTS

    def failures(self, name, log, limit, known, first=True, only=None):
        """The names of the tests that fail, and why it ended; with first only the first one."""
        args, env, cwd = self.test_command(name)
        if only:
            env["PBM_FILTER"] = f"^{only}$"
        machine = os.open(MACHINE_LOCK, os.O_RDONLY)
        if name not in UNLOCKED:
            fcntl.flock(machine, fcntl.LOCK_EX)
        start, found, process = time.monotonic(), [], None
        try:
            with open(self.log(log), "w", encoding="utf-8", errors="replace") as file:
                process = subprocess.Popen(args, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=file,
                                           stderr=subprocess.STDOUT, start_new_session=True)
                while process.poll() is None:
                    if time.monotonic() - start > limit:
                        return [f"{name}: no end after {limit:.0f} s"], limit
                    found = [test for test in self.failed_tests(name, log) if test not in known]
                    if first and found:
                        break
                    time.sleep(0.1)
            found = [test for test in self.failed_tests(name, log) if test not in known]
            if process.poll() not in (None, 0) and not found and not self.failed_tests(name, log):
                found = [f"{name}: status {process.returncode}"]
            return [test for test in found if test not in known], time.monotonic() - start
        finally:
            if process:
                end_group(process)
            os.close(machine)

    def failed_tests(self, name, log):
        lines = read_lines(self.log(log))
        if name == PERF_TEST:
            return [line.split(":")[1].strip() for line in lines if re.match(r" *[\d.]+: .*: +FAILED", line)]
        return [re.sub(r"^not ok \d+ ", "", line).strip() for line in lines if line.startswith("not ok ")]

    def baseline(self, names):
        """How long each file takes without a mistake, and what fails then"""
        path = os.path.join(self.out, "baseline.tsv")
        known = {}
        for line in read_lines(path):
            if line:
                name, seconds, failed = line.split("\t")
                known[name] = (float(seconds), [test for test in failed.split("|") if test])
        for name in names:
            if name in known:
                continue
            failed, seconds = self.failures(name, "baseline-" + name, LIMIT, [], first=False)
            print(f"without a mistake: {name}: {seconds:.0f} s" +
                  "".join(f"\n  fails, and is left out: {test}" for test in failed), flush=True)
            known[name] = (seconds, failed)
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{name}\t{seconds:.1f}\t{'|'.join(failed)}\n")
        return known

    @staticmethod
    def tests_of(file):
        short = file.removeprefix("tools/perf/")
        names = next(names for pattern, names in TESTS_OF if re.fullmatch(pattern, short)).split()
        return [name for name in names if test_path(name)]

    # --- one mutation

    def object_path(self, file):
        return os.path.join(self.build, file.removeprefix("tools/perf/")[:-1] + "o")

    def code(self, file):
        """The object without what it says for debuggers"""
        stripped = os.path.join(self.out, "stripped.o")
        if subprocess.run(["objcopy", "--strip-debug", self.object_path(file), stripped],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            return None
        with open(stripped, "rb") as file_:
            return file_.read()

    def try_one(self, mutation, baseline):
        """(verdict, why)"""
        lines = read_lines(os.path.join(self.opt["tree"], mutation.file))
        changed = mutation.apply(lines)
        if changed is None:
            return "skipped", "no such line"
        before = self.original_code(mutation.file)
        if before is None:
            return "skipped", "not built in this configuration"
        with open(self.path(mutation.file), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write("\n".join(changed))
        try:
            log = "build-" + mutation.id
            if os.path.exists(self.log(log)):
                os.unlink(self.log(log))
            if self.command(log, self.make_args()):
                return "skipped", "does not compile"
            os.unlink(self.log(log))
            if self.code(mutation.file) == before:
                return "skipped", "same object code"
            return self.try_tests(mutation, baseline)
        finally:
            self.restore(mutation.file)

    def try_tests(self, mutation, baseline):
        names = sorted(self.tests_of(mutation.file), key=lambda name: baseline[name][0])
        tries = [(name, None) for name in [PERF_TEST] + names]
        test = read_pairs(self.opt["caught"]).get(mutation.id, "")
        if test.split(":")[0] + ".sh" in names:
            tries.insert(0, (test.split(":")[0] + ".sh", test))
        for name, only in tries:
            seconds, known = baseline[name]
            failed, _ = self.failures(name, mutation.id, 3 * seconds + 60, known, only=only)
            if failed:
                return "caught", failed[0]
        return "survived", " ".join(names)

    def original_code(self, file):
        """Kept, as the object is that of the last mistake until the next build"""
        path = os.path.join(self.out, "original", file.replace("/", "_") + ".o")
        if not os.path.exists(path):
            code = self.code(file)
            if code is None:
                return None
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".part", "wb") as copy:
                copy.write(code)
            os.replace(path + ".part", path)
        with open(path, "rb") as copy:
            return copy.read()

    def read_results(self):
        return {fields[0]: fields[1:] for fields in
                (line.split("\t") for line in read_lines(self.results)) if len(fields) == 4}

    def run(self, mutations):
        done = self.read_results()
        left = [mutation for mutation in mutations if mutation.id not in done]
        # What nobody expects to be noticed takes all tests.
        reasons = read_pairs(self.opt["reasons"])
        left.sort(key=lambda mutation: mutation.id in reasons)
        if left:
            self.prepare(mutations)
            for mutation in mutations:
                self.original_code(mutation.file)
            names = dict.fromkeys(name for mutation in left for name in self.tests_of(mutation.file))
            baseline = self.baseline([PERF_TEST] + list(names))
        for n, mutation in enumerate(left, 1):
            start = time.monotonic()
            verdict, why = self.try_one(mutation, baseline)
            seconds = time.monotonic() - start
            with open(self.results, "a", encoding="utf-8") as file:
                file.write(f"{mutation.id}\t{verdict}\t{why}\t{seconds:.0f}\n")
            print(f"{n}/{len(left)} {mutation.id} {verdict:8} {mutation.rule:15} {mutation.file}:"
                  f"{mutation.function}: {why} ({seconds:.0f} s)", flush=True)
        return self.report(mutations)

    def report(self, mutations):
        done, reasons = self.read_results(), read_pairs(self.opt["reasons"])
        counts = {"caught": 0, "survived": 0, "equivalent": 0, "skipped": 0}
        unexplained = 0
        for mutation in mutations:
            verdict = done[mutation.id][0]
            reason = reasons.get(mutation.id)
            if verdict == "survived" and reason and reason.startswith("equivalent: "):
                verdict = "equivalent"
            counts[verdict] += 1
            if verdict not in ("survived", "equivalent"):
                continue
            unexplained += not reason
            print(f"{verdict.upper()} {mutation.id} {mutation.file}:{mutation.function}\n"
                  f"  - {mutation.before}\n  + {mutation.after}\n  {reason or 'no reason is given'}")
        judged = counts["caught"] + counts["survived"]
        print(", ".join(f"{number} {verdict}" for verdict, number in counts.items()))
        return 0 if judged and 100 * counts["caught"] >= GOAL * judged and not unexplained else 1


# --- options -----------------------------------------------------------------------


def parse_options(args):
    names = ["draw", "seed=", "count=", "list", "table=", "reasons=", "caught=", "only=", "tree=", "base=", "out=",
             "make=", "jobs=", "clean", "help"]
    try:
        found, rest = getopt.gnu_getopt(args, "h", names)
    except getopt.GetoptError as error:
        raise Failed(str(error), "see --help") from None
    opt = {"make": [args_[1] for args_ in found if args_[0] == "--make"]}
    given = {name.lstrip("-"): value for name, value in found if name != "--make"}
    if "h" in given or "help" in given:
        print(__doc__.strip())
        sys.exit(0)
    if len(rest) != 1:
        raise Failed(f"one TAG is needed, {len(rest)} given", "see --help")
    tag = rest[0]
    with open(os.path.join(SCRIPTS, "pins"), encoding="utf-8") as table:
        tags = re.findall(r"^tag\s+(\S+)", table.read(), re.M)
    if tag not in tags:
        raise Failed(f"unknown tag '{tag}'", f"use one of: {' '.join(tags)}")
    for name, default in (("seed", "1"), ("count", "80"), ("jobs", str(os.cpu_count()))):
        text = given.get(name, default)
        if not re.fullmatch(r"[1-9][0-9]*", text):
            raise Failed(f"--{name} {text}: not a number from 1 up", "correct it")
        opt[name] = int(text)
    try:
        re.compile(given.get("only", ""))
    except re.error:
        raise Failed(f"--only {given['only']}: not a regular expression", "correct it") from None
    for name in ("draw", "list", "clean"):
        opt[name] = name in given
    opt["only"] = given.get("only", "")
    opt["tag"] = tag
    built = os.path.join(REPO, "out", tag)
    for name, default in (("tree", os.path.join(built, "linux")), ("base", os.path.join(built, ".base/tree")),
                          ("out", os.path.join(built, "mutants")),
                          ("table", os.path.join(SCRIPTS, "mutations", tag + ".tsv")),
                          ("reasons", os.path.join(SCRIPTS, "mutations", tag + ".survivors")),
                          ("caught", os.path.join(SCRIPTS, "mutations", tag + ".caught"))):
        opt[name] = os.path.realpath(given.get(name, default))
    return opt


def need_tree(path, what):
    if not os.path.isdir(os.path.join(path, "tools/perf")):
        raise Failed(f"{path}: no {what} tree", "run scripts/apply-and-build.sh, or name one")


def main(args):
    opt = parse_options(args)
    if opt["draw"]:
        need_tree(opt["tree"], "patched")
        need_tree(opt["base"], "unpatched")
        found = candidates(opt["tree"], opt["base"])
        print(", ".join(f"{rule} {len(mutations)}" for rule, mutations in found.items()))
        drawn = draw(found, opt["seed"], opt["count"])
        if not drawn:
            raise Failed(f"{opt['tree']}: the series adds nothing that a rule applies to", "see --tree and --base")
        write_table(opt["table"], drawn, opt["seed"])
        print(f"{len(drawn)} mutations in {opt['table']}")
        return 0
    mutations = [mutation for mutation in read_table(opt["table"]) if mutation.matches(opt["only"])]
    if not mutations:
        raise Failed(f"--only {opt['only']}: no such mutation", "see --list")
    if opt["list"]:
        print("\n".join(mutation.line() for mutation in mutations))
        return 0
    need_tree(opt["tree"], "patched")
    if os.geteuid():
        raise Failed("only root can load BPF programs and record them", "run it as root")
    return Run(opt).run(mutations)


def end_by_signal(number, _):
    raise KeyboardInterrupt(number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end_by_signal)
    signal.signal(signal.SIGHUP, end_by_signal)
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as failed:
        print(f"mutate.py: error: {failed.args[0]}\n  next: {failed.args[1]}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        print("\nmutate.py: interrupted; run it again to go on from here", file=sys.stderr)
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    except OSError as error:
        print(f"mutate.py: error: {error}\n  next: see to that, and run it again", file=sys.stderr)
        sys.exit(2)
