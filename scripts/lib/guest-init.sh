#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Pid 1 of a guest, after guest-initramfs.sh. It mounts the file systems that tests need, runs the
# command of guests.sh, which is in /run/pbm-command, and ends the guest. The output of the command
# goes to the port "report". A line "# status FILE" of the command names a file. This script writes
# "started" to this file, and later the exit status of the command. An error in this script ends pid
# 1, and so the guest, without a status.

set -euo pipefail

mount_all()
{
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
}

# Without this, the kernel lowers the sample rate, because an emulated interrupt is slow.
keep_sample_rate()
{
	echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent
}

# Find the port by its name in /sys, because without udev the name is not in /dev.
open_report()
{
	local name

	for name in /sys/class/virtio-ports/*/name; do
		if [[ $(< "$name") = report ]]; then
			name=${name%/name}
			exec > "/dev/${name##*/}" 2>&1
			return 0
		fi
	done
	echo "guest-init.sh: no virtio port named report"
	return 1
}

run_command()
{
	local status=0

	echo started > "$PBM_STATUS"
	bash -c '. /run/pbm-command' < /dev/null || status=$?
	echo "$status" > "$PBM_STATUS"
}

# Reboot at once. QEMU runs with --no-reboot, so it ends.
end_guest()
{
	sync
	echo b > /proc/sysrq-trigger
	sleep infinity
}

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8

mount_all
keep_sample_rate
PBM_STATUS=$(sed -n 's/^# status //p' /run/pbm-command)
open_report
run_command
end_guest
