/* fused_inner.h - a reduction inside the one of the tail: what an item joins is what its elements
 * along another axis come to.
 *
 * One element after the other, rounded to the dtype of their result, as ops/fused.c does it: so
 * nothing is left in memory between two reductions. Before it stand operands, fth__hold, fth__fetch
 * and fth__reduced of them, and
 *   INNER_RED INNER_TO        fth_red and the dtype of its results, as TAIL_RED and TAIL_TO
 *   INNER_MEMORY INNER_LOAD   that dtype in memory, and how it becomes a value
 * and behind it batch with the same functions, for the loops of fused_body.h.
 */
#ifndef FTH_CUDA_FUSED_INNER_H
#define FTH_CUDA_FUSED_INNER_H

#include "cuda/program/join.h"

struct batch {
    operands of; /* what is the same everywhere */
    value v[VEC];

    FTH__METHOD void held(const batch &o)
    {
        of.held(o.of);
    }
};

FTH__MATH void fth__hold(const fth__ew_args &a, batch &b)
{
    fth__hold(a, b.of);
}

FTH__MATH void fth__fetch(const fth__ew_args &a, const place &p, int64_t at, batch &b)
{
    wide sum[VEC];
    place tap = p;
#pragma unroll
    for (int e = 0; e < VEC; e++) fth__join_start(INNER_RED, INNER_TO, &sum[e]);
#pragma unroll 2
    for (int64_t i = 0; i < a.inner; i++) {
        operands o;
        o.held(b.of);
        fth__fetch(a, tap, at, o);
#pragma unroll
        for (int j = 0; j < N_IN; j++) tap.off[j] += a.operand[j].inner;
#pragma unroll
        for (int e = 0; e < VEC; e++)
            sum[e] = fth__join(INNER_RED, sum[e], fth__widen<wide>(fth__reduced(a, o, e)));
    }
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        INNER_MEMORY rounded;
        fth__store_as(INNER_TO, (char *)&rounded, sum[e]);
        b.v[e] = INNER_LOAD(rounded);
    }
}

FTH__MATH value fth__reduced(const fth__ew_args &, const batch &b, int e)
{
    return b.v[e];
}

#endif
