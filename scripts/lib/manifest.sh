# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The manifest of an installation: its files with their checksums, and its directories.
#
# Usage (after lib/common.sh):
#	manifest__write DIR	write the manifest for DIR, right before its files are
#				installed below DESTDIR
#	manifest__files		print the files
#	manifest__has PATH	PATH is one of the files
#	manifest__changed	print the files that were changed since they were installed
#	manifest__remove [FILE...]	remove all files except FILE..., then empty
#				directories, and the manifest if no FILE is given
#
# Reads:
#	MANIFEST	its path
#	DESTDIR		the root of the installation; empty for /
#	HOME_DIR	the directory that only the installation uses, as it is called
#			in that root
#
# Paths of files and directories are relative to DESTDIR/.  A manifest has one line for
# each of them, and one for that root:
#
#	root DIR	DESTDIR, or /
#	dir PATH	that was not there before, or is HOME_DIR or in it
#	file SHA256 PATH

manifest__print_dirs()
{
	local stage=$1 dir

	while read -r dir; do
		[[ -d $DESTDIR/$dir && /$dir/ != "$HOME_DIR"/* ]] || printf 'dir %s\n' "$dir"
	done < <(find "$stage" -mindepth 1 -type d -printf '%P\n' | sort)
}

manifest__print_files()
{
	(cd "$1" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum --) | sed 's/^\([0-9a-f]*\) ./file \1 /'
}

manifest__print()
{
	echo "# What scripts/install.sh of perf-bpf-metadata has installed, for its --uninstall"
	printf 'root %s\n' "${DESTDIR:-/}"
	manifest__print_dirs "$1"
	manifest__print_files "$1"
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
	sed -n 's/^file [0-9a-f]* //p' "$MANIFEST"
}

manifest__is_of_this_root()
{
	grep -qxF -e "root ${DESTDIR:-/}" -- "$MANIFEST"
}

# Inner directories come first.  If the files were copied here from another root, then shared
# directories may have been here before, and stay.
manifest__dirs()
{
	local dir

	while read -r dir; do
		if [[ /$dir/ = "$HOME_DIR"/* ]] || manifest__is_of_this_root; then
			printf '%s\n' "$dir"
		fi
	done < <(sed -n 's/^dir //p' "$MANIFEST" | sort -r)
}

manifest__has()
{
	[[ -f $MANIFEST ]] && manifest__files | grep -xF -e "$1" >/dev/null
}

# A file that is missing was removed, not changed.
manifest__changed()
{
	[[ -f $MANIFEST ]] || return 0
	sed -n 's/^file \([0-9a-f]*\) /\1  /p' "$MANIFEST" |
		(cd "$DESTDIR/" && sha256sum --check --quiet --ignore-missing 2>/dev/null) |
		sed -n 's/: FAILED.*//p' || :
}

# Python writes bytecode beside modules that it reads.
manifest__remove_bytecode()
{
	find "$DESTDIR$HOME_DIR" -depth \( -path '*/__pycache__/*.pyc' -o -name __pycache__ -empty \) -delete
}

manifest__remove_files()
{
	local file

	while read -r file; do
		rm -f -- "$DESTDIR/$file" || return
	done < <(comm -23 <(manifest__files | sort) <(printf '%s\n' "$@" | sort))
}

manifest__remove_dirs()
{
	local dir

	for dir; do
		rmdir -- "$DESTDIR/$dir" 2>/dev/null || :
	done
}

manifest__remove()
{
	local dirs=()

	mapfile -t dirs < <(manifest__dirs)
	{ manifest__remove_files "$@" && manifest__remove_bytecode; } ||
		die "cannot remove what was installed in $DESTDIR$HOME_DIR" "see above; then run it again"
	(($#)) || rm -f -- "$MANIFEST"
	manifest__remove_dirs "${dirs[@]}"
}
