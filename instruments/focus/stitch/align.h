/* align.h - where a tile lies as seen from its neighbour: phase correlation of the strips that
 * overlap, and the best of its peaks by the correlation of the pixels themselves.
 *
 *   fo_aligner *a;
 *   FTH_TRY(fo_aligner_create(&a, ctx, 480, 640, true, 0.25, err));    neighbours one above the
 * other FTH_TRY(fo_aligner_run(a, upper, lower, &edge, err));
 */
#ifndef FOCUS_STITCH_ALIGN_H
#define FOCUS_STITCH_ALIGN_H

#include "tiles.h"

#define FO_ALIGN_SCORE 0.3 /* least correlation of an accepted overlap */

typedef struct fo_aligner fo_aligner;
/* `overlap` is the expected share of the tile's height, or width where neighbours lie side by side.
 */
fth_status fo_aligner_create(fo_aligner **out, fth_context *ctx, int64_t y, int64_t x,
                             bool vertical, double overlap, fth_err *err);
void fo_aligner_destroy(fo_aligner *a); /* NULL is allowed */
/* What it takes while it runs, beyond what it holds. */
uint64_t fo_aligner_bytes(const fo_aligner *a);
/* Fills in y, x and score; used: the score is believed. */
fth_status fo_aligner_run(fo_aligner *a, const float *first, const float *second, fo_edge *edge,
                          fth_err *err);

/* Pearson correlation of what two tiles of a size share when the second lies at (y, x) of the
 * first; *area is how many pixels that are. 0 for a constant overlap. */
double fo_overlap_score(const float *first, const float *second, int64_t size_y, int64_t size_x,
                        int64_t y, int64_t x, int64_t *area);

#endif
