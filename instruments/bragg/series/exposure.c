/* exposure.c - one frame of a job: rendered into a file of its own, then copied into the container.
 *
 * The file is the frame's part: photons as f32 and a hash of all they are made from. It is renamed
 * into place when all files of the frame are on the disk, so a killed job finds finished frames by
 * names and hashes, and resumes with the rest.
 */
#include "../image/cbf.h"
#include "../image/image.h"
#include "../image/smv_header.h"
#include "../settings/settings.h"
#include "jobs.h"

#include <inttypes.h>
#include <string.h>

/* ---- names ---- */

fth_status br_container_path(char path[FTH_PATH], const fth_stage_call *call, fth_err *err)
{
    return fth_path_join(path, call->model_dir, fth_config_text(call->config, "output.container"),
                         err);
}

fth_status br_part_path(char path[FTH_PATH], const char *dir, int64_t i, bool done, fth_err *err)
{
    char name[64];
    snprintf(name, sizeof name, BR_PARTS "/%05" PRId64 ".%s", i + 1, done ? "safetensors" : "new");
    return fth_path_join(path, dir, name, err);
}

fth_status br_frame_path(char path[FTH_PATH], const char *dir, br_frame_file kind, int64_t i,
                         fth_err *err)
{
    static const char *const form[BR_FRAME_FILES][2] = {[BR_FLOAT] = {"floatimage", "bin"},
                                                        [BR_INT] = {"intimage", "img"},
                                                        [BR_NOISE] = {"noiseimage", "img"},
                                                        [BR_PGM] = {"image", "pgm"},
                                                        [BR_CBF] = {"image", "cbf"}};
    char name[64];
    snprintf(name, sizeof name, "%s_%05" PRId64 ".%s", form[kind][0], i + 1, form[kind][1]);
    return fth_path_join(path, dir, name, err);
}

/* ---- parts ---- */

static fth_mem *mem_of(const br_job *job)
{
    return fth_context_mem(job->call->context);
}

static void hex_of(uint64_t v, char text[20])
{
    snprintf(text, 20, "%016" PRIx64, v);
}

static bool files_are_there(const br_job *job, int64_t i)
{
    char path[FTH_PATH];
    for (int k = 0; k < BR_FRAME_FILES; k++)
        if (job->wanted[k] &&
            (br_frame_path(path, job->call->model_dir, (br_frame_file)k, i, NULL) != FTH_OK ||
             !fth_path_exists(path)))
            return false;
    return true;
}

static fth_status open_part(const br_job *job, const char *path, const char *tensor,
                            fth_source *out, fth_err *err)
{
    fth_safetensors *f = NULL;
    *out = (fth_source){0};
    FTH_TRY(fth_safetensors_open(&f, mem_of(job), path, err));
    const fth_status s = fth_safetensors_source(f, tensor, out, err);
    fth_safetensors_close(f);
    return s;
}

static bool read_numbers(fth_safetensors *f, br_fact *fact)
{
    fth_source source;
    const int64_t lo = 0, n = 2;
    double v[2];
    if (fth_safetensors_source(f, "numbers", &source, NULL) != FTH_OK) return false;
    const bool ok = source.dtype == FTH_F64 && source.n_axes == 1 && source.size[0] == n &&
                    source.read(source.self, &lo, &n, v, NULL) == FTH_OK;
    fth_source_close(&source);
    if (ok) fact->photons = v[0], fact->largest = v[1];
    return ok;
}

bool br_frame_found(const br_job *job, int64_t i, br_fact *fact)
{
    char path[FTH_PATH], fingerprint[20];
    fth_safetensors *f = NULL;
    if (br_part_path(path, job->call->model_dir, i, true, NULL) != FTH_OK ||
        !fth_path_exists(path) || !files_are_there(job, i))
        return false;
    if (fth_safetensors_open(&f, mem_of(job), path, NULL) != FTH_OK) return false;
    const char *then = fth_safetensors_meta(f, "tie");
    hex_of(fact->fingerprint, fingerprint);
    const bool same = then && strcmp(then, fingerprint) == 0 &&
                      fth_safetensors_verify(f, NULL, NULL) == FTH_OK && read_numbers(f, fact);
    fth_safetensors_close(f);
    return same;
}

/* ---- rendering ---- */

static bool go_on(void *user, const fth_progress *progress)
{
    (void)progress;
    return !fth_stage_is_cancelled(user);
}

static br_wanted wanted(const br_job *job)
{
    return (br_wanted){.ints = job->wanted[BR_INT],
                       .pgm = job->wanted[BR_PGM],
                       .noise = job->wanted[BR_NOISE],
                       .cbf = job->wanted[BR_CBF],
                       .counts = job->series.counts};
}

static fth_status render_into(const br_job *job, br_passes *p, fth_safetensors_writer *w,
                              br_statistics *st, fth_err *err)
{
    fth_sink image, numbers;
    int64_t latch;
    fth_run_report report;
    const fth_run_options opt = {go_on, (void *)(uintptr_t)job->call};
    FTH_TRY(fth_safetensors_sink(w, "photons", &image, err));
    FTH_TRY(fth_safetensors_sink(w, "numbers", &numbers, err));
    FTH_TRY(br_passes_latch(p, &opt, &latch, err));
    FTH_TRY(br_passes_render(p, &image, &opt, &report, st, err));
    fth_stage_account(job->call, &report);
    const double v[2] = {st->sum, (double)st->max};
    const int64_t lo = 0, n = 2;
    FTH_TRY(numbers.write(numbers.self, &lo, &n, v, err));
    return numbers.commit(numbers.self, err);
}

static fth_status make_part(const br_job *job, const br_experiment *e, br_passes *p,
                            const char *path, const br_fact *fact, br_statistics *st, fth_err *err)
{
    char fingerprint[20];
    const fth_file_item item[2] = {
        {"photons", FTH_F32, 2, {e->scene.slow, e->scene.fast}, "slow fast"},
        {"numbers", FTH_F64, 1, {2}, NULL}};
    hex_of(fact->fingerprint, fingerprint);
    const fth_file_meta meta = {"tie", fingerprint};
    const fth_safetensors_options opt = {.meta = &meta, .n_meta = 1};
    fth_safetensors_writer *w = NULL;
    FTH_TRY(fth_safetensors_create(&w, mem_of(job), path, item, 2, &opt, err));
    const fth_status s = render_into(job, p, w, st, err);
    if (s == FTH_OK) return fth_safetensors_commit(w, err);
    fth_safetensors_abandon(w);
    return s;
}

/* ---- files of a frame ---- */

/* Pixels of the CBF before compression; among the parts, so that it is removed with them. */
static fth_status raw_path(char path[FTH_PATH], const br_job *job, int64_t i, fth_err *err)
{
    char name[64];
    snprintf(name, sizeof name, BR_PARTS "/%05" PRId64 ".raw", i + 1);
    return fth_path_join(path, job->call->model_dir, name, err);
}

static fth_status create_file(const br_job *job, const br_experiment *e, br_frame_file kind,
                              int64_t i, const br_statistics *st, fth_sink *out, fth_err *err)
{
    static const fth_dtype dtype[BR_FRAME_FILES] = {[BR_FLOAT] = FTH_F32,
                                                    [BR_INT] = FTH_U16,
                                                    [BR_NOISE] = FTH_U16,
                                                    [BR_PGM] = FTH_U8,
                                                    [BR_CBF] = FTH_I32};
    char path[FTH_PATH];
    br_smv_head head = {.bytes = 0};
    *out = (fth_sink){0};
    if (!job->wanted[kind]) return FTH_OK;
    FTH_TRY(kind == BR_CBF ? raw_path(path, job, i, err)
                           : br_frame_path(path, job->call->model_dir, kind, i, err));
    if (kind == BR_PGM)
        head.bytes = (int64_t)br_pgm_header(head.text, sizeof head.text, e->scene.fast,
                                            e->scene.slow, st->pgm_scale);
    else if (kind == BR_INT || kind == BR_NOISE)
        br_smv_header(e, 16, job->header_bytes, &head);
    const fth_raw_layout layout = {.dtype = dtype[kind],
                                   .n_axes = 2,
                                   .size = {e->scene.slow, e->scene.fast},
                                   .offset = (uint64_t)head.bytes};
    return fth_raw_create(out, mem_of(job), path, &layout, head.text, err);
}

static fth_status pack_cbf(const br_job *job, const br_experiment *e, int64_t i, fth_err *err)
{
    char raw[FTH_PATH], path[FTH_PATH];
    const fth_raw_layout i32 = {
        .dtype = FTH_I32, .n_axes = 2, .size = {e->scene.slow, e->scene.fast}};
    fth_source pixels;
    fth_sink sink;
    if (!job->wanted[BR_CBF]) return FTH_OK;
    FTH_TRY(raw_path(raw, job, i, err));
    FTH_TRY(br_frame_path(path, job->call->model_dir, BR_CBF, i, err));
    FTH_TRY(fth_raw_open(&pixels, mem_of(job), raw, &i32, err));
    fth_status s = br_cbf_write(&sink, path, e, &pixels, err);
    fth_source_close(&pixels);
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    fth_path_discard(mem_of(job), raw);
    return s;
}

static fth_status write_files(const br_job *job, const br_experiment *e, br_passes *p, int64_t i,
                              fth_source image, br_statistics *st, fth_err *err)
{
    fth_sink sink[BR_FRAME_FILES] = {{0}};
    fth_status s = br_passes_measure(p, image, st, err);
    for (int k = 0; s == FTH_OK && k < BR_FRAME_FILES; k++)
        s = create_file(job, e, (br_frame_file)k, i, st, &sink[k], err);
    const br_pixel_sinks pixels = {
        .ints = sink[BR_INT], .pgm = sink[BR_PGM], .noise = sink[BR_NOISE], .cbf = sink[BR_CBF]};
    if (s == FTH_OK) s = br_passes_store(p, image, &pixels, st, err);
    if (s == FTH_OK && job->wanted[BR_FLOAT])
        s = fth_source_copy(&image, &sink[BR_FLOAT], mem_of(job), NULL, NULL, err);
    for (int k = 0; k < BR_FRAME_FILES; k++) fth_sink_close(&sink[k]);
    return s == FTH_OK ? pack_cbf(job, e, i, err) : s;
}

static bool wants_files(const br_job *job)
{
    bool any = false;
    for (int k = 0; k < BR_FRAME_FILES; k++) any = any || job->wanted[k];
    return any;
}

static fth_status make(const br_job *job, const br_experiment *e, br_passes *p, int64_t i,
                       br_fact *fact, fth_err *err)
{
    char new[FTH_PATH], path[FTH_PATH];
    br_statistics st;
    fth_source image;
    FTH_TRY(br_part_path(new, job->call->model_dir, i, false, err));
    FTH_TRY(br_part_path(path, job->call->model_dir, i, true, err));
    FTH_TRY(make_part(job, e, p, new, fact, &st, err));
    fact->photons = st.sum;
    fact->largest = (double)st.max;
    if (wants_files(job)) {
        FTH_TRY(open_part(job, new, "photons", &image, err));
        const fth_status s = write_files(job, e, p, i, image, &st, err);
        fth_source_close(&image);
        FTH_TRY(s);
    }
    return fth_path_rename(mem_of(job), new, path, err);
}

fth_status br_frame_make(const br_job *job, const br_experiment *e, int64_t i, br_fact *fact,
                         fth_err *err)
{
    br_passes *p = NULL;
    FTH_TRY(br_passes_create(&p, job->call->context, e, wanted(job), err));
    const fth_status s = make(job, e, p, i, fact, err);
    br_passes_destroy(p);
    return s;
}

/* ---- into the container ---- */

static fth_graph *build(const br_job *job, const br_experiment *e, fth_source photons, fth_val *out)
{
    static const double most[FTH_DTYPE_COUNT] = {
        [FTH_I32] = 2147483647.0, [FTH_U16] = 65535.0, [FTH_F32] = 1e15};
    fth_graph *g = fth_graph_create(job->call->context);
    fth_axis(g, "slow", e->scene.slow);
    fth_axis(g, "fast", e->scene.fast);
    *out = fth_input(g, "photons", FTH_F32, "slow fast", photons);
    if (job->series.counts) {
        const fth_val counts = br_counts(&e->scene, *out, &e->random, -e->noise_seed, e->shot);
        const fth_val top = fth_const(g, FTH_F64, most[job->series.dtype]);
        *out = fth_cast(fth_min(counts, top), job->series.dtype);
    }
    return g;
}

fth_status br_frame_store(const br_job *job, const br_experiment *e, int64_t i,
                          const fth_sink *sink, fth_err *err)
{
    char path[FTH_PATH];
    fth_source photons;
    fth_val out;
    fth_run_report report;
    FTH_TRY(br_part_path(path, job->call->model_dir, i, true, err));
    FTH_TRY(open_part(job, path, "photons", &photons, err));
    fth_graph *g = build(job, e, photons, &out);
    fth_plan *plan = fth_plan_make(g, &out, 1, &(fth_limits){.sinks = sink}, err);
    const fth_run_options opt = {go_on, (void *)(uintptr_t)job->call};
    const fth_status s = plan ? fth_run(plan, sink, &opt, &report, err) : err->status;
    if (s == FTH_OK) fth_stage_account(job->call, &report);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    fth_source_close(&photons);
    return s;
}

/* ---- plans ---- */

enum { BESIDE = 3 << 20 }; /* code, graphs and texts of the stage */

/* A chunk held by HDF5, three when it is compressed. */
static uint64_t chunk_bytes(const br_job *job)
{
    const fth_h5_dataset l = br_nxmx_layout(job);
    const uint64_t one = (uint64_t)(l.chunk[1] * l.chunk[2]) * (uint64_t)fth_dtype_size(l.dtype);
    return l.gzip ? 3 * one : one;
}

/* Reserved, never touched: it is in the ledger, so that plans leave room, and takes no pages. */
fth_status br_job_reserve(br_job *job, int files, bool library, fth_err *err)
{
    char text[24];
    fth_err own = {0};
    const int threads = fth_context_threads(job->call->context);
    const uint64_t bytes = BESIDE + (uint64_t)job->series.frames * sizeof(br_fact) +
                           (uint64_t)files * chunk_bytes(job) +
                           (library ? fth_library_allowance(1u << FTH_LIB_HDF5, threads) : 0);
    br_job_release(job);
    const fth_status s =
        fth_mem_take(mem_of(job), FTH_MEM_DIRECT, bytes, "for files", &job->reserved, &own);
    if (s == FTH_OK) return FTH_OK;
    if (s != FTH_E_BUDGET) return FTH_FAIL(err, s, "%s", own.text);
    fth_mem_format_size(bytes, text, sizeof text);
    FTH_FAIL(err, FTH_E_NO_FIT, "the container needs %s beside the rows of an image", text);
    fth_err_hint(err, "allow more memory: 16 MiB more than that are enough for most jobs");
    return FTH_E_NO_FIT;
}

void br_job_release(br_job *job)
{
    if (job->reserved) (void)fth_mem_release(mem_of(job), job->reserved, NULL);
    job->reserved = NULL;
}

static fth_status plan_store(const br_job *job, fth_stage_plan *out, FILE *show, fth_err *err)
{
    const int64_t size[2] = {job->base.scene.slow, job->base.scene.fast};
    const fth_sink sink = fth_sink_planned(job->series.dtype, 2, size);
    fth_val v;
    fth_graph *g = build(job, &job->base, fth_source_planned(FTH_F32, 2, size), &v);
    fth_plan *plan = fth_plan_make(g, &v, 1, &(fth_limits){.sinks = &sink}, err);
    const fth_status s =
        fth_stage_plan_add(job->call, out, plan, (double)job->series.frames, show, err);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    return s;
}

fth_status br_frame_plan(const br_job *job, fth_stage_plan *out, FILE *show, fth_err *err)
{
    br_passes *p = NULL;
    br_experiment e;
    FTH_TRY(br_job_frame(job, 0, &e, err));
    FTH_TRY(br_passes_create(&p, job->call->context, &e, wanted(job), err));
    fth_status s = FTH_OK;
    const fth_plan *plan;
    for (int i = 0; s == FTH_OK && i < br_passes_count(p); i++)
        if ((plan = br_passes_plan(p, i)))
            s = fth_stage_plan_add(job->call, out, plan, (double)job->series.frames, show, err);
    br_passes_destroy(p);
    return s == FTH_OK ? plan_store(job, out, show, err) : s;
}
