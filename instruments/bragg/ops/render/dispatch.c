/* dispatch.c - chooses the loops that render a scene on this processor. */
#include "view.h"

const br_loops *br_loops_at(int level, br_precision precision)
{
    return precision == BR_F32 ? FTH_ISA_AT(br_loops_f32, level) : FTH_ISA_AT(br_loops_f64, level);
}

/* The vector loops index the table with 32 bits, and read it along l. Larger tables (16 GiB) use
 * the plain loop. */
bool br_table_fits(const br_view *v)
{
    const br_scene *s = v->scene;
    return s->hkls <= 0 ||
           (v->table_step[2] == 1 &&
            (double)(s->h_max - s->h_min + 2) * (double)v->table_step[0] <= (double)INT32_MAX);
}

static const br_loops *loops_for(const br_view *v)
{
    static const br_loops plain = {br_render_plain, br_latch_plain};
    const br_scene *s = v->scene;
    if (!br_table_fits(v)) return &plain;
    return s->precision == BR_F32 ? FTH_ISA_BEST(br_loops_f32) : FTH_ISA_BEST(br_loops_f64);
}

br_row_fn *br_render_loop(const br_view *v)
{
    return loops_for(v)->render;
}

br_latch_fn *br_latch_loop(const br_view *v)
{
    return loops_for(v)->latch;
}
