/* spatial_local.c - a step of lcgp against the same step in PyTorch: K = R = 50, ten factors, 7000
 * cells by 2000 genes of 41,786 by 4018.
 *
 * The amount of work is that of the small matrices (product, factor, solves, residuals); its limit
 * is that of multiply-adds in registers, in f64, which is what they are computed in. */
#include "bench.h"

#include "instruments/spatial/neighbours/neighbours.h"
#include "instruments/spatial/train/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 41786, GENES = 4018, BATCH = 7000, GENEB = 2000, FACTORS = 10, K = 50, RANK = 50 };
enum { PER_CELL = 60, THREADS = 2, FEW_PAIRS = 3 };

typedef struct lcgp {
    fth_context *ctx;
    sp_model m;
    sp_counts counts;
    sp_step st;
    int64_t cell[2][BATCH], gene[GENEB], iteration;
    fth_err err;
    fth_status status;
    peer_python *peer;
} lcgp;

static sp_settings settings(void)
{
    sp_settings s = {.seed = 42,
                     .cells = CELLS,
                     .genes = GENES,
                     .n_groups = 1,
                     .n_components = FACTORS,
                     .E = 3,
                     .spatial = true,
                     .local = true,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .scale_ll_D = true,
                     .sigma = 1,
                     .lengthscale = 8,
                     .jitter = 1e-5,
                     .M = CELLS,
                     .K = K,
                     .R = RANK,
                     .max_iter = 1000,
                     .batch_size = BATCH,
                     .y_batch_size = GENEB};
    sp_settings_derive(&s);
    return s;
}

/* A grid of places, a little disturbed; start values as training has them. */
static void fill_model(sp_model *m)
{
    const int64_t side = (int64_t)sqrt((double)CELLS) + 1;
    float *xy = fth_tensor_data(m->Z), *lam = fth_tensor_data(m->param[SP_P_LAM]),
          *mu = fth_tensor_data(m->param[SP_P_MU]);
    bench_fill_f32(xy, 2 * CELLS, 1, 0, 0.1f);
    for (int64_t i = 0; i < CELLS; i++) {
        xy[2 * i] += (float)(i % side) * (200.0f / (float)side);
        xy[2 * i + 1] += (float)(i / side) * (200.0f / (float)side);
    }
    bench_fill_f32(mu, (int64_t)FACTORS * CELLS, 2, -1.7f, 1.7f);
    bench_fill_f32(lam, (int64_t)FACTORS * CELLS * RANK, 3, -0.17f, 0.17f);
    bench_fill_f32(fth_tensor_data(m->param[SP_P_W]), (int64_t)GENES * FACTORS, 4, 0.01f, 0.1f);
    for (int p = 0; p < SP_PARAMS; p++) {
        if (m->first[p]) memset(fth_tensor_data(m->first[p]), 0, fth_tensor_bytes(m->first[p]));
        if (m->second[p]) memset(fth_tensor_data(m->second[p]), 0, fth_tensor_bytes(m->second[p]));
    }
}

static fth_status make_counts(lcgp *c)
{
    fth_mem *mem = fth_context_mem(c->ctx);
    const int64_t rows = BATCH + 1, n = (int64_t)BATCH * PER_CELL;
    FTH_TRY(fth_tensor_create(&c->counts.row_ptr, mem, "row_ptr", FTH_I64, 1, &rows, &c->err));
    FTH_TRY(fth_tensor_create(&c->counts.gene, mem, "gene", FTH_I32, 1, &n, &c->err));
    FTH_TRY(fth_tensor_create(&c->counts.value, mem, "value", FTH_F32, 1, &n, &c->err));
    int64_t *row_ptr = fth_tensor_data(c->counts.row_ptr);
    int32_t *gene = fth_tensor_data(c->counts.gene);
    float *value = fth_tensor_data(c->counts.value);
    for (int64_t i = 0; i < rows; i++) row_ptr[i] = i * PER_CELL;
    for (int64_t i = 0; i < n; i++) {
        gene[i] = (int32_t)(i % PER_CELL * (GENEB / PER_CELL) + i / PER_CELL * 7 % 29);
        value[i] = 1;
    }
    for (int64_t i = 0; i < BATCH; i++) {
        c->cell[0][i] = i * CELLS / BATCH;
        c->cell[1][i] = i * CELLS / BATCH + 2;
    }
    for (int64_t i = 0; i < GENEB; i++) c->gene[i] = 2 * i;
    return FTH_OK;
}

static fth_status open_case(lcgp *c)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = THREADS;
    FTH_TRY(fth_context_create(&c->ctx, &opt, &c->err));
    const sp_settings set = settings();
    FTH_TRY(sp_model_create(&c->m, fth_context_mem(c->ctx), &set, FTH_F32, true, &c->err));
    fill_model(&c->m);
    sp_nbr_conditional lists;
    FTH_TRY(
        sp_neighbours_conditional(&lists, c->ctx, &c->m, fth_tensor_data(c->m.Z), NULL, &c->err));
    FTH_TRY(make_counts(c));
    const sp_step_options how = {.ctx = c->ctx, .model = &c->m, .counts = c->counts};
    FTH_TRY(sp_step_open(&c->st, &how, &c->err));
    return sp_step_ask(&c->st, c->cell[0], &c->err);
}

static fth_status one_step(lcgp *c)
{
    const int64_t i = c->iteration++;
    FTH_TRY(sp_step_take(&c->st, c->cell[i % 2], c->gene, &c->counts, &c->err));
    FTH_TRY(sp_step_ask(&c->st, c->cell[(i + 1) % 2], &c->err));
    return sp_step_run(&c->st, 2e-3, 0.9, i, &c->err);
}

static void ours(void *arg)
{
    lcgp *c = arg;
    if (c->status == FTH_OK) c->status = one_step(c);
}

static double peer(void *arg)
{
    return peer_python_run(((lcgp *)arg)->peer);
}

static void close_case(bench *b, lcgp *c)
{
    char text[4096];
    if (c->peer) peer_python_stop(c->peer);
    sp_step_close(&c->st);
    fth_tensor_release(c->counts.row_ptr);
    fth_tensor_release(c->counts.gene);
    fth_tensor_release(c->counts.value);
    sp_model_clear(&c->m);
    const fth_status s = fth_context_destroy(c->ctx, &c->err);
    if (c->status == FTH_OK && s == FTH_OK) return;
    fth_err_format(&c->err, text, sizeof text);
    bench_note(b, "lcgp_step: %s", text);
    b->failed++;
}

/* Runs of the peer take seconds: a few pairs are enough. */
static void compare(bench *b, lcgp *c)
{
    static const char *const args[] = {"41786", "7000", "10", "50", "50", "2000", "2", NULL, NULL};
    const char *all[sizeof args / sizeof *args], *why = NULL;
    memcpy(all, args, sizeof all);
    all[7] = b->cpu_clock ? "cpu" : "wall";
    c->peer = peer_python_start(b->peers, "peer_spatial_local.py", all, &why);
    if (!c->peer) {
        bench_note(b, "SKIP lcgp_step: %s", why);
        return;
    }
    const int pairs = b->pairs;
    if (b->pairs > FEW_PAIRS) b->pairs = FEW_PAIRS;
    const double k = K, r = RANK, flop = k * k * r + k * k * k / 3 + 2 * k * k + 6 * k * r;
    bench_pairs(b, &(bench_pair){.name = "lcgp_step",
                                 .shape = "7000x2000 K50 R50 L10",
                                 .peer_name = "PyTorch",
                                 .threads = THREADS,
                                 .amount = 1e-9 * BATCH * FACTORS * flop,
                                 .unit = "Gflop/s",
                                 .limit = bench_gemm_rate(b, FTH_F64, THREADS),
                                 .bar = 5,
                                 .ours = ours,
                                 .peer = peer,
                                 .arg = c,
                                 .planned = c->st.report.planned_bytes,
                                 .measured = c->st.report.ledger_bytes});
    b->pairs = pairs;
}

void bench_spatial_local(bench *b)
{
    if (!bench_wants(b, "lcgp_step")) return;
    lcgp *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->status = open_case(c);
    ours(c); /* and the report has numbers */
    if (c->status == FTH_OK) compare(b, c);
    close_case(b, c);
    free(c);
}
