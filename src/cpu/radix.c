/* radix.c - lines in order by the digits of their keys, from the last digit to the first.
 *
 * All digits are counted in one reading; one in which every element agrees is skipped, so narrow
 * ranges cost few passes. Where positions are wanted, only they travel, in 32 bits, and keys are
 * looked up in the line; otherwise only keys do, and become elements again.
 */
#include "cpu/radix.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/sort_key.h"

#include <string.h>

enum {
    BLOCK = 1 << 18, /* elements of a pass between questions: about a millisecond */
    SHORT = 1 << 11  /* elements of a line that one more pass costs less than larger digits do */
};

/* A pass goes on to `hi`; false: to its end, or the run is cancelled. */
static bool goes_on(const fth__radix_line *l, int64_t lo, int64_t *hi)
{
    *hi = fth__min_i64(lo + BLOCK, l->n);
    return lo < l->n && fth__asking_on(l->ask, (double)(*hi - lo));
}

/* Counts become the places of the first of each digit. */
static void sum_up(uint32_t *count, int digits, int64_t n)
{
    uint32_t at = 0;
    for (int k = 0; k < digits; k++) {
        const uint32_t here = count[k];
        count[k] = at;
        at += here;
    }
    FTH_ASSERT(at == (uint32_t)n);
    (void)n;
}

/* Keys of one byte are counted, and written as often as they were there. */
static void count_values(const fth__radix_line *l)
{
    const fth__key_rule r = fth__key_rule_of(l->dtype, l->descending);
    int64_t count[2][256] = {{0}}, at = 0; /* two: neighbours are often equal */
    for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)
        for (int64_t i = lo; i < hi; i++)
            count[i & 1][fth__key_uint8_t(*(const uint8_t *)(l->line + i * l->step), r)]++;
    if (l->ask->off) return;
    for (int k = 0; k < 256; k++) {
        const int64_t times = count[0][k] + count[1][k];
        const uint8_t x = fth__unkey_uint8_t((uint8_t)k, r);
        if (l->value_step == 1)
            memset(l->value + at, x, (size_t)times);
        else
            for (int64_t i = 0; i < times; i++)
                *(uint8_t *)(l->value + (at + i) * l->value_step) = x;
        at += times;
    }
}

#define AT(U, l, i) (*(const U *)(const void *)((l)->line + (int64_t)(i) * (l)->step))
#define DIGIT(key, d, BITS) ((uint32_t)((key) >> ((d) * (BITS))) & ((1u << (BITS)) - 1))

/* U: keys, of DIGITS digits of so many BITS: what they count fits the first cache. */
#define DEFINE_ORDER(name, U, DIGITS, BITS)                                                        \
    /* Positions `from` (NULL: as the elements lie) by digit d, into `to` or, NULL, the result. */ \
    static void pass_##name(const fth__radix_line *l, fth__key_rule r, int d, uint32_t *place,     \
                            const uint32_t *from, uint32_t *to)                                    \
    {                                                                                              \
        for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi) {                                   \
            for (int64_t k = lo; to && k < hi; k++) {                                              \
                const uint32_t i = from ? from[k] : (uint32_t)k;                                   \
                to[place[DIGIT(fth__key_##U(AT(U, l, i), r), d, BITS)]++] = i;                     \
            }                                                                                      \
            for (int64_t k = lo; !to && k < hi; k++) {                                             \
                const int64_t i = from ? from[k] : k;                                              \
                const U x = AT(U, l, i);                                                           \
                const int64_t at = place[DIGIT(fth__key_##U(x, r), d, BITS)]++;                    \
                if (l->value) *(U *)(void *)(l->value + at * l->value_step) = x;                   \
                if (l->order) *(int64_t *)(void *)(l->order + at * l->order_step) = i;             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void order_##name(const fth__radix_line *l)                                             \
    {                                                                                              \
        const fth__key_rule r = fth__key_rule_of(l->dtype, l->descending);                         \
        uint32_t count[DIGITS][1 << (BITS)] = {{0}}, *to = l->scratch, *other = to + l->n;         \
        const uint32_t *from = NULL;                                                               \
        int digit[DIGITS], digits = 0;                                                             \
        for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)                                     \
            for (int64_t i = lo; i < hi; i++) {                                                    \
                const U key = fth__key_##U(AT(U, l, i), r);                                        \
                for (int d = 0; d < (DIGITS); d++) count[d][DIGIT(key, d, BITS)]++;                \
            }                                                                                      \
        if (l->ask->off) return;                                                                   \
        const U first = fth__key_##U(AT(U, l, 0), r);                                              \
        for (int d = 0; d < (DIGITS); d++) {                                                       \
            if (count[d][DIGIT(first, d, BITS)] != (uint32_t)l->n) digit[digits++] = d;            \
            sum_up(count[d], 1 << (BITS), l->n);                                                   \
        }                                                                                          \
        if (digits == 0) digit[digits++] = 0; /* all are equal: they stay */                       \
        l->ask->done += (double)((DIGITS)-digits) * (double)l->n;                                  \
        for (int k = 0; k < digits - 1; k++) {                                                     \
            pass_##name(l, r, digit[k], count[digit[k]], from, to);                                \
            from = to;                                                                             \
            to = other;                                                                            \
            other = l->scratch == to ? to + l->n : l->scratch;                                     \
        }                                                                                          \
        if (l->ask->off) return; /* positions may be missing */                                    \
        pass_##name(l, r, digit[digits - 1], count[digit[digits - 1]], from, NULL);                \
    }

/* Zeros and NaNs of sorted values with their own bits, in the order of the line. */
#define DEFINE_RESTORE(U)                                                                          \
    static void restore_##U(const fth__radix_line *l)                                              \
    {                                                                                              \
        const fth__key_rule r = fth__key_rule_of(l->dtype, l->descending);                         \
        int64_t at[2] = {0, 0}; /* the first zero, the first NaN */                                \
        for (int k = 0; k < 2; k++)                                                                \
            for (int64_t left = l->n; left > 0;) {                                                 \
                const int64_t half = left / 2, mid = at[k] + half;                                 \
                const U x = *(const U *)(const void *)(l->value + mid * l->value_step);            \
                const bool before = fth__key_##U(x, r) < (k ? (U) ~(U)0 : fth__key_##U(0, r));     \
                at[k] = before ? mid + 1 : at[k];                                                  \
                left = before ? left - half - 1 : half;                                            \
            }                                                                                      \
        for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)                                     \
            for (int64_t i = lo; i < hi; i++) {                                                    \
                const U x = AT(U, l, i);                                                           \
                if (x == 0 || fth__is_odd_##U(x, r))                                               \
                    *(U *)(void *)(l->value +                                                      \
                                   at[x != 0 && x != (U)r.minus_zero]++ * l->value_step) = x;      \
            }                                                                                      \
    }
DEFINE_RESTORE(uint16_t)
DEFINE_RESTORE(uint32_t)
DEFINE_RESTORE(uint64_t)
void fth__radix_restore(const fth__radix_line *l)
{
    switch (fth_dtype_size(l->dtype)) {
    case 2: restore_uint16_t(l); break;
    case 4: restore_uint32_t(l); break;
    case 8: restore_uint64_t(l); break;
    default: break; /* a byte is always itself */
    }
}

#define DEFINE_VALUES(name, U, DIGITS, BITS)                                                       \
    static void values_##name(const fth__radix_line *l)                                            \
    {                                                                                              \
        const fth__key_rule r = fth__key_rule_of(l->dtype, l->descending);                         \
        uint32_t count[DIGITS][1 << (BITS)] = {{0}};                                               \
        U *a = l->scratch, *b = a + l->n;                                                          \
        bool odd = false;                                                                          \
        for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)                                     \
            for (int64_t i = lo; i < hi; i++) {                                                    \
                const U x = AT(U, l, i), key = fth__key_##U(x, r);                                 \
                odd |= fth__is_odd_##U(x, r);                                                      \
                for (int d = 0; d < (DIGITS); d++) count[d][DIGIT(key, d, BITS)]++;                \
                a[i] = key;                                                                        \
            }                                                                                      \
        if (l->ask->off) return; /* counts may be missing */                                       \
        for (int d = 0; d < (DIGITS); d++) {                                                       \
            uint32_t *place = count[d];                                                            \
            if (place[DIGIT(a[0], d, BITS)] == (uint32_t)l->n) {                                   \
                l->ask->done += (double)l->n; /* a pass less */                                    \
                continue;                                                                          \
            }                                                                                      \
            sum_up(place, 1 << (BITS), l->n);                                                      \
            for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)                                 \
                for (int64_t i = lo; i < hi; i++) b[place[DIGIT(a[i], d, BITS)]++] = a[i];         \
            if (l->ask->off) return;                                                               \
            U *other = a;                                                                          \
            a = b;                                                                                 \
            b = other;                                                                             \
        }                                                                                          \
        for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)                                     \
            if (l->value_step == (int64_t)sizeof(U))                                               \
                for (int64_t i = lo; i < hi; i++)                                                  \
                    ((U *)(void *)l->value)[i] = fth__unkey_##U(a[i], r);                          \
            else                                                                                   \
                for (int64_t i = lo; i < hi; i++)                                                  \
                    *(U *)(void *)(l->value + i * l->value_step) = fth__unkey_##U(a[i], r);        \
        if (odd && !l->ask->off) restore_##U(l);                                                   \
    }

DEFINE_ORDER(1, uint8_t, 1, 8)
DEFINE_ORDER(2, uint16_t, 2, 8)
DEFINE_ORDER(4, uint32_t, 3, 11)
DEFINE_ORDER(8, uint64_t, 6, 11)
DEFINE_ORDER(short_4, uint32_t, 4, 8)
DEFINE_ORDER(short_8, uint64_t, 8, 8)
DEFINE_VALUES(2, uint16_t, 2, 8)
DEFINE_VALUES(4, uint32_t, 3, 11)
DEFINE_VALUES(8, uint64_t, 6, 11)
DEFINE_VALUES(short_4, uint32_t, 4, 8)
DEFINE_VALUES(short_8, uint64_t, 8, 8)

/* As many elements of two bytes as there are patterns are counted like those of one. */
enum { PATTERNS = 1 << 16 };

/* NaNs as one of them, -0 as 0; true: there were some. */
static bool count_odd(uint32_t *count, fth__key_rule r)
{
    const uint16_t nan = fth__unkey_uint16_t(UINT16_MAX, r);
    uint32_t odd = 0;
    for (uint32_t x = 0; x < PATTERNS; x++) {
        if (!fth__is_odd_uint16_t((uint16_t)x, r)) continue;
        const uint32_t times = count[x];
        odd |= times;
        count[x] = 0;
        count[x == r.minus_zero ? 0 : nan] += times;
    }
    return odd != 0;
}

/* Elements in the order of their keys; most patterns are there a few times, so that some are
 * written at once and the next pattern goes over what was too much. */
static void put_counted(const fth__radix_line *l, fth__key_rule r, const uint32_t *count)
{
    enum { SOME = 16 };
    const bool along = l->value_step == (int64_t)sizeof(uint16_t);
    int64_t at = 0;
    for (uint32_t k = 0; k < PATTERNS; k++) {
        const uint16_t x = fth__unkey_uint16_t((uint16_t)k, r);
        const int64_t end = at + count[x];
        if (along) {
            uint16_t *to = (uint16_t *)(void *)l->value;
            for (; at < end && at + SOME <= l->n; at += SOME)
                for (int i = 0; i < SOME; i++) to[at + i] = x;
            for (; at < end; at++) to[at] = x;
        } else {
            for (; at < end; at++) *(uint16_t *)(void *)(l->value + at * l->value_step) = x;
        }
        at = end;
    }
}

static void values_by_counts(const fth__radix_line *l)
{
    const fth__key_rule r = fth__key_rule_of(l->dtype, l->descending);
    uint32_t *count = l->scratch;
    memset(count, 0, PATTERNS * sizeof *count);
    for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)
        for (int64_t i = lo; i < hi; i++) count[AT(uint16_t, l, i)]++;
    if (l->ask->off) return;
    /* one pass for all that were announced */
    l->ask->done += (fth__radix_passes(l->n, sizeof(uint16_t), false) - 1) * (double)l->n;
    const bool odd = r.negative != 0 && count_odd(count, r);
    put_counted(l, r, count);
    if (odd) restore_uint16_t(l);
}
static void values_short(const fth__radix_line *l)
{
    if (fth__radix_by_patterns(l->n, sizeof(uint16_t)))
        values_by_counts(l); /* which the workspace has room for */
    else
        values_2(l);
}

/* Positions of keys of two bytes: the second digit travels above the position, so that the last
 * pass reads nothing but what the first one wrote. */
enum { POSITION = 24 };
static inline __attribute__((always_inline)) void places_by(const fth__radix_line *l,
                                                            fth__key_rule r, int64_t step,
                                                            int64_t order_step, bool integers)
{
    const uint16_t turned = (uint16_t)(r.sign ^ r.flip);
    uint32_t low[2][256] = {{0}}, high[2][256] = {{0}}, *to = l->scratch;
#define KEY(i)                                                                                     \
    (integers ? (uint16_t)(*(const uint16_t *)(const void *)(l->line + (i)*step) ^ turned)         \
              : fth__key_uint16_t(*(const uint16_t *)(const void *)(l->line + (i)*step), r))
    for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)
        for (int64_t i = lo; i < hi; i++) {
            const uint16_t key = KEY(i);
            low[i & 1][key & 255]++; /* two: neighbours are often equal */
            high[i & 1][key >> 8]++;
        }
    if (l->ask->off) return;
    for (int k = 0; k < 256; k++) {
        low[0][k] += low[1][k];
        high[0][k] += high[1][k];
    }
    sum_up(low[0], 256, l->n);
    sum_up(high[0], 256, l->n);
    for (int64_t lo = 0, hi; goes_on(l, lo, &hi); lo = hi)
        for (int64_t i = lo; i < hi; i++) {
            const uint16_t key = KEY(i);
            to[low[0][key & 255]++] = (uint32_t)i | (uint32_t)(key >> 8) << POSITION;
        }
#undef KEY
    char *const order = l->order; /* what is written might be l */
    for (int64_t lo = 0, hi; !l->ask->off && goes_on(l, lo, &hi); lo = hi)
        for (int64_t i = lo; i < hi; i++)
            *(int64_t *)(void *)(order + high[0][to[i] >> POSITION]++ * order_step) =
                to[i] & ((1 << POSITION) - 1);
}
static void places_2(const fth__radix_line *l)
{
    const fth__key_rule r = fth__key_rule_of(l->dtype, l->descending);
    if (l->value || l->n > 1 << POSITION)
        order_2(l);
    else if (l->step == (int64_t)sizeof(uint16_t) && l->order_step == (int64_t)sizeof(int64_t) &&
             !r.negative)
        places_by(l, r, sizeof(uint16_t), sizeof(int64_t), true);
    else
        places_by(l, r, l->step, l->order_step, false);
}

int fth__radix_passes(int64_t n, int64_t size, bool order)
{
    if (size == 1 && !order) return 1;
    const int digits = size < 4 || n <= SHORT ? (int)size : size == 4 ? 3 : 6;
    return digits + (order ? 1 : 2); /* they are counted; keys become elements again */
}

void fth__radix_sort(const fth__radix_line *l)
{
    typedef void sort_fn(const fth__radix_line *l);
    static sort_fn *const of[2][9][2] = {{[1] = {count_values, order_1},
                                          [2] = {values_short, places_2},
                                          [4] = {values_4, order_4},
                                          [8] = {values_8, order_8}},
                                         {[1] = {count_values, order_1},
                                          [2] = {values_short, places_2},
                                          [4] = {values_short_4, order_short_4},
                                          [8] = {values_short_8, order_short_8}}};
    if (l->n > 0) of[l->n <= SHORT][fth_dtype_size(l->dtype)][l->order != NULL](l);
}
