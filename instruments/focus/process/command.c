/* command.c - see command.h. */
#include "command.h"

#include "../run/bound.h"
#include "record.h"

#include <inttypes.h>
#include <string.h>

/* Stacks between two savings of the tables: some seconds of work. */
enum { BATCH = 512 };

/* All that one call holds. */
typedef struct command {
    fth_context *ctx;
    fth_mem *mem;
    fth_answer *a;
    fth_config *cfg;
    fo_job e;
    fo_results results;
    fo_pipeline pipeline;
} command;

/* ---- names ---- */

static fth_status path_of(void *user, int64_t stack, fo_port port, char path[FTH_PATH],
                          fth_err *err)
{
    const command *c = user;
    char folder[FTH_PATH];
    FTH_TRY(fo_job_path(&c->e, stack, port, path, err));
    if (c->e.place.layout != FO_LAYOUT_V2) return FTH_OK;
    FTH_TRY(fth_path_parent(folder, path, err));
    return fth_folder_make_all(c->mem, folder, err);
}

static void name_of(void *user, int64_t stack, char *text, size_t bytes)
{
    const command *c = user;
    fo_job_stem(&c->e, stack, text, bytes);
}

static void well_of(void *user, int64_t stack, char *text, size_t bytes)
{
    const command *c = user;
    char name[FO_WELL_NAME];
    snprintf(text, bytes, "%s", fo_well_name(fo_job_well(&c->e, stack), name));
}

/* ---- what is to do ---- */

/* All files of a stack are there and are not empty. */
static bool is_done(const command *c, int64_t stack)
{
    for (fo_port port = 0; port < FO_OUT_KINDS + c->pipeline.writer.others; port++) {
        char path[FTH_PATH];
        fth_path_info info;
        if (port < FO_OUT_KINDS && !c->pipeline.writer.wanted[port]) continue;
        if (fo_job_path(&c->e, stack, port, path, NULL) != FTH_OK ||
            fth_path_stat(path, &info, NULL) != FTH_OK || info.bytes == 0)
            return false;
    }
    return true;
}

static void skip_done(command *c)
{
    const bool all = fth_config_bool(c->cfg, "focus.overwrite");
    const bool none = fth_config_bool(c->cfg, "focus.metadata_only");
    for (int64_t i = 0; i < c->results.n; i++)
        if (none || (!all && is_done(c, i))) c->results.state[i] = FO_SKIPPED;
}

static fth_status table_paths(const command *c, char metrics[FTH_PATH], char planes[FTH_PATH],
                              fth_err *err)
{
    FTH_TRY(fth_path_join(metrics, c->e.place.run, "metrics.csv", err));
    return fth_path_join(planes, c->e.place.run, "planes.csv", err);
}

/* After every batch, so that one who resumes need not measure again. */
static fth_status save_tables(void *user, fth_err *err)
{
    command *c = user;
    char metrics[FTH_PATH], planes[FTH_PATH];
    const fo_labels labels = {name_of, well_of, c};
    FTH_TRY(table_paths(c, metrics, planes, err));
    return fo_tables_save(&c->results, &c->e.in, &labels, metrics, planes, err);
}

/* Rows of images that are there already. */
static fth_status load_tables(command *c, fth_err *err)
{
    char metrics[FTH_PATH], planes[FTH_PATH];
    const fo_labels labels = {name_of, well_of, c};
    FTH_TRY(table_paths(c, metrics, planes, err));
    return fo_tables_load(&c->results, &c->e.in, &labels, metrics, planes, err);
}

static fo_writer_options writer_options(command *c)
{
    const fo_input *in = &c->e.in;
    return (fo_writer_options){.n_stacks = in->n_stacks,
                               .rows = in->rows,
                               .columns = in->columns,
                               .um_per_px = in->um_per_px,
                               .depth_unit = in->z_step_um > 0 ? in->z_step_um : 1,
                               .depth_offset = (double)in->first_plane,
                               .first_plane = in->first_plane,
                               .planes = in->file_planes,
                               .format = c->e.format,
                               .wanted = {true, fth_config_bool(c->cfg, "focus.index_map"),
                                          fth_config_bool(c->cfg, "focus.depth_map"),
                                          fth_config_bool(c->cfg, "focus.confidence")},
                               .others = (int)in->others,
                               .path = path_of,
                               .user = c};
}

static fth_status set_up(command *c, fth_err *err)
{
    fo_fusion how;
    FTH_TRY(fo_job_open(&c->e, c->mem, c->cfg, err));
    const fo_input *in = &c->e.in;
    const fo_pixels pixels = {in->um_per_px, in->significant_bits};
    FTH_TRY(fo_fusion_read(c->cfg, true, &pixels, &how, err));
    if (!fth_config_bool(c->cfg, "focus.overwrite") &&
        !fth_config_bool(c->cfg, "focus.force_config"))
        FTH_TRY(fo_record_compare(&c->e, err));
    FTH_TRY(fo_results_create(&c->results, c->mem, in->n_stacks, in->planes, err));
    c->pipeline = (fo_pipeline){.ctx = c->ctx,
                                .in = &c->e.in,
                                .how = how,
                                .writer = writer_options(c),
                                .results = &c->results,
                                .tables = true,
                                .group = BATCH,
                                .after = save_tables,
                                .user = c};
    if (how.compat == FO_COMPAT_YX1)
        c->pipeline.group = fth_config_int(c->cfg, "focus.compat_batch");
    FTH_TRY(fo_pipeline_settle(&c->pipeline, err));
    skip_done(c);
    return FTH_OK;
}

/* ---- telling ---- */

static void tell_experiment(const command *c)
{
    const fo_job *e = &c->e;
    const fo_input *in = &e->in;
    char bytes[24];
    const uint64_t all =
        (uint64_t)(in->n_stacks * in->planes * in->rows * in->columns * fth_dtype_size(in->dtype));
    FILE *out = c->a->notes;
    fprintf(out,
            "input   %s: %" PRId64 " stacks of z=%" PRId64 " y=%" PRId64 " x=%" PRId64
            " %s, %s, %" PRId64 " frames missing\n",
            fth_path_name(e->place.raw), in->n_stacks, in->planes, in->rows, in->columns,
            fth_dtype_name(in->dtype), fth_mem_format_size(all, bytes, sizeof bytes),
            in->missing_frames);
    fprintf(out, "wells   %" PRId64 " mapped by %s, %" PRId64 " rejected\n", e->map.mapped,
            fo_map_method_name(e->map.method), e->map.rejected);
    fprintf(out, "todo    %" PRId64 " images, %" PRId64 " done\n",
            fo_results_count(&c->results, FO_WAITING), fo_results_count(&c->results, FO_SKIPPED));
    fprintf(out, "device  %s (%s), method %s\n", fth_context_device(c->ctx),
            fth_context_device_reason(c->ctx), fo_method_names[c->pipeline.how.method]);
    for (int64_t i = 0; i < fth_texts_count(e->notes); i++)
        fprintf(out, "note    %s\n", fth_texts_get(e->notes, i));
}

static void tell_facts(const command *c)
{
    const fo_results *r = &c->results;
    if (!c->a->json) return;
    fth_json_writer *w = fth_answer_facts(c->a);
    fth_json_text(w, "exp", c->e.place.name);
    fth_json_text(w, "images_dir", c->e.place.images);
    fth_json_text(w, "run_dir", c->e.place.run);
    fth_json_int(w, "wells", c->e.map.mapped);
    fth_json_open_row(w, "images", '{');
    fth_json_int(w, "total", r->n);
    fth_json_int(w, "todo", fo_results_count(r, FO_WAITING));
    fth_json_int(w, "done", fo_results_count(r, FO_DONE));
    fth_json_int(w, "skipped", fo_results_count(r, FO_SKIPPED));
    fth_json_int(w, "failed", fo_results_count(r, FO_FAILED));
    fth_json_close(w);
}

static fth_status show_plan(void *user, const fth_plan *plan, fth_err *err)
{
    return fth_answer_plan(user, "fuse", plan, err);
}

static fth_status plan_only(command *c, fth_err *err)
{
    tell_experiment(c);
    fth_answer_file(c->a, FTH_FILE_INPUT, c->e.place.raw, -1, "stacks");
    fth_answer_file(c->a, FTH_FILE_INPUT, c->e.place.plate, -1, "plate");
    fth_answer_file(c->a, FTH_FILE_OUTPUT, c->e.place.images, -1, "%" PRId64 " images",
                    fo_results_count(&c->results, FO_WAITING));
    FTH_TRY(fo_pipeline_plan(&c->pipeline, show_plan, c->a, err));
    tell_facts(c);
    return FTH_OK;
}

/* ---- doing it ---- */

/* The images are all there: others may look at the folder. */
static fth_status save_marker(command *c, fth_err *err)
{
    char path[FTH_PATH], text[40];
    if (fth_config_bool(c->cfg, "focus.metadata_only")) return FTH_OK;
    FTH_TRY(fth_path_join(path, c->e.place.images, ".ff_complete", err));
    snprintf(text, sizeof text, "rows=%" PRId64 "\n", fo_job_rows(&c->e));
    return fth_file_save(c->mem, path, text, strlen(text), err);
}

static fth_status fuse(command *c, fth_err *err)
{
    const fo_results *r = &c->results;
    char marker[FTH_PATH], built[FTH_PATH];
    FTH_TRY(fth_folder_make_all(c->mem, c->e.place.run, err));
    FTH_TRY(fth_path_parent(built, c->e.place.metadata, err));
    FTH_TRY(fth_folder_make_all(c->mem, built, err));
    FTH_TRY(fth_folder_make_all(c->mem, c->e.place.images, err));
    FTH_TRY(fth_path_join(marker, c->e.place.images, ".ff_complete", err));
    FTH_TRY(load_tables(c, err));
    const bool any = fo_results_count(r, FO_WAITING) > 0;
    if (any) FTH_TRY(fth_path_remove(c->mem, marker, err));
    /* Who resumes after a kill has to know what made the images. */
    FTH_TRY(fo_record_save(&c->e, r, NULL, c->ctx, err));
    const fth_status s = fo_pipeline_run(&c->pipeline, err);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    fth_err *told = s == FTH_OK ? err : NULL;
    fth_status saved = save_tables(c, told);
    if (saved == FTH_OK) saved = fo_job_tables(&c->e, true, told);
    if (saved == FTH_OK)
        saved = fo_record_save(&c->e, r, c->pipeline.plans ? &c->pipeline : NULL, c->ctx, told);
    if (saved == FTH_OK && s == FTH_OK) saved = save_marker(c, told);
    return s == FTH_OK ? saved : s;
}

static fth_status work(command *c, fth_err *err)
{
    if (c->a->plan) return plan_only(c, err);
    tell_experiment(c);
    const fth_status s = fuse(c, err);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    for (int64_t i = 0; i < fth_texts_count(c->results.failures); i++)
        fprintf(c->a->notes, "failed  %s\n", fth_texts_get(c->results.failures, i));
    fprintf(c->a->notes,
            "%s: %" PRId64 " images made, %" PRId64 " were there, %" PRId64 " failed\n",
            c->e.place.images, fo_results_count(&c->results, FO_DONE),
            fo_results_count(&c->results, FO_SKIPPED), fo_results_count(&c->results, FO_FAILED));
    fo_bound_print(&c->pipeline, c->a->notes);
    tell_facts(c);
    return s;
}

static fth_status run_with(fth_context *ctx, const char *(*value)(void *user, const char *flag),
                           void *user, FILE *out, bool plan, fth_err *err)
{
    fth_err own = {0};
    fth_answer a;
    if (!err) err = &own;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    a.plan = a.plan || plan;
    command c = {.ctx = ctx, .mem = fth_context_mem(ctx), .a = &a};
    fth_status s = fo_settings_from_flags(&c.cfg, c.mem, false, value, user, err);
    if (s == FTH_OK) s = set_up(&c, err);
    if (s == FTH_OK) s = work(&c, err);
    fo_results_free(&c.results);
    fo_job_close(&c.e);
    const fth_status closed = fth_config_destroy(c.cfg, s == FTH_OK ? err : NULL);
    return fth_answer_end(&a, s == FTH_OK ? closed : s, err);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    (void)n_args, (void)arg;
    return run_with(ctx, value, user, out, false, err);
}

static fth_status plan(fth_context *ctx, int n_args, char *const *arg,
                       const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                       fth_err *err)
{
    (void)n_args, (void)arg;
    return run_with(ctx, value, user, out, true, err);
}

#define BOTH(...) __VA_ARGS__,
#define STACK(...)
#define PLATE(...) __VA_ARGS__,
static const fth_flag flags[] = {
    {.name = "data-root",
     .value = FTH_FLAG_DIR,
     .doc = "tree of data, with raw_image_data and metadata"},
    {.name = "exp", .value = FTH_FLAG_WORD, .doc = "name of the experiment"},
    {.name = "microscope", .value = FTH_FLAG_WORD, .doc = "which wrote it: YX1"},
#include "../settings/flags.inc"
    {0}};

const fth_verb fo_verb_run = {
    .name = "run",
    .args = "",
    .brief = "fuse all stacks of a plate, and write its images and tables",
    .doc =
        "Finds the raw file and the plate's table of an experiment, maps positions of the stage to "
        "wells, fuses every stack that has no image yet, and writes the images, the table of "
        "metadata, and a folder with run.json, metrics.csv, planes.csv, series_well_mapping.csv "
        "and "
        "mapping_provenance.json.\n"
        "\n"
        "Started again it goes on where it was ended. Images that were made with other settings "
        "are "
        "refused: --overwrite makes them again, --force-config keeps them.\n"
        "\n"
        "What is wrong is told at once, before a pixel is read and before anything is written.",
    .max_args = 0,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};

const fth_verb fo_verb_plan = {
    .name = "plan",
    .args = "",
    .brief = "show what 'run' would do and take, and write nothing",
    .doc = "Takes the options of 'fathom focus run'. The exit code is 4 when it does not fit.",
    .max_args = 0,
    .flag = flags,
    .heeds = "json quiet",
    .run = plan};
