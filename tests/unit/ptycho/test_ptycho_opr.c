/* test_ptycho_opr.c - what changes scale and place of the probe between epochs changes the probe of
 * every pattern alike, its eigenprobes included.
 * seconds: 5
 */
#include "testing/ptycho/ptycho_solve.h"

#include <math.h>
#include <stdlib.h>

enum { OPR = 2 };

static pt_solve_options options(void)
{
    pt_solve_options o = ps_options(PT_SOLVE_LSQML, 3);
    o.opr = OPR;
    o.wide = true;
    o.scale_every = 1000; /* planned, and called by hand */
    return o;
}

static double complex plane_at(const void *field, int64_t k, int64_t nn, int64_t i)
{
    const double *v = (const double *)field + k * 2 * nn;
    return v[i] + PS_I * v[nn + i];
}

/* [pattern row col]: the first mode as each pattern sees it. */
static double complex *probes_of(const pt_solver *s)
{
    const int64_t nn = s->n * s->n, m = s->data.patterns;
    double complex *out = malloc((size_t)(m * nn) * sizeof *out);
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < nn; i++) {
            const double *w = s->shares + j * (OPR + 1);
            out[j * nn + i] = w[0] * plane_at(fth_tensor_view(s->probe), 0, nn, i);
            for (int k = 0; k < OPR; k++)
                out[j * nn + i] += w[k + 1] * plane_at(fth_tensor_view(s->eigen), k, nn, i);
        }
    return out;
}

/* The probe of every pattern is `by` times what it was, moved by (dy, dx). */
static void compare(const pt_solver *s, const double complex *before, double by, int64_t dy,
                    int64_t dx)
{
    const int64_t n = s->n, nn = n * n, m = s->data.patterns;
    double complex *after = probes_of(s);
    double most = 0, error = 0;
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < nn; i++) {
            const int64_t y = (i / n - dy + n) % n, x = (i % n - dx + n) % n;
            const double complex want = by * before[j * nn + y * n + x];
            most = fmax(most, cabs(want));
            error = fmax(error, cabs(after[j * nn + i] - want));
        }
    LE_F64(error, 1e-12 * most);
    free(after);
}

static double power_of(const pt_solver *s)
{
    const double *v = fth_tensor_view(s->probe);
    double sum = 0;
    for (int64_t i = 0; i < s->modes * 2 * s->n * s->n; i++) sum += v[i] * v[i];
    return sum;
}

TEST(rescaling_the_object_leaves_all_exit_waves)
{
    ps_case c;
    ps_open_g9(&c, NULL, 1, false);
    const pt_solve_options o = options();
    pt_solver *s = ps_solve(&c, &o);
    double *object = fth_tensor_data(s->object);
    for (int64_t i = 0; i < 2 * s->rows * s->cols; i++) object[i] *= 3;
    const double first = object[s->rows * s->cols / 2];
    double complex *before = probes_of(s);
    OK(pt_solver_share_scale(s, NULL));
    const double by = first / ((const double *)fth_tensor_view(s->object))[s->rows * s->cols / 2];
    LE_F64(1.5, by);
    compare(s, before, by, 0, 0);
    free(before);
    pt_solver_destroy(s);
    ps_close(&c);
}

TEST(a_fixed_power_scales_eigenprobes_too)
{
    ps_case c;
    ps_open_g9(&c, NULL, 1, false);
    const pt_solve_options o = options();
    pt_solver *s = ps_solve(&c, &o);
    s->opt.probe_power = 4 * power_of(s);
    double complex *before = probes_of(s);
    OK(pt_solver_refine(s, NULL));
    compare(s, before, 2, 0, 0);
    free(before);
    pt_solver_destroy(s);
    ps_close(&c);
}

static void move(fth_tensor *t, int64_t planes, int64_t n, int64_t dy, int64_t dx)
{
    double *v = fth_tensor_data(t), *copy = malloc((size_t)(n * n) * sizeof *copy);
    for (int64_t k = 0; k < planes; k++, v += n * n) {
        for (int64_t i = 0; i < n * n; i++) copy[i] = v[i];
        for (int64_t i = 0; i < n * n; i++)
            v[i] = copy[(i / n - dy + n) % n * n + (i % n - dx + n) % n];
    }
    free(copy);
}

/* How far the probe was moved: where the value is now that its pixel 0 had. */
static void find_move(const pt_solver *s, double corner, int64_t *dy, int64_t *dx)
{
    const double *now = fth_tensor_view(s->probe);
    int64_t at = 0;
    while (at < s->n * s->n - 1 && now[at] != corner) at++;
    *dy = at / s->n;
    *dx = at % s->n;
}

TEST(eigenprobes_move_with_the_centre_of_the_probe)
{
    ps_case c;
    int64_t dy = 0, dx = 0;
    ps_open_g9(&c, NULL, 1, false);
    const pt_solve_options o = options();
    pt_solver *s = ps_solve(&c, &o);
    s->opt.centre_probe = true;
    move(s->probe, 2 * s->modes, s->n, 3, -2);
    move(s->eigen, 2 * OPR, s->n, 3, -2);
    const double corner = ((const double *)fth_tensor_view(s->probe))[0];
    double complex *before = probes_of(s);
    OK(pt_solver_refine(s, NULL));
    find_move(s, corner, &dy, &dx);
    IS_TRUE(dy != 0 && dx != 0);
    compare(s, before, 1, dy, dx);
    free(before);
    pt_solver_destroy(s);
    ps_close(&c);
}

TEST_MAIN()
