// SPDX-License-Identifier: GPL-2.0
/*
 * A program that runs while interrupts are off, for about 10 us.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("raw_tp/sched_switch")
int on_switch(void *ctx)
{
	volatile int rounds = 0;

	for (int i = 0; i < 3000; i++)
		rounds += ctx != 0;
	return rounds < 0;
}

char LICENSE[] SEC("license") = "GPL";
