# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The patch series of a tag: check it without a tree, and tell what it touches.
#
# patches/TAG/series names patches as paths below patches/: a patch that several tags
# need exists once, in the directory of the pinned tag or of the first that has it. A
# line "# not needed: PATCH: since WHEN: WHY" says why a tag does without one. Lines "# mailed
# only: PATCH" at the end name patches that are mailed with the others, and not applied.
#
# Usage (after lib/common.sh, lib/pin.sh, pin__load; needs diffstat):
#	series__load TAG	read its series; die if that or a patch is missing
#	series__load_empty	no patches at all (--no-patches)
#	series__entries FILE	print the patches that a series names
#	series__mailed_only FILE	and those that are not applied
#	series__compare PINNED TAG	for each patch of either series, in order: its
#				path, "same", "adapted", "added", "mailed only", "not
#				needed: since WHEN: WHY" or "missing", with a tab
#				between; two patches with the same number are one
#	series__print_unlisted TAG	the patches below its directory that no series names
#	series__quilt COMMAND...	quilt, with the series and its patches
#	series__check_changes	die if a patch holds no change (needs diffstat)
#	series__check_standin VERSION
#				die if a patch touches a file in which the stand-in
#				VERSION differs from the tag
#	series__touched		print the files that the series touches
#	series__print_reason LOG
#				why a patch does not apply, as patch --force or quilt
#				push says in LOG
#
# Reads:
#	PBM_PATCHES	directory with the series and patches (default: patches)
# Sets:
#	SERIES_DIR	directory with all series and patches, absolute
#	SERIES_FILE	the tag's series; empty = no patches
#	SERIES_PATCHES	array of the patches, in order
#	SERIES_ID	hash of the series and of every patch

SERIES_DIR=$(realpath -m -- "${PBM_PATCHES:-$REPO_DIR/patches}")

series__entries()
{
	sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e 's/^[[:space:]]*//' -e '/^$/d' "$1"
}

series__mailed_only()
{
	sed -n 's/^# mailed only: //p' "$1"
}

series__check_entry()
{
	[[ $1 != *[[:space:]]* ]] ||
		die "$SERIES_FILE: '$1': options are not supported" "make it a -p1 patch: quilt refresh -p ab"
	[[ -f $SERIES_DIR/$1 ]] ||
		die "$SERIES_FILE names $1, which is not there" "add the file, quilt refresh it, or remove the entry"
}

series__check_changes()
{
	local patch

	for patch in "${SERIES_PATCHES[@]}"; do
		[[ -n $(diffstat -p1 -l "$SERIES_DIR/$patch" 2>/dev/null) ]] ||
			die "$SERIES_DIR/$patch holds no change" "quilt refresh it, or remove it from the series"
	done
}

# A patch that any tag uses is of use; one that is commented out was left out on purpose.
series__print_unlisted()
{
	comm -23 \
		<(cd -- "$SERIES_DIR" && find "$1" -type f \( -name '*.patch' -o -name '*.diff' \) | sort) \
		<(sed -e 's/^# mailed only: //' -e 's/^#*[[:space:]]*//' "$SERIES_DIR"/*/series | awk 'NF { print $1 }' | sort -u)
}

series__check_twice()
{
	local twice

	twice=$(printf '%s\n' "${SERIES_PATCHES[@]}" | sort | uniq -d | head -n 1)
	[[ -z $twice ]] || die "$SERIES_FILE names $twice twice" "remove one of the entries"
}

series__load()
{
	local entry

	SERIES_FILE=$SERIES_DIR/$1/series
	[[ -f $SERIES_FILE ]] ||
		die "no series for $1: $SERIES_FILE is not there" "scripts/apply-and-build.sh --no-patches $1 builds the unpatched tag"
	mapfile -t SERIES_PATCHES < <(series__entries "$SERIES_FILE")
	((${#SERIES_PATCHES[@]})) ||
		die "$SERIES_FILE is empty" "scripts/apply-and-build.sh --no-patches $1 builds the unpatched tag"
	for entry in "${SERIES_PATCHES[@]}"; do
		series__check_entry "$entry"
	done
	series__check_twice
	while read -r entry; do
		warn "$SERIES_DIR/$entry is not in the series and is not applied"
	done < <(series__print_unlisted "$1")
	SERIES_ID=$(cd "$SERIES_DIR" && sha256sum -- "${SERIES_PATCHES[@]}" | sha256sum)
	SERIES_ID=${SERIES_ID%% *}-${#SERIES_PATCHES[@]}
}

series__compare()
{
	[[ -f $SERIES_DIR/$1/series ]] || return 0
	awk '
		function number(patch) { sub(".*/", "", patch); sub("[-:].*", "", patch); return patch }
		/^# not needed: / { why[number($4)] = substr($0, index($0, $5)); next }
		/^# mailed only: / { mailed[number($4)] = $4 }
		/^#/ || !NF { next }
		NR == FNR { pinned[number($1)] = $1 }
		NR != FNR { mine[number($1)] = $1 }
		function state(n)
		{
			if (n in mine)
				return mine[n] == pinned[n] ? "same" : "adapted"
			if (n in mailed)
				return "mailed only"
			return (n in why) ? "not needed: " why[n] : "missing"
		}
		END {
			for (n in pinned)
				print n "\t" ((n in mine) ? mine[n] : pinned[n]) "\t" state(n)
			for (n in mine)
				if (!(n in pinned))
					print n "\t" mine[n] "\tadded"
			for (n in mailed)
				if (!(n in pinned))
					print n "\t" mailed[n] "\tmailed only"
		}' "$SERIES_DIR/$1/series" "$SERIES_DIR/$2/series" | sort | cut -f 2-
}

series__quilt()
{
	QUILT_PATCHES=$SERIES_DIR QUILT_SERIES=$SERIES_FILE quilt --quiltrc - "$@"
}

# shellcheck disable=SC2034 # read by lib/tree.sh
series__load_empty()
{
	SERIES_FILE='' SERIES_PATCHES=() SERIES_ID=none
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
