/* order.h - elements as keys that compare like unsigned numbers: for sort, topk and ranked.
 *
 * Both zeros have one key. NaN comes last, ascending or descending.
 */
#ifndef FTH_OPS_ORDER_H
#define FTH_OPS_ORDER_H

#include "ops/scalar.h"

/* Best elements that topk keeps in order, each insertion moving half of them; of more, candidates
 * are sorted out. */
enum { FTH__TOPK_FEW = 128 };

typedef struct fth__keyed {
    uint64_t key;
    int64_t index;
} fth__keyed;

/* Stable; `b` has room for n too, and the result lies in one of the two. */
const fth__keyed *fth__order_sort(fth__keyed *a, fth__keyed *b, int64_t n);

static inline uint64_t fth__order_real(double x, bool descending)
{
    uint64_t bits;
    if (x != x) return UINT64_MAX;
    x += 0.0; /* -0 becomes +0 */
    memcpy(&bits, &x, sizeof bits);
    const uint64_t key = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    return descending ? ~key : key;
}

static inline uint64_t fth__order_int(int64_t x, bool descending)
{
    const uint64_t key = (uint64_t)x ^ (uint64_t)1 << 63;
    return descending ? ~key : key;
}

static inline uint64_t fth__order_key(fth_dtype t, const void *p, bool descending)
{
    const fth__wide w = fth__load(t, p);
    return fth_dtype_is_real(t) ? fth__order_real(w.f, descending)
                                : fth__order_int(w.i, descending);
}

#endif
