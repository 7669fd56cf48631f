/* verb.c - `fathom splat densify MODEL`: one refinement, by ADC or MCMC. */
#include "densify.h"

#include <fathom/io.h>
#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef const char *getter(void *user, const char *flag);

typedef struct request {
    char model[FTH_PATH];
    const char *stats, *noise, *to;
    bool mcmc;
    int64_t iteration;
    gs_refine_rules rules;
} request;

/* What was done; rows of the two strategies that the other has are 0. */
typedef struct outcome {
    int64_t dup, split, pruned, dead, added, n;
} outcome;

static fth_status read_strategy(request *q, getter *value, void *user, fth_err *err)
{
    const char *name = value(user, "strategy");
    q->mcmc = name && strcmp(name, "mcmc") == 0;
    if (name && !q->mcmc && strcmp(name, "default") != 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "--strategy: expected default or mcmc, found '%s'",
                        name);
    const char *const adc_only[2] = {q->stats ? "stats" : NULL, q->noise ? "noise" : NULL};
    for (int i = 0; q->mcmc && i < 2; i++)
        if (adc_only[i])
            return FTH_FAIL(err, FTH_E_COMMAND, "--%s has no effect with MCMC", adc_only[i]);
    return FTH_OK;
}

static fth_status read_numbers(request *q, getter *value, void *user, fth_err *err)
{
    const char *iteration = value(user, "iteration"), *scale = value(user, "scene-scale"),
               *seed = value(user, "seed");
    double *s = &q->rules.adc.scene_scale;
    int64_t at = 0;
    if (!iteration || !fth_int_parse(iteration, &q->iteration) || q->iteration < 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "--iteration: expected a count, found %s",
                        iteration ? iteration : "none");
    if ((!scale && !q->mcmc) || (scale && (!fth_real_parse(scale, s) || !(*s > 0) || isinf(*s))))
        return FTH_FAIL(err, FTH_E_COMMAND, "--scene-scale: expected a length above 0, found %s",
                        scale ? scale : "none");
    if (seed && !fth_int_parse(seed, &at))
        return FTH_FAIL(err, FTH_E_COMMAND, "--seed: expected a whole number, found '%s'", seed);
    q->rules.adc.seed = q->rules.mcmc.seed = at;
    return FTH_OK;
}

static fth_status read_request(request *q, fth_mem *mem, int n_args, char *const *arg,
                               getter *value, void *user, fth_err *err)
{
    *q = (request){.stats = value(user, "stats"),
                   .noise = value(user, "noise"),
                   .to = value(user, "output-path")};
    if (n_args != 1 || !q->to) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected a model, and -o with a file");
        fth_err_hint(err, "fathom splat densify MODEL --iteration N --scene-scale S --stats F.npy "
                          "-o OUT.ply");
        return FTH_E_COMMAND;
    }
    FTH_TRY(gs_model_find(mem, arg[0], q->model, err));
    FTH_TRY(gs_refine_rules_read(&q->rules, value, user, err));
    q->rules.adc.canonical = value(user, "canonical-order") != NULL;
    q->rules.adc.last = true; /* statistics are not kept */
    FTH_TRY(read_strategy(q, value, user, err));
    return read_numbers(q, value, user, err);
}

/* ---- arrays beside the model ---- */

/* A file of f32 or f64 with these axes; a length below 0 is any. */
static fth_status open_array(fth_source *s, fth_mem *mem, const char *path, const char *what,
                             int axes, const int64_t *size, fth_err *err)
{
    FTH_TRY(fth_npy_open(s, mem, path, err));
    bool fits = s->n_axes == axes && (s->dtype == FTH_F32 || s->dtype == FTH_F64);
    for (int d = 0; fits && d < axes; d++) fits = size[d] < 0 || s->size[d] == size[d];
    if (fits) return FTH_OK;
    char found[96] = "";
    for (int d = 0; d < s->n_axes && d < 4; d++) {
        const size_t n = strlen(found);
        snprintf(found + n, sizeof found - n, "%s%" PRId64, d ? " x " : "", s->size[d]);
    }
    FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: expected f32 or f64 of %s, found %s of %s", path, what,
             fth_dtype_name(s->dtype), s->n_axes > 0 ? found : "no axes");
    fth_source_close(s);
    return FTH_E_FILE_SHAPE;
}

/* All of it, as f64. */
static fth_status load_array(double **out, const fth_source *s, fth_mem *mem, fth_err *err)
{
    int64_t lo[FTH_MAX_AXES] = {0}, count = 1;
    void *block = NULL;
    for (int d = 0; d < s->n_axes; d++) count *= s->size[d];
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)count * sizeof(double), "array", &block, err));
    const fth_status st = s->read(s->self, lo, s->size, block, err);
    if (st != FTH_OK) {
        (void)fth_mem_release(mem, block, NULL);
        return st;
    }
    *out = block;
    if (s->dtype == FTH_F32) /* from the end, where both share the block */
        for (int64_t i = count - 1; i >= 0; i--) {
            float v;
            memcpy(&v, (const char *)block + (size_t)i * sizeof v, sizeof v);
            (*out)[i] = (double)v;
        }
    return FTH_OK;
}

/* Visits and sums of lengths are never below 0. */
static fth_status check_stats(const double *v, int64_t n, const char *path, fth_err *err)
{
    for (int64_t i = 0; i < 2 * n; i++) {
        if (v[i] >= 0 && isfinite(v[i])) continue;
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s: [%" PRId64 ", %" PRId64 "]: expected a finite number from 0 on, found %g",
                 path, i / n, i % n, v[i]);
        fth_err_hint(err, "row 0 is how often each Gaussian was visible, row 1 its sum of "
                          "gradients");
        return FTH_E_FILE_FORMAT;
    }
    return FTH_OK;
}

static fth_status load_stats(gs_rows *rows, const char *path, fth_err *err)
{
    fth_source s;
    double *v = NULL;
    gs_rows_memory m;
    char what[64];
    snprintf(what, sizeof what, "2 x %" PRId64 " statistics", rows->n);
    FTH_TRY(gs_rows_begin_densify(rows, err));
    FTH_TRY(gs_rows_open(rows, &m, err));
    FTH_TRY(open_array(&s, rows->mem, path, what, 2, (int64_t[]){2, rows->n}, err));
    const fth_status st = load_array(&v, &s, rows->mem, err);
    fth_source_close(&s);
    if (st != FTH_OK) return st;
    const fth_status checked = check_stats(v, rows->n, path, err);
    for (int64_t i = 0; i < rows->n; i++)
        for (int k = 0; k < 2; k++) m.densify[2 * i + k] = (float)v[k * rows->n + i];
    const fth_status released = fth_mem_release(rows->mem, v, checked == FTH_OK ? err : NULL);
    return checked == FTH_OK ? released : checked;
}

static fth_status load_noise(request *q, fth_mem *mem, double **noise, fth_err *err)
{
    fth_source s;
    FTH_TRY(open_array(&s, mem, q->noise, "2 x split x 3 normals", 3, (int64_t[]){2, -1, 3}, err));
    const fth_status st = load_array(noise, &s, mem, err);
    q->rules.adc.noise = *noise;
    q->rules.adc.noise_rows = s.size[1];
    fth_source_close(&s);
    return st;
}

/* How many are split is known only once they were chosen. */
static fth_status refuse_noise(const request *q, int64_t split, fth_err *err)
{
    if (err) *err = (fth_err){0};
    FTH_FAIL(err, FTH_E_FILE_SHAPE,
             "%s: expected 2 x %" PRId64 " x 3 normals, as so many Gaussians are split, found "
             "2 x %" PRId64 " x 3",
             q->noise, split, q->rules.adc.noise_rows);
    fth_err_hint(err, "more of them are allowed: give as many as the model has Gaussians");
    return FTH_E_FILE_SHAPE;
}

/* ---- one refinement ---- */

static fth_status refine_adc(request *q, gs_rows *rows, outcome *o, fth_err *err)
{
    gs_adc_counts counts = {0};
    double *noise = NULL;
    if (q->stats) FTH_TRY(load_stats(rows, q->stats, err));
    fth_status s = q->noise ? load_noise(q, rows->mem, &noise, err) : FTH_OK;
    if (s == FTH_OK) s = gs_adc_refine(rows, &q->rules.adc, q->iteration, &counts, err);
    if (noise) (void)fth_mem_release(rows->mem, noise, NULL);
    if (s == FTH_E_USAGE && noise && q->rules.adc.noise_rows < counts.split)
        s = refuse_noise(q, counts.split, err);
    *o = (outcome){.dup = counts.dup, .split = counts.split, .pruned = counts.pruned};
    return s;
}

static fth_status refine_mcmc(const request *q, gs_rows *rows, outcome *o, fth_err *err)
{
    FTH_TRY(gs_mcmc_relocate(rows, &q->rules.mcmc, q->iteration, &o->dead, err));
    return gs_mcmc_add(rows, &q->rules.mcmc, q->iteration, &o->added, NULL, err);
}

static fth_status refine_file(fth_context *ctx, request *q, const gs_model_info *info,
                              gs_format format, outcome *o, fth_err *err)
{
    gs_model m;
    gs_rows rows;
    FTH_TRY(gs_model_load_finite(&m, fth_context_mem(ctx), q->model, info->format, err));
    fth_status s = gs_rows_load(&rows, ctx, &m, 3 * m.n + 1, 0, err); /* parents wait for both */
    gs_model_free(&m);
    if (s != FTH_OK) return s;
    s = q->mcmc ? refine_mcmc(q, &rows, o, err) : refine_adc(q, &rows, o, err);
    o->n = rows.n;
    if (s == FTH_OK) s = gs_rows_model(&rows, &m, err);
    if (s == FTH_OK) s = gs_model_save(&m, q->to, format, err);
    gs_rows_free(&rows);
    return s;
}

static void tell(fth_answer *a, const outcome *o)
{
    const struct {
        const char *name;
        int64_t count;
    } row[] = {{"dup", o->dup},   {"split", o->split}, {"pruned", o->pruned},
               {"dead", o->dead}, {"added", o->added}, {"n", o->n}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        fprintf(a->out, "%s%s %" PRId64, i ? "  " : "", row[i].name, row[i].count);
        if (a->json) fth_json_int(fth_answer_facts(a), row[i].name, row[i].count);
    }
    fprintf(a->out, "\n");
}

static fth_status densify(fth_context *ctx, request *q, fth_answer *a, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    gs_format format;
    gs_model_info info;
    outcome o = {0};
    fth_path_use use[4] = {{FTH_FILE_INPUT, "MODEL", q->model}, {FTH_FILE_OUTPUT, "-o", q->to}};
    int n = 2;
    if (q->stats) use[n++] = (fth_path_use){FTH_FILE_INPUT, "--stats", q->stats};
    if (q->noise) use[n++] = (fth_path_use){FTH_FILE_INPUT, "--noise", q->noise};
    FTH_TRY(gs_format_of_path(q->to, &format, err));
    FTH_TRY(fth_paths_check(use, n, mem, err));
    FTH_TRY(gs_model_look(mem, q->model, &info, err));
    fth_answer_file(a, FTH_FILE_INPUT, q->model, -1, "%s, %" PRId64 " Gaussians of degree %d",
                    gs_format_names[info.format], info.n, info.degree);
    fth_answer_file(a, FTH_FILE_OUTPUT, q->to, -1, "%s", gs_format_names[format]);
    if (a->plan) {
        const uint64_t rows = (q->rules.adc.canonical ? 3 : 2) * (uint64_t)info.n;
        fth_answer_memory(a, rows * gs_row_bytes(info.degree) + (64 << 20),
                          "all Gaussians, if each became two");
        return FTH_OK;
    }
    if (info.n > q->rules.adc.max_cap)
        fprintf(a->notes,
                "max_cap is %" PRId64 ", below the %" PRId64 " Gaussians of %s: none are added\n",
                q->rules.adc.max_cap, info.n, q->model);
    FTH_TRY(refine_file(ctx, q, &info, format, &o, err));
    tell(a, &o);
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg, getter *value, void *user,
                      FILE *out, fth_err *err)
{
    request q;
    fth_answer a;
    FTH_TRY(read_request(&q, fth_context_mem(ctx), n_args, arg, value, user, err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    if (strcmp(arg[0], q.model) != 0) fprintf(a.notes, "model: %s\n", q.model);
    return fth_answer_end(&a, densify(ctx, &q, &a, err), err);
}

static const fth_flag flags[] = {
    {.name = "iteration",
     .value = FTH_FLAG_COUNT,
     .doc = "iteration of the training that it stands for; required"},
    {.name = "scene-scale",
     .value = FTH_FLAG_WORD,
     .doc = "scale of the scene, as info prints it: limits of sizes are multiples of it; required "
            "for ADC"},
    {.name = "strategy", .value = FTH_FLAG_WORD, .doc = "default (ADC) or mcmc"},
    {.name = "stats",
     .value = FTH_FLAG_FILE,
     .doc = "how often each Gaussian was visible and its sum of gradients, .npy of 2 x g"},
    {.name = "noise",
     .value = FTH_FLAG_FILE,
     .doc = "normals instead of random ones, .npy of 2 x split x 3"},
    {.name = "canonical-order",
     .doc = "rows that stay, then all first children, then all second ones"},
    {.name = "set",
     .value = FTH_FLAG_SET,
     .many = true,
     .doc = "a key of the strategies as in a config, grad_threshold=0.0004"},
    {.name = "output-path",
     .letter = 'o',
     .value = FTH_FLAG_FILE,
     .doc = "file of the new model; required"},
    {0}};

const fth_verb gs_verb_densify = {
    .name = "densify",
    .args = "MODEL",
    .brief = "one refinement of a model, by ADC or MCMC",
    .doc =
        "One step of what training does every refine_every iterations. ADC duplicates and splits "
        "Gaussians with large gradients, by --stats, and removes those that are transparent or "
        "far too large; without --stats it only removes. MCMC moves dead Gaussians to live "
        "ones and adds five per cent.\n"
        "\n"
        "Prints how many were duplicated, split, pruned, dead and added, and the new total. Random "
        "numbers follow --seed and --iteration.",
    .max_args = 1,
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run};
