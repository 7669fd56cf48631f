/* refine.c - what a strategy does in an iteration; see work.h. */
#include "work.h"

#include "../strategy/adc.h"
#include "../strategy/mcmc.h"

#include <inttypes.h>
#include <string.h>

static const double noise_lr = 5e5; /* of the paper of MCMC (Kheradmand et al. 2024) */

bool gs_work_is_due(const gs_settings *s, int64_t iteration)
{
    return iteration > s->start_refine && iteration < s->stop_refine && iteration <= s->base &&
           iteration % s->refine_every == 0 &&
           (s->strategy == GS_MCMC || iteration % s->reset_every >= s->pause);
}

bool gs_work_resets(const gs_settings *s, int64_t iteration)
{
    return gs_work_wants_densify(s, iteration) && iteration % s->reset_every == 0;
}

bool gs_work_wants_densify(const gs_settings *s, int64_t iteration)
{
    return s->strategy == GS_ADC && iteration < s->stop_refine && iteration <= s->base;
}

/* Gaussians that there may be with the memory that is left: rows, and what a step takes for them. A
 * step takes about as much more as there are more rows. */
static int64_t cap_of(gs_work *w)
{
    fth_mem_stats now;
    const gs_rows *rows = &w->state.rows;
    const int64_t asked = w->set.most > 0 ? w->set.most : rows->most;
    fth_mem *device = fth_context_device_mem(w->job->ctx);
    fth_mem_get_stats(device ? device : w->mem, &now);
    const uint64_t held = /* of a device, without what a step keeps there for the next */
        rows->flags & GS_ROWS_DEVICE
            ? gs_rows_bytes(rows->mem, rows->most, rows->degree, rows->flags, rows->n) +
                  (w->gallery.pixels ? fth_tensor_bytes(w->gallery.pixels) : 0)
            : now.used_bytes;
    const uint64_t apart =
        rows->flags & GS_ROWS_DEVICE ? 0 : w->apart_bytes + w->step.beside; /* not of the rows */
    const double budget = now.budget_bytes > apart ? (double)(now.budget_bytes - apart) : 0,
                 takes = (double)held + (double)w->step.planned_bytes;
    if (2.5 * takes <= budget) return asked; /* one refinement doubles them at most */
    const double each = (takes - w->fixed_bytes) / (double)(rows->n > 0 ? rows->n : 1);
    const double fit = (0.95 * budget - w->fixed_bytes) / (each > 1 ? each : 1);
    if (fit >= (double)asked) return asked;
    const int64_t cap = fit > (double)rows->n ? (int64_t)fit : rows->n;
    if (!w->told_cap)
        gs_say(w,
               "memory has room for %" PRId64
               " Gaussians: max_cap is lowered to that from %" PRId64,
               cap, asked);
    w->told_cap = true;
    return cap;
}

bool gs_work_adds(gs_work *w)
{
    const int64_t n = w->state.rows.n, more = (int64_t)(1.05f * (float)n), cap = cap_of(w);
    return (more < cap ? more : cap) > n;
}

double gs_work_noise(const gs_work *w)
{
    return w->set.strategy == GS_MCMC ? w->state.rate * noise_lr : 0;
}

static void all(bool replaced[GS_ATTRIBUTES])
{
    for (int a = 0; a < GS_ATTRIBUTES; a++) replaced[a] = true;
}

static fth_status refine_adc(gs_work *w, int64_t iteration, bool replaced[GS_ATTRIBUTES],
                             fth_err *err)
{
    const gs_settings *s = &w->set;
    gs_rows *rows = &w->state.rows;
    if (iteration == s->stop_refine) gs_rows_end_densify(rows);
    if (iteration >= s->stop_refine) return FTH_OK;
    if (gs_work_is_due(s, iteration)) {
        gs_adc_rules rules = gs_adc_default();
        gs_adc_counts counts;
        rules.grad_threshold = s->grad_threshold;
        rules.grow_scale3d = s->grow_scale;
        rules.prune_opacity = s->prune_opacity;
        rules.prune_scale3d = s->prune_scale;
        rules.scene_scale = w->state.scale;
        rules.reset_every = s->reset_every;
        rules.max_cap = cap_of(w);
        rules.seed = s->seed;
        rules.revised_opacity = s->revised_opacity;
        FTH_TRY(gs_adc_refine(rows, &rules, iteration, &counts, err));
        if (counts.dup + counts.split + counts.pruned > 0) all(replaced);
    }
    if (gs_work_resets(s, iteration)) {
        FTH_TRY(gs_opacity_reset(rows, s->prune_opacity, err));
        replaced[GS_OPACITY] = true;
    }
    return FTH_OK;
}

static fth_status refine_mcmc(gs_work *w, int64_t iteration, bool replaced[GS_ATTRIBUTES],
                              fth_err *err)
{
    const gs_settings *s = &w->set;
    gs_rows *rows = &w->state.rows;
    if (!gs_work_is_due(s, iteration)) return FTH_OK; /* the step added the noise */
    gs_mcmc_rules rules = gs_mcmc_default();
    int64_t dead = 0, added = 0, cap = 0;
    rules.min_opacity = s->min_opacity;
    rules.max_cap = cap_of(w);
    rules.seed = s->seed;
    rules.keep_dead_moments = !s->zero_dead;
    FTH_TRY(gs_mcmc_relocate(rows, &rules, iteration, &dead, err));
    FTH_TRY(gs_mcmc_add(rows, &rules, iteration, &added, &cap, err));
    if (added > 0) all(replaced);
    const double rate = gs_work_noise(w); /* in f32, as the step has it */
    if (rows->flags & GS_ROWS_DEVICE) return gs_step_shake(&w->step, rate, iteration, err);
    return gs_mcmc_noise(rows, (double)(float)rate, s->seed, iteration, err);
}

fth_status gs_work_refine(gs_work *w, int64_t iteration, bool replaced[GS_ATTRIBUTES], fth_err *err)
{
    memset(replaced, 0, GS_ATTRIBUTES * sizeof *replaced);
    FTH_TRY(w->set.strategy == GS_ADC ? refine_adc(w, iteration, replaced, err)
                                      : refine_mcmc(w, iteration, replaced, err));
    if (iteration % w->set.degree_interval == 0 && w->state.degree < w->state.rows.degree)
        w->state.degree++;
    return FTH_OK;
}
