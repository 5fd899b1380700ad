// SPDX-License-Identifier: GPL-2.0
/*
 * Some loaders bind only the maps to which a program refers. So one program refers to the
 * metadata, and the other does not.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "../../metadata.bpf.h"

char LICENSE[] SEC("license") = "GPL";

BPF_METADATA(version, "1.2.3");
BPF_METADATA(level, 4);

SEC("socket")
int refers(void *ctx)
{
	(void)ctx;
	BPF_METADATA_REF();
	return 1;
}

SEC("socket")
int refers_not(void *ctx)
{
	(void)ctx;
	return 2;
}
