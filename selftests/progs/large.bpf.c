// SPDX-License-Identifier: GPL-2.0
/* 16 values of 60,000 bytes */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define TEXT(key) \
	const char bpf_metadata_##key[60000] SEC(".rodata") = { [0 ... 59998] = #key[0] }

TEXT(a); TEXT(b); TEXT(c); TEXT(d); TEXT(e); TEXT(f); TEXT(g); TEXT(h);
TEXT(i); TEXT(j); TEXT(k); TEXT(l); TEXT(m); TEXT(n); TEXT(o); TEXT(p);

SEC("socket")
int large(void *ctx)
{
	(void)ctx;
	return 0;
}

char _license[] SEC("license") = "GPL";
