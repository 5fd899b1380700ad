#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of apply-and-build.sh: its errors, what it does again, and the files that it must not touch.

. "$(dirname "$0")/fixtures.sh"

build()
{
	expect "$1" apply-and-build.sh "${@:2}"
}

# refused TEXT OPTION...: the run is refused, prints the text, and leaves no perf.
refused()
{
	build 2 "${@:2}"
	printed "$1"
	absent "$OUT/perf"
}

# compiles FILES OPTION...: a run compiles only these files.
compiles()
{
	local compiled

	[[ ! -e $OUT/build ]] || : > "$OUT/build/compiled"
	build 0 "${@:2}"
	compiled=$(sort "$OUT/build/compiled" | paste -s -d ' ')
	[[ $compiled = "$1" ]] || fail "compiled '$compiled', not '$1'"
}

# Start the script, and wait until it calls this command, which hangs.
start_hanging()
{
	local tries=0

	rm -f "$TMP/hanging"
	set -m
	STUB_HANG=$1 call_script apply-and-build.sh v0.1 > "$TMP/t/hanging.log" 2>&1 &
	HANGING=$!
	set +m
	until [[ -s $TMP/hanging ]]; do
		sleep 0.1
		((++tries < 200)) || fail "$1 was never called"
	done
}

test_full_run_and_unchanged_rerun()
{
	compiles "a.c b.c c.c evsel.c" v0.1
	holds "$OUT/linux/tools/perf/a.c" "a two"
	absent "$OUT/linux/drivers/net"
	rm -f "$TMP"/calls.*
	build 0 --quiet v0.1
	[[ $PRINTED = "$OUT/perf"$'\n'"perf version 0.1" ]] || fail "not the two lines of --quiet"
	absent "$TMP/calls.make"
	absent "$TMP/calls.xz"
	build 0 --sanitize v0.1
	holds "$OUT/build/built" "-fsanitize=fuzzer-no-link,address,undefined"
	build 0 --sanitize=thread v0.1
	holds "$OUT/build/built" "-fsanitize=thread"
}

test_changed_series_rebuilds_only_its_files()
{
	local before

	build 0 v0.1
	before=$(stat -c %Y.%y "$OUT/linux/tools/perf/a.c")
	write_patch core/b.patch b.c 3 'b three'
	compiles b.c v0.1
	[[ $(stat -c %Y.%y "$OUT/linux/tools/perf/a.c") = "$before" ]] || fail "the mtime has changed"
	holds "$OUT/linux/tools/perf/b.c" "b three"
	! grep -q 'b two' "$OUT/linux/tools/perf/b.c" || fail "the old patch is still applied"
	echo fixes/a.patch > "$SERIES"
	compiles b.c v0.1
	holds "$OUT/build/b.o" "b 2"
}

test_series_that_cannot_be_applied()
{
	build 0 v0.1
	sed -i 's/^ b 5/ b five/' "$PATCHES/core/b.patch"
	build 2 v0.1
	printed "core/b.patch"$'\n'"  | error: patch failed: tools/perf/b.c"
	printed "scripts/queue import v0.1 stops at it"
	holds "$OUT/linux/tools/perf/b.c" "b two"
	[[ -x $OUT/perf ]] || fail "the perf of the old tree is gone"
	refused "the series does not apply" --clean v0.1
	echo core/none.patch >> "$SERIES"
	refused "names core/none.patch, which is not there" v0.1
	echo "# nothing" > "$SERIES"
	refused "--no-patches" v0.1
	build 0 --no-patches v0.1
	holds "$OUT/linux/tools/perf/a.c" "a 2"
}

test_sources_that_are_refused()
{
	local archive=$TMP/fixture/linux-0.1.tar.xz git=(git -C "$TMP/t/linux-0.1" -c user.name=x -c user.email=x@y)

	rm "$CACHE"/*
	mkdir "$TMP/t/mirror"
	echo wrong > "$TMP/t/mirror/linux-0.1.tar.xz"
	make_kernel "$TMP/t/linux-0.1" 7
	tar -C "$TMP/t" -czf "$TMP/t/linux-0.1.tar.gz" linux-0.1
	refused "is version 0.1.7, not 0.1.0" --source "$TMP/t/linux-0.1.tar.gz" v0.1
	refused "no such file" --source "$TMP/none" v0.1
	"${git[@]}" init -q
	"${git[@]}" add Makefile
	"${git[@]}" commit -q -m x
	refused "has no tag v0.1" --source "$TMP/t/linux-0.1" v0.1
	"${git[@]}" tag v0.1
	refused "the pin says" --source "$TMP/t/linux-0.1" v0.1
	sed '/^commit/d' "$TMP/pins" > "$TMP/t/pins"
	PINS=$TMP/t/pins refused "v0.1 in $TMP/t/linux-0.1 is version 0.1.7, not 0.1.0" --source "$TMP/t/linux-0.1" v0.1
	refused "wrong checksum" --mirror "$TMP/t/mirror" v0.1
	STUB_CURL_STATUS=18 refused "curl: (18)" v0.1
	printed "check the network"
	STUB_CURL_FILE=$TMP/t/mirror/linux-0.1.tar.xz refused "wrong checksum: linux-0.1.tar.xz from kernel.org" v0.1
	# Now the file is in the cache.
	STUB_CURL_FILE=$archive refused "remove $CACHE/linux-0.1.tar.xz and run it again" v0.1
	rm "$CACHE"/*
	STUB_CURL_FILE=$archive build 0 --no-build v0.1
	truncate -s -30000 "$CACHE/linux-0.1.tar.xz"
	pin_archive linux-0.1.tar.xz
	refused "cannot unpack" v0.1
	refused "cannot unpack" v0.1
}

test_sources_have_an_order()
{
	rm "$CACHE"/*
	STUB_CURL_FAILS=kernel/ STUB_CURL_FILE=$TMP/fixture/linux-source-0.1_1_all.deb build 0 v0.1
	printed "linux-source-0.1_1_all.deb from debian"
	printed "version   0.1.3, a substitute for v0.1 (0.1.0)"
	holds "$TMP/calls.curl" "pool:/pool/main/l/linux/linux-source-0.1_1_all.deb$"
	# The cache is before the mirror, even if the mirror has the first file of the pin.
	build 0 --clean --mirror "$TMP/fixture" v0.1
	printed "$CACHE/linux-source-0.1_1_all.deb"
	# What the user names is before both, and replaces what was unpacked.
	build 0 --source "$TMP/fixture/linux-0.1" v0.1
	printed "source    git tree $TMP/fixture/linux-0.1, commit "
	holds "$OUT/linux/Makefile" "SUBLEVEL = 0"
	build 0 --source "$TMP/fixture/linux-0.1.3.tar.xz" v0.1
	printed "which is not in $PINS; its Makefile says 0.1.3"
	build 0 --source "$TMP/fixture/linux-source-0.1_1_all.deb" v0.1
	printed "version   0.1.3, a substitute for v0.1 (0.1.0)"
	rm "$CACHE"/*
	build 0 --clean --mirror "$TMP/fixture" v0.1
	printed "$TMP/fixture/linux-0.1.tar.xz"
}

test_missing_package_is_named()
{
	STUB_MISSING="clang flex" refused "APT::Get::Build-Dep-Automatic=yes build-dep -P nocheck" --no-install v0.1
	printed "packages are missing: clang flex"
	absent "$TMP/calls.apt-get"
	((EUID != 0)) || STUB_MISSING="clang flex" build 0 v0.1
	((EUID != 0)) || holds "$TMP/calls.apt-get" "--no-install-recommends build-dep -P nocheck"
}

test_perf_that_does_not_build()
{
	STUB_FEATURES="HAVE_LIBELF_SUPPORT HAVE_ZLIB_SUPPORT HAVE_LIBBPF_SUPPORT HAVE_LIBTRACEEVENT" \
		refused "built without: HAVE_BPF_SKEL" v0.1
	write_patch core/b.patch b.c 2 'ERROR'
	refused "  | " v0.1
	printed "full log: $OUT/apply-and-build.log"
	write_patch core/b.patch b.c 2 'b two'
	build 0 v0.1
}

# A new file is an edit, too, but not what an editor keeps beside a file.
test_edited_tree_is_refused()
{
	local option

	build 0 v0.1
	echo edit >> "$OUT/linux/tools/perf/c.c"
	echo mine > "$OUT/linux/tools/perf/new.c"
	echo theirs > "$OUT/linux/tools/perf/a.c.orig"
	cd "$OUT/linux/drivers"
	for option in --quiet --no-patches "--source=$TMP/fixture/linux-0.1.3.tar.xz"; do
		build 2 "$option" v0.1
		printed "  edited: tools/perf/c.c"$'\n'"  edited: tools/perf/new.c"$'\n'"apply"
		holds "$OUT/linux/tools/perf/c.c" edit
		holds "$OUT/linux/tools/perf/new.c" mine
	done
	git --git-dir="$OUT/linux.git" diff --cached HEAD | grep '^+edit' || fail "the printed command shows no edit"
	cd "$TMP"
	build 0 --clean v0.1
	! grep -q edit "$OUT/linux/tools/perf/c.c" || fail "--clean left the edit"
}

test_foreign_directory_is_left_alone()
{
	local entry

	for entry in build linux linux.git; do
		mkdir -p "$OUT/$entry"
		echo mine > "$OUT/$entry/file"
		build 2 --clean v0.1
		holds "$OUT/$entry/file" mine
		rm -r "$OUT"
	done
}

# Kill the whole script and its current step, which has a process group of its own.
test_next_run_repairs_what_a_killed_run_left()
{
	local step

	for step in xz make; do
		start_hanging "$step"
		kill -9 -- "-$HANGING"
		kill -9 "$(< "$TMP/hanging")" || echo "the step ended with the script"
		wait
		absent "$OUT/perf"
		build 0 v0.1
		rm -r "$OUT"
	done
}

# A reset writes the files first, and then moves HEAD.
test_next_run_goes_on_with_a_killed_reset()
{
	local git=(git --git-dir="$OUT/linux.git") text head

	build 0 v0.1
	head=$("${git[@]}" rev-parse HEAD)
	for text in 'b three' 'b two'; do
		write_patch core/b.patch b.c 2 'b three'
		build 0 v0.1
		"${git[@]}" update-ref HEAD "$head"
		write_patch core/b.patch b.c 2 "$text"
		build 0 v0.1
		holds "$OUT/linux/tools/perf/b.c" "$text"
	done
}

test_signal_ends_the_step()
{
	start_hanging xz
	kill -INT -- "-$HANGING"
	ends_with 130
	start_hanging make
	kill -TERM "$HANGING"
	ends_with 143
	flock --timeout 20 "$OUT/lock" true || fail "make still runs"
	build 0 v0.1
}

run_tests
