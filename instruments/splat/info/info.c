/* info.c - see info.h. */
#include "info.h"

#include "../file/plural.h"
#include "../model/model.h"
#include "../scene/scene.h"

#include <inttypes.h>
#include <string.h>

/* Each size with its views, the first four. */
static void print_sizes(FILE *out, const gs_scene *s)
{
    enum { SHOWN = 4 };
    struct {
        int64_t width, height, views;
    } kind[SHOWN] = {{0}};
    int64_t others = 0;
    for (int64_t i = 0; i < s->views; i++) {
        const gs_view *v = &s->view[i];
        int k = 0;
        while (k < SHOWN && kind[k].views > 0 &&
               (kind[k].width != v->width || kind[k].height != v->height))
            k++;
        if (k == SHOWN) {
            others++;
            continue;
        }
        kind[k].width = v->width;
        kind[k].height = v->height;
        kind[k].views++;
    }
    for (int k = 0; k < SHOWN && kind[k].views > 0; k++) {
        fprintf(out, "%s%" PRId64 " x %" PRId64 " px", k ? ", " : "size      ", kind[k].width,
                kind[k].height);
        if (kind[k].views < s->views)
            fprintf(out, " (%" PRId64 " view%s)", kind[k].views, gs_s(kind[k].views));
    }
    if (others > 0) fprintf(out, ", others (%" PRId64 " view%s)", others, gs_s(others));
    fprintf(out, "\n");
}

static fth_status tell_scene(const gs_scene *s, gs_profile profile, fth_answer *a, fth_err *err)
{
    double scale = 0;
    FTH_TRY(gs_scene_scale(s, profile, &scale, err));
    for (int64_t i = 0; i < fth_texts_count(s->notes); i++)
        fprintf(a->notes, "warning: %s\n", fth_texts_get(s->notes, i));
    fprintf(a->out, "format    %s\nviews     %" PRId64 "\npoints    %" PRId64 "\n", s->format,
            s->views, s->points);
    print_sizes(a->out, s);
    fprintf(a->out, "centre    %.6g %.6g %.6g\nscale     %.6g (%s)\n", s->centre[0], s->centre[1],
            s->centre[2], scale, gs_profile_names[profile]);
    if (s->distorted)
        fprintf(a->out, "distorted %" PRId64 " of %" PRId64 " views\n", s->distorted, s->views);
    if (!a->json) return FTH_OK;
    fth_json_writer *w = fth_answer_facts(a);
    fth_json_text(w, "format", s->format);
    fth_json_int(w, "views", s->views);
    fth_json_int(w, "points", s->points);
    fth_json_real(w, "scene_scale", scale);
    fth_json_open_row(w, "scene_centre", '[');
    for (int k = 0; k < 3; k++) fth_json_real(w, NULL, s->centre[k]);
    fth_json_close(w);
    fth_json_int(w, "width", s->view[0].width);
    fth_json_int(w, "height", s->view[0].height);
    fth_json_int(w, "distorted", s->distorted);
    return FTH_OK;
}

static fth_status describe_scene(fth_mem *mem, const char *path, const gs_scene_options *opt,
                                 gs_profile profile, fth_answer *a, fth_err *err)
{
    gs_scene s;
    FTH_TRY(gs_scene_open(&s, mem, path, opt, err));
    fth_answer_file(a, FTH_FILE_INPUT, path, -1, "%s", s.format);
    fth_status st = gs_scene_match(&s, err);
    if (st == FTH_OK) st = tell_scene(&s, profile, a, err);
    gs_scene_close(&s);
    return st;
}

/* Packed formats hold only finite values; the rows may not fit in memory. */
static fth_status tell_flaws(fth_mem *mem, const char *path, const gs_model_info *info,
                             fth_answer *a, fth_err *err)
{
    gs_model m;
    gs_flaws f;
    fth_err local = {0};
    if (info->format != GS_FORMAT_PLY) return FTH_OK;
    const fth_status s = gs_model_load(&m, mem, path, info->format, &local);
    if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) {
        fprintf(a->notes, "values were not checked: the rows do not fit in memory\n");
        return FTH_OK;
    }
    if (s != FTH_OK && err) *err = local;
    FTH_TRY(s);
    gs_model_find_flaws(&m, &f);
    gs_model_free(&m);
    if (a->json) fth_json_int(fth_answer_facts(a), "not_finite", f.count);
    if (f.count > 0)
        fprintf(a->notes,
                "warning: %" PRId64 " number%s of %s %s not finite, the first in row %" PRId64
                ", %s: %g\n",
                f.count, gs_s(f.count), path, f.count == 1 ? "is" : "are", f.row, f.column,
                f.value);
    return FTH_OK;
}

static fth_status describe_model(fth_mem *mem, const char *given, fth_answer *a, fth_err *err)
{
    gs_model_info info;
    char bytes[24], path[FTH_PATH];
    FTH_TRY(gs_model_find(mem, given, path, err));
    FTH_TRY(gs_model_look(mem, path, &info, err));
    fth_answer_file(a, FTH_FILE_INPUT, path, -1, "%s", gs_format_names[info.format]);
    if (strcmp(given, path) != 0) fprintf(a->out, "file      %s\n", path);
    fprintf(a->out, "format    %s", gs_format_names[info.format]);
    if (info.version) fprintf(a->out, " version %d", info.version);
    fprintf(a->out, "\ngaussians %" PRId64 "\nsh degree %d\nmemory    %s\n", info.n, info.degree,
            fth_mem_format_size((uint64_t)info.n * gs_row_bytes(info.degree), bytes, sizeof bytes));
    if (info.iteration > 0) fprintf(a->out, "iteration %" PRId64 "\n", info.iteration);
    if (a->json) {
        fth_json_text(fth_answer_facts(a), "format", gs_format_names[info.format]);
        fth_json_int(fth_answer_facts(a), "gaussians", info.n);
        fth_json_int(fth_answer_facts(a), "sh_degree", info.degree);
    }
    return tell_flaws(mem, path, &info, a, err);
}

/* A capture, and not meta.json, a folder that has one, or one of a training. */
static bool is_capture(fth_mem *mem, const char *path)
{
    char found[FTH_PATH];
    if (strcmp(fth_path_name(path), "meta.json") == 0) return false;
    if (gs_scene_is(mem, path)) return true;
    return fth_path_kind_of(path) == FTH_PATH_FOLDER &&
           !(fth_path_join(found, path, "meta.json", NULL) == FTH_OK &&
             fth_path_kind_of(found) == FTH_PATH_FILE) &&
           !(gs_model_find(mem, path, found, NULL) == FTH_OK && strcmp(found, path) != 0);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    gs_profile profile = GS_CLASSIC;
    fth_answer a;
    if (n_args != 1) {
        const fth_status s = FTH_FAIL(err, FTH_E_COMMAND, "expected one capture or model");
        fth_err_hint(err, "fathom splat info PATH");
        return s;
    }
    if (value(user, "profile")) FTH_TRY(gs_profile_parse(value(user, "profile"), &profile, err));
    fth_path_info file;
    FTH_TRY(fth_path_stat(arg[0], &file, err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    const gs_scene_options opt = {.images = value(user, "images"),
                                  .legacy_yturn = value(user, "legacy-yturn") != NULL,
                                  .allow_distortion = true};
    const fth_status s = is_capture(mem, arg[0])
                             ? describe_scene(mem, arg[0], &opt, profile, &a, err)
                             : describe_model(mem, arg[0], &a, err);
    return fth_answer_end(&a, s, err);
}

static const fth_flag flags[] = {
    {.name = "profile",
     .value = FTH_FLAG_WORD,
     .doc = "classic or lichtfeld: definition of the scale"},
    {.name = "images", .value = FTH_FLAG_WORD, .doc = "folder of the images in a COLMAP capture"},
    {.name = "legacy-yturn",
     .doc = "rotate the poses of transforms.json about y, as LichtFeld does"},
    {0}};

const fth_verb gs_verb_info = {
    .name = "info",
    .args = "PATH",
    .brief = "show the contents of a capture or a model",
    .doc = "PATH is a folder of COLMAP (binary or text) or with transforms.json, or a model: PLY, "
           ".splat, .spz, .sog or a checkpoint, detected from its contents; for the folder of a "
           "training its newest model. For a capture the headers of all images are read, and "
           "missing images are listed.\n"
           "\n"
           "With --json: views, points, scene_scale, scene_centre, width and height (of the first "
           "view), or gaussians and sh_degree. The scale is 1.1 times the largest distance of a "
           "camera from their mean; with --profile lichtfeld the median distance of the points "
           "from the centre.",
    .max_args = 1,
    .flag = flags,
    .heeds = "json quiet",
    .run = run};
