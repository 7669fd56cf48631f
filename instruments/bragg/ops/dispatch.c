/* dispatch.c - which loops render a scene on this processor. */
#include "view.h"

const br_loops *br_loops_at(int level, br_precision precision)
{
    const bool single = precision == BR_F32;
#ifdef FTH_HAVE_ISA_V3
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
    if (level == 3 && v3) return single ? &br_loops_f32_v3 : &br_loops_f64_v3;
#ifdef FTH_HAVE_ISA_V4
    if (level == 4 && v3 && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
        return single ? &br_loops_f32_v4 : &br_loops_f64_v4;
#endif
#endif
    return level == 1 ? single ? &br_loops_f32_base : &br_loops_f64_base : NULL;
}

/* The loops of vectors count places in the table in 32 bits, and read it along l. Larger tables
 * (16 GiB) are left to the plain loop. */
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
    const br_loops *best = NULL;
    for (int level = 4; !best; level--) best = br_loops_at(level, (br_precision)s->precision);
    return best;
}

br_row_fn *br_render_loop(const br_view *v)
{
    return loops_for(v)->render;
}

br_latch_fn *br_latch_loop(const br_view *v)
{
    return loops_for(v)->latch;
}
