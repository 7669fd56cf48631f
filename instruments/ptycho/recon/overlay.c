/* overlay.c - the part of the sample that two objects share. See recon.h. */
#include "recon.h"

#include <math.h>

typedef struct span {
    int64_t low, high;
} span;

static span both(span a, span b)
{
    return (span){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

/* Whole pixels about the positions, of an axis: 0 is x. */
static span around(const pt_recon *r, int axis, int64_t margin)
{
    const double *p = fth_tensor_data(r->positions);
    double low = p[axis], high = p[axis];
    for (int64_t i = 1; i < r->n_positions; i++) {
        low = fmin(low, p[2 * i + axis]);
        high = fmax(high, p[2 * i + axis]);
    }
    if (!(fabs(low) < 1e15) || !(fabs(high) < 1e15)) return (span){INT64_MIN, INT64_MAX};
    return (span){(int64_t)low - margin, (int64_t)high + margin};
}

static bool same_size(const pt_image *a, const pt_image *b)
{
    return a->rows == b->rows && a->cols == b->cols;
}

/* About the middles of a window of the first and of the whole second: the larger one loses half of
 * the difference on each side. */
static void centre(span window, int64_t second, int64_t *from_first, int64_t *from_second,
                   int64_t *n)
{
    const int64_t first = window.high - window.low;
    *n = first < second ? first : second;
    *from_first = window.low + (first - *n) / 2;
    *from_second = (second - *n) / 2;
}

static fth_status by_origins(const pt_recon *first, const pt_recon *second, int64_t margin,
                             pt_overlay *out, fth_err *err)
{
    const pt_image *a = &first->object, *b = &second->object;
    const pt_recon *where = second->positions ? second : first->positions ? first : NULL;
    const int64_t ay = llrint(first->origin_y), ax = llrint(first->origin_x),
                  by = llrint(second->origin_y), bx = llrint(second->origin_x);
    span y = both((span){ay, ay + a->rows}, (span){by, by + b->rows});
    span x = both((span){ax, ax + a->cols}, (span){bx, bx + b->cols});
    if (where && where->n_positions > 0) {
        y = both(y, around(where, 1, margin));
        x = both(x, around(where, 0, margin));
    }
    if (y.high - y.low < 1 || x.high - x.low < 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "the objects do not overlap: %s starts at x %.1f, y %.1f with %lld x %lld "
                        "pixels, %s at x %.1f, y %.1f with %lld x %lld",
                        first->path, first->origin_x, first->origin_y, (long long)a->rows,
                        (long long)a->cols, second->path, second->origin_x, second->origin_y,
                        (long long)b->rows, (long long)b->cols);
    *out = (pt_overlay){y.high - y.low, x.high - x.low, y.low - ay,
                        x.low - ax,     y.low - by,     x.low - bx};
    return FTH_OK;
}

fth_status pt_recon_overlay(const pt_recon *first, const pt_recon *second, int64_t margin,
                            pt_overlay *out, fth_err *err)
{
    const pt_image *a = &first->object, *b = &second->object;
    /* an image without a frame lies at x = y = 0 as objects of scans do, unless its size says that
     * it was cut to the other one */
    const bool framed = second->has_origin && (first->has_origin || !same_size(a, b));
    *out = (pt_overlay){0};
    if (framed) return by_origins(first, second, margin, out, err);
    span y = {0, a->rows}, x = {0, a->cols};
    if (first->is_scan && first->n_positions > 0 && !same_size(a, b)) {
        y = both(y, around(first, 1, margin));
        x = both(x, around(first, 0, margin));
        if (y.high - y.low < 1 || x.high - x.low < 1)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE, "the positions of %s lie outside its object",
                            first->path);
    }
    centre(y, b->rows, &out->first_row, &out->second_row, &out->rows);
    centre(x, b->cols, &out->first_col, &out->second_col, &out->cols);
    return FTH_OK;
}
