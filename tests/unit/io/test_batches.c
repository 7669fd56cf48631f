/* test_batches.c - mini-batches read ahead: the bytes, the bill, the errors, and that it is ahead.
 * seconds: 3 */
#include "testing/io/files.h"

#include "mem/inject.h"

#include <fathom/fathom.h>

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 500, COLS = 7, BATCH = 12 };

/* ---- a source that can fail, and that can be held until the test lets it go ---- */

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool held;       /* reads wait until this is false, or for 20 seconds */
    bool late;       /* a read or the test waited in vain */
    int64_t started; /* reads */
    int64_t bad_row; /* reading it fails; -1: none */
} gate;
#define GATE                                                                                       \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER, .bad_row = -1       \
    }

static void wait_for_change(gate *g)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    g->late = pthread_cond_timedwait(&g->change, &g->lock, &until) != 0;
}

static void hold(gate *g, bool held)
{
    pthread_mutex_lock(&g->lock);
    g->held = held;
    pthread_cond_broadcast(&g->change);
    pthread_mutex_unlock(&g->lock);
}

static void wait_for_reads(gate *g, int64_t n)
{
    pthread_mutex_lock(&g->lock);
    while (g->started < n && !g->late) wait_for_change(g);
    pthread_mutex_unlock(&g->lock);
}

static fth_status read_gate(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    gate *g = self;
    pthread_mutex_lock(&g->lock);
    g->started++;
    pthread_cond_broadcast(&g->change);
    while (g->held && !g->late) wait_for_change(g);
    const int64_t bad = g->bad_row;
    pthread_mutex_unlock(&g->lock);
    float *out = dst;
    for (int64_t r = lo[0]; r < lo[0] + n[0]; r++) {
        if (r == bad)
            return FTH_FAIL(err, FTH_E_FILE_READ, "gate.bin: row %lld is gone", (long long)r);
        for (int64_t c = lo[1]; c < lo[1] + n[1]; c++) *out++ = (float)(r * 100 + c);
    }
    return FTH_OK;
}

static fth_source gate_source(gate *g)
{
    return (fth_source){.kind = "gate",
                        .self = g,
                        .dtype = FTH_F32,
                        .n_axes = 2,
                        .size = {ROWS, COLS},
                        .read = read_gate};
}

/* ---- the bytes ---- */

/* Batches of `base` have the bytes of fth_rows_source over it. */
static void same_as_rows(fth_mem *mem, fth_source base, int64_t batch, int64_t turns, int threads)
{
    t_random r = t_random_make(3);
    int64_t row_bytes = fth_dtype_size(base.dtype), index[64];
    for (int d = 1; d < base.n_axes; d++) row_bytes *= base.size[d];
    char *want = malloc((size_t)(batch * row_bytes));
    fth_batches *b = NULL;
    fth_err err = {0};
    OKE(fth_batches_create(&b, mem, &base, batch, &err), &err);
    if (threads > 1) OKE(fth_batches_share(b, threads, &err), &err);
    EQ_PTR(fth_batches_tensor(b), NULL);
    for (int64_t turn = 0; turn < turns; turn++) {
        const int64_t n = turn % 3 ? batch : t_random_i64(&r, 0, batch);
        for (int64_t i = 0; i < n; i++)
            index[i] = i > 0 && index[i - 1] + 1 < base.size[0] && i % 2
                           ? index[i - 1] + 1 /* neighbours are read together */
                           : t_random_i64(&r, 0, base.size[0] - 1);
        fth_rows rows = {.base = base, .index = index, .n = n};
        const fth_source truth = fth_rows_source(&rows);
        int64_t lo[FTH_MAX_AXES] = {0};
        OK(truth.read(truth.self, lo, truth.size, want, NULL));
        fth_source got;
        OKE(fth_batches_ask(b, index, n, &err), &err);
        memset(index, 0xff, sizeof index); /* they were copied */
        OKE(fth_batches_take(b, &got, &err), &err);
        EQ_I64(got.dtype, base.dtype);
        EQ_I64(got.n_axes, base.n_axes);
        EQ_I64(got.size[0], n);
        SAME_BYTES(got.data, want, n * row_bytes);
        EQ_PTR(fth_tensor_view(fth_batches_tensor(b)), got.data); /* the same buffer */
        memset(want, 0, (size_t)(batch * row_bytes));
        OK(got.read(got.self, lo, got.size, want, NULL)); /* it can also be read */
        SAME_BYTES(got.data, want, n * row_bytes);
    }
    fth_batches_destroy(b);
    free(want);
}

TEST(a_source_that_only_reads_rectangles)
{
    fth_mem *mem = t_mem(1 << 24);
    gate g = GATE;
    same_as_rows(mem, gate_source(&g), BATCH, 30, 1);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_file_and_a_sparse_matrix)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_npz *npz = NULL;
    fth_csr *csr = NULL;
    OK(fth_npz_open(&npz, mem, GOLDEN("csr_i32.npz"), NULL));
    OK(fth_csr_open_npz(&csr, npz, NULL));
    fth_npz_close(npz);
    same_as_rows(mem, fth_csr_source(csr), 6, 20, 1);
    fth_csr_close(csr);
    fth_sink sink;
    fth_tensor *t = NULL;
    OK(fth_tensor_create(&t, mem, "t", FTH_F64, 3, ((int64_t[]){40, 3, 2}), NULL));
    for (int i = 0; i < 240; i++) ((double *)fth_tensor_data(t))[i] = i;
    OK(fth_npy_create(&sink, mem, t_temp_path("b.npy"), FTH_F64, 3, ((int64_t[]){40, 3, 2}), NULL));
    OK(fth_sink_store(&sink, t, NULL));
    fth_sink_close(&sink);
    fth_source file;
    OK(fth_npy_open(&file, mem, t_temp_path("b.npy"), NULL));
    same_as_rows(mem, file, 33, 20, 1);
    fth_source_close(&file);
    same_as_rows(mem, fth_tensor_source(t), 1, 10, 1);
    fth_tensor_release(t);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- several readers ---- */

/* Rows of 20000 numbers: a batch is cut into parts, each for one of the readers. */
enum { WIDE = 20000 };

static fth_status read_bools(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    uint8_t *out = dst;
    (void)self;
    (void)err;
    for (int64_t r = lo[0]; r < lo[0] + n[0]; r++)
        for (int64_t c = lo[1]; c < lo[1] + n[1]; c++) *out++ = (uint8_t)((3 * r + c) % 5);
    return FTH_OK;
}

/* Whatever bytes a source has for true. */
TEST(bools_are_0_or_1)
{
    fth_mem *mem = t_mem(1 << 24);
    const fth_source base = {
        .kind = "bytes", .dtype = FTH_BOOL, .n_axes = 2, .size = {ROWS, COLS}, .read = read_bools};
    const int64_t index[] = {7, 0, 1, 2, 9};
    fth_batches *b = NULL;
    fth_source got;
    fth_err err = {0};
    OKE(fth_batches_create(&b, mem, &base, 5, &err), &err);
    OKE(fth_batches_ask(b, index, 5, &err), &err);
    OKE(fth_batches_take(b, &got, &err), &err);
    for (int i = 0; i < 5; i++)
        for (int64_t c = 0; c < COLS; c++)
            EQ_I64(((const uint8_t *)got.data)[i * COLS + c], (3 * index[i] + c) % 5 != 0);
    fth_batches_destroy(b);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(several_threads_read_the_same_bytes)
{
    fth_mem *mem = t_mem(1 << 26);
    fth_tensor *t = NULL;
    fth_sink sink;
    fth_source file;
    const int64_t size[2] = {50, WIDE};
    OK(fth_tensor_create(&t, mem, "t", FTH_F32, 2, size, NULL));
    for (int64_t i = 0; i < 50 * WIDE; i++)
        ((float *)fth_tensor_data(t))[i] = (float)(i * 7 % 1001);
    OK(fth_npy_create(&sink, mem, t_temp_path("wide.npy"), FTH_F32, 2, size, NULL));
    OK(fth_sink_store(&sink, t, NULL));
    fth_sink_close(&sink);
    OK(fth_npy_open(&file, mem, t_temp_path("wide.npy"), NULL));
    same_as_rows(mem, file, 37, 12, 4);
    same_as_rows(mem, fth_tensor_source(t), 37, 12, 3);
    fth_source_close(&file);
    fth_tensor_release(t);
    gate g = GATE; /* may not be shared: one thread reads it */
    same_as_rows(mem, gate_source(&g), BATCH, 10, 4);
    OK(fth_mem_destroy(mem, NULL));
}

/* Rows 9 and 30 of the file are gone: whoever reads which part, place 3 is the first of them. */
static fth_status read_wide(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self;
    for (int64_t r = lo[0]; r < lo[0] + n[0]; r++)
        if (r == 9 || r == 30)
            return FTH_FAIL(err, FTH_E_FILE_READ, "row %lld is gone", (long long)r);
    memset(dst, 1, (size_t)(n[0] * n[1]) * sizeof(float));
    return FTH_OK;
}

TEST(the_first_failure_of_several_readers_counts)
{
    fth_mem *mem = t_mem(1 << 26);
    const fth_source base = {.kind = "wide",
                             .dtype = FTH_F32,
                             .n_axes = 2,
                             .size = {50, WIDE},
                             .read = read_wide,
                             .concurrent = true};
    fth_batches *b = NULL;
    int64_t index[40];
    for (int i = 0; i < 40; i++) index[i] = i == 3 ? 30 : i == 33 ? 9 : 10 + i % 7;
    OK(fth_batches_create(&b, mem, &base, 40, NULL));
    IS(fth_batches_share(b, 0, NULL), FTH_E_USAGE);
    OK(fth_batches_share(b, 4, NULL));
    for (int turn = 0; turn < 20; turn++) {
        fth_source got;
        fth_err err = {0};
        OK(fth_batches_ask(b, index, 40, NULL));
        IS(fth_batches_share(b, 2, NULL), FTH_E_USAGE);
        IS(fth_batches_take(b, &got, &err), FTH_E_FILE_READ);
        HAS(err.text, "row 30 is gone");
        OK(fth_batches_ask(b, index + 4, 20, NULL));
        OK(fth_batches_take(b, &got, NULL));
    }
    fth_batches_destroy(b);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- the bill ---- */

TEST(the_buffers_cost_what_was_said_before)
{
    fth_mem *mem = t_mem(1 << 20);
    gate g = GATE;
    const fth_source base = gate_source(&g);
    fth_mem_stats before, after;
    for (int turn = 0; turn < 40; turn++) {
        const int64_t rows = 1 + turn * 77 % 500; /* up and down: blocks of the cache fit or not */
        const uint64_t said = fth_batches_bytes(mem, &base, rows);
        fth_batches *b = NULL;
        fth_mem_get_stats(mem, &before);
        OK(fth_batches_create(&b, mem, &base, rows, NULL));
        fth_mem_get_stats(mem, &after);
        EQ_U64(after.used_bytes - before.used_bytes, said);
        fth_batches_destroy(b);
    }
    fth_batches *b = (fth_batches *)&g;
    IS(fth_batches_create(&b, mem, &base, 20000, NULL), FTH_E_BUDGET); /* 560 KB twice */
    EQ_PTR(b, NULL);
    IS_TRUE(fth_batches_bytes(mem, &base, 20000) > 1 << 20);
    EQ_U64(fth_batches_bytes(mem, &base, INT64_MAX / 4), UINT64_MAX);
    IS(fth_batches_create(&b, mem, &base, INT64_MAX / 4, NULL), FTH_E_SIZE_OVERFLOW);
    EQ_U64(fth_batches_bytes(mem, &base, 0), UINT64_MAX);
    IS(fth_batches_create(&b, mem, &base, 0, NULL), FTH_E_USAGE);
    const float one = 1;
    const fth_source scalar = fth_scalar_source(FTH_F32, &one);
    IS(fth_batches_create(&b, mem, &scalar, 4, NULL), FTH_E_USAGE);
    fth_batches_destroy(NULL);
    OK(fth_mem_destroy(mem, NULL));
}

static fth_status two_batches(fth_mem *mem, const fth_source *base, fth_err *err)
{
    fth_batches *b = NULL;
    fth_source got;
    FTH_TRY(fth_batches_create(&b, mem, base, BATCH, err));
    fth_status s = fth_batches_ask(b, ((int64_t[]){4, 8}), 2, err);
    if (s == FTH_OK) s = fth_batches_take(b, &got, err);
    if (s == FTH_OK) s = fth_batches_ask(b, ((int64_t[]){5, 9}), 2, err);
    fth_batches_destroy(b);
    return s;
}

TEST(every_allocation_failure_is_survived)
{
    fth_mem *mem = t_mem(1 << 20);
    gate g = GATE;
    const fth_source base = gate_source(&g);
    OK(two_batches(mem, &base, NULL));
    fth_mem_stats clean, now;
    fth_mem_get_stats(mem, &clean);
    int64_t survived = 0;
    for (int64_t n = 1;; n++) {
        fth_err err = {0};
        fth__mem_inject(mem, n, 0);
        const fth_status s = two_batches(mem, &base, &err);
        fth_mem_get_stats(mem, &now);
        EQ_U64(now.used_bytes, clean.used_bytes);
        EQ_U64(now.meta_bytes, clean.meta_bytes);
        if (s == FTH_OK) break;
        IS(s, FTH_E_NOMEM);
        survived++;
    }
    IS_TRUE(survived >= 5); /* the object, two buffers, the indices, the queue */
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- what can go wrong ---- */

TEST(one_batch_ahead_and_no_more)
{
    fth_mem *mem = t_mem(1 << 20);
    gate g = GATE;
    const fth_source base = gate_source(&g);
    fth_batches *b = NULL;
    fth_source got;
    fth_err err = {0};
    OK(fth_batches_create(&b, mem, &base, BATCH, NULL));
    IS(fth_batches_take(b, &got, &err), FTH_E_USAGE);
    HAS(err.text, "none was asked for");
    int64_t index[BATCH + 1] = {1, 2, ROWS};
    IS(fth_batches_ask(b, index, BATCH + 1, NULL), FTH_E_USAGE);
    IS(fth_batches_ask(b, NULL, 1, NULL), FTH_E_USAGE);
    err = (fth_err){0};
    IS(fth_batches_ask(b, index, 3, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "place 2 of the batch asks for row 500 of a gate source with 500 rows");
    EQ_I64(err.origin.line, __LINE__ - 2);
    index[2] = -1;
    IS(fth_batches_ask(b, index, 3, NULL), FTH_E_INDEX_RANGE);
    EQ_I64(g.started, 0); /* nothing of that was read */
    OK(fth_batches_ask(b, index, 2, NULL));
    const int line = __LINE__ - 1;
    err = (fth_err){0};
    IS(fth_batches_ask(b, index, 1, &err), FTH_E_USAGE);
    char place[64];
    snprintf(place, sizeof place, "test_batches.c:%d and is not taken yet", line);
    HAS(err.text, place);
    HAS(err.text, "batch 1 was asked for");
    OK(fth_batches_take(b, &got, NULL));
    EQ_I64(got.size[0], 2);
    EQ_F64(((float *)got.data)[COLS], 200);
    IS(fth_batches_take(b, &got, NULL), FTH_E_USAGE);
    fth_batches_destroy(b);
    OK(fth_mem_destroy(mem, NULL));
}

/* The error arrives with the take; the batch in hand stays good, and asking again works. */
TEST(a_read_that_fails_can_be_asked_again)
{
    fth_mem *mem = t_mem(1 << 20);
    gate g = GATE;
    const fth_source base = gate_source(&g);
    fth_batches *b = NULL;
    fth_source first, got;
    OK(fth_batches_create(&b, mem, &base, BATCH, NULL));
    OK(fth_batches_ask(b, ((int64_t[]){7}), 1, NULL));
    OK(fth_batches_take(b, &first, NULL));
    g.bad_row = 11; /* nothing is being read now */
    fth_err err = {0};
    OK(fth_batches_ask(b, ((int64_t[]){3, 10, 11}), 3, &err));
    const int line = __LINE__ - 1;
    IS(fth_batches_take(b, &got, &err), FTH_E_FILE_READ);
    HAS(err.text, "gate.bin: row 11 is gone");
    EQ_I64(err.origin.line, line);
    char text[4096];
    fth_err_format(&err, text, sizeof text);
    HAS(text, "reading 2 rows from row 10");
    HAS(text, "reading batch 2 ahead");
    EQ_PTR(got.data, NULL);
    EQ_F64(((float *)first.data)[1], 701);
    IS(fth_batches_take(b, &got, NULL), FTH_E_USAGE);
    g.bad_row = -1;
    OK(fth_batches_ask(b, ((int64_t[]){11}), 1, NULL));
    OK(fth_batches_take(b, &got, NULL));
    EQ_F64(((float *)got.data)[1], 1101);
    IS_TRUE(got.data != first.data);
    fth_batches_destroy(b);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_file_cut_short_is_named_with_its_row)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("cut.npy");
    const int64_t size[2] = {100, 4};
    fth_sink sink;
    fth_tensor *t = NULL;
    OK(fth_tensor_create(&t, mem, "t", FTH_F32, 2, size, NULL));
    memset(fth_tensor_data(t), 0, 1600);
    OK(fth_npy_create(&sink, mem, path, FTH_F32, 2, size, NULL));
    OK(fth_sink_store(&sink, t, NULL));
    fth_sink_close(&sink);
    fth_tensor_release(t);
    fth_source file, got;
    fth_batches *b = NULL;
    OK(fth_npy_open(&file, mem, path, NULL));
    OK(fth_batches_create(&b, mem, &file, BATCH, NULL));
    IS_TRUE(truncate(path, 128 + 50 * 16) == 0);
    fth_err err = {0};
    OK(fth_batches_ask(b, ((int64_t[]){1, 49, 77}), 3, &err));
    IS(fth_batches_take(b, &got, &err), FTH_E_FILE_SHORT);
    char text[4096];
    fth_err_format(&err, text, sizeof text);
    HAS(text, "cut.npy");
    HAS(text, "from row 77");
    fth_batches_destroy(b);
    fth_source_close(&file);
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct opener {
    gate *g;
    const fth_mem *mem;
    uint64_t held; /* by the ledger, just before the read may go on */
} opener;

static void *let_go(void *arg)
{
    opener *o = arg;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* room for a mistake to show */
    fth_mem_stats stats;
    fth_mem_get_stats(o->mem, &stats);
    o->held = stats.used_bytes;
    hold(o->g, false);
    return NULL;
}

/* The read is in hand when the end comes: its buffer stays until it is over, and nothing is left.
 */
TEST(the_end_comes_in_the_middle_of_a_read)
{
    fth_mem *mem = t_mem(1 << 20);
    gate g = GATE;
    const fth_source base = gate_source(&g);
    for (int turn = 0; turn < 20; turn++) {
        fth_batches *b = NULL;
        OK(fth_batches_create(&b, mem, &base, BATCH, NULL));
        g.started = 0;
        hold(&g, true);
        OK(fth_batches_ask(b, ((int64_t[]){4}), 1, NULL));
        if (turn % 2) wait_for_reads(&g, 1);
        opener o = {.g = &g, .mem = mem};
        pthread_t other;
        IS_TRUE(pthread_create(&other, NULL, let_go, &o) == 0);
        fth_batches_destroy(b);
        pthread_join(other, NULL);
        if (turn % 2) EQ_U64(o.held, fth_batches_bytes(mem, &base, BATCH));
        IS_TRUE(!g.late);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- ahead of the run ---- */

/* A sink that the run writes its result to: it can only go on while the next batch is being read,
 * and the read can only end when the run has come here. Were either to wait for the other to be
 * over, both would wait in vain. */
typedef struct meeting {
    gate *g;
    float sum;
} meeting;

static fth_status write_sum(void *self, const int64_t *lo, const int64_t *n, const void *src,
                            fth_err *err)
{
    (void)lo, (void)n, (void)err;
    meeting *m = self;
    memcpy(&m->sum, src, sizeof m->sum);
    wait_for_reads(m->g, 1);
    hold(m->g, false);
    return FTH_OK;
}

TEST(the_next_batch_is_read_while_this_one_computes)
{
    fth_err err = {0};
    fth_context *ctx = NULL;
    OKE(fth_context_create(&ctx, NULL, &err), &err);
    gate g = GATE;
    const fth_source base = gate_source(&g);
    fth_batches *b = NULL;
    fth_source now;
    int64_t index[2] = {2, 5};
    OKE(fth_batches_create(&b, fth_context_mem(ctx), &base, 2, &err), &err);
    OKE(fth_batches_ask(b, index, 2, &err), &err);
    OKE(fth_batches_take(b, &now, &err), &err);

    fth_graph *graph = fth_graph_create(ctx);
    fth_axis(graph, "row", 2);
    fth_axis(graph, "col", COLS);
    const fth_val x = fth_input(graph, "x", FTH_F32, "row col", now);
    const fth_val sum = fth_sum(x, "row col");
    fth_plan *plan = fth_plan_make(graph, &sum, 1, NULL, &err);
    if (!plan) OKE(err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    EQ_U64(info.foreign_bytes, 2 * COLS * sizeof(float));
    meeting m = {.g = &g};
    const fth_sink sink = {
        .kind = "meeting", .self = &m, .dtype = FTH_F32, .n_axes = 0, .write = write_sum};
    for (int64_t turn = 0; turn < 6; turn++) {
        float want = 0;
        for (int i = 0; i < 2; i++)
            for (int c = 0; c < COLS; c++) want += (float)(index[i] * 100 + c);
        index[0] = 17 * turn;
        index[1] = 400 - turn;
        g.started = 0;
        hold(&g, true);
        OKE(fth_batches_ask(b, index, 2, &err), &err);
        fth_run_report report;
        OKE(fth_run(plan, &sink, NULL, &report, &err), &err);
        EQ_U64(report.read_bytes, 0); /* used in place */
        EQ_F64(m.sum, want);
        OKE(fth_batches_take(b, &now, &err), &err);
        IS_TRUE(!g.late);
        OKE(fth_input_set(graph, "x", now, &err), &err);
    }
    fth_plan_destroy(plan);
    fth_graph_destroy(graph);
    fth_batches_destroy(b);
    IS(fth_context_destroy(ctx, NULL), FTH_OK);
}

TEST_MAIN()
