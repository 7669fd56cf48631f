/* test_splat_pixels.c - images of random Gaussians against every pixel blended by itself, without
 * tiles; each operation cut at random places of its grid; sizes, degrees and cameras of all kinds;
 * too little room.
 * labels: gpu
 * seconds: 6 */
#include "instruments/splat/loss/loss.h"
#include "instruments/splat/raster/raster.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>
#include <string.h>

typedef struct scene {
    int64_t n, width, height;
    int degree;
    double distance; /* of the camera from the middle of the Gaussians */
    bool antialias;
} scene;

static void fill(t_random *r, fth_dtype dtype, void *to, int64_t n, double scale, double shift)
{
    for (int64_t i = 0; i < n; i++) t_put(dtype, to, i, scale * t_random_normal(r) + shift, 0);
}

/* A graph of one image of random Gaussians, with its inputs in memory of the caller. */
typedef struct made {
    fth_graph *g;
    gs_raster rule;
    fth_val view, splats, order, image;
    gs_values model;
    void *data[GS_ATTRIBUTES + 1];
} made;

static made make(const scene *s, fth_dtype dtype, int64_t tile, t_random *r)
{
    static const double scale[GS_ATTRIBUTES] = {0.7, 0.8, 0.3, 0.5, 1, 2},
                        shift[GS_ATTRIBUTES] = {0, 0.3, 0, -1.6, 0, 0.5};
    char axes[200];
    const int64_t k = gs_coefficients(s->degree);
    snprintf(axes, sizeof axes, "g=%lld xyz=3 wxyz=4 c=3 p=%d view=%d i=%lld j=%lld%s%.0lld",
             (long long)s->n, GS_SPLAT, GS_VIEW, (long long)s->height, (long long)s->width,
             k ? " k=" : "", (long long)k);
    made m = {.g = t_graph(axes)};
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t n = s->n * gs_columns((gs_attribute)a, s->degree);
        m.data[a] = malloc((size_t)(n ? n : 1) * 8);
        fill(r, dtype, m.data[a], n, scale[a], shift[a]);
        if (a != GS_SH_N || k > 0)
            m.model.at[a] =
                t_input(m.g, gs_attribute_names[a], dtype, gs_attribute_axes[a], m.data[a]);
    }
    double view[GS_VIEW] = {1, 0, 0, 0.1, 0, 1, 0, -0.05, 0, 0, 1, s->distance};
    view[GS_VIEW_FX] = 0.9 * (double)s->width;
    view[GS_VIEW_FY] = 0.8 * (double)s->width;
    view[GS_VIEW_CX] = 0.52 * (double)s->width;
    view[GS_VIEW_CY] = 0.47 * (double)s->height;
    for (int c = 0; c < 3; c++) {
        view[GS_VIEW_CENTRE + c] = -view[4 * c + 3];
        view[GS_VIEW_GROUND + c] = 0.2 + 0.1 * c;
    }
    view[GS_VIEW_DEGREE] = s->degree;
    m.data[GS_ATTRIBUTES] = malloc(sizeof view);
    for (int i = 0; i < GS_VIEW; i++) t_put(dtype, m.data[GS_ATTRIBUTES], i, view[i], 0);
    m.view = t_input(m.g, "view", dtype, "view", m.data[GS_ATTRIBUTES]);
    m.rule.width = s->width;
    m.rule.height = s->height;
    m.rule.tile = tile;
    m.rule.room = 40 * s->n + 1;
    m.rule.most_alpha = 0.999;
    m.rule.antialias = s->antialias;
    m.splats = gs_project(m.g, &m.rule, &m.model, m.view);
    m.order = gs_order(m.g, &m.rule, m.splats);
    m.image = gs_blend(m.g, &m.rule, m.splats, m.order, m.view);
    MADE(m.image);
    return m;
}

static void end(made *m)
{
    t_graph_free(m->g);
    for (int a = 0; a <= GS_ATTRIBUTES; a++) free(m->data[a]);
}

/* One pixel: all Gaussians by depth, ties by their number. */
static void pixel(const scene *s, const double *splats, const int *order, int64_t i, int64_t j,
                  double out[3])
{
    double T = 1, C[3] = {0};
    for (int64_t k = 0; k < s->n; k++) {
        const double *p = splats + order[k] * GS_SPLAT;
        if (!(p[GS_TILES] > 0)) continue;
        const double dx = p[GS_U] - ((double)j + 0.5), dy = p[GS_V] - ((double)i + 0.5),
                     sigma = 0.5 * (p[GS_A] * dx * dx + p[GS_C] * dy * dy) + p[GS_B] * dx * dy;
        if (sigma < 0) continue;
        const double alpha = fmin(p[GS_O] * exp(-sigma), 0.999);
        if (alpha < 1.0 / 255) continue;
        if (T * (1 - alpha) < 1e-4) break;
        for (int c = 0; c < 3; c++) C[c] += T * alpha * fmax(p[GS_RED + c], 0);
        T *= 1 - alpha;
    }
    for (int c = 0; c < 3; c++) out[c] = C[c] + T * (0.2 + 0.1 * c);
}

static void sort(const scene *s, const double *splats, int *order)
{
    for (int i = 0; i < (int)s->n; i++) {
        int at = i;
        while (at > 0 && splats[order[at - 1] * GS_SPLAT + GS_Z] > splats[i * GS_SPLAT + GS_Z]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

static const scene scenes[] = {
    {40, 33, 9, 3, 4, false},   {1, 50, 42, 0, 4, false},
    {25, 17, 48, 1, 3, true},   {30, 40, 33, 2, 0.3, false},
    {12, 20, 20, 3, -9, false}, /* nothing is seen */
    {60, 31, 31, 2, 2, false},  {9, 5, 3, 1, 3, true},
    {600, 24, 20, 0, 3, false}, /* more than a block holds */
};
enum { SCENES = sizeof scenes / sizeof scenes[0] };

TEST(images_are_those_of_pixels_blended_one_by_one)
{
    t_random r = t_random_make(1);
    for (int k = 0; k < SCENES; k++)
        for (int64_t tile = 8; tile <= 32; tile *= 2) {
            const scene *s = &scenes[k];
            made m = make(s, FTH_F64, tile, &r);
            const int64_t pixels = s->width * s->height;
            double *splats = malloc((size_t)(s->n * GS_SPLAT) * 8),
                   *image = malloc((size_t)pixels * 24);
            int *order = malloc((size_t)s->n * sizeof *order);
            t_cuts(2);
            t_eval_f64(m.splats, splats);
            t_eval_f64(m.image, image);
            sort(s, splats, order);
            int64_t seen = 0;
            for (int64_t g = 0; g < s->n; g++) seen += splats[g * GS_SPLAT + GS_TILES] > 0;
            IS_TRUE(k == 4 ? seen == 0 : seen > 0);
            for (int64_t i = 0; i < s->height; i++)
                for (int64_t j = 0; j < s->width; j++) {
                    double want[3];
                    pixel(s, splats, order, i, j, want);
                    for (int c = 0; c < 3; c++)
                        NEAR(image[(i * s->width + j) * 3 + c], want[c], 1e-12);
                }
            free(splats);
            free(image);
            free(order);
            end(&m);
        }
}

TEST(every_operation_keeps_its_promises_when_cut)
{
    t_random r = t_random_make(2);
    for (int k = 0; k < SCENES; k++)
        for (int bits = k % t_one_in(1, 2); bits < 2; bits += t_one_in(1, 2)) {
            const fth_dtype dtype = bits ? FTH_F64 : FTH_F32;
            const scene *s = &scenes[k];
            made m = make(s, dtype, 8 << k % (bits ? 2 : 3), &r);
            const fth_val target = t_noise(m.g, "target", dtype, "i j c", &r),
                          loss = gs_loss_of(m.g, 0.2, m.image, target);
            fth_val wrt[2] = {m.model.at[GS_MEANS], m.model.at[GS_ROTATION]}, grad[2];
            OK(fth_grad(loss, 2, wrt, grad));
            double *out = malloc((size_t)(s->n * 4) * 8);
            t_cuts(4);
            for (int i = 0; i < 2; i++) t_eval_f64(grad[i], out);
            for (int64_t i = 0; i < s->n * 4; i++) IS_TRUE(isfinite(out[i]));
            free(out);
            end(&m);
        }
}

/* sum of image times weights, by central differences on smooth ground: large, faint Gaussians whose
 * alpha is nowhere near its limits. */
TEST(gradients_are_those_of_differences)
{
    t_random r = t_random_make(3);
    const scene s = {6, 12, 10, 3, 4, false};
    made m = make(&s, FTH_F64, 16, &r);
    double *scaling = m.data[GS_SCALING], *opacity = m.data[GS_OPACITY];
    for (int i = 0; i < 18; i++) scaling[i] = 1.6 + 0.1 * t_random_normal(&r);
    for (int i = 0; i < 6; i++) opacity[i] = -1 + 0.3 * t_random_normal(&r);
    const fth_val weights = t_noise(m.g, "weights", FTH_F64, "i j c", &r),
                  loss = fth_sum(fth_mul(m.image, weights), "i j c");
    for (int a = 0; a < GS_ATTRIBUTES; a++) GRAD(loss, m.model.at[a], 1e-6);
    end(&m);
}

/* Opacity times the root of the areas without and with the 0.3 px^2 of blur, from the conics. */
TEST(antialiasing_makes_blurred_gaussians_fainter)
{
    t_random r = t_random_make(5);
    scene s = {300, 40, 33, 0, 6, false};
    made m = make(&s, FTH_F64, 16, &r);
    double *scaling = m.data[GS_SCALING], *plain = malloc(300 * GS_SPLAT * 8),
           *dim = malloc(300 * GS_SPLAT * 8);
    for (int i = 0; i < 900; i++) scaling[i] = -4 + 1.5 * t_random_normal(&r);
    for (int i = 0; i < 15; i++) scaling[i] = -11; /* at most 0.005 is left of these */
    t_eval_f64(m.splats, plain);
    m.rule.antialias = 1;
    t_eval_f64(gs_project(m.g, &m.rule, &m.model, m.view), dim);
    int seen = 0, gone = 0;
    for (int g = 0; g < 300; g++) {
        const double *p = plain + g * GS_SPLAT, *q = dim + g * GS_SPLAT;
        if (!(p[GS_TILES] > 0)) continue;
        const double det = 1 / (p[GS_A] * p[GS_C] - p[GS_B] * p[GS_B]), a = p[GS_C] * det,
                     b = -p[GS_B] * det, c = p[GS_A] * det,
                     share = ((a - 0.3) * (c - 0.3) - b * b) / (a * c - b * b),
                     want = p[GS_O] * sqrt(fmax(share, 0.005 * 0.005));
        if (q[GS_TILES] > 0) {
            NEAR(q[GS_O], want, 1e-9);
            NEAR(q[GS_LIMIT], log(255 * want), 1e-6);
            for (int k = 0; k < GS_O; k++) EQ_F64(q[k], p[k]);
            seen++;
        } else {
            gone++;
        }
        if (want > 0.03) IS_TRUE(q[GS_TILES] > 0);
        if (want < 1.0 / 255) EQ_F64(q[GS_TILES], 0);
    }
    IS_TRUE(seen > 50 && gone >= 5);
    free(plain);
    free(dim);
    end(&m);
}

/* Gaussians of about a pixel, whose opacity follows their covariance, on an image so small that
 * alpha is nowhere near its limits. */
TEST(gradients_of_antialiasing_are_those_of_differences)
{
    t_random r = t_random_make(6);
    const scene s = {6, 3, 2, 3, 4, true};
    made m = make(&s, FTH_F64, 16, &r);
    double *scaling = m.data[GS_SCALING], *opacity = m.data[GS_OPACITY], *mean = m.data[GS_MEANS];
    for (int i = 0; i < 18; i++) scaling[i] = 0.1 + 0.2 * t_random_normal(&r);
    for (int i = 0; i < 6; i++) opacity[i] = 0.3 * t_random_normal(&r);
    for (int i = 0; i < 18; i++) mean[i] *= 0.3;
    for (int k = 0; k < 3; k++) scaling[k] = -9; /* too faint to be seen */
    const fth_val weights = t_noise(m.g, "weights", FTH_F64, "i j c", &r),
                  loss = fth_sum(fth_mul(m.image, weights), "i j c");
    for (int a = 0; a < GS_ATTRIBUTES; a++) GRAD(loss, m.model.at[a], 1e-6);
    end(&m);
}

/* What one precision makes of a scene. */
typedef struct drawn {
    double image[48 * 40 * 3], grad[GS_ATTRIBUTES][40 * 9];
} drawn;

static void draw(const scene *s, fth_dtype dtype, const double *from[GS_ATTRIBUTES], drawn *to)
{
    t_random same = t_random_make(7);
    made m = make(s, dtype, 16, &same);
    fth_val grad[GS_ATTRIBUTES];
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        for (int64_t i = 0; i < s->n * gs_columns((gs_attribute)a, s->degree); i++)
            t_put(dtype, m.data[a], i, from[a][i], 0);
    float weights[48 * 40 * 3];
    fill(&same, FTH_F32, weights, s->width * s->height * 3, 1, 0);
    const fth_val of = fth_cast(t_input(m.g, "weights", FTH_F32, "i j c", weights), dtype);
    OK(fth_grad(fth_sum(fth_mul(m.image, of), "i j c"), GS_ATTRIBUTES, m.model.at, grad));
    t_eval_f64(m.image, to->image);
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        t_eval_f64(fth_layout(grad[a], gs_attribute_axes[a]), to->grad[a]);
    end(&m);
}

/* In f32 as in f64 of the same numbers; gradients by their largest entry. */
static void agree(const scene *s, const double *from[GS_ATTRIBUTES])
{
    static drawn single, twice;
    draw(s, FTH_F32, from, &single);
    draw(s, FTH_F64, from, &twice);
    for (int64_t i = 0; i < s->width * s->height * 3; i++)
        NEAR(single.image[i], twice.image[i], 2e-5);
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t n = s->n * gs_columns((gs_attribute)a, s->degree);
        double most = 0, off = 0;
        for (int64_t i = 0; i < n; i++) {
            most = fmax(most, fabs(twice.grad[a][i]));
            off = fmax(off, fabs(single.grad[a][i] - twice.grad[a][i]));
        }
        IS_TRUE(most > 0 && off <= 1e-4 * most);
    }
}

TEST(single_precision_keeps_gradients_of_needles)
{
    t_random r = t_random_make(8);
    t_cuts(1);
    for (int64_t antialias = 0; antialias < 2; antialias++) {
        const scene s = {40, 48, 40, 1, 4, antialias};
        /* antialiased ones are thicker: a factor of almost none has few digits in f32 itself */
        const double thick = antialias ? -2.5 : -4.5;
        double data[GS_ATTRIBUTES][40 * 9];
        const double *from[GS_ATTRIBUTES];
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            for (int i = 0; i < 40 * 9; i++) data[a][i] = (double)(float)t_random_normal(&r);
            from[a] = data[a];
        }
        for (int i = 0; i < 120; i++)
            data[GS_SCALING][i] = i % 3 == 1 ? 0.25 * (i % 4) - 0.5 : thick - 0.125 * (i % 5);
        agree(&s, from);
    }
}

/* sigmoid(17) is 1 in f32. */
TEST(single_precision_keeps_gradients_of_opaque_gaussians)
{
    t_cuts(1);
    for (int k = 0; k < 4; k++) {
        const scene s = {1, 12, 10, 1, 4, k % 2};
        const double mean[3] = {0.1, -0.2, 0.3}, sh[9] = {0.5, -0.4, 0.3, 0.2, 0.1, -0.2, 0.4},
                     scaling[3] = {-1, -0.5, -0.8}, q[4] = {1, 0.2, -0.3, 0.1},
                     opacity = k / 2 ? 17 : 12, *from[] = {mean, sh, sh, scaling, q, &opacity};
        agree(&s, from);
    }
}

TEST(too_little_room_says_how_much_is_needed)
{
    t_random r = t_random_make(4);
    const scene s = {40, 33, 9, 0, 4, false};
    made m = make(&s, FTH_F32, 16, &r);
    fth_err err = {0};
    float *image = malloc(33 * 9 * 3 * 4);
    int64_t need = 0;
    m.rule.room = 3;
    m.rule.need = &need;
    const fth_val small = gs_blend(m.g, &m.rule, m.splats, m.order, m.view);
    IS(t_try(small, image, &err), FTH_E_STATE);
    HAS(err.text, "room for 3 Gaussians");
    IS_TRUE(need > 3);
    m.rule.room = need;
    OK(t_try(gs_blend(m.g, &m.rule, m.splats, m.order, m.view), image, NULL));
    m.rule.room = need - 1;
    err = (fth_err){0};
    IS(t_try(gs_blend(m.g, &m.rule, m.splats, m.order, m.view), image, &err), FTH_E_STATE);
    free(image);
    end(&m);
}

TEST_MAIN()
