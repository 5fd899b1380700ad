#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Files whose metadata of BPF programs is malformed: what is wrong in each, and what perf prints. malformed.sh
checks them; check_files.py has the commands.

The odd records are between the samples, so two samples come after them. A directory has the records
twice. The case "good" is a file without an error.
"""
import functools
import itertools
import json
import os
import re
import sys
import typing

import perfgen
from check_files import (DIR, EVENT, HEADER, INJECT, INJECT_HEADER, JSON, OTHER, PIPE, REPORT, SCRIPT, Case,
                         Table, main, script)
from perfdata import BLOCK_MAGIC, BTF, FIXED_SIZE, KEY_SIZE, METADATA, NAME_SIZE, PROG_INFO, VALUE_SIZE
from perfgen import ALPHA, ATTR_SIZE, BETA, GAMMA, HEADER_FEATURE, text_of

ESCAPES = b"a\x1b[31m\x07\x9b\xc2\x9b\x7f\n\xff"


def maker(change):
    """change(file, ...) as a function of its other arguments that returns a change of a file"""
    return lambda *args, **options: lambda file: change(file, *args, **options)


@maker
def metadata(file, **options):
    file.odd = file.metadata(GAMMA, **options)


def first(file):
    file.first = file.metadata(GAMMA)


def second_block(file):
    """The second block has other metadata for one program, and one more program."""
    file.block += file.make_block([([(b"version", b"3")], [9]), (GAMMA[4], [11])])


@maker
def section(file, size):
    file.section_size = size
    if size > 1 << 32:
        file.block = file.make_block(length=0xffffffff)


@maker
def texts(file, *texts, **options):
    file.block = file.make_texts(texts, **options)


def long_value(value):
    """Two sets with this string. perf prints it from byte 20 of the first set, 9 of the second."""
    sets = ([(b"answer", b"42"), (b"version", value)], [7]), ([(b"version", value)], [9])
    return texts(*((text_of(entries), ids) for entries, ids in sets))


ALPHA_TEXT, BETA_TEXT = text_of(ALPHA[4]), text_of(BETA[4])
GOOD_TEXT = ALPHA_TEXT, [7]


def last_text(text=BETA_TEXT, ids=(9,), **options):
    return texts(GOOD_TEXT, (text, ids), **options)


@maker
def last_string(file, data):
    """Add another text, of program 11, that is not padded."""
    file.block += file.u32(len(data)) + data + file.u32(1, 11)


@maker
def info(file, nr_infos=2, **options):
    file.nr_infos = nr_infos
    file.infos[1] = file.prog_info(BETA, **options)


@maker
def feature(file, number):
    file.features[number] = b"unknown!"


def overlap(file):
    if file.pipe:
        return
    # The section of the BTF, which is empty, begins where the block begins.
    file.features[BTF] = b""
    file.moved = (BTF, len(file.bytes()) - len(file.block))


def in_data(file):
    file.moved = (PROG_INFO, 104 + 8 + ATTR_SIZE + 16)


def loaded_over(file):
    file.late = GAMMA[:3] + (BETA[3] - 0x80,)


@maker
def unknown(file, kind, size):
    file.odd = file.record(kind, bytes(size - 8))


BROKEN = "it is broken or too large"


class Row(typing.NamedTuple):
    name: str
    change: typing.Callable                 # to a good file
    message: str
    later: bool = False                     # A later perf may refuse the file, or use the number itself.


GROUPS = {
    # Records that break a rule of the format: the reason why perf skips them
    "refused": [
        Row("record-short", metadata(size=FIXED_SIZE - 8), "shorter than its fixed part"),
        Row("record-unaligned", metadata(size=FIXED_SIZE + 960 + 4), "size not a multiple of 8", later=True),
        Row("record-entries-one-more", metadata(nr=4), "more entries than fit into it"),
        Row("record-entries-wrap", metadata(nr=1 << 58), "more entries than fit into it"),  # nr_entries is such that their size is 0 in 64 bits
        Row("record-name-no-nul", metadata(name=NAME_SIZE * b"n"), "program name without NUL"),
        Row("record-key-no-nul", metadata(entries=[(b"bad", b"1"), (KEY_SIZE * b"k", b"2")]), "key without NUL"),
        Row("record-value-no-nul", metadata(entries=[(b"bad", b"1"), (b"worse", VALUE_SIZE * b"v")]), "value without NUL"),
    ],
    # Odd records that can be shown: printed by perf script --show-bpf-events
    "odd": [
        Row("record-no-entries", metadata(entries=[], with_id=False), "prog bpf_prog_0123456789abcdef_gamma"),
        Row("record-only-id", metadata(entries=[]), "entry 0:                 (id) = 11"),
        Row("record-no-id", metadata(with_id=False), "entry 1:                worse = 2"),
        Row("record-id-no-number", metadata(entries=[(b"(id)", b"11x"), (b"odd", b"1")], with_id=False), "entry 0:                 (id) = 11x"),
        Row("record-id-not-first", metadata(entries=[(b"odd", b"1"), (b"(id)", b"11")], with_id=False), "entry 1:                 (id) = 11"),
        Row("record-no-sample-id", metadata(tail=b""), "entry 2:                worse = 2"),  # nothing in place of the sample_id fields
        Row("record-long-tail", metadata(tail=bytes(4096)), "entry 2:                worse = 2"),  # 4096 bytes more than it needs
        Row("record-name-empty", metadata(name=b""), "entry 2:                worse = 2"),
        Row("record-value-empty", metadata(entries=[(b"odd", b"")]), "entry 1:                  odd ="),
        Row("record-value-no-json", metadata(entries=[(b"odd", b'{"a":')]), 'entry 1:                  odd = {"a":'),
        Row("record-key-empty", metadata(entries=[(b"odd", b"1"), (b"", b"2")]), "entry 1:                  odd = 1"),
        Row("record-key-twice", metadata(entries=[(b"odd", b"1"), (b"odd", b"2")]), "entry 2:                  odd = 2"),
        Row("record-key-no-utf8", metadata(entries=[(b"odd\xff\xc0\x80", b"1")]), "entry 1:      odd\\xff\\xc0\\x80 = 1"),
        Row("record-value-no-utf8", metadata(entries=[(b"odd", b'"\xed\xa0\x80"')]), 'odd = "\\xed\\xa0\\x80"'),
        Row("record-name-controls", metadata(name=ESCAPES), "prog a\\u001b[31m\\u0007\\x9b\\u009b\\u007f\\u000a\\xff"),
        Row("record-key-controls", metadata(entries=[(ESCAPES, b"1")]), "a\\u001b[31m\\u0007\\x9b\\u009b\\u007f\\u000a\\xff = 1"),
        Row("record-value-controls", metadata(entries=[(b"odd", b'"' + ESCAPES + b'"')]), 'odd = "a\\u001b[31m\\u0007\\x9b\\u009b\\u007f\\u000a\\xff"'),
        Row("record-first", first, "entry 2:                worse = 2"),  # it is before the attributes of events, in a pipe
    ],
    # Blocks that break a rule of the format: the reason why perf ignores them
    "ignored": [
        Row("text-length-of-nothing", last_text(length=0), BROKEN),
        Row("text-length-short", last_text(length=8), BROKEN),
        Row("text-length-long", last_text(length=128), BROKEN),
        Row("text-length-huge", section(1 << 40), BROKEN, later=True),  # a length is 4 GiB, the section has 1 TiB
        Row("text-section-short", section(600), BROKEN),
        Row("text-programs-more", last_text(nr_progs=2), BROKEN),
        Row("text-programs-huge", last_text(nr_progs=0xffffffff), BROKEN),
        Row("text-rest", last_text(end=bytes(8)), BROKEN),
        Row("text-no-newline", last_text(BETA_TEXT[:-1]), BROKEN),
        Row("text-no-value", last_text(b"version\n" + BETA_TEXT), BROKEN),
        Row("text-line-empty", last_text(BETA_TEXT + b"\n"), BROKEN),
        Row("text-key-empty", last_text(b"=1\n"), BROKEN),
        Row("text-of-no-programs", texts(GOOD_TEXT, (BETA_TEXT, [])), BROKEN),
        Row("text-nothing", texts((b"", [])), BROKEN),
        Row("text-ids-twice", texts(GOOD_TEXT, (BETA_TEXT, [9, 9]), (b"more=1\nversion=3\n", [9])), BROKEN),
        Row("text-too-much", texts((b"k=" + 30000 * b"v" + b"\n", range(1, 2300))), BROKEN),  # 0.04 MB that would be 64 MiB in memory
        Row("text-second", second_block, BROKEN),
    ],
    # Odd blocks that can be shown: printed by perf report --header-only
    "odd-block": [
        Row("text-magic", last_text(magic=b"BPFMETA3"), "# hostname : host"),
        Row("text-empty", texts(GOOD_TEXT, (b"", [9])), '# bpf_metadata 7 alpha: answer=42, version="1.2.3"'),
        Row("text-unaligned", last_string(b"k=v\n\0\0\0\0"), "# bpf_metadata 11: k=v"),
        Row("text-twice", texts(GOOD_TEXT, (BETA_TEXT, [9]), (BETA_TEXT, [11])), '# bpf_metadata 11: version="2.0"'),
        Row("text-ids-order", texts((BETA_TEXT, [11, 9]), GOOD_TEXT), '# bpf_metadata 9 beta: version="2.0"'),
        Row("text-key-twice", last_text(b"version=1\nversion=2\n"), "# bpf_metadata 9 beta: version=1"),
        Row("text-equals", last_text(b"version=1=2\n"), "# bpf_metadata 9 beta: version=1=2"),
        Row("text-controls", last_text(b"v\x9b\xc2\x9b\x1b\x7f=\"\x1b[1m\"\n"), "# bpf_metadata 9 beta: v"),
        Row("text-set-cut", long_value(b'"x' + 4200 * "é".encode() + b'"'), '# bpf_metadata 9 beta: version="'),  # the limit of perf report is within a character
        Row("text-overlaps-section", overlap, '# bpf_metadata 9 beta: version="2.0"', later=True),  # an empty section begins at the same place
    ],
    # Entries before the block: printed by perf report --header-only
    "info": [
        Row("info-in-the-data", in_data, "# hostname : host", later=True),
        Row("info-count-huge", info(nr_infos=0xffffffff), "bpf_prog_info 7: bpf_prog_0011223344556677_alpha", later=True),
        Row("info-count-less", info(nr_infos=1), "# hostname : host"),  # the number of entries is one less than there are
        Row("info-length", info(info_len=1 << 20), "detected invalid bpf_prog_info", later=True),
        Row("info-data-length", info(data_len=0xfffffff8), "bpf_prog_info 7: bpf_prog_0011223344556677_alpha", later=True),
        Row("info-array-outside", info(offsets=(1 << 40, 8, 16)), "# bpf_metadata 9"),
        Row("info-array-long", info(count=0x20000001), "# bpf_metadata 9"),
        Row("info-array-not-there", info(arrays=0, offsets=(64, 64, 64)), "# bpf_metadata 9"),  # an entry has offsets of arrays that it doesn't have
        Row("info-name-no-nul", info(name=16 * b"n"), "bpf_prog_8899aabbccddeeff_nnnnnnnnnnnnnnn addr"),
    ],
    # Types of a later perf: printed by perf script
    "type": [
        Row("type-next", unknown(METADATA + 1, 48), "Unsupported header type 85, please consider updating perf.", later=True),  # the next type of a record
        Row("type-far", unknown(1000000, 24), "Unsupported header type 1000000, please consider updating perf."),  # a type far beyond the next one
        Row("type-last", unknown(0xffffffff, 8), "Unsupported header type 4294967295, please consider updating perf."),
    ],
    # Features of a later perf: printed by perf inject -v
    "feature": [
        Row("feature-32", feature(32), "left out unknown feature 32", later=True),  # the next number of a feature
        Row("feature-255", feature(255), "left out unknown feature 255"),
    ],
    # A program that overlaps another: printed by perf script
    "program": [
        Row("ksymbol-over-another", loaded_over, "bpf_prog_0123456789abcdef_gamma+0x90"),  # its end is in a program that isn't gone
    ],
}

# Every file is read and converted like this. INJECT makes a block of the records.
ALPHA_LINE = r'^# bpf_metadata 7 alpha: answer=42, version="1\.2\.3"$'
BETA_LINE = '^# bpf_metadata 9 beta: version="2.0"$'
SAMPLES = r": PERF_RECORD_SAMPLE\("


def everywhere(piped_sets=2):
    return (*script(), ("report -D", SAMPLES, 4), ("report --stdio -s bpf_prog,bpf_metadata", "^# Samples: 4 ", 1),
            ("evlist", f"^{EVENT}$", 1), (INJECT,), *script(at=">"), ("inject -o -",), *script(4, piped_sets, "|"),
            (INJECT_HEADER,), (">report -D", SAMPLES, 4),
            (">report -D", "PERF_RECORD_BPF_METADATA", 0),
            (">inject --bpf-metadata=all -o OUT",), (">" + SCRIPT, f" {EVENT}: ", 4),
            (JSON, lambda text: len(json.loads(text[text.index("{"):])["samples"]) == 4), (HEADER,))


def printed(command, message):
    return ((command, re.escape(message)),)


def refused(message):
    # A perf that has this record from upstream may print another message about it.
    return ((SCRIPT, rf"^OFFSET \[0x[0-9a-f]*\]: skipped a malformed PERF_RECORD_BPF_METADATA: {message}$|"
             "^WARNING: at offset OFFSET: .*BPF_METADATA.*, skipping$", 1), (SCRIPT, "gamma|worse", 0))


def ignored(message):
    # The records are still valid.
    return ((HEADER, f"^WARNING: ignored the metadata of BPF programs in the header: {message}$"),
            (HEADER, "^# bpf_metadata", 0), (INJECT_HEADER,), (">" + HEADER, ALPHA_LINE),
            (REPORT + " -s bpf_metadata", '50.00%  version="2.0"'), (JSON, '"version": *"2.0"'))


def left_out(message):
    return (INJECT, message, 0), ("inject -v -o OUT", message), (">" + HEADER, "^# hostname : host$")


def skipped(message):
    # Unpatched perf before v6.15 refuses these files. The patch that changes this has a warning of its own.
    number = re.search("[0-9]+", message)[0]
    return ((SCRIPT, f"^Skipped events of type {number}, which need a newer perf.$|{re.escape(message)}"),)


READS = {"refused": refused, "odd": functools.partial(printed, SCRIPT), "ignored": ignored,
         "odd-block": functools.partial(printed, HEADER), "info": functools.partial(printed, HEADER),
         "type": skipped, "feature": left_out, "program": functools.partial(printed, SCRIPT)}
# In these blocks, program 11 has the text of a program, and the pipe gets its record.
PIPED_SETS = {"text-twice": 3, "text-ids-order": 3}
GOOD = (HEADER, ALPHA_LINE), (HEADER, BETA_LINE), *everywhere()
TABLE = Table(good=[Case("good", lambda file: None, GOOD)], others=[], later=[])
for group, cases in GROUPS.items():
    for case in cases:
        # The groups of what a later perf may refuse are "later"; "others" are pipes and the other byte order.
        reads = *everywhere(PIPED_SETS.get(case.name, 2)), *READS[group](case.message)
        TABLE.setdefault("later" if case.later else group, []).append(Case(case.name, case.change, reads))
        TABLE["later" if case.later else "others"] += [
            Case(case.name, case.change, (*script(), ("report --header --stdio",)), (PIPE,)),
            Case(case.name, case.change, (*script(), (HEADER,)), (OTHER,))]
TABLE["directory"] = [Case(case.name, case.change, script(8, 4), (DIR,)) for case in GROUPS["type"]]


WHOLE = perfgen.File().bytes()
BLOCK = range(len(WHOLE) - len(perfgen.File().block), len(WHOLE))


# After the magic, a text and its program take 76 bytes.
@TABLE.case("cut", lambda at: script(), lambda at: (
    () if at <= BLOCK.start + 8 or (at - BLOCK.start - 8) % 76 == 0 else ((SCRIPT, ": " + BROKEN),)),
    of=((at,) for at in reversed(BLOCK)))
def cut(file, at):
    file.bytes = lambda: WHOLE[:at]


# A variable named just bpf_metadata_ must not hide the others.
@TABLE.case("keys", (REPORT + " -s bpf_prog,bpf_metadata", ' 7 alpha *answer=42, version="1.2.3" *$'),
            (INJECT_HEADER,), (">" + HEADER, ALPHA_LINE), (">" + HEADER, BETA_LINE),
            (">" + HEADER, "^# bpf_metadata", 2))
def a_record_with_an_empty_key(file):
    perfgen.ALPHA = (*ALPHA[:4], [(b"", b"1"), *ALPHA[4]])
    file.block = b""


# "Aa" and "BB" have the same hash in a hash function that multiplies by 31. So do all texts of the
# same length that consist of them.
@TABLE.case("keys", (INJECT_HEADER,),
            (">" + HEADER, "^# bpf_metadata 7 alpha: (Aa)*=1, .*, (BB)*=1$"))
def keys_with_the_same_hash(file):
    keys = [b"".join(key) for key in itertools.product((b"Aa", b"BB"), repeat=17)]
    file.block = file.make_block([([(key, b"1") for key in keys], [7])])


# The column is as wide as the longest set, up to a limit for the length of a line.
@TABLE.case("keys", lambda nr, width: (
    (REPORT + " -s bpf_metadata,bpf_prog", rf"^# \.+ +\.{{{width}}}( |$)"),), of=((2, 414), (40, 4096)))
def a_column_for_keys(file, nr, _):
    value = b'"' + 200 * b"v" + b'"'
    file.block = file.make_block([([(b"k%d" % n, value) for n in range(10, 10 + nr)], [7])])


# A pipe has no block, but unpatched perf inject may have copied one from a file.
@TABLE.case("pipes", ("report --header --stdio -s bpf_metadata", "^# bpf_prog_info [79]: ", 2),
            ("report --header --stdio -s bpf_metadata", "^# bpf_metadata|metadata.* in the header", 0),
            ("report --header --stdio -s bpf_metadata", r"100.00%  \(unknown\)", 1), form=(PIPE,))
def a_block_in_a_pipe(file):
    infos = file.u64(PROG_INFO) + file.u32(2) + b"".join(file.infos) + file.block
    file.more_features = file.record(HEADER_FEATURE, infos)
    file.with_records = False


@TABLE.case("pipes", lambda size: ((SCRIPT, "unexpected end of event stream"),) if size == 8 else (),
            script(4, 1), (INJECT,), script(4, 1, ">"),
            of=((8,), (len(perfgen.File().metadata(BETA)) - 6,)), form=(PIPE,))
def a_pipe_without_its_last_bytes(file, size):
    data = file.bytes()
    file.bytes = lambda: data[:-size]


COST = "report --header --stdio -s bpf_metadata"
MIB = 1 << 10                           # of memory, in KiB
# By default, AddressSanitizer keeps 256 MiB of freed memory.
FREED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}


@TABLE.case("costs", (COST,), of=(("length", 1), ("length", 0x4000000), ("length", 0x4000001),
                                  ("length", 0xffffffff), ("nr_progs", 0xffffffff)),
            memory=64 * MIB, environment=FREED)
def a_block_that_claims(file, what, number):
    file.block = file.make_block(**{what: number})


# The file has a hole, so it needs little space on disk.
@TABLE.case("sections", (COST,), of=((BLOCK_MAGIC,), (b"FOREIGN2",)), memory=64 * MIB, size=1025 << 20,
            environment=FREED)
def a_section_of_one_gib_with_magic(file, magic):
    file.section_size = 1 << 30
    file.block = file.make_block(magic=magic)


def many(mib, number, *line):
    """A file with this number of elements must not take more memory; perf prints this line."""
    if os.environ.get("PBM_SANITIZED") == "1":
        mib *= 2

    def add(change):
        @TABLE.case("costs", (COST, *line), memory=mib * MIB, environment=FREED)
        @functools.wraps(change)
        def change_block(file):
            file.block = b""
            change(file, range(number))
    return add


@many(96, 1000000, BROKEN)
def many_programs(file, numbers):
    file.block = file.make_block([([], numbers)])


@many(128, 120000, "^# bpf_metadata ", 120000)
def many_texts(file, numbers):
    file.block = file.make_texts([(b"%x=\n" % n, [n]) for n in numbers])


@many(160, 2000000, "^# bpf_metadata 7 ", 1)
def many_keys(file, numbers):
    file.block = file.make_block([([(b"%x" % n, b"") for n in numbers], [7])])


@many(64, 30000)
def many_records(file, numbers):
    file.odd = b"".join(file.metadata(GAMMA, name=b"%x" % n, tail=b"") for n in numbers)


def size_between(least, most):
    return lambda text: least < len(text) < most


# 1,024 programs cost 64 KiB each: 128 bytes for the program, 65,408 for its text.
@TABLE.case("limits", lambda _, *sizes: ((HEADER, size_between(*sizes)), (JSON, size_between(*sizes))),
            of=((1024, 1024 * 65408, 1024 * 70000), (1025, 0, 65536)))
def programs_that_share_64_kib(file, number, *_):
    entries = [(b"%d" % n, b'"' + (248 if n < 356 else 121) * b"v" + b'"') for n in range(100, 357)]
    file.block = file.make_block([(entries, range(1, number + 1))])
    file.with_records = False


# A large host may have as many programs as this.
TEN_THOUSAND = r"^# bpf_metadata [0-9]*( [a-z]*)?: key_00=1*, .*, key_19=1*$", 10000


@TABLE.case("limits", (HEADER, *TEN_THOUSAND), (INJECT_HEADER,), (">" + HEADER, *TEN_THOUSAND))
def ten_thousand_programs(file):
    file.block = file.make_block([([(b"key_%02d" % n, b"1" * 94) for n in range(20)], range(1, 10001))])
    file.with_records = False


# 1,075 programs in records cost more than 64,640 bytes each, which is too much for a block. perf stops
# to read records then. 64 MiB are 1,036 times 64,640 bytes and 128 for the program.
@TABLE.case("limits", (INJECT_HEADER,), (">" + HEADER, "WARNING: .*metadata", 0),
            (">" + HEADER, "^# bpf_metadata [0-9]*( p)?: 0*=", 1036),
            (">" + HEADER, "^# bpf_metadata 2000", 0))
def more_records_than_fit_into_a_block(file):
    entries = [(b"%063d" % n, 255 * b"v") for n in range(202)]
    progs = [(n + 100, "%016x" % n, "p", 0xffffffffc1000000 + 0x1000 * n, entries) for n in range(1075)]
    progs.append((2000, "%016x" % 2000, "small", 0xffffffffc1000000 + 0x1000 * 1075, [(b"last", b"1")]))
    file.odd = b"".join(file.ksymbol(prog) + file.bpf_event(prog) + file.metadata(prog, tail=b"")
                        for prog in progs)
    file.block = b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], TABLE))
