// SPDX-License-Identifier: GPL-2.0
/*
 * Load and unload BPF programs. The metadata of each program has its number.
 *
 * Program number N is the function churn_N. The map .rodata has number = N and name = "churn_N". Like
 * libbpf, churn binds it after the load call has returned (but see -b). Programs 2, 5, 8, ... have a
 * second function, churn_N_sub, and refer to .rodata. The map that is bound to them is another one,
 * .rodata.more, with more = -N. Programs with the same number of functions have the same tag.
 *
 * churn prints a line "NUMBER ID NAME LIFE" for each program that it unloads, and for each that stays.
 * LIFE is "stays", "told" if the program lived until churn was told to unload it (-w), or "short".
 * churn prints "waiting" before it waits for a line of standard input (-b wait, -w). It prints
 * "ready" when all programs are loaded, and all except those that stay have ended. Programs that stay
 * end when standard input is closed.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <sys/resource.h>
#include "btf_section.h"

#define MS 1000000ULL
/* perf waits for the maps of a new program for 200 ms. */
#define PERF_WAITS (200 * MS)
/* How many ms the programs live at least, in turn */
static const int lives[] = { 0, 1, 10, 100, 300 };

static const char usage[] =
"usage: churn [options]\n"
"  -n N        load and unload N programs (default 0)\n"
"  -s N        load N programs that stay (default 0), spread among the others\n"
"  -f N        the number of the first program (default 1)\n"
"  -t MS       spread the loads over this time (default 0)\n"
"  -w          unload the programs after a line of standard input\n"
"  -b MS       bind the map MS milliseconds after the load (default 0)\n"
"  -b wait     bind the map after a line of standard input\n"
"  -b never    do not bind the map\n";

static struct {
	int nr;
	int nr_stay;
	int first;
	int spread;
	bool wait;
	const char *bind;
} opt = { .first = 1, .bind = "0" };

struct prog {
	int number;
	char name[16];
	int nr_parts;	/* functions, maps */
	int fd, maps[2];
	__u32 id;
	bool is_loaded, stays;
	/* This process had to wait for a CPU longer than perf waits for the map. */
	bool is_bound_late;
	uint64_t unload_at;
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 * MS + ts.tv_nsec;
}

static bool binds(const char *how)
{
	return !strcmp(opt.bind, how);
}

/* Reads byte by byte, so that the next line is left in the pipe. */
static void wait_for_line(void)
{
	char c = 0;

	printf("waiting\n");
	while (c != '\n') {
		if (read(STDIN_FILENO, &c, 1) != 1)
			exit(1);
	}
}

/*
 * Make one BTF for maps and program, as in an object file. It has a static function NAME_sub, which
 * not all programs use. Set the type ids in @funcs.
 */
static void create_maps(struct prog *prog, struct section *sec, struct bpf_func_info *funcs)
{
	int type, array;
	struct var *var;
	char sub[32];

	section__init(sec, ".rodata");
	funcs[0].type_id = add_function(sec->btf, prog->name, BTF_FUNC_GLOBAL);
	snprintf(sub, sizeof(sub), "%s_sub", prog->name);
	funcs[1].type_id = add_function(sec->btf, sub, BTF_FUNC_STATIC);

	type = checked(btf__find_by_name_kind(sec->btf, "int", BTF_KIND_INT), "int");
	section__add(sec, type, 4, "number", prog->number, NULL, NULL);
	array = checked(btf__add_int(sec->btf, "char", 1, BTF_INT_SIGNED), "char");
	array = checked(btf__add_array(sec->btf, type, array, sizeof(prog->name)), "array");
	var = section__add(sec, array, sizeof(prog->name), "name", 0, NULL, NULL);
	memcpy(var->data, prog->name, sizeof(prog->name));

	prog->maps[0] = section__create_map(sec);
	if (prog->nr_parts == 2) {
		struct section more = { .btf = sec->btf, .name = ".rodata.more" };

		/* Load the BTF again, with both sections, which are the program's. */
		close(btf__fd(sec->btf));
		btf__set_fd(sec->btf, -1);
		section__add(&more, type, 4, "more", -prog->number, NULL, NULL);
		prog->maps[1] = section__create_map(&more);
	}
}

static void load_program(struct prog *prog, int btf_fd, struct bpf_func_info *funcs)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_2,
		  .src_reg = BPF_PSEUDO_MAP_FD, .imm = prog->maps[0] },
		{},
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int skipped = prog->nr_parts == 2 ? 0 : 4;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_btf_fd = btf_fd, .func_info = funcs,
		    .func_info_cnt = prog->nr_parts, .func_info_rec_size = sizeof(funcs[0]));

	funcs[1].insn_off = 4;
	prog->fd = load_socket_filter(prog->name, insns + skipped, 6 - skipped, &opts, &prog->id);
}

static void bind_map(struct prog *prog, uint64_t load_at)
{
	if (binds("wait"))
		wait_for_line();
	else
		usleep(atoi(opt.bind) * 1000);
	if (!binds("never"))
		checked(bpf_prog_bind_map(prog->fd, prog->maps[prog->nr_parts - 1], NULL), "bind map");
	for (int i = 0; i < prog->nr_parts; i++)
		close(prog->maps[i]);
	prog->is_bound_late = !binds("wait") && now() - load_at > PERF_WAITS;
}

static void print_program(const struct prog *prog, const char *life)
{
	printf("%d %u %s %s\n", prog->number, prog->id, prog->name, life);
}

static void load(struct prog *prog, int i)
{
	struct bpf_func_info funcs[2] = {};
	int nr = opt.nr + opt.nr_stay;
	struct section sec;
	uint64_t load_at;

	prog->number = opt.first + i;
	prog->nr_parts = prog->number % 3 == 2 ? 2 : 1;
	snprintf(prog->name, sizeof(prog->name), "churn_%d", prog->number);
	prog->stays = (i + 1LL) * opt.nr_stay / nr != (long long)i * opt.nr_stay / nr;
	create_maps(prog, &sec, funcs);
	load_at = now();
	load_program(prog, btf__fd(sec.btf), funcs);
	section__exit(&sec);
	bind_map(prog, load_at);
	prog->unload_at = now() + lives[i % (sizeof(lives) / sizeof(lives[0]))] * MS;
	prog->is_loaded = true;
	if (prog->stays)
		print_program(prog, "stays");
}

/* Unload the programs that have lived long enough, or all. Returns the number of those that are left. */
static int unload(struct prog *progs, bool all)
{
	int left = 0;

	for (int i = 0; i < opt.nr + opt.nr_stay; i++) {
		struct prog *prog = &progs[i];

		if (!prog->is_loaded || prog->stays)
			continue;
		if (!all && (opt.wait || prog->unload_at > now())) {
			left++;
			continue;
		}
		close(prog->fd);
		prog->is_loaded = false;
		print_program(prog, opt.wait && !prog->is_bound_late ? "told" : "short");
	}
	return left;
}

static void run(void)
{
	int nr = opt.nr + opt.nr_stay;
	struct prog *progs = calloc(nr, sizeof(*progs));
	uint64_t start = now();

	if (!progs)
		die("calloc");
	for (int i = 0; i < nr; i++) {
		do {
			unload(progs, false);
		} while (now() < start + opt.spread * MS * i / nr && !usleep(1000));
		load(&progs[i], i);
	}
	if (opt.wait && opt.nr) {
		wait_for_line();
		unload(progs, true);
	}
	while (unload(progs, false))
		usleep(1000);
	free(progs);
}

static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("RLIMIT_NOFILE");
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool parse_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "n:s:f:t:b:w")) != -1) {
		switch (c) {
		case 'n': opt.nr = atoi(optarg); break;
		case 's': opt.nr_stay = atoi(optarg); break;
		case 'f': opt.first = atoi(optarg); break;
		case 't': opt.spread = atoi(optarg); break;
		case 'b': opt.bind = optarg; break;
		case 'w': opt.wait = true; break;
		default: return false;
		}
	}
	return optind == argc && opt.nr + opt.nr_stay > 0;
}

int main(int argc, char **argv)
{
	if (!parse_options(argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	setlinebuf(stdout);
	raise_limits();
	run();
	printf("ready\n");
	wait_for_end_of_input();
	return 0;
}
