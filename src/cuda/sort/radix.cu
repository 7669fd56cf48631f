/* radix.cu - the stable radix sort behind sort, topk and scatter_add: that of fathom/cuda_sort.h,
 * with the width of the keys chosen at run time. */
#include "cuda/sort/radix.cuh"

#include "base/assert.h"
#include <fathom/cuda_sort.h>

template <typename K> static fth__radix arrays(void *scratch, int64_t lines, int64_t n)
{
    const fth_cuda_radix<K> of = fth_cuda_radix_in<K>(scratch, lines, n);
    fth__radix r = {};
    for (int i = 0; i < 2; i++) {
        r.key[i] = of.key[i];
        r.value[i] = of.value[i];
    }
    r.scratch = scratch;
    r.lines = lines;
    r.n = n;
    r.key_bytes = sizeof(K);
    return r;
}

template <typename K> static int sort(const fth__radix *r, int bits, cudaStream_t stream)
{
    const fth_cuda_radix<K> of = fth_cuda_radix_in<K>(r->scratch, r->lines, r->n);
    return fth_cuda_radix_sort(&of, 0, bits, stream);
}

uint64_t fth__radix_bytes(int key_bytes, int64_t lines, int64_t n)
{
    return key_bytes == 8   ? fth_cuda_radix_bytes<uint64_t>(lines, n)
           : key_bytes == 4 ? fth_cuda_radix_bytes<uint32_t>(lines, n)
                            : fth_cuda_radix_bytes<uint16_t>(lines, n);
}

fth__radix fth__radix_in(void *scratch, int key_bytes, int64_t lines, int64_t n)
{
    FTH_ASSERT(scratch && lines > 0 && n > 0 && n <= UINT32_MAX);
    return key_bytes == 8   ? arrays<uint64_t>(scratch, lines, n)
           : key_bytes == 4 ? arrays<uint32_t>(scratch, lines, n)
                            : arrays<uint16_t>(scratch, lines, n);
}

int fth__radix_sort(const fth__radix *r, int bits, cudaStream_t stream)
{
    FTH_ASSERT(bits >= 1 && bits <= 8 * r->key_bytes);
    return r->key_bytes == 8   ? sort<uint64_t>(r, bits, stream)
           : r->key_bytes == 4 ? sort<uint32_t>(r, bits, stream)
                               : sort<uint16_t>(r, bits, stream);
}
