# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Create the patched tree of an output directory, update it to another state of the series, and
# never lose a user's edits.
#
# Usage (after lib/common.sh, lib/series.sh, series__load, source__find_or_fetch):
#	tree__is_current	status 0 if the tree, its source and its series are
#				unchanged since the last run
#	tree__check_edits	die if the tree has edits that are in no patch
#	tree__patch		apply the series outside of the tree; die if it does not apply
#	tree__update		bring the tree to the state that tree__patch has made
#	tree__reset		remove tree and objects, because the source has changed
#
# Reads:
#	TREE_DIR BASE_DIR STATE_DIR BUILD_DIR OUT_DIR	the output directory and its parts
#	SERIES_* SOURCE_ID TAG
#
# How it works. BASE_DIR/tree is the unpacked source and never changes. quilt applies the series in
# a scratch directory, which has only the files that the series touches. So a patch that fails does
# not change the tree. When all patches have applied, each file whose content differs is copied to
# the tree. All other files keep their mtime, so make rebuilds only objects of changed files. Every
# step can be repeated after an interruption. In STATE_DIR:
#
#	touched		all files that a series ever touched in this tree
#	putting/	the scratch directory whose files are being put into the tree;
#			an interrupted run leaves it behind
#	patched/	the scratch directory of the last complete run
#	manifest	path, size and mtime of all files of the tree
#	applied		source and series of the last complete run; written last
#
# In a scratch directory, .touched lists the files that the series touches. All other files are
# only in BASE_DIR/tree.

TREE_STAMP_FORMAT=1

tree__stamp()
{
	printf '%s\n' "format $TREE_STAMP_FORMAT" "source $SOURCE_ID" "series $SERIES_ID"
}

tree__manifest()
{
	(cd "$1" && find . -path ./.pc -prune -o \( -type f -o -type l \) -printf '%P\t%s\t%T@\n' | sort)
}

# Print the files that were changed, removed or added since the manifest was written.
tree__changed_files()
{
	comm -3 "$STATE_DIR/manifest" <(tree__manifest "$TREE_DIR") | sed 's/^\t//' | cut -f 1 | sort -u
}

tree__is_current()
{
	[[ -d $TREE_DIR && -f $STATE_DIR/applied ]] || return 1
	[[ $(tree__stamp) = "$(< "$STATE_DIR/applied")" ]] || return 1
	cmp -s "$STATE_DIR/manifest" <(tree__manifest "$TREE_DIR")
}

# Two files are the same if their content is the same, or if both are missing.
tree__same()
{
	if [[ -e $1 || -L $1 ]]; then
		cmp -s -- "$1" "$2"
	else
		[[ ! -e $2 ]]
	fi
}

# tree__path_in DIR FILE: print the path of FILE in the version that the series has made in the
# scratch directory DIR
tree__path_in()
{
	local dir=$1 file=$2

	if grep -qxF -e "$file" -- "$dir/.touched"; then
		printf '%s\n' "$dir/$file"
	else
		printf '%s\n' "$BASE_DIR/tree/$file"
	fi
}

# A file does not count as edited if it has the content that the last run, finished or not, has
# left, or that the series makes now (after quilt refresh). Backups and other files that quilt,
# patch, editors and tree__put_file leave do not count, either.
tree__is_edited()
{
	local file=$1 dir

	[[ ! $file =~ (\.orig|\.rej|\.swp|\.part|~)$ ]] || return 1
	for dir in "$STATE_DIR/patched" "$STATE_DIR/putting" "$SCRATCH_DIR"; do
		[[ -f $dir/.touched ]] || continue
		! tree__same "$TREE_DIR/$file" "$(tree__path_in "$dir" "$file")" || return 1
	done
}

# Print the number of patches that the last run applied and that are not applied now.
tree__count_popped()
{
	local wanted applied

	wanted=$(sed -n 's/^series [0-9a-f]*-//p' "$STATE_DIR/applied")
	applied=$(grep -s -c . "$TREE_DIR/.pc/applied-patches" || :)
	echo $((${wanted:-0} - ${applied:-0}))
}

tree__check_edits()
{
	local file edited=() popped=0

	[[ -d $TREE_DIR ]] || return 0
	[[ -f $STATE_DIR/manifest ]] || die "$TREE_DIR was not made by this script" "move it away or use another --out"
	while read -r file; do
		tree__is_edited "$file" || continue
		edited+=("$file")
	done < <(tree__changed_files)
	((${#edited[@]})) || return 0
	[[ ! -f $STATE_DIR/applied ]] || popped=$(tree__count_popped)
	((popped <= 0)) ||
		die "$TREE_DIR: $popped patches are popped" \
			"cd $TREE_DIR && quilt push -a" "or throw away what is in no patch: run again with --clean"
	printf '  edited: %s\n' "${edited[@]:0:10}" >&2
	[[ -f $STATE_DIR/applied ]] ||
		die "$TREE_DIR: ${#edited[@]} files were edited after an update that was not finished" \
			"copy them to another place, run again with --clean, and put the edits back"
	die "$TREE_DIR has ${#edited[@]} edited files that are in no patch of the series" \
		"keep the edits: export QUILTRC=$SCRIPTS_DIR/quiltrc; cd $TREE_DIR && quilt push -a; quilt refresh" \
		"or throw them away: run again with --clean"
}

# --- apply --------------------------------------------------------------------

tree__fill_scratch()
{
	local file

	rm -rf -- "$SCRATCH_DIR" &&
		mkdir -p -- "$SCRATCH_DIR" &&
		series__touched > "$SCRATCH_DIR/.touched" || return
	while read -r file; do
		[[ -e $BASE_DIR/tree/$file ]] || continue
		mkdir -p -- "$SCRATCH_DIR/$(dirname -- "$file")" &&
			cp -p -- "$BASE_DIR/tree/$file" "$SCRATCH_DIR/$file" || return
	done < "$SCRATCH_DIR/.touched"
}

tree__push()
{
	cd "$SCRATCH_DIR" &&
		series__quilt init &&
		series__quilt push -a --fuzz=0
}

tree__die_push()
{
	disk_is_full "$OUT_DIR" && die_logged "no space left in $OUT_DIR" "free some space or use another --out"
	die_logged "the series does not apply: $(series__print_reason "$LOG_FILE")" \
		"correct the patch in $SERIES_DIR; to make a tree in which you can do that:" \
		"scripts/apply-and-build.sh --no-patches --stop-after apply --out DIR $TAG, then in DIR/linux: QUILTRC=$SCRIPTS_DIR/quiltrc QUILT_PATCHES=$SERIES_DIR quilt push -a -f"
}

tree__patch()
{
	on_exit rm -rf -- "$SCRATCH_DIR"
	tree__fill_scratch || tree__die_write
	((${#SERIES_PATCHES[@]})) || return 0
	run_logged "apply ${#SERIES_PATCHES[@]} patches" tree__push || tree__die_push
}

# --- update the tree ----------------------------------------------------------

# Rename the tree before it is removed, so that a tree that is half removed never looks complete.
tree__reset()
{
	rm -f -- "$STATE_DIR/applied" "$STATE_DIR/built" "$PERF"
	rm -rf -- "$TREE_DIR.part"
	[[ ! -d $TREE_DIR ]] || mv -- "$TREE_DIR" "$TREE_DIR.part"
	rm -rf -- "$TREE_DIR.part" "$BUILD_DIR" "$STATE_DIR/patched" "$STATE_DIR/putting" "$STATE_DIR/touched"
}

# Create the tree in the state of a run without patches. Write its manifest before the rename.
tree__create()
{
	rm -rf -- "$TREE_DIR.part" "$STATE_DIR/patched" "$STATE_DIR/putting"
	on_exit rm -rf -- "$TREE_DIR.part"
	run_logged "copy the tree" cp -a --reflink=auto -- "$BASE_DIR/tree" "$TREE_DIR.part" ||
		tree__die_write
	{ mkdir -- "$STATE_DIR/patched" &&
		: > "$STATE_DIR/patched/.touched" &&
		tree__write_manifest "$TREE_DIR.part" &&
		mv -- "$TREE_DIR.part" "$TREE_DIR"; } || tree__die_write
}

tree__write_manifest()
{
	tree__manifest "$1" > "$STATE_DIR/manifest.part" &&
		mv -f -- "$STATE_DIR/manifest.part" "$STATE_DIR/manifest"
}

tree__die_write()
{
	disk_is_full "$OUT_DIR" && die "no space left in $OUT_DIR" "free some space or use another --out"
	die "cannot write $TREE_DIR" "check its owner and mode, and $LOG_FILE"
}

# New content gets a new mtime, even if the file had this content before, because make may have
# built objects from other content since then.
tree__put_file()
{
	local file=$1 wanted

	wanted=$(tree__path_in "$STATE_DIR/putting" "$file")
	if tree__same "$TREE_DIR/$file" "$wanted"; then
		[[ ! -e $wanted ]] || chmod --reference="$wanted" -- "$TREE_DIR/$file"
	elif [[ -e $wanted ]]; then
		mkdir -p -- "$(dirname -- "$TREE_DIR/$file")" &&
			cp -- "$wanted" "$TREE_DIR/$file.part" &&
			chmod --reference="$wanted" -- "$TREE_DIR/$file.part" &&
			mv -f -- "$TREE_DIR/$file.part" "$TREE_DIR/$file" &&
			PUT_COUNT=$((PUT_COUNT + 1))
	else
		rm -f -- "$TREE_DIR/$file" && PUT_COUNT=$((PUT_COUNT + 1))
	fi
}

# Move the scratch directory to STATE_DIR/putting, and update touched.
tree__take_scratch()
{
	touch "$STATE_DIR/touched" &&
		sort -u "$STATE_DIR/touched" "$SCRATCH_DIR/.touched" > "$STATE_DIR/touched.part" &&
		mv -f -- "$STATE_DIR/touched.part" "$STATE_DIR/touched" &&
		rm -rf -- "$STATE_DIR/putting" &&
		mv -- "$SCRATCH_DIR" "$STATE_DIR/putting"
}

# With the files in .pc, quilt push, pop and refresh work in the tree. .pc has a relative path to
# the patches, so a copy of the checkout uses its own patches.
tree__put_quilt()
{
	rm -rf -- "$TREE_DIR/.pc" || return
	[[ -d $STATE_DIR/putting/.pc ]] || return 0
	realpath --relative-to="$TREE_DIR" -- "$SERIES_DIR" > "$STATE_DIR/putting/.pc/.quilt_patches" &&
		echo series > "$STATE_DIR/putting/.pc/.quilt_series" &&
		mv -- "$STATE_DIR/putting/.pc" "$TREE_DIR/.pc"
}

tree__write_stamp()
{
	rm -rf -- "$STATE_DIR/patched" &&
		mv -- "$STATE_DIR/putting" "$STATE_DIR/patched" &&
		tree__write_manifest "$TREE_DIR" &&
		tree__stamp > "$STATE_DIR/applied.part" &&
		mv -f -- "$STATE_DIR/applied.part" "$STATE_DIR/applied"
}

tree__update()
{
	local file

	rm -f -- "$STATE_DIR/applied" "$STATE_DIR/built" "$PERF"
	[[ -d $TREE_DIR ]] || tree__create
	tree__take_scratch || tree__die_write
	PUT_COUNT=0
	while read -r file; do
		tree__put_file "$file" || tree__die_write
	done < "$STATE_DIR/touched"
	tree__put_quilt || tree__die_write
	tree__write_stamp || tree__die_write
	msg "tree: $PUT_COUNT files changed"
}
