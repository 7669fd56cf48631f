/* stack.c - see stack.h. Everything is checked before the first pixel is read. */
#include "stack.h"

#include "../input/paths.h"
#include "../input/problems.h"
#include "../output/clash.h"
#include "../run/bound.h"
#include "../run/enough.h"
#include "../run/pipeline.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* State of one call of the command. */
typedef struct command {
    fth_context *ctx;
    fth_mem *mem;
    fth_answer *a; /* NULL: a stage */
    const fth_config *cfg;
    const fth_stage_call *stage; /* NULL: a command */
    fo_selection selection;
    fo_input in;
    fo_names names;
    fo_results results;
    fo_pipeline pipeline;
    fth_texts *notes; /* notices for the user */
} command;

/* ---- names ---- */

static fth_status path_of(void *user, int64_t stack, fo_port port, char path[FTH_PATH],
                          fth_err *err)
{
    return fo_names_path(user, stack, port, path, err);
}

static void name_of(void *user, int64_t stack, char *text, size_t bytes)
{
    const command *c = user;
    fo_names_stem(&c->names, stack, FO_OUT_IMAGE, text, bytes);
}

static void well_of(void *user, int64_t stack, char *text, size_t bytes)
{
    const command *c = user;
    snprintf(text, bytes, "%s", fo_input_well(&c->in, &c->in.stack[stack]));
}

/* ---- checks ---- */

/* Whether the folder is there, or can be made, and may be written to. */
static fth_status check_folder(const char *folder, bool must_exist, fth_err *err)
{
    char path[FTH_PATH], parent[FTH_PATH];
    snprintf(path, sizeof path, "%s", folder);
    if (fth_path_kind_of(path) == FTH_PATH_ABSENT && must_exist) {
        FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: no such folder", path);
        fth_err_hint(err, "create it first, or end OUT with a slash");
        return FTH_E_FILE_WRITE;
    }
    while (fth_path_kind_of(path) == FTH_PATH_ABSENT) {
        FTH_TRY(fth_path_parent(parent, path, err));
        if (strcmp(parent, path) == 0) break;
        snprintf(path, sizeof path, "%s", parent);
    }
    if (fth_path_kind_of(path) != FTH_PATH_FOLDER)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: expected a folder, found a file", path);
    if (!fth_path_is_writable(path))
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the folder is not writable", path);
    return FTH_OK;
}

static fth_status check_outputs(const command *c, const char *out, fth_err *err)
{
    char parent[FTH_PATH];
    const bool slash = out[strlen(out) - 1] == '/';
    if (c->names.folder && !slash && fo_format_is_ending(out) &&
        fth_path_kind_of(out) != FTH_PATH_FOLDER) {
        FTH_FAIL(err, FTH_E_COMMAND, "%s: %lld images cannot go into one file", out,
                 (long long)(c->in.n_stacks * (1 + c->in.others)));
        fth_err_hint(err, "name a folder, or choose one stack with --wells and --times");
        return FTH_E_COMMAND;
    }
    if (c->names.folder) {
        FTH_TRY(check_folder(c->names.out, false, err));
    } else {
        FTH_TRY(fth_path_parent(parent, c->names.out, err));
        FTH_TRY(check_folder(parent, true, err));
        if (fth_path_kind_of(c->names.out) == FTH_PATH_FOLDER) {
            FTH_FAIL(err, FTH_E_FILE_WRITE, "%s is a folder", c->names.out);
            fth_err_hint(err, "end it with a slash to write into it");
            return FTH_E_FILE_WRITE;
        }
    }
    return FTH_OK;
}

/* Before a pixel is read: what will be written fits on the disk. */
static fth_status check_room(command *c, fth_err *err)
{
    fo_room room = {0};
    char path[FTH_PATH];
    FTH_TRY(fth_texts_create(&c->notes, c->mem, err));
    FTH_TRY(fo_pipeline_room(&c->pipeline, &room, path_of, &c->names, err));
    if (c->pipeline.tables) {
        FTH_TRY(fo_names_table(&c->names, "metrics.csv", path, err));
        FTH_TRY(fo_room_add(&room, path, fo_tables_amount(&c->results), err));
    }
    return fo_room_check(&room, fth_config_bool(c->cfg, "focus.ignore_space"), c->notes, err);
}

/* ---- setting up ---- */

static fo_writer_options writer_options(command *c, const fo_format *format)
{
    const fth_config *cfg = c->cfg;
    const fo_input *in = &c->in;
    return (fo_writer_options){.n_stacks = in->n_stacks,
                               .rows = in->rows,
                               .columns = in->columns,
                               .um_per_px = in->um_per_px,
                               .scalebar = fo_scalebar_of(cfg, in->um_per_px),
                               .depth_unit = in->z_step_um > 0 ? in->z_step_um : 1,
                               .depth_offset = (double)in->first_plane,
                               .first_plane = in->first_plane,
                               .planes = in->file_planes,
                               .format = *format,
                               .wanted = {true, fth_config_bool(cfg, "focus.index_map"),
                                          fth_config_bool(cfg, "focus.depth_map"),
                                          fth_config_bool(cfg, "focus.confidence")},
                               .others = (int)in->others,
                               .path = path_of,
                               .user = &c->names};
}

static fth_status set_up(command *c, int n_paths, const char *const *path, const char *out,
                         fth_err *err)
{
    fo_format format;
    FTH_TRY(fo_selection_read(c->cfg, &c->selection, err));
    FTH_TRY(fo_format_choose(fth_config_text_or(c->cfg, "focus.image_format", ""), out, "png",
                             &format, err));
    FTH_TRY(fo_input_open(&c->in, c->mem, path, n_paths, &c->selection, err));
    const fo_pixels pixels = {c->in.um_per_px, c->in.significant_bits};
    fo_fusion how;
    FTH_TRY(fo_fusion_read(c->cfg, false, &pixels, &how, err));
    fo_names_begin(&c->names, &c->in, out, &format);
    FTH_TRY(check_outputs(c, out, err));
    const fo_writer_options files = writer_options(c, &format);
    FTH_TRY(fo_names_check(&c->names, files.wanted, c->mem, err));
    FTH_TRY(fo_results_create(&c->results, c->mem, c->in.n_stacks, c->in.planes, err));
    c->pipeline = (fo_pipeline){.ctx = c->ctx,
                                .in = &c->in,
                                .how = how,
                                .writer = files,
                                .results = &c->results,
                                .tables = c->stage || fth_config_bool(c->cfg, "focus.metrics"),
                                .stage = c->stage,
                                .name = name_of,
                                .user = c};
    if (how.compat == FO_COMPAT_YX1)
        c->pipeline.group = fth_config_int(c->cfg, "focus.compat_batch");
    FTH_TRY(fo_pipeline_settle(&c->pipeline, err));
    FTH_TRY(fo_pipeline_options(&c->pipeline, c->cfg, err));
    return check_room(c, err);
}

/* ---- doing it ---- */

static fth_status show_plan(void *user, const fth_plan *plan, fth_err *err)
{
    return fth_answer_plan(user, "fuse", plan, err);
}

static fth_status tell_files(command *c, fth_err *err)
{
    enum { SHOWN = 100 };
    char path[FTH_PATH];
    for (int64_t i = 0; i < c->in.n_files && i < SHOWN; i++)
        fth_answer_file(c->a, FTH_FILE_INPUT, c->in.file[i].path, -1, "%s",
                        c->in.of_planes ? "a plane" : "stacks");
    for (int64_t i = 0; i < c->in.n_stacks && i < SHOWN; i++) {
        FTH_TRY(fo_names_path(&c->names, i, FO_OUT_IMAGE, path, err));
        fth_answer_file(c->a, FTH_FILE_OUTPUT, path, -1, "%s y=%" PRId64 " x=%" PRId64,
                        c->names.format.name, c->in.rows, c->in.columns);
    }
    return FTH_OK;
}

static fth_status save_tables(command *c, fth_err *err)
{
    char metrics[FTH_PATH], planes[FTH_PATH];
    const fo_labels labels = {name_of, well_of, c};
    if (!c->pipeline.tables) return FTH_OK;
    FTH_TRY(fo_names_table(&c->names, "metrics.csv", metrics, err));
    FTH_TRY(fo_names_table(&c->names, "planes.csv", planes, err));
    return fo_tables_save(&c->results, &c->in, &labels, metrics, planes, err);
}

static void tell_result(command *c)
{
    const fo_results *r = &c->results;
    const int64_t done = fo_results_count(r, FO_DONE), skipped = fo_results_count(r, FO_EMPTY),
                  failed = fo_results_count(r, FO_FAILED);
    FILE *notes = c->a->notes;
    fprintf(notes, "%s: %" PRId64 " image%s of %" PRId64 " planes, y=%" PRId64 " x=%" PRId64 " %s",
            c->names.out, done, done == 1 ? "" : "s", c->in.planes, c->in.rows, c->in.columns,
            fth_dtype_name(c->in.dtype));
    fprintf(notes, ", by %s on %s\n", fo_method_names[c->pipeline.how.method],
            fth_context_device(c->ctx));
    if (skipped) fprintf(notes, "%" PRId64 " stacks have no planes and no image\n", skipped);
    if (c->in.missing_frames)
        fprintf(notes, "%" PRId64 " frames are missing in the files\n", c->in.missing_frames);
    for (int64_t i = 0; i < fth_texts_count(r->failures); i++)
        fprintf(notes, "failed: %s\n", fth_texts_get(r->failures, i));
    fo_bound_print(&c->pipeline, notes);
    if (!c->a->json) return;
    fth_json_writer *w = fth_answer_facts(c->a);
    fth_json_text(w, "output", c->names.out);
    fth_json_open_row(w, "images", '{');
    fth_json_int(w, "total", r->n);
    fth_json_int(w, "done", done);
    fth_json_int(w, "skipped", skipped);
    fth_json_int(w, "failed", failed);
    fth_json_close(w);
    fo_bound_add(&c->pipeline, w);
}

static void close_all(command *c)
{
    fth_texts_free(c->notes);
    fo_results_free(&c->results);
    if (c->in.mem) fo_input_close(&c->in);
}

/* Images, then tables. */
static fth_status fuse(command *c, fth_err *err)
{
    if (c->names.folder) FTH_TRY(fth_folder_make_all(c->mem, c->names.out, err));
    const fth_status s = fo_pipeline_run(&c->pipeline, err);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    const fth_status saved = save_tables(c, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? saved : s;
}

static fth_status work(command *c, fth_err *err)
{
    FTH_TRY(tell_files(c, err));
    for (int64_t i = 0; i < fth_texts_count(c->notes); i++)
        fprintf(c->a->notes, "note    %s\n", fth_texts_get(c->notes, i));
    if (c->a->plan) return fo_pipeline_plan(&c->pipeline, show_plan, c->a, err);
    fprintf(c->a->notes, "device  %s (%s)\n", fth_context_device(c->ctx),
            fth_context_device_reason(c->ctx));
    const fth_status s = fuse(c, err);
    if (s == FTH_OK || s == FTH_E_JOB_FAILED) tell_result(c);
    return s;
}

/* ---- the stage of a config ---- */

static fth_status add_to_stage(void *user, const fth_plan *plan, fth_err *err)
{
    const fo_stage_show *to = user;
    return fth_stage_plan_add(to->call, to->out, plan, 1, to->show, err);
}

/* Images are outputs of the stage. */
static fth_status list_images(const command *c, fth_err *err)
{
    char path[FTH_PATH];
    for (int64_t i = 0; i < c->results.n; i++) {
        if (c->results.state[i] != FO_DONE) continue;
        FTH_TRY(fo_names_path(&c->names, i, FO_OUT_IMAGE, path, err));
        FTH_TRY(fth_stage_wrote(c->stage, FTH_FILE_OUTPUT, path, NULL, err));
    }
    return FTH_OK;
}

fth_status fo_stack_stage(const fth_stage_call *call, const char *const *path, int n,
                          const char *folder, fo_stage_show *plan, fth_err *err)
{
    command c = {.ctx = call->context,
                 .mem = fth_context_mem(call->context),
                 .cfg = call->config,
                 .stage = call};
    fth_status s = set_up(&c, n, path, folder, err);
    if (s == FTH_OK)
        s = plan ? fo_pipeline_plan(&c.pipeline, add_to_stage, plan, err) : fuse(&c, err);
    if (s == FTH_OK && !plan) s = list_images(&c, err);
    close_all(&c);
    return s;
}

/* ---- the command ---- */

/* Tried again with more memory. */
typedef struct words {
    const fth_config *cfg;
    int n;
    const char *const *path;
    const char *out;
} words;

static fth_status show_nothing(void *user, const fth_plan *plan, fth_err *err)
{
    (void)user, (void)plan, (void)err;
    return FTH_OK;
}

static fth_status try_it(void *user, fth_context *ctx, fth_err *err)
{
    const words *w = user;
    command c = {.ctx = ctx, .mem = fth_context_mem(ctx), .cfg = w->cfg};
    fth_status s = set_up(&c, w->n, w->path, w->out, err);
    if (s == FTH_OK) s = fo_pipeline_plan(&c.pipeline, show_nothing, NULL, err);
    close_all(&c);
    return s;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    const char *output = value(user, "output");
    if (n_args < 1 || !output) {
        FTH_FAIL(err, FTH_E_COMMAND, n_args < 1 ? "no input file is given" : "no output is given");
        fth_err_hint(err, "write 'fathom focus stack IN... -o OUT'");
        return FTH_E_COMMAND;
    }
    fth_err own = {0};
    if (!err) err = &own;
    fth_answer a;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    command c = {.ctx = ctx, .mem = fth_context_mem(ctx), .a = &a};
    fth_config *cfg = NULL;
    fth_status s = fo_settings_from_flags(&cfg, c.mem, true, value, user, err);
    c.cfg = cfg;
    if (s == FTH_OK) s = set_up(&c, n_args, (const char *const *)arg, output, err);
    if (s == FTH_OK) s = work(&c, err);
    close_all(&c);
    words again = {cfg, n_args, (const char *const *)arg, output};
    if (cfg) s = fo_enough(ctx, s, try_it, &again, err);
    const fth_status closed = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return fth_answer_end(&a, s == FTH_OK ? closed : s, err);
}

#define BOTH(...) __VA_ARGS__,
#define STACK(...) __VA_ARGS__,
#define PLATE(...)
static const fth_flag flags[] = {{.name = "output",
                                  .value = FTH_FLAG_PATH,
                                  .letter = 'o',
                                  .doc = "image to write; a folder for several, or with a slash"},
#include "../settings/flags.inc"
                                 {0}};

const fth_verb fo_verb_stack = {
    .name = "stack",
    .args = "IN...",
    .brief = "fuse z-stacks into images that are sharp everywhere",
    .doc =
        "Files of one plane each are one stack, in natural order (z2 before z10); files of several "
        "planes are stacks by themselves: ND2, TIFF, OME-TIFF, ImageJ, Zarr, OME-NGFF, .npy (z y x "
        "or b z y x), or plain bytes with --raw. A quoted pattern selects the files that "
        "match "
        "it.\n"
        "\n"
        "One stack goes to the file OUT. Several, or OUT with a slash at its end, go to "
        "OUT/STEM[_p000][_t0000][_c00][_b0000].EXT. Maps and tables are beside the image, with "
        "its "
        "stem: .index.tif, .depth.tif, .confidence.tif, .metrics.csv, .planes.csv; in a folder the "
        "tables are metrics.csv and planes.csv.\n"
        "\n"
        "All problems of files and options are reported at once, before a pixel is read. A stack "
        "that "
        "cannot be read later is left out and reported at the end, with exit code 1.",
    .max_args = INT_MAX,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
