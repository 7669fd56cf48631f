/* test_spatial_places.c - neighbours, inducing points and synthetic cells when memory or the disk
 * gives out: an error each time, nothing leaked, no half-written file.
 * seconds: 20 */
#include "testing/full.h"
#include "testing/test.h"

#include "instruments/spatial/inducing/inducing.h"
#include "instruments/spatial/neighbours/neighbours.h"
#include "instruments/spatial/toy/toy.h"

#include <fathom/fathom.h>
#include <unistd.h>

enum { CELLS = 60, POINTS = 12, GROUPS = 4 };

typedef fth_status work_fn(fth_context *ctx, fth_err *err);

/* With a context of its own, whose n-th request or write fails; FTH_OK: there are no more. */
static fth_status try(work_fn *work, int64_t fail_alloc, int64_t fail_write)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cpu";
    opt.mem.budget_bytes = 64 << 20;
    opt.mem.fail_alloc = fail_alloc;
    opt.mem.fail_write = fail_write;
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_status s = fth_context_create(&ctx, &opt, &err);
    if (s == FTH_OK) s = work(ctx, &err);
    if (s != FTH_OK) {
        EQ_I64(err.status, s);
        IS_TRUE(err.text[0] != '\0');
    }
    OK(fth_context_destroy(ctx, NULL)); /* a leak would be an error */
    return s;
}

/* Fails request after request, with steps that grow, until none fails. */
static void fail_all(work_fn *work, int64_t slower, int64_t at_least)
{
    int64_t failed = 0;
    for (int64_t n = 1;; n += 1 + n / slower) {
        const fth_status s = try(work, n, 0);
        if (s == FTH_OK) break;
        ONE_OF(s, FTH_E_NOMEM, FTH_E_BUDGET);
        failed++;
    }
    IS_TRUE(failed >= at_least);
}

static void cells(float *xy, int32_t *group)
{
    t_random r = t_random_make(41);
    for (int i = 0; i < CELLS; i++) {
        xy[2 * i] = (float)(t_random_f64(&r) * 100);
        xy[2 * i + 1] = (float)(t_random_f64(&r) * 100);
        group[i] = i == 17 ? 3 : xy[2 * i] < 50;
    }
    group[23] = 2;
}

static fth_status neighbours(fth_context *ctx, fth_err *err)
{
    float xy[2 * CELLS];
    int32_t group[CELLS];
    cells(xy, group);
    sp_model m = {.mem = fth_context_mem(ctx), .set = {.neighbors = SP_PROBABILISTIC, .sigma = 1}};
    m.set.lengthscale = 8;
    sp_nbr_conditional kl;
    FTH_TRY(fth_tensor_create(&m.nbr_kl, m.mem, "kl", FTH_I32, 2, ((int64_t[]){CELLS, 5}), err));
    const fth_status s = sp_neighbours_conditional(&kl, ctx, &m, xy, group, err);
    fth_tensor_release(m.nbr_kl);
    return s;
}

/* By votes that leave groups out, so that every path is taken. */
static fth_status points(fth_context *ctx, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    sp_data d = {.mem = mem, .size = {.cells = CELLS, .genes = 1, .groups = GROUPS}};
    sp_model m = {.mem = mem, .set = {.seed = 42, .M = POINTS, .groups = true}};
    m.set.inducing_allocation = SP_DERIVED;
    const int64_t size[2] = {CELLS, 2}, rows[2] = {POINTS, 2};
    fth_status s = fth_tensor_create(&d.xy, mem, "xy", FTH_F32, 2, size, err);
    if (s == FTH_OK) s = fth_tensor_create(&d.group, mem, "C", FTH_I32, 1, size, err);
    if (s == FTH_OK) s = fth_tensor_create(&m.Z, mem, "Z", FTH_F32, 2, rows, err);
    if (s == FTH_OK) s = fth_tensor_create(&m.groupsZ, mem, "gZ", FTH_I32, 1, rows, err);
    if (s == FTH_OK) {
        cells(fth_tensor_data(d.xy), fth_tensor_data(d.group));
        s = sp_inducing_place(&m, ctx, &d, NULL, NULL, err);
    }
    fth_tensor_release(d.xy);
    fth_tensor_release(d.group);
    fth_tensor_release(m.Z);
    fth_tensor_release(m.groupsZ);
    return s;
}

static fth_status synthetic(fth_context *ctx, bool exact, fth_err *err)
{
    char dir[4096], h5ad[4096];
    snprintf(dir, sizeof dir, "%s", t_temp_path("toy"));
    snprintf(h5ad, sizeof h5ad, "%s", t_temp_path("toy.h5ad"));
    unlink(h5ad);
    sp_toy t = {.ctx = ctx,
                .mem = fth_context_mem(ctx),
                .cells = exact ? 30 : 520,
                .side = exact ? 6 : 28,
                .genes = 5,
                .factors = 2,
                .groups = 2,
                .seed = 1,
                .lengthscale = 50,
                .alpha = 1,
                .jitter = 1e-4,
                .exact = exact};
    const fth_status s = sp_toy_make(&t, dir, h5ad, err);
    if (s != FTH_OK && access(h5ad, F_OK) == 0) FAIL("an h5ad file was left behind");
    return s;
}

static fth_status toy_exact(fth_context *ctx, fth_err *err)
{
    return synthetic(ctx, true, err);
}

static fth_status toy_near(fth_context *ctx, fth_err *err)
{
    return synthetic(ctx, false, err);
}

/* Two sections, then their points: codes of sections and types beside each other. */
static fth_status sections(fth_context *ctx, fth_err *err)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", t_temp_path("sections"));
    sp_toy t = {.ctx = ctx,
                .mem = fth_context_mem(ctx),
                .cells = 32,
                .side = 4,
                .sections = 2,
                .genes = 5,
                .factors = 2,
                .groups = 2,
                .seed = 1,
                .lengthscale = 50,
                .alpha = 1,
                .jitter = 1e-4,
                .exact = true};
    sp_data d = {0};
    sp_model m = {.mem = t.mem, .set = {.seed = 42, .M = 8, .groups = true}};
    m.set.inducing_allocation = SP_DERIVED;
    FTH_TRY(sp_toy_make(&t, dir, NULL, err));
    FTH_TRY(sp_data_open(&d, t.mem, dir, err));
    const int64_t rows[2] = {8, 2};
    fth_status s = fth_tensor_create(&m.Z, t.mem, "Z", FTH_F32, 2, rows, err);
    if (s == FTH_OK) s = fth_tensor_create(&m.groupsZ, t.mem, "gZ", FTH_I32, 1, rows, err);
    if (s == FTH_OK) s = sp_inducing_place(&m, ctx, &d, NULL, NULL, err);
    if (s == FTH_OK) s = sp_data_hold_out(&d, 0.2, SP_HOLDOUT_RANDOM, 1, err);
    if (s == FTH_OK) s = sp_model_tie(&m, &d, err);
    fth_tensor_release(m.Z);
    fth_tensor_release(m.groupsZ);
    fth_texts_free(m.group_names);
    sp_sections_clear(&m.sections);
    sp_data_close(&d);
    return s;
}

TEST(sections_without_memory)
{
    fail_all(sections, 40, 30);
}

TEST(neighbours_without_memory)
{
    fail_all(neighbours, 40, 10);
}

TEST(inducing_points_without_memory)
{
    fail_all(points, 40, 20);
}

TEST(synthetic_cells_without_memory)
{
    fail_all(toy_exact, 8, 20);
    fail_all(toy_near, 8, 20);
}

TEST(synthetic_cells_without_room_on_the_disk)
{
    int64_t failed = 0;
    for (int64_t n = 1;; n += 1 + (t_full() ? 0 : n / 4), failed++) {
        const fth_status s = try(toy_near, 0, n);
        if (s == FTH_OK) break;
        EQ_I64(s, FTH_E_FILE_WRITE);
    }
    IS_TRUE(failed >= 8);
}

TEST_MAIN()
