/* test_bragg_refine_verb.c - `fathom bragg refine` from words to answer: conventions, files, and
 * the command that makes the refined model.
 *
 * Images here are without noise, so the answer is the truth itself.
 * seconds: 10
 */
#include "instruments/bragg/flags.h"
#include "testing/refining.h"

#include <math.h>

enum { WORDS = 120, TEXT = 1 << 14 };

/* ---- words ---- */

typedef struct words {
    char text[TEXT];
    char *word[WORDS];
    int n;
} words;

static void split(words *w, const char *line)
{
    snprintf(w->text, sizeof w->text, "%s", line);
    w->n = 0;
    for (char *at = strtok(w->text, " \n"); at && w->n < WORDS; at = strtok(NULL, " \n"))
        w->word[w->n++] = at;
}

/* Flags with two dashes, as "name=value name=value". */
static const char *value_of(void *user, const char *flag)
{
    static char value[512];
    const size_t n = strlen(flag);
    for (const char *at = user; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strncmp(at, flag, n) != 0 || at[n] != '=') continue;
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at + n + 1, " "), at + n + 1);
        char *kept = strdup(value); /* flags outlive the call; freed with the process */
        return kept;
    }
    return NULL;
}

static fth_context *context(void)
{
    fth_err err = {0};
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

/* ---- images ---- */

static void resolve(br_experiment *e, fth_context *ctx, const char *line, bool c_mode)
{
    fth_err err = {0};
    br_flags f;
    words *w = malloc(sizeof *w);
    if (!w) FAIL("no memory");
    split(w, line);
    br_flags_default(&f, !c_mode);
    OKE(br_flags_parse(&f, w->n, w->word, &err), &err);
    OKE(br_experiment_resolve(e, fth_context_mem(ctx), &f, &err), &err);
    free(w);
}

/* Plain floats of the model of a line, at least 1e6 photons; returns its parameters. */
static void make_image(const char *path, const char *line, bool c_mode, double *param)
{
    fth_err err = {0};
    br_experiment e;
    fth_sink sink;
    fth_context *ctx = context();
    resolve(&e, ctx, line, c_mode);
    memcpy(param, e.param, sizeof e.param);
    fth_graph *g = fth_graph_create(ctx);
    br_inputs in = br_experiment_inputs(g, &e);
    in.latch = fth_const_i64(g, FTH_I64, INT64_MAX);
    const fth_val image = br_render(&e.scene, &in, FTH_F32);
    const fth_raw_layout layout = {
        .dtype = FTH_F32, .n_axes = 2, .size = {e.scene.slow, e.scene.fast}};
    OKE(fth_raw_create(&sink, e.mem, path, &layout, NULL, &err), &err);
    fth_plan *p = fth_plan_make(g, &image, 1, NULL, &err);
    if (!p) OKE(err.status, &err);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_sink_close(&sink);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    br_experiment_clear(&e);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* ---- the verb ---- */

/* Runs the verb; its text is the caller's to free. */
static fth_status refine(const char *image, const char *line, const char *flags, char **text,
                         fth_err *err)
{
    fth_err other = {0};
    fth_context *ctx = context();
    words *w = malloc(sizeof *w);
    char typed[TEXT], all[1024];
    size_t bytes = 0;
    FILE *out = open_memstream(text, &bytes);
    if (!w || !out) FAIL("no memory");
    snprintf(typed, sizeof typed, "%s %s", image, line);
    snprintf(all, sizeof all, "out=%s %s", t_temp_path("refine.json"), flags);
    split(w, typed);
    const fth_status s = br_refine_run(ctx, w->n, w->word, value_of, all, out, err);
    fclose(out);
    free(w);
    OKE(fth_context_destroy(ctx, &other), &other);
    return s;
}

#define CRYSTAL " -N 8 -default_F 50 -lambda 1 -fluence 1e29"
#define DETECTOR " -detpixels 96 -pixel 0.5"

/* What the command at the end makes is the truth: parameters of it within `close` of them, in
 * units of the precision that single floats leave. */
static void gives_back(const char *truth, const char *start, const char *flags, bool c_mode)
{
    fth_err err = {0};
    char *text = NULL, path[1024];
    double param[BR_PARAMS];
    br_experiment e;
    snprintf(path, sizeof path, "%s", t_temp_path("image.bin"));
    make_image(path, truth, c_mode, param);
    OKE(refine(path, start, flags, &text, &err), &err);
    const char *command = strstr(text, "the refined model:\nfathom bragg ");
    if (!command) FAIL("no command in: %s", text);
    char *line = strdup(command + strlen("the refined model:\nfathom bragg "));
    char *ours = line ? strstr(line, " --") : NULL;
    if (ours) *ours = '\0'; /* flags of ours come last */
    fth_context *ctx = context();
    resolve(&e, ctx, line, c_mode);
    br_frame want = e.frame;
    memcpy(e.param, param, sizeof param);
    free(line);
    /* the same places and vectors, whichever flags lead there */
    br_experiment t;
    resolve(&t, ctx, truth, c_mode);
    for (int k = 0; k < 3; k++) {
        NEAR(want.pix0[k].v, t.frame.pix0[k].v, 1e-6);
        for (int i = 0; i < 3; i++) NEAR(want.abc[i][k].v, t.frame.abc[i][k].v, 1e-13);
    }
    NEAR(want.fluence.v, t.frame.fluence.v, 1e-3 * t.frame.fluence.v);
    EQ_I64(e.scene.oversample, t.scene.oversample);
    br_experiment_clear(&e);
    br_experiment_clear(&t);
    OKE(fth_context_destroy(ctx, &err), &err);
    free(text);
}

TEST(the_command_makes_the_refined_model)
{
    gives_back(CRYSTAL DETECTOR " -distance 60 -cell 40 45 50 85 95 100 -misset 10 20 30",
               CRYSTAL DETECTOR " -distance 60 -cell 40.1 44.9 50.1 85 95 100 -misset 10.2 20.2 30"
                                " -Xbeam 24.5 -Ybeam 23.9",
               "", false);
}

TEST(a_beam_centre_of_xds_is_an_origin)
{
    gives_back(CRYSTAL DETECTOR " -xds -ORGX 48 -ORGY 47 -distance 60 -cell 40 45 50 90 90 90"
                                " -misset 10 20 30",
               CRYSTAL DETECTOR " -xds -ORGX 48.5 -ORGY 46.5 -distance 60 -cell 40.1 45 50.1 90 90"
                                " 90 -misset 10.2 20.2 30",
               "", false);
}

TEST_MAIN()
