#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of install.sh: perf is built, installed into a clean Debian, run there with
# its man pages, scripts, tips, completion and "perf test bpf-metadata", and removed;
# and so are the programs of tools/.
# The Debian is made by mmdebstrap, from the archive that apt has.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

REPO_DIR=${SCRIPTS_DIR%/*}
TAG=v6.16
PREFIX=/usr/local
HOME_DIR=$PREFIX/lib/perf-bpf-metadata
# BPF programs belong to the machine: so does this lock.
MACHINE_LOCK=/sys/kernel

# --- the clean Debian ---------------------------------------------------------

# Of the libraries that perf is linked with
print_library_packages()
{
	local name

	ldd "$REPO_DIR/out/$TAG/perf" | awk '$2 == "=>" { print $1 }' | while read -r name; do
		dpkg-query -S "*/$name" | sed 's/[:,].*//' | sort -u
	done | sort -u
}

# shellcheck disable=SC2016 # the $(...) are apt's
make_root()
{
	local packages

	packages=$(print_library_packages | paste -s -d ,)
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Identifier: Packages' 'Origin: Debian' | sort -u |
		mmdebstrap --quiet --variant=essential --include="$packages,man-db,python3,bash-completion" '' "$ROOT" -
}

# What it mounts goes with it. perf enters the mount namespaces of others and comes back to
# the root of its own: out of a chroot.
# shellcheck disable=SC2016 # the variables are of the shell within
in_root()
{
	unshare --mount --propagation private bash -c '
		mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
			mount --rbind /sys "$1/sys" || exit 99
		mountpoint -q "$1/sys/fs/bpf" || mount -t bpf bpf "$1/sys/fs/bpf" || exit 99
		pivot_root "$1" "$1/mnt" || exit 99
		exec env -i HOME=/root TERM=dumb LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			bash -c "$2"' in_root "$ROOT" "cd /tmp && $1"
}

in_root_alone()
(
	exec {fd}<"$MACHINE_LOCK"
	flock "$fd" && in_root "$1"
)

# All but what perf and man write when they run
list_root()
{
	find "$ROOT" \( -path "$ROOT/root" -o -path "$ROOT/tmp" -o -path "$ROOT/var/cache" \) -prune -o \
		-printf '%P %M %u %s %l\n' | sort
}

# --- what a test calls --------------------------------------------------------

says()
{
	grep -qE -e "$1" <<<"$PRINTED" || fail "no '$1' in the output"
}

install_sh()
{
	"$SCRIPTS_DIR/install.sh" "$@"
}

install_root()
{
	install_sh --destdir "$ROOT" "$@" "$TAG"
}

remove_root()
{
	install_sh --destdir "$ROOT" --uninstall "$@"
}

# The tests have one installation; a test that takes it away leaves nothing of it.
need_installation()
{
	[[ -e $ROOT$PREFIX/bin/perf_bpfmeta ]] || install_sh --destdir "$ROOT" "$TAG"
}

end_test()
{
	! mountpoint -q "$TMP/t/disk" || umount "$TMP/t/disk"
}

# --- the tests ----------------------------------------------------------------

test_usage()
{
	expect_status 0 install_sh --help
	says '^usage: scripts/install.sh'
	expect_status 2 install_sh
	says 'one TAG is needed'
	expect_status 2 install_sh v0.0
	says "unknown tag 'v0.0'"
	expect_status 2 install_sh --name 'a b' "$TAG"
	says "^install.sh: error: --name a b: "
	expect_status 2 install_sh --name perf-mine "$TAG"
	says "^install.sh: error: --name perf-mine: "
	expect_status 2 install_sh --name bpf-stamp "$TAG"
	says "^install.sh: error: --name bpf-stamp: another program has this name"
	expect_status 2 install_sh --prefix '/a;b' "$TAG"
	says '^install.sh: error: --prefix /a;b: '
	expect_status 2 install_sh --uninstall "$TAG"
	says 'takes no TAG'
	expect_status 2 remove_root
	says "nothing to remove: $ROOT$HOME_DIR/manifest is not there"
}

# These are found before anything is built.
test_prefix_read_only()
{
	mkdir "$TMP/t/disk"
	mount -t tmpfs -o ro tmpfs "$TMP/t/disk"
	expect_status 2 install_sh --out "$TMP/t/out" --prefix "$TMP/t/disk" "$TAG"
	says "^install.sh: error: cannot write to $TMP/t/disk: Read-only file system"
	says '^  next: use another --prefix'
	[[ ! -e $TMP/t/out ]] || fail "it has built"
}

test_build_of_another_user()
{
	mkdir "$TMP/t/out"
	chown nobody "$TMP/t/out"
	expect_status 2 install_sh --out "$TMP/t/out" --destdir "$ROOT" "$TAG"
	says "^install.sh: error: $TMP/t/out belongs to nobody: "
	says '^  next: as nobody: scripts/install.sh '
	[[ -z $(find "$TMP/t/out" -mindepth 1) ]] || fail "it has built"
	rmdir "$TMP/t/out"
}

test_command_of_others()
{
	echo mine >"$ROOT$PREFIX/bin/perf"
	expect_status 2 install_root --name perf
	says "^install.sh: error: $ROOT$PREFIX/bin/perf is there and not from this script"
	[[ $(<"$ROOT$PREFIX/bin/perf") = mine ]] || fail "it is gone"
	rm "$ROOT$PREFIX/bin/perf"
	echo mine >"$ROOT$PREFIX/bin/bpf-stamp"
	expect_status 2 install_root
	says "^install.sh: error: $ROOT$PREFIX/bin/bpf-stamp is there and not from this script"
	rm "$ROOT$PREFIX/bin/bpf-stamp"
}

test_install()
{
	local file

	expect_status 0 install_root
	[[ $(tail -n 2 <<<"$PRINTED" | head -n 1) = "$ROOT$PREFIX/bin/perf_bpfmeta" ]] || fail "no path in the end"
	[[ ${PRINTED##*$'\n'} = "perf version 6.16"* ]] || fail "no version in the end"
	[[ ! -e $REPO_DIR/out/$TAG/install ]] || fail "it has left what it has put together"
	for file in bin/perf libexec/perf-core/perf-archive libexec/perf-core/scripts/python/stackcollapse.py \
		libexec/perf-core/tests/shell/record_bpf_metadata.sh share/man/man1/perf-record.1 \
		share/doc/perf-tip/tips.txt; do
		[[ -s $ROOT$HOME_DIR/$file ]] || fail "no $HOME_DIR/$file"
	done
}

# The perf of the build is the one for the build's own tests.
test_build_stays()
{
	local before after

	need_installation
	before=$(stat -c '%i %Y' "$REPO_DIR/out/$TAG/perf")
	expect_status 0 "$SCRIPTS_DIR/apply-and-build.sh" "$TAG"
	! grep -q '^build perf' <<<"$PRINTED" || fail "it was built again"
	after=$(stat -c '%i %Y' "$REPO_DIR/out/$TAG/perf")
	[[ $before = "$after" ]] || fail "it is another one"
}

test_runs()
{
	need_installation
	expect_status 0 in_root 'perf_bpfmeta version'
	says '^perf version 6\.16'
	expect_status 0 in_root 'perf_bpfmeta check feature bpf-metadata'
	expect_status 1 in_root 'command -v perf'
}

# The tests call "perf", and do not find the distribution's.
test_perf_test()
{
	need_installation
	printf '%s\n' '#!/bin/sh' 'echo another perf; exit 1' >"$ROOT/usr/bin/perf"
	chmod 755 "$ROOT/usr/bin/perf"
	expect_status 0 in_root_alone 'perf_bpfmeta test -v bpf-metadata'
	says ': Ok'
	! grep -E ': (Skip|FAILED)' <<<"$PRINTED" || fail "not all of them"
	rm "$ROOT/usr/bin/perf"
}

test_man_pages()
{
	local command

	need_installation
	expect_status 0 in_root 'perf_bpfmeta record --help'
	says '^ +--bpf-metadata='
	! grep -F '.ft C' <<<"$PRINTED" || fail "it shows commands of roff"
	expect_status 0 in_root 'perf_bpfmeta --help'
	says '^ usage: perf '
	for command in record report script diff top inject; do
		expect_status 0 in_root "perf_bpfmeta help $command"
		says "^PERF-${command^^}\\(1\\)"
	done
}

test_tools()
{
	local dir tool

	need_installation
	for dir in "$REPO_DIR"/tools/*/; do
		tool=$(basename "$dir")
		expect_status 0 in_root "$tool --help"
		says "$tool"
		expect_status 0 in_root "man $tool"
		says "^${tool^^}\\(8\\)"
	done
}

# A script's "report" is a shell script that calls "perf".
test_scripts_and_tips()
{
	need_installation
	expect_status 0 in_root 'perf_bpfmeta script -l'
	says 'failed-syscalls'
	expect_status 0 in_root_alone 'perf_bpfmeta record -B -N -e cpu-clock seq 1000000 >/dev/null'
	expect_status 0 in_root 'perf_bpfmeta script report stackcollapse'
	says '^seq [0-9]+$'
	expect_status 0 in_root 'perf_bpfmeta report --stdio'
	says '^# \(Tip: '
	! grep 'Cannot load tips' <<<"$PRINTED" || fail "no tips"
}

# As on a terminal: bash-completion finds the file by the name of the command.
test_completion()
{
	need_installation
	# shellcheck disable=SC2016 # for that bash
	expect_status 0 in_root '. /usr/share/bash-completion/bash_completion; _completion_loader perf_bpfmeta; ((124 == $?)) || exit 1
		complete -p perf_bpfmeta; ! complete -p perf 2>/dev/null || exit 1
		COMP_WORDS=(perf_bpfmeta rep) COMP_CWORD=1 COMP_LINE="perf_bpfmeta rep" COMP_POINT=16; _perf; echo "${COMPREPLY[@]}"'
	says '^report$'
}

test_changed_files_stay()
{
	local tips=$ROOT$HOME_DIR/share/doc/perf-tip/tips.txt own=$ROOT$HOME_DIR/etc/perfconfig

	need_installation
	echo changed >>"$tips"
	echo '[record]' >"$own"
	expect_status 2 install_root
	says "changed: $tips"
	expect_status 1 remove_root
	says "changed: $tips"
	[[ -e $tips && -e $own && ! -e $ROOT$PREFIX/bin/perf_bpfmeta ]] || fail "not only the others are gone"
	expect_status 0 remove_root --force
	says "not installed and are kept: $own"
	[[ ! -e $tips && -e $own ]] || fail "not only that is gone"
	expect_status 2 remove_root
	rm -r "${ROOT:?}$HOME_DIR"
}

# Each replaces the one before.
test_replace()
{
	expect_status 0 install_root --name perf
	expect_status 0 in_root 'perf version && perf record --help'
	says '^ +--bpf-metadata='
	expect_status 0 install_root
	[[ ! -e $ROOT$PREFIX/bin/perf ]] || fail "the first is there"
	expect_status 0 in_root 'perf_bpfmeta version'
}

# A directory that was there before the copy stays, empty or not.
test_copied_to_another_root()
{
	mkdir "$TMP/t/copy" "$TMP/t/copy/usr" "$TMP/t/copy/usr/local" "$TMP/t/copy/usr/local/bin"
	expect_status 0 install_sh --destdir "$TMP/t/stage" "$TAG"
	tar -C "$TMP/t/stage" -c . | tar -C "$TMP/t/copy" -x --no-same-owner --no-overwrite-dir
	expect_status 0 install_sh --destdir "$TMP/t/copy" --uninstall
	[[ -d $TMP/t/copy/usr/local/bin && -z $(find "$TMP/t/copy" -not -type d) ]] || fail "$(find "$TMP/t/copy")"
	expect_status 0 install_sh --destdir "$TMP/t/stage" --uninstall
	[[ -z $(find "$TMP/t/stage" -mindepth 1) ]] || fail "$(find "$TMP/t/stage")"
}

test_nothing_is_left()
{
	need_installation
	expect_status 0 remove_root
	diff "$TMP/before" <(list_root) || fail "it left something, or took it away"
}

prepare_tests()
{
	if ((EUID)); then
		ktap_skip_all "only root can make a Debian"
		exit "$KSFT_SKIP"
	fi
	command -v mmdebstrap >/dev/null || ktap_exit_fail_msg "there is no mmdebstrap: apt-get install mmdebstrap"
	ROOT=$TMP/root
	chmod 755 "$TMP"
	"$SCRIPTS_DIR/apply-and-build.sh" --quiet "$TAG" >"$TMP/log" 2>&1 ||
		ktap_exit_fail_msg "there is no perf: $(<"$TMP/log")"
	make_root >"$TMP/log" 2>&1 || ktap_exit_fail_msg "there is no Debian: $(<"$TMP/log")"
	list_root >"$TMP/before"
}

run_tests
