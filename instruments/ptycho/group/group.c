/* group.c - see group.h.
 *
 * The workers find the neighbours of all seeds first; the random draws follow serially.
 * Oversampling draws among all combinations of neighbours: they are counted, not listed, and a
 * drawn one is computed from its rank.
 */
#include "group.h"

#include "../random/compat.h"

#include <fathom/places.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHAN = 64 };

typedef struct work {
    fth_context *ctx;
    fth_mem *mem;
    const double *x, *y;
    int64_t n, chan, k;
    pt_groups *out;
    pt_compat random;
    int64_t *seed, seeds; /* patterns that groups are made around */
    int32_t *list;        /* [seeds][listed] their neighbours */
    int64_t listed;
    double *d2; /* [worker][k + 1] */
    int32_t *near;
    fth_places places;
} work;

static fth_status take(work *w, uint64_t bytes, const char *what, void *out, fth_err *err)
{
    void *p = NULL;
    FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, bytes ? bytes : 1, what, &p, err));
    memcpy(out, &p, sizeof p);
    return FTH_OK;
}

static void drop(work *w, void *p)
{
    if (p) fth_mem_release(w->mem, p, NULL);
}

/* ---- neighbours ---- */

static void find_one(void *arg, int64_t i, int worker)
{
    work *w = arg;
    const int64_t all = w->n > w->k ? w->k + 1 : w->n;
    int32_t *near = w->near + worker * (w->k + 1);
    const double at[2] = {w->x[w->seed[i]], w->y[w->seed[i]]};
    fth_places_nearest(&w->places, at, all, near, w->d2 + worker * (w->k + 1));
    /* the nearest is the pattern itself, which is kept only when there are too few others */
    memcpy(w->list + i * w->listed, near + (w->n > w->k), sizeof *near * (size_t)w->listed);
}

static fth_status find_neighbours(work *w, fth_err *err)
{
    const uint64_t workers = (uint64_t)fth_context_threads(w->ctx), room = (uint64_t)(w->k + 1);
    w->listed = w->n > w->k ? w->k : w->n;
    FTH_TRY(take(w, sizeof *w->list * (uint64_t)(w->seeds * w->listed), "neighbours of patterns",
                 &w->list, err));
    FTH_TRY(take(w, sizeof *w->d2 * workers * room, "distances", &w->d2, err));
    FTH_TRY(take(w, sizeof *w->near * workers * room, "nearest patterns", &w->near, err));
    FTH_TRY(fth_places_create(&w->places, w->mem, FTH_F64, w->x, w->y, 1, w->n, err));
    return fth_context_loop(w->ctx, "neighbours", w->seeds, find_one, w, err);
}

/* ---- groups ---- */

static fth_status make_room(work *w, int64_t n, fth_err *err)
{
    const uint64_t groups = (uint64_t)n, chan = (uint64_t)w->chan;
    *w->out = (pt_groups){.mem = w->mem, .n = n, .chan = w->chan};
    FTH_TRY(take(w, sizeof(int64_t) * groups * chan, "patterns of groups", &w->out->idx, err));
    FTH_TRY(take(w, sizeof(double) * 2 * groups, "places of groups", &w->out->off, err));
    return take(w, sizeof(double) * 2 * groups * chan, "places in groups", &w->out->rel, err);
}

static void place(const work *w)
{
    const pt_groups *g = w->out;
    for (int64_t b = 0; b < g->n; b++) {
        double sum[2] = {0, 0};
        for (int64_t c = 0; c < g->chan; c++) {
            sum[0] += w->x[g->idx[b * g->chan + c]];
            sum[1] += w->y[g->idx[b * g->chan + c]];
        }
        for (int d = 0; d < 2; d++) {
            const double *from = d ? w->y : w->x, mean = sum[d] / (double)g->chan;
            g->off[2 * b + d] = mean;
            for (int64_t c = 0; c < g->chan; c++)
                g->rel[2 * (b * g->chan + c) + d] = -(from[g->idx[b * g->chan + c]] - mean);
        }
    }
}

/* The first `count` of a permutation of all patterns, or all of them in order. */
static fth_status draw_seeds(work *w, int64_t count, bool in_order, fth_err *err)
{
    w->seeds = count;
    FTH_TRY(take(w, sizeof *w->seed * (uint64_t)w->n, "patterns to start from", &w->seed, err));
    if (!in_order && count < w->n)
        pt_compat_permutation(&w->random, w->seed, w->n);
    else
        for (int64_t i = 0; i < w->n; i++) w->seed[i] = i;
    return FTH_OK;
}

static fth_status standard(work *w, const pt_group_options *o, fth_err *err)
{
    const int64_t wanted = o->n_groups > 0 ? o->n_groups : w->n,
                  count = wanted < w->n ? wanted : w->n;
    int64_t *order = NULL;
    pt_compat_seed(&w->random, o->sequential ? 0 : (uint32_t)o->seed);
    FTH_TRY(draw_seeds(w, count, o->sequential, err));
    FTH_TRY(make_room(w, count, err));
    w->out->capped = count < wanted;
    if (w->chan == 1) {
        memcpy(w->out->idx, w->seed, sizeof *w->seed * (size_t)count);
        return FTH_OK;
    }
    FTH_TRY(find_neighbours(w, err));
    FTH_TRY(take(w, sizeof *order * (uint64_t)w->listed, "draw of neighbours", &order, err));
    for (int64_t b = 0; b < count; b++) {
        pt_compat_permutation(&w->random, order, w->listed);
        for (int64_t c = 0; c < w->chan; c++)
            w->out->idx[b * w->chan + c] = w->list[b * w->listed + order[c]];
    }
    drop(w, order);
    return FTH_OK;
}

/* ---- more groups than patterns ---- */

/* Binomial coefficient n over k, at most 2^62. */
static int64_t choose(int64_t n, int64_t k)
{
    const double limit = 4e18;
    double about = 1;
    int64_t exact = 1;
    if (k < 0 || k > n) return 0;
    for (int64_t i = 1; i <= k; i++) {
        about = about * (double)(n - k + i) / (double)i;
        if (about * (double)(n + 1) > limit) return (int64_t)1 << 62;
        exact = exact * (n - k + i) / i;
    }
    return exact;
}

/* Combination number `rank`, in lexicographic order, of k out of n. */
static void combination(int64_t rank, int64_t n, int64_t k, int64_t *out)
{
    int64_t next = 0;
    for (int64_t i = 0; i < k; i++) {
        int64_t with = choose(n - next - 1, k - i - 1);
        while (rank >= with) {
            rank -= with;
            next++;
            with = choose(n - next - 1, k - i - 1);
        }
        out[i] = next++;
    }
}

static fth_status oversampled(work *w, const pt_group_options *o, fth_err *err)
{
    const int64_t groups = o->n_groups, of = choose(w->k, w->chan);
    const int64_t least = (groups + of - 1) / of > 1 ? (groups + of - 1) / of : 1;
    const int64_t seeds = least > w->n / 2 ? w->n : 2 * least;
    int64_t *rank = NULL, pick[MOST_CHAN];
    pt_compat_seed(&w->random, (uint32_t)o->seed);
    FTH_TRY(draw_seeds(w, seeds < w->n ? seeds : w->n, o->sequential, err));
    FTH_TRY(make_room(w, groups, err));
    FTH_TRY(find_neighbours(w, err));
    const int64_t each = choose(w->listed, w->chan);
    const int64_t all = each > 2 * groups / w->seeds ? 2 * groups : each * w->seeds,
                  pool = all < 2 * groups ? all : 2 * groups;
    FTH_TRY(take(w, sizeof *rank * (uint64_t)(pool > groups ? pool : groups), "draw of groups",
                 &rank, err));
    if (pool >= groups)
        pt_compat_permutation(&w->random, rank, pool);
    else
        for (int64_t b = 0; b < groups; b++)
            rank[b] = pt_compat_interval(&w->random, (uint32_t)(pool - 1));
    for (int64_t b = 0; b < groups; b++) {
        combination(rank[b] % each, w->listed, w->chan, pick);
        for (int64_t c = 0; c < w->chan; c++)
            w->out->idx[b * w->chan + c] = w->list[rank[b] / each * w->listed + pick[c]];
    }
    drop(w, rank);
    return FTH_OK;
}

/* ---- entry points ---- */

pt_group_options pt_group_settings(const fth_config *cfg)
{
    const bool pool = fth_config_has(cfg, "neighbor_pool_size"),
               some = fth_config_has(cfg, "n_groups");
    return (pt_group_options){.gridsize = fth_config_int(cfg, "gridsize"),
                              .n_groups = some ? fth_config_int(cfg, "n_groups") : 0,
                              .neighbours = fth_config_int(cfg, "neighbor_count"),
                              .pool = pool ? fth_config_int(cfg, "neighbor_pool_size") : 0,
                              .seed = fth_config_int(cfg, "seed"),
                              .sequential = fth_config_bool(cfg, "sequential_sampling"),
                              .oversample = fth_config_bool(cfg, "enable_oversampling")};
}

static fth_status check(int64_t n, const pt_group_options *o, bool more, fth_err *err)
{
    const int64_t chan = o->gridsize * o->gridsize, pool = o->pool > 0 ? o->pool : o->neighbours;
    if (o->gridsize < 1 || chan > MOST_CHAN)
        return FTH_FAIL(err, FTH_E_COMMAND, "gridsize %lld: expected 1 to 8",
                        (long long)o->gridsize);
    if (n < chan)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "a group has %lld patterns (gridsize %lld), the scan %lld", (long long)chan,
                        (long long)o->gridsize, (long long)n);
    if (more && !o->oversample) {
        FTH_FAIL(err, FTH_E_COMMAND, "n_groups %lld of %lld patterns needs oversampling",
                 (long long)o->n_groups, (long long)n);
        fth_err_hint(err, "set enable_oversampling, or n_groups to at most %lld", (long long)n);
        return FTH_E_COMMAND;
    }
    const int64_t k = more ? pool : o->neighbours;
    if (chan > 1 && k < chan) {
        FTH_FAIL(err, FTH_E_COMMAND, "%s %lld is less than the %lld patterns of a group",
                 more && o->pool > 0 ? "neighbor_pool_size" : "neighbor_count", (long long)k,
                 (long long)chan);
        fth_err_hint(err, "set it to at least %lld", (long long)chan);
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

fth_status pt_groups_make(pt_groups *out, fth_context *ctx, const double *x, const double *y,
                          int64_t n, const pt_group_options *opt, fth_err *err)
{
    const int64_t chan = opt->gridsize * opt->gridsize;
    const bool more = opt->n_groups > n && chan > 1;
    *out = (pt_groups){0};
    FTH_TRY(check(n, opt, more, err));
    work w = {.ctx = ctx,
              .mem = fth_context_mem(ctx),
              .x = x,
              .y = y,
              .n = n,
              .chan = chan,
              .k = more && opt->pool > 0 ? opt->pool : opt->neighbours,
              .out = out};
    fth_status s = more ? oversampled(&w, opt, err) : standard(&w, opt, err);
    if (s == FTH_OK) place(&w);
    fth_places_clear(&w.places);
    drop(&w, w.near);
    drop(&w, w.d2);
    drop(&w, w.list);
    drop(&w, w.seed);
    if (s != FTH_OK) pt_groups_clear(out);
    return s;
}

void pt_groups_clear(pt_groups *g)
{
    void *const block[] = {g->idx, g->off, g->rel};
    for (int i = 0; i < 3; i++)
        if (block[i]) fth_mem_release(g->mem, block[i], NULL);
    *g = (pt_groups){0};
}

uint64_t pt_groups_bytes(int64_t n, const pt_group_options *opt)
{
    const uint64_t chan = (uint64_t)(opt->gridsize * opt->gridsize),
                   groups = (uint64_t)(opt->n_groups > 0 ? opt->n_groups : n), all = (uint64_t)n,
                   k = (uint64_t)(opt->pool > opt->neighbours ? opt->pool : opt->neighbours);
    const uint64_t kept = groups * (24 * chan + 16), seeds = groups < all ? groups : all;
    return kept + 8 * all + fth_places_bytes(n) + 4 * seeds * k + 16 * groups + 65536;
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

fth_status pt_subsample(fth_mem *mem, int64_t n, int64_t keep, int64_t seed, int64_t *out,
                        fth_err *err)
{
    pt_compat random;
    int64_t *all = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof *all * (uint64_t)(n > 0 ? n : 1),
                         "draw of patterns", (void **)&all, err));
    pt_compat_seed(&random, (uint32_t)seed);
    pt_compat_permutation(&random, all, n);
    memcpy(out, all, sizeof *out * (size_t)keep);
    qsort(out, (size_t)keep, sizeof *out, ascending);
    fth_mem_release(mem, all, NULL);
    return FTH_OK;
}
