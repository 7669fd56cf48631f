/* results.c - see results.h. */
#include "results.h"

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

static fth_status read_config(sp_results *r, const char *verb, const char *path, FILE *out,
                              fth_err *err)
{
    if (!path) {
        const fth_status s = FTH_FAIL(err, FTH_E_COMMAND, "no config was given");
        fth_err_hint(err, "fathom spatial %s -c CONFIG", verb);
        return s;
    }
    FTH_TRY(fth_config_create(&r->config, r->mem, err));
    FTH_TRY(fth_config_read(r->config, path, err));
    const fth_status s =
        fth_config_check(r->config, &sp_schema, &(fth_config_options){.lenient = true}, err);
    if (s == FTH_E_CONFIG) return list_mistakes(r->config, out, s);
    FTH_TRY(s);
    if (!sp_is_general(r->config)) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "%s: it stands for all models, and %s is about one", path, verb);
    fth_err_hint(err, "give the config of one model: 'fathom spatial generate -c %s' writes them",
                 path);
    return FTH_E_COMMAND;
}

fth_status sp_results_path(const sp_results *r, const char *name, char path[FTH_PATH], fth_err *err)
{
    return fth_path_join(path, r->dir, name, err);
}

/* A file f32 [rows, factor]. */
static fth_status open_matrix(const sp_results *r, const char *name, const char *axis, int64_t rows,
                              fth_source *out, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(sp_results_path(r, name, path, err));
    if (!fth_path_exists(path)) {
        FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there are no results of %s", path, r->name);
        fth_err_hint(err, "run preprocess, train and analyze first: 'fathom run all -c CONFIG'");
        return FTH_E_FILE_OPEN;
    }
    FTH_TRY(fth_npy_open(out, r->mem, path, err));
    if (out->n_axes == 2 && out->dtype == FTH_F32 && out->size[0] == rows && out->size[1] > 0)
        return FTH_OK;
    fth_source_close(out);
    FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [%s=%lld, factor] was expected", path, axis,
             (long long)rows);
    fth_err_hint(err, "run analyze again");
    return FTH_E_FILE_SHAPE;
}

static fth_status open_loadings(sp_results *r, fth_err *err)
{
    fth_source file = {0};
    FTH_TRY(open_matrix(r, SP_LOADINGS, "gene", r->data.size.genes, &file, err));
    fth_status s = FTH_OK;
    if (file.size[1] != r->n_factors)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s has %lld factors, " SP_FACTORS " %lld", r->dir,
                     (long long)file.size[1], (long long)r->n_factors);
    if (s == FTH_OK) s = fth_source_load(&file, r->mem, "loadings", &r->W, err);
    fth_source_close(&file);
    return s;
}

static fth_status open_held_out(sp_results *r, fth_err *err)
{
    char path[FTH_PATH];
    fth_source file = {0};
    FTH_TRY(sp_results_path(r, SP_HELD_OUT, path, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_npy_open(&file, r->mem, path, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 1 || file.dtype != FTH_BOOL || file.size[0] != r->data.rows)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: bool [%lld] was expected", path,
                     (long long)r->data.rows);
    if (s == FTH_OK) s = fth_source_load(&file, r->mem, "held out", &r->held_out, err);
    fth_source_close(&file);
    const uint8_t *held = s == FTH_OK ? fth_tensor_data(r->held_out) : NULL;
    for (int64_t i = 0; held && i < r->data.rows; i++) r->n_held_out += held[i] != 0;
    return s;
}

static fth_status open_all(sp_results *r, const char *verb, const char *config, FILE *out,
                           fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(read_config(r, verb, config, out, err));
    const char *dir = fth_config_text(r->config, "output_dir");
    FTH_TRY(sp_model_name(r->config, r->name, sizeof r->name, err));
    FTH_TRY(fth_path_join(r->dir, dir, r->name, err));
    FTH_TRY(fth_path_join(path, dir, SP_PREPROCESSED, err));
    FTH_TRY(sp_data_open(&r->data, r->mem, path, err));
    FTH_TRY(open_matrix(r, SP_FACTORS, "cell", r->data.rows, &r->factors, err));
    r->n_factors = r->factors.size[1];
    FTH_TRY(open_loadings(r, err));
    return open_held_out(r, err);
}

fth_status sp_results_open(sp_results *r, fth_context *ctx, const char *verb, const char *config,
                           FILE *out, fth_err *err)
{
    *r = (sp_results){.mem = fth_context_mem(ctx)};
    const fth_status s = open_all(r, verb, config, out, err);
    if (s != FTH_OK) (void)sp_results_close(r, NULL);
    return s;
}

fth_status sp_results_close(sp_results *r, fth_err *err)
{
    if (!r->mem) return FTH_OK;
    fth_tensor_release(r->held_out);
    fth_tensor_release(r->W);
    if (r->factors.kind) fth_source_close(&r->factors);
    sp_data_close(&r->data);
    const fth_status s = r->config ? fth_config_destroy(r->config, err) : FTH_OK;
    *r = (sp_results){0};
    return s;
}
