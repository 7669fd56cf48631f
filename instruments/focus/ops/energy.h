/* energy.h - how sharp a plane is at each pixel: focus measures, and their smoothing.
 *
 * All is single precision in a fixed order. For the LoG of size 3 of 8 and 16 bit values every
 * intermediate is an integer below 2^24 (times a power of two), so floats are exact there. Each
 * step that looks around a pixel extends its own input at the border. Symmetric kernels are stored
 * as halves, centre first: sum = w[0] a[0] + w[1] (a[-1] + a[1]) + w[2] ..., in that order.
 */
#ifndef FOCUS_OPS_ENERGY_H
#define FOCUS_OPS_ENERGY_H

#include "border.h"

#include <fathom/isa.h>
#include <fathom/op.h>

enum {
    FO_ENERGY_LOG,
    FO_ENERGY_TENENGRAD,
    FO_ENERGY_MODLAP,
    FO_ENERGY_VARIANCE, /* up to here in the order of fo_measure */
    FO_ENERGY_LAPLACE,  /* the LoG of size 1: no blur, four neighbours */
    FO_ENERGY_KINDS
};
enum {
    FO_MOST_K = 31,
    FO_MOST_SMOOTH = 128,   /* radius of smoothing */
    FO_VARIANCE_RADIUS = 4, /* a window of 9 */
    FO_ENERGY_UNIT = 64     /* rows are worked on in multiples of this */
};
#define FO_MOST_SIGMA 32.0

/* Plain bytes: part of the attributes of operations. */
typedef struct fo_energy {
    int32_t kind, border;
    int32_t radius; /* of each of the two steps of the LoG: (k-1)/2; of a measure otherwise */
    int32_t smooth; /* radius of smoothing; 0: none */
    float gauss[FO_MOST_K / 2 + 1];
    float binomial[FO_MOST_K / 2 + 1]; /* S of the Laplacian D(x)S(y) + S(x)D(y), from k = 5 on */
    float second[FO_MOST_K / 2 + 1];   /* D */
    float weight[FO_MOST_SMOOTH + 1];
} fo_energy;

/* A measure with kernel size k (of the LoG alone) and smoothing by sigma (0: none). */
fo_energy fo_energy_of(int kind, fo_border border, int k, double sigma);
/* Rows beside its own that a row of energy depends on. */
int64_t fo_energy_reach(const fo_energy *e);
/* The kernels themselves, k x k, for tests and documents. */
void fo_energy_gauss(int k, double *g);                          /* [k] */
void fo_energy_laplace(int k, double *binomial, double *second); /* [k]; k >= 5 */

/* The best of the planes so far, a row of pixels. Energies are not negative: -1 stands for a plane
 * that is not there, and -2 in `right` for one that is still to come. */
typedef struct fo_best {
    float *energy, *value;
    int32_t *index;
    float *second, *left, *right, *previous; /* all, or none */
} fo_best;
#define FO_NO_PLANE (-1.0f)
#define FO_NEXT_PLANE (-2.0f)
#define FO_NEAR_TIE 0.9f

/* ---- loops, one set per instruction set; n is a multiple of FO_ENERGY_UNIT ---- */

typedef struct fo_energy_loops {
    void (*widen_u8)(float *to, const uint8_t *from, int64_t n); /* any n */
    void (*widen_u16)(float *to, const uint16_t *from, int64_t n);
    /* Symmetric sums along a row, whose borders are filled; and over 2r+1 rows, for `count` rows
     * one below the other that are written `step` apart. */
    void (*across)(float *to, const float *row, const float *w, int r, int64_t n);
    void (*down)(float *to, int64_t step, int count, const float *const *rows, const float *w,
                 int r, int64_t n);
    /* LoG of size 3: a[-1] + a[1] + 2 a; the same over rows; and of three such rows the sum of
     * the four corners, |2 corners - 8 middle|/16. */
    void (*log_across)(float *to, const float *row, int64_t n);
    void (*log_down)(float *to, const float *const *rows, int64_t n);
    void (*log_end)(float *to, const float *above, const float *row, const float *below, int64_t n);
    void (*sum_abs)(float *to, const float *add, int64_t n); /* to = |to + add| */
    /* Sobel: differences and sums along a row; then squares over three rows of each. */
    void (*sobel_across)(float *diff, float *sum, const float *row, int64_t n);
    void (*sobel_end)(float *to, const float *const *diff, const float *const *sum, int64_t n);
    void (*modlap)(float *to, const float *const *rows, int64_t n);
    void (*laplace)(float *to, const float *const *rows, int64_t n);
    /* Sums of 9 values and squares along a row, over 9 rows, and the variance they make. */
    void (*moments_across)(double *sum, double *square, const float *row, int64_t n);
    void (*variance)(float *to, const double *const *sum, const double *const *square, int64_t n);
    /* One more plane z of energies e and values v. take: where e > best, all is replaced. take_all:
     * with second, left, right and previous too. choose: the plane whose e comes first, or last, to
     * 0.9 of `most`. */
    void (*take)(const fo_best *b, const float *e, const float *v, int32_t z, int64_t n);
    void (*take_all)(const fo_best *b, const float *e, const float *v, int32_t z, int64_t n);
    void (*choose)(const fo_best *b, const float *most, bool last, const float *e, const float *v,
                   int32_t z, int64_t n);
    void (*skip)(const fo_best *b, int64_t n); /* a plane that is not there */
    /* For 16 bits, any n: log_across of columns 1 to n-2; take with value and plane in one word;
     * the end of the LoG of size 3 and that at once; and 16 times the sum of the LoG. */
    void (*log_across_u16)(float *to, const uint16_t *row, int64_t n);
    void (*take_u16)(float *best, uint32_t *packed, const float *e, const uint16_t *v, uint32_t z,
                     int64_t n);
    void (*log_take_u16)(float *best, uint32_t *packed, const float *const *rows, const uint16_t *v,
                         uint32_t z, int64_t n);
    int64_t (*log_sum)(const float *const *rows, int64_t n);
    /* Value and plane into one word (in the place of the value), and out of it. */
    void (*pack)(const fo_best *b, int64_t n);
    void (*unpack)(const fo_best *b, int64_t n);
    void (*start)(const fo_best *b, int64_t n); /* no plane yet */
} fo_energy_loops;
FTH_ISA_DECLARE(const fo_energy_loops, fo_energy_loops);

/* ---- rows of one plane after the other, each made once ---- */

enum {
    FO_ROWS_AT_ONCE = 4, /* rows of smoothed energy that are made together */
    FO_RING_MOST = 2 * FO_MOST_SMOOTH + FO_ROWS_AT_ONCE
};
typedef struct fo_ring {
    float *row; /* of slot 0 */
    int32_t slots;
    int64_t *held; /* which row of the image each slot has; -1: none */
} fo_ring;
typedef struct fo_rows {
    const fo_energy *e;
    const fo_energy_loops *loop;
    fth_dtype dtype;
    int64_t height, width;   /* of the image */
    int64_t n, step, margin; /* floats of a row: rounded up; with margins; of one margin */
    fo_ring ring[3];
    float *zero, *line, *line2, *line3; /* a row of zeros and three to work in */
    /* the plane: its rows from `first` on */
    const char *data;
    int64_t first, row_bytes;
} fo_rows;

/* Bytes of workspace for rows of `width` pixels. */
uint64_t fo_rows_bytes(const fo_energy *e, int64_t width);
/* Sets up in that workspace (64-byte aligned) for images of this size. */
void fo_rows_init(fo_rows *r, const fo_energy *e, const fo_energy_loops *loop, fth_dtype dtype,
                  int64_t height, int64_t width, void *work);
/* The next plane: row `first` of the image lies at data, rows are row_bytes apart. */
void fo_rows_plane(fo_rows *r, const void *data, int64_t first, int64_t row_bytes);
/* Energy of row y (with what fo_energy_reach says beside it in memory), smoothed, into to[n]. Rows
 * are asked for in increasing order. fo_rows_make_some: of up to FO_ROWS_AT_ONCE rows, each
 * behind the other. */
void fo_rows_make(fo_rows *r, int64_t y, float *to);
void fo_rows_make_some(fo_rows *r, int64_t y, int count, float *to);
/* Whether rows are of the LoG of size 3 without smoothing; and then, instead of fo_rows_make: the
 * blurred rows above y, of y, and below. */
bool fo_rows_plain(const fo_rows *r);
void fo_rows_near(fo_rows *r, int64_t y, const float *rows[3]);
/* The values of row y as floats, to[n]. */
void fo_rows_values(const fo_rows *r, int64_t y, float *to);
/* Width rounded up to whole units. */
int64_t fo_rows_round(int64_t width);

#endif
