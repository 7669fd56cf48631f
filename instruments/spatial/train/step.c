/* step.c - see step.h. Combines prior.h, likelihood.h and loadings.h in the order of the reference.
 */
#include "step.h"

#include "../prior/loadings.h"
#include "../prior/natural.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the graph ---- */

static fth_status make_indices(sp_step *st, fth_err *err)
{
    const sp_settings *s = &st->opt.model->set;
    fth_mem *mem = st->opt.model->mem;
    fth_axis(st->net.g, "cellb", s->batch_size);
    fth_axis(st->net.g, "geneb", s->y_batch_size);
    FTH_TRY(
        fth_tensor_create(&st->idx, mem, "cells of the batch", FTH_I64, 1, &s->batch_size, err));
    st->net.idx = sp_model_graph_batch(&st->net, "idx", "cellb", st->idx);
    if (s->y_batch_size == s->genes) return FTH_OK;
    return fth_tensor_create(&st->idy, mem, "genes of the batch", FTH_I64, 1, &s->y_batch_size,
                             err);
}

static fth_val scalar(sp_step *st, const char *name, fth_dtype dtype, const void *value)
{
    if (!st->net.on_device)
        return fth_input(st->net.g, name, dtype, "", fth_scalar_source(dtype, value));
    sp_number *n = &st->number[st->n_numbers];
    fth_err err = {0};
    if (fth_tensor_create(&n->t, st->opt.model->mem, name, dtype, 0, NULL, &err) != FTH_OK)
        return fth_poison_(st->net.g, FTH_HERE, err.status, "%s", err.text);
    n->value = value;
    n->bytes = (size_t)fth_dtype_size(dtype);
    st->n_numbers++;
    return fth_param(st->net.g, name, "", n->t);
}

static fth_val noise(sp_step *st)
{
    fth_graph *g = st->net.g;
    const sp_settings *s = &st->opt.model->set;
    if (s->mode == SP_LOWER_BOUND) return (fth_val){g, 0};
    fth_axis(g, "draw", s->E);
    if (!st->opt.eps)
        return fth_normal(st->net.real, "draw factor cellb",
                          fth_const_i64(g, FTH_I64, sp_draw_seed(s)),
                          scalar(st, "iteration", FTH_I64, &st->iteration), SP_STREAM_NOISE);
    const fth_val eps = sp_model_graph_batch(&st->net, "eps", "draw factor cellb", st->opt.eps);
    return st->net.real == FTH_F32 ? eps : fth_cast(eps, st->net.real);
}

static void put(sp_step *st, fth_val value, fth_sink sink)
{
    st->out[st->n_out] = value;
    st->sink[st->n_out++] = sink;
}

/* Moments in host memory are streamed where the device has not enough memory. */
static bool streams_moments(const sp_step *st)
{
    return st->net.on_device && st->opt.hold == SP_HOLD_LEAST;
}

/* A moment is a parameter, or an array that is read and written in place: each element once. */
static fth_val moment(sp_step *st, int p, bool second)
{
    sp_model *m = st->opt.model;
    fth_tensor *t = second ? m->second[p] : m->first[p];
    const fth_source *file = second ? &m->second_at[p] : &m->first_at[p];
    const char *axes = sp_param_axes(&m->set, (sp_param)p);
    char name[40];
    snprintf(name, sizeof name, "%s.%s", second ? "adam_v" : "adam_m", sp_param_name((sp_param)p));
    if (t && streams_moments(st)) {
        fth_source from = fth_tensor_source(t);
        from.data = NULL; /* read piece by piece, as a file would be */
        return fth_input(st->net.g, name, m->real, axes, from);
    }
    if (t) return fth_param(st->net.g, name, axes, t);
    return file->read ? fth_input(st->net.g, name, m->real, axes, *file) : (fth_val){st->net.g, 0};
}

static void keep(sp_step *st, fth_val old, fth_val next, fth_tensor *at, const fth_sink *file)
{
    if (!fth_val_ok(next) || !fth_val_ok(old)) return;
    fth_sink back = at ? fth_tensor_sink(at) : (fth_sink){0};
    back.data = NULL;
    if (at && streams_moments(st))
        put(st, next, back);
    else if (at)
        put(st, fth_assign(old, next), (fth_sink){0});
    else
        put(st, next, *file);
}

static void move(sp_step *st, int p, fth_val grad, fth_val ok, const fth_val number[4])
{
    sp_model *m = st->opt.model;
    fth_optim opt = fth_optim_default((fth_optim_kind)m->set.optimizer);
    opt.product = number[3];
    opt.go = ok;
    const fth_val param = st->net.param[p], first = moment(st, p, false),
                  second = moment(st, p, true);
    fth_val next[3];
    fth_optim_step(&opt, param, grad, first, second, number[0], number[1], number[2], next);
    if (p == SP_P_ELL) next[0] = sp_ell_settle(next[0], &m->set);
    if (p == SP_P_THETA) next[0] = sp_theta_settle(next[0]);
    if (p == SP_P_W) next[0] = sp_loadings_settle((sp_loadings)m->set.loadings_mode, next[0]);
    /* adam: lazy. Moments of elements without gradient decay as always, but do not move them. */
    if (m->set.adam == SP_ADAM_LAZY && m->set.local && p != SP_P_W && p != SP_P_THETA &&
        p != SP_P_ELL)
        next[0] = fth_select(fth_ne(grad, fth_const(st->net.g, st->net.real, 0.0)), next[0], param);
    put(st, fth_assign(param, next[0]), (fth_sink){0});
    keep(st, first, next[1], m->first[p], st->opt.first_to ? &st->opt.first_to[p] : NULL);
    keep(st, second, next[2], m->second[p], st->opt.second_to ? &st->opt.second_to[p] : NULL);
}

/* Natural parameters have no moments (model 20.2). */
static void move_natural(sp_step *st, const fth_val grad[SP_PARAMS], fth_val ok, fth_val rate)
{
    const fth_val theta[2] = {st->net.param[SP_P_NATURAL1], st->net.param[SP_P_NATURAL2]},
                  slope[2] = {grad[SP_P_NATURAL1], grad[SP_P_NATURAL2]};
    fth_val next[2];
    sp_natural_step(theta, slope, rate, ok, next);
    for (int i = 0; i < 2; i++) put(st, fth_assign(theta[i], next[i]), (fth_sink){0});
}

static bool moves_ell(const sp_step *st)
{
    return st->opt.model->param[SP_P_ELL] && !st->opt.fixed_ell;
}

/* Lengthscales have a rate of their own, and count their own steps. */
static void move_ell(sp_step *st, fth_val grad, fth_val ok, const fth_val number[4])
{
    const fth_val factor = fth_const(st->net.g, FTH_F64, st->opt.model->set.lengthscale_rate);
    move(st, SP_P_ELL, grad, ok,
         (const fth_val[4]){fth_mul(number[0], factor), number[1],
                            scalar(st, "step of lengthscales", FTH_I64, &st->ell_steps),
                            number[3]});
}

static fth_val weighted(sp_step *st, fth_val slope, double weight)
{
    return fth_mul(slope, fth_const(st->net.g, st->net.real, weight));
}

static void update_loadings(sp_step *st, fth_val idy, fth_val ok)
{
    const fth_val W = st->net.param[SP_P_W], rows = sp_likelihood_update_W(&st->like);
    const fth_val next = sp_loadings_replace(W, idy, rows);
    put(st, fth_assign(W, fth_select(ok, next, W)), (fth_sink){0});
}

static void put_noise(sp_step *st)
{
    if (!st->opt.eps_to || !fth_val_ok(st->like.eps)) return;
    const fth_val eps = st->like.eps;
    put(st, st->net.real == FTH_F32 ? eps : fth_cast(eps, FTH_F32),
        fth_tensor_sink(st->opt.eps_to));
}

/* Of [factor cellb]: over factors first, so that a pass over factors reads the cells once. */
static fth_val all_finite(fth_val v)
{
    return fth_all(fth_all(fth_isfinite(v), "factor"), "cellb");
}

static bool is_hybrid(const sp_step *st)
{
    return sp_is_hybrid(&st->opt.model->set);
}

static fth_val finite_terms(const sp_step *st, fth_val ell, fth_val kl)
{
    const fth_val both = fth_and(fth_isfinite(ell), fth_isfinite(kl));
    return is_hybrid(st) ? fth_and(both, fth_isfinite(st->prior.kl_cells)) : both;
}

/* Outputs for the host. Returns the condition under which the step takes effect. */
static fth_val put_numbers(sp_step *st, fth_val ell, fth_val kl)
{
    const fth_val f = all_finite(st->like.f), s = all_finite(st->like.s);
    put(st, ell, fth_scalar_sink(FTH_F64, &st->ell));
    put(st, kl, fth_scalar_sink(FTH_F64, &st->kl));
    if (is_hybrid(st)) put(st, st->prior.kl_cells, fth_scalar_sink(FTH_F64, &st->kl_cells));
    put(st, f, fth_scalar_sink(FTH_BOOL, &st->f_finite));
    put(st, s, fth_scalar_sink(FTH_BOOL, &st->s_finite));
    return finite_terms(st, ell, kl);
}

/* ---- the same on a device ---- */

static fth_status make_course(sp_step *st, fth_err *err)
{
    sp_course *c = &st->course;
    fth_mem *mem = st->opt.model->mem;
    const int64_t n = st->opt.log_every;
    FTH_TRY(fth_tensor_create(&c->ell, mem, "objective", FTH_F64, 1, &n, err));
    FTH_TRY(fth_tensor_create(&c->kl, mem, "objective", FTH_F64, 1, &n, err));
    if (is_hybrid(st))
        FTH_TRY(fth_tensor_create(&c->kl_cells, mem, "objective", FTH_F64, 1, &n, err));
    FTH_TRY(fth_tensor_create(&c->f_finite, mem, "objective", FTH_BOOL, 0, NULL, err));
    FTH_TRY(fth_tensor_create(&c->s_finite, mem, "objective", FTH_BOOL, 0, NULL, err));
    FTH_TRY(fth_tensor_create(&c->goes_on, mem, "objective", FTH_BOOL, 0, NULL, err));
    FTH_TRY(fth_tensor_create(&c->previous, mem, "objective", FTH_F64, 0, NULL, err));
    fth_axis(st->net.g, "log", n);
    if (st->opt.planning) return FTH_OK;
    memset(fth_tensor_data(c->ell), 0, (size_t)fth_tensor_bytes(c->ell));
    memset(fth_tensor_data(c->kl), 0, (size_t)fth_tensor_bytes(c->kl));
    if (c->kl_cells) memset(fth_tensor_data(c->kl_cells), 0, (size_t)fth_tensor_bytes(c->kl_cells));
    *(bool *)fth_tensor_data(c->f_finite) = *(bool *)fth_tensor_data(c->s_finite) = true;
    *(bool *)fth_tensor_data(c->goes_on) = true;
    *(double *)fth_tensor_data(c->previous) = st->opt.previous;
    return FTH_OK;
}

/* Assigns the value to the parameter where the condition holds. */
static void leave(sp_step *st, fth_val condition, fth_val value, fth_val param)
{
    put(st, fth_assign(param, fth_select(condition, value, param)), (fth_sink){0});
}

/* a (ell - constant) - b kl, as the host makes it (sp_step_look). */
static fth_val objective(sp_step *st, fth_val ell, fth_val kl)
{
    fth_graph *g = st->net.g;
    const sp_settings *set = &st->opt.model->set;
    const fth_val counts = scalar(st, "constant", FTH_F64, &st->constant),
                  fit = fth_mul(fth_const(g, FTH_F64, sp_weight_ell(set)), fth_sub(ell, counts));
    const fth_val all = fth_sub(fit, fth_mul(fth_const(g, FTH_F64, sp_weight_kl(set)), kl));
    if (!is_hybrid(st)) return all;
    const fth_val weight = fth_const(g, FTH_F64, sp_weight_kl_cells(set));
    return fth_sub(all, fth_mul(weight, st->prior.kl_cells));
}

static fth_val leave_numbers(sp_step *st, fth_val ell, fth_val kl)
{
    fth_graph *g = st->net.g;
    const sp_course *c = &st->course;
    const fth_val goes_on = fth_param(g, "goes on", "", c->goes_on),
                  previous = fth_param(g, "previous", "", c->previous);
    const fth_val here = fth_eq(fth_index(g, "log"), scalar(st, "slot", FTH_I64, &st->slot)),
                  now = fth_and(here, goes_on);
    leave(st, now, ell, fth_param(g, "log of ell", "log", c->ell));
    leave(st, now, kl, fth_param(g, "log of kl", "log", c->kl));
    if (is_hybrid(st))
        leave(st, now, st->prior.kl_cells, fth_param(g, "log of kl of cells", "log", c->kl_cells));
    leave(st, goes_on, all_finite(st->like.f), fth_param(g, "f finite", "", c->f_finite));
    leave(st, goes_on, all_finite(st->like.s), fth_param(g, "s finite", "", c->s_finite));
    const fth_val ok = fth_and(finite_terms(st, ell, kl), goes_on), elbo = objective(st, ell, kl);
    leave(st, ok, elbo, previous);
    if (st->opt.log_every <= 1) { /* the host decides */
        put(st, fth_assign(goes_on, ok), (fth_sink){0});
        return ok;
    }
    const fth_val change = fth_abs(fth_sub(elbo, previous)),
                  tol = fth_const(g, FTH_F64, st->opt.model->set.tol);
    put(st, fth_assign(goes_on, fth_and(ok, fth_not(fth_lt(change, tol)))), (fth_sink){0});
    return ok;
}

static void drop_course(sp_step *st)
{
    const sp_course *c = &st->course;
    fth_tensor *const held[] = {c->ell,      c->kl,      c->kl_cells, c->f_finite,
                                c->s_finite, c->goes_on, c->previous};
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) fth_tensor_release(held[i]);
    for (int i = 0; i < st->n_numbers; i++) fth_tensor_release(st->number[i].t);
}

/* ---- all of it ---- */

static fth_status build(sp_step *st, fth_err *err)
{
    sp_model_graph *net = &st->net;
    const sp_settings *set = &st->opt.model->set;
    const sp_loadings mode = (sp_loadings)set->loadings_mode;
    const double a = sp_weight_ell(set), b = sp_weight_kl(set);
    sp_likelihood *l = &st->like;
    fth_val ell, df, ds, kl, grad[SP_PARAMS] = {{0}};
    FTH_TRY(make_indices(st, err));
    FTH_TRY(sp_likelihood_inputs(l, net, &st->opt.counts, err));
    const fth_val idy =
        st->idy ? sp_model_graph_batch(net, "idy", "geneb", st->idy) : (fth_val){net->g, 0};
    FTH_TRY(st->prior.ops->marginals(&st->prior, net, &l->f, &l->s, err));
    if (st->opt.log_size) /* the likelihood sees v exp(f): slopes in f are the same */
        l->f = fth_add(
            l->f, fth_gather(sp_model_graph_constant(net, "log_size", "cell", st->opt.log_size),
                             "cell", net->idx));
    if (set->likelihood == SP_NB)
        l->theta = sp_theta_of(sp_loadings_select(net->param[SP_P_THETA], idy));
    l->mode = (sp_mode)set->mode;
    l->W = sp_loadings_rows(mode, net->param[SP_P_W], idy);
    l->eps = noise(st);
    FTH_TRY(sp_likelihood_cells(l, &ell, &df, &ds, err));
    FTH_TRY(st->prior.ops->gradients(&st->prior, net, weighted(st, df, -a), weighted(st, ds, -a), b,
                                     &kl, grad, err));
    const fth_val ok = net->on_device ? leave_numbers(st, ell, kl) : put_numbers(st, ell, kl);
    put_noise(st);
    const bool moves_W = set->trainable_W && !st->opt.fixed_W;
    if (moves_W)
        grad[SP_P_W] = sp_loadings_gradient(mode, net->param[SP_P_W], idy,
                                            weighted(st, sp_likelihood_slope_W(l), -a));
    const bool moves_theta = set->likelihood == SP_NB && !st->opt.fixed_theta;
    if (moves_theta)
        grad[SP_P_THETA] = sp_loadings_places(weighted(st, sp_likelihood_slope_theta(l), -a), idy);
    const fth_val number[4] = {
        scalar(st, "rate", FTH_F64, &st->rate), scalar(st, "beta1", FTH_F64, &st->beta1),
        scalar(st, "step", FTH_I64, &st->steps),
        set->optimizer == SP_NADAM ? scalar(st, "product", FTH_F64, &st->product)
                                   : (fth_val){net->g, 0}};
    if (sp_is_natural(set)) move_natural(st, grad, ok, number[0]);
    for (int p = 0; p < SP_PARAMS; p++)
        if (st->opt.model->param[p] && p != SP_P_ELL && sp_param_is_optimized(set, (sp_param)p) &&
            (p != SP_P_W || moves_W) && (p != SP_P_THETA || moves_theta))
            move(st, p, grad[p], ok, number);
    if (moves_ell(st)) move_ell(st, grad[SP_P_ELL], ok, number);
    if (!set->trainable_W && !st->opt.fixed_W) update_loadings(st, idy, ok);
    return fth_graph_check(net->g, err);
}

/* ---- opening and closing ---- */

static fth_status open_parts(sp_step *st, fth_err *err)
{
    const sp_step_options *o = &st->opt;
    st->prior = (sp_prior){.ops = sp_prior_for(&o->model->set),
                           .ctx = o->ctx,
                           .model = o->model,
                           .data = o->data,
                           .call = o->call,
                           .planning = o->planning,
                           .fixed_lengthscale = o->fixed_ell,
                           .resident = fth_context_device_mem(o->ctx) && o->hold == SP_HOLD_ALL};
    FTH_TRY(st->prior.ops->open(&st->prior, err));
    FTH_TRY(sp_model_graph_create(&st->net, o->ctx, o->model, true, o->model->set.cells, err));
    st->net.streams = o->hold > SP_HOLD_CONSTANTS;
    if (st->net.on_device) FTH_TRY(make_course(st, err));
    FTH_TRY(build(st, err));
    const fth_limits limits = {.sinks = st->sink, .keep = true};
    st->plan = fth_plan_make(st->net.g, st->out, st->n_out, &limits, err);
    return st->plan ? FTH_OK : err ? err->status : FTH_E_NO_FIT;
}

fth_status sp_step_open(sp_step *st, const sp_step_options *opt, fth_err *err)
{
    *st = (sp_step){.opt = *opt, .product = 1.0, .elbo = (double)NAN, .bound = (double)NAN};
    st->opt.log_every = opt->log_every < 1 ? 1 : opt->log_every;
    const fth_status s = open_parts(st, err);
    if (s != FTH_OK) sp_step_close(st);
    return s;
}

void sp_step_close(sp_step *st)
{
    fth_plan_destroy(st->plan);
    if (st->net.g) sp_model_graph_destroy(&st->net);
    if (st->prior.self) st->prior.ops->close(&st->prior);
    drop_course(st);
    fth_tensor_release(st->idx);
    fth_tensor_release(st->idy);
    *st = (sp_step){0};
}

/* ---- running ---- */

static void set_index(fth_tensor *t, const int64_t *index)
{
    if (!t) return;
    int64_t *to = fth_tensor_data(t);
    const int64_t n = fth_tensor_size(t, 0);
    if (index)
        memcpy(to, index, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0; i < n; i++) to[i] = i;
}

fth_status sp_step_ask(sp_step *st, const int64_t *cell, fth_err *err)
{
    if (!cell && st->all_asked) return FTH_OK;
    if (!cell) set_index(st->idx, NULL);
    st->all_asked = !cell;
    return st->prior.ops->ask(&st->prior, cell ? cell : fth_tensor_data(st->idx),
                              fth_tensor_size(st->idx, 0), err);
}

fth_status sp_step_take(sp_step *st, const int64_t *cell, const int64_t *gene,
                        const sp_counts *counts, fth_err *err)
{
    set_index(st->idx, cell);
    set_index(st->idy, gene);
    st->constant = counts->constant;
    FTH_TRY(sp_likelihood_set(&st->net, counts, err));
    if (!cell && st->all_taken) return FTH_OK;
    st->all_taken = !cell;
    return st->prior.ops->take(&st->prior, &st->net, err);
}

static bool is_finite(fth_tensor *t)
{
    const bool wide = fth_tensor_dtype(t) == FTH_F64;
    const int64_t n = (int64_t)(fth_tensor_bytes(t) / (wide ? 8 : 4));
    const float *f = fth_tensor_data(t);
    const double *d = fth_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        if (!(wide ? isfinite(d[i]) : isfinite(f[i]))) return false;
    return true;
}

/* The first tensor of the step, in the order of its computation, that is not finite. */
static const char *find_culprit(const sp_step *st)
{
    static const int order[SP_PARAMS] = {SP_P_MEAN, SP_P_RAW,  SP_P_NATURAL1, SP_P_NATURAL2,
                                         SP_P_ELL,  SP_P_MU,   SP_P_LU,       SP_P_LAM,
                                         SP_P_W,    SP_P_THETA};
    for (int i = 0; i < SP_PARAMS; i++) {
        fth_tensor *t = st->opt.model->param[order[i]];
        if (t && !is_finite(t)) return sp_param_name((sp_param)order[i]);
    }
    return !st->f_finite        ? "f, the means of the factors"
           : !st->s_finite      ? "s, the deviations of the factors"
           : !isfinite(st->ell) ? "the expected log-likelihood"
                                : "KL, the divergence from the prior";
}

static fth_status queue(sp_step *st, fth_err *err)
{
    for (int i = 0; i < st->n_numbers; i++)
        memcpy(fth_tensor_data(st->number[i].t), st->number[i].value, st->number[i].bytes);
    return fth_run(st->plan, st->sink, NULL, &st->report, err);
}

/* Read from the device, if there is one. */
static void read_course(sp_step *st, int64_t k)
{
    const sp_course *c = &st->course;
    if (!st->net.on_device) return;
    st->ell = ((const double *)fth_tensor_view(c->ell))[k];
    st->kl = ((const double *)fth_tensor_view(c->kl))[k];
    if (c->kl_cells) st->kl_cells = ((const double *)fth_tensor_view(c->kl_cells))[k];
    st->f_finite = *(const bool *)fth_tensor_view(c->f_finite);
    st->s_finite = *(const bool *)fth_tensor_view(c->s_finite);
}

static fth_status sync_course(sp_step *st, fth_err *err)
{
    const sp_course *c = &st->course;
    if (!st->net.on_device) return FTH_OK;
    fth_tensor *const left[] = {c->ell, c->kl, c->f_finite, c->s_finite, c->kl_cells};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        if (left[i]) FTH_TRY(fth_tensor_sync(left[i], err));
    return FTH_OK;
}

fth_status sp_step_look(sp_step *st, int64_t k, fth_err *err)
{
    sp_model *m = st->opt.model;
    FTH_TRY(sync_course(st, err));
    read_course(st, k);
    const double ell = sp_weight_ell(&m->set) * (st->ell - st->course.of[k].constant);
    const bool inducing = m->set.spatial && !m->set.local;
    st->elbo = ell - sp_weight_kl(&m->set) * st->kl;
    st->bound = ell - (inducing ? 1.0 : sp_weight_kl(&m->set)) * st->kl;
    if (is_hybrid(st)) {
        const double cells = sp_weight_kl_cells(&m->set) * st->kl_cells;
        st->elbo -= cells;
        st->bound -= cells;
    }
    if (isfinite(st->elbo)) {
        m->optimizer_steps++;
        if (moves_ell(st)) m->ell_steps++;
        return FTH_OK;
    }
    FTH_FAIL(err, FTH_E_NUMERIC,
             "the loss is not finite in iteration %" PRId64 ": %s is the first "
             "that is not",
             st->iteration - st->waiting + k + 2, find_culprit(st));
    fth_err_hint(err, "lower training.learning_rate, which was %g in this step",
                 st->course.of[k].rate);
    return FTH_E_NUMERIC;
}

void sp_step_looked(sp_step *st)
{
    st->waiting = 0;
}

fth_status sp_step_run(sp_step *st, double rate, double beta1, int64_t iteration, fth_err *err)
{
    const sp_model *m = st->opt.model;
    st->rate = rate;
    st->beta1 = beta1;
    st->iteration = iteration;
    st->slot = st->waiting;
    st->steps = m->optimizer_steps + st->waiting + 1;
    st->ell_steps = m->ell_steps + st->waiting + 1;
    if (m->set.optimizer == SP_NADAM)
        st->product = fth_nadam_product(st->product, beta1, st->steps);
    FTH_TRY(queue(st, err));
    st->course.of[st->waiting].rate = rate;
    st->course.of[st->waiting++].constant = st->constant;
    if (st->opt.log_every > 1) return FTH_OK;
    const fth_status s = sp_step_look(st, 0, err);
    sp_step_looked(st);
    return s;
}
