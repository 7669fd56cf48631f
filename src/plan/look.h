/* look.h - values as views of others, for fused programs that read those instead. */
#ifndef FTH_PLAN_LOOK_H
#define FTH_PLAN_LOOK_H

#include "plan/plan.h"

enum { FTH__LOOK_ROWS = 2, FTH__LOOK_DEPTH = 16 /* a window around three axes is nine views */ };

/* The index of a gather that was looked through, read at these places. */
typedef struct fth__look_rows {
    uint32_t value;
    fth__view_axis axis[FTH_MAX_AXES];
} fth__look_rows;

/* A value, and how a program that walks some space reads its axes; `in` is not set, and `rows` are
 * numbers of the path's own. */
typedef struct fth__look_path {
    const fth_desc *space;
    uint32_t value;
    int n_rows;
    fth__look_rows rows[FTH__LOOK_ROWS];
    int n; /* views that were looked through */
    fth__view_axis axis[FTH_MAX_AXES];
} fth__look_path;

/* Value v read index by index; false: an axis of it is not one of the space. */
bool fth__look_at(const fth_plan *p, const fth_desc *space, uint32_t v, fth__look_path *out);
/* The operand of the view that made the value, read so that the program gets the same elements;
 * false: no view did, or two in a row that no single step of arithmetic stands for. */
bool fth__look_through(const fth_plan *p, fth__look_path *path);
/* A concatenation that goes around an axis of one value: element j along the result's is element
 * (first + j) modulo the axis' size. It is made of slices, one behind the other and from the front
 * again behind the end, as fth_roll and windows with FTH_BORDER_WRAP are. */
typedef struct fth__look_cycle {
    uint32_t value;
    int dim;
    int64_t first;
} fth__look_cycle;
bool fth__look_around(const fth_plan *p, const fth_node *node, fth__look_cycle *out);
/* Axes of a value that are read other than index by index along the axis of their name; `of`: how
 * all of them are. */
int fth__look_axes(const fth_plan *p, const fth_desc *space, uint32_t value,
                   const fth__view_axis of[FTH_MAX_AXES], fth__view_axis axis[FTH_MAX_AXES]);
/* The value at the end of the path is an index or random numbers, which a program can make itself;
 * `made` says how. */
bool fth__look_makes(const fth_plan *p, const fth__look_path *path, fth__made *made);

#endif
