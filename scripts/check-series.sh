#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Check each patch of a series as a maintainer would, one after the other:
#
#	scripts/check-series.sh --fast v6.16	what needs no build, in a minute
#	scripts/check-series.sh v6.16		builds and tests each, about an hour
#
# The steps are the last lines of this file, in order.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/packages.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/series.sh"
. "$SCRIPTS_DIR/lib/build.sh"

# A subject line and "[PATCH 00/00] " fit into one line of a mail.
MAX_SUBJECT=75
# TRAILERS are given by people to the mails; make-submission.sh adds the submitter's.
TRAILERS='(Signed-off|Reviewed|Acked|Tested|Reported|Suggested|Co-developed)-by:'
# BUILDS has the name and make's arguments of each build.
BUILDS=("default BUILD_BPF_SKEL=1" "no_libbpf NO_LIBBPF=1" "no_skel BUILD_BPF_SKEL=0"
	"libbpf_dynamic BUILD_BPF_SKEL=0 LIBBPF_DYNAMIC=1")
# BUILDS_PACKAGES are for the last of them.
BUILDS_PACKAGES=(libbpf-dev)
# CORE is the part that has to pass upstream's test.
CORE=core

print_usage()
{
	cat <<END
usage: scripts/check-series.sh [options] TAG

Checks the patches of patches/TAG/series, in order: that each is there, is listed
once, in its part, and none is left out; has a subject, a changelog and no trailers;
applies without fuzz, and without offset if no tag before this one has the same file; is
accepted by checkpatch.pl --strict, but for what submission/checkpatch explains; builds;
passes perf test bpf-metadata. Each patch of the pinned tag has to be in the series, or
in a line there that says why it is not needed.
Checks each part that has a letter, submission/TAG/PART, on the parts that the letter
names under "Applies on top of:": that it applies without fuzz, builds, and passes perf
test bpf-metadata; the part $CORE upstream's test, too.
TAG is one of: $(pin__list | paste -s -d ' ')

  --fast            no builds and no perf test
  --from PATCH      build and test only this patch and those after it, and their parts
  --out DIR         the tree and the builds (default: out/TAG-series)
  --mirror DIR      passed on to apply-and-build.sh
  --jobs N          parallel jobs of the builds (default: number of CPUs)
  --no-install      install nothing; refuse and print the apt line
  -h, --help        this text

submission/checkpatch has a line for each finding that stays, of the patch of that
name on whatever tag:
  PATCH TYPE REASON...

Prints what is wrong, and a table with a line for each patch, and one for the parts.
Environment: PBM_PATCHES, PBM_PINS and PBM_CACHE as for apply-and-build.sh;
PBM_SUBMISSION, the directory with checkpatch and letters (default: submission)
Exit status: 0 nothing is wrong, 1 something is, 2 could not run.
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
	TABLE=$OUT_DIR/table
	mkdir -p -- "$OUT_DIR" || die "cannot create $OUT_DIR" "use another --out"
	[[ -f $SERIES_FILE ]] || die "$SERIES_FILE is not there" "name a tag that has patches"
}

# CELL_NAMES are the columns of the table after the patch.
choose_columns()
{
	CELL_NAMES=(header applies checkpatch)
	[[ $OPT_FAST = yes ]] || CELL_NAMES+=("${BUILDS[@]%% *}" test)
}

# defect WHERE WHAT: print it and count it.
defect()
{
	printf 'FAILED  %s: %s\n' "$1" "$2"
	((++NR_DEFECTS))
}

# --- the series ---------------------------------------------------------------

check_entries()
{
	local entry

	mapfile -t ENTRIES < <(series__entries "$SERIES_FILE")
	mapfile -t OWN < <(series__print_own "$TAG")
	((${#ENTRIES[@]})) || defect series "it is empty"
	[[ -z $OPT_FROM || " ${ENTRIES[*]} " = *" $OPT_FROM "* ]] ||
		die "--from $OPT_FROM: not in $SERIES_FILE" "name a patch as it does"
	for entry in $(printf '%s\n' "${ENTRIES[@]}" | sort | uniq -d); do
		defect "$entry" "listed twice"
	done
	while read -r entry; do
		defect "$entry" "in no series"
	done < <(series__print_unlisted)
	while read -r entry; do
		defect "$entry" "neither in the series nor said to be not needed"
	done < <(series__print_missing "$TAG")
}

is_own()
{
	[[ " ${OWN[*]} " = *" $1 "* ]]
}

# Print WHERE and WHAT of each defect, with a tab between.
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
			else if (name[1] != part) print path "\tnot behind the line \"# part " name[1] ": ...\""
		}' "$SERIES_FILE"
	sed -n 's/^# part //p' "$SERIES_DIR"/*/series | sort -u | cut -d : -f 1 | uniq -d |
		sed 's/.*/part &\tanother line "# part &:" in the series of another tag/'
	(cd -- "$SERIES_DIR" && find . -name '*.patch' -printf '%P\n') | sort | awk -F / '
		$NF in part && part[$NF] != $1 { print $0 "\tpart " part[$NF] " has a patch with the same name" }
		{ part[$NF] = $1 }'
}

# A tag's file is PART/TAG/NAME only if PART/NAME is another one.
check_own_files()
{
	local entry part tag shared

	for entry in "${ENTRIES[@]}"; do
		IFS=/ read -r part tag _ <<<"$entry"
		shared=$part/${entry##*/}
		[[ $entry = */*/* && -f $SERIES_DIR/$entry ]] || continue
		if [[ ! -f $SERIES_DIR/$shared ]]; then
			defect "$entry" "there is no $shared: move it there"
		elif cmp -s -- "$SERIES_DIR/$entry" "$SERIES_DIR/$shared"; then
			defect "$entry" "the same as $shared: name that in the series"
		elif [[ $tag = "$TAG" ]]; then
			is_own "$entry" || defect "$entry" "a tag before $TAG has it, too: move it to the directory of the first that does"
		elif is_own "$entry"; then
			defect "$entry" "no tag before $TAG has it: move it to $part/$TAG"
		fi
	done
}

check_places()
{
	local where what

	while IFS=$'\t' read -r where what; do
		defect "$where" "$what"
	done < <(print_misplaced)
	check_own_files
}

# The tree starts without patches; what an earlier run left is of no use.
prepare_tree()
{
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" --quiet --no-patches --stop-after apply \
		--out "$OUT_DIR/base" "$TAG" || die "there is no tree to check with" "see above"
	# Objects of the last patch are newer than the sources of the first.
	rm -rf -- "$TREE_DIR" "$OUT_DIR"/build-*
	cp -a -- "$OUT_DIR/base/linux" "$TREE_DIR"
}

# --- one patch ----------------------------------------------------------------

changelog()
{
	sed -n '1,/^---$/p' "$SERIES_DIR/$PATCH"
}

check_header()
{
	local subject

	CELLS[header]=ok
	subject=$(changelog | sed -n 's/^Subject: //p' | head -n 1)
	[[ $subject =~ ^[a-z][^:]*:\ [A-Z] ]] || bad header "no 'Subject: part: What it does'"
	((${#subject} <= MAX_SUBJECT)) || bad header "a subject of ${#subject} characters, more than $MAX_SUBJECT"
	changelog | grep -q -x -e '---' || bad header "no line '---' after the changelog"
	(($(changelog | sed '/^Subject: /d; /^---$/d; /^$/d' | wc -l) >= 2)) || bad header "no changelog"
	! changelog | grep -q -E -e "^$TRAILERS" || bad header "a trailer that somebody gave: $(changelog | grep -m 1 -E -e "^$TRAILERS")"
	grep -q -x -F -e "$(diffstat -p1 "$SERIES_DIR/$PATCH" | tail -n 1)" "$SERIES_DIR/$PATCH" ||
		bad header "no diffstat, or that of another patch; quilt refresh --diffstat it"
}

bad()
{
	CELLS[$1]=FAILED
	defect "$PATCH" "$2"
}

# apply PATCH: to the tree. Without --force, patch asks whoever sits at the terminal.
apply()
{
	(cd -- "$TREE_DIR" && patch -p1 --force --fuzz=0 --no-backup-if-mismatch -i "$SERIES_DIR/$1") >"$OUT_DIR/patch.log" 2>&1
}

check_applies()
{
	CELLS[applies]=ok
	if ! apply "$PATCH"; then
		bad applies "does not apply: $(series__print_reason "$OUT_DIR/patch.log")"
		return 1
	fi
	# One of another tag has the numbers of lines there.
	! is_own "$PATCH" || ! grep -q -E 'offset|fuzz' "$OUT_DIR/patch.log" ||
		bad applies "applies with an offset: $(grep -m 1 -E 'offset|fuzz' "$OUT_DIR/patch.log"), refresh it"
}

# perf test skips a script that is not executable, and quilt keeps a mode only with
# scripts/quiltrc.
check_modes()
{
	local file

	while read -r file; do
		[[ -x $TREE_DIR/$file ]] ||
			bad applies "$file is not executable: in the tree, chmod +x it, and QUILTRC=$SCRIPTS_DIR/quiltrc quilt refresh"
	done < <(awk '/^\+\+\+ b\// { file = substr($2, 3) }
		/^@@ -0,0 / { first = NR + 1 }
		NR == first && /^\+#!/ { print file }' "$SERIES_DIR/$PATCH")
}

# checkpatch takes a file that git tracks for source, so it gets a copy. It leaves a
# file in its directory. It cannot look for commits, as there is no history of the
# kernel here. Trailers come with the mails.
check_checkpatch()
{
	local copy=$OUT_DIR/checkpatch.patch type types status=0

	CELLS[checkpatch]=ok
	cp -- "$SERIES_DIR/$PATCH" "$copy"
	(cd -- "$OUT_DIR" && perl "$TREE_DIR/scripts/checkpatch.pl" --strict --no-tree --show-types --terse \
		--ignore MISSING_SIGN_OFF,UNKNOWN_COMMIT_ID "$copy" </dev/null) >"$OUT_DIR/checkpatch.log" 2>&1 || status=$?
	mapfile -t types < <(sed -n 's/^[^:]*:[0-9]*: [A-Z]*:\([A-Z0-9_]*\): .*/\1/p' "$OUT_DIR/checkpatch.log" | sort -u)
	# Status 1 comes with findings, each of a type.
	((status == 0 || (status == 1 && ${#types[@]}))) ||
		bad checkpatch "checkpatch.pl did not run: $(head -n 1 "$OUT_DIR/checkpatch.log")"
	for type in "${types[@]}"; do
		if [[ -f $EXPLAINED ]] && grep -q -E -e "^${PATCH##*/}[[:space:]]+${type}[[:space:]]" "$EXPLAINED"; then
			CELLS[checkpatch]=explained
		else
			bad checkpatch "checkpatch: $(grep -m 1 -e "$type" "$OUT_DIR/checkpatch.log" | cut -d : -f 2-)"
		fi
	done
}

build_one()
{
	BUILD_DIR=$OUT_DIR/build-$1
	build__load_args
	BUILD_ARGS+=("${@:2}")
	mkdir -p -- "$BUILD_DIR" &&
		build__make
}

check_build()
{
	CELLS[$1]=ok
	run_logged "$PATCH: build $1" build_one "$@" && return
	bad "$1" "does not build ($1), see $LOG_FILE"
	return 1
}

# perf finds its shell tests below the directory that it runs in.
run_perf_test()
{
	(cd -- "$TREE_DIR/tools/perf" && "$OUT_DIR/build-default/perf" test "$@" 2>&1)
}

# perf test has bpf-metadata from the patch on that adds it.
check_perf_test()
{
	CELLS[test]=-
	# A pipe to grep -q may be closed before perf has written all.
	if [[ $(run_perf_test list) = *bpf-metadata* ]]; then
		CELLS[test]=ok
		if ! run_perf_test bpf-metadata >"$OUT_DIR/test.log" || grep -q 'FAILED!' "$OUT_DIR/test.log"; then
			bad test "perf test bpf-metadata fails: $(grep -m 1 'FAILED!' "$OUT_DIR/test.log")"
		elif ! grep -q ': Ok$' "$OUT_DIR/test.log"; then
			bad test "perf test bpf-metadata runs nothing"
		fi
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

# Later patches are not applied after one that doesn't apply: they would say nothing.
check_patch()
{
	local cell

	for cell in "${CELL_NAMES[@]}"; do
		CELLS[$cell]=-
	done
	if [[ ! -f $SERIES_DIR/$PATCH ]]; then
		defect "$PATCH" "listed, but not there"
		return
	fi
	check_header
	check_checkpatch
	[[ $APPLIES = yes ]] || return 0
	check_applies || { APPLIES=no; return 0; }
	check_modes
	[[ $PATCH != "$OPT_FROM" ]] || BUILDS_BEGIN=yes
	[[ $BUILDS_BEGIN = no ]] || check_builds
}

print_row()
{
	local cell

	printf '%s' "$PATCH" >>"$TABLE"
	for cell in "${CELL_NAMES[@]}"; do
		printf ' %s' "${CELLS[$cell]}" >>"$TABLE"
	done
	printf '\n' >>"$TABLE"
}

# print_head COLUMN: the table's first line
print_head()
{
	local names=("$1" "${CELL_NAMES[@]}")

	printf '%s\n' "${names[*]^^}" >"$TABLE"
}

check_patches()
{
	print_head patch
	for PATCH in "${ENTRIES[@]}"; do
		check_patch
		print_row
	done
	column -t "$TABLE"
}

# --- the parts that are mailed --------------------------------------------------

# upstream's test has status 0, too, where it is skipped.
check_upstream_test()
{
	local test=$OUT_DIR/base/linux/tools/perf/tests/shell/test_bpf_metadata.sh

	[[ -f $test ]] || return 0
	CELLS[upstream]=ok
	PATH=$OUT_DIR/build-default:$PATH bash "$test" >"$OUT_DIR/upstream.log" 2>&1 || :
	grep -q -F '[Success]' "$OUT_DIR/upstream.log" ||
		bad upstream "${test##*/} says: $(tail -n 1 "$OUT_DIR/upstream.log")"
}

# check_part_on PATCH...: the part's, and before them those that it stands on
check_part_on()
{
	local patch

	# A file that patch changes becomes another one, and the base keeps its own.
	rm -rf -- "$TREE_DIR" "$OUT_DIR/build-default"
	cp -al -- "$OUT_DIR/base/linux" "$TREE_DIR"
	CELLS[applies]=ok
	for patch; do
		apply "$patch" && continue
		bad applies "on ${CELLS[on]}, $patch does not apply: $(series__print_reason "$OUT_DIR/patch.log")"
		return 0
	done
	[[ $BUILDS_BEGIN = yes ]] || return 0
	check_build default BUILD_BPF_SKEL=1 || return 0
	check_perf_test
	[[ $PATCH != "$CORE" ]] || check_upstream_test
}

# check_part PART BELOW...
check_part()
{
	local PATCH=$1 cell patches

	for cell in "${CELL_NAMES[@]}"; do
		CELLS[$cell]=-
	done
	CELLS[on]=${*:2}
	CELLS[on]=${CELLS[on]// /,}
	CELLS[on]=${CELLS[on]:-base}
	mapfile -t patches < <(series__entries_of "$SERIES_FILE" "$@")
	check_part_on "${patches[@]}"
	print_row
}

check_letter()
{
	local part below

	mapfile -t below < <(series__on_top_of "$LETTERS_DIR/$1")
	for part in "${below[@]}"; do
		[[ " ${PARTS[*]} " = *" $part "* ]] || defect "$LETTERS_DIR/$1" "'Applies on top of: $part': no part of the series"
	done
	check_part "$1" "${below[@]}"
}

# Other patches than in check_patches are applied: all trees are made anew.
check_parts()
{
	local CELL_NAMES=(on applies) TABLE=$OUT_DIR/table-parts TREE_DIR=$OUT_DIR/part BUILDS_BEGIN=no PARTS part letter

	[[ $OPT_FAST = yes ]] || CELL_NAMES+=(default test upstream)
	[[ $OPT_FAST = yes || -n $OPT_FROM ]] || BUILDS_BEGIN=yes
	mapfile -t PARTS < <(series__parts "$SERIES_FILE")
	print_head part
	for part in "${PARTS[@]}"; do
		[[ $OPT_FROM != "$part"/* ]] || BUILDS_BEGIN=yes
		[[ ! -f $LETTERS_DIR/$part ]] || check_letter "$part"
	done
	for letter in "$LETTERS_DIR"/*; do
		[[ ! -f $letter || " cover-letter ${PARTS[*]} " = *" ${letter##*/} "* ]] ||
			defect "$letter" "no part of the series has that name"
	done
	[[ $(wc -l <"$TABLE") = 1 ]] || { echo; column -t "$TABLE"; }
}

OPT_FAST=no OPT_FROM='' OPT_OUT='' OPT_INSTALL=yes
declare -A CELLS
# shellcheck disable=SC2034 # build.sh reads it
OPT_SANITIZE=no
JOBS=$(nproc)
NR_DEFECTS=0 APPLIES=yes
# shellcheck disable=SC2086 # the names of all variables that quilt would read
unset ${!QUILT_@} || :

parse_options "$@"
check_options
arch__load ''
resolve_paths
take_lock "$OUT_DIR/lock" "$OUT_DIR"
log_to "$OUT_DIR/check-series.log"
[[ $OPT_FAST = yes ]] || packages__require "$OPT_INSTALL" "${BUILDS_PACKAGES[@]}"
choose_columns
check_entries
check_places
prepare_tree
BUILDS_BEGIN=yes
[[ $OPT_FAST = no && -z $OPT_FROM ]] || BUILDS_BEGIN=no
check_patches
check_parts
printf '%d patches, %d defects\n' "${#ENTRIES[@]}" "$NR_DEFECTS"
((NR_DEFECTS == 0)) || end_failed
