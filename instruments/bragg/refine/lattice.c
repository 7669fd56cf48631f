/* lattice.c - fit the lattice so that the spots of an image have integer indices.
 *
 * The index of a spot is a smooth function of the parameters, and its distance to the nearest
 * integer a residual: no model of the intensities is needed, and the radius of convergence is half
 * an index, N/2 times the width of a spot. The assumed uncertainty of the start decides which spots
 * are indexed unambiguously; fitting those reduces it, and more spots follow.
 */
#include "refine.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 40, GLANCE = 10, FEWEST = 40, FEW = 150, DRAWS = 60 };
static const double DOUBT = 0.25; /* spots whose index is known better than this are used */
static const double CALM = 0.01;  /* ends when no variable changes by more standard errors */
static const double SLACK = 2.0;  /* widens errors: spots are not exactly at their lattice points */

static const double ENOUGH = 0.75; /* of the spots agree: the lattice is found */

typedef double square[BR_PARAMS][BR_PARAMS];

typedef struct fit {
    const br_scene *scene;
    const double *source; /* of one beam: the mean of all */
    const br_variables *v;
    double width[BR_PARAMS]; /* spread of parameters inside a spot: mosaic, spindle, pixel */
    double sigma[BR_PARAMS]; /* of variables: assumed uncertainty of the start */
    double beam[BR_SRC_COLUMNS];
    br_placed placed;
    br_dual abc[3][3]; /* in the middle of the rotation */
} fit;

/* ---- index of a position on the detector ---- */

static br_dual dot(const br_dual *a, const br_dual *b)
{
    return br_add(br_add(br_mul(a[0], b[0]), br_mul(a[1], b[1])), br_mul(a[2], b[2]));
}

/* v rotated about a constant unit axis u by t. */
static void turn(br_dual *v, const double *u, br_dual t)
{
    const br_dual c = br_cos(t), s = br_sin(t), one = br_num(1);
    const br_dual along =
        br_mul(br_add(br_add(br_scale(v[0], u[0]), br_scale(v[1], u[1])), br_scale(v[2], u[2])),
               br_sub(one, c));
    br_dual out[3];
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        const br_dual cross = br_sub(br_scale(v[k], u[j]), br_scale(v[j], u[k]));
        out[i] = br_add(br_add(br_scale(along, u[i]), br_mul(v[i], c)), br_mul(cross, s));
    }
    memcpy(v, out, sizeof out);
}

static void place(fit *f, const double *param)
{
    const br_scene *s = f->scene;
    br_place(s, param, &f->placed);
    memcpy(f->abc, f->placed.abc, sizeof f->abc);
    const br_dual middle = br_add(f->placed.phi0, br_num(s->phi_step * (double)(s->phis - 1) / 2));
    for (int i = 0; i < 3; i++) turn(f->abc[i], s->spindle, middle);
}

static void index_of(const fit *f, const br_spot *spot, br_dual *h)
{
    const br_scene *s = f->scene;
    const br_dual lambda =
        br_add(br_num(f->beam[BR_SRC_FIXED]), br_scale(f->placed.lambda, f->beam[BR_SRC_PART]));
    br_dual p[3], q[3];
    for (int i = 0; i < 3; i++)
        p[i] =
            br_add(f->placed.pix0[i], br_add(br_scale(f->placed.fdet[i], spot->fast * s->pixel),
                                             br_scale(f->placed.sdet[i], spot->slow * s->pixel)));
    const br_dual r = br_sqrt(dot(p, p));
    for (int i = 0; i < 3; i++)
        q[i] = br_div(br_add(br_div(p[i], r), br_num(f->beam[BR_SRC_X + i])), lambda);
    for (int i = 0; i < 3; i++) h[i] = dot(f->abc[i], q);
}

/* Derivatives by variables. */
static void by_variable(const br_variables *v, const br_dual *h, double *out)
{
    for (int k = 0; k < v->n; k++) out[k] = 0;
    for (int p = 0; p < BR_PARAMS; p++)
        if (v->of[p] >= 0) out[v->of[p]] += h->d[p];
}

/* Variance of one index inside a spot: half the width from the number of cells, and the other
 * causes of broadening. */
static double spread(const fit *f, const br_dual *h, int axis)
{
    const double cells = 0.5 / f->scene->cells[axis];
    double v = cells * cells;
    for (int p = 0; p < BR_PARAMS; p++) v += f->width[p] * f->width[p] * h->d[p] * h->d[p];
    return v;
}

/* ---- small symmetric matrices ---- */

/* Inverse of a positive matrix by Cholesky; false: it is not positive. */
static bool invert(int n, const square a, square out)
{
    square l = {{0}};
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double s = a[i][j];
            for (int k = 0; k < j; k++) s -= l[i][k] * l[j][k];
            if (i == j && !(s > 0)) return false;
            l[i][j] = i == j ? sqrt(s) : s / l[j][j];
        }
    for (int c = 0; c < n; c++) {
        double y[BR_PARAMS];
        for (int i = 0; i < n; i++) {
            y[i] = i == c;
            for (int k = 0; k < i; k++) y[i] -= l[i][k] * y[k];
            y[i] /= l[i][i];
        }
        for (int i = n - 1; i >= 0; i--) {
            for (int k = i + 1; k < n; k++) y[i] -= l[k][i] * y[k];
            y[i] /= l[i][i];
        }
        for (int i = 0; i < n; i++) out[i][c] = y[i];
    }
    return true;
}

static double form(int n, const square c, const double *x)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) sum += x[i] * c[i][j] * x[j];
    return sum;
}

/* ---- one round ---- */

typedef struct round_ {
    square normal;
    double gradient[BR_PARAMS];
    int64_t used, agree;
    double score; /* sum over used spots: 1 for one that fits */
} round_;

/* Indices of all spots with their derivatives, and their remaining uncertainty: the standard
 * deviation of the least certain one. */
static void look(const fit *f, br_spots *s, const square cov)
{
    br_dual h[3];
    for (int64_t k = 0; k < s->n; k++) {
        br_spot *spot = &s->spot[k];
        double most = 0;
        index_of(f, spot, h);
        for (int i = 0; i < 3; i++) {
            const bool sharp = f->scene->cells[i] >= 3;
            spot->off[i] = sharp ? h[i].v - rint(h[i].v) : 0;
            spot->spread[i] = spread(f, &h[i], i);
            by_variable(f->v, &h[i], spot->slope[i]);
            if (sharp) most = fmax(most, form(f->v->n, cov, spot->slope[i]));
        }
        spot->doubt = sqrt(most);
    }
}

static void add_spot(const fit *f, const br_spot *spot, double weight, round_ *r)
{
    double z = 0;
    for (int i = 0; i < 3; i++)
        z += spot->off[i] * spot->off[i] / (spot->spread[i] + spot->doubt * spot->doubt);
    /* Down-weights side maxima and spots of other origin, the more the farther they are from an
     * integer index. */
    const double robust = 1 / ((1 + z / 4) * (1 + z / 4));
    r->agree += z < 9;
    r->score += robust;
    r->used++;
    for (int i = 0; i < 3; i++) {
        if (f->scene->cells[i] < 3) continue;
        const double w = weight * robust / spot->spread[i], *j = spot->slope[i];
        for (int a = 0; a < f->v->n; a++) {
            r->gradient[a] -= w * j[a] * spot->off[i];
            for (int b = 0; b < f->v->n; b++) r->normal[a][b] += w * j[a] * j[b];
        }
    }
}

/* The uncertainty up to which spots are used: DOUBT, or that of the most certain few. */
static double limit_of(const br_spots *s)
{
    double best[FEWEST];
    int held = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double doubt = s->spot[i].doubt;
        if (held == FEWEST && !(doubt < best[held - 1])) continue;
        int at = held < FEWEST ? held++ : FEWEST - 1;
        for (; at > 0 && best[at - 1] > doubt; at--) best[at] = best[at - 1];
        best[at] = doubt;
    }
    return fmax(DOUBT, best[held - 1]);
}

static void add_spots(const fit *f, br_spots *s, const square cov, round_ *r)
{
    const double usual = s->spot[s->n / 2].photons;
    *r = (round_){.used = 0};
    look(f, s, cov);
    const double limit = limit_of(s);
    for (int64_t i = 0; i < s->n; i++)
        if (s->spot[i].doubt <= limit)
            add_spot(f, &s->spot[i], fmin(1, s->spot[i].photons / usual), r);
}

/* ---- the fit ---- */

/* Assumed uncertainty of a start: half a degree, half a percent, a pixel and a half. */
static void believe(fit *f, const double *param, double reach)
{
    const double degree = BR_DEGREE;
    for (int k = 0; k < f->v->n; k++) {
        const br_param p = f->v->head[k];
        double s = 0.5 * degree;
        switch ((int)p) {
        case BR_A:
        case BR_B:
        case BR_C:
        case BR_LAM:
        case BR_DIST: s = 0.005 * fabs(param[p]); break;
        case BR_XB:
        case BR_YB: s = 1.5 * f->scene->pixel; break;
        case BR_AL:
        case BR_BE:
        case BR_GA:
        case BR_RX:
        case BR_RY:
        case BR_RZ:
        case BR_TT: s = 0.3 * degree; break;
        case BR_FLU: s = fabs(param[p]); break;
        default: break;
        }
        f->sigma[k] = reach * s;
    }
}

static void find_widths(fit *f, double mosaic)
{
    const br_scene *s = f->scene;
    for (int p = BR_MX; p <= BR_MZ; p++) f->width[p] = mosaic / sqrt(3);
    f->width[BR_PHI] = fabs(s->phi_step) * (double)(s->phis - 1) / sqrt(12);
    f->width[BR_XB] = f->width[BR_YB] = s->pixel / sqrt(12);
}

/* One beam that represents all of them. */
static void mean_beam(fit *f)
{
    double length = 0;
    for (int64_t i = 0; i < f->scene->sources; i++)
        for (int c = 0; c < BR_SRC_COLUMNS; c++)
            f->beam[c] += f->source[i * BR_SRC_COLUMNS + c] / (double)f->scene->sources;
    for (int i = 0; i < 3; i++) length += f->beam[BR_SRC_X + i] * f->beam[BR_SRC_X + i];
    for (int i = 0; i < 3; i++) f->beam[BR_SRC_X + i] /= sqrt(length);
}

/* Step from the present parameters, with the start as one more observation. The covariance for the
 * next round comes back in `cov`. Largest change in standard errors; NaN: no step. */
static double step(const fit *f, const round_ *r, const double *start, double *param, square cov)
{
    const int n = f->v->n;
    square a;
    double g[BR_PARAMS], largest = 0, by[BR_PARAMS];
    memcpy(a, r->normal, sizeof a);
    for (int k = 0; k < n; k++) {
        const double prior = 1 / (f->sigma[k] * f->sigma[k]);
        a[k][k] += prior;
        g[k] = r->gradient[k] - prior * (param[f->v->head[k]] - start[f->v->head[k]]);
    }
    if (!invert(n, (const double(*)[BR_PARAMS])a, cov)) return (double)NAN;
    for (int k = 0; k < n; k++) {
        by[k] = 0;
        for (int i = 0; i < n; i++) by[k] += cov[k][i] * g[i];
        largest = fmax(largest, fabs(by[k]) / sqrt(cov[k][k]));
    }
    for (int p = 0; p < BR_PARAMS; p++)
        if (f->v->of[p] >= 0) param[p] += by[f->v->of[p]];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) cov[i][k] *= SLACK * SLACK;
    return largest;
}

/* From `param` to the lattice near it; `start` is the prior, and `certain` the fraction of its
 * uncertainty that is left. Returns the share of spots that fit, in [0, 1], and counts those that
 * agree; negative: it failed. */
static double fit_from(fit *f, br_spots *spots, const double *start, double certain, int rounds,
                       double *param, int64_t *agree)
{
    round_ r = {.used = 0};
    square cov = {{0}};
    int64_t before = -1;
    for (int k = 0; k < f->v->n; k++) cov[k][k] = certain * f->sigma[k] * f->sigma[k];
    for (int i = 0; i < rounds; i++) {
        place(f, param);
        add_spots(f, spots, (const double(*)[BR_PARAMS])cov, &r);
        const double largest = step(f, &r, start, param, cov);
        if (!(largest >= 0)) return -1;
        if (r.used == before && largest < CALM) break;
        before = r.used;
    }
    *agree = r.agree;
    return r.score / (double)spots->n;
}

/* A point within the uncertainty of the start: number `n` of a sequence that fills it evenly. Every
 * other point moves the beam centre alone: a lattice that is off by one index differs by that. */
static void draw(const fit *f, int n, const double *start, double *param)
{
    static const int prime[] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29,
                                31, 37, 41, 43, 47, 53, 59, 61, 67};
    _Static_assert(sizeof prime / sizeof prime[0] == BR_PARAMS, "one for each parameter");
    memcpy(param, start, BR_PARAMS * sizeof *param);
    for (int p = 0; p < BR_PARAMS; p++) {
        const int k = f->v->of[p];
        const bool beam = p == BR_XB || p == BR_YB;
        double whole;
        if (k < 0 || (n % 2 && !beam)) continue;
        param[p] += sqrt(3.0) * (2 * modf(n * sqrt(prime[k]), &whole) - 1) * f->sigma[k];
    }
}

/* The best of several fits from around the start, until one is good. */
static void search(fit *f, br_spots *spots, const double *start, double found, double *param)
{
    double from[BR_PARAMS];
    int64_t agree = 0;
    for (int i = 1; i <= DRAWS && found < ENOUGH; i++) {
        draw(f, i, start, from);
        const double score = fit_from(f, spots, start, 0.25, GLANCE, from, &agree);
        if (score <= found) continue;
        found = score;
        memcpy(param, from, sizeof from);
    }
}

int64_t br_lattice_fit(const br_scene *scene, const double *source, const br_variables *v,
                       br_spots *spots, double mosaic, double reach, bool widely, double *param)
{
    fit f = {.scene = scene, .source = source, .v = v};
    double now[BR_PARAMS];
    br_spots few = *spots; /* the brightest only: they exclude side maxima */
    int64_t agree = 0;
    bool sharp = false;
    for (int i = 0; i < 3; i++) sharp |= scene->cells[i] >= 3;
    if (!sharp || scene->curved || spots->n < 3) return 0;
    if (few.n > FEW) few.n = FEW;
    memcpy(now, param, sizeof now);
    believe(&f, param, reach);
    find_widths(&f, mosaic);
    mean_beam(&f);
    const double found = fit_from(&f, &few, param, 1, ROUNDS, now, &agree);
    if (widely) search(&f, &few, param, found, now);
    if (fit_from(&f, spots, param, 0.01, ROUNDS, now, &agree) <= 0 || agree == 0) return 0;
    memcpy(param, now, sizeof now);
    return agree;
}
