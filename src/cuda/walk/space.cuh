/* space.cuh - from the number of a thread to places in several arrays at once.
 *
 * The device's counterpart of ops/loop.h. The host lists axes, outermost first, with how far apart
 * neighbours are in each of K arrays (elements, bytes, or whatever the kernel counts; a "place in
 * the whole value" is an array like any other). Axes that follow each other without a gap in all
 * of them are joined, and spaces of more than 2^30 places are cut, so kernels divide 32-bit numbers
 * by multiplying, and only offsets have 64 bits.
 */
#ifndef FTH_CUDA_SPACE_CUH
#define FTH_CUDA_SPACE_CUH

#include "base/assert.h"
#include "cuda/device/device.h"

/* n / d for n < 2^31 as a product: mul holds the bits of 2^(32 + shift) / d below the leading one.
 */
typedef struct fth__div {
    uint32_t d, mul, shift;
} fth__div;

static inline fth__div fth__div_make(int64_t d)
{
    uint32_t shift = 0;
    while (((int64_t)1 << shift) < d) shift++;
    FTH_ASSERT(d >= 1 && d <= (int64_t)1 << 31); /* the multiplication is exact up to there */
    const uint64_t top = (((uint64_t)1 << shift) - (uint64_t)d) << 32;
    return fth__div{(uint32_t)d, (uint32_t)(top / (uint64_t)d + 1), shift};
}

static __device__ inline uint32_t fth__div_by(uint32_t n, fth__div d)
{
    return ((uint32_t)(((uint64_t)n * d.mul) >> 32) + n) >> d.shift;
}

enum { FTH__SPACE_AXES = FTH_MAX_AXES + 2, FTH__SPACE_MOST = 1 << 30, FTH__SPACE_THREADS = 256 };

/* What a kernel gets. */
template <int K> struct fth__places {
    int32_t n;
    uint32_t count;
    fth__div extent[FTH__SPACE_AXES];
    int64_t step[FTH__SPACE_AXES][K];
};

/* Offsets of place i < count in each array. */
template <int K>
static __device__ __forceinline__ void fth__place_at(const fth__places<K> &w, uint32_t i,
                                                     int64_t *at)
{
    for (int k = 0; k < K; k++) at[k] = 0;
    for (int d = w.n - 1; d > 0; d--) {
        const uint32_t q = fth__div_by(i, w.extent[d]), r = i - q * w.extent[d].d;
        for (int k = 0; k < K; k++) at[k] += (int64_t)r * w.step[d][k];
        i = q;
    }
    for (int k = 0; k < K; k++) at[k] += (int64_t)i * w.step[0][k];
}

/* The place of this thread, and the places after it that are its own too:
 * for (FTH__EACH_PLACE(w, i)) */
#define FTH__EACH_PLACE(w, i)                                                                      \
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;                                            \
    i < (w).count;                                                                                 \
    i += gridDim.x * blockDim.x

/* What the host fills. */
template <int K> struct fth__space {
    int n = 0;
    int64_t extent[FTH__SPACE_AXES];
    int64_t step[FTH__SPACE_AXES][K];
    int64_t base[K] = {}; /* where the first place lies, counted as the steps are */

    template <class... S> void add(int64_t e, S... steps)
    {
        static_assert(sizeof...(S) == K, "one step for each array");
        FTH_ASSERT(n < FTH__SPACE_AXES && e >= 0);
        const int64_t s[K] = {(int64_t)steps...};
        extent[n] = e;
        for (int k = 0; k < K; k++) step[n][k] = s[k];
        n++;
    }
    int64_t count() const
    {
        int64_t c = 1;
        for (int i = 0; i < n; i++) c *= extent[i];
        return c;
    }
    /* Where place z lies in each array, for work that the host queues place by place. */
    void locate(int64_t z, int64_t *at) const
    {
        FTH_ASSERT(z >= 0 && z < count());
        for (int k = 0; k < K; k++) at[k] = base[k];
        for (int i = n - 1; i >= 0; z /= extent[i--])
            for (int k = 0; k < K; k++) at[k] += z % extent[i] * step[i][k];
    }
    void drop(int d)
    {
        n--;
        for (int i = d; i < n; i++) {
            extent[i] = extent[i + 1];
            for (int k = 0; k < K; k++) step[i][k] = step[i + 1][k];
        }
    }
    /* Join what follows itself without a gap; drop axes of one element. At least one axis is left.
     */
    void join()
    {
        for (int i = n - 1; i >= 0; i--)
            if (extent[i] == 1) drop(i);
        for (int i = n - 1; i > 0; i--) {
            bool same = true;
            for (int k = 0; k < K; k++) same &= step[i - 1][k] == extent[i] * step[i][k];
            if (!same) continue;
            extent[i] *= extent[i - 1];
            drop(i - 1);
        }
        if (n > 0) return;
        extent[0] = 1;
        for (int k = 0; k < K; k++) step[0][k] = 0;
        n = 1;
    }
    fth__places<K> places() const
    {
        FTH_ASSERT(n >= 1 && count() > 0 && count() <= FTH__SPACE_MOST);
        fth__places<K> w = {};
        w.n = n;
        w.count = (uint32_t)count();
        for (int i = 0; i < n; i++) {
            w.extent[i] = fth__div_make(extent[i]);
            for (int k = 0; k < K; k++) w.step[i][k] = step[i][k];
        }
        return w;
    }
};

/* launch(places, base) for pieces that have numbers of 32 bits; the space is joined already. */
template <int K, class F> static void fth__space_pieces(const fth__space<K> &s, F launch)
{
    const int64_t count = s.count();
    if (count == 0) return;
    if (count <= FTH__SPACE_MOST) {
        launch(s.places(), s.base);
        return;
    }
    int d = 0;
    while (s.extent[d] == 1) d++;
    fth__space<K> a = s, b = s;
    a.extent[d] /= 2;
    b.extent[d] -= a.extent[d];
    FTH_ASSERT(a.extent[d] > 0 && b.extent[d] > 0 && a.count() + b.count() == count);
    for (int k = 0; k < K; k++) b.base[k] += a.extent[d] * s.step[d][k];
    fth__space_pieces(a, launch);
    fth__space_pieces(b, launch);
}
template <int K, class F> static void fth__space_each(fth__space<K> s, F launch)
{
    if (s.count() == 0) return;
    s.join();
    fth__space_pieces(s, launch);
}

/* Blocks of FTH__SPACE_THREADS for a space in which each thread takes about `each` places. */
static inline unsigned fth__place_blocks(uint32_t count, int each)
{
    FTH_ASSERT(each > 0 && count > 0 && count <= FTH__SPACE_MOST);
    const uint32_t per = FTH__SPACE_THREADS * (uint32_t)each;
    return (unsigned)((count + per - 1) / per);
}

#endif
