/* refine.c - `fathom bragg refine IMAGE ...`: flags in, answer out.
 *
 * The flags are those of `fathom bragg` and describe the starting model. The refined model is
 * reported as a table, a JSON file, a figure, and the command that renders its image.
 */
#include "refine.h"
#include "../experiment/resolve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef const char *value_fn(void *user, const char *flag);

typedef struct request {
    const char *image, *out;
    char figure[FTH_PATH];
    br_refine_options refine;
    br_observed_options observed;
    br_flags flags;
    br_words words;
    bool json; /* to standard output, in place of the text */
} request;

/* ---- flags ---- */

static fth_status read_number(const char *flag, const char *text, double *out, fth_err *err)
{
    *out = (double)NAN;
    if (!text || (fth_real_parse(text, out) && isfinite(*out))) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s takes a number, not '%.100s'", flag, text);
}

/* --figure, or the name of --out with another ending. */
static fth_status name_figure(request *r, const char *typed, fth_err *err)
{
    const char *dot = strrchr(r->out, '.'), *slash = strrchr(r->out, '/');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - r->out) : strlen(r->out);
    const int n = typed ? snprintf(r->figure, FTH_PATH, "%s", typed)
                        : snprintf(r->figure, FTH_PATH, "%.*s.png", (int)stem, r->out);
    if (n > 0 && n < FTH_PATH) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "the path of the figure is too long");
}

static fth_status read_request(request *r, value_fn *value, void *user, fth_err *err)
{
    const char *iterations = value(user, "iterations"), *frame = value(user, "frame"),
               *out = value(user, "out");
    r->out = out ? out : "refine.json";
    FTH_TRY(name_figure(r, value(user, "figure"), err));
    FTH_TRY(br_variables_parse(&r->refine.variables, value(user, "free"), value(user, "fix"),
                               value(user, "tie"), err));
    FTH_TRY(read_number("adc", value(user, "adc"), &r->observed.adc, err));
    FTH_TRY(read_number("gain", value(user, "gain"), &r->observed.gain, err));
    if (r->observed.gain <= 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "--gain is %g: values per photon are above 0",
                        r->observed.gain);
    r->observed.dataset = value(user, "dataset");
    r->observed.frame = frame ? atoll(frame) : 0;
    r->refine.iterations = iterations ? atoll(iterations) : 50;
    r->refine.no_lattice = value(user, "no-lattice") != NULL;
    r->json = value(user, "json") != NULL;
    if (r->json || value(user, "quiet")) r->refine.out = NULL;
    return FTH_OK;
}

/* The image is the word before the flags. */
static fth_status find_image(request *r, int n_words, char *const *word, fth_err *err)
{
    if (n_words == 0 || word[0][0] == '-') {
        FTH_FAIL(err, FTH_E_COMMAND, "the image is missing");
        fth_err_hint(err, "write 'fathom bragg refine IMAGE', then the flags of the start");
        return FTH_E_COMMAND;
    }
    r->image = word[0];
    r->words = (br_words){.n = n_words - 1, .word = word + 1};
    return FTH_OK;
}

/* "a=on,b=off" */
static fth_status read_quirks(br_flags *f, const char *list, fth_err *err)
{
    char one[64];
    for (size_t n; list && *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        snprintf(one, sizeof one, "%.*s", (int)(n < sizeof one ? n : sizeof one - 1), list);
        FTH_TRY(br_flags_quirk(f, one, err));
    }
    return FTH_OK;
}

static fth_status read_flags(request *r, value_fn *value, void *user, fth_err *err)
{
    const char *compat = value(user, "compat"), *seed = value(user, "seed");
    const bool c = compat && strcmp(compat, "c") == 0;
    if (compat && !c && strcmp(compat, "spec") != 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "--compat takes spec or c, not '%.100s'", compat);
    br_flags_default(&r->flags, !c);
    FTH_TRY(read_quirks(&r->flags, value(user, "quirk"), err));
    if (seed) r->flags.seed_all = atoll(seed);
    r->words.fdump = r->flags.fdump = value(user, "fdump");
    FTH_TRY(br_flags_parse(&r->flags, r->words.n, r->words.word, err));
    for (int i = 0; i < 3; i++) r->words.sized |= r->flags.sample[i] > 0;
    if (br_flags_enough(&r->flags)) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "there is no model to start from");
    fth_err_hint(err, "give structure factors (-hkl or -default_F) and a cell (-cell or -mat)");
    return FTH_E_COMMAND;
}

/* ---- answer ---- */

static fth_status tell_all(const br_refined *r, const request *q, fth_mem *mem, const char *command,
                           FILE *out, fth_err *err)
{
    const br_variables *v = &q->refine.variables;
    if (!q->json) FTH_TRY(br_refined_print(r, v, out, err));
    FTH_TRY(br_refined_save(r, v, mem, q->out, NULL, command, err));
    FTH_TRY(br_refined_draw(r, v, mem, q->figure, err));
    if (q->json) return br_refined_save(r, v, mem, NULL, out, command, err);
    fprintf(out, "wrote %s and %s\n\n%s:\n%s\n", q->out, q->figure,
            r->converged ? "the refined model" : "it did not converge; the model so far", command);
    return FTH_OK;
}

static fth_status tell(const br_refined *r, const request *q, const br_experiment *e, FILE *out,
                       fth_err *err)
{
    const br_variables *v = &q->refine.variables;
    const size_t n = br_refined_command(e, v, &q->words, NULL, 0) + 1;
    void *command = NULL;
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, n, "command", &command, err));
    br_refined_command(e, v, &q->words, command, n);
    const fth_status s = tell_all(r, q, e->mem, command, out, err);
    fth_mem_release(e->mem, command, NULL);
    return s;
}

static void tell_files(const request *q, const br_experiment *e)
{
    fth_answer *a = q->refine.plan;
    fth_answer_file(a, FTH_FILE_INPUT, q->image, -1, "%lld x %lld", (long long)e->scene.slow,
                    (long long)e->scene.fast);
    fth_answer_file(a, FTH_FILE_OUTPUT, q->out, -1, "values, errors, correlations and history");
    fth_answer_file(a, FTH_FILE_FIGURE, q->figure, -1, "how it converged");
}

/* A refinement that failed late has a partial result, which is reported too. */
static fth_status refine(request *q, fth_context *ctx, br_experiment *e, FILE *out, fth_err *err)
{
    br_observed o;
    br_refined r;
    q->words.matrix = e->scene.mat_given;
    if (q->words.matrix) FTH_TRY(br_matrix_to_cell(e, err));
    FTH_TRY(br_observed_open(&o, e->mem, q->image, e, &q->observed, err));
    if (q->refine.plan) tell_files(q, e);
    fth_status s = br_refine(&r, ctx, e, &o, &q->refine, err);
    if (r.expected > 0 && (s == FTH_OK || s == FTH_E_NUMERIC)) {
        fth_err other = {0};
        const fth_status told = tell(&r, q, e, out, s == FTH_OK ? err : &other);
        if (s == FTH_OK) s = told;
    }
    br_refined_clear(&r);
    br_observed_close(&o);
    return s;
}

static fth_status check_files(const request *q, fth_mem *mem, fth_err *err)
{
    fth_path_use use[BR_FLAGS_READS + 3];
    int n = br_flags_reads(&q->flags, use);
    use[n++] = (fth_path_use){FTH_FILE_INPUT, "the image", q->image};
    use[n++] = (fth_path_use){FTH_FILE_OUTPUT, "--out", q->out};
    use[n++] = (fth_path_use){FTH_FILE_OUTPUT, "--figure", q->figure};
    return fth_paths_check(use, n, mem, err);
}

/* `out` gets the table, or with --json the document that --out gets too. */
static fth_status answer(request *q, fth_context *ctx, fth_answer *a, FILE *out, fth_err *err)
{
    br_experiment e;
    if (a->plan) q->refine.plan = a;
    FTH_TRY(check_files(q, fth_context_mem(ctx), err));
    br_foreign_answer(&q->flags, a->notes);
    FTH_TRY(br_experiment_resolve(&e, fth_context_mem(ctx), &q->flags, err));
    const fth_status s = refine(q, ctx, &e, out, err);
    if (s == FTH_OK && a->plan) fth_answer_memory(a, 0, "planned");
    br_experiment_clear(&e);
    return s;
}

fth_status br_refine_run(fth_context *ctx, int n_words, char *const *word, value_fn *value,
                         void *user, FILE *out, fth_err *err)
{
    request q = {.refine = {.out = out}};
    fth_answer a;
    FTH_TRY(find_image(&q, n_words, word, err));
    FTH_TRY(read_request(&q, value, user, err));
    FTH_TRY(read_flags(&q, value, user, err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    const fth_status s = answer(&q, ctx, &a, out, err);
    if (a.plan) return fth_answer_end(&a, s, err);
    const fth_status dropped = fth_answer_end(&a, FTH_E_CANCELLED, NULL); /* it reported its own */
    (void)dropped;
    return s;
}

const char br_refine_doc[] =
    "Fits a model to an image: first the positions of the brightest spots, then all pixels, by "
    "maximum "
    "likelihood for counted photons. The flags with one dash are those of 'fathom bragg' and "
    "describe the starting model; within half a degree, half a percent of the cell and a few "
    "pixels "
    "it is close enough. The image is SMV, NPY, HDF5 or plain float32, of the size of the detector."
    "\n\n"
    "Shows chi-square and the largest step at every iteration, then each parameter with its start, "
    "value and standard error, and the command that makes the image of the refined model. Leaves "
    "values, errors, correlations and history in refine.json, and a figure of how it converged in "
    "refine.png. The exit code is 7 when it does not converge.";

const fth_flag br_refine_flags[] = {
    {"free", FTH_FLAG_WORD, "parameters to refine, as a,b,c,mx (default: " BR_REFINE_FREE ")", 0,
     false},
    {"fix", FTH_FLAG_WORD, "parameters to leave out of these", 0, false},
    {"tie", FTH_FLAG_WORD, "parameters constrained to be equal, as a=b=c,al=be", 0, false},
    {"iterations", FTH_FLAG_COUNT, "most iterations (default: 50)", 0, false},
    {"adc", FTH_FLAG_WORD, "value of a pixel without photons (default: 40 for SMV, else 0)", 0,
     false},
    {"gain", FTH_FLAG_WORD, "values per photon (default: 1)", 0, false},
    {"dataset", FTH_FLAG_WORD, "path of the image in an HDF5 file", 0, false},
    {"frame", FTH_FLAG_COUNT, "number of the image in a stack, from 0", 0, false},
    {"no-lattice", FTH_FLAG_NONE, "do not fit the positions of spots before the pixels", 0, false},
    {"out", FTH_FLAG_FILE, "values, errors, correlations and history (default: refine.json)", 0,
     false},
    {"figure", FTH_FLAG_FILE, "how it converged (default: as --out, ending in .png)", 0, false},
    {"compat", FTH_FLAG_WORD, "spec, the default, or c: the model as nanoBragg computes it", 0,
     false},
    {"quirk", FTH_FLAG_SET, "defects of nanoBragg on or off, as phi-carryover=on,cstar-z=off", 0,
     false},
    {"fdump", FTH_FLAG_FILE, "structure factors from a dump file", 0, false},
    {0},
};
