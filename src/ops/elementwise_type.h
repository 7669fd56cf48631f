/* elementwise_type.h - expand the rows of elementwise.def that one type has. No guard: included per
 * type.
 *
 * Before: FTH__EW_COLUMN (BOOL, INT, REAL or COMPLEX), FTH_T, FTH_U, FTH_FN as elementwise.def
 * says, and FTH__EW_ROW(name, arity, result, expression). The last is undefined again at the end.
 */
#define FTH_EW(name, text, arity, result, b, i, r, c, dx, dy, dz)                                  \
    FTH__EW_TAKE(name, arity, result, FTH__EW_GLUE(FTH__EW_OF_, FTH__EW_COLUMN)(b, i, r, c))
#include <fathom/elementwise.def>
#undef FTH_EW
#undef FTH__EW_ROW
