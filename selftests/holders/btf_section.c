// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "btf_section.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "bpf_metadata_"

void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

int checked(int ret, const char *what)
{
	if (ret < 0) {
		errno = -ret;
		die(what);
	}
	return ret;
}

void section__init(struct section *sec, const char *name)
{
	memset(sec, 0, sizeof(*sec));
	sec->name = name;
	sec->btf = btf__new_empty();
	if (!sec->btf)
		die("btf__new_empty");
}

struct var *section__add(struct section *sec, int type, int size, const char *key,
			 uint64_t data, const char *want, const char *bpftool)
{
	struct var *var = &sec->vars[sec->nr_vars++];

	if (sec->nr_vars > SECTION_MAX_VARS) {
		errno = E2BIG;
		die(key);
	}
	*var = (struct var) {
		.key = key, .type = type, .size = size, .data = { data },
		.want = want, .bpftool = bpftool,
	};
	return var;
}

/* Add the variables and the DATASEC; returns its type id. */
static int section__finish(struct section *sec, char *value, int *value_size)
{
	int ids[SECTION_MAX_VARS];
	int offset = 0;
	int id;

	for (int i = 0; i < sec->nr_vars; i++) {
		char name[128];

		snprintf(name, sizeof(name), PREFIX "%s", sec->vars[i].key);
		ids[i] = checked(btf__add_var(sec->btf, name, BTF_VAR_GLOBAL_ALLOCATED,
					      sec->vars[i].type), name);
	}
	for (int i = 0; i < sec->nr_vars; i++)
		offset += (sec->vars[i].size + 7) & ~7;
	*value_size = offset;
	id = checked(btf__add_datasec(sec->btf, sec->name, offset), sec->name);

	offset = 0;
	for (int i = 0; i < sec->nr_vars; i++) {
		const struct var *var = &sec->vars[i];

		checked(btf__add_datasec_var_info(sec->btf, ids[i], offset, var->size), var->key);
		memcpy(value + offset, var->data, var->size);
		offset += (var->size + 7) & ~7;
	}
	return id;
}

int create_map(const char *name, const char *value, int size, int btf_fd, int value_type)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts,
		.btf_fd = btf_fd,
		.btf_value_type_id = value_type,
		.map_flags = BPF_F_RDONLY_PROG,
	);
	int key = 0;
	int fd;

	fd = checked(bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(int), size, 1, &opts), name);
	checked(bpf_map_update_elem(fd, &key, value, 0), name);
	checked(bpf_map_freeze(fd), name);
	return fd;
}

int section__create_map(struct section *sec)
{
	static char value[4096];
	int value_size;
	int type;

	memset(value, 0, sizeof(value));
	type = section__finish(sec, value, &value_size);
	checked(btf__load_into_kernel(sec->btf), sec->name);
	return create_map(sec->name, value, value_size, btf__fd(sec->btf), type);
}

void section__exit(struct section *sec)
{
	btf__free(sec->btf);
}

int add_function(struct btf *btf, const char *name, enum btf_func_linkage linkage)
{
	int ret = checked(btf__add_int(btf, "int", 4, BTF_INT_SIGNED), "int");
	int arg = checked(btf__add_ptr(btf, 0), "pointer");
	int proto = checked(btf__add_func_proto(btf, ret), "prototype");

	checked(btf__add_func_param(btf, "ctx", arg), "parameter");
	return checked(btf__add_func(btf, name, linkage, proto), name);
}

int load_socket_filter(const char *name, const struct bpf_insn *insns, int nr_insns,
		       struct bpf_prog_load_opts *opts, __u32 *id)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int fd = checked(bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, name, "GPL", insns, nr_insns,
				       opts), name);

	checked(bpf_obj_get_info_by_fd(fd, &info, &len), name);
	*id = info.id;
	return fd;
}

void wait_for_end_of_input(void)
{
	char buf[64];

	while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
}
