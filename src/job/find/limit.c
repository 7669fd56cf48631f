/* limit.c - time limits of stages: "30m" of every stage, "train=1h30m" of one.
 *
 * The command line and the key time_limit of a config say them in the same way. The command line
 * comes first, and a limit that names the stage before one that does not.
 */
#include "job/find/limit.h"

#include "base/str.h"
#include "config/schema.h"

#include <string.h>

static const double longest_s = 1e8; /* three years: beyond it is a slip of the unit */

static double unit_of(char c)
{
    return c == 's' ? 1 : c == 'm' ? 60 : c == 'h' ? 3600 : c == 'd' ? 86400 : 0;
}

/* "90s", "1h30m", "1.5h"; 0: it is none. */
static double parse_seconds(const char *text)
{
    double sum = 0, last = 1e9;
    while (*text) {
        double value = 0, part = 1;
        bool digits = false, fraction = false;
        for (; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction); text++) {
            if (*text == '.') {
                fraction = true;
                continue;
            }
            digits = true;
            if (fraction) part /= 10;
            value = fraction ? value + part * (*text - '0') : 10 * value + (*text - '0');
        }
        const double unit = unit_of(*text);
        if (!digits || unit <= 0 || unit >= last) return 0; /* each unit once, the larger first */
        sum += value * unit;
        last = unit;
        text++;
    }
    return sum <= longest_s ? sum : 0;
}

bool fth__limit_parse(const char *text, fth__time_limit *out)
{
    const char *equals = strchr(text, '=');
    *out = (fth__time_limit){.stage = text, .n_stage = equals ? (size_t)(equals - text) : 0};
    out->text = equals ? equals + 1 : text;
    out->seconds = parse_seconds(out->text);
    return out->seconds > 0 && (!equals || out->n_stage > 0);
}

static bool is_stage(const char *name, size_t n, const char *stage)
{
    return strlen(stage) == n && strncmp(stage, name, n) == 0;
}

/* A better one replaces *best: one that names the stage, or the first that names none. */
static void consider(const char *text, const char *stage, fth__time_limit *best)
{
    fth__time_limit l;
    if (!fth__limit_parse(text, &l) || (l.n_stage > 0 && !is_stage(l.stage, l.n_stage, stage)))
        return;
    if (best->seconds <= 0 || (best->n_stage == 0 && l.n_stage > 0)) *best = l;
}

fth__time_limit fth__limit_find(const fth_job *job, const char *stage, const char *const *given,
                                int n)
{
    fth__time_limit best = {0};
    for (int i = 0; i < n; i++) consider(given[i], stage, &best);
    if (best.seconds > 0 || fth__schema_find(job->instrument->schema, FTH__LIMIT_KEY) < 0)
        return best;
    for (int64_t i = 0; i < fth_config_count(job->config, FTH__LIMIT_KEY); i++)
        consider(fth_config_text_at(job->config, FTH__LIMIT_KEY, i), stage, &best);
    return best;
}

/* ---- mistakes ---- */

static const char wanted[] = "a time with its unit, as 90s, 30m, 1h30m or 2d, or STAGE=TIME";

fth_status fth__limits_check(const fth_jobs *jobs, const char *const *given, int n, fth_err *err)
{
    for (int i = 0; i < n; i++) {
        fth__time_limit l;
        if (!fth__limit_parse(given[i], &l)) {
            FTH_FAIL(err, FTH_E_COMMAND, "--time-limit takes %s, not '%.200s'", wanted, given[i]);
            fth_err_hint(err, "write --time-limit 30m, or --time-limit train=2h");
            return FTH_E_COMMAND;
        }
        char stage[80];
        snprintf(stage, sizeof stage, "%.*s", (int)l.n_stage, l.stage);
        if (l.n_stage > 0) FTH_TRY(fth__jobs_check_names(jobs, stage, "--time-limit", err));
    }
    return FTH_OK;
}

static bool has_stage(const fth_instrument *instrument, const fth__time_limit *l)
{
    for (int k = 0; k < instrument->n_stages; k++)
        if (is_stage(l->stage, l->n_stage, instrument->stage[k].name)) return true;
    return l->n_stage == 0;
}

fth_status fth__limits_check_config(fth_jobs *jobs, const fth_config *cfg,
                                    const fth_instrument *instrument, bool *good, fth_err *err)
{
    if (fth__schema_find(instrument->schema, FTH__LIMIT_KEY) < 0) return FTH_OK;
    const fth_place at = fth_config_where(cfg, FTH__LIMIT_KEY);
    for (int64_t i = 0; i < fth_config_count(cfg, FTH__LIMIT_KEY); i++) {
        const char *text = fth_config_text_at(cfg, FTH__LIMIT_KEY, i);
        fth__time_limit l;
        const bool parsed = fth__limit_parse(text, &l);
        if (parsed && has_stage(instrument, &l)) continue;
        char expected[400], found[240];
        fth__text t;
        fth__text_init(&t, expected, sizeof expected);
        if (!parsed) fth__text_add(&t, "%s", wanted);
        for (int k = 0; parsed && k < instrument->n_stages; k++)
            fth__text_add(&t, "%s%s", k ? " " : "a stage of: ", instrument->stage[k].name);
        fth__text_mark_cut(&t);
        snprintf(found, sizeof found, "'%.200s'", text);
        *good = false;
        FTH_TRY(fth__jobs_say(jobs,
                              &(fth_config_mistake){.kind = FTH_MISTAKE_CHOICE,
                                                    .at = at,
                                                    .key = FTH__LIMIT_KEY,
                                                    .expected = expected,
                                                    .found = found,
                                                    .hint = ""},
                              err));
    }
    return FTH_OK;
}
