/* conv2d_units.h - convolutions of f32 by parts, on the matrix units.
 *
 * Places of the image that windows lie over are counted in one row: row after row of a frame, with
 * zeros between them, frame after frame. With rows of the same length a window element is a step
 * along that row, the same for every pixel. So a stretch of it in shared memory, as the units read
 * it, serves all elements of the window: each is the same matrix begun so many places further. A
 * frame is an image, or a strip of its columns where rows are too long. Parts and scales: split.h.
 */
#ifndef FTH_CUDA_CONV2D_UNITS_H
#define FTH_CUDA_CONV2D_UNITS_H

#include "cuda/conv2d/conv2d.cuh"
#include "cuda/product/split.h"

/* An array that is read by places. Row and column of the first place of a frame may be negative:
 * what is outside of the array is zero. */
typedef struct fth__conv_sheet {
    const float *data;
    int64_t batch, chan, row, col; /* strides in elements */
    int64_t shift;                 /* rows of the array that lie before this piece of it */
    int32_t rows;                  /* of this piece */
    int32_t channels, height, width, first_y, first_x;
    int32_t frames, columns;       /* places of a row from here on are zeros */
    int32_t strip;                 /* columns from frame to frame of an image */
    fth__div frame, pitch, strips; /* places of a frame, of a row; frames of an image */
} fth__conv_sheet;

/* Windows: elements by rows, places from element to element down and across, and in all. */
typedef struct fth__conv_reach {
    int32_t ky, kx, down, across, halo;
} fth__conv_reach;

/* out = weights over windows. */
typedef struct fth__conv_units_job {
    fth__conv_sheet from;
    fth__conv_reach reach;
    /* The weights: packed, and as they lie for elements that are summed without the units. */
    const char *packed;
    const float *w;
    int64_t w_m, w_chan, w_ky, w_kx; /* by window element as the units go through them */
    float *out;
    int64_t out_batch, out_chan, out_row, out_col;
    int32_t m, rows, cols; /* of the result */
    int32_t places;        /* up to the last one of the result */
    int32_t parts;    /* of the sum over channels: equal ones, each with a result of its own, */
    int64_t out_part; /* so many elements apart */
} fth__conv_units_job;

/* Does this operation go this way, on this device? By its whole sizes alone. */
bool fth__conv_units_takes(const fth_node *node, bool back);
uint64_t fth__conv_units_scratch(const fth_node *node, const fth__conv_view *from,
                                 const fth__conv_view *w, const fth__conv_view *to, bool back);
fth_status fth__conv_units_run(const fth_call *call, const fth__conv_view *from,
                               const fth__conv_view *w, const fth__conv_view *to, bool back);

/* Of conv2d_multiply.cu, which is compiled for cards of capability 9.0 alone. */
void fth__conv_units_multiply(cudaStream_t stream, const fth__conv_units_job *job,
                              int64_t processors);

/* ---- the gradient of the weights ---- */

/* Sums over places of result and image, by units: stretches of places that one block of threads
 * goes through in order, counted anew in every block of the batch's grid. */
static constexpr int FTH__CONV_MOST_TAPS = 64;
typedef struct fth__conv_weight_job {
    fth__conv_sheet r, v;
    int32_t shift[FTH__CONV_MOST_TAPS]; /* places to each element of the window */
    int32_t taps, halo;
    int32_t stretch, per_frame; /* places of a stretch, stretches of a frame */
    int32_t length, per_block;  /* stretches of a unit, units of a whole block */
    int32_t block_frames;       /* of a whole block */
    int64_t first_unit;
    float *out; /* unit by m by (element of the window, channel) */
    int32_t m, n;
} fth__conv_weight_job;

/* Whether so few channels leave most of a tile of 64 by 64 of them empty: no card goes this way. */
bool fth__conv_weight_is_small(int64_t m, int64_t channels, int64_t taps);
/* How sums are cut, by whole sizes alone; false: the operation does not go this way. */
bool fth__conv_weight_plan(const fth_node *node, fth__conv_weight_job *j);
/* The arrays of a call. */
void fth__conv_weight_bind(const fth_call *call, const fth__conv_view *r, const fth__conv_view *v,
                           fth__conv_weight_job *j);
/* Tiles of a unit, which are blocks of threads. */
int64_t fth__conv_weight_tiles(int64_t m, int64_t channels, int64_t taps);
/* Of conv2d_weight_multiply.cu, likewise. */
void fth__conv_weight_multiply(cudaStream_t stream, const fth__conv_weight_job *job, int64_t units);

/* Bytes of a packed block of weights: parts by eights of channels by lines, scales, any. */
static inline __host__ __device__ int fth__conv_units_block(int lines)
{
    return lines * (FTH__SPLIT_PARTS * FTH__SPLIT_CHUNK * 2 + 1) + 16;
}
/* Lines of a tile for so many channels of the result. */
static inline __host__ __device__ int fth__conv_units_lines(int64_t m)
{
    return (m + 63) / 64 % 2 == 0 ? 128 : 64;
}

#endif
