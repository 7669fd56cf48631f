/* cwt_kernels.c - loops of the wavelet operations, once per instruction set.
 *
 * Plain loops over columns that the compiler turns into vectors: nothing is summed across columns
 * and nothing is contracted, so every set has the bits of cwt_taps.h.
 */
#include "cwt.h"
#include "cwt_taps.h"

#include <string.h>

#define ANALYSE(name)                                                                              \
    static void name##_of_real(const float *const re[6], float *restrict out_re,                   \
                               float *restrict out_im, int64_t n)                                  \
    {                                                                                              \
        const float *const r0 = re[0], *const r1 = re[1], *const r2 = re[2];                       \
        const float *const r3 = re[3], *const r4 = re[4], *const r5 = re[5];                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const fo_pair c = fo_cwt_##name##_real(r0[i], r1[i], r2[i], r3[i], r4[i], r5[i]);      \
            out_re[i] = c.re;                                                                      \
            out_im[i] = c.im;                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(const float *const re[6], const float *const *im, float *restrict out_re,     \
                     float *restrict out_im, int64_t n)                                            \
    {                                                                                              \
        if (!im) {                                                                                 \
            name##_of_real(re, out_re, out_im, n);                                                 \
            return;                                                                                \
        }                                                                                          \
        const float *const r0 = re[0], *const r1 = re[1], *const r2 = re[2];                       \
        const float *const r3 = re[3], *const r4 = re[4], *const r5 = re[5];                       \
        const float *const i0 = im[0], *const i1 = im[1], *const i2 = im[2];                       \
        const float *const i3 = im[3], *const i4 = im[4], *const i5 = im[5];                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const fo_pair c =                                                                      \
                fo_cwt_join(fo_cwt_##name##_real(r0[i], r1[i], r2[i], r3[i], r4[i], r5[i]),        \
                            fo_cwt_##name##_real(i0[i], i1[i], i2[i], i3[i], i4[i], i5[i]));       \
            out_re[i] = c.re;                                                                      \
            out_im[i] = c.im;                                                                      \
        }                                                                                          \
    }
ANALYSE(low)
ANALYSE(high)

#define PAIR(from, k) ((fo_pair){from##k[i], from##i##k[i]})
#define BUILD(name)                                                                                \
    static void name(const float *const a[6], const float *const d[6], float *restrict re,         \
                     float *restrict im, int64_t n)                                                \
    {                                                                                              \
        const float *const a0 = a[0], *const a1 = a[1], *const a2 = a[2];                          \
        const float *const ai0 = a[3], *const ai1 = a[4], *const ai2 = a[5];                       \
        const float *const d0 = d[0], *const d1 = d[1], *const d2 = d[2];                          \
        const float *const di0 = d[3], *const di1 = d[4], *const di2 = d[5];                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const fo_pair v = fo_cwt_##name(PAIR(a, 0), PAIR(a, 1), PAIR(a, 2), PAIR(d, 0),        \
                                            PAIR(d, 1), PAIR(d, 2));                               \
            re[i] = v.re;                                                                          \
            im[i] = v.im;                                                                          \
        }                                                                                          \
    }
BUILD(even)
BUILD(odd)

static void deal(float *restrict even_out, float *restrict odd_out, const float *restrict line,
                 int64_t half)
{
    for (int64_t i = 0; i < half; i++) {
        even_out[i] = line[2 * i];
        odd_out[i] = line[2 * i + 1];
    }
}

static void weave(float *restrict line, const float *restrict even_in, const float *restrict odd_in,
                  int64_t half)
{
    for (int64_t i = 0; i < half; i++) {
        line[2 * i] = even_in[i];
        line[2 * i + 1] = odd_in[i];
    }
}

static void widen(float *restrict out, const void *restrict in, fth_dtype dtype, int64_t n)
{
    const uint8_t *u8 = in;
    const uint16_t *u16 = in;
    if (dtype == FTH_U8)
        for (int64_t i = 0; i < n; i++) out[i] = (float)u8[i];
    else if (dtype == FTH_U16)
        for (int64_t i = 0; i < n; i++) out[i] = (float)u16[i];
    else
        memcpy(out, in, (size_t)n * sizeof *out);
}

#define T uint8_t
#define NONE FO_CWT_NONE8
#define NAME(name) name##_u8
#include "cwt_planes.inc"
#undef T
#undef NONE
#undef NAME
#define T uint16_t
#define NONE FO_CWT_NONE
#define NAME(name) name##_u16
#include "cwt_planes.inc"

static float peak(const float *re, const float *im, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++) {
        const float e = re[i] * re[i] + im[i] * im[i];
        most = e > most ? e : most;
    }
    return most;
}

#define PLANES(t)                                                                                  \
    {                                                                                              \
        best_##t, take_##t, agree_##t, majority_##t, settle_##t                                    \
    }
extern const fo_cwt_loops FTH_ISA_NAME(fo_cwt_loops);
const fo_cwt_loops FTH_ISA_NAME(fo_cwt_loops) = {low,   high,  even,       odd,         deal,
                                                 weave, widen, PLANES(u8), PLANES(u16), peak};
