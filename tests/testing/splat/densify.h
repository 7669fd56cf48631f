/* testing/splat/densify.h - densification of Gaussians: rows whose gradient is high are replaced by
 * two samples, the others stay. 236 bytes a row: means, two colour blocks, opacity, scale,
 * rotation. */
#ifndef FATHOM_TESTING_DENSIFY_H
#define FATHOM_TESTING_DENSIFY_H

#include <fathom/ops.h>

enum { T_ATTRIBUTES = 6 };
typedef struct t_attribute_row {
    const char *name, *axis;
    int64_t columns;
} t_attribute_row;
extern const t_attribute_row t_attribute[T_ATTRIBUTES];

/* row, keep, split, all and the axes of columns. */
void t_densify_axes(fth_graph *g, int64_t rows, int64_t split);
/* old[i] is [row axis], `seen` [row count]: a sum of gradients and how many there were. Exactly
 * `split` rows must be above the threshold. out[i] is [all axis]: rows that stay, then both
 * samples. */
void t_densify(fth_graph *g, const fth_val *old, fth_val seen, fth_val *out);

#endif
