/* init_split.c - which of the first factors of a hybrid are its spatial ones (model 18.3).
 *
 * A factorisation of the counts knows no positions. Those of its factors with the largest Moran's I
 * become the spatial ones, which stand first, the others those without positions.
 */
#include "../statistics/moran.h"
#include "init_parts.h"

#include <string.h>

/* Columns of x [rows][L] in the given order. */
static void reorder(double *x, int64_t rows, int64_t L, const int64_t *order, double *row)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t l = 0; l < L; l++) row[l] = x[i * L + order[l]];
        memcpy(x + i * L, row, (size_t)L * sizeof *row);
    }
}

static uint64_t room_bytes(int64_t cells, int64_t factors)
{
    return (uint64_t)factors * (sizeof(double) + (uint64_t)cells * sizeof(float));
}

uint64_t sp_init_split_bytes(const sp_settings *s)
{
    enum { THREADS = 256 }; /* more than there are: a piece of a list for each */
    return room_bytes(s->cells, sp_factors(s)) + sp_moran_bytes(s->cells, THREADS);
}

fth_status sp_init_split(const sp_init_parts *p, fth_context *ctx, const sp_data *data,
                         int64_t spatial, fth_err *err)
{
    const int64_t L = p->factors;
    void *block = NULL;
    sp_moran moran = {0};
    if (spatial >= L) return FTH_OK;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, room_bytes(p->cells, L), "first factors in f32",
                         &block, err));
    double *row = block;
    float *x = (float *)(void *)(row + L);
    for (int64_t i = 0; i < p->cells * L; i++) x[i] = (float)p->F[i];
    const fth_status s = sp_moran_run(&moran, ctx, fth_tensor_data(data->xy), x, p->cells, L, err);
    if (s == FTH_OK) {
        reorder(p->F, p->cells, L, moran.order, row);
        reorder(p->W, p->genes, L, moran.order, row);
    }
    sp_moran_clear(&moran);
    (void)fth_mem_release(p->mem, block, NULL);
    return s;
}
