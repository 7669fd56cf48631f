/* resize_rows.h - halving and doubling of one row, or of two that lie below each other.
 *
 * Rows are dense and begin with the first of a pair; n counts pairs. Their loops have no branches:
 * which of four numbers is the largest is as good as random.
 */
#ifndef PTYCHO_OPS_RESIZE_ROWS_H
#define PTYCHO_OPS_RESIZE_ROWS_H

#include <fathom/isa.h>

#define PT_RESIZE_ROWS(T)                                                                          \
    /* the largest, and the sum, of 2 by 2 of rows a and b */                                      \
    void (*halve)(T * to, const T *a, const T *b, int64_t n);                                      \
    void (*add)(T * to, const T *a, const T *b, int64_t n);                                        \
    /* every number twice */                                                                       \
    void (*repeat)(T * to, const T *from, int64_t n);                                              \
    /* from[x] where the largest of 2 by 2 of rows a and b is, 0 elsewhere: rows `to` and `under`  \
     */                                                                                            \
    void (*slope)(T * to, T * under, const T *a, const T *b, const T *from, int64_t n);

typedef struct pt_rows_f32 {
    PT_RESIZE_ROWS(float)
} pt_rows_f32;
typedef struct pt_rows_f64 {
    PT_RESIZE_ROWS(double)
} pt_rows_f64;

FTH_ISA_DECLARE(const pt_rows_f32, pt_rows_f32);
FTH_ISA_DECLARE(const pt_rows_f64, pt_rows_f64);

#endif
