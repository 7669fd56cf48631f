/* command.c - see command.h. */
#include "command.h"

#include "../run/bound.h"
#include "../run/enough.h"
#include "../run/outlook.h"
#include "work.h"

#include <inttypes.h>
#include <string.h>

/* State of one call. */
typedef struct command {
    fth_answer *a;
    const char *(*value)(void *user, const char *flag);
    void *user;
    fth_config *cfg;
    fo_work w;
} command;

/* ---- output ---- */

static void tell_input(const command *c)
{
    const fo_job *e = &c->w.e;
    const fo_input *in = &e->in;
    const bool tiled = fo_job_is_tiled(e);
    const int64_t frames = in->n_stacks * in->planes;
    const double bytes =
        (double)(frames * in->rows * in->columns) * (double)fth_dtype_size(in->dtype);
    fprintf(c->a->notes,
            "input   %s   t=%" PRId64 " p=%" PRId64 " z=%" PRId64 " c=%" PRId64 " y=%" PRId64
            " x=%" PRId64 " %s   %.4g GB in %" PRId64 " frames (%" PRId64 " missing)\n",
            fth_path_name(e->place.raw), tiled ? e->n_times : in->size[FO_T],
            tiled ? e->map.mapped : in->size[FO_P], in->planes, in->size[FO_C], in->rows,
            in->columns, fth_dtype_name(in->dtype), 1e-9 * bytes, frames, in->missing_frames);
}

static void tell_wells(const command *c)
{
    const fo_job *e = &c->w.e;
    double most = -1;
    char far[40] = "";
    for (int64_t p = 0; p < e->map.n; p++)
        if (e->map.well[p] >= 0 && e->map.distance_um[p] > most) most = e->map.distance_um[p];
    if (most >= 0) snprintf(far, sizeof far, " (max %.0f um)", most);
    fprintf(c->a->notes, "wells   %" PRId64 " mapped by %s%s, %" PRId64 " rejected; plate %s\n",
            e->map.mapped, fo_map_method_name(e->map.method), far, e->map.rejected,
            fth_path_name(e->place.plate));
}

/* Acquisitions that ended early: for each well, how many of its stacks have frames. */
static void tell_coverage(const fo_work *w, FILE *out)
{
    const fo_input *in = &w->e.in;
    char name[FO_WELL_NAME];
    for (int64_t i = 0; i < in->n_stacks && !fo_job_is_tiled(&w->e);) {
        const int64_t first = i;
        int64_t empty = 0;
        for (; i < in->n_stacks && in->stack[i].p == in->stack[first].p; i++)
            empty += w->results.state[i] == FO_EMPTY;
        if (empty > 0)
            fprintf(out, "note    %s: frames_available=%" PRId64 "/%" PRId64 "\n",
                    fo_well_name(fo_job_well(&w->e, first), name), i - first - empty, i - first);
    }
}

static void tell_experiment(const command *c)
{
    const fo_job *e = &c->w.e;
    const fo_fusion *how = &c->w.pipeline.how;
    FILE *out = c->a->notes;
    char room[64];
    tell_input(c);
    tell_wells(c);
    fprintf(out, "todo    %" PRId64 " images, %" PRId64 " done\n", fo_work_count(&c->w, FO_WAITING),
            fo_work_count(&c->w, FO_SKIPPED));
    fprintf(out, "device  %s (%s)   method %s k=%d", fth_context_device(c->w.ctx),
            fth_context_device_reason(c->w.ctx), fo_method_names[how->method], how->k);
    if (how->method == FO_LOG_SMOOTH || how->method == FO_DEPTH)
        fprintf(out, " sigma=%g", how->sigma);
    fputc('\n', out);
    fo_room_format(&c->w.room, room, sizeof room);
    fprintf(out, "disk    %s\n", room);
    tell_coverage(&c->w, out);
    for (int64_t i = 0; i < fth_texts_count(e->notes); i++)
        fprintf(out, "note    %s\n", fth_texts_get(e->notes, i));
}

static void tell_facts(const command *c)
{
    if (!c->a->json) return;
    fth_json_writer *w = fth_answer_facts(c->a);
    fth_json_text(w, "exp", c->w.e.place.name);
    fth_json_text(w, "images_dir", c->w.e.place.images);
    fth_json_text(w, "run_dir", c->w.e.place.run);
    fth_json_text(w, "device", fth_context_device(c->w.ctx));
    fth_json_text(w, "device_reason", fth_context_device_reason(c->w.ctx));
    fth_json_int(w, "wells", c->w.e.map.mapped);
    fth_json_open_row(w, "images", '{');
    fth_json_int(w, "total", fo_work_total(&c->w));
    fth_json_int(w, "todo", fo_work_count(&c->w, FO_WAITING));
    fth_json_int(w, "done", fo_work_count(&c->w, FO_DONE));
    fth_json_int(w, "skipped", fo_work_count(&c->w, FO_SKIPPED));
    fth_json_int(w, "failed", fo_work_count(&c->w, FO_FAILED));
    fth_json_close(w);
}

/* "3.1 of 4.0 GiB" */
static void format_share(uint64_t bytes, const fth_mem *mem, char *text, size_t size)
{
    char a[24], b[24];
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    snprintf(text, size, "%s of %s", fth_mem_format_size(bytes, a, sizeof a),
             fth_mem_format_size(stats.budget_bytes, b, sizeof b));
}

static fth_status show_plan(void *user, const fth_plan *plan, fth_err *err)
{
    const command *c = user;
    fth_plan_needs needs;
    fth_plan_info info;
    char host[64], device[64] = "-";
    fth_plan_get_needs(plan, &needs);
    fth_plan_get_info(plan, &info);
    format_share(needs.host_bytes, fth_context_mem(c->w.ctx), host, sizeof host);
    if (fth_context_device_mem(c->w.ctx))
        format_share(needs.device_bytes, fth_context_device_mem(c->w.ctx), device, sizeof device);
    fprintf(c->a->notes, "memory  host %s, device %s, in %" PRId64 " chunks\n", host, device,
            info.chunks);
    return fth_answer_plan(c->a, "fuse", plan, err);
}

/* After the plan: it fits, so there is work to think of. */
static void tell_time(const command *c)
{
    char text[300];
    const int64_t images = fo_results_count(&c->w.results, FO_WAITING);
    if (images == 0) return;
    const fo_outlook o = fo_outlook_find(&c->w.pipeline, images, c->w.e.in.file[0].path, 0);
    fo_outlook_format(&o, text, sizeof text);
    fprintf(c->a->notes, "time    %s\n", text);
}

static fth_status plan_only(command *c, fth_err *err)
{
    tell_experiment(c);
    fth_answer_file(c->a, FTH_FILE_INPUT, c->w.e.place.raw, -1, "stacks");
    fth_answer_file(c->a, FTH_FILE_INPUT, c->w.e.place.plate, -1, "plate");
    fth_answer_file(c->a, FTH_FILE_OUTPUT, c->w.e.place.images, -1, "%" PRId64 " images",
                    fo_work_count(&c->w, FO_WAITING));
    if (fo_job_is_tiled(&c->w.e)) {
        uint64_t bytes = 0;
        FTH_TRY(fo_mosaics_plan(&c->w.mosaics, &bytes, err));
        fth_answer_memory(c->a, bytes, "tiles, canvas and aligner of each worker");
    }
    FTH_TRY(fo_pipeline_plan(&c->w.pipeline, show_plan, c, err));
    tell_time(c);
    tell_facts(c);
    return FTH_OK;
}

static void tell_failures(const command *c, const fth_texts *failures)
{
    for (int64_t i = 0; failures && i < fth_texts_count(failures); i++)
        fprintf(c->a->notes, "failed  %s\n", fth_texts_get(failures, i));
}

/* "flag" or "environment NAME" of a key. Keys without a dot are flags of the program. */
static const char *source_of(void *user, const char *key)
{
    const command *c = user;
    char question[64];
    const char *flag = strchr(key, '.') ? fo_flag_of(key) : key;
    if (!flag) return NULL;
    snprintf(question, sizeof question, "%s?", flag);
    return c->value(c->user, question);
}

/* Complete wells are stitched, even if other stacks failed. */
static fth_status fuse_and_stitch(command *c, fth_err *err)
{
    const fth_status s = fo_work_run(&c->w, err);
    if (s == FTH_OK) return fo_work_stitch(&c->w, err);
    if (s != FTH_E_JOB_FAILED) return s;
    fth_err found = {0};
    const fth_status after = fo_work_stitch(&c->w, &found);
    if (after == FTH_OK || after == FTH_E_JOB_FAILED) return s;
    *err = found;
    return after;
}

/* With --monitor, cards and process are watched meanwhile, into the run folder. */
static fth_status run_watched(command *c, fth_err *err)
{
    const char *seconds = c->value(c->user, "monitor");
    fth_monitor *monitor = NULL;
    fth_monitor_summary summary;
    double period = 0;
    char line[2048];
    if (!seconds || !fth_real_parse(seconds, &period)) return fuse_and_stitch(c, err);
    FTH_TRY(fth_folder_make_all(c->w.mem, c->w.e.place.run, err));
    const fth_monitor_options opt = {.mem = c->w.mem,
                                     .folder = c->w.e.place.run,
                                     .period_s = period,
                                     .trace = fth_context_trace(c->w.ctx)};
    FTH_TRY(fth_monitor_start(&monitor, &opt, err));
    const fth_status s = fuse_and_stitch(c, err);
    const fth_status ended = fth_monitor_stop(monitor, &summary, s == FTH_OK ? err : NULL);
    fth_monitor_format(&summary, line, sizeof line);
    fprintf(c->a->notes, "monitor %s\n", line);
    return s == FTH_OK ? ended : s;
}

static fth_status work(command *c, fth_err *err)
{
    if (c->a->plan) return plan_only(c, err);
    tell_experiment(c);
    const fth_status s = run_watched(c, err);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    tell_failures(c, c->w.results.failures);
    tell_failures(c, c->w.mosaics.failures);
    fprintf(c->a->notes, "%s: %" PRId64 " images made, %" PRId64 " existed, %" PRId64 " failed",
            c->w.e.place.images, fo_work_count(&c->w, FO_DONE), fo_work_count(&c->w, FO_SKIPPED),
            fo_work_count(&c->w, FO_FAILED));
    const int64_t empty = fo_work_count(&c->w, FO_EMPTY);
    if (empty > 0) fprintf(c->a->notes, ", %" PRId64 " without frames", empty);
    fputc('\n', c->a->notes);
    fo_bound_print(&c->w.pipeline, c->a->notes);
    tell_facts(c);
    return s;
}

static fth_status show_nothing(void *user, const fth_plan *plan, fth_err *err)
{
    (void)user, (void)plan, (void)err;
    return FTH_OK;
}

/* The same with more memory, to find how much is enough. */
static fth_status try_it(void *user, fth_context *ctx, fth_err *err)
{
    const command *c = user;
    fo_work w = {
        .ctx = ctx, .cfg = c->cfg, .overwrite = c->w.overwrite, .force_config = c->w.force_config};
    FTH_TRY(fo_work_open(&w, err));
    const fth_status s = fo_pipeline_plan(&w.pipeline, show_nothing, NULL, err);
    fo_work_close(&w);
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
    command c = {.a = &a, .value = value, .user = user, .w = {.ctx = ctx}};
    fth_status s = fo_settings_from_flags(&c.cfg, fth_context_mem(ctx), false, value, user, err);
    if (s == FTH_OK) {
        c.w.cfg = c.cfg;
        c.w.source = source_of;
        c.w.source_user = &c;
        c.w.overwrite = fth_config_bool(c.cfg, "focus.overwrite");
        c.w.force_config = fth_config_bool(c.cfg, "focus.force_config");
        s = fo_work_open(&c.w, err);
    }
    if (s == FTH_OK) {
        s = work(&c, err);
        fo_work_close(&c.w);
    }
    if (c.cfg) s = fo_enough(ctx, s, try_it, &c, err);
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
     .doc = "root folder of the data, with raw_image_data and metadata"},
    {.name = "exp", .value = FTH_FLAG_WORD, .doc = "name of the experiment"},
    {.name = "microscope", .value = FTH_FLAG_WORD, .doc = "microscope: YX1 or Keyence"},
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
        "With --microscope Keyence the raw data are a folder for each well and a file for each "
        "plane "
        "of each tile. Tiles are fused, aligned by their overlap and stitched; where they "
        "lie "
        "is in stitch.csv, and their median places in master_params.json beside the tiles.\n"
        "\n"
        "Started again it resumes. Images that were made with other settings "
        "are "
        "an error: --overwrite replaces them, --force-config keeps them.\n"
        "\n"
        "All problems are reported at once, before a pixel is read and before anything is written.",
    .max_args = 0,
    .flag = flags,
    .heeds = "plan json quiet",
    .monitors = true,
    .run = run};

const fth_verb fo_verb_plan = {
    .name = "plan",
    .args = "",
    .brief = "show what 'run' would do and need, and write nothing",
    .doc = "Takes the options of 'fathom focus run'. The exit code is 4 when it does not fit.",
    .max_args = 0,
    .flag = flags,
    .heeds = "json quiet",
    .run = plan};
