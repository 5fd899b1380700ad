// SPDX-License-Identifier: GPL-2.0
/*
 * A profiler: counts the samples of each task and stack. The build adds the other keys.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#ifndef PROFILER_VERSION
#define PROFILER_VERSION "1.0"
#endif

#define MAX_DEPTH 127

const char bpf_metadata_version[] SEC(".rodata") = PROFILER_VERSION;
char LICENSE[] SEC("license") = "GPL";

/* The stacks are ids in the map, or a negative error. */
struct stack_key {
	__u32 tgid;
	__u32 pid;
	__s32 kernel_stack;
	__s32 user_stack;
};

struct stack_count {
	__u64 samples;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__type(key, __u32);
	__type(value, __u64[MAX_DEPTH]);
	__uint(max_entries, 4096);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct stack_key);
	__type(value, struct stack_count);
	__uint(max_entries, 16384);
} counts SEC(".maps");

SEC("perf_event")
int profile(void *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct stack_key key = {
		.tgid = id >> 32,
		.pid = id,
		.kernel_stack = bpf_get_stackid(ctx, &stacks, 0),
		.user_stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK),
	};
	struct stack_count first = { .samples = 1 };
	struct stack_count *count;

	count = bpf_map_lookup_elem(&counts, &key);
	if (count) {
		__sync_fetch_and_add(&count->samples, 1);
		return 0;
	}
	bpf_get_current_comm(first.comm, sizeof(first.comm));
	bpf_map_update_elem(&counts, &key, &first, BPF_NOEXIST);
	return 0;
}
