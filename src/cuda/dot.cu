/* dot.cu - named contraction on the device: one product per tile of k, added in order; of f16 and
 * bf16 one per four tiles.
 *
 * Pieces of k end at multiples of that, so it does not matter where the planner cut it. Sums of
 * f16 and bf16 over more than these are held in the state in f32 and rounded once, at the end. The
 * other axes of the product are a batch where they lie evenly, and loops around it elsewhere.
 */
#include "cuda/device.h"
#include "cuda/product.h"
#include "cuda/split.h"

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
                      out = call->out[0].stride[at], state = call->state.stride[at];
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

typedef struct side {
    char *out;
    int64_t m, n, cm, cn, m0, n0, batch, step;
    int32_t below, size;
} side;

static __global__ void clear_side(const side p)
{
    const int64_t count = p.m * p.n * p.batch, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t n = i % p.n, m = i / p.n % p.m, z = i / p.n / p.m;
        const int64_t row = p.m0 + m, col = p.n0 + n;
        if (p.below ? row >= col : row <= col) continue;
        char *at = p.out + (z * p.step + m * p.cm + n * p.cn) * p.size;
        for (int b = 0; b < p.size; b += 2) *(uint16_t *)(at + b) = 0;
    }
}

static fth_status clear(const fth_call *call, const fth__dot_shape *s, const fth__cuda_product *p,
                        char *out)
{
    side q = {};
    q.out = out;
    q.m = p->m, q.n = p->n, q.batch = p->batch;
    q.cm = fth__tile_stride(&call->out[0], s->m.out),
    q.cn = fth__tile_stride(&call->out[0], s->n.out);
    q.m0 = p->m0, q.n0 = p->n0, q.step = p->step_c;
    q.below = s->side == FTH__DOT_BELOW;
    q.size = (int32_t)fth_dtype_size(s->dtype);
    const int64_t count = q.m * q.n * q.batch;
    if (count == 0) return FTH_OK;
    FTH_LAUNCH(clear_side, fth_cuda_blocks(count, 256), 256, fth_cuda_stream(call), q);
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
    const fth_tile *a = &call->in[0], *b = &call->in[1], *out = &call->out[0], *st = &call->state;
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

static fth_status run_batch(const fth_call *call, const fth__dot_shape *s, const batch *w)
{
    const int64_t size = fth_dtype_size(s->dtype);
    const int64_t extent = fth__tile_extent(&call->in[0], s->k.a),
                  origin = fth__tile_origin(&call->in[0], s->k.a);
    fth__cuda_product p = product_of(call, s, w);
    if (fth__cuda_split_takes(call->node, s)) {
        p.a = w->a, p.b = w->b, p.k = extent, p.add = origin > 0;
        return fth__cuda_split_run(call, &p);
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
        w.state = state ? (char *)call->state.data + l.at[3] * state : NULL;
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
    const int64_t m = fth__tile_extent(&call->out[0], s.m.out),
                  n = fth__tile_extent(&call->out[0], s.n.out),
                  k = fth__tile_extent(&call->in[0], s.k.a);
    if (fth__cuda_split_takes(call->node, &s)) return fth__cuda_split_scratch(m, n, k);
    return fth__cuda_product_aligned(&s, takes_matrix(&s)) ? fth__cuda_product_scratch(&s, m, n, k)
                                                           : 0;
}

static fth_status prepare(const fth_node *node, fth_device *device, int64_t, fth_err *)
{
    fth__dot_shape s;
    shape_of(node, &s);
    fth__cuda_product_prepare(device, &s, in_state(&s) ? s.acc : s.dtype, s.out == FTH__DOT_COLS,
                              takes_matrix(&s), batches_of(&s),
                              fth__cuda_product_aligned(&s, takes_matrix(&s)));
    return FTH_OK;
}

FTH_CUDA_KERNEL(dot) = {.op = "dot", .scratch = scratch, .run = run, .prepare = prepare};
