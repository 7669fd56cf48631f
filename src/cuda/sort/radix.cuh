/* radix.cuh - a stable sort of keys, line by line, that gives where each came from (radix.cu).
 *
 * Keys are unsigned numbers of 2, 4 or 8 bytes, lines of n of them lie one behind the other. The
 * result depends on the keys alone.
 *
 * CUB is used neither here nor for scans and reductions, for three reasons. The planner needs the
 * bytes of workspace from extents alone, also where there is no card to ask, while CUB asks the
 * device. Sums of reals have the order of the CPU's reference, block by block, so that results have
 * the same bits on every device and for every cut of an axis; CUB fixes no such order. And the same
 * files are compiled by a C++ compiler and tested thread by thread without a card (tests/emulate).
 */
#ifndef FTH_CUDA_RADIX_CUH
#define FTH_CUDA_RADIX_CUH

#include <fathom/cuda.h>

typedef struct fth__radix {
    void *key[2]; /* the caller fills key[0] */
    uint32_t *value[2];
    void *scratch;
    int64_t lines, n; /* n < 2^32 */
    int key_bytes;    /* 2, 4 or 8 */
} fth__radix;

/* Bytes that keys of an element of so many bytes take. */
static inline int fth__radix_key(int64_t size)
{
    return size <= 2 ? 2 : (int)size;
}
/* Bytes of workspace for so many lines, and the arrays inside it. */
uint64_t fth__radix_bytes(int key_bytes, int64_t lines, int64_t n);
fth__radix fth__radix_in(void *scratch, int key_bytes, int64_t lines, int64_t n);
/* By the lowest `bits` bits. Afterwards key[k] is in order and value[k] says the position in its
 * line that each had; k is returned. */
int fth__radix_sort(const fth__radix *r, int bits, cudaStream_t stream);

#endif
