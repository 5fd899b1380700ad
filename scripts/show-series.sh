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

Shows for each patch, part by part, what it is on each tag: the pinned tag's very file
(same), another file (adapted), a patch that the pinned tag has no use for (added), or
not needed (-); ? is a patch of which the series says nothing.
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
	series__compare "$PINNED" "$TAG" | awk -F '\t' '$3 != "same" { print $1; print "    " $3 }'
}

print_all()
{
	awk -F '\t' -v tags="${TAGS[*]}" '
		function add(text, cells) {
			row[++nr] = text; rest[nr] = cells
			if (cells && length(text) > width)
				width = length(text)
		}
		function print_count(name, state, i, cells) {
			for (i = 3; i <= nr_tags + 2; i++)
				cells = cells sprintf(" %-10s", count[state, i] + 0)
			add("= " name, cells)
		}
		BEGIN {
			nr_tags = split(tags, tag, " ")
			for (i = 1; i <= nr_tags; i++)
				head = head sprintf(" %-10s", tag[i])
			add("patch", head)
		}
		NR == FNR {
			if (sub(/^# part /, "")) { part = $0; sub(":.*", "", part); title[part] = $0 }
			next
		}
		{
			part = $1; sub("/.*", "", part)
			if (part != last) { add(""); add(part in title ? title[part] : part); last = part }
			cells = ""
			for (i = 3; i <= NF; i++) {
				state = $i; sub("not needed.*", "-", state); sub("missing", "?", state)
				cells = cells sprintf(" %-10s", state)
				count[state, i]++
			}
			name = $1; sub(".*/", "", name); sub(/\.patch$/, "", name)
			add("  " name, cells)
		}
		END {
			add("")
			print_count("same", "same"); print_count("adapted", "adapted")
			print_count("added", "added"); print_count("not needed", "-")
			for (i = 1; i <= nr; i++)
				printf "%-" (rest[i] ? width : 0) "s%s\n", row[i], rest[i]
		}' <(cat "$SERIES_DIR"/*/series) <(series__compare "$PINNED" "${TAGS[@]}") | sed 's/ *$//'
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
