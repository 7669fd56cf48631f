/* test_cancel.c - a run is cancelled inside a step, and while it waits for data.
 * seconds: 2
 *
 * The kernels here sleep a millisecond per element, so how much was done tells where the run ended.
 */
#include "testing/engine/host_device.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include "run/team.h"

#include <fathom/fathom.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { ELEMENTS = 3000, FEW = 600 };

static atomic_int done;

static void nap(int milliseconds)
{
    nanosleep(&(struct timespec){0, milliseconds * 1000000L}, NULL);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- operations that take their time ---- */

static fth_status like_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void same(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static void element(const fth_call *call, int64_t i)
{
    ((float *)call->out[0].data)[i] = ((const float *)call->in[0].data)[i] + 1.0f;
    done++;
    nap(1);
}

static fth_status slow_run(const fth_call *call)
{
    for (int64_t i = 0; i < call->out[0].extent[0]; i++) element(call, i);
    return FTH_OK;
}

static void one_index(void *arg, int64_t i, int worker)
{
    (void)worker;
    element(arg, i);
}

static fth_status team_run(const fth_call *call)
{
    fth_call copy = *call;
    fth_team_run(call->team, call->out[0].extent[0], one_index, &copy);
    return FTH_OK;
}

static fth_status asking_run(const fth_call *call)
{
    for (int64_t i = 0; i < call->out[0].extent[0] && !fth_team_cancelled(call->team); i++)
        element(call, i);
    return FTH_OK;
}

/* Worth the workers' while, although the elements are few. */
static double much(const fth_call *call)
{
    return 1e6 * (double)call->out[0].extent[0];
}

static const fth_op slow = {
    .name = "slow", .infer = like_infer, .relation = same, .flops = much, .run = slow_run};
static const fth_op crowd = {.name = "crowd",
                             .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,
                             .infer = like_infer,
                             .flops = much,
                             .run = team_run};
static const fth_op asking = {.name = "asking",
                              .flags = FTH_OP_NO_SPLIT,
                              .infer = like_infer,
                              .flops = much,
                              .run = asking_run};

/* ---- a run of one of them ---- */

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
    fth_plan *plan;
    float in[ELEMENTS], out[ELEMENTS];
    fth_sink sink;
    fth_val value;
} bench;

static void open_bench(bench *b, const fth_op *op, int threads)
{
    fth_options opt;
    fth_err err = {0};
    memset(b, 0, sizeof *b);
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = 64 << 20;
    OKE(fth_context_create(&b->ctx, &opt, &err), &err);
    b->g = fth_graph_create(b->ctx);
    fth_axis(b->g, "row", ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++) b->in[i] = (float)i;
    const fth_source source = {
        .kind = "test", .dtype = FTH_F32, .n_axes = 1, .size = {ELEMENTS}, .data = b->in};
    b->sink = (fth_sink){
        .kind = "test", .dtype = FTH_F32, .n_axes = 1, .size = {ELEMENTS}, .data = b->out};
    const fth_val in = fth_input(b->g, "in", FTH_F32, "row", source);
    b->value = fth_custom(b->g, op, 1, &in, NULL, 0);
    b->plan = fth_plan_make(b->g, &b->value, 1, &(fth_limits){.sinks = &b->sink}, &err);
    OKE(b->plan ? FTH_OK : err.status, &err);
}

static void close_bench(bench *b)
{
    OK(fth_plan_destroy(b->plan));
    OK(fth_graph_destroy(b->g));
    OK(fth_context_destroy(b->ctx, NULL));
}

typedef struct patience {
    double until, said_no;
} patience;

/* Enough after a tenth of a second. */
static bool impatient(void *user, const fth_progress *p)
{
    patience *w = user;
    (void)p;
    if (now() < w->until) return true;
    if (w->said_no <= 0.0) w->said_no = now();
    return false;
}

static void cancelled_inside(const fth_op *op, int threads)
{
    bench b;
    fth_err err = {0};
    open_bench(&b, op, threads);
    done = 0;
    patience w = {.until = now() + 0.1};
    const fth_run_options options = {impatient, &w};
    IS(fth_run(b.plan, &b.sink, &options, NULL, &err), FTH_E_CANCELLED);
    const double late = now() - w.said_no;
    int percent = -1;
    IS_TRUE(sscanf(err.text, "the run was cancelled at %d %%", &percent) == 1 && percent >= 0);
    LE_F64(percent, 100.0 * done / ELEMENTS + 1.0);
    IS_TRUE(done > 0 && done < FEW * threads); /* of 3000 */
    LE_F64(late, 2.0);
    close_bench(&b);
}

TEST(between_the_tiles_of_a_step)
{
    for (int threads = 1; threads <= 3; threads++) cancelled_inside(&slow, threads);
}

TEST(between_the_indices_of_a_team)
{
    for (int threads = 1; threads <= 3; threads++) cancelled_inside(&crowd, threads);
}

TEST(where_a_kernel_asks_itself)
{
    cancelled_inside(&asking, 1);
    cancelled_inside(&asking, 2);
}

/* A tile that waits to be told, whoever computes it, and gives up after three seconds. */
static atomic_int gave_up;
static fth_status waiting_run(const fth_call *call)
{
    for (int i = 0; i < 600; i++) {
        if (fth_team_cancelled(call->team)) return FTH_OK;
        nap(5);
    }
    gave_up++;
    return FTH_OK;
}

TEST(where_kernels_of_other_workers_ask)
{
    static const fth_op waits = {
        .name = "waits", .infer = like_infer, .relation = same, .flops = much, .run = waiting_run};
    for (int threads = 1; threads <= 3; threads++) {
        bench b;
        open_bench(&b, &waits, threads);
        gave_up = 0;
        patience w = {.until = now() + 0.1};
        IS(fth_run(b.plan, &b.sink, &(fth_run_options){impatient, &w}, NULL, NULL),
           FTH_E_CANCELLED);
        EQ_I64(gave_up, 0);
        close_bench(&b);
    }
}

/* One line is one tile: its passes are asked between, not the step alone. The time is that of the
 * processor, so that a busy machine cannot make it fail; the whole sort takes ten times as long. */
TEST(inside_of_a_long_sort)
{
    enum { N = 4 << 20 };
    fth_options opt;
    fth_err err = {0};
    fth_context *ctx;
    double *in = malloc(N * sizeof *in);
    int64_t *out = malloc(N * sizeof *out);
    uint64_t state = 1;
    IS_TRUE(in && out);
    for (int i = 0; i < N; i++) in[i] = (double)(state = state * 6364136223846793005u + 1u);
    fth_options_default(&opt);
    opt.threads = 1;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", N);
    const fth_source source = {
        .kind = "test", .dtype = FTH_F64, .n_axes = 1, .size = {N}, .data = in};
    fth_sink sink = {.kind = "test", .dtype = FTH_I64, .n_axes = 1, .size = {N}, .data = out};
    const fth_val s = fth_sort(fth_input(g, "in", FTH_F64, "row", source), "row", false),
                  v = fth_out(s, 1); /* values go by vectors: unit/long_lines cancels those */
    fth_plan *p = fth_plan_make(g, &v, 1, &(fth_limits){.sinks = &sink}, &err);
    OKE(p ? FTH_OK : err.status, &err);
    clock_t begin = clock();
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    const double whole = (double)(clock() - begin);
    patience w = {.until = now() + 1e-6};
    begin = clock();
    IS(fth_run(p, &sink, &(fth_run_options){impatient, &w}, NULL, &err), FTH_E_CANCELLED);
    LE_F64((double)(clock() - begin), 0.5 * whole);
    OK(fth_plan_destroy(p));
    OK(fth_graph_destroy(g));
    OK(fth_context_destroy(ctx, NULL));
    free(in);
    free(out);
}

/* The progress of the context is for runs that bring none. */
TEST(by_the_progress_of_the_context)
{
    patience w = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.progress = impatient;
    opt.progress_user = &w;
    fth_context *ctx;
    OK(fth_context_create(&ctx, &opt, NULL));
    fth_graph *g = fth_graph_create(ctx);
    double got = 0.0;
    IS(fth_fetch_f64(fth_const(g, FTH_F64, 2.0), &got, NULL), FTH_E_CANCELLED);
    w.until = now() + 1e6;
    OK(fth_fetch_f64(fth_const(g, FTH_F64, 2.0), &got, NULL));
    EQ_F64(got, 2.0);
    OK(fth_graph_destroy(g));
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- after it, and beside it ---- */

static fth_status quick_run(const fth_call *call)
{
    for (int64_t i = 0; i < call->out[0].extent[0]; i++)
        ((float *)call->out[0].data)[i] = ((const float *)call->in[0].data)[i] + 1.0f;
    return FTH_OK;
}

typedef struct other {
    bench *b;
    fth_status status;
} other;

static void *run_beside(void *arg)
{
    other *o = arg;
    const fth_sink sink = o->b->sink;
    for (int i = 0; i < 50 && o->status == FTH_OK; i++)
        o->status = fth_run(o->b->plan, &sink, NULL, NULL, NULL);
    return NULL;
}

TEST(leaves_the_context_and_other_runs_alone)
{
    static const fth_op quick = {
        .name = "quick", .infer = like_infer, .relation = same, .run = quick_run};
    bench b, beside;
    open_bench(&b, &crowd, 3);
    open_bench(&beside, &quick, 3);
    /* two plans of one context, run at the same time */
    const fth_val in = fth_out(b.value, 0);
    const fth_val twice = fth_custom(b.g, &quick, 1, &in, NULL, 0);
    (void)twice;
    patience w = {.until = now() + 0.1};
    const fth_run_options options = {impatient, &w};
    other o = {.b = &beside};
    pthread_t thread;
    IS_TRUE(pthread_create(&thread, NULL, run_beside, &o) == 0);
    IS(fth_run(b.plan, &b.sink, &options, NULL, NULL), FTH_E_CANCELLED);
    pthread_join(thread, NULL);
    OK(o.status);
    done = 0;
    OK(fth_run(b.plan, &b.sink, NULL, NULL, NULL)); /* and again, to its end */
    EQ_I64(done, ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++) EQ_F64(b.out[i], i + 1);
    for (int i = 0; i < ELEMENTS; i++) EQ_F64(beside.out[i], i + 1);
    close_bench(&beside);
    close_bench(&b);
}

/* Tiles begin on the grid of the operation, and cover everything once. */
static fth_status grid_run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    if (out->origin[0] % 16 != 0)
        return FTH_FAIL(call->err, FTH_E_INTERNAL, "a tile begins at %lld",
                        (long long)out->origin[0]);
    for (int64_t i = 0; i < out->extent[0]; i++) ((float *)out->data)[i] += 1.0f;
    done++;
    return FTH_OK;
}

static int64_t sixteen(const fth_node *node, int in, int dim)
{
    (void)node, (void)in, (void)dim;
    return 16;
}

TEST(tiles_lie_on_the_grid)
{
    static const fth_op op = {
        .name = "grid", .infer = like_infer, .relation = same, .grid = sixteen, .run = grid_run};
    bench b;
    open_bench(&b, &op, 1);
    done = 0;
    OK(fth_run(b.plan, &b.sink, NULL, NULL, NULL));
    IS_TRUE(done > 1);
    for (int i = 0; i < ELEMENTS; i++) EQ_F64(b.out[i], 1);
    close_bench(&b);
}

/* ---- while it waits ---- */

static atomic_int reads;

static fth_status slow_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)lo, (void)err;
    reads++;
    nap(200);
    memset(dst, 0, sizeof(float) * (size_t)n[0]);
    return FTH_OK;
}

static bool until_it_reads(void *user, const fth_progress *p)
{
    (void)user, (void)p;
    return reads == 0;
}

TEST(while_it_waits_for_a_source)
{
    fth_context *ctx;
    fth_err err = {0};
    float out[FEW];
    OK(fth_context_create(&ctx, NULL, NULL));
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", FEW);
    fth_source source = {
        .kind = "test", .dtype = FTH_F32, .n_axes = 1, .size = {FEW}, .read = slow_read};
    fth_val sum = fth_input(g, "x0", FTH_F32, "row", source);
    for (int i = 1; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        sum = fth_add(sum, fth_input(g, name, FTH_F32, "row", source));
    }
    const fth_sink sink = {.kind = "t", .dtype = FTH_F32, .n_axes = 1, .size = {FEW}, .data = out};
    const fth_limits limits = {.sinks = &sink, .stream = "row", .memory_bytes = 40000};
    fth_plan *p = fth_plan_make(g, &sum, 1, &limits, &err); /* reads of a chunk are asked at once */
    OKE(p ? FTH_OK : err.status, &err);
    reads = 0;
    const fth_run_options options = {until_it_reads, NULL};
    IS(fth_run(p, &sink, &options, NULL, &err), FTH_E_CANCELLED);
    HAS(err.text, "cancelled");
    EQ_I64(reads, 1); /* the one that had begun */
    OK(fth_plan_destroy(p));
    OK(fth_graph_destroy(g));
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- on a device: between steps, which are queued ---- */

TEST(between_the_steps_of_a_device)
{
    fth_context *ctx;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.device_memory_bytes = 64 << 20;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", FEW);
    fth_val v = fth_cast(fth_index(g, "row"), FTH_F32);
    for (int i = 0; i < 40; i++) v = fth_out(fth_sort(v, "row", i % 2 == 0), 0);
    float out[FEW];
    const fth_sink sink = {.kind = "t", .dtype = FTH_F32, .n_axes = 1, .size = {FEW}, .data = out};
    fth_plan *p = fth_plan_make(g, &v, 1, &(fth_limits){.no_fuse = true}, &err);
    OKE(p ? FTH_OK : err.status, &err);
    t_host_device_delay(20000);
    patience w = {.until = now() - 1.0};
    const fth_run_options options = {impatient, &w};
    IS(fth_run(p, &sink, &options, NULL, &err), FTH_E_CANCELLED);
    t_host_device_delay(0);
    OK(fth_run(p, &sink, NULL, NULL, &err));
    EQ_F64(out[0], 0);
    OK(fth_plan_destroy(p));
    OK(fth_graph_destroy(g));
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- the caller has no more to do ---- */

typedef struct loop {
    fth_team *team;
    atomic_bool begun; /* by somebody else */
    double start;
} loop;

static bool go_on_for_a_while(void *user)
{
    return now() - ((loop *)user)->start < 0.1;
}

static void wait_to_be_called_off(void *arg, int64_t i, int worker)
{
    loop *l = arg;
    (void)i;
    if (worker > 0) atomic_store(&l->begun, true);
    while (worker == 0 ? !atomic_load(&l->begun) : !fth__team_off(l->team))
        if (now() - l->start > 5) return;
}

/* While it waits for the others, it is still the one who asks. */
TEST(who_waits_for_the_others_goes_on_asking)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_team *workers = NULL;
    loop l = {.start = now()};
    OK(fth_team_create(&workers, mem, 2, NULL));
    OK(fth__team_share(&l.team, mem, workers, go_on_for_a_while, &l, NULL));
    fth_team_run(l.team, 2, wait_to_be_called_off, &l);
    IS_TRUE(fth__team_off(l.team));
    LE_F64(now() - l.start, 3);
    fth_team_destroy(l.team);
    fth_team_destroy(workers);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
