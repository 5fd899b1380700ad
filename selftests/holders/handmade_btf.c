// SPDX-License-Identifier: GPL-2.0
/*
 * Load programs and maps with BTF that no available compiler writes, and hold them until
 * standard input ends (as hold.c does).
 *
 *   handmade_btf types       enum64, signed, narrow and wide enums, chars of gcc, ...
 *   handmade_btf maps        several maps with equal keys; some are not metadata. A second
 *                            program has only the last one. A map of the third has two
 *                            variables with the same name. The second map of the fourth has
 *                            no key; the fifth program has only this map
 *   handmade_btf names       programs with and without BTF; a map with BTF is bound to them,
 *                            or they refer to it
 *   handmade_btf bare        neither the program nor its map has BTF
 *   handmade_btf plain       three programs without maps, with one BTF and one name that no
 *                            other process uses. The first two have the same tag. The third
 *                            has line info, but no function info
 *   handmade_btf unbound     like a loader that binds no map: a program that refers to its
 *                            map, one that does not, and one whose map has no BTF
 *   handmade_btf want types  the expected values, as values.py reads them in progs/
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include "btf_section.h"

#define PREFIX "bpf_metadata_"

/* BTF for the program itself. It only describes "int NAME(void *)". */
static int load_program_btf(const char *name, int *func)
{
	struct btf *btf = btf__new_empty();

	if (!btf)
		die("btf__new_empty");
	*func = add_function(btf, name, BTF_FUNC_GLOBAL);
	checked(btf__load_into_kernel(btf), "program BTF");
	return btf__fd(btf);
}

/* Without REFERS, the program does not refer to its map. */
static int load_program(const char *name, bool with_btf, int refers)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = refers },
		{},
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int skipped = refers ? 0 : 2;
	struct bpf_func_info func = {};
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int type, fd;
	__u32 id;

	if (with_btf) {
		opts.prog_btf_fd = load_program_btf(name, &type);
		func.type_id = type;
		opts.func_info = &func;
		opts.func_info_cnt = 1;
		opts.func_info_rec_size = sizeof(func);
	}
	fd = load_socket_filter(name, insns + skipped, 4 - skipped, &opts, &id);
	printf("%u %s\n", id, name);
	return fd;
}

static void load_bound_program(const char *name, bool with_btf, const int *maps, int nr_maps)
{
	int fd = load_program(name, with_btf, 0);

	for (int i = 0; i < nr_maps; i++)
		checked(bpf_prog_bind_map(fd, maps[i], NULL), "bind map");
}

static void add_enums(struct section *sec)
{
	struct btf *btf = sec->btf;
	int id;

	id = checked(btf__add_enum64(btf, "u64_enum", 8, false), "enum64");
	checked(btf__add_enum64_value(btf, "U_ONE", 1), "U_ONE");
	checked(btf__add_enum64_value(btf, "U_40", 1ULL << 40), "U_40");
	checked(btf__add_enum64_value(btf, "U_MAX", UINT64_MAX), "U_MAX");
	section__add(sec, id, 8, "enum64_one", 1, "\"U_ONE\"", NULL);
	section__add(sec, id, 8, "enum64_big", 1ULL << 40, "\"U_40\"", NULL);
	section__add(sec, id, 8, "enum64_max", UINT64_MAX, "\"U_MAX\"", NULL);
	/* The low half is that of U_ONE, so perf must compare both halves. */
	section__add(sec, id, 8, "enum64_halves", (1ULL << 40) | 1, "1099511627777", NULL);
	section__add(sec, id, 8, "enum64_unnamed", 1ULL << 63, "9223372036854775808",
		     "-9223372036854775808");

	id = checked(btf__add_enum64(btf, "s64_enum", 8, true), "enum64");
	checked(btf__add_enum64_value(btf, "S_MINUS", (uint64_t)-1), "S_MINUS");
	checked(btf__add_enum64_value(btf, "S_MIN", (uint64_t)INT64_MIN), "S_MIN");
	section__add(sec, id, 8, "enum64_minus", (uint64_t)-1, "\"S_MINUS\"", NULL);
	section__add(sec, id, 8, "enum64_min", (uint64_t)INT64_MIN, "\"S_MIN\"", NULL);
	section__add(sec, id, 8, "enum64_s_unnamed", (uint64_t)-5, "-5", NULL);

	id = checked(btf__add_enum(btf, "s32_enum", 4), "enum");
	checked(btf__add_enum_value(btf, "E_MINUS", -1), "E_MINUS");
	section__add(sec, id, 4, "enum_minus", (uint32_t)-1, "\"E_MINUS\"", NULL);
	section__add(sec, id, 4, "enum_s_unnamed", (uint32_t)-7, "-7", NULL);

	id = checked(btf__add_enum(btf, "u32_enum", 4), "enum");
	checked(btf__add_enum_value(btf, "E_ZERO", 0), "E_ZERO");
	section__add(sec, id, 4, "enum_zero", 0, "\"E_ZERO\"", NULL);
	section__add(sec, id, 4, "enum_u_unnamed", 4000000000U, "4000000000", "-294967296");

	id = checked(btf__add_enum(btf, "u8_enum", 1), "enum");
	checked(btf__add_enum_value(btf, "E_200", 200), "E_200");
	section__add(sec, id, 1, "enum_u8", 200, "\"E_200\"", "-56");

	/* clang before 15 writes an enum of 8 bytes with the low halves of its values. */
	id = checked(btf__add_enum(btf, "wide_enum", 8), "enum");
	checked(btf__add_enum_value(btf, "W_ONE", 1), "W_ONE");
	section__add(sec, id, 8, "enum_wide_one", 1, "\"W_ONE\"", NULL);
	section__add(sec, id, 8, "enum_wide_halves", (1ULL << 32) | 1, "4294967297", NULL);
}

static void add_chars(struct section *sec)
{
	struct btf *btf = sec->btf;
	int index, gcc_char, s8, id;

	index = checked(btf__add_int(btf, "index", 4, 0), "int");
	/* Only gcc sets the CHAR encoding. */
	gcc_char = checked(btf__add_int(btf, "char", 1, BTF_INT_CHAR), "char");
	s8 = checked(btf__add_int(btf, "s8", 1, BTF_INT_CHAR), "s8");

	section__add(sec, gcc_char, 1, "char_one", 'A', "65", "\"A\"");
	id = checked(btf__add_array(btf, index, gcc_char, 4), "array");
	section__add(sec, id, 4, "char_array", 'o' | 'k' << 8, "\"ok\"", NULL);
	/* The same with a type that is not named "char" */
	id = checked(btf__add_array(btf, index, s8, 4), "array");
	section__add(sec, id, 4, "char_named_s8", 'o' | 'k' << 8, "\"ok\"", NULL);
}

static void add_modifiers(struct section *sec)
{
	struct btf *btf = sec->btf;
	int id, u32;

	u32 = checked(btf__add_int(btf, "unsigned int", 4, 0), "int");
	id = checked(btf__add_volatile(btf, u32), "volatile");
	id = checked(btf__add_const(btf, id), "const");
	id = checked(btf__add_typedef(btf, "inner", id), "typedef");
	id = checked(btf__add_const(btf, id), "const");
	id = checked(btf__add_typedef(btf, "outer", id), "typedef");
	section__add(sec, id, 4, "modifiers", UINT32_MAX, "4294967295", NULL);
}

static void build_types(struct section *sec)
{
	section__init(sec, ".rodata");
	add_enums(sec);
	add_chars(sec);
	add_modifiers(sec);
}

static void print_want(const struct section *sec)
{
	for (int i = 0; i < sec->nr_vars; i++) {
		const struct var *var = &sec->vars[i];

		printf("/* want: %s", var->want);
		if (var->bpftool)
			printf(" bpftool: %s", var->bpftool);
		printf(" */\n" PREFIX "%s\n", var->key);
	}
}

/* One section with an integer for each of the KEYS; all have the value VALUE. */
static int int_map(const char *section, int value, const char *const *keys)
{
	struct section sec;
	int id;

	section__init(&sec, section);
	id = checked(btf__add_int(sec.btf, "int", 4, BTF_INT_SIGNED), "int");
	for (; *keys; keys++)
		section__add(&sec, id, 4, *keys, value, NULL, NULL);
	return section__create_map(&sec);
}

#define KEYS(...) ((const char *const[]) { __VA_ARGS__, NULL })

/* A map without BTF */
static int bare_map(void)
{
	return create_map(".rodata", "\7\0\0\0\0\0\0", 8, 0, 0);
}

static void load_types(void)
{
	struct section sec;
	int map;

	build_types(&sec);
	map = section__create_map(&sec);
	load_bound_program("handmade_types", true, &map, 1);
}

static void load_maps(void)
{
	const int maps[] = {
		int_map(".data", 1, KEYS("not_data", "equal")),
		int_map(".rodatax", 2, KEYS("not_rodatax", "equal")),
		int_map(".rodata.b", 3, KEYS("in_b", "equal")),
		int_map(".rodata", 4, KEYS("in_rodata", "equal")),
		int_map(".rodata.a", 5, KEYS("in_a", "equal")),
	};
	const int second[] = {
		int_map(".rodata", 1, KEYS("key")),
		int_map(".rodata.b", 2, KEYS("")),
	};
	struct section sec;
	int id, twice;

	load_bound_program("handmade_maps", true, maps, 5);
	load_bound_program("handmade_last", true, maps + 4, 1);

	section__init(&sec, ".rodata");
	id = checked(btf__add_int(sec.btf, "int", 4, BTF_INT_SIGNED), "int");
	section__add(&sec, id, 4, "first", 1, NULL, NULL);
	section__add(&sec, id, 4, "equal", 1, NULL, NULL);
	section__add(&sec, id, 4, "equal", 2, NULL, NULL);
	section__add(&sec, id, 4, "last", 1, NULL, NULL);
	twice = section__create_map(&sec);
	load_bound_program("handmade_twice", true, &twice, 1);

	load_bound_program("handmade_second", true, second, 2);
	load_bound_program("handmade_none", true, second + 1, 1);
}

/* The types in the map's BTF have names that are not names of functions. */
static void load_names(void)
{
	int map = int_map(".rodata", 7, KEYS("key", "owner", "version"));

	load_bound_program("bound", true, &map, 1);
	load_bound_program("bound_no_btf", false, &map, 1);
	load_program("refers", true, map);
	load_program("refers_no_btf", false, map);
}

static void load_bare(void)
{
	int map = bare_map();

	load_bound_program("handmade_bare", false, &map, 1);
}

static void load_plain(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = getpid() },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -getpid() },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	/* Line info needs a string. The name of the type "int" is at this place in the strings. */
	const struct bpf_line_info line = { .file_name_off = 1, .line_off = 1 };
	struct bpf_func_info func = {};
	char name[64];
	__u32 id;
	int btf, type;

	snprintf(name, sizeof(name), "handmade_plain_%d", getpid());
	btf = load_program_btf(name, &type);
	func.type_id = type;
	LIBBPF_OPTS(bpf_prog_load_opts, with_func, .prog_btf_fd = btf, .func_info = &func,
		    .func_info_cnt = 1, .func_info_rec_size = sizeof(func));
	LIBBPF_OPTS(bpf_prog_load_opts, with_line, .prog_btf_fd = btf, .line_info = &line,
		    .line_info_cnt = 1, .line_info_rec_size = sizeof(line));
	for (int i = 0; i < 3; i++) {
		load_socket_filter(name, i < 2 ? insns : insns + 2, 2,
				   i < 2 ? &with_func : &with_line, &id);
		printf("%u %s\n", id, name);
	}
}

static void load_unbound(void)
{
	load_program("refers", true, int_map(".rodata", 7, KEYS("key")));
	load_program("refers_not", true, 0);
	load_program("no_map_btf", true, bare_map());
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*load)(void);
	} modes[] = {
		{ "types", load_types },
		{ "maps", load_maps },
		{ "names", load_names },
		{ "bare", load_bare },
		{ "plain", load_plain },
		{ "unbound", load_unbound },
	};

	if (argc == 3 && !strcmp(argv[1], "want") && !strcmp(argv[2], "types")) {
		struct section sec;

		build_types(&sec);
		print_want(&sec);
		return 0;
	}
	for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		modes[i].load();
		printf("ready\n");
		fflush(stdout);
		wait_for_end_of_input();
		return 0;
	}
	fprintf(stderr, "usage: handmade_btf MODE, or: handmade_btf want types\n");
	return 2;
}
