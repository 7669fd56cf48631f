/* draw.h - draws of rows by their opacity, with replacement.
 *
 * Opacities are added in double in the order of the rows: within blocks of 1024 rows, and then the
 * totals of blocks. Draw j takes the first row whose sum lies above u_j times the whole. Only the
 * sums of blocks are kept; within a block they are added again, in the same order.
 */
#ifndef SPLAT_STRATEGY_DRAW_H
#define SPLAT_STRATEGY_DRAW_H

#include "rows.h"

typedef struct gs_urn {
    fth_context *context;
    const float *opacity; /* logits */
    const gs_marks *skip; /* rows that are never drawn; NULL: none */
    double *after;        /* sum of opacities up to the end of each block */
    uint32_t *drawn;      /* the row of each draw */
    uint8_t *times;       /* that each row was drawn, at most UINT8_MAX */
    double total;
    int64_t n, draws, seed, iteration;
    int stream;
    void *block[3];
} gs_urn;

/* Draw from one whose opacities, marks and memory are set, `times` being 0. Without a context on
 * this thread alone. */
void gs_urn_draw(gs_urn *urn);
/* Draw. FTH_E_USAGE: more than 2^32 rows. On failure nothing is held. Rows are those of the
 * host; for a device there is draw_ops.h. */
fth_status gs_urn_create(gs_urn *urn, const gs_rows *rows, const gs_marks *skip, int64_t draws,
                         int64_t seed, int64_t iteration, int stream, fth_err *err);
void gs_urn_free(gs_urn *urn); /* a cleared one is allowed */
/* What the ledger counts for it, at least. */
uint64_t gs_urn_bytes(const fth_mem *mem, int64_t n, int64_t draws);

#endif
