# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The manifest of an installation lists its files with their checksums, and its directories.
#
# Usage (after lib/common.sh):
#	manifest__write DIR	write the manifest for DIR, right before its files are
#				installed below DESTDIR
#	manifest__files		print the files
#	manifest__changed	print the files that were changed since they were installed
#	manifest__remove [FILE...]	remove all files except FILE..., then directories that
#				are empty, and the manifest if no FILE is given
#
# Reads:
#	MANIFEST	its path
#	DESTDIR		the root of the installation; empty for /
#	HOME_DIR	the directory that only the installation uses, as a path in
#			that root
#
# Paths of files and directories are relative to DESTDIR/. A line is "file SHA256 PATH", "dir
# PATH" for a directory that the installation has made, or "root DIR" for DESTDIR.

manifest__print()
{
	local dir

	printf '%s\n' "# scripts/install.sh --uninstall of perf-bpf-metadata removes this" "root ${DESTDIR:-/}"
	while read -r dir; do
		[[ -d $DESTDIR/$dir && /$dir/ != "$HOME_DIR"/* ]] || printf 'dir %s\n' "$dir"
	done < <(find "$1" -mindepth 1 -type d -printf '%P\n' | sort -r)
	(cd "$1" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum --) | sed 's/^\([0-9a-f]*\) ./file \1 /'
}

manifest__write()
{
	local text

	text=$(manifest__print "$1") &&
		mkdir -p -- "${MANIFEST%/*}" &&
		printf '%s\n' "$text" >"$MANIFEST.part" &&
		mv -f -- "$MANIFEST.part" "$MANIFEST"
}

manifest__files()
{
	[[ ! -f $MANIFEST ]] || sed -n 's/^file [0-9a-f]* //p' "$MANIFEST"
}

# A missing file does not count as changed.
manifest__changed()
{
	[[ -f $MANIFEST ]] || return 0
	sed -n 's/^file \([0-9a-f]*\) /\1  /p' "$MANIFEST" |
		(cd "$DESTDIR/" && sha256sum --check --quiet --ignore-missing 2>/dev/null) |
		sed -n 's/: FAILED.*//p' || :
}

# If the files were installed into another root, and then copied here, keep directories that other
# software may use. Also remove the bytecode that Python has written beside the modules.
manifest__remove()
{
	local path dirs only=''

	grep -q -x -F -e "root ${DESTDIR:-/}" -- "$MANIFEST" || only=${HOME_DIR#/}
	mapfile -t dirs < <(sed -n "s,^dir \\($only\\),\\1,p" "$MANIFEST")
	while read -r path; do
		rm -f -- "$DESTDIR/$path" || die "cannot remove $DESTDIR/$path" "see above; then run it again"
	done < <(comm -23 <(manifest__files | sort) <(printf '%s\n' "$@" | sort))
	find "$DESTDIR$HOME_DIR" -depth \( -path '*/__pycache__/*.pyc' -o -name __pycache__ -empty \) -delete
	(($#)) || rm -f -- "$MANIFEST"
	for path in "${dirs[@]}"; do
		rmdir -- "$DESTDIR/$path" 2>/dev/null || :
	done
}
