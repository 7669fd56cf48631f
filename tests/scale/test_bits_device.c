/* test_bits_device.c - the same bits from every run on a device, whatever its budget and
 * however many workers the host has.
 * seconds: 20 labels: gpu alone
 *
 * Sums of squares of a product that never exists whole, and a chain of elementwise operations with
 * sums over every axis: run twice, and inside budgets that cut them differently. Without a GPU the
 * same programs run small, on a device made of the host.
 */
#include "testing/engine/host_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of the programs and the budgets, of which the small ones must cut them. */
typedef struct scale {
    int64_t rows, columns, cells, points, factors;
    uint64_t squares, chain, large;
} scale;

enum { KIB = 1 << 10, MIB = 1 << 20 };
static const scale full = {65536, 4096, 40000, 1500, 6, 256 * MIB, 256 * MIB, (uint64_t)64 << 30};
static const scale little = {96, 64, 5000, 24, 3, 512 * KIB, 48 * KIB, 64 * MIB};

enum { MOST = 4 };
typedef struct result {
    int n;
    uint64_t bytes[MOST];
    void *data[MOST];
    int64_t chunks;
} result;

static fth_context *open_device(const fth_backend *made, uint64_t bytes, int workers, fth_err *why)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = workers;
    opt.device = "cuda";
    opt.backend = made;
    opt.backend_path = made ? NULL : getenv("FATHOM_TEST_DEVICE");
    opt.device_memory_bytes = bytes;
    return fth_context_create(&ctx, &opt, why) == FTH_OK ? ctx : NULL;
}

/* ---- programs ---- */

/* Returns how many values it makes. */
typedef int program(fth_graph *g, const scale *s, fth_val *out);

static int squares(fth_graph *g, const scale *s, fth_val *out)
{
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    fth_axis(g, "cell", s->cells);
    fth_axis(g, "factor", s->factors);
    fth_axis(g, "induce", s->points);
    fth_axis_like(g, "induce2", "induce");
    const fth_val W = fth_normal(FTH_F32, "induce cell", zero, zero, 1);
    const fth_val Lu = fth_normal(FTH_F32, "factor induce induce2", zero, zero, 2);
    out[0] = fth_sum(fth_sqr(fth_dot(W, Lu, "induce")), "induce2");
    return 1;
}

static int chain(fth_graph *g, const scale *s, fth_val *out)
{
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    fth_axis(g, "row", s->rows);
    fth_axis(g, "column", s->columns);
    /* running sums, because random numbers alone would be made where they are read */
    const fth_val x = fth_cumsum(fth_normal(FTH_F32, "row column", zero, zero, 3), "column");
    const fth_val y = fth_uniform(FTH_F32, "row column", zero, zero, 4);
    fth_val t = fth_add(fth_mul(x, y), fth_const(g, FTH_F32, 0.5));
    t = fth_mul(fth_exp(fth_mul(fth_sqr(t), fth_const(g, FTH_F32, -0.5))), x);
    out[0] = fth_sum(t, "column");
    out[1] = fth_sum(t, "row");
    out[2] = fth_sum(t, "row column");
    return 3;
}

/* ---- runs ---- */

static void take_results(fth_context *ctx, fth_graph *g, const fth_val *out, int n, result *r)
{
    fth_err err = {0};
    fth_sink sink[MOST];
    fth_tensor *tensor[MOST];
    fth_plan_info info;
    OKE(fth_graph_check(g, &err), &err);
    for (int i = 0; i < n; i++) {
        int64_t size[FTH_MAX_AXES];
        for (int k = 0; k < fth_val_axes(out[i]); k++) size[k] = fth_val_size(out[i], k);
        OKE(fth_tensor_create(&tensor[i], fth_context_mem(ctx), "result", fth_val_dtype(out[i]),
                              fth_val_axes(out[i]), size, &err),
            &err);
        sink[i] = fth_tensor_sink(tensor[i]);
    }
    fth_plan *p = fth_plan_make(g, out, n, (&(fth_limits){0}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_get_info(p, &info);
    r->n = n;
    r->chunks = info.chunks;
    for (int time = 0; time < 3; time++) { /* queued, recorded, replayed */
        fth_run_report report;
        OKE(fth_run(p, sink, NULL, &report, &err), &err);
        EQ_U64(report.ledger_bytes, report.planned_bytes);
        for (int i = 0; i < n; i++) {
            r->bytes[i] = fth_tensor_bytes(tensor[i]);
            if (time > 0) IS_TRUE(!memcmp(r->data[i], fth_tensor_data(tensor[i]), r->bytes[i]));
            if (time == 0) r->data[i] = malloc(r->bytes[i]);
            IS_TRUE(r->data[i] != NULL);
            memcpy(r->data[i], fth_tensor_data(tensor[i]), r->bytes[i]);
            memset(fth_tensor_data(tensor[i]), 0xee, r->bytes[i]);
        }
    }
    fth_plan_destroy(p);
    for (int i = 0; i < n; i++) fth_tensor_release(tensor[i]);
}

static void run_within(const fth_backend *made, program *build, const scale *s, uint64_t bytes,
                       int workers, result *r)
{
    fth_err err = {0};
    fth_val out[MOST];
    fth_context *ctx = open_device(made, bytes, workers, &err);
    OKE(ctx ? FTH_OK : err.status, &err);
    fth_graph *g = fth_graph_create(ctx);
    take_results(ctx, g, out, build(g, s, out), r);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

static void same_bits(const fth_backend *made, program *build, const scale *s)
{
    const uint64_t small = build == chain ? s->chain : s->squares;
    result first = {0};
    run_within(made, build, s, small, 1, &first);
    for (int k = 1; k < 4; k++) { /* four workers, the large budget, both */
        result other = {0};
        run_within(made, build, s, k < 2 ? small : s->large, k == 2 ? 1 : 4, &other);
        IS_TRUE(k < 2 || first.chunks > other.chunks); /* or nothing was tried */
        EQ_I64(first.n, other.n);
        for (int i = 0; i < first.n; i++) {
            EQ_U64(first.bytes[i], other.bytes[i]);
            IS_TRUE(!memcmp(first.data[i], other.data[i], first.bytes[i]));
            free(other.data[i]);
        }
    }
    for (int i = 0; i < first.n; i++) free(first.data[i]);
}

/* Kernels that are only emulated get little to do. */
static void same_bits_on_a_gpu(program *build)
{
    fth_err err = {0};
    fth_context *ctx = open_device(NULL, 0, 1, &err);
    if (!ctx) SKIP("no GPU: %s", err.text);
    const bool gpu = strncmp(fth_context_device(ctx), "cuda", 4) == 0;
    OK(fth_context_destroy(ctx, NULL));
    same_bits(NULL, build, gpu ? &full : &little);
}

TEST(sums_of_squares_on_a_device_made_of_the_host)
{
    same_bits(&t_host_backend, squares, &little);
}

TEST(chains_on_a_device_made_of_the_host)
{
    same_bits(&t_host_backend, chain, &little);
}

TEST(sums_of_squares_in_256_mib_and_64_gib)
{
    same_bits_on_a_gpu(squares);
}

TEST(chains_in_256_mib_and_64_gib)
{
    same_bits_on_a_gpu(chain);
}

TEST_MAIN()
