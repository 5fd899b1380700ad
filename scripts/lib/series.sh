# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Read and check the patch series of a tag, without a tree.
#
# patches/TAG/series names patches as PART/NAME.patch below patches/TAG, part by part; see
# Documentation/maintaining.rst. A patch that does the same on both tags has the same name.
#
# Usage (after lib/common.sh, lib/pin.sh, pin__load; needs diffstat):
#	series__load TAG	read the series; die if it or one of its patches is missing
#	series__load_empty	use no patches (--no-patches)
#	series__entries FILE	print the patches that a series names
#	series__parts		print the parts of the series
#	series__entries_of PART...	print only the patches of these parts
#	series__on_top_of LETTER	print the parts on which the part of a cover letter is based
#	series__print_unlisted	the patches in SERIES_DIR that the series does not name
#	series__quilt COMMAND...	run quilt with the series and its patches
#	series__check_standin VERSION
#				die if a patch touches a file in which the substitute
#				VERSION differs from the tag
#	series__touched		print the files that the series touches
#	series__print_reason LOG
#				print why a patch does not apply, from the output of
#				patch --force or quilt push in LOG
#
# Reads:
#	PBM_PATCHES	directory with the directories of all tags (default: patches)
# Sets:
#	SERIES_DIR	absolute path of the directory of the tag's series and patches
#	SERIES_FILE	the tag's series; empty = no patches
#	SERIES_PATCHES	array of the patches, in order
#	SERIES_ID	hash of the series and of every patch

SERIES_TOP=$(realpath -m -- "${PBM_PATCHES:-$REPO_DIR/patches}")

series__entries()
{
	sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e 's/^[[:space:]]*//' -e '/^$/d' "$1"
}

series__parts()
{
	printf '%s\n' "${SERIES_PATCHES[@]%%/*}" | uniq
}

series__entries_of()
{
	printf '%s\n' "${SERIES_PATCHES[@]}" | awk -F / -v parts=" $* " 'index(parts, " " $1 " ")'
}

series__on_top_of()
{
	sed -n '/^Applies on top of:/,/^$/ { s/^Applies on top of://; s/[, ]\+/\n/g; p }' "$1" | sed '/^$/d'
}

series__print_unlisted()
{
	comm -23 <(cd -- "$SERIES_DIR" && find . -name '*.patch' -printf '%P\n' | sort) <(series__entries "$SERIES_FILE" | sort)
}

# shellcheck disable=SC2034 # check-series.sh reads SERIES_FILE
series__set_paths()
{
	SERIES_DIR=$SERIES_TOP/$1
	SERIES_FILE=$SERIES_DIR/series
}

series__load()
{
	local entry

	series__load_empty
	series__set_paths "$1"
	[[ ! -f $SERIES_FILE ]] || mapfile -t SERIES_PATCHES < <(series__entries "$SERIES_FILE")
	((${#SERIES_PATCHES[@]})) ||
		die "$SERIES_FILE is not there, or empty" "scripts/apply-and-build.sh --no-patches $1 builds the unpatched tag"
	for entry in "${SERIES_PATCHES[@]}"; do
		[[ -f $SERIES_DIR/$entry ]] ||
			die "$SERIES_FILE names $entry, which is not there" "add the file, quilt refresh it, or remove the entry"
	done
	while read -r entry; do
		warn "$SERIES_DIR/$entry is not in the series and is not applied"
	done < <(series__print_unlisted)
	SERIES_ID=$(cd "$SERIES_DIR" && sha256sum -- "${SERIES_PATCHES[@]}" | sha256sum)
	SERIES_ID=${SERIES_ID%% *}-${#SERIES_PATCHES[@]}
}

series__quilt()
{
	QUILT_PATCHES=$SERIES_DIR QUILT_SERIES=series quilt --quiltrc - "$@"
}

# shellcheck disable=SC2034 # read by lib/tree.sh
series__load_empty()
{
	SERIES_DIR='' SERIES_FILE='' SERIES_PATCHES=() SERIES_ID=none
}

# Print each file once, sorted by path.
series__touched()
{
	local patch

	for patch in "${SERIES_PATCHES[@]}"; do
		diffstat -p1 -l "$SERIES_DIR/$patch"
	done | sort -u
}

# The reason is the first message about the last patch, except reports of success. Before it, print
# the name of the patch, if quilt prints it, and the name of the file.
series__print_reason()
{
	awk '/^Applying patch / { sub(".*/", "", $3); patch = $3 ": "; file = reason = ""; next }
		/^patching file / { file = $3 ": "; next }
		/^$|^Hunk .* succeeded / { next }
		reason == "" { reason = patch file $0; next }
		reason ~ /,$/ { reason = reason " " $0 }
		END { print reason }' "$1"
}

series__check_standin()
{
	local version=$1 patch file

	[[ $version != "$PIN_VERSION" ]] || return 0
	for patch in "${SERIES_PATCHES[@]}"; do
		while read -r file; do
			[[ " ${PIN_DIFFERS[*]} " != *" $version $file "* ]] ||
				die "$patch touches $file, in which the substitute $version differs from $TAG" \
					"keep the series out of that file, or give the source of $TAG with --source or --git"
		done < <(diffstat -p1 -l "$SERIES_DIR/$patch")
	done
}
