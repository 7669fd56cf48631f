/* cpu/fft/lanes.h - Fourier transforms of as many rows at a time as a vector has lanes.
 *
 * Rows lie in a buffer, lane by lane: point j is the vector of all real parts at 2 j, then that of
 * the imaginary parts. Passes of mixed radix (decimation in frequency) work in place and leave
 * frequency k at point plan->at[k]; whatever reads the buffer looks there, so nothing is moved for
 * it. Lanes never meet: a row has the same bits whichever lane it is in and whatever its
 * neighbours are. Sets with fma agree to the bit.
 *
 * Transforms are forward. The inverse is the forward one of what load and store give with real and
 * imaginary parts exchanged.
 */
#ifndef FTH_CPU_FFT_LANES_H
#define FTH_CPU_FFT_LANES_H

#include <fathom/isa.h>
#include <stdbool.h>
#include <stdint.h>

/* PASSES: 2^62 would have fewer. RADIX: the largest prime with a pass of its own. LANES: bytes of
 * the vectors of the widest set; buffers have room for it with every set. */
enum { FTH__FFT_PASSES = 40, FTH__FFT_RADIX = 31, FTH__FFT_VECTOR = 64 };
enum { FTH__FFT_ROW_TURNS = 14 * FTH__FFT_VECTOR };

typedef struct fth__fft_level {
    int32_t radix;
    int64_t length;    /* of the transforms that the pass begins: radix times those it leaves */
    const void *turns; /* [length / radix][radix - 1] roots of unity, complex; the last has none */
    const void *table; /* radix > 8: cosines and sines, [half][half] each for half = radix / 2 */
} fth__fft_level;

typedef struct fth__fft_plan {
    int64_t n; /* points */
    int n_passes;
    fth__fft_level pass[FTH__FFT_PASSES];
    const int32_t *at; /* [n]; then n itself, and the first frequency of each last butterfly */
} fth__fft_plan;

/* What a point of a row is in memory: a complex number; a real one, the imaginary part being 0; or
 * two real ones next to each other, which take the places of both parts. */
typedef enum fth__fft_point { FTH__FFT_COMPLEX, FTH__FFT_REAL, FTH__FFT_PAIR } fth__fft_point;

/* Rows in memory. Steps count complex numbers, or real ones where the points are made of them. */
typedef struct fth__fft_rows {
    void *data;
    int64_t row, step; /* to the next row, and to the next number of a row */
    int64_t rows;      /* at most as many as there are lanes */
    fth__fft_point point;
    bool swapped; /* real and imaginary parts are exchanged: an inverse */
    bool far;     /* they are in memory rather than in a cache: the next rows are fetched ahead */
} fth__fft_rows;

/* What the passes left, and how to write it. */
typedef struct fth__fft_result {
    const void *buffer;
    const int32_t *at; /* where point k is */
    int64_t points;
    double scale;
    const void *turns; /* NULL, or [point] vectors of real and of imaginary parts to multiply by */
} fth__fft_result;

typedef struct fth__fft_loops {
    int lanes;
    void (*load)(void *buffer, const fth__fft_rows *from, int64_t points);
    void (*run)(const fth__fft_plan *plan, void *buffer);
    void (*store)(const fth__fft_rows *to, const fth__fft_result *result);
    /* Load, run and store of complex columns, rows next to each other, all lanes taken. */
    void (*columns)(const fth__fft_plan *plan, void *buffer, const fth__fft_rows *from,
                    const fth__fft_rows *to, double scale);
    /* `half` points of pairs, transformed, to the half + 1 frequencies of 2 half real points, in
     * place; the last is at point `half`. `roots` has exp(-2 pi i k / (2 half)) for k <= half / 2.
     */
    void (*part)(void *buffer, const int32_t *at, int64_t half, const void *roots);
    /* The way back, of frequencies in order, the last at point `half`; doubled. Exchanged. */
    void (*join)(void *buffer, int64_t half, const void *roots);
    /* n / 2 + 1 frequencies of an odd number of real points, exchanged, to all n. */
    void (*mirror)(void *buffer, int64_t n);
    /* Rows of complex numbers that follow each other in memory: parts exchanged, products, and as
     * above, but that mirror_row exchanges nothing. */
    void (*swap)(void *to, const void *from, int64_t n);
    void (*multiply)(void *to, const void *a, const void *b, int64_t n);
    void (*part_row)(void *row, int64_t half, const void *roots);
    void (*join_row)(void *row, int64_t half, const void *roots);
    void (*mirror_row)(void *row, int64_t n);
    /* Any number of complex rows of 64 points, numbers next to each other on both sides, exchanged
     * on both or on none: by roots (FTH__FFT_ROW_TURNS bytes) that row_turns makes of the plan.
     * NULL: vectors are too short for it. */
    void (*row_turns)(const fth__fft_plan *plan, void *to);
    void (*rows_64)(const void *turns, const fth__fft_rows *from, const fth__fft_rows *to,
                    double scale);
} fth__fft_loops;
FTH_ISA_DECLARE(const fth__fft_loops, fth__fft_f32);
FTH_ISA_DECLARE(const fth__fft_loops, fth__fft_f64);

#endif
