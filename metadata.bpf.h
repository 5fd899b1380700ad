/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Macros with which the source of BPF programs declares metadata. Copy this file beside the source.
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
 * bpftool and perf show the keys of all programs of an object, and the values with their types
 * in C. The object needs BTF: compile it with -g. Documentation/origins.rst says which loaders
 * need BPF_METADATA_REF(), and which lose the metadata even then.
 */
#ifndef __METADATA_BPF_H
#define __METADATA_BPF_H

/*
 * BPF_METADATA() - give all programs of the object a key
 * @key: a name in C
 * @...: a constant of any type or a string. Users of a skeleton must define a struct's type.
 *
 * The macro adds no instruction. The variable is in .rodata, the only section from which bpftool
 * reads keys. It is weak, so that objects with the same key can be linked into one, which keeps
 * the value of the first object.
 */
#define BPF_METADATA(key, ...) \
	const __typeof__(__VA_ARGS__) bpf_metadata_##key \
		__attribute__((weak, used, section(".rodata"))) = __VA_ARGS__

/*
 * BPF_METADATA_REF() - make a program refer to the metadata; use it in a function of the program
 *
 * A program that refers to a map holds it, with any loader. The macro adds one instruction of two
 * slots (16 bytes), and a byte to .rodata, and so changes the tag of the program. The variable is
 * static, because cilium/ebpf refuses to relocate weak symbols.
 */
#define BPF_METADATA_REF() ({ \
	static const char metadata_ref __attribute__((section(".rodata"))); \
	__asm__ volatile("" : : "r"(&metadata_ref)); \
})

#endif
