# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The patch series of a tag: check it without a tree, and tell what it touches.
#
# Usage (after lib/common.sh, lib/pin.sh, pin__load; needs diffstat):
#	series__load DIR	read DIR/series; die if it or a patch is missing
#	series__load_empty	no patches at all (--no-patches)
#	series__check_changes	die if a patch holds no change (needs diffstat)
#	series__check_standin VERSION
#				die if a patch touches a file in which the stand-in
#				VERSION differs from the tag
#	series__touched		print the files that the series touches
#	series__print_reason LOG
#				why a patch does not apply, as patch --force or quilt
#				push says in LOG
#
# Sets:
#	SERIES_DIR	directory with the series, absolute; empty = no patches
#	SERIES_PATCHES	array of the patches, in order
#	SERIES_ID	hash of the series and of every patch

series__entries()
{
	sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e 's/^[[:space:]]*//' -e '/^$/d' "$1"
}

series__check_entry()
{
	local dir=$1 entry=$2

	[[ $entry != *[[:space:]]* ]] ||
		die "$dir/series: '$entry': options are not supported" "make it a -p1 patch: quilt refresh -p ab"
	[[ -f $dir/$entry ]] ||
		die "$dir/series names $entry, which is not there" "add the file, quilt refresh it, or remove the entry"
}

series__check_changes()
{
	local patch

	for patch in "${SERIES_PATCHES[@]}"; do
		[[ -n $(diffstat -p1 -l "$SERIES_DIR/$patch" 2>/dev/null) ]] ||
			die "$SERIES_DIR/$patch holds no change" "quilt refresh it, or remove it from the series"
	done
}

series__warn_unlisted()
{
	local dir=$1 file

	while read -r file; do
		warn "$dir/$file is not in the series and is not applied"
	done < <(comm -23 \
		<(find "$dir" -type f \( -name '*.patch' -o -name '*.diff' \) -printf '%P\n' | sort) \
		<(sed -e 's/^[#[:space:]]*//' "$dir/series" | awk 'NF { print $1 }' | sort -u))
}

series__check_twice()
{
	local twice

	twice=$(printf '%s\n' "${SERIES_PATCHES[@]}" | sort | uniq -d | head -n 1)
	[[ -z $twice ]] || die "$SERIES_DIR/series names $twice twice" "remove one of the entries"
}

series__load()
{
	local entry

	[[ -f $1/series ]] ||
		die "no series for $TAG: $1/series is not there" "scripts/apply-and-build.sh --no-patches $TAG builds the unpatched tag"
	SERIES_DIR=$(realpath -- "$1")
	mapfile -t SERIES_PATCHES < <(series__entries "$SERIES_DIR/series")
	((${#SERIES_PATCHES[@]})) ||
		die "$SERIES_DIR/series is empty" "scripts/apply-and-build.sh --no-patches $TAG builds the unpatched tag"
	for entry in "${SERIES_PATCHES[@]}"; do
		series__check_entry "$SERIES_DIR" "$entry"
	done
	series__check_twice
	series__warn_unlisted "$SERIES_DIR"
	SERIES_ID=$(cd "$SERIES_DIR" && sha256sum -- "${SERIES_PATCHES[@]}" | sha256sum)
	SERIES_ID=${SERIES_ID%% *}-${#SERIES_PATCHES[@]}
}

# shellcheck disable=SC2034 # read by lib/tree.sh
series__load_empty()
{
	SERIES_DIR='' SERIES_PATCHES=() SERIES_ID=none
}

# Each file is printed once, sorted.
series__touched()
{
	local patch

	for patch in "${SERIES_PATCHES[@]}"; do
		diffstat -p1 -l "$SERIES_DIR/$patch"
	done | sort -u
}

# The reason is the first message about the last patch that does not tell of success;
# before it come the patch, if quilt names it, and the file.
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
				die "$patch touches $file, in which the stand-in $version differs from $TAG" \
					"keep the series out of that file, or give the source of $TAG with --source or --git"
		done < <(diffstat -p1 -l "$SERIES_DIR/$patch")
	done
}
