/* stage.c - see stage.h. */
#include "stage.h"

#include "../recon/recon.h"
#include "pictures.h"

const fth_stage_file pt_figures_leaves[] = {{PT_PAGE_PNG, "reconstruction", true}, {0}};

/* The size of the canvas is unknown before the job runs: plan for this much. */
enum { PLANNED_SIDE = 1024 };

fth_status pt_figures_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    char path[FTH_PATH];
    pt_recon r = {0};
    FTH_TRY(fth_path_join(path, call->model_dir, "reconstruction.npz", err));
    uint64_t pixels = (uint64_t)PLANNED_SIDE * PLANNED_SIDE;
    if (fth_path_exists(path)) {
        FTH_TRY(pt_recon_open(&r, fth_context_mem(call->context), path, err));
        pixels = (uint64_t)(r.object.rows * r.object.cols);
    } else {
        out->bound = true;
    }
    const uint64_t bytes = (5u << 20) + pixels * 12;
    (void)fth_stage_plan_hold(call, out, bytes, 1u << FTH_LIB_FATHOM);
    snprintf(out->text, sizeof out->text, "one page");
    if (show) fprintf(show, "%s\n", PT_PAGE_PNG);
    pt_recon_close(&r);
    return FTH_OK;
}

fth_status pt_figures_run(const fth_stage_call *call, fth_err *err)
{
    char path[FTH_PATH];
    pt_recon r;
    fth_mem *mem = fth_context_mem(call->context);
    FTH_TRY(fth_path_join(path, call->model_dir, "reconstruction.npz", err));
    FTH_TRY(pt_recon_open(&r, mem, path, err));
    const pt_pictures p = pt_pictures_of(&r, mem);
    fth_stage_point(call, "before_outputs");
    fth_status s = fth_path_join(path, call->model_dir, PT_PAGE_PNG, err);
    if (s == FTH_OK) s = pt_draw_page(&p, call->model, path, NULL, err);
    pt_recon_close(&r);
    return s;
}
