/* fit.c - Fisher scoring on the whole image: one graph, one plan, run again with other parameters.
 *
 * A run computes the likelihood, its gradient and the normal matrix for given parameters. The
 * derivatives of the image are never stored: br_normal computes them for a few pixels and sums up.
 * Pixels where the model is almost dark would get unbounded weights when the model is off, so the
 * variance of a pixel has a floor; it starts near the mean of the image and ends far below it.
 */
#include "fit.h"

#include <math.h>
#include <string.h>

/* ---- the graph ---- */

/* 1 where a pixel is used: inside the ROI, not masked, not full. */
static fth_val used_of(br_fit *f, fth_val value, fth_val mask)
{
    fth_graph *g = f->g;
    const br_scene *s = &f->e->scene;
    const fth_val fast = fth_index(g, "fast"), slow = fth_index(g, "slow");
    const fth_val in_fast = fth_and(fth_ge(fast, fth_const_i64(g, FTH_I64, s->roi[0])),
                                    fth_le(fast, fth_const_i64(g, FTH_I64, s->roi[1])));
    const fth_val in_slow = fth_and(fth_ge(slow, fth_const_i64(g, FTH_I64, s->roi[2])),
                                    fth_le(slow, fth_const_i64(g, FTH_I64, s->roi[3])));
    fth_val used = fth_and(fth_expand(in_fast, "slow"), in_slow);
    if (s->masked) used = fth_and(used, fth_ne(mask, fth_const_i64(g, FTH_U16, 0)));
    if (isfinite(f->o->full))
        used = fth_and(used, fth_lt(value, fth_const(g, FTH_F64, f->o->full)));
    return used;
}

/* Minus twice the logarithm of the likelihood, against that of a perfect model. Below the floor it
 * continues as a parabola, so that its slope is (photons - model) / max(model, floor)
 * everywhere. */
static fth_val deviance_of(fth_val photons, fth_val model, fth_val raised, fth_val floor)
{
    fth_graph *g = photons.graph;
    const fth_val zero = fth_const(g, FTH_F64, 0), half = fth_const(g, FTH_F64, 0.5),
                  one = fth_const(g, FTH_F64, 1);
    const fth_val some = fth_select(fth_gt(photons, zero), photons, one);
    const fth_val above =
        fth_fma(photons, fth_log(fth_div(some, raised)), fth_sub(raised, photons));
    const fth_val below = fth_div(
        fth_mul(fth_sub(raised, model), fth_sub(photons, fth_mul(half, fth_add(model, floor)))),
        floor);
    return fth_mul(fth_const(g, FTH_F64, 2), fth_add(above, below));
}

static void build(br_fit *f, fth_val *out)
{
    fth_graph *g = f->g;
    br_inputs in = br_experiment_inputs(g, f->e);
    fth_axis_like(g, "param2", "param");
    in.latch = fth_const_i64(g, FTH_I64, INT64_MAX);
    const fth_val floor = fth_input(g, "floor", FTH_F64, "", fth_scalar_source(FTH_F64, &f->floor));
    const fth_val read = fth_input(g, "image", f->o->pixels.dtype, "slow fast", f->o->pixels);
    const fth_val value = f->o->pixels.dtype == FTH_F64 ? read : fth_cast(read, FTH_F64);
    const fth_val zero = fth_const(g, FTH_F64, 0);
    const fth_val used = fth_label(used_of(f, value, in.mask), "used");
    const fth_val photons =
        fth_label(fth_select(used,
                             fth_div(fth_sub(value, fth_const(g, FTH_F64, f->o->adc)),
                                     fth_const(g, FTH_F64, f->o->gain)),
                             zero),
                  "photons");
    const fth_val image = br_render(&f->e->scene, &in, FTH_F64);
    const fth_val model = fth_label(fth_select(used, image, zero), "model");
    const fth_val raised = fth_max(model, floor);
    const fth_val weight = fth_label(fth_select(used, fth_recip(raised), zero), "weight");
    const fth_val off = fth_sub(photons, model);
    const fth_val normal = fth_label(br_normal(&f->e->scene, &in, weight, off), "normal");
    const char *const pixels = "slow fast";
    out[BR_FIT_DEVIANCE] =
        fth_sum(fth_select(used, deviance_of(photons, model, raised, floor), zero), pixels);
    out[BR_FIT_CHI2] = fth_sum(fth_mul(weight, fth_sqr(off)), pixels);
    out[BR_FIT_EXPECTED] = fth_sum(fth_mul(weight, model), pixels);
    out[BR_FIT_PHOTONS] = fth_sum(photons, pixels);
    out[BR_FIT_MODEL] = fth_sum(model, pixels);
    out[BR_FIT_PHOTONS2] = fth_sum(fth_sqr(photons), pixels);
    out[BR_FIT_MODEL2] = fth_sum(fth_sqr(model), pixels);
    out[BR_FIT_BOTH] = fth_sum(fth_mul(photons, model), pixels);
    out[BR_FIT_USED] = fth_sum(fth_cast(used, FTH_F64), pixels);
    out[BR_FIT_GRADIENT] = fth_out(normal, 1);
    out[BR_FIT_NORMAL] = normal;
}

static fth_status make_tensors(br_fit *f, fth_err *err)
{
    const int64_t size[2] = {BR_PARAMS, BR_PARAMS};
    FTH_TRY(fth_tensor_create(&f->gradient, f->e->mem, "gradient", FTH_F64, 1, size, err));
    return fth_tensor_create(&f->normal, f->e->mem, "normal", FTH_F64, 2, size, err);
}

fth_status br_fit_open(br_fit *f, fth_context *ctx, br_experiment *e, const br_observed *o,
                       fth_err *err)
{
    *f = (br_fit){.e = e, .o = o, .floor = 1};
    FTH_TRY(make_tensors(f, err));
    fth_val out[BR_FIT_OUTPUTS];
    f->g = fth_graph_create(ctx);
    build(f, out);
    FTH_TRY(fth_graph_check(f->g, err));
    for (int i = 0; i < BR_FIT_SUMS; i++) f->sink[i] = fth_scalar_sink(FTH_F64, &f->sum[i]);
    f->sink[BR_FIT_GRADIENT] = fth_tensor_sink(f->gradient);
    f->sink[BR_FIT_NORMAL] = fth_tensor_sink(f->normal);
    f->plan = fth_plan_make(f->g, out, BR_FIT_OUTPUTS, &(fth_limits){.sinks = f->sink}, err);
    return f->plan ? FTH_OK : err->status;
}

void br_fit_close(br_fit *f)
{
    fth_plan_destroy(f->plan);
    fth_graph_destroy(f->g);
    fth_tensor_release(f->gradient);
    fth_tensor_release(f->normal);
    *f = (br_fit){0};
}

/* ---- runs ---- */

/* Correlation of image and model, and its value if they differed only by noise. */
static void compare(br_fit_point *p, const double *sum)
{
    const double n = fmax(sum[BR_FIT_USED], 1), d = sum[BR_FIT_PHOTONS], m = sum[BR_FIT_MODEL];
    const double dd = sum[BR_FIT_PHOTONS2] - d * d / n, mm = sum[BR_FIT_MODEL2] - m * m / n;
    p->match = (sum[BR_FIT_BOTH] - d * m / n) / sqrt(fmax(dd * mm, 1e-300));
    p->best_match = sqrt(mm / fmax(mm + m, 1e-300));
}

fth_status br_fit_at(br_fit *f, const double *param, double floor, const fth_run_options *opt,
                     br_fit_point *out, fth_err *err)
{
    memmove(f->e->param, param, sizeof f->e->param); /* the inputs read it there */
    f->floor = floor;
    FTH_TRY(fth_run(f->plan, f->sink, opt, &f->report, err));
    f->runs++;
    memset(out, 0, sizeof *out);
    memcpy(out->param, f->e->param, sizeof out->param);
    out->floor = floor;
    out->deviance = f->sum[BR_FIT_DEVIANCE];
    out->chi2 = f->sum[BR_FIT_CHI2];
    out->expected = f->sum[BR_FIT_EXPECTED];
    out->photons = f->sum[BR_FIT_PHOTONS];
    out->model = f->sum[BR_FIT_MODEL];
    out->used = f->sum[BR_FIT_USED];
    compare(out, f->sum);
    memcpy(out->gradient, fth_tensor_data(f->gradient), sizeof out->gradient);
    memcpy(out->normal, fth_tensor_data(f->normal), sizeof out->normal);
    return FTH_OK;
}
