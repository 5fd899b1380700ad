#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The shell that runs the commands of a page, for scripts/lib/pages.py. It reads the commands
# from stdin and starts in the checkout. Files in the checkout, /tmp and /usr/local are written
# to an overlay in memory, and programs are pinned in a BPF file system of the page. The overlay,
# this file system and the processes of the page end with the namespaces of the shell.

set -euo pipefail

REPO_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
TIMEOUT=600

if [[ ${1:-} != --inside ]]; then
	exec unshare --mount --pid --mount-proc --fork --kill-child "$0" --inside
fi

mount -t tmpfs -o mode=755 pages /mnt
for DIR in /tmp /usr/local "$REPO_DIR"; do
	mkdir -p -- "/mnt/upper$DIR" "/mnt/work$DIR"
	mount -t overlay -o "lowerdir=$DIR,upperdir=/mnt/upper$DIR,workdir=/mnt/work$DIR" pages "$DIR"
done
mount -t bpf bpf /sys/fs/bpf
mkdir /mnt/home
cat >/mnt/commands
cd -- "$REPO_DIR"
# If stdin or stdout were a pipe, perf would read or write a recording there.
HOME=/mnt/home timeout "$TIMEOUT" bash /mnt/commands </dev/null >/mnt/printed 2>&1 &
trap exit TERM INT
wait "$!" || :
cat /mnt/printed
