/* identity.h - the neutral element that a reduction starts from.
 *
 * The total of an axis that comes in pieces may lie in the output between them, and the first
 * pieces may be empty. So the number has to be one that the dtype of the result holds: the ends of
 * that dtype, not those of the i64 that integers are joined in. One table, for the loops here and
 * for those of a device.
 */
#ifndef FTH_OPS_IDENTITY_H
#define FTH_OPS_IDENTITY_H

#include "base/both.h"

#include <math.h>
#include <stdint.h>

/* As fth_red and fth_dtype count them, for a compiler that sees device code alone. */
enum { FTH__JOIN_SUM, FTH__JOIN_PROD, FTH__JOIN_MIN, FTH__JOIN_MAX, FTH__JOIN_ANY, FTH__JOIN_ALL };
enum {
    FTH__D_BOOL,
    FTH__D_U8,
    FTH__D_U16,
    FTH__D_I32,
    FTH__D_I64,
    FTH__D_F16,
    FTH__D_BF16,
    FTH__D_F32,
    FTH__D_F64,
    FTH__D_C64,
    FTH__D_C128,
    FTH__D_U32,
    FTH__D_I16,
    FTH__D_I8
};

/* X(dtype, first value, last value) */
#define FTH__EACH_RANGE(X)                                                                         \
    X(BOOL, 0, 1)                                                                                  \
    X(U8, 0, 0xff)                                                                                 \
    X(U16, 0, 0xffff)                                                                              \
    X(I32, -0x7fffffff - 1, 0x7fffffff)                                                            \
    X(I64, -0x7fffffffffffffff - 1, 0x7fffffffffffffff)                                            \
    X(U32, 0, 0xffffffff)                                                                          \
    X(I16, -0x8000, 0x7fff)                                                                        \
    X(I8, -0x80, 0x7f)

static inline FTH__BOTH int64_t fth__first_int(int dtype)
{
#define FTH__FIRST(name, first, last)                                                              \
    if (dtype == FTH__D_##name) return first;
    FTH__EACH_RANGE(FTH__FIRST)
#undef FTH__FIRST
    return 0;
}
static inline FTH__BOTH int64_t fth__last_int(int dtype)
{
#define FTH__LAST(name, first, last)                                                               \
    if (dtype == FTH__D_##name) return last;
    FTH__EACH_RANGE(FTH__LAST)
#undef FTH__LAST
    return 0;
}

/* bool and integers: what is computed in i64. */
static inline FTH__BOTH int fth__is_whole(int dtype)
{
    return fth__last_int(dtype) != 0;
}

/* Of results of an integer dtype. */
static inline FTH__BOTH int64_t fth__identity_int(int red, int dtype)
{
    if (red == FTH__JOIN_MIN) return fth__last_int(dtype);
    if (red == FTH__JOIN_MAX) return fth__first_int(dtype);
    return red == FTH__JOIN_PROD || red == FTH__JOIN_ALL;
}
/* Of results of any real dtype: all of them have infinities. Also the real part of complex ones. */
static inline FTH__BOTH double fth__identity_real(int red)
{
    return red == FTH__JOIN_MIN    ? (double)INFINITY
           : red == FTH__JOIN_MAX  ? -(double)INFINITY
           : red == FTH__JOIN_PROD ? 1.0
                                   : 0.0;
}

#endif
