#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Kbuild.snippet: what it puts into BPF objects arrives in recordings, and changes
# nothing else about them.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="it compiles; perf_event.sh and loaders.sh load what is compiled so"

SNIPPET=$SELFTESTS/../Kbuild.snippet
# What each source begins with
SOURCE_HEAD=

# Nothing of the caller's make, build or git is seen by those of the tests.
isolate()
{
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES O V CLANG SOURCE_DATE_EPOCH
	unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
	export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
	# A checkout above $TMP is none of these tests' business.
	export GIT_CEILING_DIRECTORIES=$TMP
}

need()
{
	local program

	for program; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}

# enter_new_project DIRECTORY NAME...: make a directory with a program NAME.bpf.c for each
# NAME and a makefile, whose variables are read from standard input, and go there
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

must_not_build()
{
	local text=$1

	shift
	if make "$@" >"$TMP/make" 2>&1; then
		fail "make $* builds"
	fi
	cat "$TMP/make"
	grep -q -F -e "$text" "$TMP/make" || fail "make $* does not say '$text'"
}

# What perf records of an object, sorted, into $TMP/got
record_set()
(
	trap release EXIT
	hold "$PWD/$1"
	record "$TMP/data" </dev/null
	show "$TMP/data"
	values entries "$TMP/data.script" "$(symbol_of 0)" | sort >"$TMP/got"
)

want_set()
{
	printf '%s\t%s\n' "$@" | sort >"$TMP/want"
	same "the set" "$TMP/want" "$TMP/got"
}

# The value of a key of an object, as the source of it
stamped()
{
	sed -n "s/^const char bpf_metadata_$2\[].* = \(\".*\"\);\$/\1/p" "$1.bpf.metadata.h"
}

want_stamped()
{
	local got

	got=$(stamped "$1" "$2")
	[[ $got = "$3" ]] || fail "$2 of $1 is '$got', not '$3'"
}

commit_all()
{
	git add -A
	git commit -q -m "$1"
}

test_values_arrive_whatever_their_characters()
{
	enter_new_project "$TMP/p" a <<-'END'
		SOURCE_DATE_EPOCH := 86400
		BPF_METADATA_version := 1.4.0
		BPF_METADATA_commit := 0123abcd
		BPF_METADATA_KEYS := owner odd empty
		BPF_METADATA_owner := net team <net@example.org>
		BPF_METADATA_empty :=
		define BPF_METADATA_odd
		"q" \b\ 'a' $$x $${y} # é ??/ %d `false` ; , ( ) \n
		second line  !
		endef
	END
	build
	record_set a
	# shellcheck disable=SC2016 # what looks like shell is text
	want_set \
		build_date '"1970-01-02T00:00:00Z"' \
		commit '"0123abcd"' \
		empty '""' \
		odd '"\"q\" \\b\\ '"'a'"' $x ${y} # é ??/ %d `false` ; , ( ) \\n\u000asecond line  !"' \
		owner '"net team <net@example.org>"' \
		version '"1.4.0"'
}

test_bpftool_loads_and_shows_them()
{
	local pin

	mountpoint -q /sys/fs/bpf || skip "/sys/fs/bpf is no BPF file system"
	enter_new_project "$TMP/p" a <<-'END'
		SOURCE_DATE_EPOCH := 0
		BPF_METADATA_version := 1.4.0
	END
	build
	pin=/sys/fs/bpf/pbm-snippet-$BASHPID
	"$BPFTOOL" prog load a.bpf.o "$pin"
	"$BPFTOOL" -j prog show pinned "$pin" >"$TMP/shown" || { rm "$pin"; fail "bpftool prog show"; }
	rm "$pin"
	python3 -c 'import json, sys; print(json.load(sys.stdin)["metadata"])' <"$TMP/shown" >"$TMP/got"
	echo "{'build_date': '1970-01-01T00:00:00Z', 'version': '1.4.0'}" >"$TMP/want"
	same "metadata of bpftool" "$TMP/want" "$TMP/got"
}

# The name, with the tag, and the instructions, except where in which map a variable is
program_of()
(
	trap release EXIT
	hold "$1"
	symbol_of 0
	"$BPFTOOL" prog dump xlated id "${HELD_IDS[0]}" | sed 's/map\[id:[0-9]*\]\[0\]+[0-9]*/a variable/'
)

test_instructions_and_tag_are_the_same()
{
	local name

	enter_new_project "$TMP/p" <<-END
		BPF_METADATA_version := 1.4.0
		BPF_SRC_DIR := $SELFTESTS/progs/
		BPF_CFLAGS := $(cat "$OUTPUT/bpf-cflags")
	END
	for name in none two_sections functions shared; do
		build "$name.bpf.o"
		[[ -n $(stamped "$name" build_date) ]] || fail "$name has no stamp"
		program_of "$OUTPUT/$name" >"$TMP/want"
		program_of "$PWD/$name" >"$TMP/got"
		grep -q exit "$TMP/want" || fail "$name: no instructions"
		same "$name" "$TMP/want" "$TMP/got"
	done
}

test_source_wins()
{
	SOURCE_HEAD=$(cat <<-'END'
		#define KEY(x) bpf_metadata_##x
		const char bpf_metadata_version[] __attribute__((section(".rodata"))) = "own";
		__attribute__((used)) static const volatile int KEY(owner) = 7;
	END
	)
	enter_new_project "$TMP/p" a <<-'END'
		SOURCE_DATE_EPOCH := 0
		BPF_METADATA_version := 1.4.0
		BPF_METADATA_KEYS := owner team
		BPF_METADATA_owner := o
		BPF_METADATA_team := t
	END
	build
	record_set a
	want_set version '"own"' owner 7 team '"t"' build_date '"1970-01-01T00:00:00Z"'
}

# Neither do names that are longer, nor what is not compiled.
test_comments_and_strings_of_the_source_do_not_count()
{
	SOURCE_HEAD=$(cat <<-'END'
		/* bpf_metadata_version */ // bpf_metadata_version
		#ifdef NOT_DEFINED
		const char bpf_metadata_version[] = "own";
		#endif
		const char *const text = "\"bpf_metadata_version";
		const char quote = '"'; const char bpf_metadata_version2[] = "\\"; const char other = '"';
	END
	)
	enter_new_project "$TMP/p" a <<-'END'
		SOURCE_DATE_EPOCH := 0
		BPF_METADATA_version := 1.4.0
	END
	build
	record_set a
	want_set version '"1.4.0"' version2 '"\\"' build_date '"1970-01-01T00:00:00Z"'
}

# The same without -g in the author's flags, with strict C, and where the source has
# read-only data of its own.
test_each_clang()
{
	local clang nr=0

	SOURCE_HEAD=$(cat <<-'END'
		const volatile int limit __attribute__((section(".rodata"))) = 3;
		static const volatile int other = 4;
		__attribute__((section("socket"))) int b(void *ctx) { return ctx ? limit : other; }
	END
	)
	for clang in $(compgen -c clang- | grep -x 'clang-[0-9]*' | sort -u -V); do
		((${clang#clang-} >= 14)) || continue
		enter_new_project "$TMP/$clang" a <<-END
			BPF_CLANG := $clang
			BPF_CFLAGS := -std=c99 -Wall -Wextra -Werror
			SOURCE_DATE_EPOCH := 0
			BPF_METADATA_version := ??/1
		END
		build
		record_set a
		want_set version '"??/1"' build_date '"1970-01-01T00:00:00Z"'
		echo "$clang"
		nr=$((nr + 1))
	done
	((nr)) || fail "no clang-NUMBER from 14 up is installed"
	((nr > 1)) || skip "$clang works, no other clang from 14 up is installed"
}

test_version_and_commit_are_those_of_git()
{
	enter_new_project "$TMP/p" a <<-'END'
		BPF_METADATA_version := given
		BPF_METADATA_commit := given
	END
	printf '%s\n' '*.o' '*.h' '.*.d' >.gitignore
	build
	want_stamped a version '"given"'
	want_stamped a commit '"given"'

	git init -q
	build
	want_stamped a commit '"given"'

	commit_all one
	build
	want_stamped a version '"given"'
	want_stamped a commit "\"$(git rev-parse HEAD)\""

	git tag v1.0
	build
	want_stamped a version '"v1.0"'

	git commit -q --allow-empty -m two
	build
	want_stamped a version "\"v1.0-1-g$(git rev-parse --short HEAD)\""
	want_stamped a commit "\"$(git rev-parse HEAD)\""

	echo >>a.bpf.c
	build
	want_stamped a version "\"v1.0-1-g$(git rev-parse --short HEAD)-dirty\""
	build BPF_METADATA_KEYS='version commit'
	want_stamped a version '"given"'
	want_stamped a commit '"given"'
}

# Such as a tarball in the checkout of a package
test_foreign_git_tree_is_not_asked()
{
	enter_new_project "$TMP/p/inner" a </dev/null
	cd ..
	echo inner >.gitignore
	git init -q
	commit_all one
	git tag v9
	cd inner
	must_not_build "set BPF_METADATA_version"
	build BPF_METADATA_version=1
	want_stamped a version '"1"'
	want_stamped a commit ""
}

test_what_cannot_be_is_refused()
{
	enter_new_project "$TMP/p" a </dev/null
	must_not_build "set BPF_METADATA_version"
	must_not_build "BPF_METADATA_owner is not set" BPF_METADATA_version=1 BPF_METADATA_KEYS=owner
	must_not_build "a-b is no name" BPF_METADATA_version=1 BPF_METADATA_KEYS=a-b BPF_METADATA_a-b=1
	must_not_build "SOURCE_DATE_EPOCH=soon" BPF_METADATA_version=1 SOURCE_DATE_EPOCH=soon
	[[ ! -e a.bpf.o ]] || fail "there is an object"
	# It would be a section with two sets of flags.
	SOURCE_HEAD='int limit __attribute__((section(".rodata"))) = 3;'
	write_source a
	must_not_build "section type conflict" BPF_METADATA_version=1
}

test_build_date_is_the_time_of_the_compilation()
{
	local before after got

	enter_new_project "$TMP/p" a <<<'BPF_METADATA_version := 1'
	before=$(date +%s)
	build
	after=$(date +%s)
	got=$(stamped a build_date)
	got=$(date -d "${got//\"/}" +%s)
	((before <= got && got <= after)) || fail "$got is not from $before to $after"
}

test_builds_are_reproducible()
{
	local dir

	for dir in one two; do
		enter_new_project "$TMP/$dir" a <<-'END'
			BPF_METADATA_version := 1
			BPF_CFLAGS := -ffile-prefix-map=$(CURDIR)=.
		END
		build SOURCE_DATE_EPOCH=1700000000
	done
	cmp "$TMP/one/a.bpf.o" "$TMP/two/a.bpf.o"
	want_stamped a build_date '"2023-11-14T22:13:20Z"'
	build -B SOURCE_DATE_EPOCH=1700000000
	cmp "$TMP/one/a.bpf.o" a.bpf.o
	build SOURCE_DATE_EPOCH=1700000001
	if cmp -s "$TMP/one/a.bpf.o" a.bpf.o; then
		fail "another date does not show"
	fi
}

must_make()
{
	local want=$1

	shift
	build "$@"
	sed -n 's/^ *BPF *//p' "$TMP/make" | sort | paste -s -d ' ' >"$TMP/got"
	echo "$want" >"$TMP/want"
	same "what make $* makes" "$TMP/want" "$TMP/got"
}

test_objects_are_made_again_when_they_must()
{
	SOURCE_HEAD='#include "a.h"'
	enter_new_project "$TMP/p" a <<<'BPF_METADATA_version ?= 1'
	SOURCE_HEAD=
	write_source b
	sed -i 's/^all:.*/& b.bpf.o/' Makefile
	echo '#define A 1' >a.h
	must_make "a.bpf.o b.bpf.o"
	must_make ""
	must_make "a.bpf.o" -W a.h
	must_make "b.bpf.o" -W b.bpf.c
	must_make "a.bpf.o b.bpf.o" BPF_METADATA_version=2
	must_make "" BPF_METADATA_version=2
	must_make "a.bpf.o b.bpf.o" BPF_METADATA_version=2 SOURCE_DATE_EPOCH=5
	must_make "" BPF_METADATA_version=2 SOURCE_DATE_EPOCH=5
	rm a.bpf.o
	must_make "a.bpf.o" BPF_METADATA_version=2 SOURCE_DATE_EPOCH=5
}

# Kbuild decides where things are, has rules for %.o, and reads no variable of ours.
test_kbuild()
{
	local dir kbuild=

	for dir in /usr/src/linux-headers-*; do
		[[ ! -f $dir/.config ]] || kbuild=$dir
	done
	[[ -n $kbuild ]] || skip "no linux-headers in /usr/src"
	enter_new_project "$TMP/p" a <<-'END'
		BPF_METADATA_version := 1.4.0
		always-y += a.bpf.o
	END
	sed -i '/^all:/d' Makefile
	need gcc
	build -C "$kbuild" M="$PWD" SOURCE_DATE_EPOCH=0
	record_set a
	want_set version '"1.4.0"' build_date '"1970-01-01T00:00:00Z"'
	build -C "$kbuild" M="$PWD" SOURCE_DATE_EPOCH=0
	if grep -e a.bpf.o "$TMP/make"; then
		fail "it is made twice"
	fi
	build -C "$kbuild" M="$PWD" clean
	find . -type f | sort | paste -s -d ' ' >"$TMP/got"
	echo "./Makefile ./a.bpf.c" >"$TMP/want"
	same "what is left by clean" "$TMP/want" "$TMP/got"
}

test_include_does_not_change_the_default_goal()
{
	enter_new_project "$TMP/p" a <<<'BPF_METADATA_version := 1'
	build
	[[ -e a.bpf.o ]] || fail "make alone does not make all"
}

# Both have a version; bpftool takes the first.
test_objects_can_be_linked_to_one()
{
	enter_new_project "$TMP/p" a b <<-'END'
		SOURCE_DATE_EPOCH := 0
		BPF_METADATA_version := 1
	END
	build
	"$BPFTOOL" gen object ab.bpf.o a.bpf.o b.bpf.o
	record_set ab
	want_set version '"1"' build_date '"1970-01-01T00:00:00Z"'
}

run_tests
