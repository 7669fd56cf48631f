/* test_bragg_gradient.c - derivatives of bragg against those of an independent program.
 * seconds: 1
 *
 * grad_reference.json holds, for one triclinic and tilted case, a loss, pixels, and how they change
 * with 18 parameters, from extrapolated differences. Units are those typed by a user.
 */
#include "testing/bragg/bragg.h"

#include <math.h>

static const char *const path = "tests/golden/bragg/public/grad_reference.json";
static const char *const command =
    "-cell 70.0 80.0 90.0 82.0 97.0 104.0 -misset 10.0 20.0 30.0 -default_F 100 -N 5 -lambda 1.5 "
    "-distance 90.0 -Xbeam 9.7 -Ybeam 9.3 -detector_rotx 3.0 -detector_roty -2.0 -detector_rotz "
    "1.0 -fluence 1.2e+29 -phi 4.0 -pixel 0.3 -detpixels 64 -oversample 1";
enum { SIDE = 64, PIXELS = SIDE * SIDE, TOLD = 7 };

static void scene(tb_case *c)
{
    static const double typed[BR_PARAMS] = {70, 80,  90,  82, 97, 104, 10,     20, 30, 1.5,
                                            90, 9.7, 9.3, 3,  -2, 1,   1.2e29, 4,  0};
    tb_make(c);
    tb_detector(c, SIDE, 0.3, 90);
    for (int p = 0; p < BR_PARAMS; p++) c->param[p] = typed[p] * br_params[p].scale;
    for (int i = 0; i < 3; i++) c->s.cells[i] = 5;
    tb_ready(c);
}

/* Numbers after a word of the file, from `text` on. */
static const char *numbers(const char *text, const char *word, double *v, int n)
{
    const char *at = strstr(text, word);
    if (!at) FAIL("%s has no %s", path, word);
    at += strlen(word);
    for (int i = 0; i < n; i++) {
        at += strspn(at, ":[, \n");
        char *end;
        v[i] = strtod(at, &end);
        if (end == at) FAIL("%s: number %d after %s is missing", path, i, word);
        at = end;
    }
    return at;
}

static void read_file(char *text, size_t bytes)
{
    FILE *f = fopen(path, "r");
    if (!f) FAIL("cannot open %s", path);
    text[fread(text, 1, bytes - 1, f)] = 0;
    fclose(f);
    HAS(text, command);
}

static double weight(int64_t i)
{
    return cos(0.37 * (double)i);
}

static void one_parameter(const char *text, int p, const double *jacobian, const double *pixel)
{
    char word[32];
    double loss, error, want[TOLD], got = 0, size = 0;
    snprintf(word, sizeof word, "\"%s\": {", br_params[p].name);
    const char *at = strstr(text, word);
    if (!at) FAIL("%s has no %s", path, word);
    at = numbers(at, "\"dloss\"", &loss, 1);
    at = numbers(at, "\"dI_at_pixels\"", want, TOLD);
    numbers(at, "\"est_rel_err\"", &error, 1); /* of its differences, so of the largest */
    for (int64_t i = 0; i < PIXELS; i++)
        got += weight(i) * jacobian[i * BR_PARAMS + p] * br_params[p].scale;
    for (int k = 0; k < TOLD; k++) size = fmax(size, fabs(want[k]));
    if (!(fabs(got - loss) <= 1e-5 * fabs(loss)))
        FAIL("dloss/d%s is %.12g, the reference has %.12g", br_params[p].name, got, loss);
    for (int k = 0; k < TOLD; k++) {
        const double slope = jacobian[(int64_t)pixel[k] * BR_PARAMS + p] * br_params[p].scale;
        if (!(fabs(slope - want[k]) <= 1e-5 * fabs(want[k]) + error * size))
            FAIL("dI/d%s at pixel %g is %.12g, the reference has %.12g", br_params[p].name,
                 pixel[k], slope, want[k]);
    }
}

TEST(reference)
{
    static char text[1 << 16];
    static double jacobian[PIXELS * BR_PARAMS], image[PIXELS];
    double loss, pixel[TOLD], value[TOLD], got = 0;
    tb_case c;
    scene(&c);
    read_file(text, sizeof text);
    tb_engine e = tb_start(2);
    br_inputs in = tb_inputs(e.g, &c);
    in.latch = br_latch(&c.s, &in);
    const fth_val j = br_jacobian(&c.s, &in);
    tb_eval(&e, (fth_val[]){j, fth_out(j, 1)}, 2, 0, (double *const[]){jacobian, image});
    tb_stop(&e);
    numbers(text, "\"loss\"", &loss, 1);
    numbers(text, "\"pixels\"", pixel, TOLD);
    numbers(text, "\"I_at_pixels\"", value, TOLD);
    for (int64_t i = 0; i < PIXELS; i++) got += weight(i) * image[i];
    NEAR(got, loss, 1e-10 * fabs(loss));
    for (int k = 0; k < TOLD; k++) NEAR(image[(int64_t)pixel[k]], value[k], 1e-10 * value[k]);
    for (int p = 0; p < BR_PARAMS; p++)
        if (p != BR_TT) one_parameter(text, p, jacobian, pixel);
    tb_free(&c);
}

TEST_MAIN()
