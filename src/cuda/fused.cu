/* fused.cu - a fused program on the device: from the tiles of a call to launches.
 *
 * Axes of a call are first made as few as they can be: neighbours that follow each other in every
 * operand are one, so dense arrays have one long axis. Then the fast kernel is taken where every
 * operand lies as the program was compiled for, else the one that takes any distance. Which of them
 * runs, and how a tail is spread over threads, never changes a bit: sums have the order of
 * ops/fused.h.
 */
#include "cuda/fused.h"

#include "cuda/jit.h"
#include "cuda/worth.h"

extern "C" {
#include "graph/grid.h"
#include "ops/fused.h"
}

#include <string.h>

namespace
{

enum {
    THREADS = 256,
    SHARED = 40 << 10,    /* bytes of shared memory for rows that are finished at once */
    CHUNK = 32 << 10,     /* for a chunk of a long row */
    MANY = 1 << 20,       /* outputs that keep every multiprocessor busy on their own */
    SOME = 48 << 10,      /* outputs that do when blocks are short */
    FEW_ROWS = 264,       /* rows that leave multiprocessors idle */
    LONG_ROW = 4096,      /* elements of a row worth being cut then */
    MOST_ITEMS = 1 << 30, /* of one launch */
    MOST_BLOCKS_Y = 65535,
    EIGHT_FROM = 64, /* elements of a block that eight threads join */
};

/* The work of one launch. Operands are inputs, outputs, and with a tail the state. */
struct walk {
    int n_axes, n_ops;
    int64_t extent[FTH_MAX_AXES];
    int64_t stride[FTH__EW_OPERANDS][FTH_MAX_AXES]; /* elements */
    int64_t along[FTH__EW_OPERANDS];
    int64_t bytes[FTH__EW_OPERANDS]; /* of an element */
    char *data[FTH__EW_OPERANDS];
    int64_t n, lo; /* the tail's piece */
};

bool has_tail(const fth__ew_program *e)
{
    return e->p.tail_dim >= 0;
}

void set_operand(walk *w, int j, const fth__program *p, const fth_desc *d, const fth_tile *t,
                 int64_t bytes, int64_t (*stride)[FTH_MAX_AXES])
{
    fth__fused_strides(p, d, t, stride[j]);
    w->data[j] = (char *)t->data;
    w->bytes[j] = bytes;
    w->along[j] = p->tail_dim >= 0 && j < p->n_in ? stride[j][p->tail_dim] : 0;
}

/* Axes of the call, those of one element left out, neighbours that lie as one joined. */
void collapse(walk *w, const fth__program *p, const int64_t *extent,
              const int64_t (*stride)[FTH_MAX_AXES])
{
    for (int k = 0; k < p->n_axes; k++) {
        if (k == p->tail_dim || extent[k] == 1) continue;
        const int last = w->n_axes - 1;
        bool one = last >= 0;
        for (int j = 0; j < w->n_ops && one; j++)
            one = !w->data[j] || w->stride[j][last] == stride[j][k] * extent[k];
        const int to = one ? last : w->n_axes++;
        w->extent[to] = one ? w->extent[to] * extent[k] : extent[k];
        for (int j = 0; j < w->n_ops; j++) w->stride[j][to] = stride[j][k];
    }
    if (w->n_axes > 0) return;
    w->n_axes = 1;
    w->extent[0] = 1;
}

void walk_init(walk *w, const fth_call *call, const fth__ew_program *e)
{
    const fth__program *p = &e->p;
    const fth_node *node = call->node;
    int64_t extent[FTH_MAX_AXES], origin[FTH_MAX_AXES];
    int64_t stride[FTH__EW_OPERANDS][FTH_MAX_AXES] = {};
    memset(w, 0, sizeof *w);
    fth__fused_extent(p, call, extent, origin);
    for (int i = 0; i < p->n_in; i++)
        set_operand(w, i, p, &node->in[i], &call->in[i], fth_dtype_size(node->in[i].dtype), stride);
    for (int i = 0; i < p->n_out; i++)
        set_operand(w, p->n_in + i, p, &node->out[i], &call->out[i],
                    fth_dtype_size(node->out[i].dtype), stride);
    w->n_ops = p->n_in + p->n_out;
    if (has_tail(e)) {
        if (e->order.state > 0)
            set_operand(w, w->n_ops, p, &node->out[0], &call->state, (int64_t)e->order.state,
                        stride);
        w->n_ops++;
        w->n = extent[p->tail_dim];
        w->lo = origin[p->tail_dim];
    }
    collapse(w, p, extent, stride);
}

int64_t items_of(const walk *w)
{
    int64_t n = 1;
    for (int k = 0; k < w->n_axes; k++) n *= w->extent[k];
    return n;
}

/* ---- arguments ---- */

/* Division by d as a multiplication: exact for what fits 31 bits. */
void set_magic(uint32_t d, uint32_t *magic, uint32_t *shift)
{
    uint32_t s = 0;
    while (s < 32 && ((uint64_t)1 << s) < d) s++;
    *shift = s;
    *magic = (uint32_t)(((((uint64_t)1 << s) - d) << 32) / d + 1);
}

/* vec: neighbours per item along the innermost axis of the walk, 1 if items go along the tail. */
void fill_args(fth__ew_args *a, const walk *w, const fth__ew_program *e, int vec)
{
    const int last = w->n_axes - 1;
    memset(a, 0, sizeof *a);
    a->n_axes = w->n_axes;
    a->count = (uint32_t)items_of(w);
    for (int k = 0; k < w->n_axes; k++) {
        a->extent[k] = (uint32_t)(k == last ? w->extent[k] / vec : w->extent[k]);
        set_magic(a->extent[k], &a->magic[k], &a->shift[k]);
    }
    for (int j = 0; j < w->n_ops; j++) {
        fth__ew_operand *o = &a->operand[j];
        o->data = w->data[j];
        for (int k = 0; k < w->n_axes; k++) o->stride[k] = w->stride[j][k] * (k == last ? vec : 1);
        o->step = e->shape.rows ? w->along[j] : w->stride[j][last];
        o->along = w->along[j];
    }
    for (int i = 0; i < e->p.n_const; i++) {
        fth__cell c;
        fth__cell_const((fth_dtype)e->p.reg_dtype[e->p.n_in + i], e->p.constant[i],
                        e->p.constant_i64[i], &c);
        static_assert(sizeof c == sizeof a->constant[i], "constants are cells");
        memcpy(&a->constant[i], &c, sizeof c);
    }
}

bool is_aligned(const walk *w, int j, int vec, bool with_along, int skip)
{
    bool good =
        (uintptr_t)w->data[j] % (uint64_t)(vec * w->bytes[j] < 16 ? vec * w->bytes[j] : 16) == 0;
    for (int k = 0; k < w->n_axes; k++) good &= k == skip || w->stride[j][k] % vec == 0;
    return good && (!with_along || w->along[j] % vec == 0);
}

/* Whether operands lie along the items' axis as the program was compiled for. */
bool lies_well(const walk *w, const fth__ew_program *e)
{
    const int vec = e->shape.vec, last = w->n_axes - 1;
    const bool rows = e->shape.rows;
    if (vec == 1) return false;
    for (int j = 0; j < e->p.n_in; j++) {
        const int where = e->shape.where[j];
        const int64_t step = rows ? w->along[j] : w->stride[j][last];
        if (where == FTH__EW_SPREAD && step != 0) return false;
        if (where == FTH__EW_DENSE &&
            (step != 1 || !is_aligned(w, j, vec, has_tail(e) && !rows, rows ? -1 : last)))
            return false;
    }
    for (int j = e->p.n_in; j < e->p.n_in + e->p.n_out && !has_tail(e); j++)
        if (w->data[j] && (w->stride[j][last] != 1 || !is_aligned(w, j, vec, false, last)))
            return false;
    return true;
}

/* ---- launches ---- */

struct job {
    const fth_call *call;
    const fth__ew_program *e;
    bool small; /* interpreted: compiling would take longer than it is ever worth */
};

/* Elements of the whole value. */
int64_t elements_of(const fth__program *p)
{
    int64_t n = 1;
    for (int k = 0; k < p->n_axes; k++) n *= p->size[k];
    return n;
}

/* The compiled kernel for items of neighbours or of single elements; NULL: interpreted. */
fth_status code_for(const job *b, const walk *w, bool vec, const fth__jit_code **code)
{
    *code = NULL;
    if (b->small) return FTH_OK;
    const int64_t elements = items_of(w) * (has_tail(b->e) ? w->n : 1);
    return fth__jit_get(b->call->device, b->call->node, &b->e->p, &b->e->shape, vec,
                        fth__worth_of(&b->e->p, elements), b->call->stream, code, b->call->err);
}

fth_status launch(const job *b, const fth__jit_code *code, const fth__ew_args *a, unsigned x,
                  unsigned y, unsigned shared)
{
    return code ? fth__jit_launch(b->call, code, dim3(x, y), THREADS, shared, a)
                : fth__ew_interpret(b->call, b->e, a);
}

unsigned blocks_for(int64_t n, int64_t each)
{
    return (unsigned)((n + each - 1) / each);
}

/* The part of the walk from `from` on along its outermost axis. */
walk part_of(const walk *w, int64_t from, int64_t n)
{
    walk o = *w;
    o.extent[0] = n;
    for (int j = 0; j < w->n_ops; j++)
        if (o.data[j]) o.data[j] += from * w->stride[j][0] * w->bytes[j];
    return o;
}

fth_status run_map(const job *b, const walk *w)
{
    const int vec = b->e->shape.vec, last = w->n_axes - 1;
    bool use = !b->small && lies_well(w, b->e);
    const int64_t rest = use ? w->extent[last] % vec : 0;
    if (use && rest > 0 && w->n_axes == 1 && w->extent[0] > vec) {
        const walk most = part_of(w, 0, w->extent[0] - rest),
                   few = part_of(w, w->extent[0] - rest, rest);
        const job interpreted = {b->call, b->e, true};
        FTH_TRY(run_map(b, &most));
        return run_map(&interpreted, &few);
    }
    use = use && rest == 0;
    const fth__jit_code *code;
    FTH_TRY(code_for(b, w, use, &code));
    use = use && code;
    fth__ew_args a;
    fill_args(&a, w, b->e, use ? vec : 1);
    if (use) a.count /= (uint32_t)vec;
    const int each = THREADS * (use ? b->e->shape.unroll : b->e->shape.unroll_any);
    return launch(b, code, &a, blocks_for(a.count, each), 1, 0);
}

/* ---- tails ---- */

struct tail_plan {
    int64_t segments; /* blocks of the piece */
    bool partial;     /* they go through memory */
    /* rows */
    uint32_t rows, segs, seg_len, pitch, chunks;
    uint64_t value, wide; /* bytes of an element in shared memory, and of its sum */
};

uint64_t wide_of(const fth__ew_program *e)
{
    const fth_dtype from = (fth_dtype)e->p.reg_dtype[e->p.out_reg[0]];
    return fth_dtype_is_complex(from) ? 16 : 8;
}

/* From extents alone, so that the workspace is known before. */
void plan_rows(tail_plan *t, const fth__ew_program *e, int64_t n, int64_t rows)
{
    const fth_dtype from = (fth_dtype)e->p.reg_dtype[e->p.out_reg[0]];
    const bool brief = e->shape.brief;
    t->value = from == FTH_F16 || from == FTH_BF16 ? 4 : (uint64_t)fth_dtype_size(from);
    t->seg_len = (uint32_t)(brief ? (n > 0 ? n : 1) : e->order.block);
    /* lanes of four segments side by side in different banks; items of neighbours aligned */
    t->pitch = !e->shape.eight    ? t->seg_len | 1u
               : e->shape.vec > 8 ? t->seg_len + 16
                                  : t->seg_len + 8;
    t->segs = (uint32_t)(brief || t->segments < 1 ? 1 : t->segments);
    const uint64_t row = (uint64_t)t->segs * (t->pitch * t->value + t->wide);
    t->partial = n > LONG_ROW * 4 || row > SHARED || (rows < FEW_ROWS && n >= LONG_ROW);
    t->partial = t->partial && !brief && t->segments > 1;
    if (t->partial) {
        const int64_t fit = (int64_t)(CHUNK / t->value) / e->order.block;
        t->segs = (uint32_t)(fit < 1 ? 1 : fit < t->segments ? fit : t->segments);
        t->chunks = (uint32_t)((t->segments + t->segs - 1) / t->segs);
        t->rows = 1;
        return;
    }
    const int64_t fit = (int64_t)(SHARED / row), spread = rows / (2 * FEW_ROWS);
    const int64_t most = spread < 1 ? 1 : spread;
    t->rows = (uint32_t)(fit < 1 ? 1 : fit < most ? fit : most);
}

tail_plan plan_tail(const fth__ew_program *e, int64_t n, int64_t outputs)
{
    tail_plan t = {};
    t.wide = wide_of(e);
    t.segments = (n + e->order.block - 1) / e->order.block;
    if (e->shape.rows) {
        plan_rows(&t, e, n, outputs);
        return t;
    }
    const bool busy = outputs >= (e->order.block >= 64 ? MANY : SOME);
    t.partial = t.segments > 1 && !busy && !e->shape.brief;
    return t;
}

void fill_tail(fth__ew_args *a, const walk *w, const fth__ew_program *e, const tail_plan *t,
               const fth_call *call)
{
    fth__ew_tail *o = &a->tail;
    o->red = (uint8_t)e->p.tail_red;
    o->to = (uint8_t)call->node->out[0].dtype;
    o->first = call->first;
    o->last = call->last;
    o->total_in_out = e->order.total_in_out;
    o->has_super = e->order.has_super;
    o->lanes = (uint8_t)e->order.lanes;
    o->state = (int32_t)e->order.state;
    o->n = w->n;
    o->lo = w->lo;
    o->whole = e->order.whole;
    o->block = e->order.block;
    o->super = e->order.super;
    o->segments = t->segments;
    o->partial = t->partial ? (char *)call->scratch : NULL;
    a->rows = t->rows;
    a->segs = t->segs;
    a->seg_len = t->seg_len;
    a->pitch = t->pitch;
    a->chunks = t->chunks;
    while (((uint32_t)1 << a->seg_log) < t->seg_len && t->segs > 1) a->seg_log++;
}

/* Single columns where vectors of them would leave threads without work. */
bool takes_vectors(const tail_plan *t, int64_t outputs, int64_t inner, int vec)
{
    return inner % vec == 0 && outputs / vec * (t->partial ? t->segments : 1) >= SOME;
}

fth_status run_columns(const job *b, const walk *w, const tail_plan *t)
{
    const int vec = b->e->shape.vec;
    const int64_t outputs = items_of(w);
    bool use =
        !b->small && takes_vectors(t, outputs, w->extent[w->n_axes - 1], vec) && lies_well(w, b->e);
    const fth__jit_code *code;
    FTH_TRY(code_for(b, w, use, &code));
    use = use && code;
    fth__ew_args a;
    fill_args(&a, w, b->e, use ? vec : 1);
    fill_tail(&a, w, b->e, t, b->call);
    const int64_t most = MOST_BLOCKS_Y, y = t->partial ? t->segments : 1;
    return launch(b, code, &a, blocks_for(outputs / (use ? vec : 1), THREADS),
                  (unsigned)(y < most ? y : most), 0);
}

fth_status run_rows(const job *b, const walk *w, const tail_plan *t)
{
    const int vec = b->e->shape.vec;
    const int64_t rows = items_of(w);
    bool use = !b->small && w->n % vec == 0 && lies_well(w, b->e);
    const fth__jit_code *code;
    FTH_TRY(code_for(b, w, use, &code));
    use = use && code;
    fth__ew_args a;
    fill_args(&a, w, b->e, 1);
    fill_tail(&a, w, b->e, t, b->call);
    const uint64_t values = (uint64_t)t->rows * t->segs * t->pitch * t->value;
    a.part_at = (uint32_t)((values + 15) / 16 * 16);
    const uint32_t row_items = (uint32_t)(w->n / (use ? vec : 1));
    if (row_items > 0) set_magic(row_items, &a.row_magic, &a.row_shift);
    const unsigned shared = a.part_at + (unsigned)(t->rows * t->segs * t->wide);
    const int64_t blocks = t->partial ? rows * t->chunks : blocks_for(rows, t->rows);
    return launch(b, code, &a, (unsigned)blocks, 1, shared);
}

fth_status run_tail(const job *b, const walk *w)
{
    const tail_plan t = plan_tail(b->e, w->n, items_of(w));
    FTH_TRY(b->e->shape.rows ? run_rows(b, w, &t) : run_columns(b, w, &t));
    if (!t.partial) return FTH_OK;
    fth__ew_args a;
    fill_args(&a, w, b->e, 1);
    fill_tail(&a, w, b->e, &t, b->call);
    return fth__ew_finish(b->call, &a, b->e->p.n_in,
                          (fth_dtype)b->e->p.reg_dtype[b->e->p.out_reg[0]]);
}

/* In halves until one launch takes it. */
fth_status run_walk(const job *b, const walk *w)
{
    int64_t items = items_of(w);
    if (items == 0) return FTH_OK;
    if (has_tail(b->e) && b->e->shape.rows) items *= 1 + w->n / (1 << 14); /* blocks of threads */
    if (items > MOST_ITEMS && items_of(w) > 1) {
        walk flat = *w;
        while (flat.n_axes > 1 && flat.extent[0] == 1) { /* the outermost axis is used up */
            flat.n_axes--;
            for (int k = 0; k < flat.n_axes; k++) {
                flat.extent[k] = flat.extent[k + 1];
                for (int j = 0; j < flat.n_ops; j++) flat.stride[j][k] = flat.stride[j][k + 1];
            }
        }
        int64_t half = flat.extent[0] / 2;
        if (half > 64) half -= half % 64; /* vectors stay aligned */
        const walk one = part_of(&flat, 0, half),
                   other = part_of(&flat, half, flat.extent[0] - half);
        FTH_TRY(run_walk(b, &one));
        return run_walk(b, &other);
    }
    return has_tail(b->e) ? run_tail(b, w) : run_map(b, w);
}

} // namespace

void fth__ew_program_init(fth__ew_program *e, const fth_node *node)
{
    fth__ew_shape_of(&e->p, node->in, &e->shape);
    memset(&e->order, 0, sizeof e->order);
    if (!has_tail(e)) return;
    fth__tail t;
    fth__tail_init(&t, &e->p);
    e->order.whole = t.n;
    e->order.block = t.block;
    e->order.super = t.super;
    e->order.state = t.state;
    /* Whole numbers may be added in any order: in the one that suits rows. */
    e->order.lanes = t.exact && e->shape.rows && t.n > FTH__TAIL_SHORT ? FTH__TAIL_LANES : t.lanes;
    e->order.total_in_out = t.total_in_out;
    e->order.has_super = t.has_super;
    fth__ew_settle(e);
}

void fth__ew_settle(fth__ew_program *e)
{
    e->shape.brief = e->order.block == 1 && !e->order.has_super;
    e->shape.lanes = e->order.lanes;
    e->shape.eight = e->order.lanes == FTH__TAIL_LANES && e->order.block >= EIGHT_FROM;
}

uint64_t fth__ew_scratch(const fth_call *call, const fth__ew_program *e)
{
    if (!has_tail(e)) return 0;
    int64_t extent[FTH_MAX_AXES], origin[FTH_MAX_AXES], outputs = 1;
    fth__fused_extent(&e->p, call, extent, origin);
    for (int k = 0; k < e->p.n_axes; k++) outputs *= k == e->p.tail_dim ? 1 : extent[k];
    const int64_t n = extent[e->p.tail_dim];
    const tail_plan t = plan_tail(e, n, outputs);
    if (!t.partial) return 0;
    return (uint64_t)(t.segments * outputs) * t.wide +
           fth__ew_finish_bytes(&e->order, n, outputs, t.wide);
}

fth_status fth__ew_run(const fth_call *call, const fth__ew_program *e)
{
    walk w;
    const job b = {call, e, elements_of(&e->p) < FTH__WORTH_NOTHING};
    walk_init(&w, call, e);
    return run_walk(&b, &w);
}

/* Whether calls on the whole value take items of neighbours; pieces nearly always do the same. */
static bool expects_vectors(const fth__ew_program *e)
{
    const fth__program *p = &e->p;
    const int vec = e->shape.vec, inner = e->shape.inner;
    if (vec == 1 || inner < 0) return false;
    int64_t outputs = 1, all = 1;
    for (int k = 0; k < p->n_axes; k++) {
        all *= p->size[k];
        outputs *= k == p->tail_dim ? 1 : p->size[k];
    }
    if (has_tail(e) && !e->shape.rows) {
        const tail_plan t = plan_tail(e, p->size[p->tail_dim], outputs);
        return takes_vectors(&t, outputs, p->size[inner], vec);
    }
    if (has_tail(e) || p->size[inner] % vec == 0) return p->size[inner] % vec == 0;
    for (int i = 0; i < p->n_in; i++) /* dense operands of all axes are one long line */
        if (e->shape.where[i] != FTH__EW_HELD && e->shape.where[i] != FTH__EW_DENSE) return false;
    return true;
}

fth_status fth__ew_prepare(const fth_node *node, const fth__ew_program *e, fth_device *device,
                           int64_t runs, fth_err *err)
{
    const fth__jit_code *code;
    const int64_t n = elements_of(&e->p);
    if (n < FTH__WORTH_NOTHING) return FTH_OK;
    const bool at_once = fth__worth_at_once(fth__worth_of(&e->p, n), n, runs);
    return fth__jit_get(device, node, &e->p, &e->shape, expects_vectors(e),
                        at_once ? FTH__WORTH_COMPILING : 0, NULL, &code, err);
}

static void make(fth__ew_program *e, const fth_node *node)
{
    memcpy(&e->p, node->attr, sizeof e->p);
    fth__ew_program_init(e, node);
}

static uint64_t scratch(const fth_call *call)
{
    fth__ew_program e;
    make(&e, call->node);
    return fth__ew_scratch(call, &e);
}

static fth_status run(const fth_call *call)
{
    fth__ew_program e;
    make(&e, call->node);
    return fth__ew_run(call, &e);
}

static fth_status prepare(const fth_node *node, fth_device *device, int64_t runs, fth_err *err)
{
    fth__ew_program e;
    make(&e, node);
    return fth__ew_prepare(node, &e, device, runs, err);
}

FTH_CUDA_KERNEL(fused) = {.op = "fused", .scratch = scratch, .run = run, .prepare = prepare};
