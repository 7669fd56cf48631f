/* base/json.h - writing JSON into a text: strings that any reader takes, numbers that are numbers.
 */
#ifndef FTH_BASE_JSON_H
#define FTH_BASE_JSON_H

#include "base/str.h"

/* The character at `s`, of which `left` bytes may be read (at least one), as it stands between
 * quotes: `n` bytes of `text`, for `taken` bytes of `s`. Every writer of JSON uses this one. What
 * is not UTF-8 becomes U+FFFD; '<' is escaped, so no text can end the <script> element of a page.
 */
typedef struct fth__json_char {
    char text[8];
    size_t n, taken;
} fth__json_char;
fth__json_char fth__json_escape(const char *s, size_t left);
/* Append a string with its quotes. Bytes that are not UTF-8 become U+FFFD: a parser would refuse
 * the whole file for one bad path. NULL is "". */
void fth__json_string(fth__text *t, const char *s);
/* Append a number with so many digits, 1 to 17. JSON has no infinity and no NaN: they become 0. */
void fth__json_number(fth__text *t, double v, int digits);

#endif
