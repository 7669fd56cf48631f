/* test_sounding_misfit.c - the operation of the practice instrument: what it computes against the
 * formula in f64, its gradient against the derivative and against differences, at every cut and on
 * every device. seconds: 1
 * labels: gpu
 */
#include "instruments/sounding/misfit/misfit.h"
#include "testing/engine/op_harness.h"

#include <math.h>

enum { MOST = 300 };
static const float limits[] = {INFINITY, 1e-3f, 0.5f, 1.0f, 2.5f};
enum { LIMITS = sizeof limits / sizeof limits[0] };

static fth_val misfit(fth_val r, float limit)
{
    const so_misfit attr = {limit};
    return fth_custom(r.graph, &so_misfit_op, 1, &r, &attr, sizeof attr);
}

static double formula(double r, double d)
{
    return fabs(r) <= d ? r * r : d * (2 * fabs(r) - d);
}

static fth_graph *graph(int64_t n)
{
    char axes[32];
    snprintf(axes, sizeof axes, "cell=%d", (int)n);
    return t_graph(axes);
}

TEST(it_is_its_formula)
{
    t_random r = t_random_make(1);
    t_exact(true); /* products and differences alone: a device gives the same bits */
    for (int64_t n = 0; n <= MOST; n += 1 + n / 2)
        for (int k = 0; k < LIMITS; k++) {
            float out[MOST] = {0};
            fth_graph *g = graph(n);
            const fth_val in = t_noise(g, "r", FTH_F32, "cell", &r);
            float *v = t_data(in);
            if (n > 1 && k > 0) v[0] = limits[k], v[1] = -limits[k]; /* on the border */
            const fth_val cost = misfit(in, limits[k]);
            MADE(cost);
            t_eval(cost, out);
            for (int64_t i = 0; i < n; i++)
                NEAR(out[i], formula((double)v[i], (double)limits[k]),
                     3e-7 * (1 + fabs((double)out[i])));
            t_graph_free(g);
        }
}

TEST(without_a_limit_it_is_a_square)
{
    t_random r = t_random_make(2);
    float out[MOST], square[MOST];
    fth_graph *g = graph(MOST);
    const fth_val in = t_noise(g, "r", FTH_F32, "cell", &r);
    t_eval(misfit(in, INFINITY), out);
    t_eval(fth_sqr(in), square);
    SAME_BYTES(out, square, sizeof out);
    t_graph_free(g);
}

TEST(its_gradient_is_the_derivative)
{
    t_random r = t_random_make(3);
    for (int k = 0; k < LIMITS; k++) {
        const double d = (double)limits[k], h = 1e-6;
        float out[MOST];
        fth_graph *g = graph(MOST);
        const fth_val in = t_noise(g, "r", FTH_F32, "cell", &r);
        fth_val grad;
        fth_grad(fth_sum(misfit(in, limits[k]), "cell"), 1, &in, &grad);
        MADE(grad);
        t_eval(grad, out);
        for (int64_t i = 0; i < MOST; i++) {
            const double v = (double)((const float *)t_data(in))[i];
            NEAR(out[i], 2 * fmax(-d, fmin(v, d)), 1e-6 * (1 + fabs(v)));
            if (fabs(fabs(v) - d) > 2 * h) /* not across the border */
                NEAR(out[i], (formula(v + h, d) - formula(v - h, d)) / (2 * h), 1e-5);
        }
        t_graph_free(g);
    }
}

TEST(other_values_are_refused)
{
    t_random r = t_random_make(4);
    fth_graph *g = t_graph("cell=4 dim=2");
    (void)misfit(t_noise(g, "a", FTH_F64, "cell", &r), 1);
    REFUSED(g, FTH_E_DTYPE_OP, "f64 [cell=4]");
    t_graph_free(g);
    g = t_graph("cell=4 dim=2");
    (void)misfit(t_noise(g, "b", FTH_F32, "cell dim", &r), 1);
    REFUSED(g, FTH_E_DTYPE_OP, "is not f32 over one axis");
    t_graph_free(g);
}

TEST_MAIN()
