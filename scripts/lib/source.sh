# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Find, fetch, verify and unpack the kernel source of a tag.
#
# Usage (after lib/common.sh, lib/pin.sh, lib/packages.sh, pin__load, log_to):
#	source__find_or_fetch BASE
#				use the first of these that exists: the source that the
#				user named, BASE if it was unpacked from a pinned source,
#				a file in the cache, a file in the mirror, a download from
#				kernel.org or from Debian's pool
#	source__unpack BASE	unpack the source into BASE/tree, complete or not at all
#	source__makefile_version FILE	print the version in a top Makefile
#
# Reads:
#	OPT_SOURCE OPT_GIT OPT_MIRROR	options of the user, or empty
#	OPT_INSTALL	yes: apt's package lists may be fetched if there are none
#	TAG CACHE_DIR PIN_*
# Sets:
#	SOURCE_KIND	archive, git or tree
#	SOURCE_PATH	file, repository or tree; empty if BASE is used as it is
#	SOURCE_ID	sha256:HASH, git:COMMIT or tree:HASH
#	SOURCE_VERSION	the version in the top Makefile of the source; if this is not
#			PIN_VERSION, the source is a substitute
#	SOURCE_FROM	the origin of the source, for messages
#
# The sha256 of a file is compared with the pin right before the file is unpacked. If the user names
# a source without a pinned sha256, its version is compared; with --git, also the commit, if pinned.

# Neither perf nor its tests need these paths, which are nine tenths of the tree.
SOURCE_EXCLUDES=(
	--anchored --wildcards --no-wildcards-match-slash
	'--exclude=*/drivers/*' '--exclude=*/sound' '--exclude=*/fs/*'
	'--exclude=*/net' '--exclude=*/crypto' '--exclude=*/mm'
	'--exclude=*/security' '--exclude=*/samples' '--exclude=*/rust'
	'--exclude=*/Documentation/devicetree'
	'--exclude=*/Documentation/translations'
	'--exclude=*/Documentation/userspace-api'
	'--exclude=*/Documentation/admin-guide'
	'--exclude=*/Documentation/networking'
	'--exclude=*/Documentation/driver-api'
	'--exclude=*/Documentation/gpu'
	'--exclude=*/arch/*/boot/dts' '--exclude=*/arch/*/configs'
	'--exclude=*/.git'
)

APT_HELPER=/usr/lib/apt/apt-helper

source__makefile_version()
{
	awk '$2 == "=" && $1 ~ /^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)$/ && !($1 in v) { v[$1] = $3 }
	     END { printf "%s.%s.%s%s\n", v["VERSION"], v["PATCHLEVEL"], v["SUBLEVEL"], v["EXTRAVERSION"] }' "$1"
}

source__sha256()
{
	sha256sum -- "$1" | cut -d ' ' -f 1
}

# --- named by the user --------------------------------------------------------

# The pin lists the version of the tag, and the versions of its substitutes.
source__check_version()
{
	local version=$1 what=$2

	[[ " $PIN_VERSION ${PIN_SOURCES[*]##* } " != *" $version "* ]] || return 0
	die "$what is version $version, not $PIN_VERSION ($TAG)" "name the source of $TAG"
}

source__use_git()
{
	local repo=$OPT_GIT commit

	command -v git > /dev/null || die "--git needs git" "as root: apt-get install git"
	commit=$(git -C "$repo" rev-parse --verify --quiet "$TAG^{commit}") ||
		die "the git tree $repo has no tag $TAG" "git -C $repo fetch --tags; or correct the path, or set git's safe.directory"
	[[ -z $PIN_COMMIT || $commit = "$PIN_COMMIT" ]] ||
		die "$TAG in $repo is commit $commit, the pin says $PIN_COMMIT" "fetch the tag from the kernel's own repository"
	SOURCE_KIND=git SOURCE_PATH=$repo SOURCE_ID=git:$commit
	SOURCE_FROM="git tree $repo, commit ${commit:0:12}"
	SOURCE_VERSION=$(git -C "$repo" show "$commit:Makefile" | source__makefile_version -)
	source__check_version "$SOURCE_VERSION" "$repo"
}

source__use_tree()
{
	local tree

	tree=$(realpath -- "$OPT_SOURCE")
	[[ -f $tree/Makefile && -d $tree/tools/perf ]] ||
		die "$tree is not a kernel tree: no Makefile or no tools/perf" "name the top directory of a kernel tree"
	[[ ! -s $tree/.pc/applied-patches ]] ||
		die "$tree has patches applied" "quilt pop -a there, or name an unpatched tree"
	SOURCE_KIND=tree SOURCE_PATH=$tree SOURCE_FROM="tree $tree"
	SOURCE_VERSION=$(source__makefile_version "$tree/Makefile")
	source__check_version "$SOURCE_VERSION" "$tree"
	SOURCE_ID=$(cd "$tree" && find . -name .git -prune -o \
		\( -path ./drivers -o -path ./sound -o -path ./fs -o -path ./net \) -prune -o \
		-type f -printf '%p %s %T@\n' | sort | sha256sum)
	SOURCE_ID=tree:${SOURCE_ID%% *}
}

# Accept a tarball with a pinned checksum, or with the right version in its top Makefile.
source__use_tarball()
{
	local file sum entry

	file=$(realpath -- "$OPT_SOURCE")
	sum=$(source__sha256 "$file")
	SOURCE_KIND=archive SOURCE_PATH=$file SOURCE_ID=sha256:$sum SOURCE_FROM="file $file"
	for entry in "${PIN_SOURCES[@]}"; do
		if [[ $entry = *" $sum "* ]]; then
			SOURCE_VERSION=${entry##* }
			return
		fi
	done
	SOURCE_VERSION=$(source__stream 2>/dev/null |
		tar -xO --anchored --wildcards --no-wildcards-match-slash '*/Makefile' 2>/dev/null |
		source__makefile_version -) ||
		die "$file cannot be read as a kernel tarball" "check the file: is it whole?"
	source__check_version "$SOURCE_VERSION" "$file"
	warn "$file has sha256 $sum, which is not in $PINS_FILE; its Makefile says $SOURCE_VERSION"
}

# --- unpacked, cached, mirrored -----------------------------------------------

source__use_archive()
{
	local path=$1 sum=$2 version=$3 from=$4

	SOURCE_KIND=archive SOURCE_PATH=$path SOURCE_ID=sha256:$sum
	SOURCE_VERSION=$version SOURCE_FROM=$from
}

source__use_base()
{
	local base=$1 id entry

	[[ -f $base/source ]] || return 1
	id=$(sed -n 's/^id //p' "$base/source")
	for entry in "${PIN_SOURCES[@]}" "git git:$PIN_COMMIT"; do
		if [[ $entry = *" ${id#sha256:}"* ]]; then
			SOURCE_KIND=$(sed -n 's/^kind //p' "$base/source")
			SOURCE_VERSION=$(sed -n 's/^version //p' "$base/source")
			SOURCE_FROM=$(sed -n 's/^from //p' "$base/source")
			SOURCE_PATH='' SOURCE_ID=$id
			return 0
		fi
	done
	return 1
}

# Use a file in the cache. Remove it instead if its checksum is wrong.
source__use_cache()
{
	local entry origin file sum version

	for entry in "${PIN_SOURCES[@]}"; do
		read -r origin file sum version <<< "$entry"
		[[ -f $CACHE_DIR/$file ]] || continue
		if [[ $(source__sha256 "$CACHE_DIR/$file") = "$sum" ]]; then
			source__use_archive "$CACHE_DIR/$file" "$sum" "$version" "$file (from the cache; origin: $origin)"
			return 0
		fi
		warn "$CACHE_DIR/$file had a wrong sha256; it was removed and will be fetched again"
		rm -f -- "$CACHE_DIR/$file"
	done
	return 1
}

source__use_mirror()
{
	local entry file sum version found

	[[ -n $OPT_MIRROR ]] || return 1
	for entry in "${PIN_SOURCES[@]}"; do
		read -r _ file sum version <<< "$entry"
		[[ -f $OPT_MIRROR/$file ]] || continue
		found=$(source__sha256 "$OPT_MIRROR/$file")
		[[ $found = "$sum" ]] ||
			die "wrong checksum: $OPT_MIRROR/$file has sha256 $found, the pin of $TAG says $sum" \
				"replace the file, or go without --mirror"
		source__use_archive "$OPT_MIRROR/$file" "$sum" "$version" "$file (mirror)"
		return 0
	done
	return 1
}

# --- network ------------------------------------------------------------------

# source__fetch_ORIGIN FILE PART: download FILE to PART

source__fetch_kernel_org()
{
	curl --fail --location --silent --show-error --connect-timeout 10 --speed-limit 1000 --speed-time 60 \
		--output "$2" "https://cdn.kernel.org/pub/linux/kernel/v${PIN_VERSION%%.*}.x/$1"
}

# Try the archives that apt uses, in apt's order. For a file: URI, apt makes a symbolic link, but
# the cache needs the file.
source__fetch_debian()
{
	local file=$1 part=$2 uri uris

	# shellcheck disable=SC2016 # the $(...) is apt's
	mapfile -t uris < <(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | awk '!seen[$0]++')
	((${#uris[@]})) || echo "apt knows no archive (as root: apt-get update)"
	for uri in "${uris[@]}"; do
		"$APT_HELPER" -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
			download-file "${uri%/}/pool/main/l/linux/$file" "$part" || continue
		[[ ! -L $part ]] || cp --remove-destination -- "$(realpath -- "$part")" "$part"
		return
	done
	return 1
}

source__fetch_first()
{
	local entry origin file sum version part found

	for entry in "${PIN_SOURCES[@]}"; do
		read -r origin file sum version <<< "$entry"
		[[ $origin != mirror ]] || continue
		part=$CACHE_DIR/$file.part
		rm -f -- "$part"
		on_exit rm -f -- "$part"
		run_logged "fetch $file from $origin" "source__fetch_${origin/./_}" "$file" "$part" || continue
		found=$(source__sha256 "$part")
		[[ $found = "$sum" ]] ||
			die "wrong checksum: $file from $origin has sha256 $found, the pin of $TAG says $sum" \
				"run it again; if that does not help, the file was changed: use --source, --git or --mirror"
		mv -f -- "$part" "$CACHE_DIR/$file" || return
		source__use_archive "$CACHE_DIR/$file" "$sum" "$version" "$file ($origin)"
		return 0
	done
	return 1
}

source__fetch_into_cache()
{
	mkdir -p -- "$CACHE_DIR" || die "cannot create the cache $CACHE_DIR" "set PBM_CACHE to a directory that you can write"
	take_lock "$CACHE_DIR/.lock" "the cache $CACHE_DIR"
	source__use_cache || source__fetch_first ||
		die_logged "no source of $TAG: not in the cache, and nothing could be fetched" \
			"check the network, or name a source with --source, --git or --mirror"
	release_lock
}

source__find_or_fetch()
{
	if [[ -n $OPT_GIT ]]; then
		source__use_git
	elif [[ -d $OPT_SOURCE ]]; then
		source__use_tree
	elif [[ -f $OPT_SOURCE ]]; then
		source__use_tarball
	elif [[ -n $OPT_SOURCE ]]; then
		die "--source $OPT_SOURCE: no such file or directory" "name a kernel tree or a tarball"
	else
		source__use_base "$1" || source__use_cache || source__use_mirror || source__fetch_into_cache
	fi
}

# --- unpack -------------------------------------------------------------------

source__stream()
{
	case $SOURCE_KIND:$SOURCE_PATH in
	git:*)	git -C "$SOURCE_PATH" archive --prefix=linux/ "${SOURCE_ID#git:}" ;;
	tree:*)	tar -c -C "${SOURCE_PATH%/*}/" "${SOURCE_EXCLUDES[@]}" -- "${SOURCE_PATH##*/}" ;;
	*.deb)	dpkg-deb --fsys-tarfile "$SOURCE_PATH" |
			tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | xz -T 0 -dc ;;
	*.xz)	xz -T 0 -dc -- "$SOURCE_PATH" ;;
	*.gz)	gzip -dc -- "$SOURCE_PATH" ;;
	*.zst)	zstd -dc -- "$SOURCE_PATH" ;;
	*)	cat -- "$SOURCE_PATH" ;;
	esac
}

# Write PERF-VERSION-FILE, from which perf takes its version if there is no git: the Makefile of a
# tree with missing directories cannot print it. Make drivers/ and fs/, because checkpatch.pl and
# other scripts refuse a tree without them.
source__unpack_part()
{
	local part=$1

	mkdir -p -- "$part/tree/drivers" "$part/tree/fs" &&
	source__stream | tar -x -C "$part/tree" --strip-components=1 --no-same-owner "${SOURCE_EXCLUDES[@]}" &&
	printf '#define PERF_VERSION "%s"\n' "$SOURCE_VERSION" > "$part/tree/PERF-VERSION-FILE" &&
	printf '%s\n' "id $SOURCE_ID" "kind $SOURCE_KIND" "version $SOURCE_VERSION" "from $SOURCE_FROM" > "$part/source"
}

source__unpack()
{
	local base=$1 part=$1.part

	rm -rf -- "$part"
	on_exit rm -rf -- "$part"
	run_logged "unpack ${SOURCE_PATH##*/}" source__unpack_part "$part" ||
		die_logged "cannot unpack $SOURCE_PATH" "check the file and the space in ${base%/*}"
	rm -rf -- "$base"
	mv -- "$part" "$base"
}
