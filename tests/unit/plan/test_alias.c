/* test_alias.c - one place for two outputs, or for an output and what is read; sources and sinks
 * that fail are named.
 * seconds: 1
 */
#include "testing/test.h"

#include <fathom/fathom.h>

#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 64, COLS = 16, N = ROWS * COLS };

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
    float x[N], y[N], z[N];
    fth_val in;
} bench;

static fth_sink to(void *data)
{
    return (fth_sink){
        .kind = "test", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, COLS}, .data = data};
}

static void open_bench(bench *b)
{
    const fth_source source = {
        .kind = "test", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, COLS}, .data = b->x};
    OK(fth_context_create(&b->ctx, NULL, NULL));
    b->g = fth_graph_create(b->ctx);
    fth_axis(b->g, "row", ROWS);
    fth_axis(b->g, "col", COLS);
    for (int i = 0; i < N; i++) b->x[i] = (float)i;
    b->in = fth_input(b->g, "x", FTH_F32, "row col", source);
}

static void close_bench(bench *b)
{
    OK(fth_graph_destroy(b->g));
    OK(fth_context_destroy(b->ctx, NULL));
}

/* Planned with the sinks known and not known: the answer is the same. */
static fth_status run_into(const bench *b, int n, const fth_val *v, const fth_sink *sinks,
                           fth_err *err)
{
    fth_status s[2];
    for (int known = 1; known >= 0; known--) {
        fth_plan *p = fth_plan_make(b->g, v, n, &(fth_limits){.sinks = known ? sinks : NULL}, err);
        if (!p) return err->status;
        *err = (fth_err){0};
        s[known] = fth_run(p, sinks, NULL, NULL, err);
        OK(fth_plan_destroy(p));
    }
    EQ_I64(s[0], s[1]);
    return s[0];
}

static void untouched(const bench *b)
{
    for (int i = 0; i < N; i++) EQ_F64(b->x[i], i);
}

TEST(two_outputs_in_one_memory)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    const int line = __LINE__ + 1;
    const fth_val v[2] = {fth_exp(b.in), fth_neg(b.in)};
    const fth_sink same[2] = {to(b.y), to(b.y)}, apart[2] = {to(b.y), to(b.z)};
    IS(run_into(&b, 2, v, same, &err), FTH_E_ALIAS);
    HAS(err.text, "output 0");
    HAS(err.text, "output 1");
    char place[64];
    snprintf(place, sizeof place, "test_alias.c:%d", line);
    HAS(err.text, place);
    const fth_sink overlap[2] = {to(b.y), to(b.y + N - 1)};
    err = (fth_err){0};
    IS(run_into(&b, 2, v, overlap, &err), FTH_E_ALIAS);
    OKE(run_into(&b, 2, v, apart, &err), &err);
    EQ_F64(b.z[5], -5);
    static float beside[2 * N]; /* one begins where the other ends, in either order */
    for (int i = 0; i < 2; i++) {
        const fth_sink touching[2] = {to(beside + i * N), to(beside + (1 - i) * N)};
        OKE(run_into(&b, 2, v, touching, &err), &err);
        EQ_F64(beside[(1 - i) * N + 5], -5);
    }
    close_bench(&b);
}

/* Places that were fine say nothing about those of the next run. */
TEST(every_run_is_looked_at)
{
    bench b;
    open_bench(&b);
    const fth_val v[2] = {fth_exp(b.in), fth_neg(b.in)};
    const fth_sink one[2] = {to(b.y), to(b.z)}, other[2] = {to(b.z), to(b.y)},
                   same[2] = {to(b.z), to(b.z)};
    fth_plan *p = fth_plan_make(b.g, v, 2, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        fth_err err = {0};
        OKE(fth_run(p, i == 1 ? other : one, NULL, NULL, &err), &err);
        EQ_F64(i == 1 ? b.y[1] : b.z[1], -1.0);
        IS(fth_run(p, same, NULL, NULL, &err), FTH_E_ALIAS);
    }
    OK(fth_plan_destroy(p));
    close_bench(&b);
}

static fth_status keep(void *self, const int64_t *lo, const int64_t *n, const void *src,
                       fth_err *err)
{
    (void)lo, (void)n, (void)src, (void)err;
    ++*(int *)self;
    return FTH_OK;
}

TEST(two_outputs_in_one_sink)
{
    bench b;
    fth_err err = {0};
    int calls[2] = {0, 0};
    open_bench(&b);
    const fth_val v[2] = {fth_exp(b.in), fth_neg(b.in)};
    fth_sink sinks[2] = {to(NULL), to(NULL)};
    for (int i = 0; i < 2; i++) {
        sinks[i].write = keep;
        sinks[i].self = &calls[0];
    }
    IS(run_into(&b, 2, v, sinks, &err), FTH_E_ALIAS);
    HAS(err.text, "would go to one sink");
    EQ_I64(calls[0], 0);
    sinks[1].self = &calls[1];
    OKE(run_into(&b, 2, v, sinks, &err), &err);
    close_bench(&b);
}

TEST(two_outputs_in_one_file)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    const fth_val v[2] = {fth_exp(b.in), fth_neg(b.in)};
    const int64_t size[2] = {ROWS, COLS};
    fth_mem *mem = fth_context_mem(b.ctx);
    char path[4096], twisted[4200];
    snprintf(path, sizeof path, "%s", t_temp_path("one.npy"));
    const char *slash = strrchr(path, '/');
    snprintf(twisted, sizeof twisted, "%.*s/./one.npy", (int)(slash - path), path);
    fth_sink sinks[2];
    OK(fth_npy_create(&sinks[0], mem, path, FTH_F32, 2, size, NULL));
    OK(fth_npy_create(&sinks[1], mem, twisted, FTH_F32, 2, size, NULL));
    fth_plan *p = fth_plan_make(b.g, v, 2, NULL, &err);
    IS(fth_run(p, sinks, NULL, NULL, &err), FTH_E_ALIAS);
    HAS(err.text, "would both become the file");
    HAS(err.text, "one.npy");
    IS_TRUE(access(path, F_OK) != 0);
    for (int i = 0; i < 2; i++) fth_sink_close(&sinks[i]);
    /* the same name in another folder is another file */
    snprintf(twisted, sizeof twisted, "%.*s/beside", (int)(slash - path), path);
    IS_TRUE(mkdir(twisted, 0777) == 0);
    strcat(twisted, "/one.npy");
    OK(fth_npy_create(&sinks[0], mem, path, FTH_F32, 2, size, NULL));
    OK(fth_npy_create(&sinks[1], mem, twisted, FTH_F32, 2, size, NULL));
    err = (fth_err){0};
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    for (int i = 0; i < 2; i++) fth_sink_close(&sinks[i]);
    /* two arrays of one writer are one file, and that is meant */
    const fth_file_item items[2] = {
        {.name = "a", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, COLS}},
        {.name = "b", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, COLS}}};
    fth_npz_writer *w;
    OKE(fth_npz_create(&w, mem, t_temp_path("two.npz"), items, 2, &err), &err);
    OK(fth_npz_sink(w, "a", &sinks[0], NULL));
    OK(fth_npz_sink(w, "b", &sinks[1], NULL));
    err = (fth_err){0};
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    OK(fth_npz_commit(w, NULL));
    OK(fth_plan_destroy(p));
    close_bench(&b);
}

TEST(an_output_over_the_input)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    const fth_sink over = to(b.x), shifted = to(b.x + 1);
    fth_val v = fth_flip(b.in, "row");
    fth_plan *p = fth_plan_make(b.g, &v, 1, &(fth_limits){.sinks = &over}, &err);
    IS(fth_run(p, &over, NULL, NULL, &err), FTH_E_ALIAS);
    HAS(err.text, "input 'x' (");
    HAS(err.text, "are the same memory");
    untouched(&b);
    OK(fth_plan_destroy(p));
    /* elementwise, but not the same element */
    v = fth_mul(b.in, b.in);
    err = (fth_err){0};
    p = fth_plan_make(b.g, &v, 1, &(fth_limits){.sinks = &shifted}, &err);
    IS(fth_run(p, &shifted, NULL, NULL, &err), FTH_E_ALIAS);
    HAS(err.text, "overlap in memory");
    untouched(&b);
    OK(fth_plan_destroy(p));
    close_bench(&b);
}

TEST(elementwise_over_the_input_is_safe)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    const fth_sink over = to(b.x);
    const fth_val one = fth_const(b.g, FTH_F32, 1.0), v = fth_add(fth_exp(fth_neg(b.in)), one);
    for (int i = 0; i < N; i++) b.x[i] = 0.0f;
    fth_plan *p = fth_plan_make(b.g, &v, 1, &(fth_limits){.sinks = &over}, &err);
    OKE(fth_run(p, &over, NULL, NULL, &err), &err);
    for (int i = 0; i < N; i++) EQ_F64(b.x[i], 2);
    OK(fth_plan_destroy(p));
    /* two outputs from it: the second step would read what the first has written */
    const fth_val two[2] = {fth_add(b.in, one), fth_out(fth_sort(b.in, "row", false), 0)};
    const fth_sink sinks[2] = {to(b.x), to(b.y)};
    for (int i = 0; i < N; i++) b.x[i] = (float)i;
    p = fth_plan_make(b.g, two, 2, &(fth_limits){.sinks = sinks}, &err);
    const fth_status s = fth_run(p, sinks, NULL, NULL, &err);
    ONE_OF(s, FTH_OK, FTH_E_ALIAS); /* as the order of the steps is */
    for (int i = 0; s == FTH_OK && i < N; i++) EQ_F64(b.y[i], i);
    if (s != FTH_OK) untouched(&b);
    OK(fth_plan_destroy(p));
    close_bench(&b);
}

/* ---- sources and sinks that fail ---- */

static fth_status silent_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    (void)lo, (void)n, (void)dst, (void)err;
    return *(fth_status *)self;
}

static fth_status wordy_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)src;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "the tape is full");
}

TEST(what_failed_is_named)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    fth_status gives = (fth_status)12345;
    const fth_source source = {.kind = "tape",
                               .self = &gives,
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {ROWS, COLS},
                               .read = silent_read};
    const int line = __LINE__ + 1;
    const fth_val in = fth_input(b.g, "dat", FTH_F32, "row col", source);
    const fth_val v = fth_neg(in), w = fth_label(fth_neg(b.in), "out");
    const fth_sink ok = to(b.y);
    IS(run_into(&b, 1, &v, &ok, &err), FTH_E_FILE_READ);
    HAS(err.text, "input 'dat' [row 0:64, col 0:16]: the tape source failed with status 12345");
    EQ_I64(err.origin.line, line);
    gives = FTH_E_NUMERIC;
    err = (fth_err){0};
    IS(run_into(&b, 1, &v, &ok, &err), FTH_E_NUMERIC);
    HAS(err.text, "input 'dat' [row 0:64, col 0:16]: the tape source failed with status ");
    HAS(err.text, " and no message");
    fth_sink bad = to(NULL);
    bad.write = wordy_write;
    err = (fth_err){0};
    IS(run_into(&b, 1, &w, &bad, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "output 'out' [row 0:64, col 0:16]: the tape is full");
    EQ_I64(err.origin.line, line + 1);
    close_bench(&b);
}

TEST(nothing_to_read_or_write_with)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    const fth_source none = {.kind = "tape", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, COLS}};
    const fth_val in = fth_input(b.g, "dat", FTH_F32, "row col", none);
    IS_TRUE(fth_plan_make(b.g, &in, 1, NULL, &err) == NULL);
    HAS(err.text, "input 'dat' cannot be read: its tape source has neither read nor data");
    IS(err.status, FTH_E_GRAPH_VALUE);
    fth_rows rows = {.base = none, .index = (const int64_t[]){0}, .n = 1};
    fth_axis(b.g, "one", 1);
    const fth_val batch = fth_input(b.g, "rows", FTH_F32, "one col", fth_rows_source(&rows));
    const fth_val sum = fth_sum(batch, "one");
    err = (fth_err){0};
    IS_TRUE(fth_plan_make(b.g, &sum, 1, NULL, &err) == NULL);
    HAS(err.text, "input 'rows' cannot be read");
    const fth_sink nowhere = to(NULL);
    const fth_val v = fth_neg(b.in);
    err = (fth_err){0};
    IS_TRUE(fth_plan_make(b.g, &v, 1, &(fth_limits){.sinks = &nowhere}, &err) == NULL);
    IS(err.status, FTH_E_NO_SINK);
    HAS(err.text, "the test sink of output 0 has neither write nor data");
    /* memory alone is enough, whether it was known when planning or not, and for any value */
    const fth_sink y = to(b.y);
    err = (fth_err){0};
    OKE(run_into(&b, 1, &v, &y, &err), &err);
    EQ_F64(b.y[N - 1], 1 - N);
    OKE(run_into(&b, 1, &b.in, &y, &err), &err);
    EQ_F64(b.y[N - 1], N - 1);
    close_bench(&b);
}

TEST_MAIN()
