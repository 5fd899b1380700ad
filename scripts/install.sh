#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Install the perf that scripts/apply-and-build.sh builds, with all its parts, and the programs of
# tools/. The script can also remove all this, or make a package of it. It does not change the perf
# of the distribution. Run it from anywhere: scripts/install.sh v6.16
#
# How it works. perf's own "make install" puts everything into one directory,
# PREFIX/lib/perf-bpf-metadata. This directory is the prefix that is compiled into perf, so perf
# finds its own files there. They do not hide the files of another perf, not even its man pages.
# Outside of this directory there are only PREFIX/bin/NAME, its shell completion, scripts that start
# the programs of tools/, and their man pages.
#
# PREFIX/bin/NAME is a script that starts perf by its full path. perf puts the directory of its
# argv[0] first in PATH, so its shell tests and scripts find this perf when they call "perf". If
# NAME were a link, they would find the distribution's perf. PREFIX/bin has such a script for each
# program of tools/, too. The programs find their modules beside themselves, and this perf in $PERF.
#
# NAME must not begin with "perf-", because every perf treats programs with such names as its own
# commands. perf v6.16 aborts at --help if such a program is in PATH and perf's own directory
# libexec/perf-core is empty.
#
# The files are first collected in OUT/install, so the manifest is complete before anything is
# written below PREFIX.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/packages.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/build.sh"

# The man pages of the programs in tools/
TOOL_PAGES=(bpf-compare.1 bpf-owners.8 bpf-pprof.1 bpf-stamp.8)
# perf's man pages are made with these packages.
MAN_PACKAGES=(asciidoc-base docbook-xml docbook-xsl libxml2-utils xmlto xsltproc)

print_usage()
{
	cat <<END
usage: scripts/install.sh [options] TAG
       scripts/install.sh --deb [options] TAG
       scripts/install.sh [--prefix DIR] [--destdir DIR] --uninstall

Installs perf of the kernel TAG with this repository's patches: perf, its
man pages, shell completion, scripts, tips and tests; and the programs of tools/:
$(printf "%s\n" "${TOOL_PAGES[@]%.*}" | paste -s -d " ").
Builds perf if it is not built. Replaces an earlier installation below the prefix.
TAG is one of: $(pin__list | paste -s -d ' ')

Where:
  --prefix DIR      directory for bin/NAME, lib/perf-bpf-metadata/, the completion in
                    share/, the programs of tools/ in bin/, and their man pages in
                    share/man/ (default: /usr/local)
  --name NAME       name of the command (default: perf_bpfmeta). The name 'perf' hides
                    the distribution's perf if DIR/bin comes first in PATH
  --destdir DIR     write everything below DIR, to pack it or to copy it to another
                    root. perf works only after its files were moved to the prefix itself
  --deb             instead, make a package for the Debian release of
                    this machine, with prefix /usr: OUT/perf-bpfmeta_VERSION_ARCH.deb.
                    "apt install PATH" installs it. Its maintainer is
                    \$DEBFULLNAME with \$DEBEMAIL

Removal:
  --uninstall       remove the installed files, and directories that become empty

Build:
  --out DIR         where perf is built (default: out/TAG)
  --mirror DIR      passed on to apply-and-build.sh
  --jobs N          parallel jobs (default: number of CPUs)
  --no-install      install no packages; if some are missing, print the apt line and end
  --quiet           print no progress
  -h, --help        this text

The last two lines of the output are the path of the command or of the package, and
the version of its perf.
Exit status: 0 done, 2 could not run.
END
}

parse_options()
{
	options__parse "$@" <<-'END'
		--prefix:	OPT_PREFIX
		--name:		OPT_NAME
		--destdir:	OPT_DESTDIR
		--deb		OPT_DEB		yes
		--uninstall	OPT_UNINSTALL	yes	instead
		--out:		OPT_OUT
		--mirror:	OPT_MIRROR
		--jobs:		JOBS
		--no-install	OPT_INSTALL	no
		--quiet		PBM_QUIET	1
	END
}

check_options()
{
	[[ -n $OPT_PREFIX ]] || die_usage "--prefix: no directory given"
	[[ $OPT_NAME =~ ^[A-Za-z0-9][A-Za-z0-9._+-]*$ ]] ||
		die_usage "--name $OPT_NAME: letters and digits, and after the first one also . _ + -"
	[[ $OPT_NAME != perf-* ]] ||
		die_usage "--name $OPT_NAME: every perf treats a program perf-* in PATH as its command"
	[[ " ${TOOL_PAGES[*]%.*} " != *" $OPT_NAME "* ]] || die_usage "--name $OPT_NAME: another program has this name"
	[[ $OPT_DEB = no || $OPT_PREFIX$OPT_DESTDIR$OPT_UNINSTALL = /usr/localno ]] ||
		die_usage "--deb excludes --prefix, --destdir and --uninstall"
	[[ -n $TAG ]] || return 0
	pin__check_tag "$TAG"
}

# The prefix is a path below DESTDIR, so do not follow symbolic links of this machine.
resolve_target()
{
	local page

	[[ $OPT_DEB = no ]] || OPT_PREFIX=/usr
	PREFIX=$(realpath -m -s -- "$OPT_PREFIX")
	[[ $PREFIX =~ ^[A-Za-z0-9/._+@=-]*$ ]] ||
		die "--prefix $PREFIX: make and shells change characters other than letters, digits and / . _ + @ = -" "use another --prefix"
	PREFIX=${PREFIX%/}
	DESTDIR=
	if [[ -n $OPT_DESTDIR ]]; then
		DESTDIR=$(realpath -m -- "$OPT_DESTDIR")
		DESTDIR=${DESTDIR%/}
	fi
	HOME_DIR=$PREFIX/lib/perf-bpf-metadata
	COMMAND=$PREFIX/bin/$OPT_NAME
	COMPLETION=$PREFIX/share/bash-completion/completions/$OPT_NAME
	MANIFEST=$DESTDIR$HOME_DIR/manifest
	OUTSIDE=("$COMMAND" "$COMPLETION")
	for page in "${TOOL_PAGES[@]}"; do
		OUTSIDE+=("$PREFIX/bin/${page%.*}" "$PREFIX/share/man/man${page##*.}/$page")
	done
}

# shellcheck disable=SC2034 # read by lib/build.sh
resolve_build()
{
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$REPO_DIR/out/$TAG}")
	TREE_DIR=$OUT_DIR/linux
	BUILD_DIR=$OUT_DIR/build
	STAGE_DIR=$OUT_DIR/install
}

# --- the manifest -------------------------------------------------------------

# The manifest lists the files of an installation and its directories. Paths are relative to
# DESTDIR/. A line is "file PATH", "dir PATH" for a directory that the installation has made, or
# "root DIR" for DESTDIR. In older manifests, a file has its sha256 before the path.

manifest__print()
{
	local dir

	printf '%s\n' "# scripts/install.sh --uninstall of perf-bpf-metadata removes this" "root ${DESTDIR:-/}"
	while read -r dir; do
		[[ -d $DESTDIR/$dir && /$dir/ != "$HOME_DIR"/* ]] || printf 'dir %s\n' "$dir"
	done < <(find "$1" -mindepth 1 -type d -printf '%P\n' | sort -r)
	find "$1" -type f -printf 'file %P\n' | sort
}

# manifest__write DIR: write the manifest for DIR, right before its files are installed
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
	[[ ! -f $MANIFEST ]] || sed -n -E 's/^file ([0-9a-f]{64} )?//p' "$MANIFEST"
}

# Remove all files, the bytecode that Python has written beside the modules, and directories that are
# empty. If the files were installed into another root, and then copied here, keep directories that
# other software may use.
manifest__remove()
{
	local path dirs only=''

	grep -q -x -F -e "root ${DESTDIR:-/}" -- "$MANIFEST" || only=${HOME_DIR#/}
	mapfile -t dirs < <(sed -n "s,^dir \\($only\\),\\1,p" "$MANIFEST")
	while read -r path; do
		rm -f -- "$DESTDIR/$path" || die "cannot remove $DESTDIR/$path" "see above; then run it again"
	done < <(manifest__files)
	find "$DESTDIR$HOME_DIR" -depth \( -path '*/__pycache__/*.pyc' -o -name __pycache__ -empty \) -delete
	rm -f -- "$MANIFEST"
	for path in "${dirs[@]}"; do
		rmdir -- "$DESTDIR/$path" 2>/dev/null || :
	done
}

# --- before anything is built -------------------------------------------------

check_strangers()
{
	local path

	for path in "${OUTSIDE[@]}"; do
		[[ -e $DESTDIR$path || -L $DESTDIR$path ]] || continue
		! manifest__files | grep -x -F -e "${path#/}" >/dev/null || continue
		die "$DESTDIR$path is there and not from this script" \
			"move it away, or use another --name or --prefix"
	done
}

# --- stage --------------------------------------------------------------------

apply_and_build()
{
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" --out "$OUT_DIR" "$TAG" ||
		die "there is no perf to install" "see above; then run this again"
}

# stage_command PATH TEXT LINE...: stage a shell script of these lines, with the comment TEXT
stage_command()
{
	printf '%s\n' '#!/bin/sh' "# $2" "${@:3}" | install -D -m 755 -- /dev/stdin "$STAGE_DIR$1"
}

# Stage perf's shell completion for the command's name, in the directory where bash-completion looks
# for it.
stage_completion()
{
	sed -e "s/^type perf /type $OPT_NAME /" -e "s/ _perf perf\>/ _perf $OPT_NAME/" \
		"$STAGE_DIR$HOME_DIR/etc/bash_completion.d/perf" |
		install -D -m 644 -- /dev/stdin "$STAGE_DIR$COMPLETION"
}

# bpf-stamp was built in OUT_DIR.
stage_tools()
{
	local page tool file to=$HOME_DIR/tools

	install -D -m 644 -t "$STAGE_DIR$to" -- "$REPO_DIR"/tools/*.py
	for page in "${TOOL_PAGES[@]}"; do
		tool=${page%.*}
		file=$REPO_DIR/tools/$tool
		[[ $tool != bpf-stamp ]] || file=$OUT_DIR/$tool
		install -D -m 755 -- "$file" "$STAGE_DIR$to/$tool"
		stage_command "$PREFIX/bin/$tool" "$tool with perf of $TAG" \
			"export PERF=\"\${PERF:-$HOME_DIR/bin/perf}\"" "exec $to/$tool \"\$@\""
		install -D -m 644 -- "$REPO_DIR/tools/man/$page" "$STAGE_DIR$PREFIX/share/man/man${page##*.}/$page"
	done
}

stage()
{
	umask 022
	rm -rf -- "$STAGE_DIR"
	on_exit rm -rf -- "$STAGE_DIR"
	build__install "$HOME_DIR" "$STAGE_DIR"
	stage_command "$COMMAND" "perf of $TAG with metadata of BPF programs" "exec $HOME_DIR/bin/perf \"\$@\""
	stage_completion
	stage_tools
}

# --- the package --------------------------------------------------------------

# dpkg-shlibdeps needs a file debian/control in the current directory.
deb__print_depends()
{
	local stage=$1 files=()

	mapfile -t files < <(find "$stage" -type f \( -perm /111 -o -name '*.so' \) -exec grep -l -a '^.ELF' {} +)
	(cd "$stage/DEBIAN" && mkdir debian && : >debian/control &&
		dpkg-shlibdeps -O "${files[@]}" && rm -r debian) | sed -n 's/^shlibs:Depends=//p'
}

deb__print_control()
{
	local stage=$1 version=$2 arch=$3 depends

	depends=$(deb__print_depends "$stage") && cat <<-END
		Package: perf-bpfmeta
		Version: $version
		Architecture: $arch
		Maintainer: ${DEBFULLNAME:-$(id -un)} <${DEBEMAIL:-$(id -un)@$(hostname)}>
		Installed-Size: $(du -s -k --apparent-size "$stage" | cut -f 1)
		Depends: $depends, python3
		Recommends: bpftool, man-db, python3-protobuf
		Section: utils
		Priority: optional
		Description: perf that records which build of each BPF program ran
		 perf of Linux $TAG with the patches of perf-bpf-metadata, as perf_bpfmeta, beside
		 the perf of the distribution; and bpf-compare, bpf-owners, bpf-pprof and bpf-stamp.
	END
}

# prerm removes the bytecode that Python has written beside the modules that it has read.
deb__fill()
{
	local stage=$1 file=$2 control=$1/DEBIAN

	install -D -m 644 -- "$REPO_DIR/COPYING" "$stage/usr/share/doc/perf-bpfmeta/copyright" &&
		find "$stage/usr/share/man" -type f -exec gzip -9 -n {} + &&
		mkdir -p -- "$control" &&
		deb__print_control "$stage" "$3" "$4" >"$control/control" &&
		printf '%s\n' '#!/bin/sh' "find $HOME_DIR -depth -name __pycache__ -exec rm -r {} +" >"$control/prerm" &&
		chmod 755 -- "$control/prerm" &&
		(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum -- >DEBIAN/md5sums) &&
		dpkg-deb --root-owner-group --build "$stage" "$file.part" &&
		rm -f -- "${file%/*}"/perf-bpfmeta_*.deb &&
		mv -- "$file.part" "$file"
}

# deb__build STAGE OUT VERSION: make a package in OUT from the directory STAGE. The revision is the time
# of the checked-out commit, so that the package of a later commit has a higher version. Without git,
# it is the time of the build.
deb__build()
{
	local -x SOURCE_DATE_EPOCH
	local version arch file

	SOURCE_DATE_EPOCH=$(git -C "$REPO_DIR" log -1 --format=%ct 2>/dev/null || date +%s)
	version=$3-$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S)~$(. /etc/os-release && echo "$ID${VERSION_ID:-}")
	arch=$(dpkg --print-architecture)
	file=$2/perf-bpfmeta_${version}_$arch.deb
	run_logged "make the package" deb__fill "$1" "$file" "$version" "$arch" ||
		die_logged "the package cannot be made" "correct what the log shows and run it again"
	printf '%s\n' "$file"
}

# --- install and remove -------------------------------------------------------

# The manifest comes first, so that an interrupted installation can be removed. Existing directories
# keep their modes, and symbolic links to directories are not replaced.
copy_stage()
{
	manifest__write "$STAGE_DIR" &&
		tar -C "$STAGE_DIR" -cf - . |
		tar -C "$DESTDIR/" -xf - --no-same-owner --no-overwrite-dir --keep-directory-symlink
}

install_stage()
{
	local target=''

	[[ $PREFIX = /usr/local ]] || target=" --prefix ${PREFIX:-/}"
	[[ -z $DESTDIR ]] || target+=" --destdir $DESTDIR"
	mkdir -p -- "$DESTDIR/"
	[[ ! -f $MANIFEST ]] || manifest__remove
	copy_stage || die "cannot write to $DESTDIR$PREFIX" \
		"run it as another user, or use another --prefix or --destdir; --uninstall removes what was copied"
	msg "installed: $(manifest__files | wc -l) files; scripts/install.sh$target --uninstall removes them"
}

print_result()
{
	printf '%s\n' "$DESTDIR$COMMAND"
	"$DESTDIR$HOME_DIR/bin/perf" version
}

uninstall()
{
	local left=()

	[[ -f $MANIFEST ]] ||
		die "nothing to remove: $MANIFEST is not there" "name the --prefix and the --destdir that it was installed with"
	manifest__remove
	[[ ! -d $DESTDIR$HOME_DIR ]] || mapfile -t left < <(find "$DESTDIR$HOME_DIR" -not -type d)
	((${#left[@]} == 0)) || warn "these files were not installed and are kept: ${left[*]}"
	msg "removed from $DESTDIR${PREFIX:-/}"
}

OPT_PREFIX=/usr/local OPT_NAME=perf_bpfmeta OPT_DESTDIR='' OPT_UNINSTALL=no OPT_DEB=no
OPT_OUT='' OPT_INSTALL=yes
JOBS=$(nproc)

parse_options "$@"
check_options
resolve_target
if [[ $OPT_UNINSTALL = yes ]]; then
	uninstall
	exit 0
fi
resolve_build
arch__load ''
if [[ $OPT_DEB = no ]]; then
	check_strangers
else
	MAN_PACKAGES+=(dpkg-dev)
fi
apply_and_build
log_to "$OUT_DIR/install.log"
packages__require "$OPT_INSTALL" "${MAN_PACKAGES[@]}"
stage
if [[ $OPT_DEB = yes ]]; then
	version=$("$STAGE_DIR$HOME_DIR/bin/perf" version)
	deb__build "$STAGE_DIR" "$OUT_DIR" "${version##* }"
	printf '%s\n' "$version"
else
	install_stage
	print_result
fi
