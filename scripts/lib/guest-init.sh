#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Pid 1 of a guest. It runs the command of guests.sh in PBM_GUEST, and ends the guest. The file report
# there gets the output. The file status gets "started", and later the exit status of the command.
#
# The root is the host's, read-only. guests.sh has mounted a tmpfs at /tmp, and PBM_GUEST at /tmp/guest.

# An error ends this script, which is pid 1. Then the kernel panics, and this ends the guest without a status.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 PBM_KEEP="$PBM_GUEST"

mkdir /tmp/upper /tmp/work /tmp/root
mount -t overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work root /tmp/root
cd /tmp/root
mkdir -p dev proc sys tmp run mnt
mount -t devtmpfs dev dev
mount -t proc proc proc
mount -t sysfs sys sys
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=755 run run
# Mount shared directories after /tmp, because they may be below /tmp, and PBM_GUEST after the others.
n=0
while read -r path; do
	mkdir -p "/tmp/root$path"
	mount -t 9p -o ro,cache=loose,trans=virtio,version=9p2000.L,msize=512000 "share$n" "/tmp/root$path"
	n=$((n + 1))
done </tmp/guest/shares
mkdir -p "/tmp/root$PBM_GUEST"
# mount cannot write /etc/mtab.
mount -n --move /tmp/guest "/tmp/root$PBM_GUEST"
pivot_root . mnt
umount -l /mnt

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
bash ./command </dev/null >report 2>&1 || status=$?
echo "$status" >status
sync
# Reboot at once. QEMU runs with --no-reboot, so it ends.
echo b >/proc/sysrq-trigger
sleep infinity
