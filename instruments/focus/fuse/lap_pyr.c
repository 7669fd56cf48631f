/* lap_pyr.c - fusion by a Laplacian pyramid, as a graph of operations level by level.
 *
 * Planes are streamed: one pyramid is in memory, beside the best details and energies so far.
 */
#include "fuse.h"
#include "levels.h"

#include "../ops/lap_pyr.h"

enum { MAX_LEVELS = 16 };

/* As many levels as were asked for, at most floor(log2(min(y, x))) - 2. */
static int levels_of(fth_val stacks, int asked)
{
    const int64_t y = fth_val_size(stacks, 2), x = fth_val_size(stacks, 3);
    int n = 0;
    for (int64_t least = y < x ? y : x; least >= 8 && n < asked && n < MAX_LEVELS; least /= 2) n++;
    return n;
}

static fth_val down(fth_val fine, int level)
{
    fth_graph *g = fine.graph;
    const fo_lap_attr attr = {
        .y = fo_level_axis(g, "fo_lap_y", level, (fth_val_size(fine, 2) + 1) / 2),
        .x = fo_level_axis(g, "fo_lap_x", level, (fth_val_size(fine, 3) + 1) / 2)};
    return fth_custom(g, &fo_lap_down_op, 1, &fine, &attr, sizeof attr);
}

static fth_val chosen(const fth_op *op, fth_val fine, fth_val coarse, fth_val kept, int window)
{
    const fo_lap_attr attr = {.window = window};
    return fth_custom(fine.graph, op, 3, ((fth_val[]){fine, coarse, kept}), &attr, sizeof attr);
}

/* Between the smallest and the largest value that each pixel has in planes that are kept. */
static fth_val clamp(fth_val image, fth_val stacks, fth_val kept)
{
    fth_graph *g = stacks.graph;
    const fth_val is_kept = fth_ne(kept, fth_const_i64(g, FTH_U8, 0));
    const fth_dtype t = fth_val_dtype(stacks);
    const double most = t == FTH_U8 ? 255 : t == FTH_U16 ? 65535 : 3.4e38;
    const fth_val low = fth_rmin(fth_select(is_kept, stacks, fth_const(g, t, most)), "z");
    const fth_val high =
        fth_rmax(fth_select(is_kept, stacks, fth_const(g, t, t == FTH_F32 ? -most : 0)), "z");
    return fth_max(fth_min(image, fth_cast(high, FTH_F32)), fth_cast(low, FTH_F32));
}

fo_picked fo_lap_pyr(fth_graph *g, fth_val stacks, fth_val kept, const fo_fusion *how)
{
    (void)g;
    fth_val level[MAX_LEVELS + 1] = {stacks};
    if (!fth_val_ok(stacks) || !fth_val_ok(kept)) return (fo_picked){.value = {stacks.graph, 0}};
    if (fth_val_size(stacks, 1) == 1)
        return (fo_picked){.value = fth_cast(fth_rmax(stacks, "z"), FTH_F32)};
    const int n = levels_of(stacks, how->levels);
    for (int i = 0; i < n; i++) level[i + 1] = down(level[i], i + 1);
    fth_val image = n > 0 && how->base == FO_BASE_MAX
                        ? chosen(&fo_lap_base_op, level[n - 1], level[n], kept, how->window)
                        : fo_level_mean(level[n], kept);
    for (int i = n - 1; i >= 0; i--) {
        const fth_val details =
            chosen(&fo_lap_select_op, level[i], level[i + 1], kept, how->window);
        image = fth_custom(stacks.graph, &fo_lap_up_op, 2, ((fth_val[]){details, image}), NULL, 0);
    }
    if (how->clamp) image = clamp(image, stacks, kept);
    return (fo_picked){.value = fth_label(image, "lap_pyr")};
}
