/* update.c - gs_update as an operation that works in place. */
#include "loops.h"

#include <math.h>

static const char *const axes[GS_UPDATE_PARTS] = {"g xyz", "g c", "g xyz", "g wxyz", "g", "g k c"};

void gs_rates_put(const gs_rates *r, float out[GS_RATES])
{
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const double t = (double)r->step[a];
        out[GS_RATE_STEP + a] = (float)(r->rate[a] * (1.0 / (1.0 - pow(GS_BETA1, t))));
        out[GS_RATE_ROOT + a] = (float)sqrt(1.0 / (1.0 - pow(GS_BETA2, t)));
        out[GS_RATE_ON + a] = r->on[a] ? 1.0f : 0.0f;
    }
    const double rows = r->n > 0 ? (double)r->n : 1.0;
    out[GS_RATE_SCALING] = (float)(r->scale_reg / (3.0 * rows));
    out[GS_RATE_OPACITY] = (float)(r->opacity_reg / rows);
    out[GS_RATE_NOISE] = (float)r->noise;
    out[GS_RATE_SPARSITY] = (float)r->rho;
}

static int update_of(const fth_node *node, int out)
{
    (void)node;
    return gs_update_input_of(out);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const gs_update_attr *a = node->attr;
    const fth_dtype real = node->in[0].dtype;
    const int inputs = gs_update_aim_in(a) + (a->sparsity ? 1 : 0);
    if (node->n_in != inputs)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "%s: %d inputs, expected %d", node->op->name,
                        node->n_in, inputs);
    FTH_TRY(gs_check_real(node, err));
    FTH_TRY(gs_check_axes(node, GS_PROJECT_VIEW, real, "view", err));
    FTH_TRY(gs_check_splats(node, GS_BACK_SPLATS, &a->rule, err));
    FTH_TRY(gs_check_axes(node, GS_BACK_BAR, real, "g p", err));
    FTH_TRY(gs_check_axes(node, GS_UPDATE_RATES, real, "rate", err));
    if (a->densify) FTH_TRY(gs_check_axes(node, gs_update_sums_in(a), real, "g sum", err));
    if (a->noise) {
        FTH_TRY(gs_check_axes(node, gs_update_normals_in(a), FTH_F64, "g xyz", err));
        if (real != FTH_F32)
            return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: noise is for a model in f32", node->op->name);
    }
    if (a->sparsity) FTH_TRY(gs_check_axes(node, gs_update_aim_in(a), real, "g", err));
    node->n_out = gs_update_sums_out(a) + (a->densify ? 1 : 0);
    for (int o = 0; o < node->n_out; o++) {
        const int in = gs_update_input_of(o);
        if (o < gs_update_sums_out(a))
            FTH_TRY(gs_check_axes(node, in, real,
                                  axes[o < GS_UPDATE_OUTPUTS ? o % GS_IN_PARTS : GS_UPDATE_REST],
                                  err));
        node->out[o] = node->in[in];
    }
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = in != GS_PROJECT_VIEW && in != GS_UPDATE_RATES && dim == 0
               ? (fth_relation){.along = FTH_SAME, .out_dim = 0}
               : (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static fth_status run(const fth_call *call)
{
    gs_update_work w;
    gs_update_work_of(call, &w);
    const bool single = call->node->in[0].dtype == FTH_F32;
    if (w.rule->rays)
        (*(single ? FTH_ISA_BEST(gs_ray_update_f32) : FTH_ISA_BEST(gs_ray_update_f64)))(&w);
    else
        (*(single ? FTH_ISA_BEST(gs_update_f32) : FTH_ISA_BEST(gs_update_f64)))(&w);
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    return 2000.0 * (double)call->out[0].extent[0];
}

const fth_op gs_update_op = {
    .name = "splat_update",
    .brief = "cotangents of Gaussians on an image, back to the model and into it by Adam",
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .update_of = update_of,
    .run = run,
};

/* Inputs of the operation, as many as there may be. */
enum { INPUTS = GS_UPDATE_INPUTS + GS_UPDATE_KINDS + 3 };

static gs_update_attr attr_of(const gs_raster *rule, const gs_update_rows *rows)
{
    return (gs_update_attr){.rule = *rule,
                            .rest = fth_val_ok(rows->value.at[GS_SH_N]),
                            .densify = fth_val_ok(rows->densify),
                            .noise = fth_val_ok(rows->normals),
                            .sparsity = fth_val_ok(rows->aim)};
}

/* Those that are changed; returns how many inputs there are. */
static int put_rows(const gs_update_rows *rows, const gs_update_attr *attr, fth_val in[INPUTS])
{
    const gs_values *kind[GS_UPDATE_KINDS] = {&rows->value, &rows->first, &rows->second};
    int n = GS_UPDATE_INPUTS;
    for (int o = 0; o < GS_UPDATE_OUTPUTS; o++)
        in[gs_update_input_of(o)] = kind[o / GS_IN_PARTS]->at[gs_update_attribute[o % GS_IN_PARTS]];
    for (int k = 0; attr->rest && k < GS_UPDATE_KINDS; k++) in[n++] = kind[k]->at[GS_SH_N];
    if (attr->densify) in[n++] = rows->densify;
    if (attr->noise) in[n++] = rows->normals;
    if (attr->sparsity) in[n++] = rows->aim;
    return n;
}

fth_val gs_update_values_(fth_graph *g, fth_site site, const gs_raster *rule,
                          const gs_update_rows *rows, fth_val view, fth_val splats, fth_val bar,
                          fth_val rates)
{
    const gs_update_attr attr = attr_of(rule, rows);
    fth_val in[INPUTS];
    const int n = put_rows(rows, &attr, in);
    in[GS_PROJECT_VIEW] = view;
    in[GS_BACK_SPLATS] = splats;
    in[GS_BACK_BAR] = bar;
    in[GS_UPDATE_RATES] = rates;
    return fth_node_add_(g, site, &gs_update_op, n, in, &attr, sizeof attr);
}

int gs_update_(fth_graph *g, fth_site site, const gs_raster *rule, const gs_update_rows *rows,
               fth_val view, fth_val splats, fth_val bar, fth_val rates,
               fth_val assigns[GS_UPDATE_ASSIGNS])
{
    const gs_update_attr attr = attr_of(rule, rows);
    const fth_val all = gs_update_values_(g, site, rule, rows, view, splats, bar, rates);
    if (!fth_val_ok(all)) return 0;
    fth_val in[INPUTS];
    put_rows(rows, &attr, in);
    const int n = gs_update_sums_out(&attr) + (attr.densify ? 1 : 0);
    for (int o = 0; o < n; o++)
        assigns[o] = fth_assign_(site, in[gs_update_input_of(o)], o ? fth_out(all, o) : all);
    return n;
}
