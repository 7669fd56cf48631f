/* settings.h - what the user asked for: keys of a config or flags of `train`, checked.
 *
 * Both ways are one: a flag that was given becomes a value of a config, so it has the type, range
 * and default of its row in keys.def, and all mistakes are found at once.
 */
#ifndef SPLAT_CONFIG_SETTINGS_H
#define SPLAT_CONFIG_SETTINGS_H

#include "../images/target.h"
#include "../model/model.h"
#include "../pose/poses.h"
#include "../scene/scene.h"

#include <fathom/fathom.h>

#define GS_CONFIG_FILE "training_config.json" /* that a training leaves in its folder */

extern const fth_schema gs_schema;
extern const char gs_keys_train[]; /* "seed data_path ...": what a training depends on */

typedef enum gs_strategy { GS_ADC, GS_MCMC, GS_STRATEGIES } gs_strategy; /* choices of the key */

/* Formats that a training writes beside PLY: those of models, and an HTML page. */
enum { GS_EXPORT_PAGE = GS_FORMAT_CHECKPOINT, GS_EXPORTS };
int gs_export_of(const char *word); /* GS_EXPORTS: it is none */

enum { GS_STEPS = 256 }; /* of save_steps and eval_steps, with those of steps_scaler */

/* Every value that a training uses, with the defaults of its strategy. */
typedef struct gs_settings {
    const char *data, *images, *init_ply; /* of the config; NULL: not given */
    bool ignore_distortion, legacy_yturn;
    int64_t resize_factor, max_width;
    gs_resample resample;
    const char *masks; /* folder; NULL: not given */
    gs_alpha alpha;
    double lambda_alpha;
    int64_t seed, test_every;
    bool by_name; /* views in the order of their names */
    gs_profile profile;
    gs_strategy strategy;
    double most_alpha;
    bool antialias, gut;
    bool shuffled;
    int64_t iterations; /* all of them: `base`, and then those that make opacities sparse */
    int64_t base, degree_interval;
    int degree;
    double rate[GS_ATTRIBUTES]; /* of the means: without the scale of the scene */
    double lambda, opacity_reg, scale_reg, ground[3];
    bool modulate, random;
    bool grids; /* each image has a bilateral grid */
    int64_t grid_luma, grid_rows, grid_columns;
    double grid_rate, grid_weight; /* weight: of its variation in the loss */
    int64_t random_points;
    double extent, init_opacity, init_scaling;
    int64_t refine_every, start_refine, stop_refine;
    int64_t most; /* Gaussians; 0: as many as fit */
    double min_opacity;
    bool zero_dead;
    double grad_threshold, prune_opacity, grow_scale, prune_scale;
    int64_t reset_every, pause;
    bool revised_opacity;
    int64_t save[GS_STEPS], saves, evaluate[GS_STEPS], evaluations; /* ascending */
    int64_t checkpoint_every;
    double minutes;
    bool eval, eval_images, eval_depth, legacy_ssim;
    const char *lpips; /* file of its weights; NULL: not given */
    bool over_alpha;   /* that depth is divided by alpha */
    gs_pose_kind poses;
    double pose_rate;
    bool exports[GS_EXPORTS];
    int sog_rounds;          /* of k-means */
    double rho, prune_ratio; /* of ADMM */
} gs_settings;

/* Of a checked config. FTH_E_CONFIG: two keys contradict each other. */
fth_status gs_settings_of(const fth_config *cfg, gs_settings *out, fth_err *err);

/* "FOLDER/splat_<iterations>.ply", the last model of a training. */
fth_status gs_last_model(const fth_config *cfg, const char *folder, char path[FTH_PATH],
                         fth_err *err);

/* "FOLDER/cameras_<iterations>.json": its cameras, where poses are trained. */
fth_status gs_last_cameras(const fth_config *cfg, const char *folder, char path[FTH_PATH],
                           fth_err *err);

typedef fth_flag_value_fn gs_value_fn; /* how a verb looks up its flags */
/* A checked config: the file of --config, then --set, then flags that were given; --seed is the key
 * `seed`. FTH_E_COMMAND lists every mistake. Destroy it with fth_config_destroy(cfg, NULL). */
fth_status gs_settings_read(fth_config **out, fth_mem *mem, fth_flag_value_fn *value, void *user,
                            fth_err *err);
/* A colour, "r,g,b". */
bool gs_colour_parse(const char *text, double colour[3]);
/* Every key that has a value, as an object; the degree is that of the rows, which a checkpoint or a
 * model to start from decides. */
void gs_settings_write(const fth_config *cfg, int degree, fth_json_writer *w, const char *key);
/* The effective value of a key as a text, with the default of the strategy; "" where it has none.
 */
void gs_setting_text(const fth_config *cfg, const char *key, char *text, size_t bytes);

/* A checked config with the defaults of the same strategy and profile; destroy it also on failure.
 */
fth_status gs_settings_standard(const fth_config *cfg, fth_mem *mem, fth_config **out,
                                fth_err *err);
bool gs_setting_is_same(const fth_config *cfg, const fth_config *other, const char *key);

/* Rows of keys.def; the last has no key. */
typedef struct gs_option {
    const char *key, *flag;
    fth_config_type type;
    bool list;
    const char *adc, *mcmc; /* defaults of the strategies; NULL: the schema has it */
} gs_option;
extern const gs_option gs_options[];

#endif
