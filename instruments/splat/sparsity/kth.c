/* kth.c - by counting digits of 11 bits from the top, one pass over the numbers each. */
#include "kth.h"

#include <string.h>

enum { DIGIT = 11, BINS = 1 << DIGIT, TOP = 33 };

/* Bits of a number as an unsigned one of the same order. */
static uint32_t key_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float value_of(uint32_t key)
{
    const uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

float gs_kth_smallest(const float *v, int64_t n, int64_t k)
{
    uint64_t found = 0; /* digits so far; the first of 33 bits is 0 */
    for (int low = TOP - DIGIT; low >= 0; low -= DIGIT) {
        int64_t count[BINS] = {0};
        for (int64_t i = 0; i < n; i++) {
            const uint64_t key = key_of(v[i]);
            if (key >> (low + DIGIT) == found) count[key >> low & (BINS - 1)]++;
        }
        int64_t digit = 0;
        while (digit < BINS - 1 && count[digit] < k) k -= count[digit++];
        found = found << DIGIT | (uint64_t)digit;
    }
    return value_of((uint32_t)found);
}
