/* ranked.c - elements at places of the sorted order: short lines by the network that sorts several
 * at once (sort.h), long ones and few by selection (select.h).
 */
#include "ops/ranked_walk.h"

#include "base/checked.h"
#include "cpu/across.h"
#include "cpu/select.h"
#include "cpu/sort.h"

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__ranked_attr *)node->attr)->axis);
}

static int64_t lines_of(const fth_call *call)
{
    int64_t lines = 1;
    for (int i = 0; i < call->node->out[0].n_axes; i++) lines *= call->out[0].extent[i];
    return lines;
}

static bool in_groups(const fth_call *call, int dim)
{
    const int64_t n = call->in[0].extent[dim], size = fth_dtype_size(call->node->in[0].dtype);
    return n <= FTH__SORT_FEW && fth__sort_fits(n, size, lines_of(call));
}

/* Lines brought along memory at once; one, too, if its elements are not neighbours. */
static int64_t lines_at_once(const fth_call *call, int dim)
{
    const fth_desc *d = &call->node->in[0];
    const int64_t lines = lines_of(call);
    if (dim == d->n_axes - 1) return 1;
    /* with what selection takes, twice the bytes of all lines at most */
    return fth__max_i64(1, fth__min_i64(lines, fth__across_lines(call->in[0].extent[dim],
                                                                 fth_dtype_size(d->dtype))));
}

static uint64_t scratch(const fth_call *call)
{
    const int dim = dim_of(call->node);
    const int64_t n = call->in[0].extent[dim], size = fth_dtype_size(call->node->in[0].dtype);
    if (in_groups(call, dim)) return fth__sort_room(n, size);
    return (uint64_t)((lines_at_once(call, dim) + 1) * n * size);
}

/* Lines whose results are found together, and their places in the results. */
typedef struct group {
    int64_t lines, most;
    const char *line[FTH__SORT_LINES];
    int64_t index[FTH__SORT_LINES][FTH_MAX_AXES];
    uint64_t value[FTH__SORT_LINES][FTH__RANKS]; /* room for elements, one behind the other */
    int64_t position[FTH__SORT_LINES][FTH__RANKS];
} group;

static void find_short(const fth_call *call, const fth__ranked_walk *w, group *g)
{
    fth__sort_group s = {.n = w->n,
                         .lines = g->lines,
                         .puts = w->attr->n,
                         .rank = w->attr->rank,
                         .step = w->step,
                         .value_step = w->size,
                         .order_step = sizeof(int64_t),
                         .dtype = call->node->in[0].dtype,
                         .wants_value = w->wants_value,
                         .wants_order = w->wants_position,
                         .scratch = call->scratch};
    for (int64_t l = 0; l < g->lines; l++) {
        s.line[l] = g->line[l];
        s.value[l] = (char *)g->value[l];
        s.order[l] = (char *)g->position[l];
    }
    FTH_ISA_BEST(fth__sort_loops)->group(&s);
}

static void find_long(const fth_call *call, const fth__ranked_walk *w, group *g, fth__asking *ask)
{
    const int64_t bytes = w->n * w->size;
    char *along = (char *)call->scratch + bytes;
    bool brought = w->step != w->size && fth__is_across(g->line, g->lines, w->size);
    if (brought) fth__across_gather(w->size, w->n, g->lines, g->line[0], w->step, along);
    for (int64_t l = 0; l < g->lines; l++) {
        const char *line = brought ? along + l * bytes : g->line[l];
        if (!brought && w->step != w->size) {
            fth__across_gather(w->size, w->n, 1, line, w->step, along);
            line = along;
        }
        const fth__selection s = {.line = line,
                                  .n = w->n,
                                  .dtype = call->node->in[0].dtype,
                                  .ranks = w->attr->n,
                                  .rank = w->attr->rank,
                                  .wants_position = w->wants_position,
                                  .value = g->value[l],
                                  .position = g->position[l],
                                  .scratch = call->scratch,
                                  .ask = ask};
        FTH_ISA_BEST(fth__select_loops)->of[w->size](&s);
    }
}

static void find(const fth_call *call, const fth__ranked_walk *w, group *g, fth__asking *ask)
{
    if (in_groups(call, dim_of(call->node)))
        find_short(call, w, g);
    else
        find_long(call, w, g, ask);
    for (int64_t l = 0; l < g->lines; l++)
        for (int r = 0; r < w->attr->n; r++)
            fth__ranked_put(call, w, g->index[l], r, (const char *)g->value[l] + r * w->size,
                            g->position[l][r]);
    g->lines = 0;
}

static fth_status run(const fth_call *call)
{
    fth__ranked_walk w;
    group g;
    fth__ranked_init(&w, call);
    g.lines = 0;
    const int dim = dim_of(call->node);
    g.most = in_groups(call, dim) ? FTH__SORT_LINES : lines_at_once(call, dim);
    const bool is_short = in_groups(call, dim);
    /* counted and kept, and looked around once more where several elements are wanted */
    const int passes = is_short ? 1 : w.attr->n > 1 || w.wants_position ? 4 : 2;
    fth__asking ask = fth__asking_elements(call, passes);
    for (bool more = fth__loop_start(&w.loop); more && !ask.off;) {
        g.line[g.lines] = w.in + w.loop.at[0];
        memcpy(g.index[g.lines], w.loop.index, (size_t)w.loop.n * sizeof g.index[0][0]);
        more = fth__loop_next(&w.loop);
        if (++g.lines < g.most && more) continue;
        if (!is_short || fth__asking_on(&ask, (double)(g.lines * w.n))) find(call, &w, &g, &ask);
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_ranked = {.op = "ranked", .scratch = scratch, .run = run};
