// SPDX-License-Identifier: GPL-2.0
/*
 * Values that try to break readers, after a variable that must arrive. Each comment describes
 * the variable below it, or tells how perf shows it.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define META SEC(".rodata")

struct forward;

struct list {
	const struct list *next;
	int value;
};

#define NEST(outer, inner) struct outer { struct inner x; }
struct n0 { int x; };
NEST(n1, n0); NEST(n2, n1); NEST(n3, n2); NEST(n4, n3); NEST(n5, n4);
NEST(n6, n5); NEST(n7, n6); NEST(n8, n7); NEST(n9, n8); NEST(n10, n9);
NEST(n11, n10); NEST(n12, n11); NEST(n13, n12); NEST(n14, n13); NEST(n15, n14);
NEST(n16, n15); NEST(n17, n16); NEST(n18, n17); NEST(n19, n18); NEST(n20, n19);

/* 2^24 values in four bytes. The kernel refuses types that are nested much deeper. */
#define TWICE(outer, inner) union outer { union inner a, b; }
union u0 { int x; };
TWICE(u1, u0); TWICE(u2, u1); TWICE(u3, u2); TWICE(u4, u3); TWICE(u5, u4); TWICE(u6, u5);
TWICE(u7, u6); TWICE(u8, u7); TWICE(u9, u8); TWICE(u10, u9); TWICE(u11, u10); TWICE(u12, u11);
TWICE(u13, u12); TWICE(u14, u13); TWICE(u15, u14); TWICE(u16, u15); TWICE(u17, u16);
TWICE(u18, u17); TWICE(u19, u18); TWICE(u20, u19); TWICE(u21, u20); TWICE(u22, u21);
TWICE(u23, u22); TWICE(u24, u23);

#define TEN(e) e##0, e##1, e##2, e##3, e##4, e##5, e##6, e##7, e##8, e##9
#define HUNDRED(e) TEN(e##0), TEN(e##1), TEN(e##2), TEN(e##3), TEN(e##4), \
		   TEN(e##5), TEN(e##6), TEN(e##7), TEN(e##8), TEN(e##9)
enum many {
	HUNDRED(e0), HUNDRED(e1), HUNDRED(e2), HUNDRED(e3), HUNDRED(e4),
	HUNDRED(e5), HUNDRED(e6), HUNDRED(e7), HUNDRED(e8), HUNDRED(e9)
};

const char bpf_metadata_a_first[] META = "kept";
/* a member without elements; the kernel accepts no variable without elements */
const volatile struct {
	int number;
	char none[0];
} bpf_metadata_b_no_elements META = { .number = 6 };
/* a number: its target type is not defined */
const struct forward *const volatile bpf_metadata_c_forward META = (void *)7;
/* a struct whose type refers to itself */
const volatile struct list bpf_metadata_d_cycle META = { .value = 8 };
/* all 21 levels */
const volatile struct n20 bpf_metadata_e_nested META = {};
/* "...": its text is longer than a value may be */
const volatile int bpf_metadata_f_long[40000] META = { 1 };
/* "...": more work than perf spends on a map */
const volatile enum many bpf_metadata_g_work[1100] META = { [0 ... 1099] = e999 };
/* "...", as no work is left */
const volatile enum many bpf_metadata_h_enum META = e000;
/* strings and integers are no work */
const char bpf_metadata_i_last[] META = "kept";
const volatile int bpf_metadata_i_number META = 1;
/* "...": more work than perf spends on the map of this section */
const volatile union u24 bpf_metadata_j_union SEC(".rodata.union") = {};

SEC("socket")
int hostile(void *ctx)
{
	(void)ctx;
	return *(const volatile int *)&bpf_metadata_j_union;
}

char _license[] SEC("license") = "GPL";
