/* move.c - the one copy loop behind every operation that only moves data.
 *
 * Squares of a transposition go through a small buffer: rows of the source are read whole and rows
 * of the destination written whole, each once, so that power-of-two strides, whose rows share few
 * sets of a cache, do no harm.
 */
#include "ops/move.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/loop.h"

#include <string.h>

/* A side of a square: two lines of cache, which processors fetch in pairs. A square of one byte
 * elements is then 16 KiB, half of the first cache. */
enum { SQUARE_BYTES = 128 };

void fth__move_init(fth__move *m, const fth_call *call, int in, int out)
{
    const fth_desc *d = &call->node->out[out];
    const fth_tile *t = &call->out[out];
    *m = (fth__move){
        .n = d->n_axes, .size = fth_dtype_size(d->dtype), .dst = t->data, .src = call->in[in].data};
    for (int i = 0; i < m->n; i++) {
        m->extent[i] = t->extent[i];
        m->dst_step[i] = t->stride[i] * m->size;
    }
}

void fth__move_follow(fth__move *m, const fth_call *call, int in, int in_dim, int out, int out_dim,
                      int64_t shift)
{
    const fth_tile *t = &call->in[in];
    m->src_step[out_dim] = t->stride[in_dim] * m->size;
    m->src += (call->out[out].origin[out_dim] + shift - t->origin[in_dim]) * m->src_step[out_dim];
}

void fth__move_stretch(fth__move *m, const fth_call *call, int dim, int64_t step)
{
    m->src += call->out[0].origin[dim] * (step - 1) * m->src_step[dim];
    m->src_step[dim] *= step;
}

void fth__move_clip(fth__move *m, int dim, int64_t *origin, int64_t lo, int64_t hi)
{
    const int64_t a = fth__max_i64(lo, *origin), b = fth__min_i64(hi, *origin + m->extent[dim]);
    m->dst += (a - *origin) * m->dst_step[dim];
    m->src += (a - *origin) * m->src_step[dim];
    m->extent[dim] = fth__max_i64(b - a, 0);
    *origin = a;
}

/* Join axes that follow each other without a gap on both sides; drop axes of one element. */
static void join(const fth__move *in, fth__move *m)
{
    *m = *in;
    m->n = 0;
    for (int i = 0; i < in->n; i++) {
        if (in->extent[i] == 1) continue;
        const int last = m->n - 1;
        if (last >= 0 && m->dst_step[last] == in->extent[i] * in->dst_step[i] &&
            m->src_step[last] == in->extent[i] * in->src_step[i]) {
            m->extent[last] *= in->extent[i];
            m->dst_step[last] = in->dst_step[i];
            m->src_step[last] = in->src_step[i];
            continue;
        }
        m->extent[m->n] = in->extent[i];
        m->dst_step[m->n] = in->dst_step[i];
        m->src_step[m->n++] = in->src_step[i];
    }
    if (m->n == 0) { /* one element */
        m->extent[0] = 1;
        m->dst_step[0] = m->src_step[0] = m->size;
        m->n = 1;
    }
}

typedef void square_fn(char *dst, const char *src, int64_t n_outer, int64_t n_inner,
                       const int64_t *dst_step, const int64_t *src_step);

/* Steps are in bytes; memcpy of a constant size is one instruction and minds no alignment. */
#define DEFINE_SQUARE(bytes)                                                                       \
    static void run_##bytes(char *dst, const char *src, int64_t n_outer, int64_t n_inner,          \
                            const int64_t *dst_step, const int64_t *src_step)                      \
    {                                                                                              \
        for (int64_t o = 0; o < n_outer; o++) {                                                    \
            char *d = dst + o * dst_step[0];                                                       \
            const char *s = src + o * src_step[0];                                                 \
            for (int64_t i = 0; i < n_inner; i++)                                                  \
                memcpy(d + i * dst_step[1], s + i * src_step[1], bytes);                           \
        }                                                                                          \
    }                                                                                              \
    static void turn_##bytes(char *dst, const char *src, int64_t n_outer, int64_t n_inner,         \
                             const int64_t *dst_step, const int64_t *src_step)                     \
    {                                                                                              \
        enum { SIDE = SQUARE_BYTES / (bytes) };                                                    \
        char square[SIDE][SQUARE_BYTES];                                                           \
        for (int64_t i = 0; i < n_inner; i++)                                                      \
            memcpy(square[i], src + i * src_step[1], (size_t)(n_outer * (bytes)));                 \
        for (int64_t o = 0; o < n_outer; o++) {                                                    \
            char *d = dst + o * dst_step[0];                                                       \
            for (int64_t i = 0; i < n_inner; i++)                                                  \
                memcpy(d + i * (bytes), &square[i][o * (bytes)], bytes);                           \
        }                                                                                          \
    }
DEFINE_SQUARE(1)
DEFINE_SQUARE(2)
DEFINE_SQUARE(4)
DEFINE_SQUARE(8)
DEFINE_SQUARE(16)

static const struct {
    square_fn *run; /* any steps */
    square_fn
        *turn; /* the source is contiguous along the first axis, the destination along the second */
} squares[5] = {
    {run_1, turn_1}, {run_2, turn_2}, {run_4, turn_4}, {run_8, turn_8}, {run_16, turn_16}};

static int size_class(int64_t size)
{
    int k = 0;
    while (k < 4 && ((int64_t)1 << k) < size) k++;
    return k;
}

/* Source innermost along `near` of the destination's axes, destination along its last one. */
static void transpose(const fth__move *m, int near, char *dst, const char *src)
{
    const int last = m->n - 1, k = size_class(m->size);
    const int64_t side = SQUARE_BYTES / m->size;
    FTH_ASSERT(near >= 0 && near < last && (int64_t)1 << k == m->size);
    FTH_ASSERT(m->src_step[near] == m->size); /* rows of a square are read whole */
    const int64_t dst_step[2] = {m->dst_step[near], m->dst_step[last]};
    const int64_t src_step[2] = {m->src_step[near], m->src_step[last]};
    square_fn *const copy = dst_step[1] == m->size ? squares[k].turn : squares[k].run;
    for (int64_t o = 0; o < m->extent[near]; o += side)
        for (int64_t i = 0; i < m->extent[last]; i += side)
            copy(dst + o * dst_step[0] + i * dst_step[1], src + o * src_step[0] + i * src_step[1],
                 fth__min_i64(side, m->extent[near] - o), fth__min_i64(side, m->extent[last] - i),
                 dst_step, src_step);
}

static void row(const fth__move *m, char *dst, const char *src)
{
    const int last = m->n - 1;
    const int64_t dst_step[2] = {0, m->dst_step[last]}, src_step[2] = {0, m->src_step[last]};
    if (dst_step[1] == m->size && src_step[1] == m->size)
        memcpy(dst, src, (size_t)(m->extent[last] * m->size));
    else
        squares[size_class(m->size)].run(dst, src, 1, m->extent[last], dst_step, src_step);
}

void fth__move_run(const fth__move *move)
{
    fth__move m;
    FTH_ASSERT(move->n >= 0 && move->n <= FTH_MAX_AXES + 1);
    for (int i = 0; i < move->n; i++)
        if (move->extent[i] <= 0) return;
    join(move, &m);
    const int last = m.n - 1;
    int near = -1;
    for (int i = 0; i < last; i++)
        if (m.src_step[i] == m.size && m.src_step[last] != m.size && m.src_step[last] != 0)
            near = i;
    fth__loop l = {0};
    for (int i = 0; i < last; i++)
        if (i != near) fth__loop_add(&l, m.extent[i], m.dst_step[i], m.src_step[i], 0, 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        if (near >= 0)
            transpose(&m, near, m.dst + l.at[0], m.src + l.at[1]);
        else
            row(&m, m.dst + l.at[0], m.src + l.at[1]);
    }
}

void fth__move_fill(const fth__move *move, const void *element)
{
    fth__move m = *move;
    m.src = element;
    for (int i = 0; i < m.n; i++) m.src_step[i] = 0;
    fth__move_run(&m);
}

fth_status fth__move_same(const fth_call *call, const int *to)
{
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < call->node->in[0].n_axes; i++) {
        if (to[i] < 0) continue;
        FTH_ASSERT(fth__tile_covers(&call->in[0], i, &call->out[0], to[i], 0));
        fth__move_follow(&m, call, 0, i, 0, to[i], 0);
    }
    fth__move_run(&m);
    return FTH_OK;
}
