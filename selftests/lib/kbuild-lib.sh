# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by the tests of Kbuild.snippet. They source this file instead of test-lib.sh.

# shellcheck source=selftests/lib/test-lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/test-lib.sh"

SNIPPET=$SELFTESTS/../Kbuild.snippet
# The first lines of each source that write_source writes
SOURCE_HEAD=

# The variables of the caller for make, the build and git must not change the tests.
isolate()
{
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES O V CLANG SOURCE_DATE_EPOCH BPF_METADATA_BEGAN
	unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
	export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
	# git must not find a checkout above $TMP.
	export GIT_CEILING_DIRECTORIES=$TMP
}

need()
{
	local program

	for program; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}

# enter_new_project DIRECTORY NAME...: make a directory with a program NAME.bpf.c for each NAME,
# and with a makefile. Standard input has the variables of the makefile. Change to the directory.
enter_new_project()
{
	local dir=$1 name

	shift
	need make clang git
	isolate
	rm -rf "$dir"
	mkdir -p "$dir"
	cd "$dir"
	for name; do
		write_source "$name"
	done
	{
		cat
		echo "include $SNIPPET"
		echo "all: ${*/%/.bpf.o}"
	} >Makefile
}

write_source()
{
	{
		echo "$SOURCE_HEAD"
		echo "__attribute__((section(\"socket\"), used)) int $1(void *ctx) { (void)ctx; return 1; }"
	} >"$1.bpf.c"
}

build()
{
	make "$@" >"$TMP/make" 2>&1 || fail "make $*: $(cat "$TMP/make")"
	cat "$TMP/make"
}

# must_not_build TEXT ARGUMENT...: fail unless make fails and says TEXT
must_not_build()
{
	local text=$1

	shift
	if make "$@" >"$TMP/make" 2>&1; then
		fail "make $* succeeds, and should not"
	fi
	cat "$TMP/make"
	grep -q -F -e "$text" "$TMP/make" || fail "make $* does not say '$text'"
}

# stamped NAME KEY: print the value of KEY in the header that stamps object NAME, as in C source
stamped()
{
	sed -n "s/^const char bpf_metadata_$2\[].* = \"\(.*\)\";\$/\1/p" "$1.bpf.metadata.h"
}

# want_stamped NAME KEY=VALUE...: fail unless object NAME has these values; an empty one means that there is
# no key
want_stamped()
{
	local pair got

	for pair in "${@:2}"; do
		got=$(stamped "$1" "${pair%%=*}")
		[[ $got = "${pair#*=}" ]] || fail "$1 has ${pair%%=*}='$got', not $pair"
	done
}

commit_all()
{
	git add -A
	git commit -q -m "$1"
}

# must_make OBJECTS ARGUMENT...: fail unless make makes just these objects
must_make()
{
	local want=$1

	shift
	build "$@"
	sed -n 's/^ *BPF *//p' "$TMP/make" | sort | paste -s -d ' ' >"$TMP/got"
	echo "$want" >"$TMP/want"
	same "what make $* makes" "$TMP/want" "$TMP/got"
}
