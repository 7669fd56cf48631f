/* export_dispersion.c - dispersions of genes, from the table that analyze writes. */
#include "export.h"

#include <inttypes.h>
#include <string.h>

/* A line of another gene, or without a number: the table is of another analysis, or was edited. */
static fth_status take_line(fth_text_line *line, const char *path, const char *gene, double *theta,
                            fth_err *err)
{
    fth_text_field name, value;
    if (fth_text_column_next(line, ',', &name) && fth_text_column_next(line, ',', &value) &&
        name.n == strlen(gene) && memcmp(name.text, gene, name.n) == 0 &&
        fth_text_real(&value, theta) && *theta > 0)
        return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                  "%s: line %" PRId64 ": gene %.100s and its dispersion, a number "
                                  "above 0, were expected",
                                  path, line->number, gene);
    fth_err_hint(err, "run analyze again");
    return s;
}

fth_status sp_export_read_dispersions(double *theta, fth_mem *mem, const char *path,
                                      const fth_texts *genes, fth_err *err)
{
    fth_reader file;
    fth_text_line line = {0};
    const int64_t n = fth_texts_count(genes);
    int64_t d = 0;
    fth_status s = fth_reader_open(&file, mem, path, NULL, err);
    if (s == FTH_OK) s = fth_reader_next(&file, &line, err); /* the names of its columns */
    while (s == FTH_OK && line.text && (s = fth_reader_next(&file, &line, err)) == FTH_OK &&
           line.text) {
        if (d < n) s = take_line(&line, path, fth_texts_get(genes, d), &theta[d], err);
        d++;
    }
    fth_reader_close(&file);
    if (s != FTH_OK || d == n) return s;
    s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "%s: it has dispersions of %" PRId64 " genes; %" PRId64 " were expected", path, d,
                 n);
    fth_err_hint(err, "run analyze again");
    return s;
}
