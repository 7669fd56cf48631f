/* testing/engine/vector_loops.h - the operations of fathom/vector.h and fathom/vector_wide.h, one
 * vector at a time, for every instruction set: what vector_f32_kernels.c and vector_f64_kernels.c
 * export.
 */
#ifndef FATHOM_TESTING_VECTOR_LOOPS_H
#define FATHOM_TESTING_VECTOR_LOOPS_H

#include <fathom/isa.h>

typedef enum t_vector_op {
    T_V_SET, /* of a[0] */
    T_V_FMA,
    T_V_FNMA,
    T_V_SQRT,
    T_V_MIN,
    T_V_MAX,
    T_V_RINT,
    T_V_REST,
    T_V_CEIL,
    T_V_FLOOR,
    T_V_LT, /* 1 or 0 */
    T_V_LE,
    T_V_EQ,
    T_V_PICK,  /* a < b ? c : a */
    T_V_SCALE, /* a 2^b */
    T_V_OVER,  /* a / b by 1 / b */
    T_V_SIN_PI_OVER,
    T_V_COS_PI,
    T_V_EXP,
    T_V_OPS
} t_vector_op;

/* Numbers of type void are of the precision of the loops. */
typedef struct t_vector_loops {
    int lanes, wide_lanes;
    void (*map)(t_vector_op op, const void *a, const void *b, const void *c, void *out);
    void (*copy_some)(const void *from, void *to, int n); /* the first n, by a tail */
    uint32_t (*masks)(uint32_t a, uint32_t b);            /* a & ~b, by lanes */
    uint32_t (*all)(void);
    double (*total)(const void *a);
    void (*widen)(const void *a, double *out);
    void (*wide_log)(const void *a, void *out);
    double (*wide_sum)(const void *a);
    double (*wide_f64_sum)(const void *a);                      /* of its lanes as doubles */
    void (*wide_pick)(const void *a, const void *b, void *out); /* a < b ? a : b */
    /* of f64 alone */
    void (*exp_of_negative)(const void *a, void *out);
    void (*transpose)(double *square);
    void (*gather)(const double *table, const double *at, uint32_t in, double other, double *out);
    void (*copy_some_f32)(const float *from, float *to, int n); /* by doubles */
    void (*load_f32)(const float *from, double *to);
    void (*add_product)(double a, const double *b, double *sum); /* of four */
} t_vector_loops;
FTH_ISA_DECLARE(const t_vector_loops, t_vector_f32);
FTH_ISA_DECLARE(const t_vector_loops, t_vector_f64);

#endif
