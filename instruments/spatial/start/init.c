/* init.c - where parameters start (model 13), as planned graphs that write into the parameters.
 *
 * Factors F0 and loadings W0 are random or made from the counts; the logarithms of F0 are then
 * standardised over all cells and factors, and W0 is scaled inversely. Those of nmf are centred for
 * each factor instead, and are where the means of every prior start (init_means.c). Random numbers
 * depend on (seed, stream, index in the tensor) alone, so a parameter of any size is filled in
 * chunks.
 */
#include "init.h"

#include "../prior/loadings.h"
#include "../prior/natural.h"
#include "given.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- a graph whose outputs are tensors ----
 *
 * Indices of random numbers follow the order of axis declarations, which is that of the tensor. */

enum { MOST = 4 };

typedef struct filling {
    fth_context *ctx;
    fth_graph *g;
    sp_model *m;
    fth_val seed, zero;
    fth_val out[MOST];
    fth_sink sink[MOST];
    int n;
    uint64_t held; /* bytes of its tensors */
} filling;

/* Memory for chunks of random numbers and of values computed from them. */
static const uint64_t room = 32u << 20;

static fth_status filling_open(filling *f, fth_context *ctx, sp_model *m, fth_err *err)
{
    *f = (filling){.ctx = ctx, .m = m, .g = fth_graph_create(ctx)};
    if (!f->g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the graph of start values");
    f->seed = fth_const_i64(f->g, FTH_I64, sp_draw_seed(&m->set));
    f->zero = fth_const_i64(f->g, FTH_I64, 0);
    return FTH_OK;
}

static void put(filling *f, sp_param p, fth_val v)
{
    f->out[f->n] = fth_cast(v, f->m->real);
    f->held += fth_tensor_bytes(f->m->param[p]);
    f->sink[f->n++] = fth_tensor_sink(f->m->param[p]);
}

/* Plans, runs and destroys the graph with `more` bytes beside the tensors: without a limit a plan
 * would use the whole budget, and training should have the largest peak. */
static fth_status filling_run(filling *f, fth_status s, uint64_t more, fth_err *err)
{
    if (s == FTH_OK) {
        const fth_limits limits = {.memory_bytes = f->held + more, .sinks = f->sink};
        fth_plan *p = fth_plan_make(f->g, f->out, f->n, &limits, err);
        s = p ? fth_run(p, f->sink, NULL, NULL, err) : err->status;
        fth_plan_destroy(p);
    }
    fth_graph_destroy(f->g);
    return s;
}

static fth_val normal(const filling *f, fth_dtype t, const char *axes, int64_t stream)
{
    return fth_normal(t, axes, f->seed, f->zero, stream);
}

static fth_val num(const filling *f, double x)
{
    return fth_const(f->g, FTH_F64, x);
}

/* ---- factors and loadings ---- */

/* Statistics of the counts, and start values computed from them (NULL: random). */
typedef struct begin {
    double mean; /* of all counts, zeros included */
    fth_tensor *F, *W;
    sp_init_parts parts;
} begin;

static void add_counts(void *user, const sp_walk_row *r)
{
    for (int64_t i = 0; i < r->n; i++) *(double *)user += (double)r->value[i];
}

/* If the counts alone do not identify the factors, every NMF start is equally poor: every second
 * restart is random. */
static sp_init kind_of(const sp_settings *s)
{
    const int64_t least = s->cells < s->genes ? s->cells : s->genes;
    if (s->fixed_W) return SP_INIT_NMF;
    if ((sp_init)s->init == SP_INIT_NMF && sp_restart_number(s) % 2 == 1) return SP_INIT_RANDOM;
    if ((sp_init)s->init != SP_INIT_AUTO) return (sp_init)s->init;
    return sp_factors(s) <= least ? SP_INIT_NNDSVD : SP_INIT_RANDOM;
}

static fth_status check_kind(const sp_settings *s, sp_init kind, fth_err *err)
{
    const bool svd = kind == SP_INIT_NNDSVD || kind == SP_INIT_NNDSVDA || kind == SP_INIT_NNDSVDAR;
    const int64_t most = svd && s->genes < s->cells ? s->genes : s->cells;
    if (kind == SP_INIT_RANDOM || kind == SP_INIT_NMF || sp_factors(s) <= most) return FTH_OK;
    const fth_status status = FTH_FAIL(err, FTH_E_CONFIG,
                                       "model.init: %" PRId64 " factors from %" PRId64
                                       " cells and %" PRId64 " genes; there can be %" PRId64,
                                       sp_factors(s), s->cells, s->genes, most);
    fth_err_hint(err, "set model.init to random, or model.n_components to less");
    return status;
}

static fth_status from_counts(begin *b, sp_model *m, sp_walk *walk, fth_err *err)
{
    const sp_settings *s = &m->set;
    const sp_init kind = kind_of(s);
    FTH_TRY(check_kind(s, kind, err));
    FTH_TRY(sp_walk_each(walk, add_counts, &b->mean, err));
    b->mean /= (double)s->cells * (double)s->genes;
    if (!(b->mean >= 0.0 && isfinite(b->mean)))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s/%s: the mean of the counts is %g",
                        walk->data->dir, SP_Y, b->mean);
    if (kind == SP_INIT_RANDOM) return FTH_OK;
    const int64_t f[2] = {s->cells, sp_factors(s)}, w[2] = {s->genes, sp_factors(s)};
    FTH_TRY(fth_tensor_create(&b->F, m->mem, "first factors", FTH_F64, 2, f, err));
    FTH_TRY(fth_tensor_create(&b->W, m->mem, "first loadings", FTH_F64, 2, w, err));
    b->parts = (sp_init_parts){.mem = m->mem,
                               .walk = walk,
                               .cells = s->cells,
                               .genes = s->genes,
                               .factors = sp_factors(s),
                               .seed = sp_draw_seed(s),
                               .mean = b->mean,
                               .F = fth_tensor_data(b->F),
                               .W = fth_tensor_data(b->W),
                               .kind = kind,
                               .drawn = sp_restart_number(s) > 0};
    if (s->fixed_W) return sp_init_given(&b->parts, m, err);
    if (kind == SP_INIT_NMF) return sp_init_nmf(&b->parts, err);
    return kind == SP_INIT_KMEANS ? sp_init_kmeans(&b->parts, err) : sp_init_nndsvd(&b->parts, err);
}

/* F0 [cell factor] or W0 [gene factor], f64. */
static fth_val first_of(filling *f, const begin *b, fth_tensor *made, const char *axes,
                        int64_t stream)
{
    if (made) f->held += fth_tensor_bytes(made);
    if (made)
        return fth_input(f->g, made == b->F ? "F0" : "W0", FTH_F64, axes, fth_tensor_source(made));
    const double size = sqrt(b->mean / (double)sp_factors(&f->m->set));
    return fth_mul(fth_abs(normal(f, FTH_F64, axes, stream)), num(f, size));
}

/* ln(F0 + 1e-8), standardised over everything: ln F1 [cell factor]. */
static fth_val standard_log(const filling *f, fth_val F0)
{
    const fth_val z = fth_log(fth_add(F0, num(f, 1e-8)));
    const fth_val mean = fth_mean(z, "cell factor");
    const fth_val sd = fth_sqrt(fth_variance(z, "cell factor"));
    const fth_val flat = fth_lt(sd, num(f, 1e-6));
    const fth_val by = fth_select(flat, num(f, 1.0), sd);
    return fth_div(fth_sub(z, fth_select(flat, num(f, 0.0), mean)), by);
}

/* The parameter that gives W: sp_loadings_raw as values. */
static fth_val raw_of(const filling *f, fth_val W)
{
    const sp_loadings mode = (sp_loadings)f->m->set.loadings_mode;
    const fth_val w = fth_max(W, num(f, 1e-8));
    if (mode == SP_LOADINGS_EXP) return fth_log(w);
    if (mode == SP_LOADINGS_SOFTPLUS) return fth_add(w, fth_log(fth_neg(fth_expm1(fth_neg(w)))));
    return W;
}

/* Means of ln F1 over the neighbours of each cell, standardised for each factor: [factor cell]. */
static fth_val smooth(filling *f, fth_val log_F1)
{
    f->held += fth_tensor_bytes(f->m->nbr_kl);
    fth_axis_like(f->g, "other", "cell");
    fth_axis(f->g, "nbr", fth_tensor_size(f->m->nbr_kl, 1));
    const fth_val list =
        fth_input(f->g, "nbr_kl", FTH_I32, "cell nbr", fth_tensor_source(f->m->nbr_kl));
    const fth_val own =
                      sp_is_hybrid(&f->m->set) ? fth_slice(log_F1, "factor", 0, "sfactor") : log_F1,
                  rows = fth_layout(own, sp_is_hybrid(&f->m->set) ? "sfactor cell" : "factor cell"),
                  from = fth_rename(rows, "cell", "other");
    const fth_val mu = fth_mean(fth_gather(from, "other", list), "nbr");
    const fth_val sd = fth_sqrt(fth_variance(mu, "cell"));
    const fth_val by = fth_select(fth_lt(sd, num(f, 1e-6)), num(f, 1.0), sd);
    return fth_div(fth_sub(mu, fth_mean(mu, "cell")), by);
}

/* Of the factors without positions, from logarithms [cell factor] of all. */
static fth_val means_of(const sp_settings *s, fth_val logs)
{
    if (!sp_is_hybrid(s)) return fth_layout(logs, "factor cell");
    return fth_layout(fth_slice(logs, "factor", s->n_components, "tfactor"), "tfactor cell");
}

static bool is_smooth(const sp_settings *s)
{
    return s->local && (sp_init_mu)s->init_mu == SP_MU_SMOOTH;
}

/* Neighbours may be anywhere: all logarithms, and the means before they are standardised, are in
 * memory. */
static uint64_t factors_room(const sp_settings *s)
{
    return room + (is_smooth(s) ? 16 * (uint64_t)(s->cells * sp_factors(s)) : 0);
}

static fth_status fill_factors(sp_model *m, fth_context *ctx, const sp_data *data, const begin *b,
                               fth_err *err)
{
    const sp_settings *s = &m->set;
    if (kind_of(s) == SP_INIT_NMF) {
        if (!s->fixed_W) sp_init_center(&b->parts);
        return sp_init_means(m, ctx, data, &b->parts, err);
    }
    filling f;
    FTH_TRY(filling_open(&f, ctx, m, err));
    fth_axis(f.g, "cell", s->cells);
    fth_axis(f.g, "gene", s->genes);
    fth_axis(f.g, "factor", sp_factors(s));
    if (sp_is_hybrid(s)) {
        fth_axis(f.g, "sfactor", s->n_components);
        fth_axis(f.g, "tfactor", s->nonspatial_components);
    }
    const fth_val F0 = first_of(&f, b, b->F, "cell factor", SP_STREAM_F);
    const fth_val W0 = first_of(&f, b, b->W, "gene factor", SP_STREAM_W);
    const fth_val log_F1 = standard_log(&f, F0), F1 = fth_exp(log_F1);
    const fth_val grown =
        fth_div(fth_mean(F1, "cell factor"), fth_add(fth_mean(F0, "cell factor"), num(&f, 1e-12)));
    put(&f, SP_P_W, raw_of(&f, fth_div(W0, grown)));
    const sp_param means = sp_means_param(s);
    if (m->param[means]) put(&f, means, means_of(s, fth_log(fth_add(F1, num(&f, 1e-8)))));
    if (is_smooth(s)) put(&f, SP_P_MU, smooth(&f, log_F1));
    return filling_run(&f, fth_graph_check(f.g, err), factors_room(s), err);
}

/* ---- what the priors start with ---- */

/* raw of a diagonal that is uniform, at least 1e-4. */
static fth_val diagonal(const filling *f, const char *axes)
{
    const fth_dtype t = f->m->real;
    const fth_val u =
        fth_max(fth_uniform(t, axes, f->seed, f->zero, SP_STREAM_LU), fth_const(f->g, t, 1e-4));
    if ((sp_cholesky)f->m->set.cholesky_mode == SP_CHOLESKY_EXP) return fth_log(u);
    return fth_log(fth_expm1(u));
}

/* Lu_raw: small below the diagonal, nothing above it. */
static fth_val lower(const filling *f)
{
    const fth_dtype t = f->m->real;
    const fth_val row = fth_expand(fth_index(f->g, "induce"), "induce2"),
                  col = fth_expand(fth_index(f->g, "induce2"), "induce");
    const char *axes = "factor induce induce2";
    const fth_val small = fth_mul(normal(f, t, axes, SP_STREAM_LU), fth_const(f->g, t, 0.01));
    const fth_val below = fth_select(fth_gt(row, col), small, fth_const(f->g, t, 0.0));
    return fth_select(fth_eq(row, col), diagonal(f, axes), below);
}

/* Of the elements of Lam (model 13.6). */
static double spread_of(const sp_settings *s)
{
    return (sp_init_Lam)s->init_Lam == SP_LAM_RANK ? 1.0 / sqrt((double)s->R) : 0.1;
}

static fth_status fill_prior(sp_model *m, fth_context *ctx, fth_err *err)
{
    const sp_settings *s = &m->set;
    filling f;
    FTH_TRY(filling_open(&f, ctx, m, err));
    fth_axis(f.g, "factor", s->n_components);
    const bool drawn = !is_smooth(s) && kind_of(s) != SP_INIT_NMF;
    fth_axis(f.g, s->local ? "cell" : "induce", fth_tensor_size(m->param[SP_P_MU], 1));
    if (drawn)
        put(&f, SP_P_MU,
            normal(&f, m->real, s->local ? "factor cell" : "factor induce", SP_STREAM_MU));
    if (s->local) {
        fth_axis(f.g, "rank", fth_tensor_size(m->param[SP_P_LAM], 2));
        put(&f, SP_P_LAM,
            fth_mul(normal(&f, m->real, "factor cell rank", SP_STREAM_LU),
                    fth_const(f.g, m->real, spread_of(s))));
    } else if (s->diagonal_only) {
        put(&f, SP_P_LU, diagonal(&f, "factor induce"));
    } else {
        fth_axis_like(f.g, "induce2", "induce");
        put(&f, SP_P_LU, lower(&f));
    }
    return filling_run(&f, fth_graph_check(f.g, err), room, err);
}

static void fill(fth_tensor *t, double value)
{
    const bool wide = fth_tensor_dtype(t) == FTH_F64;
    const int64_t n = (int64_t)(fth_tensor_bytes(t) / (wide ? 8 : 4));
    for (int64_t i = 0; i < n; i++)
        if (wide)
            ((double *)fth_tensor_data(t))[i] = value;
        else
            ((float *)fth_tensor_data(t))[i] = (float)value;
}

/* theta1, which holds the means so far, and theta2 (model 20.4). */
static void fill_natural(const sp_model *m)
{
    fth_tensor *t1 = m->param[SP_P_NATURAL1], *t2 = m->param[SP_P_NATURAL2];
    const int64_t n = fth_tensor_size(t1, 0) * fth_tensor_size(t1, 1);
    for (int64_t i = 0; i < n; i++)
        if (m->real == FTH_F32) {
            float *mean = (float *)fth_tensor_data(t1) + i;
            *mean = (float)sp_natural_start1((double)*mean);
            ((float *)fth_tensor_data(t2))[i] = (float)sp_natural_start2();
        } else {
            double *mean = (double *)fth_tensor_data(t1) + i;
            *mean = sp_natural_start1(*mean);
            ((double *)fth_tensor_data(t2))[i] = sp_natural_start2();
        }
}

static void clear_moments(sp_model *m)
{
    for (int i = 0; i < SP_PARAMS; i++) {
        fth_tensor *const both[] = {m->first[i], m->second[i]};
        for (int k = 0; k < 2; k++)
            if (both[k]) memset(fth_tensor_data(both[k]), 0, (size_t)fth_tensor_bytes(both[k]));
    }
    m->optimizer_steps = m->ell_steps = 0;
}

uint64_t sp_init_bytes(const sp_settings *s, const sp_sizes *size)
{
    const sp_init kind = kind_of(s);
    const int64_t L = sp_factors(s);
    const uint64_t made = 8 * (uint64_t)(L * (s->cells + s->genes)) + 8192;
    uint64_t most = sp_walk_bytes(size);
    if (kind == SP_INIT_RANDOM) return most > factors_room(s) ? most : factors_room(s);
    most += kind == SP_INIT_KMEANS ? sp_init_kmeans_bytes(s->cells, s->genes, L)
            : kind == SP_INIT_NMF  ? sp_init_nmf_bytes(s->cells, s->genes, L)
                                   : sp_init_nndsvd_bytes(s->cells, s->genes, L);
    if (sp_is_hybrid(s) && sp_init_split_bytes(s) > most) most = sp_init_split_bytes(s);
    if (kind == SP_INIT_NMF && sp_init_means_bytes(s) > most) most = sp_init_means_bytes(s);
    return made + (most > factors_room(s) ? most : factors_room(s));
}

fth_status sp_init_params(sp_model *m, fth_context *ctx, const sp_data *data, fth_err *err)
{
    fth_err own = {0};
    if (!err) err = &own; /* fth_plan_make reports failures through it */
    begin b = {0};
    sp_walk walk;
    FTH_TRY(sp_walk_open(&walk, data, err));
    if (m->set.size_factors == SP_SIZE_TOTAL) walk.median = m->set.size_median;
    fth_status s = from_counts(&b, m, &walk, err);
    sp_walk_close(&walk);
    if (s == FTH_OK && sp_is_hybrid(&m->set) && !m->set.fixed_W && b.F)
        s = sp_init_split(&b.parts, ctx, data, m->set.n_components, err);
    if (s == FTH_OK) s = fill_factors(m, ctx, data, &b, err);
    fth_tensor_release(b.F);
    fth_tensor_release(b.W);
    if (s == FTH_OK && m->set.spatial) s = fill_prior(m, ctx, err);
    if (s != FTH_OK) return s;
    /* without positions: every deviation starts at softplus(-2.2), about 0.105 */
    if (m->param[SP_P_RAW]) fill(m->param[SP_P_RAW], -2.2);
    if (m->param[SP_P_NATURAL1]) fill_natural(m);
    if (m->param[SP_P_ELL]) fill(m->param[SP_P_ELL], sp_ell_start(&m->set));
    if (m->param[SP_P_THETA]) FTH_TRY(sp_init_dispersion(m, data, err));
    clear_moments(m);
    return FTH_OK;
}
