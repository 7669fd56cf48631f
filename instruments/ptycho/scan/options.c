/* options.c - keys of a config become the options of a scan. */
#include "../settings/settings.h"
#include "scan.h"

#include <math.h>

pt_scan_options pt_scan_options_default(void)
{
    const double unknown = (double)NAN;
    return (pt_scan_options){.kind = -1,
                             .coord_scale = 1,
                             .energy_eV = unknown,
                             .distance_m = unknown,
                             .detector_pixel_m = unknown,
                             .bin = 1,
                             .centre_x = unknown,
                             .centre_y = unknown,
                             .position_file = "",
                             .probe_resize = "",
                             .data = "",
                             .mask_path = "",
                             .x = "",
                             .y = "",
                             .distance = "",
                             .pixel = "",
                             .energy = "",
                             .probe = "",
                             .want_nphotons = unknown};
}

void pt_scan_options_read(const fth_config *cfg, pt_scan_options *out)
{
    const double unknown = (double)NAN;
    *out = (pt_scan_options){
        .strict = fth_config_bool(cfg, "strict"),
        .kind = fth_config_has(cfg, "data.kind") ? fth_config_choice(cfg, "data.kind") : -1,
        .sign = (int)pt_int_of(cfg, "positions.sign", 0),
        .flip_x = fth_config_bool(cfg, "flip_x"),
        .flip_y = fth_config_bool(cfg, "flip_y"),
        .swap_xy = fth_config_bool(cfg, "swap_xy"),
        .coord_scale = fth_config_real(cfg, "coord_scale"),
        .mask = fth_config_has(cfg, "mask.convention")
                    ? (pt_mask_rule)(1 + fth_config_choice(cfg, "mask.convention"))
                    : PT_MASK_AUTO,
        .guess = (pt_guess)fth_config_choice(cfg, "probe_guess"),
        .subset = (pt_subset)fth_config_choice(cfg, "subset"),
        .electrons = fth_config_choice(cfg, "particle") == 1,
        .energy_eV = pt_real_of(cfg, "energy_eV", unknown),
        .distance_m = pt_real_of(cfg, "distance_m", unknown),
        .detector_pixel_m = pt_real_of(cfg, "detector_pixel_m", unknown),
        .crop = pt_int_of(cfg, "crop", 0),
        .bin = fth_config_int(cfg, "bin"),
        .centre_x = pt_real_of(cfg, "centre_x", unknown),
        .centre_y = pt_real_of(cfg, "centre_y", unknown),
        .position_unit = (pt_units)fth_config_choice(cfg, "positions.unit"),
        .step = pt_real_of(cfg, "positions.step", unknown),
        .position_file = pt_text_of(cfg, "positions.file", ""),
        .probe_resize = pt_text_of(cfg, "probe_resize", ""),
        .data = pt_text_of(cfg, "hdf5.data", ""),
        .mask_path = pt_text_of(cfg, "hdf5.mask", ""),
        .x = pt_text_of(cfg, "hdf5.x", ""),
        .y = pt_text_of(cfg, "hdf5.y", ""),
        .distance = pt_text_of(cfg, "hdf5.distance_m", ""),
        .pixel = pt_text_of(cfg, "hdf5.pixel_m", ""),
        .energy = pt_text_of(cfg, "hdf5.energy_eV", ""),
        .probe = pt_text_of(cfg, "hdf5.probe", ""),
        .want_N = fth_config_is_given(cfg, "N") ? fth_config_int(cfg, "N") : 0,
        .want_gridsize = fth_config_is_given(cfg, "gridsize") ? fth_config_int(cfg, "gridsize") : 0,
        .want_nphotons =
            fth_config_is_given(cfg, "nphotons") ? fth_config_real(cfg, "nphotons") : unknown};
}
