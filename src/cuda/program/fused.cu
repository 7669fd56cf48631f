/* fused.cu - a fused program on the device: from the tiles of a call to launches.
 *
 * Axes of a call are first made as few as they can be: neighbours that follow each other in every
 * operand are one, so dense arrays have one long axis. Then the fast kernel is taken where every
 * operand lies as the program was compiled for, else the one that takes any distance. Which of them
 * runs, and how a tail is spread over threads, never changes a bit: sums have the order of
 * ops/fused.h.
 */
#include "cuda/program/fused.h"

#include "base/assert.h"
#include "cuda/program/fused_walk.cuh"
#include "cuda/program/jit.h"
#include "cuda/program/worth.h"

extern "C" {
#include "graph/grid.h"
#include "ops/fused.h"
#include "ops/indexing.h"
}

#include <string.h>

namespace
{

enum {
    THREADS = FTH__EW_THREADS,
    SHARED = 44 << 10,    /* bytes of shared memory for blocks of threads, most */
    CHUNK = 32 << 10,     /* for the elements of a task */
    READ = 128 << 10,     /* bytes that a task reads where they do not lie in shared memory: what
                             finishing its rows takes, when nothing is read, is little then */
    MANY = 1 << 20,       /* outputs that keep every multiprocessor busy on their own */
    SOME = 48 << 10,      /* outputs that do when blocks are short */
    FEW_ROWS = 528,       /* rows that leave multiprocessors idle */
    LONG_ROW = 4096,      /* elements of a row worth being cut then */
    MANY_TASKS = 8 << 10, /* tasks worth being done several in a row, */
    WAVES = 4,            /* so that this often all multiprocessors get new ones, */
    SMS = 132,            /* of which there are so many */
    FREE_FROM = 4096,     /* elements of a row that are joined in any order, if nothing forbids */
    FREE_BLOCK = 64 << 10,
    AHEAD_FROM = 512,     /* blocks of a superblock worth being joined while others are read */
    FEW_SUMS = 16,        /* and so many sums */
    MOST_ITEMS = 1 << 30, /* of one launch */
    PARTS = 40 << 10,     /* bytes of shared memory for what the blocks of rows come to */
    MOST_SEGMENTS = 32,   /* of a task, where they go to memory */
    BUSY_TASKS = 528,     /* that leave no multiprocessor idle */
};

/* A tail has one output, and a state beside it. */
static_assert((int)FTH__EW_OPERANDS >=
                      (int)FTH_PROGRAM_INPUTS + (int)FTH_PROGRAM_VIEWS + (int)FTH_PROGRAM_OUTS &&
                  (int)FTH__EW_LOOKS == (int)FTH_PROGRAM_VIEWS &&
                  (int)FTH__EW_CONSTS >= (int)FTH_PROGRAM_CONSTS &&
                  (int)FTH__EW_AXES >= (int)FTH_MAX_AXES,
              "the arguments of a kernel hold every program");

/* ---- arguments ---- */

/* Division by d as a multiplication: exact for what fits 31 bits. */
void set_magic(uint32_t d, uint32_t *magic, uint32_t *shift)
{
    uint32_t s = 0;
    FTH_ASSERT(d >= 1 && d <= (uint32_t)1 << 31);
    while (s < 32 && ((uint64_t)1 << s) < d) s++;
    *shift = s;
    *magic = (uint32_t)(((((uint64_t)1 << s) - d) << 32) / d + 1);
}

/* vec: neighbours per item along the innermost axis of the walk, 1 if items go along the tail. */
void fill_args(fth__ew_args *a, const walk *w, const fth__ew_program *e, int vec)
{
    const int last = w->n_axes - 1;
    FTH_ASSERT(items_of(w) > 0 && items_of(w) <= MOST_ITEMS); /* they have numbers of 32 bits */
    FTH_ASSERT(vec >= 1 && w->extent[last] % vec == 0 && e->p.n_const <= FTH__EW_CONSTS);
    memset(a, 0, sizeof *a);
    a->n_axes = w->n_axes;
    a->count = (uint32_t)items_of(w);
    a->inner = e->p.inner_red > 0 ? e->p.size[e->p.n_axes] : 0;
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
        o->inner = w->inner[j];
    }
    memcpy(a->look, w->look, sizeof a->look);
    a->fault = w->fault;
    for (int i = 0; i < e->p.n_const; i++) {
        fth__cell c;
        fth__cell_const((fth_dtype)e->p.reg_dtype[e->p.n_in + i], e->p.constant[i],
                        e->p.constant_i64[i], &c);
        static_assert(sizeof c == sizeof a->constant[i], "constants are cells");
        memcpy(&a->constant[i], &c, sizeof c);
    }
}

bool is_aligned(const walk *w, int j, int vec)
{
    return (uintptr_t)w->data[j] % (uint64_t)(vec * w->bytes[j] < 16 ? vec * w->bytes[j] : 16) == 0;
}

bool is_aligned(const walk *w, int j, int vec, bool with_along, int skip)
{
    bool good = is_aligned(w, j, vec);
    for (int k = 0; k < w->n_axes; k++) good &= k == skip || w->stride[j][k] % vec == 0;
    return good && (!with_along || w->along[j] % vec == 0);
}

/* Whether operands lie along the items' axis as the program was compiled for; of rows, `crossing`:
 * all of them together do. */
bool lies_well(const walk *w, const fth__ew_program *e, bool crossing)
{
    const int vec = e->shape.vec, last = w->n_axes - 1;
    const bool rows = e->shape.rows;
    for (int j = 0; j < e->p.n_in; j++) {
        const int where = e->shape.where[j];
        const int64_t step = rows ? w->along[j] : w->stride[j][last];
        if (where == FTH__EW_SPREAD && step != 0) return false;
        if (where == FTH__EW_DENSE && (step != 1 || !is_aligned(w, j, vec, has_tail(e) && !rows,
                                                                rows && !crossing ? -1 : last)))
            return false;
    }
    for (int l = 0; l < e->shape.looks; l++) /* what an index adds is not in the strides */
        if (w->look[l].in >= 0 && e->shape.where[w->look[l].in] == FTH__EW_DENSE &&
            w->look[l].stride % vec != 0)
            return false;
    for (int j = n_before(e); j < n_before(e) + e->p.n_out && !has_tail(e); j++)
        if (w->data[j] && (w->stride[j][last] != 1 || !is_aligned(w, j, vec, false, last)))
            return false;
    return true;
}

/* ---- launches ---- */

struct job {
    const fth_call *call;
    const fth__ew_program *e;
    bool interpreted; /* in any case */
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
    if (b->interpreted) return FTH_OK;
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

/* The largest multiple of `vec` of [LEAST_SIDE, MOST_SIDE] that divides n; 0: there is none. */
int64_t side_of(int64_t n, int64_t vec)
{
    enum { LEAST_SIDE = 8, MOST_SIDE = 32 };
    for (int64_t side = MOST_SIDE / vec * vec; side >= LEAST_SIDE; side -= vec)
        if (n % side == 0) return side;
    return 0;
}

/* The outer axis along which an input is dense that is not so along the innermost; -1: none. */
int turned_axis(const walk *w, const fth__ew_program *e)
{
    const int last = w->n_axes - 1;
    for (int j = 0; j < e->p.n_in; j++)
        for (int k = 0; k < last; k++)
            if (w->stride[j][k] == 1 && w->stride[j][last] > 1) return k;
    return -1;
}

/* Inputs that are turned are read in squares, whose lines a block of threads finds in its cache:
 * both axes are cut, and their short parts are innermost. */
walk squares_of(const walk *w, const fth__ew_program *e, int vec)
{
    const int turned = turned_axis(w, e), last = w->n_axes - 1;
    if (turned < 0 || w->n_axes + 2 > FTH_MAX_AXES) return *w;
    const int64_t down = side_of(w->extent[turned], 1), across = side_of(w->extent[last], vec);
    if (down == 0 || across == 0) return *w;
    walk o = *w;
    o.n_axes += 2;
    const int from[2] = {turned, last}, to[2] = {last + 1, last + 2};
    const int64_t side[2] = {down, across};
    for (int a = 0; a < 2; a++) {
        o.extent[from[a]] /= side[a];
        o.extent[to[a]] = side[a];
        for (int j = 0; j < w->n_ops; j++) {
            o.stride[j][to[a]] = w->stride[j][from[a]];
            o.stride[j][from[a]] *= side[a];
        }
    }
    return o;
}

/* Bytes of an input that every step along the outermost axis reads again; 0: none is. */
int64_t repeated(const walk *w, const fth__ew_program *e)
{
    int64_t most = 0;
    for (int j = 0; j < e->p.n_in; j++) {
        int64_t bytes = w->stride[j][0] == 0 ? w->bytes[j] : 0;
        for (int k = 1; k < w->n_axes; k++) bytes *= w->stride[j][k] != 0 ? w->extent[k] : 1;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* What is more than the cache has, and is read again along the outermost axis, is read once: that
 * axis goes next to the innermost. */
walk repeats_inside(const walk *w, const fth__ew_program *e)
{
#ifdef FTH_EMULATED
    constexpr int64_t CACHE = 64;
#else
    constexpr int64_t CACHE = 24 << 20;
#endif
    const int last = w->n_axes - 1;
    if (last < 2 || repeated(w, e) <= CACHE) return *w;
    walk o = *w;
    for (int k = 0; k < last; k++) {
        const int from = k + 1 < last ? k + 1 : 0;
        o.extent[k] = w->extent[from];
        for (int j = 0; j < w->n_ops; j++) o.stride[j][k] = w->stride[j][from];
    }
    return o;
}

fth_status run_map(const job *b, const walk *w)
{
    const int vec = b->e->shape.vec, last = w->n_axes - 1;
    bool use = !b->interpreted && lies_well(w, b->e, false);
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
    const walk inside = repeats_inside(w, b->e), squares = squares_of(&inside, b->e, use ? vec : 1);
    fill_args(&a, &squares, b->e, use ? vec : 1);
    if (use) a.count /= (uint32_t)vec;
    const int each = THREADS * (use ? b->e->shape.unroll : b->e->shape.unroll_any);
    return launch(b, code, &a, blocks_for(a.count, each), 1, 0);
}

/* ---- tails ---- */

/* From extents alone, so that the workspace is known before. */
struct tail_plan {
    int64_t block, segments; /* elements of a block, blocks of the piece */
    bool partial;            /* they go through memory */
    uint32_t segs, chunks;   /* rows: blocks of one task, tasks of a row */
    int64_t joined;          /* blocks of every superblock that were joined on the way */
    uint64_t value, wide;    /* bytes of an element in shared memory, and of its sum */
};

uint64_t wide_of(const fth__ew_program *e)
{
    const fth_dtype from = (fth_dtype)e->p.reg_dtype[e->p.out_reg[0]];
    return fth_dtype_is_complex(from) ? 16 : 8;
}

void plan_rows(tail_plan *t, const fth__ew_program *e, int64_t n, int64_t rows)
{
    const fth_dtype from = fth__ew_joined(&e->p);
    t->value = from == FTH_F16 || from == FTH_BF16 ? 4 : (uint64_t)fth_dtype_size(from);
    t->segs = t->chunks = 1;
    if (e->shape.brief || t->segments < 1) return;
    /* rows of many blocks (and those with superblocks) never are finished at once */
    t->partial = e->order.has_super || t->segments > FTH__SUPERBLOCKS ||
                 (rows < FEW_ROWS && n >= LONG_ROW && t->segments > 1);
    t->segs = (uint32_t)t->segments;
    if (!t->partial) return;
    t->segs = MOST_SEGMENTS;
    while (t->segs > 4 && rows * t->segments < (int64_t)t->segs * BUSY_TASKS) t->segs /= 2;
    t->chunks = blocks_for(t->segments, t->segs);
}

tail_plan plan_tail(const fth__ew_program *e, int64_t n, int64_t outputs)
{
    tail_plan t = {};
    t.wide = wide_of(e);
    t.block = e->order.block;
    t.segments = (n + t.block - 1) / t.block;
    if (e->shape.rows) {
        plan_rows(&t, e, n, outputs);
        return t;
    }
    FTH_ASSERT(t.block > 0 && t.segments * t.block >= n);
    const bool busy = outputs >= (e->order.block >= 64 ? MANY : SOME);
    t.partial = t.segments > 1 && !busy && !e->shape.brief;
    return t;
}

void fill_tail(fth__ew_args *a, const walk *w, const fth__ew_program *e, const tail_plan *t,
               const fth_call *call)
{
    fth__ew_tail *o = &a->tail;
    FTH_ASSERT(!t->partial || call->scratch);
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
    o->block = t->block;
    o->super = e->order.super;
    o->segments = t->segments;
    o->joined = t->joined;
    o->partial = t->partial ? (char *)call->scratch : NULL;
    a->rows = a->chunks = a->loops = a->rounds = 1;
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
    bool use = !b->interpreted && takes_vectors(t, outputs, w->extent[w->n_axes - 1], vec) &&
               lies_well(w, b->e, false);
    const fth__jit_code *code;
    FTH_TRY(code_for(b, w, use, &code));
    use = use && code;
    fth__ew_args a;
    fill_args(&a, w, b->e, use ? vec : 1);
    fill_tail(&a, w, b->e, t, b->call);
    const int64_t items = outputs / (use ? vec : 1), most = MOST_ITEMS / items;
    const int64_t across = !t->partial ? 1 : t->segments < most ? t->segments : most;
    FTH_ASSERT(items > 0 && across >= 1 && items * across <= MOST_ITEMS);
    a.chunks = (uint32_t)across;
    set_magic((uint32_t)items, &a.row_magic, &a.row_shift);
    return launch(b, code, &a, blocks_for(items * across, THREADS),
                  t->partial ? blocks_for(t->segments, across) : 1, 0);
}

/* ---- rows ---- */

/* Whether the rows of the walk follow each other in every input. */
bool rows_follow(const walk *w, int n_in)
{
    bool follow = w->n_axes == 1;
    for (int j = 0; j < n_in; j++) follow &= w->stride[j][0] == w->along[j] * w->n;
    return follow;
}

/* Whether items of neighbours may go along rows, or over their ends. */
bool takes_items(const walk *w, const fth__ew_program *e)
{
    const int vec = e->shape.vec;
    if (w->n % vec == 0 && !e->shape.tiny) return lies_well(w, e, false);
    return e->shape.brief && rows_follow(w, n_before(e)) && items_of(w) % vec == 0 &&
           lies_well(w, e, true);
}

/* Rows at the end of a launch that items, which go over the ends of rows, leave over. */
int64_t rows_over(const walk *w, const fth__ew_program *e)
{
    const bool over = e->shape.brief && (e->shape.tiny || w->n % e->shape.vec != 0) &&
                      rows_follow(w, n_before(e)) && lies_well(w, e, true);
    return over && items_of(w) > e->shape.vec ? items_of(w) % e->shape.vec : 0;
}

/* Elements of a brief row in shared memory: an odd number of the words that are read at once, so
 * that threads side by side read from different banks. */
uint32_t pitch_of(const tail_plan *t, uint32_t length, int vec, bool crossing)
{
    const uint64_t item = t->value * (uint64_t)vec, word = item < 16 ? item : 16;
    const uint32_t unit = (uint32_t)(word / t->value);
    return crossing ? length | 1u : ((length + unit - 1) / unit | 1u) * unit;
}

/* Rows of one task, which reads so many bytes: as many as it takes, but every multiprocessor gets
 * some. */
uint32_t rows_of_task(int64_t rows, int64_t n, const tail_plan *t, uint64_t read, uint64_t bytes,
                      uint64_t room)
{
    const int64_t items = (int64_t)(read / t->value) / (n > 0 ? n : 1);
    const int64_t fit = (int64_t)(room / bytes), spread = rows / (2 * FEW_ROWS);
    int64_t each = items < fit ? items : fit;
    each = each < spread ? each : spread;
    return (uint32_t)(each < 1 ? 1 : each);
}

/* How the rows of a launch become tasks, and what they take of shared memory: rows whose elements
 * lie there, or that are joined in any order. */
unsigned lay_rows(fth__ew_args *a, const walk *w, const fth__ew_program *e, const tail_plan *t,
                  bool use)
{
    const int vec = use ? e->shape.vec : 1, unroll = use ? e->shape.unroll : e->shape.unroll_any;
    const bool brief = e->shape.brief;
    const int64_t rows = items_of(w), n = w->n;
    a->seg_len = (uint32_t)(brief ? (n > 0 ? n : 1) : t->block);
    a->crossing = n % vec != 0;
    a->pitch = pitch_of(t, a->seg_len, vec, a->crossing);
    const uint64_t values = brief ? a->pitch * t->value : 0;
    if (brief) {
        a->rows = rows_of_task(rows, n, t, CHUNK, values, SHARED);
        /* tasks begin with a whole item */
        if (a->crossing && a->rows > (uint32_t)vec) a->rows -= a->rows % (uint32_t)vec;
        if (a->crossing && a->rows % (uint32_t)vec != 0) a->rows = (uint32_t)vec;
    }
    a->flat = a->rows == 1 || rows_follow(w, n_before(e));
    const int64_t longest = (int64_t)a->segs * a->seg_len, most = n < longest ? n : longest;
    a->rounds = blocks_for((int64_t)a->rows * most / vec, THREADS * unroll);
    if (a->rounds < 1) a->rounds = 1;
    a->tasks = (uint32_t)(t->chunks > 1 ? rows * t->chunks : blocks_for(rows, a->rows));
    a->loops = a->tasks < MANY_TASKS ? 1 : blocks_for(a->tasks, SMS * WAVES * e->shape.blocks);
    if (n > 0 && n < MOST_ITEMS) set_magic((uint32_t)n, &a->row_magic, &a->row_shift);
    FTH_ASSERT(t->chunks > 1 || (int64_t)a->tasks * a->rows >= rows);
    FTH_ASSERT((int64_t)a->loops * blocks_for(a->tasks, a->loops) >= a->tasks);
    a->part_at = (uint32_t)((values * a->rows + 15) / 16 * 16);
    return a->part_at + (unsigned)(brief ? 0 : (1 + THREADS / 32) * t->wide);
}

/* The same of rows whose threads read what they join: only blocks lie in shared memory. */
unsigned lay_lanes(fth__ew_args *a, const walk *w, const fth__ew_program *e, const tail_plan *t,
                   bool use)
{
    const int64_t rows = items_of(w), n = w->n;
    const int64_t unit = use && e->shape.inside > 0 ? e->shape.vec : t->block;
    a->seg_len = (uint32_t)t->block;
    a->units = blocks_for(n, unit);
    a->part_pitch = (uint32_t)(t->partial ? 0 : t->segments) | 1u;
    const uint64_t parts = a->part_pitch * t->wide;
    if (!t->partial) a->rows = rows_of_task(rows, n, t, READ, parts, PARTS);
    a->tasks = (uint32_t)(t->partial ? rows * t->chunks : blocks_for(rows, a->rows));
    a->flat = a->rows == 1 || rows_follow(w, n_before(e));
    FTH_ASSERT(t->partial || (int64_t)a->tasks * a->rows >= rows);
    set_magic(a->units > 0 ? a->units : 1, &a->row_magic, &a->row_shift);
    return t->partial ? 0 : (unsigned)(parts * a->rows);
}

/* Compiled code takes long blocks where any will do: fewer go through memory. */
void widen_blocks(tail_plan *t, int64_t n)
{
    while (t->block < n && t->block < FREE_BLOCK) t->block *= 2;
    t->segments = (n + t->block - 1) / t->block;
    t->partial = t->segments > 1;
    t->segs = 1;
    t->chunks = (uint32_t)(t->segments > 1 ? t->segments : 1);
}

/* One long sum has superblocks whose blocks one thread joins in order, at about 8 cycles each: as
 * long as reading a fifteenth of them takes. So the first blocks of every superblock are read by a
 * launch of their own, and joined while the next one reads the others. */
fth_status run_ahead(const job *b, const fth__jit_code *code, fth__ew_args *a, unsigned shared,
                     int64_t *joined)
{
    const int64_t segments = a->tail.segments, groups = (segments + a->group - 1) / a->group;
    const uint32_t cut = a->group - (a->group + 7) / 8;
    for (int half = 0; half < 2; half++) {
        a->group_from = half == 0 ? 0 : cut;
        a->group_to = half == 0 ? cut : a->group;
        a->group_chunks = blocks_for(a->group_to - a->group_from, a->segs);
        a->chunks = (uint32_t)(groups * a->group_chunks);
        a->tasks = a->count * a->chunks;
        a->ahead = half == 0 ? 0 : (uint32_t)groups * a->count;
        FTH_TRY(launch(b, code, a, a->ahead + a->tasks, 1, shared));
    }
    *joined = cut;
    return FTH_OK;
}

/* Tiny rows: as many of a thread as an item has elements. */
fth_status run_tiny(const job *b, const walk *w, const fth__jit_code *code, const tail_plan *t)
{
    const int out = n_before(b->e), vec = b->e->shape.vec;
    fth__ew_args a;
    fill_args(&a, w, b->e, 1);
    fill_tail(&a, w, b->e, t, b->call);
    a.flat = a.tail.first && a.tail.last && w->stride[out][0] == 1 && is_aligned(w, out, vec);
    return launch(b, code, &a, blocks_for(a.count / (uint32_t)vec, THREADS), 1, 0);
}

fth_status run_rows(const job *b, const walk *w, tail_plan *t)
{
    const int64_t over = b->interpreted ? 0 : rows_over(w, b->e);
    if (over > 0) {
        const walk most = part_of(w, 0, w->extent[0] - over),
                   few = part_of(w, w->extent[0] - over, over);
        const job interpreted = {b->call, b->e, true};
        FTH_TRY(run_rows(b, &most, t));
        return run_rows(&interpreted, &few, t);
    }
    bool use = !b->interpreted && takes_items(w, b->e);
    const fth__jit_code *code;
    FTH_TRY(code_for(b, w, use, &code));
    use = use && code;
    if (use && b->e->shape.tiny) return run_tiny(b, w, code, t);
    if (code && b->e->shape.free) widen_blocks(t, w->n);
    fth__ew_args a;
    fill_args(&a, w, b->e, 1);
    fill_tail(&a, w, b->e, t, b->call);
    a.chunks = t->chunks;
    a.segs = t->segs;
    const bool staged = b->e->shape.brief || b->e->shape.free;
    const unsigned shared = staged ? lay_rows(&a, w, b->e, t, use) : lay_lanes(&a, w, b->e, t, use);
    FTH_ASSERT(b->e->shape.brief || (int64_t)a.segs * a.chunks >= t->segments);
    a.group = a.group_to = (uint32_t)t->segments;
    a.group_chunks = t->chunks;
    const int64_t per = b->e->order.super / t->block;
    if (code && t->partial && b->e->order.has_super && per >= AHEAD_FROM && a.count <= FEW_SUMS &&
        w->lo % b->e->order.super == 0) {
        a.group = (uint32_t)per;
        return run_ahead(b, code, &a, FTH__EW_AHEAD_TILE * (unsigned)t->wide, &t->joined);
    }
    return launch(b, code, &a, blocks_for(a.tasks, a.loops), 1, shared);
}

fth_status run_tail(const job *b, const walk *w)
{
    tail_plan t = plan_tail(b->e, w->n, items_of(w));
    FTH_TRY(b->e->shape.rows ? run_rows(b, w, &t) : run_columns(b, w, &t));
    if (!t.partial) return FTH_OK;
    fth__ew_args a;
    fill_args(&a, w, b->e, 1);
    fill_tail(&a, w, b->e, &t, b->call);
    return fth__ew_finish(b->call, &a, n_before(b->e),
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
        FTH_ASSERT(flat.extent[0] > 1);
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

/* As ops/fused.c adds. */
static void set_order(fth__ew_program *e)
{
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
    e->order.exact = t.exact;
}

void fth__ew_program_init(fth__ew_program *e, const fth_node *node, const fth__ew_order *order)
{
    fth__ew_shape_of(&e->p, node->in, &e->shape);
    memset(&e->order, 0, sizeof e->order);
    if (!has_tail(e)) return;
    if (order)
        e->order = *order;
    else
        set_order(e);
    e->shape.brief = e->order.block == 1 && !e->order.has_super;
    e->shape.lanes = e->order.lanes;
    e->shape.free = e->order.exact && e->shape.rows && e->order.whole >= FREE_FROM;
    e->shape.super = e->order.has_super;
    if (e->shape.rows && !e->shape.brief && !e->shape.free)
        fth__ew_shape_rows(&e->shape, e->order.block, e->order.whole);
    if (e->shape.brief) fth__ew_shape_brief(&e->shape, e->p.n_in, e->order.whole);
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

/* Whether calls on the whole value take items of neighbours; pieces nearly always do the same. */
static bool expects_vectors(const fth__ew_program *e)
{
    const fth__program *p = &e->p;
    const int vec = e->shape.vec, inner = e->shape.inner;
    if (inner < 0) return false;
    int64_t outputs = 1;
    for (int k = 0; k < p->n_axes; k++) outputs *= k == p->tail_dim ? 1 : p->size[k];
    if (has_tail(e) && !e->shape.rows) {
        const tail_plan t = plan_tail(e, p->size[p->tail_dim], outputs);
        return takes_vectors(&t, outputs, p->size[inner], vec);
    }
    if (p->size[inner] % vec == 0 && !e->shape.tiny) return true;
    if (has_tail(e) && !e->shape.brief) return false;
    for (int i = 0; i < p->n_in; i++) /* dense operands of all axes are one long line */
        if (e->shape.where[i] != FTH__EW_HELD && e->shape.where[i] != FTH__EW_DENSE) return false;
    return true;
}

/* Of a small value only what was loaded before the run is used. */
static bool is_interpreted(const fth_call *call, const fth__ew_program *e)
{
    return elements_of(&e->p) < FTH__WORTH_NOTHING &&
           !fth__jit_has(call->device, &e->p, &e->shape, expects_vectors(e));
}

fth_status fth__ew_run(const fth_call *call, const fth__ew_program *e)
{
    walk w;
    const job b = {call, e, is_interpreted(call, e)};
    walk_init(&w, call, e);
    return run_walk(&b, &w);
}

fth_status fth__ew_prepare(const fth_node *node, const fth__ew_program *e, fth_device *device,
                           int64_t runs, fth_err *err)
{
    const fth__jit_code *code;
    const int64_t n = elements_of(&e->p);
    if (n == 0 || (n < FTH__WORTH_NOTHING && runs == 0)) return FTH_OK;
    const bool kept = node->graph && fth_context_cache_dir(node->graph->ctx);
    return fth__jit_get(device, node, &e->p, &e->shape, expects_vectors(e),
                        fth__worth_before(&e->p, n, runs, kept), NULL, &code, err);
}

static void make(fth__ew_program *e, const fth_node *node)
{
    memcpy(&e->p, node->attr, sizeof e->p);
    fth__ew_program_init(e, node, NULL);
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

/* The view that look `l` stands for. */
static const fth__view_axis *view_of(const fth__program *p, uint32_t l)
{
    for (int i = 0; i < p->n_views; i++)
        if (fth__view_looks(&p->view[i]) && l-- == 0) return &p->view[i];
    return NULL;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const fth__view_axis *v = view_of((const fth__program *)node->attr, fault->code);
    int64_t place[FTH_MAX_AXES], left = (int64_t)fault->where;
    if (!v || v->rows < 0) return FTH_FAIL(err, FTH_E_INTERNAL, "fused: an index that is nobody's");
    const fth_node *gather = fth__gather_of(node, v);
    const fth_desc *d = &gather->in[1];
    for (int k = d->n_axes - 1; k >= 0; k--) {
        place[k] = left % d->size[k];
        left /= d->size[k];
    }
    return fth__index_fail_at(gather, 1, place, fault->value, gather->in[0].axis[v->gather_dim],
                              v->limit, err);
}

FTH_CUDA_KERNEL(fused) = {
    .op = "fused", .scratch = scratch, .run = run, .prepare = prepare, .explain = explain};
