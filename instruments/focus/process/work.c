/* work.c - see work.h. */
#include "work.h"

#include "../run/tell.h"
#include "record.h"
#include "stitch.h"
#include "whole.h"

#include <inttypes.h>
#include <string.h>

/* Stacks between two saves of the tables: a few seconds of work. */
enum { BATCH = 512, SMALL = 64 };

/* ---- names ---- */

static fth_status path_of(void *user, int64_t stack, fo_port port, char path[FTH_PATH],
                          fth_err *err)
{
    const fo_work *c = user;
    char folder[FTH_PATH];
    FTH_TRY(fo_job_path(&c->e, stack, port, path, err));
    if (c->e.place.layout != FO_LAYOUT_V2 && !fo_job_is_tiled(&c->e)) return FTH_OK;
    FTH_TRY(fth_path_parent(folder, path, err));
    return fth_folder_make_all(c->mem, folder, err);
}

static void name_of(void *user, int64_t stack, char *text, size_t bytes)
{
    const fo_work *c = user;
    fo_job_stem(&c->e, stack, text, bytes);
}

static void well_of(void *user, int64_t stack, char *text, size_t bytes)
{
    const fo_work *c = user;
    char name[FO_WELL_NAME];
    snprintf(text, bytes, "%s", fo_well_name(fo_job_well(&c->e, stack), name));
}

/* "A01 t0012": in the log and in timelines. */
static void log_name(void *user, int64_t stack, char *text, size_t bytes)
{
    const fo_work *c = user;
    char name[FO_WELL_NAME];
    const fo_stack *s = &c->e.in.stack[stack];
    const int n =
        snprintf(text, bytes, "%s t%04d", fo_well_name(fo_job_well(&c->e, stack), name), (int)s->t);
    if (fo_job_is_tiled(&c->e) && n > 0 && (size_t)n < bytes)
        snprintf(text + n, bytes - (size_t)n, " p%04d", (int)s->b);
}

/* ---- the work list ---- */

/* All files of a stack are there and are not empty. */
static bool is_done(const fo_work *c, int64_t stack)
{
    if (c->before.has_moved[fo_job_well(&c->e, stack)]) return false;
    for (fo_port port = 0; port < FO_OUT_KINDS + c->pipeline.writer.others; port++) {
        char path[FTH_PATH];
        fth_path_info info;
        if (port < FO_OUT_KINDS && !c->pipeline.writer.wanted[port]) continue;
        if (fo_job_path(&c->e, stack, port, path, NULL) != FTH_OK ||
            fth_path_stat(path, &info, NULL) != FTH_OK || info.kind != FTH_PATH_FILE ||
            info.bytes == 0)
            return false;
    }
    return true;
}

/* Tiles that are normalised together are made, or measured, together: where one of a place has
 * `value`, all get it. */
static void join_places(const fo_work *c, uint8_t *of, uint8_t value)
{
    for (int64_t i = 0; i < c->results.n;) {
        int64_t end = i + 1;
        bool any = of[i] == value;
        for (; end < c->results.n && !fo_job_has_row(&c->e, end); end++)
            any = any || of[end] == value;
        for (; i < end; i++)
            if (any) of[i] = value;
    }
}

static void skip_done(fo_work *c)
{
    const bool all = c->overwrite && !c->keep_tiles;
    const bool none = fth_config_bool(c->cfg, "focus.metadata_only");
    for (int64_t i = 0; i < c->results.n; i++)
        if (c->results.state[i] != FO_EMPTY && (none || (!all && is_done(c, i))))
            c->results.state[i] = FO_SKIPPED;
    if (c->pipeline.by_place) join_places(c, c->results.state, FO_WAITING);
}

static fth_status table_paths(const fo_work *c, char metrics[FTH_PATH], char planes[FTH_PATH],
                              fth_err *err)
{
    FTH_TRY(fth_path_join(metrics, c->e.place.run, "metrics.csv", err));
    return fth_path_join(planes, c->e.place.run, "planes.csv", err);
}

static fth_status save_tables(fo_work *c, fth_err *err)
{
    char metrics[FTH_PATH], planes[FTH_PATH];
    const fo_labels labels = {name_of, well_of, c};
    FTH_TRY(table_paths(c, metrics, planes, err));
    if (c->whole.in.mem) return fo_whole_save(c, metrics, planes, err);
    return fo_tables_save(&c->results, &c->e.in, &labels, metrics, planes, err);
}

/* Saved after every batch, so that a resumed run need not measure again; after many small ones. */
static fth_status after_plan(void *user, fth_err *err)
{
    fo_work *c = user;
    const bool small = c->pipeline.by_place && c->pipeline.plans % SMALL != 0;
    return small ? FTH_OK : save_tables(c, err);
}

/* Rows of images that are there already. */
static fth_status load_tables(fo_work *c, fth_err *err)
{
    char metrics[FTH_PATH], planes[FTH_PATH];
    const fo_labels labels = {name_of, well_of, c};
    FTH_TRY(table_paths(c, metrics, planes, err));
    if (c->whole.in.mem) return fo_whole_load(c, metrics, planes, err);
    FTH_TRY(fo_tables_load(&c->results, &c->e.in, &labels, metrics, planes, err));
    if (c->pipeline.by_place) join_places(c, c->results.known, 0);
    return FTH_OK;
}

static fo_writer_options writer_options(fo_work *c)
{
    const fo_input *in = &c->e.in;
    return (fo_writer_options){.n_stacks = in->n_stacks,
                               .rows = in->rows,
                               .columns = in->columns,
                               .um_per_px = in->um_per_px,
                               /* of tiles, their mosaic has it */
                               .scalebar = fo_job_is_tiled(&c->e)
                                               ? (fo_scalebar){0}
                                               : fo_scalebar_of(c->cfg, in->um_per_px),
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

/* With --log debug some timelines are written. */
static int64_t traces_of(const fo_work *c)
{
    if (fth_config_has(c->cfg, "focus.trace_stacks"))
        return fth_config_int(c->cfg, "focus.trace_stacks");
    return fo_is_debug(c->ctx) ? 3 : 0;
}

/* Existing images are those that this run would produce, or are kept on request. */
static fth_status check_before(fo_work *c, fth_err *err)
{
    fo_before *b = &c->before;
    FTH_TRY(fo_before_read(b, &c->e, err));
    if (b->differs && !c->overwrite && !c->force_config) {
        *err = b->why;
        return b->why.status;
    }
    if (!b->any_moved || !fth_config_bool(c->cfg, "focus.metadata_only")) return FTH_OK;
    FTH_FAIL(err, FTH_E_CONFIG, "wells have other series than their images: %s",
             fth_texts_get(c->e.notes, fth_texts_count(c->e.notes) - 1));
    fth_err_hint(err, "leave out --metadata-only");
    return FTH_E_CONFIG;
}

/* ---- room on the disk ---- */

static fth_status room_path(void *user, int64_t stack, fo_port port, char path[FTH_PATH],
                            fth_err *err)
{
    return fo_job_path(user, stack, port, path, err); /* and makes no folder */
}

/* Before anything is written: images, mosaics and tables fit on their disks. */
static fth_status check_room(fo_work *c, fth_err *err)
{
    char metrics[FTH_PATH], planes[FTH_PATH];
    FTH_TRY(table_paths(c, metrics, planes, err));
    FTH_TRY(fo_pipeline_room(&c->pipeline, &c->room, room_path, &c->e, err));
    FTH_TRY(fo_mosaics_room(&c->mosaics, &c->room, err));
    const fo_results *rows = c->whole.in.mem ? &c->whole.results : &c->results;
    FTH_TRY(fo_room_add(&c->room, metrics, fo_tables_amount(rows), err));
    return fo_room_check(&c->room, fth_config_bool(c->cfg, "focus.ignore_space"), c->e.notes, err);
}

static fth_status set_up(fo_work *c, fth_err *err)
{
    fo_fusion how;
    FTH_TRY(fo_job_open(&c->e, c->mem, c->cfg, err));
    c->e.source = c->source;
    c->e.source_user = c->source_user;
    const fo_input *in = &c->e.in;
    const fo_pixels pixels = {in->um_per_px, in->significant_bits};
    FTH_TRY(fo_fusion_read(c->cfg, true, &pixels, &how, err));
    if (fo_job_is_tiled(&c->e)) how.polarity = FO_POLARITY_KEEP; /* that of their mosaic */
    FTH_TRY(check_before(c, err));
    FTH_TRY(fo_results_create(&c->results, c->mem, in->n_stacks, in->planes, err));
    c->pipeline = (fo_pipeline){.ctx = c->ctx,
                                .in = &c->e.in,
                                .how = how,
                                .writer = writer_options(c),
                                .results = &c->results,
                                .tables = true,
                                .stage = c->stage,
                                .group = BATCH,
                                .traces = traces_of(c),
                                .trace_dir = c->e.place.run,
                                .name = log_name,
                                .after = after_plan,
                                .user = c};
    c->pipeline.by_place = how.compat == FO_COMPAT_KEYENCE;
    if (how.compat == FO_COMPAT_YX1)
        c->pipeline.group = fth_config_int(c->cfg, "focus.compat_batch");
    FTH_TRY(fo_pipeline_settle(&c->pipeline, err));
    FTH_TRY(fo_pipeline_options(&c->pipeline, c->cfg, err));
    skip_done(c);
    const bool kept = fo_results_count(&c->results, FO_SKIPPED) > 0 || fo_job_has_others(&c->e);
    c->mixed = c->before.differs && kept;
    FTH_TRY(fo_work_open_mosaics(c, err));
    FTH_TRY(fo_whole_open(c, err));
    return check_room(c, err);
}

int64_t fo_work_total(const fo_work *c)
{
    return fo_job_is_tiled(&c->e) ? c->mosaics.n : c->results.n;
}

int64_t fo_work_count(const fo_work *c, fo_state state)
{
    return fo_job_is_tiled(&c->e) ? fo_mosaics_count(&c->mosaics, state)
                                  : fo_results_count(&c->results, state);
}

/* ---- doing it ---- */

fth_status fo_work_mark(fo_work *c, fth_err *err)
{
    char path[FTH_PATH], text[40];
    if (fth_config_bool(c->cfg, "focus.metadata_only")) return FTH_OK;
    FTH_TRY(fth_path_join(path, c->e.place.images, ".ff_complete", err));
    if (!fo_job_is_whole(&c->e)) return FTH_OK;
    snprintf(text, sizeof text, "rows=%" PRId64 "\n", fo_job_rows(&c->e));
    return fth_file_save(c->mem, path, text, strlen(text), err);
}

/* The record is about how images were made: it is not written if none was. */
static fth_status save_record(const fo_work *c, fth_err *err)
{
    const fo_results *r = &c->results;
    const bool none = !fo_job_is_tiled(&c->e) && fo_results_count(r, FO_WAITING) == 0 &&
                      fo_results_count(r, FO_DONE) == 0 && fo_results_count(r, FO_FAILED) == 0;
    const bool other = c->before.differs || fth_config_bool(c->cfg, "focus.metadata_only");
    return none && other ? FTH_OK : fo_record_save(c, err);
}

fth_status fo_work_run(fo_work *c, fth_err *err)
{
    const fo_results *r = &c->results;
    char marker[FTH_PATH], built[FTH_PATH];
    FTH_TRY(fo_work_claim(c, err));
    FTH_TRY(fth_folder_make_all(c->mem, c->e.place.run, err));
    FTH_TRY(fth_path_parent(built, c->e.place.metadata, err));
    FTH_TRY(fth_folder_make_all(c->mem, built, err));
    FTH_TRY(fth_folder_make_all(c->mem, c->e.place.images, err));
    FTH_TRY(fth_path_join(marker, c->e.place.images, ".ff_complete", err));
    const bool any = fo_results_count(r, FO_WAITING) > 0 || c->before.any_moved;
    if (any) FTH_TRY(fth_path_remove(c->mem, marker, err));
    FTH_TRY(fo_before_sweep(&c->before, &c->e, err));
    FTH_TRY(load_tables(c, err));
    /* A run that resumes after a kill needs to know how images were made. */
    FTH_TRY(save_record(c, err));
    const fth_status s = fo_pipeline_run(&c->pipeline, err);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    if (c->whole.in.mem) FTH_TRY(fo_whole_measure(c, err));
    fth_err *told = s == FTH_OK ? err : NULL;
    fth_status saved = save_tables(c, told);
    if (saved == FTH_OK) saved = fo_job_tables(&c->e, true, told);
    if (saved == FTH_OK) saved = save_record(c, told);
    if (saved == FTH_OK && s == FTH_OK && !fo_job_is_tiled(&c->e)) saved = fo_work_mark(c, told);
    return s == FTH_OK ? saved : s;
}

fth_status fo_work_claim(fo_work *c, fth_err *err)
{
    if (c->claim) return FTH_OK;
    const fth_status s = fth_folder_claim(&c->claim, c->mem, c->e.place.images, err);
    if (s == FTH_E_LOCKED)
        fth_err_hint(err, "wait until it ends: two runs of one experiment write the same images");
    return s;
}

fth_status fo_work_open(fo_work *c, fth_err *err)
{
    c->mem = fth_context_mem(c->ctx);
    const fth_status s = set_up(c, err);
    if (s != FTH_OK) fo_work_close(c);
    return s;
}

void fo_work_close(fo_work *c)
{
    fth_folder_release(c->claim);
    c->claim = NULL;
    fo_work_close_mosaics(c);
    fo_whole_close(c);
    fo_results_free(&c->results);
    fo_job_close(&c->e);
}
