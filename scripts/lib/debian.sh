# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Unpack packages of any architecture in the cache, for guests and cross builds, and newer packages
# from this release's backports, for tests. Also make clean Debian systems, in which CI and the tests
# of the package run commands.
#
# For packages, read lib/{common,arch}.sh first, and call arch__load and log_to. debian__make_root and
# debian__run need root, and no other library.
#
# Reads:
#	CACHE_DIR ARCH_DEBIAN
# Sets:
#	DEBIAN_DIR BACKPORTS_DIR
#
# Packages come from the archive that apt uses on this machine, with its signatures.

# The programs that selftests/ calls, and the libraries with which perf and the tests are linked
USERLAND_PACKAGES=(
	base-files base-passwd bash bpftool coreutils dash diffutils
	findutils grep gzip iproute2 libc-bin mawk mount perl-base procps python3 sed strace util-linux
	libc6-dev linux-libc-dev libcap-dev libdw-dev libelf-dev libtraceevent-dev libzstd-dev zlib1g-dev
)

# debian__sources [RELEASE]: print the lines of sources.list for RELEASE, or for this system
# shellcheck disable=SC2016 # apt expands the $(...).
debian__sources()
{
	local own

	own=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Identifier: Packages' 'Origin: Debian' |
		sed -E "s/ $own(-[a-z]+)? / ${1:-$own}\1 /" | sort -u
}

# Make absolute links relative, because they would lead out of the directory.
debian__relative_links()
{
	local dir=$1 link

	find "$dir" -path "$dir/dev" -prune -o -type l -lname '/*' -print |
		while read -r link; do
			ln -srfT -- "$dir$(readlink -- "$link")" "$link" || return
		done
}

# The scripts of base-passwd and mawk do not run here. Make the files that they would make.
debian__configure()
{
	local dir=$1 file

	[[ ! -d $dir/usr/share/base-passwd ]] || for file in passwd group; do
		cp -- "$dir/usr/share/base-passwd/$file.master" "$dir/etc/$file" || return
	done
	[[ ! -f $dir/usr/bin/mawk ]] || ln -sf mawk "$dir/usr/bin/awk"
}

# debian__fill DIR NAME PACKAGES
debian__fill()
{
	{
		debian__sources
		[[ $2 != *-backports ]] || debian__sources "$2" | grep " $2 main\$"
	} | mmdebstrap --variant=extract --architectures="$ARCH_DEBIAN" \
		--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="$3" '' "$1" - &&
		debian__relative_links "$1" &&
		debian__configure "$1"
}

# debian__try_unpack NAME PACKAGE...: unpack these packages for ARCH with their dependencies, and set
# DEBIAN_DIR. This is done only once: to get newer packages, remove the directory.
debian__try_unpack()
{
	local name=$1 packages key part

	packages=$(printf '%s\n' "${@:2}" | sort -u | paste -s -d ,)
	key=$(sha256sum <<<"$packages" | cut -c 1-12)
	DEBIAN_DIR=$CACHE_DIR/debian/$name-$ARCH_DEBIAN-$key
	part=$DEBIAN_DIR.$$.part
	mkdir -p -- "$CACHE_DIR/debian"
	take_lock "$DEBIAN_DIR.lock" "$DEBIAN_DIR"
	if [[ ! -d $DEBIAN_DIR ]]; then
		rm -rf -- "$DEBIAN_DIR".*.part
		on_exit rm -rf -- "$part"
		! run_logged "unpack Debian packages: $name for $ARCH_DEBIAN" debian__fill "$part" "$name" "$packages" ||
			mv -- "$part" "$DEBIAN_DIR"
	fi
	release_lock
	[[ -d $DEBIAN_DIR ]]
}

debian__unpack()
{
	debian__try_unpack "$@" || die_logged "cannot unpack Debian's packages for $ARCH_DEBIAN" \
		"check the network and apt's sources (on Debian, as root: apt-get update), then run it again"
}

# Unpack the programs of a guest of ARCH, and the libraries for cross builds, as one consistent set.
debian__unpack_userland()
{
	debian__unpack userland "${USERLAND_PACKAGES[@]}"
}

# debian__unpack_backports PACKAGE...: unpack the backports of these packages, and set BACKPORTS_DIR. If
# there are none, warn and set it to "".
# shellcheck disable=SC2034 # run-selftests.sh reads BACKPORTS_DIR
debian__unpack_backports()
{
	local release

	release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)-backports
	debian__try_unpack "$release" "${@/%//$release}" && BACKPORTS_DIR=$DEBIAN_DIR && return
	warn "no packages of $release, see $LOG_FILE; their tests are skipped"
	BACKPORTS_DIR=
}

# debian__make_root DIR RELEASE VARIANT PACKAGES: make a system in DIR, complete or not at all. RELEASE is a
# code name, or empty for the release of this system. VARIANT is a variant of mmdebstrap.
debian__make_root()
{
	rm -rf -- "$1.part" &&
		mkdir -p -- "${1%/*}" &&
		debian__sources "$2" | mmdebstrap --quiet --variant="$3" --include="$4" '' "$1.part" - &&
		mv -- "$1.part" "$1"
}

# debian__run DIR COMMAND [BIND...]: run a shell command in the system in DIR. It sees the host's BIND, with
# the same paths. The mounts end with the command. A chroot is not enough, because perf enters the mount
# namespaces of other processes, and then returns to the root of its own namespace.
# shellcheck disable=SC2016 # The inner shell has the variables.
debian__run()
{
	unshare --mount --propagation private bash -c '
		mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
			mount --rbind /sys "$0/sys" || exit 99
		mountpoint -q "$0/sys/fs/bpf" || mount -t bpf bpf "$0/sys/fs/bpf" || exit 99
		for dir in "${@:2}"; do
			mkdir -p "$0$dir" && mount --bind "$dir" "$0$dir" || exit 99
		done
		pivot_root "$0" "$0/mnt" && cd / && umount -l /mnt || exit 99
		exec env -i HOME=/root TERM=dumb LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			bash -c "$1"' "$@"
}
