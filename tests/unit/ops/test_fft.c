/* test_fft.c - transforms of every kind and layout against the sum that defines them.
 * seconds: 10
 */
#include "testing/engine/op_cut.h"

extern const fth_kernel fth__cpu_fft;

typedef struct setup {
    const char *in, *axes, *into; /* axes named x y z are transformed into u v w */
    int64_t x, y, z;
} setup;

static const fth_node *node_of(oc_bench *b, const setup *s, fth_fft_kind kind, bool wide)
{
    const bool real = kind == FTH_FFT_REAL, back = kind == FTH_FFT_REAL_INVERSE;
    fth_axis(b->g, "x", back ? s->x / 2 + 1 : s->x);
    fth_axis(b->g, "u", real ? s->x / 2 + 1 : s->x);
    fth_axis(b->g, "y", s->y);
    fth_axis(b->g, "v", s->y);
    fth_axis(b->g, "z", s->z);
    fth_axis(b->g, "w", s->z);
    fth_axis(b->g, "l", 3);
    fth_axis(b->g, "m", 21);
    const fth_dtype t = real ? (wide ? FTH_F64 : FTH_F32) : wide ? FTH_C128 : FTH_C64;
    const fth_node *node =
        oc_node(b, fth_fft_(FTH_HERE, kind, oc_in(b, "from", t, s->in), s->axes, s->into));
    EQ_I64(node->out[0].n_axes, node->in[0].n_axes);
    return node;
}

static void check(const setup *s, fth_fft_kind kind, bool wide)
{
    oc_bench b;
    oc_open(&b);
    const fth_node *node = node_of(&b, s, kind, wide);
    t_random r = t_random_make((uint64_t)s->x);
    const int64_t bytes = oc_bytes(&node->out[0]);
    oc_case c = {.node = node,
                 .in = {aligned_alloc(64, (size_t)(oc_bytes(&node->in[0]) / 64 + 1) * 64)}};
    oc_fill(&r, &node->in[0], c.in[0]);
    void *result[4];
    for (int i = 0; i < 4; i++) {
        c.kernel = i < 2 ? NULL : &fth__cpu_fft;
        c.out[0] = result[i] = aligned_alloc(64, (size_t)(bytes / 64 + 1) * 64);
        OKE(i % 2 ? oc_run_cut(&c, &r) : oc_run(&c), &c.err);
    }
    SAME_BYTES(result[0], result[1], bytes);
    SAME_BYTES(result[2], result[3], bytes);
    LE_F64(oc_error(&node->out[0], result[2], result[0]), wide ? 1e-14 : 3e-6);
    for (int i = 0; i < 4; i++) free(result[i]);
    free(c.in[0]);
    oc_close(&b);
}

TEST(every_kind_and_layout)
{
    static const setup setups[] = {
        {"x", "x", "u", 16, 1, 1},
        {"x", "x", "u", 15, 1, 1},
        {"x", "x", "u", 1, 1, 1},
        {"x", "x", "u", 2, 1, 1},
        {"l x", "x", "u", 30, 1, 1},
        {"x l", "x", "u", 13, 1, 1},
        {"l x m", "x", "u", 10, 1, 1},
        {"x", "x", "u", 0, 1, 1},
        {"l x", "x", "u", 64, 1, 1},
        {"y x", "y x", "v u", 8, 6, 1},
        {"x y", "y x", "v u", 8, 6, 1},
        {"l y x", "y x", "v u", 9, 5, 1},
        {"y l x", "y x", "v u", 7, 4, 1},
        {"y x l", "y x", "v u", 6, 9, 1},
        {"x m y", "y x", "v u", 5, 4, 1},
        {"x y", "y x", "v u", 6, 96, 1},
        {"y x", "y x", "v u", 0, 3, 1},
        {"y x", "y x", "v u", 3, 0, 1},
        {"y x", "y x", "v u", 1, 1, 1},
        {"z y x", "z y x", "w v u", 8, 6, 4},
        {"x y z", "z y x", "w v u", 5, 4, 3},
        {"y z x", "z y x", "w v u", 4, 3, 6},
        {"z x y", "z y x", "w v u", 6, 2, 5},
        {"l z y x", "z y x", "w v u", 7, 5, 2},
        {"z l y x", "z y x", "w v u", 4, 5, 3},
        {"z y x l", "z y x", "w v u", 6, 4, 3},
        {"z y l x", "z y x", "w v u", 3, 4, 5},
        {"z y x", "z y x", "w v u", 2, 18, 17},
        {"z y x", "z y x", "w v u", 1, 1, 1},
        {"z y x", "z y x", "w v u", 1, 5, 1},
        {"z y x", "z y x", "w v u", 4, 3, 0},
        {"z y x", "z y x", "w v u", 4, 0, 3},
        {"z y x", "z y x", "w v u", 0, 4, 3},
    };
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        for (int k = 0; k < 8; k++) check(&setups[i], (fth_fft_kind)(k & 3), k >> 2);
}

/* ---- by a team: the same bits, whoever takes which rows and images, in the scratch it declares */

static fth_tile whole(const fth_desc *d, void *data)
{
    fth_tile t = {.data = data};
    int64_t step = 1;
    for (int i = d->n_axes - 1; i >= 0; step *= d->size[i--]) {
        t.extent[i] = d->size[i];
        t.stride[i] = step;
    }
    return t;
}

static void check_team(const setup *s, fth_fft_kind kind, bool wide)
{
    oc_bench b;
    oc_open(&b);
    const fth_node *node = node_of(&b, s, kind, wide);
    const int64_t bytes = oc_bytes(&node->out[0]);
    t_random r = t_random_make((uint64_t)s->x);
    void *from = malloc((size_t)oc_bytes(&node->in[0]) + 1), *got[3];
    oc_fill(&r, &node->in[0], from);
    for (int i = 0; i < 3; i++) {
        fth_team *team = NULL;
        fth_err err = {0};
        if (i > 0) OK(fth_team_create(&team, b.ctx.mem, i + 1, NULL));
        got[i] = malloc((size_t)bytes + 1);
        fth_call call = {.node = node, .threads = i + 1, .err = &err};
        call.in[0] = whole(&node->in[0], NULL);
        call.out[0] = whole(&node->out[0], NULL);
        const size_t room = (size_t)fth__cpu_fft.scratch(&call);
        char *scratch = aligned_alloc(64, (room / 64 + 2) * 64);
        memset(scratch, 0x5a, (room / 64 + 2) * 64);
        call.team = team;
        call.in[0].data = from;
        call.out[0].data = got[i];
        call.scratch = scratch;
        OKE(fth__cpu_fft.run(&call), &err);
        for (size_t k = room; k < (room / 64 + 2) * 64; k++) EQ_I64(scratch[k], 0x5a);
        free(scratch);
        fth_team_destroy(team);
        SAME_BYTES(got[0], got[i], bytes);
    }
    for (int i = 0; i < 3; i++) free(got[i]);
    free(from);
    oc_close(&b);
}

TEST(any_team_gives_the_same_bits)
{
    static const setup setups[] = {
        {"y x", "y x", "v u", 300, 210, 1},
        {"x y", "y x", "v u", 96, 260, 1},
        {"y x", "y x", "v u", 37, 150, 1},
        {"z y x", "z y x", "w v u", 64, 30, 20},
        {"z x y", "z y x", "w v u", 24, 30, 70},
        {"x z y", "z y x", "w v u", 66, 18, 20},
        {"l z y x", "z y x", "w v u", 32, 37, 9},
        {"l m x", "x", "u", 200, 1, 1},
        {"x m l", "x", "u", 4100, 1, 1},
        {"z y x", "z y x", "w v u", 6, 0, 5},
        {"x", "x", "u", 4100, 1, 1},
        {"x l", "x", "u", 4100, 1, 1},
        {"x l", "x", "u", 2099, 1, 1},
        {"l x", "x", "u", 2099, 1, 1},
    };
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        for (int k = 0; k < 8; k++) check_team(&setups[i], (fth_fft_kind)(k & 3), k >> 2);
}

/* Room for rows that are copied together is taken for those there are. */
TEST(one_long_row_takes_few_times_its_bytes)
{
    enum { ROW = 1 << 18 };
    oc_bench b;
    oc_open(&b);
    const setup s = {"x", "x", "u", ROW, 1, 1};
    const fth_node *node = node_of(&b, &s, FTH_FFT_FORWARD, false);
    fth_call call = {.node = node, .threads = 2};
    call.in[0] = whole(&node->in[0], NULL);
    call.out[0] = whole(&node->out[0], NULL);
    /* roots, and for each worker the row as columns and as a row */
    IS_TRUE((int64_t)fth__cpu_fft.scratch(&call) <= 6 * oc_bytes(&node->in[0]));
    oc_close(&b);
}

TEST(a_wave_by_hand)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "x", 4);
    fth_axis(b.g, "u", 3);
    float wave[4] = {1, 2, -1, 0}, back[4];
    fth_c64 f[3];
    oc_case c = {.node = oc_node(&b, fth_rfft(oc_in(&b, "w", FTH_F32, "x"), "x", "u")),
                 .in = {wave},
                 .out = {f}};
    oc_case d = {.node = oc_node(&b, fth_irfft(oc_in(&b, "f", FTH_C64, "u"), "u", "x")),
                 .in = {f},
                 .out = {back}};
    for (int fast = 0; fast < 2; fast++) {
        c.kernel = d.kernel = fast ? &fth__cpu_fft : NULL;
        OK(oc_run(&c));
        NEAR(f[0].re, 2, 1e-6);
        NEAR(f[1].re, 2, 1e-6); /* 1 - 2i + 1 + 0 */
        NEAR(f[1].im, -2, 1e-6);
        NEAR(f[2].re, -2, 1e-6);
        OK(oc_run(&d));
        for (int i = 0; i < 4; i++) NEAR(back[i], wave[i], 1e-6);
    }
    oc_close(&b);
}

TEST(refusals)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "x", 8);
    fth_axis(b.g, "u", 6);
    fth_axis(b.g, "w", 5);
    fth_axis(b.g, "k", 8);
    fth_err err = {0};
    fth_val re = oc_in(&b, "re", FTH_F32, "x"), z = oc_in(&b, "z", FTH_C64, "x"),
            two = oc_in(&b, "two", FTH_C64, "x k");
    fth_fft(re, "x", "k");
    fth_graph_errors(b.g, 0, &err);
    EQ_I64(err.status, FTH_E_DTYPE_OP);
    fth_rfft(re, "x", "u");
    fth_graph_errors(b.g, 1, &err);
    EQ_I64(err.status, FTH_E_AXIS_SIZE);
    HAS(err.hint, "8 real points have n/2+1 = 5 frequencies");
    fth_fft(z, "x", "k w");
    fth_graph_errors(b.g, 2, &err);
    EQ_I64(err.status, FTH_E_GRAPH_ATTR);
    fth_fft(two, "x", "k");
    fth_graph_errors(b.g, 3, &err);
    EQ_I64(err.status, FTH_E_AXIS_MISMATCH);
    fth_fft(z, "x k u w", "k x u w");
    fth_graph_errors(b.g, 4, &err);
    EQ_I64(err.status, FTH_E_GRAPH_ATTR);
    HAS(err.text, "one to three axes");
    fth_rfft(oc_in(&b, "n", FTH_I32, "x"), "x",
             "w"); /* what is said of reals and complex numbers */
    fth_graph_errors(b.g, 5, &err);
    HAS(err.hint, "it takes f32 f64; write the cast");
    fth_rfft(z, "x", "w");
    fth_graph_errors(b.g, 6, &err);
    HAS(err.hint, "fth_fft transforms complex values");
    EQ_I64(fth_graph_errors(b.g, 0, NULL), 7);
    IS_TRUE(fth_val_ok(fth_rfft(re, "x", "w")));
    IS_TRUE(fth_val_ok(fth_fft(two, "x k", "k x")));
    oc_close(&b);
}

TEST_MAIN()
