#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of check-series.sh, with the defects that it shall find.

. "$(dirname "$0")/fixtures.sh"

# check STATUS OPTION...
check()
{
	expect "$1" check-series "${@:2}" v0.1
}

# row_is PATCH REGEX: the patch's line of the table is such
row_is()
{
	grep -q -x -E -e "$1 +$2" <<< "$PRINTED"
}

test_series_that_is_good()
{
	write_good_series
	check 0 --fast
	printed "2 patches, 0 defects"
	printed "0002-b.patch"
}

test_series_with_a_defect_in_its_list()
{
	write_good_series
	echo v0.1/0001-a.patch >> "$PATCHES/series"
	cp "$PATCHES/0002-b.patch" "$PATCHES/0003-c.patch"
	echo v0.1/0004-d.patch >> "$PATCHES/series"
	check 1 --fast
	printed "FAILED  v0.1/0001-a.patch: listed twice"
	printed "FAILED  v0.1/0003-c.patch: not in the series"
	printed "FAILED  v0.1/0004-d.patch: listed, but not there"
	printf 'v0.1/%s\n' 0002-b.patch 0001-a.patch > "$PATCHES/series"
	check 1 --fast
	printed "FAILED  v0.1/0001-a.patch: its number is lower than 0002 before it"
	: > "$PATCHES/series"
	check 1 --fast
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
	check 1 --fast
	printed "FAILED  v0.1/$1: $3"
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
	spoil 0002-b.patch 's/^ b 1/ b one/' "does not apply: tools/perf/b.c: Hunk #1 FAILED at 1."
	spoil 0002-b.patch 's/^-b 2/-b two/; s/^+b two/+b 2/' "does not apply: tools/perf/b.c: Hunk #1 FAILED at 1."
	spoil 0002-b.patch 's/b\.c/z.c/' "does not apply: can't find file to patch at input line "
	spoil 0002-b.patch 's/^@@ -\([0-9]*\),/@@ -3,/' "applies with an offset: "
	spoil 0002-b.patch 's/^+b two/+b SILENT/' "checkpatch.pl did not run: "
	spoil 0002-b.patch 's/^+b two/+b UGLY/' "checkpatch: "
	echo '0002-b.patch UGLY_TYPE it has to be' > "$SUBMISSION/checkpatch"
	check 0 --fast
	printed "explained"
}

# write_script_patch MODE-LINES: it adds a script.
write_script_patch()
{
	cat > "$PATCHES/0002-b.patch" <<-END
		Subject: perf: Add a script

		It is text,
		and was not there.
		---
		 tools/perf/c.sh |    2 ++
		 1 file changed, 2 insertions(+)

		$1--- /dev/null
		+++ b/tools/perf/c.sh
		@@ -0,0 +1,2 @@
		+#!/bin/sh
		+true
	END
}

SCRIPT_MODE=$'diff --git a/tools/perf/c.sh b/tools/perf/c.sh\nnew file mode 100755\n'

# quilt refresh leaves such a patch without scripts/quiltrc.
test_series_with_a_script_that_lost_its_mode()
{
	write_good_series
	write_script_patch "$SCRIPT_MODE"
	check 0 --fast
	write_script_patch ''
	check 1 --fast
	printed "FAILED  v0.1/0002-b.patch: tools/perf/c.sh is not executable"
	printed "2 patches, 1 defects"
}

test_series_with_a_new_file_that_is_there()
{
	write_good_series
	write_script_patch ''
	sed -i 's/c\.sh/c.c /' "$PATCHES/0002-b.patch"
	check 1 --fast
	printed "0002-b.patch: does not apply: The next patch would create the file tools/perf/c.c, which already exists!"
}

# run_quilt COMMAND...: in the tree, as Documentation/submission.rst says
run_quilt()
{
	(cd "$OUT/linux" && QUILTRC=$SCRIPTS_DIR/quiltrc quilt "$@") || fail "quilt $*"
}

test_refresh_keeps_the_mode_of_a_script()
{
	write_good_series
	write_script_patch "$SCRIPT_MODE"
	expect 0 apply-and-build --stop-after apply v0.1
	cp -r "$PATCHES" "$TMP/t/before"
	echo "# more" >> "$OUT/linux/tools/perf/c.sh"
	run_quilt refresh
	! diff -r "$TMP/t/before" "$PATCHES" || fail "the edit is not in the patch"
	check 0 --fast
	sed -i '$d' "$OUT/linux/tools/perf/c.sh"
	run_quilt refresh
	run_quilt pop -a
	run_quilt push -a --refresh
	diff -r "$TMP/t/before" "$PATCHES" || fail "push -a --refresh changes the patches"
}

test_series_is_built_from_a_patch_on()
{
	write_good_series
	check 0 --from v0.1/0002-b.patch
	row_is v0.1/0001-a.patch 'ok .*( +-){5}' ||
		fail "0001-a.patch was built: $PRINTED"
	row_is v0.1/0002-b.patch '(ok +){7}-' ||
		fail "0002-b.patch was not built: $PRINTED"
	check 2 --from v0.1/0003-c.patch
	printed "--from v0.1/0003-c.patch: not in $PATCHES/series"
	check 2 --fast --from v0.1/0002-b.patch
}

test_series_with_a_patch_that_does_not_build()
{
	local build

	write_good_series
	check 0
	echo "of the last patch" > "$OUT/build-default/object"
	check 0
	[[ ! -e $OUT/build-default/object ]] || fail "objects of the run before are left"
	sed -i 's/^+b two/+b ERROR/' "$PATCHES/0002-b.patch"
	check 1
	printed "FAILED  v0.1/0002-b.patch: does not build (default)"
	printed "2 patches, 1 defects"
	for build in no_libbpf no_skel libbpf_dynamic; do
		sed -i "s/^+b .*/+b ERROR in build-$build/" "$PATCHES/0002-b.patch"
		check 1
		printed "FAILED  v0.1/0002-b.patch: does not build ($build)"
		printed "2 patches, 1 defects"
	done
	STUB_MISSING=libbpf-dev check 2 --no-install
	printed "libbpf-dev"
}

# perf has the test from the second patch on.
test_series_with_a_patch_that_fails_its_test()
{
	write_good_series
	sed -i 's/^+b two/+b SAYS 1: bpf-metadata : Ok/' "$PATCHES/0002-b.patch"
	check 0
	row_is v0.1/0001-a.patch '(ok +){7}-' ||
		fail "0001-a.patch has no test: $PRINTED"
	row_is v0.1/0002-b.patch '(ok +){7}ok' ||
		fail "the test of 0002-b.patch was not run: $PRINTED"
	sed -i 's/: Ok$/: FAILED!/' "$PATCHES/0002-b.patch"
	check 1
	printed "FAILED  v0.1/0002-b.patch: perf test bpf-metadata fails: 1: bpf-metadata : FAILED!"
	printed "2 patches, 1 defects"
	sed -i 's/: FAILED!$/: Skip/' "$PATCHES/0002-b.patch"
	check 1
	printed "FAILED  v0.1/0002-b.patch: perf test bpf-metadata runs nothing"
	printed "2 patches, 1 defects"
}

run_tests
