#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Pid 1 of a guest, after guest-initramfs.sh. It mounts the file systems that tests need, runs the
# command of guests.sh in the guest's directory, and ends the guest. The file report there gets the
# output. The file status gets "started", and later the exit status of the command. An error in this
# script ends pid 1, and so the guest, without a status.

set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 PBM_KEEP=$PBM_GUEST

mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
ln -sfn /proc/self/fd /dev/fd
ln -sfn /proc/self/fd/0 /dev/stdin
ln -sfn /proc/self/fd/1 /dev/stdout
ln -sfn /proc/self/fd/2 /dev/stderr
# Without this, the kernel lowers the sample rate, because an emulated interrupt is slow.
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent

cd -- "$PBM_GUEST"
echo started >status
status=0
bash ../command </dev/null >report 2>&1 || status=$?
echo "$status" >status
sync
# Reboot at once. QEMU runs with --no-reboot, so it ends.
echo b >/proc/sysrq-trigger
sleep infinity
