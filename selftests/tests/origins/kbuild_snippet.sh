#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Kbuild.snippet: the keys that it puts into BPF objects arrive in recordings. Nothing else about the
# objects changes. A set is all metadata of a program.

. "$(dirname "$0")/../../lib/kbuild-lib.sh"
# Do not call few_symbols, because "bpftool prog dump" needs all symbols.
own_mounts

NATIVE_ONLY="the test runs compilers; perf_event.sh and loaders.sh load stamped objects"
LOADER=${OUTPUT:-}/hold

# wants_set NAME [KEY JSON]...: fail unless perf records just these keys of object NAME, which LOADER loads
wants_set()
(
	trap release EXIT
	hold_command "$LOADER" "$PWD/$1.bpf.o"
	record "$TMP/data" </dev/null
	perfdata entries "$TMP/data" "$(symbol_of 0)" | sort >"$TMP/got"
	printf '%s\t%s\n' "${@:2}" | sort >"$TMP/want"
	same "the recorded metadata" "$TMP/want" "$TMP/got"
)

test_values_with_any_characters_arrive()
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
	# shellcheck disable=SC2016 # the shell must not expand this text
	wants_set a \
		build_date '"1970-01-02T00:00:00Z"' \
		commit '"0123abcd"' \
		empty '""' \
		odd '"\"q\" \\b\\ '"'a'"' $x ${y} # é ??/ %d `false` ; , ( ) \\n\u000asecond line  !"' \
		owner '"net team <net@example.org>"' \
		version '"1.4.0"'
}

# Print the name with the tag, and the instructions, without the places of variables in maps.
program_of()
(
	trap release EXIT
	hold "$1"
	symbol_of 0
	"$BPFTOOL" prog dump xlated id "${HELD_IDS[0]}" |
		sed 's/map\[id:[0-9]*\]\[0\]+[0-9]*/a variable/; s/call pc+[0-9]*#/call /'
)

# Print the default clang, and all from version 13 on.
print_clangs()
{
	echo clang
	compgen -c clang- | grep -x 'clang-[0-9]*' | sort -u | awk -F - '$2 >= 13'
}

# With BPF_METADATA_REF, each program gets one more instruction. The functions that it calls get none.
test_stamp_does_not_change_instructions_and_tag()
{
	local clang name

	for clang in $(print_clangs); do
		enter_new_project "$TMP/p" <<-END
			BPF_METADATA_version := 1.4.0
			BPF_CLANG := $clang
			BPF_SRC_DIR := $SELFTESTS/progs/
			BPF_CFLAGS := $(cat "$OUTPUT/bpf-cflags")
		END
		for name in none two_sections functions shared; do
			build "$name.bpf.o"
			[[ -n $(stamped "$name" build_date) ]] || fail "$name has no stamp"
			program_of "$PWD/$name" >"$TMP/stamped"
			grep -q exit "$TMP/stamped" || fail "$name: no instructions"
			if [[ $clang = clang ]]; then
				program_of "$OUTPUT/$name" >"$TMP/want"
				same "$name" "$TMP/want" "$TMP/stamped"
			fi
			build -B "$name.bpf.o" BPF_METADATA_REF=y
			program_of "$PWD/$name" >"$TMP/referring"
			{ diff <(sed '1d; s/^ *[0-9]*: //' "$TMP/stamped") <(sed '1d; s/^ *[0-9]*: //' "$TMP/referring") || :; } |
				grep '^[<>]' >"$TMP/got"
			echo "> (18) r1 = a variable" >"$TMP/want"
			same "what $clang adds to $name" "$TMP/want" "$TMP/got"
		done
	done
}

# Code that is not compiled is ignored, and so are comments and strings. A longer name is another key.
test_value_in_the_source_wins()
{
	SOURCE_HEAD=$(cat <<-'END'
		#define KEY(x) bpf_metadata_##x
		const char bpf_metadata_commit[] __attribute__((section(".rodata"))) = "own";
		__attribute__((used)) static const volatile int KEY(owner) = 7;
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
		BPF_METADATA_commit := 0123abcd
		BPF_METADATA_KEYS := owner team
		BPF_METADATA_owner := o
		BPF_METADATA_team := t
	END
	build
	wants_set a version '"1.4.0"' version2 '"\\"' commit '"own"' owner 7 team '"t"' build_date '"1970-01-01T00:00:00Z"'
}

# The project's own makefile calls clang. Its variable CLANG adds "-include bpf-metadata.h".
test_makefile_of_another_project_includes_the_header_by_CLANG()
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
	wants_set a version '"v2.0"' commit "\"$(git rev-parse HEAD)\"" build_date '"1970-01-01T00:00:00Z"'
	# If bpf-metadata.h is the goal of make, build_date can be the time at which make began. If
	# make writes the file for an object, it must not be.
	build -f "$SNIPPET" bpf-metadata.h BPF_METADATA_DIR=/ BPF_METADATA_version=1
	grep -q 'build_date.*"20' bpf-metadata.h || fail "no time in $(cat bpf-metadata.h)"
}

# Both objects have a version. bpftool takes the first one. A command after the compilation strips them.
test_objects_can_be_stripped_and_linked_into_one()
{
	need llvm-strip
	enter_new_project "$TMP/p" a b <<-'END'
		SOURCE_DATE_EPOCH := 0
		BPF_METADATA_version := 1
		BPF_POST_COMPILE := llvm-strip -g
	END
	build
	if readelf -S a.bpf.o | grep .debug_info; then
		fail "a.bpf.o is not stripped"
	fi
	"$BPFTOOL" gen object ab.bpf.o a.bpf.o b.bpf.o
	wants_set ab version '"1"' build_date '"1970-01-01T00:00:00Z"'
	must_not_build "" -B BPF_POST_COMPILE=false
	[[ ! -e a.bpf.o ]] || fail "make has left a.bpf.o"
}

# The project's flags have no -g and ask for strict C. The source has read-only data of its own. cilium/ebpf
# binds no map, so it loses the metadata if no program refers to it.
test_each_clang()
{
	local clang

	SOURCE_HEAD=$(cat <<-'END'
		const volatile int limit __attribute__((section(".rodata"))) = 3;
		static const volatile int other = 4;
		__attribute__((section("socket"))) int b(void *ctx) { return ctx ? limit : other; }
	END
	)
	for clang in $(print_clangs); do
		enter_new_project "$TMP/$clang" a <<-END
			BPF_CLANG := $clang
			BPF_CFLAGS := -std=c99 -Wall -Wextra -Werror
			SOURCE_DATE_EPOCH := 0
			BPF_METADATA_version := ??/1
		END
		build
		wants_set a version '"??/1"' build_date '"1970-01-01T00:00:00Z"'
		[[ -x $OUTPUT/cilium ]] || continue
		build -B BPF_METADATA_REF=y
		LOADER=$OUTPUT/cilium wants_set a version '"??/1"' build_date '"1970-01-01T00:00:00Z"'
	done
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
	wants_set a version '"1.4.0"' build_date '"1970-01-01T00:00:00Z"'
	build -C "$kbuild" M="$PWD" SOURCE_DATE_EPOCH=0
	if grep -e a.bpf.o "$TMP/make"; then
		fail "the second make makes a.bpf.o again"
	fi
	build -C "$kbuild" M="$PWD" clean
	find . -type f | sort | paste -s -d ' ' >"$TMP/got"
	echo "./Makefile ./a.bpf.c" >"$TMP/want"
	same "what make clean leaves" "$TMP/want" "$TMP/got"
}

run_tests
