/* cube.c - data of a scanning microscope, [scan row, scan col, row, col], as patterns one after the
 * other: pattern i was measured in row i / cols and column i % cols of the raster. */
#include "parts.h"

typedef struct cube {
    fth_source base;
} cube;

static fth_status cube_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const cube *c = self;
    const int64_t cols = c->base.size[1], item = fth_dtype_size(c->base.dtype);
    char *out = dst;
    for (int64_t i = lo[0]; i < lo[0] + n[0];) { /* what lies in one row of the raster at once */
        const int64_t left = lo[0] + n[0] - i, rest = cols - i % cols,
                      some = left < rest ? left : rest;
        const int64_t at[4] = {i / cols, i % cols, lo[1], lo[2]}, size[4] = {1, some, n[1], n[2]};
        FTH_TRY(c->base.read(c->base.self, at, size, out, err));
        out += some * n[1] * n[2] * item;
        i += some;
    }
    return FTH_OK;
}

fth_status pt_cube_view(pt_scan *scan, const fth_source *base, fth_source *out, fth_err *err)
{
    const fth_source s = *base;
    void *block = NULL;
    FTH_TRY(pt_scan_hold(scan, sizeof(cube), "raster of patterns", &block, err));
    cube *c = block;
    c->base = s;
    *out = (fth_source){.kind = s.kind,
                        .self = c,
                        .dtype = s.dtype,
                        .n_axes = 3,
                        .size = {s.size[0] * s.size[1], s.size[2], s.size[3]},
                        .read = cube_read,
                        .libraries = s.libraries,
                        .billed_bytes = s.billed_bytes};
    return FTH_OK;
}

fth_status pt_raster_positions(pt_draft *d, int64_t rows, int64_t cols, fth_err *err)
{
    pt_scan *scan = d->scan;
    const int64_t n = rows * cols;
    void *x = NULL, *y = NULL;
    FTH_TRY(pt_scan_hold(scan, (uint64_t)n * sizeof(double), "x", &x, err));
    FTH_TRY(pt_scan_hold(scan, (uint64_t)n * sizeof(double), "y", &y, err));
    scan->x = scan->start_x = x;
    scan->y = scan->start_y = y;
    for (int64_t i = 0; i < n; i++) {
        scan->x[i] = d->opt->step * (double)(i % cols);
        scan->y[i] = d->opt->step * (double)(i / cols);
    }
    return FTH_OK;
}
