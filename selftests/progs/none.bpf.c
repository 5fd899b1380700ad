// SPDX-License-Identifier: GPL-2.0
/* Read-only data, but no metadata. The last map is another one. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile int limit SEC(".rodata") = 3;
volatile int last;

SEC("socket")
int none(void *ctx)
{
	(void)ctx;
	last = limit;
	return last;
}
