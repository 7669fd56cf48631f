/* verb.c - `fathom splat eval MODEL -d DATA -o OUT`, and the stage of the same name. */
#include "../config/trained.h"
#include "../data/data.h"
#include "../file/plural.h"
#include "../scene/cameras.h"
#include "eval.h"

#include <fathom/reader.h>

#include <inttypes.h>
#include <string.h>

typedef enum which { TEST, TRAIN, ALL } which;

/* What is asked for, of a verb or of a job. */
typedef struct order {
    fth_context *ctx;
    char model[FTH_PATH];
    const char *data, *out;
    const char *cameras; /* with the poses of the views; NULL: those of the capture */
    which views;
    int64_t test_every, iteration;
    double ground[3], most_alpha;
    bool antialias, gut, images, legacy_ssim, depth, over_alpha;
    int64_t resize_factor, max_width; /* max_width 0: as they are */
    gs_resample resample;
    gs_alpha alpha;
    const char *masks; /* folder; NULL: the default */
    const char *lpips; /* file of its weights; NULL: none */
    gs_scene_options scene;
    FILE *notes;
} order;

static bool is_wanted(const order *o, int64_t v)
{
    const bool test = v % o->test_every == 0;
    return o->views == ALL || (o->views == TEST) == test;
}

static fth_status evaluate(const order *o, gs_scene *scene, const gs_model *m, int64_t *count,
                           gs_scores *scores, fth_err *err)
{
    fth_mem *mem = fth_context_mem(o->ctx);
    void *block = NULL;
    gs_masks masks;
    FTH_TRY(gs_masks_open(&masks, scene, o->masks, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)scene->views * sizeof(int64_t), "views",
                         &block, err));
    int64_t *view = block;
    *count = 0;
    for (int64_t v = 0; v < scene->views; v++)
        if (is_wanted(o, v)) view[(*count)++] = v;
    const gs_evaluation job = {.ctx = o->ctx,
                               .scene = scene,
                               .view = view,
                               .views = *count,
                               .model = m,
                               .degree = m->degree,
                               .iteration = o->iteration,
                               .folder = o->out,
                               .ground = o->ground,
                               .most_alpha = o->most_alpha,
                               .antialias = o->antialias,
                               .gut = o->gut,
                               .resample = o->resample,
                               .alpha = o->alpha,
                               .masks = &masks,
                               .lpips = o->lpips,
                               .images = o->images,
                               .depth = o->depth,
                               .over_alpha = o->over_alpha,
                               .legacy_ssim = o->legacy_ssim};
    fth_status s = FTH_OK;
    if (*count == 0) {
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: expected a view to evaluate, found none of %" PRId64, o->data,
                     scene->views);
        fth_err_hint(err, "give --views all, or another --test-every");
    }
    if (s == FTH_OK) s = gs_evaluate(&job, scores, err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

static fth_status open_and_evaluate(const order *o, int64_t *count, int64_t *gaussians,
                                    gs_scores *scores, fth_err *err)
{
    fth_mem *mem = fth_context_mem(o->ctx);
    gs_model_info info;
    gs_scene scene;
    gs_model model = {0};
    FTH_TRY(gs_model_look(mem, o->model, &info, err));
    FTH_TRY(gs_scene_open(&scene, mem, o->data, &o->scene, err));
    fth_status s = gs_scene_match(&scene, err);
    if (s == FTH_OK) gs_scene_resize(&scene, o->resize_factor, o->max_width);
    if (s == FTH_OK && o->cameras) s = gs_scene_take_cameras(&scene, o->cameras, err);
    for (int64_t i = 0; s == FTH_OK && o->notes && i < fth_texts_count(scene.notes); i++)
        fprintf(o->notes, "warning: %s\n", fth_texts_get(scene.notes, i));
    if (s == FTH_OK) s = gs_model_load_finite(&model, mem, o->model, info.format, err);
    if (s == FTH_OK) s = fth_folder_make_all(mem, o->out, err);
    if (s == FTH_OK) s = evaluate(o, &scene, &model, count, scores, err);
    *gaussians = model.n;
    gs_model_free(&model);
    gs_scene_close(&scene);
    return s;
}

/* Of its name, or of a checkpoint; others are of 0. */
static int64_t iteration_of(const char *path, const gs_model_info *info)
{
    const int64_t named = gs_model_iteration(path);
    return named >= 0 ? named : info->iteration;
}

/* ---- the verb ---- */

static fth_status parse_word(const char *flag, const char *text, const char *const *words, int n,
                             int *out, fth_err *err)
{
    *out = 0;
    if (!text) return FTH_OK;
    for (int i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return FTH_OK;
        }
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected %s, %s%s%s, found '%s'", flag, words[0],
                    words[1], n > 2 ? " or " : "", n > 2 ? words[2] : "", text);
}

static fth_status read_flags(order *o, gs_value_fn *value, void *user, fth_err *err)
{
    static const char *const views[] = {"test", "train", "all"},
                             *const orders[] = {"index", "name"},
                             *const rasters[] = {"fast", "classic"};
    int word = 0;
    o->data = value(user, "data-path");
    o->out = value(user, "output-path");
    if (!o->data || !o->out) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected -d and -o, found no %s", o->data ? "-o" : "-d");
        fth_err_hint(err, "fathom splat eval MODEL -d DATA -o OUT");
        return FTH_E_COMMAND;
    }
    FTH_TRY(parse_word("views", value(user, "views"), views, 3, &word, err));
    o->views = (which)word;
    FTH_TRY(parse_word("raster", value(user, "raster"), rasters, 2, &word, err));
    o->most_alpha = word ? 0.99 : 0.999;
    o->antialias = value(user, "antialiasing") != NULL;
    o->gut = value(user, "gut") != NULL;
    FTH_TRY(parse_word("alpha", value(user, "alpha"), gs_alpha_names, GS_ALPHAS, &word, err));
    o->alpha = (gs_alpha)word;
    o->masks = value(user, "masks");
    o->lpips = value(user, "lpips-weights");
    if (value(user, "bg") && !gs_colour_parse(value(user, "bg"), o->ground))
        return FTH_FAIL(err, FTH_E_COMMAND, "--bg: expected r,g,b from 0 to 1, found '%s'",
                        value(user, "bg"));
    o->test_every = 8;
    if (value(user, "test-every") &&
        (!fth_int_parse(value(user, "test-every"), &o->test_every) || o->test_every < 2))
        return FTH_FAIL(err, FTH_E_COMMAND, "--test-every: expected 2 or more, found '%s'",
                        value(user, "test-every"));
    const char *factor = value(user, "resize_factor");
    if (factor && strcmp(factor, "auto") != 0 &&
        (!fth_int_parse(factor, &o->resize_factor) || o->resize_factor < 1 ||
         o->resize_factor > 8 || (o->resize_factor & (o->resize_factor - 1)) != 0))
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "--resize_factor: expected auto, 1, 2, 4 or 8, found '%s'", factor);
    o->cameras = value(user, "cameras");
    FTH_TRY(parse_word("split-by", value(user, "split-by"), orders, 2, &word, err));
    o->images = value(user, "no-images") == NULL;
    o->depth = value(user, "save-depth") != NULL;
    o->legacy_ssim = value(user, "legacy-ssim") != NULL;
    o->scene = (gs_scene_options){.images = value(user, "images"),
                                  .ignore_distortion = value(user, "ignore-distortion") != NULL,
                                  .allow_distortion = o->gut,
                                  .legacy_yturn = value(user, "legacy-yturn") != NULL,
                                  .by_name = word == 1,
                                  .no_points = true};
    return FTH_OK;
}

static fth_status answer(order *o, fth_answer *a, fth_err *err)
{
    gs_scores scores;
    gs_model_info info;
    int64_t count = 0, gaussians = 0;
    char path[FTH_PATH];
    const fth_path_use use[2] = {{FTH_FILE_INPUT, "-d", o->data}, {FTH_FILE_OUTPUT, "-o", o->out}};
    FTH_TRY(fth_paths_check(use, 2, fth_context_mem(o->ctx), err));
    FTH_TRY(gs_model_look(fth_context_mem(o->ctx), o->model, &info, err));
    o->iteration = iteration_of(o->model, &info);
    FTH_TRY(fth_path_join(path, o->out, GS_METRICS_FILE, err));
    fth_answer_file(a, FTH_FILE_INPUT, o->model, -1, "model");
    fth_answer_file(a, FTH_FILE_INPUT, o->data, -1, "capture");
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "a row of PSNR and SSIM");
    if (a->plan) {
        fth_answer_memory(a, (uint64_t)info.n * (gs_row_bytes(info.degree) + 200) + (64 << 20),
                          "model, lists of tiles and images");
        return FTH_OK;
    }
    FTH_TRY(open_and_evaluate(o, &count, &gaussians, &scores, err));
    fprintf(a->out, "%" PRId64 " view%s: PSNR %.4f dB, SSIM %.6f", count, gs_s(count), scores.psnr,
            scores.ssim);
    if (o->lpips) fprintf(a->out, ", LPIPS %.6f", scores.lpips);
    fprintf(a->out, "\n");
    if (!a->json) return FTH_OK;
    fth_json_int(fth_answer_facts(a), "views", count);
    fth_json_int(fth_answer_facts(a), "gaussians", gaussians);
    fth_json_real(fth_answer_facts(a), "psnr", scores.psnr);
    fth_json_real(fth_answer_facts(a), "ssim", scores.ssim);
    if (o->lpips) fth_json_real(fth_answer_facts(a), "lpips", scores.lpips);
    return FTH_OK;
}

/* Flags that the folder of a training stands for, where they are not given. */
static const char from_training[] =
    "data-path images test-every split-by resize_factor masks alpha bg raster antialiasing gut "
    "ignore-distortion legacy-yturn legacy-ssim";

/* What has no flag here; poses as they were refined, where there is a file of them. */
static void take_rest(order *o, const gs_trained *t, const char *folder, char cameras[FTH_PATH])
{
    char name[64];
    o->max_width = t->set.max_width;
    o->resample = t->set.resample;
    const int64_t iteration = gs_model_iteration(o->model);
    if (o->cameras || t->set.poses == GS_POSE_NONE || iteration < 0) return;
    snprintf(name, sizeof name, "cameras_%" PRId64 ".json", iteration);
    if (fth_path_join(cameras, folder, name, NULL) != FTH_OK || !fth_path_exists(cameras)) return;
    o->cameras = cameras;
    fprintf(o->notes, "cameras: %s\n", cameras);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg, gs_value_fn *value,
                      void *user, FILE *out, fth_err *err)
{
    fth_answer a;
    if (n_args != 1) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected one model");
        fth_err_hint(err, "fathom splat eval MODEL -d DATA -o OUT");
        return FTH_E_COMMAND;
    }
    order o = {.ctx = ctx, .resize_factor = 1};
    fth_mem *mem = fth_context_mem(ctx);
    gs_trained trained;
    char cameras[FTH_PATH];
    FTH_TRY(gs_model_find(mem, arg[0], o.model, err));
    FTH_TRY(gs_trained_open(&trained, mem, arg[0], from_training, value, user, err));
    FTH_TRY(read_flags(&o, gs_trained_value, &trained, err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    o.notes = a.notes;
    if (strcmp(arg[0], o.model) != 0) fprintf(a.notes, "model: %s\n", o.model);
    gs_trained_tell(&trained, a.notes);
    if (trained.found) take_rest(&o, &trained, arg[0], cameras);
    return fth_answer_end(&a, answer(&o, &a, err), err);
}

static const fth_flag flags[] = {
    {.name = "data-path", .letter = 'd', .value = FTH_FLAG_PATH, .doc = "capture to compare with"},
    {.name = "output-path", .letter = 'o', .value = FTH_FLAG_DIR, .doc = "folder of the results"},
    {.name = "views", .value = FTH_FLAG_WORD, .doc = "test, train or all; default test"},
    {.name = "test-every",
     .value = FTH_FLAG_COUNT,
     .doc = "every n-th view, starting with the first, is a test view; default 8"},
    {.name = "cameras",
     .value = FTH_FLAG_PATH,
     .doc = "cameras_<iteration>.json of a training: poses as it refined them"},
    {.name = "split-by",
     .value = FTH_FLAG_WORD,
     .doc = "index or name: order of the views, that of the capture or of the image names"},
    {.name = "images", .value = FTH_FLAG_WORD, .doc = "folder of the images in a COLMAP capture"},
    {.name = "resize_factor",
     .letter = 'r',
     .value = FTH_FLAG_WORD,
     .doc = "factor by which images are downsampled: auto (1), 1, 2, 4 or 8"},
    {.name = "bg", .value = FTH_FLAG_WORD, .doc = "background colour, r,g,b from 0 to 1"},
    {.name = "raster",
     .value = FTH_FLAG_WORD,
     .doc = "fast or classic: largest alpha 0.999 or 0.99"},
    {.name = "antialiasing",
     .letter = 'a',
     .doc = "scale opacities by the area on the image without the pixel blur"},
    {.name = "gut", .doc = "render distorted cameras along their rays (3DGUT)"},
    {.name = "masks",
     .value = FTH_FLAG_WORD,
     .doc = "folder of masks, beside that of the images or absolute; pixels below half are "
            "excluded; default: masks, if it exists; none: no masks"},
    {.name = "lpips-weights",
     .value = FTH_FLAG_FILE,
     .doc = "also LPIPS, with the weights of this file: the state of lpips.LPIPS(net='vgg') as "
            "safetensors"},
    {.name = "alpha",
     .value = FTH_FLAG_WORD,
     .doc = "alpha of images: ignore (default), mask, or background: blended over it"},
    {.name = "no-images", .doc = "do not write images beside their targets"},
    {.name = "save-depth", .doc = "also write the depth of each view, colour-coded"},
    {.name = "legacy-ssim", .doc = "SSIM with the window of LichtFeld"},
    {.name = "ignore-distortion", .doc = "treat distorted cameras as pinholes"},
    {.name = "legacy-yturn",
     .doc = "rotate the poses of transforms.json about y, as LichtFeld does"},
    {0}};

const fth_verb gs_verb_eval = {
    .name = "eval",
    .args = "MODEL",
    .brief = "PSNR and SSIM of a model on test views of a capture",
    .doc = "Renders the views, clamps the images to 0..1 and compares them with those of the "
           "capture. MODEL is a file of any format, a checkpoint, or the folder of a training, "
           "which stands for its newest model and for the flags of its training that are not given "
           "here; a line lists them. Adds a row to OUT/metrics.csv; metrics_views.csv "
           "has each view, "
           "metrics_report.txt the best and the last, and eval_step_<iteration> the target and "
           "the image of each view side by side.",
    .max_args = 1,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};

/* ---- the stage ---- */

fth_status gs_eval_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const char *const names[] = {GS_METRICS_FILE, GS_VIEWS_FILE, GS_REPORT_FILE};
    char path[FTH_PATH], folder[FTH_PATH];
    FTH_TRY(fth_path_join(folder, call->model_dir, "eval", err));
    for (int i = 0; i < 3; i++) {
        FTH_TRY(fth_path_join(path, folder, names[i], err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, NULL, err));
    }
    return gs_data_inputs(call, list, err);
}

fth_status gs_eval_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                              fth_err *err)
{
    const fth_config *cfg = call->config;
    gs_settings set;
    (void)show;
    FTH_TRY(gs_settings_of(cfg, &set, err));
    /* the model is not there yet: as many Gaussians as it may have at most */
    out->bound = true;
    const uint64_t most = (uint64_t)(set.most > 0 && set.most < 100000 ? set.most : 100000);
    fth_stage_plan_hold(call, out, most * (gs_row_bytes(set.degree) + 200) + (16 << 20), 0);
    return FTH_OK;
}

/* The first views beside their targets, for the report. */
static fth_status show_views(const fth_stage_call *call, const char *folder, int64_t iteration,
                             fth_err *err)
{
    enum { SHOWN = 12, NAME = 2, PSNR = 3 }; /* columns of the table */
    char path[FTH_PATH], name[80], title[200];
    fth_csv t;
    FTH_TRY(fth_path_join(path, folder, GS_VIEWS_FILE, err));
    FTH_TRY(fth_csv_read(&t, fth_context_mem(call->context), path, err));
    fth_status s = FTH_OK;
    for (int64_t i = 1; i < t.rows && i <= SHOWN && s == FTH_OK; i++) {
        snprintf(name, sizeof name, "eval_step_%" PRId64 "/%" PRId64 ".png", iteration, i - 1);
        snprintf(title, sizeof title, "%.100s: target and image, PSNR %.5s dB",
                 fth_csv_get(&t, i, NAME), fth_csv_get(&t, i, PSNR));
        s = fth_path_join(path, folder, name, err);
        if (s == FTH_OK) s = fth_stage_wrote(call, FTH_FILE_FIGURE, path, title, err);
    }
    fth_csv_free(&t);
    return s;
}

fth_status gs_eval_stage_run(const fth_stage_call *call, fth_err *err)
{
    char data[FTH_PATH], cameras[FTH_PATH], folder[FTH_PATH];
    gs_settings set;
    gs_scores scores;
    int64_t count = 0, gaussians = 0;
    FTH_TRY(gs_settings_of(call->config, &set, err));
    FTH_TRY(gs_data_path(call, data, err));
    FTH_TRY(gs_last_cameras(call->config, call->model_dir, cameras, err));
    FTH_TRY(fth_path_join(folder, call->model_dir, "eval", err));
    FTH_TRY(gs_metrics_begin(fth_context_mem(call->context), folder, 0, err));
    order o = {.ctx = call->context,
               .data = data,
               .cameras = set.poses == GS_POSE_NONE ? NULL : cameras,
               .out = folder,
               .views = set.eval ? TEST : ALL,
               .test_every = set.test_every,
               .iteration = set.iterations,
               .most_alpha = set.most_alpha,
               .antialias = set.antialias,
               .gut = set.gut,
               .images = set.eval_images,
               .depth = set.eval_depth,
               .over_alpha = set.over_alpha,
               .resize_factor = set.resize_factor,
               .max_width = set.max_width,
               .resample = set.resample,
               .alpha = set.alpha,
               .masks = set.masks,
               .legacy_ssim = set.legacy_ssim,
               .lpips = set.lpips,
               .scene = {.images = set.images,
                         .ignore_distortion = set.ignore_distortion,
                         .allow_distortion = set.gut,
                         .legacy_yturn = set.legacy_yturn,
                         .by_name = set.by_name,
                         .no_points = true}};
    FTH_TRY(gs_last_model(call->config, call->model_dir, o.model, err));
    memcpy(o.ground, set.ground, sizeof o.ground);
    FTH_TRY(open_and_evaluate(&o, &count, &gaussians, &scores, err));
    fth_stage_say(call, "%lld view%s: PSNR %.2f dB, SSIM %.4f", (long long)count, gs_s(count),
                  scores.psnr, scores.ssim);
    return o.images ? show_views(call, folder, o.iteration, err) : FTH_OK;
}
