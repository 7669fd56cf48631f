/* mcmc.c - see mcmc.h. */
#include "mcmc.h"

#include "draw.h"
#include "family.h"
#include "noise.h"
#include "parts.h"

#include <fathom/ops.h>

#include <inttypes.h>
#include <string.h>

enum { STREAM_RELOCATE = 4, STREAM_ADD = 5 };
static const float growth = 1.05f; /* of the paper: 5 % more rows each time */

gs_mcmc_rules gs_mcmc_default(void)
{
    return (gs_mcmc_rules){.min_opacity = 0.005};
}

/* ---- families ---- */

void gs_family(double opacity, int ratio, double *new_opacity, double *scale)
{
    gs_family_of(log1p(-opacity), ratio, new_opacity, scale);
}

/* ---- parents and their copies ---- */

typedef struct spread {
    gs_rows *rows;
    const gs_mcmc_rules *rules;
    gs_rows_memory m;
    const gs_urn *urn;
    gs_marks *dead; /* rows that become copies; NULL: those from `first` on */
    int64_t first;
    float least; /* logit of the least opacity */
} spread;

static bool is_device(const spread *s)
{
    return s->rows->flags & GS_ROWS_DEVICE;
}

static void share(void *arg, int64_t from, int64_t to)
{
    const spread *s = arg;
    float *const *at = s->m.at[GS_VALUE];
    for (int64_t i = from; i < to; i++) {
        if (s->urn->times[i] == 0) continue;
        gs_share(&at[GS_OPACITY][i], at[GS_SCALING] + 3 * i, s->urn->times[i],
                 s->rules->min_opacity);
        gs_row_clear_moments(&s->m, s->rows->degree, i);
    }
}

static void fill_dead(void *arg, int64_t from, int64_t to)
{
    const spread *s = arg;
    int64_t rank = gs_marks_rank(s->dead, from);
    for (int64_t i = from; i < to; i++) {
        if (!gs_marks_has(s->dead, i)) continue;
        gs_row_copy(&s->m, s->rows->degree, i, s->urn->drawn[rank++]);
        if (!s->rules->keep_dead_moments) gs_row_clear_moments(&s->m, s->rows->degree, i);
    }
}

static void fill_new(void *arg, int64_t from, int64_t to)
{
    const spread *s = arg;
    for (int64_t j = from; j < to; j++)
        gs_row_copy(&s->m, s->rows->degree, s->first + j, s->urn->drawn[j]);
}

static void find_dead(void *arg, int64_t from, int64_t to)
{
    const spread *s = arg;
    float *const *at = s->m.at[GS_VALUE];
    for (int64_t i = from; i < to; i++)
        if (at[GS_OPACITY][i] <= s->least || gs_norm(at[GS_ROTATION] + 4 * i) < GS_LEAST_NORM)
            gs_marks_set(s->dead, i);
}

static fth_status relocate(spread *s, int64_t iteration, int64_t *dead, fth_err *err)
{
    gs_urn urn = {0};
    fth_status status = FTH_OK;
    if (!is_device(s))
        gs_rows_loop(s->rows->context, "find dead", s->rows->n, find_dead, s);
    else if (s->rows->n > 0)
        FTH_TRY(gs_device_find_dead(s->rows, s->dead, s->least, err));
    if (!s->dead->apart) gs_rows_count_marks(s->rows->context, s->dead);
    *dead = s->dead->count;
    if (s->dead->count == 0 || s->dead->count == s->rows->n) return FTH_OK;
    if (is_device(s)) {
        const gs_device_draws how = {s->rows->n, s->dead->count, iteration, STREAM_RELOCATE};
        status = gs_device_move(s->rows, &how, s->dead, s->rules, err);
    } else {
        FTH_TRY(gs_urn_create(&urn, s->rows, s->dead, s->dead->count, s->rules->seed, iteration,
                              STREAM_RELOCATE, err));
        s->urn = &urn;
        gs_rows_loop(s->rows->context, "share", s->rows->n, share, s);
        gs_rows_loop(s->rows->context, "relocate", s->rows->n, fill_dead, s);
    }
    gs_urn_free(&urn);
    return status;
}

fth_status gs_mcmc_relocate(gs_rows *rows, const gs_mcmc_rules *rules, int64_t iteration,
                            int64_t *dead, fth_err *err)
{
    gs_marks marks;
    spread s = {
        .rows = rows, .rules = rules, .dead = &marks, .least = (float)gs_logit(rules->min_opacity)};
    *dead = 0;
    if (!is_device(&s)) FTH_TRY(gs_rows_open(rows, &s.m, err));
    FTH_TRY(gs_marks_create(&marks, fth_context_mem(rows->context), rows->n, "dead rows", err));
    const fth_status status = relocate(&s, iteration, dead, err);
    if (is_device(&s)) gs_device_clear_marks(rows);
    gs_marks_free(&marks);
    return status;
}

/* ---- more rows ---- */

static uint64_t bytes_meanwhile(const void *arg, int64_t more)
{
    const gs_rows *rows = arg;
    const uint64_t beside = rows->flags & GS_ROWS_DEVICE
                                ? gs_device_bytes(rows->n + more) + 6 * (uint64_t)rows->n +
                                      34 * (uint64_t)more /* times, counts; from, to; twice */
                                : gs_urn_bytes(rows->mem, rows->n, more);
    return gs_rows_bytes(rows->mem, rows->most, rows->degree, rows->flags, rows->n + more) + beside;
}

/* So many new rows as the strategy wants, and memory has. */
static int64_t count_new(const gs_rows *rows, const gs_mcmc_rules *rules, int64_t *cap)
{
    int64_t most = rows->most, target = (int64_t)floorf(growth * (float)rows->n);
    if (rules->max_cap > 0 && rules->max_cap < most) most = rules->max_cap;
    if (target > most) target = most;
    if (target <= rows->n) return 0;
    const uint64_t held = gs_rows_bytes(rows->mem, rows->most, rows->degree, rows->flags, rows->n);
    const int64_t more = gs_rows_afford(rows, target - rows->n, held, bytes_meanwhile, rows);
    if (cap && rows->n + more < target) *cap = rows->n + more;
    return more;
}

static fth_status append_drawn(gs_rows *rows, spread *s, fth_err *err)
{
    FTH_TRY(gs_rows_append(rows, s->urn->draws, err));
    FTH_TRY(gs_rows_open(rows, &s->m, err));
    gs_rows_loop(rows->context, "share", s->first, share, s);
    gs_rows_loop(rows->context, "add", s->urn->draws, fill_new, s);
    return FTH_OK;
}

/* On a device nobody here knows the sum of opacities, which is 0 for no row that training gives. */
static fth_status append_there(gs_rows *rows, const spread *s, int64_t more, int64_t iteration,
                               fth_err *err)
{
    const gs_device_draws how = {s->first, more, iteration, STREAM_ADD};
    FTH_TRY(gs_rows_append(rows, more, err));
    const fth_status status = gs_device_move(rows, &how, NULL, s->rules, err);
    if (status != FTH_OK) (void)gs_rows_forget(rows, s->first, NULL);
    return status;
}

fth_status gs_mcmc_add(gs_rows *rows, const gs_mcmc_rules *rules, int64_t iteration, int64_t *added,
                       int64_t *cap, fth_err *err)
{
    gs_urn urn;
    spread s = {.rows = rows, .rules = rules, .first = rows->n, .urn = &urn};
    *added = 0;
    if (cap) *cap = 0;
    const int64_t more = count_new(rows, rules, cap);
    if (more == 0) return FTH_OK;
    if (is_device(&s)) {
        FTH_TRY(append_there(rows, &s, more, iteration, err));
        *added = more;
        return FTH_OK;
    }
    FTH_TRY(gs_urn_create(&urn, rows, NULL, more, rules->seed, iteration, STREAM_ADD, err));
    const bool any = urn.total > 0;
    const fth_status status = any ? append_drawn(rows, &s, err) : FTH_OK;
    if (status == FTH_OK && any) *added = more;
    gs_urn_free(&urn);
    return status;
}

/* ---- noise ---- */

typedef struct shaking {
    float *const *at;
    double rate;
    int64_t seed, iteration;
} shaking;

static void shake(void *arg, int64_t from, int64_t to)
{
    const shaking *s = arg;
    for (int64_t i = from; i < to; i++) {
        double e[3], by[3];
        float *mean = s->at[GS_MEANS] + 3 * i;
        for (int k = 0; k < 3; k++)
            e[k] = fth_random_normal_at(s->seed, s->iteration, GS_NOISE_STREAM, 3 * i + k);
        if (!gs_noise_of(s->at[GS_SCALING] + 3 * i, s->at[GS_ROTATION] + 4 * i,
                         s->at[GS_OPACITY][i], s->rate, e, by))
            continue;
        for (int k = 0; k < 3; k++) mean[k] = (float)((double)mean[k] + by[k]);
    }
}

fth_status gs_mcmc_noise(gs_rows *rows, double rate, int64_t seed, int64_t iteration, fth_err *err)
{
    gs_rows_memory m;
    FTH_TRY(gs_rows_open(rows, &m, err));
    shaking s = {m.at[GS_VALUE], rate, seed, iteration};
    gs_rows_loop(rows->context, "noise", rows->n, shake, &s);
    return FTH_OK;
}
