/* pnmf.c - the prior without positions: factors of cells are independent and standard normal.
 *
 * Mean and raw are parameters of each factor and cell, s = softplus(raw); a batch gathers its
 * columns, and its gradients are scattered into zeros. With natural gradients the parameters are
 * theta1 and theta2, and the gradients slopes in expectations (natural.h).
 */
#include "natural.h"
#include "prior.h"

typedef struct pnmf {
    fth_val raw, f, s; /* of the batch */
} pnmf;

static fth_status open_prior(sp_prior *p, fth_err *err)
{
    void *self = NULL;
    FTH_TRY(fth_mem_take(p->model->mem, FTH_MEM_META, sizeof(pnmf), "pnmf", &self, err));
    *(pnmf *)self = (pnmf){0};
    p->self = self;
    return FTH_OK;
}

static void close_prior(sp_prior *p)
{
    if (p->self) fth_mem_release(p->model->mem, p->self, NULL);
    p->self = NULL;
}

static fth_status marginals(sp_prior *p, sp_model_graph *net, fth_val *f, fth_val *s, fth_err *err)
{
    pnmf *self = p->self;
    if (sp_is_natural(&p->model->set)) {
        sp_natural_moments(fth_gather(net->param[SP_P_NATURAL1], "cell", net->idx),
                           fth_gather(net->param[SP_P_NATURAL2], "cell", net->idx), &self->f,
                           &self->s);
        *f = self->f, *s = self->s;
        return fth_graph_check(net->g, err);
    }
    self->raw = fth_gather(net->param[SP_P_RAW], "cell", net->idx);
    self->f = *f = fth_gather(net->param[SP_P_MEAN], "cell", net->idx);
    self->s = *s = fth_softplus(self->raw);
    return fth_graph_check(net->g, err);
}

/* (s^2 + f^2 - 1)/2 - ln s, summed in f64 (model 5a). */
static fth_val divergence(const sp_model_graph *net, const pnmf *b)
{
    fth_graph *g = b->f.graph;
    const fth_val f = fth_cast(b->f, FTH_F64), s = fth_cast(b->s, FTH_F64);
    const fth_val squares = fth_sub(fth_add(fth_sqr(s), fth_sqr(f)), fth_const(g, FTH_F64, 1.0));
    const fth_val each = fth_sub(fth_mul(squares, fth_const(g, FTH_F64, 0.5)), fth_log(s));
    return fth_sum(each, sp_is_hybrid(&net->model->set) ? "tfactor cellb" : "factor cellb");
}

static fth_status gradients(sp_prior *p, sp_model_graph *net, fth_val gf, fth_val gs, double b,
                            fth_val *kl, fth_val grad[SP_PARAMS], fth_err *err)
{
    const pnmf *self = p->self;
    const fth_val weight = fth_const(net->g, net->real, b);
    const fth_val df = fth_add(gf, fth_mul(weight, self->f));
    const fth_val ds = fth_add(gs, fth_mul(weight, fth_sub(self->s, fth_recip(self->s))));
    *kl = divergence(net, self);
    if (sp_is_natural(&p->model->set)) {
        fth_val slope[2];
        sp_natural_slopes(self->f, self->s, df, ds, slope);
        grad[SP_P_NATURAL1] = fth_scatter_add(slope[0], "cellb", net->idx, "cell");
        grad[SP_P_NATURAL2] = fth_scatter_add(slope[1], "cellb", net->idx, "cell");
        return fth_graph_check(net->g, err);
    }
    const fth_val draw = fth_mul(ds, fth_sigmoid(self->raw));
    grad[SP_P_MEAN] = fth_scatter_add(df, "cellb", net->idx, "cell");
    grad[SP_P_RAW] = fth_scatter_add(draw, "cellb", net->idx, "cell");
    return fth_graph_check(net->g, err);
}

/* net->idx already holds the batch. */
static fth_status ask(sp_prior *p, const int64_t *cell, int64_t n, fth_err *err)
{
    (void)p, (void)cell, (void)n, (void)err;
    return FTH_OK;
}

static fth_status take(sp_prior *p, sp_model_graph *net, fth_err *err)
{
    (void)p, (void)net, (void)err;
    return FTH_OK;
}

const sp_prior_ops sp_prior_pnmf = {.name = "pnmf",
                                    .open = open_prior,
                                    .marginals = marginals,
                                    .gradients = gradients,
                                    .ask = ask,
                                    .take = take,
                                    .close = close_prior};

fth_status sp_predict_pnmf(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                           fth_err *err)
{
    (void)q;
    if (sp_is_natural(&net->model->set)) {
        sp_natural_moments(net->param[SP_P_NATURAL1], net->param[SP_P_NATURAL2], f, s);
        return fth_graph_check(net->g, err);
    }
    *f = net->param[SP_P_MEAN];
    *s = fth_softplus(net->param[SP_P_RAW]);
    return fth_graph_check(net->g, err);
}
