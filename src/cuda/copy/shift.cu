/* shift.cu - runs that lie without a gap on both sides, but not equally far from a multiple of 16
 * bytes (an axis from its second element on).
 *
 * Whole vectors of the destination are made from two neighbouring vectors of the source; the few
 * bytes at either end of a run go one by one. Nothing outside of a run is read.
 */
#include "cuda/copy/shift.cuh"

enum {
    VECTOR = 16,    /* bytes of the widest load */
    LONG_RUN = 512, /* bytes of a run: 32 vectors, one per lane of a warp */
    EACH = 4,       /* vectors in flight per thread */
};

typedef struct shifts {
    int64_t head, vectors; /* of a run: bytes before the first vector, vectors */
    uint32_t by;           /* bytes from a multiple of 16 to where a vector's source begins */
} shifts;

/* Bytes `by` to `by + 15` of two vectors. */
static __device__ __forceinline__ uint4 middle(uint4 a, uint4 b, uint32_t by)
{
    const uint32_t bits = by % 4 * 8;
    uint32_t w[5];
    switch (by / 4) {
    case 0: w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w, w[4] = b.x; break;
    case 1: w[0] = a.y, w[1] = a.z, w[2] = a.w, w[3] = b.x, w[4] = b.y; break;
    case 2: w[0] = a.z, w[1] = a.w, w[2] = b.x, w[3] = b.y, w[4] = b.z; break;
    default: w[0] = a.w, w[1] = b.x, w[2] = b.y, w[3] = b.z, w[4] = b.w; break;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = (uint32_t)(((uint64_t)w[i + 1] << 32 | w[i]) >> bits);
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* Places: runs in both arrays, and along a run its vectors, then the elements at both ends. */
template <class T>
static __global__ void shift(const fth__places<3> __grid_constant__ w, char *dst, const char *src,
                             int64_t first, shifts s)
{
    const uint32_t begin = blockIdx.x * (FTH__SPACE_THREADS * (uint32_t)EACH) + threadIdx.x;
    uint4 a[EACH], b[EACH];
    int64_t to[EACH];
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const uint32_t i = begin + u * FTH__SPACE_THREADS;
        to[u] = -1;
        if (i >= w.count) continue;
        int64_t at[3];
        fth__place_at(w, i, at);
        const int64_t k = first + at[2];
        if (k >= s.vectors) {
            int64_t end = (k - s.vectors) * (int64_t)sizeof(T);
            end += end < s.head ? 0 : s.vectors * VECTOR;
            *(T *)(dst + at[0] + end) = *(const T *)(src + at[1] + end);
            continue;
        }
        to[u] = at[0] + s.head + k * VECTOR;
        const uint4 *from = (const uint4 *)(src + at[1] + s.head + k * VECTOR - s.by);
        a[u] = from[0];
        b[u] = from[1];
    }
#pragma unroll
    for (int u = 0; u < EACH; u++)
        if (to[u] >= 0) *(uint4 *)(dst + to[u]) = middle(a[u], b[u], s.by);
}

template <class T>
static void queue(const fth_call *call, const fth__space<3> &places, char *dst, const char *src,
                  shifts s)
{
    fth__space_each(places, [&](const fth__places<3> &w, const int64_t *base) {
        FTH_LAUNCH((shift<T>), fth__place_blocks(w.count, EACH), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, dst + base[0], src + base[1], base[2], s);
    });
}

bool fth__cuda_shift(const fth_call *call, const fth__space<2> &space, int64_t size, char *dst,
                     const char *src)
{
    const int last = space.n - 1;
    uint64_t steps = 0;
    for (int i = 0; i < last; i++) steps |= (uint64_t)space.step[i][0] | (uint64_t)space.step[i][1];
    const int64_t bytes = space.extent[last] * size;
    if (space.step[last][0] != size || space.step[last][1] != size || bytes < LONG_RUN ||
        steps % VECTOR != 0 || ((uintptr_t)dst - (uintptr_t)src) % VECTOR == 0)
        return false;
    shifts s = {};
    s.head = (int64_t)((0 - (uintptr_t)dst) % VECTOR);
    s.by = (uint32_t)(((uintptr_t)src + (uintptr_t)s.head) % VECTOR);
    if (s.head < s.by) s.head += VECTOR;              /* its source begins in the run, */
    s.vectors = (bytes - s.head + s.by) / VECTOR - 1; /* and ends there */
    fth__space<3> places;
    for (int i = 0; i < last; i++)
        places.add(space.extent[i], space.step[i][0], space.step[i][1], 0);
    places.add(s.vectors + (bytes - s.vectors * VECTOR) / size, 0, 0, 1);
    switch (size) {
    case 1: queue<uint8_t>(call, places, dst, src, s); break;
    case 2: queue<uint16_t>(call, places, dst, src, s); break;
    case 4: queue<uint32_t>(call, places, dst, src, s); break;
    default: queue<uint2>(call, places, dst, src, s); break;
    }
    return true;
}
