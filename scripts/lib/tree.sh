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
#	tree__patch		apply the series to a copy of the source; die if it does not apply
#	tree__update		bring the tree to the state that tree__patch has made
#	tree__reset		remove tree and objects, because the source has changed
#
# Reads:
#	TREE_DIR BASE_DIR STATE_DIR BUILD_DIR SCRATCH_DIR	the output directory and its parts
#	SERIES_* SOURCE_ID TAG
#
# How it works. BASE_DIR/tree is the unpacked source and never changes. quilt applies the series to
# a copy of it, SCRATCH_DIR. So a patch that fails does not change the tree. When all patches have
# applied, each file whose content differs is copied to the tree. All other files keep their mtime,
# so make rebuilds only objects of changed files. After an interruption, the next run copies the
# files that are missing. In STATE_DIR:
#
#	manifest	path, size and mtime of all files of the tree after the last complete run
#	applied		source and series of the last complete run; written last

tree__stamp()
{
	printf '%s\n' "source $SOURCE_ID" "series $SERIES_ID"
}

tree__manifest()
{
	(cd "$1" && find . -path ./.pc -prune -o \( -type f -o -type l \) -printf '%P\t%s\t%T@\n' | sort)
}

# tree__changed_files MANIFEST: print the files of the tree that differ from a manifest. Leave out
# backups and other files that quilt, patch and editors make.
tree__changed_files()
{
	comm -3 "$1" <(tree__manifest "$TREE_DIR") | sed 's/^\t//' | cut -f 1 | sort -u |
		grep -v -E '(\.orig|\.rej|\.swp|\.part|~)$' || :
}

tree__is_current()
{
	[[ -d $TREE_DIR && -f $STATE_DIR/applied ]] || return 1
	[[ $(tree__stamp) = "$(< "$STATE_DIR/applied")" ]] || return 1
	cmp -s "$STATE_DIR/manifest" <(tree__manifest "$TREE_DIR")
}

# A file is the same if its content is the same, or if it is missing in both trees.
tree__is_same()
{
	local new=$SCRATCH_DIR/$1 old=$TREE_DIR/$1

	if [[ -e $old || -L $old ]]; then
		cmp -s -- "$old" "$new"
	else
		[[ ! -e $new ]]
	fi
}

# A file does not count as edited if the series makes the same content now (after quilt refresh).
tree__check_edits()
{
	local file edited=()

	[[ -d $TREE_DIR ]] || return 0
	[[ -f $STATE_DIR/manifest ]] || die "$TREE_DIR was not made by this script" "move it away or use another --out"
	while read -r file; do
		tree__is_same "$file" || edited+=("$file")
	done < <(tree__changed_files "$STATE_DIR/manifest")
	((${#edited[@]})) || return 0
	[[ -f $STATE_DIR/applied ]] ||
		die "$TREE_DIR: the last update was not finished, and then the series or ${#edited[@]} files changed: ${edited[*]:0:10}" \
			"copy your edits, if there are any, to another place, and run again with --clean"
	printf '  edited: %s\n' "${edited[@]:0:10}" >&2
	die "$TREE_DIR has ${#edited[@]} files that are not as the series makes them" \
		"keep the edits: export QUILTRC=$SCRIPTS_DIR/quiltrc; cd $TREE_DIR && quilt push -a; quilt refresh" \
		"or throw them away: run again with --clean"
}

# With the files in .pc, quilt push, pop and refresh work in the tree. .pc has a relative path to
# the patches, so a copy of the checkout uses its own patches.
tree__push()
{
	cd "$SCRATCH_DIR" &&
		series__quilt init &&
		series__quilt push -a --fuzz=0 &&
		realpath --relative-to="$TREE_DIR" -- "$SERIES_DIR" > .pc/.quilt_patches &&
		echo series > .pc/.quilt_series
}

tree__patch()
{
	rm -rf -- "$SCRATCH_DIR"
	on_exit rm -rf -- "$SCRATCH_DIR"
	cp -a --reflink=auto -- "$BASE_DIR/tree" "$SCRATCH_DIR"
	((${#SERIES_PATCHES[@]})) || return 0
	run_logged "apply ${#SERIES_PATCHES[@]} patches" tree__push ||
		die_logged "the series does not apply: $(series__print_reason "$LOG_FILE")" \
			"correct the patch in $SERIES_DIR; to make a tree in which you can do that:" \
			"scripts/apply-and-build.sh --no-patches --stop-after apply --out DIR $TAG, then in DIR/linux: QUILTRC=$SCRIPTS_DIR/quiltrc QUILT_PATCHES=$SERIES_DIR quilt push -a -f"
}

# Rename the tree before it is removed, so that a tree that is half removed never looks complete.
tree__reset()
{
	rm -f -- "$STATE_DIR/applied" "$STATE_DIR/built" "$PERF"
	rm -rf -- "$SCRATCH_DIR"
	[[ ! -d $TREE_DIR ]] || mv -- "$TREE_DIR" "$SCRATCH_DIR"
	rm -rf -- "$SCRATCH_DIR" "$BUILD_DIR"
}

# New content gets a new mtime, even if the file had this content before, because make may have
# built objects from other content since then.
tree__put_file()
{
	local new=$SCRATCH_DIR/$1 old=$TREE_DIR/$1

	if tree__is_same "$1"; then
		[[ ! -e $new ]] || chmod --reference="$new" -- "$old"
	elif [[ -e $new ]]; then
		mkdir -p -- "${old%/*}"
		cp -- "$new" "$old.part"
		chmod --reference="$new" -- "$old.part"
		mv -f -- "$old.part" "$old"
	else
		rm -f -- "$old"
	fi
}

tree__write_manifest()
{
	tree__manifest "$1" > "$STATE_DIR/manifest.part"
	mv -f -- "$STATE_DIR/manifest.part" "$STATE_DIR/manifest"
}

# A new tree gets its manifest before it gets its name.
tree__update()
{
	local file

	rm -f -- "$STATE_DIR/applied" "$STATE_DIR/built" "$PERF"
	if [[ ! -d $TREE_DIR ]]; then
		tree__write_manifest "$SCRATCH_DIR"
		mv -- "$SCRATCH_DIR" "$TREE_DIR"
	else
		while read -r file; do
			tree__put_file "$file"
		done < <(tree__changed_files <(tree__manifest "$SCRATCH_DIR"))
		rm -rf -- "$TREE_DIR/.pc"
		[[ ! -d $SCRATCH_DIR/.pc ]] || mv -- "$SCRATCH_DIR/.pc" "$TREE_DIR/.pc"
		tree__write_manifest "$TREE_DIR"
	fi
	tree__stamp > "$STATE_DIR/applied.part"
	mv -f -- "$STATE_DIR/applied.part" "$STATE_DIR/applied"
}
