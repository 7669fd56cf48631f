/* positions.c - where the probe goes. */
#include "simulate.h"

#include "../random/compat.h"

#include <math.h>

#define PI 3.14159265358979323846

static void draw(uint32_t seed, double buffer, int64_t rows, int64_t cols, int64_t n, double *x,
                 double *y)
{
    pt_compat r;
    pt_compat_seed(&r, seed);
    for (int64_t i = 0; i < n; i++) x[i] = pt_compat_uniform(&r, buffer, (double)cols - buffer);
    for (int64_t i = 0; i < n; i++) y[i] = pt_compat_uniform(&r, buffer, (double)rows - buffer);
}

/* The first n of a square grid, row by row, each moved by a share of the step and rounded to a
 * hundredth. */
static void raster(uint32_t seed, double buffer, double jitter, int64_t rows, int64_t cols,
                   int64_t n, double *x, double *y)
{
    const int64_t side = (int64_t)ceil(sqrt((double)n));
    const double gap = side > 1 ? (double)(side - 1) : 1, dx = ((double)cols - 2 * buffer) / gap,
                 dy = ((double)rows - 2 * buffer) / gap;
    pt_compat r;
    pt_compat_seed(&r, seed);
    for (int64_t i = 0; i < n; i++) {
        const double sx = pt_compat_uniform(&r, -jitter, jitter),
                     sy = pt_compat_uniform(&r, -jitter, jitter);
        const double px = buffer + dx * ((double)(i % side) + sx),
                     py = buffer + dy * ((double)(i / side) + sy);
        x[i] = rint(100 * fmin(fmax(px, 0), (double)cols)) / 100;
        y[i] = rint(100 * fmin(fmax(py, 0), (double)rows)) / 100;
    }
}

/* Both fill a disc evenly: the radius grows as the root of the number. */
static void spirals(bool fermat, double buffer, int64_t rows, int64_t cols, int64_t n, double *x,
                    double *y)
{
    const double side = (double)(rows < cols ? rows : cols), R = fmax(side / 2 - buffer, 0),
                 golden = PI * (3 - sqrt(5.0));
    for (int64_t i = 0; i < n; i++) {
        const double share = ((double)i + 0.5) / (double)n,
                     angle = fermat ? golden * (double)i : 2 * sqrt(PI * (double)n * share);
        x[i] = (double)cols / 2 + R * sqrt(share) * cos(angle);
        y[i] = (double)rows / 2 + R * sqrt(share) * sin(angle);
    }
}

void pt_positions_make(pt_scan_kind kind, uint32_t seed, double buffer, double jitter, int64_t rows,
                       int64_t cols, int64_t n, double *x, double *y)
{
    if (kind == PT_SCAN_RANDOM)
        draw(seed, buffer, rows, cols, n, x, y);
    else if (kind == PT_SCAN_RASTER)
        raster(seed, buffer, jitter, rows, cols, n, x, y);
    else
        spirals(kind == PT_SCAN_FERMAT, buffer, rows, cols, n, x, y);
}
