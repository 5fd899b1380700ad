#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of debian/ and of Makefile. Most of them install the package into a clean Debian without
# compilers, and try there what it contains. mmdebstrap makes the Debian from the archive that apt uses.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
. "$SCRIPTS_DIR/lib/debian.sh"

REPO_DIR=${SCRIPTS_DIR%/*}
TAG=${PBM_TAG:-v6.16}

# Run a command in the Debian. BPF programs belong to the machine, so take its lock.
in_root()
(
	exec {fd}</sys/kernel
	flock "$fd" && debian__run "$ROOT" "cd /tmp && $1"
)

# Print all files but those that apt, perf and man write when they run. The sizes of directories are
# left out, because directories that have grown don't shrink again.
list_root()
{
	find "$ROOT" \( -path "$ROOT/root" -o -path "$ROOT/tmp" -o -path "$ROOT/var/cache" -o -path "$ROOT/var/log" \
		-o -path "$ROOT/var/lib/apt" -o -path "$ROOT/var/lib/dpkg" \) -prune -o \
		-type d -printf '%P %M %u\n' -o -printf '%P %M %u %s %l\n' | sort
}

# shows REGEX COMMAND: fail unless the command succeeds in the Debian, and prints this
shows()
{
	expect_status 0 in_root "$2"
	grep -qE -e "$1" <<<"$PRINTED" || fail "no '$1' in the output"
}

# perf's shell tests call "perf". They must find this perf instead of the distribution's.
test_perf_test()
{
	printf '%s\n' '#!/bin/sh' 'echo another perf; exit 1' | install -m 755 /dev/stdin "$ROOT/usr/bin/perf"
	shows ': Ok' 'perf_bpfmeta test -v bpf-metadata'
	! grep -E ': (Skip|FAILED)' <<<"$PRINTED" || fail "not all tests have passed"
	rm "$ROOT/usr/bin/perf"
	expect_status 1 in_root 'command -v perf'
}

test_man_pages()
{
	local page tool

	shows '^ +--bpf-metadata=' 'perf_bpfmeta record --help'
	! grep -F '.ft C' <<<"$PRINTED" || fail "the page shows commands of roff"
	shows '^PERF-INJECT\(1\)' 'perf_bpfmeta help inject'
	for page in "$REPO_DIR"/tools/man/*; do
		page=${page##*/} tool=${page%.*}
		shows "^${tool^^}\\(${page##*.}\\)" "$tool --help && man $tool"
	done
}

# "perf script report NAME" runs a shell script that calls "perf".
test_scripts_and_tips()
{
	shows 'failed-syscalls' 'perf_bpfmeta script -l'
	expect_status 0 in_root 'perf_bpfmeta record -B -N -e cpu-clock seq 1000000 >/dev/null'
	shows '^seq [0-9]+$' 'perf_bpfmeta script report stackcollapse'
	shows '^# \(Tip: ' 'perf_bpfmeta report --stdio'
	! grep 'Cannot load tips' <<<"$PRINTED" || fail "perf has no tips"
}

# As on a terminal: bash-completion finds the file by the name of the command.
test_completion()
{
	# shellcheck disable=SC2016 # for that bash
	shows '^report$' '. /usr/share/bash-completion/bash_completion
		_completion_loader perf_bpfmeta; ((124 == $?)) || exit 1
		complete -p perf_bpfmeta; ! complete -p perf 2>/dev/null || exit 1
		COMP_WORDS=(perf_bpfmeta rep) COMP_CWORD=1 COMP_LINE="perf_bpfmeta rep" COMP_POINT=16; _perf; echo "${COMPREPLY[@]}"'
}

# The tests above have left bytecode of Python beside the modules.
test_package_is_removed()
{
	expect_status 0 in_root 'apt-get -q -y purge perf-bpfmeta'
	diff "$TMP/before" <(list_root) || fail "the purge left files, or removed other files"
}

# The perf in out/, which runs from there, must not be built again.
test_make_install_and_uninstall()
{
	local dest=$TMP/t/usr/local file before make=(make -s -C "$REPO_DIR" TAG="$TAG" DESTDIR="$TMP/t")

	before=$(stat -c '%i %Y' "$REPO_DIR/out/$TAG/perf")
	mkdir -p "$dest/bin"
	echo mine >"$dest/bin/perf"
	expect_status 0 "${make[@]}" install
	[[ $before = "$(stat -c '%i %Y' "$REPO_DIR/out/$TAG/perf")" ]] || fail "perf was built again"
	for file in bin/{perf_bpfmeta,bpf-stamp} lib/perf-bpf-metadata/{bin/perf,tools/bpf-stamp} share/man/man8/bpf-owners.8; do
		[[ -s $dest/$file ]] || fail "no $file"
	done
	echo '[record]' >"$dest/lib/perf-bpf-metadata/etc/perfconfig"
	expect_status 0 "${make[@]}" uninstall
	diff <(printf '%s\n' "$dest"/{bin/perf,lib/perf-bpf-metadata/etc/perfconfig}) <(find "$TMP/t" -not -type d | sort) ||
		fail "uninstall left files, or removed other files"
}

make_debian()
{
	"$SCRIPTS_DIR/apply-and-build.sh" --quiet "$TAG" && (cd "$REPO_DIR" && debian/rules binary TAG="$TAG") &&
		debian__make_root "$ROOT" '' apt man-db,bash-completion,mount &&
		cp "$REPO_DIR/out/$TAG"/perf-bpfmeta_*.deb "$ROOT/root/x.deb" &&
		in_root "apt-get -q update && apt-get -q -y install --no-install-recommends \\
			\$(dpkg-deb -f /root/x.deb Depends | sed 's/([^)]*)//g; s/,//g')" &&
		list_root >"$TMP/before" &&
		in_root 'apt-get -q -y install --no-install-recommends /root/x.deb'
}

# All tests share one Debian with the package.
prepare_tests()
{
	if ((EUID)); then
		ktap_skip_all "only root can install Debian into a directory"
		exit 0
	fi
	command -v mmdebstrap >/dev/null || ktap_exit_fail_msg "there is no mmdebstrap: apt-get install mmdebstrap"
	ROOT=$TMP/root
	chmod 755 "$TMP"
	make_debian >"$TMP/log" 2>&1 || ktap_exit_fail_msg "cannot make the package and a Debian with it: $(<"$TMP/log")"
}

run_tests
