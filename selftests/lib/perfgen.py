# SPDX-License-Identifier: GPL-2.0
"""
Write perf.data files byte by byte: good files, malformed files, files of other machines. This
follows perf.data-file-format.txt and the uapi headers, and shares no code with perf.

A file has two programs, alpha (id 7) and beta (9), with two samples each. Their metadata is
in records, and in the block of a file (see format.rst). lib/malformed.py has the malformed files.
"""
import os
import struct

from perfdata import (BLOCK_MAGIC, BPF_EVENT, BTF, HEADER_ATTR, KEY_SIZE, KSYMBOL, METADATA, NAME_SIZE, PROG_INFO,
                      SAMPLE, VALUE_SIZE)

KERNEL, MMAP_BUILD_ID = 1, 1 << 14
MMAP2, TEXT_POKE, HEADER_FEATURE = 10, 20, 80
HOSTNAME, ARCH, DIR_FORMAT = 3, 6, 24
LAST_FEATURE = 32
ATTR_SIZE = 136
IP, TID, TIME, CALLCHAIN, CPU, PERIOD, IDENTIFIER = 1, 2, 4, 1 << 5, 1 << 7, 1 << 8, 1 << 16
CONTEXT_KERNEL = (1 << 64) - 128
SAMPLE_ID_ALL, BUILD_ID = 18, 34        # bits
JITED_KSYMS, JITED_FUNC_LENS, PROG_TAGS = 1 << 3, 1 << 4, 1 << 8
FUNC_INFO, LINE_INFO, JITED_LINE_INFO = 1 << 5, 1 << 6, 1 << 7

ALPHA = (7, "0011223344556677", "alpha", 0xffffffffc0001000,
         [(b"version", b'"1.2.3"'), (b"answer", b"42")])
BETA = (9, "8899aabbccddeeff", "beta", 0xffffffffc0002000, [(b"version", b'"2.0"')])
# of odd records
GAMMA = (11, "0123456789abcdef", "gamma", 0, [(b"bad", b"1"), (b"worse", b"2")])


class File:
    def __init__(self, big=False, pipe=False):
        self.big, self.pipe = big, pipe
        self.time = 1000
        self.tid = 0                    # of the sample ids
        self.first = b""                # before all other records
        self.odd = b""                  # between the samples
        self.late = None                # a program whose PERF_RECORD_KSYMBOL is between the samples
        self.infos = [self.prog_info(ALPHA), self.prog_info(BETA)]
        self.nr_infos = 2
        self.block = self.make_block()
        self.section_size = None        # of the feature with the block
        self.features = {}              # more features: bytes by number
        self.more_features = b""        # records with more features, of a pipe
        self.last = b""                 # after all other records of a pipe
        self.moved = None               # (feature, offset) in the table of sections
        self.last_feature = LAST_FEATURE
        # Of cpu-clock and, if wanted, task-clock: the id, and more fields of samples and
        # sample ids. Samples belong to the first event, other records to the last one. If
        # there are two, each needs an IDENTIFIER.
        self.events = [(1, 0)]
        self.attr_bits = (SAMPLE_ID_ALL,)
        self.attr_size = ATTR_SIZE
        self.stale = b""                # after the sample id of the kernel's records about code
        self.odd_offset = 0
        self.chain = None               # callchain of each sample after its address, if any
        self.with_records = True
        self.nr_samples = 2             # of each program

    # numbers, in the byte order of the machine

    def pack(self, fmt, *values):
        return struct.pack((">" if self.big else "<") + fmt, *values)

    def u32(self, *values):
        return self.pack(f"{len(values)}I", *values)

    def u64(self, *values):
        return self.pack(f"{len(values)}Q", *values)

    def bits(self, *bits):
        """Bit-fields of a u64: big-endian machines begin with the highest bit."""
        return self.u64(sum(1 << (63 - bit if self.big else bit) for bit in bits))

    def string(self, text):
        padded = text.ljust((len(text) // 64 + 1) * 64, b"\0")
        return self.u32(len(padded)) + padded

    # records

    def record(self, kind, body, misc=0, size=None):
        return self.pack("IHH", kind, misc, 8 + len(body) if size is None else size) + body

    def sample_id(self):
        number, more = self.events[-1]
        self.time += 1
        if SAMPLE_ID_ALL not in self.attr_bits:
            return b""
        return self.u32(self.tid, self.tid) + self.u64(self.time) + (self.u32(0, 0) if more & CPU else b"") + \
            (self.u64(number) if more & IDENTIFIER else b"")

    def sample(self, ip):
        number, more = self.events[0]
        self.time += 1
        body = (self.u64(number) if more & IDENTIFIER else b"") + self.u64(ip) + self.u32(0, 0)
        body += self.u64(self.time) + (self.u32(0, 0) if more & CPU else b"") + self.u64(1)
        if self.chain is not None:
            chain = [CONTEXT_KERNEL, ip, *self.chain]
            body += self.u64(len(chain), *chain)
        return self.record(SAMPLE, body, KERNEL)

    def ksymbol(self, prog, flags=0):
        name = ksym_name(prog)
        name = name.ljust((len(name) // 8 + 1) * 8, b"\0")
        return self.record(KSYMBOL, self.u64(prog[3]) + self.pack("IHH", 0x100, 1, flags) + name +
                           self.sample_id() + self.stale, KERNEL)

    def bpf_event(self, prog):
        return self.record(BPF_EVENT, self.pack("HHI", 1, 0, prog[0]) + bytes.fromhex(prog[1]) +
                           self.sample_id() + self.stale, KERNEL)

    def text_poke(self, addr, old, new):
        body = self.u64(addr) + self.pack("HH", len(old), len(new)) + old + new
        body = body.ljust((len(body) + 7) // 8 * 8, b"\0")
        return self.record(TEXT_POKE, body + self.sample_id() + self.stale, KERNEL)

    def mmap2(self, name, inode, misc=0, size=None):
        """inode: the 24 bytes of its numbers, or of a build ID"""
        name = name.ljust((len(name) // 8 + 1) * 8, b"\0")
        return self.record(MMAP2, self.u32(1, 1) + self.u64(0x400000, 0x1000, 0) + inode +
                           self.u32(5, 2) + name + self.sample_id(), misc, size)

    def inode(self, major, minor, number, generation):
        return self.u32(major, minor) + self.u64(number, generation)

    def metadata(self, prog, entries=None, name=None, nr=None, size=None, tail=bytes(16), with_id=True):
        entries = [(b"(id)", b"%d" % prog[0])] * with_id + (prog[4] if entries is None else entries)
        body = (ksym_name(prog) if name is None else name).ljust(NAME_SIZE, b"\0")
        body += self.u64(len(entries) if nr is None else nr)
        for key, value in entries:
            body += key.ljust(KEY_SIZE, b"\0") + value.ljust(VALUE_SIZE, b"\0")
        body += tail
        if size is not None:
            body = body[:size - 8].ljust(size - 8, b"\0")
        return self.record(METADATA, body)

    def attr(self, n=0):
        kind = IP | TID | TIME | PERIOD | self.events[n][1]
        head = self.u32(1, self.attr_size)
        head += self.u64(n, 1, kind if self.chain is None else kind | CALLCHAIN, 0)
        return (head + self.bits(*self.attr_bits)).ljust(self.attr_size, b"\0")

    # features

    def prog_info(self, prog, arrays=JITED_KSYMS | JITED_FUNC_LENS | PROG_TAGS, offsets=(0, 8, 16),
                  count=1, name=None, info_len=192, data_len=24, length=0x100):
        info = bytearray(192)

        def put(offset, data):
            info[offset:offset + len(data)] = data

        tag = bytes.fromhex(prog[1])
        put(0, self.u32(1, prog[0]) + tag)
        put(64, (prog[2].encode() if name is None else name).ljust(16, b"\0"))
        put(104, self.u32(count, count) + self.u64(offsets[0], offsets[1]))
        put(180, self.u32(count) + self.u64(offsets[2]))
        data = self.u64(prog[3]) + self.u32(length, 0) + tag
        return self.u32(info_len, data_len) + self.u64(arrays) + info + data

    def lines(self, prog, lines, line_size=16, address_size=8, nr=None, nr_addresses=None, btf_id=5, btf=None,
              length=0x100, func=0, func_size=8, nr_funcs=1):
        """The bpf_prog_info of a program with source lines (offset, file, text, number), and their BTF"""
        strings, records, addresses = b"\0", self.u32(func, 1), b""
        for number_of_insn, (offset, name, text, number) in enumerate(lines):
            records += self.u32(number_of_insn, len(strings), len(strings) + len(name) + 1, number << 10).ljust(line_size, b"\0")
            addresses += self.u64(prog[3] + offset).ljust(address_size, b"\0")
            strings += name + b"\0" + text + b"\0"
        info = bytearray(self.prog_info(prog, data_len=24 + len(records) + len(addresses), length=length, arrays=(
            JITED_KSYMS | JITED_FUNC_LENS | PROG_TAGS | FUNC_INFO | LINE_INFO | JITED_LINE_INFO)))
        struct.pack_into("<IIQIIQQIII", info, 16 + 128, btf_id, func_size, 24, nr_funcs, len(lines) if nr is None else nr,
                         32, 24 + len(records), len(lines) if nr_addresses is None else nr_addresses, line_size, address_size)
        data = self.pack("HBBIIIII", 0xeb9f, 1, 0, 24, 0, 0, 0, len(strings)) + strings
        data = data if btf is None else btf(data)
        self.features[BTF] = self.u32(1, 5, len(data)) + data
        return bytes(info) + records + addresses

    def make_block(self, sets=((ALPHA[4], [7]), (BETA[4], [9])), **options):
        """Sets are ([(key, value)], ids of programs)."""
        return self.make_texts([(text_of(entries), ids) for entries, ids in sets], **options)

    def make_texts(self, texts, magic=BLOCK_MAGIC, length=None, nr_progs=None, end=b""):
        """Texts are (text, ids of programs). length and nr_progs replace those of the last text."""
        data = b"".join(self.string(text) + self.u32(len(ids), *ids) for text, ids in texts[:-1])
        text, ids = texts[-1]
        last = self.string(text)
        data += last[:4] if length is None else self.u32(length)
        return magic + data + last[4:] + self.u32(len(ids) if nr_progs is None else nr_progs, *ids) + end

    def feature_bytes(self):
        features = {HOSTNAME: self.string(b"host"), ARCH: self.string(b"s390x" if self.big else b"x86_64")}
        if not self.pipe:
            features[PROG_INFO] = self.u32(self.nr_infos) + b"".join(self.infos) + self.block
        return dict(sorted({**features, **self.features}.items()))

    # the whole file

    def records(self):
        out = self.first
        for prog in (ALPHA, BETA):
            out += self.ksymbol(prog) + self.bpf_event(prog)
        out += b"".join(self.sample(ALPHA[3] + 16) for _ in range(self.nr_samples))
        self.odd_offset = len(out) if self.odd else 0
        if self.late:
            out += self.ksymbol(self.late)
        out += self.odd
        out += b"".join(self.sample(BETA[3] + 16) for _ in range(self.nr_samples))
        return out + (self.metadata(ALPHA) + self.metadata(BETA) if self.with_records else b"")

    def magic(self):
        return b"2ELIFREP" if self.big else b"PERFILE2"

    def write_pipe(self):
        out = self.magic() + self.u64(16) + self.first
        for n, (number, _) in enumerate(self.events):
            out += self.record(HEADER_ATTR, self.attr(n) + self.u64(number))
        for number, data in self.feature_bytes().items():
            out += self.record(HEADER_FEATURE, self.u64(number) + data)
        out += self.more_features + self.record(HEADER_FEATURE, self.u64(self.last_feature))
        self.first = b""
        return out + self.records() + self.last

    def write_file(self):
        ids = self.u64(*(number for number, _ in self.events))
        attrs = b"".join(self.attr(n) + self.u64(104 + 8 * n, 8) for n in range(len(self.events)))
        records, features = self.records(), self.feature_bytes()
        begin = 104 + len(ids) + len(attrs)
        self.odd_offset += begin
        head = self.magic() + self.u64(104, self.attr_size + 16, 104 + len(ids), len(attrs),
                                       begin, len(records), 0, 0)
        head += self.u64(*(sum(1 << bit % 64 for bit in features if bit // 64 == word)
                           for word in range(4)))
        table, body, at = b"", b"", begin + len(records) + 16 * len(features)
        for number, data in features.items():
            length = len(data)
            if number == PROG_INFO and self.section_size is not None:
                length = self.section_size
            where = at + len(body)
            if self.moved and number == self.moved[0]:
                where = self.moved[1]
            table += self.u64(where, length)
            body += data
        return head + ids + attrs + records + table + body

    def bytes(self):
        return self.write_pipe() if self.pipe else self.write_file()

    def write(self, path):
        with open(path, "wb") as out:
            out.write(self.bytes())

    def write_dir(self, path):
        os.mkdir(path)
        self.features[DIR_FORMAT] = self.u64(1)
        self.write(path + "/data")
        with open(path + "/data.0", "wb") as out:
            out.write(self.records())


def text_of(entries):
    return b"".join(key + b"=" + value + b"\n" for key, value in entries)


def ksym_name(prog):
    return f"bpf_prog_{prog[1]}_{prog[2]}".encode()
