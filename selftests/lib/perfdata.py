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
import collections
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
IP, TIME, PERIOD = 0, 2, 8
PROG_INFO, BTF, BPIL_SIZE = 25, 26, 16
BLOCK_MAGIC, STRING_ALIGN = b"BPFMETA2", 64
INFO_ID_OFFSET, INFO_NAME_OFFSET, INFO_NAME_SIZE = 4, 64, 16
NOT_BPF = "N/A"


class Bad(Exception):
    """The problem with the file."""


# The code of a BPF function; the name is empty if it is other code.
Function = collections.namedtuple("Function", "addr end name is_unload")
# A BPF_EVENT with the functions of the program
Event = collections.namedtuple("Event", "kind id tag pid functions")


class PerfData:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:8] != b"PERFILE2":
            raise Bad(f"{path}: not a perf.data file")
        (header_size,) = self.get("Q", 8)
        self.is_pipe = header_size == 16
        self.attrs = []
        if self.is_pipe:
            self.begin, self.end = 16, len(self.bytes)
        else:
            attr_size, attrs, attrs_size, self.begin, size = self.get("5Q", 16)
            self.attrs = [attrs + i for i in range(0, attrs_size, attr_size)]
            self.end = self.begin + size
        self.records = list(self.walk())

    def get(self, fmt, at):
        return struct.unpack_from("=" + fmt, self.bytes, at)

    def walk(self):
        """The (offset, type, size) of each record."""
        at = self.begin
        while at < self.end:
            if at + 8 > self.end:
                raise Bad(f"offset {at:#x}: {self.end - at} bytes are not a record")
            kind, _, size = self.get("IHH", at)
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
        sample_type, _, flags = self.get("3Q", self.attrs[0] + 24)
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
        return self.get("Q", at + 8 + 8 * skipped)[0]

    def metadata(self):
        return [Metadata(self.bytes, at, size) for at, kind, size in self.records
                if kind == METADATA]

    def ksymbol(self, at, size):
        addr, length, ksym_type, flags = self.get("QIHH", at + 8)
        name = c_string(self.bytes[at + 24:at + size]) if ksym_type == KSYMBOL_BPF else ""
        return Function(addr, addr + length, name, bool(flags & KSYMBOL_UNREGISTER))

    def functions(self):
        """The BPF functions that were registered"""
        symbols = [self.ksymbol(at, size) for at, kind, size in self.records if kind == KSYMBOL]
        return [symbol for symbol in symbols if symbol.name and not symbol.is_unload]

    def ksymbols(self):
        return [function.name for function in self.functions()]

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
        pid, tid, time = self.get("IIQ", self.sample_id(at, kind, size))
        return time, (pid, tid)

    def history(self, *kinds):
        """
        The (offset, Function, Event or None) of each KSYMBOL and BPF_EVENT, and of records of other kinds,
        sorted by time. Synthesized events have no time and come first. The kernel writes the KSYMBOL records
        of a program's functions, then its BPF_EVENT. perf writes the same for programs that it finds.
        """
        functions = {}
        records = [(*self.origin(*record), record) for record in self.records
                   if record[1] in (KSYMBOL, BPF_EVENT, *kinds)]
        for _, who, (at, kind, size) in sorted(records, key=lambda record: record[0]):
            function = event = None
            if kind == KSYMBOL:
                function = self.ksymbol(at, size)
                if function.name:
                    functions.setdefault((who, function.is_unload), []).append(function)
            elif kind == BPF_EVENT:
                event, _, prog, tag = self.get("HHI8s", at + 8)
                event = Event(event, prog, tag.hex(), who[0], functions.pop((who, event == PROG_UNLOAD), []))
            yield at, function, event

    def programs(self):
        """The events of each program by its id"""
        programs = {}
        for _, _, event in self.history():
            if event:
                programs.setdefault(event.id, []).append(event)
        return programs

    def features(self):
        """{number: (place in the table of sections, offset, size)} of a file"""
        if self.is_pipe:
            return {}
        numbers = [64 * i + bit for i, word in enumerate(self.get("4Q", 72))
                   for bit in range(64) if word >> bit & 1]
        places = [self.end + 16 * i for i in range(len(numbers))]
        return {number: (at, *self.get("2Q", at)) for number, at in zip(numbers, places)}

    def infos(self):
        """(offset, size) of each entry of BPF_PROG_INFO, and of the block, which is after them."""
        _, at, size = self.features().get(PROG_INFO, (0, 0, 0))
        if not size:
            return [(0, 0)]
        end = at + size
        (count,) = self.get("I", at)
        at += 4
        found = []
        for _ in range(count):
            found.append((at, BPIL_SIZE + sum(self.get("2I", at))))
            at += found[-1][1]
            if at > end:
                raise Bad(f"offset {at:#x}: a bpf_prog_info passes the end of its section")
        return found + [(at, end - at)]

    def btf_strings(self, wanted):
        _, at, _ = self.features()[BTF]
        (count,) = self.get("I", at)
        at += 4
        for _ in range(count):
            btf_id, size, _, header, _, _, begin, _ = self.get("8I", at)
            if btf_id == wanted:
                return self.bytes[at + 8 + header + begin:at + 8 + size]
            at += 8 + size
        raise Bad(f"there is no BTF {wanted}")

    def names(self):
        """Names by id: of the main function, else of bpf_prog_info"""
        names = {}
        for at, _ in self.infos()[:-1]:
            (prog,) = self.get("I", at + BPIL_SIZE + INFO_ID_OFFSET)
            at += BPIL_SIZE + INFO_NAME_OFFSET
            names[prog] = c_string(self.bytes[at:at + INFO_NAME_SIZE])
        main = ((prog, main_name(functions_of(events))) for prog, events in self.programs().items())
        names.update((prog, name) for prog, name in main if name)
        return names


def c_string(data):
    return data.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def main_name(names):
    """NAME of the first bpf_prog_TAG_NAME, without [KEY=VALUE] of perf inject; not a trampoline's name"""
    main = next((name for name in names if name.startswith("bpf_prog_")), "")
    return "".join(main.split("_", 3)[3:]).split("[")[0]


def functions_of(events):
    """The names of a program's functions when it was first loaded"""
    functions = next((event.functions for event in events if event.kind == PROG_LOAD), [])
    return [function.name for function in functions]


class Metadata:
    def __init__(self, data, at, size):
        self.at, self.size = at, size
        if size < FIXED_SIZE:
            raise Bad(f"offset {at:#x}: a metadata record of {size} bytes")
        self.name = data[at + 8:at + 8 + NAME_SIZE]
        (self.nr,) = struct.unpack_from("=Q", data, at + 8 + NAME_SIZE)
        end = FIXED_SIZE + self.nr * ENTRY_SIZE
        if end > size:
            raise Bad(f"offset {at:#x}: {self.nr} entries in {size} bytes")
        self.pairs = [(data[key:key + KEY_SIZE], data[key + KEY_SIZE:key + ENTRY_SIZE])
                      for key in range(at + FIXED_SIZE, at + end, ENTRY_SIZE)]
        self.tail = data[at + end:at + size]

        # The id of the program, or "" in records of other perfs, which name only a function
        key, value = map(c_string, self.pairs[0]) if self.pairs else ("", "")
        self.id = value if key == "(id)" else ""

    def entries(self):
        return [(c_string(key), c_string(value)) for key, value in self.pairs[1 if self.id else 0:]]


def check_field(what, field):
    """Returns the text of a field, which is padded with zeros"""
    text, nul, rest = field.partition(b"\0")
    if not nul:
        raise Bad(f"{what} has no NUL")
    if rest.strip(b"\0"):
        raise Bad(f"{what} has bytes after its NUL: {field!r}")
    try:
        return text.decode("utf-8")
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
    for i, field in enumerate((record.name, *(field for pair in record.pairs for field in pair))):
        if not check_field(f"{where} field {i}", field):
            raise Bad(f"{where} field {i} is empty")


def check_records(data):
    records = data.metadata()
    if not records:
        raise Bad("no metadata record in the file")
    for record in records:
        check_record(record, data.id_hdr_size())
    return ((f"{len(records)} records checked",),)


def places(data):
    """The place of each metadata record among the samples, and its program"""
    samples = [at for at, kind, _ in data.records if kind == SAMPLE]
    if not samples:
        raise Bad("no sample in the file, so nothing is known about the order")
    for record in data.metadata():
        place = "begin" if record.at < samples[0] else "end" if record.at > samples[-1] else "between"
        yield place, c_string(record.name)


def check(data):
    for place, name in places(data):
        if place == "between":
            raise Bad(f"a record of {name} is between two samples")
    return check_records(data)


def write(path, *parts):
    with open(path, "wb") as file:
        file.write(b"".join(parts))
    return ()


def strip(data, path):
    """Copy all but the metadata records; the features after the data move up."""
    if data.is_pipe:
        raise Bad("strip cannot read a pipe")
    kept = b"".join(data.bytes[at:at + size] for at, kind, size in data.records
                    if kind != METADATA)
    copy = bytearray(data.bytes)
    struct.pack_into("=Q", copy, 48, len(kept))
    for at, offset, _ in data.features().values():
        struct.pack_into("=Q", copy, at, offset - (data.end - data.begin - len(kept)))
    return write(path, copy[:data.begin], kept, copy[data.end:])


def strip_block(data, path):
    """Copy a file without its block: the section of BPF_PROG_INFO ends where its entries end."""
    copy = bytearray(data.bytes)
    (_, size) = data.infos()[-1]
    if size:
        at, _, section = data.features()[PROG_INFO]
        struct.pack_into("=Q", copy, at + 8, section - size)
    return write(path, copy)


def read_texts(block):
    """The text of each program in a block by the program's id"""
    texts, at = {}, len(BLOCK_MAGIC)

    def take(size):
        nonlocal at
        at += size
        if at > len(block):
            raise Bad(f"offset {at - size:#x} of the block: {size} bytes pass its end")
        return block[at - size:at]

    def number():
        return int.from_bytes(take(4), sys.byteorder)

    if block[:at] != BLOCK_MAGIC or len(block) == at:
        raise Bad(f"the block begins with {block[:at + 1]!r}")
    while at < len(block):
        where = f"offset {at:#x} of the block: a text"
        size = number()
        text = check_field(where, take(size))
        if size != (len(text.encode()) // STRING_ALIGN + 1) * STRING_ALIGN:
            raise Bad(f"{where} is not padded to a multiple of {STRING_ALIGN}, but to {size}")
        *lines, rest = text.split("\n")
        if rest or any(line.find("=") < 1 for line in lines):
            raise Bad(f"{where} is not made of lines KEY=VALUE: {text!r}")
        if text in texts.values() or len({line.split("=")[0] for line in lines}) != len(lines):
            raise Bad(f"{where} is there twice, or has a key twice: {text!r}")
        progs = [number() for _ in range(number())]
        if not progs or len(set(progs)) != len(progs) or texts.keys() & progs:
            raise Bad(f"{where} has no program, or one that has a text: {progs}")
        texts.update((prog, text) for prog in progs)
    return texts


def block_progs(data):
    """ID, name, number of the set and the set of each program in the block"""
    at, size = data.infos()[-1]
    if not size:
        return
    texts, names = read_texts(data.bytes[at:at + size]), data.names()
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts.values()))}
    for prog, text in sorted(texts.items()):
        entries = [tuple(line.split("=", 1)) for line in text.split("\n")[:-1]]
        yield prog, names.get(prog, ""), numbers[text], entries


def sections(data):
    _, block = data.infos()[-1]
    yield "data", data.end - data.begin
    yield "block", block
    for number, (_, _, size) in data.features().items():
        yield number, size - block if number == PROG_INFO else size


def costs(data):
    """(id, name, function, period). Samples belong to the first evsel."""
    types = [data.get("Q", attr + 24)[0] for attr in data.attrs]
    if any((types[0] ^ other) >> bit & 1 for other in types for bit in ID_HDR_BITS):
        raise Bad("the events of the file have different sample ids")
    loaded, sums = [], collections.Counter()    # (Function, id, name of the program)
    for at, function, event in data.history(SAMPLE):
        if function:
            # Older code at the same place was freed, even if there is no event about that.
            loaded = [entry for entry in loaded
                      if entry[0].end <= function.addr or function.end <= entry[0].addr]
        elif event:
            main = main_name(function.name for function in event.functions)
            loaded += [(function, event.id, main) for function in event.functions
                       if event.kind == PROG_LOAD and function.name.startswith("bpf_prog_")]
        else:
            ip = data.sample(at, IP)
            where = next(((prog, main, function.name) for function, prog, main in loaded
                          if function.addr <= ip < function.end), (NOT_BPF, NOT_BPF, NOT_BPF))
            sums[where] += data.sample(at, PERIOD)
    return ((*where, period) for where, period in sums.items())


def programs(data):
    for prog, events in data.programs().items():
        loaders = [event.pid for event in events if event.kind == PROG_LOAD]
        unloads = sum(event.kind == PROG_UNLOAD for event in events)
        tags = "/".join(sorted({event.tag for event in events}))
        yield (f"{prog} {tags} {loaders[-1] if loaders else None} {len(loaders)} {unloads} "
               f"{','.join(functions_of(events))}",)


def lines(data, prog):
    """Each address of a program that begins a line"""
    symbols = {function.addr: function.name for function in data.functions()}
    for at, _ in data.infos()[:-1]:
        info = at + BPIL_SIZE
        if data.get("I", info + INFO_ID_OFFSET)[0] != int(prog):
            continue
        arrays = info + data.get("I", at)[0]
        nr_starts, _, starts, _, btf = data.get("2I2QI", info + 104)
        nr, records, addresses, _, line_size, address_size = data.get("I2Q3I", info + 148)
        starts = data.get(f"{nr_starts}Q", arrays + starts)
        strings = data.btf_strings(btf)
        for i in range(nr):
            (address,) = data.get("Q", arrays + addresses + i * address_size)
            _, name, text, number = data.get("4I", arrays + records + i * line_size)
            start = max(start for start in starts if start <= address)
            yield (symbols[start], address - start, c_string(strings[name:]), number >> 10,
                   c_string(strings[text:]).strip())


# The rows that each command prints
COMMANDS = {
    "check": check,
    "check-records": check_records,
    "places": places,
    "records": lambda data: ((c_string(record.name), record.nr, record.size, record.id)
                             for record in data.metadata()),
    "entries": lambda data, prog: (entry for record in data.metadata()
                                   if prog in (c_string(record.name), record.id)
                                   for entry in record.entries()),
    "all-entries": lambda data: ((c_string(record.name), *entry)
                                 for record in data.metadata() for entry in record.entries()),
    "ksymbols": lambda data: ((name,) for name in data.ksymbols()),
    "programs": programs,
    "types": lambda data: ((kind,) for _, kind, _ in data.records),
    "strip": strip,
    "block": lambda data: ((prog, name, nr_set, *entry) for prog, name, nr_set, entries in block_progs(data)
                           for entry in entries),
    "without": lambda data: ((prog, name) for prog, name, _, entries in block_progs(data) if not entries),
    "strip-block": strip_block,
    "sections": sections,
    "costs": costs,
    "lines": lines,
}


def main(args):
    if len(args) < 2 or args[0] not in COMMANDS:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        for row in COMMANDS[args[0]](PerfData(args[1]), *args[2:]):
            print(*row, sep="\t")
    except (Bad, struct.error) as error:
        print(f"{args[1]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
