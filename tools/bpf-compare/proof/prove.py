#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Count how often "bpf-compare --fail-on 0%" reports a difference: prove.py [RECORDINGS] [SECONDS...]

RECORDINGS (default: the file beside this one) is the output of record.sh. A trial compares the first
SECONDS of two different recordings. Before is always version 1.0. After is version 1.0 again, 1.1 (10 %
more rounds), or 1.3 (30 % more rounds). Trial k of 100 compares the recordings k and k + 1 + k // n, modulo
their number n.
"""

import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COMPARE = HERE.parent / 'bpf-compare'
NR_TRIALS = 100
SLOT = 100_000_000          # ns

# As perf data convert prints it
SAMPLE = '\n\t\t{{ "timestamp": {}, "callchain": [ {{ "ip": "0x1"{} }} ] \n\t\t}}'
JSON = '{{\n\t"samples": [{}\n\t],\n\t"bpf-metadata": [\n\t\t{{ "id": 1, "name": "work", "metadata": {{ "version": "{}" }}\n\t\t}}\n\t]\n}}\n'


def write_json(path, version, counts, seconds):
    """A recording of some seconds, with one program. The samples of a slot have the same time."""
    samples = [SAMPLE.format(1, '')]
    for slot, count in enumerate(counts[:seconds * 10]):
        samples += [SAMPLE.format(slot * SLOT + SLOT // 2, ', "bpf-prog-id": 1')] * count
    samples.append(SAMPLE.format(seconds * 10 * SLOT + 1, ''))
    path.write_text(JSON.format(','.join(samples), version))


def compare(before, after):
    done = subprocess.run([COMPARE, '--fail-on', '0%', before, after], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr.decode())
    return done.returncode


def prove(recordings, seconds, directory, pool):
    """How many of the trials report a difference, by version"""
    paths = {}
    for version in recordings:
        for number, counts in recordings[version].items():
            paths[version, number] = directory / f'{version}-{number}'
            write_json(paths[version, number], version, counts, seconds)
    nr = len(recordings['1.0'])
    pairs = [(trial % nr, (trial + 1 + trial // nr) % nr) for trial in range(NR_TRIALS)]
    return [sum(pool.map(lambda pair, v=version: compare(paths['1.0', pair[0]], paths[v, pair[1]]), pairs))
            for version in ('1.0', '1.1', '1.3')]


def main():
    arguments = sys.argv[1:]
    file = pathlib.Path(arguments.pop(0)) if arguments and not arguments[0].isdigit() else HERE / 'recordings'
    states = collections.defaultdict(lambda: collections.defaultdict(dict))
    for line in file.read_text().splitlines():
        state, number, version, *counts = line.split()
        states[state][version][int(number)] = [int(count) for count in counts]
    print('reported of 100    seconds  same  +10 %  +30 %')
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for state, recordings in states.items():
            for seconds in map(int, arguments or (10, 20, 30, 60)):
                with tempfile.TemporaryDirectory() as directory:
                    same, ten, thirty = prove(recordings, seconds, pathlib.Path(directory), pool)
                print(f'{state:18} {seconds:7} {same:5} {ten:6} {thirty:6}', flush=True)


if __name__ == '__main__':
    main()
