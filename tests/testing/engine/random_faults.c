/* random_faults.c - see random_faults.h. */
#include "testing/engine/random_faults.h"

#include "mem/inject.h"

#include <inttypes.h>
#include <string.h>

static fth_status swallow(void *self, const int64_t *lo, const int64_t *n, const void *src,
                          fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)src, (void)err;
    return FTH_OK;
}

/* Plan and run once; parameters are as before when it fails. *info may be NULL. */
static fth_status plan_and_run(rg *g, const fth_limits *limits, fth_plan_info *info, fth_err *err)
{
    fth_val outs[RG_OUTS];
    fth_sink sinks[RG_OUTS];
    for (int i = 0; i < g->n_outs; i++) {
        outs[i] = g->into[i] >= 0 ? g->param[g->into[i]].assign : rg_val(g, g->out[i]);
        sinks[i] = (fth_sink){.kind = "nowhere",
                              .dtype = fth_val_dtype(outs[i]),
                              .n_axes = fth_val_axes(outs[i]),
                              .write = swallow};
        for (int d = 0; d < sinks[i].n_axes; d++) sinks[i].size[d] = fth_val_size(outs[i], d);
    }
    for (int i = 0; i < g->n_params; i++)
        memcpy(fth_tensor_data(g->param[i].tensor), g->param[i].before, g->param[i].bytes);
    fth_plan *p = fth_plan_make(g->g, outs, g->n_outs, limits, err);
    if (!p) return err->status;
    if (info) fth_plan_get_info(p, info);
    const fth_status s = fth_run(p, sinks, NULL, NULL, err);
    fth_plan_destroy(p);
    for (int i = 0; s != FTH_OK && i < g->n_params; i++)
        SAME_BYTES(fth_tensor_data(g->param[i].tensor), g->param[i].before, g->param[i].bytes);
    return s;
}

static uint64_t blocks(fth_mem *mem)
{
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    return stats.blocks;
}

/* A budget between the least and all that the program wants. */
static fth_limits tight_limits(rg *g)
{
    fth_err err = {0};
    fth_plan_info info = {0};
    fth_limits l = {.memory_bytes = (uint64_t)1 << 40, .threads = 2};
    OKE(plan_and_run(g, &l, &info, &err), &err);
    l.memory_bytes = info.foreign_bytes + info.peak_bytes / 2;
    err = (fth_err){0};
    const fth_status s = plan_and_run(g, &l, NULL, &err);
    ONE_OF(s, FTH_OK, FTH_E_NO_FIT);
    unsigned long long least;
    if (s == FTH_E_NO_FIT && sscanf(err.hint, "would fit: memory_bytes = %llu", &least) == 1)
        l.memory_bytes = least;
    return l;
}

/* Returns how many requests failed and were reported. */
static int64_t check_seed(uint64_t seed, int64_t step)
{
    char why[2048];
    rg *g = rg_make(seed, why, sizeof why);
    if (!g) FAIL("seed %" PRIu64 ": %s", seed, why);
    fth_mem *mem = fth_context_mem(g->ctx);
    const fth_limits limits = tight_limits(g);
    const uint64_t held = blocks(mem);
    int64_t failed = 0;
    for (int64_t n = 1;; n += step) {
        fth_err err = {0};
        fth__mem_inject(mem, n, 0);
        const fth_status s = plan_and_run(g, &limits, NULL, &err);
        const bool came = fth__mem_alloc_count(mem) >= n;
        fth__mem_inject(mem, 0, 0);
        if (s != FTH_OK && (s != FTH_E_NOMEM || !came))
            FAIL("seed %" PRIu64 ", request %" PRId64 ": %s", seed, n, err.text);
        if (blocks(mem) != held)
            FAIL("seed %" PRIu64 ", request %" PRId64 ": blocks stay behind", seed, n);
        failed += s != FTH_OK;
        if (!came) break;
    }
    rg_free(g);
    return failed;
}

void rf_check_many(uint64_t first, int64_t n, int64_t step)
{
    int64_t failed = 0;
    for (int64_t i = 0; i < n; i++) failed += check_seed(first + (uint64_t)i, step);
    printf("%" PRId64 " graphs, %" PRId64 " requests failed\n", n, failed);
    IS_TRUE(failed > 20 * n / step);
}
