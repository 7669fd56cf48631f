/* real.c - numbers of C's own form, with a point in every locale; see fathom/number.h. Those of
 * configs, which have other words for infinity, are in number.c. */
#include <fathom/number.h>

#include "text/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 512 }; /* as FTH_READER_NUMBER: no reader takes a longer one */

double fth_strtod(const char *text, const char **end)
{
    const char *point = localeconv()->decimal_point;
    char *stop;
    if (strcmp(point, ".") == 0) {
        const double v = strtod(text, &stop);
        if (end) *end = stop;
        return v;
    }
    /* the point of the text becomes that of the locale, which is one byte or is not understood */
    char copy[LONGEST];
    snprintf(copy, sizeof copy, "%s", text);
    char *dot = strpbrk(copy, ".,");
    if (dot) *dot = *dot == '.' ? point[0] : '\0';
    const double v = strtod(copy, &stop);
    if (end) *end = text + (stop - copy);
    return v;
}

bool fth_real_parse(const char *text, double *out)
{
    const char *end = NULL;
    const double v = text ? fth_strtod(text, &end) : 0;
    if (!text || end == text || *end) return false;
    *out = v;
    return true;
}

bool fth_int_parse(const char *text, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    const long long v = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end || errno == ERANGE) return false;
    *out = v;
    return true;
}

const char *fth_number_format(char *text, size_t bytes, double v, int digits)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    if (isfinite(v))
        fth__number_print_digits(&t, v, digits);
    else
        fth__text_add(&t, "%s", isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    return text;
}
