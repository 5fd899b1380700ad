# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Create the patched tree of an output directory, update it to another state of the series, and
# never lose a user's edits.
#
# Reads:
#	TAG OUT_DIR SERIES_* SOURCE_* PIN_*
#
# How it works. The git repository OUT_DIR/linux.git knows OUT_DIR/linux: the tag base is the source, and
# HEAD is the tree as the last run left it, a commit after base. The subject of a commit is the id of its
# source or of its series. git applies the series in an index, without fuzz, so a patch that fails does
# not change the tree. Then git writes the files whose content differs. All other files keep their
# mtime, so make rebuilds only objects of changed files. The repository is not in linux/, because
# perf's version would then come from it.

. "${BASH_SOURCE[0]%/*}/series.sh"
. "${BASH_SOURCE[0]%/*}/source.sh"

# With this date, the same content is the same commit.
TREE_DATE='2000-01-01T00:00:00Z'

tree__git()
{
	GIT_AUTHOR_DATE=$TREE_DATE GIT_COMMITTER_DATE=$TREE_DATE \
		clean_git -C "$OUT_DIR/linux" --git-dir="$OUT_DIR/linux.git" --work-tree="$OUT_DIR/linux" -c core.quotePath=false "$@"
}

# Print the subject of a commit, or nothing.
tree__subject()
{
	tree__git log -1 --format=%s "$1" 2>/dev/null || :
}

# Set SOURCE_* if OUT_DIR/linux was unpacked from a pinned source.
# shellcheck disable=SC2034 # the scripts read SOURCE_FROM
tree__use_base()
{
	local id version

	read -r id version < <(tree__subject base)
	[[ -n $id && " ${PIN_SOURCES[*]} $PIN_COMMIT " = *" ${id#*:} "* ]] || return 1
	SOURCE_ID=$id SOURCE_VERSION=$version SOURCE_FROM="unpacked earlier"
}

# Stage the tree as it is, without backups and other files that quilt, patch and editors make.
tree__stage()
{
	tree__git add -A -f -- . ':!.pc' ':!*.orig' ':!*.rej' ':!*.swp' ':!*~'
}

tree__check_edits()
{
	local edited

	tree__stage
	edited=$(tree__git diff --cached --name-only HEAD)
	# A reset that was killed leaves files of HEAD and of "series".
	! tree__git rev-parse -q --verify series >/dev/null ||
		edited=$(comm -12 <(echo "$edited") <(tree__git diff --cached --name-only series))
	[[ -n $edited ]] || return 0
	head -n 10 <<<"$edited" | sed 's/^/  edited: /' >&2
	die "$OUT_DIR/linux is not as the last run left it" \
		"to keep the edits: scripts/queue import $TAG; git --git-dir=$OUT_DIR/linux.git diff --cached HEAD |" \
		"    git -C $REPO_DIR/out/queue/linux apply" "run it again with --clean, which removes them here"
}

# Write PERF-VERSION-FILE, from which perf takes its version if there is no git: the Makefile of a
# tree with missing directories cannot print it. Make drivers/ and fs/, because checkpatch.pl and
# other scripts refuse a tree without them.
tree__fill()
{
	rm -rf -- "$OUT_DIR"/{linux,linux.git,build,perf} &&
		mkdir -p -- "$OUT_DIR"/linux/{drivers,fs} && tree__git init -q &&
		source__unpack "$OUT_DIR/linux" &&
		printf '#define PERF_VERSION "%s"\n' "$SOURCE_VERSION" > "$OUT_DIR/linux/PERF-VERSION-FILE" &&
		tree__stage && tree__git commit -q -m "$SOURCE_ID $SOURCE_VERSION" && tree__git tag base
}

# Unpack the source of SOURCE_*, unless this was done before.
tree__unpack()
{
	local base

	base=$(tree__subject base)
	[[ $base != "$SOURCE_ID $SOURCE_VERSION" ]] || return 0
	[[ -z $base ]] || tree__check_edits
	run_logged "unpack ${SOURCE_PATH##*/}" tree__fill ||
		die_logged "cannot unpack $SOURCE_PATH" "check the file and the space in $OUT_DIR"
}

tree__apply()
{
	local -x GIT_INDEX_FILE=$OUT_DIR/linux.git/index-series
	local patch

	tree__git read-tree base || return
	for patch in "${SERIES_PATCHES[@]}"; do
		echo "$patch"
		tree__git apply --cached --whitespace=nowarn "$SERIES_DIR/$patch" || return
	done
	tree__git tag -f series "$(tree__git commit-tree -p base -m "$SERIES_ID" "$(tree__git write-tree)")"
}

# Apply the series, unless this was done before.
tree__update()
{
	# A killed git leaves locks.
	rm -f -- "$OUT_DIR"/linux.git/*.lock
	tree__check_edits
	[[ $(tree__subject HEAD) != "$SERIES_ID" ]] || ! tree__git diff --cached --quiet HEAD || return 0
	run_logged "apply ${#SERIES_PATCHES[@]} patches" tree__apply || die_logged "the series does not apply" \
		"correct the patch; scripts/queue import $TAG stops at it, and says how to go on"
	rm -f -- "$OUT_DIR/perf"
	tree__git reset -q --hard series
}
