/* cpu/winograd.h - convolutions with windows of 3 by 3 through tiles of 2 by 2 (Winograd).
 *
 * A tile of the result needs 4 by 4 numbers of the image. Both, and the window, are transformed to
 * 16 points, at each of which the convolution is one product of matrices: 16 multiplications
 * instead of 36. An element of the result is summed over channels in one order, whatever its
 * neighbours and however the work is cut.
 *
 * Matrices lie in panels of 32 columns: element (i, j) of m rows is at (j / 32 * m + i) * 32 + j %
 * 32. `plane` is the distance between points.
 */
#ifndef FTH_CPU_WINOGRAD_H
#define FTH_CPU_WINOGRAD_H

#include "cpu/conv2d.h"

#include <fathom/isa.h>

/* PANEL: two vectors of 16 f32 of the widest instruction set, the columns that a product holds in
 * registers. SPARE: one such vector, read or written past the end of a line. */
enum { FTH__WINOGRAD_PANEL = 32, FTH__WINOGRAD_POINTS = 16, FTH__WINOGRAD_SPARE = 16 };

/* Where columns `at` and on of a row of a matrix lie. */
typedef struct fth__winograd_row {
    float *data; /* of the first column of the matrix */
    int64_t plane, panel, at;
} fth__winograd_row;

/* Lines are read and written FTH__WINOGRAD_SPARE elements beyond their ends, but for `result`. */
typedef struct fth__winograd_loops {
    /* One row of the image, 2 * tiles + 2 elements, along x: four lines, `step` apart. */
    void (*along)(float *to, int64_t step, const float *line, int64_t tiles);
    /* Four such rows along y: a row of tiles of one channel. */
    void (*image)(const fth__winograd_row *to, const float *const rows[4], int64_t step,
                  int64_t tiles);
    /* Two rows of the cotangent of the result, 2 * tiles elements. */
    void (*slope)(const fth__winograd_row *to, const float *const rows[2], int64_t tiles);
    /* Back to two rows of the result. */
    void (*result)(float *const rows[2], const fth__winograd_row *from, int64_t tiles);
    /* 32 windows, [9][32], to points and back. */
    void (*window)(float *to, int64_t plane, const float *from);
    void (*window_slope)(float *to, const float *from, int64_t plane);
    /* c (m by n) = a (m by k) b (k by n), or += . */
    void (*product)(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c,
                    bool add);
} fth__winograd_loops;
FTH_ISA_DECLARE(const fth__winograd_loops, fth__winograd_loops);

/* Whether there are enough channels for it. */
bool fth__winograd_pays(int64_t chan, int64_t out_chan);
/* Bytes of scratch; 0: this convolution goes another way. */
uint64_t fth__winograd_scratch(const fth__conv_job *j);
void fth__winograd_run(const fth__conv_job *j, void *scratch);

/* The cotangent of the weights of some images. */
typedef struct fth__winograd_sum {
    const fth__conv_source *from; /* the image */
    const fth__conv_view *r;      /* the cotangent of the result */
    int64_t chan;                 /* of this call */
    bool tiled;
} fth__winograd_sum;
uint64_t fth__winograd_sum_scratch(const fth__winograd_sum *s);
/* sum [out_chan chan 3 3] of images first to end - 1. */
void fth__winograd_sum_run(const fth__winograd_sum *s, int64_t first, int64_t end, float *sum,
                           void *scratch);

#endif
