/* group_steps_kernels.c - iterations of the loadings of a group, lanes over genes, once for each
 * instruction set. No FMA contraction, so all of them give the same bits.
 */
#define FTH_VECTOR_REAL 64
#include "group_steps.h"

#include <fathom/vector_wide.h>

/* One iteration of LANES genes, from w to next: [factor][LANES]. */
LANE void step(const double *w, const double *yf, const double *FF, int64_t factors, double *next)
{
    for (int64_t l = 0; l < factors; l++) {
        vr below = {0};
        for (int64_t k = 0; k < factors; k++) below += v_load(w + k * LANES) * FF[l * factors + k];
        const vr put = v_load(w + l * LANES) * v_load(yf + l * LANES) / (below + 1e-8);
        v_store(next + l * LANES, &put);
    }
}

/* Rows of n genes, zeros behind them, to [factor][LANES], and back. */
LANE void turn(double *to, const double *from, int64_t n, int64_t factors)
{
    for (int64_t l = 0; l < factors; l++)
        for (int64_t i = 0; i < LANES; i++) to[l * LANES + i] = i < n ? from[i * factors + l] : 0;
}

LANE void turn_back(double *to, const double *from, int64_t n, int64_t factors)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < factors; l++) to[i * factors + l] = from[l * LANES + i];
}

static void steps(const sp_group_rows *r, double *room)
{
    const int64_t L = r->factors;
    double *yf = room, *now = yf + L * LANES, *then = now + L * LANES;
    for (int64_t g = 0; r->steps > 0 && g < r->genes; g += LANES) {
        const int64_t n = r->genes - g < LANES ? r->genes - g : LANES;
        turn(yf, r->YF + g * L, n, L);
        turn(now, r->W + g * L, n, L);
        for (int64_t s = 0; s < r->steps; s++) {
            step(now, yf, r->FF, L, then);
            double *const keep = now; /* swap the buffers */
            now = then;
            then = keep;
        }
        turn_back(r->W + g * L, now, n, L);
        turn_back(r->before + g * L, then, n, L);
    }
}

const sp_group_loops FTH_ISA_NAME(sp_group) = {steps};
