/* test_bragg_refine.c - what was put into an image comes out of it.
 *
 * seconds: 10
 */
#include "testing/bragg/refining.h"

#include <math.h>

static const tr_off usual = {.rotation = 0.5, .cell = 0.005, .beam = 1, .fluence = 0.1};
static const tr_off nothing = {0};

static void parse(br_variables *v, const char *free, const char *fix, const char *tie)
{
    fth_err err = {0};
    OKE(br_variables_parse(v, free, fix, tie, &err), &err);
}

static br_refine_options options(const char *free, const char *tie)
{
    br_refine_options opt = {.iterations = 50};
    parse(&opt.variables, free, NULL, tie);
    return opt;
}

/* ---- which parameters ---- */

TEST(names_make_variables)
{
    br_variables v;
    parse(&v, NULL, NULL, NULL);
    EQ_I64(v.n, 12);
    IS_TRUE(v.of[BR_LAM] < 0 && v.of[BR_DIST] < 0 && v.of[BR_FLU] == 11);
    parse(&v, NULL, "al,be,ga", "b=a");
    EQ_I64(v.n, 8);
    EQ_I64(v.of[BR_A], 0);
    EQ_I64(v.of[BR_B], 0);
    EQ_I64(v.head[0], BR_A);
    EQ_I64(v.of[BR_C], 1);
    EQ_I64(v.of[BR_AL], -1);
    parse(&v, "c", NULL, "a=b,b=c,mx=my");
    EQ_I64(v.n, 1);
    IS_TRUE(v.of[BR_A] == 0 && v.of[BR_B] == 0 && v.of[BR_C] == 0 && v.of[BR_MX] < 0);
}

static void refused(const char *free, const char *fix, const char *tie, const char *part)
{
    br_variables v;
    fth_err err = {0};
    IS(br_variables_parse(&v, free, fix, tie, &err), FTH_E_COMMAND);
    HAS(err.text, part);
}

TEST(wrong_names_are_named)
{
    refused("a,bb", NULL, NULL, "'bb' is not a parameter");
    refused("a,", NULL, NULL, "'' is not a parameter");
    refused("a=b", NULL, NULL, "--free");
    refused(NULL, "a,", NULL, "--fix");
    refused(NULL, NULL, "a=al", "al is in deg");
    refused("a", "a", NULL, "no parameter is free");
}

/* ---- recovery ---- */

/* Values and errors of the answer; the study is freed. */
static void judge(tr_study *s, const br_refine_options *opt, double worst)
{
    fth_err err = {0};
    br_refined r;
    OKE(br_refine(&r, s->ctx, &s->e, &s->o, opt, &err), &err);
    IS_TRUE(r.converged);
    LE_F64(tr_worst(s, &r, &opt->variables), worst);
    NEAR(r.chi2 / r.expected, 1, 0.1);
    LE_F64(0.99, r.match);
    br_refined_clear(&r);
    tr_free(s);
}

/* With seed 2 the fit of the lattice from the start alone ends one index off. */
TEST(an_image_gives_back_its_model)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        tb_case c;
        tr_study s;
        const br_refine_options opt = options(NULL, NULL);
        tr_crystal(&c, 128);
        tr_make(&s, &c, 1e7, &usual, seed);
        judge(&s, &opt, 4);
    }
}

TEST(a_cubic_cell_has_one_edge)
{
    fth_err err = {0};
    tb_case c;
    tr_study s;
    br_refined r;
    const br_refine_options opt = options("a,b,c,mx,my,mz,xb,yb,flu", "a=b=c");
    tr_crystal(&c, 128);
    for (int k = 0; k < 3; k++) c.param[BR_A + k] = 45, c.param[BR_AL + k] = br_radians(90);
    tr_make(&s, &c, 1e7, &usual, 5);
    EQ_I64(opt.variables.n, 7);
    OKE(br_refine(&r, s.ctx, &s.e, &s.o, &opt, &err), &err);
    LE_F64(tr_worst(&s, &r, &opt.variables), 4);
    EQ_F64(r.param[BR_A], r.param[BR_B]);
    EQ_F64(r.param[BR_A], r.param[BR_C]);
    EQ_F64(r.error[BR_A], r.error[BR_C]);
    EQ_F64(r.correlation[BR_A][BR_C], 1);
    br_refined_clear(&r);
    tr_free(&s);
}

/* The cell is known, the detector is not. (A tilt about the beam turns the image as a misset does:
 * it is left out.) */
TEST(a_detector_is_found)
{
    tb_case c;
    tr_study s;
    const br_refine_options opt = options("dist,xb,yb,ry,rz,mx,my,mz,flu", NULL);
    tr_crystal(&c, 128);
    c.param[BR_RY] = br_radians(-2), c.param[BR_RZ] = br_radians(3);
    tb_ready(&c);
    tr_make(&s, &c, 1e7, &(tr_off){.rotation = 0.3, .beam = 0.7, .fluence = 0.3}, 6);
    s.e.param[BR_DIST] *= 1.003;
    s.e.param[BR_RZ] += br_radians(0.2), s.e.param[BR_RY] -= br_radians(0.2);
    judge(&s, &opt, 4);
}

TEST(spindle_domains_and_wavelengths_do_no_harm)
{
    tb_case c;
    tr_study s;
    t_random r = t_random_make(7);
    const br_refine_options opt = options(NULL, NULL);
    tr_crystal(&c, 96);
    tb_spindle(&c, 10, 0.5, 3);
    tb_domains(&c, &r, br_radians(0.2), 3);
    tb_wavelengths(&c, 0.002, 2);
    tb_ready(&c);
    tr_make(&s, &c, 1e7, &(tr_off){.rotation = 0.4, .cell = 0.003, .beam = 0.5}, 8);
    s.e.mosaic_spread = br_radians(0.2);
    judge(&s, &opt, 4);
}

/* Whatever stands in pixels that are not used, the answer is the same. */
static void with_rubbish(double rubbish, double *param)
{
    fth_err err = {0};
    tb_case c;
    tr_study s;
    br_refined r;
    const br_refine_options opt = options(NULL, NULL);
    tr_crystal(&c, 96);
    c.s.roi[0] = 3, c.s.roi[3] = 90;
    tb_ready(&c);
    tr_make(&s, &c, 1e7, &usual, 9);
    double *image = fth_tensor_data(s.image);
    s.o.full = 1e9;
    image[5000] = 2e9;             /* an overload */
    image[96 * 40 + 1] = 1e6;      /* left of the ROI */
    image[96 * 92 + 50] = rubbish; /* below it */
    OKE(br_refine(&r, s.ctx, &s.e, &s.o, &opt, &err), &err);
    LE_F64(tr_worst(&s, &r, &opt.variables), 4);
    EQ_I64(r.pixels, 93 * 91 - 1);
    memcpy(param, r.param, sizeof r.param);
    br_refined_clear(&r);
    tr_free(&s);
}

TEST(pixels_that_are_not_used_do_not_count)
{
    double one[BR_PARAMS], other[BR_PARAMS];
    with_rubbish(0, one);
    with_rubbish((double)NAN, other);
    SAME_BYTES(one, other, sizeof one);
}

/* A value is (photons * gain + adc), whatever the two are. */
TEST(values_are_photons_after_offset_and_gain)
{
    tb_case c;
    tr_study s;
    const br_refine_options opt = options(NULL, NULL);
    tr_crystal(&c, 96);
    tr_make(&s, &c, 1e7, &usual, 10);
    double *image = fth_tensor_data(s.image);
    for (int i = 0; i < 96 * 96; i++) image[i] = 2.5 * image[i] + 40;
    s.o.adc = 40, s.o.gain = 2.5;
    judge(&s, &opt, 4);
}

/* ---- what cannot be ---- */

static void fails(tr_study *s, const br_refine_options *opt, const char *part, const char *hint)
{
    fth_err err = {0};
    br_refined r;
    IS(br_refine(&r, s->ctx, &s->e, &s->o, opt, &err), FTH_E_NUMERIC);
    HAS(err.text, part);
    HAS(err.hint, hint);
    IS_TRUE(!r.converged);
    br_refined_clear(&r);
}

TEST(what_the_image_cannot_tell_is_named)
{
    tb_case c;
    tr_study s;
    const br_refine_options all = options("a,b,c,lam,mx,my,mz,flu", NULL), one = options("a", NULL);
    tr_crystal(&c, 64);
    tr_make(&s, &c, 1e6, &nothing, 11);
    fails(&s, &all, "does not distinguish these parameters: a, b, c, lam", "--fix");
    tr_free(&s);
    tr_crystal(&c, 64);
    for (int k = 0; k < 3; k++) c.s.cells[k] = 1;
    c.s.hkls = 0, c.s.default_F = 10;
    tr_make(&s, &c, 1e6, &nothing, 12);
    fails(&s, &one, "does not depend on a", "--fix a");
    tr_free(&s);
}

TEST(images_without_an_answer_are_refused)
{
    tb_case c;
    tr_study s;
    const br_refine_options opt = options(NULL, NULL);
    tr_crystal(&c, 64);
    tr_make(&s, &c, 1e6, &nothing, 13);
    double *image = fth_tensor_data(s.image);
    const double kept = image[64 * 3 + 7];
    image[64 * 3 + 7] = (double)NAN;
    fails(&s, &opt, "not finite at pixel fast 7, slow 3", "-mask");
    image[64 * 3 + 7] = (double)INFINITY;
    fails(&s, &opt, "not finite at pixel fast 7, slow 3", "-mask");
    image[64 * 3 + 7] = kept;
    for (int i = 0; i < 64 * 64; i++) image[i] = 0;
    fails(&s, &opt, "nothing to fit", "--adc");
    tr_free(&s);
}

TEST(too_few_iterations_and_another_crystal)
{
    tb_case c;
    tr_study s;
    br_refine_options opt = options(NULL, NULL);
    tr_crystal(&c, 64);
    tr_make(&s, &c, 1e6, &(tr_off){.rotation = 0.2}, 14);
    opt.iterations = 1;
    fails(&s, &opt, "did not converge in 1 iterations", "--iterations");
    opt = options("flu", NULL); /* converges, but to what? */
    for (int k = 0; k < 3; k++) s.e.param[BR_MX + k] += br_radians(20);
    fails(&s, &opt, "a model that does not match the image", "start closer");
    tr_free(&s);
}

/* ---- a matrix ---- */

TEST(a_matrix_becomes_cell_and_misset)
{
    fth_err err = {0};
    tb_case c;
    tr_crystal(&c, 16);
    br_experiment e = {.scene = c.s};
    memcpy(e.param, c.param, sizeof e.param);
    br_place(&e.scene, e.param, &e.placed);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            e.scene.mat[3 * k + i] = e.placed.star[i][k].v * c.param[BR_LAM] / 1e-10;
    e.scene.mat_given = 1, e.scene.cell_given = 0, e.scene.misset_given = 0;
    e.scene.quirks = BR_QUIRKS_C;
    for (int p = BR_A; p <= BR_MZ; p++) e.param[p] = 0;
    const br_placed before = e.placed;
    OKE(br_matrix_to_cell(&e, &err), &err);
    for (int p = BR_A; p <= BR_MZ; p++) NEAR(e.param[p], c.param[p], 1e-10);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            NEAR(e.placed.abc[i][k].v, before.abc[i][k].v, 1e-12 * c.param[BR_A] * 1e-10);
    IS_TRUE(!e.scene.mat_given && !br_has(&e.scene, BR_QUIRK_CSTAR_Z));
    e.scene = c.s;
    for (int k = 0; k < 9; k++) e.scene.mat[k] = -before.star[k % 3][k / 3].v;
    e.scene.mat_given = 1, e.scene.cell_given = 0;
    IS(br_matrix_to_cell(&e, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "left-handed");
    tb_free(&c);
}

TEST_MAIN()
