# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Replacements for a kernel, packages and the network, so that the scripts run in seconds: a "kernel" v0.1
# of a few files, whose Makefile only copies files, its pin, and stubs in PATH. Tests source this file
# instead of lib.sh. Each test begins without an output directory, with a cache that has the tag's own
# tarball, and with a series of two parts with one patch each.
#
# Environment, of the scripts that are called:
#	STUB_HANG=COMMAND		this command hangs and writes $TMP/hanging
#	STUB_MISSING=PACKAGES		these packages are not installed
#	STUB_FEATURES=NAMES		the features of the perf that is built
#	STUB_UPSTREAM=TEXT		what upstream's test prints
#	STUB_CURL_FILE, STUB_CURL_STATUS	curl's download and status
#	STUB_CURL_FAILS=TEXT		curl fails for addresses with this text
#
# Sets:
#	PINS OUT CACHE SUBMISSION	paths for the scripts that are called
#	PATCHES SERIES			the directory with v0.1's patches, and its series
#	$TMP/calls.COMMAND		the arguments of each call of a stub

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
REAL_PATH=$PATH

# make_kernel DIR SUBLEVEL
make_kernel()
{
	local dir=$1 sublevel=$2 i

	mkdir -p "$dir/tools/perf/tests/shell" "$dir/drivers/net" "$dir/scripts" "$dir/tools/lib"
	printf 'VERSION = 0\nPATCHLEVEL = 1\nSUBLEVEL = %s\nEXTRAVERSION =\n' "$sublevel" > "$dir/Makefile"
	echo lib > "$dir/tools/lib/lib.c"
	# shellcheck disable=SC2016 # The test has the variable.
	echo 'echo "$(perf version) [${STUB_UPSTREAM:-Success}]"' > "$dir/tools/perf/tests/shell/test_bpf_metadata.sh"
	cat > "$dir/scripts/get_maintainer.pl" <<-'END'
	print grep(/^--no-l$/, @ARGV) ? "A Maintainer <a\@maintainer>\n" : "list\@kernel\n";
	END
	cat > "$dir/scripts/checkpatch.pl" <<-'END'
	#!/usr/bin/perl
	local $/; my $found = 0;
	for my $file (grep(/patch$/, @ARGV)) {
		open(my $in, '<', $file); my $patch = <$in>;
		exit 1 if $patch =~ /SILENT/;
		print "$file:1: WARNING:UGLY_TYPE: it is ugly\n" if $patch =~ /UGLY/ && ($found = 1);
	}
	exit $found;
	END
	for i in a b c evsel; do
		printf "$i %s\n" 1 2 3 4 5 6 7 8 9 > "$dir/tools/perf/$i.c"
	done
	head -c 100000 /dev/urandom > "$dir/tools/perf/blob"
	echo big > "$dir/drivers/net/big.c"
	cat > "$dir/tools/perf/Makefile" <<-'END'
	.RECIPEPREFIX := >
	OBJS := $(patsubst %.c,$(O)/%.o,$(wildcard *.c))
	$(O)/perf: $(OBJS)
	> { echo '#!/bin/sh'; echo '[ "$$1" != test ] || exec sed -n "s/.*SAYS //p" $(OBJS)'; \
		  echo 'echo perf version 0.1; [ $$# -gt 1 ] || exit 0'; \
		  for m in $${STUB_FEATURES-HAVE_LIBELF_SUPPORT HAVE_ZLIB_SUPPORT HAVE_LIBBPF_SUPPORT HAVE_BPF_SKEL HAVE_LIBTRACEEVENT}; do \
			echo "echo 'x: [ on  ]  # $$m'"; done; } > $@
	> chmod +x $@
	$(O)/%.o: %.c
	> ! grep -e 'ERROR$$' -e 'ERROR in $(notdir $(O))' $<
	> cp $< $@; echo $< >> $(O)/compiled
	END
}

# pin_archive ARCHIVE: write the checksum of this cached file into the pin
pin_archive()
{
	sed "s/^\(source.*$1.\)[0-9a-f]*/\1$(print_sum "$CACHE/$1")/" "$TMP/pins" > "$TMP/t/pins"
	PINS=$TMP/t/pins
}

make_deb()
{
	local dir=$TMP/fixture/deb

	mkdir -p "$dir"/{DEBIAN,usr/src}
	cp "$TMP/fixture/linux-0.1.3.tar.xz" "$dir/usr/src/linux-source-0.1.tar.xz"
	printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@y>\nDescription: x\n' > "$dir/DEBIAN/control"
	dpkg-deb -b "$dir" "$TMP/fixture/linux-source-0.1_1_all.deb" > /dev/null
}

print_sum()
{
	sha256sum "$1" | cut -d ' ' -f 1
}

# Stubs of xz and make log their calls and run the real commands, unless STUB_HANG names them.
make_stubs()
{
	local name

	for name in xz make; do
		cat > "$TMP/stubs/$name" <<-END
		#!/bin/bash
		[[ \${STUB_HANG:-} != $name ]] || { echo \$\$ > "$TMP/hanging"; exec sleep 60; }
		# bpf-stamp needs libbpf, which this kernel lacks.
		[[ \$* != *"/tools LINUX="* ]] || exit 0
		echo "\$*" >> "$TMP/calls.$name"
		PATH=$REAL_PATH exec $name "\$@"
		END
	done
	cat > "$TMP/stubs/dpkg-checkbuilddeps" <<-'END'
	#!/bin/sh
	[ -z "${STUB_MISSING:-}" ] || { echo "dpkg-checkbuilddeps: error: unmet build dependencies: $STUB_MISSING"; exit 1; }
	END
	cat > "$TMP/stubs/curl" <<-END
	#!/bin/bash
	echo "\$*" >> "$TMP/calls.curl"
	all=\$* part=\${all#*--output } part=\${part%% *} address=\${all##* } status=\${STUB_CURL_STATUS:-0}
	[[ \$address != *"\${STUB_CURL_FAILS:-nothing}"* ]] || status=22
	# Without --fail, the page that says 404 is the file.
	[[ \$status != 22 || \$all = *--fail* ]] || { echo 404 >"\$part"; exit; }
	[[ -z \${STUB_CURL_FILE:-} || \$status != 0 ]] || cp "\$STUB_CURL_FILE" "\$part"
	[[ \$status = 0 ]] || echo "curl: (\$status) stub"
	exit "\$status"
	END
	cat > "$TMP/stubs/apt-get" <<-END
	#!/bin/bash
	echo "\$*" >> "$TMP/calls.apt-get"
	[[ \$1 != indextargets ]] || echo pool:/
	END
	chmod +x "$TMP"/stubs/*
}

make_fixtures()
{
	local git=(git -C "$TMP/fixture/linux-0.1" -c user.name=x -c user.email=x@y)

	mkdir -p "$TMP"/{fixture,stubs}
	make_kernel "$TMP/fixture/linux-0.1" 0
	make_kernel "$TMP/fixture/linux-0.1.3" 3
	tar -C "$TMP/fixture" -cJf "$TMP/fixture/linux-0.1.tar.xz" linux-0.1
	tar -C "$TMP/fixture" -cJf "$TMP/fixture/linux-0.1.3.tar.xz" linux-0.1.3
	"${git[@]}" init -q
	"${git[@]}" add .
	"${git[@]}" commit -q -m x
	"${git[@]}" tag v0.1
	make_deb
	cat > "$TMP/pins" <<-END
	# comment
	tag	v0.1	pinned	0.1.0
	commit	$("${git[@]}" rev-parse v0.1)
	source	kernel.org	linux-0.1.tar.xz	$(print_sum "$TMP/fixture/linux-0.1.tar.xz")	0.1.0
	source	debian	linux-source-0.1_1_all.deb	$(print_sum "$TMP/fixture/linux-source-0.1_1_all.deb")	0.1.3
	differs	0.1.3	tools/perf/evsel.c

	tag	v0.2	current	0.2.0
	source	mirror	linux-0.2.tar.xz	0	0.2.0
	END
	make_stubs
}

prepare_tests()
{
	make_fixtures > "$TMP/fixtures.log" 2>&1 && return
	cat "$TMP/fixtures.log" >&2
	ktap_exit_fail_msg "cannot make the fixtures in $TMP"
}

# write_patch PART/NAME FILE LINE TEXT: a patch at the end of v0.1's series that changes the line, in the
# form that check-series.sh accepts
write_patch()
{
	local name=$1 file=tools/perf/$2 number=$3 text=$4 base=$TMP/fixture/linux-0.1/tools/perf/$2

	mkdir -p "$PATCHES/${name%/*}"
	sed "${number}s/.*/$text/" "$base" > "$TMP/new"
	cat > "$PATCHES/$name" - <(diff -u --label "a/$file" --label "b/$file" "$base" "$TMP/new" || :) <<-END
		From: A Man <a@man>
		Subject: perf test: Change ${name%.patch}

		It is two,
		and was not.
		---
		 $file | 2 +-
		 1 file changed, 1 insertion(+), 1 deletion(-)

		diff --git a/$file b/$file
	END
	! grep -q -s -x -F "$name" "$SERIES" || return 0
	grep -q -s "^# part ${name%%/*}:" "$SERIES" || echo "# part ${name%%/*}: what it is for" >> "$SERIES"
	echo "$name" >> "$SERIES"
}

write_series()
{
	write_patch fixes/a.patch a.c 2 'a two'
	write_patch core/b.patch b.c 2 'b two'
}

start_test()
{
	rm -rf -- "$TMP/t" "$TMP"/calls.* "$TMP/hanging"
	PINS=$TMP/pins OUT=$TMP/t/out CACHE=$TMP/t/cache PATCHES=$TMP/t/patches/v0.1 SUBMISSION=$TMP/t/submission
	SERIES=$PATCHES/series
	mkdir -p "$CACHE" "$SUBMISSION/v0.1"
	cp "$TMP/fixture/linux-0.1.tar.xz" "$CACHE/"
	write_series
}

# call_script SCRIPT ARGUMENT... A shell in the background ignores interrupts, but the script must not.
call_script()
{
	exec env --default-signal=INT PATH="$TMP/stubs:$REAL_PATH" PBM_CACHE="$CACHE" PBM_PINS="$PINS" \
		PBM_PATCHES="$TMP/t/patches" PBM_SUBMISSION="$SUBMISSION" PBM_MIRROR='' \
		"$SCRIPTS_DIR/$1" "${@:2}" --out "$OUT"
}

# expect STATUS SCRIPT ARGUMENT...
expect()
{
	expect_status "$1" call_script "${@:2}"
}
