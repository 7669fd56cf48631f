/* record_write.c - write a run record as JSON, one field per line, with a hash of all at the end.
 *
 * Paths inside the output directory are relative to it, so that a moved directory keeps its
 * records.
 */
#include "base/assert.h"
#include "base/hash.h"
#include "job/stage/record.h"
#include <fathom/json.h>

#include <limits.h>
#include <math.h>
#include <string.h>

bool fth__record_path(char *path, size_t bytes, const char *output_dir, const char *task_id)
{
    const int n = snprintf(path, bytes, "%s/.fathom/%s.json", output_dir, task_id);
    return n > 0 && (size_t)n < bytes;
}

uint64_t fth__record_input_hash(const fth_task_file *file, int64_t n)
{
    fth__hash h;
    fth__hash_init(&h, 0);
    for (int64_t i = 0; i < n; i++) {
        if (file[i].kind != FTH_FILE_INPUT) continue;
        const char *slash = strrchr(file[i].path, '/');
        FTH_ASSERT(slash);                           /* paths of records are absolute */
        fth__hash_add(&h, slash, strlen(slash) + 1); /* a moved folder has the same inputs */
        fth__hash_add(&h, &file[i].hash, sizeof file[i].hash);
    }
    return fth__hash_get(&h);
}

/* A non-finite estimate of a stage must not make its record unreadable. */
static void put_real(fth_json_writer *w, const char *key, double v)
{
    fth_json_real(w, key, isfinite(v) ? v : 0);
}

static void put_result(fth_json_writer *w, const fth_stage_result *r)
{
    fth_json_text(w, "device", r->device);
    fth_json_text(w, "bound_by", r->bound_by);
    fth_json_text(w, "plan", r->plan.text);
    fth_json_u64(w, "planned_bytes", r->plan.host_bytes);
    fth_json_u64(w, "device_planned_bytes", r->plan.device_bytes);
    fth_json_u64(w, "scratch_bytes", r->plan.scratch_bytes);
    put_real(w, "planned_seconds", r->plan.seconds);
    fth_json_u64(w, "ledger_bytes", r->ledger_bytes);
    fth_json_u64(w, "growth_bytes", r->growth_bytes);
    fth_json_u64(w, "read_bytes", r->read_bytes);
    fth_json_u64(w, "written_bytes", r->written_bytes);
    fth_json_u64(w, "held_bytes", r->held_bytes);
    put_real(w, "seconds", r->seconds);
    put_real(w, "io_seconds", r->io_seconds);
    put_real(w, "compute_seconds", r->compute_seconds);
    put_real(w, "device_seconds", r->device_seconds);
}

static void put_before(fth_json_writer *w, const fth__job_record *r)
{
    fth_json_open(w, "before", '[');
    for (int64_t i = 0; i < r->n_before; i++) {
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "id", r->before[i].id);
        fth_json_u64(w, "bytes", r->before[i].bytes);
        fth_json_int(w, "mtime_ns", r->before[i].mtime_ns);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_file(fth_json_writer *w, const fth_task_file *f, const char *output_dir)
{
    static const char *const kinds[FTH_FILE_KIND_COUNT] = {
        [FTH_FILE_INPUT] = "input", [FTH_FILE_OUTPUT] = "output", [FTH_FILE_FIGURE] = "figure"};
    FTH_ASSERT((unsigned)f->kind < FTH_FILE_KIND_COUNT && f->path[0] == '/' && f->title);
    const size_t n = strlen(output_dir);
    const bool inside = strncmp(f->path, output_dir, n) == 0 && f->path[n] == '/';
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "kind", kinds[f->kind]);
    fth_json_text(w, "path", inside ? f->path + n + 1 : f->path);
    fth_json_text(w, "title", f->title);
    fth_json_int(w, "before", f->task);
    fth_json_u64(w, "bytes", f->bytes);
    fth_json_int(w, "mtime_ns", f->mtime_ns);
    fth_json_hash(w, "xxh64", f->hash);
    if (f->ends) fth_json_bool(w, "ends", true);
    fth_json_close(w);
}

static void put_record(fth_json_writer *w, const fth__job_record *r, const char *output_dir)
{
    fth_json_int(w, "record", 1);
    fth_json_text(w, "version", r->version);
    fth_json_text(w, "attempt", r->attempt);
    put_real(w, "started", r->started);
    put_real(w, "ended", r->ended);
    fth_json_text(w, "config_path", r->config_path);
    fth_json_text(w, "cwd", r->cwd);
    fth_json_open(w, "set", '[');
    for (int64_t i = 0; i < r->n_sets; i++) fth_json_text(w, NULL, r->set[i]);
    fth_json_close(w);
    fth_json_int(w, "algorithm", r->algorithm);
    fth_json_text(w, "config", r->config);
    fth_json_hash(w, "config_hash", r->config_hash);
    fth_json_hash(w, "input_hash", r->input_hash);
    put_result(w, &r->result);
    put_before(w, r);
    fth_json_open(w, "files", '[');
    for (int64_t i = 0; i < r->n_files; i++) put_file(w, &r->file[i], output_dir);
    fth_json_close(w);
}

fth_status fth__record_write(const fth__job_record *r, const char *output_dir, const char *task_id,
                             fth_err *err)
{
    char path[PATH_MAX];
    FTH_ASSERT(r->set || r->n_sets == 0);
    if (!fth__record_path(path, sizeof path, output_dir, task_id))
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", output_dir);
    fth_json_writer w;
    fth_json_begin(&w, r->mem, true);
    fth_json_open(&w, NULL, '{');
    put_record(&w, r, output_dir);
    fth_json_hash(&w, "check", fth__hash_bytes(w.data, (size_t)w.used, 0)); /* of all before it */
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}
