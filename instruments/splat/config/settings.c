/* settings.c - values of a checked config; see settings.h. */
#include "settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool gs_colour_parse(const char *text, double colour[3])
{
    const char *at = text;
    for (int c = 0; c < 3; c++) {
        const char *end = NULL;
        colour[c] = fth_strtod(at, &end);
        if (end == at || *end != (c < 2 ? ',' : '\0') || !(colour[c] >= 0 && colour[c] <= 1))
            return false;
        at = end + 1;
    }
    return true;
}

int gs_export_of(const char *word)
{
    int i = 0;
    if (strcmp(word, "html") == 0) return GS_EXPORT_PAGE;
    while (i < GS_EXPORT_PAGE && strcmp(word, gs_format_names[i]) != 0) i++;
    return i < GS_EXPORT_PAGE ? i : GS_EXPORTS;
}

/* ---- defaults of a strategy ---- */

static gs_strategy strategy_of(const fth_config *cfg)
{
    /* default MCMC, as in LichtFeld */
    return fth_config_has(cfg, "strategy") ? (gs_strategy)fth_config_choice(cfg, "strategy")
                                           : GS_MCMC;
}

static const gs_option *option_of(const char *key)
{
    for (const gs_option *o = gs_options; o->key; o++)
        if (strcmp(o->key, key) == 0) return o;
    return NULL;
}

/* NULL: the schema has it. */
static const char *default_of(const fth_config *cfg, const char *key)
{
    const gs_option *o = option_of(key);
    if (!o || fth_config_has(cfg, key)) return NULL;
    if (strcmp(key, "strategy") == 0) return "mcmc";
    if (strcmp(key, "means_lr") == 0 && fth_config_choice(cfg, "profile") == GS_LICHTFELD)
        return "0.000016";
    return strategy_of(cfg) == GS_ADC ? o->adc : o->mcmc;
}

static double real_of(const fth_config *cfg, const char *key)
{
    const char *standard = default_of(cfg, key);
    return standard ? fth_strtod(standard, NULL) : fth_config_real(cfg, key);
}

static int64_t count_of(const fth_config *cfg, const char *key)
{
    const char *standard = default_of(cfg, key);
    return standard ? (int64_t)fth_strtod(standard, NULL) : fth_config_int(cfg, key);
}

static const char *text_of(const fth_config *cfg, const char *key)
{
    return fth_config_has(cfg, key) ? fth_config_text(cfg, key) : NULL;
}

void gs_setting_text(const fth_config *cfg, const char *key, char *text, size_t bytes)
{
    const char *standard = default_of(cfg, key);
    const bool word = standard && option_of(key)->type == FTH_CONFIG_CHOICE;
    if (standard) /* as the same value is written where it is given */
        snprintf(text, bytes, word ? "\"%s\"" : "%s", standard);
    else if (fth_config_has(cfg, key))
        fth_config_value(cfg, key, text, bytes);
    else
        snprintf(text, bytes, "%s", "");
}

/* ---- counts of iterations ---- */

static int by_count(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void add_step(int64_t *list, int64_t *n, int64_t step)
{
    for (int64_t i = 0; i < *n; i++)
        if (list[i] == step) return;
    if (*n < GS_STEPS) list[(*n)++] = step;
}

/* The steps of a key, and with a scaler s every multiple of each up to s. */
static fth_status read_steps(const fth_config *cfg, const char *key, double scaler, int64_t *list,
                             int64_t *n, fth_err *err)
{
    const int64_t given = fth_config_count(cfg, key),
                  times = scaler > 0 ? (int64_t)floor(scaler) : 0;
    if (given * (1 + times) > GS_STEPS)
        return FTH_FAIL(err, FTH_E_CONFIG,
                        "%s: expected at most %d steps with those of steps_scaler, found %lld", key,
                        GS_STEPS, (long long)(given * (1 + times)));
    *n = 0;
    for (int64_t i = 0; i < given; i++) {
        const int64_t step = fth_config_int_at(cfg, key, i);
        add_step(list, n, step);
        for (int64_t k = 1; k <= times; k++) add_step(list, n, step * k);
    }
    qsort(list, (size_t)*n, sizeof *list, by_count);
    return FTH_OK;
}

/* A count times the scaler, truncated. */
static int64_t scaled(int64_t count, double scaler, int64_t least)
{
    const int64_t v = scaler > 0 ? (int64_t)((double)count * scaler) : count;
    return v < least ? least : v;
}

static fth_status read_schedule(const fth_config *cfg, gs_settings *s, fth_err *err)
{
    const double by = fth_config_real(cfg, "steps_scaler");
    s->base = scaled(fth_config_int(cfg, "iterations"), by, 0);
    s->iterations = s->base;
    if (fth_config_bool(cfg, "enable_sparsity"))
        s->iterations += scaled(fth_config_int(cfg, "sparsify_steps"), by, 0);
    s->degree_interval = scaled(fth_config_int(cfg, "sh_degree_interval"), by, 1);
    s->refine_every = scaled(fth_config_int(cfg, "refine_every"), by, 1);
    s->start_refine = scaled(fth_config_int(cfg, "start_refine"), by, 0);
    s->stop_refine = scaled(count_of(cfg, "stop_refine"), by, 0);
    s->reset_every = scaled(fth_config_int(cfg, "reset_every"), by, 1);
    s->pause = fth_config_int(cfg, "pause_refine_after_reset");
    s->checkpoint_every = fth_config_int(cfg, "checkpoint_every");
    s->minutes = fth_config_real(cfg, "max_minutes");
    FTH_TRY(read_steps(cfg, "save_steps", by, s->save, &s->saves, err));
    if (fth_config_bool(cfg, "skip_intermediate")) s->saves = 0;
    return read_steps(cfg, "eval_steps", by, s->evaluate, &s->evaluations, err);
}

/* ---- all values ---- */

fth_status gs_settings_of(const fth_config *cfg, gs_settings *s, fth_err *err)
{
    const double colours = fth_config_real(cfg, "shs_lr");
    *s = (gs_settings){
        .data = text_of(cfg, "data_path"),
        .images = text_of(cfg, "images"),
        .init_ply = text_of(cfg, "init_ply"),
        .ignore_distortion = fth_config_bool(cfg, "ignore_distortion"),
        .legacy_yturn = fth_config_bool(cfg, "legacy_yturn"),
        .resize_factor = fth_config_choice(cfg, "resize_factor")
                             ? (int64_t)1 << (fth_config_choice(cfg, "resize_factor") - 1)
                             : 1,
        .max_width = fth_config_int(cfg, "max_width"),
        .resample = (gs_resample)fth_config_choice(cfg, "resample"),
        .masks = text_of(cfg, "masks"),
        .alpha = (gs_alpha)fth_config_choice(cfg, "alpha"),
        .lambda_alpha = fth_config_real(cfg, "lambda_alpha"),
        .seed = fth_config_int(cfg, "seed"),
        .test_every = fth_config_int(cfg, "test_every"),
        .by_name = fth_config_choice(cfg, "split_by") == 1,
        .profile = (gs_profile)fth_config_choice(cfg, "profile"),
        .strategy = strategy_of(cfg),
        .most_alpha = fth_config_choice(cfg, "raster") ? 0.99 : 0.999,
        .antialias = fth_config_bool(cfg, "antialiasing"),
        .gut = fth_config_bool(cfg, "gut"),
        .shuffled = fth_config_choice(cfg, "view_order") == 0,
        .degree = (int)fth_config_int(cfg, "sh_degree"),
        .rate = {[GS_MEANS] = real_of(cfg, "means_lr"),
                 [GS_SH_0] = colours,
                 [GS_SH_N] = colours / 20,
                 [GS_SCALING] = fth_config_real(cfg, "scaling_lr"),
                 [GS_ROTATION] = fth_config_real(cfg, "rotation_lr"),
                 [GS_OPACITY] = fth_config_real(cfg, "opacity_lr")},
        .lambda = fth_config_real(cfg, "lambda_dssim"),
        .opacity_reg = real_of(cfg, "opacity_reg"),
        .scale_reg = real_of(cfg, "scale_reg"),
        .modulate = fth_config_bool(cfg, "bg_modulation"),
        .random = fth_config_bool(cfg, "random"),
        .grids = fth_config_bool(cfg, "use_bilateral_grid"),
        .grid_luma = fth_config_int(cfg, "bilateral_grid_W"),
        .grid_rows = fth_config_int(cfg, "bilateral_grid_Y"),
        .grid_columns = fth_config_int(cfg, "bilateral_grid_X"),
        .grid_rate = fth_config_real(cfg, "bilateral_grid_lr"),
        .grid_weight = real_of(cfg, "tv_loss_weight"),
        .random_points = fth_config_int(cfg, "init_num_pts"),
        .extent = fth_config_real(cfg, "init_extent"),
        .init_opacity = real_of(cfg, "init_opacity"),
        .init_scaling = real_of(cfg, "init_scaling"),
        .most = 1000000,
        .min_opacity = fth_config_real(cfg, "min_opacity"),
        .zero_dead = fth_config_bool(cfg, "relocate_zero_dead"),
        .grad_threshold = fth_config_real(cfg, "grad_threshold"),
        .prune_opacity = fth_config_real(cfg, "prune_opacity"),
        .grow_scale = fth_config_real(cfg, "grow_scale3d"),
        .prune_scale = fth_config_real(cfg, "prune_scale3d"),
        .revised_opacity = fth_config_bool(cfg, "revised_opacity"),
        .eval = fth_config_bool(cfg, "enable_eval"),
        .eval_images = fth_config_bool(cfg, "enable_save_eval_images"),
        .eval_depth =
            fth_config_bool(cfg, "save_depth") || fth_config_choice(cfg, "render_mode") > 0,
        .over_alpha = strcmp(fth_config_text(cfg, "render_mode"), "RGB_ED") == 0,
        .legacy_ssim = fth_config_bool(cfg, "legacy_ssim"),
        .lpips = text_of(cfg, "lpips_weights"),
        .poses = (gs_pose_kind)fth_config_choice(cfg, "pose_optimization"),
        .pose_rate = fth_config_real(cfg, "pose_lr"),
        .sog_rounds = (int)fth_config_int(cfg, "sog_iterations"),
        .rho = fth_config_real(cfg, "init_rho"),
        .prune_ratio = fth_config_real(cfg, "prune_ratio"),
    };
    const char *most = text_of(cfg, "max_cap");
    if (most && strcmp(most, "auto") == 0)
        s->most = 0;
    else if (most && !fth_int_parse(most, &s->most)) /* the check of the schema saw to it */
        return FTH_FAIL(err, FTH_E_CONFIG, "max_cap: '%s' is no number", most);
    for (int64_t i = 0; i < fth_config_count(cfg, "export"); i++) {
        const int format = gs_export_of(fth_config_text_at(cfg, "export", i));
        if (format < GS_EXPORTS) s->exports[format] = true;
    }
    s->exports[GS_FORMAT_SOG] |= fth_config_bool(cfg, "save_sog");
    if (text_of(cfg, "bg")) (void)gs_colour_parse(text_of(cfg, "bg"), s->ground);
    return read_schedule(cfg, s, err);
}

/* A file of the last iteration. */
static fth_status last_file(const fth_config *cfg, const char *folder, const char *before,
                            const char *after, char path[FTH_PATH], fth_err *err)
{
    char name[64];
    gs_settings set;
    FTH_TRY(gs_settings_of(cfg, &set, err));
    snprintf(name, sizeof name, "%s%" PRId64 "%s", before, set.iterations, after);
    return fth_path_join(path, folder, name, err);
}

fth_status gs_last_model(const fth_config *cfg, const char *folder, char path[FTH_PATH],
                         fth_err *err)
{
    return last_file(cfg, folder, "splat_", ".ply", path, err);
}

fth_status gs_last_cameras(const fth_config *cfg, const char *folder, char path[FTH_PATH],
                           fth_err *err)
{
    return last_file(cfg, folder, "cameras_", ".json", path, err);
}

/* ---- as an object ---- */

static void write_default(const gs_option *o, const char *standard, fth_json_writer *w)
{
    if (o->type == FTH_CONFIG_INT)
        fth_json_int(w, o->key, (int64_t)fth_strtod(standard, NULL));
    else if (o->type == FTH_CONFIG_REAL)
        fth_json_real(w, o->key, fth_strtod(standard, NULL));
    else
        fth_json_text(w, o->key, standard);
}

void gs_settings_write(const fth_config *cfg, int degree, fth_json_writer *w, const char *key)
{
    fth_json_open(w, key, '{');
    fth_json_int(w, "seed", fth_config_int(cfg, "seed"));
    for (const gs_option *o = gs_options; o->key; o++) {
        const char *standard = default_of(cfg, o->key);
        if (strcmp(o->key, "sh_degree") == 0)
            fth_json_int(w, o->key, degree);
        else if (standard)
            write_default(o, standard, w);
        else
            fth_config_put(cfg, o->key, w);
    }
    fth_json_close(w);
}
