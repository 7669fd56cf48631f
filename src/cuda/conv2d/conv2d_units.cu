/* conv2d_units.cu - which convolutions the matrix units make, their weights packed as they read
 * them, and the places of a call. The product itself is conv2d_multiply.cu.
 *
 * The way back to the image is a convolution too: of the result, with the window turned around and
 * the channels exchanged.
 */
#include "cuda/conv2d/conv2d_units.h"

#include "base/assert.h"
#include "cuda/product/split.cuh"

extern "C" {
#include "graph/context.h"
#include "graph/graph.h"
#include "graph/grid.h"
}

static constexpr int CHUNK = FTH__SPLIT_CHUNK;
static constexpr int64_t MOST_PLACES = 1 << 30; /* of one launch */
/* Places that windows reach over beside those of a tile: two stretches and four blocks of weights
 * fit into shared memory. */
static constexpr int64_t MOST_HALO = 208, LEAST_STRIP = 8, STRIP_GRID = 8;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- weights ---- */

typedef struct packing {
    const float *from;
    char *to;
    int64_t m_step, chan_step, ky_step, kx_step;
    int32_t m, channels, chunks, ky, kx;
} packing;

/* A block of threads packs 64 or 128 output channels of a chunk, one a thread. */
static __global__ void pack(const packing __grid_constant__ p)
{
    const int lines = (int)blockDim.x, t = (int)threadIdx.x, i = (int)blockIdx.x,
              tap = i % (p.ky * p.kx), rest = i / (p.ky * p.kx), first = rest % p.chunks * CHUNK,
              m = rest / p.chunks * lines + t,
              there = p.channels - first < CHUNK ? p.channels - first : CHUNK;
    const float *from = p.from + m * p.m_step + first * p.chan_step + tap / p.kx * p.ky_step +
                        tap % p.kx * p.kx_step;
    float v[CHUNK];
    fth__split_range range;
    for (int c = 0; c < CHUNK; c++) {
        v[c] = m < p.m && c < there ? from[c * p.chan_step] : 0.0f;
        range.take(v[c]);
    }
    const int scale = range.scale(), plain = scale == FTH__SPLIT_PLAIN;
    char *to = p.to + (int64_t)i * fth__conv_units_block(lines);
    for (int c = 0; c < CHUNK; c++) v[c] = plain ? 0.0f : v[c]; /* such a line has no parts */
    for (int e = 0; e < CHUNK / 8; e++)
        fth__split_eight(to + (e * lines + t) * 16, CHUNK * 2 * lines, &v[e * 8],
                         plain ? 0.0f : fth__split_power(scale));
    char *scales = to + FTH__SPLIT_PARTS * CHUNK * 2 * lines;
    scales[t] = (char)scale;
    const int any = __syncthreads_or(scale != 0), all = __syncthreads_or(plain);
    if (t == 0) *(int *)(scales + lines) = all ? 3 : any;
}

/* ---- places ---- */

/* Along one axis: elements of the window and how far it reaches, the place of the first one of the
 * result, its size and that of what is read. */
typedef struct along {
    int64_t taps, reach, first, size, whole;
} along;

static along along_of(const fth_node *node, bool back, bool down)
{
    const fth__conv_attr *a = (const fth__conv_attr *)node->attr;
    along o;
    o.taps = fth__conv_size(node, down ? a->ky : a->kx);
    o.reach = (o.taps - 1) * a->dilation;
    const int64_t pad = down ? a->pad_y : a->pad_x;
    const int64_t image = fth__conv_size(node, down ? a->y : a->x),
                  result = fth__conv_size(node, down ? a->out_y : a->out_x);
    o.first = back ? pad - o.reach : -pad;
    o.size = back ? image : result;
    o.whole = back ? result : image;
    return o;
}

/* Places between rows (or frames) can be fewer than windows reach where those at the end of one and
 * at the begin of the next are zeros anyway. */
static int64_t shared_places(const along *o)
{
    const int64_t before = -o->first, behind = o->size + o->reach + o->first - o->whole;
    const int64_t most = least(least(before, behind), o->reach);
    return most > 0 ? most : 0;
}

/* Columns of a strip; 0: windows reach too far. */
static int64_t strip_of(const along *x, const along *y)
{
    const int64_t pitch = x->size + x->reach - shared_places(x);
    if (y->reach * pitch + x->reach <= MOST_HALO) return x->size;
    if (y->reach == 0) return 0;
    const int64_t room = (MOST_HALO - x->reach) / y->reach - x->reach,
                  strip = room / STRIP_GRID * STRIP_GRID;
    return strip >= LEAST_STRIP && strip >= x->reach ? strip : 0;
}

static fth__conv_sheet sheet_of(const fth__conv_view *v, const along *x, const along *y)
{
    fth__conv_sheet s = {};
    const int64_t strip = strip_of(x, y), strips = (x->size + strip - 1) / strip,
                  pitch = strip + x->reach - (strips == 1 ? shared_places(x) : 0),
                  rows = y->size + y->reach - shared_places(y);
    s.data = (const float *)v->data;
    s.batch = v->s[0], s.chan = v->s[1], s.row = v->s[2], s.col = v->s[3];
    s.shift = v->origin[2], s.rows = (int32_t)v->n[2];
    s.channels = (int32_t)v->n[1];
    s.height = (int32_t)y->whole, s.width = (int32_t)x->whole;
    s.first_y = (int32_t)y->first, s.first_x = (int32_t)x->first;
    s.columns = (int32_t)pitch, s.strip = (int32_t)strip;
    s.frame = fth__div_make(rows * pitch), s.pitch = fth__div_make(pitch);
    s.strips = fth__div_make(strips);
    return s;
}

/* ---- what takes this way ---- */

static bool is_wanted(const fth_node *node)
{
    const fth_context *ctx = node->graph ? node->graph->ctx : NULL;
#ifdef FTH_EMULATED
    return !ctx || !ctx->gpu || !ctx->plain_products;
#else
    return ctx && ctx->gpu && !ctx->plain_products && ctx->gpu->info.major == 9 &&
           ctx->gpu->info.minor == 0;
#endif
}

/* The units make whole tiles of 64 channels and chunks of 32 about four times as fast as the plain
 * kernel makes its tiles of 32 channels. */
static bool pays(int64_t m, int64_t channels, int64_t taps)
{
#ifdef FTH_EMULATED
    return m >= 2 && channels >= 2 && taps > 0;
#else
    /* Short sums are more exact by fma, because the units truncate what they add: 7.7e-8 against
     * 6.7e-8 for images of 8 x 8 (H200). */
    constexpr int64_t LEAST_TERMS = 128;
    return channels * taps >= LEAST_TERMS &&
           up(m, 64) * up(channels, CHUNK) <= 4 * up(m, 32) * channels;
#endif
}

bool fth__conv_units_takes(const fth_node *node, bool back)
{
    constexpr int64_t MOST_CHUNKS = 1024; /* longer sums go in chains, by the plain kernel */
    const fth__conv_attr *a = (const fth__conv_attr *)node->attr;
    if (node->in[0].dtype != FTH_F32 || a->stride != 1 || !is_wanted(node)) return false;
    const int64_t image = fth__conv_size(node, a->chan), result = fth__conv_size(node, a->out_chan),
                  m = back ? image : result, channels = back ? result : image;
    const along x = along_of(node, back, false), y = along_of(node, back, true);
    if (m == 0 || channels == 0 || x.taps == 0 || y.taps == 0 || x.size == 0 || y.size == 0)
        return false;
    const int64_t strip = strip_of(&x, &y);
    return strip > 0 && up(channels, CHUNK) / CHUNK * x.taps * y.taps <= MOST_CHUNKS &&
           (y.size + y.reach) * (strip + x.reach) * ((x.size + strip - 1) / strip) < MOST_PLACES &&
           pays(m, channels, x.taps * y.taps);
}

/* ---- the gradient of the weights ---- */

/* Stretches of both arrays, twice, in shared memory: 384 bytes a place. */
static constexpr int64_t MOST_ROOM = 300;

/* Units of a block of images: as many as end soonest on a large card, where a block of threads
 * takes about as long to begin and to write its sums as for three stretches. */
static int64_t units_for(int64_t tiles, int64_t stretches)
{
    constexpr int64_t PROCESSORS = 132, AROUND = 3,
                      MOST = 64; /* of any card: they decide on bits */
    int64_t best = 1, least_time = INT64_MAX;
    for (int64_t n = 1; n <= least(stretches, MOST); n++) {
        const int64_t rounds = (tiles * n + PROCESSORS - 1) / PROCESSORS,
                      time = rounds * ((stretches + n - 1) / n + AROUND);
        if (time < least_time) best = n, least_time = time;
    }
    return best;
}

bool fth__conv_weight_is_small(int64_t m, int64_t channels, int64_t taps)
{
    return up(m, 64) * up(channels, 64) * taps > 4 * up(m, 32) * up(channels * taps, 128);
}

/* The units cut off what they cannot hold, so sums of positive terms come out a little too small,
 * by about 1e-7. The plain kernel is nearer where a sum is short or rows are wide. */
static bool weight_pays(int64_t m, int64_t channels, int64_t taps, int64_t terms, int64_t wide)
{
#ifdef FTH_EMULATED
    return m >= 2 && channels >= 2 && terms > 0 && wide > 0;
#else
    /* Measured on an H200 with positive numbers: sums of fewer terms, and rows wider than this, had
     * a larger error than the plain kernel's (1.29e-7 against 1.09e-7 for rows of 300). */
    constexpr int64_t LEAST_SUM = 3500, WIDEST = 128;
    return terms >= LEAST_SUM && wide <= WIDEST && !fth__conv_weight_is_small(m, channels, taps);
#endif
}

bool fth__conv_weight_plan(const fth_node *node, fth__conv_weight_job *j)
{
    const fth__conv_attr *a = (const fth__conv_attr *)node->attr;
    if (node->in[0].dtype != FTH_F32 || a->stride != 1 || !is_wanted(node)) return false;
    const along x = along_of(node, false, false), y = along_of(node, false, true);
    const int64_t m = fth__conv_size(node, a->out_chan), channels = fth__conv_size(node, a->chan),
                  images = fth__conv_size(node, a->batch), taps = x.taps * y.taps;
    if (m == 0 || channels == 0 || taps == 0 || taps > FTH__CONV_MOST_TAPS || x.size == 0 ||
        y.size == 0 || images == 0 ||
        !weight_pays(m, channels, taps, images * x.size * y.size, x.size))
        return false;
    const int64_t strip = strip_of(&x, &y);
    if (strip == 0) return false;
    fth__conv_view none = {};
    *j = fth__conv_weight_job{};
    j->v = sheet_of(&none, &x, &y);
    const int64_t pitch = j->v.pitch.d, last = (y.size - 1) * pitch + strip;
    j->halo = (int32_t)(y.reach * pitch + x.reach);
    j->stretch = (int32_t)((MOST_ROOM - j->halo) / 2 / CHUNK * CHUNK);
    if (j->stretch < CHUNK) return false;
    j->stretch = (int32_t)least(j->stretch, up(last, CHUNK));
    j->per_frame = (int32_t)((last + j->stretch - 1) / j->stretch);
    j->taps = (int32_t)taps;
    for (int64_t i = 0; i < taps; i++)
        j->shift[i] = (int32_t)((i / x.taps * pitch + i % x.taps) * a->dilation);
    const int64_t block = fth__grid_reduce(images), frames = block * j->v.strips.d,
                  blocks = (images + block - 1) / block,
                  tiles = fth__conv_weight_tiles(m, channels, taps) * blocks,
                  stretches = frames * j->per_frame, want = units_for(tiles, stretches);
    if (frames * j->v.frame.d >= MOST_PLACES || images * j->v.strips.d >= MOST_PLACES) return false;
    FTH_ASSERT(want >= 1 && j->stretch % CHUNK == 0);
    j->block_frames = (int32_t)frames;
    j->length = (int32_t)((stretches + want - 1) / want);
    j->per_block = (int32_t)((stretches + j->length - 1) / j->length);
    return true;
}

void fth__conv_weight_bind(const fth_call *call, const fth__conv_view *r, const fth__conv_view *v,
                           fth__conv_weight_job *j)
{
    along x = along_of(call->node, false, false), y = along_of(call->node, false, true);
    j->v = sheet_of(v, &x, &y);
    j->r = j->v;
    j->r.data = (const float *)r->data;
    j->r.batch = r->s[0], j->r.chan = r->s[1], j->r.row = r->s[2], j->r.col = r->s[3];
    j->r.channels = (int32_t)r->n[1];
    j->r.height = (int32_t)y.size, j->r.width = (int32_t)x.size;
    j->r.first_y = j->r.first_x = 0;
    j->r.columns = j->r.strip;
    j->r.frames = j->v.frames = (int32_t)(r->n[0] * j->v.strips.d);
    j->m = (int32_t)r->n[1], j->n = (int32_t)(v->n[1] * j->taps);
}

/* ---- a call ---- */

/* Parts of the sum over channels, by whole sizes alone: they decide on bits. A result of few tiles
 * leaves most of a large card idle. */
static int64_t parts_for(const fth_node *node, bool back)
{
    /* Fixed for every card, because they decide on bits. Four parts: the sums pass through memory
     * once for each. */
    constexpr int64_t PROCESSORS = 132, MOST = 4;
    const fth__conv_attr *a = (const fth__conv_attr *)node->attr;
    const along x = along_of(node, back, false), y = along_of(node, back, true);
    const int64_t image = fth__conv_size(node, a->chan), result = fth__conv_size(node, a->out_chan),
                  m = back ? image : result, chunks = up(back ? result : image, CHUNK) / CHUNK,
                  lines = fth__conv_units_lines(m), places = lines == 64 ? 256 : 128,
                  pixels = fth__conv_size(node, a->batch) * x.size * y.size,
                  tiles = up(m, lines) / lines * (up(pixels, places) / places);
    int64_t parts = 1;
    for (int64_t n = 2; n <= MOST && tiles * n <= PROCESSORS; n++)
        if (chunks % n == 0) parts = n;
    return parts;
}

static int64_t count_of(const fth__conv_view *v)
{
    return v->n[0] * v->n[1] * v->n[2] * v->n[3];
}

static uint64_t packed_bytes(const fth__conv_view *w, int64_t channels, bool back)
{
    const int64_t m = w->n[back ? 1 : 0], lines = fth__conv_units_lines(m),
                  blocks = up(m, lines) / lines * (up(channels, CHUNK) / CHUNK) * w->n[2] * w->n[3];
    return (uint64_t)up(blocks * fth__conv_units_block((int)lines), 256);
}

uint64_t fth__conv_units_scratch(const fth_node *node, const fth__conv_view *from,
                                 const fth__conv_view *w, const fth__conv_view *to, bool back)
{
    const int64_t parts = parts_for(node, back);
    return packed_bytes(w, from->n[1], back) +
           (parts > 1 ? (uint64_t)(parts * count_of(to)) * sizeof(float) : 0);
}

/* ---- parts of sums ---- */

typedef struct joining {
    const float *from; /* part, image, channel, row, column */
    float *to;
    int64_t step[4], part;
    fth__div chan, row, col; /* how many */
    int32_t count, parts;
} joining;

static __global__ void join_parts(const joining __grid_constant__ p)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (uint32_t)p.count) return;
    float sum = p.from[i];
    for (int k = 1; k < p.parts; k++) sum += p.from[k * p.part + i];
    const uint32_t line = fth__div_by(i, p.col), frame = fth__div_by(line, p.row),
                   image = fth__div_by(frame, p.chan);
    p.to[image * p.step[0] + (frame - image * p.chan.d) * p.step[1] +
         (line - frame * p.row.d) * p.step[2] + (i - line * p.col.d) * p.step[3]] = sum;
}

static void queue_joining(const fth_call *call, const float *from, const fth__conv_view *to,
                          int64_t parts)
{
    FTH_ASSERT(parts > 1 && count_of(to) <= INT32_MAX);
    joining p = {};
    p.from = from, p.to = (float *)to->data;
    for (int d = 0; d < 4; d++) p.step[d] = to->s[d];
    p.part = count_of(to);
    p.chan = fth__conv_div(to->n[1]), p.row = fth__conv_div(to->n[2]);
    p.col = fth__conv_div(to->n[3]);
    p.count = (int32_t)p.part, p.parts = (int32_t)parts;
    FTH_LAUNCH(join_parts, (unsigned)((p.part + 255) / 256), 256, fth_cuda_stream(call), p);
}

/* Weights by window element as the units go through them: turned around on the way back. */
static packing packing_of(const fth_call *call, const fth__conv_view *w, bool back)
{
    packing p = {};
    p.from = (const float *)w->data, p.to = (char *)call->scratch;
    p.m = (int32_t)w->n[back ? 1 : 0], p.channels = (int32_t)w->n[back ? 0 : 1];
    p.m_step = w->s[back ? 1 : 0], p.chan_step = w->s[back ? 0 : 1];
    p.ky = (int32_t)w->n[2], p.kx = (int32_t)w->n[3];
    p.ky_step = back ? -w->s[2] : w->s[2], p.kx_step = back ? -w->s[3] : w->s[3];
    if (back) p.from += (p.ky - 1) * w->s[2] + (p.kx - 1) * w->s[3];
    p.chunks = (int32_t)(up(p.channels, CHUNK) / CHUNK);
    return p;
}

static fth__conv_reach reach_of(const fth_node *node, const along *x, const along *y, int64_t pitch)
{
    const int64_t step = ((const fth__conv_attr *)node->attr)->dilation;
    return {(int32_t)y->taps, (int32_t)x->taps, (int32_t)(step * pitch), (int32_t)step,
            (int32_t)(y->reach * pitch + x->reach)};
}

fth_status fth__conv_units_run(const fth_call *call, const fth__conv_view *from,
                               const fth__conv_view *w, const fth__conv_view *to, bool back)
{
    const packing p = packing_of(call, w, back);
    const int lines = fth__conv_units_lines(p.m);
    FTH_LAUNCH(pack, (unsigned)(up(p.m, lines) / lines * p.chunks * p.ky * p.kx), (unsigned)lines,
               fth_cuda_stream(call), p);
    FTH_CUDA_LAUNCHED(call);
    along x = along_of(call->node, back, false), y = along_of(call->node, back, true);
    y.first += to->origin[2], y.size = to->n[2];
    fth__conv_units_job j = {};
    j.from = sheet_of(from, &x, &y);
    j.reach = reach_of(call->node, &x, &y, j.from.pitch.d);
    j.packed = p.to, j.w = p.from;
    j.w_m = p.m_step, j.w_chan = p.chan_step, j.w_ky = p.ky_step, j.w_kx = p.kx_step;
    fth__conv_view sums = *to;
    j.parts = (int32_t)parts_for(call->node, back);
    if (j.parts > 1) { /* dense, behind the weights */
        sums.data = (char *)call->scratch + packed_bytes(w, from->n[1], back);
        sums.s[3] = 1, sums.s[2] = to->n[3], sums.s[1] = to->n[2] * to->n[3];
        sums.s[0] = to->n[1] * sums.s[1];
        j.out_part = count_of(to);
    }
    j.out_batch = sums.s[0], j.out_chan = sums.s[1], j.out_row = sums.s[2], j.out_col = sums.s[3];
    j.m = p.m, j.rows = (int32_t)to->n[2], j.cols = (int32_t)to->n[3];
    const int64_t frame = j.from.frame.d, strips = j.from.strips.d,
                  most = MOST_PLACES / (frame * strips);
    const fth_context *ctx = call->node->graph ? call->node->graph->ctx : NULL;
    FTH_ASSERT(most > 0 && p.m == to->n[1]);
    for (int64_t b = 0; b < to->n[0]; b += most) {
        const int64_t images = least(most, to->n[0] - b);
        j.from.data = (const float *)from->data + b * from->s[0];
        j.out = (float *)sums.data + b * sums.s[0];
        j.from.frames = (int32_t)(images * strips);
        j.places = (int32_t)(((int64_t)j.from.frames - 1) * frame +
                             (int64_t)(j.rows - 1) * j.from.pitch.d + j.from.strip);
        fth__conv_units_multiply(fth_cuda_stream(call), &j,
                                 ctx && ctx->gpu ? ctx->gpu->info.multiprocessors : 1);
        FTH_CUDA_LAUNCHED(call);
    }
    if (j.parts > 1 && j.out_part > 0) queue_joining(call, (const float *)sums.data, to, j.parts);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
