/* svgp.c - the prior of the inducing-point models: what a step of training computes (model 6.2 to
 * 6.4).
 *
 * Kernel and inducing points do not move, so the rows of A = Kzz^-1 k(Z, x) are computed once for
 * all cells, and a step reads those of its batch. The gradient in Lu needs one matrix per factor:
 *
 *   dLu = tril((sum over cells of 2 gv A A^T + b Kzz^-1) Lu) - b diag(1 / Lu)
 *
 * so A Lu, with an element for every factor, cell and inducing point, is never materialised:
 * forward it is squared and summed tile by tile, backward it does not occur. All products have a
 * triangular operand or result, of which only the triangle is computed.
 *
 * Where each factor has a lengthscale that moves (model 19), nothing is made once: Kzz, A and c get
 * the axis of the factors, and a step makes those of its batch.
 */
#include "svgp.h"

typedef struct svgp {
    bool each;               /* every factor has a lengthscale of its own, which moves */
    bool cached;             /* A is computed once; else in each step */
    fth_tensor *A;           /* real [cell induce]; NULL: on the file */
    fth_scratch *file;       /* the same, where there is no memory for it */
    fth_tensor *c;           /* real [cell] */
    fth_batches *batch;      /* rows of A */
    fth_tensor *reserved[2]; /* when planning: memory of the size of a step's inputs */
    fth_tensor *inverse;     /* of Lc, f64 [induce2 induce], when A is made in each step */
    fth_tensor *Linv, *Kinv; /* of Lc and Kzz, real [induce induce2]; NULL: whitened */
    fth_tensor *diagonal;    /* of Kinv, real [induce]; diagonal_only */
    double log_det;          /* sum of ln Lc_kk */
    /* of the step's graph */
    fth_val a, Lu, variance, s;
    fth_val Kinv_in, Linv_in, kappa; /* of Kzz; empty: whitened */
    fth_val log_dets;                /* `each`: sum over factors of log_det */
    sp_tangent tangent;              /* `each` */
    sp_lower at;
} svgp;

static bool is_whitened(const sp_model *m)
{
    return m->set.parametrization == SP_WHITENED;
}

static int64_t points(const sp_model *m)
{
    return fth_tensor_size(m->Z, 0);
}

/* ---- what is made once ---- */

static uint64_t bytes_free(fth_mem *mem)
{
    fth_mem_stats now;
    fth_mem_get_stats(mem, &now);
    return now.used_bytes < now.budget_bytes ? now.budget_bytes - now.used_bytes : 0;
}

/* In memory if that leaves half of the free budget to the steps, or if there is no scratch
 * directory. */
static fth_status place_projection(sp_prior *p, svgp *v, fth_err *err)
{
    sp_model *m = p->model;
    const int64_t size[2] = {m->set.cells, points(m)};
    const uint64_t bytes = (uint64_t)(size[0] * size[1] * fth_dtype_size(m->real));
    FTH_TRY(fth_tensor_create(&v->c, m->mem, "rest of the variance", m->real, 1, size, err));
    if (bytes <= bytes_free(m->mem) / 2 || !fth_context_scratch_dir(p->ctx))
        return fth_tensor_create(&v->A, m->mem, "projections", m->real, 2, size, err);
    p->scratch_bytes = bytes;
    return FTH_OK;
}

static fth_status place_constants(const sp_prior *p, svgp *v, fth_err *err)
{
    sp_model *m = p->model;
    const int64_t size[2] = {points(m), points(m)};
    if (v->each) return FTH_OK;
    if (!v->cached)
        FTH_TRY(fth_tensor_create(&v->inverse, m->mem, "f64 Lc^-1", FTH_F64, 2, size, err));
    if (is_whitened(m)) return FTH_OK;
    FTH_TRY(fth_tensor_create(&v->Linv, m->mem, "Lc^-1", m->real, 2, size, err));
    FTH_TRY(fth_tensor_create(&v->Kinv, m->mem, "Kzz^-1", m->real, 2, size, err));
    if (!m->set.diagonal_only) return FTH_OK;
    return fth_tensor_create(&v->diagonal, m->mem, "diagonal of Kzz^-1", m->real, 1, size, err);
}

typedef struct wanted {
    fth_val val[8];
    fth_sink sink[8];
    int n;
} wanted;

static void want(wanted *w, fth_val val, fth_sink sink)
{
    w->val[w->n] = val;
    w->sink[w->n++] = sink;
}

static void want_constants(fth_graph *g, const sp_model *m, svgp *v, fth_val Lc, fth_val inverse,
                           wanted *w)
{
    const fth_val on = sp_compare_index(g, FTH_EW_EQ, "induce", "induce2");
    const fth_val zero = fth_const(g, FTH_F64, 0.0);
    const fth_val diagonal = fth_sum(fth_select(on, Lc, zero), "induce2");
    want(w, fth_sum(fth_log(diagonal), "induce"), fth_scalar_sink(FTH_F64, &v->log_det));
    if (v->inverse) want(w, inverse, fth_tensor_sink(v->inverse));
    if (is_whitened(m)) return;
    const fth_val Linv = fth_rename(inverse, "induce", "induce3");
    const fth_val Kinv = fth_solve_t(Lc, Linv, "induce", "induce2");
    want(w, fth_cast(Linv, m->real), fth_tensor_sink(v->Linv));
    want(w, fth_cast(Kinv, m->real), fth_tensor_sink(v->Kinv));
    if (v->diagonal)
        want(w, fth_cast(fth_sum(fth_sqr(Linv), "induce2"), m->real), fth_tensor_sink(v->diagonal));
}

static fth_source places_of(const sp_prior *p, bool groups)
{
    if (!p->planning) return fth_tensor_source(groups ? p->data->group : p->data->xy);
    return groups ? fth_source_planned(FTH_I32, 1, (int64_t[]){p->model->set.cells})
                  : fth_source_planned(FTH_F32, 2, (int64_t[]){p->model->set.cells, 2});
}

/* The graph of everything that is computed once. */
static fth_status build_once(sp_prior *p, svgp *v, fth_graph *g, fth_sink *file, wanted *w,
                             fth_err *err)
{
    const sp_model *m = p->model;
    const sp_cov cov = sp_cov_of(m);
    fth_val gz = {0}, gx = {0};
    fth_axis(g, "cell", m->set.cells);
    fth_axis(g, "induce", points(m));
    fth_axis_like(g, "induce2", "induce");
    fth_axis(g, "dim", 2);
    if (m->set.groups) {
        fth_axis(g, "group", m->set.n_groups);
        fth_axis_like(g, "group2", "group");
        gz = fth_input(g, "groupsZ", FTH_I32, "induce", fth_tensor_source(m->groupsZ));
    }
    const fth_val Z = fth_input(g, "Z", FTH_F32, "induce dim", fth_tensor_source(m->Z));
    const fth_val Lc = sp_svgp_factor(g, m, &cov, Z, gz, NULL), Linv = sp_svgp_inverse(Lc);
    want_constants(g, m, v, Lc, Linv, w);
    if (v->cached) {
        const fth_val xy = fth_input(g, "xy", FTH_F32, "cell dim", places_of(p, false));
        if (m->set.groups) gx = fth_input(g, "group", FTH_I32, "cell", places_of(p, true));
        const sp_projection at = sp_svgp_project(g, m, &cov, Linv, Z, gz, xy, gx, "cell", false);
        want(w, at.A, v->A ? fth_tensor_sink(v->A) : *file);
        want(w, at.c, fth_tensor_sink(v->c));
    }
    return fth_graph_check(g, err);
}

static fth_status run_once(sp_prior *p, const wanted *w, fth_graph *g, fth_err *err)
{
    const fth_limits limits = {.sinks = w->sink};
    fth_plan *plan = fth_plan_make(g, w->val, w->n, &limits, err);
    if (!plan) return err ? err->status : FTH_E_NO_FIT;
    fth_plan_get_needs(plan, &p->once);
    if (p->planning) {
        fth_plan_destroy(plan);
        return FTH_OK;
    }
    const fth_status s = fth_stage_run(p->call, plan, w->sink, NULL, err);
    if (s == FTH_E_NUMERIC)
        fth_err_hint(err, "inducing points lie too close together for this kernel: raise "
                          "model.jitter, or ask for fewer of them");
    fth_plan_destroy(plan);
    (void)fth_mem_trim(p->model->mem); /* steps need less */
    return s;
}

static fth_status compute_with(sp_prior *p, svgp *v, fth_sink *file, fth_err *err)
{
    wanted w = {.n = 0};
    fth_graph *g = fth_graph_create(p->ctx);
    fth_status s = build_once(p, v, g, file, &w, err);
    if (s == FTH_OK) s = run_once(p, &w, g, err);
    fth_graph_destroy(g);
    return s;
}

static fth_status compute(sp_prior *p, svgp *v, fth_err *err)
{
    if (!v->cached || v->A) return compute_with(p, v, NULL, err);
    const int64_t size[2] = {p->model->set.cells, points(p->model)};
    const char *dir = p->planning ? NULL : fth_context_scratch_dir(p->ctx);
    FTH_TRY(fth_scratch_create(&v->file, p->model->mem, dir, "projections", p->model->real, 2, size,
                               err));
    fth_sink sink = fth_scratch_sink(v->file);
    return compute_with(p, v, &sink, err);
}

static fth_status make_batches(sp_prior *p, svgp *v, fth_err *err)
{
    const fth_source base = v->A ? fth_tensor_source(v->A) : fth_scratch_source(v->file);
    return fth_batches_create(&v->batch, p->model->mem, &base, p->model->set.batch_size, err);
}

/* All of A is on the device, and a step gathers the rows of its batch there. */
static bool is_gathered(const sp_prior *p, const svgp *v)
{
    return p->resident && v->A;
}

/* When planning: reserve the memory of the batches, or of the data that a step would read. */
static fth_status reserve_inputs(sp_prior *p, svgp *v, fth_err *err)
{
    if (is_gathered(p, v)) return FTH_OK;
    sp_model *m = p->model;
    const int64_t rows[2] = {m->set.batch_size, points(m)}, xy[2] = {m->set.cells, 2};
    fth_tensor **t = v->reserved;
    if (!v->cached) {
        FTH_TRY(fth_tensor_create(&t[0], m->mem, "positions", FTH_F32, 2, xy, err));
        return fth_tensor_create(&t[1], m->mem, "groups", FTH_I32, 1, xy, err);
    }
    FTH_TRY(fth_tensor_create(&t[0], m->mem, "batch", m->real, 2, rows, err));
    return fth_tensor_create(&t[1], m->mem, "next batch", m->real, 2, rows, err);
}

static void close_prior(sp_prior *p)
{
    svgp *v = p->self;
    if (!v) return;
    fth_batches_destroy(v->batch);
    fth_scratch_destroy(v->file);
    fth_tensor *const held[] = {v->A,       v->c,    v->reserved[0], v->reserved[1],
                                v->inverse, v->Linv, v->Kinv,        v->diagonal};
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) fth_tensor_release(held[i]);
    fth_mem_release(p->model->mem, v, NULL);
    p->self = NULL;
}

/* Whether A is cached depends on the settings alone, never on the budget: the two ways may differ
 * in the last bits. */
static bool pays(const sp_settings *s)
{
    return (double)s->max_iter * (double)s->batch_size >= (double)s->cells;
}

static fth_status open_prior(sp_prior *p, fth_err *err)
{
    void *self = NULL;
    FTH_TRY(fth_mem_take(p->model->mem, FTH_MEM_META, sizeof(svgp), "svgp", &self, err));
    svgp *v = p->self = self;
    const bool each = p->model->param[SP_P_ELL] && !p->fixed_lengthscale;
    *v = (svgp){.each = each, .cached = !each && pays(&p->model->set)};
    fth_status s = place_constants(p, v, err);
    if (s == FTH_OK && v->cached) s = place_projection(p, v, err);
    if (s == FTH_OK && !each) s = compute(p, v, err);
    if (each && !p->planning) (void)fth_mem_trim(p->model->mem); /* what start values left */
    if (s == FTH_OK && p->planning) s = reserve_inputs(p, v, err);
    if (s == FTH_OK && !p->planning && v->cached && !is_gathered(p, v)) s = make_batches(p, v, err);
    if (s != FTH_OK) close_prior(p);
    return s;
}

/* ---- the step ---- */

/* Memory of the size of a batch, for the graph: the first rows, until a batch is taken. */
static fth_status first_rows(sp_prior *p, svgp *v, fth_source *out, fth_err *err)
{
    if (p->planning) {
        *out = fth_tensor_source(v->reserved[0]);
        return FTH_OK;
    }
    void *room = NULL;
    fth_mem *mem = p->model->mem;
    const int64_t n = p->model->set.batch_size;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * sizeof(int64_t), "rows", &room, err));
    for (int64_t i = 0; i < n; i++) ((int64_t *)room)[i] = i;
    fth_status s = fth_batches_ask(v->batch, room, n, err);
    if (s == FTH_OK) s = fth_batches_take(v->batch, out, err);
    fth_mem_release(mem, room, NULL);
    return s;
}

/* A [cellb induce] and c [cellb] from the positions of the batch. */
static sp_projection project_batch(const sp_prior *p, const svgp *v, sp_model_graph *net,
                                   const sp_cov *cov, fth_val Linv)
{
    fth_tensor *at = p->planning ? v->reserved[0] : p->data->xy;
    fth_tensor *of = p->planning ? v->reserved[1] : p->data->group;
    const fth_val xy =
        fth_gather(sp_model_graph_constant(net, "xy", "cell dim", at), "cell", net->idx);
    fth_val gx = {0};
    if (p->model->set.groups)
        gx = fth_gather(sp_model_graph_constant(net, "group", "cell", of), "cell", net->idx);
    return sp_svgp_project(net->g, p->model, cov, Linv, net->Z, net->groupsZ, xy, gx, "cellb",
                           v->each);
}

static sp_projection project_shared(const sp_prior *p, const svgp *v, sp_model_graph *net)
{
    const sp_cov cov = sp_cov_of(p->model);
    const fth_val Linv =
        fth_mark(sp_model_graph_constant(net, "f64 Linv", "induce2 induce", v->inverse), FTH_LOWER,
                 "induce2", "induce");
    return project_batch(p, v, net, &cov, Linv);
}

/* sum over factors of ln Lc_kk, f64. */
static fth_val log_dets(const sp_model_graph *net, fth_val Lc)
{
    fth_graph *g = net->g;
    const fth_val on = sp_compare_index(g, FTH_EW_EQ, "induce", "induce2");
    const fth_val diagonal = fth_sum(fth_select(on, Lc, fth_const(g, FTH_F64, 0.0)), "induce2");
    return fth_sum(fth_sum(fth_log(diagonal), net->sfactor), "induce");
}

/* Inverses of Kzz and Lc for KL, of each factor. */
static void inverses(const sp_prior *p, svgp *v, const sp_model_graph *net, fth_val Lc,
                     fth_val inverse)
{
    const fth_val Linv = fth_rename(inverse, "induce", "induce3");
    v->log_dets = log_dets(net, Lc);
    v->Linv_in = fth_rename(fth_cast(Linv, net->real), "induce2 induce3", "induce induce2");
    if (p->model->set.diagonal_only)
        v->kappa =
            fth_rename(fth_cast(fth_sum(fth_sqr(Linv), "induce2"), net->real), "induce3", "induce");
    v->Kinv_in = fth_rename(fth_cast(fth_solve_t(Lc, Linv, "induce", "induce2"), net->real),
                            "induce3", "induce2");
}

/* Everything that has to do with Kzz, from the lengthscales of this step. */
static sp_projection project_each(const sp_prior *p, svgp *v, sp_model_graph *net)
{
    const sp_cov cov = sp_svgp_cov(net);
    fth_val dK;
    const fth_val Lc = sp_svgp_factor(net->g, p->model, &cov, net->Z, net->groupsZ, &dK),
                  Linv = sp_svgp_inverse(Lc);
    const sp_projection at = project_batch(p, v, net, &cov, Linv);
    if (!is_whitened(p->model)) inverses(p, v, net, Lc, Linv);
    v->tangent = sp_svgp_tangent(net, Linv, dK, &at, v->Lu);
    return at;
}

/* Rows of a batch are uploaded to a device buffer before each run without synchronising; if they do
 * not fit, a run reads them in pieces. */
static bool is_sent(const sp_model_graph *net)
{
    return net->on_device && !net->streams;
}

static fth_tensor *rows_tensor(const sp_prior *p, const svgp *v)
{
    return p->planning ? v->reserved[0] : fth_batches_tensor(v->batch);
}

/* Rows of A that a step reads, [cellb induce]. */
static fth_status rows_of_batch(sp_prior *p, svgp *v, const sp_model_graph *net, fth_err *err)
{
    if (is_gathered(p, v)) {
        const fth_val all = sp_model_graph_constant(net, "A", "cell induce", v->A);
        v->a = fth_label(fth_gather(all, "cell", net->idx), "A of the batch");
        return FTH_OK;
    }
    fth_source rows = {0};
    FTH_TRY(first_rows(p, v, &rows, err));
    v->a = is_sent(net) ? fth_param(net->g, "A", "cellb induce", rows_tensor(p, v))
                        : fth_input(net->g, "A", net->real, "cellb induce", rows);
    return FTH_OK;
}

static fth_status marginals(sp_prior *p, sp_model_graph *net, fth_val *f, fth_val *s, fth_err *err)
{
    svgp *v = p->self;
    fth_val c;
    fth_axis_like(net->g, "induce3", "induce");
    if (v->cached) {
        FTH_TRY(rows_of_batch(p, v, net, err));
        c = fth_gather(sp_model_graph_constant(net, "c", "cell", v->c), "cell", net->idx);
    }
    if (!p->model->set.diagonal_only) v->at = sp_svgp_lower(net->g);
    v->Lu = sp_svgp_lu(net, &v->at);
    if (!v->cached) {
        const sp_projection at = v->each ? project_each(p, v, net) : project_shared(p, v, net);
        v->a = at.A;
        c = at.c;
    }
    sp_svgp_marginals(net, v->Lu, v->a, c, f, &v->variance);
    v->s = *s = sp_svgp_deviation(v->variance);
    return fth_graph_check(net->g, err);
}

/* 2 gv: zero where the variance is clamped. */
static fth_val twice_gv(const svgp *v, fth_val gs)
{
    fth_graph *g = gs.graph;
    const fth_dtype real = fth_val_dtype(gs);
    const fth_val floored = fth_max(v->s, fth_const(g, real, 1e-6));
    const fth_val free = fth_le(v->variance, fth_const(g, real, SP_SVGP_MOST));
    return fth_select(free, fth_div(gs, floored), fth_const(g, real, 0.0));
}

static fth_val f64_sqr(fth_val v)
{
    return fth_sqr(fth_cast(v, FTH_F64));
}

/* Of [factor induce]: over factors first, so that a pass over factors accumulates, and the long sum
 * over induce is made once. */
static fth_val total(const sp_model_graph *net, fth_val v)
{
    return fth_sum(fth_sum(v, net->sfactor), "induce");
}

/* Slope in the diagonal d of Lu: d (sum over cells of 2 gv A^2 + b kappa) - b / d, where kappa is
 * the diagonal of Kzz^-1. KL has kappa d^2. */
static fth_val slope_of_diagonal(const sp_prior *p, sp_model_graph *net, fth_val g2v, double b,
                                 fth_val *square)
{
    const svgp *v = p->self;
    const fth_val weight = fth_const(net->g, net->real, b);
    const fth_val kappa = v->kappa.graph ? v->kappa : fth_const(net->g, net->real, 1.0);
    const fth_val sum = fth_dot(g2v, fth_sqr(v->a), "cellb"); /* [factor induce] */
    *square = total(net, fth_cast(fth_mul(fth_sqr(v->Lu), kappa), FTH_F64));
    const fth_val slope = fth_mul(v->Lu, fth_add(sum, fth_mul(weight, kappa)));
    return fth_sub(slope, fth_div(weight, v->Lu));
}

/* Of each factor: what all share is expanded. */
static fth_val of_each(const sp_model_graph *net, fth_val v)
{
    return fth_val_has(v, net->sfactor) ? v : fth_expand(v, net->sfactor);
}

/* Slope in Lu, without -b/Lu on the diagonal: one product with Lu. */
static fth_val slope_of_lower(const sp_prior *p, sp_model_graph *net, fth_val g2v, double b,
                              fth_val *square)
{
    const svgp *v = p->self;
    fth_graph *g = net->g;
    const fth_val scaled = fth_mul(of_each(net, fth_rename(v->a, "induce", "induce2")), g2v);
    const fth_val half = fth_dot_triangle(v->a, scaled, "cellb", FTH_LOWER, "induce", "induce2");
    const fth_val other = fth_layout(fth_rename(half, "induce induce2", "induce2 induce"),
                                     sp_is_hybrid(&p->model->set) ? "sfactor induce induce2"
                                                                  : "factor induce induce2");
    const fth_val middle = fth_select(v->at.below, half, fth_select(v->at.on, half, other));
    const fth_val Lu3 = fth_rename(v->Lu, "induce induce2", "induce2 induce3");
    const fth_val weight = fth_const(g, net->real, b);
    fth_val slope;
    if (v->Kinv_in.graph) {
        const fth_val Linv = fth_mark(v->Linv_in, FTH_LOWER, "induce", "induce2");
        *square = total(net, fth_sum(f64_sqr(fth_dot(Linv, Lu3, "induce2")), "induce3"));
        const fth_val prior = fth_mul(weight, of_each(net, v->Kinv_in));
        slope = fth_dot_triangle(fth_add(middle, prior), Lu3, "induce2", FTH_LOWER, "induce",
                                 "induce3");
        return fth_rename(slope, "induce3", "induce2");
    }
    *square = total(net, fth_sum(f64_sqr(v->Lu), "induce2"));
    slope = fth_dot_triangle(middle, Lu3, "induce2", FTH_LOWER, "induce", "induce3");
    slope = fth_rename(slope, "induce3", "induce2");
    return fth_add(slope, fth_mul(weight, v->Lu));
}

/* The diagonal of the raw parameter, [factor induce], without reading the rest. */
static fth_val raw_diagonal(const sp_model_graph *net)
{
    fth_graph *g = net->g;
    const int64_t n = points(net->model);
    fth_axis(g, "square", n * n);
    const fth_val at = fth_mul(fth_index(g, "induce"), fth_const_i64(g, FTH_I64, n + 1));
    return fth_gather(fth_merge(net->param[SP_P_LU], "induce induce2", "square"), "square", at);
}

/* From slopes in Lu to slopes in its raw parameter; sum of ln Lu_kk. */
static fth_val slope_of_raw(sp_model_graph *net, const svgp *v, fth_val slope, double b,
                            fth_val *logs)
{
    fth_graph *g = net->g;
    const sp_settings *set = &net->model->set;
    const fth_val raw = net->param[SP_P_LU], zero = fth_const(g, net->real, 0.0);
    const bool softplus = set->cholesky_mode == SP_CHOLESKY_SOFTPLUS;
    /* on a device the diagonal is recomputed: reading Lu for it would keep one more array alive */
    const fth_val Lu = net->on_device && !set->diagonal_only ? sp_svgp_positive(net) : v->Lu;
    const fth_val turn = softplus ? fth_sigmoid(raw) : Lu;
    const fth_val diagonal = set->diagonal_only ? raw : raw_diagonal(net);
    const fth_val ln = softplus ? fth_log(fth_softplus(diagonal)) : diagonal;
    *logs = total(net, fth_cast(ln, FTH_F64));
    if (set->diagonal_only) return fth_mul(slope, turn);
    const fth_val there = fth_mul(fth_sub(slope, fth_div(fth_const(g, net->real, b), Lu)), turn);
    return fth_select(v->at.on, there, fth_select(v->at.below, slope, zero));
}

static fth_val slope_of_mu(const sp_prior *p, sp_model_graph *net, fth_val gf, double b,
                           fth_val *square)
{
    const svgp *v = p->self;
    const fth_val mu = net->param[SP_P_MU], weight = fth_const(net->g, net->real, b);
    const fth_val data = fth_dot(gf, v->a, "cellb"); /* [factor induce] */
    if (is_whitened(p->model)) {
        *square = total(net, f64_sqr(mu));
        return fth_add(data, fth_mul(weight, mu));
    }
    const fth_val mu2 = fth_rename(mu, "induce", "induce2");
    *square = total(net, f64_sqr(fth_dot(v->Linv_in, mu2, "induce2")));
    return fth_add(data, fth_mul(weight, fth_dot(v->Kinv_in, mu2, "induce2")));
}

static fth_status gradients(sp_prior *p, sp_model_graph *net, fth_val gf, fth_val gs, double b,
                            fth_val *kl, fth_val grad[SP_PARAMS], fth_err *err)
{
    svgp *v = p->self;
    const sp_model *m = p->model;
    const fth_val g2v = twice_gv(v, gs);
    fth_val spread, mean, logs;
    if (v->Kinv) {
        v->Kinv_in = sp_model_graph_constant(net, "Kinv", "induce induce2", v->Kinv);
        v->Linv_in = sp_model_graph_constant(net, "Linv", "induce induce2", v->Linv);
    }
    if (v->diagonal) v->kappa = sp_model_graph_constant(net, "kappa", "induce", v->diagonal);
    fth_val slope = m->set.diagonal_only ? slope_of_diagonal(p, net, g2v, b, &spread)
                                         : slope_of_lower(p, net, g2v, b, &spread);
    grad[SP_P_LU] = fth_label(slope_of_raw(net, v, slope, b, &logs), "dLu_raw");
    grad[SP_P_MU] = fth_label(slope_of_mu(p, net, gf, b, &mean), "dmu");
    /* 1/2 sum over factors of (2 ln|Lc| - 2 ln|Lu| + |Lc^-1 Lu|^2 + |Lc^-1 mu|^2 - M) */
    const double det = is_whitened(m) ? 0.0 : 2.0 * v->log_det;
    const double fixed = (double)m->set.n_components * (det - (double)points(m));
    const fth_val half = fth_const(net->g, FTH_F64, 0.5);
    const fth_val sum = fth_add(fth_add(spread, mean), fth_const(net->g, FTH_F64, fixed));
    *kl = fth_label(fth_sub(fth_mul(half, sum), logs), "KL");
    if (!v->each) return fth_graph_check(net->g, err);
    if (!is_whitened(m)) *kl = fth_label(fth_add(*kl, v->log_dets), "KL");
    grad[SP_P_ELL] = sp_svgp_slope_of_ell(net, &v->tangent, gf, g2v, b);
    return fth_graph_check(net->g, err);
}

static fth_status ask(sp_prior *p, const int64_t *cell, int64_t n, fth_err *err)
{
    svgp *v = p->self;
    return v->batch ? fth_batches_ask(v->batch, cell, n, err) : FTH_OK;
}

static fth_status take(sp_prior *p, sp_model_graph *net, fth_err *err)
{
    svgp *v = p->self;
    fth_source rows = {0};
    if (!v->batch) return FTH_OK;
    FTH_TRY(fth_batches_take(v->batch, &rows, err));
    return is_sent(net) ? fth_param_set(net->g, "A", rows_tensor(p, v), err)
                        : fth_input_set(net->g, "A", rows, err);
}

const sp_prior_ops sp_prior_svgp = {.name = "svgp",
                                    .open = open_prior,
                                    .marginals = marginals,
                                    .gradients = gradients,
                                    .ask = ask,
                                    .take = take,
                                    .close = close_prior};
