/* answer.c - files of the spatial instrument in the answer of a verb. */
#include "answer.h"

#include <inttypes.h>

enum { NPY_HEADER = 128 };

int64_t sp_npy_bytes(fth_dtype dtype, int n_axes, const int64_t *size)
{
    int64_t bytes = fth_dtype_size(dtype);
    for (int a = 0; a < n_axes; a++) bytes *= size[a];
    return bytes + NPY_HEADER;
}

fth_status sp_answer_array(fth_answer *a, fth_file_kind kind, const char *dir, const char *name,
                           fth_dtype dtype, int n_axes, const int64_t *size, fth_err *err)
{
    char path[FTH_PATH], shape[96] = "";
    size_t used = 0;
    FTH_TRY(fth_path_join(path, dir, name, err));
    for (int i = 0; i < n_axes; i++) {
        const int n =
            snprintf(shape + used, sizeof shape - used, "%s%" PRId64, i ? " x " : "", size[i]);
        used += n > 0 && used + (size_t)n < sizeof shape ? (size_t)n : 0;
    }
    fth_answer_file(a, kind, path, kind == FTH_FILE_INPUT ? -1 : sp_npy_bytes(dtype, n_axes, size),
                    "%s %s", fth_dtype_name(dtype), shape);
    return FTH_OK;
}

fth_status sp_answer_named(fth_answer *a, fth_file_kind kind, const char *dir, const char *name,
                           const char *what, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, name, err));
    if (what)
        fth_answer_file(a, kind, path, -1, "%s", what);
    else
        fth_answer_file(a, kind, path, -1, NULL);
    return FTH_OK;
}

fth_status sp_answer_data(fth_answer *a, const sp_data *d, fth_err *err)
{
    char counts[96];
    snprintf(counts, sizeof counts, "%" PRId64 " counts of %" PRId64 " x %" PRId64, d->size.entries,
             d->rows, d->size.genes);
    FTH_TRY(
        sp_answer_array(a, FTH_FILE_INPUT, d->dir, SP_X, FTH_F32, 2, (int64_t[]){d->rows, 2}, err));
    FTH_TRY(sp_answer_array(a, FTH_FILE_INPUT, d->dir, SP_C, FTH_I64, 1, &d->rows, err));
    if (d->sections.n > 0)
        FTH_TRY(sp_answer_array(a, FTH_FILE_INPUT, d->dir, SP_S, FTH_I64, 1, &d->rows, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, d->dir, SP_Y, counts, err));
    return sp_answer_named(a, FTH_FILE_INPUT, d->dir, SP_METADATA, "names", err);
}
