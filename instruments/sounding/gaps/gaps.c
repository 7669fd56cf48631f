/* gaps.c - see gaps.h. */
#include "gaps.h"

#include <math.h>

enum { PIECE = 1024 }; /* soundings at a time */

typedef struct search {
    float both[PIECE][2], x[PIECE], y[PIECE]; /* as they lie in the file, and apart */
    int64_t n;
    float step;    /* km */
    so_gaps least; /* squares */
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

fth_status so_gaps_find(so_gaps out, const fth_stage_call *call, const fth_source *soundings,
                        double size, fth_err *err)
{
    search s = {.step = (float)(size / (SO_GAP_SIDE - 1))};
    const int64_t cells = soundings->size[0];
    for (int i = 0; i < SO_GAP_SIDE * SO_GAP_SIDE; i++) (&s.least[0][0])[i] = INFINITY;
    for (int64_t from = 0; from < cells; from += s.n) {
        s.n = cells - from < PIECE ? cells - from : PIECE;
        const int64_t lo[2] = {from, 0}, n[2] = {s.n, 2};
        FTH_TRY(soundings->read(soundings->self, lo, n, s.both, err));
        for (int64_t i = 0; i < s.n; i++) s.x[i] = s.both[i][0], s.y[i] = s.both[i][1];
        FTH_TRY(fth_context_loop(call->context, "gaps", SO_GAP_SIDE, search_row, &s, err));
        if (!fth_stage_report(call, &(fth_stage_progress){.done = from + s.n, .total = cells}))
            return FTH_FAIL(err, FTH_E_CANCELLED, "the search for gaps was stopped");
    }
    for (int i = 0; i < SO_GAP_SIDE; i++)
        for (int j = 0; j < SO_GAP_SIDE; j++) out[i][j] = sqrtf(s.least[i][j]);
    return FTH_OK;
}
