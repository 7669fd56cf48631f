/* test_growing.c - blocks and tensors that grow where they lie: what they count, what they hold, on
 * the host and on a device, and what happens when there is no room.
 * seconds: 10
 */
#include "mem/inject.h"
#include "testing/engine/host_device.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/fathom.h>

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, ROWS = 5000, WIDTH = 3 };
static const uint64_t MiB = 1 << 20;

static uint64_t used(const fth_mem *mem)
{
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    return stats.used_bytes;
}

TEST(addresses_cost_nothing_and_pages_count)
{
    fth_mem *mem = t_mem(16 * MiB);
    unsigned char *p = NULL;
    fth_err err = {0};
    OKE(fth_mem_reserve(mem, 1 << 30, "range", (void **)&p, &err), &err); /* far over the budget */
    EQ_U64(used(mem), 0);
    OKE(fth_mem_resize(mem, p, 10 * PAGE + 1, &err), &err);
    EQ_U64(used(mem), 2 * MiB); /* long ranges come in huge pages */
    EQ_U64(fth_mem_range_cost(mem, 1 << 30, 10 * PAGE + 1), 2 * MiB);
    for (int i = 0; i <= 10 * PAGE; i++) EQ_I64(p[i], 0);
    memset(p, 7, 10 * PAGE + 1);
    OKE(fth_mem_resize(mem, p, 5 * MiB, &err), &err);
    EQ_U64(used(mem), 6 * MiB);
    EQ_I64(p[10 * PAGE], 7);
    EQ_I64(p[10 * PAGE + 1], 0);
    memset(p, 8, 5 * MiB);
    IS_TRUE(fth_mem_touched(p, 6 * MiB) >= 5 * MiB);
    OKE(fth_mem_resize(mem, p, 100, &err), &err);
    EQ_U64(used(mem), 2 * MiB);
    OKE(fth_mem_resize(mem, p, 5 * MiB, &err), &err);
    for (int i = 0; i < 100; i++) EQ_I64(p[i], 8);
    for (uint64_t i = 100; i < 5 * MiB; i++)
        if (p[i] != 0) FAIL("byte %llu is %d", (unsigned long long)i, p[i]);
    OKE(fth_mem_resize(mem, p, 0, &err), &err);
    EQ_U64(used(mem), 0);
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(short_ranges_come_in_small_pages)
{
    fth_mem *mem = t_mem(16 * MiB);
    for (uint64_t most = 64 * MiB - 2 * PAGE; most <= 64 * MiB + 1; most += PAGE / 2) {
        void *p = NULL;
        OK(fth_mem_reserve(mem, most, "range", &p, NULL));
        OK(fth_mem_resize(mem, p, 1, NULL));
        EQ_U64(used(mem), fth_mem_range_cost(mem, most, 1));
        EQ_U64(used(mem), most <= 64 * MiB - PAGE ? PAGE : 2 * MiB);
        OK(fth_mem_release(mem, p, NULL));
    }
    EQ_U64(used(mem), 0);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_cannot_grow_is_told_and_stays)
{
    fth_mem *mem = t_mem(4 * MiB);
    char *p = NULL;
    void *block = NULL;
    fth_err err = {0};
    OK(fth_mem_reserve(mem, 8 * MiB, "means", (void **)&p, NULL));
    OK(fth_mem_resize(mem, p, MiB, NULL));
    memset(p, 3, MiB);
    IS(fth_mem_resize(mem, p, 5 * MiB, &err), FTH_E_BUDGET);
    HAS(err.text, "means wants 4.00 MiB");
    fth_err_clear(&err);
    IS(fth_mem_resize(mem, p, 9 * MiB, &err), FTH_E_USAGE);
    HAS(err.text, "means was reserved for 8.00 MiB (");
    HAS(err.text, "test_growing.c:");
    fth_err_clear(&err);
    OK(fth_mem_take(mem, FTH_MEM_ANY, 100, "other", &block, NULL));
    IS(fth_mem_resize(mem, block, 200, &err), FTH_E_USAGE);
    HAS(err.text, "not reserved");
    IS(fth_mem_resize(mem, &err, 200, NULL), FTH_E_USAGE);
    IS(fth_mem_reserve(mem, UINT64_MAX - 5, "all", &block, NULL), FTH_E_NOMEM);
    IS(fth_mem_reserve(NULL, 1, "all", &block, NULL), FTH_E_USAGE);
    EQ_I64(p[MiB - 1], 3);
    EQ_U64(used(mem), MiB + 128);
    IS(fth_mem_destroy(mem, &err), FTH_E_LEAK); /* and both go back all the same */
}

/* ---- tensors ---- */

static fth_status make_rows(fth_mem *mem, fth_tensor **out, int64_t rows, fth_err *err)
{
    return fth_tensor_reserve(out, mem, "rows", FTH_F32, 2, ((int64_t[]){rows, WIDTH}), ROWS, err);
}

TEST(rows_come_and_go_in_place)
{
    fth_mem *mem = t_mem(64 * MiB);
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(make_rows(mem, &t, 10, &err), &err);
    float *v = fth_tensor_data(t);
    for (int i = 0; i < 10 * WIDTH; i++) v[i] = (float)(i + 1);
    OKE(fth_tensor_set_rows(t, ROWS, &err), &err);
    IS_TRUE(v == fth_tensor_data(t));
    EQ_I64(fth_tensor_size(t, 0), ROWS);
    EQ_U64(fth_tensor_bytes(t), ROWS * WIDTH * sizeof(float));
    EQ_F64(v[10 * WIDTH - 1], 10 * WIDTH);
    for (int i = 10 * WIDTH; i < ROWS * WIDTH; i++) EQ_F64(v[i], 0);
    OKE(fth_tensor_set_rows(t, 4, &err), &err);
    OKE(fth_tensor_set_rows(t, 6, &err), &err);
    EQ_F64(v[4 * WIDTH - 1], 4 * WIDTH);
    EQ_F64(v[4 * WIDTH], 0);
    IS(fth_tensor_set_rows(t, ROWS + 1, &err), FTH_E_USAGE);
    HAS(err.text, "reserved for 5000 rows was to have 5001");
    IS(fth_tensor_set_rows(t, -1, NULL), FTH_E_USAGE);
    IS(fth_tensor_set_rows(NULL, 1, NULL), FTH_E_USAGE);
    fth_tensor *fixed = NULL;
    OK(fth_tensor_create(&fixed, mem, "fixed", FTH_F32, 1, (int64_t[]){3}, NULL));
    IS(fth_tensor_set_rows(fixed, 2, NULL), FTH_E_USAGE);
    fth_tensor_release(fixed);
    fth_tensor_release(t);
    IS(fth_tensor_reserve(&t, mem, "rows", FTH_F32, 1, (int64_t[]){8}, 7, NULL), FTH_E_USAGE);
    IS(fth_tensor_reserve(&t, mem, "rows", FTH_F32, 1, (int64_t[]){-1}, 7, NULL), FTH_E_USAGE);
    IS(fth_tensor_reserve(&t, mem, "rows", FTH_F32, 0, NULL, 7, NULL), FTH_E_USAGE);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(kept_rows_are_those_that_were_named)
{
    fth_mem *mem = t_mem(64 * MiB);
    t_random r = {t_seed()};
    for (int turn = 0; turn < 50; turn++) {
        const int64_t rows = t_random_i64(&r, 0, 400);
        int64_t from[400], n = 0;
        fth_tensor *t = NULL;
        OK(make_rows(mem, &t, rows, NULL));
        float *v = fth_tensor_data(t);
        for (int64_t i = 0; i < rows * WIDTH; i++) v[i] = (float)i;
        const int64_t often = t_random_i64(&r, 0, 4);
        for (int64_t i = 0; i < rows; i++)
            if (t_random_i64(&r, 0, 4) <= often) from[n++] = i;
        OK(fth_tensor_keep_rows(t, from, n, NULL));
        EQ_I64(fth_tensor_size(t, 0), n);
        for (int64_t i = 0; i < n * WIDTH; i++)
            EQ_F64(v[i], (double)(from[i / WIDTH] * WIDTH + i % WIDTH));
        fth_tensor_release(t);
    }
    fth_tensor *t = NULL;
    fth_err err = {0};
    OK(make_rows(mem, &t, 10, NULL));
    IS(fth_tensor_keep_rows(t, (int64_t[]){3, 3}, 2, &err), FTH_E_USAGE);
    HAS(err.text, "row 1 is to be row 3 of 10");
    IS(fth_tensor_keep_rows(t, (int64_t[]){3, 10}, 2, NULL), FTH_E_USAGE);
    IS(fth_tensor_keep_rows(t, (int64_t[]){-1}, 1, NULL), FTH_E_USAGE);
    EQ_I64(fth_tensor_size(t, 0), 10);
    fth_tensor_release(t);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- runs ---- */

/* rows := rows + 1, over as many as there are now. */
typedef struct step {
    fth_graph *g;
    fth_val out;
    fth_plan *plan;
} step;

static fth_status plan_step(step *s, fth_context *ctx, fth_tensor *t, fth_err *err)
{
    *s = (step){.g = fth_graph_create(ctx)};
    fth_axis(s->g, "row", fth_tensor_size(t, 0));
    fth_axis(s->g, "column", WIDTH);
    const fth_val rows = fth_param(s->g, "rows", "row column", t);
    s->out = fth_assign(rows, fth_add(rows, fth_const(s->g, FTH_F32, 1)));
    s->plan = fth_plan_make(s->g, &s->out, 1, NULL, err);
    return s->plan ? FTH_OK : err->status;
}

static void end_step(step *s)
{
    fth_plan_destroy(s->plan);
    fth_graph_destroy(s->g);
}

static fth_status run_once(fth_context *ctx, fth_tensor *t, fth_err *err)
{
    step s;
    fth_status status = plan_step(&s, ctx, t, err);
    if (status == FTH_OK) status = fth_run(s.plan, NULL, NULL, NULL, err);
    end_step(&s);
    return status;
}

static fth_status open_context(fth_context **out, bool device, fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = 64 * MiB;
    if (device) opt.device = "cuda", opt.backend = &t_host_backend;
    return fth_context_create(out, &opt, err);
}

/* Grows between runs, shrinks, loses rows; every row counts the runs it was there for. */
static fth_status live(fth_context *ctx, fth_tensor *t, fth_err *err)
{
    FTH_TRY(run_once(ctx, t, err));
    FTH_TRY(fth_tensor_set_rows(t, ROWS, err));
    FTH_TRY(run_once(ctx, t, err));
    FTH_TRY(fth_tensor_set_rows(t, 50, err));
    FTH_TRY(run_once(ctx, t, err));
    FTH_TRY(fth_tensor_keep_rows(t, (int64_t[]){1, 2, 20, 49}, 4, err));
    return run_once(ctx, t, err);
}

static void growing_run(bool device)
{
    fth_context *ctx = NULL;
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(open_context(&ctx, device, &err), &err);
    OKE(make_rows(fth_context_mem(ctx), &t, 10, &err), &err);
    OKE(live(ctx, t, &err), &err);
    const float *v = fth_tensor_view(t), want[] = {4, 4, 3, 3};
    for (int i = 0; i < 4 * WIDTH; i++) EQ_F64(v[i], want[i / WIDTH]);
    fth_tensor_release(t);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(runs_take_the_rows_that_are_there)
{
    growing_run(false);
}

TEST(a_device_has_the_same_rows)
{
    growing_run(true);
    EQ_U64(t_host_device_seen().mapped, 0);
}

TEST(a_device_counts_the_pages_that_rows_have)
{
    fth_context *ctx = NULL;
    fth_tensor *t = NULL;
    step s;
    fth_plan_info info;
    fth_err err = {0};
    OKE(open_context(&ctx, true, &err), &err);
    OKE(fth_tensor_reserve(&t, fth_context_mem(ctx), "rows", FTH_F32, 2, ((int64_t[]){100, WIDTH}),
                           1 << 30, &err),
        &err);
    OKE(run_once(ctx, t, &err), &err);
    EQ_U64(used(fth_context_device_mem(ctx)), 2 * MiB);
    OKE(fth_tensor_set_rows(t, 300000, &err), &err); /* 3.4 MiB */
    EQ_U64(used(fth_context_device_mem(ctx)), 4 * MiB);
    OKE(plan_step(&s, ctx, t, &err), &err);
    fth_plan_get_info(s.plan, &info);
    EQ_U64(info.foreign_bytes, 4 * MiB);
    end_step(&s);
    fth_tensor_release(t);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_graph_of_other_rows_is_not_run)
{
    for (int device = 0; device < 2; device++) {
        fth_context *ctx = NULL;
        fth_tensor *t = NULL;
        step s;
        fth_err err = {0};
        OKE(open_context(&ctx, device, &err), &err);
        OKE(make_rows(fth_context_mem(ctx), &t, 10, &err), &err);
        OKE(plan_step(&s, ctx, t, &err), &err);
        OKE(fth_run(s.plan, NULL, NULL, NULL, &err), &err);
        OK(fth_tensor_set_rows(t, 12, NULL));
        IS(fth_run(s.plan, NULL, NULL, NULL, &err), FTH_E_PLAN_STALE);
        HAS(err.text, "rows had 10 rows when its graph was made and has 12 now");
        fth_err_clear(&err);
        OK(fth_tensor_set_rows(t, 10, NULL));
        OKE(fth_run(s.plan, NULL, NULL, NULL, &err), &err);
        EQ_F64(((const float *)fth_tensor_view(t))[0], 2);
        fth_tensor *other = NULL;
        OK(make_rows(fth_context_mem(ctx), &other, 10, NULL));
        if (device) IS(fth_param_set(s.g, "rows", other, NULL), FTH_E_USAGE);
        fth_tensor_release(other);
        end_step(&s);
        fth_tensor_release(t);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* Whatever is refused, the rows that were there stay, and nothing leaks. */
TEST(every_request_may_fail)
{
    for (int device = 0; device < 2; device++) {
        fth_status status = FTH_E_NOMEM;
        for (int64_t n = 1; status != FTH_OK && n < 400; n++) {
            fth_context *ctx = NULL;
            fth_tensor *t = NULL;
            fth_err err = {0};
            OKE(open_context(&ctx, device, &err), &err);
            OKE(make_rows(fth_context_mem(ctx), &t, 10, &err), &err);
            fth__mem_inject(fth_context_mem(ctx), n, 0);
            status = live(ctx, t, &err);
            fth__mem_inject(fth_context_mem(ctx), 0, 0);
            const float *v = fth_tensor_view(t);
            const int64_t rows = fth_tensor_size(t, 0);
            IS_TRUE(rows == 10 || rows == ROWS || rows == 50 || rows == 4);
            for (int64_t i = 1; i < rows * WIDTH; i++) IS_TRUE(v[i] <= v[0]);
            fth_tensor_release(t);
            OK(fth_context_destroy(ctx, NULL));
        }
        IS(status, FTH_OK);
    }
}

/* The same with a device that says no. */
TEST(every_call_of_the_device_may_fail)
{
    fth_status status = FTH_E_DEVICE;
    for (int64_t n = 1; status != FTH_OK && n < 2000; n++) {
        fth_context *ctx = NULL;
        fth_tensor *t = NULL;
        OK(open_context(&ctx, true, NULL));
        OK(make_rows(fth_context_mem(ctx), &t, 10, NULL));
        t_host_device_fail(n);
        status = live(ctx, t, NULL);
        t_host_device_fail(0);
        fth_tensor_release(t);
        OK(fth_context_destroy(ctx, NULL));
        EQ_U64(t_host_device_seen().mapped, 0);
    }
    IS(status, FTH_OK);
}

TEST_MAIN()
