#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Count how often bpf-compare says that a build costs more: prove.py [NUMBER...]

The file "recordings" beside this one is the output of record.sh. Before is always version 1.0. After is 1.0
again, 1.1 (10 % more rounds), or 1.3 (30 % more). There are 100 trials for each.

NUMBER (default: 1 3 6 12) is how many recordings each side has. If it is 1, trial k compares the
60-second recordings k and k + 1 + k // n, modulo their number n. Otherwise the sides take turns in
2 * NUMBER recordings of 5 seconds, from k // 2 on, and the exit status of "--fail-on 0%" counts.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COMPARE = HERE.parents[1] / 'tools/bpf-compare'
VERSIONS = ('1.0', '1.1', '1.3')
NR_TRIALS = 100
SLOT = 500_000_000          # ns

# As perf data convert prints it
SAMPLE = '\n\t\t{{\n\t\t\t"timestamp": {},\n\t\t\t"callchain": [\n\t\t\t\t{{ "ip": "0x1"{}\n\t\t\t\t}}\n\t\t\t]\n\t\t}}'
JSON = '{{\n\t"samples": [{}\n\t],\n\t"bpf-metadata": [\n\t\t{{ "id": 1, "name": "work", "metadata": {{ "version": "{}" }}\n\t\t}}\n\t]\n}}\n'


def write_json(path, version, counts):
    """A recording with one program. The samples of a slot have the same time."""
    samples = [SAMPLE.format(1, '')]
    for slot, count in enumerate(counts):
        samples += [SAMPLE.format(slot * SLOT + SLOT // 2, ', "bpf-prog-id": 1')] * count
    samples.append(SAMPLE.format(len(counts) * SLOT + 1, ''))
    path.write_text(JSON.format(','.join(samples), version))


def run(statuses, *options):
    done = subprocess.run([COMPARE, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in statuses:
        sys.exit(done.stderr.decode())
    return done


def costs_more(before, after):
    if len(before) > 1:
        return run((0, 1), '--fail-on', '0%', '--before', *before, '--after', *after).returncode
    return json.loads(run((0,), '--json', *before, *after).stdout)['rows'][0]['low'] > 0


def sides(trial, number, nr):
    """The recordings before, and those after"""
    if number == 1:
        return [trial % nr], [(trial + 1 + trial // nr) % nr]
    first = trial // 2
    turns = [range(first + side, first + 2 * number, 2) for side in (0, 1)]
    return turns if trial % 2 else turns[::-1]


def prove(recordings, number, pool):
    """The number of trials that find a difference, for each version"""
    with tempfile.TemporaryDirectory() as directory:
        paths = {key: pathlib.Path(directory) / f'{key[0]}-{key[1]}' for key in recordings}
        for key, path in paths.items():
            write_json(path, key[0], recordings[key])
        trials = [sides(trial, number, len(recordings) // len(VERSIONS)) for trial in range(NR_TRIALS)]
        return [sum(pool.map(lambda trial, v=version: costs_more([paths['1.0', i] for i in trial[0]], [paths[v, i] for i in trial[1]]),
                             trials)) for version in VERSIONS]


def main():
    kept = collections.defaultdict(dict)
    for line in (HERE / 'recordings').read_text().splitlines():
        state, seconds, number, version, *counts = line.split()
        kept[state, int(seconds)][version, int(number)] = [int(count) for count in counts]
    print('of 100  recordings  seconds each  same  +10 %  +30 %')
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for state in sorted({state for state, _ in kept}, reverse=True):
            for number in map(int, sys.argv[1:] or (1, 3, 6, 12)):
                seconds = 60 if number == 1 else 5
                if (state, seconds) in kept:
                    print(f'{state:7} {number:10} {seconds:13} {"{:5} {:6} {:6}".format(*prove(kept[state, seconds], number, pool))}', flush=True)


if __name__ == '__main__':
    main()
