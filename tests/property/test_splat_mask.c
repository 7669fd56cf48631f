/* test_splat_mask.c - the loss under a mask against sums over pixels one by one; what lies under
 * the mask has no effect, whatever it is; differences; a mask that keeps all, and none.
 * labels: gpu
 * seconds: 3 */
#include "instruments/splat/loss/loss.h"
#include "testing/engine/op_harness.h"

#include <math.h>
#include <string.h>

enum { MOST = 48 * 40 };

typedef struct made {
    fth_graph *g;
    int64_t height, width;
    double image[3 * MOST], target[3 * MOST];
    float image32[3 * MOST], target32[3 * MOST];
    uint8_t mask[MOST];
    fth_val image_in, loss;
} made;

static made m; /* large */

/* A third is left out in blobs, and some single pixels. */
static void make(int64_t height, int64_t width, t_random *r)
{
    m.height = height;
    m.width = width;
    for (int64_t i = 0; i < 3 * height * width; i++) {
        m.image[i] = 0.5 + 0.2 * t_random_normal(r);
        m.target[i] = 0.5 + 0.2 * t_random_normal(r);
    }
    for (int64_t i = 0; i < height * width; i++) {
        const int64_t y = i / width, x = i % width;
        const bool out = (y < height / 3 && x < width / 3) || i == height * width - 2;
        m.mask[i] = out ? (uint8_t)(i % 128) : (uint8_t)(128 + i % 128);
    }
}

static void to_floats(void)
{
    for (int64_t i = 0; i < 3 * m.height * m.width; i++) {
        m.image32[i] = (float)m.image[i];
        m.target32[i] = (float)m.target[i];
    }
}

static void build(fth_dtype dtype, bool masked)
{
    char axes[80];
    snprintf(axes, sizeof axes, "i=%d j=%d c=3", (int)m.height, (int)m.width);
    to_floats();
    m.g = t_graph(axes);
    m.image_in = t_input(m.g, "image", dtype, "i j c",
                         dtype == FTH_F64 ? (void *)m.image : (void *)m.image32);
    const fth_val target = t_input(m.g, "target", dtype, "i j c",
                                   dtype == FTH_F64 ? (void *)m.target : (void *)m.target32);
    m.loss = masked ? gs_loss_masked(m.g, 0.3, m.image_in, target,
                                     t_input(m.g, "mask", FTH_U8, "i j", m.mask))
                    : gs_loss_of(m.g, 0.3, m.image_in, target);
    MADE(m.loss);
}

static bool is_kept(int64_t i, int64_t j)
{
    return m.mask[i * m.width + j] >= 128;
}

/* SSIM of one window; false: it is not averaged. */
static bool window_at(int64_t i, int64_t j, int c, double *ssim)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0, all = 0, taps[11];
    const bool crop = m.height > 10 && m.width > 10;
    if (crop && (i < 5 || i >= m.height - 5 || j < 5 || j >= m.width - 5)) return false;
    for (int t = 0; t < 11; t++) all += taps[t] = exp(-(t - 5) * (t - 5) / 4.5);
    for (int64_t s = -5; s <= 5; s++)
        for (int64_t t = -5; t <= 5; t++) {
            if (i + s < 0 || i + s >= m.height || j + t < 0 || j + t >= m.width) continue;
            if (!is_kept(i + s, j + t)) return false;
            const int64_t at = 3 * ((i + s) * m.width + j + t) + c;
            const double w = taps[s + 5] * taps[t + 5] / (all * all), a = m.image[at],
                         b = m.target[at];
            x += w * a;
            y += w * b;
            xx += w * a * a;
            yy += w * b * b;
            xy += w * a * b;
        }
    *ssim = (2 * x * y + 1e-4) * (2 * (xy - x * y) + 9e-4) /
            ((x * x + y * y + 1e-4) * (xx - x * x + yy - y * y + 9e-4));
    return true;
}

static void expect(double want[3])
{
    double l1 = 0, sum = 0;
    int64_t kept = 0, averaged = 0;
    for (int64_t i = 0; i < m.height; i++)
        for (int64_t j = 0; j < m.width; j++)
            for (int c = 0; c < 3; c++) {
                const int64_t at = 3 * (i * m.width + j) + c;
                double ssim = 0;
                kept += is_kept(i, j);
                if (is_kept(i, j)) l1 += fabs(m.image[at] - m.target[at]);
                averaged += window_at(i, j, c, &ssim);
                sum += ssim;
            }
    IS_TRUE(averaged > 0 && averaged < kept);
    want[1] = l1 / (double)kept;
    want[2] = sum / (double)averaged;
    want[0] = 0.7 * want[1] + 0.3 * (1 - want[2]);
}

static const int64_t sizes[][2] = {{24, 20}, {33, 12}, {40, 48}, {7, 9}};
enum { SIZES = 4 };

TEST(a_mask_is_a_mean_over_what_it_keeps)
{
    t_random r = t_random_make(1);
    for (int k = 0; k < SIZES; k++)
        for (int bits = 0; bits < 2; bits++) {
            const double near = bits ? 1e-6 : 2e-5; /* taps of the window have single precision */
            double want[3];
            make(sizes[k][0], sizes[k][1], &r);
            if (k == 3) memset(m.mask, 200, sizeof m.mask), m.mask[8] = 0;
            expect(want);
            build(bits ? FTH_F64 : FTH_F32, true);
            for (int o = 0; o < 3; o++) {
                double got = 0;
                t_eval_f64(o ? fth_out(m.loss, o) : m.loss, &got);
                NEAR(got, want[o], near);
            }
            t_graph_free(m.g);
        }
}

TEST(gradients_are_those_of_differences)
{
    t_random r = t_random_make(2);
    make(18, 16, &r);
    for (int i = 0; i < 3 * 18 * 16; i++) /* |x - y| has a corner */
        if (fabs(m.image[i] - m.target[i]) < 0.02) m.target[i] = m.image[i] + 0.1;
    build(FTH_F64, true);
    GRAD(m.loss, m.image_in, 1e-6);
    t_graph_free(m.g);
}

/* All outputs as bytes. */
static void evaluate(fth_dtype dtype, bool masked, double *out)
{
    build(dtype, masked);
    for (int o = 0; o < 3; o++) t_eval_f64(o ? fth_out(m.loss, o) : m.loss, out + o);
    t_eval_f64(fth_out(m.loss, GS_LOSS_GRADIENT), out + 3);
    t_graph_free(m.g);
}

TEST(what_is_left_out_has_no_effect)
{
    static double before[3 + 3 * MOST], after[3 + 3 * MOST];
    const double garbage[3] = {(double)NAN, (double)INFINITY, -1e30};
    t_random r = t_random_make(3);
    for (int k = 0; k < SIZES; k++)
        for (int bits = 0; bits < 2; bits++) {
            const fth_dtype dtype = bits ? FTH_F64 : FTH_F32;
            make(sizes[k][0], sizes[k][1], &r);
            const int64_t pixels = m.height * m.width;
            evaluate(dtype, true, before);
            for (int64_t i = 0; i < pixels; i++) {
                if (m.mask[i] >= 128) continue;
                for (int c = 0; c < 3; c++) {
                    EQ_F64(before[3 + 3 * i + c], 0);
                    m.image[3 * i + c] = garbage[c];
                    m.target[3 * i + c] = garbage[2 - c];
                }
            }
            evaluate(dtype, true, after);
            for (int64_t i = 0; i < 3 + 3 * pixels; i++) EQ_F64(after[i], before[i]);
        }
}

TEST(a_mask_that_keeps_all_changes_no_bit)
{
    static double before[3 + 3 * MOST], after[3 + 3 * MOST];
    t_random r = t_random_make(4);
    for (int k = 0; k < SIZES; k++) {
        make(sizes[k][0], sizes[k][1], &r);
        memset(m.mask, 128, sizeof m.mask);
        evaluate(FTH_F32, false, before);
        evaluate(FTH_F32, true, after);
        for (int64_t i = 0; i < 3 + 3 * m.height * m.width; i++) EQ_F64(after[i], before[i]);
    }
}

TEST(with_nothing_kept_there_is_nothing_to_learn)
{
    static double out[3 + 3 * MOST];
    t_random r = t_random_make(5);
    make(20, 24, &r);
    memset(m.mask, 127, sizeof m.mask);
    evaluate(FTH_F32, true, out);
    EQ_F64(out[0], 0);
    EQ_F64(out[1], 0);
    EQ_F64(out[2], 1);
    for (int i = 0; i < 3 * 20 * 24; i++) EQ_F64(out[3 + i], 0);
}

TEST(masks_of_other_shapes_are_refused)
{
    t_random r = t_random_make(6);
    make(12, 12, &r);
    build(FTH_F64, false);
    const fth_val target = t_input(m.g, "other", FTH_F64, "i j c", m.target);
    gs_loss_masked(m.g, 0.2, m.image_in, target, t_input(m.g, "turned", FTH_U8, "j i", m.mask));
    REFUSED(m.g, FTH_E_AXIS_MISMATCH, "is no mask of");
    t_graph_free(m.g);
}

TEST_MAIN()
