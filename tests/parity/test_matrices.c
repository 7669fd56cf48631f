/* test_matrices.c - solvers on a device where their ways part: sizes around a warp, a leaf and what
 * the library takes, few and many right-hand sides, bad conditions, faults in a batch, gradients.
 *
 * oc_run holds the device against the reference: numbers, the same bits cut, the words of errors.
 *
 * seconds: 60
 * labels: gpu
 */
#include "testing/engine/op_cut.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <float.h>
#include <math.h>

static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128};
enum { DTYPES = 4 };

typedef struct places {
    int64_t n, batch, m; /* rows, matrices, right-hand sides */
} places;

static void open_bench(oc_bench *b, places p)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    oc_open(b);
    IS_TRUE(fth_axis(b->g, "row", p.n) && fth_axis(b->g, "col", p.n));
    IS_TRUE(fth_axis(b->g, "l", p.batch) && fth_axis(b->g, "m", p.m));
}

static void *room(const fth_desc *d)
{
    void *p = calloc(1, (size_t)oc_bytes(d) + 64);
    IS_TRUE(p != NULL);
    return p;
}

/* Walk over the elements of a batch of matrices: row, column, and the number of the matrix. */
typedef struct element {
    int64_t at, i, j, l;
} element;
static bool next(const fth_desc *d, int row, int col, element *e)
{
    if (++e->at >= fth_desc_count(d)) return false;
    int64_t left = e->at;
    e->l = 0;
    for (int k = d->n_axes - 1; k >= 0; k--) {
        const int64_t index = left % d->size[k];
        left /= d->size[k];
        if (k == row)
            e->i = index;
        else if (k == col)
            e->j = index;
        else
            e->l = index;
    }
    return true;
}

/* Small numbers and a heavy diagonal: positive definite, and good as a triangle too. */
static void fill(const fth_desc *d, int row, int col, void *data)
{
    t_random r = t_random_make((uint64_t)(d->size[row] * 7 + d->dtype));
    const double heavy = 2.0 + 4.0 * sqrt((double)d->size[row]);
    for (element e = {.at = -1}; next(d, row, col, &e);) {
        const double re = t_random_normal(&r), im = t_random_normal(&r);
        t_put(d->dtype, data, e.at, e.i == e.j ? heavy : re, e.i == e.j ? 0.0 : im);
    }
}

/* What to put on the diagonal of one matrix. */
typedef struct fault {
    int64_t l, i;
    double value;
} fault;
static void spoil(const fth_desc *d, int row, int col, void *data, fault f)
{
    for (element e = {.at = -1}; next(d, row, col, &e);)
        if (e.l == f.l && e.i == f.i && e.j == f.i) t_put(d->dtype, data, e.at, f.value, 0.0);
}

static void end(oc_bench *b, oc_case *c)
{
    for (int i = 0; i < c->node->n_in; i++) free(c->in[i]);
    for (int i = 0; i < c->node->n_out; i++) free(c->out[i]);
    oc_close(b);
}

/* ---- Cholesky ---- */

static void factor(const char *axes, places p, fth_dtype t, int n_faults, const fault *faults)
{
    oc_bench b;
    open_bench(&b, p);
    const fth_node *node = oc_node(&b, fth_cholesky(oc_in(&b, "A", t, axes), "row", "col"));
    const int row = node->out[0].row, col = node->out[0].col;
    oc_case c = {.node = node, .in = {room(&node->in[0])}, .out = {room(&node->out[0])}};
    fill(&node->in[0], row, col, c.in[0]);
    for (int i = 0; i < n_faults; i++) spoil(&node->in[0], row, col, c.in[0], faults[i]);
    EQ_I64(oc_run(&c), n_faults ? FTH_E_NUMERIC : FTH_OK);
    end(&b, &c);
}

static const int64_t sizes[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 50, 63, 64, 65, 130};
enum { SIZES = 14 };

TEST(factors_of_every_size)
{
    for (int i = 0; i < SIZES; i++)
        for (int t = 0; t < DTYPES; t++) {
            for (int way = (i + t) % t_one_in(1, 2); way < 2; way += t_one_in(1, 2))
                factor(way ? "l col row" : "l row col", (places){sizes[i], way ? 2 : 5, 1},
                       dtypes[t], 0, NULL);
        }
    factor("row l col", (places){70, 3, 1}, FTH_F32, 0, NULL);
    factor("row col l", (places){70, 3, 1}, FTH_C128, 0, NULL);
}

/* By blocks: the last one full or not, more than one panel, more than one strip of columns. */
TEST(factors_by_blocks)
{
    if (t_one_in(1, 2) == 1) factor("row col", (places){600, 1, 1}, FTH_F32, 0, NULL);
    factor("row col", (places){640, 1, 1}, FTH_F64, 0, NULL);
    factor("l col row", (places){530, 2, 1}, FTH_F64, 0, NULL);
    factor("row l col", (places){513, 2, 1}, FTH_F32, 0, NULL);
    factor("col row", (places){1100, 1, 1}, FTH_F32, 0, NULL);
    if (!t_slowed()) factor("row col", (places){1700, 1, 1}, FTH_F64, 0, NULL);
}

TEST(factors_of_the_library)
{
    factor("col row", (places){520, 1, 1}, FTH_C128, 0, NULL);
    factor("row l col", (places){513, 2, 1}, FTH_C64, 0, NULL);
}

/* Number k of a table of ways to try one thing: all of them, or in a sample the one whose turn it
 * is, so that each is tried with some of the sizes and dtypes. */
static bool is_due(int turn, int k, int ways)
{
    return t_one_in(1, ways) == 1 || (turn + k) % ways == 0;
}

/* The first matrix that has none is named, with the order of the minor. */
TEST(no_factor)
{
    static const int64_t n[] = {1, 5, 33, 50, 64, 130, 530};
    for (int i = 0; i < 7; i++) {
        const places p = {n[i], n[i] > 500 ? 2 : 7, 1};
        const fault last = {p.batch - 1, n[i] - 1, -1.0},
                    both[] = {{p.batch - 1, 0, -1.0}, {p.batch - 2, n[i] * 4 / 5, -2.0}},
                    nan = {1, n[i] / 2, (double)NAN}, zero = {0, n[i] / 3, 0.0};
        for (int t = 0; t < DTYPES; t++) {
            if (n[i] > 64 && t % 2) continue;
            if (is_due(i + t, 0, 2)) factor("l row col", p, dtypes[t], 1, &last);
            if (is_due(i + t, 1, 2)) factor("l row col", p, dtypes[t], 2, both);
            if (is_due(i + t, 0, 2)) factor("l col row", p, dtypes[t], 1, &nan);
            if (is_due(i + t, 1, 2)) factor("l row col", p, dtypes[t], 1, &zero);
        }
    }
}

/* Hilbert's matrix, lifted a little: l l^T is it, as near as rounding lets it be. */
static void hilbert(int64_t n, fth_dtype t, double lift, double eps)
{
    oc_bench b;
    open_bench(&b, (places){n, 1, 1});
    const fth_node *node = oc_node(&b, fth_cholesky(oc_in(&b, "A", t, "row col"), "row", "col"));
    oc_case c = {.node = node,
                 .kernel = t_device_find(node),
                 .device = true,
                 .in = {room(&node->in[0])},
                 .out = {room(&node->out[0])}};
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            t_put(t, c.in[0], i * n + j, 1.0 / (double)(i + j + 1) + (i == j ? lift : 0.0), 0.0);
    OKE(oc_run(&c), &c.err);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k <= j; k++)
                sum += t_get(t, c.out[0], i * n + k) * t_get(t, c.out[0], j * n + k);
            NEAR(sum, t_get(t, c.in[0], i * n + j), (double)(n + 2) * eps);
        }
    end(&b, &c);
}

TEST(badly_conditioned_factors)
{
    hilbert(50, FTH_F32, 1e-5, (double)FLT_EPSILON / 2);
    hilbert(64, FTH_F32, 2e-5, (double)FLT_EPSILON / 2);
    hilbert(50, FTH_F64, 1e-13, DBL_EPSILON / 2);
    hilbert(130, FTH_F32, 1e-4, (double)FLT_EPSILON / 2);
    if (t_one_in(1, 2) == 1) hilbert(530, FTH_F32, 1e-4, (double)FLT_EPSILON / 2);
    hilbert(530, FTH_F64, 1e-12, DBL_EPSILON / 2);
}

/* ---- triangular systems ---- */

typedef struct system {
    const char *a, *b;
    places p;
    fth_triangle mark;
    bool adjoint;
} system_of;

/* f: what stands on a diagonal; zero has no solution. */
static void solve(system_of s, fth_dtype t, const fault *f)
{
    oc_bench b;
    open_bench(&b, s.p);
    const fth_val a = fth_mark(oc_in(&b, "A", t, s.a), s.mark, "row", "col");
    const fth_node *node =
        oc_node(&b, fth_solve_(FTH_HERE, a, oc_in(&b, "b", t, s.b), "row", "col", s.adjoint));
    oc_case c = {
        .node = node, .in = {room(&node->in[0]), room(&node->in[1])}, .out = {room(&node->out[0])}};
    t_random r = t_random_make(5);
    const int row = node->in[0].row, col = node->in[0].col;
    fill(&node->in[0], row, col, c.in[0]);
    if (f) spoil(&node->in[0], row, col, c.in[0], *f);
    oc_fill(&r, &node->in[1], c.in[1]);
    EQ_I64(oc_run(&c), f && f->value == 0.0 ? FTH_E_NUMERIC : FTH_OK);
    end(&b, &c);
}

/* Both triangles, plain and adjoint; in a sample one of the four after the other. */
static void solve_ways(const char *a, const char *b, const char *b_adjoint, places p, fth_dtype t,
                       const fault *f)
{
    static int turn;
    turn++;
    for (int way = 0; way < 4; way++)
        if (is_due(turn, way, 4))
            solve((system_of){a, way % 2 ? b_adjoint : b, p, way < 2 ? FTH_LOWER : FTH_UPPER,
                              way % 2},
                  t, f);
}

TEST(systems_of_every_size)
{
    for (int i = 0; i < SIZES; i++)
        for (int t = 0; t < DTYPES; t++)
            solve_ways("l row col", "l row", "l col", (places){sizes[i], 3, 1}, dtypes[t], NULL);
}

TEST(few_and_many_right_hand_sides)
{
    static const int64_t n[] = {1, 17, 33, 64, 70, 130}, m[] = {0, 2, 5, 31, 32, 70};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            const fth_dtype t = dtypes[(i + j) % DTYPES];
            solve_ways("l row col", "l row m", "l col m", (places){n[i], 2, m[j]}, t, NULL);
            solve_ways("l col row", "m l row", "m l col", (places){n[i], 2, m[j]}, t, NULL);
        }
    for (int t = 0; t < DTYPES; t++) {
        solve_ways("row col", "row m", "col m", (places){64, 1, 40}, dtypes[t], NULL);
        solve_ways("row l col", "row m l", "col m l", (places){40, 2, 33}, dtypes[t], NULL);
    }
}

/* Large enough for products of the library, cut along right-hand sides on the real device. */
TEST(large_systems)
{
    for (int t = 0; t < DTYPES; t++) {
        solve_ways("row col", "row m", "col m", (places){580, 1, 40}, dtypes[t], NULL);
        solve((system_of){"col row", "m row", {580, 1, 20}, FTH_LOWER, false}, dtypes[t], NULL);
        solve((system_of){"row col", "m col", {580, 1, 20}, FTH_LOWER, true}, dtypes[t], NULL);
    }
    solve((system_of){"col row", "row m", {580, 1, 1100}, FTH_UPPER, false}, FTH_F32, NULL);
}

/* Numbers whose reciprocals are zero, or are held with few digits. */
TEST(extreme_diagonals)
{
    static const double f32[] = {(double)INFINITY, 3e38, 1e-25},
                        f64[] = {(double)INFINITY, 1.7e308, 1e-200};
    for (int i = 0; i < 3; i++) {
        const fault one = {1, 20, f32[i]}, other = {1, 20, f64[i]};
        for (int64_t m = 1; m < 50; m += 39) {
            solve_ways("l row col", "l row m", "l col m", (places){40, 2, m}, FTH_F32, &one);
            solve_ways("l row col", "l row m", "l col m", (places){40, 2, m}, FTH_F64, &other);
        }
    }
}

/* The factor of Hilbert's matrix, lifted a little: whatever x is, l x is near b. */
static void hilbert_system(int64_t n, fth_dtype t, double lift, double eps)
{
    oc_bench b;
    open_bench(&b, (places){n, 1, 20});
    const fth_val a = fth_mark(oc_in(&b, "A", t, "row col"), FTH_LOWER, "row", "col");
    const fth_node *node = oc_node(&b, fth_solve(a, oc_in(&b, "b", t, "row m"), "row", "col"));
    oc_case c = {.node = node,
                 .kernel = t_device_find(node),
                 .device = true,
                 .in = {room(&node->in[0]), room(&node->in[1])},
                 .out = {room(&node->out[0])}};
    double *l = calloc((size_t)(n * n), sizeof *l);
    IS_TRUE(l != NULL);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 1.0 / (double)(i + j + 1) + (i == j ? lift : 0.0);
            for (int64_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
            t_put(t, c.in[0], i * n + j, l[i * n + j], 0.0);
        }
    t_random r = t_random_make(5);
    for (int64_t i = 0; i < n * 20; i++) t_put(t, c.in[1], i, t_random_normal(&r), 0.0);
    OKE(oc_run(&c), &c.err);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < 20; j++) {
            double sum = 0.0, size = 0.0;
            for (int64_t k = 0; k <= i; k++) {
                const double term = t_get(t, c.in[0], i * n + k) * t_get(t, c.out[0], k * 20 + j);
                sum += term, size += fabs(term);
            }
            NEAR(sum, t_get(t, c.in[1], i * 20 + j), 32.0 * eps * size);
        }
    free(l);
    end(&b, &c);
}

TEST(badly_conditioned_systems)
{
    hilbert_system(64, FTH_F32, 1e-5, (double)FLT_EPSILON);
    if (t_one_in(1, 2) == 1) hilbert_system(530, FTH_F32, 1e-5, (double)FLT_EPSILON);
    hilbert_system(530, FTH_F64, 1e-13, DBL_EPSILON);
}

TEST(no_solution)
{
    static const int64_t n[] = {1, 33, 64, 130, 530};
    for (int i = 0; i < 5; i++) {
        const fault last = {2, n[i] - 1, 0.0}, middle = {1, n[i] / 2, 0.0};
        solve_ways("l row col", "l row", "l col", (places){n[i], 3, 1}, FTH_F32, &last);
        solve_ways("l row col", "l row m", "l col m", (places){n[i], 3, 40}, FTH_F64, &middle);
        solve_ways("l row col", "l row m", "l col m", (places){n[i], 3, 40}, FTH_C64, &last);
    }
}

/* ---- eigenvectors ---- */

/* All values are equal: they keep their order, and so do the vectors. */
TEST(equal_values_keep_their_order)
{
    oc_bench b;
    open_bench(&b, (places){40, 1, 1});
    const fth_node *node = oc_node(&b, fth_eigh(oc_in(&b, "A", FTH_F64, "row col"), "row", "col"));
    oc_case c = {.node = node,
                 .in = {room(&node->in[0])},
                 .out = {room(&node->out[0]), room(&node->out[1])}};
    for (int64_t i = 0; i < 40; i++) t_put(FTH_F64, c.in[0], i * 41, 2.0, 0.0);
    OKE(oc_run(&c), &c.err);
    end(&b, &c);
}

/* ---- gradients: each node of them on the device ---- */

/* w * |v|^2 over every axis, with w of its own for each element. */
static fth_val loss_of(fth_val v)
{
    char axes[256], name[32];
    t_random r = t_random_make(99);
    MADE(v);
    fth__desc_axes(v.graph, fth__val_desc(v), axes, sizeof axes);
    snprintf(name, sizeof name, "w%u", (unsigned)v.id);
    return fth_sum(fth_mul(fth_abs2(v), t_noise(v.graph, name, FTH_F64, axes, &r)), axes);
}

static fth_val conjugate(fth_val v)
{
    return fth_dtype_is_complex(fth_val_dtype(v)) ? fth_conj(v) : v;
}

/* x x^H and something on its diagonal. */
static fth_val definite(fth_val x)
{
    static fth_c128 on[36];
    static double real[36];
    const bool complex = fth_dtype_is_complex(fth_val_dtype(x));
    for (int i = 0; i < 36; i++) real[i] = on[i].re = i % 7 == 0 ? 1.0 + 0.3 * i : 0.0;
    const fth_val eye = t_input(x.graph, "eye", fth_val_dtype(x), "row col",
                                complex ? (const void *)on : (const void *)real);
    return fth_add(fth_dot(x, conjugate(fth_rename(x, "row", "col")), "k"), fth_expand(eye, "l"));
}

static void gradient(fth_dtype t, int which)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    fth_graph *g = t_graph("l=2 row=6 col=6 k=8 m=3");
    t_random r = t_random_make(3), s = t_random_make(4);
    t_cuts(2);
    const fth_val x = t_noise(g, "x", t, "l row k", &r), a = definite(x);
    const fth_val b = t_noise(g, "b", t, which == 2 ? "l col m" : "l row m", &s);
    const fth_val l = which < 3 ? fth_cholesky(a, "row", "col") : a;
    const fth_val v = which == 0   ? l
                      : which == 1 ? fth_solve(l, b, "row", "col")
                      : which == 2 ? fth_solve_t(l, b, "row", "col")
                      : which == 3 ? fth_inverse(a, "row", "col")
                                   : fth_eigh(a, "row", "col");
    GRAD(loss_of(v), x, 1e-6);
    t_cuts(8);
    t_graph_free(g);
}

TEST(gradients)
{
    for (int which = 0; which < 5; which++) {
        gradient(FTH_F64, which);
        gradient(FTH_C128, which);
    }
}

TEST_MAIN()
