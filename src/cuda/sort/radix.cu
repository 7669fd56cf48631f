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
    r.wide = sizeof(K) == 8;
    return r;
}

template <typename K> static int sort(const fth__radix *r, int bits, cudaStream_t stream)
{
    const fth_cuda_radix<K> of = fth_cuda_radix_in<K>(r->scratch, r->lines, r->n);
    return fth_cuda_radix_sort(&of, 0, bits, stream);
}

uint64_t fth__radix_bytes(bool wide, int64_t lines, int64_t n)
{
    return wide ? fth_cuda_radix_bytes<uint64_t>(lines, n)
                : fth_cuda_radix_bytes<uint32_t>(lines, n);
}

fth__radix fth__radix_in(void *scratch, bool wide, int64_t lines, int64_t n)
{
    FTH_ASSERT(scratch && lines > 0 && n > 0 && n <= UINT32_MAX);
    return wide ? arrays<uint64_t>(scratch, lines, n) : arrays<uint32_t>(scratch, lines, n);
}

int fth__radix_sort(const fth__radix *r, int bits, cudaStream_t stream)
{
    FTH_ASSERT(bits >= 1 && bits <= (r->wide ? 64 : 32));
    return r->wide ? sort<uint64_t>(r, bits, stream) : sort<uint32_t>(r, bits, stream);
}
