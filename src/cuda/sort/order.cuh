/* order.cuh - elements as keys that compare like unsigned numbers, and short lines put in order.
 *
 * The order of ops/order.h in the fewest bits: both zeros have one key, NaN comes last ascending or
 * descending, and no number has NaN's key.
 */
#ifndef FTH_CUDA_ORDER_CUH
#define FTH_CUDA_ORDER_CUH

#include "base/assert.h"
#include "cuda/walk/lines.cuh"

#ifdef __CUDACC__
/* A float given by its bits, `width` of them; the sign is the highest. */
static __device__ inline uint64_t fth__key_of_bits(uint64_t bits, int width, uint64_t inf,
                                                   bool descending)
{
    const uint64_t all = width == 64 ? ~(uint64_t)0 : ((uint64_t)1 << width) - 1;
    const uint64_t sign = (uint64_t)1 << (width - 1);
    if ((bits & ~sign) > inf) return all; /* NaN */
    if (bits == sign) bits = 0;           /* -0 */
    const uint64_t key = bits & sign ? ~bits & all : bits | sign;
    return descending ? ~key & all : key;
}

/* The key of an element: as many bits as the dtype has. */
static __device__ inline uint64_t fth__key_of(int t, const char *p, bool descending)
{
    uint64_t key, all = 255;
    switch (t) {
    case FTH_BOOL: key = *(const uint8_t *)p != 0; break;
    case FTH_U8: key = *(const uint8_t *)p; break;
    case FTH_U16: key = *(const uint16_t *)p, all = 65535; break;
    case FTH_I32: key = *(const uint32_t *)p ^ 1u << 31, all = ~0u; break;
    case FTH_I64: key = *(const uint64_t *)p ^ (uint64_t)1 << 63, all = ~(uint64_t)0; break;
    case FTH_U32: key = *(const uint32_t *)p, all = ~0u; break;
    case FTH_I16: key = *(const uint16_t *)p ^ 1u << 15, all = 65535; break;
    case FTH_I8: key = *(const uint8_t *)p ^ 1u << 7; break;
    case FTH_F16: return fth__key_of_bits(*(const uint16_t *)p, 16, 0x7c00, descending);
    case FTH_BF16: return fth__key_of_bits(*(const uint16_t *)p, 16, 0x7f80, descending);
    case FTH_F32: return fth__key_of_bits(*(const uint32_t *)p, 32, 0x7f800000, descending);
    default: return fth__key_of_bits(*(const uint64_t *)p, 64, (uint64_t)0x7ff << 52, descending);
    }
    return descending ? ~key & all : key;
}

/* Keys with their places, in shared memory. All are different because their places are. */
template <int CAP> struct fth__short {
    uint64_t key[CAP];
    uint32_t place[CAP];
};

/* The whole block puts the first `n` (a power of two, at most CAP) in order. Places break ties. */
template <int CAP> static __device__ void fth__short_sort(fth__short<CAP> &s, unsigned n)
{
    for (unsigned size = 2; size <= n; size *= 2)
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < n / 2; i += blockDim.x) {
                const unsigned a = 2 * i - (i & (stride - 1)), b = a + stride;
                const uint64_t ka = s.key[a], kb = s.key[b];
                const uint32_t pa = s.place[a], pb = s.place[b];
                const bool less = kb < ka || (kb == ka && pb < pa);
                if (less != ((a & size) == 0)) continue;
                s.key[a] = kb;
                s.key[b] = ka;
                s.place[a] = pb;
                s.place[b] = pa;
            }
        }
    __syncthreads();
}
#endif

/* Elements of a line that one block sorts in shared memory: 24 KiB of keys and places, and for the
 * shortest lines 1.5 KiB, so that many blocks are resident. */
enum { FTH__SHORT = 2048, FTH__SHORTEST = 128 };

/* The power of two that a line of n <= FTH__SHORT elements fills, and threads for it. */
static inline unsigned fth__short_size(int64_t n)
{
    unsigned size = 32;
    FTH_ASSERT(n >= 0 && n <= FTH__SHORT);
    while ((int64_t)size < n) size *= 2;
    return size;
}
static inline unsigned fth__short_threads(unsigned size)
{
    return size / 8 < 32 ? 32 : size / 8;
}

/* Lines and outputs of sort and topk: outputs have one axis instead of the sorted one. */
typedef struct fth__ordering {
    fth__walk line; /* in in[0], out[0], out[1]; bytes */
    const char *in;
    char *out, *order; /* NULL: not wanted */
    int64_t n, k;      /* elements of a line, and of a result */
    int64_t step, out_step, order_step;
    int dtype, size;
    bool descending;
} fth__ordering;

static inline void fth__ordering_init(fth__ordering *o, const fth_call *call, int dim,
                                      bool descending)
{
    const fth_desc *d = &call->node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0], *order = &call->out[1];
    *o = {};
    FTH_ASSERT(dim >= 0 && dim < d->n_axes);
    o->size = (int)fth_dtype_size(d->dtype);
    o->dtype = (int)d->dtype;
    o->descending = descending;
    o->line = fth__walk_none();
    o->in = (const char *)in->data;
    o->out = (char *)out->data;
    o->order = (char *)order->data;
    o->n = in->extent[dim];
    o->k = out->extent[dim];
    FTH_ASSERT(o->k <= o->n && o->size <= 8);
    o->step = in->stride[dim] * o->size;
    o->out_step = out->stride[dim] * o->size;
    o->order_step = order->stride[dim] * (int64_t)sizeof(int64_t);
    for (int i = 0; i < d->n_axes; i++) {
        if (i == dim) continue;
        o->in += (out->origin[i] - in->origin[i]) * in->stride[i] * o->size;
        fth__walk_add(&o->line, out->extent[i], in->stride[i] * o->size, out->stride[i] * o->size,
                      order->stride[i] * (int64_t)sizeof(int64_t));
    }
}

/* Lines of a call, from extents alone. */
static inline int64_t fth__ordering_lines(const fth_call *call, int dim)
{
    int64_t lines = 1;
    for (int i = 0; i < call->node->in[0].n_axes; i++)
        if (i != dim) lines *= call->out[0].extent[i];
    return lines;
}

#ifdef __CUDACC__
/* Element `i` of a line's result is its element `from`. */
static __device__ inline void fth__ordering_put(const fth__ordering &o, const fth__place &p,
                                                int64_t i, int64_t from)
{
    if (o.order) *(int64_t *)(o.order + p.at[2] + i * o.order_step) = from;
    if (!o.out) return;
    const char *x = o.in + p.at[0] + from * o.step;
    char *to = o.out + p.at[1] + i * o.out_step;
    switch (o.size) {
    case 1: *to = *x; break;
    case 2: *(uint16_t *)to = *(const uint16_t *)x; break;
    case 4: *(uint32_t *)to = *(const uint32_t *)x; break;
    default: *(uint64_t *)to = *(const uint64_t *)x; break;
    }
}
#endif

#endif
