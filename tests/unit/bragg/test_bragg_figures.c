/* test_bragg_figures.c - predicted spots, radial averages, and every figure drawn. seconds: 10
 *
 * Where spots should be is checked against the render itself: h k l of the place where a spot is
 * predicted, and photons there.
 */
#include "instruments/bragg/companions/companions.h"
#include "instruments/bragg/experiment/resolve.h"
#include "instruments/bragg/figures/figures.h"
#include "instruments/bragg/figures/predict.h"
#include "instruments/bragg/ops/render/view.h"
#include "testing/bragg/bragg_verbs.h"

#include <math.h>

#define HKL "tests/golden/bragg/inputs/P1_full.hkl"
#define CRYSTAL "-hkl " HKL " -cell 40 45 50 80 95 100 -misset 10 20 30 -N 8 -lambda 1 "

typedef struct shot {
    fth_context *ctx;
    char text[1024], *word[TV_WORDS];
    br_flags f;
    br_experiment *e;
    br_drawing d;
    fth_tensor *image;
} shot;

static const char *no_value(void *user, const char *flag)
{
    (void)user, (void)flag;
    return NULL;
}

static const char *no_value_at(void *user, const char *flag, int i)
{
    (void)i;
    return no_value(user, flag);
}

/* The experiment of a command line, rendered. */
static void open_shot(shot *s, const char *line)
{
    fth_err err = {0};
    fth_options opt;
    int n = 0;
    memset(s, 0, sizeof *s);
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 256u << 20;
    OKE(fth_context_create(&s->ctx, &opt, &err), &err);
    snprintf(s->text, sizeof s->text, "%s", line);
    for (char *w = strtok(s->text, " "); w && n < TV_WORDS; w = strtok(NULL, " ")) s->word[n++] = w;
    const fth_direct_call call = {.context = s->ctx,
                                  .n_words = n,
                                  .word = s->word,
                                  .value = no_value,
                                  .value_at = no_value_at};
    OKE(br_flags_of_call(&s->f, &call, &err), &err);
    s->e = calloc(1, sizeof *s->e);
    OKE(br_experiment_resolve(s->e, fth_context_mem(s->ctx), &s->f, &err), &err);
    s->d = (br_drawing){.context = s->ctx, .e = s->e, .flags = &s->f};
    OKE(br_drawing_render(s->ctx, s->e, &s->image, &s->d, &err), &err);
    s->d.image = fth_tensor_source(s->image);
}

static void close_shot(shot *s)
{
    fth_err err = {0};
    fth_tensor_release(s->image);
    br_experiment_clear(s->e);
    free(s->e);
    OKE(fth_context_destroy(s->ctx, &err), &err);
}

/* ---- spots ---- */

/* h k l of the centre of a pixel, as the render has it, at a step of the spindle. */
static void hkl_of(const shot *s, double fast, double slow, int64_t phi, double *hkl)
{
    br_scene scene = s->e->scene;
    br_view v;
    double *work = malloc((size_t)br_view_bytes(&scene)), q[3], d[3], p[3], stol;
    const br_arrays a = {.param = s->e->param,
                         .source = fth_tensor_data(s->e->source),
                         .mosaic_rotation = fth_tensor_data(s->e->mosaic_rotation)};
    br_view_make(&v, &scene, &a, work);
    for (int i = 0; i < 3; i++)
        p[i] = v.pix0[i] + scene.pixel * ((fast + 0.5) * v.fdet[i] + (slow + 0.5) * v.sdet[i]);
    br_unit(p, d);
    br_scatter(&v, 0, d, q, &stol);
    const double *cell = v.cells + 9 * phi * scene.mosaics;
    for (int k = 0; k < 3; k++)
        hkl[k] = cell[3 * k] * q[0] + cell[3 * k + 1] * q[1] + cell[3 * k + 2] * q[2];
    free(work);
}

/* At its place a reflection is off the sphere by its excitation, and by nothing else. */
static void marks_lie_on_reflections(const char *line, int64_t least)
{
    shot s;
    br_marks m;
    fth_err err = {0};
    open_shot(&s, line);
    OKE(br_marks_predict(&m, s.e, &err), &err);
    if (m.n < least) FAIL("%lld spots of '%s'", (long long)m.n, line);
    for (int64_t i = 0; i < m.n; i++) {
        const br_mark *k = &m.spot[i];
        double best = HUGE_VAL;
        for (int64_t phi = 0; phi < s.e->scene.phis; phi++) {
            double hkl[3], off = 0;
            hkl_of(&s, k->fast, k->slow, phi, hkl);
            for (int j = 0; j < 3; j++) off = fmax(off, fabs(hkl[j] - (double)k->hkl[j]));
            best = fmin(best, off);
        }
        /* the longest edge times the excitation, in cells, is what h k l may be off */
        LE_F64(best, 50 * fabs(k->excitation) + 1e-6);
        if (i > 0) IS_TRUE(k->strength <= m.spot[i - 1].strength);
    }
    br_marks_clear(&m);
    close_shot(&s);
}

TEST(predicted_spots_lie_on_their_reflections)
{
    marks_lie_on_reflections(CRYSTAL "-distance 61 -pixel 0.2 -detpixels 128", 20);
    marks_lie_on_reflections(CRYSTAL "-distance 61 -pixel 0.2 -detpixels_f 160 -detpixels_s 96 "
                                     "-detector_rotx 5 -detector_roty 20 -twotheta 12",
                             8);
    marks_lie_on_reflections(CRYSTAL "-xds -distance 61 -pixel 0.2 -detpixels 128", 20);
    marks_lie_on_reflections(CRYSTAL "-distance 61 -pixel 0.2 -detpixels 128 -phi 3 -osc 2 "
                                     "-phisteps 4 -mosaic 0.2 -mosaic_dom 3",
                             20);
}

/* The strongest spots are where the image has its photons. */
TEST(predicted_spots_are_bright)
{
    shot s;
    br_marks m;
    fth_err err = {0};
    open_shot(&s, CRYSTAL "-distance 61 -pixel 0.1 -detpixels 256 -fluence 1e30");
    OKE(br_marks_predict(&m, s.e, &err), &err);
    IS_TRUE(m.n > 20);
    const float *v = fth_tensor_data(s.image);
    double mean = 0, there = 0;
    for (int i = 0; i < 256 * 256; i++) mean += (double)v[i] / (256 * 256);
    for (int i = 0; i < 10; i++) {
        const int64_t x = (int64_t)lrint(m.spot[i].fast), y = (int64_t)lrint(m.spot[i].slow);
        there += (double)v[y * 256 + x] / 10;
    }
    LE_F64(20 * mean, there);
    br_marks_clear(&m);
    close_shot(&s);
}

TEST(a_curved_detector_has_no_predictions)
{
    shot s;
    br_marks m;
    fth_err err = {0};
    open_shot(&s, CRYSTAL "-distance 61 -pixel 0.4 -detpixels 32 -curved_det -nopgm");
    OKE(br_marks_predict(&m, s.e, &err), &err);
    EQ_I64(m.n, 0);
    br_marks_clear(&m);
    close_shot(&s);
}

/* ---- rings ---- */

/* An image that is 1/d itself: every ring has its own resolution as mean. */
TEST(radial_average_of_the_resolution_is_the_resolution)
{
    enum { N = 96, BINS = 20 };
    shot s;
    br_radial r;
    fth_err err = {0};
    open_shot(&s, CRYSTAL "-distance 40 -pixel 0.4 -detpixels 96 -detector_roty 15");
    float *v = fth_tensor_data(s.image);
    for (int i = 0; i < N * N; i++) {
        double p[3], along = 0, length = 0;
        for (int k = 0; k < 3; k++) {
            const br_placed *f = &s.e->placed;
            p[k] = f->pix0[k].v +
                   s.e->scene.pixel * ((i % N + 0.5) * f->fdet[k].v + (i / N + 0.5) * f->sdet[k].v);
            along += p[k] * s.e->scene.beam[k];
            length += p[k] * p[k];
        }
        v[i] = (float)(2 * sin(0.5 * acos(along / sqrt(length)))); /* lambda is 1 Angstrom */
    }
    OKE(br_radial_make(&r, s.e, &s.d.image, BINS, &err), &err);
    double count = 0, step = r.s[1] - r.s[0];
    for (int b = 0; b < BINS; b++) {
        count += r.count[b];
        if (r.count[b] == 0) continue;
        NEAR(r.mean[b], r.s[b], step / 2);
        IS_TRUE(r.most[b] >= r.mean[b] && r.most[b] <= r.s[b] + step * 0.5001);
    }
    EQ_F64(count, N * N);
    br_radial_clear(&r);
    close_shot(&s);
}

/* ---- figures ---- */

static void check_png(const char *path)
{
    size_t n;
    unsigned char *file = t_file_read(path, &n);
    IS_TRUE(n > 2000);
    SAME_BYTES(file, "\x89PNG\r\n\x1a\n", 8);
    free(file);
}

TEST_REPEAT(every_figure_is_drawn_and_the_same_again)
{
    char line[512], said[TV_SAID];
    fth_err err = {0};
    char dir[256];
    snprintf(dir, sizeof dir, "%s", t_temp_path("figures"));
    snprintf(line, sizeof line,
             CRYSTAL "-distance 61 -pixel 0.4 -detpixels_f 64 -detpixels_s 48 -phi 0 -osc 1 "
                     "-phisteps 2 -detector_thick 300 -detector_abs 200 -thicksteps 2");
    OKE(tv_run(br_figures_run_verb, (tv_flags){.out = dir}, line, 0, said, &err), &err);
    for (int i = 0; i < BR_FIGURES; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.png", dir, br_figure_list[i].name);
        check_png(path);
        HAS(said, br_figure_list[i].title);
    }
    char path[512];
    size_t a, b;
    snprintf(path, sizeof path, "%s/spots.png", dir);
    unsigned char *first = t_file_read(path, &a);
    OKE(tv_run(br_figures_run_verb, (tv_flags){.out = dir, .only = "spots,radial"}, line, 0, said,
               &err),
        &err);
    HAS_NOT(said, "quirks");
    unsigned char *again = t_file_read(path, &b);
    EQ_U64(a, b);
    SAME_BYTES(first, again, a);
    free(first);
    free(again);
}

/* A block of one layer, one source and right angles, turned through the angle 0: only the stale
 * lattice is left of all quirks. With a thick sensor its two are there too. */
TEST(quirks_are_named_by_what_they_change)
{
    char dir[256], said[TV_SAID];
    fth_err err = {0};
    snprintf(dir, sizeof dir, "%s", t_temp_path("named"));
#define PLAIN "-default_F 100 -cell 40 45 50 90 90 90 -N 5 -distance 60 -pixel 0.4 -detpixels 32 "
    OKE(tv_run(br_figures_run_verb, (tv_flags){.out = dir, .only = "quirks"},
               PLAIN "-phi 0 -osc 2 -phisteps 2", 0, said, &err),
        &err);
    HAS(said, "  phi-carryover: ");
    HAS_NOT(said, "layer");
    HAS_NOT(said, "cstar");
    OKE(tv_run(br_figures_run_verb, (tv_flags){.out = dir, .only = "quirks"},
               PLAIN "-detector_thick 400 -detector_abs 300 -thicksteps 3", 0, said, &err),
        &err);
    HAS(said, "  last-layer: ");
    HAS(said, "  layer-step: ");
    HAS_NOT(said, "phi-carryover");
}

TEST(images_without_quirks_and_without_photons_are_drawn_too)
{
    char dir[256], said[TV_SAID];
    fth_err err = {0};
    snprintf(dir, sizeof dir, "%s", t_temp_path("plain"));
    OKE(tv_run(br_figures_run_verb, (tv_flags){.out = dir, .only = "quirks,spots,radial,image_log"},
               "-default_F 1e-30 -cell 40 -N 2 -lambda 1 -distance 60 -pixel 0.4 -detpixels 16 "
               "-roi 2 9 3 8 -fluence 0",
               0, said, &err),
        &err);
    char path[512];
    snprintf(path, sizeof path, "%s/quirks.png", dir);
    check_png(path);
}

TEST(plan_draws_nothing)
{
    char said[TV_SAID];
    fth_err err = {0};
    const tv_flags f = {.out = t_temp_path("never"), .plan = ""};
    OKE(tv_run(br_figures_run_verb, f, CRYSTAL "-detpixels 32 -pixel 0.4 -distance 60", 0, said,
               &err),
        &err);
    HAS(said, "plan on cpu");
    IS_TRUE(!t_file_exists(t_temp_path("never")));
}

TEST(mistakes_are_named)
{
    fth_err err = {0};
    IS(tv_run(br_figures_run_verb, (tv_flags){.only = "spots,radiale"}, CRYSTAL, 0, NULL, &err),
       FTH_E_COMMAND);
    HAS(err.text, "'radiale' is not a figure");
    HAS(err.hint, "image_log, image_linear, spots, radial");
    shot s;
    open_shot(&s, CRYSTAL "-distance 61 -pixel 0.4 -detpixels 16");
    s.d.flags = NULL;
    err = (fth_err){0};
    IS(br_figure_draw(&s.d, BR_FIGURE_QUIRKS, t_temp_path("q.png"), &err), FTH_E_USAGE);
    IS_TRUE(!t_file_exists(t_temp_path("q.png")));
    close_shot(&s);
}
TEST_MAIN()
