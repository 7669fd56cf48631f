/* turn.cu - transpositions through shared memory.
 *
 * Two ways. Where both sides have long runs, squares: the source is read along its run and the
 * destination written along its own, all lengths known to the compiler; elements of one and two
 * bytes go in groups of four bytes where their places allow it. Where a run is short (a table of
 * three columns), bricks: up to three axes of any length, read in the order of the source and
 * written in the order of the destination. Rows in shared memory have an odd length, so that
 * neither side meets the same bank twice.
 */
#include "cuda/copy/turn.cuh"

#include "base/assert.h"

/* LONG_RUN: bytes of a run, two sectors of memory, from which a plain copy is as good. */
enum { LANES = 32, ROWS = FTH__SPACE_THREADS / LANES, LONG_RUN = 64 };

template <int BYTES> struct bits_of;
template <> struct bits_of<1> {
    typedef uint8_t type;
};
template <> struct bits_of<2> {
    typedef uint16_t type;
};
template <> struct bits_of<4> {
    typedef uint32_t type;
};
template <> struct bits_of<8> {
    typedef uint2 type;
};
template <> struct bits_of<16> {
    typedef uint4 type;
};

/* G elements at once. */
template <class T, int G> union group {
    typename bits_of<(int)sizeof(T) * G>::type all;
    T one[G];
};

/* ---- squares --------------------------------------------------------------------------- */

typedef struct square {
    fth__places<4> blocks;      /* destination, source, first place along either run */
    int64_t from, to;           /* elements of the source's run, of the destination's run */
    int64_t from_step, to_step; /* bytes: of the destination along the source's run, and the
                                   other way around */
} square;

/* Elements along the source's run and along the destination's; the latter are the rows in shared
 * memory. */
template <class T, int G> struct lengths {
    static constexpr int from = sizeof(T) >= 8 ? LANES : G > 1 ? LANES *G : 2 * LANES;
    static constexpr int to = sizeof(T) == 16 ? LANES : sizeof(T) == 8 ? 2 * LANES : from;
};

template <class T, int G, bool ALL>
static __device__ __forceinline__ void turn_one(const square &s, T *place, char *dst,
                                                const char *src, int64_t from, int64_t to)
{
    constexpr int FROM = lengths<T, G>::from, TO = lengths<T, G>::to, PITCH = TO + 1;
    constexpr int IN = FROM / G / LANES, OUT = TO / G / LANES; /* groups of a lane in a run */
    const int lane = threadIdx.x % LANES, row = threadIdx.x / LANES;
    group<T, G> v[TO / ROWS][IN];
#pragma unroll
    for (int r = 0; r < TO / ROWS; r++)
#pragma unroll
        for (int c = 0; c < IN; c++) {
            const int y = row + r * ROWS, x = (lane + c * LANES) * G;
            if (ALL || (y < to && x < from))
                v[r][c].all =
                    *(const decltype(v[r][c].all) *)(src + y * s.to_step + x * (int)sizeof(T));
        }
#pragma unroll
    for (int r = 0; r < TO / ROWS; r++)
#pragma unroll
        for (int c = 0; c < IN; c++)
#pragma unroll
            for (int g = 0; g < G; g++)
                place[((lane + c * LANES) * G + g) * PITCH + row + r * ROWS] = v[r][c].one[g];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < FROM / ROWS; r++)
#pragma unroll
        for (int c = 0; c < OUT; c++) {
            const int y = row + r * ROWS, x = (lane + c * LANES) * G;
            group<T, G> w;
#pragma unroll
            for (int g = 0; g < G; g++) w.one[g] = place[y * PITCH + x + g];
            if (ALL || (y < from && x < to))
                *(decltype(w.all) *)(dst + y * s.from_step + x * (int)sizeof(T)) = w.all;
        }
}

template <class T, int G>
static __global__ void __launch_bounds__(FTH__SPACE_THREADS)
    turn_squares(const square __grid_constant__ s, char *dst, const char *src, int64_t first_from,
                 int64_t first_to)
{
    __shared__ T place[lengths<T, G>::from * (lengths<T, G>::to + 1)];
    int64_t at[4];
    fth__place_at(s.blocks, blockIdx.x, at);
    const int64_t from = s.from - first_from - at[2], to = s.to - first_to - at[3];
    if (from >= lengths<T, G>::from && to >= lengths<T, G>::to)
        turn_one<T, G, true>(s, place, dst + at[0], src + at[1], from, to);
    else
        turn_one<T, G, false>(s, place, dst + at[0], src + at[1], from, to);
}

/* ---- bricks ---------------------------------------------------------------------------- */

enum { BRICK = 4096 }; /* elements, and at most 16 KiB: several bricks on a multiprocessor */

typedef struct brick {
    fth__places<5> blocks;      /* destination, source, first place along each axis of the brick */
    int64_t extent[3];          /* of those axes, whole; in the order of the destination */
    uint32_t length[3];         /* of the brick along them */
    int64_t dst_step[3];        /* bytes */
    int64_t src_step[3];        /* bytes */
    uint32_t place_step[3];     /* elements of shared memory */
    int32_t order[3];           /* the axes as the source has them, fastest last */
    uint32_t count;             /* elements of the whole brick */
    fth__div read[2], write[2]; /* lengths of the two inner axes of either order, fastest first */
} brick;

template <class T> constexpr int brick_of()
{
    return sizeof(T) > 4 ? 4 * BRICK / (int)sizeof(T) : BRICK;
}

/* Where element q of a brick stands: along its fastest axis x, then y, z. */
static __device__ __forceinline__ void digits(uint32_t q, const fth__div *by, uint32_t *x,
                                              uint32_t *y, uint32_t *z)
{
    const uint32_t a = fth__div_by(q, by[0]);
    *x = q - a * by[0].d;
    *z = fth__div_by(a, by[1]);
    *y = a - *z * by[1].d;
}

/* What is left of an axis from here on, as far as a brick goes. */
static __device__ __forceinline__ uint32_t left_of(const brick &b, int i, int64_t at)
{
    const int64_t left = b.extent[i] - at;
    return left < b.length[i] ? (uint32_t)left : b.length[i];
}

template <class T>
static __global__ void __launch_bounds__(FTH__SPACE_THREADS)
    turn_bricks(const brick __grid_constant__ b, char *dst, const char *src, int64_t first0,
                int64_t first1, int64_t first2)
{
    constexpr int MOST = brick_of<T>(), U = MOST / FTH__SPACE_THREADS;
    __shared__ T place[MOST + MOST / 2];
    int64_t at[5];
    fth__place_at(b.blocks, blockIdx.x, at);
    const uint32_t left[3] = {left_of(b, 0, first0 + at[2]), left_of(b, 1, first1 + at[3]),
                              left_of(b, 2, first2 + at[4])};
    dst += at[0];
    src += at[1];
    const int i = b.order[2], j = b.order[1], k = b.order[0];
    const uint32_t left_i = i == 0   ? left[0]
                            : i == 1 ? left[1]
                                     : left[2],
                   left_j = j == 0   ? left[0]
                            : j == 1 ? left[1]
                                     : left[2],
                   left_k = k == 0   ? left[0]
                            : k == 1 ? left[1]
                                     : left[2];
    const int64_t step_i = b.src_step[i], step_j = b.src_step[j], step_k = b.src_step[k];
    const uint32_t place_i = b.place_step[i], place_j = b.place_step[j], place_k = b.place_step[k];
    T v[U];
    uint32_t to[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        const uint32_t q = threadIdx.x + u * FTH__SPACE_THREADS;
        uint32_t x, y, z;
        digits(q, b.read, &x, &y, &z);
        to[u] = UINT32_MAX;
        if (q >= b.count || x >= left_i || y >= left_j || z >= left_k) continue;
        v[u] = *(const T *)(src + x * step_i + y * step_j + z * step_k);
        to[u] = x * place_i + y * place_j + z * place_k;
    }
#pragma unroll
    for (int u = 0; u < U; u++)
        if (to[u] != UINT32_MAX) place[to[u]] = v[u];
    __syncthreads();
#pragma unroll
    for (int u = 0; u < U; u++) {
        const uint32_t q = threadIdx.x + u * FTH__SPACE_THREADS;
        uint32_t x, y, z;
        digits(q, b.write, &x, &y, &z);
        if (q >= b.count || x >= left[2] || y >= left[1] || z >= left[0]) continue;
        *(T *)(dst + x * (uint32_t)sizeof(T) + y * b.dst_step[1] + z * b.dst_step[0]) =
            place[x + y * b.place_step[1] + z * b.place_step[0]];
    }
}

/* ---- which axes ------------------------------------------------------------------------ */

typedef struct choice {
    int axis[3]; /* positions in the space, in its order; -1: none */
    int from;    /* the one the source runs along; the destination runs along the last */
} choice;

/* The axis with the smallest step of array k that is none of a and b; -1: none. */
static int nearest(const fth__space<2> &s, int k, int a, int b)
{
    int best = -1;
    for (int i = 0; i < s.n; i++) {
        const int64_t step = s.step[i][k] < 0 ? -s.step[i][k] : s.step[i][k];
        if (i == a || i == b || step == 0) continue;
        if (best < 0 || step < (s.step[best][k] < 0 ? -s.step[best][k] : s.step[best][k])) best = i;
    }
    return best;
}

static bool choose_axes(const fth__space<2> &s, int64_t size, choice *c)
{
    const int last = s.n - 1;
    if (s.n < 2 || s.step[last][0] != size || s.step[last][1] == 0) return false;
    const int from = nearest(s, 1, -1, -1);
    int third = -1, second = from;
    if (from == last) { /* short runs that both sides have, but in another order */
        if (s.step[last][1] != size || s.extent[last] * size >= LONG_RUN) return false;
        second = nearest(s, 1, last, -1);
        third = nearest(s, 0, last, -1);
        if (second == third || second < 0 || third < 0) return false;
    } else if (s.step[from][1] != size) {
        return false;
    } else if (s.extent[last] < LANES) {
        third = nearest(s, 0, last, from);
    } else if (s.extent[from] < LANES) {
        third = nearest(s, 1, last, from);
    }
    c->axis[0] = third < 0 ? -1 : third < second ? third : second;
    c->axis[1] = third < 0 || third < second ? second : third;
    c->axis[2] = last;
    c->from = from;
    return true;
}

/* ---- squares on the host --------------------------------------------------------------- */

template <class T, int G>
static void queue_squares(const fth_call *call, const fth__space<2> &s, const choice *c, char *dst,
                          const char *src)
{
    const int from = c->from, to = c->axis[2];
    square a = {};
    fth__space<4> blocks;
    a.from = s.extent[from];
    a.to = s.extent[to];
    a.from_step = s.step[from][0];
    a.to_step = s.step[to][1];
    for (int i = 0; i < s.n; i++) {
        const int64_t each = i == from ? lengths<T, G>::from : i == to ? lengths<T, G>::to : 1;
        blocks.add((s.extent[i] + each - 1) / each, each * s.step[i][0], each * s.step[i][1],
                   i == from ? each : 0, i == to ? each : 0);
    }
    fth__space_each(blocks, [&](const fth__places<4> &w, const int64_t *base) {
        a.blocks = w;
        FTH_LAUNCH((turn_squares<T, G>), w.count, FTH__SPACE_THREADS, fth_cuda_stream(call), a,
                   dst + base[0], src + base[1], base[2], base[3]);
    });
}

/* May `bytes` be moved at once, along the destination's axis and along the source's? */
static bool may_group(const fth__space<2> &s, const choice *c, int64_t size, int64_t bytes,
                      const char *dst, const char *src)
{
    const int to = c->axis[2], from = c->from;
    uint64_t all = (uintptr_t)dst | (uintptr_t)src | (uint64_t)(s.extent[to] * size) |
                   (uint64_t)(s.extent[from] * size);
    for (int i = 0; i < s.n; i++) {
        if (i != to) all |= (uint64_t)s.step[i][0];
        if (i != from) all |= (uint64_t)s.step[i][1];
    }
    return all % (uint64_t)bytes == 0;
}

static void squares(const fth_call *call, const fth__space<2> &s, const choice *c, int64_t size,
                    char *dst, const char *src)
{
    const bool four = size < 4 && may_group(s, c, size, 4, dst, src);
    switch (size) {
    case 1:
        four ? queue_squares<uint8_t, 4>(call, s, c, dst, src)
             : queue_squares<uint8_t, 1>(call, s, c, dst, src);
        break;
    case 2:
        four ? queue_squares<uint16_t, 2>(call, s, c, dst, src)
             : queue_squares<uint16_t, 1>(call, s, c, dst, src);
        break;
    case 4: queue_squares<uint32_t, 1>(call, s, c, dst, src); break;
    case 8: queue_squares<uint2, 1>(call, s, c, dst, src); break;
    default: queue_squares<uint4, 1>(call, s, c, dst, src); break;
    }
}

/* ---- bricks on the host ---------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How long a brick is along its axes: both runs first, then a third axis where they are short, then
 * whatever room is left goes to one run when the other cannot grow. */
static void choose_lengths(const fth__space<2> &s, const choice *c, int64_t most, brick *b)
{
    const int to = 2, from = c->axis[0] == c->from ? 0 : 1, third = 1 - from;
    int64_t n[3] = {1, 1, 1};
    for (int i = 0; i < 3; i++) b->extent[i] = c->axis[i] < 0 ? 1 : s.extent[c->axis[i]];
    if (c->from == c->axis[to]) {
        n[to] = b->extent[to];
        while ((n[from] + 1) * (n[from] + 1) * n[to] <= most) n[from]++;
        n[from] = least(b->extent[from], n[from]);
    } else {
        n[to] = least(b->extent[to], LANES);
        n[from] = least(b->extent[from], LANES);
    }
    n[third] = least(b->extent[third], most / (n[from] * n[to]));
    if (n[from] == b->extent[from]) n[to] = least(b->extent[to], most / (n[from] * n[third]));
    if (n[to] == b->extent[to]) n[from] = least(b->extent[from], most / (n[to] * n[third]));
    FTH_ASSERT(n[0] >= 1 && n[1] >= 1 && n[2] >= 1 && n[0] * n[1] * n[2] <= most);
    for (int i = 0; i < 3; i++) b->length[i] = (uint32_t)n[i];
}

static void sort_by_source(brick *b)
{
    int32_t *o = b->order;
    for (int i = 0; i < 3; i++) o[i] = i;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            const int64_t p = b->src_step[o[j]], q = b->src_step[o[j + 1]];
            const bool far = p == 0 || (q != 0 && (p < 0 ? -p : p) >= (q < 0 ? -q : q));
            if (far) continue;
            const int32_t t = o[j];
            o[j] = o[j + 1];
            o[j + 1] = t;
        }
}

/* Fill everything the kernel needs but the places of the bricks, which are returned as a space. */
static fth__space<5> lay_out(const fth__space<2> &s, const choice *c, brick *b)
{
    fth__space<5> blocks;
    for (int i = 0; i < 3; i++) {
        b->dst_step[i] = c->axis[i] < 0 ? 0 : s.step[c->axis[i]][0];
        b->src_step[i] = c->axis[i] < 0 ? 0 : s.step[c->axis[i]][1];
    }
    b->place_step[2] = 1;
    b->place_step[1] = b->length[2] | 1;
    b->place_step[0] = b->length[1] * b->place_step[1];
    sort_by_source(b);
    const uint32_t *n = b->length;
    b->count = n[0] * n[1] * n[2];
    b->read[0] = fth__div_make(n[b->order[2]]);
    b->read[1] = fth__div_make(n[b->order[1]]);
    b->write[0] = fth__div_make(n[2]);
    b->write[1] = fth__div_make(n[1]);
    for (int i = 0; i < s.n; i++) {
        int k = 0;
        while (k < 3 && c->axis[k] != i) k++;
        const int64_t each = k < 3 ? n[k] : 1;
        blocks.add((s.extent[i] + each - 1) / each, each * s.step[i][0], each * s.step[i][1],
                   k == 0 ? each : 0, k == 1 ? each : 0, k == 2 ? each : 0);
    }
    return blocks;
}

template <class T>
static void queue_bricks(const fth_call *call, const fth__space<2> &s, const choice *c, char *dst,
                         const char *src)
{
    brick b = {};
    choose_lengths(s, c, brick_of<T>(), &b);
    fth__space_each(lay_out(s, c, &b), [&](const fth__places<5> &w, const int64_t *base) {
        b.blocks = w;
        FTH_LAUNCH((turn_bricks<T>), w.count, FTH__SPACE_THREADS, fth_cuda_stream(call), b,
                   dst + base[0], src + base[1], base[2], base[3], base[4]);
    });
}

static void bricks(const fth_call *call, const fth__space<2> &s, const choice *c, int64_t size,
                   char *dst, const char *src)
{
    switch (size) {
    case 1: queue_bricks<uint8_t>(call, s, c, dst, src); break;
    case 2: queue_bricks<uint16_t>(call, s, c, dst, src); break;
    case 4: queue_bricks<uint32_t>(call, s, c, dst, src); break;
    case 8: queue_bricks<uint2>(call, s, c, dst, src); break;
    default: queue_bricks<uint4>(call, s, c, dst, src); break;
    }
}

bool fth__cuda_turn(const fth_call *call, const fth__space<2> &space, int64_t size, char *dst,
                    const char *src)
{
    choice c;
    if (!choose_axes(space, size, &c)) return false;
    const bool both =
        c.from != c.axis[2] && space.extent[c.from] >= LANES && space.extent[c.axis[2]] >= LANES;
    both ? squares(call, space, &c, size, dst, src) : bricks(call, space, &c, size, dst, src);
    return true;
}
