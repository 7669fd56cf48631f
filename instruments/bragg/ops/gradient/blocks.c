/* blocks.c - see blocks.h. */
#include "blocks.h"

enum { ROWS = 32 }; /* of a block */

int br_bar_in(const fth_node *node)
{
    return ((const br_op_attr *)node->attr)->scene.masked ? BR_IN_MASK + 1 : BR_IN_MASK;
}

fth_status br_bar_check(const fth_node *node, fth_err *err)
{
    FTH_TRY(br_op_check(node, err));
    const fth_desc want = br_op_image(node, FTH_F64);
    char text[256];
    for (int i = br_bar_in(node); i < node->n_in; i++) {
        const fth_desc *bar = &node->in[i];
        if (bar->dtype != FTH_F64 || bar->n_axes != 2 || bar->axis[0] != want.axis[0] ||
            bar->axis[1] != want.axis[1])
            return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: images are f64 [slow fast], not %s",
                            node->op->name, fth_in_format(node, i, text, sizeof text));
    }
    return FTH_OK;
}

void br_bar_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in >= BR_IN_MASK && dim == 0) out->along = FTH_ACCUMULATE;
}

int64_t br_bar_grid(const fth_node *node, int in, int dim)
{
    (void)node;
    return in >= BR_IN_MASK && dim == 0 ? ROWS : 1;
}

double br_bar_samples(const fth_call *call)
{
    const br_scene *s = &((const br_op_attr *)call->node->attr)->scene;
    return s->steps * (double)s->layers * (double)s->fast *
           (double)call->in[br_bar_in(call->node)].extent[0];
}

typedef struct batch {
    const br_blocks *b;
    int64_t from; /* first row */
} batch;

static void one_block(void *arg, int64_t i, int worker)
{
    (void)worker; /* the partial sum belongs to the block, whichever worker computes it */
    const batch *w = arg;
    const fth_call *call = w->b->call;
    const fth_tile *bar = &call->in[br_bar_in(call->node)];
    const int64_t end = bar->origin[0] + bar->extent[0], first = w->from + i * ROWS;
    double *part = w->b->part + i * w->b->size;
    w->b->start(w->b->user, part);
    for (int64_t slow = first; slow < first + ROWS && slow < end; slow++) {
        br_row row = {.slow = slow, .n = bar->extent[1]};
        br_op_mask(call, &row);
        br_bars bars = {{NULL}, {0}};
        for (int k = 0; k < call->node->n_in - br_bar_in(call->node); k++) {
            const fth_tile *t = bar + k;
            bars.data[k] = (const double *)t->data + (slow - t->origin[0]) * t->stride[0];
            bars.step[k] = t->stride[1];
        }
        w->b->row(w->b->user, &row, &bars, part);
    }
}

void br_blocks_run(br_blocks *b)
{
    const fth_tile *bar = &b->call->in[br_bar_in(b->call->node)];
    const int64_t end = bar->origin[0] + bar->extent[0], at_once = b->call->threads;
    batch w = {.b = b};
    for (w.from = bar->origin[0]; w.from < end; w.from += at_once * ROWS) {
        const int64_t left = (end - w.from + ROWS - 1) / ROWS, n = left < at_once ? left : at_once;
        fth_team_until(b->call->team,
                       (double)(w.from - bar->origin[0] + n * ROWS) / (double)bar->extent[0]);
        fth_team_run(b->call->team, n, one_block, &w);
        for (int64_t i = 0; i < n; i++) b->add(b->user, b->part + i * b->size);
    }
}
