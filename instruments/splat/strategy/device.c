/* device.c - steps of a refinement as graphs, for rows that lie on a device alone.
 *
 * Marks are made there, counted here (a bit a row travels) and sent back. What changes rows is
 * planned first, and a run that fails has changed nothing; between two of them nobody is asked
 * whether to go on, for rows that were grown have to be pruned too.
 */
#include "parts.h"

#include "row_ops.h"

#include <fathom/io.h>
#include <fathom/plan.h>

#include <stdio.h>
#include <string.h>

enum { STEPS = GS_PARTS * GS_ATTRIBUTES };

/* ---- marks between here and there ---- */

static fth_status read_words(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    (void)err;
    memcpy(dst, (const uint32_t *)self + lo[0], (size_t)n[0] * sizeof(uint32_t));
    return FTH_OK;
}

static fth_status read_counts(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    (void)err;
    memcpy(dst, (const int64_t *)self + lo[0], (size_t)n[0] * sizeof(int64_t));
    return FTH_OK;
}

static fth_status write_words(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    (void)err;
    memcpy((uint32_t *)self + lo[0], src, (size_t)n[0] * sizeof(uint32_t));
    return FTH_OK;
}

static int64_t blocks_of(int64_t n)
{
    return (n + GS_BLOCK - 1) / GS_BLOCK;
}

static fth_sink sink_of(const gs_marks *m)
{
    fth_sink s = fth_sink_discard(FTH_I32, 1, (int64_t[]){blocks_of(m->n) * GS_BLOCK / GS_WORD});
    s.self = m->word;
    s.write = write_words;
    return s;
}

static fth_val words_of(fth_graph *g, const char *name, const gs_marks *m)
{
    fth_source s = fth_source_zeros(FTH_I32, 1, (int64_t[]){blocks_of(m->n) * GS_BLOCK / GS_WORD});
    s.self = m->word;
    s.read = read_words;
    return fth_input(g, name, FTH_I32, "word", s);
}

static fth_val counts_of(fth_graph *g, const char *name, const gs_marks *m)
{
    fth_source s = fth_source_zeros(FTH_I64, 1, (int64_t[]){blocks_of(m->n)});
    s.self = m->before;
    s.read = read_counts;
    return fth_input(g, name, FTH_I64, "block", s);
}

/* ---- graphs over rows ---- */

static fth_graph *open_graph(const gs_rows *rows, int64_t marked)
{
    const struct axis {
        const char *name;
        int64_t size;
    } axes[] = {{"g", rows->n},
                {"xyz", 3},
                {"wxyz", 4},
                {"c", 3},
                {"seen", 2},
                {"word", blocks_of(marked) * GS_BLOCK / GS_WORD},
                {"block", blocks_of(marked)},
                {"k", gs_coefficients(rows->degree)}};
    fth_graph *g = fth_graph_create(rows->context);
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) /* a failure is the graph's */
        if (axes[i].size > 0) (void)fth_axis(g, axes[i].name, axes[i].size);
    return g;
}

static fth_val param(fth_graph *g, const gs_rows *rows, int part, int a)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", gs_attribute_names[a], part);
    return fth_param(g, name, gs_attribute_axes[a], rows->tensor[part][a]);
}

static bool go_on(void *user, const fth_progress *p)
{
    (void)user, (void)p;
    return true;
}

/* Plans, runs and forgets. */
static fth_status compute(gs_rows *rows, fth_graph *g, const fth_val *outs, int n,
                          const fth_sink *sinks, fth_err *err)
{
    fth_plan_info info;
    fth_mem_stats stats;
    fth_plan *plan = fth_plan_make(g, outs, n, &(fth_limits){0}, err);
    if (!plan) return err ? err->status : FTH_E_NOMEM;
    fth_plan_get_info(plan, &info);
    fth_mem_get_stats(rows->mem, &stats);
    if (stats.used_bytes + info.peak_bytes > rows->planned)
        rows->planned = stats.used_bytes + info.peak_bytes;
    const fth_status s = fth_run(plan, sinks, &(fth_run_options){.progress = go_on}, NULL, err);
    fth_plan_destroy(plan);
    return s;
}

fth_status gs_device_classify(gs_refinement *r, fth_err *err)
{
    const gs_rows *rows = r->rows;
    const gs_candidates attr = {r->high, r->small};
    const fth_sink sinks[2] = {sink_of(&r->dup), sink_of(&r->split)};
    fth_graph *g = open_graph(rows, r->n);
    const fth_val in[2] = {fth_param(g, "densify", "g seen", rows->densify),
                           param(g, rows, GS_VALUE, GS_SCALING)};
    const fth_val dup = fth_custom(g, &gs_candidates_op, 2, in, &attr, sizeof attr);
    const fth_val outs[2] = {dup, fth_out(dup, 1)};
    const fth_status s = compute(r->rows, g, outs, 2, sinks, err);
    fth_graph_destroy(g);
    return s;
}

fth_status gs_device_judge(gs_refinement *r, fth_err *err)
{
    const gs_rows *rows = r->rows;
    const gs_unwanted attr = {r->faint, r->huge};
    const fth_sink sink = sink_of(&r->gone);
    fth_graph *g = open_graph(rows, rows->n);
    const fth_val in[3] = {param(g, rows, GS_VALUE, GS_SCALING),
                           param(g, rows, GS_VALUE, GS_ROTATION),
                           param(g, rows, GS_VALUE, GS_OPACITY)};
    const fth_val gone = fth_custom(g, &gs_unwanted_op, 3, in, &attr, sizeof attr);
    const fth_status s = compute(r->rows, g, &gone, 1, &sink, err);
    fth_graph_destroy(g);
    return s;
}

/* The four arrays that a split changes; all others are copied. */
static const int shape[GS_SPLIT_PARTS] = {GS_MEANS, GS_SCALING, GS_ROTATION, GS_OPACITY};

static bool is_shape(int part, int a)
{
    return part == GS_VALUE && a != GS_SH_0 && a != GS_SH_N;
}

fth_status gs_device_grow(gs_refinement *r, fth_err *err)
{
    const gs_rows *rows = r->rows;
    gs_growth attr = {.n = r->n,
                      .dups = r->dup.count,
                      .splits = r->split.count,
                      .seed = r->rules->seed,
                      .iteration = r->iteration,
                      .revised_opacity = r->rules->revised_opacity};
    fth_val in[GS_SPLIT_PARTS + GS_GROWTH_MARKS], outs[STEPS];
    int n = 0;
    fth_graph *g = open_graph(rows, r->n);
    fth_val *marks = in + GS_SPLIT_PARTS;
    marks[GS_DUP_WORDS] = words_of(g, "dup", &r->dup);
    marks[GS_SPLIT_WORDS] = words_of(g, "split", &r->split);
    marks[GS_DUP_BEFORE] = counts_of(g, "dups before", &r->dup);
    marks[GS_SPLIT_BEFORE] = counts_of(g, "splits before", &r->split);
    for (int i = 0; i < GS_SPLIT_PARTS; i++) in[i] = param(g, rows, GS_VALUE, shape[i]);
    const fth_val grown =
        fth_custom(g, &gs_split_op, GS_SPLIT_PARTS + GS_GROWTH_MARKS, in, &attr, sizeof attr);
    for (int i = 0; i < GS_SPLIT_PARTS; i++)
        outs[n++] = fth_assign(in[i], i ? fth_out(grown, i) : grown);
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            if (!rows->tensor[p][a] || is_shape(p, a) ||
                gs_columns((gs_attribute)a, rows->degree) == 0)
                continue;
            attr.moments = p != GS_VALUE;
            fth_val one[1 + GS_GROWTH_MARKS] = {param(g, rows, p, a)};
            memcpy(one + 1, marks, GS_GROWTH_MARKS * sizeof *marks);
            outs[n++] = fth_assign(
                one[0], fth_custom(g, &gs_copy_op, 1 + GS_GROWTH_MARKS, one, &attr, sizeof attr));
        }
    fth_sink sinks[STEPS] = {0};
    const fth_status s = compute(r->rows, g, outs, n, sinks, err);
    fth_graph_destroy(g);
    return s;
}

fth_status gs_device_close(gs_rows *rows, const gs_marks *gone, fth_err *err)
{
    gs_closing attr = {.n = rows->n, .kept = rows->n - gone->count};
    while (attr.first < rows->n && !gs_marks_has(gone, attr.first)) attr.first++;
    fth_val outs[STEPS];
    int n = 0;
    fth_graph *g = open_graph(rows, rows->n);
    const fth_val words = words_of(g, "gone", gone), before = counts_of(g, "gone before", gone);
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            if (!rows->tensor[p][a] || gs_columns((gs_attribute)a, rows->degree) == 0) continue;
            const fth_val in[GS_CLOSE_INPUTS] = {param(g, rows, p, a), words, before};
            outs[n++] = fth_assign(
                in[0], fth_custom(g, &gs_close_op, GS_CLOSE_INPUTS, in, &attr, sizeof attr));
        }
    fth_sink sinks[STEPS] = {0};
    const fth_status s = compute(rows, g, outs, n, sinks, err);
    fth_graph_destroy(g);
    return s;
}

uint64_t gs_device_bytes(int64_t n)
{
    const uint64_t marks = (uint64_t)blocks_of(n) * (GS_BLOCK / 8 + sizeof(int64_t));
    return 2 * marks + (20 << 20); /* rows that close up pass through 16 MiB; pages are 2 MiB */
}
