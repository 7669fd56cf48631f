/* gaps.c - see gaps.h. */
#include "gaps.h"

#include <math.h>

enum { PIECE = 1024 }; /* soundings at a time */

typedef struct search {
    fth_context *context;
    float x[PIECE], y[PIECE];
    int64_t n;
    float step;                  /* km */
    float (*least)[SO_GAP_SIDE]; /* squares */
} search;

/* One row of the grid. No two rows share a number, so it does not matter who takes which. */
static void search_row(void *arg, int64_t row, int worker)
{
    search *s = arg;
    const so_gap_loops *loops = FTH_ISA_BEST(so_gap_loops);
    (void)worker;
    for (int i = 0; i < SO_GAP_SIDE; i++)
        s->least[row][i] = loops->nearest(s->x, s->y, s->n, (float)i * s->step,
                                          (float)row * s->step, s->least[row][i]);
}

/* The write of a sink: soundings come in pieces, and nothing is kept of them but the least. */
static fth_status take(void *self, const int64_t *lo, const int64_t *n, const void *src,
                       fth_err *err)
{
    search *s = self;
    const float *at = src;
    (void)lo;
    for (int64_t from = 0; from < n[0]; from += s->n) {
        s->n = n[0] - from < PIECE ? n[0] - from : PIECE;
        for (int64_t i = 0; i < s->n; i++) s->x[i] = *at++, s->y[i] = *at++;
        FTH_TRY(fth_context_loop(s->context, "gaps", SO_GAP_SIDE, search_row, s, err));
    }
    return FTH_OK;
}

fth_status so_gaps_find(so_gaps out, double *widest, const fth_stage_call *call,
                        const fth_source *soundings, double size, fth_err *err)
{
    search s = {call->context, .step = (float)(size / (SO_GAP_SIDE - 1)), .least = out};
    float *gap = &out[0][0];
    fth_sink sink = fth_sink_planned(FTH_F32, 2, soundings->size);
    sink.self = &s;
    sink.write = take;
    for (int i = 0; i < SO_GAP_SIDE * SO_GAP_SIDE; i++) gap[i] = INFINITY;
    FTH_TRY(fth_source_copy(soundings, &sink, fth_context_mem(call->context),
                            fth_stage_run_progress, (void *)(uintptr_t)call, err));
    for (int i = 0; i < SO_GAP_SIDE * SO_GAP_SIDE; i++)
        *widest = fmax(*widest, (double)(gap[i] = sqrtf(gap[i])));
    return FTH_OK;
}
