// SPDX-License-Identifier: GPL-2.0
/* For the loaders of iproute2: passes every packet on. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("xdp")
int pass_xdp(void *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

SEC("tc")
int pass_tc(void *ctx)
{
	(void)ctx;
	return 0;
}
