#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The rules of Kbuild.snippet: when it makes objects, and which values it stamps.

. "$(dirname "$0")/../../lib/kbuild-lib.sh"

NATIVE_ONLY="the test runs compilers"
BESIDE=yes

# Two sources that include a header of the same name, in different directories
test_objects_are_made_again_when_needed()
{
	enter_new_project "$TMP/p" <<-'END'
		BPF_METADATA_version ?= 1
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
	must_make "out/a.bpf.o" -W src/a.bpf.c
	must_make "out/a.bpf.o out/sub/deep/a.bpf.o" BPF_METADATA_version=2
	want_stamped out/a version=2
	want_stamped out/sub/deep/a version=2
	must_make "" BPF_METADATA_version=2
	rm out/a.bpf.o
	must_make "out/a.bpf.o" BPF_METADATA_version=2
	# The object was made with a header that is gone.
	rm src/a.h
	sed -i '/a\.h/d' src/a.bpf.c
	must_make "out/a.bpf.o" BPF_METADATA_version=2
}

# The rule of the makefile would make an object without a stamp.
test_rule_of_the_makefile_is_refused()
{
	enter_new_project "$TMP/p" <<-'END'
		BPF_METADATA_version := 1
		%.bpf.o: %.bpf.c; clang -O2 --target=bpf -c $< -o $@
		%.txt: ; echo >$@
	END
	write_source a
	must_not_build "cannot stamp a.bpf.o, because another rule makes it" a.bpf.o
	[[ ! -e a.bpf.o ]] || fail "make has made a.bpf.o"
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

# Flags for dependencies leave no other file. The first target of the makefile stays the default goal.
test_sources_with_other_names()
{
	enter_new_project "$TMP/p" <<-'END'
		BPF_METADATA_version := 1
		BPF_CFLAGS := -MMD
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
	find . -type f | sort | paste -s -d ' ' >"$TMP/got"
	echo "./.a_kern.o.d ./Makefile ./a.h ./a_kern.c ./a_kern.metadata.h ./a_kern.o ./bpf-metadata.h" >"$TMP/want"
	same "the files in the directory" "$TMP/want" "$TMP/got"
}

# In the first git tree, git tracks no file. In "inner", it tracks none of the directory: a tarball may be
# unpacked in the git checkout of a package.
test_version_and_commit_are_those_of_git()
{
	enter_new_project "$TMP/p" a <<-'END'
		BPF_METADATA_version := given
		BPF_METADATA_commit := given
	END
	printf '%s\n' '*.o' '*.h' '.*.d' inner >.gitignore
	build
	want_stamped a version=given commit=given
	git init -q
	build
	want_stamped a commit=given
	commit_all one
	build
	want_stamped a version=given commit="$(git rev-parse HEAD)"
	git tag v1.0
	build
	want_stamped a version=v1.0
	git commit -q --allow-empty -m two
	build
	want_stamped a version="v1.0-1-g$(git rev-parse --short HEAD)" commit="$(git rev-parse HEAD)"
	echo >>a.bpf.c
	build
	want_stamped a version="v1.0-1-g$(git rev-parse --short HEAD)-dirty"
	build BPF_METADATA_KEYS='version commit'
	want_stamped a version=given commit=given
	build BPF_METADATA_version=7.7 BPF_METADATA_commit=abc
	want_stamped a version=7.7 commit=abc
	enter_new_project "$TMP/p/inner" a </dev/null
	must_not_build "set BPF_METADATA_version"
	build BPF_METADATA_version=1
	want_stamped a version=1 commit=
}

test_wrong_variables_and_sources_are_refused()
{
	enter_new_project "$TMP/p" a </dev/null
	must_not_build "BPF_METADATA_owner is not set" BPF_METADATA_version=1 BPF_METADATA_KEYS=owner
	must_not_build "a-b is not a name" BPF_METADATA_version=1 BPF_METADATA_KEYS=a-b BPF_METADATA_a-b=1
	must_not_build "SOURCE_DATE_EPOCH=soon" BPF_METADATA_version=1 SOURCE_DATE_EPOCH=soon
	[[ ! -e a.bpf.o ]] || fail "make has made a.bpf.o"
	# The variable is not const, so the section would have two sets of flags.
	SOURCE_HEAD='int limit __attribute__((section(".rodata"))) = 3;'
	write_source a
	must_not_build "section type conflict" BPF_METADATA_version=1
}

# Print the build date in an object's data, in seconds.
date_in()
{
	local text

	text=$(grep -a -o '[0-9]\{4\}-[0-9-]*T[0-9:]*Z' "$1.bpf.o")
	date -u -d "$text" +%s
}

# want_dates DATE NAME...: fail unless all of these objects have this date
want_dates()
{
	local name

	for name in "${@:2}"; do
		[[ $(date_in "$name") = "$1" ]] || fail "the date of $name is $(date_in "$name"), not $1"
	done
}

# build_by_clock ARGUMENT...: make, with a clock that says second 1 first, and a later one each time
build_by_clock()
{
	mkdir -p "$TMP/bin"
	rm -f "$TMP/asked"
	cat >"$TMP/bin/date" <<-END
		#!/bin/sh
		case \$* in *-d*) exec $(type -P date) "\$@" ;; esac
		echo >>"$TMP/asked"
		exec $(type -P date) -d "@\$(wc -l <"$TMP/asked")" "\$@"
	END
	chmod +x "$TMP/bin/date"
	PATH=$TMP/bin:$PATH build "$@"
}

# Of several makes, the first one counts. But a terminal that a recipe has opened inherits the time of a make
# that has ended.
test_build_date_is_when_make_began()
{
	local jobs

	enter_new_project "$TMP/p/one" a <<<'BPF_METADATA_version := 1'
	# shellcheck disable=SC2016 # the id of the inner shell, which has ended
	MAKELEVEL=1 BPF_METADATA_BEGAN="7 $(sh -c 'echo $$')" build_by_clock
	want_dates 1 a
	enter_new_project "$TMP/p/two" a b <<<'BPF_METADATA_version := 1'
	build_by_clock
	want_dates 1 a b
	cd ..
	cat >Makefile <<-END
		include $SNIPPET
		all: one two
		two: one
		one two: ; \$(MAKE) -C \$@
		.PHONY: all one two
	END
	for jobs in 1 3; do
		rm ./*/*.o
		build_by_clock -j "$jobs"
		want_dates 1 one/a two/a two/b
	done
}

# A tree with tags, or with files that git does not track, is still clean. Then builds are reproducible.
test_build_date_in_a_clean_tree_is_that_of_the_commit()
{
	local -x GIT_AUTHOR_DATE='@1600000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0100'

	enter_new_project "$TMP/one" a b <<-'END'
		BPF_METADATA_KEYS := version
		BPF_METADATA_version := 1
		BPF_CFLAGS := -ffile-prefix-map=$(CURDIR)=.
	END
	git init -q
	commit_all one
	build
	want_dates 1700000000 a b
	git tag 1-dirty
	must_make ""
	git clone -q . ../two
	(cd ../two && build)
	cmp a.bpf.o ../two/a.bpf.o

	echo '// dirty' | tee -a a.bpf.c >>b.bpf.c
	build_by_clock
	must_make ""
	echo >>a.bpf.c
	must_make "a.bpf.o"
	want_dates 1 b
	(($(date_in a) > 1700000000)) || fail "a has the date $(date_in a)"

	git checkout -q a.bpf.c b.bpf.c
	must_make "a.bpf.o b.bpf.o"
	want_dates 1700000000 a b
	must_make "a.bpf.o b.bpf.o" SOURCE_DATE_EPOCH=5
	want_dates 5 a b
}

run_tests
