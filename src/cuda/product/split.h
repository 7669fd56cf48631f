/* cuda/product/split.h - products of f32 on the matrix units of a card, without losing f32.
 *
 * A float is the sum of three bf16 exactly. Six of the nine products of parts are made, the small
 * ones first; the other three are below the last bit. The units add with truncation, so they sum 32
 * elements of k at most, a *chunk*. Chunks are added in f32 in order, 32 of them to a *chain*, and
 * chains in order to the result. Chunks and chains lie at fixed places of k, and what marks leave
 * out is left out by blocks of 128 lines at fixed places: however m, n, k and a batch were cut, an
 * element is the same sum. Scales and numbers that are not finite: split.cu.
 */
#ifndef FTH_CUDA_SPLIT_H
#define FTH_CUDA_SPLIT_H

#include "cuda/product/product.h"

/* A block of packed lines: parts by eights of k by lines by 8 numbers, then how each line was
 * scaled, then what was done to any of them. Eight lines of eight numbers are 128 bytes in a row,
 * as the matrix units read them. */
static constexpr int FTH__SPLIT_LINES = 128, FTH__SPLIT_CHUNK = 32, FTH__SPLIT_PARTS = 3,
                     FTH__SPLIT_PART = FTH__SPLIT_LINES * FTH__SPLIT_CHUNK * 2,
                     FTH__SPLIT_SCALES = FTH__SPLIT_PARTS * FTH__SPLIT_PART,
                     FTH__SPLIT_ANY = FTH__SPLIT_SCALES + FTH__SPLIT_LINES * 4,
                     FTH__SPLIT_BLOCK = FTH__SPLIT_ANY + 16;
/* Elements of k of a chain, which pieces of a product are cut at; its chunks. */
static constexpr int FTH__SPLIT_K = 1024, FTH__SPLIT_CHAIN = FTH__SPLIT_K / FTH__SPLIT_CHUNK;
/* What was done to a block: some lines were scaled, some are left to plain fma. */
static constexpr int FTH__SPLIT_SOME_SCALED = 1, FTH__SPLIT_SOME_PLAIN = 2;
/* How a line was scaled: two powers of two, each a bf16, whose product takes 2^by back. */
static constexpr uint32_t fth__split_scale(int by)
{
    return (uint32_t)(127 - (by >> 1)) << 23 | (uint32_t)(127 + (by >> 1) - by) << 7;
}
/* By so much no line is scaled; so a line is marked that is not finite. */
static constexpr int FTH__SPLIT_PLAIN = 127;

/* An operand, as lines along k: rows of a, columns of b. Matrices of a batch that share it have a
 * step of zero. */
typedef struct fth__split_side {
    const float *from;
    int64_t line, deep, step; /* elements from line to line, along k, to the next matrix */
    int64_t first;            /* where lines begin in their axis, less where k begins in its */
    fth__dot_side side;  /* BELOW: zeros where k is more than the line; ABOVE: where it is less */
    char *packed;        /* blocks of lines by chunks */
    int *given;          /* of a: how many tiles were given away, 0 between launches; b: NULL */
    int64_t pitch, next; /* blocks from one block of lines to the next, bytes to the next matrix */
} fth__split_side;

/* One launch: c = a b, or c += a b. */
typedef struct fth__split_job {
    fth__split_side a, b;
    float *c;
    int64_t cm, cn, step_c;
    int32_t m, n, k, batch;
    int32_t tiles;      /* of the launch: whoever queues it leaves it */
    fth__dot_side side; /* of the product */
    bool add;
} fth__split_job;

/* Chunks of k, of `chunks`, where a block of lines is not zeros by its mark. */
typedef struct fth__split_span {
    int lo, hi;
} fth__split_span;

#ifdef __CUDACC__
static __host__ __device__ inline fth__split_span fth__split_live(const fth__split_side &s,
                                                                  int block, int chunks)
{
    const int64_t at = s.first + (int64_t)block * FTH__SPLIT_LINES, end = at + FTH__SPLIT_LINES;
    int64_t lo = 0, hi = chunks;
    if (s.side == FTH__DOT_ABOVE && at > 0) lo = at / FTH__SPLIT_CHUNK;
    if (s.side == FTH__DOT_BELOW) hi = end > 0 ? (end - 1) / FTH__SPLIT_CHUNK + 1 : 0;
    return {(int)(lo < chunks ? lo : chunks), (int)(hi < chunks ? hi : chunks)};
}
#endif

/* Does this operation go this way, on this device? By its whole sizes alone. */
bool fth__cuda_split_takes(const fth_node *node, const fth__dot_shape *s);
/* Bytes of scratch before packed operands: fth__split_side.given of a, which packing it clears. */
static constexpr uint64_t FTH__SPLIT_HEAD = 128;
/* Bytes of a packed operand. */
uint64_t fth__cuda_split_bytes(int64_t lines, int64_t k);
/* Bytes of scratch for a piece with these extents, and a batch of them. */
uint64_t fth__cuda_split_scratch(const fth__dot_shape *s, int64_t m, int64_t n, int64_t k,
                                 int64_t batch);
/* Queue all of p, in as many launches as p->room asks for: the bytes above, of extents that are no
 * less in anything. */
fth_status fth__cuda_split_run(const fth_call *call, const fth__dot_shape *s,
                               const fth__cuda_product *p);

/* The same in steps, for those who keep a packed operand: both sides of p without their packed
 * blocks, then a side packed, then the product of packed sides. */
fth__split_job fth__cuda_split_job(const fth__dot_shape *s, const fth__cuda_product *p);
fth_status fth__cuda_split_pack(const fth_call *call, const fth__split_side *side, int64_t lines,
                                int64_t k, int64_t batch);
fth_status fth__cuda_split_queue(const fth_call *call, const fth__split_job *job);

/* Of split_multiply.cu, which is compiled for cards of capability 9.0 alone. How many processors
 * share the work changes no bits. */
void fth__cuda_split_multiply(cudaStream_t stream, const fth__split_job *job, int processors);

#endif
