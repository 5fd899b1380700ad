# SPDX-License-Identifier: GPL-2.0
#
# Install perf of the kernel TAG with this repository's patches, and the programs of tools/. The perf of
# the distribution does not change. On Debian, debian/rules makes a package instead.
#
#	make install TAG=v7.3.4		builds perf if it is not built; prefix=/usr/local is the default
#	make uninstall			removes what was installed below prefix, but not etc/perfconfig
#
# With DESTDIR=DIR, everything is written below DIR, to pack it. perf works only after its files were moved
# to the prefix itself.
#
# How it works. perf's own "make install" puts everything into one directory, $(home). This directory is
# the prefix that is compiled into perf, so perf finds its own files there. They do not hide the files of
# another perf, not even its man pages. Outside of this directory there are only the command perf_bpfmeta,
# its shell completion, scripts that start the programs of tools/, and their man pages.
#
# perf_bpfmeta is a script that starts perf by its full path. perf puts the directory of its argv[0] first
# in PATH, so its shell tests and scripts find this perf when they call "perf". If perf_bpfmeta were a link,
# they would find the distribution's perf. The programs of tools/ find their modules beside themselves, and
# this perf in $PERF.
#
# The name must not begin with "perf-", because every perf treats programs with such names as its own
# commands. perf v6.16 aborts at --help if such a program is in PATH and perf's own directory
# libexec/perf-core is empty.

TAG ?= v6.16
prefix ?= /usr/local
# make -C changes the directory.
override DESTDIR := $(abspath $(DESTDIR))

home = $(prefix)/lib/perf-bpf-metadata
out = $(CURDIR)/out/$(TAG)
bin = $(DESTDIR)$(prefix)/bin
man = $(DESTDIR)$(prefix)/share/man
completion = $(DESTDIR)$(prefix)/share/bash-completion/completions/perf_bpfmeta
pages = $(notdir $(wildcard tools/man/*))
tools = $(basename $(pages))
# These arguments are not for the makefiles of perf.
MAKEOVERRIDES =
# Only one object of perf contains the prefix. With the arguments of the first build, make compiles no other
# object again. out/TAG/perf does not change, because it is a copy.
args = $(shell sed -n 's/^arg //p' $(out)/build/built)
where = prefix=$(home) DESTDIR=$(DESTDIR)

all:
	scripts/apply-and-build.sh $(TAG)

# Debian's asciidoc starts the first python3 in PATH, which must be Debian's. Without ASCIIDOC_NO_ROFF, the
# man pages would show ".ft C" as text with docbook-xsl 1.73 and later.
install: all
	$(MAKE) -C $(out)/linux/tools/perf O=$(out)/build $(args) $(where) install-bin
	PATH="/usr/bin:$$PATH" $(MAKE) -C $(out)/linux/tools/perf/Documentation OUTPUT=$(out)/build/ \
		ASCIIDOC_NO_ROFF=1 $(where) install-man
	printf '%s\n' '#!/bin/sh' 'exec $(home)/bin/perf "$$@"' | install -D -m 755 /dev/stdin $(bin)/perf_bpfmeta
	sed -e 's/^type perf /type perf_bpfmeta /' -e 's/ _perf perf\>/ _perf perf_bpfmeta/' \
		$(out)/linux/tools/perf/perf-completion.sh | install -D -m 644 /dev/stdin $(completion)
	install -D -m 755 -t $(DESTDIR)$(home)/tools $(out)/bpf-stamp \
		$(addprefix tools/,$(filter-out bpf-stamp,$(tools)))
	install -m 644 -t $(DESTDIR)$(home)/tools tools/*.py
	for tool in $(tools); do \
		printf '%s\n' '#!/bin/sh' 'export PERF="$${PERF:-$(home)/bin/perf}"' \
			"exec $(home)/tools/$$tool \"\$$@\"" | install -D -m 755 /dev/stdin $(bin)/$$tool || exit; \
	done
	for section in 1 8; do \
		install -D -m 644 -t $(man)/man$$section tools/man/*.$$section || exit; \
	done

uninstall:
	rm -f $(addprefix $(bin)/,perf_bpfmeta $(tools)) $(completion) $(addprefix $(man)/man[18]/,$(pages))
	find $(DESTDIR)$(home) ! -type d ! -path '*/etc/perfconfig' -delete
	find $(DESTDIR)$(home) -type d -empty -delete

.PHONY: all install uninstall
