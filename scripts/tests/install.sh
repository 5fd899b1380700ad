#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of install.sh. Some tests install perf and the programs of tools/ as a package into a clean
# Debian, try them there with man pages, scripts, tips, completion and "perf test bpf-metadata", and
# remove the package. Other tests install into a directory, and uninstall there. mmdebstrap makes
# the Debian from the archive that apt uses.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
. "$SCRIPTS_DIR/lib/debian.sh"

REPO_DIR=${SCRIPTS_DIR%/*}
TAG=${PBM_TAG:-v6.16}
PREFIX=/usr/local
HOME_DIR=$PREFIX/lib/perf-bpf-metadata

# --- the clean Debian ---------------------------------------------------------

in_root()
{
	debian__run "$ROOT" "cd /tmp && $1"
}

# Take the lock of the machine, because BPF programs belong to the machine, not to the clean Debian.
in_root_alone()
(
	exec {fd}</sys/kernel
	flock "$fd" && in_root "$1"
)

# Print all files but those that apt, perf and man write when they run. The sizes of directories are
# left out, because directories that have grown don't shrink again.
list_root()
{
	find "$ROOT" \( -path "$ROOT/root" -o -path "$ROOT/tmp" -o -path "$ROOT/var/cache" -o -path "$ROOT/var/log" \
		-o -path "$ROOT/var/lib/apt" -o -path "$ROOT/var/lib/dpkg" \) -prune -o \
		-type d -printf '%P %M %u\n' -o -printf '%P %M %u %s %l\n' | sort
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

install_dest()
{
	install_sh --destdir "$DEST" "$@" "$TAG"
}

remove_dest()
{
	install_sh --destdir "$DEST" --uninstall "$@"
}

# The tests share one package in $ROOT, and one installation in $DEST. A test that removes one of
# them leaves nothing of it behind.
need_package()
{
	[[ ! -e $ROOT/usr/bin/perf_bpfmeta ]] || return 0
	install_sh --deb "$TAG" && cp "$REPO_DIR/out/$TAG"/perf-bpfmeta_*.deb "$ROOT/root/x.deb" &&
		in_root "apt-get -q update && apt-get -q -y install --no-install-recommends \\
			\$(dpkg-deb -f /root/x.deb Depends | sed 's/([^)]*)//g; s/,//g')" || return
	list_root >"$TMP/before"
	in_root 'apt-get -q -y install --no-install-recommends /root/x.deb'
}

need_installation()
{
	[[ -e $DEST$PREFIX/bin/perf_bpfmeta ]] || install_sh --destdir "$DEST" "$TAG"
}

# --- the tests ----------------------------------------------------------------

# refused ERROR OPTION...: fail unless install.sh ends with status 2 and this error
refused()
{
	expect_status 2 install_sh "${@:2}"
	says "^install.sh: error: $1"
}

test_usage()
{
	refused 'one TAG is needed'
	refused "unknown tag 'v0.0'" v0.0
	refused '--name a b: ' --name 'a b' "$TAG"
	refused '--name perf-mine: ' --name perf-mine "$TAG"
	refused '--name bpf-stamp: another program has this name' --name bpf-stamp "$TAG"
	refused '--prefix /a;b: ' --prefix '/a;b' "$TAG"
	refused '--uninstall takes no TAG' --uninstall "$TAG"
	refused '--deb excludes --prefix' --deb --prefix /opt "$TAG"
	refused "nothing to remove: $DEST$HOME_DIR/manifest is not there" --destdir "$DEST" --uninstall
}

test_command_of_the_same_name_is_not_overwritten()
{
	local name

	for name in perf bpf-stamp; do
		echo mine >"$DEST$PREFIX/bin/$name"
		refused "$DEST$PREFIX/bin/$name is there and not from this script" --destdir "$DEST" --name perf "$TAG"
		[[ $(<"$DEST$PREFIX/bin/$name") = mine ]] || fail "the other $name is gone"
		ln -sf /nowhere "$DEST$PREFIX/bin/$name"
		refused "$DEST$PREFIX/bin/$name is there and not from this script" --destdir "$DEST" --name perf "$TAG"
		rm "$DEST$PREFIX/bin/$name"
	done
}

# The perf in out/, which runs from there, must not be built again.
test_install()
{
	local file before

	before=$(stat -c '%i %Y' "$REPO_DIR/out/$TAG/perf")
	expect_status 0 install_dest
	[[ $before = "$(stat -c '%i %Y' "$REPO_DIR/out/$TAG/perf")" ]] || fail "perf was built again"
	[[ $(tail -n 2 <<<"$PRINTED" | head -n 1) = "$DEST$PREFIX/bin/perf_bpfmeta" ]] || fail "no path at the end"
	[[ ${PRINTED##*$'\n'} = "perf version ${TAG#v}"* ]] || fail "no version at the end"
	[[ ! -e $REPO_DIR/out/$TAG/install ]] || fail "out/$TAG/install is left"
	for file in bin/perf libexec/perf-core/perf-archive libexec/perf-core/scripts/python/stackcollapse.py \
		libexec/perf-core/tests/shell/record_bpf_metadata.sh share/man/man1/perf-record.1 \
		share/doc/perf-tip/tips.txt; do
		[[ -s $DEST$HOME_DIR/$file ]] || fail "no $HOME_DIR/$file"
	done
}

# perf's shell tests call "perf". They must find this perf instead of the distribution's.
test_perf_test()
{
	need_package
	printf '%s\n' '#!/bin/sh' 'echo another perf; exit 1' >"$ROOT/usr/bin/perf"
	chmod 755 "$ROOT/usr/bin/perf"
	expect_status 0 in_root_alone 'perf_bpfmeta test -v bpf-metadata'
	says ': Ok'
	! grep -E ': (Skip|FAILED)' <<<"$PRINTED" || fail "not all tests have passed"
	rm "$ROOT/usr/bin/perf"
	expect_status 0 in_root 'perf_bpfmeta check feature bpf-metadata'
	expect_status 1 in_root 'command -v perf'
}

test_man_pages()
{
	local command page tool

	need_package
	expect_status 0 in_root 'perf_bpfmeta record --help'
	says '^ +--bpf-metadata='
	! grep -F '.ft C' <<<"$PRINTED" || fail "the page shows commands of roff"
	for command in report inject; do
		expect_status 0 in_root "perf_bpfmeta help $command"
		says "^PERF-${command^^}\\(1\\)"
	done
	for page in "$REPO_DIR"/tools/man/*; do
		page=$(basename "$page")
		tool=${page%.*}
		expect_status 0 in_root "$tool --help && man $tool"
		says "^${tool^^}\\(${page##*.}\\)"
	done
}

# "perf script report NAME" runs a shell script that calls "perf".
test_scripts_and_tips()
{
	need_package
	expect_status 0 in_root 'perf_bpfmeta script -l'
	says 'failed-syscalls'
	expect_status 0 in_root_alone 'perf_bpfmeta record -B -N -e cpu-clock seq 1000000 >/dev/null'
	expect_status 0 in_root 'perf_bpfmeta script report stackcollapse'
	says '^seq [0-9]+$'
	expect_status 0 in_root 'perf_bpfmeta report --stdio'
	says '^# \(Tip: '
	! grep 'Cannot load tips' <<<"$PRINTED" || fail "perf has no tips"
}

# As on a terminal: bash-completion finds the file by the name of the command.
test_completion()
{
	need_package
	# shellcheck disable=SC2016 # for that bash
	expect_status 0 in_root '. /usr/share/bash-completion/bash_completion; _completion_loader perf_bpfmeta; ((124 == $?)) || exit 1
		complete -p perf_bpfmeta; ! complete -p perf 2>/dev/null || exit 1
		COMP_WORDS=(perf_bpfmeta rep) COMP_CWORD=1 COMP_LINE="perf_bpfmeta rep" COMP_POINT=16; _perf; echo "${COMPREPLY[@]}"'
	says '^report$'
}

test_package_is_removed()
{
	need_package
	expect_status 0 in_root 'apt-get -q -y purge perf-bpfmeta'
	diff "$TMP/before" <(list_root) || fail "the purge left files, or removed other files"
}

test_other_files_stay()
{
	local own=$DEST$HOME_DIR/etc/perfconfig

	need_installation
	echo '[record]' >"$own"
	expect_status 0 remove_dest
	says "not installed and are kept: $own"
	[[ -e $own && ! -e $DEST$PREFIX/bin/perf_bpfmeta ]] || fail "another file is gone, or perf is there"
	expect_status 2 remove_dest
	rm -r "${DEST:?}$HOME_DIR"
}

# A directory that was there before the copy is kept, empty or not.
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

# Each installation replaces the previous one.
test_removal_leaves_nothing()
{
	need_installation
	expect_status 0 install_dest --name perf
	[[ -x $DEST$PREFIX/bin/perf && ! -e $DEST$PREFIX/bin/perf_bpfmeta ]] || fail "the first installation is still there"
	expect_status 0 remove_dest
	diff <(printf '%s\n' usr usr/local usr/local/bin usr/local/lib) <(find "$DEST" -mindepth 1 -printf '%P\n' | sort) ||
		fail "the removal left files, or removed other files"
}

prepare_tests()
{
	if ((EUID)); then
		ktap_skip_all "only root can install Debian into a directory"
		exit "$KSFT_SKIP"
	fi
	command -v mmdebstrap >/dev/null || ktap_exit_fail_msg "there is no mmdebstrap: apt-get install mmdebstrap"
	ROOT=$TMP/root DEST=$TMP/dest
	mkdir -p "$DEST$PREFIX/bin" "$DEST$PREFIX/lib"
	chmod 755 "$TMP"
	"$SCRIPTS_DIR/apply-and-build.sh" --quiet "$TAG" >"$TMP/log" 2>&1 ||
		ktap_exit_fail_msg "perf does not build: $(<"$TMP/log")"
	debian__make_root "$ROOT" '' apt man-db,bash-completion,mount >"$TMP/log" 2>&1 || ktap_exit_fail_msg "cannot install Debian: $(<"$TMP/log")"
}

run_tests
