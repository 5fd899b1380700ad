#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The shell that runs the commands of a page, for scripts/lib/pages.py: they come from
# stdin. They begin in the checkout. What they write to it, to /tmp and to /usr/local
# goes to memory, as overlayfs does it, and what they pin to a BPF file system of their
# own. It all goes with their namespaces, as does what still runs.

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
# perf takes a pipe for a recording, or for the place where one goes.
HOME=/mnt/home timeout "$TIMEOUT" bash /mnt/commands </dev/null >/mnt/printed 2>&1 &
trap exit TERM INT
wait "$!" || :
cat /mnt/printed
