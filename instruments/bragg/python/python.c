/* python.c - an experiment behind a handle: flags by name, the image into memory of the caller. */
#include "python.h"

#include "../experiment/resolve.h"
#include "../image/image.h"

#include <stdlib.h>
#include <string.h>

struct fth_bragg {
    fth_context *ctx;
    fth_mem *mem;
    br_flags flags;
    br_experiment e;
    bool resolved;
    const char *smv32, *cbf; /* files beyond the flags of nanoBragg; NULL: none */
    fth_tensor *texts[32];   /* texts of flag values, which flags point into */
    int n_texts;
};

fth_status fth_bragg_create(fth_bragg **out, fth_context *ctx, const char *compat, fth_err *err)
{
    *out = NULL;
    void *block = NULL;
    if (!compat || (strcmp(compat, "c") != 0 && strcmp(compat, "spec") != 0))
        return FTH_FAIL(err, FTH_E_USAGE, "compat: expected 'spec' or 'c', found '%s'",
                        compat ? compat : "");
    fth_mem *mem = fth_context_mem(ctx);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(fth_bragg), "bragg", &block, err));
    fth_bragg *b = memset(block, 0, sizeof *b);
    b->ctx = ctx;
    b->mem = mem;
    br_flags_default(&b->flags, compat[0] == 's');
    *out = b;
    return FTH_OK;
}

void fth_bragg_destroy(fth_bragg *b)
{
    if (!b) return;
    if (b->resolved) br_experiment_clear(&b->e);
    for (int i = 0; i < b->n_texts; i++) fth_tensor_release(b->texts[i]);
    (void)fth_mem_release(b->mem, b, NULL);
}

/* ---- flags ---- */

/* Flags keep pointers to their texts, so the caller's texts are copied. */
static fth_status keep(fth_bragg *b, const char *text, const char **out, fth_err *err)
{
    const int64_t n = (int64_t)strlen(text) + 1;
    if (b->n_texts == (int)(sizeof b->texts / sizeof b->texts[0]))
        return FTH_FAIL(err, FTH_E_USAGE, "too many flags have a text");
    fth_tensor **t = &b->texts[b->n_texts];
    FTH_TRY(fth_tensor_create(t, b->mem, "text of a flag", FTH_U8, 1, &n, err));
    b->n_texts++;
    *out = memcpy(fth_tensor_data(*t), text, (size_t)n);
    return FTH_OK;
}

static fth_status set_seed(fth_bragg *b, const char *text, fth_err *err)
{
    char *end = NULL;
    const long long seed = strtoll(text, &end, 10);
    if (end == text || *end || seed < 0)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "seed: expected a whole number that is not negative, "
                        "found '%s'",
                        text);
    b->flags.seed_all = seed;
    return FTH_OK;
}

static fth_status set_own(fth_bragg *b, const char *flag, const char *value, bool *known,
                          fth_err *err)
{
    *known = true;
    if (strcmp(flag, "quirk") == 0) return br_flags_quirk(&b->flags, value, err);
    if (strcmp(flag, "seed") == 0) return set_seed(b, value, err);
    if (strcmp(flag, "fdump") == 0) return keep(b, value, &b->flags.fdump, err);
    if (strcmp(flag, "smv32") == 0) return keep(b, value, &b->smv32, err);
    if (strcmp(flag, "cbf") == 0) return keep(b, value, &b->cbf, err);
    if (strcmp(flag, "precision") == 0) {
        if (strcmp(value, "f64") != 0 && strcmp(value, "f32") != 0)
            return FTH_FAIL(err, FTH_E_USAGE, "precision: expected f64 or f32, found '%s'", value);
        b->flags.precision = strcmp(value, "f32") == 0 ? BR_F32 : BR_F64;
        return FTH_OK;
    }
    *known = false;
    return FTH_OK;
}

fth_status fth_bragg_set(fth_bragg *b, const char *flag, const char *const *value, int n,
                         fth_err *err)
{
    enum { MOST = 8 };
    const char *kept[MOST];
    bool known = false;
    if (b->resolved) return FTH_FAIL(err, FTH_E_STATE, "set flags before resolve");
    if (n < 0 || n > MOST) return FTH_FAIL(err, FTH_E_USAGE, "%s: %d values are too many", flag, n);
    if (n == 1) FTH_TRY(set_own(b, flag, value[0], &known, err));
    if (known) return FTH_OK;
    for (int i = 0; i < n; i++) {
        double number;
        kept[i] = value[i];
        if (!fth_real_parse(value[i], &number)) FTH_TRY(keep(b, value[i], &kept[i], err));
    }
    return br_flags_set_each(&b->flags, flag, kept, n, err);
}

/* ---- files: only those that are named ---- */

static fth_status refuse(const char *flag, const char *why, const char *hint, fth_err *err)
{
    FTH_FAIL(err, FTH_E_USAGE, "%s: %s", flag, why);
    fth_err_hint(err, "%s", hint);
    return FTH_E_USAGE;
}

/* A flag without effect is an error. */
static fth_status check_outputs(const fth_bragg *b, fth_err *err)
{
    const bool *given = b->flags.given;
    static const struct {
        br_flag_id id;
        const char *name;
    } text[] = {{BR_FLAG_PRINTOUT, "printout"},
                {BR_FLAG_PRINTOUT_PIXEL, "printout_pixel"},
                {BR_FLAG_PROGRESS, "progress"}};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        if (given[text[i].id])
            return refuse(text[i].name, "it prints text, and this function prints nothing",
                          "leave it out, or use the program", err);
    const bool noise = given[BR_FLAG_NOISEFILE] && b->flags.write_noise,
               ints = given[BR_FLAG_INTFILE], pgm = given[BR_FLAG_PGMFILE] && b->flags.write_pgm;
    if (given[BR_FLAG_ADC] && !ints && !noise && !b->smv32)
        return refuse("adc", "it is the offset of integer images, and none is written",
                      "name one with intfile, noisefile or smv32", err);
    if (given[BR_FLAG_SCALE] && !ints)
        return refuse("scale", "it is the scale of the integer image, and none is written",
                      "name one with intfile", err);
    if (given[BR_FLAG_PGMSCALE] && !pgm)
        return refuse("pgmscale", "it is the scale of the picture, and none is written",
                      "name one with pgmfile", err);
    return FTH_OK;
}

static fth_status set_path(char path[FTH_PATH], const char *text, fth_err *err)
{
    if (snprintf(path, FTH_PATH, "%s", text ? text : "") < FTH_PATH) return FTH_OK;
    return FTH_FAIL(err, FTH_E_USAGE, "the path of an output is too long");
}

static fth_status set_outputs(fth_bragg *b, fth_err *err)
{
    const bool *given = b->flags.given;
    br_outputs *o = &b->e.out;
    if (!given[BR_FLAG_FLOATFILE]) o->float_file[0] = 0;
    if (!given[BR_FLAG_INTFILE]) o->int_file[0] = 0;
    if (!given[BR_FLAG_NOISEFILE]) o->noise_file[0] = 0;
    if (!given[BR_FLAG_PGMFILE]) o->pgm_file[0] = 0;
    if (!given[BR_FLAG_DUMP]) o->dump_file[0] = 0;
    FTH_TRY(set_path(o->smv32_file, b->smv32, err));
    FTH_TRY(set_path(o->cbf_file, b->cbf, err));
    fth_path_use use[BR_FLAGS_READS];
    const int n = br_flags_reads(&b->flags, use);
    FTH_TRY(br_outputs_distinct(o, use, n, b->mem, err));
    return br_outputs_check(o, b->mem, err);
}

static bool has_files(const br_outputs *o)
{
    return o->float_file[0] || o->int_file[0] || o->noise_file[0] || o->pgm_file[0] ||
           o->smv32_file[0] || o->cbf_file[0] || o->dump_file[0];
}

static fth_status write_files(const fth_bragg *b, br_passes *p, fth_tensor *image, br_files *f,
                              br_statistics *st, fth_err *err)
{
    const br_experiment *e = &b->e;
    fth_source source = fth_tensor_source(image);
    source.data = NULL; /* the passes were planned for a file */
    br_pixel_sinks sinks;
    if (e->out.float_file[0]) {
        fth_sink sink;
        FTH_TRY(br_files_image(f, e, &sink, err));
        FTH_TRY(fth_sink_store(&sink, image, err));
    }
    FTH_TRY(br_passes_measure(p, source, st, err));
    FTH_TRY(br_files_pixels(f, e, st, &sinks, err));
    FTH_TRY(br_passes_store(p, source, &sinks, st, err));
    FTH_TRY(br_files_pack(f, e, err));
    FTH_TRY(br_experiment_dump(e, err));
    return br_files_commit(f, err);
}

fth_status fth_bragg_resolve(fth_bragg *b, fth_err *err)
{
    if (b->resolved) return FTH_FAIL(err, FTH_E_STATE, "already resolved");
    if (!br_flags_enough(&b->flags)) {
        FTH_FAIL(err, FTH_E_USAGE,
                 "structure factors (hkl, fdump or default_F) and a cell or mat "
                 "are needed");
        return FTH_E_USAGE;
    }
    FTH_TRY(check_outputs(b, err));
    FTH_TRY(br_experiment_resolve(&b->e, b->mem, &b->flags, err));
    const fth_status s = set_outputs(b, err);
    b->resolved = s == FTH_OK;
    if (s != FTH_OK) br_experiment_clear(&b->e);
    return s;
}

void fth_bragg_size(const fth_bragg *b, int64_t *slow, int64_t *fast)
{
    *slow = b->resolved ? b->e.scene.slow : 0;
    *fast = b->resolved ? b->e.scene.fast : 0;
}

/* ---- results ---- */

static fth_status must_be_resolved(const fth_bragg *b, fth_err *err)
{
    return b->resolved ? FTH_OK : FTH_FAIL(err, FTH_E_STATE, "call resolve first");
}

fth_status fth_bragg_render(fth_bragg *b, float *image, fth_err *err)
{
    FTH_TRY(must_be_resolved(b, err));
    const int64_t size[2] = {b->e.scene.slow, b->e.scene.fast};
    fth_tensor *t = NULL;
    br_passes *p = NULL;
    br_statistics st;
    int64_t latch;
    FTH_TRY(fth_tensor_wrap(&t, b->mem, "image", FTH_F32, 2, size, image, err));
    const fth_sink sink = fth_tensor_sink(t);
    br_files files = {.mem = b->mem};
    fth_status s = br_passes_create(&p, b->ctx, &b->e, br_outputs_wanted(&b->e.out), err);
    if (s == FTH_OK) s = br_passes_latch(p, NULL, &latch, err);
    if (s == FTH_OK) s = br_passes_render(p, &sink, NULL, NULL, &st, err);
    if (s == FTH_OK && has_files(&b->e.out)) s = write_files(b, p, t, &files, &st, err);
    br_files_close(&files);
    br_passes_destroy(p);
    fth_tensor_release(t);
    return s;
}

static fth_status find_params(const char *const *param, int n, int64_t *index, double *scale,
                              fth_err *err)
{
    for (int i = 0; i < n; i++) {
        index[i] = -1;
        for (int p = 0; p < BR_PARAMS; p++)
            if (strcmp(br_params[p].name, param[i]) == 0) index[i] = p;
        if (index[i] < 0) {
            FTH_FAIL(err, FTH_E_USAGE, "there is no parameter '%s'", param[i]);
            fth_err_hint(err, "parameters are a b c al be ga mx my mz lam dist xb yb rx ry rz flu "
                              "phi tt");
            return FTH_E_USAGE;
        }
        scale[i] = br_params[index[i]].scale;
    }
    return FTH_OK;
}

static fth_status find_latch(fth_bragg *b, int64_t *latch, fth_err *err)
{
    br_passes *p = NULL;
    FTH_TRY(br_passes_create(&p, b->ctx, &b->e, (br_wanted){0}, err));
    const fth_status s = br_passes_latch(p, NULL, latch, err);
    br_passes_destroy(p);
    return s;
}

fth_status fth_bragg_jacobian(fth_bragg *b, const char *const *param, int n, double *out,
                              fth_err *err)
{
    int64_t index[BR_PARAMS], latch = INT64_MAX;
    double scale[BR_PARAMS];
    fth_tensor *t = NULL, *which = NULL, *units = NULL;
    FTH_TRY(must_be_resolved(b, err));
    if (has_files(&b->e.out))
        return refuse("jacobian",
                      "an output file was named, and derivatives are not written to files",
                      "name it where the image is made", err);
    if (n < 1 || n > BR_PARAMS)
        return FTH_FAIL(err, FTH_E_USAGE, "1 to %d parameters are expected, not %d", (int)BR_PARAMS,
                        n);
    FTH_TRY(find_params(param, n, index, scale, err));
    FTH_TRY(find_latch(b, &latch, err));
    const int64_t count = n, size[3] = {b->e.scene.slow, b->e.scene.fast, n};
    fth_status s = fth_tensor_wrap(&t, b->mem, "jacobian", FTH_F64, 3, size, out, err);
    if (s == FTH_OK)
        s = fth_tensor_wrap(&which, b->mem, "parameters", FTH_I64, 1, &count, index, err);
    if (s == FTH_OK) s = fth_tensor_wrap(&units, b->mem, "units", FTH_F64, 1, &count, scale, err);
    if (s == FTH_OK) {
        fth_graph *g = fth_graph_create(b->ctx);
        br_inputs in = br_experiment_inputs(g, &b->e);
        fth_axis(g, "chosen", count);
        in.latch = fth_input(g, "latch", FTH_I64, "", fth_scalar_source(FTH_I64, &latch));
        const fth_val at =
            fth_input(g, "chosen parameters", FTH_I64, "chosen", fth_tensor_source(which));
        const fth_val unit = fth_input(g, "units", FTH_F64, "chosen", fth_tensor_source(units));
        const fth_val all = br_jacobian(&b->e.scene, &in);
        const fth_val v =
            fth_layout(fth_mul(fth_gather(all, "param", at), unit), "slow fast chosen");
        const fth_sink sink = fth_tensor_sink(t);
        fth_plan *plan = fth_plan_make(g, &v, 1, &(fth_limits){.sinks = &sink}, err);
        s = plan ? fth_run(plan, &sink, NULL, NULL, err) : err->status;
        fth_plan_destroy(plan);
        fth_graph_destroy(g);
    }
    fth_tensor_release(t);
    fth_tensor_release(which);
    fth_tensor_release(units);
    return s;
}

const char *fth_bragg_param(int i, const char **unit)
{
    if (i < 0 || i >= BR_PARAMS) return NULL;
    if (unit) *unit = br_params[i].unit;
    return br_params[i].name;
}
