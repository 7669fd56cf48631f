/* options.c - how a pipeline is run, from the keys of a config; see pipeline.h. */
#include "pipeline.h"

#include <string.h>

static fth_status require_gpu(const fth_context *ctx, fth_err *err)
{
    if (strcmp(fth_context_device(ctx), "cpu") != 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_DEVICE, "--require-gpu: no GPU is used: %s",
             fth_context_device_reason(ctx));
    fth_err_hint(err, "'fathom doctor' tells what stands in the way");
    return FTH_E_DEVICE;
}

fth_status fo_pipeline_options(fo_pipeline *p, const fth_config *cfg, fth_err *err)
{
    p->strict = fth_config_bool(cfg, "focus.strict");
    FTH_TRY(fo_workers_read(cfg, &p->workers, err));
    return fth_config_bool(cfg, "focus.require_gpu") ? require_gpu(p->ctx, err) : FTH_OK;
}

fo_scalebar fo_scalebar_of(const fth_config *cfg, double um_per_px)
{
    const bool wanted = fth_config_has(cfg, "focus.scalebar");
    return (fo_scalebar){wanted ? fth_config_real(cfg, "focus.scalebar") : 0, um_per_px};
}
