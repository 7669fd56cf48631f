/* local_lanes.h - LANES doubles at once, as many as a register of the instruction set has.
 *
 * + - * / work on vr. Rows of values are f32 or f64 (`single` tells) and become doubles as they are
 * loaded.
 */
#ifndef SPATIAL_OPS_LOCAL_LANES_H
#define SPATIAL_OPS_LOCAL_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* How a vector would be passed from one object file to another is nobody's concern: all is inlined.
 */
#pragma GCC diagnostic ignored "-Wpsabi"
#define LANE static inline __attribute__((always_inline))

#if FTH_ISA_LEVEL >= 4

#include <immintrin.h>
enum { LANES = 8 };
typedef __m512d vr;
LANE vr v_fma(vr a, vr b, vr c)
{
    return _mm512_fmadd_pd(a, b, c);
}
LANE vr v_fnma(vr a, vr b, vr c)
{
    return _mm512_fnmadd_pd(a, b, c);
}
LANE vr v_sqrt(vr a)
{
    return _mm512_sqrt_pd(a);
}
LANE vr v_max(vr a, vr b)
{
    return _mm512_max_pd(a, b);
}
LANE vr v_from_f32(const float *p)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}
LANE vr v_some_f32(const float *p, int n)
{
    return _mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)((1u << n) - 1), p));
}
LANE vr v_some_f64(const double *p, int n)
{
    return _mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
}
LANE void v_put_f32(float *p, vr a, int n)
{
    _mm256_mask_storeu_ps(p, (__mmask8)((1u << n) - 1), _mm512_cvtpd_ps(a));
}
LANE void v_put_f64(double *p, vr a, int n)
{
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), a);
}
LANE double v_total(vr a)
{
    const __m256d b = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    const __m128d c = _mm_add_pd(_mm256_castpd256_pd128(b), _mm256_extractf128_pd(b, 1));
    return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
}

#elif FTH_ISA_LEVEL >= 3

#include <immintrin.h>
enum { LANES = 4 };
typedef __m256d vr;
LANE vr v_fma(vr a, vr b, vr c)
{
    return _mm256_fmadd_pd(a, b, c);
}
LANE vr v_fnma(vr a, vr b, vr c)
{
    return _mm256_fnmadd_pd(a, b, c);
}
LANE vr v_sqrt(vr a)
{
    return _mm256_sqrt_pd(a);
}
LANE vr v_max(vr a, vr b)
{
    return _mm256_max_pd(a, b);
}
LANE vr v_from_f32(const float *p)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}
LANE __m256i first_lanes(int n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
LANE vr v_some_f32(const float *p, int n)
{
    const __m128i m = _mm_cmpgt_epi32(_mm_set1_epi32(n), _mm_setr_epi32(0, 1, 2, 3));
    return _mm256_cvtps_pd(_mm_maskload_ps(p, m));
}
LANE vr v_some_f64(const double *p, int n)
{
    return _mm256_maskload_pd(p, first_lanes(n));
}
LANE void v_put_f32(float *p, vr a, int n)
{
    const __m128i m = _mm_cmpgt_epi32(_mm_set1_epi32(n), _mm_setr_epi32(0, 1, 2, 3));
    _mm_maskstore_ps(p, m, _mm256_cvtpd_ps(a));
}
LANE void v_put_f64(double *p, vr a, int n)
{
    _mm256_maskstore_pd(p, first_lanes(n), a);
}
LANE double v_total(vr a)
{
    const __m128d c = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
}

#else

enum { LANES = 2 };
typedef double vr __attribute__((vector_size(16)));
LANE vr v_fma(vr a, vr b, vr c)
{
    return a * b + c;
}
LANE vr v_fnma(vr a, vr b, vr c)
{
    return c - a * b;
}
LANE vr v_sqrt(vr a)
{
    return (vr){sqrt(a[0]), sqrt(a[1])};
}
LANE vr v_max(vr a, vr b)
{
    return (vr){a[0] > b[0] ? a[0] : b[0], a[1] > b[1] ? a[1] : b[1]};
}
LANE vr v_from_f32(const float *p)
{
    return (vr){(double)p[0], (double)p[1]};
}
LANE vr v_some_f32(const float *p, int n)
{
    return (vr){n > 0 ? (double)p[0] : 0, n > 1 ? (double)p[1] : 0};
}
LANE vr v_some_f64(const double *p, int n)
{
    return (vr){n > 0 ? p[0] : 0, n > 1 ? p[1] : 0};
}
LANE void v_put_f32(float *p, vr a, int n)
{
    for (int i = 0; i < n && i < LANES; i++) p[i] = (float)a[i];
}
LANE void v_put_f64(double *p, vr a, int n)
{
    for (int i = 0; i < n && i < LANES; i++) p[i] = a[i];
}
LANE double v_total(vr a)
{
    return a[0] + a[1];
}

#endif

typedef uint64_t vi __attribute__((vector_size(8 * LANES)));

LANE vr v_set(double x)
{
    return x - (vr){0};
}
LANE vr v_load(const double *from)
{
    vr r;
    memcpy(&r, from, sizeof r);
    return r;
}
LANE void v_store(double *to, vr a)
{
    memcpy(to, &a, sizeof a);
}
/* Elements [i, i + LANES) of a row of n; zero behind its end. */
LANE vr v_row(const void *row, bool single, int64_t i, int64_t n)
{
    const int left = n - i < LANES ? (int)(n - i) : LANES;
    if (single) {
        const float *p = (const float *)row + i;
        return left == LANES ? v_from_f32(p) : v_some_f32(p, left);
    }
    const double *p = (const double *)row + i;
    return left == LANES ? v_load(p) : v_some_f64(p, left);
}
LANE void v_put(void *row, bool single, int64_t i, int64_t n, vr a)
{
    const int left = n - i < LANES ? (int)(n - i) : LANES;
    if (single)
        v_put_f32((float *)row + i, a, left);
    else
        v_put_f64((double *)row + i, a, left);
}

/* Rows become columns. */
LANE void v_transpose(vr *x)
{
#if FTH_ISA_LEVEL >= 4
    vr a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_pd(x[i], x[i + 1]);
        a[i + 1] = _mm512_unpackhi_pd(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            b[i + k] = _mm512_shuffle_f64x2(a[i + k], a[i + 2 + k], 0x88);
            b[i + 2 + k] = _mm512_shuffle_f64x2(a[i + k], a[i + 2 + k], 0xdd);
        }
    for (int k = 0; k < 4; k++) {
        x[k] = _mm512_shuffle_f64x2(b[k], b[4 + k], 0x88);
        x[4 + k] = _mm512_shuffle_f64x2(b[k], b[4 + k], 0xdd);
    }
#elif FTH_ISA_LEVEL >= 3
    vr a[4];
    for (int i = 0; i < 4; i += 2) {
        a[i] = _mm256_unpacklo_pd(x[i], x[i + 1]);
        a[i + 1] = _mm256_unpackhi_pd(x[i], x[i + 1]);
    }
    for (int k = 0; k < 2; k++) {
        x[k] = _mm256_permute2f128_pd(a[k], a[2 + k], 0x20);
        x[2 + k] = _mm256_permute2f128_pd(a[k], a[2 + k], 0x31);
    }
#else
    const vr a = {x[0][0], x[1][0]}, b = {x[0][1], x[1][1]};
    x[0] = a;
    x[1] = b;
#endif
}

/* e^x for x <= 0, to a few units of the last place; below -708 it is that of -708, 3e-308. */
LANE vr v_exp(vr x)
{
    static const double term[] = {1 / 6227020800.0,
                                  1 / 479001600.0,
                                  1 / 39916800.0,
                                  1 / 3628800.0,
                                  1 / 362880.0,
                                  1 / 40320.0,
                                  1 / 5040.0,
                                  1 / 720.0,
                                  1 / 120.0,
                                  1 / 24.0,
                                  1 / 6.0,
                                  0.5,
                                  1,
                                  1};
    const double magic = 6755399441055744.0; /* adding it rounds to a whole number */
    x = v_max(x, v_set(-708));
    const vr big = v_fma(x, v_set(1.4426950408889634), v_set(magic)), n = big - magic;
    const vr r = v_fnma(n, v_set(0x1.9ef35793c7673p-41), v_fnma(n, v_set(0x1.62e42fefa2p-1), x));
    vr p = v_set(term[0]);
    for (int i = 1; i < 14; i++) p = v_fma(p, r, v_set(term[i]));
    return (vr)((vi)p + ((vi)big << 52));
}

#endif
