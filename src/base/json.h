/* base/json.h - writing JSON into a text: strings that any reader takes, numbers that are numbers.
 */
#ifndef FTH_BASE_JSON_H
#define FTH_BASE_JSON_H

#include "base/str.h"

/* Append a string with its quotes. Bytes that are not UTF-8 become U+FFFD: a parser would refuse
 * the whole file for one bad path. NULL is "". */
void fth__json_string(fth__text *t, const char *s);
/* Append a number with so many digits, 1 to 17. JSON has no infinity and no NaN: they become 0. */
void fth__json_number(fth__text *t, double v, int digits);

#endif
