#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Files with good metadata of BPF programs in which something else is odd, and what perf prints about them.
odd_files.sh checks them; check_files.py has the commands. A comment or the name of a case tells what is odd.
"""
import json
import sys

import perfgen
from check_files import (EITHER, ERROR, EVENT, HEADER, INJECT, JSON, OTHER, PIPE, REPORT, SCRIPT, Table, main,
                         report, script)
from perfdata import AUXTRACE, BPF_EVENT, BTF, KSYMBOL, SAMPLE
from perfgen import ALPHA, BETA, CPU, HEADER_FEATURE, IDENTIFIER, KERNEL, MMAP2, MMAP_BUILD_ID

TABLE = Table()
READ = *script(), *report()
GROUPED = ((REPORT + " --group", " 50.00%.*beta"),)
TWO_EVENTS = [(1, IDENTIFIER), (2, IDENTIFIER)]


def broken(message=None):
    """The file has all its bytes, but too few for an event. That is an error."""
    return ((REPORT, message, None, ERROR), (REPORT, "^failed to process sample$", 1, ERROR),
            ("script", message, None, ERROR), (INJECT, None, None, ERROR), ("inject -o -", None, None, ERROR))


def failed_at(kind):
    return rf"failed to process type: {kind} |failed for event of type: [A-Z0-9_]* \({kind}\)"


def for_each(*values):
    return tuple((value,) for value in values)


# --- events -------------------------------------------------------------------------------------------------

TABLE.odd("errors", "more threads than there is room for",
          lambda file: file.record(73, file.u64(1 << 24, 1) + bytes(16)), ("script", None, None, ERROR))
TABLE.odd("events", "an error of an unknown type", lambda file: file.record(
    72, file.u32(0x80000000, 1, 0, 1, 1, 1) + file.u64(0, 0) + b"message".ljust(64, b"\0")), READ)
# Kernels up to at least v6.18 write such events if another perf records build IDs.
TABLE.odd("events", "a build ID of 255 bytes", lambda file: file.mmap2(
    b"/bin/true", b"\xff" + bytes(3) + bytes(range(20)), MMAP_BUILD_ID | 2),
          ("script --show-mmap-events", r" <000102030405060708090a0b0c0d0e0f10111213>\]: .* /bin/true$"))
# The length of a PERF_RECORD_READ depends on the read_format of its evsel.
TABLE.odd("events", "a read of one value", lambda file: file.record(
    8, file.u32(1, 2) + file.u64(3) + file.sample_id()), READ,
          ("report -D", f" PERF_RECORD_READ: 1 2 {EVENT} 3$"), form=(OTHER,))
# PERF_RECORD_TIME_CONV (79) got more fields in v5.10.
TABLE.odd("events", "a short time conversion of an older perf",
          lambda file: file.record(79, file.u64(10, 1 << 10, 0)), READ,
          (REPORT + " -q -s sym -F period,sym", r"^ *2 .* bpf_prog_\w*_beta", 1))
for first, last, shown in (1, 3, "1-3"), (3, 1, "failed to get cpumap from event"):
    TABLE.odd("events", f"a range of CPUs from {first} to {last}",
              lambda file, first=first, last=last: file.record(74, file.pack("HBBHH", 2, 0, 0, first, last)),
              ("report -D", f" PERF_RECORD_CPU_MAP.*: {shown}$"))
# An event that is shorter than its fields is an error, because its meaning is lost. An event whose
# size is not a multiple of 8 is an error, too: perf must not swap the bytes after it.
for kind in KSYMBOL, BPF_EVENT:
    for size in 8, 20, 30:
        TABLE.odd("errors" if size % 8 else "refused later", f"{size} bytes of type {kind}",
                  lambda file, kind=kind, size=size: file.record(kind, bytes(size - 8)),
                  (SCRIPT, failed_at(kind), None, ERROR), form=(OTHER,))


# PERF_RECORD_SWITCH has only a sample id, which may have fewer fields than that of another evsel.
@TABLE.case("events", READ)
def fewer_fields_in_a_sample_id(file):
    file.events = [(1, IDENTIFIER | CPU), (2, IDENTIFIER)]
    file.odd = file.record(14, file.sample_id())


@TABLE.case("errors", broken(failed_at(14)))
def no_room_for_a_sample_id(file):
    file.events = [(1, IDENTIFIER | CPU), (2, IDENTIFIER)]
    file.odd = file.record(14, file.u64(2))


# An event makes the DSO of a user's library a kernel DSO. Then the library gets a sample. The arguments are
# PERF_RECORD_MISC_KERNEL and PERF_RECORD_MISC_GUEST_KERNEL.
@TABLE.case("events", script(5), report(5), of=for_each(1, 4), form=(PIPE,))
def a_library_that_becomes_the_kernel(file, misc):
    name = b"/bin/true".ljust(12, b"\0")
    finished_round = file.record(68, b"")
    build_id = file.record(67, file.u32(0xffffffff) + bytes(range(20)) + bytes(4) + name, misc)
    file.time += 2
    sample = file.u64(0x400010) + file.u32(1, 1) + file.u64(file.time, 1)
    file.odd = file.mmap2(b"/bin/true", file.inode(8, 1, 5, 7), 2) + finished_round * 2 + build_id + \
        file.record(SAMPLE, sample, 2)


def kernel_at(file, text, size):
    name = b"[kernel.kallsyms]_text".ljust(24, b"\0")
    numbers = file.pack("iI", -1, 0) + file.u64(text, size, text)
    file.first = file.record(1, numbers + name + file.sample_id(), KERNEL)


@TABLE.case("events", READ)
def a_kernel_that_ends_beyond_the_address_space(file):
    kernel_at(file, 0xffffffffff000000, 0x1276508)


# The copy of kallsyms is sorted by address, and modules are below the kernel. odd_files.sh writes it.
@TABLE.case("kallsyms", ("script --kallsyms kallsyms", r" of_kernel\+0x10 ", 1))
def a_copy_of_kallsyms_that_begins_with_modules(file):
    kernel_at(file, 0xffff800081000000, 0x1000000)
    file.odd = file.sample(0xffff800081000110)


# The attribute of the event says that branches are the call stack, but the samples have no branches.
@TABLE.case("events", ("script", " 400000 ", 4), report())
def samples_without_branches(file):
    attr, file.chain = file.attr, [(1 << 64) - 512, 0x400000]
    file.attr = lambda n: attr(n)[:72] + file.u64(1 << 11 | 1) + attr(n)[80:]


@TABLE.case("errors", (INJECT, None, None, ERROR), form=(PIPE,))
def a_pipe_that_ends_within_aux_area_data(file):
    data, aux = file.bytes(), file.record(AUXTRACE, file.u64(4096, 0, 0) + file.u32(0, 0, 0, 0))
    file.bytes = lambda: data + aux + bytes(64)


# perf data convert has no options for a decoder.
@TABLE.case("events", (JSON, '"timestamp"', 4))
def intel_pt(file):
    file.events = [(1, IDENTIFIER)]
    file.first = file.record(70, file.u32(1, 0) + file.u64(1, 0, 0, 0, 0, 0, 0, 0, 0, 1) + bytes(64))


@TABLE.case("refused later", broken(failed_at(10)), of=for_each(8, 32, 40))
def no_room_for_a_build_id_in_bytes(file, size):
    file.attr_bits += (perfgen.BUILD_ID,)
    file.odd = file.mmap2(b"", bytes([255] * 24), MMAP_BUILD_ID, size)[:size]


# A name without NUL is an error; a later perf skips the event. Without sample ids, the name is the
# last field.
@TABLE.case("events", lambda name, shown: (
    ("script --show-mmap-events", "PERF_RECORD_MMAP2 .* abcdefg", shown, EITHER),),
            of=((b"abcdefg\0", 1), (b"abcdefgh", 0)))
def a_map_with_the_name(file, name, _):
    file.attr_bits = ()
    file.odd = file.u32(1, 1) + file.u64(0x400000, 0x1000, 0) + file.inode(8, 1, 5, 7)
    file.odd = file.record(MMAP2, file.odd + file.u32(5, 2) + name)


# The size of one sample is 64 KiB, more than the file has.
def wrong_size(file):
    sample = file.sample(ALPHA[3])
    file.odd = sample[:6] + file.pack("H", 0xfff8) + sample[8:]


TABLE.case("errors", broken())(wrong_size)
TABLE.case("errors", broken(), form=(OTHER,))(wrong_size)


# The size of an event has 16 bits, so a longer name may not fit.
@TABLE.case("events", ("inject --bpf-metadata-names=version -o OUT",), script(at=">"),
            lambda size, nr: ((">" + SCRIPT, r"PERF_RECORD_KSYMBOL .*\[version=", nr),),
            of=((65528, 0), (1024, 2)))
def events_without_room_for_a_longer_name(file, size, _):
    file.stale = bytes(size - len(file.ksymbol(ALPHA)))


# Without sample ids, perf cannot tell whether the bytes at the end of an event belong to it: it keeps them.
@TABLE.case("events", script(), (INJECT,), (">report -D", r"\[0x48\]: PERF_RECORD_KSYMBOL", 2),
            (">report -D", r"\[0x28\]: PERF_RECORD_BPF_EVENT", 2))
def events_without_sample_ids_but_with_16_bytes(file):
    file.attr_bits = ()
    file.stale = file.u64(1, 2)


# --- Arm SPE ------------------------------------------------------------------------------------------------

# The data of each CPU has more numbers after the number "params".
def arm_spe(file, header_size, cpus, params, nr):
    cpu = [0x1010101010101010, 0, params, *range(nr)]
    file.events = [(1, IDENTIFIER)]
    file.first = file.record(70, file.u32(4, 0) + file.u64(2, header_size, 1, cpus, *cpu))


def metadata_of_arm_spe(_, cpus, params, __):
    want = ["Header version 2", "Header size 4", "PMU type v2 1", f"CPU number {cpus}",
            "Magic 0x1010101010101010", "CPU # 0", f"Num of params {params}", "MIDR 0x0", "PMU Type 1",
            "Min Interval 2"]

    def has_no_more(text):
        shown = text.partition("AUXTRACE_INFO type: 4\n")[2].partition("\n\n")[0]
        return [" ".join(line.replace(":", " ").split()) for line in shown.split("\n")] == want
    return (("report -D", has_no_more),)


# Times are converted with PERF_RECORD_TIME_CONV, which the file lacks.
TABLE.case("arm spe", READ, of=((4, 1, 3, 3),))(arm_spe)
TABLE.case("arm spe", metadata_of_arm_spe, of=((4, 1, 3, 3), (4, 1, 1048576, 3)))(arm_spe)
TABLE.case("arm spe", ("report -D", "^ *Magic *:", 2), of=((4, 2, 2, 7),))(arm_spe)
# No format has a header of 6 numbers.
TABLE.case("arm spe", ("report -D", "^ *CPU number *:1$"), ("report -D", "^ *Magic *:"),
           of=((6, 1, 3, 10),))(arm_spe)


# --- features -----------------------------------------------------------------------------------------------

@TABLE.case("features", ("buildid-list",), READ)
def a_build_id_with_a_long_name(file):
    file.features[2] = file.record(0, file.u32(0xffffffff) + bytes(24) + 20000 * b"x", KERNEL)


# malloc() fills new memory, so that perf finds no NUL there by chance. Later perfs replace the last character
# with a NUL.
@TABLE.case("features", (HEADER, "^# hostname : A{1999,2000}$"), environment={"MALLOC_PERTURB_": "90"})
def a_string_without_nul(file):
    file.features[perfgen.HOSTNAME] = file.u32(2000) + 2000 * b"A"


@TABLE.case("features", (JSON, lambda text: json.loads(text[text.index("{"):])))
def no_name_of_the_host(file):
    features = file.feature_bytes
    file.feature_bytes = lambda: {number: data for number, data in features().items()
                                  if number not in (perfgen.HOSTNAME, perfgen.ARCH)}


# perf of v5.1 to v5.18 wrote the arrays of bpf_prog_info one after the other.
@TABLE.case("features", (HEADER, "^# bpf_prog_info 7: bpf_prog_0011223344556677_alpha addr 0xf*c0001000"))
def arrays_that_are_not_aligned(file):
    info = file.prog_info(ALPHA, offsets=(4, 12, 20), data_len=28)
    file.infos[0] = info[:-24] + bytes(4) + info[-24:]


# The file has BTF, but not the array with the types of the functions.
@TABLE.case("features", (HEADER, "^# bpf_prog_info 9: bpf_prog_8899aabbccddeeff"))
def functions_without_types(file):
    info = bytearray(file.prog_info(BETA))
    info[16 + 128:16 + 136] = file.u32(5, 8)
    info[16 + 136:16 + 148] = file.u64(0x1000) + file.u32(1)
    file.infos[1] = bytes(info)
    btf = file.pack("HBB5I", 0xeb9f, 1, 0, 24, 0, 16, 16, 3) + file.u32(1, 1 << 24, 4, 32) + b"\0a\0"
    file.features[BTF] = file.u32(1, 5, len(btf)) + btf


# The topology has an element for each of the CPUs that were known before.
@TABLE.case("features", script(5), (REPORT + " -s socket",), form=(PIPE,))
def more_cpus_after_their_topology(file):
    file.events = [(1, CPU)]
    file.features[7] = file.u32(1, 1)
    file.features[13] = file.u32(0, 0, 5, 0)
    # Domains of the scheduler, a feature of later perfs
    file.features[32], file.last_feature = file.u32(17, 1, 0, 0), 35
    file.more_features = file.record(HEADER_FEATURE, file.u64(7) + file.u32(1000000, 1000000))
    sample = file.u64(ALPHA[3]) + file.u32(0, 0) + file.u64(1100) + file.u32(999999, 0) + file.u64(1)
    file.odd = file.record(SAMPLE, sample, KERNEL)


# perf of v7.3 refuses a file with a broken group, topology or description.
def group(file, leader, members):
    file.events = TWO_EVENTS
    file.features[17] = file.u32(1) + file.string(b"both") + file.u32(leader, members)


TABLE.case("features", (HEADER + " -v", f"^# group: both{{{EVENT},{EVENT.replace('cpu', 'task')}}}$", 1),
           of=((0, 2),))(group)
TABLE.case("refused later", (HEADER + " -v", "^invalid group desc$", 1), (HEADER + " -v", "^# group: ", 0),
           GROUPED, of=((0, 1000), (0, 0), (1, 2), (2, 1)))(group)


def description_of_an_event(file, size):
    attr = file.attr()[:size].ljust(size, b"\0")
    file.features[12] = file.u32(1, size) + attr + file.u32(0) + file.string(b"clock")


for where, sizes in ("features", (136, 65536)), ("refused later", (64,)):
    TABLE.case(where, (HEADER, r"^# event : name = clock, .* 1 .*, sample_type = IP\|TID\|TIME\|PERIOD"),
               of=for_each(*sizes))(description_of_an_event)


def topology(file, siblings):
    file.features[7] = file.u32(1, 1)
    first = file.string(siblings.encode()) if siblings else file.u32(0xfffff0)
    file.features[13] = file.u32(1) + first + file.u32(0) + file.u32(5, 0, 0, 0)


CORE = "^# CPU 0: Core ID 5, "
TABLE.case("features", (HEADER + " -I", CORE, 1), (HEADER + " -I", "^# sibling sockets : 0-3$"),
           of=for_each("0-3"))(topology)
TABLE.case("refused later", (HEADER + " -I", CORE, 0), of=for_each(""))(topology)


# --- streams ------------------------------------------------------------------------------------------------

# Only a later perf knows these features.
@TABLE.case("streams", ("inject -o -",), ("|report -D", "thirty-nine"), ("|report -D", "forty-one"),
            form=(PIPE,))
def later_features(file):
    for number, data in (39, b"thirty-nine"), (41, b"forty-one"):
        data += bytes(-len(data) % 8)
        file.more_features += file.record(HEADER_FEATURE, file.u64(number) + data)


# The end mark of an older perf has a number that a later perf uses for a feature.
@TABLE.case("streams", READ, GROUPED, of=for_each(27, 30), form=(PIPE,))
def end_mark_of_an_older_perf(file, mark):
    file.last_feature = mark


# The first description makes the second evsel a member, the last one a leader.
@TABLE.case("streams", GROUPED, form=(PIPE,))
def two_descriptions_of_groups(file):
    group(file, 0, 2)
    last = file.u32(1) + file.string(b"one") + file.u32(1, 1)
    file.more_features = file.record(HEADER_FEATURE, file.u64(17) + last)


# The ids are enough for every slot of the table of ids.
@TABLE.case("streams", GROUPED, form=(PIPE,))
def an_event_with_4001_ids(file):
    file.events = TWO_EVENTS
    attr, ids = file.attr, file.u64(*range(10, 4010))
    file.attr = lambda n: attr(n) + (b"" if n else ids)


# perf makes groups when it reads the end mark of the features. The mark has another number in a later
# perf, and no data.
def end_mark(file, last, features):
    file.events = [(101, IDENTIFIER), (102, IDENTIFIER)]
    file.features = features
    file.last_feature = last


MARKED = ((REPORT + " --group", "^# Samples: 4 +of events "),
          (REPORT + " --header-only", "^# hostname : host$"),
          (REPORT + " --header-only", "Samples", 0))
TABLE.case("streams", MARKED, of=((32, {}), (33, {}), (40, {39: bytes(8)})), form=(PIPE,))(end_mark)
# This is a feature of v7.3.
TABLE.case("refused later", MARKED, of=((33, {32: bytes(16)}),), form=(PIPE,))(end_mark)


# --- attributes of a later perf -----------------------------------------------------------------------------

# perf_event_attr has this size, and ends with this byte. 144 is the size in v7.2.
def attributes_of(file, size, last=0):
    file.attr_size = size
    attr = file.attr
    file.attr = lambda n: attr(n)[:-1] + bytes([last])


def two_attributes(file):
    file.events = TWO_EVENTS
    attributes_of(file, 152, 1)


NEWER = "Events have attributes that only a newer perf knows"
for form in (), (PIPE,), (OTHER,), (OTHER, PIPE):
    TABLE.case("attributes", READ, ("evlist", f"^{EVENT}$", 1), (INJECT,), script(at=">"),
               ("inject -o -",), script(at="|"), of=for_each(144, 152, 1024), form=form)(attributes_of)
    if PIPE not in form:
        TABLE.case("refused attributes", *((command, "ERROR: " + NEWER, None, ERROR) for command in
                                           (SCRIPT, REPORT, INJECT, "inject -o -", "evlist")),
                   of=((152, 1),), form=form)(attributes_of)
        continue
    # Every perf reads such a pipe. "perf inject -o -" copies the attributes unchanged.
    WARNING = f"^WARNING: {NEWER}, they are ignored.$"
    TABLE.case("attributes", *((command, WARNING, 1) for command in (REPORT, "evlist", SCRIPT)), script(),
               ("inject -o -", WARNING, 1), script(at="|"), (INJECT, WARNING, 1), script(at=">"),
               (">" + SCRIPT, WARNING, 0), form=form)(two_attributes)


@TABLE.case("refused attributes",
            (SCRIPT, r"^incompatible file format \(rerun with -v to learn more\)$", 1, ERROR),
            (SCRIPT, "newer perf", 0, ERROR))
def wrong_size_of_attributes(file):
    attr = file.attr
    file.attr = lambda n: attr(n)[:4] + file.u32(1 << 20) + attr(n)[8:]


# --- statistics ---------------------------------------------------------------------------------------------

# Both events of the file have counters. "count" is of the first one.
def statistics(file, events):
    file.events = TWO_EVENTS
    records = {
        "threads": file.record(73, file.u64(2, 1) + bytes(16) + file.u64(2) + bytes(16)),
        "cpus": file.record(74, file.pack("HHHH", 0, 1, 0, 0)),
        "whole": file.record(75, file.u64(1, 0, 1)),
        "per_thread": file.record(75, file.u64(1, 0, 7)),
        "count": file.record(76, file.u64(1) + file.u32(0, 0) + file.u64(5000000, 1, 1)),
        "end": file.record(77, file.u64(1, 1000000000))}
    file.odd = b"".join(records[name] for name in events.split())


def stat_case(line, status, events, commands=("script", "stat report")):
    reads = ((command, line, None, status) for command in commands)
    TABLE.case("statistics", *reads, of=for_each(*events))(statistics)


# These files lack events that perf stat record writes before its rounds.
NO_COUNTERS = r"^Stat round without counters\.$"
stat_case(NO_COUNTERS, ERROR, ("end", "cpus end", "threads end", "threads cpus end",
                               "threads cpus count end"))
stat_case(NO_COUNTERS, ERROR, ("per_thread threads cpus count end",), ("stat report",))
stat_case("^(Failed to find perf count|Invalid CPU) ", ERROR, ("count", "whole count end"))
GOOD_ORDERS = "threads cpus whole count end", "whole threads cpus count end"
stat_case("^ *0 *1 *5000000 .* cpu-clock *$", (0, 0), GOOD_ORDERS, ("script",))
stat_case(r"^ *5\.00 msec cpu-clock ", (0, 0), GOOD_ORDERS, ("stat report",))
stat_case(r"^ *-1 *5\.00 msec cpu-clock ", (0, 0), ("threads cpus per_thread count end",), ("stat report",))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], TABLE))
