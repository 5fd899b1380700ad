#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Load programs with bpf(2) alone, as loaders without libbpf and without BTF do, and let other
executables hold them:

  inherit.py [-n PROGRAMS] [-p PROCESSES] [-l CGROUP] COMMAND...

With -l, links attach the programs to the cgroup, and the processes inherit the links. Each
process runs the command. It inherits all programs, and standard input, so a "cat" ends with the
input. inherit.py prints a line "ID NAME" for each program, and "ready" when all processes have
executed the command. Then it holds no program.
"""
import argparse
import ctypes
import os
import platform
import resource
import struct
import subprocess
import sys

BPF_PROG_LOAD, BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE = 5, 15, 28
BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_CGROUP_SKB = 1, 8
BPF_CGROUP_INET_EGRESS = 1
BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LIBC = ctypes.CDLL(None, use_errno=True)
NAME = b"inherited"
LICENSE = ctypes.create_string_buffer(b"GPL")
# r0 = 1; exit. All packets pass.
INSNS = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xb7, 0, 0, 1, 0x95, 0, 0, 0))


def bpf(command, attr):
    result = LIBC.syscall(BPF, command, ctypes.create_string_buffer(attr, 128), 128)
    if result < 0:
        sys.exit(f"inherit: bpf({command}): {os.strerror(ctypes.get_errno())}")
    return result


def load(cgroup):
    """A descriptor of a new program, or of the link that attaches it"""
    kind = BPF_PROG_TYPE_SOCKET_FILTER if cgroup is None else BPF_PROG_TYPE_CGROUP_SKB
    prog = bpf(BPF_PROG_LOAD, struct.pack("=IIQQIIQII16s", kind, 2, ctypes.addressof(INSNS), ctypes.addressof(LICENSE),
                                          0, 0, 0, 0, 0, NAME))
    info = ctypes.create_string_buffer(8)
    bpf(BPF_OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", prog, len(info), ctypes.addressof(info)))
    print(struct.unpack("=II", info.raw)[1], NAME.decode())
    if cgroup is None:
        return prog
    link = bpf(BPF_LINK_CREATE, struct.pack("=III", prog, cgroup, BPF_CGROUP_INET_EGRESS))
    os.close(prog)
    return link


parser = argparse.ArgumentParser()
parser.add_argument("-n", type=int, default=1)
parser.add_argument("-p", type=int, default=1)
parser.add_argument("-l")
parser.add_argument("command", nargs=argparse.REMAINDER)
options = parser.parse_args()
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
cgroup_fd = options.l and os.open(os.fsencode(options.l), os.O_RDONLY | os.O_DIRECTORY)
fds = [load(cgroup_fd) for _ in range(options.n)]
sys.stdout.flush()
# Popen() returns when the process has executed the command.
processes = [subprocess.Popen(options.command, pass_fds=fds) for _ in range(options.p)]
for fd in fds:
    os.close(fd)
print("ready", flush=True)
for process in processes:
    process.wait()
