/* settings.c - pairs KEY=VALUE about Slurm: see settings.h. */
#include "job/slurm/settings.h"

#include "base/str.h"
#include "job/slurm/commands.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static fth_status refuse(const char *pair, const char *why, const char *hint, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "--slurm %.200s: %s", pair, why);
    fth_err_hint(err, "%s", hint);
    return FTH_E_COMMAND;
}

static fth_status read_count(const char *pair, const char *value, int least, int *out, fth_err *err)
{
    char *end;
    const long v = strtol(value, &end, 10);
    if (*end || end == value || v < least || v > 4096)
        return refuse(pair, "expected a small whole number", "write it as in --slurm cpus=8", err);
    *out = (int)v;
    return FTH_OK;
}

/* Remove the line of an option that is given again. */
static void drop_option(char *options, const char *key, size_t n)
{
    char start[160];
    snprintf(start, sizeof start, "#SBATCH --%.*s", (int)n, key);
    char *at = strstr(options, start);
    for (; at; at = strstr(at + 1, start)) {
        const char after = at[strlen(start)];
        if (after != '=' && after != '\n') continue;
        char *next = strchr(at, '\n');
        memmove(at, next + 1, strlen(next + 1) + 1);
        return;
    }
}

static fth_status add_option(fth__slurm_settings *s, const char *pair, size_t n, const char *value,
                             fth_err *err)
{
    static const char *const ours[] = {"array",  "dependency", "output",   "error",
                                       "mem",    "comment",    "job-name", "parsable",
                                       "wrap",   "test-only",  "wait",     "cpus-per-task",
                                       "signal", "ntasks",     "nodes",    "mem-per-cpu",
                                       "chdir",  "open-mode",  "input",    "kill-on-invalid-dep"};
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
        if (strlen(ours[k]) == n && strncmp(ours[k], pair, n) == 0)
            return refuse(pair, "Fathom sets this option itself",
                          "memory follows from the plan (--memory limits it), processors from "
                          "cpus=N or --threads",
                          err);
    for (size_t k = 0; k < n; k++)
        if ((k == 0 && pair[k] == '-') || (!islower((unsigned char)pair[k]) &&
                                           !isdigit((unsigned char)pair[k]) && pair[k] != '-'))
            return refuse(pair, "an option of sbatch has small letters, digits and dashes",
                          "write it without its leading dashes, as in --slurm account=lab", err);
    if (strpbrk(value, "\n\r\"\\"))
        return refuse(pair, "a value has no line breaks, quotes or backslashes", "leave them out",
                      err);
    drop_option(s->options, pair, n);
    const size_t used = strlen(s->options);
    fth__text t;
    fth__text_init(&t, s->options + used, sizeof s->options - used);
    const bool quote = strpbrk(value, " \t#") != NULL;
    fth__text_add(&t, "#SBATCH --%.*s%s%s%s%s\n", (int)n, pair, *value ? "=" : "",
                  quote ? "\"" : "", value, quote ? "\"" : "");
    if (!fth__text_is_cut(&t)) return FTH_OK;
    s->options[used] = '\0';
    return refuse(pair, "too many options for sbatch", "leave some out", err);
}

static fth_status add_lines(fth__slurm_settings *s, const char *pair, const char *before,
                            const char *value, fth_err *err)
{
    const size_t used = strlen(s->prologue);
    fth__text t;
    fth__text_init(&t, s->prologue + used, sizeof s->prologue - used);
    fth__text_add(&t, "%s%s\n", before, value);
    if (!fth__text_is_cut(&t)) return FTH_OK;
    s->prologue[used] = '\0';
    return refuse(pair, "the prologue is too long", "put it into a file and source that", err);
}

fth_status fth__slurm_set(fth__slurm_settings *s, const char *pair, fth_err *err)
{
    const size_t n = strcspn(pair, "=");
    const char *value = pair[n] ? pair + n + 1 : "";
    char key[64];
    if (n == 0 || n >= sizeof key)
        return refuse(pair, "expected KEY=VALUE", "write it as in --slurm partition=long", err);
    fth__str_copy(key, n + 1, pair);
    if (strcmp(key, "cpus") == 0) return read_count(pair, value, 1, &s->cpus, err);
    if (strcmp(key, "gpus") == 0) return read_count(pair, value, 0, &s->gpus, err);
    if (strcmp(key, "time") == 0) {
        s->minutes = fth__slurm_minutes(value);
        return s->minutes > 0 ? FTH_OK
                              : refuse(pair, "expected a time",
                                       "write minutes, HH:MM:SS or DAYS-HH:MM:SS", err);
    }
    if (strcmp(key, "probe") == 0) {
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return refuse(pair, "expected true or false", "write probe=false", err);
        s->no_probe = strcmp(value, "false") == 0;
        return FTH_OK;
    }
    if (strcmp(key, "modules") == 0) return add_lines(s, pair, "module load ", value, err);
    if (strcmp(key, "prologue") == 0) return add_lines(s, pair, "", value, err);
    if (strcmp(key, "partition") == 0) {
        if (strlen(value) >= sizeof s->partition)
            return refuse(pair, "the name is too long", "'sinfo' lists the partitions", err);
        fth__str_copy(s->partition, sizeof s->partition, value);
    }
    return add_option(s, pair, n, value, err);
}
