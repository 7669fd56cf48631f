/* scale.c - the scale that the data leave open: the object's mean amplitude where light falls
 * becomes 1, and the probe takes the rest, with the shares of its eigenprobes: the exit wave of no
 * pattern changes. Object and probe stay on a device; only with eigenprobes is the factor read
 * back.
 */
#include "solver.h"

enum { OUTPUTS = 3 };

/* Only shares, which are the host's, need the factor itself. */
static int outputs_of(const pt_solver *s)
{
    return s->opt.opr ? OUTPUTS : OUTPUTS - 1;
}

/* v times a number of f64, rounded once. */
static fth_val times(fth_val v, fth_val by, fth_dtype real)
{
    return fth_cast(fth_mul(fth_cast(v, FTH_F64), by), real);
}

static fth_status plan_scale(pt_solver *s, fth_err *err)
{
    fth_graph *g = s->scale_graph = fth_graph_create(s->ctx);
    fth_axis(g, "mode", s->modes);
    fth_axis(g, "part", 2);
    fth_axis(g, "row", s->n);
    fth_axis(g, "col", s->n);
    fth_axis(g, "orow", s->rows);
    fth_axis(g, "ocol", s->cols);
    const fth_val object = fth_param(g, "object", "part orow ocol", s->object),
                  probe = fth_param(g, "probe", "mode part row col", s->probe),
                  light = fth_param(g, "light", "orow ocol", s->light);
    const fth_val none = fth_const(g, FTH_F64, 0), one = fth_const(g, FTH_F64, 1);
    const fth_val low = fth_mul(fth_rmax(light, "orow ocol"), fth_const(g, s->real, 0.1)),
                  lit = fth_gt(light, low),
                  amplitude = fth_sqrt(fth_sum(fth_sqr(fth_cast(object, FTH_F64)), "part"));
    const fth_val sum = fth_sum(fth_select(lit, amplitude, none), "orow ocol"),
                  count = fth_sum(fth_select(lit, one, none), "orow ocol");
    const fth_val mean = fth_div(sum, count),
                  good = fth_and(fth_gt(mean, none), fth_isfinite(mean)),
                  by = fth_select(good, mean, one);
    const fth_val out[OUTPUTS] = {fth_assign(object, times(object, fth_recip(by), s->real)),
                                  fth_assign(probe, times(probe, by, s->real)), by};
    s->scale_plan = fth_plan_make(g, out, outputs_of(s), NULL, err);
    return s->scale_plan ? FTH_OK : err->status;
}

fth_status pt_solver_share_scale(pt_solver *s, fth_err *err)
{
    double by = 1;
    const fth_sink sinks[OUTPUTS] = {{0}, {0}, fth_scalar_sink(FTH_F64, &by)};
    if (s->opt.algorithm != PT_SOLVE_LSQML) FTH_TRY(pt_solver_light(s, false, err));
    FTH_TRY(fth_stage_run(s->call, s->scale_plan, sinks, NULL, err));
    if (s->opt.opr) pt_opr_scale(s, by);
    return FTH_OK;
}

fth_status pt_solver_plan_scale(pt_solver *s, fth_err *err)
{
    return s->opt.scale_every > 0 ? plan_scale(s, err) : FTH_OK;
}
