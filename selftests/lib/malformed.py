#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Malformed files: what is wrong in each, and what perf prints. malformed.sh reads them.

  malformed.py list [GROUP]           print CASE|LATER|MESSAGE of each case
  malformed.py write CASE FILE [OPTION...]  write, print the odd record's offset (wrong for pipe, dir)
        --big                         in big-endian byte order
        --pipe                        in the format of a pipe
        --dir                         a directory, as from perf record --threads
  malformed.py marks FILE             print BEGIN and END of the last metadata
                                      record, then of the block of a file

The odd records are between the samples, so two samples come after them. A directory has the records
twice. The case "good" is a file without an error.
"""
import struct
import sys
import typing

from perfgen import (ALPHA, ATTR_SIZE, BETA, BTF, FIXED_SIZE, GAMMA, KEY_SIZE, MAGIC, METADATA, NAME_SIZE,
                     PROG_INFO, VALUE_SIZE, File, text_of)

ESCAPES = b"a\x1b[31m\x07\x9b\xc2\x9b\x7f\n\xff"


def metadata(**options):
    def change(file):
        file.odd = file.metadata(GAMMA, **options)
    return change


def first(file):
    file.first = file.metadata(GAMMA)


def second_block(file):
    """The second block has other metadata for one program, and one more program."""
    file.second_block = file.make_block([([(b"version", b"3")], [9]), (GAMMA[4], [11])])


def long_value(value):
    """Two sets with this string. perf prints it from byte 20 of the first set, 9 of the second."""
    sets = ([(b"answer", b"42"), (b"version", value)], [7]), ([(b"version", value)], [9])
    return texts(*((text_of(entries), ids) for entries, ids in sets))


def section(size):
    def change(file):
        file.section_size = size
        if size > 1 << 32:
            file.block = file.make_block(length=0xffffffff)
    return change


def texts(*texts, **options):
    def change(file):
        file.block = file.make_texts(texts, **options)
    return change


ALPHA_TEXT, BETA_TEXT = text_of(ALPHA[4]), text_of(BETA[4])
GOOD_TEXT = ALPHA_TEXT, [7]


def last_text(text=BETA_TEXT, ids=(9,), **options):
    return texts(GOOD_TEXT, (text, ids), **options)


def last_string(data):
    """Add another text, of program 11, that is not padded."""
    def change(file):
        file.block += file.u32(len(data)) + data + file.u32(1, 11)
    return change


def info(**options):
    def change(file):
        file.infos[1] = file.prog_info(BETA, **options)
    return change


def nr_infos(number):
    def change(file):
        file.nr_infos = number
    return change


def feature(number):
    def change(file):
        file.features[number] = b"unknown!"
    return change


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


def unknown(kind, size):
    def change(file):
        file.odd = file.record(kind, bytes(size - 8))
    return change


BROKEN = "it is broken or too large"


class Case(typing.NamedTuple):
    name: str
    change: typing.Callable                 # to a good file
    message: str                            # "-v" before it: it is only printed with that option
    later: bool = False                     # A later perf may refuse the file, or use the number itself.


GROUPS = {
    # Records that break a rule of the format: the reason why perf skips them
    "refused": [
        Case("record-of-8-bytes", metadata(size=8), "shorter than its fixed part"),
        Case("record-short", metadata(size=FIXED_SIZE - 8), "shorter than its fixed part"),
        Case("record-unaligned", metadata(size=FIXED_SIZE + 960 + 4), "size not a multiple of 8", later=True),
        Case("record-entries-one-more", metadata(nr=4), "more entries than fit into it"),
        Case("record-entries-huge", metadata(nr=(1 << 64) - 1), "more entries than fit into it"),
        Case("record-entries-wrap", metadata(nr=1 << 58), "more entries than fit into it"),  # nr_entries is such that their size is 0 in 64 bits
        Case("record-name-no-nul", metadata(name=NAME_SIZE * b"n"), "program name without NUL"),
        Case("record-key-no-nul", metadata(entries=[(b"bad", b"1"), (KEY_SIZE * b"k", b"2")]), "key without NUL"),
        Case("record-value-no-nul", metadata(entries=[(b"bad", b"1"), (b"worse", VALUE_SIZE * b"v")]), "value without NUL"),
    ],
    # Odd records that can be shown: printed by perf script --show-bpf-events
    "odd": [
        Case("record-no-entries", metadata(entries=[], with_id=False), "prog bpf_prog_0123456789abcdef_gamma"),
        Case("record-only-id", metadata(entries=[]), "entry 0:                 (id) = 11"),
        Case("record-no-id", metadata(with_id=False), "entry 1:                worse = 2"),
        Case("record-id-no-number", metadata(entries=[(b"(id)", b"11x"), (b"odd", b"1")], with_id=False), "entry 0:                 (id) = 11x"),
        Case("record-id-not-first", metadata(entries=[(b"odd", b"1"), (b"(id)", b"11")], with_id=False), "entry 1:                 (id) = 11"),
        Case("record-no-sample-id", metadata(tail=b""), "entry 2:                worse = 2"),  # nothing in place of the sample_id fields
        Case("record-long-tail", metadata(tail=bytes(4096)), "entry 2:                worse = 2"),  # 4096 bytes more than it needs
        Case("record-name-empty", metadata(name=b""), "entry 2:                worse = 2"),
        Case("record-value-empty", metadata(entries=[(b"odd", b"")]), "entry 1:                  odd ="),
        Case("record-value-no-json", metadata(entries=[(b"odd", b'{"a":')]), 'entry 1:                  odd = {"a":'),
        Case("record-key-empty", metadata(entries=[(b"odd", b"1"), (b"", b"2")]), "entry 1:                  odd = 1"),
        Case("record-key-twice", metadata(entries=[(b"odd", b"1"), (b"odd", b"2")]), "entry 2:                  odd = 2"),
        Case("record-key-no-utf8", metadata(entries=[(b"odd\xff\xc0\x80", b"1")]), "entry 1:      odd\\xff\\xc0\\x80 = 1"),
        Case("record-value-no-utf8", metadata(entries=[(b"odd", b'"\xed\xa0\x80"')]), 'odd = "\\xed\\xa0\\x80"'),
        Case("record-name-controls", metadata(name=ESCAPES), "prog a\\u001b[31m\\u0007\\x9b\\u009b\\u007f\\u000a\\xff"),
        Case("record-key-controls", metadata(entries=[(ESCAPES, b"1")]), "a\\u001b[31m\\u0007\\x9b\\u009b\\u007f\\u000a\\xff = 1"),
        Case("record-value-controls", metadata(entries=[(b"odd", b'"' + ESCAPES + b'"')]), 'odd = "a\\u001b[31m\\u0007\\x9b\\u009b\\u007f\\u000a\\xff"'),
        Case("record-first", first, "entry 2:                worse = 2"),  # it is before the attributes of events, in a pipe
    ],
    # Blocks that break a rule of the format: the reason why perf ignores them
    "ignored": [
        Case("text-length-of-nothing", last_text(length=0), BROKEN),
        Case("text-length-short", last_text(length=8), BROKEN),
        Case("text-length-long", last_text(length=128), BROKEN),
        Case("text-length-huge", section(1 << 40), BROKEN, later=True),  # a length is 4 GiB, the section has 1 TiB
        Case("text-section-short", section(600), BROKEN),
        Case("text-programs-more", last_text(nr_progs=2), BROKEN),
        Case("text-programs-huge", last_text(nr_progs=0xffffffff), BROKEN),
        Case("text-rest", last_text(end=bytes(8)), BROKEN),
        Case("text-no-newline", last_text(BETA_TEXT[:-1]), BROKEN),
        Case("text-no-value", last_text(b"version\n" + BETA_TEXT), BROKEN),
        Case("text-line-empty", last_text(BETA_TEXT + b"\n"), BROKEN),
        Case("text-key-empty", last_text(b"=1\n"), BROKEN),
        Case("text-of-no-programs", texts(GOOD_TEXT, (BETA_TEXT, [])), BROKEN),
        Case("text-nothing", texts((b"", [])), BROKEN),
        Case("text-ids-twice", texts(GOOD_TEXT, (BETA_TEXT, [9, 9]), (b"more=1\nversion=3\n", [9])), BROKEN),
        Case("text-too-much", texts((b"k=" + 30000 * b"v" + b"\n", range(1, 2300))), BROKEN),  # 0.04 MB that would be 64 MiB in memory
        Case("text-second", second_block, BROKEN),
    ],
    # Odd blocks that can be shown: printed by perf report --header-only
    "odd-block": [
        Case("text-magic", last_text(magic=b"BPFMETA3"), "# hostname : host"),
        Case("text-empty", texts(GOOD_TEXT, (b"", [9])), '# bpf_metadata 7 alpha: answer=42, version="1.2.3"'),
        Case("text-unaligned", last_string(b"k=v\n\0\0\0\0"), "# bpf_metadata 11: k=v"),
        Case("text-twice", texts(GOOD_TEXT, (BETA_TEXT, [9]), (BETA_TEXT, [11])), '# bpf_metadata 11: version="2.0"'),
        Case("text-ids-order", texts((BETA_TEXT, [11, 9]), GOOD_TEXT), '# bpf_metadata 9 beta: version="2.0"'),
        Case("text-key-twice", last_text(b"version=1\nversion=2\n"), "# bpf_metadata 9 beta: version=1"),
        Case("text-equals", last_text(b"version=1=2\n"), "# bpf_metadata 9 beta: version=1=2"),
        Case("text-controls", last_text(b"v\x9b\xc2\x9b\x1b\x7f=\"\x1b[1m\"\n"), "# bpf_metadata 9 beta: v"),
        Case("text-set-cut", long_value(b'"x' + 4200 * "é".encode() + b'"'), '# bpf_metadata 9 beta: version="'),  # the limit of perf report is within a character
        Case("text-overlaps-section", overlap, '# bpf_metadata 9 beta: version="2.0"', later=True),  # an empty section begins at the same place
    ],
    # Entries before the block: printed by perf report --header-only
    "info": [
        Case("info-in-the-data", in_data, "# hostname : host", later=True),
        Case("info-count-huge", nr_infos(0xffffffff), "bpf_prog_info 7: bpf_prog_0011223344556677_alpha", later=True),
        Case("info-count-less", nr_infos(1), "# hostname : host"),  # the number of entries is one less than there are
        Case("info-length", info(info_len=1 << 20), "detected invalid bpf_prog_info", later=True),
        Case("info-data-length", info(data_len=0xfffffff8), "bpf_prog_info 7: bpf_prog_0011223344556677_alpha", later=True),
        Case("info-array-outside", info(offsets=(1 << 40, 8, 16)), "# bpf_metadata 9"),
        Case("info-array-long", info(count=0x20000001), "# bpf_metadata 9"),
        Case("info-array-not-there", info(arrays=0, offsets=(64, 64, 64)), "# bpf_metadata 9"),  # an entry has offsets of arrays that it doesn't have
        Case("info-name-no-nul", info(name=16 * b"n"), "bpf_prog_8899aabbccddeeff_nnnnnnnnnnnnnnn addr"),
    ],
    # Types of a later perf: printed by perf script
    "type": [
        Case("type-next", unknown(METADATA + 1, 48), "Unsupported header type 85, please consider updating perf.", later=True),  # the next type of a record
        Case("type-far", unknown(1000000, 24), "Unsupported header type 1000000, please consider updating perf."),  # a type far beyond the next one
        Case("type-last", unknown(0xffffffff, 8), "Unsupported header type 4294967295, please consider updating perf."),
    ],
    # Features of a later perf: printed by perf inject
    "feature": [
        Case("feature-32", feature(32), "-v left out unknown feature 32", later=True),  # the next number of a feature
        Case("feature-255", feature(255), "-v left out unknown feature 255"),
    ],
    # A program that overlaps another: printed by perf script
    "program": [
        Case("ksymbol-over-another", loaded_over, "bpf_prog_0123456789abcdef_gamma+0x90"),  # its end is in a program that isn't gone
    ],
}
GOOD = Case("good", lambda file: None, "")


def list_cases(group=None):
    for name, cases in GROUPS.items():
        for case in cases:
            if group in (None, name):
                print(f"{case.name}|{'later' if case.later else ''}|{case.message}")


def write(name, path, *options):
    file = File("--big" in options, "--pipe" in options)
    case, = (case for case in sum(GROUPS.values(), [GOOD]) if case.name == name)
    case.change(file)
    if "--dir" in options:
        file.write_dir(path)
    else:
        file.write(path)
    print(f"{file.odd_offset:#x}")


def marks(path):
    with open(path, "rb") as file:
        data = file.read()
    size = FIXED_SIZE + 2 * (KEY_SIZE + VALUE_SIZE) + 16
    record = data.rindex(struct.pack("<IHH", METADATA, 0, size))
    print(record, record + size, data.rindex(MAGIC), len(data))


if __name__ == "__main__":
    {"list": list_cases, "write": write, "marks": marks}[sys.argv[1]](*sys.argv[2:])
