#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Pid 1 of a guest. guests.sh puts it into the initramfs, where busybox runs it, with /shares, which has a
# path in each line. It mounts these directories of the host below the guest's root. Then it runs again,
# with the programs of the root: it runs the command of guests.sh in PBM_GUEST, and ends the guest. The file
# report there gets the output. The file status gets "started", and later the exit status of the command.

# An error ends this script, which is pid 1. Then the kernel panics, and this ends the guest without a status.
set -eu

if [ -e /shares ]; then
	PATH=/bin
	P9=trans=virtio,version=9p2000.L,msize=512000
	mkdir -p /dev /lower /rw /root
	mount -t devtmpfs dev /dev
	mount -t 9p -o "ro,cache=loose,$P9" share0 /lower
	mount -t tmpfs rw /rw
	mkdir /rw/upper /rw/work
	mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work root /root

	cd /root
	mkdir -p dev proc sys tmp run
	mount -t devtmpfs dev dev
	mount -t proc proc proc
	mount -t sysfs sys sys
	mount -t tmpfs -o mode=1777 tmp tmp
	mount -t tmpfs -o mode=755 run run

	# Mount shared directories after /tmp, because they may be below /tmp. Only PBM_GUEST is
	# written. With cache=none, its files are on the host at once.
	n=1
	while read -r path; do
		mkdir -p "/root$path"
		mode=ro,cache=loose
		[ "$path" != "$PBM_GUEST" ] || mode=rw,cache=none
		mount -t 9p -o "$mode,$P9" "share$n" "/root$path"
		n=$((n + 1))
	done </shares
	cp /init run/init
	exec switch_root /root /run/init
fi

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 PBM_KEEP="$PBM_GUEST"

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
