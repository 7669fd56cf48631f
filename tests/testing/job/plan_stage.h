/* testing/job/plan_stage.h - a graph of 20000 rows with an input that is made as it is read, and
 * values planned and run under a budget. */
#ifndef FATHOM_TESTING_PLAN_STAGE_H
#define FATHOM_TESTING_PLAN_STAGE_H

#include "testing/test.h"

#include <fathom/fathom.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 20000, COLS = 4 };

/* ---- a small world ---- */

typedef struct stage {
    fth_context *ctx;
    fth_graph *g;
    int64_t reads; /* calls of the source */
} stage;

static inline fth_status read_waves(void *self, const int64_t *lo, const int64_t *n, void *dst,
                                    fth_err *err)
{
    (void)err;
    ((stage *)self)->reads++;
    float *out = dst;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            *out++ = (float)(((lo[0] + i) * 7919 + (lo[1] + j) * 104729) % 1009) / 1009.0f - 0.5f;
    return FTH_OK;
}

static inline void open_stage(stage *s, const char *scratch)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.scratch_dir = scratch;
    *s = (stage){0};
    OKE(fth_context_create(&s->ctx, &opt, &err), &err);
    s->g = fth_graph_create(s->ctx);
    fth_axis(s->g, "row", ROWS);
    fth_axis(s->g, "col", COLS);
}

static inline void close_stage(stage *s)
{
    fth_err err = {0};
    fth_graph_destroy(s->g);
    OKE(fth_context_destroy(s->ctx, &err), &err);
}

static inline fth_val waves(stage *s, const char *name)
{
    const fth_source src = {.kind = "waves",
                            .self = s,
                            .dtype = FTH_F32,
                            .n_axes = 2,
                            .size = {ROWS, COLS},
                            .read = read_waves};
    return fth_input(s->g, name, FTH_F32, "row col", src);
}

typedef struct taken {
    float *data;
    int64_t size[FTH_MAX_AXES];
    int n_axes;
} taken;

static inline fth_status take(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    (void)err;
    const taken *t = self;
    const float *v = src;
    int64_t at[4] = {0}, len[4] = {1, 1, 1, 1}, from[4] = {0}, size[4] = {1, 1, 1, 1};
    for (int d = 0; d < t->n_axes; d++) {
        const int k = 4 - t->n_axes + d;
        len[k] = n[d], from[k] = lo[d], size[k] = t->size[d];
    }
    for (at[0] = 0; at[0] < len[0]; at[0]++)
        for (at[1] = 0; at[1] < len[1]; at[1]++)
            for (at[2] = 0; at[2] < len[2]; at[2]++)
                for (at[3] = 0; at[3] < len[3]; at[3]++) {
                    int64_t i = 0;
                    for (int k = 0; k < 4; k++) i = i * size[k] + from[k] + at[k];
                    t->data[i] = *v++;
                }
    return FTH_OK;
}

/* Plan and run one value under a budget; the result belongs to the caller. */
static inline float *evaluate(stage *s, fth_val v, fth_limits limits, fth_plan_info *info)
{
    fth_err err = {0};
    taken t = {.n_axes = fth_val_axes(v)};
    int64_t count = 1;
    fth_sink sink = {
        .kind = "taken", .self = &t, .dtype = FTH_F32, .n_axes = t.n_axes, .write = take};
    for (int d = 0; d < t.n_axes; d++) {
        t.size[d] = sink.size[d] = fth_val_size(v, d);
        count *= t.size[d];
    }
    t.data = malloc(sizeof(float) * (size_t)count);
    fth_plan *p = fth_plan_make(s->g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    fth_plan_get_info(p, info);
    fth_run_report report;
    OKE(fth_run(p, &sink, NULL, &report, &err), &err);
    EQ_U64(report.ledger_bytes, info->peak_bytes);
    LE_F64((double)info->peak_bytes, limits.memory_bytes ? (double)limits.memory_bytes : 1e18);
    fth_plan_destroy(p);
    return t.data;
}

static inline void same_at(stage *s, fth_val v, fth_limits limits, fth_plan_info *info)
{
    fth_plan_info whole;
    int64_t count = 1;
    for (int d = 0; d < fth_val_axes(v); d++) count *= fth_val_size(v, d);
    float *a = evaluate(s, v, (fth_limits){0}, &whole), *b = evaluate(s, v, limits, info);
    SAME_BYTES(a, b, sizeof(float) * (size_t)count);
    free(a);
    free(b);
}

#endif
