/* consensus_verb.c - `fathom spatial consensus -c CFG [--over model.n_components=4,6,8]`
 *
 * Restarts are jobs of their own: the runner packs, resumes and caches them. The consensus model is
 * one more job, whose loadings are given. Everything else is computed again in each call, from
 * files alone, so an interrupted call ends with the bytes of one that was not.
 */
#include "consensus.h"

#include "../answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- configs ---- */

/* Keys that restarts and the consensus model share. */
static fth_status begin_keys(sp_consensus_call *c, const sp_consensus_row *row, const char *model,
                             fth_err *err)
{
    FTH_TRY(sp_run_begin(&c->keys, &c->runs, model, err));
    FTH_TRY(sp_run_set(&c->keys, "training.restarts", "1", err));
    if (row->value[0]) FTH_TRY(sp_run_set(&c->keys, "model.n_components", row->value, err));
    if (c->over && !c->held_given)
        FTH_TRY(sp_run_set(&c->keys, "training.holdout_fraction", "0.05", err));
    return FTH_OK;
}

static fth_status restart_keys(sp_consensus_call *c, const sp_consensus_row *row, int64_t r,
                               const char *name, fth_err *err)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, r);
    FTH_TRY(begin_keys(c, row, name, err));
    FTH_TRY(sp_run_set(&c->keys, "training.first_restart", number, err));
    return sp_run_set(&c->keys, "analyze.export", "false", err);
}

static fth_status consensus_keys(sp_consensus_call *c, const sp_consensus_row *row, fth_err *err)
{
    char dir[FTH_PATH], path[FTH_PATH];
    FTH_TRY(fth_path_join(dir, c->runs.dir, row->model, err));
    FTH_TRY(fth_path_join(path, dir, SP_FIXED_LOADINGS, err));
    FTH_TRY(begin_keys(c, row, row->model, err));
    return sp_run_set(&c->keys, "model.loadings_file", path, err);
}

static fth_status fill_rows(sp_consensus_call *c, const fth_config *cfg, const char *model,
                            fth_err *err)
{
    c->n = c->over ? c->sweep.n : 1;
    for (int i = 0; i < c->n; i++) {
        sp_consensus_row *row = &c->row[i];
        *row = (sp_consensus_row){.factors = fth_config_int(cfg, "model.n_components")};
        row->held_mean = row->held_sd = row->held_error = row->consensus_held = (double)NAN;
        row->stability = row->silhouette = row->reproducibility = (double)NAN;
        const char *base = c->over ? c->sweep.run[i].model : model;
        snprintf(row->base, sizeof row->base, "%s", base);
        snprintf(row->model, sizeof row->model, "%s_consensus", base);
        if (c->over) {
            snprintf(row->value, sizeof row->value, "%s", sp_sweep_value(&c->sweep, i, 0));
            if (!fth_int_parse(row->value, &row->factors)) row->factors = 0;
        }
        if (row->factors >= 2) continue;
        const fth_status s =
            FTH_FAIL(err, FTH_E_CONFIG,
                     "model.n_components is %s: a consensus tells factors apart, so it needs a "
                     "number from 2",
                     c->over ? row->value : "1");
        fth_err_hint(err, "write model.n_components: 2 or more in %s, or give --over",
                     c->runs.config);
        return s;
    }
    return FTH_OK;
}

static fth_status take_config(sp_consensus_call *c, fth_config *cfg, const char *to, fth_err *err)
{
    char model[SP_NAME];
    FTH_TRY(sp_runs_check(&c->runs, cfg, "a consensus", err));
    if (fth_config_has(cfg, "model.loadings_file")) {
        const fth_status s = FTH_FAIL(err, FTH_E_CONFIG,
                                      "%s: model.loadings_file fixes the loadings, so restarts "
                                      "would not differ in them",
                                      c->runs.config);
        fth_err_hint(err, "remove model.loadings_file");
        return s;
    }
    if (fth_config_bool(cfg, "model.spatial") &&
        fth_config_int(cfg, "model.nonspatial_components") > 0) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_CONFIG,
                     "%s: model.nonspatial_components is %" PRId64
                     ": spatial factors and others would fall into one cluster",
                     c->runs.config, fth_config_int(cfg, "model.nonspatial_components"));
        fth_err_hint(err, "set model.nonspatial_components to 0, or compare training.restarts");
        return s;
    }
    FTH_TRY(sp_model_name(cfg, model, sizeof model, err));
    FTH_TRY(sp_runs_folder(&c->runs, cfg, to, "_consensus", err));
    c->held_given = fth_config_is_given(cfg, "training.holdout_fraction");
    c->seed = fth_config_int(cfg, "seed");
    if (c->over) FTH_TRY(sp_sweep_expand(&c->sweep, model, err));
    return fill_rows(c, cfg, model, err);
}

static fth_status read_config(sp_consensus_call *c, const char *to, fth_err *err)
{
    fth_config *cfg = NULL;
    FTH_TRY(fth_config_create(&cfg, c->runs.mem, err));
    const fth_status s = take_config(c, cfg, to, err),
                     end = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

/* ---- --plan ---- */

static fth_status tell_files(sp_consensus_call *c, fth_err *err)
{
    fth_answer *a = c->runs.answer;
    fth_answer_file(a, FTH_FILE_INPUT, c->runs.config, -1, "%" PRId64 " restarts of it",
                    c->restarts);
    for (int i = 0; i < c->n; i++)
        if (a->plan || c->row[i].used > 0) FTH_TRY(sp_consensus_tell(c, &c->row[i], err));
    if (!c->over) return FTH_OK;
    FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, c->runs.dir, SP_CHOICE_CSV, NULL, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, c->runs.dir, SP_CHOICE_JSON, NULL, err));
    return sp_answer_named(a, FTH_FILE_FIGURE, c->runs.dir, SP_CHOICE_FIGURE, NULL, err);
}

/* Clustering, as a line between those of the stages. */
static fth_status plan_clusters(sp_consensus_call *c, const sp_consensus_row *row, fth_err *err)
{
    sp_sizes size;
    char text[24];
    FTH_TRY(sp_runs_sizes(&c->runs, &c->keys, &size, err));
    const uint64_t bytes = sp_consensus_most(c->restarts, row->factors, size.genes);
    fth_answer *a = c->runs.answer;
    if (bytes > c->runs.most) c->runs.most = bytes;
    if (!a->json) {
        fprintf(a->out, "%-40s %-12s %10s\n", row->model, "clusters",
                fth_mem_format_size(bytes, text, sizeof text));
        return FTH_OK;
    }
    fth_json_writer *w = fth_answer_facts(a);
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "job", row->model);
    fth_json_text(w, "stage", "clusters");
    fth_json_u64(w, "planned_bytes", bytes);
    fth_json_close(w);
    return FTH_OK;
}

static fth_status plan_row(sp_consensus_call *c, const sp_consensus_row *row, fth_err *err)
{
    char name[SP_NAME * 3];
    for (int64_t r = 0; r < c->restarts; r++) {
        sp_consensus_restart_name(name, row, r);
        FTH_TRY(restart_keys(c, row, r, name, err));
        FTH_TRY(sp_runs_plan(&c->runs, &c->keys, r == 0 && row == c->row, err));
    }
    FTH_TRY(plan_clusters(c, row, err));
    FTH_TRY(consensus_keys(c, row, err));
    return sp_runs_plan(&c->runs, &c->keys, false, err);
}

static fth_status plan_all(sp_consensus_call *c, fth_err *err)
{
    fth_answer *a = c->runs.answer;
    FTH_TRY(tell_files(c, err));
    if (a->json)
        fth_json_open(fth_answer_facts(a), "tasks", '[');
    else
        fprintf(a->out, "%-40s %-12s %10s\n", "job", "stage", "memory");
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < c->n; i++) s = plan_row(c, &c->row[i], err);
    if (a->json) {
        fth_json_writer *w = fth_answer_facts(a);
        fth_json_close(w);
        fth_json_u64(w, "planned_bytes", c->runs.most);
    } else if (s == FTH_OK)
        fth_answer_memory(a, c->runs.most, "of the largest stage; several may run at a time");
    return s;
}

/* ---- running ---- */

static fth_status write_restarts(sp_consensus_call *c, char (*name)[SP_NAME * 3],
                                 const char **model, fth_err *err)
{
    for (int64_t i = 0; i < c->n * c->restarts; i++) {
        const sp_consensus_row *row = &c->row[i / c->restarts];
        const int64_t r = i % c->restarts;
        sp_consensus_restart_name(name[i], row, r);
        model[i] = name[i];
        FTH_TRY(restart_keys(c, row, r, name[i], err));
        FTH_TRY(sp_runs_write(&c->runs, name[i], &c->keys, "one restart of a consensus", err));
    }
    return FTH_OK;
}

/* A restart that fails is left out later. */
static fth_status train_restarts(sp_consensus_call *c, fth_err *err)
{
    const uint64_t n = (uint64_t)(c->n * c->restarts);
    void *block = NULL;
    fth_err failed = {0};
    FTH_TRY(fth_mem_take(c->runs.mem, FTH_MEM_META, n * (SP_NAME * 3 + sizeof(char *)), "restarts",
                         &block, err));
    const char **model = block;
    fth_status s = write_restarts(c, (char(*)[SP_NAME * 3])(void *)(model + n), model, err);
    if (s == FTH_OK) {
        s = sp_runs_go(&c->runs, model, (int64_t)n, &failed);
        if (s == FTH_E_JOB_FAILED)
            s = FTH_OK;
        else if (s != FTH_OK && err)
            *err = failed;
    }
    (void)fth_mem_release(c->runs.mem, block, NULL);
    return s;
}

static fth_status make_row(sp_consensus_call *c, sp_consensus_row *row, sp_consensus *of,
                           fth_err *err)
{
    const char *model = row->model;
    FTH_TRY(sp_consensus_collect(c, row, err));
    FTH_TRY(sp_consensus_cluster(of, c, row, err));
    FTH_TRY(sp_consensus_fix(of, c, row, err));
    FTH_TRY(consensus_keys(c, row, err));
    FTH_TRY(sp_runs_write(&c->runs, model, &c->keys, "loadings that restarts agree on", err));
    FTH_TRY(sp_runs_go(&c->runs, &model, 1, err));
    FTH_TRY(sp_consensus_write(of, c, row, err));
    fprintf(c->runs.answer->out,
            "%s: %" PRId64 " factors from %" PRId64 " of %" PRId64 " spectra, silhouette %.4f, "
            "stability %.4f, reproducibility %.4f\n",
            model, row->factors, row->kept, row->spectra, row->silhouette, row->stability,
            row->reproducibility);
    return FTH_OK;
}

/* With several numbers of factors, one without a consensus is a row without numbers. */
static fth_status make_rows(sp_consensus_call *c, fth_err *err)
{
    int made = 0;
    for (int i = 0; i < c->n; i++) {
        sp_consensus of = {0};
        fth_err why = {0};
        const fth_status s = make_row(c, &c->row[i], &of, &why);
        sp_consensus_close(&of);
        made += s == FTH_OK;
        if (s == FTH_OK) continue;
        c->row[i].used = 0;
        const bool skip =
            c->over && (s == FTH_E_JOB_FAILED || s == FTH_E_CONFIG) && (i + 1 < c->n || made > 0);
        if (!skip) {
            if (err) *err = why;
            return s;
        }
        fprintf(c->runs.answer->notes, "%s has no consensus: %s\n", c->row[i].base, why.text);
    }
    return FTH_OK;
}

static fth_status make_all(sp_consensus_call *c, fth_err *err)
{
    fth_answer *a = c->runs.answer;
    FTH_TRY(fth_folder_make_all(c->runs.mem, c->runs.dir, err));
    FTH_TRY(train_restarts(c, err));
    FTH_TRY(make_rows(c, err));
    c->suggested = c->over ? sp_choice_suggest(c) : -1;
    if (c->over) {
        sp_choice_print(c, a->out);
        FTH_TRY(sp_choice_write(c, err));
    }
    FTH_TRY(tell_files(c, err));
    if (!a->json) return FTH_OK;
    fth_json_writer *w = fth_answer_facts(a);
    if (c->over)
        sp_choice_put(c, w);
    else
        sp_consensus_put(c, c->row, w);
    return FTH_OK;
}

/* ---- the command line ---- */

typedef const char *get_flag(void *user, const char *flag);

static fth_status read_real(double *to, const char *flag, double least, double most,
                            get_flag *value, void *user, fth_err *err)
{
    const char *text = value(user, flag);
    double v = *to;
    if (!text) return FTH_OK;
    if (!fth_real_parse(text, &v) || !(v >= least && v <= most))
        return FTH_FAIL(err, FTH_E_COMMAND, "--%s %s: a number from %g to %g is expected", flag,
                        text, least, most);
    *to = v;
    return FTH_OK;
}

static fth_status read_counts(sp_consensus_call *c, get_flag *value, void *user, fth_err *err)
{
    const char *restarts = value(user, "restarts"), *jobs = value(user, "jobs");
    int64_t n = 0;
    c->restarts = restarts ? strtoll(restarts, NULL, 10) : 20;
    if (jobs && fth_int_parse(jobs, &n)) c->runs.jobs = n > 4096 ? 4096 : (int)n;
    if (c->restarts >= 2 && c->restarts <= SP_CONSENSUS_RESTARTS) return FTH_OK;
    const fth_status s = FTH_FAIL(
        err, FTH_E_COMMAND, "--restarts %s: a consensus compares restarts, from 2 to %d of them",
        restarts ? restarts : "", (int)SP_CONSENSUS_RESTARTS);
    fth_err_hint(err, "'fathom spatial train' trains a model once");
    return s;
}

static fth_status read_over(sp_consensus_call *c, get_flag *value, void *user, fth_err *err)
{
    const char *over = value(user, "over");
    if (!over) return FTH_OK;
    c->over = true;
    FTH_TRY(sp_sweep_add(&c->sweep, over, err));
    if (strcmp(c->sweep.key[0].key, "model.n_components") == 0) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_COMMAND,
                                  "--over %s: consensus compares numbers of factors, "
                                  "model.n_components=4,6,8",
                                  over);
    fth_err_hint(err, "'fathom spatial sweep' compares values of other keys");
    return s;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    fth_answer a;
    void *block = NULL;
    fth_mem *mem = fth_context_mem(ctx);
    (void)n_args, (void)arg;
    if (!value(user, "config")) {
        const fth_status s = FTH_FAIL(err, FTH_E_COMMAND, "no config was given");
        fth_err_hint(err, "fathom spatial consensus -c CONFIG --restarts 20");
        return s;
    }
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(sp_consensus_call), "consensus", &block, err));
    sp_consensus_call *c = memset(block, 0, sizeof *c);
    c->runs = (sp_runs){.ctx = ctx,
                        .mem = mem,
                        .answer = &a,
                        .config = value(user, "config"),
                        .command = "fathom spatial consensus",
                        .stages = "preprocess train analyze",
                        .devices = true};
    c->density = 0.5;
    c->tolerance = 0.05;
    fth_status s = read_counts(c, value, user, err);
    if (s == FTH_OK) s = read_real(&c->density, "density", 0, 2, value, user, err);
    if (s == FTH_OK) s = read_real(&c->tolerance, "tolerance", 0, 2, value, user, err);
    if (s == FTH_OK) s = read_over(c, value, user, err);
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) {
        s = read_config(c, value(user, "output"), err);
        if (s == FTH_OK) s = a.plan ? plan_all(c, err) : make_all(c, err);
        s = fth_answer_end(&a, s, err);
    }
    fth_mem_release(mem, block, NULL);
    return s;
}

static const fth_flag flags[] = {
    {.name = "config", .value = FTH_FLAG_FILE, .letter = 'c', .doc = "config of one model"},
    {.name = "restarts", .value = FTH_FLAG_COUNT, .doc = "trainings, 2 to 100 (default: 20)"},
    {.name = "over",
     .value = FTH_FLAG_SET,
     .doc = "numbers of factors to compare, as in model.n_components=4,6,8"},
    {.name = "density",
     .value = FTH_FLAG_WORD,
     .doc = "leave out spectra whose mean distance to the nearest is at least this "
            "(default: 0.5; 2 keeps all)"},
    {.name = "tolerance",
     .value = FTH_FLAG_WORD,
     .doc = "how far below the best stability a suggested number of factors may be "
            "(default: 0.05)"},
    {.name = "jobs",
     .value = FTH_FLAG_COUNT,
     .doc = "most trainings at a time (default: one for each thread)"},
    {.name = "output",
     .value = FTH_FLAG_DIR,
     .letter = 'o',
     .doc = "folder of the restarts (default: the output directory with _consensus behind it)"},
    {0}};

const fth_verb sp_verb_consensus = {
    .name = "consensus",
    .args = "",
    .brief = "train many restarts and keep the factors that they agree on",
    .doc =
        "Trains the model of a config from different starts, each a job that is resumed and not "
        "repeated, and clusters the loadings of all of them as consensus NMF (cNMF) does: "
        "columns of norm 1, outliers left out by their distance to the nearest others, k-means, "
        "medians. The medians are the loadings of one more model, MODEL_consensus, whose factors "
        "are fitted to them; analyze, figures and export take it as any other.\n\n"
        "With --over it does so for several numbers of factors and suggests one: the largest "
        "whose stability (silhouette of all spectra) is within the tolerance of the best and "
        "whose mean held-out deviance is within one standard error of the least; where none has "
        "both, the one with the least deviance among those that are stable. 5 % of the cells are "
        "held out where the config does not say.\n\n"
        "Writes consensus_loadings.npy and .csv, stability.csv, spectra.csv, consensus.json and "
        "the clustergram consensus.png into the folder of the consensus model; with --over also "
        "choice.csv, choice.json and choice.png.",
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
