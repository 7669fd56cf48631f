/* verb.c - `fathom splat toy -o DIR`: the capture is written, read back and rendered, so that its
 * images are those of the poses in the files. */
#include "toy.h"

#include "../render/render.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef const char *getter(void *user, const char *flag);

static fth_status count_of(getter *value, void *user, const char *flag, int64_t least, int64_t most,
                           int64_t *out, fth_err *err)
{
    const char *text = value(user, flag);
    if (!text) return FTH_OK;
    if (fth_int_parse(text, out) && *out >= least && *out <= most) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected %" PRId64 " to %" PRId64 ", found '%s'",
                    flag, least, most, text);
}

static fth_status read_flags(gs_toy *toy, getter *value, void *user, fth_err *err)
{
    *toy = (gs_toy){.gaussians = 2000, .views = 24, .width = 160, .height = 120};
    FTH_TRY(count_of(value, user, "gaussians", 1, 100000000, &toy->gaussians, err));
    FTH_TRY(count_of(value, user, "views", 1, 9999, &toy->views, err));
    FTH_TRY(count_of(value, user, "seed", 0, INT64_MAX, &toy->seed, err));
    const char *size = value(user, "size"), *x = size ? strchr(size, 'x') : NULL;
    if (!size) return FTH_OK;
    char width[32] = "";
    if (x && x - size < 31) memcpy(width, size, (size_t)(x - size));
    if (x && fth_int_parse(width, &toy->width) && fth_int_parse(x + 1, &toy->height) &&
        toy->width >= 1 && toy->height >= 1 && toy->width <= 16384 && toy->height <= 16384)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--size: expected WxH of 1 to 16384 px, found '%s'", size);
}

static fth_status draw_images(fth_context *ctx, const gs_model *m, const char *dir, fth_err *err)
{
    static const double black[3];
    gs_scene s;
    gs_frame f = {0};
    char path[FTH_PATH];
    FTH_TRY(gs_scene_open(&s, m->mem, dir, &(gs_scene_options){0}, err));
    fth_status st = gs_frame_create(&f, ctx, m,
                                    &(gs_frame_options){.width = s.view[0].width,
                                                        .height = s.view[0].height,
                                                        .most_alpha = 0.999},
                                    err);
    if (st == FTH_OK) st = fth_folder_make_all(m->mem, s.images, err);
    for (int64_t v = 0; st == FTH_OK && v < s.views; v++) {
        st = gs_frame_run(&f, &s.view[v], black, m->degree, err);
        if (st == FTH_OK) st = gs_scene_image(&s, v, path, err);
        if (st == FTH_OK)
            st = gs_image_save(m->mem, path, fth_tensor_view(f.image), f.how.width, f.how.height,
                               "png", err);
    }
    gs_frame_free(&f);
    gs_scene_close(&s);
    return st;
}

uint64_t gs_toy_bytes(const gs_toy *toy)
{
    return (uint64_t)toy->gaussians * (gs_row_bytes(1) + 200) +
           (uint64_t)(toy->width * toy->height) * 40 + (8 << 20);
}

fth_status gs_toy_write(fth_context *ctx, const gs_toy *toy, const char *dir, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    char folder[FTH_PATH], path[FTH_PATH];
    gs_model m;
    FTH_TRY(fth_path_join(folder, dir, "sparse/0", err));
    FTH_TRY(fth_path_join(path, dir, "truth.ply", err));
    FTH_TRY(fth_folder_make_all(mem, folder, err));
    FTH_TRY(gs_toy_model(&m, mem, toy, err));
    fth_status s = gs_toy_colmap(&m, folder, toy, err);
    if (s == FTH_OK) s = draw_images(ctx, &m, dir, err);
    if (s == FTH_OK) s = gs_model_save(&m, path, GS_FORMAT_PLY, err);
    gs_model_free(&m);
    return s;
}

static fth_status make(fth_context *ctx, const gs_toy *toy, const char *dir, fth_answer *a,
                       fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, "truth.ply", err));
    fth_answer_file(a, FTH_FILE_OUTPUT, dir, -1, "a capture of %" PRId64 " views", toy->views);
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "its model, %" PRId64 " Gaussians",
                    toy->gaussians);
    if (a->plan) {
        fth_answer_memory(a, gs_toy_bytes(toy), "model, lists of tiles and an image");
        return FTH_OK;
    }
    FTH_TRY(gs_toy_write(ctx, toy, dir, err));
    fprintf(a->notes, "%s: %" PRId64 " views of %" PRId64 " Gaussians\n", dir, toy->views,
            toy->gaussians);
    if (a->json) fth_json_int(fth_answer_facts(a), "views", toy->views);
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg, getter *value, void *user,
                      FILE *out, fth_err *err)
{
    fth_answer a;
    gs_toy toy;
    (void)n_args, (void)arg;
    const char *dir = value(user, "output-path");
    if (!dir) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected -o and a folder");
        fth_err_hint(err, "fathom splat toy -o DIR");
        return FTH_E_COMMAND;
    }
    FTH_TRY(read_flags(&toy, value, user, err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    return fth_answer_end(&a, make(ctx, &toy, dir, &a, err), err);
}

static const fth_flag flags[] = {
    {.name = "output-path", .letter = 'o', .value = FTH_FLAG_DIR, .doc = "folder of the capture"},
    {.name = "gaussians", .value = FTH_FLAG_COUNT, .doc = "Gaussians of the model; default 2000"},
    {.name = "views", .value = FTH_FLAG_COUNT, .doc = "views around the model; default 24"},
    {.name = "size", .value = FTH_FLAG_WORD, .doc = "width and height in px; default 160x120"},
    {0}};

const fth_verb gs_verb_toy = {
    .name = "toy",
    .args = "",
    .brief = "make a synthetic capture and its model",
    .doc =
        "A ball above a chequered floor, of Gaussians: DIR/images, DIR/sparse/0 with the cameras "
        "and a point for every second Gaussian, as COLMAP writes them, and DIR/truth.ply, the "
        "model that the images show. The same flags and seed give the same bytes.",
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run};
