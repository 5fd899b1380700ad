#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# /init of a guest's initramfs, run by busybox. It mounts the host's directories as the root of
# the guest, and starts guest-init.sh. guests.sh has put /shares (a path in each line) and /next (the
# path of guest-init.sh) into the initramfs.

PATH=/bin
P9=trans=virtio,version=9p2000.L,msize=512000

# An error ends this script, which is pid 1. Then the kernel panics, and this ends the guest.
set -e
mkdir -p /dev /proc /sys /lower /rw /root
mount -t devtmpfs dev /dev

mount -t 9p -o "ro,cache=loose,$P9" root /lower
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

# Mount shared directories after /tmp, because they may be below /tmp. Only PBM_GUEST, below the last one,
# is written. With cache=none, its files are on the host at once.
n=0
while read -r path; do
	mkdir -p "/root$path"
	mode=ro,cache=loose
	[ "$path" != "${PBM_GUEST%/*}" ] || mode=rw,cache=none
	mount -t 9p -o "$mode,$P9" "share$n" "/root$path"
	n=$((n + 1))
done </shares
exec switch_root /root "$(cat /next)"
