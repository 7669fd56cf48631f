/* test_bragg_written.c - the render of bragg against the same render written in operations of the
 * engine, and its derivatives against the engine's own gradients.
 * seconds: 5
 *
 * Scenes are drawn at random from everything the instrument can do; the two share no code.
 */
#include "testing/bragg/bragg.h"
#include "testing/bragg/bragg_written.h"
#include "testing/full.h"

#include <math.h>

/* What tb_random leaves alone: conventions, pivots, distances, matrices. */
static void vary(tb_case *c, t_random *r)
{
    br_scene *s = &c->s;
    static const int32_t convention[] = {BR_ADXV, BR_MOSFLM, BR_DENZO, BR_CUSTOM};
    s->convention = convention[t_random_i64(r, 0, 3)];
    s->pivot = t_random_i64(r, 0, 1) ? BR_PIVOT_SAMPLE : BR_PIVOT_BEAM;
    s->dist_is_close = t_random_i64(r, 0, 2) == 0;
    if (t_random_i64(r, 0, 3) == 0) {
        s->pix0_given = 1;
        s->pix0[0] = c->param[BR_DIST];
        s->pix0[1] = c->param[BR_XB];
        s->pix0[2] = -c->param[BR_YB];
    }
    if (t_random_i64(r, 0, 3) == 0) { /* a matrix, with or without a cell */
        s->mat_given = 1;
        s->cell_given = t_random_i64(r, 0, 1) == 0;
        for (int i = 0; i < 9; i++) s->mat[i] = (i % 4 == 0 ? 0.02 : 0) + 0.003 * t_random_f64(r);
    }
    tb_ready(c);
}

/* Also where a scene is too large for one value with all its samples. */
static void shrink(tb_case *c)
{
    br_scene *s = &c->s;
    if (s->fast > 9) s->fast = 9;
    if (s->slow > 7) s->slow = 7;
    for (int i = 0; i < 2; i++) {
        if (s->roi[i] > 8) s->roi[i] = 8;
        if (s->roi[2 + i] > 6) s->roi[2 + i] = 6;
    }
    free(c->mask); /* of other rows now */
    c->mask = NULL;
}

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i]) && fabs(v[i]) > most) most = fabs(v[i]);
    return most;
}

static void images(uint64_t stream)
{
    t_random r = t_random_make(stream);
    tb_case c;
    tb_random(&c, &r);
    shrink(&c);
    vary(&c, &r);
    tb_engine e = tb_start(1);
    br_inputs in = tb_inputs(e.g, &c);
    in.latch = br_latch(&c.s, &in);
    const int64_t n = c.s.slow * c.s.fast;
    double *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)n, sizeof *b);
    const fth_val out[2] = {br_render(&c.s, &in, FTH_F64), tw_render(&c.s, &in, c.param[BR_PHI])};
    tb_eval(&e, out, 2, 0, (double *const[]){a, b});
    const double most = largest(a, n);
    for (int64_t i = 0; i < n; i++)
        if (isfinite(a[i]) ? !(fabs(a[i] - b[i]) <= 1e-12 * most) : isfinite(b[i]) != 0)
            FAIL("scene %d, pixel %d: rendered %.17g, written %.17g, most %g", (int)stream, (int)i,
                 a[i], b[i], most);
    tb_stop(&e);
    free(a);
    free(b);
    tb_free(&c);
}

/* How far a parameter moves to change everything: differences that cancel are judged by it. */
static double natural(const tb_case *c, int p)
{
    if (p == BR_XB || p == BR_YB) return c->param[BR_DIST];
    return strcmp(br_params[p].unit, "deg") == 0 ? 1 : c->param[p];
}

/* The loss is a weighted sum of the image: its gradient is that sum of derivatives. */
static void gradients(uint64_t stream)
{
    t_random r = t_random_make(stream);
    tb_case c;
    tb_random(&c, &r);
    shrink(&c);
    vary(&c, &r);
    if (c.s.thickness == 0) c.s.oversample_thick = 0; /* captures nothing, and has no logarithm */
    tb_engine e = tb_start(1);
    br_inputs in = tb_inputs(e.g, &c);
    in.latch = br_latch(&c.s, &in);
    const int64_t n = c.s.slow * c.s.fast;
    double *bar = calloc((size_t)n, sizeof *bar), *image = calloc((size_t)n, sizeof *image);
    double *jacobian = calloc((size_t)(n * BR_PARAMS), sizeof *jacobian), grad[BR_PARAMS];
    int64_t entries = 1;
    for (int i = 0; i < 3; i++) entries *= fth_val_size(in.table, i);
    double *by_hand = calloc((size_t)entries, sizeof *by_hand),
           *by_engine = calloc((size_t)entries, sizeof *by_engine);
    t_random_fill_f64(&r, bar, n);
    const fth_val b = tb_image(&e, &c, "bar", bar);
    const fth_val loss = fth_sum(fth_mul(b, tw_render(&c.s, &in, c.param[BR_PHI])), "slow fast");
    fth_val out[5] = {br_jacobian(&c.s, &in)};
    out[1] = fth_out(out[0], 1);
    out[2] = br_table_gradient(&c.s, &in, b);
    fth_grad(loss, 2, ((fth_val[]){in.param, in.table}), &out[3]);
    tb_eval(&e, out, 5, 0, (double *const[]){jacobian, image, by_hand, grad, by_engine});
    const double top = largest(by_hand, entries);
    for (int64_t i = 0; i < entries; i++)
        if (!(fabs(by_hand[i] - by_engine[i]) <= 1e-11 * top))
            FAIL("scene %d, entry %d of the table: %.17g by hand, %.17g by the engine, most %g",
                 (int)stream, (int)i, by_hand[i], by_engine[i], top);
    double most = 0, sum[BR_PARAMS], size[BR_PARAMS];
    for (int p = 0; p < BR_PARAMS; p++) {
        sum[p] = size[p] = 0;
        for (int64_t i = 0; i < n; i++) {
            sum[p] += bar[i] * jacobian[i * BR_PARAMS + p];
            size[p] += fabs(bar[i] * jacobian[i * BR_PARAMS + p]);
        }
        most = fmax(most, size[p] * natural(&c, p));
    }
    for (int p = 0; p < BR_PARAMS; p++) {
        if (!(fabs(sum[p] - grad[p]) <= 1e-9 * size[p] + 1e-11 * most / natural(&c, p)))
            FAIL("scene %d, d/d%s: %.17g by hand, %.17g by the engine, terms add up to %g",
                 (int)stream, br_params[p].name, sum[p], grad[p], size[p]);
    }
    tb_stop(&e);
    free(bar);
    free(image);
    free(jacobian);
    free(by_hand);
    free(by_engine);
    tb_free(&c);
}

TEST(gradients_agree)
{
    for (uint64_t i = 0; i < 25; i += (uint64_t)t_one_in(1, 3)) gradients(i);
}

TEST(images_agree)
{
    for (uint64_t i = 0; i < 40; i += (uint64_t)t_one_in(1, 3)) images(i);
}

TEST_MAIN()
