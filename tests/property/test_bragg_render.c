/* test_bragg_render.c - scenes with every option drawn at random: the loops of each instruction set
 * against the plain one, and the operation in any pieces on any number of threads.
 * seconds: 20
 */
#include "testing/bragg.h"

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
    for (int i = 0; i < (t_slowed() ? SCENES / 20 : SCENES); i++) {
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

/* ---- pieces ---- */

/* More rows, so that there is something to cut. */
static void tall(tb_case *c, t_random *r)
{
    do {
        tb_free(c);
        tb_random(c, r);
    } while (c->mask);
    c->s.slow = t_random_i64(r, 100, 200);
    c->s.roi[3] = c->s.slow - 1;
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

TEST(any_budget_and_number_of_threads_give_the_same_bytes)
{
    t_random r = t_random_make(2);
    int latched = 0, chained = 0, cut = 0;
    for (int i = 0; i < (t_slowed() ? 4 : 40); i++) {
        tb_case c = {0};
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

TEST_MAIN()
