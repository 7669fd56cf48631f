/* options.c - keys of a config as options of a solver. */
#include "../settings/settings.h"
#include "job.h"

#include <math.h>
#include <string.h>

/* "none", "auto" or a number. */
static fth_status read_bound(const fth_config *cfg, double *out, fth_err *err)
{
    const char *text = fth_config_text(cfg, "power_bound");
    *out = -1;
    if (strcmp(text, "none") == 0) return FTH_OK;
    *out = (double)NAN;
    if (strcmp(text, "auto") == 0) return FTH_OK;
    if (fth_real_parse(text, out) && *out >= 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND,
                    "power_bound: expected a number from 0 on, 'auto' or 'none', found '%s'", text);
}

/* Default steps of object and probe. Behind a mask nothing bounds the update where the illumination
 * is dim: with 0.05 rpie diverges there. */
static const double *steps_of(pt_algorithm algorithm, bool masked)
{
    static const double steps[PT_SOLVERS][2] = {
        [PT_SOLVE_RPIE] = {0.05, 0.5}, [PT_SOLVE_PIE] = {0.05, 1}, [PT_SOLVE_MPIE] = {0.5, 1}};
    static const double careful[2] = {0.2, 0.5}, whole[2] = {1, 1};
    if (masked && algorithm == PT_SOLVE_RPIE) return careful;
    return steps[algorithm][0] > 0 ? steps[algorithm] : whole;
}

fth_status pt_solve_options_read(const fth_config *cfg, const pt_solve_data *data,
                                 pt_solve_options *out, fth_err *err)
{
    const pt_algorithm algorithm = (pt_algorithm)fth_config_choice(cfg, "algorithm");
    const bool lsqml = algorithm == PT_SOLVE_LSQML,
               rpie = algorithm == PT_SOLVE_RPIE || algorithm == PT_SOLVE_MPIE,
               waves = algorithm == PT_SOLVE_DM || algorithm == PT_SOLVE_RAAR;
    const double none = (double)NAN;
    const double *step = steps_of(algorithm, data->mask || data->masks.n_axes);
    *out = (pt_solve_options){.algorithm = algorithm,
                              .iterations = fth_config_int(cfg, "iterations"),
                              .batch = pt_int_of(cfg, "batch", lsqml ? 32 : 1),
                              .modes = pt_int_of(cfg, "modes", data->modes),
                              .object_alpha = pt_real_of(cfg, "object_alpha", step[0]),
                              .probe_alpha = pt_real_of(cfg, "probe_alpha", step[1]),
                              .raar_beta = fth_config_real(cfg, "raar_beta"),
                              .dm_alpha = fth_config_real(cfg, "dm_alpha"),
                              .poisson = fth_config_choice(cfg, "noise_model") == 1,
                              .ptypy = fth_config_choice(cfg, "variant") == 1,
                              .wide = fth_config_choice(cfg, "precision") == 1,
                              .compat_rng = fth_config_choice(cfg, "rng") == 1,
                              .subpixel = fth_config_choice(cfg, "subpixel") == 0,
                              .probe_start = pt_int_of(cfg, "probe_start", waves ? 2 : 0),
                              .position_start = pt_int_of(cfg, "position_start", -1),
                              .position_step = fth_config_real(cfg, "position_step"),
                              .position_limit = fth_config_real(cfg, "position_limit"),
                              .rescale_probe = fth_config_bool(cfg, "rescale_probe"),
                              .orthogonalise = fth_config_bool(cfg, "orthogonalise"),
                              .probe_power_file = fth_config_choice(cfg, "probe_power") == 1,
                              .scale_every = fth_config_int(cfg, "scale_every"),
                              .object_inertia = fth_config_real(cfg, "object_inertia"),
                              .probe_inertia = fth_config_real(cfg, "probe_inertia"),
                              .overlap_iterations = fth_config_int(cfg, "overlap_iterations"),
                              .batching = (pt_batching)fth_config_choice(cfg, "batching"),
                              .object_init = (pt_object_init)fth_config_choice(cfg, "object_init"),
                              .clip_low = pt_real_of(cfg, "object_min", none),
                              .clip_high = pt_real_of(cfg, "object_max", none),
                              .clip_phase = fth_config_has(cfg, "phase_min") ||
                                            fth_config_has(cfg, "phase_max"),
                              .phase_low = pt_real_of(cfg, "phase_min", -HUGE_VAL),
                              .phase_high = pt_real_of(cfg, "phase_max", HUGE_VAL),
                              .smooth = fth_config_real(cfg, "object_smooth"),
                              .tv = fth_config_real(cfg, "object_tv"),
                              .probe_mask = fth_config_bool(cfg, "probe_mask"),
                              .mask_diameter = pt_real_of(cfg, "probe_mask_diameter", 0),
                              .mask_sigma = fth_config_real(cfg, "probe_mask_sigma"),
                              .probe_threshold = fth_config_real(cfg, "probe_threshold"),
                              .probe_aperture = pt_real_of(cfg, "probe_aperture", 0),
                              .keep_mean_position = fth_config_bool(cfg, "keep_mean_position"),
                              .probe_power = pt_real_of(cfg, "fix_probe_power", none),
                              .centre_probe = fth_config_bool(cfg, "centre_probe"),
                              .momentum = fth_config_real(cfg, "momentum"),
                              .momentum_every = fth_config_int(cfg, "momentum_every"),
                              .object_momentum = fth_config_real(cfg, "object_momentum"),
                              .probe_momentum = fth_config_real(cfg, "probe_momentum"),
                              .opr = fth_config_int(cfg, "opr"),
                              .seed = (uint64_t)fth_config_int(cfg, "seed")};
    for (int64_t i = 0, n = fth_config_count(cfg, "raster_period"); i < 2 && n > 0; i++)
        out->raster[i] = fth_config_real_at(cfg, "raster_period", i < n ? i : 0);
    if (fth_config_has(cfg, "start_from")) {
        if (fth_config_is_given(cfg, "object_init"))
            return FTH_FAIL(err, FTH_E_COMMAND,
                            "start_from sets the initial object: leave object_init out");
        out->object_init = PT_OBJECT_FILE;
        if (!fth_config_is_given(cfg, "probe_power")) out->probe_power_file = true;
    }
    if (waves && out->position_start >= 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "position_start: %s does not correct positions",
                 pt_algorithm_names[algorithm]);
        fth_err_hint(err, "correct positions with lsqml or one of the pie algorithms");
        return FTH_E_COMMAND;
    }
    if (out->opr > 0 && !lsqml) {
        FTH_FAIL(err, FTH_E_COMMAND, "opr: %s has no eigenprobes", pt_algorithm_names[algorithm]);
        fth_err_hint(err, "use algorithm lsqml");
        return FTH_E_COMMAND;
    }
    if (rpie && (out->object_alpha > 1 || out->probe_alpha > 1))
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "object_alpha and probe_alpha of %s are at most 1, found %g and %g",
                        pt_algorithm_names[algorithm], out->object_alpha, out->probe_alpha);
    return read_bound(cfg, &out->power_bound, err);
}
