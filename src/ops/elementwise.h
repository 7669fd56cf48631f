/* elementwise.h - reading the table of elementwise operations, and one element at a time.
 *
 * A cell is one element as it is computed: f16 and bf16 as f32, everything else as itself. The
 * reference kernels of map, cast and fused work on cells; fast kernels expand the same table.
 */
#ifndef FTH_OPS_ELEMENTWISE_H
#define FTH_OPS_ELEMENTWISE_H

#include <fathom/ops.h>

/* 1 when a column of elementwise.def holds (something), 0 when it holds NO. */
#define FTH__EW_HAS(column) FTH__EW_SECOND(FTH__EW_PROBE column, 0, 0)
#define FTH__EW_PROBE(...) 0, 1
#define FTH__EW_SECOND(...) FTH__EW_SECOND_(__VA_ARGS__)
#define FTH__EW_SECOND_(a, b, ...) b
/* The text, when the column holds something. */
#define FTH__EW_IF(column, ...) FTH__EW_GLUE(FTH__EW_IF_, FTH__EW_HAS(column))(__VA_ARGS__)
#define FTH__EW_IF_0(...)
#define FTH__EW_IF_1(...) __VA_ARGS__
/* The text, or NULL. */
#define FTH__EW_OR_NULL(column, ...)                                                               \
    FTH__EW_GLUE(FTH__EW_OR_NULL_, FTH__EW_HAS(column))(__VA_ARGS__)
#define FTH__EW_OR_NULL_0(...) NULL
#define FTH__EW_OR_NULL_1(...) __VA_ARGS__
/* For elementwise_type.h: the column of a class, and its row when there is one. */
#define FTH__EW_OF_BOOL(b, i, r, c) b
#define FTH__EW_OF_INT(b, i, r, c) i
#define FTH__EW_OF_REAL(b, i, r, c) r
#define FTH__EW_OF_COMPLEX(b, i, r, c) c
#define FTH__EW_TAKE(name, arity, result, expr)                                                    \
    FTH__EW_IF(expr, FTH__EW_ROW(name, arity, result, expr))
#define FTH__EW_GLUE(a, b) FTH__EW_GLUE_(a, b)
#define FTH__EW_GLUE_(a, b) a##b

FTH_BEGIN_DECLS

typedef enum fth__ew_result {
    FTH__EW_SAME,
    FTH__EW_PICK,
    FTH__EW_BOOL,
    FTH__EW_REAL,
    FTH__EW_COMPLEX
} fth__ew_result;
enum { FTH__CLASS_BOOL = 1, FTH__CLASS_INT = 2, FTH__CLASS_REAL = 4, FTH__CLASS_COMPLEX = 8 };

typedef struct fth__ew_row {
    const char *name;
    int arity;
    fth__ew_result result;
    unsigned classes; /* of dtypes it is defined for */
} fth__ew_row;
const fth__ew_row *fth__ew_info(fth_ew op);
unsigned fth__dtype_class(fth_dtype t);
/* dtype of op's result for operands of dtype t (of the second, for SELECT); FTH_DTYPE_COUNT:
 * refused. */
fth_dtype fth__ew_dtype(fth_ew op, fth_dtype t);

/* Operands in the other order give the same bits. */
bool fth__ew_commutes(fth_ew op, fth_dtype t);
/* IEEE 754 (of reals) and C (of integers) say every bit of the result. */
bool fth__ew_is_exact(fth_ew op);

typedef union fth__cell {
    uint8_t b, u8;
    uint16_t u16;
    uint32_t u32;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
    fth_c64 c64;
    fth_c128 c128;
} fth__cell;
void fth__cell_load(fth_dtype t, const void *p, fth__cell *out);
void fth__cell_store(fth_dtype t, const fth__cell *v, void *p);
/* A constant, of the table's two notations. */
void fth__cell_const(fth_dtype t, fth_c128 value, int64_t integer, fth__cell *out);
/* The two notations of a cell; false: it is not finite. */
bool fth__cell_number(fth_dtype t, const fth__cell *v, fth_c128 *value, int64_t *integer);
/* `t` as for fth__ew_dtype. Operands an operation does not have are not read. */
void fth__cell_map(fth_ew op, fth_dtype t, const fth__cell *x, const fth__cell *y,
                   const fth__cell *z, fth__cell *out);
/* false: the value does not fit; *out is unchanged. */
bool fth__cell_cast(fth_dtype from, fth_dtype to, const fth__cell *v, fth__cell *out);

/* Whether a cast exists at all, and whether there are values for which it fails. */
bool fth__cast_allowed(fth_dtype from, fth_dtype to);
bool fth__cast_may_fail(fth_dtype from, fth_dtype to);

FTH_END_DECLS
#endif
