/* fused.c - a program of elementwise instructions with a reduction at its tail: the reference.
 *
 * One element at a time, one instruction at a time, every sum exactly as fused.h defines it. Made
 * by the planner from operations that have gradients of their own, so it needs none.
 */
#include "ops/fused.h"

#include "base/assert.h"
#include "base/checked.h"
#include "graph/grid.h"
#include "ops/build.h"
#include "ops/indexing.h"
#include "ops/join.h"
#include "ops/random.h"
#include "ops/vecmath.h"
#include "ops/view.h"

#include <math.h>
#include <string.h>

/* ---- the tail ------------------------------------------------------------------------- */

void fth__tail_init(fth__tail *tail, const fth__program *p)
{
    *tail = (fth__tail){.dim = p->tail_dim};
    if (p->tail_dim < 0) return;
    FTH_ASSERT(p->tail_dim < p->n_axes && p->out_reg[0] >= 0 && p->out_reg[0] < p->n_reg);
    tail->red = (fth_red)p->tail_red;
    tail->from = (fth_dtype)p->reg_dtype[p->out_reg[0]];
    if (p->inner_red > 0) {
        tail->inner = p->size[p->n_axes];
        tail->inner_red = (fth_red)(p->inner_red - 1);
        tail->inner_from = tail->from;
        tail->inner_kind = fth__kind_of(tail->from);
        tail->from = fth__reduce_dtype(tail->inner_red, tail->inner_from);
        FTH_ASSERT(tail->from != FTH_DTYPE_COUNT && tail->inner <= FTH__TAIL_SHORT);
    }
    tail->to = fth__reduce_dtype(tail->red, tail->from);
    tail->kind = fth__kind_of(tail->from);
    tail->n = p->size[p->tail_dim];
    tail->wide = tail->kind == FTH__KIND_COMPLEX ? sizeof(fth_c128) : sizeof(double);
    const bool sum = tail->red == FTH_RED_SUM || tail->red == FTH_RED_PROD;
    const bool brief = tail->n <= FTH__TAIL_SHORT;
    tail->exact = tail->kind == FTH__KIND_INT;
    tail->block = fth__grid_reduce(tail->n);
    tail->super = fth__grid_superblock(tail->n, tail->block);
    FTH_ASSERT(tail->super % tail->block == 0);
    tail->lanes = !tail->exact && !brief && p->tail_dim == p->n_axes - 1 ? FTH__TAIL_LANES : 1;
    tail->total_in_out = tail->exact || !sum || tail->to == FTH_F64 || tail->to == FTH_C128;
    tail->has_super = !tail->exact && sum && tail->super > tail->block;
    if (!brief) tail->state = tail->wide * (uint64_t)(!tail->total_in_out + tail->has_super);
}

static double join_real(fth_red red, double a, double b)
{
    if (red == FTH_RED_SUM) return a + b;
    if (red == FTH_RED_PROD) return a * b;
    /* the first NaN stays; of equal numbers the first stays */
    const bool better = red == FTH_RED_MIN ? b < a : b > a;
    return better || (b != b && a == a) ? b : a;
}

static int64_t join_int(fth_red red, int64_t a, int64_t b)
{
    switch (red) {
    case FTH_RED_SUM: return (int64_t)((uint64_t)a + (uint64_t)b);
    case FTH_RED_PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case FTH_RED_MIN: return b < a ? b : a;
    case FTH_RED_MAX: return b > a ? b : a;
    case FTH_RED_ANY: return a | (b != 0);
    case FTH_RED_ALL: return a & (b != 0);
    case FTH_RED_LOGSUMEXP:
    case FTH_RED_COUNT_: break;
    }
    return a;
}

fth__wide fth__tail_join(fth_red red, fth__kind kind, fth__wide a, fth__wide b)
{
    if (kind == FTH__KIND_INT) return (fth__wide){.i = join_int(red, a.i, b.i)};
    if (kind == FTH__KIND_REAL) return (fth__wide){.f = join_real(red, a.f, b.f)};
    if (red == FTH_RED_SUM) return (fth__wide){.c = {a.c.re + b.c.re, a.c.im + b.c.im}};
    return (fth__wide){.c = fth__cmul_c128(a.c, b.c)};
}

/* ---- shapes --------------------------------------------------------------------------- */

/* Every instruction reads registers that were set before it and sets one that was not. */
__attribute__((unused)) static bool is_sound(const fth__program *p)
{
    int set = p->n_in + p->n_const;
    bool sound = p->n_in >= 0 && p->n_in <= FTH_PROGRAM_INPUTS && p->n_const >= 0 &&
                 p->n_const <= FTH_PROGRAM_CONSTS && p->n_instr >= 0 &&
                 p->n_instr <= FTH_PROGRAM_INSTRS;
    for (int i = 0; sound && i < p->n_instr; i++) {
        const fth__instr *in = &p->instr[i];
        sound = (in->src[0] >= 0 || in->op == FTH__INSTR_MAKE) && in->dst == set;
        for (int k = 0; k < 3; k++) sound = sound && in->src[k] < set;
        set++;
    }
    for (int o = 0; sound && o < p->n_out; o++) sound = p->out_reg[o] >= 0 && p->out_reg[o] < set;
    return sound && p->n_reg == set;
}

/* n_axes: the axis that is reduced before. */
static int space_dim(const fth__program *p, fth_axis_id axis)
{
    for (int i = 0; i < p->n_axes + (p->inner_red > 0); i++)
        if (p->axis[i] == axis) return i;
    return -1;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__program *p = node->attr;
    fth_desc d = {.n_axes = p->n_axes};
    memcpy(d.axis, p->axis, sizeof d.axis);
    memcpy(d.size, p->size, sizeof d.size);
    if (node->attr_bytes != sizeof *p || node->n_in != p->n_in || p->n_out < 1 ||
        p->n_out > FTH_PROGRAM_OUTS)
        return FTH_FAIL(err, FTH_E_INTERNAL, "fused: the program does not belong to this node");
    for (int i = 0; i < p->n_in; i++) {
        bool fits = node->in[i].dtype == (fth_dtype)p->reg_dtype[i];
        for (int k = 0; k < node->in[i].n_axes; k++)
            fits &= fth__view_find(p, i, k) || space_dim(p, node->in[i].axis[k]) >= 0;
        if (!fits)
            return FTH_FAIL(err, FTH_E_INTERNAL, "fused: operand %d is not what the program says",
                            i);
    }
    FTH_ASSERT(is_sound(p));
    fth__tail tail = {.dim = -1};
    if (p->tail_dim >= 0) {
        if (p->n_out != 1 || p->tail_dim >= p->n_axes || p->tail_red == FTH_RED_LOGSUMEXP)
            return FTH_FAIL(err, FTH_E_INTERNAL,
                            "fused: a tail has one output and is not logsumexp");
        fth__tail_init(&tail, p);
        if (tail.to == FTH_DTYPE_COUNT)
            return FTH_FAIL(err, FTH_E_DTYPE_OP, "fused: %s is not defined for %s",
                            fth__reduce_name(tail.red), fth_dtype_name(tail.from));
        fth_desc_drop(&d, p->tail_dim);
    }
    node->n_out = p->n_out;
    for (int i = 0; i < p->n_out; i++) {
        node->out[i] = d;
        node->out[i].dtype = tail.dim >= 0 ? tail.to : (fth_dtype)p->reg_dtype[p->out_reg[i]];
    }
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__program *p = node->attr;
    const fth__view_axis *view = fth__view_find(p, in, dim);
    const int at = view ? view->along : space_dim(p, node->in[in].axis[dim]);
    const int out_dim = p->tail_dim >= 0 && at > p->tail_dim ? at - 1 : at;
    FTH_ASSERT(!view || at < 0 ||
               at != p->tail_dim); /* it would be summed over parts that overlap */
    if (at == p->n_axes)
        fth__rel_whole(out);
    else if (view)
        fth__view_relation(p, view, out_dim, out);
    else if (at == p->tail_dim)
        fth__rel_accumulate(out);
    else
        fth__rel_same(out, out_dim);
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    (void)dim;
    if (in < 0) return 1;
    fth__tail tail;
    fth__tail_init(&tail, node->attr);
    if (tail.exact) return 1;
    return tail.n <= FTH__TAIL_SHORT ? FTH__TAIL_SHORT : tail.block;
}

static uint64_t state(const fth_node *node, int out)
{
    fth__tail tail;
    fth__tail_init(&tail, node->attr);
    return out == 0 ? tail.state : 0;
}

static fth__join_total total_of(const fth_node *node)
{
    fth__tail t;
    fth__tail_init(&t, node->attr);
    return (fth__join_total){.red = t.red,
                             .to = t.to,
                             .kind = t.kind,
                             .in_out = t.total_in_out,
                             .wide = t.wide,
                             .state = t.state};
}

static int64_t grain(const fth_node *node, int in, int dim)
{
    fth__tail t;
    (void)in, (void)dim;
    fth__tail_init(&t, node->attr);
    if (!t.exact && t.n <= FTH__TAIL_SHORT) return -1; /* never cut */
    if (t.exact || t.red == FTH_RED_MIN || t.red == FTH_RED_MAX) return 0;
    /* one more product by the first number can make a NaN of an infinite complex one */
    if (t.red == FTH_RED_PROD && t.kind == FTH__KIND_COMPLEX) return -1;
    return t.has_super ? t.super : t.block;
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const fth__join_total t = total_of(into->node);
    fth__join_totals(&t, into, from);
}

static void join_finish(const fth_partial *p)
{
    const fth__join_total t = total_of(p->node);
    fth__join_totals_finish(&t, p);
}

static bool in_state(const fth_node *node, int out)
{
    (void)out;
    return !total_of(node).in_out;
}

static const fth_join join = {
    .grain = grain, .in_state = in_state, .add = join_add, .finish = join_finish};

void fth__fused_extent(const fth__program *p, const fth_call *call, int64_t *extent,
                       int64_t *origin)
{
    if (p->inner_red > 0) {
        extent[p->n_axes] = p->size[p->n_axes];
        origin[p->n_axes] = 0;
    }
    for (int k = 0, o = 0; k < p->n_axes; k++) {
        if (k != p->tail_dim) {
            extent[k] = call->out[0].extent[o];
            origin[k] = call->out[0].origin[o++];
            continue;
        }
        extent[k] = p->size[k]; /* an axis no operand has is never cut */
        origin[k] = 0;
        for (int i = 0, cut = 0; i < p->n_in; i++) {
            const int dim = fth_desc_find(&call->node->in[i], p->axis[k]);
            if (dim < 0 || fth__view_find(p, i, dim)) continue;
            FTH_ASSERT(!cut || (extent[k] == call->in[i].extent[dim] &&
                                origin[k] == call->in[i].origin[dim]));
            cut = 1;
            extent[k] = call->in[i].extent[dim];
            origin[k] = call->in[i].origin[dim];
        }
    }
}

void fth__fused_strides(const fth__program *p, const fth_desc *d, const fth_tile *t,
                        int64_t *stride)
{
    for (int k = 0; k < p->n_axes + (p->inner_red > 0); k++) {
        const int dim = fth_desc_find(d, p->axis[k]);
        stride[k] = dim < 0 ? 0 : t->stride[dim];
    }
}

const fth_node *fth__gather_of(const fth_node *fused, const fth__view_axis *v)
{
    FTH_ASSERT(v->rows >= 0 && v->gather >= 0 && v->gather < fused->graph->n_nodes);
    return fused->graph->node[v->gather];
}

fth_status fth__rows_fail(const fth_call *call, const fth__view_axis *v, const int64_t *place,
                          int64_t found)
{
    const fth__program *p = call->node->attr;
    const fth_node *gather = fth__gather_of(call->node, v);
    const fth_desc *d = &gather->in[1];
    int64_t at[FTH_MAX_AXES];
    for (int k = 0; k < d->n_axes; k++) {
        const fth__view_axis *axis = fth__view_find(p, v->rows, k);
        at[k] = axis ? fth__view_raw(axis, place) : place[space_dim(p, d->axis[k])];
    }
    return fth__index_fail_at(gather, 1, at, found, gather->in[0].axis[v->gather_dim], v->limit,
                              call->err);
}

int64_t fth__fused_in_strides(const fth__program *p, const fth_call *call, int i,
                              const int64_t *origin, int64_t *stride)
{
    const fth_desc *d = &call->node->in[i];
    const fth_tile *t = &call->in[i];
    int64_t first = 0;
    if (!fth__is_viewed(p, i)) {
        fth__fused_strides(p, d, t, stride);
        return 0;
    }
    for (int k = 0; k < p->n_axes + (p->inner_red > 0); k++) stride[k] = 0;
    for (int dim = 0; dim < d->n_axes; dim++) {
        const fth__view_axis *v = fth__view_find(p, i, dim);
        if (!v) {
            stride[space_dim(p, d->axis[dim])] += t->stride[dim];
        } else if (v->rows >= 0) {
            first -= t->origin[dim] * t->stride[dim]; /* of row 0, which the tile may not have */
        } else if (v->div == 1) {
            if (v->along >= 0) stride[v->along] += v->mul * t->stride[dim];
            if (v->tap >= 0) stride[v->tap] += v->tap_mul * t->stride[dim];
            first += (fth__view_raw(v, origin) - t->origin[dim]) * t->stride[dim];
        }
    }
    return first;
}

static double flops(const fth_call *call)
{
    const fth__program *p = call->node->attr;
    int64_t extent[FTH_MAX_AXES], origin[FTH_MAX_AXES];
    fth__fused_extent(p, call, extent, origin);
    double n = (double)(p->n_instr + (p->tail_dim >= 0));
    for (int i = 0; i < p->n_made; i++)
        if (p->made[i].kind != FTH__MADE_INDEX) n += FTH__RANDOM_FLOPS;
    for (int k = 0; k < p->n_axes + (p->inner_red > 0); k++) n *= (double)extent[k];
    return n;
}

/* ---- run ------------------------------------------------------------------------------ */

typedef struct machine {
    const fth_call *call;
    const fth__program *p;
    fth__tail tail;
    int64_t extent[FTH_MAX_AXES], origin[FTH_MAX_AXES];
    int64_t in_stride[FTH_PROGRAM_INPUTS][FTH_MAX_AXES];
    int64_t out_stride[FTH_PROGRAM_OUTS][FTH_MAX_AXES];
    int64_t state_stride[FTH_MAX_AXES];
    int64_t index[FTH_MAX_AXES];
    fth__cell reg[FTH_PROGRAM_INPUTS + FTH_PROGRAM_CONSTS + FTH_PROGRAM_INSTRS];
    fth_status status;
} machine;

static int64_t offset(const machine *m, const int64_t *stride)
{
    int64_t at = 0;
    for (int k = 0; k < m->p->n_axes + (m->tail.inner > 0); k++) at += m->index[k] * stride[k];
    return at;
}

static int64_t index_of(machine *m, const fth__view_axis *v, const int64_t *global);

/* The element of a viewed input, which the border's number takes the place of beyond its ends. */
static void load_viewed(machine *m, int i, fth__cell *to)
{
    const fth_desc *d = &m->call->node->in[i];
    const fth_tile *tile = &m->call->in[i];
    const fth_dtype t = d->dtype;
    int64_t global[FTH_MAX_AXES], at = 0;
    for (int k = 0; k < m->p->n_axes + (m->tail.inner > 0); k++)
        global[k] = m->origin[k] + m->index[k];
    for (int dim = 0; dim < d->n_axes; dim++) {
        const fth__view_axis *v = fth__view_find(m->p, i, dim);
        const int64_t index = v ? index_of(m, v, global) : global[space_dim(m->p, d->axis[dim])];
        if (index < 0) {
            fth__cell memory = {0};
            fth__store(t, &memory, fth__wide_of(t, v->fill));
            fth__cell_load(t, &memory, to);
            return;
        }
        FTH_ASSERT(index >= tile->origin[dim] && index < tile->origin[dim] + tile->extent[dim]);
        at += (index - tile->origin[dim]) * tile->stride[dim];
    }
    fth__cell_load(t, (const char *)tile->data + at * fth_dtype_size(t), to);
}

/* Where the axis is read; -1: beyond its ends. */
static int64_t index_of(machine *m, const fth__view_axis *v, const int64_t *global)
{
    const int64_t n = m->call->node->in[v->in].size[v->dim];
    if (v->rows < 0) return fth__view_at(v, n, fth__view_raw(v, global));
    fth__cell c;
    load_viewed(m, v->rows, &c);
    const fth_dtype t = (fth_dtype)m->p->reg_dtype[v->rows];
    const int64_t row = t == FTH_I64 ? c.i64 : t == FTH_U32 ? (int64_t)c.u32 : c.i32;
    if (row >= 0 && row < v->limit) return fth__view_at(v, n, v->mul * row + v->add);
    if (m->status == FTH_OK) m->status = fth__rows_fail(m->call, v, global, row);
    return -1;
}

static uint64_t counter_of(const machine *m, const fth__made *made)
{
    uint64_t n = (uint64_t)made->add;
    for (int k = 0; k < m->p->n_axes + (m->tail.inner > 0); k++)
        n += (uint64_t)(m->origin[k] + m->index[k]) * (uint64_t)made->step[k];
    return n;
}

static void make_element(machine *m, const fth__instr *in)
{
    const fth__made *made = &m->p->made[in->from];
    const uint64_t n = counter_of(m, made);
    if (made->kind == FTH__MADE_INDEX) {
        m->reg[in->dst].i64 = (int64_t)n;
        return;
    }
    const fth__random_key key =
        fth__random_key_make(m->reg[in->src[0]].i64, m->reg[in->src[1]].i64, made->stream);
    fth__cell memory = {0};
    fth__random_draw(made->kind, (fth_dtype)in->to, &key, n, (char *)&memory);
    fth__cell_load((fth_dtype)in->to, &memory, &m->reg[in->dst]);
}

/* Registers for the element the machine stands at. */
static void evaluate(machine *m)
{
    const fth__program *p = m->p;
    for (int i = 0; i < p->n_in; i++) {
        const fth_dtype t = (fth_dtype)p->reg_dtype[i];
        if (fth__is_viewed(p, i))
            load_viewed(m, i, &m->reg[i]);
        else
            fth__cell_load(t,
                           (const char *)m->call->in[i].data +
                               offset(m, m->in_stride[i]) * fth_dtype_size(t),
                           &m->reg[i]);
    }
    for (int i = 0; i < p->n_instr; i++) {
        const fth__instr *in = &p->instr[i];
        if (in->op == FTH__INSTR_MAKE) {
            make_element(m, in);
            continue;
        }
        const fth__cell *x = &m->reg[in->src[0]];
        const fth__cell *y = in->src[1] >= 0 ? &m->reg[in->src[1]] : x,
                        *z = in->src[2] >= 0 ? &m->reg[in->src[2]] : x;
        if (in->op == FTH__INSTR_CAST)
            (void)fth__cell_cast((fth_dtype)in->from, (fth_dtype)in->to, x, &m->reg[in->dst]);
        else
            fth__cell_map((fth_ew)in->op, (fth_dtype)in->from, x, y, z, &m->reg[in->dst]);
    }
}

static fth__wide widen(fth_dtype t, const fth__cell *v)
{
    fth__cell memory = {0};
    fth__cell_store(t, v, &memory);
    return fth__load(t, &memory);
}

/* What the tail joins: an element, or what the inner axis of it comes to, rounded to its dtype. */
static fth__wide next_value(machine *m)
{
    const fth__tail *t = &m->tail;
    const int reg = m->p->out_reg[0];
    if (t->inner == 0) {
        evaluate(m);
        return widen(t->from, &m->reg[reg]);
    }
    fth__wide total = fth__identity((int)t->inner_red, t->from);
    for (int64_t i = 0; i < t->inner; i++) {
        m->index[m->p->n_axes] = i;
        evaluate(m);
        total =
            fth__tail_join(t->inner_red, t->inner_kind, total, widen(t->inner_from, &m->reg[reg]));
    }
    m->index[m->p->n_axes] = 0;
    fth__cell memory = {0};
    fth__store(t->from, &memory, total);
    return fth__load(t->from, &memory);
}

static fth__wide block_partial(machine *m, int64_t from, int64_t to)
{
    const fth__tail *t = &m->tail;
    fth__wide lane[FTH__TAIL_LANES];
    for (int l = 0; l < t->lanes; l++) lane[l] = fth__identity((int)t->red, t->to);
    for (int64_t i = from; i < to; i++) {
        m->index[t->dim] = i;
        const int l = (int)((i - from) % t->lanes);
        lane[l] = fth__tail_join(t->red, t->kind, lane[l], next_value(m));
    }
    for (int half = t->lanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = fth__tail_join(t->red, t->kind, lane[l], lane[l + half]);
    return lane[0];
}

/* One output element: every block of this piece. */
static void reduce_one(machine *m)
{
    const fth__tail *t = &m->tail;
    const fth_call *call = m->call;
    m->index[t->dim] = 0;
    char *out = (char *)call->out[0].data + offset(m, m->out_stride[0]) * fth_dtype_size(t->to);
    char *carried = (char *)call->state[0].data +
                    (t->state ? (uint64_t)offset(m, m->state_stride) * t->state : 0);
    const uint64_t super_at = t->total_in_out ? 0 : t->wide;
    const fth__wide start = fth__identity((int)t->red, t->to);
    fth__wide total = start, super = start;
    if (!call->first && t->total_in_out) total = fth__load(t->to, out);
    if (!call->first && !t->total_in_out) memcpy(&total, carried, t->wide);
    if (!call->first && t->has_super) memcpy(&super, carried + super_at, t->wide);
    const int64_t n = m->extent[t->dim], origin = m->origin[t->dim];
    FTH_ASSERT(t->exact || n == 0 || origin % t->block == 0); /* pieces start on the grid */
    FTH_ASSERT(t->state == 0 || call->state[0].data);
    FTH_ASSERT((call->first && call->last) || t->total_in_out || t->state > 0);
    for (int64_t a = 0; a < n; a += t->block) {
        const int64_t end = fth__min_i64(a + t->block, n);
        const fth__wide partial = block_partial(m, a, end);
        if (!t->has_super) {
            total = fth__tail_join(t->red, t->kind, total, partial);
            continue;
        }
        super = fth__tail_join(t->red, t->kind, super, partial);
        if ((origin + end) % t->super != 0 && origin + end != t->n) continue;
        total = fth__tail_join(t->red, t->kind, total, super);
        super = start;
    }
    if (call->last || t->total_in_out) fth__store(t->to, out, total);
    if (call->last) return;
    if (!t->total_in_out) memcpy(carried, &total, t->wide);
    if (t->has_super) memcpy(carried + super_at, &super, t->wide);
}

static void store_outputs(machine *m)
{
    for (int i = 0; i < m->p->n_out; i++) {
        const fth_dtype t = m->call->node->out[i].dtype;
        char *out = m->call->out[i].data;
        if (!out) continue;
        fth__cell_store(t, &m->reg[m->p->out_reg[i]],
                        out + offset(m, m->out_stride[i]) * fth_dtype_size(t));
    }
}

static void machine_init(machine *m, const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__program *p = node->attr;
    *m = (machine){.call = call, .p = p};
    fth__tail_init(&m->tail, p);
    fth__fused_extent(p, call, m->extent, m->origin);
    for (int i = 0; i < p->n_in; i++)
        if (!fth__is_viewed(p, i))
            fth__fused_strides(p, &node->in[i], &call->in[i], m->in_stride[i]);
    for (int i = 0; i < p->n_out; i++)
        fth__fused_strides(p, &node->out[i], &call->out[i], m->out_stride[i]);
    fth__fused_strides(p, &node->out[0], &call->state[0], m->state_stride);
    for (int i = 0; i < p->n_const; i++)
        fth__cell_const((fth_dtype)p->reg_dtype[p->n_in + i], p->constant[i], p->constant_i64[i],
                        &m->reg[p->n_in + i]);
}

static fth_status run(const fth_call *call)
{
    machine m;
    machine_init(&m, call);
    for (int k = 0; k < m.p->n_axes; k++)
        if (m.extent[k] == 0 && k != m.tail.dim) return FTH_OK;
    for (;;) {
        if (m.tail.dim >= 0) {
            reduce_one(&m);
        } else {
            evaluate(&m);
            store_outputs(&m);
        }
        int k = m.p->n_axes - 1;
        for (; k >= 0; k--) {
            if (k == m.tail.dim) continue;
            if (++m.index[k] < m.extent[k]) break;
            m.index[k] = 0;
        }
        if (k < 0 || m.status != FTH_OK) return m.status;
    }
}

const fth_op fth__op_fused = {
    .name = "fused",
    .brief = "several elementwise operations at once, with a reduction at the tail",
    .flags = FTH_OP_CHEAP | FTH_OP_FREE_AXES | 0xfffu << 8, /* in place in any operand */
    .infer = infer,
    .relation = relation,
    .grid = grid,
    .state = state,
    .flops = flops,
    .join = &join,
    .run = run};
