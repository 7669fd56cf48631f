/* logsumexp.h - the running value of a logarithm of a sum of exponentials, for every kernel.
 *
 * It is the largest element m and the sum of exp(x - m). The sum of a block of the grid is taken by
 * lanes that are joined by halving where the block has FTH__LSE_LONG elements or more, else in
 * order; blocks are joined in order. exp and log are those of vecmath.h, so CPU and GPU agree.
 */
#ifndef FTH_OPS_LOGSUMEXP_H
#define FTH_OPS_LOGSUMEXP_H

#include "ops/vecmath.h"

/* A warp of a GPU, and two elements for each of its threads: fewer are one thread's. */
enum { FTH__LSE_LANES = 32, FTH__LSE_LONG = 64 };

typedef struct fth__lse {
    double m, s;
} fth__lse;

FTH__MATH fth__lse fth__lse_nothing(void)
{
    return FTH__MAKE(fth__lse){-(double)INFINITY, 0.0};
}
/* What is subtracted from elements: an infinity would make NaN of itself. */
FTH__MATH double fth__lse_base(double m)
{
    return fth__fabs_f64(m) == (double)INFINITY ? 0.0 : m;
}
FTH__MATH fth__lse fth__lse_of(double m, double s)
{
    const double ends = m > 0.0 ? 1.0 : 0.0;
    return FTH__MAKE(fth__lse){m, fth__fabs_f64(m) == (double)INFINITY ? ends : s};
}
FTH__MATH fth__lse fth__lse_join(fth__lse a, fth__lse b)
{
    const double m = a.m > b.m ? a.m : b.m, base = fth__lse_base(m);
    const fth__lse sum =
        fth__lse_of(m, a.s * fth__exp_f64(a.m - base) + b.s * fth__exp_f64(b.m - base));
    const double first = b.m != b.m ? b.m : sum.m, second = b.m != b.m ? b.m : sum.s;
    return FTH__MAKE(fth__lse){a.m != a.m ? a.m : first, a.m != a.m ? a.m : second};
}
FTH__MATH double fth__lse_value(fth__lse p)
{
    return p.m + fth__log_f64(p.s);
}

#endif
