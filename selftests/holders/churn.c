// SPDX-License-Identifier: GPL-2.0
/*
 * Load and unload BPF programs. The metadata of each program has its number.
 *
 * Program number N is the function churn_N. Every third program has a second function,
 * churn_N_sub. The map .rodata has number = N and name = "churn_N". Like libbpf, churn binds it
 * after the load call has returned (but see -b load). Programs with the same number of functions
 * have the same instructions, except for what -b load inserts.
 *
 * For each program, churn prints a line "NUMBER ID NAME BOUND LIFE". BOUND is the time when its
 * last map was bound (monotonic clock, in microseconds). LIFE is how many milliseconds the program
 * lived from then on, "told" (-l wait, if .rodata was not bound late) or "stays". "late AT LATE"
 * means that an action was due at AT and came LATE microseconds later (-d). churn prints "waiting"
 * before it waits for a line of standard input (-w, -b wait, -m wait, -l wait). It prints "ready"
 * when all programs are loaded, and all except those that stay have ended. Programs that stay end
 * when standard input is closed.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include "btf_section.h"

#define MAX_LIVES 64
#define NEVER UINT64_MAX
/* When a line of standard input comes */
#define WHEN_TOLD (NEVER - 1)
#define MS 1000000ULL
/* perf waits for the maps of a new program for 200 ms. */
#define PERF_WAITS (200 * MS)

static const char usage[] =
"usage: churn [options]\n"
"  -n N        load and unload N programs (default 0)\n"
"  -s N        load N programs that stay (default 0)\n"
"  -f N        the number of the first program (default 1)\n"
"  -p N        processes that load them (default 1: this one)\n"
"  -t MS       spread the loads over this time (default 0)\n"
"  -l MS,...   how long the programs live, in turn (default 100), each multiplied by\n"
"              PBM_TIMEOUT_SCALE, so that a slow perf has more time to read them\n"
"  -l wait     unload the programs after a line of standard input\n"
"  -b MS       bind the map MS milliseconds after the load (default 0)\n"
"  -b load     the program refers to its map\n"
"  -b wait     bind the map after a line of standard input\n"
"  -m MS       bind a second map, .rodata.more, MS milliseconds after the first\n"
"  -m wait     bind the second map after a line of standard input\n"
"  -d MS       print each delay of this time, multiplied likewise, or more (default: none)\n"
"  -w          load nothing before a line of standard input\n";

enum bind { BIND_AFTER, BIND_AT_LOAD, BIND_ON_LINE };

static struct {
	int nr;
	int nr_stay;
	int first;
	int nr_procs;
	int spread;
	int lives[MAX_LIVES];
	int nr_lives;
	bool life_waits;
	enum bind bind;
	int bind_delay;
	int more_delay;		/* of the second map; -1: none */
	bool more_waits;
	int late;		/* print longer delays; 0: none */
	bool wait;
	int scale;		/* factor for the lives and for -d */
} opt = { .first = 1, .nr_procs = 1, .lives = { 100 }, .nr_lives = 1, .more_delay = -1 };

struct prog {
	int number;
	char name[16];
	bool stays;
	int life;
	int fd, map_fd, more_fd;
	__u32 id;
	uint64_t load_at, bound_at;
	/* This process had to wait for a CPU longer than perf waits for the map. */
	bool is_bound_late;
	/* The next action and its time */
	void (*next)(struct prog *prog);
	uint64_t next_at;
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 * MS + ts.tv_nsec;
}

static void sleep_until(uint64_t at)
{
	struct timespec ts = { .tv_sec = at / (1000 * MS), .tv_nsec = at % (1000 * MS) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Print in one write, because all processes write to the same pipe. */
static void print_line(const char *line, int len)
{
	if (write(STDOUT_FILENO, line, len) != len)
		die("standard output");
}

/* Reads byte by byte, so that the next line is left in the pipe. False at the end of the input. */
static bool read_line(void)
{
	char c = 0;

	while (c != '\n') {
		if (read(STDIN_FILENO, &c, 1) != 1)
			return false;
	}
	return true;
}

static void wait_for_line(void)
{
	print_line("waiting\n", 8);
	if (!read_line())
		exit(1);
}

/* Add a section to @btf, and load it again, so that it is that of both maps and of the program. */
static int create_more(const struct prog *prog, struct btf *btf)
{
	struct section more = { .btf = btf, .name = ".rodata.more" };
	int type = checked(btf__find_by_name_kind(btf, "int", BTF_KIND_INT), "int");

	close(btf__fd(btf));
	btf__set_fd(btf, -1);
	section__add(&more, type, 4, "more", -prog->number, NULL, NULL);
	return section__create_map(&more);
}

/*
 * Make one BTF for map and program, as in an object file. It has "int NAME(void *)" and "static
 * int NAME_sub(void *)", which not all programs use. Set the type ids in @funcs.
 */
static void create_rodata(struct prog *prog, struct section *sec, struct bpf_func_info *funcs)
{
	int type, array, proto, arg;
	struct var *var;
	char sub[32];

	section__init(sec, ".rodata");
	type = checked(btf__add_int(sec->btf, "int", 4, BTF_INT_SIGNED), "int");
	arg = checked(btf__add_ptr(sec->btf, 0), "pointer");
	proto = checked(btf__add_func_proto(sec->btf, type), "prototype");
	checked(btf__add_func_param(sec->btf, "ctx", arg), "parameter");
	funcs[0].type_id = checked(btf__add_func(sec->btf, prog->name, BTF_FUNC_GLOBAL, proto),
				   prog->name);
	snprintf(sub, sizeof(sub), "%s_sub", prog->name);
	funcs[1].type_id = checked(btf__add_func(sec->btf, sub, BTF_FUNC_STATIC, proto), sub);

	section__add(sec, type, 4, "number", prog->number, NULL, NULL);
	array = checked(btf__add_int(sec->btf, "char", 1, BTF_INT_SIGNED), "char");
	array = checked(btf__add_array(sec->btf, type, array, sizeof(prog->name)), "array");
	var = section__add(sec, array, sizeof(prog->name), "name", 0, NULL, NULL);
	memcpy(var->data, prog->name, sizeof(prog->name));

	prog->map_fd = section__create_map(sec);
}

static void load_program(struct prog *prog, int btf_fd, struct bpf_func_info *funcs)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	bool two = prog->number % 3 == 2;
	struct bpf_insn insns[6] = {};
	int nr = 0;

	if (opt.bind == BIND_AT_LOAD) {
		insns[nr++] = (struct bpf_insn) {
			.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_2,
			.src_reg = BPF_PSEUDO_MAP_FD, .imm = prog->map_fd,
		};
		nr++;	/* the upper half of the instruction */
	}
	if (two) {
		insns[nr++] = (struct bpf_insn) {
			.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1,
		};
		insns[nr++] = (struct bpf_insn) { .code = BPF_JMP | BPF_EXIT };
		funcs[1].insn_off = nr;
	}
	insns[nr++] = (struct bpf_insn) {
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0,
	};
	insns[nr++] = (struct bpf_insn) { .code = BPF_JMP | BPF_EXIT };

	opts.prog_btf_fd = btf_fd;
	opts.func_info = funcs;
	opts.func_info_cnt = two ? 2 : 1;
	opts.func_info_rec_size = sizeof(funcs[0]);
	prog->fd = checked(bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, prog->name, "GPL",
					 insns, nr, &opts), prog->name);
	checked(bpf_obj_get_info_by_fd(prog->fd, &info, &len), prog->name);
	prog->id = info.id;
}

static void then(struct prog *prog, void (*next)(struct prog *prog), uint64_t at)
{
	prog->next = next;
	prog->next_at = at;
}

static void print_program(const struct prog *prog, const char *life)
{
	char line[96];

	print_line(line, snprintf(line, sizeof(line), "%d %u %s %llu %s\n", prog->number, prog->id,
				  prog->name, (unsigned long long)prog->bound_at / 1000, life));
}

static void unload(struct prog *prog)
{
	uint64_t ms = (now() - prog->bound_at) / MS;
	char life[24];

	close(prog->fd);
	snprintf(life, sizeof(life), "%llu", (unsigned long long)ms);
	print_program(prog, opt.life_waits && !prog->is_bound_late ? "told" : life);
	then(prog, NULL, NEVER);
}

static void settle(struct prog *prog)
{
	if (prog->stays) {
		print_program(prog, "stays");
		then(prog, NULL, NEVER);
	} else {
		then(prog, unload, opt.life_waits ? WHEN_TOLD : prog->bound_at + prog->life * MS);
	}
}

static void bind_more(struct prog *prog)
{
	if (opt.more_waits)
		wait_for_line();
	checked(bpf_prog_bind_map(prog->fd, prog->more_fd, NULL), "bind .rodata.more");
	close(prog->more_fd);
	prog->bound_at = now();
	settle(prog);
}

static void bind_map(struct prog *prog)
{
	if (opt.bind == BIND_ON_LINE)
		wait_for_line();
	if (opt.bind != BIND_AT_LOAD)
		checked(bpf_prog_bind_map(prog->fd, prog->map_fd, NULL), "bind .rodata");
	close(prog->map_fd);
	prog->bound_at = now();
	prog->is_bound_late = opt.bind == BIND_AFTER && opt.bind_delay * MS < PERF_WAITS &&
			      prog->bound_at - prog->load_at > PERF_WAITS;
	if (opt.more_delay < 0)
		settle(prog);
	else
		then(prog, bind_more, prog->bound_at + opt.more_delay * MS);
}

static void load(struct prog *prog)
{
	struct bpf_func_info funcs[2] = {};
	struct section sec;

	create_rodata(prog, &sec, funcs);
	if (opt.more_delay >= 0)
		prog->more_fd = create_more(prog, sec.btf);
	prog->load_at = now();
	load_program(prog, btf__fd(sec.btf), funcs);
	section__exit(&sec);
	then(prog, bind_map, now() + opt.bind_delay * MS);
	if (!opt.bind_delay)
		bind_map(prog);
}

/* Plan the life of program I. Programs that stay are spread among the others. */
static void plan(struct prog *prog, int i, uint64_t start)
{
	int nr = opt.nr + opt.nr_stay;

	prog->number = opt.first + i;
	snprintf(prog->name, sizeof(prog->name), "churn_%d", prog->number);
	prog->stays = (i + 1LL) * opt.nr_stay / nr != (long long)i * opt.nr_stay / nr;
	prog->life = opt.lives[i / opt.nr_procs % opt.nr_lives] * opt.scale;
	then(prog, load, start + opt.spread * MS * i / nr);
}

/* Return the program with the next action. Programs are in the order in which they load. */
static struct prog *next_of(struct prog *progs, int *first, int nr)
{
	struct prog *next = NULL;

	while (*first < nr && !progs[*first].next)
		(*first)++;
	for (int i = *first; i < nr; i++) {
		if (progs[i].next && (!next || progs[i].next_at < next->next_at))
			next = &progs[i];
		if (progs[i].next == load)
			break;
	}
	return next;
}

/* The first program waits for the line, and the others are unloaded with it. */
static void wait_until_told(void)
{
	static bool told;

	if (!told)
		wait_for_line();
	told = true;
}

/* If this process is woken late, the machine is busy. */
static void print_late(uint64_t due)
{
	uint64_t late = now() - due;
	char line[64];

	if (opt.late && late >= opt.late * MS * opt.scale)
		print_line(line, snprintf(line, sizeof(line), "late %llu %llu\n",
					  (unsigned long long)due / 1000,
					  (unsigned long long)late / 1000));
}

/* Run each program whose index is PROC modulo the number of processes. */
static void run(int proc, uint64_t start)
{
	int nr_all = opt.nr + opt.nr_stay;
	struct prog *progs = calloc(nr_all + 1, sizeof(*progs));
	struct prog *prog;
	int first = 0;
	int nr = 0;

	if (!progs)
		die("calloc");
	for (int i = proc; i < nr_all; i += opt.nr_procs)
		plan(&progs[nr++], i, start);
	while ((prog = next_of(progs, &first, nr))) {
		if (prog->next_at == WHEN_TOLD) {
			wait_until_told();
		} else {
			sleep_until(prog->next_at);
			print_late(prog->next_at);
		}
		prog->next(prog);
	}
	free(progs);
}

static void wait_for_end_of_input(void)
{
	while (read_line())
		;
}

/*
 * There is a pipe for each direction. The children close their pipe when they are done. They end
 * when the parent closes its pipe or dies.
 */
static int run_processes(void)
{
	int through[2], hold[2], status, err = 0;
	uint64_t start = now();
	char c;

	if (pipe(through) || pipe(hold))
		die("pipe");
	for (int i = 0; i < opt.nr_procs; i++) {
		pid_t pid = checked(fork(), "fork");

		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(through[0]);
		close(hold[1]);
		run(i, start);
		close(through[1]);
		exit(read(hold[0], &c, 1) != 0);
	}
	close(through[1]);
	close(hold[0]);
	if (read(through[0], &c, 1) != 0)
		die("children");
	print_line("ready\n", 6);
	wait_for_end_of_input();
	close(hold[1]);
	while (wait(&status) > 0)
		err |= status;
	return err ? 1 : 0;
}

static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("RLIMIT_NOFILE");
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void parse_lives(char *text)
{
	opt.nr_lives = 0;
	for (char *ms = strtok(text, ","); ms; ms = strtok(NULL, ",")) {
		if (opt.nr_lives == MAX_LIVES) {
			errno = E2BIG;
			die("-l");
		}
		opt.lives[opt.nr_lives++] = atoi(ms);
	}
}

static void parse_bind(const char *text)
{
	if (!strcmp(text, "load"))
		opt.bind = BIND_AT_LOAD;
	else if (!strcmp(text, "wait"))
		opt.bind = BIND_ON_LINE;
	else
		opt.bind_delay = atoi(text);
}

static bool parse_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "n:s:f:p:t:l:b:m:d:w")) != -1) {
		switch (c) {
		case 'n': opt.nr = atoi(optarg); break;
		case 's': opt.nr_stay = atoi(optarg); break;
		case 'f': opt.first = atoi(optarg); break;
		case 'p': opt.nr_procs = atoi(optarg); break;
		case 't': opt.spread = atoi(optarg); break;
		case 'l':
			opt.life_waits = !strcmp(optarg, "wait");
			parse_lives(optarg);
			break;
		case 'b': parse_bind(optarg); break;
		case 'm':
			opt.more_waits = !strcmp(optarg, "wait");
			opt.more_delay = atoi(optarg);
			break;
		case 'd': opt.late = atoi(optarg); break;
		case 'w': opt.wait = true; break;
		default: return false;
		}
	}
	return optind == argc && opt.nr + opt.nr_stay > 0 && opt.nr_procs > 0 && opt.nr_lives > 0;
}

int main(int argc, char **argv)
{
	const char *scale = getenv("PBM_TIMEOUT_SCALE");

	opt.scale = scale ? atoi(scale) : 1;
	if (!parse_options(argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	raise_limits();
	if (opt.wait)
		wait_for_line();
	if (opt.nr_procs > 1)
		return run_processes();
	run(0, now());
	print_line("ready\n", 6);
	wait_for_end_of_input();
	return 0;
}
