/* predict.c - which prior a model has, and which prediction. */
#include "prior.h"

#include <math.h>

typedef struct family {
    const sp_prior_ops *prior;
    fth_status (*predict)(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                          fth_err *err);
    fth_status (*groups)(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err);
} family;

static const family families[SP_KIND_COUNT] = {
    [SP_PNMF] = {&sp_prior_pnmf, sp_predict_pnmf, NULL},
    [SP_SVGP] = {&sp_prior_svgp, sp_predict_svgp, NULL},
    [SP_MGGP_SVGP] = {&sp_prior_svgp, sp_predict_svgp, sp_predict_groups_svgp},
    [SP_LCGP] = {&sp_prior_local, sp_predict_local, NULL},
    [SP_MGGP_LCGP] = {&sp_prior_local, sp_predict_local, sp_predict_groups_local},
};

fth_val sp_ell_settle(fth_val next, const sp_settings *s)
{
    const double middle = sp_ell_start(s), range = log(SP_ELL_RANGE);
    return fth_min(fth_max(next, fth_const_like(next, middle - range)),
                   fth_const_like(next, middle + range));
}

const sp_prior_ops *sp_prior_of(sp_kind kind)
{
    return families[kind].prior;
}

const sp_prior_ops *sp_prior_for(const sp_settings *s)
{
    return sp_is_hybrid(s) ? &sp_prior_hybrid : sp_prior_of(s->kind);
}

/* Errors of graph construction are reported here, with their line, not when the caller plans. */
fth_status sp_predict(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s, fth_err *err)
{
    const sp_kind kind = net->model->set.kind;
    if (!families[kind].predict)
        return FTH_FAIL(err, FTH_E_USAGE, "no prediction for models of kind %d", (int)kind);
    FTH_TRY(families[kind].predict(net, q, f, s, err));
    return sp_is_hybrid(&net->model->set) ? sp_predict_hybrid(net, q, f, s, err) : FTH_OK;
}

fth_status sp_predict_groups(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err)
{
    const sp_kind kind = net->model->set.kind;
    if (!families[kind].groups)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "as if of one group: asked of a model without groups (kind %d)", (int)kind);
    FTH_TRY(families[kind].groups(net, q, f, err));
    return sp_is_hybrid(&net->model->set) ? sp_hybrid_groups(net, q, f, err) : FTH_OK;
}
