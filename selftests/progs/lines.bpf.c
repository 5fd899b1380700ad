// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose cost is in three lines of three functions, as 1 : 3 : 6.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "lines";

static __noinline int three(struct __sk_buff *skb)
{
	unsigned int i, x = skb->len;

	for (i = 0; i < 300; i++)
		x = x * 5 + 3;
	return x;
}

static __noinline int six(struct __sk_buff *skb)
{
	unsigned int i, x = skb->len;

	for (i = 0; i < 600; i++)
		x = x * 5 + 3;
	return x;
}

SEC("tc")
int lines(struct __sk_buff *skb)
{
	unsigned int i, x = skb->len;

	for (i = 0; i < 100; i++)
		x = x * 5 + 3;
	return (three(skb) + six(skb) + x) & 1;
}

char LICENSE[] SEC("license") = "GPL";
