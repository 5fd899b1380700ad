#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of check-series.sh: it finds each kind of defect.

. "$(dirname "$0")/fixtures.sh"

# check STATUS OPTION...
check()
{
	expect "$1" check-series.sh "${@:2}" v0.1
}

# fails DEFECT OPTION...: fail unless check-series.sh finds this defect, and no other.
fails()
{
	check 1 "${@:2}"
	printed "FAILED  $1"
	printed "2 patches, 1 defects"
}

# spoil PATCH SED-SCRIPT DEFECT: change the patch with the script, which makes only this defect
spoil()
{
	rm -rf "$PATCHES"
	write_series
	sed -i "$2" "$PATCHES/$1"
	fails "$1: $3" --fast
}

test_series_without_a_patch()
{
	check 0 --fast
	printed "2 patches, 0 defects"
	cp "$PATCHES/core/b.patch" "$PATCHES/core/c.patch"
	fails "core/c.patch: not in the series" --fast
	mkdir "$TMP/t/patches/v0.2"
	mv "$PATCHES/core/c.patch" "$TMP/t/patches/v0.2"
	printf '%s\n' '# not needed: fixes/a.patch: since v0.2: it has it' c.patch > "$TMP/t/patches/v0.2/series"
	# Status 2, because there is no source of v0.2.
	expect 2 check-series.sh --fast v0.2
	printed "FAILED  core/b.patch: neither in the series nor said to be not needed"
	[[ $PRINTED != *"fixes/a.patch: neither"* ]] || fail "a.patch is called a defect"
	echo core/d.patch >> "$SERIES"
	check 2 --fast
	printed "names core/d.patch, which is not there"
}

test_series_with_a_defect_in_a_header()
{
	local script defect

	while IFS=$'\t' read -r -u 3 script defect; do
		spoil fixes/a.patch "$script" "$defect"
	done 3<<-END
	/^From/d	the first line is not "From:
	/^Subject/d	no "Subject: part: What it does"
	s/^Subject: .*/&$(printf '%80s' '')x/	a subject of
	/^---$/d	no line "---" after the changelog
	/^It is/d	no changelog
	s/^and was.*/&\nReviewed-by: A Man/	a trailer, which only mails have: Reviewed-by: A Man
	s/| 2 +-/| 3 ++-/	not as git writes it:
	END
}

test_series_with_a_defect_in_a_patch()
{
	spoil core/b.patch 's/^ b 1/ b one/' "does not apply: patch failed: tools/perf/b.c:1"
	write_patch core/b.patch evsel.c 2 'e two'
	fails "core/b.patch: touches tools/perf/evsel.c, in which the substitute 0.1.3 differs from the tag" --fast
	spoil core/b.patch 's/b\.c/z.c/g' "does not apply: tools/perf/z.c: does not exist in index"
	spoil core/b.patch 's/^@@ -\([0-9]*\),/@@ -3,/' "not as git writes it: "
	spoil core/b.patch '/^diff/d' "not as git writes it: "
	spoil core/b.patch 's/^+b two/+b UGLY/' "checkpatch: UGLY_TYPE: it is ugly"
	echo 'b.patch UGLY_TYPE it has to be' > "$SUBMISSION/checkpatch"
	check 0 --fast
	sed -i 's/UGLY/SILENT/' "$PATCHES/core/b.patch"
	check 1 --fast
	printed "FAILED  series: checkpatch.pl failed: "
	sed -i 's/SILENT/two/' "$PATCHES/core/b.patch"
	sed -i '/^# part core/d' "$SERIES"
	fails "series: not as git writes it: " --fast
	printf 'diff --git a/s.sh b/s.sh\nnew file mode 100644\n--- /dev/null\n+++ b/s.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n' \
		>> "$PATCHES/core/b.patch"
	fails "core/b.patch: a new script has mode 100644" --fast
}

test_parts_that_are_mailed()
{
	printf 'Fix\n\nIt fixes.\n' > "$SUBMISSION/v0.1/fixes"
	printf 'Core\n\nIt is new.\n' > "$SUBMISSION/v0.1/core"
	# The line that the patch now changes comes from the part fixes.
	sed -i 's/b\.c/a.c/g; s/^ b / a /; s/^-b 2/-a two/; s/^+b two/+a zwei/' "$PATCHES/core/b.patch"
	fails "core: on no other part, core/b.patch does not apply: patch failed: tools/perf/a.c:1" --fast
	printf '\nApplies on top of: fixes,\n' >> "$SUBMISSION/v0.1/core"
	check 0 --fast
	printed "part core applies on fixes"
	echo none >> "$SUBMISSION/v0.1/core"
	fails "$SUBMISSION/v0.1: none is the name of a letter, or in a letter, and not a part" --fast
	sed -i '$d' "$SUBMISSION/v0.1/core"
	sed -i 's/^+a zwei/+a SAYS 1: bpf-metadata : Ok/' "$PATCHES/core/b.patch"
	check 0
	printed "core: perf test bpf-metadata passes"
	# Upstream's test is skipped with status 0.
	STUB_UPSTREAM=skipping check 1
	printed "FAILED  core: test_bpf_metadata.sh says: perf version 0.1 [skipping]"
	sed -i 's/^+a SAYS.*/+a ERROR in build-default/' "$PATCHES/core/b.patch"
	check 1
	printed "FAILED  core: does not build (default)"
}

# The second patch adds perf's test, so check-series.sh runs no test for the first patch.
test_series_with_a_patch_that_does_not_build_or_fails_its_test()
{
	local build result

	for build in default no_libbpf no_skel libbpf_dynamic; do
		sed -i "s/^+b .*/+b ERROR in build-$build/" "$PATCHES/core/b.patch"
		fails "core/b.patch: does not build ($build)"
	done
	for result in Skip FAILED!; do
		sed -i "s/^+b .*/+b SAYS 1: bpf-metadata : $result/" "$PATCHES/core/b.patch"
		fails "core/b.patch: perf test bpf-metadata fails or runs nothing"
	done
}

# built PATCH...: fail unless these patches were built, each with the first configuration only, and the
# last one with all four
built()
{
	printf '%s: build default\n' "$@" > "$TMP/t/want"
	printf "${*: -1}: build %s\n" no_libbpf no_skel libbpf_dynamic >> "$TMP/t/want"
	sed -n 's/ \.\.\.$//p' <<< "$PRINTED" | grep '/.*: build ' > "$TMP/t/got"
	same "the builds" "$TMP/t/want" "$TMP/t/got"
}

test_patches_that_changed_are_built()
{
	local git=(git -C "$TMP/t" -c user.name=x -c user.email=x@y)

	check 2 --changed
	printed "--changed=HEAD: git cannot compare $PATCHES with it"
	"${git[@]}" init -q
	"${git[@]}" add patches
	"${git[@]}" commit -q -m x
	check 2 --changed
	printed "--changed=HEAD: no patch in $PATCHES differs from it"
	sed -i 's/and was not/and was none/' "$PATCHES/fixes/a.patch"
	check 0 --changed
	built fixes/a.patch
	# Git does not know the new patch, which is not the last one.
	write_patch add/c.patch c.c 2 'c two'
	sed -i -n '/core/ { H; d; }; p; $ { g; s/\n//; p; }' "$SERIES"
	check 0 --changed
	built fixes/a.patch add/c.patch core/b.patch
	"${git[@]}" add patches
	"${git[@]}" commit -q -m y
	check 0 --changed=HEAD~1
	built fixes/a.patch add/c.patch core/b.patch
	# After a patch was removed, the last one shows the result.
	sed -i '/^# part fixes/d; /^fixes/d' "$SERIES"
	rm "$PATCHES/fixes/a.patch"
	check 0 --changed
	built core/b.patch
	check 2 --changed --fast
	printed "--fast builds nothing, and excludes --changed"
}

run_tests
