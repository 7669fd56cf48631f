/* lap_pyr.h - operations of the Laplacian pyramid, level by level.
 *
 * G_0 is the stack, G_l+1 = down(G_l) by [1 4 6 4 1]/16 in both directions; a level's detail is
 * G_l - up(G_l+1). Details are never kept for every plane: select makes them row by row, and keeps
 * those of the plane with the largest energy, so memory does not grow with z. Every operation can
 * be cut along y; borders are reflect101.
 */
#ifndef FOCUS_OPS_LAP_PYR_H
#define FOCUS_OPS_LAP_PYR_H

#include "walk.h"

#include <fathom/isa.h>

typedef struct fo_lap_attr {
    int64_t window;   /* of the energy, odd */
    fth_axis_id y, x; /* down: of the result, half as many rounded up */
} fo_lap_attr;

/* G_l [stack z y x] (u8, u16, f32) -> G_l+1 f32 [stack z y x] */
extern const fth_op fo_lap_down_op;
/* G_l, G_l+1, kept u8 [stack z] -> f32 [stack y x]: details of the plane with the largest energy */
extern const fth_op fo_lap_select_op;
/* G_l, G_l+1, kept -> f32 [stack y x] of G_l+1, from the plane with the largest energy of level l
 * at twice the place */
extern const fth_op fo_lap_base_op;
/* details [stack y x], the image one level below -> the image: details + up(below) */
extern const fth_op fo_lap_up_op;

typedef struct fo_lap_loops {
    void (*widen)(float *out, const void *in, fth_dtype dtype, int64_t n);
    /* Five rows to one, then its columns (with two more on each side) to every second. */
    void (*down_rows)(float *out, const float *const rows[5], int64_t n);
    void (*down_columns)(float *out, const float *in, int64_t n);
    /* Rows of the coarse level (with one more column on each side) to a row between or at them. */
    void (*up_even)(float *out, const float *const rows[3], int64_t n);
    void (*up_odd)(float *out, const float *const rows[2], int64_t n);
    /* Its columns to twice as many. */
    void (*up_columns)(float *out, const float *in, int64_t n);
    /* detail = fine - coarse, and its square */
    void (*detail)(float *detail, float *square, const float *fine, const float *coarse, int64_t n);
    /* Sum of `window` columns around each; of rows. */
    void (*box_columns)(float *out, const float *square, int64_t window, int64_t n);
    void (*box_rows)(float *out, const float *const *rows, int64_t window, int64_t n);
    void (*best)(float *energy, float *value, const float *new_energy, const float *new_value,
                 int64_t n);
    void (*add)(float *out, const float *a, const float *b, int64_t n);
} fo_lap_loops;
FTH_ISA_DECLARE(const fo_lap_loops, fo_lap_loops);

#endif
