/* record.c - read a run record and validate every field. */
#include "job/stage/record.h"

#include "base/hash.h"
#include "base/str.h"
#include "config/store.h"
#include "io/file.h"
#include "mem/heap.h"
#include <fathom/json.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Beyond this it is not a record: a thousand files take less than a quarter of it. */
enum { MOST_BYTES = 16 << 20 };

typedef struct reader {
    fth__job_record *r;
    fth__store *store;
    const char *path;
    const fth_json_value *object; /* being read */
    const char *missing;          /* first key that is not there or of another type */
    bool no_memory;
} reader;

static void miss(reader *in, const char *key)
{
    if (!in->missing) in->missing = key;
}

static const char *get_text(reader *in, const char *key)
{
    const char *text = fth_json_get_text(in->object, key, NULL);
    if (!text) miss(in, key);
    return text ? text : "";
}

static const char *keep_text(reader *in, const char *text)
{
    const char *copy = fth__store_text(in->store, text, strlen(text));
    if (!copy) in->no_memory = true;
    return copy ? copy : "";
}

static double get_real(reader *in, const char *key)
{
    const double v = fth_json_get_real(in->object, key, (double)NAN);
    if (isnan(v)) miss(in, key);
    return v;
}

static int64_t get_int(reader *in, const char *key)
{
    const int64_t v = fth_json_get_int(in->object, key, INT64_MIN);
    if (v == INT64_MIN) miss(in, key);
    return v;
}

static uint64_t get_bytes(reader *in, const char *key)
{
    const int64_t v = get_int(in, key);
    if (v < 0) miss(in, key);
    return v < 0 ? 0 : (uint64_t)v;
}

static uint64_t get_hash(reader *in, const char *key)
{
    const char *hex = get_text(in, key);
    unsigned long long v = 0;
    if (strlen(hex) != 16 || sscanf(hex, "%16llx", &v) != 1) miss(in, key);
    return v;
}

static void get_result(reader *in, fth_stage_result *out)
{
    fth__str_copy(out->device, sizeof out->device, get_text(in, "device"));
    fth__str_copy(out->bound_by, sizeof out->bound_by, get_text(in, "bound_by"));
    fth__str_copy(out->plan.text, sizeof out->plan.text, get_text(in, "plan"));
    out->plan.host_bytes = get_bytes(in, "planned_bytes");
    out->plan.device_bytes = get_bytes(in, "device_planned_bytes");
    out->plan.scratch_bytes = get_bytes(in, "scratch_bytes");
    out->plan.seconds = get_real(in, "planned_seconds");
    out->ledger_bytes = get_bytes(in, "ledger_bytes");
    out->growth_bytes = get_bytes(in, "growth_bytes");
    out->read_bytes = get_bytes(in, "read_bytes");
    out->written_bytes = get_bytes(in, "written_bytes");
    out->held_bytes = fth_json_get_u64(in->object, "held_bytes", 0);
    out->seconds = get_real(in, "seconds");
    out->io_seconds = get_real(in, "io_seconds");
    out->compute_seconds = get_real(in, "compute_seconds");
    out->device_seconds = get_real(in, "device_seconds");
}

static fth_file_kind get_kind(reader *in)
{
    const char *kind = get_text(in, "kind");
    if (strcmp(kind, "input") == 0) return FTH_FILE_INPUT;
    if (strcmp(kind, "figure") == 0) return FTH_FILE_FIGURE;
    if (strcmp(kind, "output") != 0) miss(in, "kind");
    return FTH_FILE_OUTPUT;
}

static void get_file(reader *in, fth_task_file *out)
{
    const char *path = get_text(in, "path");
    if (!*path) miss(in, "path");
    out->kind = get_kind(in);
    if (path[0] == '/') {
        out->path = keep_text(in, path);
    } else {
        out->path = fth__store_print(in->store, "%s/%s", in->r->output_dir, path);
        if (!out->path) in->no_memory = true;
    }
    out->title = keep_text(in, get_text(in, "title"));
    out->task = get_int(in, "before");
    if (out->task < 0 || out->task > in->r->n_before) miss(in, "before");
    out->bytes = get_bytes(in, "bytes");
    out->mtime_ns = get_int(in, "mtime_ns");
    out->hash = get_hash(in, "xxh64");
    out->ends = fth_json_get_bool(in->object, "ends", false);
}

/* Records of older versions do not have them. */
static void get_sets(reader *in, const fth_json_value *list)
{
    const int64_t n = list && !fth_json_is_object(list) ? fth_json_count(list) : 0;
    in->r->set = fth__store_take(in->store, ((uint64_t)n + 1) * sizeof *in->r->set);
    if (!in->r->set) in->no_memory = true;
    for (int64_t i = 0; in->r->set && i < n; i++) {
        const char *text = fth_json_get_text(fth_json_at(list, i), NULL, NULL);
        if (!text) miss(in, "set");
        in->r->set[in->r->n_sets++] = keep_text(in, text ? text : "");
    }
}

/* Room for the elements of a list; their number. */
static int64_t get_list(reader *in, const char *key, uint64_t element, void **out,
                        const fth_json_value **list)
{
    *list = fth_json_get(in->object, key);
    if (!*list || fth_json_is_object(*list)) miss(in, key);
    const int64_t n = fth_json_count(*list);
    *out = fth__store_take(in->store, ((uint64_t)n + 1) * element);
    if (!*out) in->no_memory = true;
    return *out ? n : 0;
}

static void get_record(reader *in, const fth_json_value *root)
{
    fth__job_record *r = in->r;
    in->object = root;
    if (get_int(in, "record") != 1) miss(in, "record");
    fth__str_copy(r->version, sizeof r->version, get_text(in, "version"));
    fth__str_copy(r->attempt, sizeof r->attempt, get_text(in, "attempt"));
    r->started = get_real(in, "started");
    r->ended = get_real(in, "ended");
    r->config_path = keep_text(in, fth_json_get_text(root, "config_path", ""));
    r->cwd = keep_text(in, fth_json_get_text(root, "cwd", ""));
    get_sets(in, fth_json_get(root, "set"));
    r->algorithm = fth_json_get_int(root, "algorithm", 0);
    r->config = keep_text(in, get_text(in, "config"));
    r->config_hash = get_hash(in, "config_hash");
    r->input_hash = get_hash(in, "input_hash");
    get_result(in, &r->result);
    const fth_json_value *before, *files;
    void *block = NULL;
    r->n_before = get_list(in, "before", sizeof *r->before, &block, &before);
    r->before = block;
    r->n_files = get_list(in, "files", sizeof *r->file, &block, &files);
    r->file = block;
    for (int64_t i = 0; i < r->n_before; i++) {
        in->object = fth_json_at(before, i);
        r->before[i].id = keep_text(in, get_text(in, "id"));
        r->before[i].bytes = get_bytes(in, "bytes");
        r->before[i].mtime_ns = get_int(in, "mtime_ns");
    }
    for (int64_t i = 0; i < r->n_files; i++) {
        in->object = fth_json_at(files, i);
        get_file(in, &r->file[i]);
    }
}

static fth_status damaged(const char *path, const char *why, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: a record of a finished stage is expected, but %s", path,
             why);
    fth_err_hint(err, "remove the file; the stage then runs again");
    return FTH_E_FILE_FORMAT;
}

/* The last value is the hash of everything before it. */
static bool is_whole(const char *text, size_t bytes)
{
    static const char last[] = ",\n  \"check\": \"0123456789abcdef\"\n}\n";
    enum { END = sizeof last - 1 };
    char end[END + 1], hex[17];
    if (bytes <= END) return false;
    fth__hash_hex(fth__hash_bytes(text, bytes - END, 0), hex);
    snprintf(end, sizeof end, ",\n  \"check\": \"%s\"\n}\n", hex);
    return memcmp(text + bytes - END, end, END) == 0;
}

static fth_status parse(reader *in, const char *text, size_t bytes, fth_err *err)
{
    if (!is_whole(text, bytes))
        return damaged(in->path, "its last value does not match the rest", err);
    fth_json *doc = NULL;
    FTH_TRY(fth_json_parse(&doc, in->r->mem, in->path, text, bytes, err));
    get_record(in, fth_json_root(doc));
    fth_json_destroy(doc);
    char why[80];
    snprintf(why, sizeof why, "'%s' is missing or of another type", in->missing ? in->missing : "");
    if (in->no_memory) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for %s", in->path);
    return in->missing ? damaged(in->path, why, err) : FTH_OK;
}

static fth_status read_file(reader *in, fth_err *err)
{
    fth_mem *mem = in->r->mem;
    fth_file *f = NULL;
    void *text = NULL;
    FTH_TRY(fth_file_open(&f, mem, in->path, err));
    fth_status s = f->bytes > MOST_BYTES ? damaged(in->path, "it is far too large", err) : FTH_OK;
    if (s == FTH_OK) s = fth__heap_take(mem, (int64_t)f->bytes + 1, 1, &text, err);
    if (s == FTH_OK) s = fth_file_read(f, 0, f->bytes, text, "the record", err);
    if (s == FTH_OK) s = parse(in, text, (size_t)f->bytes, err);
    fth__heap_free(mem, text);
    fth_file_close(f);
    return s;
}

fth_status fth__record_read(fth__job_record **out, fth_mem *mem, const char *output_dir,
                            const char *task_id, fth_err *err)
{
    *out = NULL;
    char path[PATH_MAX];
    if (!fth__record_path(path, sizeof path, output_dir, task_id))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: the path is too long", output_dir);
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return FTH_OK;
    fth__job_record *r = fth__heap_alloc(mem, sizeof *r);
    fth__store *store = r ? fth__heap_alloc(mem, sizeof *store) : NULL;
    if (!store) {
        fth__heap_free(mem, r);
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for %s", path);
    }
    *store = (fth__store){.mem = mem};
    r->mem = mem;
    r->store = store;
    reader in = {.r = r, .store = store, .path = path};
    r->output_dir = keep_text(&in, output_dir);
    const fth_status s = read_file(&in, err);
    if (s != FTH_OK)
        fth__record_destroy(r);
    else
        *out = r;
    return s;
}

void fth__record_destroy(fth__job_record *r)
{
    if (!r) return;
    fth__store_clear(r->store);
    fth__heap_free(r->mem, r->store);
    fth__heap_free(r->mem, r);
}

bool fth_stage_last(fth_mem *mem, const char *output_dir, const char *stage, const char *model,
                    fth_stage_result *out)
{
    char id[256];
    fth__job_record *r = NULL;
    *out = (fth_stage_result){0};
    snprintf(id, sizeof id, "%s%s%s", stage, *model ? "." : "", model);
    if (fth__record_read(&r, mem, output_dir, id, NULL) != FTH_OK || !r) return false;
    *out = r->result;
    fth__record_destroy(r);
    return true;
}

fth_status fth__record_remove(const char *output_dir, const char *task_id, fth_err *err)
{
    char path[PATH_MAX];
    if (!fth__record_path(path, sizeof path, output_dir, task_id))
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", output_dir);
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: it cannot be removed: %s", path, strerror(errno));
    fth_err_hint(err, "check permissions; until it is gone the stage would count as done");
    return FTH_E_FILE_WRITE;
}
