#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Apply the patches of a series one after the other, and check each as a maintainer would.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/packages.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/series.sh"
. "$SCRIPTS_DIR/lib/build.sh"

print_usage()
{
	cat <<END
usage: scripts/check-series.sh [options] TAG

Checks the patches of patches/TAG/series in order. Each patch
- has an author, a subject and a changelog, and no trailers;
- applies without fuzz, and has the form that scripts/queue export gives it;
- passes checkpatch.pl --strict, except for findings that submission/checkpatch lists, a
  line "PATCH TYPE REASON..." for each;
- builds, and passes perf test bpf-metadata.
The series has each patch of the pinned tag, or a line that says why it is not needed.

A part with a letter, submission/TAG/PART, is mailed. So it is also applied, built and tested
on the unpatched tree, after only the parts that its letter names under "Applies on top
of:". There it has to pass upstream's own test of BPF metadata, too, if the tag has it.
TAG is one of: $(pin__list_patched | paste -s -d ' ')

  --fast            no builds and no perf test: half a minute instead of an hour
  --changed[=COMMIT]
                    build and test only the patches that differ from COMMIT (default: HEAD),
                    and their parts. Only the last of them is also built without libbpf,
                    without skeletons and with the distribution's libbpf. This is the last
                    patch of the series if patches were added, removed or moved
  --out DIR         directory for the tree and the builds (default: out/TAG-series)
  --jobs N          parallel jobs of the builds (default: number of CPUs)
  --no-install      install nothing; if packages are missing, print the apt line and end
  -h, --help        this text

Prints a line for each defect; the last line is "N patches, N defects".
Environment: PBM_PATCHES, PBM_PINS, PBM_MIRROR and PBM_CACHE as for apply-and-build.sh;
PBM_SUBMISSION, the directory with checkpatch and letters (default: submission)
Exit status: 0 no defects, 1 defects, 2 could not run.
END
}

check_options()
{
	[[ $OPT_FAST = no || -z $OPT_CHANGED ]] || die_usage "--fast builds nothing, and excludes --changed"
	pin__load "$TAG"
	series__load "$TAG"
}

# BASE_DIR is the unpatched tree, and TREE_DIR the tree that is built.
resolve_paths()
{
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$REPO_DIR/out/$TAG-series}")
	EXPLAINED=${PBM_SUBMISSION:-$REPO_DIR/submission}/checkpatch
	LETTERS_DIR=${PBM_SUBMISSION:-$REPO_DIR/submission}/$TAG
	BASE_DIR=$OUT_DIR/queue/$TAG/linux
	TREE_DIR=$OUT_DIR/tree
	mkdir -p -- "$TREE_DIR"
}

# Set BUILT to the patches to build. If the series itself has changed, the last patch shows the result.
select_built()
{
	local changed

	BUILT=()
	[[ $OPT_FAST = no ]] || return 0
	BUILT=("${SERIES_PATCHES[@]}")
	[[ -n $OPT_CHANGED ]] || return 0
	changed=$(git -C "$SERIES_DIR" diff --name-only --relative "$OPT_CHANGED" -- . &&
		git -C "$SERIES_DIR" ls-files --others) ||
		die "--changed=$OPT_CHANGED: git cannot compare $SERIES_DIR with it" "name a commit"
	! grep -q -x series <<<"$changed" || changed+=$'\n'${SERIES_PATCHES[-1]}
	mapfile -t BUILT < <(printf '%s\n' "${SERIES_PATCHES[@]}" | grep -x -F -e "$changed")
	((${#BUILT[@]})) || die "--changed=$OPT_CHANGED: no patch in $SERIES_DIR differs from it" "name an older commit"
}

# defect WHERE WHAT: print and count a defect.
defect()
{
	printf 'FAILED  %s: %s\n' "$1" "$2"
	((++NR_DEFECTS))
}

# The series has each patch of the pinned tag, or a line "# not needed: PATCH: since|by VERSION: REASON". In a
# file in which a substitute of the source differs from the tag, the patched file would differ, too.
check_entries()
{
	local entry pinned differs

	while read -r entry; do
		defect "$entry" "not in the series"
	done < <(comm -23 <(cd -- "$SERIES_DIR" && find . -name '*.patch' -printf '%P\n' | sort) \
		<(printf '%s\n' "${SERIES_PATCHES[@]}" | sort))
	pinned=$SERIES_TOP/$(pin__of_state pinned)/series
	[[ ! -f $pinned ]] || while read -r entry; do
		defect "$entry" "neither in the series nor said to be not needed"
	done < <(comm -13 <(sed 's/^# not needed: \([^:]*\): [^:]*: ..*/\1/; /^#/d' "$SERIES_FILE" | sort) \
		<(series__entries "$pinned" | sort))
	for differs in "${PIN_DIFFERS[@]}"; do
		while read -r entry; do
			defect "$entry" "touches ${differs#* }, in which the substitute ${differs% *} differs from the tag"
		done < <(cd -- "$SERIES_DIR" && grep -l -x -E "(--- a|\+\+\+ b)/${differs#* }" -- "${SERIES_PATCHES[@]}")
	done
}

# The order of the parts, line numbers, diffstats and modes are those that git makes of the patches.
check_form()
{
	local top=$OUT_DIR/form command name

	rm -rf -- "$top" "$OUT_DIR/queue/linux" && mkdir -- "$top"
	cp -r -- "$SERIES_DIR" "$top"
	for command in import export; do
		PBM_PATCHES=$top run_logged "$command the series" \
			"$SCRIPTS_DIR/queue" "$command" --out "$OUT_DIR/queue" "$TAG" ||
			die_logged "scripts/queue cannot $command the series" "see the log"
	done
	while read -r name; do
		cmp -s -- "$SERIES_DIR/$name" "$top/$TAG/$name" ||
			defect "$name" "not as git writes it: scripts/queue import $TAG && scripts/queue export $TAG"
	done < <(printf '%s\n' series "${SERIES_PATCHES[@]}")
}

prepare_base()
{
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" --quiet --no-patches --no-build \
		--out "${BASE_DIR%/*}" "$TAG" || die "there is no tree to check with" "see above"
}

# perf test skips scripts that are not executable. The kernel's submitting-patches.rst limits a subject to
# 70-75 characters. make-submission.sh adds the submitter's sign-off to mails.
print_text_defects()
{
	awk -v max=75 -v trailers='^(Signed-off|Reviewed|Acked|Tested|Reported|Suggested|Co-developed)-by:' '
		/^---$/ { has_end = 1 }
		/^(diff|new file) / { is_plain = /100644$/ }
		is_plain && /^\+#!/ { print "a new script has mode 100644, not 100755" }
		has_end { next }
		/^From: / && NR == 1 { has_author = 1; next }
		/^Subject: / && subject == "" { subject = substr($0, 10); next }
		$0 ~ trailers && trailer == "" { trailer = $0 }
		NF { lines++ }
		END {
			if (!has_author) print "the first line is not \"From: AUTHOR <ADDRESS>\""
			if (subject !~ /^[a-z][^:]*: [A-Z]/) print "no \"Subject: part: What it does\""
			if (length(subject) > max) print "a subject of " length(subject) " characters, more than " max
			if (!has_end) print "no line \"---\" after the changelog"
			if (lines < 2) print "no changelog of two lines"
			if (trailer != "") print "a trailer, which only mails have: " trailer
		}' "$1"
}

# Call checkpatch once for all patches, because a call for each patch takes three times as long.
# checkpatch takes files tracked by git for source code, so it gets copies of the patches. It
# cannot check commit ids, because the kernel's history is not here. MAINTAINERS names directories of
# perf, not files. Report only the first finding of each type in a patch.
check_checkpatch()
{
	local dir=$OUT_DIR/checkpatch log=$OUT_DIR/checkpatch.log name type text status=0 found=0

	rm -rf -- "$dir"
	mkdir -- "$dir"
	cp -- "${SERIES_PATCHES[@]/#/$SERIES_DIR/}" "$dir"
	(cd -- "$dir" && perl "$BASE_DIR/scripts/checkpatch.pl" --strict --no-tree --show-types --terse --ignore \
		MISSING_SIGN_OFF,UNKNOWN_COMMIT_ID,FILE_PATH_CHANGES ./*.patch </dev/null) >"$log" 2>&1 || status=$?
	while IFS=$'\t' read -r name type text; do
		((++found))
		grep -q -s -E -e "^${name}[[:space:]]+${type}[[:space:]]" "$EXPLAINED" ||
			defect "$(printf '%s\n' "${SERIES_PATCHES[@]}" | grep -m 1 -e "/$name\$")" "checkpatch: $type: $text"
	done < <(sed -n 's/^\(\.\/\)\{0,1\}\([^:]*\):[0-9]*: [A-Z]*:\([A-Z0-9_]*\): \(.*\)/\2\t\3\t\4/p' "$log" |
		sort -t $'\t' -s -u -k 1,2)
	# Status 1 means that there are findings.
	((status == 0 || (status == 1 && found))) || defect series "checkpatch.pl failed: $(tail -n 1 "$log")"
}

# with_index NAME COMMAND...: run git with the files in TREE_DIR and this index
with_index()
{
	GIT_INDEX_FILE=$OUT_DIR/index-$1 clean_git -C "$TREE_DIR" --git-dir="$BASE_DIR.git" --work-tree="$TREE_DIR" "${@:2}"
}

# apply PATCH: apply it to the index, or print why it does not apply. git applies without fuzz.
apply()
{
	with_index patched apply --cached --whitespace=nowarn "$SERIES_DIR/$1" 2>&1 | sed -n '/^error: / { s///p; q }'
}

# Write the files that differ to TREE_DIR. So make compiles only what has changed, from the last run on.
write_tree()
{
	with_index tree read-tree --reset -u "$(with_index patched write-tree)"
}

# check_build NAME ARGUMENT...: build perf with these arguments of make
check_build()
{
	BUILD_DIR=$OUT_DIR/build-$1
	build__load_args ''
	BUILD_ARGS+=("${@:2}")
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
	local list log=$OUT_DIR/test.log

	# No pipe to grep -q: it may close the pipe before perf has written everything.
	if ! list=$(run_perf_test list); then
		defect "$PATCH" "perf test list fails"
	elif [[ $list != *bpf-metadata* ]]; then
		return 0
	elif ! run_perf_test bpf-metadata >"$log" || grep -q 'FAILED!' "$log" || ! grep -q ': Ok$' "$log"; then
		defect "$PATCH" "perf test bpf-metadata fails or runs nothing, see $log"
	else
		msg "$PATCH: perf test bpf-metadata passes"
	fi
}

# Upstream's test ends with status 0 even if it is skipped, so look for its message.
check_upstream_test()
{
	local test=$BASE_DIR/tools/perf/tests/shell/test_bpf_metadata.sh log=$OUT_DIR/upstream.log

	[[ -f $test ]] || return 0
	PATH=$OUT_DIR/build-default:$PATH bash "$test" >"$log" 2>&1 || :
	grep -q -F '[Success]' "$log" || defect "$PATCH" "${test##*/} says: $(tail -n 1 "$log")"
}

check_builds()
{
	write_tree
	check_build default BUILD_BPF_SKEL=1 || return 0
	if [[ -z $OPT_CHANGED || $PATCH = "${BUILT[-1]}" ]]; then
		check_build no_libbpf NO_LIBBPF=1 || :
		check_build no_skel BUILD_BPF_SKEL=0 || :
		check_build libbpf_dynamic BUILD_BPF_SKEL=0 LIBBPF_DYNAMIC=1 || :
	fi
	check_perf_test
}

# If a patch does not apply, later patches are not tried, because they may depend on it.
check_patches()
{
	local PATCH what reason=''

	with_index patched read-tree base
	for PATCH in "${SERIES_PATCHES[@]}"; do
		while read -r what; do
			defect "$PATCH" "$what"
		done < <(print_text_defects "$SERIES_DIR/$PATCH")
		if [[ -z $reason ]]; then
			reason=$(apply "$PATCH") || defect "$PATCH" "does not apply: $reason"
		fi
		[[ -n $reason || " ${BUILT[*]} " != *" $PATCH "* ]] || check_builds
	done
}

# check_part PART: check a part that has a letter, on top of only the parts that it needs
check_part()
{
	local PATCH=$1 below=() patch reason

	mapfile -t below < <(series__on_top_of "$LETTERS_DIR/$1")
	with_index patched read-tree base
	while read -r patch; do
		reason=$(apply "$patch") && continue
		defect "$PATCH" "on ${below[*]:-no other part}, $patch does not apply: $reason"
		return
	done < <(series__entries_of "$1" "${below[@]}")
	msg "part $PATCH applies on ${below[*]:-no other part}"
	[[ " ${BUILT[*]}" = *" $PATCH/"* ]] || return 0
	write_tree
	check_build default BUILD_BPF_SKEL=1 || return 0
	check_perf_test
	check_upstream_test
}

check_parts()
{
	local part

	for part in $(series__parts); do
		[[ ! -f $LETTERS_DIR/$part ]] || check_part "$part"
	done
	while read -r part; do
		defect "$LETTERS_DIR" "$part is the name of a letter, or in a letter, and not a part"
	done < <(comm -13 <(series__parts | sort) <(find "$LETTERS_DIR" -type f -printf '%f\n' 2>/dev/null |
		while read -r part; do echo "$part"; series__on_top_of "$LETTERS_DIR/$part"; done | sort -u))
}

OPT_FAST=no OPT_CHANGED='' OPT_OUT='' OPT_INSTALL=yes
JOBS=$(nproc) NR_DEFECTS=0

options__parse "$@" <<-'END'
	--fast		OPT_FAST	yes
	--changed::	OPT_CHANGED	HEAD
	--out:		OPT_OUT
	--jobs:		JOBS
	--no-install	OPT_INSTALL	no
END
check_options
arch__load ''
resolve_paths
log_to "$OUT_DIR/check-series.log"
[[ $OPT_FAST = yes ]] || packages__require "$OPT_INSTALL" libbpf-dev
select_built
check_entries
prepare_base
check_checkpatch
check_patches
((NR_DEFECTS)) || check_form
check_parts
printf '%d patches, %d defects\n' "${#SERIES_PATCHES[@]}" "$NR_DEFECTS"
((NR_DEFECTS == 0)) || end_failed
