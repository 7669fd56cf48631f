/* hybrid.c - the prior of hybrid models: a spatial prior and, for further factors, that of pnmf
 * (model 18.1).
 *
 * It owns both. Spatial factors come first: f and s of a batch are those of the two joined along
 * the factors, and slopes are taken apart again. The two divergences have weights of their own, so
 * they stay two numbers.
 */
#include "prior.h"

typedef struct hybrid {
    sp_prior space, cells;
} hybrid;

static void close_prior(sp_prior *p)
{
    hybrid *h = p->self;
    if (!h) return;
    if (h->cells.self) h->cells.ops->close(&h->cells);
    if (h->space.self) h->space.ops->close(&h->space);
    fth_mem_release(p->model->mem, h, NULL);
    p->self = NULL;
}

static fth_status open_prior(sp_prior *p, fth_err *err)
{
    void *self = NULL;
    FTH_TRY(fth_mem_take(p->model->mem, FTH_MEM_META, sizeof(hybrid), "hybrid", &self, err));
    hybrid *h = self;
    *h = (hybrid){.space = *p, .cells = *p};
    p->self = h;
    h->space.ops = sp_prior_of(p->model->set.kind);
    h->cells.ops = &sp_prior_pnmf;
    fth_status s = h->space.ops->open(&h->space, err);
    if (s == FTH_OK) s = h->cells.ops->open(&h->cells, err);
    p->scratch_bytes = h->space.scratch_bytes;
    p->once = h->space.once;
    if (s != FTH_OK) close_prior(p);
    return s;
}

/* Spatial factors, then the others. */
static fth_val join(fth_val space, fth_val cells)
{
    return fth_concat(2, ((const fth_val[]){space, cells}),
                      ((const char *const[]){"sfactor", "tfactor"}), "factor");
}

static fth_status marginals(sp_prior *p, sp_model_graph *net, fth_val *f, fth_val *s, fth_err *err)
{
    hybrid *h = p->self;
    fth_val f_space, s_space, f_cells, s_cells;
    FTH_TRY(h->space.ops->marginals(&h->space, net, &f_space, &s_space, err));
    FTH_TRY(h->cells.ops->marginals(&h->cells, net, &f_cells, &s_cells, err));
    *f = fth_label(join(f_space, f_cells), "f of all factors");
    *s = fth_label(join(s_space, s_cells), "s of all factors");
    return fth_graph_check(net->g, err);
}

static fth_val of_space(fth_val slope)
{
    return fth_slice(slope, "factor", 0, "sfactor");
}

static fth_val of_cells(const sp_prior *p, fth_val slope)
{
    return fth_slice(slope, "factor", p->model->set.n_components, "tfactor");
}

static fth_status gradients(sp_prior *p, sp_model_graph *net, fth_val gf, fth_val gs, double b,
                            fth_val *kl, fth_val grad[SP_PARAMS], fth_err *err)
{
    hybrid *h = p->self;
    FTH_TRY(h->space.ops->gradients(&h->space, net, of_space(gf), of_space(gs), b, kl, grad, err));
    return h->cells.ops->gradients(&h->cells, net, of_cells(p, gf), of_cells(p, gs),
                                   sp_weight_kl_cells(&p->model->set), &p->kl_cells, grad, err);
}

static fth_status ask(sp_prior *p, const int64_t *cell, int64_t n, fth_err *err)
{
    hybrid *h = p->self;
    return h->space.ops->ask(&h->space, cell, n, err); /* the other reads nothing ahead */
}

static fth_status take(sp_prior *p, sp_model_graph *net, fth_err *err)
{
    hybrid *h = p->self;
    return h->space.ops->take(&h->space, net, err);
}

const sp_prior_ops sp_prior_hybrid = {.name = "hybrid",
                                      .open = open_prior,
                                      .marginals = marginals,
                                      .gradients = gradients,
                                      .ask = ask,
                                      .take = take,
                                      .close = close_prior};

/* ---- predictions ---- */

/* What a cell that training did not see is expected to have: f and s [tfactor] whose exp(f) and
 * exp(f + s^2/2) are the means over the training cells (model 18.4). */
static void means_of_training(const sp_model_graph *net, fth_val *f, fth_val *s)
{
    fth_graph *g = net->g;
    const fth_val at = fth_cast(net->param[SP_P_MEAN], FTH_F64),
                  spread = fth_softplus(fth_cast(net->param[SP_P_RAW], FTH_F64)),
                  half = fth_mul(fth_const(g, FTH_F64, 0.5), fth_sqr(spread));
    const fth_val plain = fth_log(fth_mean(fth_exp(at), "trained")),
                  expected = fth_log(fth_mean(fth_exp(fth_add(at, half)), "trained"));
    const fth_val variance = fth_mul(fth_const(g, FTH_F64, 2.0), fth_sub(expected, plain));
    *f = fth_cast(plain, net->real);
    *s = fth_cast(fth_sqrt(fth_max(variance, fth_const(g, FTH_F64, 0.0))), net->real);
}

/* f and s of the factors without positions, [tfactor cell]. */
static void without_positions(const sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s)
{
    if (q->trained) {
        const fth_val raw = fth_rename(net->param[SP_P_RAW], "trained", "cell");
        *f = fth_rename(net->param[SP_P_MEAN], "trained", "cell");
        *s = fth_max(fth_softplus(raw), fth_const(net->g, net->real, 1e-8));
        return;
    }
    means_of_training(net, f, s);
    *f = fth_layout(fth_expand(*f, "cell"), "tfactor cell");
    *s = fth_layout(fth_expand(*s, "cell"), "tfactor cell");
}

fth_status sp_predict_hybrid(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                             fth_err *err)
{
    fth_val f_cells, s_cells;
    without_positions(net, q, &f_cells, &s_cells);
    *f = join(*f, f_cells);
    *s = join(*s, s_cells);
    return fth_graph_check(net->g, err);
}

fth_status sp_hybrid_groups(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err)
{
    fth_val f_cells, s_cells;
    without_positions(net, q, &f_cells, &s_cells);
    *f = join(*f, fth_expand(f_cells, "group"));
    return fth_graph_check(net->g, err);
}
