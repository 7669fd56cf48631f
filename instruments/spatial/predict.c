/* predict.c - which prior a model has, and which prediction. */
#include "prior.h"

typedef struct family {
    const sp_prior_ops *prior;
    fth_status (*predict)(sp_net *net, const sp_query *q, fth_val *f, fth_val *s, fth_err *err);
    fth_status (*groups)(sp_net *net, const sp_query *q, fth_val *f, fth_err *err);
} family;

static const family families[SP_KIND_COUNT] = {
    [SP_PNMF] = {&sp_prior_pnmf, sp_predict_pnmf, NULL},
    [SP_SVGP] = {&sp_prior_svgp, sp_predict_svgp, NULL},
    [SP_MGGP_SVGP] = {&sp_prior_svgp, sp_predict_svgp, sp_predict_groups_svgp},
    [SP_LCGP] = {&sp_prior_local, sp_predict_local, NULL},
    [SP_MGGP_LCGP] = {&sp_prior_local, sp_predict_local, sp_predict_groups_local},
};

const sp_prior_ops *sp_prior_of(sp_kind kind)
{
    return families[kind].prior;
}

/* A mistake in the graph is found here, with its line, not when the caller plans. */
fth_status sp_predict(sp_net *net, const sp_query *q, fth_val *f, fth_val *s, fth_err *err)
{
    const sp_kind kind = net->model->set.kind;
    if (!families[kind].predict)
        return FTH_FAIL(err, FTH_E_USAGE, "no prediction for models of kind %d", (int)kind);
    return families[kind].predict(net, q, f, s, err);
}

fth_status sp_predict_groups(sp_net *net, const sp_query *q, fth_val *f, fth_err *err)
{
    const sp_kind kind = net->model->set.kind;
    if (!families[kind].groups)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "as if of one group: asked of a model without groups (kind %d)", (int)kind);
    return families[kind].groups(net, q, f, err);
}

static uint64_t up_to_pages(uint64_t bytes)
{
    const uint64_t page = 2u << 20;
    return (bytes + page - 1) / page * page;
}

/* The kernel may back large blocks with pages of 2 MiB: what that adds to those that are held. */
static uint64_t rounding(const fth_mem *mem)
{
    fth_mem_block block[64];
    uint64_t more = 0;
    int64_t n = fth_mem_list(mem, block, 64);
    if (n > 64) n = 64;
    for (int64_t i = 0; i < n; i++)
        if (block[i].got_bytes >= 1u << 20)
            more += up_to_pages(block[i].got_bytes) - block[i].got_bytes;
    return more;
}

uint64_t sp_held_while(fth_mem *mem, const fth_plan *plan, uint64_t *scratch)
{
    fth_plan_info info;
    fth_mem_stats now;
    fth_plan_get_info(plan, &info);
    fth_mem_get_stats(mem, &now);
    if (scratch && info.scratch_bytes > *scratch) *scratch = info.scratch_bytes;
    const uint64_t beside = now.used_bytes + info.allowance_bytes,
                   rounded = up_to_pages(info.peak_bytes) + rounding(mem) + beside;
    return rounded <= now.budget_bytes ? rounded : info.peak_bytes + beside;
}
