/* sort_key.h - elements as keys of their own width that compare like unsigned numbers, in the order
 * of ops/order.h: both zeros have one key, NaN has the last, ascending or descending.
 *
 * A rule says how bits of a dtype become a key, so that one loop for each width serves them all.
 */
#ifndef FTH_CPU_SORT_KEY_H
#define FTH_CPU_SORT_KEY_H

#include <fathom/array.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct fth__key_rule {
    uint64_t negative;   /* what is turned where the sign is set: all bits of a real */
    uint64_t sign;       /* what is turned anyway: the sign, where there is one */
    uint64_t flip;       /* all bits, descending */
    uint64_t inf;        /* magnitudes above it are NaN */
    uint64_t minus_zero; /* bits that become 0; 0 where there are none */
} fth__key_rule;

static inline fth__key_rule fth__key_rule_of(fth_dtype t, bool descending)
{
    static const struct {
        bool has_sign;
        uint64_t inf; /* its bits; 0: integers */
    } forms[FTH_DTYPE_COUNT] = {[FTH_I8] = {.has_sign = true},  [FTH_I16] = {.has_sign = true},
                                [FTH_I32] = {.has_sign = true}, [FTH_I64] = {.has_sign = true},
                                [FTH_F16] = {true, 0x7c00},     [FTH_BF16] = {true, 0x7f80},
                                [FTH_F32] = {true, 0x7f800000}, [FTH_F64] = {true, 0x7ffull << 52}};
    _Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row above");
    const uint64_t top = (uint64_t)1 << (8 * fth_dtype_size(t) - 1);
    const bool real = forms[t].inf != 0;
    return (fth__key_rule){.negative = real ? UINT64_MAX : 0,
                           .sign = forms[t].has_sign ? top : 0,
                           .flip = descending ? UINT64_MAX : 0,
                           .inf = real ? forms[t].inf : top - 1,
                           .minus_zero = real ? top : 0};
}

/* fth__key_U: the key of an element. fth__unkey_U: the element of a key; of zeros the positive one.
 * fth__is_odd_U: NaN or -0, which keys do not give back. */
#define FTH__KEYS(U, S)                                                                            \
    static inline U fth__key_##U(U x, fth__key_rule r)                                             \
    {                                                                                              \
        const U low = (U)((U) ~(U)0 >> 1);                                                         \
        const bool nan = (U)(x & low) > (U)r.inf;                                                  \
        x = x == (U)r.minus_zero ? 0 : x;                                                          \
        const U negative = (U)((U)((S)x >> (8 * sizeof(U) - 1)) & (U)r.negative);                  \
        const U key = (U)(x ^ (U)(negative | (U)r.sign) ^ (U)r.flip);                              \
        return nan ? (U) ~(U)0 : key;                                                              \
    }                                                                                              \
    static inline U fth__unkey_##U(U key, fth__key_rule r)                                         \
    {                                                                                              \
        const U x = (U)(key ^ (U)r.flip);                                                          \
        const U negative = (U)((U) ~(U)((S)x >> (8 * sizeof(U) - 1)) & (U)r.negative);             \
        return (U)(x ^ (U)(negative | (U)r.sign));                                                 \
    }                                                                                              \
    static inline bool fth__is_odd_##U(U x, fth__key_rule r)                                       \
    {                                                                                              \
        const U low = (U)((U) ~(U)0 >> 1);                                                         \
        return ((U)(x & low) > (U)r.inf) | ((x == (U)r.minus_zero) & (r.minus_zero != 0));         \
    }
FTH__KEYS(uint8_t, int8_t)
FTH__KEYS(uint16_t, int16_t)
FTH__KEYS(uint32_t, int32_t)
FTH__KEYS(uint64_t, int64_t)

#endif
