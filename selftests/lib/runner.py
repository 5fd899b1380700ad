#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Run BPF programs in this process, which perf records. For each line of the input, print "ran" when it is
done:

  run ID TIMES    run the program so many times, as bpftool prog run does
  send ID TIMES   send so many packets to an interface that runs the program
  quit            end
  COMMAND         run this shell command
"""
import ctypes
import os
import platform
import socket
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


def send(_program, times):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        for _ in range(times):
            packets.sendto(b"", ("127.0.0.1", 9))


for line in sys.stdin:
    words = line.split()
    if words[0] == "quit":
        break
    if words[0] in ("run", "send"):
        {"run": run, "send": send}[words[0]](int(words[1]), int(words[2]))
    else:
        os.system(line)
    print("ran", flush=True)
