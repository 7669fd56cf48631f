/* look.h - values as views of others, for fused programs that read those instead. */
#ifndef FTH_PLAN_LOOK_H
#define FTH_PLAN_LOOK_H

#include "plan/plan.h"

/* A value, and how a program that walks some space reads its axes; `in` is not set. */
typedef struct fth__look_path {
    uint32_t value;
    int n; /* views that were looked through, the last one first */
    int node[FTH_PROGRAM_VIEWS];
    fth__view_axis axis[FTH_MAX_AXES];
} fth__look_path;

/* Value v read index by index; false: an axis of it is not one of the space. */
bool fth__look_at(const fth_plan *p, const fth_desc *space, uint32_t v, fth__look_path *out);
/* The operand of the view that made the value, read so that the program gets the same elements;
 * false: no view did, or two in a row that no single step of arithmetic stands for. */
bool fth__look_through(const fth_plan *p, fth__look_path *path);
/* Axes that are read other than index by index along the axis of their name. */
int fth__look_axes(const fth_plan *p, const fth_desc *space, const fth__look_path *path,
                   fth__view_axis axis[FTH_MAX_AXES]);

#endif
