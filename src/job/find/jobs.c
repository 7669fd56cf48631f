/* jobs.c - the list of jobs: create, query, destroy. */
#include "job/find/over.h"

#include "base/str.h"
#include "config/schema.h"
#include "mem/heap.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Without an environment every ${NAME} is a mistake, and paths are still made absolute. */
static const char *no_variable(void *user, const char *name)
{
    (void)user, (void)name;
    return NULL;
}

static const char *keep(fth_jobs *jobs, const char *text)
{
    return fth__store_text(&jobs->texts, text, strlen(text));
}

static fth_status keep_options(fth_jobs *jobs, const fth_jobs_options *opt, fth_err *err)
{
    char cwd[PATH_MAX];
    fth_jobs_options *own = &jobs->opt;
    *own = *opt;
    own->path = NULL; /* only needed at once */
    own->set = own->over = NULL;
    if (!opt->lookup) own->lookup = no_variable;
    if (!opt->cwd && !getcwd(cwd, sizeof cwd))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the current directory: %s", strerror(errno));
    own->cwd = keep(jobs, opt->cwd ? opt->cwd : cwd);
    own->config_name = keep(jobs, opt->config_name ? opt->config_name : "general.yaml");
    own->stages = keep(jobs, opt->stages && opt->stages[0] ? opt->stages : "all");
    if (!own->cwd || !own->config_name || !own->stages) return fth__jobs_no_memory(err);
    const uint64_t bytes = ((uint64_t)opt->n_sets + 1) * sizeof *own->set;
    const char **set = fth__store_take(&jobs->texts, bytes);
    if (!set) return fth__jobs_no_memory(err);
    own->set = set;
    for (int i = 0; i < opt->n_sets; i++)
        if (!(set[i] = keep(jobs, opt->set[i]))) return fth__jobs_no_memory(err);
    const char **over =
        fth__store_take(&jobs->texts, ((uint64_t)opt->n_over + 1) * sizeof *own->over);
    if (!over) return fth__jobs_no_memory(err);
    own->over = over;
    for (int i = 0; i < opt->n_over; i++)
        if (!(over[i] = keep(jobs, opt->over[i]))) return fth__jobs_no_memory(err);
    return FTH_OK;
}

/* ---- stages ---- */

static bool is_asked(const fth_jobs *jobs, const fth_stage *stage)
{
    return fth__word_find(jobs->opt.stages, "all") >= 0 ||
           fth__word_find(jobs->opt.stages, stage->name) >= 0;
}

/* Names of the stages of all instruments, each once. */
static void list_stages(const fth_jobs *jobs, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    for (int i = 0; i < jobs->opt.n_instruments; i++)
        for (int k = 0; k < jobs->opt.instrument[i]->n_stages; k++) {
            const char *name = jobs->opt.instrument[i]->stage[k].name;
            if (fth__word_find(text, name) < 0) fth__text_add(&t, "%s%s", t.used ? " " : "", name);
        }
}

fth_status fth__jobs_check_names(const fth_jobs *jobs, const char *names, const char *flag,
                                 fth_err *err)
{
    char known[1000];
    size_t n = 0;
    const char *word, *all = *flag ? "" : "all ";
    list_stages(jobs, known, sizeof known);
    for (int i = 0; (word = fth__word(names, i, &n)); i++) {
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        if ((*all && strcmp(name, "all") == 0) || fth__word_find(known, name) >= 0) continue;
        const int k = fth_word_nearest(known, name);
        FTH_FAIL(err, FTH_E_COMMAND, "%s%sthere is no stage '%s'", flag, *flag ? ": " : "", name);
        if (k >= 0 && (word = fth__word(known, k, &n)))
            fth_err_hint(err, "did you mean '%.*s'? There are: %s%s", (int)n, word, all, known);
        else
            fth_err_hint(err, "there are: %s%s", all, known);
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

fth_status fth__jobs_check_rerun(const fth_jobs *jobs, const char *rerun, fth_err *err)
{
    size_t n = 0;
    const char *word;
    if (!rerun) return FTH_OK;
    FTH_TRY(fth__jobs_check_names(jobs, rerun, "--rerun", err));
    for (int i = 0; (word = fth__word(rerun, i, &n)); i++) {
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        if (is_asked(jobs, &(fth_stage){.name = name})) continue;
        FTH_FAIL(err, FTH_E_COMMAND, "--rerun: '%s' is not one of the stages to run: %s", name,
                 jobs->opt.stages);
        fth_err_hint(err, "write 'fathom run %s %s'", name, jobs->opt.stages);
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

const fth_stage *fth_jobs_stage(const fth_jobs *jobs, const fth_job *job, int i)
{
    if (!jobs || !job || i < 0) return NULL;
    for (int k = 0; k < job->instrument->n_stages; k++)
        if (is_asked(jobs, &job->instrument->stage[k]) &&
            fth__jobs_is_selected(jobs, job, &job->instrument->stage[k]) && i-- == 0)
            return &job->instrument->stage[k];
    return NULL;
}

/* A run without any task is an error. */
static fth_status check_any_stage(const fth_jobs *jobs, fth_err *err)
{
    for (int64_t i = 0; i < jobs->n; i++)
        if (fth_jobs_stage(jobs, &jobs->row[i].job, 0)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_NO_JOB, "none of the jobs (%lld) has a stage of: %s",
                    (long long)jobs->n, jobs->opt.stages);
}

/* ---- all together ---- */

static fth_status verdict(const fth_jobs *jobs, fth_err *err)
{
    if (jobs->n_mistakes == 0) return FTH_OK;
    const bool silent = !jobs->opt.log.write;
    FTH_FAIL(err, FTH_E_CONFIG, "%lld mistake%s in %lld config%s; nothing was done%s%s",
             (long long)jobs->n_mistakes, jobs->n_mistakes == 1 ? "" : "s",
             (long long)jobs->n_found, jobs->n_found == 1 ? "" : "s",
             silent ? ". The first is:\n" : "", silent ? jobs->first_line : "");
    fth_err_hint(err, "'fathom config docs INSTRUMENT' describes every key");
    return FTH_E_CONFIG;
}

static fth_status check_options(const fth_jobs_options *opt, fth_err *err)
{
    if (!opt || !opt->mem) return FTH_FAIL(err, FTH_E_USAGE, "jobs need options with a memory");
    if (opt->n_instruments < 1 || !opt->instrument)
        return FTH_FAIL(err, FTH_E_USAGE, "jobs need at least one instrument");
    for (int i = 0; i < opt->n_instruments; i++)
        FTH_TRY(fth_instrument_check(opt->instrument[i], err));
    if (opt->cwd && opt->cwd[0] != '/')
        return FTH_FAIL(err, FTH_E_USAGE, "cwd must be an absolute path, not '%s'", opt->cwd);
    if (opt->n_paths > 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "no config was given");
    fth_err_hint(err, "name files or folders with -c PATH");
    return FTH_E_COMMAND;
}

static fth_status find(fth_jobs *jobs, const fth_jobs_options *opt, fth_err *err)
{
    FTH_TRY(keep_options(jobs, opt, err));
    FTH_TRY(fth__jobs_check_names(jobs, jobs->opt.stages, "", err));
    FTH_TRY(fth__jobs_read_over(jobs, err));
    for (int i = 0; i < opt->n_paths; i++) FTH_TRY(fth__jobs_discover(jobs, opt->path[i], err));
    FTH_TRY(fth__jobs_expand(jobs, err));
    FTH_TRY(verdict(jobs, err));
    if (jobs->n == 0) {
        FTH_FAIL(err, FTH_E_NO_JOB, "all %lld configs are general, and those are left out",
                 (long long)jobs->n_found);
        fth_err_hint(err, "leave out --skip-general");
        return FTH_E_NO_JOB;
    }
    FTH_TRY(check_any_stage(jobs, err));
    FTH_TRY(fth__jobs_compare(jobs, err));
    return fth__jobs_name(jobs, err);
}

fth_status fth_jobs_find(fth_jobs **out, const fth_jobs_options *opt, fth_err *err)
{
    return fth__jobs_find(out, opt, 0, err);
}

fth_status fth__jobs_find(fth_jobs **out, const fth_jobs_options *opt, uint64_t block, fth_err *err)
{
    *out = NULL;
    FTH_TRY(check_options(opt, err));
    void *memory = NULL;
    FTH_TRY(fth__heap_take(opt->mem, 1, sizeof(fth_jobs), &memory, err));
    fth_jobs *jobs = memory;
    jobs->texts.block = block;
    jobs->mem = jobs->texts.mem = jobs->said.mem = jobs->variants.mem = jobs->bases.mem = opt->mem;
    const fth_status s = find(jobs, opt, err);
    fth__index_clear(&jobs->said);
    fth__index_clear(&jobs->variants);
    fth__index_clear(&jobs->bases);
    if (s != FTH_OK)
        fth_jobs_destroy(jobs);
    else
        *out = jobs;
    return s;
}

void fth_jobs_destroy(fth_jobs *jobs)
{
    if (!jobs) return;
    for (int64_t i = 0; i < jobs->n_rows; i++) (void)fth_config_destroy(jobs->row[i].config, NULL);
    for (int64_t i = 0; i < jobs->n_found; i++)
        (void)fth_config_destroy(jobs->found[i].config, NULL);
    fth__index_clear(&jobs->said);
    fth__index_clear(&jobs->variants);
    fth__index_clear(&jobs->bases);
    fth__store_clear(&jobs->texts);
    fth__heap_free(jobs->mem, jobs->found);
    fth__heap_free(jobs->mem, jobs->row);
    fth__heap_free(jobs->mem, jobs);
}

int64_t fth_jobs_count(const fth_jobs *jobs)
{
    return jobs ? jobs->n : 0;
}

const fth_job *fth_jobs_get(const fth_jobs *jobs, int64_t i)
{
    return jobs && i >= 0 && i < jobs->n ? &jobs->row[i].job : NULL;
}
