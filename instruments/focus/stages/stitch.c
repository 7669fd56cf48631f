/* stitch.c - see stitch.h. */
#include "stitch.h"

#include <inttypes.h>

/* Of a plate whose shape alone is known. */
static fth_status plan_toy(const fth_stage_call *call, fth_stage_plan *out, const fo_toy *toy,
                           fth_err *err)
{
    const fo_mosaic_how how = {.y = toy->rows,
                               .x = toy->columns,
                               .most_tiles = 3,
                               .vertical = true,
                               .overlap = fth_config_real(call->config, "focus.overlap"),
                               .blend = FO_BLEND_LINEAR,
                               .format = {"tif32", "tif", FTH_F32, true, 0}};
    uint64_t bytes = 0;
    FTH_TRY(fo_bench_bytes(&how, &bytes, err));
    const uint64_t benches = (uint64_t)fth_context_threads(call->context);
    fth_stage_plan_hold(call, out, benches * bytes + (1 << 20), 1u << FTH_LIB_FATHOM);
    out->bound = true;
    return FTH_OK;
}

fth_status fo_stitch_plan(const fth_stage_call *call, fth_stage_plan *out, fo_work *w,
                          const fo_toy *toy, fth_err *err)
{
    uint64_t bytes = 0;
    out->beside_bytes = 4 << 20; /* tables, names, open files */
    if (toy && toy->keyence) return plan_toy(call, out, toy, err);
    if (!w || toy || fth_config_choice(call->config, "input.microscope") != FO_KEYENCE) {
        fth_stage_plan_hold(call, out, 1 << 16, 1u << FTH_LIB_FATHOM);
        return FTH_OK;
    }
    FTH_TRY(fo_work_open(w, err));
    const fth_status s = fo_mosaics_plan(&w->mosaics, &bytes, err);
    if (s == FTH_OK) {
        snprintf(out->text, sizeof out->text, "mosaic=%" PRId64 " tile<=%d", w->mosaics.n,
                 w->mosaics.how.most_tiles);
        fth_stage_plan_hold(call, out, (uint64_t)w->mosaics.benches * w->mosaics.bench_bytes,
                            1u << FTH_LIB_FATHOM);
    }
    fo_work_close(w);
    return s;
}

static fth_status save(const fth_stage_call *call, const fo_work *w, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer j;
    FTH_TRY(fth_path_join(path, call->model_dir, FO_STITCHED, err));
    fth_json_begin(&j, fth_context_mem(call->context), true);
    fth_json_open(&j, NULL, '{');
    fth_json_int(&j, "mosaics", w ? w->mosaics.n : 0);
    if (w) fth_json_text(&j, "places", w->places);
    fth_json_close(&j);
    return fth_json_save(&j, path, err);
}

/* Images are outputs of the stage: one that is gone or changed is made again. */
static fth_status list_outputs(const fth_stage_call *call, const fo_work *w, fth_err *err)
{
    char path[FTH_PATH];
    for (int64_t i = 0; i < w->mosaics.n; i++) {
        FTH_TRY(fo_job_mosaic_path(&w->e, w->first[i], path, err));
        if (fth_path_exists(path)) FTH_TRY(fth_stage_wrote(call, FTH_FILE_OUTPUT, path, NULL, err));
    }
    return fth_stage_wrote(call, FTH_FILE_OUTPUT, w->places, "places of tiles", err);
}

fth_status fo_stitch_run(const fth_stage_call *call, fo_work *w, fth_err *err)
{
    if (!w || fth_config_choice(call->config, "input.microscope") != FO_KEYENCE)
        return save(call, NULL, err);
    FTH_TRY(fo_work_open(w, err));
    fth_status s = fo_work_stitch(w, err);
    for (int64_t i = 0; i < fth_texts_count(w->mosaics.failures); i++)
        fth_stage_say(call, "failed: %s", fth_texts_get(w->mosaics.failures, i));
    if (s == FTH_OK) s = save(call, w, err);
    if (s == FTH_OK) s = list_outputs(call, w, err);
    fo_work_close(w);
    return s;
}
