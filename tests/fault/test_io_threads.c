/* seconds: 5
 * test_io_threads.c - memory and disk that fail while several threads read and write.
 *
 * A stack goes from one NPY file to another through four threads. Every allocation and every write
 * of it fails in turn: the error says so, the file that was there stays as it was, nothing is left
 * behind, and the next run writes all of it.
 */
#include "testing/io/files.h"

#include "mem/inject.h"

#include <fathom/fathom.h>

enum { FRAMES = 6, ROWS = 200, COLS = 256, ALL = FRAMES * ROWS * COLS, MOST = 400 };

typedef struct copying {
    fth_context *ctx;
    fth_mem *mem;
    const char *from, *to;
    uint16_t *data;
} copying;

static void open_copying(copying *c)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    OK(fth_context_create(&c->ctx, &opt, NULL));
    c->mem = fth_context_mem(c->ctx);
    c->from = t_temp_path("from.npy");
    c->to = t_temp_path("to.npy");
    c->data = malloc(sizeof *c->data * ALL);
    for (int64_t i = 0; i < ALL; i++) c->data[i] = (uint16_t)(i * 7 % 30011);
    OK(fth_npy_save(c->mem, c->from, FTH_U16, 3, ((int64_t[]){FRAMES, ROWS, COLS}), c->data, NULL));
}

static void close_copying(copying *c)
{
    free(c->data);
    (void)remove(c->from);
    (void)remove(c->to);
    OK(fth_context_destroy(c->ctx, NULL));
}

static fth_status run_graph(copying *c, fth_source from, const fth_sink *to, fth_run_report *report,
                            fth_err *err)
{
    fth_graph *g = fth_graph_create(c->ctx);
    if (!g) return FTH_FAIL(err, FTH_E_NOMEM, "no graph");
    fth_axis(g, "f", FRAMES);
    fth_axis(g, "y", ROWS);
    fth_axis(g, "x", COLS);
    const fth_val x = fth_input(g, "x", FTH_U16, "f y x", from);
    const fth_val v = fth_add(x, fth_const(g, FTH_U16, 1));
    const fth_limits limits = {.io_threads = 4, .min_pieces = 3, .stream = "f", .sinks = to};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, err);
    fth_status s = p ? fth_run(p, to, NULL, report, err) : err->status;
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return s;
}

/* The whole of it; `report` may be NULL. */
static fth_status copy(copying *c, fth_run_report *report, fth_err *err)
{
    fth_source from;
    fth_sink to;
    FTH_TRY(fth_npy_open(&from, c->mem, c->from, err));
    fth_status s = fth_npy_create(&to, c->mem, c->to, FTH_U16, 3, from.size, err);
    if (s == FTH_OK) {
        s = run_graph(c, from, &to, report, err);
        fth_sink_close(&to);
    }
    fth_source_close(&from);
    return s;
}

static void check_file(const copying *c)
{
    fth_tensor *t;
    OK(fth_npy_load(c->mem, c->to, "copy", &t, NULL));
    const uint16_t *v = fth_tensor_data(t);
    for (int64_t i = 0; i < ALL; i++)
        if (v[i] != c->data[i] + 1) FAIL("element %d is wrong", (int)i);
    fth_tensor_release(t);
}

static void write_old(const copying *c)
{
    t_file_write(c->to, "old", 3);
}

static void check_old(const copying *c)
{
    size_t bytes;
    unsigned char *old = t_file_read(c->to, &bytes);
    EQ_U64(bytes, 3);
    SAME_BYTES(old, "old", 3);
    free(old);
    EQ_I64(t_file_count(), 2); /* no temporary file is left */
}

static void fail_each(bool writes)
{
    copying c;
    open_copying(&c);
    write_old(&c);
    int failed = 0;
    for (int n = 1; n <= MOST; n++) {
        fth_err err = {0};
        fth__mem_inject(c.mem, writes ? 0 : n, writes ? n : 0);
        const fth_status s = copy(&c, NULL, &err);
        fth__mem_inject(c.mem, 0, 0);
        if (s == FTH_OK) { /* it was not reached, or could be done without */
            check_file(&c);
            write_old(&c);
            if (n > failed + 20) break;
            continue;
        }
        failed = n;
        IS(s, writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM);
        check_old(&c);
    }
    IS_TRUE(failed > 3 && failed < MOST);
    fth_run_report report = {0}; /* a second thread starts when two jobs wait at once */
    for (int i = 0; i < 200 && report.io_threads < 2; i++) OK(copy(&c, &report, NULL));
    IS_TRUE(report.io_threads > 1);
    check_file(&c);
    close_copying(&c);
}

TEST(every_allocation)
{
    fail_each(false);
}

TEST(every_write)
{
    fail_each(true);
}

/* The file ends before its header says: threads that read beyond find it, the first one speaks. */
TEST(a_file_that_is_cut_while_it_is_read)
{
    copying c;
    open_copying(&c);
    fth_source from;
    fth_sink to;
    fth_err err = {0};
    OK(fth_npy_open(&from, c.mem, c.from, &err));
    OK(fth_npy_create(&to, c.mem, c.to, FTH_U16, 3, from.size, &err));
    size_t bytes;
    unsigned char *all = t_file_read(c.from, &bytes);
    t_file_write(c.from, all, bytes / 3); /* the same file: it is written, not replaced */
    IS(run_graph(&c, from, &to, NULL, &err), FTH_E_FILE_SHORT);
    HAS(err.text, "input 'x'");
    HAS(err.text, "was cut short");
    char at[32];
    snprintf(at, sizeof at, "byte %zu", bytes / 3);
    HAS(err.text, at);
    fth_sink_close(&to);
    fth_source_close(&from);
    free(all);
    IS_TRUE(!t_file_exists(c.to));
    close_copying(&c);
}

TEST_MAIN()
