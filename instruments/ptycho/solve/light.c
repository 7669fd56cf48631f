/* light.c - the illumination of every pixel of the object, and the weight that lsqml derives from
 * it.
 *
 * It is averaged with that of earlier epochs; the weight is 1 / sqrt(L^2 + (0.1 max)^2).
 */
#include "solver.h"

enum { OUTPUTS = 2 };

fth_status pt_solver_plan_light(pt_solver *s, fth_err *err)
{
    fth_graph *g = s->light_graph = fth_graph_create(s->ctx);
    const fth_dtype real = s->real;
    fth_axis(g, "scan", s->data.patterns);
    fth_axis(g, "visit", PT_VISITS);
    fth_axis(g, "mode", s->modes);
    fth_axis(g, "part", 2);
    fth_axis(g, "row", s->n);
    fth_axis(g, "col", s->n);
    fth_axis(g, "orow", s->rows);
    fth_axis(g, "ocol", s->cols);
    const fth_val in[2] = {fth_param(g, "probe", "mode part row col", s->probe),
                           fth_param(g, "visits", "scan visit", s->all_visits)};
    const fth_val blend =
        fth_cast(fth_input(g, "blend", FTH_F64, "", fth_scalar_source(FTH_F64, &s->blend)), real);
    const fth_val old = fth_param(g, "light", "orow ocol", s->light),
                  weight = fth_param(g, "weight", "orow ocol", s->weight);
    const pt_cover cover = {(int32_t)s->rows, (int32_t)s->cols};
    const fth_val now = fth_custom(g, &pt_cover_op, 2, in, &cover, sizeof cover);
    const fth_val rest = fth_sub(fth_const(g, real, 1), blend);
    const fth_val light =
        fth_label(fth_fma(fth_mul(old, blend), fth_const(g, real, 1), fth_mul(now, rest)), "light");
    const fth_val low = fth_mul(fth_rmax(light, "orow ocol"), fth_const(g, real, 0.1));
    const fth_val w = fth_rsqrt(fth_add(fth_sqr(light), fth_sqr(low)));
    const fth_val out[OUTPUTS] = {fth_assign(old, light), fth_assign(weight, w)};
    s->light_plan = fth_plan_make(g, out, OUTPUTS, NULL, err);
    return s->light_plan ? FTH_OK : err->status;
}

fth_status pt_solver_light(pt_solver *s, bool average, fth_err *err)
{
    double *visits = fth_tensor_data(s->all_visits);
    const fth_sink none[OUTPUTS] = {{0}};
    for (int64_t j = 0; j < s->data.patterns; j++) pt_solver_corner(s, j, visits + j * PT_VISITS);
    s->blend = average && s->light_known ? 0.5 : 0;
    FTH_TRY(fth_stage_run(s->call, s->light_plan, none, NULL, err));
    s->light_known = true;
    return FTH_OK;
}
