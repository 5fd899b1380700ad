/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FUZZ_JSON_TEXT_H
#define FUZZ_JSON_TEXT_H

/*
 * Check that a text of perf is JSON, as in RFC 8259, without control characters in its strings.
 *
 * Each skip function gets the rest of the text. It returns a pointer to the character after
 * its part, or NULL if the text does not begin with this part.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/types.h>
#include "util/utf8.h"

/* The deepest nesting of arrays and objects that counts as valid */
#define JSON_TEXT_MAX_DEPTH	128

static const char *skip_value(const char *s, int depth);

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t\n\r");
}

static const char *skip_digits(const char *s)
{
	size_t len = strspn(s, "0123456789");

	return len ? s + len : NULL;
}

static const char *skip_number(const char *s)
{
	if (*s == '-')
		s++;

	s = *s == '0' ? s + 1 : skip_digits(s);
	if (s && *s == '.')
		s = skip_digits(s + 1);
	if (s && (*s == 'e' || *s == 'E')) {
		s++;
		if (*s == '+' || *s == '-')
			s++;
		s = skip_digits(s);
	}
	return s;
}

static const char *skip_escape(const char *s)
{
	int i;

	if (*s && strchr("\"\\/bfnrt", *s))
		return s + 1;
	if (*s != 'u')
		return NULL;

	for (i = 1; i <= 4; i++) {
		if (!isxdigit((unsigned char)s[i]))
			return NULL;
	}
	return s + 5;
}

static const char *skip_string(const char *s)
{
	size_t len;
	u32 code;

	for (s++; s && *s != '"'; ) {
		if (*s == '\\') {
			s = skip_escape(s + 1);
			continue;
		}
		len = utf8__decode(s, strnlen(s, UTF8_MAX_SIZE), &code);
		s = len && !utf8__is_control(code) ? s + len : NULL;
	}
	return s ? s + 1 : NULL;
}

static const char *skip_member(const char *s, int depth)
{
	s = *s == '"' ? skip_string(s) : NULL;
	s = s ? skip_space(s) : NULL;
	return s && *s == ':' ? skip_value(s + 1, depth) : NULL;
}

static const char *skip_list(const char *s, int depth)
{
	const char close = *s == '[' ? ']' : '}';

	if (depth == JSON_TEXT_MAX_DEPTH)
		return NULL;

	s = skip_space(s + 1);
	if (*s == close)
		return s + 1;

	for (;;) {
		s = close == ']' ? skip_value(s, depth + 1) : skip_member(s, depth + 1);
		if (!s || *s == close)
			return s ? s + 1 : NULL;
		if (*s != ',')
			return NULL;
		s = skip_space(s + 1);
	}
}

static const char *skip_word(const char *s)
{
	static const char * const words[] = { "true", "false", "null" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strncmp(s, words[i], strlen(words[i])))
			return s + strlen(words[i]);
	}
	return NULL;
}

/* A value with the space around it */
static const char *skip_value(const char *s, int depth)
{
	s = skip_space(s);
	if (*s == '"')
		s = skip_string(s);
	else if (*s == '[' || *s == '{')
		s = skip_list(s, depth);
	else if (*s == '-' || isdigit((unsigned char)*s))
		s = skip_number(s);
	else
		s = skip_word(s);
	return s ? skip_space(s) : NULL;
}

static bool json_text__is_valid(const char *text)
{
	const char *end = skip_value(text, 0);

	return end && !*end;
}

#endif
