/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Metadata of BPF programs, for their source. Copy this file beside it.
 *
 *	#include "metadata.bpf.h"
 *
 *	BPF_METADATA(version, "1.2.3");
 *	BPF_METADATA(level, 4);
 *
 *	SEC("xdp")
 *	int filter(struct xdp_md *ctx)
 *	{
 *		BPF_METADATA_REF();
 *		...
 *
 * bpftool and perf show the keys of all programs of an object, and the values with the
 * types that they have in C. The object needs BTF: compile it with -g. Documentation/origins.rst
 * says which loaders need BPF_METADATA_REF(), and where even that does not help.
 */
#ifndef __METADATA_BPF_H
#define __METADATA_BPF_H

/*
 * BPF_METADATA() - give all programs of the object a key
 * @key: a name in C
 * @...: its value: a constant of any type, or a string; of a struct skeletons need the type
 *
 * It adds no instruction. bpftool takes keys from .rodata and no other section. Weak, so
 * that objects with the same key can be linked to one, which keeps the value of the first.
 */
#define BPF_METADATA(key, ...) \
	const __typeof__(__VA_ARGS__) bpf_metadata_##key \
		__attribute__((weak, used, section(".rodata"))) = __VA_ARGS__

/*
 * BPF_METADATA_REF() - make a program refer to the metadata, in a function of it
 *
 * A program that refers to a map holds it, whoever loads the program. This adds one
 * instruction of two slots (16 bytes) and a byte to .rodata, and the program gets another
 * tag. Static, because cilium/ebpf refuses to relocate what is weak.
 */
#define BPF_METADATA_REF() ({ \
	static const char metadata_ref __attribute__((section(".rodata"))); \
	__asm__ volatile("" : : "r"(&metadata_ref)); \
})

#endif
