// SPDX-License-Identifier: GPL-2.0
/*
 * Floating point has an object of its own: at the first such variable bpftool (7.1, and the
 * source of 7.6) prints "(unsupported-kind", which is not JSON, and stops. So the values are
 * compared only with the literals.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define META SEC(".rodata")

/* want: 0.0 */
const double bpf_metadata_double_zero META = 0.0;
/* want: -0.0 */
const double bpf_metadata_double_minus_zero META = -0.0;
/* want: 1.0 */
const double bpf_metadata_double_one META = 1.0;
/* want: 0.1 */
const double bpf_metadata_double_tenth META = 0.1;
/* want: -2.5 */
const double bpf_metadata_double_negative META = -2.5;
/* want: 1e300 */
const double bpf_metadata_double_big META = 1e300;
/* want: 123456789012345680.0 */
const double bpf_metadata_double_digits META = 123456789012345678.0;
/* want: 0.30000000000000004 */
const double bpf_metadata_double_17_digits META = 0.1 + 0.2;
/* want: 1.7976931348623157e308 */
const double bpf_metadata_double_max META = __DBL_MAX__;
/* want: 5e-324 */
const double bpf_metadata_double_denormal META = __DBL_DENORM_MIN__;
/* want: "nan" */
const double bpf_metadata_double_nan META = __builtin_nan("");
/* want: "inf" */
const double bpf_metadata_double_inf META = __builtin_inf();
/* want: "-inf" */
const double bpf_metadata_double_minus_inf META = -__builtin_inf();
/* want: [0.5,"nan",-1.0] */
const double bpf_metadata_double_array[] META = { 0.5, __builtin_nan(""), -1.0 };

/* want: 0.1 */
const float bpf_metadata_float_tenth META = 0.1f;
/* want: 16777216.0 */
const float bpf_metadata_float_digits META = 16777217.0f;
/* want: 3.4028235e38 */
const float bpf_metadata_float_max META = __FLT_MAX__;
/* want: 1e-45 */
const float bpf_metadata_float_denormal META = __FLT_DENORM_MIN__;
/* want: "-inf" */
const float bpf_metadata_float_minus_inf META = -__builtin_inff();
/* want: {"f":1.5,"d":[-0.25,2.0]} */
const struct { float f; double d[2]; } bpf_metadata_float_struct META = { 1.5f, { -0.25, 2.0 } };

SEC("socket")
int types_float(void *ctx)
{
	(void)ctx;
	return 0;
}
