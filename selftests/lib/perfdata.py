#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Read the records of a perf.data file. This reader was written from the format alone and shares
no code with perf.

  perfdata.py check FILE            check the layout and place of each metadata record
  perfdata.py check-records FILE    check only the layout
  perfdata.py places FILE           print PLACE<TAB>PROG of each metadata record: "begin" is before
                                    the first sample, "end" after the last one, else "between"
  perfdata.py records FILE          print PROG<TAB>NR_ENTRIES<TAB>SIZE<TAB>ID of each metadata record
  perfdata.py entries FILE PROG     print KEY<TAB>VALUE of each entry of PROG, a name or id, but "(id)"
  perfdata.py all-entries FILE      print PROG<TAB>KEY<TAB>VALUE of each entry but "(id)"
  perfdata.py ksymbols FILE         print the name of each BPF function that was registered
  perfdata.py programs FILE         print ID TAG PID LOADS UNLOADS FUNCTIONS of each BPF program:
                                    the pid of its loader (0: it was there before), the numbers
                                    of events, the KSYMBOL names separated by ","
  perfdata.py types FILE            print the type of each record
  perfdata.py strip FILE NEW        copy a file without its metadata records
  perfdata.py block FILE            check the block in the header, which a pipe lacks, and print
                                    ID<TAB>NAME<TAB>SET<TAB>KEY<TAB>VALUE of each entry
  perfdata.py without FILE          check the block, and print ID<TAB>NAME of each program without
                                    metadata
  perfdata.py strip-block FILE NEW  copy a file without its block
  perfdata.py sections FILE         print NAME<TAB>SIZE: data, block, and each feature by its
                                    number (25 without the block)
  perfdata.py costs FILE            print ID<TAB>NAME<TAB>FUNCTION<TAB>PERIOD: the sum of the
                                    samples in each function of a BPF program, and of
                                    all other samples
  perfdata.py lines FILE ID         print SYMBOL<TAB>OFFSET<TAB>FILE<TAB>NUMBER<TAB>TEXT of each
                                    source line of a program, where its code begins

FILE may come from a pipe, but not for strip. Only this machine's byte order is supported.
"""
import struct
import sys

SAMPLE, KSYMBOL, BPF_EVENT = 9, 17, 18
HEADER_ATTR, TRACING_DATA, AUXTRACE, METADATA = 64, 66, 71, 84
KSYMBOL_BPF = KSYMBOL_UNREGISTER = 1
PROG_LOAD, PROG_UNLOAD = 1, 2
NAME_SIZE, KEY_SIZE, VALUE_SIZE = 512, 64, 256
FIXED_SIZE, ENTRY_SIZE = 8 + NAME_SIZE + 8, KEY_SIZE + VALUE_SIZE
SAMPLE_ID_ALL = 1 << 18
# sample_type bits whose fields end every record: TID TIME ID CPU STREAM_ID IDENTIFIER
ID_HDR_BITS = (1, 2, 6, 7, 9, 16)
# of samples: IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD
SAMPLE_BITS = (16, 0, 1, 2, 3, 6, 9, 7, 8)
IP, TID, TIME, PERIOD = 0, 1, 2, 8
FEATURE_WORDS, HEADER_BPF_PROG_INFO, HEADER_BPF_BTF, BPIL_SIZE = 4, 25, 26, 16
BLOCK_MAGIC, STRING_ALIGN = b"BPFMETA2", 64
INFO_ID_OFFSET, INFO_NAME_OFFSET, INFO_NAME_SIZE = 4, 64, 16
NOT_BPF = "N/A"


class Bad(Exception):
    """The problem with the file."""


class PerfData:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:8] != b"PERFILE2":
            raise Bad(f"{path}: not a perf.data file")
        (self.header_size,) = struct.unpack_from("=Q", self.bytes, 8)
        self.is_pipe = self.header_size == 16
        self.attrs = []
        if self.is_pipe:
            self.begin, self.end = 16, len(self.bytes)
        else:
            _, attrs, attrs_size, self.begin, size = struct.unpack_from("=5Q", self.bytes, 16)
            (attr_size,) = struct.unpack_from("=Q", self.bytes, 16)
            self.attrs = [attrs + i for i in range(0, attrs_size, attr_size)]
            self.end = self.begin + size
        self.records = list(self.walk())

    def walk(self):
        """The (offset, type, size) of each record."""
        at = self.begin
        while at < self.end:
            if at + 8 > self.end:
                raise Bad(f"offset {at:#x}: {self.end - at} bytes are not a record")
            kind, _, size = struct.unpack_from("=IHH", self.bytes, at)
            if size < 8 or at + size > self.end:
                raise Bad(f"offset {at:#x}: type {kind} has size {size}")
            if kind in (TRACING_DATA, AUXTRACE):
                raise Bad(f"offset {at:#x}: type {kind} is not expected in these tests")
            if kind == HEADER_ATTR:
                self.attrs.append(at + 8)
            yield at, kind, size
            at += size

    def attr(self):
        """sample_type and flags of the first evsel"""
        if not self.attrs:
            raise Bad("no event in the file")
        sample_type, _, flags = struct.unpack_from("=3Q", self.bytes, self.attrs[0] + 24)
        return sample_type, flags

    def id_hdr_size(self):
        sample_type, flags = self.attr()
        return 8 * sum(sample_type >> bit & 1 for bit in ID_HDR_BITS) if flags & SAMPLE_ID_ALL else 0

    def sample(self, at, bit):
        """A field of a sample of the first evsel"""
        sample_type, _ = self.attr()
        if not sample_type >> bit & 1:
            raise Bad(f"the samples lack the field of bit {bit}")
        skipped = sum(sample_type >> other & 1 for other in SAMPLE_BITS[:SAMPLE_BITS.index(bit)])
        return struct.unpack_from("=Q", self.bytes, at + 8 + 8 * skipped)[0]

    def metadata(self):
        return [Metadata(self.bytes, at, size) for at, kind, size in self.records
                if kind == METADATA]

    def ksymbol(self, at, size):
        """The name of a BPF function, and True if it is unregistered; None for another symbol"""
        _, _, ksym_type, flags = struct.unpack_from("=QIHH", self.bytes, at + 8)
        if ksym_type != KSYMBOL_BPF:
            return None
        return c_string(self.bytes[at + 24:at + size]), bool(flags & KSYMBOL_UNREGISTER)

    def ksymbols(self):
        for at, kind, size in self.records:
            found = self.ksymbol(at, size) if kind == KSYMBOL else None
            if found and not found[1]:
                yield found[0]

    def sample_id(self, at, kind, size):
        """
        The place of the sample id. It is at the end of a record, but header.size of KSYMBOL and
        BPF_EVENT can be too large if another perf listens, too.
        """
        if kind == KSYMBOL:
            return at + 24 + (self.bytes.index(b"\0", at + 24) - (at + 24)) // 8 * 8 + 8
        return at + 24 if kind == BPF_EVENT else at + size - self.id_hdr_size()

    def origin(self, at, kind, size):
        """The time and the (pid, tid) of a record; a sample has only a time."""
        if kind == SAMPLE:
            return self.sample(at, TIME), None
        sample_type, flags = self.attr()
        if not flags & SAMPLE_ID_ALL or sample_type & 6 != 6:
            raise Bad("the records have no TID and TIME")
        pid, tid, time = struct.unpack_from("=IIQ", self.bytes, self.sample_id(at, kind, size))
        return time, (pid, tid)

    def sorted(self, *kinds):
        """Records sorted by time. Synthesized events have no time and come first."""
        return sorted((record for record in self.records if record[1] in kinds),
                      key=lambda record: self.origin(*record)[0])

    def programs(self):
        """
        Programs by id. The kernel writes the KSYMBOL records of a program's functions, then its
        BPF_EVENT. perf writes the same, with the time 0, for programs that it finds.
        """
        functions, programs = {}, {}
        for at, kind, size in self.sorted(KSYMBOL, BPF_EVENT):
            _, who = self.origin(at, kind, size)
            if kind == KSYMBOL:
                found = self.ksymbol(at, size)
                if found:
                    functions.setdefault((who, found[1]), []).append(found[0])
                continue
            event, _, prog_id, tag = struct.unpack_from("=HHI8s", self.bytes, at + 8)
            names = functions.pop((who, event == PROG_UNLOAD), [])
            programs.setdefault(prog_id, Program(prog_id)).add(event, tag.hex(), who[0], names)
        return programs

    def features(self):
        """{number: (place in the table of sections, offset, size)} of a file"""
        if self.is_pipe:
            return {}
        words = struct.unpack_from(f"={FEATURE_WORDS}Q", self.bytes, 72)
        numbers = [64 * i + bit for i, word in enumerate(words)
                   for bit in range(64) if word >> bit & 1]
        places = [self.end + 16 * i for i in range(len(numbers))]
        return {number: (at, *struct.unpack_from("=2Q", self.bytes, at))
                for number, at in zip(numbers, places)}

    def block(self):
        """The bytes after the magic"""
        at, size = self.block_place()
        magic, data = self.bytes[at:at + 8], self.bytes[at + 8:at + size]
        if magic != BLOCK_MAGIC:
            raise Bad(f"the block has magic {magic!r}")
        return data

    def infos(self):
        """(offset, size) of each entry of BPF_PROG_INFO, and of the bytes after them."""
        _, at, size = self.features().get(HEADER_BPF_PROG_INFO, (0, 0, 0))
        if not size:
            return [(0, 0)]
        end = at + size
        (count,) = struct.unpack_from("=I", self.bytes, at)
        at += 4
        found = []
        for _ in range(count):
            found.append((at, BPIL_SIZE + sum(struct.unpack_from("=2I", self.bytes, at))))
            at += found[-1][1]
            if at > end:
                raise Bad(f"offset {at:#x}: a bpf_prog_info passes the end of its section")
        return found + [(at, end - at)]

    def btf_strings(self, wanted):
        _, at, _ = self.features()[HEADER_BPF_BTF]
        (count,) = struct.unpack_from("=I", self.bytes, at)
        at += 4
        for _ in range(count):
            btf_id, size = struct.unpack_from("=2I", self.bytes, at)
            if btf_id == wanted:
                header, _, _, begin, length = struct.unpack_from("=5I", self.bytes, at + 12)
                begin += at + 8 + header
                return self.bytes[begin:begin + length]
            at += 8 + size
        raise Bad(f"there is no BTF {wanted}")

    def block_place(self):
        return self.infos()[-1]

    def names(self):
        """Names by id: of the main function, else of bpf_prog_info"""
        names = {}
        for at, _ in self.infos()[:-1]:
            (prog,) = struct.unpack_from("=I", self.bytes, at + BPIL_SIZE + INFO_ID_OFFSET)
            at += BPIL_SIZE + INFO_NAME_OFFSET
            names[prog] = c_string(self.bytes[at:at + INFO_NAME_SIZE])
        names.update((program.id, program.name()) for program in self.programs().values() if program.name())
        return names


def c_string(data):
    return data.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


class Program:
    """A program as the KSYMBOL and BPF_EVENT records describe it."""
    def __init__(self, prog_id):
        self.id = prog_id
        self.tags = set()
        self.pid = None
        self.loads, self.unloads = [], []   # the names of the functions for each event

    def add(self, event, tag, pid, names):
        self.tags.add(tag)
        if event == PROG_LOAD:
            self.loads.append(names)
            self.pid = pid
        elif event == PROG_UNLOAD:
            self.unloads.append(names)

    def functions(self):
        return self.loads[0] if self.loads else []

    def name(self):
        """NAME of bpf_prog_TAG_NAME, without [KEY=VALUE] of perf inject. Trampolines have other names."""
        main = next((name for name in self.functions() if name.startswith("bpf_prog_")), "")
        return "".join(main.split("_", 3)[3:]).split("[")[0]


class Metadata:
    def __init__(self, data, at, size):
        self.at, self.size = at, size
        if size < FIXED_SIZE:
            raise Bad(f"offset {at:#x}: a metadata record of {size} bytes")
        self.name = data[at + 8:at + 8 + NAME_SIZE]
        (self.nr,) = struct.unpack_from("=Q", data, at + 8 + NAME_SIZE)
        if FIXED_SIZE + self.nr * ENTRY_SIZE > size:
            raise Bad(f"offset {at:#x}: {self.nr} entries in {size} bytes")
        self.pairs = []
        at += FIXED_SIZE
        for _ in range(self.nr):
            self.pairs.append((data[at:at + KEY_SIZE], data[at + KEY_SIZE:at + ENTRY_SIZE]))
            at += ENTRY_SIZE
        self.tail = data[at:self.at + size]

        # The id of the program, or "" in records of other perfs, which name only a function
        key, value = map(c_string, self.pairs[0]) if self.pairs else ("", "")
        self.id = value if key == "(id)" else ""

    def entries(self):
        return [(c_string(key), c_string(value)) for key, value in self.pairs[1 if self.id else 0:]]


def check_field(what, field):
    text, nul, rest = field.partition(b"\0")
    if not nul:
        raise Bad(f"{what} has no NUL")
    if rest.strip(b"\0"):
        raise Bad(f"{what} has bytes after its NUL: {field!r}")
    if not text:
        raise Bad(f"{what} is empty")
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Bad(f"{what} is not UTF-8: {text!r}") from error


def check_record(record, id_hdr_size):
    where = f"offset {record.at:#x}:"
    size = FIXED_SIZE + record.nr * ENTRY_SIZE + id_hdr_size
    if record.size != size or record.size % 8:
        raise Bad(f"{where} size {record.size}, want {size} for {record.nr} entries")
    if record.nr < 2:
        raise Bad(f"{where} no entry")
    if not record.id.isdigit():
        raise Bad(f"{where} no id")
    if record.tail != bytes(id_hdr_size):
        raise Bad(f"{where} the {id_hdr_size} bytes of the sample id are not zero")
    check_field(f"{where} name", record.name)
    for i, (key, value) in enumerate(record.pairs):
        check_field(f"{where} key {i}", key)
        check_field(f"{where} value {i}", value)


def check_records(data):
    records = data.metadata()
    if not records:
        raise Bad("no metadata record in the file")
    for record in records:
        check_record(record, data.id_hdr_size())
    return ((f"{len(records)} records checked",),)


def places(data):
    """Each metadata record with its place among the samples"""
    samples = [at for at, kind, _ in data.records if kind == SAMPLE]
    if not samples:
        raise Bad("no sample in the file, so nothing is known about the order")
    for record in data.metadata():
        yield record, ("begin" if record.at < samples[0] else
                       "end" if record.at > samples[-1] else "between")


def check(data):
    checked = check_records(data)
    for record, place in places(data):
        if place == "between":
            raise Bad(f"offset {record.at:#x}: between two samples")
    return checked


def strip(data, path):
    """Copy all but the metadata records; the features after the data move up."""
    if data.is_pipe:
        raise Bad("strip cannot read a pipe")
    kept = b"".join(data.bytes[at:at + size] for at, kind, size in data.records
                    if kind != METADATA)
    moved = data.end - data.begin - len(kept)
    head = bytearray(data.bytes[:data.begin])
    struct.pack_into("=Q", head, 48, len(kept))
    tail = bytearray(data.bytes[data.end:])
    words = struct.unpack_from(f"={FEATURE_WORDS}Q", data.bytes, 72)
    for i in range(sum(bin(word).count("1") for word in words)):
        (offset,) = struct.unpack_from("=Q", tail, 16 * i)
        struct.pack_into("=Q", tail, 16 * i, offset - moved)
    with open(path, "wb") as file:
        file.write(head + kept + tail)
    return ()


class Block:
    """Texts with the ids of their programs. sets is [[(key, value)]], progs is [(id, set, name)]."""

    def __init__(self, data, names):
        self.data, self.at = data, 0
        self.texts = {}                 # by id
        if not data:
            raise Bad("the block has no text")
        while self.at < len(data):
            self.add(self.text())
        texts = list(dict.fromkeys(self.texts.values()))
        self.sets = [self.lines(text) for text in texts]
        self.progs = [(prog, texts.index(text), names.get(prog, ""))
                      for prog, text in sorted(self.texts.items())]

    def take(self, size):
        self.at += size
        if self.at > len(self.data):
            raise Bad(f"offset {self.at - size:#x} of the block: {size} bytes pass its end")
        return self.data[self.at - size:self.at]

    def number(self):
        return int.from_bytes(self.take(4), sys.byteorder)

    def text(self):
        where = f"offset {self.at:#x} of the block: a text"
        size = self.number()
        text, nul, rest = self.take(size).partition(b"\0")
        if not nul or size != (len(text) // STRING_ALIGN + 1) * STRING_ALIGN or rest.strip(b"\0"):
            raise Bad(f"{where} is not padded with zeros to a multiple of {STRING_ALIGN}, but to {size}")
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Bad(f"{where} is not UTF-8: {text!r}") from error
        if text.rpartition("\n")[2] or any(line.find("=") < 1 for line in text.split("\n")[:-1]):
            raise Bad(f"{where} is not made of lines KEY=VALUE: {text!r}")
        if text in self.texts.values():
            raise Bad(f"{where} is there twice: {text!r}")
        keys = [key for key, _ in self.lines(text)]
        if len(set(keys)) != len(keys):
            raise Bad(f"{where} has a key twice: {text!r}")
        return text

    def add(self, text):
        """Read the ids of the programs that have the text. They follow it."""
        nr = self.number()
        if not nr:
            raise Bad(f"offset {self.at:#x} of the block: a text of no program")
        for _ in range(nr):
            prog = self.number()
            if prog in self.texts:
                raise Bad(f"offset {self.at - 4:#x} of the block: program {prog} is there twice")
            self.texts[prog] = text

    def lines(self, text):
        return [tuple(line.split("=", 1)) for line in text.split("\n")[:-1]]


def block_progs(data):
    """ID, name, number of the set and the set of each program in the block"""
    if not data.block_place()[1]:
        return []
    block = Block(data.block(), data.names())
    return [(prog, name, nr_set, block.sets[nr_set]) for prog, nr_set, name in block.progs]


def strip_block(data, path):
    """
    Copy a file without its block: the section of BPF_PROG_INFO ends where its entries end.
    """
    _, size = data.block_place()
    copy = bytearray(data.bytes)
    if size:
        at, _, section = data.features()[HEADER_BPF_PROG_INFO]
        struct.pack_into("=Q", copy, at + 8, section - size)
    with open(path, "wb") as file:
        file.write(copy)
    return ()


def sections(data):
    _, block = data.block_place()
    yield "data", data.end - data.begin
    yield "block", block
    for number, (_, _, size) in data.features().items():
        yield number, size - block if number == HEADER_BPF_PROG_INFO else size


def costs(data):
    """
    {(id, name, function): period}. Samples belong to the first evsel.
    """
    types = [struct.unpack_from("=Q", data.bytes, attr + 24)[0] for attr in data.attrs]
    if any((types[0] ^ other) >> bit & 1 for other in types for bit in ID_HDR_BITS):
        raise Bad("the events of the file have different sample ids")
    functions, new, sums = {}, [], {}
    for at, kind, size in data.sorted(SAMPLE, KSYMBOL, BPF_EVENT):
        if kind == KSYMBOL:
            addr, length = struct.unpack_from("=QI", data.bytes, at + 8)
            # Older code at the same place was freed, even if there is no event about that.
            for start in [start for start, (end, *_) in functions.items()
                          if start < addr + length and addr < end]:
                del functions[start]
            name, is_unload = data.ksymbol(at, size) or ("", False)
            if not is_unload and name.startswith("bpf_prog_"):
                new.append((addr, addr + length, name))
        elif kind == BPF_EVENT:
            event, _, prog = struct.unpack_from("=HHI", data.bytes, at + 8)
            if event == PROG_LOAD:
                # bpf_prog_TAG_NAME, the main function first
                main = new[0][2].split("_", 3)[-1] if new else ""
                functions.update((addr, (end, prog, main, name)) for addr, end, name in new)
                new = []
        else:
            ip = data.sample(at, IP)
            where = next((tuple(names) for addr, (end, *names) in functions.items()
                          if addr <= ip < end), (NOT_BPF, NOT_BPF, NOT_BPF))
            sums[where] = sums.get(where, 0) + data.sample(at, PERIOD)
    return sums


def programs(data):
    for program in data.programs().values():
        yield (f"{program.id} {'/'.join(sorted(program.tags))} {program.pid} {len(program.loads)} "
               f"{len(program.unloads)} {','.join(program.functions())}",)


def lines(data, prog):
    """Each address of a program that begins a line"""
    symbols = {struct.unpack_from("=Q", data.bytes, at + 8)[0]: c_string(data.bytes[at + 24:at + size])
               for at, kind, size in data.records if kind == KSYMBOL}
    for at, _ in data.infos()[:-1]:
        info = at + BPIL_SIZE
        if struct.unpack_from("=I", data.bytes, info + INFO_ID_OFFSET)[0] != int(prog):
            continue
        arrays = info + struct.unpack_from("=I", data.bytes, at)[0]
        nr_starts, _, starts, _, btf = struct.unpack_from("=2I2QI", data.bytes, info + 104)
        nr, records, addresses, _, line_size, address_size = struct.unpack_from("=I2Q3I", data.bytes, info + 148)
        starts = struct.unpack_from(f"={nr_starts}Q", data.bytes, arrays + starts)
        strings = data.btf_strings(btf)
        for i in range(nr):
            (address,) = struct.unpack_from("=Q", data.bytes, arrays + addresses + i * address_size)
            _, name, text, number = struct.unpack_from("=4I", data.bytes, arrays + records + i * line_size)
            start = max(start for start in starts if start <= address)
            yield (symbols[start], address - start, c_string(strings[name:]), number >> 10,
                   c_string(strings[text:]).strip())


# The rows that each command prints, and the number of its arguments after FILE
COMMANDS = {
    "check": (check, 0),
    "check-records": (check_records, 0),
    "places": (lambda data: ((place, c_string(record.name)) for record, place in places(data)), 0),
    "records": (lambda data: ((c_string(record.name), record.nr, record.size, record.id)
                              for record in data.metadata()), 0),
    "entries": (lambda data, prog: (entry for record in data.metadata()
                                    if prog in (c_string(record.name), record.id)
                                    for entry in record.entries()), 1),
    "all-entries": (lambda data: ((c_string(record.name), *entry)
                                  for record in data.metadata() for entry in record.entries()), 0),
    "ksymbols": (lambda data: ((name,) for name in data.ksymbols()), 0),
    "programs": (programs, 0),
    "types": (lambda data: ((kind,) for _, kind, _ in data.records), 0),
    "strip": (strip, 1),
    "block": (lambda data: ((prog, name, nr_set, *entry) for prog, name, nr_set, entries in block_progs(data)
                            for entry in entries), 0),
    "without": (lambda data: ((prog, name) for prog, name, _, entries in block_progs(data)
                              if not entries), 0),
    "strip-block": (strip_block, 1),
    "sections": (sections, 0),
    "costs": (lambda data: ((*names, period) for names, period in costs(data).items()), 0),
    "lines": (lines, 1),
}


def main(args):
    command, nr_args = COMMANDS.get(args[0] if args else "", (None, 0))
    if not command or len(args) != 2 + nr_args:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        for row in command(PerfData(args[1]), *args[2:]):
            print(*row, sep="\t")
    except (Bad, struct.error) as error:
        print(f"{args[1]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
