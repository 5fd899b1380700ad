# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Read the patch series of a tag, without a tree.
#
# patches/TAG/series names patches as PART/NAME.patch below patches/TAG, part by part; see
# Documentation/maintaining.rst. A patch that does the same on both tags has the same name.
#
# Reads:
#	PBM_PATCHES	directory with the directories of all tags (default: patches)
# Sets:
#	SERIES_DIR	absolute path of the directory of the tag's series and patches
#	SERIES_FILE	the tag's series; empty = no patches
#	SERIES_PATCHES	array of the patches, in order
#	SERIES_ID	hash of the series and of every patch

. "${BASH_SOURCE[0]%/*}/common.sh"

SERIES_TOP=$(realpath -m -- "${PBM_PATCHES:-$REPO_DIR/patches}")

# series__entries FILE: print the patches that a series names
series__entries()
{
	sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e 's/^[[:space:]]*//' -e '/^$/d' "$1"
}

# Print the parts of the series.
series__parts()
{
	printf '%s\n' "${SERIES_PATCHES[@]%%/*}" | uniq
}

# series__entries_of PART...: print only the patches of these parts
series__entries_of()
{
	printf '%s\n' "${SERIES_PATCHES[@]}" | awk -F / -v parts=" $* " 'index(parts, " " $1 " ")'
}

# series__on_top_of LETTER: print the parts on which the part of a cover letter is based
series__on_top_of()
{
	sed -n '/^Applies on top of:/,/^$/ { s/^Applies on top of://; s/[, ]\+/\n/g; p }' "$1" | sed '/^$/d'
}

# series__load [TAG]: read the series; die if it or one of its patches is missing. Without TAG, use no patches.
# shellcheck disable=SC2034 # others read SERIES_ID
series__load()
{
	local entry

	SERIES_DIR='' SERIES_FILE='' SERIES_PATCHES=() SERIES_ID='no patches'
	[[ -n ${1:-} ]] || return 0
	SERIES_DIR=$SERIES_TOP/$1
	SERIES_FILE=$SERIES_DIR/series
	[[ ! -f $SERIES_FILE ]] || mapfile -t SERIES_PATCHES < <(series__entries "$SERIES_FILE")
	((${#SERIES_PATCHES[@]})) ||
		die "$SERIES_FILE is not there, or empty" "scripts/apply-and-build.sh --no-patches $1 builds the unpatched tag"
	for entry in "${SERIES_PATCHES[@]}"; do
		[[ -f $SERIES_DIR/$entry ]] ||
			die "$SERIES_FILE names $entry, which is not there" "add the file, or remove the entry"
	done
	SERIES_ID=$(cd "$SERIES_DIR" && sha256sum -- "${SERIES_PATCHES[@]}" | sha256sum)
	SERIES_ID="series ${SERIES_ID%% *}"
}
