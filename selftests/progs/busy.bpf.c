// SPDX-License-Identifier: GPL-2.0
/*
 * A program that uses CPU time in each of its functions, for bpftool prog run. The Makefile
 * builds it without metadata, in two versions that differ only in their metadata, and with
 * other names for its functions.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#ifdef VERSION
const char bpf_metadata_version[] SEC(".rodata") = VERSION;
const char bpf_metadata_owner[] SEC(".rodata") = "tests";
#endif

static __noinline int multiply(struct __sk_buff *skb)
{
	unsigned int i, x = skb->len;

	for (i = 0; i < 300; i++)
		x = x * 5 + 3;
	return x;
}

static __noinline int divide(struct __sk_buff *skb)
{
	unsigned int i, x = skb->len;

	for (i = 1; i < 100; i++)
		x += 0x7fffffff / (x | i);
	return x;
}

SEC("tc")
int busy(struct __sk_buff *skb)
{
	unsigned int i, x = 1;

	for (i = 0; i < 200; i++)
		x = x * 7 + 1;
	return (multiply(skb) + divide(skb) + x) & 1;
}

char LICENSE[] SEC("license") = "GPL";
