/* record_write.c - a record as JSON, one line for each fact, and a hash of all of it at the end.
 *
 * Paths inside the output directory are written without it, so that a folder that was moved keeps
 * its records.
 */
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "job/record.h"
#include "mem/heap.h"

#include <limits.h>
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
        fth__hash_add(&h, slash, strlen(slash) + 1); /* a moved folder has the same inputs */
        fth__hash_add(&h, &file[i].hash, sizeof file[i].hash);
    }
    return fth__hash_get(&h);
}

static void add_text(fth__text *t, const char *key, const char *value)
{
    fth__text_add(t, ",\n \"%s\": ", key);
    fth__json_string(t, value);
}

static void add_hash(fth__text *t, const char *key, uint64_t hash)
{
    char hex[17];
    fth__hash_hex(hash, hex);
    add_text(t, key, hex);
}

static void add_real(fth__text *t, const char *key, double v)
{
    fth__text_add(t, ",\n \"%s\": ", key);
    fth__json_number(t, v, 17);
}

static void add_bytes(fth__text *t, const char *key, uint64_t v)
{
    fth__text_add(t, ",\n \"%s\": %llu", key, (unsigned long long)v);
}

static void add_result(fth__text *t, const fth_stage_result *r)
{
    add_text(t, "device", r->device);
    add_text(t, "bound_by", r->bound_by);
    add_text(t, "plan", r->plan.text);
    add_bytes(t, "planned_bytes", r->plan.host_bytes);
    add_bytes(t, "device_planned_bytes", r->plan.device_bytes);
    add_bytes(t, "scratch_bytes", r->plan.scratch_bytes);
    add_real(t, "planned_seconds", r->plan.seconds);
    add_bytes(t, "ledger_bytes", r->ledger_bytes);
    add_bytes(t, "growth_bytes", r->growth_bytes);
    add_bytes(t, "read_bytes", r->read_bytes);
    add_bytes(t, "written_bytes", r->written_bytes);
    add_real(t, "seconds", r->seconds);
    add_real(t, "io_seconds", r->io_seconds);
    add_real(t, "compute_seconds", r->compute_seconds);
    add_real(t, "device_seconds", r->device_seconds);
}

static void add_file(fth__text *t, const fth_task_file *f, const char *output_dir)
{
    static const char *const kinds[FTH_FILE_KIND_COUNT] = {
        [FTH_FILE_INPUT] = "input", [FTH_FILE_OUTPUT] = "output", [FTH_FILE_FIGURE] = "figure"};
    const size_t n = strlen(output_dir);
    const bool inside = strncmp(f->path, output_dir, n) == 0 && f->path[n] == '/';
    char hex[17];
    fth__hash_hex(f->hash, hex);
    fth__text_add(t, "{\"kind\": \"%s\", \"path\": ", kinds[f->kind]);
    fth__json_string(t, inside ? f->path + n + 1 : f->path);
    fth__text_add(t, ", \"title\": ");
    fth__json_string(t, f->title);
    fth__text_add(t, ", \"before\": %lld, \"bytes\": %llu, \"mtime_ns\": %lld, \"xxh64\": \"%s\"}",
                  (long long)f->task, (unsigned long long)f->bytes, (long long)f->mtime_ns, hex);
}

static void add_record(fth__text *t, const fth__record *r, const char *output_dir)
{
    fth__text_add(t, "{\"record\": 1");
    add_text(t, "version", r->version);
    add_text(t, "attempt", r->attempt);
    add_real(t, "started", r->started);
    add_real(t, "ended", r->ended);
    add_text(t, "config", r->config);
    add_hash(t, "config_hash", r->config_hash);
    add_hash(t, "input_hash", r->input_hash);
    add_result(t, &r->result);
    fth__text_add(t, ",\n \"before\": [");
    for (int64_t i = 0; i < r->n_before; i++) {
        fth__text_add(t, "%s{\"id\": ", i > 0 ? ", " : "");
        fth__json_string(t, r->before[i].id);
        fth__text_add(t, ", \"bytes\": %llu, \"mtime_ns\": %lld}",
                      (unsigned long long)r->before[i].bytes, (long long)r->before[i].mtime_ns);
    }
    fth__text_add(t, "],\n \"files\": [");
    for (int64_t i = 0; i < r->n_files; i++) {
        fth__text_add(t, i > 0 ? ",\n  " : "\n  ");
        add_file(t, &r->file[i], output_dir);
    }
    fth__text_add(t, "]");
}

/* The text, then the hash of what stands before it. */
static fth_status print_record(const fth__record *r, const char *output_dir, char **out,
                               size_t *bytes, fth_err *err)
{
    enum { END = 64 };
    fth__text t;
    fth__text_init(&t, NULL, 0);
    add_record(&t, r, output_dir);
    const size_t n = t.wanted;
    void *text = NULL;
    FTH_TRY(fth__heap_take(r->mem, (int64_t)(n + END), 1, &text, err));
    fth__text_init(&t, text, n + END);
    add_record(&t, r, output_dir);
    char hex[17];
    fth__hash_hex(fth__hash_bytes(text, n, 0), hex);
    fth__text_add(&t, ",\n \"check\": \"%s\"}\n", hex);
    *out = text;
    *bytes = t.used;
    return FTH_OK;
}

fth_status fth__record_write(const fth__record *r, const char *output_dir, const char *task_id,
                             fth_err *err)
{
    char path[PATH_MAX];
    if (!fth__record_path(path, sizeof path, output_dir, task_id))
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", output_dir);
    char *text = NULL;
    size_t bytes = 0;
    FTH_TRY(print_record(r, output_dir, &text, &bytes, err));
    fth__writer w;
    fth_status s = fth__writer_open(&w, r->mem, path, err);
    if (s == FTH_OK) s = fth__writer_write(&w, 0, bytes, text, err);
    if (s == FTH_OK) s = fth__writer_commit(&w, NULL, err);
    fth__writer_abandon(&w);
    fth__heap_free(r->mem, text);
    return s;
}
