/* scatter_add.c - elements and rows summed to where an index array says, a block of indices at a
 * time.
 *
 * Additions have the order of the operation. Sums that lie in the output become the one NaN
 * (array/nan.h) as they are stored, so that no pass over all of them has to follow.
 */
#include "ops/scatter.h"

#include "array/nan.h"
#include "base/checked.h"
#include "cpu/backend.h"
#include "cpu/places.h"
#include "ops/asking.h"
#include "ops/loop.h"

#include <string.h>

/* ---- additions ------------------------------------------------------------------------ */

/* Wide numbers to sums at to + place[i] * into + i * to_step, or side by side; steps in bytes. */
typedef void each_fn(int64_t n, const int64_t *place, int64_t into, const void *x, char *to,
                     int64_t to_step);
typedef void row_fn(int64_t n, const void *x, char *to, int64_t to_step);

#define DEFINE_ADDS(kind, wide, SUM)                                                               \
    static void each_##kind(int64_t n, const int64_t *place, int64_t into, const void *x_,         \
                            char *to, int64_t to_step)                                             \
    {                                                                                              \
        const wide *x = x_;                                                                        \
        if (into == (int64_t)sizeof(wide) && to_step == 0) {                                       \
            wide *sum = (wide *)(void *)to;                                                        \
            for (int64_t i = 0; i < n; i++) sum[place[i]] = SUM(sum[place[i]], x[i]);              \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            wide *sum = (wide *)(void *)(to + place[i] * into + i * to_step);                      \
            *sum = SUM(*sum, x[i]);                                                                \
        }                                                                                          \
    }                                                                                              \
    static void row_##kind(int64_t n, const void *x_, char *to, int64_t to_step)                   \
    {                                                                                              \
        const wide *x = x_;                                                                        \
        if (to_step == (int64_t)sizeof(wide)) {                                                    \
            wide *sum = (wide *)(void *)to;                                                        \
            for (int64_t i = 0; i < n; i++) sum[i] = SUM(sum[i], x[i]);                            \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            wide *sum = (wide *)(void *)(to + i * to_step);                                        \
            *sum = SUM(*sum, x[i]);                                                                \
        }                                                                                          \
    }
#define SUM_INT(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define SUM_REAL(a, b) fth__one_nan((a) + (b))
#define SUM_COMPLEX(a, b) fth__one_nan_c128((fth_c128){(a).re + (b).re, (a).im + (b).im})
DEFINE_ADDS(int, int64_t, SUM_INT)
DEFINE_ADDS(real, double, SUM_REAL)
DEFINE_ADDS(complex, fth_c128, SUM_COMPLEX)

typedef struct adds {
    each_fn *each;
    row_fn *row;
    int64_t wide; /* bytes of a sum */
    fth_dtype as; /* the dtype whose elements are wide numbers */
} adds;
static const adds adds_of[] = {
    [FTH__KIND_INT] = {each_int, row_int, sizeof(int64_t), FTH_I64},
    [FTH__KIND_REAL] = {each_real, row_real, sizeof(double), FTH_F64},
    [FTH__KIND_COMPLEX] = {each_complex, row_complex, sizeof(fth_c128), FTH_C128}};

/* n elements as wide numbers side by side: themselves, or in `room`. */
static const void *wide_of(const adds *a, fth_dtype t, const char *v, int64_t v_step, int64_t n,
                           fth__run *room)
{
    if (t == a->as && v_step == a->wide) return v;
    fth__load_run(t, v, v_step, n, room);
    return room;
}

/* ---- lines ---------------------------------------------------------------------------- */

_Static_assert((int)FTH__PLACES <= (int)FTH__RUN, "elements of a block of places fit a run");

/* What lines are added by, and how far they are. */
typedef struct adding {
    const adds *by;
    fth__asking ask;
} adding;

/* An index for each of n elements of the inner axis. */
static fth_status add_line(const fth__scatter_lines *l, const adds *a, int64_t n, const char *v,
                           char *to, const char *index)
{
    const fth__scatter_axis *in = &l->inner;
    const fth_dtype t = l->call->node->in[0].dtype, index_t = l->call->node->in[1].dtype;
    int64_t places[FTH__PLACES];
    fth__run room;
    for (int64_t i = 0; i < n; i += FTH__PLACES) {
        const int64_t some = fth__min_i64(FTH__PLACES, n - i);
        const char *at = index + i * in->index_step;
        const int64_t *place = fth__places(index_t, some, at, in->index_step, l->limit, places);
        if (!place)
            return fth__scatter_misplaced(
                l, fth__misplaced(index_t, some, at, in->index_step, l->limit));
        a->each(some, place, l->into_step,
                wide_of(a, t, v + i * in->v_step, in->v_step, some, &room), to + i * in->to_step,
                in->to_step);
    }
    return FTH_OK;
}

static fth_status add_long_line(const fth__scatter_lines *l, adding *w, const char *v, char *to,
                                const char *index)
{
    const fth__scatter_axis *in = &l->inner;
    for (int64_t i = 0; i < in->n; i += FTH__ASK_ELEMENTS) {
        const int64_t n = fth__min_i64(FTH__ASK_ELEMENTS, in->n - i);
        if (!fth__asking_on(&w->ask, (double)n)) return FTH_OK;
        FTH_TRY(add_line(l, w->by, n, v + i * in->v_step, to + i * in->to_step,
                         index + i * in->index_step));
    }
    return FTH_OK;
}

/* Rows that lie close together become wide numbers together. */
static void add_rows(const fth__scatter_lines *l, const adds *a, int64_t rows, const int64_t *place,
                     const char *v, char *to)
{
    const fth__scatter_axis *in = &l->inner, *out = &l->outer;
    const fth_dtype t = l->call->node->in[0].dtype;
    const bool close = in->n <= FTH__RUN && out->v_step == in->n * in->v_step;
    const int64_t most = close ? FTH__RUN / in->n : 1;
    fth__run room;
    for (int64_t r = 0; r < rows; r += most)
        for (int64_t c = 0; c < in->n; c += FTH__RUN) {
            const int64_t together = fth__min_i64(most, rows - r),
                          n = fth__min_i64(FTH__RUN, in->n - c);
            const char *x = wide_of(a, t, v + r * out->v_step + c * in->v_step, in->v_step,
                                    together * n, &room);
            for (int64_t k = 0; k < together; k++)
                a->row(n, x + k * n * a->wide,
                       to + place[r + k] * l->into_step + (r + k) * out->to_step + c * in->to_step,
                       in->to_step);
        }
}

/* An index for every row of the outer axis. */
static fth_status add_row_lines(const fth__scatter_lines *l, adding *w, const char *v, char *to,
                                const char *index)
{
    const fth__scatter_axis *out = &l->outer;
    const fth_dtype index_t = l->call->node->in[1].dtype;
    int64_t places[FTH__PLACES];
    for (int64_t i = 0; i < out->n; i += FTH__PLACES) {
        const int64_t n = fth__min_i64(FTH__PLACES, out->n - i);
        const char *at = index + i * out->index_step;
        if (!fth__asking_on(&w->ask, (double)(n * l->inner.n))) return FTH_OK;
        const int64_t *place = fth__places(index_t, n, at, out->index_step, l->limit, places);
        if (!place)
            return fth__scatter_misplaced(
                l, fth__misplaced(index_t, n, at, out->index_step, l->limit));
        add_rows(l, w->by, n, place, v + i * out->v_step, to + i * out->to_step);
    }
    return FTH_OK;
}

static fth_status add_lines(const fth__scatter_lines *l, const char *v, char *to, const char *index,
                            void *user)
{
    const fth__scatter_axis *out = &l->outer;
    if (l->inner.index_step == 0) return add_row_lines(l, user, v, to, index);
    adding *w = user;
    const int64_t n = l->inner.n, together = FTH__ASK_ELEMENTS / n;
    for (int64_t i = 0; together == 0 && i < out->n; i++)
        FTH_TRY(add_long_line(l, w, v + i * out->v_step, to + i * out->to_step,
                              index + i * out->index_step));
    for (int64_t i = 0, end; together > 0 && i < out->n; i = end) {
        end = fth__min_i64(i + together, out->n);
        if (!fth__asking_on(&w->ask, (double)((end - i) * n))) return FTH_OK;
        for (int64_t k = i; k < end; k++)
            FTH_TRY(add_line(l, w->by, n, v + k * out->v_step, to + k * out->to_step,
                             index + k * out->index_step));
    }
    return FTH_OK;
}

/* ---- sums ----------------------------------------------------------------------------- */

/* The innermost axes along which the elements of a tile, of `size` bytes, lie side by side. */
static int dense_from(const fth_desc *d, const int64_t *extent, const fth_tile *t)
{
    int k = d->n_axes;
    for (int64_t step = 1; k > 0 && (extent[k - 1] == 1 || t->stride[k - 1] == step); k--)
        step *= extent[k - 1];
    return k;
}

/* Every wide sum of the tile: zero at first, rounded into the output at last. */
static void each_sum(const fth_call *call, const fth_tile *sums, int64_t wide, bool finish)
{
    const fth_desc *d = &call->node->out[0];
    const fth_tile *out = &call->out[0];
    const int64_t size = fth_dtype_size(d->dtype);
    const int from_sums = dense_from(d, out->extent, sums),
              from_out = finish ? dense_from(d, out->extent, out) : 0,
              dense = from_sums > from_out ? from_sums : from_out;
    int64_t n = 1;
    fth__loop l = {0};
    for (int i = 0; i < d->n_axes; i++) {
        if (i < dense)
            fth__loop_add(&l, out->extent[i], sums->stride[i] * wide, out->stride[i] * size, 0, 0);
        else
            n *= out->extent[i];
    }
    for (bool more = fth__loop_start(&l); more && n > 0; more = fth__loop_next(&l)) {
        char *sum = (char *)sums->data + l.at[0];
        if (finish)
            fth__store_run(d->dtype, (char *)out->data + l.at[1], size, n, sum);
        else
            memset(sum, 0, (size_t)(n * wide));
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const adds *a = &adds_of[fth__kind_of(node->out[0].dtype)];
    const bool carried = node->op->state(node, 0) > 0;
    const fth_tile *sums = carried ? &call->state[0] : &call->out[0];
    if (call->first) each_sum(call, sums, a->wide, false);
    adding w = {a, fth__asking_elements(call, 1.0)};
    FTH_TRY(fth__scatter_walk(call, sums, a->wide, add_lines, &w));
    if (call->last && carried) each_sum(call, sums, a->wide, true);
    return FTH_OK;
}

const fth_kernel fth__cpu_scatter_add = {.op = "scatter_add", .run = run};
