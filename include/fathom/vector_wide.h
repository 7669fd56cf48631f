/* fathom/vector_wide.h - vectors of 64 bytes on every instruction set, which give the same bits on
 * all of them.
 *
 * For kernels whose results must not depend on the processor: a sum over lanes has the same order
 * everywhere because there are as many lanes everywhere, and nothing is contracted because there is
 * no fma. The compiler makes two or four instructions of one operation where registers are
 * narrower. fth_f32w, fth_i32w and fth_u32w have 16 lanes, fth_f64w, fth_i64w and fth_u64w 8; the
 * operators of C work on them, and a comparison gives integers, -1 or 0. Vectors are handed over by
 * address: gcc has a note about every other way of passing those that are wider than a register.
 *
 * Set FTH_VECTOR_REAL to 32 or 64 before the include for short names, as in fathom/vector.h:
 *
 *   vr rate = v_load(from);
 *   rate = PICK(rate < least, (vr){0} + least, rate);
 *   const vr ln = v_log(&rate);
 *   sum += v_sum(&ln);
 *
 * Ownership: none. Threads: any. Failure: none; everything is inlined.
 */
#ifndef FATHOM_VECTOR_WIDE_H
#define FATHOM_VECTOR_WIDE_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wpsabi"
#define FTH_WIDE static inline __attribute__((always_inline, unused))

#define FTH_F32W_LANES 16
#define FTH_F64W_LANES 8
typedef float fth_f32w __attribute__((vector_size(64)));
typedef double fth_f64w __attribute__((vector_size(64)));
typedef int32_t fth_i32w __attribute__((vector_size(64)));
typedef int64_t fth_i64w __attribute__((vector_size(64)));
typedef uint32_t fth_u32w __attribute__((vector_size(64)));
typedef uint64_t fth_u64w __attribute__((vector_size(64)));
/* A double for each lane, for sums. */
typedef double fth_f32w_f64 __attribute__((vector_size(128)));
typedef double fth_f64w_f64 __attribute__((vector_size(64)));

/* m ? a : b, for a comparison m of vectors of that type. */
#define FTH_F32W_PICK(m, a, b) ((fth_f32w)(((m) & (fth_i32w)(a)) | (~(m) & (fth_i32w)(b))))
#define FTH_F64W_PICK(m, a, b) ((fth_f64w)(((m) & (fth_i64w)(a)) | (~(m) & (fth_i64w)(b))))

/* ---- memory ---- */

FTH_WIDE fth_f32w fth_f32w_load(const float *from)
{
    fth_f32w r;
    memcpy(&r, from, sizeof r);
    return r;
}
FTH_WIDE fth_f64w fth_f64w_load(const double *from)
{
    fth_f64w r;
    memcpy(&r, from, sizeof r);
    return r;
}
FTH_WIDE void fth_f32w_store(float *to, const fth_f32w *a)
{
    memcpy(to, a, sizeof *a);
}
FTH_WIDE void fth_f64w_store(double *to, const fth_f64w *a)
{
    memcpy(to, a, sizeof *a);
}

/* ---- sums over lanes: the upper half is added to the lower until one is left ---- */

FTH_WIDE double fth_f32w_sum(const fth_f32w *a)
{
    typedef float half __attribute__((vector_size(32)));
    typedef float quarter __attribute__((vector_size(16)));
    half h[2];
    quarter q[2];
    float t[4];
    memcpy(h, a, sizeof h);
    h[0] += h[1];
    memcpy(q, h, sizeof q);
    q[0] += q[1];
    memcpy(t, q, sizeof t);
    return (double)((t[0] + t[2]) + (t[1] + t[3]));
}
FTH_WIDE double fth_f64w_sum(const fth_f64w *a)
{
    typedef double half __attribute__((vector_size(32)));
    typedef double quarter __attribute__((vector_size(16)));
    half h[2];
    quarter q[2];
    double t[2];
    memcpy(h, a, sizeof h);
    h[0] += h[1];
    memcpy(q, h, sizeof q);
    q[0] += q[1];
    memcpy(t, q, sizeof t);
    return t[0] + t[1];
}
FTH_WIDE double fth_f32w_f64_sum(const fth_f32w_f64 *a)
{
    double t[FTH_F32W_LANES];
    memcpy(t, a, sizeof t);
    for (int half = FTH_F32W_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) t[i] += t[i + half];
    return t[0];
}
FTH_WIDE double fth_f64w_f64_sum(const fth_f64w_f64 *a)
{
    double t[FTH_F64W_LANES];
    memcpy(t, a, sizeof t);
    for (int half = FTH_F64W_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) t[i] += t[i + half];
    return t[0];
}

/* ---- functions ---- */

/* ln x for normal x > 0, inf and NaN: x = 2^k m with m about 1, and with s = (m-1)/(m+1)
 * ln m = 2 s + s^3 P(s^2). Relative error 3e-16, in single 1.5e-7. spatial: the likelihood. */
FTH_WIDE fth_f32w fth_f32w_log(const fth_f32w *of)
{
    static const float c[] = {0.66666687f, 0.3998878f, 0.2957995f};
    const uint32_t half_root = 0x3f3504f3, one = 0x3f800000, mantissa = 0x7fffff;
    const fth_f32w x = *of;
    const fth_u32w bits = (fth_u32w)x + (one - half_root);
    const fth_f32w k = __builtin_convertvector((fth_i32w)(bits >> 23) - 127, fth_f32w);
    const fth_f32w m = (fth_f32w)((bits & mantissa) + half_root);
    const fth_f32w s = (m - 1) / (m + 1), z = s * s;
    fth_f32w p = (fth_f32w){0} + c[sizeof c / sizeof *c - 1];
    for (int i = (int)(sizeof c / sizeof *c) - 2; i >= 0; i--) p = p * z + c[i];
    const fth_f32w low = k * -0x1.05c61p-29f + s * z * p, high = k * 0x1.62e43p-1f;
    const fth_f32w ln = high + (low + (s + s));
    return FTH_F32W_PICK(x <= FLT_MAX, ln, x);
}
FTH_WIDE fth_f64w fth_f64w_log(const fth_f64w *of)
{
    static const double c[] = {0x1.5555555555558p-1, 0x1.99999999952e2p-2, 0x1.2492492df148dp-2,
                               0x1.c71c62e5800a1p-3, 0x1.7462b4ab2ef6bp-3, 0x1.39fe606542ddep-3,
                               0x1.2b584aae78a57p-3};
    const uint64_t half_root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000,
                   mantissa = 0xfffffffffffff;
    const fth_f64w x = *of;
    const fth_u64w bits = (fth_u64w)x + (one - half_root);
    /* the exponent as the last bits of 2^52, so that no instruction for 64-bit integers is used */
    const fth_f64w k = (fth_f64w)((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
    const fth_f64w m = (fth_f64w)((bits & mantissa) + half_root);
    const fth_f64w s = (m - 1) / (m + 1), z = s * s;
    fth_f64w p = (fth_f64w){0} + c[sizeof c / sizeof *c - 1];
    for (int i = (int)(sizeof c / sizeof *c) - 2; i >= 0; i--) p = p * z + c[i];
    const fth_f64w low = k * 0x1.ef35793c76730p-45 + s * z * p, high = k * 0x1.62e42fefa3800p-1;
    const fth_f64w ln = high + (low + (s + s));
    return FTH_F64W_PICK(x <= DBL_MAX, ln, x);
}

/* ---- short names of one precision ---- */

#ifdef FTH_VECTOR_REAL
#ifdef FTH__VECTOR_SHORT
#error "one file has the short names of one header: set FTH_VECTOR_REAL behind the other include"
#endif
#define FTH__VECTOR_SHORT
#define LANE FTH_WIDE
#if FTH_VECTOR_REAL == 32
#define LANES FTH_F32W_LANES
#define R(x) x##f
#define PICK FTH_F32W_PICK
#define FTH__W_SHORT(name) fth_f32w_##name
typedef float real;
typedef fth_f32w vr;
typedef fth_i32w vi;
typedef fth_f32w_f64 vd;
#else
#define LANES FTH_F64W_LANES
#define R(x) x
#define PICK FTH_F64W_PICK
#define FTH__W_SHORT(name) fth_f64w_##name
typedef double real;
typedef fth_f64w vr;
typedef fth_i64w vi;
typedef fth_f64w_f64 vd;
#endif
#define v_load FTH__W_SHORT(load)
#define v_store FTH__W_SHORT(store)
#define v_sum FTH__W_SHORT(sum)
#define v_log FTH__W_SHORT(log)
#define d_sum FTH__W_SHORT(f64_sum)
#endif

#endif
