/* ranked_walk.h - what the kernels of `ranked` on the CPU share: its lines, and where their results
 * go. */
#ifndef FTH_OPS_RANKED_WALK_H
#define FTH_OPS_RANKED_WALK_H

#include "ops/loop.h"
#include "ops/ranked.h"

#include <string.h>

typedef struct fth__ranked_walk {
    const fth__ranked_attr *attr;
    fth__loop loop; /* over lines: offsets in bytes of in[0], and places of the results */
    const char *in;
    int64_t n, step, size; /* of a line; step and size in bytes */
    bool wants_value, wants_position;
} fth__ranked_walk;

static inline void fth__ranked_init(fth__ranked_walk *w, const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    *w = (fth__ranked_walk){.attr = call->node->attr, .size = fth_dtype_size(d->dtype)};
    w->in = in->data;
    for (int i = 0, to = 0; i < d->n_axes; i++) {
        if (d->axis[i] == w->attr->axis) {
            w->n = in->extent[i];
            w->step = in->stride[i] * w->size;
            FTH_ASSERT(w->n == d->size[i]); /* lines are there whole */
            continue;
        }
        w->in += (out->origin[to] - in->origin[i]) * in->stride[i] * w->size;
        fth__loop_add(&w->loop, out->extent[to++], in->stride[i] * w->size, 0, 0, 0);
    }
    for (int r = 0; r < w->attr->n; r++) {
        w->wants_value |= call->out[r].data != NULL;
        w->wants_position |= call->out[w->attr->n + r].data != NULL;
    }
}

/* Result r of the line at `index`. */
static inline void fth__ranked_put(const fth_call *call, const fth__ranked_walk *w,
                                   const int64_t *index, int r, const void *value, int64_t position)
{
    const fth_tile *v = &call->out[r], *p = &call->out[w->attr->n + r];
    int64_t v_at = 0, p_at = 0;
    for (int i = 0; i < w->loop.n; i++) {
        v_at += index[i] * v->stride[i];
        p_at += index[i] * p->stride[i];
    }
    if (v->data) memcpy((char *)v->data + v_at * w->size, value, (size_t)w->size);
    if (p->data) ((int64_t *)p->data)[p_at] = position;
}

#endif
