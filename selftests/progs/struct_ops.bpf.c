// SPDX-License-Identifier: GPL-2.0
/*
 * A congestion control of TCP. libbpf finds the members of the kernel's struct by their names.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct sock;

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

SEC("struct_ops/pbm_ssthresh")
__u32 pbm_ssthresh(unsigned long long *ctx)
{
	return ctx ? 2 : 3;
}

SEC("struct_ops/pbm_cong_avoid")
void pbm_cong_avoid(unsigned long long *ctx)
{
	(void)ctx;
}

SEC("struct_ops/pbm_undo_cwnd")
__u32 pbm_undo_cwnd(unsigned long long *ctx)
{
	return ctx ? 2 : 3;
}

SEC(".struct_ops")
struct tcp_congestion_ops pbm_tcp = {
	.ssthresh = (void *)pbm_ssthresh,
	.cong_avoid = (void *)pbm_cong_avoid,
	.undo_cwnd = (void *)pbm_undo_cwnd,
	.name = "pbm_tcp",
};

char LICENSE[] SEC("license") = "GPL";
