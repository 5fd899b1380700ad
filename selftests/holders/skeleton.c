// SPDX-License-Identifier: GPL-2.0
/*
 * Load progs/loaded.bpf.c with a skeleton that bpftool has made (a light skeleton if LIGHT is
 * defined), and hold the programs until standard input ends (as hold.c does).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#ifdef LIGHT
#include "loaded.lskel.h"
#define PROGRAM_FD(skel, name) ((skel)->progs.name.prog_fd)
#else
#include "loaded.skel.h"
#define PROGRAM_FD(skel, name) bpf_program__fd((skel)->progs.name)
#endif

static void print_program(int fd, const char *name)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len)) {
		fprintf(stderr, "skeleton: %s: no program info: %s\n", name, strerror(errno));
		exit(1);
	}
	printf("%u %s\n", info.id, name);
}

int main(void)
{
	struct loaded *skel = loaded__open_and_load();
	char buf[64];

	if (!skel) {
		fprintf(stderr, "skeleton: cannot load: %s\n", strerror(errno));
		return 1;
	}
	print_program(PROGRAM_FD(skel, refers), "refers");
	print_program(PROGRAM_FD(skel, refers_not), "refers_not");
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
	return 0;
}
