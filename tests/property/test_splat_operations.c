/* test_splat_operations.c - the rasteriser written in operations of the engine, every Gaussian at
 * every pixel: images of the f64 loops to 1e-12, its automatic gradient against the hand-written
 * vjp, and a thousand entries of that against central differences.
 * seconds: 2
 */
#include "instruments/splat/raster/raster.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <math.h>
#include <string.h>

enum { MOST = 64, SIDE = 32, DIFFERENCES = 1000 };
static const int columns[GS_ATTRIBUTES] = {3, 3, 45, 3, 4, 1};

typedef struct scene {
    int64_t n;
    int degree;
    double distance, spread, size; /* of the camera; of means; log of scales */
    bool antialias;
} scene;
static const scene scenes[] = {
    {64, 3, 4, 0.8, -1.4, false}, {1, 0, 3, 0.1, -1, false},      {40, 1, 2.5, 0.5, -2, true},
    {64, 2, 5, 1.5, -0.7, false}, {17, 3, 1.2, 0.6, -1.8, false}, /* some behind the camera */
    {8, 0, -6, 0.5, -1, false},                                   /* all of them */
};
enum { SCENES = sizeof scenes / sizeof *scenes };

/* ---- a graph of one scene, whose inputs the test may change ---- */

typedef struct made {
    const scene *s;
    double view[GS_VIEW];
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *in[GS_ATTRIBUTES + 4];
    int n_in;
    double moved[MOST * 2]; /* places, to the edge of where the projection is differentiated */
    gs_raster rule;
    gs_values model;
    fth_val eye, weight, ground, clamp;
} made;

static fth_val add_input(made *m, const char *name, const char *axes, const double *data)
{
    fth_axis_id axis[FTH_MAX_AXES];
    int64_t size[FTH_MAX_AXES], n = 1;
    int dims = 0;
    fth_tensor **t = &m->in[m->n_in++];
    OK(fth_axes_parse(m->g, axes, &dims, axis, NULL));
    for (int d = 0; d < dims; d++) n *= size[d] = fth_axis_size(m->g, fth_axis_name(m->g, axis[d]));
    OK(fth_tensor_create(t, fth_context_mem(m->ctx), name, FTH_F64, dims, size, NULL));
    memcpy(fth_tensor_data(*t), data, (size_t)n * sizeof *data);
    return fth_input(m->g, name, FTH_F64, axes, fth_tensor_source(*t));
}

/* A camera that is turned a little. */
static void make_view(const scene *s, double view[GS_VIEW])
{
    const double c = cos(0.2), d = sin(0.2),
                 pose[12] = {c, 0, d, 0.1, 0, 1, 0, -0.05, -d, 0, c, s->distance};
    memset(view, 0, GS_VIEW * sizeof *view);
    memcpy(view + GS_VIEW_POSE, pose, sizeof pose);
    view[GS_VIEW_FX] = 29;
    view[GS_VIEW_FY] = 31;
    view[GS_VIEW_CX] = 16.3;
    view[GS_VIEW_CY] = 15.1;
    for (int k = 0; k < 3; k++) {
        view[GS_VIEW_GROUND + k] = 0.1 + 0.2 * k;
        for (int row = 0; row < 3; row++)
            view[GS_VIEW_CENTRE + k] -= pose[4 * row + k] * pose[4 * row + 3];
    }
    view[GS_VIEW_DEGREE] = s->degree;
}

/* Far off the axis the derivative of the projection is that at the edge, but its own slope is taken
 * as if there were no edge: so how far a place is moved to it is an input, not an operation. */
static void clamp_places(made *m)
{
    const double *pose = m->view + GS_VIEW_POSE, *mean = fth_tensor_data(m->in[GS_MEANS]);
    for (int64_t g = 0; g < m->s->n; g++) {
        double at[3];
        for (int r = 0; r < 3; r++)
            at[r] = pose[4 * r] * mean[3 * g] + pose[4 * r + 1] * mean[3 * g + 1] +
                    pose[4 * r + 2] * mean[3 * g + 2] + pose[4 * r + 3];
        for (int k = 0; k < 2 && at[2] >= 0.01; k++) {
            const double f = m->view[GS_VIEW_FX + k], c = m->view[GS_VIEW_CX + k],
                         x = at[k] / at[2];
            m->moved[2 * g + k] =
                at[2] * (fmin(fmax(x, (-0.15 * SIDE - c) / f), (1.15 * SIDE - c) / f) - x);
        }
    }
    m->clamp = add_input(m, "clamp", "g two", m->moved);
}

/* Opacities stay below the clamp of alpha, whose slope is not taken. */
static void open_scene(made *m, const scene *s, t_random *r)
{
    static const char *const axes[] = {"g",    "h", "xyz", "wxyz", "c",  "p",
                                       "view", "i", "j",   "one",  "two"};
    const int64_t sizes[] = {s->n, s->n, 3, 4, 3, GS_SPLAT, GS_VIEW, SIDE, SIDE, 1, 2};
    const double mean[GS_ATTRIBUTES] = {0, 0.4, 0, s->size, 0, 0.3},
                 wide[GS_ATTRIBUTES] = {s->spread, 0.8, 0.3, 0.4, 1, 1.2};
    static double data[SIDE * SIDE * 3];
    fth_options opt;
    fth_err err = {0};
    *m = (made){.s = s};
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 512 << 20;
    OKE(fth_context_create(&m->ctx, &opt, &err), &err);
    m->g = fth_graph_create(m->ctx);
    for (int a = 0; a < 11; a++) IS_TRUE(fth_axis(m->g, axes[a], sizes[a]));
    if (s->degree) IS_TRUE(fth_axis(m->g, "k", gs_coefficients(s->degree)));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        for (int i = 0; i < MOST * columns[a]; i++) {
            data[i] = mean[a] + wide[a] * t_random_normal(r);
            if (a == GS_OPACITY) data[i] = fmin(data[i], 4);
        }
        if (a != GS_SH_N || s->degree)
            m->model.at[a] = add_input(m, gs_attribute_names[a], gs_attribute_axes[a], data);
    }
    make_view(s, m->view);
    m->eye = add_input(m, "view", "view", m->view);
    m->ground = add_input(m, "ground", "c", m->view + GS_VIEW_GROUND);
    for (int i = 0; i < SIDE * SIDE * 3; i++) data[i] = t_random_normal(r);
    m->weight = add_input(m, "weight", "i j c", data);
    clamp_places(m);
    m->rule = (gs_raster){.width = SIDE,
                          .height = SIDE,
                          .tile = 16,
                          .room = 4 * MOST,
                          .most_alpha = 0.999,
                          .antialias = s->antialias};
}

static void close_scene(made *m)
{
    fth_err err = {0};
    fth_graph_destroy(m->g);
    for (int i = 0; i < m->n_in; i++) fth_tensor_release(m->in[i]);
    OKE(fth_context_destroy(m->ctx, &err), &err);
}

static fth_val with_loops(made *m)
{
    const fth_val splats = gs_project(m->g, &m->rule, &m->model, m->eye);
    return gs_blend(m->g, &m->rule, splats, gs_order(m->g, &m->rule, splats), m->eye);
}

/* ---- the same in operations ---- */

/* Number `i` along an axis, which goes. */
static fth_val part(fth_val v, const char *axis, int i)
{
    return fth_sum(fth_slice(v, axis, i, "one"), "one");
}

static fth_val scaled(fth_val v, double by)
{
    return fth_mul(v, fth_const_like(v, by));
}

static fth_val plus(fth_val v, double more)
{
    return fth_add(v, fth_const_like(v, more));
}

static fth_val dot3(const fth_val a[3], const fth_val b[3])
{
    return fth_add(fth_add(fth_mul(a[0], b[0]), fth_mul(a[1], b[1])), fth_mul(a[2], b[2]));
}

/* R diag(s), the axes of the Gaussians, a row at a time. */
static void axes_of(const made *m, fth_val M[3][3])
{
    fth_val q[4], s[3];
    for (int k = 0; k < 4; k++) q[k] = part(m->model.at[GS_ROTATION], "wxyz", k);
    for (int k = 0; k < 3; k++) s[k] = fth_exp(part(m->model.at[GS_SCALING], "xyz", k));
    const fth_val n = fth_sqrt(
        fth_add(fth_add(fth_sqr(q[0]), fth_sqr(q[1])), fth_add(fth_sqr(q[2]), fth_sqr(q[3]))));
    for (int k = 0; k < 4; k++) q[k] = fth_div(q[k], n);
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        M[i][i] = plus(scaled(fth_add(fth_sqr(q[1 + j]), fth_sqr(q[1 + k])), -2), 1);
        /* entries (i, j) and (j, i): the product of two less and plus that of w and the third */
        const fth_val both = fth_mul(q[1 + i], q[1 + j]), third = fth_mul(q[0], q[1 + k]);
        M[i][j] = scaled(fth_sub(both, third), 2);
        M[j][i] = scaled(fth_add(both, third), 2);
    }
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) M[i][k] = fth_mul(M[i][k], s[k]);
}

/* Real spherical harmonics of a direction, as polynomials. */
static fth_val colours_of(const made *m, const fth_val mean[3])
{
    fth_val d[3];
    for (int k = 0; k < 3; k++) d[k] = plus(mean[k], -m->view[GS_VIEW_CENTRE + k]);
    const fth_val far = fth_sqrt(dot3(d, d));
    for (int k = 0; k < 3; k++) d[k] = fth_div(d[k], far);
    const fth_val x = d[0], y = d[1], z = d[2], xx = fth_sqr(x), yy = fth_sqr(y), zz = fth_sqr(z),
                  flat = fth_sub(xx, yy), five = plus(scaled(zz, -5), 1);
    const fth_val basis[15] = {scaled(y, -0.48860251190291987),
                               scaled(z, 0.48860251190291987),
                               scaled(x, -0.48860251190291987),
                               scaled(fth_mul(x, y), 1.0925484305920792),
                               scaled(fth_mul(y, z), -1.0925484305920792),
                               plus(scaled(zz, 0.94617469575755997), -0.31539156525251999),
                               scaled(fth_mul(x, z), -1.0925484305920792),
                               scaled(flat, 0.54627421529603959),
                               scaled(fth_mul(y, fth_sub(yy, scaled(xx, 3))), 0.59004358992664352),
                               scaled(fth_mul(fth_mul(x, y), z), 2.8906114426405538),
                               scaled(fth_mul(y, five), 0.45704579946446572),
                               scaled(fth_mul(z, plus(scaled(zz, 5), -3)), 0.3731763325901154),
                               scaled(fth_mul(x, five), 0.45704579946446572),
                               scaled(fth_mul(z, flat), 1.4453057213202769),
                               scaled(fth_mul(x, fth_sub(scaled(yy, 3), xx)), 0.59004358992664352)};
    fth_val colour = plus(scaled(m->model.at[GS_SH_0], 0.28209479177387814), 0.5);
    for (int k = 0; k < gs_coefficients(m->s->degree); k++)
        colour = fth_add(colour, fth_mul(part(m->model.at[GS_SH_N], "k", k), basis[k]));
    return fth_relu(colour);
}

/* What pixels need of every Gaussian, [g]: place, conic, opacity; and whether it can be seen. */
typedef struct looks {
    fth_val u, v, A, B, C, o, seen, z;
} looks;

static looks look_of(const made *m, const fth_val mean[3])
{
    const double *pose = m->view + GS_VIEW_POSE, fx = m->view[GS_VIEW_FX], fy = m->view[GS_VIEW_FY];
    fth_val at[3], M[3][3], T[2][3];
    for (int r = 0; r < 3; r++)
        at[r] =
            plus(fth_add(fth_add(scaled(mean[0], pose[4 * r]), scaled(mean[1], pose[4 * r + 1])),
                         scaled(mean[2], pose[4 * r + 2])),
                 pose[4 * r + 3]);
    looks l;
    l.seen = fth_ge(at[2], fth_const_like(at[2], 0.01));
    l.z = fth_select(l.seen, at[2], fth_const_like(at[2], 1)); /* no quotients of what is behind */
    const fth_val x = fth_div(at[0], l.z), y = fth_div(at[1], l.z);
    l.u = plus(scaled(x, fx), m->view[GS_VIEW_CX]);
    l.v = plus(scaled(y, fy), m->view[GS_VIEW_CY]);
    axes_of(m, M);
    const fth_val tx = fth_div(fth_add(at[0], part(m->clamp, "two", 0)), l.z),
                  ty = fth_div(fth_add(at[1], part(m->clamp, "two", 1)), l.z);
    /* rows of J times the rotation of the camera, times R diag(s): a square root of the covariance
     */
    for (int k = 0; k < 3; k++) {
        fth_val turned[3];
        for (int r = 0; r < 3; r++)
            turned[r] =
                fth_add(fth_add(scaled(M[0][k], pose[4 * r]), scaled(M[1][k], pose[4 * r + 1])),
                        scaled(M[2][k], pose[4 * r + 2]));
        T[0][k] = scaled(fth_div(fth_sub(turned[0], fth_mul(tx, turned[2])), l.z), fx);
        T[1][k] = scaled(fth_div(fth_sub(turned[1], fth_mul(ty, turned[2])), l.z), fy);
    }
    const fth_val p = dot3(T[0], T[0]), b = dot3(T[0], T[1]), q = dot3(T[1], T[1]),
                  a = plus(p, 0.3), c = plus(q, 0.3), det = fth_sub(fth_mul(a, c), fth_sqr(b));
    l.A = fth_div(c, det);
    l.B = fth_neg(fth_div(b, det));
    l.C = fth_div(a, det);
    l.o = fth_sigmoid(m->model.at[GS_OPACITY]);
    if (m->s->antialias) {
        const fth_val ratio = fth_div(fth_sub(fth_mul(p, q), fth_sqr(b)), det);
        l.o = fth_mul(l.o, fth_sqrt(fth_max(ratio, fth_const_like(ratio, 0.005 * 0.005))));
    }
    return l;
}

/* [g ..] in the order of the depths. */
static fth_val ordered(fth_val v, fth_val order)
{
    return fth_gather(fth_rename(v, "g", "h"), "h", order);
}

static fth_val with_operations(made *m)
{
    fth_val mean[3];
    for (int k = 0; k < 3; k++) mean[k] = part(m->model.at[GS_MEANS], "xyz", k);
    const looks l = look_of(m, mean);
    const fth_val order = fth_out(fth_sort(l.z, "g", false), 1),
                  colour = ordered(colours_of(m, mean), order), A = ordered(l.A, order),
                  B = ordered(l.B, order), C = ordered(l.C, order),
                  o = ordered(fth_select(l.seen, l.o, fth_const_like(l.o, 0)), order);
    const fth_val px = fth_expand(plus(fth_cast(fth_index(m->g, "j"), FTH_F64), 0.5), "g i"),
                  py = fth_layout(
                      fth_expand(plus(fth_cast(fth_index(m->g, "i"), FTH_F64), 0.5), "g j"),
                      "g i j"),
                  dx = fth_sub(ordered(l.u, order), px), dy = fth_sub(ordered(l.v, order), py);
    const fth_val sigma =
        fth_add(scaled(fth_add(fth_mul(A, fth_sqr(dx)), fth_mul(C, fth_sqr(dy))), 0.5),
                fth_mul(B, fth_mul(dx, dy)));
    const fth_val made_of = fth_mul(o, fth_exp(fth_neg(sigma))),
                  alpha = fth_min(made_of, fth_const_like(made_of, 0.999)),
                  on = fth_ge(alpha, fth_const_like(alpha, 1.0 / 255)),
                  none = fth_const_like(alpha, 0);
    const fth_val left = fth_log1p(fth_neg(fth_select(on, alpha, none))),
                  before = fth_scan(FTH_RED_SUM, left, "g", true, false),
                  keep = fth_ge(fth_add(before, left), fth_const_like(left, log(1e-4)));
    const fth_val w = fth_select(fth_and(on, keep), fth_mul(fth_exp(before), alpha), none),
                  F = fth_exp(fth_sum(fth_select(keep, left, none), "g"));
    return fth_add(fth_dot(w, colour, "g"), fth_mul(fth_expand(F, "c"), m->ground));
}

/* ---- runs ---- */

typedef struct outcome {
    double image[SIDE * SIDE * 3], loss, grad[GS_ATTRIBUTES][MOST * 45];
} outcome;

static void run(made *m, fth_val image, outcome *o)
{
    fth_val wrt[GS_ATTRIBUTES], grad[GS_ATTRIBUTES], outs[GS_ATTRIBUTES + 2];
    fth_tensor *t[GS_ATTRIBUTES + 1];
    fth_sink sinks[GS_ATTRIBUTES + 2];
    fth_err err = {0};
    int which[GS_ATTRIBUTES], n = 0;
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        if (a != GS_SH_N || m->s->degree) {
            which[n] = a;
            wrt[n++] = m->model.at[a];
        }
    const fth_val loss = fth_sum(fth_mul(image, m->weight), "i j c");
    OK(fth_grad(loss, n, wrt, grad));
    OKE(fth_graph_check(m->g, &err), &err);
    outs[n] = fth_layout(image, "i j c");
    outs[n + 1] = loss;
    for (int k = 0; k <= n; k++) {
        int64_t size[FTH_MAX_AXES];
        if (k < n) outs[k] = fth_layout(grad[k], gs_attribute_axes[which[k]]);
        for (int d = 0; d < fth_val_axes(outs[k]); d++) size[d] = fth_val_size(outs[k], d);
        OK(fth_tensor_create(&t[k], fth_context_mem(m->ctx), "out", FTH_F64, fth_val_axes(outs[k]),
                             size, NULL));
        sinks[k] = fth_tensor_sink(t[k]);
    }
    sinks[n + 1] = fth_scalar_sink(FTH_F64, &o->loss);
    fth_plan *plan = fth_plan_make(m->g, outs, n + 2, &(fth_limits){0}, &err);
    if (!plan) FAIL("%s", err.text);
    OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
    for (int k = 0; k <= n; k++) {
        memcpy(k < n ? o->grad[which[k]] : o->image, fth_tensor_data(t[k]),
               (size_t)fth_tensor_bytes(t[k]));
        fth_tensor_release(t[k]);
    }
    fth_plan_destroy(plan);
}

static int64_t numbers_of(const scene *s, int a)
{
    return s->n * gs_columns((gs_attribute)a, s->degree);
}

static void near_gradients(const scene *s, const outcome *a, const outcome *b, double tol)
{
    for (int k = 0; k < GS_ATTRIBUTES; k++) {
        double most = 0;
        for (int64_t i = 0; i < numbers_of(s, k); i++) most = fmax(most, fabs(b->grad[k][i]));
        for (int64_t i = 0; i < numbers_of(s, k); i++)
            if (!(fabs(a->grad[k][i] - b->grad[k][i]) <= tol * most))
                FAIL("%s[%lld]: %.17g, expected %.17g (largest %.3g)", gs_attribute_names[k],
                     (long long)i, a->grad[k][i], b->grad[k][i], most);
    }
}

TEST(operations_of_the_engine_give_the_same_image_and_gradient)
{
    static outcome loops, operations;
    t_random r = t_random_make(1);
    for (int k = 0; k < SCENES; k++) {
        made m;
        open_scene(&m, &scenes[k], &r);
        run(&m, with_loops(&m), &loops);
        run(&m, with_operations(&m), &operations);
        double lit = 0;
        for (int i = 0; i < SIDE * SIDE * 3; i++) {
            NEAR(loops.image[i], operations.image[i], 1e-12);
            lit = fmax(lit, fabs(loops.image[i] - m.view[GS_VIEW_GROUND + i % 3]));
        }
        IS_TRUE(k == SCENES - 1 ? lit == 0 : lit > 0);
        near_gradients(&scenes[k], &loops, &operations, 1e-10);
        close_scene(&m);
    }
}

/* Where a step makes a fragment appear or vanish, the difference jumps; a shorter one, from another
 * place, does not. */
TEST(a_thousand_entries_are_those_of_differences)
{
    static outcome o;
    t_random r = t_random_make(2);
    int done = 0, jumps = 0;
    for (int k = 0; done < DIFFERENCES; k = (k + 1) % (SCENES - 1)) {
        made m;
        double loss[2];
        fth_err err = {0};
        open_scene(&m, &scenes[k], &r);
        const fth_val image = with_loops(&m);
        run(&m, image, &o);
        const fth_val out = fth_sum(fth_mul(image, m.weight), "i j c");
        const fth_sink sink = fth_scalar_sink(FTH_F64, &loss[0]),
                       other = fth_scalar_sink(FTH_F64, &loss[1]);
        fth_plan *plan = fth_plan_make(m.g, &out, 1, &(fth_limits){0}, &err);
        if (!plan) FAIL("%s", err.text);
        for (int e = 0; e < 110 && done < DIFFERENCES; e++) {
            int a = (int)(t_random_u64(&r) % GS_ATTRIBUTES), input = a;
            if (a == GS_SH_N && !scenes[k].degree) a = input = GS_MEANS;
            if (a > GS_SH_N && !scenes[k].degree) input--;
            const int64_t n = numbers_of(&scenes[k], a),
                          i = (int64_t)(t_random_u64(&r) % (uint64_t)n);
            if (a == GS_MEANS && (m.moved[i / 3 * 2] != 0 || m.moved[i / 3 * 2 + 1] != 0)) continue;
            double *at = (double *)fth_tensor_data(m.in[input]) + i, was = *at, most = 0,
                   best = 1e300;
            for (int64_t j = 0; j < n; j++) most = fmax(most, fabs(o.grad[a][j]));
            for (double h = 2e-6; h > 1e-7 && best > 2e-5 * most; h /= 7) {
                *at = was + h;
                OKE(fth_run(plan, &sink, NULL, NULL, &err), &err);
                *at = was - h;
                OKE(fth_run(plan, &other, NULL, NULL, &err), &err);
                best = fmin(best, fabs((loss[0] - loss[1]) / (2 * h) - o.grad[a][i]));
                jumps += best > 2e-5 * most;
            }
            *at = was;
            done++;
            if (!(best <= 2e-5 * most))
                FAIL("scene %d, %s[%lld]: off by %.3g of %.3g (largest %.3g)", k,
                     gs_attribute_names[a], (long long)i, best, o.grad[a][i], most);
        }
        fth_plan_destroy(plan);
        close_scene(&m);
    }
    IS_TRUE(jumps < DIFFERENCES / 10);
}

TEST_MAIN()
