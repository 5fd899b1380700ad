#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The shell that runs the commands of a page, which it reads from stdin, in the checkout. lib/pages.py
# starts it in namespaces of its own, with which the processes, the mounts and their files end. Files in
# the checkout, /tmp and /usr/local are written to an overlay in memory.

set -euo pipefail

mount -t tmpfs -o mode=755 pages /mnt
for DIR in /tmp /usr/local "$PWD"; do
	mkdir -p -- "/mnt/upper$DIR" "/mnt/work$DIR"
	mount -t overlay -o "lowerdir=$DIR,upperdir=/mnt/upper$DIR,workdir=/mnt/work$DIR" pages "$DIR"
done
mount -t bpf bpf /sys/fs/bpf
mkdir /mnt/home
cat >/mnt/commands
# This enters the overlay.
cd -- "$PWD"
# If stdin or stdout were a pipe, perf would read or write a recording there.
HOME=/mnt/home timeout 600 bash /mnt/commands </dev/null >/mnt/printed 2>&1 &
trap exit TERM INT
wait "$!" || :
cat /mnt/printed
