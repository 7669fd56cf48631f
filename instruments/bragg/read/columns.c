/* columns.c - lines of numbers: sources, stol tables (model 14.1).
 *
 * Without `strict` every word is a number, 0 where it is not one, as in the reference.
 */
#include "read.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char delimiters[] = " \t,;:!\v\f\r";

/* The numbers of a line into v[0..columns), NaN where there are no more. In the reference, columns
 * missing after a line that ends with a word are 0. */
static fth_status split(const fth_reader *t, const fth_text_line *line, double *v, int columns,
                        bool strict, fth_err *err)
{
    const char *at = line->text + strspn(line->text, delimiters);
    bool word = false;
    for (int i = 0; i < columns; i++) {
        v[i] = word ? 0 : (double)NAN;
        if (*at == 0 || (strict && *at == '#')) continue;
        const char *end, *number = at, *next = at + strcspn(at, delimiters);
        v[i] = fth_strtod(at, &end);
        if (strict && (end != next || !isfinite(v[i])))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s:%" PRId64 ": expected a number, found \"%.*s\"", t->path,
                            line->number, (int)(next - at < 40 ? next - at : 40), at);
        at = next + strspn(next, delimiters);
        word = !strict && *at == 0 && number + strspn(number, "0123456789-+.EGeg") < next;
    }
    return FTH_OK;
}

/* The next line that is not empty; NULL at the end. */
static fth_status next_row(fth_reader *t, fth_text_line *line, bool strict, fth_err *err)
{
    for (;;) {
        FTH_TRY(fth_reader_next(t, line, err));
        if (!line->text) return FTH_OK;
        if (strict && !line->whole)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s:%" PRId64 ": expected numbers, found a zero byte", t->path,
                            line->number);
        const char first = line->text[strspn(line->text, delimiters)];
        if (first != 0 && !(strict && first == '#')) return FTH_OK;
    }
}

static fth_status read_rows(br_columns *out, fth_mem *mem, fth_reader *t, int columns, bool strict,
                            fth_err *err)
{
    fth_text_line line;
    for (;;) {
        FTH_TRY(next_row(t, &line, strict, err));
        if (!line.text) break;
        out->rows++;
    }
    if (out->rows == 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: expected lines of up to %d numbers, found none", t->path, columns);
    FTH_TRY_CTX(fth_tensor_create(&out->table, mem, "columns", FTH_F64, 2,
                                  ((int64_t[2]){out->rows, columns}), err),
                err, "%s: %" PRId64 " rows", t->path, out->rows);
    FTH_TRY(fth_reader_rewind(t, err));
    double *v = fth_tensor_data(out->table);
    for (int64_t i = 0; i < out->rows; i++) {
        FTH_TRY(next_row(t, &line, strict, err));
        if (!line.text)
            return FTH_FAIL(err, FTH_E_FILE_READ, "%s: the file changed while it was read",
                            t->path);
        FTH_TRY(split(t, &line, v + i * columns, columns, strict, err));
    }
    return FTH_OK;
}

fth_status br_columns_read(br_columns *out, fth_mem *mem, const char *path, int columns,
                           bool strict, fth_err *err)
{
    *out = (br_columns){0};
    fth_reader t;
    FTH_TRY(fth_reader_open(&t, mem, path, BR_AS_WRITTEN, err));
    const fth_status s = read_rows(out, mem, &t, columns, strict, err);
    fth_reader_close(&t);
    if (s != FTH_OK) {
        fth_tensor_release(out->table);
        *out = (br_columns){0};
    }
    return s;
}
