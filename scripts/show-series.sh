#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Show the series at a glance, patch by base:
#
#	scripts/show-series.sh			a table of all tags that have a series
#	scripts/show-series.sh v6.18.15		what is not the same there, and why

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/series.sh"

print_usage()
{
	cat <<END
usage: scripts/show-series.sh [--all | TAG]

Shows for each patch what it is on each tag: the pinned tag's very file (same),
another file (adapted), a patch that only some tags need (added), one that is mailed
and not applied (mailed only), or not needed (-); ? is a patch of which the series
says nothing.
With a TAG, prints the patches that are not the same there, and since which version
and why one is not needed.
TAG is one of: $(pin__list | paste -s -d ' ')

  --all             the table of all tags (default)
  -h, --help        this text

Environment: PBM_PATCHES and PBM_PINS as for apply-and-build.sh
Exit status: 0 done, 2 could not run.
END
}

print_tag()
{
	pin__check_tag "$TAG"
	[[ -f $SERIES_DIR/$TAG/series ]] || die "$TAG has no series" "scripts/show-series.sh shows those that have one"
	series__compare "$PINNED" "$TAG" | awk -F '\t' '$2 != "same" { print $1; print "    " $2 }'
}

# A row is a number, or a number with a letter for an added patch.
print_all()
{
	local tag

	for tag in "${TAGS[@]}"; do
		series__compare "$PINNED" "$tag" | sed "s/^/$tag\t/"
	done | awk -F '\t' -v tags="${TAGS[*]}" '
		BEGIN { nr = split(tags, tag, " ") }
		{
			name = $2; sub(".*/", "", name); sub(/\.patch$/, "", name)
			number = name; sub("-.*", "", number)
			state = $3; sub("not needed.*", "-", state); sub("missing", "?", state)
			if (state == "added") number = name
			if (!(number in title) || state == "same") title[number] = name
			cell[number, $1] = state
			count[$1, state]++
		}
		function cells(text, i, row) {
			row = text
			for (i = 1; i <= nr; i++)
				row = row "\t" ((text_number, tag[i]) in cell ? cell[text_number, tag[i]] : ".")
			return row
		}
		function print_count(state, i, row) {
			row = "~" state
			for (i = 1; i <= nr; i++)
				row = row "\t" count[tag[i], state] + 0
			print row
		}
		END {
			for (text_number in title)
				print cells(title[text_number])
			print_count("same"); print_count("adapted"); print_count("added"); print_count("-")
		}' | sort | sed 's/^~/= /' | { printf 'patch'; printf '\t%s' "${TAGS[@]}"; echo; cat; } | column -t -s $'\t'
}

OPT_ALL=no
(($#)) || set -- --all
options__parse "$@" <<-'END'
	--all	OPT_ALL	yes	instead
END
PINNED=$(pin__of_state pinned)
mapfile -t TAGS < <(pin__list | while read -r tag; do [[ ! -f $SERIES_DIR/$tag/series ]] || echo "$tag"; done)
if [[ $OPT_ALL = yes ]]; then
	print_all
else
	print_tag
fi
