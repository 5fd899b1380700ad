// SPDX-License-Identifier: GPL-2.0
/* Twenty programs with different code, and one map that all of them share. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "shared";

#define PROGRAM(n)		\
	SEC("socket")		\
	int shared_##n(void *ctx)	\
	{			\
		(void)ctx;	\
		return 100 + n;	\
	}

PROGRAM(1)
PROGRAM(2)
PROGRAM(3)
PROGRAM(4)
PROGRAM(5)
PROGRAM(6)
PROGRAM(7)
PROGRAM(8)
PROGRAM(9)
PROGRAM(10)
PROGRAM(11)
PROGRAM(12)
PROGRAM(13)
PROGRAM(14)
PROGRAM(15)
PROGRAM(16)
PROGRAM(17)
PROGRAM(18)
PROGRAM(19)
PROGRAM(20)
