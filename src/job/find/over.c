/* over.c - `--over key=a,b`: every config once for each value, or for each combination of values.
 *
 * What makes such a job is what --set would give, the output directory included: the one of the
 * config with "_key-value" behind it. So nothing is written beside the configs, and the command of
 * each task is that of one job.
 */
#include "job/find/over.h"

#include "base/assert.h"
#include "base/str.h"
#include "config/read.h"
#include "mem/heap.h"

#include <string.h>

enum { COMBINATIONS = 1 << 16, VALUES = 4096 }; /* far more jobs than anybody runs */

static fth_status refuse(const char *text, const char *why, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "--over %.200s: %s", text, why);
    fth_err_hint(err, "write --over fit.rate=0.1,0.2; a value with a comma stands in quotes or "
                      "brackets, as in --over \"steps=[1, 2],[3, 4]\"");
    return FTH_E_COMMAND;
}

static bool is_key(const char *assignment, const char *key, size_t n)
{
    return strncmp(assignment, key, n) == 0 && assignment[n] == '=';
}

static fth_status check_key(const fth_jobs *jobs, const char *text, size_t n, fth_err *err)
{
    static const char *const own[] = {"output_dir", "output.dir", "instrument", "paths"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (is_key(text, own[i], n) && strlen(own[i]) == n)
            return refuse(text, "this key cannot be varied", err);
    for (int i = 0; i < jobs->over.n; i++)
        if (is_key(jobs->over.key[i].text, text, n))
            return refuse(text, "this key is varied twice", err);
    for (int i = 0; i < jobs->opt.n_sets; i++)
        if (is_key(jobs->opt.set[i], text, n))
            return refuse(text, "--set, or --seed, gives this key too", err);
    return FTH_OK;
}

/* "key=value" of each, which is what --set would be given. */
static fth_status add_values(fth_jobs *jobs, fth__over_key *k, const char *values, fth_err *err)
{
    size_t n = 0;
    const char *value;
    int64_t count = 0;
    while (count <= VALUES && fth_config_split(values, count, &n)) count++;
    if (count > VALUES) return refuse(k->text, "it has too many values", err);
    k->set = fth__store_take(&jobs->texts, (uint64_t)count * sizeof *k->set);
    k->tag = fth__store_take(&jobs->texts, (uint64_t)count * sizeof *k->tag);
    if (!k->set || !k->tag) return fth__jobs_no_memory(err);
    for (; (value = fth_config_split(values, k->n, &n)) != NULL; k->n++) {
        if (n == 0) return refuse(k->text, "a value is empty", err);
        const int key = (int)(values - k->text);
        const char *name = fth__store_text(&jobs->texts, k->text, (size_t)key - 1);
        const size_t bytes = name ? fth_config_tag(name, value, n, NULL, 0) + 1 : 0;
        char *tag = name ? fth__store_take(&jobs->texts, bytes) : NULL;
        k->tag[k->n] = tag;
        k->set[k->n] = fth__store_print(&jobs->texts, "%.*s%.*s", key, k->text, (int)n, value);
        if (!tag || !k->set[k->n]) return fth__jobs_no_memory(err);
        fth_config_tag(name, value, n, tag, bytes);
        for (int64_t i = 0; i < k->n; i++)
            if (strcmp(k->tag[i], tag) == 0)
                return refuse(k->text, "two values would have one output directory", err);
    }
    return FTH_OK;
}

fth_status fth__jobs_read_over(fth_jobs *jobs, fth_err *err)
{
    fth__over *o = &jobs->over;
    o->n_jobs = 1;
    if (jobs->opt.n_over > FTH__OVER_KEYS)
        return FTH_FAIL(err, FTH_E_COMMAND, "--over is given more than %d times",
                        (int)FTH__OVER_KEYS);
    for (int i = 0; i < jobs->opt.n_over; i++) {
        const char *text = jobs->opt.over[i], *equals = strchr(text, '=');
        if (!equals || equals == text) return refuse(text, "KEY=VALUE,VALUE is expected", err);
        FTH_TRY(check_key(jobs, text, (size_t)(equals - text), err));
        fth__over_key *k = &o->key[o->n++];
        k->text = text;
        FTH_TRY(add_values(jobs, k, equals + 1, err));
        if (o->n_jobs > COMBINATIONS / k->n)
            return FTH_FAIL(err, FTH_E_COMMAND, "--over stands for more than %d combinations",
                            (int)COMBINATIONS);
        o->n_jobs *= k->n;
    }
    return FTH_OK;
}

/* Number of the value of key k in combination c; the last key varies fastest. */
static int64_t value_of(const fth__over *o, int64_t c, int k)
{
    for (int i = o->n - 1; i > k; i--) c /= o->key[i].n;
    return c % o->key[k].n;
}

fth_status fth__jobs_repeat(fth_jobs *jobs, fth_err *err)
{
    const int64_t n = jobs->n_found, times = jobs->over.n_jobs;
    if (times == 1) return FTH_OK;
    FTH_TRY(fth__grow(jobs->mem, &jobs->found, &jobs->cap_found, n * times, err));
    for (int64_t i = n * times;
         i-- > 0;) { /* from behind: nothing is overwritten before its turn */
        jobs->found[i] = jobs->found[i / times];
        jobs->found[i].combination = i % times;
    }
    jobs->n_found = n * times;
    return FTH_OK;
}

fth_status fth__jobs_add_over(fth_jobs *jobs, fth_config *cfg, fth_err *err)
{
    const fth__over *o = &jobs->over;
    for (int k = 0; k < o->n; k++)
        FTH_TRY(fth__config_set_as(cfg, "--over", o->key[k].set[value_of(o, o->now, k)], err));
    return FTH_OK;
}

/* A text in double quotes, as YAML reads it; paths have no control characters that matter. */
static void quote(fth__text *t, const char *text)
{
    fth__text_add_chars(t, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fth__text_add_chars(t, "\\", 1);
        fth__text_add_chars(t, text, 1);
    }
    fth__text_add_chars(t, "\"", 1);
}

fth_status fth__jobs_over_sets(fth_jobs *jobs, const char *dir, const char *const **out, int *n,
                               fth_err *err)
{
    const fth__over *o = &jobs->over;
    const char **set = fth__store_take(&jobs->texts, ((uint64_t)o->n + 1) * sizeof *set);
    char room[8192];
    fth__text t;
    if (!set) return fth__jobs_no_memory(err);
    fth__text_init(&t, room, sizeof room);
    size_t length = strlen(dir);
    while (length > 1 && dir[length - 1] == '/') length--;
    fth__text_add_chars(&t, dir, length);
    for (int k = 0; k < o->n; k++) {
        const int64_t v = value_of(o, o->now, k);
        set[k] = o->key[k].set[v];
        fth__text_add(&t, "_%s", o->key[k].tag[v]);
    }
    const char *path = fth__store_text(&jobs->texts, room, strlen(room));
    if (!path) return fth__jobs_no_memory(err);
    if (fth__text_is_cut(&t))
        return FTH_FAIL(err, FTH_E_COMMAND, "the output directory of --over is too long: %.80s...",
                        path);
    fth__text_init(&t, room, sizeof room);
    fth__text_add(&t, "output_dir=");
    quote(&t, path);
    set[o->n] = fth__store_text(&jobs->texts, room, strlen(room));
    if (!set[o->n]) return fth__jobs_no_memory(err);
    *out = set;
    *n = o->n + 1;
    return FTH_OK;
}
