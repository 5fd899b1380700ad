// SPDX-License-Identifier: GPL-2.0
/*
 * Keys of 63 bytes and values of 255 bytes, the limits of a record, are whole. Longer ones are
 * truncated. lengths.sh knows these variables.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define META SEC(".rodata")
#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define EURO "\xe2\x82\xac"

/* 63 characters, 64, and twice 80 that differ only in the last one */
const int bpf_metadata_key63_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx META = 63;
const int bpf_metadata_key64_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx META = 64;
const int bpf_metadata_key80_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxA META = 1;
const int bpf_metadata_key80_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxB META = 2;

/* With the quotes: 255 and 256 bytes */
const char bpf_metadata_value255[] META = FIFTY FIFTY FIFTY FIFTY FIFTY "255";
const char bpf_metadata_value256[] META = FIFTY FIFTY FIFTY FIFTY FIFTY "x256";
/* With the quotes: 302 bytes */
const char bpf_metadata_value302[] META = FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY;
const int bpf_metadata_value_array[200] META = { 1 };

/* Each value has the limit at another byte of a three-byte character. */
const char bpf_metadata_utf8_0[] META = FIFTY FIFTY FIFTY FIFTY "" EURO EURO EURO EURO EURO EURO
	EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO;
const char bpf_metadata_utf8_1[] META = FIFTY FIFTY FIFTY FIFTY "x" EURO EURO EURO EURO EURO EURO
	EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO;
const char bpf_metadata_utf8_2[] META = FIFTY FIFTY FIFTY FIFTY "xx" EURO EURO EURO EURO EURO EURO
	EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO EURO;

SEC("socket")
int lengths(void *ctx)
{
	(void)ctx;
	return 63;
}
