/* test_ops_axes.c - expand, rename, layout, merge, split, mark.
 *
 * seconds: 3 labels: gpu
 */
#include "graph/graph.h"
#include "testing/engine/op_harness.h"

static const fth_dtype movable[] = {FTH_BOOL, FTH_U16, FTH_F16, FTH_F32,
                                    FTH_I64,  FTH_C64, FTH_C128};
enum { N_MOVABLE = sizeof movable / sizeof *movable };

TEST(expand_repeats_with_new_axes_outermost)
{
    fth_graph *g = t_graph("row=2 col=3 new=4 other=2");
    const float x[6] = {1, 2, 3, 4, 5, 6};
    const fth_val v = t_input(g, "x", FTH_F32, "row col", x);
    const fth_val e = fth_expand(v, "new other");
    SHAPE(e, "f32 [new=4 other=2 row=2 col=3]");
    float out[48];
    t_eval(e, out);
    for (int i = 0; i < 48; i++) EQ_F64(out[i], x[i % 6]);
    IS_TRUE(fth_expand(v, "").id == v.id);
    t_graph_free(g);
}

TEST(expand_of_every_element_size)
{
    for (int k = 0; k < N_MOVABLE; k++) {
        fth_graph *g = t_graph("row=5 col=7 new=6");
        t_random r = t_random_make(7);
        const fth_val v = t_noise(g, "x", movable[k], "row col", &r);
        char out[6 * 35 * 16];
        t_eval(fth_expand(v, "new"), out);
        const size_t bytes = (size_t)(35 * fth_dtype_size(movable[k]));
        for (size_t i = 0; i < 6; i++) SAME_BYTES(out + i * bytes, t_data(v), bytes);
        t_graph_free(g);
    }
}

TEST(expand_refuses_an_axis_that_is_there)
{
    fth_graph *g = t_graph("row=2 col=3");
    const fth_val v = t_input(g, "x", FTH_F32, "row col", NULL);
    IS_TRUE(!fth_val_ok(fth_expand(v, "col")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "x f32 [row=2 col=3]");
    t_graph_free(g);
}

TEST(unknown_axis_is_refused_with_the_nearest_name)
{
    fth_graph *g = t_graph("row=2 column=3");
    const fth_val v = t_input(g, "x", FTH_F32, "row", NULL);
    IS_TRUE(!fth_val_ok(fth_expand(v, "columm")));
    REFUSED(g, FTH_E_AXIS_NAME, "'column'");
    t_graph_free(g);
}

TEST(rename_keeps_the_data_and_needs_equal_sizes)
{
    fth_graph *g = t_graph("row=2 col=3 row2=2 col2=4");
    const float x[6] = {1, 2, 3, 4, 5, 6};
    const fth_val v = t_input(g, "x", FTH_F32, "row col", x);
    const fth_val r = fth_rename(v, "row", "row2");
    SHAPE(r, "f32 [row2=2 col=3]");
    float out[6];
    t_eval(r, out);
    SAME_BYTES(out, x, sizeof x);
    IS_TRUE(!fth_val_ok(fth_rename(v, "col", "col2")));
    REFUSED(g, FTH_E_AXIS_SIZE, "fth_axis_like(g, \"col2\", \"col\")");
    t_graph_free(g);
}

TEST(rename_can_swap_but_not_double)
{
    fth_graph *g = t_graph("a=3 b=3 c=3");
    t_random r = t_random_make(1);
    const fth_val v = t_noise(g, "x", FTH_F32, "a b", &r);
    float out[9];
    const fth_val w = fth_rename(v, "a b", "b a");
    SHAPE(w, "f32 [b=3 a=3]");
    t_eval(w, out);
    SAME_BYTES(out, t_data(v), sizeof out);
    IS_TRUE(!fth_val_ok(fth_rename(v, "a", "b")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "'b' twice");
    t_graph_free(g);
}

/* Two names of one size must not be streamed in lockstep. */
TEST(a_renamed_axis_is_never_cut)
{
    fth_graph *g = t_graph("a=3 b=4 c=3");
    const fth_val v = fth_rename(t_input(g, "x", FTH_F32, "a b", NULL), "a", "c");
    const fth_node *node = fth__val_node(v);
    fth_relation rel;
    node->op->relation(node, 0, 0, &rel);
    EQ_I64(rel.along, FTH_WHOLE);
    node->op->relation(node, 0, 1, &rel);
    EQ_I64(rel.along, FTH_SAME);
    t_graph_free(g);
}

TEST(layout_moves_every_element_size)
{
    for (int k = 0; k < N_MOVABLE; k++) {
        fth_graph *g = t_graph("a=3 b=41 c=37 d=2");
        t_random r = t_random_make(3);
        const int64_t size = fth_dtype_size(movable[k]);
        const fth_val v = t_noise(g, "x", movable[k], "a b c d", &r);
        const fth_val w = fth_layout(v, "c a d b");
        char *out = malloc((size_t)(t_count(v) * size));
        const char *x = t_data(v);
        t_eval(w, out);
        for (int64_t a = 0; a < 3; a++)
            for (int64_t b = 0; b < 41; b++)
                for (int64_t c = 0; c < 37; c++)
                    for (int64_t d = 0; d < 2; d++)
                        SAME_BYTES(out + (((c * 3 + a) * 2 + d) * 41 + b) * size,
                                   x + (((a * 41 + b) * 37 + c) * 2 + d) * size, size);
        free(out);
        t_graph_free(g);
    }
}

/* `out` in the order `to` against x in the order `from`; names of axes are single letters. */
static void same_turned(fth_graph *g, const char *from, const char *to, int64_t size, const char *x,
                        const char *out)
{
    const int n = (int)(strlen(from) + 1) / 2;
    int64_t count = 1, extent[FTH_MAX_AXES], step[FTH_MAX_AXES];
    for (int i = n - 1; i >= 0; i--) {
        const char name[2] = {from[2 * i], 0};
        step[(strchr(to, from[2 * i]) - to) / 2] = count;
        count *= fth_axis_size(g, name);
    }
    for (int i = 0; i < n; i++) extent[i] = fth_axis_size(g, (const char[2]){to[2 * i], 0});
    for (int64_t o = 0; o < count; o++) {
        int64_t left = o, at = 0;
        for (int i = n - 1; i >= 0; i--) {
            at += left % extent[i] * step[i];
            left /= extent[i];
        }
        if (memcmp(out + o * size, x + at * size, (size_t)size) != 0)
            FAIL("%s to %s: element %lld is not element %lld", from, to, (long long)o,
                 (long long)at);
    }
}

/* What decides how a copy is made: how long runs are on either side, and whether they are the same.
 */
TEST(layout_of_long_and_short_runs)
{
    static const struct {
        const char *axes, *from, *to;
    } turn[] = {{"a=132 b=76", "a b", "b a"},
                {"a=133 b=75", "a b", "b a"},
                {"a=700 b=3", "a b", "b a"},
                {"a=700 b=4", "b a", "a b"},
                {"a=90 b=3 c=4", "a b c", "a c b"},
                {"a=5 b=36 c=70", "a b c", "c b a"},
                {"a=40 b=50 c=3", "a b c", "b a c"},
                {"a=3 b=4 c=5 d=6 e=7", "a b c d e", "e c a d b"},
                {"a=2 b=3 c=2 d=3 e=2 f=3 g=2 h=5", "a b c d e f g h", "h g f e d c b a"},
                {"a=2 b=3 c=2 d=3 e=2 f=3 g=2 h=5", "a b c d e f g h", "b a d c f e h g"}};
    static const fth_dtype sizes[] = {FTH_U8, FTH_BF16, FTH_F32, FTH_C64, FTH_C128};
    for (size_t k = 0; k < 5 * sizeof turn / sizeof *turn; k++) {
        const char *from = turn[k / 5].from, *to = turn[k / 5].to;
        const fth_dtype t = sizes[k % 5];
        fth_graph *g = t_graph(turn[k / 5].axes);
        t_random r = t_random_make(k);
        const fth_val v = t_noise(g, "x", t, from, &r);
        char *out = malloc((size_t)(t_count(v) * fth_dtype_size(t)));
        t_eval(fth_layout(v, to), out);
        same_turned(g, from, to, fth_dtype_size(t), t_data(v), out);
        free(out);
        t_graph_free(g);
    }
}

TEST(layout_of_the_same_order_is_the_value_itself)
{
    fth_graph *g = t_graph("a=3 b=0 c=1");
    const fth_val v = t_input(g, "x", FTH_F32, "a b c", NULL);
    IS_TRUE(fth_layout(v, "a b c").id == v.id);
    char none[1];
    t_eval(fth_layout(v, "b c a"), none);
    IS_TRUE(!fth_val_ok(fth_layout(v, "a b")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "name each of: a b c");
    t_graph_free(g);
}

TEST(merge_and_split_are_inverse_and_remember)
{
    fth_graph *g = t_graph("group=4 chan=3 y=5");
    t_random r = t_random_make(5);
    const fth_val v = t_noise(g, "x", FTH_F32, "group chan y", &r);
    const fth_val m = fth_merge(v, "group chan", "patch");
    SHAPE(m, "f32 [patch=12 y=5]");
    float out[60];
    t_eval(m, out);
    SAME_BYTES(out, t_data(v), sizeof out);
    const fth_val s = fth_split(m, "patch", NULL);
    SHAPE(s, "f32 [group=4 chan=3 y=5]");
    t_eval(s, out);
    SAME_BYTES(out, t_data(v), sizeof out);
    t_graph_free(g);
}

TEST(merge_brings_parts_together_first)
{
    fth_graph *g = t_graph("a=2 b=3 c=4");
    t_random r = t_random_make(6);
    const fth_val v = t_noise(g, "x", FTH_I32, "a b c", &r);
    const fth_val m = fth_merge(v, "c a", "ca");
    SHAPE(m, "i32 [b=3 ca=8]");
    int32_t out[24];
    const int32_t *x = t_data(v);
    t_eval(m, out);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++) EQ_I64(out[b * 8 + c * 2 + a], x[(a * 3 + b) * 4 + c]);
    t_graph_free(g);
}

TEST(split_in_another_order_would_scramble)
{
    fth_graph *g = t_graph("b=4 c=4 y=2");
    const fth_val m = fth_merge(t_input(g, "x", FTH_F32, "b c y", NULL), "b c", "bc");
    IS_TRUE(!fth_val_ok(fth_split(m, "bc", "c b")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "merged from \"b c\"");
    t_graph_free(g);
}

TEST(split_needs_sizes_that_multiply)
{
    fth_graph *g = t_graph("n=12 a=3 b=5 c=4");
    const fth_val v = t_input(g, "x", FTH_F32, "n", NULL);
    SHAPE(fth_split(v, "n", "a c"), "f32 [a=3 c=4]");
    fth_graph *h = t_graph("n=12 a=3 b=5");
    IS_TRUE(!fth_val_ok(fth_split(t_input(h, "x", FTH_F32, "n", NULL), "n", "a b")));
    REFUSED(h, FTH_E_AXIS_SIZE, "15");
    t_graph_free(g);
    t_graph_free(h);
}

TEST(split_of_an_axis_without_memory_needs_names)
{
    fth_graph *g = t_graph("n=12");
    IS_TRUE(!fth_val_ok(fth_split(t_input(g, "x", FTH_F32, "n", NULL), "n", NULL)));
    REFUSED(g, FTH_E_AXIS_NAME, "not made by merge");
    t_graph_free(g);
}

TEST(merge_of_empty_and_single_axes)
{
    fth_graph *g = t_graph("a=0 b=3 c=1 d=4");
    char none[1];
    t_eval(fth_merge(t_input(g, "x", FTH_F32, "a b", NULL), "a b", "ab"), none);
    float out[4];
    t_random r = t_random_make(6);
    const fth_val v = t_noise(g, "y", FTH_F32, "c d", &r);
    t_eval(fth_merge(v, "c d", "cd"), out);
    SAME_BYTES(out, t_data(v), sizeof out);
    t_graph_free(g);
}

TEST(mark_is_kept_by_layout_expand_and_lost_by_merge)
{
    fth_graph *g = t_graph("k=2 row=3 col=3 new=2");
    const fth_val v =
        fth_mark(t_input(g, "L", FTH_F64, "k row col", NULL), FTH_LOWER, "row", "col");
    MADE(v);
    const fth_desc *d = fth__val_desc(fth_layout(fth_expand(v, "new"), "col new row k"));
    EQ_I64(d->triangle, FTH_LOWER);
    EQ_I64(d->row, 2);
    EQ_I64(d->col, 0);
    EQ_I64(fth__val_desc(fth_merge(v, "row col", "rc"))->triangle, FTH_FULL);
    EQ_I64(fth__val_desc(fth_merge(v, "k row", "kr"))->triangle, FTH_FULL);
    IS_TRUE(!fth_val_ok(fth_mark(v, FTH_LOWER, "k", "col")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "'k' and 'col'");
    t_graph_free(g);
}

TEST_MAIN()
