/* testing/spatial/spatial_made.h - data and models of any size, made up: a jittered grid of cells,
 * counts without a pattern, parameters at random.
 */
#ifndef FATHOM_TESTING_SPATIAL_MADE_H
#define FATHOM_TESTING_SPATIAL_MADE_H

#include "testing/spatial/spatial_data.h"
#include "testing/test.h"

#include "instruments/spatial/neighbours/neighbours.h"

#include <math.h>

typedef struct t_made {
    sp_kind kind;
    int64_t cells, genes, factors, groups;
    int64_t M, K, R;
    int stored; /* counts above zero of ten */
} t_made;

/* The folder `dir` with X, Y, C and names. */
static inline void t_made_data(const t_made *m, const char *dir)
{
    const int64_t n = m->cells, D = m->genes, side = (int64_t)ceil(sqrt((double)n));
    float *xy = malloc((size_t)n * 2 * sizeof *xy);
    float *Y = malloc((size_t)(n * D) * sizeof *Y);
    int64_t *group = malloc((size_t)n * sizeof *group);
    const float apart = 200.0f / (float)side;
    t_random r = t_random_make(11);
    for (int64_t i = 0; i < n; i++) {
        xy[2 * i] = ((float)(i % side) + (float)t_random_i64(&r, 0, 99) * 0.004f) * apart;
        xy[2 * i + 1] = ((float)(i / side) + (float)t_random_i64(&r, 0, 99) * 0.004f) * apart;
        group[i] = i < m->groups ? i : (i / side + i % side) * 3 / 2 / side % m->groups;
        for (int64_t d = 0; d < D; d++)
            Y[i * D + d] = (float)(t_random_i64(&r, 0, 9) < m->stored ? t_random_i64(&r, 1, 7) : 0);
    }
    t_spatial_write(dir, xy, Y, group, n, D, m->groups);
    free(xy);
    free(Y);
    free(group);
}

static inline void t_made_fill(fth_tensor *t, t_random *r, float scale, float shift)
{
    if (!t) return;
    float *v = fth_tensor_data(t);
    const int64_t n = (int64_t)(fth_tensor_bytes(t) / sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = shift + scale * ((float)t_random_i64(r, 0, 2000) / 1000 - 1);
}

static inline sp_settings t_made_settings(const t_made *m)
{
    const sp_kind_info *k = &sp_kinds[m->kind];
    return (sp_settings){.seed = 3,
                         .cells = m->cells,
                         .genes = m->genes,
                         .n_groups = m->groups,
                         .n_components = m->factors,
                         .loadings_mode = SP_MULTIPLICATIVE,
                         .E = 3,
                         .spatial = k->spatial,
                         .groups = k->groups,
                         .local = k->local,
                         .sigma = 1,
                         .lengthscale = 20,
                         .jitter = 1e-5,
                         .group_diff_param = 1,
                         .M = k->local     ? m->cells
                              : k->spatial ? m->M
                                           : 0,
                         .K = k->local ? m->K : 0,
                         .R = k->local ? m->R : 0};
}

/* A checkpoint at `path`, tied to the data in `dir`. */
static inline void t_made_model(const t_made *made, fth_context *ctx, const char *dir,
                                const char *path)
{
    const bool local = sp_kinds[made->kind].local;
    const sp_settings set = t_made_settings(made);
    sp_model m;
    sp_data data;
    fth_err err = {0};
    t_random r = t_random_make((uint64_t)made->kind + 5);
    OKE(sp_data_open(&data, fth_context_mem(ctx), dir, &err), &err);
    OKE(sp_model_create(&m, fth_context_mem(ctx), &set, FTH_F32, false, &err), &err);
    OKE(sp_model_tie(&m, &data, &err), &err);
    t_made_fill(m.param[SP_P_W], &r, 0.5f, 0.6f);
    t_made_fill(m.param[SP_P_MEAN], &r, 1, 0);
    t_made_fill(m.param[SP_P_RAW], &r, 0.5f, -2);
    t_made_fill(m.param[SP_P_MU], &r, 1, 0);
    t_made_fill(m.param[SP_P_LU], &r, 0.1f, -0.5f);
    t_made_fill(m.param[SP_P_LAM], &r, 0.3f, 0);
    const float *xy = fth_tensor_data(data.xy);
    const int32_t *group = fth_tensor_data(data.group);
    for (int64_t i = 0; m.Z && i < fth_tensor_size(m.Z, 0); i++) {
        const int64_t from = local ? i : i * (made->cells / made->M);
        memcpy((float *)fth_tensor_data(m.Z) + 2 * i, xy + 2 * from, 8);
        if (m.groupsZ) ((int32_t *)fth_tensor_data(m.groupsZ))[i] = group[from];
    }
    if (local) {
        sp_nbr_conditional c;
        sp_nbr_inference n;
        OKE(sp_neighbours_conditional(&c, ctx, &m, xy, group, &err), &err);
        OKE(sp_neighbours_inference(&n, ctx, &m, xy, group, &err), &err);
    }
    OKE(sp_model_write(&m, path, false, NULL, 0, &err), &err);
    sp_model_clear(&m);
    sp_data_close(&data);
}

/* The config of such a model; `more` are further lines. */
static inline fth_config *t_made_config(const t_made *m, fth_mem *mem, const char *more)
{
    char text[1200];
    fth_config *cfg = NULL;
    fth_err err = {0};
    const sp_kind_info *k = &sp_kinds[m->kind];
    snprintf(text, sizeof text,
             "name: x\nseed: 3\ndataset: arrays\npreprocessing: {path: nowhere}\n"
             "analyze: {export: false}\n"
             "model: {n_components: %d, spatial: %s, groups: %s, local: %s, lengthscale: 20.0%s}\n"
             "%s",
             (int)m->factors, k->spatial ? "true" : "false", k->groups ? "true" : "false",
             k->local ? "true" : "false", k->groups ? ", group_diff_param: 1.0" : "", more);
    OK(fth_config_create(&cfg, mem, NULL));
    OKE(fth_config_parse(cfg, "x", text, strlen(text), &err), &err);
    OKE(fth_config_check(cfg, &sp_schema, NULL, &err), &err);
    return cfg;
}

#endif
