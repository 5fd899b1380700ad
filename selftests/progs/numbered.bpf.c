// SPDX-License-Identifier: GPL-2.0
/* "hold -d" replaces each ###### by a number, so no two loads have the same values. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "1.2.######";
const char bpf_metadata_commit[] SEC(".rodata") = "0123456789abcdef0123456789abcdef01######";
const char bpf_metadata_owner[] SEC(".rodata") = "team-######";
const char bpf_metadata_build[] SEC(".rodata") = "######";

SEC("socket")
int numbered(void *ctx)
{
	(void)ctx;
	return 1;
}
