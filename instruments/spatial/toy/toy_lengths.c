/* toy_lengths.c - factors of several lengthscales: all of them are drawn with each, and every
 * factor keeps the column of its own (model 19.5).
 *
 * Noise does not depend on the lengthscale, so a factor is what it would be if all had its own.
 */
#include "toy.h"

#include <string.h>

uint64_t sp_toy_lengths_bytes(const sp_toy *t)
{
    const uint64_t each = sizeof(double) + 2 * sizeof(float);
    return t->n_lengths > 1 ? each * (uint64_t)(t->cells * t->factors) : 0;
}

/* Columns of the factors whose lengthscale is number k, from one array to another. */
static void pick(const sp_toy *t, int k, size_t bytes, const void *from, void *to)
{
    const char *source = from;
    char *target = to;
    for (int64_t i = 0; i < t->cells * t->factors; i++)
        if (i % t->factors % t->n_lengths == k)
            memcpy(target + (size_t)i * bytes, source + (size_t)i * bytes, bytes);
}

static fth_status draw_each(sp_toy *t, float *factor, double *projected, fth_err *err)
{
    for (int k = 0; k < t->n_lengths; k++) {
        fth_tensor_release(t->projected);
        t->projected = NULL;
        t->lengthscale = t->length[k];
        FTH_TRY(t->exact ? sp_toy_draw_exact(t, err) : sp_toy_draw_near(t, err));
        pick(t, k, sizeof *factor, t->factor, factor);
        if (t->projected) pick(t, k, sizeof *projected, fth_tensor_data(t->projected), projected);
    }
    const size_t n = (size_t)(t->cells * t->factors);
    memcpy(t->factor, factor, n * sizeof *factor);
    if (t->projected) memcpy(fth_tensor_data(t->projected), projected, n * sizeof *projected);
    return FTH_OK;
}

fth_status sp_toy_draw_lengths(sp_toy *t, fth_err *err)
{
    double *block = NULL;
    const uint64_t n = (uint64_t)(t->cells * t->factors);
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, n * (sizeof(double) + sizeof(float)),
                         "factors of all lengthscales", (void **)&block, err));
    const fth_status s = draw_each(t, (float *)(void *)(block + n), block, err);
    fth_mem_release(t->mem, block, NULL);
    return s;
}

/* One file, from a map of all factors with each lengthscale. */
fth_status sp_toy_write_group_lengths(const sp_toy *t, int64_t g, const char *path, fth_err *err)
{
    const int64_t size[2] = {t->cells, t->factors};
    fth_tensor *one = NULL, *all = NULL;
    fth_status s = fth_tensor_create(&one, t->mem, "factors of a group", FTH_F32, 2, size, err);
    if (s == FTH_OK)
        s = fth_tensor_create(&all, t->mem, "factors of a group", FTH_F32, 2, size, err);
    for (int k = 0; s == FTH_OK && k < t->n_lengths; k++) {
        sp_toy same = *t;
        const fth_sink sink = fth_tensor_sink(one);
        same.lengthscale = t->length[k];
        s = t->exact ? sp_toy_write_group_exact(&same, g, &sink, err)
                     : sp_toy_write_group_near(&same, g, &sink, err);
        if (s == FTH_OK) pick(t, k, sizeof(float), fth_tensor_data(one), fth_tensor_data(all));
    }
    if (s == FTH_OK) s = fth_npy_save(t->mem, path, FTH_F32, 2, size, fth_tensor_data(all), err);
    fth_tensor_release(all);
    fth_tensor_release(one);
    return s;
}
