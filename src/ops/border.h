/* border.h - where an index beyond the ends of an axis is read.
 *
 * One function for the reference loops, the fused interpreter and CUDA, so that they cannot differ.
 * Code that is compiled at run time includes this too, so the borders have names of their own here:
 * those of fth_border (ops/view.c compares), and NONE, where no index is beyond.
 */
#ifndef FTH_OPS_BORDER_H
#define FTH_OPS_BORDER_H

#include "array/half.h"

enum {
    FTH__BORDER_NONE = -1,
    FTH__BORDER_ZERO,
    FTH__BORDER_CLAMP,
    FTH__BORDER_REFLECT,
    FTH__BORDER_MIRROR,
    FTH__BORDER_WRAP
};

/* Index i of an axis of n > 0 elements as one of [0, n); -1: no element, the border's number. */
static inline FTH__BOTH int64_t fth__border_index(int border, int64_t n, int64_t i)
{
    if (i >= 0 && i < n) return i;
    if (border == FTH__BORDER_CLAMP) return i < 0 ? 0 : n - 1;
    if (border == FTH__BORDER_WRAP) return i % n < 0 ? i % n + n : i % n;
    if (border != FTH__BORDER_REFLECT && border != FTH__BORDER_MIRROR) return -1;
    /* both repeat: n elements and the same backwards, of which MIRROR has the two ends once */
    const int64_t twice = border == FTH__BORDER_MIRROR ? 1 : 0, period = 2 * (n - twice);
    if (period == 0) return 0;
    const int64_t at = i % period < 0 ? i % period + period : i % period;
    return at < n ? at : period - 1 + twice - at;
}

/* The same of floor(raw / div). */
static inline FTH__BOTH int64_t fth__border_divided(int border, int64_t n, int64_t raw, int64_t div)
{
    const int64_t i = div == 1 ? raw : raw / div - (raw % div < 0 ? 1 : 0);
    return fth__border_index(border, n, i);
}

/* Elements around a part of an axis that a window of it reads, lo before and hi behind each
 * element: what is read backwards at one end lies as far on the other side. */
typedef struct fth__halo {
    int64_t lo, hi;
} fth__halo;
static inline fth__halo fth__border_halo(int border, int64_t lo, int64_t hi)
{
    fth__halo halo = {lo, hi};
    const bool back = border == FTH__BORDER_REFLECT || border == FTH__BORDER_MIRROR;
    if (back) halo.lo = halo.hi = lo > hi ? lo : hi;
    if (border == FTH__BORDER_CLAMP && lo < 0) halo.lo = 0; /* all of it lies beyond one end, */
    if (border == FTH__BORDER_CLAMP && hi < 0) halo.hi = 0; /* where that element is read */
    return halo;
}

/* The smallest index from i on that is read at y, one of [0, n); `end`: there is none before it. */
static inline FTH__BOTH int64_t fth__border_read_at(int border, int64_t n, int64_t y, int64_t i,
                                                    int64_t end)
{
    if (border == FTH__BORDER_CLAMP && ((y == 0 && i <= 0) || (y == n - 1 && i >= y))) return i;
    if (border != FTH__BORDER_REFLECT && border != FTH__BORDER_MIRROR) return i <= y ? y : end;
    const int64_t twice = border == FTH__BORDER_MIRROR ? 1 : 0, period = 2 * (n - twice);
    if (period == 0) return i;
    const int64_t first = y, second = period - 1 + twice - y; /* of a period, first <= second */
    const int64_t at = i % period < 0 ? i % period + period : i % period;
    return i - at + (at <= first ? first : at <= second ? second : period + first);
}

#endif
