// SPDX-License-Identifier: GPL-2.0
/*
 * A program that uses CPU time in each of its functions, for bpftool prog run. The Makefile
 * builds it without metadata, in two versions that differ only in their metadata, with
 * other names for its functions, and for XDP, which drops the packet.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#ifdef XDP
#define HOOK "xdp"
#define CONTEXT struct xdp_md
#define NUMBER rx_queue_index
#else
#define HOOK "tc"
#define CONTEXT struct __sk_buff
#define NUMBER len
#endif

#ifdef VERSION
const char bpf_metadata_version[] SEC(".rodata") = VERSION;
const char bpf_metadata_owner[] SEC(".rodata") = "tests";
#endif

static __noinline int multiply(CONTEXT *context)
{
	unsigned int i, x = context->NUMBER;

	for (i = 0; i < 300; i++)
		x = x * 5 + 3;
	return x;
}

static __noinline int divide(CONTEXT *context)
{
	unsigned int i, x = context->NUMBER;

	for (i = 1; i < 100; i++)
		x += 0x7fffffff / (x | i);
	return x;
}

SEC(HOOK)
int busy(CONTEXT *context)
{
	unsigned int i, x = 1;

	for (i = 0; i < 200; i++)
		x = x * 7 + 1;
	return (multiply(context) + divide(context) + x) & XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
