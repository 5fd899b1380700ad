# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Find, fetch, verify and unpack the kernel source of a tag.
#
# Reads:
#	OPT_MIRROR	a directory, or empty
#	PIN_*		of pin__load
# Sets:
#	SOURCE_PATH	file or repository
#	SOURCE_ID	sha256:HASH or git:COMMIT
#	SOURCE_VERSION	the version of the source; if this is not PIN_VERSION, it is a substitute
#	SOURCE_FROM	the origin of the source, for messages

. "${BASH_SOURCE[0]%/*}/pin.sh"

source__sha256()
{
	sha256sum -- "$1" | cut -d ' ' -f 1
}

# source__use_verified PATH SHA256 VERSION FROM: use a file if it has the pinned sha256, else die
source__use_verified()
{
	local found

	found=$(source__sha256 "$1")
	[[ $found = "$2" ]] || die "wrong checksum: $4 has sha256 $found, the pin says $2" \
		"remove $1 and run it again; if that does not help, use --source or --mirror"
	SOURCE_PATH=$1 SOURCE_ID=sha256:$2 SOURCE_VERSION=$3 SOURCE_FROM=$4
}

# source__print_addresses ORIGIN FILE. apt knows the addresses of Debian's pool.
# shellcheck disable=SC2016 # the $(...) is apt's
source__print_addresses()
{
	case $1 in
	kernel.org) echo "https://cdn.kernel.org/pub/linux/kernel/v${PIN_VERSION%%.*}.x/$2" ;;
	debian)	! command -v apt-get >/dev/null || apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' |
			awk -v file="$2" '!seen[$0]++ { sub("/*$", ""); print $0 "/pool/main/l/linux/" file }' ;;
	esac
}

# source__fetch ORIGIN FILE: download FILE into the cache, complete or not at all
source__fetch()
{
	local address part=$CACHE_DIR/$2.$$.part

	on_exit rm -f -- "$part"

	while read -r address; do
		run_logged "fetch $2 from $1" curl --fail --location --silent --show-error --connect-timeout 10 \
			--speed-limit 1000 --speed-time 60 --output "$part" "$address" || continue
		mv -f -- "$part" "$CACHE_DIR/$2" || die "cannot write $CACHE_DIR/$2" "correct what mv says"
		return
	done < <(source__print_addresses "$@")
	return 1
}

# Set SOURCE_* to the first of these that exists: a pinned file in the cache, in OPT_MIRROR, or one that curl
# fetches from kernel.org or from Debian's pool.
source__find_or_fetch()
{
	local dir entry origin file sum version

	for dir in "$CACHE_DIR" ${OPT_MIRROR:+"$OPT_MIRROR"}; do
		for entry in "${PIN_SOURCES[@]}"; do
			read -r origin file sum version <<<"$entry"
			[[ -f $dir/$file ]] || continue
			source__use_verified "$dir/$file" "$sum" "$version" "$dir/$file (origin: $origin)"
			return
		done
	done
	mkdir -p -- "$CACHE_DIR" || die "cannot create the cache $CACHE_DIR" "set PBM_CACHE to a directory that you can write"
	for entry in "${PIN_SOURCES[@]}"; do
		read -r origin file sum version <<<"$entry"
		source__fetch "$origin" "$file" || continue
		source__use_verified "$CACHE_DIR/$file" "$sum" "$version" "$file from $origin"
		return
	done
	die_logged "no source of ${PIN_VERSION:-this tag}: not in the cache, and nothing could be fetched" \
		"check the network (if apt has no package lists: apt-get update), or use --source or --mirror"
}

# source__read_version WHAT VERSION...: read SOURCE_VERSION from the top Makefile on stdin, or die
source__read_version()
{
	SOURCE_VERSION=$(awk '$2 == "=" && /^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) / && !($1 in v) { v[$1] = $3 }
		END { print v["VERSION"] "." v["PATCHLEVEL"] "." v["SUBLEVEL"] v["EXTRAVERSION"] }')
	[[ " ${*:2} " = *" $SOURCE_VERSION "* ]] ||
		die "$1 is version $SOURCE_VERSION, not $PIN_VERSION" "name the source of the tag"
}

source__use_git()
{
	local commit

	commit=$(git -C "$1" rev-parse --verify --quiet "$2^{commit}") ||
		die "the git tree $1 has no tag $2" "git -C $1 fetch --tags; or correct the path, or set git's safe.directory"
	[[ -z $PIN_COMMIT || $commit = "$PIN_COMMIT" ]] ||
		die "$2 in $1 is commit $commit, the pin says $PIN_COMMIT" "fetch the tag from the kernel's own repository"
	source__read_version "$2 in $1" "$PIN_VERSION" < <(git -C "$1" show "$commit:Makefile" 2>/dev/null)
	SOURCE_PATH=$1 SOURCE_ID=git:$commit SOURCE_FROM="git tree $1, commit ${commit:0:12}"
}

# Accept a tarball with a pinned checksum, or with the version of the tag or of a substitute in its top
# Makefile.
# shellcheck disable=SC2034 # the scripts read SOURCE_FROM
source__use_tarball()
{
	local sum entry

	sum=$(source__sha256 "$1")
	SOURCE_PATH=$(realpath -- "$1") SOURCE_ID=sha256:$sum SOURCE_FROM="file $1"
	for entry in "${PIN_SOURCES[@]}"; do
		SOURCE_VERSION=${entry##* }
		[[ $entry != *" $sum "* ]] || return 0
	done
	source__read_version "$1" "$PIN_VERSION" "${PIN_SOURCES[@]##* }" < <(source__stream 2>/dev/null |
		tar -xO --anchored --wildcards --no-wildcards-match-slash '*/Makefile' 2>/dev/null)
	warn "$1 has sha256 $sum, which is not in $PINS_FILE; its Makefile says $SOURCE_VERSION"
}

# source__use PATH TAG: set SOURCE_* to this tarball, or to the tag in this git tree
source__use()
{
	if [[ -d $1 ]]; then
		source__use_git "$@"
	else
		[[ -f $1 ]] || die "--source $1: no such file" "name a tarball or a git tree"
		source__use_tarball "$1"
	fi
}

# Print the source as a tar archive with one top directory.
source__stream()
{
	case $SOURCE_ID:$SOURCE_PATH in
	git:*)	git -C "$SOURCE_PATH" archive --prefix=linux/ "${SOURCE_ID#git:}" ;;
	*.deb)	dpkg-deb --fsys-tarfile "$SOURCE_PATH" |
			tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | xz -T 0 -dc ;;
	*.xz)	xz -T 0 -dc -- "$SOURCE_PATH" ;;
	*)	gzip -dcf -- "$SOURCE_PATH" ;;
	esac
}

# source__unpack DIR: unpack the source, without paths that neither perf nor its tests need. They are nine
# tenths of the tree.
source__unpack()
{
	local excludes=(
		--anchored --wildcards --no-wildcards-match-slash
		'--exclude=*/'{'drivers/*','fs/*',sound,net,crypto,mm,security,samples,rust}
		'--exclude=*/Documentation/'{devicetree,translations,userspace-api,admin-guide,networking,driver-api,gpu}
		'--exclude=*/arch/*/'{boot/dts,configs} '--exclude=*/.git'
	)

	source__stream | tar -x -C "$1" --strip-components=1 --no-same-owner "${excludes[@]}"
}
