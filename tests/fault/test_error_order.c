/* seconds: 5
 * test_error_order.c - of several failures the earliest in the order of the plan is reported.
 *
 * Reads run ahead, writes run behind and pieces run side by side, so the first failure in time may
 * be any of them. Each case makes two things fail and delays one, then the other: the words must
 * be the same.
 */
#include "testing/test.h"

#include "run/io.h"

#include <fathom/fathom.h>
#include <time.h>

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static fth_context *open_context(void)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    fth_context *ctx;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

/* ---- pieces side by side ---- */

enum { MATRICES = 64, N = 48 };

/* Matrices 5 and 37 are not positive definite; the first fails late in its work, the other soon. */
static fth_status read_matrices(void *self, const int64_t *lo, const int64_t *n, void *dst,
                                fth_err *err)
{
    (void)self, (void)err;
    double *out = dst;
    for (int64_t m = lo[0]; m < lo[0] + n[0]; m++)
        for (int64_t i = lo[1]; i < lo[1] + n[1]; i++)
            for (int64_t j = lo[2]; j < lo[2] + n[2]; j++) {
                const bool bad = (m == 5 && i == N - 1) || (m == 37 && i == 0);
                *out++ = i == j ? (bad ? -1.0 : 1.0) : 0.9; /* a factor of it is not definite */
            }
    return FTH_OK;
}

/* The factor takes the place of its operand, so the words cannot be found by trying again. */
TEST(the_lowest_piece_speaks)
{
    fth_context *ctx = open_context();
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "m", MATRICES);
    fth_axis(g, "i", N);
    fth_axis_like(g, "j", "i");
    const fth_source src = {.kind = "made",
                            .dtype = FTH_F64,
                            .n_axes = 3,
                            .size = {MATRICES, N, N},
                            .read = read_matrices};
    const fth_val a = fth_input(g, "a", FTH_F64, "m i j", src);
    const fth_val v = fth_sum(fth_sum(fth_cholesky(a, "i", "j"), "i"), "j");
    fth_err err = {0};
    fth_plan *p = fth_plan_make(g, &v, 1, NULL, &err);
    if (!p) OKE(err.status, &err);
    fth_tensor *t;
    const int64_t size[1] = {MATRICES};
    OKE(fth_tensor_create(&t, fth_context_mem(ctx), "out", FTH_F64, 1, size, &err), &err);
    const fth_sink k = fth_tensor_sink(t);
    for (int rep = 0; rep < 20; rep++) {
        err = (fth_err){0};
        IS(fth_run(p, &k, NULL, NULL, &err), FTH_E_NUMERIC);
        HAS(err.text, "order 48 at m=5 ");
    }
    fth_tensor_release(t);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- a read ahead, a step, a write behind ---- */

enum { ROWS = 4096 };
enum { READ, STEP, WRITE, STAGES };

/* The row at which each stage fails, -1: never; and how long it takes before it does. */
typedef struct fate {
    int64_t row[STAGES];
    long ms[STAGES];
} fate;

static fth_status meet(const fate *f, int stage, int64_t lo, int64_t n, fth_err *err)
{
    static const fth_status status[STAGES] = {FTH_E_FILE_READ, FTH_E_NUMERIC, FTH_E_FILE_WRITE};
    const int64_t row = f->row[stage];
    if (row < lo || row >= lo + n) return FTH_OK;
    wait_ms(f->ms[stage]);
    return FTH_FAIL(err, status[stage], "stage %d at row %lld", stage, (long long)row);
}

static fth_status read_column(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    memset(dst, 0, (size_t)n[0] * sizeof(float));
    return meet(self, READ, lo[0], n[0], err);
}

static fth_status write_column(void *self, const int64_t *lo, const int64_t *n, const void *src,
                               fth_err *err)
{
    (void)src;
    return meet(self, WRITE, lo[0], n[0], err);
}

static fth_status copy_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void copy_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static fth_status copy_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    for (int64_t i = 0; i < in->extent[0]; i++)
        ((float *)out->data)[i * out->stride[0]] = ((const float *)in->data)[i * in->stride[0]];
    const fate *const *f = call->node->attr;
    return meet(*f, STEP, in->origin[0], in->extent[0], call->err);
}

static const fth_op copy = {.name = "copy",
                            .flags = FTH_OP_MAY_FAIL,
                            .infer = copy_infer,
                            .relation = copy_relation,
                            .run = copy_run};

/* Two stages fail, `first` in the piece before that of `second`; whichever is slow, `first` is
 * reported. */
static void in_order(int first, int second)
{
    fth_context *ctx = open_context();
    fate f = {.row = {-1, -1, -1}};
    const fate *self = &f;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    const fth_source src = {.kind = "column",
                            .self = &f,
                            .dtype = FTH_F32,
                            .n_axes = 1,
                            .size = {ROWS},
                            .read = read_column};
    const fth_val x = fth_input(g, "x", FTH_F32, "row", src);
    const fth_val v = fth_custom(g, &copy, 1, &x, &self, sizeof self);
    fth_err err = {0};
    const fth_limits limits = {.memory_bytes = 8 << 10, .stream = "row"};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    IS_TRUE(info.chunks >= 8);
    const int64_t chunk = (ROWS + info.chunks - 1) / info.chunks;
    const fth_sink sink = {.kind = "column",
                           .self = &f,
                           .dtype = FTH_F32,
                           .n_axes = 1,
                           .size = {ROWS},
                           .write = write_column};
    for (int rep = 0; rep < 10; rep++) {
        f = (fate){.row = {-1, -1, -1}};
        f.row[first] = 4 * chunk;
        f.row[second] = 5 * chunk;
        f.ms[rep % 2 ? first : second] = 20;
        err = (fth_err){0};
        const fth_status got = fth_run(p, &sink, NULL, NULL, &err);
        char want[64];
        snprintf(want, sizeof want, "stage %d at row %lld", first, (long long)(4 * chunk));
        HAS(err.text, want);
        IS(got, err.status);
    }
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_step_comes_before_the_read_ahead)
{
    in_order(STEP, READ);
}

TEST(a_write_behind_comes_before_the_step)
{
    in_order(WRITE, STEP);
}

/* Who waits for an earlier job is not told of a later one. */
TEST(a_job_answers_for_itself_and_those_before)
{
    fth_context *ctx = open_context();
    fth__io *io;
    OK(fth__io_create(&io, fth_context_mem(ctx), NULL, NULL, 1, NULL));
    fate f = {.row = {1, -1, -1}};
    float cell;
    const fth_source src = {.self = &f, .read = read_column};
    int64_t ticket[3];
    for (int64_t i = 0; i < 3; i++)
        ticket[i] =
            fth__io_post(io, &(fth__io_job){.source = &src, .lo = {i}, .n = {1}, .data = &cell});
    fth_err err = {0};
    IS(fth__io_wait(io, ticket[2], &err), FTH_E_FILE_READ);
    HAS(err.text, "at row 1");
    IS(fth__io_wait(io, ticket[1], NULL), FTH_E_FILE_READ);
    OK(fth__io_wait(io, ticket[0], NULL));
    fth__io_destroy(io);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
