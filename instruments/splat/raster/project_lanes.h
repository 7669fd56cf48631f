/* project_lanes.h - rows of Gaussians to rows of splats and back: loops over gaussian_lanes.h,
 * or with GS_RAYS over ray_lanes.h. */
#include "gaussian_lanes.h"
#if GS_RAYS
#include "ray_lanes.h"
#endif

#include <string.h>

static int64_t count_tiles(const gs_raster *rule, const real *s)
{
    const box b = box_of(rule, s);
    int64_t n = 0;
    for (int64_t y = b.y0; y < b.y1; y++)
        for (int64_t x = b.x0; x < b.x1; x++) n += touches(rule, s, x, y);
    return n;
}

static int degree_of(const gs_project_work *w, const real *view)
{
    const int wanted = (int)view[GS_VIEW_DEGREE];
    return wanted < w->degree ? wanted : w->degree;
}

#define ROW(type, base, step, i) ((type)(base) + (step) * (i))
#define IN(part, i) ROW(const real *, w->in[part], w->step[part], i)

/* One row as it is seen, but for its tiles and its colour. */
static bool row_at(const gs_project_work *w, int64_t i, real row[NUMBERS])
{
#if GS_RAYS
    ray_seen g;
    return ray_look(w->view, IN(GS_IN_MEANS, i), IN(GS_IN_SCALING, i), IN(GS_IN_ROTATION, i),
                    *IN(GS_IN_OPACITY, i), &g) &&
           ray_row(w->rule, w->view, &g, row);
#else
    seen g;
    if (!look(w->rule, w->view, IN(GS_IN_MEANS, i), IN(GS_IN_SCALING, i), IN(GS_IN_ROTATION, i),
              *IN(GS_IN_OPACITY, i), &g))
        return false;
    row_of(w->view, &g, row);
    return true;
#endif
}

static void project_run(const gs_project_work *w)
{
    const real *view = w->view;
    const int degree = degree_of(w, view), n = (degree + 1) * (degree + 1);
    for (int64_t i = 0; i < w->n; i++) {
        real *s = ROW(real *, w->out[0], w->out_step[0], i), d[3], basis[16];
        const real *mean = IN(GS_IN_MEANS, i);
        real row[NUMBERS];
        memset(s, 0, NUMBERS * sizeof *s);
        if (!row_at(w, i, row)) continue;
        row[GS_TILES] = (real)count_tiles(w->rule, row);
        if (!(row[GS_TILES] > 0)) continue;
        direction(view, mean, d);
        sh_basis(degree, d[0], d[1], d[2], basis);
        colour_of(IN(GS_IN_SH0, i), ROW(const real *, w->rest, w->rest_step, i), w->rest_k, basis,
                  n, row + GS_RED);
        memcpy(s, row, sizeof row);
    }
}

/* ---- backward ---- */

static void clear_row(const gs_project_work *w, int64_t i)
{
    static const int columns[GS_IN_PARTS] = {3, 3, 3, 4, 1};
    for (int p = 0; p < GS_IN_PARTS; p++)
        if (w->out[p])
            memset(ROW(real *, w->out[p], w->out_step[p], i), 0, (size_t)columns[p] * sizeof(real));
    for (int k = 0; w->out_rest && k < (w->degree + 1) * (w->degree + 1) - 1; k++)
        memset(ROW(real *, w->out_rest, w->out_rest_step, i) + k * w->out_rest_k, 0,
               3 * sizeof(real));
}

static void put(const gs_project_work *w, int part, int64_t i, const real *from, int n)
{
    if (w->out[part])
        memcpy(ROW(real *, w->out[part], w->out_step[part], i), from, (size_t)n * sizeof *from);
}

/* Cotangents of a row that touches a tile; false: it is not seen. */
static bool back_at(const gs_project_work *w, int64_t i, bars *to, real *logit)
{
    const real *s = ROW(const real *, w->splats, w->splats_step, i),
               *bar = ROW(const real *, w->bar, w->bar_step, i), *q = IN(GS_IN_ROTATION, i);
#if GS_RAYS
    ray_seen g;
    if (!(s[GS_TILES] > 0) ||
        !ray_look(w->view, IN(GS_IN_MEANS, i), IN(GS_IN_SCALING, i), q, *IN(GS_IN_OPACITY, i), &g))
        return false;
    ray_back_shape(w->view, q, &g, bar, to);
    *logit = ray_back_opacity(&g, s[GS_O], bar);
#else
    seen g;
    if (!(s[GS_TILES] > 0) || !look(w->rule, w->view, IN(GS_IN_MEANS, i), IN(GS_IN_SCALING, i), q,
                                    *IN(GS_IN_OPACITY, i), &g))
        return false;
    back_shape(w->view, q, &g, bar, to);
    *logit = back_opacity(&g, bar);
#endif
    return true;
}

static void project_back_run(const gs_project_work *w)
{
    const real *view = w->view;
    const int degree = degree_of(w, view);
    for (int64_t i = 0; i < w->n; i++) {
        const real *bar = ROW(const real *, w->bar, w->bar_step, i);
        bars to;
        real logit;
        clear_row(w, i);
        if (!back_at(w, i, &to, &logit)) continue;
        back_colour(
            degree, view, IN(GS_IN_MEANS, i), ROW(const real *, w->rest, w->rest_step, i),
            w->rest_k, bar + GS_RED, to.mean,
            w->out[GS_IN_SH0] ? ROW(real *, w->out[GS_IN_SH0], w->out_step[GS_IN_SH0], i) : NULL,
            w->out_rest ? ROW(real *, w->out_rest, w->out_rest_step, i) : NULL, w->out_rest_k);
        put(w, GS_IN_MEANS, i, to.mean, 3);
        put(w, GS_IN_SCALING, i, to.scaling, 3);
        put(w, GS_IN_ROTATION, i, to.q, 4);
        put(w, GS_IN_OPACITY, i, &logit, 1);
    }
}
#undef IN
