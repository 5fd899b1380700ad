// SPDX-License-Identifier: GPL-2.0
/* Two read-only maps; the program reads only a variable of the second. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_first[] SEC(".rodata") = "in .rodata";
const char bpf_metadata_second[] SEC(".rodata.more") = "in .rodata.more";
const volatile int limit SEC(".rodata.more") = 3;

SEC("socket")
int two_sections(void *ctx)
{
	(void)ctx;
	return limit;
}
