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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "btf_section.h"

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

/* The objects stay loaded until exit. */
static void load(const char *path, int number)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;

	if (!obj)
		die(path);
	if (number)
		number_rodata(obj, number);
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
	int count = 1, distinct = 0;
	int opt;

	while ((opt = getopt(argc, argv, "dn:")) != -1) {
		if (opt == 'd')
			distinct = 1;
		else if (opt == 'n')
			count = atoi(optarg);
		else
			count = 0;
	}
	if (optind == argc || count < 1) {
		fprintf(stderr, "usage: hold [-d] [-n TIMES] OBJECT...\n");
		return 2;
	}
	for (int i = 0; i < (argc - optind) * count; i++)
		load(argv[optind + i / count], distinct * (i + 1));
	printf("ready\n");
	fflush(stdout);
	wait_for_end_of_input();
	return 0;
}
