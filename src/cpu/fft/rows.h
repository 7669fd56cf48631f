/* cpu/fft/rows.h - transforms of rows along one axis, of any number of points.
 *
 * Which way a row goes depends on its points and its type alone, so neither strides, addresses nor
 * the number of rows can change a bit:
 *   lanes   smooth, at most FTH__FFT_LANES points: as many rows at a time as there are lanes
 *   steps   smooth, more points: n = a b as columns of a points, roots, rows of b points
 *   chirp   a prime factor beyond FTH__FFT_RADIX: a convolution (Bluestein) by steps
 * Real transforms of 2 n points are complex ones of n; odd ones are complex.
 *
 * Nothing is allocated: tables and buffers lie in memory of the caller.
 */
#ifndef FTH_CPU_FFT_ROWS_H
#define FTH_CPU_FFT_ROWS_H

#include "cpu/fft/plan.h"
#include "ops/asking.h"

#include <fathom/ops.h>

/* ASK: numbers between two questions whether to go on, about a millisecond. */
enum { FTH__FFT_LANES = 2048, FTH__FFT_ASK = 1 << 18 };

typedef struct fth__fft_steps {
    int64_t n;
    fth__fft_plan columns, rows; /* of a and b points */
    const void *turns;           /* [b in blocks of lanes][a] vectors */
    void *work, *buffer;         /* [a][b]; lanes */
} fth__fft_steps;

typedef struct fth__fft_transform {
    const fth__fft_loops *loops;
    fth_fft_kind kind;
    int64_t points, complex; /* of the transform; of the complex one */
    int64_t size;            /* bytes of a real number */
    int64_t most;            /* rows that are copied at a time */
    double scale;
    bool far; /* what is read and written lies in memory: set by who knows how much that is */
    enum { FTH__FFT_BY_LANES, FTH__FFT_BY_STEPS, FTH__FFT_BY_CHIRP } way;
    fth__fft_plan plan;       /* lanes */
    fth__fft_steps steps;     /* steps, chirp */
    const void *chirp, *wave; /* chirp: [points]; [steps.n], transformed */
    const void *roots;        /* of real points in pairs */
    const void *row_turns;    /* of rows_64; NULL: rows go by lanes */
    void *buffer;             /* lanes */
    void *row[2];             /* steps, chirp: complex numbers */
    fth__asking *ask;         /* of the running thread; NULL: another, who may not */
} fth__fft_transform;

/* Points of the passes that transform n: more than n where it has a prime factor beyond the
 * radices. */
int64_t fth__fft_steps_of(int64_t n);
/* Bytes of memory, aligned to 64, for transforms of `points` numbers of `size` bytes: tables and
 * the room that one worker needs. Of fewer rows than a line of cache has numbers it is less. */
uint64_t fth__fft_transform_bytes(fth_fft_kind kind, int64_t points, int64_t size, int64_t rows);
uint64_t fth__fft_room_bytes(fth_fft_kind kind, int64_t points, int64_t size, int64_t rows);
/* Numbers that a transform and its rows go through, as fth__fft_transform.ask counts them. */
double fth__fft_numbers(fth_fft_kind kind, int64_t points, double rows);
/* What comes out is multiplied by `scale`; `loops` are those of the type, of any set. */
void fth__fft_transform_make(fth__fft_transform *t, fth_fft_kind kind, int64_t points, int64_t size,
                             int64_t rows, double scale, const fth__fft_loops *loops,
                             fth__asking *ask, void *memory);
/* A copy of a transform gets room of its own: another worker can use it then. */
void fth__fft_transform_move(fth__fft_transform *t, void *room);
/* `rows` rows, steps in numbers of each side: complex ones, or real ones. In place is fine. */
typedef struct fth__fft_span {
    void *data;
    int64_t row, step;
} fth__fft_span;
void fth__fft_transform_run(const fth__fft_transform *t, const fth__fft_span *from,
                            const fth__fft_span *to, int64_t rows);

#endif
