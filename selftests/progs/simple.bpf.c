// SPDX-License-Identifier: GPL-2.0
/* The usual case: one program, a version and a number. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "1.2.3";
const int bpf_metadata_answer SEC(".rodata") = 42;

SEC("socket")
int simple(void *ctx)
{
	(void)ctx;
	return 1;
}
