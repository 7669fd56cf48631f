/* vec_loop.h - how a loop over elements is written so that every compiler makes it a vector loop.
 */
#ifndef FTH_CPU_VEC_LOOP_H
#define FTH_CPU_VEC_LOOP_H

/* Before a loop whose iterations touch only their own element: an operand written in place is no
 * dependence, and must not cost a run-time check that sends the loop to its scalar version. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* divisions of integers stay scalar, and may */
#define FTH__EACH _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define FTH__EACH _Pragma("GCC ivdep")
#else
#define FTH__EACH
#endif

/* Before a function that is lent to many dtypes: not once more for each of them. */
#if defined(__GNUC__) && !defined(__clang__)
#define FTH__LENT __attribute__((noipa))
#else
#define FTH__LENT __attribute__((noinline))
#endif

#endif
