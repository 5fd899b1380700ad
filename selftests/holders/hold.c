// SPDX-License-Identifier: GPL-2.0
/*
 * Load all programs of the given BPF objects, and hold them until standard input ends.
 *
 * The programs live as long as this process. If the process at the other end of standard
 * input dies, even from a signal, the programs are unloaded.
 *
 * hold prints a line "ID NAME" for each program, then "ready". With -d, the number of the load
 * replaces each "######" in read-only data, so no two loads have equal data.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static int print_id(int fd, const char *name)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int err;

	err = bpf_prog_get_info_by_fd(fd, &info, &len);
	if (err) {
		fprintf(stderr, "hold: %s: no info: %s\n", name, strerror(errno));
		return err;
	}
	printf("%u %s\n", info.id, name);
	return 0;
}

static void number_rodata(const struct bpf_object *obj, int number)
{
	static const char place[] = "######";
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj) {
		char digits[sizeof(place)], *at, *end;
		size_t size;

		if (!strstr(bpf_map__name(map), ".rodata"))
			continue;
		snprintf(digits, sizeof(digits), "%06d", number % 1000000);
		at = bpf_map__initial_value(map, &size);
		for (end = at + size; at && (at = memmem(at, end - at, place, strlen(place)));)
			memcpy(at, digits, strlen(digits));
	}
}

static int load(const char *path, int number)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	int err;

	/* The objects stay loaded until exit. */
	obj = bpf_object__open_file(path, NULL);
	if (!obj) {
		fprintf(stderr, "hold: cannot open %s: %s\n", path, strerror(errno));
		return -1;
	}
	if (number)
		number_rodata(obj, number);
	err = bpf_object__load(obj);
	if (err) {
		fprintf(stderr, "hold: cannot load %s: %s\n", path, strerror(-err));
		return err;
	}
	bpf_object__for_each_program(prog, obj) {
		err = print_id(bpf_program__fd(prog), bpf_program__name(prog));
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
	bool distinct = false;
	int count = 1, number = 0;
	int opt;

	while ((opt = getopt(argc, argv, "dn:")) != -1) {
		switch (opt) {
		case 'd':
			distinct = true;
			break;
		case 'n':
			count = atoi(optarg);
			break;
		default:
			goto usage;
		}
	}
	if (optind == argc || count < 1)
		goto usage;

	for (int i = optind; i < argc; i++) {
		for (int n = 0; n < count; n++) {
			if (load(argv[i], distinct ? ++number : 0))
				return 1;
		}
	}
	printf("ready\n");
	fflush(stdout);
	wait_for_end_of_input();
	return 0;

usage:
	fprintf(stderr, "usage: hold [-d] [-n TIMES] OBJECT...\n");
	return 2;
}
