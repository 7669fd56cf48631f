/* multianalyze_verb.c - `fathom spatial multianalyze -c CFG MODEL...` */
#include "multianalyze.h"

#include "../answer.h"
#include "../model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const char *against; /* NULL: the second */
    const char *dir;     /* NULL: figures in the output directory */
    int64_t pairs;
} request;

/* ---- files ---- */

static fth_status load_factors(sp_comparison *c, int i, const char *dir, fth_err *err)
{
    char in[FTH_PATH], path[FTH_PATH];
    fth_source file = {0};
    FTH_TRY(fth_path_join(in, dir, c->model[i], err));
    FTH_TRY(fth_path_join(path, in, SP_FACTORS, err));
    fth_status s = fth_npy_open(&file, c->mem, path, err);
    if (s != FTH_OK) {
        fth_err_hint(err, "analyze the model %s first: 'fathom spatial analyze -c CONFIG'",
                     c->model[i]);
        return s;
    }
    if (file.n_axes != 2 || file.dtype != FTH_F32)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [cell factor] is expected", path);
    else if (i > 0 && file.size[0] != fth_tensor_size(c->F[0], 0)) {
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s has %" PRId64 " cells, but %s has %" PRId64, path,
                     file.size[0], c->model[0], fth_tensor_size(c->F[0], 0));
        fth_err_hint(err, "compare models that were trained on the same cells");
    }
    if (s == FTH_OK) s = fth_source_load(&file, c->mem, "factors", &c->F[i], err);
    fth_source_close(&file);
    return s;
}

/* Positions of the cells that the first model was trained on. */
static fth_status load_places(sp_comparison *c, const char *dir, fth_err *err)
{
    char in[FTH_PATH], path[FTH_PATH];
    sp_data data;
    sp_settings set;
    FTH_TRY(fth_path_join(path, dir, SP_PREPROCESSED, err));
    FTH_TRY(sp_data_open(&data, c->mem, path, err));
    fth_status s = fth_path_join(in, dir, c->model[0], err);
    if (s == FTH_OK) s = fth_path_join(path, in, SP_CHECKPOINT, err);
    const int64_t cells = fth_tensor_size(c->F[0], 0);
    if (s == FTH_OK && data.rows != cells) s = sp_model_peek(&set, c->mem, path, err);
    if (s == FTH_OK && data.rows != cells)
        s = sp_data_hold_out(&data, set.holdout_fraction, (sp_holdout)set.holdout, set.seed, err);
    if (s == FTH_OK && data.size.cells != cells)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s has %" PRId64 " cells, but the factors of %s are of %" PRId64, data.dir,
                     data.size.cells, c->model[0], cells);
    if (s == FTH_OK) c->xy = fth_tensor_retain(data.xy);
    sp_data_close(&data);
    return s;
}

/* ---- the command ---- */

static fth_status check_names(sp_comparison *c, const request *r, fth_err *err)
{
    c->against = 1;
    for (int i = 0; i < c->n; i++) {
        for (int j = 0; j < i; j++)
            if (strcmp(c->model[i], c->model[j]) == 0)
                return FTH_FAIL(err, FTH_E_COMMAND, "the model %s was given twice", c->model[i]);
        if (!r->against || strcmp(c->model[i], r->against) != 0) continue;
        if (i == 0)
            return FTH_FAIL(err, FTH_E_COMMAND,
                            "--match-against names the first model; it is matched with another");
        c->against = i;
    }
    if (!r->against || strcmp(c->model[c->against], r->against) == 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--match-against %s is none of the models given",
                    r->against);
}

static void print_pairs(const sp_comparison *c, FILE *out)
{
    for (int64_t row = 0; row < c->rows; row++) {
        for (int j = 0; j < c->n; j++)
            fprintf(out, "%s%s %" PRId64, j ? "  " : "", c->model[j], c->shown[row * c->n + j] + 1);
        fprintf(out, "  distance %.4f\n", c->away[row * c->n + c->against]);
    }
}

static fth_status tell_inputs(fth_answer *a, const sp_comparison *c, const char *dir, fth_err *err)
{
    for (int i = 0; i < c->n; i++) {
        char in[FTH_PATH];
        const int64_t size[2] = {fth_tensor_size(c->F[i], 0), fth_tensor_size(c->F[i], 1)};
        FTH_TRY(fth_path_join(in, dir, c->model[i], err));
        FTH_TRY(sp_answer_array(a, FTH_FILE_INPUT, in, SP_FACTORS, FTH_F32, 2, size, err));
    }
    return FTH_OK;
}

/* The factors of all models are held, and the points of the maps are drawn from them. */
static fth_status tell_memory(fth_answer *a, const sp_comparison *c)
{
    fth_mem_stats held;
    const uint64_t cells = (uint64_t)fth_tensor_size(c->F[0], 0);
    fth_mem_get_stats(c->mem, &held);
    fth_answer_memory(a, held.used_bytes + 64 * cells + ((uint64_t)32 << 20),
                      "estimated: the factors of all models, and a figure");
    return FTH_OK;
}

static fth_status compare(sp_comparison *c, const fth_config *cfg, const request *r, fth_answer *a,
                          fth_err *err)
{
    char figures[FTH_PATH];
    const char *dir = fth_config_text(cfg, "output_dir");
    for (int i = 0; i < c->n; i++) FTH_TRY(load_factors(c, i, dir, err));
    FTH_TRY(load_places(c, dir, err));
    FTH_TRY(fth_path_join(figures, dir, SP_FIGURES, err));
    const char *to = r->dir ? r->dir : figures;
    FTH_TRY(tell_inputs(a, c, dir, err));
    if (a->plan) {
        FTH_TRY(sp_comparison_write(c, to, a, err));
        return tell_memory(a, c);
    }
    FTH_TRY(sp_compare(c, r->pairs, err));
    FTH_TRY(fth_folder_make(c->mem, to, err));
    print_pairs(c, a->out);
    FTH_TRY(sp_comparison_write(c, to, a, err));
    if (a->json) sp_comparison_put(c, fth_answer_facts(a));
    return FTH_OK;
}

static const fth_flag flags[] = {
    {.name = "config",
     .value = FTH_FLAG_FILE,
     .letter = 'c',
     .doc = "config of any of the models; it says where the results are"},
    {.name = "n-pairs", .value = FTH_FLAG_COUNT, .doc = "pairs of factors to draw (default: 2)"},
    {.name = "match-against",
     .value = FTH_FLAG_WORD,
     .doc = "model that the first is paired with (default: the second)"},
    {.name = "assignment",
     .value = FTH_FLAG_WORD,
     .doc = "greedy: the nearest pair first; hungarian: the least sum of distances"},
    {.name = "output",
     .value = FTH_FLAG_DIR,
     .letter = 'o',
     .doc = "folder for the files (default: figures in the output directory)"},
    {0}};

static fth_status read_request(sp_comparison *c, request *r, int n_args, char *const *arg,
                               const char *(*value)(void *user, const char *flag), void *user,
                               fth_err *err)
{
    const char *how = value(user, "assignment"), *pairs = value(user, "n-pairs");
    fth_status s = FTH_OK;
    if (!value(user, "config"))
        s = FTH_FAIL(err, FTH_E_COMMAND, "no config was given");
    else if (n_args < 2 || n_args > SP_COMPARED)
        s = FTH_FAIL(err, FTH_E_COMMAND, "two to %d models are compared; %d were given",
                     (int)SP_COMPARED, n_args);
    else if (how && strcmp(how, "greedy") != 0 && strcmp(how, "hungarian") != 0)
        s = FTH_FAIL(err, FTH_E_COMMAND, "--assignment is greedy or hungarian, not '%s'", how);
    if (s != FTH_OK) {
        fth_err_hint(err, "fathom spatial multianalyze -c CONFIG svgp lcgp");
        return s;
    }
    *r = (request){.against = value(user, "match-against"),
                   .dir = value(user, "output"),
                   .pairs = pairs ? strtoll(pairs, NULL, 10) : 2};
    if (r->pairs < 1) r->pairs = 1;
    c->n = n_args;
    c->best = how && strcmp(how, "hungarian") == 0;
    for (int i = 0; i < n_args; i++) c->model[i] = arg[i];
    return check_names(c, r, err);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    sp_comparison c = {.mem = fth_context_mem(ctx)};
    request r;
    fth_config *cfg = NULL;
    FTH_TRY(read_request(&c, &r, n_args, arg, value, user, err));
    FTH_TRY(fth_config_create(&cfg, c.mem, err));
    fth_status s = fth_config_read(cfg, value(user, "config"), err);
    if (s == FTH_OK)
        s = fth_config_check(cfg, &sp_schema, &(fth_config_options){.lenient = true}, err);
    fth_answer a;
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) s = fth_answer_end(&a, compare(&c, cfg, &r, &a, err), err);
    sp_comparison_clear(&c);
    const fth_status end = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

const fth_verb sp_verb_multianalyze = {
    .name = "multianalyze",
    .args = "MODEL MODEL...",
    .brief = "compare the factors of models",
    .doc = "Pairs factors of the first model with those of the second (or of --match-against): the "
           "nearest two columns of factors.npy, each divided by its length, then the nearest of "
           "those left. Of further models, the factor nearest to that of the first is shown.\n\n"
           "Writes comparison_A_vs_B.png with maps of the pairs side by side, "
           "distance_heatmap_A_vs_B.png, and distances and matches as comparison_A_vs_B.json.",
    .max_args = SP_COMPARED,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
