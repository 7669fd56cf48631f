/* update_lanes.h - the gradient of a row, then Adam of its numbers. */
#include "../raster/gaussian_lanes.h"
#if GS_RAYS
#include "../raster/ray_lanes.h"
#endif
#include "loops.h"

#include <string.h>

/* Gradients of a row, as long as it is worked on. */
typedef struct row_gradient {
    bars to;
    real sh0[3], logit, rest[3 * GS_COEFFICIENTS];
} row_gradient;

#define ROW(base, step, i) ((const real *)(base) + (step) * (i))
#define IN(part, i) ROW(w->array[0][part].in, w->array[0][part].in_step, i)

/* What the view says; false: the row is not seen, and all is 0. */
static bool row_back(const gs_update_work *w, int degree, int64_t i, row_gradient *g)
{
    const real *s = ROW(w->splats, w->splats_step, i), *bar = ROW(w->bar, w->bar_step, i),
               *q = IN(GS_IN_ROTATION, i), *mean = IN(GS_IN_MEANS, i);
    const gs_update_array *rest = &w->array[0][GS_UPDATE_REST];
#if GS_RAYS
    ray_seen at;
    if (!(s[GS_TILES] > 0) ||
        !ray_look(w->view, mean, IN(GS_IN_SCALING, i), q, *IN(GS_IN_OPACITY, i), &at))
        return false;
    ray_back_shape(w->view, q, &at, bar, &g->to);
    g->logit = ray_back_opacity(&at, s[GS_O], bar);
#else
    seen at;
    if (!(s[GS_TILES] > 0) ||
        !look(w->rule, w->view, mean, IN(GS_IN_SCALING, i), q, *IN(GS_IN_OPACITY, i), &at))
        return false;
    back_shape(w->view, q, &at, bar, &g->to);
    g->logit = back_opacity(&at, bar);
#endif
    back_colour(degree, w->view, mean, rest->in ? ROW(rest->in, rest->in_step, i) : mean,
                rest->in_k, bar + GS_RED, g->to.mean, g->sh0, g->rest, 3);
    return true;
}

/* Of all rows, seen or not. */
static void add_regularisers(const gs_update_work *w, int64_t i, row_gradient *g)
{
    const real *rates = w->rates, *scaling = IN(GS_IN_SCALING, i);
    if (rates[GS_RATE_SCALING] > 0)
        for (int k = 0; k < 3; k++) g->to.scaling[k] += rates[GS_RATE_SCALING] * EXP(scaling[k]);
    if (rates[GS_RATE_OPACITY] > 0) {
        const real o = 1 / (1 + EXP(-*IN(GS_IN_OPACITY, i)));
        g->logit += rates[GS_RATE_OPACITY] * (o * (1 - o));
    }
    if (w->aim) {
        const real o = 1 / (1 + EXP(-*IN(GS_IN_OPACITY, i))), aim = *ROW(w->aim, w->aim_step, i);
        g->logit += rates[GS_RATE_SPARSITY] * (o - aim) * (o * (1 - o));
    }
}

/* n numbers that lie side by side. They are copied first, so that a compiler sees that reading and
 * writing the same place does no harm. */
static void adam(const real *rates, gs_attribute a, int n, const real *const in[GS_UPDATE_KINDS],
                 real *const out[GS_UPDATE_KINDS], const real *gradient)
{
    const real b1 = (real)GS_BETA1, c1 = (real)(1.0 - GS_BETA1), b2 = (real)GS_BETA2,
               c2 = (real)(1.0 - GS_BETA2), eps = (real)GS_EPSILON;
    const real step = rates[GS_RATE_STEP + a], root = rates[GS_RATE_ROOT + a];
    real p[3 * GS_COEFFICIENTS], m[3 * GS_COEFFICIENTS], v[3 * GS_COEFFICIENTS];
    const size_t bytes = (size_t)n * sizeof *p;
    memcpy(p, in[0], bytes);
    memcpy(m, in[1], bytes);
    memcpy(v, in[2], bytes);
    for (int k = 0; k < n; k++) {
        const real g = gradient[k];
        m[k] = b1 * m[k] + c1 * g;
        v[k] = b2 * v[k] + c2 * (g * g);
        p[k] -= m[k] * step / (SQRT(v[k]) * root + eps);
    }
    if (out[0]) memcpy(out[0], p, bytes);
    if (out[1]) memcpy(out[1], m, bytes);
    if (out[2]) memcpy(out[2], v, bytes);
}

/* One row of a part: `n` numbers `blocks` times; `value`, if there is one, instead of the row's. */
static void step_part(const gs_update_work *w, int part, int64_t i, int n, int blocks,
                      const real *value, const real *gradient)
{
    const real *rates = w->rates;
    const gs_attribute a = gs_update_attribute[part];
    for (int b = 0; b < blocks; b++) {
        const real *in[GS_UPDATE_KINDS];
        real *out[GS_UPDATE_KINDS];
        for (int k = 0; k < GS_UPDATE_KINDS; k++) {
            const gs_update_array *at = &w->array[k][part];
            in[k] = ROW(at->in, at->in_step, i) + b * at->in_k;
            out[k] = at->out ? (real *)at->out + at->out_step * i + b * at->out_k : NULL;
        }
        if (value) in[0] = value;
        if (rates[GS_RATE_ON + a] > 0) {
            adam(rates, a, n, in, out, gradient + b * n);
            continue;
        }
        for (int k = 0; k < GS_UPDATE_KINDS; k++)
            if (out[k] && out[k] != in[k]) memcpy(out[k], in[k], (size_t)n * sizeof(real));
    }
}

static void step_rest(const gs_update_work *w, int64_t i, const real *gradient)
{
    const int n = (w->degree + 1) * (w->degree + 1) - 1;
    bool dense = true;
    for (int k = 0; k < GS_UPDATE_KINDS; k++) {
        const gs_update_array *at = &w->array[k][GS_UPDATE_REST];
        dense &= at->in_k == 3 && (!at->out || at->out_k == 3);
    }
    if (dense)
        step_part(w, GS_UPDATE_REST, i, 3 * n, 1, NULL, gradient);
    else
        step_part(w, GS_UPDATE_REST, i, 3, n, NULL, gradient);
}

static void add_sums(const gs_update_work *w, int64_t i, bool is_seen)
{
    const gs_update_array *at = &w->densify;
    if (!at->out) return;
    const real *in = ROW(at->in, at->in_step, i), *bar = ROW(w->bar, w->bar_step, i);
    real *out = (real *)at->out + at->out_step * i;
    const real x = bar[GS_U] * ((real)w->rule->width / 2),
               y = bar[GS_V] * ((real)w->rule->height / 2);
    const real count = in[0], sum = in[1];
    out[0] = is_seen ? count + 1 : count;
    out[1] = is_seen ? sum + SQRT(FMA(x, x, y * y)) : sum;
}

/* The mean of a row after noise; false: it is as it was. */
static bool shaken(const gs_update_work *w, int64_t i, real moved[3])
{
    const double rate = (double)((const real *)w->rates)[GS_RATE_NOISE];
    const real *mean = IN(GS_IN_MEANS, i), *scaling = IN(GS_IN_SCALING, i),
               *rotation = IN(GS_IN_ROTATION, i);
    float s[3], q[4];
    double by[3];
    if (!w->normals || !(rate > 0)) return false;
    for (int k = 0; k < 3; k++) s[k] = (float)scaling[k];
    for (int k = 0; k < 4; k++) q[k] = (float)rotation[k];
    if (!gs_noise_of(s, q, (float)*IN(GS_IN_OPACITY, i), rate, w->normals + w->normals_step * i,
                     by))
        return false;
    for (int k = 0; k < 3; k++) moved[k] = (real)((double)mean[k] + by[k]);
    return true;
}

static void update_run(const gs_update_work *w)
{
    const real *view = w->view;
    const int wanted = (int)view[GS_VIEW_DEGREE], degree = wanted < w->degree ? wanted : w->degree;
    for (int64_t i = 0; i < w->n; i++) {
        row_gradient g;
        memset(&g, 0, sizeof g);
        const bool is_seen = ROW(w->splats, w->splats_step, i)[GS_TILES] > 0;
        if (!row_back(w, degree, i, &g)) memset(&g, 0, sizeof g);
        add_sums(w, i, is_seen);
        add_regularisers(w, i, &g);
        const real *const gradients[GS_IN_PARTS] = {g.to.mean, g.sh0, g.to.scaling, g.to.q,
                                                    &g.logit};
        real moved[3];
        const bool is_shaken = shaken(w, i, moved); /* by the row as it was */
        for (int p = 0; p < GS_IN_PARTS; p++)
            step_part(w, p, i, gs_update_width[p], 1, is_shaken && p == GS_IN_MEANS ? moved : NULL,
                      gradients[p]);
        if (w->degree > 0) step_rest(w, i, g.rest);
    }
}
#undef IN
#undef ROW
