/* reduce_plain.c - kernels of sum, prod, min, max, any and all.
 *
 * Three layers: a step adds elements of one dtype to wide partials, a join adds partials to
 * partials, and the walk decides which elements form a block. Integers, logic, min and max are
 * exact in any order, so they have no blocks and keep their total in the output itself.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/reduce.h"
#include "ops/scalar.h"

#include <string.h>

/* LANES: totals, superblocks and partials of 512 c128 are 24 KiB of stack, within the first cache.
 * STRIPE: additions of one lane wait for each other about four cycles, so four lanes keep an adder
 * busy. */
enum { LANES = 512, STRIPE = 4 };

typedef union part {
    double f[LANES];
    int64_t i[LANES];
    fth_c128 c[LANES];
} part;

/* acc[l] = acc[l] op elements a = 0, 1, .. of lane l, in that order. Steps in elements. */
typedef void step_fn(part *acc, const void *in, int64_t n_axis, int64_t axis_step, int64_t n_lane,
                     int64_t lane_step);
/* to[at + k] = to[at + k] op more[from + k] */
typedef void join_fn(part *to, int64_t at, const part *more, int64_t from, int64_t n);

static inline fth_c128 add_c(fth_c128 a, fth_c128 b)
{
    return (fth_c128){a.re + b.re, a.im + b.im};
}
static inline fth_c128 mul_c(fth_c128 a, fth_c128 b)
{
    return (fth_c128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/* The first NaN stays; of equal numbers the first stays. */
static inline double min_f(double a, double x)
{
    return x < a || (x != x && a == a) ? x : a;
}
static inline double max_f(double a, double x)
{
    return x > a || (x != x && a == a) ? x : a;
}
#define SUM_F(a, x) ((a) + (x))
#define PROD_F(a, x) ((a) * (x))
#define SUM_I(a, x) ((int64_t)((uint64_t)(a) + (uint64_t)(x)))
#define PROD_I(a, x) ((int64_t)((uint64_t)(a) * (uint64_t)(x)))
#define MIN_I(a, x) ((x) < (a) ? (x) : (a))
#define MAX_I(a, x) ((x) > (a) ? (x) : (a))
#define ANY_I(a, x) ((a) | ((x) != 0))
#define ALL_I(a, x) ((a) & ((x) != 0))

/* Along contiguous lines several lanes run side by side, so that one lane's additions, which must
 * wait for each other, do not leave the processor idle. */
#define DEFINE_STEP(fn, type, wide, member, GET, OP)                                               \
    static void fn(part *p, const void *in_, int64_t n_axis, int64_t axis_step, int64_t n_lane,    \
                   int64_t lane_step)                                                              \
    {                                                                                              \
        const type *in = in_;                                                                      \
        wide *acc = p->member;                                                                     \
        if (lane_step == 1) {                                                                      \
            for (int64_t a = 0; a < n_axis; a++)                                                   \
                for (int64_t l = 0; l < n_lane; l++) {                                             \
                    const wide x = GET(in[a * axis_step + l]);                                     \
                    acc[l] = OP(acc[l], x);                                                        \
                }                                                                                  \
            return;                                                                                \
        }                                                                                          \
        if (axis_step != 1) {                                                                      \
            for (int64_t a = 0; a < n_axis; a++)                                                   \
                for (int64_t l = 0; l < n_lane; l++) {                                             \
                    const wide x = GET(in[a * axis_step + l * lane_step]);                         \
                    acc[l] = OP(acc[l], x);                                                        \
                }                                                                                  \
            return;                                                                                \
        }                                                                                          \
        int64_t l = 0;                                                                             \
        for (; l + STRIPE <= n_lane; l += STRIPE) {                                                \
            wide s[STRIPE];                                                                        \
            for (int k = 0; k < STRIPE; k++) s[k] = acc[l + k];                                    \
            for (int64_t a = 0; a < n_axis; a++)                                                   \
                for (int k = 0; k < STRIPE; k++) {                                                 \
                    const wide x = GET(in[a + (l + k) * lane_step]);                               \
                    s[k] = OP(s[k], x);                                                            \
                }                                                                                  \
            for (int k = 0; k < STRIPE; k++) acc[l + k] = s[k];                                    \
        }                                                                                          \
        for (; l < n_lane; l++) {                                                                  \
            wide s = acc[l];                                                                       \
            for (int64_t a = 0; a < n_axis; a++) {                                                 \
                const wide x = GET(in[a + l * lane_step]);                                         \
                s = OP(s, x);                                                                      \
            }                                                                                      \
            acc[l] = s;                                                                            \
        }                                                                                          \
    }
#define DEFINE_JOIN(fn, member, OP)                                                                \
    static void fn(part *to, int64_t at, const part *more, int64_t from, int64_t n)                \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++)                                                            \
            to->member[at + k] = OP(to->member[at + k], more->member[from + k]);                   \
    }

#define REAL_STEPS(name, type, wide, GET)                                                          \
    DEFINE_STEP(sum_##name, type, wide, f, GET, SUM_F)                                             \
    DEFINE_STEP(prod_##name, type, wide, f, GET, PROD_F)                                           \
    DEFINE_STEP(min_##name, type, wide, f, GET, min_f)                                             \
    DEFINE_STEP(max_##name, type, wide, f, GET, max_f)
#define INT_STEPS(name, type, wide, GET)                                                           \
    DEFINE_STEP(sum_##name, type, wide, i, GET, SUM_I)                                             \
    DEFINE_STEP(prod_##name, type, wide, i, GET, PROD_I)                                           \
    DEFINE_STEP(min_##name, type, wide, i, GET, MIN_I)                                             \
    DEFINE_STEP(max_##name, type, wide, i, GET, MAX_I)
#define COMPLEX_STEPS(name, type, wide, GET)                                                       \
    DEFINE_STEP(sum_##name, type, wide, c, GET, add_c)                                             \
    DEFINE_STEP(prod_##name, type, wide, c, GET, mul_c)
/* Of integers that the loops of i64 are lent to: runs of them, along the axis or over the lanes. */
static void lend(fth_dtype t, step_fn *of, part *p, const char *in, int64_t n_axis,
                 int64_t axis_step, int64_t n_lane, int64_t lane_step)
{
    const int64_t size = fth_dtype_size(t);
    const bool along = axis_step == 1;
    const int64_t lines = along ? n_lane : n_axis, length = along ? n_axis : n_lane,
                  next = (along ? lane_step : axis_step) * size,
                  step = (along ? axis_step : lane_step) * size;
    fth__run run;
    for (int64_t k = 0; k < lines; k++)
        for (int64_t i = 0; i < length; i += FTH__RUN) {
            const int64_t n = fth__min_i64(FTH__RUN, length - i);
            fth__load_run(t, in + k * next + i * step, step, n, &run);
            part *to = (part *)(void *)&p->i[along ? k : i];
            of(to, &run, along ? n : 1, 1, along ? 1 : n, 1);
        }
}
#define LENT_STEP(red, name)                                                                       \
    static void red##_##name(part *p, const void *in, int64_t n_axis, int64_t axis_step,           \
                             int64_t n_lane, int64_t lane_step)                                    \
    {                                                                                              \
        lend(FTH_##name, red##_I64, p, in, n_axis, axis_step, n_lane, lane_step);                  \
    }
#define LENT_STEPS(name)                                                                           \
    LENT_STEP(sum, name) LENT_STEP(prod, name) LENT_STEP(min, name) LENT_STEP(max, name)
FTH__EACH_REAL(REAL_STEPS)
FTH__EACH_EARLY_INT(INT_STEPS)
LENT_STEPS(U32)
LENT_STEPS(I16)
LENT_STEPS(I8)
FTH__EACH_COMPLEX(COMPLEX_STEPS)
DEFINE_STEP(any_BOOL, uint8_t, int64_t, i, FTH__GET_TRUTH, ANY_I)
DEFINE_STEP(all_BOOL, uint8_t, int64_t, i, FTH__GET_TRUTH, ALL_I)
DEFINE_JOIN(join_sum_f, f, SUM_F)
DEFINE_JOIN(join_prod_f, f, PROD_F)
DEFINE_JOIN(join_sum_c, c, add_c)
DEFINE_JOIN(join_prod_c, c, mul_c)

static step_fn *const steps[FTH_RED_LOGSUMEXP][FTH_DTYPE_COUNT] = {
#define ROW(name, type, wide, GET) [FTH_##name] = sum_##name,
    [FTH_RED_SUM] = {FTH__EACH_REAL(ROW) FTH__EACH_INT(ROW) FTH__EACH_COMPLEX(ROW)},
#undef ROW
#define ROW(name, type, wide, GET) [FTH_##name] = prod_##name,
    [FTH_RED_PROD] = {FTH__EACH_REAL(ROW) FTH__EACH_INT(ROW) FTH__EACH_COMPLEX(ROW)},
#undef ROW
#define ROW(name, type, wide, GET) [FTH_##name] = min_##name,
    [FTH_RED_MIN] = {FTH__EACH_REAL(ROW) FTH__EACH_INT(ROW)},
#undef ROW
#define ROW(name, type, wide, GET) [FTH_##name] = max_##name,
    [FTH_RED_MAX] = {FTH__EACH_REAL(ROW) FTH__EACH_INT(ROW)},
#undef ROW
    [FTH_RED_ANY] = {[FTH_BOOL] = any_BOOL},
    [FTH_RED_ALL] = {[FTH_BOOL] = all_BOOL},
};
_Static_assert(FTH_DTYPE_COUNT == 14,
               "new dtype: give it steps above and a row in fth__reduce_dtype");

bool fth__reduce_exact(fth_red red, fth_dtype t)
{
    return fth__kind_of(t) == FTH__KIND_INT || (red != FTH_RED_SUM && red != FTH_RED_PROD);
}

/* Everything about one call that does not change from row to row. */
typedef struct work {
    fth_dtype in, out;
    fth__kind kind;
    step_fn *step;
    join_fn *join;
    fth__wide start;
    bool exact, in_out;      /* the total lies in the output, not in the state */
    int64_t wide;            /* bytes of a wide number */
    int64_t n, block, super; /* whole axis; elements per block and superblock */
    bool has_super;
} work;

static void work_init(work *w, const fth_node *node)
{
    const fth__reduce_attr *attr = node->attr;
    const fth_red red = (fth_red)attr->red;
    FTH_ASSERT((unsigned)red < FTH_RED_LOGSUMEXP);
    *w = (work){.in = node->in[0].dtype,
                .out = node->out[0].dtype,
                .n = node->in[0].size[fth__reduce_dim(node)]};
    w->kind = fth__kind_of(w->in);
    w->step = steps[red][w->in];
    w->start = fth__identity((int)red, w->out);
    w->exact = fth__reduce_exact(red, w->in);
    w->in_out = w->exact || w->in == FTH_F64 || w->in == FTH_C128;
    w->wide = w->kind == FTH__KIND_COMPLEX ? (int64_t)sizeof(fth_c128) : (int64_t)sizeof(double);
    if (w->kind == FTH__KIND_REAL) w->join = red == FTH_RED_SUM ? join_sum_f : join_prod_f;
    if (w->kind == FTH__KIND_COMPLEX) w->join = red == FTH_RED_SUM ? join_sum_c : join_prod_c;
    w->block = fth__reduce_block(w->n);
    w->super = fth__grid_superblock(w->n, w->block);
    w->has_super = !w->exact && w->super > w->block;
    FTH_ASSERT(w->step && (w->exact || w->join)); /* infer refused the others */
}

uint64_t fth__reduce_plain_state(const fth_node *node)
{
    work w;
    work_init(&w, node);
    if (w.exact || w.n <= FTH__REDUCE_SMALL) return 0;
    return (uint64_t)(w.wide * (!w.in_out + w.has_super));
}

int64_t fth__reduce_plain_grain(const fth_node *node)
{
    work w;
    work_init(&w, node);
    if (w.exact) return 0;
    /* one more product by the first number can make a NaN of an infinite complex one */
    const bool prod = ((const fth__reduce_attr *)node->attr)->red == FTH_RED_PROD;
    if (prod && w.kind == FTH__KIND_COMPLEX) return -1;
    return w.has_super ? w.super : w.block;
}

fth__join_total fth__reduce_plain_total(const fth_node *node)
{
    work w;
    work_init(&w, node);
    return (fth__join_total){.red = (fth_red)((const fth__reduce_attr *)node->attr)->red,
                             .to = w.out,
                             .kind = w.kind,
                             .in_out = w.in_out,
                             .wide = (uint64_t)w.wide,
                             .state = fth__reduce_plain_state(node)};
}

/* Reals and integers are both eight bytes, so the member does not matter for moving them. */
static inline void set(const work *w, part *p, int64_t l, fth__wide v)
{
    if (w->kind == FTH__KIND_COMPLEX)
        p->c[l] = v.c;
    else
        p->i[l] = v.i;
}

static inline fth__wide at(const work *w, const part *p, int64_t l)
{
    return w->kind == FTH__KIND_COMPLEX ? (fth__wide){.c = p->c[l]} : (fth__wide){.i = p->i[l]};
}

static void clear(const work *w, part *p, int64_t n)
{
    for (int64_t l = 0; l < n; l++) set(w, p, l, w->start);
}

/* Up to LANES results of one row. */
typedef struct lanes {
    part total, super;
    int64_t first, n; /* which lanes of the row */
} lanes;

static void load(const work *w, const fth__lines *l, const fth_call *call, lanes *s)
{
    const char *out = fth__lines_out(l) + s->first * l->out_lane_step;
    const char *state = fth__lines_state(l) + s->first * l->state_lane_step;
    clear(w, &s->total, s->n);
    clear(w, &s->super, s->n);
    if (call->first) return;
    for (int64_t i = 0; i < s->n; i++, out += l->out_lane_step, state += l->state_lane_step) {
        if (w->in_out)
            set(w, &s->total, i, fth__load(w->out, out));
        else
            memcpy((char *)&s->total + i * w->wide, state, (size_t)w->wide);
        if (w->has_super)
            memcpy((char *)&s->super + i * w->wide, state + (w->in_out ? 0 : w->wide),
                   (size_t)w->wide);
    }
}

static void save(const work *w, const fth__lines *l, const fth_call *call, const lanes *s)
{
    char *out = fth__lines_out(l) + s->first * l->out_lane_step;
    char *state = fth__lines_state(l) + s->first * l->state_lane_step;
    for (int64_t i = 0; i < s->n; i++, out += l->out_lane_step, state += l->state_lane_step) {
        if (call->last || w->in_out) fth__store(w->out, out, at(w, &s->total, i));
        if (call->last) continue;
        if (!w->in_out) memcpy(state, (const char *)&s->total + i * w->wide, (size_t)w->wide);
        if (w->has_super)
            memcpy(state + (w->in_out ? 0 : w->wide), (const char *)&s->super + i * w->wide,
                   (size_t)w->wide);
    }
}

/* Add the partials of the block that ends at global index `end`. */
static void add_block(const work *w, lanes *s, int64_t lane, const part *more, int64_t from,
                      int64_t n, int64_t end)
{
    FTH_ASSERT(lane + n <= LANES && from + n <= LANES && end <= w->n);
    if (!w->has_super) {
        w->join(&s->total, lane, more, from, n);
        return;
    }
    w->join(&s->super, lane, more, from, n);
    if (end % w->super != 0 && end != w->n) return;
    w->join(&s->total, lane, &s->super, lane, n);
    for (int64_t i = 0; i < n; i++) set(w, &s->super, lane + i, w->start);
}

/* The axis is not innermost: block by block, all lanes together. */
static void across(const work *w, const fth__lines *l, lanes *s, const char *in)
{
    const int64_t size = fth_dtype_size(w->in);
    part more;
    for (int64_t a = 0; a < l->n_axis; a += w->block) {
        const int64_t n = fth__min_i64(w->block, l->n_axis - a);
        clear(w, &more, s->n);
        w->step(&more, in + a * l->axis_step * size, n, l->axis_step, s->n, l->lane_step);
        add_block(w, s, 0, &more, 0, s->n, l->axis_lo + a + n);
    }
}

/* The axis is innermost: lane by lane, and blocks of one lane side by side. */
static void along(const work *w, const fth__lines *l, lanes *s, const char *in)
{
    const int64_t size = fth_dtype_size(w->in);
    part more;
    for (int64_t lane = 0; lane < s->n; lane++, in += l->lane_step * size)
        for (int64_t a = 0; a < l->n_axis;) {
            const int64_t left = l->n_axis - a, full = fth__min_i64(left / w->block, LANES);
            const int64_t blocks = full > 0 ? full : 1, n = full > 0 ? w->block : left;
            clear(w, &more, blocks);
            w->step(&more, in + a * size, n, 1, blocks, w->block);
            for (int64_t b = 0; b < blocks; b++) {
                a += n;
                add_block(w, s, lane, &more, b, 1, l->axis_lo + a);
            }
        }
}

fth_status fth__reduce_plain(const fth_call *call)
{
    const fth_node *node = call->node;
    work w;
    fth__lines l;
    work_init(&w, node);
    fth__lines_init(&l, call, fth__reduce_dim(node), false);
    /* Additions one by one in order are what blocks of one element are, and a single block. */
    const bool plain = w.exact || w.block == 1 || w.n <= w.block;
    FTH_ASSERT(plain || l.n_axis == 0 || l.axis_lo % w.block == 0); /* pieces start on the grid */
    FTH_ASSERT((call->first && call->last) || w.in_out || fth__reduce_plain_state(node) > 0);
    FTH__LINES_EACH(l)
    for (int64_t first = 0; first < l.n_lane; first += LANES) {
        lanes s;
        s.first = first;
        s.n = fth__min_i64(LANES, l.n_lane - first);
        const char *in = fth__lines_in(&l) + first * l.lane_step * fth_dtype_size(w.in);
        load(&w, &l, call, &s);
        if (plain)
            w.step(&s.total, in, l.n_axis, l.axis_step, s.n, l.lane_step);
        else if (l.axis_step == 1)
            along(&w, &l, &s, in);
        else
            across(&w, &l, &s, in);
        save(&w, &l, call, &s);
    }
    return FTH_OK;
}
