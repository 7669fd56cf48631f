/* base/assert.h - invariants of our own code, stated where the code relies on them.
 *
 * FTH_ASSERT is for what no input can make false: what the world can do wrong returns an
 * fth_status. It is on in debug, test and sanitizer builds and costs nothing in a release, where
 * the condition is compiled but never evaluated; so it must not have side effects.
 */
#ifndef FTH_BASE_ASSERT_H
#define FTH_BASE_ASSERT_H

#include <fathom/base.h>

#ifdef NDEBUG
#define FTH_ASSERT(condition) ((void)sizeof(!(condition)))
#else
/* Prints the place and the condition, and aborts: there is no such function in a release. */
FTH_BEGIN_DECLS
__attribute__((noreturn)) void fth__assert_failed(const char *file, int line,
                                                  const char *condition);
FTH_END_DECLS
#define FTH_ASSERT(condition)                                                                      \
    ((condition) ? (void)0 : fth__assert_failed(__FILE__, __LINE__, #condition))
#endif

#endif
