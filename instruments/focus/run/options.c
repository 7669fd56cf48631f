/* options.c - how a pipeline is run, from the keys of a config; see pipeline.h. */
#include "pipeline.h"

#include <string.h>

static fth_status require_gpu(const fth_context *ctx, fth_err *err)
{
    if (strcmp(fth_context_device(ctx), "cpu") != 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_DEVICE, "--require-gpu: no GPU is used: %s",
             fth_context_device_reason(ctx));
    fth_err_hint(err, "'fathom doctor' shows why");
    return FTH_E_DEVICE;
}

fth_status fo_pipeline_options(fo_pipeline *p, const fth_config *cfg, fth_err *err)
{
    p->strict = fth_config_bool(cfg, "focus.strict");
    FTH_TRY(fo_workers_read(cfg, &p->workers, err));
    return fth_config_bool(cfg, "focus.require_gpu") ? require_gpu(p->ctx, err) : FTH_OK;
}

fth_status fo_pipeline_room(const fo_pipeline *p, fo_room *room,
                            fth_status (*path)(void *user, int64_t stack, fo_port port,
                                               char path[FTH_PATH], fth_err *err),
                            void *user, fth_err *err)
{
    const fo_writer_options *files = &p->writer;
    for (int64_t i = 0; i < p->results->n; i++)
        for (fo_port port = 0; port < FO_OUT_KINDS + files->others; port++) {
            char file[FTH_PATH];
            if (p->results->state[i] != FO_WAITING || (port < FO_OUT_KINDS && !files->wanted[port]))
                continue;
            FTH_TRY(path(user, i, port, file, err));
            FTH_TRY(fo_room_add(room, file, fo_writer_amount(files, port), err));
        }
    return FTH_OK;
}

fo_scalebar fo_scalebar_of(const fth_config *cfg, double um_per_px)
{
    const bool wanted = fth_config_has(cfg, "focus.scalebar");
    return (fo_scalebar){wanted ? fth_config_real(cfg, "focus.scalebar") : 0, um_per_px};
}
