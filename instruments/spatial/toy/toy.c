/* toy.c - `fathom spatial toy`: synthetic cells with known factors, for trying everything. */
#include "toy.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EXACT = 20000, MOST_CELLS = 2000000 };

typedef struct options {
    const char *(*value)(void *user, const char *flag);
    void *user;
    fth_err *err;
} options;

static fth_status get_int(const options *o, const char *flag, int64_t low, int64_t high,
                          int64_t *out)
{
    const char *text = o->value(o->user, flag);
    if (!text) return FTH_OK;
    int64_t v = 0;
    if (!fth_int_parse(text, &v) || v < low || v > high)
        return FTH_FAIL(o->err, FTH_E_COMMAND,
                        "--%s: a number from %" PRId64 " to %" PRId64 " is expected, not '%.60s'",
                        flag, low, high, text);
    *out = v;
    return FTH_OK;
}

/* Above zero and at most `high`. */
static fth_status get_real(const options *o, const char *flag, double high, double *out)
{
    const char *text = o->value(o->user, flag);
    if (!text) return FTH_OK;
    double v = 0;
    if (!fth_real_parse(text, &v) || !(v > 0) || v > high)
        return FTH_FAIL(o->err, FTH_E_COMMAND,
                        "--%s: a number above 0 and at most %g is expected, not '%.60s'", flag,
                        high, text);
    *out = v;
    return FTH_OK;
}

/* One lengthscale, or several with commas between them. */
static fth_status get_lengths(const options *o, sp_toy *t)
{
    const char *text = o->value(o->user, "lengthscale");
    t->n_lengths = 1;
    t->length[0] = t->lengthscale;
    for (int k = 0; text; k++) {
        char one[64];
        const size_t n = strcspn(text, ",");
        snprintf(one, sizeof one, "%.*s", (int)(n < 60 ? n : 60), text);
        if (k == SP_TOY_LENGTHS || k == t->factors || !fth_real_parse(one, &t->length[k]) ||
            !(t->length[k] > 0) || t->length[k] > 1e6)
            return FTH_FAIL(o->err, FTH_E_COMMAND,
                            "--lengthscale: numbers above 0 and at most 1e6 are expected, with "
                            "commas between them and no more than factors, not '%.60s'",
                            o->value(o->user, "lengthscale"));
        t->n_lengths = k + 1;
        text = text[n] ? text + n + 1 : NULL;
    }
    t->lengthscale = t->length[0];
    return FTH_OK;
}

static fth_status get_sizes(const options *o, sp_toy *t)
{
    t->side = 100;
    FTH_TRY(get_int(o, "side", 2, 1414, &t->side));
    t->cells = t->side * t->side;
    if (o->value(o->user, "cells")) {
        if (o->value(o->user, "side"))
            return FTH_FAIL(o->err, FTH_E_COMMAND, "--cells and --side set the same: give one");
        FTH_TRY(get_int(o, "cells", 4, MOST_CELLS, &t->cells));
        t->side = (int64_t)ceil(sqrt((double)t->cells));
    }
    FTH_TRY(get_int(o, "sections", 0, 1000, &t->sections));
    if (t->sections > 0 && t->cells < SP_SECTION_LEAST)
        return FTH_FAIL(o->err, FTH_E_COMMAND,
                        "--sections: a section has at least %d cells, not "
                        "%" PRId64,
                        SP_SECTION_LEAST, t->cells);
    if (t->sections > 1) t->cells *= t->sections;
    if (t->cells > MOST_CELLS)
        return FTH_FAIL(o->err, FTH_E_COMMAND,
                        "--sections: %" PRId64 " cells in all are more than %d", t->cells,
                        MOST_CELLS);
    FTH_TRY(get_int(o, "genes", 1, 100000, &t->genes));
    FTH_TRY(get_int(o, "factors", 1, 1000, &t->factors));
    FTH_TRY(get_int(o, "nonspatial", 0, 1000, &t->others));
    FTH_TRY(get_int(o, "groups", 1, 1000, &t->groups));
    FTH_TRY(get_int(o, "missing-groups", 0, 1000, &t->missing));
    if (t->missing > t->cells / 8)
        return FTH_FAIL(o->err, FTH_E_COMMAND,
                        "--missing-groups: %" PRId64 " of them are too many for %" PRId64 " cells",
                        t->missing, t->cells);
    t->groups += t->missing;
    return get_int(o, "seed", 0, INT64_MAX, &t->seed);
}

static fth_status get_sampler(const options *o, sp_toy *t)
{
    const char *text = o->value(o->user, "sampler");
    t->exact = text ? strcmp(text, "exact") == 0 : t->cells <= MOST_EXACT;
    if (text && !t->exact && strcmp(text, "near") != 0)
        return FTH_FAIL(o->err, FTH_E_COMMAND, "--sampler: exact or near is expected, not '%.60s'",
                        text);
    if (!t->exact && t->sections > 0) {
        FTH_FAIL(o->err, FTH_E_COMMAND,
                 "--sections: sections are drawn exactly, which is for %d cells in all, not "
                 "%" PRId64,
                 MOST_EXACT, t->cells);
        fth_err_hint(o->err, "make fewer cells, or allow the memory with --sampler exact");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

static fth_status get_options(const options *o, sp_toy *t)
{
    FTH_TRY(get_sizes(o, t));
    FTH_TRY(get_lengths(o, t));
    FTH_TRY(get_real(o, "alpha", 1e6, &t->alpha));
    FTH_TRY(get_real(o, "jitter", 1, &t->jitter));
    FTH_TRY(get_real(o, "density", 0.999, &t->density));
    FTH_TRY(get_real(o, "dispersion", 1e6, &t->dispersion));
    FTH_TRY(get_real(o, "depth", 1e4, &t->depth));
    if (o->value(o->user, "depth") && t->depth < 1)
        return FTH_FAIL(o->err, FTH_E_COMMAND,
                        "--depth: the largest size over the smallest is at least 1, not %g",
                        t->depth);
    t->image = o->value(o->user, "image");
    return get_sampler(o, t);
}

static fth_status answer(fth_answer *a, sp_toy *t, const char *dir, const char *h5ad, fth_err *err)
{
    if (!a->plan) FTH_TRY(sp_toy_make(t, dir, h5ad, err));
    FTH_TRY(sp_toy_tell(t, a, dir, h5ad, err));
    const double share = (double)t->entries / ((double)t->cells * (double)t->genes);
    if (a->json) {
        fth_json_writer *w = fth_answer_facts(a);
        fth_json_text(w, "folder", dir);
        fth_json_int(w, "cells", t->cells);
        fth_json_int(w, "genes", t->genes);
        fth_json_int(w, "factors", t->factors);
        if (t->others > 0) fth_json_int(w, "nonspatial_factors", t->others);
        fth_json_int(w, "groups", t->groups);
        if (t->sections > 0) fth_json_int(w, "sections", t->sections);
        fth_json_int(w, "seed", t->seed);
        fth_json_text(w, "sampler", t->exact ? "exact" : "near");
        if (!a->plan) fth_json_int(w, "counts_above_zero", t->entries);
    }
    if (a->plan) return FTH_OK;
    fprintf(a->notes,
            "%s: %" PRId64 " cells, %" PRId64 " genes, %" PRId64 " factors, %" PRId64
            " groups, %.2f %% of counts above zero\n",
            dir, t->cells, t->genes, t->factors, t->groups, 100 * share);
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    (void)n_args, (void)arg;
    sp_toy t = {.ctx = ctx,
                .mem = fth_context_mem(ctx),
                .genes = 200,
                .factors = 10,
                .groups = 3,
                .seed = 42,
                .lengthscale = 100,
                .alpha = 0.1,
                .jitter = 7e-5};
    FTH_TRY(get_options(&(options){value, user, err}, &t));
    const char *dir = value(user, "output");
    if (!dir) dir = "toy";
    fth_answer a;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    return fth_answer_end(&a, answer(&a, &t, dir, value(user, "h5ad"), err), err);
}

static const fth_flag flags[] = {
    {.name = "output",
     .value = FTH_FLAG_DIR,
     .letter = 'o',
     .doc = "folder to write (default: toy)"},
    {.name = "cells", .value = FTH_FLAG_COUNT, .doc = "cells, up to 2000000 (default: 10000)"},
    {.name = "side", .value = FTH_FLAG_COUNT, .doc = "instead of --cells: cells of a side"},
    {.name = "sections",
     .value = FTH_FLAG_COUNT,
     .doc = "tissue sections of so many cells each, with maps of their own and shared loadings"},
    {.name = "genes", .value = FTH_FLAG_COUNT, .doc = "genes (default: 200)"},
    {.name = "factors", .value = FTH_FLAG_COUNT, .doc = "factors (default: 10)"},
    {.name = "nonspatial",
     .value = FTH_FLAG_COUNT,
     .doc = "further factors without positions, with genes of their own (default: 0)"},
    {.name = "groups", .value = FTH_FLAG_COUNT, .doc = "cell types (default: 3)"},
    {.name = "missing-groups",
     .value = FTH_FLAG_COUNT,
     .doc = "further cell types of a few scattered cells each"},
    {.name = "lengthscale",
     .value = FTH_FLAG_WORD,
     .doc = "of the factors; the cells fill a square of 200 (default: 100); 25,80: of factors in "
            "turn"},
    {.name = "alpha",
     .value = FTH_FLAG_WORD,
     .doc = "how different factors are between cell types (default: 0.1)"},
    {.name = "jitter",
     .value = FTH_FLAG_WORD,
     .doc = "variance of noise of each cell (default: 7e-5)"},
    {.name = "density",
     .value = FTH_FLAG_WORD,
     .doc = "scale the rates so that about this share of counts is above zero"},
    {.name = "dispersion",
     .value = FTH_FLAG_WORD,
     .doc = "counts are negative binomial with variance rate + rate^2 / dispersion"},
    {.name = "depth",
     .value = FTH_FLAG_WORD,
     .doc = "sizes of cells differ up to this ratio, and multiply their rates"},
    {.name = "sampler",
     .value = FTH_FLAG_WORD,
     .doc = "exact (the default up to 20000 cells), or near: each cell given those around it"},
    {.name = "image", .doc = "also a picture of the tissue, image.png, which figures draw"},
    {.name = "h5ad", .value = FTH_FLAG_FILE, .doc = "also write it all as one h5ad file"},
    {0}};

const fth_verb sp_verb_toy = {
    .name = "toy",
    .args = "",
    .brief = "make synthetic cells with known factors",
    .doc =
        "Cells lie on a lattice in sectors of cell types, half of them mixed. Log-factors are "
        "drawn from the prior of the multi-group models, loadings are uniform, counts Poisson or "
        "negative binomial. "
        "The folder is read by 'dataset: toy'; the truth lies beside it in ground_truth_*.npy.\n"
        "\n"
        "The same options and seed give the same numbers, with any number of workers.",
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run};
