// SPDX-License-Identifier: GPL-2.0
/* Values that libbpf prints. values.sh has the texts. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define META SEC(".rodata")

enum color { RED, GREEN = 5 };
struct version { int major, minor; };
struct bytes { char name[4]; unsigned char major, minor; };

const int bpf_metadata_array[] META = { 1, 0, 3 };
const enum color bpf_metadata_array_enum[] META = { RED, (enum color)4, GREEN };
const short bpf_metadata_array_of_arrays[2][2] META = { { 1, 2 }, { 0, 0 } };
const _Bool bpf_metadata_array_of_bool[] META = { 1, 0, 1 };
const char bpf_metadata_array_of_strings[2][4] META = { "one", "two" };
const struct { unsigned int a : 3; int b : 7; } bpf_metadata_bits META = { 5, 1 };
const struct bytes bpf_metadata_bytes META = { "ab", 0, 7 };
const char bpf_metadata_chars_cut_utf8[] META = "a\xc3";
const char bpf_metadata_chars_no_nul[2] META = { 'a', 'b' };
const char bpf_metadata_chars_no_utf8[] META = "\xff";
const unsigned char bpf_metadata_chars_overlong[] META = "\xc0\xaf";
const unsigned char bpf_metadata_chars_past_last[] META = "\xf4\x90\x80\x80";
const unsigned char bpf_metadata_chars_surrogate[] META = "\xed\xa0\x80";
const double bpf_metadata_double META = -2.5;
const __int128 bpf_metadata_int128 META = 31;
const struct version bpf_metadata_struct_first META = { 1, 0 };
const struct version bpf_metadata_struct_second META = { 0, 1 };
const union { int i; unsigned short h[2]; } bpf_metadata_union META = { .h = { 1, 2 } };

SEC("socket")
int other_types(void *ctx)
{
	(void)ctx;
	return 0;
}
