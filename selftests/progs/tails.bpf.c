// SPDX-License-Identifier: GPL-2.0
/* Three programs; each calls the next with a tail call, and costs less than the next. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "3.0";

int middle(struct __sk_buff *skb);
int leaf(struct __sk_buff *skb);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, int(struct __sk_buff *));
} next SEC(".maps") = {
	.values = { (void *)&middle, (void *)&leaf },
};

static __always_inline unsigned int spend(struct __sk_buff *skb, unsigned int rounds)
{
	unsigned int i, x = skb->len;

	for (i = 1; i < rounds; i++)
		x += 0x7fffffff / (x | i);
	return x;
}

SEC("tc")
int entry(struct __sk_buff *skb)
{
	skb->mark = spend(skb, 50);
	bpf_tail_call(skb, &next, 0);
	return 1;
}

SEC("tc")
int middle(struct __sk_buff *skb)
{
	skb->mark = spend(skb, 200);
	bpf_tail_call(skb, &next, 1);
	return 1;
}

SEC("tc")
int leaf(struct __sk_buff *skb)
{
	skb->mark = spend(skb, 800);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
