/* conv2d_multiply.cu - a convolution by the matrix units of capability 9.0 (wgmma), and its way
 * back to the image.
 *
 * A block of threads makes tiles of the result, one after the other: 64 channels by 256 places or
 * 128 by 128. Seven warps read places of 32 channels, take their parts and leave them in shared
 * memory, a stretch ahead of those who multiply; one thread has packed weights copied there. Two
 * groups of four warps multiply 64 by 128 elements each. A *chunk* is one element of the window and
 * 32 channels: six products of parts, twelve instructions. Two sums take turns, so that a chunk is
 * added while the units make the next. Chunks are added in order (channels, ky, kx); where tiles
 * are few, channels are cut into parts with sums of their own.
 */
#include "cuda/conv2d/conv2d_places.cuh"
#include "cuda/product/split.cuh"
#include "cuda/product/units.cuh"

static constexpr int CHUNK = FTH__SPLIT_CHUNK, EACH = FTH__UNITS_EACH, PARTS = FTH__SPLIT_PARTS,
                     EIGHTS = CHUNK / 8;
/* Warps: two groups of four multiply, seven read, one fetches weights. Three that read took longer
 * for a stretch than the matrix units did. */
static constexpr int GROUPS = 2, THREADS = (GROUPS + 2) * FTH__UNITS_GROUP, READERS = 7;
static constexpr int HALF = CHUNK / 2, TOGETHER = 16; /* places that a warp reads at a time */
static constexpr int MOST_STAGES = 8, STRETCHES = 2, MARKS = 8; /* a reader, the last is zero */
#ifdef FTH_EMULATED
static constexpr int PROCESSORS = 3; /* so that blocks of threads have several tiles */
#endif

/* What tiles of a launch have in common. */
struct layout {
    int lines, places;      /* of a tile */
    int stretch;            /* places that are read for it */
    int block, stages;      /* bytes of packed weights, and how many blocks there is room for */
    int room;               /* bytes of a stretch */
    int down, whole, tiles; /* tiles of all channels, of a part of the sum, of all parts */
    int chunks, taps;       /* chunks of a part */
};

static layout layout_of(const fth__conv_units_job &p)
{
    layout l;
    l.lines = fth__conv_units_lines(p.m), l.places = l.lines == 64 ? 256 : 128;
    l.stretch = l.places + p.reach.halo;
    l.block = fth__conv_units_block(l.lines);
    l.room = (l.stretch * (PARTS * CHUNK * 2 + 1) + MARKS * 4 + 127) / 128 * 128;
    const int left = (227 << 10) - 1024 - STRETCHES * l.room;
    l.stages = left / l.block < MOST_STAGES ? left / l.block : MOST_STAGES;
    l.down = (p.m + l.lines - 1) / l.lines;
    l.whole = l.down * ((p.places + l.places - 1) / l.places);
    l.tiles = l.whole * p.parts;
    l.chunks = (p.from.channels + CHUNK - 1) / CHUNK / p.parts;
    l.taps = p.reach.ky * p.reach.kx;
    return l;
}

/* Tiles are counted part by part. */
static __device__ inline int part_of(const layout &l, int tile)
{
    return tile / l.whole;
}
static __device__ inline int line_of(const layout &l, int tile)
{
    return tile % l.whole % l.down * l.lines;
}
static __device__ inline int place_of(const layout &l, int tile)
{
    return tile % l.whole / l.down * l.places;
}
/* The first channel of a chunk of the tile's part. */
static __device__ inline int channel_of(const layout &l, int tile, int chunk)
{
    return (part_of(l, tile) * l.chunks + chunk) * CHUNK;
}

/* Chunks of the tiles of a block of threads, in order. */
struct walk {
    int tile, chunk, ky, kx;
    __device__ explicit walk() : tile((int)blockIdx.x), chunk(0), ky(0), kx(0)
    {
    }
    __device__ bool ends_stretch(const fth__conv_reach &r) const
    {
        return ky + 1 == r.ky && kx + 1 == r.kx;
    }
    __device__ void next(const fth__conv_reach &r, int chunks)
    {
        if (++kx < r.kx) return;
        kx = 0;
        if (++ky < r.ky) return;
        ky = 0;
        if (++chunk < chunks) return;
        chunk = 0;
        tile += (int)gridDim.x;
    }
    __device__ walk before(const fth__conv_reach &r, int chunks) const
    {
        walk w = *this;
        if (--w.kx >= 0) return w;
        w.kx = r.kx - 1;
        if (--w.ky >= 0) return w;
        w.ky = r.ky - 1;
        if (--w.chunk >= 0) return w;
        w.chunk = chunks - 1;
        w.tile -= (int)gridDim.x;
        return w;
    }
};

struct barriers {
    fth__units_barrier full[STRETCHES], empty[STRETCHES];     /* stretches */
    fth__units_barrier there[MOST_STAGES], done[MOST_STAGES]; /* weights */
};

/* ---- reading places ---- */

/* 1: a line was scaled; 2: one is not finite. */
static __device__ inline int mark_of(int scale)
{
    return scale == 0 ? 0 : scale == FTH__SPLIT_PLAIN ? 3 : 1;
}

/* Scale half of a line, if it has to be; how. Such lines are rare. */
static __device__ inline int scale_line(fth__conv_extremes e, float (&v)[HALF])
{
    fth__split_range range;
    range.finite = e.most < 0x7f800000u;
    range.most = __int_as_float((int)e.most);
    range.least = __int_as_float((int)(e.least + 1));
    const int scale = range.scale();
    const float by = scale == FTH__SPLIT_PLAIN ? 0.0f : fth__split_power(scale);
#pragma unroll
    for (int i = 0; i < HALF; i++) /* a line that is not finite has no parts */
        v[i] = scale == FTH__SPLIT_PLAIN ? 0.0f : v[i] * by;
    return scale;
}

/* The parts of 16 places, half a line a lane; how the line was scaled. */
static __device__ inline int read_lines(const fth__conv_sheet &s, uint32_t place, int first,
                                        int stretch, bool leave, char *to)
{
    const fth__conv_spot_of spot = fth__conv_find(s, place);
    float v[HALF];
    fth__conv_extremes e = {0, ~0u};
    fth__conv_read<HALF>(s, spot.at, spot.inside, first, v);
#pragma unroll
    for (int i = 0; i < HALF; i++) e.take(v[i]);
    const unsigned most = __shfl_xor_sync(~0u, e.most, TOGETHER),
                   least = __shfl_xor_sync(~0u, e.least, TOGETHER);
    e.most = most > e.most ? most : e.most;
    e.least = least < e.least ? least : e.least;
    int scale = 0;
    if (!e.is_ordinary()) scale = scale_line(e, v);
    if (!leave) return 0;
#pragma unroll
    for (int i = 0; i < HALF / 8; i++)
        fth__split_eight(to + i * stretch * 16, EIGHTS * stretch * 16, &v[i * 8], 1.0f);
    return scale;
}

/* The stretch after this one comes into the cache: a channel a lane, where a plane of it lies in
 * one row. It is only a hint. */
static __device__ inline void announce(const fth__conv_sheet &s, uint32_t place, int stretch,
                                       int channel)
{
    const uint32_t frame = fth__div_by(place, s.frame), image = fth__div_by(frame, s.strips),
                   y = fth__div_by(place - frame * s.frame.d, s.pitch);
    const int rows = stretch / (int)s.pitch.d + 2, low = (int)y + s.first_y - (int)s.shift,
              begin = low > 0 ? low : 0, end = low + rows;
    if (s.col != 1 || s.row != s.width || frame >= (uint32_t)s.frames || channel >= s.channels ||
        begin >= end)
        return;
    const int high = end < s.rows ? end : s.rows;
    if (begin >= high) return;
    const float *plane = s.data + image * s.batch + channel * s.chan;
    fth__units_announce(plane + begin * s.row, plane + high * s.row);
}

static __device__ inline void read_stretches(const fth__conv_units_job &p, const layout &l,
                                             barriers &b, char *rooms)
{
    const int reader = (int)threadIdx.x / 32 - (THREADS / 32 - READERS),
              lane = (int)threadIdx.x % 32, half = lane / TOGETHER;
    fth__units_turn at;
    for (int tile = (int)blockIdx.x; tile < l.tiles; tile += (int)gridDim.x) {
        const uint32_t first = (uint32_t)place_of(l, tile);
        for (int c = 0; c < l.chunks; c++, at.next(STRETCHES)) {
            char *room = rooms + at.at * l.room, *scales = room + l.stretch * PARTS * CHUNK * 2,
                 *to = room + half * (HALF / 8) * l.stretch * 16;
            fth__units_wait(&b.empty[at.at],
                            at.parity ^ 1u); /* the phase before the first is over */
            int mark = 0;
            for (int i = reader * TOGETHER + lane % TOGETHER; i / TOGETHER * TOGETHER < l.stretch;
                 i += READERS * TOGETHER) {
                const int scale =
                    read_lines(p.from, first + (uint32_t)i, channel_of(l, tile, c) + half * HALF,
                               l.stretch, i < l.stretch, to + i * 16);
                if (i < l.stretch && half == 0) scales[i] = (char)scale;
                mark |= mark_of(scale);
            }
            mark = (int)__reduce_or_sync(~0u, (unsigned)mark);
            int *marks = (int *)(room + l.room) - MARKS;
            if (lane == 0) marks[reader] = mark;
            if (lane == 0 && reader == 0) marks[READERS] = 0;
            fth__units_written();
            __syncwarp();
            if (lane == 0) fth__units_arrive(&b.full[at.at]);
            if (reader == 0) {
                const bool more = c + 1 < l.chunks;
                const int then = more ? tile : tile + (int)gridDim.x;
                announce(p.from, (uint32_t)place_of(l, then), l.stretch,
                         channel_of(l, then, more ? c + 1 : 0) + lane);
            }
        }
    }
}

/* One thread has the weights of all chunks copied, as there is room. */
static __device__ inline void fetch_weights(const fth__conv_units_job &p, const layout &l,
                                            barriers &b, char *blocks)
{
    fth__units_turn at;
    for (int tile = (int)blockIdx.x; tile < l.tiles; tile += (int)gridDim.x) {
        const int n = l.chunks * l.taps;
        const int first = line_of(l, tile) / l.lines * p.parts + part_of(l, tile);
        const char *from = p.packed + (int64_t)first * n * l.block;
        for (int i = 0; i < n; i++, at.next(l.stages), from += l.block) {
            fth__units_wait(&b.done[at.at], at.parity ^ 1u);
            fth__units_expect(&b.there[at.at], l.block);
            fth__units_copy(blocks + at.at * l.block, from, l.block, &b.there[at.at]);
        }
    }
}

/* ---- multiplying ---- */

/* A group of warps: where its elements lie in a tile, and of what it is made now. */
struct group {
    const fth__conv_units_job &p;
    const layout &l;
    barriers &b;
    const char *rooms, *blocks;
    int line, place; /* of the tile, that its 64 by 128 elements begin with */
    int row, column; /* of its elements, that this thread has the first of */
    float total[EACH];

    __device__ group(const fth__conv_units_job &job, const layout &lay, barriers &bars,
                     const char *stretches, const char *weights)
        : p(job), l(lay), b(bars), rooms(stretches), blocks(weights)
    {
        const int t = (int)threadIdx.x, number = t / FTH__UNITS_GROUP;
        line = l.lines == 64 ? 0 : number * FTH__UNITS_ROWS;
        place = l.lines == 64 ? number * FTH__UNITS_COLUMNS : 0;
        row = fth__units_row(t), column = fth__units_column(t);
#pragma unroll
        for (int i = 0; i < EACH; i++) total[i] = 0;
    }

    __device__ int shift(const walk &w) const
    {
        return w.ky * p.reach.down + w.kx * p.reach.across;
    }
    __device__ const char *room(int stretch) const
    {
        return rooms + stretch * l.room;
    }
    __device__ const char *block(int stage) const
    {
        return blocks + stage * l.block;
    }

    /* Ask the units for a chunk; what is in sum is theirs until they are waited for. */
    __device__ void ask(const walk &w, const char *pixels, const char *weights, float (&sum)[EACH])
    {
        const int step_a = l.lines * 16, step_b = l.stretch * 16;
        const char *a = weights + line * 16, *from = pixels + (place + shift(w)) * 16;
        fth__units_settle(sum);
        fth__units_begin();
#pragma unroll
        for (int q = 0; q < FTH__SPLIT_PRODUCTS; q++)
#pragma unroll
            for (int k = 0; k < CHUNK / FTH__UNITS_K; k++)
                fth__units_multiply(
                    sum,
                    fth__units_describe(a + (fth__split_part_a(q) * EIGHTS + 2 * k) * step_a,
                                        step_a, 128),
                    fth__units_describe(from + (fth__split_part_b(q) * EIGHTS + 2 * k) * step_b,
                                        step_b, 128),
                    q + k > 0);
        fth__units_commit();
    }

    /* What was done to any line of the chunk. */
    __device__ int marks(const char *pixels, const char *weights) const
    {
        const int4 *end = (const int4 *)(pixels + l.room), a = end[-2], c = end[-1];
        return a.x | a.y | a.z | a.w | c.x | c.y | c.z | c.w |
               *(const int *)(weights + l.block - 16);
    }

    /* The chunk of one element whose weights or pixel are not finite. */
    __device__ float plain_sum(const walk &w, int m, uint32_t at) const
    {
        const fth__conv_spot_of spot = fth__conv_find(p.from, at);
        const int first = channel_of(l, w.tile, w.chunk), left = p.from.channels - first,
                  end = left < CHUNK ? left : CHUNK;
        float sum = 0;
        if (!spot.inside || m >= p.m) return sum;
        const float *v = p.from.data + spot.at + first * p.from.chan,
                    *of = p.w + m * p.w_m + first * p.w_chan + w.ky * p.w_ky + w.kx * p.w_kx;
        for (int i = 0; i < end; i++) sum = fmaf(of[i * p.w_chan], v[i * p.from.chan], sum);
        return sum;
    }

    __device__ void add_special(const walk &w, const char *pixels, const char *weights, int mark,
                                const float (&sum)[EACH])
    {
        const signed char *of_a = (const signed char *)weights + l.lines * PARTS * CHUNK * 2 + line,
                          *of_b = (const signed char *)pixels + l.stretch * PARTS * CHUNK * 2 +
                                  place + shift(w);
        const fth__split_factors a[2] = {fth__split_factors_of(of_a[row]),
                                         fth__split_factors_of(of_a[row + 8])};
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const fth__split_factors &x = a[i / 2 % 2],
                                     y = fth__split_factors_of(of_b[column + i / 4 * 8 + i % 2]);
            total[i] += sum[i] * (x.one * y.one) * (x.two * y.two);
        }
        if (mark < 3) return;
        const int m0 = line_of(l, w.tile) + line, n0 = place_of(l, w.tile) + place + shift(w);
        /* rare: one after the other, with a search for the register */
#pragma unroll 1
        for (int i = 0; i < EACH; i++) {
            const int r = row + i / 2 % 2 * 8, c = column + i / 4 * 8 + i % 2;
            if (of_a[r] != FTH__SPLIT_PLAIN && of_b[c] != FTH__SPLIT_PLAIN) continue;
            const float v = plain_sum(w, m0 + r, (uint32_t)(n0 + c));
#pragma unroll
            for (int j = 0; j < EACH; j++) total[j] = j == i ? total[j] + v : total[j];
        }
    }

    __device__ void write(const walk &w)
    {
        const int m0 = line_of(l, w.tile) + line + row, n0 = place_of(l, w.tile) + place + column;
        const fth__conv_sheet &s = p.from;
        float *out = p.out + part_of(l, w.tile) * p.out_part + m0 * p.out_chan;
#pragma unroll
        for (int i = 0; i < EACH; i += 4) {
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const uint32_t at = (uint32_t)(n0 + i * 2 + j), frame = fth__div_by(at, s.frame),
                               rest = at - frame * s.frame.d, y = fth__div_by(rest, s.pitch),
                               x = rest - y * s.pitch.d, image = fth__div_by(frame, s.strips),
                               col = x + (frame - image * s.strips.d) * (uint32_t)s.strip;
                if (frame >= (uint32_t)s.frames || y >= (uint32_t)p.rows ||
                    x >= (uint32_t)s.strip || col >= (uint32_t)p.cols)
                    continue;
                float *to = out + image * p.out_batch + y * p.out_row + col * p.out_col;
                if (m0 < p.m) to[0] = total[i + j];
                if (m0 + 8 < p.m) to[8 * p.out_chan] = total[i + 2 + j];
            }
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) total[i] = 0;
    }

    /* A chunk that was asked for is made: add it, and let go of what it was made from. */
    __device__ void add(const walk &w, int stretch, int stage, float (&sum)[EACH])
    {
        const char *pixels = room(stretch), *weights = block(stage);
        fth__units_settle(sum);
        const int mark = marks(pixels, weights);
        if (mark)
            add_special(w, pixels, weights, mark, sum);
        else
#pragma unroll
            for (int i = 0; i < EACH; i++) total[i] += sum[i];
        __syncwarp();
        const bool ends = w.ends_stretch(p.reach);
        if (threadIdx.x % 32 == 0) {
            fth__units_arrive(&b.done[stage]);
            if (ends) fth__units_arrive(&b.empty[stretch]);
        }
        if (ends && w.chunk + 1 == l.chunks) write(w);
    }
};

/* The chunk that is asked for next, and where it is made from. */
struct sequence {
    walk now;
    fth__units_turn stretch, stage;
    __device__ void next(const fth__conv_reach &r, const layout &l)
    {
        if (now.ends_stretch(r)) stretch.next(STRETCHES);
        stage.next(l.stages);
        now.next(r, l.chunks);
    }
    /* Add the chunk before. */
    __device__ void add_last(group &g, float (&sum)[EACH]) const
    {
        const walk last = now.before(g.p.reach, g.l.chunks);
        const int from = last.ends_stretch(g.p.reach) ? STRETCHES - 1 - stretch.at : stretch.at;
        g.add(last, from, stage.at > 0 ? stage.at - 1 : g.l.stages - 1, sum);
    }
};

static __device__ inline void ask_next(group &g, sequence &s, float (&sum)[EACH])
{
    if (s.now.ky + s.now.kx == 0) fth__units_wait(&g.b.full[s.stretch.at], s.stretch.parity);
    fth__units_wait(&g.b.there[s.stage.at], s.stage.parity);
    g.ask(s.now, g.room(s.stretch.at), g.block(s.stage.at), sum);
}

/* Ask for the next chunk into `mine`, and add the one before from `other`; false: that was the
 * last one. */
static __device__ inline bool step(group &g, sequence &s, float (&mine)[EACH], float (&other)[EACH])
{
    const bool more = s.now.tile < g.l.tiles;
    if (!more) {
        fth__units_finish<0>();
        s.add_last(g, other);
        return false;
    }
    ask_next(g, s, mine);
    fth__units_finish<1>();
    s.add_last(g, other);
    s.next(g.p.reach, g.l);
    return true;
}

static __device__ inline void multiply_tiles(const fth__conv_units_job &p, const layout &l,
                                             barriers &b, const char *rooms, const char *blocks)
{
    group g(p, l, b, rooms, blocks);
    sequence s;
    float even[EACH] = {}, odd[EACH] = {};
    ask_next(g, s, even);
    s.next(p.reach, l);
    while (step(g, s, odd, even) && step(g, s, even, odd)) {
    }
}

static __global__ void __launch_bounds__(THREADS, 1)
    multiply(const fth__conv_units_job __grid_constant__ p, const layout __grid_constant__ l)
{
    __shared__ barriers b;
    FTH_SHARED(char, rooms);
    char *blocks = rooms + STRETCHES * l.room;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STRETCHES; i++) {
            fth__units_make(&b.full[i], READERS);
            fth__units_make(&b.empty[i], GROUPS * 4);
        }
        for (int i = 0; i < MOST_STAGES; i++) {
            fth__units_make(&b.there[i], 1);
            fth__units_make(&b.done[i], GROUPS * 4);
        }
        fth__units_made();
    }
    __syncthreads();
    if (threadIdx.x >= GROUPS * FTH__UNITS_GROUP) {
        fth__units_give<48>();
        if (threadIdx.x >= THREADS - READERS * 32)
            read_stretches(p, l, b, rooms);
        else if (threadIdx.x == GROUPS * FTH__UNITS_GROUP)
            fetch_weights(p, l, b, blocks);
    } else {
        fth__units_take<208>();
        multiply_tiles(p, l, b, rooms, blocks);
    }
}

void fth__conv_units_multiply(cudaStream_t stream, const fth__conv_units_job *job,
                              int64_t processors)
{
    const layout l = layout_of(*job);
#ifdef FTH_EMULATED
    processors = PROCESSORS;
#endif
    const int64_t blocks = l.tiles < processors ? l.tiles : processors;
    FTH_LAUNCH_SHARED(multiply, (unsigned)blocks, THREADS, STRETCHES * l.room + l.stages * l.block,
                      stream, *job, l);
}
