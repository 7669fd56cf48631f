/* fathom/number.h - numbers as text, the same in every locale of the program.
 *
 * C's strtod and printf take the point of the locale that the program has set: what one program
 * wrote another could not read, or would read only up to the point.
 *
 *   char text[FTH_NUMBER];
 *   double v;
 *   if (!fth_real_parse(argument, &v)) return refuse(argument);
 *   puts(fth_number_format(text, sizeof text, v, 0));
 *
 * Threads: any, while none sets the locale.
 */
#ifndef FATHOM_NUMBER_H
#define FATHOM_NUMBER_H

#include <fathom/base.h>

FTH_BEGIN_DECLS

enum { FTH_NUMBER = 40 }; /* bytes that hold any number */

/* The number that a text begins with, as strtod takes it with a point; `end` may be NULL. Where the
 * locale has another point, a number has at most 510 characters. */
FTH_API double fth_strtod(const char *text, const char **end);
/* The whole text as one number, decimal, hex, inf or nan; false: it is none, or is NULL. */
FTH_API bool fth_real_parse(const char *text, double *out);
/* The whole text as a whole number in base 10; false also when it does not fit. */
FTH_API bool fth_int_parse(const char *text, int64_t *out);
/* With so many digits, 1 to 17, as "%.*g" writes it; 0: 15 to 17, the fewest that read as the same
 * number. nan, inf and -inf otherwise. Returns `text`. */
FTH_API const char *fth_number_format(char *text, size_t bytes, double v, int digits);

FTH_END_DECLS
#endif /* FATHOM_NUMBER_H */
