/* test_dot.c - products of every shape against the obvious loop, and the same bits however cut.
 * seconds: 30 labels: gpu
 */
#include "cpu/blas.h"
#include "ops/dot.h"
#include "testing/engine/op_cut.h"
#include "testing/full.h"

#include <fathom/isa.h>

extern const fth_kernel fth__cpu_dot;

static const fth_dtype dtypes[] = {FTH_F16, FTH_BF16, FTH_F32, FTH_F64, FTH_C64, FTH_C128};
enum { N_DTYPES = 6 };

/* How far the fast product may be from the loop that sums in f64: about sqrt(k) roundings. */
static double allowed(fth_dtype t)
{
    if (t == FTH_F16) return 2e-3;
    if (t == FTH_BF16) return 2e-2;
    return t == FTH_F32 || t == FTH_C64 ? 1e-5 : 1e-13;
}

typedef struct shapes {
    const char *axes; /* "name=size ..." of all axes */
    const char *a, *b, *summed, *out;
} shapes;

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

/* Reference whole, kernel whole, both cut: values agree, bits do not depend on cuts. */
static void check(const shapes *s, fth_dtype t, uint64_t stream)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, s->axes);
    fth_val v = fth_dot(oc_in(&b, "a", t, s->a), oc_in(&b, "b", t, s->b), s->summed);
    const fth_node *node = oc_node(&b, v);
    char axes[256];
    EQ_STR(fth__desc_axes(b.g, &node->out[0], axes, sizeof axes), s->out);
    t_random r = t_random_make(stream);
    oc_case c = {.node = node};
    for (int i = 0; i < 2; i++) oc_fill(&r, &node->in[i], c.in[i] = room(&node->in[i]));
    void *result[4];
    for (int i = 0; i < 4; i++) {
        c.kernel = i < 2 ? NULL : &fth__cpu_dot;
        c.out[0] = result[i] = room(&node->out[0]);
        OKE(i % 2 ? oc_run_cut(&c, &r) : oc_run(&c), &c.err);
    }
    SAME_BYTES(result[0], result[1], oc_bytes(&node->out[0]));
    SAME_BYTES(result[2], result[3], oc_bytes(&node->out[0]));
    LE_F64(oc_error(&node->out[0], result[2], result[0]), allowed(t));
    for (int i = 0; i < 4; i++) free(result[i]);
    free(c.in[0]);
    free(c.in[1]);
    oc_close(&b);
}

static const shapes small[] = {
    {"m=5 k=7 n=6", "m k", "k n", "k", "m n"},
    {"m=5 k=7 n=6", "k m", "k n", "k", "m n"},
    {"m=5 k=7 n=6", "m k", "n k", "k", "n m"},
    {"m=5 k=7 n=6", "k m", "n k", "k", "n m"},
    {"m=5 k=7", "m k", "k", "k", "m"},
    {"n=5 k=7", "k", "k n", "k", "n"},
    {"k=7", "k", "k", "k", ""},
    {"m=3 n=4", "m", "n", "", "m n"},
    {"l=3 m=4", "l m", "l", "", "m l"},
    {"l=3 m=4 k=5 n=6", "l m k", "l k n", "k", "l m n"},
    {"l=3 m=4 k=5 n=6", "m k l", "k n l", "k", "m n l"},
    {"l=3 m=4 k=5 n=6", "k m", "l k n", "k", "l m n"},
    {"p=3 q=2 k=5 j=4 n=6 r=2", "p k j q", "r j n k", "k j", "r n p q"},
    {"p=3 q=2 k=5 j=4 n=6 r=2", "p k j q", "r j n k", "j k", "r p q n"},
    {"m=3 k=0 n=2", "m k", "k n", "k", "m n"},
    {"m=0 k=4 n=2", "m k", "k n", "k", "m n"},
    {"m=3 k=4 j=0 n=2", "m k j", "k j n", "k j", "m n"},
};

TEST(small_shapes_of_every_dtype)
{
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        for (int t = 0; t < N_DTYPES; t++) check(&small[i], dtypes[t], i);
}

/* Several tiles along each dimension, and a sum in superblocks of two tiles. */
static const shapes large[] = {
    {"m=1100 k=37 n=9", "m k", "k n", "k", "m n"},
    {"m=9 k=37 n=2100", "k m", "n k", "k", "n m"},
    {"m=11 k=3100 n=13", "m k", "k n", "k", "m n"},
    {"l=2 m=5 k=2200 n=3", "l k m", "n k", "k", "n l m"},
    {"m=2 k=66000 n=3", "k m", "k n", "k", "m n"},
    {"m=2 k=66000 n=2 l=2", "m k l", "k l n", "k", "m l n"},
    {"m=1 k=70000", "m k", "k", "k", "m"},
    {"m=1300 k=1100", "m k", "k", "k", "m"},
    {"m=1300 k=1100", "k m", "k", "k", "m"},
    {"n=1300 k=1100", "k", "n k", "k", "n"},
    {"n=1300 k=1100", "k", "k n", "k", "n"},
    {"l=3 m=70 k=1100", "l m k", "l k", "k", "l m"},
    {"l=3 m=70 k=110", "m k l", "k l", "k", "m l"},
    {"m=3 k=1500 j=3 n=4", "m j k", "k n j", "j k", "n m"},
    {"m=1100 k=3 n=1030", "m k", "k n", "k", "m n"}, /* the inner free axis is one tile */
    {"m=1030 k=3 n=1100", "k m", "n k", "k", "n m"},
    {"m=1030 k=2 n=4100", "m k", "k n", "k", "m n"}, /* ...or has tiles of 2048 */
};

TEST(large_shapes_of_every_dtype)
{
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        for (int t = 0; t < N_DTYPES; t++)
            if ((t + N_DTYPES - (int)i % N_DTYPES) % t_one_in(3, N_DTYPES) == 0)
                check(&large[i], dtypes[t], 100 + i);
}

/* 2 by 2, written out. */
TEST(numbers_by_hand)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, "i=2 j=2 k=2");
    fth_val v = fth_dot(oc_in(&b, "a", FTH_C64, "i k"), oc_in(&b, "b", FTH_C64, "k j"), "k");
    fth_c64 x[4] = {{1, 1}, {0, 2}, {3, 0}, {0, 0}}, y[4] = {{1, 0}, {0, 1}, {2, 0}, {1, -1}},
            out[4];
    oc_case c = {.node = oc_node(&b, v), .in = {x, y}, .out = {out}};
    for (int fast = 0; fast < 2; fast++) {
        c.kernel = fast ? &fth__cpu_dot : NULL;
        OK(oc_run(&c));
        EQ_F64(out[0].re, 1); /* (1+i)*1 + 2i*2: no conjugation */
        EQ_F64(out[0].im, 5);
        EQ_F64(out[1].re, 1); /* (1+i)*i + 2i*(1-i) = -1+i+2i+2 */
        EQ_F64(out[1].im, 3);
        EQ_F64(out[2].re, 3);
        EQ_F64(out[3].im, 3);
    }
    oc_close(&b);
}

/* Tiles that a mark promises to be zero are not read at all: NaN there must not come through. */
TEST(marks_skip_zero_tiles)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, "row=2048 col=2048 n=3");
    for (int side = 0; side < 2; side++) {
        const fth_triangle mark = side ? FTH_UPPER : FTH_LOWER;
        fth_val a = fth_mark(oc_in(&b, side ? "u" : "l", FTH_F32, "row col"), mark, "row", "col");
        const fth_node *node =
            oc_node(&b, fth_dot(a, oc_in(&b, side ? "y" : "x", FTH_F32, "col n"), "col"));
        oc_case c = {.node = node, .kernel = &fth__cpu_dot};
        float *m = c.in[0] = room(&node->in[0]), *v = c.in[1] = room(&node->in[1]);
        float *out = c.out[0] = room(&node->out[0]);
        for (int64_t i = 0; i < 2048; i++)
            for (int64_t j = 0; j < 2048; j++) {
                const bool far = side ? i >= 1024 && j < 1024 : i < 1024 && j >= 1024;
                m[i * 2048 + j] = far                        ? (float)__builtin_nan("")
                                  : (side ? j >= i : j <= i) ? 1.0f
                                                             : 0.0f;
            }
        for (int i = 0; i < 2048 * 3; i++) v[i] = 1.0f;
        OK(oc_run(&c));
        for (int64_t i = 0; i < 2048; i++) EQ_F64(out[3 * i + 1], side ? 2048 - i : i + 1);
        free(m), free(v), free(out);
    }
    oc_close(&b);
}

/* ---- triangles ---- */

typedef struct triangles {
    fth_triangle a, b, out; /* over (m, k), (k, n), (m, n) */
    const char *axes;
    int layout; /* bit 0: a is [k m]; bit 1: b is [n k] */
} triangles;

static void clear_other_side(const fth_desc *d, void *data)
{
    const int64_t size = fth_dtype_size(d->dtype), rows = d->size[0], cols = d->size[1];
    for (int64_t i = 0; i < rows * cols && d->triangle != FTH_FULL; i++) {
        const int64_t at[2] = {i / cols, i % cols}, row = at[d->row], col = at[d->col];
        if (d->triangle == FTH_LOWER ? row < col : row > col)
            memset((char *)data + i * size, 0, (size_t)size);
    }
}

static fth_val marked(oc_bench *b, const char *name, fth_dtype t, const char *axes, fth_triangle s,
                      const char *row, const char *col)
{
    const fth_val v = oc_in(b, name, t, axes);
    return s == FTH_FULL ? v : fth_mark(v, s, row, col);
}

/* The kernel against the loop, which knows no marks of operands; both the same bits when cut. */
static void check_triangles(const triangles *s, fth_dtype t)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, s->axes);
    const fth_val x = marked(&b, "a", t, s->layout & 1 ? "k m" : "m k", s->a, "m", "k");
    const fth_val y = marked(&b, "b", t, s->layout & 2 ? "n k" : "k n", s->b, "k", "n");
    const fth_node *node = oc_node(&b, fth_dot_triangle(x, y, "k", s->out, "m", "n"));
    EQ_I64(node->out[0].triangle, s->out);
    t_random r = t_random_make(77);
    oc_case c = {.node = node};
    for (int i = 0; i < 2; i++) {
        oc_fill(&r, &node->in[i], c.in[i] = room(&node->in[i]));
        clear_other_side(&node->in[i], c.in[i]);
    }
    void *result[4], *zeros = room(&node->out[0]);
    for (int i = 0; i < 4; i++) {
        c.kernel = i < 2 ? NULL : &fth__cpu_dot;
        c.out[0] = result[i] = room(&node->out[0]);
        memset(result[i], 0x5a, (size_t)oc_bytes(&node->out[0]));
        OKE(i % 2 ? oc_run_cut(&c, &r) : oc_run(&c), &c.err);
    }
    SAME_BYTES(result[0], result[1], oc_bytes(&node->out[0]));
    SAME_BYTES(result[2], result[3], oc_bytes(&node->out[0]));
    LE_F64(oc_error(&node->out[0], result[2], result[0]), allowed(t));
    memcpy(zeros, result[2], (size_t)oc_bytes(&node->out[0]));
    clear_other_side(&node->out[0], zeros);
    SAME_BYTES(result[2], zeros, oc_bytes(&node->out[0]));
    for (int i = 0; i < 4; i++) free(result[i]);
    free(zeros), free(c.in[0]), free(c.in[1]);
    oc_close(&b);
}

TEST(triangles_of_operands_and_product)
{
    for (int i = 0; i < 27; i++) {
        triangles s = {(fth_triangle)(i % 3), (fth_triangle)(i / 3 % 3), (fth_triangle)(i / 9),
                       "m=9 k=9 n=9", 0};
        for (int t = 0; t < N_DTYPES; t++)
            for (s.layout = 0; s.layout < 4; s.layout++) check_triangles(&s, dtypes[t]);
        s.axes = "m=300 k=300 n=300"; /* two tiles */
        s.layout = i % 4;
        if (i % t_one_in(1, 7) == 0) check_triangles(&s, FTH_F32);
    }
}

/* Several tiles of k; a sum in superblocks; sums of half precision. */
TEST_REPEAT(triangles_of_long_sums)
{
    for (int i = 0; i < 8;
         i += t_one_in(1, 3)) { /* two tiles of a triangle on the right, on the left */
        const fth_triangle mark = i & 4 ? FTH_UPPER : FTH_LOWER;
        const triangles right = {FTH_FULL, mark, FTH_FULL, "m=9 k=1100 n=1100", i % 4},
                        left = {mark, FTH_FULL, FTH_FULL, "m=1100 k=1100 n=9", i % 4};
        const bool both = t_one_in(1, 2) == 1;
        if (both || i % 2) check_triangles(&right, i % 4 == 1 ? FTH_F64 : FTH_F32);
        if (both || i % 2 == 0) check_triangles(&left, i % 4 == 2 ? FTH_F64 : FTH_F32);
    }
    const triangles lower = {FTH_FULL, FTH_FULL, FTH_LOWER, "m=300 k=1100 n=300", 1},
                    upper = {FTH_FULL, FTH_FULL, FTH_UPPER, "m=270 k=2100 n=270", 3},
                    many = {FTH_FULL, FTH_FULL, FTH_LOWER, "m=5 k=66000 n=5", 0};
    check_triangles(&lower, FTH_F32);
    check_triangles(&lower, FTH_BF16);
    check_triangles(&upper, FTH_F64);
    check_triangles(&many, FTH_F32);
}

TEST(triangles_that_make_no_sense)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, "m=4 k=3 n=5 l=4");
    fth_err err = {0};
    const fth_val x = oc_in(&b, "x", FTH_F32, "m k"), y = oc_in(&b, "y", FTH_F32, "k n");
    IS_TRUE(!fth_val_ok(fth_dot_triangle(x, y, "k", FTH_LOWER, "m", "n")));
    EQ_I64(fth_graph_errors(b.g, 0, &err), 1);
    EQ_I64(err.status, FTH_E_AXIS_MISMATCH);
    HAS(err.text, "'m' and 'n'");
    IS_TRUE(!fth_val_ok(fth_dot_triangle(x, y, "k", FTH_LOWER, "m", "l")));
    IS_TRUE(!fth_val_ok(fth_dot_triangle(x, y, "k", FTH_LOWER, "m", "m")));
    IS_TRUE(!fth_val_ok(fth_dot_triangle(x, y, "k", (fth_triangle)7, "m", "m")));
    fth_graph_errors(b.g, 3, &err);
    EQ_I64(err.status, FTH_E_GRAPH_ATTR);
    IS_TRUE(!fth_val_ok(fth_dot_triangle(x, y, "k", FTH_LOWER, "m", "nn")));
    fth_graph_errors(b.g, 4, &err);
    EQ_I64(err.status, FTH_E_AXIS_NAME);
    oc_close(&b);
}

TEST(refusals_name_both_operands)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, "cell=4 gene=3 factor=2");
    fth_err err = {0};
    fth_val x = oc_in(&b, "counts", FTH_F32, "cell gene"),
            w = oc_in(&b, "W", FTH_F32, "gene factor");
    IS_TRUE(!fth_val_ok(fth_dot(x, w, "factor")));
    EQ_I64(fth_graph_errors(b.g, 0, &err), 1);
    EQ_I64(err.status, FTH_E_AXIS_MISSING);
    HAS(err.text, "'factor'");
    HAS(err.text, "counts f32 [cell=4 gene=3]");
    HAS(err.text, "W f32 [gene=3 factor=2]");
    IS_TRUE(!fth_val_ok(fth_dot(x, oc_in(&b, "V", FTH_F64, "gene factor"), "gene")));
    fth_graph_errors(b.g, 1, &err);
    EQ_I64(err.status, FTH_E_DTYPE);
    IS_TRUE(!fth_val_ok(
        fth_dot(oc_in(&b, "i", FTH_I32, "cell"), oc_in(&b, "j", FTH_I32, "cell"), "cell")));
    fth_graph_errors(b.g, 2, &err);
    EQ_I64(err.status, FTH_E_DTYPE_OP);
    IS_TRUE(!fth_val_ok(fth_dot(x, w, "gne")));
    fth_graph_errors(b.g, 3, &err);
    EQ_I64(err.status, FTH_E_AXIS_NAME);
    oc_close(&b);
}

TEST(relations_and_grids)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, "induce=3000 cell=5000 factor=12 induce2=3000");
    const fth_node *node =
        oc_node(&b, fth_dot(oc_in(&b, "W", FTH_F32, "induce cell"),
                            oc_in(&b, "Lu", FTH_F32, "factor induce induce2"), "induce"));
    fth_relation r;
    node->op->relation(node, 0, 0, &r);
    EQ_I64(r.along, FTH_ACCUMULATE);
    node->op->relation(node, 0, 1, &r);
    EQ_I64(r.along, FTH_SAME);
    EQ_I64(r.out_dim, 1);
    node->op->relation(node, 1, 2, &r);
    EQ_I64(r.out_dim, 2);
    EQ_I64(node->op->grid(node, -1, 0), 1);
    EQ_I64(node->op->grid(node, -1, 1), 1024);
    EQ_I64(node->op->grid(node, -1, 2), 2048); /* innermost */
    EQ_I64(node->op->grid(node, 0, 0), 1024);
    EQ_U64(node->op->state(node, 0), 0);
    const struct {
        const char *a, *b, *out;
        fth_triangle mark;
        int64_t grid[2];
    } cases[] = {
        {"induce cell", "induce induce2", "cell induce2", FTH_FULL, {1024, 2048}},
        {"induce2 induce", "induce cell", "induce2 cell", FTH_FULL, {1024, 2048}},
        {"induce2 induce", "cell induce", "cell induce2", FTH_FULL, {1024, 2048}},
        {"induce cell", "induce induce2", "cell induce2", FTH_LOWER, {1024, 1024}}, /* halves */
        {"factor induce", "induce cell", "factor cell", FTH_FULL, {16, 1024}}, /* one long axis */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[8];
        snprintf(name, sizeof name, "p%zu", i);
        fth_val right = oc_in(&b, name, FTH_F32, cases[i].b);
        if (cases[i].mark == FTH_LOWER) right = fth_mark(right, FTH_LOWER, "induce", "induce2");
        name[0] = 'q';
        const fth_node *d =
            oc_node(&b, fth_dot(oc_in(&b, name, FTH_F32, cases[i].a), right, "induce"));
        char axes[64];
        EQ_STR(fth__desc_axes(b.g, &d->out[0], axes, sizeof axes), cases[i].out);
        for (int k = 0; k < 2; k++) EQ_I64(d->op->grid(d, -1, k), cases[i].grid[k]);
    }
    oc_close(&b);
}

/* ---- strips ---- */

static const fth_node *product_of(oc_bench *b, const shapes *s, fth_dtype t)
{
    oc_open(b);
    declare(b, s->axes);
    return oc_node(b, fth_dot(oc_in(b, "a", t, s->a), oc_in(b, "b", t, s->b), s->summed));
}

static int64_t strip_of(const fth_node *n)
{
    fth__dot_shape s;
    fth__dot_shape_get(n->attr, &n->in[0], &n->in[1], &n->out[0], -1, &s);
    return fth__dot_strip(&s);
}

/* Lines of a strip follow from the sizes, by blocks of 24; 0 where tiles or batches are shared, or
 * handing over would take as long as the work. */
TEST(one_tile_is_made_in_strips)
{
    const struct {
        shapes s;
        int64_t strip;
    } cases[] = {
        {{"m=1024 k=512 n=256", "m k", "k n", "k", "m n"}, 528},
        {{"m=256 k=512 n=1024", "m k", "n k", "k", "n m"}, 528}, /* columns: they are outer */
        {{"m=1024 k=1024 n=1024", "m k", "k n", "k", "m n"}, 264},
        {{"m=1000 k=1024 n=2000", "m k", "k n", "k", "m n"}, 264}, /* two tiles of columns */
        {{"m=256 k=192 n=256", "m k", "k n", "k", "m n"}, 144},
        {{"m=256 k=100 n=256", "m k", "k n", "k", "m n"}, 0}, /* 13 Mflop */
        {{"m=239 k=512 n=512", "m k", "k n", "k", "m n"}, 0},
        {{"m=240 k=512 n=512", "m k", "k n", "k", "m n"}, 120},
        {{"m=1025 k=512 n=256", "m k", "k n", "k", "m n"}, 0},
        {{"m=1024 k=64 n=4000", "m k", "k n", "k", "m n"}, 0},
        {{"l=3 m=512 k=512 n=64", "l m k", "l k n", "k", "l m n"}, 264},
        {{"l=4 m=512 k=512 n=64", "l m k", "l k n", "k", "l m n"}, 0},
        {{"m=1024 k=100000", "m k", "k", "k", "m"}, 0},
        {{"m=512 k=0 n=512", "m k", "k n", "k", "m n"}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        oc_bench b;
        EQ_I64(strip_of(product_of(&b, &cases[i].s, FTH_F32)), cases[i].strip);
        oc_close(&b);
    }
}

/* Both strips of each, the last one shorter, whole and cut; values near those of the loop. */
TEST(strips_make_the_product)
{
    static const shapes striped[] = {
        {"m=250 k=700 n=70", "m k", "k n", "k", "m n"},
        {"m=70 k=700 n=250", "k m", "n k", "k", "n m"},
        {"m=250 k=1100 n=70", "k m", "k n", "k", "m n"}, /* two tiles of k */
        {"l=2 m=250 k=700 n=70", "l m k", "l k n", "k", "l m n"},
        {"m=250 k=700 n=70 j=2", "m j k", "j k n", "k j", "m n"},
        {"p=2 m=250 k=700 n=70", "m k p", "k n", "k", "m p n"}, /* packed */
    };
    for (size_t i = 0; i < sizeof striped / sizeof *striped; i++)
        for (int t = 0; t < N_DTYPES; t++) {
            oc_bench b;
            IS_TRUE(strip_of(product_of(&b, &striped[i], dtypes[t])) > 0);
            oc_close(&b);
            if ((t + (int)i) % t_one_in(2, N_DTYPES) == 0) check(&striped[i], dtypes[t], 200 + i);
        }
}

/* The first thing that was wrong on a new processor: kernels of 2004. */
TEST(blas_uses_kernels_of_this_processor)
{
    OK(fth__cpu_blas_init(NULL));
#if defined(__x86_64__)
    if (fth_isa_level() >= 3) HAS_NOT(fth__cpu_blas_name(), "Prescott");
#endif
    IS_TRUE(fth__cpu_blas_name() != NULL);
}

TEST_MAIN()
