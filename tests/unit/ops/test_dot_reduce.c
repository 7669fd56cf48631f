/* test_dot_reduce.c - a product mapped and summed on the fly equals the product made whole.
 * seconds: 20 labels: gpu
 */
#include "ops/dot_reduce.h"
#include "testing/engine/op_cut.h"
#include "testing/full.h"

#include <math.h>

extern const fth_kernel fth__cpu_dot_reduce;

static const fth_dtype dtypes[] = {FTH_F16, FTH_BF16, FTH_F32, FTH_F64, FTH_C128};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static double allowed(fth_dtype t)
{
    if (t == FTH_F16) return 1e-2;
    if (t == FTH_BF16) return 5e-2;
    return t == FTH_F32 ? 1e-5 : 1e-13;
}

/* sum over `tail` of product^2, or of (product * extra)^2 with an extra operand. */
static fth__program squares(const fth_node *dot, const char *tail, bool extra)
{
    fth__program p;
    memset(&p, 0, sizeof p);
    const fth_desc *d = &dot->out[0];
    p.n_axes = d->n_axes;
    memcpy(p.axis, d->axis, sizeof p.axis);
    memcpy(p.size, d->size, sizeof p.size);
    p.n_in = extra ? 2 : 1;
    p.n_instr = extra ? 2 : 1;
    p.n_reg = p.n_in + p.n_instr;
    for (int i = 0; i < p.n_reg; i++) p.reg_dtype[i] = (uint8_t)d->dtype;
    const uint8_t t = (uint8_t)d->dtype;
    if (extra) p.instr[0] = (fth__instr){FTH_EW_MUL, t, t, 2, {0, 1, -1}};
    p.instr[p.n_instr - 1] =
        (fth__instr){FTH_EW_SQR, t, t, (int16_t)(p.n_reg - 1), {extra ? 2 : 0, -1, -1}};
    p.n_out = 1;
    p.out_reg[0] = (int16_t)(p.n_reg - 1);
    p.tail_dim = fth_desc_find(d, fth_axis_find(dot->graph, tail));
    p.tail_red = FTH_RED_SUM;
    return p;
}

typedef struct setup {
    const char *axes, *a, *b, *summed, *tail,
        *extra; /* extra: axes of a further operand; NULL: none */
} setup;

static void declare(oc_bench *b, const char *axes)
{
    char name[32];
    long long size;
    int used;
    while (sscanf(axes, " %31[^= ]=%lld%n", name, &size, &used) == 2) {
        IS_TRUE(fth_axis(b->g, name, size));
        axes += used;
    }
}

static void *room(const fth_desc *d)
{
    void *p = calloc(1, (size_t)oc_bytes(d) + 64);
    IS_TRUE(p != NULL);
    return p;
}

static fth_val operand(oc_bench *b, const char *name, fth_dtype t, const char *axes,
                       fth_triangle mark)
{
    char row[16], col[16];
    const fth_val v = oc_in(b, name, t, axes);
    if (mark == FTH_FULL) return v;
    EQ_I64(sscanf(axes, "%15s %15s", row, col), 2);
    return fth_mark(v, mark, row, col);
}

static void clear_other_side(const fth_desc *d, void *data)
{
    const int64_t size = fth_dtype_size(d->dtype);
    for (int64_t i = 0; d->triangle != FTH_FULL && i < d->size[0] * d->size[1]; i++) {
        const int64_t row = i / d->size[1], col = i % d->size[1];
        if (d->triangle == FTH_LOWER ? row < col : row > col)
            memset((char *)data + i * size, 0, (size_t)size);
    }
}

/* Marks of a and b: of matrices whose first axis is the row. */
static void check_marked(const setup *s, fth_triangle mark_a, fth_triangle mark_b, fth_dtype t)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, s->axes);
    const fth_node *dot = oc_node(&b, fth_dot(operand(&b, "a", t, s->a, mark_a),
                                              operand(&b, "b", t, s->b, mark_b), s->summed));
    const fth_val extra = s->extra ? oc_in(&b, "w", t, s->extra) : (fth_val){0};
    const fth__program program = squares(dot, s->tail, s->extra != NULL);
    fth__dot_reduce_attr *attr = malloc(sizeof *attr);
    fth__program_node node;
    IS_TRUE(fth__dot_reduce_make(dot, &program, s->extra ? fth__val_desc(extra) : NULL,
                                 s->extra != NULL, attr, &node));
    EQ_I64(fth_desc_find(&node.out[0], fth_axis_find(b.g, s->tail)), -1);
    node.in_val[2] = extra;

    t_random r = t_random_make(7);
    oc_case c = {.node = &node.node};
    for (int i = 0; i < node.node.n_in; i++) {
        oc_fill(&r, &node.in[i], c.in[i] = room(&node.in[i]));
        clear_other_side(&node.in[i], c.in[i]);
    }
    void *result[4];
    for (int i = 0; i < 4; i++) {
        c.kernel = i < 2 ? NULL : &fth__cpu_dot_reduce;
        c.out[0] = result[i] = room(&node.out[0]);
        OKE(i % 2 ? oc_run_cut(&c, &r) : oc_run(&c), &c.err);
    }
    SAME_BYTES(result[0], result[1], oc_bytes(&node.out[0]));
    SAME_BYTES(result[2], result[3], oc_bytes(&node.out[0]));
    LE_F64(oc_error(&node.out[0], result[2], result[0]), allowed(t));

    /* the long way round: the product whole, then the program */
    oc_case whole = {.node = dot, .in = {c.in[0], c.in[1]}, .out = {room(&dot->out[0])}};
    OKE(oc_run(&whole), &whole.err);
    fth__program_node fused;
    fth__dot_reduce_fused(&node.node, &fused);
    oc_case tail = {
        .node = &fused.node, .in = {whole.out[0], c.in[2]}, .out = {room(&node.out[0])}};
    OKE(oc_run(&tail), &tail.err);
    LE_F64(oc_error(&node.out[0], result[0], tail.out[0]), allowed(t));

    for (int i = 0; i < 4; i++) free(result[i]);
    for (int i = 0; i < node.node.n_in; i++) free(c.in[i]);
    free(whole.out[0]), free(tail.out[0]), free(attr);
    oc_close(&b);
}

static void check(const setup *s, fth_dtype t)
{
    check_marked(s, FTH_FULL, FTH_FULL, t);
}

TEST(equals_the_product_made_whole)
{
    static const setup setups[] = {
        {"k=7 cell=9 factor=3 j=11", "k cell", "factor k j", "k", "j", NULL},
        {"k=7 cell=9 factor=3 j=11", "k cell", "factor k j", "k", "j", "j"},
        {"k=7 cell=9 factor=3 j=11", "k cell", "factor k j", "k", "cell", "factor cell"},
        {"k=7 cell=9 factor=3 j=11", "k cell", "factor k j", "k", "factor", "cell"},
        {"k=5 l=4 m=6 n=70", "m k l", "l n k", "k", "n", "l m"},
        {"k=5 l=4 m=6 n=70", "m k l", "l n k", "k", "m", NULL},
        {"k=5 q=3 m=6 n=70", "q k m", "k n q", "k q", "n", "m n"},
        {"k=1100 m=6 n=9", "m k", "k n", "k", "n", NULL},
        {"k=3 m=6 n=2500", "m k", "k n", "k", "n", "n"},
        {"k=3 m=1200 n=1100", "k m", "k n", "k", "n", NULL},
        {"k=3 m=1200 n=1100", "k m", "k n", "k", "m", "m"},
        {"k=0 m=3 n=4", "m k", "k n", "k", "n", NULL},
        {"k=2 m=3 n=0", "m k", "k n", "k", "n", NULL},
        {"k=6 n=5", "k", "k n", "k", "n", NULL},
    };
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        for (size_t t = 0; t < N_DTYPES; t++)
            if ((t + N_DTYPES - i % N_DTYPES) % (size_t)t_one_in(2, N_DTYPES) == 0)
                check(&setups[i], dtypes[t]);
}

/* One operand is a triangle of two tiles: f64 by BLAS, f32 on the tile unit where there is one. */
TEST(triangles)
{
    for (int i = 0; i < 16; i += t_one_in(3, 5)) { /* by fives: each bit is once set, once not */
        const fth_triangle mark = i & 4 ? FTH_UPPER : FTH_LOWER;
        const char *const tail = i & 2 ? "n" : "m";
        const setup a = {"k=1100 m=1100 n=9", i & 1 ? "k m" : "m k", "k n", "k", tail, NULL},
                    b = {"k=1100 m=9 n=1100", "m k", i & 1 ? "n k" : "k n", "k", tail, NULL};
        const fth_dtype t = i & 8 ? FTH_F64 : FTH_F32;
        const bool both = t_one_in(1, 2) == 1;
        if (both || i % 10 == 0) check_marked(&a, mark, FTH_FULL, t);
        if (both || i % 10 == 5) check_marked(&b, FTH_FULL, mark, t);
    }
}

/* Parts of rows, columns and of the sum, and numbers of any size, on the tile unit. */
TEST(edges_of_tiles)
{
    const setup setups[] = {
        {"k=1500 m=300 n=97", "m k", "k n", "k", "n", NULL},
        {"k=257 m=1025 n=65", "k m", "n k", "k", "m", NULL},
        {"k=513 m=64 n=1060 l=2", "l k m", "k n", "k", "n", "n"},
    };
    const setup small[] = {
        /* tiles of a device are smaller than those of the CPU */
        {"k=700 m=150 n=97", "m k", "k n", "k", "n", NULL},
        {"k=257 m=300 n=65", "k m", "n k", "k", "m", NULL},
        {"k=130 m=64 n=300 l=2", "l k m", "k n", "k", "n", "n"},
    };
    const setup *use = t_slowed() && !t_full() ? small : setups;
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) check(&use[i], FTH_F32);
}

/* Superblocks of the reduction: pieces carry f64 sums from tile to tile. */
TEST(long_reductions)
{
    const setup s = {"k=2 m=2 n=70000", "m k", "k n", "k", "n", NULL};
    check(&s, FTH_F32);
    check(&s, FTH_F64);
}

/* What is not finite reaches its own results; all others keep their very bits, however it is cut.
 */
TEST(infinite_numbers_stay_infinite)
{
    enum { M = 40, K = 300, N = 3 };
    oc_bench b;
    oc_open(&b);
    declare(&b, "m=40 k=300 n=3");
    const fth_node *dot =
        oc_node(&b, fth_dot(oc_in(&b, "a", FTH_F32, "m k"), oc_in(&b, "b", FTH_F32, "k n"), "k"));
    const fth__program program = squares(dot, "n", false);
    fth__dot_reduce_attr *attr = malloc(sizeof *attr);
    fth__program_node node;
    IS_TRUE(fth__dot_reduce_make(dot, &program, NULL, 0, attr, &node));
    static float x[M * K], y[K * N], before[M], after[M], cut[M];
    t_random r = t_random_make(11);
    for (int i = 0; i < M * K; i++) x[i] = (float)fabs(t_random_normal(&r)) + 0.01f;
    for (int i = 0; i < K * N; i++) y[i] = (float)fabs(t_random_normal(&r)) + 0.01f;
    oc_case c = {.node = &node.node, .kernel = &fth__cpu_dot_reduce, .in = {x, y}, .out = {before}};
    OKE(oc_run(&c), &c.err);

    x[3 * K + 5] = (float)INFINITY;
    x[4 * K + 299] = (float)NAN;
    x[5 * K] = -(float)INFINITY, x[5 * K + 1] = (float)INFINITY;
    for (int i = 0; i < 2; i++) {
        c.out[0] = i == 0 ? after : cut;
        OKE(i == 0 ? oc_run(&c) : oc_run_cut(&c, &r), &c.err);
        const float *z = c.out[0];
        IS_TRUE(isinf(z[3]) && z[3] > 0.0f && isnan(z[4]) && isnan(z[5]));
        SAME_BYTES(before, z, 3 * sizeof *z);
        SAME_BYTES(before + 6, z + 6, (M - 6) * sizeof *z);
    }
    y[7 * N + 1] = (float)INFINITY;
    OKE(oc_run(&c), &c.err);
    for (int i = 0; i < M; i++) IS_TRUE(i == 4 || i == 5 ? isnan(cut[i]) : isinf(cut[i]));
    y[7 * N + 2] = (float)NAN;
    OKE(oc_run(&c), &c.err);
    for (int i = 0; i < M; i++) IS_TRUE(isnan(cut[i]));
    free(attr);
    oc_close(&b);
}

TEST(what_cannot_be_joined_is_refused)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, "k=3 l=2 m=4 n=5");
    const fth_node *dot = oc_node(
        &b, fth_dot(oc_in(&b, "a", FTH_F32, "l m k"), oc_in(&b, "b", FTH_F32, "l k n"), "k"));
    fth__program p = squares(dot, "n", false);
    fth__dot_reduce_attr *attr = malloc(sizeof *attr);
    fth__program_node node;
    IS_TRUE(fth__dot_reduce_make(dot, &p, NULL, 0, attr, &node));
    fth_relation r;
    node.node.op->relation(&node.node, 1, 2, &r);
    EQ_I64(r.along, FTH_ACCUMULATE);
    node.node.op->relation(&node.node, 0, 2, &r);
    EQ_I64(r.along, FTH_WHOLE);
    node.node.op->relation(&node.node, 0, 1, &r);
    EQ_I64(r.along, FTH_SAME);
    p = squares(dot, "l", false); /* both operands have it */
    IS_TRUE(!fth__dot_reduce_make(dot, &p, NULL, 0, attr, &node));
    p.tail_dim = -1;
    IS_TRUE(!fth__dot_reduce_make(dot, &p, NULL, 0, attr, &node));
    free(attr);
    oc_close(&b);
}

TEST_MAIN()
