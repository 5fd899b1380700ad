// SPDX-License-Identifier: GPL-2.0
/* Values that must be encoded in the name of a function. names.sh knows the keys. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define META SEC(".rodata")
#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN

const char bpf_metadata_array[] META = { 1, 2, 3 };
const char bpf_metadata_empty[] META = "";
/* 452 characters fit. In percents, the limit is within an encoded character. */
const char bpf_metadata_long[] META = FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY "xx";
const int bpf_metadata_number META = -7;
const char bpf_metadata_odd[] META = "a b;c\n\t%s]{[\"'(\\)->,=/\x1b\xe2\x82\xac";
const char bpf_metadata_percents[] META = "%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%"
	"%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%"
	"%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%";
const char bpf_metadata_version[] META = "1.2.3-rc4+git~5:6_7@8";

SEC("socket")
int named(void *ctx)
{
	(void)ctx;
	return 0;
}

char _license[] SEC("license") = "GPL";
