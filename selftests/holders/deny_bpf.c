// SPDX-License-Identifier: GPL-2.0
/*
 * Run a program for which one command of bpf(2) fails:
 *
 *	deny_bpf COMMAND ERRNO PROGRAM ARGUMENT...
 *
 * COMMAND and ERRNO are numbers. Command 11 is BPF_PROG_GET_NEXT_ID, 14 is BPF_MAP_GET_FD_BY_ID.
 */
#include <endian.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

int main(int argc, char **argv)
{
	const int low_word = __BYTE_ORDER == __BIG_ENDIAN ? sizeof(__u32) : 0;
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_bpf, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + low_word),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argc > 3 ? atoi(argv[1]) : 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (argc > 3 ? atoi(argv[2]) : 0)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(insns) / sizeof(insns[0]), insns };

	if (argc < 4) {
		fprintf(stderr, "usage: deny_bpf COMMAND ERRNO PROGRAM ARGUMENT...\n");
		return 2;
	}
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		perror("deny_bpf: prctl");
	else if (execv(argv[3], argv + 3))
		perror(argv[3]);
	return 1;
}
