#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of check-series.sh: it finds each kind of defect.

. "$(dirname "$0")/fixtures.sh"

# check STATUS OPTION...
check()
{
	expect "$1" check-series "${@:2}" v0.1
}

# fails DEFECT OPTION...: fail unless check-series.sh finds this defect, and no other.
fails()
{
	check 1 "${@:2}"
	printed "FAILED  $1"
	printed "2 patches, 1 defects"
}

test_series_with_a_defect_in_its_list()
{
	write_good_series
	check 0 --fast
	printed "2 patches, 0 defects"
	echo fixes/a.patch >> "$SERIES"
	cp "$PATCHES/core/b.patch" "$PATCHES/core/c.patch"
	echo core/d.patch >> "$SERIES"
	check 1 --fast
	printed "FAILED  fixes/a.patch: listed twice"
	printed "FAILED  core/c.patch: in no series"
	printed "FAILED  core/d.patch: listed, but not there"
	: > "$SERIES"
	check 1 --fast
	printed "FAILED  series: it is empty"
}

# misplaced WHERE WHAT SERIES-LINE...: check-series.sh finds this defect in a series of these lines.
misplaced()
{
	printf '%s\n' "${@:3}" > "$SERIES"
	check 1 --fast
	printed "FAILED  $1: $2"
}

test_series_with_a_patch_that_is_not_in_its_part()
{
	local fixes='# part fixes: what it is for' core='# part core: what it is for'

	write_good_series
	misplaced core/b.patch 'not after the line "# part core: ..."' "$fixes" core/b.patch fixes/a.patch
	misplaced core/x.patch 'not after the line "# part core: ..."' \
		"$fixes" '# not needed: core/x.patch: since v0.1: it has it' fixes/a.patch "$core" core/b.patch
	misplaced fixes/a.patch 'not after the line "# part fixes: ..."' fixes/a.patch "$core" core/b.patch
	misplaced 'part fixes' 'its patches are in two places' "$fixes" "$core" core/b.patch "$fixes" fixes/a.patch
	misplaced '# part core' 'not of the form "# part NAME: what it is for"' "$fixes" fixes/a.patch '# part core' core/b.patch
	misplaced a.patch 'not of the form PART/PATCH or PART/TAG/PATCH' "$fixes" a.patch "$core" core/b.patch
	mkdir "$PATCHES/v0.2"
	echo '# part core: of another kind' > "$PATCHES/v0.2/series"
	misplaced 'part core' 'the line "# part core:" differs in another series' "$fixes" fixes/a.patch "$core" core/b.patch
	cp "$PATCHES/core/b.patch" "$PATCHES/fixes/b.patch"
	misplaced 'fixes/b.patch' 'part core has a patch with the same name' "$fixes" fixes/a.patch "$core" core/b.patch
}

test_series_without_a_patch_of_the_pinned_tag()
{
	write_good_series
	mkdir "$PATCHES/v0.2"
	echo '# not needed: fixes/a.patch: since v0.2: it has it' > "$PATCHES/v0.2/series"
	# Status 2, because there is no source of v0.2.
	expect 2 check-series --fast v0.2
	printed "FAILED  core/b.patch: neither in the series nor said to be not needed"
	[[ $PRINTED != *"fixes/a.patch: neither"* ]] || fail "a.patch is called a defect"
}

# Write a cover letter for each part.
write_letters()
{
	write_good_series
	printf 'Fix\n\nIt fixes.\n' > "$SUBMISSION/v0.1/fixes"
	printf 'Core\n\nIt is new.\n' > "$SUBMISSION/v0.1/core"
}

test_parts_that_are_mailed()
{
	write_letters
	# The line that the patch now changes comes from the part fixes.
	sed -i 's/b\.c/a.c/; s/^ b / a /; s/^-b 2/-a two/; s/^+b two/+a zwei/' "$PATCHES/core/b.patch"
	fails "core: on no other part, core/b.patch does not apply: tools/perf/a.c: Hunk #1 FAILED at 1." --fast
	printed "part fixes applies on no other part"
	printf '\nApplies on top of: fixes,\n' >> "$SUBMISSION/v0.1/core"
	check 0 --fast
	printed "part core applies on fixes"
	holds "$OUT/part/tools/perf/a.c" "a zwei"
	holds "$OUT/base/linux/tools/perf/a.c" "a 2"
	echo none >> "$SUBMISSION/v0.1/core"
	check 1 --fast
	printed "v0.1/core: 'Applies on top of: none': not a part"
	mv "$SUBMISSION/v0.1/core" "$SUBMISSION/v0.1/cor"
	check 1 --fast
	printed "v0.1/cor: no part of the series has that name"
}

# pack_upstream_test RESULT: add a test that has the name of upstream's and prints this result
pack_upstream_test()
{
	local test=$TMP/t/linux-0.1/tools/perf/tests/shell/test_bpf_metadata.sh

	cp -a "$TMP/fixture/linux-0.1" "$TMP/t"
	mkdir -p "${test%/*}"
	printf '%s\n' '#!/bin/sh' "echo \"\$(perf version) [$1]\"" > "$test"
	repack_kernel "$TMP/t/linux-0.1" linux-0.1.tar.xz
}

# was_built WHAT: succeed if the last check has built this patch or part
was_built()
{
	grep -q "^$1: build default: done" <<< "$PRINTED"
}

test_parts_are_built_and_tested()
{
	pack_upstream_test Success
	write_letters
	sed -i 's/^+b two/+b SAYS 1: bpf-metadata : Ok/' "$PATCHES/core/b.patch"
	check 0 --from core/b.patch
	! was_built fixes/a.patch || fail "an earlier patch was built"
	! was_built fixes || fail "an earlier part was built"
	was_built core || fail "the part core was not built"
	printed "core: perf test bpf-metadata passes"
	sed -i 's/^+b SAYS.*/+b ERROR in build-default/' "$PATCHES/core/b.patch"
	check 1
	was_built fixes || fail "the part fixes was not built"
	printed "FAILED  core: does not build (default)"
	# Upstream's test is skipped with status 0.
	pack_upstream_test skipping
	sed -i 's/^+b ERROR.*/+b two/' "$PATCHES/core/b.patch"
	fails "core: test_bpf_metadata.sh says: perf version 0.1 [skipping]" --from core/b.patch
}

# spoil PATCH SED-SCRIPT DEFECT: change the patch with the script, which makes only this defect
spoil()
{
	rm -rf "$PATCHES"
	write_patch fixes/a.patch a.c 2 'a two'
	write_patch core/b.patch b.c 2 'b two'
	write_good_series
	sed -i "$2" "$PATCHES/$1"
	fails "$1: $3" --fast
}

test_series_with_a_defect_in_a_header()
{
	spoil fixes/a.patch '/^Subject/d' 'no "Subject: part: What it does"'
	spoil fixes/a.patch "s/^Subject: .*/&$(printf '%80s' '')x/" "a subject of "
	spoil fixes/a.patch '/^---$/d' 'no line "---" after the changelog'
	spoil fixes/a.patch '/^It is/d' "no changelog"
	spoil fixes/a.patch 's/^and was.*/&\nReviewed-by: A Man <a@man>/' "a trailer, which only mails have: Reviewed-by: A Man"
	spoil fixes/a.patch '/1 file changed/d' "no diffstat"
}

test_series_with_a_defect_in_a_patch()
{
	spoil core/b.patch 's/^ b 1/ b one/' "does not apply: tools/perf/b.c: Hunk #1 FAILED at 1."
	spoil core/b.patch 's/^-b 2/-b two/; s/^+b two/+b 2/' "does not apply: tools/perf/b.c: Hunk #1 FAILED at 1."
	spoil core/b.patch 's/b\.c/z.c/' "does not apply: can't find file to patch at input line "
	spoil core/b.patch 's/^@@ -\([0-9]*\),/@@ -3,/' "applies with an offset: "
	spoil core/b.patch 's/^+b two/+b UGLY/' "checkpatch: UGLY_TYPE: it is ugly"
	echo 'b.patch UGLY_TYPE it has to be' > "$SUBMISSION/checkpatch"
	check 0 --fast
	sed -i 's/UGLY/SILENT/' "$PATCHES/core/b.patch"
	check 1 --fast
	printed "FAILED  series: checkpatch.pl failed: "
}

# write_script_patch MODE-LINES: write a patch that adds a script, with these lines about its mode
write_script_patch()
{
	cat > "$PATCHES/core/b.patch" <<-END
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

# run_quilt COMMAND...: run quilt in the tree, as Documentation/submission.rst says
run_quilt()
{
	QUILTRC=$SCRIPTS_DIR/quiltrc env -C "$OUT/linux" quilt "$@" || fail "quilt $*"
}

test_series_with_a_new_file()
{
	write_good_series
	# Without scripts/quiltrc, quilt refresh writes such a patch.
	write_script_patch ''
	fails "core/b.patch: tools/perf/c.sh is not executable" --fast
	sed -i 's/c\.sh/c.c /' "$PATCHES/core/b.patch"
	check 1 --fast
	printed "core/b.patch: does not apply: The next patch would create the file tools/perf/c.c, which already exists!"
	write_script_patch $'diff --git a/tools/perf/c.sh b/tools/perf/c.sh\nnew file mode 100755\n'
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

test_series_with_a_patch_that_does_not_build()
{
	local build

	write_good_series
	check 2 --from core/c.patch
	printed "--from core/c.patch: not in $SERIES"
	check 2 --fast --from core/b.patch
	check 0
	echo "of the last patch" > "$OUT/build-default/object"
	for build in default no_libbpf no_skel libbpf_dynamic; do
		sed -i "s/^+b .*/+b ERROR in build-$build/" "$PATCHES/core/b.patch"
		fails "core/b.patch: does not build ($build)" --from core/b.patch
	done
	absent "$OUT/build-default/object"
	STUB_MISSING=libbpf-dev check 2 --no-install
	printed "libbpf-dev"
}

# The second patch adds perf's test, so check-series.sh runs no test for the first patch.
test_series_with_a_patch_that_fails_its_test()
{
	write_good_series
	sed -i 's/^+b two/+b SAYS 1: bpf-metadata : Ok/' "$PATCHES/core/b.patch"
	check 0
	[[ $PRINTED != *"fixes/a.patch: perf test"* ]] || fail "a.patch has no test: $PRINTED"
	printed "core/b.patch: perf test bpf-metadata passes"
	sed -i 's/: Ok$/: FAILED!/' "$PATCHES/core/b.patch"
	fails "core/b.patch: perf test bpf-metadata fails: 1: bpf-metadata : FAILED!" --from core/b.patch
	sed -i 's/: FAILED!$/: Skip/' "$PATCHES/core/b.patch"
	fails "core/b.patch: perf test bpf-metadata runs nothing" --from core/b.patch
}

run_tests
