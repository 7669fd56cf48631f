/* config.c - `fathom config check` reports every mistake in configs, or the jobs they stand
 * for; `fathom config docs` describes the keys of an instrument. */
#include "config.h"

#include "instruments/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct checking {
    const cli_call *call;
    FILE *lines;
    fth_json_writer *json; /* NULL: lines for people */
    char cwd[4096];
} checking;

static void write_line(void *user, fth_log_level level, const char *line)
{
    const checking *c = user;
    if (c->json || (level != FTH_LOG_ERROR && cli_get(c->call, "quiet"))) return;
    fprintf(c->lines, "%s%s\n", level == FTH_LOG_ERROR ? "" : "notice: ", line);
}

static const char *look_up(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

static const char *const kinds[] = {
    [FTH_MISTAKE_UNKNOWN] = "unknown",   [FTH_MISTAKE_TWICE] = "twice",
    [FTH_MISTAKE_MISSING] = "missing",   [FTH_MISTAKE_TYPE] = "type",
    [FTH_MISTAKE_RANGE] = "range",       [FTH_MISTAKE_CHOICE] = "choice",
    [FTH_MISTAKE_VARIABLE] = "variable", [FTH_MISTAKE_CHECK] = "check",
};

static void write_mistake(void *user, const fth_config_mistake *m)
{
    const checking *c = user;
    if (!c->json) return;
    fth_json_open(c->json, NULL, '{');
    fth_json_text(c->json, "kind", kinds[m->kind]);
    fth_json_bool(c->json, "notice", m->notice);
    fth_json_text(c->json, "file", m->at.file);
    fth_json_u64(c->json, "line", (uint64_t)m->at.line);
    fth_json_u64(c->json, "column", (uint64_t)m->at.column);
    fth_json_text(c->json, "key", m->key);
    fth_json_text(c->json, "expected", m->expected);
    fth_json_text(c->json, "found", m->found);
    fth_json_text(c->json, "nearest", m->nearest);
    fth_json_text(c->json, "hint", m->hint);
    fth_json_close(c->json);
}

/* A path as a person in the current directory would write it. */
static const char *shorten(const checking *c, const char *path)
{
    const size_t n = strlen(c->cwd);
    return n > 1 && strncmp(path, c->cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static const char *file_of(const fth_job *job)
{
    return job->general_path ? job->general_path : job->config_path;
}

/* Jobs of one file follow each other: a line, or an object, for each file. */
static void write_jobs(const checking *c, const fth_jobs *jobs)
{
    const int64_t n = fth_jobs_count(jobs);
    for (int64_t i = 0, end; i < n; i = end) {
        const fth_job *first = fth_jobs_get(jobs, i);
        for (end = i; end < n && strcmp(file_of(fth_jobs_get(jobs, end)), file_of(first)) == 0;)
            end++;
        if (c->json) {
            fth_json_open(c->json, NULL, '{');
            fth_json_text(c->json, "file", shorten(c, file_of(first)));
            fth_json_text(c->json, "instrument", first->instrument->name);
            fth_json_text(c->json, "output_dir", first->output_dir);
            fth_json_open(c->json, "models", '[');
        } else {
            fprintf(c->call->out, "%s: %s, model%s", shorten(c, file_of(first)),
                    first->instrument->name, end - i > 1 ? "s" : "");
        }
        for (int64_t k = i; k < end; k++)
            if (c->json)
                fth_json_text(c->json, NULL, fth_jobs_get(jobs, k)->model);
            else
                fprintf(c->call->out, " %s", fth_jobs_get(jobs, k)->model);
        if (c->json) {
            fth_json_close(c->json);
            fth_json_close(c->json);
        } else {
            fprintf(c->call->out, ", to %s\n", shorten(c, first->output_dir));
        }
    }
}

/* What is no mistake of one file: two that collide, a path that leads nowhere. */
static void write_error(fth_json_writer *json, const fth_err *err)
{
    fth_json_open(json, "error", '{');
    fth_json_text(json, "code", fth_status_get_info(err->status)->code);
    fth_json_text(json, "text", err->text);
    fth_json_text(json, "hint", err->hint[0] ? err->hint : fth_status_get_info(err->status)->hint);
    fth_json_close(json);
}

static fth_status check(checking *c, fth_jobs_options *opt, fth_err *err)
{
    fth_json_writer *const j = c->json;
    fth_jobs *jobs = NULL;
    if (j) {
        fth_json_open(j, NULL, '{');
        fth_json_open(j, "mistakes", '[');
    }
    const fth_status s = fth_jobs_find(&jobs, opt, err);
    if (j) {
        fth_json_close(j);
        fth_json_open(j, "configs", '[');
    }
    if (s == FTH_OK) write_jobs(c, jobs);
    if (j) fth_json_close(j);
    if (j && s == FTH_OK) fth_json_text(j, "error", NULL);
    if (j && s != FTH_OK) write_error(j, err);
    if (j) fth_json_close(j);
    const fth_status written = j ? fth_json_end(j, s == FTH_OK ? err : NULL) : FTH_OK;
    fth_jobs_destroy(jobs);
    return s == FTH_OK ? written : s;
}

fth_status cli_config_check(const cli_call *call, const fth_instrument *const *instrument, int n,
                            FILE *lines, fth_err *err)
{
    const char *set[CLI_SET];
    fth_json_writer json;
    cli_json_begin(&json, call->out);
    checking c = {.call = call, .lines = lines, .json = cli_get(call, "json") ? &json : NULL};
    int n_sets = 0;
    for (const char *s; n_sets < CLI_SET && (s = cli_get_at(call, "set", n_sets));)
        set[n_sets++] = s;
    if (call->n_args == 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "no config was named");
        fth_err_hint(err, "write 'fathom config check FILE'; a folder is searched for configs");
        return FTH_E_COMMAND;
    }
    if (!getcwd(c.cwd, sizeof c.cwd))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the current directory: %s", strerror(errno));
    fth_mem *mem = NULL;
    fth_mem_options options;
    fth_mem_options_default(&options);
    FTH_TRY(fth_mem_create(&mem, &options, err));
    fth_jobs_options opt = {.mem = mem,
                            .instrument = instrument,
                            .n_instruments = n,
                            .path = (const char *const *)call->arg,
                            .n_paths = call->n_args,
                            .config_name = cli_get(call, "config-name"),
                            .set = set,
                            .n_sets = n_sets,
                            .lenient = cli_get(call, "lenient") != NULL,
                            .cwd = c.cwd,
                            .lookup = look_up,
                            .mistake = write_mistake,
                            .user = &c,
                            .log = {write_line, &c, FTH_LOG_WARN}};
    const fth_status s = check(&c, &opt, err);
    const fth_status end = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s != FTH_OK ? s : end;
}

static fth_status no_instrument(const char *name, const fth_instrument *const *instrument, int n,
                                fth_err *err)
{
    char known[1000] = "";
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? " " : "", instrument[i]->name);
    }
    const int near = fth_word_nearest(known, name);
    FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not an instrument", name);
    if (near >= 0)
        fth_err_hint(err, "did you mean '%s'?", instrument[near]->name);
    else
        fth_err_hint(err, "there are: %s", known);
    return FTH_E_COMMAND;
}

fth_status cli_config_docs(const cli_call *call, const fth_instrument *const *instrument, int n,
                           fth_err *err)
{
    const char *name = call->n_args > 0 ? call->arg[0] : NULL;
    for (int i = 0; i < n; i++) {
        if (!name) fprintf(call->out, "%-12s %s\n", instrument[i]->name, instrument[i]->brief);
        if (!name || strcmp(instrument[i]->name, name) != 0) continue;
        const size_t bytes = fth_schema_docs(instrument[i]->schema, NULL, 0) + 1;
        char *text = malloc(bytes);
        if (!text) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the docs of %s", name);
        fth_schema_docs(instrument[i]->schema, text, bytes);
        fputs(text, call->out);
        free(text);
        return FTH_OK;
    }
    return name ? no_instrument(name, instrument, n, err) : FTH_OK;
}

fth_status cli_run_config_check(const cli_call *call, fth_err *err)
{
    return cli_config_check(call, fth_instruments, fth_n_instruments, stderr, err);
}

fth_status cli_run_config_docs(const cli_call *call, fth_err *err)
{
    return cli_config_docs(call, fth_instruments, fth_n_instruments, err);
}
