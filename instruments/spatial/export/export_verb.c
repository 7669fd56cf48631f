/* export_verb.c - `fathom spatial export`, and the same at the end of a stage. */
#include "../answer.h"
#include "export.h"

#include <string.h>

/* The preprocessed file; NULL: not an h5ad file. */
static const char *source_of(const fth_config *cfg)
{
    static const char *const others[] = {"toy", "arrays", "tenx", "visium", "visium_hd", "xenium"};
    const char *dataset = fth_config_text(cfg, "dataset");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(dataset, others[i]) == 0) return NULL;
    if (fth_config_has(cfg, "preprocessing.h5ad_path"))
        return fth_config_text(cfg, "preprocessing.h5ad_path");
    const char *path = fth_config_has(cfg, "preprocessing.path")
                           ? fth_config_text(cfg, "preprocessing.path")
                           : NULL;
    return path && fth_path_kind_of(path) != FTH_PATH_FOLDER ? path : NULL; /* Zarr */
}

/* The lists of genes of every model, then the file. */
static fth_status export_all(const sp_export *e, fth_err *err)
{
    sp_data data;
    char dir[FTH_PATH];
    FTH_TRY(sp_data_open(&data, fth_context_mem(e->context), e->preprocessed, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < e->n_models; i++) {
        s = fth_path_join(dir, e->dir, e->model[i], err);
        if (s == FTH_OK) s = sp_export_genes(e->context, &data, dir, err);
    }
    sp_data_close(&data);
    return s == FTH_OK ? sp_export_write(e, err) : s;
}

fth_status sp_export_stage(const fth_stage_call *call, fth_err *err)
{
    char preprocessed[FTH_PATH], path[FTH_PATH];
    FTH_TRY(fth_path_join(preprocessed, call->output_dir, SP_PREPROCESSED, err));
    FTH_TRY(fth_path_join(path, call->model_dir, SP_RESULTS, err));
    const sp_export e = {.context = call->context,
                         .config = call->config,
                         .source = source_of(call->config),
                         .path = path,
                         .preprocessed = preprocessed,
                         .dir = call->output_dir,
                         .model = &call->model,
                         .n_models = 1};
    return export_all(&e, err);
}

/* ---- the verb ---- */

static const fth_flag flags[] = {
    {.name = "config",
     .value = FTH_FLAG_FILE,
     .letter = 'c',
     .doc = "config of one model, or a general one for all models that were analyzed"},
    {.name = "output",
     .value = FTH_FLAG_FILE,
     .letter = 'o',
     .doc = "the file to write; the default is results.h5ad in the folder of the results"},
    {0}};

static fth_status list_mistakes(const fth_config *cfg, FILE *out, fth_status s)
{
    fth_config_mistake m;
    char line[600];
    for (int64_t i = 0; fth_config_get_mistake(cfg, i, &m); i++) {
        fth_config_mistake_format(&m, line, sizeof line);
        fprintf(out, "%s\n", line);
    }
    return s;
}

static bool is_analyzed(const char *dir, const char *model)
{
    char in[FTH_PATH], path[FTH_PATH];
    return fth_path_join(in, dir, model, NULL) == FTH_OK &&
           fth_path_join(path, in, SP_FACTORS, NULL) == FTH_OK && fth_path_exists(path);
}

/* Models of the config that have results. */
static fth_status find_models(const fth_config *cfg, const char *dir, char own[SP_NAME],
                              const char *model[], int *n, fth_err *err)
{
    *n = 0;
    if (sp_is_general(cfg)) {
        for (int i = 0; i < sp_n_variants; i++)
            if (is_analyzed(dir, sp_variants[i].name)) model[(*n)++] = sp_variants[i].name;
    } else {
        FTH_TRY(sp_model_name(cfg, own, SP_NAME, err));
        if (is_analyzed(dir, own)) model[(*n)++] = own;
    }
    if (*n > 0) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there are no results of %s", dir,
                                  sp_is_general(cfg) ? "any model" : own);
    fth_err_hint(err, "run preprocess, train and analyze first: 'fathom run all -c CONFIG'");
    return s;
}

/* The copied or new file, and the gene lists of each model. */
static fth_status tell_files(const sp_export *e, const sp_data *d, fth_answer *a, fth_err *err)
{
    char dir[FTH_PATH];
    if (e->source) fth_answer_file(a, FTH_FILE_INPUT, e->source, -1, "it is copied");
    FTH_TRY(sp_answer_data(a, d, err));
    for (int i = 0; i < e->n_models; i++) {
        FTH_TRY(fth_path_join(dir, e->dir, e->model[i], err));
        FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, dir, SP_FACTORS, NULL, err));
        FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, dir, "top_genes.csv", NULL, err));
        if (sp_export_has_groups(d, dir))
            FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, dir, "enriched_genes.csv", NULL, err));
    }
    fth_answer_file(a, FTH_FILE_OUTPUT, e->path, -1, "results of %d model%s", e->n_models,
                    e->n_models == 1 ? "" : "s");
    return FTH_OK;
}

static fth_status answer(const sp_export *e, fth_answer *a, fth_err *err)
{
    sp_data d;
    if (!a->plan) FTH_TRY(export_all(e, err));
    FTH_TRY(sp_data_open(&d, fth_context_mem(e->context), e->preprocessed, err));
    const fth_status s = tell_files(e, &d, a, err);
    const int64_t factors = fth_config_int(e->config, "model.n_components") +
                            fth_config_int(e->config, "model.nonspatial_components");
    if (s == FTH_OK && a->plan)
        fth_answer_memory(a, sp_export_bytes(&d.size, factors, fth_context_threads(e->context)),
                          "estimated: names of cells and genes, and a piece of the file");
    if (s == FTH_OK && a->json) {
        fth_json_writer *w = fth_answer_facts(a);
        fth_json_text(w, "file", e->path);
        fth_json_int(w, "cells", d.rows);
        fth_json_int(w, "genes", d.size.genes);
        fth_json_open(w, "models", '[');
        for (int i = 0; i < e->n_models; i++) fth_json_text(w, NULL, e->model[i]);
        fth_json_close(w);
    }
    sp_data_close(&d);
    if (s != FTH_OK || a->plan) return s;
    fprintf(a->notes, "%s: results of", e->path);
    for (int i = 0; i < e->n_models; i++) fprintf(a->notes, " %s", e->model[i]);
    fprintf(a->notes, "\n");
    return FTH_OK;
}

static fth_status run_config(fth_context *ctx, const fth_config *cfg, const char *to, fth_answer *a,
                             fth_err *err)
{
    char own[SP_NAME], preprocessed[FTH_PATH], path[FTH_PATH];
    const char *model[SP_KIND_COUNT + 1];
    sp_export e = {.context = ctx,
                   .config = cfg,
                   .source = source_of(cfg),
                   .preprocessed = preprocessed,
                   .path = to,
                   .dir = fth_config_text(cfg, "output_dir"),
                   .model = model};
    FTH_TRY(find_models(cfg, e.dir, own, model, &e.n_models, err));
    FTH_TRY(fth_path_join(preprocessed, e.dir, SP_PREPROCESSED, err));
    if (!to) {
        FTH_TRY(fth_path_join(path, e.dir, SP_RESULTS, err));
        e.path = path;
    }
    const fth_path_use use[] = {{FTH_FILE_INPUT, "the file of the config", e.source},
                                {FTH_FILE_OUTPUT, "-o", e.path}};
    FTH_TRY(fth_paths_check(use, 2, fth_context_mem(ctx), err));
    return answer(&e, a, err);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    (void)n_args, (void)arg;
    const char *path = value(user, "config");
    fth_config *cfg = NULL;
    if (!path) {
        const fth_status s = FTH_FAIL(err, FTH_E_COMMAND, "no config was given");
        fth_err_hint(err, "fathom spatial export -c CONFIG");
        return s;
    }
    FTH_TRY(fth_config_create(&cfg, fth_context_mem(ctx), err));
    fth_status s = fth_config_read(cfg, path, err);
    if (s == FTH_OK) {
        s = fth_config_check(cfg, &sp_schema, &(fth_config_options){.lenient = true}, err);
        if (s == FTH_E_CONFIG) s = list_mistakes(cfg, out, s);
    }
    fth_answer a;
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK)
        s = fth_answer_end(&a, run_config(ctx, cfg, value(user, "output"), &a, err), err);
    const fth_status end = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

const fth_verb sp_verb_export = {
    .name = "export",
    .args = "",
    .brief = "put the results into a copy of the h5ad file",
    .doc =
        "Copies the h5ad file of the config and adds, for each model that was analyzed: "
        "obsm/fathom_MODEL_factors and _scales (a row for each cell of the file; NaN where "
        "preprocessing dropped it), varm/fathom_MODEL_loadings, uns/fathom/MODEL with settings, "
        "Moran's I and metrics; obs/fathom_MODEL_size_factor where the model has sizes of cells, "
        "var/fathom_MODEL_dispersion where its likelihood is nb; and obs/fathom_kept, true for "
        "cells that have results. Python's anndata opens it. Data that were no h5ad file become a "
        "new one.\n\n"
        "Beside it, top_genes.csv and enriched_genes.csv in each model's folder list the genes "
        "of each factor, and those that groups have more or less of.",
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
