/* analyze_fit.c - passes over the counts: goodness of fit, loadings of groups, held-out cells. */
#include "analyze.h"

#include <math.h>
#include <string.h>

/* ---- all cells out of two tensors ---- */

static fth_status read_both(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const sp_both *b = self;
    const int64_t L = fth_tensor_size(b->seen, 1);
    const float *seen = fth_tensor_data(b->seen), *held = fth_tensor_data(b->held);
    float *to = dst;
    (void)err;
    int64_t low = 0, high = b->cells; /* the first training cell at or after lo[0] */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (b->row[middle] < lo[0])
            low = middle + 1;
        else
            high = middle;
    }
    for (int64_t i = 0; i < n[0]; i++, to += n[1]) {
        const int64_t row = lo[0] + i;
        const bool is_seen = low < b->cells && b->row[low] == row;
        const float *from = is_seen ? seen + low * L : held + (row - low) * L;
        memcpy(to, from + lo[1], (size_t)n[1] * sizeof *to);
        low += is_seen;
    }
    return FTH_OK;
}

fth_source sp_both_source(sp_both *b, int64_t rows)
{
    if (!b->held) return fth_tensor_source(b->seen);
    return (fth_source){.kind = "training and held-out cells",
                        .self = b,
                        .dtype = FTH_F32,
                        .n_axes = 2,
                        .size = {rows, fth_tensor_size(b->seen, 1)},
                        .read = read_both};
}

/* ---- plans ---- */

/* Stand-ins with the shapes of the counts, for plans. */
static fth_source shape_of(fth_dtype dtype, int64_t n)
{
    return fth_source_planned(dtype, 1, &n);
}

static void describe_input(sp_analysis *a)
{
    a->both_F = (sp_both){a->F, a->held_F, a->data.row, a->cells};
    a->both_S = (sp_both){a->S, a->held_S, a->data.row, a->cells};
    if (a->planning) {
        a->in = (sp_sums_input){.gene = shape_of(FTH_I32, a->row_ptr[a->rows]),
                                .value = shape_of(FTH_F32, a->row_ptr[a->rows]),
                                .row_ptr = a->row_ptr,
                                .cells = a->rows,
                                .genes = a->genes,
                                .factors = a->factors};
    } else {
        a->in = sp_sums_of(&a->data, a->factors);
    }
    a->in.F = sp_both_source(&a->both_F, a->rows);
    a->in.bin = fth_tensor_source(a->bin);
    a->in.bins = a->groups + (a->held > 0);
    if (a->size) a->in.size = fth_tensor_source(a->size);
    a->in_mean = a->in;
    a->in_mean.spread = sp_both_source(&a->both_S, a->rows);
}

static bool is_poisson(const sp_analysis *a)
{
    return fth_config_choice(a->call->config, "analyze.group_loadings") == 1;
}

static fth_status make_score(sp_score *s, const sp_analysis *a, fth_err *err)
{
    s->theta = a->theta;
    FTH_TRY(fth_tensor_create(&s->like, a->mem, "likelihood", FTH_F64, 1, &a->in.bins, err));
    if (!a->theta) return FTH_OK;
    FTH_TRY(fth_tensor_create(&s->above, a->mem, "deviance", FTH_F64, 1, &a->in.bins, err));
    return fth_tensor_create(&s->deviance, a->mem, "deviance", FTH_F64, 1, &a->in.bins, err);
}

/* Tensors are created before the passes are planned: a pass may use what they leave. */
fth_status sp_analysis_make_sums(sp_analysis *a, fth_err *err)
{
    describe_input(a);
    FTH_TRY(sp_sums_create(&a->sums, a->mem, &a->in, true, err));
    if (a->held > 0) FTH_TRY(sp_sums_create(&a->mean_sums, a->mem, &a->in_mean, false, err));
    if (a->theta) FTH_TRY(make_score(&a->score, a, err));
    if (a->held > 0) FTH_TRY(make_score(&a->score_mean, a, err));
    if (!sp_analysis_has_groups(a)) return FTH_OK;
    const int64_t slots = a->in.bins * a->genes, size[2] = {slots, a->factors};
    FTH_TRY(sp_group_reserve(&a->group_result, a->mem, a->groups, a->genes, a->factors,
                             fth_context_threads(a->ctx), err));
    FTH_TRY(fth_tensor_create(&a->A, a->mem, "loadings A", FTH_F64, 2, size, err));
    FTH_TRY(fth_tensor_create(&a->B, a->mem, "loadings B", FTH_F64, 2, size, err));
    FTH_TRY(fth_tensor_create(&a->a, a->mem, "fit of A", FTH_F64, 1, &a->in.bins, err));
    FTH_TRY(fth_tensor_create(&a->b, a->mem, "fit of B", FTH_F64, 1, &a->in.bins, err));
    if (a->planning) return FTH_OK;
    memset(fth_tensor_data(a->A), 0, (size_t)fth_tensor_bytes(a->A));
    memset(fth_tensor_data(a->B), 0, (size_t)fth_tensor_bytes(a->B));
    return FTH_OK;
}

fth_status sp_analysis_plan_fit(sp_analysis *a, fth_err *err)
{
    FTH_TRY(sp_sums_plan(&a->sums_pass, a->ctx, &a->in, a->W, &a->sums, NULL, err));
    if (a->held > 0)
        FTH_TRY(sp_sums_plan(&a->mean_pass, a->ctx, &a->in_mean, a->W, &a->mean_sums, NULL, err));
    if (a->theta)
        FTH_TRY(sp_score_plan(&a->score_pass, a->ctx, &a->in, a->W, &a->score, NULL, err));
    if (a->held > 0)
        FTH_TRY(sp_score_plan(&a->score_mean_pass, a->ctx, &a->in_mean, a->W, &a->score_mean, NULL,
                              err));
    if (!sp_analysis_has_groups(a)) return FTH_OK;
    if (is_poisson(a)) /* B receives the results of the passes */
        return sp_fit_plan(&a->ratio, a->ctx, &a->in, a->A, NULL, a->a, NULL, a->B, NULL, err);
    return sp_fit_plan(&a->fit, a->ctx, &a->in, a->A, a->B, a->a, a->b, NULL, NULL, err);
}

/* ---- goodness of fit ---- */

/* pnmf cannot predict unseen cells: they get the training mean of exp(f), and a deviation that
 * reproduces the training mean of exp(f + s^2/2). */
static void guess_held(sp_analysis *a)
{
    const float *F = fth_tensor_data(a->F), *S = fth_tensor_data(a->S);
    float *to_F = fth_tensor_data(a->held_F), *to_S = fth_tensor_data(a->held_S);
    for (int64_t l = 0; l < a->factors; l++) {
        double plain = 0, mean = 0;
        for (int64_t i = l; i < a->cells * a->factors; i += a->factors) {
            plain += (double)F[i];
            mean += (double)F[i] * exp((double)S[i] * (double)S[i] / 2);
        }
        const double s = plain > 0 ? sqrt(2 * log(mean / plain)) : 0;
        for (int64_t i = l; i < a->held * a->factors; i += a->factors) {
            to_F[i] = (float)(plain / (double)a->cells);
            to_S[i] = (float)s;
        }
    }
}

static fth_status measure(sp_analysis *a, const sp_sums *s, const sp_sums_input *in, sp_fit *seen,
                          sp_fit *held, fth_err *err)
{
    const float *W = fth_tensor_data(a->W);
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_META, (uint64_t)in->bins * sizeof(double), "floor", &block,
                         err));
    double *more = memset(block, 0, (size_t)in->bins * sizeof(double)), sum = 0;
    fth_status status = FTH_OK;
    if (*(double *)fth_tensor_data(s->least) < SP_RATE_FLOOR)
        status = sp_floor_rates(more, a->mem, in, W, err);
    for (int64_t b = 0; b < a->groups; b++) sum += more[b];
    sp_fit_of(seen, s, in, W, 0, a->groups, a->cells, sum);
    if (a->held > 0) sp_fit_of(held, s, in, W, a->groups, in->bins, a->held, more[a->groups]);
    fth_mem_release(a->mem, block, NULL);
    return status;
}

static double of_bins(fth_tensor *t, int64_t first, int64_t end)
{
    double sum = 0;
    for (int64_t b = first; t && b < end; b++) sum += ((const double *)fth_tensor_data(t))[b];
    return t ? sum : (double)NAN;
}

static sp_scored scored(const sp_analysis *a, const sp_score *s, int64_t first, int64_t end,
                        int64_t cells)
{
    sp_scored out = {.like = of_bins(s->like, first, end),
                     .deviance = of_bins(s->deviance, first, end)};
    out.per_count = out.like / of_bins(a->sums.kind[SP_SUM_Y], first, end);
    out.mean_per_gene = out.deviance / (double)a->genes;
    out.mean = out.mean_per_gene / (double)cells;
    out.above = of_bins(s->above, first, end) / ((double)a->genes * (double)cells);
    return out;
}

/* Likelihoods of the counts: of a model with dispersions, and of held-out cells. */
static fth_status evaluate(sp_analysis *a, fth_err *err)
{
    if (a->theta) {
        FTH_TRY(sp_analysis_run_pass(a, &a->score_pass, err));
        sp_analysis_end_pass(a, &a->score_pass);
        a->seen_score = scored(a, &a->score, 0, a->groups, a->cells);
    }
    if (a->held == 0) return FTH_OK;
    FTH_TRY(sp_analysis_run_pass(a, &a->score_mean_pass, err));
    sp_analysis_end_pass(a, &a->score_mean_pass);
    a->seen_score_mean = scored(a, &a->score_mean, 0, a->groups, a->cells);
    a->held_score_mean = scored(a, &a->score_mean, a->groups, a->in.bins, a->held);
    return FTH_OK;
}

fth_status sp_analysis_fit(sp_analysis *a, fth_err *err)
{
    if (a->held > 0 && !a->model.set.spatial) guess_held(a);
    FTH_TRY(sp_analysis_run_pass(a, &a->sums_pass, err));
    sp_analysis_end_pass(a, &a->sums_pass);
    FTH_TRY(measure(a, &a->sums, &a->in, &a->seen_fit, &a->held_fit, err));
    FTH_TRY(evaluate(a, err));
    if (a->held == 0) return FTH_OK;
    FTH_TRY(sp_analysis_run_pass(a, &a->mean_pass, err));
    sp_analysis_end_pass(a, &a->mean_pass);
    return measure(a, &a->mean_sums, &a->in_mean, &a->seen_mean, &a->held_mean, err);
}

/* ---- loadings of groups ---- */

static void put(const sp_analysis *a, fth_tensor *to, const double *from)
{
    memcpy(fth_tensor_data(to), from, (size_t)(a->groups * a->genes * a->factors) * sizeof *from);
}

static fth_status look_twice(void *user, const double *A, const double *B, double *fit_A,
                             double *fit_B, fth_err *err)
{
    sp_analysis *a = user;
    put(a, a->A, A);
    put(a, a->B, B);
    FTH_TRY(sp_analysis_run_pass(a, &a->fit, err));
    memcpy(fit_A, fth_tensor_data(a->a), (size_t)a->groups * sizeof *fit_A);
    memcpy(fit_B, fth_tensor_data(a->b), (size_t)a->groups * sizeof *fit_B);
    return FTH_OK;
}

static fth_status look_once(void *user, const double *A, double *QF, double *fit_A, fth_err *err)
{
    sp_analysis *a = user;
    put(a, a->A, A);
    FTH_TRY(sp_analysis_run_pass(a, &a->ratio, err));
    memcpy(fit_A, fth_tensor_data(a->a), (size_t)a->groups * sizeof *fit_A);
    memcpy(QF, fth_tensor_data(a->B), (size_t)(a->groups * a->genes * a->factors) * sizeof *QF);
    return FTH_OK;
}

/* F^T F of each group, contiguous; in the sums the bins are the middle axis. */
static fth_status squares_of(double **out, sp_analysis *a, fth_err *err)
{
    const int64_t L = a->factors, bins = a->in.bins;
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_META, (uint64_t)(a->groups * L * L) * sizeof(double),
                         "F^T F of groups", &block, err));
    const double *all = fth_tensor_data(a->sums.FF);
    *out = block;
    for (int64_t g = 0; g < a->groups; g++)
        for (int64_t i = 0; i < L * L; i++)
            (*out)[g * L * L + i] = all[(i / L * bins + g) * L + i % L];
    return FTH_OK;
}

fth_status sp_analysis_group_loadings(sp_analysis *a, fth_err *err)
{
    if (!sp_analysis_has_groups(a)) return FTH_OK;
    double *FF = NULL;
    FTH_TRY(squares_of(&FF, a, err));
    const sp_group_problem p = {.ctx = a->ctx,
                                .groups = a->groups,
                                .genes = a->genes,
                                .factors = a->factors,
                                .cells = a->cells_of,
                                .YF = fth_tensor_data(a->sums.YF),
                                .FF = FF,
                                .F = fth_tensor_data(a->sums.F),
                                .yy = fth_tensor_data(a->sums.kind[SP_SUM_YY]),
                                .W = fth_tensor_data(a->W),
                                .poisson = is_poisson(a),
                                .seed = a->model.set.seed,
                                .fit = look_twice,
                                .ratio = look_once,
                                .user = a};
    const fth_status s = sp_group_solve(&a->group_result, &p, err);
    fth_mem_release(a->mem, FF, NULL);
    sp_analysis_end_pass(a, &a->fit);
    sp_analysis_end_pass(a, &a->ratio);
    return s;
}
