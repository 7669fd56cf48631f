/* sparsity.h - sparse opacities by ADMM (the alternating direction method of multipliers).
 *
 * Opacities o are drawn to a sparse copy z, in which a share of the smallest is 0: the loss has
 * rho / 2 |o - z + u|^2, and every GS_SPARSITY_EVERY iterations z = prune(o + u), u += o - z. In
 * the end that share of the rows, the least opaque, is removed.
 *
 * Ownership: gs_sparsity_free gives back what it holds.
 */
#ifndef SPLAT_SPARSITY_SPARSITY_H
#define SPLAT_SPARSITY_SPARSITY_H

#include "../strategy/rows.h"

enum { GS_SPARSITY_EVERY = 50 };

typedef struct gs_sparsity {
    double ratio;      /* share that is removed */
    fth_tensor *z, *u; /* f32 [g]; NULL: it has not begun */
    fth_tensor *aim;   /* z - u: what a step draws opacities to */
} gs_sparsity;

/* For so many rows; z and u are 0. */
fth_status gs_sparsity_create(gs_sparsity *s, fth_mem *mem, int64_t n, double ratio, fth_err *err);
void gs_sparsity_free(gs_sparsity *s); /* a cleared one is allowed */
/* z = prune(o), u = 0: the start. */
fth_status gs_sparsity_begin(gs_sparsity *s, const gs_rows *rows, fth_err *err);
/* z = prune(o + u), u += o - z. */
fth_status gs_sparsity_update(gs_sparsity *s, const gs_rows *rows, fth_err *err);
/* Set aim, after z and u were loaded. */
void gs_sparsity_set_aim(gs_sparsity *s);
/* Rows of n that are removed. */
int64_t gs_sparsity_count(double ratio, int64_t n);
/* Remove them: those of the smallest opacity, of equal ones the first. Others keep their order. */
fth_status gs_sparsity_prune(gs_rows *rows, double ratio, fth_err *err);

#endif
