/* fathom/number.h - parse and format numbers, independent of the locale.
 *
 * C's strtod and printf use the decimal point of the program's locale, so that one program cannot
 * read what another wrote.
 *
 *   char text[FTH_NUMBER];
 *   double v;
 *   if (!fth_real_parse(argument, &v)) return refuse(argument);
 *   puts(fth_number_format(text, sizeof text, v, 0));
 *
 * Threads: any, while no thread calls setlocale.
 */
#ifndef FATHOM_NUMBER_H
#define FATHOM_NUMBER_H

#include <fathom/base.h>

FTH_BEGIN_DECLS

enum { FTH_NUMBER = 40 }; /* buffer size for any number, in bytes */

/* strtod with a decimal point; `end` may be NULL. In a locale with another decimal point, numbers
 * are limited to 510 characters. */
FTH_API double fth_strtod(const char *text, const char **end);
/* Parse the whole text as one number: decimal, hex, inf or nan; false: not a number, or NULL. */
FTH_API bool fth_real_parse(const char *text, double *out);
/* Parse the whole text as a decimal integer; false also when it does not fit. */
FTH_API bool fth_int_parse(const char *text, int64_t *out);
/* Format with `digits` significant digits, 1 to 17, like "%.*g"; 0: the fewest of 15 to 17 that
 * read back as the same number. Also nan, inf and -inf. Returns `text`. */
FTH_API const char *fth_number_format(char *text, size_t bytes, double v, int digits);

FTH_END_DECLS
#endif /* FATHOM_NUMBER_H */
