/* test_rows_apart.c - tensors whose rows are on a device alone: they grow, shrink and close up
 * there, take none of the host's memory, and are read and written in pieces. seconds: 10
 */
#include "testing/engine/host_device.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/fathom.h>

#include <stdlib.h>
#include <string.h>

enum { MOST = 5000, WIDTH = 3 };
static const uint64_t MiB = 1 << 20;

static uint64_t used(const fth_mem *mem)
{
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    return stats.used_bytes;
}

static uint64_t cached(const fth_mem *mem)
{
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    return stats.cached_bytes;
}

static fth_status open_context(fth_context **out, bool device, fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = 64 * MiB;
    opt.device_memory_bytes = 512 * MiB;
    if (device) opt.device = "cuda", opt.backend = &t_host_backend;
    return fth_context_create(out, &opt, err);
}

static fth_status make_rows(fth_mem *mem, fth_tensor **t, int64_t rows, int64_t wide, int64_t most,
                            fth_err *err)
{
    return fth_tensor_reserve(t, mem, "rows", FTH_F32, 2, ((int64_t[]){rows, wide}), most, err);
}

static void give_back(fth_context *ctx)
{
    OK(fth_context_destroy(ctx, NULL));
    EQ_U64(t_host_device_seen().mapped, 0);
}

TEST(rows_take_memory_of_the_device_alone)
{
    fth_context *ctx = NULL;
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(open_context(&ctx, true, &err), &err);
    fth_mem *there = fth_context_device_mem(ctx), *here = fth_context_mem(ctx);
    const int64_t most = 40 << 20;
    OKE(make_rows(there, &t, 10, WIDTH, most, &err), &err);
    const uint64_t all = (uint64_t)most * WIDTH * 4, before = used(here);
    EQ_U64(used(there), fth_mem_range_cost(there, all, 10 * WIDTH * 4));
    IS_TRUE(fth_tensor_data(t) == NULL && fth_tensor_view(t) == NULL);
    float row[WIDTH] = {1, 2, 3};
    OKE(fth_tensor_put_rows(t, 9, 1, row, &err), &err);
    OKE(fth_tensor_set_rows(t, 1 << 20, &err), &err);
    EQ_U64(used(there), fth_mem_range_cost(there, all, (uint64_t)(1 << 20) * WIDTH * 4));
    EQ_U64(used(there), 12 * MiB);
    EQ_U64(used(here), before);
    float got[3 * WIDTH];
    OKE(fth_tensor_get_rows(t, 8, 3, got, &err), &err);
    for (int i = 0; i < 3 * WIDTH; i++)
        EQ_F64(got[i], i / WIDTH == 1 ? row[i % WIDTH] : 0); /* new rows are 0 */
    OKE(fth_tensor_set_rows(t, 9, &err), &err);
    EQ_U64(used(there), 2 * MiB);
    OKE(fth_tensor_set_rows(t, 11, &err), &err);
    OKE(fth_tensor_get_rows(t, 8, 3, got, &err), &err);
    for (int i = 0; i < 3 * WIDTH; i++) EQ_F64(got[i], 0);
    OK(fth_tensor_release(t));
    EQ_U64(used(there), 0);
    give_back(ctx);
}

static void same_bytes(const char *a, const char *b)
{
    size_t n[2];
    unsigned char *data[2] = {t_file_read(a, &n[0]), t_file_read(b, &n[1])};
    EQ_U64(n[0], n[1]);
    IS_TRUE(memcmp(data[0], data[1], n[0]) == 0);
    free(data[0]);
    free(data[1]);
}

/* The driver is not asked for what rows have left and get again; others get it when they need it.
 */
TEST(pages_that_rows_leave_stay_until_they_are_needed)
{
    fth_context *ctx = NULL;
    fth_tensor *t = NULL, *other = NULL;
    fth_err err = {0};
    OKE(open_context(&ctx, true, &err), &err);
    fth_mem *there = fth_context_device_mem(ctx);
    const int64_t page = 2 * (int64_t)MiB / 4; /* rows of a number */
    OKE(make_rows(there, &t, 200 * page, 1, 256 * page, &err), &err);
    OKE(fth_tensor_put_rows(t, 100 * page, 1, (float[]){7}, &err), &err);
    OKE(fth_tensor_set_rows(t, 1, &err), &err);
    EQ_U64(used(there), 2 * MiB);
    EQ_U64(cached(there), 398 * MiB);
    const int64_t mapped = (int64_t)t_host_device_seen().mapped;
    OKE(fth_tensor_set_rows(t, 150 * page, &err), &err);
    EQ_I64((int64_t)t_host_device_seen().mapped, mapped);
    EQ_U64(used(there), 300 * MiB);
    EQ_U64(cached(there), 100 * MiB);
    float got = 1;
    OKE(fth_tensor_get_rows(t, 100 * page, 1, &got, &err), &err);
    EQ_F64(got, 0);
    OKE(make_rows(there, &other, 100 * page, 1, 100 * page, &err), &err);
    IS_TRUE(used(there) + cached(there) <= 512 * MiB);
    EQ_U64(used(there), 500 * MiB);
    OKE(fth_tensor_set_rows(t, 156 * page, &err), &err);
    EQ_U64(used(there), 512 * MiB);
    IS(fth_tensor_set_rows(t, 157 * page, &err), FTH_E_BUDGET);
    EQ_I64(fth_tensor_size(t, 0), 156 * page);
    fth_err_clear(&err);
    OK(fth_tensor_release(t));
    OK(fth_tensor_release(other));
    EQ_U64(cached(there), 0);
    give_back(ctx);
}

/* What is queued to clear new rows has ended when a range, or others, get their pages. */
TEST(rows_are_cleared_before_their_pages_go)
{
    const int64_t page = 2 * (int64_t)MiB / 4;
    for (int released = 0; released < 2; released++) {
        fth_context *ctx = NULL;
        fth_tensor *t = NULL, *other = NULL;
        fth_err err = {0};
        OKE(open_context(&ctx, true, &err), &err);
        fth_mem *there = fth_context_device_mem(ctx);
        OKE(make_rows(there, &t, 1, 1, 200 * page, &err), &err);
        OKE(fth_tensor_set_rows(t, 200 * page, &err), &err);
        if (released)
            OK(fth_tensor_release(t));
        else
            OKE(fth_tensor_set_rows(t, 1, &err), &err);
        OKE(make_rows(there, &other, 200 * page, 1, 200 * page, &err), &err);
        if (!released) OK(fth_tensor_release(t));
        OK(fth_tensor_release(other));
        give_back(ctx);
    }
}

/* More than one piece of rows, and a last one that is not whole. */
TEST(files_are_those_of_rows_here)
{
    enum { ROWS = (9 << 20) / (WIDTH * 4) + 1 };
    char path[2][FTH_PATH];
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(open_context(&ctx, true, &err), &err);
    fth_mem *there = fth_context_device_mem(ctx), *here = fth_context_mem(ctx);
    fth_tensor *t[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; i++)
        OKE(make_rows(i == 0 ? here : there, &t[i], ROWS, WIDTH, ROWS, &err), &err);
    float *v = fth_tensor_data(t[0]);
    for (int64_t i = 0; i < ROWS * WIDTH; i++) v[i] = (float)(i % 7919);
    OKE(fth_tensor_put_rows(t[1], 0, ROWS, v, &err), &err);
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s", t_temp_path(i ? "there" : "here"));
        const fth_file_tensor one = {"rows", t[i], "g xyz"};
        OKE(fth_safetensors_save(here, path[i], &one, 1, &(fth_safetensors_options){0}, &err),
            &err);
    }
    same_bytes(path[0], path[1]);
    fth_safetensors *file = NULL;
    OKE(fth_safetensors_open(&file, here, path[1], &err), &err);
    OKE(fth_safetensors_fill(file, "rows", t[2], &err), &err);
    fth_safetensors_close(file);
    float *back = malloc(sizeof(float) * ROWS * WIDTH);
    OKE(fth_tensor_get_rows(t[2], 0, ROWS, back, &err), &err);
    IS_TRUE(memcmp(back, v, sizeof(float) * ROWS * WIDTH) == 0);
    free(back);
    for (int i = 0; i < 3; i++) fth_tensor_release(t[i]);
    give_back(ctx);
}

TEST(what_cannot_be_is_told)
{
    fth_context *ctx = NULL, *cpu = NULL;
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(open_context(&ctx, true, &err), &err);
    OKE(open_context(&cpu, false, &err), &err);
    IS_TRUE(fth_context_device_mem(cpu) == NULL);
    OKE(make_rows(fth_context_device_mem(ctx), &t, 10, WIDTH, MOST, &err), &err);
    float row[10 * WIDTH] = {0};
    IS(fth_tensor_get_rows(t, 8, 3, row, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "rows 8 to 10 of a tensor that has 10");
    IS(fth_tensor_put_rows(t, -1, 2, row, NULL), FTH_E_INDEX_RANGE);
    IS(fth_tensor_get_rows(t, 0, 1, NULL, NULL), FTH_E_USAGE);
    const fth_source source = fth_tensor_source(t);
    IS_TRUE(source.data == NULL && !source.concurrent);
    OK(source.read(source.self, (int64_t[]){2, 0}, (int64_t[]){4, WIDTH}, row, NULL));
    fth_err_clear(&err);
    IS(source.read(source.self, (int64_t[]){2, 1}, (int64_t[]){4, 1}, row, &err), FTH_E_USAGE);
    HAS(err.text, "whole rows");
    fth_graph *g = fth_graph_create(cpu);
    fth_axis(g, "row", 10);
    fth_axis(g, "column", WIDTH);
    IS_TRUE(!fth_val_ok(fth_param(g, "rows", "row column", t)));
    fth_graph_errors(g, 0, &err);
    IS(err.status, FTH_E_USAGE);
    HAS(err.text, "on a device alone, and its graph runs on the CPU");
    fth_graph_destroy(g);
    fth_err_clear(&err);
    IS(fth_tensor_set_rows(t, MOST + 1, &err), FTH_E_USAGE);
    IS(fth_tensor_keep_rows(t, (int64_t[]){3, 3}, 2, NULL), FTH_E_USAGE);
    EQ_I64(fth_tensor_size(t, 0), 10);
    OK(fth_tensor_release(t));
    fth_err_clear(&err);
    IS(make_rows(fth_context_device_mem(ctx), &t, 1, WIDTH, INT64_MAX / 4, &err),
       FTH_E_SIZE_OVERFLOW);
    fth_err_clear(&err);
    OK(make_rows(fth_context_device_mem(ctx), &t, 1, WIDTH, 100 << 20, NULL));
    IS(fth_tensor_set_rows(t, 100 << 20, &err), FTH_E_BUDGET); /* 1.2 GB of 512 MiB */
    EQ_I64(fth_tensor_size(t, 0), 1);
    OK(fth_tensor_release(t));
    OK(fth_context_destroy(cpu, NULL));
    give_back(ctx);
}

/* ---- runs ---- */

/* rows := rows + 1, over as many as there are now. */
static fth_status run_once(fth_context *ctx, fth_tensor *t, fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", fth_tensor_size(t, 0));
    fth_axis(g, "column", WIDTH);
    const fth_val rows = fth_param(g, "rows", "row column", t),
                  out = fth_assign(rows, fth_add(rows, fth_const(g, FTH_F32, 1)));
    fth_plan *plan = fth_plan_make(g, &out, 1, NULL, err);
    const fth_status s = plan ? fth_run(plan, NULL, NULL, NULL, err) : err->status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    return s;
}

/* Grows between runs, shrinks, loses rows; every row counts the runs it was there for. */
static fth_status live(fth_context *ctx, fth_tensor *t, fth_err *err)
{
    FTH_TRY(run_once(ctx, t, err));
    FTH_TRY(fth_tensor_set_rows(t, MOST, err));
    FTH_TRY(run_once(ctx, t, err));
    FTH_TRY(fth_tensor_set_rows(t, 50, err));
    FTH_TRY(run_once(ctx, t, err));
    FTH_TRY(fth_tensor_keep_rows(t, (int64_t[]){1, 2, 20, 49}, 4, err));
    return run_once(ctx, t, err);
}

TEST(runs_take_the_rows_that_are_there)
{
    fth_context *ctx = NULL;
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(open_context(&ctx, true, &err), &err);
    OKE(make_rows(fth_context_device_mem(ctx), &t, 10, WIDTH, MOST, &err), &err);
    OKE(live(ctx, t, &err), &err);
    float got[4 * WIDTH];
    const float want[] = {4, 4, 3, 3};
    OKE(fth_tensor_get_rows(t, 0, 4, got, &err), &err);
    for (int i = 0; i < 4 * WIDTH; i++) EQ_F64(got[i], want[i / WIDTH]);
    OK(fth_tensor_release(t));
    give_back(ctx);
}

TEST_REPEAT(a_plan_counts_what_a_run_takes)
{
    fth_context *ctx = NULL;
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(open_context(&ctx, true, &err), &err);
    fth_mem *mem = fth_context_device_mem(ctx);
    OKE(make_rows(mem, &t, 1 << 20, WIDTH, 8 << 20, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", 1 << 20);
    fth_axis(g, "column", WIDTH);
    const fth_val rows = fth_param(g, "rows", "row column", t), sum = fth_cumsum(rows, "row"),
                  out = fth_assign(rows, fth_add(rows, sum));
    fth_plan *plan = fth_plan_make(g, &out, 1, NULL, &err);
    if (!plan) OKE(err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    EQ_U64(info.foreign_bytes, 12 * MiB);
    fth_run_report report;
    for (int i = 0; i < 3; i++) {
        OKE(fth_run(plan, NULL, NULL, &report, &err), &err);
        EQ_U64(report.ledger_bytes, report.planned_bytes);
        IS_TRUE(report.planned_bytes >= 12 * MiB); /* the sums */
    }
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    OK(fth_tensor_release(t));
    give_back(ctx);
}

/* ---- pages that a device does not take back ---- */

static bool stubborn;
static bool (*take_back)(void *self, char *base, uint64_t bytes);
static bool may_take_back(void *self, char *base, uint64_t bytes)
{
    return !stubborn && take_back(self, base, bytes);
}
static void get_memory(fth_device *d, fth_mem_system *out)
{
    t_host_backend.device->get_memory(d, out);
    take_back = out->decommit;
    out->decommit = may_take_back;
}

TEST(a_shrink_that_fails_loses_no_rows)
{
    fth_device_table table = *t_host_backend.device;
    fth_backend backend = t_host_backend;
    table.get_memory = get_memory;
    backend.device = &table;
    for (int apart = 0; apart < 2; apart++) {
        fth_context *ctx = NULL;
        fth_tensor *t = NULL;
        fth_err err = {0};
        fth_options opt;
        fth_options_default(&opt);
        opt.mem.budget_bytes = opt.device_memory_bytes = 64 * MiB;
        opt.device = "cuda";
        opt.backend = &backend;
        OKE(fth_context_create(&ctx, &opt, &err), &err);
        fth_mem *there = fth_context_device_mem(ctx);
        OKE(make_rows(apart ? there : fth_context_mem(ctx), &t, 1 << 20, WIDTH, 4 << 20, &err),
            &err);
        OKE(run_once(ctx, t, &err), &err); /* now the newest rows are the device's */
        const uint64_t before = used(there), all = before + cached(there);
        stubborn = true;
        OKE(fth_tensor_set_rows(t, 10, &err), &err);
        IS_TRUE(used(there) < before);
        EQ_U64(used(there) + cached(there), all); /* counted as long as they are held */
        (void)fth_mem_trim(there);
        IS_TRUE(used(there) + cached(there) >= before);
        OKE(run_once(ctx, t, &err), &err);
        OKE(fth_tensor_set_rows(t, 20, &err), &err);
        OKE(run_once(ctx, t, &err), &err);
        float got[20 * WIDTH];
        OKE(fth_tensor_get_rows(t, 0, 20, got, &err), &err);
        for (int i = 0; i < 20 * WIDTH; i++) EQ_F64(got[i], i < 10 * WIDTH ? 3 : 1);
        OKE(fth_tensor_keep_rows(t, (int64_t[]){9, 10}, 2, &err), &err);
        OKE(fth_tensor_get_rows(t, 0, 2, got, &err), &err);
        for (int i = 0; i < 2 * WIDTH; i++) EQ_F64(got[i], i < WIDTH ? 3 : 1);
        stubborn = false;
        OKE(fth_tensor_set_rows(t, 1, &err), &err);
        IS_TRUE(fth_mem_trim(there) > 0);
        EQ_U64(cached(there), 0);
        IS_TRUE(used(there) < before);
        OK(fth_tensor_release(t));
        give_back(ctx);
    }
}

/* One life with the n-th call of the device failing; 0: none does. How many calls there were. */
static int64_t fail_call(int64_t n, fth_status *status)
{
    fth_context *ctx = NULL;
    fth_tensor *t = NULL;
    OK(open_context(&ctx, true, NULL));
    const int64_t before = t_host_device_seen().calls;
    t_host_device_fail(n);
    *status = make_rows(fth_context_device_mem(ctx), &t, 10, WIDTH, MOST, NULL);
    if (*status == FTH_OK) *status = live(ctx, t, &(fth_err){0});
    t_host_device_fail(0);
    const int64_t calls = t_host_device_seen().calls - before;
    const int64_t rows = t ? fth_tensor_size(t, 0) : 0;
    IS_TRUE(rows == 0 || rows == 10 || rows == MOST || rows == 50 || rows == 4);
    OK(fth_tensor_release(t));
    give_back(ctx);
    return calls;
}

TEST(every_call_of_the_device_may_fail)
{
    fth_status status;
    int told = 0;
    const int64_t calls = fail_call(0, &status);
    IS(status, FTH_OK);
    IS_TRUE(calls >= 20);
    for (int64_t n = 1; n <= calls; n++) {
        fail_call(n, &status);
        told += status != FTH_OK;
    }
    IS_TRUE(told >= 10);
}

/* ---- rows that are kept ---- */

/* Element j of row i before anything moved. */
static float number(int64_t i, int64_t j)
{
    return (float)(i % 60013) + (float)j / 64.0f;
}

static void fill(fth_tensor *t)
{
    enum { PIECE = 1000 };
    const int64_t rows = fth_tensor_size(t, 0), wide = fth_tensor_size(t, 1);
    float *piece = malloc((size_t)(PIECE * wide) * sizeof *piece);
    for (int64_t i = 0; i < rows; i += PIECE) {
        const int64_t n = rows - i < PIECE ? rows - i : PIECE;
        for (int64_t k = 0; k < n * wide; k++) piece[k] = number(i + k / wide, k % wide);
        OK(fth_tensor_put_rows(t, i, n, piece, NULL));
    }
    free(piece);
}

static void has_kept(fth_tensor *t, const int64_t *from, int64_t n)
{
    const int64_t wide = fth_tensor_size(t, 1);
    float *all = malloc((size_t)(n * wide + 1) * sizeof *all);
    EQ_I64(fth_tensor_size(t, 0), n);
    OK(fth_tensor_get_rows(t, 0, n, all, NULL));
    for (int64_t k = 0; k < n * wide; k++)
        if (all[k] < number(from[k / wide], k % wide) || all[k] > number(from[k / wide], k % wide))
            FAIL("row %lld is not row %lld of before", (long long)(k / wide),
                 (long long)from[k / wide]);
    free(all);
}

/* Several tensors at once, on the device and on the host; more rows than go at once, and rows that
 * do not fit the buffer together. */
TEST(kept_rows_are_those_that_were_named)
{
    t_random r = {t_seed()};
    static const int64_t rows_of[] = {0, 1, 300, 1000, 600000};
    static const int64_t wide[] = {1, 3, 4, 12};
    enum { TENSORS = 5 };
    for (int turn = 0; turn < 10; turn++) {
        fth_context *ctx = NULL;
        fth_tensor *t[TENSORS] = {0};
        fth_err err = {0};
        OKE(open_context(&ctx, true, &err), &err);
        const int64_t rows = rows_of[turn % 5];
        for (int i = 0; i < TENSORS; i++) {
            fth_mem *mem = i < 4 ? fth_context_device_mem(ctx) : fth_context_mem(ctx);
            OKE(make_rows(mem, &t[i], rows, wide[i % 4], rows + 1, &err), &err);
            fill(t[i]);
        }
        int64_t *from = malloc((size_t)(rows + 1) * sizeof *from), n = 0;
        const int64_t often = turn < 5 ? t_random_i64(&r, 0, 3) : 3;
        for (int64_t i = 0; i < rows; i++)
            if (i == 5 ? turn < 5 : t_random_i64(&r, 0, 4) <= often + (turn >= 5)) from[n++] = i;
        OKE(fth_tensor_set_rows(t[1], rows + 1, &err), &err);
        IS(fth_tensors_keep_rows(t, TENSORS, from, n, &err), FTH_E_USAGE);
        HAS(err.text, "do not belong together");
        fth_err_clear(&err);
        OKE(fth_tensor_set_rows(t[1], rows, &err), &err);
        OKE(fth_tensors_keep_rows(t, TENSORS, from, n, &err), &err);
        for (int i = 0; i < TENSORS; i++) {
            has_kept(t[i], from, n);
            OK(fth_tensor_release(t[i]));
        }
        free(from);
        give_back(ctx);
    }
}

TEST(no_room_to_move_rows_leaves_them_as_they_are)
{
    fth_context *ctx = NULL;
    fth_tensor *t = NULL;
    void *rest = NULL;
    fth_err err = {0};
    OKE(open_context(&ctx, true, &err), &err);
    fth_mem *mem = fth_context_device_mem(ctx);
    OKE(make_rows(mem, &t, 100, WIDTH, MOST, &err), &err);
    fill(t);
    OKE(fth_mem_take(mem, FTH_MEM_ANY, 500 * MiB, "rest", &rest, &err), &err);
    int64_t from[100];
    for (int64_t i = 0; i < 100; i++) from[i] = i;
    IS(fth_tensor_keep_rows(t, from + 50, 50, &err), FTH_E_BUDGET);
    has_kept(t, from, 100);
    OK(fth_mem_release(mem, rest, NULL));
    OK(fth_tensor_keep_rows(t, from + 50, 50, NULL));
    has_kept(t, from + 50, 50);
    OK(fth_tensor_release(t));
    give_back(ctx);
}

TEST_MAIN()
