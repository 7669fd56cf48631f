/* analyze_predict.c - factors and their deviations at all cells, maps as if of one group, Lu.
 *
 * Each is one graph, chunked along cells. analyze_batch_size bounds the size of a chunk; the memory
 * budget may require smaller ones, with the same bits.
 */
#include "../prior/svgp.h"
#include "analyze.h"

#include <string.h>

/* ---- plans ---- */

static fth_plan *make_plan(const sp_pass *p, const fth_val *out, uint64_t bytes, fth_err *err)
{
    const bool known = p->sink[0].kind != NULL;
    const fth_limits l = {.memory_bytes = bytes, .sinks = known ? p->sink : NULL};
    return fth_plan_make(p->g, out, p->n_sinks, &l, err);
}

static int64_t chunks_of(const fth_plan *plan, uint64_t *bytes)
{
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    *bytes = info.peak_bytes + info.foreign_bytes;
    return info.chunks > 0 ? info.chunks : 1;
}

/* The largest chunks of at most `most` cells, by bisection over the memory given to the planner. */
static fth_status plan_in_batches(sp_pass *p, const fth_val *out, int64_t cells, int64_t most,
                                  fth_err *err)
{
    const int64_t need = (cells + most - 1) / most;
    uint64_t high, low = 0;
    p->plan = make_plan(p, out, 0, err);
    if (!p->plan) return err && err->status != FTH_OK ? err->status : FTH_E_NO_FIT;
    int64_t chunks = chunks_of(p->plan, &high);
    for (int turn = 0; turn < 24 && chunks < need && high - low > (1u << 16); turn++) {
        const uint64_t middle = low + (high - low) / 2;
        fth_plan *plan = make_plan(p, out, middle, NULL);
        uint64_t bytes;
        const int64_t n = plan ? chunks_of(plan, &bytes) : 0;
        if (plan && n < need) high = middle;
        if (!plan || n >= need) low = middle;
        if (plan && n >= need) { /* small enough: try larger chunks */
            fth_plan_destroy(p->plan);
            p->plan = plan;
            if (n <= need + need / 8 + 1) break;
            continue;
        }
        fth_plan_destroy(plan);
    }
    return FTH_OK;
}

/* ---- factors ---- */

static sp_query query_of(const sp_analysis *a, sp_model_graph *net, fth_tensor *xy,
                         fth_tensor *group, fth_tensor *nbr)
{
    const sp_settings *set = &net->model->set;
    sp_query q = {.trained = xy == a->xy && !a->other};
    if (set->spatial) q.xy = fth_input(net->g, "xy", FTH_F32, "cell dim", fth_tensor_source(xy));
    if (set->groups)
        q.group = fth_input(net->g, "group of cell", FTH_I32, "cell", fth_tensor_source(group));
    if (set->local)
        q.nbr = fth_input(net->g, "nbr of cell", FTH_I32, "cell nbr", fth_tensor_source(nbr));
    return q;
}

static fth_status plan_factors(sp_analysis *a, sp_pass *p, fth_tensor *xy, fth_tensor *group,
                               fth_tensor *nbr, fth_tensor *F, fth_tensor *S, fth_err *err)
{
    sp_model_graph net;
    const int64_t cells = fth_tensor_size(F, 0);
    FTH_TRY(sp_model_graph_create(&net, a->ctx, &a->model, false, cells, err));
    *p = (sp_pass){.g = net.g, .n_sinks = 2, .sink = {fth_tensor_sink(F), fth_tensor_sink(S)}};
    const sp_query q = query_of(a, &net, xy, group, nbr);
    fth_val f, s;
    FTH_TRY(sp_predict(&net, &q, &f, &s, err));
    if (!a->model.set.spatial) s = fth_max(s, fth_const(net.g, net.real, 1e-8));
    const fth_val out[2] = {fth_layout(fth_cast(fth_exp(f), FTH_F32), "cell factor"),
                            fth_layout(fth_cast(s, FTH_F32), "cell factor")};
    return plan_in_batches(p, out, cells,
                           fth_config_int(a->call->config, "training.analyze_batch_size"), err);
}

/* Factors in the order of Moran's I, as the axis `place`. */
static fth_val permuted(const sp_analysis *a, fth_val v)
{
    fth_graph *g = v.graph;
    fth_axis_like(g, "place", "factor");
    return fth_gather(v, "factor",
                      fth_input(g, "order", FTH_I64, "place", fth_tensor_source(a->order)));
}

/* The same of what only the spatial factors of a hybrid have: they come first. */
static fth_val permuted_spatial(const sp_analysis *a, fth_val v)
{
    fth_graph *g = v.graph;
    if (!sp_is_hybrid(&a->model.set)) return permuted(a, v);
    fth_axis_like(g, "places", "factor");
    fth_axis_like(g, "place", "sfactor");
    const fth_val all = fth_input(g, "order", FTH_I64, "places", fth_tensor_source(a->order));
    return fth_gather(v, "sfactor", fth_slice(all, "places", 0, "place"));
}

static fth_status plan_groupwise(sp_analysis *a, sp_pass *p, fth_tensor *xy, fth_tensor *group,
                                 fth_tensor *nbr, fth_err *err)
{
    sp_model_graph net;
    const int64_t cells = fth_tensor_size(xy, 0);
    FTH_TRY(sp_model_graph_create(&net, a->ctx, &a->model, false, cells, err));
    *p = (sp_pass){.g = net.g, .n_sinks = 1};
    const sp_query q = query_of(a, &net, xy, group, nbr);
    fth_val f;
    FTH_TRY(sp_predict_groups(&net, &q, &f, err));
    const fth_val out = fth_layout(permuted(a, fth_cast(fth_exp(f), FTH_F32)), "group cell place");
    return plan_in_batches(p, &out, cells,
                           fth_config_int(a->call->config, "training.analyze_batch_size"), err);
}

/* The lower factor of the posterior over u in its own coordinates, whichever parametrization was
 * trained. */
static fth_val lu_of(sp_model_graph *net)
{
    const sp_settings *set = &net->model->set;
    fth_graph *g = net->g;
    fth_val lu = sp_svgp_lu(net, NULL);
    if (set->diagonal_only) {
        const fth_val on = fth_cast(sp_compare_index(g, FTH_EW_EQ, "induce", "induce2"), net->real);
        lu = fth_mul(fth_layout(fth_expand(lu, "induce2"), sp_is_hybrid(set)
                                                               ? "sfactor induce induce2"
                                                               : "factor induce induce2"),
                     on);
    }
    if (set->parametrization != SP_WHITENED) return lu;
    fth_axis_like(g, "induce3", "induce");
    const sp_cov cov = sp_svgp_cov(net);
    const fth_val Lc = fth_rename(sp_svgp_factor(g, net->model, &cov, net->Z, net->groupsZ, NULL),
                                  "induce2", "induce3");
    const fth_val V = fth_rename(fth_cast(lu, FTH_F64), "induce", "induce3");
    return fth_cast(fth_dot(Lc, V, "induce3"), net->real);
}

static fth_status plan_lu(sp_analysis *a, fth_err *err)
{
    sp_model_graph net;
    const bool local = a->model.set.local;
    FTH_TRY(sp_model_graph_create(&net, a->ctx, &a->model, false, a->cells, err));
    a->lu = (sp_pass){.g = net.g, .n_sinks = 1};
    const fth_val v = local ? net.param[SP_P_LAM] : lu_of(&net);
    const fth_val out = fth_layout(fth_cast(permuted_spatial(a, v), FTH_F32),
                                   local ? "place induce rank" : "place induce induce2");
    a->lu.plan = make_plan(&a->lu, &out, 0, err);
    if (a->lu.plan) return FTH_OK;
    return err && err->status != FTH_OK ? err->status : FTH_E_NO_FIT;
}

fth_status sp_analysis_plan_predict(sp_analysis *a, fth_err *err)
{
    FTH_TRY(plan_factors(a, &a->predict, a->xy, a->group, a->nbr, a->F, a->S, err));
    if (a->held > 0 && a->model.set.spatial)
        FTH_TRY(plan_factors(a, &a->predict_held, a->held_xy, a->held_group, a->held_nbr, a->held_F,
                             a->held_S, err));
    if (a->model.set.groups)
        FTH_TRY(plan_groupwise(a, &a->groupwise, a->xy, a->group, a->nbr, err));
    if (a->model.set.groups && a->held > 0)
        FTH_TRY(plan_groupwise(a, &a->groupwise_held, a->held_xy, a->held_group, a->held_nbr, err));
    return a->model.set.spatial ? plan_lu(a, err) : FTH_OK;
}

fth_status sp_analysis_predict(sp_analysis *a, fth_err *err)
{
    FTH_TRY(sp_analysis_run_pass(a, &a->predict, err));
    sp_analysis_end_pass(a, &a->predict);
    if (a->predict_held.plan) FTH_TRY(sp_analysis_run_pass(a, &a->predict_held, err));
    sp_analysis_end_pass(a, &a->predict_held);
    return FTH_OK;
}

/* ---- one array, a file for each group ---- */

typedef struct files {
    fth_mem *mem;
    fth_sink *file; /* [group] */
    int64_t groups;
    const int64_t *row; /* row of each written cell; NULL: the same number */
} files;

/* Cells [lo, lo + n) of one group; adjacent rows are written together. */
static fth_status write_cells(const files *f, const fth_sink *to, int64_t lo, int64_t n,
                              int64_t factors, const float *from, fth_err *err)
{
    for (int64_t i = 0, run; i < n; i += run) {
        const int64_t first = f->row ? f->row[lo + i] : lo + i;
        for (run = 1; i + run < n && (!f->row || f->row[lo + i + run] == first + run);) run++;
        FTH_TRY(to->write(to->self, (int64_t[]){first, 0}, (int64_t[]){run, factors},
                          from + i * factors, err));
    }
    return FTH_OK;
}

static fth_status files_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    const files *f = self;
    const float *from = src;
    for (int64_t g = 0; g < n[0]; g++)
        FTH_TRY(
            write_cells(f, &f->file[lo[0] + g], lo[1], n[1], n[2], from + g * n[1] * n[2], err));
    return FTH_OK;
}

static void files_close(files *f)
{
    for (int64_t g = 0; f->file && g < f->groups; g++) fth_sink_close(&f->file[g]);
    fth_mem_release(f->mem, f->file, NULL);
}

static fth_status group_path(char path[FTH_PATH], const sp_analysis *a, int64_t g, fth_err *err)
{
    char name[64];
    snprintf(name, sizeof name, SP_GROUPWISE "/group_%lld.npy", (long long)g);
    return fth_path_join(path, a->call->model_dir, name, err);
}

static fth_status files_open(files *f, const sp_analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    void *block = NULL;
    const int64_t size[2] = {a->rows, a->factors};
    *f = (files){.mem = a->mem, .groups = a->model.set.n_groups};
    FTH_TRY(fth_path_join(path, a->call->model_dir, SP_GROUPWISE, err));
    FTH_TRY(fth_folder_make(a->mem, path, err));
    const uint64_t bytes = (uint64_t)f->groups * sizeof(fth_sink);
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_META, bytes, "files of groups", &block, err));
    f->file = memset(block, 0, (size_t)bytes);
    for (int64_t g = 0; g < f->groups; g++) {
        FTH_TRY(group_path(path, a, g, err));
        FTH_TRY(fth_npy_create(&f->file[g], a->mem, path, FTH_F32, 2, size, err));
    }
    return FTH_OK;
}

/* Training cells, then those held out, each into their rows. */
static fth_status write_groupwise(sp_analysis *a, files *f, fth_err *err)
{
    sp_pass *const pass[2] = {&a->groupwise, &a->groupwise_held};
    const int64_t *const row[2] = {a->data.row, a->data.absent}, cells[2] = {a->cells, a->held};
    for (int i = 0; i < 2; i++) {
        if (!pass[i]->plan) continue;
        f->row = row[i];
        pass[i]->sink[0] = (fth_sink){.kind = "files of groups",
                                      .self = f,
                                      .dtype = FTH_F32,
                                      .n_axes = 3,
                                      .size = {f->groups, cells[i], a->factors},
                                      .write = files_write};
        FTH_TRY(sp_analysis_run_pass(a, pass[i], err));
        sp_analysis_end_pass(a, pass[i]);
    }
    for (int64_t g = 0; g < f->groups; g++) FTH_TRY(f->file[g].commit(f->file[g].self, err));
    return FTH_OK;
}

fth_status sp_analysis_groupwise(sp_analysis *a, fth_err *err)
{
    if (!a->groupwise.plan) return FTH_OK;
    files f;
    fth_status s = files_open(&f, a, err);
    if (s == FTH_OK) s = write_groupwise(a, &f, err);
    files_close(&f);
    for (int64_t g = 0; s == FTH_OK && g < a->model.set.n_groups; g++) {
        char path[FTH_PATH];
        s = group_path(path, a, g, err);
        if (s == FTH_OK)
            s = fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "factors as of one group", err);
    }
    return s;
}

fth_status sp_analysis_lu(sp_analysis *a, fth_err *err)
{
    if (!a->lu.plan) return FTH_OK;
    char path[FTH_PATH];
    const sp_settings *set = &a->model.set;
    const int64_t M = fth_tensor_size(a->model.Z, 0);
    const int64_t size[3] = {set->n_components, M, set->local ? set->R : M};
    FTH_TRY(fth_path_join(path, a->call->model_dir, SP_LU, err));
    FTH_TRY(fth_npy_create(&a->lu.sink[0], a->mem, path, FTH_F32, 3, size, err));
    const fth_status s = sp_analysis_run_pass(a, &a->lu, err);
    fth_sink_close(&a->lu.sink[0]);
    sp_analysis_end_pass(a, &a->lu);
    return s;
}
