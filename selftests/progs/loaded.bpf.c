// SPDX-License-Identifier: GPL-2.0
/* Some loaders only bring the maps that a program refers to. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

const volatile int limit = 3;

SEC("socket")
int refers(void *ctx)
{
	(void)ctx;
	return limit;
}

SEC("socket")
int refers_not(void *ctx)
{
	(void)ctx;
	return 2;
}
