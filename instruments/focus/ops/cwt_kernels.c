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

static void best(float *restrict energy, uint16_t *restrict plane, const float *restrict re,
                 const float *restrict im, uint16_t z, float floor, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float e = fo_cwt_energy((fo_pair){re[i], im[i]}, floor), old = energy[i];
        energy[i] = e > old ? e : old;
        plane[i] = e > old ? z : plane[i];
    }
}

static void take(float *restrict out_re, float *restrict out_im, const uint16_t *restrict plane,
                 const float *restrict re, const float *restrict im, uint16_t z, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out_re[i] = plane[i] == z ? re[i] : out_re[i];
        out_im[i] = plane[i] == z ? im[i] : out_im[i];
    }
}

static void agree(uint16_t *const band[3], int64_t n)
{
    uint16_t *restrict const a = band[0], *restrict const b = band[1], *restrict const c = band[2];
    for (int64_t i = 0; i < n; i++) {
        const uint16_t va = a[i], vb = b[i], vc = c[i];
        a[i] = vb == vc && vb != FO_CWT_NONE ? vb : va;
        b[i] = va == vc && va != FO_CWT_NONE ? va : vb;
        c[i] = va == vb && va != FO_CWT_NONE ? va : vc;
    }
}

static void majority(uint16_t *restrict out, const uint16_t *const rows[3], uint16_t first,
                     int64_t n)
{
    const uint16_t *const r0 = rows[0], *const r1 = rows[1], *const r2 = rows[2];
    for (int64_t i = 0; i < n; i++) {
        const uint32_t v[9] = {r0[i - 1], r0[i],     r0[i + 1], r1[i - 1], r1[i],
                               r1[i + 1], r2[i - 1], r2[i],     r2[i + 1]};
        uint32_t most = 0;
        for (int k = 0; k < 9; k++) {
            uint32_t votes = 0;
            for (int m = 0; m < 9; m++) votes += v[m] == v[k];
            const uint32_t key = fo_cwt_vote_of(votes, v[k], FO_CWT_NONE);
            most = key > most ? key : most;
        }
        out[i] = most ? (uint16_t)(FO_CWT_NONE - (most & 0xffff)) : first;
    }
}

static float peak(const float *re, const float *im, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++) {
        const float e = re[i] * re[i] + im[i] * im[i];
        most = e > most ? e : most;
    }
    return most;
}

extern const fo_cwt_loops FTH_ISA_NAME(fo_cwt_loops);
const fo_cwt_loops FTH_ISA_NAME(fo_cwt_loops) = {low,   high, even, odd,   deal,     weave,
                                                 widen, best, take, agree, majority, peak};
