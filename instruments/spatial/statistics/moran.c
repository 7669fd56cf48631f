/* moran.c - Moran's I on the graph of six nearest neighbours, its variance under normality, q.
 *
 * All factors are processed together, so a row of factors is read once for each neighbour. Sums are
 * f64, in the order of the cells. A context with a device sums there (moran_graph.h), in the
 * engine's order, if it has enough memory.
 */
#include "moran.h"
#include "moran_graph.h"
#include "order.h"

#include <math.h>
#include <string.h>

enum { K = SP_MORAN_NEIGHBOURS, PIECE = 1024 /* cells per task */ };

/* A multiple of a cache line, against false sharing. */
static uint64_t room_bytes(void)
{
    return (sp_grid_room(K) + 63) / 64 * 64;
}

uint64_t sp_moran_bytes(int64_t cells, int threads)
{
    return sp_grid_bytes(cells) + (uint64_t)cells * (K + 1) * sizeof(int32_t) +
           (uint64_t)threads * room_bytes() + 4096;
}

/* ---- neighbours ---- */

static void set_moments(sp_moran_edges *g, int64_t mutual, double s2)
{
    const double k = (double)g->k;
    g->s1 = (double)g->n / k + (double)mutual / (k * k);
    g->s2 = s2;
}

static void find_moments(sp_moran_edges *g)
{
    const double k = (double)g->k;
    int64_t mutual = 0;
    double s2 = 0;
    memset(g->arrows, 0, (size_t)g->n * sizeof *g->arrows);
    for (int64_t i = 0; i < g->n; i++)
        for (int64_t a = 0; a < g->k; a++) {
            const int64_t j = g->list[i * K + a];
            g->arrows[j]++;
            for (int64_t b = 0; b < g->k; b++) mutual += g->list[j * K + b] == i;
        }
    for (int64_t i = 0; i < g->n; i++) {
        const double both = 1 + (double)g->arrows[i] / k;
        s2 += both * both;
    }
    set_moments(g, mutual, s2);
}

typedef struct search {
    const sp_moran_edges *g;
    const sp_grid *grid;
    const float *xy;
    char *room; /* room_bytes() of each worker */
} search;

static void search_piece(void *arg, int64_t piece, int worker)
{
    const search *of = arg;
    const int64_t end = (piece + 1) * PIECE < of->g->n ? (piece + 1) * PIECE : of->g->n;
    for (int64_t i = piece * PIECE; i < end; i++)
        sp_grid_nearest(of->grid, of->xy + 2 * i, K, i, of->g->list + i * K, NULL,
                        of->room + (uint64_t)worker * room_bytes());
}

static fth_status find_neighbours(const sp_moran_edges *g, fth_context *ctx, const float *xy,
                                  fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    sp_grid *grid = NULL;
    void *room = NULL;
    fth_status s = sp_grid_create(&grid, mem, xy, g->n, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)fth_context_threads(ctx) * room_bytes(),
                         "nearest", &room, err);
    search of = {g, grid, xy, room};
    if (s == FTH_OK)
        s = fth_context_loop(ctx, "moran", (g->n + PIECE - 1) / PIECE, search_piece, &of, err);
    fth_mem_release(mem, room, NULL);
    sp_grid_destroy(grid);
    return s;
}

fth_status sp_moran_edges_find(sp_moran_edges *out, fth_context *ctx, const float *xy,
                               int64_t cells, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    *out = (sp_moran_edges){.n = cells, .k = cells - 1 < K ? cells - 1 : K, .mem = mem};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)cells * (K + 1) * sizeof(int32_t),
                         "neighbours", &out->block, err));
    out->list = out->block;
    out->arrows = out->list + cells * K;
    const fth_status s = find_neighbours(out, ctx, xy, err);
    if (s == FTH_OK)
        find_moments(out);
    else
        sp_moran_edges_clear(out);
    return s;
}

void sp_moran_edges_clear(sp_moran_edges *g)
{
    if (g->mem) fth_mem_release(g->mem, g->block, NULL);
    g->block = NULL; /* its numbers stay, for scores */
    g->list = g->arrows = NULL;
}

/* ---- the statistic ---- */

static void find_means(double *mean, bool *constant, const float *x, int64_t n, int64_t factors)
{
    for (int64_t l = 0; l < factors; l++) mean[l] = 0, constant[l] = true;
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < factors; l++) {
            mean[l] += (double)x[i * factors + l];
            if (x[i * factors + l] != x[l]) constant[l] = false;
        }
    for (int64_t l = 0; l < factors; l++) mean[l] /= (double)n;
}

static void find_statistic(const sp_moran *m, const sp_moran_edges *g, const float *x, double *mean,
                           double *square, bool *constant)
{
    const int64_t L = m->factors;
    find_means(mean, constant, x, g->n, L);
    for (int64_t l = 0; l < L; l++) m->I[l] = square[l] = 0;
    for (int64_t i = 0; i < g->n; i++) {
        const int32_t *to = g->list + i * K;
        for (int64_t l = 0; l < L; l++) {
            const double z = (double)x[i * L + l] - mean[l];
            double lag = 0;
            for (int64_t a = 0; a < g->k; a++) lag += (double)x[to[a] * L + l] - mean[l];
            m->I[l] += z * (lag / (double)g->k);
            square[l] += z * z;
        }
    }
    for (int64_t l = 0; l < L; l++)
        m->I[l] = constant[l] || g->k == 0 ? (double)NAN : m->I[l] / square[l];
}

/* ---- all of it ---- */

static fth_status count_here(const sp_moran *m, sp_moran_edges *g, fth_context *ctx,
                             const float *xy, const float *x, double *mean, double *square,
                             bool *constant, fth_err *err)
{
    FTH_TRY(sp_moran_edges_find(g, ctx, xy, g->n, err));
    find_statistic(m, g, x, mean, square, constant);
    sp_moran_edges_clear(g);
    return FTH_OK;
}

static fth_status count_there(const sp_moran *m, sp_moran_edges *g, fth_context *ctx,
                              const float *xy, const float *x, double *square, float *range,
                              fth_err *err)
{
    sp_grid *grid = NULL;
    const int64_t L = m->factors;
    sp_moran_sums sums = {.lag = m->I, .square = square, .least = range, .most = range + L};
    FTH_TRY(sp_grid_create(&grid, fth_context_mem(ctx), xy, g->n, err));
    const fth_status s = sp_moran_on_device(&sums, ctx, grid, xy, x, L, g->k, err);
    sp_grid_destroy(grid);
    if (s != FTH_OK) return s;
    set_moments(g, sums.mutual, sums.s2);
    for (int64_t l = 0; l < L; l++)
        m->I[l] = range[l] == range[L + l] ? (double)NAN : m->I[l] / square[l];
    return FTH_OK;
}

/* S0 is n: the weights of a row sum to 1 (model 14.2b). */
double sp_moran_score(const sp_moran_edges *g, double I)
{
    const double n = (double)g->n, expected = -1 / (n - 1);
    const double variance =
        (n * n * g->s1 - n * g->s2 + 3 * n * n) / ((n * n - 1) * n * n) - expected * expected;
    return (I - expected) / sqrt(variance);
}

double sp_moran_chance(double score)
{
    return 0.5 * erfc(score / sqrt(2.0));
}

static void find_chances(const sp_moran *m, const sp_moran_edges *g)
{
    for (int64_t l = 0; l < m->factors; l++) m->p[l] = sp_moran_chance(sp_moran_score(g, m->I[l]));
}

static fth_status take_room(sp_moran *m, fth_mem *mem, int64_t factors, double **mean,
                            double **square, bool **constant, fth_err *err)
{
    const uint64_t L = (uint64_t)factors;
    *m = (sp_moran){.factors = factors, .mem = mem};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, L * (6 * sizeof(double) + sizeof(bool)), "moran",
                         &m->block, err));
    m->I = m->block;
    m->p = m->I + L;
    m->q = m->p + L;
    *mean = m->q + L;
    *square = *mean + L;
    m->order = (int64_t *)(void *)(*square + L);
    *constant = (bool *)(void *)(m->order + L);
    return FTH_OK;
}

fth_status sp_moran_run(sp_moran *out, fth_context *ctx, const float *xy, const float *x,
                        int64_t cells, int64_t factors, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    double *mean, *square;
    bool *constant;
    FTH_TRY(take_room(out, mem, factors, &mean, &square, &constant, err));
    sp_moran_edges g = {.n = cells, .k = cells - 1 < K ? cells - 1 : K};
    fth_err why = {0};
    fth_status s = FTH_E_NO_FIT;
    if (fth_context_device_mem(ctx) && g.k > 0 && factors > 0) /* `mean` as two floats each */
        s = count_there(out, &g, ctx, xy, x, square, (float *)(void *)mean, &why);
    if (s == FTH_E_NO_FIT) {
        why = (fth_err){0};
        s = count_here(out, &g, ctx, xy, x, mean, square, constant, &why);
    }
    if (s == FTH_OK) {
        find_chances(out, &g);
        sp_benjamini_hochberg(out->q, out->p, factors, out->order);
        sp_order(out->order, out->I, factors, true);
        return FTH_OK;
    }
    if (err) *err = why;
    sp_moran_clear(out);
    return s;
}

/* Insertion: every spatial factor moves before the others that stand ahead of it. */
void sp_moran_split(sp_moran *m, int64_t spatial)
{
    int64_t done = 0;
    for (int64_t i = 0; i < m->factors; i++) {
        const int64_t l = m->order[i];
        if (l >= spatial) continue;
        memmove(m->order + done + 1, m->order + done, (size_t)(i - done) * sizeof *m->order);
        m->order[done++] = l;
    }
}

void sp_moran_clear(sp_moran *m)
{
    if (m->mem) fth_mem_release(m->mem, m->block, NULL);
    *m = (sp_moran){0};
}
