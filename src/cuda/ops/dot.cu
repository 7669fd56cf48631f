/* dot.cu - named contraction on the device: one product per tile of k, added in order; of f16 and
 * bf16 one per four tiles.
 *
 * Pieces of k end at multiples of that, so it does not matter where the planner cut it. Sums of
 * f16 and bf16 over more than these are held in the state in f32 and rounded once, at the end. The
 * other axes of the product are a batch where they lie evenly, and loops around it elsewhere.
 */
#include "cuda/device/device.h"
#include "cuda/product/product.h"
#include "cuda/product/split.h"

extern "C" {
#include "ops/loop.h"
}

/* Axes around the matrices that lie as one in all arrays are one; the longest is the batch. */
typedef struct around {
    int n;
    int64_t extent[FTH_MAX_AXES], a[FTH_MAX_AXES], b[FTH_MAX_AXES], out[FTH_MAX_AXES],
        state[FTH_MAX_AXES];
} around;

static around around_of(const fth_call *call, const fth__dot_shape *s)
{
    around o = {};
    for (int i = 0; i < s->n_loop; i++) {
        const int at = s->loop[i].out;
        const int64_t extent = call->out[0].extent[at],
                      a = fth__tile_stride(&call->in[0], s->loop[i].a),
                      b = fth__tile_stride(&call->in[1], s->loop[i].b),
                      out = call->out[0].stride[at], state = call->state[0].stride[at];
        const int last = o.n - 1;
        const bool joins = o.n > 0 && o.a[last] == a * extent && o.b[last] == b * extent &&
                           o.out[last] == out * extent && o.state[last] == state * extent;
        const int to = joins ? last : o.n++;
        o.extent[to] = joins ? o.extent[to] * extent : extent;
        o.a[to] = a, o.b[to] = b, o.out[to] = out, o.state[to] = state;
    }
    return o;
}

static int longest(const around *o)
{
    int best = -1;
    for (int i = 0; i < o->n; i++)
        if (o->extent[i] <= 1 << 30 && (best < 0 || o->extent[i] > o->extent[best])) best = i;
    return best;
}

/* Matrices that the whole operation makes at once, about. */
static int64_t batches_of(const fth__dot_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n_loop; i++) n *= s->loop[i].size;
    return n;
}

static void shape_of(const fth_node *node, fth__dot_shape *s)
{
    fth__dot_shape_get((const fth__dot_attr *)node->attr, &node->in[0], &node->in[1], &node->out[0],
                       -1, s);
}

/* Sums of halves over several tiles live in the state. */
static bool in_state(const fth__dot_shape *s)
{
    return s->acc != s->dtype && s->k.size > s->cut_k;
}

/* Can BLAS write where sums are held? */
static bool takes_matrix(const fth__dot_shape *s)
{
    return s->out != FTH__DOT_PACK && !(in_state(s) && fth__dot_many(s));
}

/* ---- the side of the product that nobody asked for ---- */

/* Lines and the elements along them: rows and columns, or the other way round. Of line i the
 * elements behind number first + i are cleared, or those before it. */
typedef struct side {
    char *out;
    int64_t lines, along, batch;
    int64_t line_step, step, batch_step, first;
    bool behind;
} side;

template <typename T> static __global__ void clear_side(const side p)
{
    for (int64_t i = blockIdx.x; i < p.lines * p.batch; i += gridDim.x) {
        const int64_t line = i % p.lines, diagonal = p.first + line;
        T *to = (T *)p.out + i / p.lines * p.batch_step + line * p.line_step;
        const int64_t lo = p.behind && diagonal >= 0 ? diagonal + 1 : 0,
                      hi = p.behind || diagonal > p.along ? p.along : diagonal;
        for (int64_t e = lo + threadIdx.x; e < hi; e += blockDim.x) to[e * p.step] = T{};
    }
}

static fth_status clear(const fth_call *call, const fth__dot_shape *s, const fth__cuda_product *p,
                        char *out)
{
    enum { THREADS = 256 };
    const int64_t cm = fth__tile_stride(&call->out[0], s->m.out),
                  cn = fth__tile_stride(&call->out[0], s->n.out);
    const bool rows = cn <= cm; /* are lines */
    side q = {};
    q.out = out, q.batch = p->batch, q.batch_step = p->step_c;
    q.lines = rows ? p->m : p->n, q.along = rows ? p->n : p->m;
    q.line_step = rows ? cm : cn, q.step = rows ? cn : cm;
    q.first = rows ? p->m0 - p->n0 : p->n0 - p->m0;
    q.behind = rows == (s->side == FTH__DOT_BELOW);
    const int64_t most = 1 << 20, lines = q.lines * q.batch;
    const unsigned blocks = (unsigned)(lines < most ? lines : most);
    const cudaStream_t stream = fth_cuda_stream(call);
    if (lines == 0) return FTH_OK;
    switch (fth_dtype_size(s->dtype)) {
    case 2: FTH_LAUNCH(clear_side<uint16_t>, blocks, THREADS, stream, q); break;
    case 4: FTH_LAUNCH(clear_side<uint32_t>, blocks, THREADS, stream, q); break;
    case 8: FTH_LAUNCH(clear_side<uint2>, blocks, THREADS, stream, q); break;
    default: FTH_LAUNCH(clear_side<uint4>, blocks, THREADS, stream, q); break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- one batch ---- */

typedef struct batch {
    const char *a, *b;
    char *out, *state;
    int64_t count, step_a, step_b, step_out, step_state;
} batch;

static fth__cuda_product product_of(const fth_call *call, const fth__dot_shape *s, const batch *w)
{
    const fth_tile *a = &call->in[0], *b = &call->in[1], *out = &call->out[0],
                   *st = &call->state[0];
    const bool held = in_state(s);
    const int64_t cells = fth__dot_many(s) ? 2 : 1; /* of the state, per element */
    fth__cuda_product p = {};
    p.am = fth__tile_stride(a, s->m.a), p.ak = fth__tile_stride(a, s->k.a);
    p.bk = fth__tile_stride(b, s->k.b), p.bn = fth__tile_stride(b, s->n.b);
    p.cm = held ? cells * fth__tile_stride(st, s->m.out) : fth__tile_stride(out, s->m.out);
    p.cn = held ? cells * fth__tile_stride(st, s->n.out) : fth__tile_stride(out, s->n.out);
    p.m = fth__tile_extent(out, s->m.out), p.n = fth__tile_extent(out, s->n.out);
    p.m0 = fth__tile_origin(out, s->m.out), p.n0 = fth__tile_origin(out, s->n.out);
    p.batch = w->count;
    p.batches = batches_of(s);
    p.step_a = w->step_a, p.step_b = w->step_b;
    p.step_c = held ? cells * w->step_state : w->step_out;
    p.c = held ? w->state : w->out;
    p.out = held ? s->acc : s->dtype;
    p.c_cols = s->out == FTH__DOT_COLS;
    p.c_matrix = takes_matrix(s);
    p.aligned = fth__cuda_product_aligned(s, p.c_matrix);
    p.scratch = (char *)call->scratch;
    p.sums = fth__cuda_sums_of(call, s);
    return p;
}

static fth_status finish(const fth_call *call, const fth__dot_shape *s, const batch *w,
                         const fth__cuda_product *p)
{
    fth__cuda_product out = *p;
    out.step_c = w->step_out;
    if (in_state(s)) {
        fth__cuda_plane h = {};
        h.dst = w->out, h.src = p->c;
        h.m = p->m, h.n = p->n, h.batch = p->batch;
        h.dst_m = fth__tile_stride(&call->out[0], s->m.out);
        h.dst_n = fth__tile_stride(&call->out[0], s->n.out);
        h.dst_step = w->step_out;
        h.src_m = p->cm, h.src_n = p->cn, h.src_step = p->step_c;
        FTH_TRY(fth__cuda_to_half(call, s->dtype, &h));
    }
    return s->side != FTH__DOT_FULL ? clear(call, s, &out, w->out) : FTH_OK;
}

/* Bytes of scratch where the product is made by parts. */
static uint64_t parts_scratch(const fth_call *call, const fth__dot_shape *s)
{
    int64_t batch = 1;
    for (int i = 0; i < s->n_loop; i++) batch *= call->out[0].extent[s->loop[i].out];
    return fth__cuda_split_scratch(s, fth__tile_extent(&call->out[0], s->m.out),
                                   fth__tile_extent(&call->out[0], s->n.out),
                                   fth__tile_extent(&call->in[0], s->k.a), batch);
}

static fth_status run_batch(const fth_call *call, const fth__dot_shape *s, const batch *w)
{
    const int64_t size = fth_dtype_size(s->dtype);
    const int64_t extent = fth__tile_extent(&call->in[0], s->k.a),
                  origin = fth__tile_origin(&call->in[0], s->k.a);
    fth__cuda_product p = product_of(call, s, w);
    if (fth__cuda_split_takes(call->node, s)) {
        p.a = w->a, p.b = w->b, p.k = extent, p.k0 = origin, p.add = origin > 0;
        p.room = parts_scratch(call, s);
        /* of no elements: only the first call has something to set */
        if (extent > 0 || call->first) FTH_TRY(fth__cuda_split_run(call, s, &p));
        return call->last ? finish(call, s, w, &p) : FTH_OK;
    }
    for (int64_t k0 = 0; k0 < extent || (k0 == 0 && call->first); k0 += s->cut_k) {
        p.a = w->a + k0 * p.ak * size;
        p.b = w->b + k0 * p.bk * size;
        p.k0 = origin + k0;
        p.k = extent - k0 < s->cut_k ? extent - k0 : s->cut_k;
        p.add = p.k0 > 0;
        FTH_TRY(fth__cuda_product_run(call, s, &p));
    }
    return call->last ? finish(call, s, w, &p) : FTH_OK;
}

static fth_status run(const fth_call *call)
{
    fth__dot_shape s;
    shape_of(call->node, &s);
    const int64_t size = fth_dtype_size(s.dtype), state = (int64_t)fth__dot_state(&s);
    around o = around_of(call, &s);
    const int inner = longest(&o);
    fth__loop l = {};
    for (int i = 0; i < o.n; i++)
        if (i != inner) fth__loop_add(&l, o.extent[i], o.a[i], o.b[i], o.out[i], o.state[i]);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        batch w = {};
        w.a = (const char *)call->in[0].data + l.at[0] * size;
        w.b = (const char *)call->in[1].data + l.at[1] * size;
        w.out = (char *)call->out[0].data + l.at[2] * size;
        w.state = state ? (char *)call->state[0].data + l.at[3] * state : NULL;
        w.count = inner < 0 ? 1 : o.extent[inner];
        if (inner >= 0) {
            w.step_a = o.a[inner], w.step_b = o.b[inner];
            w.step_out = o.out[inner], w.step_state = o.state[inner];
        }
        FTH_TRY(run_batch(call, &s, &w));
    }
    return FTH_OK;
}

static uint64_t scratch(const fth_call *call)
{
    fth__dot_shape s;
    shape_of(call->node, &s);
    if (fth__cuda_split_takes(call->node, &s)) return parts_scratch(call, &s);
    return fth__cuda_product_aligned(&s, takes_matrix(&s))
               ? fth__cuda_product_scratch(&s, fth__tile_extent(&call->out[0], s.m.out),
                                           fth__tile_extent(&call->out[0], s.n.out),
                                           fth__tile_extent(&call->in[0], s.k.a))
               : 0;
}

static fth_status prepare(const fth_node *node, fth_device *device, int64_t, fth_err *)
{
    fth__dot_shape s;
    shape_of(node, &s);
    if (fth__cuda_split_takes(node, &s)) return FTH_OK;
    fth__cuda_product_prepare(device, &s, in_state(&s) ? s.acc : s.dtype, s.out == FTH__DOT_COLS,
                              takes_matrix(&s), batches_of(&s),
                              fth__cuda_product_aligned(&s, takes_matrix(&s)));
    return FTH_OK;
}

FTH_CUDA_KERNEL(dot) = {.op = "dot", .scratch = scratch, .run = run, .prepare = prepare};
