/* init_means.c - start values from a factorisation of the counts (init: nmf, model 13.5).
 *
 * The model has no intercept: scaling a factor and its loadings inversely changes nothing. As the
 * prior's mean is 0, the logarithms of each factor are centred, and its loadings are scaled
 * inversely (as in the NSF programs). A hundredth of its mean is added to a factor, so that
 * logarithms are finite where it is 0.
 */
#include "../neighbours/neighbours.h"
#include "../prior/loadings.h"
#include "../prior/svgp.h"
#include "init_parts.h"

#include <math.h>

static const double least_factor = 1e-2;  /* of the mean over cells, added */
static const double least_loading = 1e-4; /* of the mean over genes: 0 would stay 0 */

static double column_mean(const double *x, int64_t n, int64_t L, int64_t l)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i * L + l];
    return sum / (double)n;
}

void sp_init_center(const sp_init_parts *p)
{
    const int64_t L = p->factors;
    for (int64_t l = 0; l < L; l++) {
        const double size = column_mean(p->F, p->cells, L, l);
        double mean = 0;
        for (int64_t i = 0; i < p->cells; i++) {
            double *f = &p->F[i * L + l];
            *f = size > 0 ? log(*f / size + least_factor) : 0;
            mean += *f / (double)p->cells;
        }
        for (int64_t i = 0; i < p->cells; i++) p->F[i * L + l] -= mean;
        const double grown = (size > 0 ? size : 1) * exp(mean);
        const double floor = fmax(least_loading * column_mean(p->W, p->genes, L, l), 1e-8);
        for (int64_t g = 0; g < p->genes; g++) {
            double *w = &p->W[g * L + l];
            *w = fmax(*w, floor) * grown;
        }
    }
}

/* ---- into the tensors of a model ---- */

static void put(fth_tensor *t, int64_t i, double v)
{
    if (fth_tensor_dtype(t) == FTH_F64)
        ((double *)fth_tensor_data(t))[i] = v;
    else
        ((float *)fth_tensor_data(t))[i] = (float)v;
}

/* As many factors as t has, from number `first` on. */
static void put_cells(fth_tensor *t, const sp_init_parts *p, int64_t first)
{
    const int64_t L = fth_tensor_size(t, 0);
    for (int64_t i = 0; i < p->cells; i++)
        for (int64_t l = 0; l < L; l++) put(t, l * p->cells + i, p->F[i * p->factors + first + l]);
}

/* Mean over the listed cells, the nearest first, that are of its section (NULL: all); those of
 * another group than `group` (NULL: any) only count where there is no cell of that group among
 * them. */
static double mean_of(const sp_init_parts *p, const int32_t *cell, int64_t k, int64_t l,
                      const int32_t *section, const int32_t *group_of, int32_t group)
{
    double own = 0, all = 0;
    int64_t n = 0;
    while (section && section[cell[k - 1]] != section[cell[0]]) k--; /* others are farther */
    for (int64_t i = 0; i < k; i++) {
        const double f = p->F[cell[i] * p->factors + l];
        all += f;
        if (!group_of || group_of[cell[i]] != group) continue;
        own += f;
        n++;
    }
    return n > 0 ? own / (double)n : all / (double)k;
}

/* Cells per inducing point, from 1 up to a limit. */
static int64_t cells_of_point(int64_t cells, int64_t points)
{
    const int64_t most = 64, k = (cells + points / 2) / points;
    return k < 1 ? 1 : k > most ? most : k;
}

static fth_status put_points(const sp_model *m, fth_context *ctx, const sp_data *data,
                             const sp_init_parts *p, fth_err *err)
{
    const int64_t M = fth_tensor_size(m->Z, 0), k = cells_of_point(p->cells, M);
    const int32_t *section = data->section ? fth_tensor_data(data->section) : NULL,
                  *group = m->groupsZ ? fth_tensor_data(data->group) : NULL,
                  *groupZ = m->groupsZ ? fth_tensor_data(m->groupsZ) : NULL;
    void *block = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)(M * k) * sizeof(int32_t),
                         "cells of points", &block, err));
    int32_t *list = block;
    const fth_status s = sp_neighbours_of(list, ctx, m->mem, fth_tensor_data(data->xy), p->cells,
                                          fth_tensor_data(m->Z), M, k, err);
    for (int64_t j = 0; s == FTH_OK && j < M; j++)
        for (int64_t l = 0; l < m->set.n_components; l++)
            put(m->param[SP_P_MU], l * M + j,
                mean_of(p, list + j * k, k, l, section, group, groupZ ? groupZ[j] : 0));
    (void)fth_mem_release(m->mem, block, NULL);
    return s;
}

/* Means over the neighbours of each cell, for init_mu: smooth. */
static void put_smooth(const sp_model *m, const sp_init_parts *p)
{
    const int64_t K = fth_tensor_size(m->nbr_kl, 1);
    const int32_t *list = fth_tensor_data(m->nbr_kl);
    for (int64_t i = 0; i < p->cells; i++)
        for (int64_t l = 0; l < m->set.n_components; l++)
            put(m->param[SP_P_MU], l * p->cells + i, mean_of(p, list + i * K, K, l, NULL, NULL, 0));
}

/* ---- whitened ---- */

static uint64_t whitening_room(int64_t M)
{
    return 3 * 8 * (uint64_t)(M * M) + (8u << 20);
}

/* mu becomes Lc^-1 mu. */
static fth_status whiten(sp_model *m, fth_context *ctx, fth_err *err)
{
    sp_model_graph net;
    fth_tensor *mu = m->param[SP_P_MU], *made = NULL;
    const int64_t size[2] = {fth_tensor_size(mu, 0), fth_tensor_size(mu, 1)};
    FTH_TRY(fth_tensor_create(&made, m->mem, "whitened means", m->real, 2, size, err));
    fth_status s = sp_model_graph_create(&net, ctx, m, false, m->set.cells, err);
    if (s == FTH_OK) {
        const sp_cov cov = sp_cov_of(m); /* the lengthscale of the settings is that of all */
        const fth_val Lc = sp_svgp_factor(net.g, m, &cov, net.Z, net.groupsZ, NULL);
        const fth_val whole = fth_cast(net.param[SP_P_MU], FTH_F64);
        const fth_val out =
            fth_layout(fth_cast(fth_solve(Lc, whole, "induce", "induce2"), m->real),
                       sp_is_hybrid(&m->set) ? "sfactor induce2" : "factor induce2");
        const fth_sink sink = fth_tensor_sink(made);
        const fth_limits limits = {
            .memory_bytes = whitening_room(size[1]) + 2 * fth_tensor_bytes(mu), .sinks = &sink};
        fth_plan *plan = fth_plan_make(net.g, &out, 1, &limits, err);
        s = plan ? fth_run(plan, &sink, NULL, NULL, err) : err->status;
        fth_plan_destroy(plan);
        sp_model_graph_destroy(&net);
    }
    if (s == FTH_OK) {
        m->param[SP_P_MU] = made;
        made = mu;
    }
    fth_tensor_release(made);
    return s;
}

/* ---- all of it ---- */

uint64_t sp_init_means_bytes(const sp_settings *s)
{
    if (!s->spatial || s->local) return 0;
    const int64_t k = cells_of_point(s->cells, s->M);
    const uint64_t list = 4 * (uint64_t)(s->M * k) + sp_grid_bytes(s->cells) + (1u << 20),
                   solve = s->parametrization == SP_WHITENED
                               ? whitening_room(s->M) + 8 * (uint64_t)(s->M * s->n_components)
                               : 0;
    return list > solve ? list : solve;
}

fth_status sp_init_means(sp_model *m, fth_context *ctx, const sp_data *data, const sp_init_parts *p,
                         fth_err *err)
{
    const sp_loadings mode = (sp_loadings)m->set.loadings_mode;
    for (int64_t i = 0; !m->set.fixed_W && i < p->genes * p->factors; i++)
        put(m->param[SP_P_W], i, sp_loadings_raw(mode, p->W[i]));
    fth_tensor *means = m->param[sp_means_param(&m->set)];
    if (means) put_cells(means, p, m->set.spatial ? m->set.n_components : 0);
    if (!m->set.spatial) return FTH_OK;
    if (m->set.local) {
        if ((sp_init_mu)m->set.init_mu == SP_MU_SMOOTH)
            put_smooth(m, p);
        else
            put_cells(m->param[SP_P_MU], p, 0);
        return FTH_OK;
    }
    FTH_TRY(put_points(m, ctx, data, p, err));
    return m->set.parametrization == SP_WHITENED ? whiten(m, ctx, err) : FTH_OK;
}
