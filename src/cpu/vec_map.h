/* vec_map.h - loops of the elementwise operations of one type. No guard: included per type.
 *
 * Before: what ops/elementwise_type.h wants, TAG (part of names), HAS_TWIN (1: there
 * are loops of the other sign), STORE (type in memory), CAST (empty for structs), REAL_STORE and
 * COMPLEX_STORE for results that change kind.
 */
#define FTH__EW_ROW(name, arity, result, expr) LOOPS_##arity(name, result, expr)
#include "ops/elementwise_type.h"
#undef FTH__EW_COLUMN
#undef FTH_T
#undef FTH_U
#undef FTH_FN
#undef TAG
#undef STORE
#undef CAST
#undef REAL_STORE
#undef COMPLEX_STORE
