/* fusion.c - keys of a config become the settings of a fusion. */
#include "settings.h"

#include <string.h>

/* Number of the word that a key has among `names`; `unset` where it was not given. */
static int word_of(const fth_config *cfg, const char *key, const char *const *names, int unset)
{
    if (!fth_config_has(cfg, key)) return unset;
    const char *word = fth_config_text(cfg, key);
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], word) == 0) return i;
    return unset;
}

/* A key whose default depends on the method or compat. */
static int given_of(const fth_config *cfg, const char *key, const char *const *names, int unset)
{
    return fth_config_is_given(cfg, key) ? word_of(cfg, key, names, unset) : unset;
}

/* "stack", "fixed:LO,HI", ... */
static fth_status read_scale(const fth_config *cfg, fo_fusion *out, fth_err *err)
{
    const char *text = fth_config_text(cfg, "focus.scale"), *end;
    if (!fth_config_is_given(cfg, "focus.scale")) return FTH_OK;
    for (int i = 0; fo_scale_names[i]; i++)
        if (strcmp(text, fo_scale_names[i]) == 0 && i != FO_SCALE_FIXED) {
            out->scale = (fo_scale)i;
            return FTH_OK;
        }
    if (strncmp(text, "fixed:", 6) == 0) {
        out->scale = FO_SCALE_FIXED;
        out->scale_lo = fth_strtod(text + 6, &end);
        if (end > text + 6 && *end == ',' && fth_real_parse(end + 1, &out->scale_hi) &&
            out->scale_hi > out->scale_lo)
            return FTH_OK;
    }
    FTH_FAIL(err, FTH_E_COMMAND,
             "--scale: expected stack, experiment, dtype, fixed:LO,HI or none, found '%.100s'",
             text);
    const int near = fth_word_nearest("stack experiment dtype fixed none", text);
    if (near >= 0) fth_err_hint(err, "did you mean '%s'?", fo_scale_names[near]);
    return FTH_E_COMMAND;
}

static fth_status read_filter(const fth_config *cfg, const fo_pixels *pixels, fo_fusion *out,
                              fth_err *err)
{
    const bool keyence =
        fth_config_has(cfg, "input.microscope") && fth_config_choice(cfg, "input.microscope") == 1;
    if (keyence && pixels->um_per_px > 0) { /* 3 um, within the limits of filter sizes */
        out->k = fo_k_of_um(3.0, pixels->um_per_px);
        if (out->k > FO_MAX_K) out->k = FO_MAX_K;
    }
    if (fth_config_has(cfg, "focus.filter_size"))
        out->k = (int)fth_config_int(cfg, "focus.filter_size");
    if (!fth_config_has(cfg, "focus.filter_um")) return FTH_OK;
    if (!(pixels->um_per_px > 0)) {
        FTH_FAIL(err, FTH_E_COMMAND, "--filter-um: the size of a pixel is not known");
        fth_err_hint(err, "give it with --um-per-px, or the size in pixels with --filter-size");
        return FTH_E_COMMAND;
    }
    out->k = fo_k_of_um(fth_config_real(cfg, "focus.filter_um"), pixels->um_per_px);
    return FTH_OK;
}

fth_status fo_fusion_read(const fth_config *cfg, bool plate, const fo_pixels *pixels,
                          fo_fusion *out, fth_err *err)
{
    fo_fusion f = fo_fusion_default();
    f.method = (fo_method)given_of(cfg, "focus.method", fo_method_names, FO_METHOD_UNSET);
    f.measure = (fo_measure)given_of(cfg, "focus.measure", fo_measure_names, FO_MEASURE_UNSET);
    f.border = (fo_border)word_of(cfg, "focus.border", fo_border_names, FO_BORDER_UNSET);
    f.base = (fo_base)word_of(cfg, "focus.base", fo_base_names, FO_BASE_UNSET);
    if (fth_config_is_given(cfg, "focus.sigma")) f.sigma = fth_config_real(cfg, "focus.sigma");
    f.levels = (int)fth_config_int(cfg, "focus.levels");
    f.window = (int)fth_config_int(cfg, "focus.window");
    f.consistency = (int)fth_config_int(cfg, "focus.consistency");
    f.no_reassign = fth_config_choice(cfg, "focus.reassign") == 1;
    f.clamp = fth_config_bool(cfg, "focus.clamp");
    f.interp = (fo_interp)word_of(cfg, "focus.interp", fo_interp_names, FO_INTERP_LINEAR);
    f.halo_guard = fth_config_choice(cfg, "focus.halo") == 1;
    f.prefer = (fo_prefer)word_of(cfg, "focus.prefer", fo_prefer_names, FO_PREFER_NONE);
    f.reject = (fo_reject)word_of(cfg, "focus.reject", fo_reject_names, FO_REJECT_NONE);
    f.alpha = fth_config_real(cfg, "focus.alpha");
    f.corr = fth_config_real(cfg, "focus.corr");
    if (fth_config_is_given(cfg, "focus.low")) f.low = fth_config_real(cfg, "focus.low");
    if (fth_config_is_given(cfg, "focus.high")) f.high = fth_config_real(cfg, "focus.high");
    f.polarity = (fo_polarity)word_of(cfg, "focus.polarity", fo_polarity_names,
                                      plate ? FO_POLARITY_INVERT : FO_POLARITY_KEEP);
    f.significant_bits = pixels->significant_bits;
    f.want_depth = fth_config_bool(cfg, "focus.depth_map");
    f.want_confidence = fth_config_bool(cfg, "focus.confidence");
    if (fth_config_choice(cfg, "focus.compat") == 1)
        f.compat = plate && fth_config_has(cfg, "input.microscope") &&
                           fth_config_choice(cfg, "input.microscope") == 1
                       ? FO_COMPAT_KEYENCE
                       : FO_COMPAT_YX1;
    FTH_TRY(read_scale(cfg, &f, err));
    FTH_TRY(read_filter(cfg, pixels, &f, err));
    FTH_TRY(fo_fusion_settle(&f, err));
    *out = f;
    return FTH_OK;
}
