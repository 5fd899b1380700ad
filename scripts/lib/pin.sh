# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The pins: one file a tag in scripts/pins/ (format: the head of pins/v6.16).
#
# Usage (after lib/common.sh):
#	pin__list		print the known tags
#	pin__load TAG		read the pin, or die and list the known tags
#
# Reads:
#	PBM_PINS	directory with the pins (default scripts/pins)
# Sets:
#	PIN_FILE PIN_VERSION PIN_COMMIT
#	PIN_SOURCES	array of "ORIGIN FILE SHA256 VERSION"
#	PIN_DIFFERS	array of "VERSION PATH"

PINS_DIR=${PBM_PINS:-$REPO_DIR/scripts/pins}

pin__list()
{
	find "$PINS_DIR" -mindepth 1 -maxdepth 1 -type f -name 'v*' -printf '%f\n' | sort -V
}

pin__check_tag()
{
	local tag=$1 known

	[[ $tag =~ ^v[0-9A-Za-z.-]+$ && -f $PINS_DIR/$tag ]] && return
	known=$(pin__list | paste -s -d ' ')
	die "unknown tag '$tag'" "use one of: $known"
}

# shellcheck disable=SC2034 # the PIN_* are read by the other libraries
pin__load()
{
	local key a b c d

	pin__check_tag "$1"
	PIN_FILE=$PINS_DIR/$1
	PIN_VERSION='' PIN_COMMIT='' PIN_SOURCES=() PIN_DIFFERS=()
	while read -r key a b c d; do
		case $key in
		''|'#'*)	;;
		version)	PIN_VERSION=$a ;;
		commit)		PIN_COMMIT=$a ;;
		source)		PIN_SOURCES+=("$a $b $c $d") ;;
		differs)	PIN_DIFFERS+=("$a $b") ;;
		*)		die "$PIN_FILE: unknown field '$key'" "compare with the head of pins/v6.16" ;;
		esac
	done < "$PIN_FILE"
	[[ -n $PIN_VERSION && ${#PIN_SOURCES[@]} -gt 0 ]] ||
		die "$PIN_FILE: no version or no source" "compare with pins/v6.16"
}
