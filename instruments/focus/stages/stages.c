/* stages.c - see stages.h.
 *
 * A config names files, or an experiment of a tree of data. Of files, images and tables go to the
 * folder of the model; of an experiment, to its places in the tree, as `fathom focus run` does.
 */
#include "stages.h"

#include "../process/work.h"
#include "../stack/stack.h"
#include "../toy/toy.h"
#include "draw.h"
#include "stitch.h"

#include <inttypes.h>
#include <string.h>

#define INDEX "index.json"
#define IMAGES "images.json"

enum { MOST_FILES = 4096 };

/* ---- what a config names ---- */

static bool is_files(const fth_config *cfg)
{
    return fth_config_has(cfg, "input.files");
}

static bool is_toy(const fth_config *cfg)
{
    return fth_config_has(cfg, "toy.wells");
}

static fo_toy toy_of(const fth_config *cfg)
{
    return (fo_toy){.dir = fth_config_text(cfg, "input.data_root"),
                    .exp = fth_config_text(cfg, "input.exp"),
                    .wells = fth_config_int(cfg, "toy.wells"),
                    .times = fth_config_int(cfg, "toy.times"),
                    .planes = fth_config_int(cfg, "toy.planes"),
                    .rows = fth_config_int(cfg, "toy.rows"),
                    .columns = fth_config_int(cfg, "toy.columns"),
                    .keyence = fth_config_choice(cfg, "input.microscope") == FO_KEYENCE,
                    .seed = fth_config_int(cfg, "seed")};
}

/* Paths of input.files; FTH_E_CONFIG when there is neither. */
static fth_status files_of(const fth_config *cfg, const char **path, int *n, fth_err *err)
{
    const int64_t count = is_files(cfg) ? fth_config_count(cfg, "input.files") : 0;
    if (count == 0 && !fth_config_has(cfg, "input.data_root"))
        return FTH_FAIL(err, FTH_E_CONFIG, "input: neither files nor an experiment is given");
    if (count > MOST_FILES)
        return FTH_FAIL(err, FTH_E_CONFIG, "input.files: at most %d are allowed; use a pattern",
                        MOST_FILES);
    for (int64_t i = 0; i < count; i++) path[i] = fth_config_text_at(cfg, "input.files", i);
    *n = (int)count;
    return FTH_OK;
}

static fth_status find(const fth_config *cfg, fo_experiment *e, fth_err *err)
{
    fth_mem *mem = NULL; /* files are asked for without a context */
    fth_texts *notes = NULL;
    fo_problems ignored = {0};
    const fo_experiment_options opt = {
        .root = fth_config_text(cfg, "input.data_root"),
        .name = fth_config_text(cfg, "input.exp"),
        .microscope = fth_config_text(cfg, "input.microscope"),
        .layout = fth_config_choice(cfg, "focus.layout") == 1 ? FO_LAYOUT_V2 : FO_LAYOUT_LEGACY,
        .run_dir = fth_config_text_or(cfg, "focus.run_dir", "")};
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    fth_status s = fth_texts_create(&notes, mem, err);
    if (s == FTH_OK) s = fo_experiment_find(e, mem, &opt, &ignored, notes, err);
    fth_texts_free(notes);
    const fth_status closed = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

/* ---- index ---- */

static fth_status index_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    const fth_config *cfg = call->config;
    fo_experiment e = {0};
    if (is_files(cfg)) {
        for (int64_t i = 0; i < fth_config_count(cfg, "input.files"); i++) {
            const char *path = fth_config_text_at(cfg, "input.files", i);
            if (fth_path_kind_of(path) == FTH_PATH_FILE)
                FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, path, NULL, err));
        }
        return FTH_OK;
    }
    if (is_toy(cfg) || !fth_config_has(cfg, "input.data_root")) return FTH_OK;
    FTH_TRY(find(call->config, &e, err));
    if (e.raw[0]) FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, e.raw, "stacks", err));
    if (e.plate[0]) FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, e.plate, "plate", err));
    return FTH_OK;
}

static fth_status index_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                             fth_err *err)
{
    const char *path[MOST_FILES];
    int n = 0;
    (void)show;
    FTH_TRY(files_of(call->config, path, &n, err));
    const fo_toy toy = is_toy(call->config) ? toy_of(call->config) : (fo_toy){0};
    fth_stage_plan_hold(call, out, is_toy(call->config) ? fo_toy_bytes(&toy) : 1 << 20,
                        1u << FTH_LIB_FATHOM);
    return FTH_OK;
}

/* What was found: how many stacks of which size. */
static fth_status save_index(const fth_stage_call *call, const fo_input *in, int64_t wells,
                             fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, call->model_dir, INDEX, err));
    fth_json_begin(&w, fth_context_mem(call->context), true);
    fth_json_open(&w, NULL, '{');
    fth_json_int(&w, "stacks", in->n_stacks);
    fth_json_int(&w, "wells", wells);
    fth_json_open_row(&w, "sizes", '{');
    fth_json_int(&w, "z", in->planes);
    fth_json_int(&w, "y", in->rows);
    fth_json_int(&w, "x", in->columns);
    fth_json_close(&w);
    fth_json_text(&w, "dtype", fth_dtype_name(in->dtype));
    fth_json_int(&w, "missing_frames", in->missing_frames);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

static fth_status index_run(const fth_stage_call *call, fth_err *err)
{
    const char *path[MOST_FILES];
    int n = 0;
    fth_mem *mem = fth_context_mem(call->context);
    FTH_TRY(files_of(call->config, path, &n, err));
    fth_stage_report(call, &(fth_stage_progress){.total = 1, .what = "index"});
    if (is_toy(call->config)) {
        const fo_toy toy = toy_of(call->config);
        FTH_TRY(fo_toy_make(&toy, mem, err));
    }
    if (n > 0) {
        fo_selection selection;
        fo_input in;
        FTH_TRY(fo_selection_read(call->config, &selection, err));
        FTH_TRY(fo_input_open(&in, mem, path, n, &selection, err));
        const fth_status s = save_index(call, &in, 0, err);
        fo_input_close(&in);
        return s;
    }
    fo_job job;
    FTH_TRY(fo_job_open(&job, mem, call->config, err));
    for (int64_t i = 0; i < fth_texts_count(job.notes); i++)
        fth_stage_say(call, "%s", fth_texts_get(job.notes, i));
    const fth_status s = save_index(call, &job.in, job.map.mapped, err);
    fo_job_close(&job);
    return s;
}

/* ---- fuse ---- */

static fth_status images_folder(const fth_stage_call *call, char path[FTH_PATH], fth_err *err)
{
    return fth_path_join(path, call->model_dir, "images/", err);
}

static fth_status add_plan(void *user, const fth_plan *plan, fth_err *err)
{
    const fo_stage_show *to = user;
    return fth_stage_plan_add(to->call, to->out, plan, 1, to->show, err);
}

static fo_work work_of(const fth_stage_call *call)
{
    return (fo_work){.ctx = call->context,
                     .cfg = call->config,
                     .stage = call,
                     .overwrite = fth_stage_flag(call, "force") ||
                                  fth_stage_flag(call, "replace") ||
                                  fth_config_bool(call->config, "focus.overwrite"),
                     .force_config = fth_config_bool(call->config, "focus.force_config")};
}

/* Before the made-up plate exists: its shape alone. */
static fth_status plan_toy(fo_stage_show *to, fth_err *err)
{
    const fo_toy toy = toy_of(to->call->config);
    const uint64_t stack = (uint64_t)(toy.planes * toy.rows * toy.columns) * sizeof(uint16_t);
    fth_stage_plan_hold(to->call, to->out, (1u << 23) + 4 * stack, 1u << FTH_LIB_FATHOM);
    to->out->bound = true;
    (void)err;
    return FTH_OK;
}

static fth_status fuse_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                            fth_err *err)
{
    const char *path[MOST_FILES];
    char folder[FTH_PATH];
    int n = 0;
    fo_stage_show to = {call, out, show};
    out->beside_bytes = 4 << 20; /* tables, names, open files */
    FTH_TRY(files_of(call->config, path, &n, err));
    FTH_TRY(images_folder(call, folder, err));
    if (n > 0) return fo_stack_stage(call, path, n, folder, &to, err);
    fo_experiment e = {0};
    if (is_toy(call->config)) FTH_TRY(find(call->config, &e, err));
    if (is_toy(call->config) && (!e.raw[0] || !fth_path_exists(e.raw))) return plan_toy(&to, err);
    fo_work w = work_of(call);
    w.force_config = true; /* differences are reported when it runs */
    FTH_TRY(fo_work_open(&w, err));
    snprintf(out->text, sizeof out->text, "stack=%" PRId64 " z=%" PRId64, w.e.in.n_stacks,
             w.e.in.planes);
    const fth_status s = fo_pipeline_plan(&w.pipeline, add_plan, &to, err);
    fo_work_close(&w);
    return s;
}

static fth_status save_images(const fth_stage_call *call, const char *images, const char *tables,
                              const fo_results *r, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, call->model_dir, IMAGES, err));
    fth_json_begin(&w, fth_context_mem(call->context), true);
    fth_json_open(&w, NULL, '{');
    fth_json_text(&w, "images_dir", images);
    fth_json_text(&w, "tables_dir", tables);
    if (r) fth_json_int(&w, "images", r->n);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

/* Images and tables are outputs of the stage: one that is gone or changed is made again. */
static fth_status list_outputs(const fth_stage_call *call, const fo_work *w, fth_err *err)
{
    char path[FTH_PATH];
    for (int64_t i = 0; i < w->results.n; i++) {
        FTH_TRY(fo_job_path(&w->e, i, FO_OUT_IMAGE, path, err));
        if (fth_path_exists(path)) FTH_TRY(fth_stage_wrote(call, FTH_FILE_OUTPUT, path, NULL, err));
    }
    FTH_TRY(fth_path_join(path, w->e.place.run, "metrics.csv", err));
    FTH_TRY(fth_stage_wrote(call, FTH_FILE_OUTPUT, path, "metrics", err));
    return fth_stage_wrote(call, FTH_FILE_OUTPUT, w->e.place.metadata, "metadata", err);
}

static fth_status fuse_run(const fth_stage_call *call, fth_err *err)
{
    const char *path[MOST_FILES];
    char folder[FTH_PATH];
    int n = 0;
    FTH_TRY(files_of(call->config, path, &n, err));
    FTH_TRY(images_folder(call, folder, err));
    if (n > 0) {
        FTH_TRY(fo_stack_stage(call, path, n, folder, NULL, err));
        return save_images(call, folder, folder, NULL, err);
    }
    fo_work w = work_of(call);
    FTH_TRY(fo_work_open(&w, err));
    fth_stage_say(call, "device %s (%s)", fth_context_device(call->context),
                  fth_context_device_reason(call->context));
    fth_status s = fo_work_run(&w, err);
    for (int64_t i = 0; i < fth_texts_count(w.results.failures); i++)
        fth_stage_say(call, "failed: %s", fth_texts_get(w.results.failures, i));
    if (s == FTH_OK) s = save_images(call, w.e.place.images, w.e.place.run, &w.results, err);
    if (s == FTH_OK) s = list_outputs(call, &w, err);
    fo_work_close(&w);
    return s;
}

/* ---- stitch ---- */

static fth_status stitch_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                              fth_err *err)
{
    const fth_config *cfg = call->config;
    fo_experiment e = {0};
    fo_work w = work_of(call);
    (void)show;
    w.force_config = true; /* differences are reported when it runs */
    if (is_toy(cfg)) FTH_TRY(find(cfg, &e, err));
    const bool made_up = is_toy(cfg) && (!e.raw[0] || !fth_path_exists(e.raw));
    const fo_toy toy = made_up ? toy_of(cfg) : (fo_toy){0};
    return fo_stitch_plan(call, out, is_files(cfg) ? NULL : &w, made_up ? &toy : NULL, err);
}

static fth_status stitch_run(const fth_stage_call *call, fth_err *err)
{
    fo_work w = work_of(call);
    w.keep_tiles = true; /* made by the stage before */
    return fo_stitch_run(call, is_files(call->config) ? NULL : &w, err);
}

/* ---- figures ---- */

static fth_status figures_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    return is_files(call->config) ? FTH_OK : fo_draw_files(call, list, err);
}

static fth_status figures_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                               fth_err *err)
{
    (void)show, (void)err;
    fth_stage_plan_hold(call, out, FO_DRAW_BYTES, 1u << FTH_LIB_FATHOM);
    return FTH_OK;
}

static fth_status figures_run(const fth_stage_call *call, fth_err *err)
{
    fo_job job;
    if (is_files(call->config)) return FTH_OK;
    FTH_TRY(fo_job_open(&job, fth_context_mem(call->context), call->config, err));
    const fth_status s = fo_draw_plate(call, &job, err);
    fo_job_close(&job);
    return s;
}

/* ---- the table ---- */

static const fth_stage_file index_leaves[] = {{INDEX, "what was found", false}, {0}};
static const fth_stage_file fuse_leaves[] = {{IMAGES, "where the images are", false}, {0}};
static const fth_stage_file stitch_leaves[] = {{FO_STITCHED, "what was stitched", false}, {0}};
static const fth_flag fuse_flags[] = {FTH_STAGE_FORCE, FTH_STAGE_REPLACE, {0}};

const fth_stage fo_stages[FO_STAGES] = {
    {.name = "index",
     .doing = "looking",
     .brief = "find and check the files, and map positions to wells",
     .keys = "input toy seed focus.channel focus.wells focus.times focus.map focus.ref_xy "
             "focus.layout",
     .after = "",
     .shared = true,
     .algorithm = 1,
     .leaves = index_leaves,
     .files = index_files,
     .plan = index_plan,
     .run = index_run},
    {.name = "fuse",
     .doing = "fusing",
     .brief = "fuse every stack into one sharp image",
     .keys = "input focus",
     .after = "index",
     .flag = fuse_flags,
     .algorithm = 1,
     .keeps = "images",
     .leaves = fuse_leaves,
     .plan = fuse_plan,
     .run = fuse_run},
    {.name = "stitch",
     .doing = "stitching",
     .brief = "stitch the tiles of each well",
     .keys = "input focus",
     .after = "fuse",
     .flag = fuse_flags,
     .algorithm = 1,
     .keeps = "images",
     .leaves = stitch_leaves,
     .plan = stitch_plan,
     .run = stitch_run},
    {.name = "figures",
     .doing = "drawing",
     .brief = "draw the plate: contact sheet, sharpness, focus over time",
     .keys = "",
     .after = "index fuse stitch",
     .algorithm = 1,
     .files = figures_files,
     .plan = figures_plan,
     .run = figures_run},
};

fth_status fo_model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err)
{
    (void)err;
    const bool compat = fth_config_choice(cfg, "focus.compat") == 1;
    snprintf(name, bytes, "%s", compat ? "morphseq" : fth_config_text(cfg, "focus.method"));
    return FTH_OK;
}

/* Images and tables of an experiment lie in its tree of data. */
bool fo_place(const fth_config *cfg, int i, char *path, size_t bytes)
{
    fo_experiment e = {0};
    if (i > 1 || is_files(cfg) || !fth_config_has(cfg, "input.data_root")) return false;
    if (find(cfg, &e, NULL) != FTH_OK) return false; /* the stage reports why */
    const int n = snprintf(path, bytes, "%s", i == 0 ? e.images : e.run);
    return n > 0 && (size_t)n < bytes;
}
