/* slurm.c - `slurm:` of a config and pairs KEY=VALUE of --slurm: see slurm.h. */
#include "job/find/slurm.h"

#include "base/str.h"
#include "config/schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const fth_config_key keys[] = {FTH_SLURM_KEYS};
enum { KEYS = sizeof keys / sizeof *keys, VALUE = 1024 };
static const char section[] = "slurm.";

/* Why a value is refused. */
typedef struct reason {
    const char *text, *hint;
} reason;

static bool refuse(reason *why, const char *text, const char *hint)
{
    *why = (reason){text, hint};
    return false;
}

/* ---- values ---- */

int64_t fth__slurm_minutes(const char *text)
{
    int64_t part[4], days = 0;
    int n = 0;
    char *end;
    if (strcmp(text, "UNLIMITED") == 0 || strcmp(text, "infinite") == 0) return 0;
    const char *dash = strchr(text, '-');
    if (dash) {
        days = strtoll(text, &end, 10);
        if (end != dash || end == text || days < 0 || days > 100000) return -1;
        text = dash + 1;
    }
    for (; n < 3; n++) {
        part[n] = strtoll(text, &end, 10);
        if (end == text || part[n] < 0 || part[n] > 100000000) return -1;
        text = end + (*end == ':');
        if (*end != ':') {
            n++;
            break;
        }
    }
    if (*end) return -1;
    if (dash) /* days-hours[:minutes[:seconds]] */
        return days * 1440 + part[0] * 60 + (n > 1 ? part[1] : 0) + (n > 2 && part[2] > 0);
    if (n == 3) return part[0] * 60 + part[1] + (part[2] > 0);
    return part[0] + (n == 2 && part[1] > 0); /* minutes[:seconds] */
}

static bool read_count(const char *value, int least, int *out)
{
    char *end;
    const long v = strtol(value, &end, 10);
    if (*end || end == value || v < least || v > 4096) return false;
    *out = (int)v;
    return true;
}

/* "2", or "train=2". */
static bool read_gpus(const char *word, size_t *n_stage, int *out)
{
    const char *equals = strchr(word, '=');
    *n_stage = equals ? (size_t)(equals - word) : 0;
    return (!equals || *n_stage > 0) && read_count(equals ? equals + 1 : word, 0, out);
}

int fth__slurm_gpus(const fth__slurm_settings *s, const char *stage)
{
    size_t n = 0, m;
    const char *w;
    int all = 0, own = -1, v;
    for (int i = 0; (w = fth__word(s->gpus, i, &n)); i++) {
        char word[sizeof s->gpus];
        snprintf(word, sizeof word, "%.*s", (int)n, w);
        if (!read_gpus(word, &m, &v)) continue;
        if (m == 0) all = v;
        if (m == strlen(stage) && strncmp(word, stage, m) == 0) own = v;
    }
    return own >= 0 ? own : all;
}

static bool add_text(char *text, size_t bytes, const char *before, const char *value,
                     const char *after)
{
    const size_t used = strlen(text);
    fth__text t;
    fth__text_init(&t, text + used, bytes - used);
    fth__text_add(&t, "%s%s%s", before, value, after);
    if (!fth__text_is_cut(&t)) return true;
    text[used] = '\0';
    return false;
}

static bool add_gpus(fth__slurm_settings *s, const char *value, reason *why)
{
    size_t n;
    int count;
    if (!read_gpus(value, &n, &count) || strpbrk(value, " \t"))
        return refuse(why, "expected a small whole number, or STAGE=NUMBER",
                      "write it as in gpus=1 or gpus=train=1");
    return add_text(s->gpus, sizeof s->gpus, s->gpus[0] ? " " : "", value, "") ||
           refuse(why, "too many stages", "leave some out");
}

/* ---- options of sbatch ---- */

/* Remove the line of an option that is given again. */
static void drop_option(char *options, const char *key)
{
    char start[160];
    snprintf(start, sizeof start, "#SBATCH --%s", key);
    for (char *at = strstr(options, start); at; at = strstr(at + 1, start)) {
        const char after = at[strlen(start)];
        if (after != '=' && after != '\n') continue;
        const char *next = strchr(at, '\n') + 1;
        memmove(at, next, strlen(next) + 1);
        return;
    }
}

static bool is_option(const char *key)
{
    for (const char *c = key; *c; c++)
        if ((c == key && *c == '-') ||
            (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '-'))
            return false;
    return *key != '\0';
}

static bool add_option(fth__slurm_settings *s, const char *key, const char *value, reason *why)
{
    static const char ours[] =
        "array dependency output error mem comment job-name parsable wrap test-only wait "
        "cpus-per-task signal ntasks nodes mem-per-cpu chdir open-mode input kill-on-invalid-dep";
    char line[VALUE + 200];
    if (fth__word_find(ours, key) >= 0)
        return refuse(why, "Fathom sets this option itself",
                      "memory follows from the plan (--memory limits it), processors from cpus=N "
                      "or --threads");
    if (!is_option(key))
        return refuse(why, "an option of sbatch has small letters, digits and dashes",
                      "write it without its leading dashes, as in account=lab");
    if (strpbrk(value, "\n\r\"\\"))
        return refuse(why, "a value has no line breaks, quotes or backslashes", "leave them out");
    drop_option(s->options, key);
    const bool quote = strpbrk(value, " \t#") != NULL;
    const int n = snprintf(line, sizeof line, "#SBATCH --%s%s%s%s%s\n", key, *value ? "=" : "",
                           quote ? "\"" : "", value, quote ? "\"" : "");
    return (n > 0 && (size_t)n < sizeof line &&
            add_text(s->options, sizeof s->options, "", line, "")) ||
           refuse(why, "too many options for sbatch", "leave some out");
}

/* "mail-user=me@lab", "exclusive" */
static bool add_pair(fth__slurm_settings *s, const char *pair, reason *why)
{
    char key[64];
    const size_t n = strcspn(pair, "=");
    if (n == 0 || n >= sizeof key)
        return refuse(why, "expected an option of sbatch", "write it as in nice=100 or exclusive");
    fth__str_copy(key, n + 1, pair);
    return add_option(s, key, pair[n] ? pair + n + 1 : "", why);
}

/* ---- one key ---- */

static bool add_lines(fth__slurm_settings *s, const char *before, const char *value,
                      const char *after, reason *why)
{
    return add_text(s->prologue, sizeof s->prologue, before, value, after) ||
           refuse(why, "the prologue is too long", "put it into a file and source that");
}

static bool apply(fth__slurm_settings *s, const char *key, const char *value, reason *why)
{
    if (strcmp(key, "cpus") == 0)
        return read_count(value, 1, &s->cpus) ||
               refuse(why, "expected a small whole number", "write it as in cpus=8");
    if (strcmp(key, "gpus") == 0) return add_gpus(s, value, why);
    if (strcmp(key, "time") == 0) {
        s->minutes = fth__slurm_minutes(value);
        return s->minutes > 0 ||
               refuse(why, "expected a time", "write minutes, HH:MM:SS or DAYS-HH:MM:SS");
    }
    if (strcmp(key, "probe") == 0) {
        s->no_probe = strcmp(value, "false") == 0;
        return s->no_probe || strcmp(value, "true") == 0 ||
               refuse(why, "expected true or false", "write probe=false");
    }
    /* Without its modules a task may fail late, or compute with another library. */
    if (strcmp(key, "modules") == 0)
        return add_lines(s, "module load ", value, " || exit 1\n", why);
    if (strcmp(key, "prologue") == 0) return add_lines(s, "", value, "\n", why);
    if (strcmp(key, "options") == 0) return add_pair(s, value, why);
    if (strcmp(key, "partition") == 0) {
        if (strlen(value) >= sizeof s->partition)
            return refuse(why, "the name is too long", "'sinfo' lists the partitions");
        fth__str_copy(s->partition, sizeof s->partition, value);
    }
    return add_option(s, key, value, why);
}

static const char *name_of(int k)
{
    return keys[k].type == FTH_CONFIG_SECTION ? NULL : keys[k].name + strlen(section);
}

static int find_key(const char *key)
{
    for (int k = 0; k < KEYS; k++)
        if (name_of(k) && strcmp(name_of(k), key) == 0) return k;
    return -1;
}

/* ---- the command line ---- */

static fth_status fail_pair(const char *pair, const reason *why, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "--slurm %.200s: %s", pair, why->text);
    fth_err_hint(err, "%s", why->hint);
    return FTH_E_COMMAND;
}

/* A key that is nearly one of the table is a slip, and no option of sbatch. */
static fth_status check_near(const char *pair, const char *key, fth_err *err)
{
    char known[400], hint[200];
    size_t n = 0;
    fth__text t;
    fth__text_init(&t, known, sizeof known);
    for (int k = 0; k < KEYS; k++)
        if (name_of(k)) fth__text_add(&t, "%s%s", t.used ? " " : "", name_of(k));
    const int near = fth_word_nearest(known, key);
    const char *word = near >= 0 ? fth__word(known, near, &n) : NULL;
    if (!word) return FTH_OK;
    snprintf(hint, sizeof hint, "did you mean '%.*s'? An option of sbatch is options=%.60s", (int)n,
             word, pair);
    return fail_pair(pair, &(reason){"there is no such key", hint}, err);
}

static fth_status add_given(fth__slurm_settings *s, const char *pair, fth_err *err)
{
    char key[64];
    reason why = {0};
    const size_t n = strcspn(pair, "=");
    if (n == 0 || n >= sizeof key)
        return fail_pair(pair, &(reason){"expected KEY=VALUE", "write it as in partition=long"},
                         err);
    fth__str_copy(key, n + 1, pair);
    if (find_key(key) < 0) FTH_TRY(check_near(pair, key, err));
    return apply(s, key, pair[n] ? pair + n + 1 : "", &why) ? FTH_OK : fail_pair(pair, &why, err);
}

/* ---- the config ---- */

/* Value i of a key as a text. */
static void take_value(const fth_config *cfg, const fth_config_key *row, int64_t i, char *out)
{
    if (row->type == FTH_CONFIG_INT)
        snprintf(out, VALUE, "%lld", (long long)fth_config_int(cfg, row->name));
    else if (row->type == FTH_CONFIG_BOOL)
        snprintf(out, VALUE, "%s", fth_config_bool(cfg, row->name) ? "true" : "false");
    else
        fth__str_copy(out, VALUE, fth_config_text_at(cfg, row->name, i));
}

static bool add_config(fth__slurm_settings *s, const fth_config *cfg, int k, reason *why)
{
    char value[VALUE];
    if (!name_of(k) || !fth_config_is_given(cfg, keys[k].name)) return true;
    for (int64_t i = 0; i < fth_config_count(cfg, keys[k].name); i++) {
        take_value(cfg, &keys[k], i, value);
        if (strlen(value) == VALUE - 1) return refuse(why, "it is too long", "shorten it");
        if (!apply(s, name_of(k), value, why)) return false;
    }
    return true;
}

static bool has_table(const fth_instrument *in)
{
    return fth__schema_find(in->schema, keys[1].name) >= 0;
}

static bool is_stage(const fth_instrument *in, const char *word, size_t n)
{
    for (int k = 0; k < in->n_stages; k++)
        if (strlen(in->stage[k].name) == n && strncmp(in->stage[k].name, word, n) == 0) return true;
    return n == 0;
}

static bool check_stages(const fth__slurm_settings *s, const fth_instrument *in, reason *why)
{
    size_t n = 0;
    const char *w;
    for (int i = 0; (w = fth__word(s->gpus, i, &n)); i++) {
        const char *equals = memchr(w, '=', n);
        if (!is_stage(in, w, equals ? (size_t)(equals - w) : 0))
            return refuse(why, "there is no such stage", "name a stage of this instrument");
    }
    return true;
}

fth_status fth__slurm_check_config(fth_jobs *jobs, const fth_config *cfg,
                                   const fth_instrument *instrument, bool *good, fth_err *err)
{
    fth__slurm_settings s = {0};
    if (!has_table(instrument)) return FTH_OK;
    for (int k = 0; k < KEYS; k++) {
        reason why = {0};
        if (add_config(&s, cfg, k, &why) &&
            (!name_of(k) || strcmp(name_of(k), "gpus") != 0 || check_stages(&s, instrument, &why)))
            continue;
        *good = false;
        FTH_TRY(fth__jobs_say(jobs,
                              &(fth_config_mistake){.kind = FTH_MISTAKE_CHECK,
                                                    .at = fth_config_where(cfg, keys[k].name),
                                                    .key = keys[k].name,
                                                    .expected = why.text,
                                                    .found = "",
                                                    .hint = why.hint},
                              err));
    }
    return FTH_OK;
}

/* ---- both ---- */

static bool is_given(const char *key, const char *const *pair, int n)
{
    const size_t m = strlen(key);
    for (int i = 0; i < n; i++)
        if (strncmp(pair[i], key, m) == 0 && (pair[i][m] == '=' || !pair[i][m])) return true;
    return false;
}

fth_status fth__slurm_read(fth__slurm_settings *out, const fth_job *job, const char *const *pair,
                           int n, fth_err *err)
{
    *out = (fth__slurm_settings){0};
    for (int k = 0; job && has_table(job->instrument) && k < KEYS; k++) {
        reason why = {0};
        /* options are replaced one by one */
        if (!name_of(k) || (strcmp(name_of(k), "options") != 0 && is_given(name_of(k), pair, n)))
            continue;
        if (!add_config(out, job->config, k, &why)) /* was reported when the config was checked */
            return FTH_FAIL(err, FTH_E_CONFIG, "%s: %s: %s", job->config_path, keys[k].name,
                            why.text);
    }
    for (int i = 0; i < n; i++) FTH_TRY(add_given(out, pair[i], err));
    return FTH_OK;
}

bool fth__slurm_is_same(const fth__slurm_settings *a, const fth__slurm_settings *b)
{
    return a->minutes == b->minutes && a->cpus == b->cpus && a->no_probe == b->no_probe &&
           strcmp(a->gpus, b->gpus) == 0 && strcmp(a->partition, b->partition) == 0 &&
           strcmp(a->options, b->options) == 0 && strcmp(a->prologue, b->prologue) == 0;
}
