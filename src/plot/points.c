/* points.c - markers straight into pixels.
 *
 * A marker is drawn once, at up to 8 x 8 places inside a pixel, as coverage from 0 to 255; a point
 * is then one small mask laid over the picture in its colour. That is many times faster than
 * filling a circle for each point, and its cost does not depend on what is already there. Pixels
 * are premultiplied, so the same loop serves an opaque page and a transparent layer of a PDF.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "plot/figure.h"

#include <math.h>

enum { SAMPLES = 8 }; /* along a side of a pixel: 64 steps of coverage look smooth */

/* Is (x, y), from -1 to 1, inside the marker? `edge` is the width of a line. */
static bool inside(fth_marker m, double x, double y, double edge)
{
    const double d = x * x + y * y;
    switch (m) {
    case FTH_MARKER_DISC: return d <= 1;
    case FTH_MARKER_SQUARE: return fabs(x) <= 0.886 && fabs(y) <= 0.886; /* area of the disc */
    case FTH_MARKER_DIAMOND: return fabs(x) + fabs(y) <= 1.2;
    case FTH_MARKER_RING: return d <= 1 && d >= (1 - edge) * (1 - edge);
    case FTH_MARKER_CROSS:
        return fabs(x) <= 0.9 && fabs(y) <= 0.9 &&
               (fabs(x - y) <= edge * 0.7 || fabs(x + y) <= edge * 0.7);
    case FTH_MARKER_COUNT: break;
    }
    return false;
}

static double reach_of(const fth_points *o, double scale)
{
    return sqrt(o->area) / 2 * scale;
}

/* Places of the centre inside a pixel, along one side: a large marker needs fewer. */
static int places_of(double reach)
{
    return reach < 4 ? 8 : reach < 12 ? 4 : 2;
}

/* Width of a mask: the marker, wherever in a pixel its centre is. */
static int mask_side(const fth_points *o, double scale)
{
    const double r = reach_of(o, scale);
    return 2 * (int)ceil(o->marker == FTH_MARKER_DIAMOND ? 1.2 * r : r) + 1;
}

/* The part of a mask that is not empty. */
typedef struct extent {
    int16_t x0, y0, x1, y1;
} extent;

uint64_t fth__mask_bytes(const fth__plot_layer *l, double scale)
{
    const uint64_t side = (uint64_t)mask_side(&l->opt.points, scale);
    const uint64_t places = (uint64_t)places_of(reach_of(&l->opt.points, scale));
    return places * places * (side * side + sizeof(extent));
}

static uint8_t coverage(const fth_points *o, double r, double edge, double x, double y)
{
    int hits = 0;
    for (int s = 0; s < SAMPLES * SAMPLES; s++) {
        const double u = x + (s % SAMPLES + 0.5) / SAMPLES, v = y + (s / SAMPLES + 0.5) / SAMPLES;
        hits += inside(o->marker, u / r, v / r, edge);
    }
    return (uint8_t)(hits * 255 / (SAMPLES * SAMPLES));
}

static int16_t smaller(int16_t a, int b)
{
    return b < a ? (int16_t)b : a;
}

static int16_t larger(int16_t a, int b)
{
    return b > a ? (int16_t)b : a;
}

/* The extents of all masks, then the masks. */
static void make_masks(void *block, const fth_points *o, double scale, int side, int places)
{
    const double r = reach_of(o, scale), edge = fmin(0.9 * scale / r, 1);
    extent *e = block;
    uint8_t *mask = (uint8_t *)(e + places * places);
    for (int place = 0; place < places * places; place++, e++) {
        const double cx = side / 2 + (place % places + 0.5) / places;
        const double cy = side / 2 + (place / places + 0.5) / places;
        *e = (extent){INT16_MAX, INT16_MAX, 0, 0};
        for (int j = 0; j < side; j++)
            for (int i = 0; i < side; i++) {
                *mask = coverage(o, r, edge, i - cx, j - cy);
                if (*mask++ == 0) continue;
                e->x0 = smaller(e->x0, i), e->x1 = larger(e->x1, i + 1);
                e->y0 = smaller(e->y0, j), e->y1 = larger(e->y1, j + 1);
            }
    }
}

/* v * a / 255, rounded, for 0..255. */
static inline uint32_t part(uint32_t v, uint32_t a)
{
    const uint32_t t = v * a + 128;
    return (t + (t >> 8)) >> 8;
}

/* The four channels of a pixel with 16 bits each, to be multiplied at once. */
static inline uint64_t spread(uint32_t px)
{
    return (px & 0x00ff00ffu) | (uint64_t)(px >> 8 & 0x00ff00ffu) << 32;
}

static inline uint32_t gather(uint64_t channels)
{
    return (uint32_t)(channels | channels >> 24);
}

/* part() of every channel. */
static inline uint64_t parts(uint64_t channels, uint64_t a)
{
    const uint64_t mask = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t t = channels * a + UINT64_C(0x0080008000800080);
    return (t + (t >> 8 & mask)) >> 8 & mask;
}

/* A premultiplied, spread colour with coverage m over a pixel. */
static inline uint32_t over(uint32_t px, uint64_t colour, uint32_t m)
{
    const uint64_t c = parts(colour, m);
    return gather(c + parts(spread(px), 255 - (c >> 48)));
}

typedef struct stamp {
    const fth__raster *r;
    int64_t x0, y0, x1, y1; /* pixels that may be touched, inside the raster */
    const uint8_t *mask;
    const extent *extent;
    int side, places;
} stamp;

/* x and y are more than -4096, so that cutting off after adding it is rounding down. */
static void lay(const stamp *s, double x, double y, uint32_t colour)
{
    const int64_t ix = (int64_t)(x + 4096) - 4096, iy = (int64_t)(y + 4096) - 4096;
    const int place =
        (int)((y - (double)iy) * s->places) * s->places + (int)((x - (double)ix) * s->places);
    FTH_ASSERT(x > -4096 && y > -4096 && place >= 0 && place < s->places * s->places);
    const extent *e = &s->extent[place];
    const int64_t left = ix - s->side / 2, top = iy - s->side / 2;
    const int64_t i0 = fth__max_i64(e->x0, s->x0 - left), i1 = fth__min_i64(e->x1, s->x1 - left);
    const int64_t j0 = fth__max_i64(e->y0, s->y0 - top), j1 = fth__min_i64(e->y1, s->y1 - top);
    const uint8_t *mask = s->mask + (int64_t)place * s->side * s->side;
    const uint64_t channels = spread(colour);
    for (int64_t j = j0; j < j1; j++) {
        uint32_t *row = s->r->px + (top + j - s->r->y) * s->r->stride + (left - s->r->x);
        const uint8_t *m = mask + j * s->side;
        for (int64_t i = i0; i < i1; i++) row[i] = over(row[i], channels, m[i]);
    }
}

/* ---- where and in which colour ---- */

/* Premultiplied. */
static uint32_t with_alpha(fth_colour c, double alpha)
{
    const uint32_t a = (uint32_t)lround(alpha * (c >> 24));
    return a << 24 | part(c >> 16 & 255, a) << 16 | part(c >> 8 & 255, a) << 8 | part(c & 255, a);
}

static void fill_table(fth__work *w, const fth__plot_layer *l)
{
    const fth_points *o = &l->opt.points;
    const bool groups = !fth__column_is_empty(&o->groups);
    const int64_t n = groups ? o->n_groups : 256;
    for (int64_t i = 0; i < n; i++)
        w->table[i] = with_alpha(groups ? fth__group_colour(o, i)
                                        : fth_colour_map_get(o->colours.map, (int)i),
                                 o->alpha);
}

/* The place of an axis in pixels as a line, where that is all there is. */
typedef struct ruler {
    const fth__plot_axis *axis;
    double at, per; /* linear: at + per * v */
    double from, length;
} ruler;

static ruler ruler_of(const fth__plot_axis *a, double from, double length, bool down)
{
    /* `down`: the low end is at from + length */
    ruler r = {.axis = a, .from = down ? from + length : from, .length = down ? -length : length};
    const double t0 = fth__axis_map(a, a->low), t1 = fth__axis_map(a, a->high);
    r.per = (t1 - t0) / (a->high - a->low) * r.length;
    r.at = r.from + t0 * r.length - r.per * a->low;
    return r;
}

static void measure(const ruler *r, double *v, int64_t n)
{
    if (r->axis->scale == FTH_SCALE_LINEAR)
        for (int64_t i = 0; i < n; i++) v[i] = r->at + r->per * v[i];
    else
        for (int64_t i = 0; i < n; i++) v[i] = r->from + r->length * fth__axis_map(r->axis, v[i]);
}

void fth__colour_index(const fth__plot_layer *l, double *v, int64_t n)
{
    const fth__plot_axis *a = &l->colours;
    if (a->scale == FTH_SCALE_LOG) /* a detector's zeros have the lowest colour */
        for (int64_t i = 0; i < n; i++)
            if (v[i] < a->low) v[i] = a->low;
    const ruler r = ruler_of(a, 0, 256, false);
    measure(&r, v, n);
    for (int64_t i = 0; i < n; i++) { /* not fmin: that is a call, and this runs for every number */
        const double u = v[i] < 0 ? 0 : v[i] > 255 ? 255 : v[i];
        v[i] = isfinite(v[i]) ? u : -1;
    }
}

static void index_groups(const fth_points *o, double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(v[i] >= 0 && v[i] < (double)o->n_groups)) v[i] = -1;
}

fth_status fth__points_read(const fth_panel *p, const fth__plot_layer *l, double scale,
                            int64_t first, int64_t n, fth__work *w, fth_err *err)
{
    const fth_points *o = &l->opt.points;
    FTH_TRY(fth__column_read(&l->x, first, n, w->raw, w->a, err));
    FTH_TRY(fth__column_read(&l->y, first, n, w->raw, w->b, err));
    const ruler rx = ruler_of(&p->axis[0], p->box.x * scale, p->box.w * scale, false);
    const ruler ry = ruler_of(&p->axis[1], p->box.y * scale, p->box.h * scale, true);
    measure(&rx, w->a, n);
    measure(&ry, w->b, n);
    const bool groups = !fth__column_is_empty(&o->groups);
    if (!groups && fth__column_is_empty(&o->values)) {
        for (int64_t i = 0; i < n; i++) w->c[i] = 0;
        return FTH_OK;
    }
    FTH_TRY(fth__column_read(groups ? &o->groups : &o->values, first, n, w->raw, w->c, err));
    if (groups)
        index_groups(o, w->c, n);
    else
        fth__colour_index(l, w->c, n);
    return FTH_OK;
}

void fth__points_colours(fth__work *w, const fth__plot_layer *l)
{
    const fth_points *o = &l->opt.points;
    if (fth__column_is_empty(&o->values) && fth__column_is_empty(&o->groups))
        w->table[0] = with_alpha(l->colour, o->alpha);
    else
        fill_table(w, l);
}

fth_status fth__raster_points(const fth_panel *p, const fth__plot_layer *l, double scale,
                              const fth__raster *r, fth__work *w, int64_t *skipped, fth_err *err)
{
    const fth_points *o = &l->opt.points;
    const fth__raster box = fth__panel_pixels(p, scale);
    stamp s = {.r = r,
               .x0 = fth__max_i64(box.x, r->x),
               .y0 = fth__max_i64(box.y, r->y),
               .x1 = fth__min_i64(box.x + box.w, r->x + r->w),
               .y1 = fth__min_i64(box.y + box.h, r->y + r->h),
               .extent = w->mask,
               .side = mask_side(o, scale),
               .places = places_of(reach_of(o, scale))};
    make_masks(w->mask, o, scale, s.side, s.places);
    s.mask = (const uint8_t *)(s.extent + s.places * s.places);
    fth__points_colours(w, l);
    const double lo_x = (double)(s.x0 - s.side), hi_x = (double)(s.x1 + s.side);
    const double lo_y = (double)(s.y0 - s.side), hi_y = (double)(s.y1 + s.side);
    for (int64_t first = 0; first < l->y.n; first += FTH__PIECE) {
        const int64_t n = fth__min_i64(FTH__PIECE, l->y.n - first);
        FTH_TRY(fth__points_read(p, l, scale, first, n, w, err));
        for (int64_t i = 0; i < n; i++) {
            const double x = w->a[i], y = w->b[i];
            FTH_ASSERT(w->c[i] < fmax(256, (double)o->n_groups));
            if (x >= lo_x && x <= hi_x && y >= lo_y && y <= hi_y && w->c[i] >= 0)
                lay(&s, x, y, w->table[(int64_t)w->c[i]]);
            else
                *skipped += !isfinite(x) || !isfinite(y) || w->c[i] < 0;
        }
    }
    return FTH_OK;
}
