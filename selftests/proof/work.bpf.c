// SPDX-License-Identifier: GPL-2.0
/* The program whose cost is compared: ROUNDS rounds in each run */

#define SEC(name) __attribute__((section(name), used))

const char bpf_metadata_version[] SEC(".rodata") = VERSION;
int calls;

SEC("socket")
int work(void *packet)
{
	for (int i = 0; i < ROUNDS; i++)
		__sync_fetch_and_add(&calls, 1);
	return 0;
}
