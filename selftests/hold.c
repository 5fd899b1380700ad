// SPDX-License-Identifier: GPL-2.0
/*
 * Load every program of the given BPF objects and hold them until standard
 * input ends.
 *
 * The programs live exactly as long as this process: whoever holds the other
 * end of its standard input and dies, by whatever signal, leaves nothing
 * loaded behind.
 *
 * For each program a line "ID NAME" is printed, then "ready".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static int print_program(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int err;

	err = bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len);
	if (err) {
		fprintf(stderr, "hold: %s: no program info: %s\n",
			bpf_program__name(prog), strerror(errno));
		return err;
	}
	printf("%u %s\n", info.id, bpf_program__name(prog));
	return 0;
}

static int load(const char *path)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	int err;

	/* Freed by exit: a loaded object is what the caller waits for. */
	obj = bpf_object__open_file(path, NULL);
	if (!obj) {
		fprintf(stderr, "hold: cannot open %s: %s\n", path, strerror(errno));
		return -1;
	}
	err = bpf_object__load(obj);
	if (err) {
		fprintf(stderr, "hold: cannot load %s: %s\n", path, strerror(-err));
		return err;
	}
	bpf_object__for_each_program(prog, obj) {
		err = print_program(prog);
		if (err)
			return err;
	}
	return 0;
}

static void wait_for_end_of_input(void)
{
	char buf[64];

	while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
}

int main(int argc, char **argv)
{
	int count = 1;
	int opt;

	while ((opt = getopt(argc, argv, "n:")) != -1) {
		if (opt != 'n')
			goto usage;
		count = atoi(optarg);
	}
	if (optind == argc || count < 1)
		goto usage;

	for (int i = optind; i < argc; i++) {
		for (int n = 0; n < count; n++) {
			if (load(argv[i]))
				return 1;
		}
	}
	printf("ready\n");
	fflush(stdout);
	wait_for_end_of_input();
	return 0;

usage:
	fprintf(stderr, "usage: hold [-n TIMES] OBJECT...\n");
	return 2;
}
