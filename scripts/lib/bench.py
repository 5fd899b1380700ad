#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
What BPF metadata costs: measure it, and write what was measured. Called by
scripts/bench.sh, which builds what is needed here.

  bench.py shapes CASES PROGRAMS    print the objects that the cases need
  bench.py measure OPTION...        one file a case in --state; those that are there stay
  bench.py write OPTION...          results.json, table.txt and *.tsv from these files

A case is a set of loaded BPF programs. Each perf records it in turn, and again,
so that whatever else the machine does meets all of them.
"""
import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

# Programs of the cases that vary something else, and those that share a map
FEW, SHARING = 100, 20
MACHINE_LOCK = "/sys/kernel"
# Starts and ends perf record, and has no sample: files of two perfs can be compared.
RECORD = ["record", "-N", "-q", "-e", "cpu-clock", "-c", "100000000000"]
# Programs of the delay, and the ms between them: longer than perf looks for maps.
DELAYED, DELAY_STEP, DELAY_LIFE = 20, 200, 150
TRIES = 20


class Failed(Exception):
    """What could not be measured."""


def say(text):
    print(text, flush=True)


class Shape:
    """What is loaded: objects of so many programs, functions and keys."""

    def __init__(self, programs, objects, functions=3, keys=4, distinct=False):
        self.name = f"{programs}_{functions}_{keys}_0"
        self.programs = programs * objects
        self.objects = objects
        self.functions, self.keys = functions, keys
        self.sharing, self.distinct = programs > 1, distinct

    def __str__(self):
        parts = [f"{self.programs} programs x {self.functions} functions x {self.keys} keys"]
        if self.sharing:
            parts.append(f"{self.programs // self.objects} an object")
        if self.distinct:
            parts.append("all values different")
        return ", ".join(parts)


def shapes_of(group, numbers):
    """The cases of a group: name and Shape."""
    most = [n for n in numbers if n]
    usual = max((n for n in most if n <= 1000), default=1)
    few = min(FEW, usual)
    if group == "own":
        return [(f"own-{n}", Shape(1, n)) for n in dict.fromkeys(numbers)]
    if group == "shared":
        objects = dict.fromkeys(max(n // SHARING, 1) for n in most)
        return [(f"shared-{SHARING * n}", Shape(SHARING, n)) for n in objects]
    if group == "distinct":
        return [(f"distinct-{usual}", Shape(1, usual, distinct=True))]
    if group == "keys":
        return [(f"keys-{k}", Shape(1, few, 1, k)) for k in (0, 4, 50, 1000)]
    if group == "functions":
        return [(f"functions-{f}", Shape(1, few, f)) for f in (1, 20)]
    if group == "reading":
        return [(f"reading-{usual}", Shape(1, usual))]
    return [("delay", Shape(1, 0))]


class Perf:
    """A program that is compared, as it is called."""

    def __init__(self, label, path, *options):
        self.label, self.path, self.options = label, path, list(options)

    def record(self, file, *workload):
        return [self.path, *RECORD, *self.options, "-o", file, "--", *(workload or ("true",))]


class Held:
    """Loaded programs. hold ends with its input, so they never outlive this process."""

    def __init__(self, bench, shape):
        self.ids = []
        self.process = None
        if not shape.objects:
            return
        command = [f"{bench.build}/hold", "-n", str(shape.objects)]
        if shape.distinct:
            command.append("-d")
        command.append(f"{bench.build}/bench_{shape.name}.bpf.o")
        # It has the lock for as long as it has programs.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, pass_fds=[bench.lock])
        for line in self.process.stdout:
            if line == "ready\n":
                return
            self.ids.append(int(line.split()[0]))
        raise Failed(f"{' '.join(command)}: status {self.process.wait()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


class Bench:
    def __init__(self, args):
        self.build, self.state, self.runs = args.build, args.state, args.runs
        self.bpftool = args.bpftool
        self.tmp = f"{self.state}/tmp"
        self.data = f"{self.tmp}/data"
        self.base = Perf("unpatched", args.unpatched)
        self.patched = [Perf(mode, args.patched, f"--bpf-metadata={mode}")
                        for mode in ("all", "header", "none")]
        self.peers = [Perf(f"peer {version_of(path)}", path) for path in args.peer]
        self.perfs = [self.base, *self.patched, *self.peers]
        self.lock = os.open(MACHINE_LOCK, os.O_RDONLY)
        self.env = dict(os.environ, PERF_CONFIG=f"{self.tmp}/perfconfig", LC_ALL="C", PAGER="cat")
        shutil.rmtree(self.tmp, ignore_errors=True)
        os.mkdir(self.tmp)
        with open(f"{self.tmp}/perfconfig", "w", encoding="ascii") as file:
            file.write(f"[buildid]\n\tdir = {self.tmp}/debug\n")
        self.has_pmu = self.find_pmu()
        self.foreign, self.idle = set(), {}

    # --- running ----------------------------------------------------------------

    def run(self, command, output=subprocess.DEVNULL):
        """Its (user, sys and wall seconds, peak memory in KiB)"""
        with open(f"{self.tmp}/stderr", "wb") as stderr:
            begin = time.monotonic()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=stderr, env=self.env)
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.monotonic() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            with open(f"{self.tmp}/stderr", encoding="utf-8", errors="replace") as file:
                text = " ".join(file.read().split()[-60:])
            raise Failed(f"{' '.join(command)}: status {process.returncode}: {text}")
        return usage.ru_utime, usage.ru_stime, wall, usage.ru_maxrss

    def find_pmu(self):
        command = [self.base.path, "stat", "-x,", "-o", f"{self.tmp}/stat",
                   "-e", "instructions:u", "--", "true"]
        return subprocess.run(command, env=self.env, check=False, stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL).returncode == 0 and \
            "<not" not in read(f"{self.tmp}/stat")

    def instructions(self, command):
        """In user space: the PMU's, or callgrind's."""
        if self.has_pmu:
            self.run([self.base.path, "stat", "-x,", "-i", "-o", f"{self.tmp}/stat",
                      "-e", "instructions:u", "--", *command])
            found = re.search(r"^(\d+),", read(f"{self.tmp}/stat"), re.M)
        else:
            self.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                      f"--log-file={self.tmp}/callgrind.%p", *command])
            logs = [name for name in os.listdir(self.tmp) if name.startswith("callgrind.")]
            # Of a child that perf forks there is one, too; perf's pid is the first.
            first = min(logs, key=lambda name: int(name.split(".")[1]))
            found = re.search(r"Collected : (\d+)", read(f"{self.tmp}/{first}"))
            for name in logs:
                os.unlink(f"{self.tmp}/{name}")
        if not found:
            raise Failed(f"{' '.join(command)}: no instructions were counted")
        return int(found[1])

    def foreign_programs(self, held):
        shown = subprocess.run([self.bpftool, "-j", "prog", "show"], check=True,
                               stdout=subprocess.PIPE).stdout
        return {prog["id"] for prog in json.loads(shown)} - set(held.ids)

    def calls(self, perf, held):
        """How many bpf() calls, and how many of them read a map"""
        for _ in range(TRIES):
            if self.foreign_programs(held) != self.foreign:
                time.sleep(1)
                continue
            self.run(["strace", "-f", "-qq", "-e", "trace=bpf", "-e", "signal=none",
                      "-o", f"{self.tmp}/calls", *perf.record(self.data)])
            if self.foreign_programs(held) == self.foreign:
                lines = read(f"{self.tmp}/calls").splitlines()
                # A call that another thread interrupts has a second line, "resumed".
                return [sum(what in line for line in lines)
                        for what in ("bpf(BPF_", "(BPF_MAP_LOOKUP_ELEM,")]
        raise Failed("other BPF programs on this machine come and go; wait for them")

    def idle_calls_once(self, perf):
        """The same without programs of ours"""
        key = (perf.label, *sorted(self.foreign))
        if key not in self.idle:
            self.idle[key] = self.calls(perf, Held(self, Shape(1, 0)))
        return self.idle[key]

    def take_lock(self):
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting: tests or another bench run on this machine")
            fcntl.flock(self.lock, fcntl.LOCK_EX)

    # --- cases --------------------------------------------------------------------

    def measure_records(self, name, shape):
        results = {perf.label: {} for perf in self.perfs}
        self.foreign = self.foreign_programs(Held(self, Shape(1, 0)))
        for perf in self.perfs:
            say(f"{name}: bpf() calls of {perf.label} without programs")
            results[perf.label]["idle calls"] = self.idle_calls_once(perf)
        with Held(self, shape) as held:
            if len(held.ids) != shape.programs:
                raise Failed(f"{name}: {len(held.ids)} programs are loaded, not {shape.programs}")
            for perf in self.perfs:
                say(f"{name}: bpf() calls and instructions of {perf.label}")
                calls = self.calls(perf, held)
                result = results[perf.label]
                idle = result.pop("idle calls")
                result["calls"] = [calls[0] - idle[0]]
                result["lookups"] = [calls[1] - idle[1]]
                if name.split("-")[0] in ("own", "shared"):
                    result["instructions"] = [self.instructions(perf.record(self.data))]
            self.measure_times(name, self.perfs, results, lambda perf: perf.record(self.data))
        return results

    def measure_times(self, name, what, results, command):
        for run in range(self.runs):
            # Each is the first of a round in turn.
            for perf in what[run % len(what):] + what[:run % len(what)]:
                say(f"{name}: run {run + 1} of {self.runs}, {perf.label}")
                user, system, wall, memory = self.run(command(perf))
                result = results[perf.label]
                result.setdefault("cpu", []).append(user + system)
                result.setdefault("user", []).append(user)
                result.setdefault("sys", []).append(system)
                result.setdefault("wall", []).append(wall)
                result.setdefault("memory", []).append(memory)
                if os.path.exists(self.data):
                    result.setdefault("bytes", []).append(os.path.getsize(self.data))
                    os.unlink(self.data)

    def measure_reading(self, name, shape):
        """The same file for all; "all" only for who knows the record."""
        files = {mode.label: f"{self.tmp}/{mode.label}" for mode in self.patched}
        with Held(self, shape) as held:
            packet = f"{self.tmp}/packet"
            with open(packet, "wb") as file:
                file.write(bytes(64))
            run = " && ".join(f"{self.bpftool} prog run id {prog} data_in {packet} repeat 5000000"
                              " >/dev/null" for prog in (held.ids[0], held.ids[-1]))
            for mode in self.patched:
                say(f"{name}: record {mode.label}")
                self.run([mode.path, "record", "-N", "-q", "-e", "cpu-clock", *mode.options,
                          "-o", files[mode.label], "--", "sh", "-c", run])
        what, commands, results = [], {}, {}
        for perf in (self.base, Perf("patched", self.patched[0].path), *self.peers):
            for mode, path in files.items():
                if perf is self.base and mode == "all":
                    continue
                for tool, args in (("report", ["report", "--stdio", "-i", path]),
                                   ("script", ["script", "-i", path]),
                                   ("inject", ["inject", "-i", path, "-o", f"{self.tmp}/new"])):
                    label = f"{tool}, {mode} file, {perf.label}"
                    what.append(Perf(label, perf.path))
                    commands[label] = [perf.path, *args]
                    results[label] = {}
        self.measure_times(name, what, results, lambda perf: commands[perf.label])
        return results

    def measure_delay(self, name):
        """
        From the return of BPF_PROG_LOAD to the return of perf's BPF_MAP_LOOKUP_ELEM, as
        the tracepoints of bpf() tell; seen by another perf that makes no such calls.
        """
        results = {}
        # perf of v6.16 may crash in build_id__init() when it has seen v6.18.
        observer = (self.peers or [self.base])[-1].path
        churn = [f"{self.build}/churn", "-n", str(DELAYED), "-t", str(DELAYED * DELAY_STEP),
                 "-l", str(DELAY_LIFE)]
        for perf in [self.patched[0], *self.peers]:
            for label, options in (("map bound after the load", []),
                                   ("map bound by the load", ["-b", "load"])):
                say(f"{name}: {perf.label}, {label}")
                # Tracepoints need tracefs, and perf mounts it.
                self.run(["unshare", "--mount", observer, "record", "--no-bpf-event", "-q", "-B",
                          "-e", "syscalls:sys_enter_bpf,syscalls:sys_exit_bpf",
                          "-o", f"{self.tmp}/seen", "--",
                          *perf.record(self.data, *churn, *options)])
                with open(f"{self.tmp}/trace", "wb") as file:
                    self.run(["unshare", "--mount", observer, "script", "--ns",
                              "-F", "comm,tid,time,event,trace", "-i", f"{self.tmp}/seen"], file)
                results[f"{perf.label}, {label}"] = {
                    "delay": delays(read(f"{self.tmp}/trace"))}
        return results

    def measure(self, name, shape):
        self.take_lock()
        load = os.getloadavg()[0]
        try:
            if name == "delay":
                results = self.measure_delay(name)
            elif name.startswith("reading"):
                results = self.measure_reading(name, shape)
            else:
                results = self.measure_records(name, shape)
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)
        return {"case": name, "shape": str(shape), "programs": shape.programs,
                "load": load, "results": results}


def delays(trace):
    """In s, of each program that was read before the next was loaded; None if it was not"""
    line = re.compile(r"^\s*(.*?)\s+(\d+)\s+([\d.]+):\s+syscalls:sys_(enter|exit)_bpf:\s+(.*)$")
    begun, loaded, found = {}, None, []
    for text in trace.splitlines():
        match = line.match(text)
        if not match:
            continue
        comm, tid, at, what, rest = match.groups()
        if what == "enter":
            begun[tid] = int(re.search(r"cmd: 0x([0-9a-f]+)", rest)[1], 16)
            continue
        command, status = begun.pop(tid, None), int(rest, 16)
        if comm == "churn" and command == 5 and status < 1 << 31:
            loaded = float(at)
            found.append(None)
        elif comm != "churn" and command == 1 and status == 0 and loaded:
            found[-1] = float(at) - loaded
            loaded = None
    # What libbpf loads to find out what the kernel can do has no map.
    return found[-DELAYED:]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def version_of(path):
    return subprocess.run([path, "version"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.split()[-1]


def sum_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def selected(args):
    for group in args.cases:
        yield from shapes_of(group, args.programs)


def write_file(path, text):
    """Complete, or not there."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".part", path)


def inputs(args):
    return {"runs": args.runs, "programs": args.programs, "cases": args.cases,
            "kernel": os.uname().release, "perfs": {
                path: [version_of(path), sum_of(path)]
                for path in (args.unpatched, args.patched, *args.peer)}}


def measure(args):
    """Cases that an interrupted run with the same inputs has finished are kept."""
    wanted = json.dumps(inputs(args), indent=1)
    if not os.path.exists(f"{args.state}/inputs") or read(f"{args.state}/inputs") != wanted:
        shutil.rmtree(args.state, ignore_errors=True)
        os.makedirs(args.state)
        write_file(f"{args.state}/inputs", wanted)
    bench = Bench(args)
    try:
        for name, shape in selected(args):
            path = f"{args.state}/{name}.json"
            if os.path.exists(path):
                say(f"{name}: measured before the interruption")
                continue
            write_file(path, json.dumps(bench.measure(name, shape), indent=1))
    finally:
        shutil.rmtree(bench.tmp, ignore_errors=True)


# --- what was measured -------------------------------------------------------------

def machine():
    cpu = re.search(r"^(?:model name|CPU part)\s*: (.*)$", read("/proc/cpuinfo"), re.M)
    memory = int(re.search(r"^MemTotal:\s+(\d+)", read("/proc/meminfo"), re.M)[1])
    return {"cpu": cpu[1] if cpu else os.uname().machine, "cpus": os.cpu_count(),
            "memory": f"{memory / 2**20:.0f} GiB", "kernel": os.uname().release,
            "date": time.strftime("%Y-%m-%d")}


def summarized(values):
    known = [value for value in values if value is not None]
    if not known:
        return {"of": len(values), "known": 0}
    return {"median": statistics.median(known), "min": min(known), "max": max(known),
            "known": len(known), "of": len(values)}


class Results:
    def __init__(self, args):
        self.machine = machine()
        self.perfs = {"unpatched": version_of(args.unpatched),
                      "patched": version_of(args.patched)}
        self.perfs.update((f"peer {version_of(path)}", version_of(path)) for path in args.peer)
        self.runs = args.runs
        self.cases = [json.loads(read(f"{args.state}/{name}.json")) for name, _ in selected(args)]
        for case in self.cases:
            for result in case["results"].values():
                result.update({figure: {"values": values, **summarized(values)}
                               for figure, values in result.items()})

    def group(self, name):
        return [case for case in self.cases if case["case"].split("-")[0] == name]

    def title(self):
        perfs = ", ".join(f"{label} {version}" if version not in label else label
                          for label, version in self.perfs.items())
        place = "{cpu}, {cpus} CPUs, {memory}, Linux {kernel}, {date}".format(**self.machine)
        loads = [case["load"] for case in self.cases]
        return [f"perf: {perfs}", f"machine: {place}",
                f"medians of {self.runs} runs, interleaved; "
                f"load average before the cases {min(loads):.1f} to {max(loads):.1f}"]

    def json(self):
        return json.dumps({"machine": self.machine, "perfs": self.perfs, "runs": self.runs,
                           "cases": self.cases}, indent=1) + "\n"


def columns(rows):
    """Text in columns, the first two to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
            for row in rows]


def number(value, scale=1, digits=0):
    return "-" if value is None else f"{value / scale:.{digits}f}"


def ratio(value, base):
    return "-" if not value or not base else f"{value / base:.3f}"


def span(result, figure, scale):
    """Median [min max]"""
    found = result.get(figure, {})
    if "median" not in found:
        return "-"
    return " ".join((number(found["median"], scale, 1), f"[{number(found['min'], scale, 1)}",
                     f"{number(found['max'], scale, 1)}]"))


def record_table(cases):
    rows = [("case", "perf", "user+sys ms [min max]", "ratio", "wall ms", "bpf() calls",
             "a program", "map reads", "10^6 instr.", "ratio", "peak KiB", "ratio",
             "perf.data bytes", "ratio")]
    for case in cases:
        base = case["results"]["unpatched"]
        for perf, result in case["results"].items():
            def of(figure, whose):
                return whose.get(figure, {}).get("median")

            def relative(figure, result=result, base=base):
                return ratio(of(figure, result), of(figure, base))

            programs = case["programs"]
            rows.append((
                case["case"], perf, span(result, "cpu", 1e-3), relative("cpu"),
                number(of("wall", result), 1e-3), number(of("calls", result)),
                number(of("calls", result), programs, 2) if programs else "-",
                number(of("lookups", result)),
                number(of("instructions", result), 1e6, 1), relative("instructions"),
                number(of("memory", result)), relative("memory"),
                number(of("bytes", result)), relative("bytes")))
    return columns(rows)


def reading_table(case):
    rows = [("command, file, perf", "", "user+sys ms [min max]", "peak KiB")]
    rows += [(label, "", span(result, "cpu", 1e-3), number(result["memory"]["median"]))
             for label, result in case["results"].items()]
    return columns(rows)


def delay_table(case):
    rows = [("perf", "", "delay ms [min max]", "known", "of")]
    rows += [(label, "", span(result, "delay", 1e-3), str(result["delay"]["known"]),
              str(result["delay"]["of"])) for label, result in case["results"].items()]
    return columns(rows)


def table(results):
    lines = results.title()
    records = [case for case in results.cases
               if case["case"].split("-")[0] not in ("reading", "delay")]
    if records:
        lines += ["", "perf record, start and end", "", *record_table(records), ""]
        lines += columns([(case["case"], case["shape"]) for case in records])
    for case in results.group("reading"):
        lines += ["", f"Reading, {case['shape']}", "", *reading_table(case)]
    for case in results.group("delay"):
        lines += ["", "From the return of BPF_PROG_LOAD until the set is known", "",
                  *delay_table(case)]
    return "\n".join(lines) + "\n"


def growth(results, group):
    """A block for each perf: N, then median, min, max of each figure"""
    figures = (("cpu", 1), ("bytes", 2**20), ("instructions", 1e6), ("memory", 1024),
               ("calls", 1000))
    cases = results.group(group)
    if cases and group == "shared":
        cases = [case for case in results.group("own") if not case["programs"]] + cases
    blocks = []
    for perf in cases[0]["results"] if cases else []:
        lines = [f'"{perf}"']
        for case in cases:
            row = [str(case["programs"])]
            for figure, scale in figures:
                found, base = (case["results"][which][figure] for which in (perf, "unpatched"))
                row += [f"{found[of] / scale:.6f}" for of in ("median", "min", "max")]
                row.append(f"{(found['median'] - base['median']) / scale:.6f}")
            lines.append("\t".join(row))
        blocks.append("\n".join(lines))
    return "\n\n\n".join(blocks) + "\n"


def reading(results):
    """A row for each file and perf: median, min, max of report, script, inject"""
    lines = []
    for case in results.group("reading"):
        labels = dict.fromkeys(label.split(", ", 1)[1] for label in case["results"])
        for label in labels:
            row = [f'"{label}"']
            for tool in ("report", "script", "inject"):
                found = case["results"][f"{tool}, {label}"]["cpu"]
                row += [f"{found[of] * 1000:.3f}" for of in ("median", "min", "max")]
            lines.append("\t".join(row))
    return "\n".join(lines) + "\n"


def write(args):
    results = Results(args)
    write_file(f"{args.state}/results.json", results.json())
    write_file(f"{args.state}/table.txt", table(results))
    for name, text in (("own", growth(results, "own")), ("shared", growth(results, "shared")),
                       ("reading", reading(results))):
        if text.strip():
            write_file(f"{args.state}/{name}.tsv", text)
    write_file(f"{args.state}/title", "\n".join(results.title()) + "\n")


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("shapes", "measure", "write"))
    parser.add_argument("--cases", type=lambda text: text.split(","), required=True)
    parser.add_argument("--programs", type=numbers, required=True)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--build", help="where hold and the objects are")
    parser.add_argument("--state", help="a file for each case that is done")
    parser.add_argument("--bpftool", default="bpftool")
    parser.add_argument("--unpatched")
    parser.add_argument("--patched")
    parser.add_argument("--peer", action="append", default=[])
    return parser.parse_args(argv)


def print_shapes(args):
    print(*dict.fromkeys(shape.name for _, shape in selected(args) if shape.objects))


def end(signum, _):
    sys.exit(128 + signum)


def main(argv):
    args = parse(argv)
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signum, end)
    try:
        {"shapes": print_shapes, "measure": measure, "write": write}[args.command](args)
    except (Failed, OSError, subprocess.CalledProcessError) as error:
        print(f"bench.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
