# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Build the kernel of a guest from the source of TAG, or use a given image.
#
# Usage (after lib/common.sh, lib/pin.sh, lib/source.sh, lib/arch.sh, arch__load, log_to):
#	kernel__prepare		build the kernel, or find the image in OPT_KERNEL
#
# Reads:
#	OPT_KERNEL	an image; empty: the source of TAG with selftests/config*
#	TAG ARCH_* CACHE_DIR JOBS OPT_MIRROR OPT_INSTALL
# Sets:
#	KERNEL_IMAGE	the image to boot
#	KERNEL_FROM	the origin of the image, for messages
#
# Built kernels are kept in the cache. The directory of a kernel is named after its source, its
# configuration and the compiler.

KERNEL_PACKAGES=(bc bison dwarves flex gcc libc6-dev libelf-dev libssl-dev make xz-utils)
KERNEL_CONFIGS=("$REPO_DIR/selftests/config" "$REPO_DIR/selftests/config.vm")

kernel__config()
{
	cat -- "${KERNEL_CONFIGS[@]}" "$REPO_DIR/selftests/config.vm.$ARCH"
}

kernel__make()
{
	KCONFIG_ALLCONFIG="$1/wanted" make -C "$1/linux" O="$1/build" ARCH="$ARCH" CROSS_COMPILE="$ARCH_CROSS" -j "$JOBS" "${@:2}"
}

# Choose a source with the whole kernel: the archives *-perf.tar.* have only perf.
kernel__choose_source()
{
	local entry full=()

	pin__load "$TAG"
	for entry in "${PIN_SOURCES[@]}"; do
		[[ $entry = *-perf.tar.* ]] || full+=("$entry")
	done
	PIN_SOURCES=("${full[@]}")
	# shellcheck disable=SC2034 # read by source.sh
	OPT_SOURCE='' OPT_GIT=''
	source__find_or_fetch /nonexistent
}

kernel__key()
{
	{
		printf '%s\n' "$SOURCE_ID" "$ARCH"
		kernel__config
		"${ARCH_CROSS}gcc" --version | sed -n 1p
		pahole --version
	} | sha256sum | cut -c 1-12
}

kernel__unpack()
{
	# shellcheck disable=SC2034 # read by source.sh
	local part=$1 SOURCE_EXCLUDES=()

	mkdir -p -- "$part/linux" "$part/build" &&
		source__stream | tar -x -C "$part/linux" --strip-components=1 --no-same-owner
}

# Check the configuration, because Kconfig silently drops options with unmet dependencies.
kernel__configure()
{
	local part=$1

	kernel__config > "$part/wanted" &&
		kernel__make "$part" allnoconfig &&
		! grep '^CONFIG_' "$part/wanted" | grep -vxFf "$part/build/.config" | sed 's/^/not set: /' | grep .
}

kernel__publish()
{
	local part=$1 dir=$2

	rm -rf -- "$dir.new" &&
		mkdir -- "$dir.new" &&
		cp -- "$part/build/arch/${ARCH/x86_64/x86}/boot/$ARCH_IMAGE" "$dir.new/image" &&
		cp -- "$part/build/.config" "$dir.new/config" &&
		printf '%s\n' "$SOURCE_FROM" > "$dir.new/source" &&
		mv -- "$dir.new" "$dir"
}

kernel__die()
{
	die_logged "$1" "see the log; or use another kernel with --kernel"
}

kernel__build()
{
	local dir=$1 part=$1.part

	rm -rf -- "$part"
	on_exit rm -rf -- "$part" "$dir.new"
	run_logged "unpack ${SOURCE_PATH##*/}" kernel__unpack "$part" || kernel__die "cannot unpack $SOURCE_PATH"
	run_logged "configure the kernel" kernel__configure "$part" || kernel__die "the kernel cannot be configured as selftests/config* want it"
	run_logged "build the kernel for $ARCH with $JOBS jobs, once" kernel__make "$part" "$ARCH_IMAGE" || kernel__die "the kernel does not build"
	kernel__publish "$part" "$dir" || kernel__die "cannot write $dir"
	rm -rf -- "$part"
}

# shellcheck disable=SC2034 # read by guests.sh
kernel__prepare()
{
	local dir

	if [[ -n $OPT_KERNEL ]]; then
		KERNEL_IMAGE=$(realpath -- "$OPT_KERNEL")
		KERNEL_FROM=$KERNEL_IMAGE
		return
	fi
	packages__require "$OPT_INSTALL" "${KERNEL_PACKAGES[@]}" "${ARCH_CROSS_PACKAGES[@]}"
	kernel__choose_source
	dir=$CACHE_DIR/kernels/$TAG-$ARCH-$(kernel__key)
	if [[ ! -f $dir/image ]]; then
		mkdir -p -- "${dir%/*}"
		take_lock "$dir.lock" "$dir"
		[[ -f $dir/image ]] || kernel__build "$dir"
		release_lock
	fi
	KERNEL_IMAGE=$dir/image
	KERNEL_FROM="$SOURCE_VERSION, $SOURCE_FROM"
}
