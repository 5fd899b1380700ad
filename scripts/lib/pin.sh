# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Read scripts/pins, the list of tags, whose head describes its format.
#
#	pin__list		print the known tags
#	pin__list_patched	print the tags that have patches
#	pin__of_state STATE	print the tags with this state, a regular expression
#	pin__check_tag TAG	die if the tag is unknown, and print the known tags
#	pin__load TAG		set PIN_* for the tag; die if the tag is unknown
#
# Reads:
#	PBM_PINS	the table (default: scripts/pins)
# Sets:
#	PINS_FILE
#	PIN_VERSION PIN_COMMIT
#	PIN_SOURCES	array of "ORIGIN FILE SHA256 VERSION"
#	PIN_DIFFERS	array of "VERSION PATH"

. "${BASH_SOURCE[0]%/*}/common.sh"

PINS_FILE=${PBM_PINS:-$REPO_DIR/scripts/pins}

pin__of_state()
{
	awk -v state="^($1)\$" '$1 == "tag" && $3 ~ state { print $2 }' "$PINS_FILE"
}

pin__list() { pin__of_state '.*'; }
pin__list_patched() { pin__of_state 'pinned|current|new'; }

pin__check_tag()
{
	local known

	known=$(pin__list | paste -s -d ' ')
	[[ $1 =~ ^v[0-9A-Za-z.-]+$ && " $known " = *" $1 "* ]] ||
		die "unknown tag '$1'" "use one of: $known"
}

# shellcheck disable=SC2034 # the PIN_* are read by the other libraries
pin__load()
{
	local key a b c d

	pin__check_tag "$1"
	PIN_VERSION='' PIN_COMMIT='' PIN_SOURCES=() PIN_DIFFERS=()
	while read -r key a b c d; do
		case $key in
		tag)		PIN_VERSION=$c ;;
		commit)		PIN_COMMIT=$a ;;
		source)		PIN_SOURCES+=("$a $b $c $d") ;;
		differs)	PIN_DIFFERS+=("$a $b") ;;
		*)		die "$PINS_FILE: unknown field '$key'" "see the comment at the head of this file" ;;
		esac
	done < <(awk -v tag="$1" '$1 == "tag" { mine = $2 == tag } mine && NF && $1 !~ /^#/' "$PINS_FILE")
}
