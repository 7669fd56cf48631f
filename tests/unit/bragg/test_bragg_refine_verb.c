/* test_bragg_refine_verb.c - `fathom bragg refine` from words to answer: conventions, files, and
 * the command that makes the refined model.
 *
 * Images here are without noise, so the answer is the truth itself.
 * seconds: 10
 */
#include "instruments/bragg/experiment/resolve.h"
#include "testing/bragg/refining.h"

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

/* Flags with two dashes, as "name=value name=value", and their values, which live as long. */
typedef struct given {
    const char *text;
    char value[16][128];
    int n;
} given;

static const char *value_of(void *user, const char *flag)
{
    given *g = user;
    const size_t n = strlen(flag);
    for (const char *at = g->text; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strncmp(at, flag, n) != 0 || at[n] != '=') continue;
        if (g->n == 16) FAIL("too many flags");
        char *value = g->value[g->n++];
        snprintf(value, sizeof g->value[0], "%.*s", (int)strcspn(at + n + 1, " "), at + n + 1);
        return value;
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

/* Plain floats of the model of a line. */
static void make_image(const char *path, const char *line, bool c_mode)
{
    fth_err err = {0};
    br_experiment e;
    fth_sink sink;
    fth_context *ctx = context();
    resolve(&e, ctx, line, c_mode);
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
    given g = {.text = all};
    const fth_status s = br_refine_run(ctx, w->n, w->word, value_of, &g, out, err);
    fclose(out);
    free(w);
    OKE(fth_context_destroy(ctx, &other), &other);
    return s;
}

#define CRYSTAL " -N 8 -default_F 50 -lambda 1 -fluence 1e29 -oversample 1"
#define DETECTOR " -detpixels 96 -pixel 0.5"
#define CELL " -cell 40 45 50 85 95 100 -misset 10 20 30"
#define NEAR_CELL " -cell 40.1 44.9 50.1 85 95 100 -misset 10.2 20.2 30"

/* The command at the end of the text, without flags of ours; the caller frees it. */
static char *command_in(const char *text)
{
    static const char mark[] = "the refined model:\nfathom bragg ";
    const char *at = strstr(text, mark);
    if (!at) FAIL("no command in: %s", text);
    char *line = strdup(at + strlen(mark)), *ours = line ? strstr(line, " --") : NULL;
    if (!line) FAIL("no memory");
    if (ours) *ours = '\0';
    return line;
}

/* Two lines place detector and crystal alike, to what single floats and convergence leave. */
static void same_model(const char *one, const char *other, bool c_mode)
{
    fth_err err = {0};
    br_experiment a, b;
    fth_context *ctx = context();
    resolve(&a, ctx, one, c_mode);
    resolve(&b, ctx, other, c_mode);
    for (int k = 0; k < 3; k++) {
        NEAR(a.placed.pix0[k].v, b.placed.pix0[k].v, 1e-6);
        NEAR(a.placed.fdet[k].v, b.placed.fdet[k].v, 1e-5);
        NEAR(a.placed.sdet[k].v, b.placed.sdet[k].v, 1e-5);
        for (int i = 0; i < 3; i++) NEAR(a.placed.abc[i][k].v, b.placed.abc[i][k].v, 1e-13);
    }
    NEAR(a.placed.fluence.v, b.placed.fluence.v, 1e-3 * b.placed.fluence.v);
    EQ_I64(a.scene.oversample, b.scene.oversample);
    EQ_F64(a.scene.cells[0], b.scene.cells[0]);
    EQ_I64(a.scene.pivot, b.scene.pivot);
    EQ_I64(a.scene.convention, b.scene.convention);
    br_experiment_clear(&a);
    br_experiment_clear(&b);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* The image of `truth`, refined from `start`, ends in a command that makes the truth. */
static void gives_back(const char *truth, const char *start, const char *flags, bool c_mode)
{
    fth_err err = {0};
    char *text = NULL, path[1024];
    snprintf(path, sizeof path, "%s", t_temp_path("image.bin"));
    make_image(path, truth, c_mode);
    OKE(refine(path, start, flags, &text, &err), &err);
    char *line = command_in(text);
    same_model(line, truth, c_mode);
    free(line);
    free(text);
}

TEST(the_command_makes_the_refined_model)
{
    gives_back(CRYSTAL DETECTOR CELL " -distance 60",
               CRYSTAL DETECTOR NEAR_CELL " -distance 60 -Xbeam 24.5 -Ybeam 23.9", "", false);
}

TEST(a_beam_centre_of_xds_is_an_origin)
{
    gives_back(CRYSTAL DETECTOR CELL " -xds -ORGX 48 -ORGY 47 -distance 60",
               CRYSTAL DETECTOR NEAR_CELL " -xds -ORGX 48.5 -ORGY 46.5 -distance 60", "", false);
}

TEST(a_custom_detector_keeps_its_pivot)
{
    const char *const truth = CRYSTAL DETECTOR CELL
        " -fdet_vector 0 0 1 -sdet_vector 0 -1 0 -close_distance 60 -Xclose 24 -Yclose 23"
        " -detector_rotz 3 -detector_roty 2";
    const char *const start = CRYSTAL DETECTOR CELL
        " -fdet_vector 0 0 1 -sdet_vector 0 -1 0 -close_distance 60.1 -Xclose 24.2 -Yclose 22.9"
        " -detector_rotz 3.1 -detector_roty 1.9";
    gives_back(truth, start, "free=dist,xb,yb,ry,rz,flu", false);
}

TEST(a_distance_and_a_two_theta)
{
    gives_back(CRYSTAL DETECTOR CELL " -adxv -distance 60 -twotheta 5",
               CRYSTAL DETECTOR CELL " -adxv -distance 60.1 -twotheta 5.05 -flux 0",
               "free=dist,xb,yb,tt,flu", false);
}

/* 320.1 A are 7.998 cells of the start and 8.003 of the truth. */
TEST(a_crystal_of_given_size_keeps_its_cells)
{
    gives_back(CRYSTAL DETECTOR CELL " -distance 60 -Na 8 -Nb 7 -Nc 6",
               CRYSTAL DETECTOR " -cell 40.02 45 50 85 95 100 -misset 10 20 30 -distance 60"
                                " -nointerpolate -xtal_thick 320.1e-7 -xtal_width 314e-7"
                                " -xtal_height 299e-7",
               "free=a,flu", false);
}

/* A matrix with lambda 0.9795; the model of c mode, whose random numbers and quirks do not matter
 * here, but whose cell of a matrix is not bent. */
TEST(a_matrix_is_a_start)
{
    fth_err err = {0};
    char *text = NULL, path[1024];
    const char *const truth =
        " -mat tests/golden/bragg/inputs/A.mat -N 8 -default_F 50 -lambda 0.9795"
        " -oversample 1 -fluence 1e29 -distance 60" DETECTOR;
    snprintf(path, sizeof path, "%s", t_temp_path("image.bin"));
    make_image(path, truth, true);
    char start[512];
    snprintf(start, sizeof start, "%s -Xbeam 24.4 -Ybeam 24.1", truth);
    OKE(refine(path, start, "compat=c", &text, &err), &err);
    HAS(text, "--compat c");
    HAS(text, "--quirk cstar-z=off");
    char *line = command_in(text);
    HAS_NOT(line, "-mat");
    free(line);
    free(text);
}

/* ---- what is told ---- */

TEST(numbers_are_left_in_a_file_and_a_figure)
{
    fth_err err = {0};
    char *text = NULL, path[1024], json[1 << 16] = "", png[8] = "";
    snprintf(path, sizeof path, "%s", t_temp_path("image.bin"));
    make_image(path, CRYSTAL DETECTOR " -cell 40 45 50 85 95 100 -misset 15 15 30 -distance 60",
               false);
    OKE(refine(path,
               CRYSTAL DETECTOR " -cell 40.1 45 50 85 95 100 -misset 15.1 15.1 30 -distance 60",
               "tie=mx=my fix=al,be", &text, &err),
        &err);
    HAS(text, "tied to mx");
    free(text);
    FILE *f = fopen(t_temp_path("refine.json"), "r");
    if (!f || fread(json, 1, sizeof json - 1, f) == 0) FAIL("no refine.json");
    fclose(f);
    HAS(json, "\"converged\": ");
    HAS(json, "\"tied_to\": \"mx\"");
    HAS(json, "\"al\": {\"start\": 85, \"value\": 85, \"free\": false");
    HAS(json, "\"correlation\": [");
    f = fopen(t_temp_path("refine.png"), "rb");
    if (!f || fread(png, 1, 4, f) != 4) FAIL("no refine.png");
    fclose(f);
    EQ_STR(png + 1, "PNG");
}

TEST(a_plan_and_json_are_shown_when_asked_for)
{
    fth_err err = {0};
    char *text = NULL, path[1024];
    snprintf(path, sizeof path, "%s", t_temp_path("image.bin"));
    make_image(path, CRYSTAL DETECTOR CELL " -distance 60", false);
    OKE(refine(path, CRYSTAL DETECTOR CELL " -distance 60", "plan=", &text, &err), &err);
    HAS(text, "plan on ");
    HAS(text, "bragg_normal");
    HAS_NOT(text, "iteration");
    free(text);
    OKE(refine(path, CRYSTAL DETECTOR CELL " -distance 60", "json=", &text, &err), &err);
    EQ_I64(text[0], '{');
    HAS(text, "\"converged\": true");
    free(text);
}

/* ---- mistakes ---- */

static void refused(const char *image, const char *line, const char *flags, fth_status status,
                    const char *part)
{
    fth_err err = {0};
    char *text = NULL;
    remove(t_temp_path("refine.json"));
    IS(refine(image, line, flags, &text, &err), status);
    HAS(err.text, part);
    FILE *f = fopen(t_temp_path("refine.json"), "r");
    IS_TRUE(f == NULL);
    free(text);
}

TEST(mistakes_are_named_and_leave_nothing)
{
    char path[1024];
    const char *const line = CRYSTAL DETECTOR CELL " -distance 60";
    snprintf(path, sizeof path, "%s", t_temp_path("image.bin"));
    make_image(path, line, false);
    refused("", line, "", FTH_E_COMMAND, "the image is missing");
    refused("nowhere.img", line, "", FTH_E_FILE_OPEN, "nowhere.img");
    refused(path, CRYSTAL CELL " -detpixels 97", "", FTH_E_FILE_SHAPE, "this has 36864");
    refused(path, "-lambda 1", "", FTH_E_COMMAND, "no model to start from");
    refused(path, line, "free=zz", FTH_E_COMMAND, "'zz' is not a parameter");
    refused(path, line, "free=a fix=a", FTH_E_COMMAND, "no parameter is free");
    refused(path, line, "gain=0", FTH_E_COMMAND, "--gain");
    refused(path, line, "adc=4o", FTH_E_COMMAND, "--adc takes a number, not '4o'");
    refused(path, line, "compat=d", FTH_E_COMMAND, "--compat");
    refused(path, line, "quirk=no=on", FTH_E_COMMAND, "'no=on'");
    refused(path, line, "frame=1", FTH_E_COMMAND, "--frame 1");
    refused(path, line, "adc=1e9", FTH_E_NUMERIC, "nothing to fit");
}

/* ---- files ---- */

enum { FAST = 6, SLOW = 5 };

static double pixel(int64_t frame, int64_t slow, int64_t fast)
{
    return (double)(100 * frame + 10 * slow + fast);
}

/* The image of a file has the pixels of frame 1 above, and this offset. */
static void reads(const char *path, const br_observed_options *opt, double adc)
{
    fth_err err = {0};
    fth_context *ctx = context();
    br_experiment e = {.scene = {.fast = FAST, .slow = SLOW}, .mem = fth_context_mem(ctx)};
    br_observed o;
    fth_tensor *t = NULL;
    OKE(br_observed_open(&o, e.mem, path, &e, opt, &err), &err);
    EQ_F64(o.adc, adc);
    OKE(fth_source_load(&o.pixels, e.mem, "image", &t, &err), &err);
    for (int64_t s = 0; s < SLOW; s++)
        for (int64_t f = 0; f < FAST; f++) {
            const void *v = fth_tensor_data(t);
            const int64_t i = s * FAST + f;
            const double got = o.pixels.dtype == FTH_U16   ? ((const uint16_t *)v)[i]
                               : o.pixels.dtype == FTH_I32 ? ((const int32_t *)v)[i]
                               : o.pixels.dtype == FTH_F32 ? (double)((const float *)v)[i]
                                                           : ((const double *)v)[i];
            EQ_F64(got, pixel(1, s, f));
        }
    fth_tensor_release(t);
    br_observed_close(&o);
    e.scene.fast = FAST + 1;
    IS(br_observed_open(&o, e.mem, path, &e, opt, &err), FTH_E_FILE_SHAPE);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* Frames 0 and 1, or frame 1 alone, into a sink of doubles. */
static void fill(fth_sink *sink, int frames)
{
    fth_err err = {0};
    double v[2 * SLOW * FAST];
    for (int64_t i = 0; i < frames * SLOW * FAST; i++)
        v[i] = pixel(frames == 1 ? 1 : i / (SLOW * FAST), i / FAST % SLOW, i % FAST);
    const int64_t lo[3] = {0}, one[2] = {SLOW, FAST}, two[3] = {2, SLOW, FAST};
    OKE(sink->write(sink->self, lo, frames == 1 ? one : two, v, &err), &err);
    if (sink->commit) OKE(sink->commit(sink->self, &err), &err);
}

static void write_bytes(const char *path, const void *head, size_t n, const void *data, size_t m)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(head, 1, n, f) != n || fwrite(data, 1, m, f) != m) FAIL("cannot write");
    fclose(f);
}

TEST(images_come_from_many_files)
{
    fth_err err = {0};
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    fth_sink sink;
    fth_h5_writer *w = NULL;
    const br_observed_options plain = {.adc = (double)NAN, .gain = (double)NAN},
                              second = {.adc = 7, .gain = (double)NAN, .frame = 1},
                              named = {.adc = 7, .gain = 2, .frame = 1, .dataset = "/my/data"};
    OKE(fth_npy_create(&sink, mem, t_temp_path("i.npy"), FTH_F64, 2, (int64_t[]){SLOW, FAST}, &err),
        &err);
    fill(&sink, 1);
    fth_sink_close(&sink);
    reads(t_temp_path("i.npy"), &plain, 0);
    OKE(fth_npy_create(&sink, mem, t_temp_path("s.npy"), FTH_F64, 3, (int64_t[]){2, SLOW, FAST},
                       &err),
        &err);
    fill(&sink, 2);
    fth_sink_close(&sink);
    reads(t_temp_path("s.npy"), &second, 7);
    for (int k = 0; k < 2; k++) {
        const char *const at = k ? "/my/data" : "/entry/data/data";
        OKE(fth_h5_create(&w, mem, t_temp_path("i.h5"), &err), &err);
        OKE(fth_h5_sink(w,
                        &(fth_h5_dataset){
                            .name = at, .dtype = FTH_F64, .n_axes = 3, .size = {2, SLOW, FAST}},
                        &sink, &err),
            &err);
        fill(&sink, 2);
        OKE(fth_h5_commit(w, &err), &err);
        reads(t_temp_path("i.h5"), k ? &named : &second, 7);
    }
    br_observed o;
    br_experiment e = {.scene = {.fast = FAST, .slow = SLOW}, .mem = mem};
    IS(br_observed_open(&o, mem, t_temp_path("i.h5"), &e, &plain, &err), FTH_E_FILE_KEY);
    HAS(err.hint, "--dataset");
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(images_come_as_smv_and_floats)
{
    char head[512];
    uint16_t u16[SLOW * FAST];
    uint32_t u32[SLOW * FAST];
    float f32[SLOW * FAST];
    const br_observed_options plain = {.adc = (double)NAN, .gain = (double)NAN};
    for (int i = 0; i < SLOW * FAST; i++) {
        u16[i] = (uint16_t)pixel(1, i / FAST, i % FAST);
        u32[i] = u16[i];
        f32[i] = (float)u16[i];
    }
    for (int k = 0; k < 2; k++) {
        memset(head, ' ', sizeof head);
        const int n = snprintf(head, sizeof head,
                               "{\nHEADER_BYTES=512;\nBYTE_ORDER=little_endian;\nTYPE=%s;\n"
                               "SIZE1=%d;\nSIZE2=%d;\n}\f",
                               k ? "unsigned_int" : "unsigned_short", FAST, SLOW);
        head[n] = ' ';
        write_bytes(t_temp_path("i.img"), head, sizeof head, k ? (void *)u32 : (void *)u16,
                    k ? sizeof u32 : sizeof u16);
        reads(t_temp_path("i.img"), &plain, 40);
    }
    write_bytes(t_temp_path("i.bin"), "", 0, f32, sizeof f32);
    reads(t_temp_path("i.bin"), &plain, 0);
}

TEST_MAIN()
