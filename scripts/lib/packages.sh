# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# List missing Debian packages, and install them or print the command that installs them.
#
# Usage (after lib/common.sh, and log_to for an install):
#	packages__missing PACKAGE...		print the packages that are not installed
#	packages__require yes|no PACKAGE...	install the missing packages (yes), or
#						die with the exact apt line (no)
#	packages__update_lists yes|no		fetch apt's package lists if there are none (yes:
#						only as root; no: do nothing)
#	packages__numbered NAME			print the packages NAME-NUMBER of this
#						distribution, in the order of numbers
#
# Reads:
#	CACHE_DIR	its file installed-packages lists the packages that
#			packages__require has installed
# Sets:
#	PERF_PACKAGES	the packages for fetching, patching and building perf
#
# Without root, nothing can be installed, so "yes" is the same as "no". Without dpkg, the list is
# only printed, and the build fails if something is missing.

# BPF in perf needs the second group of packages, and build.sh refuses a perf without BPF. The third
# group is optional. It is installed because tests and users need these features: -z, the TUI,
# --to-ctf, script in Python and Perl, SDT probes, disassembly, jitdump, libpfm names.
# shellcheck disable=SC2034 # read by the scripts that source this
PERF_PACKAGES=(
	# fetch, unpack, patch
	ca-certificates curl xz-utils quilt patch diffstat
	# build, mandatory features
	make gcc libc6-dev flex bison pkg-config python3 clang llvm
	libelf-dev zlib1g-dev libtraceevent-dev
	# optional features
	libdw-dev libslang2-dev libzstd-dev liblzma-dev libcap-dev libnuma-dev
	libssl-dev libbabeltrace-dev libcapstone-dev libpfm4-dev libtracefs-dev
	python3-dev python3-setuptools libperl-dev systemtap-sdt-dev
)

PACKAGES_LOCK=/var/lib/dpkg

packages__missing()
{
	local installed

	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' -- "$@" 2>/dev/null |
		sed -n 's/^installed //p' | sort -u) || :
	printf '%s\n' "$@" | sort -u | comm -23 - <(printf '%s\n' "$installed")
}

# Use a lock, because two scripts may call apt-get at once, and apt-get does not wait for all of
# its own locks. With --close, daemons that a package starts do not inherit the lock.
packages__apt()
{
	flock --close "$PACKAGES_LOCK" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=600 -o Acquire::Retries=2 "$@"
}

# A new machine may have no package lists.
packages__update_lists()
{
	command -v apt-get > /dev/null || return 0
	[[ $1 = yes && $EUID = 0 && -z $(apt-get indextargets 'Identifier: Packages') ]] || return 0
	run_logged "update the package lists" packages__apt update || :
}

packages__numbered()
{
	command -v apt-cache > /dev/null || return 0
	apt-cache search --names-only "^$1-[0-9]+\$" | awk '{ print $1 }' | sort -V
}

# Users who want to remove the packages later find their names in the cache.
packages__install()
{
	run_logged "update the package lists" packages__apt update ||
		warn "apt-get update failed, see $LOG_FILE; going on with the lists at hand"
	run_logged "install ${#} packages" packages__apt install --no-install-recommends -- "$@" ||
		die_logged "apt-get could not install: $*" \
			"check the network and apt's sources, then: apt-get update && apt-get install $*"
	{ mkdir -p -- "$CACHE_DIR" && printf '%s\n' "$@" >> "$CACHE_DIR/installed-packages"; } ||
		warn "cannot note in $CACHE_DIR which packages were installed"
}

packages__require()
{
	local install=$1 missing=() problem="packages are missing"

	shift
	if ! command -v dpkg-query > /dev/null; then
		warn "there is no dpkg, so install the missing ones of these packages (Debian's names): $*"
		return
	fi
	mapfile -t missing < <(packages__missing "$@")
	((${#missing[@]})) || return 0
	msg "missing packages: ${missing[*]}"
	((EUID == 0)) || problem+=", and only root can install them"
	[[ $install = yes && $EUID = 0 ]] ||
		die "${#missing[@]} $problem: ${missing[*]}" \
			"as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
	packages__install "${missing[@]}"
}
