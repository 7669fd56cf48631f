/* fathom/isa.h - instruction sets of the CPU: which one this processor has, and the kernels that
 * are compiled once for each.
 *
 * A file x_kernels.c is compiled once per set with two macros defined: FTH_ISA (base, v3, v4), the
 * last part of the names it exports, and FTH_ISA_LEVEL (1, 3, 4), for #if and for fathom/vector.h.
 * It exports one constant, mostly a struct of functions; everybody else declares the constant of
 * every set in one line and takes the best one in another:
 *
 *   typedef struct blur_loops { void (*rows)(float *row, int64_t n); } blur_loops;
 *   FTH_ISA_DECLARE(const blur_loops, blur);                 // in a header
 *   const blur_loops FTH_ISA_NAME(blur) = {rows};            // in blur_kernels.c
 *   FTH_ISA_BEST(blur)->rows(row, n);                        // anywhere
 *
 * Levels are those of x86-64: 1 what every processor has (SSE2), 3 AVX2 and FMA, 4 AVX-512. On
 * other processors there is only 1. A build that compiles kernels for a set says so to every file
 * by FTH_HAVE_ISA_V3 and FTH_HAVE_ISA_V4; without them there is only base.
 *
 * Ownership: constants only.
 * Threads:   any.
 * Failure:   none: a level that is not there is NULL.
 */
#ifndef FATHOM_ISA_H
#define FATHOM_ISA_H

#include <fathom/base.h>

FTH_BEGIN_DECLS

/* The highest level of this processor that the system has enabled: 1, 3 or 4. */
FTH_API int fth_isa_level(void);

/* The name of what a kernel file exports, for the set it is compiled for: FTH_ISA_NAME(blur) is
 * blur_v3. */
#define FTH_ISA_NAME(name) FTH__ISA_GLUE(name, FTH_ISA)
#define FTH__ISA_GLUE(name, isa) FTH__ISA_GLUE2(name, isa)
#define FTH__ISA_GLUE2(name, isa) name##_##isa

/* Declare `name` of every set of this build; `type` has its const. */
#define FTH_ISA_DECLARE(type, name)                                                                \
    FTH__ISA_DECLARE_V4(type, name)                                                                \
    FTH__ISA_DECLARE_V3(type, name)                                                                \
    extern type name##_base
/* Pointer to the one of `level`; NULL where this build or this processor has not got it. For tests
 * and for what must be the same on several machines. */
#define FTH_ISA_AT(name, level)                                                                    \
    ((level) > fth_isa_level() ? NULL                                                              \
     : (level) == 4            ? FTH__ISA_V4(name)                                                 \
     : (level) == 3            ? FTH__ISA_V3(name)                                                 \
     : (level) == 1            ? &name##_base                                                      \
                               : NULL)
/* Pointer to the best one for this processor, never NULL. */
#define FTH_ISA_BEST(name) (fth_isa_level() >= 4 ? FTH__ISA_TO_V4(name) : FTH__ISA_TO_V3(name))

#ifdef FTH_HAVE_ISA_V3
#define FTH__ISA_DECLARE_V3(type, name) extern type name##_v3;
#define FTH__ISA_V3(name) (&name##_v3)
#define FTH__ISA_TO_V3(name) (fth_isa_level() >= 3 ? &name##_v3 : &name##_base)
#else
#define FTH__ISA_DECLARE_V3(type, name)
#define FTH__ISA_V3(name) NULL
#define FTH__ISA_TO_V3(name) (&name##_base)
#endif
#ifdef FTH_HAVE_ISA_V4
#define FTH__ISA_DECLARE_V4(type, name) extern type name##_v4;
#define FTH__ISA_V4(name) (&name##_v4)
#define FTH__ISA_TO_V4(name) (&name##_v4)
#else
#define FTH__ISA_DECLARE_V4(type, name)
#define FTH__ISA_V4(name) NULL
#define FTH__ISA_TO_V4(name) FTH__ISA_TO_V3(name)
#endif

FTH_END_DECLS

#endif
