// SPDX-License-Identifier: GPL-2.0
/*
 * Programs on a tracepoint.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp/sched/sched_process_exit")
int on_tp(void *ctx)
{
	return !ctx;
}

SEC("raw_tp/sched_process_exit")
int on_raw_tp(void *ctx)
{
	return !ctx;
}

char LICENSE[] SEC("license") = "GPL";
