/* field_lanes.h - loops over fields in two planes that the kernels of the solvers share: patches
 * times probe, amplitudes from patterns, sums in fixed orders.
 *
 * A plane has n*n numbers in rows; the imaginary plane follows the real one. Sums over pixels are
 * taken over n numbers in the working precision and then in double.
 */
#ifndef PT_FIELD_LANES_H
#define PT_FIELD_LANES_H

#include "fft_lanes.h"

/* Pieces of scratch one after another; without a base only their bytes are counted. */
typedef struct room {
    char *base;
    uint64_t bytes;
} room;

static void *take(room *r, int64_t n, uint64_t size)
{
    char *p = r->base ? r->base + r->bytes : NULL;
    r->bytes += ((uint64_t)n * size + 63) / 64 * 64;
    return p;
}
static real *take_reals(room *r, int64_t n)
{
    return take(r, n, sizeof(real));
}

/* Vectors at the end of a row may be short. */
LANE int lanes_left(int64_t n, int64_t i)
{
    return n - i < LANES ? (int)(n - i) : LANES;
}
LANE vr ld(const real *p, int k)
{
    return k == LANES ? v_load(p) : v_load_some(p, k);
}
LANE void st(real *p, vr v, int k)
{
    if (k == LANES)
        v_store(p, v);
    else
        v_store_some(p, v, k);
}
LANE cv ldc(const real *re, const real *im, int k)
{
    return (cv){ld(re, k), ld(im, k)};
}
LANE void stc(real *re, real *im, cv a, int k)
{
    st(re, a.re, k);
    st(im, a.im, k);
}
LANE cv cv_mul(cv a, cv b)
{
    return (cv){v_fnma(a.im, b.im, a.re * b.re), v_fma(a.re, b.im, a.im * b.re)};
}
/* conj(a) b */
LANE cv cv_mulc(cv a, cv b)
{
    return (cv){v_fma(a.im, b.im, a.re * b.re), v_fnma(a.im, b.re, a.re * b.im)};
}
LANE vr cv_abs2(cv a)
{
    return v_fma(a.im, a.im, a.re * a.re);
}
LANE cv cv_scale(cv a, vr by)
{
    return (cv){a.re * by, a.im * by};
}
LANE real lanes_max(vr v)
{
    real t[LANES], m;
    v_store(t, v);
    m = t[0];
    for (int i = 1; i < LANES; i++) m = t[i] > m ? t[i] : m;
    return m;
}
/* The lanes of a partial sum, in order. */
LANE double lanes_sum(vr v)
{
    real t[LANES];
    double sum = 0;
    v_store(t, v);
    for (int i = 0; i < LANES; i++) sum += (double)t[i];
    return sum;
}

/* A view of a patch of the object. */
typedef struct patch {
    const real *re, *im;
    int64_t step; /* to the next row */
} patch;

/* out = probe * patch; returns the largest |patch|^2. */
static real illuminate(int64_t n, patch o, const real *probe, real *out)
{
    const int64_t nn = n * n;
    vr most = v_set(0);
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < n; c += LANES) {
            const int k = lanes_left(n, c);
            const int64_t i = r * n + c, j = r * o.step + c;
            const cv a = ldc(o.re + j, o.im + j, k), p = ldc(probe + i, probe + nn + i, k);
            most = v_max(cv_abs2(a), most);
            stc(out + i, out + nn + i, cv_mul(p, a), k);
        }
    return lanes_max(most);
}

/* ---- amplitudes ---- */

#define AMPLITUDES(name, type)                                                                     \
    static void name(int64_t n, const void *pattern, bool centred, real *out)                      \
    {                                                                                              \
        const type *from = pattern;                                                                \
        const int64_t h = centred ? n / 2 : 0, rest = n - h;                                       \
        for (int64_t r = 0; r < n; r++) {                                                          \
            const type *row = from + (r + h < n ? r + h : r + h - n) * n;                          \
            real *to = out + r * n;                                                                \
            for (int64_t c = 0; c < rest; c++) to[c] = (real)row[c + h];                           \
            for (int64_t c = rest; c < n; c++) to[c] = (real)row[c - rest];                        \
        }                                                                                          \
    }
AMPLITUDES(amplitudes_u8, uint8_t)
AMPLITUDES(amplitudes_u16, uint16_t)
AMPLITUDES(amplitudes_i32, int32_t)
AMPLITUDES(amplitudes_i64, int64_t)
AMPLITUDES(amplitudes_f32, float)
AMPLITUDES(amplitudes_f64, double)

/* Amplitudes of a pattern with the zero frequency first; below 0 where the mask says so. */
static void amplitudes(int64_t n, const void *patterns, fth_dtype dtype, int64_t j, bool counts,
                       bool centred, const uint8_t *mask, real *out)
{
    const int64_t nn = n * n;
    const void *from = (const char *)patterns + j * nn * fth_dtype_size(dtype);
    if (dtype == FTH_U8)
        amplitudes_u8(n, from, centred, out);
    else if (dtype == FTH_U16)
        amplitudes_u16(n, from, centred, out);
    else if (dtype == FTH_I32)
        amplitudes_i32(n, from, centred, out);
    else if (dtype == FTH_I64)
        amplitudes_i64(n, from, centred, out);
    else if (dtype == FTH_F32)
        amplitudes_f32(n, from, centred, out);
    else
        amplitudes_f64(n, from, centred, out);
    if (counts)
        for (int64_t i = 0; i < nn; i += LANES) {
            const int k = lanes_left(nn, i);
            st(out + i, v_sqrt(ld(out + i, k)), k);
        }
    if (!mask) return;
    const int64_t h = centred ? n / 2 : 0;
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < n; c++)
            if (!mask[(r + h) % n * n + (c + h) % n]) out[r * n + c] = -1;
}

#endif
