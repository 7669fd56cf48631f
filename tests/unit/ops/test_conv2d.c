/* test_conv2d.c - convolutions and both gradients: against plain loops, cut anywhere, and adjoint
 * to each other. seconds: 20 labels: gpu
 */
#include "ops/conv2d.h"
#include "testing/engine/op_cut.h"
#include "testing/full.h"

#include <fathom/products.h>

#include <math.h>

extern const fth_kernel fth__cpu_conv2d, fth__cpu_conv2d_grad_input, fth__cpu_conv2d_grad_weight;

typedef struct setup {
    const char *image, *weights;
    int64_t batch, chan, y, x, out_chan, ky, kx, out_y, out_x;
    int64_t stride, dilation, pad_y, pad_x;
} setup;

static void declare(oc_bench *b, const setup *s)
{
    fth_axis(b->g, "b", s->batch);
    fth_axis(b->g, "c", s->chan);
    fth_axis(b->g, "y", s->y);
    fth_axis(b->g, "x", s->x);
    fth_axis(b->g, "o", s->out_chan);
    fth_axis(b->g, "ky", s->ky);
    fth_axis(b->g, "kx", s->kx);
    fth_axis(b->g, "oy", s->out_y);
    fth_axis(b->g, "ox", s->out_x);
}

static fth_val build(oc_bench *b, const setup *s, fth_dtype t, bool tiled)
{
    const fth_conv conv = {.y = "y",
                           .x = "x",
                           .out_y = "oy",
                           .out_x = "ox",
                           .chan = "c",
                           .ky = "ky",
                           .kx = "kx",
                           .stride = s->stride,
                           .dilation = s->dilation,
                           .pad_y = s->pad_y,
                           .pad_x = s->pad_x};
    const fth_val v = oc_in(b, "v", t, s->image), w = oc_in(b, "w", t, s->weights);
    return tiled ? fth_conv2d_tiled(v, w, &conv) : fth_conv2d(v, w, &conv);
}

static void *room(const fth_desc *d)
{
    void *p = calloc(1, (size_t)oc_bytes(d) + 64);
    IS_TRUE(p != NULL);
    return p;
}

/* Four ways to the same result; leaves the fast one in c->out[0]. */
static void check_node(const fth_node *node, const fth_kernel *kernel, t_random *r, void *in0,
                       void *in1, void **out)
{
    oc_case c = {.node = node, .in = {in0, in1}};
    void *result[4];
    for (int i = 0; i < 4; i++) {
        c.kernel = i < 2 ? NULL : kernel;
        c.out[0] = result[i] = room(&node->out[0]);
        OKE(i % 2 ? oc_run_cut(&c, r) : oc_run(&c), &c.err);
    }
    SAME_BYTES(result[0], result[1], oc_bytes(&node->out[0]));
    SAME_BYTES(result[2], result[3], oc_bytes(&node->out[0]));
    LE_F64(oc_error(&node->out[0], result[2], result[0]),
           node->out[0].dtype == FTH_F32 ? 1e-5 : 1e-13);
    for (int i = 0; i < 3; i++) free(result[i]);
    *out = result[3];
}

static double inner(const fth_desc *d, const void *p, const void *q)
{
    double sum = 0.0;
    for (int64_t i = 0; i < fth_desc_count(d); i++) sum += oc_get(d, p, i, 0) * oc_get(d, q, i, 0);
    return sum;
}

static void check(const setup *s, fth_dtype t, bool tiled)
{
    oc_bench b;
    oc_open(&b);
    declare(&b, s);
    const fth_val v = build(&b, s, t, tiled);
    const fth_node *node = oc_node(&b, v);
    const fth_val bar = oc_in(&b, "bar", t, strchr(s->image, 'b') ? "b o oy ox" : "o oy ox");
    fth_val in_bar[2] = {{0}};
    char axes[64];
    const fth_val as_out = fth_layout(bar, fth__desc_axes(b.g, &node->out[0], axes, sizeof axes));
    OK(node->op->vjp(node, &as_out, in_bar, NULL));
    t_random r = t_random_make((uint64_t)(s->x * 31 + s->y));
    void *image = room(&node->in[0]), *weights = room(&node->in[1]), *seed = room(&node->out[0]);
    oc_fill(&r, &node->in[0], image);
    oc_fill(&r, &node->in[1], weights);
    oc_fill(&r, &node->out[0], seed);
    void *out, *image_bar, *weights_bar;
    check_node(node, &fth__cpu_conv2d, &r, image, weights, &out);
    check_node(oc_node(&b, in_bar[0]), &fth__cpu_conv2d_grad_input, &r, seed, weights, &image_bar);
    check_node(oc_node(&b, in_bar[1]), &fth__cpu_conv2d_grad_weight, &r, seed, image, &weights_bar);
    /* linear in each operand: <seed, conv(v, w)> = <v_bar, v> = <w_bar, w> */
    const double value = inner(&node->out[0], seed, out),
                 scale = 1.0 + (value > 0 ? value : -value);
    NEAR(inner(&node->in[0], image_bar, image) / scale, value / scale, t == FTH_F32 ? 1e-4 : 1e-12);
    NEAR(inner(&node->in[1], weights_bar, weights) / scale, value / scale,
         t == FTH_F32 ? 1e-4 : 1e-12);
    free(image), free(weights), free(seed), free(out), free(image_bar), free(weights_bar);
    oc_close(&b);
}

TEST(every_layout_stride_and_padding)
{
    static const setup setups[] = {
        {"b c y x", "o c ky kx", 3, 2, 9, 8, 4, 3, 3, 9, 8, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 3, 9, 8, 2, 3, 2, 4, 4, 2, 1, 0, 0},
        {"b c y x", "o c ky kx", 2, 2, 11, 9, 3, 3, 3, 7, 5, 1, 2, 0, 0},
        {"b c y x", "o c ky kx", 2, 1, 7, 6, 1, 5, 5, 5, 4, 2, 2, 4, 3},
        {"b y x c", "o ky kx c", 3, 2, 9, 8, 4, 3, 3, 9, 8, 1, 1, 1, 1},
        {"y x c b", "kx ky c o", 3, 2, 6, 5, 4, 3, 3, 3, 3, 2, 1, 1, 1},
        {"c x y", "c o kx ky", 1, 2, 9, 8, 4, 3, 3, 9, 8, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 1, 1, 40, 600, 2, 3, 3, 40, 600, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 70, 1, 3, 3, 2, 2, 2, 2, 2, 1, 1, 0, 0},
        {"b c y x", "o c ky kx", 70000, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 0, 0},
        {"b c y x", "o c ky kx", 2, 5, 9, 300, 3, 1, 1, 9, 300, 1, 1, 0, 0},
        {"b c y x", "o c ky kx", 1, 20, 40, 100, 17, 3, 5, 40, 100, 1, 1, 1, 2},
        {"b c y x", "o c ky kx", 2, 130, 4, 4, 3, 3, 3, 4, 4, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 0, 2, 4, 4, 3, 3, 3, 4, 4, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 0, 4, 4, 3, 3, 3, 4, 4, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 2, 4, 4, 3, 3, 3, 0, 4, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 2, 4, 4, 3, 1, 1, 6, 7, 3, 1, 2, 5},
        /* channels innermost with a stride; more channels than one tile of a device */
        {"b y x c", "o ky kx c", 2, 5, 7, 9, 6, 3, 3, 4, 5, 2, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 37, 6, 12, 67, 3, 3, 6, 12, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 3, 5, 7, 35, 5, 5, 5, 7, 1, 1, 2, 2},
        {"b y x c", "o ky kx c", 2, 40, 5, 6, 36, 3, 3, 5, 6, 1, 1, 1, 1},
        {"b y x c", "o ky kx c", 66, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 0, 0},
        {"b c y x", "o c ky kx", 2, 34, 7, 9, 33, 3, 3, 4, 5, 2, 1, 1, 1},
        {"b c y x", "o c ky kx", 1, 130, 3, 3, 2, 3, 3, 3, 3, 1, 1, 1, 1},
        /* slices of sums, and columns of a tile, that are channels of one place */
        {"b c y x", "o c ky kx", 2, 128, 5, 7, 16, 3, 3, 3, 4, 2, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 64, 7, 9, 16, 3, 3, 7, 9, 1, 1, 1, 1},
    };
    const bool both = t_one_in(1, 2) == 1;
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        setup s = setups[i];
        if (!both && s.y == 40) s.y = s.out_y = 10; /* high images are many of the same rows */
        if (both || i % 2 == 0) check(&s, FTH_F32, false);
        if (both || i % 2 == 1) check(&s, FTH_F64, false);
    }
}

/* Winograd: odd sizes, every padding, channels in any order, fewer rows than the image allows, more
 * channels than a panel, blocks of images, wide rows; and what it leaves to the others. */
TEST(tiles_of_two_by_two)
{
    static const setup setups[] = {
        {"b c y x", "o c ky kx", 3, 4, 8, 8, 4, 3, 3, 8, 8, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 3, 5, 9, 7, 6, 3, 3, 9, 7, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 4, 9, 8, 7, 3, 3, 7, 6, 1, 1, 0, 0},
        {"b c y x", "o c ky kx", 2, 4, 9, 8, 9, 3, 3, 11, 10, 1, 1, 2, 2},
        {"b c y x", "o c ky kx", 2, 4, 30, 5, 4, 3, 3, 17, 3, 1, 1, 0, 1},
        {"b c y x", "o c ky kx", 1, 4, 1, 1, 4, 3, 3, 1, 1, 1, 1, 1, 1},
        {"b y x c", "o ky kx c", 3, 6, 9, 8, 5, 3, 3, 9, 8, 1, 1, 1, 1},
        {"y x c b", "kx ky c o", 3, 4, 6, 5, 4, 3, 3, 6, 5, 1, 1, 1, 1},
        {"c x y", "c o kx ky", 1, 4, 9, 8, 4, 3, 3, 9, 8, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 37, 6, 12, 67, 3, 3, 6, 12, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 70, 10, 34, 20, 3, 3, 10, 34, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 70, 4, 5, 4, 5, 3, 3, 5, 4, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 1, 4, 40, 258, 4, 3, 3, 40, 258, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 1, 4, 5, 600, 4, 3, 3, 5, 600, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 4, 9, 8, 4, 3, 3, 5, 4, 2, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 4, 9, 8, 4, 3, 3, 5, 4, 1, 2, 0, 0},
        {"b c y x", "o c ky kx", 2, 3, 9, 8, 4, 3, 3, 9, 8, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 0, 4, 4, 4, 4, 3, 3, 4, 4, 1, 1, 1, 1},
        {"b c y x", "o c ky kx", 2, 4, 4, 4, 4, 3, 3, 0, 4, 1, 1, 1, 1},
    };
    const size_t n = t_device() ? 2 : sizeof setups / sizeof *setups; /* plain on a device */
    for (size_t i = 0; i < n; i++) check(&setups[i], FTH_F32, true);
    check(&setups[0], FTH_F64, true);
}

/* Small whole numbers are exact in every transform; that they are made is seen by Inf. */
TEST(tiles_by_hand)
{
    enum { SIDE = 6, CHAN = 4 };
    oc_bench b;
    oc_open(&b);
    const setup s = {"c y x", "o c ky kx", 1, CHAN, SIDE, SIDE, CHAN, 3, 3, SIDE, SIDE, 1, 1, 1, 1};
    declare(&b, &s);
    float image[CHAN][SIDE][SIDE] = {{{0}}}, weights[CHAN][CHAN][9], out[CHAN][SIDE][SIDE];
    for (int i = 0; i < CHAN * CHAN * 9; i++) (&weights[0][0][0])[i] = (float)(1 + i / 9);
    image[1][2][3] = 1;
    oc_case c = {.node = oc_node(&b, build(&b, &s, FTH_F32, true)),
                 .in = {image, weights},
                 .out = {out},
                 .kernel = &fth__cpu_conv2d};
    OK(oc_run(&c));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            EQ_F64(out[2][y][x], y >= 1 && y <= 3 && x >= 2 && x <= 4 ? 10 : 0);
    image[1][2][3] = NAN;
    OK(oc_run(&c));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            EQ_I64(isnan(out[2][y][x]) != 0, y >= 1 && y <= 3 && x >= 2 && x <= 4);
    image[1][2][3] = INFINITY;
    OK(oc_run(&c));
    IS_TRUE(isnan(out[2][2][3])); /* one of its points has it with another sign */
    EQ_F64(out[2][0][3], 0);
    oc_close(&b);
}

TEST(numbers_by_hand)
{
    oc_bench b;
    oc_open(&b);
    const setup s = {"c y x", "o c ky kx", 1, 1, 2, 3, 1, 2, 2, 2, 3, 1, 1, 0, 0};
    declare(&b, &s);
    float image[6] = {1, 2, 3, 4, 5, 6}, weights[4] = {1, 10, 100, 1000}, out[6];
    oc_case c = {
        .node = oc_node(&b, build(&b, &s, FTH_F32, false)), .in = {image, weights}, .out = {out}};
    for (int fast = 0; fast < 2; fast++) {
        c.kernel = fast ? &fth__cpu_conv2d : NULL;
        OK(oc_run(&c));
        EQ_F64(out[0], 5421);
        EQ_F64(out[1], 6532);
        EQ_F64(out[2], 603); /* zeros beyond the edge */
        EQ_F64(out[5], 6);
    }
    oc_close(&b);
}

TEST(refusals)
{
    oc_bench b;
    oc_open(&b);
    const setup s = {"b c y x", "o c ky kx", 1, 1, 2, 3, 1, 2, 2, 2, 3, 0, 1, 0, 0};
    declare(&b, &s);
    fth_err err = {0};
    build(&b, &s, FTH_F32, false);
    fth_graph_errors(b.g, 0, &err);
    EQ_I64(err.status, FTH_E_GRAPH_ATTR);
    const setup no_chan = {"b y x", "c ky kx o", 1, 1, 2, 3, 1, 2, 2, 2, 3, 1, 1, 0, 0};
    const fth_conv conv = {"y", "x", "oy", "ox", "c", "ky", "kx", 1, 1, 0, 0};
    fth_conv2d(oc_in(&b, "p", FTH_F32, no_chan.image), oc_in(&b, "q", FTH_F32, no_chan.weights),
               &conv);
    fth_graph_errors(b.g, 1, &err);
    EQ_I64(err.status, FTH_E_AXIS_MISMATCH);
    HAS(err.text, "p f32 [b=1 y=2 x=3]");
    fth_conv2d(oc_in(&b, "i", FTH_I32, "b c y x"), oc_in(&b, "j", FTH_I32, "o c ky kx"), &conv);
    fth_graph_errors(b.g, 2, &err);
    EQ_I64(err.status, FTH_E_DTYPE_OP);
    fth_conv2d(oc_in(&b, "i1", FTH_F32, "b c y x"), oc_in(&b, "j1", FTH_F64, "o c ky kx"), &conv);
    fth_graph_errors(b.g, 3, &err);
    EQ_I64(err.status, FTH_E_DTYPE);
    fth_conv2d(oc_in(&b, "i2", FTH_F32, "b c y x"), oc_in(&b, "j2", FTH_F32, "o c ky kx"), NULL);
    fth_graph_errors(b.g, 4, &err);
    EQ_I64(err.status, FTH_E_USAGE);
    HAS(err.text, "fth_conv is NULL");
    oc_close(&b);
}

TEST_MAIN()
