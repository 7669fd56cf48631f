/* testing/splat/splat_rows.h - made-up rows of splat for tests of its strategies. */
#ifndef FATHOM_TESTING_SPLAT_ROWS_H
#define FATHOM_TESTING_SPLAT_ROWS_H

#include "instruments/splat/strategy/rows.h"
#include "testing/io/files.h"

#include <fathom/graph.h>
#include <string.h>

static inline fth_context *t_rows_context(int threads, uint64_t budget)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = budget;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* Opacities from 0.002 to 0.998, sizes about 0.2 of a scene of 20, some rows without rotation, and
 * gradients in steps, so that many are equal. */
static inline void t_rows_make(gs_rows *rows, fth_context *ctx, int64_t n, int64_t most, int degree,
                               unsigned flags, uint64_t seed)
{
    t_random r = t_random_make(seed);
    gs_rows_memory m;
    OK(gs_rows_create(rows, ctx, n, most, degree, flags, NULL));
    OK(gs_rows_open(rows, &m, NULL));
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            if (m.at[p][a])
                t_random_fill_f32(&r, m.at[p][a], n * gs_columns((gs_attribute)a, degree));
    for (int64_t i = 0; i < n; i++) {
        m.at[GS_VALUE][GS_OPACITY][i] = (float)(12 * t_random_f64(&r) - 6);
        for (int k = 0; k < 3; k++) m.at[GS_VALUE][GS_SCALING][3 * i + k] -= 3;
        if (t_random_i64(&r, 0, 40) == 0)
            memset(m.at[GS_VALUE][GS_ROTATION] + 4 * i, 0, 4 * sizeof(float));
        if (!m.densify) continue;
        m.densify[2 * i] = (float)t_random_i64(&r, 0, 3);
        m.densify[2 * i + 1] = 1e-4f * (float)t_random_i64(&r, 0, 12);
    }
}

/* Of every number of every array. */
static inline uint64_t t_rows_hash(const gs_rows *rows)
{
    gs_rows_memory m;
    uint64_t hash = (uint64_t)rows->n;
    OK(gs_rows_open(rows, &m, NULL));
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            const int64_t columns = gs_columns((gs_attribute)a, rows->degree);
            if (!m.at[p][a]) continue;
            EQ_I64(fth_tensor_size(rows->tensor[p][a], 0), rows->n);
            hash = fth_hash_bytes(m.at[p][a], (size_t)(rows->n * columns) * sizeof(float), hash);
        }
    if (!m.densify) return hash;
    EQ_I64(fth_tensor_size(rows->densify, 0), rows->n);
    return fth_hash_bytes(m.densify, (size_t)rows->n * 2 * sizeof(float), hash);
}

#endif
