/* gather.c - elements and short rows chosen by an index array, a block of indices at a time.
 *
 * A row is what lies in one piece behind the last axis that the index moves along. Where nothing
 * does, the loop of the operation is run.
 */
#include "ops/gather.h"

#include "base/checked.h"
#include "cpu/backend.h"
#include "cpu/places.h"
#include "ops/indexing.h"
#include "ops/loop.h"

/* The innermost axis of the result that the index has; -1: it is one number. */
static int line_axis(const fth_node *node, const fth__gather_steps *w)
{
    int k = node->out[0].n_axes - 1;
    while (k >= 0 && w->index[k] == 0) k--;
    return k;
}

/* Bytes in one piece of v and of the result behind axis k; 0: there are several. */
static int64_t row_bytes(const fth_call *call, const fth__gather_steps *w, int k)
{
    const fth_tile *out = &call->out[0];
    int64_t bytes = fth_dtype_size(call->node->out[0].dtype);
    for (int i = call->node->out[0].n_axes - 1; i > k; i--) {
        if (out->extent[i] > 1 && (w->v[i] != bytes || w->out[i] != bytes)) return 0;
        bytes *= out->extent[i];
    }
    return bytes;
}

/* n rows along one line of the index. */
static fth_status line(const fth_call *call, const fth__gather *s, const fth__take *take, int64_t n,
                       int64_t step, char *out, const char *v, const char *index)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[1].dtype;
    const int64_t limit = node->in[0].size[s->dim];
    fth__take_dense_fn *dense = fth__take_dense(take, t, step);
    int64_t room[FTH__PLACES];
    if (dense) {
        if (dense(take, n, index, v, out)) return FTH_OK;
        return fth__index_fail(call, 1, fth__misplaced(t, n, index, step, limit),
                               node->in[0].axis[s->dim], limit);
    }
    for (int64_t i = 0; i < n; i += FTH__PLACES) {
        const int64_t more = fth__min_i64(FTH__PLACES, n - i);
        const char *at = index + i * step;
        const int64_t *place = fth__places(t, more, at, step, limit, room);
        if (!place)
            return fth__index_fail(call, 1, fth__misplaced(t, more, at, step, limit),
                                   node->in[0].axis[s->dim], limit);
        fth__take_places(take, more, place, v + i * take->from_step, out + i * take->to_step);
    }
    return FTH_OK;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    fth__gather s;
    fth__gather_steps w;
    fth__gather_get(node, &s);
    fth__gather_steps_get(call, &s, &w);
    const int k = line_axis(node, &w);
    const int64_t bytes = k < 0 ? 0 : row_bytes(call, &w, k);
    if (bytes == 0) return node->op->run(call);
    const fth__take take = {.size = bytes,
                            .by = w.axis,
                            .from_step = w.v[k],
                            .to_step = w.out[k],
                            .limit = node->in[0].size[s.dim]};
    fth__loop l = {0};
    for (int i = 0; i < k; i++) fth__loop_add(&l, out->extent[i], w.out[i], w.v[i], w.index[i], 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l))
        FTH_TRY(line(call, &s, &take, out->extent[k], w.index[k], (char *)out->data + l.at[0],
                     w.v_at + l.at[1], w.index_at + l.at[2]));
    return FTH_OK;
}

const fth_kernel fth__cpu_gather = {.op = "gather", .run = run};
