/* test_splat_rays.c - 3DGUT: rows and images of random Gaussians through lenses that bend straight
 * lines against every ray traced by itself, gradients against differences, pinholes against the
 * ordinary projection; operations cut at random places of their grids.
 * labels: gpu
 * seconds: 6 */
#include "instruments/splat/loss/loss.h"
#include "instruments/splat/raster/raster.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>
#include <string.h>

typedef struct lens {
    const char *name;
    double kind, reach, bend[GS_BENDS];
} lens;

/* Coefficients that images still grow with up to the reach. */
static const lens lenses[] = {
    {"pinhole", 0, 0, {0}},
    {"radial", 1, 1.2, {-0.12, 0.02, 0, 0, 0, 0, 0, 0, 0}},
    {"opencv", 1, 1.2, {-0.1, 0.03, 0, 0, 0, 0, 0, 0.004, -0.006}},
    {"full opencv", 1, 1.2, {0.2, 0.05, 0.01, 0.002, 0.1, 0.04, 0.01, 0.003, 0.002}},
    {"fisheye", 2, 1.5, {-0.03, 0.01, -0.004, 0.001}},
};
enum { LENSES = sizeof lenses / sizeof lenses[0] };

typedef struct scene {
    int64_t n, width, height;
    int degree;
    double distance, size, spread; /* of the camera; log of a deviation; of means */
    bool antialias;
} scene;

typedef struct made {
    fth_graph *g;
    gs_raster rule;
    fth_val view, splats, order, image;
    gs_values model;
    void *data[GS_ATTRIBUTES + 1];
} made;

static void make_view(const scene *s, const lens *l, double view[GS_VIEW])
{
    const double pose[12] = {1, 0, 0, 0.1, 0, 1, 0, -0.05, 0, 0, 1, s->distance};
    memset(view, 0, GS_VIEW * sizeof *view);
    memcpy(view, pose, sizeof pose);
    view[GS_VIEW_FX] = 0.9 * (double)s->width;
    view[GS_VIEW_FY] = 0.8 * (double)s->width;
    view[GS_VIEW_CX] = 0.52 * (double)s->width;
    view[GS_VIEW_CY] = 0.47 * (double)s->height;
    for (int c = 0; c < 3; c++) {
        view[GS_VIEW_CENTRE + c] = -view[4 * c + 3];
        view[GS_VIEW_GROUND + c] = 0.2 + 0.1 * c;
    }
    view[GS_VIEW_DEGREE] = s->degree;
    view[GS_VIEW_LENS] = l->kind;
    view[GS_VIEW_REACH] = l->reach;
    memcpy(view + GS_VIEW_BEND, l->bend, sizeof l->bend);
}

static made make(const scene *s, const lens *l, fth_dtype dtype, int64_t tile, t_random *r)
{
    const double scale[GS_ATTRIBUTES] = {s->spread, 0.8, 0.3, 0.5, 1, 2},
                 shift[GS_ATTRIBUTES] = {0, 0.3, 0, s->size, 0, 0.5};
    char axes[200];
    const int64_t k = gs_coefficients(s->degree);
    snprintf(axes, sizeof axes, "g=%lld xyz=3 wxyz=4 c=3 p=%d view=%d i=%lld j=%lld%s%.0lld",
             (long long)s->n, GS_RAY_SPLAT, GS_VIEW, (long long)s->height, (long long)s->width,
             k ? " k=" : "", (long long)k);
    made m = {.g = t_graph(axes)};
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t n = s->n * gs_columns((gs_attribute)a, s->degree);
        m.data[a] = malloc((size_t)(n ? n : 1) * 8);
        for (int64_t i = 0; i < n; i++)
            t_put(dtype, m.data[a], i, scale[a] * t_random_normal(r) + shift[a], 0);
        if (a != GS_SH_N || k > 0)
            m.model.at[a] =
                t_input(m.g, gs_attribute_names[a], dtype, gs_attribute_axes[a], m.data[a]);
    }
    double view[GS_VIEW];
    make_view(s, l, view);
    m.data[GS_ATTRIBUTES] = malloc(sizeof view);
    for (int i = 0; i < GS_VIEW; i++) t_put(dtype, m.data[GS_ATTRIBUTES], i, view[i], 0);
    m.view = t_input(m.g, "view", dtype, "view", m.data[GS_ATTRIBUTES]);
    m.rule = (gs_raster){.width = s->width,
                         .height = s->height,
                         .tile = tile,
                         .room = 40 * s->n + 1,
                         .most_alpha = 0.999,
                         .antialias = s->antialias,
                         .rays = 1};
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

/* ---- the same in plain words ---- */

/* A direction of the camera on the image, as the formulas of OpenCV have it. */
static bool place(const lens *l, const double *view, const double d[3], double to[2])
{
    const double *b = l->bend;
    double x = d[0] / d[2], y = d[1] / d[2];
    if (l->kind > 1) {
        const double angle = atan2(hypot(d[0], d[1]), d[2]), t = angle * angle,
                     bent = angle *
                            (1 + b[0] * t + b[1] * t * t + b[2] * pow(t, 3) + b[3] * pow(t, 4)),
                     r = hypot(d[0], d[1]);
        if (angle > l->reach) return false;
        x = r > 0 ? d[0] / r * bent : 0;
        y = r > 0 ? d[1] / r * bent : 0;
    } else {
        const double s = x * x + y * y,
                     k = (1 + b[0] * s + b[1] * s * s + b[2] * pow(s, 3) + b[3] * pow(s, 4)) /
                         (1 + b[4] * s + b[5] * s * s + b[6] * pow(s, 3)),
                     p1 = b[7], p2 = b[8], x0 = x, y0 = y;
        if (d[2] <= 0 || (l->kind > 0 && s > l->reach * l->reach)) return false;
        x = x0 * k + 2 * p1 * x0 * y0 + p2 * (s + 2 * x0 * x0);
        y = y0 * k + 2 * p2 * x0 * y0 + p1 * (s + 2 * y0 * y0);
    }
    to[0] = view[GS_VIEW_FX] * x + view[GS_VIEW_CX];
    to[1] = view[GS_VIEW_FY] * y + view[GS_VIEW_CY];
    return true;
}

/* The direction that is seen at a place, by Newton's method with differences, from the middle. */
static void direction(const lens *l, const double *view, double u, double v, double d[3])
{
    const double step = 1e-6;
    d[0] = d[1] = 0;
    d[2] = 1;
    for (int i = 0; i < 60; i++) {
        double at[2], dx[2], dy[2];
        const double x[3] = {d[0] + step, d[1], 1}, y[3] = {d[0], d[1] + step, 1};
        IS_TRUE(place(l, view, d, at) && place(l, view, x, dx) && place(l, view, y, dy));
        const double a = (dx[0] - at[0]) / step, b = (dy[0] - at[0]) / step,
                     c = (dx[1] - at[1]) / step, e = (dy[1] - at[1]) / step, det = a * e - b * c,
                     ru = u - at[0], rv = v - at[1];
        double mx = (e * ru - b * rv) / det, my = (a * rv - c * ru) / det;
        const double most = 0.1 / fmax(0.1, hypot(mx, my)); /* no leap beyond the lens */
        d[0] += most * mx;
        d[1] += most * my;
    }
}

typedef struct shape {
    double m[3], axis[3][3], s[3], o; /* axes of the camera */
} shape;

static shape shape_of(const made *m, const double *view, int64_t g)
{
    const double *mean = (double *)m->data[GS_MEANS] + 3 * g,
                 *scaling = (double *)m->data[GS_SCALING] + 3 * g,
                 *q0 = (double *)m->data[GS_ROTATION] + 4 * g;
    double q[4];
    const double n = sqrt(q0[0] * q0[0] + q0[1] * q0[1] + q0[2] * q0[2] + q0[3] * q0[3]);
    for (int k = 0; k < 4; k++) q[k] = q0[k] / n;
    const double r = q[0], x = q[1], y = q[2], z = q[3];
    const double R[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - r * z), 2 * (x * z + r * y)},
                            {2 * (x * y + r * z), 1 - 2 * (x * x + z * z), 2 * (y * z - r * x)},
                            {2 * (x * z - r * y), 2 * (y * z + r * x), 1 - 2 * (x * x + y * y)}};
    shape out = {.o = 1 / (1 + exp(-((double *)m->data[GS_OPACITY])[g]))};
    for (int i = 0; i < 3; i++) { /* the camera has no rotation */
        out.m[i] = mean[i] + view[4 * i + 3];
        out.s[i] = exp(scaling[i]);
        for (int k = 0; k < 3; k++) out.axis[i][k] = R[k][i];
    }
    return out;
}

/* Mean and box of an unscented transform with alpha 0.1, beta 2, kappa 0. */
static bool spread(const scene *s, const lens *l, const double *view, const shape *g, double at[2],
                   double cov[3])
{
    const double lambda = 0.1 * 0.1 * 3 - 3, far = sqrt(3 + lambda), w = 1 / (2 * (3 + lambda)),
                 w0 = lambda / (3 + lambda), c0 = w0 + 1 - 0.1 * 0.1 + 2;
    double p[7][2];
    at[0] = at[1] = cov[0] = cov[1] = cov[2] = 0;
    for (int k = 0; k < 7; k++) {
        double d[3];
        for (int j = 0; j < 3; j++)
            d[j] = g->m[j] +
                   (k ? (k % 2 ? far : -far) * g->s[(k - 1) / 2] * g->axis[(k - 1) / 2][j] : 0);
        if (!place(l, view, d, p[k])) return false;
        if (p[k][0] < -0.1 * (double)s->width || p[k][0] > 1.1 * (double)s->width ||
            p[k][1] < -0.1 * (double)s->height || p[k][1] > 1.1 * (double)s->height)
            return false;
        for (int c = 0; c < 2; c++) at[c] += (k ? w : w0) * p[k][c];
    }
    for (int k = 0; k < 7; k++) {
        const double x = p[k][0] - at[0], y = p[k][1] - at[1];
        cov[0] += (k ? w : c0) * x * x;
        cov[1] += (k ? w : c0) * x * y;
        cov[2] += (k ? w : c0) * y * y;
    }
    return true;
}

static void cross(const double *a, const double *b, double *out)
{
    for (int k = 0; k < 3; k++)
        out[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

/* sigma of a ray through the camera: half the square of its distance from the unit ball's middle.
 */
static double sigma_of(const shape *g, const double d[3])
{
    double go[3], gd[3], c[3], length = 0;
    for (int i = 0; i < 3; i++) {
        go[i] = gd[i] = 0;
        for (int j = 0; j < 3; j++) {
            go[i] -= g->axis[i][j] * g->m[j] / g->s[i];
            gd[i] += g->axis[i][j] * d[j] / g->s[i];
        }
        length += gd[i] * gd[i];
    }
    for (int i = 0; i < 3; i++) gd[i] /= sqrt(length);
    cross(gd, go, c);
    return 0.5 * (c[0] * c[0] + c[1] * c[1] + c[2] * c[2]);
}

/* One pixel: all Gaussians by depth. */
static void pixel(const scene *s, const double *splats, const shape *shapes, const int *order,
                  const double d[3], int64_t i, int64_t j, double out[3])
{
    double T = 1, C[3] = {0};
    for (int64_t k = 0; k < s->n; k++) {
        const double *p = splats + order[k] * GS_RAY_SPLAT;
        if (!(p[GS_TILES] > 0) || fabs((double)j + 0.5 - p[GS_U]) > p[GS_EX] ||
            fabs((double)i + 0.5 - p[GS_V]) > p[GS_EY])
            continue;
        const double alpha = fmin(p[GS_O] * exp(-sigma_of(&shapes[order[k]], d)), 0.999);
        if (alpha < 1.0 / 255) continue;
        if (T * (1 - alpha) < 1e-4) break;
        for (int c = 0; c < 3; c++) C[c] += T * alpha * fmax(p[GS_RED + c], 0);
        T *= 1 - alpha;
    }
    for (int c = 0; c < 3; c++) out[c] = C[c] + T * (0.2 + 0.1 * c);
}

static void check_row(const scene *s, const lens *l, const double *view, const shape *g,
                      const double *row, int64_t *seen)
{
    double at[2], cov[3];
    const bool there = g->m[2] >= 0.01 && g->o >= 1.0 / 255 && spread(s, l, view, g, at, cov);
    if (!there) {
        for (int k = 0; k < GS_RAY_SPLAT; k++) EQ_F64(row[k], 0);
        return;
    }
    const double a = cov[0] + 0.3, c = cov[2] + 0.3, b = cov[1],
                 o = s->antialias
                         ? g->o * sqrt(fmax((cov[0] * cov[2] - b * b) / (a * c - b * b), 2.5e-5))
                         : g->o,
                 far = fmin(3.33, sqrt(2 * log(255 * o)));
    if (!(row[GS_TILES] > 0)) return; /* beside the image, or too faint */
    (*seen)++;
    for (int k = 0; k < 2; k++) NEAR(row[GS_U + k], at[k], 1e-6);
    NEAR(row[GS_O], o, 1e-9);
    IS_TRUE(fabs(row[GS_EX] - far * sqrt(a)) < 1 + 1e-6 && row[GS_EX] >= far * sqrt(a) - 1e-6);
    IS_TRUE(fabs(row[GS_EY] - far * sqrt(c)) < 1 + 1e-6 && row[GS_EY] >= far * sqrt(c) - 1e-6);
    EQ_F64(row[GS_Z], g->m[2]);
}

static void check_image(const scene *s, const lens *l, int64_t tile, t_random *r)
{
    made m = make(s, l, FTH_F64, tile, r);
    double *splats = malloc((size_t)(s->n * GS_RAY_SPLAT) * 8),
           *image = malloc((size_t)(s->width * s->height) * 24), view[GS_VIEW];
    shape *shapes = malloc((size_t)s->n * sizeof *shapes);
    int *order = malloc((size_t)s->n * sizeof *order);
    int64_t seen = 0;
    make_view(s, l, view);
    t_eval_f64(m.splats, splats);
    t_eval_f64(m.image, image);
    for (int i = 0; i < (int)s->n; i++) {
        int at = i;
        shapes[i] = shape_of(&m, view, i);
        check_row(s, l, view, &shapes[i], splats + i * GS_RAY_SPLAT, &seen);
        while (at > 0 &&
               splats[order[at - 1] * GS_RAY_SPLAT + GS_Z] > splats[i * GS_RAY_SPLAT + GS_Z]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    IS_TRUE(seen > s->n / 4);
    for (int64_t i = 0; i < s->height; i++)
        for (int64_t j = 0; j < s->width; j++) {
            double d[3], want[3];
            direction(l, view, (double)j + 0.5, (double)i + 0.5, d);
            pixel(s, splats, shapes, order, d, i, j, want);
            for (int c = 0; c < 3; c++) NEAR(image[(i * s->width + j) * 3 + c], want[c], 1e-9);
        }
    free(splats);
    free(image);
    free(shapes);
    free(order);
    end(&m);
}

TEST(images_are_those_of_rays_traced_one_by_one)
{
    t_random r = t_random_make(1);
    t_cuts(2);
    for (int k = 0; k < LENSES; k++)
        for (int64_t tile = 8; tile <= 32; tile *= 2)
            check_image(&(scene){40, 33, 25, k % 4, 4, -1.4, 0.7, k == 2}, &lenses[k], tile, &r);
    check_image(&(scene){700, 24, 20, 0, 4, -2, 0.6, false}, &lenses[2], 16, &r);
}

/* Where no direction is seen there is the background. */
TEST(pixels_beyond_the_lens_are_dark)
{
    t_random r = t_random_make(2);
    lens narrow = lenses[1];
    narrow.reach = 0.25;
    for (int k = 0; k < 2; k++) {
        const scene s = {30, 33, 25, 0, 4, 0, 0.3, false};
        made m = make(&s, &narrow, FTH_F64, 16, &r);
        double image[33 * 25 * 3], view[GS_VIEW];
        int dark = 0, lit = 0;
        make_view(&s, &narrow, view);
        t_eval_f64(m.image, image);
        for (int p = 0; p < 33 * 25; p++) {
            const double x = (p % 33 + 0.5 - view[GS_VIEW_CX]) / view[GS_VIEW_FX],
                         y = (p / 33 + 0.5 - view[GS_VIEW_CY]) / view[GS_VIEW_FY];
            bool ground = true;
            for (int c = 0; c < 3; c++) ground = ground && image[3 * p + c] == 0.2 + 0.1 * c;
            if (hypot(x, y) > (k ? 0.188 : 0.25)) IS_TRUE(ground);
            dark += ground;
            lit += !ground;
        }
        IS_TRUE(dark > 100 && lit > 20);
        end(&m);
        narrow.kind = 2;
        memset(narrow.bend, 0, sizeof narrow.bend);
        narrow.bend[0] = -4; /* a fisheye whose picture ends at 0.25 rad, at 0.1875 */
    }
}

/* A small Gaussian of a long lens: alpha as the ordinary projection has it, its blur taken away. */
TEST(pinholes_agree_with_the_ordinary_projection)
{
    t_random r = t_random_make(3);
    for (int k = 0; k < 8; k++) {
        const scene s = {1, 48, 40, 0, 4000, -1, 0, false};
        made m = make(&s, &lenses[0], FTH_F64, 16, &r);
        double *view = m.data[GS_ATTRIBUTES], *mean = m.data[GS_MEANS],
               *scaling = m.data[GS_SCALING], alpha[48 * 40], row[GS_SPLAT];
        view[GS_VIEW_FX] = view[GS_VIEW_FY] = 60000;
        ((double *)m.data[GS_OPACITY])[0] = 2;
        for (int c = 0; c < 3; c++) {
            mean[c] = 0.3 * t_random_normal(&r);
            scaling[c] = -0.7 + 0.2 * t_random_normal(&r);
        }
        t_eval_f64(fth_out(m.image, 1), alpha);
        gs_raster plain = m.rule;
        plain.rays = 0;
        char axes[100];
        snprintf(axes, sizeof axes, "g=1 xyz=3 wxyz=4 c=3 p=%d view=%d", GS_SPLAT, GS_VIEW);
        fth_graph *g = t_graph(axes);
        gs_values model = {0};
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            if (a != GS_SH_N)
                model.at[a] =
                    t_input(g, gs_attribute_names[a], FTH_F64, gs_attribute_axes[a], m.data[a]);
        t_eval_f64(gs_project(g, &plain, &model, t_input(g, "view", FTH_F64, "view", view)), row);
        const double det = 1 / (row[GS_A] * row[GS_C] - row[GS_B] * row[GS_B]),
                     a = row[GS_C] * det - 0.3, b = -row[GS_B] * det, c = row[GS_A] * det - 0.3,
                     sharp = a * c - b * b;
        IS_TRUE(row[GS_TILES] > 0 && a > 2 && c > 2);
        int lit = 0;
        for (int p = 0; p < 48 * 40; p++) {
            const double dx = row[GS_U] - (p % 48 + 0.5), dy = row[GS_V] - (p / 48 + 0.5),
                         want = row[GS_O] *
                                exp(-(c * dx * dx - 2 * b * dx * dy + a * dy * dy) / (2 * sharp));
            if (alpha[p] == 0) {
                IS_TRUE(want < 1.05 / 255); /* the end of what is blended */
                continue;
            }
            lit++;
            NEAR(alpha[p], want, 5e-4); /* some times its depth over its distance */
        }
        IS_TRUE(lit > 50);
        t_graph_free(g);
        end(&m);
    }
}

/* sum of image times weights, by central differences on smooth ground: large, faint Gaussians whose
 * alpha is nowhere near its limits. */
TEST(gradients_are_those_of_differences)
{
    t_random r = t_random_make(4);
    for (int k = 0; k < LENSES; k++) {
        const scene s = {5, 12, 10, k == 0 ? 3 : 1, 6, 1.1, 0.4, false};
        made m = make(&s, &lenses[k], FTH_F64, 16, &r);
        double *scaling = m.data[GS_SCALING], *opacity = m.data[GS_OPACITY],
               splats[5 * GS_RAY_SPLAT];
        for (int i = 0; i < 15; i++) scaling[i] = 1.1 + 0.15 * t_random_normal(&r);
        for (int i = 0; i < 5; i++) opacity[i] = -1 + 0.3 * t_random_normal(&r);
        t_eval_f64(m.splats, splats);
        for (int i = 0; i < 5; i++) IS_TRUE(splats[i * GS_RAY_SPLAT + GS_TILES] > 0);
        const fth_val weights = t_noise(m.g, "weights", FTH_F64, "i j c", &r),
                      loss = fth_sum(fth_mul(m.image, weights), "i j c");
        for (int a = 0; a < GS_ATTRIBUTES; a++) GRAD(loss, m.model.at[a], 1e-6);
        end(&m);
    }
}

/* Lenses whose picture ends before the corners of the image. */
static const lens short_lenses[] = {
    {"short radial", 1, 0.5, {-4.0 / 3}}, /* ends at 1/3 of the focal length */
    {"short opencv", 1, 0.42, {-0.1, 0.03, 0, 0, 0, 0, 0, 0.004, -0.006}},
    {"short fisheye", 2, 0.5, {-4.0 / 3}},
};
enum { SHORT_LENSES = sizeof short_lenses / sizeof short_lenses[0] };

/* Five Gaussians that are seen everywhere, and so in all pixels that have a ray. */
static made make_large(const lens *l, fth_dtype dtype, t_random *r)
{
    const scene s = {5, 12, 10, 1, 6, 1.1, 0.2, false};
    made m = make(&s, l, dtype, 16, r);
    double splats[5 * GS_RAY_SPLAT];
    for (int i = 0; i < 15; i++)
        t_put(dtype, m.data[GS_SCALING], i, 1.1 + 0.15 * t_random_normal(r), 0);
    for (int i = 0; i < 5; i++)
        t_put(dtype, m.data[GS_OPACITY], i, -1 + 0.3 * t_random_normal(r), 0);
    t_eval_f64(m.splats, splats);
    for (int i = 0; i < 5; i++) IS_TRUE(splats[i * GS_RAY_SPLAT + GS_TILES] > 0);
    return m;
}

TEST(gradients_of_short_lenses_are_those_of_differences)
{
    t_random r = t_random_make(7);
    for (int k = 0; k < SHORT_LENSES; k++) {
        made m = make_large(&short_lenses[k], FTH_F64, &r);
        const fth_val weights = t_noise(m.g, "weights", FTH_F64, "i j c", &r),
                      loss = fth_sum(fth_mul(m.image, weights), "i j c");
        for (int a = 0; a < GS_ATTRIBUTES; a++) GRAD(loss, m.model.at[a], 1e-6);
        end(&m);
    }
}

/* Whatever the cotangents are of pixels without a ray, of the image and of alpha. */
/* The slope of sigmoid(17), which is 1 in f32, and of sigmoid(12), in f32 as in f64. */
TEST(gradients_of_opaque_gaussians_keep_their_digits)
{
    const scene s = {1, 12, 10, 0, 4, -0.7, 0.1, false};
    t_cuts(1);
    for (double logit = 12; logit <= 17; logit += 5) {
        double to[2];
        for (int bits = 0; bits < 2; bits++) {
            t_random r = t_random_make(9);
            const fth_dtype dtype = bits ? FTH_F64 : FTH_F32;
            made m = make(&s, &lenses[0], dtype, 16, &r);
            fth_val grad;
            t_put(dtype, m.data[GS_OPACITY], 0, logit, 0);
            OK(fth_grad(fth_sum(m.image, "i j c"), 1, &m.model.at[GS_OPACITY], &grad));
            t_eval_f64(grad, &to[bits]);
            end(&m);
        }
        IS_TRUE(to[1] != 0);
        NEAR(to[0], to[1], 1e-4 * fabs(to[1]));
    }
}

TEST(pixels_beyond_the_lens_have_no_gradient)
{
    enum { PIXELS = 12 * 10, MOST = 5 * 9 };
    static const double bars[] = {0, -3, 1e30, (double)INFINITY, (double)NAN};
    t_random r = t_random_make(8);
    t_cuts(2);
    for (int k = 0; k < 2 * SHORT_LENSES; k++) {
        const fth_dtype dtype = k % 2 ? FTH_F64 : FTH_F32;
        if (t_few() && k % 2 != k / 2 % 2) continue; /* each lens with one of them */
        made m = make_large(&short_lenses[k / 2], dtype, &r);
        double alpha[PIXELS], first[GS_ATTRIBUTES][MOST], again[MOST], weights[3 * PIXELS],
            shade[PIXELS];
        int beyond = 0;
        t_eval_f64(fth_out(m.image, 1), alpha);
        for (int p = 0; p < PIXELS; p++) beyond += alpha[p] == 0;
        IS_TRUE(beyond > 10 && beyond < PIXELS - 30);
        for (int i = 0; i < 3 * PIXELS; i++) t_put(dtype, weights, i, t_random_normal(&r), 0);
        for (int i = 0; i < PIXELS; i++) t_put(dtype, shade, i, t_random_normal(&r), 0);
        const fth_val by = t_input(m.g, "weights", dtype, "i j c", weights),
                      of_alpha = t_input(m.g, "shade", dtype, "i j", shade),
                      loss = fth_add(fth_sum(fth_mul(m.image, by), "i j c"),
                                     fth_sum(fth_mul(fth_out(m.image, 1), of_alpha), "i j"));
        fth_val grad[GS_ATTRIBUTES];
        OK(fth_grad(loss, GS_ATTRIBUTES, m.model.at, grad));
        for (int b = 0; b < (int)(sizeof bars / sizeof bars[0]); b++) {
            for (int p = 0; p < PIXELS; p++) {
                if (alpha[p] != 0) continue;
                t_put(dtype, shade, p, bars[b], 0);
                for (int c = 0; c < 3; c++) t_put(dtype, weights, 3 * p + c, bars[b], 0);
            }
            for (int a = 0; a < GS_ATTRIBUTES; a++) {
                const int64_t n = t_count(grad[a]);
                double *to = b ? again : first[a];
                IS_TRUE(n <= MOST);
                t_eval_f64(grad[a], to);
                for (int64_t i = 0; i < n; i++) {
                    IS_TRUE(isfinite(to[i]));
                    EQ_F64(to[i], first[a][i]);
                }
            }
        }
        end(&m);
    }
}

/* Cut, with little and much light, in both precisions; on a device as here. */
TEST(every_operation_keeps_its_promises_when_cut)
{
    t_random r = t_random_make(5);
    static const scene scenes[] = {
        {40, 33, 9, 3, 4, -1.4, 0.7, false},    {1, 50, 42, 0, 4, -1, 0.1, false},
        {30, 40, 33, 2, 0.3, -1.4, 0.7, false}, {12, 20, 20, 3, -9, -1, 0.7, false},
        {60, 31, 31, 1, 3, -0.5, 0.7, true},    {600, 24, 20, 0, 4, -2, 0.7, false},
    };
    for (int k = 0; k < 6; k++)
        for (int bits = k % t_one_in(1, 2); bits < 2; bits += t_one_in(1, 2)) {
            const fth_dtype dtype = bits ? FTH_F64 : FTH_F32;
            const scene *s = &scenes[k];
            made m = make(s, &lenses[(k + bits) % LENSES], dtype, 8 << k % (bits ? 2 : 3), &r);
            const fth_val target = t_noise(m.g, "target", dtype, "i j c", &r),
                          loss = gs_loss_of(m.g, 0.2, m.image, target);
            fth_val wrt[3] = {m.model.at[GS_MEANS], m.model.at[GS_ROTATION],
                              m.model.at[GS_SCALING]},
                    grad[3];
            OK(fth_grad(loss, 3, wrt, grad));
            double *out = malloc((size_t)(s->n * 4) * 8);
            t_cuts(3);
            for (int i = 0; i < 3; i++) {
                t_eval_f64(grad[i], out);
                for (int64_t e = 0; e < t_count(grad[i]); e++) IS_TRUE(isfinite(out[e]));
            }
            free(out);
            end(&m);
        }
}

TEST(rows_of_another_width_are_refused)
{
    t_random r = t_random_make(6);
    made m = make(&(scene){3, 9, 9, 0, 4, -1, 0.5, false}, &lenses[0], FTH_F32, 16, &r);
    m.rule.rays = 0;
    (void)gs_project(m.g, &m.rule, &m.model, m.view);
    REFUSED(m.g, FTH_E_GRAPH_ATTR, "a row of splats has 23 numbers, expected 14");
    end(&m);
}

TEST_MAIN()
