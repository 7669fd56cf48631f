/* conv2d_weight_multiply.cu - the gradient of a convolution's weights by the matrix units of
 * capability 9.0 (wgmma).
 *
 * A block of threads makes the sums of one unit for 64 output channels, 64 channels and ten
 * elements of the window. Four warps read stretches of both arrays and leave their parts in shared
 * memory, one stretch ahead; two groups of four warps have five elements of the window each. A
 * *chunk* is 32 places: six products of parts are summed by the units, chunks are added in order.
 * A stretch of 64 channels with very large or very small numbers is scaled by one power of two; one
 * that has them side by side, or infinities or NaN, is summed by plain fma. Units, stretches and
 * channels of a block lie at fixed places, so this depends on nothing that a plan may cut.
 */
#include "cuda/conv2d/conv2d_places.cuh"
#include "cuda/product/split.cuh"
#include "cuda/product/units.cuh"

static constexpr int CHUNK = FTH__SPLIT_CHUNK, PARTS = FTH__SPLIT_PARTS, SIDE = 64,
                     EACH = SIDE * SIDE / FTH__UNITS_GROUP;
static constexpr int GROUPS = 2, TAPS = 5, /* of a group */
    READERS = 128, THREADS = GROUPS * FTH__UNITS_GROUP + READERS, WARPS = READERS / 32;
static constexpr int ROOMS = 2, PLACE = PARTS * SIDE * 2; /* bytes */
static constexpr int ITEM = 16;                           /* channels that are read at a time */

/* What blocks of threads of a launch have in common. */
struct layout {
    int down, across, groups; /* tiles of output channels, of channels, of ten window elements */
    int room;                 /* bytes of a stretch of both */
    fth__div of_r, of_v;      /* places */
};

using extremes = fth__conv_extremes; /* of what a warp has read */
struct shared {
    fth__units_barrier full[ROOMS], empty[ROOMS], read[1];
    extremes seen[2][2][WARPS]; /* of every second stretch; of both arrays */
};
/* At the end of a room: how both arrays were scaled. */
struct scales {
    int r, v;
};

/* What a block of threads makes. */
struct work {
    int tap, m, c, unit; /* the first of each */
    int begin, end;      /* stretches of the block of images, by frames */
    int frame;           /* that the block of images begins with */
    __device__ work(const fth__conv_weight_job &p, const layout &l)
    {
        int i = (int)blockIdx.x;
        c = i % l.across * SIDE, i /= l.across;
        m = i % l.down * SIDE, i /= l.down;
        tap = i % l.groups * GROUPS * TAPS, unit = i / l.groups;
        const int64_t at = p.first_unit + unit, block = at / p.per_block;
        frame = (int)block * p.block_frames;
        const int left = p.r.frames - frame, frames = left < p.block_frames ? left : p.block_frames,
                  all = frames * p.per_frame;
        begin = (int)(at % p.per_block) * p.length;
        end = begin + p.length < all ? begin + p.length : all;
    }
};

/* ---- reading ---- */

struct reader {
    const fth__conv_weight_job &p;
    const layout &l;
    const work &w;
    int t;

    /* Sixteen channels of a place: item i of a stretch. */
    __device__ void read(const fth__conv_sheet &s, fth__div places, int channel, int stretch, int i,
                         char *room, float by, extremes &e)
    {
        const int count = (int)places.d, part = (int)fth__div_by((uint32_t)i, places),
                  place = i - part * count, first = channel + part * ITEM,
                  frame = stretch / p.per_frame;
        const uint32_t in = (uint32_t)((stretch - frame * p.per_frame) * p.stretch + place);
        const fth__conv_spot_of spot = fth__conv_find_in(s, (uint32_t)(w.frame + frame), in);
        const bool inside = spot.inside && in < s.frame.d;
        float v[ITEM];
        fth__conv_read<ITEM>(s, spot.at, inside, first, v);
#pragma unroll
        for (int c = 0; c < ITEM; c++) e.take(v[c]);
        if (by != 1.0f) {
#pragma unroll
            for (int c = 0; c < ITEM; c++) v[c] *= by;
        }
        char *to = room + (place + part * 2 * count) * 16;
#pragma unroll
        for (int e8 = 0; e8 < ITEM / 8; e8++)
            fth__split_eight(to + e8 * count * 16, SIDE / 8 * count * 16, &v[e8 * 8], 1.0f);
    }

    __device__ extremes read_all(const fth__conv_sheet &s, fth__div places, int channel,
                                 int stretch, char *room, float by)
    {
        extremes e = {0, ~0u};
        for (int i = t; i < (int)places.d * (SIDE / ITEM); i += READERS)
            read(s, places, channel, stretch, i, room, by, e);
        return e;
    }
    __device__ extremes read_r(int stretch, char *room, float by)
    {
        return read_all(p.r, l.of_r, w.m, stretch, room, by);
    }
    __device__ extremes read_v(int stretch, char *room, float by)
    {
        return read_all(p.v, l.of_v, w.c, stretch, room + p.stretch * PLACE, by);
    }
};

/* How a stretch of one array is scaled: 0, an exponent, or FTH__SPLIT_PLAIN. */
static __device__ inline int scale_of(const extremes (&seen)[WARPS])
{
    constexpr int TARGET = 40, MOST_SCALE = 126, ENOUGH = 16;
    unsigned most = 0, least = ~0u;
    for (int i = 0; i < WARPS; i++) {
        most = seen[i].most > most ? seen[i].most : most;
        least = seen[i].least < least ? seen[i].least : least;
    }
    if (most >= 0x7f800000u) return FTH__SPLIT_PLAIN;
    if (extremes{most, least}.is_ordinary()) return 0;
    const float large = __int_as_float((int)most), small = __int_as_float((int)(least + 1));
    int exponent, low;
    (void)frexpf(large, &exponent);
    (void)frexpf(small, &low);
    const int by = TARGET - exponent < MOST_SCALE ? TARGET - exponent : MOST_SCALE;
    /* scaled up so far, even numbers below the normal ones have all of their parts */
    return by < ENOUGH && low + by <= -100 ? FTH__SPLIT_PLAIN : by;
}

static __device__ inline float factor_of(int scale)
{
    return scale == FTH__SPLIT_PLAIN ? 0.0f : fth__split_power(scale);
}

/* What a warp has seen. */
static __device__ inline void leave(extremes mine, extremes *to)
{
    const unsigned most = __reduce_max_sync(~0u, mine.most),
                   least = __reduce_min_sync(~0u, mine.least);
    if (threadIdx.x % 32 == 0) *to = {most, least};
}

static __device__ inline void read_stretches(const fth__conv_weight_job &p, const layout &l,
                                             const work &w, shared &s, char *rooms)
{
    reader r = {p, l, w, (int)threadIdx.x - (THREADS - READERS)};
    const int warp = r.t / 32;
    fth__units_turn at;
    unsigned odd = 0;
    for (int stretch = w.begin; stretch < w.end; stretch++, at.next(ROOMS), odd ^= 1u) {
        char *room = rooms + at.at * l.room;
        fth__units_wait(&s.empty[at.at], at.parity ^ 1u); /* the phase before the first is over */
        leave(r.read_r(stretch, room, 1.0f), &s.seen[odd][0][warp]);
        leave(r.read_v(stretch, room, 1.0f), &s.seen[odd][1][warp]);
        __syncwarp();
        if (r.t % 32 == 0) fth__units_arrive(&s.read[0]);
        fth__units_wait(&s.read[0], odd);
        const int of_r = scale_of(s.seen[odd][0]), of_v = scale_of(s.seen[odd][1]);
        if (of_r != 0) (void)r.read_r(stretch, room, factor_of(of_r));
        if (of_v != 0) (void)r.read_v(stretch, room, factor_of(of_v));
        if (r.t == 0) *(scales *)(room + l.room - 16) = {of_r, of_v};
        fth__units_written();
        __syncwarp();
        if (r.t % 32 == 0) fth__units_arrive(&s.full[at.at]);
    }
}

/* ---- multiplying ---- */

struct group {
    const fth__conv_weight_job &p;
    const work &w;
    int taps, first; /* of the window, that are this group's */
    int row, column; /* of the 64 by 64 elements, that this thread has the first of */
    float total[TAPS][EACH];

    __device__ group(const fth__conv_weight_job &job, const work &what) : p(job), w(what)
    {
        const int t = (int)threadIdx.x, number = t / FTH__UNITS_GROUP, left = p.taps - what.tap,
                  all = left < GROUPS * TAPS ? left : GROUPS * TAPS, half = (all + 1) / 2;
        first = w.tap + number * half;
        taps = number == 0 ? half : all - half;
        row = fth__units_row(t), column = fth__units_column(t);
#pragma unroll
        for (int j = 0; j < TAPS; j++)
#pragma unroll
            for (int i = 0; i < EACH; i++) total[j][i] = 0;
    }

    /* Ask the units for a chunk: places from `at` on. */
    __device__ void ask(const char *room, int at, int shift, float (&sum)[EACH])
    {
        const int of_r = p.stretch * 16, of_v = (p.stretch + p.halo) * 16;
        const char *a = room + at * 16, *b = room + p.stretch * PLACE + (at + shift) * 16;
        fth__units_settle(sum);
        fth__units_begin();
#pragma unroll
        for (int q = 0; q < FTH__SPLIT_PRODUCTS; q++)
#pragma unroll
            for (int k = 0; k < CHUNK / FTH__UNITS_K; k++)
                fth__units_multiply_turned(
                    sum,
                    fth__units_describe(a + fth__split_part_a(q) * 8 * of_r + k * 256, 128, of_r),
                    fth__units_describe(b + fth__split_part_b(q) * 8 * of_v + k * 256, 128, of_v),
                    q + k > 0);
        fth__units_commit();
    }

    /* A chunk of one element by fma. */
    __device__ float plain_sum(int stretch, int at, int shift, int m, int c) const
    {
        const int frame = stretch / p.per_frame,
                  begin = (stretch - frame * p.per_frame) * p.stretch + at;
        float sum = 0;
        if (m >= p.r.channels || c >= p.v.channels) return sum;
        for (uint32_t i = (uint32_t)begin; i < (uint32_t)(begin + CHUNK); i++) {
            const uint32_t to = i + (uint32_t)shift, f = (uint32_t)(w.frame + frame);
            if (i >= p.r.frame.d || to >= p.v.frame.d) continue;
            const fth__conv_spot_of x = fth__conv_find_in(p.r, f, i),
                                    y = fth__conv_find_in(p.v, f, to);
            if (x.inside && y.inside)
                sum = fmaf(p.r.data[x.at + m * p.r.chan], p.v.data[y.at + c * p.v.chan], sum);
        }
        return sum;
    }

    /* A stretch by fma. It is rare: one element after the other, with a search for the register. */
    __device__ void add_plain(int stretch)
    {
#pragma unroll 1
        for (int at = 0; at < p.stretch; at += CHUNK)
#pragma unroll 1
            for (int i = 0; i < taps * EACH; i++) {
                const int e = i % EACH;
                const float v =
                    plain_sum(stretch, at, p.shift[first + i / EACH], w.m + row + e / 2 % 2 * 8,
                              w.c + column + e / 4 * 8 + e % 2);
#pragma unroll
                for (int j = 0; j < TAPS * EACH; j++)
                    total[j / EACH][j % EACH] += j == i ? v : 0.0f;
            }
    }

    /* All chunks of a stretch, those of an element of the window in order. */
    __device__ void add_stretch(const char *room, bool scaled, float one, float two)
    {
        float sum[EACH] = {};
#pragma unroll 1
        for (int at = 0; at < p.stretch; at += CHUNK)
#pragma unroll
            for (int j = 0; j < TAPS; j++) {
                if (j >= taps) continue;
                ask(room, at, p.shift[first + j], sum);
                fth__units_finish<0>();
                fth__units_settle(sum);
                if (scaled)
#pragma unroll
                    for (int i = 0; i < EACH; i++) sum[i] = sum[i] * one * two;
#pragma unroll
                for (int i = 0; i < EACH; i++) total[j][i] += sum[i];
            }
    }

    __device__ void write()
    {
        float *out = p.out + ((int64_t)w.unit * p.m + w.m + row) * p.n + w.c + column;
#pragma unroll
        for (int j = 0; j < TAPS; j++) {
            if (j >= taps) continue;
            float *to = out + (int64_t)(first + j) * p.v.channels;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int down = i / 2 % 2 * 8, across = i / 4 * 8 + i % 2;
                if (w.m + row + down < p.m && w.c + column + across < p.v.channels)
                    to[(int64_t)down * p.n + across] = total[j][i];
            }
        }
    }
};

static __device__ inline void multiply_stretches(const fth__conv_weight_job &p, const layout &l,
                                                 const work &w, shared &s, const char *rooms)
{
    group g(p, w);
    fth__units_turn at;
    for (int stretch = w.begin; stretch < w.end; stretch++, at.next(ROOMS)) {
        const char *room = rooms + at.at * l.room;
        fth__units_wait(&s.full[at.at], at.parity);
        const scales done = *(const scales *)(room + l.room - 16);
        if (done.r == FTH__SPLIT_PLAIN || done.v == FTH__SPLIT_PLAIN) {
            g.add_plain(stretch);
        } else {
            const fth__split_factors x = fth__split_factors_of(done.r),
                                     y = fth__split_factors_of(done.v);
            g.add_stretch(room, done.r != 0 || done.v != 0, x.one * y.one, x.two * y.two);
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) fth__units_arrive(&s.empty[at.at]);
    }
    g.write();
}

static __global__ void __launch_bounds__(THREADS, 1)
    multiply(const fth__conv_weight_job __grid_constant__ p, const layout __grid_constant__ l)
{
    __shared__ shared s;
    FTH_SHARED(char, rooms);
    if (threadIdx.x == 0) {
        for (int i = 0; i < ROOMS; i++) {
            fth__units_make(&s.full[i], WARPS);
            fth__units_make(&s.empty[i], GROUPS * 4);
        }
        fth__units_make(&s.read[0], WARPS);
        fth__units_made();
    }
    __syncthreads();
    const work w(p, l);
    if (threadIdx.x >= GROUPS * FTH__UNITS_GROUP) {
        fth__units_give<72>();
        read_stretches(p, l, w, s, rooms);
    } else {
        fth__units_take<216>();
        multiply_stretches(p, l, w, s, rooms);
    }
}

static int up_to(int64_t n, int64_t size)
{
    return (int)((n + size - 1) / size);
}

int64_t fth__conv_weight_tiles(int64_t m, int64_t channels, int64_t taps)
{
    return (int64_t)up_to(m, SIDE) * up_to(channels, SIDE) * up_to(taps, GROUPS * TAPS);
}

void fth__conv_weight_multiply(cudaStream_t stream, const fth__conv_weight_job *job, int64_t units)
{
    layout l;
    l.down = up_to(job->m, SIDE), l.across = up_to(job->v.channels, SIDE);
    l.groups = up_to(job->taps, GROUPS * TAPS);
    l.room = (2 * job->stretch + job->halo) * PLACE + 128;
    l.of_r = fth__div_make(job->stretch), l.of_v = fth__div_make(job->stretch + job->halo);
    FTH_LAUNCH_SHARED(multiply, (unsigned)(l.down * l.across * l.groups * units), THREADS,
                      ROOMS * l.room, stream, *job, l);
}
