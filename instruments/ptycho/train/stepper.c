/* stepper.c - see stepper.h.
 *
 * A step with a non-finite loss or gradient changes nothing: the updates are guarded inside
 * the graph, so the parameters are those of the last good step when the error is reported.
 */
#include "stepper.h"

#include <string.h>

/* ---- what is trained ---- */

fth_status pt_trained_create(pt_trained *t, fth_mem *mem, const pt_model_options *opt, fth_err *err)
{
    memset(t, 0, sizeof *t);
    FTH_TRY(pt_model_create(&t->model, mem, opt, err));
    fth_status s = FTH_OK;
    for (int i = 0; i < pt_model_params(&t->model) && s == FTH_OK; i++) {
        fth_tensor *p = pt_model_param(&t->model, i), **const to[2] = {&t->first[i], &t->second[i]};
        int64_t size[FTH_MAX_AXES];
        for (int d = 0; d < fth_tensor_axes(p); d++) size[d] = fth_tensor_size(p, d);
        for (int k = 0; k < 2 && s == FTH_OK && pt_model_is_trained(&t->model, i); k++) {
            s = fth_tensor_create(to[k], mem, k ? "second" : "first", opt->real, fth_tensor_axes(p),
                                  size, err);
            if (s == FTH_OK) memset(fth_tensor_data(*to[k]), 0, fth_tensor_bytes(*to[k]));
        }
    }
    if (s != FTH_OK) pt_trained_clear(t);
    return s;
}

void pt_trained_clear(pt_trained *t)
{
    for (int i = 0; i < PT_MODEL_MOST; i++) {
        fth_tensor_release(t->first[i]);
        fth_tensor_release(t->second[i]);
    }
    pt_model_clear(&t->model);
    memset(t, 0, sizeof *t);
}

/* ---- gradients to updates ---- */

static void axes_of(fth_val v, char *text, size_t bytes)
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < fth_val_axes(v) && n < bytes; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? " " : "", fth_val_axis(v, i));
}

/* Over one axis: a sum for each would be a pass for each. */
static fth_val total(fth_val v)
{
    char axes[FTH_MAX_AXES * 20], all[sizeof axes];
    int64_t n = 1;
    axes_of(v, axes, sizeof axes);
    for (int i = 0; i < fth_val_axes(v); i++) n *= fth_axis_size(v.graph, fth_val_axis(v, i));
    if (fth_val_axes(v) < 2) return *axes ? fth_sum(v, axes) : v;
    memcpy(all, axes, strlen(axes) + 1);
    for (char *at = all; *at; at++) *at = (char)(*at == ' ' ? '_' : *at);
    if (fth_axis_size(v.graph, all) < 0) fth_axis(v.graph, all, n);
    return fth_sum(fth_merge(v, axes, all), all);
}

/* sqrt of the sum of squares, of each first index where there are several axes, else of all. */
static fth_val unit_norm(fth_val v)
{
    char axes[FTH_MAX_AXES * 20];
    axes_of(v, axes, sizeof axes);
    const char *rest = strchr(axes, ' ');
    return fth_sqrt(rest ? fth_sum(fth_sqr(v), rest + 1) : total(fth_sqr(v)));
}

/* v [a b c] times by [a], or by one number. */
static fth_val times_units(fth_val v, fth_val by)
{
    char axes[FTH_MAX_AXES * 20];
    axes_of(v, axes, sizeof axes);
    const char *rest = strchr(axes, ' ');
    if (!rest) return fth_mul(v, by);
    return fth_mul(v, fth_layout(fth_expand(by, rest + 1), axes));
}

/* Brock et al. 2021: at most `clip` of the norm of the weights, which counts as 1e-3 at least. */
static fth_val adapt(double clip, fth_val weight, fth_val grad)
{
    const fth_val own = unit_norm(grad),
                  most = fth_mul(fth_max(unit_norm(weight), fth_const_like(own, 1e-3)),
                                 fth_const_like(own, clip));
    return times_units(grad, fth_min(fth_div(most, fth_max(own, fth_const_like(own, 1e-6))),
                                     fth_const_like(own, 1)));
}

static void clip(const pt_descent *d, int n, const fth_val *param, fth_val *grad)
{
    if (!(d->clip > 0)) return;
    if (d->clip_by == PT_CLIP_ADAPTIVE) {
        for (int i = 0; i < n; i++) grad[i] = adapt(d->clip, param[i], grad[i]);
        return;
    }
    if (d->clip_by == PT_CLIP_VALUE) {
        for (int i = 0; i < n; i++)
            grad[i] = fth_max(fth_min(grad[i], fth_const_like(grad[i], d->clip)),
                              fth_const_like(grad[i], -d->clip));
        return;
    }
    fth_val squares = total(fth_sqr(grad[0]));
    for (int i = 1; i < n; i++) squares = fth_add(squares, total(fth_sqr(grad[i])));
    const fth_val norm = fth_sqrt(squares);
    const fth_val share =
        fth_min(fth_div(fth_const_like(norm, d->clip), fth_add(norm, fth_const_like(norm, 1e-6))),
                fth_const_like(norm, 1));
    for (int i = 0; i < n; i++) grad[i] = fth_mul(grad[i], share);
}

/* Whether the loss and every gradient are finite: a sum is not finite if a term is not. Sums are
 * added in pairs, so that none waits for all before it. */
static fth_val is_good(fth_val loss, int n, const fth_val *grad)
{
    fth_val sum[PT_MODEL_MOST + 1];
    int left = 0;
    for (int i = 0; i < n; i++) sum[left++] = total(grad[i]);
    sum[left++] = loss;
    for (; left > 1; left = (left + 1) / 2)
        for (int i = 0; i < left / 2; i++) sum[i] = fth_add(sum[i], sum[left - 1 - i]);
    return fth_isfinite(sum[0]);
}

static int add_updates(pt_stepper *s, pt_trained *t, const pt_model_graph *v, const pt_descent *d,
                       fth_val *out)
{
    fth_graph *g = s->g;
    const pt_model *m = &t->model;
    const fth_val rate = fth_input(g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &t->rate)),
                  step = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &t->step)),
                  beta1 = fth_const(g, FTH_F64, s->momentum);
    fth_val wrt[PT_MODEL_MOST], grad[PT_MODEL_MOST], next[3];
    int which[PT_MODEL_MOST], n = 0, n_out = 0;
    char name[PT_NET_NAME + 16];
    for (int i = 0; i < pt_model_params(m); i++) {
        if (!pt_model_is_trained(m, i)) continue;
        which[n] = i;
        wrt[n++] = v->param[i];
    }
    fth_grad(v->loss, n, wrt, grad);
    const fth_val good = is_good(v->loss, n, grad);
    clip(d, n, wrt, grad);
    out[n_out++] = good;
    const int carries = fth_optim_carries(d->kind);
    for (int k = 0; k < n; k++) {
        const int i = which[k];
        fth_val kept[2] = {{g, 0}, {g, 0}};
        for (int j = 0; j < 2; j++) {
            if (!(carries & 1 << j)) continue;
            snprintf(name, sizeof name, "%s.%s", j ? "second" : "first", pt_model_name(m, i));
            kept[j] = fth_param(g, name, pt_model_axes(m, i), j ? t->second[i] : t->first[i]);
        }
        fth_optim o = fth_optim_default(d->kind);
        o.eps = d->eps;
        o.go = good;
        fth_optim_step(&o, wrt[k], grad[k], kept[0], kept[1], rate, beta1, step, next);
        out[n_out++] = fth_assign(wrt[k], next[0]);
        for (int j = 0; j < 2; j++)
            if (carries & 1 << j) out[n_out++] = fth_assign(kept[j], next[1 + j]);
    }
    return n_out;
}

/* ---- the plan ---- */

/* Patterns of a batch: on a device the first of a parameter, which is sent from pinned memory and
 * in order with the steps; a source would pass through the thread for files. */
static fth_val patterns_of(fth_graph *g, const pt_trained *t, fth_source x)
{
    if (!t->batch) return fth_input(g, "x", FTH_F32, "flat row col", x);
    if (fth_tensor_size(t->batch, 0) == x.size[0])
        return fth_param(g, "x", "flat row col", t->batch);
    fth_axis(g, "room", fth_tensor_size(t->batch, 0));
    return fth_slice(fth_param(g, "x", "room row col", t->batch), "room", 0, "flat");
}

fth_status pt_stepper_create(pt_stepper *s, fth_context *ctx, pt_trained *t, int64_t groups,
                             fth_source x, const pt_descent *descent, fth_err *err)
{
    const pt_model *m = &t->model;
    const int64_t size[3] = {groups, m->opt.net.chan, 2};
    fth_val out[3 * PT_MODEL_MOST + 2];
    int n = 0;
    memset(s, 0, sizeof *s);
    s->groups = groups;
    s->given = t->batch != NULL;
    s->momentum = 0.9;
    FTH_TRY(fth_tensor_create(&s->rel, fth_context_mem(ctx), "rel", FTH_F32, 3, size, err));
    if (m->opt.realspace_mae_weight > 0) {
        const int64_t patches[3] = {groups, m->opt.net.n, m->opt.net.n};
        FTH_TRY(
            fth_tensor_create(&s->truth, fth_context_mem(ctx), "truth", FTH_C64, 3, patches, err));
    }
    fth_graph *g = s->g = fth_graph_create(ctx);
    pt_model_declare(g, m, groups);
    const fth_val flat = patterns_of(g, t, x),
                  rel = fth_input(g, "rel", FTH_F32, "group chan xy", fth_tensor_source(s->rel)),
                  factor =
                      fth_input(g, "factor", FTH_F32, "", fth_scalar_source(FTH_F32, &t->factor));
    const fth_dtype real = m->opt.real;
    pt_model_graph v = pt_model_build(g, m, fth_split(fth_cast(flat, real), "flat", "group chan"),
                                      fth_cast(rel, real), fth_cast(factor, real), true);
    if (s->truth)
        pt_model_supervise(
            m, &v,
            fth_cast(fth_input(g, "truth", FTH_C64, "group row col", fth_tensor_source(s->truth)),
                     real == FTH_F64 ? FTH_C128 : FTH_C64));
    out[n++] = fth_cast(v.loss, FTH_F32);
    s->sinks[0] = fth_scalar_sink(FTH_F32, &s->loss);
    if (descent) {
        s->sinks[1] = fth_scalar_sink(FTH_BOOL, &s->good);
        n += add_updates(s, t, &v, descent, out + n);
    }
    s->good = 1;
    fth_err why = {0};
    s->plan = fth_plan_make(g, out, n, &(fth_limits){.keep = true}, &why);
    if (s->plan) return FTH_OK;
    if (err) *err = why;
    pt_stepper_clear(s);
    return why.status;
}

void pt_stepper_clear(pt_stepper *s)
{
    fth_plan_destroy(s->plan);
    fth_graph_destroy(s->g);
    fth_tensor_release(s->rel);
    fth_tensor_release(s->truth);
    memset(s, 0, sizeof *s);
}

fth_status pt_stepper_give(pt_stepper *s, int n, fth_tensor *batch, fth_err *err)
{
    for (int i = 0; i < n; i++)
        if (s[i].g && s[i].given) FTH_TRY(fth_param_set(s[i].g, "x", batch, err));
    return FTH_OK;
}

fth_status pt_stepper_run(pt_stepper *s, const fth_stage_call *call, fth_source x, fth_err *err)
{
    if (!s->given) FTH_TRY(fth_input_set(s->g, "x", x, err));
    return fth_stage_run(call, s->plan, s->sinks, NULL, err);
}
