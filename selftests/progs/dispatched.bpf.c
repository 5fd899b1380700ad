// SPDX-License-Identifier: GPL-2.0
/*
 * bpftool prog run calls it from a dispatcher, which is code that the kernel makes
 * for BPF programs, as trampolines are, but belongs to none.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "dispatched";

SEC("xdp")
int dispatched(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}
