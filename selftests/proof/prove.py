#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Count how often bpf-compare says that a build costs more.

The file "recordings" beside this one has the numbers of samples of "perf record -a -e cpu-clock -F 999".
In each recording, three builds of work.bpf.c ran ten times a second by turns, each time with "bpftool prog
run ... repeat 1500": version 1.0 with ROUNDS=1000, 1.1 with 1100 and 1.3 with 1300. They were loaded anew
for each recording. On the busy machine, two loops of gcc ran on the same two CPUs. A line has the state of
the machine, the seconds of a recording, its number of slices, the version, and the samples in each slice of
the first recording, of the second one, and so on.

Before is always version 1.0. After is 1.0 again, 1.1 or 1.3. There are 100 trials for each.

The number of recordings is that of each side. If it is 1, trial k compares the slices of the 60-second
recordings k and k + 1 + k // n, modulo their number n. Otherwise the sides take turns in recordings of 5
seconds, from k // 2 on.
"""

import importlib.machinery
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[1] / 'tools'
VERSIONS = ('1.0', '1.1', '1.3')
NR_TRIALS = 100
ROWS = (('idle', 60, 1), ('idle', 5, 3), ('idle', 5, 6), ('idle', 5, 12),
        ('busy', 5, 3), ('busy', 5, 6), ('busy', 5, 12))

sys.path.insert(0, str(TOOLS))
sys.dont_write_bytecode = True
compare = importlib.machinery.SourceFileLoader('compare', str(TOOLS / 'bpf-compare')).load_module()


def sides(trial, number, before, after):
    """The numbers of samples before and after. before, after: [[samples of a slice]] of each recording"""
    if number == 1:
        return before[trial % len(before)], after[(trial + 1 + trial // len(before)) % len(after)]
    first = trial // 2
    turns = [slice(first + side, first + 2 * number, 2) for side in (0, 1)]
    turns = turns if trial % 2 else turns[::-1]
    return [[sum(recording) for recording in of[turn]] for of, turn in zip((before, after), turns)]


def main():
    kept = {}
    for line in (HERE / 'recordings').read_text().splitlines():
        state, seconds, nr_slices, version, *counts = line.split()
        counts = iter(map(int, counts))
        kept[state, int(seconds), version] = list(zip(*[counts] * int(nr_slices)))
    print('of 100  recordings  seconds each  same  +10 %  +30 %')
    for state, seconds, number in ROWS:
        before, *afters = (kept[state, seconds, version] for version in ('1.0', *VERSIONS))
        found = [sum(compare.interval(*sides(trial, number, before, after), 0.95)[1] > 1 for trial in range(NR_TRIALS))
                 for after in afters]
        print(f'{state:7} {number:10} {seconds:13} {found[0]:5} {found[1]:6} {found[2]:6}')


if __name__ == '__main__':
    main()
