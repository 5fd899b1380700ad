#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The output of tools/bpf-owners about programs of known owners. The tests compare packages with
# dpkg-query, and build IDs with readelf.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/attach.sh"

OWNERS=$SELFTESTS/../tools/bpf-owners
INHERIT=$SELFTESTS/lib/inherit.py
CAT=$(readlink -f "$(type -P cat)")
SHELL_EXE=$(readlink -f "$(type -P sh)")
ID_64=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
# An optional command before bpf-owners: to run in another namespace, with another PATH
RUN=()

# Make the directories of a test: programs, a generated /proc, the mount point of a BPF file system.
start_test()
{
	export BIN=$TMP/bin PROC=$TMP/proc BPFFS=$TMP/bpffs CGROUP=

	native_only "bpf-owners does not depend on the processor"
	rm -rf "$BIN" "$PROC" "$BPFFS"
	mkdir "$BIN" "$PROC" "$BPFFS"
}

# owners_say STATUS ERE OPTION...: write the lines "ID NAME KEY=VALUE" of the held programs to $TMP/owners,
# from the JSON of bpf-owners. Check the form of the JSON, and that the status is STATUS. There must be a
# message that matches ERE, and all must; with "", there must be none. Some machines have a process that
# even root may not read.
owners_say()
{
	local status=0

	"${RUN[@]}" "$OWNERS" --json "${@:3}" "${HELD_IDS[@]}" >"$TMP/json" 2>"$TMP/owners.err" || status=$?
	cat "$TMP/owners.err"
	[[ $status = "$1" ]] || fail "bpf-owners: status $status"
	sed -i -E '/^bpf-owners: processes whose descriptors cannot be read: [0-9]+$/d' "$TMP/owners.err"
	if [[ -n $2 ]]; then
		grep -q -x -E -e "bpf-owners: ($2)" "$TMP/owners.err" || fail "bpf-owners does not say: $2"
	fi
	if grep -v -x -E -e "bpf-owners: ($2)" "$TMP/owners.err"; then
		fail "bpf-owners prints an unexpected message"
	fi
	python3 -S - "$TMP/json" <<-'END' >"$TMP/owners"
		import json, re, sys
		raw = open(sys.argv[1], "rb").read()
		assert re.fullmatch(rb"[ -~\n]*", raw), "not only printable ASCII"
		for program in json.loads(raw or "[]"):
		    assert list(program) == ["id", "name", "metadata"], program
		    assert type(program["id"]) is int and type(program["name"]) is str, program
		    for key, value in program["metadata"].items():
		        assert re.fullmatch("[A-Za-z0-9_]{1,63}", key), key
		        assert type(value) is str and value and value.isprintable(), value
		        print(program["id"], program["name"] or "-", f"{key}={value}")
	END
}

# owners OPTION...: the same, and fail unless bpf-owners ends with 0 and prints no messages
owners()
{
	owners_say 0 '' "$@"
}

# want INDEX KEY=VALUE...: fail unless held program INDEX has these values; an empty VALUE means that there is
# no such key
want()
{
	local name="${HELD_IDS[$1]} ${HELD_NAMES[$1]}" pair

	for pair in "${@:2}"; do
		if [[ $pair = *= ]]; then
			! grep "^${HELD_IDS[$1]} [^ ]* $pair" "$TMP/owners" || fail "$name has a value of $pair"
		else
			grep -q -x -F -e "$name $pair" "$TMP/owners" ||
				fail "no $pair in: $(grep "^${HELD_IDS[$1]} " "$TMP/owners")"
		fi
	done
}

# becomes INDEX KEY=VALUE: succeed if this is the value now
becomes()
{
	owners
	(want "$@") >/dev/null
}

# package_of FILE: print the package that contains this executable, and its version
package_of()
{
	local package

	command -v dpkg-query >/dev/null || skip "no dpkg-query here, and the test knows no other packages"
	package=$(dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}")
	package=${package%%:*}
	echo "$package $(dpkg-query -W -f '${Version}' "$package")"
}

# build_id FILE: print the build ID of an ELF file
build_id()
{
	command -v readelf >/dev/null || skip "no readelf here"
	readelf -n "$1" | sed -n 's/^ *Build ID: //p'
}

# Print the processes that inherit.py has started.
child_pids()
{
	pgrep -P "$HOLDER_PID" | paste -s -d , | sed 's/,/, /g'
}

# Hold programs in a mount namespace with its own BPF file system. Both go away with the holder, and so does
# CGROUP. The shell commands $1 can load $OUTPUT/OBJECT.bpf.o with "load OBJECT PIN OPTION...".
hold_with_bpffs()
{
	# shellcheck disable=SC2016 # for the inner shell
	hold_command unshare --mount --net sh -c '
		trap "[ -z \"\$CGROUP\" ] || rmdir \"\$CGROUP\"" EXIT
		load()
		{
			object=$1 pin=$BPFFS/$2
			shift 2
			"$BPFTOOL" prog load "$OUTPUT/$object.bpf.o" "$pin" "$@" || exit
			"$BPFTOOL" prog show pinned "$pin" | sed -n "s/^\\([0-9]*\\): .* name \\([^ ]*\\) .*/\\1 \\2/p"
		}
		mount -t bpf bpf "$BPFFS" || exit
		'"$1" sh "${@:2}"
	RUN=(nsenter --mount --net --target "$HOLDER_PID")
}

# make_process PID INDEX CGROUPS [EXECUTABLE]: add a process, which holds program INDEX, to the generated
# /proc
make_process()
{
	local dir=$PROC/$1

	mkdir -p "$dir/fd" "$dir/fdinfo"
	ln -sfn anon_inode:bpf-prog "$dir/fd/5"
	ln -sfn /dev/null "$dir/fd/6"
	printf 'pos:\t0\nflags:\t02000002\nprog_tag:\t0123456789abcdef\nprog_id:\t%s\n' "${HELD_IDS[$2]}" >"$dir/fdinfo/5"
	printf '%b' "$3" >"$dir/cgroup"
	printf 'made-up\n' >"$dir/comm"
	ln -sfn "${4:-$CAT}" "$dir/exe"
}

test_executables_and_their_packages()
{
	local i id package

	hold simple none
	owners
	id=$(build_id "$OUTPUT/hold")
	for i in 0 1; do
		want "$i" pid="$HOLDER_PID" comm=hold exe="$OUTPUT/hold" package= build_id="$id"
	done
	release
	hold_command "$INHERIT" cat
	owners
	id=$(build_id "$CAT")
	package=$(package_of "$CAT")
	want 0 pid="$(child_pids)" exe="$CAT" build_id="$id" package="$package"
	# dpkg reads names as patterns.
	if [[ -x /usr/bin/[ ]]; then
		make_process 1 0 '0::/\n' '/usr/bin/['
		owners --proc "$PROC"
		want 0 exe='/usr/bin/[' package="$package"
	fi
	# One file with two names
	cp "$CAT" "$BIN/one"
	ln "$BIN/one" "$BIN/two"
	make_process 1 0 '0::/\n' "$BIN/one"
	make_process 2 0 '0::/\n' "$BIN/two"
	owners --proc "$PROC"
	want 0 exe="$BIN/one, $BIN/two"
}

# In the namespace of the holder, another directory is mounted over that of the package. Then the executable
# is replaced.
test_another_file_at_the_path_of_a_package()
{
	local id

	cp "$CAT" "$BIN/${CAT##*/}"
	# shellcheck disable=SC2016 # for the inner shell
	hold_command "$INHERIT" unshare --mount sh -c 'mount --bind "$1" "${2%/*}" && exec "$2"' sh "$BIN" "$CAT"
	dpkg-query -S "$CAT" || dpkg-query -S "${CAT#/usr}" ||
		skip "no package owns $CAT, so none can be named by mistake"
	await "cat to run" becomes 0 exe="$CAT"
	id=$(build_id "$CAT")
	want 0 package= build_id="$id"
	cp "$SHELL_EXE" "$TMP/new"
	mv "$TMP/new" "$BIN/${CAT##*/}"
	owners
	want 0 exe="$CAT (deleted)" package= build_id="$id"
}

# The programs that bpf-owners runs log their arguments.
test_package_managers_are_asked_once_and_never_for_containers()
{
	local package

	package=$(package_of "$CAT")
	printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"%s"\nexec "%s" "$@"\n' "$TMP/dpkg-query" \
		"$(type -P dpkg-query)" >"$BIN/dpkg-query"
	printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"%s"\necho "by-rpm 1.0-2"\n' "$TMP/rpm" >"$BIN/rpm"
	printf '#!/bin/sh\necho "$*" >>"%s"\nexec "%s" "$@"\n' "$TMP/bpftool" "$(type -P "$BPFTOOL")" >"$BIN/bpftool"
	chmod +x "$BIN/"*
	RUN=(env "PATH=$BIN:$PATH")
	hold_command "$INHERIT" -n 100 -p 100 cat
	owners
	[[ $(grep -c -e "^-S $CAT" "$TMP/dpkg-query") = 1 ]] || fail "not one query, but $(cat "$TMP/dpkg-query")"
	# Other namespaces of the machine and their pins also cost some calls.
	(($(wc -l <"$TMP/bpftool") < 100)) || fail "bpftool runs for each program: $(cat "$TMP/bpftool")"
	rm -f "$TMP/dpkg-query" "$TMP/rpm"
	make_process 7 0 "0::/docker/$ID_64\n"
	owners --proc "$PROC"
	want 0 exe="$CAT" package=
	[[ ! -e $TMP/dpkg-query && ! -e $TMP/rpm ]] || fail "queries of a container"
	# Processes of the host: one has the same executable, dpkg does not know the other one.
	make_process 8 1 '0::/\n' "$OUTPUT/hold"
	make_process 9 2 '0::/\n'
	owners --proc "$PROC"
	want 0 package=
	want 1 package="by-rpm 1.0-2"
	[[ $(cat "$TMP/rpm") = "-qf --qf %{NAME} %{VERSION}-%{RELEASE}"$'\n'" $OUTPUT/hold" ]] ||
		fail "rpm $(cat "$TMP/rpm")"
	want 2 package="$package"
}

# The package in an executable's note is that of a container. Of a file of this host, it is a mere claim.
# Every second note is in a section that is not part of a segment, where Go puts the build ID.
test_package_notes()
{
	local i notes=('{"type":"deb","name":"in","version":"1.0-1","architecture":"all"}' '{"name":"named"}'
		'{"name":"esc\u001b"}' '{"name":' '{"version":"1"}' '["name"]' '{"name":{"name":"a"}}' '{"name":""}')
	local packages=('in 1.0-1' named 'esc\x1b' '' '' '' '' '')

	hold_command "$INHERIT" -n "${#notes[@]}" cat
	for i in "${!notes[@]}"; do
		python3 -S - "${notes[i]}" "$TMP/$i" $((i % 2)) <<-'END'
			import struct, sys
			section = int(sys.argv[3])
			content = sys.argv[1].encode() + b"\0"
			note = struct.pack("<3I", 4, len(content), 0xcafe1a7e) + b"FDO\0" + content
			header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
			    "<2HI3QI6H", 2, 62, 1, 0, 0 if section else 64, section * 64, 0, 64, 56, 1 - section, 64, section, 0)
			entry = struct.pack("<2I4Q2I2Q", 0, 7, 0, 0, 128, len(note), 0, 0, 4, 0) if section else struct.pack(
			    "<2I6Q", 4, 4, 120, 0, 0, len(note), len(note), 4)
			open(sys.argv[2], "wb").write(header + entry + note)
		END
		make_process $((100 + i)) "$i" "0::/docker/$ID_64\n" "$TMP/$i"
	done
	owners --proc "$PROC"
	for i in "${!notes[@]}"; do
		want "$i" package="${packages[i]}"
	done
	make_process 100 0 "0::/\n" "$TMP/0"
	owners --proc "$PROC"
	want 0 package=
}

# bpf-owners goes on after wrong ELF headers and notes. The processes are in containers, so that
# bpf-owners asks no package manager.
test_broken_executables()
{
	local i

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
	for i in "${!HELD_IDS[@]}"; do
		make_process $((i + 1)) "$i" "0::/docker/$ID_64\n" "$TMP/exe/$i"
	done
	mkfifo "$TMP/fifo"
	ln -sfn "$TMP/fifo" "$PROC/1/exe"
	RUN=(timeout $((30 * SCALE)))
	owners --proc "$PROC"
	want 299 exe="$TMP/exe/299"
}

# A line is a cgroup as in /proc/PID/cgroup, the unit, and the container.
test_units_and_containers()
{
	local cases i cgroups unit container

	mapfile -t cases <<-END
		0::/system.slice/ssh.service|ssh.service|
		0::/system.slice/ssh.service/a/b|ssh.service|
		0::/init.scope||
		0::/||
		0::/a.service.d/b||
		0::/user.slice/user-0.slice/user@0.service/init.scope|user@0.service|
		0::/system.slice/docker-$ID_64.scope|docker-$ID_64.scope|$ID_64
		0::/docker/$ID_64||$ID_64
		0::/docker/$ID_64/system.slice/in.service||$ID_64
		0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-$ID_64.scope|cri-containerd-$ID_64.scope|$ID_64
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
	for i in "${!cases[@]}"; do
		make_process $((100 + i)) "$i" "${cases[i]%%|*}\n"
	done
	owners --proc "$PROC"
	for i in "${!cases[@]}"; do
		IFS='|' read -r cgroups unit container <<<"${cases[i]}"
		echo "$cgroups"
		want "$i" unit="$unit" container="$container"
	done
}

# Process ids are in the order of numbers, other values in that of text. The kernel refuses to print the
# name of a cgroup that is too long.
test_values_of_several_processes()
{
	local pid long

	hold_command "$INHERIT" -n 2 cat
	for pid in 100 9 20; do
		make_process "$pid" 0 "0::/system.slice/unit-$pid.service\n"
	done
	ln -sfn "$SHELL_EXE" "$PROC/9/exe"
	printf 'python3\0-c\0a\nb\0' >"$PROC/100/cmdline"
	make_process 101 1 ''
	ln -sfn "$(printf %0300d 0)" "$PROC/101/cgroup"
	long=$(printf %0300d 0)
	printf 'cat\0%s\0' "$long" >"$PROC/101/cmdline"
	: >"$PROC/9/cmdline"
	: >"$PROC/20/cmdline"
	owners --proc "$PROC" --cmdline
	want 0 pid="9, 20, 100" unit="unit-100.service, unit-20.service, unit-9.service" exe="$CAT, $SHELL_EXE" \
		cmdline='python3 -c a\x0ab'
	want 1 cmdline="cat ${long:0:196}..." exe="$CAT"
	owners --proc "$PROC"
	want 0 cmdline=
}

test_hostile_names_are_escaped()
{
	local names=($'new\nline' $'esc\e[2J' $'bad\xff\xc3' $'c1\xc2\x9b2J' $'bidi\xe2\x80\xae' 'quo"te\n' 'a, b') i
	local escaped=('new\x0aline' 'esc\x1b[2J' 'bad\xff\xc3' 'c1\u009b2J' 'bidi\u202e' 'quo"te\n' 'a,\x20b')

	hold_command "$INHERIT" -n "${#names[@]}" cat
	for i in "${!names[@]}"; do
		cp "$CAT" "$TMP/${names[i]}"
		make_process $((i + 1)) "$i" '0::/\n' "$TMP/${names[i]}"
		printf '%s\n' "${names[i]}" >"$PROC/$((i + 1))/comm"
	done
	owners --proc "$PROC"
	for i in "${!names[@]}"; do
		want "$i" exe="$TMP/${escaped[i]}" comm="${escaped[i]}" package=
	done
	"$OWNERS" --proc "$PROC" "${HELD_IDS[@]}" >"$TMP/table" 2>/dev/null
	if LC_ALL=C.UTF-8 grep -a -v -x -P '[\x20-\x7e]*' "$TMP/table"; then
		fail "the table has characters that are not printable"
	fi
	LC_ALL=en_US.ISO-8859-1 "$OWNERS" --perf --proc "$PROC" "${HELD_IDS[@]}" >"$TMP/got" 2>/dev/null
	same "lines of --perf" "$TMP/owners" "$TMP/got"
	! "$OWNERS" --perf --json 2>/dev/null || fail "--perf and --json are accepted"
}

test_perf_inject_adds_the_lines()
{
	hold_command "$INHERIT" cat
	owners
	record "$TMP/data"
	"$PBM_PERF" inject --bpf-metadata-add "$TMP/owners" -i "$TMP/data" -o "$TMP/added" 2>"$TMP/messages"
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
	"$PBM_PERF" report --header-only -i "$TMP/added" >"$TMP/header"
	grep -q "^# bpf_metadata ${HELD_IDS[0]} .*exe=\"$CAT\"" "$TMP/header" || fail "no exe: $(cat "$TMP/header")"
}

# wants_row ERE: fail unless the table of the held programs has this row; write $TMP/table
wants_row()
{
	"$OWNERS" "${@:2}" "${HELD_IDS[@]}" >"$TMP/table" 2>/dev/null
	cat "$TMP/table"
	grep -q -x -E -e "${HELD_IDS[0]} +$1" "$TMP/table" || fail "no row: $1"
}

# No name and no path is cut, so grep finds them. The table is as wide as it must be. What is unknown is a
# dash.
test_the_table_cuts_no_name()
{
	local directory=$TMP/$ID_64/$ID_64

	mkdir -p "$directory"
	cp "$CAT" "$directory/0123456789"
	hold_command "$INHERIT" -p 7 -s "$directory/0123456789"
	owners
	want 0 pid="$(child_pids)" comm=0123456789
	wants_row "inherited .* exe $directory/0123456789"
	[[ $(grep -c "^ *+3\>" "$TMP/table") = 1 ]] || fail "the table does not count the three other processes"
	wants_row "inherited +- +- +-" --proc "$PROC"
	owners --proc "$PROC"
	grep -q -x -F "[{\"id\": ${HELD_IDS[0]}, \"name\": \"inherited\", \"metadata\": {}}]" "$TMP/json" ||
		fail "the JSON of an unknown owner is $(<"$TMP/json")"
	release
	hold long_name
	wants_row "function_x{100,} .*"
}

# No process holds the first two programs. A process has a descriptor of the link of the third one, but none
# of the program. The cgroup has a hostile name.
test_pins_cgroups_and_links()
{
	local mount root

	mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[[ -n $mount ]] || skip "no cgroup2 file system is mounted"
	CGROUP=$mount/pbm-$$-$'it\'s "\e[2J\xff\\'
	mkdir "$CGROUP"
	"$INHERIT" -l "$CGROUP" true >/dev/null || {
		rmdir "$CGROUP"
		skip "this kernel attaches no programs to cgroups (CONFIG_CGROUP_BPF)"
	}
	export BPFTOOL
	# shellcheck disable=SC2016 # for the inner shell
	hold_with_bpffs '
		load simple "it'\''s" && mkdir "$BPFFS/dir" &&
			"$BPFTOOL" prog pin pinned "$BPFFS/it'\''s" "$BPFFS/dir/b" || exit
		load simple pin type cgroup/skb &&
			"$BPFTOOL" cgroup attach "$CGROUP" egress pinned "$BPFFS/pin" multi || exit
		rm "$BPFFS/pin"
		"$1" -l "$CGROUP" cat' "$INHERIT"
	link=$("$BPFTOOL" link show | sed -n "s/^\([0-9]*\): cgroup  prog ${HELD_IDS[2]} *$/\1/p")
	"${RUN[@]}" "$BPFTOOL" link pin id "$link" "$BPFFS/link"
	owners
	root="${CGROUP%%$'\e'*}\\x1b[2J\\xff\\"
	want 0 pinned="$BPFFS/dir/b, $BPFFS/it's" pid= exe=
	want 1 cgroup="$root" pinned= pid=
	want 2 cgroup="$root" pinned="$BPFFS/link" exe="$CAT"
	root=${root#/sys/fs/cgroup}
	want 1 hook="cgroup ${root#/unified} inet_egress"
	# Another mount namespace has only a directory of this file system.
	# shellcheck disable=SC2016 # for the inner shell
	"${RUN[@]}" unshare --mount sh -c 'mount --bind "$BPFFS/dir" "$BIN" && umount -l "$BPFFS" && : >"$1" && exec sleep 60' \
		sh "$TMP/mounted" &
	await "the mounts" test -e "$TMP/mounted"
	owners
	kill "$!"
	want 0 pinned="$BPFFS/dir/b, $BPFFS/it's"
	RUN=()
	owners
	root=/proc/$HOLDER_PID/root$BPFFS
	want 0 pinned="$root/dir/b, $root/it's"
	want 2 pinned="$root/link"
}

# as_user MESSAGE STATUS SETPRIV-OPTIONS OPTION...: run a copy of bpf-owners under setpriv. Fail unless it
# ends with STATUS and its messages about capabilities name just those in MESSAGE.
as_user()
{
	local status=0

	chmod 711 "$TMP"
	mkdir -p "$TMP/nobody"
	cp "$OWNERS" "${OWNERS%/*}/bpf_samples.py" "$TMP/nobody"
	chmod -R a+rX "$TMP/nobody"
	# shellcheck disable=SC2086 # several options
	setpriv $3 "$TMP/nobody/bpf-owners" --json "${@:4}" >"$TMP/json" 2>"$TMP/owners.err" || status=$?
	cat "$TMP/json" "$TMP/owners.err"
	[[ $status = "$2" ]] || fail "status $status"
	{
		sed -n 's/.* prog show: .*not permitted (.* \(CAP_SYS_ADMIN\))$/\1/p' "$TMP/owners.err"
		sed -n 's/.* cannot be read: [0-9]* (this needs \(CAP_SYS_PTRACE\))$/\1/p' "$TMP/owners.err"
	} | paste -s -d ' ' >"$TMP/got"
	echo "$1" >"$TMP/want"
	same "capabilities in the messages" "$TMP/want" "$TMP/got"
}

# An ordinary user sees only the programs of own processes.
test_without_privilege()
{
	local nobody="--reuid 65534 --regid 65534 --clear-groups"

	hold_command "$INHERIT" cat
	as_user "CAP_SYS_ADMIN CAP_SYS_PTRACE" 2 "$nobody"
	[[ ! -s $TMP/json ]] || fail "bpf-owners prints programs"
	as_user CAP_SYS_PTRACE 0 "--bounding-set -sys_ptrace --inh-caps -sys_ptrace" "${HELD_IDS[0]}"
	grep -q '"name": "inherited", "metadata": {}' "$TMP/json" || fail "the program is not listed"
	release
	# shellcheck disable=SC2086 # several options
	hold_command "$INHERIT" setpriv $nobody cat
	await "setpriv to run cat" becomes 0 exe="$CAT"
	as_user "CAP_SYS_ADMIN CAP_SYS_PTRACE" 0 "$nobody" "${HELD_IDS[0]}"
	grep -q -F "\"exe\": \"$CAT\"" "$TMP/json" || fail "the program of the user's own process is not listed"
}

# fake_bpftool CASES: let bpf-owners run a bpftool where these cases of a shell's "case" replace the output
fake_bpftool()
{
	printf '#!/bin/sh\ncase "$*" in\n%s\n*) exec "%s" "$@" ;;\nesac\n' "$1" "$(type -P "$BPFTOOL")" >"$BIN/bpftool"
	chmod +x "$BIN/bpftool"
	RUN=(env PATH="$BIN:$PATH")
}

# What bpftool can't print is left out, with a message and status 1.
test_what_is_left_out_is_an_error()
{
	local status=0

	hold simple none
	owners_say 1 'no program has the id 4294967295' 4294967295
	want 0 exe="$OUTPUT/hold"
	"$OWNERS" --no-such-option 2>/dev/null || status=$?
	((status == 2)) || fail "a wrong option: status $status"
	fake_bpftool "*cgroup*) echo '{\"error\":\"no such command\"}'; exit 1 ;;"
	owners_say 1 'bpftool cgroup tree: no such command'
	want 0 exe="$OUTPUT/hold"
	fake_bpftool "*net*) echo '[{\"xdp\":[{\"devname\":\"e0\"}],\"tc\":[]}]' ;;"
	owners_say 1 'bpftool prints something unknown in its list of net: .*'
	want 0 exe="$OUTPUT/hold"
	# A list that ends with an error, and has unknown items
	fake_bpftool "*'-f prog show') echo '[{\"id\":${HELD_IDS[0]},\"name\":\"simple\"},{\"name\":5},{\"error\":\"no info\"}]' ;;"
	owners_say 1 'bpftool prog show: no info|bpftool prints something unknown in its list of programs: .*'
	want 0 exe="$OUTPUT/hold"
	# The list is not JSON if one program is not. Broken metadata, such as that of a floating point number,
	# is not needed.
	fake_bpftool "*'-j -f prog show') echo '[{\"id\":' ;;
		*' id ${HELD_IDS[0]}') echo '{\"id\":${HELD_IDS[0]},\"name\":\"simple\",\"metadata\":{\"a\":1.5,\"b\":0x}}' ;;"
	owners
	want 0 exe="$OUTPUT/hold"
	want 1 exe="$OUTPUT/hold"
	fake_bpftool "*'-j -f prog show'|*' id ${HELD_IDS[0]}') echo '[{\"id\":' ;;"
	owners_say 1 "program ${HELD_IDS[0]}: bpftool prints no JSON; see .*"
	want 1 exe="$OUTPUT/hold"
	HELD_NAMES[0]=-
	want 0 exe="$OUTPUT/hold"
}

test_programs_and_processes_that_go_away()
{
	hold_command "$INHERIT" cat
	while :; do
		"$INHERIT" -n 8 -p 8 true >/dev/null
	done </dev/null &
	for _ in {1..15}; do
		"$OWNERS" --json >"$TMP/all" 2>>"$TMP/all.err"
		owners
		want 0 exe="$CAT"
	done
	if grep -v 'cannot be read: [0-9]*$' "$TMP/all.err"; then
		fail "an unexpected message"
	fi
}

# Links and names in the BPF file system of a container claim nothing. bpf-owners reads only a part of it.
test_a_hostile_bpf_file_system()
{
	export BPFTOOL
	# shellcheck disable=SC2016 # for the inner shell
	hold_with_bpffs 'load simple pin; echo ready; exec cat'
	# shellcheck disable=SC2016 # for the inner shell
	"${RUN[@]}" sh -c 'cd "$BPFFS" && ln -s pin link && ln -s /none "a\"id\":$1," && mkdir other && mount --bind / other && i=0
		while [ $i -lt 1100 ]; do
			mkdir d && cd d || exit
			i=$((i + 1))
		done' sh "${HELD_IDS[0]}"
	RUN=()
	owners_say 1 "/proc/$HOLDER_PID/root: more than 1000 files in BPF file systems"
	want 0 pinned="/proc/$HOLDER_PID/root$BPFFS/pin"
}

# want_hooks <<END: fail unless the lines are NAME HOOK of the programs in $TMP/owners
want_hooks()
{
	sed -n 's/^[0-9]* \([^ ]*\) hook=/\1 /p' "$TMP/owners" | sort >"$TMP/got"
	cat >"$TMP/want"
	same "hooks" "$TMP/want" "$TMP/got"
}

test_hooks_of_tracepoints()
{
	start_attach
	ask load "$OUTPUT/hooks.bpf.o"
	ask attach
	mapfile -t HELD_IDS < <(cat "/proc/$HOLDER_PID/fdinfo"/* 2>/dev/null | sed -n 's/^prog_id:\t//p' | sort -nu)
	owners
	printf '%s\n' 'on_raw_tp raw_tracepoint sched_process_exit' 'on_tp tracepoint sched_process_exit' | want_hooks
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
	printf 'pbm_%s struct_ops tcp_congestion_ops pbm_tcp\n' cong_avoid ssthresh undo_cwnd | want_hooks
}

# No process holds the programs, and they are not pinned.
test_hooks_of_an_interface()
{
	command -v tc >/dev/null || skip "tc is not installed"
	export BPFTOOL
	# shellcheck disable=SC2016 # for the inner shell
	hold_with_bpffs '
		ip link add pbm0 type veth peer name pbm1 && tc qdisc add dev pbm0 clsact || exit
		load xdp_v1 xdp type xdp && "$BPFTOOL" net attach xdpgeneric pinned "$BPFFS/xdp" dev pbm0 || exit
		load simple tc type classifier &&
			tc filter add dev pbm0 ingress bpf direct-action object-pinned "$BPFFS/tc" || exit
		load simple fd type flow_dissector && "$BPFTOOL" prog attach pinned "$BPFFS/fd" flow_dissector || exit
		rm "$BPFFS"/*
		echo ready
		exec cat'
	want_hooks_with()
	{
		owners
		want 0 hook="xdp pbm0$1"
		want 1 hook="tc ingress pbm0$1"
		want 2 hook="flow_dissector$1"
	}
	want_hooks_with ""
	RUN=()
	want_hooks_with " net:[$(stat -L -c %i "/proc/$HOLDER_PID/ns/net")]"
	# A file that is no namespace comes first.
	# shellcheck disable=SC2016 # for the inner shell
	RUN=(unshare --mount sh -c 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && cd /run/netns && touch a blue &&
		mount --bind "/proc/$1/ns/net" blue && shift && exec "$@"' sh "$HOLDER_PID")
	want_hooks_with " netns blue"
}

# What bpftool prints on other kernels, and newer bpftools
test_hooks_that_this_kernel_lacks()
{
	local kernel_function

	kernel_function=$("$BPFTOOL" btf dump file /sys/kernel/btf/vmlinux format raw | sed -n "s/^\[\([0-9]*\)\] FUNC 'vfs_read'.*/\1/p")
	[[ -n $kernel_function ]] || skip "this kernel has no BTF"
	hold_command "$INHERIT" cat
	id="\"prog_id\":${HELD_IDS[0]}"
	fake_bpftool "
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
			\"flow_dissector\":[],\"netfilter\":[{\"error\":\"no link info\"}]}]'; exit ;;"
	owners
	tr -d '\n' >"$TMP/want" <<-'END'
		fentry vfs_read, fexit, freplace program 42, htb e1, iter bpf_map, kprobe do_exit, kretprobe vfs_read, kretprobe vfs_write, 
		netfilter ipv4 input, sk_lookup net:[4026531840], tcx egress e0, uprobe /bin/cat, uprobe /bin/sh, xdp e0
	END
	want 0 hook="$(cat "$TMP/want")"
}

run_tests
