#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Run BPF programs in this process, which perf records. Each line of the input is "ID TIMES": run the program so
many times, as bpftool prog run does. Print "ready" at the start and after each run. "quit" ends.
"""
import ctypes
import os
import platform
import struct
import sys

BPF_PROG_TEST_RUN = 10
BPF_PROG_GET_FD_BY_ID = 13
BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    result = LIBC.syscall(BPF, command, ctypes.create_string_buffer(attr, 128), 128)
    if result < 0:
        sys.exit(f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return result


def run(program, times):
    packet = ctypes.create_string_buffer(64)
    fd = bpf(BPF_PROG_GET_FD_BY_ID, struct.pack("=III", program, 0, 0))
    bpf(BPF_PROG_TEST_RUN, struct.pack("=IIIIQQII", fd, 0, 64, 0, ctypes.addressof(packet), 0, times, 0))
    os.close(fd)


print("ready", flush=True)
for line in sys.stdin:
    if line == "quit\n":
        break
    run(*map(int, line.split()))
    print("ready", flush=True)
