/* test_look_filters.c - what filters of views come to, against plain loops.
 * seconds: 2
 */
#include "testing/engine/op_harness.h"
#include "testing/engine/planned.h"

#include "graph/graph.h"

#include <math.h>
#include <stdlib.h>

static void numbers_of(fth_val v, double *out)
{
    void *data = malloc((size_t)(t_count(v) * fth_dtype_size(fth_val_dtype(v))));
    t_planned(v.graph->ctx, v.graph, v, data);
    for (int64_t i = 0; i < t_count(v); i++) out[i] = t_get(fth_val_dtype(v), data, i);
    free(data);
}

static int64_t read_at(fth_border b, int64_t n, int64_t i)
{
    if (i >= 0 && i < n) return i;
    switch (b) {
    case FTH_BORDER_ZERO: break;
    case FTH_BORDER_CLAMP: return i < 0 ? 0 : n - 1;
    case FTH_BORDER_REFLECT: return i < 0 ? -1 - i : 2 * n - 1 - i;
    case FTH_BORDER_MIRROR: return i < 0 ? -i : 2 * n - 2 - i;
    case FTH_BORDER_WRAP: return i < 0 ? i + n : i - n;
    }
    return -1;
}

TEST(a_correlation_of_two_axes_is_the_plain_double_sum)
{
    enum { Y = 11, X = 140, TY = 3, TX = 6 };
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_WRAP; b++) {
        fth_graph *g = t_planned_graph("c=2 y=11 x=140 ty=3 tx=6");
        t_random r = t_random_make(6);
        const fth_val v = t_noise(g, "v", FTH_F64, "c y x", &r),
                      w = t_noise(g, "w", FTH_F64, "ty tx", &r);
        const fth_val out = fth_correlate(v, "y x", w, "ty tx", b);
        const double *in = t_data(v), *weight = t_data(w);
        double got[2 * Y * X];
        numbers_of(out, got);
        for (int64_t i = 0; i < 2 * Y * X; i++) {
            const int64_t c = i / (Y * X), y = i / X % Y, x = i % X;
            double want = 0;
            for (int64_t k = 0; k < TY * TX; k++) {
                const int64_t iy = read_at(b, Y, y + k / TX - TY / 2),
                              ix = read_at(b, X, x + k % TX - TX / 2);
                if (iy >= 0 && ix >= 0) want += in[(c * Y + iy) * X + ix] * weight[k];
            }
            NEAR(got[i], want, 1e-13 * (1 + fabs(want)));
        }
        t_planned_graph_free(g);
    }
}

TEST(extrema_and_sums_of_windows_of_every_dtype)
{
    static const fth_red reds[] = {FTH_RED_SUM, FTH_RED_MIN, FTH_RED_MAX};
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int j = 0; j < 3; j++) {
            const fth_dtype t = (fth_dtype)k;
            if (j > 0 && (fth_dtype_is_complex(t) || t == FTH_BOOL)) continue;
            fth_graph *g = t_planned_graph("y=6 x=90 t=5");
            t_random r = t_random_make(7);
            const fth_val v = t_noise(g, "v", t, "y x", &r);
            for (int64_t i = 0; j > 0 && fth_dtype_is_int(t) && i < 6 * 90; i += 11) {
                t_put(t, t_data(v), i, t_highest(t), 0);
                t_put(t, t_data(v), i == 0 ? 1 : i - 5, t_lowest(t), 0);
            }
            double got[2 * 6 * 90];
            numbers_of(
                fth_reduce_(FTH_HERE, reds[j], fth_window(v, "x", 1, "t", FTH_BORDER_REFLECT), "t"),
                got);
            for (int64_t i = 0; i < 6 * 90; i++) {
                double want = 0, most = 0;
                for (int64_t tap = 0; tap < 5; tap++) {
                    const int64_t at =
                        i / 90 * 90 + read_at(FTH_BORDER_REFLECT, 90, i % 90 + tap - 1);
                    const double x = t_get(t, t_data(v), at);
                    most = fmax(most, fabs(x));
                    if (j == 0) want += x;
                    if (j > 0) want = tap == 0 ? x : j == 1 ? fmin(want, x) : fmax(want, x);
                }
                const double unit = t == FTH_F16 || t == FTH_BF16 ? 0.01 : 1e-6;
                NEAR(got[i], want, j > 0 ? 0 : fth_dtype_is_int(t) ? 0 : unit * (1 + 5 * most));
            }
            t_planned_graph_free(g);
        }
}

TEST(rolled_and_every_second_element)
{
    fth_graph *g = t_planned_graph("a=3 x=7 half=3");
    t_random r = t_random_make(8);
    const fth_val v = t_noise(g, "v", FTH_I32, "a x", &r);
    double got[21];
    for (int64_t by = -15; by <= 15; by += 3) {
        numbers_of(fth_roll(v, "x", by), got);
        for (int64_t i = 0; i < 21; i++)
            EQ_F64(got[i / 7 * 7 + ((i + by) % 7 + 7) % 7], t_get(FTH_I32, t_data(v), i));
    }
    numbers_of(fth_neg(fth_slice_step(v, "x", 1, 2, "half")), got);
    for (int64_t i = 0; i < 9; i++)
        EQ_F64(got[i], -t_get(FTH_I32, t_data(v), i / 3 * 7 + 1 + i % 3 * 2));
    IS_TRUE(!fth_val_ok(fth_slice_step(v, "x", 3, 2, "half")));
    REFUSED(g, FTH_E_GRAPH_ATTR, "each 2 apart, are not all in 'x'");
    t_planned_graph_free(g);
    g = t_planned_graph("a=3 x=7 half=3");
    const fth_val w = t_input(g, "w", FTH_I32, "a x", NULL);
    IS_TRUE(!fth_val_ok(fth_slice_step(w, "x", 0, 0, "half")));
    REFUSED(g, FTH_E_GRAPH_ATTR, "a step of 0");
    t_planned_graph_free(g);
    g = t_planned_graph("a=3 x=7 t=2 u=2");
    const fth_val u = t_input(g, "u", FTH_F32, "a x", NULL);
    IS_TRUE(!fth_val_ok(fth_correlate(u, "a x", u, "t", FTH_BORDER_ZERO)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "axes 'a x' and taps 't' do not go in pairs");
    t_planned_graph_free(g);
}

TEST_MAIN()
