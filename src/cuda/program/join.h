/* join.h - two wide numbers of a reduction become one, on the device: as ops/fused.c does it.
 *
 * Which reduction it is is known when compiled wherever speed matters. Wide numbers are double,
 * int64_t and fth_c128. Included by kernels compiled here and at run time.
 */
#ifndef FTH_CUDA_JOIN_H
#define FTH_CUDA_JOIN_H

#include "cuda/program/fused_args.h"
#include "cuda/program/number.h"
#include "ops/identity.h"

FTH__MATH double fth__join(int red, double a, double b)
{
    if (red == FTH__JOIN_SUM) return a + b;
    if (red == FTH__JOIN_PROD) return a * b;
    /* the first NaN stays; of equal numbers the first stays */
    const bool better = red == FTH__JOIN_MIN ? b < a : b > a;
    return better || (b != b && a == a) ? b : a;
}
FTH__MATH int64_t fth__join(int red, int64_t a, int64_t b)
{
    return red == FTH__JOIN_SUM    ? (int64_t)((uint64_t)a + (uint64_t)b)
           : red == FTH__JOIN_PROD ? (int64_t)((uint64_t)a * (uint64_t)b)
           : red == FTH__JOIN_MIN  ? (b < a ? b : a)
           : red == FTH__JOIN_MAX  ? (b > a ? b : a)
           : red == FTH__JOIN_ANY  ? (a | (int64_t)(b != 0))
                                   : (a & (int64_t)(b != 0));
}
FTH__MATH fth_c128 fth__join(int red, fth_c128 a, fth_c128 b)
{
    return red == FTH__JOIN_SUM ? fth__cadd_c128(a, b) : fth__cmul_c128(a, b);
}

/* What joins begin with, for results of dtype `to`. */
FTH__MATH void fth__join_start(int red, int to, double *v)
{
    *v = fth__identity_real(red);
    (void)to;
}
FTH__MATH void fth__join_start(int red, int to, int64_t *v)
{
    *v = fth__identity_int(red, to);
}
FTH__MATH void fth__join_start(int red, int to, fth_c128 *v)
{
    *v = fth_c128{fth__identity_real(red), 0.0};
    (void)to;
}

/* A division of 64 bits is a long piece of code. */
FTH__CALL bool fth__is_multiple(int64_t n, int64_t of)
{
    return (uint64_t)n % (uint64_t)of == 0;
}

/* Whether there are superblocks: code that is compiled for a program knows it beforehand. */
#ifdef TAIL_SUPER
#define FTH__HAS_SUPER(t) TAIL_SUPER
#else
#define FTH__HAS_SUPER(t) ((t).has_super)
#endif

/* Results in memory. So is their dtype known: a call for every short row would take longer than the
 * row. */
#ifdef TAIL_TO
#define FTH__LOAD_RESULT(t, at, v) fth__load_as(TAIL_TO, at, v)
#define FTH__STORE_RESULT(t, at, v) fth__store_as(TAIL_TO, at, v)
#else
#define FTH__LOAD_RESULT(t, at, v) fth__load_wide((t).to, at, v)
#define FTH__STORE_RESULT(t, at, v) fth__store_wide((t).to, at, v)
#endif

/* The running total of one output, and of the superblock it is in. */
template <class W> struct fth__total {
    W total, super;

    FTH__METHOD void start(int red, int to)
    {
        fth__join_start(red, to, &total);
        fth__join_start(red, to, &super);
    }
    /* With what earlier pieces of the axis left. */
    FTH__METHOD void begin(int red, const fth__ew_tail &t, const char *out, const char *kept)
    {
        start(red, t.to);
        if (t.first) return;
        if (t.total_in_out) {
            W left; /* whose address is taken: totals stay in registers */
            FTH__LOAD_RESULT(t, out, &left);
            total = left;
        } else {
            total = *(const W *)kept;
        }
        if (FTH__HAS_SUPER(t)) super = *(const W *)(kept + (t.total_in_out ? 0 : sizeof(W)));
    }
    /* The block that ends at this place of the axis. */
    FTH__METHOD void add(int red, const fth__ew_tail &t, W partial, int64_t end)
    {
        if (!FTH__HAS_SUPER(t)) {
            total = fth__join(red, total, partial);
            return;
        }
        super = fth__join(red, super, partial);
        if (fth__is_multiple(end, t.super) || end == t.whole) close(red, t.to);
    }
    FTH__METHOD void close(int red, int to)
    {
        total = fth__join(red, total, super);
        fth__join_start(red, to, &super);
    }
    FTH__METHOD void end(const fth__ew_tail &t, char *out, char *kept) const
    {
        if (t.last || t.total_in_out) FTH__STORE_RESULT(t, out, total);
        if (t.last) return;
        if (!t.total_in_out) *(W *)kept = total;
        if (FTH__HAS_SUPER(t)) *(W *)(kept + (t.total_in_out ? 0 : sizeof(W))) = super;
    }
};

#endif
