/* runs.c - from the flags of a command line to jobs, slots and limits. */
#include "runs.h"

#include "instruments/list.h"

#include <fathom/monitor.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_log(void *user, fth_log_level level, const char *line)
{
    static const char *const names[] = {"error", "warning", "", ""};
    (void)user;
    const char *name = (unsigned)level < 4 ? names[level] : "";
    fprintf(stderr, "%s%s%s\n", name, *name ? ": " : "", line);
}

fth_log cli_log(const cli_call *call, fth_log_level level)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *asked = cli_get(call, "log");
    for (int i = 0; asked && i < 4; i++)
        if (strcmp(asked, names[i]) == 0) level = (fth_log_level)i;
    return (fth_log){.write = write_log, .level = level};
}

int cli_count(const cli_call *call, const char *flag)
{
    const char *text = cli_get(call, flag);
    const long v = text ? strtol(text, NULL, 10) : 0;
    return v > 0 && v < 1000000 ? (int)v : 0;
}

fth_status cli_memory(const cli_call *call, uint64_t *bytes, fth_err *err)
{
    const char *text = cli_get(call, "memory");
    *bytes = 0;
    return text ? fth_mem_parse_size(text, fth_mem_free_now(), bytes, err) : FTH_OK;
}

/* ---- jobs ---- */

static const char *look_up(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

static fth_status find(cli_jobs *j, const cli_call *call, fth_err *err)
{
    return fth_jobs_find(&j->jobs,
                         &(fth_jobs_options){.mem = j->mem,
                                             .instrument = fth_instruments,
                                             .n_instruments = fth_n_instruments,
                                             .path = j->path,
                                             .n_paths = j->n_paths,
                                             .config_name = cli_get(call, "config-name"),
                                             .set = j->set,
                                             .n_sets = j->n_sets,
                                             .over = j->over,
                                             .n_over = j->n_over,
                                             .stages = j->stages,
                                             .skip_general = cli_get(call, "skip-general"),
                                             .lenient = cli_get(call, "lenient"),
                                             .cwd = j->cwd,
                                             .lookup = look_up,
                                             .log = cli_log(call, FTH_LOG_INFO)},
                         err);
}

int cli_get_all(const cli_call *call, const char *flag, const char *list[CLI_JOBS_LIST])
{
    int n = 0;
    while (n < CLI_JOBS_LIST && (list[n] = cli_get_at(call, flag, n)) != NULL) n++;
    return n;
}

fth_status cli_jobs_open(cli_jobs *j, const cli_call *call, const char *const *stages, int n_stages,
                         fth_err *err)
{
    *j = (cli_jobs){0};
    j->n_paths = cli_get_all(call, "config", j->path);
    j->n_sets = cli_get_all(call, "set", j->set);
    j->n_over = cli_get_all(call, "over", j->over);
    if (cli_get(call, "seed")) { /* a key like others: what is cached depends on it */
        snprintf(j->seed, sizeof j->seed, "seed=%s", cli_get(call, "seed"));
        j->set[j->n_sets++] = j->seed;
    }
    size_t used = 0;
    for (int i = 0; i < n_stages; i++) {
        const int n =
            snprintf(j->stages + used, sizeof j->stages - used, "%s%s", i ? " " : "", stages[i]);
        used += n > 0 ? (size_t)n : 0;
        if (used >= sizeof j->stages)
            return FTH_FAIL(err, FTH_E_COMMAND, "too many names of stages");
    }
    if (!getcwd(j->cwd, sizeof j->cwd))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the current directory no longer exists");
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    FTH_TRY(fth_mem_create(&j->mem, &opt, err));
    if (j->n_paths == 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom %s' needs a config", call->command->name);
        fth_err_hint(err, "give a file or a folder with -c");
        return FTH_E_COMMAND;
    }
    return find(j, call, err);
}

void cli_jobs_close(cli_jobs *j)
{
    fth_jobs_destroy(j->jobs);
    fth_mem_destroy(j->mem, NULL);
    *j = (cli_jobs){0};
}

/* ---- slots ---- */

/* A context is made and dropped again: it is the one place that decides what can be used. */
static fth_status resolve(const char *asked, char *device, size_t bytes, char *reason,
                          size_t reason_bytes, fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.device = asked;
    opt.threads = 1;
    fth_context *ctx = NULL;
    FTH_TRY(fth_context_create(&ctx, &opt, err));
    snprintf(device, bytes, "%s", fth_context_device(ctx));
    snprintf(reason, reason_bytes, "%s", fth_context_device_reason(ctx));
    return fth_context_destroy(ctx, err);
}

fth_status cli_slots_find(cli_slots *s, const cli_call *call, fth_err *err)
{
    const char *asked = cli_get(call, "device") ? cli_get(call, "device") : "auto";
    char device[16], reason[200];
    *s = (cli_slots){.n = 1};
    snprintf(s->slot[0].device, sizeof s->slot[0].device, "cpu");
    s->slot[0].free_bytes = fth_mem_free_now();
    FTH_TRY(resolve(asked, device, sizeof device, reason, sizeof reason, err));
    snprintf(s->line, sizeof s->line, "device: %s (%s)", device, reason);
    if (strcmp(device, "cpu") == 0) return FTH_OK;
    s->gpu_only = strncmp(asked, "cuda", 4) == 0;
    fth_gpus gpus;
    if (!fth_gpus_read(&gpus)) return FTH_FAIL(err, FTH_E_DEVICE, "%s", gpus.why);
    for (int i = 0; i < gpus.n && s->n < 17; i++) {
        char name[16];
        snprintf(name, sizeof name, "cuda:%d", i % 1000); /* so that gcc sees that it fits */
        if (strchr(asked, ':') && strcmp(asked, name) != 0) continue;
        fth_slot *slot = &s->slot[s->n++];
        snprintf(slot->device, sizeof slot->device, "%s", name);
        slot->free_bytes = gpus.gpu[i].free_bytes;
    }
    return FTH_OK;
}
