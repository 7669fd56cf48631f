/* steps.c - from a start to the answer: spots, lattice, then pixels.
 *
 * Several starts are compared by the likelihood of the image: the given one, and lattice fits with
 * a tighter and a wider prior. The best goes through decreasing variance floors; on each, damped
 * steps are taken until they are small against the standard errors.
 */
#include "fit.h"

#include <math.h>
#include <string.h>

enum { SPOTS = 1000 };
static const double MOST_DAMPING = 1e9;
static const double DONE = 0.01; /* standard errors: largest step at convergence */
static const double NEAR_ = 1.0; /* the same on the floors before the last */
static const double GOOD = 0.8;  /* of the correlation that noise allows: a good enough start */
static const double MATCH = 0.5; /* the least at the end: below it is another model */

typedef struct work {
    br_refined *out;
    br_experiment *e;
    const br_observed *o;
    const br_refine_options *opt;
    br_fit fit;
    br_solver solver;
    br_fit_point *now, *trial; /* two of them, exchanged when a step is taken */
    br_normal normal;
    double damping, first_floor, last_floor;
    int64_t taken; /* iterations */
    fth_run_options run;
} work;

static void say(const work *w, const char *what, const br_fit_point *p, double largest)
{
    if (!w->opt->out) return;
    fprintf(w->opt->out, "%-10s %9.3g %12.6g %14.6g %11.5f", what, p->floor,
            p->chi2 / fmax(p->expected, 1e-300), p->deviance, p->match);
    if (isfinite(largest)) fprintf(w->opt->out, " %12.3g", largest);
    fputc('\n', w->opt->out);
    fflush(w->opt->out);
}

static void remember(work *w, const br_fit_point *p, double largest)
{
    br_refine_step *s = &w->out->step[w->out->n_steps++];
    *s = (br_refine_step){.floor = p->floor,
                          .chi2 = p->chi2,
                          .expected = p->expected,
                          .correlation = p->match,
                          .largest = largest};
    memcpy(s->param, p->param, sizeof s->param);
}

static fth_status at(work *w, const double *param, double floor, br_fit_point *out, fth_err *err)
{
    return br_fit_at(&w->fit, param, floor, &w->run, out, err);
}

/* ---- starts ---- */

/* Half the width of a spot in pixels, from the number of cells: 1 to 3. */
static int spot_half(const br_experiment *e)
{
    double size = 0;
    for (int i = 0; i < 3; i++) {
        double edge = 0;
        for (int k = 0; k < 3; k++) edge += e->placed.abc[i][k].v * e->placed.abc[i][k].v;
        size = fmax(size, sqrt(edge) * e->scene.cells[i]);
    }
    const double width = e->placed.lambda.v * e->placed.distance.v / size / e->scene.pixel;
    return width < 1.5 ? 1 : width < 2.5 ? 2 : 3;
}

/* The model at `param` with its scale set so that it has the photons of the image. */
static fth_status try_start(work *w, double *param, br_fit_point *out, fth_err *err)
{
    FTH_TRY(at(w, param, w->first_floor, out, err));
    const bool scaled = w->opt->variables.of[BR_FLU] >= 0 && out->model > 0;
    if (!scaled) return FTH_OK;
    const double factor = out->photons / out->model;
    param[BR_FLU] *= factor;
    if (factor > 0.99 && factor < 1.01) return FTH_OK;
    return at(w, param, w->first_floor, out, err);
}

static bool is_like(const br_fit_point *p, double share)
{
    return p->match >= share * p->best_match;
}

/* One more start, kept when it makes the image likelier than the best so far. */
static fth_status add_start(work *w, br_spots *spots, double reach, bool widely, fth_err *err)
{
    char name[32];
    double param[BR_PARAMS];
    int64_t agree = 0;
    memcpy(param, w->out->start, sizeof param);
    if (reach > 0) {
        agree = br_lattice_fit(&w->e->scene, fth_tensor_data(w->e->source), &w->opt->variables,
                               spots, w->e->mosaic_spread, reach, widely, param);
        if (agree == 0) return FTH_OK;
    }
    FTH_TRY(try_start(w, param, w->trial, err));
    if (reach > 0)
        snprintf(name, sizeof name, "lattice %g%s", reach, widely ? "*" : "");
    else
        snprintf(name, sizeof name, "start");
    say(w, name, w->trial, (double)NAN);
    if (w->out->n_steps > 0 && !(w->trial->deviance < w->now->deviance)) return FTH_OK;
    if (w->out->n_steps == 0) remember(w, w->trial, (double)NAN);
    br_fit_point *t = w->now;
    w->now = w->trial, w->trial = t;
    w->out->spots = agree;
    return FTH_OK;
}

static fth_status choose_start(work *w, br_spots *spots, fth_err *err)
{
    static const double reach[] = {1, 2, 4};
    FTH_TRY(add_start(w, spots, 0, false, err));
    for (int i = 0; i < 6 && !w->opt->no_lattice && !is_like(w->now, GOOD); i++)
        FTH_TRY(add_start(w, spots, reach[i % 3], i >= 3, err));
    remember(w, w->now, (double)NAN);
    return FTH_OK;
}

/* ---- steps ---- */

static void add_step(const br_variables *v, const double *from, const double *step, double *to)
{
    for (int p = 0; p < BR_PARAMS; p++) to[p] = from[p] + (v->of[p] >= 0 ? step[v->of[p]] : 0);
}

/* Largest step in standard errors. */
static double size_of(const br_normal *q, const double *step)
{
    double cov[BR_PARAMS][BR_PARAMS], largest = 0;
    br_normal_covariance(q, cov);
    for (int k = 0; k < q->n; k++) largest = fmax(largest, fabs(step[k]) / sqrt(cov[k][k]));
    return largest;
}

/* One step that does not increase the deviance, with as much damping as needed. `largest` is its
 * size; 0: no improvement found. */
static fth_status take_step(work *w, double *largest, fth_err *err)
{
    const br_variables *v = &w->opt->variables;
    double step[BR_PARAMS], param[BR_PARAMS];
    FTH_TRY(br_solver_at(&w->solver, w->now, v, &w->normal, err));
    for (; w->damping < MOST_DAMPING; w->damping = fmax(10 * w->damping, 1e-4)) {
        br_normal_step(&w->normal, w->damping, step);
        add_step(v, w->now->param, step, param);
        *largest = size_of(&w->normal, step);
        FTH_TRY(at(w, param, w->now->floor, w->trial, err));
        /* A small enough step is accepted regardless of rounding in the deviance. */
        if (w->trial->deviance <= w->now->deviance ||
            (*largest < DONE && isfinite(w->trial->deviance))) {
            br_fit_point *t = w->now;
            w->now = w->trial, w->trial = t;
            w->damping /= 10;
            return FTH_OK;
        }
    }
    *largest = 0;
    return FTH_OK;
}

static fth_status walk(work *w, double floor, double until, bool *done, fth_err *err)
{
    char name[32];
    double param[BR_PARAMS];
    *done = false;
    if (floor != w->now->floor) {
        memcpy(param, w->now->param, sizeof param);
        FTH_TRY(at(w, param, floor, w->now, err));
    }
    while (!*done && w->taken < w->opt->iterations) {
        double largest = 0;
        FTH_TRY(take_step(w, &largest, err));
        snprintf(name, sizeof name, "%lld", (long long)++w->taken);
        say(w, name, w->now, largest);
        remember(w, w->now, largest);
        *done = largest < until;
    }
    return FTH_OK;
}

/* ---- the answer ---- */

static fth_status conclude(work *w, fth_err *err)
{
    const br_variables *v = &w->opt->variables;
    br_refined *r = w->out;
    double cov[BR_PARAMS][BR_PARAMS];
    memcpy(r->param, w->now->param, sizeof r->param);
    memcpy(w->e->param, r->param, sizeof r->param);
    br_place(&w->e->scene, w->e->param, &w->e->placed);
    r->chi2 = w->now->chi2, r->expected = w->now->expected;
    r->deviance = w->now->deviance, r->match = w->now->match;
    r->evaluations = w->fit.runs;
    r->report = w->fit.report;
    FTH_TRY(br_solver_at(&w->solver, w->now, v, &w->normal, err));
    br_normal_covariance(&w->normal, cov);
    for (int p = 0; p < BR_PARAMS; p++) {
        const int a = v->of[p];
        if (a < 0) continue;
        r->error[p] = sqrt(cov[a][a]);
        for (int q = 0; q < BR_PARAMS; q++) {
            const int b = v->of[q];
            if (b >= 0) r->correlation[p][q] = cov[a][b] / sqrt(cov[a][a] * cov[b][b]);
        }
    }
    return FTH_OK;
}

static fth_status refuse(const work *w, bool done, fth_err *err)
{
    const br_fit_point *p = w->now;
    if (!is_like(p, MATCH)) {
        FTH_FAIL(err, FTH_E_NUMERIC,
                 "the refinement ended in a model that does not match the image: after %lld "
                 "iterations the "
                 "correlation is %.4f; noise alone would allow %.4f",
                 (long long)w->taken, p->match, p->best_match);
        fth_err_hint(err, "start closer (-misset, -cell, -Xbeam); check -hkl, -lambda, -distance, "
                          "the convention, and --adc and --gain of the image");
        return FTH_E_NUMERIC;
    }
    if (done) return FTH_OK;
    FTH_FAIL(err, FTH_E_NUMERIC,
             "the refinement did not converge in %lld iterations: chi-square is %.4g of what it "
             "should be, the correlation with the image %.4f",
             (long long)w->taken, p->chi2 / p->expected, p->match);
    fth_err_hint(err, "give more --iterations, or free fewer parameters with --free and --fix");
    return FTH_E_NUMERIC;
}

static fth_status follow(work *w, br_spots *spots, fth_err *err)
{
    bool done = false;
    const double ratio = sqrt(w->last_floor / w->first_floor);
    if (w->opt->out)
        fprintf(w->opt->out, "%-10s %9s %12s %14s %11s %12s\n", "iteration", "floor", "chi2/expect",
                "deviance", "correlation", "step [s.e.]");
    FTH_TRY(choose_start(w, spots, err));
    if (!isfinite(w->now->deviance))
        return FTH_FAIL(err, FTH_E_NUMERIC, "the starting model is not finite");
    FTH_TRY(walk(w, w->first_floor, NEAR_, &done, err));
    if (done) FTH_TRY(walk(w, w->first_floor * ratio, NEAR_, &done, err));
    if (done) FTH_TRY(walk(w, w->last_floor, DONE, &done, err));
    FTH_TRY(conclude(w, err));
    FTH_TRY(refuse(w, done, err));
    w->out->converged = true;
    return FTH_OK;
}

static fth_status begin(work *w, br_spots *spots, fth_context *ctx, fth_err *err)
{
    br_refined *r = w->out;
    void *block = NULL;
    FTH_TRY(br_fit_open(&w->fit, ctx, w->e, w->o, err));
    if (w->opt->plan) return fth_answer_plan(w->opt->plan, "fit", w->fit.plan, err);
    FTH_TRY(br_spots_find(spots, w->o, w->e, spot_half(w->e), SPOTS, err));
    r->photons = spots->photons, r->pixels = spots->pixels;
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, (uint64_t)(w->opt->iterations + 2) * sizeof *r->step,
                         "history", &block, err));
    r->step = block;
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, 2 * sizeof(br_fit_point), "points", &block, err));
    w->now = block, w->trial = w->now + 1;
    const double mean = spots->photons / (double)spots->pixels;
    w->first_floor = mean;
    w->last_floor = 0.05 * fmin(1, mean);
    return br_solver_open(&w->solver, ctx, w->opt->variables.n, err);
}

/* Tied parameters start from one value; a crystal without misset gets one of 0, to be refined. */
static void make_ready(br_experiment *e, const br_variables *v)
{
    for (int p = 0; p < BR_PARAMS; p++)
        if (v->of[p] >= 0) e->param[p] = e->param[v->head[v->of[p]]];
    e->scene.misset_given = 1;
    e->scene.quirks &= ~(1u << BR_QUIRK_INTERP_LATCH);
    br_place(&e->scene, e->param, &e->placed);
}

fth_status br_refine(br_refined *out, fth_context *ctx, br_experiment *e, const br_observed *o,
                     const br_refine_options *opt, fth_err *err)
{
    work w = {.out = out,
              .e = e,
              .o = o,
              .opt = opt,
              .damping = 1e-3,
              .run = {.progress = opt->progress, .user = opt->user}};
    br_spots spots = {0};
    memset(out, 0, sizeof *out);
    out->mem = e->mem;
    make_ready(e, &opt->variables);
    memcpy(out->start, e->param, sizeof out->start);
    memcpy(out->param, e->param, sizeof out->param);
    fth_status s = begin(&w, &spots, ctx, err);
    br_fit_point *points = w.now;
    if (s == FTH_OK && !opt->plan) s = follow(&w, &spots, err);
    if (points) fth_mem_release(e->mem, points, NULL);
    br_spots_clear(&spots);
    br_fit_close(&w.fit);
    br_solver_close(&w.solver);
    return s;
}

void br_refined_clear(br_refined *r)
{
    if (r->step) fth_mem_release(r->mem, r->step, NULL);
    *r = (br_refined){0};
}
