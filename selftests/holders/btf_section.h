/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sections of variables, the maps that hold them, and programs, with handmade BTF. An error ends the
 * program with a message.
 */
#ifndef PBM_BTF_SECTION_H
#define PBM_BTF_SECTION_H

#include <stdint.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>

#define SECTION_MAX_VARS 64

struct var {
	const char *key;
	int type;
	int size;
	uint64_t data[2];
	const char *want;
	const char *bpftool;	/* NULL: the same */
};

struct section {
	struct btf *btf;
	const char *name;	/* of the DATASEC */
	struct var vars[SECTION_MAX_VARS];
	int nr_vars;
};

void die(const char *what);
int checked(int ret, const char *what);

void section__init(struct section *sec, const char *name);
struct var *section__add(struct section *sec, int type, int size, const char *key,
			 uint64_t data, const char *want, const char *bpftool);

/* Returns the file descriptor of the map. section__exit() closes the BTF; the map keeps it. */
int section__create_map(struct section *sec);
void section__exit(struct section *sec);

int create_map(const char *name, const char *value, int size, int btf_fd, int value_type);

/* Adds "int NAME(void *)", and returns its type. */
int add_function(struct btf *btf, const char *name, enum btf_func_linkage linkage);

/* Loads a socket filter. Returns its file descriptor, and sets its id. */
int load_socket_filter(const char *name, const struct bpf_insn *insns, int nr_insns,
		       struct bpf_prog_load_opts *opts, __u32 *id);

void wait_for_end_of_input(void);

#endif
