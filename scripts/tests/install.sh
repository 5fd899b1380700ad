#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of install.sh: perf is built, installed into a clean Debian, run there with
# its man pages, scripts, tips, completion and "perf test bpf-metadata", and removed.
# The Debian is made by mmdebstrap, from the archive that apt has.  Needs root, and
# takes two minutes where perf was built before.
#
#	scripts/tests/install.sh
#
# The tests are run in the order in which they are here: they have one installation.
# Prints KTAP.  Exit status: 0 passed, 1 a test failed, 2 could not run.

set -uo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
REPO_DIR=${SCRIPTS_DIR%/*}
TAG=v6.16
PREFIX=/usr/local
HOME_DIR=$PREFIX/lib/perf-bpf-metadata
# BPF programs belong to the machine: so does this lock.
MACHINE_LOCK=/sys/kernel

case ${1:-} in
-h|--help)
	sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
	exit 0 ;;
esac

die()
{
	printf 'install.sh: error: %s\n' "$1" >&2
	exit 2
}

cleanup()
{
	! mountpoint -q "$TOP/disk" || umount "$TOP/disk"
	rm -rf -- "$TOP"
}

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

# What it mounts goes with it.
# shellcheck disable=SC2016 # the variables are of the shell within
in_root()
{
	unshare --mount --propagation private bash -c '
		mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys" || exit 99
		mountpoint -q "$1/sys/fs/bpf" || mount -t bpf bpf "$1/sys/fs/bpf" || exit 99
		exec env -i HOME=/root TERM=dumb LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			chroot "$1" bash -c "$2"' in_root "$ROOT" "cd /tmp && $1"
}

in_root_alone()
(
	exec {fd}< "$MACHINE_LOCK"
	flock "$fd" && in_root "$1"
)

# All but what perf and man write when they run
list_root()
{
	find "$ROOT" \( -path "$ROOT/root" -o -path "$ROOT/tmp" -o -path "$ROOT/var/cache" \) -prune -o \
		-printf '%P %M %u %s %l\n' | sort
}

# --- what a test calls --------------------------------------------------------

fail()
{
	echo "FAILED: $1"
	exit 1
}

# Run it, with its output in OUTPUT and in the log
expect()
{
	local status=$1 actual=0

	shift
	OUTPUT=$("$@" 2>&1) || actual=$?
	printf '%s\n' "+ $*" "$OUTPUT"
	((actual == status)) || fail "$1 ended with status $actual, not $status"
}

says()
{
	grep -qE -e "$1" <<< "$OUTPUT" || fail "no '$1' in the output"
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

# --- the tests ----------------------------------------------------------------

test_usage()
{
	expect 0 install_sh --help
	says '^usage: scripts/install.sh'
	expect 2 install_sh
	says 'one TAG is needed'
	expect 2 install_sh v0.0
	says "unknown tag 'v0.0'"
	expect 2 install_sh --name 'a b' "$TAG"
	says "^install.sh: error: --name a b: "
	expect 2 install_sh --name perf-mine "$TAG"
	says "^install.sh: error: --name perf-mine: "
	expect 2 install_sh --prefix '/a;b' "$TAG"
	says '^install.sh: error: --prefix /a;b: '
	expect 2 install_sh --uninstall "$TAG"
	says 'takes no TAG'
	expect 2 remove_root
	says "nothing to remove: $ROOT$HOME_DIR/manifest is not there"
}

# These are found before anything is built.
test_prefix_read_only()
{
	mount -t tmpfs -o ro tmpfs "$TOP/disk"
	expect 2 install_sh --out "$TOP/out" --prefix "$TOP/disk" "$TAG"
	umount "$TOP/disk"
	says "^install.sh: error: cannot write to $TOP/disk: Read-only file system"
	says '^  next: use another --prefix'
	[[ ! -e $TOP/out ]] || fail "it has built"
}

test_build_of_another_user()
{
	mkdir "$TOP/out"
	chown nobody "$TOP/out"
	expect 2 install_sh --out "$TOP/out" --destdir "$ROOT" "$TAG"
	says "^install.sh: error: $TOP/out belongs to nobody: "
	says '^  next: as nobody: scripts/install.sh '
	[[ -z $(find "$TOP/out" -mindepth 1) ]] || fail "it has built"
	rmdir "$TOP/out"
}

test_command_of_others()
{
	echo mine > "$ROOT$PREFIX/bin/perf"
	expect 2 install_root --name perf
	says "^install.sh: error: $ROOT$PREFIX/bin/perf is there and not from this script"
	[[ $(< "$ROOT$PREFIX/bin/perf") = mine ]] || fail "it is gone"
	rm "$ROOT$PREFIX/bin/perf"
}

test_install()
{
	local file

	expect 0 install_root
	[[ $(tail -n 2 <<< "$OUTPUT" | head -n 1) = "$ROOT$PREFIX/bin/perf_bpfmeta" ]] || fail "no path in the end"
	[[ ${OUTPUT##*$'\n'} = "perf version 6.16"* ]] || fail "no version in the end"
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

	before=$(stat -c '%i %Y' "$REPO_DIR/out/$TAG/perf")
	expect 0 "$SCRIPTS_DIR/apply-and-build.sh" "$TAG"
	! grep -q '^build perf' <<< "$OUTPUT" || fail "it was built again"
	after=$(stat -c '%i %Y' "$REPO_DIR/out/$TAG/perf")
	[[ $before = "$after" ]] || fail "it is another one"
}

test_runs()
{
	expect 0 in_root 'perf_bpfmeta version'
	says '^perf version 6\.16'
	expect 0 in_root 'perf_bpfmeta check feature bpf-metadata'
	expect 1 in_root 'command -v perf'
}

# The tests call "perf", and do not find the distribution's.
test_perf_test()
{
	printf '%s\n' '#!/bin/sh' 'echo another perf; exit 1' > "$ROOT/usr/bin/perf"
	chmod 755 "$ROOT/usr/bin/perf"
	expect 0 in_root_alone 'perf_bpfmeta test -v bpf-metadata'
	says ': Ok'
	! grep -E ': (Skip|FAILED)' <<< "$OUTPUT" || fail "not all of them"
	rm "$ROOT/usr/bin/perf"
}

test_man_pages()
{
	local command

	expect 0 in_root 'perf_bpfmeta record --help'
	says '^ +--bpf-metadata='
	! grep -F '.ft C' <<< "$OUTPUT" || fail "it shows commands of roff"
	expect 0 in_root 'perf_bpfmeta --help'
	says '^ usage: perf '
	for command in record report script diff top inject; do
		expect 0 in_root "perf_bpfmeta help $command"
		says "^PERF-${command^^}\\(1\\)"
	done
}

# A script's "report" is a shell script that calls "perf".
test_scripts_and_tips()
{
	expect 0 in_root 'perf_bpfmeta script -l'
	says 'failed-syscalls'
	expect 0 in_root_alone 'perf_bpfmeta record -B -N -e cpu-clock seq 1000000 > /dev/null'
	expect 0 in_root 'perf_bpfmeta script report stackcollapse'
	says '^seq [0-9]+$'
	expect 0 in_root 'perf_bpfmeta report --stdio'
	says '^# \(Tip: '
	! grep 'Cannot load tips' <<< "$OUTPUT" || fail "no tips"
}

# As on a terminal: bash-completion finds the file by the name of the command.
test_completion()
{
	# shellcheck disable=SC2016 # for that bash
	expect 0 in_root '. /usr/share/bash-completion/bash_completion; _completion_loader perf_bpfmeta; ((124 == $?)) || exit 1
		complete -p perf_bpfmeta; ! complete -p perf 2>/dev/null || exit 1
		COMP_WORDS=(perf_bpfmeta rep) COMP_CWORD=1 COMP_LINE="perf_bpfmeta rep" COMP_POINT=16; _perf; echo "${COMPREPLY[@]}"'
	says '^report$'
}

test_changed_files_stay()
{
	local tips=$ROOT$HOME_DIR/share/doc/perf-tip/tips.txt own=$ROOT$HOME_DIR/etc/perfconfig

	echo changed >> "$tips"
	echo '[record]' > "$own"
	expect 2 install_root
	says "changed: $tips"
	expect 1 remove_root
	says "changed: $tips"
	[[ -e $tips && -e $own && ! -e $ROOT$PREFIX/bin/perf_bpfmeta ]] || fail "not only the others are gone"
	expect 0 remove_root --force
	says "not installed and are kept: $own"
	[[ ! -e $tips && -e $own ]] || fail "not only that is gone"
	expect 2 remove_root
	rm -r "${ROOT:?}$HOME_DIR"
}

# Each replaces the one before.
test_replace()
{
	expect 0 install_root --name perf
	expect 0 in_root 'perf version && perf record --help'
	says '^ +--bpf-metadata='
	expect 0 install_root
	[[ ! -e $ROOT$PREFIX/bin/perf ]] || fail "the first is there"
	expect 0 in_root 'perf_bpfmeta version'
}

# A directory that was there before the copy stays, empty or not.
test_copied_to_another_root()
{
	mkdir "$TOP/copy" "$TOP/copy/usr" "$TOP/copy/usr/local" "$TOP/copy/usr/local/bin"
	expect 0 install_sh --destdir "$TOP/stage" "$TAG"
	tar -C "$TOP/stage" -c . | tar -C "$TOP/copy" -x --no-same-owner --no-overwrite-dir
	expect 0 install_sh --destdir "$TOP/copy" --uninstall
	[[ -d $TOP/copy/usr/local/bin && -z $(find "$TOP/copy" -not -type d) ]] || fail "$(find "$TOP/copy")"
	expect 0 install_sh --destdir "$TOP/stage" --uninstall
	[[ -z $(find "$TOP/stage" -mindepth 1) ]] || fail "$(find "$TOP/stage")"
}

test_nothing_is_left()
{
	expect 0 remove_root
	diff "$TOP/before" <(list_root) || fail "it left something, or took it away"
}

# --- run ----------------------------------------------------------------------

list_tests()
{
	sed -n 's/^test_\([a-z_]*\)()$/\1/p' "${BASH_SOURCE[0]}"
}

# In a shell of its own, in which the first command that fails ends it; not left of
# || or in an if, where bash would not care for errexit
run_alone()
(
	set -eE
	trap 'echo "FAILED: $BASH_COMMAND (status $?, in ${FUNCNAME[*]})"' ERR
	"test_$1"
)

run_test()
{
	local status

	run_alone "$2" > "$TOP/test.log" 2>&1
	status=$?
	if ((status == 0)); then
		echo "ok $1 $2"
	else
		sed 's/^/# /' "$TOP/test.log"
		echo "not ok $1 $2"
		FAILED=$((FAILED + 1))
	fi
}

run_tests()
{
	local name number=0

	echo "KTAP version 1"
	echo "1..$#"
	for name; do
		run_test $((++number)) "$name"
	done
	echo "# Totals: pass:$((number - FAILED)) fail:$FAILED skip:0"
}

prepare()
{
	((EUID == 0)) || die "only root can make a Debian: run it as root"
	command -v mmdebstrap > /dev/null || die "there is no mmdebstrap; as root: apt-get install mmdebstrap"
	"$SCRIPTS_DIR/apply-and-build.sh" --quiet "$TAG" > "$TOP/log" 2>&1 || die "there is no perf: $(< "$TOP/log")"
	make_root > "$TOP/log" 2>&1 || die "cannot make a Debian: $(< "$TOP/log")"
	mkdir "$TOP/disk"
	list_root > "$TOP/before"
}

TOP=$(mktemp -d "${TMPDIR:-/tmp}/pbm-install.XXXXXX") || exit 2
chmod 755 "$TOP"
ROOT=$TOP/root
trap cleanup EXIT
trap 'exit 2' INT TERM
FAILED=0
prepare
mapfile -t TESTS < <(list_tests)
run_tests "${TESTS[@]}"
((FAILED == 0))
