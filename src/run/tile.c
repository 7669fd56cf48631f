/* tile.c - from a region of a value to an address.
 *
 * An arena buffer is dense over the region it holds in this iteration; foreign memory is dense over
 * the whole value. Either way a tile is a slice of a dense box, and its innermost stride is 1.
 */
#include "base/assert.h"
#include "run/run.h"

#include "array/tensor.h"

static void dense_tile(char *base, const fth_desc *d, int64_t element, const fth__range *box,
                       const fth__range *region, fth_tile *out)
{
    int64_t stride = 1;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        out->stride[i] = stride;
        out->extent[i] = region[i].hi - region[i].lo;
        out->origin[i] = region[i].lo;
        base += (region[i].lo - box[i].lo) * stride * element;
        stride *= box[i].hi - box[i].lo;
    }
    out->data = base;
}

/* A run of axes of the operand that is the same memory as a run of axes of the alias. */
typedef struct run_of_axes {
    int i, j;              /* outermost axis of either side */
    int64_t in_at, out_at; /* linear index of the first element wanted, within the run */
} run_of_axes;

/* Find the run that ends at axes (i, j), and give the alias' axes their strides. */
static run_of_axes match(const fth_node *n, const fth_tile *in, const fth__range *region, int i,
                         int j, fth_tile *out)
{
    const fth_desc *a = &n->in[0], *b = &n->out[0];
    int64_t left = i >= 0 ? a->size[i] : 1, right = b->size[j], stride = i >= 0 ? in->stride[i] : 1;
    run_of_axes r = {i, j, i >= 0 ? in->origin[i] : 0, region[j].lo};
    out->stride[j] = stride;
    while (left != right) {
        if (left < right && r.i > 0) { /* merged: outer parts continue the same run */
            r.i--;
            r.in_at += in->origin[r.i] * left;
            left *= a->size[r.i];
        } else if (left > right && r.j > 0) { /* split: each part steps over what lies inside it */
            r.j--;
            out->stride[r.j] = stride * right;
            r.out_at += region[r.j].lo * right;
            right *= b->size[r.j];
        } else {
            break; /* an empty axis: no element will be touched */
        }
    }
    return r;
}

/* A tile of the operand seen under the axes of an alias. The alias may want less than the operand
 * had to offer: each run of axes starts where the alias' region does. */
static void alias_tile(const fth_node *n, const fth_tile *in, const fth__range *region,
                       fth_tile *out)
{
    int i = n->in[0].n_axes - 1;
    const int64_t element = fth_dtype_size(n->in[0].dtype);
    char *data = in->data;
    for (int j = n->out[0].n_axes - 1; j >= 0; j--, i--) {
        const int64_t stride = i >= 0 ? in->stride[i] : 1;
        const run_of_axes r = match(n, in, region, i, j, out);
        data += (r.out_at - r.in_at) * stride * element;
        i = r.i;
        j = r.j;
    }
    out->data = data;
    for (int d = 0; d < n->out[0].n_axes; d++) {
        out->extent[d] = region[d].hi - region[d].lo;
        out->origin[d] = region[d].lo;
    }
}

int fth__buf_parity(const fth__runner *r, const fth__buf *b)
{
    return b->owner_loop < 0 ? 0 : (int)(r->begun[b->owner_loop] & 1);
}

fth_status fth__buf_check(const fth__runner *r, const fth__buf *b, const fth__range *region)
{
    const fth_plan *p = r->p;
    fth__range box[FTH_MAX_AXES];
    char name[FTH__NAME];
    if (b->kind == FTH__BUF_VIEW) return fth__buf_check(r, &p->buf[b->base], NULL);
    if (b->kind != FTH__BUF_ARENA || b->bytes == 0) return FTH_OK; /* of 0 bytes: nobody wants it */
    fth__buf_region(p, b, r->iteration, box);
    uint64_t bytes = (uint64_t)b->element;
    bool inside = true, any = true;
    for (int d = 0; d < b->desc.n_axes; d++) {
        bytes *= (uint64_t)(box[d].hi > box[d].lo ? box[d].hi - box[d].lo : 0);
        if (!region) continue;
        any = any && region[d].lo < region[d].hi;
        inside = inside && region[d].lo >= box[d].lo && region[d].hi <= box[d].hi;
    }
    if (bytes > b->bytes)
        return FTH_FAIL(
            r->err, FTH_E_INTERNAL, "%s takes %llu bytes in an iteration, %llu were planned",
            fth__buf_label(p, b, name), (unsigned long long)bytes, (unsigned long long)b->bytes);
    if (any && !inside)
        return FTH_FAIL(r->err, FTH_E_INTERNAL,
                        "a step reads more of %s than an iteration has of it",
                        fth__buf_label(p, b, name));
    return FTH_OK;
}

void fth__tile_of(const fth__runner *r, const fth__buf *b, const fth__range *region, int parity,
                  fth_tile *out)
{
    const fth_plan *p = r->p;
    fth__range box[FTH_MAX_AXES];
    switch (b->kind) {
    case FTH__BUF_VIEW: {
        const fth__unit *u = &p->unit[b->unit];
        const fth__buf *base = &p->buf[b->base];
        fth__range in[FTH_MAX_AXES];
        fth_tile t;
        FTH_ASSERT(b->unit >= 0 && b->base >= 0);
        for (int d = 0; d < u->node->in[0].n_axes; d++) {
            const fth_relation *rel = &u->rel[0][d];
            in[d] = (fth__range){0, u->node->in[0].size[d]};
            if (rel->out_dim >= 0) in[d] = fth__relation_need(rel, region[rel->out_dim], in[d].hi);
        }
        fth__tile_of(r, base, in, fth__buf_parity(r, base), &t);
        alias_tile(u->node, &t, region, out);
        return;
    }
    case FTH__BUF_FOREIGN:
    case FTH__BUF_DIRECT: {
        char *base = b->kind == FTH__BUF_DIRECT ? r->sinks[b->output].data
                     : p->device_memory ? fth__tensor_mirror(p->graph->input[b->input].param)
                                        : p->graph->input[b->input].source.data;
        FTH_ASSERT(base || fth_desc_count(&b->desc) == 0);
        for (int d = 0; d < b->desc.n_axes; d++) box[d] = (fth__range){0, b->desc.size[d]};
        dense_tile(base, &b->desc, b->element, box, region, out);
        return;
    }
    case FTH__BUF_ARENA: break;
    }
    fth__buf_region(p, b, r->iteration, box);
    FTH_ASSERT((parity == 0 || parity == 1) && (!b->double_buffered || b->owner_loop >= 0));
    FTH_ASSERT(b->bytes == 0 || b->offset + (b->double_buffered ? 2 : 1) * b->bytes <= p->faults);
    char *base = r->arena + b->offset + (b->double_buffered && parity ? b->bytes : 0);
    dense_tile(base, &b->desc, b->element, box, region, out);
}
