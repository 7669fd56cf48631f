/* test_bragg_render.c - scenes with every option drawn at random: the loops of each instruction set
 * against the plain one, and the operation in any pieces on any number of threads.
 * seconds: 20 labels: gpu
 */
#include "testing/bragg/bragg.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>

enum { SCENES = 400 };

typedef struct pictures {
    int64_t n;
    double *plain, *plain_omega, *fast, *fast_omega;
} pictures;

static double *numbers(int64_t n)
{
    double *v = calloc((size_t)n, sizeof *v);
    if (!v) FAIL("no memory for a picture");
    return v;
}

static pictures pictures_of(const tb_case *c)
{
    const int64_t n = c->s.slow * c->s.fast;
    return (pictures){n, numbers(n), numbers(n), numbers(n), numbers(n)};
}

static void pictures_free(pictures *p)
{
    free(p->plain);
    free(p->plain_omega);
    free(p->fast);
    free(p->fast_omega);
}

/* Everything that makes one scene other than the next, for a message. */
static const char *words(const tb_case *c, char *text, size_t bytes)
{
    const br_scene *s = &c->s;
    snprintf(text, bytes,
             "%dx%d shape %d N %g %g %g quirks %04x hkls %d cubic %d layers %d over %d thick %d "
             "polar %d omega %d sources %d phis %d domains %d dmin %g water %g curved %d point %d "
             "kahn %g mask %d chain %lld",
             (int)s->slow, (int)s->fast, (int)s->shape, s->cells[0], s->cells[1], s->cells[2],
             (unsigned)s->quirks, (int)s->hkls, s->interpolate, (int)s->layers, (int)s->oversample,
             s->oversample_thick, s->oversample_polar, s->oversample_omega, (int)s->sources,
             (int)s->phis, (int)s->mosaics, s->dmin, s->water, s->curved, s->point_pixel, s->kahn,
             c->mask != NULL, (long long)s->chain_start);
    return text;
}

static double largest(const double *v, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i])) max = fmax(max, fabs(v[i]));
    return max;
}

static void near(const tb_case *c, const double *got, const double *want, int64_t n, double rel,
                 double of_max, const char *what, int level, int scene)
{
    char text[512];
    const double max = largest(want, n);
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i] && !(fabs(got[i] - want[i]) <= rel * fabs(want[i]) + of_max * max))
            FAIL("scene %d, level %d, %s of pixel %d: %.17g, not %.17g (largest %.3g)\n  %s", scene,
                 level, what, (int)i, got[i], want[i], max, words(c, text, sizeof text));
}

static void one_level(const tb_case *c, const pictures *p, int level, int64_t outside, int scene)
{
    const br_loops *loops = br_loops_at(level, BR_F64);
    if (!loops) return;
    const int64_t got = tb_loops(c, loops, p->fast, p->fast_omega);
    near(c, p->fast, p->plain, p->n, 1e-12, 1e-15, "value", level, scene);
    near(c, p->fast_omega, p->plain_omega, p->n, 1e-14, 0, "solid angle", level, scene);
    EQ_I64(got, outside);
}

TEST(loops_of_every_instruction_set_agree_with_the_plain_one)
{
    t_random r = t_random_make(1);
    for (int i = 0; i < (t_slowed() ? SCENES / 20 : SCENES / t_one_in(1, 4)); i++) {
        tb_case c;
        tb_random(&c, &r);
        pictures p = pictures_of(&c);
        const br_loops plain = {br_render_plain, br_latch_plain};
        const int64_t outside = tb_loops(&c, &plain, p.plain, p.plain_omega);
        one_level(&c, &p, 1, outside, i);
        one_level(&c, &p, 3, outside, i);
        one_level(&c, &p, 4, outside, i);
        pictures_free(&p);
        tb_free(&c);
    }
}

/* ---- single precision ---- */

static void single_level(tb_case *c, const pictures *p, int level, int scene)
{
    const br_loops *loops = br_loops_at(level, BR_F32);
    if (!loops) return;
    c->s.precision = BR_F32;
    tb_loops(c, loops, p->fast, p->fast_omega);
    c->s.precision = BR_F64;
    double xx = 0, yy = 0, xy = 0, x = 0, y = 0;
    for (int64_t i = 0; i < p->n; i++) {
        x += p->fast[i], y += p->plain[i];
        xx += p->fast[i] * p->fast[i], yy += p->plain[i] * p->plain[i];
        xy += p->fast[i] * p->plain[i];
    }
    const double n = (double)p->n;
    const double r = (xy - x * y / n) / sqrt((xx - x * x / n) * (yy - y * y / n));
    char text[512];
    if (!(r >= 0.9999 && fabs(x - y) <= 1e-3 * y))
        FAIL("scene %d, level %d: correlation %.8g, sum %.8g, not %.8g\n  %s", scene, level, r, x,
             y, words(c, text, sizeof text));
}

TEST(single_precision_is_near)
{
    t_random r = t_random_make(3);
    for (int i = 0; i < (t_slowed() ? 4 : 40); i++) {
        tb_case c;
        tb_random(&c, &r);
        tb_detector(&c, 48, 0.5, 80);
        c.s.quirks = i % 2 ? BR_QUIRKS_C : 0;
        c.s.oversample_thick = c.s.oversample_polar = c.s.oversample_omega = 0; /* may overflow */
        c.s.dmin = 0;
        c.s.shape = BR_SQUARE + i % 3; /* a tophat has edges */
        c.s.fudge = c.s.shape == BR_GAUSS ? 0.01 : 1;
        for (int k = 0; k < 3; k++) c.s.cells[k] = (double)t_random_i64(&r, 2, 20);
        free(c.mask);
        c.mask = NULL;
        tb_ready(&c);
        pictures p = pictures_of(&c);
        const br_loops plain = {br_render_plain, br_latch_plain};
        tb_loops(&c, &plain, p.plain, p.plain_omega);
        for (int level = 1; level <= 4; level++) single_level(&c, &p, level, i);
        pictures_free(&p);
        tb_free(&c);
    }
}

/* ---- pieces ---- */

/* More rows, so that there is something to cut. */
static void tall(tb_case *c, t_random *r)
{
    tb_random(c, r);
    c->s.slow = t_random_i64(r, 100, 200);
    c->s.roi[3] = c->s.slow - 1;
    if (c->mask) {
        free(c->mask);
        c->mask = calloc((size_t)(c->s.slow * c->s.fast), sizeof *c->mask);
        if (!c->mask) FAIL("no memory for a mask");
        for (int64_t i = 0; i < c->s.slow * c->s.fast; i++)
            c->mask[i] = (uint16_t)t_random_i64(r, 0, 2);
    }
    tb_ready(c);
}

typedef struct outputs {
    float *image;
    double *omega;
    int64_t *outside, latch;
} outputs;

static outputs render(const tb_case *c, tb_run run, bool *refused)
{
    outputs o = {calloc((size_t)(c->s.slow * c->s.fast), sizeof(float)),
                 calloc((size_t)c->s.slow, sizeof(double)),
                 calloc((size_t)c->s.slow, sizeof(int64_t)), 0};
    if (!o.image || !o.omega || !o.outside) FAIL("no memory for outputs");
    run.dtype = FTH_F32;
    run.image = o.image;
    run.omega = o.omega;
    run.outside = o.outside;
    tb_render(c, &run);
    o.latch = run.latch;
    *refused = run.refused;
    return o;
}

static void outputs_free(outputs *o)
{
    free(o->image);
    free(o->omega);
    free(o->outside);
}

/* The first sample that dmin leaves, by looking at each; -1: none. */
static int64_t first_left(const tb_case *c, const br_view *v)
{
    const br_scene *s = &c->s;
    const int64_t O = s->oversample;
    int64_t group = 0;
    for (int64_t slow = 0; slow < s->slow; slow++) {
        const br_row row = {.slow = slow,
                            .n = s->fast,
                            .mask = c->mask ? c->mask + slow * s->fast : NULL,
                            .mask_step = 1};
        for (int64_t i = 0; i < s->fast; i++)
            for (int64_t at = 0; at < s->layers * O * O; at++) {
                double pos[3], d[3], q[3], stol;
                br_position(v, &row, i, (int64_t[]){at / (O * O), at / O % O, at % O}, pos);
                br_unit(pos, d);
                for (int64_t j = 0; j < s->sources; j++, group++)
                    if (slow >= s->roi[2] && slow <= s->roi[3] && br_rendered(v, &row, i) &&
                        br_scatter(v, j, d, q, &stol))
                        return group * s->phis * s->mosaics;
            }
    }
    return -1;
}

/* The same number is found without looking at each, wherever dmin begins to cut. */
TEST(the_chain_begins_at_the_first_sample_that_dmin_leaves)
{
    t_random r = t_random_make(7);
    int inside = 0, none = 0;
    for (int i = 0; i < (t_slowed() ? 30 : 900); i++) {
        tb_case c;
        tall(&c, &r);
        br_scene *s = &c.s;
        s->oversample = t_random_i64(&r, 1, 12);
        br_scene one = *s; /* cells do not matter */
        one.phis = one.mosaics = 1;
        one.mosaic_given = 0;
        one.precision = BR_F64;
        double *work = numbers((int64_t)br_view_bytes(&one) / 8 + 1);
        br_view v;
        br_view_make(&v, &one, &(br_arrays){.param = c.param, .source = c.source}, work);
        v.scene = s;
        double pos[3], d[3], q[3], stol;
        const br_row row = {.slow = t_random_i64(&r, s->roi[2], s->roi[3]), .n = s->fast};
        br_position(&v, &row, t_random_i64(&r, 0, s->fast - 1), (int64_t[]){0, 0, 0}, pos);
        br_unit(pos, d);
        (void)br_scatter(&v, 0, d, q, &stol);
        s->dmin = 0.5 / stol * (0.98 + 0.04 * t_random_f64(&r));
        s->quirks |= BR_QUIRK_PHI_CARRYOVER;
        tb_ready(&c);
        const int64_t want = first_left(&c, &v);
        if (s->chain_start >= 0 || want < 0) EQ_I64(s->chain_start, want);
        inside += s->chain_start > 0;
        none += want < 0;
        free(work);
        tb_free(&c);
    }
    printf("%d begin inside, %d nowhere\n", inside, none);
    IS_TRUE(t_slowed() || (inside > 20 && none > 2));
}

TEST(any_budget_and_number_of_threads_give_the_same_bytes)
{
    t_random r = t_random_make(2);
    int latched = 0, chained = 0, cut = 0;
    for (int i = 0; i < (t_slowed() ? 4 : 40); i++) {
        tb_case c;
        tall(&c, &r);
        bool refused;
        outputs whole = render(&c, (tb_run){.threads = 1}, &refused);
        latched += whole.latch != INT64_MAX;
        chained += c.s.chain_start >= 0;
        for (int k = 0; k < 4; k++) {
            const tb_run run = {.threads = (int)t_random_i64(&r, 1, 3),
                                .through_a_file = true,
                                .may_not_fit = true,
                                .memory_bytes = (uint64_t)t_random_i64(&r, 4, 80) << 10};
            outputs piece = render(&c, run, &refused);
            cut += !refused;
            if (!refused) {
                EQ_I64(piece.latch, whole.latch);
                SAME_BYTES(piece.image, whole.image, c.s.slow * c.s.fast * 4);
                SAME_BYTES(piece.omega, whole.omega, c.s.slow * 8);
                SAME_BYTES(piece.outside, whole.outside, c.s.slow * 8);
            }
            outputs_free(&piece);
        }
        outputs_free(&whole);
        tb_free(&c);
    }
    printf("%d latched, %d with a chain, %d cut\n", latched, chained, cut);
    IS_TRUE(t_slowed() || (latched > 0 && chained > 0 && cut > 40));
}

/* Every node by itself: cut along rows, in slices of larger boxes, with outputs left out. */
TEST(pieces_of_the_operations_give_the_same_bits)
{
    t_random r = t_random_make(5);
    for (int i = 0; i < (t_slowed() ? 4 : 30 / t_one_in(1, 3)); i++) {
        tb_case c;
        tb_random(&c, &r);
        const br_scene *s = &c.s;
        const int64_t nh = s->hkls ? s->h_max - s->h_min + 2 : 1;
        const int64_t nk = s->hkls ? s->k_max - s->k_min + 2 : 1;
        const int64_t nl = s->hkls ? s->l_max - s->l_min + 2 : 1;
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
        const fth_val image = br_render(s, &in, FTH_F64);
        MADE(image);
        double *out = numbers(s->slow * s->fast);
        t_eval(image, out);
        free(out);
        t_graph_free(g);
        tb_free(&c);
    }
}

TEST_MAIN()
