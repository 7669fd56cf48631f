/* fathom/vector.h - vectors for kernels of the CPU: as wide as the registers of the instruction set
 * that the file is compiled for (fathom/isa.h), and the functions that kernels share.
 *
 * fth_f32v and fth_f64v hold FTH_F32V_LANES and FTH_F64V_LANES numbers; + - * / and unary - work on
 * them and with single numbers. fth_i32v and fth_i64v hold as many integers, for bits (not at level
 * 0). fth_m32v and fth_m64v are a truth per lane of a vector of reals. The operations are in
 * vector_ops.inc, written once for both precisions, the functions with their errors in
 * vector_math.inc; vectors of 64 bytes on every set, which give the same bits on all, are in
 * fathom/vector_wide.h. A file that works in one precision, or is compiled once for each, sets
 * FTH_VECTOR_REAL to 32 or 64 before the include and gets short names without the precision:
 *
 *   #define FTH_VECTOR_REAL 64
 *   #include <fathom/vector.h>
 *
 *   static void scale(double *x, int64_t n, double by)
 *   {
 *       int64_t i = 0;
 *       for (; i + LANES <= n; i += LANES) v_store(x + i, v_load(x + i) * by);
 *       v_store_some(x + i, v_load_some(x + i, (int)(n - i)) * by, (int)(n - i));
 *   }
 *
 * An operation gives the same bits in every lane. All sets agree to the bit except where an fma
 * rounds once and, at level 1, twice: fma, fnma and the functions. Compile with
 * -ffp-contract=off, or the compiler makes fmas of its own. At level 0 a vector is one number and
 * the functions are the device's: what a thread of a GPU runs of the same source.
 *
 * Ownership: none. Threads: any. Failure: none; everything is inlined.
 */
#ifndef FATHOM_VECTOR_H
#define FATHOM_VECTOR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef FTH_ISA_LEVEL
#define FTH_ISA_LEVEL 1
#endif

/* Marks the functions of a kernel that take or return vectors: all is inlined, so how a vector
 * would be passed from one object file to another, which gcc has a note about, is nobody's concern.
 */
#if defined(__CUDACC__)
#define FTH_LANE static inline __attribute__((unused)) __host__ __device__
#elif FTH_ISA_LEVEL == 0
#define FTH_LANE static inline __attribute__((unused))
#else
#define FTH_LANE static inline __attribute__((always_inline, unused))
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#if FTH_ISA_LEVEL >= 4
#define FTH_VECTOR_BYTES 64
#elif FTH_ISA_LEVEL >= 3
#define FTH_VECTOR_BYTES 32
#else
#define FTH_VECTOR_BYTES 16
#endif
#if FTH_ISA_LEVEL >= 3
#include <immintrin.h>
#endif

/* ---- types ---- */

#if FTH_ISA_LEVEL == 0
#define FTH_F32V_LANES 1
#define FTH_F64V_LANES 1
typedef float fth_f32v;
typedef double fth_f64v, fth_f32v_f64, fth_f64v_f64;
typedef bool fth_m32v, fth_m64v;
typedef struct fth_f64x4 {
    double at[4];
} fth_f64x4;
#else
#define FTH_F32V_LANES (FTH_VECTOR_BYTES / 4)
#define FTH_F64V_LANES (FTH_VECTOR_BYTES / 8)
typedef int32_t fth_i32v __attribute__((vector_size(FTH_VECTOR_BYTES)));
typedef int64_t fth_i64v __attribute__((vector_size(FTH_VECTOR_BYTES)));
typedef uint32_t fth_u32v __attribute__((vector_size(FTH_VECTOR_BYTES)));
typedef uint64_t fth_u64v __attribute__((vector_size(FTH_VECTOR_BYTES)));
typedef float fth_f32v __attribute__((vector_size(FTH_VECTOR_BYTES)));
typedef double fth_f64v __attribute__((vector_size(FTH_VECTOR_BYTES)));
#if FTH_ISA_LEVEL >= 4
typedef __mmask16 fth_m32v;
typedef __mmask8 fth_m64v;
#else
typedef fth_i32v fth_m32v;
typedef fth_i64v fth_m64v;
#endif
/* A double for each lane, for sums. */
typedef double fth_f32v_f64 __attribute__((vector_size(8 * FTH_F32V_LANES)));
typedef double fth_f64v_f64 __attribute__((vector_size(8 * FTH_F64V_LANES)));
/* Four doubles on every set. */
typedef double fth_f64x4 __attribute__((vector_size(32)));
#endif

/* ---- operations and functions, for each precision (the former include the latter) ---- */

#define FTH__V_BITS 32
#include <fathom/vector_ops.inc>
#undef FTH__V_BITS
#define FTH__V_BITS 64
#include <fathom/vector_ops.inc>
#undef FTH__V_BITS

/* *sum += a * *b */
FTH_LANE void fth_f64x4_add_product(double a, const fth_f64x4 *b, fth_f64x4 *sum)
{
#if FTH_ISA_LEVEL == 0
    for (int i = 0; i < 4; i++) sum->at[i] = fma(a, b->at[i], sum->at[i]);
#elif FTH_ISA_LEVEL >= 3
    *sum = _mm256_fmadd_pd(_mm256_set1_pd(a), *b, *sum);
#else
    *sum = a * *b + *sum;
#endif
}
FTH_LANE double fth_f64x4_get(const fth_f64x4 *a, int i)
{
#if FTH_ISA_LEVEL == 0
    return a->at[i];
#else
    return (*a)[i];
#endif
}

/* ---- short names of one precision ---- */

#ifdef FTH_VECTOR_REAL
#ifdef FTH__VECTOR_SHORT
#error "one file has the short names of one header: set FTH_VECTOR_REAL behind the other include"
#endif
#define FTH__VECTOR_SHORT
#define LANE FTH_LANE
#if FTH_VECTOR_REAL == 32
#define LANES FTH_F32V_LANES
#define R(x) x##f
#define FTH__V_SHORT(name) fth_f32v_##name
#define FTH__M_SHORT(name) fth_m32v_##name
typedef float real;
typedef fth_f32v vr;
typedef fth_m32v vm;
typedef fth_f32v_f64 va;
#if FTH_ISA_LEVEL >= 1
typedef fth_i32v vi;
#endif
#else
#define LANES FTH_F64V_LANES
#define R(x) x
#define FTH__V_SHORT(name) fth_f64v_##name
#define FTH__M_SHORT(name) fth_m64v_##name
typedef double real;
typedef fth_f64v vr;
typedef fth_m64v vm;
typedef fth_f64v_f64 va;
#if FTH_ISA_LEVEL >= 1
typedef fth_i64v vi;
#endif
#endif
#define v_set FTH__V_SHORT(set)
#define v_load FTH__V_SHORT(load)
#define v_store FTH__V_SHORT(store)
#define v_load_some FTH__V_SHORT(load_some)
#define v_store_some FTH__V_SHORT(store_some)
#define v_fma FTH__V_SHORT(fma)
#define v_fnma FTH__V_SHORT(fnma)
#define v_sqrt FTH__V_SHORT(sqrt)
#define v_min FTH__V_SHORT(min)
#define v_max FTH__V_SHORT(max)
#define v_rint FTH__V_SHORT(rint)
#define v_rest FTH__V_SHORT(rest)
#define v_ceil FTH__V_SHORT(ceil)
#define v_floor FTH__V_SHORT(floor)
#define v_lt FTH__V_SHORT(lt)
#define v_le FTH__V_SHORT(le)
#define v_eq FTH__V_SHORT(eq)
#define v_pick FTH__V_SHORT(pick)
#define v_scale FTH__V_SHORT(scale)
#define v_over FTH__V_SHORT(over)
#define v_wide FTH__V_SHORT(wide)
#define v_total FTH__V_SHORT(total)
#define v_sin_pi_over FTH__V_SHORT(sin_pi_over)
#define v_cos_pi FTH__V_SHORT(cos_pi)
#define v_exp FTH__V_SHORT(exp)
#define m_and FTH__M_SHORT(both)
#define m_not FTH__M_SHORT(inverse)
#define m_bits FTH__M_SHORT(bits)
#define m_of FTH__M_SHORT(of)
#define m_all FTH__M_SHORT(all)
#endif

#endif
