// SPDX-License-Identifier: GPL-2.0
/* A program of several functions: each has a KSYMBOL record of its own. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const char bpf_metadata_version[] SEC(".rodata") = "functions";

static __attribute__((noinline)) int static_function(int x)
{
	return x * 3 + bpf_get_smp_processor_id();
}

__attribute__((noinline)) int global_function(int x)
{
	return x * 5 + bpf_get_smp_processor_id();
}

/* Longer than the 15 characters of a program's name in the kernel. */
static __attribute__((noinline)) int
a_function_with_a_name_that_is_longer_than_any_field_of_sixteen_or_sixty_four_bytes(int x)
{
	return x * 7 + bpf_get_smp_processor_id();
}

SEC("socket")
int functions_with_a_long_program_name(void *ctx)
{
	(void)ctx;
	return static_function(1) + global_function(2) +
	       a_function_with_a_name_that_is_longer_than_any_field_of_sixteen_or_sixty_four_bytes(3);
}
