/* local.c - the prior in which every cell is conditioned on its K nearest: lcgp and mggp_lcgp.
 *
 * Weights of the neighbours depend on positions alone: they are computed once, 4 N (K + 1) bytes. A
 * step computes the terms of the batch's cells, then every training cell gathers its contributions;
 * the host lists them one batch ahead, double-buffered (lister.h).
 *
 * Where each factor has a lengthscale that moves (model 19), no weights are kept: a step makes
 * those of its batch, for each factor, and their slopes.
 */
#include "local.h"

#include "lister.h"

typedef struct lists {
    fth_tensor *ptr, *items;
} lists;

typedef struct local {
    bool each;          /* every factor has a lengthscale of its own, which moves */
    fth_tensor *a, *cp; /* real [cell nbr] and [cell]; NULL: made in each step */
    lists slot[2];
    int next;          /* the slot that the next batch is written to; the other one is in use */
    int64_t asked;     /* cells of that batch; 0: none was requested */
    sp_lister *lister; /* made with the first batch */
    sp_local_batch batch;
    fth_val da; /* `each`: slope of its weights in ln lengthscale */
} local;

static fth_status take_memory(sp_prior *p, local *self, fth_err *err)
{
    sp_model *m = p->model;
    const int64_t cells = fth_tensor_size(m->nbr_kl, 0), k = fth_tensor_size(m->nbr_kl, 1),
                  n = m->set.batch_size * (k + 1);
    if (m->set.batch_size > INT32_MAX / (k + 1))
        return FTH_FAIL(err, FTH_E_CONFIG,
                        "model.K %lld with batches of %lld cells: at most %d neighbours in a batch",
                        (long long)k, (long long)m->set.batch_size, INT32_MAX);
    if (!self->each) {
        FTH_TRY(fth_tensor_create(&self->a, m->mem, "weights of neighbours", m->real, 2,
                                  ((int64_t[]){cells, k}), err));
        FTH_TRY(
            fth_tensor_create(&self->cp, m->mem, "conditional variances", m->real, 1, &cells, err));
    }
    for (int i = 0; i < 2; i++) {
        FTH_TRY(fth_tensor_create(&self->slot[i].ptr, m->mem, "contributions to cells", FTH_I32, 1,
                                  ((int64_t[]){cells + 1}), err));
        FTH_TRY(fth_tensor_create(&self->slot[i].items, m->mem, "contributions to cells", FTH_I32,
                                  1, &n, err));
    }
    return FTH_OK;
}

/* ---- weights, once ---- */

static fth_val build_weights(fth_graph *g, const sp_model *m, double lo)
{
    const int64_t cells = fth_tensor_size(m->nbr_kl, 0);
    fth_axis(g, "cell", cells);
    fth_axis_like(g, "induce", "cell");
    fth_axis(g, "nbr", fth_tensor_size(m->nbr_kl, 1));
    fth_axis(g, "dim", 2);
    sp_local_places w = {
        .at = fth_input(g, "at", FTH_F32, "cell dim", fth_tensor_source(m->Z)),
        .Z = fth_input(g, "Z", FTH_F32, "induce dim", fth_tensor_source(m->Z)),
        .nbr = fth_input(g, "nbr_kl", FTH_I32, "cell nbr", fth_tensor_source(m->nbr_kl))};
    if (m->set.groups) {
        w.group = fth_input(g, "group", FTH_I32, "cell", fth_tensor_source(m->groupsZ));
        w.groupsZ = fth_input(g, "groupsZ", FTH_I32, "induce", fth_tensor_source(m->groupsZ));
    }
    if (m->set.groups && m->distance) {
        fth_axis(g, "group", m->set.n_groups);
        fth_axis_like(g, "group2", "group");
        w.distance =
            fth_input(g, "distance", FTH_F64, "group group2", fth_tensor_source(m->distance));
    }
    const sp_local_cov cov = sp_local_cov_of(m);
    return sp_local_weights(&cov, &w, m->real, lo);
}

static fth_status compute_weights(sp_prior *p, local *self, fth_err *err)
{
    fth_graph *g = fth_graph_create(p->ctx);
    if (!g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the graph of a prior");
    const fth_val a = build_weights(g, p->model, 1e-6), out[2] = {a, fth_out(a, 1)};
    const fth_sink sink[2] = {fth_tensor_sink(self->a), fth_tensor_sink(self->cp)};
    const fth_limits limits = {.sinks = sink};
    fth_plan *plan = fth_plan_make(g, out, 2, &limits, err);
    fth_status s = plan ? FTH_OK : err->status;
    if (plan) fth_plan_get_needs(plan, &p->once);
    if (plan && !p->planning) s = fth_stage_run(p->call, plan, sink, NULL, err);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    if (!p->planning) (void)fth_mem_trim(p->model->mem); /* steps need less */
    return s;
}

static void close_prior(sp_prior *p)
{
    local *self = p->self;
    if (!self) return;
    sp_lister_destroy(self->lister);
    fth_tensor_release(self->a);
    fth_tensor_release(self->cp);
    for (int i = 0; i < 2; i++) {
        fth_tensor_release(self->slot[i].ptr);
        fth_tensor_release(self->slot[i].items);
    }
    fth_mem_release(p->model->mem, self, NULL);
    p->self = NULL;
}

static fth_status open_prior(sp_prior *p, fth_err *err)
{
    void *self = NULL;
    FTH_TRY(fth_mem_take(p->model->mem, FTH_MEM_META, sizeof(local), "lcgp", &self, err));
    const bool each = p->model->param[SP_P_ELL] && !p->fixed_lengthscale;
    *(local *)self = (local){.each = each};
    p->self = self;
    fth_status s = take_memory(p, self, err);
    if (s == FTH_OK && !each) s = compute_weights(p, self, err);
    if (each && !p->planning) (void)fth_mem_trim(p->model->mem); /* what start values left */
    if (s != FTH_OK) close_prior(p);
    return s;
}

/* ---- a step ---- */

/* Weights of the batch, with the lengthscales of this step. */
static void weights_each(const sp_prior *p, local *self, sp_model_graph *net)
{
    const sp_model *m = p->model;
    const sp_local_cov cov = sp_local_cov_of(m);
    sp_local_places w = {.nbr = self->batch.nbr,
                         .Z = sp_model_graph_constant(net, "places", "cell dim", m->Z),
                         .log_ell = fth_cast(net->param[SP_P_ELL], FTH_F64)};
    w.at = fth_gather(w.Z, "cell", net->idx);
    if (m->set.groups) {
        w.groupsZ = sp_model_graph_constant(net, "groups", "cell", m->groupsZ);
        w.group = fth_gather(w.groupsZ, "cell", net->idx);
    }
    if (m->set.groups && m->distance)
        w.distance = sp_model_graph_constant(net, "distance", "group group2", m->distance);
    self->batch.a = fth_label(sp_local_weights(&cov, &w, net->real, 1e-6), "weights");
    self->batch.cp = fth_label(fth_out(self->batch.a, 1), "cp");
    self->da = fth_label(fth_out(self->batch.a, 2), "da");
}

static fth_status marginals(sp_prior *p, sp_model_graph *net, fth_val *f, fth_val *s, fth_err *err)
{
    local *self = p->self;
    const fth_val nbr = sp_model_graph_constant(net, "nbr_kl", "cell nbr", p->model->nbr_kl);
    self->batch = (sp_local_batch){.idx = net->idx,
                                   .nbr = fth_gather(nbr, "cell", net->idx),
                                   .mu = net->param[SP_P_MU],
                                   .Lam = net->param[SP_P_LAM],
                                   .jitter = p->model->set.jitter};
    if (self->each)
        weights_each(p, self, net);
    else {
        const fth_val a = sp_model_graph_constant(net, "weights", "cell nbr", self->a),
                      cp = sp_model_graph_constant(net, "cp", "cell", self->cp);
        self->batch.a = fth_gather(a, "cell", net->idx);
        self->batch.cp = fth_gather(cp, "cell", net->idx);
    }
    *f = sp_local_marginals(&self->batch);
    *s = fth_out(*f, 1);
    return fth_graph_check(net->g, err);
}

/* b dKL/d ln lengthscale with cp held, real [factor]: f and s do not depend on it (model 19.6). */
static fth_val slope_of_ell(const local *self, const sp_model_graph *net, fth_val terms, double b)
{
    const fth_val each = sp_local_slopes(&self->batch, terms, self->da),
                  sum = fth_mul(fth_const(net->g, FTH_F64, b), fth_sum(each, "cellb"));
    return fth_label(fth_cast(sum, net->real), "dlog_ell");
}

static fth_status gradients(sp_prior *p, sp_model_graph *net, fth_val gf, fth_val gs, double b,
                            fth_val *kl, fth_val grad[SP_PARAMS], fth_err *err)
{
    local *self = p->self;
    const lists *now = &self->slot[0];
    fth_axis(net->g, "cell1", fth_tensor_size(now->ptr, 0));
    fth_axis(net->g, "touch", fth_tensor_size(now->items, 0));
    const sp_local_touched t = {.ptr = sp_model_graph_batch(net, "touch_ptr", "cell1", now->ptr),
                                .items = sp_model_graph_batch(net, "touch", "touch", now->items)};
    const fth_val terms = sp_local_terms(&self->batch);
    *kl = fth_sum(fth_out(terms, SP_TERM_KL),
                  sp_is_hybrid(&p->model->set) ? "sfactor cellb" : "factor cellb");
    grad[SP_P_LAM] = fth_label(sp_local_scatter(&self->batch, terms, &t, gf, gs, b), "dLam");
    grad[SP_P_MU] = fth_label(fth_out(grad[SP_P_LAM], 1), "dmu");
    if (self->each) grad[SP_P_ELL] = slope_of_ell(self, net, terms, b);
    return fth_graph_check(net->g, err);
}

static fth_status ask(sp_prior *p, const int64_t *cell, int64_t n, fth_err *err)
{
    local *self = p->self;
    const lists *to = &self->slot[self->next];
    const int64_t k = fth_tensor_size(p->model->nbr_kl, 1),
                  cells = fth_tensor_size(p->model->nbr_kl, 0);
    if (n * (k + 1) != fth_tensor_size(to->items, 0))
        return FTH_FAIL(err, FTH_E_USAGE, "a batch of %lld cells, expected %lld", (long long)n,
                        (long long)p->model->set.batch_size);
    if (!self->lister) {
        const sp_lists_of of = {fth_tensor_view(p->model->nbr_kl), cells, k, n};
        FTH_TRY(sp_lister_create(&self->lister, p->model->mem, &of, err));
    }
    sp_lister_ask(self->lister, cell, fth_tensor_data(to->ptr), fth_tensor_data(to->items));
    self->asked = n;
    return FTH_OK;
}

static fth_status take(sp_prior *p, sp_model_graph *net, fth_err *err)
{
    local *self = p->self;
    if (self->asked == 0) return FTH_FAIL(err, FTH_E_STATE, "no batch was requested");
    FTH_TRY(sp_lister_take(self->lister, err));
    const lists *now = &self->slot[self->next];
    FTH_TRY(sp_model_graph_next(net, "touch_ptr", now->ptr, err));
    FTH_TRY(sp_model_graph_next(net, "touch", now->items, err));
    self->next = 1 - self->next;
    self->asked = 0;
    return FTH_OK;
}

const sp_local_batch *sp_local_batch_of(const sp_prior *p)
{
    return &((const local *)p->self)->batch;
}

const sp_prior_ops sp_prior_local = {.name = "lcgp",
                                     .open = open_prior,
                                     .marginals = marginals,
                                     .gradients = gradients,
                                     .ask = ask,
                                     .take = take,
                                     .close = close_prior};

/* ---- predictions ---- */

static sp_local_places places(sp_model_graph *net, const sp_query *q)
{
    const sp_model *m = net->model;
    sp_local_places w = {
        .at = q->xy, .group = q->group, .nbr = q->nbr, .Z = net->Z, .groupsZ = net->groupsZ};
    if (m->set.groups && m->distance)
        w.distance =
            fth_input(net->g, "distance", FTH_F64, "group group2", fth_tensor_source(m->distance));
    if (m->param[SP_P_ELL]) w.log_ell = fth_cast(net->param[SP_P_ELL], FTH_F64);
    return w;
}

fth_status sp_predict_local(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                            fth_err *err)
{
    const sp_local_cov cov = sp_local_cov_of(net->model);
    const sp_local_places w = places(net, q);
    const fth_val a = sp_local_weights(&cov, &w, net->real, 0);
    *f = sp_local_predict(a, fth_out(a, 1), q->nbr, net->param[SP_P_MU], net->param[SP_P_LAM],
                          net->model->set.jitter);
    *s = fth_out(*f, 1);
    return fth_graph_check(net->g, err);
}

fth_status sp_predict_mean_local(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err)
{
    const sp_local_cov cov = sp_local_cov_of(net->model);
    const sp_local_places w = places(net, q);
    const fth_val a = sp_local_weights(&cov, &w, net->real, 0);
    *f = sp_local_means(a, q->nbr, net->param[SP_P_MU]);
    return fth_graph_check(net->g, err);
}

fth_status sp_predict_groups_local(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err)
{
    const sp_local_cov cov = sp_local_cov_of(net->model);
    const sp_local_places w = places(net, q);
    const fth_val a = sp_local_weights_groups(&cov, &w, net->real);
    *f = sp_local_means(a, q->nbr, net->param[SP_P_MU]);
    return fth_graph_check(net->g, err);
}
