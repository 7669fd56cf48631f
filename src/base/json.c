/* json.c - JSON strings and numbers, whatever bytes a path has and whatever the locale prints. */
#include "base/json.h"

#include <math.h>
#include <string.h>

static fth__json_char made_of(const char *text, size_t n, size_t taken)
{
    fth__json_char c = {.n = n, .taken = taken};
    memcpy(c.text, text, n);
    return c;
}

fth__json_char fth__json_escape(const char *s, size_t left)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char c = (unsigned char)*s;
    const size_t n = fth__utf8_length(s, left);
    if (n == 0) return made_of("\xef\xbf\xbd", 3, 1);
    if (c == '"' || c == '\\') return made_of((const char[]){'\\', *s}, 2, 1);
    if (c == '\n') return made_of("\\n", 2, 1);
    if (c < 0x20 || c == 0x7f || c == '<')
        return made_of((const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6, 1);
    return made_of(s, n, n);
}

void fth__json_string(fth__text *t, const char *s)
{
    fth__text_add(t, "\"");
    size_t left = s ? strlen(s) : 0;
    while (left) {
        const fth__json_char c = fth__json_escape(s, left);
        fth__text_add_chars(t, c.text, c.n);
        s += c.taken;
        left -= c.taken;
    }
    fth__text_add(t, "\"");
}

void fth__json_number(fth__text *t, double v, int digits)
{
    char number[40];
    fth__text n;
    fth__text_init(&n, number, sizeof number);
    fth__text_add(&n, "%.*g", digits, isfinite(v) ? v : 0.0);
    for (char *c = number; *c; c++)
        if (!strchr("0123456789+-eE", *c)) *c = '.';
    fth__text_add(t, "%s", number);
}
