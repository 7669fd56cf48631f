/* solver.c - the life of a solver: memory, plans, the first scale of the probe, epochs. */
#include "constraints.h"
#include "momentum.h"
#include "mpie.h"

#include <math.h>
#include <string.h>

const char *const pt_algorithm_names[PT_SOLVERS] = {"rpie",  "epie", "dm",  "raar",
                                                    "lsqml", "pie",  "mpie"};

static bool keeps_waves(const pt_solver *s)
{
    return s->opt.algorithm == PT_SOLVE_DM || s->opt.algorithm == PT_SOLVE_RAAR;
}

static fth_status take_numbers(pt_solver *s, int64_t n, const char *label, double **out,
                               fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(double), label, &block, err));
    memset(block, 0, (size_t)n * sizeof(double));
    *out = block;
    return FTH_OK;
}

static fth_status take_memory(pt_solver *s, fth_err *err)
{
    const int64_t m = s->data.patterns;
    void *block = NULL;
    FTH_TRY(take_numbers(s, m, "x", &s->x, err));
    FTH_TRY(take_numbers(s, m, "y", &s->y, err));
    FTH_TRY(take_numbers(s, m, "alpha", &s->alpha, err));
    FTH_TRY(take_numbers(s, s->opt.iterations + 1, "history", &s->history, err));
    /* pieces have at most one batch more than the scan, and as many again lie behind the end */
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)(2 * m + s->opt.batch) * sizeof(int64_t),
                         "order", &block, err));
    s->order = block;
    for (int64_t j = 0; j < m; j++) {
        s->x[j] = s->data.x[j];
        s->y[j] = s->data.y[j];
        s->alpha[j] = 0.5;
    }
    return FTH_OK;
}

/* Refuse a canvas that cannot fit by its size: often the unit of the positions is wrong. */
static fth_status check_canvas(const pt_solver *s, fth_err *err)
{
    fth_mem_stats m;
    char wants[24], has[24];
    fth_mem_get_stats(s->mem, &m);
    const uint64_t left = m.budget_bytes > m.used_bytes ? m.budget_bytes - m.used_bytes : 0,
                   bytes = (uint64_t)(4 * s->rows * s->cols * fth_dtype_size(s->real));
    if (bytes <= left) return FTH_OK;
    FTH_FAIL(err, FTH_E_NO_FIT,
             "the object of %lld x %lld pixels and its weights need %s, and %s are left",
             (long long)s->rows, (long long)s->cols,
             fth_mem_format_size(bytes, wants, sizeof wants),
             fth_mem_format_size(left, has, sizeof has));
    fth_err_hint(err, "raise --memory; or are the positions in another unit than pixels?");
    return FTH_E_NO_FIT;
}

static fth_status make_tensors(pt_solver *s, fth_err *err)
{
    const int64_t object[3] = {2, s->rows, s->cols}, probe[4] = {s->modes, 2, s->n, s->n};
    FTH_TRY(fth_tensor_create(&s->object, s->mem, "object", s->real, 3, object, err));
    FTH_TRY(fth_tensor_create(&s->probe, s->mem, "probe", s->real, 4, probe, err));
    if (s->opt.algorithm == PT_SOLVE_LSQML && s->opt.batching == PT_BATCH_COMPACT)
        FTH_TRY(fth_tensor_create(&s->change, s->mem, "change", s->real, 3, object, err));
    FTH_TRY(fth_tensor_create(&s->light, s->mem, "light", s->real, 2, object + 1, err));
    FTH_TRY(fth_tensor_create(&s->weight, s->mem, "weight", s->real, 2, object + 1, err));
    FTH_TRY(fth_tensor_create(&s->all_visits, s->mem, "places", FTH_F64, 2,
                              ((int64_t[]){s->data.patterns, PT_VISITS}), err));
    memset(fth_tensor_data(s->light), 0, (size_t)fth_tensor_bytes(s->light));
    memset(fth_tensor_data(s->weight), 0, (size_t)fth_tensor_bytes(s->weight));
    if (!s->data.mask) return FTH_OK;
    FTH_TRY(
        fth_tensor_create(&s->mask, s->mem, "mask", FTH_BOOL, 2, ((int64_t[]){s->n, s->n}), err));
    memcpy(fth_tensor_data(s->mask), s->data.mask, (size_t)(s->n * s->n));
    return FTH_OK;
}

/* Power of the initial probe: that of the data, or what gives the first model the power of the
 * data. */
static fth_status scale_probe(pt_solver *s, fth_err *err)
{
    const int64_t n = (int64_t)fth_tensor_bytes(s->probe) / fth_dtype_size(s->real);
    FTH_TRY(keeps_waves(s) ? pt_waves_measure(s, err) : pt_solver_measure(s, err));
    void *probe = fth_tensor_data(s->probe); /* after the run, which may have it on a device */
    double power = 0, by = 1;
    for (int64_t i = 0; i < n; i++) {
        const double v = pt_get(probe, s->real, i);
        power += v * v;
    }
    if (!s->opt.probe_power_file) by = sqrt(s->counts_mean / power);
    if (s->opt.rescale_probe && s->opt.algorithm == PT_SOLVE_LSQML && s->model_mean > 0)
        by = sqrt(s->counts_mean / s->model_mean);
    for (int64_t i = 0; by != 1 && i < n; i++)
        pt_put(probe, s->real, i, by * pt_get(probe, s->real, i));
    return FTH_OK;
}

static fth_status set_up(pt_solver *s, fth_err *err)
{
    FTH_TRY(take_memory(s, err));
    FTH_TRY(pt_solver_canvas(s, err));
    FTH_TRY(check_canvas(s, err));
    FTH_TRY(make_tensors(s, err));
    FTH_TRY(pt_solver_plan_light(s, err));
    FTH_TRY(pt_solver_plan_scale(s, err));
    if (s->opt.opr) FTH_TRY(pt_opr_create(s, err));
    if (s->opt.algorithm == PT_SOLVE_MPIE) FTH_TRY(pt_mpie_create(s, err));
    FTH_TRY(keeps_waves(s) ? pt_waves_create(s, err) : pt_sweeps_create(s, err));
    FTH_TRY(pt_solver_start_fields(s, err));
    if (s->opt.opr) pt_opr_start(s);
    FTH_TRY(pt_constraints_create(s, err));
    if (s->opt.momentum > 0 && s->opt.algorithm == PT_SOLVE_LSQML)
        FTH_TRY(pt_momentum_create(s, err));
    /* as it will be when the power of the data is known: in the room that all others leave */
    return keeps_waves(s) ? pt_waves_plan_step(s, err) : FTH_OK;
}

fth_status pt_solver_begin(pt_solver *s, fth_err *err)
{
    FTH_TRY(scale_probe(s, err));
    if (s->mpie) pt_mpie_begin(s);
    return keeps_waves(s) ? pt_waves_first(s, err) : FTH_OK;
}

/* How a solver is tried, and what became of it, also when it then did not fit. */
typedef struct attempt {
    bool waves_on_disk, waves_here;
    int64_t most_piece, piece;
} attempt;

static fth_status create(pt_solver **out, fth_context *ctx, const fth_stage_call *call,
                         const pt_solve_options *opt, const pt_solve_data *data, attempt *a,
                         fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(pt_solver), "solver", &block, err));
    pt_solver *s = block;
    *s = (pt_solver){.ctx = ctx, .mem = mem, .call = call, .opt = *opt, .data = *data};
    s->n = data->n;
    s->modes = opt->modes;
    s->real = opt->wide ? FTH_F64 : FTH_F32;
    s->waves_on_disk = a->waves_on_disk;
    s->most_piece = a->most_piece;
    if (s->opt.batch > data->patterns) s->opt.batch = data->patterns;
    if (keeps_waves(s)) s->opt.subpixel = false; /* as ptypy: whole pixels */
    const fth_status st = set_up(s, err);
    a->waves_here = keeps_waves(s) && pt_waves_are_here(s);
    a->piece = s->piece;
    if (st == FTH_OK)
        *out = s;
    else
        pt_solver_destroy(s);
    return st;
}

/* Pieces are chosen before the plans of constraints are made: where those then do not fit, waves go
 * to the disk and pieces become shorter, so that a larger budget never refuses what a smaller one
 * took. */
fth_status pt_solver_create(pt_solver **out, fth_context *ctx, const fth_stage_call *call,
                            const pt_solve_options *opt, const pt_solve_data *data, fth_err *err)
{
    attempt a = {0};
    *out = NULL;
    for (;;) {
        const fth_status st = create(out, ctx, call, opt, data, &a, err);
        const bool too_much = st == FTH_E_NO_FIT || st == FTH_E_BUDGET || st == FTH_E_NOMEM;
        const int64_t least =
            opt->algorithm == PT_SOLVE_DM || opt->algorithm == PT_SOLVE_RAAR ? 1 : opt->batch;
        if (!too_much || (!a.waves_here && a.piece <= least)) return st;
        if (a.waves_here)
            a.waves_on_disk = true;
        else
            a.most_piece = a.piece / 2 > least ? a.piece / 2 : least;
        fth_err_clear(err);
    }
}

void pt_solver_destroy(pt_solver *s)
{
    if (!s) return;
    pt_constraints_destroy(s);
    pt_momentum_destroy(s);
    pt_mpie_destroy(s);
    pt_waves_destroy(s);
    pt_sweeps_destroy(s);
    pt_opr_destroy(s);
    fth_plan_destroy(s->light_plan);
    fth_graph_destroy(s->light_graph);
    fth_plan_destroy(s->scale_plan);
    fth_graph_destroy(s->scale_graph);
    fth_tensor *const tensors[] = {s->object, s->probe,      s->change, s->light,
                                   s->weight, s->all_visits, s->mask};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) fth_tensor_release(tensors[i]);
    void *const blocks[] = {s->x, s->y, s->alpha, s->history, s->order, s->generator};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        fth_mem_release(s->mem, blocks[i], NULL);
    fth_mem_release(s->mem, s, NULL);
}

fth_status pt_solver_step(pt_solver *s, fth_err *err)
{
    if (s->momentum) pt_momentum_begin(s);
    FTH_TRY(keeps_waves(s) ? pt_waves_epoch(s, err) : pt_sweeps_epoch(s, err));
    if (!isfinite(s->history[s->epoch])) {
        FTH_FAIL(err, FTH_E_NUMERIC, "the error is not finite after epoch %lld",
                 (long long)s->epoch + 1);
        fth_err_hint(err, "use smaller steps (object_alpha, probe_alpha) or another algorithm; the "
                          "last checkpoint is good");
        return FTH_E_NUMERIC;
    }
    if (s->momentum) pt_momentum_end(s);
    if (s->mpie) FTH_TRY(pt_mpie_turn(s, err));
    FTH_TRY(pt_solver_refine(s, err));
    if (s->mpie) FTH_TRY(pt_mpie_turn(s, err));
    if (s->opt.opr) FTH_TRY(pt_opr_refine(s, err));
    s->epoch++;
    return FTH_OK;
}
