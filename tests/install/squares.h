/* squares.h - what squares_kernels.c exports, and how others take it. */
#ifndef SQUARES_H
#define SQUARES_H

#include <fathom/isa.h>

typedef struct squares_loops {
    double (*sum)(const double *x, int64_t n); /* of the squares of n numbers */
} squares_loops;
FTH_ISA_DECLARE(const squares_loops, squares);

#endif
