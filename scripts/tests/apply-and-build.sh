#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of apply-and-build.sh: its errors, its repairs, and the files that it must not touch.

. "$(dirname "$0")/fixtures.sh"

end_test()
{
	! mountpoint -q "$TMP/disk" || umount "$TMP/disk"
}

build()
{
	expect "$1" apply-and-build "${@:2}"
}

# Nothing unfinished is left: no .part, and no tree or perf that look complete.
left_nothing()
{
	local parts

	parts=$(find "$TMP/t" -name '*.part*')
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
	call_script apply-and-build v0.1 > "$TMP/t/hanging.log" 2>&1 &
	HANGING=$!
	set +m
	unset STUB_HANG
	until [[ -s $TMP/hanging ]]; do
		sleep 0.1
		((++tries < 200)) || fail "$1 was never called"
	done
}

# Kills the whole script, with the step, which has a process group of its own.
kill_hanging()
{
	kill -9 -- "-$HANGING"
	kill -9 "$(< "$TMP/hanging")" || echo "the step ended with the script"
	wait
}

test_help()
{
	build 0 --help
	printed "usage: "
	printed "v0.1"
}

test_unknown_option()
{
	build 2 --frobnicate v0.1
	printed "frobnicate"
	absent "$OUT"
}

test_impossible_options()
{
	build 2 --git /x --source /y v0.1
	printed "exclude each other"
	build 2 --jobs 0 v0.1
	build 2 --sanitize --arch arm64 v0.1
	printed "--sanitize is for this machine's perf"
	build 2 --sanitize=memory v0.1
	printed "not 'address' or 'thread'"
	build 2 --source
	build 2
	build 2 v0.1 v0.2
	absent "$OUT"
}

test_sanitizers_are_another_build()
{
	build 0 v0.1
	build 0 --sanitize v0.1
	holds "$OUT/.state/built" "-fsanitize=fuzzer-no-link,address,undefined"
	build 0 --sanitize=thread v0.1
	holds "$OUT/.state/built" "-fsanitize=thread"
	build 0 v0.1
	! grep -q fsanitize "$OUT/.state/built" || fail "still with sanitizers"
}

test_unknown_tag()
{
	build 2 v9.9
	printed "unknown tag 'v9.9'"
	printed "use one of: v0.1 v0.2"
	absent "$OUT"
}

test_full_run()
{
	build 0 v0.1
	[[ $(tail -n 2 <<< "$PRINTED") = "$OUT/perf"$'\n'"perf version 0.1" ]] || fail "the last lines"
	holds "$OUT/linux/tools/perf/a.c" "a two"
	absent "$OUT/linux/drivers/net"
	[[ $(compiled) = "a.c b.c c.c evsel.c" ]] || fail "compiled $(compiled)"
	(cd "$OUT/linux" && quilt --quiltrc - pop -a && quilt --quiltrc - push -a) || fail "quilt in the tree"
}

test_quiet_prints_two_lines()
{
	build 0 --quiet v0.1
	[[ $PRINTED = "$OUT/perf"$'\n'"perf version 0.1" ]] || fail "more than two lines"
}

test_unchanged_rerun_does_nothing()
{
	local start

	build 0 v0.1
	rm -f "$TMP"/calls.*
	start=$(date +%s%N)
	build 0 v0.1
	(($(date +%s%N) - start < 3000000000)) || fail "took over 3 s"
	absent "$TMP/calls.make"
	absent "$TMP/calls.quilt"
	absent "$TMP/calls.xz"
}

test_changed_patch_rebuilds_only_its_files()
{
	local before

	build 0 v0.1
	before=$(stat -c %Y.%y "$OUT/linux/tools/perf/a.c")
	: > "$OUT/build/compiled"
	write_patch core/b.patch b.c 3 'b three'
	build 0 v0.1
	[[ $(compiled) = b.c ]] || fail "compiled $(compiled)"
	[[ $(stat -c %Y.%y "$OUT/linux/tools/perf/a.c") = "$before" ]] || fail "the mtime of a.c"
	holds "$OUT/linux/tools/perf/b.c" "b three"
	! grep -q 'b two' "$OUT/linux/tools/perf/b.c" || fail "the old patch is still in"
}

test_removed_patch_rebuilds_its_files()
{
	build 0 v0.1
	: > "$OUT/build/compiled"
	echo fixes/a.patch > "$SERIES"
	build 0 v0.1
	printed "core/b.patch is in no series"
	[[ $(compiled) = b.c ]] || fail "compiled $(compiled)"
	holds "$OUT/build/b.o" "b 2"
}

test_patch_adds_and_deletes_files()
{
	build 0 v0.1
	{ echo; differences --label /dev/null --label b/tools/perf/new.c /dev/null <(echo new)
	  differences --label a/tools/perf/c.c --label /dev/null "$TMP/fixture/linux-0.1/tools/perf/c.c" /dev/null
	} > "$PATCHES/core/c.patch"
	echo core/c.patch >> "$SERIES"
	build 0 v0.1
	absent "$OUT/linux/tools/perf/c.c"
	holds "$OUT/linux/tools/perf/new.c" new
	sed -i /c.patch/d "$SERIES"
	build 0 v0.1
	absent "$OUT/linux/tools/perf/new.c"
	holds "$OUT/linux/tools/perf/c.c" "c 1"
}

test_patch_that_does_not_apply()
{
	write_patch core/c.patch c.c 5 'c five'
	sed -i 's/^ c 2/ c two/' "$PATCHES/core/c.patch"
	build 2 v0.1
	printed "c.patch: tools/perf/c.c: Hunk #1 FAILED"
	left_nothing
	write_patch core/c.patch c.c 5 'c five'
	build 0 v0.1
}

test_failed_patch_leaves_the_old_tree()
{
	build 0 v0.1
	sed -i 's/^ b 3/ b drei/' "$PATCHES/core/b.patch"
	build 2 v0.1
	holds "$OUT/linux/tools/perf/b.c" "b two"
	[[ -x $OUT/perf ]] || fail "the perf of the old tree is gone"
}

test_patch_with_offset_is_reported()
{
	write_patch core/c.patch c.c 9 'c nine'
	sed -i 's/^@@ -6,4 +6,4/@@ -5,4 +5,4/' "$PATCHES/core/c.patch"
	build 0 v0.1
	printed "core/c.patch: tools/perf/c.c: Hunk #1 succeeded at 6 (offset 1 line)"
}

test_series_without_file()
{
	echo core/none.patch >> "$SERIES"
	build 2 v0.1
	printed "names core/none.patch, which is not there"
	left_nothing
}

test_missing_and_empty_series()
{
	echo "# nothing" > "$SERIES"
	build 2 v0.1
	printed "--no-patches"
	rm "$SERIES"
	build 2 v0.1
	printed "--no-patches"
	left_nothing
	build 0 --no-patches v0.1
	holds "$OUT/linux/tools/perf/a.c" "a 2"
}

test_substitute_is_named_and_guarded()
{
	rm "$CACHE"/*
	build 0 --mirror "$TMP/mirror" v0.1
	printed "version   0.1.3, a s"
	write_patch core/e.patch evsel.c 2 'e two'
	build 2 --mirror "$TMP/mirror" v0.1
	printed "core/e.patch touches tools/perf/evsel.c, in which "
	build 2 --clean --mirror "$TMP/mirror" v0.1
	left_nothing
	build 0 --git "$TMP/fixture/linux-0.1" v0.1
}

test_wrong_checksum_in_mirror()
{
	rm "$CACHE"/*
	mkdir "$TMP/t/mirror"
	echo wrong > "$TMP/t/mirror/linux-0.1.tar.xz"
	build 2 --mirror "$TMP/t/mirror" v0.1
	printed "wrong checksum"
	left_nothing
}

test_wrong_checksum_of_download()
{
	rm "$CACHE"/*
	echo wrong > "$TMP/t/wrong"
	STUB_CURL_FILE=$TMP/t/wrong build 2 v0.1
	printed "wrong checksum: linux-0.1.tar.xz from kernel.org"
	left_nothing
	absent "$CACHE/linux-0.1.tar.xz"
}

test_truncated_download()
{
	rm "$CACHE"/*
	head -c 1000 "$TMP/fixture/linux-0.1.tar.xz" > "$TMP/t/short"
	STUB_CURL_FILE=$TMP/t/short STUB_CURL_STATUS=18 build 2 v0.1
	printed "truncated download: linux-0.1.tar.xz from kernel.org ended after 1000 bytes"
	left_nothing
	STUB_CURL_FILE=$TMP/fixture/linux-0.1.tar.xz build 0 v0.1
}

test_truncated_cache_is_fetched_again()
{
	truncate -s 1000 "$CACHE/linux-0.1.tar.xz"
	STUB_CURL_FILE=$TMP/fixture/linux-0.1.tar.xz build 0 v0.1
	printed "had a wrong sha256"
}

test_damaged_archive_is_refused()
{
	local sum

	truncate -s -30000 "$CACHE/linux-0.1.tar.xz"
	sum=$(print_sum "$CACHE/linux-0.1.tar.xz")
	sed "s/\(linux-0.1.tar.xz\t\)[0-9a-f]*/\1$sum/" "$TMP/pins" > "$TMP/t/pins"
	PINS=$TMP/t/pins
	build 2 v0.1
	printed "cannot unpack"
	left_nothing
	absent "$OUT/.base"
}

test_debian_pool_is_the_last_source()
{
	rm "$CACHE"/*
	STUB_CURL_STATUS=6 STUB_POOL=file:$TMP/pool build 0 v0.1
	printed "linux-source-0.1_1_all.deb (debian)"
	printed "version   0.1.3, a s"
	[[ -f $CACHE/linux-source-0.1_1_all.deb && ! -L $CACHE/linux-source-0.1_1_all.deb ]] || fail "not in the cache"
}

test_no_network()
{
	rm "$CACHE"/*
	STUB_CURL_STATUS=6 build 2 v0.1
	printed "kernel.org: curl: (6)"
	printed "the Debian pool: "
	printed "check the network"
	left_nothing
}

test_git_tree()
{
	rm "$CACHE"/*
	build 0 --git "$TMP/fixture/linux-0.1" v0.1
	git -C "$TMP/fixture/linux-0.1" -c user.name=x -c user.email=x@y commit -q --allow-empty -m y
	git -C "$TMP/fixture/linux-0.1" tag -f v0.1 > /dev/null
	build 2 --clean --git "$TMP/fixture/linux-0.1" v0.1
	git -C "$TMP/fixture/linux-0.1" tag -f v0.1 HEAD^ > /dev/null
	printed "the pin says"
	left_nothing
}

test_source_tree_and_tarball()
{
	rm "$CACHE"/*
	build 0 --source "$TMP/fixture/linux-0.1" v0.1
	build 0 --source "$TMP/fixture/linux-0.1.tar.xz" v0.1
	make_kernel "$TMP/t/linux-0.1" 7
	build 2 --source "$TMP/t/linux-0.1" v0.1
	printed "is version 0.1.7, not 0.1.0"
	build 2 --source "$TMP/none" v0.1
}

test_missing_package_is_named()
{
	STUB_MISSING="clang flex" build 2 --no-install v0.1
	printed "apt-get install --no-install-recommends clang flex"
	left_nothing
	absent "$TMP/calls.apt-get"
	((EUID != 0)) || STUB_MISSING="clang flex" build 0 v0.1
	((EUID != 0)) || holds "$TMP/calls.apt-get" "install --no-install-recommends -- clang flex"
}

test_perf_without_bpf_is_refused()
{
	STUB_FEATURES="HAVE_LIBELF_SUPPORT HAVE_ZLIB_SUPPORT HAVE_LIBBPF_SUPPORT HAVE_LIBTRACEEVENT" build 2 v0.1
	printed "built without: bpf_skeletons"
	printed "clang"
	absent "$OUT/perf"
}

test_build_error_shows_the_log()
{
	write_patch core/b.patch b.c 2 'ERROR'
	build 2 v0.1
	printed "  | "
	printed "full log: $OUT/apply-and-build.log"
	absent "$OUT/perf"
	write_patch core/b.patch b.c 2 'b two'
	build 0 v0.1
}

test_edited_tree_is_refused()
{
	build 0 v0.1
	echo edit >> "$OUT/linux/tools/perf/c.c"
	build 2 v0.1
	printed "edited: tools/perf/c.c"
	printed "quilt refresh"
	holds "$OUT/linux/tools/perf/c.c" edit
	build 2 --no-patches v0.1
	holds "$OUT/linux/tools/perf/c.c" edit
	build 0 --clean v0.1
	! grep -q edit "$OUT/linux/tools/perf/c.c" || fail "--clean left the edit"
}

test_edited_tree_is_refused_for_another_source()
{
	build 0 v0.1
	rm "$OUT/linux/tools/perf/c.c"
	build 2 --source "$TMP/fixture/linux-0.1" v0.1
	printed "edited: tools/perf/c.c"
}

test_popped_patch_is_refused()
{
	build 0 v0.1
	(cd "$OUT/linux" && quilt --quiltrc - pop) || fail pop
	build 2 v0.1
	printed "1 patches are popped"
	printed "quilt push -a"
	(cd "$OUT/linux" && quilt --quiltrc - push) || fail push
	build 0 v0.1
}

# A new file that quilt doesn't know is kept.
test_new_file_is_an_edit()
{
	build 0 v0.1
	echo mine > "$OUT/linux/tools/perf/new.c"
	echo theirs > "$OUT/linux/tools/perf/a.c.orig"
	build 2 --source "$TMP/fixture/linux-0.1" v0.1
	printed "edited: tools/perf/new.c"
	[[ $PRINTED != *a.c.orig* ]] || fail "a.c.orig is taken for an edit"
	holds "$OUT/linux/tools/perf/new.c" mine
	rm "$OUT/linux/tools/perf/new.c"
	build 0 --source "$TMP/fixture/linux-0.1" v0.1
}

test_copy_has_its_own_patches()
{
	build 0 v0.1
	mkdir "$TMP/t/copy"
	cp -a "$OUT" "$TMP/t/patches" "$TMP/t/copy"
	(cd "$TMP/t/copy/out/linux" && echo edit >> tools/perf/b.c &&
		quilt --quiltrc - refresh -p ab --no-timestamps --no-index) || fail refresh
	grep -q -r edit "$TMP/t/copy/patches" || fail "the copy's patches have no edit"
	! grep -q -r edit "$PATCHES" || fail "a refresh in the copy changes the original"
}

test_refreshed_edit_is_taken()
{
	build 0 v0.1
	: > "$OUT/build/compiled"
	(cd "$OUT/linux" && quilt --quiltrc - add tools/perf/c.c && echo edit >> tools/perf/c.c &&
		quilt --quiltrc - refresh -p ab --no-timestamps --no-index) || fail refresh
	build 0 v0.1
	[[ $(compiled) = c.c ]] || fail "compiled $(compiled)"
	holds "$OUT/linux/tools/perf/c.c" edit
}

test_deleted_patch_is_no_edit()
{
	build 0 v0.1
	(cd "$OUT/linux" && quilt --quiltrc - delete -r core/b.patch) || fail delete
	build 0 v0.1
	holds "$OUT/linux/tools/perf/b.c" "b 2"
}

test_foreign_directory_is_left_alone()
{
	mkdir -p "$OUT/linux"
	echo mine > "$OUT/linux/file"
	build 2 --clean v0.1
	holds "$OUT/linux/file" mine
}

test_kill_in_unpack_is_repaired()
{
	start_hanging xz
	kill_hanging
	absent "$OUT/linux"
	build 0 v0.1
	absent "$OUT/.base.part"
}

test_kill_in_patch_is_repaired()
{
	start_hanging quilt
	kill_hanging
	absent "$OUT/linux"
	build 0 v0.1
	absent "$OUT/.scratch"
}

test_kill_in_update_is_repaired()
{
	build 0 v0.1
	write_patch fixes/a.patch a.c 4 'a four'
	write_patch core/b.patch b.c 4 'b four'
	start_hanging chmod
	kill_hanging
	absent "$OUT/perf"
	: > "$OUT/build/compiled"
	build 0 v0.1
	[[ $(compiled) = "a.c b.c" ]] || fail "compiled $(compiled)"
	holds "$OUT/linux/tools/perf/a.c" "a four"
	[[ -z $(find "$OUT/linux" -name '*.part') ]] || fail "a .part is left"
}

# The killed update has written a.c, but not b.c.
kill_in_update()
{
	write_patch fixes/a.patch a.c 4 'a four'
	write_patch core/b.patch b.c 4 'b four'
	STUB_HANG_AT=b.c.part start_hanging chmod
	kill_hanging
	holds "$OUT/linux/tools/perf/a.c" "a four"
	! grep -q 'b four' "$OUT/linux/tools/perf/b.c" || fail "the update came to its end"
	# The next run wants neither state of a.c.
	write_patch fixes/a.patch a.c 5 'a five'
}

# edits_are_refused OPTION...: names two edits. The changes of the killed run are no edits.
edits_are_refused()
{
	local file

	for file in b c; do
		echo mine >> "$OUT/linux/tools/perf/$file.c"
	done
	build 2 "$@" v0.1
	printed "2 files were edited after an update that was not finished"
	for file in b c; do
		printed "edited: tools/perf/$file.c"
		holds "$OUT/linux/tools/perf/$file.c" mine
		sed -i '$d' "$OUT/linux/tools/perf/$file.c"
	done
}

test_edit_after_a_killed_update_is_refused()
{
	build 0 v0.1
	kill_in_update
	edits_are_refused
	edits_are_refused --source "$TMP/fixture/linux-0.1"
	build 0 v0.1
	holds "$OUT/linux/tools/perf/a.c" "a five"
	[[ -z $(find "$OUT/linux" -name '*.part') ]] || fail "a .part is left"
}

test_edit_after_a_killed_first_update_is_refused()
{
	kill_in_update
	edits_are_refused
	build 0 v0.1
	holds "$OUT/linux/tools/perf/a.c" "a five"
}

test_kill_in_build_is_repaired()
{
	start_hanging make
	kill_hanging
	absent "$OUT/perf"
	build 0 v0.1
	printed "cut off"
}

test_interrupt_cleans_up()
{
	start_hanging xz
	kill -INT -- "-$HANGING"
	ends_with 130
	left_nothing
	build 0 v0.1
}

test_terminate_alone_ends_the_step()
{
	start_hanging make
	kill -TERM "$HANGING"
	ends_with 143
	! kill -0 "$(< "$TMP/hanging")" 2>/dev/null || fail "make still runs"
	build 0 v0.1
}

test_second_run_waits()
{
	start_hanging quilt
	waits_for_hanging apply-and-build v0.1
}

test_full_disk_is_repaired()
{
	((EUID == 0)) || skip "needs root"
	mount -t tmpfs -o size=1m none "$TMP/disk" || skip "needs mount"
	OUT=$TMP/disk/out
	build 2 v0.1
	printed "no space left"
	absent "$OUT/.base"
	mount -o remount,size=2m "$TMP/disk"
	build 2 v0.1
	printed "no space left"
	absent "$OUT/perf"
	mount -o remount,size=40m "$TMP/disk"
	build 0 v0.1
	umount "$TMP/disk"
}

run_tests
