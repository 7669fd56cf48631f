/* vec.h - loops over blocks of elements, compiled once per instruction set.
 *
 * A block is up to a few thousand elements of one dtype in cache; f16 and bf16 blocks hold f32. A
 * loop may write over one of its operands exactly, never over part of it. Tables are constants;
 * which one is used is asked of the processor each time, so there is nothing to set up and nothing
 * to race for.
 */
#ifndef FTH_CPU_VEC_H
#define FTH_CPU_VEC_H

#include "ops/elementwise.h"
#include "ops/scalar.h"

#include <fathom/isa.h>

/* n elements; src[k] is a block, or one element where the form says scalar. */
typedef void fth__vec_fn(int64_t n, void *out, const void *const *src);

/* Which of the last two operands are one element. Unary operations have only VV. */
enum { FTH__VV, FTH__VS, FTH__SV, FTH__SS, FTH__FORMS };

/* Two instructions in one loop, rounded as two: out = second(first(a, b), c). */
typedef struct fth__vec_pair {
    int16_t first, second; /* fth_ew */
    uint8_t dtype;
    uint8_t swapped;              /* second(c, first(a, b)) */
    fth__vec_fn *run[FTH__FORMS]; /* form of b and c; sources are a b c, those there are */
} fth__vec_pair;

/* Partials of the blocks of one row of n elements, by lanes as ops/fused.h says. */
typedef void fth__blocks_fn(int64_t n, int64_t block, const void *v, void *partial);
/* acc[c] with elements 0.. of column c, in order: v[r * row_step + c * col_step]. */
typedef void fth__column_fn(int64_t rows, int64_t cols, int64_t row_step, int64_t col_step,
                            const void *v, void *acc);
/* to[i] with more[i]; or *to with more[0], more[1]... in order. */
typedef void fth__join_fn(int64_t n, void *to, const void *more);

/* What the files *_kernels.c export, each once per instruction set. */
typedef fth__vec_fn *const fth__map_loops[FTH_EW_COUNT][FTH_DTYPE_COUNT][FTH__FORMS];
typedef fth__vec_fn
    *const fth__cast_loops[FTH_DTYPE_COUNT][FTH_DTYPE_COUNT]; /* 16 bits: as f32, to be rounded */
typedef struct fth__half_loops {
    fth__vec_fn *widen, *narrow; /* memory to f32 and back */
    fth__vec_fn *round;          /* f32 to what the dtype can hold, in place */
} fth__half_loops;
typedef fth__half_loops fth__half_table[2]; /* f16, bf16 */
typedef struct fth__pair_list {
    const fth__vec_pair *pair;
    int n;
} fth__pair_list;
typedef struct fth__tail_loops {
    fth__blocks_fn *blocks[FTH_RED_LOGSUMEXP][FTH_DTYPE_COUNT];
    fth__column_fn *column[FTH_RED_LOGSUMEXP][FTH_DTYPE_COUNT];
    fth__join_fn *join[FTH_RED_LOGSUMEXP][FTH__KIND_COMPLEX + 1];
    fth__join_fn *fold[FTH_RED_LOGSUMEXP][FTH__KIND_COMPLEX + 1];
} fth__tail_loops;

/* Every NaN of n numbers becomes the one of array/nan.h. */
typedef struct fth__nan_loops {
    void (*f32)(int64_t n, void *v);
    void (*f64)(int64_t n, void *v);
} fth__nan_loops;

FTH_ISA_DECLARE(fth__map_loops, fth__map_loops);
FTH_ISA_DECLARE(fth__cast_loops, fth__cast_loops);
FTH_ISA_DECLARE(const fth__half_table, fth__half_loops);
FTH_ISA_DECLARE(const fth__pair_list, fth__pair_loops);
FTH_ISA_DECLARE(const fth__tail_loops, fth__tail_loops);
FTH_ISA_DECLARE(const fth__nan_loops, fth__nan_loops);

/* All of them together. */
typedef struct fth__vec_table {
    fth__map_loops *map;
    fth__cast_loops *cast;
    const fth__half_table *half;
    const fth__pair_list *pairs;
    const fth__tail_loops *tail;
    const fth__nan_loops *nan;
} fth__vec_table;
FTH_ISA_DECLARE(const fth__vec_table, fth__vec_table);

/* Those of this processor. */
static inline const fth__vec_table *fth__vec(void)
{
    return FTH_ISA_BEST(fth__vec_table);
}

/* The integer dtype of the same width whose loops serve both where the sign makes no difference. */
static inline fth_dtype fth__vec_twin(fth_dtype t)
{
    return t == FTH_I8 ? FTH_U8 : t == FTH_I16 ? FTH_U16 : t == FTH_U32 ? FTH_I32 : t;
}

/* The loops of an operation, by form. */
static inline fth__vec_fn *const *fth__vec_map(const fth__vec_table *vec, int op, fth_dtype t)
{
    fth__vec_fn *const *own = (*vec->map)[op][t];
    return own[FTH__VV] ? own : (*vec->map)[op][fth__vec_twin(t)];
}

/* The same of n elements of a dtype that blocks are held in; others have no NaN. */
static inline void fth__vec_one_nan(const fth__vec_table *vec, fth_dtype t, int64_t n, void *v)
{
    if (t == FTH_F32) vec->nan->f32(n, v);
    if (t == FTH_F64) vec->nan->f64(n, v);
    if (t == FTH_C64) vec->nan->f32(2 * n, v);
    if (t == FTH_C128) vec->nan->f64(2 * n, v);
}

/* The dtype blocks of `t` are held in. */
static inline fth_dtype fth__vec_dtype(fth_dtype t)
{
    return t == FTH_F16 || t == FTH_BF16 ? FTH_F32 : t;
}

#endif
