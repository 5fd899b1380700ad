// SPDX-License-Identifier: GPL-2.0
/* Three functions and four keys, to be loaded a thousand times. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "1.2.3";
const char bpf_metadata_commit[] SEC(".rodata") = "0123456789abcdef0123456789abcdef01234567";
const char bpf_metadata_owner[] SEC(".rodata") = "tests";
const int bpf_metadata_build SEC(".rodata") = 42;

static __noinline int first(int x)
{
	return x * 3 + bpf_get_smp_processor_id();
}

static __noinline int second(int x)
{
	return x * 5 + bpf_get_smp_processor_id();
}

SEC("socket")
int many(void *ctx)
{
	(void)ctx;
	return first(1) + second(2);
}
