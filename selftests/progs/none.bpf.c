// SPDX-License-Identifier: GPL-2.0
/* Read-only data, but no metadata. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile int limit SEC(".rodata") = 3;

SEC("socket")
int none(void *ctx)
{
	(void)ctx;
	return limit;
}
