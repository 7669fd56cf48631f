/* render_stage.c - the stage that renders the frames of a job into one container.
 *
 * A frame with the same fingerprint is reused from the part that an interrupted run left, or from
 * the container of an earlier run; all others are rendered. When every frame exists, the container
 * is rewritten and the parts are removed. So a resumed run ends with the bytes of an uninterrupted
 * one, and a series that grows keeps its frames.
 */
#include "../console/notices.h"
#include "../settings/settings.h"
#include "jobs.h"

#include <inttypes.h>
#include <string.h>

static fth_mem *mem_of(const br_job *job)
{
    return fth_context_mem(job->call->context);
}

/* ---- the container of an earlier run ---- */

typedef struct old {
    fth_h5 *file;
    fth_source data, fingerprint, check, photons, largest;
    int64_t frame; /* that is being read */
} old;

static void close_old(old *o)
{
    fth_source_close(&o->data);
    fth_source_close(&o->fingerprint);
    fth_source_close(&o->check);
    fth_source_close(&o->photons);
    fth_source_close(&o->largest);
    fth_h5_close(o->file);
    *o = (old){0};
}

static bool is_list(const fth_source *s, fth_dtype dtype, int64_t n)
{
    return s->dtype == dtype && s->n_axes == 1 && s->size[0] == n;
}

/* A damaged container is ignored: its frames are rendered again. */
static bool open_sources(old *o, const br_job *job)
{
    const br_scene *s = &job->base.scene;
    if (fth_h5_source(o->file, "/entry/data/data", &o->data, NULL) != FTH_OK ||
        fth_h5_source(o->file, "/entry/fathom/frame_tie", &o->fingerprint, NULL) != FTH_OK ||
        fth_h5_source(o->file, "/entry/fathom/frame_checksum", &o->check, NULL) != FTH_OK ||
        fth_h5_source(o->file, "/entry/fathom/photons", &o->photons, NULL) != FTH_OK ||
        fth_h5_source(o->file, "/entry/fathom/largest", &o->largest, NULL) != FTH_OK)
        return false;
    const int64_t n = o->data.n_axes == 3 ? o->data.size[0] : -1;
    return o->data.dtype == job->series.dtype && n >= 0 && o->data.size[1] == s->slow &&
           o->data.size[2] == s->fast && is_list(&o->fingerprint, FTH_I64, n) &&
           is_list(&o->check, FTH_I64, n) && is_list(&o->photons, FTH_F64, n) &&
           is_list(&o->largest, FTH_F64, n);
}

/* A container lacks the files of single frames, so with those every frame is rendered. */
static void open_old(old *o, const br_job *job)
{
    char path[FTH_PATH];
    *o = (old){0};
    for (int k = 0; k < BR_FRAME_FILES; k++)
        if (job->wanted[k]) return;
    if (br_container_path(path, job->call, NULL) != FTH_OK || !fth_path_exists(path) ||
        fth_h5_open(&o->file, mem_of(job), path, NULL) != FTH_OK)
        return;
    if (!open_sources(o, job)) close_old(o);
}

/* Row after row of one frame, with its checksum, to `sink` where there is one. */
static fth_status read_old(old *o, const br_job *job, int64_t i, const fth_sink *sink,
                           uint64_t *check, fth_err *err)
{
    void *row = NULL;
    const int64_t slow = o->data.size[1], fast = o->data.size[2], n3[3] = {1, 1, fast},
                  n2[2] = {1, fast};
    FTH_TRY(fth_mem_take(mem_of(job), FTH_MEM_ANY, (uint64_t)(fast * fth_dtype_size(o->data.dtype)),
                         "row", &row, err));
    fth_status s = FTH_OK;
    *check = 0;
    for (int64_t r = 0; s == FTH_OK && r < slow; r++) {
        const int64_t lo3[3] = {i, r, 0}, lo2[2] = {r, 0};
        s = o->data.read(o->data.self, lo3, n3, row, err);
        *check = br_check_add(*check, o->data.dtype, r * fast, fast, row);
        if (s == FTH_OK && sink) s = sink->write(sink->self, lo2, n2, row, err);
    }
    const fth_status end = fth_mem_release(mem_of(job), row, err);
    return s != FTH_OK ? s : end;
}

static bool find_old(old *o, const br_job *job, int64_t i, br_fact *fact)
{
    const int64_t n = 1;
    uint64_t fingerprint, check, found;
    if (!o->file || i >= o->data.size[0] ||
        o->fingerprint.read(o->fingerprint.self, &i, &n, &fingerprint, NULL) != FTH_OK ||
        fingerprint != fact->fingerprint ||
        o->check.read(o->check.self, &i, &n, &check, NULL) != FTH_OK ||
        o->photons.read(o->photons.self, &i, &n, &fact->photons, NULL) != FTH_OK ||
        o->largest.read(o->largest.self, &i, &n, &fact->largest, NULL) != FTH_OK ||
        read_old(o, job, i, NULL, &found, NULL) != FTH_OK)
        return false;
    fact->old = found == check;
    return fact->old;
}

/* ---- frames ---- */

static fth_status make_folder(const br_job *job, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, job->call->model_dir, BR_PARTS, err));
    return fth_folder_make(mem_of(job), path, err);
}

static bool is_part(const char *name)
{
    const size_t digits = strspn(name, "0123456789");
    return digits >= 5 && name[digits] == '.';
}

/* Removes only our own files: a folder with others stays. A failure to remove is harmless. */
static fth_status remove_parts(const br_job *job, fth_err *err)
{
    char dir[FTH_PATH], path[FTH_PATH];
    fth_texts *name = NULL;
    bool others = false;
    if (fth_ranks_rank(fth_context_ranks(job->call->context)) > 0) return FTH_OK;
    FTH_TRY(fth_path_join(dir, job->call->model_dir, BR_PARTS, err));
    if (fth_path_kind_of(dir) != FTH_PATH_FOLDER) return FTH_OK;
    FTH_TRY(fth_folder_list(&name, mem_of(job), dir, err));
    for (int64_t i = 0; i < fth_texts_count(name); i++) {
        const char *file = fth_texts_get(name, i);
        if (!is_part(file))
            others = true;
        else if (fth_path_join(path, dir, file, NULL) == FTH_OK)
            fth_path_discard(mem_of(job), path);
    }
    fth_texts_free(name);
    if (!others) fth_folder_remove(NULL, dir, NULL);
    return FTH_OK;
}

static fth_status stopped(const br_job *job, int64_t done, fth_err *err)
{
    FTH_FAIL(err, FTH_E_CANCELLED, "it was stopped after frame %" PRId64 " of %" PRId64, done,
             job->series.frames);
    fth_err_hint(err, "start it again: it resumes from there");
    return FTH_E_CANCELLED;
}

static bool report(const br_job *job, int64_t done)
{
    const br_fact *f = &job->fact[done > 0 ? done - 1 : 0];
    return fth_stage_report(job->call, &(fth_stage_progress){.done = done,
                                                             .total = job->series.frames,
                                                             .what = "frame",
                                                             .number = {{"photons", f->photons},
                                                                        {"largest", f->largest}}});
}

static fth_status make_one(br_job *job, const br_experiment *e, int64_t i, fth_err *err)
{
    const fth_status s = br_frame_make(job, e, i, &job->fact[i], err);
    if (s != FTH_E_CANCELLED) return s;
    fth_err_clear(err); /* a partial frame is not saved: it is rendered again */
    return stopped(job, i, err);
}

static fth_status make_frames(br_job *job, old *o, fth_err *err)
{
    const int64_t frames = job->series.frames;
    const bool fresh = !fth_stage_may_resume(job->call);
    int64_t kept = 0;
    for (int64_t i = 0; i < frames; i++) {
        br_experiment e;
        br_fact *fact = &job->fact[i];
        FTH_TRY(br_job_frame(job, i, &e, err));
        *fact = (br_fact){.fingerprint = br_job_fingerprint(job, &e)};
        if (!fresh && (find_old(o, job, i, fact) || br_frame_found(job, i, fact)))
            kept++;
        else
            FTH_TRY(make_one(job, &e, i, err));
        if (!report(job, i + 1) && i + 1 < frames) return stopped(job, i + 1, err);
    }
    if (kept)
        fth_stage_say(job->call, "%" PRId64 " of %" PRId64 " frames were there already", kept,
                      frames);
    return FTH_OK;
}

static fth_status fill(br_job *job, old *o, br_nxmx *x, fth_err *err)
{
    for (int64_t i = 0; i < job->series.frames; i++) {
        br_experiment e;
        br_fact *fact = &job->fact[i];
        const fth_sink sink = br_nxmx_frame(x, i);
        if (fact->old) {
            uint64_t check;
            FTH_TRY(read_old(o, job, i, &sink, &check, err));
        } else {
            FTH_TRY(br_job_frame(job, i, &e, err));
            FTH_TRY(br_frame_store(job, &e, i, &sink, err));
        }
        fact->check = x->check;
        if (fth_stage_is_cancelled(job->call)) return stopped(job, job->series.frames, err);
    }
    return FTH_OK;
}

static fth_status assemble(br_job *job, old *o, fth_err *err)
{
    char path[FTH_PATH];
    br_nxmx x;
    FTH_TRY(br_container_path(path, job->call, err));
    FTH_TRY(br_nxmx_create(&x, job, path, err));
    fth_status s = br_job_reserve(job, o->file ? 0 : 1, false, err); /* as it was planned */
    if (s == FTH_OK) s = fill(job, o, &x, err);
    if (s == FTH_OK) return br_nxmx_commit(&x, err);
    br_nxmx_abandon(&x);
    return s;
}

/* ---- the stage ---- */

fth_status br_render_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const char *const title[BR_FRAME_FILES] = {"photons", "image", "image with noise",
                                                      "picture", "CBF image"};
    br_input_file input[BR_INPUT_FILES];
    char path[FTH_PATH];
    const int n = br_job_inputs(call->config, input);
    for (int i = 0; i < n; i++)
        FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, input[i].path, input[i].key, err));
    FTH_TRY(br_container_path(path, call, err));
    FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, "frames", err));
    const int64_t frames = br_frame_count(call->config);
    for (int k = 0; k < BR_FRAME_FILES; k++)
        for (int64_t i = 0; fth_config_bool(call->config, br_frame_keys[k]) && i < frames; i++) {
            FTH_TRY(br_frame_path(path, call->model_dir, (br_frame_file)k, i, err));
            FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, title[k], err));
        }
    return FTH_OK;
}

fth_status br_render_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show, fth_err *err)
{
    br_job job;
    FTH_TRY(br_job_open(&job, call, err));
    fth_status s = br_job_reserve(&job, 2, true, err); /* an old one, and the new */
    if (s == FTH_OK) s = br_frame_plan(&job, out, show, err);
    snprintf(out->text, sizeof out->text, "%" PRId64 " frames of %" PRId64 "x%" PRId64,
             job.series.frames, job.base.scene.fast, job.base.scene.slow);
    br_job_close(&job);
    return s;
}

static fth_status say_notices(const br_job *job, fth_err *err)
{
    br_flags flags;
    char text[BR_NOTICE];
    FTH_TRY(br_job_flags(&flags, job->call->config, err));
    if (br_notice_places(&flags, text, sizeof text)) fth_stage_say(job->call, "NOTICE: %s", text);
    if (br_notice_header(&job->base, job->wanted[BR_CBF], text, sizeof text))
        fth_stage_say(job->call, "NOTICE: %s", text);
    return FTH_OK;
}

fth_status br_render_run(const fth_stage_call *call, fth_err *err)
{
    br_job job;
    old o = {0};
    FTH_TRY(br_job_open(&job, call, err));
    fth_status s = say_notices(&job, err);
    if (s == FTH_OK) s = br_job_start(&job, err);
    if (s == FTH_OK) s = make_folder(&job, err);
    if (s == FTH_OK && fth_stage_may_resume(call)) open_old(&o, &job);
    if (s == FTH_OK) s = br_job_reserve(&job, o.file ? 1 : 2, true, err);
    if (s == FTH_OK) s = make_frames(&job, &o, err);
    if (s == FTH_OK) {
        fth_stage_point(call, "before_outputs");
        br_job_release(&job);
        fth_mem_trim(mem_of(&job)); /* release the memory of the render */
        s = assemble(&job, &o, err);
    }
    close_old(&o);
    if (s == FTH_OK) s = remove_parts(&job, err);
    br_job_close(&job);
    return s;
}
