/* verb.c - `fathom bragg draw`: renders the image of the flags and draws figures of it. */
#include "../companions/companions.h"
#include "../experiment/resolve.h"
#include "../image/image.h"
#include "figures.h"

#include <stdio.h>
#include <string.h>

const fth_flag br_figures_flags[] = {
    {.name = "compat",
     .value = FTH_FLAG_WORD,
     .doc = "spec, the default: the physics as intended; c: as nanoBragg computes it"},
    {.name = "quirk",
     .value = FTH_FLAG_SET,
     .doc = "switch one defect of nanoBragg on or off: phi-carryover=on"},
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of the figures; the default is ."},
    {.name = "only",
     .value = FTH_FLAG_WORD,
     .doc = "names of figures, between commas; the default is all of them"},
    {.name = "dpi", .value = FTH_FLAG_COUNT, .doc = "dots per inch, 30 to 600"},
    {.name = "format", .value = FTH_FLAG_WORD, .doc = "png, the default, svg or pdf"},
    {0}};

const char br_figures_doc[] =
    "Takes the flags of a render, renders, and draws: image_log and image_linear, the image with "
    "rings of resolution; spots, predicted reflections over it; radial, mean and largest pixel by "
    "resolution; shapes, the profile of a spot for every shape of crystal; derivatives, what each "
    "parameter does around the strongest pixel; quirks, what the defects of nanoBragg do to this "
    "image, one by one; budget, memory and time within smaller and smaller budgets, as planned and "
    "as measured. No image files are written.";

/* Whether `name` is in the comma-separated list; no list: always. */
static bool is_wanted(const char *list, const char *name)
{
    const size_t n = strlen(name);
    if (!list) return true;
    for (const char *at = list; *at;) {
        const size_t len = strcspn(at, ",");
        if (len == n && strncmp(at, name, n) == 0) return true;
        at += len + (at[len] == ',');
    }
    return false;
}

static bool is_figure(const char *word, size_t n)
{
    for (int i = 0; i < BR_FIGURES; i++)
        if (strlen(br_figure_list[i].name) == n && strncmp(br_figure_list[i].name, word, n) == 0)
            return true;
    return false;
}

static fth_status check_only(const char *list, fth_err *err)
{
    for (const char *at = list; at && *at;) {
        const size_t n = strcspn(at, ",");
        if (!is_figure(at, n)) {
            char names[400] = "";
            for (int i = 0; i < BR_FIGURES; i++) {
                const size_t used = strlen(names);
                snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                         br_figure_list[i].name);
            }
            FTH_FAIL(err, FTH_E_COMMAND, "'%.*s' is not a figure", (int)(n < 60 ? n : 60), at);
            fth_err_hint(err, "they are: %s", names);
            return FTH_E_COMMAND;
        }
        at += n + (at[n] == ',');
    }
    return FTH_OK;
}

static fth_status draw_all(const br_call *call, const br_drawing *d, fth_err *err)
{
    const char *dir = call->value(call->user, "out"), *only = call->value(call->user, "only"),
               *format = call->value(call->user, "format");
    if (dir && !call->answer->plan) FTH_TRY(fth_folder_make(fth_context_mem(call->ctx), dir, err));
    for (int i = 0; i < BR_FIGURES; i++) {
        char path[FTH_PATH];
        if (!is_wanted(only, br_figure_list[i].name)) continue;
        const int n = snprintf(path, sizeof path, "%s/%s.%s", dir ? dir : ".",
                               br_figure_list[i].name, format ? format : "png");
        if (n < 0 || (size_t)n >= sizeof path)
            return FTH_FAIL(err, FTH_E_COMMAND, "--out is too long");
        if (!call->answer->plan) FTH_TRY(br_figure_draw(d, (br_figure)i, path, err));
        fth_answer_file(call->answer, FTH_FILE_FIGURE, path, -1, "%s", br_figure_list[i].title);
        if (call->answer->plan) continue;
        fprintf(call->out, "wrote %s: %s\n", path, br_figure_list[i].title);
        for (int k = 0; i == BR_FIGURE_QUIRKS && k < BR_QUIRKS; k++)
            if (d->share[k] > 0)
                fprintf(call->out, "  %s: %.3g %% of the photons\n", br_quirks[k].name,
                        100 * d->share[k]);
    }
    return FTH_OK;
}

/* --plan: memory of the render; figures use what is left. */
static fth_status show_plan(const br_call *call, const br_experiment *e, fth_err *err)
{
    br_passes *p = NULL;
    FTH_TRY(br_passes_create(&p, call->ctx, e, (br_wanted){0}, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < br_passes_count(p); i++)
        if (br_passes_plan(p, i))
            s = fth_answer_plan(call->answer, br_passes_name(i), br_passes_plan(p, i), err);
    br_passes_destroy(p);
    if (s == FTH_OK)
        fth_answer_memory(call->answer, 0, "planned for the render; figures are drawn in the rest");
    return s;
}

static void tell_shares(const br_call *call, const br_experiment *e, const double *share)
{
    if (!call->answer->json) return;
    fth_json_writer *w = fth_answer_facts(call->answer);
    fth_json_int(w, "fast", e->scene.fast);
    fth_json_int(w, "slow", e->scene.slow);
    if (!is_wanted(call->value(call->user, "only"), br_figure_list[BR_FIGURE_QUIRKS].name)) return;
    fth_json_open(w, "quirks", '{'); /* share of the photons that each changes */
    for (int k = 0; k < BR_QUIRKS; k++) fth_json_real(w, br_quirks[k].name, share[k]);
    fth_json_close(w);
}

static fth_status render_and_draw(const br_call *call, const br_flags *f, const br_experiment *e,
                                  fth_err *err)
{
    double share[BR_QUIRKS] = {0};
    br_drawing d = {.context = call->ctx, .e = e, .flags = f, .share = share};
    fth_tensor *image = NULL;
    int64_t dpi;
    FTH_TRY(br_call_int(call, "dpi", 0, &dpi, err));
    if (dpi != 0 && (dpi < 30 || dpi > 600))
        return FTH_FAIL(err, FTH_E_COMMAND, "--dpi is %lld: 30 to 600 is expected", (long long)dpi);
    d.dpi = (double)dpi;
    if (call->answer->plan) {
        FTH_TRY(draw_all(call, &d, err)); /* only names them */
        return show_plan(call, e, err);
    }
    FTH_TRY(br_drawing_render(call->ctx, e, &image, &d, err));
    d.image = fth_tensor_source(image);
    const fth_status s = draw_all(call, &d, err);
    fth_tensor_release(image);
    if (s == FTH_OK) tell_shares(call, e, share);
    return s;
}

static fth_status draw(const br_call *call, fth_err *err)
{
    const fth_direct_call direct = br_call_direct(call, call->n_words, call->word);
    fth_mem *mem = fth_context_mem(call->ctx);
    br_flags f;
    void *block = NULL;
    FTH_TRY(check_only(call->value(call->user, "only"), err));
    FTH_TRY(br_flags_of_call(&f, &direct, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(br_experiment), "experiment", &block, err));
    br_experiment *e = block;
    fth_status s = br_experiment_resolve(e, mem, &f, err);
    if (s == FTH_OK) {
        s = render_and_draw(call, &f, e, err);
        br_experiment_clear(e);
    }
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status br_figures_run_verb(fth_context *ctx, int n_args, char *const *arg,
                               const char *(*value)(void *user, const char *flag), void *user,
                               FILE *out, fth_err *err)
{
    return br_call_run(draw, ctx, n_args, arg, value, user, out, err);
}
