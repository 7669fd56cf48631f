/* squares_kernels.c - a kernel of somebody else, compiled once per instruction set. */
#include "squares.h"

#define FTH_VECTOR_REAL 64
#include <fathom/vector.h>

static double sum(const double *x, int64_t n)
{
    vr all = v_set(0);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vr v = v_load(x + i);
        all = v_fma(v, v, all);
    }
    const vr rest = v_load_some(x + i, (int)(n - i));
    return v_total(v_fma(rest, rest, all));
}

const squares_loops FTH_ISA_NAME(squares) = {sum};
