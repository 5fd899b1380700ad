#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The metadata that each loader brings into the kernel, and so into a recording: for a program that
# refers to its metadata, and for one that does not. Documentation/origins.rst lists the same
# loaders. The oldest and the newest clang on this machine compile loaded.bpf.c.

. "$(dirname "$0")/../../lib/test-lib.sh"

# Record while the programs are held. Fail unless they have these names.
record_held()
{
	[[ ${HELD_NAMES[*]} = "$1" ]] || fail "programs: ${HELD_NAMES[*]}"
	record "$TMP/data" </dev/null
	perfdata ksymbols "$TMP/data" >"$TMP/ksymbols"
}

# wants_set INDEX <<END: fail unless these lines KEY<TAB>VALUE are the recorded metadata of the program
wants_set()
{
	local symbol

	cat >"$TMP/want"
	symbol=$(symbol_of "$1")
	grep -q -x -e "$symbol" "$TMP/ksymbols" || fail "no KSYMBOL $symbol"
	perfdata entries "$TMP/data" "$symbol" | sort >"$TMP/got"
	same "the metadata of $symbol" "$TMP/want" "$TMP/got"
}

# check_loader all|referred|none COMMAND...: fail unless the metadata of both programs of loaded.bpf.c
# (all), only of the program "refers" (referred), or none arrives
check_loader()
(
	local keys=$'level\t4\nversion\t"1.2.3"\n'

	echo "$*"
	trap release EXIT
	hold_command "${@:2}"
	record_held "refers refers_not"
	[[ $1 != none ]] || keys=
	printf '%s' "$keys" | wants_set 0
	[[ $1 = all ]] || keys=
	printf '%s' "$keys" | wants_set 1
)

need_backports()
{
	BACKPORTS=$OUTPUT/backports
	[[ -d $BACKPORTS ]] || { all_only; skip "no packages of Debian's backports"; }
}

# The pins go away with the mount namespace.
check_bpftool()
{
	local object

	for object in "$OUTPUT"/loaded_*.bpf.o; do
		# shellcheck disable=SC2016 # for the inner shell
		check_loader all unshare --mount sh -c '
			mount -t bpf bpf /sys/fs/bpf && "$1" prog loadall "$2" /sys/fs/bpf || exit
			for name in refers refers_not; do
				id=$("$1" prog show pinned "/sys/fs/bpf/$name" | sed -n "s/^\\([0-9]*\\): .*/\\1/p")
				echo "$id $name"
			done
			echo ready
			exec cat' sh "$1" "$object"
	done
}

test_bpftool_prog_load()
{
	check_bpftool "$BPFTOOL"
}

test_bpftool_of_backports()
{
	need_backports
	check_bpftool "$BACKPORTS/usr/sbin/bpftool"
}

# A light skeleton does not bind maps that the program does not refer to.
test_skeletons()
{
	local skeleton

	for skeleton in "$OUTPUT"/skeleton_*; do
		check_loader all "$skeleton"
	done
	for skeleton in "$OUTPUT"/light_skeleton_*; do
		check_loader referred "$skeleton"
	done
}

# iproute2 makes directories in the BPF file system. So the holder has its own namespaces.
hold_in_netns()
{
	command -v "$1" >/dev/null || skip "$1 is not installed"
	hold_command unshare --net --mount sh -c "
		mount -t bpf bpf /sys/fs/bpf && ip link set dev lo up && { $3; } >/dev/null || exit
		id=\$('$BPFTOOL' prog show name $2 | sed -n 's/^\\([0-9]*\\): .*/\\1/p' | tail -n 1)
		printf '%s %s\\nready\\n' \"\$id\" $2
		exec cat"
	record_held "$2"
	# The keys that the build has added
	sed -n 's/^const char bpf_metadata_\([A-Za-z0-9_]*\)\[].* = \(".*"\);$/\1\t\2/p' \
		"$OUTPUT/pass.bpf.metadata.h" | sort >"$TMP/stamp"
	[[ -s $TMP/stamp ]] || fail "the build has not stamped pass"
	wants_set 0 <"$TMP/stamp"
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

test_ip_of_backports()
{
	local lib

	need_backports
	lib=$(dirname "$(find "$BACKPORTS/usr/lib/" -name libbpf.so.1)")
	hold_in_netns ip pass_xdp "LD_LIBRARY_PATH='$lib' '$(find "$BACKPORTS/" -path '*bin/ip' -type f)' \
		link set dev lo xdpgeneric obj '$OUTPUT/pass.bpf.o' sec xdp"
}

test_cilium_ebpf()
{
	local object

	[[ -x $OUTPUT/cilium ]] || skip "no Go or no cilium/ebpf when the tests were built"
	for object in "$OUTPUT"/loaded_*.bpf.o; do
		check_loader referred "$OUTPUT/cilium" "$object"
		check_loader all "$OUTPUT/cilium" -bind "$object"
	done
}

# A loader whose map has no BTF, such as aya, and a loader whose map has BTF
test_plain_loader()
{
	hold_handmade unbound
	record_held "refers refers_not no_map_btf"
	wants_set 0 <<<$'key\t7'
	wants_set 1 </dev/null
	wants_set 2 </dev/null
}

# The kernel refuses the BTF of gcc 12. libbpf goes on without BTF, cilium/ebpf gives up.
test_gcc()
{
	command -v bpf-gcc >/dev/null || skip "bpf-gcc is not installed"
	[[ $(bpf-gcc -dumpversion) = 12* ]] || skip "bpf-gcc is not gcc 12"
	# shellcheck disable=SC2046 # several flags
	bpf-gcc $(grep -o -e '-I[^ ]*' "$OUTPUT/bpf-cflags") -isystem /usr/include \
		-isystem "/usr/include/$(gcc -print-multiarch)" \
		-O2 -gbtf -c "$SELFTESTS/progs/loaded.bpf.c" -o "$TMP/gcc.bpf.o"
	check_loader none "$OUTPUT/hold" "$TMP/gcc.bpf.o"
}

run_tests
