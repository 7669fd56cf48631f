/* levels.h - what the methods that work on levels share: axes by name, how many levels fit. */
#ifndef FOCUS_FUSE_LEVELS_H
#define FOCUS_FUSE_LEVELS_H

#include <fathom/op.h>
#include <fathom/ops.h>

/* The axis NAME followed by the level, of this size, declared where it is not yet; -1: a mistake
 * was recorded. */
fth_axis_id fo_level_axis(fth_graph *g, const char *name, int level, int64_t size);
/* The mean of values over the planes that are kept, f32. */
fth_val fo_level_mean(fth_val planes, fth_val kept);

#endif
