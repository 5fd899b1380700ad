#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of apply-and-build.sh: its errors, its repairs and what it leaves alone;
# of check-series.sh, with the defects that it shall find; of make-submission.sh;
# of guests that go wrong, for run-selftests.sh --vm; and of bench.sh.
# No perf is built: a "kernel" of a few files with a Makefile that copies stands
# in, packages, network and QEMU are stubs in PATH. Only what bench.sh measures
# needs the perfs of v6.16 that were built before.  Takes about two minutes.
#
#	scripts/test-scripts.sh			all of them
#	scripts/test-scripts.sh edit kill	those whose name has one of the words
#
# Prints KTAP.  Exit status: 0 passed, 1 a test failed, 2 could not run.

set -uo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
TOP=$(mktemp -d "${TMPDIR:-/tmp}/pbm-test.XXXXXX") || exit 2
REAL_PATH=$PATH

case ${1:-} in
-h|--help)
	sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
	exit 0 ;;
esac

cleanup()
{
	mountpoint -q "$TOP/disk" && umount "$TOP/disk"
	rm -rf -- "$TOP"
}
trap cleanup EXIT
trap 'exit 2' INT TERM

# --- fixtures -----------------------------------------------------------------

make_kernel()
{
	local dir=$1 sublevel=$2 i

	mkdir -p "$dir/tools/perf" "$dir/drivers/net"
	printf 'VERSION = 0\nPATCHLEVEL = 1\nSUBLEVEL = %s\nEXTRAVERSION =\n' "$sublevel" > "$dir/Makefile"
	mkdir -p "$dir/scripts" "$dir/tools/lib"
	echo lib > "$dir/tools/lib/lib.c"
	cat > "$dir/scripts/get_maintainer.pl" <<-'END'
	print grep(/^--no-l$/, @ARGV) ? "A Maintainer <a\@maintainer>\n" : "list\@kernel\n";
	END
	cat > "$dir/scripts/checkpatch.pl" <<-'END'
	#!/usr/bin/perl
	local $/; open(my $in, '<', $ARGV[-1]); my $patch = <$in>; my $found = $patch =~ /UGLY/;
	exit 1 if $patch =~ /SILENT/;
	print "-:1: WARNING:UGLY_TYPE: it is ugly\n" if $found; exit $found;
	END
	for i in a b c evsel; do
		printf "$i %s\n" 1 2 3 4 5 6 7 8 9 > "$dir/tools/perf/$i.c"
	done
	head -c 1500000 /dev/urandom > "$dir/tools/perf/blob"
	echo big > "$dir/drivers/net/big.c"
	cat > "$dir/tools/perf/Makefile" <<-'END'
	.RECIPEPREFIX := >
	OBJS := $(patsubst %.c,$(O)/%.o,$(wildcard *.c))
	$(O)/perf: $(OBJS)
	> { echo '#!/bin/sh'; echo '[ "$$1" != test ] || exec sed -n "s/.*SAYS //p" $(OBJS)'; \
		  echo 'echo perf version 0.1; [ $$# -gt 1 ] || exit 0'; \
		  for m in $${STUB_FEATURES-HAVE_LIBELF_SUPPORT HAVE_ZLIB_SUPPORT HAVE_LIBBPF_SUPPORT HAVE_BPF_SKEL HAVE_LIBTRACEEVENT}; do \
			echo "echo 'x: [ on  ]  # $$m'"; done; } > $@
	> chmod +x $@
	$(O)/%.o: %.c
	> ! grep -e 'ERROR$$' -e 'ERROR in $(notdir $(O))' $<
	> cp $< $@; echo $< >> $(O)/compiled
	END
}

pack_kernel()
{
	local name=$1 archive=$2

	tar -C "$TOP/fixture" -cJf "$archive" "$name"
}

make_deb()
{
	local dir=$TOP/fixture/deb

	mkdir -p "$dir/DEBIAN" "$dir/usr/src"
	cp "$TOP/fixture/linux-0.1.3.tar.xz" "$dir/usr/src/linux-source-0.1.tar.xz"
	printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@y>\nDescription: x\n' > "$dir/DEBIAN/control"
	dpkg-deb -b "$dir" "$TOP/fixture/linux-source-0.1_1_all.deb" > /dev/null
}

print_sum()
{
	sha256sum "$1" | cut -d ' ' -f 1
}

make_pin()
{
	cat > "$TOP/pins/v0.1" <<-END
	# comment
	version	0.1.0
	commit	$(git -C "$TOP/fixture/linux-0.1" rev-parse v0.1)
	source	kernel.org	linux-0.1.tar.xz	$(print_sum "$TOP/fixture/linux-0.1.tar.xz")	0.1.0
	source	debian	linux-source-0.1_1_all.deb	$(print_sum "$TOP/fixture/linux-source-0.1_1_all.deb")	0.1.3
	source	mirror	linux-0.1.3-perf.tar.xz	$(print_sum "$TOP/fixture/linux-0.1.3.tar.xz")	0.1.3
	differs	0.1.3	tools/perf/evsel.c
	END
}

make_git()
{
	local git=(git -C "$TOP/fixture/linux-0.1" -c user.name=x -c user.email=x@y)

	"${git[@]}" init -q
	"${git[@]}" add .
	"${git[@]}" commit -q -m x
	"${git[@]}" tag v0.1
}

# A stub runs the real command, unless it is told to hang there.
make_stub()
{
	cat > "$TOP/stubs/$1" <<-END
	#!/bin/bash
	[[ \${STUB_HANG:-} != $1 ]] || { echo \$\$ > "$TOP/hanging"; exec sleep 60; }
	echo "\$*" >> "$TOP/calls.$1"
	PATH=$REAL_PATH exec $1 "\$@"
	END
}

make_stubs()
{
	local name

	for name in xz quilt chmod make; do
		make_stub "$name"
	done
	cat > "$TOP/stubs/dpkg-query" <<-'END'
	#!/bin/bash
	for p; do
		[[ " ${STUB_MISSING:-} " = *" $p "* ]] || echo "installed $p"
	done
	END
	cat > "$TOP/stubs/curl" <<-'END'
	#!/bin/bash
	while [[ $# -gt 0 ]]; do
		[[ $1 != --output ]] || part=$2
		shift
	done
	[[ -z ${STUB_CURL_FILE:-} ]] || cp "$STUB_CURL_FILE" "$part"
	[[ ${STUB_CURL_STATUS:-0} = 0 ]] || echo "curl: ($STUB_CURL_STATUS) stub"
	exit "${STUB_CURL_STATUS:-0}"
	END
	cat > "$TOP/stubs/apt-get" <<-END
	#!/bin/bash
	echo "\$*" >> "$TOP/calls.apt-get"
	if [[ \$1 = indextargets ]]; then
		echo "\${STUB_POOL:-file:$TOP/nowhere}"
	fi
	END
	# Of the packages that are not there, but for a guest.
	printf '%s\n' '#!/bin/sh' 'exec cat' > "$TOP/stubs/cpio"
	make_qemu_stub
	chmod +x "$TOP"/stubs/*
}

# A machine that does what STUB_VM says, the second what STUB_VM2 says, and with KVM
# what STUB_KVM says: to "hang" at boot, to "panic" in the tests, to go on for "ever",
# or to end with a status.
make_qemu_stub()
{
	cat > "$TOP/stubs/qemu-system-x86_64" <<-'END'
	#!/bin/bash
	dir=$(printf '%s\n' "$@" | sed -n 's,^file:\(.*\)/console.log$,\1,p')
	! kill -0 "$(cat "$dir/pid" 2>&1)" 2>/dev/null || { echo "another QEMU runs"; exit 1; }
	echo $$ > "$dir/pid"
	what=$STUB_VM
	[[ $dir != */2 ]] || what=$STUB_VM2
	[[ "$*" != *"-accel kvm"* ]] || what=$STUB_KVM
	printf '[ 0.0] Linux version 0.1\r\n[ 0.1] %s\r\n' "${STUB_CONSOLE:-clocksource: stub}" > "$dir/console.log"
	[[ $what != hang ]] || exec sleep 60
	echo started > "$dir/status"
	echo "ok      a test of ${dir##*/}" > "$dir/report"
	case $what in
	ever)	exec sleep 60 ;;
	panic)	echo '[ 0.2] Kernel panic - not syncing: stub' >> "$dir/console.log" ;;
	*)	echo "$what" > "$dir/status" ;;
	esac
	END
}

make_fixtures()
{
	local pool=$TOP/pool/pool/main/l/linux

	mkdir -p "$TOP"/{fixture,pins,stubs,mirror,disk} "$pool"
	make_kernel "$TOP/fixture/linux-0.1" 0
	make_kernel "$TOP/fixture/linux-0.1.3" 3
	pack_kernel linux-0.1 "$TOP/fixture/linux-0.1.tar.xz"
	pack_kernel linux-0.1.3 "$TOP/fixture/linux-0.1.3.tar.xz"
	make_git
	make_deb
	cp "$TOP/fixture/linux-0.1.3.tar.xz" "$TOP/mirror/linux-0.1.3-perf.tar.xz"
	cp "$TOP/fixture/linux-source-0.1_1_all.deb" "$pool/"
	make_pin
	make_stubs
}

# There have to be some: diff has status 1 then.
differences()
{
	local status=0

	diff -u "$@" || status=$?
	((status == 1))
}

# A patch that turns line NUMBER of a file into TEXT.
write_patch()
{
	local name=$1 file=$2 number=$3 text=$4 base=$TOP/fixture/linux-0.1/tools/perf/$2

	mkdir -p "$PATCHES"
	printf 'Subject: %s\n\n' "$name" > "$PATCHES/$name"
	differences --label "a/tools/perf/$file" --label "b/tools/perf/$file" \
		"$base" <(sed "${number}s/.*/$text/" "$base") >> "$PATCHES/$name"
	grep -qxF "$name" "$PATCHES/series" 2>/dev/null || echo "$name" >> "$PATCHES/series"
}

# Every test starts with these: an empty output, a cache with the tag's own
# tarball, a series of two patches.
start_test()
{
	rm -rf -- "$TOP/t" "$TOP"/calls.* "$TOP/hanging"
	PINS=$TOP/pins OUT=$TOP/t/out CACHE=$TOP/t/cache PATCHES=$TOP/t/patches
	mkdir -p "$CACHE"
	cp "$TOP/fixture/linux-0.1.tar.xz" "$CACHE/"
	write_patch 0001-a.patch a.c 2 'a two'
	write_patch 0002-b.patch b.c 2 'b two'
}

# Whoever runs these tests in the background has a shell that ignores interrupts.
call_script()
{
	exec env --default-signal=INT PATH="$TOP/stubs:$REAL_PATH" PBM_CACHE="$CACHE" PBM_PINS="$PINS" \
		PBM_PATCHES="$PATCHES" PBM_MIRROR='' "$SCRIPTS_DIR/apply-and-build.sh" --out "$OUT" "$@"
}

# A series that a maintainer takes
write_good_series()
{
	local patch

	for patch in 0001-a 0002-b; do
		{
			printf 'Subject: perf test: Change %s\n\nIt is two,\nand was not.\n---\n' "$patch"
			diffstat -p1 "$PATCHES/$patch.patch"
			sed '1,/^$/d' "$PATCHES/$patch.patch"
		} > "$PATCHES/$patch.new"
		mv "$PATCHES/$patch.new" "$PATCHES/$patch.patch"
	done
}

# expect_series STATUS OPTION...: check-series.sh
expect_series()
{
	local wanted=$1 status=0

	shift
	PRINTED=$(env PATH="$TOP/stubs:$REAL_PATH" PBM_CACHE="$CACHE" PBM_PINS="$PINS" PBM_PATCHES="$PATCHES" \
		PBM_MIRROR='' "$SCRIPTS_DIR/check-series.sh" --out "$OUT" "$@" v0.1 2>&1) || status=$?
	printf '%s\n' "--- check-series $* ($status)" "$PRINTED"
	((status == wanted)) || fail "status $status, not $wanted"
}

# row_is PATCH REGEX: that line of the table
row_is()
{
	grep -q -x -E -e "$1 +$2" <<< "$PRINTED"
}

# Guests, without anything that is built or downloaded
call_vm()
{
	mkdir -p "$TOP/t/vm" "$TOP/t/tmp"
	# shellcheck disable=SC2016 # for the inner shell
	exec env --default-signal=INT PATH="$TOP/stubs:$REAL_PATH" TMPDIR="$TOP/t/tmp" VM_DIR="$TOP/t/vm" SCRIPTS_DIR="$SCRIPTS_DIR" \
		STUB_VM="$STUB_VM" STUB_VM2="${STUB_VM2-$STUB_VM}" STUB_KVM="${STUB_KVM:-hang}" STUB_REFUSAL="${STUB_REFUSAL:-}" OPT_ACCEL="${ACCEL-tcg}" \
		PBM_VM_BOOT="${VM_BOOT:-1}" PBM_VM_TIMEOUT="${VM_TIMEOUT:-30}" bash -c '
		set -euo pipefail
		for lib in common arch splats vm; do
			. "$SCRIPTS_DIR/lib/$lib.sh"
		done
		vm__kvm_refusal() { printf "%s" "$STUB_REFUSAL"; }
		arch__load x86_64
		KERNEL_IMAGE=/dev/null KERNEL_MODULES=()
		VM_ROOT=/ VM_BUSYBOX=/bin/true VM_SHARES=("rw $VM_DIR")
		vm__run true
		echo "guest: $VM_STATUS"
		vm__check_log || end_failed' run-selftests.sh
}

# --- assertions: the first that fails ends the test ----------------------------

# expect STATUS [ARGUMENT...]: runs the script, keeps what it prints in $PRINTED.
expect()
{
	local wanted=$1 status=0

	shift
	PRINTED=$(call_script "$@" 2>&1) || status=$?
	printf '%s\n' "--- $* ($status)" "$PRINTED"
	((status == wanted)) || fail "status $status, not $wanted"
}

# expect_vm STATUS: the same for a guest, which leaves nothing.
expect_vm()
{
	local wanted=$1 status=0

	PRINTED=$(call_vm 2>&1) || status=$?
	printf '%s\n' "--- guest ($status)" "$PRINTED"
	((status == wanted)) || fail "status $status, not $wanted"
	vm_left_nothing
}

vm_left_nothing()
{
	local files

	! kill -0 "$(< "$TOP/t/vm/1/pid")" 2>/dev/null || fail "QEMU still runs"
	! kill -0 "$(cat "$TOP/t/vm/2/pid" 2>&1)" 2>/dev/null || fail "the other QEMU still runs"
	files=$(ls -A "$TOP/t/tmp")
	[[ -z $files ]] || fail "left: $files"
}

start_vm()
{
	local tries=0

	set -m
	call_vm > "$TOP/t/vm.log" 2>&1 &
	HANGING=$!
	set +m
	until grep -q 'a test of 1' "$TOP/t/vm.log" 2>/dev/null && grep -q 'a test of 2' "$TOP/t/vm.log"; do
		sleep 0.1
		((++tries < 200)) || fail "the guests were never started"
	done
}

fail()
{
	printf 'FAILED: %s\n' "$1"
	exit 1
}

skip()
{
	printf '%s\n' "$1" > "$TOP/skip-reason"
	exit 4
}

printed()
{
	[[ $PRINTED = *"$1"* ]] || fail "not printed: $1"
}

holds()
{
	grep -q -- "$2" "$1" || fail "$1 does not hold: $2"
}

absent()
{
	[[ ! -e $1 ]] || fail "$1 is there"
}

# Nothing half-done: no .part anywhere, no tree and no perf that look done.
left_nothing()
{
	local parts

	parts=$(find "$TOP/t" -name '*.part*')
	[[ -z $parts ]] || fail "left: $parts"
	absent "$OUT/linux"
	absent "$OUT/perf"
}

compiled()
{
	sort "$OUT/build/compiled" | paste -s -d ' '
}

start_hanging()
{
	local tries=0

	STUB_HANG=$1
	export STUB_HANG
	set -m
	call_script v0.1 > "$TOP/t/hanging.log" 2>&1 &
	HANGING=$!
	set +m
	unset STUB_HANG
	until [[ -s $TOP/hanging ]]; do
		sleep 0.1
		((++tries < 200)) || fail "$1 was never called"
	done
}

# All of the script, also the step that has a process group of its own.
kill_hanging()
{
	kill -9 -- "-$HANGING"
	kill -9 "$(< "$TOP/hanging")" || echo "the step ended with the script"
	wait
}

# Of what runs in the background: 128 and the signal
ends_with()
{
	local status=0

	wait "$HANGING" || status=$?
	((status == $1)) && return
	cat "$TOP"/t/*.log
	fail "it ended with status $status, not $1"
}

# --- tests --------------------------------------------------------------------

test_help()
{
	expect 0 --help
	printed "usage: "
	printed "v0.1"
}

# common.sh: what nobody foresaw is status 2
test_unforeseen_ends()
{
	local command status

	# shellcheck disable=SC2016 # for the inner shell
	for command in 'echo "$nowhere"' 'exit 1' 'false' 'echo $((1 / 0))'; do
		status=0
		PRINTED=$(bash -c "set -euo pipefail; . '$SCRIPTS_DIR/lib/common.sh'; $command" x.sh 2>&1) || status=$?
		((status == 2)) || fail "$command: status $status"
		printed "x.sh: error: unexpected"
	done
	status=0
	bash -c "set -euo pipefail; . '$SCRIPTS_DIR/lib/common.sh'; end_failed" x.sh || status=$?
	((status == 1)) || fail "end_failed: status $status"
}

test_unknown_option()
{
	expect 2 --frobnicate v0.1
	printed "frobnicate"
	absent "$OUT"
}

test_impossible_options()
{
	expect 2 --git /x --source /y v0.1
	printed "exclude each other"
	expect 2 --jobs 0 v0.1
	expect 2 --sanitize --arch arm64 v0.1
	printed "--sanitize is for this machine's perf"
	expect 2 --sanitize=memory v0.1
	printed "not 'address' or 'thread'"
	expect 2 --source
	expect 2
	expect 2 v0.1 v0.2
	absent "$OUT"
}

test_sanitizers_are_another_build()
{
	expect 0 v0.1
	expect 0 --sanitize v0.1
	holds "$OUT/.state/built" "-fsanitize=fuzzer-no-link,address,undefined"
	expect 0 --sanitize=thread v0.1
	holds "$OUT/.state/built" "-fsanitize=thread"
	expect 0 v0.1
	! grep -q fsanitize "$OUT/.state/built" || fail "still with sanitizers"
}

test_unknown_tag()
{
	expect 2 v9.9
	printed "unknown tag 'v9.9'"
	printed "use one of: v0.1"
	absent "$OUT"
}

test_full_run()
{
	expect 0 v0.1
	[[ $(tail -n 2 <<< "$PRINTED") = "$OUT/perf"$'\n'"perf version 0.1" ]] || fail "the last lines"
	holds "$OUT/linux/tools/perf/a.c" "a two"
	absent "$OUT/linux/drivers/net"
	[[ $(compiled) = "a.c b.c c.c evsel.c" ]] || fail "compiled $(compiled)"
	(cd "$OUT/linux" && quilt --quiltrc - pop -a && quilt --quiltrc - push -a) || fail "quilt in the tree"
}

test_quiet_prints_two_lines()
{
	expect 0 --quiet v0.1
	[[ $PRINTED = "$OUT/perf"$'\n'"perf version 0.1" ]] || fail "more than two lines"
}

test_unchanged_rerun_does_nothing()
{
	local start

	expect 0 v0.1
	rm -f "$TOP"/calls.*
	start=$(date +%s%N)
	expect 0 v0.1
	(($(date +%s%N) - start < 3000000000)) || fail "took over 3 s"
	absent "$TOP/calls.make"
	absent "$TOP/calls.quilt"
	absent "$TOP/calls.xz"
}

test_changed_patch_rebuilds_only_its_files()
{
	local before

	expect 0 v0.1
	before=$(stat -c %Y.%y "$OUT/linux/tools/perf/a.c")
	: > "$OUT/build/compiled"
	write_patch 0002-b.patch b.c 3 'b three'
	expect 0 v0.1
	[[ $(compiled) = b.c ]] || fail "compiled $(compiled)"
	[[ $(stat -c %Y.%y "$OUT/linux/tools/perf/a.c") = "$before" ]] || fail "the mtime of a.c"
	holds "$OUT/linux/tools/perf/b.c" "b three"
	! grep -q 'b two' "$OUT/linux/tools/perf/b.c" || fail "the old patch is still in"
}

test_removed_patch_rebuilds_its_files()
{
	expect 0 v0.1
	: > "$OUT/build/compiled"
	echo 0001-a.patch > "$PATCHES/series"
	expect 0 v0.1
	printed "0002-b.patch is not in the series"
	[[ $(compiled) = b.c ]] || fail "compiled $(compiled)"
	holds "$OUT/build/b.o" "b 2"
}

test_patch_adds_and_deletes_files()
{
	expect 0 v0.1
	{ echo; differences --label /dev/null --label b/tools/perf/new.c /dev/null <(echo new)
	  differences --label a/tools/perf/c.c --label /dev/null "$TOP/fixture/linux-0.1/tools/perf/c.c" /dev/null
	} > "$PATCHES/0003-c.patch"
	echo 0003-c.patch >> "$PATCHES/series"
	expect 0 v0.1
	absent "$OUT/linux/tools/perf/c.c"
	holds "$OUT/linux/tools/perf/new.c" new
	sed -i /0003/d "$PATCHES/series"
	expect 0 v0.1
	absent "$OUT/linux/tools/perf/new.c"
	holds "$OUT/linux/tools/perf/c.c" "c 1"
}

test_patch_that_does_not_apply()
{
	write_patch 0003-c.patch c.c 5 'c five'
	sed -i 's/^ c 2/ c two/' "$PATCHES/0003-c.patch"
	expect 2 v0.1
	printed "0003-c.patch: tools/perf/c.c: Hunk #1 FAILED"
	left_nothing
	write_patch 0003-c.patch c.c 5 'c five'
	expect 0 v0.1
}

test_failed_patch_leaves_the_old_tree()
{
	expect 0 v0.1
	sed -i 's/^ b 3/ b drei/' "$PATCHES/0002-b.patch"
	expect 2 v0.1
	holds "$OUT/linux/tools/perf/b.c" "b two"
	[[ -x $OUT/perf ]] || fail "the perf of the old tree is gone"
}

test_patch_with_offset_is_reported()
{
	write_patch 0003-c.patch c.c 9 'c nine'
	sed -i 's/^@@ -6,4 +6,4/@@ -5,4 +5,4/' "$PATCHES/0003-c.patch"
	expect 0 v0.1
	printed "0003-c.patch: tools/perf/c.c: Hunk #1 succeeded at 6 (offset 1 line)"
}

test_series_without_file()
{
	echo 0009-none.patch >> "$PATCHES/series"
	expect 2 v0.1
	printed "names 0009-none.patch, which is not there"
	left_nothing
}

test_missing_and_empty_series()
{
	echo "# nothing" > "$PATCHES/series"
	expect 2 v0.1
	printed "--no-patches"
	rm "$PATCHES/series"
	expect 2 v0.1
	printed "--no-patches"
	left_nothing
	expect 0 --no-patches v0.1
	holds "$OUT/linux/tools/perf/a.c" "a 2"
}

test_standin_is_said_and_guarded()
{
	rm "$CACHE"/*
	expect 0 --mirror "$TOP/mirror" v0.1
	printed "0.1.3, a stand-in for v0.1"
	write_patch 0003-e.patch evsel.c 2 'e two'
	expect 2 --mirror "$TOP/mirror" v0.1
	printed "0003-e.patch touches tools/perf/evsel.c, in which the stand-in 0.1.3 differs"
	expect 2 --clean --mirror "$TOP/mirror" v0.1
	left_nothing
	expect 0 --git "$TOP/fixture/linux-0.1" v0.1
}

test_wrong_checksum_in_mirror()
{
	rm "$CACHE"/*
	mkdir "$TOP/t/mirror"
	echo wrong > "$TOP/t/mirror/linux-0.1.tar.xz"
	expect 2 --mirror "$TOP/t/mirror" v0.1
	printed "wrong checksum"
	left_nothing
}

test_wrong_checksum_of_download()
{
	rm "$CACHE"/*
	echo wrong > "$TOP/t/wrong"
	STUB_CURL_FILE=$TOP/t/wrong expect 2 v0.1
	printed "wrong checksum: linux-0.1.tar.xz from kernel.org"
	left_nothing
	absent "$CACHE/linux-0.1.tar.xz"
}

test_truncated_download()
{
	rm "$CACHE"/*
	head -c 1000 "$TOP/fixture/linux-0.1.tar.xz" > "$TOP/t/short"
	STUB_CURL_FILE=$TOP/t/short STUB_CURL_STATUS=18 expect 2 v0.1
	printed "truncated download: linux-0.1.tar.xz from kernel.org ended after 1000 bytes"
	left_nothing
	STUB_CURL_FILE=$TOP/fixture/linux-0.1.tar.xz expect 0 v0.1
}

test_truncated_cache_is_fetched_again()
{
	truncate -s 1000 "$CACHE/linux-0.1.tar.xz"
	STUB_CURL_FILE=$TOP/fixture/linux-0.1.tar.xz expect 0 v0.1
	printed "has not the pinned sha256"
}

test_damaged_archive_is_refused()
{
	local sum

	truncate -s -30000 "$CACHE/linux-0.1.tar.xz"
	sum=$(print_sum "$CACHE/linux-0.1.tar.xz")
	cp -r "$TOP/pins" "$TOP/t/pins"
	sed -i "s/\(linux-0.1.tar.xz\t\)[0-9a-f]*/\1$sum/" "$TOP/t/pins/v0.1"
	PINS=$TOP/t/pins
	expect 2 v0.1
	printed "cannot unpack"
	left_nothing
	absent "$OUT/.base"
}

test_debian_pool_is_the_last_source()
{
	rm "$CACHE"/*
	STUB_CURL_STATUS=6 STUB_POOL=file:$TOP/pool expect 0 v0.1
	printed "linux-source-0.1_1_all.deb (debian)"
	printed "stand-in"
	[[ -f $CACHE/linux-source-0.1_1_all.deb && ! -L $CACHE/linux-source-0.1_1_all.deb ]] || fail "not in the cache"
}

test_no_network()
{
	rm "$CACHE"/*
	STUB_CURL_STATUS=6 expect 2 v0.1
	printed "kernel.org: curl: (6)"
	printed "the Debian pool: "
	printed "check the network"
	left_nothing
}

test_git_tree()
{
	rm "$CACHE"/*
	expect 0 --git "$TOP/fixture/linux-0.1" v0.1
	git -C "$TOP/fixture/linux-0.1" -c user.name=x -c user.email=x@y commit -q --allow-empty -m y
	git -C "$TOP/fixture/linux-0.1" tag -f v0.1 > /dev/null
	expect 2 --clean --git "$TOP/fixture/linux-0.1" v0.1
	git -C "$TOP/fixture/linux-0.1" tag -f v0.1 HEAD^ > /dev/null
	printed "the pin says"
	left_nothing
}

test_source_tree_and_tarball()
{
	rm "$CACHE"/*
	expect 0 --source "$TOP/fixture/linux-0.1" v0.1
	expect 0 --source "$TOP/fixture/linux-0.1.tar.xz" v0.1
	make_kernel "$TOP/t/linux-0.1" 7
	expect 2 --source "$TOP/t/linux-0.1" v0.1
	printed "is version 0.1.7, not 0.1.0"
	expect 2 --source "$TOP/none" v0.1
}

test_missing_package_is_named()
{
	STUB_MISSING="clang flex" expect 2 --no-install v0.1
	printed "apt-get install --no-install-recommends clang flex"
	left_nothing
	absent "$TOP/calls.apt-get"
	((EUID != 0)) || STUB_MISSING="clang flex" expect 0 v0.1
	((EUID != 0)) || holds "$TOP/calls.apt-get" "install --no-install-recommends -- clang flex"
}

test_perf_without_bpf_is_refused()
{
	STUB_FEATURES="HAVE_LIBELF_SUPPORT HAVE_ZLIB_SUPPORT HAVE_LIBBPF_SUPPORT HAVE_LIBTRACEEVENT" expect 2 v0.1
	printed "built without: bpf_skeletons"
	printed "clang"
	absent "$OUT/perf"
}

test_build_error_shows_the_log()
{
	write_patch 0002-b.patch b.c 2 'ERROR'
	expect 2 v0.1
	printed "  | "
	printed "full log: $OUT/apply-and-build.log"
	absent "$OUT/perf"
	write_patch 0002-b.patch b.c 2 'b two'
	expect 0 v0.1
}

test_edited_tree_is_refused()
{
	expect 0 v0.1
	echo edit >> "$OUT/linux/tools/perf/c.c"
	expect 2 v0.1
	printed "edited: tools/perf/c.c"
	printed "quilt refresh"
	holds "$OUT/linux/tools/perf/c.c" edit
	expect 2 --no-patches v0.1
	holds "$OUT/linux/tools/perf/c.c" edit
	expect 0 --clean v0.1
	! grep -q edit "$OUT/linux/tools/perf/c.c" || fail "--clean left the edit"
}

test_edited_tree_is_refused_for_another_source()
{
	expect 0 v0.1
	rm "$OUT/linux/tools/perf/c.c"
	expect 2 --source "$TOP/fixture/linux-0.1" v0.1
	printed "edited: tools/perf/c.c"
}

test_popped_patch_is_refused()
{
	expect 0 v0.1
	(cd "$OUT/linux" && quilt --quiltrc - pop) || fail pop
	expect 2 v0.1
	printed "1 patches are popped"
	printed "quilt push -a"
	(cd "$OUT/linux" && quilt --quiltrc - push) || fail push
	expect 0 v0.1
}

# quilt doesn't know it: nobody has to lose it for that.
test_new_file_is_an_edit()
{
	expect 0 v0.1
	echo mine > "$OUT/linux/tools/perf/new.c"
	echo theirs > "$OUT/linux/tools/perf/a.c.orig"
	expect 2 --source "$TOP/fixture/linux-0.1" v0.1
	printed "edited: tools/perf/new.c"
	[[ $PRINTED != *a.c.orig* ]] || fail "a.c.orig is taken for an edit"
	holds "$OUT/linux/tools/perf/new.c" mine
	rm "$OUT/linux/tools/perf/new.c"
	expect 0 --source "$TOP/fixture/linux-0.1" v0.1
}

test_copy_has_its_own_patches()
{
	expect 0 v0.1
	mkdir "$TOP/t/copy"
	cp -a "$OUT" "$PATCHES" "$TOP/t/copy"
	(cd "$TOP/t/copy/out/linux" && echo edit >> tools/perf/b.c &&
		quilt --quiltrc - refresh -p ab --no-timestamps --no-index) || fail refresh
	grep -q -r edit "$TOP/t/copy/patches" || fail "the copy's patches have no edit"
	! grep -q -r edit "$PATCHES" || fail "a refresh in the copy changes the original"
}

test_refreshed_edit_is_taken()
{
	expect 0 v0.1
	: > "$OUT/build/compiled"
	(cd "$OUT/linux" && quilt --quiltrc - add tools/perf/c.c && echo edit >> tools/perf/c.c &&
		quilt --quiltrc - refresh -p ab --no-timestamps --no-index) || fail refresh
	expect 0 v0.1
	[[ $(compiled) = c.c ]] || fail "compiled $(compiled)"
	holds "$OUT/linux/tools/perf/c.c" edit
}

test_foreign_directory_is_left_alone()
{
	mkdir -p "$OUT/linux"
	echo mine > "$OUT/linux/file"
	expect 2 --clean v0.1
	holds "$OUT/linux/file" mine
}

test_kill_in_unpack_is_repaired()
{
	start_hanging xz
	kill_hanging
	absent "$OUT/linux"
	expect 0 v0.1
	absent "$OUT/.base.part"
}

test_kill_in_patch_is_repaired()
{
	start_hanging quilt
	kill_hanging
	absent "$OUT/linux"
	expect 0 v0.1
	absent "$OUT/.scratch"
}

test_kill_in_update_is_repaired()
{
	expect 0 v0.1
	write_patch 0001-a.patch a.c 4 'a four'
	write_patch 0002-b.patch b.c 4 'b four'
	start_hanging chmod
	kill_hanging
	absent "$OUT/perf"
	: > "$OUT/build/compiled"
	expect 0 v0.1
	[[ $(compiled) = "a.c b.c" ]] || fail "compiled $(compiled)"
	holds "$OUT/linux/tools/perf/a.c" "a four"
	[[ -z $(find "$OUT/linux" -name '*.part') ]] || fail "a .part is left"
}

test_kill_in_build_is_repaired()
{
	start_hanging make
	kill_hanging
	absent "$OUT/perf"
	expect 0 v0.1
	printed "cut off"
}

test_interrupt_cleans_up()
{
	start_hanging xz
	kill -INT -- "-$HANGING"
	ends_with 130
	left_nothing
	expect 0 v0.1
}

test_terminate_alone_ends_the_step()
{
	start_hanging make
	kill -TERM "$HANGING"
	ends_with 143
	! kill -0 "$(< "$TOP/hanging")" 2>/dev/null || fail "make still runs"
	expect 0 v0.1
}

test_second_run_waits()
{
	local tries=0

	start_hanging quilt
	call_script v0.1 > "$TOP/t/second.log" 2>&1 &
	until grep -q "waiting: another run (pid $HANGING) works on $OUT" "$TOP/t/second.log"; do
		sleep 0.1
		((++tries < 100)) || fail "the second run does not say that it waits"
	done
	kill -TERM "$HANGING"
	wait "$!" || fail "the second run failed"
	holds "$TOP/t/second.log" "perf version 0.1"
}

test_full_disk_is_repaired()
{
	((EUID == 0)) || skip "needs root"
	mount -t tmpfs -o size=1m none "$TOP/disk" || skip "needs mount"
	OUT=$TOP/disk/out
	expect 2 v0.1
	printed "no space left"
	absent "$OUT/.base"
	mount -o remount,size=2m "$TOP/disk"
	expect 2 v0.1
	printed "no space left"
	absent "$OUT/perf"
	mount -o remount,size=40m "$TOP/disk"
	expect 0 v0.1
	umount "$TOP/disk"
}

# The "kernel" of kernel__prepare: a tarball whose Makefile does what it is told
make_bootable()
{
	local dir=$TOP/t/kernel

	make_kernel "$dir/linux-0.1" 0
	cat > "$dir/linux-0.1/Makefile" <<-'END'
	VERSION = 0
	PATCHLEVEL = 1
	SUBLEVEL = 0
	EXTRAVERSION =
	.RECIPEPREFIX := >
	allnoconfig:
	> grep '^CONFIG_' $(KCONFIG_ALLCONFIG) | grep -v "$${STUB_DROP:-^$$}" > $(O)/.config
	bzImage:
	> [ -z "$$STUB_FAIL" ]
	> mkdir -p $(O)/arch/x86/boot; echo image > $(O)/arch/x86/boot/bzImage; echo >> $(TOP)/built
	END
	pack_bootable
}

pack_bootable()
{
	local file=$CACHE/linux-0.1.tar.xz

	tar -C "$TOP/t/kernel" -cJf "$file" linux-0.1
	mkdir -p "$TOP/t/pins"
	sed "s/^\(source.kernel.org.linux-0.1.tar.xz.\)[0-9a-f]*/\1$(print_sum "$file")/" "$TOP/pins/v0.1" > "$TOP/t/pins/v0.1"
}

expect_kernel()
{
	local wanted=$1 status=0

	# shellcheck disable=SC2016 # for the inner shell
	PRINTED=$(env PATH="$TOP/stubs:$REAL_PATH" PBM_CACHE="$CACHE" PBM_PINS="$TOP/t/pins" TOP="$TOP/t" \
		SCRIPTS_DIR="$SCRIPTS_DIR" bash -c '
		set -euo pipefail
		for lib in common pin arch packages source debian kernel; do
			. "$SCRIPTS_DIR/lib/$lib.sh"
		done
		pahole() { echo v1; }
		TAG=v0.1 OPT_KERNEL="" OPT_MIRROR="" OPT_INSTALL=no JOBS=1 PBM_TICK=1000
		log_to "$TOP/log"
		arch__load x86_64
		kernel__prepare
		cat "$KERNEL_IMAGE"' run-selftests.sh 2>&1) || status=$?
	printf '%s\n' "--- kernel ($status)" "$PRINTED"
	((status == wanted)) || fail "status $status, not $wanted"
	[[ -z $(find "$CACHE/kernels" -name '*.part' -o -name '*.new') ]] || fail "a .part is left"
}

test_kernel_is_built_once()
{
	make_bootable
	expect_kernel 0
	[[ $PRINTED = *image ]] || fail "no image"
	expect_kernel 0
	[[ $(wc -l < "$TOP/t/built") -eq 1 ]] || fail "built again"
	echo 'EXTRAVERSION =' >> "$TOP/t/kernel/linux-0.1/Makefile"
	pack_bootable
	expect_kernel 0
	[[ $(wc -l < "$TOP/t/built") -eq 2 ]] || fail "another source, and not built again"
}

test_kernel_that_drops_an_option()
{
	make_bootable
	STUB_DROP=CONFIG_DEBUG_INFO_BTF expect_kernel 2
	printed "not set: CONFIG_DEBUG_INFO_BTF=y"
	expect_kernel 0
}

test_kernel_that_does_not_build()
{
	make_bootable
	STUB_FAIL=1 expect_kernel 2
	printed "the kernel does not build"
	expect_kernel 0
}

test_series_that_is_good()
{
	write_good_series
	expect_series 0 --fast
	printed "2 patches, 0 defects"
	printed "0002-b.patch"
}

test_series_with_a_defect_in_its_list()
{
	write_good_series
	echo 0001-a.patch >> "$PATCHES/series"
	cp "$PATCHES/0002-b.patch" "$PATCHES/0003-c.patch"
	echo 0004-d.patch >> "$PATCHES/series"
	expect_series 1 --fast
	printed "FAILED  0001-a.patch: listed twice"
	printed "FAILED  0003-c.patch: not in the series"
	printed "FAILED  0004-d.patch: listed, but not there"
	: > "$PATCHES/series"
	expect_series 1 --fast
	printed "FAILED  series: it is empty"
}

# spoil PATCH SED-SCRIPT DEFECT: that one patch has it, and no other defect is found
spoil()
{
	rm -rf "$PATCHES"
	write_patch 0001-a.patch a.c 2 'a two'
	write_patch 0002-b.patch b.c 2 'b two'
	write_good_series
	sed -i "$2" "$PATCHES/$1"
	expect_series 1 --fast
	printed "FAILED  $1: $3"
	printed "2 patches, 1 defects"
}

test_series_with_a_defect_in_a_header()
{
	spoil 0001-a.patch '/^Subject/d' "no 'Subject: part: What it does'"
	spoil 0001-a.patch "s/^Subject: .*/&$(printf '%80s' '')x/" "a subject of "
	spoil 0001-a.patch '/^---$/d' "no line '---' after the changelog"
	spoil 0001-a.patch '/^It is/d' "no changelog"
	spoil 0001-a.patch 's/^and was.*/&\nReviewed-by: A Man <a@man>/' "a trailer that somebody gave: Reviewed-by: A Man"
	spoil 0001-a.patch '/1 file changed/d' "no diffstat"
}

test_series_with_a_defect_in_a_patch()
{
	spoil 0002-b.patch 's/^ b 1/ b one/' "does not apply: "
	spoil 0002-b.patch 's/^@@ -\([0-9]*\),/@@ -3,/' "applies with an offset: "
	spoil 0002-b.patch 's/^+b two/+b SILENT/' "checkpatch.pl did not run: "
	spoil 0002-b.patch 's/^+b two/+b UGLY/' "checkpatch: "
	echo '0002-b.patch UGLY_TYPE it has to be' > "$PATCHES/checkpatch"
	expect_series 0 --fast
	printed "explained"
}

# As quilt refresh leaves it
test_series_with_a_script_that_lost_its_mode()
{
	local mode=$'diff --git a/tools/perf/c.sh b/tools/perf/c.sh\nnew file mode 100755\n'

	write_good_series
	for mode in "$mode" ''; do
		cat > "$PATCHES/0002-b.patch" <<-END
			Subject: perf: Add a script

			It is text,
			and was not there.
			---
			 tools/perf/c.sh |    2 ++
			 1 file changed, 2 insertions(+)

			$mode--- /dev/null
			+++ b/tools/perf/c.sh
			@@ -0,0 +1,2 @@
			+#!/bin/sh
			+true
		END
		expect_series $((${#mode} == 0)) --fast
	done
	printed "FAILED  0002-b.patch: tools/perf/c.sh is not executable"
	printed "2 patches, 1 defects"
}

test_series_is_built_from_a_patch_on()
{
	write_good_series
	expect_series 0 --from 0002-b.patch
	row_is 0001-a.patch 'ok .*( +-){5}' ||
		fail "0001-a.patch was built: $PRINTED"
	row_is 0002-b.patch '(ok +){7}-' ||
		fail "0002-b.patch was not built: $PRINTED"
	expect_series 2 --from 0003-c.patch
	printed "--from 0003-c.patch: not in $PATCHES/series"
	expect_series 2 --fast --from 0002-b.patch
}

test_series_with_a_patch_that_does_not_build()
{
	local build

	write_good_series
	expect_series 0
	echo "of the last patch" > "$OUT/build-default/object"
	expect_series 0
	[[ ! -e $OUT/build-default/object ]] || fail "objects of the run before are left"
	sed -i 's/^+b two/+b ERROR/' "$PATCHES/0002-b.patch"
	expect_series 1
	printed "FAILED  0002-b.patch: does not build (default)"
	printed "2 patches, 1 defects"
	for build in no_libbpf no_skel libbpf_dynamic; do
		sed -i "s/^+b .*/+b ERROR in build-$build/" "$PATCHES/0002-b.patch"
		expect_series 1
		printed "FAILED  0002-b.patch: does not build ($build)"
		printed "2 patches, 1 defects"
	done
	STUB_MISSING=libbpf-dev expect_series 2 --no-install
	printed "libbpf-dev"
}

# The test is there from the second patch on.
test_series_with_a_patch_that_fails_its_test()
{
	write_good_series
	sed -i 's/^+b two/+b SAYS 1: bpf-metadata : Ok/' "$PATCHES/0002-b.patch"
	expect_series 0
	row_is 0001-a.patch '(ok +){7}-' ||
		fail "0001-a.patch has no test: $PRINTED"
	row_is 0002-b.patch '(ok +){7}ok' ||
		fail "the test of 0002-b.patch was not run: $PRINTED"
	sed -i 's/: Ok$/: FAILED!/' "$PATCHES/0002-b.patch"
	expect_series 1
	printed "FAILED  0002-b.patch: perf test bpf-metadata fails: 1: bpf-metadata : FAILED!"
	printed "2 patches, 1 defects"
	sed -i 's/: FAILED!$/: Skip/' "$PATCHES/0002-b.patch"
	expect_series 1
	printed "FAILED  0002-b.patch: perf test bpf-metadata runs nothing"
	printed "2 patches, 1 defects"
}

# expect_submission STATUS OPTION...: make-submission.sh, for whom $TOP/t/gitconfig names
expect_submission()
{
	local wanted=$1 status=0

	shift
	PRINTED=$(cd "$TOP/t" && env -u GIT_DIR GIT_CONFIG_GLOBAL="$TOP/t/gitconfig" PATH="$TOP/t/bin:$TOP/stubs:$REAL_PATH" \
		PBM_CACHE="$CACHE" PBM_PINS="$PINS" PBM_PATCHES="$PATCHES" PBM_MIRROR='' \
		"$SCRIPTS_DIR/make-submission.sh" --out "$OUT" "$@" v0.1 2>&1) || status=$?
	printf '%s\n' "--- make-submission $* ($status)" "$PRINTED"
	((status == wanted)) || fail "status $status, not $wanted"
}

test_submission_needs_a_name_and_a_letter()
{
	write_good_series
	expect_submission 2
	printed "git config has no user.name or no user.email"
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TOP/t/gitconfig"
	expect_submission 2
	printed "cover-letter is not there"
	printf 'Two\n\nThey are two.\n' > "$PATCHES/cover-letter"
	expect_submission 2 --version 2
	printed "add 'Changes in v2:'"
	expect_submission 2 --to stable-fixes
	printed "stable-fixes is not there"
	expect_submission 2 --to somebody
	absent "$OUT/mails"
}

test_submission_applies()
{
	local mail

	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TOP/t/gitconfig"
	printf 'Two\n\nThey are two.\n\nChanges in v2:\n- none\n' > "$PATCHES/cover-letter"
	# Nothing of it counts but who it is.
	printf '[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n' >> "$TOP/t/gitconfig"
	expect_submission 0 --version 2 --rfc
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 3 ]] || fail "not three mails"
	holds "$OUT/mails/v2-0000-cover-letter.patch" "Subject: \\[RFC PATCH v2 0/2\\] Two"
	holds "$OUT/mails/v2-0000-cover-letter.patch" "They are two."
	holds "$OUT/mails/v2-0000-cover-letter.patch" "base-commit: "
	for mail in "$OUT"/mails/v2-000[12]*.patch; do
		holds "$mail" "From: A Name <a@name>"
		holds "$mail" "Signed-off-by: A Name <a@name>"
	done
	holds "$OUT/recipients" "--to=A Maintainer <a@maintainer>"
	holds "$OUT/recipients" "--cc=list@kernel"
	printed "git send-email --dry-run $OUT/mails/"
	printf 'One\n\nIt is one.\n' > "$PATCHES/cover-letter-stable-fixes"
	echo 0001-a.patch > "$PATCHES/stable-fixes"
	expect_submission 0 --to stable-fixes
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 2 ]] || fail "not two mails"
	echo 0002-b.patch > "$PATCHES/stable-fixes"
	expect_submission 2 --to stable-fixes
	printed "not the begin of the series"
}

# As if quilt made other files of the patches
test_submission_that_is_not_the_series()
{
	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TOP/t/gitconfig"
	printf 'Two\n\nThey are two.\n' > "$PATCHES/cover-letter"
	mkdir "$TOP/t/bin"
	sed -i 's/^+b two/+b UGLY/' "$PATCHES/0002-b.patch"
	expect_submission 1
	printed "refuses the series"
	printed "  FAILED  0002-b.patch: checkpatch: "
	absent "$OUT/mails"
	sed -i 's/^+b UGLY/+b two/' "$PATCHES/0002-b.patch"
	printf '#!/bin/sh\n' > "$TOP/t/bin/b4"
	chmod +x "$TOP/t/bin/b4"
	expect_submission 1
	printed "b4 does not take the mails"
	absent "$OUT/mails"
	mv "$TOP/t/bin/b4" "$TOP/t/bin/quilt"
	expect_submission 1
	printed "git am makes other files of the mails"
	absent "$OUT/mails"
}

test_vm_options_that_make_no_sense()
{
	local options status

	for options in '--accel tcg' '--arch arm64' '--kernel distro' '--vm --accel hvf' '--vm --arch vax' '--vm --kernel /none'; do
		status=0
		# shellcheck disable=SC2086 # several words
		PRINTED=$(PBM_PINS=$PINS "$SCRIPTS_DIR/run-selftests.sh" $options v0.1 2>&1) || status=$?
		((status == 2)) || fail "$options: status $status"
		if [[ $options = --vm* ]]; then
			printed "error: ${options#--vm }: "
		else
			printed "error: --arch, --kernel and --accel are for --vm"
		fi
	done
}

test_vm_status_and_report_come_back()
{
	STUB_VM=0 expect_vm 0
	printed "ok      a test of 1"
	printed "ok      a test of 2"
	printed "guest: 0"
	STUB_VM=2 STUB_VM2=0 expect_vm 0
	printed "guest: 2"
	STUB_VM=0 STUB_VM2=2 expect_vm 0
	printed "guest: 2"
}

# The first would go on.
test_vm_of_which_one_goes_wrong()
{
	STUB_VM=ever STUB_VM2=hang expect_vm 2
	printed "no user space within 1 s"
	STUB_VM=ever STUB_VM2=panic expect_vm 2
	printed "ok      a test of 1"
	printed "  kernel: [ 0.2] Kernel panic - not syncing: stub"
	printed "full log: $TOP/t/vm/2/console.log"
	STUB_VM=0 STUB_VM2=ever VM_TIMEOUT=1 expect_vm 2
	printed "has not ended after 1 s"
}

test_vm_that_hangs_at_boot()
{
	STUB_VM=hang expect_vm 2
	printed "no user space within 1 s, its console ends with '[ 0.1] clocksource: stub'"
	printed "  | [ 0.1] clocksource: stub"
}

test_vm_that_panics()
{
	STUB_VM=panic expect_vm 2
	printed "ok      a test of 1"
	printed "  kernel: [ 0.2] Kernel panic - not syncing: stub"
	printed "  | [ 0.2] Kernel panic - not syncing: stub"
	printed "the guest ended before its tests did"
}

test_vm_that_does_not_end()
{
	VM_TIMEOUT=1 STUB_VM=ever expect_vm 2
	printed "ok      a test of 1"
	printed "has not ended after 1 s"
	printed "clocksource: stub"
}

test_vm_without_a_working_kvm()
{
	ACCEL='' STUB_VM=0 expect_vm 0
	printed "TCG (KVM: no user space within 1 s, its console ends with '[ 0.1] clocksource: stub')"
	ACCEL=kvm STUB_VM=0 expect_vm 2
	printed "leave out --accel kvm"
	ACCEL=kvm STUB_REFUSAL="there is no /dev/kvm" STUB_VM=0 expect_vm 2
	printed "error: there is no /dev/kvm"
	printed "leave out --accel kvm"
	ACCEL='' STUB_REFUSAL="there is no /dev/kvm" STUB_VM=0 expect_vm 0
	printed "TCG (there is no /dev/kvm)"
	ACCEL='' STUB_KVM=0 STUB_VM=hang expect_vm 0
	printed "accel     KVM"
}

test_vm_with_a_splat()
{
	local line

	for line in 'WARNING: CPU: 0 PID: 1 at x.c:1' 'BUG: KASAN: stub' 'INFO: task x:1 blocked for more than 120 seconds.'; do
		STUB_CONSOLE=$line STUB_VM=0 expect_vm 1
		printed "  | [ 0.1] $line"
		printed "FAILED  the kernel of the guest complains"
	done
}

test_vm_without_a_log()
{
	sed -i 's/Linux version//' "$TOP/stubs/qemu-system-x86_64"
	PRINTED=$(STUB_VM=0; expect_vm 1) || fail "$PRINTED"
	make_qemu_stub
	printed "is no log of a kernel"
}

test_vm_interrupted()
{
	STUB_VM=ever start_vm
	kill -INT -- "-$HANGING"
	ends_with 130
	vm_left_nothing
}

test_vm_terminated()
{
	STUB_VM=ever start_vm
	kill -TERM "$HANGING"
	ends_with 143
	vm_left_nothing
}

test_vm_ends_with_its_script()
{
	local tries=0

	STUB_VM=ever start_vm
	kill -KILL "$HANGING"
	ends_with 137
	while kill -0 "$(< "$TOP/t/vm/1/pid")" 2>/dev/null || kill -0 "$(< "$TOP/t/vm/2/pid")" 2>/dev/null; do
		sleep 0.1
		((++tries < 100)) || fail "QEMU still runs"
	done
}

# bench.sh with the perfs of this checkout, which it must not build first
call_bench()
{
	exec env --default-signal=INT "$SCRIPTS_DIR/bench.sh" --no-install --out "$TOP/t/bench" "$@"
}

expect_bench()
{
	local wanted=$1 status=0

	shift
	PRINTED=$(call_bench "$@" 2>&1) || status=$?
	printf '%s\n' "--- bench.sh $* ($status)" "$PRINTED"
	((status == wanted)) || fail "status $status, not $wanted"
}

needs_perfs()
{
	local perf

	((EUID == 0)) || skip "needs root"
	for perf in v6.16 v6.16-unpatched; do
		[[ -x $SCRIPTS_DIR/../out/$perf/perf ]] || skip "needs out/$perf/perf"
	done
	command -v gnuplot > /dev/null || skip "needs gnuplot"
}

# The ids of the programs that the bench.sh of this test has loaded
bench_programs()
{
	local bench hold

	bench=$(pgrep -f -- "--state $TOP/t/bench") && hold=$(pgrep -x -P "$bench" hold) || return
	sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$hold/fdinfo"/* 2> /dev/null | grep .
}

# The kernel frees them some time after they were closed.
await_no_program()
{
	local id tries=0

	for id; do
		while PATH=$PATH:/usr/sbin bpftool prog show id "$id" 2> /dev/null; do
			sleep 0.1
			((++tries < 100)) || fail "program $id is left"
		done
	done
}

test_each_script_has_help_and_refuses_nonsense()
{
	local script

	for script in apply-and-build bench check-series fuzz interop make-submission run-selftests; do
		PRINTED=$("$SCRIPTS_DIR/$script.sh" --help) || fail "$script.sh --help: status $?"
		printed "usage: scripts/$script.sh"
		refuses "$script" --frobnicate v6.16
		refuses "$script" v6.16 v6.16
		refuses "$script" v9.9
	done
	refuses fuzz --time 0 v6.16
	refuses fuzz --seed x v6.16
	refuses fuzz --replay --add "$0" v6.16
	refuses fuzz --add /none v6.16
	refuses run-selftests --sanitize --vm v6.16
	refuses run-selftests --expected-skips /none v6.16
	refuses run-selftests --sanitize=memory v6.16
	refuses interop v6.18.15
	((EUID != 0)) || printed "there are no patches for v6.18.15"
}

mutate()
{
	PRINTED=$("$SCRIPTS_DIR/mutate.py" --tree "$TOP/t/new" --base "$TOP/t/old" --table "$TOP/t/table" "$@" 2>&1)
}

# A function that was there, and one that the series adds
make_mutable()
{
	mkdir -p "$TOP/t/old/tools/perf/util" "$TOP/t/new/tools/perf/util"
	cat > "$TOP/t/old/tools/perf/util/x.c" <<-'END'
	int old(int a)
	{
		return a < 1;
	}
	END
	{
		cat "$TOP/t/old/tools/perf/util/x.c"
		cat <<-'END'

		static int new(int a,
			       int b)
		{
			int err = 0;

			if (a < b)
				return -EINVAL;
			err = add(a,
				  b);
			call(err);
			free(err);
			return min(a, err);
		}
		END
	} > "$TOP/t/new/tools/perf/util/x.c"
}

# Each line but the one that frees, and those of half a statement, is in the table once.
test_mutations_are_drawn()
{
	local before

	make_mutable
	mutate --draw v6.16
	printed "4 mutations in $TOP/t/table"
	cp "$TOP/t/table" "$TOP/t/first"
	mutate --draw v6.16
	cmp "$TOP/t/first" "$TOP/t/table" || fail "another table by the same seed"
	mutate --list v6.16
	[[ $(cut -f 2-4 <<< "$PRINTED" | sort -u) = tools/perf/util/x.c$'\t'new$'\t'1 ]] || fail "not all are of new(): $PRINTED"
	for before in 'if (a < b)' 'return -EINVAL;' 'call(err);' 'return min(a, err);'; do
		printed $'\t'"$before"$'\t'
	done
	printed $'\tno-error\treturn -EINVAL;\treturn 0;'
	printed $'\tdrop-call\tcall(err);\t;'
	printed $'\tmin-max\treturn min(a, err);\treturn max(a, err);'
	mutate --draw --count 2 v6.16
	printed "2 mutations in "
}

# refuses_mutations TEXT ARGUMENT...
refuses_mutations()
{
	local status=0

	mutate "${@:2}" || status=$?
	((status == 2)) || fail "mutate.py ${*:2}: status $status"
	printed "$1"
	printed "next: "
}

test_mutations_that_make_no_sense()
{
	"$SCRIPTS_DIR/mutate.py" --help > "$TOP/t/help"
	holds "$TOP/t/help" "^usage: scripts/mutate.py"
	refuses_mutations "--frobnicate" --frobnicate v6.16
	refuses_mutations "unknown tag 'v9.9'" v9.9
	refuses_mutations "one TAG is needed, 2 given" v6.16 v6.16
	refuses_mutations "--seed x: not a number" --draw --seed x v6.16
	refuses_mutations "no patched tree" --draw v6.16
	refuses_mutations "$TOP/t/table: no table" v6.16
	echo "a line" > "$TOP/t/table"
	refuses_mutations "$TOP/t/table:1: no mutation: a line" v6.16
	make_mutable
	cp "$TOP/t/old/tools/perf/util/x.c" "$TOP/t/new/tools/perf/util/x.c"
	refuses_mutations "the series adds nothing" --draw v6.16
	make_mutable
	mutate --draw v6.16
	refuses_mutations "no such mutation" --only nobody v6.16
	((EUID == 0)) || refuses_mutations "only root" v6.16
}

# compare_skips WANT [OPTION...]: of $TOP/t/list with $TOP/t/results
compare_skips()
{
	printf '%b' "$1" > "$TOP/t/want"
	awk "${@:2}" -f "$SCRIPTS_DIR/lib/skips.awk" "$TOP/t/list" "$TOP/t/results" > "$TOP/t/got" ||
		fail "skips.awk: status $?"
	diff -u "$TOP/t/want" "$TOP/t/got" || fail "the skips are not told apart"
}

test_skips_are_compared_with_a_list()
{
	local bad list

	printf '# a comment\n\na: .*\tno PMU: .*\nb: two\tno disk\nc: x\tnever\n' > "$TOP/t/list"
	printf 'ok\ta: one\t\nskip\ta: two\tno PMU: none\nskip\tb: two\tno disk\n' > "$TOP/t/results"
	compare_skips "$(< "$TOP/t/results")\nmissed\tc: x\tnever\n"
	compare_skips "$(< "$TOP/t/results")\n" -v filter=b:
	# Another reason, another test, part of a name and of a reason
	printf 'skip\ta: two\tno disk\nskip\tb: twofold\tno disk\nskip\tb: two\tno disk left\nskip\td\tno disk\n' \
		> "$TOP/t/results"
	compare_skips "$(sed s/^skip/unexpected/ "$TOP/t/results")\nmissed\ta: .*\tno PMU: .*\nmissed\tb: two\tno disk\n" \
		-v filter=.
	: > "$TOP/t/list"
	compare_skips "$(sed s/^skip/unexpected/ "$TOP/t/results")\n"
	for bad in 'a: no tab' 'a\t(' 'a\tb\tc' '\tb'; do
		printf '%b\n' "$bad" > "$TOP/t/list"
		refuses run-selftests --expected-skips "$TOP/t/list" v6.16
		printed "--expected-skips $TOP/t/list: no list of tests and reasons"
	done
	for list in "$SCRIPTS_DIR"/../.ci/skips-*; do
		awk -f "$SCRIPTS_DIR/lib/skips.awk" "$list" || fail "$list: no such list"
	done
}

# refuses SCRIPT ARGUMENT...: with status 2, and says what is wrong
refuses()
{
	local script=$1 status=0

	shift
	PRINTED=$("$SCRIPTS_DIR/$script.sh" "$@" 2>&1) || status=$?
	((status == 2)) || fail "$script.sh $*: status $status"
	[[ -n $PRINTED ]] || fail "$script.sh $*: says nothing"
}

test_bench_help()
{
	expect_bench 0 --help
	printed "usage: "
	printed "--peer PERF"
	absent "$TOP/t/bench"
}

test_bench_options_that_make_no_sense()
{
	local options

	for options in '--cases own,none' '--cases ,' '--programs 5,0' '--programs x' '--runs 2' '--runs 0x3' '--frobnicate'; do
		# shellcheck disable=SC2086 # several words
		expect_bench 2 $options v6.16
		printed "${options#* }"
		printed "next: bench.sh --help"
	done
	expect_bench 2 --peer "$TOP/none" v6.16
	printed "--peer $TOP/none: not a program"
	printed "next: "
	expect_bench 2
	expect_bench 2 v6.16 v6.16
	expect_bench 2 v9.9
	printed "unknown tag 'v9.9'"
	expect_bench 2 v6.12.107
	printed "v6.12.107 has no patches"
	absent "$TOP/t/bench"
}

# Two cases: the second is taken from where an interrupted run has left it.
test_bench_interrupted_and_resumed()
{
	local options=(--programs 5 --runs 3 --cases 'distinct,delay' v6.16)
	local part=$TOP/t/bench/.part programs tries=0

	needs_perfs
	set -m
	call_bench "${options[@]}" > "$TOP/t/bench.log" 2>&1 &
	HANGING=$!
	set +m
	until programs=$(bench_programs); do
		sleep 0.1
		kill -0 "$HANGING" 2> /dev/null || fail "it ended: $(< "$TOP/t/bench.log")"
		((++tries < 6000)) || fail "no program was ever loaded"
	done
	kill -INT -- "-$HANGING"
	ends_with 130
	# shellcheck disable=SC2086 # several ids
	await_no_program $programs
	absent "$part/tmp"
	absent "$TOP/t/bench/table.txt"

	[[ -f $part/inputs ]] || fail "nothing is left to go on from"
	echo '{"case": "delay", "shape": "", "programs": 0, "load": 0,
		"results": {"stub": {"delay": [0.0625, 0.125, null]}}}' > "$part/delay.json"
	expect_bench 0 "${options[@]}"
	absent "$part"
	grep -E '^stub +93.8 \[62.5 125.0\] +2 +3$' "$TOP/t/bench/table.txt" || fail "measured again"
	grep -E '^distinct-5 +unpatched .* 30 +6.00 ' "$TOP/t/bench/table.txt" || fail "not 6 calls a program"
	grep -E '^distinct-5 +header .* 50 +10.00 ' "$TOP/t/bench/table.txt" || fail "not 10 calls a program"
	python3 -m json.tool "$TOP/t/bench/results.json" > /dev/null || fail "results.json is no JSON"
}

test_bench_draws()
{
	local state=$TOP/t/state name n i type text

	command -v gnuplot > /dev/null || skip "needs gnuplot"
	mkdir "$state"
	printf 'perf: x\nmachine: y\nmedians\n' > "$state/title"
	for name in unpatched all; do
		printf '"%s"\n' "$name"
		for n in 0 100; do
			printf '%d' "$n"
			for ((i = 0; i < 20; i++)); do
				printf '\t%d' "$n"
			done
			echo
		done
		printf '\n\n'
	done > "$state/own.tsv"
	printf '"%s"\t1\t1\t2\t1\t1\t2\t1\t1\t2\n' 'all file, x' 'none file, y' > "$state/reading.tsv"
	for name in own:growth reading:reading; do
		for type in png svg; do
			gnuplot -e "type='$type'; name='${name%:*}'; dir='$state'" \
				"$SCRIPTS_DIR/lib/bench-${name#*:}.gp" > "$TOP/t/gnuplot" 2>&1 ||
				fail "gnuplot: $(< "$TOP/t/gnuplot")"
			[[ ! -s $TOP/t/gnuplot ]] || fail "gnuplot: $(< "$TOP/t/gnuplot")"
		done
		python3 -c "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])" "$state/${name%:*}.svg" ||
			fail "${name%:*}.svg is no XML"
	done
	cmp -n 8 "$state/own.png" <(printf '\211PNG\r\n\032\n') || fail "own.png is no PNG"
	for text in 'perf: x' 'machine: y' unpatched all; do
		holds "$state/own.svg" "$text"
	done
}

# --- run ----------------------------------------------------------------------

list_tests()
{
	local name word

	for name in $(declare -F | sed -n 's/^declare -f test_//p'); do
		(($#)) || echo "$name"
		for word; do
			[[ $name != *"$word"* ]] || { echo "$name"; break; }
		done
	done
}

# A test runs in a shell of its own, in which the first command that fails ends it:
# exit 0 passed, 4 skipped, others failed. Not left of || or in an if, where bash
# would not care for errexit.
run_alone()
(
	set -eE
	shopt -s inherit_errexit
	trap 'echo "FAILED: $BASH_COMMAND (status $?, in ${FUNCNAME[*]})"' ERR
	start_test
	"test_$1"
)

run_test()
{
	local number=$1 name=$2 status

	run_alone "$name" > "$TOP/test.log" 2>&1
	status=$?
	case $status in
	0)	echo "ok $number $name" ;;
	4)	echo "ok $number $name # SKIP $(< "$TOP/skip-reason")"
		SKIPPED=$((SKIPPED + 1)) ;;
	*)	sed 's/^/# /' "$TOP/test.log"
		echo "not ok $number $name"
		FAILED=$((FAILED + 1)) ;;
	esac
	if mountpoint -q "$TOP/disk"; then
		umount "$TOP/disk"
	fi
}

run_tests()
{
	local name number=0

	echo "KTAP version 1"
	echo "1..$#"
	for name; do
		run_test $((++number)) "$name"
	done
	echo "# Totals: pass:$((number - FAILED - SKIPPED)) fail:$FAILED skip:$SKIPPED"
}

FAILED=0 SKIPPED=0
make_fixtures > "$TOP/fixtures.log" 2>&1 || {
	cat "$TOP/fixtures.log" >&2
	echo "test-scripts.sh: error: cannot make the fixtures in $TOP" >&2
	exit 2
}
mapfile -t TESTS < <(list_tests "$@")
if ((${#TESTS[@]} == 0)); then
	echo "test-scripts.sh: error: no test matches '$*'" >&2
	exit 2
fi
run_tests "${TESTS[@]}"
((FAILED == 0))
