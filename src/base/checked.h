/* base/checked.h - arithmetic on sizes that says when it overflows.
 *
 * Every function returns true and writes *out, or returns false and leaves
 * *out alone. Sizes come from files and users: none of them is trusted.
 */
#ifndef FTH_BASE_CHECKED_H
#define FTH_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

#define FTH__DEFINE_CHECKED(suffix, type)                                                          \
    static inline bool fth__mul_##suffix(type a, type b, type *out)                                \
    {                                                                                              \
        type r;                                                                                    \
        if (__builtin_mul_overflow(a, b, &r)) return false;                                        \
        *out = r;                                                                                  \
        return true;                                                                               \
    }                                                                                              \
    static inline bool fth__add_##suffix(type a, type b, type *out)                                \
    {                                                                                              \
        type r;                                                                                    \
        if (__builtin_add_overflow(a, b, &r)) return false;                                        \
        *out = r;                                                                                  \
        return true;                                                                               \
    }                                                                                              \
    static inline bool fth__sub_##suffix(type a, type b, type *out)                                \
    {                                                                                              \
        type r;                                                                                    \
        if (__builtin_sub_overflow(a, b, &r)) return false;                                        \
        *out = r;                                                                                  \
        return true;                                                                               \
    }
FTH__DEFINE_CHECKED(i64, int64_t)
FTH__DEFINE_CHECKED(u64, uint64_t)
#undef FTH__DEFINE_CHECKED

/* Narrowing: false when the value does not fit. */
static inline bool fth__u64_to_i64(uint64_t v, int64_t *out)
{
    if (v > (uint64_t)INT64_MAX) return false;
    *out = (int64_t)v;
    return true;
}

/* The next multiple of `unit` (any positive number); false when it overflows. */
static inline bool fth__round_up_u64(uint64_t v, uint64_t unit, uint64_t *out)
{
    const uint64_t over = v % unit;
    if (over == 0) {
        *out = v;
        return true;
    }
    return fth__add_u64(v, unit - over, out);
}
static inline uint64_t fth__round_down_u64(uint64_t v, uint64_t unit)
{
    return v - v % unit;
}
/* a / b rounded up, for a >= 0 and b > 0; cannot overflow. */
static inline int64_t fth__ceil_div_i64(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static inline int64_t fth__min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t fth__max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline uint64_t fth__min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t fth__max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
