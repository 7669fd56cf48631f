/* lanes.h - a vector of pixels: what the operators of the compiler do not give.
 *
 * vr holds LANES numbers of type `real`, as many as a register of the instruction set has; + - * /
 * work on it. vm is a condition per lane, va as many doubles. BR_SINGLE, set before, makes `real`
 * float. An operation gives the same bits in every lane and, v_fma apart, on every instruction set.
 */
#ifndef BRAGG_OPS_LANES_H
#define BRAGG_OPS_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* How a vector would be passed from one object file to another is nobody's concern: all is inlined.
 */
#pragma GCC diagnostic ignored "-Wpsabi"
#define LANE static inline __attribute__((always_inline))

#if BR_SINGLE
typedef float real;
#define R(x) x##f
#else
typedef double real;
#define R(x) x
#endif

#if FTH_ISA_LEVEL >= 4

#include <immintrin.h>
enum { LANES = 64 / (int)sizeof(real) };
#if BR_SINGLE
#define M512(f) _mm512_##f##_ps
#define CMP(a, b, how) _mm512_cmp_ps_mask((a), (b), (how))
typedef __m512 vr;
typedef __mmask16 vm;
#else
#define M512(f) _mm512_##f##_pd
#define CMP(a, b, how) _mm512_cmp_pd_mask((a), (b), (how))
typedef __m512d vr;
typedef __mmask8 vm;
#endif

LANE vr v_set(real x)
{
    return M512(set1)(x);
}
LANE vr v_fma(vr a, vr b, vr c)
{
    return M512(fmadd)(a, b, c);
}
LANE vr v_sqrt(vr a)
{
    return M512(sqrt)(a);
}
LANE vr v_rint(vr a)
{
    return M512(roundscale)(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* a - v_rint(a) */
LANE vr v_rest(vr a)
{
    return M512(reduce)(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
LANE vr v_ceil(vr a)
{
    return M512(roundscale)(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
LANE vr v_floor(vr a)
{
    return M512(roundscale)(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
LANE vm v_lt(vr a, vr b)
{
    return CMP(a, b, _CMP_LT_OQ);
}
LANE vm v_le(vr a, vr b)
{
    return CMP(a, b, _CMP_LE_OQ);
}
LANE vm v_eq(vr a, vr b)
{
    return CMP(a, b, _CMP_EQ_OQ);
}
LANE vr v_pick(vm m, vr a, vr b)
{
    return M512(mask_blend)(m, b, a);
}
LANE vm m_and(vm a, vm b)
{
    return (vm)(a & b);
}
LANE vm m_not(vm a)
{
    return (vm)~a;
}
LANE uint32_t m_bits(vm a)
{
    return a;
}
LANE vm m_of(uint32_t bits)
{
    return (vm)bits;
}
LANE vr v_scale(vr x, vr n)
{
    return M512(scalef)(x, n);
}

#else

#if FTH_ISA_LEVEL >= 3
#include <immintrin.h>
#define VECTOR_BYTES 32
#if BR_SINGLE
#define M256(f) _mm256_##f##_ps
#else
#define M256(f) _mm256_##f##_pd
#endif
#else
#define VECTOR_BYTES 16
#endif
enum { LANES = VECTOR_BYTES / (int)sizeof(real) };
typedef real vr __attribute__((vector_size(VECTOR_BYTES)));
#if BR_SINGLE
typedef int32_t vm __attribute__((vector_size(VECTOR_BYTES)));
enum { EXPONENT_AT = 23 };
#define MAGIC 12582912.0f
#else
typedef int64_t vm __attribute__((vector_size(VECTOR_BYTES)));
enum { EXPONENT_AT = 52 };
#define MAGIC 6755399441055744.0
#endif

LANE vr v_set(real x)
{
    return x - (vr){0};
}
LANE vm v_lt(vr a, vr b)
{
    return a < b;
}
LANE vm v_le(vr a, vr b)
{
    return a <= b;
}
LANE vm v_eq(vr a, vr b)
{
    return a == b;
}
LANE vm m_and(vm a, vm b)
{
    return a & b;
}
LANE vm m_not(vm a)
{
    return ~a;
}
LANE vm m_of(uint32_t bits)
{
    vm m = {0};
    for (int i = 0; i < LANES; i++) m[i] = bits >> i & 1 ? -1 : 0;
    return m;
}
/* x 2^n, n whole: n is added to the exponent. */
LANE vr v_scale(vr x, vr n)
{
    return (vr)((vm)x + ((vm)(n + MAGIC) << EXPONENT_AT));
}
#if FTH_ISA_LEVEL >= 3
LANE vr v_fma(vr a, vr b, vr c)
{
    return M256(fmadd)(a, b, c);
}
LANE vr v_sqrt(vr a)
{
    return M256(sqrt)(a);
}
LANE vr v_rint(vr a)
{
    return M256(round)(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
LANE vr v_ceil(vr a)
{
    return M256(round)(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
LANE vr v_floor(vr a)
{
    return M256(round)(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
LANE vr v_pick(vm m, vr a, vr b)
{
    return M256(blendv)(b, a, (vr)m);
}
LANE vr v_rest(vr a)
{
    return a - v_rint(a);
}
LANE uint32_t m_bits(vm a)
{
    return (uint32_t)M256(movemask)((vr)a);
}
#else
LANE vr v_fma(vr a, vr b, vr c)
{
    return a * b + c;
}
LANE vr v_sqrt(vr a)
{
    vr r = {0};
    for (int i = 0; i < LANES; i++) r[i] = (real)sqrt((double)a[i]);
    return r;
}
LANE vr v_pick(vm m, vr a, vr b)
{
    return (vr)((m & (vm)a) | (~m & (vm)b));
}
/* Adding and subtracting a large number rounds; what is large already is whole. */
LANE vr v_rint(vr a)
{
    const vr limit = v_set(MAGIC / 4), r = (a + MAGIC) - MAGIC;
    return v_pick(m_and(v_lt(a, limit), v_lt(-a, limit)), r, a);
}
LANE vr v_rest(vr a)
{
    return a - v_rint(a);
}
LANE vr v_ceil(vr a)
{
    const vr r = v_rint(a);
    return v_pick(v_lt(r, a), r + 1, r);
}
LANE vr v_floor(vr a)
{
    const vr r = v_rint(a);
    return v_pick(v_lt(a, r), r - 1, r);
}
LANE uint32_t m_bits(vm a)
{
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++) bits |= (uint32_t)(a[i] & 1) << i;
    return bits;
}
#endif
#endif

/* Sums are in double. */
typedef double va __attribute__((vector_size(8 * LANES)));
LANE va v_wide(vr a)
{
#if BR_SINGLE
    return __builtin_convertvector(a, va);
#else
    return (va)a;
#endif
}
LANE vr v_load(const real *from)
{
    vr r;
    memcpy(&r, from, sizeof r);
    return r;
}
LANE void v_store(real *to, vr a)
{
    memcpy(to, &a, sizeof a);
}
LANE uint32_t m_all(void)
{
    return (uint32_t)((1ull << LANES) - 1);
}

/* a / b to the bit, from y = 1 / b: the remainder of a first quotient is exact, and corrects it.
 * Not where b is 0 or no number. */
LANE vr v_over(vr a, vr b, vr y)
{
#if FTH_ISA_LEVEL >= 3
    const vr q = a * y;
    return v_fma(v_fma(-q, b, a), y, q);
#else
    (void)y;
    return a / b;
#endif
}

/* The four entries along l at once; lane by lane, because no two read the same block. */
typedef double four __attribute__((vector_size(32)));
LANE void four_fma(double a, const four *b, four *sum)
{
#if FTH_ISA_LEVEL >= 3
    *sum = _mm256_fmadd_pd(_mm256_set1_pd(a), *b, *sum);
#else
    *sum = a * *b + *sum;
#endif
}
LANE double four_at(const four *a, int i)
{
    return (*a)[i];
}

/* c[0] + c[1] x + .. */
LANE vr v_poly(vr x, const real *c, int n)
{
    vr r = v_set(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) r = v_fma(r, x, v_set(c[i]));
    return r;
}

/* sin(pi x) / x by z = x^2, |x| <= 1/2: relative error 1.5e-16, in single 6e-9 before rounding. */
LANE vr v_sin_pi_over(vr z)
{
#if BR_SINGLE
    static const real c[] = {3.141592636895443869f, -5.167709684798134137f, 2.550069726297337291f,
                             -0.598242126135190174f, 0.07756038638625972712f};
#else
    static const real c[] = {0x1.921fb54442d18p+1,  -0x1.4abbce625bd5ep+2, 0x1.466bc67751058p+1,
                             -0x1.32d2cce17d329p-1, 0x1.50783249cf289p-4,  -0x1.e30623c3280a5p-8,
                             0x1.e89ce9fe9c96cp-12, -0x1.62626402085bcp-16};
#endif
    return v_poly(z, c, sizeof c / sizeof *c);
}

/* cos(pi x) by z = x^2, |x| <= 1/2: absolute error 4e-18, in single 3e-10 before rounding. */
LANE vr v_cos_pi(vr z)
{
#if BR_SINGLE
    static const real c[] = {1.0f,
                             -4.934802137228706817f,
                             4.058709164349543964f,
                             -1.335212056710799668f,
                             0.2349375590390508526f,
                             -0.02439671660527727798f};
#else
    static const real c[] = {1.0,
                             -0x1.3bd3cc9be45dbp+2,
                             0x1.03c1f081b5993p+2,
                             -0x1.55d3c7e3bfc44p+0,
                             0x1.e1f506813c9e8p-3,
                             -0x1.a6d1efc968f75p-6,
                             0x1.f9d2548909183p-10,
                             -0x1.b69582d9584dap-14,
                             0x1.1679714ca87f5p-18};
#endif
    return v_poly(z, c, sizeof c / sizeof *c);
}

/* exp(x), relative error 2e-16 (single: 1e-7); the smallest normal number where it would be less.
 */
LANE vr v_exp(vr x)
{
#if BR_SINGLE
    static const real c[] = {1.0f,
                             1.0f,
                             0.4999999159300648297f,
                             0.166664102456020303f,
                             0.04166828895838463931f,
                             0.008375644921381263222f,
                             0.001383578971627009977f};
    const vr least = v_set(-87.0f), most = v_set(88.0f);
    const vr high = v_set(-0x1.62e4p-1f), low = v_set(-0x1.7f7d1cp-20f);
#else
    static const real c[] = {1.0,
                             1.0,
                             0x1.0000000000012p-1,
                             0x1.555555555548fp-3,
                             0x1.555555554eb62p-5,
                             0x1.11111111337d8p-7,
                             0x1.6c16c1892e504p-10,
                             0x1.a01a0107879c6p-13,
                             0x1.a0198e569f470p-16,
                             0x1.71df4fe85b7a4p-19,
                             0x1.28b732632473dp-22,
                             0x1.ad61100b203cbp-26};
    const vr least = v_set(-708.0), most = v_set(709.0);
    const vr high = v_set(-0x1.62e42fefa2p-1), low = v_set(-0x1.9ef35793c7673p-41);
#endif
    x = v_pick(v_lt(x, least), least, x);
    x = v_pick(v_lt(most, x), most, x);
    const vr n = v_rint(x * R(1.442695040888963407));
    const vr r = v_fma(n, low, v_fma(n, high, x));
    return v_scale(v_poly(r, c, sizeof c / sizeof *c), n);
}

#endif
