/* planes_kernels.c - exact sums over rows of integers, for every instruction set. */
#include "planes.h"

#include <string.h>

static int64_t energy(const float *e, int64_t n)
{
    int64_t sum = 0;
    for (int64_t from = 0; from < n; from += 64) { /* 64 of at most 2^22 each: fits */
        int32_t part = 0;
        const int64_t end = from + 64 < n ? from + 64 : n;
        for (int64_t x = from; x < end; x++) part += (int32_t)(e[x] * 8);
        sum += part;
    }
    return sum;
}

static void u8(const uint8_t *v, const uint8_t *next, int64_t n, int64_t *sum)
{
    const uint8_t *b = next ? next : v;
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
    sum[FO_SUM_NEXT] = next ? product : 0;
}

static void u16(const uint16_t *v, const uint16_t *next, int64_t n, int64_t *sum)
{
    const uint16_t *b = next ? next : v;
    uint64_t value = 0, square = 0, product = 0;
    for (int64_t x = 0; x < n; x++) {
        value += v[x];
        square += (uint32_t)v[x] * (uint32_t)v[x];
        product += (uint32_t)v[x] * (uint32_t)b[x];
    }
    sum[FO_SUM_VALUE] = (int64_t)value;
    sum[FO_SUM_SQUARE] = (int64_t)square;
    sum[FO_SUM_NEXT] = next ? (int64_t)product : 0;
}

const fo_sums_loops FTH_ISA_NAME(fo_sums_loops) = {energy, u8, u16};
