/* parts.h - what the files of this room share: axes that operations need, and their pieces. */
#ifndef FOCUS_FUSE_PARTS_H
#define FOCUS_FUSE_PARTS_H

#include "../ops/counts.h"
#include "../ops/depth.h"
#include "../ops/map.h"
#include "../ops/pick.h"
#include "../ops/planes.h"
#include "../ops/scale.h"
#include "../ops/sharpest.h"
#include "fuse.h"

/* Declare an axis of our own once per graph; its name. */
const char *fo_axis(fth_graph *g, const char *name, int64_t size);
/* Every plane, [stack z] u8, whatever exists. */
fth_val fo_all_planes(fth_val present);

/* Percentiles of the stacks, [stack] f64 each; in compat of all of them together. */
typedef struct fo_found {
    fth_val lo, hi, saturated, constant, max;
} fo_found;
fo_found fo_find_range(fth_graph *g, fth_val stacks, fth_val present, const fo_fusion *how);

/* lo and hi of an image: measured, or given. */
void fo_choose_range(fth_graph *g, fth_dtype t, const fo_fusion *how, fo_found *f);
/* image, image8, lo and hi of stacks of dtype t, from what was picked of them. */
void fo_finish(fth_graph *g, fth_val picked, const fo_found *found, const fo_fusion *how,
               fth_dtype t, fo_fused *out);

/* The stacks as MorphSeq converts them: u8 or u16 (yx1), f32 (keyence). */
fth_val fo_compat_stacks(fth_graph *g, fth_val stacks, const fo_found *range, const fo_fusion *how);
/* Image and image8 of MorphSeq, from values picked from those. */
void fo_compat_images(fth_graph *g, fth_val picked, const fo_fusion *how, fo_fused *out);

/* log, log-smooth, depth. */
fo_picked fo_by_energy(fth_graph *g, fth_val stacks, fth_val kept, const fo_fusion *how);

#endif
