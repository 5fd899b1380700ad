// SPDX-License-Identifier: GPL-2.0
/*
 * One object with a variable of each C type that perf prints. Floating point is in
 * types_float.bpf.c, types that clang does not write are in ../holders/handmade_btf.c.
 *
 * values.py reads the comment before each variable: "want" is the text that perf must print,
 * "bpftool" is the text of bpftool if it differs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define META SEC(".rodata")

/* Integers */

/* want: -128 */
const signed char bpf_metadata_int_s8_min META = -128;
/* want: 127 */
const signed char bpf_metadata_int_s8_max META = 127;
/* want: 255 */
const unsigned char bpf_metadata_int_u8_max META = 255;
/* want: -32768 */
const short bpf_metadata_int_s16_min META = -32768;
/* want: 32767 */
const short bpf_metadata_int_s16_max META = 32767;
/* want: 65535 */
const unsigned short bpf_metadata_int_u16_max META = 65535;
/* want: 0 */
const int bpf_metadata_int_zero META = 0;
/* want: -2147483648 */
const int bpf_metadata_int_s32_min META = -2147483647 - 1;
/* want: 2147483647 */
const int bpf_metadata_int_s32_max META = 2147483647;
/* want: 4294967295 */
const unsigned int bpf_metadata_int_u32_max META = 4294967295U;
/* want: -9223372036854775808 */
const long long bpf_metadata_int_s64_min META = -9223372036854775807LL - 1;
/* want: 9223372036854775807 */
const long bpf_metadata_int_s64_max META = 9223372036854775807L;
/* want: 18446744073709551615 */
const unsigned long long bpf_metadata_int_u64_max META = 18446744073709551615ULL;
/* want: 7 */
const volatile __u32 bpf_metadata_int_typedef META = 7;

/* 128 bits */

#define S128_MAX ((__int128)(((unsigned __int128)1 << 127) - 1))

/* want: 0 bpftool: "0x0" */
const __int128 bpf_metadata_int128_zero META = 0;
/* want: -1 bpftool: "0xffffffffffffffffffffffffffffffff" */
const __int128 bpf_metadata_int128_minus META = -1;
/* want: -170141183460469231731687303715884105728
 * bpftool: "0x80000000000000000000000000000000" */
const __int128 bpf_metadata_int128_min META = -S128_MAX - 1;
/* want: 170141183460469231731687303715884105727
 * bpftool: "0x7fffffffffffffffffffffffffffffff" */
const __int128 bpf_metadata_int128_max META = S128_MAX;
/* want: 340282366920938463463374607431768211455
 * bpftool: "0xffffffffffffffffffffffffffffffff" */
const unsigned __int128 bpf_metadata_int128_umax META = -1;
/* 10^19 + 5: zeros in the middle of the digits. */
/* want: 10000000000000000005 bpftool: "0x8ac7230489e80005" */
const unsigned __int128 bpf_metadata_int128_zeros META = 10000000000000000005ULL;
/* want: [1,-2] bpftool: ["0x1","0xfffffffffffffffffffffffffffffffe"] */
const __int128 bpf_metadata_int128_array[2] META = { 1, -2 };

/* bool, enum, pointer */

enum color { RED, GREEN = 5, BLUE };
enum negative { MINUS_ONE = -1, PLUS_ONE = 1 };
enum __attribute__((packed)) small { SMALL_A = 1, SMALL_B = 100 };

/* want: true */
const _Bool bpf_metadata_bool_true META = 1;
/* want: false */
const _Bool bpf_metadata_bool_false META = 0;
/* want: [true,false,true] */
const _Bool bpf_metadata_bool_array[] META = { 1, 0, 1 };
/* want: "GREEN" */
const enum color bpf_metadata_enum_named META = GREEN;
/* want: 3 */
const enum color bpf_metadata_enum_unnamed META = (enum color)3;
/* want: "MINUS_ONE" */
const enum negative bpf_metadata_enum_negative META = MINUS_ONE;
/* want: "SMALL_B" */
const enum small bpf_metadata_enum_packed META = SMALL_B;
/* want: ["RED",4,"BLUE"] */
const enum color bpf_metadata_enum_array[] META = { RED, (enum color)4, BLUE };
/* want: 0 */
void *const bpf_metadata_ptr_null META = (void *)0;
/* want: 4660 */
void *const bpf_metadata_ptr META = (void *)0x1234;
/* want: [1,2] */
void *const bpf_metadata_ptr_array[] META = { (void *)1, (void *)2 };

/* Strings that need no escapes: upstream's perf prints the same */

typedef char my_char;
typedef char name_t[8];

/* want: "1.2.3" */
const volatile char bpf_metadata_text_plain[] META = "1.2.3";
/* want: "" */
const char bpf_metadata_text_empty[] META = "";
/* want: "" */
const char bpf_metadata_text_zeros[8] META = {};
/* want: "ab" */
const char bpf_metadata_text_padded[8] META = "ab";
/* want: "v1" */
const char bpf_metadata_text_after_nul[8] META = "v1\0junk";
/* want: "v1" */
const char bpf_metadata_text_no_utf8_after_nul[] META = "v1\0\xff";
/* want: "" */
const char bpf_metadata_text_nul_first[2] META = { 0, 1 };
/* want: "</script> & %s %n ${x}" */
const char bpf_metadata_text_format[] META = "</script> & %s %n ${x}";
/* want: "typedef" */
const name_t bpf_metadata_text_typedef META = "typedef";

/* bpftool prints text only if the type is named "char". */
/* want: "signed" bpftool: [115,105,103,110,101,100,0] */
const signed char bpf_metadata_text_signed[] META = "signed";
/* want: "unsigned" bpftool: [117,110,115,105,103,110,101,100,0] */
const unsigned char bpf_metadata_text_unsigned[] META = "unsigned";
/* want: "AB" bpftool: [65,66,0] */
const my_char bpf_metadata_text_my_char[] META = "AB";
/* want: "u8" bpftool: [117,56,0,255] */
const __u8 bpf_metadata_text_u8[] META = { 'u', '8', 0, 255 };

/* Other strings */

/* bpftool 7.1 prints a backslash as a line feed. */
/* want: "it's \"quoted\" and \\back\\" bpftool: "it's \"quoted\" and \nback\n" */
const char bpf_metadata_str_escapes[] META = "it's \"quoted\" and \\back\\";
/* want: "tab\tline\ncr\r" bpftool: [116,97,98,9,108,105,110,101,10,99,114,13,0] */
const char bpf_metadata_str_control[] META = "tab\tline\ncr\r";
/* want: "\u001b[2J\u0001\u001f" bpftool: [27,91,50,74,1,31,0] */
const char bpf_metadata_str_terminal[] META = "\x1b[2J\x01\x1f";
/* want: "a\u007fb" bpftool: [97,127,98,0] */
const char bpf_metadata_str_del[] META = "a\x7f" "b";
/* U+009B begins a control sequence, like ESC [. */
/* want: "\u009b2J" bpftool: [-62,-101,50,74,0] */
const char bpf_metadata_str_c1[] META = "\xc2\x9b" "2J";
/* want: "café" bpftool: [99,97,102,-61,-87,0] */
const char bpf_metadata_str_utf8[] META = "caf\xc3\xa9";
/* want: "€😀" bpftool: [-30,-126,-84,-16,-97,-104,-128,0] */
const char bpf_metadata_str_utf8_long[] META = "\xe2\x82\xac\xf0\x9f\x98\x80";
/* want: "é" bpftool: [195,169,0] */
const unsigned char bpf_metadata_str_utf8_unsigned[] META = "\xc3\xa9";
/* want: "\udbff\udfff" bpftool: [-12,-113,-65,-65,0] */
const char bpf_metadata_str_utf8_last[] META = "\xf4\x8f\xbf\xbf";
/* want: "abc" bpftool: [97,98,99] */
const char bpf_metadata_str_no_nul[3] META = { 'a', 'b', 'c' };
/* want: ["one","two"] */
const char bpf_metadata_str_array[2][8] META = { "one", "two" };
/* want: [["a","b"],["","d"]] */
const char bpf_metadata_str_array2[2][2][2] META = { { "a", "b" }, { "", "d" } };

/* Char arrays that are not strings: numbers */

/* want: [255,254,0] bpftool: [-1,-2,0] */
const char bpf_metadata_num_no_utf8[] META = "\xff\xfe";
/* want: [97,195] bpftool: [97,-61] */
const char bpf_metadata_num_cut_utf8[2] META = "a\xc3";
/* want: [192,175,0] bpftool: [-64,-81,0] */
const char bpf_metadata_num_overlong[] META = "\xc0\xaf";
/* want: [237,160,128,0] bpftool: [-19,-96,-128,0] */
const char bpf_metadata_num_surrogate[] META = "\xed\xa0\x80";
/* want: [244,144,128,128,0] bpftool: [-12,-112,-128,-128,0] */
const char bpf_metadata_num_past_last[] META = "\xf4\x90\x80\x80";
/* want: [65,-1,0] */
const signed char bpf_metadata_num_signed[] META = { 65, -1, 0 };
/* want: [65,255,0] */
const unsigned char bpf_metadata_num_unsigned[] META = { 65, 255, 0 };
/* Without a NUL, only "char" is text: this can be a hash. */
/* want: [97,98] */
const __u8 bpf_metadata_num_no_nul[2] META = { 'a', 'b' };

/* Single chars */

/* want: 65 */
const char bpf_metadata_char_one META = 'A';
/* want: 10 */
const char bpf_metadata_char_newline META = '\n';

/* Arrays */

/* want: [1,0,3] */
const int bpf_metadata_array_int[] META = { 1, 0, 3 };
/* want: [0] */
const long bpf_metadata_array_one[1] META = { 0 };
/* want: [[1,2],[3,4],[0,0]] */
const short bpf_metadata_array_array[3][2] META = { { 1, 2 }, { 3, 4 } };
/* want: [[[1],[2]],[[3],[4]]] */
const short bpf_metadata_array_deep[2][2][1] META = { { { 1 }, { 2 } }, { { 3 }, { 4 } } };

/* Structs and unions */

struct version { int major, minor; };
struct nested {
	char name[8];
	struct version v;
	struct version list[2];
	enum color color;
	_Bool ok;
};
union word { int i; unsigned short h[2]; };
struct flexible { int n; char tail[0]; };
struct empty {};
struct holds_empty { int a; struct empty e; int b; };

/* want: {"major":1,"minor":2} */
const struct version bpf_metadata_struct_plain META = { 1, 2 };
/* want: {"name":"n","v":{"major":1,"minor":2},"list":[{"major":3,"minor":4},{"major":5,"minor":6}],"color":"BLUE","ok":true} */
const struct nested bpf_metadata_struct_nested META = {
	"n", { 1, 2 }, { { 3, 4 }, { 5, 6 } }, BLUE, 1,
};
/* want: [{"major":1,"minor":2},{"major":0,"minor":0}] */
const struct version bpf_metadata_struct_array[2] META = { { 1, 2 } };
/* want: {"n":3,"tail":[]} */
const struct flexible bpf_metadata_struct_zero_length META = { .n = 3 };
/* want: {"a":1,"e":{},"b":2} */
const struct holds_empty bpf_metadata_struct_empty META = { .a = 1, .b = 2 };
/* want: {"i":131073,"h":[1,2]} */
const union word bpf_metadata_union META = { .h = { 1, 2 } };
/* want: [{"i":1,"h":[1,0]},{"i":-1,"h":[65535,65535]}] */
const union word bpf_metadata_union_array[2] META = { { 1 }, { -1 } };

/* Anonymous members belong to their parent */

struct anonymous {
	int before;
	struct { int in_struct; union { int u1; unsigned char u2; }; };
	union { short s; };
	int after;
};

/* want: {"before":1,"in_struct":2,"u1":259,"u2":3,"s":4,"after":5}
 * bpftool: {"before":1,"":{"in_struct":2,"":{"u1":259,"u2":3}},"":{"s":4},"after":5} */
const struct anonymous bpf_metadata_anon META = {
	.before = 1, .in_struct = 2, .u1 = 0x103, .s = 4, .after = 5,
};
/* want: [{"a":1,"b":2},{"a":3,"b":4}] bpftool: [{"a":1,"":{"b":2}},{"a":3,"":{"b":4}}] */
const struct { int a; struct { int b; }; } bpf_metadata_anon_array[2] META = {
	{ 1, { 2 } }, { 3, { 4 } },
};

/* Bit-fields */

struct bits {
	unsigned int a : 3;
	int b : 7;			/* crosses a byte */
	unsigned long long c : 41;
	long long d : 13;
};
struct __attribute__((packed)) packed_bits {
	unsigned long long a : 60;
	unsigned long long b : 10;	/* crosses 8 bytes */
	long long c : 63;
};
struct bits_unnamed { int a : 4; int : 3; int b : 9; int : 0; int c; };

/* want: {"a":5,"b":-3,"c":1099511627777,"d":-4096}
 * bpftool: {"a":"0x5","b":"0x7d","c":"0x10000000001","d":"0x1000"} */
const struct bits bpf_metadata_bits META = { 5, -3, 0x10000000001ULL, -4096 };
/* want: {"a":1152921504606846975,"b":1023,"c":-4611686018427387904}
 * bpftool: {"a":"0xfffffffffffffff","b":"0x3ff","c":"0x4000000000000000"} */
const struct packed_bits bpf_metadata_bits_packed META = {
	0xfffffffffffffffULL, 1023, -4611686018427387904LL,
};
/* want: {"a":-8,"b":255,"c":-1} bpftool: {"a":"0x8","b":"0xff","c":-1} */
const struct bits_unnamed bpf_metadata_bits_unnamed META = { -8, 255, -1 };
/* want: [{"x":1,"y":-1},{"x":0,"y":0}] bpftool: [{"x":"0x1","y":"0x3"},{"x":"0x0","y":"0x0"}] */
const struct { unsigned int x : 1; int y : 2; } bpf_metadata_bits_array[2] META = { { 1, -1 } };

/* want: {"no":false,"yes":true,"color":"GREEN","number":3}
 * bpftool: {"no":"0x0","yes":"0x1","color":"0x5","number":"0x3"} */
const struct {
	_Bool no : 1, yes : 1;
	enum color color : 4;
	unsigned long long number : 3;
} bpf_metadata_bits_typed META = { 0, 1, GREEN, 3 };
/* want: {"typedefed":5,"modified":17,"next":1}
 * bpftool: {"typedefed":"0x5","modified":"0x11","next":"0x1"} */
const struct {
	__u32 typedefed : 3;
	const volatile __u32 modified : 5;
	__u32 next : 1;
} bpf_metadata_bits_behind_a_typedef META = { 5, 17, 1 };

/* Key */

/* want: "one letter" */
const char bpf_metadata_k[] META = "one letter";

/* Not metadata */
const int not_bpf_metadata_x META = 1;
const int bpf_metadatax META = 1;

SEC("socket")
int types(void *ctx)
{
	(void)ctx;
	return 0;
}
