/* test_bragg_gradient.c - derivatives of bragg against differences of the render.
 * seconds: 5 labels: gpu
 *
 * Scenes are drawn at random. Differences are extrapolated from two steps, which also tells how far
 * to trust them: across an edge (nearest reflection, TOPHAT, dmin) they are not.
 */
#include "instruments/bragg/ops/gradient/jacobian.h"
#include "testing/bragg/bragg.h"
#include "testing/engine/op_harness.h"

#include <fathom/ops.h>
#include <math.h>

static const br_loops loops = {br_render_plain, br_latch_plain};

static void *array(int64_t n)
{
    void *v = calloc((size_t)n, sizeof(double));
    if (!v) FAIL("no memory for a test array");
    return v;
}

static double largest(const double *v, int64_t n, int64_t step)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(v[i * step]));
    return most;
}

/* ---- against differences ---- */

/* A step that moves reflections by far less than their width. */
static double step_of(const tb_case *c, int p)
{
    if (p == BR_XB || p == BR_YB) return 2e-7 * c->param[BR_DIST];
    return strcmp(br_params[p].unit, "deg") == 0 ? 2e-7 : 2e-7 * c->param[p];
}

static void difference(const tb_case *c, int p, double step, double *slope)
{
    const int64_t n = c->s.slow * c->s.fast;
    double *omega = array(n), *below = array(n);
    tb_case moved = *c;
    moved.param[p] = c->param[p] - step;
    tb_loops(&moved, &loops, below, omega);
    moved.param[p] = c->param[p] + step;
    tb_loops(&moved, &loops, slope, omega);
    for (int64_t i = 0; i < n; i++) slope[i] = (slope[i] - below[i]) / (2 * step);
    free(omega);
    free(below);
}

static void jacobian_of(tb_case *c, double *jacobian, double *image)
{
    tb_engine e = tb_start(1);
    br_inputs in = tb_inputs(e.g, c);
    in.latch = br_latch(&c->s, &in);
    const fth_val j = br_jacobian(&c->s, &in);
    tb_eval(&e, (fth_val[]){j, fth_out(j, 1)}, 2, 0, (double *const[]){jacobian, image});
    tb_stop(&e);
}

typedef struct tally {
    int64_t all, sharp, off; /* differences, those that say something, those that disagree */
    char text[256];          /* about the last of these */
} tally;

static void one_parameter(const tb_case *c, uint64_t scene, int p, const double *jacobian,
                          double brightest, tally *t)
{
    const int64_t n = c->s.slow * c->s.fast;
    double *wide = array(n), *close = array(n);
    const double step = step_of(c, p), most = largest(jacobian + p, n, BR_PARAMS);
    difference(c, p, step, wide);
    difference(c, p, step / 2, close);
    for (int64_t i = 0; i < n; i++) {
        const double best = (4 * close[i] - wide[i]) / 3;
        const double error = fabs(close[i] - wide[i]) + 4e-15 * brightest / step;
        const double got = jacobian[i * BR_PARAMS + p];
        if (!(fabs(got - best) <= 1e-6 * most + 5 * error)) {
            t->off++;
            snprintf(t->text, sizeof t->text,
                     "scene %d, pixel %d, d/d%s: %.12g, differences say %.12g (%.2g), most %g",
                     (int)scene, (int)i, br_params[p].name, got, best, error, most);
        }
        t->sharp += error <= 1e-6 * most;
        t->all++;
    }
    free(wide);
    free(close);
}

/* A step at exactly 0 takes another's angle, and its own a little beside it. */
static bool carries(const tb_case *c)
{
    bool zero = false;
    for (int64_t i = 0; i < c->s.phis; i++)
        zero |= c->param[BR_PHI] + c->s.phi_step * (double)i == 0;
    return zero && br_has(&c->s, BR_QUIRK_PHI_CARRYOVER);
}

TEST(differences)
{
    tally t = {0};
    for (uint64_t scene = 0; scene < 30; scene++) {
        t_random r = t_random_make(scene);
        tb_case c;
        tb_random(&c, &r);
        const int64_t n = c.s.slow * c.s.fast;
        double *jacobian = array(n * BR_PARAMS), *image = array(n), *plain = array(n),
               *omega = array(n);
        jacobian_of(&c, jacobian, image);
        tb_loops(&c, &loops, plain, omega);
        const double most = largest(plain, n, 1);
        bool finite = true; /* light from behind a sensor is not */
        for (int64_t i = 0; i < n; i++) finite = finite && isfinite(plain[i]);
        for (int64_t i = 0; finite && i < n; i++) NEAR(image[i], plain[i], 1e-13 * most);
        for (int p = 0; finite && p < BR_PARAMS; p++)
            if (p != BR_PHI || !carries(&c)) one_parameter(&c, scene, p, jacobian, most, &t);
        free(jacobian);
        free(image);
        free(plain);
        free(omega);
        tb_free(&c);
    }
    IS_TRUE((double)t.sharp > 0.5 * (double)t.all);
    if (t.off * 20000 > t.all) /* a slope can change its course between two steps */
        FAIL("%d of %d derivatives are off, such as %s", (int)t.off, (int)t.all, t.text);
}

/* ---- loops of every instruction set against the plain one ---- */

typedef struct bench {
    br_lab lab;
    double *work, *more, *value, *omega, *adjoint;
} bench;

static void bench_make(const tb_case *c, bench *b)
{
    const br_scene *s = &c->s;
    const int64_t nk = s->k_max - s->k_min + 2, nl = s->l_max - s->l_min + 2;
    const br_arrays a = {.param = c->param,
                         .table = c->table,
                         .source = c->source,
                         .mosaic_rotation = c->mosaic_rotation,
                         .table_step = {nk * nl, nl, 1},
                         .latch = s->slow * s->fast * 7 / 3}; /* somewhere in the image */
    b->work = array((int64_t)(br_view_bytes(s) / sizeof(double)));
    b->more = array(br_lab_numbers(s));
    b->value = array(s->fast);
    b->omega = array(s->fast);
    b->adjoint = array(s->fast * BR_ADJOINTS);
    br_view_make(&b->lab.view, s, &a, b->work);
    br_lab_fill(&b->lab, c->param, c->mosaic_rotation, b->more);
}

static void bench_free(bench *b)
{
    free(b->work);
    free(b->more);
    free(b->value);
    free(b->omega);
    free(b->adjoint);
}

static void one_row(const tb_case *c, bench *b, int64_t slow, const br_jacobian_loops *loop,
                    double *to)
{
    br_row row = {.slow = slow,
                  .n = c->s.fast,
                  .mask = c->mask ? c->mask + slow * c->s.fast : NULL,
                  .mask_step = 1,
                  .value = b->value,
                  .omega = b->omega};
    loop->pixels(&b->lab, &row, b->adjoint, c->s.fast);
    memcpy(to, b->adjoint, sizeof(double) * (size_t)(c->s.fast * BR_ADJOINTS));
    memcpy(to + c->s.fast * BR_ADJOINTS, b->value, sizeof(double) * (size_t)c->s.fast);
}

/* Slopes by lengths are sums of terms that may cancel: what is left is as exact as the largest of
 * them allows. */
static double rounding(int number, const double *top)
{
    double most = 0;
    for (int k = BR_AD_PIX0; k <= BR_AD_DISTANCE; k++) most = fmax(most, top[k]);
    return number >= BR_AD_PIX0 && number <= BR_AD_DISTANCE ? 1e-15 * most : 0;
}

static void compare_rows(uint64_t scene, int level, const double *got, const double *want,
                         int64_t n, double *top)
{
    for (int k = 0; k <= BR_ADJOINTS; k++) {
        const double most = largest(want + k * n, n, 1);
        if (isfinite(most) && most > top[k]) top[k] = most;
    }
    for (int k = 0; k <= BR_ADJOINTS; k++) {
        const double allowed = 1e-10 * top[k] + rounding(k, top);
        for (int64_t i = k * n; i < (k + 1) * n; i++)
            if (isfinite(want[i]) && !(fabs(got[i] - want[i]) <= allowed))
                FAIL("scene %d, level %d, number %d, pixel %d: %.17g, plain %.17g, most %g",
                     (int)scene, level, k, (int)(i - k * n), got[i], want[i], top[k]);
    }
}

TEST(loops_agree)
{
    for (uint64_t scene = 0; scene < 150; scene++) {
        t_random r = t_random_make(scene + 1000);
        tb_case c;
        bench b;
        double top[BR_ADJOINTS + 1] = {0};
        tb_random(&c, &r);
        c.s.quirks &= ~(1u << BR_QUIRK_RUNNING_SUM); /* only the plain loop does it */
        bench_make(&c, &b);
        const int64_t n = c.s.fast;
        double *plain = array(n * (BR_ADJOINTS + 1)), *fast = array(n * (BR_ADJOINTS + 1));
        for (int64_t slow = 0; slow < c.s.slow; slow++) {
            one_row(&c, &b, slow, &br_jacobian_plain, plain);
            for (int level = 1; level <= 4; level++) {
                const br_jacobian_loops *loop = br_jacobian_at(level);
                if (!loop) continue;
                one_row(&c, &b, slow, loop, fast);
                compare_rows(scene, level, fast, plain, n, top);
            }
        }
        free(plain);
        free(fast);
        bench_free(&b);
        tb_free(&c);
    }
}

/* A pixel in the direct beam scatters nothing: h k l are 0, every slope by the cell is 0. */
TEST(direct_beam)
{
    for (int shape = BR_SQUARE; shape <= BR_TOPHAT; shape++) {
        tb_case c;
        bench b;
        tb_make(&c);
        c.s.shape = shape;
        c.s.kahn = 0.5;
        c.param[BR_XB] = c.param[BR_YB] = 32 * c.s.pixel; /* the middle of pixel 32, 32 */
        tb_ready(&c);
        bench_make(&c, &b);
        const int64_t n = c.s.fast;
        double *plain = array(n * (BR_ADJOINTS + 1)), *fast = array(n * (BR_ADJOINTS + 1));
        double top[BR_ADJOINTS + 1] = {0};
        one_row(&c, &b, 32, &br_jacobian_plain, plain);
        one_row(&c, &b, 32, br_jacobian_for(&b.lab), fast);
        compare_rows((uint64_t)shape, 0, fast, plain, n, top);
        IS_TRUE(plain[BR_ADJOINTS * n + 32] > 0);
        for (int k = 0; k < BR_ADJOINTS; k++) IS_TRUE(isfinite(fast[k * n + 32]));
        for (int k = 0; k < 9; k++) EQ_F64(plain[k * n + 32], 0.0);
        free(plain);
        free(fast);
        bench_free(&b);
        tb_free(&c);
    }
}

/* ---- the spindle about z turns the crystal as misset z does ---- */

TEST(misset_z_is_phi)
{
    enum { SIDE = 64 };
    static double jacobian[SIDE * SIDE * BR_PARAMS], image[SIDE * SIDE];
    t_random r = t_random_make(7);
    tb_case c;
    tb_make(&c);
    c.param[BR_MX] = c.param[BR_MY] = 0;
    tb_domains(&c, &r, 0.01, 3);
    tb_spindle(&c, 5, 2, 4);
    tb_ready(&c);
    jacobian_of(&c, jacobian, image);
    const double most = largest(jacobian + BR_PHI, SIDE * SIDE, BR_PARAMS);
    IS_TRUE(most > 0);
    for (int64_t i = 0; i < SIDE * SIDE; i++)
        NEAR(jacobian[i * BR_PARAMS + BR_PHI], jacobian[i * BR_PARAMS + BR_MZ], 1e-12 * most);
    tb_free(&c);
}

/* ---- through the render, in pieces ---- */

typedef struct grads {
    double param[BR_PARAMS], *table;
} grads;

/* Gradients of a weighted sum of the image. */
static grads through_render(tb_case *c, const double *bar, fth_dtype dtype, int threads,
                            uint64_t memory)
{
    tb_engine e = tb_start(threads);
    br_inputs in = tb_inputs(e.g, c);
    int64_t entries = 1;
    for (int i = 0; i < 3; i++) entries *= fth_val_size(in.table, i);
    grads g = {.table = array(entries)};
    double *copy = array(c->s.slow * c->s.fast);
    memcpy(copy, bar, (size_t)(c->s.slow * c->s.fast) * sizeof *copy);
    in.latch = br_latch(&c->s, &in);
    const fth_val image = br_render(&c->s, &in, dtype);
    const fth_val weight = fth_cast(tb_image(&e, c, "bar", copy), dtype);
    const fth_val wrt[2] = {in.param, in.table};
    fth_val grad[2];
    fth_grad(fth_sum(fth_mul(weight, image), "slow fast"), 2, wrt, grad);
    tb_eval(&e, grad, 2, memory, (double *const[]){g.param, g.table});
    tb_stop(&e);
    free(copy);
    return g;
}

static void tall(tb_case *c, t_random *r)
{
    tb_make(c);
    tb_detector(c, 100, 0.3, 61.3);
    c->s.fast = 20;
    c->s.roi[1] = 19;
    tb_table_random(c, r, 9);
    tb_wavelengths(c, 0.03, 2);
    c->s.interpolate = 1;
    c->mask = calloc((size_t)(c->s.slow * c->s.fast), sizeof *c->mask);
    for (int64_t i = 0; i < c->s.slow * c->s.fast; i++) c->mask[i] = i % 7 != 0;
    tb_ready(c);
}

TEST(same_bits_in_pieces)
{
    t_random r = t_random_make(11);
    tb_case c;
    tall(&c, &r);
    const int64_t n = c.s.slow * c.s.fast;
    double *bar = array(n), *jacobian = array(n * BR_PARAMS), *image = array(n);
    t_random_fill_f64(&r, bar, n);
    jacobian_of(&c, jacobian, image);
    grads first = through_render(&c, bar, FTH_F64, 1, 0);
    for (int p = 0; p < BR_PARAMS; p++) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += bar[i] * jacobian[i * BR_PARAMS + p];
            size += fabs(bar[i] * jacobian[i * BR_PARAMS + p]);
        }
        NEAR(first.param[p], sum, 1e-13 * size);
    }
    const int64_t entries = 21 * 21 * 20;
    const int threads[] = {1, 2, 3, 1};
    const uint64_t memory[] = {232 << 10, 0, 420 << 10, 260 << 10};
    for (int i = 0; i < 4; i++) {
        grads again = through_render(&c, bar, FTH_F64, threads[i], memory[i]);
        SAME_BYTES(first.param, again.param, sizeof again.param);
        SAME_BYTES(first.table, again.table, (size_t)entries * sizeof(double));
        free(again.table);
    }
    grads single = through_render(&c, bar, FTH_F32, 1, 0);
    const double most = largest(first.table, entries, 1);
    for (int64_t i = 0; i < entries; i++) NEAR(single.table[i], first.table[i], 1e-6 * most);
    free(single.table);
    free(first.table);
    free(bar);
    free(jacobian);
    free(image);
    tb_free(&c);
}

/* An image is quadratic in each F: a difference over any step is exact. */
static void entry_difference(tb_case *c, const double *bar, int64_t entry, double got, double most)
{
    const int64_t n = c->s.slow * c->s.fast;
    double *image = array(n), *omega = array(n), loss[2] = {0}, old = c->table[entry];
    for (int side = 0; side < 2; side++) {
        c->table[entry] = old + (side ? 10 : -10);
        tb_loops(c, &loops, image, omega);
        for (int64_t i = 0; i < n; i++) loss[side] += bar[i] * image[i];
    }
    c->table[entry] = old;
    NEAR(got, (loss[1] - loss[0]) / 20, 1e-9 * most);
    free(image);
    free(omega);
}

TEST(structure_factors)
{
    for (int interpolate = 0; interpolate < 2; interpolate++) {
        t_random r = t_random_make(13);
        tb_case c;
        tall(&c, &r);
        c.s.interpolate = interpolate != 0;
        const int64_t n = c.s.slow * c.s.fast, entries = 21 * 21 * 20;
        double *bar = array(n);
        t_random_fill_f64(&r, bar, n);
        grads g = through_render(&c, bar, FTH_F64, 1, 0);
        const double most = largest(g.table, entries, 1);
        int64_t touched = 0, checked = 0;
        for (int64_t i = 0; i < entries; i++) touched += g.table[i] != 0;
        for (int64_t i = 0, seen = 0; i < entries; i++)
            if (g.table[i] != 0 && seen++ % (touched / 20) == 0) {
                entry_difference(&c, bar, i, g.table[i], most);
                checked++;
            }
        IS_TRUE(checked >= 20);
        free(g.table);
        free(bar);
        tb_free(&c);
    }
}

/* Cotangents are zero where nobody looks; without a mask they are the last input, in its place. */
TEST(zero_cotangents)
{
    t_random r = t_random_make(17);
    tb_case c;
    tall(&c, &r);
    free(c.mask);
    c.mask = NULL;
    tb_ready(&c);
    const int64_t n = c.s.slow * c.s.fast;
    double *bar = array(n), *jacobian = array(n * BR_PARAMS), *image = array(n);
    for (int64_t i = 0; i < n; i++) bar[i] = i % 5 == 0;
    jacobian_of(&c, jacobian, image);
    grads g = through_render(&c, bar, FTH_F64, 1, 0);
    for (int p = 0; p < BR_PARAMS; p++) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < n; i += 5) {
            sum += jacobian[i * BR_PARAMS + p];
            size += fabs(jacobian[i * BR_PARAMS + p]);
        }
        NEAR(g.param[p], sum, 1e-13 * size);
    }
    free(g.table);
    free(bar);
    free(jacobian);
    free(image);
    tb_free(&c);
}

/* Against sums over the derivatives; and the same bits in pieces. */
TEST(normal_matrix)
{
    t_random r = t_random_make(23);
    tb_case c;
    tall(&c, &r);
    const int64_t n = c.s.slow * c.s.fast;
    double *weight = array(n), *lack = array(n), *jacobian = array(n * BR_PARAMS),
           *image = array(n), first[BR_PARAMS * BR_PARAMS], second[BR_PARAMS],
           again[BR_PARAMS * BR_PARAMS], vector[BR_PARAMS];
    for (int64_t i = 0; i < n; i++) weight[i] = i / c.s.fast % 9 == 4 ? 0 : t_random_f64(&r);
    t_random_fill_f64(&r, lack, n);
    jacobian_of(&c, jacobian, image);
    for (int k = 0; k < 3; k++) {
        tb_engine e = tb_start(1 + k);
        br_inputs in = tb_inputs(e.g, &c);
        in.latch = br_latch(&c.s, &in);
        fth_axis_like(e.g, "param2", "param");
        const fth_val m = br_normal(&c.s, &in, tb_image(&e, &c, "weight", weight),
                                    tb_image(&e, &c, "lack", lack));
        tb_eval(&e, (fth_val[]){m, fth_out(m, 1)}, 2, (uint64_t)k * 220 << 10,
                (double *const[]){k ? again : first, k ? vector : second});
        tb_stop(&e);
        if (k) SAME_BYTES(first, again, sizeof again);
        if (k) SAME_BYTES(second, vector, sizeof vector);
    }
    for (int p = 0; p < BR_PARAMS * (BR_PARAMS + 1); p++) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            const double *j = jacobian + i * BR_PARAMS, a = weight[i] * j[p % BR_PARAMS];
            const double b = p / BR_PARAMS < BR_PARAMS ? j[p / BR_PARAMS] : lack[i];
            sum += a * b;
            size += fabs(a * b);
        }
        NEAR(p / BR_PARAMS < BR_PARAMS ? first[p] : second[p % BR_PARAMS], sum, 1e-13 * size);
    }
    free(weight);
    free(lack);
    free(jacobian);
    free(image);
    tb_free(&c);
}

/* Every node by itself: cut along rows, in slices of larger boxes, with outputs left out. */
TEST(pieces)
{
    t_random r = t_random_make(19);
    for (int i = 0; i < 12; i++) {
        tb_case c;
        tb_random(&c, &r);
        const br_scene *s = &c.s;
        const int64_t n = s->slow * s->fast, nh = s->hkls ? s->h_max - s->h_min + 2 : 1,
                      nk = s->hkls ? s->k_max - s->k_min + 2 : 1,
                      nl = s->hkls ? s->l_max - s->l_min + 2 : 1;
        char axes[256];
        snprintf(axes, sizeof axes,
                 "slow=%d fast=%d param=%d h=%d k=%d l=%d source=%d source_column=%d mosaic=%d "
                 "nine=9",
                 (int)s->slow, (int)s->fast, BR_PARAMS, (int)nh, (int)nk, (int)nl, (int)s->sources,
                 BR_SRC_COLUMNS, (int)s->mosaics);
        fth_graph *g = t_graph(axes);
        br_inputs in = {.param = t_input(g, "param", FTH_F64, "param", c.param),
                        .table = t_input(g, "table", FTH_F64, "h k l", c.table),
                        .source = t_input(g, "source", FTH_F64, "source source_column", c.source),
                        .mosaic_rotation = t_input(g, "mosaic_rotation", FTH_F64, "mosaic nine",
                                                   c.mosaic_rotation)};
        if (c.mask) in.mask = t_input(g, "mask", FTH_U16, "slow fast", c.mask);
        in.latch = br_latch(s, &in);
        const fth_val bar = t_noise(g, "bar", FTH_F64, "slow fast", &r);
        double *jacobian = array(n * BR_PARAMS), *table = array(nh * nk * nl), param[BR_PARAMS],
               normal[BR_PARAMS * BR_PARAMS];
        t_cuts(3);
        t_eval(br_jacobian(s, &in), jacobian);
        t_eval(br_param_gradient(s, &in, bar), param);
        t_eval(br_table_gradient(s, &in, bar), table);
        fth_axis_like(g, "param2", "param");
        t_eval(br_normal(s, &in, bar, bar), normal);
        free(jacobian);
        free(table);
        t_graph_free(g);
        tb_free(&c);
    }
}

/* ---- what is refused ---- */

TEST(refusals)
{
    tb_case c;
    tb_make(&c);
    tb_ready(&c);
    fth_err err = {0};
    double bar[64 * 64] = {0};
    fth_val grad;
    tb_engine e = tb_start(1);
    br_inputs in = tb_inputs(e.g, &c);
    in.latch = br_latch(&c.s, &in);
    br_table_gradient(&c.s, &in, fth_cast(tb_image(&e, &c, "bar", bar), FTH_F32));
    IS(fth_graph_check(e.g, &err), FTH_E_AXIS_MISMATCH);
    HAS(err.text, "images are f64 [slow fast]");
    fth_graph_clear_errors(e.g);
    err = (fth_err){0};
    const fth_val omega = fth_out(br_render(&c.s, &in, FTH_F64), 1);
    fth_grad(fth_sum(omega, "slow"), 1, &in.param, &grad);
    IS(fth_graph_check(e.g, &err), FTH_E_GRAPH_GRADIENT);
    HAS(err.text, "solid angles");
    tb_stop(&e);
    tb_free(&c);
}

TEST_MAIN()
