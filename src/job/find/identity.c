/* identity.c - refuse jobs that would write to the same place.
 *
 * A job is (canonical output directory, model). An index makes the comparison linear in the
 * number of jobs.
 */
#include "base/assert.h"
#include "base/str.h"
#include "config/node.h"
#include "config/schema.h"
#include "job/find/jobs.h"
#include "job/find/path.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

typedef struct compare {
    const fth_jobs *jobs;
    fth__store texts;
    fth__index key, file, folder, model_dir; /* numbers are those of rows */
    fth__index ours;                         /* where `logs` and `.fathom` of all lie */
    fth__index place;                        /* folders elsewhere that jobs write to */
} compare;

const char *fth__job_source(const fth__job_row *row, char *text, size_t bytes)
{
    if (!row->variant)
        snprintf(text, bytes, "%s", row->shown);
    else if (row->uses_existing)
        snprintf(text, bytes, "%s", row->shown_file);
    else
        snprintf(text, bytes, "%s (%s)", row->shown, row->variant->name);
    return text;
}

static fth_status collide(const compare *c, int64_t one, int64_t other, const char *hint,
                          fth_err *err, const char *fmt, ...) FTH_PRINTF(6, 7);
static fth_status collide(const compare *c, int64_t one, int64_t other, const char *hint,
                          fth_err *err, const char *fmt, ...)
{
    char a[500], b[500], text[900];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fth__job_source(&c->jobs->row[one], a, sizeof a);
    fth__job_source(&c->jobs->row[other], b, sizeof b);
    FTH_FAIL(err, FTH_E_COLLISION, "%s and %s %s", a, b, text);
    if (hint) fth_err_hint(err, "%s", hint);
    return FTH_E_COLLISION;
}

/* ---- one place, one job ---- */

/* A folder of an output directory, with links resolved. */
static fth_status find_folder(compare *c, const char *dir, const char *name, const char **out,
                              bool *link, fth_err *err)
{
    struct stat st;
    fth__canonical canonical;
    *out = fth__path_join(&c->texts, dir, name);
    if (!*out) return fth__jobs_no_memory(err);
    *link = lstat(*out, &st) == 0 && S_ISLNK(st.st_mode);
    if (!*link) return FTH_OK;
    FTH_TRY(fth__path_canonical(&c->texts, c->jobs->opt.cwd, *out, &canonical, err));
    *out = canonical.path;
    return FTH_OK;
}

/* `logs` and `.fathom` of two directories that are one place: links to it, or a link to the folder
 * of the other. */
static fth_status check_ours(compare *c, int64_t i, fth_err *err)
{
    static const char *const ours[] = {".fathom", "logs"};
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++) {
        const char *path = NULL;
        bool link = false;
        int64_t other = i;
        FTH_TRY(find_folder(c, c->jobs->row[i].job.output_dir, ours[k], &path, &link, err));
        FTH_TRY(fth__index_add(&c->ours, path, &other, err));
        if (other != i)
            return collide(c, other, i, "give each a folder of its own", err,
                           "would write to one place: '%s' in the output_dir of both leads to %s",
                           ours[k], path);
    }
    return FTH_OK;
}

/* Folders outside output_dir: images that go to the place of an experiment in a tree of data. */
static fth_status check_places(compare *c, int64_t i, fth_err *err)
{
    const fth_job *job = &c->jobs->row[i].job;
    char path[PATH_MAX];
    for (int k = 0;
         job->instrument->place && job->instrument->place(job->config, k, path, sizeof path); k++) {
        fth__canonical canonical;
        int64_t other = i;
        FTH_TRY(fth__path_canonical(&c->texts, c->jobs->opt.cwd, path, &canonical, err));
        FTH_TRY(fth__index_add(&c->place, canonical.path, &other, err));
        if (other != i)
            return collide(c, other, i, "keep one of them, or give each data of its own", err,
                           "would both write to %s, whatever their output_dir", canonical.path);
    }
    return FTH_OK;
}

static fth_status add_row(compare *c, int64_t i, fth_err *err)
{
    const fth_job *job = &c->jobs->row[i].job;
    const char *key = fth__store_print(&c->texts, "%s\n%s", job->output_dir, job->model);
    const char *model_dir = NULL;
    bool link = false;
    if (!key) return fth__jobs_no_memory(err);
    FTH_TRY(find_folder(c, job->output_dir, job->model, &model_dir, &link, err));
    int64_t file = i, other = i;
    FTH_TRY(fth__index_add(&c->file, job->config_path, &file, err));
    FTH_TRY(fth__index_add(&c->key, key, &other, err));
    if (other != i)
        return collide(c, other, i, NULL, err, "would both write model '%s' in %s", job->model,
                       job->output_dir);
    /* jobs of --over are of one config */
    const bool over =
        c->jobs->over.n_jobs > 1 && strcmp(c->jobs->row[file].shown, c->jobs->row[i].shown) == 0;
    if (file != i && !over)
        return collide(c, file, i, "put one of the general configs into another folder", err,
                       "would both generate %s", job->config_path);
    FTH_TRY(check_places(c, i, err));
    FTH_TRY(fth__index_add(&c->folder, job->output_dir, &other, err));
    if (other == i) FTH_TRY(check_ours(c, i, err));
    other = i;
    FTH_TRY(fth__index_add(&c->model_dir, model_dir, &other, err));
    if (other == i) return FTH_OK;
    return collide(c, other, i, "give each model a folder of its own", err,
                   "would write to one place: the folders of their models, '%s' and '%s', lead to "
                   "%s",
                   c->jobs->row[other].job.model, job->model, model_dir);
}

/* An output directory inside a folder that another job writes: its models, logs or records. */
static fth_status check_nested(compare *c, int64_t i, fth_err *err)
{
    const fth_job *job = &c->jobs->row[i].job;
    char *path = fth__store_text(&c->texts, job->output_dir, strlen(job->output_dir));
    if (!path) return fth__jobs_no_memory(err);
    while (strcmp(path, "/") != 0) {
        const int64_t model = fth__index_find(&c->model_dir, path);
        if (model >= 0)
            return collide(c, model, i, NULL, err,
                           "would write to one place: the first keeps its model in %s, which "
                           "holds the output_dir of the second, %s",
                           path, job->output_dir);
        const char *leaf = fth__path_leaf(path), *ours = NULL;
        if (strcmp(leaf, "logs") == 0) ours = "logs";
        if (strcmp(leaf, ".fathom") == 0) ours = ".fathom";
        path[fth__path_folder(path)] = '\0';
        const int64_t folder = ours ? fth__index_find(&c->folder, path) : -1;
        if (folder >= 0)
            return collide(c, folder, i, NULL, err,
                           "would write to one place: the output_dir of the second is inside "
                           "'%s' of the first's, %s",
                           ours, path);
    }
    return FTH_OK;
}

/* ---- stages that models share ---- */

static bool is_inside(const char *name, const char *section)
{
    const size_t n = strlen(section);
    return strncmp(name, section, n) == 0 && (name[n] == '.' || name[n] == '\0');
}

static fth_status same_path(compare *c, const char *a, const char *b, bool *same, fth_err *err)
{
    fth__canonical x, y;
    *same = strcmp(a, b) == 0;
    if (*same) return FTH_OK;
    const char *cwd = c->jobs->opt.cwd;
    FTH_TRY(fth__path_canonical(&c->texts, cwd, a, &x, err));
    FTH_TRY(fth__path_canonical(&c->texts, cwd, b, &y, err));
    *same = strcmp(x.path, y.path) == 0;
    return FTH_OK;
}

/* Paths by where they lead, whatever is written; the rest by its canonical line. */
static fth_status same_value(compare *c, const fth_config *a, const fth_config *b,
                             const fth_config_key *row, char *text, size_t bytes, bool *same,
                             fth_err *err)
{
    *same = true;
    if (row->type != FTH_CONFIG_PATH) {
        *same = fth_config_hash(a, row->name) == fth_config_hash(b, row->name);
        if (!*same) (void)fth_config_compare(a, b, row->name, text, bytes);
        return FTH_OK;
    }
    const int64_t n = fth_config_count(a, row->name);
    if (n != fth_config_count(b, row->name)) {
        *same = false;
        (void)fth_config_compare(a, b, row->name, text, bytes);
        return FTH_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        const char *x = fth_config_text_at(a, row->name, i);
        const char *y = fth_config_text_at(b, row->name, i);
        FTH_TRY(same_path(c, x, y, same, err));
        if (!*same) {
            snprintf(text, bytes, "%s: %s and %s", row->name, x, y);
            return FTH_OK;
        }
    }
    return FTH_OK;
}

static fth_status check_section(compare *c, int64_t one, int64_t other, const fth_stage *stage,
                                const char *section, fth_err *err)
{
    const fth_job *a = &c->jobs->row[one].job, *b = &c->jobs->row[other].job;
    const fth_schema *schema = a->instrument->schema;
    /* most sections are equal as a whole: then only paths can still differ */
    const bool equal = fth_config_hash(a->config, section) == fth_config_hash(b->config, section);
    for (int64_t k = 0; k < schema->n_keys; k++) {
        const fth_config_key *row = &schema->key[k];
        if (!is_inside(row->name, section) || row->type == FTH_CONFIG_SECTION) continue;
        if (equal && row->type != FTH_CONFIG_PATH) continue;
        char text[700] = "";
        bool same = true;
        FTH_TRY(same_value(c, a->config, b->config, row, text, sizeof text, &same, err));
        if (!same)
            return collide(c, one, other,
                           "give one of them another output_dir, or both the same value", err,
                           "share %s, where stage '%s' works once for both, but differ in %s",
                           a->output_dir, stage->name, text);
    }
    return FTH_OK;
}

static const fth_stage *first_shared(const fth_instrument *instrument)
{
    for (int k = 0; k < instrument->n_stages; k++)
        if (instrument->stage[k].shared) return &instrument->stage[k];
    return NULL;
}

static fth_status check_shared(compare *c, int64_t one, int64_t other, fth_err *err)
{
    const fth_instrument *a = c->jobs->row[one].job.instrument;
    const fth_instrument *b = c->jobs->row[other].job.instrument;
    if (a != b && (first_shared(a) || first_shared(b)))
        return collide(c, one, other, NULL, err,
                       "share %s, but are of different instruments: %s and %s",
                       c->jobs->row[one].job.output_dir, a->name, b->name);
    for (int k = 0; a == b && k < a->n_stages; k++) {
        const fth_stage *stage = &a->stage[k];
        size_t n = 0;
        const char *word;
        for (int i = 0; stage->shared && (word = fth__word(stage->keys, i, &n)); i++) {
            char section[FTH__CONFIG_NAME];
            snprintf(section, sizeof section, "%.*s", (int)n, word);
            FTH_TRY(check_section(c, one, other, stage, section, err));
        }
    }
    return FTH_OK;
}

/* ---- all together ---- */

static fth_status compare_all(compare *c, fth_err *err)
{
    for (int64_t i = 0; i < c->jobs->n; i++) FTH_TRY(add_row(c, i, err));
    for (int64_t i = 0; i < c->jobs->n; i++) {
        const int64_t first = fth__index_find(&c->folder, c->jobs->row[i].job.output_dir);
        FTH_ASSERT(first >= 0 && first <= i);
        if (first == i)
            FTH_TRY(check_nested(c, i, err));
        else
            FTH_TRY(check_shared(c, first, i, err));
    }
    return FTH_OK;
}

fth_status fth__jobs_compare(const fth_jobs *jobs, fth_err *err)
{
    compare c = {
        .jobs = jobs,
        .texts = {.mem = jobs->mem, .block = 65536}}; /* some paths for each of many jobs */
    c.key.mem = c.file.mem = c.folder.mem = c.model_dir.mem = c.ours.mem = c.place.mem = jobs->mem;
    const fth_status s = compare_all(&c, err);
    fth__index_clear(&c.key);
    fth__index_clear(&c.file);
    fth__index_clear(&c.folder);
    fth__index_clear(&c.model_dir);
    fth__index_clear(&c.ours);
    fth__index_clear(&c.place);
    fth__store_clear(&c.texts);
    return s;
}
