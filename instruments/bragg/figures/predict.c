/* predict.c - reflections near the Ewald sphere.
 *
 * Each row h k of the reciprocal lattice crosses the sphere at most twice along l: a quadratic, so
 * large cells cost a plane of rows, not a volume of points. Two passes: the first counts.
 */
#include "predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Constants of the search. Lengths in metres. */
typedef struct search {
    const br_experiment *e;
    double pix0[3], fdet[3], sdet[3], odet[3], close;
    double in[3];      /* incident wave, 1/m */
    double radius;     /* of the sphere */
    double reach;      /* longest q that hits the detector */
    double star[3][3]; /* a* b* c* of this step of the spindle, 1/m */
    double width;      /* of a reflection, by the size of the crystal, 1/m */
    double spread;     /* by angles: times |q| */
    double dispersion; /* half of the relative range of wavelengths */
    br_mark *spot;     /* NULL: count only */
    int64_t n;
} search;

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static void values(const br_dual *from, double *to)
{
    for (int i = 0; i < 3; i++) to[i] = from[i].v;
}

/* ---- the detector ---- */

/* Where a ray in direction d meets the plane; false: it does not. */
static bool hit(const search *s, const double *d, double *fast, double *slow)
{
    const double along = dot(d, s->odet);
    if (!(along > 0)) return false;
    double p[3];
    for (int i = 0; i < 3; i++) p[i] = d[i] * s->close / along - s->pix0[i];
    /* f and s need not be at right angles */
    const double fs = dot(s->fdet, s->sdet), pf = dot(p, s->fdet), ps = dot(p, s->sdet),
                 det = 1 - fs * fs, pixel = s->e->scene.pixel;
    *fast = (pf - fs * ps) / det / pixel - 0.5;
    *slow = (ps - fs * pf) / det / pixel - 0.5;
    return true;
}

/* Longest q that reaches a corner: angles from the beam are largest there. */
static double find_reach(const search *s)
{
    const br_scene *scene = &s->e->scene;
    double most = 0;
    for (int k = 0; k < 4; k++) {
        const double f = scene->detsize[0] * (k & 1), o = scene->detsize[1] * (k >> 1);
        double p[3], q[3];
        for (int i = 0; i < 3; i++) p[i] = s->pix0[i] + f * s->fdet[i] + o * s->sdet[i];
        const double r = sqrt(dot(p, p));
        for (int i = 0; i < 3; i++) q[i] = p[i] / r * s->radius - s->in[i];
        most = fmax(most, sqrt(dot(q, q)));
    }
    return most;
}

/* ---- reflections ---- */

static double amplitude(const br_experiment *e, const int64_t *hkl)
{
    const br_scene *s = &e->scene;
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    const double *at = s->hkls > 0 && e->table ? fth_tensor_data(e->table) : NULL;
    int64_t place = 0;
    for (int k = 0; k < 3; k++) {
        if (!at || hkl[k] < lo[k] || hkl[k] > hi[k]) return s->default_F;
        place = place * (hi[k] - lo[k] + 2) + hkl[k] - lo[k];
    }
    return at[place];
}

static void consider(search *s, const int64_t *hkl)
{
    const br_scene *scene = &s->e->scene;
    double q[3], out[3], fast, slow;
    for (int i = 0; i < 3; i++)
        q[i] = (double)hkl[0] * s->star[0][i] + (double)hkl[1] * s->star[1][i] +
               (double)hkl[2] * s->star[2][i];
    const double length = sqrt(dot(q, q));
    if (length > s->reach || length == 0) return;
    for (int i = 0; i < 3; i++) out[i] = s->in[i] + q[i];
    const double off = sqrt(dot(out, out)) - s->radius;
    const double width =
        s->width + s->spread * length + s->dispersion * length * length / (2 * s->radius);
    const double F = amplitude(s->e, hkl);
    if (fabs(off) > width || F == 0 || !hit(s, out, &fast, &slow)) return;
    if (scene->dmin > 0 && scene->dmin > 1 / length) return;
    const int64_t *roi = scene->roi;
    if (fast < (double)roi[0] - 0.5 || fast > (double)roi[1] + 0.5 || slow < (double)roi[2] - 0.5 ||
        slow > (double)roi[3] + 0.5)
        return;
    if (s->spot)
        s->spot[s->n] = (br_mark){{hkl[0], hkl[1], hkl[2]},
                                  fast,
                                  slow,
                                  off * 1e-10,
                                  F * F * exp(-(off * off) / (width * width))};
    s->n++;
}

/* All l of the row h k that may be near the sphere: |in + u + l c*|^2 = radius^2. */
static void search_row(search *s, int64_t h, int64_t k)
{
    double u[3];
    for (int i = 0; i < 3; i++)
        u[i] = s->in[i] + (double)h * s->star[0][i] + (double)k * s->star[1][i];
    const double *c = s->star[2];
    const double cc = dot(c, c), uc = dot(u, c),
                 far = s->width + (s->spread + s->dispersion) * s->reach;
    const double nearest = dot(u, u) - uc * uc / cc; /* squared distance of the row */
    const double outer = (s->radius + far) * (s->radius + far),
                 inner = fmax(s->radius - far, 0) * fmax(s->radius - far, 0);
    if (nearest > outer) return;
    const double most = sqrt((outer - nearest) / cc),
                 least = nearest < inner ? sqrt((inner - nearest) / cc) : 0;
    int64_t last = INT64_MIN;
    for (int side = -1; side <= 1; side += 2) {
        const double a = -uc / cc + side * least, b = -uc / cc + side * most;
        for (int64_t l = (int64_t)ceil(fmin(a, b)); l <= (int64_t)floor(fmax(a, b)); l++)
            if (l > last) {
                consider(s, (int64_t[3]){h, k, l});
                last = l;
            }
    }
}

static void turn(search *s, double angle)
{
    const br_scene *scene = &s->e->scene;
    double abc[3][3], x[3];
    for (int k = 0; k < 3; k++) {
        double v[3];
        values(s->e->placed.abc[k], v);
        memcpy(abc[k], v, sizeof v);
        if (angle != 0) br_rotate_axis(v, scene->spindle, angle, abc[k]);
    }
    cross(abc[1], abc[2], x);
    const double volume = dot(abc[0], x);
    for (int k = 0; k < 3; k++) {
        cross(abc[(k + 1) % 3], abc[(k + 2) % 3], s->star[k]);
        for (int i = 0; i < 3; i++) s->star[k][i] /= volume;
    }
}

static void sweep(search *s, const double *angle)
{
    s->n = 0;
    for (int64_t p = 0; p < s->e->scene.phis; p++) {
        turn(s, angle[p]);
        double edge[2];
        for (int k = 0; k < 2; k++) {
            double v[3];
            values(s->e->placed.abc[k], v);
            edge[k] = s->reach * sqrt(dot(v, v));
        }
        for (int64_t h = -(int64_t)edge[0]; h <= (int64_t)edge[0]; h++)
            for (int64_t k = -(int64_t)edge[1]; k <= (int64_t)edge[1]; k++) search_row(s, h, k);
    }
}

static void prepare(search *s, const br_experiment *e)
{
    const br_placed *f = &e->placed;
    double smallest = 1;
    *s = (search){.e = e, .close = f->close.v, .radius = 1 / f->lambda.v};
    values(f->pix0, s->pix0);
    values(f->fdet, s->fdet);
    values(f->sdet, s->sdet);
    values(f->odet, s->odet);
    for (int i = 0; i < 3; i++) s->in[i] = e->scene.beam[i] * s->radius;
    s->reach = find_reach(s);
    for (int k = 0; k < 3; k++) {
        double v[3];
        values(f->abc[k], v);
        smallest = fmin(smallest, e->scene.cells[k] * sqrt(dot(v, v)));
    }
    s->width = 0.5 / smallest;
    s->spread = fmax(e->mosaic_spread, 0) + 0.5 * (fabs(e->hdiv_range) + fabs(e->vdiv_range));
    s->dispersion = 0.5 * fmax(e->dispersion, 0);
}

/* ---- in order ---- */

static int by_index(const void *a, const void *b)
{
    const br_mark *p = a, *q = b;
    for (int k = 0; k < 3; k++)
        if (p->hkl[k] != q->hkl[k]) return p->hkl[k] < q->hkl[k] ? -1 : 1;
    return (p->strength < q->strength) - (p->strength > q->strength);
}

static int by_strength(const void *a, const void *b)
{
    const br_mark *p = a, *q = b;
    if (p->strength != q->strength) return p->strength < q->strength ? 1 : -1;
    return by_index(a, b);
}

/* Of the steps of the spindle, each reflection keeps the one where it is strongest. */
static int64_t settle(br_mark *spot, int64_t n)
{
    int64_t kept = 0;
    qsort(spot, (size_t)n, sizeof *spot, by_index);
    for (int64_t i = 0; i < n; i++)
        if (kept == 0 || memcmp(spot[kept - 1].hkl, spot[i].hkl, sizeof spot->hkl) != 0)
            spot[kept++] = spot[i];
    qsort(spot, (size_t)kept, sizeof *spot, by_strength);
    return kept;
}

static fth_status find(br_marks *out, search *s, const double *angle, fth_err *err)
{
    void *block = NULL;
    sweep(s, angle);
    FTH_TRY(fth_mem_take(out->mem, FTH_MEM_ANY, sizeof(br_mark) * (uint64_t)s->n, "spots", &block,
                         err));
    out->spot = s->spot = block;
    sweep(s, angle);
    out->n = settle(out->spot, s->n);
    return FTH_OK;
}

fth_status br_marks_predict(br_marks *out, const br_experiment *e, fth_err *err)
{
    search s;
    void *angle = NULL;
    *out = (br_marks){.mem = e->mem};
    if (e->scene.curved) return FTH_OK;
    prepare(&s, e);
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, sizeof(double) * (uint64_t)e->scene.phis, "angles",
                         &angle, err));
    br_spindle_angles(&e->scene, e->placed.phi0.v, angle);
    const fth_status status = find(out, &s, angle, err);
    (void)fth_mem_release(e->mem, angle, NULL);
    return status;
}

void br_marks_clear(br_marks *s)
{
    if (s->mem) (void)fth_mem_release(s->mem, s->spot, NULL);
    *s = (br_marks){0};
}
