/* solve.h - small dense systems of equations, by elimination with pivots. */
#ifndef FOCUS_LINEAR_SOLVE_H
#define FOCUS_LINEAR_SOLVE_H

#include <stdbool.h>
#include <stdint.h>

/* Solve a x = b for m right-hand sides: a is n x n, b is n x m, both row after row and overwritten;
 * b becomes the solution. false: a row depends on the others, within 1e-12 of its largest entry. */
bool fo_solve(double *a, double *b, int64_t n, int64_t m);

#endif
