/* test_sort_lines.c - groups of short lines: every instruction set leaves the same bytes, and they
 * are in order. unit/ops_order has what the order is.
 *
 * seconds: 3
 */
#include "cpu/backend.h"
#include "cpu/sort.h"
#include "graph/graph.h"
#include "testing/engine/op_harness.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = FTH__SORT_MOST, LINES = FTH__SORT_LINES };

static void run(const fth__sort_loops *loops, fth_dtype t, const char *x, int64_t n, int64_t lines,
                bool descending, char *value, int64_t *order)
{
    const int64_t size = fth_dtype_size(t);
    void *scratch = aligned_alloc(64, fth__sort_room(MOST, 8));
    fth__sort_group g = {.n = n,
                         .lines = lines,
                         .puts = n,
                         .step = size,
                         .value_step = size,
                         .order_step = sizeof *order,
                         .dtype = t,
                         .descending = descending,
                         .wants_value = value != NULL,
                         .wants_order = order != NULL,
                         .scratch = scratch};
    for (int64_t l = 0; l < lines; l++) {
        g.line[l] = x + l * n * size;
        g.value[l] = value ? value + l * n * size : NULL;
        g.order[l] = order ? (char *)(order + l * n) : NULL;
    }
    loops->group(&g);
    free(scratch);
}

/* The same lines side by side, from the middle on `gap` elements apart. */
static void try_across(const fth__sort_loops *loops, fth_dtype t, const char *x, int64_t n,
                       int64_t lines, int64_t gap, bool descending, const char *want)
{
    const int64_t size = fth_dtype_size(t), pitch = lines + gap;
    void *scratch = aligned_alloc(64, fth__sort_room(MOST, 8));
    char *in = calloc((size_t)(n * pitch), (size_t)size),
         *out = calloc((size_t)(n * pitch), (size_t)size);
    fth__sort_group g = {.n = n,
                         .lines = lines,
                         .puts = n,
                         .step = pitch * size,
                         .value_step = pitch * size,
                         .dtype = t,
                         .descending = descending,
                         .wants_value = true,
                         .scratch = scratch};
    for (int64_t l = 0; l < lines; l++) {
        const int64_t at = (l < lines / 2 ? l : l + gap) * size;
        g.line[l] = in + at;
        g.value[l] = out + at;
        for (int64_t i = 0; i < n; i++)
            memcpy(in + i * pitch * size + at, x + (l * n + i) * size, (size_t)size);
    }
    loops->group(&g);
    for (int64_t l = 0; l < lines; l++)
        for (int64_t i = 0; i < n; i++)
            if (memcmp(g.value[l] + i * pitch * size, want + (l * n + i) * size, (size_t)size) != 0)
                SAME_BYTES(g.value[l] + i * pitch * size, want + (l * n + i) * size, size);
    free(scratch);
    free(in);
    free(out);
}

static void try_lines(fth_dtype t, int64_t n, int64_t lines, bool plain, t_random *r)
{
    const int64_t size = fth_dtype_size(t), count = n * lines;
    char *x = malloc((size_t)(count * size)), *value = malloc((size_t)(count * size)),
         *first = malloc((size_t)(count * size)), *alone = malloc((size_t)(count * size));
    int64_t *order = malloc((size_t)count * sizeof *order),
            *first_order = malloc((size_t)count * sizeof *order);
    for (int64_t i = 0; i < count * size; i++) x[i] = (char)t_random_i64(r, 0, plain ? 60 : 255);
    for (int64_t i = 0; i < count; i += 7) { /* zeros of both signs are equal */
        memset(x + i * size, 0, (size_t)size);
        if (i % 2) x[(i + 1) * size - 1] = (char)0x80;
    }
    if (t == FTH_BOOL)
        for (int64_t i = 0; i < count; i++) x[i] &= 1;
    for (int down = 0; down < 2; down++)
        for (int level = 1; level <= 4; level++) {
            const fth__sort_loops *loops = FTH_ISA_AT(fth__sort_loops, level);
            if (!loops) continue;
            run(loops, t, x, n, lines, down, value, order);
            run(loops, t, x, n, lines, down, alone, NULL);
            SAME_BYTES(value, alone, count * size); /* with positions and without */
            try_across(loops, t, x, n, lines, 0, down, value);
            try_across(loops, t, x, n, lines, 5, down, value);
            for (int64_t i = 0; i < count; i++)
                SAME_BYTES(value + i * size, x + (i / n * n + order[i]) * size, size);
            if (level > 1) {
                SAME_BYTES(value, first, count * size);
                SAME_BYTES(order, first_order, count * (int64_t)sizeof *order);
            }
            if (level > 1) continue;
            memcpy(first, value, (size_t)(count * size));
            memcpy(first_order, order, (size_t)count * sizeof *order);
        }
    free(x);
    free(value);
    free(first);
    free(alone);
    free(order);
    free(first_order);
}

TEST(every_set_sorts_to_the_same_bytes)
{
    static const int64_t lengths[] = {1, 2, 7, 16, 33, 100, 256, 257, 600, 2043};
    t_random r = t_random_make(1);
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            if (fth_dtype_is_complex((fth_dtype)t)) continue;
            try_lines((fth_dtype)t, lengths[k], LINES, true, &r);
            try_lines((fth_dtype)t, lengths[k], 11, false, &r); /* any bits: NaN of all kinds */
        }
    try_lines(FTH_U16, MOST, 40, false, &r);
    try_lines(FTH_I32, MOST, LINES, false, &r);
    try_lines(FTH_F32, MOST, 20, false, &r);
    try_lines(FTH_I64, 5000, 9, false, &r);
}
static void whole(const fth_desc *d, fth_tile *to)
{
    for (int k = 0; k < d->n_axes; k++) to->extent[k] = d->size[k];
}

/* What kernel `k` takes for the lines of a node, in bytes of the lines. */
static double room(const fth_kernel *k, const fth_node *node)
{
    fth_call call = {.node = node};
    int64_t bytes = fth_dtype_size(node->in[0].dtype);
    whole(&node->in[0], &call.in[0]);
    for (int o = 0; o < node->n_out; o++) whole(&node->out[o], &call.out[o]);
    for (int i = 0; i < node->in[0].n_axes; i++) bytes *= node->in[0].size[i];
    return (double)k->scratch(&call) / (double)bytes;
}

static void try_room(fth_dtype t, int64_t n, int64_t lines)
{
    static const char *const orders[] = {"a y", "y a"};
    for (int k = 0; k < 2; k++) {
        char axes[48];
        snprintf(axes, sizeof axes, "a=%lld y=%lld", (long long)lines, (long long)n);
        fth_graph *g = t_graph(axes);
        const fth_val v = t_input(g, "x", t, orders[k], NULL);
        LE_F64(room(&fth__cpu_sort, fth__val_node(fth_sort(v, "y", false))), 2.0);
        MADE(fth_median(v, "y"));
        int64_t ranked = 0;
        for (int64_t i = 0; i < g->n_nodes; i++)
            if (strcmp(g->node[i]->op->name, "ranked") == 0) {
                LE_F64(room(&fth__cpu_ranked, g->node[i]), 2.0);
                ranked++;
            }
        IS_TRUE(ranked > 0);
        t_graph_free(g);
    }
}

TEST(workspace_is_at_most_twice_the_lines)
{
    static const int64_t lengths[] = {1, 2, 100, 256, 257, 4097, MOST},
                         lines[] = {1, 2, 3, 7, 8, 31, 32, 70};
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
            for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++)
                if (!fth_dtype_is_complex((fth_dtype)t) && t != FTH_BOOL)
                    try_room((fth_dtype)t, lengths[k], lines[l]);
}
