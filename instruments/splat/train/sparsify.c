/* sparsify.c - iterations of ADMM behind all others; see work.h. */
#include "work.h"

#include <inttypes.h>

static const char z_name[] = "sparsity.z", u_name[] = "sparsity.u";

fth_status gs_work_begin_sparsity(gs_work *w, fth_err *err)
{
    const gs_settings *set = &w->set;
    const int64_t next = w->state.iteration + 1;
    if (next <= set->base || next > set->iterations || w->sparsity.z) return FTH_OK;
    gs_step_forget(&w->step); /* its plans have no such term */
    FTH_TRY(gs_sparsity_create(&w->sparsity, w->mem, w->state.rows.n, set->prune_ratio, err));
    const fth_status s = gs_sparsity_begin(&w->sparsity, &w->state.rows, err);
    if (s != FTH_OK) {
        gs_sparsity_free(&w->sparsity);
        return s;
    }
    gs_state_add_part(&w->state, z_name, w->sparsity.z, "g");
    gs_state_add_part(&w->state, u_name, w->sparsity.u, "g");
    gs_rows_end_densify(&w->state.rows);
    return FTH_OK;
}

/* The end: prune the sparse rows. */
static fth_status prune(gs_work *w, fth_err *err)
{
    gs_step_forget(&w->step);
    gs_state_drop_part(&w->state, z_name);
    gs_state_drop_part(&w->state, u_name);
    gs_sparsity_free(&w->sparsity);
    const int64_t before = w->state.rows.n;
    FTH_TRY(gs_sparsity_prune(&w->state.rows, w->set.prune_ratio, err));
    gs_say(w, "pruned %" PRId64 " of %" PRId64 " Gaussians", before - w->state.rows.n, before);
    return FTH_OK;
}

fth_status gs_work_sparsify(gs_work *w, int64_t iteration, fth_err *err)
{
    if (!w->sparsity.z) return FTH_OK;
    if (iteration == w->set.iterations) return prune(w, err);
    if ((iteration - w->set.base) % GS_SPARSITY_EVERY != 0) return FTH_OK;
    return gs_sparsity_update(&w->sparsity, &w->state.rows, err);
}
