// SPDX-License-Identifier: GPL-2.0
/*
 * Load programs with bpf(2) alone, as loaders without libbpf and without BTF do, and let other
 * executables hold them:
 *
 *	inherit [-n PROGRAMS] [-p PROCESSES] [-s] [-l CGROUP] COMMAND...
 *
 * With -l, links attach the programs to the cgroup, and the processes inherit the links. Each
 * process runs the command. It inherits its share of the programs, or all of them with -s, and
 * standard input, so a "cat" ends with the input. inherit prints a line "ID NAME" for each
 * program, and "ready" when all processes have executed the command. Then it holds no program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/bpf.h>

#define NAME "inherited"

static void die(const char *what)
{
	fprintf(stderr, "inherit: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The program lets all packets pass. */
static int load(enum bpf_prog_type type)
{
	const struct bpf_insn insns[2] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = type,
		.insn_cnt = 2,
		.insns = (uintptr_t)insns,
		.license = (uintptr_t)"GPL",
		.prog_name = NAME,
	};
	int fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	if (fd < 0)
		die("BPF_PROG_LOAD");
	return fd;
}

static __u32 program_id(int fd)
{
	struct bpf_prog_info info = {};
	union bpf_attr attr = {
		.info.bpf_fd = fd,
		.info.info_len = sizeof(info),
		.info.info = (uintptr_t)&info,
	};

	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)))
		die("BPF_OBJ_GET_INFO_BY_FD");
	return info.id;
}

/* Returns the link, which now holds the program. */
static int attach(int prog, int cgroup)
{
	union bpf_attr attr = {
		.link_create.prog_fd = prog,
		.link_create.target_fd = cgroup,
		.link_create.attach_type = BPF_CGROUP_INET_EGRESS,
	};
	int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	if (fd < 0)
		die("BPF_LINK_CREATE");
	close(prog);
	return fd;
}

/* Descriptors of programs and links have FD_CLOEXEC by default, so clear this flag. */
static void run(char **command, const int *fds, int nr, int first, int step)
{
	for (int i = first; i < nr; i += step) {
		if (fcntl(fds[i], F_SETFD, 0))
			die("F_SETFD");
	}
	execvp(command[0], command);
	die(command[0]);
}

int main(int argc, char **argv)
{
	int nr_programs = 1, nr_processes = 1;
	struct rlimit limit;
	int cgroup = -1;
	bool shared = false;
	int exec_pipe[2];
	int *fds;
	char c;
	int opt;

	while ((opt = getopt(argc, argv, "+n:p:sl:")) != -1) {
		switch (opt) {
		case 'n':
			nr_programs = atoi(optarg);
			break;
		case 'p':
			nr_processes = atoi(optarg);
			break;
		case 's':
			shared = true;
			break;
		case 'l':
			cgroup = open(optarg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (cgroup < 0)
				die(optarg);
			break;
		default:
			goto usage;
		}
	}
	if (optind == argc || nr_programs < 1 || nr_processes < 1)
		goto usage;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("setrlimit");
	fds = calloc(nr_programs, sizeof(*fds));
	if (!fds || pipe2(exec_pipe, O_CLOEXEC))
		die("pipe2");
	for (int i = 0; i < nr_programs; i++) {
		fds[i] = load(cgroup < 0 ? BPF_PROG_TYPE_SOCKET_FILTER :
					   BPF_PROG_TYPE_CGROUP_SKB);
		printf("%u %s\n", program_id(fds[i]), NAME);
		if (cgroup >= 0)
			fds[i] = attach(fds[i], cgroup);
	}
	fflush(stdout);
	for (int i = 0; i < nr_processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			run(argv + optind, fds, nr_programs, shared ? 0 : i,
			    shared ? 1 : nr_processes);
	}
	for (int i = 0; i < nr_programs; i++)
		close(fds[i]);
	/* read() returns 0 when all have executed their commands: exec closes the other side. */
	close(exec_pipe[1]);
	while (read(exec_pipe[0], &c, 1) > 0)
		;
	printf("ready\n");
	fflush(stdout);
	while (wait(NULL) > 0)
		;
	return 0;

usage:
	fprintf(stderr, "usage: inherit [-n PROGRAMS] [-p PROCESSES] [-s] [-l CGROUP] COMMAND\n");
	return 2;
}
