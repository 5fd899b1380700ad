// SPDX-License-Identifier: GPL-2.0
/*
 * One object with a variable of each C type whose text perf makes itself. Other types are in
 * other_types.bpf.c, types that clang does not write are in ../holders/handmade_btf.c.
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

/* bool and enum */

enum color { RED, GREEN = 5, BLUE };
enum negative { MINUS_ONE = -1, PLUS_ONE = 1 };
enum __attribute__((packed)) small { SMALL_A = 1, SMALL_B = 100 };

/* want: true */
const _Bool bpf_metadata_bool_true META = 1;
/* want: false */
const _Bool bpf_metadata_bool_false META = 0;
/* want: "GREEN" */
const enum color bpf_metadata_enum_named META = GREEN;
/* want: 3 */
const enum color bpf_metadata_enum_unnamed META = (enum color)3;
/* want: "MINUS_ONE" */
const enum negative bpf_metadata_enum_negative META = MINUS_ONE;
/* want: "SMALL_B" */
const enum small bpf_metadata_enum_packed META = SMALL_B;
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
/* Single chars */

/* want: 65 */
const char bpf_metadata_char_one META = 'A';
/* want: 10 */
const char bpf_metadata_char_newline META = '\n';

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
