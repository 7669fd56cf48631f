/* cwt.h - operations of the complex wavelet transform, level by level.
 *
 * A level of a plane is its low-low corner so far: the padded plane itself (level 0, real) or f32
 * [stack z fo_part y x]. Its three detail bands are never kept for every plane: select goes through
 * them to find the plane of the largest coefficient, pick once more to take the coefficients of the
 * planes that won the vote, so memory does not grow with z. Along y and x the plane is a ring: rows
 * of a level are needed whole, rows of results can be made in pieces.
 */
#ifndef FOCUS_OPS_CWT_H
#define FOCUS_OPS_CWT_H

#include "walk.h"

#include <fathom/isa.h>

/* Planes are named by u8, by u16 where there are more than 254; the largest number is no plane: of
 * coefficients that count as zero in all of them. */
enum { FO_CWT_NONE8 = 255, FO_CWT_NONE = 65535 };
enum { FO_CWT_BANDS = 3 }; /* low-high, high-high, high-low in (y, x) */

/* Attributes of every operation but vote; what one does not use is 0. */
typedef struct fo_cwt_attr {
    int64_t rows, cols;     /* of the level, padded: even (build: of what it makes) */
    int64_t pad;            /* level 0: before the first row and column */
    int64_t height, width;  /* build: of the image */
    fth_axis_id part, band; /* axes of results; band -1: none */
    fth_axis_id y, x;       /* half as many, or in build twice */
    int32_t corner;         /* select, pick: of the level itself instead of its details */
    int32_t last;           /* build: the image, real and cropped */
} fo_cwt_attr;
typedef struct fo_cwt_vote_attr {
    int64_t consistency; /* 0: nothing, 1: between bands, 2: then 3x3 */
} fo_cwt_vote_attr;

/* level [stack z y x] or f32 [stack z part y x] -> f32 [stack z part y x], its low-low corner */
extern const fth_op fo_cwt_low_op;
/* level, kept u8 [stack z], floor f32 [stack] -> planes [stack band y x]: where |c|^2 is largest;
 * below the floor it counts as 0, and 0 in every plane is no plane */
extern const fth_op fo_cwt_select_op;
/* planes [stack band y x], first i64 [stack] -> the same: who won the vote; `first` for none */
extern const fth_op fo_cwt_vote_op;
/* level, planes [stack band y x] -> f32 [stack band part y x]: their coefficients */
extern const fth_op fo_cwt_pick_op;
/* f32 [stack band=1 part y x] or [stack part y x], f32 [stack band part y x] -> one level up */
extern const fth_op fo_cwt_build_op;
/* level [stack z=1 ..] -> f32 [stack]: the largest |c|^2 of its details, of itself with `corner` */
extern const fth_op fo_cwt_peak_op;

/* Loops over columns, compiled once per instruction set; those over names of planes for each of
 * their dtypes. */
typedef struct fo_cwt_planes {
    /* Keep the plane of the larger energy. */
    void (*best)(float *energy, void *plane, const float *re, const float *im, int64_t z,
                 float floor, int64_t n);
    void (*take)(float *out_re, float *out_im, const void *plane, const float *re, const float *im,
                 int64_t z, int64_t n);
    /* Two of three that agree overrule the third. */
    void (*agree)(void *const band[3], int64_t n);
    /* Votes of rows[r][x-1], [x], [x+1]. */
    void (*majority)(void *out, const void *const rows[3], int64_t first, int64_t n);
    /* `first` for no plane. */
    void (*settle)(void *out, const void *row, int64_t first, int64_t n);
} fo_cwt_planes;
typedef struct fo_cwt_loops {
    /* Six lines of samples (re, and im unless NULL) to low-pass or high-pass. */
    void (*low)(const float *const re[6], const float *const *im, float *out_re, float *out_im,
                int64_t n);
    void (*high)(const float *const re[6], const float *const *im, float *out_re, float *out_im,
                 int64_t n);
    /* Lines of a (re, im at 0, 1, 2: 3, 4, 5) and d to even and odd samples. */
    void (*even)(const float *const a[6], const float *const d[6], float *re, float *im, int64_t n);
    void (*odd)(const float *const a[6], const float *const d[6], float *re, float *im, int64_t n);
    /* A line to its even and odd samples, and back. */
    void (*deal)(float *even, float *odd, const float *line, int64_t half);
    void (*weave)(float *line, const float *even, const float *odd, int64_t half);
    void (*widen)(float *out, const void *in, fth_dtype dtype, int64_t n);
    fo_cwt_planes u8, u16;
    float (*peak)(const float *re, const float *im, int64_t n);
} fo_cwt_loops;
FTH_ISA_DECLARE(const fo_cwt_loops, fo_cwt_loops);

#endif
