/* dot_reduce.c - a dot with a program and a reduction behind it; made by the planner.
 *
 * The axis that is reduced is m or n of the product, so a tile of the product is a piece of the
 * reduction, and the fused operation carries its sums from tile to tile as it does between pieces.
 */
#include "ops/dot_reduce.h"

#include "array/half.h"
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/loop.h"

#include <string.h>

/* ---- shapes ------------------------------------------------------------------------------------
 */

/* The product as the program's space orders it; in scratch it can lie in any order. */
static fth_desc space_of(const fth__program *p, fth_dtype dtype)
{
    fth_desc d = {.dtype = dtype, .n_axes = p->n_axes};
    memcpy(d.axis, p->axis, sizeof d.axis);
    memcpy(d.size, p->size, sizeof d.size);
    return d;
}

static void shape_of(const fth_node *node, fth_desc *space, fth__dot_shape *s)
{
    const fth__dot_reduce_attr *attr = node->attr;
    *space = space_of(&attr->program, node->in[0].dtype);
    fth__dot_shape_get(&attr->dot, &node->in[0], &node->in[1], space,
                       space->axis[attr->program.tail_dim], s);
}

void fth__dot_reduce_fused(const fth_node *node, fth__program_node *room)
{
    const fth__dot_reduce_attr *attr = node->attr;
    fth_node *fused = fth__program_node_clear(room);
    fused->op = &fth__op_fused;
    fused->graph = node->graph;
    fused->site = node->site;
    FTH_ASSERT(node->n_in >= 2 && node->n_in - 1 <= FTH_PROGRAM_INPUTS);
    fused->n_in = node->n_in - 1;
    fused->n_out = 1;
    fused->attr = &attr->program;
    fused->attr_bytes = sizeof attr->program;
    fused->in[0] = space_of(&attr->program, node->in[0].dtype);
    for (int i = 2; i < node->n_in; i++) {
        fused->in[i - 1] = node->in[i];
        fused->in_val[i - 1] = node->in_val[i];
    }
    fused->out[0] = node->out[0];
}

static bool same_axes(const fth_desc *a, const fth_desc *b)
{
    bool same = a->n_axes == b->n_axes;
    for (int i = 0; same && i < a->n_axes; i++) same = fth_desc_find(b, a->axis[i]) >= 0;
    return same;
}

bool fth__dot_reduce_make(const fth_node *dot, const fth__program *program,
                          const fth_desc *extra_in, int n_extra, fth__dot_reduce_attr *attr,
                          fth__program_node *room)
{
    if (((const fth__dot_attr *)dot->attr)->triangle != FTH_FULL) return false;
    if (program->tail_dim < 0 || program->n_out != 1 || program->n_in != n_extra + 1 ||
        n_extra + 2 > FTH_PROGRAM_INPUTS)
        return false;
    const fth_desc space = space_of(program, dot->in[0].dtype);
    const fth_axis_id axis = space.axis[program->tail_dim];
    const bool in_a = fth_desc_find(&dot->in[0], axis) >= 0,
               in_b = fth_desc_find(&dot->in[1], axis) >= 0;
    if (!same_axes(&space, &dot->out[0]) || in_a == in_b) return false;
    memset(attr, 0, sizeof *attr);
    memcpy(&attr->dot, dot->attr, sizeof attr->dot);
    attr->program = *program;
    fth_node *out = fth__program_node_clear(room);
    out->op = &fth__op_dot_reduce;
    out->graph = dot->graph;
    out->site = dot->site;
    out->n_in = n_extra + 2;
    out->n_out = 1;
    out->attr = attr;
    out->attr_bytes = sizeof *attr;
    for (int i = 0; i < 2; i++) {
        out->in[i] = dot->in[i];
        out->in_val[i] = dot->in_val[i];
    }
    for (int i = 0; i < n_extra; i++) out->in[i + 2] = extra_in[i];
    return fth__op_dot_reduce.infer(out, NULL) == FTH_OK;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    FTH_TRY(fth__op_fused.infer(&fused.node, err));
    node->n_out = 1;
    node->out[0] = fused.out[0];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__program *p = &((const fth__dot_reduce_attr *)node->attr)->program;
    const fth_axis_id axis = node->in[in].axis[dim];
    const int at = fth_desc_find(&node->out[0], axis);
    if (at >= 0)
        fth__rel_same(out, at);
    else if (axis == p->axis[p->tail_dim])
        fth__rel_accumulate(out);
    else
        fth__rel_whole(out);
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    fth_desc space;
    fth__dot_shape s;
    shape_of(node, &space, &s);
    const fth_axis_id axis = in < 0 ? node->out[0].axis[dim] : node->in[in].axis[dim];
    const int at = fth_desc_find(&space, axis);
    const int64_t tile = at == s.m.out ? s.tile_m : at == s.n.out ? s.tile_n : 1;
    if (in < 0) return tile;
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    return fth__max_i64(tile, fth__op_fused.grid(&fused.node, 0, at));
}

static uint64_t state(const fth_node *node, int out)
{
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    return fth__op_fused.state(&fused.node, out);
}

/* The sum at the tail is the fused operation's. */
static fth_partial as_fused(const fth_partial *p, fth__program_node *fused)
{
    fth__dot_reduce_fused(p->node, fused);
    fth_partial a = *p;
    a.node = &fused->node;
    return a;
}

static int64_t grain(const fth_node *node, int in, int dim)
{
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    const int64_t blocks = fth__op_fused.join->grain(&fused.node, 0, 0);
    /* a tile of the product may be longer than the blocks it is summed in */
    return blocks > 0 && blocks % grid(node, in, dim) != 0 ? -1 : blocks;
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    fth__program_node a, b;
    const fth_partial to = as_fused(into, &a), more = as_fused(from, &b);
    fth__op_fused.join->add(&to, &more);
}

static void join_finish(const fth_partial *p)
{
    fth__program_node fused;
    const fth_partial a = as_fused(p, &fused);
    fth__op_fused.join->finish(&a);
}

static bool in_state(const fth_node *node, int out)
{
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    return fth__op_fused.join->in_state(&fused.node, out);
}

static const fth_join join = {
    .grain = grain, .in_state = in_state, .add = join_add, .finish = join_finish};

/* Extents of this call's piece of the space. */
static void piece_of(const fth_call *call, const fth_desc *space, fth_tile *piece)
{
    for (int i = 0; i < space->n_axes; i++) {
        const int out = fth_desc_find(&call->node->out[0], space->axis[i]);
        const int a = fth_desc_find(&call->node->in[0], space->axis[i]);
        const int b = fth_desc_find(&call->node->in[1], space->axis[i]);
        const fth_tile *t = out >= 0 ? &call->out[0] : a >= 0 ? &call->in[0] : &call->in[1];
        piece->extent[i] = t->extent[out >= 0 ? out : a >= 0 ? a : b];
        piece->origin[i] = t->origin[out >= 0 ? out : a >= 0 ? a : b];
    }
}

static double flops(const fth_call *call)
{
    fth_desc space;
    fth__dot_shape s;
    fth_tile piece;
    shape_of(call->node, &space, &s);
    piece_of(call, &space, &piece);
    double n = (fth_dtype_is_complex(s.dtype) ? 8.0 : 2.0) * (double)s.k.size * fth__dot_share(&s);
    for (int i = 0; i < s.n_sum; i++) n *= (double)s.sum[i].size;
    n += (double)((const fth__dot_reduce_attr *)call->node->attr)->program.n_instr + 1.0;
    for (int i = 0; i < space.n_axes; i++) n *= (double)piece.extent[i];
    return n;
}

/* ---- tiles ---- */

typedef struct walk {
    const fth_call *call;
    const fth__dot_reduce_how *how;
    fth_desc space;
    fth__dot_shape s;
    fth__program_node fused;
    fth_tile piece;
    int64_t tile_m, tile_n;
    bool cols;                             /* m varies fastest in a tile of the product */
    uint64_t product, half, room, scratch; /* bytes of each part of the workspace */
} walk;

static int64_t largest(const walk *w, int dim, int64_t tile)
{
    return dim < 0 ? 1 : fth__min_i64(tile, w->piece.extent[dim]);
}

/* `t` cut to [lo, lo+n) of each axis of the space that its value has; element size as given. */
static fth_tile cut(const walk *w, const fth_desc *d, const fth_tile *t, uint64_t element,
                    const int64_t *lo, const int64_t *n)
{
    fth_tile r = *t;
    int64_t at = 0;
    for (int i = 0; i < d->n_axes; i++) {
        const int k = fth_desc_find(&w->space, d->axis[i]);
        FTH_ASSERT(k >= 0);
        r.extent[i] = n[k];
        r.origin[i] += lo[k];
        at += lo[k] * t->stride[i];
    }
    if (r.data) r.data = (char *)r.data + at * (int64_t)element;
    return r;
}

/* The call of the fused operation for one tile of the product. */
static void sub_call(const walk *w, const int64_t *lo, const int64_t *n, void *product,
                     fth_call *sub)
{
    const fth_call *call = w->call;
    const int tail = ((const fth__dot_reduce_attr *)call->node->attr)->program.tail_dim;
    *sub = (fth_call){.node = &w->fused.node,
                      .threads = 1,
                      .err = call->err,
                      .device = call->device,
                      .stream = call->stream,
                      .fault = call->fault};
    int64_t stride = 1;
    sub->in[0].data = product;
    for (int i = w->space.n_axes - 1; i >= 0; i--) {
        sub->in[0].extent[i] = n[i];
        sub->in[0].origin[i] = w->piece.origin[i] + lo[i];
        sub->in[0].stride[i] = stride;
        stride *= n[i];
    }
    for (int i = 2; i < call->node->n_in; i++)
        sub->in[i - 1] = cut(w, &call->node->in[i], &call->in[i],
                             (uint64_t)fth_dtype_size(call->node->in[i].dtype), lo, n);
    const fth_desc *out = &call->node->out[0];
    sub->out[0] = cut(w, out, &call->out[0], (uint64_t)fth_dtype_size(out->dtype), lo, n);
    sub->state[0] = cut(w, out, &call->state[0], fth__op_fused.state(&w->fused.node, 0), lo, n);
    sub->first = call->first && lo[tail] == 0;
    sub->last = call->last && lo[tail] + n[tail] == w->piece.extent[tail];
}

static uint64_t round64(uint64_t bytes)
{
    return (bytes + 63u) & ~(uint64_t)63u;
}

static void walk_init(walk *w, const fth_call *call, const fth__dot_reduce_how *how)
{
    *w = (walk){.call = call, .how = how};
    shape_of(call->node, &w->space, &w->s);
    fth__dot_reduce_fused(call->node, &w->fused);
    piece_of(call, &w->space, &w->piece);
    w->cols = w->s.m.out > w->s.n.out;
    const int tail = ((const fth__dot_reduce_attr *)call->node->attr)->program.tail_dim;
    w->tile_m = w->s.tile_m;
    w->tile_n = w->s.tile_n;
    if (how->tiles) how->tiles(&w->s, tail == w->s.m.out, &w->tile_m, &w->tile_n);
    FTH_ASSERT(tail == w->s.m.out || tail == w->s.n.out);
    FTH_ASSERT((tail == w->s.m.out ? w->tile_m % w->s.tile_m : w->tile_n % w->s.tile_n) == 0);
    const int64_t m = largest(w, w->s.m.out, w->tile_m), n = largest(w, w->s.n.out, w->tile_n);
    w->product = round64((uint64_t)(m * n * fth_dtype_size(w->s.acc)));
    w->half = w->s.acc != w->s.dtype ? round64((uint64_t)(m * n * fth_dtype_size(w->s.dtype))) : 0;
    w->room = how->room ? round64(how->room(call, &w->s)) : 0;
    int64_t lo[FTH_MAX_AXES] = {0}, size[FTH_MAX_AXES];
    for (int i = 0; i < w->space.n_axes; i++)
        size[i] = i == w->s.m.out ? m : i == w->s.n.out ? n : 1;
    fth_call sub;
    sub_call(w, lo, size, NULL, &sub);
    if (how->scratch) w->scratch = how->scratch(&sub);
}

uint64_t fth__dot_reduce_scratch(const fth_call *call, const fth__dot_reduce_how *how)
{
    walk w;
    walk_init(&w, call, how);
    return w.product + w.half + w.room + w.scratch;
}

static fth_status to_half(const fth_call *call, fth_dtype t, void *to, const void *from, int64_t n)
{
    (void)call;
    uint16_t *dst = to;
    const float *src = from;
    for (int64_t i = 0; i < n; i++)
        dst[i] = t == FTH_F16 ? fth__f32_to_f16(src[i]) : fth__f32_to_bf16(src[i]);
    return FTH_OK;
}

/* One tile: product, then program and reduction. a and b point at the current batch. */
static fth_status run_tile(const walk *w, const char *a, const char *b, const int64_t *lo,
                           const int64_t *n)
{
    const int mo = w->s.m.out, no = w->s.n.out;
    const int64_t m = mo < 0 ? 1 : n[mo], cols = no < 0 ? 1 : n[no];
    char *p = w->call->scratch, *half = p + w->product, *room = half + w->half;
    FTH_ASSERT((uint64_t)(m * cols * fth_dtype_size(w->s.acc)) <= w->product);
    FTH_TRY(w->how->product(w->call, &w->s, a, b, mo < 0 ? 0 : lo[mo], m, no < 0 ? 0 : lo[no], cols,
                            w->cols, p, room));
    if (w->half)
        FTH_TRY((w->how->round ? w->how->round : to_half)(w->call, w->s.dtype, half, p, m * cols));
    fth_call sub;
    sub_call(w, lo, n, w->half ? half : p, &sub);
    sub.scratch = room + w->room;
    return w->how->run(&sub);
}

/* Tiles of one batch: the reduced axis varies fastest, so its pieces come in order. */
static fth_status run_batch(const walk *w, const char *a, const char *b, int64_t *lo, int64_t *n)
{
    const int tail = ((const fth__dot_reduce_attr *)w->call->node->attr)->program.tail_dim;
    const int other = tail == w->s.m.out ? w->s.n.out : w->s.m.out;
    const int64_t tile = tail == w->s.m.out ? w->tile_m : w->tile_n;
    const int64_t other_tile = tail == w->s.m.out ? w->tile_n : w->tile_m;
    const int64_t n_other = other < 0 ? 1 : w->piece.extent[other], n_tail = w->piece.extent[tail];
    for (int64_t i = 0; i < n_other; i += other_tile)
        for (int64_t j = 0; j < (n_tail > 0 ? n_tail : 1); j += tile) {
            if (other >= 0) lo[other] = i, n[other] = fth__min_i64(other_tile, n_other - i);
            lo[tail] = j;
            n[tail] = fth__min_i64(tile, n_tail - j);
            FTH_TRY(run_tile(w, a, b, lo, n));
        }
    return FTH_OK;
}

fth_status fth__dot_reduce_run(const fth_call *call, const fth__dot_reduce_how *how)
{
    walk w;
    walk_init(&w, call, how);
    const int64_t size = fth_dtype_size(w.s.dtype);
    int64_t lo[FTH_MAX_AXES] = {0}, n[FTH_MAX_AXES];
    for (int i = 0; i < w.space.n_axes; i++) n[i] = 1;
    fth__loop l = {0};
    for (int i = 0; i < w.s.n_loop; i++)
        fth__loop_add(&l, w.piece.extent[w.s.loop[i].out],
                      fth__tile_stride(&call->in[0], w.s.loop[i].a),
                      fth__tile_stride(&call->in[1], w.s.loop[i].b), 0, 0);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        for (int i = 0; i < w.s.n_loop; i++) lo[w.s.loop[i].out] = l.index[i];
        FTH_TRY(run_batch(&w, (const char *)call->in[0].data + l.at[0] * size,
                          (const char *)call->in[1].data + l.at[1] * size, lo, n));
    }
    return FTH_OK;
}

/* ---- the obvious loop ---- */

static fth_status product(const fth_call *call, const fth__dot_shape *s, const char *a,
                          const char *b, int64_t m0, int64_t m, int64_t n0, int64_t n, bool cols,
                          void *p, void *room)
{
    (void)room;
    const int64_t size = fth_dtype_size(s->dtype), k = fth__tile_extent(&call->in[0], s->k.a);
    const int64_t sa = fth__tile_stride(&call->in[0], s->m.a) * size,
                  sb = fth__tile_stride(&call->in[1], s->n.b) * size;
    const bool wide = s->acc == FTH_F64 || s->acc == FTH_C128;
    const int parts = fth_dtype_is_complex(s->acc) ? 2 : 1;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double v[2];
            fth__dot_sum(call, s, a + (m0 + i) * sa, b + (n0 + j) * sb, 0, k, v);
            for (int q = 0; q < parts; q++) {
                const int64_t at = (cols ? j * m + i : i * n + j) * parts + q;
                if (wide)
                    ((double *)p)[at] = v[q];
                else
                    ((float *)p)[at] = (float)v[q];
            }
        }
    return FTH_OK;
}

static fth__dot_reduce_how reference(void)
{
    return (fth__dot_reduce_how){
        .product = product, .scratch = fth__op_fused.scratch, .run = fth__op_fused.run};
}

static uint64_t scratch(const fth_call *call)
{
    const fth__dot_reduce_how how = reference();
    return fth__dot_reduce_scratch(call, &how);
}

static fth_status run(const fth_call *call)
{
    const fth__dot_reduce_how how = reference();
    return fth__dot_reduce_run(call, &how);
}

const fth_op fth__op_dot_reduce = {
    .name = "dot_reduce",
    .brief = "a product mapped and summed over one of its axes, never whole",
    .infer = infer,
    .relation = relation,
    .grid = grid,
    .state = state,
    .join = &join,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};
