# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Make a package from staged files, for this release of Debian, with dpkg's own tools.
#
# Usage (after lib/common.sh, log_to; needs dpkg-dev):
#	deb__build STAGE OUT VERSION	make a package in OUT from the directory STAGE, which
#				contains usr/, and print the path of the package. Remove
#				older packages in OUT
#
# Reads:
#	TAG REPO_DIR HOME_DIR
#	DEBFULLNAME DEBEMAIL	the maintainer (default: the user that runs this)
#
# The revision in the version is the time of the checked-out commit, so that the package of a later
# commit has a higher version. Without git, the revision is the time of the build.

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
