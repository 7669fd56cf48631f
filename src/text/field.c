/* field.c - a field of a line as a number, and what to say when it is none. */
#include <fathom/reader.h>

#include "base/str.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The field as a text of its own; false: it is too long to be a number, or has a zero byte or
 * blanks in front, which strtod would skip. */
static bool terminate(const fth_text_field *f, char text[FTH_READER_NUMBER])
{
    if (f->n == 0 || f->n >= FTH_READER_NUMBER || isspace((unsigned char)f->text[0]) ||
        memchr(f->text, 0, f->n))
        return false;
    memcpy(text, f->text, f->n);
    text[f->n] = '\0';
    return true;
}

bool fth_text_real(const fth_text_field *f, double *out)
{
    char text[FTH_READER_NUMBER];
    return terminate(f, text) && fth_real_parse(text, out);
}

bool fth_text_int(const fth_text_field *f, int64_t *out)
{
    char text[FTH_READER_NUMBER];
    return terminate(f, text) && fth_int_parse(text, out);
}

fth_status fth_reader_fail(const fth_reader *r, const fth_text_field *f, const char *expected,
                           fth_err *err)
{
    enum { SHOWN = 40 };
    char found[SHOWN + 4];
    const size_t n = f->n < SHOWN ? f->n : SHOWN;
    if (n > 0) memcpy(found, f->text, n);
    memcpy(found + n, f->n > SHOWN ? "..." : "", f->n > SHOWN ? 4 : 1);
    fth__str_make_plain(found);
    char column[24] = "";
    if (f->column > 0) snprintf(column, sizeof column, ":%" PRId64, f->column);
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%" PRId64 "%s: expected %s, found \"%s\"", r->path,
                    f->line, column, expected, found);
}

fth_status fth_reader_real(const fth_reader *r, const fth_text_field *f, double low, double high,
                           double *out, fth_err *err)
{
    double v;
    if (fth_text_real(f, &v) && isfinite(v) && v >= low && v <= high) {
        *out = v;
        return FTH_OK;
    }
    char expected[96] = "a finite number";
    if (isfinite(low) && isfinite(high))
        snprintf(expected, sizeof expected, "a number from %g to %g", low, high);
    else if (isfinite(low) || isfinite(high))
        snprintf(expected, sizeof expected, "a finite number %s %g",
                 isfinite(low) ? "not below" : "not above", isfinite(low) ? low : high);
    return fth_reader_fail(r, f, expected, err);
}

fth_status fth_reader_int(const fth_reader *r, const fth_text_field *f, int64_t low, int64_t high,
                          int64_t *out, fth_err *err)
{
    int64_t v;
    if (fth_text_int(f, &v) && v >= low && v <= high) {
        *out = v;
        return FTH_OK;
    }
    char expected[96];
    snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, low, high);
    return fth_reader_fail(r, f, expected, err);
}

fth_status fth_reader_row(const fth_reader *r, fth_text_line *line, char separator, int n,
                          const double *low, const double *high, double *out, const char *expected,
                          fth_err *err)
{
    const fth_text_field none = {"", 0, line->number, 0};
    fth_text_field f;
    for (int i = 0; i < n; i++) {
        if (!fth_text_column_next(line, separator, &f))
            return fth_reader_fail(r, &none, expected, err);
        FTH_TRY(fth_reader_real(r, &f, low[i], high[i], &out[i], err));
    }
    if (fth_text_column_next(line, separator, &f))
        return fth_reader_fail(r, &f, "the end of the line", err);
    return FTH_OK;
}
