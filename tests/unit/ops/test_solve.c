/* test_solve.c - triangular systems in every layout, both triangles, plain and adjoint.
 * seconds: 10 labels: gpu
 */
#include "testing/engine/op_cut.h"

#include <math.h>

extern const fth_kernel fth__cpu_solve;
static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128};

static double allowed(fth_dtype t)
{
    return t == FTH_F32 || t == FTH_C64 ? 2e-5 : 1e-12;
}

/* A triangle with a heavy diagonal; NaN on the other side, which must not be read. */
static void fill_matrix(t_random *r, const fth_desc *d, void *data)
{
    int64_t index[FTH_MAX_AXES] = {0};
    const bool wide = d->dtype == FTH_F64 || d->dtype == FTH_C128;
    const int parts = fth_dtype_is_complex(d->dtype) ? 2 : 1;
    for (int64_t at = 0; at < fth_desc_count(d); at++) {
        const int64_t i = index[d->row], j = index[d->col];
        const bool inside = d->triangle == FTH_LOWER ? i >= j : i <= j;
        for (int p = 0; p < parts; p++) {
            const double v =
                !inside ? (double)NAN
                        : t_random_normal(r) + (i == j ? 3.0 + sqrt((double)d->size[d->row]) : 0.0);
            if (wide)
                ((double *)data)[at * parts + p] = v;
            else
                ((float *)data)[at * parts + p] = (float)v;
        }
        for (int k = d->n_axes - 1; k >= 0 && ++index[k] == d->size[k]; k--) index[k] = 0;
    }
}

typedef struct setup {
    const char *a, *b, *b_t; /* axes of the matrix; of the right-hand sides, plain and transposed */
    const char *out, *out_t;
    int64_t n, m; /* size of the matrix, number of right-hand sides */
} setup;

static void check(const setup *s, fth_triangle mark, bool swapped, bool transposed, fth_dtype t)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", s->n);
    fth_axis(b.g, "col", s->n);
    fth_axis(b.g, "l", 3);
    fth_axis(b.g, "m", s->m);
    fth_axis(b.g, "q", 2);
    fth_val a =
        fth_mark(oc_in(&b, "A", t, s->a), mark, swapped ? "col" : "row", swapped ? "row" : "col");
    fth_val x = fth_solve_(FTH_HERE, a, oc_in(&b, "b", t, transposed ? s->b_t : s->b), "row", "col",
                           transposed);
    const fth_node *node = oc_node(&b, x);
    char axes[128];
    EQ_STR(fth__desc_axes(b.g, &node->out[0], axes, sizeof axes), transposed ? s->out_t : s->out);
    t_random r = t_random_make((uint64_t)s->n);
    const int64_t bytes = oc_bytes(&node->out[0]);
    oc_case c = {.node = node,
                 .in = {malloc((size_t)oc_bytes(&node->in[0]) + 1), malloc((size_t)bytes + 1)}};
    fill_matrix(&r, &node->in[0], c.in[0]);
    oc_fill(&r, &node->in[1], c.in[1]);
    void *result[4];
    for (int i = 0; i < 4; i++) {
        c.kernel = i < 2 ? NULL : &fth__cpu_solve;
        c.out[0] = result[i] = malloc((size_t)bytes + 1);
        OKE(i % 2 ? oc_run_cut(&c, &r) : oc_run(&c), &c.err);
    }
    SAME_BYTES(result[0], result[1], bytes);
    SAME_BYTES(result[2], result[3], bytes);
    LE_F64(oc_error(&node->out[0], result[2], result[0]), allowed(t));
    for (int i = 0; i < 4; i++) free(result[i]);
    free(c.in[0]), free(c.in[1]);
    oc_close(&b);
}

TEST(every_layout_triangle_and_dtype)
{
    static const setup setups[] = {
        {"row col", "row m", "col m", "col m", "row m", 9, 5},
        {"col row", "m row", "m col", "m col", "m row", 9, 5},
        {"row col", "m row", "m col", "m col", "m row", 9, 5},
        {"row col", "row", "col", "col", "row", 9, 5},
        {"l row col", "l row m", "l col m", "l col m", "l row m", 7, 5},
        {"row col l", "q row m l", "q col m l", "q col m l", "q row m l", 7, 5},
        {"col l row", "m row l", "m col l", "m col l", "m row l", 7, 5},
        {"row col", "m row q", "m col q", "m col q", "m row q", 7, 5},
        {"row col", "row m", "col m", "col m", "row m", 4, 2500},
        {"row col", "m row", "m col", "m col", "m row", 4, 2500},
        {"row col", "row m", "col m", "col m", "row m", 0, 4},
        {"row col", "row m", "col m", "col m", "row m", 4, 0},
    };
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        for (int k = 0; k < 32; k++)
            check(&setups[i], k & 1 ? FTH_UPPER : FTH_LOWER, k & 2, k & 4, dtypes[k >> 3]);
}

TEST(numbers_by_hand)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", 2);
    fth_axis(b.g, "col", 2);
    fth_val a = fth_mark(oc_in(&b, "A", FTH_C128, "row col"), FTH_LOWER, "row", "col");
    fth_val v = fth_solve_t(a, oc_in(&b, "b", FTH_C128, "col"), "row", "col");
    fth_c128 m[4] = {{2, 0}, {0, 0}, {0, 1}, {1, 0}}, rhs[2] = {{2, 0}, {1, 0}}, out[2];
    oc_case c = {.node = oc_node(&b, v), .in = {m, rhs}, .out = {out}};
    for (int fast = 0; fast < 2; fast++) {
        c.kernel = fast ? &fth__cpu_solve : NULL;
        OK(oc_run(&c));
        EQ_F64(out[1].re, 1); /* A^H = [2 -i; 0 1]: x1 = 1, x0 = (2 + i)/2 */
        EQ_F64(out[0].re, 1);
        EQ_F64(out[0].im, 0.5);
    }
    oc_close(&b);
}

TEST(zero_on_the_diagonal_is_named)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", 2);
    fth_axis(b.g, "col", 2);
    fth_axis(b.g, "l", 2);
    fth_val a = fth_mark(oc_in(&b, "L", FTH_F32, "l row col"), FTH_LOWER, "row", "col");
    float m[8] = {1, 0, 1, 1, 1, 0, 5, 0}, rhs[4] = {1, 1, 1, 1}, out[4];
    oc_case c = {.node = oc_node(&b, fth_solve(a, oc_in(&b, "b", FTH_F32, "l row"), "row", "col")),
                 .in = {m, rhs},
                 .out = {out}};
    for (int fast = 0; fast < 2; fast++) {
        c.kernel = fast ? &fth__cpu_solve : NULL;
        c.err = (fth_err){0};
        IS(oc_run(&c), FTH_E_NUMERIC);
        HAS(c.err.text, "element 1 of the diagonal is zero at l=1");
    }
    oc_close(&b);
}

TEST(refusals_say_what_to_write)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", 3);
    fth_axis(b.g, "col", 3);
    fth_axis(b.g, "l", 2);
    fth_err err = {0};
    fth_val full = oc_in(&b, "A", FTH_F32, "row col"), rhs = oc_in(&b, "b", FTH_F32, "row");
    fth_solve(full, rhs, "row", "col");
    fth_graph_errors(b.g, 0, &err);
    EQ_I64(err.status, FTH_E_GRAPH_VALUE);
    HAS(err.hint, "fth_mark(A, FTH_LOWER, \"row\", \"col\")");
    fth_solve(fth_mark(oc_in(&b, "B", FTH_F32, "l row col"), FTH_LOWER, "row", "col"), rhs, "row",
              "col");
    fth_graph_errors(b.g, 1, &err);
    EQ_I64(err.status, FTH_E_AXIS_MISMATCH);
    HAS(err.hint, "fth_expand");
    fth_val l = fth_mark(full, FTH_LOWER, "row", "col");
    fth_solve_t(l, rhs, "row", "col");
    fth_graph_errors(b.g, 2, &err);
    EQ_I64(err.status, FTH_E_AXIS_MISSING);
    fth_solve(l, full, "row", "col");
    EQ_I64(fth_graph_errors(b.g, 3, &err), 4);
    oc_close(&b);
}

TEST_MAIN()
