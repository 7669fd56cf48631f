/* idle.c - see idle.h. Files that list every key with its default are left alone. */
#include "idle.h"

#include <stdio.h>
#include <string.h>

enum { VALUE = 512, NAME = 64 };

/* A key has an effect where the other has one of these values, or any at all (""). Of several rows
 * of a key one is enough. With `against` it has none there. */
typedef struct need {
    const char *key, *other, *words;
    bool against;
} need;

#define ADC(key)                                                                                   \
    {                                                                                              \
        key, "strategy", "default", false                                                          \
    }
#define MCMC(key)                                                                                  \
    {                                                                                              \
        key, "strategy", "mcmc", false                                                             \
    }
#define SWITCHED(key, by)                                                                          \
    {                                                                                              \
        key, by, "true", false                                                                     \
    }
static const need needs[] = {
    {"lambda_alpha", "alpha", "background", false},
    {"pose_lr", "pose_optimization", "direct mlp", false},
    SWITCHED("bilateral_grid_X", "use_bilateral_grid"),
    SWITCHED("bilateral_grid_Y", "use_bilateral_grid"),
    SWITCHED("bilateral_grid_W", "use_bilateral_grid"),
    SWITCHED("bilateral_grid_lr", "use_bilateral_grid"),
    SWITCHED("tv_loss_weight", "use_bilateral_grid"),
    SWITCHED("sparsify_steps", "enable_sparsity"),
    SWITCHED("init_rho", "enable_sparsity"),
    SWITCHED("prune_ratio", "enable_sparsity"),
    SWITCHED("test_every", "enable_eval"),
    SWITCHED("eval_steps", "enable_eval"),
    SWITCHED("enable_save_eval_images", "enable_eval"),
    SWITCHED("save_depth", "enable_eval"),
    SWITCHED("render_mode", "enable_eval"),
    SWITCHED("legacy_ssim", "enable_eval"),
    SWITCHED("lpips_weights", "enable_eval"),
    SWITCHED("sog_iterations", "save_sog"),
    {"sog_iterations", "export", "sog", false},
    {"timelapse_every", "timelapse_images", "", false},
    {"save_steps", "skip_intermediate", "true", true},
    {"random", "init_ply", "", true},
    {"init_num_pts", "init_ply", "", true},
    SWITCHED("init_num_pts", "random"),
    {"init_extent", "init_ply", "", true},
    SWITCHED("init_extent", "random"),
    {"init_opacity", "init_ply", "", true},
    {"init_scaling", "init_ply", "", true},
    ADC("grad_threshold"),
    ADC("prune_opacity"),
    ADC("grow_scale3d"),
    ADC("prune_scale3d"),
    ADC("reset_every"),
    ADC("pause_refine_after_reset"),
    ADC("revised_opacity"),
    MCMC("min_opacity"),
    MCMC("relocate_zero_dead"),
};

/* Whether a word, in quotes or not, is one of the list. */
static bool is_one_of(const char *word, const char *words)
{
    const size_t quoted = word[0] == '"', n = strlen(word) - 2 * quoted;
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && strncmp(at, word + quoted, n) == 0) return true;
    return false;
}

static const gs_option *option_of(const char *key)
{
    const gs_option *o = gs_options;
    while (o->key && strcmp(o->key, key) != 0) o++;
    return o;
}

static bool holds(const fth_config *cfg, const need *row)
{
    char value[VALUE];
    if (!row->words[0]) return fth_config_count(cfg, row->other) > 0;
    if (!option_of(row->other)->list) {
        gs_setting_text(cfg, row->other, value, sizeof value);
        return is_one_of(value, row->words);
    }
    for (int64_t i = 0; i < fth_config_count(cfg, row->other); i++)
        if (is_one_of(fth_config_text_at(cfg, row->other, i), row->words)) return true;
    return false;
}

static void put_name(const char *key, bool flags, char name[NAME])
{
    snprintf(name, NAME, "%s%s", flags ? "--" : "", flags ? option_of(key)->flag : key);
}

static void put_why(const need *row, bool flags, char *text, size_t bytes)
{
    char key[NAME], other[NAME];
    put_name(row->key, flags, key);
    put_name(row->other, flags, other);
    const bool plain = row->against || !row->words[0] || strcmp(row->words, "true") == 0;
    const int first = (int)strcspn(row->words, " ");
    snprintf(text, bytes, "%s has no effect %s %s%s%.*s%s%s", key,
             row->against ? "with" : "without", other, plain ? "" : " ", plain ? 0 : first,
             row->words, !plain && row->words[first] ? " or " : "",
             !plain && row->words[first] ? row->words + first + 1 : "");
}

/* Whether another row of the key makes it of use. */
static bool helps_elsewhere(const fth_config *cfg, const need *row)
{
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (&needs[i] != row && !needs[i].against && !row->against &&
            strcmp(needs[i].key, row->key) == 0 && holds(cfg, &needs[i]))
            return true;
    return false;
}

fth_status gs_settings_idle(const fth_config *cfg, fth_mem *mem, bool flags, gs_idle_fn *tell,
                            void *user, fth_err *err)
{
    fth_config *standard = NULL;
    const char *told = ""; /* each key once: its rows follow each other */
    fth_status s = gs_settings_standard(cfg, mem, &standard, err);
    for (size_t i = 0; s == FTH_OK && i < sizeof needs / sizeof needs[0]; i++) {
        const need *row = &needs[i];
        char why[VALUE];
        if (holds(cfg, row) != row->against || helps_elsewhere(cfg, row) ||
            strcmp(told, row->key) == 0 || gs_setting_is_same(cfg, standard, row->key))
            continue;
        put_why(row, flags, why, sizeof why);
        tell(user, row->key, why);
        told = row->key;
    }
    (void)fth_config_destroy(standard, NULL);
    return s;
}
