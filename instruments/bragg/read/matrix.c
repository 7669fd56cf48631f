/* matrix.c - a MOSFLM orientation matrix: the first nine numbers of a file (model 5.2). */
#include "read.h"

#include <math.h>

static fth_status nine(fth_reader *t, double *mat, fth_err *err)
{
    for (int i = 0; i < 9; i++) {
        bool found, digits;
        FTH_TRY(fth_reader_scan(t, &mat[i], &found, &digits, err));
        if (found && isfinite(mat[i])) continue;
        const fth_status s =
            FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s:%lld: expected the nine numbers of a matrix, found %s after %d", t->path,
                     (long long)t->line, found ? "one that is not finite" : "no number", i);
        fth_err_hint(err, "a matrix file starts with three rows of a*, b* and c*");
        return s;
    }
    return FTH_OK;
}

fth_status br_matrix_read(const char *path, fth_mem *mem, double *mat, fth_err *err)
{
    fth_reader t;
    FTH_TRY(fth_reader_open(&t, mem, path, BR_AS_WRITTEN, err));
    const fth_status s = nine(&t, mat, err);
    fth_reader_close(&t);
    return s;
}
