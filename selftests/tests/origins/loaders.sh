#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Other loaders than libbpf's own: which of them bring metadata into the kernel, and so
# into a recording. Documentation/loaders.rst says the same in words.

. "$(dirname "$0")/../../lib/test-lib.sh"

# What the build has put into progs/NAME.bpf.c
want_stamp()
{
	sed -n 's/^const char bpf_metadata_\([A-Za-z0-9_]*\)\[].* = \(".*"\);$/\1\t\2/p' \
		"$OUTPUT/$1.bpf.metadata.h" | sort >"$TMP/want"
	[[ -s $TMP/want ]] || fail "the build has not stamped $1"
}

# The programs of NAME.bpf.c that are held, while they are recorded
record_held()
{
	record "$TMP/data"
	want_stamp "$1"
	perfdata ksymbols "$TMP/data" >"$TMP/ksymbols"
}

check_set()
{
	local symbol

	symbol=$(symbol_of "$1")
	grep -q -x -e "$symbol" "$TMP/ksymbols" || fail "no KSYMBOL $symbol"
	perfdata entries "$TMP/data" "$symbol" | sort >"$TMP/got"
	same "the set of $symbol" "$TMP/want" "$TMP/got"
}

check_no_set()
{
	local symbol

	symbol=$(symbol_of "$1")
	grep -q -x -e "$symbol" "$TMP/ksymbols" || fail "no KSYMBOL $symbol"
	perfdata entries "$TMP/data" "$symbol" >"$TMP/got"
	[[ ! -s $TMP/got ]] || fail "$symbol has a set: $(cat "$TMP/got")"
}

test_bpftool_prog_load()
{
	PIN=/sys/fs/bpf/pbm-loaders-$BASHPID
	mountpoint -q /sys/fs/bpf || skip "/sys/fs/bpf is no BPF file system"
	trap 'rm -f "$PIN"; abandon_recording; release' EXIT
	"$BPFTOOL" prog load "$OUTPUT/ip_recorder.bpf.o" "$PIN"
	HELD_IDS=("$("$BPFTOOL" prog show pinned "$PIN" | sed -n 's/^\([0-9]*\): .*/\1/p')")
	HELD_NAMES=(record_ip)
	record_held ip_recorder
	check_set 0
}

test_libbpf_skeleton()
{
	hold_command "$OUTPUT/skeleton"
	record_held loaded
	check_set 0
	check_set 1
}

# Its loader does not bind the maps that a program does not refer to.
test_light_skeleton_brings_only_maps_that_the_program_refers_to()
{
	hold_command "$OUTPUT/light_skeleton"
	record_held loaded
	check_set 0
	check_no_set 1
}

# In namespaces of its own, which go with the holder: iproute2 makes directories in the
# BPF file system
hold_in_netns()
{
	command -v "$1" >/dev/null || skip "$1 is not installed"
	hold_command unshare --net --mount sh -c "
		mount -t bpf bpf /sys/fs/bpf && ip link set dev lo up && { $3; } >/dev/null || exit
		id=\$('$BPFTOOL' prog show name $2 | sed -n 's/^\\([0-9]*\\): .*/\\1/p' | tail -n 1)
		printf '%s %s\\nready\\n' \"\$id\" $2
		exec cat"
	record_held pass
	check_set 0
}

test_ip_link_xdp()
{
	hold_in_netns ip pass_xdp \
		"ip link set dev lo xdpgeneric obj '$OUTPUT/pass.bpf.o' sec xdp"
}

test_tc_filter()
{
	command -v tc >/dev/null || skip "tc is not installed"
	unshare --net tc qdisc add dev lo clsact || skip "this kernel has no clsact (CONFIG_NET_SCH_INGRESS)"
	hold_in_netns tc pass_tc \
		"tc qdisc add dev lo clsact && tc filter add dev lo ingress bpf da obj '$OUTPUT/pass.bpf.o' sec tc"
}

# perf mounts it where it is not, bpftrace doesn't.
with_tracefs()
{
	unshare --mount sh -c '
		mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing || exit
		exec "$@"' sh "$@"
}

# It makes programs of its own language, which cannot say what is metadata.
test_bpftrace()
{
	local status=0

	command -v bpftrace >/dev/null || skip "bpftrace is not installed"
	with_tracefs true || skip "no tracefs can be mounted"
	with_tracefs test -d /sys/kernel/tracing/events/syscalls/sys_enter_openat ||
		skip "this kernel has no tracepoints of system calls (CONFIG_FTRACE_SYSCALLS)"
	start_recording "$TMP/data" -a
	with_tracefs timeout $((30 * SCALE)) bpftrace -e '
		tracepoint:syscalls:sys_enter_openat { @ = count(); }
		interval:ms:300 { exit(); }' >"$TMP/bpftrace" 2>&1 &
	wait $! || status=$?
	((status == 0)) || fail "bpftrace: status $status: $(tr -s '\n' ' ' <"$TMP/bpftrace")"
	stop_recording
	perfdata programs "$TMP/data" >"$TMP/programs"
	grep -e 'sys_enter_open' "$TMP/programs" || fail "no KSYMBOL of bpftrace's program"
	perfdata records "$TMP/data" >"$TMP/records"
	if grep -e sys_enter_open "$TMP/records"; then
		fail "bpftrace's program has a set"
	fi
}

run_tests
