/* test_overlap.c - pieces that are asked for: reading, work and writing at the same time.
 * seconds: 3
 *
 * Reading, computing and writing a frame all sleep, so a run takes the sum of them when it does one
 * after the other and little more than the longest when it does not, however busy the machine is.
 */
#include "testing/test.h"

#include <fathom/fathom.h>

#include <time.h>

enum { FRAMES = 10, ROWS = 16, COLS = 64, ALL = FRAMES * ROWS * COLS, NAP_MS = 12 };

static void nap(int64_t frames)
{
    nanosleep(&(struct timespec){0, frames * NAP_MS * 1000000L}, NULL);
}

static fth_status read_frames(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    (void)err;
    float *to = dst;
    if (self) nap(n[0]);
    for (int64_t f = lo[0]; f < lo[0] + n[0]; f++)
        for (int64_t y = lo[1]; y < lo[1] + n[1]; y++)
            for (int64_t x = lo[2]; x < lo[2] + n[2]; x++)
                *to++ = (float)(f * 17 % 7) + 0.125f * (float)(y * 5 % 11) + 0.3f * (float)x;
    return FTH_OK;
}

static fth_status write_frames(void *self, const int64_t *lo, const int64_t *n, const void *src,
                               fth_err *err)
{
    (void)err;
    nap(n[0]);
    memcpy((float *)self + lo[0] * COLS, src, sizeof(float) * (size_t)(n[0] * COLS));
    return FTH_OK;
}

/* ---- an operation that takes its time for every frame ---- */

static fth_status slow_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void slow_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static fth_status slow_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    nap(out->extent[0]);
    for (int64_t f = 0; f < out->extent[0]; f++)
        for (int64_t y = 0; y < out->extent[1]; y++)
            for (int64_t x = 0; x < out->extent[2]; x++)
                ((float *)out->data)[f * out->stride[0] + y * out->stride[1] + x] =
                    2.0f * ((const float *)in->data)[f * in->stride[0] + y * in->stride[1] + x];
    return FTH_OK;
}

static const fth_op slow = {.name = "slow",
                            .flags = FTH_OP_NO_SPLIT,
                            .infer = slow_infer,
                            .relation = slow_relation,
                            .run = slow_run};

typedef struct program {
    fth_context *ctx;
    fth_graph *g;
    fth_val v; /* [f x] */
    fth_sink sink;
    float out[FRAMES * COLS];
} program;

static void open_program(program *t, bool sleeps)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    OK(fth_context_create(&t->ctx, &opt, NULL));
    t->g = fth_graph_create(t->ctx);
    fth_axis(t->g, "f", FRAMES);
    fth_axis(t->g, "y", ROWS);
    fth_axis(t->g, "x", COLS);
    const fth_source from = {.kind = "made",
                             .self = sleeps ? t : NULL,
                             .dtype = FTH_F32,
                             .n_axes = 3,
                             .size = {FRAMES, ROWS, COLS},
                             .read = read_frames};
    const fth_val x = fth_input(t->g, "x", FTH_F32, "f y x", from);
    t->v = fth_sum(sleeps ? fth_custom(t->g, &slow, 1, &x, NULL, 0) : fth_exp(x), "y");
    t->sink = (fth_sink){.kind = "made",
                         .self = t->out,
                         .dtype = FTH_F32,
                         .n_axes = 2,
                         .size = {FRAMES, COLS},
                         .write = write_frames};
    if (!sleeps) t->sink.write = NULL, t->sink.data = t->out;
}

static void close_program(program *t)
{
    fth_graph_destroy(t->g);
    OK(fth_context_destroy(t->ctx, NULL));
}

static fth_plan_info run(program *t, fth_limits limits, fth_run_report *report)
{
    fth_err err = {0};
    fth_plan_info info;
    memset(t->out, 0, sizeof t->out);
    fth_plan *p = fth_plan_make(t->g, &t->v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    fth_plan_get_info(p, &info);
    OKE(fth_run(p, &t->sink, NULL, report, &err), &err);
    fth_plan_destroy(p);
    return info;
}

TEST(reading_work_and_writing_overlap)
{
    program t;
    open_program(&t, true);
    fth_run_report whole, pieces;
    static float want[FRAMES * COLS];
    EQ_I64(run(&t, (fth_limits){0}, &whole).passes, 0);
    memcpy(want, t.out, sizeof want);
    const fth_plan_info info = run(&t, (fth_limits){.min_pieces = FRAMES, .stream = "f"}, &pieces);
    EQ_I64(info.chunks, FRAMES);
    SAME_BYTES(t.out, want, sizeof want);
    /* one after the other: the sum of the three */
    IS_TRUE(whole.seconds >= whole.read_seconds + whole.kernel_seconds + whole.write_seconds);
    /* overlapping: reading is as long as before, and hides most of the rest */
    const double sum = pieces.read_seconds + pieces.kernel_seconds + pieces.write_seconds;
    LE_F64(pieces.seconds, 0.75 * sum);
    close_program(&t);
}

/* Any number of pieces, any budget, any axis: the same bits; and as many as were asked for. */
TEST(pieces_do_not_change_what_is_computed)
{
    static const char *const stream[] = {NULL, "f", "x", ""};
    program t;
    open_program(&t, false);
    static float want[FRAMES * COLS];
    fth_run_report report;
    const uint64_t peak = run(&t, (fth_limits){0}, &report).peak_bytes;
    memcpy(want, t.out, sizeof want);
    for (int k = 0; k < 4 * 6; k++) {
        static const int64_t pieces[] = {0, 1, 3, FRAMES, 1000, FTH_PIECES_AUTO};
        const int64_t n = pieces[k % 6];
        const fth_limits limits = {.min_pieces = n, .stream = stream[k / 6]};
        const fth_plan_info info = run(&t, limits, &report);
        SAME_BYTES(t.out, want, sizeof want);
        IS_TRUE(report.kept || T_SANITIZED);
        if (k / 6 == 3) EQ_I64(info.passes, 0);
        if (k / 6 == 1 && n > 0) IS_TRUE(info.chunks >= (n < FRAMES ? n : FRAMES));
        if (k / 6 == 1 && n > 1) IS_TRUE(info.peak_bytes < peak);
    }
    close_program(&t);
}

/* Where nothing can be cut, everything is done at once as before. */
TEST(what_cannot_be_cut_is_whole)
{
    program t;
    open_program(&t, false);
    const fth_val flat = fth_sum(fth_sum(t.v, "f"), "x");
    float got = 0.0f;
    const fth_sink sink = {.kind = "made", .dtype = FTH_F32, .data = &got};
    fth_err err = {0};
    fth_plan *p = fth_plan_make(t.g, &flat, 1, &(fth_limits){.min_pieces = 4, .stream = ""}, &err);
    OKE(p ? FTH_OK : err.status, &err);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    EQ_I64(info.chunks, 0);
    IS_TRUE(got > 0.0f);
    fth_plan_destroy(p);
    close_program(&t);
}

TEST(a_number_of_pieces_that_is_none)
{
    program t;
    open_program(&t, false);
    fth_err err = {0};
    IS_TRUE(!fth_plan_make(t.g, &t.v, 1, &(fth_limits){.min_pieces = -2}, &err));
    IS(err.status, FTH_E_USAGE);
    HAS(err.text, "min_pieces is -2");
    close_program(&t);
}

TEST_MAIN()
