/* rival.c - find out whether another config still claims the results of a record.
 *
 * The config that made them is read again in its present form, with the --set and from the folder
 * of that run. It is a rival when it leads to this output directory with other keys or other files.
 * When in doubt it counts as one: a needless refusal loses no data.
 */
#include "job/stage/rival.h"

#include "base/assert.h"
#include "config/read.h"
#include "job/find/path.h"
#include "mem/heap.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_gone(const char *path)
{
    return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* The config that made the results; variables mean what they mean to this job. */
static fth_status read_theirs(const fth__job_record *r, const fth_job *job, fth_config *cfg)
{
    fth_config_options opt = *fth__config_options(job->config);
    opt.lenient = true;
    opt.cwd = r->cwd;
    FTH_TRY(fth_config_read(cfg, r->config_path, NULL));
    for (int64_t i = 0; i < r->n_sets; i++) FTH_TRY(fth_config_set(cfg, r->set[i], NULL));
    return fth_config_check(cfg, job->instrument->schema, &opt, NULL);
}

/* Whether two paths lead to one place. Records of older versions do not say where relative paths
 * start. */
static fth_status same_place(fth__store *texts, const char *one, const char *other, bool *same)
{
    fth__canonical a, b;
    *same = strcmp(one, other) == 0;
    if (*same || one[0] != '/' || other[0] != '/') return FTH_OK;
    FTH_TRY(fth__path_canonical(texts, "/", one, &a, NULL));
    FTH_TRY(fth__path_canonical(texts, "/", other, &b, NULL));
    *same = strcmp(a.path, b.path) == 0;
    return FTH_OK;
}

/* Equal texts may lead to different files: the two may have been run from different folders. */
static fth_status same_paths(fth__store *texts, const fth_job *job, const fth_stage *stage,
                             const fth_config *theirs, bool *same)
{
    const fth_schema *schema = job->instrument->schema;
    for (int64_t k = 0; k < schema->n_keys && *same; k++) {
        const fth_config_key *row = &schema->key[k];
        if (row->type != FTH_CONFIG_PATH ||
            !fth__record_has_key(stage->keys, row->name, strlen(row->name)))
            continue;
        const int64_t n = fth_config_count(job->config, row->name);
        *same = n == fth_config_count(theirs, row->name);
        for (int64_t i = 0; i < n && *same; i++)
            FTH_TRY(same_place(texts, fth_config_text_at(job->config, row->name, i),
                               fth_config_text_at(theirs, row->name, i), same));
    }
    return FTH_OK;
}

static fth_status same_keys(fth_mem *mem, const fth_job *job, const fth_stage *stage,
                            const fth_config *theirs, bool *same)
{
    char *a = NULL, *b = NULL;
    fth_status s = fth__record_lines(mem, job->config, stage->keys, &a, NULL);
    if (s == FTH_OK) s = fth__record_lines(mem, theirs, stage->keys, &b, NULL);
    *same = s == FTH_OK && strcmp(a, b) == 0;
    fth__heap_free(mem, a);
    fth__heap_free(mem, b);
    return s;
}

static fth_status ask(const fth__job_record *r, const fth_job *job, const fth_stage *stage,
                      fth_config *theirs, fth__store *texts, fth__claim *out)
{
    bool same = false;
    FTH_TRY(read_theirs(r, job, theirs));
    const char *dir = fth_config_text(theirs, "output_dir");
    FTH_TRY(same_place(texts, dir, job->output_dir, &same));
    if (!same && dir[0] == '/') {
        *out = FTH__CLAIM_MOVED;
        return FTH_OK;
    }
    FTH_TRY(same_keys(r->mem, job, stage, theirs, &same));
    if (same) FTH_TRY(same_paths(texts, job, stage, theirs, &same));
    if (same) *out = FTH__CLAIM_NONE;
    return FTH_OK;
}

fth_status fth__record_claim(const fth__job_record *r, const fth_job *job, const fth_stage *stage,
                             fth__claim *out, char *differences, size_t bytes, fth_err *err)
{
    *out = FTH__CLAIM_NONE;
    differences[0] = '\0';
    if (!r->config_path[0] || !job->config_path || strcmp(r->config_path, job->config_path) == 0)
        return FTH_OK;
    FTH_TRY(fth__record_compare(r, job, stage, differences, bytes, err));
    if (!differences[0]) return FTH_OK;
    *out = is_gone(r->config_path) ? FTH__CLAIM_GONE : FTH__CLAIM_THEIRS;
    if (*out == FTH__CLAIM_GONE) return FTH_OK;
    fth_config *theirs = NULL;
    fth__store texts = {.mem = r->mem};
    FTH_TRY(fth_config_create(&theirs, r->mem, err));
    const fth_status s = ask(r, job, stage, theirs, &texts, out);
    fth__store_clear(&texts);
    (void)fth_config_destroy(theirs, NULL);
    if (s != FTH_E_NOMEM) return FTH_OK; /* one that cannot be read today keeps its claim */
    return FTH_FAIL(err, s, "no memory for %s", r->config_path);
}

fth_status fth__record_refuse(const fth__job_record *r, const fth_job *job, const char *task_id,
                              const char *differences, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COLLISION,
             "%s: the results of '%s' were made by %s, and %s would replace "
             "them: %s",
             job->output_dir, task_id, r->config_path, job->config_path, differences);
    fth_err_hint(err, "give one of the configs another output_dir; --force replaces the results");
    return FTH_E_COLLISION;
}

fth_status fth__record_refuse_use(const fth__job_record *r, const fth_job *job, const char *stage,
                                  const char *task_id, const char *differences, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COLLISION,
             "%s: '%s' of %s would build on the results of '%s', which were made by %s with other "
             "settings: %s",
             job->output_dir, stage, job->config_path, task_id, r->config_path, differences);
    fth_err_hint(err,
                 "give one of the configs another output_dir and run '%.*s' there first; --force "
                 "builds on them",
                 (int)strcspn(task_id, "."), task_id);
    return FTH_E_COLLISION;
}

void fth__record_say_replaced(const fth__job_record *r, fth__claim claim, const char *task_id,
                              const char *differences, char *text, size_t bytes)
{
    FTH_ASSERT(claim == FTH__CLAIM_GONE || claim == FTH__CLAIM_MOVED);
    snprintf(text, bytes,
             "%s: the results of '%s' were made by %s, which %s; they are replaced: %s",
             r->output_dir, task_id, r->config_path,
             claim == FTH__CLAIM_GONE ? "is not there any more" : "has another output_dir today",
             differences);
}
