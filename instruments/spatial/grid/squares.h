/* squares.h - the squares of a uniform grid, for searches on the host and on a device. */
#ifndef SPATIAL_SQUARES_H
#define SPATIAL_SQUARES_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define SP_BOTH static inline __host__ __device__
#else
#define SP_BOTH static inline
#endif

typedef struct sp_squares {
    int64_t nx, ny;
    double x0, y0;    /* corner of the first one */
    double edge, inv; /* length of a side, and 1 / edge */
} sp_squares;

/* By rounding, a coordinate may lie outside of its square by this fraction of an edge. */
#define SP_SQUARE_SLACK 1e-6

/* Square of a coordinate; places beyond the edge belong to the outermost ones. */
SP_BOTH int64_t sp_grid_index(double x, double x0, double inv, int64_t n)
{
    const double at = (x - x0) * inv;
    if (!(at > 0)) return 0;
    return at < (double)n ? (int64_t)at : n - 1;
}

/* How far at least everything outside of squares [c - r, c + r] of one axis is. */
SP_BOTH double sp_grid_beyond(double x, double x0, double edge, int64_t c, int64_t r, int64_t n)
{
    double least = HUGE_VAL;
    if (c - r > 0) least = x - (x0 + ((double)(c - r) + SP_SQUARE_SLACK) * edge);
    if (c + r < n - 1) {
        const double right = x0 + ((double)(c + r + 1) - SP_SQUARE_SLACK) * edge - x;
        if (right < least) least = right;
    }
    return least > 0 ? least : 0;
}

#endif
