// SPDX-License-Identifier: GPL-2.0
/*
 * bpftool prog run calls this program from a dispatcher. A dispatcher is code that the kernel
 * generates for BPF programs, like a trampoline. It belongs to no program.
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
