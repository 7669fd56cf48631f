/* json.c - JSON strings and numbers, whatever bytes a path has and whatever the locale prints. */
#include "base/json.h"

#include <math.h>
#include <string.h>

void fth__json_string(fth__text *t, const char *s)
{
    fth__text_add(t, "\"");
    size_t left = s ? strlen(s) : 0;
    while (left) {
        const size_t n = fth__utf8_length(s, left), taken = n > 0 ? n : 1;
        const unsigned char c = (unsigned char)*s;
        if (n == 0)
            fth__text_add(t, "\\ufffd");
        else if (c == '"' || c == '\\')
            fth__text_add(t, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fth__text_add(t, "\\u%04x", c);
        else
            fth__text_add_chars(t, s, n);
        s += taken;
        left -= taken;
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
