/* spatial_likelihood.c - the likelihood of a batch of counts with all its slopes, and the update of
 * the loadings, in milliseconds against what is asked for.
 *
 * The limit is the rate at which registers alone could do the products: for every stored count and
 * draw three of length `factor`, in each of two operations one of them again.
 */
#include "bench.h"

#include "instruments/spatial/prior/likelihood.h"

#include <stdlib.h>

enum { FACTORS = 10, DRAWS = 3 };

typedef struct batch {
    bench_program p;
    int64_t cells, genes, entries;
    double density, asked; /* share of places with a count; seconds */
    float *f, *s, *eps, *W, *df, *ds, *next;
    double ell;
    int64_t *row_ptr;
    int32_t *gene;
    float *value;
} batch;

static void make_counts(batch *c)
{
    float *chance = bench_array(4ull * (uint64_t)(c->cells * c->genes));
    bench_fill_f32(chance, c->cells * c->genes, 1, 0, 1);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) {
            c->row_ptr = bench_array(8ull * (uint64_t)(c->cells + 1));
            c->gene = bench_array(4ull * (uint64_t)c->entries);
            c->value = bench_array(4ull * (uint64_t)c->entries);
        }
        c->entries = 0;
        for (int64_t i = 0; i < c->cells; i++) {
            for (int64_t g = 0; g < c->genes; g++) {
                const double x = (double)chance[i * c->genes + g];
                if (x >= c->density) continue;
                if (pass == 1) {
                    c->gene[c->entries] = (int32_t)g;
                    c->value[c->entries] = (float)(1 + (int)(4 * x / c->density));
                }
                c->entries++;
            }
            if (pass == 1) c->row_ptr[i + 1] = c->entries;
        }
    }
    free(chance);
}

static float *numbers(int64_t n, uint64_t seed, float lo, float hi)
{
    float *v = bench_array(4ull * (uint64_t)n);
    bench_fill_f32(v, n, seed, lo, hi);
    return v;
}

static void build(batch *c, int threads)
{
    const int64_t N = c->cells, D = c->genes, L = FACTORS;
    make_counts(c);
    c->f = numbers(L * N, 2, -1, 1);
    c->s = numbers(L * N, 3, 0.05f, 0.3f);
    c->eps = numbers(DRAWS * L * N, 4, -2, 2);
    c->W = numbers(D * L, 5, 0.01f, 1);
    c->df = numbers(L * N, 6, 0, 1);
    c->ds = numbers(L * N, 7, 0, 1);
    c->next = numbers(D * L, 8, 0, 1);
    bench_open(&c->p, threads);
    fth_graph *g = c->p.g;
    fth_axis(g, "cellb", N);
    fth_axis(g, "geneb", D);
    fth_axis(g, "factor", L);
    fth_axis(g, "draw", DRAWS);
    fth_axis(g, "cellb1", N + 1);
    fth_axis(g, "entry", c->entries);
    sp_likelihood l = {.f = bench_input(&c->p, "f", FTH_F32, "factor cellb", c->f),
                       .s = bench_input(&c->p, "s", FTH_F32, "factor cellb", c->s),
                       .eps = bench_input(&c->p, "eps", FTH_F32, "draw factor cellb", c->eps),
                       .W = bench_input(&c->p, "W", FTH_F32, "geneb factor", c->W),
                       .row_ptr = bench_input(&c->p, "row_ptr", FTH_I64, "cellb1", c->row_ptr),
                       .gene = bench_input(&c->p, "gene", FTH_I32, "entry", c->gene),
                       .value = bench_input(&c->p, "value", FTH_F32, "entry", c->value),
                       .mode = SP_EXPANDED};
    fth_val ell, df, ds;
    c->p.status = sp_likelihood_cells(&l, &ell, &df, &ds, &c->p.err);
    bench_output(&c->p, ell, &c->ell);
    bench_output(&c->p, df, c->df);
    bench_output(&c->p, ds, c->ds);
    bench_output(&c->p, sp_likelihood_update_W(&l), c->next);
    bench_plan(&c->p, 0, true);
}

static void drop(batch *c)
{
    bench_close(&c->p);
    void *const all[] = {c->f,  c->s,    c->eps,     c->W,    c->df,
                         c->ds, c->next, c->row_ptr, c->gene, c->value};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void go(void *arg)
{
    bench_go(&((batch *)arg)->p);
}

static double asked_for(void *arg)
{
    return ((const batch *)arg)->asked;
}

static void one(bench *b, const char *name, batch c, int threads)
{
    if (!bench_wants(b, name)) return;
    build(&c, threads);
    const double flop = 8.0 * FACTORS * DRAWS * (double)c.entries;
    double best = 1e30;
    for (int i = 0; i < 5; i++) {
        const double start = bench_now(b, threads);
        volatile double keep = peer_fma(1, threads);
        (void)keep;
        const double s = bench_now(b, threads) - start;
        if (s < best) best = s;
    }
    char shape[48], peer[48];
    snprintf(shape, sizeof shape, "%lld x %lld, %.0f %%", (long long)c.cells, (long long)c.genes,
             100 * c.density);
    snprintf(peer, sizeof peer, "%.1f ms", 1e3 * c.asked);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = threads,
                             .amount = 1e-9 * flop,
                             .unit = "Gflop/s",
                             .limit = threads / best,
                             .ours = go,
                             .peer = asked_for,
                             .peer_name = peer,
                             .bar = 1,
                             .arg = &c,
                             .planned = c.p.planned,
                             .measured = c.p.measured};
    if (c.p.status == FTH_OK) bench_pairs(b, &pair);
    drop(&c);
}

void bench_spatial_likelihood(bench *b)
{
    const batch slide = {.cells = 7000, .genes = 2000, .density = 0.03, .asked = 0.030};
    const batch panel = {.cells = 1000, .genes = 33, .density = 0.69, .asked = 0.003};
    one(b, "spatial_likelihood_slide", slide, 1);
    one(b, "spatial_likelihood_slide_2", slide, 2);
    one(b, "spatial_likelihood_panel", panel, 1);
}
