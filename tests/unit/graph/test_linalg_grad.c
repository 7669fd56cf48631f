/* test_linalg_grad.c - gradients through products, solvers, transforms and convolutions.
 *
 * Each is compared with central differences in f64, real and complex: the gradient of a real loss
 * is dL/dRe + i dL/dIm. Symmetric operands are changed symmetrically.
 * seconds: 20
 */
#include "testing/test.h"

#include <fathom/ops.h>
#include <fathom/plan.h>

#include <math.h>

typedef struct lab {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *x, *seed[3];
    int n_seed;
    fth_val in;
    t_random random;
    int64_t n; /* of the Hermitian matrix in x; 0: x is free */
} lab;

static int64_t count(const fth_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < fth_tensor_axes(t); i++) n *= fth_tensor_size(t, i);
    return n;
}

static int parts(const fth_tensor *t)
{
    return fth_dtype_is_complex(fth_tensor_dtype(t)) ? 2 : 1;
}

static fth_tensor *random_tensor(lab *l, fth_dtype t, const char *axes, fth_val *v,
                                 const char *name)
{
    int64_t size[FTH_MAX_AXES];
    fth_axis_id id[FTH_MAX_AXES];
    int n = 0;
    fth_tensor *out = NULL;
    OK(fth_axes_parse(l->g, axes, &n, id, NULL));
    for (int i = 0; i < n; i++) size[i] = fth_axis_size(l->g, fth_axis_name(l->g, id[i]));
    OK(fth_tensor_create(&out, fth_context_mem(l->ctx), name, t, n, size, NULL));
    t_random_fill_f64(&l->random, fth_tensor_data(out), count(out) * parts(out));
    *v = fth_input(l->g, name, t, axes, fth_tensor_source(out));
    return out;
}

static void open_lab(lab *l, fth_dtype t, const char *axes)
{
    *l = (lab){.random = t_random_make(5)};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    fth_err err = {0};
    OKE(fth_context_create(&l->ctx, &opt, &err), &err);
    l->g = fth_graph_create(l->ctx);
    fth_axis(l->g, "l", 2);
    fth_axis(l->g, "row", 4);
    fth_axis(l->g, "col", 4);
    fth_axis(l->g, "m", 3);
    fth_axis(l->g, "n", 5);
    fth_axis(l->g, "y", 5);
    fth_axis(l->g, "x", 6);
    fth_axis(l->g, "v", 5);
    fth_axis(l->g, "u", 6);
    fth_axis(l->g, "h", 4);
    fth_axis(l->g, "x7", 7);
    fth_axis(l->g, "ky", 2);
    fth_axis(l->g, "kx", 3);
    fth_axis(l->g, "oy", 3);
    fth_axis(l->g, "ox", 3);
    l->x = random_tensor(l, t, axes, &l->in, "x");
}

static fth_val other(lab *l, fth_dtype t, const char *axes)
{
    fth_val v;
    const char *const names[] = {"p", "q", "r"};
    l->seed[l->n_seed] = random_tensor(l, t, axes, &v, names[l->n_seed]);
    l->n_seed++;
    return v;
}

/* x = S^H-symmetric with a heavy diagonal, in [.. row col] of size 4. */
static void make_hermitian(lab *l)
{
    l->n = 4;
    double *x = fth_tensor_data(l->x);
    const int p = parts(l->x);
    for (int64_t b = 0; b < count(l->x) / 16; b++)
        for (int64_t i = 0; i < 4; i++)
            for (int64_t j = 0; j <= i; j++)
                for (int q = 0; q < p; q++) {
                    double *lo = &x[((b * 4 + i) * 4 + j) * p + q],
                           *hi = &x[((b * 4 + j) * 4 + i) * p + q];
                    if (i == j)
                        *lo = q ? 0.0 : 9.0 + 2.0 * (double)i;
                    else
                        *hi = q ? -*lo : *lo;
                }
}

/* The loss: every element of the result with a weight of its own. */
static fth_val loss_of(lab *l, fth_val v)
{
    char axes[256] = "";
    for (int i = 0; i < fth_val_axes(v); i++) {
        if (i) strcat(axes, " ");
        strcat(axes, fth_val_axis(v, i));
    }
    const fth_val w = other(l, fth_val_dtype(v), axes);
    fth_val p = fth_mul(v, w);
    if (fth_dtype_is_complex(fth_val_dtype(v)))
        p = fth_add(fth_real(p), fth_mul(fth_imag(p), fth_imag(p)));
    return fth_sum(p, axes);
}

static double run_loss(fth_plan *plan)
{
    double value = 0.0;
    const fth_sink sink = fth_scalar_sink(FTH_F64, &value);
    fth_err err = {0};
    OKE(fth_run(plan, &sink, NULL, NULL, &err), &err);
    return value;
}

/* Move element i (and its mirror image in a Hermitian matrix) by d, in part q. */
static double move(lab *l, int64_t i, int q, double d)
{
    double *x = fth_tensor_data(l->x);
    const int p = parts(l->x);
    x[i * p + q] += d;
    if (!l->n) return 1.0;
    const int64_t b = i / 16, r = i / 4 % 4, c = i % 4;
    if (r == c) return q ? 0.0 : 1.0;
    x[(b * 16 + c * 4 + r) * p + q] += q ? -d : d;
    return 2.0;
}

static void check(lab *l, fth_val out, double tol)
{
    const fth_val loss = loss_of(l, out);
    fth_val grad;
    fth_err err = {0};
    OKE(fth_grad(loss, 1, &l->in, &grad) == FTH_OK ? FTH_OK : fth_graph_check(l->g, &err), &err);
    fth_plan *plan = fth_plan_make(l->g, &loss, 1, &(fth_limits){0}, &err);
    if (!plan) OKE(err.status, &err);
    fth_plan *back = fth_plan_make(l->g, &grad, 1, &(fth_limits){0}, &err);
    if (!back) OKE(err.status, &err);
    fth_tensor *result = NULL;
    int64_t size[FTH_MAX_AXES];
    for (int i = 0; i < fth_tensor_axes(l->x); i++) size[i] = fth_tensor_size(l->x, i);
    OK(fth_tensor_create(&result, fth_context_mem(l->ctx), "grad", fth_tensor_dtype(l->x),
                         fth_tensor_axes(l->x), size, NULL));
    const fth_sink sink = fth_tensor_sink(result);
    OKE(fth_run(back, &sink, NULL, NULL, &err), &err);
    const double *g = fth_tensor_data(result);
    const double step = 1e-5;
    const int p = parts(l->x);
    for (int64_t i = 0; i < count(l->x); i++)
        for (int q = 0; q < p; q++) {
            if (l->n && (i / 4 % 4 < i % 4 || (q && i / 4 % 4 == i % 4)))
                continue; /* the mirror image moves with it */
            const double both = move(l, i, q, step);
            const double up = run_loss(plan);
            move(l, i, q, -2.0 * step);
            const double down = run_loss(plan);
            move(l, i, q, step);
            const double want = (up - down) / (2.0 * step) / both;
            if (fabs(g[i * p + q] - want) > tol * (1.0 + fabs(want)))
                FAIL("element %lld part %d: gradient %.9g, differences %.9g", (long long)i, q,
                     g[i * p + q], want);
        }
    fth_tensor_release(result);
    fth_plan_destroy(back);
    fth_plan_destroy(plan);
    fth_graph_destroy(l->g);
    fth_tensor_release(l->x);
    for (int i = 0; i < l->n_seed; i++) fth_tensor_release(l->seed[i]);
    OKE(fth_context_destroy(l->ctx, &err), &err);
}

static const fth_dtype both[] = {FTH_F64, FTH_C128};

TEST(dot_of_each_operand)
{
    static const char *const shapes[][3] = {
        {"l m n", "n row", "n"}, {"m n", "l n row", "n"}, {"m n l", "n l row", "n l"},
        {"m n", "n", "n"},       {"n", "n", "n"},         {"m", "n", ""},
    };
    lab l;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 4; k++) {
            open_lab(&l, both[k & 1], shapes[i][k >> 1]);
            const fth_val y = other(&l, both[k & 1], shapes[i][1 - (k >> 1)]);
            check(&l, k >> 1 ? fth_dot(y, l.in, shapes[i][2]) : fth_dot(l.in, y, shapes[i][2]),
                  1e-6);
        }
}

TEST(dot_squared_and_summed)
{
    lab l;
    open_lab(&l, FTH_F64, "l m n");
    check(&l, fth_sum(fth_sqr(fth_dot(other(&l, FTH_F64, "m row"), l.in, "m")), "n"), 1e-6);
}

TEST(cholesky)
{
    lab l;
    for (int k = 0; k < 2; k++) {
        open_lab(&l, both[k], "l row col");
        make_hermitian(&l);
        check(&l, fth_cholesky(l.in, "row", "col"), 1e-6);
    }
}

TEST(solve_right_hand_sides)
{
    lab l;
    for (int k = 0; k < 8; k++) {
        open_lab(&l, both[k & 1], k & 2 ? "l col m" : "l row m");
        const fth_val a =
            fth_mark(fth_add(other(&l, both[k & 1], "l row col"), fth_const(l.g, both[k & 1], 5.0)),
                     k & 4 ? FTH_UPPER : FTH_LOWER, "row", "col");
        check(&l, fth_solve_(FTH_HERE, a, l.in, "row", "col", (k & 2) != 0), 1e-6);
    }
}

TEST(solve_matrices)
{
    lab l;
    for (int k = 0; k < 8; k++) {
        open_lab(&l, both[k & 1], "row col");
        const fth_val a = fth_mark(fth_add(l.in, fth_const(l.g, both[k & 1], 5.0)),
                                   k & 4 ? FTH_UPPER : FTH_LOWER, "row", "col");
        check(&l,
              fth_solve_(FTH_HERE, a, other(&l, both[k & 1], k & 2 ? "col m" : "m row"), "row",
                         "col", (k & 2) != 0),
              1e-5);
    }
}

TEST(inverse_and_determinant)
{
    lab l;
    for (int k = 0; k < 4; k++) {
        open_lab(&l, both[k & 1], "l row col");
        check(&l, fth_out(fth_inverse(l.in, "row", "col"), k >> 1), 1e-4);
    }
}

TEST(eigenvalues_and_projections)
{
    lab l;
    for (int k = 0; k < 4; k++) {
        open_lab(&l, both[k & 1], "l row col");
        make_hermitian(&l);
        const fth_val e = fth_eigh(l.in, "row", "col");
        if (k < 2) {
            check(&l, e, 1e-6);
            continue;
        }
        check(&l, fth_abs2(fth_out(e, 1)),
              1e-5); /* vectors have a free phase, their sizes do not */
    }
}

TEST(transforms)
{
    lab l;
    for (int two = 0; two < 2; two++) {
        open_lab(&l, FTH_C128, "l y x");
        check(&l, fth_fft(l.in, two ? "y x" : "x", two ? "v u" : "u"), 1e-6);
        open_lab(&l, FTH_C128, "l y x");
        check(&l, fth_ifft(l.in, two ? "y x" : "x", two ? "v u" : "u"), 1e-6);
        open_lab(&l, FTH_F64, "l y x");
        check(&l, fth_rfft(l.in, two ? "y x" : "x", two ? "v h" : "h"), 1e-6);
        open_lab(&l, FTH_F64, "l y x7");
        check(&l, fth_rfft(l.in, two ? "y x7" : "x7", two ? "v h" : "h"), 1e-6);
        open_lab(&l, FTH_C128, "l y h");
        check(&l, fth_irfft(l.in, two ? "y h" : "h", two ? "v x" : "x"), 1e-6);
        open_lab(&l, FTH_C128, "l y h");
        check(&l, fth_irfft(l.in, two ? "y h" : "h", two ? "v x7" : "x7"), 1e-6);
    }
}

TEST(convolutions)
{
    const fth_conv conv = {"y", "x", "oy", "ox", "m", "ky", "kx", 2, 1, 1, 1};
    lab l;
    open_lab(&l, FTH_F64, "l m y x");
    check(&l, fth_conv2d(l.in, other(&l, FTH_F64, "n m ky kx"), &conv), 1e-6);
    open_lab(&l, FTH_F64, "n m ky kx");
    check(&l, fth_conv2d(other(&l, FTH_F64, "l m y x"), l.in, &conv), 1e-6);
}

TEST_MAIN()
