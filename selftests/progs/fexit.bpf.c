// SPDX-License-Identifier: GPL-2.0
/* Called at the end of another program. Some kernels do not allow this. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("fexit")
int at_exit(void *ctx)
{
	(void)ctx;
	return 0;
}
