#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The output of tools/bpf-owners about programs of known owners. The tests compare ids and
# names with bpftool, packages with dpkg-query, and build IDs with readelf.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/attach.sh"

NATIVE_ONLY="bpf-owners does not depend on the processor"

OWNERS=$SELFTESTS/../tools/bpf-owners
INHERIT=${OUTPUT-}/inherit
CAT=$(readlink -f "$(type -P cat)")
SHELL_EXE=$(readlink -f "$(type -P sh)")
ID_64=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
# An optional command before bpf-owners: to run in another namespace, with another PATH
RUN=()

# Make the directories of a test: programs, a generated /proc, the mount point of a BPF file system.
start_test()
{
	export BIN=$TMP/bin PROC=$TMP/proc BPFFS=$TMP/bpffs CGROUP=

	native_only "$NATIVE_ONLY"
	rm -rf "$BIN" "$PROC" "$BPFFS"
	mkdir "$BIN" "$PROC" "$BPFFS"
}

# owners OPTION...: write what bpf-owners prints about the held programs to $TMP/owners, as JSON,
# and check its form. Some machines have a process that even root may not read.
owners()
{
	"${RUN[@]}" "$OWNERS" --json "$@" "${HELD_IDS[@]}" >"$TMP/owners" 2>"$TMP/owners.err" ||
		fail "bpf-owners: status $?: $(cat "$TMP/owners.err")"
	if grep -v -x -E 'bpf-owners: processes whose descriptors cannot be read: [0-9]+' "$TMP/owners.err"; then
		fail "bpf-owners prints an unexpected message"
	fi
	python3 -S - "$TMP/owners" <<-'END'
		import json, re, sys
		raw = open(sys.argv[1], "rb").read()
		assert re.fullmatch(rb"[ -~\n]*", raw), "not only printable ASCII"
		for program in json.loads(raw):
		    assert list(program) == ["id", "name", "metadata"], program
		    assert type(program["id"]) is int and type(program["name"]) is str, program
		    for key, value in program["metadata"].items():
		        assert re.fullmatch("[A-Za-z0-9_]{1,63}", key), key
		        assert type(value) is str and value and value.isprintable(), value
	END
}

# The lines have what JSON has. A program without a name has a dash.
test_lines_for_perf_inject()
{
	hold_command "$INHERIT" cat
	owners
	python3 -S - "$TMP/owners" <<-'END' >"$TMP/want"
		import json, sys
		for program in json.load(open(sys.argv[1])):
		    for key, value in program["metadata"].items():
		        print(program["id"], program["name"] or "-", f"{key}={value}")
	END
	LC_ALL=en_US.ISO-8859-1 "$OWNERS" --perf "${HELD_IDS[@]}" >"$TMP/got" 2>"$TMP/owners.err"
	[[ -s $TMP/want ]] || fail "no line"
	same "lines" "$TMP/want" "$TMP/got"
	record "$TMP/data"
	"$PBM_PERF" inject --bpf-metadata-add "$TMP/got" -i "$TMP/data" -o "$TMP/added" 2>"$TMP/messages"
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
	"$PBM_PERF" report --header-only -i "$TMP/added" | grep "^# bpf_metadata ${HELD_IDS[0]} " >"$TMP/header"
	grep -q -F "exe=\"$CAT\"" "$TMP/header" || fail "no exe: $(cat "$TMP/header")"
	! "$OWNERS" --perf --json 2>/dev/null || fail "--perf and --json are accepted"
}

# value ID KEY: print the value in $TMP/owners, or nothing
value()
{
	python3 -S -c 'if True:
		import json, sys
		programs = {program["id"]: program["metadata"] for program in json.load(open(sys.argv[1]))}
		print(programs[int(sys.argv[2])].get(sys.argv[3], ""))' "$TMP/owners" "$@"
}

# want ID KEY VALUE: fail unless this is the value; an empty VALUE means that there is no such key
want()
{
	local got

	got=$(value "$1" "$2")
	[[ $got = "$3" ]] || fail "$2 of program $1 is '$got', not '$3'; all: $(cat "$TMP/owners")"
}

# becomes ID KEY VALUE: succeed if this is the value now
becomes()
{
	owners
	[[ $(value "$1" "$2") = "$3" ]]
}

# want_package ID FILE: fail unless the program has the package that contains this executable
want_package()
{
	local package

	command -v dpkg-query >/dev/null || skip "no dpkg-query here, and the test knows no other packages"
	package=$(dpkg-query -S "$2" 2>/dev/null || dpkg-query -S "${2#/usr}")
	package=${package%%:*}
	want "$1" package "$package $(dpkg-query -W -f '${Version}' "$package")"
}

# build_id FILE: print the build ID of an ELF file
build_id()
{
	command -v readelf >/dev/null || skip "no readelf here"
	readelf -n "$1" | sed -n 's/^ *Build ID: //p'
}

# Print the processes that process $1 has started, and all their children, one per line.
descendants()
{
	local child

	for child in $(pgrep -P "$1" || :); do
		echo "$child"
		descendants "$child"
	done
}

# Print the processes that hold the programs. $HOLDER_PID only waits for these processes.
child_pids()
{
	descendants "$HOLDER_PID" | sort -n | paste -s -d , | sed 's/,/, /g'
}

# Hold programs in a mount namespace with its own BPF file system. Both go away with the holder.
hold_with_bpffs()
{
	# shellcheck disable=SC2016 # for the inner shell
	hold_command unshare --mount sh -c '
		trap "[ -z \"\$CGROUP\" ] || rmdir \"\$CGROUP\"" EXIT
		mount -t bpf bpf "$BPFFS" || exit
		'"$1" sh "${@:2}"
	RUN=(nsenter --mount --target "$HOLDER_PID")
}

# hold_in_cgroup NAME ...: the same as hold_with_bpffs, with CGROUP, which goes away with the holder
hold_in_cgroup()
{
	local mount

	mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[[ -n $mount ]] || skip "no cgroup2 file system is mounted"
	CGROUP=$mount/pbm-$$-$1
	mkdir "$CGROUP"
	"$INHERIT" -l "$CGROUP" true >/dev/null || {
		rmdir "$CGROUP"
		skip "this kernel attaches no programs to cgroups (CONFIG_CGROUP_BPF)"
	}
	export CGROUP
	hold_with_bpffs "${@:2}"
}

# make_process PID ID CGROUPS [LINK]: add a process to the generated /proc
make_process()
{
	local dir=$PROC/$1

	mkdir -p "$dir/fd" "$dir/fdinfo"
	ln -sfn "${4:-anon_inode:bpf-prog}" "$dir/fd/5"
	ln -sfn /dev/null "$dir/fd/6"
	printf 'pos:\t0\nflags:\t02000002\nprog_tag:\t0123456789abcdef\nprog_id:\t%s\n' "$2" >"$dir/fdinfo/5"
	printf '%b' "$3" >"$dir/cgroup"
	printf 'made-up\n' >"$dir/comm"
	ln -sfn "$CAT" "$dir/exe"
}

# bpftool prints all programs. Its list of holders can be missing.
test_ids_names_and_holders()
{
	local index

	hold simple none
	owners
	"$BPFTOOL" -j prog show >"$TMP/bpftool"
	python3 -S - "$TMP/owners" "$TMP/bpftool" "${HELD_IDS[@]}" <<-'END'
		import json, sys
		ours, oracle = ({program["id"]: program for program in json.load(open(name))} for name in sys.argv[1:3])
		assert sorted(ours) == sorted(map(int, sys.argv[3:])), ours
		for number, program in ours.items():
		    assert program["name"] == oracle[number]["name"], (program, oracle[number])
		    pids = [str(holder["pid"]) for holder in oracle[number].get("pids", ())]
		    assert not pids or program["metadata"]["pid"] == ", ".join(pids), (program, pids)
	END
	for index in 0 1; do
		want "${HELD_IDS[$index]}" pid "$HOLDER_PID"
		want "${HELD_IDS[$index]}" comm hold
		want "${HELD_IDS[$index]}" exe "$OUTPUT/hold"
		want "${HELD_IDS[$index]}" package ""
		want "${HELD_IDS[$index]}" build_id "$(build_id "$OUTPUT/hold")"
	done
}

test_program_without_btf_and_an_executable_of_the_distribution()
{
	hold_command "$INHERIT" cat
	owners
	want "${HELD_IDS[0]}" pid "$(child_pids)"
	want "${HELD_IDS[0]}" exe "$CAT"
	want "${HELD_IDS[0]}" build_id "$(build_id "$CAT")"
	want_package "${HELD_IDS[0]}" "$CAT"
}

# dpkg reads names as patterns.
test_an_executable_whose_name_is_a_pattern()
{
	[[ -x /usr/bin/[ ]] || skip "no /usr/bin/["
	hold_command "$INHERIT" cat
	make_process 1 "${HELD_IDS[0]}" '0::/\n'
	ln -sfn '/usr/bin/[' "$PROC/1/exe"
	owners --proc "$PROC"
	want "${HELD_IDS[0]}" exe '/usr/bin/['
	want_package "${HELD_IDS[0]}" "$CAT"
}

test_light_skeleton()
{
	local skeletons=("$OUTPUT"/light_skeleton_*) skeleton

	skeleton=${skeletons[0]}
	hold_command "$skeleton"
	owners
	want "${HELD_IDS[0]}" exe "$skeleton"
	want "${HELD_IDS[1]}" exe "$skeleton"
}

# Only new versions of Go write a GNU build ID without an option.
test_go()
{
	local objects=("$OUTPUT"/loaded_*.bpf.o)

	[[ -x $OUTPUT/cilium ]] || skip "no Go or no cilium/ebpf when the tests were built"
	hold_command "$OUTPUT/cilium" "${objects[0]}"
	owners
	want "${HELD_IDS[0]}" exe "$OUTPUT/cilium"
	want "${HELD_IDS[0]}" pid "$HOLDER_PID"
	want "${HELD_IDS[0]}" build_id "$(build_id "$OUTPUT/cilium")"
}

# Print the ids of the programs that process $1 holds.
ids_in_fdinfo()
{
	sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$1"/fdinfo/* 2>/dev/null | sort -u
}

has_programs()
{
	kill -0 "$1" || fail "bpftrace has ended: $(cat "$TMP/bpftrace")"
	[[ -n $(ids_in_fdinfo "$1") ]]
}

test_bpftrace()
{
	command -v bpftrace >/dev/null || skip "bpftrace is not installed"
	# shellcheck disable=SC2016 # for the inner shell
	hold_command sh -c 'bpftrace -e "interval:s:3600 { exit() }" >"$1" 2>&1 & echo ready; cat; kill $!; wait' sh "$TMP/bpftrace"
	pid=$(pgrep -P "$HOLDER_PID" bpftrace)
	await "bpftrace's program" has_programs "$pid"
	mapfile -t HELD_IDS < <(ids_in_fdinfo "$pid")
	owners
	want "${HELD_IDS[0]}" comm bpftrace
	want "${HELD_IDS[0]}" pid "$pid"
	want_package "${HELD_IDS[0]}" "$(readlink -f "$(type -P bpftrace)")"
}

# A shell, and two processes that inherited its descriptors
test_several_holders_are_listed()
{
	# shellcheck disable=SC2016 # for the inner shell
	hold_command "$INHERIT" sh -c 'cat <&3 & cat; wait' 3<&0
	await "both executables" becomes "${HELD_IDS[0]}" exe "$CAT, $SHELL_EXE"
	await "all three processes" becomes "${HELD_IDS[0]}" pid "$(child_pids)"
	want "${HELD_IDS[0]}" comm "cat, sh"
}

test_process_ids_are_in_the_order_of_numbers()
{
	local pid

	hold_command "$INHERIT" cat
	for pid in 100 9 20; do
		make_process "$pid" "${HELD_IDS[0]}" "0::/system.slice/unit-$pid.service\n"
	done
	owners --proc "$PROC"
	want "${HELD_IDS[0]}" pid "9, 20, 100"
	want "${HELD_IDS[0]}" unit "unit-100.service, unit-20.service, unit-9.service"
	want "${HELD_IDS[0]}" exe "$CAT"
}

test_program_that_is_pinned_and_held_by_no_process()
{
	# shellcheck disable=SC2016 # for the inner shell
	hold_with_bpffs '
		"$1" prog load "$2" "$BPFFS/it'\''s" && mkdir "$BPFFS/dir" &&
			"$1" prog pin pinned "$BPFFS/it'\''s" "$BPFFS/dir/b" || exit
		"$1" prog show pinned "$BPFFS/dir/b" | sed -n "s/^\\([0-9]*\\): .*/\\1 simple/p"
		echo ready
		exec cat' "$BPFTOOL" "$OUTPUT/simple.bpf.o"
	owners
	want "${HELD_IDS[0]}" pinned "$BPFFS/dir/b, $BPFFS/it's"
	RUN=()
	owners
	want "${HELD_IDS[0]}" pinned "/proc/$HOLDER_PID/root$BPFFS/dir/b, /proc/$HOLDER_PID/root$BPFFS/it's"
	want "${HELD_IDS[0]}" pid ""
	want "${HELD_IDS[0]}" exe ""
}

# The cgroup has a hostile name.
test_program_that_is_attached_to_a_cgroup_and_held_by_no_process()
{
	local path

	# shellcheck disable=SC2016 # for the inner shell
	hold_in_cgroup $'it\'s "\e[2J\xff\\' '
		"$1" prog load "$2" "$BPFFS/pin" type cgroup/skb &&
			"$1" cgroup attach "$CGROUP" egress pinned "$BPFFS/pin" || exit
		"$1" prog show pinned "$BPFFS/pin" | sed -n "s/^\\([0-9]*\\): .*/\\1 simple/p"
		rm "$BPFFS/pin"
		echo ready
		cat' "$BPFTOOL" "$OUTPUT/simple.bpf.o"
	owners
	want "${HELD_IDS[0]}" cgroup "${CGROUP%%$'\e'*}\\x1b[2J\\xff\\"
	path=${CGROUP#/sys/fs/cgroup}
	path=${path#/unified}
	want "${HELD_IDS[0]}" hook "cgroup ${path%%$'\e'*}\\x1b[2J\\xff\\ inet_egress"
	want "${HELD_IDS[0]}" pid ""
	want "${HELD_IDS[0]}" pinned ""
}

# The process has a descriptor of the link, but none of the program.
test_a_link_that_is_held_and_one_that_is_pinned()
{
	# shellcheck disable=SC2016 # for the inner shell
	hold_in_cgroup link '
		"$1" -l "$CGROUP" cat' "$INHERIT"
	owners
	want "${HELD_IDS[0]}" exe "$CAT"
	want "${HELD_IDS[0]}" cgroup "$CGROUP"
	want "${HELD_IDS[0]}" pinned ""
	link=$("$BPFTOOL" link show | sed -n "s/^\([0-9]*\): cgroup  prog ${HELD_IDS[0]} *$/\1/p")
	"${RUN[@]}" "$BPFTOOL" link pin id "$link" "$BPFFS/link"
	owners
	want "${HELD_IDS[0]}" pinned "$BPFFS/link"
	RUN=()
	owners
	want "${HELD_IDS[0]}" pinned "/proc/$HOLDER_PID/root$BPFFS/link"
}

# In the namespace of the holder, another directory is mounted over that of the package.
hold_another_cat()
{
	cp "$CAT" "$BIN/${CAT##*/}"
	# shellcheck disable=SC2016 # for the inner shell
	hold_command unshare --mount sh -c 'mount --bind "$1" "${2%/*}" && exec "$3" "$2"' sh "$BIN" "$CAT" "$INHERIT"
	dpkg-query -S "$CAT" || dpkg-query -S "${CAT#/usr}" ||
		skip "no package owns $CAT, so none can be named by mistake"
}

test_another_file_at_the_path_of_a_package()
{
	hold_another_cat
	owners
	want "${HELD_IDS[0]}" exe "$CAT"
	want "${HELD_IDS[0]}" package ""
	want "${HELD_IDS[0]}" build_id "$(build_id "$CAT")"
}

test_a_replaced_executable()
{
	hold_another_cat
	cp "$SHELL_EXE" "$TMP/new"
	mv "$TMP/new" "$BIN/${CAT##*/}"
	owners
	want "${HELD_IDS[0]}" exe "$CAT (deleted)"
	want "${HELD_IDS[0]}" package ""
	want "${HELD_IDS[0]}" build_id "$(build_id "$CAT")"
}

# A line is a cgroup as in /proc/PID/cgroup, the unit, and the container.
test_units_and_containers()
{
	local cases index cgroups unit container

	mapfile -t cases <<-END
		0::/system.slice/ssh.service|ssh.service|
		0::/system.slice/ssh.service/a/b|ssh.service|
		0::/init.scope||
		0::/||
		0::/a.service.d/b||
		0::/user.slice/user-0.slice/user@0.service/init.scope|user@0.service|
		0::/user.slice/user-0.slice/session-3.scope|session-3.scope|
		0::/system.slice/docker-$ID_64.scope|docker-$ID_64.scope|$ID_64
		0::/docker/$ID_64||$ID_64
		0::/docker/$ID_64/system.slice/in.service||$ID_64
		0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-$ID_64.scope|cri-containerd-$ID_64.scope|$ID_64
		0::/kubepods/besteffort/pod1/$ID_64||$ID_64
		0::/machine.slice/libpod-$ID_64.scope/container|libpod-$ID_64.scope|$ID_64
		0::/machine.slice/libpod-conmon-$ID_64.scope|libpod-conmon-$ID_64.scope|
		0::/kubepods.slice/crio-$ID_64.scope|crio-$ID_64.scope|$ID_64
		0::/docker/${ID_64%?}||
		5:cpu:/x.service\n1:name=systemd:/system.slice/old.service\n0::/|old.service|
		1:name=systemd:/docker/$ID_64\n0::/system.slice/containerd.service||$ID_64
		1:name=systemd:/\n0::/system.slice/new.service|new.service|
		0::/../../system.slice/outside.service|outside.service|
		0::/docker/$ID_64/a\\r1:name=systemd:/x.service||$ID_64
		0::/docker/$ID_64/docker/${ID_64//0/f}||$ID_64
		0::/machine.slice/systemd-nspawn@web.service/payload/system.slice/in.service|systemd-nspawn@web.service|web
		0::/machine.slice/systemd-nspawn@web.service/supervisor|systemd-nspawn@web.service|
		0::/machine.slice/machine-a\\\\x2db.scope/payload/init.scope|machine-a\\x2db.scope|a-b
		0::/lxc.payload.c1/system.slice/in.service||c1
		0::/lxc.monitor.c1||
		0::/system.slice/_cpu.service|cpu.service|
		0::/system.slice/a:b\\\\x2dc.service|a:b\\x2dc.service|
	END
	hold_command "$INHERIT" -n "${#cases[@]}" cat
	for index in "${!cases[@]}"; do
		make_process $((100 + index)) "${HELD_IDS[$index]}" "${cases[$index]%%|*}\n"
	done
	owners --proc "$PROC"
	for index in "${!cases[@]}"; do
		IFS='|' read -r cgroups unit container <<<"${cases[$index]}"
		echo "$cgroups"
		want "${HELD_IDS[$index]}" unit "$unit"
		want "${HELD_IDS[$index]}" container "$container"
	done
}

# Replace both package managers with programs that log their arguments.
log_package_managers()
{
	printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"%s"\nexec "%s" "$@"\n' "$TMP/dpkg-query" \
		"$(type -P dpkg-query || echo false)" >"$BIN/dpkg-query"
	printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"%s"\necho "by-rpm 1.0-2"\n' "$TMP/rpm" >"$BIN/rpm"
	chmod +x "$BIN/"*
	: >"$TMP/dpkg-query"
	: >"$TMP/rpm"
	RUN=(env "PATH=$BIN:$PATH")
}

test_package_manager_is_asked_once_and_never_for_containers()
{
	command -v dpkg-query >/dev/null || skip "no dpkg-query here"
	log_package_managers
	hold_command "$INHERIT" -n 3 -p 3 cat
	owners
	[[ $(grep -c -e "^-S $CAT" "$TMP/dpkg-query") = 1 ]] || fail "not one query, but $(cat "$TMP/dpkg-query")"
	make_process 7 "${HELD_IDS[0]}" "0::/docker/$ID_64\n"
	: >"$TMP/dpkg-query"
	: >"$TMP/rpm"
	owners --proc "$PROC"
	want "${HELD_IDS[0]}" exe "$CAT"
	want "${HELD_IDS[0]}" package ""
	[[ ! -s $TMP/dpkg-query && ! -s $TMP/rpm ]] || fail "queries of a container: $(cat "$TMP/dpkg-query" "$TMP/rpm")"
	# A process of the host has the same executable.
	make_process 8 "${HELD_IDS[1]}" '0::/\n'
	owners --proc "$PROC"
	want "${HELD_IDS[0]}" package ""
	want_package "${HELD_IDS[1]}" "$CAT"
}

test_rpm_is_asked_for_what_dpkg_does_not_know()
{
	log_package_managers
	hold_command "$INHERIT" cat
	make_process 7 "${HELD_IDS[0]}" '0::/\n'
	ln -sfn "$OUTPUT/hold" "$PROC/7/exe"
	owners --proc "$PROC"
	want "${HELD_IDS[0]}" package "by-rpm 1.0-2"
	[[ $(cat "$TMP/rpm") = "-qf --qf %{NAME} %{VERSION}-%{RELEASE}"$'\n'" $OUTPUT/hold" ]] || fail "rpm $(cat "$TMP/rpm")"
}

# The package in an executable's note is that of a container. Of a file of this host, it is a mere claim.
test_package_notes()
{
	local index notes=('{"type":"deb","name":"in","version":"1.0-1","architecture":"all"}' '{"name":"named"}'
		'{"name":"esc\u001b"}' '{"name":' '{"version":"1"}' '["name"]' '{"name":{"name":"a"}}' '{"name":""}')
	local packages=('in 1.0-1' named 'esc\x1b' '' '' '' '' '')

	hold_command "$INHERIT" -n "${#notes[@]}" cat
	for index in "${!notes[@]}"; do
		python3 -S - "${notes[$index]}" "$TMP/$index" <<-'END'
			import struct, sys
			content = sys.argv[1].encode() + b"\0"
			note = struct.pack("<3I", 4, len(content), 0xcafe1a7e) + b"FDO\0" + content
			header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<2HI3QI6H", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
			segment = struct.pack("<2I6Q", 4, 4, 120, 0, 0, len(note), len(note), 4)
			open(sys.argv[2], "wb").write(header + segment + note)
		END
		make_process $((100 + index)) "${HELD_IDS[$index]}" "0::/docker/$ID_64\n"
		ln -sfn "$TMP/$index" "$PROC/$((100 + index))/exe"
	done
	owners --proc "$PROC"
	for index in "${!notes[@]}"; do
		want "${HELD_IDS[$index]}" package "${packages[$index]}"
	done
	make_process 100 "${HELD_IDS[0]}" "0::/\n"
	ln -sfn "$TMP/0" "$PROC/100/exe"
	owners --proc "$PROC"
	want "${HELD_IDS[0]}" package ""
}

test_command_lines()
{
	local long

	hold_command "$INHERIT" -n 2 cat
	make_process 100 "${HELD_IDS[0]}" '0::/\n'
	printf 'python3\0-c\0a\nb\0' >"$PROC/100/cmdline"
	make_process 101 "${HELD_IDS[1]}" '0::/\n'
	long=$(printf %0300d 0)
	printf 'cat\0%s\0' "$long" >"$PROC/101/cmdline"
	owners --proc "$PROC" --cmdline
	want "${HELD_IDS[0]}" cmdline 'python3 -c a\x0ab'
	want "${HELD_IDS[1]}" cmdline "cat ${long:0:196}..."
	owners --proc "$PROC"
	want "${HELD_IDS[0]}" cmdline ""
}

# check_hostile NAME ESCAPED: a file with this name is printed as ESCAPED
check_hostile()
(
	trap release EXIT
	cp "$CAT" "$TMP/$1"
	hold_command "$INHERIT" "$TMP/$1"
	owners
	want "${HELD_IDS[0]}" exe "$TMP/$2"
	want "${HELD_IDS[0]}" comm "$2"
	want "${HELD_IDS[0]}" package ""
	"$OWNERS" "${HELD_IDS[0]}" >"$TMP/table" 2>/dev/null
	if LC_ALL=C.UTF-8 grep -a -v -x -P '[\x20-\x7e]*' "$TMP/table"; then
		fail "the table for $2 has characters that are not printable"
	fi
)

test_hostile_names()
{
	check_hostile $'new\nline' 'new\x0aline'
	check_hostile $'esc\e[2J' 'esc\x1b[2J'
	check_hostile $'bad\xff\xc3' 'bad\xff\xc3'
	check_hostile $'c1\xc2\x9b2J' 'c1\u009b2J'
	check_hostile $'bidi\xe2\x80\xae' 'bidi\u202e'
	check_hostile 'quo"te\n' 'quo"te\n'
	check_hostile 'a, b' 'a,\x20b'
}

# bpf-owners goes on after wrong ELF headers and notes. The processes are in containers, so that
# bpf-owners asks no package manager.
test_broken_executables()
{
	hold_command "$INHERIT" -n 300 cat
	python3 -S - "$CAT" "$TMP/exe" <<-'END'
		import os, random, struct, sys
		source = open(sys.argv[1], "rb").read()[:20000]
		random.seed(1)
		os.mkdir(sys.argv[2])
		for number in range(300):
		    data = bytearray(source)
		    if number < 20:
		        data = data[:number * 7]
		    elif number < 100:
		        data = data[:source.index(b"GNU\0") - 40 + number]    # in a note
		    else:
		        for _ in range(1 + number % 4):
		            at = random.choice([4, 5, 32, 42, 54, 56] + [64 + 8 * i for i in range(80)])
		            data[at:at + 8] = random.choice([b"\xff" * 8, b"\xff" * 2, bytes(8), struct.pack("<q", -1 >> 1)])
		    open(f"{sys.argv[2]}/{number}", "wb").write(data)
	END
	for index in "${!HELD_IDS[@]}"; do
		make_process $((index + 1)) "${HELD_IDS[$index]}" "0::/docker/$ID_64\n"
		ln -sfn "$TMP/exe/$index" "$PROC/$((index + 1))/exe"
	done
	mkfifo "$TMP/fifo"
	ln -sfn "$TMP/fifo" "$PROC/1/exe"
	RUN=(timeout $((30 * SCALE)))
	owners --proc "$PROC"
	want "${HELD_IDS[299]}" exe "$TMP/exe/299"
}

test_unknown_owner_is_a_dash_in_the_table()
{
	hold_command "$INHERIT" cat
	owners --proc "$PROC"
	[[ $(cat "$TMP/owners") = "[{\"id\": ${HELD_IDS[0]}, \"name\": \"inherited\", \"metadata\": {}}]" ]] ||
		fail "$(cat "$TMP/owners")"
	"$OWNERS" --proc "$PROC" "${HELD_IDS[0]}" >"$TMP/table"
	grep -q -x -E "${HELD_IDS[0]} +inherited +- +- +-" "$TMP/table" || fail "$(cat "$TMP/table")"
}

# No name and no path is cut, so grep finds them. The table is as wide as it must be.
test_the_table_cuts_no_name()
{
	local directory=$TMP/$ID_64/$ID_64

	mkdir -p "$directory"
	cp "$CAT" "$directory/0123456789"
	hold_command "$INHERIT" -p 7 -s "$directory/0123456789"
	"$OWNERS" "${HELD_IDS[0]}" >"$TMP/table" 2>/dev/null
	cat "$TMP/table"
	grep -q "^${HELD_IDS[0]} *inherited .* exe $directory/0123456789\$" "$TMP/table" || fail "the executable is not in the row of the program"
	[[ $(grep -c "^ *+3\>" "$TMP/table") = 1 ]] || fail "the table does not count the three other processes"
	hold long_name
	"$OWNERS" "${HELD_IDS[0]}" >"$TMP/table" 2>/dev/null
	grep -q "^${HELD_IDS[0]} *function_x\{100,\} " "$TMP/table" || fail "the name is cut: $(cat "$TMP/table")"
}

# as_user SETPRIV-OPTIONS OPTION...: run bpf-owners under setpriv; sets STATUS. The output goes to
# $TMP/owners and $TMP/owners.err.
as_user()
{
	local options=$1

	shift
	STATUS=0
	# shellcheck disable=SC2086 # several options
	setpriv $options "$TMP/nobody/bpf-owners" --json "$@" >"$TMP/owners" 2>"$TMP/owners.err" || STATUS=$?
	cat "$TMP/owners" "$TMP/owners.err"
}

copy_for_nobody()
{
	chmod 711 "$TMP"
	mkdir -p "$TMP/nobody"
	cp "$OWNERS" "${OWNERS%/*}/bpf_samples.py" "$TMP/nobody"
	chmod -R a+rX "$TMP/nobody"
}

NOBODY="--reuid 65534 --regid 65534 --clear-groups"

test_without_privilege_nothing_is_seen()
{
	copy_for_nobody
	hold_command "$INHERIT" cat
	as_user "$NOBODY"
	((STATUS == 2)) || fail "status $STATUS"
	[[ ! -s $TMP/owners ]] || fail "bpf-owners prints programs"
	grep -q 'prog show: .*not permitted (.* CAP_SYS_ADMIN)$' "$TMP/owners.err" || fail "no message names CAP_SYS_ADMIN"
	grep -q 'cannot be read: [0-9]* (this needs CAP_SYS_PTRACE)$' "$TMP/owners.err" || fail "no message names CAP_SYS_PTRACE"
}

test_without_privilege_own_processes_are_seen()
{
	copy_for_nobody
	# shellcheck disable=SC2086 # several options
	hold_command "$INHERIT" setpriv $NOBODY cat
	await "setpriv to run cat" becomes "${HELD_IDS[0]}" exe "$CAT"
	as_user "$NOBODY" "${HELD_IDS[0]}"
	((STATUS == 0)) || fail "status $STATUS"
	want "${HELD_IDS[0]}" exe "$CAT"
	grep -q CAP_SYS_ADMIN "$TMP/owners.err" || fail "no message names CAP_SYS_ADMIN"
}

# The programs belong to processes with more capabilities.
test_without_cap_sys_ptrace_programs_are_seen()
{
	copy_for_nobody
	hold_command "$INHERIT" cat
	as_user "--bounding-set -sys_ptrace --inh-caps -sys_ptrace" "${HELD_IDS[0]}"
	((STATUS == 0)) || fail "status $STATUS"
	grep -q '"name": "inherited", "metadata": {}' "$TMP/owners" || fail "the program is not listed"
	grep -q 'cannot be read: [0-9]* (this needs CAP_SYS_PTRACE)$' "$TMP/owners.err" || fail "no message names CAP_SYS_PTRACE"
	! grep -q CAP_SYS_ADMIN "$TMP/owners.err" || fail "a message names CAP_SYS_ADMIN"
}

test_an_id_that_no_program_has()
{
	local status=0

	hold_command "$INHERIT" cat
	"$OWNERS" --json "${HELD_IDS[0]}" 4294967295 >"$TMP/owners" 2>"$TMP/owners.err" || status=$?
	((status == 1)) || fail "status $status"
	grep -q -x 'bpf-owners: no program has the id 4294967295' "$TMP/owners.err" || fail "$(cat "$TMP/owners.err")"
	want "${HELD_IDS[0]}" exe "$CAT"
	status=0
	"$OWNERS" --no-such-option 2>/dev/null || status=$?
	((status == 2)) || fail "a wrong option: status $status"
}

# hold_pinned NAME: hold a program in a private BPF file system, where its pin is "pin"
hold_pinned()
{
	# shellcheck disable=SC2016 # for the inner shell
	hold_with_bpffs '
		"$1" prog load "$2" "$BPFFS/pin" && "$1" prog show pinned "$BPFFS/pin" | sed -n "s/^\\([0-9]*\\): .* name \\([^ ]*\\) .*/\\1 \\2/p"
		echo ready
		exec cat' "$BPFTOOL" "$OUTPUT/$1.bpf.o"
}

# bpftool prints floating point numbers so that the list of all programs is not JSON.
test_a_float_breaks_nothing()
{
	hold_pinned other_types
	"$BPFTOOL" -j prog show | python3 -c 'import json, sys; json.load(sys.stdin)' 2>"$TMP/err" &&
		skip "this bpftool prints floating point numbers"
	owners
	want "${HELD_IDS[0]}" pinned "$BPFFS/pin"
	RUN=()
	owners
	want "${HELD_IDS[0]}" pinned "/proc/$HOLDER_PID/root$BPFFS/pin"
	"$BPFTOOL" prog show | sed -n 's/^\([0-9]*\): .*/\1/p' >"$TMP/want"
	"$OWNERS" | sed -n 's/^\([0-9][0-9]*\) .*/\1/p' >"$TMP/got"
	same "ids of all programs" "$TMP/want" "$TMP/got"
}

# fake_bpftool COMMANDS: let bpf-owners run these shell commands in place of bpftool
fake_bpftool()
{
	printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "$1" "$(type -P "$BPFTOOL")" >"$BIN/bpftool"
	chmod +x "$BIN/bpftool"
}

test_a_program_that_bpftool_can_not_print()
{
	local status=0

	hold_command "$INHERIT" -n 2 cat
	fake_bpftool "case \"\$*\" in *'-j -f prog show'|*\" id ${HELD_IDS[0]}\") echo '[{\"id\":'; exit ;; esac"
	PATH=$BIN:$PATH "$OWNERS" --json "${HELD_IDS[@]}" >"$TMP/owners" 2>"$TMP/owners.err" || status=$?
	cat "$TMP/owners.err"
	((status == 1)) || fail "status $status"
	grep -q -x "bpf-owners: program ${HELD_IDS[0]}: bpftool prints no JSON; see .*" "$TMP/owners.err" || fail "no message"
	want "${HELD_IDS[0]}" exe "$CAT"
	want "${HELD_IDS[1]}" exe "$CAT"
	grep -q '"name": "inherited"' "$TMP/owners" || fail "the other program has no name"
}

test_a_bpftool_without_a_command()
{
	local status=0

	hold_pinned simple
	fake_bpftool "case \"\$*\" in *cgroup*) echo '{\"error\":\"no such command\"}'; exit 1 ;; esac"
	PATH=$BIN:$PATH "$OWNERS" --json "${HELD_IDS[@]}" >"$TMP/owners" 2>"$TMP/owners.err" || status=$?
	((status == 1)) || fail "status $status"
	grep -q -x 'bpf-owners: bpftool cgroup tree: no such command' "$TMP/owners.err" || fail "$(cat "$TMP/owners.err")"
	# A list with another form
	fake_bpftool "case \"\$*\" in *net*) echo '[{\"xdp\":[{\"devname\":\"e0\"}],\"tc\":[]}]'; exit ;; esac"
	status=0
	PATH=$BIN:$PATH "$OWNERS" --json "${HELD_IDS[@]}" >"$TMP/owners" 2>"$TMP/owners.err" || status=$?
	((status == 1)) || fail "status $status"
	grep -q 'something unknown in its list of net: ' "$TMP/owners.err" || fail "$(cat "$TMP/owners.err")"
	grep -q '"name": "simple"' "$TMP/owners" || fail "no program: $(cat "$TMP/owners")"
	# A list that ends with an error, and has unknown items
	fake_bpftool "case \"\$*\" in *'-f prog show') echo '[{\"id\":${HELD_IDS[0]},\"name\":\"simple\"},{\"name\":5},{\"error\":\"no info\"}]'; exit ;; esac"
	status=0
	PATH=$BIN:$PATH "$OWNERS" --json "${HELD_IDS[@]}" >"$TMP/owners" 2>"$TMP/owners.err" || status=$?
	((status == 1)) || fail "status $status"
	grep -q -x 'bpf-owners: bpftool prog show: no info' "$TMP/owners.err" || fail "$(cat "$TMP/owners.err")"
	want "${HELD_IDS[0]}" pinned "/proc/$HOLDER_PID/root$BPFFS/pin"
}

test_programs_and_processes_that_go_away()
{
	local churner i

	hold_command "$INHERIT" cat
	while :; do
		"$INHERIT" -n 8 -p 8 true >/dev/null
	done </dev/null &
	churner=$!
	for i in {1..15}; do
		RUN=()
		"$OWNERS" --json >"$TMP/all" 2>"$TMP/owners.err" || fail "status $?: $(cat "$TMP/owners.err")"
		owners
		want "${HELD_IDS[0]}" exe "$CAT"
		if grep -v 'cannot be read: [0-9]*$' "$TMP/owners.err"; then
			fail "run $i prints an unexpected message"
		fi
	done
	kill "$churner"
	wait "$churner" || :
}

# The kernel refuses to print the name of a cgroup that is too long.
test_a_cgroup_that_cannot_be_read()
{
	hold_command "$INHERIT" cat
	make_process 100 "${HELD_IDS[0]}" ''
	ln -sfn "$(printf %0300d 0)" "$PROC/100/cgroup"
	owners --proc "$PROC"
	want "${HELD_IDS[0]}" exe "$CAT"
}

# Links and names in the BPF file system of a container claim nothing. bpf-owners reads only a part of it.
test_a_hostile_bpf_file_system()
{
	local status=0

	hold_pinned simple
	# shellcheck disable=SC2016 # for the inner shell
	"${RUN[@]}" sh -c 'cd "$BPFFS" && ln -s pin link && ln -s /none "a\"id\":$1," && mkdir other && mount --bind / other && i=0
		while [ $i -lt 1100 ]; do
			mkdir d && cd d || exit
			i=$((i + 1))
		done' sh "${HELD_IDS[0]}"
	"$OWNERS" --json "${HELD_IDS[0]}" >"$TMP/owners" 2>"$TMP/owners.err" || status=$?
	((status == 1)) || fail "status $status"
	grep -q -x "bpf-owners: /proc/$HOLDER_PID/root: more than 1000 files in BPF file systems" "$TMP/owners.err" || fail "$(cat "$TMP/owners.err")"
	want "${HELD_IDS[0]}" pinned "/proc/$HOLDER_PID/root$BPFFS/pin"
}

test_hooks_of_tracepoints()
{
	start_attach
	ask load "$OUTPUT/hooks.bpf.o"
	ask attach
	mapfile -t HELD_IDS < <(cat "/proc/$HOLDER_PID/fdinfo"/* 2>/dev/null | sed -n 's/^prog_id:\t//p' | sort -nu)
	owners
	hooks >"$TMP/got"
	printf '%s\n' 'on_raw_tp raw_tracepoint sched_process_exit' 'on_tp tracepoint sched_process_exit' >"$TMP/want"
	same "hooks" "$TMP/want" "$TMP/got"
}

# Print NAME HOOK of each program in $TMP/owners.
hooks()
{
	python3 -S -c 'import json, sys
for program in json.load(open(sys.argv[1])):
    print(program["name"], program["metadata"].get("hook"))' "$TMP/owners" | sort
}

# No process holds the programs, and they are not pinned.
test_hooks_of_an_interface()
{
	local network

	command -v tc >/dev/null || skip "tc is not installed"
	# shellcheck disable=SC2016 # for the inner shell
	hold_command unshare --net --mount sh -c '
		mount -t bpf bpf "$BPFFS" && ip link add pbm0 type veth peer name pbm1 && tc qdisc add dev pbm0 clsact || exit
		"$1" prog load "$2" "$BPFFS/xdp" type xdp && "$1" net attach xdpgeneric pinned "$BPFFS/xdp" dev pbm0 &&
			"$1" prog load "$3" "$BPFFS/tc" type classifier &&
			tc filter add dev pbm0 ingress bpf direct-action object-pinned "$BPFFS/tc" &&
			"$1" prog load "$3" "$BPFFS/fd" type flow_dissector && "$1" prog attach pinned "$BPFFS/fd" flow_dissector || exit
		for pin in xdp tc fd; do
			"$1" prog show pinned "$BPFFS/$pin" | sed -n "s/^\([0-9]*\): .* name \([^ ]*\) .*/\1 \2/p"
			rm "$BPFFS/$pin"
		done
		echo ready
		exec cat' sh "$BPFTOOL" "$OUTPUT/xdp_v1.bpf.o" "$OUTPUT/simple.bpf.o"
	RUN=(nsenter --net --target "$HOLDER_PID")
	owners
	want "${HELD_IDS[0]}" hook "xdp pbm0"
	want "${HELD_IDS[1]}" hook "tc ingress pbm0"
	want "${HELD_IDS[2]}" hook "flow_dissector"
	network=net:[$(stat -L -c %i "/proc/$HOLDER_PID/ns/net")]
	RUN=()
	owners
	want "${HELD_IDS[0]}" hook "xdp pbm0 $network"
	want "${HELD_IDS[1]}" hook "tc ingress pbm0 $network"
	want "${HELD_IDS[2]}" hook "flow_dissector $network"
	# A file that is no namespace comes first.
	# shellcheck disable=SC2016 # for the inner shell
	RUN=(unshare --mount sh -c 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && cd /run/netns && touch a blue &&
		mount --bind "/proc/$1/ns/net" blue && shift && exec "$@"' sh "$HOLDER_PID")
	owners
	want "${HELD_IDS[0]}" hook "xdp pbm0 netns blue"
}

test_hooks_of_struct_ops()
{
	"$BPFTOOL" struct_ops register "$OUTPUT/struct_ops.bpf.o" >"$TMP/registered" 2>&1 ||
		skip "this kernel registers no struct_ops: $(tail -n 1 "$TMP/registered")"
	"$BPFTOOL" -j prog show | python3 -c 'import json, sys
print(*(prog["id"] for prog in json.load(sys.stdin) if prog["type"] == "struct_ops" and prog["name"].startswith("pbm_")))' >"$TMP/ids"
	read -r -a HELD_IDS <"$TMP/ids"
	owners
	"$BPFTOOL" struct_ops unregister name pbm_tcp >/dev/null
	hooks >"$TMP/got"
	printf 'pbm_%s struct_ops tcp_congestion_ops pbm_tcp\n' cong_avoid ssthresh undo_cwnd >"$TMP/want"
	same "hooks" "$TMP/want" "$TMP/got"
}

# What bpftool prints on other kernels, and newer bpftools
test_hooks_that_this_kernel_lacks()
{
	local kernel_function

	kernel_function=$("$BPFTOOL" btf dump file /sys/kernel/btf/vmlinux format raw | sed -n "s/^\[\([0-9]*\)\] FUNC 'vfs_read'.*/\1/p")
	[[ -n $kernel_function ]] || skip "this kernel has no BTF"
	hold_command "$INHERIT" cat
	id="\"prog_id\":${HELD_IDS[0]}"
	fake_bpftool "case \"\$*\" in
		*link*) echo '[{\"type\":\"tracing\",$id,\"attach_type\":\"trace_fentry\",\"target_obj_id\":1,\"target_btf_id\":$kernel_function},
			{\"type\":\"tracing\",$id,\"attach_type\":\"trace_fexit\",\"target_obj_id\":7,\"target_btf_id\":1},
			{\"type\":\"iter\",$id,\"target_name\":\"bpf_map\"}, {\"type\":\"netns\",$id,\"netns_ino\":4026531840,\"attach_type\":\"sk_lookup\"},
			{\"type\":\"kprobe_multi\",$id,\"retprobe\":true,\"func_cnt\":2,\"funcs\":[{\"func\":\"vfs_read\"},{\"func\":\"vfs_write\"}]},
			{\"type\":\"netfilter\",$id,\"pf\":2,\"hook\":1,\"prio\":0,\"flags\":0},
			{\"type\":\"tracing\",$id,\"prog_type\":\"ext\",\"attach_type\":\"cgroup_inet_ingress\",\"target_obj_id\":42,\"target_btf_id\":7},
			{\"type\":\"uprobe_multi\",$id,\"retprobe\":false,\"path\":\"/bin/sh\"}, {\"type\":99,$id}]'; exit ;;
		*perf*) echo '[{\"pid\":1,\"fd\":5,$id,\"fd_type\":\"kprobe\",\"func\":\"do_exit\",\"offset\":0},
			{\"pid\":1,\"fd\":6,$id,\"fd_type\":\"uprobe\",\"filename\":\"/bin/cat\",\"offset\":9}]'; exit ;;
		*net*) echo '[{\"xdp\":[{\"devname\":\"e0\",\"ifindex\":2,\"multi_attachments\":[{\"mode\":\"driver\",\"id\":${HELD_IDS[0]}}]}],
			\"tc\":[{\"devname\":\"e0\",\"ifindex\":2,\"kind\":\"tcx/egress\",$id}, {\"devname\":\"e1\",\"ifindex\":3,\"kind\":\"htb\",\"id\":${HELD_IDS[0]}}],
			\"flow_dissector\":[],\"netfilter\":[{\"error\":\"no link info\"}]}]'; exit ;;
	esac"
	RUN=(env PATH="$BIN:$PATH")
	owners
	tr -d '\n' >"$TMP/want" <<-'END'
		fentry vfs_read, fexit, freplace program 42, htb e1, iter bpf_map, kprobe do_exit, kretprobe vfs_read, kretprobe vfs_write, 
		netfilter ipv4 input, sk_lookup net:[4026531840], tcx egress e0, uprobe /bin/cat, uprobe /bin/sh, xdp e0
	END
	want "${HELD_IDS[0]}" hook "$(cat "$TMP/want")"
}

# runs_cats PID N: the PID namespace of this process has N processes "cat"
runs_cats()
{
	(($(pgrep --ns "$1" --nslist pid -x -c cat) == $2))
}

# count_calls N COMMAND...: print the number of system calls with N programs and processes of this command
count_calls()
(
	trap release EXIT
	hold_command unshare --pid --fork --kill-child --mount --mount-proc "$INHERIT" -n "$1" -p "$1" "${@:2}"
	init=$(pgrep -P "$HOLDER_PID")
	await "all processes" runs_cats "$init" "$1"
	nsenter --pid --mount --target "$init" strace -f -c -o "$TMP/strace" "$OWNERS" --json >"$TMP/owners"
	grep -o '"pid": "[0-9]*"' "$TMP/owners" | sort -u | wc -l >"$TMP/processes"
	(($(<"$TMP/processes") >= $1)) || fail "not $1, but $(<"$TMP/processes") processes"
	awk '$NF == "total" { print $(NF - 1) ~ /^[0-9]+$/ && NF == 6 ? $4 : $(NF - 1) }' "$TMP/strace"
)

# check_linear N MOST COMMAND...: each process of COMMAND, which becomes cat, and its program cost at
# most MOST system calls. Calls that are independent of N cancel out in the differences of three counts.
check_linear()
{
	local n=$1 one two three

	command -v strace >/dev/null || skip "strace is not installed"
	one=$(count_calls "$n" "${@:3}")
	two=$(count_calls $((2 * n)) "${@:3}")
	three=$(count_calls $((3 * n)) "${@:3}")
	echo "$n: $one, $((2 * n)): $two, $((3 * n)): $three"
	(((three - two) * 100 <= (two - one) * 115)) || fail "the second $n cost $((two - one)) system calls, the third $((three - two))"
	((three - two <= $2 * n)) || fail "$(((three - two) / n)) system calls for a program and a process"
}

test_system_calls_are_linear()
{
	check_linear 40 80 cat
}

# Each process has its own network namespace, and a pin in its own mount namespace.
test_system_calls_are_linear_in_namespaces()
{
	# shellcheck disable=SC2016 # for the inner shell
	check_linear 4 2000 unshare --net --mount sh -c 'mount -t bpf bpf "$BPFFS" &&
		"$1" map create "$BPFFS/pin" type array key 4 value 4 entries 1 name pin && exec cat' sh "$BPFTOOL"
}

run_tests
