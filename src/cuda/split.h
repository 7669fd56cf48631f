/* cuda/split.h - products of f32 on the matrix units of a card, without losing f32.
 *
 * A float is the sum of three bf16 exactly: the nearest one, the nearest to what that leaves, and
 * the rest. Six of the nine products of parts are made, the small ones first; the other three are
 * below the last bit. The units add with truncation, so they sum 32 elements of k at
 * most, a *chunk*. Chunks are added in f32 in order, 32 of them to a *chain*, and chains in order
 * to the result: one chain over a long k would lose more than the plain product does. Chunks and
 * chains lie at fixed places of k: an element is the same sum however m, n and k were cut.
 *
 * A line (row of a, column of b) of a chunk whose numbers are very large or very small is scaled by
 * a power of two, which is taken back when the chunk is added, so that no part is lost. One with an
 * infinity or a NaN is left to plain fma, for its own row or column alone. Both depend on the line
 * alone, never on its neighbours.
 */
#ifndef FTH_CUDA_SPLIT_H
#define FTH_CUDA_SPLIT_H

#include "cuda/product.h"

/* A block of packed lines: parts by eights of k by lines by 8 numbers, then how each line was
 * scaled. Eight lines of eight numbers are 128 bytes in a row, as the matrix units read them. */
static constexpr int FTH__SPLIT_LINES = 128, FTH__SPLIT_CHUNK = 32, FTH__SPLIT_PARTS = 3,
                     FTH__SPLIT_PART = FTH__SPLIT_LINES * FTH__SPLIT_CHUNK * 2,
                     FTH__SPLIT_BLOCK = FTH__SPLIT_PARTS * FTH__SPLIT_PART + FTH__SPLIT_LINES;
/* Chunks of a chain: the 1024 elements of k that pieces of a product are cut at. */
static constexpr int FTH__SPLIT_CHAIN = 1024 / FTH__SPLIT_CHUNK;
/* Elements of k that are packed at a time: chunks of 128 blocks. */
static constexpr int FTH__SPLIT_K = 4096;
/* A line that is not finite. */
static constexpr int FTH__SPLIT_PLAIN = 127;

/* One launch: c = a b, or c += a b. */
typedef struct fth__split_job {
    const char *a, *b; /* packed: blocks of lines by chunks */
    const float *from_a, *from_b;
    int64_t am, ak, bk, bn, cm, cn;
    float *c;
    int32_t m, n, k;
    bool add;
} fth__split_job;

/* Does this operation go this way, on this device? By its whole sizes alone. */
bool fth__cuda_split_takes(const fth_node *node, const fth__dot_shape *s);
/* Bytes of scratch of a piece with these extents. */
uint64_t fth__cuda_split_scratch(int64_t m, int64_t n, int64_t k);
/* Queue all of k. */
fth_status fth__cuda_split_run(const fth_call *call, const fth__cuda_product *p);

/* Of split_multiply.cu, which is compiled for cards of capability 9.0 alone. */
void fth__cuda_split_multiply(cudaStream_t stream, const fth__split_job *job);

#endif
