// SPDX-License-Identifier: GPL-2.0
/* One key, and 17 MiB of other constants. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "1.2.3";
const volatile char filler[17 * 1024 * 1024] SEC(".rodata") = {};

SEC("socket")
int huge(void *ctx)
{
	(void)ctx;
	return 0;
}

char _license[] SEC("license") = "GPL";
