/* cell_map.h - the elementwise operations of one type as one function. No guard: included per type.
 *
 * Before: what elementwise_type.h wants, MEMBER of fth__cell, its TYPE as CAST (empty for structs),
 * and the members REAL_MEMBER and COMPLEX_MEMBER of results that change kind.
 */
FTH__CELL_FN void FTH__EW_GLUE(map_, MEMBER)(int op, const fth__cell *px, const fth__cell *py,
                                             const fth__cell *pz, fth__cell *out)
{
    switch (op) {
#define FTH__EW_ROW(name, arity, result, expr)                                                     \
    case FTH_EW_##name: {                                                                          \
        const X_##result x = px->XM_##result;                                                      \
        const FTH_T y = py->MEMBER, z = pz->MEMBER;                                                \
        (void)x, (void)y, (void)z;                                                                 \
        out->OUT_##result expr;                                                                    \
        break;                                                                                     \
    }
#include "ops/elementwise_type.h"
    }
}
#undef FTH__EW_COLUMN
#undef FTH_T
#undef FTH_U
#undef FTH_FN
#undef MEMBER
#undef CAST
#undef REAL_MEMBER
#undef COMPLEX_MEMBER
