/* sheet_verb.c - `fathom focus sheet`: the wells of an experiment on one page, and beside it how
 * sharp they are, and how that changed. */
#include "sheet_verb.h"

#include "../experiment/experiment.h"
#include "last_images.h"
#include "plate_figures.h"

#include <string.h>

/* Two figures stand beside the sheet, named by its stem. */
static fth_status beside(const char *sheet, const char *ending, char path[FTH_PATH], fth_err *err)
{
    char stem[FTH_PATH];
    const char *dot = strrchr(fth_path_name(sheet), '.');
    const int n = dot ? (int)(dot - sheet) : (int)strlen(sheet);
    snprintf(stem, sizeof stem, "%.*s", n, sheet);
    return fth_path_beside(path, stem, ending, err);
}

static fth_status draw_quality(fth_answer *a, fth_mem *mem, const char *metrics, const char *sheet,
                               fth_err *err)
{
    char sharpness[FTH_PATH], focus[FTH_PATH];
    fo_quality q;
    FTH_TRY(beside(sheet, "sharpness.png", sharpness, err));
    FTH_TRY(beside(sheet, "focus.svg", focus, err));
    FTH_TRY(fo_quality_read(&q, mem, metrics, err));
    fth_status s = a->plan ? FTH_OK : fo_draw_sharpness(&q, sharpness, NULL, err);
    if (s == FTH_OK && !a->plan) s = fo_draw_focus(&q, focus, NULL, err);
    fo_quality_free(&q);
    fth_answer_file(a, FTH_FILE_INPUT, metrics, -1, "quality of the stacks");
    fth_answer_file(a, FTH_FILE_FIGURE, sharpness, -1, "sharpness of the wells");
    fth_answer_file(a, FTH_FILE_FIGURE, focus, -1, "sharpest plane and sharpness over time");
    return s;
}

static fth_status draw_sheet(fth_answer *a, fth_mem *mem, const fo_last_images *last,
                             const char *experiment, const char *path, fth_err *err)
{
    const char *image[FO_WELLS];
    char title[300];
    uint64_t bytes = 0;
    for (int w = 0; w < FO_WELLS; w++)
        image[w] = last->path[w] < 0 ? NULL : fth_texts_get(last->paths, last->path[w]);
    snprintf(title, sizeof title, "%.200s, last time point of each well", experiment);
    FTH_TRY(fo_draw_sheet(mem, image, title, path, a->plan ? &bytes : NULL, err));
    fth_answer_file(a, FTH_FILE_FIGURE, path, -1, "%d wells", last->wells);
    if (a->plan) fth_answer_memory(a, bytes, "the page, and a row of an image");
    if (!a->plan) fprintf(a->notes, "%s: %d wells\n", path, last->wells);
    return FTH_OK;
}

static fth_status answer(fth_answer *a, fth_mem *mem, const fo_experiment *e, const char *path,
                         fth_err *err)
{
    fo_last_images last;
    char metrics[FTH_PATH];
    FTH_TRY(fth_path_join(metrics, e->run, "metrics.csv", err));
    last = (fo_last_images){0};
    fth_status s =
        fth_path_exists(e->images) ? fo_last_images_find(&last, mem, e->images, err) : FTH_OK;
    if (s == FTH_OK && last.wells == 0)
        s = FTH_FAIL(
            err, FTH_E_FILE_KEY,
            "%s: no images such as A01_t0000_ch00_stitch.jpg; 'fathom focus run' creates them",
            e->images);
    if (s == FTH_OK && fth_path_exists(metrics)) s = draw_quality(a, mem, metrics, path, err);
    if (s == FTH_OK) s = draw_sheet(a, mem, &last, e->name, path, err);
    fo_last_images_free(&last);
    return s;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    const char *root = value(user, "data-root"), *exp = value(user, "exp"),
               *path = value(user, "output");
    const char *layout = value(user, "layout");
    fo_experiment e;
    fth_answer a;
    (void)n_args, (void)arg;
    if (!root || !exp || !path)
        return FTH_FAIL(err, FTH_E_COMMAND, "sheet needs --data-root DIR, --exp NAME and -o FILE");
    if (layout && strcmp(layout, "legacy") != 0 && strcmp(layout, "v2") != 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "--layout: expected legacy or v2, found '%.60s'",
                        layout);
    FTH_TRY(fo_experiment_results(
        &e,
        &(fo_experiment_options){.root = root,
                                 .name = exp,
                                 .layout = layout && strcmp(layout, "v2") == 0 ? FO_LAYOUT_V2
                                                                               : FO_LAYOUT_LEGACY,
                                 .run_dir = value(user, "run-dir")},
        err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    return fth_answer_end(&a, answer(&a, fth_context_mem(ctx), &e, path, err), err);
}

static const fth_flag flags[] = {
    {.name = "data-root", .value = FTH_FLAG_DIR, .doc = "root folder of the data with the images"},
    {.name = "exp", .value = FTH_FLAG_WORD, .doc = "name of the experiment"},
    {.name = "output",
     .value = FTH_FLAG_FILE,
     .letter = 'o',
     .doc = "figure to write, .png, .svg or .pdf"},
    {.name = "layout",
     .value = FTH_FLAG_WORD,
     .doc = "names of files and folders: legacy or v2; default: legacy"},
    {.name = "run-dir",
     .value = FTH_FLAG_DIR,
     .doc = "folder of metrics.csv, if not the default one"},
    {0}};

const fth_verb fo_verb_sheet = {
    .name = "sheet",
    .args = "",
    .brief = "draw the wells of an experiment on one page",
    .doc = "The last image of every well, arranged as on the plate. "
           "Where the run left metrics.csv, two figures "
           "are written beside the page: STEM.sharpness.png, a heat map of "
           "the plate, and STEM.focus.svg, the sharpest "
           "plane and the sharpness over time.",
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
