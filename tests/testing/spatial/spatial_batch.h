/* testing/spatial/spatial_batch.h - batches of counts made by hand, and the likelihood of one of
 * them by the obvious loops in double: what the operations of instruments/spatial are compared
 * with.
 */
#ifndef FATHOM_TESTING_SPATIAL_BATCH_H
#define FATHOM_TESTING_SPATIAL_BATCH_H

#include "instruments/spatial/prior/likelihood.h"
#include "testing/test.h"

#include <math.h>

static inline fth_context *sb_context(int threads, uint64_t budget)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = budget;
    fth_context *ctx = NULL;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static inline fth_tensor *sb_tensor(fth_mem *mem, const char *label, fth_dtype t, int n_axes,
                                    const int64_t *size)
{
    fth_err err = {0};
    fth_tensor *out = NULL;
    OKE(fth_tensor_create(&out, mem, label, t, n_axes, size, &err), &err);
    memset(fth_tensor_data(out), 0, (size_t)fth_tensor_bytes(out));
    return out;
}

/* A tensor of f32 or f64 from doubles. */
static inline fth_tensor *sb_real(fth_mem *mem, const char *label, fth_dtype t, int n_axes,
                                  const int64_t *size, const double *from)
{
    fth_tensor *out = sb_tensor(mem, label, t, n_axes, size);
    int64_t n = 1;
    for (int d = 0; d < n_axes; d++) n *= size[d];
    for (int64_t i = 0; i < n; i++)
        if (t == FTH_F64)
            ((double *)fth_tensor_data(out))[i] = from[i];
        else
            ((float *)fth_tensor_data(out))[i] = (float)from[i];
    return out;
}

static inline double sb_get(fth_tensor *t, int64_t i)
{
    return fth_tensor_dtype(t) == FTH_F64 ? ((double *)fth_tensor_data(t))[i]
                                          : (double)((float *)fth_tensor_data(t))[i];
}

/* Stored counts of a dense Y[cell][gene], zeros left out; `spare` places stay behind the last. */
static inline sp_counts sb_counts(fth_mem *mem, const double *Y, int64_t cells, int64_t genes,
                                  int64_t spare)
{
    int64_t n = 0;
    for (int64_t i = 0; i < cells * genes; i++) n += Y[i] != 0.0;
    const int64_t room = n + spare > 0 ? n + spare : 1;
    sp_counts c = {.row_ptr = sb_tensor(mem, "row_ptr", FTH_I64, 1, (int64_t[]){cells + 1}),
                   .gene = sb_tensor(mem, "gene", FTH_I32, 1, &room),
                   .value = sb_tensor(mem, "value", FTH_F32, 1, &room)};
    int64_t *row_ptr = fth_tensor_data(c.row_ptr), at = 0;
    int32_t *gene = fth_tensor_data(c.gene);
    float *value = fth_tensor_data(c.value);
    for (int64_t i = 0; i < cells; i++) {
        for (int64_t g = 0; g < genes; g++)
            if (Y[i * genes + g] != 0.0) {
                gene[at] = (int32_t)g;
                value[at++] = (float)Y[i * genes + g];
                c.constant += lgamma(Y[i * genes + g] + 1.0);
            }
        row_ptr[i + 1] = at;
    }
    for (; at < room; at++) { /* nobody may look at these */
        gene[at] = INT32_MAX;
        value[at] = NAN;
    }
    return c;
}

static inline void sb_counts_free(sp_counts *c)
{
    fth_tensor_release(c->row_ptr);
    fth_tensor_release(c->gene);
    fth_tensor_release(c->value);
}

/* Everything a batch is evaluated from; f, s [factor][cell], eps [draw][factor][cell], W
 * [gene][factor], Y [cell][gene]. */
typedef struct sb_batch {
    int64_t cells, genes, factors, draws;
    const double *f, *s, *eps, *W, *Y;
    sp_mode mode;
} sb_batch;

/* What comes out, in arrays of the caller's; NULL: not wanted. */
typedef struct sb_values {
    double ell; /* without the constant */
    double *df, *ds, *slope, *update;
} sb_values;

/* The same by the equations of model 8.1, 8.2 and 9.2. */
static inline void sb_reference(const sb_batch *b, sb_values *out)
{
    const int64_t N = b->cells, D = b->genes, L = b->factors;
    const int64_t E = b->mode == SP_LOWER_BOUND ? 1 : b->draws;
    double *den = calloc((size_t)L, sizeof *den), *c = calloc((size_t)L, sizeof *c);
    double *num = calloc((size_t)(D * L), sizeof *num), *phi = calloc((size_t)L, sizeof *phi);
    if (!den || !c || !num || !phi) FAIL("no memory");
    out->ell = 0.0;
    for (int64_t d = 0; d < D; d++)
        for (int64_t l = 0; l < L; l++) {
            c[l] += b->W[d * L + l];
            if (out->slope) out->slope[d * L + l] = 0.0;
        }
    for (int64_t n = 0; n < N; n++)
        for (int64_t e = 0; e < E; e++) {
            for (int64_t l = 0; l < L; l++) {
                const int64_t at = l * N + n;
                const double eps = b->mode == SP_LOWER_BOUND ? 0.0 : b->eps[(e * L + l) * N + n];
                const double f = b->f[at], s = b->s[at], mhat = exp(f + s * s / 2);
                phi[l] = exp(f) * exp(eps * s);
                const double linear = b->mode == SP_SIMPLE ? phi[l] : mhat;
                const double slope = b->mode == SP_SIMPLE ? eps * phi[l] : s * mhat;
                if (e == 0 && out->df) out->df[at] = 0.0;
                if (e == 0 && out->ds) out->ds[at] = 0.0;
                if (out->df) out->df[at] -= c[l] * linear / (double)E;
                if (out->ds) out->ds[at] -= c[l] * slope / (double)E;
                out->ell -= c[l] * linear / (double)E;
                den[l] += b->mode == SP_SIMPLE ? linear : linear / (double)E;
                for (int64_t d = 0; out->slope && d < D; d++)
                    out->slope[d * L + l] -= linear / (double)E;
            }
            for (int64_t d = 0; d < D; d++) {
                const double y = b->Y[n * D + d];
                double rho = 0.0;
                if (y == 0.0) continue;
                for (int64_t l = 0; l < L; l++) rho += b->W[d * L + l] * phi[l];
                out->ell += y * log(fmax(rho, 1e-8)) / (double)E;
                const double q = rho < 1e-8 ? 0.0 : y / rho / (double)E, u = y / (rho + 1e-8);
                for (int64_t l = 0; l < L; l++) {
                    const double h = q * b->W[d * L + l] * phi[l];
                    const double eps =
                        b->mode == SP_LOWER_BOUND ? 0.0 : b->eps[(e * L + l) * N + n];
                    if (out->df) out->df[l * N + n] += h;
                    if (out->ds) out->ds[l * N + n] += eps * h;
                    if (out->slope) out->slope[d * L + l] += q * phi[l];
                    num[d * L + l] += u * phi[l] / (b->mode == SP_SIMPLE ? 1.0 : (double)E);
                }
            }
        }
    for (int64_t i = 0; out->update && i < D * L; i++)
        out->update[i] = fmax(b->W[i] * num[i] / (den[i % L] + 1e-8), 1e-8);
    free(den);
    free(c);
    free(num);
    free(phi);
}

/* How to compute it: in which precision, by which loops, with how many workers, in what memory. */
typedef struct sb_how {
    fth_dtype real;
    sp_poisson_path path;
    int threads;
    uint64_t memory;    /* of the plan; 0: what there is */
    const char *stream; /* axis that must be cut; NULL: as the planner likes */
} sb_how;

/* The same by the operations. Returns the chunks of the plan. */
static inline int64_t sb_engine(const sb_batch *b, const sb_how *how, sb_values *out)
{
    fth_err err = {0};
    fth_context *ctx = sb_context(how->threads, 1u << 30);
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t N = b->cells, D = b->genes, L = b->factors, E = b->draws;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "cellb", N);
    fth_axis(g, "geneb", D);
    fth_axis(g, "factor", L);
    fth_axis(g, "draw", E);
    fth_tensor *in[] = {sb_real(mem, "f", how->real, 2, (int64_t[]){L, N}, b->f),
                        sb_real(mem, "s", how->real, 2, (int64_t[]){L, N}, b->s),
                        sb_real(mem, "W", how->real, 2, (int64_t[]){D, L}, b->W),
                        sb_real(mem, "eps", how->real, 3, (int64_t[]){E, L, N}, b->eps)};
    sp_counts counts = sb_counts(mem, b->Y, N, D, 5);
    sp_likelihood l = {.mode = b->mode, .path = how->path};
    l.f = fth_input(g, "f", how->real, "factor cellb", fth_tensor_source(in[0]));
    l.s = fth_input(g, "s", how->real, "factor cellb", fth_tensor_source(in[1]));
    l.W = fth_input(g, "W", how->real, "geneb factor", fth_tensor_source(in[2]));
    if (b->mode != SP_LOWER_BOUND)
        l.eps = fth_input(g, "eps", how->real, "draw factor cellb", fth_tensor_source(in[3]));
    OKE(sp_likelihood_inputs(&l, &(sp_model_graph){.g = g}, &counts, &err), &err);
    fth_val outs[5];
    OKE(sp_likelihood_cells(&l, &outs[0], &outs[1], &outs[2], &err), &err);
    outs[3] = sp_likelihood_slope_W(&l);
    outs[4] = sp_likelihood_update_W(&l);
    fth_tensor *to[] = {sb_tensor(mem, "df", how->real, 2, (int64_t[]){L, N}),
                        sb_tensor(mem, "ds", how->real, 2, (int64_t[]){L, N}),
                        sb_tensor(mem, "slope", how->real, 2, (int64_t[]){D, L}),
                        sb_tensor(mem, "update", how->real, 2, (int64_t[]){D, L})};
    fth_sink sinks[5] = {fth_scalar_sink(FTH_F64, &out->ell)};
    for (int i = 0; i < 4; i++) sinks[i + 1] = fth_tensor_sink(to[i]);
    fth_limits limits = {.sinks = sinks, .stream = how->stream};
    if (how->memory) limits.memory_bytes = how->memory;
    fth_plan *p = fth_plan_make(g, outs, 5, &limits, &err);
    if (!p) FAIL("plan: %s", err.text);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    double *const put[] = {out->df, out->ds, out->slope, out->update};
    for (int i = 0; i < 4; i++)
        for (int64_t k = 0; put[i] && k < (i < 2 ? L * N : D * L); k++)
            put[i][k] = sb_get(to[i], k);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    for (int i = 0; i < 4; i++) fth_tensor_release(in[i]);
    for (int i = 0; i < 4; i++) fth_tensor_release(to[i]);
    sb_counts_free(&counts);
    OKE(fth_context_destroy(ctx, &err), &err);
    return info.chunks;
}

/* Largest difference, relative to the largest number of `want`. */
static inline double sb_worst(const double *got, const double *want, int64_t n)
{
    double worst = 0.0, scale = 0.0;
    for (int64_t i = 0; i < n; i++) {
        scale = fmax(scale, fabs(want[i]));
        if (!(fabs(got[i] - want[i]) <= worst)) worst = fabs(got[i] - want[i]);
        if (isnan(worst)) return (double)INFINITY;
    }
    return scale > 0.0 ? worst / scale : worst;
}

#endif
