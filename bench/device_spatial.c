/* device_spatial.c - what a step of spatial's models does on a device besides products: terms of
 * the local models with K = R = 50, their gradient and weights, the Poisson likelihood of a batch,
 * 7000 cells by 2000 genes of 41,786 by 4018, ten factors; and the neighbours of 1.2 million cells.
 *
 * Local terms are counted in flop of f64, which they are computed in.
 */
#include "device.h"

#include "instruments/spatial/ops/local/local.h"
#include "instruments/spatial/ops/nearest/nearest.h"
#include "instruments/spatial/ops/poisson/poisson.h"

#include <stdlib.h>
#include <string.h>

enum { GENES = 2000, FACTORS = 10, K = 50, RANK = 50, DRAWS = 3 };
enum { PER_CELL = 60 }; /* stored counts of a cell: 3 % */

static int64_t all_cells(const device *d)
{
    return device_size(d, 41786 - 8 * K) + 8 * K; /* more than neighbours */
}

static int64_t batch_of(const device *d)
{
    return device_size(d, 7000);
}

/* ---- local models ---- */

typedef struct lists {
    int64_t cells, batch;
    int64_t *idx;         /* [BATCH] */
    int32_t *nbr, *all;   /* of the batch and of all cells */
    int32_t *ptr, *items; /* who touches whom */
} lists;

/* Cells of a batch lie all over a tissue; the neighbours of a cell lie around it. */
static lists lists_make(const device *d)
{
    const int64_t side = 205; /* of a square of cells */
    const int64_t cells = all_cells(d), batch = batch_of(d);
    lists l = {.cells = cells,
               .batch = batch,
               .idx = bench_array(8ull * (uint64_t)batch),
               .nbr = bench_array(4ull * (uint64_t)(batch * K)),
               .all = bench_array(4ull * (uint64_t)(cells * K)),
               .ptr = bench_array(4ull * (uint64_t)(cells + 1)),
               .items = bench_array(4ull * (uint64_t)(batch * (K + 1)))};
    for (int64_t i = 0; i < cells; i++)
        for (int64_t j = 0; j < K; j++) {         /* a square of 7 by 7 around it, and two more */
            const int64_t n = j < 24 ? j : j + 1; /* not the cell itself */
            l.all[i * K + j] =
                (int32_t)((i + (n / 7 - 3) * side + n % 7 - 3 + 4 * side * cells) % cells);
        }
    for (int64_t t = 0; t < batch; t++) {
        l.idx[t] = t * cells / batch;
        for (int64_t j = 0; j < K; j++) l.nbr[t * K + j] = l.all[l.idx[t] * K + j];
    }
    sp_local_touch_lists(l.ptr, l.items, cells, l.idx, batch, l.all, K);
    return l;
}

static void lists_drop(lists *l)
{
    void *const all[] = {l->idx, l->nbr, l->all, l->ptr, l->items};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static fth_val scaled(bench_program *p, const char *name, const char *axes, int64_t n,
                      uint64_t seed, float lo, float hi)
{
    float *v = bench_array(4ull * (uint64_t)n);
    bench_fill_f32(v, n, seed, lo, hi);
    const fth_val param = bench_param_of(p, name, FTH_F32, axes, v);
    free(v);
    return param;
}

/* The same of memory that the ledger knows already. */
static fth_val param_copy(bench_program *p, const char *name, fth_dtype dtype, const char *axes,
                          const void *from, int64_t bytes)
{
    void *copy = bench_array((uint64_t)bytes);
    memcpy(copy, from, (size_t)bytes);
    const fth_val param = bench_param_of(p, name, dtype, axes, copy);
    free(copy);
    return param;
}

static sp_local_batch open_batch(const device *d, bench_program *p, const lists *l)
{
    bench_open_within(p, d->b, 0);
    if (p->status != FTH_OK) return (sp_local_batch){0};
    fth_axis(p->g, "factor", FACTORS);
    fth_axis(p->g, "cell", l->cells);
    fth_axis(p->g, "cell1", l->cells + 1);
    fth_axis(p->g, "cellb", l->batch);
    fth_axis(p->g, "nbr", K);
    fth_axis(p->g, "rank", RANK);
    fth_axis(p->g, "touch", l->batch * (K + 1));
    return (sp_local_batch){
        .idx = bench_param_of(p, "idx", FTH_I64, "cellb", l->idx),
        .nbr = bench_param_of(p, "nbr", FTH_I32, "cellb nbr", l->nbr),
        .a = scaled(p, "a", "cellb nbr", l->batch * K, 1, 0, 0.02f),
        .cp = scaled(p, "cp", "cellb", l->batch, 2, 0.1f, 1),
        .mu = scaled(p, "mu", "factor cell", FACTORS * l->cells, 3, -1, 1),
        .Lam = scaled(p, "Lam", "factor cell rank", FACTORS * l->cells * RANK, 4, -0.17f, 0.17f),
        .jitter = 1e-3};
}

static double flop_of_terms(const lists *l)
{
    const double k = K, r = RANK;
    return (double)l->batch * FACTORS * (k * k * r + k * k * k / 3 + 2 * k * k + 6 * k * r);
}

/* Every output to a parameter of its shape. */
static void keep(bench_program *p, fth_val v, const char *name, const char *axes)
{
    if (p->status == FTH_OK)
        bench_assign(p, bench_param(p, name, fth_val_dtype(v), axes, FTH_FULL), v);
}

static void local_terms(device *d)
{
    if (!bench_wants(d->b, "device_local_terms")) return;
    bench_program p;
    lists l = lists_make(d);
    const sp_local_batch b = open_batch(d, &p, &l);
    if (p.status == FTH_OK) {
        const fth_val terms = sp_local_terms(&b);
        keep(&p, terms, "eq", "factor cellb rank");
        keep(&p, fth_out(terms, SP_TERM_EP), "ep", "factor cellb rank");
        keep(&p, fth_out(terms, SP_TERM_H), "h", "factor cellb nbr");
        keep(&p, fth_out(terms, SP_TERM_D), "d", "factor cellb");
        keep(&p, fth_out(terms, SP_TERM_KL), "kl", "factor cellb");
        bench_plan(&p, 0, false);
    }
    char line[64], shape[48];
    snprintf(line, sizeof line, "local_terms %lld %lld 10 50 50", (long long)l.cells,
             (long long)l.batch);
    snprintf(shape, sizeof shape, "%lld cells K50 R50 L10", (long long)l.batch);
    const device_task t = {.name = "device_local_terms",
                           .shape = shape,
                           .p = &p,
                           .amount = 1e-9 * flop_of_terms(&l),
                           .unit = "Gflop/s",
                           .peer = line,
                           .peer_name = "PyTorch",
                           .bar = 5};
    (void)device_compare(d, &t);
    device_close(d, &p);
    lists_drop(&l);
}

/* Terms and their gradient, which is most of a step: 4 of the 5 ms it may take. */
static void local_gradient(device *d)
{
    if (!bench_wants(d->b, "device_local_gradient")) return;
    bench_program p;
    lists l = lists_make(d);
    const sp_local_batch b = open_batch(d, &p, &l);
    if (p.status == FTH_OK) {
        const sp_local_touched touched = {
            .ptr = bench_param_of(&p, "ptr", FTH_I32, "cell1", l.ptr),
            .items = bench_param_of(&p, "items", FTH_I32, "touch", l.items)};
        const fth_val slope =
            sp_local_scatter(&b, sp_local_terms(&b), &touched,
                             bench_param(&p, "gf", FTH_F32, "factor cellb", FTH_FULL),
                             bench_param(&p, "gs", FTH_F32, "factor cellb", FTH_FULL), 1.0);
        keep(&p, slope, "dLam", "factor cell rank");
        keep(&p, fth_out(slope, 1), "dmu", "factor cell");
        bench_plan(&p, 0, false);
    }
    char shape[48];
    snprintf(shape, sizeof shape, "%lld of %lld K50 R50 L10", (long long)l.batch,
             (long long)l.cells);
    const device_task t = {.name = "device_local_gradient",
                           .shape = shape,
                           .p = &p,
                           .amount = 1e-9 * flop_of_terms(&l),
                           .unit = "Gflop/s",
                           .peer_name = "4 ms",
                           .bar = 1};
    device_against(d, &t, 0.004);
    device_close(d, &p);
    lists_drop(&l);
}

/* Of all cells, once for a model. */
static void local_weights(device *d)
{
    if (!bench_wants(d->b, "device_local_weights")) return;
    bench_program p;
    lists l = lists_make(d);
    bench_open_within(&p, d->b, 0);
    if (p.status == FTH_OK) {
        fth_axis(p.g, "cell", l.cells);
        fth_axis(p.g, "nbr", K);
        fth_axis(p.g, "dim", 2);
        const sp_local_places places = {.at = scaled(&p, "at", "cell dim", 2 * l.cells, 1, 0, 200),
                                        .Z = scaled(&p, "Z", "cell dim", 2 * l.cells, 1, 0, 200),
                                        .nbr =
                                            bench_param_of(&p, "nbr", FTH_I32, "cell nbr", l.all)};
        const sp_local_cov cov = {
            .sigma = 1, .lengthscale = 8, .jitter = 1e-3, .kernel = SP_MATERN32};
        const fth_val a = sp_local_weights(&cov, &places, FTH_F32, 1e-6);
        keep(&p, a, "a", "cell nbr");
        keep(&p, fth_out(a, 1), "cp", "cell");
        bench_plan(&p, 0, false);
    }
    const double k = K;
    char shape[48];
    snprintf(shape, sizeof shape, "%lld cells K50", (long long)l.cells);
    const device_task t = {.name = "device_local_weights",
                           .shape = shape,
                           .p = &p,
                           .amount = 1e-9 * (double)l.cells * (k * k * k / 3 + 20 * k * k),
                           .unit = "Gflop/s",
                           .peer_name = "5 ms",
                           .bar = 1};
    device_against(d, &t, 0.005);
    device_close(d, &p);
    lists_drop(&l);
}

/* Fifty neighbours of all cells of a large tissue; the CPU has 5 s for it. */
static void nearest(device *d)
{
    if (!bench_wants(d->b, "device_nearest")) return;
    bench_program p;
    sp_grid *grid = NULL;
    const int64_t n = device_size(d, 1200000);
    float *xy = bench_array(8ull * (uint64_t)n);
    bench_fill_f32(xy, 2 * n, 1, -100, 100);
    bench_open_within(&p, d->b, 0);
    if (p.status == FTH_OK) p.status = sp_grid_create(&grid, fth_context_mem(p.ctx), xy, n, &p.err);
    if (p.status == FTH_OK) {
        fth_axis(p.g, "square1", grid->squares.nx * grid->squares.ny + 1);
        fth_axis(p.g, "cell", n);
        fth_axis(p.g, "dim", 2);
        fth_axis(p.g, "nbr", K);
        const sp_nearest in = {.grid = grid,
                               .start = param_copy(&p, "start", FTH_I32, "square1", grid->start,
                                                   4 * (grid->squares.nx * grid->squares.ny + 1)),
                               .id = param_copy(&p, "id", FTH_I32, "cell", grid->id, 4 * n),
                               .places =
                                   param_copy(&p, "places", FTH_F32, "cell dim", grid->at, 8 * n),
                               .at = bench_param_of(&p, "at", FTH_F32, "cell dim", xy),
                               .own = true};
        const fth_val near = sp_nearest_(FTH_HERE, &in);
        if (p.status == FTH_OK) {
            int32_t *none = bench_array(4ull * (uint64_t)(n * K));
            bench_assign(&p, bench_param_of(&p, "lists", FTH_I32, "cell nbr", none), near);
            free(none);
        }
        bench_plan(&p, 0, false);
    }
    char shape[48];
    snprintf(shape, sizeof shape, "%lld cells K50", (long long)n);
    const device_task t = {.name = "device_nearest",
                           .shape = shape,
                           .p = &p,
                           .amount = 1e-9 * (double)n,
                           .unit = "Gcell/s",
                           .peer_name = "100 ms",
                           .bar = 1};
    device_against(d, &t, 0.1);
    sp_grid_destroy(grid);
    device_close(d, &p);
    free(xy);
}

/* ---- likelihood ---- */

static sp_poisson_in open_counts(const device *d, bench_program *p, int64_t batch)
{
    const int64_t n = batch * PER_CELL;
    bench_open_within(p, d->b, 0);
    if (p->status != FTH_OK) return (sp_poisson_in){0};
    fth_axis(p->g, "draw", DRAWS);
    fth_axis(p->g, "factor", FACTORS);
    fth_axis(p->g, "cellb", batch);
    fth_axis(p->g, "cellb1", batch + 1);
    fth_axis(p->g, "geneb", GENES);
    fth_axis(p->g, "entry", n);
    int64_t *row_ptr = bench_array(8ull * (uint64_t)(batch + 1));
    int32_t *gene = bench_array(4ull * (uint64_t)n);
    for (int64_t i = 0; i <= batch; i++) row_ptr[i] = i * PER_CELL;
    for (int64_t i = 0; i < n; i++)
        gene[i] = (int32_t)(i % PER_CELL * (GENES / PER_CELL) + i / PER_CELL * 7 % 29);
    const sp_poisson_in in = {
        .phi = scaled(p, "phi", "draw factor cellb", DRAWS * FACTORS * batch, 1, 0.1f, 2),
        .W = scaled(p, "W", "geneb factor", (int64_t)GENES * FACTORS, 2, 0.01f, 1),
        .row_ptr = bench_param_of(p, "row_ptr", FTH_I64, "cellb1", row_ptr),
        .gene = bench_param_of(p, "gene", FTH_I32, "entry", gene),
        .value = scaled(p, "value", "entry", n, 3, 1, 5)};
    free(row_ptr);
    free(gene);
    return in;
}

static void likelihood(device *d)
{
    if (!bench_wants(d->b, "device_poisson")) return;
    bench_program p;
    const int64_t batch = batch_of(d);
    const sp_poisson_in in = open_counts(d, &p, batch);
    if (p.status == FTH_OK) {
        const fth_val eps = bench_param(&p, "eps", FTH_F32, "draw factor cellb", FTH_FULL),
                      cells = sp_poisson_cells_(FTH_HERE, &in, eps);
        keep(&p, cells, "ell", "cellb");
        keep(&p, fth_out(cells, 1), "df", "factor cellb");
        keep(&p, fth_out(cells, 2), "ds", "factor cellb");
        keep(&p, sp_poisson_genes_(FTH_HERE, &in, false), "sums", "geneb factor");
        bench_plan(&p, 0, false);
    }
    char line[48], shape[48];
    snprintf(line, sizeof line, "poisson %lld 2000 10 3", (long long)batch);
    snprintf(shape, sizeof shape, "%lld x 2000, 3 %%", (long long)batch);
    const device_task t = {.name = "device_poisson",
                           .shape = shape,
                           .p = &p,
                           .amount = 8e-9 * FACTORS * DRAWS * PER_CELL * (double)batch,
                           .unit = "Gflop/s",
                           .peer = line,
                           .peer_name = "PyTorch",
                           .bar = 1};
    (void)device_compare(d, &t);
    device_close(d, &p);
}

void device_spatial(device *d)
{
    local_terms(d);
    local_gradient(d);
    local_weights(d);
    nearest(d);
    likelihood(d);
}
