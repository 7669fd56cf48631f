/* bragg_written.c - see bragg_written.h. A vector is three values, so no axis is spent on it. */
#include "testing/bragg/bragg_written.h"

#include <fathom/ops.h>
#include <stdio.h>
#include <string.h>

typedef fth_val val;
typedef struct vec {
    val x[3];
} vec;

/* ---- arithmetic: operands grow by each other's axes ---------------------------------------- */

static bool covers(val a, val b)
{
    for (int i = 0; i < fth_val_axes(b); i++)
        if (!fth_val_has(a, fth_val_axis(b, i))) return false;
    return true;
}

static val grow(val a, val b)
{
    char list[256] = "";
    for (int i = 0; i < fth_val_axes(b); i++) {
        const char *name = fth_val_axis(b, i);
        const size_t at = strlen(list);
        if (!fth_val_has(a, name))
            snprintf(list + at, sizeof list - at, "%s%s", at ? " " : "", name);
    }
    return list[0] ? fth_expand(a, list) : a;
}

static val both(fth_ew op, val a, val b)
{
    return covers(a, b) || covers(b, a) ? fth_map2(op, a, b) : fth_map2(op, grow(a, b), b);
}

static val num(val like, double x)
{
    return fth_const(like.graph, FTH_F64, x);
}
static val whole(val like, int64_t x)
{
    return fth_const_i64(like.graph, FTH_I64, x);
}
static val add(val a, val b)
{
    return both(FTH_EW_ADD, a, b);
}
static val sub(val a, val b)
{
    return both(FTH_EW_SUB, a, b);
}
static val mul(val a, val b)
{
    return both(FTH_EW_MUL, a, b);
}
static val quo(val a, val b)
{
    return both(FTH_EW_DIV, a, b);
}
static val times(val a, double x)
{
    return fth_mul(a, num(a, x));
}
static val plus(val a, double x)
{
    return fth_add(a, num(a, x));
}
static val all(val a, val b)
{
    return both(FTH_EW_AND, a, b);
}
static val pick(val condition, val yes, val no)
{
    return fth_select(grow(grow(condition, yes), no), yes, no);
}

/* ---- vectors ---- */

static vec fixed(val like, const double *v)
{
    return (vec){{num(like, v[0]), num(like, v[1]), num(like, v[2])}};
}
static val dot(vec a, vec b)
{
    return add(add(mul(a.x[0], b.x[0]), mul(a.x[1], b.x[1])), mul(a.x[2], b.x[2]));
}
static vec scaled(vec a, val k)
{
    return (vec){{mul(a.x[0], k), mul(a.x[1], k), mul(a.x[2], k)}};
}
static vec sum(vec a, vec b)
{
    return (vec){{add(a.x[0], b.x[0]), add(a.x[1], b.x[1]), add(a.x[2], b.x[2])}};
}
static vec minus(vec a)
{
    return (vec){{fth_neg(a.x[0]), fth_neg(a.x[1]), fth_neg(a.x[2])}};
}
static vec cross(vec a, vec b)
{
    vec r;
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        r.x[i] = sub(mul(a.x[j], b.x[k]), mul(a.x[k], b.x[j]));
    }
    return r;
}
static vec unit(vec a)
{
    return scaled(a, fth_rsqrt(dot(a, a)));
}
/* About lab axis i: j turns towards k. */
static vec about_lab(vec v, int i, val angle)
{
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    const val c = fth_cos(angle), s = fth_sin(angle);
    vec r = v;
    r.x[j] = sub(mul(v.x[j], c), mul(v.x[k], s));
    r.x[k] = add(mul(v.x[j], s), mul(v.x[k], c));
    return r;
}
static vec about(vec v, vec u, val angle)
{
    const val c = fth_cos(angle), s = fth_sin(angle);
    const vec along = scaled(u, mul(dot(u, v), plus(fth_neg(c), 1)));
    return sum(sum(along, scaled(v, c)), scaled(cross(u, v), s));
}

/* ---- elements of axes ---- */

static val is(fth_graph *g, const char *axis, int64_t i)
{
    const val index = fth_index(g, axis);
    return fth_eq(index, whole(index, i));
}
static val element(val v, const char *axis, int64_t i)
{
    return fth_sum(fth_mul(v, fth_cast(is(v.graph, axis, i), FTH_F64)), axis);
}
/* The sum of v over `axes` where the condition holds. */
static val only(val condition, val v, const char *axes)
{
    return fth_sum(pick(condition, grow(v, condition), num(v, 0)), axes);
}

typedef struct written {
    const br_scene *s;
    fth_graph *g;
    br_inputs in;
    double phi0;
    val p[BR_PARAMS];
    vec f, sl, o, pix0;
    val close, distance;
    vec abc[3], star[3];
    /* per sample and less */
    val fd, sd, r, group, live, lambda, weight;
    vec place, d, incident, q;
    val polar, omega, capture;
} written;

static bool quirk(const written *w, br_quirk q)
{
    return br_has(w->s, q);
}

/* ---- detector (6) ---- */

static vec tilted(const written *w, vec v)
{
    v = about_lab(v, 0, w->p[BR_RX]);
    v = about_lab(v, 1, w->p[BR_RY]);
    return about_lab(v, 2, w->p[BR_RZ]);
}

static vec swung(const written *w, vec v)
{
    return about(v, fixed(w->p[0], w->s->twotheta_axis), w->p[BR_TT]);
}

static void beam_centre(const written *w, val *f, val *s)
{
    const double half = w->s->pixel / 2;
    const val x = w->p[BR_XB], y = w->p[BR_YB];
    *f = x;
    *s = y;
    switch ((br_convention)w->s->convention) {
    case BR_ADXV: *s = plus(fth_neg(y), w->s->detsize[1]); break;
    case BR_MOSFLM:
        *f = plus(y, half);
        *s = plus(x, half);
        break;
    case BR_DENZO:
        *f = y;
        *s = x;
        break;
    case BR_XDS:
    case BR_DIALS:
    case BR_CUSTOM: break;
    }
}

static void detector(written *w)
{
    const br_scene *s = w->s;
    const val one = w->p[0];
    const vec f = fixed(one, s->fdet), sl = fixed(one, s->sdet), o = fixed(one, s->odet);
    const vec beam = fixed(one, s->beam);
    const val ratio = dot(beam, tilted(w, o));
    const val typed = w->p[BR_DIST];
    const val close = s->dist_is_close ? typed : fth_abs(mul(ratio, typed));
    w->f = swung(w, tilted(w, f));
    w->sl = swung(w, tilted(w, sl));
    w->o = swung(w, tilted(w, o));
    if (s->pivot == BR_PIVOT_SAMPLE) {
        const vec corner = sum(minus(scaled(f, w->p[BR_XB])), minus(scaled(sl, w->p[BR_YB])));
        w->pix0 = swung(w, tilted(w, sum(corner, scaled(o, close))));
    } else {
        val fb, sb;
        beam_centre(w, &fb, &sb);
        const vec corner = sum(minus(scaled(w->f, fb)), minus(scaled(w->sl, sb)));
        w->pix0 = sum(corner, scaled(beam, quo(close, ratio)));
    }
    if (s->pix0_given && !quirk(w, BR_QUIRK_PIX0_IGNORED)) w->pix0 = fixed(one, s->pix0);
    w->close = dot(w->pix0, w->o);
    w->distance = quo(w->close, ratio);
}

/* ---- crystal (model 5) ---- */

static val volume(const written *w)
{
    const val al = w->p[BR_AL], be = w->p[BR_BE], ga = w->p[BR_GA];
    const val half = times(add(add(al, be), ga), 0.5);
    const val s = mul(mul(fth_sin(half), fth_sin(sub(half, al))),
                      mul(fth_sin(sub(half, be)), fth_sin(sub(half, ga))));
    return times(mul(mul(mul(w->p[BR_A], w->p[BR_B]), w->p[BR_C]), fth_sqrt(fth_abs(s))), 2);
}

/* cos of a reciprocal angle: (cos b cos c - cos a) / (sin b sin c) */
static val cos_star(val a, val b, val c)
{
    return quo(sub(mul(fth_cos(b), fth_cos(c)), fth_cos(a)), mul(fth_sin(b), fth_sin(c)));
}

static void from_cell(const written *w, vec *star)
{
    const val a = w->p[BR_A], b = w->p[BR_B], c = w->p[BR_C];
    const val al = w->p[BR_AL], be = w->p[BR_BE], ga = w->p[BR_GA], v = volume(w);
    const val as = quo(mul(mul(b, c), fth_sin(al)), v), bs = quo(mul(mul(c, a), fth_sin(be)), v),
              cs = quo(mul(mul(a, b), fth_sin(ga)), v);
    const val ca = cos_star(al, be, ga), cb = cos_star(be, ga, al), cg = cos_star(ga, al, be);
    const val sg = quo(c, mul(mul(as, bs), v)), zero = num(a, 0);
    const val cz =
        quirk(w, BR_QUIRK_CSTAR_Z) ? quo(mul(cs, v), mul(mul(mul(a, b), c), sg)) : fth_recip(c);
    star[0] = (vec){{as, zero, zero}};
    star[1] = (vec){{mul(bs, cg), mul(bs, sg), zero}};
    star[2] = (vec){{mul(cs, cb), mul(cs, quo(sub(ca, mul(cb, cg)), sg)), cz}};
}

static void crystal(written *w)
{
    const br_scene *s = w->s;
    static const br_param edge[3] = {BR_A, BR_B, BR_C};
    vec star[3], x[3];
    from_cell(w, star);
    for (int i = 0; s->mat_given && i < 3; i++)
        for (int k = 0; k < 3; k++)
            star[i].x[k] = quo(num(w->p[0], s->mat[3 * k + i] * 1e-10), w->p[BR_LAM]);
    for (int i = 0; i < 3; i++) {
        star[i] = about_lab(star[i], 0, w->p[BR_MX]);
        star[i] = about_lab(star[i], 1, w->p[BR_MY]);
        star[i] = about_lab(star[i], 2, w->p[BR_MZ]);
    }
    for (int i = 0; i < 3; i++) x[i] = cross(star[(i + 1) % 3], star[(i + 2) % 3]);
    val v = fth_recip(dot(star[0], x[0]));
    if (s->cell_given) {
        v = volume(w);
        for (int i = 0; i < 3; i++) x[i] = scaled(unit(x[i]), quo(w->p[edge[i]], v));
    }
    for (int i = 0; i < 3; i++) x[i] = scaled(x[i], v);
    for (int i = 0; i < 3; i++) {
        w->star[i] = scaled(cross(x[(i + 1) % 3], x[(i + 2) % 3]), fth_recip(v));
        w->abc[i] = scaled(x[i], num(v, 1e-10));
    }
}

/* ---- places and directions (model 4.5, 9.3) ---- */

static vec curved(const written *w, vec flat)
{
    const vec beam = scaled(fixed(w->p[0], w->s->beam), w->distance);
    if (quirk(w, BR_QUIRK_CURVED_LABYZ)) {
        const vec once = about(beam, w->sl, quo(flat.x[1], w->distance));
        return about(once, w->f, quo(flat.x[2], w->distance));
    }
    const vec to = sum(beam, minus(w->pix0)), b = fixed(w->p[0], w->s->beam);
    const val up = quo(sub(w->sd, dot(w->sl, to)), w->distance);
    const val side = quo(sub(w->fd, dot(w->f, to)), w->distance);
    return about(about(beam, unit(cross(b, w->sl)), up), unit(cross(b, w->f)), side);
}

static val offset(const written *w, const char *pixel, const char *part)
{
    const double edge = w->s->pixel / (double)w->s->oversample;
    const val whole_ = times(fth_cast(fth_index(w->g, pixel), FTH_F64), (double)w->s->oversample);
    return plus(times(add(whole_, fth_cast(fth_index(w->g, part), FTH_F64)), edge), edge / 2);
}

static void places(written *w)
{
    const val deep = times(fth_cast(fth_index(w->g, "layer"), FTH_F64), w->s->layer_step);
    w->fd = offset(w, "fast", "subf");
    w->sd = offset(w, "slow", "subs");
    w->place =
        sum(sum(scaled(w->f, w->fd), scaled(w->sl, w->sd)), sum(scaled(w->o, deep), w->pix0));
    if (w->s->curved) w->place = curved(w, w->place);
    for (int i = 0; i < 3; i++) w->place.x[i] = grow(w->place.x[i], deep);
    w->r = fth_sqrt(dot(w->place, w->place));
    w->d = scaled(w->place, fth_recip(w->r));
}

static val column(const written *w, int i)
{
    return element(w->in.source, "source_column", i);
}

/* Incident beams, scattering vectors, and which of them dmin leaves. */
static void scattering(written *w)
{
    const br_scene *s = w->s;
    for (int i = 0; i < 3; i++) w->incident.x[i] = fth_neg(column(w, BR_SRC_X + i));
    w->lambda = add(column(w, BR_SRC_FIXED), mul(column(w, BR_SRC_PART), w->p[BR_LAM]));
    w->q = scaled(sum(w->d, minus(w->incident)), fth_recip(w->lambda));
    w->weight = quirk(w, BR_QUIRK_EQUAL_WEIGHTS)
                    ? num(w->p[0], 1)
                    : times(column(w, BR_SRC_WEIGHT), (double)s->sources / s->weight_sum);
    const val stol = times(fth_sqrt(dot(w->q, w->q)), 0.5);
    w->live = fth_le(num(stol, s->dmin), fth_div(num(stol, 0.5), stol));
    if (s->dmin <= 0) w->live = fth_le(num(stol, 0), stol);
    static const char *const axis[6] = {"slow", "fast", "layer", "subs", "subf", "source"};
    w->group = whole(stol, 0);
    for (int i = 0; i < 6; i++)
        w->group = add(fth_mul(w->group, whole(stol, fth_axis_size(w->g, axis[i]))),
                       fth_index(w->g, axis[i]));
}

/* ---- factors (model 9.2, 9.4, 9.5); which value counts ---- */

#define PLACES "layer subs subf source"

static val at_corner(const written *w, bool last)
{
    const int64_t o = w->s->oversample - 1;
    return all(is(w->g, "subs", last ? o : 0), is(w->g, "subf", last ? o : 0));
}

static val solid_angle(const written *w)
{
    const val r2 = mul(w->r, w->r);
    if (w->s->point_pixel) return fth_recip(r2);
    return quo(times(w->close, w->s->pixel * w->s->pixel), mul(r2, w->r));
}

static val captured(const written *w)
{
    const val rho = dot(w->d, w->o), layer = fth_cast(fth_index(w->g, "layer"), FTH_F64);
    const val path = fth_div(num(rho, w->s->layer_step * w->s->mu), rho);
    if (w->s->thickness == 0 && !w->s->oversample_thick) return plus(times(path, 0), 1);
    return sub(fth_exp(fth_neg(mul(path, layer))), fth_exp(fth_neg(mul(path, plus(layer, 1)))));
}

static val polarised(const written *w)
{
    const br_scene *s = w->s;
    const val c2 = dot(w->incident, w->d), square = fth_sqr(c2);
    if (s->nopolar && !s->oversample_polar) return plus(times(c2, 0), 1);
    val psi = times(c2, 0);
    if (s->kahn != 0) {
        const vec b = unit(cross(fixed(w->p[0], s->polar), w->incident));
        const vec e = unit(cross(w->incident, b));
        psi = fth_neg(fth_atan2(dot(w->d, b), dot(w->d, e)));
    }
    const val wave = times(fth_cos(times(psi, 2)), s->kahn);
    return times(sub(plus(square, 1), mul(wave, plus(fth_neg(square), 1))), 0.5);
}

/* The value of the first (or last) source that is left, [slow fast]. */
static val surviving(const written *w, val v, bool last)
{
    const val none = whole(v, last ? -1 : INT64_MAX);
    const val index = pick(w->live, w->group, none);
    const val which = last ? fth_rmax(index, PLACES) : fth_rmin(index, PLACES);
    const val first = only(both(FTH_EW_EQ, w->group, grow(which, w->group)), v, PLACES);
    return pick(fth_any(w->live, PLACES), first, num(v, w->s->nopolar ? 1 : 0));
}

static void factors(written *w)
{
    w->omega = solid_angle(w);
    w->capture = captured(w);
    w->polar = polarised(w);
}

/* ---- lattice (model 9.7) ---- */

static val grating(val h, double n)
{
    const val x = times(sub(h, fth_round(h)), 3.14159265358979323846);
    const val top = fth_eq(x, num(x, 0)), s = fth_sin(pick(top, num(x, 1), x));
    return pick(top, num(x, n), fth_div(fth_sin(times(x, n)), s));
}

static val lattice(const written *w, const val *h)
{
    const br_scene *s = w->s;
    const double n = s->cells[0] * s->cells[1] * s->cells[2], pi = 3.14159265358979323846;
    val delta[3], r2 = num(h[0], 0), f = num(h[0], 1);
    if (s->shape == BR_SQUARE) {
        for (int i = 0; i < 3; i++)
            if (s->cells[i] > 1) f = mul(f, grating(h[i], s->cells[i]));
        return grow(f, h[0]);
    }
    for (int i = 0; i < 3; i++) {
        delta[i] = fth_sub(h[i], fth_ceil(plus(h[i], -0.5)));
        r2 = add(r2, times(fth_sqr(delta[i]), s->cells[i] * s->cells[i]));
    }
    if (s->shape == BR_ROUND) {
        const val x = times(fth_sqrt(times(r2, s->fudge)), pi);
        const val ball = fth_div(fth_sub(fth_div(fth_sin(x), x), fth_cos(x)), fth_sqr(x));
        return times(ball, 3 * n * 0.723601254558268);
    }
    const vec at = sum(sum(scaled(w->star[0], delta[0]), scaled(w->star[1], delta[1])),
                       scaled(w->star[2], delta[2]));
    const val rs = times(dot(at, at), n * n * s->fudge);
    if (s->shape == BR_GAUSS) return times(fth_exp(times(rs, -1 / 0.63)), n);
    return pick(fth_lt(rs, num(rs, 0.3969)), num(rs, n), num(rs, 0));
}

/* ---- structure factors (8) ---- */

typedef struct table {
    int64_t lo[3], n[3]; /* first index, entries with the plane of zeros */
    val flat;            /* [entry] */
} table;

static val inside(val x, double lo, double hi)
{
    return fth_and(fth_ge(x, num(x, lo)), fth_le(x, num(x, hi)));
}

/* Table entry at whole-numbered indices, where `good`; 0 elsewhere. */
static val entry(const table *t, const val *h, val good)
{
    val at = whole(h[0], 0);
    for (int i = 0; i < 3; i++) {
        const val x = fth_cast(pick(good, plus(h[i], -(double)t->lo[i]), num(h[i], 0)), FTH_I64);
        at = add(fth_mul(at, whole(at, t->n[i])), x);
    }
    return fth_gather(t->flat, "entry", at);
}

static val nearest(const written *w, const table *t, const val *h)
{
    val near[3], good = fth_eq(h[0], h[0]);
    for (int i = 0; i < 3; i++) {
        near[i] = fth_ceil(plus(h[i], -0.5));
        good = all(good, inside(near[i], (double)t->lo[i], (double)(t->lo[i] + t->n[i] - 2)));
    }
    return pick(good, entry(t, near, good), num(h[0], w->s->default_F));
}

/* Lagrange: product over the other nodes of (x - node) / (this - node). */
static val share(val t, int node)
{
    val p = num(t, 1);
    for (int k = -1; k <= 2; k++)
        if (k != node) p = mul(p, times(plus(t, -k), 1.0 / (node - k)));
    return p;
}

static val tricubic(const table *t, const val *h, val good)
{
    val base[3], part[3], f = num(h[0], 0);
    for (int i = 0; i < 3; i++) {
        base[i] = fth_floor(h[i]);
        part[i] = fth_sub(h[i], base[i]);
    }
    for (int a = -1; a <= 2; a++)
        for (int b = -1; b <= 2; b++)
            for (int c = -1; c <= 2; c++) {
                const val at[3] = {plus(base[0], a), plus(base[1], b), plus(base[2], c)};
                const val k = mul(mul(share(part[0], a), share(part[1], b)), share(part[2], c));
                f = add(f, mul(k, entry(t, at, good)));
            }
    return f;
}

/* Samples whose F is interpolated. `live`: those that are looked at at all. */
static val interpolated(const written *w, const table *t, const val *h, val live)
{
    val safe = fth_eq(h[0], h[0]);
    for (int i = 0; i < 3; i++)
        safe = all(safe, inside(h[i], (double)t->lo[i] + 2, (double)(t->lo[i] + t->n[i] - 4)));
    if (!quirk(w, BR_QUIRK_INTERP_LATCH)) return safe;
    val n = w->group;
    n = add(fth_mul(n, whole(n, w->s->phis)), fth_index(w->g, "phi"));
    n = add(fth_mul(n, whole(n, w->s->mosaics)), fth_index(w->g, "mosaic"));
    const val trips = all(live, fth_not(safe));
    const val first = fth_rmin(pick(trips, n, whole(n, INT64_MAX)),
                               "slow fast layer subs subf source phi mosaic");
    return all(safe, both(FTH_EW_LT, n, first));
}

static val structure(const written *w, const val *h, val live)
{
    const br_scene *s = w->s;
    if (s->hkls <= 0) return num(h[0], s->default_F);
    table t = {.lo = {s->h_min, s->k_min, s->l_min},
               .n = {s->h_max - s->h_min + 2, s->k_max - s->k_min + 2, s->l_max - s->l_min + 2}};
    if (fth_axis_size(w->g, "entry") < 0) fth_axis(w->g, "entry", t.n[0] * t.n[1] * t.n[2]);
    t.flat = fth_merge(w->in.table, "h k l", "entry");
    const val near = nearest(w, &t, h);
    if (!s->interpolate) return near;
    const val smooth = interpolated(w, &t, h, live);
    return pick(smooth, tricubic(&t, h, smooth), near);
}

/* ---- samples ---- */

/* Angle of each step: one at exactly 0 stays where the step before it was (model 10). */
static val angles(const written *w)
{
    const br_scene *s = w->s;
    val step = num(w->p[0], 0);
    for (int64_t i = 0; i < s->phis; i++) {
        int64_t as = i;
        if (quirk(w, BR_QUIRK_PHI_CARRYOVER) && w->phi0 + s->phi_step * (double)i == 0) {
            if (i > 0)
                as = i - 1;
            else
                for (int64_t k = 0; k < s->phis; k++)
                    if (w->phi0 + s->phi_step * (double)k != 0) as = k;
        }
        step = add(step, times(fth_cast(is(w->g, "phi", i), FTH_F64), s->phi_step * (double)as));
    }
    return add(step, w->p[BR_PHI]);
}

static vec turned(const written *w, vec v, val angle)
{
    v = about(v, fixed(w->p[0], w->s->spindle), angle);
    if (!w->s->mosaic_given) return v;
    vec r;
    for (int i = 0; i < 3; i++) {
        const vec row = {{element(w->in.mosaic_rotation, "nine", 3 * i),
                          element(w->in.mosaic_rotation, "nine", 3 * i + 1),
                          element(w->in.mosaic_rotation, "nine", 3 * i + 2)}};
        r.x[i] = dot(row, v);
    }
    return r;
}

static void indices(const written *w, val *h)
{
    const br_scene *s = w->s;
    val angle = angles(w);
    if (s->chain_start >= 0) { /* the only sample that has nothing before it */
        const int64_t group = s->chain_start / (s->phis * s->mosaics);
        const val first = all(fth_eq(w->group, whole(w->group, group)), is(w->g, "phi", 0));
        angle = pick(first, w->p[BR_PHI], angle);
    }
    for (int i = 0; i < 3; i++) {
        h[i] = dot(turned(w, w->abc[i], angle), w->q);
        h[i] = grow(grow(h[i], fth_index(w->g, "phi")), fth_index(w->g, "mosaic"));
    }
}

static val rendered(const written *w)
{
    const br_scene *s = w->s;
    const val x = fth_index(w->g, "fast"), y = fth_index(w->g, "slow");
    val in = all(fth_and(fth_ge(x, whole(x, s->roi[0])), fth_le(x, whole(x, s->roi[1]))),
                 fth_and(fth_ge(y, whole(y, s->roi[2])), fth_le(y, whole(y, s->roi[3]))));
    if (s->masked) in = all(in, fth_cast(w->in.mask, FTH_BOOL));
    return in;
}

/* ---- sums (model 9.6, 11) ---- */

#define SAMPLES "layer subs subf source phi mosaic"

/* Every sample multiplies all that was summed before it: the term of sample n is multiplied by the
 * factors of n and all later ones. */
static val running(const written *w, val term, val factor, val live, val start)
{
    const br_scene *s = w->s;
    char order[] = "slow fast " SAMPLES;
    fth_axis(w->g, "sample",
             s->layers * s->oversample * s->oversample * s->sources * s->phis * s->mosaics);
    const val each = grow(fth_log(pick(live, factor, num(factor, 1))), term);
    const val logs = fth_merge(fth_layout(each, order), SAMPLES, "sample");
    const val terms = fth_merge(fth_layout(term, order), SAMPLES, "sample");
    const val later = fth_scan(FTH_RED_SUM, logs, "sample", false, true);
    return add(fth_sum(mul(terms, fth_exp(later)), "sample"),
               mul(start, fth_exp(fth_sum(logs, "sample"))));
}

static val background(const written *w)
{
    const double water = w->s->water;
    return times(w->p[BR_FLU],
                 2.57 * 2.57 * BR_THOMSON * water * water * water * 1e6 * BR_AVOGADRO / 18);
}

static val scattered(written *w, val h[3], val *live)
{
    const br_scene *s = w->s;
    indices(w, h);
    const val f = lattice(w, h);
    *live = grow(all(w->live, rendered(w)), h[0]);
    if (s->water == 0) *live = all(*live, fth_ne(f, num(f, 0)));
    const val term = mul(fth_sqr(structure(w, h, *live)), fth_sqr(f));
    return pick(*live, mul(term, w->weight), num(term, 0));
}

fth_val tw_render(const br_scene *scene, const br_inputs *in, double phi0)
{
    written w = {.s = scene, .g = in->param.graph, .in = *in, .phi0 = phi0};
    const br_scene *s = scene;
    const bool run = br_has(s, BR_QUIRK_RUNNING_SUM), last = br_has(s, BR_QUIRK_LAST_LAYER);
    const bool thick = s->oversample_thick, polar = s->oversample_polar,
               omega = s->oversample_omega;
    val h[3], live;
    fth_axis(w.g, "layer", s->layers);
    fth_axis(w.g, "subs", s->oversample);
    fth_axis(w.g, "subf", s->oversample);
    fth_axis(w.g, "phi", s->phis);
    for (int i = 0; i < BR_PARAMS; i++) w.p[i] = element(in->param, "param", i);
    detector(&w);
    crystal(&w);
    places(&w);
    scattering(&w);
    factors(&w);
    val term = scattered(&w, h, &live);
    /* one capture fraction for each layer, one of the others for each pixel */
    const val layer_capture = only(at_corner(&w, thick), w.capture, "subs subf");
    const val omega_of =
        only(all(is(w.g, "layer", omega ? s->layers - 1 : 0), at_corner(&w, omega)), w.omega,
             "layer subs subf");
    const val polar_of = s->nopolar && !polar ? num(term, 1) : surviving(&w, w.polar, polar);
    const val capture = thick ? w.capture : layer_capture;
    if (thick ? !run : !last) term = mul(term, capture);
    if (polar && !run) term = mul(term, w.polar);
    if (omega && !run) term = mul(term, w.omega);
    const bool in_sum = br_has(s, BR_QUIRK_WATER_SCALE);
    val start = in_sum ? background(&w) : num(term, 0), total;
    if (run && (thick || polar || omega)) {
        val factor = num(term, 1);
        if (thick) factor = mul(factor, w.capture);
        if (polar) factor = mul(factor, w.polar);
        if (omega) factor = mul(factor, w.omega);
        total = running(&w, term, factor, live, start);
    } else {
        total = add(fth_sum(term, SAMPLES), start);
    }
    total = mul(total, times(w.p[BR_FLU], BR_THOMSON / s->steps));
    if (!thick && last) total = mul(total, element(layer_capture, "layer", s->layers - 1));
    if (!polar) total = mul(total, polar_of);
    if (!omega) total = mul(total, omega_of);
    if (!in_sum && s->water != 0)
        total = add(total, mul(mul(background(&w), fth_sum(layer_capture, "layer")),
                               mul(polar_of, omega_of)));
    return fth_layout(pick(rendered(&w), total, num(total, 0)), "slow fast");
}
