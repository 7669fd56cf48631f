/* spatial_places.c - nearest neighbours and k-means of the largest tissues, against what is asked
 * for: seconds on two workers.
 */
#include "bench.h"

#include "instruments/spatial/inducing/inducing.h"
#include "instruments/spatial/neighbours/neighbours.h"

#include <stdlib.h>

enum { THREADS = 2, TIMES = 3 };

typedef struct tissue {
    fth_context *ctx;
    int64_t cells;
    float *xy;
    fth_err err;
    fth_status status;
} tissue;

static tissue tissue_make(int64_t cells)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = THREADS;
    opt.device = "cpu";
    tissue t = {.cells = cells, .xy = bench_array(8ull * (uint64_t)cells)};
    bench_fill_f32(t.xy, 2 * cells, 1, -100, 100);
    t.status = fth_context_create(&t.ctx, &opt, &t.err);
    return t;
}

/* The line, or why there is none. */
static void finish(bench *b, tissue *t, const char *name, const char *shape, const double *seconds,
                   int n, double asked)
{
    char text[2000];
    if (t->status == FTH_OK)
        bench_single(b, name, shape, seconds, n, asked, "asked");
    else {
        fth_err_format(&t->err, text, sizeof text);
        bench_note(b, "%s: %s", name, text);
    }
    (void)fth_context_destroy(t->ctx, NULL);
    free(t->xy);
}

static void neighbours(bench *b)
{
    enum { CELLS = 1200000, K = 50 };
    if (!bench_wants(b, "spatial_neighbours")) return;
    tissue t = tissue_make(CELLS);
    double seconds[TIMES];
    int32_t *list = bench_array(4ull * CELLS * K);
    for (int i = 0; i < TIMES && t.status == FTH_OK; i++) {
        const double start = bench_now(b, THREADS);
        t.status = sp_neighbours_of(list, t.ctx, fth_context_mem(t.ctx), t.xy, CELLS, t.xy, CELLS,
                                    K, &t.err);
        seconds[i] = bench_now(b, THREADS) - start;
    }
    free(list);
    finish(b, &t, "spatial_neighbours", "cell=1200000 K=50", seconds, TIMES, 5);
}

static void kmeans(bench *b, const char *name, const char *shape, int64_t cells, int times,
                   double asked)
{
    enum { CENTRES = 3000 };
    if (!bench_wants(b, name)) return;
    tissue t = tissue_make(cells);
    double seconds[TIMES];
    float *centre = bench_array(8ull * CENTRES);
    const sp_kmeans opt = {.k = CENTRES, .seed = 42, .stream = SP_STREAM_KMEANS};
    for (int i = 0; i < times && t.status == FTH_OK; i++) {
        const double start = bench_now(b, THREADS);
        t.status = sp_kmeans_run(centre, t.ctx, t.xy, cells, &opt, NULL, &t.err);
        seconds[i] = bench_now(b, THREADS) - start;
    }
    free(centre);
    finish(b, &t, name, shape, seconds, times, asked);
}

void bench_spatial_places(bench *b)
{
    neighbours(b);
    kmeans(b, "spatial_kmeans", "cell=41786 M=3000 x10", 41786, TIMES, 20);
    kmeans(b, "spatial_kmeans_large", "cell=1200000 M=3000 x10", 1200000, 1, 60);
}
