/* levels.c - see levels.h. */
#include "levels.h"

#include "../ops/mean.h"

#include <stdio.h>

fth_axis_id fo_level_axis(fth_graph *g, const char *name, int level, int64_t size)
{
    char full[32];
    (void)snprintf(full, sizeof full, "%s%d", name, level);
    const int64_t have = fth_axis_size(g, full);
    if (have >= 0 && have != size) {
        (void)fth_poison_(g, FTH_HERE, FTH_E_AXIS_SIZE,
                          "levels of two sizes in one graph: axis '%s' is %lld, and %lld", full,
                          (long long)have, (long long)size);
        return -1;
    }
    if (have < 0 && !fth_axis(g, full, size)) return -1;
    return fth_axis_find(g, full);
}

fth_val fo_level_mean(fth_val planes, fth_val kept)
{
    fth_graph *g = planes.graph;
    const fth_val n = fth_count(fth_ne(kept, fth_const_i64(g, FTH_U8, 0)), "z");
    return fth_custom(g, &fo_mean_op, 3, ((fth_val[]){planes, kept, n}), NULL, 0);
}
