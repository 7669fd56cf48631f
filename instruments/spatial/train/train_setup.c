/* train_setup.c - everything that a step needs, for training or for its plan alone.
 *
 * Both use the same calls, and tensors of a plan are never touched: so a plan costs no memory and
 * predicts that of a run.
 */
#include "../data/totals.h"
#include "../neighbours/neighbours.h"
#include "../start/init.h"
#include "train.h"

#include <inttypes.h>
#include <string.h>

enum { MOMENTS_AUTO, MOMENTS_MEMORY, MOMENTS_SCRATCH }; /* in the order of the schema */

/* Counts are kept in memory if they take at most this share of the budget. */
enum { MOST_GATHERING = 6 }; /* threads that gather batches for a device */

static uint64_t resident_bytes(const sp_train *t)
{
    fth_mem_stats stats;
    fth_mem_get_stats(t->mem, &stats);
    return stats.budget_bytes / 8;
}

/* ---- placeholders for what a plan does not open ---- */

static uint64_t counts_bytes(const sp_counts *c)
{
    return fth_tensor_bytes(c->row_ptr) + fth_tensor_bytes(c->gene) + fth_tensor_bytes(c->value);
}

static fth_status plan_counts(sp_train *t, sp_counts *c, fth_err *err)
{
    const sp_settings *s = &t->set;
    const int64_t rows = s->batch_size + 1,
                  room = sp_reader_entries(&t->size, s->batch_size, s->y_batch_size);
    FTH_TRY(fth_tensor_create(&c->row_ptr, t->mem, "counts, rows", FTH_I64, 1, &rows, err));
    FTH_TRY(fth_tensor_create(&c->gene, t->mem, "counts, genes", FTH_I32, 1, &room, err));
    return fth_tensor_create(&c->value, t->mem, "counts", FTH_F32, 1, &room, err);
}

static fth_status plan_reader(sp_train *t, fth_err *err)
{
    const uint64_t all =
        sp_reader_bytes(&t->size, t->set.batch_size, t->set.y_batch_size, resident_bytes(t));
    for (int i = 0; i < 2; i++) FTH_TRY(plan_counts(t, &t->counts[i], err));
    const uint64_t made = counts_bytes(&t->counts[0]) + counts_bytes(&t->counts[1]);
    return fth_mem_take(t->mem, FTH_MEM_ANY, all > made ? all - made : 0, "reader of counts",
                        &t->reserved[0], err);
}

/* Positions, groups, sections, row pointers, and lists of what is held out. */
static fth_status plan_data(sp_train *t, fth_err *err)
{
    if (t->data.mem) return FTH_OK;
    const uint64_t section = t->size.sections > 0 ? 4 : 0,
                   bytes = (8 + 4 + section + 8 + 16) * (uint64_t)t->size.cells;
    return fth_mem_take(t->mem, FTH_MEM_ANY, bytes, "data", &t->reserved[1], err);
}

/* ---- the step ---- */

static fth_status make_list(sp_train *t, int64_t n, const char *label, int64_t **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, 8 * (uint64_t)n, label, &block, err));
    *out = block;
    return FTH_OK;
}

static fth_status make_lists(sp_train *t, fth_err *err)
{
    const sp_settings *s = &t->set;
    t->ahead.iteration = -1;
    if (s->batch_size < s->cells || t->replay.idx.read) {
        FTH_TRY(make_list(t, s->batch_size, "next cells", &t->cell, err));
        FTH_TRY(make_list(t, s->batch_size, "cells after them", &t->ahead.cell, err));
    }
    if (s->y_batch_size == s->genes && !t->replay.idy.read) return FTH_OK;
    FTH_TRY(make_list(t, s->y_batch_size, "next genes", &t->gene, err));
    return make_list(t, s->y_batch_size, "genes after them", &t->ahead.gene, err);
}

static fth_status open_counts(sp_train *t, fth_err *err)
{
    if (t->planning) return plan_reader(t, err);
    FTH_TRY(sp_reader_create(&t->reader, &t->data, t->set.batch_size, t->set.y_batch_size,
                             resident_bytes(t), err));
    const int threads = fth_context_threads(t->call->context);
    if (fth_context_device_mem(t->call->context)) /* workers are idle there */
        FTH_TRY(
            sp_reader_share(t->reader, threads < MOST_GATHERING ? threads : MOST_GATHERING, err));
    FTH_TRY(sp_train_next(t, t->m.iterations, err));
    FTH_TRY(sp_reader_ask(t->reader, t->cell, t->gene, err));
    return sp_reader_take(t->reader, &t->counts[0], err);
}

static fth_status open_noise(sp_train *t, fth_err *err)
{
    if (!t->replay.eps.read) return FTH_OK;
    const int64_t size[3] = {t->set.E, sp_factors(&t->set), t->set.batch_size};
    return fth_tensor_create(&t->eps, t->mem, "noise", FTH_F32, 3, size, err);
}

/* Before the reader: a walk over the counts is in the plan of the start. */
static fth_status open_sizes(sp_train *t, fth_err *err)
{
    if (t->set.size_factors != SP_SIZE_TOTAL) return FTH_OK;
    FTH_TRY(
        fth_tensor_create(&t->log_size, t->mem, "sizes of cells", FTH_F32, 1, &t->set.cells, err));
    return t->planning ? FTH_OK : sp_log_sizes(t->log_size, &t->data, t->set.size_median, err);
}

/* Lengthscales that differ already move from the first step on: those of a cycle before. */
static bool is_equal(const sp_model *m)
{
    const float *ell = fth_tensor_data(m->param[SP_P_ELL]), start = (float)sp_ell_start(&m->set);
    for (int64_t i = 0; i < fth_tensor_size(m->param[SP_P_ELL], 0); i++)
        if (ell[i] != start) return false;
    return true;
}

bool sp_train_is_warming(const sp_train *t, int64_t i)
{
    return t->m.param[SP_P_ELL] && i < sp_ell_warmup(&t->set) && is_equal(&t->m);
}

fth_status sp_train_open_step(sp_train *t, fth_err *err)
{
    if (!t->planning) t->fixed_ell = sp_train_is_warming(t, t->m.iterations - t->first);
    FTH_TRY(open_sizes(t, err));
    FTH_TRY(make_lists(t, err));
    FTH_TRY(open_counts(t, err));
    FTH_TRY(open_noise(t, err));
    const sp_step_options opt = {.ctx = t->ctx,
                                 .model = &t->m,
                                 .data = t->planning ? NULL : &t->data,
                                 .call = t->call,
                                 .planning = t->planning,
                                 .fixed_W = t->set.fixed_W,
                                 .fixed_ell = t->fixed_ell,
                                 .counts = t->counts[0],
                                 .log_size = t->log_size,
                                 .eps = t->eps,
                                 .eps_to = t->record.eps,
                                 .first_to = t->on_scratch ? t->moments.first_to : NULL,
                                 .second_to = t->on_scratch ? t->moments.second_to : NULL,
                                 .hold = t->hold,
                                 .log_every = t->log_every,
                                 .previous = t->previous};
    FTH_TRY(sp_step_open(&t->step, &opt, err));
    t->step.product = t->product;
    if (t->planning) return FTH_OK;
    FTH_TRY(sp_step_ask(&t->step, t->cell, err));
    return sp_step_take(&t->step, t->cell, t->gene, &t->counts[0], err);
}

void sp_train_close_step(sp_train *t)
{
    sp_step_close(&t->step);
    if (t->planning)
        for (int i = 0; i < 2; i++) {
            fth_tensor_release(t->counts[i].row_ptr);
            fth_tensor_release(t->counts[i].gene);
            fth_tensor_release(t->counts[i].value);
        }
    sp_reader_destroy(t->reader);
    fth_tensor_release(t->eps);
    fth_tensor_release(t->log_size);
    void *const block[] = {t->cell,       t->gene,        t->ahead.cell,
                           t->ahead.gene, t->reserved[0], t->reserved[1]};
    for (size_t i = 0; i < sizeof block / sizeof block[0]; i++)
        if (block[i]) (void)fth_mem_release(t->mem, block[i], NULL);
    t->reader = NULL;
    t->eps = t->log_size = NULL;
    t->cell = t->gene = NULL;
    t->ahead = (sp_lists){0};
    t->reserved[0] = t->reserved[1] = NULL;
    t->counts[0] = t->counts[1] = (sp_counts){0};
}

/* ---- what it takes ---- */

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Totals of cells, start values, and an index over the cells, are computed and released before the
 * step. */
static fth_status plan_start(const sp_train *t, fth_stage_plan *out, fth_err *err)
{
    const bool sizes = t->set.size_factors == SP_SIZE_TOTAL;
    const uint64_t init = most(sp_init_bytes(&t->set, &t->size),
                               sizes ? sp_size_median_bytes(&t->size) : 0),
                   grid = t->set.spatial ? sp_grid_bytes(t->size.cells) : 0;
    fth_mem_stats now;
    fth_mem_get_stats(t->mem, &now);
    if (fth_stage_plan_hold(t->call, out, most(init, grid), 0) <= now.budget_bytes) return FTH_OK;
    char need[24], have[24];
    FTH_FAIL(err, FTH_E_NO_FIT, "start values and the model need %s; the budget is %s",
             fth_mem_format_size(out->host_bytes, need, sizeof need),
             fth_mem_format_size(now.budget_bytes, have, sizeof have));
    fth_err_hint(err, "would fit: --memory %" PRIu64, out->host_bytes);
    return FTH_E_NO_FIT;
}

/* Steps of one kind, and what their prior computes once. */
static fth_status plan_phase(sp_train *p, int64_t steps, fth_stage_plan *out, FILE *show,
                             uint64_t *scratch_bytes, fth_err *err)
{
    FTH_TRY(sp_train_open_step(p, err));
    FTH_TRY(fth_stage_plan_add(p->call, out, p->step.plan, (double)steps, show, err));
    const fth_plan_needs *once = &p->step.prior.once;
    if (once->host_bytes > out->host_bytes) out->host_bytes = once->host_bytes;
    if (once->device_bytes > out->device_bytes) out->device_bytes = once->device_bytes;
    if (once->scratch_bytes > out->scratch_bytes) out->scratch_bytes = once->scratch_bytes;
    if (p->step.prior.scratch_bytes > *scratch_bytes) *scratch_bytes = p->step.prior.scratch_bytes;
    return FTH_OK;
}

/* Plans one placement of the moments and discards it. */
static fth_status plan_once(sp_train *t, bool scratch, sp_hold hold, fth_stage_plan *out,
                            FILE *show, fth_err *err)
{
    sp_train p = {.call = t->call,
                  .ctx = t->ctx,
                  .mem = t->mem,
                  .planning = true,
                  .data = {.mem = t->data.mem}, /* held already, or not */
                  .size = t->size,
                  .set = t->set,
                  .on_scratch = scratch,
                  .hold = hold,
                  .log_every = t->log_every};
    *out = (fth_stage_plan){0};
    fth_status s = sp_model_create(&p.m, t->mem, &t->set, FTH_F32, !scratch, err);
    if (s == FTH_OK && scratch)
        s = sp_moments_open(&p.moments, &p.m, fth_context_scratch_dir(t->ctx), true, err);
    if (s == FTH_OK) s = plan_data(&p, err);
    if (s == FTH_OK) s = plan_start(&p, out, err);
    const int64_t warmup = sp_ell_warmup(&t->set);
    uint64_t scratch_bytes = 0;
    if (s == FTH_OK && warmup > 0) { /* before lengthscales move, and then the rest */
        p.fixed_ell = true;
        s = plan_phase(&p, warmup, out, show, &scratch_bytes, err);
        sp_train_close_step(&p);
        p.fixed_ell = false;
    }
    if (s == FTH_OK) s = plan_phase(&p, t->set.max_iter - warmup, out, show, &scratch_bytes, err);
    if (s == FTH_OK && t->wants_video)
        s = sp_video_open(&p.video, t->ctx, t->call, &p.m, NULL, 0, err);
    if (s == FTH_OK && t->wants_video)
        s = fth_stage_plan_add(t->call, out, p.video.plan, 0, show, err);
    out->scratch_bytes += p.moments.bytes + scratch_bytes;
    sp_video_close(&p.video);
    sp_train_close_step(&p);
    sp_moments_close(&p.moments);
    sp_model_clear(&p.m);
    return s;
}

static bool is_too_much(fth_status s)
{
    return s == FTH_E_NO_FIT || s == FTH_E_BUDGET;
}

/* On a device, with the most that fits into its memory. */
static fth_status plan_held(sp_train *t, bool scratch, fth_stage_plan *out, FILE *show,
                            fth_err *err)
{
    const sp_hold last = fth_context_device_mem(t->ctx) ? SP_HOLD_LEAST : SP_HOLD_ALL;
    fth_status s = FTH_OK;
    fth_err why = {0};
    for (t->hold = SP_HOLD_ALL;; t->hold++) {
        why = (fth_err){0};
        s = plan_once(t, scratch, t->hold, out, show, &why);
        if (!is_too_much(s) || t->hold == last) break;
    }
    if (s != FTH_OK && err) *err = why;
    return s;
}

/* How often the objective is read: in each step on the CPU, where it costs nothing, and where the
 * next step depends on it. */
static int64_t find_log_every(const sp_train *t)
{
    const bool every = !fth_context_device_mem(t->ctx) || t->set.scheduler == SP_PLATEAU ||
                       t->set.optimizer == SP_NADAM;
    return every ? 1 : fth_config_int(t->call->config, "training.log_every");
}

fth_status sp_train_plan_step(sp_train *t, fth_stage_plan *out, FILE *show, fth_err *err)
{
    const int where = fth_config_choice(t->call->config, "training.moments");
    const bool dir = fth_context_scratch_dir(t->ctx) != NULL;
    t->on_scratch = where == MOMENTS_SCRATCH;
    t->log_every = find_log_every(t);
    if (t->on_scratch && !dir) {
        FTH_FAIL(err, FTH_E_CONFIG, "training.moments is scratch, but there is no scratch folder");
        fth_err_hint(err, "name one with --scratch");
        return FTH_E_CONFIG;
    }
    fth_err first = {0};
    const fth_status s = plan_held(t, t->on_scratch, out, show, &first);
    if (where == MOMENTS_AUTO && dir && is_too_much(s)) {
        t->on_scratch = true;
        return plan_held(t, true, out, show, err);
    }
    if (s != FTH_OK && err) *err = first;
    return s;
}
