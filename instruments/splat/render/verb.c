/* verb.c - `fathom splat render MODEL (-d DATA | --cameras FILE.json) -o OUT`. */
#include "../config/trained.h"
#include "../file/plural.h"
#include "../images/masks.h"
#include "../images/target.h"
#include "../video/avi.h"
#include "../video/orbit.h"
#include "render.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef enum which { ALL, TEST, TRAIN } which;
typedef struct order {
    fth_context *ctx;
    fth_mem *mem;
    fth_answer *a;
    char model[FTH_PATH];
    const char *data, *cameras, *out, *format, *video;
    double ground[3], most_alpha;
    which views;
    int64_t test_every;
    int64_t orbit, per_second; /* orbit 0: the views of the scene */
    bool antialias, gut, image, alpha, gradients, depth;
    bool expected; /* depth is divided by alpha */
    const char *mask_folder;
    gs_masks masks; /* of the targets, and what their alpha means */
    gs_alpha cover;
    double lambda_alpha;
    gs_scene_options scene;
} order;

typedef const char *getter(void *user, const char *flag);

/* ---- flags ---- */

/* The number of one of the words; the first where the flag was not given. */
static fth_status parse_word(const char *flag, const char *text, const char *const *words, int n,
                             int *out, fth_err *err)
{
    *out = 0;
    for (int i = 0; i < n && text; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return FTH_OK;
        }
    if (!text) return FTH_OK;
    char list[80] = "";
    for (int i = 0; i < n; i++) {
        if (i > 0) strcat(list, i + 1 < n ? ", " : " or ");
        strcat(list, words[i]);
    }
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected %s, found '%s'", flag, list, text);
}

static fth_status parse_count(const char *flag, const char *text, int64_t least, int64_t otherwise,
                              int64_t *out, fth_err *err)
{
    *out = otherwise;
    if (!text || (fth_int_parse(text, out) && *out >= least && *out <= 1000000)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected a number from %" PRId64 " on, found '%s'",
                    flag, least, text);
}

static fth_status check_video(const order *o, fth_err *err)
{
    const size_t n = strlen(o->video);
    if (n < 5 || strcasecmp(o->video + n - 4, ".avi") != 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "--video: expected a name with the extension .avi, found '%s'",
                 o->video);
        fth_err_hint(err,
                     "it is Motion-JPEG in an AVI; 'ffmpeg -i x.avi x.mp4' makes others of it");
        return FTH_E_COMMAND;
    }
    if (o->image) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND,
             "--video needs images, which --render-mode D and ED do not render");
    fth_err_hint(err, "give --render-mode RGB_D or RGB_ED");
    return FTH_E_COMMAND;
}

/* What is known about pixels of the targets, as training has it. */
static fth_status read_target_flags(order *o, getter *value, void *user, fth_err *err)
{
    static const char *const flags[] = {"masks", "image-alpha", "lambda-alpha"};
    int word = 0;
    for (int i = 0; i < 3; i++)
        if (value(user, flags[i]) && !o->gradients)
            return FTH_FAIL(err, FTH_E_COMMAND,
                            "--%s applies to targets, which only --gradients has", flags[i]);
    FTH_TRY(parse_word("image-alpha", value(user, "image-alpha"), gs_alpha_names, GS_ALPHAS, &word,
                       err));
    o->cover = (gs_alpha)word;
    o->mask_folder = value(user, "masks");
    o->lambda_alpha = 0.1;
    const char *share = value(user, "lambda-alpha");
    if (!share || (fth_real_parse(share, &o->lambda_alpha) && o->lambda_alpha >= 0)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--lambda-alpha: expected a number from 0 on, found '%s'",
                    share);
}

static fth_status read_flags(order *o, getter *value, void *user, fth_err *err)
{
    static const char *const views[] = {"all", "test", "train"},
                             *const orders[] = {"index", "name"},
                             *const rasters[] = {"fast", "classic"},
                             *const formats[] = {"npy", "png", "jpg"},
                             *const modes[] = {"RGB", "D", "ED", "RGB_D", "RGB_ED"};
    int word = 0;
    o->data = value(user, "data-path");
    o->cameras = value(user, "cameras");
    o->out = value(user, "output-path");
    o->video = value(user, "video");
    if ((!o->out && !o->video) || !o->data == !o->cameras) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected -o or --video, and either -d or --cameras");
        fth_err_hint(err, "fathom splat render MODEL -d DATA -o OUT");
        return FTH_E_COMMAND;
    }
    FTH_TRY(parse_word("views", value(user, "views"), views, 3, &word, err));
    o->views = (which)word;
    FTH_TRY(parse_word("format", value(user, "format"), formats, 3, &word, err));
    o->format = formats[word];
    FTH_TRY(parse_word("raster", value(user, "raster"), rasters, 2, &word, err));
    o->most_alpha = word ? 0.99 : 0.999;
    o->antialias = value(user, "antialiasing") != NULL;
    o->gut = value(user, "gut") != NULL;
    if (value(user, "bg") && !gs_colour_parse(value(user, "bg"), o->ground))
        return FTH_FAIL(err, FTH_E_COMMAND, "--bg: expected r,g,b from 0 to 1, found '%s'",
                        value(user, "bg"));
    FTH_TRY(parse_count("test-every", value(user, "test-every"), 2, 8, &o->test_every, err));
    FTH_TRY(parse_count("orbit", value(user, "orbit"), 1, 0, &o->orbit, err));
    FTH_TRY(parse_count("fps", value(user, "fps"), 1, 30, &o->per_second, err));
    FTH_TRY(parse_word("render-mode", value(user, "render-mode"), modes, 5, &word, err));
    o->image = word == 0 || word > 2;
    o->depth = word > 0 || value(user, "depth") != NULL;
    o->expected = word == 2 || word == 4;
    o->alpha = value(user, "alpha") != NULL;
    o->gradients = value(user, "gradients") != NULL;
    if (o->video) FTH_TRY(check_video(o, err));
    FTH_TRY(parse_word("split-by", value(user, "split-by"), orders, 2, &word, err));
    if (o->gradients && (!o->data || !o->out || o->orbit))
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "--gradients needs the images of -d, a folder -o, and no --orbit");
    FTH_TRY(read_target_flags(o, value, user, err));
    o->scene = (gs_scene_options){.images = value(user, "images"),
                                  .ignore_distortion = value(user, "ignore-distortion") != NULL,
                                  .allow_distortion = o->gut,
                                  .legacy_yturn = value(user, "legacy-yturn") != NULL,
                                  .by_name = word == 1,
                                  .no_points = true};
    return FTH_OK;
}

/* ---- files ---- */

/* "OUT/<name of the image without its ending><more>" */
static fth_status path_of(const order *o, const gs_scene *s, int64_t v, const char *more,
                          char path[FTH_PATH], fth_err *err)
{
    char name[FTH_PATH];
    const char *given = fth_texts_get(s->name, v);
    while (*given == '/') given++; /* always below OUT */
    const int n = (int)gs_stem(given);
    if (strstr(given, "..") || n + (int)strlen(more) >= FTH_PATH)
        return FTH_FAIL(err, FTH_E_FILE_WRITE,
                        "%s: expected the name of an image below its folder, found '%.200s'",
                        s->images, given);
    snprintf(name, sizeof name, "%.*s%s", n, given, more);
    return fth_path_join(path, o->out, name, err);
}

static fth_status make_parent(const order *o, const char *path, fth_err *err)
{
    char folder[FTH_PATH];
    FTH_TRY(fth_path_parent(folder, path, err));
    return fth_folder_make_all(o->mem, folder, err);
}

static fth_status save_depth(const order *o, const gs_scene *s, int64_t v, const gs_frame *f,
                             fth_err *err)
{
    char path[FTH_PATH];
    const int64_t size[2] = {f->how.height, f->how.width}, n = size[0] * size[1];
    const float *sum = fth_tensor_view(f->depth), *alpha = fth_tensor_view(f->alpha);
    void *block = NULL;
    FTH_TRY(path_of(o, s, v, "_depth.npy", path, err));
    FTH_TRY(fth_mem_take(o->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(float), "depth", &block, err));
    float *depth = block;
    for (int64_t i = 0; i < n; i++)
        depth[i] = o->expected ? sum[3 * i] / fmaxf(alpha[i], 1e-10f) : sum[3 * i];
    const fth_status st = fth_npy_save(o->mem, path, FTH_F32, 2, size, depth, err);
    (void)fth_mem_release(o->mem, block, NULL);
    return st;
}

static fth_status save_image(const order *o, const gs_scene *s, int64_t v, const gs_frame *f,
                             fth_err *err)
{
    char path[FTH_PATH], ending[8];
    const int64_t size[3] = {f->how.height, f->how.width, 3};
    const float *image = fth_tensor_view(f->image);
    snprintf(ending, sizeof ending, ".%s", o->format);
    FTH_TRY(path_of(o, s, v, ending, path, err));
    FTH_TRY(make_parent(o, path, err));
    if (o->image && strcmp(o->format, "npy") == 0)
        FTH_TRY(fth_npy_save(o->mem, path, FTH_F32, 3, size, image, err));
    else if (o->image)
        FTH_TRY(gs_image_save(o->mem, path, image, size[1], size[0],
                              strcmp(o->format, "jpg") == 0 ? "jpg:95" : "png", err));
    if (o->depth) FTH_TRY(save_depth(o, s, v, f, err));
    if (!o->alpha) return FTH_OK;
    FTH_TRY(path_of(o, s, v, "_alpha.npy", path, err));
    return fth_npy_save(o->mem, path, FTH_F32, 2, size, fth_tensor_view(f->alpha), err);
}

/* What densification adds up: whether a Gaussian was seen, and the length of its gradient on the
 * image in units of half the image. */
static void fill_places(const gs_frame *f, float *mean2d, float *densify)
{
    const float *bar = fth_tensor_view(f->place), *splats = fth_tensor_view(f->splats);
    const int64_t n = f->model->n, step = gs_splat_numbers(&f->rule);
    for (int64_t g = 0; g < n; g++) {
        const float u = bar[g * step + GS_U], v = bar[g * step + GS_V];
        mean2d[2 * g] = u;
        mean2d[2 * g + 1] = v;
        const bool seen = splats[g * step + GS_TILES] > 0;
        densify[g] = seen ? 1 : 0;
        densify[n + g] =
            seen ? hypotf(u * (float)f->how.width / 2, v * (float)f->how.height / 2) : 0;
    }
}

static fth_status put(fth_safetensors_writer *w, const char *name, const void *data, fth_err *err)
{
    fth_sink sink;
    FTH_TRY(fth_safetensors_sink(w, name, &sink, err));
    return fth_sink_put(&sink, data, err);
}

static fth_status write_gradients(const gs_frame *f, const char *path, float *mean2d,
                                  float *densify, fth_err *err)
{
    const int64_t n = f->model->n, k = gs_coefficients(f->model->degree);
    const fth_file_item items[GS_ATTRIBUTES + 3] = {
        {"means", FTH_F32, 2, {n, 3}, "g xyz"},     {"sh0", FTH_F32, 3, {n, 1, 3}, "g k0 c"},
        {"shN", FTH_F32, 3, {n, k, 3}, "g k c"},    {"scaling", FTH_F32, 2, {n, 3}, "g xyz"},
        {"rotation", FTH_F32, 2, {n, 4}, "g wxyz"}, {"opacity", FTH_F32, 1, {n}, "g"},
        {"mean2d", FTH_F32, 2, {n, 2}, "g xy"},     {"densify", FTH_F32, 2, {2, n}, "sum g"},
        {"loss", FTH_F64, 1, {3}, "part"}};
    fth_safetensors_writer *w = NULL;
    FTH_TRY(fth_safetensors_create(&w, fth_context_mem(f->ctx), path, items, GS_ATTRIBUTES + 3,
                                   NULL, err));
    fth_status s = FTH_OK;
    for (int a = 0; s == FTH_OK && a < GS_ATTRIBUTES; a++)
        s = put(w, items[a].name, fth_tensor_view(f->gradient[a]), err);
    if (s == FTH_OK) s = put(w, "mean2d", mean2d, err);
    if (s == FTH_OK) s = put(w, "densify", densify, err);
    if (s == FTH_OK) s = put(w, "loss", f->loss, err);
    if (s == FTH_OK) return fth_safetensors_commit(w, err);
    fth_safetensors_abandon(w);
    return s;
}

static fth_status save_gradients(const order *o, const gs_scene *s, int64_t v, const gs_frame *f,
                                 fth_err *err)
{
    char path[FTH_PATH];
    void *block = NULL;
    if (!isfinite(f->loss[0]))
        return FTH_FAIL(err, FTH_E_NUMERIC, "%s: the loss of view '%s' is not finite", o->model,
                        fth_texts_get(s->name, v));
    FTH_TRY(path_of(o, s, v, "_gradients.safetensors", path, err));
    FTH_TRY(fth_mem_take(o->mem, FTH_MEM_ANY, (uint64_t)f->model->n * 4 * sizeof(float),
                         "gradients on the image", &block, err));
    float *mean2d = block, *densify = mean2d + 2 * f->model->n;
    fill_places(f, mean2d, densify);
    const fth_status st = write_gradients(f, path, mean2d, densify, err);
    (void)fth_mem_release(o->mem, block, NULL);
    return st;
}

/* ---- views ---- */

static bool is_wanted(const order *o, int64_t v);

/* Each view has files of its own, and none is an image of the capture. */
static fth_status check_files(const order *o, const gs_scene *s, fth_err *err)
{
    char ending[8], from[FTH_PATH], to[FTH_PATH];
    if (!o->out) return FTH_OK;
    if (!o->orbit) FTH_TRY(gs_scene_check_names(s, true, err));
    snprintf(ending, sizeof ending, ".%s", o->format);
    for (int64_t v = 0; o->data && !o->orbit && v < s->views; v++) {
        if (!is_wanted(o, v)) continue;
        FTH_TRY(gs_scene_image(s, v, from, err));
        FTH_TRY(path_of(o, s, v, ending, to, err));
        const fth_path_use use[2] = {{FTH_FILE_INPUT, "image", from}, {FTH_FILE_OUTPUT, "-o", to}};
        FTH_TRY(fth_paths_check(use, 2, o->mem, err));
    }
    return FTH_OK;
}

static bool is_wanted(const order *o, int64_t v)
{
    const bool test = v % o->test_every == 0;
    return o->orbit || o->views == ALL || (o->views == TEST) == test;
}

/* The frame for views of another size. */
static fth_status fit_frame(const order *o, const gs_model *m, const gs_view *view, gs_frame *f,
                            fth_err *err)
{
    if (f->ctx && f->how.width == view->width && f->how.height == view->height) return FTH_OK;
    gs_frame_free(f);
    return gs_frame_create(
        f, o->ctx, m,
        &(gs_frame_options){.width = view->width,
                            .height = view->height,
                            .gradients = o->gradients,
                            .depth = o->depth,
                            .most_alpha = o->most_alpha,
                            .antialias = o->antialias,
                            .gut = o->gut,
                            .masked = o->masks.views > 0 || o->cover == GS_ALPHA_MASK,
                            .cover = o->cover == GS_ALPHA_BACKGROUND,
                            .lambda = 0.2,
                            .lambda_alpha = o->lambda_alpha},
        err);
}

/* The next picture of the video, which the first one makes. */
static fth_status add_frame(const order *o, const gs_frame *f, gs_avi **video, fth_err *err)
{
    if (!*video) {
        FTH_TRY(make_parent(o, o->video, err));
        FTH_TRY(gs_avi_create(video, o->mem, o->video, f->how.width, f->how.height, o->per_second,
                              err));
    }
    return gs_avi_add(*video, fth_tensor_view(f->image), err);
}

/* Frames of a video have one size. */
static fth_status check_sizes(const order *o, const gs_scene *s, fth_err *err)
{
    const gs_view *first = NULL;
    for (int64_t v = 0; o->video && v < s->views; v++) {
        const gs_view *view = &s->view[v];
        if (!is_wanted(o, v)) continue;
        if (!first) first = view;
        if (view->width == first->width && view->height == first->height) continue;
        FTH_FAIL(err, FTH_E_COMMAND,
                 "--video: expected views of one size, found %" PRId64 " x %" PRId64 " and %" PRId64
                 " x %" PRId64,
                 first->width, first->height, view->width, view->height);
        fth_err_hint(err, "render an --orbit, or the views of one camera");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

static fth_status read_target(const order *o, const gs_scene *s, int64_t v, const gs_frame *f,
                              fth_err *err)
{
    char path[FTH_PATH], mask[FTH_PATH];
    const gs_target_options how = {.width = f->how.width,
                                   .height = f->how.height,
                                   .alpha = o->cover,
                                   .mask = gs_masks_find(&o->masks, s, v, mask) ? mask : NULL};
    FTH_TRY(gs_scene_image(s, v, path, err));
    return gs_target_read(o->mem, path, &how, fth_tensor_data(f->target),
                          f->mask ? fth_tensor_data(f->mask) : NULL,
                          f->cover ? fth_tensor_data(f->cover) : NULL, err);
}

static fth_status render_view(const order *o, const gs_scene *s, const gs_model *m, int64_t v,
                              gs_frame *f, gs_avi **video, fth_err *err)
{
    const gs_view *view = &s->view[v];
    FTH_TRY(fit_frame(o, m, view, f, err));
    if (o->gradients) FTH_TRY(read_target(o, s, v, f, err));
    FTH_TRY(gs_frame_run(f, view, o->ground, m->degree, err));
    if (o->out) FTH_TRY(save_image(o, s, v, f, err));
    if (o->video) FTH_TRY(add_frame(o, f, video, err));
    if (!o->gradients) return FTH_OK;
    FTH_TRY(save_gradients(o, s, v, f, err));
    fprintf(o->a->out, "%s: loss %.6g, l1 %.6g, ssim %.6g\n", fth_texts_get(s->name, v), f->loss[0],
            f->loss[1], f->loss[2]);
    return FTH_OK;
}

static fth_status render_all(const order *o, const gs_scene *s, const gs_model *m, fth_err *err)
{
    gs_frame f = {0};
    gs_avi *video = NULL;
    int64_t done = 0;
    fth_status st = check_sizes(o, s, err);
    if (st == FTH_OK) st = check_files(o, s, err);
    if (st != FTH_OK) return st;
    if (o->a->plan) { /* for the first view */
        st = fit_frame(o, m, &s->view[0], &f, err);
        if (st == FTH_OK) st = gs_frame_plan(&f, err);
        if (st == FTH_OK) st = fth_answer_plan(o->a, "view", f.plan, err);
        gs_frame_free(&f);
        return st;
    }
    for (int64_t v = 0; st == FTH_OK && v < s->views; v++) {
        if (!is_wanted(o, v)) continue;
        st = render_view(o, s, m, v, &f, &video, err);
        done++;
    }
    gs_frame_free(&f);
    if (st == FTH_OK && video)
        st = gs_avi_commit(video, err);
    else
        gs_avi_abandon(video);
    if (st != FTH_OK) return st;
    fprintf(o->a->notes, "%s: %" PRId64 " view%s\n", o->out ? o->out : o->video, done, gs_s(done));
    if (o->a->json) fth_json_int(fth_answer_facts(o->a), "views", done);
    return FTH_OK;
}

static fth_status render(order *o, fth_err *err)
{
    gs_model_info info;
    gs_scene scene = {0};
    gs_model model = {0};
    FTH_TRY(gs_model_look(o->mem, o->model, &info, err));
    fth_answer_file(o->a, FTH_FILE_INPUT, o->model, -1, "%s, %" PRId64 " Gaussians of degree %d",
                    gs_format_names[info.format], info.n, info.degree);
    FTH_TRY(gs_scene_open(&scene, o->mem, o->data ? o->data : o->cameras, &o->scene, err));
    fth_status s = o->data && !o->orbit ? gs_scene_match(&scene, err) : FTH_OK;
    if (s == FTH_OK && o->orbit) s = gs_scene_orbit(&scene, o->orbit, err);
    if (s == FTH_OK && o->gradients) s = gs_masks_open(&o->masks, &scene, o->mask_folder, err);
    fth_answer_file(o->a, FTH_FILE_INPUT, o->data ? o->data : o->cameras, -1, "%s", scene.format);
    for (int64_t i = 0; s == FTH_OK && o->data && i < fth_texts_count(scene.notes); i++)
        fprintf(o->a->notes, "warning: %s\n", fth_texts_get(scene.notes, i));
    if (s == FTH_OK) s = gs_model_load_finite(&model, o->mem, o->model, info.format, err);
    if (s == FTH_OK) s = render_all(o, &scene, &model, err);
    gs_model_free(&model);
    gs_scene_close(&scene);
    return s;
}

/* Flags that were given and change nothing. */
static void tell_idle(getter *value, void *user, FILE *notes)
{
    static const struct {
        const char *flag, *other;
        bool with; /* where the other is given, or where it is not */
    } rows[] = {{"fps", "video", false},
                {"test-every", "views", false},
                {"views", "orbit", true},
                {"images", "cameras", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (value(user, rows[i].flag) && (value(user, rows[i].other) != NULL) == rows[i].with)
            fprintf(notes, "warning: --%s has no effect %s --%s\n", rows[i].flag,
                    rows[i].with ? "with" : "without", rows[i].other);
    const char *views = value(user, "views");
    if (value(user, "test-every") && views && strcmp(views, "all") == 0)
        fprintf(notes, "warning: --test-every has no effect with --views all\n");
}

#define LOOKS "bg raster antialiasing gut"
#define VIEWS " images test-every split-by ignore-distortion legacy-yturn"

/* Flags that the folder of a training stands for, where they are not given. */
static const char *from_training(getter *value, void *user)
{
    if (value(user, "cameras")) return LOOKS " legacy-yturn";
    if (!value(user, "gradients")) return LOOKS VIEWS " data-path";
    return LOOKS VIEWS " data-path masks image-alpha=alpha lambda-alpha";
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg, getter *value, void *user,
                      FILE *out, fth_err *err)
{
    fth_answer a;
    order o = {.ctx = ctx, .mem = fth_context_mem(ctx), .a = &a};
    if (n_args != 1) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected one model");
        fth_err_hint(err, "fathom splat render MODEL -d DATA -o OUT");
        return FTH_E_COMMAND;
    }
    gs_trained trained;
    FTH_TRY(gs_model_find(o.mem, arg[0], o.model, err));
    FTH_TRY(gs_trained_open(&trained, o.mem, arg[0], from_training(value, user), value, user, err));
    FTH_TRY(read_flags(&o, gs_trained_value, &trained, err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    if (strcmp(arg[0], o.model) != 0) fprintf(a.notes, "model: %s\n", o.model);
    gs_trained_tell(&trained, a.notes);
    tell_idle(value, user, a.notes);
    return fth_answer_end(&a, render(&o, err), err);
}

static const fth_flag flags[] = {
    {.name = "data-path",
     .letter = 'd',
     .value = FTH_FLAG_PATH,
     .doc = "capture whose views are rendered"},
    {.name = "cameras",
     .value = FTH_FLAG_FILE,
     .doc = "views of a file like transforms.json; its images need not be there"},
    {.name = "output-path", .letter = 'o', .value = FTH_FLAG_DIR, .doc = "folder of the results"},
    {.name = "views", .value = FTH_FLAG_WORD, .doc = "all, test or train"},
    {.name = "test-every",
     .value = FTH_FLAG_COUNT,
     .doc = "every n-th view, starting with the first, is a test view; default 8"},
    {.name = "split-by",
     .value = FTH_FLAG_WORD,
     .doc = "index or name: order of the views, that of the capture or of the image names"},
    {.name = "images", .value = FTH_FLAG_WORD, .doc = "folder of the images in a COLMAP capture"},
    {.name = "bg", .value = FTH_FLAG_WORD, .doc = "background colour, r,g,b from 0 to 1"},
    {.name = "format", .value = FTH_FLAG_WORD, .doc = "npy (f32, as computed), png or jpg"},
    {.name = "depth", .doc = "also write depth, NAME_depth.npy: the sum of weight times depth"},
    {.name = "render-mode",
     .value = FTH_FLAG_WORD,
     .doc = "RGB, D, ED, RGB_D or RGB_ED: images, depth (D) or depth over alpha (ED), or both"},
    {.name = "video",
     .value = FTH_FLAG_FILE,
     .doc = "also write the views as a video, Motion-JPEG in an .avi"},
    {.name = "orbit",
     .value = FTH_FLAG_COUNT,
     .doc = "instead of the views, so many cameras on a circle around what the cameras look at"},
    {.name = "fps", .value = FTH_FLAG_COUNT, .doc = "frames per second of the video; default 30"},
    {.name = "alpha", .doc = "also write alpha, NAME_alpha.npy"},
    {.name = "gradients",
     .doc = "also write gradients of the loss against the images, NAME_gradients.safetensors"},
    {.name = "masks",
     .value = FTH_FLAG_WORD,
     .doc = "with --gradients: folder of masks, beside that of the images or absolute; pixels "
            "below half are excluded; default: masks, if it exists; none: no masks"},
    {.name = "image-alpha",
     .value = FTH_FLAG_WORD,
     .doc = "with --gradients, alpha of the images: ignore (default), mask, or background: blended "
            "over it"},
    {.name = "lambda-alpha",
     .value = FTH_FLAG_WORD,
     .doc = "weight of the mean difference of alpha in the loss, with --image-alpha background; "
            "default 0.1"},
    {.name = "raster",
     .value = FTH_FLAG_WORD,
     .doc = "fast or classic: largest alpha 0.999 or 0.99"},
    {.name = "antialiasing",
     .letter = 'a',
     .doc = "scale opacities by the area on the image without the pixel blur"},
    {.name = "gut", .doc = "render distorted cameras along their rays (3DGUT)"},
    {.name = "ignore-distortion", .doc = "treat distorted cameras as pinholes"},
    {.name = "legacy-yturn",
     .doc = "rotate the poses of transforms.json about y, as LichtFeld does"},
    {0}};

const fth_verb gs_verb_render = {
    .name = "render",
    .args = "MODEL",
    .brief = "images of a model, from the views of a capture or of a file",
    .doc =
        "MODEL is a file of any format, a checkpoint, or the folder of a training, which stands "
        "for its newest model and for the flags of its training that are not given here; a line "
        "lists them. Writes OUT/NAME.npy for each view, NAME being that of its image "
        "without the ending: "
        "f32 [i j c], the background in it, not clamped. As png or jpg it is clamped and "
        "rounded to 8 bits. --depth adds NAME_depth.npy, the sum of weight times depth; with "
        "--render-mode ED or RGB_ED it is divided by alpha.\n"
        "\n"
        "--video writes the views one after the other as Motion-JPEG, or those of an --orbit; "
        "without -o nothing else is written. Its frames are the clamped images, without depth.\n"
        "\n"
        "With --gradients the images of the capture are the targets: NAME_gradients.safetensors "
        "has the gradients of the loss of training, 0.8 L1 + 0.2 (1 - SSIM) over pixels that masks "
        "keep, by means, sh0, shN, scaling, rotation and "
        "opacity, mean2d [g 2], densify [2 g] (seen or not; length of the gradient in halves "
        "of the image) and loss [3]: loss, L1, SSIM. Gaussians that touch no tile have "
        "gradient 0.\n"
        "\n"
        "The same model and view give the same bytes with every number of threads and in every "
        "memory.",
    .max_args = 1,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
