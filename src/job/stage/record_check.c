/* record_check.c - find out whether a stage is up to date; if not, describe the first difference.
 *
 * A run may check a thousand jobs at its start, so only metadata of files is compared; a file is
 * read when its time changed and its size did not.
 */
#include "base/hash.h"
#include "base/str.h"
#include "job/ledger/view.h"
#include "job/stage/files.h"
#include "job/stage/record.h"
#include "mem/heap.h"

#include <limits.h>
#include <string.h>

enum { KEYS_NAMED = 3 };

/* ---- the config ---- */

static bool is_inside(const char *name, size_t n, const char *section, size_t m)
{
    return n >= m && strncmp(name, section, m) == 0 && (n == m || name[m] == '.');
}

bool fth__record_has_key(const char *keys, const char *name, size_t n)
{
    while (keys && *keys) {
        const size_t m = strcspn(keys, " ");
        if (m > 0 && is_inside(name, n, keys, m)) return true;
        keys += m;
        keys += strspn(keys, " ");
    }
    return false;
}

fth_status fth__record_lines(fth_mem *mem, const fth_config *cfg, const char *keys, char **out,
                             fth_err *err)
{
    const size_t bytes = fth_config_canonical(cfg, NULL, 0) + 1;
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, (int64_t)bytes, 1, &block, err));
    char *text = block, *to = text;
    fth_config_canonical(cfg, text, bytes);
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n"), all = n + (line[n] == '\n');
        if (fth__record_has_key(keys, line, strcspn(line, ":"))) {
            memmove(to, line, all);
            to += all;
        }
        line += all;
    }
    *to = '\0';
    *out = text;
    return FTH_OK;
}

/* The value in the line of a key, with its length; NULL: there is none. */
static const char *find_value(const char *lines, const char *key, size_t n, size_t *length)
{
    for (const char *line = lines; *line;) {
        const size_t all = strcspn(line, "\n");
        if (all > n + 2 && strncmp(line, key, n) == 0 && line[n] == ':') {
            *length = all - n - 2;
            return line + n + 2;
        }
        line += all + (line[all] == '\n');
    }
    return NULL;
}

static void add_place(fth__text *t, const fth_config *cfg, const char *key, size_t n)
{
    char name[160];
    snprintf(name, sizeof name, "%.*s", (int)n, key);
    const fth_place at = fth_config_where(cfg, name);
    const char *slash = strrchr(at.file, '/');
    fth__text_add(t, " (%s", slash ? slash + 1 : at.file);
    if (at.line > 0) fth__text_add(t, ":%d:%d", at.line, at.column);
    fth__text_add(t, ")");
}

/* One key of `lines` that has another value in `other`; `was` says which side is the old one. */
static bool add_difference(fth__text *t, const char *line, const char *other, bool was,
                           const fth_config *cfg, int so_far)
{
    const size_t key = strcspn(line, ":"), all = strcspn(line, "\n");
    size_t n = 0;
    const char *value = line + key + 2, *theirs = find_value(other, line, key, &n);
    const size_t length = all > key + 2 ? all - key - 2 : 0;
    if (theirs && (was || (n == length && strncmp(theirs, value, n) == 0))) return false;
    if (so_far >= KEYS_NAMED) return true;
    fth__text_add(t, "%s%.*s ", so_far > 0 ? ", " : "", (int)key, line);
    if (was) {
        fth__text_add(t, "was %.*s, is no key any more", (int)length, value);
    } else {
        if (theirs) fth__text_add(t, "was %.*s, ", (int)n, theirs);
        fth__text_add(t, theirs ? "is %.*s" : "is new, %.*s", (int)length, value);
        add_place(t, cfg, line, key);
    }
    return true;
}

/* How many keys differ; the first few are named. */
static int compare_lines(const char *old, const char *now, const fth_config *cfg, fth__text *t)
{
    int differ = 0;
    for (int side = 0; side < 2; side++) {
        const char *mine = side == 0 ? now : old, *other = side == 0 ? old : now;
        for (const char *line = mine; *line;) {
            const size_t all = strcspn(line, "\n");
            differ += add_difference(t, line, other, side == 1, cfg, differ);
            line += all + (line[all] == '\n');
        }
    }
    if (differ > KEYS_NAMED) fth__text_add(t, " and %d more", differ - KEYS_NAMED);
    return differ;
}

static fth_status check_config(const fth__job_record *r, const fth_job *job, const fth_stage *stage,
                               fth__text *t, fth_err *err)
{
    char *lines = NULL;
    FTH_TRY(fth__record_lines(r->mem, job->config, stage->keys, &lines, err));
    if (strcmp(lines, r->config) != 0 && compare_lines(r->config, lines, job->config, t) == 0)
        fth__text_add(t, "the table of keys changed"); /* only their order */
    fth__heap_free(r->mem, lines);
    return FTH_OK;
}

/* ---- the files ---- */

/* Inside the output directory the path there; else the name alone. */
static const char *short_name(const fth__job_record *r, const char *path)
{
    const size_t n = strlen(r->output_dir);
    if (strncmp(path, r->output_dir, n) == 0 && path[n] == '/') return path + n + 1;
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static fth_status check_file(const fth__job_record *r, const fth_task_file *f, fth__text *t,
                             fth_err *err)
{
    const char *kind = f->kind == FTH_FILE_INPUT ? "input" : "output";
    fth_task_file now = {0};
    if (!fth__file_look(f->path, &now.bytes, &now.mtime_ns)) {
        fth__text_add(t, "%s %s is missing", kind, short_name(r, f->path));
        return FTH_OK;
    }
    const bool same_time = now.mtime_ns == f->mtime_ns, input = f->kind == FTH_FILE_INPUT;
    if (now.bytes == f->bytes && same_time && !(r->verify && input)) return FTH_OK;
    if (now.bytes == f->bytes && (same_time || !f->ends)) {
        FTH_TRY(fth__file_hash(r->mem, f->path, !f->ends, &now, err));
        if (now.bytes == f->bytes && now.hash == f->hash) return FTH_OK;
    }
    fth__text_add(t, "%s %s changed%s", kind, short_name(r, f->path),
                  now.bytes == f->bytes && f->ends ? ": its time did, and only its ends are known"
                                                   : "");
    return FTH_OK;
}

static const fth_task_file *find_file(const fth__job_record *r, const char *path, bool input)
{
    for (int64_t i = 0; i < r->n_files; i++)
        if ((r->file[i].kind == FTH_FILE_INPUT) == input && strcmp(r->file[i].path, path) == 0)
            return &r->file[i];
    return NULL;
}

/* The stage names the same files today, as far as it names them itself. */
static void compare_list(const fth__job_record *r, const fth_file_list *list, bool only_inputs,
                         fth__text *t)
{
    for (int64_t i = 0; i < list->n && !t->wanted; i++) {
        const bool input = list->file[i].kind == FTH_FILE_INPUT;
        if (!input && only_inputs) continue;
        if (!find_file(r, list->file[i].path, input))
            fth__text_add(t, "%s %s is new", input ? "input" : "output",
                          short_name(r, list->file[i].path));
    }
    for (int64_t i = 0; i < r->n_files && !t->wanted; i++)
        if (r->file[i].kind == FTH_FILE_INPUT && r->file[i].task == 0 &&
            fth__file_list_find(list, r->file[i].path) < 0)
            fth__text_add(t, "input %s is not read any more", short_name(r, r->file[i].path));
}

static fth_status check_list(const fth__job_record *r, const fth_job *job, const fth_stage *stage,
                             bool only_inputs, fth__text *t, fth_err *err)
{
    if (!stage->files && !stage->leaves) return FTH_OK;
    char model_dir[PATH_MAX];
    snprintf(model_dir, sizeof model_dir, "%s%s%s", job->output_dir, stage->shared ? "" : "/",
             stage->shared ? "" : job->model);
    const fth_stage_call call = {.instrument = job->instrument,
                                 .stage = stage,
                                 .config = job->config,
                                 .model = stage->shared ? "" : job->model,
                                 .output_dir = job->output_dir,
                                 .model_dir = model_dir,
                                 .job = stage->shared && job->dir_name ? job->dir_name : job->name,
                                 .attempt = ""};
    fth_file_list list;
    fth__file_list_init(&list, r->mem);
    const fth_status s = fth__stage_list_files(&call, &list, err);
    if (s == FTH_OK) compare_list(r, &list, only_inputs, t);
    fth__file_list_clear(&list);
    return s;
}

/* ---- stages before ---- */

/* The record of an earlier stage is another one: do its outputs still have the same names? */
static void compare_before(const fth__job_record *r, const fth__job_record *before, int64_t number,
                           const char *id, fth__text *t)
{
    for (int64_t i = 0; i < before->n_files && !t->wanted; i++)
        if (before->file[i].kind != FTH_FILE_INPUT && !find_file(r, before->file[i].path, true))
            fth__text_add(t, "input %s is new", short_name(r, before->file[i].path));
    for (int64_t i = 0; i < r->n_files && !t->wanted; i++)
        if (r->file[i].kind == FTH_FILE_INPUT && r->file[i].task == number &&
            !find_file(before, r->file[i].path, false))
            fth__text_add(t, "input %s is not made by %s any more", short_name(r, r->file[i].path),
                          id);
}

static fth_status check_before(const fth__job_record *r, int64_t i, fth__text *t, fth_err *err)
{
    char path[PATH_MAX];
    uint64_t bytes = 0;
    int64_t mtime = 0;
    const fth__record_before *b = &r->before[i];
    if (fth__record_path(path, sizeof path, r->output_dir, b->id) &&
        fth__file_look(path, &bytes, &mtime) && bytes == b->bytes && mtime == b->mtime_ns)
        return FTH_OK;
    fth__job_record *before = NULL;
    FTH_TRY(fth__record_read(&before, r->mem, r->output_dir, b->id, err));
    if (!before)
        fth__text_add(t, "%s has to run first", b->id);
    else
        compare_before(r, before, i + 1, b->id, t);
    fth__record_destroy(before);
    return FTH_OK;
}

fth_status fth__record_check(const fth__job_record *r, const fth_job *job, const fth_stage *stage,
                             bool *same, char *reason, size_t bytes, fth_err *err)
{
    char small[8];
    fth__text t;
    fth__text_init(&t, bytes > 0 ? reason : small, bytes > 0 ? bytes : sizeof small);
    *same = false;
    FTH_TRY(check_config(r, job, stage, &t, err));
    if (!t.wanted && r->algorithm != stage->algorithm)
        fth__text_add(&t, "algorithm %lld -> %d", (long long)r->algorithm, stage->algorithm);
    if (!t.wanted) FTH_TRY(check_list(r, job, stage, false, &t, err));
    for (int64_t i = 0; i < r->n_before && !t.wanted; i++) FTH_TRY(check_before(r, i, &t, err));
    for (int64_t i = 0; i < r->n_files && !t.wanted; i++)
        FTH_TRY(check_file(r, &r->file[i], &t, err));
    fth__text_mark_cut(&t);
    *same = t.wanted == 0;
    return FTH_OK;
}

fth_status fth__record_compare(const fth__job_record *r, const fth_job *job, const fth_stage *stage,
                               char *differences, size_t bytes, fth_err *err)
{
    fth__text t;
    fth__text_init(&t, differences, bytes);
    FTH_TRY(check_config(r, job, stage, &t, err));
    if (!t.wanted) FTH_TRY(check_list(r, job, stage, true, &t, err));
    fth__text_mark_cut(&t);
    return FTH_OK;
}
