#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Apply the patches of a series one after the other, and check each as a maintainer would:
#
#	scripts/check-series.sh --fast v6.16	checks that need no build, in a minute
#	scripts/check-series.sh v6.16		builds and tests each patch, in about an hour
#
# The last lines of this file call the steps in order.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/packages.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/series.sh"
. "$SCRIPTS_DIR/lib/build.sh"

# The kernel's submitting-patches.rst limits a subject to 70-75 characters.
MAX_SUBJECT=75
# Patches have no such trailers. make-submission.sh adds the submitter's sign-off to mails.
TRAILERS='(Signed-off|Reviewed|Acked|Tested|Reported|Suggested|Co-developed)-by:'
# For each build, BUILDS has a name and the arguments of make. The last one needs BUILDS_PACKAGES.
BUILDS=("default BUILD_BPF_SKEL=1" "no_libbpf NO_LIBBPF=1" "no_skel BUILD_BPF_SKEL=0"
	"libbpf_dynamic BUILD_BPF_SKEL=0 LIBBPF_DYNAMIC=1")
BUILDS_PACKAGES=(libbpf-dev)
# The part CORE also has to pass upstream's own test of BPF metadata.
CORE=core

print_usage()
{
	cat <<END
usage: scripts/check-series.sh [options] TAG

Checks the patches of patches/TAG/series in order. Each patch
- exists, and is listed once, in its part;
- has a subject and a changelog, and no trailers;
- applies without fuzz, and without offset unless the file belongs to another tag;
- passes checkpatch.pl --strict, except for the findings in submission/checkpatch;
- builds, and passes perf test bpf-metadata.
The series has each patch of the pinned tag, or a line that says why it is not needed.
Each patch in patches/ is in a series.

A part that has a cover letter, submission/TAG/PART, is mailed. So it is also applied to
the unpatched tree, after only the parts that its letter names under "Applies on top of:".
It has to build and to pass perf test bpf-metadata there. The part $CORE also has to pass
upstream's own test of BPF metadata.
TAG is one of: $(pin__list | paste -s -d ' ')

  --fast            no builds and no perf test
  --from PATCH      build and test only from PATCH on, and only parts from its part on
  --out DIR         directory for the tree and the builds (default: out/TAG-series)
  --mirror DIR      passed on to apply-and-build.sh
  --jobs N          parallel jobs of the builds (default: number of CPUs)
  --no-install      install nothing; if packages are missing, print the apt line and end
  -h, --help        this text

submission/checkpatch has a line for each accepted finding. The line applies to the
patches with the name PATCH on all tags:
  PATCH TYPE REASON...

Prints a line for each defect; the last line is "N patches, N defects".
Environment: PBM_PATCHES, PBM_PINS and PBM_CACHE as for apply-and-build.sh;
PBM_SUBMISSION, the directory with checkpatch and letters (default: submission)
Exit status: 0 no defects, 1 defects, 2 could not run.
END
}

parse_options()
{
	options__parse "$@" <<-'END'
		--fast		OPT_FAST	yes
		--from:		OPT_FROM
		--out:		OPT_OUT
		--mirror:	OPT_MIRROR
		--jobs:		JOBS
		--no-install	OPT_INSTALL	no
	END
}

check_options()
{
	[[ $JOBS =~ ^[1-9][0-9]*$ ]] || die_usage "--jobs $JOBS: not a number from 1 up"
	[[ $OPT_FAST = no || -z $OPT_FROM ]] || die_usage "--fast builds nothing, and excludes --from"
	pin__check_tag "$TAG"
}

resolve_paths()
{
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$REPO_DIR/out/$TAG-series}")
	SERIES_FILE=$SERIES_DIR/$TAG/series
	EXPLAINED=${PBM_SUBMISSION:-$REPO_DIR/submission}/checkpatch
	LETTERS_DIR=${PBM_SUBMISSION:-$REPO_DIR/submission}/$TAG
	TREE_DIR=$OUT_DIR/tree
	mkdir -p -- "$OUT_DIR" || die "cannot create $OUT_DIR" "use another --out"
	[[ -f $SERIES_FILE ]] || die "$SERIES_FILE is not there" "name a tag that has patches"
}

# defect WHERE WHAT: print and count a defect.
defect()
{
	printf 'FAILED  %s: %s\n' "$1" "$2"
	((++NR_DEFECTS))
}

# --- the series ---------------------------------------------------------------

check_entries()
{
	local entry what

	mapfile -t ENTRIES < <(series__entries "$SERIES_FILE")
	mapfile -t OWN < <(series__print_own "$TAG")
	((${#ENTRIES[@]})) || defect series "it is empty"
	[[ -z $OPT_FROM || " ${ENTRIES[*]} " = *" $OPT_FROM "* ]] ||
		die "--from $OPT_FROM: not in $SERIES_FILE" "name the patch as in this file"
	for entry in $(printf '%s\n' "${ENTRIES[@]}" | sort | uniq -d); do
		defect "$entry" "listed twice"
	done
	while read -r entry; do
		defect "$entry" "in no series"
	done < <(series__print_unlisted)
	while read -r entry; do
		defect "$entry" "neither in the series nor said to be not needed"
	done < <(series__print_missing "$TAG")
	while IFS=$'\t' read -r entry what; do
		defect "$entry" "$what"
	done < <(print_misplaced)
}

# Check the paths and the parts. For each defect, print WHERE, a tab and WHAT.
print_misplaced()
{
	awk '/^# part / {
			part = $3; sub(/:$/, "", part)
			if ($0 !~ /^# part [^ :\/]+: ./) print $0 "\tnot of the form \"# part NAME: what it is for\""
			if (part in seen) print "part " part "\tits patches are in two places"
			seen[part]
			next
		}
		/^#/ && !/^# not needed: / || !NF { next }
		{
			path = $1 == "#" ? $4 : $1; sub(/:$/, "", path)
			n = split(path, name, "/")
			if (n != 2 && n != 3) print path "\tnot of the form PART/PATCH or PART/TAG/PATCH"
			else if (name[1] != part) print path "\tnot after the line \"# part " name[1] ": ...\""
		}' "$SERIES_FILE"
	sed -n 's/^# part //p' "$SERIES_DIR"/*/series | sort -u | cut -d : -f 1 | uniq -d |
		sed 's/.*/part &\tthe line "# part &:" differs in another series/'
	(cd -- "$SERIES_DIR" && find . -name '*.patch' -printf '%P\n') | sort | awk -F / '
		$NF in part && part[$NF] != $1 { print $0 "\tpart " part[$NF] " has a patch with the same name" }
		{ part[$NF] = $1 }'
}

# Make a new tree without patches, because an earlier run may have left a tree with patches.
prepare_tree()
{
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" --quiet --no-patches --stop-after apply \
		--out "$OUT_DIR/base" "$TAG" || die "there is no tree to check with" "see above"
	# Remove the objects, too: they are newer than the sources, so make would keep them.
	rm -rf -- "$TREE_DIR" "$OUT_DIR"/build-*
	cp -a -- "$OUT_DIR/base/linux" "$TREE_DIR"
}

# --- one patch ----------------------------------------------------------------

# Print the defects in the header of a patch.
print_header_defects()
{
	awk -v max="$MAX_SUBJECT" -v trailers="^$TRAILERS" -v summary="$(diffstat -p1 "$1" | tail -n 1)" '
		$0 == summary { has_diffstat = 1 }
		/^---$/ { has_end = 1 }
		has_end { next }
		/^Subject: / && subject == "" { subject = substr($0, 10); next }
		$0 ~ trailers && trailer == "" { trailer = $0 }
		NF { lines++ }
		END {
			if (subject !~ /^[a-z][^:]*: [A-Z]/) print "no \"Subject: part: What it does\""
			if (length(subject) > max) print "a subject of " length(subject) " characters, more than " max
			if (!has_end) print "no line \"---\" after the changelog"
			if (lines < 2) print "no changelog"
			if (trailer != "") print "a trailer, which only mails have: " trailer
			if (!has_diffstat) print "no diffstat, or a wrong one; run quilt refresh --diffstat"
		}' "$1"
}

# Call checkpatch once for all patches, because a call for each patch takes three times as long.
# checkpatch takes files tracked by git for source code, so it gets copies of the patches. It
# cannot check commit ids, because the kernel's history is not here.
run_checkpatch()
{
	local dir=$OUT_DIR/checkpatch entry

	rm -rf -- "$dir"
	mkdir -- "$dir"
	for entry in "${ENTRIES[@]}"; do
		[[ ! -f $SERIES_DIR/$entry ]] || cp -- "$SERIES_DIR/$entry" "$dir"
	done
	(cd -- "$dir" && perl "$TREE_DIR/scripts/checkpatch.pl" --strict --no-tree --show-types --terse \
		--ignore MISSING_SIGN_OFF,UNKNOWN_COMMIT_ID ./*.patch </dev/null) >"$OUT_DIR/checkpatch.log" 2>&1
}

# Report only the first finding of each type in a patch.
check_checkpatch()
{
	local name type text status=0 found=0

	((${#ENTRIES[@]})) || return 0
	run_checkpatch || status=$?
	while IFS=$'\t' read -r name type text; do
		((++found))
		grep -q -s -E -e "^${name}[[:space:]]+${type}[[:space:]]" "$EXPLAINED" ||
			defect "$(printf '%s\n' "${ENTRIES[@]}" | grep -m 1 -e "/$name\$")" "checkpatch: $type: $text"
	done < <(sed -n 's/^\(\.\/\)\{0,1\}\([^:]*\):[0-9]*: [A-Z]*:\([A-Z0-9_]*\): \(.*\)/\2\t\3\t\4/p' "$OUT_DIR/checkpatch.log" |
		sort -t $'\t' -s -u -k 1,2)
	# Status 1 means that there are findings.
	((status == 0 || (status == 1 && found))) ||
		defect series "checkpatch.pl failed: $(tail -n 1 "$OUT_DIR/checkpatch.log")"
}

# apply PATCH: apply it to the tree. With --force, patch never asks the user.
apply()
{
	(cd -- "$TREE_DIR" && patch -p1 --force --fuzz=0 --no-backup-if-mismatch -i "$SERIES_DIR/$1") >"$OUT_DIR/patch.log" 2>&1 </dev/null
}

check_applies()
{
	if ! apply "$PATCH"; then
		defect "$PATCH" "does not apply: $(series__print_reason "$OUT_DIR/patch.log")"
		return 1
	fi
	# A patch file that belongs to another tag has the line numbers of that tag.
	[[ " ${OWN[*]} " != *" $PATCH "* ]] || ! grep -q -E 'offset|fuzz' "$OUT_DIR/patch.log" ||
		defect "$PATCH" "applies with an offset: $(grep -m 1 -E 'offset|fuzz' "$OUT_DIR/patch.log"), refresh it"
}

# Check that scripts which the patch adds are executable. perf test skips scripts that are not, and
# quilt loses the mode if it runs without scripts/quiltrc.
check_modes()
{
	local file

	while read -r file; do
		[[ -x $TREE_DIR/$file ]] ||
			defect "$PATCH" "$file is not executable: in the tree, chmod +x it, and QUILTRC=$SCRIPTS_DIR/quiltrc quilt refresh"
	done < <(awk '/^\+\+\+ b\// { file = substr($2, 3) }
		/^@@ -0,0 / { first = NR + 1 }
		NR == first && /^\+#!/ { print file }' "$SERIES_DIR/$PATCH")
}

# check_build NAME ARGUMENT...: build perf with these arguments of make
check_build()
{
	BUILD_DIR=$OUT_DIR/build-$1
	build__load_args
	BUILD_ARGS+=("${@:2}")
	mkdir -p -- "$BUILD_DIR"
	run_logged "$PATCH: build $1" build__make && return
	defect "$PATCH" "does not build ($1), see $LOG_FILE"
	return 1
}

# Run perf in its source directory, below which it looks for its shell tests.
run_perf_test()
{
	(cd -- "$TREE_DIR/tools/perf" && "$OUT_DIR/build-default/perf" test "$@" 2>&1)
}

# Before the patch that adds the test, there is no test to run.
check_perf_test()
{
	# No pipe to grep -q: it may close the pipe before perf has written everything.
	[[ $(run_perf_test list) = *bpf-metadata* ]] || return 0
	if ! run_perf_test bpf-metadata >"$OUT_DIR/test.log" || grep -q 'FAILED!' "$OUT_DIR/test.log"; then
		defect "$PATCH" "perf test bpf-metadata fails: $(grep -m 1 'FAILED!' "$OUT_DIR/test.log")"
	elif ! grep -q ': Ok$' "$OUT_DIR/test.log"; then
		defect "$PATCH" "perf test bpf-metadata runs nothing"
	else
		msg "$PATCH: perf test bpf-metadata passes"
	fi
}

check_builds()
{
	local build words

	for build in "${BUILDS[@]}"; do
		read -r -a words <<<"$build"
		check_build "${words[@]}" || [[ ${words[0]} != default ]] || return 0
	done
	check_perf_test
}

# If a patch does not apply, later patches are not tried, because they may depend on it.
check_patches()
{
	local PATCH what applies=yes builds_begin=yes

	[[ $OPT_FAST = no && -z $OPT_FROM ]] || builds_begin=no
	for PATCH in "${ENTRIES[@]}"; do
		[[ -f $SERIES_DIR/$PATCH ]] || { defect "$PATCH" "listed, but not there"; continue; }
		while read -r what; do
			defect "$PATCH" "$what"
		done < <(print_header_defects "$SERIES_DIR/$PATCH")
		[[ $applies = yes ]] || continue
		check_applies || { applies=no; continue; }
		check_modes
		[[ $PATCH != "$OPT_FROM" ]] || builds_begin=yes
		[[ $builds_begin = no ]] || check_builds
	done
}

# --- the parts that are mailed --------------------------------------------------

# Upstream's test ends with status 0 even if it is skipped, so look for its message.
check_upstream_test()
{
	local test=$OUT_DIR/base/linux/tools/perf/tests/shell/test_bpf_metadata.sh

	[[ -f $test ]] || return 0
	PATH=$OUT_DIR/build-default:$PATH bash "$test" >"$OUT_DIR/upstream.log" 2>&1 || :
	grep -q -F '[Success]' "$OUT_DIR/upstream.log" ||
		defect "$PATCH" "${test##*/} says: $(tail -n 1 "$OUT_DIR/upstream.log")"
}

# check_part PART IS-BUILT BELOW...: check the part on top of BELOW, the parts that it needs.
check_part()
{
	local PATCH=$1 is_built=$2 below=${*:3} patch

	# The files are hard links. patch makes a new file for each change, so the base keeps the
	# old one.
	rm -rf -- "$TREE_DIR" "$OUT_DIR/build-default"
	cp -al -- "$OUT_DIR/base/linux" "$TREE_DIR"
	below=${below:-no other part}
	while read -r patch; do
		apply "$patch" && continue
		defect "$PATCH" "on $below, $patch does not apply: $(series__print_reason "$OUT_DIR/patch.log")"
		return
	done < <(series__entries_of "$SERIES_FILE" "$1" "${@:3}")
	msg "part $PATCH applies on $below"
	[[ $is_built = yes ]] || return 0
	check_build default BUILD_BPF_SKEL=1 || return 0
	check_perf_test
	[[ $PATCH != "$CORE" ]] || check_upstream_test
}

# Check each part that has a letter, in a tree with only this part and the parts that it needs.
check_parts()
{
	local TREE_DIR=$OUT_DIR/part parts part below needed letter is_built=no

	[[ $OPT_FAST = yes || -n $OPT_FROM ]] || is_built=yes
	mapfile -t parts < <(series__parts "$SERIES_FILE")
	for part in "${parts[@]}"; do
		[[ $OPT_FROM != "$part"/* ]] || is_built=yes
		letter=$LETTERS_DIR/$part
		[[ -f $letter ]] || continue
		mapfile -t below < <(series__on_top_of "$letter")
		for needed in "${below[@]}"; do
			[[ " ${parts[*]} " = *" $needed "* ]] || defect "$letter" "'Applies on top of: $needed': not a part"
		done
		check_part "$part" "$is_built" "${below[@]}"
	done
	for letter in "$LETTERS_DIR"/*; do
		[[ ! -f $letter || " cover-letter ${parts[*]} " = *" ${letter##*/} "* ]] ||
			defect "$letter" "no part of the series has that name"
	done
}

OPT_FAST=no OPT_FROM='' OPT_OUT='' OPT_INSTALL=yes
# shellcheck disable=SC2034 # build.sh reads it
OPT_SANITIZE=no
JOBS=$(nproc)
NR_DEFECTS=0

parse_options "$@"
check_options
arch__load ''
resolve_paths
take_lock "$OUT_DIR/lock" "$OUT_DIR"
log_to "$OUT_DIR/check-series.log"
[[ $OPT_FAST = yes ]] || packages__require "$OPT_INSTALL" "${BUILDS_PACKAGES[@]}"
check_entries
prepare_tree
check_checkpatch
check_patches
check_parts
printf '%d patches, %d defects\n' "${#ENTRIES[@]}" "$NR_DEFECTS"
((NR_DEFECTS == 0)) || end_failed
