/* group_loadings.c - multiplicative updates of small problems, one for each group of cells. */
#include "group_loadings.h"

#include "group_graph.h"
#include "group_steps.h"

#include "../ops/groups/group_steps.h"

#include <fathom/vector_wide.h>

#include <math.h>
#include <string.h>

enum { ITERATIONS = 1000, EACH = 8 /* the first iterations are all checked */ };

/* Bracket of a group: the stopping rule did not hold after iteration `low`, it did after `high`. */
typedef struct track {
    int64_t at, low, high; /* at: iterations in its loadings; high: 0 while none is known */
    int64_t to;            /* the iteration to advance to, at least `at` */
    bool done;
} track;

typedef struct work {
    const sp_group_problem *p;
    sp_group_result *r;
    int64_t each, most; /* numbers of loadings of a group; iterations */
    double tol;
    double *before, *saved; /* [group][gene][factor]: one iteration earlier; at `low` */
    double *a, *b;          /* [group] */
    double *nll;            /* [group] of the iteration before; Poisson rule */
    double *room;           /* of every worker: rows it is at */
    track *track;
    sp_group_graph *device; /* NULL: no device, or not enough memory there */
} work;

static uint64_t bytes_of(int64_t groups, int64_t genes, int64_t factors, int threads)
{
    const uint64_t G = (uint64_t)groups;
    const uint64_t room = (uint64_t)(sp_group_steps_room(factors) * threads);
    return 3 * G * (uint64_t)(genes * factors) * sizeof(double) + (G * 4 + room) * sizeof(double) +
           G * (sizeof(int64_t) + sizeof(track));
}

/* ---- sums ---- */

double sp_residual(const double *YF, const double *FF, double yy, const double *W, int64_t genes,
                   int64_t factors)
{
    double cross = 0, square = 0;
    for (int64_t d = 0; d < genes; d++) {
        const double *w = W + d * factors;
        for (int64_t l = 0; l < factors; l++) {
            double row = 0;
            for (int64_t k = 0; k < factors; k++) row += FF[l * factors + k] * w[k];
            square += w[l] * row;
            cross += YF[d * factors + l] * w[l];
        }
    }
    return fmax(yy - 2 * cross + square, 0);
}

static double sum_rates(const sp_group_problem *p, const double *W, const double *F)
{
    double sum = 0;
    for (int64_t d = 0; d < p->genes; d++)
        for (int64_t l = 0; l < p->factors; l++) sum += W[d * p->factors + l] * F[l];
    return sum;
}

/* ---- least squares ---- */

enum { GENES = 64 }; /* of one worker at a time */

int64_t sp_group_steps_room(int64_t factors)
{
    return 3 * FTH_F64W_LANES * factors;
}

const sp_group_loops *sp_group_loops_at(int level)
{
    return FTH_ISA_AT(sp_group, level);
}

/* Some genes of a group: all iterations up to its next check. */
static void advance_some(void *arg, int64_t i, int worker)
{
    const work *w = arg;
    const sp_group_problem *p = w->p;
    const int64_t blocks = (p->genes + GENES - 1) / GENES, g = i / blocks,
                  from = i % blocks * GENES, left = p->genes - from,
                  at = g * w->each + from * p->factors;
    const track *t = &w->track[g];
    FTH_ISA_BEST(sp_group)->steps(&(sp_group_rows){.genes = left < GENES ? left : GENES,
                                                   .factors = p->factors,
                                                   .steps = t->to - t->at,
                                                   .W = w->r->W + at,
                                                   .before = w->before + at,
                                                   .YF = p->YF + at,
                                                   .FF = p->FF + g * p->factors * p->factors},
                                  w->room + worker * sp_group_steps_room(p->factors));
}

/* Multiplications of all pending iterations. */
static double products(const work *w)
{
    double steps = 0;
    for (int64_t g = 0; g < w->p->groups; g++) steps += (double)(w->track[g].to - w->track[g].at);
    return steps * (double)w->each * (double)w->p->factors;
}

static fth_status advance_there(const work *w, fth_err *err)
{
    int64_t *steps = sp_group_graph_steps(w->device);
    for (int64_t g = 0; g < w->p->groups; g++) steps[g] = w->track[g].to - w->track[g].at;
    return sp_group_graph_run(w->device, w->r->W, w->before, err);
}

/* Advances every group to its next check. Host and device give the same bits, so few iterations run
 * on the host. */
static fth_status advance(const work *w, fth_err *err)
{
    const int64_t n = w->p->groups * ((w->p->genes + GENES - 1) / GENES);
    const double worth = w->p->worth > 0 ? w->p->worth : 2e8;
    const bool there = w->device && products(w) >= worth;
    for (int64_t i = 0; !w->p->ctx && i < n; i++) advance_some((void *)(uintptr_t)w, i, 0);
    if (there)
        FTH_TRY(advance_there(w, err));
    else if (w->p->ctx)
        FTH_TRY(fth_context_loop(w->p->ctx, "group loadings", n, advance_some, (void *)(uintptr_t)w,
                                 err));
    for (int64_t g = 0; g < w->p->groups; g++) w->track[g].at = w->track[g].to;
    return FTH_OK;
}

static void go_back(const work *w, int64_t g)
{
    memcpy(w->r->W + g * w->each, w->saved + g * w->each, (size_t)w->each * sizeof(double));
    w->track[g].at = w->track[g].low;
}

/* The next iteration to check; 0: none, the group is done. */
static int64_t choose(const work *w, const track *t)
{
    if (t->done) return 0;
    const int64_t low = t->low > 1 ? t->low : 1; /* iteration 1 has none before it */
    if (t->high > 0) return t->high - low > 1 ? low + (t->high - low) / 2 : 0;
    if (t->low >= w->most) return 0;
    int64_t next = low + 1;
    if (next > EACH && !w->p->every) next = 2 * t->low;
    return next > w->most ? w->most : next;
}

/* Sets the next check of every group; false: all are done. */
static bool aim(const work *w)
{
    bool any = false;
    for (int64_t g = 0; g < w->p->groups; g++) {
        track *t = &w->track[g];
        t->to = t->at;
        if (t->done) continue;
        const int64_t next = choose(w, t);
        t->to = next > 0 ? next : t->high > 0 ? t->high : t->low;
        t->done = next == 0;
        if (t->at > t->to) go_back(w, g);
        any |= next > 0;
    }
    return any;
}

static void end_probe(const work *w)
{
    const sp_group_problem *p = w->p;
    for (int64_t g = 0; g < p->groups; g++) {
        track *t = &w->track[g];
        if (t->done) continue;
        const double *W = w->r->W + g * w->each, *before = w->before + g * w->each;
        const double *F = p->F + g * p->factors;
        const double change = (sum_rates(p, W, F) - w->b[g]) - (sum_rates(p, before, F) - w->a[g]);
        if (fabs(change) < w->tol) {
            t->high = t->at;
            continue;
        }
        t->low = t->at;
        memcpy(w->saved + g * w->each, W, (size_t)w->each * sizeof *W);
    }
}

static fth_status solve_squares(const work *w, fth_err *err)
{
    /* A check needs two iterations; a single one is taken without. */
    if (w->most < 2) {
        for (int64_t g = 0; g < w->p->groups; g++) w->track[g].to = w->track[g].done ? 0 : w->most;
        return advance(w, err);
    }
    for (bool any = true; any;) {
        any = aim(w);
        FTH_TRY(advance(w, err));
        if (!any) break;
        FTH_TRY(w->p->fit(w->p->user, w->before, w->r->W, w->a, w->b, err));
        w->r->passes++;
        end_probe(w);
    }
    return FTH_OK;
}

/* ---- the Poisson rule ---- */

static void update_poisson(const work *w, int64_t g)
{
    const int64_t L = w->p->factors;
    const double *F = w->p->F + g * L;
    for (int64_t i = 0; i < w->each; i++)
        if (F[i % L] > 0) w->r->W[g * w->each + i] *= w->before[g * w->each + i] / F[i % L];
    w->track[g].at++;
}

static fth_status solve_poisson(const work *w, fth_err *err)
{
    const sp_group_problem *p = w->p;
    for (bool any = true; any;) {
        FTH_TRY(p->ratio(p->user, w->r->W, w->before, w->a, err));
        w->r->passes++;
        any = false;
        for (int64_t g = 0; g < p->groups; g++) {
            track *t = &w->track[g];
            if (t->done) continue;
            const double nll = sum_rates(p, w->r->W + g * w->each, p->F + g * p->factors) - w->a[g];
            t->done = t->at >= w->most || (t->at >= 2 && fabs(nll - w->nll[g]) < w->tol);
            w->nll[g] = nll;
            if (!t->done) update_poisson(w, g);
            any |= !t->done;
        }
    }
    return FTH_OK;
}

/* ---- all of it ---- */

static void start(const work *w)
{
    const sp_group_problem *p = w->p;
    for (int64_t g = 0; g < p->groups; g++) {
        double *W = w->r->W + g * w->each;
        w->track[g] = (track){.done = p->cells[g] < p->factors};
        for (int64_t i = 0; i < w->each; i++)
            W[i] = w->track[g].done ? (double)p->W[i]
                   : p->start > 0   ? p->start
                                  : 0.1 * fth_random_uniform_at(p->seed, g, SP_STREAM_TRANSFORM, i);
    }
    memcpy(w->before, w->r->W, (size_t)(p->groups * w->each) * sizeof(double));
    memcpy(w->saved, w->r->W, (size_t)(p->groups * w->each) * sizeof(double));
}

static fth_status find_device(work *w, fth_err *err)
{
    fth_err why = {0};
    if (!w->p->ctx || !fth_context_device_mem(w->p->ctx) || w->p->poisson ||
        w->p->factors > SP_STEPS_FACTORS)
        return FTH_OK;
    const fth_status s = sp_group_graph_create(&w->device, w->p, &why);
    if (s == FTH_E_NO_FIT || s == FTH_E_BUDGET) return FTH_OK;
    if (s != FTH_OK && err) *err = why;
    return s;
}

static void measure(const work *w)
{
    const sp_group_problem *p = w->p;
    const int64_t L = p->factors;
    for (int64_t g = 0; g < p->groups; g++) {
        const double left = sp_residual(p->YF + g * w->each, p->FF + g * L * L, p->yy[g],
                                        w->r->W + g * w->each, p->genes, L);
        w->r->steps[g] = w->track[g].at;
        w->r->error[g] = p->cells[g] < L || !(p->yy[g] > 0) ? (double)NAN : sqrt(left / p->yy[g]);
    }
}

fth_status sp_group_reserve(sp_group_result *out, fth_mem *mem, int64_t groups, int64_t genes,
                            int64_t factors, int threads, fth_err *err)
{
    *out = (sp_group_result){.mem = mem};
    return fth_mem_take(mem, FTH_MEM_ANY, bytes_of(groups, genes, factors, threads),
                        "group loadings", &out->block, err);
}

fth_status sp_group_solve(sp_group_result *out, const sp_group_problem *p, fth_err *err)
{
    const int64_t each = p->genes * p->factors, all = p->groups * each;
    out->W = out->block;
    work w = {.p = p,
              .r = out,
              .each = each,
              .most = p->iterations > 0 ? p->iterations : ITERATIONS,
              .tol = p->tol > 0 ? p->tol : 1e-4,
              .before = out->W + all,
              .saved = out->W + 2 * all,
              .a = out->W + 3 * all};
    w.b = w.a + p->groups;
    w.nll = w.b + p->groups;
    out->error = w.nll + p->groups;
    out->steps = (int64_t *)(void *)(out->error + p->groups);
    w.track = (track *)(void *)(out->steps + p->groups);
    w.room = (double *)(void *)(w.track + p->groups);
    start(&w);
    FTH_TRY(find_device(&w, err));
    const fth_status s = p->poisson ? solve_poisson(&w, err) : solve_squares(&w, err);
    sp_group_graph_destroy(w.device);
    FTH_TRY(s);
    measure(&w);
    return FTH_OK;
}

void sp_group_clear(sp_group_result *r)
{
    if (r->mem) fth_mem_release(r->mem, r->block, NULL);
    *r = (sp_group_result){0};
}
