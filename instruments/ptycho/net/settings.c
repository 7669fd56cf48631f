/* settings.c - keys of a config become the options of a model. */
#include "../settings/settings.h"
#include "model.h"

static fth_status refuse(fth_err *err, const char *what, const char *hint)
{
    FTH_FAIL(err, FTH_E_COMMAND, "%s", what);
    fth_err_hint(err, "%s", hint);
    return FTH_E_COMMAND;
}

fth_status pt_model_settings(const fth_config *cfg, int64_t n, int64_t chan, int64_t modes,
                             pt_model_options *out, fth_err *err)
{
    *out = (pt_model_options){
        .net = {.n = n,
                .chan = chan,
                .filters = fth_config_int(cfg, "n_filters_scale"),
                .flavour = (pt_flavour)fth_config_choice(cfg, "flavour"),
                .amp = (pt_activation)fth_config_choice(cfg, "amp_activation"),
                .probe_big = fth_config_bool(cfg, "probe_big"),
                .pad_object = fth_config_bool(cfg, "pad_object")},
        .real = fth_config_choice(cfg, "precision") == 1 ? FTH_F64 : FTH_F32,
        .wide = fth_config_choice(cfg, "precision") == 1,
        .merge = (pt_merge_kind)fth_config_choice(cfg, "merge"),
        .object_big = fth_config_bool(cfg, "object_big"),
        .modes = modes,
        .neighbours = fth_config_int(cfg, "neighbor_count"),
        .nphotons = fth_config_real(cfg, "nphotons"),
        .probe_scale = fth_config_real(cfg, "probe_scale"),
        .mae_weight = fth_config_real(cfg, "mae_weight"),
        .nll_weight = fth_config_real(cfg, "nll_weight"),
        .realspace_weight = fth_config_real(cfg, "realspace_weight"),
        .tv_weight = fth_config_real(cfg, "tv_weight"),
        .realspace_mae_weight = fth_config_real(cfg, "realspace_mae_weight"),
        .train_scale = fth_config_bool(cfg, "intensity_scale_trainable"),
        .train_probe = fth_config_bool(cfg, "probe_trainable"),
        .probe_mask = fth_config_bool(cfg, "probe_mask"),
        .mask_diameter = pt_real_of(cfg, "probe_mask_diameter", 0),
        .mask_sigma = fth_config_real(cfg, "probe_mask_sigma"),
        .blur = fth_config_real(cfg, "gaussian_smoothing_sigma"),
    };
    if (!pt_net_takes(n)) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "the network takes frames of 64, 128, 256 or 512 pixels, "
                 "not %lld",
                 (long long)n);
        fth_err_hint(err, "crop or pad the frames, or solve the scan without a network");
        return FTH_E_FILE_SHAPE;
    }
    if (out->realspace_mae_weight > 0 && out->realspace_weight <= 0)
        return refuse(err, "realspace_mae_weight is multiplied by realspace_weight, which is 0",
                      "set realspace_weight above 0");
    if (out->mae_weight <= 0 && out->nll_weight <= 0 && out->realspace_mae_weight <= 0)
        return refuse(err, "mae_weight and nll_weight are both 0: there is nothing to train on",
                      "set one of them above 0");
    if (!out->object_big && chan > 1)
        return refuse(err, "object_big false is for gridsize 1: patches of a group are merged",
                      "set object_big true, or gridsize 1");
    return FTH_OK;
}
