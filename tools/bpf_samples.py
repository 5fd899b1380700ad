# SPDX-License-Identifier: GPL-2.0
"""
Read the samples of a recording, with BPF programs and their metadata. bpf-pprof and bpf-compare use this.

Two perfs read a perf.data file at the same time:

- "perf data convert --to-json" prints the call chains with the ids of BPF programs, and then
  the metadata. Strings in JSON are escaped, so names can contain anything.
- "perf script" prints event, period and program of each sample. The JSON has no event and no period,
  and its first frame is not the sampled function if only callers in user space were recorded.

Both print the samples in the same order, because both sort them by time.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

CHUNK = 1 << 20
MAX_LINE = 1 << 16
MAX_DIGITS = 400            # Python refuses to convert numbers that are much longer.
KERNEL = 1 << 63            # Addresses from here on belong to the kernel.
UNKNOWN = '(unknown)'

# Period, event, program and address. Only the event can have blanks.
SCRIPT_LINE = re.compile(rb'\s*(\d+) +(.*): +(?:N/A|(\d+|\(unknown\)):([^ ]*)) +[0-9a-f]+\n', re.DOTALL)
FUNCTION = re.compile(r'bpf_prog_[0-9a-f]+_?')
# Lines of a sample in JSON, in this order. No string has a line end or a tab.
HOSTNAME = re.compile(rb'\n\t\t"hostname": (".*"),\n')
TIMESTAMP = re.compile(rb'\n\t\t\t"timestamp": (-?\d{1,20}),')      # -1 if it was not recorded
CALLCHAIN, CALLCHAIN_END, FRAME_END = b'\n\t\t\t"callchain": [', b'\n\t\t\t]', b'\n\t\t\t\t}'


class Error(Exception):
    """Why there is no result, and what to do."""


def warn(message):
    print(f'{os.path.basename(sys.argv[0])}: {message}', file=sys.stderr)


def escape(char):
    code = ord(char)
    if 0xdc80 <= code <= 0xdcff:            # a byte that is not UTF-8
        return f'\\x{code - 0xdc00:02x}'
    return f'\\x{code:02x}' if code < 0x80 else f'\\u{code:04x}' if code < 0x10000 else f'\\U{code:08x}'


def plain(text):
    """Text that does not move the cursor of a terminal; a backslash stays what it is."""
    return text if text.isprintable() else ''.join(char if char.isprintable() else escape(char) for char in text)


class Perf(subprocess.Popen):
    """A perf that reads the recording."""

    def __init__(self, *command):
        self.name = plain(' '.join(command[:2]))
        self.said = tempfile.TemporaryFile()
        try:
            super().__init__(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.said,
                             bufsize=CHUNK, pipesize=CHUNK, env=dict(os.environ, LC_ALL='C'))
        except OSError as error:
            raise Error(f'{plain(command[0])}: {error.strerror}; install perf, or name another one with --perf') from None

    def check(self, problem=None):
        """Wait for its end, and return its messages. Fail if it has failed, or if there is a problem with its output."""
        while self.stdout.read1():
            pass
        self.wait()
        self.said.seek(0)
        said = [plain(line) for line in self.said.read(CHUNK).decode('utf-8', 'replace').splitlines()]
        said = [line for line in said if line and not line.startswith(('#', '[ perf '))]
        if any('Invalid field' in line for line in said):
            raise Error(f"{self.name} can't print BPF programs; name a perf with the patches, for example --perf perf_bpfmeta")
        problem = f'status {self.returncode}' if self.returncode else problem
        if problem:
            raise Error('\n  '.join([f'{self.name}: {problem}; see if perf report can read the file', *said[:4]]))
        return said

    def script_samples(self):
        """Yield event, period, id and name of the program of each sample; outside of programs the id is None."""
        text = b''
        for line in self.stdout:             # An event or a program can have a newline in its name.
            text += line
            match = SCRIPT_LINE.fullmatch(text) if len(text) < MAX_LINE else self.check('its output is not understood')
            if match:
                event, number, name = (part and part.decode('utf-8', 'replace') for part in match.group(2, 3, 4))
                yield event, int(match[1]), number, name
                text = b''
        for message in self.check():
            warn(message)


def json_objects(stream, check):
    """Yield the name of an array, and the text of an object in it, or None and the text before an array.

    perf indents objects by two tabs.

    check(problem) must raise an exception. check(None) is called at the end of good JSON.
    """
    name, text = b'', b''
    for chunk in iter(lambda: stream.read1(CHUNK), b''):
        *items, text = (text + chunk).split(b'\n\t\t}')
        for item in items:
            head, _, body = item.partition(b'\n\t\t{')
            if b'\n\t"' in head:
                name = head.rpartition(b'\n\t"')[2].split(b'"')[0]
                yield None, head
            yield name, body
    check(None if text.endswith(b'\n}\n') else 'its JSON is cut off')


class Numbers(dict):
    """{JSON of a frame: its number}. Most frames come many times, so each is parsed once."""

    def __init__(self, add):
        super().__init__()
        self.add = add

    def __missing__(self, text):
        self[text] = self[text[1:]] if text.startswith(b',') else self.add(text + b'}')
        return self[text]


class Recording:
    """The samples of a perf.data file, or of the JSON of perf data convert.

    A program is its id as text, or "(unknown):" and its name. After the last sample, metadata has the
    programs whose metadata is not unknown: {program: {key: value}}.
    """

    def __init__(self, path, perf, stack):
        self.path, self.perf, self.stack = path, perf, stack
        self.names = {}                     # {program: name}
        self.metadata = {}
        self.frames = []                    # JSON of each frame, once
        self.host = None
        self.decoder = json.JSONDecoder(strict=False, parse_int=lambda digits: int(digits) if len(digits) < MAX_DIGITS else digits)

    def __iter__(self):
        """Yield event, period, program or None, time in ns, and numbers of the frames of each sample.

        JSON files have no event and no period.
        """
        json_file = self.json_file()
        if json_file:
            check, objects, lines = self.check_json, json_objects(json_file, self.check_json), None
        else:
            json_perf, script_perf = (self.stack.enter_context(Perf(self.perf, *command, '-i', self.path)) for command in (
                ['data', 'convert', '--force', '--to-json', '/dev/stdout'], ['script', '-f', '-G', '-F', 'period,event,bpf_prog,ip']))
            check, objects, lines = json_perf.check, json_objects(json_perf.stdout, json_perf.check), script_perf.script_samples()
        numbers = Numbers(lambda text: self.frames.append(self.decode(text, check)) or len(self.frames) - 1)
        for array, text in objects:
            if array is None:
                host = HOSTNAME.search(text)
                self.host = self.decode(host[1], check) if host else self.host
                continue
            if array != b'samples':
                self.add_metadata(self.decode(b'{%b}' % text, check))
                continue
            head, _, tail = text.partition(CALLCHAIN)
            frames, end, _ = tail.partition(CALLCHAIN_END)
            when = TIMESTAMP.match(head)
            if not when or not end:
                check('a sample has no time or no call chain')
            when, chain = int(when[1]), tuple([numbers[frame] for frame in frames.split(FRAME_END)[:-1]])
            if lines is None:
                yield None, None, self.program_at(*chain[:1]), when, chain
            else:
                event, period, number, name = next(lines, None) or script_perf.check('it printed fewer samples than perf data convert')
                yield event, period, number and self.program(number, name), when, chain
        if lines and next(lines, None):
            script_perf.check('it printed more samples than perf data convert')

    def json_file(self):
        """The file of JSON text, or None."""
        if not os.path.isfile(self.path):
            return None
        with open(self.path, 'rb') as file:
            start = file.read(2)
        if start not in (b'{\n', b'\x1f\x8b'):
            return None
        opener = gzip.open if start == b'\x1f\x8b' else open
        return self.stack.enter_context(opener(self.path, 'rb'))

    def check_json(self, problem):
        if problem:
            raise Error(f'{plain(self.path)}: {problem}; convert the recording again with perf data convert --to-json')

    def decode(self, text, check):
        try:
            return self.decoder.decode(text.decode('utf-8', 'replace'))
        except (ValueError, RecursionError):
            return check('its JSON is wrong')

    def add_metadata(self, item):
        program = str(item['id'])
        self.metadata[program] = item['metadata']
        self.names[program] = item['name'] or self.names.get(program, '')

    def program(self, number, name):
        program = f'{number}:{name}' if number == UNKNOWN else number
        self.names.setdefault(program, name)
        return program

    def program_at(self, number=None):
        """The program of a frame, or None. Functions of programs whose id is not known begin with bpf_prog_."""
        if number is None:
            return None
        frame = self.frames[number]
        program, dso = frame.get('bpf-prog-id'), frame.get('dso', '')
        function = FUNCTION.match(dso) if int(frame['ip'], 16) >= KERNEL else None
        if program is None and not function:
            return None
        return self.program(UNKNOWN if program is None else str(program), dso[function.end():] if function else frame.get('symbol'))
