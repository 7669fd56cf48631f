/* test_cholesky.c - factors against the obvious loop, in every layout, in blocks, and refusals.
 * seconds: 10 labels: gpu
 */
#include "cpu/blas.h"
#include "run/team.h"
#include "testing/engine/op_cut.h"
#include "testing/full.h"

#include <math.h>

extern const fth_kernel fth__cpu_cholesky;
static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128};

static double allowed(fth_dtype t)
{
    return t == FTH_F32 || t == FTH_C64 ? 2e-5 : 1e-12;
}

/* Put v at (i, j) of every matrix, with its conjugate at (j, i). */
static void put(const fth_desc *d, void *data, int64_t at, double re, double im)
{
    if (d->dtype == FTH_F32) ((float *)data)[at] = (float)re;
    if (d->dtype == FTH_F64) ((double *)data)[at] = re;
    if (d->dtype == FTH_C64) ((fth_c64 *)data)[at] = (fth_c64){(float)re, (float)im};
    if (d->dtype == FTH_C128) ((fth_c128 *)data)[at] = (fth_c128){re, im};
}

/* A Hermitian matrix with a heavy diagonal; the upper triangle holds NaN, which must not be read.
 */
static void fill(t_random *r, const fth_node *node, void *data)
{
    const fth_desc *d = &node->in[0];
    const int row = node->out[0].row, col = node->out[0].col;
    int64_t index[FTH_MAX_AXES] = {0};
    for (int64_t at = 0; at < fth_desc_count(d); at++) {
        const int64_t i = index[row], j = index[col];
        if (i == j)
            put(d, data, at, 4.0 + 3.0 * sqrt((double)d->size[row]), 0.0);
        else if (i > j)
            put(d, data, at, t_random_normal(r), t_random_normal(r));
        else
            put(d, data, at, (double)NAN, (double)NAN);
        for (int k = d->n_axes - 1; k >= 0 && ++index[k] == d->size[k]; k--) index[k] = 0;
    }
}

static void check(const char *axes, int64_t n, int64_t batch, fth_dtype t)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", n);
    fth_axis(b.g, "col", n);
    fth_axis(b.g, "l", batch);
    const fth_node *node = oc_node(&b, fth_cholesky(oc_in(&b, "K", t, axes), "row", "col"));
    EQ_I64(node->out[0].triangle, FTH_LOWER);
    t_random r = t_random_make((uint64_t)n);
    const int64_t bytes = oc_bytes(&node->out[0]);
    oc_case c = {.node = node, .in = {malloc((size_t)bytes + 1)}};
    fill(&r, node, c.in[0]);
    void *result[4];
    for (int i = 0; i < 4; i++) {
        c.kernel = i < 2 ? NULL : &fth__cpu_cholesky;
        c.out[0] = result[i] = malloc((size_t)bytes + 1);
        OKE(i % 2 ? oc_run_cut(&c, &r) : oc_run(&c), &c.err);
    }
    SAME_BYTES(result[0], result[1], bytes);
    SAME_BYTES(result[2], result[3], bytes);
    LE_F64(oc_error(&node->out[0], result[2], result[0]), allowed(t));
    for (int i = 0; i < 4; i++) free(result[i]);
    free(c.in[0]);
    oc_close(&b);
}

TEST(every_layout_and_dtype)
{
    static const char *const axes[] = {"row col",   "col row",   "l row col", "l col row",
                                       "row l col", "row col l", "col l row"};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        for (int t = 0; t < 4; t++) check(axes[i], 13, 3, dtypes[t]);
}

TEST(empty_and_single)
{
    check("l row col", 0, 3, FTH_F32);
    check("l row col", 5, 0, FTH_F32);
    check("l row col", 1, 4, FTH_C128);
}

TEST(halves_agree_with_the_loop)
{
    check("row col", 780, 1, FTH_F32); /* two levels of halves would take the loop minutes */
    check("row col l", 200, 2, FTH_C64);
}

/* Several levels of halves and several tasks in each: LAPACK's own factor, the same bits from any
 * team, zeros above the diagonal. */
static void check_team(const char *axes, int64_t n, fth_dtype t)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", n);
    fth_axis(b.g, "col", n);
    const fth_node *node = oc_node(&b, fth_cholesky(oc_in(&b, "K", t, axes), "row", "col"));
    t_random r = t_random_make((uint64_t)n);
    const int64_t bytes = oc_bytes(&node->out[0]);
    void *x = malloc((size_t)bytes), *want = malloc((size_t)bytes), *got[3];
    fill(&r, node, x);
    for (int i = 0; i < 3; i++) {
        fth_team *team = NULL;
        fth_err err = {0};
        if (i > 0) OK(fth_team_create(&team, b.ctx.mem, i + 1, NULL));
        fth_call call = {.node = node, .team = team, .threads = i + 1, .err = &err};
        got[i] = malloc((size_t)bytes);
        call.in[0] = (fth_tile){.data = x, .extent = {n, n}, .stride = {n, 1}};
        call.out[0] = (fth_tile){.data = got[i], .extent = {n, n}, .stride = {n, 1}};
        OKE(fth__cpu_cholesky.run(&call), &err);
        fth_team_destroy(team);
        SAME_BYTES(got[0], got[i], bytes);
    }
    const int64_t step_i = node->out[0].row == 0 ? n : 1, step_j = n + 1 - step_i;
    memcpy(want, x, (size_t)bytes);
    EQ_I64(fth__blas_cholesky(t, n, (fth__matrix_out){want, n, step_i == 1}), 0);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            put(&node->out[0], want, i * step_i + j * step_j, 0.0, 0.0);
    LE_F64(oc_error(&node->out[0], got[0], want), allowed(t));
    for (int i = 0; i < 3; i++) free(got[i]);
    free(x), free(want);
    oc_close(&b);
}

TEST(halves_agree_with_lapack_and_any_team)
{
    const int64_t part = t_few() ? 2 : 1;
    check_team("row col", 3200 / part, FTH_F32);
    check_team("col row", 1700 / part, FTH_F64);
    check_team("row col", 1000 / part, FTH_C64);
    check_team("col row", 900 / part, FTH_C128);
}

TEST(in_place_gives_the_same_bits)
{
    for (int64_t n = 40; n <= 840; n += 800) {
        oc_bench b;
        oc_open(&b);
        fth_axis(b.g, "row", n);
        fth_axis(b.g, "col", n);
        const fth_node *node =
            oc_node(&b, fth_cholesky(oc_in(&b, "K", FTH_F32, "row col"), "row", "col"));
        t_random r = t_random_make(3);
        const int64_t bytes = oc_bytes(&node->out[0]);
        void *x = malloc((size_t)bytes), *y = malloc((size_t)bytes);
        fill(&r, node, x);
        oc_case c = {.node = node, .kernel = &fth__cpu_cholesky, .in = {x}, .out = {y}};
        OK(oc_run(&c));
        fth_call call = {.node = node, .first = true, .last = true};
        call.in[0] = (fth_tile){.data = x, .extent = {n, n}, .stride = {n, 1}};
        call.out[0] = call.in[0];
        OK(oc_invoke(&c, &call));
        SAME_BYTES(x, y, bytes);
        free(x), free(y);
        oc_close(&b);
    }
}

static void check_refusal(const fth_kernel *kernel, int64_t n, int64_t bad, double value)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", n);
    fth_axis(b.g, "col", n);
    fth_axis(b.g, "factor", 2);
    const fth_node *node =
        oc_node(&b, fth_cholesky(oc_in(&b, "Kzz", FTH_F64, "factor row col"), "row", "col"));
    double *x = calloc((size_t)(2 * n * n), sizeof *x), *y = calloc((size_t)(2 * n * n), sizeof *y);
    for (int64_t i = 0; i < 2 * n; i++) x[i / n * n * n + i % n * (n + 1)] = 1.0;
    x[n * n + bad * (n + 1)] = value;
    oc_case c = {.node = node, .kernel = kernel, .in = {x}, .out = {y}};
    IS(oc_run(&c), FTH_E_NUMERIC);
    char order[40];
    snprintf(order, sizeof order, "order %lld", (long long)bad + 1);
    HAS(c.err.text, order);
    HAS(c.err.text, "factor=1");
    HAS(c.err.text, "Kzz f64");
    HAS(c.err.hint, "jitter");
    free(x), free(y);
    oc_close(&b);
}

TEST(not_positive_definite_is_named)
{
    check_refusal(NULL, 6, 3, -1.0);
    check_refusal(&fth__cpu_cholesky, 6, 3, -1.0);
    check_refusal(&fth__cpu_cholesky, 6, 0, 0.0);
    check_refusal(&fth__cpu_cholesky, 6, 5, (double)NAN);
    check_refusal(&fth__cpu_cholesky, 800, 0, (double)NAN);
    check_refusal(&fth__cpu_cholesky, 800, 755, -2.0);
}

TEST(refusals)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", 3);
    fth_axis(b.g, "col", 4);
    fth_axis(b.g, "col3", 3);
    fth_err err = {0};
    fth_cholesky(oc_in(&b, "K", FTH_F32, "row col"), "row", "col");
    fth_graph_errors(b.g, 0, &err);
    EQ_I64(err.status, FTH_E_AXIS_MISMATCH);
    fth_cholesky(oc_in(&b, "M", FTH_F16, "row col3"), "row", "col3");
    fth_graph_errors(b.g, 1, &err);
    EQ_I64(err.status, FTH_E_DTYPE_OP);
    fth_cholesky(oc_in(&b, "N", FTH_F32, "row col3"), "row", "row");
    fth_graph_errors(b.g, 2, &err);
    EQ_I64(err.status, FTH_E_AXIS_MISMATCH);
    oc_close(&b);
}

TEST_MAIN()
