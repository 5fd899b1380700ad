// SPDX-License-Identifier: GPL-2.0
/*
 * Load all programs of the given BPF objects, and hold them until standard input ends.
 *
 * The programs live as long as this process. If the process at the other end of standard
 * input dies, even from a signal, the programs are unloaded.
 *
 * hold prints a line "ID NAME" for each program, then "ready".
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "btf_section.h"

/* The objects stay loaded until exit. */
static void load(const char *path)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;

	if (!obj)
		die(path);
	checked(bpf_object__load(obj), path);
	bpf_object__for_each_program(prog, obj) {
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);

		checked(bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &len), path);
		printf("%u %s\n", info.id, bpf_program__name(prog));
	}
}

int main(int argc, char **argv)
{
	int count = 1;
	int opt;

	while ((opt = getopt(argc, argv, "n:")) != -1)
		count = opt == 'n' ? atoi(optarg) : 0;
	if (optind == argc || count < 1) {
		fprintf(stderr, "usage: hold [-n TIMES] OBJECT...\n");
		return 2;
	}
	for (int i = 0; i < (argc - optind) * count; i++)
		load(argv[optind + i / count]);
	printf("ready\n");
	fflush(stdout);
	wait_for_end_of_input();
	return 0;
}
