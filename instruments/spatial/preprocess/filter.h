/* filter.h - which cells and genes stay, and the common scale of positions (model 2.2 to 2.4). */
#ifndef SPATIAL_FILTER_H
#define SPATIAL_FILTER_H

#include "../read/loaders.h"

/* Bring positions to an extent of about 4 * scale around 0, in f32 as the scripts of the field do
 * it: the order of operations matters. `label` names them in errors; `frame` (may be NULL) gets
 * what was done. */
fth_status sp_rescale(float *xy, int64_t n, double scale, const char *label, sp_frame *frame,
                      fth_err *err);

/* The remaining cells, in order; groups are optional. All arrays shrink together. */
typedef struct sp_cells {
    int64_t n;
    int64_t *row;     /* of the source */
    float *xy;        /* [n][2] */
    int32_t *code;    /* NULL: no groups */
    int32_t *section; /* NULL: none are named */
} sp_cells;

/* Why cells were dropped, in the order of the filters. */
typedef enum sp_drop {
    SP_DROP_REGION,   /* no label, where one is required */
    SP_DROP_MT,       /* too large a share of mitochondrial counts, or no counts at all */
    SP_DROP_COUNTS,   /* too few counts */
    SP_DROP_GENES,    /* too few genes */
    SP_DROP_POSITION, /* no position */
    SP_DROP_COUNT,    /* a count is missing */
    SP_DROP_LABEL,    /* no group */
    SP_DROP_GROUP,    /* of a small group */
    SP_DROP_SECTION,  /* no section, where cells have one; before all others */
    SP_DROP_KINDS
} sp_drop;
extern const char *const sp_drop_names[SP_DROP_KINDS];

/* Step 1 of model 2.4: positions, counts (`bad` by row of the source) and labels that are missing.
 */
void sp_filter_missing(sp_cells *c, const bool *bad, const fth_texts *names,
                       int64_t dropped[SP_DROP_KINDS]);
/* Step 2 of it: groups below the threshold go with their cells, the others keep their order. map[G]
 * gets the new number of each, -1 for none; returns how many groups stay. */
int64_t sp_filter_small(sp_cells *c, int64_t groups, int64_t threshold, int32_t *map,
                        int64_t dropped[SP_DROP_KINDS]);
/* max(1, round_half_even(fraction n)) */
int64_t sp_group_threshold(double fraction, int64_t n);

bool sp_is_mitochondrial(const char *gene);

/* Move cell `from` to the place `to` of all arrays. */
void sp_cells_move(sp_cells *c, int64_t from, int64_t to);

#endif
