/* test_splat_rows.c - rows of splat that grow and close up together, marks of rows and their ranks.
 *
 * seconds: 3
 */
#include "testing/splat/splat_device.h"
#include "testing/splat/splat_rows.h"
#include "testing/test.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t MiB = 1 << 20;

TEST(ranks_of_marks_are_those_of_a_plain_count)
{
    static const int64_t sizes[] = {0, 1, 31, 32, 33, 1023, 1024, 1025, 5000};
    fth_mem *mem = t_mem(4 * MiB);
    t_random r = t_random_make(1);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int full = 0; full < 3; full++) {
            gs_marks m;
            fth_mem_stats stats;
            OK(gs_marks_create(&m, mem, sizes[k], "marks", NULL));
            fth_mem_get_stats(mem, &stats);
            EQ_U64(stats.used_bytes, gs_marks_bytes(mem, sizes[k]));
            for (int64_t i = 0; i < sizes[k]; i++)
                if (full == 2 || (full == 1 && t_random_i64(&r, 0, 1))) gs_marks_set(&m, i);
            if (sizes[k] > 1) gs_marks_unset(&m, sizes[k] / 2);
            gs_marks_count(&m);
            int64_t rank = 0;
            for (int64_t i = 0; i < sizes[k]; i++) {
                EQ_I64(gs_marks_rank(&m, i), rank);
                rank += gs_marks_has(&m, i);
            }
            EQ_I64(m.count, rank);
            gs_marks_free(&m);
        }
    OK(fth_mem_destroy(mem, NULL));
}

/* Marks `gone` of rows of which some go: all, none, one, each other, random ones. */
static void mark(gs_marks *gone, int how, t_random *r)
{
    for (int64_t i = 0; i < gone->n; i++)
        if (how == 0 || (how == 2 && i == gone->n / 2) || (how == 3 && i % 2) ||
            (how == 4 && t_random_i64(r, 0, 2) == 0))
            gs_marks_set(gone, i);
    gs_marks_count(gone);
}

TEST(rows_close_up_in_order_in_every_array)
{
    static const int64_t sizes[] = {1, 2, 1024, 3001};
    fth_context *ctx = t_rows_context(2, 64 * MiB);
    t_random r = t_random_make(2);
    for (size_t k = 0; k < 4; k++)
        for (int how = 0; how < 5; how++) {
            gs_rows rows;
            gs_marks gone;
            gs_rows_memory before, after;
            t_rows_make(&rows, ctx, sizes[k], sizes[k], how % 4, GS_ROWS_ADAM | GS_ROWS_DENSIFY, k);
            OK(gs_rows_open(&rows, &before, NULL));
            float *was[GS_PARTS][GS_ATTRIBUTES];
            for (int p = 0; p < GS_PARTS; p++)
                for (int a = 0; a < GS_ATTRIBUTES; a++) {
                    const size_t bytes = (size_t)fth_tensor_bytes(rows.tensor[p][a]);
                    was[p][a] = malloc(bytes + 1);
                    memcpy(was[p][a], before.at[p][a], bytes);
                }
            OK(gs_marks_create(&gone, rows.mem, sizes[k], "gone", NULL));
            mark(&gone, how, &r);
            OK(gs_rows_compact(&rows, &gone, NULL));
            EQ_I64(rows.n, sizes[k] - gone.count);
            (void)t_rows_hash(&rows); /* all have as many rows */
            OK(gs_rows_open(&rows, &after, NULL));
            for (int p = 0; p < GS_PARTS; p++)
                for (int a = 0; a < GS_ATTRIBUTES; a++) {
                    const int64_t columns = gs_columns((gs_attribute)a, rows.degree);
                    const float *at = after.at[p][a];
                    for (int64_t i = 0; i < sizes[k]; i++) {
                        if (gs_marks_has(&gone, i)) continue;
                        for (int64_t c = 0; c < columns; c++)
                            EQ_F64(*at++, was[p][a][i * columns + c]);
                    }
                    free(was[p][a]);
                }
            gs_marks_free(&gone);
            gs_rows_free(&rows);
        }
    OK(fth_context_destroy(ctx, NULL));
}

TEST(appended_rows_are_zero_and_counted)
{
    fth_context *ctx = t_rows_context(1, 256 * MiB);
    const unsigned flags = GS_ROWS_ADAM | GS_ROWS_DENSIFY;
    fth_mem_stats stats;
    gs_rows rows;
    gs_rows_memory before, m;
    fth_err err = {0};
    t_rows_make(&rows, ctx, 1000, 200000, 3, flags, 5);
    OK(gs_rows_open(&rows, &before, NULL));
    for (int64_t n = 1000; n <= 181000; n += 90000) {
        if (n > 1000) OK(gs_rows_append(&rows, 90000, NULL));
        fth_mem_get_stats(rows.mem, &stats);
        EQ_U64(stats.used_bytes, gs_rows_bytes(rows.mem, 200000, 3, flags, n));
        EQ_I64(gs_rows_fit(rows.mem, 200000, 3, flags, stats.used_bytes) >= n, true);
    }
    OK(gs_rows_open(&rows, &m, NULL));
    EQ_PTR(m.at[GS_SECOND][GS_SH_N], before.at[GS_SECOND][GS_SH_N]); /* nothing moved */
    for (int64_t i = 1000 * 45; i < 181000 * 45; i++)
        if (m.at[GS_VALUE][GS_SH_N][i] != 0) FAIL("number %lld is not 0", (long long)i);
    IS(gs_rows_append(&rows, 19001, &err), FTH_E_USAGE);
    HAS(err.text, "181000 rows of at most 200000 were to get 19001 more");
    IS(gs_rows_append(&rows, -1, NULL), FTH_E_USAGE);
    gs_rows_end_densify(&rows);
    fth_mem_get_stats(rows.mem, &stats);
    EQ_U64(stats.used_bytes, gs_rows_bytes(rows.mem, 200000, 3, GS_ROWS_ADAM, 181000));
    OK(gs_rows_begin_densify(&rows, NULL));
    OK(gs_rows_open(&rows, &m, NULL));
    for (int64_t i = 0; i < 2 * rows.n; i++) EQ_F64(m.densify[i], 0);
    gs_rows_free(&rows);
    fth_err_clear(&err);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(rows_fit_in_the_bytes_they_take)
{
    fth_mem *mem = t_mem(4 * MiB);
    for (int degree = 0; degree < 4; degree++)
        for (uint64_t bytes = 0; bytes < 400 * MiB; bytes += 37 * MiB) {
            const int64_t n = gs_rows_fit(mem, 1000000, degree, GS_ROWS_ADAM, bytes);
            IS_TRUE(n == 0 || gs_rows_bytes(mem, 1000000, degree, GS_ROWS_ADAM, n) <= bytes);
            IS_TRUE(n == 1000000 ||
                    gs_rows_bytes(mem, 1000000, degree, GS_ROWS_ADAM, n + 1) > bytes);
        }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_model_becomes_rows_and_is_borrowed_back)
{
    fth_context *ctx = t_rows_context(1, 16 * MiB);
    gs_model m, back;
    gs_rows rows;
    t_random r = t_random_make(7);
    OK(gs_model_create(&m, fth_context_mem(ctx), 40, 2, NULL));
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        t_random_fill_f32(&r, m.at[a], 40 * gs_columns((gs_attribute)a, 2));
    OK(gs_rows_load(&rows, ctx, &m, 100, 0, NULL));
    OK(gs_rows_model(&rows, &back, NULL));
    EQ_I64(back.n, 40);
    EQ_I64(back.degree, 2);
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        IS_TRUE(memcmp(m.at[a], back.at[a], fth_tensor_bytes(m.tensor[a])) == 0);
    gs_model_free(&m);
    gs_rows_free(&rows);
    OK(fth_context_destroy(ctx, NULL));
}

/* On the host and on a device made of threads. */
TEST(numbers_that_are_not_finite_are_counted)
{
    for (int device = 0; device < 2; device++) {
        fth_context *ctx = device ? t_rows_device(64 * MiB, true) : t_rows_context(2, 16 * MiB);
        const int64_t n = 3000;
        gs_model m;
        gs_rows rows;
        int64_t count[GS_ATTRIBUTES];
        OK(gs_model_create(&m, fth_context_mem(ctx), n, 1, NULL));
        m.at[GS_MEANS][3 * 1700 + 2] = INFINITY;
        m.at[GS_SH_N][9 * 2999 + 8] = NAN;
        m.at[GS_SH_N][0] = -INFINITY;
        OK(gs_rows_load(&rows, ctx, &m, n, gs_rows_place(ctx), NULL));
        IS_TRUE(!(rows.flags & GS_ROWS_DEVICE) == !device);
        OK(gs_rows_count_bad(&rows, count, NULL));
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            EQ_I64(count[a], a == GS_MEANS ? 1 : a == GS_SH_N ? 2 : 0);
        gs_model_free(&m);
        gs_rows_free(&rows);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* Rows that a device has no room for: the least budget that is named is enough for them, and a page
 * less is not. */
TEST(a_device_without_room_names_what_rows_take)
{
    const unsigned flags = GS_ROWS_ADAM | GS_ROWS_DENSIFY | GS_ROWS_DEVICE;
    uint64_t budget = 16 * MiB;
    char text[2000];
    for (int round = 0; round < 3; round++) {
        fth_context *ctx = t_rows_device(budget, true);
        gs_rows rows;
        fth_err err = {0};
        const fth_status s = gs_rows_create(&rows, ctx, 40000, 50000, 3, flags, &err);
        if (round == 1) {
            OKE(s, &err);
            gs_rows_free(&rows);
            budget -= 2 * MiB;
        } else {
            IS(s, FTH_E_BUDGET);
            fth_err_format(&err, text, sizeof text);
            HAS(text, "40000 Gaussians of degree 3 with the moments of Adam take ");
            const char *least = strstr(text, "give --device-memory more than ");
            IS_TRUE(least != NULL);
            budget = strtoull(least + strlen("give --device-memory more than "), NULL, 10);
        }
        OK(fth_context_destroy(ctx, NULL));
    }
}

static bool stop(void *user, const fth_progress *p)
{
    (void)user, (void)p;
    return false;
}

static void take_long(void *arg, int64_t from, int64_t to)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    for (int64_t i = from; i < to; i++) ((char *)arg)[i]++;
}

TEST(a_loop_over_rows_ends_though_the_user_wants_to_stop)
{
    enum { N = 20 * GS_BLOCK - 7 };
    static char seen[N];
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = MiB;
    opt.progress = stop;
    OK(fth_context_create(&ctx, &opt, NULL));
    memset(seen, 0, sizeof seen);
    gs_rows_loop(ctx, "slow", N, take_long, seen);
    for (int64_t i = 0; i < N; i++) EQ_I64(seen[i], 1);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
