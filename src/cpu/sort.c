/* sort.c - sort along an axis: short lines in groups (sort.h), values of long ones by vectors
 * (quick.h), the others and few by radix (radix.h).
 *
 * Lines that lie across memory are brought side by side first, some of them at once: a line of
 * cache has an element of each.
 */
#include "cpu/sort.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/across.h"
#include "cpu/quick.h"
#include "cpu/radix.h"
#include "ops/loop.h"
#include "ops/ops.h"

static int dim_of(const fth_node *node)
{
    const fth__axis_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static bool supports(const fth_node *node)
{
    return node->in[0].size[dim_of(node)] < UINT32_MAX;
}

static int64_t lines_of(const fth_call *call, int dim)
{
    int64_t lines = 1;
    for (int i = 0; i < call->node->in[0].n_axes; i++)
        if (i != dim) lines *= call->out[0].extent[i];
    return lines;
}

static bool in_groups(const fth_call *call, int dim)
{
    const int64_t n = call->in[0].extent[dim], size = fth_dtype_size(call->node->in[0].dtype);
    const fth__sort_loops *loops = FTH_ISA_BEST(fth__sort_loops);
    return n <= (size == 8 ? loops->most_wide : loops->most) &&
           fth__sort_fits(n, size, lines_of(call, dim));
}

/* Lines turned at once where the axis is not the last. */
static int64_t lines_at_once(const fth_call *call, int dim)
{
    const fth_desc *d = &call->node->in[0];
    const int64_t lines = lines_of(call, dim);
    if (dim == d->n_axes - 1) return 1;
    /* with the radix sort of one line, twice the bytes of all lines at most */
    return fth__max_i64(1, fth__min_i64(lines - 1, fth__across_lines(call->in[0].extent[dim],
                                                                     fth_dtype_size(d->dtype))));
}

static uint64_t scratch(const fth_call *call)
{
    const int dim = dim_of(call->node);
    const int64_t n = call->in[0].extent[dim], size = fth_dtype_size(call->node->in[0].dtype),
                  lines = lines_at_once(call, dim);
    if (in_groups(call, dim)) return fth__sort_room(n, size);
    return fth__radix_room(n, size) + (lines > 1 ? 2 * (uint64_t)(lines * n * size) : 0);
}

static void sort_group(fth__sort_group *g)
{
    FTH_ISA_BEST(fth__sort_loops)->group(g);
    g->lines = 0;
}

/* Values that are neighbours, by vectors where there are some for it. */
static bool sort_quick(const fth__radix_line *l)
{
    const int64_t size = fth_dtype_size(l->dtype);
    fth__quick_sort *sort = FTH_ISA_BEST(fth__quick_loops)->of[size];
    if (!sort || l->order || l->n < FTH__QUICK_LEAST || l->step != size || l->value_step != size)
        return false;
    FTH_ASSERT(fth__radix_room(l->n, size) >= FTH__QUICK_ROOM);
    const fth__quick_line quick = {.line = l->line,
                                   .value = l->value,
                                   .n = l->n,
                                   .rule = fth__key_rule_of(l->dtype, l->descending),
                                   .tries = fth__quick_tries(l->n),
                                   .columns = l->scratch,
                                   .ask = l->ask,
                                   .each = fth__radix_passes(l->n, size, false)};
    if (sort(&quick) && !l->ask->off) fth__radix_restore(l);
    return true;
}

static void sort_long(fth__sort_group *g, fth__asking *ask)
{
    const int64_t size = fth_dtype_size(g->dtype), bytes = g->n * size;
    char *lines = (char *)g->scratch + fth__radix_room(g->n, size),
         *values = lines + g->lines * bytes;
    const bool across =
        g->lines > 1 && fth__is_across(g->line, g->lines, size) &&
        (!g->wants_value || fth__is_across((const char *const *)g->value, g->lines, size));
    if (across) fth__across_gather(size, g->n, g->lines, g->line[0], g->step, lines);
    for (int64_t l = 0; l < g->lines; l++) {
        fth__radix_line line = {.line = g->line[l],
                                .value = g->value[l],
                                .order = g->order[l],
                                .n = g->n,
                                .step = g->step,
                                .value_step = g->value_step,
                                .order_step = g->order_step,
                                .dtype = g->dtype,
                                .descending = g->descending,
                                .scratch = g->scratch,
                                .ask = ask};
        if (across) {
            line.line = lines + l * bytes;
            line.value = g->wants_value ? values + l * bytes : NULL;
            line.step = line.value_step = size;
        }
        if (!sort_quick(&line)) fth__radix_sort(&line);
    }
    if (across && g->wants_value && !ask->off)
        fth__across_scatter(size, g->n, g->lines, values, g->value[0], g->value_step);
    g->lines = 0;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *order = &call->out[1];
    const int dim = dim_of(node);
    const int64_t size = fth_dtype_size(node->in[0].dtype), word = sizeof(int64_t),
                  n = in->extent[dim];
    FTH_ASSERT(n == node->in[0].size[dim]); /* lines are there whole */
    if (n == 0 || (!out->data && !order->data)) return FTH_OK;
    const char *base = in->data;
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++) {
        if (i == dim) continue;
        base += (out->origin[i] - in->origin[i]) * in->stride[i] * size;
        fth__loop_add(&l, out->extent[i], in->stride[i] * size, out->stride[i] * size,
                      order->stride[i] * word, 0);
    }
    fth__sort_group g = {.n = n,
                         .puts = n,
                         .step = in->stride[dim] * size,
                         .value_step = out->stride[dim] * size,
                         .order_step = order->stride[dim] * word,
                         .dtype = node->in[0].dtype,
                         .descending = ((const fth__axis_attr *)node->attr)->flag != 0,
                         .wants_value = out->data != NULL,
                         .wants_order = order->data != NULL,
                         .scratch = call->scratch};
    const bool is_long = !in_groups(call, dim);
    const int passes = is_long ? fth__radix_passes(n, size, order->data != NULL) : 1;
    fth__asking ask = fth__asking_elements(call, passes);
    const int64_t most = is_long ? lines_at_once(call, dim) : FTH__SORT_LINES;
    for (bool more = fth__loop_start(&l); more && !ask.off;) {
        g.line[g.lines] = base + l.at[0];
        g.value[g.lines] = out->data ? (char *)out->data + l.at[1] : NULL;
        g.order[g.lines] = order->data ? (char *)order->data + l.at[2] : NULL;
        more = fth__loop_next(&l);
        if (++g.lines < most && more) continue;
        if (is_long)
            sort_long(&g, &ask);
        else if (fth__asking_on(&ask, (double)(g.lines * n)))
            sort_group(&g);
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_sort = {
    .op = "sort", .supports = supports, .scratch = scratch, .run = run};
