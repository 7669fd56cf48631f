/* sums.c - graphs over cells and their stored counts that end in sums of bins. */
#include "sums.h"
#include "../ops/poisson/poisson.h"

#include <string.h>

sp_sums_input sp_sums_of(const sp_data *data, int64_t factors)
{
    return (sp_sums_input){.gene = fth_csr_columns(data->counts),
                           .value = fth_csr_values(data->counts),
                           .row_ptr = fth_csr_row_ptr(data->counts),
                           .cells = data->rows,
                           .genes = data->size.genes,
                           .factors = factors};
}

/* ---- values that all passes share ---- */

typedef struct values {
    fth_graph *g;
    fth_val F;       /* f64 [cell factor] */
    fth_val at;      /* f64 [entry factor]: F of the entry's cell */
    fth_val bin;     /* i32 [cell] */
    fth_val gene, y; /* i32 and f64 [entry] */
    fth_val count;   /* y as it is stored: f32 */
    fth_val row_ptr; /* i64 [cell1] */
    fth_val slot;    /* i64 [entry] */
} values;

static fth_val number(fth_graph *g, double v)
{
    return fth_const(g, FTH_F64, v);
}

/* Only read, so it may be const. */
static fth_source rows_source(const sp_sums_input *in)
{
    return (fth_source){.kind = "rows of counts",
                        .dtype = FTH_I64,
                        .n_axes = 1,
                        .size = {in->cells + 1},
                        .data = (void *)(uintptr_t)in->row_ptr};
}

static values begin(fth_context *ctx, const sp_sums_input *in)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "cell", in->cells);
    fth_axis(g, "cell1", in->cells + 1);
    fth_axis(g, "factor", in->factors);
    fth_axis_like(g, "factor2", "factor");
    fth_axis(g, "gene", in->genes);
    fth_axis(g, "bin", in->bins);
    fth_axis(g, "slot", in->bins * in->genes);
    fth_axis_ragged(g, "entry", "cell", in->row_ptr);
    values v = {.g = g};
    v.F = fth_cast(fth_input(g, "F", FTH_F32, "cell factor", in->F), FTH_F64);
    if (in->spread.kind) {
        const fth_val s = fth_cast(fth_input(g, "s", FTH_F32, "cell factor", in->spread), FTH_F64);
        v.F = fth_mul(v.F, fth_exp(fth_mul(fth_sqr(s), number(g, 0.5))));
    }
    if (in->size.kind)
        v.F = fth_mul(v.F, fth_cast(fth_input(g, "size", FTH_F32, "cell", in->size), FTH_F64));
    v.at = fth_spread(v.F, "entry");
    v.bin = fth_input(g, "bin", FTH_I32, "cell", in->bin);
    v.gene = fth_input(g, "gene", FTH_I32, "entry", in->gene);
    v.count = fth_input(g, "y", FTH_F32, "entry", in->value);
    v.y = fth_cast(v.count, FTH_F64);
    v.row_ptr = fth_input(g, "row_ptr", FTH_I64, "cell1", rows_source(in));
    const fth_val first = fth_mul(fth_cast(v.bin, FTH_I64), fth_const_i64(g, FTH_I64, in->genes));
    v.slot = fth_add(fth_spread(first, "entry"), fth_cast(v.gene, FTH_I64));
    return v;
}

/* Sum over the entries of every bin, by way of cells. */
static fth_val by_bin(const values *v, fth_val of_entry)
{
    return fth_scatter_add(fth_collect(of_entry, "entry"), "cell", v->bin, "bin");
}

static fth_val rate(const values *v, fth_val loadings, const char *axis, fth_val index)
{
    return fth_sum(fth_mul(v->at, fth_gather(loadings, axis, index)), "factor");
}

/* ---- plans ---- */

void sp_pass_clear(sp_pass *p)
{
    fth_plan_destroy(p->plan);
    fth_graph_destroy(p->g);
    *p = (sp_pass){0};
}

fth_status sp_pass_run(sp_pass *p, const fth_stage_call *call, fth_err *err)
{
    return fth_stage_run(call, p->plan, p->sink, &p->report, err);
}

/* Small chunks keep entries and their factors in cache. */
fth_plan *sp_plan_small(fth_graph *g, const fth_val *out, int n, fth_limits *l, fth_err *err)
{
    enum { ENOUGH = 128 << 20 };
    fth_plan *plan = fth_plan_make(g, out, n, l, err);
    fth_plan_info info;
    if (!plan || l->memory_bytes > 0) return plan;
    fth_plan_get_info(plan, &info);
    if (info.peak_bytes <= ENOUGH) return plan;
    l->memory_bytes = info.foreign_bytes + ENOUGH;
    fth_plan *small = fth_plan_make(g, out, n, l, NULL);
    fth_plan_destroy(small ? plan : NULL);
    return small ? small : plan;
}

static fth_status make_plan(sp_pass *p, const fth_val *out, const fth_limits *limits, fth_err *err)
{
    fth_limits l = limits ? *limits : (fth_limits){0};
    l.sinks = p->sink;
    p->plan = sp_plan_small(p->g, out, p->n_sinks, &l, err);
    if (p->plan) return FTH_OK;
    const fth_status s = err && err->status != FTH_OK ? err->status : fth_graph_check(p->g, NULL);
    sp_pass_clear(p);
    return s != FTH_OK ? s : FTH_E_NO_FIT;
}

static void add(sp_pass *p, fth_val *out, fth_val v, fth_tensor *to)
{
    out[p->n_sinks] = v;
    p->sink[p->n_sinks++] = fth_tensor_sink(to);
}

/* ---- the first pass ---- */

void sp_sums_clear(sp_sums *s)
{
    for (int k = 0; k < SP_SUM_KINDS; k++) fth_tensor_release(s->kind[k]);
    fth_tensor_release(s->YF);
    fth_tensor_release(s->FF);
    fth_tensor_release(s->F);
    fth_tensor_release(s->least);
    *s = (sp_sums){0};
}

static fth_status make_tensors(sp_sums *s, fth_mem *mem, const sp_sums_input *in, bool whole,
                               fth_err *err)
{
    static const char *const name[SP_SUM_KINDS] = {"y", "y^2", "y ln y/mu", "y > 0"};
    const int64_t B = in->bins, L = in->factors;
    for (int k = 0; k < SP_SUM_KINDS; k++)
        FTH_TRY(fth_tensor_create(&s->kind[k], mem, name[k], FTH_F64, 1, &B, err));
    FTH_TRY(fth_tensor_create(&s->F, mem, "F of bins", FTH_F64, 2, ((int64_t[]){B, L}), err));
    FTH_TRY(fth_tensor_create(&s->least, mem, "least F", FTH_F64, 0, &B, err));
    if (!whole) return FTH_OK;
    FTH_TRY(
        fth_tensor_create(&s->YF, mem, "Y^T F", FTH_F64, 2, ((int64_t[]){B * in->genes, L}), err));
    return fth_tensor_create(&s->FF, mem, "F^T F", FTH_F64, 3, ((int64_t[]){L, B, L}), err);
}

static void build_sums(sp_pass *p, const sp_sums *s, const values *v, fth_val W, fth_val *out)
{
    fth_graph *g = v->g;
    const fth_val zero = number(g, 0), is_more = fth_gt(v->y, zero);
    const fth_val mu = fth_max(rate(v, fth_cast(W, FTH_F64), "gene", v->gene), number(g, 1e-10));
    const fth_val ylog = fth_mul(v->y, fth_log(fth_div(v->y, mu)));
    add(p, out, by_bin(v, v->y), s->kind[SP_SUM_Y]);
    add(p, out, by_bin(v, fth_sqr(v->y)), s->kind[SP_SUM_YY]);
    add(p, out, by_bin(v, fth_select(is_more, ylog, fth_mul(v->y, zero))), s->kind[SP_SUM_YLOG]);
    add(p, out, by_bin(v, fth_cast(is_more, FTH_F64)), s->kind[SP_SUM_STORED]);
    add(p, out, fth_scatter_add(v->F, "cell", v->bin, "bin"), s->F);
    add(p, out, fth_rmin(fth_sum(v->F, "factor"), "cell"), s->least);
    if (!s->YF) return;
    const fth_val yF = fth_mul(v->at, v->y);
    add(p, out, fth_scatter_add(yF, "entry", v->slot, "slot"), s->YF);
    const fth_val square =
        fth_mul(fth_expand(v->F, "factor2"), fth_rename(v->F, "factor", "factor2"));
    add(p, out, fth_scatter_add(square, "cell", v->bin, "bin"), s->FF);
}

fth_status sp_sums_create(sp_sums *out, fth_mem *mem, const sp_sums_input *in, bool whole,
                          fth_err *err)
{
    *out = (sp_sums){0};
    const fth_status s = make_tensors(out, mem, in, whole, err);
    if (s != FTH_OK) sp_sums_clear(out);
    return s;
}

fth_status sp_sums_plan(sp_pass *pass, fth_context *ctx, const sp_sums_input *in, fth_tensor *W,
                        const sp_sums *to, const fth_limits *limits, fth_err *err)
{
    fth_val outs[SP_SUM_KINDS + 4];
    const values v = begin(ctx, in);
    *pass = (sp_pass){.g = v.g};
    const fth_val w = fth_input(v.g, "W", FTH_F32, "gene factor", fth_tensor_source(W));
    build_sums(pass, to, &v, w, outs);
    return make_plan(pass, outs, limits, err);
}

/* ---- likelihoods ---- */

/* Of all genes of a cell, f64 [cell]: their rates, or theta ln(1 + rate / theta). */
static fth_val of_cells(const values *v, fth_val W, fth_val theta)
{
    if (!theta.graph) return fth_sum(fth_mul(v->F, fth_sum(W, "gene")), "factor");
    const fth_val mu = fth_dot(W, v->F, "factor");
    return fth_sum(fth_mul(theta, fth_log1p(fth_div(mu, theta))), "gene");
}

/* ln(Gamma(y + theta) / Gamma(theta)) - y ln theta - y ln(1 + mu / theta), f64 [entry]. */
static fth_val over_poisson(const values *v, fth_val mu, fth_val theta, fth_val at)
{
    const fth_val base = fth_gather(fth_lgamma(theta), "gene", v->gene);
    const fth_val more = fth_sub(fth_lgamma(fth_add(v->y, at)), base);
    return fth_sub(more, fth_mul(v->y, fth_log(fth_add(at, mu))));
}

/* y ln(y / mu) - y ln((y + theta) / (mu + theta)) - theta ln(1 + y / theta), where y > 0. */
static fth_val deviance_of(const values *v, fth_val mu, fth_val at)
{
    const fth_val zero = number(v->g, 0);
    const fth_val ratio = fth_div(fth_mul(v->y, fth_add(mu, at)), fth_mul(mu, fth_add(v->y, at)));
    const fth_val d =
        fth_sub(fth_mul(v->y, fth_log(ratio)), fth_mul(at, fth_log1p(fth_div(v->y, at))));
    return fth_select(fth_gt(v->y, zero), d, fth_mul(v->y, zero));
}

/* ln of the Poisson density of y where its rate is y. */
static fth_val best_poisson(const values *v)
{
    const fth_val zero = number(v->g, 0);
    const fth_val most = fth_sub(fth_sub(fth_mul(v->y, fth_log(v->y)), v->y),
                                 fth_lgamma(fth_add(v->y, number(v->g, 1))));
    return fth_select(fth_gt(v->y, zero), most, fth_mul(v->y, zero));
}

static void build_score(sp_pass *p, const sp_score *to, const values *v, fth_val W, fth_val *out)
{
    fth_graph *g = v->g;
    const fth_val mu = fth_max(rate(v, W, "gene", v->gene), number(g, 1e-10));
    const fth_val theta = to->theta
                              ? fth_input(g, "theta", FTH_F64, "gene", fth_tensor_source(to->theta))
                              : (fth_val){0};
    const fth_val dense = fth_scatter_add(of_cells(v, W, theta), "cell", v->bin, "bin");
    fth_val like = fth_sub(fth_mul(v->y, fth_log(mu)), fth_lgamma(fth_add(v->y, number(g, 1))));
    const fth_val at = theta.graph ? fth_gather(theta, "gene", v->gene) : theta;
    if (theta.graph) like = fth_add(like, over_poisson(v, mu, theta, at));
    const fth_val sum = fth_sub(by_bin(v, like), dense);
    add(p, out, sum, to->like);
    if (!to->deviance) return;
    add(p, out, fth_mul(fth_sub(by_bin(v, best_poisson(v)), sum), number(g, 2)), to->above);
    add(p, out, fth_mul(fth_add(by_bin(v, deviance_of(v, mu, at)), dense), number(g, 2)),
        to->deviance);
}

fth_status sp_score_plan(sp_pass *pass, fth_context *ctx, const sp_sums_input *in, fth_tensor *W,
                         const sp_score *to, const fth_limits *limits, fth_err *err)
{
    fth_val outs[3];
    const values v = begin(ctx, in);
    *pass = (sp_pass){.g = v.g};
    const fth_val w = fth_input(v.g, "W", FTH_F32, "gene factor", fth_tensor_source(W));
    build_score(pass, to, &v, fth_cast(w, FTH_F64), outs);
    return make_plan(pass, outs, limits, err);
}

/* ---- further passes ---- */

/* y ln max(rate, 1e-8), by bin: the likelihood of cells without slopes. */
static fth_val fit(const values *v, fth_val slot, fth_val loadings)
{
    const sp_poisson_in in = {.phi = fth_layout(v->F, "factor cell"),
                              .W = loadings,
                              .row_ptr = v->row_ptr,
                              .gene = slot,
                              .value = v->count,
                              .path = SP_PATH_SPARSE};
    const fth_val of_cell = sp_poisson_cells_(FTH_HERE, &in, (fth_val){v->g, 0});
    return fth_scatter_add(of_cell, "cell", v->bin, "bin");
}

fth_status sp_fit_plan(sp_pass *pass, fth_context *ctx, const sp_sums_input *in, fth_tensor *A,
                       fth_tensor *B, fth_tensor *a, fth_tensor *b, fth_tensor *QF,
                       const fth_limits *limits, fth_err *err)
{
    fth_val outs[2];
    const values v = begin(ctx, in);
    *pass = (sp_pass){.g = v.g};
    const fth_val loadings = fth_input(v.g, "A", FTH_F64, "slot factor", fth_tensor_source(A));
    const fth_val slot = fth_cast(v.slot, FTH_I32);
    add(pass, outs, fit(&v, slot, loadings), a);
    if (B) {
        const fth_val other = fth_input(v.g, "B", FTH_F64, "slot factor", fth_tensor_source(B));
        add(pass, outs, fit(&v, slot, other), b);
    } else {
        const fth_val r = rate(&v, loadings, "slot", v.slot);
        const fth_val q = fth_div(v.y, fth_max(r, number(v.g, 1e-8)));
        add(pass, outs, fth_scatter_add(fth_mul(v.at, q), "entry", v.slot, "slot"), QF);
    }
    return make_plan(pass, outs, limits, err);
}
