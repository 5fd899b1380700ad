# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# From this Debian release's backports, unpack newer packages below the cache, without
# installing them.
#
# Usage (after lib/common.sh, lib/debian.sh, log_to):
#	backports__unpack PACKAGE...	unpack these packages once, and set BACKPORTS_DIR. If there
#					are no backports, warn and set it to "". To get newer
#					packages, remove the directory
#
# Reads:
#	CACHE_DIR
# Sets:
#	BACKPORTS_DIR

backports__apt()
{
	apt-get -q -y -o Dir::Etc::SourceList="$BACKPORTS_DIR.part/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$BACKPORTS_DIR.part/lists" -o APT::Sandbox::User=root "$@"
}

backports__fill()
{
	local release=$1 part=$BACKPORTS_DIR.part deb

	shift
	rm -rf -- "$part"
	mkdir -p -- "$part/lists/partial" "$part/root" || return
	debian__sources | sed -n "s/ ${release%-backports} main\$/ $release main/p" >"$part/sources.list" &&
		test -s "$part/sources.list" &&
		backports__apt update &&
		(cd -- "$part" && backports__apt download "${@/%//$release}") || return
	for deb in "$part"/*.deb; do
		dpkg -x "$deb" "$part/root" || return
	done
	mv -- "$part/root" "$BACKPORTS_DIR" && rm -rf -- "$part"
}

backports__unpack()
{
	local release

	release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)-backports
	BACKPORTS_DIR=$CACHE_DIR/debian/$release
	[[ ! -d $BACKPORTS_DIR ]] || return 0
	mkdir -p -- "$CACHE_DIR/debian"
	take_lock "$BACKPORTS_DIR.lock" "$BACKPORTS_DIR"
	if [[ ! -d $BACKPORTS_DIR ]] &&
		! run_logged "unpack packages of $release" backports__fill "$release" "$@"; then
		warn "no packages of $release, see $LOG_FILE; their tests are skipped"
		BACKPORTS_DIR=
	fi
	release_lock
}
