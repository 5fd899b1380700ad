// SPDX-License-Identifier: GPL-2.0
/* Called at the end of another program: the kernel may allow that or not. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("fexit")
int at_exit(void *ctx)
{
	(void)ctx;
	return 0;
}
