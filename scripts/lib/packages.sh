# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Install missing Debian packages, or print the command that installs them.
#
# If packages are missing, yes installs them, and no dies with the exact apt line. Without root, nothing
# can be installed, so "yes" is the same as "no". Without apt, the build fails if something is missing.
# apt marks the packages as automatically installed, so "apt-get autoremove" removes them again.

# Use a lock, because two scripts may call apt-get at once, and apt-get does not wait for all of
# its own locks. With --close, daemons that a package starts do not inherit the lock.
packages__apt()
{
	flock --close /var/lib/dpkg env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=600 -o Acquire::Retries=2 -o APT::Get::Build-Dep-Automatic=yes "$@"
}

# packages__missing ARGUMENT...: print what dpkg-checkbuilddeps misses. A machine without this program
# lacks dpkg-dev, which all others depend on.
packages__missing()
{
	command -v dpkg-checkbuilddeps > /dev/null || { echo "dpkg-dev, and perhaps others"; return; }
	dpkg-checkbuilddeps "$@" "$REPO_DIR/debian/control" 2>&1 | sed 's/.*build dependencies: //'
}

# packages__provide yes|no MISSING ARGUMENT...: call apt-get with these arguments if packages are missing
packages__provide()
{
	local install=$1 missing=$2

	shift 2
	command -v apt-get > /dev/null || { warn "there is no apt-get; debian/control lists what a build needs"; return; }
	[[ -n $missing ]] || return 0
	msg "missing packages: $missing"
	[[ $install = yes && $EUID = 0 ]] ||
		die "packages are missing: $missing" "as root: apt-get update && apt-get --no-install-recommends -o APT::Get::Build-Dep-Automatic=yes$(printf ' %q' "$@")"
	run_logged "update the package lists" packages__apt update ||
		warn "apt-get update failed, see $LOG_FILE; going on with the lists at hand"
	run_logged "install packages" packages__apt --no-install-recommends "$@" ||
		die_logged "apt-get could not install: $missing" "check the network and apt's sources, then run it again"
}

# packages__require_build yes|no [-P nocheck]: require the Build-Depends of debian/control; -P nocheck leaves
# out those of the tests
packages__require_build()
{
	packages__provide "$1" "$(packages__missing "${@:2}")" build-dep "${@:2}" "$REPO_DIR"
}

# packages__require yes|no PACKAGE...
packages__require()
{
	local wanted

	wanted=$(printf ', %s' "${@:2}")
	packages__provide "$1" "$(packages__missing -I -d "dpkg-dev$wanted")" satisfy "dpkg-dev$wanted"
}
