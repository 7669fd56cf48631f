/* plan.c - the memory of the jobs of a config; the files of a general config; further verbs. */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

/* ---- plan ---- */

typedef struct planner {
    const cli_call *call;
    fth_options engine;
    fth_json_writer json;
    bool as_json;
    fth_status worst; /* of those that do not fit */
} planner;

/* A stage that does not fit is a row of the answer and does not end it. */
static fth_status plan_stage(planner *p, const fth_job *job, const fth_stage *stage, fth_err *err)
{
    fth_stage_options opt = {.job = job, .stage = stage, .engine = p->engine};
    if (!opt.engine.scratch_dir) opt.engine.scratch_dir = job->output_dir;
    fth_stage_result r;
    fth_err local = {0};
    const fth_status s = fth_stage_predict(&opt, NULL, &r, &local);
    const bool fits = s == FTH_OK;
    if (!fits && s != FTH_E_NO_FIT && s != FTH_E_BUDGET) {
        if (err) *err = local;
        return s;
    }
    if (!fits && p->worst == FTH_OK) {
        p->worst = s;
        if (err) *err = local;
    }
    char a[24], b[24];
    const char *name = stage->shared ? job->dir_name : job->name;
    if (p->as_json) {
        fth_json_writer *j = &p->json;
        fth_json_open(j, NULL, '{');
        fth_json_text(j, "job", name);
        fth_json_text(j, "stage", stage->name);
        fth_json_text(j, "output_dir", job->output_dir);
        fth_json_bool(j, "fits", fits);
        fth_json_u64(j, "planned_bytes", r.plan.host_bytes);
        fth_json_u64(j, "device_planned_bytes", r.plan.device_bytes);
        fth_json_u64(j, "scratch_bytes", r.plan.scratch_bytes);
        fth_json_text(j, "plan", r.plan.text);
        cli_ranks_json(j, &r.plan);
        fth_json_close(j);
    } else if (fits) {
        char ranks[64] = "";
        if (r.plan.ranks > 1 && r.plan.seconds_together > 0)
            snprintf(ranks, sizeof ranks, "; %d ranks: %.1f times as fast", r.plan.ranks,
                     r.plan.seconds_alone / r.plan.seconds_together);
        fprintf(p->call->out, "%-32s %-12s %10s %10s  %s%s\n", name, stage->name,
                fth_mem_format_size(r.plan.host_bytes, a, sizeof a),
                fth_mem_format_size(r.plan.device_bytes, b, sizeof b), r.plan.text, ranks);
    } else {
        fprintf(p->call->out, "%-32s %-12s %10s\n", name, stage->name, "does not fit");
    }
    return FTH_OK;
}

static fth_status plan_jobs(planner *p, const fth_jobs *jobs, fth_err *err)
{
    const fth_job *job, *last = NULL;
    if (p->as_json)
        fth_json_open(&p->json, NULL, '[');
    else
        fprintf(p->call->out, "%-32s %-12s %10s %10s\n", "job", "stage", "memory", "device");
    for (int64_t i = 0; (job = fth_jobs_get(jobs, i)); last = job, i++)
        for (int k = 0; k < job->instrument->n_stages; k++) {
            const fth_stage *stage = &job->instrument->stage[k];
            if (stage->shared && last && strcmp(last->output_dir, job->output_dir) == 0) continue;
            FTH_TRY(plan_stage(p, job, stage, err));
        }
    if (p->as_json) {
        fth_json_close(&p->json);
        FTH_TRY(fth_json_end(&p->json, p->worst == FTH_OK ? err : NULL));
    }
    return p->worst;
}

fth_status cli_run_plan(const cli_call *call, fth_err *err)
{
    planner p = {.call = call};
    cli_json_begin(&p.json, call->out);
    p.as_json = cli_get(call, "json") != NULL;
    fth_mem *mem = NULL;
    fth_jobs *jobs = NULL;
    FTH_TRY(cli_context_options(call, fth_mem_free_now(), &p.engine, err));
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    fth_status s = cli_find_jobs(call, mem, "all", &jobs, err);
    if (s == FTH_OK) s = plan_jobs(&p, jobs, err);
    fth_jobs_destroy(jobs);
    const fth_status closed = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

/* ---- generate ---- */

static fth_status generate(const cli_call *call, fth_jobs *jobs, fth_err *err)
{
    int64_t written = 0;
    const int64_t n = fth_jobs_count(jobs);
    if (n == 0 || !fth_jobs_get(jobs, 0)->general_path) {
        FTH_FAIL(err, FTH_E_CONFIG, "%s is not a general config: it names its model",
                 cli_get(call, "config"));
        fth_err_hint(err, "it can be run as it is");
        return FTH_E_CONFIG;
    }
    FTH_TRY(fth_jobs_generate(jobs, cli_get(call, "force") != NULL, &written, err));
    if (cli_get(call, "json")) {
        fth_json_writer j;
        cli_json_begin(&j, call->out);
        fth_json_open(&j, NULL, '{');
        fth_json_u64(&j, "written", (uint64_t)written);
        fth_json_open(&j, "configs", '[');
        for (int64_t i = 0; i < n; i++) fth_json_text(&j, NULL, fth_jobs_get(jobs, i)->config_path);
        fth_json_close(&j);
        fth_json_close(&j);
        FTH_TRY(fth_json_end(&j, err));
    } else if (!cli_get(call, "quiet")) {
        for (int64_t i = 0; i < n; i++)
            fprintf(call->out, "%s\n", fth_jobs_get(jobs, i)->config_path);
        fprintf(call->out, "%lld of %lld written\n", (long long)written, (long long)n);
    }
    return FTH_OK;
}

fth_status cli_run_generate(const cli_call *call, fth_err *err)
{
    fth_mem *mem = NULL;
    fth_jobs *jobs = NULL;
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    fth_status s = cli_find_jobs(call, mem, "all", &jobs, err);
    if (s == FTH_OK) s = generate(call, jobs, err);
    fth_jobs_destroy(jobs);
    const fth_status closed = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

/* ---- further verbs ---- */

/* Variables of MorphSeq that stand for flags which are not given. */
static const struct {
    const char *command, *flag, *variable;
    enum { WORD, SWITCH, UNLESS } kind; /* SWITCH: 1, true, yes and on count; UNLESS: all others */
} variables[] = {{"focus run", "data-root", "MORPHSEQ_DATA_ROOT", WORD},
                 {"focus plan", "data-root", "MORPHSEQ_DATA_ROOT", WORD},
                 {"focus run", "channel", "YX1_BF_CHANNEL_INDEX", WORD},
                 {"focus plan", "channel", "YX1_BF_CHANNEL_INDEX", WORD},
                 {"focus run", "compat-batch", "MSEQ_YX1_BATCH_SIZE", WORD},
                 {"focus plan", "compat-batch", "MSEQ_YX1_BATCH_SIZE", WORD},
                 {"focus run", "overwrite", "MSEQ_OVERWRITE_BUILD01", SWITCH},
                 {"focus plan", "overwrite", "MSEQ_OVERWRITE_BUILD01", SWITCH},
                 {"focus run", "overwrite-stitch", "MSEQ_OVERWRITE_STITCH", SWITCH},
                 {"focus plan", "overwrite-stitch", "MSEQ_OVERWRITE_STITCH", SWITCH},
                 {"focus run", "stitch-z", "MSEQ_SKIP_Z_STITCH", UNLESS},
                 {"focus plan", "stitch-z", "MSEQ_SKIP_Z_STITCH", UNLESS}};

/* The value that a variable gives a flag, and which variable; NULL: none does. */
static const char *from_variable(const cli_call *call, const char *flag, const char **name)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        if (strcmp(variables[i].command, call->command->name) != 0 ||
            strcmp(variables[i].flag, flag) != 0)
            continue;
        const char *text = getenv(variables[i].variable);
        *name = variables[i].variable;
        if (!text || !*text) return NULL;
        if (variables[i].kind != WORD)
            return cli_is_yes(text) == (variables[i].kind == SWITCH) ? "" : NULL;
        return text;
    }
    return NULL;
}

/* "channel?": where the value of the flag comes from; NULL: none. */
static const char *flag_source(const cli_call *call, const char *flag)
{
    static char text[80]; /* until the next question */
    const char *variable = NULL;
    if (cli_get(call, flag)) return "flag";
    if (!from_variable(call, flag, &variable)) return NULL;
    snprintf(text, sizeof text, "environment %s", variable);
    return text;
}

/* "over#1" is the second value of a flag that may be given often. */
static const char *flag_value(void *user, const char *flag)
{
    char name[64];
    const char *variable;
    const size_t n = strlen(flag);
    if (n > 0 && n < sizeof name && flag[n - 1] == '?') {
        snprintf(name, sizeof name, "%.*s", (int)n - 1, flag);
        return flag_source(user, name);
    }
    const char *number = strchr(flag, '#');
    if (!number) {
        const char *typed = cli_get(user, flag);
        return typed ? typed : from_variable(user, flag, &variable);
    }
    snprintf(name, sizeof name, "%.*s", (int)(number - flag), flag);
    return cli_get_at(user, name, (int)strtol(number + 1, NULL, 10));
}

fth_status cli_run_verb(const cli_call *call, fth_err *err)
{
    fth_options opt;
    fth_context *ctx = NULL;
    FTH_TRY(cli_context_options(call, fth_mem_free_now(), &opt, err));
    cli_shown bar;
    cli_shown_begin(&bar, call);
    opt.progress = cli_shown_progress; /* of what the verb runs; Ctrl+C ends it with what is done */
    opt.progress_user = &bar;
    if (!opt.device) opt.device = "auto";
    FTH_TRY(fth_instrument_check(call->command->instrument, err));
    FTH_TRY(fth_context_create(&ctx, &opt, err));
    cli_monitor monitor = {0};
    cli_entry(call, ctx);
    const bool watched = !cli_get(call, "plan") && !call->command->verb->monitors;
    fth_status s = watched ? cli_monitor_begin(&monitor, call, ".", err) : FTH_OK;
    if (s == FTH_OK) {
        s = call->command->verb->run(ctx, call->n_args, call->arg, flag_value,
                                     (void *)(uintptr_t)call, call->out, err);
        cli_bar_clear(&bar.bar);
        s = cli_monitor_end(&monitor, call, s, err);
    }
    const fth_status closed = fth_context_destroy(ctx, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}
