#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Kbuild.snippet: the keys that it puts into BPF objects arrive in recordings. Nothing else about the
# objects changes.

. "$(dirname "$0")/../../lib/test-lib.sh"

NATIVE_ONLY="it compiles; perf_event.sh and loaders.sh load what is compiled so"

SNIPPET=$SELFTESTS/../Kbuild.snippet
# The first lines of each source
SOURCE_HEAD=

# The tests must not see the make, the build or the git of their caller.
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

# enter_new_project DIRECTORY NAME...: make a directory with a program NAME.bpf.c for each NAME, and
# with a makefile. Standard input has its variables. Go there.
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

# record_set NAME: write the set that perf records of object NAME to $TMP/got, sorted
record_set()
{
	record_set_of "$OUTPUT/hold" "$PWD/$1.bpf.o"
}

# record_set_of LOADER...: the same; this command loads the object
record_set_of()
(
	trap release EXIT
	hold_command "$@"
	record "$TMP/data" </dev/null
	show "$TMP/data"
	values entries "$TMP/data.script" "$(symbol_of 0)" | sort >"$TMP/got"
)

want_set()
{
	: >"$TMP/want"
	((!$#)) || printf '%s\t%s\n' "$@" | sort >"$TMP/want"
	same "the set" "$TMP/want" "$TMP/got"
}

# stamped NAME KEY: print the value of a key of an object, as C source
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

	mountpoint -q /sys/fs/bpf || skip "no BPF file system is mounted at /sys/fs/bpf"
	enter_new_project "$TMP/p" a <<-'END'
		SOURCE_DATE_EPOCH := 0
		BPF_METADATA_version := 1.4.0
	END
	build
	pin=/sys/fs/bpf/pbm-snippet-$BASHPID
	"$BPFTOOL" prog load a.bpf.o "$pin"
	"$BPFTOOL" -j prog show pinned "$pin" >"$TMP/shown" || { rm "$pin"; fail "bpftool prog show"; }
	rm "$pin"
	python3 -c 'import json, sys; print(sorted(json.load(sys.stdin)["metadata"].items()))' \
		<"$TMP/shown" >"$TMP/got"
	echo "[('build_date', '1970-01-01T00:00:00Z'), ('version', '1.4.0')]" >"$TMP/want"
	same "metadata of bpftool" "$TMP/want" "$TMP/got"
}

# The name with the tag, and the instructions, without the places of variables in maps
program_of()
(
	trap release EXIT
	hold "$1"
	symbol_of 0
	"$BPFTOOL" prog dump xlated id "${HELD_IDS[0]}" |
		sed 's/map\[id:[0-9]*\]\[0\]+[0-9]*/a variable/; s/call pc+[0-9]*#/call /'
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

# The project's own makefile compiles. CLANG includes bpf-metadata.h.
test_makefile_of_others_names_the_compiler()
{
	need make clang git
	isolate
	mkdir -p "$TMP/p/src"
	cd "$TMP/p"
	(cd src && write_source a)
	cat >Makefile <<-'END'
		CLANG ?= clang
		a.bpf.o: src/a.bpf.c; $(CLANG) -g -O2 --target=bpf -c $< -o $@
	END
	git init -q
	commit_all one
	git tag v2.0
	build -f "$SNIPPET" bpf-metadata.h SOURCE_DATE_EPOCH=0
	build CLANG="clang -include $PWD/bpf-metadata.h"
	record_set a
	want_set version '"v2.0"' commit "\"$(git rev-parse HEAD)\"" build_date '"1970-01-01T00:00:00Z"'
	# This bpf-metadata.h has the time, too. If other makes write it, it must not.
	build -f "$SNIPPET" bpf-metadata.h BPF_METADATA_DIR=/ BPF_METADATA_version=1
	grep -q 'build_date.*"20' bpf-metadata.h || fail "no time in $(cat bpf-metadata.h)"
}

# The kernel's runqslower has its own makefile, libbpf, flags and llvm-strip.
test_unmodified_project()
{
	local source i

	need make gcc git llvm-strip
	isolate
	[[ -e /sys/kernel/btf/vmlinux ]] || skip "this kernel has no BTF"
	source=$(cd -P "$OUTPUT/scripts/../../bpf/runqslower" && pwd) ||
		skip "the kernel's source is not beside the tests"
	mkdir "$TMP/runqslower"
	cd "$TMP/runqslower"
	build -f "$SNIPPET" bpf-metadata.h BPF_METADATA_version=6.x SOURCE_DATE_EPOCH=0
	build -C "$source" OUTPUT="$PWD/" CLANG="clang -include $PWD/bpf-metadata.h"
	hold "$PWD/runqslower"
	((${#HELD_IDS[@]} == 3)) || fail "programs: ${HELD_NAMES[*]}"
	record "$TMP/data"
	show "$TMP/data"
	for i in "${!HELD_IDS[@]}"; do
		values entries "$TMP/data.script" "$(symbol_of "$i")" | sort >"$TMP/got"
		want_set version '"6.x"' build_date '"1970-01-01T00:00:00Z"'
	done
}

test_objects_in_subdirectories()
{
	enter_new_project "$TMP/p" <<-'END'
		BPF_METADATA_version := 1
		BPF_SRC_DIR := src/
		BPF_OBJ_DIR := out/
		all: out/a.bpf.o out/sub/deep/a.bpf.o
	END
	mkdir -p src/sub/deep
	SOURCE_HEAD='#include "a.h"'
	(cd src && write_source a)
	(cd src/sub/deep && write_source a)
	touch src/a.h src/sub/deep/a.h
	must_make "out/a.bpf.o out/sub/deep/a.bpf.o"
	must_make ""
	must_make "out/a.bpf.o" -W src/a.h
	must_make "out/sub/deep/a.bpf.o" -W src/sub/deep/a.h
	must_make "out/a.bpf.o out/sub/deep/a.bpf.o" BPF_METADATA_version=2
	want_stamped out/a version '"2"'
	want_stamped out/sub/deep/a version '"2"'
}

# The other rule would make an object without a stamp.
test_rule_of_the_makefile_is_refused()
{
	enter_new_project "$TMP/p" <<-'END'
		BPF_METADATA_version := 1
		%.bpf.o: %.bpf.c; clang -O2 --target=bpf -c $< -o $@
		%.txt: ; echo >$@
	END
	write_source a
	must_not_build "cannot stamp a.bpf.o, because another rule makes it" a.bpf.o
	[[ ! -e a.bpf.o ]] || fail "there is an object"
	build a.txt
	sed -i '/^%[.]bpf/d' Makefile
	must_make "a.bpf.o" a.bpf.o SHELL=/bin/bash
	sed -i '1i SHELL := /bin/bash' Makefile
	must_make "a.bpf.o" -B a.bpf.o
	echo 'a.bpf.o: a.bpf.c; clang -O2 --target=bpf -c $< -o $@' >>Makefile
	must_not_build "cannot stamp a.bpf.o, because another rule makes it" -B a.bpf.o
	build -B a.bpf.o BPF_UNSTAMPED=%.bpf.o
	if grep -a bpf_metadata a.bpf.o; then
		fail "a.bpf.o is stamped"
	fi
}

test_command_after_the_compilation()
{
	need llvm-strip
	enter_new_project "$TMP/p" a <<-'END'
		SOURCE_DATE_EPOCH := 0
		BPF_METADATA_version := 1
		BPF_POST_COMPILE := llvm-strip -g
	END
	build
	if readelf -S a.bpf.o | grep .debug_info; then
		fail "a.bpf.o is not stripped"
	fi
	record_set a
	want_set version '"1"' build_date '"1970-01-01T00:00:00Z"'
	must_not_build "" -B BPF_POST_COMPILE=false
	[[ ! -e a.bpf.o ]] || fail "there is an object"
}

test_dependency_flags_leave_no_other_file()
{
	enter_new_project "$TMP/p" a <<-'END'
		BPF_METADATA_version := 1
		BPF_CFLAGS := -MMD
	END
	build
	find . -type f | sort | paste -s -d ' ' >"$TMP/got"
	echo "./.a.bpf.o.d ./Makefile ./a.bpf.c ./a.bpf.metadata.h ./a.bpf.o ./bpf-metadata.h" >"$TMP/want"
	same "what there is" "$TMP/want" "$TMP/got"
}

test_sources_with_other_names()
{
	enter_new_project "$TMP/p" <<-'END'
		BPF_METADATA_version := 1
		BPF_SRC_EXT := _kern.c
		BPF_OBJ_EXT := _kern.o
		all: a_kern.o
	END
	SOURCE_HEAD='#include "a.h"'
	write_source a
	mv a.bpf.c a_kern.c
	touch a.h
	must_make "a_kern.o"
	must_make ""
	must_make "a_kern.o" -W a.h
	grep -a -q 'bpf_metadata_version' a_kern.o || fail "a_kern.o has no version"
}

# Each program gets one more instruction. The functions that it calls get none.
test_programs_refer_to_their_metadata_if_asked()
{
	local clang name

	for clang in clang-13 clang clang-19; do
		command -v "$clang" >/dev/null || continue
		for name in none functions shared; do
			enter_new_project "$TMP/p" <<-END
				BPF_METADATA_version := 1.4.0
				BPF_CLANG := $clang
				BPF_SRC_DIR := $SELFTESTS/progs/
				BPF_CFLAGS := $(cat "$OUTPUT/bpf-cflags")
			END
			build "$name.bpf.o"
			program_of "$PWD/$name" | sed '1d; s/^ *[0-9]*: //' >"$TMP/without"
			build -B "$name.bpf.o" BPF_METADATA_REF=y
			program_of "$PWD/$name" | sed '1d; s/^ *[0-9]*: //' >"$TMP/with"
			{ diff "$TMP/without" "$TMP/with" || :; } | grep '^[<>]' >"$TMP/got"
			echo "> (18) r1 = a variable" >"$TMP/want"
			same "what $clang adds to $name" "$TMP/want" "$TMP/got"
		done
	done
}

# cilium/ebpf binds no map.
test_cilium_ebpf_keeps_them_if_asked()
{
	local clang

	[[ -x $OUTPUT/cilium ]] || skip "no Go or no cilium/ebpf when the tests were built"
	for clang in clang-13 clang clang-19; do
		command -v "$clang" >/dev/null || continue
		enter_new_project "$TMP/p" a <<-END
			SOURCE_DATE_EPOCH := 0
			BPF_METADATA_version := 1.4.0
			BPF_CLANG := $clang
		END
		build
		record_set_of "$OUTPUT/cilium" "$PWD/a.bpf.o"
		want_set
		build -B BPF_METADATA_REF=y
		record_set_of "$OUTPUT/cilium" "$PWD/a.bpf.o"
		want_set version '"1.4.0"' build_date '"1970-01-01T00:00:00Z"'
	done
}

# Longer names do not count either, nor code that is not compiled.
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

# The author's flags have no -g and ask for strict C. The source has read-only data of its own.
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
		((${clang#clang-} >= 13)) || continue
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
	((nr)) || fail "no clang-NUMBER from 13 up is installed"
	((nr > 1)) || skip "$clang works, no other clang from 13 up is installed"
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
	build BPF_METADATA_version=7.7 BPF_METADATA_commit=abc
	want_stamped a version '"7.7"'
	want_stamped a commit '"abc"'
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
	# The section would have two sets of flags.
	SOURCE_HEAD='int limit __attribute__((section(".rodata"))) = 3;'
	write_source a
	must_not_build "section type conflict" BPF_METADATA_version=1
}

# A clang that waits until the next second before it compiles. It notes when the first one began.
prepare_slow_clang()
{
	rm -f "$TMP/first"
	cat >"$TMP/slow-clang" <<-END
		#!/bin/sh
		now=\$(date +%s)
		[ -e "$TMP/first" ] || echo "\$now" >"$TMP/first"
		while [ "\$(date +%s)" = "\$now" ]; do sleep 0.05; done
		exec clang "\$@"
	END
	chmod +x "$TMP/slow-clang"
}

# The build date in an object's data, in seconds
date_in()
{
	date -u -f <(grep -a -o '[0-9]\{4\}-[0-9-]*T[0-9:]*Z' "$1.bpf.o") +%s
}

# want_dates DATE NAME...: all of these objects have it
want_dates()
{
	local want=$1 name got

	shift
	for name; do
		got=$(date_in "$name")
		[[ $got = "$want" ]] || fail "the date of $name is $got, not $want"
	done
}

# build_slowly NAME MAKE_OPTION...: make all objects; all of them are new. Sets DATE to the date
# of object NAME, which must be the time at which make began.
build_slowly()
{
	local before name=$1

	shift
	prepare_slow_clang
	before=$(date +%s)
	build CLANG="$TMP/slow-clang" "$@"
	DATE=$(date_in "$name")
	((before <= DATE && DATE <= $(<"$TMP/first"))) ||
		fail "the date is $DATE, but make began from $before to $(<"$TMP/first")"
}

test_build_date_is_when_make_began()
{
	enter_new_project "$TMP/p" a b c <<<'BPF_METADATA_version := 1'
	build_slowly a
	want_dates "$DATE" b c
	build_slowly a -B -j 2
	want_dates "$DATE" b c
}

test_build_date_is_when_the_first_of_recursive_makes_began()
{
	enter_new_project "$TMP/p/one" a <<<'BPF_METADATA_version := 1'
	enter_new_project "$TMP/p/two" a b <<<'BPF_METADATA_version := 1'
	cd ..
	cat >Makefile <<-END
		include $SNIPPET
		all: one two
		two: one
		one two: ; \$(MAKE) -C \$@
		.PHONY: all one two
	END
	build_slowly one/a
	want_dates "$DATE" two/a two/b
	build_slowly one/a -B -j 3
	want_dates "$DATE" two/a two/b
}

# A terminal that a recipe has opened inherits the time of a make that has ended.
test_build_date_is_now_where_the_first_make_is_gone()
{
	local before

	enter_new_project "$TMP/p" a <<<'BPF_METADATA_version := 1'
	before=$(date +%s)
	# shellcheck disable=SC2016 # the process of that shell
	MAKELEVEL=1 BPF_METADATA_BEGAN="1 $(sh -c 'echo $$')" build
	DATE=$(date_in a)
	((before <= DATE && DATE <= $(date +%s))) || fail "the date is $DATE, not $before or soon after"
}

# A tree with tags, or with files that git does not track, is still clean.
test_build_date_in_a_clean_tree_is_that_of_the_commit()
{
	local -x GIT_AUTHOR_DATE='@1600000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0100'

	enter_new_project "$TMP/p" a b <<-'END'
		BPF_METADATA_KEYS := version
		BPF_METADATA_version := 1
	END
	git init -q
	commit_all one
	build
	want_dates 1700000000 a b
	git tag 1-dirty
	must_make ""
	must_make "a.bpf.o b.bpf.o" -B
	want_dates 1700000000 a b
	cp a.bpf.o ..
	build -B
	cmp ../a.bpf.o a.bpf.o

	echo >>a.bpf.c
	build_slowly a
	want_dates "$DATE" b
	must_make "a.bpf.o b.bpf.o" SOURCE_DATE_EPOCH=5
	want_dates 5 a b
	git checkout -q a.bpf.c
	must_make "a.bpf.o b.bpf.o"
	want_dates 1700000000 a b
	must_make "a.bpf.o b.bpf.o" SOURCE_DATE_EPOCH=5
	want_dates 5 a b
}

test_build_date_is_later_in_what_a_later_make_makes()
{
	local first

	enter_new_project "$TMP/p" a b <<<'BPF_METADATA_version := 1'
	git init -q
	commit_all one
	echo '// dirty' | tee -a a.bpf.c >>b.bpf.c
	build_slowly a
	first=$DATE
	must_make ""
	want_dates "$first" a b
	echo >>a.bpf.c
	must_make "a.bpf.o"
	want_dates "$first" b
	((first < $(date_in a))) || fail "a has the date $(date_in a), b $first"
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

# Kbuild decides where the files are, and has rules for %.o.
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

# Both objects have a version. bpftool takes the first one.
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
