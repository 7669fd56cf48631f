/* dataset.c - see dataset.h. */
#include "dataset.h"

#include "../net/model.h"

#include <math.h>
#include <string.h>

static fth_status take(pt_dataset *d, uint64_t bytes, const char *what, void *out, fth_err *err)
{
    void *p = NULL;
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, bytes ? bytes : 1, what, &p, err));
    memcpy(out, &p, sizeof p);
    return FTH_OK;
}

/* ---- positions ---- */

static fth_status choose_patterns(pt_dataset *d, const fth_config *cfg, fth_err *err)
{
    const bool start = fth_config_choice(cfg, "positions.use") == 0;
    const double *x = start ? d->scan.start_x : d->scan.x, *y = start ? d->scan.start_y : d->scan.y;
    const bool some = fth_config_has(cfg, "n_subsample");
    const int64_t wanted = some ? fth_config_int(cfg, "n_subsample") : d->scan.n;
    d->n = wanted < d->scan.n ? wanted : d->scan.n;
    if (d->n < d->scan.n) {
        const int64_t seed = fth_config_has(cfg, "subsample_seed")
                                 ? fth_config_int(cfg, "subsample_seed")
                                 : fth_config_int(cfg, "seed");
        FTH_TRY(take(d, sizeof *d->kept * (uint64_t)d->n, "patterns that are used", &d->kept, err));
        FTH_TRY(pt_subsample(d->mem, d->scan.n, d->n, seed, d->kept, err));
    }
    FTH_TRY(take(d, sizeof *d->x * (uint64_t)d->n, "positions", &d->x, err));
    FTH_TRY(take(d, sizeof *d->y * (uint64_t)d->n, "positions", &d->y, err));
    for (int64_t i = 0; i < d->n; i++) {
        d->x[i] = x[d->kept ? d->kept[i] : i];
        d->y[i] = y[d->kept ? d->kept[i] : i];
    }
    return FTH_OK;
}

static fth_status make_groups(pt_dataset *d, fth_context *ctx, const fth_config *cfg,
                              pt_dataset_use use, int64_t gridsize, int64_t neighbours,
                              fth_err *err)
{
    pt_group_options o = pt_group_settings(cfg);
    if (gridsize > 0) o.gridsize = gridsize;
    if (neighbours > 0) o.neighbours = neighbours;
    if (o.n_groups == 0 && use == PT_TO_TRAIN) o.n_groups = 512 < d->n ? 512 : d->n;
    FTH_TRY(pt_groups_make(&d->groups, ctx, d->x, d->y, d->n, &o, err));
    const int64_t all = d->groups.n * d->groups.chan;
    for (int64_t i = 0; d->kept && i < all; i++) d->groups.idx[i] = d->kept[d->groups.idx[i]];
    return FTH_OK;
}

/* ---- the mask ---- */

/* A pixel that is bad in one pattern is bad in all: the network sees one detector. */
static fth_status join_masks(pt_dataset *d, fth_context *ctx, const fth_stage_call *call,
                             fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_err why = {0};
    fth_axis(g, "scan", d->scan.n);
    fth_axis(g, "row", d->scan.N);
    fth_axis(g, "col", d->scan.N);
    const fth_val all =
        fth_all(fth_input(g, "masks", FTH_BOOL, "scan row col", d->scan.masks), "scan");
    const fth_sink sink = {.kind = "memory",
                           .dtype = FTH_BOOL,
                           .n_axes = 2,
                           .size = {d->scan.N, d->scan.N},
                           .data = d->mask};
    const fth_limits limits = {.sinks = &sink};
    fth_plan *plan = fth_plan_make(g, &all, 1, &limits, &why);
    const fth_status s = plan ? fth_stage_run(call, plan, &sink, NULL, &why) : why.status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    if (s != FTH_OK && err) *err = why;
    return s;
}

static fth_status find_mask(pt_dataset *d, fth_context *ctx, const fth_stage_call *call, bool look,
                            fth_err *err)
{
    const int64_t pixels = d->scan.N * d->scan.N;
    const bool several = d->scan.masks.n_axes > 0;
    if (!d->scan.mask && !several) return FTH_OK;
    FTH_TRY(take(d, (uint64_t)pixels, "mask", &d->mask, err));
    memset(d->mask, 1, (size_t)pixels);
    if (several && look) FTH_TRY(join_masks(d, ctx, call, err));
    for (int64_t i = 0; d->scan.mask && i < pixels; i++) d->mask[i] = d->mask[i] && d->scan.mask[i];
    return FTH_OK;
}

/* ---- energies ---- */

static void print_in(uint64_t *h, const void *data, uint64_t bytes)
{
    const unsigned char *p = data;
    for (uint64_t i = 0; i < bytes; i++) *h = (*h ^ p[i]) * 1099511628211u;
}

/* Sum of squares of each pattern, f64 [scan], in one pass over the file. */
static fth_status find_energies(pt_dataset *d, fth_context *ctx, const fth_stage_call *call,
                                double *out, fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_err why = {0};
    fth_axis(g, "scan", d->scan.n);
    fth_axis(g, "row", d->scan.N);
    fth_axis(g, "col", d->scan.N);
    const fth_source good = {.kind = "memory",
                             .dtype = FTH_BOOL,
                             .n_axes = 2,
                             .size = {d->scan.N, d->scan.N},
                             .data = d->mask};
    fth_val x = fth_input(g, "amplitude", FTH_F32, "scan row col", d->amplitude);
    if (d->mask) x = fth_mul(x, fth_cast(fth_input(g, "mask", FTH_BOOL, "row col", good), FTH_F32));
    const fth_val e = fth_sum(fth_sqr(fth_cast(x, FTH_F64)), "row col");
    const fth_sink sink = {
        .kind = "memory", .dtype = FTH_F64, .n_axes = 1, .size = {d->scan.n}, .data = out};
    const fth_limits limits = {.sinks = &sink};
    fth_plan *plan = fth_plan_make(g, &e, 1, &limits, &why);
    const fth_status s = plan ? fth_stage_run(call, plan, &sink, NULL, &why) : why.status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    if (s != FTH_OK && err) *err = why;
    return s;
}

static fth_status measure(pt_dataset *d, fth_context *ctx, const fth_stage_call *call, fth_err *err)
{
    double *energy = NULL, sum = 0;
    const pt_groups *g = &d->groups;
    const int64_t all = g->n * g->chan;
    FTH_TRY(take(d, sizeof *energy * (uint64_t)d->scan.n, "energies of patterns", &energy, err));
    const fth_status s = find_energies(d, ctx, call, energy, err);
    for (int64_t i = 0; i < all && s == FTH_OK; i++) sum += energy[g->idx[i]];
    d->mean_energy = sum / (double)(all > 0 ? all : 1);
    d->print = 14695981039346656037u;
    if (s == FTH_OK) print_in(&d->print, energy, sizeof *energy * (uint64_t)d->scan.n);
    print_in(&d->print, g->idx, sizeof *g->idx * (uint64_t)all);
    print_in(&d->print, g->rel, sizeof *g->rel * 2 * (uint64_t)all);
    fth_mem_release(d->mem, energy, NULL);
    if (s == FTH_OK && !(isfinite(d->mean_energy) && d->mean_energy > 0)) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: patterns of the groups have a mean energy of %g",
                 d->scan.path, d->mean_energy);
        fth_err_hint(err, "'fathom ptycho check' names what is wrong with them");
        return FTH_E_FILE_FORMAT;
    }
    return s;
}

/* ---- all ---- */

fth_status pt_dataset_open(pt_dataset *d, fth_context *ctx, const fth_stage_call *call,
                           const fth_config *cfg, const char *path, pt_dataset_use use,
                           int64_t gridsize, int64_t neighbours, bool look, fth_err *err)
{
    pt_scan_options opt;
    pt_survey survey;
    *d = (pt_dataset){.mem = fth_context_mem(ctx)};
    pt_scan_options_read(cfg, &opt);
    opt.random = look; /* what has to be unpacked for that is not unpacked for a plan */
    FTH_TRY(pt_scan_open(&d->scan, ctx, path, &opt, err));
    fth_status s = FTH_OK;
    if (look)
        s = pt_scan_survey(&d->scan, call ? fth_stage_run_progress : NULL, (void *)(uintptr_t)call,
                           &survey, err);
    if (s == FTH_OK) s = pt_scan_view(&d->scan, PT_AMPLITUDE, FTH_F32, &d->amplitude, err);
    if (s == FTH_OK) s = choose_patterns(d, cfg, err);
    if (s == FTH_OK) s = make_groups(d, ctx, cfg, use, gridsize, neighbours, err);
    if (s == FTH_OK) s = find_mask(d, ctx, call, look, err);
    if (s == FTH_OK && look) s = measure(d, ctx, call, err);
    if (s != FTH_OK) pt_dataset_close(d);
    return s;
}

void pt_dataset_close(pt_dataset *d)
{
    void *const block[] = {d->kept, d->x, d->y, d->mask};
    pt_groups_clear(&d->groups);
    for (int i = 0; i < 4; i++)
        if (block[i]) fth_mem_release(d->mem, block[i], NULL);
    pt_scan_close(&d->scan);
    memset(d, 0, sizeof *d);
}

/* The longest way from a pattern of a group to another, in whole pixels, even. */
static int64_t even_reach(const pt_groups *g)
{
    double most = 0;
    for (int64_t b = 0; b < g->n; b++)
        for (int64_t i = 0; i < g->chan; i++)
            for (int64_t k = 0; k < i; k++) {
                const double *at = g->rel + 2 * b * g->chan;
                most = fmax(most, hypot(at[2 * i] - at[2 * k], at[2 * i + 1] - at[2 * k + 1]));
            }
    const int64_t whole = (int64_t)ceil(most);
    return whole + whole % 2;
}

int64_t pt_dataset_region(const pt_dataset *d, const fth_config *cfg, int64_t *clipped)
{
    const pt_groups *g = &d->groups;
    const int64_t n = d->scan.N, count = 2 * g->n * g->chan,
                  grid = (int64_t)(sqrt((double)g->chan) + 0.5),
                  exact = pt_region_size(n, g->rel, count);
    int64_t side = exact;
    *clipped = 0;
    if (fth_config_choice(cfg, "merge_size") == 2) side = n + (grid - 1) * even_reach(g);
    if (fth_config_choice(cfg, "merge_size") == 1)
        side = n + (grid - 1) * fth_config_int(cfg, "offset") +
               fth_config_int(cfg, "max_position_jitter");
    for (int64_t b = 0; b < g->n && side < exact; b++) {
        bool cut = false;
        for (int64_t i = 0; i < 2 * g->chan; i++)
            cut = cut || fabs(g->rel[2 * b * g->chan + i]) > (double)(side - n) / 2;
        *clipped += cut;
    }
    return side;
}

void pt_dataset_rel(const pt_dataset *d, const int64_t *order, int64_t from, int64_t n, float *out)
{
    const int64_t each = 2 * d->groups.chan;
    for (int64_t i = 0; i < n; i++) {
        const int64_t b = order ? order[from + i] : from + i;
        for (int64_t k = 0; k < each; k++) out[i * each + k] = (float)d->groups.rel[b * each + k];
    }
}

void pt_dataset_rows(const pt_dataset *d, const int64_t *order, int64_t from, int64_t n,
                     int64_t *out)
{
    const int64_t each = d->groups.chan;
    for (int64_t i = 0; i < n; i++) {
        const int64_t b = order ? order[from + i] : from + i;
        memcpy(out + i * each, d->groups.idx + b * each, sizeof *out * (size_t)each);
    }
}
