/* image.c - numbers on a grid straight into pixels.
 *
 * A pixel of the picture shows the number under its centre, or, where several numbers fall on it,
 * their mean or their largest. Every row of the grid belongs to one row of pixels, so a grid of any
 * size is read once, a piece at a time, and a row that is shown again is copied.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "plot/figure.h"

#include <math.h>
#include <string.h>

typedef struct span {
    int64_t from, to;
} span;

/* Rows or columns of the grid that fall on pixel `px` of an axis. */
static span span_of(const fth__plot_axis *a, double first, double last, int64_t count, double t0,
                    double t1)
{
    const double per = (double)count / (last - first);
    const double u0 = (fth__axis_unmap(a, t0) - first) * per;
    const double u1 = (fth__axis_unmap(a, t1) - first) * per;
    const double low = fmin(u0, u1), high = fmax(u0, u1);
    if (!(high > 0 && low < (double)count)) return (span){0, 0};
    span s;
    if (high - low <= 1) {
        s.from = (int64_t)floor((low + high) / 2);
        s.to = s.from + 1;
    } else { /* a number belongs to the pixel its lower edge lies in */
        s.from = (int64_t)ceil(fmax(low, 0) - 1e-9);
        s.to = (int64_t)ceil(fmin(high, (double)count) - 1e-9);
    }
    if (s.from < 0 || s.to > count || s.from >= s.to) return (span){0, 0};
    return s;
}

typedef struct picture {
    const fth_panel *p;
    const fth__plot_layer *l;
    fth__raster box;        /* the panel in pixels */
    int64_t x0, x1, y0, y1; /* what is drawn */
} picture;

static void map_columns(const picture *q, fth__work *w)
{
    const fth_image *o = &q->l->opt.image;
    const double n = (double)q->box.w;
    for (int64_t i = q->x0; i < q->x1; i++) {
        const double t = (double)(i - q->box.x);
        const span s =
            span_of(&q->p->axis[0], o->left, o->right, q->l->grid.columns, t / n, (t + 1) / n);
        w->from[i - q->x0] = s.from;
        w->to[i - q->x0] = s.to;
    }
}

static void add_piece(const picture *q, fth__work *w, const double *v, int64_t first, int64_t n)
{
    const bool peaks = q->l->opt.image.peaks;
    for (int64_t i = 0; i < q->x1 - q->x0; i++) {
        const int64_t from = fth__max_i64(w->from[i], first);
        const int64_t to = fth__min_i64(w->to[i], first + n);
        for (int64_t k = from; k < to; k++) {
            const double x = v[k - first];
            if (!isfinite(x)) continue;
            if (!peaks)
                w->sum[i] += x;
            else if (w->hits[i] == 0 || x > w->sum[i])
                w->sum[i] = x;
            w->hits[i]++;
        }
    }
}

/* The numbers of one row of pixels, into w->sum. */
static fth_status gather(const picture *q, fth__work *w, span rows, int64_t *skipped, fth_err *err)
{
    const int64_t width = q->x1 - q->x0;
    FTH_ASSERT(width > 0 && width <= q->box.w && rows.from >= 0 && rows.to <= q->l->grid.rows);
    memset(w->sum, 0, (size_t)width * sizeof *w->sum);
    memset(w->hits, 0, (size_t)width * sizeof *w->hits);
    for (int64_t r = rows.from; r < rows.to; r++)
        for (int64_t c = 0; c < q->l->grid.columns; c += FTH__PIECE) {
            const int64_t n = fth__min_i64(FTH__PIECE, q->l->grid.columns - c);
            FTH_TRY(fth__grid_read(&q->l->grid, r, c, n, w->raw, w->a, err));
            for (int64_t i = 0; i < n; i++) *skipped += !isfinite(w->a[i]);
            add_piece(q, w, w->a, c, n);
        }
    for (int64_t i = 0; i < width; i++) {
        if (w->hits[i] == 0)
            w->sum[i] = (double)NAN;
        else if (!q->l->opt.image.peaks)
            w->sum[i] /= (double)w->hits[i];
    }
    return FTH_OK;
}

/* A byte of a premultiplied pixel with `v` over it. */
static uint32_t over(uint32_t px, int shift, double v, double alpha)
{
    const double under = (double)(px >> shift & 255);
    const uint32_t byte = (uint32_t)(alpha * v + (1 - alpha) * under + 0.5);
    return (px & ~((uint32_t)255 << shift)) | byte << shift;
}

/* One row of pixels, a colour after the other. */
static fth_status lay_photograph(picture *q, fth__work *w, span rows, uint32_t *row, fth_err *err)
{
    const double alpha = q->l->opt.image.alpha;
    fth__plot_layer channel = *q->l;
    const fth__plot_layer *all = q->l;
    int64_t skipped = 0;
    fth_status s = FTH_OK;
    q->l = &channel;
    for (int c = 0; s == FTH_OK && c < 3; c++) {
        channel.grid.data = (const uint8_t *)all->grid.data + c;
        s = gather(q, w, rows, &skipped, err);
        for (int64_t i = 0; s == FTH_OK && i < q->x1 - q->x0; i++) {
            if (w->hits[i] == 0) continue; /* beside the image */
            row[i] = over(row[i], 16 - 8 * c, w->sum[i], alpha);
            if (c == 2) row[i] = over(row[i], 24, 255, alpha);
        }
    }
    q->l = all;
    return s;
}

fth_status fth__raster_image(const fth_panel *p, const fth__plot_layer *l, double scale,
                             const fth__raster *r, fth__work *w, int64_t *skipped, fth_err *err)
{
    picture q = {.p = p, .l = l, .box = fth__panel_pixels(p, scale)};
    q.x0 = fth__max_i64(q.box.x, r->x), q.x1 = fth__min_i64(q.box.x + q.box.w, r->x + r->w);
    q.y0 = fth__max_i64(q.box.y, r->y), q.y1 = fth__min_i64(q.box.y + q.box.h, r->y + r->h);
    if (q.x1 <= q.x0 || q.y1 <= q.y0) return FTH_OK;
    if (!l->opt.image.rgb)
        for (int i = 0; i < 256; i++) w->table[i] = fth_colour_map_get(l->opt.image.colours.map, i);
    map_columns(&q, w);
    span last = {-1, -1};
    const double n = (double)q.box.h;
    for (int64_t j = q.y0; j < q.y1; j++) {
        const double t = (double)(q.box.y + q.box.h - j); /* the axis counts from below */
        const span rows = span_of(&p->axis[1], l->opt.image.top, l->opt.image.bottom, l->grid.rows,
                                  t / n, (t - 1) / n);
        if (rows.from >= rows.to) continue;
        uint32_t *row = r->px + (j - r->y) * r->stride + (q.x0 - r->x);
        if (l->opt.image.rgb) {
            FTH_TRY(lay_photograph(&q, w, rows, row, err));
            continue;
        }
        if (rows.from != last.from || rows.to != last.to) {
            FTH_TRY(gather(&q, w, rows, skipped, err));
            fth__colour_index(l, w->sum, q.x1 - q.x0);
            last = rows;
        }
        for (int64_t i = 0; i < q.x1 - q.x0; i++) {
            FTH_ASSERT(w->sum[i] < 256);
            if (w->sum[i] >= 0) row[i] = w->table[(int)w->sum[i]];
        }
    }
    return FTH_OK;
}
