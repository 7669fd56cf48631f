/* test_ptycho_device.c - an epoch of the solvers on a device against the CPU, for sizes of patterns
 * that its kernels treat in different ways: whole images in shared memory (64, 128), and lines.
 * seconds: 10
 * labels: gpu
 */
#include "testing/engine/op_device.h"
#include "testing/ptycho/ptycho_solve.h"

#include <math.h>

typedef struct scene {
    int64_t n, patterns;
    bool fractions, counts, masked;
    double most; /* relative difference */
} scene;

static double wave(int64_t i, int64_t k)
{
    return 0.5 + 0.5 * sin(0.37 * (double)i + 0.11 * (double)(k * k));
}

static void open_scene(ps_case *c, const scene *a, const char *memory, bool device)
{
    const int64_t n = a->n, nn = n * n, size[3] = {a->patterns, n, n};
    ps_context(c, memory, 1, device);
    c->x = malloc((size_t)a->patterns * sizeof(double));
    c->y = malloc((size_t)a->patterns * sizeof(double));
    for (int64_t j = 0; j < a->patterns; j++) {
        c->x[j] = (double)(n / 2 + j * 5 % 23) + (a->fractions ? 0.4 * sin((double)j) : 0);
        c->y[j] = (double)(n / 2 + j * 7 % 19) + (a->fractions ? 0.3 * cos((double)j) : 0);
    }
    c->probe = malloc((size_t)nn * sizeof *c->probe);
    for (int64_t i = 0; i < nn; i++) { /* phases that spread the light over the whole pattern */
        const double y = (double)(i / n - n / 2) / (double)n,
                     x = (double)(i % n - n / 2) / (double)n, light = exp(-8 * (x * x + y * y)),
                     phase = 6 * wave(i * i % 1009, i % 31);
        c->probe[i] = (fth_c128){light * cos(phase), light * sin(phase)};
    }
    OK(fth_tensor_create(&c->patterns, c->mem, "patterns", a->counts ? FTH_U16 : FTH_F32, 3, size,
                         NULL));
    void *data = fth_tensor_data(c->patterns);
    for (int64_t i = 0; i < a->patterns * nn; i++) {
        const double v = 1 + 20 * wave(i % n, i / n) * wave(i / nn, i % 7);
        if (a->counts)
            ((uint16_t *)data)[i] = (uint16_t)(v * v);
        else
            ((float *)data)[i] = (float)v;
    }
    if (a->masked) {
        OK(fth_tensor_create(&c->masks, c->mem, "masks", FTH_BOOL, 3, size, NULL));
        uint8_t *good = fth_tensor_data(c->masks);
        for (int64_t i = 0; i < a->patterns * nn; i++) good[i] = i % 37 != 5;
        c->data.masks = fth_tensor_source(c->masks);
    }
    c->data.patterns = a->patterns;
    c->data.n = n;
    c->data.source = fth_tensor_source(c->patterns);
    c->data.counts = a->counts;
    c->data.centred = true;
    c->data.x = c->x;
    c->data.y = c->y;
    c->data.probe = c->probe;
    c->data.modes = 1;
}

static double distance(fth_tensor *a, fth_tensor *b, fth_dtype real)
{
    const int64_t n = (int64_t)fth_tensor_bytes(a) / fth_dtype_size(real);
    const void *x = fth_tensor_view(a), *y = fth_tensor_view(b);
    double above = 0, below = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = pt_get(x, real, i) - pt_get(y, real, i);
        above += d * d;
        below += pt_get(x, real, i) * pt_get(x, real, i);
    }
    return sqrt(above / below);
}

/* Object, probe, error and positions here and there. */
static void on_both(const scene *a, const pt_solve_options *o)
{
    ps_case c[2];
    pt_solver *s[2];
    for (int d = 0; d < 2; d++) {
        open_scene(&c[d], a, NULL, d == 1);
        s[d] = ps_solve(&c[d], o);
    }
    LE_F64(distance(s[0]->object, s[1]->object, s[0]->real), a->most);
    LE_F64(distance(s[0]->probe, s[1]->probe, s[0]->real), a->most);
    if (o->opr) LE_F64(distance(s[0]->eigen, s[1]->eigen, s[0]->real), a->most);
    for (int64_t j = 0; j < (o->opr ? o->opr + 1 : 0) * a->patterns; j++)
        NEAR(s[0]->shares[j], s[1]->shares[j], 10 * a->most);
    const double error = s[0]->history[o->iterations - 1];
    LE_F64(fabs(s[1]->history[o->iterations - 1] / error - 1), a->most);
    for (int64_t j = 0; j < a->patterns; j++) {
        NEAR(s[0]->x[j], s[1]->x[j], 10 * a->most);
        NEAR(s[0]->y[j], s[1]->y[j], 10 * a->most);
    }
    for (int d = 0; d < 2; d++) {
        pt_solver_destroy(s[d]);
        ps_close(&c[d]);
    }
}

static pt_solve_options rules(pt_algorithm algorithm, int64_t batch, bool wide)
{
    pt_solve_options o = ps_options(algorithm, 1);
    o.batch = batch;
    o.wide = wide;
    o.object_alpha = o.probe_alpha = 0.3;
    return o;
}

static void all_rules(scene a, bool wide)
{
    pt_solve_options o = rules(PT_SOLVE_LSQML, 4, wide); /* the last batch is short */
    on_both(&a, &o);
    a.counts = a.masked = true;
    o = rules(PT_SOLVE_EPIE, 1, wide);
    on_both(&a, &o);
    o = rules(PT_SOLVE_RPIE, 3, wide);
    on_both(&a, &o);
    a.fractions = true;
    on_both(&a, &o);
    o = rules(PT_SOLVE_RPIE, 1, wide);
    on_both(&a, &o);
    o.ptypy = true;
    on_both(&a, &o);
    o = rules(PT_SOLVE_PIE, 1, wide);
    on_both(&a, &o);
    o = rules(PT_SOLVE_PIE, 3, wide);
    on_both(&a, &o);
    o = rules(PT_SOLVE_MPIE, 1, wide);
    o.iterations = 2;
    o.momentum_every = 4; /* of 6 updates an epoch */
    o.object_momentum = 0.5;
    o.probe_momentum = 0.25;
    on_both(&a, &o);
    o = rules(PT_SOLVE_LSQML, 5, wide);
    on_both(&a, &o);
    o.opr = 2;
    on_both(&a, &o);
    o.modes = 2;
    o.opr = 1;
    on_both(&a, &o);
    o.opr = 0;
    o.poisson = true;
    o.position_start = 0;
    on_both(&a, &o);
    a.fractions = false;
    o = rules(PT_SOLVE_LSQML, 4, wide);
    o.opr = 1;
    on_both(&a, &o);
    o.batching = PT_BATCH_COMPACT;
    on_both(&a, &o);
}

TEST(whole_images_of_64_in_double)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    all_rules((scene){.n = 64, .patterns = 6, .most = 1e-12}, true);
}
TEST(whole_images_in_single)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    all_rules((scene){.n = 64, .patterns = 6, .most = 3e-5}, false);
    const scene large = {.n = 128, .patterns = 3, .most = 3e-5};
    pt_solve_options o = rules(PT_SOLVE_LSQML, 2, false);
    on_both(&large, &o);
    o = rules(PT_SOLVE_EPIE, 1, false);
    on_both(&large, &o);
}
TEST(lines_of_other_lengths)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    all_rules((scene){.n = 22, .patterns = 6, .most = 1e-12}, true);
}
/* Chunks of the probe's sum, and patterns of a tile that are more than its list holds. */
TEST(large_batches)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    const scene a = {.n = 16, .patterns = 301, .fractions = true, .most = 1e-12};
    const pt_solve_options o = rules(PT_SOLVE_LSQML, 300, true);
    on_both(&a, &o);
}

/* Pieces that are sent while others are read: the same bits as of patterns that stay. */
TEST(pieces)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    const scene a = {.n = 32, .patterns = 97, .masked = true};
    pt_solve_options o = rules(PT_SOLVE_LSQML, 4, false);
    ps_case c[2];
    pt_solver *s[2];
    o.iterations = 3;
    for (int d = 0; d < 2; d++) {
        open_scene(&c[d], &a, d ? "1M" : NULL, true);
        s[d] = ps_solve(&c[d], &o);
    }
    IS_TRUE(s[0]->frames && !s[1]->frames);
    LE_F64((double)s[1]->piece, 50);
    SAME_BYTES(fth_tensor_view(s[0]->object), fth_tensor_view(s[1]->object),
               fth_tensor_bytes(s[0]->object));
    SAME_BYTES(fth_tensor_view(s[0]->probe), fth_tensor_view(s[1]->probe),
               fth_tensor_bytes(s[0]->probe));
    for (int d = 0; d < 2; d++) {
        pt_solver_destroy(s[d]);
        ps_close(&c[d]);
    }
}

TEST_MAIN()
