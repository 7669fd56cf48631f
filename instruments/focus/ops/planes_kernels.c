/* planes_kernels.c - exact sums over rows of integers, for every instruction set. */
#include "planes.h"

#include <string.h>

static void u8(const uint8_t *v, const uint8_t *before, int64_t n, int64_t *sum)
{
    const uint8_t *b = before ? before : v;
    int64_t value = 0, square = 0, product = 0;
    for (int64_t from = 0; from < n; from += 4096) {
        uint32_t s = 0, q = 0, p = 0;
        const int64_t end = from + 4096 < n ? from + 4096 : n;
        for (int64_t x = from; x < end; x++) {
            s += v[x];
            q += (uint32_t)v[x] * v[x];
            p += (uint32_t)v[x] * b[x];
        }
        value += s, square += q, product += p;
    }
    sum[FO_SUM_VALUE] = value;
    sum[FO_SUM_SQUARE] = square;
    sum[FO_SUM_BEFORE] = before ? product : 0;
}

#if defined(__SSE2__)
#include <immintrin.h>

/* As many values as a register has. They are moved to [-32768, 32767]; then an instruction adds up
 * two products in 32 bits, which only 2^31 does not fit in: less 1 it does, as the largest int. */
#if FTH_ISA_LEVEL >= 4
#define WORDS(name) _mm512_##name
typedef __m512i words;
#define XOR _mm512_xor_si512
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define LOW(v) _mm512_cvtepi32_epi64(_mm512_castsi512_si256(v))
#define HIGH(v) _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(v, 1))
#elif FTH_ISA_LEVEL >= 3
#define WORDS(name) _mm256_##name
typedef __m256i words;
#define XOR _mm256_xor_si256
#define LOAD(p) _mm256_loadu_si256((const void *)(p))
#define LOW(v) _mm256_cvtepi32_epi64(_mm256_castsi256_si128(v))
#define HIGH(v) _mm256_cvtepi32_epi64(_mm256_extracti128_si256(v, 1))
#else
#define WORDS(name) _mm_##name
typedef __m128i words;
#define XOR _mm_xor_si128
#define LOAD(p) _mm_loadu_si128((const void *)(p))
#define LOW(v) _mm_unpacklo_epi32(v, _mm_srai_epi32(v, 31))
#define HIGH(v) _mm_unpackhi_epi32(v, _mm_srai_epi32(v, 31))
#endif
enum { WIDE = sizeof(words) / 2 };

static int64_t add_lanes(words v)
{
    int64_t lane[WIDE / 4], sum = 0;
    memcpy(lane, &v, sizeof lane);
    for (int i = 0; i < WIDE / 4; i++) sum += lane[i];
    return sum;
}

static void u16(const uint16_t *v, const uint16_t *before, int64_t n, int64_t *sum)
{
    const uint16_t *b = before ? before : v;
    const words half = WORDS(set1_epi16)(-32768), one = WORDS(set1_epi32)(1),
                ones = WORDS(set1_epi16)(1);
    words value = WORDS(set1_epi32)(0), other = value, square = value, product = value;
    int64_t x = 0, pairs = 0;
    for (; x + WIDE <= n; x += WIDE, pairs += WIDE / 2) {
        const words p = XOR(LOAD(v + x), half), q = XOR(LOAD(b + x), half);
        const words pp = WORDS(sub_epi32)(WORDS(madd_epi16)(p, p), one),
                    pq = WORDS(sub_epi32)(WORDS(madd_epi16)(p, q), one),
                    sp = WORDS(madd_epi16)(p, ones), sq = WORDS(madd_epi16)(q, ones);
        square = WORDS(add_epi64)(square, WORDS(add_epi64)(LOW(pp), HIGH(pp)));
        product = WORDS(add_epi64)(product, WORDS(add_epi64)(LOW(pq), HIGH(pq)));
        value = WORDS(add_epi64)(value, WORDS(add_epi64)(LOW(sp), HIGH(sp)));
        other = WORDS(add_epi64)(other, WORDS(add_epi64)(LOW(sq), HIGH(sq)));
    }
    /* back: with h = 32768, v = p + h */
    const int64_t h = 32768, sp = add_lanes(value), sq = add_lanes(other);
    int64_t s = sp + h * x, squares = add_lanes(square) + pairs + 2 * h * sp + h * h * x,
            products = add_lanes(product) + pairs + h * (sp + sq) + h * h * x;
    for (; x < n; x++) {
        s += v[x];
        squares += (int64_t)v[x] * v[x];
        products += (int64_t)v[x] * b[x];
    }
    sum[FO_SUM_VALUE] = s;
    sum[FO_SUM_SQUARE] = squares;
    sum[FO_SUM_BEFORE] = before ? products : 0;
}
#else
static void u16(const uint16_t *v, const uint16_t *before, int64_t n, int64_t *sum)
{
    const uint16_t *b = before ? before : v;
    uint64_t value = 0, square = 0, product = 0;
    for (int64_t x = 0; x < n; x++) {
        value += v[x];
        square += (uint32_t)v[x] * (uint32_t)v[x];
        product += (uint32_t)v[x] * (uint32_t)b[x];
    }
    sum[FO_SUM_VALUE] = (int64_t)value;
    sum[FO_SUM_SQUARE] = (int64_t)square;
    sum[FO_SUM_BEFORE] = before ? (int64_t)product : 0;
}
#endif

const fo_sums_loops FTH_ISA_NAME(fo_sums_loops) = {u8, u16};
