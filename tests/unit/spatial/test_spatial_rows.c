/* test_spatial_rows.c - a local model of many cells and small batches: parameters of most cells
 * have no gradient in a step, and their moments move them all the same. Where the whole gradient
 * does not fit, it is made beside the update, and leaves the same bytes.
 *
 * seconds: 8
 */
#include "instruments/spatial/data/permute.h"
#include "instruments/spatial/train/step.h"

#include "testing/engine/host_device.h"
#include "testing/full.h"
#include "testing/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 5000, GENES = 12, FACTORS = 2, K = 4, RANK = 10, BATCH = 40 };
/* All steps have the same shapes and use the same memory: few are enough to find a fault in that.
 */
static int64_t steps(void)
{
    return 40 / t_one_in(4, 10);
}
enum { GRADIENT = FACTORS * CELLS * RANK * 4 };

typedef struct bench {
    fth_context *ctx;
    fth_mem *mem;
    sp_model m;
    sp_data data;
    sp_counts counts;
    sp_step step;
} bench;

static sp_settings settings(sp_kind kind)
{
    const sp_kind_info *k = &sp_kinds[kind];
    sp_settings s = {.seed = 3,
                     .cells = CELLS,
                     .genes = GENES,
                     .n_groups = 2,
                     .n_components = FACTORS,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .E = 1,
                     .spatial = true,
                     .groups = k->groups,
                     .local = true,
                     .sigma = 1.0,
                     .lengthscale = 8.0,
                     .jitter = 1e-5,
                     .group_diff_param = 1.0,
                     .M = CELLS,
                     .K = K,
                     .R = RANK,
                     .max_iter = steps(),
                     .learning_rate = 2e-3,
                     .batch_size = BATCH,
                     .y_batch_size = GENES};
    sp_settings_derive(&s);
    return s;
}

static void fill(fth_tensor *t, float from, float by)
{
    float *v = t ? fth_tensor_data(t) : NULL;
    const int64_t n = t ? (int64_t)(fth_tensor_bytes(t) / sizeof *v) : 0;
    for (int64_t i = 0; i < n; i++) v[i] = from + by * (float)(i * 7919 % 1009) / 1009.0f;
}

/* Cells on a square grid; neighbours are the K before each, or behind the first ones. */
static void fill_places(sp_model *m)
{
    float *Z = fth_tensor_data(m->Z);
    int32_t *kl = fth_tensor_data(m->nbr_kl), *inf = fth_tensor_data(m->nbr_inf);
    for (int32_t i = 0; i < CELLS; i++) {
        Z[2 * i] = (float)(i % 71), Z[2 * i + 1] = (float)(i / 71);
        if (m->groupsZ) ((int32_t *)fth_tensor_data(m->groupsZ))[i] = i % 2;
        for (int32_t k = 0; k < K; k++)
            kl[i * K + k] = inf[i * K + k] = i >= K ? i - k - 1 : i + k + 1;
    }
}

static void make_counts(bench *b)
{
    fth_err err = {0};
    sp_counts *c = &b->counts;
    const int64_t rows = BATCH + 1, room = BATCH * 3;
    OKE(fth_tensor_create(&c->row_ptr, b->mem, "row_ptr", FTH_I64, 1, &rows, &err), &err);
    OKE(fth_tensor_create(&c->gene, b->mem, "gene", FTH_I32, 1, &room, &err), &err);
    OKE(fth_tensor_create(&c->value, b->mem, "value", FTH_F32, 1, &room, &err), &err);
    for (int64_t i = 0; i <= BATCH; i++) ((int64_t *)fth_tensor_data(c->row_ptr))[i] = 3 * i;
    for (int64_t i = 0; i < room; i++) {
        ((int32_t *)fth_tensor_data(c->gene))[i] = (int32_t)(i % 3 * 4 + i / 3 % 4);
        ((float *)fth_tensor_data(c->value))[i] = (float)(1 + i % 5);
    }
}

static void open_bench(bench *b, sp_kind kind, bool device, uint64_t bytes)
{
    fth_err err = {0};
    fth_options opt;
    const sp_settings set = settings(kind);
    *b = (bench){0};
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = device ? (uint64_t)1 << 30 : bytes;
    if (device) {
        opt.backend = &t_host_backend;
        opt.device = "cuda";
        opt.device_memory_bytes = bytes;
    }
    OKE(fth_context_create(&b->ctx, &opt, &err), &err);
    b->mem = fth_context_mem(b->ctx);
    OKE(sp_model_create(&b->m, b->mem, &set, FTH_F32, true, &err), &err);
    for (int p = 0; p < SP_PARAMS; p++) {
        fill(b->m.param[p], p == SP_P_W ? 0.5f : -0.2f, p == SP_P_W ? 1.0f : 0.5f);
        fill(b->m.first[p], 0, 0);
        fill(b->m.second[p], 0, 0);
    }
    fill_places(&b->m);
    make_counts(b);
    b->data = (sp_data){.mem = b->mem,
                        .size = {.cells = CELLS, .genes = GENES, .groups = 2},
                        .xy = b->m.Z,
                        .group = b->m.groupsZ,
                        .rows = CELLS};
}

static fth_status open_step(bench *b, fth_err *err)
{
    const sp_step_options opt = {.ctx = b->ctx,
                                 .model = &b->m,
                                 .data = &b->data,
                                 .counts = b->counts,
                                 .previous = (double)NAN};
    return sp_step_open(&b->step, &opt, err);
}

static void close_bench(bench *b)
{
    fth_err err = {0};
    sp_step_close(&b->step);
    fth_tensor_release(b->counts.row_ptr);
    fth_tensor_release(b->counts.gene);
    fth_tensor_release(b->counts.value);
    sp_model_clear(&b->m);
    OKE(fth_context_destroy(b->ctx, &err), &err);
}

static void take_steps(bench *b, int64_t from, int64_t to)
{
    fth_err err = {0};
    int64_t cell[BATCH];
    for (int64_t t = from; t < to; t++) {
        sp_permute_first(cell, BATCH, CELLS, 5, SP_STREAM_CELLS, t / 2 * 2); /* each twice */
        OKE(sp_step_ask(&b->step, cell, &err), &err);
        OKE(sp_step_take(&b->step, cell, NULL, &b->counts, &err), &err);
        OKE(sp_step_run(&b->step, 2e-3, 0.9, t, &err), &err);
    }
}

/* Parameters and moments after all steps, the step closed and opened again on the way. NULL: it
 * does not fit. */
static char *ending(sp_kind kind, bool device, uint64_t bytes, uint64_t *n, fth_plan_info *info)
{
    bench b;
    fth_err err = {0};
    char *all = NULL;
    open_bench(&b, kind, device, bytes);
    const fth_status s = open_step(&b, &err);
    if (s == FTH_OK) {
        fth_plan_get_info(b.step.plan, info);
        take_steps(&b, 0, steps() / 2 + 1);
        sp_step_close(&b.step);
        OKE(open_step(&b, &err), &err);
        take_steps(&b, steps() / 2 + 1, steps());
        *n = 0;
        for (int i = 0; i < 3 * SP_PARAMS; i++) {
            fth_tensor *t = (i < SP_PARAMS       ? b.m.param
                             : i < 2 * SP_PARAMS ? b.m.first
                                                 : b.m.second)[i % SP_PARAMS];
            if (!t) continue;
            OKE(fth_tensor_sync(t, &err), &err);
            all = realloc(all, (size_t)(*n + fth_tensor_bytes(t)));
            memcpy(all + *n, fth_tensor_view(t), (size_t)fth_tensor_bytes(t));
            *n += fth_tensor_bytes(t);
        }
    } else if (s != FTH_E_NO_FIT && s != FTH_E_BUDGET) {
        OKE(s, &err);
    }
    close_bench(&b);
    return all;
}

/* The least, in quarters of a gradient, that a step can be planned in; it can in `bytes`. */
static uint64_t least(sp_kind kind, bool device, uint64_t bytes)
{
    uint64_t little = 0;
    while (bytes - little > GRADIENT / 4) {
        bench b;
        fth_err err = {0};
        const uint64_t middle = little + (bytes - little) / 2;
        open_bench(&b, kind, device, middle);
        *(open_step(&b, &err) == FTH_OK ? &bytes : &little) = middle;
        close_bench(&b);
    }
    return bytes;
}

static void compare(sp_kind kind, bool device)
{
    fth_plan_info whole, pieces;
    uint64_t n = 0, m = 0;
    char *want = ending(kind, device, (uint64_t)1 << 30, &n, &whole);
    EQ_I64(whole.passes, 0);
    IS_TRUE(whole.peak_bytes > GRADIENT);
    const uint64_t bytes = least(kind, device, (uint64_t)(device ? 8 : 24) << 20);
    char *got = ending(kind, device, bytes, &m, &pieces);
    printf("%s: %.2f MiB, %.2f of them of the step, %lld chunks\n", device ? "device" : "cpu",
           (double)bytes / (1 << 20), (double)pieces.peak_bytes / (1 << 20),
           (long long)pieces.chunks);
    IS_TRUE(pieces.chunks > 1 && pieces.peak_bytes < GRADIENT);
    EQ_U64(n, m);
    SAME_BYTES(want, got, (size_t)n);
    free(want);
    free(got);
}

TEST(pieces_of_a_gradient_leave_the_same_bytes)
{
    compare(SP_LCGP, false);
    compare(SP_MGGP_LCGP, false);
}

TEST(pieces_of_a_gradient_leave_the_same_bytes_on_a_device)
{
    compare(SP_LCGP, true);
    compare(SP_MGGP_LCGP, true);
}

TEST_MAIN()
