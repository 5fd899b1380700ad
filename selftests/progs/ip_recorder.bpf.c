// SPDX-License-Identifier: GPL-2.0
/*
 * Records the addresses that a perf event interrupts, and the context that the program gets.
 * The build adds all metadata.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

#define relocated __attribute__((preserve_access_index))

/* The part of the context that is read, with the registers of both architectures. */
struct bpf_perf_event_data___x86 {
	struct {
		unsigned long ip;
	} relocated regs;
	__u64 sample_period;
	__u64 addr;
} relocated;

struct bpf_perf_event_data___arm64 {
	struct {
		__u64 pc;
	} relocated regs;
} relocated;

struct place {
	__u64 ip;
	__u64 addr;
};

struct event {
	__u64 count;
	__u64 sample_period;
	__u64 cookie;
	__u32 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct place);
	__type(value, struct event);
	__uint(max_entries, 65536);
} events SEC(".maps");

SEC("perf_event")
int record_ip(struct bpf_perf_event_data___x86 *ctx)
{
	struct bpf_perf_event_data___arm64 *arm64 = (void *)ctx;
	struct event first = {
		.count = 1,
		.sample_period = ctx->sample_period,
		.cookie = bpf_get_attach_cookie(ctx),
		.tgid = bpf_get_current_pid_tgid() >> 32,
	};
	struct place place = { .addr = ctx->addr };
	struct event *event;

	if (bpf_core_field_exists(ctx->regs.ip)) {
		place.ip = ctx->regs.ip;
		/*
		 * Without this, clang merges the loads of both branches into one with a variable
		 * offset, which the verifier refuses for a context.
		 */
		barrier_var(place.ip);
	} else {
		place.ip = arm64->regs.pc;
	}

	event = bpf_map_lookup_elem(&events, &place);
	if (event)
		__sync_fetch_and_add(&event->count, 1);
	else
		bpf_map_update_elem(&events, &place, &first, BPF_NOEXIST);
	return 0;
}
