/* border.h - what lies outside an image, for operations of the CPU and of a GPU alike.
 *
 * An index outside [0, n) stands for one inside, or for nothing (-1: the value is zero). Images may
 * be smaller than the reach of a kernel: indices bounce as often as they must.
 */
#ifndef FOCUS_OPS_BORDER_H
#define FOCUS_OPS_BORDER_H

#include <stdint.h>

#ifdef __CUDACC__
#define FO_BOTH static inline __host__ __device__
#else
#define FO_BOTH static inline
#endif

typedef enum fo_border {
    FO_BORDER_UNSET = -1,
    FO_BORDER_REPLICATE,  /* a a a | a b c d */
    FO_BORDER_REFLECT101, /* d c b | a b c d */
    FO_BORDER_ZERO,       /* 0 0 0 | a b c d */
    FO_BORDERS,
    FO_BORDER_MIRROR = FO_BORDERS /* c b a | a b c d: half-sample, of smoothing and medians alone */
} fo_border;

/* Where index i of an axis of n > 0 elements lies; -1: nowhere, take zero. */
FO_BOTH int64_t fo_border_at(int64_t i, int64_t n, fo_border border)
{
    if (i >= 0 && i < n) return i;
    if (border == FO_BORDER_ZERO) return -1;
    if (border == FO_BORDER_REPLICATE) return i < 0 ? 0 : n - 1;
    if (border == FO_BORDER_REFLECT101 && n == 1) return 0;
    const int64_t turn = border == FO_BORDER_MIRROR ? 2 * n : 2 * n - 2;
    i = ((i % turn) + turn) % turn;
    if (i < n) return i;
    return border == FO_BORDER_MIRROR ? turn - 1 - i : turn - i;
}

#endif
