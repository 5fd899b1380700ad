#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The output of tools/bpf-owners about programs of known owners. The tests compare packages with
# dpkg-query, and build IDs with readelf.
#
# shellcheck disable=SC2016 # Inner shells expand what is between single quotes.

. "$(dirname "$0")/../../lib/test-lib.sh"
. "$(dirname "$0")/../../lib/attach.sh"

OWNERS=$SELFTESTS/../tools/bpf-owners
INHERIT=$SELFTESTS/lib/inherit.py
CAT=$(readlink -f "$(type -P cat)")
SHELL_EXE=$(readlink -f "$(type -P sh)")
ID_64=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
CONTAINER=0::/docker/$ID_64
# An optional command before bpf-owners: to run in another namespace, with another PATH
RUN=()

# Make the directories of a test: programs, a generated /proc, the mount point of a BPF file system.
start_test()
{
	export BPFTOOL BIN=$TMP/bin PROC=$TMP/proc BPFFS=$TMP/bpffs CGROUP=

	native_only "bpf-owners does not depend on the processor"
	rm -rf "$BIN" "$PROC" "$BPFFS"
	mkdir "$BIN" "$PROC" "$BPFFS"
}

# owners_say STATUS MESSAGE[|MESSAGE...] OPTION...: write the lines "ID NAME KEY=VALUE" of the held programs
# to $TMP/owners. Fail unless bpf-owners ends with STATUS and prints just these messages (ERE). Some machines
# have a process that even root may not read.
owners_say()
{
	local status=0 messages message

	"${RUN[@]}" "$OWNERS" --perf "${@:3}" "${HELD_IDS[@]}" >"$TMP/owners" 2>"$TMP/owners.err" || status=$?
	cat "$TMP/owners.err"
	[[ $status = "$1" ]] || fail "bpf-owners: status $status"
	IFS='|' read -r -a messages <<<"$2"
	for message in "${messages[@]}"; do
		grep -q -x -E -e "bpf-owners: $message" "$TMP/owners.err" || fail "bpf-owners does not say: $message"
	done
	message='processes whose descriptors cannot be read: [0-9]+'
	if grep -v -x -E -e "bpf-owners: ($2|$message)" "$TMP/owners.err"; then
		fail "bpf-owners prints an unexpected message"
	fi
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

# fake NAME COMMANDS: let bpf-owners run these commands of sh in place of a program, whose path is $real
fake()
{
	printf '#!/bin/sh\nreal=%s log=%s\n%s\n' "$(type -P "$1" || :)" "$TMP/${1##*/}.log" "$2" >"$BIN/${1##*/}"
	chmod +x "$BIN/${1##*/}"
	RUN=(env "PATH=$BIN:$PATH")
}

# fake_bpftool CASES: the same for bpftool, where these cases of a shell's "case" replace the output
fake_bpftool()
{
	fake "$BPFTOOL" 'case "$*" in
		'"$1"'
		*) exec "$real" "$@" ;;
		esac'
}

# Hold programs in a mount namespace with its own BPF file system. Both go away with the holder, and so does
# CGROUP. The shell commands $1 can load $OUTPUT/OBJECT.bpf.o with "load OBJECT PIN OPTION...".
hold_with_bpffs()
{
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

# process PID INDEX [EXECUTABLE [CGROUPS]]: add a process, which holds program INDEX, to the generated /proc
process()
{
	local dir=$PROC/$1

	mkdir -p "$dir/fd" "$dir/fdinfo"
	ln -sfn anon_inode:bpf-prog "$dir/fd/5"
	ln -sfn /dev/null "$dir/fd/6"
	printf 'pos:\t0\nflags:\t02000002\nprog_tag:\t0123456789abcdef\nprog_id:\t%s\n' "${HELD_IDS[$2]}" >"$dir/fdinfo/5"
	printf '%b\n' "${4:-0::/}" >"$dir/cgroup"
	echo made-up >"$dir/comm"
	ln -sfn "${3:-$CAT}" "$dir/exe"
}

test_executables_and_their_packages()
{
	local package

	package=$(package_of "$CAT")
	hold_command "$INHERIT" cat
	owners
	want 0 pid="$(pgrep -P "$HOLDER_PID")" comm=cat exe="$CAT" build_id="$(build_id "$CAT")" package="$package"
	# dpkg reads names as patterns.
	process 1 0 '/usr/bin/['
	owners --proc "$PROC"
	want 0 exe='/usr/bin/[' package="$package"
	# One file with two names
	cp "$CAT" "$BIN/one"
	ln "$BIN/one" "$BIN/two"
	process 1 0 "$BIN/one"
	process 2 0 "$BIN/two"
	owners --proc "$PROC"
	want 0 exe="$BIN/one, $BIN/two"
	release
	# The kernel cannot name a file whose path is too long.
	# shellcheck disable=SC2016 # for the inner shell
	hold_command sh -c 'cd "$1" && for i in $(seq 25); do mkdir "$2" && cd -P "$2" || exit; done
		exec 3<. && cd "$OUTPUT" && exec ./hold simple.bpf.o' sh "$TMP" "$(printf 'long%.0s' {1..50})"
	owners
	want 0 exe="$OUTPUT/hold"
}

# In the namespace of the holder, another directory is mounted over that of the package. Then the executable
# is replaced.
test_another_file_at_the_path_of_a_package()
{
	local id

	cp "$CAT" "$BIN/${CAT##*/}"
	hold_command "$INHERIT" unshare --mount sh -c 'mount --bind "$1" "${2%/*}" && exec "$2"' sh "$BIN" "$CAT"
	package_of "$CAT" || skip "no package owns $CAT, so none can be named by mistake"
	await "cat to run" becomes 0 exe="$CAT"
	id=$(build_id "$CAT")
	want 0 package= build_id="$id"
	cp "$SHELL_EXE" "$TMP/new"
	mv "$TMP/new" "$BIN/${CAT##*/}"
	owners
	want 0 exe="$CAT (deleted)" package= build_id="$id"
}

test_package_managers_are_asked_once_and_never_for_containers()
{
	local package

	package=$(package_of "$CAT")
	fake dpkg-query 'echo "$*" >>"$log"; exec "$real" "$@"'
	fake rpm 'printf "%s\n" "$*" >>"$log"; echo "by-rpm 1.0-2"'
	fake "$BPFTOOL" 'echo "$*" >>"$log"; exec "$real" "$@"'
	hold_command "$INHERIT" -n 100 -p 10 cat
	owners
	[[ $(grep -c -e "^-S $CAT" "$TMP/dpkg-query.log") = 1 ]] ||
		fail "not one query, but $(<"$TMP/dpkg-query.log")"
	# Other namespaces of the machine and their pins also cost some calls.
	(($(wc -l <"$TMP/bpftool.log") < 100)) || fail "bpftool runs for each program: $(<"$TMP/bpftool.log")"
	rm -f "$TMP/dpkg-query.log" "$TMP/rpm.log"
	process 7 0 "$CAT" "$CONTAINER"
	owners --proc "$PROC"
	want 0 exe="$CAT" package=
	[[ ! -e $TMP/dpkg-query.log && ! -e $TMP/rpm.log ]] || fail "queries of a container"
	# Processes of the host: one has the same executable, dpkg does not know the other one.
	process 8 1 "$OUTPUT/hold"
	process 9 2
	owners --proc "$PROC"
	want 0 package=
	want 1 package="by-rpm 1.0-2"
	want 2 package="$package"
	[[ $(<"$TMP/rpm.log") = "-qf --qf %{NAME} %{VERSION}-%{RELEASE}"$'\n'" $OUTPUT/hold" ]] ||
		fail "rpm $(<"$TMP/rpm.log")"
}

# The package in an executable's note is that of a container. Of a file of this host, it is a mere claim.
# Every second note is in a section that is not part of a segment, where Go puts the build ID. bpf-owners
# goes on after wrong headers and notes: program 8 has executables that are cut off, or have a wrong number.
test_package_notes_and_broken_executables()
{
	local i notes=('{"type":"deb","name":"in","version":"1.0-1","architecture":"all"}' '{"name":"named"}'
		'{"name":"esc\u001b"}' '{"name":' '{"version":"1"}' '["name"]' '{"name":{"name":"a"}}' '{"name":""}')
	local packages=('in 1.0-1' named 'esc\x1b' '' '' '' '' '') broken

	hold_command "$INHERIT" -n 9 cat
	python3 -S - "$BIN" "${notes[@]}" <<-'END'
		import struct, sys
		for number, content in enumerate(sys.argv[2:]):
		    section = number % 2
		    content = content.encode() + b"\0"
		    note = struct.pack("<3I", 4, len(content), 0xcafe1a7e) + b"FDO\0" + content
		    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
		        "<2HI3QI6H", 2, 62, 1, 0, 0 if section else 64, section * 64, 0, 64, 56, 1 - section, 64, section, 0)
		    entry = struct.pack("<2I4Q2I2Q", 0, 7, 0, 0, 128, len(note), 0, 0, 4, 0) if section else struct.pack(
		        "<2I6Q", 4, 4, 120, 0, 0, len(note), len(note), 4)
		    whole = header + entry + note
		    open(f"{sys.argv[1]}/{number}", "wb").write(whole)
		    for at in range(0, 140, 4) if number < 2 else ():
		        for i, wrong in enumerate((b"", b"\xff" * 8, b"\xff" * 2, bytes(8), struct.pack("<q", (1 << 63) - 1))):
		            changed = whole[:at] + (wrong and wrong + whole[at + len(wrong):])
		            open(f"{sys.argv[1]}/broken-{number}-{at}-{i}", "wb").write(changed)
	END
	for i in "${!notes[@]}"; do
		process $((i + 1)) "$i" "$BIN/$i" "$CONTAINER"
	done
	broken=("$BIN"/broken-*)
	for i in "${!broken[@]}"; do
		process $((i + 100)) 8 "${broken[i]}" "$CONTAINER"
	done
	mkfifo "$TMP/fifo"
	process 99 8 "$TMP/fifo" "$CONTAINER"
	RUN=(timeout $((30 * SCALE)))
	owners --proc "$PROC"
	for i in "${!notes[@]}"; do
		want "$i" package="${packages[i]}"
	done
	[[ $(grep -o "$BIN/broken-" "$TMP/owners" | wc -l) = "${#broken[@]}" ]] ||
		fail "not all broken executables are listed"
	process 1 0 "$BIN/0"
	owners --proc "$PROC"
	want 0 package=
}

# A line is a cgroup as in /proc/PID/cgroup, the unit, and the container.
test_units_and_containers()
{
	local i=0 cgroups unit container

	hold_command "$INHERIT" -n 40 cat
	while IFS='|' read -r cgroups unit container; do
		process $((100 + i)) "$i" "$CAT" "$cgroups"
		[[ -z $unit ]] || echo "${HELD_IDS[i]} inherited unit=$unit"
		[[ -z $container ]] || echo "${HELD_IDS[i]} inherited container=$container"
		i=$((i + 1))
	done <<-END >"$TMP/want"
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
	owners --proc "$PROC"
	grep -E ' (unit|container)=' "$TMP/owners" >"$TMP/got"
	same "units and containers" "$TMP/want" "$TMP/got"
}

# Process ids are in the order of numbers, other values in that of text. The kernel refuses to print the
# name of a cgroup that is too long.
test_values_of_several_processes()
{
	local pid long

	hold_command "$INHERIT" -n 2 cat
	for pid in 100 9 20; do
		process "$pid" 0 "$CAT" "0::/system.slice/unit-$pid.service"
		: >"$PROC/$pid/cmdline"
	done
	ln -sfn "$SHELL_EXE" "$PROC/9/exe"
	printf 'python3\0-c\0a\nb\0' >"$PROC/100/cmdline"
	process 101 1
	long=$(printf %0300d 0)
	ln -sfn "$long" "$PROC/101/cgroup"
	printf 'cat\0%s\0' "$long" >"$PROC/101/cmdline"
	owners --proc "$PROC" --cmdline
	want 0 pid="9, 20, 100" unit="unit-100.service, unit-20.service, unit-9.service" exe="$CAT, $SHELL_EXE" \
		cmdline='python3 -c a\x0ab'
	want 1 cmdline="cat ${long:0:196}..." exe="$CAT"
	owners --proc "$PROC"
	want 0 cmdline=
}

test_hostile_names_are_escaped_and_perf_inject_adds_them()
{
	local names=($'new\nline' $'esc\e[2J' $'bad\xff\xc3' $'c1\xc2\x9b2J' $'bidi\xe2\x80\xae' 'quo"te\n' 'a, b') i
	local escaped=('new\x0aline' 'esc\x1b[2J' 'bad\xff\xc3' 'c1\u009b2J' 'bidi\u202e' 'quo"te\n' 'a,\x20b')

	hold_command "$INHERIT" -n "${#names[@]}" cat
	for i in "${!names[@]}"; do
		cp "$CAT" "$BIN/${names[i]}"
		process $((i + 1)) "$i" "$BIN/${names[i]}"
		printf '%s\n' "${names[i]}" >"$PROC/$((i + 1))/comm"
	done
	owners --proc "$PROC"
	for i in "${!names[@]}"; do
		want "$i" exe="$BIN/${escaped[i]}" comm="${escaped[i]}" package=
	done
	"$OWNERS" --proc "$PROC" "${HELD_IDS[@]}" >"$TMP/table" 2>/dev/null
	"$OWNERS" --proc "$PROC" --json "${HELD_IDS[@]}" >"$TMP/json" 2>/dev/null
	LC_ALL=en_US.ISO-8859-1 "$OWNERS" --proc "$PROC" --perf "${HELD_IDS[@]}" >"$TMP/lines" 2>/dev/null
	same "lines with another locale" "$TMP/owners" "$TMP/lines"
	if LC_ALL=C.UTF-8 grep -a -v -x -P '[\x20-\x7e]*' "$TMP/table" "$TMP/json" "$TMP/lines"; then
		fail "characters that are not printable"
	fi
	python3 -c 'import json, sys
for program in json.load(sys.stdin):
    assert list(program) == ["id", "name", "metadata"], program
    for pair in program["metadata"].items():
        print(program["id"], program["name"], "=".join(pair))' <"$TMP/json" >"$TMP/got"
	same "JSON" "$TMP/lines" "$TMP/got"
	! "$OWNERS" --perf --json 2>/dev/null || fail "--perf and --json are accepted"
	record "$TMP/data"
	"$PBM_PERF" inject --bpf-metadata-add "$TMP/lines" -i "$TMP/data" -o "$TMP/added" 2>"$TMP/messages"
	[[ ! -s $TMP/messages ]] || fail "$(cat "$TMP/messages")"
	perfdata block "$TMP/added" | awk -F '\t' -v id="${HELD_IDS[0]}" '$1 == id && $4 == "exe"' >"$TMP/added-exe"
	grep -q -F "\"$BIN/new\\\\x0aline\"" "$TMP/added-exe" || fail "no exe: $(cat "$TMP/added-exe")"
}

# wants_row ERE OPTION...: fail unless the table of the held programs has this row; write $TMP/table
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
	local exe=$TMP/$ID_64/$ID_64/0123456789

	mkdir -p "${exe%/*}"
	cp "$CAT" "$exe"
	hold_command "$INHERIT" -p 7 "$exe"
	wants_row "inherited .* exe $exe"
	[[ $(grep -c "^ *+3\>" "$TMP/table") = 1 ]] || fail "the table does not count the three other processes"
	wants_row "inherited +- +- +-" --proc "$PROC"
	"$OWNERS" --json --proc "$PROC" "${HELD_IDS[0]}" >"$TMP/json" 2>/dev/null
	[[ $(<"$TMP/json") = "[{\"id\": ${HELD_IDS[0]}, \"name\": \"inherited\", \"metadata\": {}}]" ]] ||
		fail "JSON: $(cat "$TMP/json")"
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
	"${RUN[@]}" unshare --mount sh -c 'mount --bind "$BPFFS/dir" "$BIN" && umount -l "$BPFFS" && : >"$1" && exec sleep infinity' \
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

# An ordinary user, who may not be able to reach the checkout, sees only the programs of own processes.
test_without_privilege()
{
	local nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	local ptrace='processes whose descriptors cannot be read: [0-9]+ \(this needs CAP_SYS_PTRACE\)'
	local both="bpftool prog show: .*not permitted \(.* need CAP_SYS_ADMIN\)|$ptrace"

	cp "$OWNERS" "${OWNERS%/*}/bpf_samples.py" "$BIN"
	chmod 711 "$TMP"
	chmod -R a+rX "$BIN"
	OWNERS=$BIN/bpf-owners
	hold_command "$INHERIT" cat
	RUN=("${nobody[@]}")
	owners_say 2 "$both"
	[[ ! -s $TMP/owners ]] || fail "bpf-owners prints programs"
	RUN=(setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace)
	owners_say 0 "$ptrace"
	"${RUN[@]}" "$OWNERS" "${HELD_IDS[0]}" 2>/dev/null | grep -q 'inherited *- *- *-$' ||
		fail "the program is not listed"
	release
	hold_command "$INHERIT" "${nobody[@]}" cat
	RUN=()
	await "setpriv to run cat" becomes 0 exe="$CAT"
	RUN=("${nobody[@]}")
	owners_say 0 "$both"
	HELD_NAMES[0]=-
	want 0 exe="$CAT"
}

# What bpftool can't print is left out, with a message and status 1.
test_what_is_left_out_is_an_error()
{
	local status=0 id

	hold simple none
	id=${HELD_IDS[0]}
	owners_say 1 'no program has the id 4294967295' 4294967295
	want 0 pid="$HOLDER_PID" comm=hold exe="$OUTPUT/hold" package=
	"$OWNERS" --no-such-option 2>/dev/null || status=$?
	((status == 2)) || fail "a wrong option: status $status"
	# left_out ERE CASES: the same, and the owner of the first program is found
	left_out()
	{
		fake_bpftool "$2"
		owners_say 1 "$1"
		want 0 exe="$OUTPUT/hold"
	}
	left_out 'bpftool cgroup tree: no such command' "*cgroup*) echo '{\"error\":\"no such command\"}'; exit 1 ;;"
	left_out 'bpftool prints something unknown in its list of net: .*' \
		"*net*) echo '[{\"xdp\":[{\"devname\":\"e0\"}],\"tc\":[]}]' ;;"
	# A list that ends with an error, and has unknown items
	left_out 'bpftool prog show: no info|bpftool prints something unknown in its list of programs: .*' \
		"*'-f prog show') echo '[{\"id\":$id,\"name\":\"simple\"},{\"name\":5},{\"error\":\"no info\"}]' ;;"
	# The list is not JSON if one program is not. Broken metadata, such as that of a floating point number,
	# is not needed.
	fake_bpftool "*'-j -f prog show') echo '[{\"id\":' ;;
		*' id $id') echo '{\"id\":$id,\"name\":\"simple\",\"metadata\":{\"a\":1.5,\"b\":0x}}' ;;"
	owners
	want 0 exe="$OUTPUT/hold"
	want 1 exe="$OUTPUT/hold"
	HELD_NAMES[0]=-
	left_out "program $id: bpftool prints no JSON; see .*" "*'-j -f prog show'|*' id $id') echo '[{\"id\":' ;;"
	want 1 exe="$OUTPUT/hold"
}

test_programs_and_processes_that_go_away()
{
	hold_command "$INHERIT" cat
	while :; do
		"$INHERIT" -n 8 -p 8 true >/dev/null
	done </dev/null &
	for _ in {1..20}; do
		owners
		want 0 exe="$CAT"
	done
}

# Links and names in the BPF file system of a container claim nothing. bpf-owners reads only a part of it.
test_a_hostile_bpf_file_system()
{
	hold_with_bpffs 'load simple pin; echo ready; exec cat'
	"${RUN[@]}" sh -c 'cd "$BPFFS" && ln -s pin link && ln -s /none "a\"id\":$1," && mkdir other && mount --bind / other && i=0
		while [ $i -lt 1100 ]; do
			mkdir d && cd d || exit
			i=$((i + 1))
		done' sh "${HELD_IDS[0]}"
	RUN=()
	owners_say 1 "/proc/$HOLDER_PID/root: more than 1000 files in BPF file systems"
	want 0 pinned="/proc/$HOLDER_PID/root$BPFFS/pin"
}

# want_hooks NAME HOOK...: fail unless these lines "PROGRAM HOOK" are the hooks of all programs with this name
# (BRE)
want_hooks()
{
	mapfile -t HELD_IDS < <("$BPFTOOL" prog show | sed -n "s/^\([0-9]*\): .* name $1 .*/\1/p")
	owners
	sed -n 's/^[0-9]* \([^ ]*\) hook=/\1 /p' "$TMP/owners" | sort >"$TMP/got"
	printf '%s\n' "${@:2}" >"$TMP/want"
	same "hooks" "$TMP/want" "$TMP/got"
}

test_hooks_of_tracepoints()
{
	start_attach
	ask load "$OUTPUT/hooks.bpf.o"
	ask attach
	want_hooks 'on_[a-z]*_*tp' 'on_raw_tp raw_tracepoint sched_process_exit' 'on_tp tracepoint sched_process_exit'
}

unregister()
{
	"$BPFTOOL" struct_ops unregister name pbm_tcp >/dev/null
}

test_hooks_of_struct_ops()
{
	"$BPFTOOL" struct_ops register "$OUTPUT/struct_ops.bpf.o" >"$TMP/registered" 2>&1 ||
		skip "this kernel registers no struct_ops: $(tail -n 1 "$TMP/registered")"
	ON_END+=(unregister)
	want_hooks 'pbm_[a-z_]*' "pbm_"{cong_avoid,ssthresh,undo_cwnd}" struct_ops tcp_congestion_ops pbm_tcp"
}

# No process holds the programs, and they are not pinned.
test_hooks_of_an_interface()
{
	command -v tc >/dev/null || skip "tc is not installed"
	hold_with_bpffs '
		ip link add pbm0 type veth peer name pbm1 && tc qdisc add dev pbm0 clsact || exit
		load dispatched xdp type xdp && "$BPFTOOL" net attach xdpgeneric pinned "$BPFFS/xdp" dev pbm0 || exit
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
